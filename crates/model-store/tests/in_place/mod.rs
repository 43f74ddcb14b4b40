//! A writer whose commits change entries where they lie, while a reader's snapshots stay
//! for a while, another writer comes for one of the trees, and a checkpoint is made; in
//! `full` with a sync that fails at the end.
//!
//! Each commit writes its count to a tree that all write to and to one of others, in
//! turn. So each state is known, and a snapshot that shows another one, or later another
//! one than before, was written into.

use super::common::{open, options};
use super::{add, get, put};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store_model::{Durability, Isolation, KeyKind, Options, Result, Store, Tree, Txn};
use shuttle::rand::RngCore;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;

const COMMITS: i64 = 30;
/// Trees that are written to in turn, before the one that all commits write to.
const TURNS: usize = 3;
/// Of the second writer, under another key of the first tree.
const OTHERS: i64 = 3;
const OTHER: i64 = 1;

type Trees = [Tree; TURNS + 1];

/// Commits that were made in place, in all runs.
pub static IN_PLACE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn write(txn: &mut Txn, trees: &Trees, count: i64) -> Result<()> {
    let turn = &trees[count as usize % TURNS];
    match count % 4 {
        0 => txn.begin(Isolation::Serializable),
        _ => txn.begin_statement(&[turn, &trees[TURNS]]),
    }?;
    put(txn, turn, 0, count);
    put(txn, &trees[TURNS], 0, count);
    txn.commit()
}

/// What is in the trees after so many commits.
fn after(count: i64) -> [i64; TURNS + 1] {
    std::array::from_fn(|tree| match tree {
        TURNS => count,
        turn => (count - (count - turn as i64).rem_euclid(TURNS as i64)).max(0),
    })
}

/// Two looks at a snapshot; the count it shows.
fn look(txn: &mut Txn, trees: &Trees) -> i64 {
    let counts = |txn: &mut Txn| -> [i64; TURNS + 1] {
        std::array::from_fn(|at| get(txn, &trees[at], 0).unwrap_or(0))
    };
    let first = counts(txn);
    assert_eq!(first, after(first[TURNS]), "no state that ever was");
    for _ in 0..shuttle::rand::thread_rng().next_u64() % 64 {
        thread::yield_now();
    }
    assert_eq!(counts(txn), first, "a snapshot changed");
    first[TURNS]
}

/// A writer that is alone, so that it writes in place, and whose last sync fails: nobody
/// sees what it wrote.
fn fail_to_sync(disk: &SimDisk, store: &Store, trees: &Trees) {
    const MORE: i64 = 4;
    let mut txn = store.txn();
    for count in 1..=MORE {
        write(&mut txn, trees, COMMITS + count).expect("commits");
    }
    disk.fail(Fault {
        call: Some(Call::Sync),
        after: 0,
        for_good: true,
        error: FaultError::Io,
    });
    write(&mut txn, trees, COMMITS + MORE + 1).expect_err("it is not durable");
    txn.begin_read().expect("readers go on");
    assert_eq!(look(&mut txn, trees), COMMITS + MORE);
    txn.commit().expect("ends");
    assert!(write(&mut txn, trees, COMMITS + MORE + 1).is_err());
}

pub fn snapshots_beside_who_writes_in_place(durability: Durability) {
    let disk = SimDisk::new(1);
    let options = || Options {
        durability,
        checkpoint_bytes: 4 << 10,
        ..options()
    };
    let store = open(&disk, options());
    let family = |name| store.create_family(name, KeyKind::Int).expect("a family");
    let trees = ["0", "1", "2", "all"].map(family);
    let told = Arc::new(AtomicU64::new(0));
    let with = |work: fn(&Store, &Trees, &AtomicU64)| {
        let (store, trees, told) = (store.clone(), trees.clone(), Arc::clone(&told));
        thread::spawn(move || work(&store, &trees, &told))
    };
    let threads = [
        with(|store, trees, told| {
            let mut txn = store.txn();
            for count in 1..=COMMITS {
                write(&mut txn, trees, count).expect("commits");
                told.store(count as u64, SeqCst);
            }
        }),
        with(|store, trees, told| {
            let mut txn = store.txn();
            for _ in 0..4 {
                let least = told.load(SeqCst) as i64;
                txn.begin_read().expect("reads");
                let seen = look(&mut txn, trees);
                assert!(least <= seen, "{least} was told, {seen} is seen");
                txn.commit().expect("ends");
            }
        }),
        with(|store, trees, _| {
            let mut txn = store.txn();
            for _ in 0..OTHERS {
                add(&mut txn, &trees[0], OTHER, 1).expect("commits");
                thread::yield_now();
            }
        }),
        with(|store, _, _| store.checkpoint().expect("a checkpoint")),
    ];
    for thread in threads {
        thread.join().expect("no panic");
    }
    let commits = store.stats().commits_in_place;
    IN_PLACE.fetch_add(commits, std::sync::atomic::Ordering::Relaxed);
    let killed = disk.kill_image();
    if durability == Durability::Full {
        fail_to_sync(&disk, &store, &trees);
    }
    drop(store);
    let store = open(&killed, options());
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    let trees = ["0", "1", "2", "all"].map(|name| {
        let tree = store.family(name).expect("reads");
        tree.expect("is there")
    });
    assert_eq!(look(&mut txn, &trees), COMMITS);
    assert_eq!(get(&mut txn, &trees[0], OTHER), Some(OTHERS));
}
