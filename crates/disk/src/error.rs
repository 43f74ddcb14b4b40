//! The error of every call: what was done to which file, and why it failed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

/// A failed call on a [`Disk`](crate::Disk) or a [`DiskFile`](crate::DiskFile).
#[derive(Debug, Clone, thiserror::Error)]
pub struct DiskError {
    /// What was being done, as a verb: `open`, `read`, `sync`.
    pub op: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// What callers match on.
    pub kind: DiskErrorKind,
    /// The operating system's error. Shared, so that one failure can be
    /// reported to everyone it concerns.
    #[source]
    pub source: Arc<io::Error>,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskErrorKind {
    /// There is no such file or folder.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// The name is a symbolic link, and those were not to be followed.
    Link,
    /// The operating system does not allow it.
    PermissionDenied,
    /// The file system or the handle takes no writes.
    ReadOnly,
    /// The disk, the quota or the largest file size is used up.
    NoSpace,
    /// Another handle holds a lock.
    Busy {
        /// The process that holds it, where the operating system tells.
        pid: Option<u32>,
    },
    /// The file ends before the bytes that were asked for.
    UnexpectedEof,
    /// The process, or the system, has as many files open as it may: nothing was asked of
    /// the disk.
    NoHandles,
    /// This machine, file system or disk has no such way of access.
    Unsupported,
    /// Anything else, such as an I/O error.
    Other,
}

impl DiskError {
    /// An error whose kind follows from `source`.
    pub fn new(op: &'static str, path: &Path, source: io::Error) -> Self {
        let kind = kind_of(&source);
        Self::with_kind(op, path, kind, source)
    }

    /// An error with a kind of the caller's choice.
    pub fn with_kind(
        op: &'static str,
        path: &Path,
        kind: DiskErrorKind,
        source: io::Error,
    ) -> Self {
        Self {
            op,
            path: path.to_owned(),
            kind,
            source: Arc::new(source),
        }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: ", self.op, self.path.display())?;
        match self.kind {
            DiskErrorKind::Busy { pid: Some(pid) } if pid == std::process::id() => {
                write!(f, "locked by this process, which has it open already")
            }
            DiskErrorKind::Busy { pid: Some(pid) } => write!(f, "locked by process {pid}"),
            DiskErrorKind::Busy { pid: None } => write!(f, "locked by another process"),
            _ => write!(f, "{}", self.source),
        }
    }
}

fn kind_of(source: &io::Error) -> DiskErrorKind {
    if let Some(Errno::MFILE | Errno::NFILE) = Errno::from_io_error(source) {
        return DiskErrorKind::NoHandles;
    }
    match source.kind() {
        io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
        io::ErrorKind::PermissionDenied => DiskErrorKind::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem => DiskErrorKind::ReadOnly,
        io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::FileTooLarge
        | io::ErrorKind::WriteZero => DiskErrorKind::NoSpace,
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => {
            DiskErrorKind::Busy { pid: None }
        }
        io::ErrorKind::UnexpectedEof => DiskErrorKind::UnexpectedEof,
        io::ErrorKind::Unsupported => DiskErrorKind::Unsupported,
        _ => DiskErrorKind::Other,
    }
}
