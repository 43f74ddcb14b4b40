//! A close that cannot do all it should: nobody hears of it.

use std::path::Path;

use super::{PATH, open, options};
use fulgurite_sim::proof::{Case, Tally};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk, faults};
use fulgurite_store::{Durability, Key, KeyKind, Options};

/// The file has no room for the last checkpoint. In `normal` a commit may be lost until
/// the next sync, and closing is one: the log's, where that is all there can be.
#[test]
fn a_full_disk_costs_a_closed_database_nothing() {
    let options = Options {
        durability: Durability::Normal,
        ..options()
    };
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let store = open(&disk, &options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        disk.fail_under(
            Path::new(PATH),
            Fault {
                call: Some(Call::Write),
                after: 0,
                for_good: true,
                error: FaultError::NoSpace,
            },
        );
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(1), b"one").expect("a put");
        txn.commit().expect("commits");
        drop((txn, tree, store));
        assert!(disk.faults_met() > 0, "the close was to fail");

        let disk = disk.crash_image(seed);
        let store = open(&disk, &options).expect("opens");
        let tree = store.family("t").expect("reads").expect("is there");
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        assert_eq!(txn.count(&tree).expect("reads"), 1, "seed {seed}");
    }
}

/// A close all of whose calls fail, the sync too, after a commit that may be lost: the
/// simulator's oracle had taken it for done, and missed a row after the power cut.
#[test]
fn a_close_that_failed_covers_nothing() {
    let fault = Fault {
        call: None,
        after: 150,
        for_good: true,
        error: FaultError::NoSpace,
    };
    let case = Case::of(45_000_330);
    let outcome = faults::prove(&case, fault, &mut Tally::default()).expect("nothing is lost");
    assert!(outcome.errors > 0, "{outcome:?}");
}
