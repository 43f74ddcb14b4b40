//! Each planted bug is seen by the seed that `docs/testing.md` says. Only with
//! the `mutations` feature:
//! `cargo test -p fulgurite-sim --features mutations --test mutations`.
#![cfg(feature = "mutations")]

#[path = "several_files/life.rs"]
mod life;

use fulgurite_disk::mutation::{Mutation, plant};
use fulgurite_sim::proof::{Case, Tally};
use fulgurite_sim::seed;
use fulgurite_sim::{SimDisk, panics};
use fulgurite_store::Durability;
use std::panic::catch_unwind;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The table as the documentation has it: mutation and seed.
fn table() -> Vec<(String, u64)> {
    let page = include_str!("../../../docs/testing.md");
    let cells = |line: &str| -> Option<(String, u64)> {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let name = cells.next()?.to_owned();
        Some((name, cells.next()?.parse().ok()?))
    };
    page.lines().filter_map(cells).collect()
}

#[test]
fn every_planted_bug_is_seen_and_nothing_else() {
    panics::quiet();
    let table = table();
    for mutation in Mutation::ALL {
        let name = format!("{mutation:?}");
        let row = table.iter().find(|(listed, _)| *listed == name);
        let (_, number) = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        let case = Case::of(*number);
        let sound = seed::prove(&case, &mut Tally::default());
        assert!(sound.is_ok(), "without a bug: {sound:?}");
        plant(Some(mutation));
        let seen = seed::prove(&case, &mut Tally::default());
        plant(None);
        assert!(seen.is_err(), "{name} was not seen by seed {number}");
    }
    for mutation in Mutation::OVER_FILES {
        let sees = |at: &(u64, u64)| {
            plant(Some(mutation));
            let seen = catch_unwind(|| cut_and_kill(*at)).is_err();
            plant(None);
            seen
        };
        let mut cuts = (0..20).flat_map(|seed| (0..CALLS).map(move |call| (seed, call)));
        let seen = cuts.find(sees);
        let at = seen.unwrap_or_else(|| panic!("{mutation:?} was not seen"));
        println!("{mutation:?}: seed {}, call {}", at.0, at.1);
        cut_and_kill(at);
        see_together(mutation);
    }
}

/// Seeds of workloads over several stores that are tried.
const TOGETHER: u64 = 60;

/// A workload over several stores sees it, and is sound without it.
fn see_together(mutation: Mutation) {
    plant(Some(mutation));
    let sees = |case: &Case| seed::prove(case, &mut Tally::default()).is_err();
    let seen = (0..TOGETHER).map(Case::together).find(sees);
    plant(None);
    let case = seen.unwrap_or_else(|| panic!("{mutation:?} was not seen over several stores"));
    println!("{mutation:?}: seed {} over several stores", case.seed);
    let sound = seed::prove(&case, &mut Tally::default());
    assert!(sound.is_ok(), "without a bug: {sound:?}");
}

/// Calls of a life over several files, at most.
const CALLS: u64 = 200;

/// Ends such a life at a call, in either way.
fn cut_and_kill((seed, call): (u64, u64)) {
    for kills in [false, true] {
        let (steps, mut rng) = life::draw(seed, 8);
        let disk = SimDisk::new(seed);
        disk.stop_at(call);
        let acknowledged = life::live(&disk, &steps, Durability::Full);
        let left = match kills {
            false => disk.crash_image(call),
            true => disk.kill_image(),
        };
        let found = life::recover(left, &mut rng);
        life::check(&steps, acknowledged, &found, "several files");
    }
}
