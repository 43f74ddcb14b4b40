//! The memory budget of a connection and the place for what exceeds it.
//!
//! Operators that buffer (sorts, hash tables, kept rows) reserve what they use. A
//! refused reservation is no error: the operator spills to a temporary file. What
//! can neither be refused nor spilled, such as the batch at hand or the buffers
//! of a merge, is counted all the same ([`Reservation::force`]), so that others
//! find less. What is dropped gives its reservation back.
//!
//! Temporary files are unlinked from the start: they vanish with the last handle,
//! after an error or a crash, too.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fulgurite_disk::{Disk, DiskFile};
use fulgurite_store::{MemoryCharge, Store};
use parking_lot::Mutex;

use crate::error::{Error, Result, code};
use crate::value::Value;

/// Bytes a connection may buffer before it spills, unless set otherwise; a
/// quarter of the cache where that is less.
pub const MEMORY_DEFAULT: usize = 64 << 20;

/// Bytes that a buffer keeps from one run to the next.
pub const KEPT_BYTES: usize = 256 << 10;

/// Empties a buffer, and gives back what large content took.
pub fn let_go(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
}

/// The same for values, of which the large ones become NULL.
pub fn let_go_of_large(values: &mut [Value]) {
    for value in values {
        if let Value::Text(bytes) | Value::Blob(bytes) = value
            && bytes.capacity() > KEPT_BYTES
        {
            *value = Value::Null;
        }
    }
}

struct Budget {
    used: AtomicUsize,
    limit: AtomicUsize,
    /// Counts what is used against the limit of a store's cache as well.
    charge: Option<Mutex<MemoryCharge>>,
}

impl Budget {
    fn count(&self) {
        if let Some(charge) = &self.charge {
            charge.lock().set(self.used.load(Ordering::Relaxed));
        }
    }
}

/// A connection's budget; clones share it.
#[derive(Clone)]
pub struct Memory {
    budget: Arc<Budget>,
    disk: Arc<dyn Disk>,
    near: Arc<PathBuf>,
}

impl Memory {
    /// A budget of `limit` bytes whose spills are unlinked files of `disk` in
    /// the directory of `near`.
    pub fn new(disk: Arc<dyn Disk>, near: &Path, limit: usize) -> Self {
        Self::counted(disk, near, limit, None)
    }

    /// A budget for statements over a store: what is reserved counts against the
    /// limit of the store's cache, too.
    pub fn beside(store: &Store, limit: usize) -> Self {
        let near = store.path().unwrap_or(Path::new("memory"));
        let charge = store.memory_counter().charge();
        Self::counted(Arc::clone(store.disk()), near, limit, Some(charge))
    }

    fn counted(
        disk: Arc<dyn Disk>,
        near: &Path,
        limit: usize,
        charge: Option<MemoryCharge>,
    ) -> Self {
        let budget = Budget {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            charge: charge.map(Mutex::new),
        };
        Self {
            budget: Arc::new(budget),
            disk,
            near: Arc::new(near.to_path_buf()),
        }
    }

    /// Changes the limit for reservations to come.
    pub fn set_limit(&self, limit: usize) {
        self.budget.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes that may be reserved at once.
    pub fn limit(&self) -> usize {
        self.budget.limit.load(Ordering::Relaxed)
    }

    /// An empty reservation.
    pub fn reservation(&self) -> Reservation {
        Reservation {
            budget: Arc::clone(&self.budget),
            bytes: 0,
        }
    }

    /// A new temporary file.
    pub fn temp_file(&self) -> Result<TempFile> {
        Ok(TempFile {
            file: self.disk.temp_file(&self.near).map_err(disk_error)?,
            end: AtomicU64::new(0),
        })
    }
}

/// A file that nobody else sees and that goes with its last owner. It never shrinks.
pub struct TempFile {
    file: Arc<dyn DiskFile>,
    end: AtomicU64,
}

impl TempFile {
    /// Writes `bytes` behind what is there; says where.
    ///
    /// # Errors
    /// `SQLITE_FULL` where the disk has no room, `SQLITE_IOERR`.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        let place = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_at(bytes, place).map_err(disk_error)?;
        Ok(place)
    }

