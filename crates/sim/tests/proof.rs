//! The power cut at every moment of a few hundred workloads, key-value, SQL and over
//! several stores, and of the lives that come after: what the soak does, a slice of it.
//!
//! `FULGURITE_SIM_FACTOR=20` runs twenty times as many seeds. A failing one is
//! run again by `cargo run --release -p fulgurite-sim -- replay SEED --shrink`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fulgurite_sim::proof::{self, Case, Kind, Tally};
use fulgurite_sim::{Journal, damage, panics, seed};

// Stores are opened and closed by the thousand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Workloads that are run once more, among threads that do nothing but run.
const SEEDS_TWICE: u64 = 60;

fn factor() -> u64 {
    std::env::var("FULGURITE_SIM_FACTOR")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}

/// Proves `count` seeds of a kind, and says how many power cuts there were.
fn prove(kind: Kind, first: u64, count: u64) -> Tally {
    panics::watch();
    let mut tally = Tally::default();
    let seeds = (first..).flat_map(seed::cases);
    let seeds = seeds.filter(|case| case.kind == kind);
    for case in seeds.take((count * factor()) as usize) {
        if let Err(failure) = seed::prove(&case, &mut tally) {
            let together = if kind == Kind::Together {
                "--together "
            } else {
                ""
            };
            panic!("{failure}\nreplay {} {together}--shrink", case.seed);
        }
    }
    println!("{tally:?}");
    tally
}

#[test]
fn key_value_workloads_lose_nothing() {
    let tally = prove(Kind::KeyValue, 0, 80);
    assert!(tally.cuts >= 10_500 && tally.again >= 3_000, "{tally:?}");
}

#[test]
fn sql_workloads_lose_nothing() {
    let tally = prove(Kind::Sql, 0, 80);
    assert!(tally.cuts >= 9_500 && tally.again >= 3_000, "{tally:?}");
}

/// Families come and go in transactions over several stores, of which each has all or
/// nothing, in whatever order they are opened again.
#[test]
fn workloads_over_several_stores_lose_nothing() {
    let tally = prove(Kind::Together, 0, 20);
    assert!(tally.cuts >= 4_000 && tally.again >= 1_500, "{tally:?}");
}

/// Without this a seed would say nothing: to the last byte a seed does the same
/// each time, whatever else the machine is busy with.
#[test]
fn a_seed_is_one_run() {
    panics::watch();
    let cases: Vec<Case> = (0..SEEDS_TWICE * factor()).flat_map(seed::cases).collect();
    let quiet: Vec<Journal> = cases.iter().map(run).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _ended = Ended(&done);
        for (case, quiet) in cases.iter().zip(&quiet) {
            assert_eq!(quiet.difference(&run(case)), None, "{case:?}");
        }
    });
}

/// Ends the other threads, also where the test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn run(case: &Case) -> Journal {
    proof::journal(case).expect("nothing fails")
}

/// The newest flush of the log of this seed is written over the two before it. What is
/// left does not say that there was more, and the oracle, which lets no more than the
/// last flush go, took it for a wrong answer.
#[test]
fn a_flush_that_goes_over_those_before_takes_them_along() {
    let mut tally = Tally::default();
    let lost = damage::lying_writes(8_100_352, 7, &mut damage::Counts::default(), &mut tally);
    lost.expect("an older state, or a report");
    assert!(tally.damages > 0);
}

/// A step does the same whichever others are left out, or shrinking would be
/// looking for something else.
#[test]
fn a_seed_can_be_shrunk() {
    let case = Case::of(5);
    let failure = proof::Failure {
        at: String::new(),
        message: "nothing".to_owned(),
    };
    // It does not fail, so nothing can be left out.
    let (same, why) = seed::shrink(
        &Case {
            steps: vec![0, 1],
            ..case
        },
        failure,
    );
    assert_eq!(same.steps, [0, 1]);
    assert_eq!(why.message, "nothing");
}
