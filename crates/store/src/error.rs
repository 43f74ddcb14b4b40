//! The crate's one error type: a kind to match on, and a message that names
//! the object, the place and the way out.

use std::fmt;
use std::sync::Arc;

/// What the calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. [`Error::kind`] is what callers match on.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of failure, each with the SQLite result code it corresponds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is something else (SQLITE_NOTADB).
    NotADatabase,
    /// Stored bytes are not what was written (SQLITE_CORRUPT). The message
    /// names file and position.
    Corrupt,
    /// The file was written by a newer format version (SQLITE_NOTADB).
    NewerFormat,
    /// Another process holds the file, or a wait passed `busy_timeout`
    /// (SQLITE_BUSY).
    Busy,
    /// The transaction lost against an overlapping one and was rolled back;
    /// run it again (SQLITE_BUSY_SNAPSHOT).
    Conflict,
    /// A write through a read-only handle or file system (SQLITE_READONLY).
    ReadOnly,
    /// The file cannot be opened or created (SQLITE_CANTOPEN).
    CantOpen,
    /// No space is left, on the disk or in the key range (SQLITE_FULL).
    Full,
    /// The operating system reported an error (SQLITE_IOERR).
    Io,
    /// A sync failed earlier: only reading goes on until all handles are
    /// closed and the database is opened again (SQLITE_IOERR_FSYNC).
    Poisoned,
    /// The cache limit leaves no room (SQLITE_NOMEM).
    NoMemory,
    /// A key, value or transaction is over its limit (SQLITE_TOOBIG).
    TooBig,
    /// The call is not allowed in this state (SQLITE_MISUSE).
    Misuse,
}

impl Error {
    /// An error of this kind with this message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
        }
    }

    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    pub(crate) fn caused(
        kind: ErrorKind,
        message: impl Into<String>,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: Some(Arc::new(cause)),
        }
    }

    /// The same failure, saying during what it happened.
    pub(crate) fn during(mut self, what: &str) -> Self {
        self.message = format!("{} (while {what})", self.message);
        self
    }

    /// What callers match on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, where, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause
            .as_deref()
            .map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}
