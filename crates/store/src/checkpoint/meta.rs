//! The meta slots: where a database begins.
//!
//! ```text
//! 0    magic "Fulgurit"
//! 8    format version u32 | page size u32
//! 16   database id, 16 bytes
//! 32   counter u64            writes of the meta so far; the higher one wins
//! 40   checkpoint u64         the sequence number that this state is of
//! 48   end u64                end of the file's used part, in 64-byte units
//! 56   next tree u32 | flags u32: 1 nothing was synced when this was
//!      written, 2 the file is a copy in the making
//! 64   catalog: extent u64 | checksum u32 | length in bytes u32
//! 80   free map: extent u64 | checksum u32 | length in bytes u32
//! 96   zeros, but for the mark in slot A (`mark.rs`)
//! 4092 CRC32C u32 of the bytes before, the mark taken for zeros
//! ```
//! Slot A lies at byte 0, slot B at 4096, data begins at 8192. A checkpoint
//! writes A, syncs, writes the same without the mark to B, syncs. So one whole slot
//! is always there, and after a completed checkpoint either one may rot.

use super::mark;
use crate::codec::{self, ExtentRef};
use crate::error::{Error, ErrorKind, Result};
use crate::node;

/// The format version this code writes. Version 1 had units of 512 bytes, version 2 no
/// dictionaries, version 3 no long keys, version 4 no starts of
/// large values, version 5 no trees emptied at once.
pub(crate) const VERSION: u32 = 6;
/// The oldest version it reads. The next checkpoint makes it the newest.
const OLDEST: u32 = 3;
/// The highest number of a commit or of a meta write that is believed: nobody counts so
/// far, and there is room to count on.
const NUMBER_MAX: u64 = i64::MAX as u64;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 4096;
/// The first unit of data.
pub(crate) const FIRST_UNIT: u64 = (2 * SLOT / codec::UNIT) as u64;

/// A flag: nothing was synced when this was written.
const UNSYNCED: u32 = 1;
/// A flag: the file is being made under a passing name.
const MAKING: u32 = 2;
const MAGIC: [u8; 8] = *b"Fulgurit";

/// A stretch of bytes outside any tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) extent: ExtentRef,
    pub(crate) checksum: u32,
    pub(crate) length: u32,
}

/// What a slot says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) page_size: u32,
    pub(crate) database: [u8; 16],
    pub(crate) counter: u64,
    pub(crate) checkpoint: u64,
    pub(crate) end: u64,
    pub(crate) next_tree: u32,
    /// Written in `Durability::Off`: neither this nor what it points to was synced.
    pub(crate) unsynced: bool,
    /// The file is a copy in the making (`making.rs`), and nobody's yet.
    pub(crate) making: bool,
    pub(crate) catalog: Option<Blob>,
    pub(crate) free_map: Option<Blob>,
}

