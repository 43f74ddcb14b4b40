//! Engine, session and prepared statements: the handles that a front door holds.
//!
//! Handles are reference-counted, `Send` and without lifetimes. A [`Session`] is
//! one connection: its state lies behind one mutex, which a statement holds only
//! while it reads from or writes to the transaction; between steps a running
//! query holds its cursors and nothing else.

mod attach;
pub mod backup;
pub mod blob;
mod body;
mod busy;
mod compile;
mod conflict;
mod databases;
mod engine;
mod estimates;
mod expand;
mod integrity;
mod orphans;
mod pragma;
mod prepared;
mod program;
mod query;
mod state;
mod status;
mod steps;
mod synchronous;
mod transaction;
mod user;
mod vacuum;
mod write;

pub use crate::parse::shape::Shape;
pub use attach::{Locate, Target};
pub use databases::Held;
pub use engine::Engine;
pub(crate) use pragma::{fixed as fixed_pragma, fixed_names as fixed_pragma_names};
pub use prepared::{Prepared, Step};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::plan::physical::TransactionAction;
use state::State;

/// One connection. Clones are the same connection.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

struct Shared {
    engine: Engine,
    state: Mutex<State>,
    interrupt: Arc<AtomicBool>,
    /// The thread that may call code of the program with the state locked; 0: none.
    calling: AtomicUsize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("path", &self.0.engine.store().path())
            .finish_non_exhaustive()
    }
}

impl Session {
    fn new(engine: &Engine) -> Self {
        Self(Arc::new(Shared {
            engine: engine.clone(),
            state: Mutex::new(State::new(engine)),
            interrupt: Arc::default(),
            calling: AtomicUsize::new(0),
        }))
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Compiles the first statement of `sql`; also the bytes it takes. None: only
    /// blanks and comments.
    ///
    /// # Errors
    /// Those of SQLite's `sqlite3_prepare_v2`.
    pub fn prepare(&self, sql: &str) -> Result<(Option<Prepared>, usize)> {
        Prepared::compile(self, sql)
    }

    /// Compiles a text by its shape, so that the statement can [take on](Prepared::take_on)
    /// other texts of that shape. None where one that is compiled for the text itself
    /// might be better.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), with positions in the shape: who shows one to a user
    /// prepares the text itself for that.
    pub fn prepare_shape(&self, sql: &str, shape: &mut Shape) -> Result<Option<Prepared>> {
        Prepared::compile_shape(self, sql, shape)
    }

    /// Uses the state; `otherwise` is the answer within a statement that has it.
    #[inline]
    pub(super) fn read<T>(&self, otherwise: T, f: impl FnOnce(&mut State) -> T) -> T {
        match self.0.state() {
            Ok(mut state) => f(&mut state),
            Err(_) => otherwise,
        }
    }

    /// Rows changed by the last INSERT, UPDATE or DELETE; 0 to a function that a statement
    /// calls which writes.
    pub fn changes(&self) -> u64 {
        self.read(0, |state| state.functions.changes.unsigned_abs())
    }

    /// Rows changed since the session began.
    pub fn total_changes(&self) -> u64 {
        self.read(0, |state| state.functions.total_changes.unsigned_abs())
    }

    /// The last rowid inserted.
    pub fn last_insert_rowid(&self) -> i64 {
        self.read(0, |state| state.functions.last_insert_rowid)
    }

    /// Sets what [`Session::last_insert_rowid`] answers.
    pub fn set_last_insert_rowid(&self, rowid: i64) {
        self.read((), |state| state.functions.last_insert_rowid = rowid);
    }

    /// No explicit transaction is open.
    pub fn is_autocommit(&self) -> bool {
        self.read(false, |state| state.is_autocommit())
    }

    /// Statements are between their first step and their end.
    pub fn is_running(&self) -> bool {
        self.read(true, |state| state.running > 0)
    }

    /// An interrupt was asked for and has not been heeded.
    pub fn is_interrupted(&self) -> bool {
        self.0.interrupt.load(Ordering::Relaxed)
    }

    /// Fails from an interrupt on until all that was under way has ended: what begins
    /// meanwhile is interrupted, too, and who compiles a text is told so then, before a
    /// transaction could end with it.
    ///
    /// # Errors
    /// `SQLITE_INTERRUPT`
    #[inline]
    pub fn check_interrupt(&self) -> Result<()> {
        match self.is_interrupted() && self.read(false, |state| state.running > 0) {
            true => Err(Error::interrupted()),
            false => Ok(()),
        }
    }

    /// A transaction is open that has read or written something.
    pub fn has_begun(&self) -> bool {
        self.read(false, |state| {
            state.explicit.as_ref().is_some_and(|it| it.begun)
        })
    }

    /// A transaction is open that has written something.
    pub fn has_written(&self) -> bool {
        self.read(true, |state| {
            state.explicit.is_some() && state.txn.has_written()
        })
    }

    /// Begins or ends a transaction or a savepoint, as the statement would.
    ///
    /// # Errors
    /// Those of the statement.
    pub fn run_transaction(&self, action: &TransactionAction) -> Result<()> {
        let mut state = self.0.state()?;
        let _calling = self.0.calls();
        transaction::run(action, &mut state, &self.0.engine)
    }

    /// Undoes an open transaction, whoever has handles of the session still; no hook hears
    /// of it, as none does where the last handle is dropped.
    pub fn close(&self) {
        self.read(false, State::close);
    }

    /// Makes the session as good as new, but for what was compiled; false where
    /// something is under way in it.
    pub fn renew(&self) -> bool {
        let before = self.read(None, |state| state.renew(&self.0.engine));
        before.is_some()
    }

    /// A handle that interrupts running statements from another thread.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(Arc::clone(&self.0.interrupt))
    }

    /// Bytes that statements of this connection may buffer before they spill.
    pub fn set_memory_limit(&self, bytes: usize) {
        self.read((), |state| state.memory.set_limit(bytes));
    }
}

/// Interrupts the statements of a session that are running now.
#[derive(Clone, Debug)]
pub struct InterruptHandle(Arc<AtomicBool>);

impl InterruptHandle {
    /// Running statements fail with "interrupted" at their next batch, or at their next row.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
