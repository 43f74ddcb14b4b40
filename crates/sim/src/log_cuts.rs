//! Power cuts under a log on its own: a seeded workload of commits, appends,
//! flushes, truncations and reopenings, cut at every call in turn, then in the
//! lives after. Now and then only the process ends, and what it had not synced is
//! found by the next one.
//!
//! After each cut the log must open and hold, in order and unchanged, a run of
//! what was appended: with everything that was acknowledged, and nothing that
//! an acknowledged truncation gave up.
//!
//! Every device runs with its own alignment, gathering and labels over the
//! simulated disk; what the operating system adds below (its page cache, a map,
//! an io_uring) is the simulated disk's own: bytes are durable once synced.

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Access, Disk, DiskFile, OpenOptions, Result as DiskResult, forward};
use fulgurite_wal::{Device, Error, Lsn, Options, Preallocation, Wal};

use crate::{Call, Fault, FaultError, Rng, SimDisk};

pub(crate) const PATH: &str = "d/a.log";
pub(crate) const SECOND: &str = "e/b.log";
const STEPS: usize = 18;
/// The limit of a log whose file is ready as a whole when it is made.
const SMALL_BYTES: u64 = 64 << 10;
/// The limit of a log whose file grows twice, and how much larger its records are.
const ROOMY_BYTES: u64 = 3 << 20;
const ROOMY_FACTOR: usize = 24;
const PREALLOCATIONS: [Preallocation; 4] = [
    Preallocation::ZeroFill,
    Preallocation::ZeroFill,
    Preallocation::Allocate,
    Preallocation::None,
];
/// The last call of a workload that is made to fail.
const FAILING_CALL_MAX: u64 = 40;

/// What a round of power cuts found.
#[derive(Debug, Clone, Default)]
pub struct LogCuts {
    /// How often the power was cut, or the process ended.
    pub cuts: u64,
    /// What went wrong, one line each, with seed and call.
    pub losses: Vec<String>,
}

/// The simulated disk, opened in whatever way a device asks for.
#[derive(Debug)]
pub struct AnyAccess(pub SimDisk);

impl Disk for AnyAccess {
    forward!(0: open, exists, remove, rename, sync_dir, temp_file, canonical);

    fn open_with(
        &self,
        path: &Path,
        options: OpenOptions,
        _access: Access,
    ) -> DiskResult<Arc<dyn DiskFile>> {
        self.0.open(path, options)
    }
}

/// What was appended and promised.
#[derive(Clone, Default)]
pub(crate) struct Oracle {
    /// Everything appended that may still come back, in order.
    history: Vec<(Lsn, Vec<u8>)>,
    /// The payload of an append that failed: it may have been written before.
    failed: Option<Vec<u8>>,
    /// So many of them must come back.
    acked: usize,
    /// So many of them must not, and so many may not.
    given_up: usize,
    asked_to_give_up: usize,
}

impl Oracle {
    /// Compares with what a log holds after a crash, and goes on from there.
    fn compare(&mut self, log: &Wal) -> Result<(), String> {
        let found: Vec<(Lsn, Vec<u8>)> = log
            .replay(Lsn::FIRST)
            .and_then(Iterator::collect)
            .map_err(|error| error.to_string())?;
        if let (Some(failed), Some(last)) = (self.failed.take(), found.last())
            && last.1 == failed
            && self.history.last().is_none_or(|known| known.0 < last.0)
        {
            self.history.push(last.clone());
        }
        let first = match found.first() {
            Some((lsn, _)) => self
                .history
                .iter()
                .position(|(known, _)| known == lsn)
                .ok_or_else(|| format!("a record at {lsn} that nobody appended"))?,
            None => self.history.partition_point(|(lsn, _)| *lsn < log.first()),
        };
        let end = first + found.len();
        if self.history.get(first..end) != Some(&found[..]) {
            let lsns = |records: &[(Lsn, Vec<u8>)]| {
                let pairs = records
                    .iter()
                    .map(|(lsn, payload)| (lsn.to_u64(), payload.len()));
                pairs.collect::<Vec<_>>()
            };
            return Err(format!(
                "records differ from what was appended: {:?}, not {:?}",
                lsns(&found),
                lsns(self.history.get(first..).unwrap_or_default())
            ));
        }
        if first < self.given_up || first > self.asked_to_give_up.max(self.given_up) {
            let (from, to) = (self.given_up, self.asked_to_give_up);
            return Err(format!("begins with record {first}, not {from} to {to}"));
        }
        if end < self.acked {
            return Err(format!(
                "{end} of {} acknowledged records are there",
                self.acked
            ));
        }
        self.history.truncate(end);
        self.acked = end;
        self.given_up = first;
        self.asked_to_give_up = first;
        Ok(())
    }
}

