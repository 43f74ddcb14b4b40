//! The trees of a transaction: the version of each that it reads, and the fork that it
//! writes to.

use super::by_tree::OfTree;
use super::{TxnContext, TxnState, hold};
use crate::error::{Conflict, Error, Result};
use crate::node::Key;
use crate::tree::fork::Fork;
use crate::tree::versions::Root;
use crate::tree::{EMPTY, Tree, TreeId};

/// A tree's root as this transaction sees it, if it has not written to it.
pub(super) struct View {
    pub(super) tree: TreeId,
    pub(super) root: Root,
}

impl OfTree for View {
    #[inline]
    fn tree_id(&self) -> TreeId {
        self.tree
    }
}

impl TxnContext {
    pub(super) fn fork_of(&self, tree: TreeId) -> Option<usize> {
        self.forks.find(tree)
    }

    /// Fails for a key that is not of the tree's kind, and for another store's tree.
    #[inline]
    pub(super) fn check(&self, tree: &Tree, key: Key<'_>) -> Result<()> {
        match tree.kind().fits(key) {
            true => self.check_own(tree),
            false => Err(Error::wrong_kind(tree)),
        }
    }

    /// Fails for another store's tree, whose pages are not to be found here.
    #[inline]
    pub(super) fn check_own(&self, tree: &Tree) -> Result<()> {
        match tree.0.store == self.core.number {
            true => Ok(()),
            false => Err(foreign(tree)),
        }
    }

    /// The version of a tree at this transaction's snapshot.
    #[inline]
    pub(super) fn view(&mut self, tree: &Tree) -> Result<usize> {
        if self.state == TxnState::Idle {
            return Err(Error::misuse("no transaction is under way"));
        }
        match self.views.find(tree.id()) {
            Some(at) => Ok(at),
            None => self.make_view(tree),
        }
    }

    pub(super) fn make_view(&mut self, tree: &Tree) -> Result<usize> {
        self.check_own(tree)?;
        if self.hold != hold::Hold::None {
            self.touch(tree)?;
        } else if !self.pinned && !self.locked.holds(tree.id()) {
            self.pin_late()?;
        }
        let mut root = tree.0.versions.at(self.seq);
        if root.is_none() && self.hold != hold::Hold::None {
            // That a tree is not there is nothing to be held.
            self.need_snapshot();
            root = tree.0.versions.at(self.seq);
        }
        let root = match root {
            Some(root) if root.dropped => return Err(dropped(tree)),
            Some(root) => root,
            None => self.not_yet(tree)?,
        };
        Ok(self.views.push(View {
            tree: tree.id(),
            root,
        }))
    }

    /// A tree that this transaction does not see: empty, if it was made since its snapshot.
    /// One whose making is not committed is nobody else's yet, and may never be there; and
    /// a statement that locked it has to have it as it is. Who is told that it is not there
    /// finds it so to the end.
    #[cold]
    pub(super) fn not_yet(&mut self, tree: &Tree) -> Result<Root> {
        let is_there = tree.0.versions.head().is_some();
        let was_absent = self.absent.contains(&tree.id());
        if is_there && !was_absent && !self.locked.holds(tree.id()) {
            return Ok(EMPTY);
        }
        if !was_absent {
            self.absent.push(tree.id());
        }
        Err(not_there(tree))
    }

    /// The fork that a tree is read in, if this transaction wrote to it and has not dropped it.
    #[inline]
    pub(super) fn fork_to_read(&self, tree: &Tree) -> Result<Option<usize>> {
        match self.fork_of(tree.id()) {
            Some(at) if self.forks[at].dropped => Err(dropped(tree)),
            at => Ok(at),
        }
    }

    /// The fork of a tree that is about to be written to, made when it first is. A
    /// transaction that has grown too large for the log takes its locks here, so that
    /// nothing is written where they are refused.
    #[inline]
    pub(super) fn fork(&mut self, tree: &Tree) -> Result<usize> {
        if self.redo.len() >= self.bulk_at && !self.is_whole {
            self.outgrow_log()?;
        }
        match self.fork_of(tree.id()) {
            Some(at) if !self.forks[at].dropped => Ok(at),
            Some(_) => Err(dropped(tree)),
            None => self.make_fork(tree),
        }
    }

    pub(super) fn make_fork(&mut self, tree: &Tree) -> Result<usize> {
        self.check_own(tree)?;
        self.check_writes()?;
        if self.state == TxnState::Statement && !self.locked.holds(tree.id()) {
            return Err(Error::misuse(format!(
                "{} was not named when the statement began",
                Conflict::over(tree, None)
            )));
        }
        self.lock_for_bulk(tree)?;
        let view = self.view(tree);
        let view = view.inspect_err(|error| self.observe_absence(tree, error))?;
        let base = self.views[view].root;
        let fork = self.new_fork(tree, base);
        Ok(self.forks.push(fork))
    }

    pub(super) fn new_fork(&mut self, tree: &Tree, base: Root) -> Fork {
        let same = |fork: &Fork| fork.tree.id() == tree.id();
        let retired = self.retired.iter().position(same);
        let last = self.retired.len().checked_sub(1);
        match retired.or(last) {
            Some(at) => {
                let mut fork = self.retired.swap_remove(at);
                fork.restart(tree, base, self.seq, &self.core.pool);
                fork
            }
            None => Fork::new(tree.clone(), base, self.seq, &self.core.pool),
        }
    }
}

pub(super) fn dropped(tree: &Tree) -> Error {
    Error::misuse(format!("{} was dropped", Conflict::over(tree, None)))
}

pub(super) fn not_there(tree: &Tree) -> Error {
    Error::misuse(format!(
        "{} is not there: what made it was not committed, or is not yet",
        Conflict::over(tree, None)
    ))
}

#[cold]
fn foreign(tree: &Tree) -> Error {
    Error::misuse(format!(
        "{} is one of another store",
        Conflict::over(tree, None)
    ))
}
