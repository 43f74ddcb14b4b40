//! Reading within a transaction.
//!
//! A tree that the transaction has written to is read in its fork, any other as it
//! was at the snapshot. Every answer is noted in the read set where the commit may
//! depend on it. What a cursor is on stays as it is whatever is written meanwhile.

use super::hold::Hold;
use super::reads::Reads;
use super::trees::{dropped, not_there};
use super::{TxnContext, TxnState, no_slot, redo};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Key;
use crate::tree::compare::Aspect;
use crate::tree::cursor::Cursor;
use crate::tree::walk::Ahead;
use crate::tree::{Tree, TreeId, fork, overflow};

/// Stamps of private states are numbered apart from commits.
const PRIVATE: u64 = 1 << 63;

impl TxnContext {
    pub(super) fn observe(&self, tree: &Tree, key: Key<'_>, aspect: Aspect) {
        if self.observes {
            self.observe_always(tree, key, aspect);
        }
    }

    /// Also under `snapshot`: uniqueness is decided by this answer.
    pub(super) fn observe_always(&self, tree: &Tree, key: Key<'_>, aspect: Aspect) {
        if let Some(reads) = &self.reads {
            reads.lock().point(tree, key, aspect);
        }
    }

    /// That a tree is not there is an answer like any other.
    pub(super) fn observe_absence(&self, tree: &Tree, error: &Error) {
        if self.observes && error.kind() == ErrorKind::Misuse {
            self.observe_existence(tree);
        }
    }

    fn observe_existence(&self, tree: &Tree) {
        if let Some(reads) = &self.reads {
            reads.lock().existence(tree);
        }
    }

    /// What the writes behind this place in the redo answered, whether their keys were
    /// there, and for parts that the value was as long, stays known when they are undone. As
    /// long as they are in the redo they are validated there.
    pub(super) fn observe_undone(&self, from: usize) {
        for op in redo::Ops::new(&self.redo[from..]).flatten() {
            let fork = self.fork_of(TreeId(op.tree())).map(|at| &self.forks[at]);
            if let (Some(fork), Some(key)) = (fork, op.key()) {
                let aspect = match op {
                    redo::Op::PutStart { .. } | redo::Op::PutPart { .. } => Aspect::Entry,
                    _ => Aspect::Presence,
                };
                self.observe(&fork.tree, key, aspect);
            }
        }
    }

    /// Makes the transaction depend on every entry of a tree, under `snapshot`
    /// too: its commit loses if another one changed the tree meanwhile.
    pub fn depend_on(&mut self, tree: &Tree) {
        if self.check_own(tree).is_err() {
            return;
        }
        if self.hold != Hold::None && self.view(tree).is_err() {
            self.need_snapshot();
        }
        if let Some(reads) = &self.reads {
            reads.lock().whole(tree);
        }
    }

    /// As [`get_into`](Self::get_into), for what must not have changed at the commit:
    /// that depends on the answer under `snapshot` too.
    pub fn get_lasting(&mut self, tree: &Tree, key: Key<'_>, out: &mut Vec<u8>) -> Result<bool> {
        self.check(tree, key)?;
        self.observe_always(tree, key, Aspect::Entry);
        self.copy_out(tree, (key, Ahead::Slot), out)
    }

    /// Copies the value under `key` into `out`, which is cleared first; false
    /// if there is none.
    #[inline]
    pub fn get_into(&mut self, tree: &Tree, key: Key<'_>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_out(tree, (key, Ahead::Slot), out)
    }

    /// As [`get_into`](Self::get_into), for an entry that is about to be changed:
    /// the page, which the change will copy, is on its way meanwhile.
    #[inline]
    pub fn get_to_change(&mut self, tree: &Tree, key: Key<'_>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_out(tree, (key, Ahead::Page), out)
    }

