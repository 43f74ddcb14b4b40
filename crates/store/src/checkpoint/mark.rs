//! The mark: which log goes with the checkpoint.
//!
//! ```text
//! 0   generation u64 | salt u64
//! 16  counter u64     of the meta slot that it belongs to
//! 24  CRC32C u32 of the bytes before
//! 28  zeros
//! ```
//! It has a sector of its own within slot A, 2048 bytes from its beginning, which the
//! slots' checksums take for zeros. So it is put without a sync when the log's first
//! file is made, before anybody commits: a power cut leaves it there or not, and either
//! way leaves the slot what it is. A checkpoint that commits follow writes it with slot
//! A; the last one writes zeros.
//!
//! What must hold:
//!
//! 1. It counts for the slot with its counter alone.
//! 2. The log that it names is durable before it is put, and goes only when the mark is
//!    durably gone, or of a slot that is not the newest any more.
//! 3. A slot has one mark in its time at most. Opening a database that was not closed
//!    makes a checkpoint, so that none of the life before counts: one may be on the medium
//!    that the system does not show.
//!
//! So no crash leaves a mark without its log. It may leave a log without its mark: where a
//! power cut took the mark, or a checkpoint under way has not come to writing it. If that
//! log is lost, nobody misses it.

use super::meta::Meta;
use super::{State, meta};
use crate::codec;
use crate::error::Result;
use crate::store::Core;
use fulgurite_wal::Continuation;

/// Bytes of the mark's sector.
const SECTOR: usize = 512;
/// Where it begins, in slot A and so in the file.
const AT: usize = 2048;
/// Bytes of the mark but for its checksum.
const BYTES: usize = 24;

fn sector(log: Option<Continuation>, counter: u64) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    if let Some(log) = log {
        sector[..8].copy_from_slice(&log.number.to_le_bytes());
        sector[8..16].copy_from_slice(&log.salt.to_le_bytes());
        sector[16..BYTES].copy_from_slice(&counter.to_le_bytes());
        let checksum = codec::checksum(&sector[..BYTES]);
        sector[BYTES..BYTES + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    sector
}

/// A slot's bytes as its checksum takes them.
pub(super) fn without(slot: &[u8; meta::SLOT]) -> [u8; meta::SLOT] {
    let mut plain = *slot;
    plain[AT..AT + SECTOR].fill(0);
    plain
}

/// Slot A of a meta record with this mark.
pub(crate) fn slot_a(meta: &Meta, log: Option<Continuation>) -> [u8; meta::SLOT] {
    let mut slot = meta.encode();
    slot[AT..AT + SECTOR].copy_from_slice(&sector(log, meta.counter));
    slot
}

/// The mark for the newest meta record, of what was read as slot A.
pub(crate) fn find(slot_a: &[u8; meta::SLOT], meta: &Meta) -> Option<Continuation> {
    let bytes = &slot_a[AT..];
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let log = Continuation {
        number: u64_at(0),
        salt: u64_at(8),
    };
    (bytes[..SECTOR] == sector(Some(log), meta.counter)).then_some(log)
}

/// Puts the mark of the log's first file. A failure leaves the database without one, as
/// a power cut does. While a checkpoint is made, that one writes it.
pub(crate) fn put(core: &Core, log: Continuation) {
    let Some(mut state) = core.checkpoint.try_lock() else {
        return;
    };
    let sector = sector(Some(log), state.counter);
    // Also where it failed, part of it may be there.
    state.log = Some(log);
    let _ = core.pool.file.write_at(&sector, AT as u64);
}

/// Takes the mark away, durably, before a database is closed whose last checkpoint
/// covers all: the log may go after that. Where this is not done in time, the log stays.
pub(crate) fn take_away(core: &Core, state: &mut State) -> Result<()> {
    if state.log.is_none() {
        return Ok(());
    }
    let sector = sector(None, state.counter);
    let written = core.pool.file.write_at(&sector, AT as u64);
    written.map_err(|error| core.ended_by(error.into()))?;
    core.sync_file()?;
    state.log = None;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: Continuation = Continuation {
        number: 3,
        salt: 0xdead_beef,
    };

    fn meta(counter: u64) -> Meta {
        Meta {
            page_size: 4096,
            database: [7; 16],
            counter,
            checkpoint: 42,
            end: 128,
            next_tree: 1,
            unsynced: false,
            making: false,
            catalog: None,
            free_map: None,
        }
    }

    #[test]
    fn a_mark_counts_for_its_slot_alone() {
        for counter in [0, 8] {
            let slot = slot_a(&meta(counter), Some(LOG));
            assert_eq!(find(&slot, &meta(counter)), Some(LOG));
            assert_eq!(find(&slot, &meta(counter + 1)), None);
            assert_eq!(find(&slot_a(&meta(counter), None), &meta(counter)), None);
        }
    }

    /// The slot is what it was, whatever became of the mark, and for programs that know
    /// of none slot B is.
    #[test]
    fn a_torn_mark_is_none_and_harms_no_slot() {
        let whole = slot_a(&meta(8), Some(LOG));
        for byte in AT..AT + SECTOR {
            let mut torn = whole;
            torn[byte] ^= 0x10;
            assert_eq!(find(&torn, &meta(8)), None, "byte {byte}");
            let chosen = Meta::choose(&[torn, meta(7).encode()], "x");
            assert_eq!(chosen.expect("is whole"), meta(8), "byte {byte}");
        }
        assert_eq!(without(&whole), meta(8).encode());
    }
}
