//! Lives of a store in which real threads crowd a small cache, on a disk that keeps a
//! journal: at its moments the power is cut, or only the process ends, and what comes
//! back may be such a life again, with other settings.
//!
//! Four writers commit as they like in trees that all share and in one that each makes
//! and drops: short statements, overlapping transactions from one row to hundreds,
//! dense and scattered, with savepoints and large values, so that they spill, graft,
//! wait for frames and become bulk while checkpoints run. In half of the lives a call
//! fails. Each writer has rows of its own and knows what every commit made of them;
//! each commit leaves its number in a row, its *stamp*. So a snapshot, and whatever a
//! power cut left, tells how far each writer had come, and must be what they had made of
//! it then: in `full` all that was acknowledged or shown to anybody, in `normal` all
//! that a checkpoint covered; nobody saw what is not there; the structure is sound.
//!
//! What the writers do, the settings and what a cut leaves follow from a seed; how the
//! threads meet is up to the machine. (The simulator has one thread, and the models of
//! threads have no time, and so no cache in which one waits.)

mod back;
mod history;
mod life;
mod slow;
mod view;
mod writer;

use back::Comeback;
use fulgurite_sim::{Rng, SimDisk, panics};
use life::Life;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What all seeds came to.
#[derive(Default)]
pub struct Tally {
    commits: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
    cuts: AtomicU64,
    kills: AtomicU64,
    faults: AtomicU64,
    poisoned: AtomicU64,
}

fn env(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn threads_in_a_crowd_lose_nothing() {
    panics::watch();
    let first = env("FULGURITE_CROWD_FIRST", 0);
    let rounds = env("FULGURITE_CROWD_ROUNDS", 4);
    let tally = Tally::default();
    for seed in first..first + rounds {
        let mut rng = Rng::new(seed);
        let options = life::options_of(&mut rng);
        println!("seed {seed}: {options:?}");
        let disk = SimDisk::new(rng.bits());
        let life = Life::first(&disk, options, &mut rng, &tally);
        Comeback::after(&life, &tally).everywhere(&mut rng, 0);
        assert_eq!(panics::of_the_background(), None);
    }
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    let Tally {
        commits,
        lost,
        refused,
        cuts,
        kills,
        faults,
        poisoned,
    } = &tally;
    println!(
        "{} commits, {} lost against another, {} refused; {} power cuts, {} ends of the process, \
         {} calls failed, {} lives in which writing ended",
        count(commits),
        count(lost),
        count(refused),
        count(cuts),
        count(kills),
        count(faults),
        count(poisoned),
    );
    assert!(count(commits) > 50 * rounds && count(cuts) + count(kills) > 10 * rounds);
}
