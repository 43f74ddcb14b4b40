//! What a connection and its statements tell of themselves, beside the everyday.

use std::ffi::c_uint;
use std::sync::Arc;

use bitflags::bitflags;
use fulgurite_sql::func::SQLITE_VERSION;
use fulgurite_sql::plan::physical::Origin;

use crate::{Connection, Error, Name, Result, Statement, ffi};

bitflags! {
    /// How [`Connection::prepare_with_flags`] compiles a statement. They are hints to
    /// SQLite; here nothing depends on them.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    #[repr(C)]
    pub struct PrepFlags: c_uint {
        /// The statement is kept for long.
        const SQLITE_PREPARE_PERSISTENT = 0x01;
        /// Virtual tables are refused; there are none.
        const SQLITE_PREPARE_NO_VTAB = 0x04;
        /// Errors are not logged; none are.
        const SQLITE_PREPARE_DONT_LOG = 0x10;
        /// What the text of a schema may not do is refused here, too.
        const SQLITE_PREPARE_FROM_DDL = 0x20;
    }
}

impl Default for PrepFlags {
    fn default() -> Self {
        Self::empty()
    }
}

/// Where the transaction of a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionState {
    /// Nothing is read or written.
    None,
    /// Something was read.
    Read,
    /// Something was written, or others are kept from writing: by BEGIN IMMEDIATE.
    Write,
}

/// The version of SQLite whose language this is, as a number: 3054001 is 3.54.1.
#[must_use]
pub fn version_number() -> i32 {
    let parts = SQLITE_VERSION.split('.');
    let numbers = parts.map(|part| part.parse::<i32>().unwrap_or(0));
    numbers.fold(0, |version, part| version * 1000 + part)
}

/// The version of SQLite whose language this is.
#[must_use]
pub fn version() -> &'static str {
    SQLITE_VERSION
}

impl Connection {
    /// As [`Connection::prepare`]; flags change nothing.
    ///
    /// # Errors
    /// As [`Connection::prepare`].
    pub fn prepare_with_flags(&self, sql: &str, _flags: PrepFlags) -> Result<Statement<'_>> {
        self.prepare(sql)
    }

    /// Whether some statement is in the middle of its rows.
    pub fn is_busy(&self) -> bool {
        self.session().is_running()
    }

    /// Whether an interrupt was asked for that no statement has heeded yet.
    pub fn is_interrupted(&self) -> bool {
        self.session().is_interrupted()
    }

    /// The name of a database by its number: 0 is `main`, 1 `temp`, and those behind are
    /// attached.
    ///
    /// # Errors
    /// [`Error::InvalidDatabaseIndex`].
    pub fn db_name(&self, index: usize) -> Result<String> {
        let name = self.session().database_name(index);
        name.map(|name| (*name).to_owned())
            .ok_or(Error::InvalidDatabaseIndex(index))
    }

    /// Forgets what is kept to be faster next time: compiled statements.
    ///
    /// # Errors
    /// None.
    pub fn release_memory(&self) -> Result<()> {
        self.flush_prepared_statement_cache();
        Ok(())
    }

    /// Where the connection's transaction stands, in one database or in all.
    ///
    /// # Errors
    /// An unknown name.
    pub fn transaction_state<N: Name>(&self, db_name: Option<N>) -> Result<TransactionState> {
        let session = self.session();
        let name = db_name.map(|name| name.as_text()).transpose()?;
        let (has_written, has_read) = match &name {
            None => (
                session.has_written(),
                session.has_begun() || session.is_running(),
            ),
            Some(name) => session.uses_of(name).ok_or_else(|| {
                let message = format!("{db_name:?} is not the name of a valid schema");
                Error::failure(ffi::SQLITE_MISUSE, message)
            })?,
        };
        let excludes = session.excludes_writers(name.as_deref());
        Ok(match (has_written || excludes, has_read) {
            (true, _) => TransactionState::Write,
            (false, true) => TransactionState::Read,
            (false, false) => TransactionState::None,
        })
    }
}

/// A column of a statement's result, and where it comes from.
#[derive(Debug)]
pub struct ColumnMetadata<'stmt> {
    name: &'stmt str,
    origin: Option<(Arc<str>, &'stmt Origin)>,
}

impl ColumnMetadata<'_> {
    /// The column's name in the result.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// The database that it comes from; None for an expression.
    #[must_use]
    pub fn database_name(&self) -> Option<&str> {
        self.origin.as_ref().map(|(database, _)| &**database)
    }

    /// The table that it comes from; None for an expression.
    #[must_use]
    pub fn table_name(&self) -> Option<&str> {
        self.origin.as_ref().map(|(_, origin)| origin.table())
    }

    /// The table's column that it is; None for an expression.
    #[must_use]
    pub fn origin_name(&self) -> Option<&str> {
        self.origin.as_ref().map(|(_, origin)| origin.column())
    }
}

impl Statement<'_> {
    /// Names of all columns, and where they come from.
    pub fn columns_with_metadata(
        &self,
    ) -> impl DoubleEndedIterator<Item = ColumnMetadata<'_>> + ExactSizeIterator {
        (0..self.column_count()).map(|i| ColumnMetadata {
            name: self.name_or_empty(i),
            origin: self.handle.as_ref().and_then(|it| {
                let origin = it.column_origin(i)?;
                Some((self.conn.session().database_in(origin.store()), origin))
            }),
        })
    }
}
