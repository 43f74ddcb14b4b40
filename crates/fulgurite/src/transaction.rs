//! Transactions and savepoints that end when they go out of scope.
//!
//! Both roll back unless told otherwise. A conflict at COMMIT has rolled the
//! transaction back already (`SQLITE_BUSY_SNAPSHOT`): begin it again.

use std::ops::Deref;

use fulgurite_sql::plan::physical::{BeginMode, TransactionAction};

use crate::{Connection, Result};

/// How a transaction begins.
#[derive(Copy, Clone)]
#[non_exhaustive]
pub enum TransactionBehavior {
    /// Takes no lock; may lose against another writer at COMMIT.
    Deferred,
    /// Waits until it is the only writer; cannot lose afterwards.
    Immediate,
    /// As [`TransactionBehavior::Immediate`].
    Exclusive,
}

/// What happens when a transaction or savepoint is dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropBehavior {
    /// Roll back.
    Rollback,
    /// Commit; roll back if that fails.
    Commit,
    /// Leave it open.
    Ignore,
    /// Panic.
    Panic,
}

/// A transaction.
///
/// ```
/// # fn main() -> fulgurite::Result<()> {
/// # let mut db = fulgurite::Connection::open_in_memory()?;
/// # db.execute_batch("CREATE TABLE account (id INTEGER PRIMARY KEY, balance); INSERT INTO account VALUES (1, 10), (2, 0)")?;
/// let tx = db.transaction()?;
/// tx.execute("UPDATE account SET balance = balance - ?1 WHERE id = ?2", (5, 1))?;
/// tx.execute("UPDATE account SET balance = balance + ?1 WHERE id = ?2", (5, 2))?;
/// tx.commit()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Transaction<'conn> {
    conn: &'conn Connection,
    drop_behavior: DropBehavior,
}

impl Transaction<'_> {
    /// Begins a transaction. The borrow keeps transactions from nesting.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn new(conn: &mut Connection, behavior: TransactionBehavior) -> Result<Transaction<'_>> {
        Self::new_unchecked(conn, behavior)
    }

    /// Begins a transaction; nesting is found at run time.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn new_unchecked(
        conn: &Connection,
        behavior: TransactionBehavior,
    ) -> Result<Transaction<'_>> {
        let mode = match behavior {
            TransactionBehavior::Deferred => BeginMode::Deferred,
            TransactionBehavior::Immediate | TransactionBehavior::Exclusive => BeginMode::Immediate,
        };
        conn.run_transaction(&TransactionAction::Begin(mode))?;
        Ok(Transaction {
            conn,
            drop_behavior: DropBehavior::Rollback,
        })
    }

    /// Begins a savepoint within the transaction.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::begin(self.conn, SAVEPOINT_NAME)
    }

    /// As [`Transaction::savepoint`], with a name.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn savepoint_with_name<T: Into<String>>(&mut self, name: T) -> Result<Savepoint<'_>> {
        Savepoint::begin(self.conn, name)
    }

    /// What dropping it does.
    #[inline]
    #[must_use]
    pub fn drop_behavior(&self) -> DropBehavior {
        self.drop_behavior
    }

    /// Sets what dropping it does.
    #[inline]
    pub fn set_drop_behavior(&mut self, drop_behavior: DropBehavior) {
        self.drop_behavior = drop_behavior;
    }

    /// Commits.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    #[inline]
    pub fn commit(self) -> Result<()> {
        self.conn.run_transaction(&TransactionAction::Commit)
    }

    /// Rolls back.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn rollback(self) -> Result<()> {
        self.conn.run_transaction(&TransactionAction::Rollback)
    }

    /// Ends as dropping does, and answers what went wrong. With [`DropBehavior::Commit`] that
    /// is what kept it from committing, though it was rolled back then; rusqlite answers
    /// `Ok` to that, as to what is committed.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.conn.is_autocommit() {
            return Ok(());
        }
        match self.drop_behavior {
            DropBehavior::Commit => {
                let committed = self.conn.run_transaction(&TransactionAction::Commit);
                if committed.is_err() && !self.conn.is_autocommit() {
                    // What kept it from committing is the answer, whatever comes of this.
                    let _ = self.conn.run_transaction(&TransactionAction::Rollback);
                }
                committed
            }
            DropBehavior::Rollback => self.conn.run_transaction(&TransactionAction::Rollback),
            DropBehavior::Ignore => Ok(()),
            DropBehavior::Panic => panic!("Transaction dropped unexpectedly."),
        }
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    #[inline]
    fn deref(&self) -> &Connection {
        self.conn
    }
}

