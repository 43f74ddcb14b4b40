//! A file written through a shared map: a write is a copy, without a system call.
//!
//! What is copied is the file's at once: reads through any descriptor see it, it
//! survives the end of the process, and a sync of the descriptor makes it durable,
//! since a map and its file share their pages here. Nothing in this program borrows
//! the map's memory. A page that is lost (`guard.rs`) is an error of the write, and of
//! every write and sync after it.
//!
//! The map reaches further than the file, so that a file that grows is mapped where
//! it grew. What is written behind the file's known length, or behind the map, goes
//! through the descriptor.

use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{RealFile, guard};
use crate::{DiskError, DiskErrorKind, DiskFile, Result, forward};

/// How far a map reaches at least: address space, no memory. The second where the process
/// may have no more of that.
#[cfg(target_pointer_width = "64")]
const REACH_BYTES: [u64; 2] = [1 << 30, 64 << 20];
#[cfg(not(target_pointer_width = "64"))]
const REACH_BYTES: [u64; 2] = [64 << 20, 16 << 20];
/// What was written is noted in steps of this size, a multiple of any page's, so that
/// most writes have nothing to note.
const STEP_BYTES: u64 = 64 << 10;
/// A sync lets go of the pages before it where there are more than this; fewer are as
/// quick without.
const SYNCED_BYTES: u64 = 2 * STEP_BYTES;
/// From so many on a write does: mapped pages count as the process's memory.
const RESIDENT_BYTES: u64 = 1 << 20;
/// The newest of which stay: several may be writing there, each in a place of its own.
const KEPT_BYTES: u64 = RESIDENT_BYTES / 2;

/// Bytes of a cache line, near enough, and how many are asked for ahead at most.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
#[cfg(target_arch = "x86_64")]
const FETCHED: usize = 8 * LINE;

#[derive(Debug)]
pub(super) struct MappedFile {
    inner: RealFile,
    map: Map,
    /// The file is at least this long, as far as this handle knows.
    len: AtomicU64,
    /// The pages written through the map and not let go of lie from here to there, as
    /// far as writes and syncs at the same time let that be known.
    held_from: AtomicU64,
    held_to: AtomicU64,
    /// Whether the map lost a page.
    lost: AtomicBool,
}

