//! Explicit transactions that hold the one tree they touch, beside everybody who asks
//! for it: statements on the same tree, transactions that touch both, IMMEDIATE ones,
//! snapshots, a checkpoint; and what the next process finds.
//!
//! The two trees have an amount each, moved between them, so that the sum shows whether
//! what a transaction saw of both is of one moment, and a row a writer, which shows
//! whether a commit was lost.

use super::common::{open, options};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Durability, ErrorKind, Isolation, Key, KeyKind};
use fulgurite_store_model::{Options, Result, Store, Tree, Txn};
use shuttle::rand::RngCore;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;

/// The key of a tree's amount, and what both are together.
const AMOUNT: i64 = 100;
const SUM: i64 = 50;
/// The row that everybody adds to, in the first tree.
const COMMON: i64 = 101;

fn draw() -> u64 {
    shuttle::rand::thread_rng().next_u64()
}

fn get(txn: &mut Txn, tree: &Tree, key: i64) -> i64 {
    let mut value = Vec::new();
    txn.get_into(tree, Key::Int(key), &mut value)
        .expect("reads");
    value.try_into().map_or(0, i64::from_le_bytes)
}

fn add(txn: &mut Txn, tree: &Tree, key: i64, by: i64) -> i64 {
    let sum = get(txn, tree, key) + by;
    txn.put(tree, Key::Int(key), &sum.to_le_bytes())
        .expect("writes");
    sum
}

struct World {
    store: Store,
    trees: [Tree; 2],
    /// What each writer was told of its commits.
    told: [AtomicU64; 2],
    /// What was added to the common row.
    added: AtomicU64,
}

impl World {
    fn sum(&self, txn: &mut Txn) -> i64 {
        let [first, second] = &self.trees;
        // Others may run between the two.
        let amount = get(txn, first, AMOUNT);
        thread::yield_now();
        amount + get(txn, second, AMOUNT)
    }

    /// Explicit transactions on a tree of its own, which others use now and then, too.
    fn hold(&self, writer: usize, rounds: u64) {
        let own = &self.trees[writer];
        let mut txn = self.store.txn();
        let mut count = 0;
        while count < rounds {
            txn.begin(Isolation::Serializable).expect("begins");
            let at = add(&mut txn, own, writer as i64, 1);
            assert_eq!(at, count as i64 + 1, "a lost commit");
            let action = draw() % 5;
            match action {
                0 => {
                    thread::yield_now();
                    add(&mut txn, own, AMOUNT, 0);
                }
                1 => assert_eq!(self.sum(&mut txn), SUM, "seen by a transaction"),
                2 => {
                    add(&mut txn, &self.trees[0], COMMON, 1);
                }
                _ => {}
            }
            if draw().is_multiple_of(8) {
                txn.rollback();
                continue;
            }
            if self.has_won(txn.commit()) {
                count += 1;
                self.told[writer].store(count, SeqCst);
                self.added.fetch_add(u64::from(action == 2), SeqCst);
            }
        }
    }