impl Meta {
    pub(crate) fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        slot[..8].copy_from_slice(&MAGIC);
        let mut put = |at: usize, bytes: &[u8]| slot[at..at + bytes.len()].copy_from_slice(bytes);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.page_size.to_le_bytes());
        put(16, &self.database);
        put(32, &self.counter.to_le_bytes());
        put(40, &self.checkpoint.to_le_bytes());
        put(48, &self.end.to_le_bytes());
        put(56, &self.next_tree.to_le_bytes());
        let flags = (u32::from(self.unsynced) * UNSYNCED) | (u32::from(self.making) * MAKING);
        put(60, &flags.to_le_bytes());
        for (at, blob) in [(64, &self.catalog), (80, &self.free_map)] {
            if let Some(blob) = blob {
                put(at, &blob.extent.word().to_le_bytes());
                put(at + 8, &blob.checksum.to_le_bytes());
                put(at + 12, &blob.length.to_le_bytes());
            }
        }
        let checksum = codec::checksum(&slot[..SLOT - 4]);
        slot[SLOT - 4..].copy_from_slice(&checksum.to_le_bytes());
        slot
    }

    fn decode(slot: &[u8; SLOT]) -> std::result::Result<Self, Fault> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| slot[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| slot[at + i]));
        if slot[..8] != MAGIC {
            return Err(Fault::Foreign);
        }
        let plain = mark::without(slot);
        if u32_at(SLOT - 4) != codec::checksum(&plain[..SLOT - 4]) {
            return Err(Fault::Rotten);
        }
        if !(OLDEST..=VERSION).contains(&u32_at(8)) {
            return Err(Fault::OtherVersion(u32_at(8)));
        }
        let blob = |at: usize| -> std::result::Result<Option<Blob>, Fault> {
            let bits = u64_at(at);
            if bits == 0 {
                return Ok(None);
            }
            let blob = Blob {
                extent: ExtentRef::from_word(bits).ok_or(Fault::Rotten)?,
                checksum: u32_at(at + 8),
                length: u32_at(at + 12),
            };
            let fits = blob.length as usize <= blob.extent.byte_len();
            fits.then_some(Some(blob)).ok_or(Fault::Rotten)
        };
        let page_size = u32_at(12);
        let sizes = node::PAGE_SIZE_MIN as u32..=node::PAGE_SIZE_MAX as u32;
        if !page_size.is_power_of_two() || !sizes.contains(&page_size) {
            return Err(Fault::Rotten);
        }
        let (counter, checkpoint, end) = (u64_at(32), u64_at(40), u64_at(48));
        if counter.max(checkpoint) > NUMBER_MAX || end > ExtentRef::POSITION_END {
            return Err(Fault::Rotten);
        }
        Ok(Self {
            page_size,
            database: std::array::from_fn(|i| slot[16 + i]),
            counter,
            checkpoint,
            end,
            next_tree: u32_at(56),
            unsynced: u32_at(60) & UNSYNCED != 0,
            making: u32_at(60) & MAKING != 0,
            catalog: blob(64)?,
            free_map: blob(80)?,
        })
    }

    /// Picks the newer valid one of the two slots.
    pub(crate) fn choose(slots: &[[u8; SLOT]; 2], path: &str) -> Result<Self> {
        match [Self::decode(&slots[0]), Self::decode(&slots[1])] {
            [Ok(a), Ok(b)] => Ok(if b.counter > a.counter { b } else { a }),
            [Err(Fault::OtherVersion(version)), _] | [_, Err(Fault::OtherVersion(version))] => {
                Err(Error::new(
                    ErrorKind::NewerFormat,
                    format!(
                        "{path} has format version {version}, and this program reads versions {OLDEST} to {VERSION}; open it with the program that wrote it or a newer one"
                    ),
                ))
            }
            [Ok(meta), Err(_)] | [Err(_), Ok(meta)] => Ok(meta),
            [Err(Fault::Foreign), Err(Fault::Foreign)] => Err(Error::new(
                ErrorKind::NotADatabase,
                format!("file is not a database: {path} does not begin as a Fulgurite file does"),
            )),
            [Err(_), Err(_)] => Err(Error::corrupt(format!(
                "database disk image is malformed: neither meta slot of {path} (bytes 0 and 4096) is whole; restore a backup"
            ))),
        }
    }
}

enum Fault {
    Foreign,
    Rotten,
    OtherVersion(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(counter: u64) -> Meta {
        Meta {
            page_size: 4096,
            database: [7; 16],
            counter,
            checkpoint: 42,
            end: 99,
            next_tree: 17,
            unsynced: true,
            making: true,
            catalog: Some(Blob {
                extent: ExtentRef::new(16, 19).expect("an extent"),
                checksum: 5,
                length: 1200,
            }),
            free_map: None,
        }
    }

    #[test]
    fn the_newer_whole_slot_wins() {
        let (old, new) = (meta(1).encode(), meta(2).encode());
        assert_eq!(Meta::choose(&[old, new], "x").expect("valid"), meta(2));
        assert_eq!(Meta::choose(&[new, old], "x").expect("valid"), meta(2));
        let marked = |byte: &usize| mark::without(&[1; SLOT])[*byte] == 0;
        for byte in (0..SLOT).filter(|byte| !marked(byte)) {
            let mut rotten = new;
            rotten[byte] ^= 0x10;
            let chosen = Meta::choose(&[rotten, old], "x");
            assert_eq!(
                chosen.expect("the other slot is whole"),
                meta(1),
                "byte {byte}"
            );
            let error = Meta::choose(&[rotten, rotten], "x").expect_err("none is whole");
            let expected = if byte < 8 {
                ErrorKind::NotADatabase
            } else {
                ErrorKind::Corrupt
            };
            assert_eq!(error.kind(), expected, "byte {byte}");
        }
    }

    fn of_version(version: u8) -> [u8; SLOT] {
        let mut slot = meta(1).encode();
        slot[8] = version;
        let checksum = codec::checksum(&slot[..SLOT - 4]);
        slot[SLOT - 4..].copy_from_slice(&checksum.to_le_bytes());
        slot
    }

    /// Whatever versions 3 to 5 have, version 6 has as well.
    #[test]
    fn older_versions_are_read_too() {
        for version in OLDEST..VERSION {
            let slot = of_version(version as u8);
            assert_eq!(Meta::choose(&[slot, slot], "x").expect("valid"), meta(1));
        }
    }

    #[test]
    fn other_formats_are_named() {
        for version in [1, 2, 7, 9] {
            let slot = of_version(version);
            let error = Meta::choose(&[slot, slot], "x").expect_err("another version");
            assert_eq!(error.kind(), ErrorKind::NewerFormat);
            let named = format!("format version {version},");
            assert!(error.message().contains(&named), "{error}");
        }
    }
}