/// What the disk does to an open log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disks {
    /// It may fail.
    MayFail,
    /// Whatever fails is no reason for the log to fail.
    AreEnough,
}

/// How much a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSize {
    /// Its file is ready as a whole when it is made.
    Small,
    /// Its file grows, and is prepared in whatever way each opening asks for.
    Roomy,
}

/// One life: opens the log, compares, takes random steps until the disk fails.
/// `Err` is what is wrong; a disk that fails as the test wanted is not.
pub(crate) fn live(
    disk: &SimDisk,
    options: &Options,
    rng: &mut Rng,
    oracle: &mut Oracle,
    disks: Disks,
) -> Result<(), String> {
    let open = |rng: &mut Rng| {
        let disk = Arc::new(AnyAccess(disk.clone()));
        let preallocation = PREALLOCATIONS[rng.index(PREALLOCATIONS.len())];
        let mut options = options.clone().disk(disk).preallocation(preallocation);
        if rng.one_in(4) {
            options.device = Some(Device::DURABLE[rng.index(Device::DURABLE.len())]);
        }
        match Wal::open(PATH, options) {
            Ok(log) => Ok(Some(log)),
            Err(Error::Disk(_) | Error::Poisoned(_)) => Ok(None),
            Err(error) => Err(format!("does not open: {error}")),
        }
    };
    let Some(mut log) = open(rng)? else {
        return Ok(());
    };
    oracle.compare(&log)?;
    for _ in 0..STEPS {
        if rng.one_in(9) {
            drop(log);
            log = match open(rng)? {
                Some(log) => log,
                None => return Ok(()),
            };
            oracle.compare(&log)?;
        } else if let Err(error) = step(&log, rng, oracle) {
            return match (disks, error) {
                (Disks::MayFail, Error::Disk(_) | Error::Poisoned(_)) => Ok(()),
                (_, error) => Err(format!("a step fails: {error}")),
            };
        }
    }
    Ok(())
}

fn step(log: &Wal, rng: &mut Rng, oracle: &mut Oracle) -> Result<(), Error> {
    match rng.below(10) {
        0..=4 => {
            let lsn = append(log, rng, oracle)?;
            log.flush()?;
            debug_assert!(lsn < log.end());
            oracle.acked = oracle.history.len();
        }
        5 if rng.one_in(4) => {
            // Laps of a small log, of which nothing is flushed.
            for _ in 0..40 {
                append(log, rng, oracle)?;
            }
        }
        5..=7 => {
            append(log, rng, oracle)?;
        }
        8 => log.flush_async()?,
        _ => {
            let kept = oracle.history.len() - oracle.given_up;
            let to = oracle.given_up + rng.index(kept + 1);
            let before = oracle.history.get(to).map_or(log.end(), |(lsn, _)| *lsn);
            oracle.asked_to_give_up = to;
            log.truncate(before)?;
            oracle.given_up = to;
        }
    }
    Ok(())
}

fn append(log: &Wal, rng: &mut Rng, oracle: &mut Oracle) -> Result<Lsn, Error> {
    let limit_bytes = log.stats().limit_bytes;
    let factor = if limit_bytes > SMALL_BYTES {
        ROOMY_FACTOR
    } else {
        1
    };
    let len = match rng.below(12) {
        0 => (3_000 + rng.index(9_000)) * factor,
        1 | 2 => rng.index(1_500) * factor,
        _ => rng.index(200),
    };
    let tag = rng.bits();
    let payload: Vec<u8> = (0..len)
        .map(|at| (tag >> (at % 8 * 8)) as u8 ^ at as u8)
        .collect();
    // Room for it: a lone thread would wait for itself.
    if log.end().to_u64() - log.first().to_u64() + len as u64 + 8_192 > limit_bytes {
        oracle.asked_to_give_up = oracle.history.len();
        log.truncate(log.end())?;
        oracle.given_up = oracle.history.len();
    }
    match log.append(&payload) {
        Ok(lsn) => {
            oracle.history.push((lsn, payload));
            Ok(lsn)
        }
        Err(error) => {
            oracle.failed = Some(payload);
            Err(error)
        }
    }
}

