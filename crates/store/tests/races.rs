//! Writers, checkpoints and eviction at the same time, in a cache that holds a
//! part of the data. Which interleavings occur is up to the machine; what must
//! hold does not depend on it.

mod common;

use common::{Rng, env};
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Key, KeyKind, Options, Store, Tree};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

const WRITERS: i64 = 2;
const ROWS: i64 = 8_000;

fn value(key: i64, round: u64) -> Vec<u8> {
    let mut rng = Rng::new(key as u64 ^ round << 32);
    let mut value = round.to_le_bytes().to_vec();
    value.extend((0..rng.below(90)).map(|_| rng.next() as u8));
    value
}

/// Overwrites random rows of its own, one a commit; returns what is there now.
fn overwrite(store: &Store, tree: &Tree, writer: i64, commits: u64) -> Vec<u64> {
    let mut rounds = vec![0; ROWS as usize];
    let mut rng = Rng::new(writer as u64);
    let mut txn = store.txn();
    for round in 1..=commits {
        let row = rng.below(ROWS as u64) as i64;
        let key = row * WRITERS + writer;
        txn.begin_statement(&[tree]).expect("begins");
        txn.put(tree, Key::Int(key), &value(key, round))
            .expect("puts");
        txn.commit().expect("commits");
        rounds[row as usize] = round;
    }
    rounds
}

/// A page that was just written used to enter the eviction queue a moment after
/// it could be found. If it was replaced and freed in that moment, its frame stood
/// in the queue while an unwritten page lived in it; evicting that page lost it,
/// and the next checkpoint wrote a parent whose child was nowhere.
#[test]
fn pages_that_die_while_they_are_written_keep_no_seat() {
    let disk = Arc::new(MemoryDisk::new());
    let options = Options {
        cache_bytes: 2 << 20,
        ..Options::default()
    };
    let store = Store::open_on(disk.clone(), "races.db", options.clone()).expect("opens");
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in 0..ROWS * WRITERS {
        txn.put(&tree, Key::Int(key), &value(key, 0)).expect("puts");
    }
    txn.commit().expect("commits");

    let commits = env("FULGURITE_RACE_COMMITS", 15_000);
    let done = AtomicBool::new(false);
    let rounds: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| {
            while !done.load(Acquire) {
                store.checkpoint().expect("a checkpoint");
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, tree) = (&store, &tree);
                scope.spawn(move || overwrite(store, tree, writer, commits))
            })
            .collect();
        let rounds = writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer"))
            .collect();
        done.store(true, Release);
        checkpoints.join().expect("the checkpoints");
        rounds
    });
    drop(txn);
    drop((tree, store));

    let store = Store::open_on(disk, "races.db", options).expect("opens again");
    let tree = store.family("rows").expect("reads").expect("is there");
    let problems = store.integrity_check().expect("checks");
    assert_eq!(problems, Vec::<String>::new());
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    for (writer, rounds) in (0..).zip(&rounds) {
        for (row, round) in (0..).zip(rounds) {
            let key = row * WRITERS + writer;
            let mut found = Vec::new();
            let there = txn.get_into(&tree, Key::Int(key), &mut found);
            assert!(there.expect("reads"), "key {key} is gone");
            assert_eq!(found, value(key, *round), "key {key}");
        }
    }
}
