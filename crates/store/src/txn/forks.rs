//! The forks of a transaction, and how many nodes they hold unwritten.
//!
//! That number is asked for before every edit, so of many forks it is not summed up anew:
//! whoever may change one gets it from here, so only the one that was handed out last can
//! differ from what was counted.

use super::by_tree::{ByTree, OfTree};
use crate::tree::TreeId;
use crate::tree::fork::Fork;
use std::ops::{Deref, DerefMut, Index, IndexMut};

impl OfTree for Fork {
    #[inline]
    fn tree_id(&self) -> TreeId {
        self.tree.id()
    }
}

/// The forks, in the order in which they were made.
#[derive(Default)]
pub(super) struct Forks {
    forks: ByTree<Fork>,
    /// The one that was handed out to be changed last.
    last: usize,
    /// What all others hold; `None` where any of them may have changed since it was counted.
    others_hold: Option<usize>,
}

/// Nodes a fork made and has not handed over; after a rewind perhaps fewer than
/// there are, since it is not counted which of them were.
#[inline]
pub(super) fn unwritten(fork: &Fork) -> usize {
    fork.own.len().saturating_sub(fork.spilled)
}

impl Forks {
    /// Where the fork of a tree is.
    #[inline]
    pub(super) fn find(&self, tree: TreeId) -> Option<usize> {
        self.forks.find(tree)
    }

    /// Adds one; its place.
    pub(super) fn push(&mut self, fork: Fork) -> usize {
        let holds = unwritten(&fork);
        let at = self.forks.push(fork);
        match at {
            0 => (self.last, self.others_hold) = (0, Some(0)),
            _ => self.others_hold = self.others_hold.map(|others| others + holds),
        }
        at
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.others_hold = None;
        self.forks.remove(at);
    }

    /// Takes out all; those that a list has room for up to so many go there.
    pub(super) fn retire(&mut self, list: &mut Vec<Fork>, most: usize) {
        self.others_hold = None;
        let room = most.saturating_sub(list.len());
        list.extend(self.forks.drain().take(room));
        self.forks.clear();
    }

    /// Nodes that they hold unwritten.
    #[inline]
    pub(super) fn held(&self) -> usize {
        let all = || self.forks.iter().map(unwritten).sum();
        let held = self.others_hold.map(|others| others + self.last_holds());
        debug_assert!(held.is_none_or(|held| held == all()));
        held.unwrap_or_else(all)
    }

    #[inline]
    fn last_holds(&self) -> usize {
        self.forks.get(self.last).map_or(0, unwritten)
    }

    /// Before another one than the last is handed out.
    fn turn_to(&mut self, at: usize) {
        let held = self.held();
        self.others_hold = Some(held - self.forks.get(at).map_or(0, unwritten));
        self.last = at;
    }
}

impl Deref for Forks {
    type Target = [Fork];

    #[inline]
    fn deref(&self) -> &[Fork] {
        &self.forks
    }
}

impl DerefMut for Forks {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Fork] {
        self.others_hold = None;
        &mut self.forks
    }
}

impl Index<usize> for Forks {
    type Output = Fork;

    #[inline]
    fn index(&self, at: usize) -> &Fork {
        &self.forks[at]
    }
}

impl IndexMut<usize> for Forks {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut Fork {
        if self.last != at || self.others_hold.is_none() {
            self.turn_to(at);
        }
        &mut self.forks[at]
    }
}
