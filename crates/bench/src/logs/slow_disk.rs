//! A disk in memory whose syncs take a time of our choice, so that a crowd can
//! be measured at the sync times of other disks.

use fulgurite_disk::{Disk, DiskFile, MemoryDisk, OpenOptions, Result, forward};
use std::path::Path;
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
    forward!(inner: exists, remove, rename, sync_dir, canonical);

    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(self.inner.open(path, options)?))
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(self.inner.temp_file(near)?))
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
    forward!(inner: len, identity, read_at, write_at, write_vectored_at, allocate);
    forward!(inner: truncate, lock_exclusive, lock_shared, unlock);

    fn sync_data(&self) -> Result<()> {
        self.pause();
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.pause();
        self.inner.sync_all()
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}
}
