//! A disk at whose calls others come between: a write arrives only after a while, and
//! what a sync covers was written before it began, not before it ended.

use fulgurite_disk::{Disk, DiskFile, OpenOptions, Result, forward};
use fulgurite_sim::{Rng, SimDisk};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The turns that others get at one call in four, at most.
const TURNS: u64 = 40;

#[derive(Debug, Clone)]
struct Pace {
    seed: u64,
    calls: Arc<AtomicU64>,
}

impl Pace {
    fn let_others_run(&self) {
        let call = self.calls.fetch_add(1, Relaxed);
        let mut rng = Rng::new(self.seed ^ call);
        if rng.one_in(4) {
            (0..rng.below(TURNS)).for_each(|_| std::thread::yield_now());
        }
    }
}

#[derive(Debug, Clone)]
pub struct SlowDisk {
    inner: SimDisk,
    pace: Pace,
}

impl SlowDisk {
    pub fn new(inner: SimDisk, seed: u64) -> Self {
        let calls = Arc::default();
        Self {
            inner,
            pace: Pace { seed, calls },
        }
    }

    fn slow(&self, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let pace = self.pace.clone();
        Arc::new(SlowFile { inner, pace })
    }
}

impl Disk for SlowDisk {
    forward!(inner: exists, rename, remove, canonical, boot_id);

    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(self.slow(self.inner.open(path, options)?))
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        Ok(self.slow(self.inner.temp_file(near)?))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let done = self.inner.sync_dir(dir);
        self.pace.let_others_run();
        done
    }
}

#[derive(Debug)]
struct SlowFile {
    inner: Arc<dyn DiskFile>,
    pace: Pace,
}

impl DiskFile for SlowFile {
    forward!(inner: len, identity, start_writeback, truncate, allocate);
    forward!(inner: lock_exclusive, lock_shared, unlock);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.pace.let_others_run();
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.pace.let_others_run();
        self.inner.write_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.pace.let_others_run();
        self.inner.write_vectored_at(bufs, offset)
    }

    fn sync_data(&self) -> Result<()> {
        let done = self.inner.sync_data();
        self.pace.let_others_run();
        done
    }

    fn sync_all(&self) -> Result<()> {
        let done = self.inner.sync_all();
        self.pace.let_others_run();
        done
    }
}
