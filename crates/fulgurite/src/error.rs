//! The one error type of this crate, in rusqlite's shape.
//!
//! Programs match on the variants, on [`ffi::Error`]'s code and on SQLite's
//! message texts. The engine knows more than that shape can hold: a hint (the
//! nearest name, who holds the lock, file and position of rot) and the place in
//! the statement. They are kept beside the errors, in a small table of the last
//! ones raised, and found again by [`Error::hint`] and [`Error::offset`] through
//! the address of the error's message. An error that was rebuilt or whose entry
//! was pushed out by 64 later ones simply has no hint.

use std::collections::VecDeque;
use std::ffi::{NulError, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use fulgurite_sql::error as sql;
use fulgurite_store::Owned;
use parking_lot::Mutex;

use crate::ffi;
use crate::types::{FromSqlError, Type};

/// Result of most calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Column number of a conversion failure outside of any row.
const UNKNOWN_COLUMN: usize = usize::MAX;

/// What can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused: its result code and SQLite's message text.
    SqliteFailure(ffi::Error, Option<String>),
    /// Never raised; here because programs name it.
    SqliteSingleThreadedMode,
    /// A column's value could not be converted to the type asked for: column
    /// number, kind of the value, cause.
    FromSqlConversionFailure(
        usize,
        Type,
        Box<dyn std::error::Error + Send + Sync + 'static>,
    ),
    /// An integer does not fit the type asked for: column number and value.
    IntegralValueOutOfRange(usize, i64),
    /// A text is not UTF-8: column number and cause.
    Utf8Error(usize, Utf8Error),
    /// A name contains a zero byte.
    NulError(NulError),
    /// The statement has no parameter of this name.
    InvalidParameterName(String),
    /// A path that cannot name a database.
    InvalidPath(PathBuf),
    /// `execute` was called for a statement that returns rows.
    ExecuteReturnedResults,
    /// A row was expected and there is none.
    QueryReturnedNoRows,
    /// One row was expected and there are more.
    QueryReturnedMoreThanOneRow,
    /// The statement has no column of this number.
    InvalidColumnIndex(usize),
    /// The statement has no column of this name.
    InvalidColumnName(String),
    /// A column's value is of another kind than asked for: column number, name
    /// and the kind it is.
    InvalidColumnType(usize, String, Type),
    /// One row was to be inserted; this many were.
    StatementChangedRows(usize),
    /// A parameter could not be converted.
    ToSqlConversionFailure(Box<dyn std::error::Error + Send + Sync + 'static>),
    /// The statement is not read-only.
    InvalidQuery,
    /// A callback of the program panicked.
    UnwindingPanic,
    /// The text holds more than one statement.
    MultipleStatement,
    /// Parameters given, parameters the statement has.
    InvalidParameterCount(usize, usize),
    /// The statement's text is at fault, at a known place.
    SqlInputError {
        /// The result code.
        error: ffi::Error,
        /// SQLite's message text.
        msg: String,
        /// The statement.
        sql: String,
        /// Byte of `sql` at which the fault lies.
        offset: c_int,
    },
    /// No attached database has this number.
    InvalidDatabaseIndex(usize),
    /// A function's argument is of another kind than asked for: its number and the kind
    /// it is.
    InvalidFunctionParameterType(usize, Type),
    /// An error of a function of the program.
    UserFunctionError(Box<dyn std::error::Error + Send + Sync + 'static>),
    /// What a function kept for an argument is of another type than asked for.
    GetAuxWrongType,
    /// More bytes were to be read or written than a blob holds behind the place.
    BlobSizeError,
}

/// What [`Error`]'s shape has no room for.
struct Detail {
    /// Address of the message in the error that this belongs to.
    message_at: usize,
    message: String,
    hint: Option<String>,
    offset: Option<usize>,
    cause: Option<Owned<sql::ProgramError>>,
}

/// Entries kept; the oldest go first.
const DETAILS_MAX: usize = 64;

static DETAILS: Mutex<VecDeque<Detail>> = Mutex::new(VecDeque::new());

/// Remembers hint and place for the error that owns `message`.
fn remember(
    message: &str,
    hint: Option<&str>,
    offset: Option<usize>,
    cause: Option<&sql::ProgramError>,
) {
    if hint.is_none() && offset.is_none() && cause.is_none() {
        return;
    }
    let detail = Detail {
        message_at: message.as_ptr().addr(),
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
        offset,
        cause: cause.cloned().map(Owned::new),
    };
    let mut details = DETAILS.lock();
    let oldest = match details.len() {
        DETAILS_MAX => details.pop_front(),
        _ => None,
    };
    details.push_back(detail);
    // What it holds may be the program's, and is dropped while nothing is locked.
    drop(details);
    drop(oldest);
}

/// What was remembered for the error that owns `message`. The text is compared
/// too: the address may have been used again since.
fn recall<T>(message: &str, pick: impl Fn(&Detail) -> Option<T>) -> Option<T> {
    let at = message.as_ptr().addr();
    let details = DETAILS.lock();
    details
        .iter()
        .rev()
        .find(|d| d.message_at == at && d.message == message)
        .and_then(pick)
}

impl Error {
    /// The result code, if the engine raised this as [`Error::SqliteFailure`].
    #[inline]
    #[must_use]
    pub fn sqlite_error(&self) -> Option<&ffi::Error> {
        match self {
            Self::SqliteFailure(error, _) => Some(error),
            _ => None,
        }
    }

    /// The kind of failure, if the engine raised this as
    /// [`Error::SqliteFailure`].
    #[inline]
    #[must_use]
    pub fn sqlite_error_code(&self) -> Option<ffi::ErrorCode> {
        self.sqlite_error().map(|e| e.code)
    }

    /// The extended result code, if the engine raised this as
    /// [`Error::SqliteFailure`].
    #[inline]
    #[must_use]
    pub fn sqlite_extended_error_code(&self) -> Option<c_int> {
        self.sqlite_error().map(|e| e.extended_code)
    }

    /// What a person can do about it: the nearest name, who holds the file, what
    /// exactly is wrong with it. Not part of rusqlite's interface.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        recall(self.engine_message()?, |d| d.hint.clone())
    }

    /// The error that a function of the program gave, where that ended a statement: its
    /// [`Error::UserFunctionError`]'s cause, or else the whole. Not part of rusqlite's
    /// interface.
    #[must_use]
    pub fn function_error(&self) -> Option<sql::ProgramError> {
        recall(self.engine_message()?, |d| d.cause.as_ref()?.get().cloned())
    }

    /// Byte of the statement that is to blame. Not part of rusqlite's interface.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::SqlInputError { offset, .. } => usize::try_from(*offset).ok(),
            _ => recall(self.engine_message()?, |d| d.offset),
        }
    }

    /// Result code of the failure, whatever its variant: the engine's own, or
    /// `SQLITE_ERROR`'s kin for the faults this crate finds itself. Not part of
    /// rusqlite's interface.
    #[must_use]
    pub fn result_code(&self) -> c_int {
        match self {
            Self::SqliteFailure(error, _) | Self::SqlInputError { error, .. } => {
                error.extended_code
            }
            Self::InvalidParameterName(_)
            | Self::InvalidParameterCount(..)
            | Self::InvalidColumnIndex(_) => ffi::SQLITE_RANGE,
            Self::InvalidPath(_) => ffi::SQLITE_CANTOPEN,
            Self::ExecuteReturnedResults | Self::MultipleStatement => ffi::SQLITE_MISUSE,
            Self::IntegralValueOutOfRange(..)
            | Self::InvalidColumnType(..)
            | Self::FromSqlConversionFailure(..) => ffi::SQLITE_MISMATCH,
            _ => ffi::SQLITE_ERROR,
        }
    }

    /// The message without the statement's text: what [`Display`](fmt::Display)
    /// shows, except that an [`Error::SqlInputError`] is not repeated in full.
    /// Not part of rusqlite's interface.
    #[must_use]
    pub fn message(&self) -> String {
        self.engine_message()
            .map_or_else(|| self.to_string(), str::to_owned)
    }

    fn engine_message(&self) -> Option<&str> {
        match self {
            Self::SqliteFailure(_, Some(message)) => Some(message),
            Self::SqlInputError { msg, .. } => Some(msg),
            _ => None,
        }
    }

    /// A failure with one of [`ffi`]'s codes.
    #[cold]
    pub(crate) fn failure(code: c_int, message: impl Into<String>) -> Self {
        Self::SqliteFailure(ffi::Error::new(code), Some(message.into()))
    }

    /// As [`Error::failure`], with the way out.
    #[cold]
    pub(crate) fn failure_with_hint(code: c_int, message: impl Into<String>, hint: &str) -> Self {
        let message = message.into();
        remember(&message, Some(hint), None, None);
        Self::SqliteFailure(ffi::Error::new(code), Some(message))
    }

    /// As it is, but that the message of a database which cannot be opened names the path.
    #[cold]
    pub(crate) fn naming(self, path: &Path) -> Self {
        match &self {
            Self::SqliteFailure(error, Some(message))
                if error.code == ffi::ErrorCode::CannotOpen =>
            {
                let named = format!("{message}: {}", path.display());
                match self.hint() {
                    Some(hint) => Self::failure_with_hint(error.extended_code, named, &hint),
                    None => Self::failure(error.extended_code, named),
                }
            }
            _ => self,
        }
    }

    /// What the engine said while opening, running or ending something.
    #[cold]
    pub(crate) fn from_engine(error: sql::Error) -> Self {
        let message = error.message().to_owned();
        remember(&message, error.hint(), error.offset(), error.cause());
        Self::SqliteFailure(ffi::Error::new(error.extended_code()), Some(message))
    }

    /// What the engine said to the text `statement`: where it names a place,
    /// SQLite's errors of this kind carry it.
    #[cold]
    pub(crate) fn from_prepare(error: sql::Error, statement: &str) -> Self {
        let code = ffi::Error::new(error.extended_code());
        match error.offset().map(c_int::try_from) {
            Some(Ok(offset))
                if code.code == ffi::ErrorCode::Unknown && names_a_place(error.message()) =>
            {
                let msg = error.message().to_owned();
                remember(&msg, error.hint(), None, error.cause());
                Self::SqlInputError {
                    error: code,
                    msg,
                    sql: statement.to_owned(),
                    offset,
                }
            }
            _ => Self::from_engine(error),
        }
    }
}

