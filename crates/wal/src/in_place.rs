//! Committing where no sync is waited for (`normal` and `off`): every committer
//! writes its own record, and nobody leads.
//!
//! A record is written to its place in the file by who fills it, outside all locks,
//! and then published in its slot of the buffer (whose ring has no part in this). It
//! is acknowledged once it and all before it are published: whoever publishes the
//! record that comes next goes on over all that were published behind it. So
//!
//! 1. what is acknowledged is written, and all before it is: a process that ends
//!    leaves no gap before it;
//! 2. what stands in a file behind a gap was never acknowledged, as after a power
//!    cut in this mode, and recovery judges it the same (room that a lease left
//!    unused is no gap: `lease.rs`);
//! 3. a generation's begin record is written by who fills its first record, with
//!    that, so that the one is never there without the other. (Recovery stops before
//!    a generation without its beginning, and would find more in it once a
//!    checkpoint covers what it found the first time.) The generation's other records
//!    may be there before them.
//!
//! At a boundary nobody goes on before the flush lock's next holder has taken note of
//! the newer file, so that a sync covers both.
//!
//! Nobody stops for good while there is something to go on over: who publishes looks,
//! after that, whether it comes next; who went on looks, after that, whether the next
//! one is published; publishing and going on are full barriers. A write that fails
//! poisons before anything behind it could be acknowledged.

use std::io::IoSlice;
use std::sync::Arc;

use fulgurite_disk::DiskFile;

use super::error::Result;
use super::flush::{Flush, begin_record};
use super::header::RECORDS_START;
use super::leading::Leads;
use super::locks::lock;
use super::parking::Wish;
use super::record::{EMPTY_RECORD_BYTES, Head, padding, record_bytes};
use super::stats::WalStats;
use super::twin::{Durability, Placed, TwinLog};
use crate::primitives::{Ordering, SLOTS};

/// How far ahead a file is told what will be written, in steps of as much.
pub(super) const AHEAD_BYTES: u64 = 64 << 10;
/// Records up to this size are put together before they are written.
const TOGETHER_BYTES: usize = 512;

impl TwinLog {
    /// Whether committers write for themselves.
    #[inline]
    pub(super) fn writes_in_place(&self) -> bool {
        !self.is_synced()
    }

    /// Writes a placed record and acknowledges what can be.
    pub(super) fn write_in_place(
        &self,
        placed: &Placed<'_>,
        head: &Head,
        parts: &[&[u8]],
    ) -> Result<()> {
        let has_slot = || placed.seq <= self.acked() + SLOTS;
        if !has_slot() {
            self.until(has_slot, Wish::Progress)?;
        }
        if let Err(error) = self.write_record(placed, head, parts) {
            return Err(self.ended_by(error));
        }
        self.buffer()?.publish(placed.seq, placed.end);
        self.turns.parking.record_filled();
        self.go_on()?;
        let end = placed.position + (placed.end - placed.start);
        if placed.position / AHEAD_BYTES != end / AHEAD_BYTES {
            // Here rather than when the next record meets a page that is not ready,
            // for which all behind it would wait.
            let next_step = (end / AHEAD_BYTES + 1) * AHEAD_BYTES;
            self.file(placed.slot)?.will_write(next_step, AHEAD_BYTES);
        }
        Ok(())
    }

    pub(super) fn write_record(
        &self,
        placed: &Placed<'_>,
        head: &Head,
        parts: &[&[u8]],
    ) -> Result<()> {
        let file = self.file(placed.slot)?;
        let begin = (placed.position == RECORDS_START + EMPTY_RECORD_BYTES)
            .then(|| begin_record(placed.salt, RECORDS_START, placed.seq - 1, head.durable));
        let begin = begin.as_ref().map_or(&[][..], |begin| begin);
        let encoded = head.seal(placed.salt, placed.position, parts);
        let position = placed.position - begin.len() as u64;
        write_pieces(&**file, position, begin, &encoded, parts)
    }

    /// Acknowledges what is published without a gap, over a boundary too.
    fn go_on(&self) -> Result<()> {
        while self.go_on_to_boundary()? {
            self.cross_in_place(&mut lock(&self.flush));
            self.flush_ended();
        }
        Ok(())
    }

    /// As [`go_on`](Self::go_on), for who holds the flush lock.
    pub(super) fn lead_in_place(&self, flush: &mut Flush) -> Result<()> {
        while self.go_on_to_boundary()? {
            self.cross_in_place(flush);
        }
        Ok(())
    }

