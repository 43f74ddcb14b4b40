//! The log on a disk that loses power: random workloads, the power cut at every
//! call of every one of them, again during recovery and during what follows it;
//! calls that fail; bytes that rot.
//!
//! The oracle knows every record placed and what was promised. After each cut:
//! recovery succeeds, replays from the checkpoint without a gap, every record
//! with the bytes it was given, and at least up to what was promised: in `full`
//! mode what was acknowledged, in `normal` mode what was synced.
//!
//! `FULGURITE_SIM_FACTOR=20` runs twenty times as many workloads.

mod log;

use fulgurite_sim::{Call, Fault, FaultError, Rng, SimDisk};
use fulgurite_wal::{Durability, Error};
use log::{Life, Oracle, Trace};

/// The seeds of a test's workloads: `count` of them, times the factor asked for.
fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let factor = std::env::var("FULGURITE_SIM_FACTOR")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    first..first + count * factor
}

/// Cuts the power at every call of the workload that `seed` names, then twice
/// more in the lives after. Returns how many cuts there were.
fn cut_everywhere(seed: u64, durability: Durability) -> usize {
    let disk = SimDisk::new(seed);
    Life::new(&disk, durability, seed).run(&mut Oracle::default(), 25);
    let mut cuts = 0;
    for call in 0..disk.calls() {
        let _trace = Trace(format!(
            "seed {seed}, {durability:?}, power cut at call {call}"
        ));
        let mut rng = Rng::new(seed ^ call << 32);
        let mut oracle = Oracle::default();
        let mut disk = SimDisk::new(seed);
        disk.stop_at(call);
        Life::new(&disk, durability, seed).run(&mut oracle, 25);
        for _ in 0..2 {
            assert!(disk.is_stopped());
            cuts += 1;
            disk = disk.crash_image(rng.bits());
            disk.stop_at(rng.below(40));
            Life::new(&disk, durability, rng.bits()).run(&mut oracle, 10);
            disk.power_off();
        }
        cuts += 1;
        disk = disk.crash_image(rng.bits());
        Life::new(&disk, durability, rng.bits()).run(&mut oracle, 3);
    }
    cuts
}

#[test]
fn nothing_acknowledged_is_lost_in_full_mode() {
    let cuts: usize = seeds(0, 24)
        .map(|seed| cut_everywhere(seed, Durability::Full))
        .sum();
    assert!(cuts >= 2_000, "{cuts} power cuts");
}

#[test]
fn nothing_synced_is_lost_in_normal_mode() {
    let cuts: usize = seeds(100_000, 24)
        .map(|seed| cut_everywhere(seed, Durability::Normal))
        .sum();
    assert!(cuts >= 1_000, "{cuts} power cuts");
}

/// The end of the process loses nothing that was acknowledged, in any mode.
#[test]
fn killed_processes_lose_nothing_acknowledged() {
    for durability in [Durability::Full, Durability::Normal, Durability::Off] {
        for seed in seeds(200_000, 20) {
            let _trace = Trace(format!("seed {seed}, {durability:?}"));
            let mut rng = Rng::new(seed);
            let mut oracle = Oracle::default();
            let mut disk = SimDisk::new(seed);
            for _ in 0..6 {
                disk.stop_at(rng.below(80));
                Life::new(&disk, durability, rng.bits()).run(&mut oracle, 20);
                oracle.promised = oracle.promised.max(oracle.acked);
                disk.power_off();
                disk = disk.kill_image();
            }
            Life::new(&disk, durability, rng.bits()).run(&mut oracle, 5);
        }
    }
}

/// Each call fails in turn, once or for good; then the power goes.
#[test]
fn failing_calls_lose_nothing_promised() {
    for seed in seeds(300_000, 10) {
        let durability = [Durability::Full, Durability::Normal][seed as usize % 2];
        let disk = SimDisk::new(seed);
        Life::new(&disk, durability, seed).run(&mut Oracle::default(), 25);
        for after in 0..disk.calls() {
            let mut rng = Rng::new(seed ^ after << 32);
            let fault = Fault {
                call: [None, Some(Call::Write), Some(Call::Sync)][rng.index(3)],
                after,
                for_good: rng.one_in(2),
                error: if rng.one_in(2) {
                    FaultError::Io
                } else {
                    FaultError::NoSpace
                },
            };
            let _trace = Trace(format!("seed {seed}, {fault:?}"));
            let disk = SimDisk::new(seed);
            disk.fail(fault);
            let mut oracle = Oracle::default();
            Life::new(&disk, durability, seed).run(&mut oracle, 25);
            let disk = if rng.one_in(3) {
                disk.kill_image()
            } else {
                disk.crash_image(rng.bits())
            };
            Life::new(&disk, Durability::Full, rng.bits()).run(&mut oracle, 5);
            let disk = disk.crash_image(rng.bits());
            Life::new(&disk, Durability::Full, rng.bits()).run(&mut oracle, 5);
        }
    }
}

/// Flips bits all over logs that were synced to their end. Whatever is lost is
/// reported, but for the records that nothing later testifies for.
#[test]
fn rot_is_reported_or_harmless() {
    let (mut reported, mut harmless, mut tails) = (0, 0, 0);
    for seed in seeds(400_000, 6) {
        let disk = SimDisk::new(seed);
        let mut oracle = Oracle::default();
        Life::new(&disk, Durability::Full, seed).run(&mut oracle, 30);
        let files: Vec<_> = disk
            .files()
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("-wal"))
            .collect();
        let mut rng = Rng::new(seed);
        for file in &files {
            let len = disk.contents(file).unwrap().len();
            for _ in 0..200 {
                let offset = if rng.one_in(4) {
                    rng.index(128) * 64
                } else {
                    8192 + rng.index(len.min(16_384) - 8192)
                };
                let flip = 1 << rng.below(8);
                let _trace = Trace(format!(
                    "seed {seed}, {} at {offset}, bit {flip}",
                    file.display()
                ));
                let image = disk.settled_image();
                assert!(image.rot(file, offset, &mut |byte| *byte ^= flip));
                match oracle.check(&image) {
                    Ok(last) if last >= oracle.acked => harmless += 1,
                    Ok(last) => {
                        assert!(last >= oracle.testified, "{last} < {}", oracle.testified);
                        tails += 1;
                    }
                    Err(
                        Error::Corrupt { .. } | Error::NewerFormat { .. } | Error::Foreign { .. },
                    ) => reported += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
    assert!(
        reported > 50 && harmless > 50,
        "{reported} reported, {harmless} harmless, {tails} tails"
    );
}
