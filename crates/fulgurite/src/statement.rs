//! Prepared statements.
//!
//! A [`Statement`] is a thin wrapper over the engine's handle. While rows are
//! being read the handle moves into [`Rows`] and comes back when that is dropped
//! (one pointer each way), so that rows can show their statement without any
//! shared mutable state. Rows that were leaked keep the handle: the statement
//! then answers every call with `SQLITE_MISUSE`.

use std::ffi::c_int;
use std::fmt;

use fulgurite_sql::session::{Prepared, Step};

use crate::types::ToSqlOutput;
use crate::{
    AndThenRows, BindIndex, Connection, Error, MappedRows, Params, Result, Row, Rows, ToSql,
    ValueRef, ffi,
};

/// A prepared statement; made by [`Connection::prepare`].
pub struct Statement<'conn> {
    pub(crate) conn: &'conn Connection,
    /// None for a text without a statement, and while rows are being read.
    pub(crate) handle: Option<Box<Prepared>>,
    /// It is kept for the next one of its text when it is dropped.
    keep: bool,
}

impl<'conn> Statement<'conn> {
    #[inline]
    pub(crate) fn new(conn: &'conn Connection, handle: Option<Box<Prepared>>) -> Self {
        Self::of_recent(conn, handle, false)
    }

    /// One that may be kept for the next one of its text (`recent.rs`).
    #[inline]
    pub(crate) fn of_recent(
        conn: &'conn Connection,
        handle: Option<Box<Prepared>>,
        keep: bool,
    ) -> Self {
        Self { conn, handle, keep }
    }

    /// Does not keep it when it is dropped.
    pub(crate) fn forget(&mut self) {
        self.keep = false;
    }

    #[inline]
    pub(crate) fn handle_mut(&mut self) -> Result<&mut Prepared> {
        match &mut self.handle {
            Some(handle) => Ok(handle),
            None => Err(no_statement()),
        }
    }

    /// Runs the statement and returns the number of rows it changed.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # use fulgurite::{Connection, named_params, params};
    /// # let db = Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t (a, b)")?;
    /// let mut insert = db.prepare("INSERT INTO t (a, b) VALUES (?1, ?2)")?;
    /// insert.execute((1, "one"))?;
    /// insert.execute(params![2, "two"])?;
    /// let mut named = db.prepare("UPDATE t SET b = :b WHERE a = :a")?;
    /// assert_eq!(named.execute(named_params! { ":a": 1, ":b": "uno" })?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Parameters that do not fit, a statement that returns rows
    /// ([`Error::ExecuteReturnedResults`]), or what the engine says.
    #[inline]
    pub fn execute<P: Params>(&mut self, params: P) -> Result<usize> {
        params.__bind_in(self)?;
        self.raw_execute()
    }

    /// Runs an INSERT of one row and returns its rowid.
    ///
    /// # Errors
    /// [`Error::StatementChangedRows`] if it was not exactly one row, or as
    /// [`Statement::execute`].
    #[inline]
    pub fn insert<P: Params>(&mut self, params: P) -> Result<i64> {
        match self.execute(params)? {
            1 => Ok(self.conn.last_insert_rowid()),
            changes => Err(Error::StatementChangedRows(changes)),
        }
    }

