//! Reading a log file forwards, record by record, through a buffer that grows
//! to the largest record and no further.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::DiskFile;
use fulgurite_disk::mutation::{Mutation, planted};

use super::error::{Error, Result};
use super::record::{HEADER_BYTES, Head, PAYLOAD_BYTES_MAX, checksum_in_place};

const READ_AHEAD_BYTES: u64 = 1 << 20;

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
    /// Bytes still to be spent on checksums; see [`Window::valid_record_at`].
    budget: u64,
}

impl Window {
    pub(super) fn new(source: impl Source + 'static, path: &Path, salt: u64) -> Result<Self> {
        let len = source.end()?;
        // A sound log is judged once to its end; the rest is for a look-out
        // through damaged parts.
        let budget = len.saturating_mul(16).saturating_add(1 << 30);
        Ok(Self {
            source: Box::new(source),
            path: path.to_owned(),
            salt,
            len,
            start: 0,
            bytes: Vec::new(),
            budget,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
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
            let ahead = (end - position)
                .max(READ_AHEAD_BYTES)
                .min(self.len - position);
            self.bytes.resize(ahead as usize, 0);
            self.start = position;
            if let Err(error) = self.source.read(&mut self.bytes, position) {
                self.bytes.clear();
                return Err(error.into());
            }
        }
        let at = (position - self.start) as usize;
        Ok(self.bytes.get(at..at + count))
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
    ///
    /// # Errors
    /// Whoever wrote the payloads may have filled them with what looks like the
    /// heads of huge records. The checksums that a look-out through damaged
    /// bytes computes are therefore limited; where the limit is passed, damage
    /// is reported instead of a torn tail assumed.
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
        let Some(budget) = self.budget.checked_sub(count as u64) else {
            return Err(Error::Corrupt {
                file: self.path.clone(),
                position,
                what: "too many bytes behind the damage look like records to tell what was lost"
                    .to_owned(),
            });
        };
        self.budget = budget;
        let Some(bytes) = self.get(position, count)? else {
            return Ok(None);
        };
        let valid = bytes
            .get(4..)
            .is_some_and(|bytes| checksum_in_place(salt, position, bytes) == stored)
            || (planted(Mutation::TrustTornRecord) && head.kind != 0);
        Ok(valid.then_some(head))
    }

    /// The payload of the record at `position`, which was found valid.
    pub(super) fn payload_at(&mut self, position: u64, len: u32) -> Result<Option<&[u8]>> {
        self.get(position + HEADER_BYTES as u64, len as usize)
    }
}
