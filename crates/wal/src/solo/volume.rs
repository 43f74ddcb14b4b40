//! The laps of a log around its file: log position `p` lies at byte
//! `START + p mod capacity`.

use std::io::IoSlice;
use std::sync::Arc;

use fulgurite_disk::{DiskFile, Result};

use super::window::Source;

/// Where the records begin in the file.
pub(super) const START: u64 = super::twin_header::RECORDS_START;
/// What a disk writes as one: small records do not cross its border.
pub(super) const BLOCK: u64 = 4096;
/// Larger records may cross a block border.
pub(super) const UNCROSSED_BYTES_MAX: u64 = 512;

#[derive(Debug, Clone)]
pub(super) struct Volume {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) capacity: u64,
}

impl Volume {
    /// Where a position lies in the file.
    pub(super) fn offset(&self, lsn: u64) -> u64 {
        START + lsn % self.capacity
    }

    /// How many bytes from `lsn` on lie in one piece.
    fn piece(&self, lsn: u64) -> u64 {
        self.capacity - lsn % self.capacity
    }

    /// Writes `parts` from `lsn` on, a lap at most; with `sync`, durably.
    pub(super) fn write(&self, lsn: u64, parts: &[&[u8]], sync: bool) -> Result<()> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let piece = self.piece(lsn);
        if total as u64 <= piece {
            return self.write_piece(lsn, parts, sync);
        }
        let mut room = piece as usize;
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for part in parts {
            let (fits, rest) = part.split_at(part.len().min(room));
            room -= fits.len();
            before.push(fits);
            behind.push(rest);
        }
        self.write_piece(lsn, &before, false)?;
        self.write_piece(lsn + piece, &behind, sync)
    }

    fn write_piece(&self, lsn: u64, parts: &[&[u8]], sync: bool) -> Result<()> {
        let offset = self.offset(lsn);
        let filled = parts.iter().filter(|part| !part.is_empty());
        let mut slices = [IoSlice::new(&[]); 4];
        let mut count = 0;
        for part in filled.clone().take(slices.len()) {
            slices[count] = IoSlice::new(part);
            count += 1;
        }
        let more: Vec<IoSlice<'_>>;
        let slices = if filled.clone().nth(slices.len()).is_some() {
            more = filled.map(|part| IoSlice::new(part)).collect();
            &more[..]
        } else {
            &slices[..count]
        };
        if sync {
            self.file.write_and_sync_at(slices, offset)
        } else if let [slice] = slices {
            self.file.write_at(slice, offset)
        } else {
            self.file.write_vectored_at(slices, offset)
        }
    }

    /// Whether a file with so much room for records may hold more than one lap. Where
    /// its last block was left before its end, it may be shorter than a lap by that.
    pub(super) fn is_lapped(&self, room: u64) -> bool {
        room + BLOCK > self.capacity
    }

    /// Fills `buf` from `lsn` on. What a file of a whole lap lacks reads as zeros.
    pub(super) fn read(&self, buf: &mut [u8], lsn: u64) -> Result<()> {
        let piece = self.piece(lsn);
        let (mut before, behind) = buf.split_at_mut(buf.len().min(piece as usize));
        let offset = self.offset(lsn);
        if self.is_lapped(lsn % self.capacity + before.len() as u64) {
            let len = self.file.len()?;
            if self.is_lapped(len.saturating_sub(START)) {
                let there = len.saturating_sub(offset).min(before.len() as u64);
                let (written, lacking) = before.split_at_mut(there as usize);
                lacking.fill(0);
                before = written;
            }
        }
        self.file.read_at(before, offset)?;
        if behind.is_empty() {
            return Ok(());
        }
        self.file.read_at(behind, START)
    }
}

/// A volume, read up to a position.
pub(super) struct Laps {
    pub(super) volume: Volume,
    pub(super) end: u64,
}

impl Source for Laps {
    fn end(&self) -> Result<u64> {
        Ok(self.end)
    }

    fn read(&self, buf: &mut [u8], position: u64) -> Result<()> {
        self.volume.read(buf, position)
    }
}
