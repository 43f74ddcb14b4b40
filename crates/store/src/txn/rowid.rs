//! Numbers for rows inserted without a key.
//!
//! A lone writer gets what SQLite gives: the largest key plus one. A writer that
//! overlaps with others must not be given what one of them was given, though it
//! does not see it: each transaction that was given a number holds a *claim*
//! until it ends, and while there are claims the highest number given counts as
//! taken. When the last claim ends the tree's contents alone decide again, so a
//! rolled-back allocation is given back.

use super::{TxnContext, TxnState, check_kind, no_slot};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Key;
use crate::primitives::Mutex;
use crate::tree::{EMPTY, Tree, walk};

#[derive(Default)]
struct Claims {
    highest: i64,
    claims: u32,
}

/// The claims on one tree.
#[derive(Default)]
pub(crate) struct Rowids(Mutex<Claims>);

impl Rowids {
    /// The next number above `largest` (the largest key the caller sees, if any)
    /// and above those given to others; `first_claim` if the caller holds no
    /// claim yet. `None` when there is none.
    pub(crate) fn allocate(&self, largest: Option<i64>, first_claim: bool) -> Option<i64> {
        let mut claims = self.0.lock();
        let mut next = match largest {
            None => 1,
            Some(largest) => largest.checked_add(1)?,
        };
        let others = claims.claims - u32::from(!first_claim && claims.claims > 0);
        if others > 0 {
            next = next.max(claims.highest.checked_add(1)?);
        }
        claims.highest = next;
        claims.claims = others + 1;
        Some(next)
    }

    /// A transaction that was given numbers ended.
    pub(crate) fn release(&self) {
        let mut claims = self.0.lock();
        claims.claims = claims.claims.saturating_sub(1);
    }
}

impl TxnContext {
    /// A key for a new row of a tree of integers: the largest plus one, and
    /// never one that an overlapping transaction was given.
    pub fn allocate_rowid(&mut self, tree: &Tree) -> Result<i64> {
        self.allocate_rowid_above(tree, None)
    }

    /// As [`allocate_rowid`](Self::allocate_rowid), and above `floor`.
    pub fn allocate_rowid_above(&mut self, tree: &Tree, floor: Option<i64>) -> Result<i64> {
        self.write_put_off()?;
        let at = self.fork(tree)?;
        let mut largest = match self.forks[at].max_key {
            Some(key) => Some(key),
            None => {
                let largest = self.largest_key(tree)?;
                self.forks[at].max_key = largest;
                largest
            }
        };
        largest = largest.max(floor);
        let base = self.forks[at].base.seq;
        let mut seen = base;
        let allocated = loop {
            let head = tree.0.head().seq;
            if self.state == TxnState::Optimistic && head != seen {
                largest = largest.max(self.largest_at_head(tree)?);
            }
            seen = head;
            let first_claim = !self.claims.iter().any(|claim| claim.id() == tree.id());
            let allocated = tree.0.rowids.allocate(largest, first_claim);
            if first_claim && allocated.is_some() {
                self.claims.push(tree.clone());
            }
            // One that published in between has let go of its claim, maybe
            // before ours was asked for: its rows decide then.
            if self.state != TxnState::Optimistic || tree.0.head().seq == seen {
                break allocated;
            }
        };
        allocated.ok_or_else(|| {
            Error::new(
                ErrorKind::Full,
                "database or disk is full: the largest row number is taken",
            )
        })
    }

    /// The largest integer key as this transaction sees it, which it does not
    /// come to depend on: good for what only must not be too small.
    pub fn largest_rowid(&mut self, tree: &Tree) -> Result<Option<i64>> {
        check_kind(tree, Key::Int(0))?;
        self.largest_key(tree)
    }

    /// The largest integer key as this transaction sees it.
    fn largest_key(&mut self, tree: &Tree) -> Result<Option<i64>> {
        self.write_put_off()?;
        let at = self.fork(tree)?;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let fork = &mut self.forks[at];
        walk::last_int_key(&self.core.pool, slot, tree.id().0, &mut fork.root)
    }

    fn largest_at_head(&mut self, tree: &Tree) -> Result<Option<i64>> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.head_to_pin())?;
        let mut root = tree.0.versions.at(seq).unwrap_or(EMPTY);
        let largest = walk::last_int_key(&core.pool, &slot, tree.id().0, &mut root.node);
        core.pool.readers.release(&slot);
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_writer_sees_the_largest_plus_one() {
        let rowids = Rowids::default();
        assert_eq!(rowids.allocate(None, true), Some(1));
        assert_eq!(rowids.allocate(Some(1), false), Some(2));
        assert_eq!(rowids.allocate(Some(1), false), Some(2), "not inserted");
        rowids.release();
        assert_eq!(rowids.allocate(Some(1), true), Some(2), "given back");
        rowids.release();
        assert_eq!(rowids.allocate(Some(-5), true), Some(-4));
        rowids.release();
        assert_eq!(rowids.allocate(Some(i64::MAX), true), None);
    }

    #[test]
    fn overlapping_writers_get_different_numbers() {
        let rowids = Rowids::default();
        assert_eq!(rowids.allocate(Some(10), true), Some(11));
        assert_eq!(rowids.allocate(Some(10), true), Some(12));
        rowids.release();
        assert_eq!(
            rowids.allocate(Some(12), false),
            Some(13),
            "12 was committed"
        );
        rowids.release();
        assert_eq!(rowids.allocate(Some(13), true), Some(14));
    }
}
