//! The files of the generations: making one, filling it with zeros, heading it.

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Access, Disk, DiskErrorKind, DiskFile, OpenOptions, Pace, parent_dir};

use super::error::Result;
use super::header::{self, RECORDS_START};
use super::twin::Durability;

/// The smallest room for records in a file but the first, together with its head
/// 256 KiB.
pub(super) const CAPACITY_BYTES_MIN: u64 = (256 << 10) - RECORDS_START;
/// The room for records in the first file, together with its head 64 KiB: many a log
/// ends with it.
pub(super) const FIRST_CAPACITY_BYTES: u64 = (64 << 10) - RECORDS_START;
/// An overrun is extended by at most this much (or by what one record needs).
const EXTENSION_BYTES_MAX: u64 = 1 << 20;
pub(super) static ZEROS: [u8; Pace::CALL_BYTES] = [0; Pace::CALL_BYTES];

/// Which of the two files a generation uses, and where its records lie in the log.
#[derive(Clone, Copy)]
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) slot: usize,
    pub(super) salt: u64,
    /// The log position of its first record.
    pub(super) base: u64,
    /// How many bytes of records the file has room for, zero-filled or written
    /// before. None where there is no file yet.
    pub(super) capacity: u64,
}

impl Generation {
    /// Where in the file a log position lies.
    pub(super) fn position(&self, lsn: u64) -> u64 {
        RECORDS_START + (lsn - self.base)
    }

    /// The log position behind its room.
    pub(super) fn room_end(&self) -> u64 {
        self.base + self.capacity
    }
}

/// The capacity to extend a file to that needs at least `needed`.
pub(super) fn extended_capacity(capacity: u64, needed: u64) -> u64 {
    needed
        .max(capacity + capacity.min(EXTENSION_BYTES_MAX))
        .next_multiple_of(4096)
}

/// Writes zeros over a part of the room for records, in calls so short that who writes a
/// record meanwhile hardly waits for one. The system is asked to begin writing them back,
/// unless they are so few that the sync that follows costs less than the call.
pub(super) fn fill_with_zeros(file: &dyn DiskFile, from: u64, to: u64) -> Result<()> {
    let call = ZEROS.len() as u64;
    let mut at = from;
    while at < to {
        let count = (to - at).min(call);
        file.write_at(&ZEROS[..count as usize], RECORDS_START + at)?;
        if to - from > call {
            file.start_writeback(RECORDS_START + at, count);
        }
        at += count;
    }
    Ok(())
}

/// Gives the file made last the name of `slot`, replacing what had it. Returns
/// it opened by that name, which its errors then say: through a map where commits
/// are not synced and the disk has maps (ADR 49), since then the system call of a
/// write would take most of a commit's time.
pub(super) fn publish_file(
    disk: &dyn Disk,
    base: &Path,
    slot: usize,
    durability: Durability,
) -> Result<Arc<dyn DiskFile>> {
    let path = header::path_of(base, slot);
    disk.rename(&header::new_path(base), &path)?;
    if durability != Durability::Full {
        match disk.open_with(&path, OpenOptions::WRITE, Access::Mapped) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {}
            opened => return Ok(opened?),
        }
    }
    Ok(disk.open(&path, OpenOptions::WRITE)?)
}

/// Removes whatever files a log has, durably.
pub(super) fn remove_files(disk: &dyn Disk, base: &Path) -> Result<()> {
    let mut removed = false;
    for path in [
        header::path_of(base, 0),
        header::path_of(base, 1),
        header::new_path(base),
    ] {
        if disk.exists(&path)? {
            disk.remove(&path)?;
            removed = true;
        }
    }
    if removed {
        sync_names(disk, base)?;
    }
    Ok(())
}

/// Makes the names of the log's files durable.
pub(super) fn sync_names(disk: &dyn Disk, base: &Path) -> Result<()> {
    if planted(Mutation::SkipDirectorySync) {
        return Ok(());
    }
    disk.sync_dir(parent_dir(base))?;
    Ok(())
}
