//! SQLite's result codes: the names programs match on, their texts, and the
//! error value that carries one.
//!
//! There is no C behind this module; it is called `ffi` because that is where
//! programs written for rusqlite look for these names.

use std::ffi::c_int;
use std::fmt;

macro_rules! codes {
    ($($name:ident = $value:expr;)+) => {
        $(
            #[doc = concat!("Result code `", stringify!($name), "`.")]
            pub const $name: c_int = $value;
        )+

        /// Name of a result code, `SQLITE_…`. An extended code without a name
        /// answers with its primary one's, an unknown one with `SQLITE_UNKNOWN`.
        #[must_use]
        pub fn code_name(code: c_int) -> &'static str {
            match code {
                $($name => stringify!($name),)+
                _ if code & !0xff != 0 => code_name(code & 0xff),
                _ => "SQLITE_UNKNOWN",
            }
        }
    };
}

codes! {
    SQLITE_OK = 0;
    SQLITE_ERROR = 1;
    SQLITE_INTERNAL = 2;
    SQLITE_PERM = 3;
    SQLITE_ABORT = 4;
    SQLITE_BUSY = 5;
    SQLITE_LOCKED = 6;
    SQLITE_NOMEM = 7;
    SQLITE_READONLY = 8;
    SQLITE_INTERRUPT = 9;
    SQLITE_IOERR = 10;
    SQLITE_CORRUPT = 11;
    SQLITE_NOTFOUND = 12;
    SQLITE_FULL = 13;
    SQLITE_CANTOPEN = 14;
    SQLITE_PROTOCOL = 15;
    SQLITE_EMPTY = 16;
    SQLITE_SCHEMA = 17;
    SQLITE_TOOBIG = 18;
    SQLITE_CONSTRAINT = 19;
    SQLITE_MISMATCH = 20;
    SQLITE_MISUSE = 21;
    SQLITE_NOLFS = 22;
    SQLITE_AUTH = 23;
    SQLITE_FORMAT = 24;
    SQLITE_RANGE = 25;
    SQLITE_NOTADB = 26;
    SQLITE_NOTICE = 27;
    SQLITE_WARNING = 28;
    SQLITE_ROW = 100;
    SQLITE_DONE = 101;

    SQLITE_ERROR_MISSING_COLLSEQ = SQLITE_ERROR | (1 << 8);
    SQLITE_ERROR_RETRY = SQLITE_ERROR | (2 << 8);
    SQLITE_ERROR_SNAPSHOT = SQLITE_ERROR | (3 << 8);
    SQLITE_ABORT_ROLLBACK = SQLITE_ABORT | (2 << 8);
    SQLITE_BUSY_RECOVERY = SQLITE_BUSY | (1 << 8);
    SQLITE_BUSY_SNAPSHOT = SQLITE_BUSY | (2 << 8);
    SQLITE_BUSY_TIMEOUT = SQLITE_BUSY | (3 << 8);
    SQLITE_LOCKED_SHAREDCACHE = SQLITE_LOCKED | (1 << 8);
    SQLITE_LOCKED_VTAB = SQLITE_LOCKED | (2 << 8);
    SQLITE_READONLY_RECOVERY = SQLITE_READONLY | (1 << 8);
    SQLITE_READONLY_CANTLOCK = SQLITE_READONLY | (2 << 8);
    SQLITE_READONLY_ROLLBACK = SQLITE_READONLY | (3 << 8);
    SQLITE_READONLY_DBMOVED = SQLITE_READONLY | (4 << 8);
    SQLITE_READONLY_CANTINIT = SQLITE_READONLY | (5 << 8);
    SQLITE_READONLY_DIRECTORY = SQLITE_READONLY | (6 << 8);
    SQLITE_IOERR_READ = SQLITE_IOERR | (1 << 8);
    SQLITE_IOERR_SHORT_READ = SQLITE_IOERR | (2 << 8);
    SQLITE_IOERR_WRITE = SQLITE_IOERR | (3 << 8);
    SQLITE_IOERR_FSYNC = SQLITE_IOERR | (4 << 8);
    SQLITE_IOERR_DIR_FSYNC = SQLITE_IOERR | (5 << 8);
    SQLITE_IOERR_TRUNCATE = SQLITE_IOERR | (6 << 8);
    SQLITE_IOERR_FSTAT = SQLITE_IOERR | (7 << 8);
    SQLITE_IOERR_UNLOCK = SQLITE_IOERR | (8 << 8);
    SQLITE_IOERR_RDLOCK = SQLITE_IOERR | (9 << 8);
    SQLITE_IOERR_DELETE = SQLITE_IOERR | (10 << 8);
    SQLITE_IOERR_BLOCKED = SQLITE_IOERR | (11 << 8);
    SQLITE_IOERR_NOMEM = SQLITE_IOERR | (12 << 8);
    SQLITE_IOERR_ACCESS = SQLITE_IOERR | (13 << 8);
    SQLITE_IOERR_LOCK = SQLITE_IOERR | (15 << 8);
    SQLITE_IOERR_CLOSE = SQLITE_IOERR | (16 << 8);
    SQLITE_IOERR_CORRUPTFS = SQLITE_IOERR | (33 << 8);
    SQLITE_CORRUPT_VTAB = SQLITE_CORRUPT | (1 << 8);
    SQLITE_CORRUPT_SEQUENCE = SQLITE_CORRUPT | (2 << 8);
    SQLITE_CORRUPT_INDEX = SQLITE_CORRUPT | (3 << 8);
    SQLITE_CANTOPEN_NOTEMPDIR = SQLITE_CANTOPEN | (1 << 8);
    SQLITE_CANTOPEN_ISDIR = SQLITE_CANTOPEN | (2 << 8);
    SQLITE_CANTOPEN_FULLPATH = SQLITE_CANTOPEN | (3 << 8);
    SQLITE_CANTOPEN_CONVPATH = SQLITE_CANTOPEN | (4 << 8);
    SQLITE_CANTOPEN_SYMLINK = SQLITE_CANTOPEN | (6 << 8);
    SQLITE_CONSTRAINT_CHECK = SQLITE_CONSTRAINT | (1 << 8);
    SQLITE_CONSTRAINT_COMMITHOOK = SQLITE_CONSTRAINT | (2 << 8);
    SQLITE_CONSTRAINT_FOREIGNKEY = SQLITE_CONSTRAINT | (3 << 8);
    SQLITE_CONSTRAINT_FUNCTION = SQLITE_CONSTRAINT | (4 << 8);
    SQLITE_CONSTRAINT_NOTNULL = SQLITE_CONSTRAINT | (5 << 8);
    SQLITE_CONSTRAINT_PRIMARYKEY = SQLITE_CONSTRAINT | (6 << 8);
    SQLITE_CONSTRAINT_TRIGGER = SQLITE_CONSTRAINT | (7 << 8);
    SQLITE_CONSTRAINT_UNIQUE = SQLITE_CONSTRAINT | (8 << 8);
    SQLITE_CONSTRAINT_VTAB = SQLITE_CONSTRAINT | (9 << 8);
    SQLITE_CONSTRAINT_ROWID = SQLITE_CONSTRAINT | (10 << 8);
    SQLITE_CONSTRAINT_PINNED = SQLITE_CONSTRAINT | (11 << 8);
    SQLITE_CONSTRAINT_DATATYPE = SQLITE_CONSTRAINT | (12 << 8);
    SQLITE_AUTH_USER = SQLITE_AUTH | (1 << 8);
}

