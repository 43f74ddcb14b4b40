//! One life of a process that uses several stores: it opens some of them, compares them
//! with what they may hold, works at random, opens the others, and ends where the disk
//! does.

use std::array;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_store::{
    Durability, Error, ErrorKind, Isolation, KeyKind, Options, Result, Store, Txn, TxnContext,
    commit_together, read_together,
};

use super::change::{Part, outcome};
use super::model::{Oracle, STORES, State, difference};
use crate::driver::SimDriver;
use crate::frame::among_commits;
use crate::kv::{BULK, Table};
use crate::proof::{Lives, Timeline, step_rng};
use crate::{Rng, SimDisk};

/// Steps from this number on are those of a beginning and an end.
const AROUND: u64 = 1 << 40;

/// Workloads over several stores.
#[derive(Debug)]
pub struct Together;

impl Lives for Together {
    type Oracle = Oracle;

    fn live(
        disk: &SimDisk,
        options: &Options,
        oracle: &mut Oracle,
        timeline: Option<&mut Timeline<Oracle>>,
        seed: u64,
        steps: &[u64],
    ) -> bool {
        let mut life = Life::new(disk, options, oracle, timeline, seed);
        let done = life
            .start()
            .and_then(|()| steps.iter().try_for_each(|step| life.step_at(*step)))
            .and_then(|()| life.finish());
        if let Err(error) = &done {
            assert!(disk.is_stopped(), "{error}");
        }
        done.is_ok()
    }
}

/// See the module's header.
pub struct Life<'a> {
    disk: &'a SimDisk,
    options: Options,
    driver: Arc<SimDriver>,
    oracle: &'a mut Oracle,
    timeline: Option<&'a mut Timeline<Oracle>>,
    seed: u64,
    rng: Rng,
    open: [Option<Store>; STORES],
    /// What readers see of those that are open.
    visible: [State; STORES],
}

impl std::fmt::Debug for Life<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Life").finish_non_exhaustive()
    }
}

impl<'a> Life<'a> {
    /// A life that has not begun.
    pub fn new(
        disk: &'a SimDisk,
        options: &Options,
        oracle: &'a mut Oracle,
        timeline: Option<&'a mut Timeline<Oracle>>,
        seed: u64,
    ) -> Self {
        // What a killed process left draws on as that one did, and no two transactions
        // over several stores may have one number.
        disk.reseed(seed);
        let driver = SimDriver::new(disk);
        let options = Options {
            driver: Some(driver.clone()),
            ..options.clone()
        };
        Self {
            disk,
            options,
            driver,
            oracle,
            timeline,
            seed,
            rng: Rng::new(seed),
            open: [const { None }; STORES],
            visible: array::from_fn(|_| State::new()),
        }
    }

