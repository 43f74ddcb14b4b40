//! The contexts that [`Store::transact`] uses again.
//!
//! A context is worth keeping: it has learned what its transactions are like, and has
//! room of the log, a lane and buffers. So each call takes one that an earlier call left,
//! by the same thread if it can (`shelf.rs`), as good as new.

use super::{Txn, TxnState};
use crate::store::Store;

/// Bytes that each buffer of a context keeps, of values that may be large.
const BUFFER_MAX: usize = 64 << 10;

impl Store {
    /// The handle that a context is.
    pub(super) fn for_context(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            contexts: self.contexts.known(),
            read_only: self.read_only,
        }
    }

    /// A context for one call.
    pub(super) fn lend_context(&self) -> Box<Txn> {
        let kept = self.contexts.take();
        kept.unwrap_or_else(|| Box::new(self.txn()))
    }

    /// Keeps a context for the next call. Whoever was lent it may have put another one
    /// in its place, of another handle or in the middle of something.
    pub(super) fn take_back(&self, mut txn: Box<Txn>) {
        let is_own = self.ptr_eq(&txn.store) && self.read_only == txn.store.read_only;
        if is_own && txn.state == TxnState::Idle {
            txn.busy_timeout = self.options().busy_timeout;
            for buffer in [&mut txn.redo, &mut txn.scratch, &mut txn.stored] {
                buffer.clear();
                buffer.shrink_to(BUFFER_MAX);
            }
            self.contexts.put(txn);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isolation, Options, Store};
    use std::time::Duration;

    #[test]
    fn calls_of_a_thread_use_one_context_as_good_as_new() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let mut number = None;
        for _ in 0..3 {
            let call = store.transact(Isolation::Serializable, |txn| {
                let context = txn.visitor.context();
                assert_eq!(*number.get_or_insert(context), context);
                assert_eq!(txn.busy_timeout, store.options().busy_timeout);
                txn.set_busy_timeout(Duration::ZERO);
                Ok(())
            });
            call.expect("commits");
        }
    }
}
