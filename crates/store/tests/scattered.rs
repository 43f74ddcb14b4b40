//! One transaction that changes a table of many times its cache all over, so that it
//! writes pages out and edits them again, over and over.

mod common;

use common::{Rng, env};
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Cursor, Durability, Isolation, Key, KeyKind, Options, Savepoint, Seek};
use fulgurite_store::{Store, Tree, Txn};
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<i64, Vec<u8>>;

fn open() -> Store {
    let options = Options {
        cache_bytes: 512 << 10,
        durability: Durability::Off,
        ..Options::default()
    };
    Store::open_on(Arc::new(MemoryDisk::new()), "scattered.db", options).expect("opens")
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let byte = rng.below(256) as u8;
    (0..100 + rng.below(200))
        .map(|at| byte ^ at as u8)
        .collect()
}

fn contents(mut cursor: Cursor) -> Model {
    let mut found = Model::new();
    let mut more = cursor.seek(Seek::First).expect("reads");
    while more {
        let key = cursor.key_int();
        found.insert(key, cursor.value().expect("reads").to_vec());
        more = cursor.next().expect("reads");
    }
    found
}

fn read(store: &Store, tree: &Tree) -> Model {
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    contents(txn.cursor(tree).expect("a cursor"))
}

fn check(store: &Store, tree: &Tree, model: &Model, seed: u64) {
    assert!(read(store, tree) == *model, "seed {seed}");
    let problems = store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new(), "seed {seed}");
}

fn change(txn: &mut Txn, tree: &Tree, model: &mut Model, rng: &mut Rng, keys: i64) {
    let key = rng.below(keys as u64) as i64;
    if rng.below(8) == 0 {
        let was_there = txn.delete(tree, Key::Int(key)).expect("deletes");
        assert_eq!(was_there, model.remove(&key).is_some());
    } else {
        let value = value(rng);
        txn.put(tree, Key::Int(key), &value).expect("puts");
        model.insert(key, value);
    }
}

/// Every page that was written out and then edited again kept its place in the file until
/// the end, and its entries in the transaction's lists: a table of 6 MiB took a gigabyte.
#[test]
fn takes_space_in_the_size_of_the_table() {
    take_space(None);
}

/// The same while a cursor is open, as when a statement reads the index that it changes:
/// what is younger than it nobody sees either.
#[test]
fn takes_no_more_space_beside_a_cursor() {
    take_space(Some(3_000));
}

/// Changes a table all over, with a cursor opened after so many changes.
fn take_space(watch_after: Option<usize>) {
    let store = open();
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let (mut rng, mut model) = (Rng::new(1), Model::new());
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    let mut watching = None;
    for done in 0..40_000 {
        if watch_after == Some(done) {
            let cursor = txn.cursor(&tree).expect("a cursor");
            watching = Some((cursor, model.clone()));
        }
        change(&mut txn, &tree, &mut model, &mut rng, 10_000);
    }
    let written = store.stats().writes.pages;
    assert!(
        written > 20_000,
        "it wrote pages again and again: {written}"
    );
    if let Some((cursor, then)) = watching {
        assert!(contents(cursor) == then);
    }
    txn.commit().expect("commits");
    let bytes: usize = model.values().map(Vec::len).sum();
    let taken = store.stats().file_bytes;
    assert!(taken < 5 * bytes as u64, "{taken} bytes for {bytes}");
    check(&store, &tree, &model, 1);
}

/// A savepoint every so many changes, as statements of several rows take them, kept all
/// that they changed until the end: 400,000 rows with an index took three times as long as
/// they should, and memory and file grew with the number of statements.
#[test]
fn takes_no_more_space_for_savepoints_that_are_let_go_of() {
    for (changes, outer) in [(20, false), (20, true), (1_000, false), (1_000, true)] {
        let store = open();
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let (mut rng, mut model) = (Rng::new(2), Model::new());
        let mut txn = store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        let outermost = outer.then(|| txn.savepoint().expect("a savepoint"));
        for _ in 0..80_000 / changes {
            let place = txn.savepoint().expect("a savepoint");
            let before = (rng.below(16) == 0).then(|| model.clone());
            for _ in 0..changes {
                change(&mut txn, &tree, &mut model, &mut rng, 10_000);
            }
            if let Some(before) = before {
                txn.rollback_to(&place).expect("goes back");
                model = before;
            }
            txn.release(&place).expect("lets go");
        }
        if let Some(outermost) = outermost {
            txn.release(&outermost).expect("lets go");
        }
        txn.commit().expect("commits");
        let bytes: usize = model.values().map(Vec::len).sum();
        let taken = store.stats().file_bytes;
        assert!(taken < 5 * bytes as u64, "{taken} bytes for {bytes}");
        check(&store, &tree, &model, 2);
    }
}

/// Savepoints and cursors may go back to what was edited since.
#[test]
fn savepoints_and_cursors_keep_what_they_saw() {
    for seed in 0..env("FULGURITE_SCATTERED_SEEDS", 2) {
        let store = open();
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let (mut rng, mut committed) = (Rng::new(seed), Model::new());
        for _ in 0..3 {
            let mut model = committed.clone();
            let mut savepoints: Vec<(Savepoint, Model)> = Vec::new();
            let mut cursors: Vec<(Cursor, Model)> = Vec::new();
            let mut txn = store.txn();
            txn.begin(Isolation::Snapshot).expect("begins");
            for _ in 0..20_000 {
                match rng.below(4_000) {
                    0..=2 => {
                        let savepoint = txn.savepoint().expect("a savepoint");
                        savepoints.push((savepoint, model.clone()));
                    }
                    3 if !savepoints.is_empty() => {
                        savepoints.truncate(rng.below(savepoints.len() as u64) as usize + 1);
                        let (savepoint, then) = savepoints.last().expect("one");
                        txn.rollback_to(savepoint).expect("goes back");
                        model.clone_from(then);
                    }
                    4..=6 if !savepoints.is_empty() => {
                        let to = rng.below(savepoints.len() as u64) as usize;
                        txn.release(&savepoints[to].0).expect("lets go");
                        savepoints.truncate(to);
                    }
                    7 => cursors.push((txn.cursor(&tree).expect("a cursor"), model.clone())),
                    8 | 9 if !cursors.is_empty() => {
                        let (cursor, then) =
                            cursors.swap_remove(rng.below(cursors.len() as u64) as usize);
                        assert!(contents(cursor) == then, "seed {seed}");
                    }
                    _ => change(&mut txn, &tree, &mut model, &mut rng, 4_000),
                }
            }
            for (cursor, then) in cursors {
                assert!(contents(cursor) == then, "seed {seed}");
            }
            if rng.below(2) == 0 {
                txn.commit().expect("commits");
                committed = model;
            } else {
                txn.rollback();
            }
            check(&store, &tree, &committed, seed);
        }
        store.checkpoint().expect("a checkpoint");
        check(&store, &tree, &committed, seed);
    }
}
