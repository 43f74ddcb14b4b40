//! Several connections of one database in transactions that overlap, on a disk whose calls
//! fail: statements of many rows and of one, in a cache smaller than the data, so that they
//! read, spill and sort while it happens.
//!
//! Whatever fails, the error says where. What a statement did is there or undone, and its
//! transaction goes on unless it says that it is over; what was refused is not there, what
//! was acknowledged is. Reading goes on, and so does writing unless it has ended. Then the
//! database is closed, its process ends or the power goes, and it is opened again.
//!
//! One thread does all of it, so a seed is one run:
//! `FULGURITE_FAILING_FIRST` and `FULGURITE_FAILING_ROUNDS` choose others.

mod life;
mod writer;

use fulgurite_sim::{Rng, SimDisk};
use life::{Life, schema};

fn asked(name: &str, or: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(or)
}

/// What the seeds came to.
#[derive(Debug, Default)]
pub struct Tally {
    commits: u64,
    /// Calls that failed.
    failed: u64,
    /// Statements that told of that.
    told: u64,
    /// Transactions that went on after one that failed.
    went_on: u64,
    /// Lives in which writing ended.
    ended: u64,
}

#[test]
fn what_fails_is_told_and_has_no_effect() {
    let first = asked("FULGURITE_FAILING_FIRST", 0);
    let rounds = asked("FULGURITE_FAILING_ROUNDS", 12);
    let mut tally = Tally::default();
    for seed in first..first + rounds {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut disk = SimDisk::new(rng.bits());
        schema(&disk);
        let mut states = Default::default();
        for _ in 0..3 {
            let life = Life::new(&disk, states, &mut rng, &mut tally);
            (disk, states) = life.run();
        }
    }
    println!("{tally:?}");
    assert!(tally.commits > 0 && tally.told > 0 && tally.went_on > 0);
}
