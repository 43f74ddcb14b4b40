//! Connections: where statements are prepared and run.

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt;
use std::path::Path;

use fallible_iterator::FallibleIterator;
use fulgurite_sql::plan::physical::TransactionAction;
use fulgurite_sql::session::{Prepared, Session};

use crate::cache::StatementCache;
use crate::collation::CollationNeeded;
use crate::recent::{Known, Recent};
use crate::{Database, Error, OpenFlags, Params, Result, Row, Statement, TransactionBehavior, ffi};

/// A connection to a database. It can be moved between threads; to use a
/// database from several at once, give each a connection of its own.
///
/// Opening a file that this process has open already joins the same database.
pub struct Connection {
    database: Database,
    session: Session,
    pub(crate) cache: StatementCache,
    pub(crate) recent: Recent,
    path: String,
    pub(crate) transaction_behavior: TransactionBehavior,
    /// Somebody can interrupt it.
    interruptible: Cell<bool>,
    /// Asked for collations that are missing.
    pub(crate) collation_needed: Cell<Option<CollationNeeded>>,
}

impl Connection {
    pub(crate) fn new(database: Database) -> Self {
        let session = database.engine().session();
        let path = database
            .path()
            .map(|p| p.to_string_lossy().into_owned())
            .unwrap_or_default();
        Self {
            database,
            session,
            cache: StatementCache::with_capacity(StatementCache::CAPACITY_DEFAULT),
            recent: Recent::default(),
            path,
            transaction_behavior: TransactionBehavior::Deferred,
            interruptible: Cell::new(false),
            collation_needed: Cell::new(None),
        }
    }

    /// Makes the connection as good as new for somebody else, but for the statements
    /// that it has compiled; false where that cannot be done.
    pub(crate) fn renew(&mut self) -> bool {
        self.transaction_behavior = TransactionBehavior::Deferred;
        self.collation_needed.set(None);
        self.set_prepared_statement_cache_capacity(StatementCache::CAPACITY_DEFAULT);
        if self.session.has_user_code() {
            self.flush_prepared_statement_cache();
        }
        !self.interruptible.get() && self.session.renew()
    }

    /// Opens a file, creating it if it is absent. `:memory:` is a new database
    /// in memory; a `file:` URI may say `?mode=ro`. With `?immutable=1`, too, it is only read.
    ///
    /// # Errors
    /// A file that cannot be opened, is held by another process, is no database
    /// or is damaged.
    #[inline]
    pub fn open<P: AsRef<Path>>(path: P) -> Result<Self> {
        Self::open_with_flags(path, OpenFlags::default())
    }

    /// A new database in memory.
    ///
    /// # Errors
    /// None in practice.
    #[inline]
    pub fn open_in_memory() -> Result<Self> {
        Self::open_in_memory_with_flags(OpenFlags::default())
    }

    /// As [`Connection::open`], saying how.
    ///
    /// # Errors
    /// As [`Connection::open`], or flags that make no sense together.
    pub fn open_with_flags<P: AsRef<Path>>(path: P, flags: OpenFlags) -> Result<Self> {
        let path = path.as_ref();
        let opened = Database::open_target(path, flags);
        opened.map_err(|error| error.naming(path))?.connect()
    }

    /// As [`Connection::open_in_memory`], saying how.
    ///
    /// # Errors
    /// Flags that make no sense together.
    #[inline]
    pub fn open_in_memory_with_flags(flags: OpenFlags) -> Result<Self> {
        Self::open_with_flags(":memory:", flags)
    }

    /// Begins or ends a transaction or a savepoint, without a text to compile.
    pub(crate) fn run_transaction(&self, action: &TransactionAction) -> Result<()> {
        let outcome = self.session.run_transaction(action);
        outcome.map_err(Error::from_engine)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The database this is a connection to; its `connect()` gives another one.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Compiles the first statement of `sql`; None if there is only space and
    /// comments. Also the number of bytes read.
    fn compile(&self, sql: &str) -> Result<(Option<Box<Prepared>>, usize)> {
        let mut compiled = self.session.prepare(sql);
        let mut asked = Vec::new();
        while self.asks_for_collations(&compiled, &mut asked) {
            compiled = self.session.prepare(sql);
        }
        match compiled {
            Ok((handle, read)) => Ok((handle.map(Box::new), read)),
            Err(e) => Err(Error::from_prepare(e, sql)),
        }
    }

    /// Compiles a statement. One of the last texts that came more than once, or one that
    /// differs from these in its values only, is compiled again only where that would
    /// give another statement;
    /// [`Connection::prepare_cached`] keeps as many as one wants.
    ///
    /// # Errors
    /// SQL that does not parse or names what is not there; more than one
    /// statement.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let (stmt, read) = self.prepare_first(sql)?;
        let rest = sql.get(read..).unwrap_or_default();
        if !rest.trim_ascii().is_empty() && stmt.handle.is_some() && self.compile(rest)?.0.is_some()
        {
            return Err(Error::MultipleStatement);
        }
        Ok(stmt)
    }

