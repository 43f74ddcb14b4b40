//! Savepoints: places in a transaction to roll back to.
//!
//! A savepoint names a place that the context keeps: what trees and redo were then. It is
//! good in the transaction it was taken in, until that ends, goes back to an earlier one,
//! or lets go of it or an earlier one. Anywhere else what is remembered of trees and redo
//! makes no sense: a redo that is cut off there is a log record that recovery cannot read.
//! So each says where it belongs, and is refused elsewhere.
//!
//! What a savepoint shows is kept while it is good: nodes are copied again before they are
//! edited, and those copied stay. Who takes many, as statements of several rows do, lets go
//! of each, or the transaction grows by all that they changed, however small the tree is.

use super::TxnContext;
use crate::error::{Error, Result};
use crate::tree::TreeId;
use crate::tree::fork::Mark;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A place to roll back to. Taking one costs the same whatever was written.
#[derive(Debug, Clone)]
pub struct Savepoint {
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
    /// Those that are good, in order.
    places: Vec<Place>,
    /// What trees were at each of them, in the order of the places.
    marks: Vec<(TreeId, Mark)>,
}

/// Where a savepoint was taken.
struct Place {
    number: u64,
    redo: usize,
    /// Where its marks begin.
    marks: usize,
}

impl Savepoints {
    pub(super) fn new() -> Self {
        static CONTEXTS: AtomicU64 = AtomicU64::new(0);
        Self {
            of: (CONTEXTS.fetch_add(1, Relaxed), 0),
            taken: 0,
            places: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// The transaction ends: its savepoints are good for nothing any more.
    #[inline]
    pub(super) fn end(&mut self) {
        self.of.1 += 1;
        self.taken = 0;
        self.places.clear();
        self.marks.clear();
    }

    /// Which of the places a savepoint names.
    fn find(&self, savepoint: &Savepoint) -> Result<usize> {
        if savepoint.of != self.of {
            return Err(Error::misuse("the savepoint is of another transaction"));
        }
        let number = |place: &Place| place.number;
        let place = self.places.binary_search_by_key(&savepoint.number, number);
        place.map_err(|_| {
            Error::misuse(
                "the savepoint is gone: the transaction let go of it, or of one taken before \
                 it, or went back to one",
            )
        })
    }

    /// Keeps so many places and forgets the later ones.
    fn keep(&mut self, places: usize) {
        if let Some(first) = self.places.get(places) {
            self.marks.truncate(first.marks);
            self.places.truncate(places);
        }
    }

    /// What a tree was at a place, if the transaction had written to it.
    fn mark(&self, place: Option<usize>, tree: TreeId) -> Option<&Mark> {
        let place = place?;
        let to = self.places.get(place + 1).map(|next| next.marks);
        let mut marks = self.marks[self.places[place].marks..to.unwrap_or(self.marks.len())].iter();
        marks.find(|(of, _)| *of == tree).map(|(_, mark)| mark)
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
        self.give_up_outdated()?;
        let savepoints = &mut self.savepoints;
        let number = savepoints.taken;
        savepoints.taken += 1;
        savepoints.places.push(Place {
            number,
            redo: self.redo.len(),
            marks: savepoints.marks.len(),
        });
        let pool = &self.core.pool;
        let forks = self.forks.iter_mut();
        let marks = forks.map(|fork| (fork.tree.id(), fork.mark(pool)));
        savepoints.marks.extend(marks);
        Ok(Savepoint {
            of: savepoints.of,
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
        let place = self.savepoints.find(savepoint)?;
        self.settle_spills()?;
        self.savepoints.keep(place + 1);
        let redo = self.savepoints.places[place].redo;
        if !self.bulk {
            debug_assert!(redo <= self.redo.len());
            self.observe_undone(redo);
            self.redo.truncate(redo);
        }
        // What was put off before the savepoint was written then.
        self.put_off.clear();
        // Whoever has undone all it wrote has only read, which cannot lose.
        self.wrote = self.bulk || !self.redo.is_empty();
        let mut at = 0;
        while at < self.forks.len() {
            let id = self.forks[at].tree.id();
            let known = self.savepoints.mark(Some(place), id).cloned();
            let watched = self.forks[at].is_watched();
            let is_known = known.is_some();
            let mark = known.unwrap_or_else(|| self.forks[at].first_mark());
            let made = self.forks[at].rewind(&mark, &self.core.pool);
            self.abandon(at, made, watched);
            if !is_known && self.forks[at].created {
                self.core.forget_tree(id);
                self.forks.remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Lets go of a savepoint and of those taken after it. What was written since stays,
    /// and nobody can go back to them any more.
    ///
    /// # Errors
    /// `Misuse`, and nothing has changed, where the savepoint is of another transaction
    /// or gone.
    pub fn release(&mut self, savepoint: &Savepoint) -> Result<()> {
        let savepoints = &mut self.savepoints;
        let place = savepoints.find(savepoint)?;
        for fork in &mut self.forks {
            let mark = |place| savepoints.mark(place, fork.tree.id());
            let (mark, before) = (mark(Some(place)), mark(place.checked_sub(1)));
            fork.let_go(mark, before);
        }
        savepoints.keep(place);
        Ok(())
    }
}
