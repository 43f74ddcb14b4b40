//! Reading a log file forwards, record by record, through a buffer that grows
//! to the largest record and no further. What merely looks like the head of a
//! huge record is judged in pieces: it does not make the buffer grow. Where there
//! is much of that, its checksums come from those of stretches (`stretches.rs`), a
//! microsecond each: the time grows with the log's length and no faster, to four
//! seconds for 32 MiB in which every position looks like a huge record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::DiskFile;
use fulgurite_disk::mutation::{Mutation, planted};

use super::crc::Crc32c;
use super::error::Result;
use super::record::{EMPTY_RECORD_BYTES, HEADER_BYTES, Head, PAYLOAD_BYTES_MAX};
use super::record::{checksum_in_place, record_bytes, seed};
use super::stretches::Stretches;

const READ_AHEAD_BYTES: u64 = 1 << 20;
/// So much at first, and after a read that failed: it grows from there.
const READ_AHEAD_BYTES_MIN: u64 = 4 << 10;
/// Beside the length of a log, which is judged once to its end, so many bytes are
/// read for checksums before those of stretches are made.
const SPARE_BYTES: u64 = 64 << 20;
/// Records up to this size are read for their checksums always.
const SHORT_BYTES: u64 = 2 << 10;

/// Bytes that can be read by position: a file, or a log's laps around one.
pub(super) trait Source: Send + Sync {
    /// The position behind the last byte.
    fn end(&self) -> fulgurite_disk::Result<u64>;

    fn read(&self, buf: &mut [u8], position: u64) -> fulgurite_disk::Result<()>;
}

impl Source for Arc<dyn DiskFile> {
    fn end(&self) -> fulgurite_disk::Result<u64> {
        self.len()
    }

    fn read(&self, buf: &mut [u8], position: u64) -> fulgurite_disk::Result<()> {
        self.read_at(buf, position)
    }
}

pub(super) struct Window {
    source: Box<dyn Source>,
    path: PathBuf,
    salt: u64,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
    /// How much is read at least.
    ahead: u64,
    /// Bytes still to be read for checksums before `stretches` are made.
    budget: u64,
    stretches: Option<Stretches>,
}

