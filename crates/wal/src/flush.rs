//! The leader's work, in `full` mode: the filled prefix goes to the file, is synced
//! and is acknowledged. (The other modes have no leader, see `in_place.rs`.)
//!
//! Whoever holds the flush lock leads, so there is one write or sync at a time,
//! and the next group gathers in the buffer meanwhile. A group is
//! acknowledged only after its own sync; all earlier ones returned well before
//! it, since they were under the same lock and a failed one poisons. (A record that needs
//! none is left to the next one: `acknowledge_written`.)
//!
//! **Crossing to the next generation.** When the prefix passes the boundary a
//! switch has set, the leader writes the older file's rest, syncs it,
//! acknowledges it, and only then writes the begin record and what follows to
//! the newer file. The begin record carries the durable mark of that moment, which
//! says that the older file is durable to its end.

use std::io::IoSlice;
use std::sync::Arc;

use fulgurite_disk::DiskFile;
use fulgurite_disk::mutation::{Mutation, planted};

use super::error::Result;
use super::generation::Generation;
use super::locks::lock;
use super::record::{EMPTY_RECORD_BYTES, Head, KIND_BEGIN};
use super::twin::TwinLog;
use crate::primitives::Ordering;

/// What the leader goes on from. Where nobody leads only `target` and
/// `older_unsynced` have a meaning.
pub(super) struct Flush {
    /// The first sequence number that is not written.
    pub(super) next_seq: u64,
    /// The first log position that is not written.
    pub(super) lsn: u64,
    /// The generation that position lies in.
    pub(super) target: Generation,
    /// Whether the target holds written bytes that were never synced.
    pub(super) unsynced: bool,
    /// The older file, if a crossing left it unsynced, which only happens where nobody
    /// leads.
    pub(super) older_unsynced: Option<Arc<dyn DiskFile>>,
    syncs: u32,
}

impl Flush {
    pub(super) fn new(next_seq: u64, lsn: u64, target: Generation) -> Self {
        Self {
            next_seq,
            lsn,
            target,
            unsynced: false,
            older_unsynced: None,
            syncs: 0,
        }
    }
}

