//! One life of a process that uses a store: it opens it, compares it with what
//! it may hold, works at random, and ends where the disk does.

use std::path::Path;
use std::sync::Arc;

use fulgurite_store::{
    Durability, Error, ErrorKind, Isolation, KeyKind, Options, Result, Savepoint, Store, TreeId,
    Txn,
};

use super::model::{Oracle, RowKey, State, Table, UNKNOWN_TREE};
use crate::busy;
use crate::proof::{Lives, Timeline, step_rng};
use crate::{PATH, Rng, SimDisk};

/// Steps from this number on are transactions of bulk size.
pub const BULK: u64 = 1 << 32;

/// A change of an overlapping transaction, to be made again on what it commits
/// onto.
type Change = (u32, RowKey, Option<Arc<[u8]>>);

/// See the module's header.
pub struct Life<'a> {
    disk: &'a SimDisk,
    options: Options,
    oracle: &'a mut Oracle,
    timeline: Option<&'a mut Timeline<Oracle>>,
    seed: u64,
    rng: Rng,
    store: Option<Store>,
    /// What readers see.
    pub visible: State,
    /// What they saw before the last commit.
    pub previous: State,
    /// A snapshot kept open, and what it should show.
    reader: Option<(Txn, State)>,
}

/// Opens the database of all workloads.
///
/// # Errors
/// The store's.
pub fn open(disk: &SimDisk, options: &Options) -> Result<Store> {
    Store::open_on(Arc::new(disk.clone()), Path::new(PATH), options.clone())
}

/// Key-value workloads.
#[derive(Debug)]
pub struct KeyValue;

impl Lives for KeyValue {
    type Oracle = Oracle;

    fn live(
        disk: &SimDisk,
        options: &Options,
        oracle: &mut Oracle,
        timeline: Option<&mut Timeline<Oracle>>,
        seed: u64,
        steps: &[u64],
    ) -> bool {
        let mut life = Life::new(disk, options, oracle, seed);
        life.timeline = timeline;
        life.run_steps(steps)
    }
}

impl<'a> Life<'a> {
    /// A life that has not begun.
    pub fn new(disk: &'a SimDisk, options: &Options, oracle: &'a mut Oracle, seed: u64) -> Self {
        Self {
            disk,
            options: options.clone(),
            oracle,
            timeline: None,
            seed,
            rng: Rng::new(seed),
            store: None,
            visible: State::default(),
            previous: State::default(),
            reader: None,
        }
    }

    /// Lives until the power is cut or the steps are done, and closes the store
    /// then. Nothing else may fail. Returns whether everything was done.
    pub fn run(self, steps: usize) -> bool {
        let steps: Vec<u64> = (0..steps as u64).collect();
        self.run_steps(&steps)
    }

    /// As [`run`](Self::run), with a few transactions of bulk size.
    pub fn run_with(self, steps: usize, bulk: bool) -> bool {
        let number = |step| {
            if bulk && step % 3 == 2 {
                BULK + step
            } else {
                step
            }
        };
        let steps: Vec<u64> = (0..steps as u64).map(number).collect();
        self.run_steps(&steps)
    }

    /// As [`run`](Self::run), the steps given by their numbers: each is what it
    /// is whichever others there are.
    pub fn run_steps(mut self, steps: &[u64]) -> bool {
        let done = self
            .start()
            .and_then(|()| self.check())
            .and_then(|()| {
                steps.iter().try_for_each(|step| {
                    self.rng = step_rng(self.seed, *step);
                    if *step >= BULK {
                        self.bulk()
                    } else {
                        self.step()
                    }
                })
            })
            .and_then(|()| self.check())
            .and_then(|()| self.stop());
        if let Err(error) = &done {
            assert!(self.disk.is_stopped(), "{error}");
        }
        done.is_ok()
    }

