//! Which device commits fastest here: a short trial when a log is made.
//!
//! Every durable device (but for polled io_uring, which keeps a processor busy
//! for its speed) writes and syncs small records to a small file of its own in
//! the log's folder, in rounds of one commit each, so that the machine's drifts
//! meet all alike. The plain file wins unless another device is at least a
//! twentieth faster, by the median of the rounds' quotients; where there were
//! few rounds, since the disk is slow or others use it, nothing is concluded.
//! All of it ends within 200 ms where no single call takes longer.
//!
//! A trial that fails says so and is none of the log's business: whether that can be made
//! shows when it is. A file that somebody else has under a trial's name is left alone, and
//! all others are removed, whatever failed before.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fulgurite_disk::{Disk, DiskErrorKind, DiskFile, OpenOptions, Result as DiskResult};

use super::device::Device;
use super::error::Result;

/// What setting up and the rounds may take. Removing the files comes on top.
const BUDGET: Duration = Duration::from_millis(150);
/// A map wants its whole file made ready at once; larger ones are not tried.
const MAPPED_BYTES_MAX: u64 = 64 << 20;
const ROUNDS_MIN: usize = 40;
const ROUNDS_MAX: usize = 250;
/// Whoever wins takes at most this share of the plain file's time.
const SHARE_MAX: f64 = 0.95;
const FILE_BYTES: u64 = 64 << 10;
const NO_TIME: &str = "no time was left to try it";
const NOT_OURS: &str = "the name for its trial is another file's";
const RECORD: [u8; 160] = [RECORD_BYTE; 160];
const RECORD_BYTE: u8 = 0x5a;
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
    /// Whether there is a file to be removed.
    made: bool,
    file: std::result::Result<Arc<dyn DiskFile>, String>,
    /// A round each, as long as no commit failed.
    times: Vec<Duration>,
}

/// Tries all devices in the folder of `log`, which will hold `capacity` bytes.
pub(super) fn probe(disk: &dyn Disk, log: &Path, capacity: u64) -> Result<(Device, Vec<Measured>)> {
    let deadline = Instant::now() + BUDGET;
    let mut trials = Vec::new();
    for device in CANDIDATES {
        if device == Device::Mmap && capacity > MAPPED_BYTES_MAX {
            continue;
        }
        let mut name = log.as_os_str().to_owned();
        name.push(format!("-probe{}", device.code()));
        let name = PathBuf::from(name);
        trials.push(if Instant::now() < deadline {
            Trial::start(disk, device, name)
        } else {
            Trial::without_time(device, name)
        });
    }
    for round in 0..ROUNDS_MAX {
        if Instant::now() >= deadline {
            break;
        }
        for trial in &mut trials {
            trial.commit_once(round as u64);
        }
    }
    remove_all(disk, &trials)?;
    let winner = winner(&trials);
    Ok((winner, trials.into_iter().map(Trial::finish).collect()))
}

/// Removes every file, and then says which could not be: another opening finds it under
/// the same name, as long as the log is not made.
fn remove_all(disk: &dyn Disk, trials: &[Trial]) -> DiskResult<()> {
    let mut result = Ok(());
    for trial in trials.iter().filter(|trial| trial.made) {
        match disk.remove(&trial.path) {
            // Another process, which makes this log at the same time, was faster.
            Err(error) if error.kind != DiskErrorKind::NotFound && result.is_ok() => {
                result = Err(error);
            }
            _ => {}
        }
    }
    result
}

fn winner(trials: &[Trial]) -> Device {
    let Some(plain) = trials.iter().find(|trial| trial.device == Device::File) else {
        return Device::File;
    };
    trials
        .iter()
        .filter(|trial| trial.file.is_ok())
        .filter_map(|trial| Some((share(&trial.times, &plain.times)?, trial.device)))
        .filter(|(share, _)| *share < SHARE_MAX)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map_or(Device::File, |(_, device)| device)
}

