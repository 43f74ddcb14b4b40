//! A file that may not be written to, and what is written over it.
//!
//! A database that is opened for reading may have a log to replay, of more pages than the
//! cache holds. They go to free extents as ever, but into a temporary file, at the same
//! offsets: what was written is read from there, everything else from the file itself.
//! The temporary file is made for the first write; it has no name and is gone with the
//! last handle. Where the system keeps holes in files it is as large as what was written.
//!
//! Nothing of it is ever durable, and nobody else sees it.

use fulgurite_disk::{Disk, DiskError, DiskFile, Result, forward};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// See the module's header.
pub(crate) struct Overlay {
    file: Arc<dyn DiskFile>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// What was written over it.
    over: OnceLock<Arc<dyn DiskFile>>,
    written: RwLock<Stretches>,
}

/// Stretches of bytes that do not touch: the end of each, by where it begins.
#[derive(Default)]
struct Stretches(BTreeMap<u64, u64>);

impl Stretches {
    /// Adds [from, to), joined to what it touches.
    fn add(&mut self, mut from: u64, mut to: u64) {
        while let Some((&begin, &end)) = self.0.range(..=to).next_back()
            && end >= from
        {
            self.0.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.0.insert(from, to);
    }

    /// Whether the byte at `at` is in one, and where that ends to be so before `to`.
    fn piece(&self, at: u64, to: u64) -> (bool, u64) {
        if let Some((_, &end)) = self.0.range(..=at).next_back()
            && end > at
        {
            return (true, end.min(to));
        }
        let next = self.0.range(at..to).next();
        (false, next.map_or(to, |(&begin, _)| begin))
    }

    fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, &end)| end)
    }
}

impl Overlay {
    /// Over the file at `path` of a disk.
    pub(crate) fn new(disk: Arc<dyn Disk>, path: &Path, file: Arc<dyn DiskFile>) -> Self {
        Self {
            file,
            disk,
            path: path.to_path_buf(),
            over: OnceLock::new(),
            written: RwLock::default(),
        }
    }

    fn over(&self) -> Result<&Arc<dyn DiskFile>> {
        if let Some(over) = self.over.get() {
            return Ok(over);
        }
        let made = self.disk.temp_file(&self.path)?;
        Ok(self.over.get_or_init(|| made))
    }
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl DiskFile for Overlay {
    forward!(file: identity, lock_exclusive, lock_shared, unlock);

    fn len(&self) -> Result<u64> {
        Ok(self.file.len()?.max(self.written.read().end()))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let (mut rest, mut at) = (buf, offset);
        while !rest.is_empty() {
            let to = at + rest.len() as u64;
            let (is_over, end) = self.written.read().piece(at, to);
            let (piece, others) = rest.split_at_mut((end - at) as usize);
            match self.over.get().filter(|_| is_over) {
                Some(over) => over.read_at(piece, at)?,
                None => self.file.read_at(piece, at)?,
            }
            (rest, at) = (others, end);
        }
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        self.over()?.write_at(buf, offset)?;
        let end = offset + buf.len() as u64;
        self.written.write().add(offset, end);
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let mut at = offset;
        for buf in bufs {
            self.write_at(buf, at)?;
            at += buf.len() as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        Ok(())
    }

    /// Nothing waits for it.
    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn allocate(&self, _offset: u64, _len: u64) -> Result<()> {
        Err(self.refusal("allocate room in"))
    }

    fn truncate(&self, _len: u64) -> Result<()> {
        Err(self.refusal("set the length of"))
    }
}

impl Overlay {
    /// What only who writes the file itself asks for.
    fn refusal(&self, op: &'static str) -> DiskError {
        DiskError::new(
            op,
            &self.path,
            std::io::ErrorKind::ReadOnlyFilesystem.into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::{MemoryDisk, OpenOptions};

    /// Overlapping writes here and there, beside a plain file that gets the same.
    #[test]
    fn it_reads_as_a_file_that_was_written_to() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let make = |name: &str| {
            let file = disk.open(Path::new(name), OpenOptions::CREATE);
            let file = file.expect("is made");
            file.write_at(&[1; 1000], 0).expect("writes");
            file
        };
        let (below, beside) = (make("below"), make("beside"));
        let overlay = Overlay::new(disk.clone(), Path::new("below"), below.clone());
        let mut state = 7_u64;
        let mut below_limit = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        for value in 2..200 {
            let (offset, length) = (below_limit(990), 1 + below_limit(40));
            let bytes = vec![value; length as usize];
            for file in [&overlay as &dyn DiskFile, &*beside] {
                file.write_at(&bytes, offset).expect("writes");
            }
            let length = beside.len().expect("its length");
            assert_eq!(overlay.len().expect("its length"), length);
            let mut found = [vec![0; length as usize], vec![0; length as usize]];
            overlay.read_at(&mut found[0], 0).expect("reads");
            beside.read_at(&mut found[1], 0).expect("reads");
            assert!(found[0] == found[1], "after write {value}");
        }
        let mut untouched = [0; 1000];
        below.read_at(&mut untouched, 0).expect("reads");
        assert_eq!(untouched, [1; 1000]);
        assert_eq!(below.len().expect("its length"), 1000);
        overlay.read_at(&mut [0; 10], 2000).expect_err("the end");
    }
}
