//! The head of a generation's file: 8192 bytes, holding the same 64 bytes twice,
//! at 0 and at 4096. Records follow from byte 8192 on.
//!
//! ```text
//!  0  8 bytes   magic "FulgWAL\n"
//!  8  u32       format version (2; 1 has no leases)
//! 12  u32       reserved, zero
//! 16  16 bytes  the database's UUID
//! 32  u64       generation number
//! 40  u64       salt
//! 48  u64       durable: every sequence number up to this was durable when this was written
//! 56  u32       reserved, zero
//! 60  u32       CRC-32C of bytes 0 .. 60
//! ```
//!
//! The two copies are written and synced one after the other, so a crash leaves
//! at least one that is whole; where both are, the higher generation counts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fulgurite_disk::DiskFile;

use super::error::{Error, Result};

/// The format this program writes, and the newest it reads.
pub(super) const VERSION: u32 = 2;
/// The highest number of a record or a generation that is believed: no log comes to it, and
/// there is room to count on.
pub(super) const NUMBER_MAX: u64 = i64::MAX as u64;
/// Where the records begin.
pub(super) const RECORDS_START: u64 = 8192;
const COPIES: [u64; 2] = [0, 4096];
const MAGIC: &[u8; 8] = b"FulgWAL\n";
const BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) database: [u8; 16],
    pub(super) number: u64,
    pub(super) salt: u64,
    pub(super) durable: u64,
}

/// The path of one of the two files.
pub(super) fn path_of(base: &Path, slot: usize) -> PathBuf {
    with_suffix(base, if slot == 0 { "-wal0" } else { "-wal1" })
}

/// Where a file is made before it gets its name.
pub(super) fn new_path(base: &Path) -> PathBuf {
    with_suffix(base, "-wal-new")
}

fn with_suffix(base: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(base.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

impl Header {
    fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database);
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.salt.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.durable.to_le_bytes());
        let crc = crc_fast::crc32_iscsi(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are no header; the version where that is all that
    /// can be understood.
    fn decode(bytes: &[u8; BYTES]) -> Option<std::result::Result<Self, u32>> {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if &bytes[0..8] != MAGIC || u32_at(60) != crc_fast::crc32_iscsi(&bytes[..60]) {
            return None;
        }
        if !(1..=VERSION).contains(&u32_at(8)) {
            return Some(Err(u32_at(8)));
        }
        if u64_at(32) > NUMBER_MAX {
            return None;
        }
        let mut database = [0; 16];
        database.copy_from_slice(&bytes[16..32]);
        Some(Ok(Self {
            database,
            number: u64_at(32),
            salt: u64_at(40),
            durable: u64_at(48),
        }))
    }

    /// Writes both copies, with `sync` after each, so that one is always whole.
    pub(super) fn write(
        &self,
        file: &dyn DiskFile,
        sync: &dyn Fn(&dyn DiskFile) -> Result<()>,
    ) -> Result<()> {
        for position in COPIES {
            file.write_at(&self.encode(), position)?;
            sync(file)?;
        }
        Ok(())
    }

    /// Reads the header of the log file at `path`. A file without one is
    /// damaged: it got its name only after both copies were synced.
    pub(super) fn read(file: &dyn DiskFile, path: &Path, database: &[u8; 16]) -> Result<Self> {
        let len = file.len()?;
        let mut newest: Option<Self> = None;
        let mut newer_version = None;
        for position in COPIES {
            let mut bytes = [0; BYTES];
            if len < position + BYTES as u64 {
                continue;
            }
            file.read_at(&mut bytes, position)?;
            match Self::decode(&bytes) {
                Some(Ok(header)) if newest.is_none_or(|best| best.number < header.number) => {
                    newest = Some(header)
                }
                Some(Err(version)) => newer_version = Some(version),
                _ => {}
            }
        }
        if let Some(version) = newer_version {
            return Err(Error::NewerFormat {
                file: path.to_owned(),
                version,
            });
        }
        match newest {
            Some(header) if header.database != *database => Err(Error::Foreign {
                file: path.to_owned(),
            }),
            Some(header) => Ok(header),
            None => Err(Error::Corrupt {
                file: path.to_owned(),
                position: 0,
                what: "neither copy of the file's header can be read".to_owned(),
            }),
        }
    }
}