    fn has_won(&self, outcome: Result<()>) -> bool {
        outcome
            .map_err(|error| assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"))
            .is_ok()
    }

    /// Statements on both trees, which cannot lose.
    fn move_amounts(&self) {
        let mut txn = self.store.txn();
        for by in [3, -5] {
            txn.begin_statement(&[&self.trees[0], &self.trees[1]])
                .expect("begins");
            assert_eq!(self.sum(&mut txn), SUM, "seen by a statement");
            add(&mut txn, &self.trees[0], AMOUNT, by);
            add(&mut txn, &self.trees[1], AMOUNT, -by);
            txn.commit().expect("commits");
        }
    }

    /// One that keeps all others out.
    fn be_alone(&self) {
        let mut txn = self.store.txn();
        txn.begin_immediate().expect("begins");
        assert_eq!(self.sum(&mut txn), SUM, "seen by one that is alone");
        add(&mut txn, &self.trees[0], COMMON, 1);
        txn.commit().expect("commits");
        self.added.fetch_add(1, SeqCst);
    }

    fn look(&self) {
        let told = [0, 1].map(|writer: usize| self.told[writer].load(SeqCst));
        let mut txn = self.store.txn();
        txn.begin_read().expect("reads");
        for (writer, told) in told.into_iter().enumerate() {
            let is = get(&mut txn, &self.trees[writer], writer as i64);
            assert!(told as i64 <= is, "{told} were told of, {is} are seen");
        }
        assert_eq!(self.sum(&mut txn), SUM, "seen by a snapshot");
    }
}

fn world(disk: &SimDisk, told: [u64; 2]) -> World {
    // In `full`, where syncs are quick.
    let durability = match draw() % 2 {
        0 => Durability::Normal,
        _ => Durability::Full,
    };
    let options = Options {
        durability,
        checkpoint_bytes: 4 << 10,
        ..options()
    };
    let store = open(disk, options);
    let family = |name| store.create_family(name, KeyKind::Int).expect("a family");
    World {
        trees: [family("one"), family("two")],
        store,
        told: told.map(AtomicU64::new),
        added: AtomicU64::new(0),
    }
}

pub fn whoever_asks_gets_the_tree() {
    const ROUNDS: u64 = 6;
    let disk = SimDisk::new(draw());
    let world = Arc::new(world(&disk, [0, 0]));
    let mut txn = world.store.txn();
    txn.begin_statement(&[&world.trees[0]]).expect("begins");
    add(&mut txn, &world.trees[0], AMOUNT, SUM);
    txn.commit().expect("commits");
    drop(txn);
    let with = |work: fn(&World)| {
        let world = Arc::clone(&world);
        thread::spawn(move || work(&world))
    };
    let threads = [
        with(|world| world.hold(0, ROUNDS)),
        with(|world| world.hold(1, ROUNDS)),
        with(World::move_amounts),
        with(World::be_alone),
        with(World::look),
        with(|world| world.store.checkpoint().expect("a checkpoint")),
    ];
    for _ in 0..draw() % 40 {
        thread::yield_now();
    }
    let told = [0, 1].map(|writer: usize| world.told[writer].load(SeqCst));
    let killed = disk.kill_image();
    for thread in threads {
        thread.join().expect("no panic");
    }
    world.look();
    let mut txn = world.store.txn();
    txn.begin_read().expect("reads");
    let common = get(&mut txn, &world.trees[0], COMMON);
    assert_eq!(common as u64, world.added.load(SeqCst), "added to by all");
    drop(txn);
    drop(world);
    let left = self::world(&killed, told);
    left.look();
    let problems = left.store.integrity_check().expect("a check");
    assert!(problems.is_empty(), "{problems:?}");
}

/// A transaction that does not end before somebody else got the tree that it holds:
/// however the two come together, that one need not wait for it.
pub fn nobody_waits_for_who_holds() {
    const MEETINGS: i64 = 4;
    let disk = SimDisk::new(draw());
    let world = Arc::new(world(&disk, [0, 0]));
    let (comes, other_comes) = shuttle::sync::mpsc::channel();
    let (went, other_went) = shuttle::sync::mpsc::channel();
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let (mut txn, tree) = (world.store.txn(), &world.trees[0]);
            while let Ok(how) = other_comes.recv() {
                match how % 4 {
                    0 => txn.begin_immediate(),
                    1 => txn.begin(Isolation::Serializable),
                    _ => txn.begin_statement(&[tree]),
                }
                .expect("begins");
                add(&mut txn, tree, COMMON, 1);
                txn.commit().expect("commits");
                went.send(()).expect("somebody waits");
            }
        })
    };
    let mut holder = world.store.txn();
    let mut hold_until = |asked: &dyn Fn()| {
        holder.begin(Isolation::Serializable).expect("begins");
        add(&mut holder, &world.trees[0], 0, 1);
        asked();
        holder.commit().expect("commits: they changed other rows");
    };
    for _ in 0..MEETINGS {
        // It begins without a snapshot again after some that nobody interrupted.
        (0..2).for_each(|_| hold_until(&|| ()));
        comes.send(draw()).expect("somebody listens");
        hold_until(&|| other_went.recv().expect("it went on"));
    }
    drop(comes);
    other.join().expect("no panic");
    let mut txn = world.store.txn();
    txn.begin_read().expect("reads");
    assert_eq!(get(&mut txn, &world.trees[0], 0), 3 * MEETINGS);
    assert_eq!(get(&mut txn, &world.trees[0], COMMON), MEETINGS);
}

