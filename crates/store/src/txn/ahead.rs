//! An immediate transaction that begins before what it builds on is acknowledged.
//!
//! Who excludes the other writers builds on the head. The commits at its end may still be
//! on their way to the disk, and a transaction that waited for them would make one commit
//! a sync, however many threads there are. This one begins at once, *ahead* of what is
//! acknowledged, and its commit shares their sync. Its caller tells nobody of an answer
//! before it has called [`TxnContext::confirm`], which
//!
//! * returns at once where every answer so far is the same in what was acknowledged when
//!   the transaction began: it tells of nothing that a power cut could take back. What was
//!   read is compared as at a commit, and under the keys that were written everything;
//! * waits for the sync otherwise.
//!
//! Once all it builds on is acknowledged it is an immediate transaction like any other,
//! and remembers no more what it read. If that fails it was never told of, and the
//! transaction cannot commit.

use super::commit::Between;
use super::{TxnContext, TxnState};
use crate::cache::SlotId;
use crate::error::{ErrorKind, Result};
use fulgurite_disk::mutation::{Mutation, planted};

/// Bytes of what was read, or written, beyond which it waits: to compare them would take
/// longer.
const COMPARED_MAX: usize = 16 << 10;

/// What was acknowledged when the transaction began, pinned.
pub(super) struct Ahead {
    slot: SlotId,
    acknowledged: u64,
    /// Bytes of the redo whose keys have been compared.
    compared: usize,
}

impl TxnContext {
    /// As [`begin_immediate`](Self::begin_immediate), but does not wait until what it
    /// builds on is acknowledged. For who calls [`confirm`](Self::confirm) before it tells
    /// anybody of what the transaction answered, be it an error or a number of rows.
    ///
    /// # Errors
    /// As `begin_immediate`.
    pub fn begin_immediate_ahead(&mut self) -> Result<()> {
        self.writable()?;
        if self.wrote_before {
            self.enter();
        }
        self.lock_exclusive()?;
        let begun = self.pin_ahead();
        if let Err(error) = begun {
            self.end();
            return Err(error);
        }
        self.state = TxnState::Immediate;
        Ok(())
    }

    fn pin_ahead(&mut self) -> Result<()> {
        let core = self.core.clone();
        let readers = &core.pool.readers;
        // Before the head: all that is not acknowledged by then stays to be compared.
        let (slot, acknowledged) = readers.pin(|| core.visible_to_pin())?;
        let pinned = self.pin_head();
        if pinned.is_err() || acknowledged >= self.seq {
            readers.release(&slot);
            return pinned;
        }
        self.ahead = Some(Ahead {
            slot,
            acknowledged,
            compared: 0,
        });
        self.reads = Some(self.no_reads.take().unwrap_or_default());
        self.observes = true;
        Ok(())
    }

    /// The number of the commit that the transaction builds on, unless that is known to be
    /// acknowledged.
    #[inline]
    pub fn ahead_of(&self) -> Option<u64> {
        self.ahead.as_ref().map(|_| self.seq)
    }

    /// Waits until a commit that a transaction of this store was ahead of is acknowledged.
    ///
    /// # Errors
    /// Where it failed: what was answered since is not to be told.
    pub fn wait_acknowledged(&self, commit: u64) -> Result<()> {
        self.core.wait_visible(commit)
    }

    /// Returns once what the transaction answered so far may be told: see
    /// [`begin_immediate_ahead`](Self::begin_immediate_ahead).
    ///
    /// # Errors
    /// What it builds on could not be made durable, or not be read: nothing is to be told.
    pub fn confirm(&mut self) -> Result<()> {
        let Some(ahead) = &self.ahead else {
            return Ok(());
        };
        if planted(Mutation::TellUnconfirmed) {
            return Ok(());
        }
        if self.core.visible() >= self.seq || !self.answers_as(ahead)? {
            return self.wait_for_base();
        }
        // Both states stay what they are: this need not be compared again.
        if let Some(reads) = &self.reads {
            reads.lock().forget_closed();
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.compared = self.redo.len();
        }
        Ok(())
    }

    /// What was written beyond this place in the redo is undone.
    pub(super) fn forget_compared(&mut self, from: usize) {
        if let Some(ahead) = &mut self.ahead {
            ahead.compared = ahead.compared.min(from);
        }
    }

    /// Waits until all that the transaction builds on is acknowledged, whatever of it
    /// was read.
    ///
    /// # Errors
    /// As [`confirm`](Self::confirm).
    pub fn wait_for_base(&mut self) -> Result<()> {
        if self.ahead.is_some() {
            self.core.wait_visible(self.seq)?;
            self.leave_ahead();
        }
        Ok(())
    }

    /// It is ahead of nothing any more, or over.
    pub(super) fn leave_ahead(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.core.pool.readers.release(&ahead.slot);
            self.forget_reads();
            self.observes = false;
        }
    }

    /// Whether all answers that have not been compared were the same in what was
    /// acknowledged.
    fn answers_as(&self, ahead: &Ahead) -> Result<bool> {
        // One that keeps no redo does not know what it wrote.
        let Some(written) = self.redo.get(ahead.compared..).filter(|_| !self.bulk) else {
            return Ok(false);
        };
        let read = self.reads.as_ref().map_or(0, |reads| reads.lock().size());
        if written.len().max(read) > COMPARED_MAX {
            return Ok(false);
        }
        let between = Between {
            older: ahead.acknowledged,
            newer: self.seq,
        };
        let compared = self.compare_written(written, between).and_then(|()| {
            let Some(reads) = &self.reads else {
                return Ok(());
            };
            let mut reads = reads.lock();
            let mut trees = reads.trees(&self.core.pool);
            trees.try_for_each(|read| self.compare_read(read, between))
        });
        match compared {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            compared => compared.map(|()| true),
        }
    }
}
