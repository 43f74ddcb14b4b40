//! Savepoints: places in a transaction to roll back to.
//!
//! A savepoint names a place that the context keeps: what trees and redo were then. It is
//! good in the transaction it was taken in, until that ends, goes back to an earlier one,
//! or lets go of it or an earlier one. Anywhere else what is remembered of trees and redo
//! makes no sense: a redo that is cut off there is a log record that recovery cannot read.
//! So each says where it belongs, and is refused elsewhere.
//!
//! Of what is written after one, each entry is noted as it was, and put back to go back.
//! Where that becomes too much, or a tree is made, dropped or emptied, the last savepoint
//! has the nodes of that moment kept: they are copied again before they are edited, and
//! nothing is noted any more. To go back is then to take up those nodes, and to put back
//! what was noted before. So few entries cost no copies of their pages, and many cost no
//! more memory than those.
//!
//! Nodes are kept while the savepoint is good. Who takes many, as statements of several
//! rows do, lets go of each, or the transaction grows by all that they changed, however
//! small the tree is.

use super::{TxnContext, TxnState, no_slot};
use crate::error::{Error, ErrorKind, Result};
use crate::tree::edit::IfExists;
use crate::tree::mark::Mark;
use crate::tree::undo::{Before, Undo};
use crate::tree::{Tree, TreeId};
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
    /// What trees were when each had their nodes kept, in the order of the places, and for
    /// each place by their numbers.
    marks: Vec<(TreeId, Mark)>,
    /// What was written since the first of them.
    pub(super) undo: Undo,
    /// A write failed midway, so that a fork and the redo may differ: what is noted cannot be
    /// put back any more, and what there is not be committed. Only nodes that were kept
    /// before are to be had again.
    is_torn: bool,
}

/// Where a savepoint was taken.
struct Place {
    number: u64,
    redo: usize,
    /// How much was noted by then.
    noted: usize,
    /// Where its marks begin; it has none unless it has nodes kept.
    marks: usize,
    /// How much was noted when it had nodes kept, which nothing was since, until the next
    /// place was taken.
    kept_at: Option<usize>,
}

impl Savepoints {
    pub(super) fn new() -> Self {
        static CONTEXTS: AtomicU64 = AtomicU64::new(0);
        Self {
            of: (CONTEXTS.fetch_add(1, Relaxed), 0),
            taken: 0,
            places: Vec::new(),
            marks: Vec::new(),
            undo: Undo::default(),
            is_torn: false,
        }
    }

    /// Takes note of how a write ended that may have failed midway.
    #[inline]
    pub(super) fn note_written<R>(&mut self, written: &Result<R>) {
        // What is too big is so before anything was done.
        self.is_torn |= written
            .as_ref()
            .is_err_and(|error| error.kind() != ErrorKind::TooBig);
    }

    /// A part of what was to be written was given up.
    pub(super) fn note_torn(&mut self) {
        self.is_torn = true;
    }

    /// Before what is written is committed.
    pub(super) fn check_whole(&self) -> Result<()> {
        match self.is_torn {
            false => Ok(()),
            true => Err(Error::misuse(
                "an operation of the transaction failed midway, and that was not rolled back: \
                 nothing of it is committed",
            )),
        }
    }

    /// The transaction ends: its savepoints are good for nothing any more.
    #[inline]
    pub(super) fn end(&mut self) {
        self.of.1 += 1;
        self.taken = 0;
        self.places.clear();
        self.marks.clear();
        self.undo.clear();
        self.is_torn = false;
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

    /// The first from this place on that has nodes kept.
    fn first_kept(&self, from: usize) -> Option<usize> {
        let later = self.places.iter().skip(from);
        Some(from + later.take_while(|place| place.kept_at.is_none()).count())
            .filter(|at| *at < self.places.len())
    }

    /// The last of so many that has.
    fn last_kept(&self, places: usize) -> Option<usize> {
        self.places[..places]
            .iter()
            .rposition(|place| place.kept_at.is_some())
    }

    /// Lets go of the places from this one on, and of what only they need.
    #[inline]
    fn forget_from(&mut self, place: usize) {
        self.places.truncate(place);
        match self.places.last() {
            None => self.undo.clear(),
            Some(last) => self.undo.is_on = last.kept_at.is_none(),
        }
    }

    /// After another place than before is the last one that has nodes kept.
    fn note_on(&mut self) {
        let kept = self.last_kept(self.places.len());
        let kept_at = kept.and_then(|at| self.places[at].kept_at);
        self.undo.set_kept(kept_at.unwrap_or(0));
        match self.places.last() {
            Some(Place {
                kept_at: Some(noted),
                ..
            }) => {
                self.undo.truncate(*noted);
                self.undo.is_on = false;
            }
            Some(_) => self.undo.is_on = true,
            None => self.undo.clear(),
        }
    }

    /// What trees were when this place had its nodes kept.
    fn marks_of(&self, place: Option<usize>) -> Marks<'_> {
        let marks = place.map_or(&[][..], |place| {
            let to = self.places.get(place + 1).map(|next| next.marks);
            &self.marks[self.places[place].marks..to.unwrap_or(self.marks.len())]
        });
        Marks { marks, next: 0 }
    }
}

