//! Writing much that nobody waits for beside small writes that somebody waits for.
//!
//! A device takes what it is asked for more or less in order: behind megabytes that were
//! handed to it at once, a log's sync of some hundred bytes takes as long as all of them.
//! So who writes pages, or fills a file with zeros, asks for pieces to be written back as
//! it goes, and after each waits for the one two before it: the device always has some to
//! work on, and never more than three.
//!
//! Measured beside syncs of 300 bytes (an ext4 file system, a sync alone 0.1 ms): pieces
//! of 64 KiB asked for as fast as memory takes them raise the p99 of a sync to 76 ms;
//! waited for, to 0.28 ms at 700 MB a second, pieces of 256 KiB to 0.37 ms at 1.5 GB.

use crate::{DiskFile, Result};

/// Bytes of a piece. For fewer, the sync that follows costs less than the calls.
const PIECE_BYTES: u64 = 64 << 10;
/// Pieces that were asked for and not waited for.
const AHEAD: usize = 2;

/// What was written to one file, and how much of it is on its way.
#[derive(Debug, Default)]
pub struct Pace {
    /// Bytes written that nobody asked for yet, and the stretch of the file they lie in.
    bytes: u64,
    stretch: Option<Stretch>,
    /// The stretches that were asked for last, the oldest where `next` is.
    under_way: [Option<Stretch>; AHEAD],
    next: usize,
}

/// From an offset to another one.
type Stretch = (u64, u64);

/// A piece to ask for, and an earlier one to wait for.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a piece that nobody asks for waits for a sync"]
pub struct Due {
    start: Stretch,
    finish: Option<Stretch>,
}

impl Pace {
    /// The most bytes to write with one call.
    pub const CALL_BYTES: usize = PIECE_BYTES as usize;

    /// Counts bytes that were written. Once they have become a piece, returns what to do
    /// about it, without a lock that others need.
    pub fn wrote(&mut self, offset: u64, len: u64) -> Option<Due> {
        let end = offset + len;
        let (from, to) = self.stretch.unwrap_or((offset, end));
        self.bytes += len;
        self.stretch = Some((from.min(offset), to.max(end)));
        if self.bytes < PIECE_BYTES {
            return None;
        }
        self.bytes = 0;
        let start = self.stretch.take()?;
        let finish = self.under_way[self.next].replace(start);
        self.next = (self.next + 1) % AHEAD;
        Some(Due { start, finish })
    }
}

impl Due {
    /// Asks for the piece, in one call however scattered its pages are: only what is dirty
    /// in between is written.
    pub fn ask(&self, file: &dyn DiskFile) {
        let (from, to) = self.start;
        file.start_writeback(from, to - from);
    }

    /// Waits for an earlier piece, if there are enough.
    ///
    /// # Errors
    /// As [`DiskFile::finish_writeback`]: to be taken as a failed sync.
    pub fn wait(&self, file: &dyn DiskFile) -> Result<()> {
        match self.finish {
            Some((from, to)) => file.finish_writeback(from, to - from),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_asked_for_once_it_is_whole_and_waited_for_some_pieces_later() {
        let mut pace = Pace::default();
        let half = PIECE_BYTES / 2;
        assert_eq!(pace.wrote(half, 200), None);
        assert_eq!(pace.wrote(0, half - 200 - 1), None);
        let first = pace.wrote(3 * half, half + 1).expect("is whole");
        assert_eq!((first.start, first.finish), ((0, 4 * half + 1), None));
        for n in 1..AHEAD as u64 {
            let next = pace.wrote(n, PIECE_BYTES).expect("is whole");
            assert_eq!((next.start, next.finish), ((n, n + PIECE_BYTES), None));
        }
        let next = pace.wrote(7, PIECE_BYTES).expect("is whole");
        assert_eq!(next.finish, Some(first.start));
    }
}