/// The bytes of a begin record for a generation whose predecessor ended with `last_seq`.
pub(super) fn begin_record(
    salt: u64,
    position: u64,
    last_seq: u64,
    durable: u64,
) -> [u8; EMPTY_RECORD_BYTES as usize] {
    let head = Head {
        len: 0,
        seq: last_seq,
        durable,
        kind: KIND_BEGIN,
    }
    .seal(salt, position, &[]);
    let mut bytes = [0; EMPTY_RECORD_BYTES as usize];
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

impl TwinLog {
    /// Acknowledges what is written, after a sync.
    pub(super) fn acknowledge(&self, flush: &mut Flush, sync: bool) -> Result<()> {
        let last = flush.next_seq - 1;
        if !sync {
            return Ok(());
        }
        if flush.unsynced && !planted(Mutation::SkipLogSync) {
            self.sync_target(flush)?;
        }
        self.synced_seq.store(last, Ordering::Release);
        // Somebody else's failure (a data sync of the store) may have come
        // meanwhile: then nothing more is acknowledged.
        self.check()?;
        self.acked_seq.store(last, Ordering::Release);
        Ok(())
    }

    fn sync_target(&self, flush: &mut Flush) -> Result<()> {
        let file = self.file(flush.target.slot)?;
        self.turns
            .gather
            .timed(flush.syncs, || self.now(), || self.sync_file(&**file))?;
        flush.syncs = flush.syncs.wrapping_add(1);
        flush.unsynced = false;
        self.turns.counters.syncs.add_alone(1);
        let placed = self.placed_seq.load(Ordering::Relaxed);
        let acked = self.acked_seq.load(Ordering::Relaxed);
        self.turns.gather.served(placed.saturating_sub(acked));
        Ok(())
    }

    /// Writes the contiguous filled prefix, crossing to the next generation
    /// where it passes the boundary.
    pub(super) fn write_filled(&self, flush: &mut Flush) -> Result<()> {
        let Some(buffer) = self.lazy_buffer.get() else {
            return Ok(());
        };
        let (next_seq, end) = buffer.filled_prefix(flush.next_seq, flush.lsn);
        if next_seq == flush.next_seq {
            return Ok(());
        }
        self.flushing_seq.store(next_seq - 1, Ordering::Relaxed);
        // Read after the prefix: a record behind the boundary was placed after
        // the boundary was set, and both are visible with its slot.
        let boundary = self.boundary.load(Ordering::Acquire);
        if end > boundary {
            let first_behind = self.boundary_seq.load(Ordering::Acquire) + 1;
            self.write_up_to(flush, first_behind, boundary)?;
            self.cross(flush)?;
        }
        self.write_up_to(flush, next_seq, end)
    }

    /// Writes from the ring up to the log position `end`, behind which
    /// `next_seq` follows.
    pub(super) fn write_up_to(&self, flush: &mut Flush, next_seq: u64, end: u64) -> Result<()> {
        if end > flush.lsn {
            let position = flush.target.position(flush.lsn);
            let file = self.file(flush.target.slot)?;
            let ring = &self.buffer()?.ring;
            // SAFETY: every record in the range is published as filled (and the
            // begin record is written by the leader itself), so nobody writes
            // to it; its space is not handed out again before `written_lsn`
            // passes it below.
            let [first, rest] = unsafe { ring.read(flush.lsn, (end - flush.lsn) as usize) };
            let written = if rest.is_empty() {
                file.write_at(first, position)
            } else {
                file.write_vectored_at(&[IoSlice::new(first), IoSlice::new(rest)], position)
            };
            self.written(flush, next_seq, end, written)?;
        }
        Ok(())
    }

    /// Takes note of a write up to the log position `end`.
    pub(super) fn written(
        &self,
        flush: &mut Flush,
        next_seq: u64,
        end: u64,
        result: fulgurite_disk::Result<()>,
    ) -> Result<()> {
        if let Err(error) = result {
            return Err(self.ended_by(error.into()));
        }
        let records = next_seq - flush.next_seq;
        self.turns.counters.writes.add_alone(1);
        self.turns.counters.records.add_alone(records);
        self.turns.counters.bytes.add_alone(end - flush.lsn);
        self.turns.counters.largest_group.raise_alone(records);
        flush.unsynced = true;
        flush.next_seq = next_seq;
        flush.lsn = end;
        self.written_lsn.store(end, Ordering::Release);
        self.written_seq.store(next_seq - 1, Ordering::SeqCst);
        Ok(())
    }

    /// Goes over to the next generation. All records of the older one must be
    /// written. The begin record is left in the ring, to be written with what
    /// follows.
    pub(super) fn cross(&self, flush: &mut Flush) -> Result<()> {
        // Where the older one holds no record, its begin record still waits.
        self.write_up_to(flush, flush.next_seq, self.boundary.load(Ordering::Acquire))?;
        self.acknowledge(flush, true)?;
        flush.unsynced = false;
        flush.target = lock(&self.placement).current;
        debug_assert_eq!(
            flush.lsn, flush.target.base,
            "a crossing happens at the boundary"
        );
        self.boundary.store(u64::MAX, Ordering::Release);
        let begin = begin_record(
            flush.target.salt,
            flush.target.position(flush.lsn),
            flush.next_seq - 1,
            self.synced_seq.load(Ordering::Acquire),
        );
        // SAFETY: `switch` set these positions aside for the begin record, the
        // leader alone writes them, and all below the boundary is written, so
        // no record of an earlier lap still needs the space.
        unsafe { self.buffer()?.ring.write(flush.lsn, &begin) };
        Ok(())
    }
}
