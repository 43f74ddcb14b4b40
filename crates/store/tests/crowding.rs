//! When unwritten pages call for a checkpoint. A table that changes all over and fits
//! into half of the cache was written again and again, one checkpoint after the other,
//! which took a processor for nothing.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Key, KeyKind, Options, Store, Tree, Txn};
use std::sync::Arc;

const VALUE: [u8; 500] = [7; 500];

/// A store of 2,048 frames or a little less, with a table that fills `leaves` of them
/// and is in memory alone.
fn table(leaves: i64) -> (Store, Tree, i64) {
    let options = Options {
        cache_bytes: 8 << 20,
        ..Options::default()
    };
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, "crowding.db", options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let rows = leaves * 7;
    store.checkpoint().expect("a checkpoint");
    change_all(&mut store.txn(), &tree, rows, 100);
    (store, tree, rows)
}

/// Writes every row, so many a transaction.
fn change_all(txn: &mut Txn, tree: &Tree, rows: i64, at_once: usize) {
    for first in (0..rows).step_by(at_once) {
        txn.begin_statement(&[tree]).expect("begins");
        for key in first..rows.min(first + at_once as i64) {
            txn.put(tree, Key::Int(key), &VALUE).expect("a put");
        }
        txn.commit().expect("commits");
    }
}

#[test]
fn a_table_of_less_than_half_of_the_cache_is_not_written_for_its_pages_sake() {
    let (store, tree, rows) = table(700);
    let before = store.stats();
    assert!(before.cache.unwritten >= 700, "{before:?}");
    let mut txn = store.txn();
    for _ in 0..4 {
        change_all(&mut txn, &tree, rows, 7);
    }
    let after = store.stats();
    assert_eq!(after.checkpoint, before.checkpoint, "{after:?}");
    assert_eq!(after.writes.pages, before.writes.pages, "{after:?}");
}

#[test]
fn what_a_snapshot_needs_comes_on_top_of_that() {
    let (store, tree, rows) = table(600);
    let before = store.stats();
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    let mut txn = store.txn();
    for _ in 0..2 {
        change_all(&mut txn, &tree, rows, 7);
    }
    let held = store.stats();
    assert!(held.cache.unwritten >= 1200, "{held:?}");
    assert_eq!(held.checkpoint, before.checkpoint, "{held:?}");
    let mut value = Vec::new();
    assert!(
        reader
            .get_into(&tree, Key::Int(0), &mut value)
            .expect("reads")
    );
    reader.rollback();
}

#[test]
fn a_table_of_more_than_half_of_the_cache_is_written() {
    let (store, tree, rows) = table(1000);
    let first = store.stats().checkpoint;
    let mut txn = store.txn();
    let mut turns = 0;
    while store.stats().checkpoint == first {
        turns += 1;
        assert!(turns < 1000, "{:?}", store.stats());
        change_all(&mut txn, &tree, rows, 7);
    }
}