/// Whether SQLite gives a place with this message. Our engine knows one for
/// more of them; those stay [`Error::SqliteFailure`], as programs expect, with
/// the place in [`Error::offset`].
fn names_a_place(message: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "near \"",
        "unrecognized token: ",
        "no such column: ",
        "ambiguous column name: ",
        "no such function: ",
        "wrong number of arguments to function ",
        "misuse of ",
        "unknown database ",
        "variable number must be ",
        "FILTER may not be used with non-aggregate ",
        "ORDER BY may not be used with non-aggregate ",
        "second argument to likelihood() must be ",
    ];
    let kinds = ["table ", "view ", "trigger "];
    let is_taken =
        message.ends_with(" already exists") && kinds.iter().any(|kind| message.starts_with(kind));
    is_taken
        || message.ends_with(" may not be used as a window function")
        || BEGINNINGS.iter().any(|text| message.starts_with(text))
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SqliteFailure(a, s), Self::SqliteFailure(b, t)) => a == b && s == t,
            (Self::IntegralValueOutOfRange(i, n), Self::IntegralValueOutOfRange(j, m)) => {
                (i, n) == (j, m)
            }
            (Self::Utf8Error(i, a), Self::Utf8Error(j, b)) => (i, a) == (j, b),
            (Self::NulError(a), Self::NulError(b)) => a == b,
            (Self::InvalidParameterName(a), Self::InvalidParameterName(b))
            | (Self::InvalidColumnName(a), Self::InvalidColumnName(b)) => a == b,
            (Self::InvalidPath(a), Self::InvalidPath(b)) => a == b,
            (Self::InvalidColumnIndex(a), Self::InvalidColumnIndex(b))
            | (Self::StatementChangedRows(a), Self::StatementChangedRows(b))
            | (Self::InvalidDatabaseIndex(a), Self::InvalidDatabaseIndex(b)) => a == b,
            (Self::InvalidColumnType(i, n, t), Self::InvalidColumnType(j, m, u)) => {
                (i, n, t) == (j, m, u)
            }
            (Self::InvalidParameterCount(a, b), Self::InvalidParameterCount(c, d)) => {
                (a, b) == (c, d)
            }
            (
                Self::SqlInputError {
                    error: e1,
                    msg: m1,
                    sql: s1,
                    offset: o1,
                },
                Self::SqlInputError {
                    error: e2,
                    msg: m2,
                    sql: s2,
                    offset: o2,
                },
            ) => (e1, m1, s1, o1) == (e2, m2, s2, o2),
            // Boxed causes cannot be compared, so errors that hold one differ.
            (
                Self::InvalidFunctionParameterType(i, t),
                Self::InvalidFunctionParameterType(j, u),
            ) => (i, t) == (j, u),
            (
                Self::FromSqlConversionFailure(..)
                | Self::ToSqlConversionFailure(_)
                | Self::UserFunctionError(_),
                _,
            ) => false,
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && matches!(
                        self,
                        Self::SqliteSingleThreadedMode
                            | Self::ExecuteReturnedResults
                            | Self::QueryReturnedNoRows
                            | Self::QueryReturnedMoreThanOneRow
                            | Self::InvalidQuery
                            | Self::UnwindingPanic
                            | Self::MultipleStatement
                            | Self::GetAuxWrongType
                            | Self::BlobSizeError
                    )
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SqliteFailure(error, None) => error.fmt(f),
            Self::SqliteFailure(_, Some(message)) => f.write_str(message),
            Self::SqliteSingleThreadedMode => {
                f.write_str("SQLite was compiled or configured for single-threaded use only")
            }
            Self::FromSqlConversionFailure(UNKNOWN_COLUMN, _, cause) => cause.fmt(f),
            Self::FromSqlConversionFailure(i, kind, cause) => {
                write!(
                    f,
                    "Conversion error from type {kind} at index: {i}, {cause}"
                )
            }
            Self::IntegralValueOutOfRange(UNKNOWN_COLUMN, value) => {
                write!(f, "Integer {value} out of range")
            }
            Self::IntegralValueOutOfRange(i, value) => {
                write!(f, "Integer {value} out of range at index {i}")
            }
            Self::Utf8Error(UNKNOWN_COLUMN, cause) => cause.fmt(f),
            Self::Utf8Error(i, cause) => write!(f, "{cause} at index {i}"),
            Self::NulError(cause) => cause.fmt(f),
            Self::InvalidParameterName(name) => write!(f, "Invalid parameter name: {name}"),
            Self::InvalidPath(path) => write!(f, "Invalid path: {}", path.to_string_lossy()),
            Self::ExecuteReturnedResults => {
                f.write_str("Execute returned results - did you mean to call query?")
            }
            Self::QueryReturnedNoRows => f.write_str("Query returned no rows"),
            Self::QueryReturnedMoreThanOneRow => f.write_str("Query returned more than one row"),
            Self::InvalidColumnIndex(i) => write!(f, "Invalid column index: {i}"),
            Self::InvalidColumnName(name) => write!(f, "Invalid column name: {name}"),
            Self::InvalidColumnType(i, name, kind) => {
                write!(f, "Invalid column type {kind} at index: {i}, name: {name}")
            }
            Self::InvalidParameterCount(given, needed) => {
                write!(
                    f,
                    "Wrong number of parameters passed to query. Got {given}, needed {needed}"
                )
            }
            Self::StatementChangedRows(n) => write!(f, "Query changed {n} rows"),
            Self::ToSqlConversionFailure(cause) => cause.fmt(f),
            Self::BlobSizeError => f.write_str("Blob size is insufficient"),
            Self::InvalidQuery => f.write_str("Query is not read-only"),
            Self::UnwindingPanic => f.write_str("unwinding panic"),
            Self::MultipleStatement => f.write_str("Multiple statements provided"),
            Self::SqlInputError {
                msg, sql, offset, ..
            } => write!(f, "{msg} in {sql} at offset {offset}"),
            Self::InvalidDatabaseIndex(i) => write!(f, "Invalid database index: {i}"),
            Self::InvalidFunctionParameterType(i, kind) => {
                write!(f, "Invalid function parameter type {kind} at index {i}")
            }
            Self::UserFunctionError(cause) => cause.fmt(f),
            Self::GetAuxWrongType => f.write_str("get_aux called with wrong type"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::SqliteFailure(error, _) | Self::SqlInputError { error, .. } => Some(error),
            Self::Utf8Error(_, cause) => Some(cause),
            Self::NulError(cause) => Some(cause),
            Self::FromSqlConversionFailure(_, _, cause)
            | Self::ToSqlConversionFailure(cause)
            | Self::UserFunctionError(cause) => Some(&**cause),
            _ => None,
        }
    }
}