    /// Takes down what a power cut may leave from now on.
    fn note(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.push((self.disk.calls(), self.oracle.clone()));
        }
    }

    /// Opens some of the stores, mostly all.
    ///
    /// # Errors
    /// The disk's.
    pub fn start(&mut self) -> Result<()> {
        self.rng = step_rng(self.seed, AROUND);
        let count = match self.rng.one_in(2) {
            true => STORES,
            false => 1 + self.rng.index(STORES),
        };
        for at in self.shuffled(|_| true).into_iter().take(count) {
            self.open(at)?;
        }
        self.check()
    }

    /// Opens the others, compares everything, and closes all.
    ///
    /// # Errors
    /// The disk's.
    pub fn finish(&mut self) -> Result<()> {
        self.rng = step_rng(self.seed, AROUND + 1);
        for at in self.shuffled(Option::is_none) {
            self.open(at)?;
        }
        self.check()?;
        for at in self.shuffled(Option::is_some) {
            self.close(at);
        }
        Ok(())
    }

    /// The stores of a kind in random order.
    fn shuffled(&mut self, is_one: fn(&Option<Store>) -> bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..STORES).filter(|at| is_one(&self.open[*at])).collect();
        self.rng.shuffle(&mut order);
        order
    }

    fn any_open(&mut self) -> Option<(usize, Store)> {
        let at = self.shuffled(Option::is_some).pop()?;
        Some((at, self.open[at].clone()?))
    }

    /// Opens a store. One that is in doubt opens the store that knows, which on a disk like
    /// this one must not be open already: then all others are closed meanwhile.
    fn open(&mut self, at: usize) -> Result<()> {
        match self.open_beside(at) {
            Err(error) if error.kind() == ErrorKind::Busy && self.is_asking(&error) => {
                let others = self.shuffled(Option::is_some);
                others.iter().for_each(|other| self.close(*other));
                self.open_beside(at)?;
                others
                    .into_iter()
                    .try_for_each(|other| self.open_beside(other))
            }
            opened => opened,
        }
    }

    fn is_asking(&self, error: &Error) -> bool {
        self.open.iter().any(Option::is_some) && error.message().contains("while asking")
    }

    fn open_beside(&mut self, at: usize) -> Result<()> {
        let path = PathBuf::from(format!("d/{at}.db"));
        let store = Store::open_on(Arc::new(self.disk.clone()), path, self.options.clone())?;
        self.visible[at] = self.oracle.adopt(at, &store)?;
        self.note();
        self.open[at] = Some(store);
        Ok(())
    }

    /// What is closed is durable, unless a call fails meanwhile: nobody hears of that.
    fn close(&mut self, at: usize) {
        let faults = self.disk.faults_met();
        self.open[at] = None;
        if !self.disk.is_stopped() && self.disk.faults_met() == faults {
            self.oracle.of(at).keep(1);
            self.note();
        }
    }

    /// Reads everything as of one moment, and checks the stores' structure.
    fn check(&mut self) -> Result<()> {
        let mut readers: Vec<(usize, Txn)> = Vec::new();
        for (at, store) in self.open.iter().enumerate() {
            if let Some(store) = store {
                let mut txn = store.txn();
                txn.begin_read()?;
                readers.push((at, txn));
            }
        }
        let mut contexts: Vec<&mut TxnContext> =
            readers.iter_mut().map(|(_, txn)| &mut **txn).collect();
        read_together(&mut contexts)?;
        for (at, txn) in &mut readers {
            assert_eq!(difference(&self.visible[*at], txn)?, None, "store {at}");
        }
        drop(readers);
        for store in self.open.iter().flatten() {
            let problems = store.integrity_check()?;
            let fails = self.disk.is_stopped() || self.disk.faults_met() > 0;
            if !problems.is_empty() && fails {
                return Err(Error::new(ErrorKind::Io, problems.join("; ")));
            }
            assert_eq!(problems, Vec::<String>::new());
        }
        Ok(())
    }

    /// Does the step of this number, which is what it is whichever others there are.
    ///
    /// # Errors
    /// The disk's.
    pub fn step_at(&mut self, step: u64) -> Result<()> {
        self.rng = step_rng(self.seed, step);
        if (BULK..AROUND).contains(&step) {
            return self.transaction(true);
        }
        if self.driver.elapse(&mut self.rng) {
            let busy = self.rng.one_in(3);
            self.in_the_background(Store::tick, busy)?;
        }
        match self.rng.below(20) {
            0..=8 => self.transaction(false),
            9 | 10 => self.name_or_drop(),
            11 | 12 => self.alone(),
            13 | 14 => self.in_the_background(Store::checkpoint, false),
            15 | 16 => self.in_the_background(Store::checkpoint, true),
            17 => match self.any_open() {
                Some((at, store)) => {
                    drop(store);
                    self.close(at);
                    self.open(at)
                }
                None => Ok(()),
            },
            18 => self.open_or_close(),
            _ => self.check(),
        }
    }

    fn open_or_close(&mut self) -> Result<()> {
        let closed = self.shuffled(Option::is_none);
        match closed.first() {
            Some(at) => self.open(*at),
            None => {
                let at = self.rng.index(STORES);
                self.close(at);
                Ok(())
            }
        }
    }

    /// Does what makes all that was acknowledged in one of the stores durable; if `busy`,
    /// with commits between its calls.
    fn in_the_background(&mut self, work: fn(&Store) -> Result<()>, busy: bool) -> Result<()> {
        let Some((at, store)) = self.any_open() else {
            return Ok(());
        };
        let mark = self.oracle.of(at).count();
        match busy {
            true => {
                let disk = self.disk;
                among_commits(self, disk, || work(&store), Self::commit_or_not)?;
            }
            false => work(&store)?,
        }
        self.oracle.of(at).keep_since(mark);
        self.note();
        Ok(())
    }

    fn commit_or_not(&mut self) -> Result<()> {
        match self.rng.below(8) {
            0 | 1 => self.transaction(false),
            2 => self.alone(),
            3 => self.name_or_drop(),
            _ => Ok(()),
        }
    }

    /// Whether a commit is durable once it is acknowledged.
    fn is_synced(&self) -> bool {
        self.options.durability == Durability::Full
    }

    fn under_way(&mut self, after: &BTreeMap<usize, State>) {
        self.oracle.under_way(after);
        self.note();
    }

    /// What was under way was acknowledged. Where it changed several stores it is synced,
    /// whatever their mode.
    fn committed(&mut self, after: BTreeMap<usize, State>) {
        for (at, state) in &after {
            self.visible[*at] = state.clone();
        }
        let durable = self.is_synced() || after.len() > 1;
        self.oracle.acknowledged(after, durable);
        self.note();
    }

    /// Makes a family of one store, or drops one.
    fn name_or_drop(&mut self) -> Result<()> {
        let Some((at, store)) = self.any_open() else {
            return Ok(());
        };
        let name = format!("family {}", self.rng.below(4));
        let mut next = self.visible[at].clone();
        if next.remove(&name).is_some() {
            let after = BTreeMap::from([(at, next)]);
            self.under_way(&after);
            assert!(store.drop_family(&name)?);
            self.committed(after);
            return Ok(());
        }
        let kind = [KeyKind::Int, KeyKind::Bytes][self.rng.index(2)];
        next.insert(name.clone(), Table::new(kind));
        let after = BTreeMap::from([(at, next)]);
        self.under_way(&after);
        store.create_family(&name, kind)?;
        self.committed(after);
        Ok(())
    }

    /// A transaction in one store.
    fn alone(&mut self) -> Result<()> {
        let Some((at, store)) = self.any_open() else {
            return Ok(());
        };
        let mut txn = store.txn();
        match self.rng.one_in(3) {
            true => txn.begin_immediate()?,
            false => txn.begin(Isolation::Serializable)?,
        }
        let mut part = Part::new(txn, Isolation::Serializable, self.visible[at].clone());
        for _ in 0..1 + self.rng.below(3) {
            part.change(&mut self.rng)?;
        }
        self.commit(&[at], BTreeMap::from([(at, part)]), false)
    }

    /// A transaction over some of the stores, perhaps beside a commit to one of them, and
    /// with more changes to one of them than the log keeps.
    fn transaction(&mut self, is_large: bool) -> Result<()> {
        let mut order = self.shuffled(Option::is_some);
        let count = order.len().min(2 + self.rng.index(2));
        order.truncate(count);
        let excludes = self.rng.one_in(3);
        let mut parts = self.begin(&order, excludes)?;
        for _ in 0..2 + self.rng.below(7) {
            if let Some(part) = parts.get_mut(&order[self.rng.index(count)]) {
                part.change(&mut self.rng)?;
            }
        }
        if is_large && let Some(part) = parts.get_mut(&order[self.rng.index(count)]) {
            part.many_rows(&mut self.rng)?;
        }
        if self.rng.one_in(8) {
            return Ok(());
        }
        // A large one locks what it changes: a commit beside it would wait.
        let beside = !excludes && !is_large && self.rng.one_in(4);
        if beside {
            match self.rng.one_in(2) {
                true => self.alone()?,
                false => self.name_or_drop()?,
            }
        }
        self.commit(&order, parts, beside)
    }

    /// Begins in these stores, in this order.
    fn begin(&mut self, order: &[usize], excludes: bool) -> Result<BTreeMap<usize, Part>> {
        let isolation = [Isolation::Serializable, Isolation::Snapshot][self.rng.index(2)];
        let mut parts = BTreeMap::new();
        for (place, at) in order.iter().enumerate() {
            let store = self.open[*at].as_ref();
            let mut txn = store.map(Store::txn).ok_or_else(closed)?;
            match excludes {
                true if place == 0 => txn.begin_immediate_ahead()?,
                true => txn.begin_after_others(TxnContext::begin_immediate)?,
                false => txn.begin_after_others(|txn| txn.begin(isolation))?,
            }
            let part = Part::new(txn, isolation, self.visible[*at].clone());
            parts.insert(*at, part);
        }
        Ok(parts)
    }

    /// Commits as one, in this order. One that lost has had no effect.
    fn commit(
        &mut self,
        order: &[usize],
        mut parts: BTreeMap<usize, Part>,
        may_lose: bool,
    ) -> Result<()> {
        let expected = outcome(&parts, &self.visible);
        if let Ok(after) = &expected {
            self.under_way(after);
        }
        let mut contexts: Vec<(usize, &mut TxnContext)> = parts
            .iter_mut()
            .map(|(at, part)| (*at, &mut *part.txn))
            .collect();
        contexts.sort_by_key(|(at, _)| order.iter().position(|it| it == at));
        let mut contexts: Vec<&mut TxnContext> = contexts.into_iter().map(|(_, txn)| txn).collect();
        match (commit_together(&mut contexts), expected) {
            (Ok(()), Ok(after)) => self.committed(after),
            (Ok(()), Err(why)) => panic!("a conflict was not found: {why}"),
            (Err(error), expected) if error.kind() == ErrorKind::Conflict && may_lose => {
                if let Ok(after) = expected {
                    self.oracle.had_no_effect(&after, &self.visible);
                    self.note();
                }
            }
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Misuse, "the store is closed")
}