    /// Acknowledges what is published without a gap; true where a boundary is to be
    /// crossed for more.
    fn go_on_to_boundary(&self) -> Result<bool> {
        let Some(buffer) = self.lazy_buffer.get() else {
            return Ok(false);
        };
        loop {
            let acked = self.acked_seq.load(Ordering::SeqCst);
            let next = buffer.filled_prefix(acked + 1, 0).0;
            // Read after the prefix: a record behind the boundary was placed after
            // the boundary was set, and both are visible with its slot.
            let boundary = match self.boundary.load(Ordering::Acquire) {
                u64::MAX => u64::MAX,
                _ => self.boundary_seq.load(Ordering::Acquire),
            };
            let last = boundary.min(next - 1);
            if last <= acked {
                return Ok(acked == boundary && next - 1 > acked);
            }
            // Somebody else's failure (a data sync of the store) may have come
            // meanwhile: then nothing more is acknowledged.
            self.check()?;
            let (order, raced) = (Ordering::SeqCst, Ordering::Relaxed);
            if self
                .acked_seq
                .compare_exchange(acked, last, order, raced)
                .is_ok()
            {
                self.turns.parking.went_on(|wish| self.is_met(wish));
            }
        }
    }

    /// Goes over to the next generation where all records of the older one are
    /// acknowledged and nobody did so before.
    pub(super) fn cross_in_place(&self, flush: &mut Flush) {
        let boundary = self.boundary.load(Ordering::Acquire);
        let last = self.boundary_seq.load(Ordering::Acquire);
        // Who comes late may find the boundary after the one it came for.
        if boundary == u64::MAX || self.acked() < last {
            return;
        }
        if self.synced_seq.load(Ordering::Acquire) < last {
            flush.older_unsynced = self.files[flush.target.slot].get().cloned();
        }
        flush.target = lock(&self.placement).current;
        self.boundary.store(u64::MAX, Ordering::Release);
    }

    /// What a sync has to cover so that all that is acknowledged is durable, where
    /// nobody leads.
    pub(super) fn unsynced_in_place(&self, flush: &mut Flush) -> Option<Unsynced> {
        if self.durability() != Durability::Normal {
            return None;
        }
        let last = self.acked();
        let target = (self.durable() < last).then(|| self.files[flush.target.slot].get());
        Some(Unsynced {
            files: [flush.older_unsynced.take(), target.flatten().cloned()],
            last,
        })
    }

    /// Makes it durable.
    pub(super) fn sync_in_place(&self, unsynced: Unsynced) -> Result<()> {
        for file in unsynced.files.into_iter().flatten() {
            self.sync_file(&*file)?;
            self.turns.counters.syncs.add(1);
        }
        self.synced_seq.fetch_max(unsynced.last, Ordering::AcqRel);
        Ok(())
    }

    /// Adds what was written in place, which no commit counts.
    pub(super) fn count_in_place(&self, stats: &mut WalStats) {
        let (seq, start) = &self.in_place_first;
        let last = self.acked().saturating_sub(self.unused_numbers());
        let records = last.saturating_sub(seq.load(Ordering::Relaxed));
        stats.records += records;
        stats.writes += records;
        stats.largest_group = stats.largest_group.max(records.min(1));
        stats.bytes += self
            .tail
            .load(Ordering::Relaxed)
            .saturating_sub(start.load(Ordering::Relaxed));
    }
}

/// Files that are to be synced, and up to where all is durable then.
pub(super) struct Unsynced {
    files: [Option<Arc<dyn DiskFile>>; 2],
    last: u64,
}

/// Writes a record whose head is `encoded`, with what stands before it, to `position`.
#[inline]
pub(super) fn write_pieces(
    file: &dyn DiskFile,
    position: u64,
    before: &[u8],
    encoded: &[u8],
    parts: &[&[u8]],
) -> Result<()> {
    let payload_len = parts.iter().map(|part| part.len()).sum();
    let pieces = [before, encoded]
        .into_iter()
        .chain(parts.iter().copied())
        .chain([padding(payload_len)]);
    let len = before.len() + record_bytes(payload_len) as usize;
    if len <= TOGETHER_BYTES {
        let mut bytes = [0; TOGETHER_BYTES];
        let mut at = 0;
        for piece in pieces {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        return Ok(file.write_at(&bytes[..len], position)?);
    }
    let slices: Vec<IoSlice<'_>> = pieces.map(IoSlice::new).collect();
    Ok(file.write_vectored_at(&slices, position)?)
}
