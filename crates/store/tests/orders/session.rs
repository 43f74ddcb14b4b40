//! Threads, and the transactions that they run.

use crate::act::is_own;
use crate::ask::{Ask, Counts, Draw, Told};
use crate::common::Rng;
use crate::history::{Ends, Record, Step, Transaction};
use crate::shared::Shared;
use fulgurite_store::{
    Durability, Error, ErrorKind, Isolation, Key, KeyKind, Result, Store, Tree, TreeId, Txn,
    TxnState,
};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// So small a transaction, so often, makes a context begin without a snapshot.
const USED_AFTER: usize = 33;
/// Contexts of the past that a session keeps.
const SPENT_MAX: usize = 6;

/// How long a session waits.
#[derive(Clone, Copy, PartialEq)]
enum Patience {
    Long,
    None,
    Handler,
}

pub struct Session {
    number: u64,
    pub draw: Draw,
    txn: Option<Txn>,
    /// Contexts that were mistaken, perhaps, and then begin with snapshots for long: nobody
    /// is to get them again.
    spent: Vec<Txn>,
    patience: Patience,
    durability: Durability,
    /// Its transactions are small, and begin without a snapshot.
    used: bool,
}

/// What a transaction may touch.
pub struct Scope {
    pub read: Vec<Tree>,
    pub write: Vec<Tree>,
    pub may_reshape: bool,
    /// Whoever keeps the writers of several stores out does that in their order.
    pub may_exclude: bool,
    pub large: bool,
    pub is_statement: bool,
}

impl Session {
    /// Where `mixes`, it may be one whose commits survive less than those of others.
    pub fn new(number: u64, rng: Rng, (durability, mixes): (Durability, bool), hot: bool) -> Self {
        let mut draw = Draw {
            rng,
            small: false,
            hot,
            lately: VecDeque::new(),
        };
        let used = draw.rng.chance(if mixes { 2 } else { 4 }, 5);
        draw.small = used;
        Self {
            number,
            patience: draw.of(&[
                Patience::Long,
                Patience::Long,
                Patience::None,
                Patience::Handler,
            ]),
            durability: match mixes {
                true => draw.of(&[durability, durability, Durability::Normal]),
                false => durability,
            },
            draw,
            txn: None,
            spent: Vec::new(),
            used,
        }
    }

    pub fn txn(&mut self, shared: &Shared) -> Txn {
        let kept = self.txn.take();
        kept.unwrap_or_else(|| {
            let mut txn = shared.store.txn();
            match self.patience {
                Patience::Long => {}
                Patience::None => txn.set_busy_timeout(Duration::ZERO),
                Patience::Handler => txn.set_busy_handler(Some(Arc::new(|asked| asked < 3))),
            }
            if txn.durability() != self.durability {
                txn.set_durability(self.durability);
            }
            txn
        })
    }

    /// Makes its context used to small transactions.
    pub fn get_used(&mut self, shared: &Shared) {
        if !self.used {
            return;
        }
        let name = format!("own {}", self.number);
        let own = shared.store.create_family(&name, KeyKind::Int);
        let own = own.expect("a family");
        self.spent.extend(self.txn.take());
        self.spent.truncate(SPENT_MAX);
        let mut txn = self.txn(shared);
        for at in 0..USED_AFTER {
            txn.begin(Isolation::Serializable).expect("begins");
            txn.put(&own, Key::Int(0), &[at as u8]).expect("puts");
            if let Err(error) = txn.commit() {
                self.may_hear(&error, false);
                txn.rollback();
            }
        }
        self.txn = Some(txn);
    }

    fn may_hear(&self, error: &Error, may_lose: bool) {
        let is_fine = match error.kind() {
            ErrorKind::Conflict => may_lose,
            ErrorKind::Busy => self.patience != Patience::Long,
            _ => false,
        };
        assert!(is_fine, "{:?}: {error}", error.kind());
    }

