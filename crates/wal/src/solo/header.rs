//! The head of a log's file: 8192 bytes, holding the same 128 bytes twice, at 0
//! and at 4096. The labels of a mirror's sides lie in it too (`label.rs`).
//!
//! ```text
//!   0  8 bytes   magic "FulgLOG\n"
//!   8  u32       format version (1)
//!  12  u8        device: 0 file, 1 direct, 2 mapped, 3 io_uring, 4 io_uring polled
//!  13  3 bytes   reserved, zero
//!  16  u64       update number, one higher with each change of the head
//!  24  u64       salt
//!  32  u64       capacity in bytes, a multiple of 4096
//!  40  u64       first: the log position where the log begins
//!  48  u64       sequence number of the record at first
//!  56  u64       life that wrote the record at first
//!  64  u64       the newest life
//!  72  u64       the log position where that began; all before it was durable
//!  80  u64       bytes of room made ready; a file with less was cut short
//!  88  36 bytes  reserved, zero
//! 124  u32       CRC-32C of bytes 0 .. 124
//! ```
//!
//! The copies are written and synced one after the other, so one is whole at
//! every moment; the higher update number counts.

use std::path::Path;

use fulgurite_disk::{DiskError, DiskFile};

use super::error::{Error, Result};

pub(super) const VERSION: u32 = 1;
pub(super) const BYTES: usize = 128;
pub(super) const COPIES: [u64; 2] = [0, 4096];
const MAGIC: &[u8; 8] = b"FulgLOG\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) device: u8,
    pub(super) update: u64,
    pub(super) salt: u64,
    pub(super) capacity: u64,
    pub(super) first: u64,
    pub(super) first_seq: u64,
    pub(super) first_life: u64,
    pub(super) life: u64,
    pub(super) life_start: u64,
    pub(super) prepared: u64,
}

impl Header {
    /// The salt of a life's records.
    pub(super) fn salt_of(&self, life: u64) -> u64 {
        self.salt
            .wrapping_add(life.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12] = self.device;
        let fields = [
            self.update,
            self.salt,
            self.capacity,
            self.first,
            self.first_seq,
            self.first_life,
            self.life,
            self.life_start,
            self.prepared,
        ];
        for (chunk, field) in bytes[16..88].chunks_exact_mut(8).zip(fields) {
            chunk.copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc_fast::crc32_iscsi(&bytes[..124]);
        bytes[124..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are no head; the version where that is all that can
    /// be understood.
    fn decode(bytes: &[u8; BYTES]) -> Option<std::result::Result<Self, u32>> {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if &bytes[0..8] != MAGIC || u32_at(124) != crc_fast::crc32_iscsi(&bytes[..124]) {
            return None;
        }
        if u32_at(8) != VERSION {
            return Some(Err(u32_at(8)));
        }
        let header = Self {
            device: bytes[12],
            update: u64_at(16),
            salt: u64_at(24),
            capacity: u64_at(32),
            first: u64_at(40),
            first_seq: u64_at(48),
            first_life: u64_at(56),
            life: u64_at(64),
            life_start: u64_at(72),
            prepared: u64_at(80),
        };
        header.is_sound().then_some(Ok(header))
    }

    /// Whether the fields fit together, so that arithmetic on them is safe.
    fn is_sound(&self) -> bool {
        let positions = [self.first, self.life_start];
        self.capacity >= 4096
            && self.capacity.is_multiple_of(4096)
            && self.capacity <= 1 << 50
            && positions
                .iter()
                .all(|position| *position < 1 << 62 && position.is_multiple_of(8))
            && self.prepared <= self.capacity
            && self.update < 1 << 62
            && self.first_life <= self.life
            && self.life < 1 << 62
            && (1..1 << 62).contains(&self.first_seq)
            && self.life_start <= self.first.saturating_add(self.capacity)
    }

    /// Whether its numbers may grow for as long as any log lives, and it stays sound.
    pub(super) fn can_go_on(&self) -> bool {
        let growing = [
            self.update,
            self.first,
            self.first_seq,
            self.life,
            self.life_start,
        ];
        growing.iter().all(|number| *number < 1 << 61)
    }

    /// Writes and syncs both copies, one after the other.
    pub(super) fn write<E: From<DiskError>>(
        &self,
        file: &dyn DiskFile,
        sync: impl Fn() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for position in COPIES {
            file.write_at(&self.encode(), position)?;
            sync()?;
        }
        Ok(())
    }

    /// Reads the head of the log at `path`.
    pub(super) fn read(file: &dyn DiskFile, path: &Path) -> Result<Self> {
        let len = file.len()?;
        let mut newest: Option<Self> = None;
        let mut has_magic = false;
        let mut unread = None;
        for position in COPIES {
            let mut bytes = [0; BYTES];
            let there = len.saturating_sub(position).min(BYTES as u64) as usize;
            if let Err(error) = file.read_at(&mut bytes[..there], position) {
                // There are two so that one may be lost, be it to a bad sector.
                unread = Some(error);
                continue;
            }
            has_magic |= bytes.starts_with(MAGIC);
            match Self::decode(&bytes) {
                Some(Ok(header)) if newest.is_none_or(|best| best.update < header.update) => {
                    newest = Some(header);
                }
                Some(Err(version)) => {
                    return Err(Error::NewerFormat {
                        file: path.to_owned(),
                        version,
                    });
                }
                _ => {}
            }
        }
        newest.ok_or_else(|| {
            let file = path.to_owned();
            if let Some(error) = unread {
                error.into()
            } else if has_magic {
                Error::Corrupt {
                    file,
                    position: 0,
                    what: "neither copy of the file's head can be read".to_owned(),
                }
            } else {
                Error::NotALog { file }
            }
        })
    }
}
