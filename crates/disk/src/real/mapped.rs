//! A file written through a shared map.
//!
//! Bytes are copied into the map by the kernel (`process_vm_writev` to this
//! process itself): where the map has no page any more, because somebody cut
//! the file short or the disk failed to deliver the page, that call returns
//! `EFAULT`, which becomes an error; a copy by the processor would raise SIGBUS
//! and end the process. Nothing else ever touches the map: reads go through
//! the descriptor, which sees the same pages.
//!
//! The map has the file's length at opening, so writes behind it fail.

use std::fs::File;
use std::io::{self, IoSlice};
use std::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::RealFile;
use crate::{DiskError, DiskErrorKind, DiskFile, Result, forward};

const PAGE: u64 = 4096;

#[derive(Debug)]
pub(super) struct MappedFile {
    inner: RealFile,
    map: Map,
    /// The pages written and not yet synced: their first and last byte.
    dirty: Mutex<Option<(u64, u64)>>,
}

/// A shared map of a whole file.
#[derive(Debug)]
struct Map {
    base: *mut libc::c_void,
    len: u64,
}

// SAFETY: the map is only an address range; it is given to system calls, which
// may come from any thread, and never dereferenced.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    fn new(file: &File, len: u64) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let count = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: a fresh map at an address of the kernel's choice; the
        // descriptor is open. An empty file is refused with EINVAL.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base, len })
    }

    /// The address of `offset`, which is not behind the end.
    fn address(&self, offset: u64) -> *mut libc::c_void {
        self.base.wrapping_byte_add(offset as usize)
    }

    /// Has the kernel copy `buf` to `offset`.
    fn write(&self, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        while !buf.is_empty() {
            let local = libc::iovec {
                iov_base: buf.as_ptr() as *mut libc::c_void,
                iov_len: buf.len(),
            };
            let remote = libc::iovec {
                iov_base: self.address(offset),
                iov_len: buf.len(),
            };
            // SAFETY: `local` is borrowed memory that is only read; `remote`
            // lies in the map, which nothing in this program borrows; a bad
            // page is an error return.
            let copied =
                unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
            match usize::try_from(copied) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    buf = buf.get(count..).unwrap_or_default();
                    offset += count as u64;
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn sync(&self, from: u64, to: u64) -> io::Result<()> {
        let from = from / PAGE * PAGE;
        // SAFETY: the range lies in the map; its pages are not touched.
        let result =
            unsafe { libc::msync(self.address(from), (to - from) as usize, libc::MS_SYNC) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nobody holds its address.
        unsafe {
            libc::munmap(self.base, self.len as usize);
        }
    }
}

impl MappedFile {
    pub(super) fn new(inner: RealFile) -> Result<Self> {
        let len = inner.len()?;
        let map = Map::new(&inner.file, len)
            .map_err(|e| DiskError::with_kind("map", &inner.path, DiskErrorKind::Unsupported, e))?;
        Ok(Self {
            inner,
            map,
            dirty: Mutex::new(None),
        })
    }
}

impl DiskFile for MappedFile {
    forward!(inner: len, identity, read_at, hint_lifetime, start_writeback, allocate);
    forward!(inner: truncate, lock_exclusive, lock_shared);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        self.map
            .write(buf, offset)
            .map_err(|e| self.inner.error("write the map of", e))?;
        let end = offset + buf.len() as u64;
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        *dirty = Some(match *dirty {
            Some((from, to)) => (from.min(offset), to.max(end)),
            None => (offset, end),
        });
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], mut offset: u64) -> Result<()> {
        for buf in bufs {
            self.write_at(buf, offset)?;
            offset += buf.len() as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let dirty = self
            .dirty
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some((from, to)) = dirty else {
            return Ok(());
        };
        // A file cut short has lost the pages, which msync does not report.
        if self.inner.len()? < to {
            return Err(self
                .inner
                .error("sync the map of", io::ErrorKind::UnexpectedEof.into()));
        }
        self.map
            .sync(from, to)
            .map_err(|e| self.inner.error("sync the map of", e))
    }

    fn sync_all(&self) -> Result<()> {
        self.sync_data()?;
        self.inner.sync_all()
    }
}