/// What a device takes of the plain file's time: the median over the rounds.
fn share(times: &[Duration], plain: &[Duration]) -> Option<f64> {
    let mut quotients: Vec<f64> = times
        .iter()
        .zip(plain)
        .map(|(time, plain)| time.as_secs_f64() / plain.as_secs_f64())
        .collect();
    quotients.sort_by(f64::total_cmp);
    if quotients.len() < ROUNDS_MIN {
        return None;
    }
    quotients.get(quotients.len() / 2).copied()
}

impl Trial {
    fn start(disk: &dyn Disk, device: Device, path: PathBuf) -> Self {
        let mut trial = Self {
            device,
            path,
            made: false,
            file: Err(NO_TIME.to_owned()),
            times: Vec::with_capacity(ROUNDS_MAX),
        };
        let file = trial.make(disk).and_then(|()| {
            let file = device.open(disk, &trial.path);
            file.map_err(|error| error.to_string())
        });
        trial.file = file;
        trial
    }

    /// Makes the file, or says why there is none to try the device on.
    fn make(&mut self, disk: &dyn Disk) -> std::result::Result<(), String> {
        let options = OpenOptions {
            no_follow: true,
            ..OpenOptions::CREATE
        };
        let file = disk.open(&self.path, options);
        let file = file.map_err(|error| error.to_string())?;
        self.made = is_a_trial(&*file).map_err(|error| error.to_string())?;
        if !self.made {
            return Err(NOT_OURS.to_owned());
        }
        file.write_at(&vec![0; FILE_BYTES as usize], 0)
            .and_then(|()| file.sync_all())
            .map_err(|error| error.to_string())
    }

    fn without_time(device: Device, path: PathBuf) -> Self {
        Self {
            device,
            path,
            made: false,
            file: Err(NO_TIME.to_owned()),
            times: Vec::new(),
        }
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
            (Ok(_), None) => Err(NO_TIME.to_owned()),
            (Err(error), _) => Err(error),
        };
        Measured {
            device: self.device,
            commit,
        }
    }
}

/// Whether a file was just made, or may be one that a trial left.
fn is_a_trial(file: &dyn DiskFile) -> DiskResult<bool> {
    let len = file.len()?;
    if len > FILE_BYTES {
        return Ok(false);
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes.iter().all(|byte| matches!(*byte, 0 | RECORD_BYTE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that took `micros` in each of `rounds`, with every other round
    /// disturbed, as it is for all at once.
    fn trial(device: Device, rounds: usize, micros: u64) -> Trial {
        let times = (0..rounds).map(|round| {
            let disturbed = if round % 2 == 0 { 1 } else { 20 };
            Duration::from_micros(micros * disturbed)
        });
        Trial {
            device,
            path: PathBuf::new(),
            made: false,
            file: Ok(fulgurite_disk::MemoryDisk::new()
                .open(Path::new("f"), OpenOptions::CREATE)
                .expect("opens")),
            times: times.collect(),
        }
    }

    #[test]
    fn a_plain_file_wins_unless_another_is_clearly_faster() {
        let with = |others: Vec<Trial>| {
            let mut trials = vec![trial(Device::File, 50, 100)];
            trials.extend(others);
            winner(&trials)
        };
        assert_eq!(with(vec![trial(Device::Direct, 50, 96)]), Device::File);
        let faster = vec![trial(Device::Direct, 50, 80), trial(Device::Uring, 50, 70)];
        assert_eq!(with(faster), Device::Uring);
    }

    /// With 12 rounds on a disk that others wrote to, the probe once took
    /// io_uring, which was a third slower when they had gone.
    #[test]
    fn a_few_rounds_prove_nothing() {
        let trials = [trial(Device::File, 12, 100), trial(Device::Uring, 12, 70)];
        assert_eq!(winner(&trials), Device::File);
    }

    #[test]
    fn what_cannot_be_opened_does_not_win() {
        let mut missing = trial(Device::Uring, 50, 10);
        missing.file = Err("not permitted".to_owned());
        assert_eq!(
            winner(&[trial(Device::File, 50, 100), missing]),
            Device::File
        );
    }
}
