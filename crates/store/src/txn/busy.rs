//! How long a context waits for what others hold.
//!
//! A time bounds each wait. A handler takes its place where a lock is waited for: when one
//! attempt has failed it is asked whether to make another, for as long as it says so. It is
//! code of the program, called with whatever the context has locked so far, which is what
//! a wait would have; one that panics gives up. Waits that end by themselves (for space in
//! the log, for a turn, for a moment between commits to several stores) have the store's own
//! time then.

use super::TxnContext;
use crate::caught::caught;
use crate::waits::Waits;
use std::sync::Arc;
use std::time::Duration;

/// Says whether to go on trying to get a lock, and how often it was asked for that before.
pub type BusyHandler = Arc<dyn Fn(i32) -> bool + Send + Sync>;

/// How long an attempt that a handler asked for waits in turn: who only looked whether the
/// lock is free would be passed by others forever.
const ATTEMPT: Duration = Duration::from_millis(1);

/// See the module's header.
pub(super) struct Busy {
    pub(super) timeout: Duration,
    handler: Option<BusyHandler>,
}

impl Busy {
    pub(super) fn within(timeout: Duration) -> Self {
        Self {
            timeout,
            handler: None,
        }
    }

    /// Takes a lock: `now` tries to at once, `within` waits for it. False if that took too
    /// long.
    pub(super) fn take(
        &self,
        waits: &Waits,
        now: impl Fn() -> bool,
        within: impl Fn(Duration) -> bool,
    ) -> bool {
        match &self.handler {
            None => waits.lock(self.timeout, now, within),
            Some(handler) => {
                let attempt = |time| waits.lock(time, &now, &within);
                attempt(Duration::ZERO) || ask(handler, || attempt(ATTEMPT))
            }
        }
    }

    /// Why a wait has ended.
    pub(super) fn ended(&self) -> String {
        match (&self.handler, self.timeout) {
            (Some(_), _) => "and the busy handler gave up".to_owned(),
            (None, Duration::ZERO) => "and no busy timeout is set".to_owned(),
            (None, time) => format!("and did not finish within the busy timeout of {time:?}"),
        }
    }
}

#[cold]
fn ask(handler: &BusyHandler, attempt: impl Fn() -> bool) -> bool {
    let goes_on = |asked| caught(|| handler(asked)).unwrap_or(false);
    let mut asked = 0_i32;
    while goes_on(asked) {
        if attempt() {
            return true;
        }
        asked = asked.saturating_add(1);
    }
    false
}

impl TxnContext {
    /// Bounds every wait of this context for a lock or for space in the log. At first it
    /// is the store's `busy_timeout`.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        self.busy = Busy::within(timeout);
    }

    /// Has a handler be asked where a lock is not to be had, in place of a time; None: no
    /// lock is waited for. It must not use this context. Setting a time removes it.
    pub fn set_busy_handler(&mut self, handler: Option<BusyHandler>) {
        let timeout = match handler {
            Some(_) => self.store.options().busy_timeout,
            None => Duration::ZERO,
        };
        self.busy = Busy { timeout, handler };
    }

    /// Does something that waits no longer than this, and asks nobody.
    pub(super) fn within<T>(&mut self, patience: Duration, act: impl FnOnce(&mut Self) -> T) -> T {
        let busy = std::mem::replace(&mut self.busy, Busy::within(patience));
        let outcome = act(self);
        self.busy = busy;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::Mutex;
    use crate::{ErrorKind, Options, Store};

    fn asks(txn: &mut TxnContext, gives_up: i32) -> Arc<Mutex<Vec<i32>>> {
        let log = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&log);
        txn.set_busy_handler(Some(Arc::new(move |asked| {
            tell.lock().push(asked);
            asked < gives_up
        })));
        log
    }

    #[test]
    fn a_handler_is_asked_for_locks_and_leaves_other_waits_their_time() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let (mut holder, mut waiter) = (store.txn(), store.txn());
        holder.begin_immediate().expect("begins");
        let log = asks(&mut waiter, 2);
        let busy = waiter.begin_immediate().expect_err("locked");
        assert_eq!(busy.kind(), ErrorKind::Busy);
        assert!(busy.message().ends_with("and the busy handler gave up"));
        assert_eq!(std::mem::take(&mut *log.lock()), [0, 1, 2]);
        assert_eq!(waiter.busy.timeout, store.options().busy_timeout);

        let tried = waiter.within(Duration::ZERO, TxnContext::begin_immediate);
        assert!(tried.is_err() && log.lock().is_empty());
        holder.rollback();
        waiter.begin_immediate().expect("free again");
        // Whom the context is lent to next has not got the handler.
        drop(waiter);
        let next = store.txn();
        assert!(next.busy.handler.is_none() && log.lock().is_empty());
    }
}
