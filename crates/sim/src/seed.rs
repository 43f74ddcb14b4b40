//! All that one seed of the soak stands for, and the smallest part of it that
//! still fails.

use crate::proof::{self, Case, Depth, Failure, Kind, Tally};
use crate::{Rng, damage, faults};

/// Faulted runs a seed.
const FAULTED_RUNS: u64 = 3;

/// Every how many seeds there is a case over several stores, too.
const TOGETHER_EVERY: u64 = 4;

/// All cases of a seed.
pub fn cases(seed: u64) -> impl Iterator<Item = Case> {
    let together = seed.is_multiple_of(TOGETHER_EVERY);
    [Case::of(seed)]
        .into_iter()
        .chain(together.then(|| Case::together(seed)))
}

/// Proves a case: the power cut at every moment, then a few runs with calls that
/// fail.
///
/// # Errors
/// What was wrong.
pub fn prove(case: &Case, tally: &mut Tally) -> Result<(), Failure> {
    proof::prove(case, Depth::USUAL, tally)?;
    let mut rng = Rng::new(case.seed ^ 0xfa17);
    for _ in 0..FAULTED_RUNS {
        let calls = 12 + 8 * case.steps.len() as u64;
        let fault = faults::fault_of(&mut rng, calls);
        faults::prove(case, fault, tally)?;
    }
    if case.kind != Kind::Together && case.seed.is_multiple_of(64) {
        rot(case.seed, tally)?;
    }
    Ok(())
}

/// Damages a database of its own here and there.
///
/// # Errors
/// What was wrong.
pub fn rot(seed: u64, tally: &mut Tally) -> Result<(), Failure> {
    let counts = &mut damage::Counts::default();
    for sample in [
        damage::small(seed, false),
        damage::families(seed, seed.is_multiple_of(128)),
    ] {
        for file in sample.files() {
            sample.flip(&file, 1_009, counts, tally)?;
        }
    }
    damage::lying_writes(seed, 7, counts, tally)
}

/// Leaves out steps of a failing case as long as it goes on failing. Returns the
/// smallest one found, and how it fails.
pub fn shrink(case: &Case, failure: Failure) -> (Case, Failure) {
    let (mut best, mut why) = (case.clone(), failure);
    let mut size = best.steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut smaller = best.clone();
            smaller.steps.drain(at..(at + size).min(best.steps.len()));
            match prove(&smaller, &mut Tally::default()) {
                Err(failure) => (best, why) = (smaller, failure),
                Ok(()) => at += size,
            }
        }
        size /= 2;
    }
    (best, why)
}
