//! The crate's one error type: a kind to match on, and a message that names
//! the object, the place and the way out.

use crate::node::{Key, OwnedKey};
use crate::tree::{Tree, TreeId};
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
    /// The database was in use when it was copied, moved or cut off, and the log that
    /// goes with it is not there, or one of another moment is (SQLITE_CANTOPEN). The
    /// message names the files and the ways out.
    MissingLog,
    /// A file is there where a new one was to be made (SQLITE_ERROR).
    Exists,
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

/// What two overlapping transactions could not both have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    store: u64,
    tree: TreeId,
    family: Option<Arc<str>>,
    key: Option<OwnedKey>,
}

impl Conflict {
    /// A key of a tree, or all of it.
    pub(crate) fn over(tree: &Tree, key: Option<Key<'_>>) -> Self {
        Self {
            store: tree.store_number(),
            tree: tree.id(),
            family: tree.0.family.get().cloned(),
            key: key.map(OwnedKey::from),
        }
    }

    /// The [number](crate::Store::number) of the store.
    pub fn store_number(&self) -> u64 {
        self.store
    }

    /// The tree.
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// The column family that the tree is, as [`Tree::family`] tells it.
    pub fn family(&self) -> Option<&str> {
        self.family.as_deref()
    }

    /// The key; `None` where the transaction depended on the tree as a whole.
    pub fn key(&self) -> Option<Key<'_>> {
        self.key.as_ref().map(OwnedKey::as_key)
    }
}

/// Bytes of a key that a message shows.
const KEY_SHOWN: usize = 32;
/// Characters of a family's name that a message shows: it may be as long as any key.
const NAME_SHOWN: usize = 64;

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key() {
            Some(Key::Int(key)) => write!(f, "row {key} of ")?,
            Some(Key::Bytes(key)) => {
                f.write_str("key x'")?;
                for byte in key.iter().take(KEY_SHOWN) {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str(if key.len() > KEY_SHOWN {
                    "…' of "
                } else {
                    "' of "
                })?;
            }
            None => {}
        }
        match self.family() {
            Some(name) => write!(f, "family {}", ShownName(name)),
            None => write!(f, "tree {}", self.tree.0),
        }
    }
}

/// A family's name as messages show it: quoted, and its start where it is long.
pub(crate) struct ShownName<'n>(pub(crate) &'n str);

impl fmt::Display for ShownName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(NAME_SHOWN) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl std::error::Error for Conflict {}

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

    /// The system has no such memory.
    pub(crate) fn no_memory(bytes: usize, cause: &std::io::Error) -> Self {
        let message = format!("out of memory: {bytes} bytes are not to be had ({cause})");
        Self::new(ErrorKind::NoMemory, message)
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

    /// A lost transaction: what another one changed first.
    pub(crate) fn conflicting(conflict: Conflict) -> Self {
        let message = format!(
            "another transaction changed {conflict} first; this one cannot commit, run it again"
        );
        Self::caused(ErrorKind::Conflict, message, conflict)
    }

    /// A key is not of the kind that the keys of a tree are.
    #[cold]
    pub(crate) fn wrong_kind(tree: &Tree) -> Self {
        let of = Conflict::over(tree, None);
        Self::misuse(format!("{of} has keys of kind {:?}", tree.kind()))
    }

    /// Somebody wrote to a tree for longer than others waited for it.
    pub(crate) fn busy_with(conflict: Conflict, message: String) -> Self {
        Self::caused(ErrorKind::Busy, message, conflict)
    }

    /// What a lost transaction ([`ErrorKind::Conflict`]) lost against, or the tree that one
    /// waited for in vain ([`ErrorKind::Busy`]), if it was one.
    pub fn conflict(&self) -> Option<&Conflict> {
        self.cause.as_deref()?.downcast_ref()
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
