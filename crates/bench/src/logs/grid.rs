//! Every device under every preallocation, payload and number of committers,
//! and two raw controls.

use super::contenders::{Contender, Ours, Raw, RawOverlapped};
use super::crew::{self, Work};
use crate::machine;
use crate::report::figure;
use anyhow::Result;
use comfy_table::{Table, presets};
use fulgurite_disk::DiskErrorKind;
use fulgurite_sim::{LogSize, cut_log_everywhere};
use fulgurite_wal::{Device, Error, Options, Preallocation};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

pub const PAYLOADS: [usize; 5] = [64, 128, 1 << 10, 4 << 10, 64 << 10];
pub const COMMITTERS: [usize; 3] = [1, 8, 64];
const POLICIES: [Preallocation; 3] = [
    Preallocation::None,
    Preallocation::Allocate,
    Preallocation::ZeroFill,
];
const LIMIT_BYTES: u64 = 16 << 20;
/// Seeds of power-cut runs a device.
const CUT_SEEDS: u64 = 4;

/// One combination.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    pub device: String,
    pub preallocation: &'static str,
    pub payload_bytes: usize,
    pub committers: usize,
    /// `None` where the device is not available here; `note` says why.
    pub commits_per_second: Option<f64>,
    pub latency_us: Option<Latency>,
    pub log_bytes_per_commit: f64,
    pub block_bytes_per_commit: Option<f64>,
    pub syncs_per_commit: f64,
    /// Power cuts survived, of how many, on the simulated disk.
    pub survived: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Times of a durable commit, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    pub min: f64,
    pub avg: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
}

impl Latency {
    fn of(nanos: &mut [u64]) -> Option<Self> {
        nanos.sort_unstable();
        let at = |percent: usize| nanos.get((nanos.len().max(1) - 1) * percent / 100);
        let micros = |nanos: &u64| *nanos as f64 / 1_000.0;
        Some(Self {
            min: micros(at(0)?),
            avg: nanos.iter().sum::<u64>() as f64 / nanos.len() as f64 / 1_000.0,
            p50: micros(at(50)?),
            p90: micros(at(90)?),
            p99: micros(at(99)?),
        })
    }
}

/// A way of writing: a device, or two files of the plain one.
#[derive(Debug, Clone, Copy)]
struct Way {
    device: Device,
    mirrored: bool,
    hints: bool,
}

impl Way {
    fn name(self) -> String {
        match (self.mirrored, self.hints) {
            (true, _) => "mirror".into(),
            (_, true) => format!("{}+hints", self.device),
            _ => self.device.to_string(),
        }
    }

    fn options(self, folder: &Path, preallocation: Preallocation) -> Options {
        let mut options = Options::device(self.device)
            .limit_bytes(LIMIT_BYTES)
            .preallocation(preallocation);
        options.mirror = self.mirrored.then(|| folder.join("grid-second.log"));
        if self.hints {
            options.lifetime = fulgurite_disk::Lifetime::Short;
            options.start_writeback = true;
        }
        options
    }
}

fn ways() -> Vec<Way> {
    let plain = |device| Way {
        device,
        mirrored: false,
        hints: false,
    };
    let mut ways: Vec<Way> = Device::DURABLE.into_iter().map(plain).collect();
    ways.push(Way {
        hints: true,
        ..plain(Device::File)
    });
    ways.push(Way {
        mirrored: true,
        ..plain(Device::File)
    });
    ways.push(plain(Device::Memory));
    ways
}

/// Measures all of it.
pub fn run(effort: f64, seed: u64, folder: &Path) -> Result<Vec<Cell>> {
    let time = Duration::from_millis((60.0 * effort).max(5.0) as u64);
    let mut cells = Vec::new();
    controls(time, folder, &mut cells)?;
    for way in ways() {
        eprintln!("  {}", way.name());
        let survived = survival(way, seed);
        for preallocation in POLICIES {
            of_policy(way, preallocation, time, folder, &survived, &mut cells)?;
        }
    }
    Ok(cells)
}

fn controls(time: Duration, folder: &Path, cells: &mut Vec<Cell>) -> Result<()> {
    let raw = Raw::create(&folder.join("grid.raw"))?;
    let overlapped = RawOverlapped::create(&folder.join("grid-overlapped.raw"))?;
    let both: [(&str, &dyn Contender, &[usize]); 2] = [
        ("raw pwrite+fdatasync", &raw, &[1]),
        ("raw overlapped", &overlapped, &COMMITTERS),
    ];
    for (name, control, crews) in both {
        for payload in PAYLOADS {
            for committers in crews {
                let bytes = vec![0x5A; payload];
                let before = machine::written_bytes(folder);
                let work = crew::work(control, *committers, &bytes, time)?;
                let mut cell = cell(name.into(), "zero-fill", payload, *committers);
                cell.syncs_per_commit = 1.0;
                cell.log_bytes_per_commit = payload as f64;
                cell.fill(work, before, folder);
                cells.push(cell);
            }
        }
    }
    Ok(())
}