/// The marks of a place. They are looked for in the order of the forks, which is nearly that
/// of the trees: those of a transaction that makes many trees are found without a search.
struct Marks<'m> {
    marks: &'m [(TreeId, Mark)],
    next: usize,
}

impl<'m> Marks<'m> {
    /// What a tree was, if the transaction had written to it.
    fn find(&mut self, tree: TreeId) -> Option<&'m Mark> {
        let is_next = |(of, _): &&(TreeId, Mark)| *of == tree;
        if self.marks.get(self.next).filter(is_next).is_none() {
            let found = self.marks.binary_search_by_key(&tree, |(of, _)| *of);
            self.next = found.ok()?;
        }
        let (_, mark) = self.marks.get(self.next)?;
        self.next += 1;
        Some(mark)
    }
}

impl TxnContext {
    /// A place to roll back to.
    ///
    /// # Errors
    /// Whatever writing fails with, and there is no savepoint: what was written before it
    /// may have to be copied now. `Misuse` where an operation failed midway before it: what
    /// it left is no state to go back to, and where no transaction is under way.
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        if self.state == TxnState::Idle {
            return Err(no_slot());
        }
        if self.savepoints.is_torn {
            return Err(torn());
        }
        self.write_put_off()?;
        self.give_up_outdated()?;
        let savepoints = &mut self.savepoints;
        let number = savepoints.taken;
        savepoints.places.push(Place {
            number,
            redo: self.redo.len(),
            noted: savepoints.undo.len(),
            marks: savepoints.marks.len(),
            kept_at: None,
        });
        savepoints.taken += 1;
        savepoints.undo.is_on = true;
        let of = savepoints.of;
        if self.bulk || savepoints.undo.is_crowded() {
            let place = savepoints.places.len() - 1;
            let kept = self.keep_nodes();
            kept.inspect_err(|_| self.savepoints.forget_from(place))?;
        }
        Ok(Savepoint { of, number })
    }

    /// Has the last savepoint go back to the nodes of this moment, if it notes what is
    /// written until now; and has in the forks what was put off.
    pub(super) fn keep_nodes(&mut self) -> Result<()> {
        self.write_put_off()?;
        match self.savepoints.undo.is_on {
            true => self.keep_nodes_noted(),
            false => Ok(()),
        }
    }

    #[cold]
    fn keep_nodes_noted(&mut self) -> Result<()> {
        if self.savepoints.is_torn {
            return Err(torn());
        }
        self.give_up_outdated()?;
        let savepoints = &mut self.savepoints;
        let noted = savepoints.undo.len();
        if let Some(last) = savepoints.places.last_mut() {
            last.kept_at = Some(noted);
            let pool = &self.core.pool;
            let forks = self.forks.iter_mut();
            let marks = forks.map(|fork| (fork.tree.id(), fork.mark(pool)));
            let first = savepoints.marks.len();
            savepoints.marks.extend(marks);
            // Forks are nearly in this order: new trees have greater numbers.
            savepoints.marks[first..].sort_by_key(|(tree, _)| *tree);
        }
        savepoints.note_on();
        Ok(())
    }

    /// Puts trees and counts back to what they were; the savepoint stays, those taken
    /// after it are gone.
    ///
    /// # Errors
    /// `Misuse`, and nothing has changed, where the savepoint is of another transaction
    /// or gone. Whatever writing fails with, also where an operation since the savepoint
    /// failed midway with that: the transaction has to be rolled back then.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let place = self.savepoints.find(savepoint)?;
        let kept = self.savepoints.first_kept(place);
        if self.savepoints.is_torn && kept.is_none() {
            return Err(torn());
        }
        self.settle_spills()?;
        // What was put off before the savepoint was written then.
        self.put_off.clear();
        let written = match self.bulk {
            true => self.changed_trees(),
            false => Vec::new(),
        };
        if let Some(kept) = kept {
            self.take_up_kept(place, kept);
        }
        self.savepoints.places.truncate(place + 1);
        let Place { redo, noted, .. } = self.savepoints.places[place];
        self.put_back(noted)?;
        self.savepoints.note_on();
        if !self.bulk {
            debug_assert!(redo <= self.redo.len());
            self.observe_undone(redo);
            self.redo.truncate(redo);
            self.forget_compared(redo);
        }
        self.observe_unwritten(&written);
        // Whoever has undone all it wrote has only read, which cannot lose.
        self.wrote = self.bulk || !self.redo.is_empty();
        Ok(())
    }

    /// Without a redo nobody knows which writes to these trees are undone, and what they
    /// answered. As long as one is left the tree is validated as a whole; otherwise it was
    /// read as a whole.
    fn observe_unwritten(&self, written: &[Tree]) {
        let Some(reads) = self.reads.as_ref().filter(|_| self.observes) else {
            return;
        };
        let is_changed = |tree: &Tree| {
            let fork = self.fork_of(tree.id());
            fork.is_some_and(|at| self.forks[at].changed)
        };
        let unwritten = written.iter().filter(|tree| !is_changed(tree));
        unwritten.for_each(|tree| reads.lock().whole(tree));
    }

    /// Goes back to the nodes that the place `kept` has; the places from `place` on have
    /// none then.
    fn take_up_kept(&mut self, place: usize, kept: usize) {
        let before = self.savepoints.last_kept(place);
        let mut at = 0;
        while at < self.forks.len() {
            let id = self.forks[at].tree.id();
            let known = self.savepoints.marks_of(Some(kept)).find(id).cloned();
            let watched = self.forks[at].is_watched();
            let is_known = known.is_some();
            let mark = known.unwrap_or_else(|| self.forks[at].first_mark());
            let made = self.forks[at].rewind(&mark, &self.core.pool);
            self.abandon(at, made, watched);
            if !is_known && self.forks[at].created {
                self.core.forget_tree(id);
                self.forks.remove(at);
            } else {
                let before = self.savepoints.marks_of(before).find(id);
                self.forks[at].let_go(Some(&mark), before);
                at += 1;
            }
        }
        let savepoints = &mut self.savepoints;
        savepoints.marks.truncate(savepoints.places[place].marks);
        if let Some(noted) = savepoints.places[kept].kept_at {
            savepoints.undo.truncate(noted);
        }
        savepoints.is_torn = false;
        savepoints.places[place].kept_at = None;
    }

    /// Puts back what was noted, up to so much of it.
    fn put_back(&mut self, up_to: usize) -> Result<()> {
        let mut undo = std::mem::take(&mut self.savepoints.undo);
        let mut outcome = Ok(());
        while undo.len() > up_to
            && outcome.is_ok()
            && let Some(before) = undo.last()
        {
            undo.truncate(undo.len() - 1);
            outcome = self.put_back_one(&before);
        }
        self.savepoints.undo = undo;
        self.savepoints.is_torn |= outcome.is_err();
        outcome
    }

    fn put_back_one(&mut self, before: &Before) -> Result<()> {
        let Some(at) = self.fork_of(before.tree) else {
            return Err(Error::corrupt("what is undone is in no tree"));
        };
        let key = before.key.as_key();
        match &before.value {
            Some(value) => self.put_in(at, key, value, IfExists::Replace).map(|_| ())?,
            None => self.delete_in(at, key).map(|_| ())?,
        }
        self.forks[at].was_put_back();
        Ok(())
    }

    /// Lets go of a savepoint and of those taken after it. What was written since stays,
    /// and nobody can go back to them any more.
    ///
    /// # Errors
    /// `Misuse`, and nothing has changed, where the savepoint is of another transaction
    /// or gone.
    pub fn release(&mut self, savepoint: &Savepoint) -> Result<()> {
        let place = self.savepoints.find(savepoint)?;
        let savepoints = &mut self.savepoints;
        let mut gone = savepoints.first_kept(place);
        let Some(kept) = gone else {
            savepoints.forget_from(place);
            return Ok(());
        };
        let mut last = savepoints.last_kept(place);
        let mut marks = savepoints.places[place].marks;
        // What was written since then was not noted: the place before goes back to those
        // nodes first, too.
        if let Some(before) = place.checked_sub(1)
            && savepoints.places[before].kept_at.is_none()
        {
            savepoints.places[before].kept_at = savepoints.places[kept].kept_at;
            let next = savepoints.places.get(kept + 1);
            marks = next.map_or(savepoints.marks.len(), |next| next.marks);
            last = Some(kept);
            gone = savepoints.first_kept(kept + 1);
        }
        if gone.is_some() {
            let (mut marks, mut before) = (savepoints.marks_of(gone), savepoints.marks_of(last));
            for fork in self.forks.iter_mut() {
                let tree = fork.tree.id();
                fork.let_go(marks.find(tree), before.find(tree));
            }
        }
        savepoints.marks.truncate(marks);
        savepoints.forget_from(place);
        savepoints.note_on();
        Ok(())
    }
}

#[cold]
fn torn() -> Error {
    Error::misuse("an operation failed midway: roll back the transaction")
}
