//! Contexts that threads let go of while the last handles of their store go: each is
//! lent to one at a time, those that nobody has do not keep the store open, and one that
//! somebody has does.

use crate::common::Schedulers::All;
use crate::common::{explore, open, options};
use crate::{add, read};
use fulgurite_disk::Disk as _;
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Durability, Isolation, Key, KeyKind, Options, Store, Tree, Txn};
use shuttle::thread;
use std::path::Path;

const ROUNDS: i64 = 2;

fn durability(normal: bool) -> Options {
    Options {
        durability: match normal {
            true => Durability::Normal,
            false => Durability::Full,
        },
        ..options()
    }
}

/// Adds one to the thread's own value and to the shared one, each with a context of its
/// own.
fn add_to_both(store: &Store, tree: &Tree, thread: i64) {
    add(&mut store.txn(), tree, 1 + thread, 1).expect("commits");
    let added = store.transact(Isolation::Serializable, |txn| {
        let mut value = Vec::new();
        txn.get_into(tree, Key::Int(0), &mut value)?;
        let value = value.try_into().map_or(0, i64::from_le_bytes);
        txn.put(tree, Key::Int(0), &(value + 1).to_le_bytes())
    });
    added.expect("commits");
}

/// The last handle of this thread is a context.
fn end_with_a_context(store: Store, tree: &Tree, thread: i64) {
    let mut txn = store.txn();
    drop(store);
    add(&mut txn, tree, 1 + thread, 1).expect("commits");
    let mut other: Txn = txn.store().clone().txn();
    add(&mut other, tree, 0, 1).expect("commits");
    drop(txn);
    add(&mut other, tree, 0, 0).expect("commits");
}

fn handles_come_and_go() {
    let disk = SimDisk::new(1);
    let normal = crate::draw().is_multiple_of(2);
    let store = open(&disk, durability(normal));
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (store, tree) = (store.clone(), tree.clone());
            thread::spawn(move || {
                for _ in 1..ROUNDS {
                    add_to_both(&store, &tree, thread);
                }
                match thread {
                    0 => end_with_a_context(store, &tree, thread),
                    _ => add_to_both(&store, &tree, thread),
                }
            })
        })
        .collect();
    drop(store);
    for thread in threads {
        thread.join().expect("no panic");
    }
    for log in ["/m.db-wal0", "/m.db-wal1"] {
        assert!(!disk.exists(Path::new(log)).expect("looks"), "it is closed");
    }
    let store = open(&disk, durability(normal));
    let tree = store.family("t").expect("reads").expect("there");
    assert_eq!(read(&store, &tree, 0), Some(3 * ROUNDS));
    for thread in 0..3 {
        assert_eq!(read(&store, &tree, 1 + thread), Some(ROUNDS));
    }
}

#[test]
fn contexts_that_nobody_has_keep_nothing_open() {
    explore(60, All, handles_come_and_go);
}
