//! What a side of a mirror says of itself, twice, in the spare room of the log's head, at
//! bytes 2048 and 6144. The newer copy that can be read counts.
//!
//! ```text
//!  0  8 bytes   magic "FulgSIDE"
//!  8  u64       epoch
//! 16  u64       the log's salt
//! 24  u8        members: bit 0 the first path, bit 1 the second
//! 25  35 bytes  reserved, zero
//! 60  u32       CRC-32C of bytes 0 .. 60
//! ```

use std::path::Path;

use fulgurite_disk::{DiskFile, Result as DiskResult};

use super::error::{Error, Result};

const MAGIC: &[u8; 8] = b"FulgSIDE";
const BYTES: usize = 64;
const COPIES: [u64; 2] = [2048, 6144];
/// Both sides are members.
pub(super) const BOTH: u8 = 3;
/// Of a log in the making.
pub(super) const FIRST_EPOCH: u64 = 1;
/// More than any log's sides come to.
const EPOCHS: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) epoch: u64,
    pub(super) salt: u64,
    pub(super) members: u8,
}

impl Label {
    fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.salt.to_le_bytes());
        bytes[24] = self.members;
        let crc = crc_fast::crc32_iscsi(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let u64_at = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(field)
        };
        let crc = crc_fast::crc32_iscsi(&bytes[..60]).to_le_bytes();
        let sound = &bytes[..8] == MAGIC && bytes[60..] == crc && u64_at(8) < EPOCHS;
        sound.then(|| Self {
            epoch: u64_at(8),
            salt: u64_at(16),
            members: bytes[24],
        })
    }

    /// Writes and syncs both copies, one after the other.
    pub(super) fn write(self, file: &dyn DiskFile) -> DiskResult<()> {
        for position in COPIES {
            file.write_at(&self.encode(), position)?;
            file.sync_data()?;
        }
        Ok(())
    }

    /// The label in a file; `None` where there never was one.
    pub(super) fn find(file: &dyn DiskFile, path: &Path) -> Result<Option<Self>> {
        let mut newest: Option<Self> = None;
        let mut has_magic = false;
        let mut was_read = false;
        let mut unread = None;
        let len = file.len()?;
        for position in COPIES {
            let mut bytes = [0; BYTES];
            if len >= position + BYTES as u64
                && let Err(error) = file.read_at(&mut bytes, position)
            {
                unread = Some(error);
                continue;
            }
            was_read = true;
            has_magic |= bytes.starts_with(MAGIC);
            newest = newest.max_by_epoch(Self::decode(&bytes));
        }
        if newest.is_some() {
            return Ok(newest);
        }
        if has_magic {
            return Err(Error::Corrupt {
                file: path.to_owned(),
                position: COPIES[0],
                what: "neither copy of the label of a mirror's side can be read".to_owned(),
            });
        }
        // A side has both, so that one tells where there are none.
        if let Some(error) = unread.filter(|_| !was_read) {
            return Err(error.into());
        }
        Ok(None)
    }

    pub(super) fn read(file: &dyn DiskFile, path: &Path) -> Result<Self> {
        Self::find(file, path)?.ok_or_else(|| Error::NotMirrored {
            file: path.to_owned(),
        })
    }

    pub(super) fn has(self, side: usize) -> bool {
        self.members & 1 << side != 0
    }
}

/// The newer of two labels.
pub(super) trait MaxByEpoch {
    fn max_by_epoch(self, other: Self) -> Self;
}

impl MaxByEpoch for Option<Label> {
    fn max_by_epoch(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(if b.epoch > a.epoch { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// The label of a side that is being made.
pub(super) fn first_label(salt: u64) -> Label {
    Label {
        epoch: FIRST_EPOCH,
        salt,
        members: BOTH,
    }
}

/// Refuses a side as a log of one file: what was written to it alone, the other side
/// would not know to be missing there.
pub(super) fn refuse_side(file: &dyn DiskFile, path: &Path) -> Result<()> {
    match Label::find(file, path)? {
        None => Ok(()),
        Some(_) => Err(Error::Mirrored {
            file: path.to_owned(),
        }),
    }
}