impl Window {
    pub(super) fn new(source: impl Source + 'static, path: &Path, salt: u64) -> Result<Self> {
        let len = source.end()?;
        Ok(Self {
            source: Box::new(source),
            path: path.to_owned(),
            salt,
            len,
            start: 0,
            bytes: Vec::new(),
            ahead: READ_AHEAD_BYTES,
            budget: len.saturating_add(SPARE_BYTES),
            stretches: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from elsewhere from now on.
    pub(super) fn read_from(&mut self, source: impl Source + 'static) -> Result<()> {
        self.len = source.end()?;
        self.source = Box::new(source);
        self.bytes.clear();
        self.stretches = None;
        self.ahead = READ_AHEAD_BYTES_MIN;
        Ok(())
    }

    /// Judges by another salt from now on.
    pub(super) fn set_salt(&mut self, salt: u64) {
        self.salt = salt;
    }

    /// The bytes at `position`, or `None` where the file ends before.
    fn get(&mut self, position: u64, count: usize) -> Result<Option<&[u8]>> {
        let Some(end) = position
            .checked_add(count as u64)
            .filter(|end| *end <= self.len)
        else {
            return Ok(None);
        };
        if position < self.start || end > self.start + self.bytes.len() as u64 {
            let needed = end - position;
            let ahead = needed.max(self.ahead).min(self.len - position);
            let mut read = self.read(position, ahead);
            if read.is_ok() {
                self.ahead = (2 * self.ahead).min(READ_AHEAD_BYTES);
            } else if ahead > needed {
                // A sector that cannot be read costs no record beside it.
                self.ahead = READ_AHEAD_BYTES_MIN;
                read = self.read(position, needed);
            }
            read?;
        }
        let at = (position - self.start) as usize;
        Ok(self.bytes.get(at..at + count))
    }

    fn read(&mut self, position: u64, count: u64) -> Result<()> {
        self.bytes.resize(count as usize, 0);
        self.start = position;
        let read = self.source.read(&mut self.bytes, position);
        Ok(read.inspect_err(|_| self.bytes.clear())?)
    }

    /// The first aligned position from `position` on where a record's kind would
    /// not be zero, with the head that would be there. Zeros are most of what lies behind a log's last record, so
    /// this is where a look-out spends its time.
    pub(super) fn next_head(&mut self, mut position: u64) -> Result<Option<(u64, Head)>> {
        loop {
            let kind_at = HEADER_BYTES - 1;
            if self.get(position, HEADER_BYTES)?.is_none() {
                return Ok(None);
            }
            let at = (position - self.start) as usize + kind_at;
            let kinds = self.bytes.get(at..).unwrap_or_default().iter().step_by(8);
            let seen = kinds.len() as u64;
            if let Some(index) = kinds.copied().position(|kind| kind != 0) {
                position += index as u64 * 8;
                return Ok(self.head_at(position)?.map(|(_, head)| (position, head)));
            }
            position += seen * 8;
        }
    }

    /// The head of the record that would be at `position`, with the checksum it
    /// carries; nothing is verified.
    pub(super) fn head_at(&mut self, position: u64) -> Result<Option<(u32, Head)>> {
        let Some(bytes) = self.get(position, HEADER_BYTES)? else {
            return Ok(None);
        };
        Ok(bytes.first_chunk().map(Head::decode))
    }

    /// The record at `position`, if a valid one is there.
    pub(super) fn valid_record_at(&mut self, position: u64) -> Result<Option<Head>> {
        let Some((stored, head)) = self.head_at(position)? else {
            return Ok(None);
        };
        let len = head.len as usize;
        if len > PAYLOAD_BYTES_MAX {
            return Ok(None);
        }
        let salt = self.salt;
        let count = HEADER_BYTES + len;
        if position
            .checked_add(count as u64)
            .is_none_or(|end| end > self.len)
        {
            return Ok(None);
        }
        let checksum = if !self.spend(count as u64) {
            Some(self.checksum_of_stretches(position, count as u64)?)
        } else if count as u64 <= READ_AHEAD_BYTES {
            let bytes = self.get(position, count)?.and_then(|bytes| bytes.get(4..));
            bytes.map(|bytes| checksum_in_place(salt, position, bytes))
        } else {
            self.checksum_in_pieces(position, count as u64)?
        };
        let valid =
            checksum == Some(stored) || (planted(Mutation::TrustTornRecord) && head.kind != 0);
        Ok(valid.then_some(head))
    }

    /// Whether a valid record that begins at or behind `from`, an aligned position before
    /// `end`, ends at `end`. Records do not say where the one before them began, so this
    /// looks at all positions where one as long as that could.
    pub(super) fn ends_a_record(&mut self, from: u64, end: u64) -> Result<bool> {
        let longest = record_bytes(PAYLOAD_BYTES_MAX);
        let from = from.max(end.saturating_sub(longest));
        let mut position = end.saturating_sub(EMPTY_RECORD_BYTES);
        while position >= from {
            let head_end = position + HEADER_BYTES as u64;
            if position < self.start || head_end > self.start + self.bytes.len() as u64 {
                // The way goes back, and so does what is read for it.
                let start = head_end.saturating_sub(READ_AHEAD_BYTES).max(from);
                self.get(start, (head_end - start) as usize)?;
            }
            let head = self.head_at(position)?.map(|(_, head)| head);
            let fits = head.is_some_and(|head| position + head.total_bytes() == end);
            if fits && self.valid_record_at(position)?.is_some() {
                return Ok(true);
            }
            let Some(before) = position.checked_sub(8) else {
                break;
            };
            position = before;
        }
        Ok(false)
    }

    /// Whether so many bytes may be read for a checksum.
    fn spend(&mut self, count: u64) -> bool {
        let left = self.budget.checked_sub(count);
        self.budget = left.unwrap_or(self.budget);
        left.is_some() || count <= SHORT_BYTES
    }

    /// The checksum of a record of `count` bytes, which the file has, of which the
    /// first and the last few are read.
    fn checksum_of_stretches(&mut self, position: u64, count: u64) -> Result<u32> {
        let stretches = match self.stretches.take() {
            Some(stretches) if stretches.start() <= position => stretches,
            _ => Stretches::of(&*self.source, position, self.len)?,
        };
        let (from, end) = (position + 4, position + count);
        let (a, b) = stretches.borders(from, end).unwrap_or((end, end));
        let before = self.get(from, (a - from) as usize)?.unwrap_or_default();
        let sum = stretches.update(Crc32c::new().update(before), a, b);
        // Past the buffer, which goes on with the positions behind this one.
        let mut behind = vec![0; (end - b) as usize];
        self.source.read(&mut behind, b)?;
        self.stretches = Some(stretches);
        Ok(sum.update(&behind).finish() ^ seed(self.salt, position))
    }

    /// The checksum of a record of `count` bytes; `None` where the file ends
    /// before it does.
    fn checksum_in_pieces(&mut self, position: u64, count: u64) -> Result<Option<u32>> {
        let mut crc = Crc32c::new();
        let mut at = 4;
        while at < count {
            let piece = (count - at).min(READ_AHEAD_BYTES);
            let Some(bytes) = self.get(position + at, piece as usize)? else {
                return Ok(None);
            };
            crc = crc.update(bytes);
            at += piece;
        }
        Ok(Some(crc.finish() ^ seed(self.salt, position)))
    }

    /// The payload of the record at `position`, which was found valid.
    pub(super) fn payload_at(&mut self, position: u64, len: u32) -> Result<Option<&[u8]>> {
        self.get(position + HEADER_BYTES as u64, len as usize)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A source in memory.
    pub(in super::super) struct Bytes(pub(in super::super) Vec<u8>);

    impl Source for Bytes {
        fn end(&self) -> fulgurite_disk::Result<u64> {
            Ok(self.0.len() as u64)
        }

        fn read(&self, buf: &mut [u8], position: u64) -> fulgurite_disk::Result<()> {
            let from = position as usize;
            buf.copy_from_slice(&self.0[from..from + buf.len()]);
            Ok(())
        }
    }

    /// Payloads may look like the heads of huge records: recovery of a log of
    /// 32 MiB with a cache of 64 MiB held half of the log in one buffer.
    #[test]
    fn what_looks_like_a_huge_record_does_not_make_the_buffer_grow() {
        let mut bytes = vec![0; 12 << 20];
        bytes[4..8].copy_from_slice(&(10_u32 << 20).to_le_bytes());
        let mut window = Window::new(Bytes(bytes), Path::new("log"), 7).expect("opens");
        assert!(window.valid_record_at(0).expect("reads").is_none());
        assert!(window.bytes.capacity() as u64 <= READ_AHEAD_BYTES);
    }
}
