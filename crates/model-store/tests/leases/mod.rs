//! Statements of two writers follow one another and are committed under leases, while
//! a reader begins snapshots, an optimistic transaction comes between, checkpoints
//! switch the log, and the process or the power ends.
//!
//! Each writer tells how far it is once a commit has returned, and writes down how far
//! it knows the other to be. So whoever sees one writer's commit must see what that
//! writer knew of the other: a reader, the next process, and what a power cut leaves.
//! A reader and the next process see all that was told before, too.

use super::common::{open, options};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Durability, ErrorKind, Isolation, Key, KeyKind};
use fulgurite_store_model::{Options, Store, Tree, Txn};
use shuttle::rand::RngCore;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;

const ROUNDS: u64 = 10;
/// The rows that are added to by all, under one key.
const COMMON: i64 = 100;

fn draw() -> u64 {
    shuttle::rand::thread_rng().next_u64()
}

/// How far a writer is, and how far it knew the other to be.
type State = (u64, u64);

fn get(txn: &mut Txn, tree: &Tree, key: i64) -> State {
    let mut value = Vec::new();
    txn.get_into(tree, Key::Int(key), &mut value)
        .expect("reads");
    let word = |at: usize| {
        let bytes = value
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    (word(0), word(8))
}

fn put(txn: &mut Txn, tree: &Tree, key: i64, (count, known): State) {
    let value = [count.to_le_bytes(), known.to_le_bytes()].concat();
    txn.put(tree, Key::Int(key), &value).expect("writes");
}

/// Both writers' states and the common count, of one moment.
fn states(txn: &mut Txn, trees: &[Tree; 3]) -> ([State; 2], u64) {
    let own = [0, 1].map(|writer| get(txn, &trees[writer], 0));
    (own, get(txn, &trees[2], COMMON).0)
}

fn check_causes(own: [State; 2], of_what: &str) {
    for (writer, (_, known)) in own.into_iter().enumerate() {
        let other = own[1 - writer].0;
        assert!(
            known <= other,
            "{of_what}: writer {writer} knew {known} of {other}"
        );
    }
}

struct World {
    store: Store,
    trees: [Tree; 3],
    told: [AtomicU64; 2],
}

impl World {
    fn told(&self) -> [u64; 2] {
        [0, 1].map(|writer: usize| self.told[writer].load(SeqCst))
    }

    /// A writer's statements: on its own tree, now and then on the one that all share.
    fn write(&self, writer: usize) -> u64 {
        let mut txn = self.store.txn();
        let mut added = 0;
        for count in 1..=ROUNDS {
            let known = self.told[1 - writer].load(SeqCst);
            let own = &self.trees[writer];
            if draw().is_multiple_of(6) {
                txn.begin_statement(&[own, &self.trees[2]]).expect("begins");
                let common = get(&mut txn, &self.trees[2], COMMON).0;
                put(&mut txn, &self.trees[2], COMMON, (common + 1, 0));
                added += 1;
            } else {
                txn.begin_statement(&[own]).expect("begins");
            }
            assert_eq!(get(&mut txn, own, 0).0, count - 1, "a lost commit");
            put(&mut txn, own, 0, (count, known));
            put(&mut txn, own, count as i64, (count, known));
            txn.commit().expect("commits");
            self.told[writer].store(count, SeqCst);
        }
        added
    }

    fn read(&self) {
        let told = self.told();
        let mut txn = self.store.txn();
        txn.begin_read().expect("reads");
        let seen = states(&mut txn, &self.trees);
        for (writer, told) in told.into_iter().enumerate() {
            let at = seen.0[writer].0;
            assert!(told <= at, "writer {writer} told of {told}, {at} is seen");
        }
        check_causes(seen.0, "a snapshot");
        thread::yield_now();
        assert_eq!(states(&mut txn, &self.trees), seen, "a snapshot changed");
    }

    /// Optimistic transactions that read both writers and add to what all share.
    fn overlap(&self) -> u64 {
        let mut txn = self.store.txn();
        let mut added = 0;
        for _ in 0..2 {
            txn.begin(Isolation::Serializable).expect("begins");
            let (own, common) = states(&mut txn, &self.trees);
            check_causes(own, "a transaction");
            put(&mut txn, &self.trees[2], COMMON, (common + 1, 0));
            match txn.commit() {
                Ok(()) => added += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        added
    }
}

/// Opens what is left of the database and says what is there.
fn left(disk: &SimDisk) -> Option<([State; 2], u64)> {
    let store = open(disk, in_normal());
    let tree = |name| store.family(name).expect("reads");
    let trees = [tree("one")?, tree("two")?, tree("common")?];
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    let states = states(&mut txn, &trees);
    drop(txn);
    let problems = store.integrity_check().expect("a check");
    assert!(problems.is_empty(), "{problems:?}");
    Some(states)
}

fn in_normal() -> Options {
    Options {
        durability: Durability::Normal,
        checkpoint_bytes: 4 << 10,
        ..options()
    }
}

pub fn statements_and_all_else() {
    let disk = SimDisk::new(draw());
    let store = open(&disk, in_normal());
    let family = |name| store.create_family(name, KeyKind::Int).expect("a family");
    let world = Arc::new(World {
        trees: [family("one"), family("two"), family("common")],
        store,
        told: [AtomicU64::new(0), AtomicU64::new(0)],
    });
    let with = |work: fn(&World) -> u64| {
        let world = Arc::clone(&world);
        thread::spawn(move || work(&world))
    };
    let adding = [
        with(|world| world.write(0)),
        with(|world| world.write(1)),
        with(World::overlap),
    ];
    let beside = [
        with(|world| {
            (0..2).for_each(|_| world.read());
            0
        }),
        with(|world| {
            world.store.checkpoint().expect("a checkpoint");
            0
        }),
    ];
    for _ in 0..draw() % 40 {
        thread::yield_now();
    }
    let told = world.told();
    let (killed, cut) = (disk.kill_image(), disk.crash_image(draw()));
    for thread in beside {
        thread.join().expect("no panic");
    }
    let added: u64 = adding
        .map(|thread| thread.join().expect("no panic"))
        .into_iter()
        .sum();
    world.read();
    let mut txn = world.store.txn();
    txn.begin_read().expect("reads");
    let (own, common) = states(&mut txn, &world.trees);
    assert_eq!((own.map(|state| state.0), common), ([ROUNDS; 2], added));
    drop(txn);
    let log = world.store.stats().log.expect("a log");
    assert!(log.leases > 0, "leases are what this is about: {log:?}");
    let ended = disk.kill_image();
    drop(world);
    assert_eq!(left(&ended).expect("all of it").0, own, "after the end");
    let (own, _) = left(&killed).expect("all of it");
    check_causes(own, "the next process");
    for (writer, told) in told.into_iter().enumerate() {
        assert!(told <= own[writer].0, "the next process lost what was told");
    }
    if let Some((own, _)) = left(&cut) {
        check_causes(own, "after a power cut");
    }
}

/// A writer whose statements replace one row, under a lease whenever it can, and a
/// reader that begins beside it: what a commit replaces is freed at once unless a
/// snapshot needs it, so a snapshot that begins where a lease does must be heard of.
pub fn a_reader_beside_one_writer() {
    const STATEMENTS: u64 = 40;
    let disk = SimDisk::new(1);
    let store = open(&disk, in_normal());
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let writer = {
        let (store, tree) = (store.clone(), tree.clone());
        thread::spawn(move || {
            let mut txn = store.txn();
            for count in 1..=STATEMENTS {
                txn.begin_statement(&[&tree]).expect("begins");
                put(&mut txn, &tree, 0, (count, count));
                txn.commit().expect("commits");
            }
            // Its lease is open until somebody asks what it holds.
            txn
        })
    };
    let mut txn = store.txn();
    for _ in 0..STATEMENTS {
        txn.begin_read().expect("reads");
        let (count, same) = get(&mut txn, &tree, 0);
        assert_eq!(count, same);
        txn.commit().expect("ends");
    }
    let idle = writer.join().expect("no panic");
    txn.begin_read().expect("reads");
    assert_eq!(get(&mut txn, &tree, 0), (STATEMENTS, STATEMENTS));
    drop(idle);
}
