//! Places in a fork's life that it can go back to.
//!
//! A mark is the root, the lengths of the two lists and the counters. A savepoint has one
//! made where it keeps nodes. Making one ends the generation (rule 2 of `fork.rs`), so that
//! what it refers to stays as it is; going back frees what was made since. What was made and
//! replaced since the last mark that is good, and that no open cursor sees, nobody needs: it
//! is given up.

use super::fork::Fork;
use crate::cache::{ChildRef, Pool};
use crate::reclaim::Dead;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Where [`Fork::rewind`] goes back to.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    root: ChildRef,
    count: u64,
    own: usize,
    replaced: usize,
    outdated: usize,
    needed: usize,
    max_key: Option<i64>,
    dropped: bool,
    changed: bool,
}

impl Fork {
    pub(crate) fn mark(&mut self, pool: &Pool) -> Mark {
        self.seal(pool);
        self.marked = (self.own.len(), self.replaced.len());
        Mark {
            root: self.root,
            count: self.count,
            own: self.own.len(),
            replaced: self.replaced.len(),
            outdated: self.outdated,
            needed: self.needed,
            max_key: self.max_key,
            dropped: self.dropped,
            changed: self.changed,
        }
    }

    /// The mark of a fork that did not exist when the savepoint was taken.
    pub(crate) fn first_mark(&self) -> Mark {
        Mark {
            root: self.base.node,
            count: self.base.count,
            own: 0,
            replaced: 0,
            outdated: 0,
            needed: 0,
            max_key: None,
            dropped: self.base.dropped,
            changed: self.created,
        }
    }

    /// Goes back to a mark; returns the nodes that were made since, which the
    /// caller frees.
    pub(crate) fn rewind(&mut self, mark: &Mark, pool: &Pool) -> Vec<ChildRef> {
        self.root = mark.root;
        self.count = mark.count;
        self.replaced.truncate(mark.replaced);
        self.max_key = mark.max_key;
        self.dropped = mark.dropped;
        self.changed = mark.changed;
        self.edits += 1;
        self.spilled_to = self.spilled_to.min(mark.own);
        self.spilled = self.spilled.min(mark.own);
        self.outdated = mark.outdated;
        self.needed = mark.needed;
        self.copied = None;
        self.marked = (mark.own, mark.replaced);
        self.watched = self.marked;
        let made = self.own.split_off(mark.own.min(self.own.len()));
        self.passed_by.retain(|node| !made.contains(node));
        self.seal(pool);
        made
    }

    /// A mark and those after it are let go of, so that the one before it is the last,
    /// or there is none: what was found needed since then may not be any more.
    pub(crate) fn let_go(&mut self, mark: Option<&Mark>, before: Option<&Mark>) {
        self.marked = before.map_or((0, 0), |mark| (mark.own, mark.replaced));
        self.needed = mark.map_or(0, |mark| mark.needed);
    }

    /// Whether of its nodes one in so many was copied since it was last looked which of
    /// them are needed, and so many at least.
    pub(crate) fn is_outdated(&self, least: usize, one_in: usize) -> bool {
        self.outdated.saturating_sub(self.needed) >= least.max(self.own.len() / one_in)
    }

    /// A cursor over it as it is now: what it sees is not edited in place any more.
    pub(crate) fn watch(&mut self) -> Arc<()> {
        self.observed = true;
        self.watched = (self.own.len(), self.replaced.len());
        self.cursors.clone()
    }

    /// Takes out what the fork both made and replaced since the last mark and since a cursor
    /// that may be open was opened, which nobody can reach any more; the caller frees it.
    /// Nothing may be on its way to the disk.
    pub(crate) fn give_up_replaced(&mut self, pool: &Pool) -> Vec<ChildRef> {
        let (mut own, mut replaced) = self.marked;
        if self.is_watched() {
            own = own.max(self.watched.0);
            replaced = replaced.max(self.watched.1);
        }
        let is_own = |dead: &Dead| !dead.subtree && dead.birth >= self.base_seq;
        // A node is known by its handle to who made it and may be by its extent to who
        // replaced it.
        let place = |node: ChildRef| pool.resolved(node).reference;
        let late = self
            .replaced
            .iter()
            .skip(replaced)
            .filter(|dead| is_own(dead));
        let replaced_since: FxHashSet<u64> = late.map(|dead| place(dead.node)).collect();
        let mut gone = FxHashSet::default();
        let (mut at, mut looked_at) = (own, 0);
        let dead = self.own.extract_if(own.., |node| {
            let place = place(*node);
            let is_dead = replaced_since.contains(&place);
            if is_dead {
                gone.insert(place);
                looked_at += usize::from(at < self.spilled_to);
            }
            at += 1;
            is_dead
        });
        let dead: Vec<ChildRef> = dead.collect();
        self.outdated = self.outdated.saturating_sub(dead.len());
        self.needed = self.outdated;
        let mut number = 0;
        self.replaced.retain(|dead| {
            number += 1;
            number <= replaced || !is_own(dead) || !gone.contains(&place(dead.node))
        });
        let written = dead
            .iter()
            .filter(|node| !pool.resolved(**node).is_handle());
        self.spilled = self.spilled.saturating_sub(written.count());
        self.spilled_to -= looked_at;
        let handles: FxHashSet<u64> = dead.iter().map(|node| node.reference).collect();
        self.passed_by
            .retain(|node| !handles.contains(&node.reference));
        self.copied = None;
        dead
    }
}
