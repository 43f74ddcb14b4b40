//! Savepoints: places in a transaction to roll back to.
//!
//! One is good in the transaction it was taken in, until that ends or goes back to an
//! earlier one. Anywhere else what it remembers of trees and redo makes no sense: a redo
//! that is cut off there is a log record that recovery cannot read. So each knows where
//! it belongs, and is refused elsewhere.

use super::TxnContext;
use crate::error::{Error, Result};
use crate::tree::TreeId;
use crate::tree::fork::Mark;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ranges of undone savepoints that a transaction remembers; the oldest are forgotten,
/// so that one that goes back to ever new savepoints does not grow.
const UNDONE_MAX: usize = 64;

/// A place to roll back to. Taking one costs the same whatever was written.
#[derive(Debug, Clone)]
pub struct Savepoint {
    marks: Vec<(TreeId, Mark)>,
    redo: usize,
    /// The context, and which of its transactions.
    of: (u64, u64),
    /// Which savepoint of the transaction.
    number: u64,
}

/// What a context knows of its savepoints.
pub(super) struct Savepoints {
    /// This context, among all of the process, and which of its transactions it is in.
    of: (u64, u64),
    /// How many this transaction has taken.
    taken: u64,
    /// Those taken after one that it went back to, in order.
    undone: Vec<Range<u64>>,
}

impl Savepoints {
    pub(super) fn new() -> Self {
        static CONTEXTS: AtomicU64 = AtomicU64::new(0);
        Self {
            of: (CONTEXTS.fetch_add(1, Relaxed), 0),
            taken: 0,
            undone: Vec::new(),
        }
    }

    /// The transaction ends: its savepoints are good for nothing any more.
    pub(super) fn end(&mut self) {
        self.of.1 += 1;
        self.taken = 0;
        self.undone.clear();
    }

    fn check(&self, savepoint: &Savepoint) -> Result<()> {
        if savepoint.of != self.of {
            return Err(Error::misuse("the savepoint is of another transaction"));
        }
        match self.undone.iter().any(|r| r.contains(&savepoint.number)) {
            true => Err(Error::misuse(
                "the savepoint is gone: the transaction went back to one taken before it",
            )),
            false => Ok(()),
        }
    }

    /// The transaction went back to this savepoint.
    fn undo_behind(&mut self, savepoint: &Savepoint) {
        let gone = savepoint.number + 1..self.taken;
        while self.undone.pop_if(|r| gone.start <= r.start).is_some() {}
        if !gone.is_empty() {
            if self.undone.len() == UNDONE_MAX {
                self.undone.remove(0);
            }
            self.undone.push(gone);
        }
    }
}

impl TxnContext {
    /// A place to roll back to.
    ///
    /// # Errors
    /// Whatever writing fails with, and there is no savepoint: what was written before it
    /// may have to be copied now.
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        self.write_put_off()?;
        let pool = &self.core.pool;
        let forks = self.forks.iter_mut();
        let number = self.savepoints.taken;
        self.savepoints.taken += 1;
        Ok(Savepoint {
            marks: forks
                .map(|fork| (fork.tree.id(), fork.mark(pool)))
                .collect(),
            redo: self.redo.len(),
            of: self.savepoints.of,
            number,
        })
    }

    /// Puts trees and counts back to what they were; the savepoint stays, those taken
    /// after it are gone.
    ///
    /// # Errors
    /// `Misuse`, and nothing has changed, where the savepoint is of another transaction
    /// or gone; whatever writing fails with.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.savepoints.check(savepoint)?;
        self.settle_spills()?;
        if !self.bulk {
            debug_assert!(savepoint.redo <= self.redo.len());
            self.observe_undone(savepoint.redo);
            self.redo.truncate(savepoint.redo);
        }
        // What was put off before the savepoint was written then.
        self.put_off.clear();
        // Whoever has undone all it wrote has only read, which cannot lose.
        self.wrote = self.bulk || !self.redo.is_empty();
        let mut at = 0;
        while at < self.forks.len() {
            let id = self.forks[at].tree.id();
            let known = savepoint.marks.iter().find(|(tree, _)| *tree == id);
            let watched = self.forks[at].is_watched();
            let mark = match known {
                Some((_, mark)) => mark.clone(),
                None => self.forks[at].first_mark(),
            };
            let made = self.forks[at].rewind(&mark, &self.core.pool);
            self.abandon(at, made, watched);
            if known.is_none() && self.forks[at].created {
                self.core.forget_tree(id);
                self.forks.remove(at);
            } else {
                at += 1;
            }
        }
        self.savepoints.undo_behind(savepoint);
        Ok(())
    }
}
