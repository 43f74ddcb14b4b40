//! A write that turns out to be none leaves the pages alone: an insert of a key that is
//! there, a deletion of one that is not. Each made the way to its leaf its own first, so
//! that a commit of one entry published, and the next checkpoint wrote, a copy of every page
//! that was looked at; and what had been read for that from disk was read again by the next.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Isolation, Key, KeyKind, Options, Store, Tree, Txn};
use std::sync::Arc;

const ROWS: i64 = 4_000;

fn open(disk: &Arc<MemoryDisk>) -> (Store, Tree) {
    let store = Store::open_on(Arc::clone(disk) as _, "a.db", Options::default()).expect("opens");
    let tree = match store.family("t").expect("the names") {
        Some(tree) => tree,
        None => store.create_family("t", KeyKind::Int).expect("a family"),
    };
    (store, tree)
}

/// Every second integer is a key.
fn filled(disk: &Arc<MemoryDisk>) -> (Store, Tree) {
    let (store, tree) = open(disk);
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    for row in 0..ROWS {
        let new = txn.insert(&tree, Key::Int(2 * row), &[7; 200]);
        assert!(new.expect("inserts"));
    }
    txn.commit().expect("commits");
    drop(txn);
    store.checkpoint().expect("a checkpoint");
    (store, tree)
}

/// What would be a write, of all rows.
fn writes_nothing(txn: &mut Txn, tree: &Tree) {
    for row in 0..ROWS {
        let new = txn.insert(tree, Key::Int(2 * row), &[8; 200]);
        assert!(!new.expect("looks"));
        let was = txn.delete(tree, Key::Int(2 * row + 1));
        assert!(!was.expect("looks"));
    }
}

#[test]
fn only_the_way_to_what_is_written_is_published() {
    let disk = Arc::new(MemoryDisk::new());
    let (store, tree) = filled(&disk);
    let unwritten = || store.stats().cache.unwritten;
    assert_eq!(unwritten(), 0);
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    writes_nothing(&mut txn, &tree);
    assert_eq!(unwritten(), 0);
    txn.insert(&tree, Key::Int(-1), &[9; 200]).expect("inserts");
    writes_nothing(&mut txn, &tree);
    txn.commit().expect("commits");
    assert!(unwritten() <= 4, "{}", unwritten());
    drop(txn);
}

#[test]
fn what_is_read_for_it_is_read_once() {
    let disk = Arc::new(MemoryDisk::new());
    drop(filled(&disk));
    let (store, tree) = open(&disk);
    let mut loads = [0; 2];
    for after in &mut loads {
        let mut txn = store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        writes_nothing(&mut txn, &tree);
        txn.commit().expect("commits");
        *after = store.stats().cache.loads;
    }
    assert!(loads[0] > 50);
    assert_eq!(loads[0], loads[1]);
}
