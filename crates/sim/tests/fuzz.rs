//! A slice of what `fulgurite-sim fuzz` does for as long as wanted. Inputs that
//! once failed are listed here for ever, by target and number.

use fulgurite_sim::fuzz::{Bench, Target};
use fulgurite_sim::panics;
use fulgurite_sim::proof::Tally;

/// How many inputs a target.
const SLICE: [(Target, u64); 5] = [
    (Target::Database, 120),
    (Target::Log, 30),
    (Target::Sql, 150),
    (Target::Codes, 5_000),
    (Target::Forged, 60),
];

/// A valid record that wrote a key of the wrong kind was called a misuse of the
/// store, not damage.
const FAILED_ONCE: [(Target, u64); 1] = [(Target::Log, 2531)];

#[test]
fn made_up_inputs_do_no_harm() {
    panics::watch();
    let bench = Bench::default();
    let mut tally = Tally::default();
    for (target, count) in SLICE {
        for number in 0..count {
            if let Err(failure) = bench.run(target, number, &mut tally) {
                panic!("{failure}");
            }
        }
    }
    for (target, number) in FAILED_ONCE {
        if let Err(failure) = bench.run(target, number, &mut tally) {
            panic!("{failure}");
        }
    }
    println!("{} executions", tally.executions);
}
