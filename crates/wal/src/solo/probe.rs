//! Which device commits fastest here: a short trial when a log is made.
//!
//! Every durable device (but for polled io_uring, which keeps a processor busy
//! for its speed) writes and syncs small records to a small file of its own in
//! the log's folder, in turns, so that the machine's drifts meet all alike. The
//! plain file wins unless another one is at least a twentieth faster.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fulgurite_disk::{Disk, DiskFile, OpenOptions};

use super::device::Device;
use super::error::Result;

/// All trials together. Setting up and removing the files comes on top.
const BUDGET: Duration = Duration::from_millis(120);
/// A map wants its whole file made ready at once; larger ones are not tried.
const MAPPED_BYTES_MAX: u64 = 64 << 20;
const ROUNDS_MAX: usize = 200;
const FILE_BYTES: u64 = 64 << 10;
const RECORD: [u8; 160] = [0x5a; 160];
const CANDIDATES: [Device; 4] = [Device::File, Device::Direct, Device::Mmap, Device::Uring];

/// What a trial found about a device.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The device.
    pub device: Device,
    /// The median time of a durable commit of 160 bytes, or why there is none.
    pub commit: std::result::Result<Duration, String>,
}

struct Trial {
    device: Device,
    path: PathBuf,
    file: std::result::Result<Arc<dyn DiskFile>, String>,
    times: Vec<Duration>,
}

/// Tries all devices in the folder of `log`, which will hold `capacity` bytes.
pub(super) fn probe(disk: &dyn Disk, log: &Path, capacity: u64) -> Result<(Device, Vec<Measured>)> {
    let mut trials = Vec::new();
    for device in CANDIDATES {
        if device == Device::Mmap && capacity > MAPPED_BYTES_MAX {
            continue;
        }
        let mut name = log.as_os_str().to_owned();
        name.push(format!("-probe{}", device.code()));
        trials.push(Trial::start(disk, device, PathBuf::from(name))?);
    }
    let deadline = Instant::now() + BUDGET;
    for round in 0..ROUNDS_MAX {
        if Instant::now() >= deadline {
            break;
        }
        for trial in &mut trials {
            trial.commit_once(round as u64);
        }
    }
    let mut measured = Vec::new();
    for trial in trials {
        disk.remove(&trial.path)?;
        measured.push(trial.finish());
    }
    Ok((winner(&measured), measured))
}

fn winner(measured: &[Measured]) -> Device {
    let time_of = |wanted| {
        measured
            .iter()
            .find(|one| one.device == wanted)
            .and_then(|one| one.commit.clone().ok())
    };
    let plain = time_of(Device::File).unwrap_or(Duration::MAX);
    measured
        .iter()
        .filter_map(|one| Some((one.commit.as_ref().ok()?, one.device)))
        .filter(|(time, _)| **time < plain.mul_f64(0.95))
        .min_by_key(|(time, _)| *time)
        .map_or(Device::File, |(_, device)| device)
}

impl Trial {
    fn start(disk: &dyn Disk, device: Device, path: PathBuf) -> Result<Self> {
        let options = OpenOptions {
            truncate: true,
            ..OpenOptions::CREATE
        };
        let file = disk.open(&path, options)?;
        file.write_at(&vec![0; FILE_BYTES as usize], 0)?;
        file.sync_all()?;
        let file = device.open(disk, &path).map_err(|error| error.to_string());
        Ok(Self {
            device,
            path,
            file,
            times: Vec::with_capacity(ROUNDS_MAX),
        })
    }

    fn commit_once(&mut self, round: u64) {
        let Ok(file) = &self.file else { return };
        let offset = round * RECORD.len() as u64 % (FILE_BYTES - RECORD.len() as u64);
        let start = Instant::now();
        let slices = [std::io::IoSlice::new(&RECORD)];
        match file.write_and_sync_at(&slices, offset) {
            Ok(()) => self.times.push(start.elapsed()),
            Err(error) => self.file = Err(error.to_string()),
        }
    }

    fn finish(mut self) -> Measured {
        self.times.sort_unstable();
        let median = self.times.get(self.times.len() / 2).copied();
        let commit = match (self.file, median) {
            (Ok(_), Some(median)) => Ok(median),
            (Ok(_), None) => Err("no time was left to try it".to_owned()),
            (Err(error), _) => Err(error),
        };
        Measured {
            device: self.device,
            commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(device: Device, micros: u64) -> Measured {
        Measured {
            device,
            commit: Ok(Duration::from_micros(micros)),
        }
    }

    #[test]
    fn a_plain_file_wins_unless_another_is_clearly_faster() {
        let file = measured(Device::File, 100);
        assert_eq!(
            winner(&[file.clone(), measured(Device::Direct, 96)]),
            Device::File
        );
        let faster = [
            file,
            measured(Device::Direct, 80),
            measured(Device::Uring, 70),
        ];
        assert_eq!(winner(&faster), Device::Uring);
    }

    #[test]
    fn what_cannot_be_opened_does_not_win() {
        let missing = Measured {
            device: Device::Uring,
            commit: Err("not permitted".to_owned()),
        };
        assert_eq!(winner(&[missing]), Device::File);
    }
}
