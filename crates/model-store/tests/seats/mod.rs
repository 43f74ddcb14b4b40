//! A page is written by a checkpoint while a commit replaces it: nobody reads it
//! any more, so its frame is freed at once, and lives on with an unwritten page in
//! it, in a cache so small that pages are evicted all the time.
//!
//! A page that was just written used to be found a moment before it entered the
//! queue of pages to evict. Freed in that moment, its frame stood in the queue
//! while an unwritten page lived in it; evicting that lost it, and the next
//! checkpoint wrote a parent whose child was nowhere.

use super::common::{open, options};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Key, KeyKind, Options, Store, Tree};
use shuttle::thread;

/// Rows that are changed: a few pages.
const CHANGED: i64 = 8;
/// Rows that are only read: more pages than there are frames.
const READ: i64 = 60;
const ROUNDS: u8 = 12;

fn put_all(store: &Store, tree: &Tree, rows: i64) {
    let mut txn = store.txn();
    for key in 0..rows {
        txn.begin_statement(&[tree]).expect("begins");
        txn.put(tree, Key::Int(key), &[0; 900]).expect("a put");
        txn.commit().expect("commits");
    }
}

/// Reads rows that others do not touch, so that pages are loaded and evicted.
fn read(store: &Store, tree: &Tree) {
    let mut txn = store.txn();
    for key in (0..READ).step_by(4) {
        // Briefly, or the snapshot would keep what is replaced.
        txn.begin_read().expect("begins");
        let mut value = Vec::new();
        assert!(
            txn.get_into(tree, Key::Int(key), &mut value)
                .expect("reads")
        );
        assert_eq!(value, [0; 900]);
        txn.rollback();
    }
}

pub fn written_and_freed() {
    let disk = SimDisk::new(1);
    let small = Options {
        cache_bytes: 0,
        ..options()
    };
    let store = open(&disk, small.clone());
    let [changed, read_only] = [("changed", CHANGED), ("read", READ)].map(|(name, rows)| {
        let tree = store.create_family(name, KeyKind::Int).expect("a family");
        put_all(&store, &tree, rows);
        store.checkpoint().expect("a checkpoint");
        tree
    });
    let checkpoints = {
        let store = store.clone();
        thread::spawn(move || {
            for _ in 0..ROUNDS {
                store.checkpoint().expect("a checkpoint");
            }
        })
    };
    let writer = {
        let (store, tree) = (store.clone(), changed.clone());
        thread::spawn(move || {
            let mut txn = store.txn();
            for mark in 1..=ROUNDS {
                txn.begin_statement(&[&tree]).expect("begins");
                let value = [mark; 900];
                let key = i64::from(mark) * 4 % CHANGED;
                txn.put(&tree, Key::Int(key), &value).expect("a put");
                txn.commit().expect("commits");
            }
        })
    };
    for _ in 0..4 {
        read(&store, &read_only);
    }
    checkpoints.join().expect("no panic");
    writer.join().expect("no panic");
    store.checkpoint().expect("a checkpoint");
    drop((store, changed, read_only));
    let store = open(&disk, small);
    let problems = store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new());
}
