//! Whether a context may begin to write, and whether what it has begun may.
//!
//! A handle for reading only may join a store that others write to. A transaction over several
//! stores depends on what it reads there as on the rest, and keeps others out where it does
//! that elsewhere: so it is begun as those are that write, and each of its writes is refused.

use super::{TxnContext, TxnState, no_slot};
use crate::error::{Error, Result};

impl TxnContext {
    /// Fails where what is under way only reads.
    ///
    /// # Errors
    /// `ReadOnly` and `Poisoned` where nobody may write, or may any more; `Misuse` for a
    /// transaction that was begun to read, and where none is under way.
    #[inline]
    pub fn check_writes(&self) -> Result<()> {
        match self.state {
            TxnState::Idle | TxnState::Read => self.refuse_writes(),
            _ if self.only_reads => self.refuse_writes(),
            TxnState::Statement | TxnState::Optimistic | TxnState::Immediate => Ok(()),
        }
    }

    #[cold]
    fn refuse_writes(&self) -> Result<()> {
        self.store.check_writable()?;
        Err(match self.state {
            TxnState::Idle => no_slot(),
            _ => Error::misuse("this transaction only reads"),
        })
    }

    /// Before it begins what may write.
    #[inline]
    pub(super) fn writable(&self) -> Result<()> {
        self.idle()?;
        match self.only_reads {
            true => self.core.check_writable(),
            false => self.store.check_writable(),
        }
    }

    /// Begins in this way through a handle for reading only, too, where others write to the
    /// store: what it reads counts for the commit of a transaction over several stores that
    /// it is a part of, and it is refused to write itself.
    ///
    /// # Errors
    /// What beginning may fail with; `ReadOnly` where nobody writes.
    pub fn begin_only_to_read(
        &mut self,
        begin: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.idle()?;
        self.only_reads = self.store.is_read_only();
        let begun = begin(self);
        self.only_reads &= begun.is_ok();
        begun
    }
}
