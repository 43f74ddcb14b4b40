//! The one error type of the SQL layers.
//!
//! An [`Error`] carries SQLite's result code (primary and extended) and
//! SQLite's message text, so that programs that match either go on working.
//! What helps a person beyond that is kept apart: [`Error::hint`] names the way
//! out and [`Error::offset`] the byte of the statement that is to blame.
//!
//! The contents live behind one pointer, so that a `Result` of the hot paths
//! is no larger than its value.

use std::fmt;
use std::sync::Arc;

use fulgurite_store::{Conflict, ErrorKind, Owned};

use crate::schema::ConflictAction;

/// Result of anything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// SQLite's result codes; the extended ones hold the primary one in their low
/// byte.
#[allow(missing_docs)]
pub mod code {
    pub const OK: i32 = 0;
    pub const ERROR: i32 = 1;
    pub const INTERNAL: i32 = 2;
    pub const PERM: i32 = 3;
    pub const ABORT: i32 = 4;
    pub const BUSY: i32 = 5;
    pub const LOCKED: i32 = 6;
    pub const NOMEM: i32 = 7;
    pub const READONLY: i32 = 8;
    pub const INTERRUPT: i32 = 9;
    pub const IOERR: i32 = 10;
    pub const CORRUPT: i32 = 11;
    pub const NOTFOUND: i32 = 12;
    pub const FULL: i32 = 13;
    pub const CANTOPEN: i32 = 14;
    pub const PROTOCOL: i32 = 15;
    pub const EMPTY: i32 = 16;
    pub const SCHEMA: i32 = 17;
    pub const TOOBIG: i32 = 18;
    pub const CONSTRAINT: i32 = 19;
    pub const MISMATCH: i32 = 20;
    pub const MISUSE: i32 = 21;
    pub const NOLFS: i32 = 22;
    pub const AUTH: i32 = 23;
    pub const FORMAT: i32 = 24;
    pub const RANGE: i32 = 25;
    pub const NOTADB: i32 = 26;
    pub const NOTICE: i32 = 27;
    pub const WARNING: i32 = 28;
    pub const ROW: i32 = 100;
    pub const DONE: i32 = 101;

    pub const BUSY_SNAPSHOT: i32 = BUSY | (2 << 8);
    pub const BUSY_TIMEOUT: i32 = BUSY | (3 << 8);
    pub const ERROR_MISSING_COLLSEQ: i32 = ERROR | (1 << 8);
    pub const IOERR_FSYNC: i32 = IOERR | (4 << 8);
    pub const ABORT_ROLLBACK: i32 = ABORT | (2 << 8);
    pub const CONSTRAINT_CHECK: i32 = CONSTRAINT | (1 << 8);
    pub const CONSTRAINT_COMMITHOOK: i32 = CONSTRAINT | (2 << 8);
    pub const CONSTRAINT_FOREIGNKEY: i32 = CONSTRAINT | (3 << 8);
    pub const CONSTRAINT_FUNCTION: i32 = CONSTRAINT | (4 << 8);
    pub const CONSTRAINT_NOTNULL: i32 = CONSTRAINT | (5 << 8);
    pub const CONSTRAINT_PRIMARYKEY: i32 = CONSTRAINT | (6 << 8);
    pub const CONSTRAINT_TRIGGER: i32 = CONSTRAINT | (7 << 8);
    pub const CONSTRAINT_UNIQUE: i32 = CONSTRAINT | (8 << 8);
    pub const CONSTRAINT_VTAB: i32 = CONSTRAINT | (9 << 8);
    pub const CONSTRAINT_ROWID: i32 = CONSTRAINT | (10 << 8);
    pub const CONSTRAINT_PINNED: i32 = CONSTRAINT | (11 << 8);
    pub const CONSTRAINT_DATATYPE: i32 = CONSTRAINT | (12 << 8);

