//! Running a transaction until it commits.

use fulgurite_store::{LOSSES_MAX, pause_after};

use crate::{Connection, Error, Result, Transaction, TransactionBehavior, ffi};

impl Connection {
    /// Runs `work` in a transaction and commits it. Where it lost against an
    /// overlapping one (`SQLITE_BUSY_SNAPSHOT`) it is run again after a short,
    /// growing pause, and after a few losses as IMMEDIATE, which cannot lose. So
    /// `work` may run several times, and what it does beside the database should
    /// bear that. An error or a panic of `work` rolls back. Where a statement's
    /// `ON CONFLICT ROLLBACK`, or an interrupt of one that writes, has ended the transaction,
    /// `work` has to end with its error: what it does after that stands by itself.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # let mut db = fulgurite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INT); INSERT INTO account VALUES (1, 10), (2, 0)")?;
    /// let left: i64 = db.transact(|tx| {
    ///     tx.execute("UPDATE account SET balance = balance - ?1 WHERE id = ?2", (5, 1))?;
    ///     tx.execute("UPDATE account SET balance = balance + ?1 WHERE id = ?2", (5, 2))?;
    ///     tx.query_row("SELECT balance FROM account WHERE id = 1", [], |row| row.get(0))
    /// })?;
    /// assert_eq!(left, 5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `work` and of committing, except conflicts. `SQLITE_BUSY` is not
    /// tried again: it has waited for the busy timeout already.
    pub fn transact<T>(
        &mut self,
        mut work: impl FnMut(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut losses = 0;
        loop {
            let behavior = if losses < LOSSES_MAX {
                TransactionBehavior::Deferred
            } else {
                TransactionBehavior::Immediate
            };
            let transaction = Transaction::new(self, behavior)?;
            let outcome = match work(&transaction) {
                Ok(value) => transaction.commit().map(|()| value),
                Err(error) => {
                    drop(transaction);
                    Err(error)
                }
            };
            match outcome {
                Err(error) if is_conflict(&error) => {
                    losses += 1;
                    self.database().store().pause(pause_after(losses));
                }
                outcome => return outcome,
            }
        }
    }
}

fn is_conflict(error: &Error) -> bool {
    error.sqlite_extended_error_code() == Some(ffi::SQLITE_BUSY_SNAPSHOT)
}
