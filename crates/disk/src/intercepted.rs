//! A disk that somebody stands before: tests hold what is written there, or have it fail.

use crate::{Disk, DiskFile, OpenOptions, Result, forward};
use std::fmt::{self, Debug, Formatter};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who is asked before the files of an [`Intercepted`] disk are changed, in the thread that
/// changes them. What it takes its time for waits; the errors it gives are those of the call,
/// which has done nothing then.
pub trait Interceptor: Debug + Send + Sync + 'static {
    /// Something is about to be written to this file.
    fn before_write(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// This file is about to be synced.
    fn before_sync(&self, _path: &Path) -> Result<()> {
        Ok(())
    }
}

/// A disk whose named files ask an [`Interceptor`] first.
pub struct Intercepted<D, I> {
    inner: D,
    by: Arc<I>,
}

impl<D: Disk, I: Interceptor> Intercepted<D, I> {
    /// Stands before a disk.
    pub fn new(inner: D, by: &Arc<I>) -> Self {
        let by = Arc::clone(by);
        Self { inner, by }
    }
}

impl<D, I: Interceptor> Debug for Intercepted<D, I> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercepted").field(&self.by).finish()
    }
}

impl<D: Disk, I: Interceptor> Disk for Intercepted<D, I> {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir, boot_id);

    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File {
            inner: self.inner.open(path, options)?,
            path: path.to_owned(),
            by: Arc::clone(&self.by),
        }))
    }
}

#[derive(Debug)]
struct File<I> {
    inner: Arc<dyn DiskFile>,
    path: PathBuf,
    by: Arc<I>,
}

impl<I: Interceptor> DiskFile for File<I> {
    forward!(inner: len, identity, read_at, allocate, truncate, start_writeback);
    forward!(inner: lock_exclusive, lock_shared, unlock);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.by.before_write(&self.path)?;
        self.inner.write_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.by.before_write(&self.path)?;
        self.inner.write_vectored_at(bufs, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.by.before_sync(&self.path)?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.by.before_sync(&self.path)?;
        self.inner.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskError, DiskErrorKind, MemoryDisk};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Counts, and refuses what is done to `refused`.
    #[derive(Debug, Default)]
    struct Counts {
        writes: AtomicUsize,
        syncs: AtomicUsize,
    }

    impl Counts {
        fn count(op: &'static str, number: &AtomicUsize, path: &Path) -> Result<()> {
            number.fetch_add(1, Relaxed);
            match path.ends_with("refused") {
                true => Err(DiskError::new(op, path, std::io::Error::other("refused"))),
                false => Ok(()),
            }
        }
    }

    impl Interceptor for Counts {
        fn before_write(&self, path: &Path) -> Result<()> {
            Self::count("write", &self.writes, path)
        }

        fn before_sync(&self, path: &Path) -> Result<()> {
            Self::count("sync", &self.syncs, path)
        }
    }

    /// Every way to change a file's bytes, or to make them durable, asks.
    fn change(file: &dyn DiskFile) -> [Result<()>; 5] {
        [
            file.write_at(b"one", 0),
            file.write_vectored_at(&[IoSlice::new(b"two")], 3),
            file.sync_data(),
            file.sync_all(),
            file.write_and_sync_at(&[IoSlice::new(b"three")], 6),
        ]
    }

    #[test]
    fn whoever_writes_or_syncs_is_asked() {
        let counts = Arc::<Counts>::default();
        let disk = Intercepted::new(MemoryDisk::new(), &counts);
        let file = disk.open(Path::new("a"), OpenOptions::CREATE);
        let file = file.expect("opens");
        for changed in change(&*file) {
            changed.expect("nobody refuses it");
        }
        let mut read = [0; 11];
        file.read_at(&mut read, 0).expect("reads");
        assert_eq!(&read, b"onetwothree");
        let of = |counts: &Counts| (counts.writes.load(Relaxed), counts.syncs.load(Relaxed));
        assert_eq!(of(&counts), (3, 3));

        let file = disk.open(Path::new("refused"), OpenOptions::CREATE);
        let file = file.expect("opens");
        for changed in change(&*file) {
            let error = changed.expect_err("it is refused");
            assert_eq!(error.kind, DiskErrorKind::Other);
        }
        assert_eq!(file.len().expect("a length"), 0);
        assert_eq!(of(&counts), (6, 5));
    }
}