    /// Name of a result code as in SQLite's headers; an unknown extended code
    /// answers with its primary one's.
    pub fn name(code: i32) -> &'static str {
        match code {
            BUSY_SNAPSHOT => "SQLITE_BUSY_SNAPSHOT",
            BUSY_TIMEOUT => "SQLITE_BUSY_TIMEOUT",
            ERROR_MISSING_COLLSEQ => "SQLITE_ERROR_MISSING_COLLSEQ",
            IOERR_FSYNC => "SQLITE_IOERR_FSYNC",
            ABORT_ROLLBACK => "SQLITE_ABORT_ROLLBACK",
            CONSTRAINT_CHECK => "SQLITE_CONSTRAINT_CHECK",
            CONSTRAINT_COMMITHOOK => "SQLITE_CONSTRAINT_COMMITHOOK",
            CONSTRAINT_FOREIGNKEY => "SQLITE_CONSTRAINT_FOREIGNKEY",
            CONSTRAINT_FUNCTION => "SQLITE_CONSTRAINT_FUNCTION",
            CONSTRAINT_NOTNULL => "SQLITE_CONSTRAINT_NOTNULL",
            CONSTRAINT_PRIMARYKEY => "SQLITE_CONSTRAINT_PRIMARYKEY",
            CONSTRAINT_TRIGGER => "SQLITE_CONSTRAINT_TRIGGER",
            CONSTRAINT_UNIQUE => "SQLITE_CONSTRAINT_UNIQUE",
            CONSTRAINT_VTAB => "SQLITE_CONSTRAINT_VTAB",
            CONSTRAINT_ROWID => "SQLITE_CONSTRAINT_ROWID",
            CONSTRAINT_PINNED => "SQLITE_CONSTRAINT_PINNED",
            CONSTRAINT_DATATYPE => "SQLITE_CONSTRAINT_DATATYPE",
            _ => primary_name(code & 0xff),
        }
    }

    fn primary_name(code: i32) -> &'static str {
        const NAMES: [&str; 29] = [
            "SQLITE_OK",
            "SQLITE_ERROR",
            "SQLITE_INTERNAL",
            "SQLITE_PERM",
            "SQLITE_ABORT",
            "SQLITE_BUSY",
            "SQLITE_LOCKED",
            "SQLITE_NOMEM",
            "SQLITE_READONLY",
            "SQLITE_INTERRUPT",
            "SQLITE_IOERR",
            "SQLITE_CORRUPT",
            "SQLITE_NOTFOUND",
            "SQLITE_FULL",
            "SQLITE_CANTOPEN",
            "SQLITE_PROTOCOL",
            "SQLITE_EMPTY",
            "SQLITE_SCHEMA",
            "SQLITE_TOOBIG",
            "SQLITE_CONSTRAINT",
            "SQLITE_MISMATCH",
            "SQLITE_MISUSE",
            "SQLITE_NOLFS",
            "SQLITE_AUTH",
            "SQLITE_FORMAT",
            "SQLITE_RANGE",
            "SQLITE_NOTADB",
            "SQLITE_NOTICE",
            "SQLITE_WARNING",
        ];
        match code {
            ROW => "SQLITE_ROW",
            DONE => "SQLITE_DONE",
            _ => usize::try_from(code)
                .ok()
                .and_then(|i| NAMES.get(i))
                .copied()
                .unwrap_or("SQLITE_UNKNOWN"),
        }
    }
}

/// What went wrong in a statement, in SQLite's terms.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    extended: i32,
    message: String,
    hint: Option<String>,
    offset: Option<usize>,
    conflict: Option<Conflict>,
    action: Option<ConflictAction>,
    cause: Option<Cause>,
}

/// The program's own error, which says nothing of whether two errors are equal.
#[derive(Clone)]
struct Cause(Owned<ProgramError>);

/// An error of a function of the program.
pub type ProgramError = Arc<dyn std::error::Error + Send + Sync>;

impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

