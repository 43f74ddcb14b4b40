//! The store on a disk that loses power: random workloads, the power cut at
//! every call of the short ones and at random calls of the long ones, again
//! during recovery, and again during what follows.
//!
//! After each cut the store opens, is in a state that the commits so far allow
//! (in `full` mode: every acknowledged commit is there, and of the one that was
//! under way all or nothing), its structure is sound, it can be written, closed
//! and opened again.
//!
//! `FULGURITE_SIM_FACTOR=20` runs twenty times as many workloads.

use super::life::Life;
use super::model::Oracle;
use super::{Trace, assert_no_background_panic, options, seeds, watch_background};
use fulgurite_sim::{Rng, SimDisk};
use fulgurite_store::{Durability, Options};

/// The settings that a seed stands for.
fn options_of(seed: u64, durability: Durability) -> Options {
    let mut rng = Rng::new(!seed);
    Options {
        cache_bytes: [512 << 10, 1 << 20, 4 << 20][rng.index(3)],
        page_size: [4096, 4096, 8192][rng.index(3)],
        durability,
        ..options()
    }
}

/// Runs a workload with the power cut at a call, then lives on: cut again while
/// recovering or soon after, at last to the end. Returns how many cuts there
/// were.
fn cut_at(seed: u64, call: u64, steps: usize, options: &Options) -> usize {
    let mut rng = Rng::new(seed ^ call << 32);
    let mut oracle = Oracle::default();
    let mut disk = SimDisk::new(seed);
    disk.stop_at(call);
    if Life::new(&disk, options, &mut oracle, seed).run(steps) && !disk.is_stopped() {
        // The background thread made fewer calls this time.
        disk.power_off();
    }
    let mut cuts = 1;
    for _ in 0..1 + rng.below(2) {
        disk = disk.crash_image(rng.bits());
        disk.stop_at(rng.below(30));
        Life::new(&disk, options, &mut oracle, rng.bits()).run(4);
        disk.power_off();
        cuts += 1;
    }
    disk = disk.crash_image(rng.bits());
    let last = Life::new(&disk, options, &mut oracle, rng.bits());
    assert!(last.run(3));
    // What was closed properly needs no sync of anybody's to be there.
    let last = Life::new(&disk, options, &mut oracle, rng.bits());
    assert!(last.run(0));
    assert_no_background_panic();
    cuts
}

fn calls_of(seed: u64, steps: usize, options: &Options) -> u64 {
    let _trace = Trace(format!("seed {seed}, {options:?}, no cut"));
    let disk = SimDisk::new(seed);
    assert!(Life::new(&disk, options, &mut Oracle::default(), seed).run(steps));
    disk.calls()
}

fn cut_everywhere(seed: u64, durability: Durability) -> usize {
    let options = options_of(seed, durability);
    let steps = 12;
    let calls = calls_of(seed, steps, &options);
    (0..calls)
        .map(|call| {
            let _trace = Trace(format!(
                "seed {seed}, {options:?}, power cut at call {call}"
            ));
            cut_at(seed, call, steps, &options)
        })
        .sum()
}

#[test]
fn nothing_acknowledged_is_lost_in_full_mode() {
    watch_background();
    let cuts: usize = seeds(0, 10)
        .map(|seed| cut_everywhere(seed, Durability::Full))
        .sum();
    println!("{cuts} power cuts");
    assert!(cuts >= 1_500, "{cuts} power cuts");
}

#[test]
fn normal_mode_keeps_a_prefix_from_the_last_checkpoint_on() {
    watch_background();
    let cuts: usize = seeds(100_000, 4)
        .map(|seed| cut_everywhere(seed, Durability::Normal))
        .sum();
    println!("{cuts} power cuts");
    assert!(cuts >= 400, "{cuts} power cuts");
}

#[test]
fn long_workloads_cut_at_random() {
    watch_background();
    let mut cuts = 0;
    for seed in seeds(200_000, 5) {
        let options = options_of(seed, Durability::Full);
        let mut rng = Rng::new(seed);
        let calls = calls_of(seed, 120, &options);
        for _ in 0..12 {
            let call = rng.below(calls);
            let _trace = Trace(format!(
                "seed {seed}, {options:?}, power cut at call {call}"
            ));
            cuts += cut_at(seed, call, 120, &options);
        }
    }
    println!("{cuts} power cuts");
    assert!(cuts >= 100, "{cuts} power cuts");
}
/// Transactions whose pages are written at commit, cut at random.
#[test]
fn bulk_transactions_are_whole_or_absent() {
    watch_background();
    let mut cuts = 0;
    for seed in seeds(300_000, 6) {
        let options = Options {
            cache_bytes: 2 << 20,
            ..options_of(seed, Durability::Full)
        };
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new(seed);
        let mut oracle = Oracle::default();
        let life = Life::new(&disk, &options, &mut oracle, seed);
        assert!(life.run_with(7, true));
        let calls = disk.calls();
        for _ in 0..20 {
            let call = rng.below(calls);
            let _trace = Trace(format!(
                "seed {seed}, {options:?}, power cut at call {call}"
            ));
            let mut oracle = Oracle::default();
            let mut disk = SimDisk::new(seed);
            disk.stop_at(call);
            Life::new(&disk, &options, &mut oracle, seed).run_with(7, true);
            for again in [true, false] {
                disk.power_off();
                cuts += 1;
                disk = disk.crash_image(rng.bits());
                if again {
                    disk.stop_at(rng.below(30));
                }
                Life::new(&disk, &options, &mut oracle, rng.bits()).run(2);
            }
            assert!(Life::new(&disk, &options, &mut oracle, 0).run(0));
        }
    }
    println!("{cuts} power cuts");
    assert_no_background_panic();
}
