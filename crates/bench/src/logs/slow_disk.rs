//! A disk in memory whose syncs take a time of our choice, so that a crowd can
//! be measured at the sync times of other disks.

use fulgurite_disk::{Disk, DiskFile, FileId, MemoryDisk, OpenOptions, Result};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Shorter than this a sleep is not trusted to be.
const SLEEP_SLACK: Duration = Duration::from_micros(120);

pub struct SlowDisk {
    inner: MemoryDisk,
    sync: Duration,
}

impl SlowDisk {
    pub fn new(sync: Duration) -> Self {
        Self {
            inner: MemoryDisk::new(),
            sync,
        }
    }

    fn wrap(&self, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(SlowFile {
            inner,
            sync: self.sync,
        })
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(self.inner.open(path, options)?))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(self.inner.temp_file(near)?))
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        self.inner.canonical(path)
    }
}

#[derive(Debug)]
struct SlowFile {
    inner: Arc<dyn DiskFile>,
    sync: Duration,
}

impl SlowFile {
    /// Lets the time of a sync pass: asleep as a thread that waits for a disk
    /// is, but for the end, which a sleep would miss.
    fn pause(&self) {
        let end = Instant::now() + self.sync;
        if let Some(sleep) = self.sync.checked_sub(SLEEP_SLACK) {
            thread::sleep(sleep);
        }
        while Instant::now() < end {
            thread::yield_now();
        }
    }
}

impl DiskFile for SlowFile {
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn identity(&self) -> Result<FileId> {
        self.inner.identity()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.inner.write_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.inner.write_vectored_at(bufs, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.pause();
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.pause();
        self.inner.sync_all()
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.allocate(offset, len)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }

    fn lock_exclusive(&self) -> Result<()> {
        self.inner.lock_exclusive()
    }

    fn lock_shared(&self) -> Result<()> {
        self.inner.lock_shared()
    }
}