fn of_policy(
    way: Way,
    preallocation: Preallocation,
    time: Duration,
    folder: &Path,
    survived: &Option<String>,
    cells: &mut Vec<Cell>,
) -> Result<()> {
    let path = folder.join("grid.log");
    for payload in PAYLOADS {
        for committers in COMMITTERS {
            let mut cell = cell(way.name(), name_of(preallocation), payload, committers);
            cell.survived.clone_from(survived);
            let opened = Ours::open(&path, way.options(folder, preallocation));
            match opened {
                Ok(log) => measure(&log, &mut cell, time, folder)?,
                Err(error) => match error.downcast_ref::<Error>() {
                    Some(Error::Disk(disk)) if disk.kind == DiskErrorKind::Unsupported => {
                        cell.note = Some(format!("not available: {disk}"));
                    }
                    _ => return Err(error),
                },
            }
            cells.push(cell);
            for name in ["grid.log", "grid-second.log"] {
                let path = folder.join(name);
                if path.exists() {
                    std::fs::remove_file(path)?;
                }
            }
        }
    }
    Ok(())
}

fn measure(log: &Ours, cell: &mut Cell, time: Duration, folder: &Path) -> Result<()> {
    let payload = vec![0x5A; cell.payload_bytes];
    let before = machine::written_bytes(folder);
    let work = crew::work(log, cell.committers, &payload, time)?;
    let stats = log.log.stats();
    let commits = stats.records.max(1) as f64;
    cell.log_bytes_per_commit = stats.bytes as f64 / commits;
    cell.syncs_per_commit = stats.syncs as f64 / commits;
    cell.fill(work, before, folder);
    Ok(())
}

fn cell(device: String, preallocation: &'static str, payload: usize, committers: usize) -> Cell {
    Cell {
        device,
        preallocation,
        payload_bytes: payload,
        committers,
        commits_per_second: None,
        latency_us: None,
        log_bytes_per_commit: f64::NAN,
        block_bytes_per_commit: None,
        syncs_per_commit: f64::NAN,
        survived: None,
        note: None,
    }
}

impl Cell {
    fn fill(&mut self, mut work: Work, written_before: Option<u64>, folder: &Path) {
        let commits = work.nanos.len().max(1) as f64;
        self.commits_per_second = Some(work.rate);
        self.latency_us = Latency::of(&mut work.nanos);
        self.block_bytes_per_commit = written_before
            .zip(machine::written_bytes(folder))
            .map(|(before, after)| after.saturating_sub(before) as f64 / commits);
    }
}

fn name_of(preallocation: Preallocation) -> &'static str {
    match preallocation {
        Preallocation::None => "none",
        Preallocation::Allocate => "fallocate",
        Preallocation::ZeroFill => "zero-fill",
    }
}

/// Power cuts on the simulated disk: survived / made.
fn survival(way: Way, seed: u64) -> Option<String> {
    if way.device == Device::Memory {
        return None;
    }
    let (mut cuts, mut lost) = (0, 0);
    for seed in seed..seed + CUT_SEEDS {
        let found = cut_log_everywhere(way.device, way.mirrored, LogSize::Small, seed);
        cuts += found.cuts;
        lost += found.losses.len() as u64;
    }
    Some(format!("{}/{cuts}", cuts - lost))
}

/// The grid as a table.
pub fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "device",
        "room",
        "payload",
        "committers",
        "commits/s",
        "min",
        "avg",
        "p50",
        "p90",
        "p99 µs",
        "log B",
        "block B",
        "syncs",
        "cuts survived",
    ]);
    for cell in cells {
        let mut row = vec![
            cell.device.clone(),
            cell.preallocation.to_owned(),
            cell.payload_bytes.to_string(),
            cell.committers.to_string(),
        ];
        match (&cell.note, cell.latency_us, cell.commits_per_second) {
            (None, Some(times), Some(rate)) => {
                row.push(figure(rate));
                row.extend([times.min, times.avg, times.p50, times.p90, times.p99].map(figure));
                row.push(figure(cell.log_bytes_per_commit));
                row.push(cell.block_bytes_per_commit.map_or("–".into(), figure));
                row.push(figure(cell.syncs_per_commit));
            }
            (note, ..) => {
                row.push(note.clone().unwrap_or_else(|| "–".into()));
                row.extend(std::iter::repeat_n(String::new(), 8));
            }
        }
        row.push(cell.survived.clone().unwrap_or_else(|| "–".into()));
        table.add_row(row);
    }
    table
}
