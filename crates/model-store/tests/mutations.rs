//! Bugs that only an interleaving shows: planted, the models see them. Only
//! with the `mutations` feature:
//! `cargo test -p fulgurite-store-model --features mutations --test mutations`.
#![cfg(feature = "mutations")]

mod ahead;
mod common;
mod elsewhere;
mod seats;

use common::Schedulers::{All, Fair};
use fulgurite_disk::mutation::{Mutation, plant};
use std::panic;

/// One after the other: a bug is planted in the whole process.
#[test]
fn planted_bugs_are_seen() {
    let is_seen = |bug, explore: fn()| {
        plant(Some(bug));
        assert!(panic::catch_unwind(explore).is_err(), "{bug:?} is not seen");
    };
    is_seen(Mutation::SeatLate, || {
        common::explore(60, Fair, seats::written_and_freed);
    });
    is_seen(Mutation::TellUnconfirmed, || {
        common::explore(60, All, ahead::told_of_what_is_there);
    });
    is_seen(Mutation::PassReaders, || {
        common::explore(60, All, elsewhere::readers_and_a_change);
    });
}