    #[inline]
    fn copy_out(&mut self, tree: &Tree, key: (Key<'_>, Ahead), out: &mut Vec<u8>) -> Result<bool> {
        let found = self.copy_stored(tree, key, out)?;
        if found == Some(true) {
            self.load_overflow(tree, out)?;
        }
        Ok(found.is_some())
    }

    /// Copies what a leaf has in the place of the value under `key` into `out`, which is
    /// cleared first; whether that is a large value, or `None` if there is none.
    #[inline]
    pub(super) fn copy_stored(
        &mut self,
        tree: &Tree,
        (key, ahead): (Key<'_>, Ahead),
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        out.clear();
        self.check(tree, key)?;
        self.observe(tree, key, Aspect::Entry);
        self.look_up(tree, (key, ahead), |entry| {
            entry.map(|(value, is_overflow)| {
                out.extend_from_slice(value);
                is_overflow
            })
        })
    }

    #[cold]
    fn load_overflow(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<()> {
        self.stored.clear();
        self.stored.append(out);
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        overflow::read_value(&self.core.pool, slot, tree.id().0, &self.stored, out)
    }

    #[inline]
    pub(super) fn look_up<R>(
        &mut self,
        tree: &Tree,
        key: (Key<'_>, Ahead),
        found: impl FnOnce(Option<(&[u8], bool)>) -> R,
    ) -> Result<R> {
        if !self.forks.is_empty()
            && let Some(at) = self.fork_to_read(tree)?
        {
            self.write_put_off_under(tree.id(), key.0)?;
            let slot = self.slot.as_ref().ok_or_else(no_slot)?;
            return self.forks[at].get(&self.core.pool, slot, key, found);
        }
        let view = self.view(tree)?;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let root = &mut self.views[view].root;
        let was = root.node;
        let topmost = (&mut root.node, tree.0.topmost());
        let answer = fork::get(&self.core.pool, slot, topmost, key, found);
        if root.node != was {
            tree.0.versions.refine(was.reference, root.seq, root.node);
        }
        answer
    }

    /// Whether there is an entry under `key`. The transaction depends on that alone: the
    /// commit does not lose because another one changed the value.
    #[inline]
    pub fn contains(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        self.check(tree, key)?;
        self.observe(tree, key, Aspect::Presence);
        self.has(tree, key)
    }

    /// As [`contains`](Self::contains), to decide about uniqueness: the commit
    /// depends on the answer under `snapshot` too.
    #[inline]
    pub fn is_taken(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        self.check(tree, key)?;
        self.observe_always(tree, key, Aspect::Presence);
        self.has(tree, key)
    }

    fn has(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        self.look_up(tree, (key, Ahead::Slot), |entry| entry.is_some())
    }

    /// The number of entries; costs the same however many they are.
    pub fn count(&mut self, tree: &Tree) -> Result<u64> {
        self.check_own(tree)?;
        if self.observes {
            self.depend_on(tree);
        }
        self.estimate(tree)
    }

    /// The number of entries for planning: as [`count`](Self::count), but the
    /// transaction does not depend on the answer.
    pub fn estimate(&mut self, tree: &Tree) -> Result<u64> {
        if let Some(at) = self.fork_to_read(tree)? {
            self.write_put_off()?;
            return Ok(self.forks[at].count);
        }
        let view = self.view(tree)?;
        Ok(self.views[view].root.count)
    }

    /// Whether there is this tree, as the transaction sees it.
    pub(crate) fn sees(&mut self, tree: &Tree) -> Result<bool> {
        if let Some(at) = self.fork_of(tree.id()) {
            return Ok(!self.forks[at].dropped);
        }
        let view = self.view(tree);
        if self.observes {
            self.observe_existence(tree);
        }
        match view {
            Err(error) if error.kind() == ErrorKind::Misuse => Ok(false),
            view => view.map(|_| true),
        }
    }

    /// Identifies what this transaction sees in a tree: equal stamps mean equal
    /// contents. Never reused. To ask is not to read: a statement, and who keeps the
    /// other writers out, is told of the head, pins no snapshot for it, and comes to
    /// depend on nothing; what a statement asks about must be kept from changing, as the
    /// writers' lock keeps the schema.
    #[inline]
    pub fn stamp(&mut self, tree: &Tree) -> Result<u64> {
        self.check_own(tree)?;
        let fork = self.fork_to_read(tree)?;
        if fork.is_some() {
            self.write_put_off()?;
        }
        if let Some(at) = fork
            && self.forks[at].changed
        {
            let fork = &mut self.forks[at];
            if fork.stamp.0 != fork.edits {
                fork.stamp = (fork.edits, self.core.next_stamp());
            }
            return Ok(PRIVATE | fork.stamp.1);
        }
        let is_at_head = match self.state {
            TxnState::Statement => !self.pinned,
            state => state == TxnState::Immediate,
        };
        if is_at_head {
            return match tree.0.versions.head() {
                None => Err(not_there(tree)),
                Some(head) if head.dropped => Err(dropped(tree)),
                Some(head) => Ok(head.seq),
            };
        }
        if let Some(head) = self.relied_on(tree) {
            return Ok(head.seq);
        }
        self.need_snapshot();
        let view = self.view(tree)?;
        Ok(self.views[view].root.seq)
    }

    /// Whether a [`stamp`](Self::stamp) is one of what a transaction has changed and not
    /// committed.
    pub fn is_private(stamp: u64) -> bool {
        stamp & PRIVATE != 0
    }

    /// A cursor over the tree as it is now. Later writes of this transaction do
    /// not show in it, and it may outlive the transaction.
    pub fn cursor(&mut self, tree: &Tree) -> Result<Cursor> {
        self.open_cursor(tree, self.observes)
    }

    /// As [`cursor`](Self::cursor), for what must not have changed at the commit: that
    /// depends on what the cursor passes under `snapshot` too.
    pub fn cursor_lasting(&mut self, tree: &Tree) -> Result<Cursor> {
        self.open_cursor(tree, true)
    }

    /// As [`cursor`](Self::cursor), for planning: the transaction does not depend on what
    /// the cursor passes.
    pub fn cursor_to_estimate(&mut self, tree: &Tree) -> Result<Cursor> {
        self.open_cursor(tree, false)
    }

    fn open_cursor(&mut self, tree: &Tree, observes: bool) -> Result<Cursor> {
        self.check_own(tree)?;
        self.restraint.note_scan();
        self.need_snapshot();
        if !self.pinned {
            self.pin_late()?;
        }
        let observer = self
            .reads
            .as_ref()
            .filter(|_| observes)
            .map(|reads| Reads::observer(reads, tree));
        if let Some(at) = self.fork_to_read(tree)? {
            self.write_put_off()?;
            let slot = self.core.pool.readers.pin_also(self.seq)?;
            let fork = &mut self.forks[at];
            let watch = Some(fork.watch());
            return Ok(Cursor::new(
                self.store.handle.clone(),
                slot,
                tree,
                fork.root,
                watch,
                observer,
            ));
        }
        let view = self.view(tree);
        if observes && view.is_err() {
            self.observe_existence(tree);
        }
        let root = self.views[view?].root.node;
        let slot = self.core.pool.readers.pin_also(self.seq)?;
        Ok(Cursor::new(
            self.store.handle.clone(),
            slot,
            tree,
            root,
            None,
            observer,
        ))
    }
}