/// A statement and a commit come for a tree that is held: what its transaction sees
/// after that is of the moment when it was taken away, whichever of them takes it and
/// whichever is first to change it.
pub fn what_was_held_is_seen_as_of_one_moment() {
    let disk = SimDisk::new(draw());
    let world = Arc::new(world(&disk, [0, 0]));
    let [first, second] = &world.trees;
    let mut holder = world.store.txn();
    for key in [0, COMMON] {
        holder.begin(Isolation::Serializable).expect("begins");
        add(&mut holder, first, key, 1);
        holder.commit().expect("commits");
    }
    holder.begin(Isolation::Serializable).expect("begins");
    assert_eq!(get(&mut holder, first, COMMON), 1);
    let others = [0, 1].map(|which| {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let (mut txn, tree) = (world.store.txn(), &world.trees[0]);
            match which {
                0 => txn.begin_statement(&[tree]),
                _ => txn.begin(Isolation::Serializable),
            }
            .expect("begins");
            add(&mut txn, tree, COMMON, 1);
            u64::from(world.has_won(txn.commit()))
        })
    });
    let added: u64 = others
        .into_iter()
        .map(|other| other.join().expect("no panic"))
        .sum();
    assert_eq!(get(&mut holder, first, COMMON), 1);
    add(&mut holder, second, 0, 1);
    let lost = holder.commit().expect_err("it read what they changed");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    holder.begin_read().expect("reads");
    assert_eq!(get(&mut holder, first, COMMON) as u64, 1 + added);
}

/// A statement writes to some trees, beside a transaction that looks at one after the
/// other. All are taken away from it while it comes to the next: it sees them as of one
/// moment.
pub fn trees_are_taken_away_on_the_way_to_the_next() {
    const TREES: usize = 8;
    let disk = SimDisk::new(draw());
    let world = Arc::new(world(&disk, [0, 0]));
    let family = |at| world.store.create_family(&format!("{at}"), KeyKind::Int);
    let trees: Vec<Tree> = (0..TREES).map(|at| family(at).expect("a family")).collect();
    let (comes, other_comes) = shuttle::sync::mpsc::channel();
    let other = {
        let (world, trees) = (Arc::clone(&world), trees.clone());
        thread::spawn(move || {
            let mut txn = world.store.txn();
            other_comes.recv().expect("somebody asks");
            txn.begin_statement(&trees.iter().collect::<Vec<_>>())
                .expect("begins");
            for tree in &trees {
                txn.put(tree, Key::Int(0), &1_i64.to_le_bytes())
                    .expect("writes");
            }
            txn.commit().expect("commits");
        })
    };
    let mut txn = world.store.txn();
    for key in [1, 2] {
        txn.begin(Isolation::Serializable).expect("begins");
        add(&mut txn, &trees[0], key, 1);
        txn.commit().expect("commits");
    }
    txn.begin(Isolation::Serializable).expect("begins");
    let number = get(&mut txn, &trees[0], 0);
    comes.send(()).expect("somebody listens");
    for tree in &trees {
        assert_eq!(get(&mut txn, tree, 0), number, "two moments");
    }
    txn.commit().expect("it only read");
    other.join().expect("no panic");
}

/// Transactions rely on a tree that changes only where writers are kept out, as the schema
/// does, beside one that changes it, and a row of the other tree with it: what they are told
/// of it without a snapshot is what they see to their end.
pub fn what_is_relied_on_stays_as_it_was_told() {
    let disk = SimDisk::new(draw());
    let world = Arc::new(world(&disk, [0, 0]));
    let changer = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let [table, schema] = &world.trees;
            let mut txn = world.store.txn();
            for _ in 0..3 {
                txn.begin_immediate().expect("begins");
                add(&mut txn, schema, 0, 1);
                add(&mut txn, table, COMMON, 1);
                txn.commit().expect("commits");
            }
        })
    };
    let [table, schema] = &world.trees;
    let mut txn = world.store.txn();
    for round in 0..6 {
        txn.begin(Isolation::Snapshot).expect("begins");
        txn.rely_on(schema).expect("relies");
        let stamp = txn.stamp(schema).expect("a stamp");
        add(&mut txn, table, round, 1);
        let seen = get(&mut txn, table, COMMON);
        assert_eq!(txn.stamp(schema).expect("a stamp"), stamp, "told otherwise");
        let number = get(&mut txn, schema, 0);
        assert_eq!(txn.stamp(schema).expect("a stamp"), stamp, "seen otherwise");
        assert_eq!(number, seen, "two moments");
        world.has_won(txn.commit());
    }
    changer.join().expect("no panic");
}