    /// Something beside transactions.
    pub fn look_around(&mut self, shared: &Shared) {
        let store = &shared.store;
        match self.draw.rng.below(60) {
            0..4 => store.checkpoint().expect("a checkpoint"),
            4 => {
                let problems = store.integrity_check().expect("checks");
                assert_eq!(problems, Vec::<String>::new());
            }
            5 | 6 => {
                let (before, stats) = (store.newest(), store.stats());
                assert!(before <= store.newest() && stats.visible <= store.stats().visible);
            }
            7..10 => {
                let mut txn = store.txn();
                txn.begin_read().expect("reads");
                for tree in shared.known() {
                    shared.check_stamp(&mut txn, &tree).expect("reads");
                }
            }
            10 | 11 => {
                let known = shared.known();
                let tree = self.draw.of(&known);
                let before = store.stamp(&tree);
                let mut txn = store.txn();
                txn.begin_read().expect("reads");
                let stamp = txn.stamp(&tree).ok();
                if before.is_some() && before == store.stamp(&tree) {
                    assert!(stamp.is_none() || stamp == before, "{tree:?}");
                }
            }
            12 => self.txn = None,
            13..24 => self.get_used(shared),
            24 => compact(store),
            _ => {}
        }
    }

    /// Runs one of some kind, and appends it and what it took.
    pub fn transaction(&mut self, shared: &Shared, into: &mut Vec<Transaction>) {
        self.look_around(shared);
        match self.draw.rng.below(24) {
            0 | 1 => into.push(self.about_families(shared)),
            2..5 => self.transact(shared, into),
            _ => into.extend(self.by_hand(shared)),
        }
    }

    pub fn scope(&mut self, shared: &Shared) -> Scope {
        let mut read = shared.known();
        if self.used || self.draw.rng.chance(1, 2) {
            read.truncate(if self.draw.hot { 2 } else { 3 });
        }
        if self.draw.rng.chance(1, 3) {
            // It may be one that somebody is making.
            read.extend(shared.newest());
        }
        Scope {
            write: read.clone(),
            read,
            may_reshape: !self.used,
            may_exclude: true,
            large: !self.used && self.draw.rng.chance(1, 24),
            is_statement: false,
        }
    }

    pub fn record(&mut self, shared: &Shared) -> Record {
        let began = shared.tick();
        Record {
            began,
            by: format!("{began}by{}", self.number),
            steps: Vec::new(),
            scans: Vec::new(),
        }
    }

    /// A call of the store's own.
    fn about_families(&mut self, shared: &Shared) -> Transaction {
        let (name, kind) = (self.draw.family(), self.draw.kind());
        let began = shared.tick();
        let store = &shared.store;
        let (ask, told) = match self.draw.rng.below(5) {
            0 => {
                let mut names = store.families().expect("reads");
                names.retain(|name| !is_own(name));
                // Which trees they stand for is not told.
                let ask = Ask::Family(names.first().cloned().unwrap_or(name));
                let tree = match &ask {
                    Ask::Family(name) => store.family(name).expect("reads"),
                    _ => None,
                };
                tree.iter().for_each(|tree| shared.meet(tree));
                (ask, Told::Tree(tree.map(|tree| tree.id().0)))
            }
            1 => {
                let tree = store.family(&name).expect("reads");
                tree.iter().for_each(|tree| shared.meet(tree));
                (Ask::Family(name), Told::Tree(tree.map(|tree| tree.id().0)))
            }
            2 | 3 => {
                let told = match store.create_family(&name, kind) {
                    Ok(tree) => {
                        shared.meet(&tree);
                        Told::Tree(Some(tree.id().0))
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
                        Told::Refused
                    }
                };
                (Ask::CreateFamily(name, kind), told)
            }
            _ => {
                let was_there = store.drop_family(&name).expect("drops");
                // Whether the name stood for nothing is not told.
                (Ask::DropFamily(name), Told::Is(was_there))
            }
        };
        Transaction {
            how: "store",
            steps: vec![Step { ask, told }],
            beside: Vec::new(),
            ends: Ends::AtOnce,
            began,
            commits: began,
            ended: shared.tick(),
        }
    }