/// A shared map of a file's beginning, and of what may follow it.
#[derive(Debug)]
struct Map {
    base: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the map is an address range, whose memory is reached through `guard::copy`
// only, which may be called from any thread.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    fn new(file: &File, len: u64) -> io::Result<Self> {
        let [most, least] = REACH_BYTES.map(|reach| len.max(reach));
        Self::of_bytes(file, most).or_else(|_| Self::of_bytes(file, least))
    }

    fn of_bytes(file: &File, bytes: u64) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: a fresh map at an address of the kernel's choice; the descriptor is
        // open.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base, bytes })
    }

    fn addresses(&self) -> Range<usize> {
        let from = self.base.expose_provenance();
        from..from + self.bytes
    }

    /// Makes the pages of a range, which begins at one, ready to be written, in one
    /// go.
    fn populate(&self, range: Range<u64>) {
        // SAFETY: the range lies in the map. Nothing of it changes; where a page cannot
        // be had, who writes to it will find that out.
        unsafe {
            libc::madvise(
                self.base.wrapping_byte_add(range.start as usize),
                (range.end - range.start) as usize,
                libc::MADV_POPULATE_WRITE,
            );
        }
    }

    /// Asks for the cache lines of so many bytes behind what was written, where the
    /// processor lets us: one write mostly follows another. Nothing is read, and where
    /// the map has no page nothing happens.
    fn fetch_behind(&self, end: usize, bytes: usize) {
        #[cfg(target_arch = "x86_64")]
        for at in
            (end.next_multiple_of(LINE)..self.bytes.min(end + bytes.min(FETCHED))).step_by(LINE)
        {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            // SAFETY: the address lies in the map, and a prefetch neither reads nor
            // writes as far as the program can tell.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(self.base.wrapping_byte_add(at).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (end, bytes);
    }

    /// Lets go of the pages in a range, which begins at one; whoever writes there gets
    /// them again. A sync otherwise write-protects page after page, each with an
    /// interrupt of all processors that run this program.
    fn let_go(&self, range: Range<u64>) {
        let from = range.start as usize;
        let to = self.bytes.min(range.end as usize);
        // SAFETY: the range lies in the map. Its pages stay the file's, with what was
        // written to them, as a shared map's do. Where it fails, the sync is slower.
        unsafe {
            libc::madvise(
                self.base.wrapping_byte_add(from),
                to - from,
                libc::MADV_DONTNEED,
            );
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nobody holds an address in it.
        unsafe {
            libc::munmap(self.base, self.bytes);
        }
    }
}

impl MappedFile {
    pub(super) fn new(inner: RealFile) -> Result<Self> {
        let len = inner.len()?;
        let map = guard::install()
            .and_then(|()| Map::new(&inner.file, len))
            .map_err(|e| DiskError::with_kind("map", &inner.path, DiskErrorKind::Unsupported, e))?;
        Ok(Self {
            inner,
            map,
            len: AtomicU64::new(len),
            held_from: AtomicU64::new(u64::MAX),
            held_to: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        })
    }

    /// Whether the bytes before `end` are the file's and the map's.
    fn is_mapped(&self, end: u64) -> bool {
        end <= self.len.load(Ordering::Acquire) && end <= self.map.bytes as u64
    }

    fn copy(&self, buf: &[u8], offset: u64) -> Result<()> {
        let map = self.map.addresses();
        let to = map.start + offset as usize;
        // SAFETY: the map lives as long as `self`, the copy ends within it, and no
        // reference into it is ever made; a map exists only where the guard does.
        if self.lost.load(Ordering::Relaxed) || !unsafe { guard::copy(buf, to, map, &self.lost) } {
            return Err(self.loss());
        }
        self.map
            .fetch_behind(offset as usize + buf.len(), buf.len());
        self.note(offset, offset + buf.len() as u64);
        Ok(())
    }

    /// Takes note of a write; now and then lets go of its pages and those before it.
    fn note(&self, offset: u64, end: u64) {
        if self.held_from.load(Ordering::Relaxed) > offset {
            let from = offset / STEP_BYTES * STEP_BYTES;
            self.held_from.fetch_min(from, Ordering::Relaxed);
        }
        if self.held_to.load(Ordering::Relaxed) < end {
            let to = end.next_multiple_of(STEP_BYTES);
            self.held_to.fetch_max(to, Ordering::Relaxed);
            if to.saturating_sub(self.held_from.load(Ordering::Relaxed)) > RESIDENT_BYTES {
                self.let_go_before(to - KEPT_BYTES);
            }
        }
    }

    /// Lets go of the pages that were written, where they are more than so many bytes.
    fn let_go(&self, bytes: u64) {
        let from = self.held_from.swap(u64::MAX, Ordering::Relaxed);
        let to = self.held_to.swap(0, Ordering::Relaxed);
        if to.saturating_sub(from) > bytes {
            self.map.let_go(from..to);
        }
    }

    /// Lets go of the pages that were written before a position.
    fn let_go_before(&self, to: u64) {
        let from = self.held_from.swap(to, Ordering::Relaxed);
        if from < to {
            self.map.let_go(from..to);
        }
    }

    #[cold]
    fn loss(&self) -> DiskError {
        let what = "a page of its map is gone: it was cut short, or the disk failed or is full";
        self.inner.error("write the map of", io::Error::other(what))
    }

    /// What comes before a sync, which reports no page that the map lost, and nothing
    /// of a file cut short.
    fn before_sync(&self) -> Result<()> {
        // Others may lengthen or shorten the file between these looks. It was as long
        // as the first says before the second, and as the last says, if less, after.
        let known = self.len.load(Ordering::Acquire);
        let len = self.inner.len()?;
        let is_short = len < known && len < self.len.load(Ordering::Acquire);
        if is_short || self.lost.load(Ordering::Acquire) {
            return Err(self.loss());
        }
        self.let_go(SYNCED_BYTES);
        Ok(())
    }
}

impl DiskFile for MappedFile {
    forward!(inner: len, identity, read_at, hint_lifetime);
    forward!(inner: start_writeback, finish_writeback, lock_exclusive, lock_shared, unlock);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if self.is_mapped(end) {
            self.inner.check_writable()?;
            return self.copy(buf, offset);
        }
        self.inner.write_at(buf, offset)?;
        self.len.fetch_max(end, Ordering::Release);
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let bytes = bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
        let end = offset.saturating_add(bytes);
        if self.is_mapped(end) {
            self.inner.check_writable()?;
            let mut at = offset;
            for buf in bufs {
                self.copy(buf, at)?;
                at += buf.len() as u64;
            }
            return Ok(());
        }
        self.inner.write_vectored_at(bufs, offset)?;
        self.len.fetch_max(end, Ordering::Release);
        Ok(())
    }

    fn will_write(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let end = end.min(self.len.load(Ordering::Acquire));
        let end = end.min(self.map.bytes as u64);
        let page = rustix::param::page_size() as u64;
        let from = offset / page * page;
        if from < end && !self.lost.load(Ordering::Relaxed) {
            self.map.populate(from..end);
        }
    }

    fn sync_data(&self) -> Result<()> {
        self.before_sync()?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.before_sync()?;
        self.inner.sync_all()
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.allocate(offset, len)?;
        self.len
            .fetch_max(offset.saturating_add(len), Ordering::Release);
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        // What grows is mapped after it is there, what shrinks not from before.
        self.len.fetch_min(len, Ordering::AcqRel);
        self.inner.truncate(len)?;
        self.len.store(len, Ordering::Release);
        Ok(())
    }
}
