//! How long a connection waits for what another one holds: a time, or what a handler says.
//!
//! The handler is asked in the midst of a statement, which has the session meanwhile; so it
//! must not use the connection, and is told so.

use std::time::Duration;

use fulgurite_store::BusyHandler;

use super::Session;
use super::state::State;
use crate::error::Result;

/// Which of them; both have been told to the transactions.
pub(super) enum Busy {
    Within(Duration),
    Ask(BusyHandler),
}

impl State {
    /// How long waits for locks may last; no time where a handler is asked.
    pub fn busy_timeout(&self) -> Duration {
        match self.busy {
            Busy::Within(timeout) => timeout,
            Busy::Ask(_) => Duration::ZERO,
        }
    }

    /// Whether a handler is asked.
    pub fn asks_when_busy(&self) -> bool {
        matches!(self.busy, Busy::Ask(_))
    }

    /// Bounds waits for locks.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        self.set_busy(Busy::Within(timeout));
    }

    /// What there was before may be code of the program, to be dropped while nothing is locked.
    pub(super) fn set_busy(&mut self, busy: Busy) -> Busy {
        let before = std::mem::replace(&mut self.busy, busy);
        self.tell_busy();
        before
    }

    /// Tells all transactions of the connection, as after another database was attached.
    pub fn tell_busy(&mut self) {
        match &self.busy {
            Busy::Within(timeout) => self.txn.set_busy_timeout(*timeout),
            Busy::Ask(handler) => self.txn.set_busy_handler(handler),
        }
    }
}

impl Session {
    /// Bounds waits for locks; a handler is asked no more.
    pub fn set_busy_timeout(&self, timeout: Duration) {
        drop(self.read(None, |state| Some(state.set_busy(Busy::Within(timeout)))));
    }

    /// How long waits for locks may last; no time where a handler is asked.
    pub fn busy_timeout(&self) -> Duration {
        self.read(Duration::ZERO, |state| state.busy_timeout())
    }

    /// Has a handler be asked whether to go on where a lock is not to be had, and told how
    /// often it was for that one before; None: no lock is waited for.
    ///
    /// # Errors
    /// `SQLITE_MISUSE` from within a statement that writes.
    pub fn set_busy_handler(&self, handler: Option<BusyHandler>) -> Result<()> {
        let busy = handler.map_or(Busy::Within(Duration::ZERO), Busy::Ask);
        let mut state = self.0.state()?;
        let before = state.set_busy(busy);
        drop(state);
        drop(before);
        Ok(())
    }
}
