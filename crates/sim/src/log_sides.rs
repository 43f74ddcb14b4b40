//! One side of a mirrored log failing: at every call of a seeded workload in
//! turn, once or for good, on either side.
//!
//! The log must go on as if nothing had happened. Afterwards the process or the
//! power ends, and the side that failed comes back as it was left, or is gone,
//! or is gone for a life in which the log is opened alone and then comes back
//! stale. Each time the log must hold everything acknowledged, whichever side
//! it was acknowledged on, and after a cut in any of these lives; and in the end
//! either side alone must hold it.

use std::path::Path;

use fulgurite_disk::{Disk, OpenOptions};
use fulgurite_wal::{Device, Lone, Options};

use crate::log_cuts::{Disks, LogCuts, LogSize, Oracle, PATH, SECOND, live, options_for};
use crate::{Fault, FaultError, Rng, SimDisk};

/// Runs the workload that `seed` names with each call on each side failing.
pub fn lose_each_side_everywhere(device: Device, seed: u64) -> LogCuts {
    let mut result = LogCuts::default();
    for (lost, other) in [(PATH, SECOND), (SECOND, PATH)] {
        for for_good in [true, false] {
            for after in 0.. {
                let fault = Fault {
                    call: None,
                    after,
                    for_good,
                    error: FaultError::Io,
                };
                let disk = SimDisk::new(seed);
                if let Some(folder) = Path::new(lost).parent() {
                    disk.fail_under(folder, fault);
                }
                let sides = Sides {
                    lost: Path::new(lost),
                    other: Path::new(other),
                };
                let found = sides.run(
                    &disk,
                    &options_for(device, true, LogSize::Small),
                    seed ^ after << 20,
                );
                if disk.faults_met() == 0 {
                    break;
                }
                result.cuts += 1;
                if let Err(what) = found {
                    let times = if for_good { "for good" } else { "once" };
                    result.losses.push(format!(
                        "{device}, seed {seed}, call {after} on {lost} fails {times}: {what}"
                    ));
                }
            }
        }
    }
    result
}

struct Sides<'p> {
    lost: &'p Path,
    other: &'p Path,
}

impl Sides<'_> {
    fn run(&self, disk: &SimDisk, options: &Options, seed: u64) -> Result<(), String> {
        let mut rng = Rng::new(seed);
        let mut oracle = Oracle::default();
        live(disk, options, &mut rng, &mut oracle, Disks::AreEnough)?;
        let mut image = end_of(disk, &mut rng);
        // The first time it may be cut short, and is lived again.
        let life = |image: &mut SimDisk, rng: &mut Rng, oracle: &mut Oracle, how: Lone| {
            let options = lone(options, how);
            let wrong = |what| format!("{how:?}: {what}");
            if rng.one_in(2) {
                image.stop_at(image.calls() + rng.below(40));
                live(image, &options, rng, oracle, Disks::MayFail).map_err(wrong)?;
                image.power_off();
                *image = end_of(image, rng);
            }
            live(image, &options, rng, oracle, Disks::AreEnough).map_err(wrong)
        };
        let comes_back = rng.below(3);
        if comes_back > 0 && image.contents(self.other).is_some() {
            let stale = take(&image, self.lost)?;
            life(
                &mut image,
                &mut rng,
                &mut oracle,
                [Lone::Open, Lone::Rebuild][comes_back as usize - 1],
            )?;
            if let (Some(bytes), 1) = (stale, comes_back) {
                put(&image, self.lost, &bytes)?;
            }
        }
        life(&mut image, &mut rng, &mut oracle, Lone::Refuse)?;
        // Both sides are members again: each alone holds everything.
        for side in [self.other, self.lost] {
            let alone = image.fork();
            take(&alone, side)?;
            let options = lone(options, Lone::Open);
            let (mut rng, mut oracle) = (Rng::new(seed), oracle.clone());
            live(&alone, &options, &mut rng, &mut oracle, Disks::AreEnough)
                .map_err(|what| format!("without {}: {what}", side.display()))?;
        }
        Ok(())
    }
}

/// A disk as the end of the process leaves it, or a power cut.
fn end_of(disk: &SimDisk, rng: &mut Rng) -> SimDisk {
    if rng.one_in(2) {
        disk.kill_image()
    } else {
        disk.crash_image(rng.bits())
    }
}

fn lone(options: &Options, lone: Lone) -> Options {
    Options {
        lone,
        ..options.clone()
    }
}

/// Removes a file for good; what was in it, if it was there.
fn take(disk: &SimDisk, path: &Path) -> Result<Option<Vec<u8>>, String> {
    let bytes = disk.contents(path);
    if bytes.is_some() {
        let folder = path.parent().unwrap_or(Path::new(""));
        let removed = disk.remove(path).and_then(|()| disk.sync_dir(folder));
        removed.map_err(|error| error.to_string())?;
    }
    Ok(bytes)
}

/// Puts a file there as it was.
fn put(disk: &SimDisk, path: &Path, bytes: &[u8]) -> Result<(), String> {
    let options = OpenOptions {
        truncate: true,
        ..OpenOptions::CREATE
    };
    let write = || {
        let file = disk.open(path, options)?;
        file.write_at(bytes, 0)?;
        file.sync_all()?;
        disk.sync_dir(path.parent().unwrap_or(Path::new("")))
    };
    write().map_err(|error| error.to_string())
}