impl Error {
    /// An error with one of the codes of [`code`] (primary or extended) and
    /// SQLite's message text.
    #[cold]
    pub fn new(extended: i32, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            extended,
            message: message.into(),
            hint: None,
            offset: None,
            conflict: None,
            action: None,
            cause: None,
        }))
    }

    /// `SQLITE_ERROR` with this message: what SQLite answers to a statement
    /// that it cannot compile or run.
    #[cold]
    pub fn sql(message: impl Into<String>) -> Self {
        Self::new(code::ERROR, message)
    }

    /// `SQLITE_CORRUPT`: stored bytes that cannot be what was written.
    #[cold]
    pub fn corrupt(what: impl fmt::Display) -> Self {
        Self::new(
            code::CORRUPT,
            format!("database disk image is malformed: {what}"),
        )
    }

    /// Says of what was found damaged where it is.
    #[cold]
    #[must_use]
    pub fn within(mut self, place: impl fmt::Display) -> Self {
        if self.0.extended == code::CORRUPT
            && let Some(what) = self
                .0
                .message
                .strip_prefix("database disk image is malformed: ")
        {
            self.0.message = format!("database disk image is malformed: {place}: {what}");
        }
        self
    }

    /// `SQLITE_MISUSE`.
    #[cold]
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(code::MISUSE, message)
    }

    /// `SQLITE_INTERRUPT`.
    #[cold]
    pub fn interrupted() -> Self {
        Self::new(code::INTERRUPT, "interrupted")
    }

    /// `SQLITE_TOOBIG`: a text or blob beyond the length limit.
    #[cold]
    pub fn too_big() -> Self {
        Self::new(code::TOOBIG, "string or blob too big")
    }

    /// `SQLITE_MISMATCH`: a rowid that is no integer.
    #[cold]
    pub fn mismatch() -> Self {
        Self::new(code::MISMATCH, "datatype mismatch")
    }

    /// `SQLITE_ERROR`, "integer overflow".
    #[cold]
    pub fn integer_overflow() -> Self {
        Self::sql("integer overflow")
    }

    /// A UNIQUE index has the key already; `columns` as SQLite lists them:
    /// `t.a, t.b` (or `index 'name'` for an index on expressions).
    #[cold]
    pub fn unique(columns: impl fmt::Display) -> Self {
        Self::new(
            code::CONSTRAINT_UNIQUE,
            format!("UNIQUE constraint failed: {columns}"),
        )
    }

    /// The primary key is taken; SQLite's text says UNIQUE here as well.
    #[cold]
    pub fn primary_key(columns: impl fmt::Display) -> Self {
        Self::new(
            code::CONSTRAINT_PRIMARYKEY,
            format!("UNIQUE constraint failed: {columns}"),
        )
    }

    /// The rowid of a table without INTEGER PRIMARY KEY is taken.
    #[cold]
    pub fn rowid_taken(table: impl fmt::Display) -> Self {
        Self::new(
            code::CONSTRAINT_ROWID,
            format!("UNIQUE constraint failed: {table}.rowid"),
        )
    }

    /// NULL for a NOT NULL column, named `table.column`.
    #[cold]
    pub fn not_null(column: impl fmt::Display) -> Self {
        Self::new(
            code::CONSTRAINT_NOTNULL,
            format!("NOT NULL constraint failed: {column}"),
        )
    }

    /// A CHECK constraint is false; named by its name or its text.
    #[cold]
    pub fn check(constraint: impl fmt::Display) -> Self {
        Self::new(
            code::CONSTRAINT_CHECK,
            format!("CHECK constraint failed: {constraint}"),
        )
    }

    /// A value is not of the type of its column, `table.column`, in a STRICT table.
    #[cold]
    pub fn datatype(value: &str, declared: &str, column: impl fmt::Display) -> Self {
        Self::new(
            code::CONSTRAINT_DATATYPE,
            format!("cannot store {value} value in {declared} column {column}"),
        )
    }

    /// A foreign key has no parent row.
    #[cold]
    pub fn foreign_key() -> Self {
        Self::new(code::CONSTRAINT_FOREIGNKEY, "FOREIGN KEY constraint failed")
    }

    /// RAISE() in a trigger, which says how much is undone.
    #[cold]
    pub fn raised(action: ConflictAction, message: impl Into<String>) -> Self {
        let mut raised = Self::new(code::CONSTRAINT_TRIGGER, message);
        raised.0.action = Some(action);
        raised
    }

    /// How much is undone, where RAISE() has said it.
    pub fn action(&self) -> Option<ConflictAction> {
        self.0.action
    }

    /// Adds what a person can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the program's own error.
    #[must_use]
    pub fn with_cause(mut self, cause: ProgramError) -> Self {
        self.0.cause = Some(Cause(Owned::new(cause)));
        self
    }

    /// The error of a function of the program, if it was one that failed.
    pub fn cause(&self) -> Option<&ProgramError> {
        self.0.cause.as_ref().and_then(|cause| cause.0.get())
    }

    /// Adds the byte of the statement's text that is to blame.
    #[must_use]
    pub fn with_offset(mut self, offset: usize) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The primary result code.
    pub fn code(&self) -> i32 {
        self.0.extended & 0xff
    }

    /// The extended result code; equal to [`Error::code`] where there is none.
    pub fn extended_code(&self) -> i32 {
        self.0.extended
    }

    /// Name of the extended code, `SQLITE_…`.
    pub fn name(&self) -> &'static str {
        code::name(self.0.extended)
    }

    /// SQLite's text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// What a transaction lost against, or waited for in vain, as the store names it.
    pub fn conflict(&self) -> Option<&Conflict> {
        self.0.conflict.as_ref()
    }

    /// Byte of the statement's text that is to blame.
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("Error");
        s.field("code", &self.name())
            .field("message", &self.0.message);
        if let Some(hint) = &self.0.hint {
            s.field("hint", hint);
        }
        if let Some(offset) = &self.0.offset {
            s.field("offset", offset);
        }
        s.finish()
    }
}