pub(crate) fn options_for(device: Device, mirrored: bool, size: LogSize) -> Options {
    let limit_bytes = match size {
        LogSize::Small => SMALL_BYTES,
        LogSize::Roomy => ROOMY_BYTES,
    };
    Options {
        mirror: mirrored.then(|| SECOND.into()),
        mirror_in_parallel: false,
        background: false,
        ..Options::device(device).limit_bytes(limit_bytes)
    }
}

/// Cuts the power at every call of the workload that `seed` names, and twice
/// more in the lives after each cut.
pub fn cut_log_everywhere(device: Device, mirrored: bool, size: LogSize, seed: u64) -> LogCuts {
    let options = options_for(device, mirrored, size);
    let mut result = LogCuts::default();
    let whole = SimDisk::new(seed);
    let found = live(
        &whole,
        &options,
        &mut Rng::new(seed),
        &mut Oracle::default(),
        Disks::AreEnough,
    );
    if let Err(what) = found {
        result.losses.push(format!("seed {seed}, no cut: {what}"));
    }
    for call in 0..whole.calls() {
        let mut disk = SimDisk::new(seed);
        let mut oracle = Oracle::default();
        let mut rng = Rng::new(seed);
        disk.stop_at(call);
        let mut found = live(&disk, &options, &mut rng, &mut oracle, Disks::MayFail);
        for stop in [rng.below(30), rng.below(30), u64::MAX] {
            if found.is_err() {
                break;
            }
            disk.power_off();
            result.cuts += 1;
            disk = if rng.one_in(3) {
                disk.kill_image()
            } else {
                disk.crash_image(rng.bits() ^ call)
            };
            if stop < u64::MAX {
                disk.stop_at(stop);
            }
            found = live(&disk, &options, &mut rng, &mut oracle, Disks::MayFail);
        }
        if let Err(what) = found {
            result
                .losses
                .push(format!("{device}, seed {seed}, cut at call {call}: {what}"));
        }
    }
    result
}

/// Makes each sync of the workload fail in turn, and each call but reads: once
/// and for good, with an I/O error and a full disk; then the power goes.
pub fn log_after_a_failing_call(
    device: Device,
    mirrored: bool,
    size: LogSize,
    seed: u64,
) -> LogCuts {
    let mut result = LogCuts::default();
    let kinds = [
        (Some(Call::Sync), FaultError::Io, false),
        (None, FaultError::Io, false),
        (None, FaultError::Io, true),
        (None, FaultError::NoSpace, false),
        (None, FaultError::NoSpace, true),
    ];
    for (call, error, for_good) in kinds {
        for after in 0..=FAILING_CALL_MAX {
            let fault = Fault {
                call,
                after,
                for_good,
                error,
            };
            result.cuts += 1;
            if let Err(what) = live_after(fault, &options_for(device, mirrored, size), seed) {
                let what = format!("{device}, seed {seed}, {fault:?}: {what}");
                result.losses.push(what);
            }
        }
    }
    result
}

fn live_after(fault: Fault, options: &Options, seed: u64) -> Result<(), String> {
    let disk = SimDisk::new(seed);
    let mut rng = Rng::new(seed);
    disk.fail(fault);
    let mut oracle = Oracle::default();
    live(&disk, options, &mut rng, &mut oracle, Disks::MayFail)?;
    disk.power_off();
    if rng.one_in(2) {
        disk.heal();
        let image = disk.kill_image();
        live(&image, options, &mut rng, &mut oracle, Disks::AreEnough)?;
        image.power_off();
        let image = image.crash_image(rng.bits());
        return live(&image, options, &mut rng, &mut oracle, Disks::AreEnough);
    }
    let image = disk.crash_image(rng.bits());
    live(&image, options, &mut rng, &mut oracle, Disks::AreEnough)
}
