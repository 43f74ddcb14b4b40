//! The operating system's files.
//!
//! Transfers are positional and go straight to the system call, so that no
//! handle carries a cursor. Locks are `flock` locks: they belong to the handle,
//! so two handles in one process exclude each other too, and closing an
//! unrelated handle of the same file gives nothing up (which POSIX record locks
//! would do). A handle that is closed gives its lock back by a call: a program that
//! this process is about to start has the handle, too, until it runs, and would keep
//! the lock as long.
//!
//! Calls that a signal interrupts are repeated, syncs too: an interrupted one has
//! reported no failure yet, so the next one still does.
//!
//! On Apple's systems a sync is `F_FULLFSYNC`, without which the drive's own
//! cache keeps the bytes.

mod boot;
#[cfg(target_os = "linux")]
mod guard;
mod holder;
#[cfg(target_os = "linux")]
mod mapped;
#[cfg(target_os = "linux")]
mod special;
mod temporary;
#[cfg(target_os = "linux")]
mod uring;
mod writeback;

use std::fs;
use std::io::{self, IoSlice};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::{Errno, retry_on_intr};

use crate::{Disk, DiskError, DiskErrorKind, DiskFile, FileId, OpenOptions, Result, transfer};

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl RealFile {
    /// Opens a file with additional flags of the system's `open`. What is no file is
    /// refused before that: a pipe would be waited for, and a device taken for an
    /// empty file, which may be replaced.
    fn open(path: &Path, options: OpenOptions, flags: i32) -> Result<Self> {
        let (metadata, flags) = match options.no_follow {
            true => (fs::symlink_metadata(path), flags | NO_FOLLOW),
            false => (fs::metadata(path), flags),
        };
        if let Ok(metadata) = metadata {
            check_is_file(path, metadata.file_type())?;
        }
        let file = fs::OpenOptions::new()
            .read(true)
            .write(!options.read_only)
            .create(options.create)
            .create_new(options.create_new)
            .truncate(options.truncate)
            .custom_flags(flags)
            .open(path)
            .map_err(|e| match Errno::from_io_error(&e) {
                Some(Errno::LOOP) if options.no_follow => is_link(path),
                _ => DiskError::new("open", path, e),
            })?;
        Ok(Self {
            file,
            path: path.to_owned(),
            read_only: options.read_only,
            locked_by: AtomicU32::new(0),
        })
    }
}

fn file_id(metadata: &fs::Metadata) -> FileId {
    FileId {
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(RealFile::open(path, options, 0)?))
    }

    #[cfg(target_os = "linux")]
    fn open_with(
        &self,
        path: &Path,
        options: OpenOptions,
        access: crate::Access,
    ) -> Result<Arc<dyn DiskFile>> {
        special::open(path, options, access)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists()
            .map_err(|e| DiskError::new("look up", path, e))
    }

    /// Without opening it, which takes a right to read and a free descriptor.
    fn identity_at(&self, path: &Path) -> Result<FileId> {
        let metadata = fs::metadata(path).map_err(|e| DiskError::new("stat", path, e))?;
        Ok(file_id(&metadata))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| DiskError::new("remove", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| DiskError::new("rename", from, e))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let dir = folder_or_current(dir);
        fs::File::open(dir)
            .and_then(|handle| sync_everything(&handle))
            .map_err(|e| DiskError::new("sync folder", dir, e))
    }

    /// Where the folder takes no files, one in the system's folder for temporary ones.
    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        let dir = folder_or_current(crate::parent_dir(near));
        match temporary::make(dir) {
            Err(error) if temporary::takes_none(&error) => {
                temporary::make(&std::env::temp_dir()).map_err(|_| error)
            }
            made => made,
        }
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        let whole = fs::canonicalize(path);
        let resolved = match (whole, path.file_name()) {
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                fs::canonicalize(folder_or_current(crate::parent_dir(path)))
                    .map(|dir| dir.join(name))
            }
            (other, _) => other,
        };
        resolved.map_err(|e| DiskError::new("resolve", path, e))
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        boot::id()
    }
}

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn is_link(path: &Path) -> DiskError {
    let error = io::Error::other("it is a symbolic link");
    DiskError::with_kind("open", path, DiskErrorKind::Link, error)
}

fn check_is_file(path: &Path, kind: fs::FileType) -> Result<()> {
    let error = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => return Err(is_link(path)),
        kind if kind.is_dir() => io::ErrorKind::IsADirectory.into(),
        _ => io::Error::other("not a regular file"),
    };
    Err(DiskError::new("open", path, error))
}

fn folder_or_current(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    }
}

#[cfg(target_vendor = "apple")]
fn sync_everything(file: &fs::File) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fcntl_fullfsync(file))?)
}

