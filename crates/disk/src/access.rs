//! Ways of reaching a file's bytes beside the usual one.

use std::fmt;
use std::io;
use std::path::Path;

use crate::DiskError;

/// How a file's bytes are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Access {
    /// Positional reads and writes through the operating system's cache.
    #[default]
    Buffered,
    /// Past the cache. Offsets, lengths and memory must be multiples of
    /// [`AlignedFile::BLOCK_BYTES`](crate::AlignedFile::BLOCK_BYTES).
    Direct,
    /// Writes within the file are copies into a shared map of it, without a system
    /// call; the file's at once, durable after a sync. After a page of the map was
    /// lost (the file was cut short, the disk failed) every write and sync fails.
    Mapped,
    /// Through an io_uring: a write and its sync are one system call.
    Ring,
    /// As `Ring`, with a kernel thread that polls for submissions.
    RingPolled,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffered => "buffered access",
            Self::Direct => "direct access",
            Self::Mapped => "mapped access",
            Self::Ring => "io_uring",
            Self::RingPolled => "io_uring with submission polling",
        })
    }
}

/// How soon a file's bytes will be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Lifetime {
    /// Nothing is known.
    #[default]
    NotSet,
    /// Soon, as in a log.
    Short,
    /// In between.
    Medium,
    /// Hardly ever.
    Long,
}

/// The error of an access that is not to be had.
pub(crate) fn unsupported(path: &Path, access: Access) -> DiskError {
    let source = io::Error::new(
        io::ErrorKind::Unsupported,
        format!("{access} is not available here; open it with buffered access"),
    );
    DiskError::new("open", path, source)
}