impl From<Utf8Error> for Error {
    #[cold]
    fn from(e: Utf8Error) -> Self {
        Self::Utf8Error(UNKNOWN_COLUMN, e)
    }
}

impl From<NulError> for Error {
    #[cold]
    fn from(e: NulError) -> Self {
        Self::NulError(e)
    }
}

/// For `row.get_ref(0)?.as_str()?` in functions that answer with [`Error`]: the
/// column is not known there.
impl From<FromSqlError> for Error {
    #[cold]
    fn from(e: FromSqlError) -> Self {
        match e {
            FromSqlError::OutOfRange(value) => Self::IntegralValueOutOfRange(UNKNOWN_COLUMN, value),
            FromSqlError::InvalidBlobSize { .. } => {
                Self::FromSqlConversionFailure(UNKNOWN_COLUMN, Type::Blob, Box::new(e))
            }
            FromSqlError::Other(cause) => {
                Self::FromSqlConversionFailure(UNKNOWN_COLUMN, Type::Null, cause)
            }
            _ => Self::FromSqlConversionFailure(UNKNOWN_COLUMN, Type::Null, Box::new(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_follow_an_error_through_moves_and_threads() {
        let error = Error::from_prepare(
            sql::Error::sql("no such column: totl")
                .with_hint("did you mean \"total\"?")
                .with_offset(7),
            "SELECT totl FROM orders",
        );
        let error = std::thread::spawn(move || Box::new(error))
            .join()
            .expect("thread");
        assert_eq!(error.hint().as_deref(), Some("did you mean \"total\"?"));
        assert_eq!(error.offset(), Some(7));
        assert_eq!(
            error.to_string(),
            "no such column: totl in SELECT totl FROM orders at offset 7"
        );
        assert_eq!(error.message(), "no such column: totl");
    }

    #[test]
    fn an_equal_error_made_elsewhere_has_no_hint() {
        let _known =
            Error::failure_with_hint(ffi::SQLITE_BUSY, "database is locked by nobody", "wait");
        let other = Error::failure(ffi::SQLITE_BUSY, "database is locked by nobody");
        assert_eq!(other.hint(), None);
    }

    #[test]
    fn missing_tables_keep_their_place_without_changing_shape() {
        let error = Error::from_prepare(
            sql::Error::sql("no such table: t").with_offset(14),
            "SELECT * FROM t",
        );
        assert_eq!(error.sqlite_error_code(), Some(ffi::ErrorCode::Unknown));
        assert_eq!(error.offset(), Some(14));
    }

    /// The texts of errors that need no database, beside rusqlite's.
    #[test]
    fn texts_are_rusqlites() {
        use rusqlite::Error as Theirs;
        let pairs = [
            (
                Error::InvalidParameterName(":a".into()),
                Theirs::InvalidParameterName(":a".into()),
            ),
            (
                Error::ExecuteReturnedResults,
                Theirs::ExecuteReturnedResults,
            ),
            (Error::QueryReturnedNoRows, Theirs::QueryReturnedNoRows),
            (
                Error::QueryReturnedMoreThanOneRow,
                Theirs::QueryReturnedMoreThanOneRow,
            ),
            (Error::InvalidColumnIndex(3), Theirs::InvalidColumnIndex(3)),
            (
                Error::InvalidColumnName("x".into()),
                Theirs::InvalidColumnName("x".into()),
            ),
            (
                Error::InvalidColumnType(1, "x".into(), Type::Blob),
                Theirs::InvalidColumnType(1, "x".into(), rusqlite::types::Type::Blob),
            ),
            (
                Error::StatementChangedRows(2),
                Theirs::StatementChangedRows(2),
            ),
            (Error::InvalidQuery, Theirs::InvalidQuery),
            (Error::MultipleStatement, Theirs::MultipleStatement),
            (
                Error::InvalidParameterCount(1, 2),
                Theirs::InvalidParameterCount(1, 2),
            ),
            (
                Error::IntegralValueOutOfRange(1, 300),
                Theirs::IntegralValueOutOfRange(1, 300),
            ),
            (
                Error::IntegralValueOutOfRange(usize::MAX, 300),
                Theirs::IntegralValueOutOfRange(usize::MAX, 300),
            ),
            (
                Error::InvalidDatabaseIndex(9),
                Theirs::InvalidDatabaseIndex(9),
            ),
            (
                Error::InvalidPath("/x".into()),
                Theirs::InvalidPath("/x".into()),
            ),
            (
                Error::SqliteFailure(ffi::Error::new(2067), None),
                Theirs::SqliteFailure(rusqlite::ffi::Error::new(2067), None),
            ),
        ];
        for (ours, theirs) in pairs {
            assert_eq!(ours.to_string(), theirs.to_string());
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
    }
}
