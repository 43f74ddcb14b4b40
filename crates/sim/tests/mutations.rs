//! Each planted bug is seen by the seed that `docs/testing.md` says. Only with
//! the `mutations` feature:
//! `cargo test -p fulgurite-sim --features mutations --test mutations`.
#![cfg(feature = "mutations")]

use fulgurite_disk::mutation::{Mutation, plant};
use fulgurite_sim::panics;
use fulgurite_sim::proof::{Case, Tally};
use fulgurite_sim::seed;

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
}