impl std::error::Error for Error {}

/// The message is SQLite's for the code; what the store says, which names file
/// and position, becomes the hint.
impl From<fulgurite_store::Error> for Error {
    #[cold]
    fn from(error: fulgurite_store::Error) -> Self {
        let (extended, message) = match error.kind() {
            ErrorKind::NotADatabase => (code::NOTADB, "file is not a database"),
            ErrorKind::Corrupt => (code::CORRUPT, "database disk image is malformed"),
            ErrorKind::NewerFormat => (code::NOTADB, "file is not a database"),
            ErrorKind::Busy => (code::BUSY, "database is locked"),
            ErrorKind::Conflict => (code::BUSY_SNAPSHOT, "database is locked"),
            ErrorKind::ReadOnly => (code::READONLY, "attempt to write a readonly database"),
            ErrorKind::CantOpen | ErrorKind::MissingLog => {
                (code::CANTOPEN, "unable to open database file")
            }
            ErrorKind::Exists => (code::ERROR, "output file already exists"),
            ErrorKind::Full => (code::FULL, "database or disk is full"),
            ErrorKind::Io => (code::IOERR, "disk I/O error"),
            ErrorKind::Poisoned => (code::IOERR_FSYNC, "disk I/O error"),
            ErrorKind::NoMemory => (code::NOMEM, "out of memory"),
            ErrorKind::TooBig => (code::TOOBIG, "string or blob too big"),
            ErrorKind::Misuse => (code::MISUSE, "bad parameter or other API misuse"),
            _ => (code::ERROR, "SQL logic error"),
        };
        let detail = error.to_string();
        let mut wrapped = Self::new(extended, message);
        wrapped.0.conflict = error.conflict().cloned();
        if detail.is_empty() || detail == message {
            wrapped
        } else {
            wrapped.with_hint(detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_codes_keep_their_primary_one() {
        let e = Error::unique("t.a").with_offset(3);
        assert_eq!(
            (e.code(), e.extended_code(), e.offset()),
            (19, 2067, Some(3))
        );
        assert_eq!(e.name(), "SQLITE_CONSTRAINT_UNIQUE");
        assert_eq!(e.message(), "UNIQUE constraint failed: t.a");
        assert_eq!(Error::primary_key("t.id").extended_code(), 1555);
        assert_eq!(Error::rowid_taken("t").extended_code(), 2579);
        assert_eq!(Error::not_null("t.a").extended_code(), 1299);
        assert_eq!(Error::check("c").extended_code(), 275);
    }

    #[test]
    fn store_errors_map_to_sqlite_codes() {
        let e: Error =
            fulgurite_store::Error::new(ErrorKind::Conflict, "tree 17 was changed").into();
        assert_eq!((e.code(), e.extended_code()), (5, 517));
        assert_eq!(e.message(), "database is locked");
        assert_eq!(e.hint(), Some("tree 17 was changed"));
    }

    #[test]
    fn a_result_is_no_larger_than_its_value() {
        assert_eq!(size_of::<Result<u64>>(), 16);
        assert_eq!(size_of::<Error>(), 8);
    }
}
