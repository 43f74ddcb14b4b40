//! An explicit transaction that holds the one tree it touches. See `holds.rs`.
//!
//! A context begins one so after some that touched one tree each. Where that was a
//! mistake it begins some as ever before it tries again, twice as many each time.
//!
//! Where it still holds its tree when it commits it has become a statement in all but
//! name: nobody changed the tree since it touched it, and it depends on nothing else.

use super::lease::REDO_MAX;
use super::{Txn, TxnState, WritersLock, no_slot};
use crate::error::Result;
use crate::primitives::{LEASE_AFTER, LEASE_AFTER_MAX};
use crate::tree::Tree;
use fulgurite_wal::TwinLog;

/// What an explicit transaction has instead of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It has one, or is not an explicit transaction.
    None,
    /// It has touched no tree.
    Open,
    /// It has touched one tree, and holds it unless somebody recalled it.
    Tree,
}

/// When a context begins transactions without a snapshot.
#[derive(Debug)]
pub(super) struct Restraint {
    /// After so many that touch one tree each.
    left: u32,
    /// The same after the next mistake.
    next: u32,
    /// How many held their tree to the end since the last one.
    kept: u32,
}

impl Default for Restraint {
    fn default() -> Self {
        Self {
            left: LEASE_AFTER,
            next: LEASE_AFTER,
            kept: 0,
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
        self.kept = self.kept.saturating_add(1);
        if self.kept >= self.next {
            self.next = LEASE_AFTER;
        }
    }

    /// One with a snapshot has committed.
    fn note(&mut self, touched_one_tree: bool) {
        self.left = match touched_one_tree {
            true => self.left.saturating_sub(1),
            false => self.left.max(LEASE_AFTER),
        };
    }
}

impl Txn {
    /// Whether an explicit transaction is to begin without a snapshot.
    #[inline]
    pub(super) fn may_hold(&self) -> bool {
        self.restraint.left == 0
    }

    /// Begins one so.
    pub(super) fn begin_open(&mut self) -> Result<()> {
        self.slot = Some(self.core.pool.readers.take()?);
        self.seq = 0;
        self.hold = Hold::Open;
        Ok(())
    }

    /// Before a tree is touched for the first time: holds it, or has a snapshot.
    #[cold]
    pub(super) fn touch(&mut self, tree: &Tree) -> Result<()> {
        if self.hold == Hold::Open && self.take_hold(tree)? {
            self.hold = Hold::Tree;
        } else {
            self.need_snapshot();
        }
        Ok(())
    }

    fn take_hold(&mut self, tree: &Tree) -> Result<bool> {
        if self.leasing.lane.is_none() {
            self.leasing.lane = Some(self.core.add_lane());
        }
        let Some(lane) = &self.leasing.lane else {
            return Ok(false);
        };
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let holding = &mut lane.occupancy.lock().holding;
        let context = self.visitor.context();
        if !self.core.take_hold(holding, tree, context, slot) {
            return Ok(false);
        }
        // What it works on is acknowledged, as what snapshots show is.
        let (newest, visible) = (tree.0.head().seq, self.core.visible());
        if self.leasing.gave(newest) {
            self.seq = self.leasing.last_given();
        } else if newest <= visible {
            self.seq = visible;
        } else {
            self.core.let_go(holding);
            return Ok(false);
        }
        Ok(true)
    }

    /// Before what a transaction without a snapshot cannot do: pins one, which shows
    /// the tree that it touched as it did, and holds nothing any more.
    #[inline]
    pub(super) fn need_snapshot(&mut self) {
        if self.hold != Hold::None {
            self.turn_to_snapshot();
        }
    }

    #[cold]
    fn turn_to_snapshot(&mut self) {
        let core = &*self.core;
        let pinned = match (self.hold, &self.leasing.lane) {
            (Hold::Tree, Some(lane)) => {
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
        self.restraint.was_mistaken();
        self.hold = Hold::None;
    }

    /// Before it commits what it wrote: where it holds its tree, as a statement.
    pub(super) fn turn_to_statement(&mut self) {
        let kept = match (self.hold, &self.leasing.lane) {
            (Hold::Tree, Some(lane)) => {
                let holding = &mut lane.occupancy.lock().holding;
                let tree = holding.keep();
                tree.inspect(|tree| self.locked.name(std::iter::once(*tree)))
                    .is_some()
            }
            _ => false,
        };
        if !kept {
            return self.need_snapshot();
        }
        self.writers = WritersLock::Shared;
        self.reads = None;
        self.observes = false;
        self.state = TxnState::Statement;
        self.hold = Hold::None;
        self.restraint.was_right();
    }

    /// At its end.
    #[inline]
    pub(super) fn let_go(&mut self) {
        if let (Hold::Tree, Some(lane)) = (self.hold, &self.leasing.lane) {
            let holding = &mut lane.occupancy.lock().holding;
            self.core.let_go(holding);
            if holding.take_pinned().is_some() {
                self.restraint.was_mistaken();
            }
        }
        self.hold = Hold::None;
    }

    /// Takes note of an optimistic transaction that commits: whether it could have held
    /// its tree.
    pub(super) fn note_touched(&mut self) {
        let touched_one_tree = self.forks.len() == 1
            && self.views.len() <= 1
            && !self.bulk
            && self.redo.len() <= REDO_MAX
            && self.core.wal().is_some_and(TwinLog::gives_leases)
            && self.forks.iter().all(|fork| !fork.created && !fork.dropped);
        self.restraint.note(touched_one_tree);
    }
}

#[cfg(test)]
mod tests;