    #[inline]
    fn check_interrupt(&self) -> Result<()> {
        self.session.check_interrupt().map_err(Error::from_engine)
    }

    /// As [`prepare_first`](Self::prepare_first) for a script, all of which would be looked
    /// for before each of its statements.
    fn prepare_next(&self, sql: &str) -> Result<(Statement<'_>, usize)> {
        self.check_interrupt()?;
        if let Some((handle, read)) = self.recent.find_by_shape(&self.session, sql) {
            return Ok((Statement::of_recent(self, Some(handle), true), read));
        }
        let (handle, read) = self.compile(sql)?;
        Ok((Statement::new(self, handle), read))
    }

    /// The first statement of `sql`, and the number of bytes that it takes: one of its
    /// whole text or of its shape that was compiled before, or else it is compiled.
    fn prepare_first(&self, sql: &str) -> Result<(Statement<'_>, usize)> {
        self.check_interrupt()?;
        let trimmed = sql.trim_ascii_end();
        let known = self.recent.find(trimmed);
        if let Known::Again(Some(handle)) = known {
            return Ok((Statement::of_recent(self, Some(handle), true), sql.len()));
        }
        if let Some((handle, read)) = self.recent.find_by_shape(&self.session, sql) {
            return Ok((Statement::of_recent(self, Some(handle), true), read));
        }
        let (handle, read) = self.compile(sql)?;
        let is_whole = handle
            .as_ref()
            .is_some_and(|handle| handle.sql().trim_ascii_end() == trimmed);
        let keep = is_whole && matches!(known, Known::Again(_));
        Ok((Statement::of_recent(self, handle, keep), read))
    }

