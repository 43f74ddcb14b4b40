//! The only door to files.
//!
//! Everything Fulgurite reads or writes goes through two traits: [`Disk`], a
//! file system, and [`DiskFile`], an open file. There are three of each: the
//! real one ([`RealDisk`]), one held in memory ([`MemoryDisk`]) and the
//! simulator's, which loses power; [`Intercepted`] stands before one. No other
//! crate uses `std::fs`.
//!
//! What an implementation must keep true:
//!
//! 1. A call that returns `Ok` did all of its work: reads are exact, writes are
//!    complete. Short transfers and interrupted calls are repeated inside.
//! 2. A call that fails may have done any part of its work, but touched nothing
//!    outside the range it was given.
//! 3. Bytes are durable once `sync_data` or `sync_all` of their file returned
//!    `Ok` after the write returned; a file's length with either; its name once
//!    `sync_dir` of its folder returned `Ok`.
//! 4. After a sync failed, what was unsynced then may be lost for good, and a
//!    later sync that succeeds says nothing about it. Callers must not retry.
//! 5. All methods may be called from many threads at once. Overlapping
//!    transfers are the caller's business.
//!
//! Failures are [`DiskError`]s: the operation, the path, a kind to match on,
//! and the operating system's error.

mod access;
mod aligned;
mod driver;
mod error;
mod forward;
mod intercepted;
mod lines;
mod memory;
pub mod mutation;
mod pace;
mod real;
mod region;
pub mod transfer;

use std::fmt::Debug;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use access::{Access, Lifetime};
pub use aligned::AlignedFile;
pub use driver::{Driver, Machine};
pub use error::{DiskError, DiskErrorKind};
pub use intercepted::{Intercepted, Interceptor};
pub use lines::LineStart;
pub use memory::MemoryDisk;
pub use pace::{Due, Pace};
pub use real::RealDisk;
pub use region::Region;

/// What the calls of this crate return.
pub type Result<T> = std::result::Result<T, DiskError>;

/// How [`Disk::open`] opens a file. The default is an existing file, for
/// reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Refuse writes through this handle. Not to be combined with the others.
    pub read_only: bool,
    /// Create the file if it is absent.
    pub create: bool,
    /// Create the file, and fail with `AlreadyExists` if it is there.
    pub create_new: bool,
    /// Cut the file to length 0.
    pub truncate: bool,
    /// Fail with `Link` where the name is a symbolic link, in place of opening what it
    /// leads to.
    pub no_follow: bool,
}

impl OpenOptions {
    /// An existing file, for reading only.
    pub const READ: Self = Self {
        read_only: true,
        create: false,
        create_new: false,
        truncate: false,
        no_follow: false,
    };
    /// An existing file, for reading and writing.
    pub const WRITE: Self = Self {
        read_only: false,
        create: false,
        create_new: false,
        truncate: false,
        no_follow: false,
    };
    /// A file for reading and writing, created if it is absent.
    pub const CREATE: Self = Self {
        read_only: false,
        create: true,
        create_new: false,
        truncate: false,
        no_follow: false,
    };
    /// A file for reading and writing that must not exist yet.
    pub const CREATE_NEW: Self = Self {
        read_only: false,
        create: false,
        create_new: true,
        truncate: false,
        no_follow: false,
    };
}

/// Tells files apart whatever names they were opened by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device (for a disk in memory, the disk).
    pub device: u64,
    /// The file on that device.
    pub inode: u64,
}