    /// One that is run again where it lost.
    fn transact(&mut self, shared: &Shared, into: &mut Vec<Transaction>) {
        let isolation = self
            .draw
            .of(&[Isolation::Serializable, Isolation::Snapshot]);
        let panics = self.draw.rng.chance(1, 16);
        let mut attempts: Vec<(Record, TxnState, bool)> = Vec::new();
        let mut ended = Vec::new();
        let first = shared.tick();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            shared.store.transact(isolation, |txn| {
                if !attempts.is_empty() {
                    ended.push(shared.tick());
                }
                let mut record = self.record(shared);
                record.began = ended.last().copied().unwrap_or(first);
                let (scope, state) = (self.scope(shared), txn.state());
                let patience = std::mem::replace(&mut self.patience, Patience::Long);
                let done = self.body(txn, shared, &mut record, &scope);
                self.patience = patience;
                attempts.push((record, state, txn.has_written()));
                if panics {
                    resume_unwind(Box::new("on purpose"));
                }
                done.map(drop)
            })
        }));
        let is_done = matches!(outcome, Ok(Ok(())));
        if let Ok(Err(error)) = outcome {
            panic!("{:?}: {error}", error.kind());
        }
        ended.push(shared.tick());
        let last = attempts.len() - 1;
        for (at, (mut record, state, wrote)) in attempts.into_iter().enumerate() {
            let ends = match (is_done && at == last, isolation, state) {
                (false, ..) => Ends::Undone,
                (_, Isolation::Snapshot, TxnState::Optimistic) if wrote => Ends::Later,
                _ => Ends::AtOnce,
            };
            let tells = ends != Ends::AtOnce || !wrote || state != TxnState::Optimistic;
            self.finish_scans(&mut record, tells);
            let how = match isolation {
                Isolation::Serializable => "transact",
                Isolation::Snapshot => "transact, snapshot",
            };
            into.push(Transaction {
                how,
                steps: record.steps,
                beside: Vec::new(),
                ends,
                began: record.began,
                commits: record.began,
                ended: ended[at],
            });
        }
    }

    /// Begins in some way; None where that is refused.
    fn begin(&mut self, txn: &mut Txn, shared: &Shared, scope: &mut Scope) -> Option<&'static str> {
        let (how, begun) = match self.draw.rng.below(18) {
            0..6 => ("serializable", txn.begin(Isolation::Serializable)),
            6..10 => ("snapshot", txn.begin(Isolation::Snapshot)),
            10 => ("immediate", txn.begin_immediate()),
            11 => ("ahead", txn.begin_immediate_ahead()),
            12 => ("read", txn.begin_read()),
            _ => {
                let count = 1 + self.draw.rng.below(3);
                let mut named: Vec<Tree> = (0..count).map(|_| self.draw.of(&scope.read)).collect();
                scope.write = named.clone();
                scope.is_statement = true;
                scope.large &= self.draw.rng.chance(1, 4);
                let reshapes = scope.may_reshape && self.draw.rng.chance(1, 6);
                scope.may_reshape = reshapes;
                if reshapes {
                    named.push(shared.store.tree(TreeId(0)).expect("has names"));
                }
                if !reshapes && self.draw.rng.chance(1, 2) {
                    scope.read = named.clone();
                }
                let named: Vec<&Tree> = named.iter().collect();
                ("statement", txn.begin_statement(&named))
            }
        };
        if let Err(error) = begun {
            self.may_hear(&error, false);
            assert_eq!(txn.state(), TxnState::Idle);
            return None;
        }
        if how == "read" {
            scope.write.clear();
            scope.may_reshape = false;
        }
        Some(how)
    }

    fn by_hand(&mut self, shared: &Shared) -> Option<Transaction> {
        let mut txn = self.txn(shared);
        let mut record = self.record(shared);
        let mut scope = self.scope(shared);
        let how = self.begin(&mut txn, shared, &mut scope)?;
        let done = self.body(&mut txn, shared, &mut record, &scope);
        if how == "ahead" {
            txn.confirm().expect("is made durable");
        }
        let wrote = txn.has_written();
        let commits = shared.tick();
        let is_committed = done.is_ok_and(|commits| commits) && self.commit(&mut txn);
        if !is_committed && self.draw.rng.chance(1, 4) && how != "statement" {
            drop(txn);
        } else {
            if !is_committed {
                txn.rollback();
                // It may have seen what was on its way.
                txn.wait_until_visible().expect("is made durable");
            }
            assert_eq!(txn.state(), TxnState::Idle);
            self.keep(txn);
        }
        let ended = shared.tick();
        let is_apart = |step: &Step| match step.ask.tree() {
            Some(tree) => !scope.write.contains(tree),
            None => !matches!(step.ask, Ask::Mark | Ask::Back(_) | Ask::Release(_)),
        };
        let ends = match how {
            _ if !is_committed => Ends::Undone,
            "snapshot" if wrote => Ends::Later,
            "statement" if wrote && record.steps.iter().any(is_apart) => Ends::Later,
            _ => Ends::AtOnce,
        };
        let tells = ends != Ends::AtOnce || !wrote || how != "serializable";
        self.finish_scans(&mut record, tells);
        Some(Transaction {
            how,
            steps: record.steps,
            beside: Vec::new(),
            ends,
            began: record.began,
            commits,
            ended,
        })
    }

    /// Goes on with it, mostly.
    pub fn keep(&mut self, txn: Txn) {
        self.txn = self.draw.rng.chance(7, 8).then_some(txn);
    }

    /// Cursors outlive their transactions.
    pub fn finish_scans(&mut self, record: &mut Record, tells: bool) {
        let excludes = record.excludes();
        for mut scan in std::mem::take(&mut record.scans) {
            // What is read now is of the state that was read, and nothing that lasted.
            let asked = &record.steps[scan.step].ask;
            let lasts = excludes || matches!(asked, Ask::Scan(_, Counts::Lasting, _));
            let tells = tells && !lasts;
            while self.draw.rng.chance(2, 3) {
                let moved = scan.go_on(&mut self.draw).expect("moves");
                if tells && let Told::Moves(moves) = &mut record.steps[scan.step].told {
                    moves.push(moved);
                }
            }
        }
        let steps = record.steps.iter_mut();
        for step in steps.filter(|_| !tells) {
            // Nothing depends on what it passed.
            if matches!(step.ask, Ask::Scan(_, Counts::Never, _) | Ask::Estimate(_)) {
                step.told = Told::Nothing;
            }
        }
    }

    fn commit(&mut self, txn: &mut Txn) -> bool {
        let may_lose = txn.state() == TxnState::Optimistic;
        for _ in 0..3 {
            let Err(error) = txn.commit() else {
                return true;
            };
            self.may_hear(&error, may_lose);
            if txn.state() == TxnState::Idle {
                return false;
            }
            assert_eq!(error.kind(), ErrorKind::Busy);
            std::thread::yield_now();
        }
        false
    }

    /// Something about the tree that only those write to who keep the others out.
    fn about_relied_on(&mut self, shared: &Shared, writes: bool, by: &str) -> Option<Ask> {
        let tree = shared.relied_on()?;
        match self.draw.rng.below(24) {
            0 | 1 => Some(Ask::RelyOn(tree.clone())),
            2 | 3 if writes => Some(self.draw.write(tree, by)),
            2 => Some(self.draw.read(tree)),
            _ => None,
        }
    }

    fn any(&mut self, shared: &Shared, scope: &Scope, by: &str) -> Ask {
        let mut tree = self.draw.of(&scope.read);
        if !scope.is_statement && self.draw.rng.chance(1, 16) {
            tree = shared.newest().unwrap_or(tree);
        }
        if scope.may_reshape && self.draw.rng.chance(1, 12) {
            return match self.draw.about_trees(&tree) {
                Ask::Exclude if !scope.may_exclude => Ask::Families,
                // It has not locked the tree.
                _ if scope.is_statement => Ask::CreateFamily(self.draw.family(), self.draw.kind()),
                ask => ask,
            };
        }
        match !scope.write.is_empty() && self.draw.rng.chance(1, 2) {
            true => {
                let tree = self.draw.of(&scope.write);
                self.draw.write(&tree, by)
            }
            false => self.draw.read(&tree),
        }
    }

    /// Whether to commit.
    pub fn body(
        &mut self,
        txn: &mut Txn,
        shared: &Shared,
        record: &mut Record,
        scope: &Scope,
    ) -> Result<bool> {
        let may_lose = txn.state() == TxnState::Optimistic;
        let mut marks = Vec::new();
        let large_at = scope.large.then(|| self.draw.rng.below(3));
        for at in 0..1 + self.draw.rng.below(6) {
            for _ in 0..self.draw.of(&[0, 0, 1, 4, 16]) {
                std::thread::yield_now();
            }
            while marks.len() < 3 && self.draw.rng.chance(1, 6) {
                marks.push(txn.savepoint()?);
                record.note(Ask::Mark, Told::Nothing);
            }
            if self.draw.rng.chance(1, 24) && txn.state() != TxnState::Statement {
                let tree = self.draw.of(&scope.read);
                shared.check_stamp(txn, &tree).expect("reads");
            }
            let ask = match large_at == Some(at) && !scope.write.is_empty() {
                true => {
                    let tree = self.draw.of(&scope.write);
                    self.draw.large(&tree, &record.by)
                }
                false => {
                    let excludes = txn.state() == TxnState::Immediate || record.excludes();
                    self.about_relied_on(shared, excludes && !scope.write.is_empty(), &record.by)
                        .unwrap_or_else(|| self.any(shared, scope, &record.by))
                }
            };
            if let Err(error) = record.ask(txn, shared, ask.clone()) {
                self.may_hear(&error, may_lose);
                // What it had written before is as it was.
                let is_one = matches!(
                    ask,
                    Ask::Put(..) | Ask::Rewrite(..) | Ask::Insert(..) | Ask::Delete(..)
                );
                match marks.last() {
                    Some(mark) if self.draw.rng.chance(2, 3) => {
                        txn.rollback_to(mark)?;
                        record.note(Ask::Back(marks.len() - 1), Told::Nothing);
                    }
                    _ if is_one && self.draw.rng.chance(2, 3) => {}
                    _ => return Err(error),
                }
            }
            self.go_on(record);
            if txn.state() != TxnState::Statement && txn.ahead_of().is_none() {
                shared.may_cut(record, self.used, &mut self.draw.rng);
            }
            while !marks.is_empty() && self.draw.rng.chance(1, 3) {
                let to = self.draw.rng.below(marks.len() as u64) as usize;
                if self.draw.rng.chance(1, 2) {
                    txn.release(&marks[to])?;
                    marks.truncate(to);
                    record.note(Ask::Release(to), Told::Nothing);
                } else {
                    txn.rollback_to(&marks[to])?;
                    marks.truncate(to + 1);
                    record.note(Ask::Back(to), Told::Nothing);
                }
            }
        }
        for _ in 0..self.draw.of(&[0, 1, 4, 16]) {
            std::thread::yield_now();
        }
        Ok(!self.draw.rng.chance(1, 12))
    }

    /// Reads on with its cursors, now and then.
    fn go_on(&mut self, record: &mut Record) {
        for scan in &mut record.scans {
            while self.draw.rng.chance(2, 3) {
                let moved = scan.go_on(&mut self.draw).expect("moves");
                if let Told::Moves(moves) = &mut record.steps[scan.step].told {
                    moves.push(moved);
                }
            }
        }
        if self.draw.rng.chance(1, 4) {
            record.scans.pop();
        }
    }
}

/// Writes all trees anew, unless somebody is in the way.
fn compact(store: &Store) {
    let refused = store.compact(|| true).err();
    let is_fine = refused
        .as_ref()
        .is_none_or(|error| error.kind() == ErrorKind::Busy);
    assert!(is_fine, "{refused:?}");
}
