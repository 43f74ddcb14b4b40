//! An explicit transaction that holds the trees it touches. See `holds.rs`.
//!
//! A context begins one so after some that could have done with it. Where that was a
//! mistake it begins some as ever before it tries again, twice as many each time.
//!
//! Where it still holds its trees when it commits it has become a statement in all but
//! name: nobody changed them since it touched them, and it depends on nothing else.

use super::lease::REDO_MAX;
use super::trees::View;
use super::{TxnContext, TxnState, WritersLock, no_slot};
use crate::error::Result;
use crate::holds::TREES_MAX;
use crate::primitives::atomic::Ordering::Acquire;
use crate::primitives::{LEASE_AFTER, LEASE_AFTER_MAX};
use crate::tree::Tree;
use crate::tree::versions::Root;

/// What an explicit transaction has instead of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It has one, or is not an explicit transaction.
    None,
    /// It has touched nothing.
    Open,
    /// It holds what it touched, unless somebody recalled that.
    Held,
}

/// When a context begins transactions without a snapshot.
#[derive(Debug)]
pub(super) struct Restraint {
    /// After so many that could have done with it.
    left: u32,
    /// The same after the next mistake.
    next: u32,
    /// How many kept what they held to the end since the last one.
    kept: u32,
    /// The transaction that is under way opened a cursor.
    scans: bool,
    /// The last one had no need of a snapshot of its own.
    could: bool,
}

impl Default for Restraint {
    fn default() -> Self {
        Self {
            left: LEASE_AFTER,
            next: LEASE_AFTER,
            kept: 0,
            scans: false,
            could: false,
        }
    }
}

impl Restraint {
    fn was_mistaken(&mut self) {
        self.left = self.next;
        self.next = (self.next * 2).min(LEASE_AFTER_MAX);
        self.kept = 0;
    }

    fn was_right(&mut self) {
        self.could = true;
        self.kept = self.kept.saturating_add(1);
        if self.kept >= self.next {
            self.next = LEASE_AFTER;
        }
    }

    pub(super) fn note_begin(&mut self) {
        self.scans = false;
    }

    /// The transaction opens a cursor.
    pub(super) fn note_scan(&mut self) {
        self.scans = true;
    }

    /// One with a snapshot commits, which could have done without but for its scans.
    fn note(&mut self, could: bool) {
        self.could = could && !self.scans;
        self.left = match self.could {
            true => self.left.saturating_sub(1),
            false => self.left.max(LEASE_AFTER),
        };
    }
}

impl TxnContext {
    /// Whether an explicit transaction is to begin without a snapshot. While one context
    /// writes at a time nobody asks for its trees, whatever was before.
    #[inline]
    pub(super) fn may_hold(&self) -> bool {
        let is_only_one = || self.core.admission.limit() == Some(1) && self.commits_alone();
        self.restraint.left == 0 || self.restraint.could && is_only_one()
    }

    /// Begins one so.
    pub(super) fn begin_open(&mut self) -> Result<()> {
        self.slot = Some(self.core.pool.readers.take()?);
        self.seq = 0;
        self.hold = Hold::Open;
        Ok(())
    }

    /// Before a tree is touched for the first time: holds it, or has a snapshot.
    pub(super) fn touch(&mut self, tree: &Tree) -> Result<()> {
        if !self.hold_also(Some(tree))? {
            self.need_snapshot();
        }
        Ok(())
    }

    /// Whether it holds anything, be it from now on, and this tree, if one is named,
    /// whose head is acknowledged.
    fn hold_also(&mut self, tree: Option<&Tree>) -> Result<bool> {
        if self.leasing.lane.is_none() {
            self.leasing.lane = Some(self.core.add_lane());
        }
        let Some(lane) = &self.leasing.lane else {
            return Ok(false);
        };
        let core = &*self.core;
        let holding = &mut lane.occupancy.lock().holding;
        if self.hold != Hold::Held {
            let slot = self.slot.as_ref().ok_or_else(no_slot)?;
            if !core.begin_hold(holding, &lane.held, self.visitor.context(), slot) {
                return Ok(false);
            }
            self.hold = Hold::Held;
        }
        let Some(tree) = tree else {
            return Ok(true);
        };
        if !core.hold_tree(holding, tree) {
            return Ok(false);
        }
        // Under the lane's lock: who takes the trees away after this pins no less, and
        // whoever writes to them then has a higher number. Without it both could have
        // happened meanwhile, and this tree would be seen as it was after that.
        let newest = tree.0.head().seq;
        let acknowledged = self.acknowledged(newest);
        self.seq = self.seq.max(acknowledged);
        Ok(newest <= acknowledged)
    }

