//! What can go wrong with a log. Every variant can be cloned, because one
//! failed sync is reported to every committer it concerns.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{DiskError, DiskErrorKind};

/// What the calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller of [`Recovery::replay`](crate::Recovery::replay) may fail with.
pub type ReplayError = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the log.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),

    /// Bytes that were durable once can no longer be read back.
    #[error("the log {} is damaged at byte {position}: {what}", file.display())]
    Corrupt {
        /// The log file.
        file: PathBuf,
        /// Where in it the damage begins.
        position: u64,
        /// What is missing there.
        what: String,
    },

    /// A newer version of the format wrote the file.
    #[error("the log {} has format version {version}; this program reads up to {}", file.display(), super::header::VERSION)]
    NewerFormat {
        /// The log file.
        file: PathBuf,
        /// Its format version.
        version: u32,
    },

    /// The log belongs to another database.
    #[error("the log {} belongs to another database; move it away if that database is gone", file.display())]
    Foreign {
        /// The log file.
        file: PathBuf,
    },

    /// The database was in use when it was copied, moved or cut off, and its log is not
    /// there.
    #[error("{} needs its log, {}, which is missing: with it are what was committed since the last checkpoint; put the log's files beside it, or say when opening that the log is to be abandoned", base.display(), file.display())]
    Missing {
        /// The database's name.
        base: PathBuf,
        /// A file of its log.
        file: PathBuf,
        /// The generation that is needed.
        needed: u64,
    },

    /// The log was left at another moment than the database's file, or by another copy.
    #[error("{} needs generation {needed} of its log, and {} is generation {found}, of another moment or another copy of the database; put files beside each other that were left together, or move the log away and say when opening that it is to be abandoned", base.display(), file.display())]
    Astray {
        /// The database's name.
        base: PathBuf,
        /// The newest file of the log.
        file: PathBuf,
        /// Its generation.
        found: u64,
        /// The generation that is needed.
        needed: u64,
    },

    /// The database's file was moved or removed while it was open, and its name is
    /// another one's.
    #[error("{} is another file since this one was opened: the database was moved or replaced; close all connections and open it again", file.display())]
    Moved {
        /// The database's name.
        file: PathBuf,
    },

    /// The file is no log of this kind.
    #[error("{} is not a Fulgurite log; give the path of one, or of a file that does not exist", file.display())]
    NotALog {
        /// The file.
        file: PathBuf,
    },

    /// No record begins at this position, or it was truncated away.
    #[error("no record begins at log position {position}; the log holds {first} to {end}")]
    NoRecord {
        /// What was asked for.
        position: u64,
        /// The log's first position.
        first: u64,
        /// The position behind its last record.
        end: u64,
    },

    /// A side of a mirrored log is gone.
    #[error("the side {} of the mirrored log is missing; put it back, or say in the options to go on with the other side or to rebuild this one", file.display())]
    SideMissing {
        /// The missing side.
        file: PathBuf,
    },

    /// A side of a mirrored log was to be opened as a log of one file.
    #[error("{} is a side of a mirrored log; name the other side in the options, which also say whether to go on without it", file.display())]
    Mirrored {
        /// The side.
        file: PathBuf,
    },

    /// A log of one file was to be opened as a mirrored one.
    #[error("{} is a log of one file; open it without a mirror, or, to have it mirrored from now on, say in the options to rebuild the side that is missing, with no file in its place", file.display())]
    NotMirrored {
        /// The log.
        file: PathBuf,
    },

    /// What a side of a mirrored log says of itself cannot be read, so that nobody can
    /// tell whether it went on without the other side.
    #[error("the side {} of the mirrored log cannot be read: {source}; put a whole one in its place, or say in the options to go on with the other side or to rebuild this one", file.display())]
    SideUnreadable {
        /// The side.
        file: PathBuf,
        /// Why it cannot be read.
        source: Arc<Error>,
    },

    /// What is in the place of a mirrored log's side belongs to something else, as far as
    /// can be told, and is not replaced.
    #[error("{} is no side of the mirrored log {}; name another path, or move it away", file.display(), log.display())]
    NotASide {
        /// The file.
        file: PathBuf,
        /// The side that is one.
        log: PathBuf,
    },

    /// The sides of a mirrored log were each written to without the other.
    #[error("the sides {} and {} of the mirrored log went on without each other; move away the one that is to be given up, and have it rebuilt", first.display(), second.display())]
    SidesDiverged {
        /// One side.
        first: PathBuf,
        /// The other side.
        second: PathBuf,
    },

    /// The log reached its limit, and no checkpoint made room in time.
    #[error(
        "the log has reached its limit of {limit_bytes} bytes and no checkpoint or truncation made room in time"
    )]
    Full {
        /// The limit.
        limit_bytes: u64,
    },

    /// The log reached its limit, and the checkpoint that was to make room failed.
    /// Once what it met is gone, commits go on.
    #[error(
        "the log has reached its limit of {limit_bytes} bytes and the checkpoint that was to make room failed: {source}"
    )]
    NoRoom {
        /// The limit.
        limit_bytes: u64,
        /// What the checkpoint failed with.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },

    /// One record cannot be that large.
    #[error("a log record of {bytes} bytes is larger than the limit of {limit_bytes}")]
    TooBig {
        /// What was asked for.
        bytes: u64,
        /// The largest payload.
        limit_bytes: u64,
    },

    /// An earlier write or sync failed, so nothing can be committed until the
    /// database is opened anew. The cause is the first failure.
    #[error("the log takes no more commits since an earlier failure: {0}")]
    Poisoned(Arc<Error>),

    /// [`TwinLog::switch`](crate::TwinLog::switch) without a prepared generation, or
    /// [`TwinLog::prepare_switch`](crate::TwinLog::prepare_switch) while the older one
    /// is still needed.
    #[error("the log cannot switch: {0}")]
    NotReady(&'static str),

    /// The log was closed.
    #[error("the log is closed")]
    Closed,

    /// The caller broke a rule of the interface.
    #[error("misuse of the log: {0}")]
    Misuse(&'static str),

    /// The caller of [`Recovery::replay`](crate::Recovery::replay) failed.
    #[error("cannot apply log record {seq}: {source}")]
    Replay {
        /// The record's sequence number.
        seq: u64,
        /// What the caller said.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },

    /// A record could not be decoded, or whoever asked for it failed:
    /// [`Wal::replay_entries`](crate::Wal::replay_entries).
    #[error("cannot apply the record at log position {position}: {source}")]
    Entry {
        /// Where the record begins.
        position: u64,
        /// What the caller said.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// The system has no memory for the log of this name.
    pub(crate) fn no_memory(path: &Path, cause: io::Error) -> Self {
        DiskError::new("take memory for", path, cause).into()
    }

    /// Whether the disk or the log has no room left.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } | Self::NoRoom { .. } => true,
            Self::Disk(error) => error.kind == DiskErrorKind::NoSpace,
            _ => false,
        }
    }
}