/// A file system.
pub trait Disk: Send + Sync + 'static {
    /// Opens, and if asked creates, the file at `path`.
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>>;

    /// Opens a file in a way of its own. A file opened with [`Access::Direct`]
    /// takes aligned transfers only, see [`AlignedFile`].
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Unsupported` where this disk, this file
    /// system or this machine has no such access.
    fn open_with(
        &self,
        path: &Path,
        options: OpenOptions,
        access: Access,
    ) -> Result<Arc<dyn DiskFile>> {
        match access {
            Access::Buffered => self.open(path, options),
            _ => Err(access::unsupported(path, access)),
        }
    }

    /// Whether there is a file (or a folder) at `path`.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Which file there is at `path`.
    ///
    /// # Errors
    /// `NotFound`, and whatever else keeps from telling.
    fn identity_at(&self, path: &Path) -> Result<FileId> {
        self.open(path, OpenOptions::READ)?.identity()
    }

    /// Removes the name `path`. Open handles go on working.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Renames a file, replacing what is at `to`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Makes the names in the folder `dir` durable: creations, removals and
    /// renames that returned before. An empty path is the current folder.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// An unnamed file that vanishes with its last handle, on the file system
    /// that holds the folder of `near`; elsewhere where that may not be written to.
    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>>;

    /// The absolute path without links. The last part may be absent.
    fn canonical(&self, path: &Path) -> Result<PathBuf>;

    /// Names the running system that keeps what was written and not synced: as long
    /// as this stays the same, whatever a process wrote is there for who opens the
    /// file after it, however that process ended. `None` where nobody can tell.
    fn boot_id(&self) -> Option<[u8; 16]> {
        None
    }
}

/// An open file.
pub trait DiskFile: Send + Sync + Debug {
    /// The file's length in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether the file holds no byte.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Which file this is.
    fn identity(&self) -> Result<FileId>;

    /// Fills `buf` from `offset` on. `UnexpectedEof` if the file ends before.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;

    /// Writes all of `buf` at `offset`, growing the file where needed.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()>;

    /// Writes all of `bufs`, one after the other, from `offset` on; in one
    /// system call where their number allows it.
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()>;

    /// Makes the file's bytes and length durable.
    fn sync_data(&self) -> Result<()>;

    /// Makes the file's bytes and all its attributes durable.
    fn sync_all(&self) -> Result<()>;

    /// Writes as [`write_vectored_at`](Self::write_vectored_at) and makes the
    /// file's bytes durable as [`sync_data`](Self::sync_data), in one system
    /// call where the file's access has one.
    fn write_and_sync_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.write_vectored_at(bufs, offset)?;
        self.sync_data()
    }

    /// Tells the device how soon the file's bytes will be overwritten, where it
    /// wants to know. A hint without a promise.
    fn hint_lifetime(&self, _lifetime: Lifetime) {}

    /// Asks for these bytes to be written back soon, without waiting and
    /// without a promise. May do nothing.
    fn start_writeback(&self, offset: u64, len: u64);

    /// Waits until what was asked for of these bytes has arrived in the device, so that
    /// no more than a caller wants is on its way there. Nothing is durable by that. May
    /// do nothing.
    ///
    /// # Errors
    /// Those of writing the bytes back. They may be lost then, and a sync that follows
    /// need not say so again: it is to be taken as a failed sync.
    fn finish_writeback(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    /// Says that these bytes will be written soon, where there is something to make
    /// ready for it. A hint without a promise, which returns at once where there is not.
    fn will_write(&self, _offset: u64, _len: u64) {}

    /// Makes the file at least `offset + len` long and, where the file system
    /// can, reserves room for these bytes. New bytes read as zero.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Sets the file's length; new bytes read as zero.
    fn truncate(&self, len: u64) -> Result<()>;

    /// Locks the file for this handle alone, without waiting. `Busy`, with the
    /// holder's process where that can be told, if another handle has a lock.
    /// A lock is given up with its handle, and by the end of the process.
    fn lock_exclusive(&self) -> Result<()>;

    /// Locks the file against exclusive locks, without waiting.
    fn lock_shared(&self) -> Result<()>;

    /// Gives this handle's lock up before the handle goes, if it has one.
    fn unlock(&self);
}

/// The folder part of a path, as [`Disk::sync_dir`] wants it.
pub fn parent_dir(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new(""))
}
