//! The same over two stores: transactions of one of them, and of both that commit as one.

use crate::ask::{Ask, Told};
use crate::common::Rng;
use crate::history::{Ends, Record, Transaction};
use crate::model::World;
use crate::place::Place;
use crate::session::{Scope, Session};
use crate::shared::{Cut, Shared, look};
use crate::{
    NEVER, ROUNDS, TRANSACTIONS, Tally, copy_of, explain_both, known, look_at, met, seen, set_up,
};
use fulgurite_store::{
    ErrorKind, Isolation, Result, Store, Tree, Txn, TxnState, commit_together, exclude_together,
    read_together,
};
use std::array;
use std::sync::{Arc, Barrier};

/// How a transaction over both begins.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Optimistic(Isolation),
    /// It keeps the writers of both out before it reads anything.
    Alone(Isolation),
    Immediate,
    Read,
    /// A statement in each, of which only this one writes.
    Statement(usize),
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Optimistic(Isolation::Serializable) => "both, serializable",
            How::Optimistic(Isolation::Snapshot) => "both, snapshot",
            How::Alone(Isolation::Serializable) => "both, alone, serializable",
            How::Alone(Isolation::Snapshot) => "both, alone, snapshot",
            How::Immediate => "both, immediate",
            How::Read => "both, read",
            How::Statement(_) => "both, statements",
        }
    }

    fn is(self, isolation: Isolation) -> bool {
        self == How::Optimistic(isolation) || self == How::Alone(isolation)
    }
}

/// A transaction over both.
struct Pair {
    txns: [Txn; 2],
    records: [Record; 2],
    scopes: [Scope; 2],
    /// Which of them was begun only to read.
    only_reads: Option<usize>,
}

/// A thread, with what it has for either store.
struct Both {
    sessions: [Session; 2],
    /// Handles for reading only.
    readers: [Option<Store>; 2],
    rng: Rng,
}

fn in_its_store(transaction: Transaction, at: usize) -> Transaction {
    match at {
        0 => transaction,
        _ => transaction.in_the_second(),
    }
}

impl Both {
    /// Runs one of some kind.
    fn transaction(&mut self, shared: &[Shared; 2], into: &mut Vec<Transaction>) {
        match self.rng.below(5) as usize {
            at @ (0 | 1) => {
                let mut ran = Vec::new();
                self.sessions[at].transaction(&shared[at], &mut ran);
                into.extend(ran.into_iter().map(|it| in_its_store(it, at)));
            }
            _ => into.extend(self.over_both(shared)),
        }
    }

    fn how(&mut self) -> How {
        let isolation = match self.rng.chance(2, 3) {
            true => Isolation::Serializable,
            false => Isolation::Snapshot,
        };
        match self.rng.below(12) {
            0..7 => How::Optimistic(isolation),
            7 => How::Alone(isolation),
            8 => How::Immediate,
            9 | 10 => How::Read,
            _ => How::Statement(self.rng.below(2) as usize),
        }
    }

    /// Which trees statements name, and touch.
    fn name_trees(&mut self, scopes: &mut [Scope; 2], writes: usize) -> [Vec<Tree>; 2] {
        array::from_fn(|at| {
            let scope = &mut scopes[at];
            let count = 1 + self.rng.below(3);
            let named = (0..count).map(|_| self.sessions[at].draw.of(&scope.read));
            let named: Vec<Tree> = named.collect();
            scope.read = named.clone();
            scope.write = if at == writes {
                named.clone()
            } else {
                Vec::new()
            };
            (scope.is_statement, scope.may_reshape) = (true, false);
            named
        })
    }

    /// Has one of them begin through a handle for reading only, if there is one.
    fn only_read(&mut self, pair: &mut Pair) {
        let at = self.rng.below(2) as usize;
        if let Some(reader) = &self.readers[at] {
            pair.txns[at] = reader.txn();
            pair.only_reads = Some(at);
            pair.scopes[at].write.clear();
            pair.scopes[at].may_reshape = false;
        }
    }