/// The kind of a failure: the primary result code as an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// `SQLITE_INTERNAL`: a fault of the engine itself.
    InternalMalfunction,
    /// `SQLITE_PERM`: access denied.
    PermissionDenied,
    /// `SQLITE_ABORT`: a callback or a rollback ended the statement.
    OperationAborted,
    /// `SQLITE_BUSY`: the database is in use, or a transaction lost to another.
    DatabaseBusy,
    /// `SQLITE_LOCKED`: a table is in use.
    DatabaseLocked,
    /// `SQLITE_NOMEM`: no memory left within the limits.
    OutOfMemory,
    /// `SQLITE_READONLY`: a write to a database opened for reading.
    ReadOnly,
    /// `SQLITE_INTERRUPT`: stopped by an interrupt handle.
    OperationInterrupted,
    /// `SQLITE_IOERR`: the disk failed.
    SystemIoFailure,
    /// `SQLITE_CORRUPT`: the stored bytes cannot be what was written.
    DatabaseCorrupt,
    /// `SQLITE_NOTFOUND`
    NotFound,
    /// `SQLITE_FULL`: no space left.
    DiskFull,
    /// `SQLITE_CANTOPEN`: the file cannot be opened.
    CannotOpen,
    /// `SQLITE_PROTOCOL`
    FileLockingProtocolFailed,
    /// `SQLITE_SCHEMA`: the schema changed.
    SchemaChanged,
    /// `SQLITE_TOOBIG`: a value beyond the size limit.
    TooBig,
    /// `SQLITE_CONSTRAINT`: a constraint refused the change.
    ConstraintViolation,
    /// `SQLITE_MISMATCH`: a rowid that is no integer.
    TypeMismatch,
    /// `SQLITE_MISUSE`: the library was called wrongly.
    ApiMisuse,
    /// `SQLITE_NOLFS`
    NoLargeFileSupport,
    /// `SQLITE_AUTH`
    AuthorizationForStatementDenied,
    /// `SQLITE_RANGE`: a parameter number the statement does not have.
    ParameterOutOfRange,
    /// `SQLITE_NOTADB`: the file is not a database of ours.
    NotADatabase,
    /// `SQLITE_ERROR` and every other code: mostly SQL that does not compile.
    Unknown,
}

/// A result code: its kind, and the extended code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of failure.
    pub code: ErrorCode,
    /// The extended result code; equal to the primary one where there is none.
    pub extended_code: c_int,
}