    /// Runs all statements of `sql` one after the other; rows are thrown away.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # let db = fulgurite::Connection::open_in_memory()?;
    /// db.execute_batch("BEGIN; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); COMMIT;")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Of the first statement that fails; those before it have run.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        let mut batch = Batch::new(self, sql);
        while let Some(mut stmt) = batch.next()? {
            // The first step does all of a statement that changes something.
            stmt.raw_query().next()?;
        }
        Ok(())
    }

    /// Compiles and runs a statement; the number of rows it changed.
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::execute`].
    #[inline]
    pub fn execute<P: Params>(&self, sql: &str, params: P) -> Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    /// Compiles and runs a query and maps its first row.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # let db = fulgurite::Connection::open_in_memory()?;
    /// let answer: i64 = db.query_row("SELECT ?1 * ?2", (6, 7), |row| row.get(0))?;
    /// assert_eq!(answer, 42);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::query_row`].
    #[inline]
    pub fn query_row<T, P, F>(&self, sql: &str, params: P, f: F) -> Result<T>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        self.prepare(sql)?.query_row(params, f)
    }

    /// As [`Connection::query_row`], and it must be the only row.
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::query_one`].
    pub fn query_one<T, P, F>(&self, sql: &str, params: P, f: F) -> Result<T>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        self.prepare(sql)?.query_one(params, f)
    }

    /// As [`Connection::query_row`] for functions with an error type of their
    /// own.
    ///
    /// # Errors
    /// As [`Connection::query_row`].
    pub fn query_row_and_then<T, E, P, F>(&self, sql: &str, params: P, f: F) -> Result<T, E>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T, E>,
        E: From<Error>,
    {
        let mut stmt = self.prepare(sql)?;
        let mut rows = stmt.query(params)?;
        rows.expect_row().map_err(E::from).and_then(f)
    }

    /// The file's path; empty in memory.
    #[inline]
    pub fn path(&self) -> Option<&str> {
        Some(&self.path)
    }

    /// Rowid of the row this connection inserted last; 0 if none.
    #[inline]
    pub fn last_insert_rowid(&self) -> i64 {
        self.session.last_insert_rowid()
    }

    /// Sets what [`Connection::last_insert_rowid`] answers.
    pub fn set_last_insert_rowid(&self, rowid: i64) {
        self.session.set_last_insert_rowid(rowid);
    }

    /// Rows changed by the last INSERT, UPDATE or DELETE.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.session.changes()
    }

    /// Rows changed since the connection was opened.
    #[inline]
    pub fn total_changes(&self) -> u64 {
        self.session.total_changes()
    }

    /// Whether no transaction is open.
    #[inline]
    pub fn is_autocommit(&self) -> bool {
        self.session.is_autocommit()
    }

    /// Whether the database may only be read.
    ///
    /// # Errors
    /// An unknown database name.
    pub fn is_readonly<N: Name>(&self, db_name: N) -> Result<bool> {
        let name = db_name.as_text()?;
        self.session.is_read_only(&name).ok_or_else(|| {
            let message = format!("{db_name:?} is not the name of a database");
            Error::failure(ffi::SQLITE_MISUSE, message)
        })
    }

    /// A handle that stops this connection's running statement from another
    /// thread.
    #[inline]
    pub fn get_interrupt_handle(&self) -> InterruptHandle {
        self.interruptible.set(true);
        InterruptHandle {
            handle: self.session.interrupt_handle(),
        }
    }

    /// Writes everything committed so far into the database file.
    ///
    /// # Errors
    /// A failing disk.
    pub fn cache_flush(&self) -> Result<()> {
        self.database.checkpoint()
    }

    /// Closes the connection; an open transaction is rolled back.
    ///
    /// # Errors
    /// None today; the connection would be handed back.
    #[expect(clippy::result_large_err, reason = "rusqlite's signature")]
    pub fn close(self) -> Result<(), (Self, Error)> {
        drop(self);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A statement that was leaked (`mem::forget`) keeps the session.
        self.session.close();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("path", &self.path())
            .finish()
    }
}

/// The statements of a text, compiled one after the other; each must have run
/// before the next one is compiled if it makes what the next one needs.
#[derive(Debug)]
pub struct Batch<'conn, 'sql> {
    conn: &'conn Connection,
    rest: &'sql str,
}

impl<'conn, 'sql> Batch<'conn, 'sql> {
    /// Over all statements of `sql`.
    pub fn new(conn: &'conn Connection, sql: &'sql str) -> Self {
        Self { conn, rest: sql }
    }
}

impl<'conn> FallibleIterator for Batch<'conn, '_> {
    type Error = Error;
    type Item = Statement<'conn>;

    fn next(&mut self) -> Result<Option<Statement<'conn>>> {
        while !self.rest.is_empty() {
            let conn = self.conn;
            let (stmt, read) = match is_one(self.rest) {
                true => conn.prepare_first(self.rest)?,
                false => conn.prepare_next(self.rest)?,
            };
            self.rest = match read {
                0 => "",
                _ => self.rest.get(read..).unwrap_or_default(),
            };
            if stmt.handle.is_some() {
                return Ok(Some(stmt));
            }
        }
        Ok(None)
    }
}

/// Whether a text has no semicolon but at its end, so that it is one statement at most.
fn is_one(sql: &str) -> bool {
    let end = sql.trim_ascii_end();
    !end.strip_suffix(';').unwrap_or(end).contains(';')
}

/// Stops a connection's running statement; made by
/// [`Connection::get_interrupt_handle`].
pub struct InterruptHandle {
    handle: fulgurite_sql::session::InterruptHandle,
}

impl InterruptHandle {
    /// The running statement answers `SQLITE_INTERRUPT`. Without one, or after
    /// the connection was closed, this does nothing.
    pub fn interrupt(&self) {
        self.handle.interrupt();
    }
}

/// The name of a database, a table or a column.
pub trait Name: fmt::Debug + Copy {
    /// The name as text.
    ///
    /// # Errors
    /// A name that is not UTF-8.
    fn as_text(&self) -> Result<String>;
}

impl Name for &str {
    fn as_text(&self) -> Result<String> {
        Ok((*self).to_owned())
    }
}

impl Name for &CStr {
    fn as_text(&self) -> Result<String> {
        Ok(self.to_str()?.to_owned())
    }
}
