//! Removing all entries of a tree, which stays.
//!
//! The tree gets a new, empty root, and what lay under the old one dies as a whole, as
//! that of a tree that is dropped. Who depends on all that was there, or has nobody to lose
//! against, says just that in its redo: its commit is refused where somebody else changed
//! the tree, so the operation is never replayed onto what others published.
//!
//! Under `snapshot` a transaction depends on what it wrote alone. Its redo and what its
//! commit validates are those of a deletion of every entry that was there, so that one that
//! others overlap is replayed onto what they published and leaves their new entries alone.
//! So are those of the families' names, which others may add to while writers are
//! excluded. A bulk transaction keeps no redo and does not look at the entries at all.

use super::redo::Op;
use super::{TxnContext, TxnState, no_slot};
use crate::error::Result;
use crate::names::NAMES;
use crate::node::Key;
use crate::reclaim::{Dead, owned};
use crate::tree::cursor::{Cursor, Seek};
use crate::tree::{KeyKind, Tree};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Entries between two questions whether to go on.
const LOOK: usize = 4_096;

impl TxnContext {
    /// Removes all entries; how many there were. `goes_on` is asked now and then: where it
    /// says no, the answer is `None`, and none is removed.
    ///
    /// # Errors
    /// As those of a deletion.
    pub fn clear(&mut self, tree: &Tree, mut goes_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        self.check_own(tree)?;
        self.keep_nodes()?;
        if self.observes {
            self.depend_on(tree);
        }
        let at = self.fork(tree)?;
        let is_logged = match self.clears_at_once(tree) {
            true => goes_on(),
            false => self.bulk || self.log_all_deletions(tree, &mut goes_on)?,
        };
        if !is_logged {
            return Ok(None);
        }
        self.wrote = true;
        let fork = &self.forks[at];
        let (root, count) = (fork.root, fork.count);
        let mut dead = vec![Dead::subtree(root, 0)];
        if root.is_none() {
            dead.clear();
        } else if !fork.own.is_empty() {
            // What it made itself can be given up before it ends, node by node.
            let slot = self.slot.as_ref().ok_or_else(no_slot)?;
            dead = owned::nodes_of(&self.core, slot, Dead::subtree(root, 0), tree.id().0)?;
        }
        let fork = &mut self.forks[at];
        fork.settle(&self.core.pool);
        fork.become_empty(&self.core.pool, dead);
        if !root.is_none() && self.clears_at_once(tree) {
            let tree = tree.id().0;
            self.log(Op::Clear { tree });
        }
        Ok(Some(count))
    }

    /// Empties a tree that nobody else changes before the transaction ends, for who writes
    /// it anew; a cursor over what it held. `None`, and nothing is done, where somebody may.
    ///
    /// # Errors
    /// As those of a deletion.
    pub fn take_all(&mut self, tree: &Tree) -> Result<Option<Cursor>> {
        let is_alone = match self.state {
            TxnState::Statement | TxnState::Immediate => true,
            TxnState::Optimistic => self.bulk && self.locked.holds(tree.id()),
            TxnState::Idle | TxnState::Read => false,
        };
        if !is_alone {
            return Ok(None);
        }
        // As the tree is now, whatever is written later.
        let mut entries = self.cursor_to_estimate(tree)?;
        entries.seek(Seek::First)?;
        self.clear(tree, || true)?;
        Ok(Some(entries))
    }

    /// Whether its redo says no more than that the tree is empty.
    fn clears_at_once(&self, tree: &Tree) -> bool {
        let depends_on_all = self.state != TxnState::Optimistic || self.observes;
        depends_on_all && !self.bulk && tree.id() != NAMES
    }

    /// Appends the deletions of all entries to the redo, unless it becomes too long for one.
    /// False: it was told not to go on. Where it comes to no end the redo is as it was: the
    /// fork has all entries, and what the log says of it must be the same.
    fn log_all_deletions(
        &mut self,
        tree: &Tree,
        goes_on: &mut impl FnMut() -> bool,
    ) -> Result<bool> {
        let (redo, wrote) = (self.redo.len(), self.wrote);
        // Whoever is asked may panic.
        let logging = AssertUnwindSafe(|| self.log_deletions(tree, goes_on));
        let logged = catch_unwind(logging);
        if !matches!(logged, Ok(Ok(true))) {
            self.redo.truncate(redo);
            self.wrote = wrote;
        }
        logged.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn log_deletions(&mut self, tree: &Tree, goes_on: &mut impl FnMut() -> bool) -> Result<bool> {
        let mut entries = self.cursor_to_estimate(tree)?;
        let mut more = entries.seek(Seek::First)?;
        let mut until_look = LOOK;
        while more && !self.bulk {
            let key = match tree.kind() {
                KeyKind::Int => Key::Int(entries.key_int()),
                KeyKind::Bytes => Key::Bytes(entries.key_bytes()?),
            };
            let tree = tree.id().0;
            self.log(Op::Delete { tree, key });
            if self.redo.len() >= self.bulk_at && !self.is_whole {
                self.outgrow_log()?;
            }
            until_look -= 1;
            if until_look == 0 {
                if !goes_on() {
                    return Ok(false);
                }
                until_look = LOOK;
            }
            more = entries.next()?;
        }
        Ok(true)
    }
}
