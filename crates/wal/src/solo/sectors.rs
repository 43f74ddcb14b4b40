//! A side of a mirror that lost sectors, read together with the other one.

use std::ops::Range;
use std::sync::Arc;

use fulgurite_disk::{DiskFile, Result, forward};

/// What a disk loses at least.
pub(super) const SECTOR_BYTES: usize = 512;

/// The parts of a range that lie in one sector each, and on one side of a file's end.
pub(super) fn pieces(range: Range<u64>, len: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let start = at;
        let sector_end = (start + 1).next_multiple_of(SECTOR_BYTES as u64);
        let end = sector_end.min(range.end);
        at = if (start + 1..end).contains(&len) {
            len
        } else {
            end
        };
        (start < range.end).then_some(start..at)
    })
}

/// One side, and for the sectors that cannot be read there, be it that the file is cut
/// short, the other. What is read so may be of two sides: only what a checksum is about
/// is to be believed, as of any file. What is written goes to the one side.
#[derive(Debug)]
pub(super) struct WithSectorsOf {
    own: Arc<dyn DiskFile>,
    other: Arc<dyn DiskFile>,
}

impl WithSectorsOf {
    /// `own`, with the sectors of `other` that it lacks.
    pub(super) fn file(other: &Arc<dyn DiskFile>, own: &Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let [other, own] = [other, own].map(Arc::clone);
        Arc::new(Self { own, other })
    }
}

impl DiskFile for WithSectorsOf {
    forward!(own: len, identity, write_at, write_vectored_at, sync_data, sync_all, allocate);
    forward!(own: start_writeback, truncate, lock_exclusive, lock_shared, unlock);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let whole = self.own.read_at(buf, offset);
        if whole.is_ok() {
            return whole;
        }
        let end = offset + buf.len() as u64;
        for piece in pieces(offset..end, self.own.len()?) {
            let bytes = &mut buf[(piece.start - offset) as usize..(piece.end - offset) as usize];
            let read = self.own.read_at(bytes, piece.start);
            read.or_else(|error| self.other.read_at(bytes, piece.start).map_err(|_| error))?;
        }
        Ok(())
    }
}