    /// Starts the statement; the rows are computed as they are asked for.
    ///
    /// # Errors
    /// Parameters that do not fit.
    #[inline]
    pub fn query<P: Params>(&mut self, params: P) -> Result<Rows<'_>> {
        params.__bind_in(self)?;
        Ok(Rows::new(self))
    }

    /// Runs the statement and maps every row; an iterator of results.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # let db = fulgurite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t (name); INSERT INTO t VALUES ('ann'), ('bob')")?;
    /// let mut stmt = db.prepare("SELECT name FROM t ORDER BY name")?;
    /// let names = stmt.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    /// assert_eq!(names, ["ann", "bob"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Parameters that do not fit.
    pub fn query_map<T, P, F>(&mut self, params: P, f: F) -> Result<MappedRows<'_, F>>
    where
        P: Params,
        F: FnMut(&Row<'_>) -> Result<T>,
    {
        self.query(params).map(|rows| rows.mapped(f))
    }

    /// As [`Statement::query_map`] for functions with an error type of their own.
    ///
    /// # Errors
    /// Parameters that do not fit.
    #[inline]
    pub fn query_and_then<T, E, P, F>(&mut self, params: P, f: F) -> Result<AndThenRows<'_, F>>
    where
        P: Params,
        E: From<Error>,
        F: FnMut(&Row<'_>) -> Result<T, E>,
    {
        self.query(params).map(|rows| rows.and_then(f))
    }

    /// Whether the statement returns any row.
    ///
    /// # Errors
    /// Parameters that do not fit, or what the engine says.
    #[inline]
    pub fn exists<P: Params>(&mut self, params: P) -> Result<bool> {
        Ok(self.query(params)?.next()?.is_some())
    }

    /// Runs the statement and maps its first row; later rows are not computed.
    ///
    /// # Errors
    /// [`Error::QueryReturnedNoRows`] (see
    /// [`OptionalExtension`](crate::OptionalExtension)), or what the engine or
    /// `f` says.
    #[inline]
    pub fn query_row<T, P, F>(&mut self, params: P, f: F) -> Result<T>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        let mut rows = self.query(params)?;
        rows.expect_row().and_then(f)
    }

    /// As [`Statement::query_row`], and it must be the only row.
    ///
    /// # Errors
    /// [`Error::QueryReturnedMoreThanOneRow`], or as [`Statement::query_row`].
    pub fn query_one<T, P, F>(&mut self, params: P, f: F) -> Result<T>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        let mut rows = self.query(params)?;
        let value = rows.expect_row().and_then(f)?;
        match rows.next()? {
            None => Ok(value),
            Some(_) => Err(Error::QueryReturnedMoreThanOneRow),
        }
    }

    /// Ends the statement; the same as dropping it.
    ///
    /// # Errors
    /// None today.
    pub fn finalize(self) -> Result<()> {
        drop(self);
        Ok(())
    }

    /// The one-based number of a named parameter; the name includes its `:`,
    /// `@`, `$` or `?`.
    ///
    /// # Errors
    /// None today; an unknown name is `Ok(None)`.
    #[inline]
    pub fn parameter_index(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.handle.as_ref().and_then(|h| h.parameter_index(name)))
    }

    /// The name of a parameter by its one-based number.
    #[inline]
    pub fn parameter_name(&self, index: usize) -> Option<&str> {
        self.handle.as_ref()?.parameter_name(index)
    }

    /// How many parameters the statement has: the largest parameter number.
    #[inline]
    pub fn parameter_count(&self) -> usize {
        self.handle.as_ref().map_or(0, |h| h.parameter_count())
    }

    #[inline]
    pub(crate) fn ensure_parameter_count(&self, given: usize) -> Result<()> {
        match self.parameter_count() {
            count if count == given => Ok(()),
            count => Err(Error::InvalidParameterCount(given, count)),
        }
    }

    #[inline]
    pub(crate) fn bind_parameters<I>(&mut self, params: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: ToSql,
    {
        let expected = self.parameter_count();
        let mut given = 0;
        for param in params {
            given += 1;
            if given > expected {
                break;
            }
            self.bind_parameter(&param, given)?;
        }
        if given == expected {
            Ok(())
        } else {
            Err(Error::InvalidParameterCount(given, expected))
        }
    }

    #[inline]
    pub(crate) fn bind_parameters_named<S: BindIndex, T: ToSql>(
        &mut self,
        params: &[(S, T)],
    ) -> Result<()> {
        for (name, value) in params {
            let index = name.idx(self)?;
            self.bind_parameter(value, index)?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn bind_parameter<T: ToSql + ?Sized>(
        &mut self,
        param: &T,
        index: usize,
    ) -> Result<()> {
        let output: ToSqlOutput<'_> = param.to_sql()?.with_bytes()?;
        let value = output.as_value_ref()?.to_engine();
        self.handle_mut()?
            .bind(index, value)
            .map_err(Error::from_engine)
    }

    /// Binds one parameter by number or name, for [`Statement::raw_query`] and
    /// [`Statement::raw_execute`].
    ///
    /// # Errors
    /// An unknown name, a number out of range, or a failed conversion.
    #[inline]
    pub fn raw_bind_parameter<I: BindIndex, T: ToSql>(
        &mut self,
        one_based_index: I,
        param: T,
    ) -> Result<()> {
        let index = one_based_index.idx(self)?;
        self.bind_parameter(&param, index)
    }

    /// As [`Statement::execute`] with what is bound already; parameters that
    /// were never bound are NULL.
    ///
    /// # Errors
    /// As [`Statement::execute`].
    #[inline]
    pub fn raw_execute(&mut self) -> Result<usize> {
        let handle = self.handle_mut()?;
        let step = handle.step().map_err(Error::from_engine)?;
        handle.reset();
        match step {
            Step::Done => {
                let changes = handle.changes();
                Ok(changes.unwrap_or_else(|| self.conn.changes()) as usize)
            }
            Step::Row => Err(Error::ExecuteReturnedResults),
        }
    }

    /// As [`Statement::query`] with what is bound already.
    #[inline]
    pub fn raw_query(&mut self) -> Rows<'_> {
        Rows::new(self)
    }

    /// The statement's text with its parameters' values in their places.
    pub fn expanded_sql(&self) -> Option<String> {
        self.handle.as_ref().map(|h| h.expanded_sql())
    }

    /// 0 for an ordinary statement, 1 for EXPLAIN, 2 for EXPLAIN QUERY PLAN.
    pub fn is_explain(&self) -> c_int {
        let Some(handle) = &self.handle else { return 0 };
        match handle.is_explain() {
            false => 0,
            true if asks_for_query_plan(handle.sql()) => 2,
            true => 1,
        }
    }

    /// Whether running the statement leaves the database as it is.
    #[inline]
    pub fn readonly(&self) -> bool {
        self.handle.as_ref().is_none_or(|h| h.is_readonly())
    }

    /// Makes every parameter NULL again.
    pub fn clear_bindings(&mut self) {
        if let Some(handle) = &mut self.handle {
            handle.clear_bindings();
        }
    }

    /// A column of the current row.
    #[inline]
    pub(crate) fn value_ref(&self, column: usize) -> ValueRef<'_> {
        match &self.handle {
            Some(handle) => ValueRef::from_engine(handle.column(column)),
            None => ValueRef::Null,
        }
    }
}

impl Drop for Statement<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.keep
            && let Some(handle) = self.handle.take()
        {
            self.conn.recent.keep(handle);
        }
    }
}

/// Whether an EXPLAIN statement goes on with QUERY PLAN.
fn asks_for_query_plan(sql: &str) -> bool {
    let mut words = sql
        .split_ascii_whitespace()
        .skip_while(|w| !w.eq_ignore_ascii_case("explain"))
        .skip(1);
    words
        .next()
        .is_some_and(|w| w.eq_ignore_ascii_case("query"))
}

#[cold]
fn no_statement() -> Error {
    Error::failure(ffi::SQLITE_MISUSE, ffi::code_to_str(ffi::SQLITE_MISUSE))
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("conn", self.conn)
            .field("sql", &self.handle.as_ref().map_or("", |h| h.sql()))
            .finish()
    }
}
