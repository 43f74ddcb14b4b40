//! A disk at whose every call that writes or syncs another thread of a model may run
//! first, and after it. It sees to it that nobody syncs a file beside another one, or
//! after a sync of it failed: only one of those who sync hears of a failure.

use fulgurite_disk::{Access, Disk, DiskFile, OpenOptions, Result, forward};
use shuttle::thread::yield_now;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// See the module's header.
#[derive(Debug)]
pub struct Stops<D>(pub D);

#[derive(Debug)]
struct StopsFile {
    file: Arc<dyn DiskFile>,
    /// Whether somebody syncs it, or a sync of it failed.
    taken: AtomicBool,
}

impl StopsFile {
    fn of(file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let taken = AtomicBool::new(false);
        Arc::new(Self { file, taken })
    }

    fn sync(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let taken = self.taken.swap(true, SeqCst);
        assert!(
            !taken,
            "a sync beside another one, or after one that failed"
        );
        let done = stop(sync);
        self.taken.store(done.is_err(), SeqCst);
        done
    }
}

/// Who hears of a failure may have lost the processor before, so that others go on as
/// if there was none.
const TURNS_BEFORE_A_FAILURE: usize = 80;

fn stop<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    yield_now();
    let done = call();
    for _ in 0..if done.is_ok() {
        1
    } else {
        TURNS_BEFORE_A_FAILURE
    } {
        yield_now();
    }
    done
}

impl<D: Disk> Disk for Stops<D> {
    forward!(0: exists, canonical, boot_id);

    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(StopsFile::of(self.0.open(path, options)?))
    }

    fn open_with(
        &self,
        path: &Path,
        options: OpenOptions,
        access: Access,
    ) -> Result<Arc<dyn DiskFile>> {
        let file = self.0.open_with(path, options, access)?;
        Ok(StopsFile::of(file))
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        Ok(StopsFile::of(self.0.temp_file(near)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        stop(|| self.0.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        stop(|| self.0.rename(from, to))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        stop(|| self.0.sync_dir(dir))
    }
}

impl DiskFile for StopsFile {
    forward!(file: len, read_at, start_writeback, lock_shared, unlock, lock_exclusive, identity);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        stop(|| self.file.write_at(buf, offset))
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        stop(|| self.file.write_vectored_at(bufs, offset))
    }

    fn sync_data(&self) -> Result<()> {
        self.sync(|| self.file.sync_data())
    }

    fn sync_all(&self) -> Result<()> {
        self.sync(|| self.file.sync_all())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        stop(|| self.file.allocate(offset, len))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        stop(|| self.file.truncate(len))
    }
}