impl Drop for Transaction<'_> {
    #[inline]
    fn drop(&mut self) {
        // Nobody is left to tell; a failed rollback leaves nothing to keep.
        let _ = self.end();
    }
}

const SAVEPOINT_NAME: &str = "_fulgurite_sp";

/// A part of a transaction that can be undone alone.
#[derive(Debug)]
pub struct Savepoint<'conn> {
    conn: &'conn Connection,
    name: String,
    drop_behavior: DropBehavior,
    released: bool,
}

impl Savepoint<'_> {
    fn begin<T: Into<String>>(conn: &Connection, name: T) -> Result<Savepoint<'_>> {
        let name = name.into();
        conn.run_transaction(&TransactionAction::Savepoint(name.clone()))?;
        Ok(Savepoint {
            conn,
            name,
            drop_behavior: DropBehavior::Rollback,
            released: false,
        })
    }

    /// Begins a savepoint; outside of a transaction it also begins one.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn new(conn: &mut Connection) -> Result<Savepoint<'_>> {
        Savepoint::begin(conn, SAVEPOINT_NAME)
    }

    /// As [`Savepoint::new`], with a name.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn with_name<T: Into<String>>(conn: &mut Connection, name: T) -> Result<Savepoint<'_>> {
        Savepoint::begin(conn, name)
    }

    /// Begins a savepoint within this one.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::begin(self.conn, SAVEPOINT_NAME)
    }

    /// As [`Savepoint::savepoint`], with a name.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn savepoint_with_name<T: Into<String>>(&mut self, name: T) -> Result<Savepoint<'_>> {
        Savepoint::begin(self.conn, name)
    }

    /// What dropping it does.
    #[inline]
    #[must_use]
    pub fn drop_behavior(&self) -> DropBehavior {
        self.drop_behavior
    }

    /// Sets what dropping it does.
    #[inline]
    pub fn set_drop_behavior(&mut self, drop_behavior: DropBehavior) {
        self.drop_behavior = drop_behavior;
    }

    /// Keeps what was done since; the outermost savepoint commits.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn commit(mut self) -> Result<()> {
        self.release()
    }

    /// Undoes what was done since; the savepoint stays.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn rollback(&mut self) -> Result<()> {
        self.conn
            .run_transaction(&TransactionAction::RollbackTo(self.name.clone()))
    }

    /// Ends as dropping does, and answers what went wrong; as [`Transaction::finish`].
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn release(&mut self) -> Result<()> {
        self.conn
            .run_transaction(&TransactionAction::Release(self.name.clone()))?;
        self.released = true;
        Ok(())
    }

    fn undo(&mut self) -> Result<()> {
        self.rollback().and_then(|()| self.release())
    }

    fn end(&mut self) -> Result<()> {
        if self.released {
            return Ok(());
        }
        match self.drop_behavior {
            DropBehavior::Commit => {
                let released = self.release();
                // Where releasing was committing, that may have ended all of it.
                if released.is_err() && !self.conn.is_autocommit() {
                    let _ = self.undo();
                }
                released
            }
            DropBehavior::Rollback => self.undo(),
            DropBehavior::Ignore => Ok(()),
            DropBehavior::Panic => panic!("Savepoint dropped unexpectedly."),
        }
    }
}

impl Deref for Savepoint<'_> {
    type Target = Connection;

    #[inline]
    fn deref(&self) -> &Connection {
        self.conn
    }
}

impl Drop for Savepoint<'_> {
    #[inline]
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.end();
    }
}

impl Connection {
    /// Begins a transaction with this connection's behaviour (DEFERRED unless
    /// [`Connection::set_transaction_behavior`] says otherwise).
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn transaction(&mut self) -> Result<Transaction<'_>> {
        let behavior = self.transaction_behavior;
        Transaction::new(self, behavior)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn transaction_with_behavior(
        &mut self,
        behavior: TransactionBehavior,
    ) -> Result<Transaction<'_>> {
        Transaction::new(self, behavior)
    }

    /// As [`Connection::transaction`] through a shared reference; nesting is
    /// found at run time.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn unchecked_transaction(&self) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(self, self.transaction_behavior)
    }

    /// Begins a savepoint.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::new(self)
    }

    /// As [`Connection::savepoint`], with a name.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn savepoint_with_name<T: Into<String>>(&mut self, name: T) -> Result<Savepoint<'_>> {
        Savepoint::with_name(self, name)
    }

    /// How [`Connection::transaction`] begins.
    pub fn set_transaction_behavior(&mut self, behavior: TransactionBehavior) {
        self.transaction_behavior = behavior;
    }
}