    /// Takes down what a power cut may leave from now on.
    fn note(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.push((self.disk.calls(), self.oracle.clone()));
        }
    }

    fn store(&self) -> Result<Store> {
        let closed = || Error::new(ErrorKind::Misuse, "the store is closed");
        self.store.clone().ok_or_else(closed)
    }

    /// Opens the store and finds out which of its possible states it is in.
    pub fn start(&mut self) -> Result<()> {
        let store = open(self.disk, &self.options)?;
        self.oracle.adopt(&store)?;
        self.note();
        self.visible = self.oracle.newest().clone();
        self.store = Some(store);
        Ok(())
    }

    /// Reads everything, and checks the store's structure.
    pub fn check(&mut self) -> Result<()> {
        let store = self.store()?;
        assert_eq!(self.visible.difference(&store)?, None);
        let problems = store.integrity_check()?;
        if !problems.is_empty() && self.disk.is_stopped() {
            // The background thread's calls may be what the power cut met.
            return Err(Error::new(ErrorKind::Io, problems.join("; ")));
        }
        assert_eq!(problems, Vec::<String>::new());
        Ok(())
    }

    /// Does something at random, on a store opened again if that failed last.
    pub fn step_or_start(&mut self) -> Result<()> {
        match self.store {
            Some(_) => self.step(),
            None => self.start(),
        }
    }

    /// As [`step_or_start`](Self::step_or_start), the step given by its number.
    ///
    /// # Errors
    /// The disk's.
    pub fn step_or_start_at(&mut self, step: u64) -> Result<()> {
        self.rng = step_rng(self.seed, step);
        self.step_or_start()
    }

    /// After a failure: either writing goes on and nothing was committed, or it
    /// has ended for good, with the first cause, and reading goes on. Returns
    /// which; `reads` says whether reading works.
    pub fn look_around(&mut self, reads: bool) -> Result<bool> {
        let Some(store) = self.store.clone() else {
            return Ok(false);
        };
        self.reader = None;
        let refused = store.txn().begin_immediate().err();
        match &refused {
            None => self.commit_had_no_effect(),
            Some(refused) => {
                assert_eq!(refused.kind(), ErrorKind::Poisoned, "{refused}");
                let cause = refused.message().to_owned();
                let first = ["simulated", "no storage space"];
                assert!(first.iter().any(|text| cause.contains(text)), "{cause}");
                let again = store.checkpoint().expect_err("nothing is written any more");
                assert_eq!(again.kind(), ErrorKind::Poisoned, "{again}");
                let again = store
                    .txn()
                    .begin(Isolation::Snapshot)
                    .expect_err("no writer");
                assert_eq!(again.message(), cause);
            }
        }
        if reads {
            assert_eq!(self.visible.difference(&store)?, None);
        }
        Ok(refused.is_some())
    }

    /// Closes the store.
    pub fn stop(&mut self) -> Result<()> {
        self.end_reader()?;
        self.store = None;
        if !self.disk.is_stopped() {
            self.oracle.settle();
            self.note();
        }
        Ok(())
    }

    /// Does something at random.
    pub fn step(&mut self) -> Result<()> {
        match self.rng.below(20) {
            0..=4 => self.statement(),
            5..=9 => self.explicit(),
            10 | 11 => self.checkpoint(),
            12 => self.name_or_drop(),
            13 => {
                self.stop()?;
                self.start()
            }
            14 => self.overlap(),
            18 | 19 => self.busy_checkpoint(),
            15 => self.end_reader().and_then(|()| self.begin_reader()),
            _ => self.end_reader(),
        }
    }

    /// Creates a family that the model does not know.
    pub fn create_family(&mut self, name: &str) -> Result<()> {
        self.store()?.create_family(name, KeyKind::Int).map(drop)
    }

    /// Makes a commit that changes something, named trees aside.
    pub fn commit_something(&mut self) -> Result<()> {
        let before = self.visible.clone();
        while self.visible == before {
            self.statement()?;
        }
        Ok(())
    }

    /// Makes a checkpoint.
    ///
    /// # Errors
    /// The disk's.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.store()?.checkpoint()?;
        self.oracle.settle();
        self.note();
        Ok(())
    }

    /// Makes a checkpoint, with commits between its calls.
    fn busy_checkpoint(&mut self) -> Result<()> {
        let store = self.store()?;
        let disk = self.disk.clone();
        let kept = self.oracle.candidates.len();
        let mut commits = Ok(());
        let checkpoint = busy::meanwhile(
            &disk,
            move || store.checkpoint(),
            || {
                if commits.is_ok() && self.rng.one_in(2) {
                    commits = match self.rng.below(3) {
                        0 => self.explicit(),
                        _ => self.statement(),
                    };
                }
            },
        );
        commits?;
        checkpoint?;
        if self.options.durability != Durability::Full {
            // What was acknowledged before it began is covered.
            self.oracle.keep(self.oracle.candidates.len() + 1 - kept);
            self.note();
        }
        Ok(())
    }

    fn begin_reader(&mut self) -> Result<()> {
        let mut txn = self.store()?.txn();
        txn.begin_read()?;
        self.reader = Some((txn, self.visible.clone()));
        Ok(())
    }

    /// The snapshot still shows what it showed.
    fn end_reader(&mut self) -> Result<()> {
        if let Some((mut txn, state)) = self.reader.take() {
            assert_eq!(state.difference_in(&mut txn)?, None);
        }
        Ok(())
    }

    // ---- commits -----------------------------------------------------------

    /// Runs what commits `next`; if that fails its outcome is unknown.
    fn commit(&mut self, next: State, commit: impl FnOnce() -> Result<()>) -> Result<()> {
        self.oracle.under_way(next.clone());
        self.note();
        commit()?;
        self.committed(next);
        Ok(())
    }

    /// What was under way led to this state, and was acknowledged.
    fn committed(&mut self, next: State) {
        let durable = self.options.durability == Durability::Full;
        self.oracle.acknowledge(next.clone(), durable);
        self.note();
        // What changes nothing need not have been written anywhere.
        if next != self.visible {
            self.previous = std::mem::replace(&mut self.visible, next);
        }
    }

    /// A commit failed, and the store said that nothing was committed.
    pub fn commit_had_no_effect(&mut self) {
        let visible = &self.visible;
        if self.oracle.newest() != visible {
            self.oracle.candidates.pop();
        }
        assert!(self.oracle.newest() == visible);
        self.note();
    }

    /// Creates a named tree, or drops one.
    fn name_or_drop(&mut self) -> Result<()> {
        let store = self.store()?;
        let name = format!("family {}", self.rng.below(4));
        let mut next = self.visible.clone();
        if let Some(id) = next.names.remove(&name) {
            if self.rng.one_in(2) {
                next.tables.remove(&id);
                return self.commit(next, || {
                    assert!(store.drop_family(&name)?);
                    Ok(())
                });
            }
            return Ok(());
        }
        let kind = self.kind();
        let table = Table::new(kind);
        let mut unknown = next.clone();
        unknown.names.insert(name.clone(), UNKNOWN_TREE);
        unknown.tables.insert(UNKNOWN_TREE, table.clone());
        self.oracle.under_way(unknown);
        self.note();
        let tree = store.create_family(&name, kind)?.id().0;
        self.oracle.highest_tree = self.oracle.highest_tree.max(tree);
        next.names.insert(name, tree);
        next.tables.insert(tree, table);
        self.committed(next);
        Ok(())
    }

    /// An autocommitted statement on one or two trees.
    fn statement(&mut self) -> Result<()> {
        let Some(first) = self.any_tree() else {
            return self.name_or_drop();
        };
        let ids = [first, self.any_tree().unwrap_or(first)];
        let store = self.store()?;
        let trees = [store.tree(TreeId(ids[0]))?, store.tree(TreeId(ids[1]))?];
        let mut txn = store.txn();
        txn.begin_statement(&[&trees[0], &trees[1]])?;
        let mut next = self.visible.clone();
        for _ in 0..1 + self.rng.below(3) {
            let id = ids[self.rng.index(2)];
            self.change(&mut txn, &mut next, id)?;
        }
        self.commit(next, || txn.commit())
    }

    /// An explicit transaction with savepoints, trees of its own, and an end of
    /// either kind.
    fn explicit(&mut self) -> Result<()> {
        let store = self.store()?;
        let mut txn = store.txn();
        match self.rng.below(3) {
            0 => txn.begin_immediate()?,
            1 => txn.begin(Isolation::Serializable)?,
            _ => txn.begin(Isolation::Snapshot)?,
        }
        let mut next = self.visible.clone();
        let mut savepoints: Vec<(Savepoint, State)> = Vec::new();
        for _ in 0..1 + self.rng.below(10) {
            match self.rng.below(12) {
                0 => savepoints.push((txn.savepoint(), next.clone())),
                1 if !savepoints.is_empty() => {
                    savepoints.truncate(1 + self.rng.index(savepoints.len()));
                    let (savepoint, state) = &savepoints[savepoints.len() - 1];
                    txn.rollback_to(savepoint)?;
                    next = state.clone();
                }
                2 => {
                    let kind = self.kind();
                    let tree = txn.create_tree(kind)?;
                    let id = tree.id().0;
                    self.oracle.highest_tree = self.oracle.highest_tree.max(id);
                    next.tables.insert(id, Table::new(kind));
                }
                3 if self.rng.one_in(2) => self.drop_unnamed(&mut txn, &mut next)?,
                _ => {
                    let ids: Vec<u32> = next.tables.keys().copied().collect();
                    if !ids.is_empty() {
                        let id = ids[self.rng.index(ids.len())];
                        self.change(&mut txn, &mut next, id)?;
                    }
                }
            }
        }
        if self.rng.one_in(5) {
            txn.rollback();
            return Ok(());
        }
        self.commit(next, || txn.commit())
    }

    fn drop_unnamed(&mut self, txn: &mut Txn, next: &mut State) -> Result<()> {
        let named = |id: &u32| next.names.values().any(|named| named == id);
        let unnamed = next.tables.keys().copied().find(|id| !named(id));
        if let Some(id) = unnamed {
            let tree = txn.store().tree(TreeId(id))?;
            txn.drop_tree(&tree)?;
            next.tables.remove(&id);
        }
        Ok(())
    }

    /// Two transactions that overlap: the second is put on top of the first, or
    /// loses.
    fn overlap(&mut self) -> Result<()> {
        let Some(id) = self.any_tree() else {
            return Ok(());
        };
        let mut txn = self.store()?.txn();
        txn.begin(Isolation::Snapshot)?;
        let mut private = self.visible.clone();
        let mut changes = Vec::new();
        for _ in 0..1 + self.rng.below(5) {
            changes.extend(self.change(&mut txn, &mut private, id)?);
        }
        self.statement()?;
        let mut next = self.visible.clone();
        if let Some(table) = next.table(id) {
            for (_, key, value) in changes {
                match value {
                    Some(value) => table.rows.insert(key, value),
                    None => table.rows.remove(&key),
                };
            }
        }
        let committed = self.commit(next, || txn.commit());
        match committed {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.commit_had_no_effect();
                Ok(())
            }
            other => other,
        }
    }

    /// One operation on one tree, of which the answer is checked.
    fn change(&mut self, txn: &mut Txn, next: &mut State, id: u32) -> Result<Option<Change>> {
        let tree = txn.store().tree(TreeId(id))?;
        let key = self.key(tree.kind());
        let table = next.table(id).expect("the model knows its trees");
        let known = table.rows.get(&key).cloned();
        match self.rng.below(8) {
            0 => {
                let mut found = Vec::new();
                let there = txn.get_into(&tree, key.borrow(), &mut found)?;
                assert_eq!(there.then_some(&*found), known.as_deref(), "get {key:?}");
                Ok(None)
            }
            1 | 2 => {
                let deleted = txn.delete(&tree, key.borrow())?;
                assert_eq!(deleted, known.is_some(), "delete {key:?}");
                table.rows.remove(&key);
                Ok(deleted.then_some((id, key, None)))
            }
            3 => {
                let value = self.value();
                let inserted = txn.insert(&tree, key.borrow(), &value)?;
                assert_eq!(inserted, known.is_none(), "insert {key:?}");
                if !inserted {
                    return Ok(None);
                }
                table.rows.insert(key.clone(), value.clone());
                Ok(Some((id, key, Some(value))))
            }
            _ => {
                let value = self.value();
                let replaced = txn.put(&tree, key.borrow(), &value)?;
                assert_eq!(replaced, known.is_some(), "put {key:?}");
                table.rows.insert(key.clone(), value.clone());
                Ok(Some((id, key, Some(value))))
            }
        }
    }

    /// A transaction with more redo than is kept: its pages are written at
    /// commit, and only their place is logged.
    pub fn bulk(&mut self) -> Result<()> {
        let store = self.store()?;
        let mut txn = store.txn();
        if self.rng.one_in(2) {
            txn.begin_immediate()?;
        } else {
            txn.begin(Isolation::Serializable)?;
        }
        let mut next = self.visible.clone();
        let id = match self.any_tree().filter(|_| self.rng.one_in(2)) {
            Some(id) => id,
            None => {
                let kind = self.kind();
                let id = txn.create_tree(kind)?.id().0;
                next.tables.insert(id, Table::new(kind));
                self.oracle.highest_tree = self.oracle.highest_tree.max(id);
                id
            }
        };
        let kind = next.tables[&id].kind;
        for number in 0..100_u8 {
            let key = match kind {
                KeyKind::Int => RowKey::Int(1_000 + i64::from(number)),
                KeyKind::Bytes => RowKey::Bytes(vec![b'z', number]),
            };
            let tree = store.tree(TreeId(id))?;
            let value = self.filled(90_000);
            txn.put(&tree, key.borrow(), &value)?;
            let table = next.table(id).expect("the model knows its trees");
            table.rows.insert(key, value);
            self.change(&mut txn, &mut next, id)?;
        }
        let logged = || store.stats().log.map_or(0, |log| log.bytes);
        let before = logged();
        self.commit(next, || txn.commit())?;
        assert!(logged() - before < 1 << 20, "it was not bulk");
        Ok(())
    }

    // ---- random things -----------------------------------------------------

    fn any_tree(&mut self) -> Option<u32> {
        let ids: Vec<u32> = self.visible.tables.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[self.rng.index(ids.len())])
    }

    fn kind(&mut self) -> KeyKind {
        if self.rng.one_in(2) {
            KeyKind::Int
        } else {
            KeyKind::Bytes
        }
    }

    fn key(&mut self, kind: KeyKind) -> RowKey {
        let rng = &mut self.rng;
        match kind {
            KeyKind::Int if rng.one_in(10) => RowKey::Int([i64::MIN, i64::MAX][rng.index(2)]),
            KeyKind::Int => RowKey::Int(rng.below(80) as i64 - 20),
            KeyKind::Bytes => {
                let mut key = format!("key {:02}", rng.below(80)).into_bytes();
                if rng.one_in(12) {
                    // Near the limit of an eighth of a page.
                    key.resize(300 + rng.index(3) * 100, b'x');
                }
                RowKey::Bytes(key)
            }
        }
    }

    fn value(&mut self) -> Arc<[u8]> {
        if self.rng.one_in(24) {
            return self.forged();
        }
        let len = match self.rng.below(20) {
            0..=8 => self.rng.index(40),
            9..=14 => self.rng.index(300),
            15..=17 => self.rng.index(1_500),
            18 => self.rng.index(9_000),
            _ => self.rng.index(40_000),
        };
        self.filled(len)
    }

    /// What looks like records of the log to come, at every alignment, as somebody
    /// would write them who knows the format and not the salt.
    fn forged(&mut self) -> Arc<[u8]> {
        let newest = self.store.as_ref().map_or(0, |store| store.stats().visible);
        let mut bytes = vec![0xaa; 500];
        for turn in 0..24_u64 {
            let mut record = [0; 33];
            record[4..8].copy_from_slice(&8_u32.to_le_bytes());
            record[8..16].copy_from_slice(&(newest + 1 + turn % 3).to_le_bytes());
            record[16..24].copy_from_slice(&(newest + 2).to_le_bytes());
            record[24] = 1;
            let crc = crc_fast::crc32_iscsi(&record[4..]);
            record[..4].copy_from_slice(&crc.to_le_bytes());
            bytes.extend_from_slice(&record);
            // 41 bytes apart: a new place within eight bytes each time.
            bytes.extend_from_slice(&[0; 8]);
        }
        bytes.into()
    }

    /// Half of it noise, half of it blanks.
    fn filled(&mut self, len: usize) -> Arc<[u8]> {
        let mut bytes = vec![b' '; len];
        for chunk in bytes[..len.div_ceil(2)].chunks_mut(8) {
            let noise = self.rng.bits().to_le_bytes();
            chunk.copy_from_slice(&noise[..chunk.len()]);
        }
        bytes.into()
    }
}