impl Error {
    /// The error value of a primary or extended result code.
    #[must_use]
    pub fn new(result_code: c_int) -> Self {
        let code = match result_code & 0xff {
            SQLITE_INTERNAL => ErrorCode::InternalMalfunction,
            SQLITE_PERM => ErrorCode::PermissionDenied,
            SQLITE_ABORT => ErrorCode::OperationAborted,
            SQLITE_BUSY => ErrorCode::DatabaseBusy,
            SQLITE_LOCKED => ErrorCode::DatabaseLocked,
            SQLITE_NOMEM => ErrorCode::OutOfMemory,
            SQLITE_READONLY => ErrorCode::ReadOnly,
            SQLITE_INTERRUPT => ErrorCode::OperationInterrupted,
            SQLITE_IOERR => ErrorCode::SystemIoFailure,
            SQLITE_CORRUPT => ErrorCode::DatabaseCorrupt,
            SQLITE_NOTFOUND => ErrorCode::NotFound,
            SQLITE_FULL => ErrorCode::DiskFull,
            SQLITE_CANTOPEN => ErrorCode::CannotOpen,
            SQLITE_PROTOCOL => ErrorCode::FileLockingProtocolFailed,
            SQLITE_SCHEMA => ErrorCode::SchemaChanged,
            SQLITE_TOOBIG => ErrorCode::TooBig,
            SQLITE_CONSTRAINT => ErrorCode::ConstraintViolation,
            SQLITE_MISMATCH => ErrorCode::TypeMismatch,
            SQLITE_MISUSE => ErrorCode::ApiMisuse,
            SQLITE_NOLFS => ErrorCode::NoLargeFileSupport,
            SQLITE_AUTH => ErrorCode::AuthorizationForStatementDenied,
            SQLITE_RANGE => ErrorCode::ParameterOutOfRange,
            SQLITE_NOTADB => ErrorCode::NotADatabase,
            _ => ErrorCode::Unknown,
        };
        Self {
            code,
            extended_code: result_code,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Error code {}: {}",
            self.extended_code,
            code_to_str(self.extended_code)
        )
    }
}

impl std::error::Error for Error {}

/// SQLite's English text for a result code.
#[must_use]
pub fn code_to_str(code: c_int) -> &'static str {
    match code {
        SQLITE_ABORT_ROLLBACK => return "abort due to ROLLBACK",
        SQLITE_ROW => return "another row available",
        SQLITE_DONE => return "no more rows available",
        _ => {}
    }
    match code & 0xff {
        SQLITE_OK => "not an error",
        SQLITE_ERROR => "SQL logic error",
        SQLITE_PERM => "access permission denied",
        SQLITE_ABORT => "query aborted",
        SQLITE_BUSY => "database is locked",
        SQLITE_LOCKED => "database table is locked",
        SQLITE_NOMEM => "out of memory",
        SQLITE_READONLY => "attempt to write a readonly database",
        SQLITE_INTERRUPT => "interrupted",
        SQLITE_IOERR => "disk I/O error",
        SQLITE_CORRUPT => "database disk image is malformed",
        SQLITE_NOTFOUND => "unknown operation",
        SQLITE_FULL => "database or disk is full",
        SQLITE_CANTOPEN => "unable to open database file",
        SQLITE_PROTOCOL => "locking protocol",
        SQLITE_SCHEMA => "database schema has changed",
        SQLITE_TOOBIG => "string or blob too big",
        SQLITE_CONSTRAINT => "constraint failed",
        SQLITE_MISMATCH => "datatype mismatch",
        SQLITE_MISUSE => "bad parameter or other API misuse",
        SQLITE_AUTH => "authorization denied",
        SQLITE_RANGE => "column index out of range",
        SQLITE_NOTADB => "file is not a database",
        SQLITE_NOTICE => "notification message",
        SQLITE_WARNING => "warning message",
        _ => "unknown error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code from 0 to 8191, beside bundled SQLite.
    #[test]
    fn texts_and_kinds_are_sqlites() {
        use rusqlite::ffi as sqlite;
        for code in 0..0x2000 {
            assert_eq!(
                code_to_str(code),
                sqlite::code_to_str(code),
                "text of {code}"
            );
            let ours = Error::new(code);
            let theirs = sqlite::Error::new(code);
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "kind of {code}");
        }
        assert_eq!(SQLITE_CONSTRAINT_UNIQUE, sqlite::SQLITE_CONSTRAINT_UNIQUE);
        assert_eq!(SQLITE_BUSY_SNAPSHOT, sqlite::SQLITE_BUSY_SNAPSHOT);
        assert_eq!(SQLITE_IOERR_FSYNC, sqlite::SQLITE_IOERR_FSYNC);
    }

    #[test]
    fn names_fall_back_to_the_primary_code() {
        assert_eq!(code_name(2067), "SQLITE_CONSTRAINT_UNIQUE");
        assert_eq!(
            code_name(SQLITE_CONSTRAINT | (200 << 8)),
            "SQLITE_CONSTRAINT"
        );
        assert_eq!(code_name(77), "SQLITE_UNKNOWN");
    }
}