    /// Writes `bytes` over what is at `place`.
    ///
    /// # Errors
    /// `SQLITE_FULL` where the disk has no room, `SQLITE_IOERR`.
    pub fn write(&self, bytes: &[u8], place: u64) -> Result<()> {
        self.file.write_at(bytes, place).map_err(disk_error)
    }

    /// Fills `bytes` from `place` on.
    ///
    /// # Errors
    /// `SQLITE_IOERR`.
    pub fn read(&self, bytes: &mut [u8], place: u64) -> Result<()> {
        self.file.read_at(bytes, place).map_err(disk_error)
    }
}

/// A failed access to a temporary file, as SQLite would report it.
pub fn disk_error(error: fulgurite_disk::DiskError) -> Error {
    let (extended, message) = match error.kind {
        fulgurite_disk::DiskErrorKind::NoSpace => (code::FULL, "database or disk is full"),
        fulgurite_disk::DiskErrorKind::PermissionDenied
        | fulgurite_disk::DiskErrorKind::ReadOnly => {
            (code::CANTOPEN, "unable to open database file")
        }
        _ => (code::IOERR, "disk I/O error"),
    };
    Error::new(extended, message).with_hint(error.to_string())
}

/// Bytes taken from a budget.
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    /// Makes it `bytes` large. False: over the limit, and nothing changed.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes == self.bytes {
            return true;
        }
        if bytes <= self.bytes {
            self.budget
                .used
                .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.note(bytes);
            return true;
        }
        let more = bytes - self.bytes;
        let used = self.budget.used.fetch_add(more, Ordering::Relaxed) + more;
        if used > self.budget.limit.load(Ordering::Relaxed) {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.note(bytes);
        true
    }

    /// Makes it `bytes` large, over the limit where it must be.
    pub fn force(&mut self, bytes: usize) {
        if !self.resize(bytes) {
            let more = bytes - self.bytes;
            self.budget.used.fetch_add(more, Ordering::Relaxed);
            self.note(bytes);
        }
    }

    fn note(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.budget.count();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
            self.budget.count();
        }
    }
}

/// What an operator holds of the budget, from run to run.
#[derive(Default)]
pub struct Held(Option<Reservation>);

impl Held {
    /// As [`Reservation::resize`].
    #[inline]
    pub fn resize(&mut self, memory: &Memory, bytes: usize) -> bool {
        self.of(memory).resize(bytes)
    }

    /// As [`Reservation::resize`], of no more than half the budget: the other half
    /// is for sorting what finds no room.
    #[inline]
    pub fn resize_half(&mut self, memory: &Memory, bytes: usize) -> bool {
        bytes <= memory.limit() / 2 && self.resize(memory, bytes)
    }

    /// As [`Reservation::force`].
    #[inline]
    pub fn force(&mut self, memory: &Memory, bytes: usize) {
        self.of(memory).force(bytes);
    }

    /// Gives everything back.
    pub fn release(&mut self) {
        self.0 = None;
    }

    #[inline]
    fn of(&mut self, memory: &Memory) -> &mut Reservation {
        self.0.get_or_insert_with(|| memory.reservation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::MemoryDisk;

    #[test]
    fn a_dropped_reservation_comes_back() {
        let memory = Memory::new(Arc::new(MemoryDisk::new()), Path::new("/db"), 100);
        let mut a = memory.reservation();
        let mut b = memory.reservation();
        assert!(a.resize(60));
        assert!(!b.resize(60));
        drop(a);
        assert!(b.resize(60));
        assert!(b.resize(10));
        assert!(memory.reservation().resize(90));
    }

    #[test]
    fn what_is_forced_is_missing_to_others() {
        let memory = Memory::new(Arc::new(MemoryDisk::new()), Path::new("/db"), 100);
        let mut a = memory.reservation();
        a.force(150);
        assert!(!memory.reservation().resize(1));
        a.force(20);
        assert!(memory.reservation().resize(80));
    }
}