    /// Makes an explicit transaction depend on every entry of a tree that changes only
    /// where writers are excluded, such as the schema's. As
    /// [`depend_on`](Self::depend_on), for less where nobody does exclude them.
    ///
    /// # Errors
    /// Misuse, where no transaction is under way.
    pub fn rely_on(&mut self, tree: &Tree) -> Result<()> {
        if self.state == TxnState::Idle {
            return Err(no_slot());
        }
        self.check_own(tree)?;
        if self.relies_on.replace(tree.id()) == Some(tree.id()) {
            return Ok(());
        }
        if self.hold == Hold::None || !self.hold_also(None)? {
            self.depend_on(tree);
        }
        Ok(())
    }

    /// The newest version of the tree that it relies on, while nobody can change that.
    pub(super) fn relied_on(&self, tree: &Tree) -> Option<Root> {
        if self.hold != Hold::Held || self.relies_on != Some(tree.id()) {
            return None;
        }
        let lane = self.leasing.lane.as_ref()?;
        let head = tree.0.versions.head()?;
        // After the head (`holds.rs`, 4): it was the newest while all was held.
        let is_held = lane.held.load(Acquire);
        (is_held && !head.dropped && head.seq <= self.acknowledged(head.seq)).then_some(head)
    }

    /// The newest number that was acknowledged, as far as one who works on a tree with
    /// this head needs to know it: what snapshots show is acknowledged, too.
    fn acknowledged(&self, head: u64) -> u64 {
        match self.leasing.gave(head) {
            true => self.leasing.last_given(),
            false => self.core.visible(),
        }
    }

    /// Before what a transaction without a snapshot cannot do: pins one, which shows
    /// what it touched as it was, and holds nothing any more.
    #[inline]
    pub(super) fn need_snapshot(&mut self) {
        if self.hold != Hold::None {
            self.turn_to_snapshot();
        }
    }

    #[cold]
    fn turn_to_snapshot(&mut self) {
        let core = &*self.core;
        // Where nobody took away what it holds, it has need of one itself.
        self.restraint.could = false;
        let pinned = match (self.hold, &self.leasing.lane) {
            (Hold::Held, Some(lane)) => {
                self.restraint.could = !lane.occupancy.lock().holding.is_held();
                core.turn_to_snapshot(lane);
                lane.occupancy.lock().holding.take_pinned()
            }
            _ => None,
        };
        let slot = self.slot.as_ref();
        let pin = || slot.map(|slot| core.pool.readers.pin_in(slot, || core.visible_to_pin()));
        if let Some(seq) = pinned.or_else(pin) {
            self.seq = seq;
            self.pinned = true;
        }
        debug_assert!(self.views.iter().all(|view| self.is_as_viewed(view)));
        self.restraint.was_mistaken();
        self.hold = Hold::None;
        let relied_on = self.relies_on.and_then(|tree| self.core.tree(tree));
        if let Some(tree) = relied_on {
            self.depend_on(&tree);
        }
    }

    /// Whether the snapshot shows a tree that was held as it was when it was touched.
    fn is_as_viewed(&self, view: &View) -> bool {
        let tree = self.core.tree(view.tree);
        let root = tree.and_then(|tree| tree.0.versions.at(self.seq));
        root.is_none_or(|root| root.seq == view.root.seq)
    }

    /// Before it commits what it wrote: where it holds its trees, as a statement.
    pub(super) fn turn_to_statement(&mut self) {
        let kept = match (self.hold, &self.leasing.lane) {
            (Hold::Held, Some(lane)) => {
                let holding = &mut lane.occupancy.lock().holding;
                let trees = holding.keep(&lane.held);
                trees.map(|trees| self.locked.name(trees.iter())).is_some()
            }
            _ => false,
        };
        if !kept {
            return self.need_snapshot();
        }
        self.writers = WritersLock::Shared;
        self.forget_reads();
        self.observes = false;
        self.state = TxnState::Statement;
        self.hold = Hold::None;
        self.restraint.was_right();
    }

    /// At its end.
    #[inline]
    pub(super) fn let_go(&mut self) {
        if let (Hold::Held, Some(lane)) = (self.hold, &self.leasing.lane) {
            let holding = &mut lane.occupancy.lock().holding;
            self.core.let_go(holding, &lane.held);
            if holding.take_pinned().is_some() {
                self.restraint.was_mistaken();
            }
        }
        self.hold = Hold::None;
    }

    /// Takes note of an optimistic transaction that commits: whether it could have done
    /// without a snapshot.
    pub(super) fn note_touched(&mut self) {
        let touched = self.views.iter().map(|view| view.tree);
        let could = touched.filter(|tree| self.relies_on != Some(*tree)).count() <= TREES_MAX
            && !self.bulk
            && self.redo.len() <= REDO_MAX
            && self
                .core
                .wal()
                .is_some_and(|wal| wal.gives_leases() || wal.syncs_quickly())
            && self.forks.iter().all(|fork| !fork.created && !fork.dropped);
        self.restraint.note(could);
    }
}

#[cfg(test)]
mod tests;
