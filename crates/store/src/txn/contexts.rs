//! The contexts of transactions, lent.
//!
//! A context is worth keeping: it has learned what its transactions are like, and has
//! room of the log, a lane and buffers. So who lets go of one leaves it to whoever asks
//! next, by the same thread if it can (`shelf.rs`), as good as new. One whose thread
//! panics is not kept.

use super::{TxnContext, TxnState};
use crate::store::Store;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::thread;

/// Bytes that each buffer of a context keeps, of values that may be large.
const BUFFER_MAX: usize = 64 << 10;

/// A transaction context: see [`TxnContext`] for what it does. `Send`; dropping it rolls
/// back what is under way. It is a handle of its store, which stays open until then.
pub struct Txn(
    /// There until it is dropped.
    Option<Box<TxnContext>>,
);

impl Deref for Txn {
    type Target = TxnContext;

    #[inline]
    fn deref(&self) -> &TxnContext {
        self.0.as_deref().expect(THERE)
    }
}

impl DerefMut for Txn {
    #[inline]
    fn deref_mut(&mut self) -> &mut TxnContext {
        self.0.as_deref_mut().expect(THERE)
    }
}

const THERE: &str = "a context is there until it is dropped";

impl Drop for Txn {
    fn drop(&mut self) {
        if let Some(context) = self.0.take()
            && !thread::panicking()
        {
            context.leave_to_next();
        }
    }
}

impl fmt::Debug for Txn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Txn({:?})", self.state())
    }
}

impl TxnContext {
    /// Leaves it to the next one who asks.
    fn leave_to_next(mut self: Box<Self>) {
        if self.state != TxnState::Idle {
            self.rollback();
        }
        self.set_busy_timeout(self.store.options().busy_timeout);
        self.set_durability(self.store.options().durability);
        for buffer in [&mut self.redo, &mut self.scratch, &mut self.stored] {
            buffer.clear();
            buffer.shrink_to(BUFFER_MAX);
        }
        self.core.admission.note_unlent(&self.visitor);
        if let Some(room) = self.store.contexts.room() {
            room.put(self);
        }
    }
}

impl Store {
    /// An idle transaction context, for one transaction or many.
    pub fn txn(&self) -> Txn {
        let kept = self.contexts.take();
        Txn(Some(
            kept.unwrap_or_else(|| Box::new(TxnContext::new(self))),
        ))
    }

    /// The handle that a context is.
    pub(super) fn for_context(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            contexts: self.contexts.known(),
            read_only: self.read_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Txn;
    use crate::{Isolation, Key, KeyKind, Options, Store, TxnState};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    fn number(txn: &Txn) -> u64 {
        txn.visitor.context()
    }

    #[test]
    fn what_a_thread_let_go_of_it_gets_again_as_good_as_new() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        let first = number(&txn);
        txn.set_busy_timeout(Duration::ZERO);
        txn.begin(Isolation::Serializable).expect("begins");
        txn.put(&tree, Key::Int(0), &[0; 1 << 20]).expect("puts");
        drop(txn);
        let mut txn = store.txn();
        assert_eq!(number(&txn), first);
        assert_eq!(txn.state(), TxnState::Idle);
        assert_eq!(txn.busy.timeout, store.options().busy_timeout);
        assert!(txn.redo.capacity() <= super::BUFFER_MAX);
        txn.begin_read().expect("reads");
        assert_eq!(txn.count(&tree).expect("counted"), 0);
        let other = store.txn();
        assert_ne!(number(&other), first);
        let call = store.transact(Isolation::Serializable, |txn| Ok(number(txn)));
        let third = call.expect("commits");
        assert!(![first, number(&other)].contains(&third));
        drop((txn, other));
        assert_ne!(number(&store.txn()), first);
    }

    #[test]
    fn what_a_panic_let_go_of_nobody_gets() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let txn = store.txn();
        let first = number(&txn);
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _txn = txn;
            panic!("with a context");
        }));
        assert!(panicked.is_err());
        assert_ne!(number(&store.txn()), first);
    }
}
