//! Failures to come: which call, when, for how long, and what it reports.

/// The kinds of calls, for choosing which one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Opening a file, with or without creating it.
    Open,
    /// Removing a name.
    Remove,
    /// Renaming a file.
    Rename,
    /// Syncing a folder.
    SyncDir,
    /// Reading.
    Read,
    /// Writing, whole or vectored.
    Write,
    /// `sync_data` and `sync_all`.
    Sync,
    /// Allocating room.
    Allocate,
    /// Setting a file's length.
    Truncate,
}

/// What a failing call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultError {
    /// Reports an I/O error.
    Io,
    /// Reports that no space is left.
    NoSpace,
    /// A write says it succeeded, and nothing ever arrives.
    Lost,
    /// A write says it succeeded, and arrived elsewhere in its file.
    Misdirected,
}

/// A failure to come.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Which calls it concerns; `None`: all but reads.
    pub call: Option<Call>,
    /// How many of these calls still succeed.
    pub after: u64,
    /// Whether all later ones fail too, or just this one.
    pub for_good: bool,
    /// What is reported.
    pub error: FaultError,
}