#[cfg(not(target_vendor = "apple"))]
fn sync_everything(file: &fs::File) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fsync(file))?)
}

#[cfg(target_vendor = "apple")]
fn sync_bytes(file: &fs::File) -> io::Result<()> {
    sync_everything(file)
}

#[cfg(not(target_vendor = "apple"))]
fn sync_bytes(file: &fs::File) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fdatasync(file))?)
}

#[derive(Debug)]
struct RealFile {
    file: fs::File,
    path: PathBuf,
    read_only: bool,
    /// The process that took the lock, or 0: a copy of a process must not give back
    /// what the other one still has.
    locked_by: AtomicU32,
}

impl Drop for RealFile {
    fn drop(&mut self) {
        // Closing the file gives it back, too, only perhaps later.
        self.unlock();
    }
}

impl RealFile {
    #[cold]
    fn error(&self, op: &'static str, source: io::Error) -> DiskError {
        DiskError::new(op, &self.path, source)
    }

    #[inline]
    fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(self.error("write", io::ErrorKind::ReadOnlyFilesystem.into()));
        }
        Ok(())
    }

    #[inline]
    fn write_some(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(&self.file, buf, offset)?)
    }

    fn lock(&self, operation: FlockOperation) -> Result<()> {
        loop {
            match rustix::fs::flock(&self.file, operation) {
                Ok(()) => {
                    self.locked_by.store(std::process::id(), Ordering::Relaxed);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    let pid = self.identity().ok().and_then(holder::of_lock);
                    let kind = DiskErrorKind::Busy { pid };
                    return Err(DiskError::with_kind(
                        "lock",
                        &self.path,
                        kind,
                        Errno::WOULDBLOCK.into(),
                    ));
                }
                Err(error) => return Err(self.error("lock", error.into())),
            }
        }
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|e| self.error("stat", e))?;
        Ok(metadata.len())
    }

    fn identity(&self) -> Result<FileId> {
        let metadata = self.file.metadata().map_err(|e| self.error("stat", e))?;
        Ok(file_id(&metadata))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        transfer::read_whole(buf, offset, |buf, offset| {
            Ok(rustix::io::pread(&self.file, buf, offset)?)
        })
        .map_err(|e| self.error("read", e))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.check_writable()?;
        transfer::write_whole(buf, offset, |buf, offset| self.write_some(buf, offset))
            .map_err(|e| self.error("write", e))
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.check_writable()?;
        let vectored =
            |batch: &[IoSlice<'_>], offset| Ok(rustix::io::pwritev(&self.file, batch, offset)?);
        let write = |buf: &[u8], offset| self.write_some(buf, offset);
        transfer::write_vectored_whole(bufs, offset, vectored, write)
            .map_err(|e| self.error("write", e))
    }

    fn sync_data(&self) -> Result<()> {
        sync_bytes(&self.file).map_err(|e| self.error("sync", e))
    }

    fn sync_all(&self) -> Result<()> {
        sync_everything(&self.file).map_err(|e| self.error("sync", e))
    }

    fn hint_lifetime(&self, lifetime: crate::Lifetime) {
        writeback::hint_lifetime(&self.file, lifetime);
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        writeback::start(&self.file, offset, len);
    }

    fn finish_writeback(&self, offset: u64, len: u64) -> Result<()> {
        writeback::finish(&self.file, offset, len).map_err(|e| self.error("write back", e))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable()?;
        if len == 0 {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, len) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    let end = offset.saturating_add(len);
                    return if self.len()? < end {
                        self.truncate(end)
                    } else {
                        Ok(())
                    };
                }
                Err(error) => return Err(self.error("allocate room in", error.into())),
            }
        }
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.check_writable()?;
        self.file
            .set_len(len)
            .map_err(|e| self.error("set the length of", e))
    }

    fn lock_exclusive(&self) -> Result<()> {
        self.lock(FlockOperation::NonBlockingLockExclusive)
    }

    fn lock_shared(&self) -> Result<()> {
        self.lock(FlockOperation::NonBlockingLockShared)
    }

    fn unlock(&self) {
        if self.locked_by.swap(0, Ordering::Relaxed) == std::process::id() {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that was closed could not be opened again while another thread was
    /// starting a program.
    #[test]
    fn a_closed_handle_gives_its_lock_back_whoever_has_a_copy() {
        let path = std::env::temp_dir().join(format!("fulgurite-lock-{}", std::process::id()));
        let open = || RealFile::open(&path, OpenOptions::CREATE, 0).expect("opens");
        let (one, other) = (open(), open());
        one.lock_exclusive().expect("nobody has it");
        let copy = one.file.try_clone().expect("a copy");
        drop(one);
        other.lock_exclusive().expect("it was given back");
        drop(copy);
        fs::remove_file(&path).expect("removes");
    }
}
