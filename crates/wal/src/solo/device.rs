//! The devices: ways of writing that share one format and one trait,
//! [`DiskFile`]. A log may be opened with another device than it was made with.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Access, AlignedFile, Disk, DiskFile, OpenOptions, Result};

/// How a log's bytes get to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// `pwrite` and `fdatasync`.
    File,
    /// Whole blocks past the operating system's cache, and `fdatasync`.
    Direct,
    /// A map of the file, and `msync`. The file is made ready as a whole.
    Mmap,
    /// A write and a sync in one submission to an io_uring.
    Uring,
    /// As `Uring`, with a kernel thread that polls for submissions: it keeps a
    /// processor busy.
    UringPolled,
    /// In memory: nothing survives the last handle.
    Memory,
}

impl Device {
    /// Those that keep what they are given.
    pub const DURABLE: [Self; 5] = [
        Self::File,
        Self::Direct,
        Self::Mmap,
        Self::Uring,
        Self::UringPolled,
    ];

    /// The number that stands for it in a log's head.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::File | Self::Memory => 0,
            Self::Direct => 1,
            Self::Mmap => 2,
            Self::Uring => 3,
            Self::UringPolled => 4,
        }
    }

    /// What a number stands for; a file where it is none of ours, since every
    /// device reads and writes the same format.
    pub(super) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Direct,
            2 => Self::Mmap,
            3 => Self::Uring,
            4 => Self::UringPolled,
            _ => Self::File,
        }
    }

    /// Opens the file at `path`, which has its whole length for `Mmap` and a
    /// length of whole blocks for `Direct`.
    pub(super) fn open(self, disk: &dyn Disk, path: &Path) -> Result<Arc<dyn DiskFile>> {
        let open = |access| disk.open_with(path, OpenOptions::WRITE, access);
        match self {
            Self::File | Self::Memory => disk.open(path, OpenOptions::WRITE),
            Self::Direct => Ok(Arc::new(AlignedFile::new(open(Access::Direct)?))),
            Self::Mmap => open(Access::Mapped),
            Self::Uring => open(Access::Ring),
            Self::UringPolled => open(Access::RingPolled),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "file",
            Self::Direct => "direct",
            Self::Mmap => "mmap",
            Self::Uring => "io_uring",
            Self::UringPolled => "io_uring-polled",
            Self::Memory => "memory",
        })
    }
}
