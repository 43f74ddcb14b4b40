//! One life of a process that uses a store: it opens it, compares it with what
//! it may hold, works at random, and ends where the disk does.

use std::path::Path;
use std::sync::Arc;

use fulgurite_store::{Error, ErrorKind, Isolation, KeyKind, Options, Result, Store, Txn};

use super::model::{Oracle, State};
use crate::damage::Lengths;
use crate::frame::{Frame, among_commits};
use crate::proof::{Lives, Timeline, step_rng};
use crate::{PATH, Rng, SimDisk};

/// Steps from this number on are transactions of bulk size.
pub const BULK: u64 = 1 << 32;
/// Steps from this number on write what dictionaries are good for.
pub const WORDS: u64 = 1 << 33;

/// See the module's header.
pub struct Life<'a> {
    pub(super) frame: Frame<'a, Oracle>,
    seed: u64,
    pub(super) rng: Rng,
    pub(super) store: Option<Store>,
    /// What readers see.
    pub visible: State,
    /// What they saw before the last commit.
    pub previous: State,
    /// All commits are synced where the store was opened so: of bytes that rot before they
    /// are, nobody hears.
    pub(crate) all_synced: bool,
    /// If somebody wants to know: what they saw after each commit, and how long the
    /// files were then.
    pub(crate) flushes: Option<Vec<(State, Lengths)>>,
    /// A snapshot kept open, and what it should show.
    reader: Option<(Txn, State)>,
    /// Contexts that stay from statement to statement, and their leases of the log.
    pub(super) crew: Vec<Txn>,
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
        Life::within(Frame::new(disk, options, oracle, timeline), seed).run_steps(steps)
    }
}

impl<'a> Life<'a> {
    /// A life that has not begun.
    pub fn new(disk: &'a SimDisk, options: &Options, oracle: &'a mut Oracle, seed: u64) -> Self {
        Self::within(Frame::new(disk, options, oracle, None), seed)
    }

    fn within(frame: Frame<'a, Oracle>, seed: u64) -> Self {
        Self {
            frame,
            seed,
            rng: Rng::new(seed),
            store: None,
            visible: State::default(),
            previous: State::default(),
            all_synced: false,
            flushes: None,
            reader: None,
            crew: Vec::new(),
        }
    }

    /// Lives until the power is cut or the steps are done, and closes the store
    /// then. Nothing else may fail. Returns whether everything was done.
    pub fn run(self, steps: usize) -> bool {
        let steps: Vec<u64> = (0..steps as u64).collect();
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
                    if *step >= WORDS {
                        self.words()
                    } else if *step >= BULK {
                        self.bulk()
                    } else {
                        self.step()
                    }
                })
            })
            .and_then(|()| self.check())
            .and_then(|()| self.stop());
        if let Err(error) = &done {
            assert!(self.frame.disk.is_stopped(), "{error}");
        }
        done.is_ok()
    }

    pub(super) fn store(&self) -> Result<Store> {
        let closed = || Error::new(ErrorKind::Misuse, "the store is closed");
        self.store.clone().ok_or_else(closed)
    }

    /// Opens the store and finds out which of its possible states it is in.
    pub fn start(&mut self) -> Result<()> {
        let store = open(self.frame.disk, &self.frame.options)?;
        self.frame.oracle.adopt(&store)?;
        self.frame.note();
        self.visible = self.frame.oracle.candidates.newest().clone();
        self.store = Some(store);
        Ok(())
    }

    /// Reads everything, and checks the store's structure.
    pub fn check(&mut self) -> Result<()> {
        let store = self.store()?;
        assert_eq!(self.visible.difference(&store)?, None);
        let problems = store.integrity_check()?;
        if !problems.is_empty() && self.frame.disk.is_stopped() {
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
            None => self.frame.had_no_effect(&self.visible),
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
            // A commit that others may see, and that could not be synced, has failed.
            let mut is_shown = false;
            if refused.is_some() && !self.frame.is_synced() {
                self.frame.oracle.learn_numbers(&store)?;
                let newest = self.frame.oracle.candidates.newest();
                is_shown = newest.difference(&store)?.is_none();
            }
            if !is_shown {
                assert_eq!(self.visible.difference(&store)?, None);
            }
        }
        Ok(refused.is_some())
    }

    /// Closes the store.
    pub fn stop(&mut self) -> Result<()> {
        self.end_reader()?;
        let open = (std::mem::take(&mut self.crew), self.store.take());
        self.frame.closes(|| drop(open));
        Ok(())
    }

    /// Lets time pass, and does something at random.
    pub fn step(&mut self) -> Result<()> {
        if self.frame.elapse(&mut self.rng) {
            self.tick()?;
        }
        match self.rng.below(21) {
            0..=4 => self.statement(),
            5..=9 => self.explicit(),
            10 | 11 => self.checkpoint(),
            12 => self.name_or_drop(),
            13 => {
                self.stop()?;
                self.start()
            }
            14 => self.overlap(),
            18 | 19 => self.in_the_background(Store::checkpoint, true),
            15 => self.end_reader().and_then(|()| self.begin_reader()),
            16 => self.mix(),
            17 => self.burst(),
            20 => self.in_the_background(compact, false),
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

    /// Whether commits are synced before they are acknowledged.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.frame.is_synced()
    }

    /// Makes a checkpoint.
    ///
    /// # Errors
    /// The disk's.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.in_the_background(Store::checkpoint, false)
    }

    /// What the engine does every now and then.
    fn tick(&mut self) -> Result<()> {
        let busy = self.rng.one_in(3);
        self.in_the_background(Store::tick, busy)
    }

    /// Does what makes all that was acknowledged before durable; if `busy`, with
    /// commits between its calls.
    fn in_the_background(&mut self, work: fn(&Store) -> Result<()>, busy: bool) -> Result<()> {
        let store = self.store()?;
        let mark = self.frame.mark();
        if busy {
            let disk = self.frame.disk;
            among_commits(self, disk, || work(&store), Self::commit_or_not)?;
        } else {
            work(&store)?;
        }
        self.frame.covered(&mark);
        Ok(())
    }

    fn commit_or_not(&mut self) -> Result<()> {
        match self.rng.below(8) {
            0 => self.store()?.tick(),
            1 => self.explicit(),
            2 | 3 => self.statement(),
            _ => Ok(()),
        }
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
}

/// Writes all trees anew.
fn compact(store: &Store) -> Result<()> {
    store.compact(|| true).map(drop)
}