    fn begin(&mut self, pair: &mut Pair, how: How) -> Result<()> {
        let [first, second] = &mut pair.txns;
        match how {
            How::Optimistic(isolation) | How::Alone(isolation) => {
                first.begin_only_to_read(|txn| txn.begin(isolation))?;
                second.begin_only_to_read(|txn| txn.begin(isolation))?;
                read_together(&mut [first, second])?;
                if how == How::Alone(isolation) {
                    exclude_together(&mut [first, second])?;
                    let records = pair.records.iter_mut();
                    records.for_each(|record| record.note(Ask::Exclude, Told::Nothing));
                }
            }
            How::Immediate => {
                // In the order of the stores.
                first.begin_immediate()?;
                second.begin_immediate()?;
            }
            How::Read => {
                first.begin_read()?;
                second.begin_read()?;
                read_together(&mut [first, second])?;
                for scope in &mut pair.scopes {
                    scope.write.clear();
                    scope.may_reshape = false;
                }
            }
            How::Statement(writes) => {
                let [of_first, of_second] = self.name_trees(&mut pair.scopes, writes);
                first.begin_statement(&of_first.iter().collect::<Vec<_>>())?;
                second.begin_statement(&of_second.iter().collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    fn over_both(&mut self, shared: &[Shared; 2]) -> Option<Transaction> {
        let how = self.how();
        let sessions = &mut self.sessions;
        let mut pair = Pair {
            txns: array::from_fn(|at| sessions[at].txn(&shared[at])),
            records: array::from_fn(|at| sessions[at].record(&shared[at])),
            scopes: array::from_fn(|at| sessions[at].scope(&shared[at])),
            only_reads: None,
        };
        if matches!(how, How::Optimistic(_) | How::Alone(_)) && self.rng.chance(1, 2) {
            self.only_read(&mut pair);
        }
        pair.scopes.iter_mut().for_each(|it| it.may_exclude = false);
        // Of two that are too large for the log none commits.
        pair.scopes[self.rng.below(2) as usize].large = false;
        if let Err(error) = self.begin(&mut pair, how) {
            // Who has excluded writers of one store does not wait for those of an earlier one.
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            pair.txns.iter_mut().for_each(|txn| txn.rollback());
            return None;
        }
        let first = self.rng.below(2) as usize;
        for (at, txn) in pair.txns.iter().enumerate() {
            assert!(
                how == How::Read || txn.check_writes().is_err() == (pair.only_reads == Some(at))
            );
        }
        let commits = [first, 1 - first].into_iter().all(|at| {
            let (session, scope) = (&mut self.sessions[at], &pair.scopes[at]);
            let record = &mut pair.records[at];
            let done = session.body(&mut pair.txns[at], &shared[at], record, scope);
            done.is_ok_and(|commits| commits)
        });
        let wrote = pair.txns.iter().any(|txn| txn.has_written());
        let asked = shared[0].tick();
        let is_committed = commits && commit(&mut pair.txns, how);
        if !is_committed {
            for txn in &mut pair.txns {
                txn.rollback();
                // It may have seen what was on its way.
                txn.wait_until_visible().expect("is made durable");
            }
        }
        assert!(pair.txns.iter().all(|txn| txn.state() == TxnState::Idle));
        let ends = match is_committed {
            false => Ends::Undone,
            true if wrote && how.is(Isolation::Snapshot) => Ends::Later,
            true => Ends::AtOnce,
        };
        let ended = shared[0].tick();
        let tells = ends != Ends::AtOnce || !wrote || !how.is(Isolation::Serializable);
        let began = pair.records[0].began;
        for (at, txn) in pair.txns.into_iter().enumerate() {
            self.sessions[at].finish_scans(&mut pair.records[at], tells);
            if pair.only_reads != Some(at) {
                self.sessions[at].keep(txn);
            }
        }
        let [steps, beside] = pair.records.map(|record| record.steps);
        Some(Transaction {
            how: how.name(),
            steps,
            beside,
            ends,
            began,
            commits: asked,
            ended,
        })
    }
}

fn commit([first, second]: &mut [Txn; 2], how: How) -> bool {
    for _ in 0..3 {
        let Err(error) = commit_together(&mut [first, second]) else {
            return true;
        };
        let may_lose = matches!(how, How::Optimistic(_) | How::Alone(_));
        let is_fine = match error.kind() {
            ErrorKind::Busy => true,
            ErrorKind::Conflict => may_lose,
            _ => false,
        };
        assert!(is_fine, "{:?}: {error}", error.kind());
        if first.state() == TxnState::Idle || second.state() == TxnState::Idle {
            assert_eq!(first.state(), second.state(), "{error}");
            return false;
        }
        std::thread::yield_now();
    }
    false
}

fn round(threads: &mut [Both], shared: &[Shared; 2]) -> Vec<Vec<Transaction>> {
    let barrier = Barrier::new(threads.len());
    let each = TRANSACTIONS / threads.len();
    std::thread::scope(|scope| {
        let threads = threads.iter_mut().map(|thread| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let mut ran = Vec::new();
                for _ in 0..each {
                    thread.transaction(shared, &mut ran);
                }
                ran
            })
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|it| it.join());
        ended.map(|it| it.expect("no panic")).collect()
    })
}

/// What both hold at rest.
fn look_at_both(shared: &[Shared; 2]) -> Vec<Vec<Transaction>> {
    let look = |at: usize| vec![in_its_store(look(&shared[at]), at)];
    vec![look(0), look(1)]
}

fn trees_of(history: &[Vec<Transaction>], world: &World, shared: &[Shared; 2]) -> [Vec<Tree>; 2] {
    array::from_fn(|at| {
        let of = history.iter().flatten();
        let steps = of.flat_map(|of| [&of.steps, &of.beside][at]);
        met(&world[at], steps, &shared[at].store)
    })
}

/// What a power cut leaves of both, behind what was told before it in one of them.
fn look_after(
    (cut, at): (Cut, usize),
    trees: &[Vec<Tree>; 2],
    (place, rng): (&Place, &mut Rng),
) -> Vec<Transaction> {
    let disk = Arc::new(cut.leaves);
    let mut found = [Vec::new(), Vec::new()];
    let first = rng.below(2) as usize;
    // One after the other: who asks the other one about a commit opens it.
    for at in [first, 1 - first] {
        found[at] = look_at(disk.clone(), at, &trees[at], place.options(rng));
    }
    let told = cut.told.map(|told| in_its_store(told, at));
    let found = seen("after a power cut", found, [cut.began, NEVER]);
    told.into_iter().chain([found]).collect()
}

fn open(place: &Place, world: &World, rng: &mut Rng) -> [Shared; 2] {
    let first = place.open(0, place.options(rng));
    let first = Shared::new(first, place.power().cloned());
    let second = first.beside(place.open(1, place.options(rng)));
    let shared = [first, second];
    for (shared, model) in shared.iter().zip(world) {
        let known = known(model, shared);
        known.iter().for_each(|tree| shared.meet(tree));
    }
    shared
}

/// Whoever opens the files after the end of this process finds the same.
fn compare_copies(
    what: &str,
    (place, rng): (&Place, &mut Rng),
    shared: &[Shared; 2],
    world: &World,
) {
    let copy = copy_of(place, &shared.each_ref().map(|it| &it.store));
    let found = array::from_fn(|at| {
        let trees = known(&world[at], &shared[at]);
        look_at(copy.clone(), at, &trees, place.options(rng))
    });
    let what = format!("{what}, copied");
    let found = vec![vec![seen("copied", found, [0, 0])]];
    explain_both(&what, &found, world).expect("one has one order");
}

pub fn one_seed(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::new(seed ^ 0x2_0000_0000);
    let mut place = Place::new("two", seed, &mut rng);
    let mut world = World::default();
    for life in 0..2 {
        let shared = open(&place, &world, &mut rng);
        let (count, hot) = (2 + rng.below(3), rng.chance(1, 2));
        let thread = |number| {
            let rng = |at| Rng::new(seed * 1_000 + life * 100 + number * 10 + at);
            let durability = |at: usize| shared[at].store.options().durability;
            let mixes = place.power().is_none();
            let session = |at| Session::new(number, rng(at as u64), (durability(at), mixes), hot);
            Both {
                sessions: array::from_fn(session),
                readers: array::from_fn(|at| place.join_to_read(at)),
                rng: rng(2),
            }
        };
        let mut threads: Vec<Both> = (0..count).map(thread).collect();
        for number in 0..ROUNDS / 2 {
            let what = format!("seed {seed}, two stores, life {life}, round {number}");
            let history = look_at_both(&shared);
            world = explain_both(&what, &history, &world).expect("two have an order");
            let made = |at: usize| {
                let made = set_up(&shared[at], &world[at]).into_iter();
                made.map(move |it| in_its_store(it, at)).collect::<Vec<_>>()
            };
            let made = [made(0), made(1)].concat();
            world = explain_both(&what, &[made], &world).expect("one thread has one order");
            let slow = |is_slow| place.power().iter().for_each(|it| it.set_slow(is_slow));
            slow(true);
            let mut history = round(&mut threads, &shared);
            slow(false);
            let trees = trees_of(&history, &world, &shared);
            for (at, shared) in shared.iter().enumerate() {
                for cut in shared.cuts() {
                    tally.cuts += 1;
                    history.push(look_after((cut, at), &trees, (&place, &mut rng)));
                }
            }
            history.extend(look_at_both(&shared));
            tally.add(&history);
            let Some(end) = explain_both(&what, &history, &world) else {
                tally.undecided += 1;
                return;
            };
            world = end;
            if rng.chance(1, 2) {
                compare_copies(&what, (&place, &mut rng), &shared, &world);
            }
        }
        for shared in &shared {
            let problems = shared.store.integrity_check().expect("checks");
            assert_eq!(problems, Vec::<String>::new(), "seed {seed}, two stores");
            tally.count(&shared.store);
        }
        place.may_lose_power(&mut rng);
    }
}
