//! A bug that only an interleaving shows: undone again, the model sees it. Only
//! with the `mutations` feature:
//! `cargo test -p fulgurite-store-model --features mutations --test mutations`.
#![cfg(feature = "mutations")]

mod common;
mod seats;

use common::Schedulers::Fair;
use fulgurite_disk::mutation::{Mutation, plant};

#[test]
#[should_panic]
fn a_seat_that_is_taken_late_loses_a_page() {
    plant(Some(Mutation::SeatLate));
    common::explore(60, Fair, seats::written_and_freed);
}
