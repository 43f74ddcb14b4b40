//! The log buffer: records lie in a ring at their log positions, and a slot per
//! sequence number says that a record is filled and where it ends.
//!
//! Records are filled in any order; the leader walks the slots from the first
//! unwritten sequence number and so finds the contiguous filled prefix without
//! a lock. A slot is used again `SLOTS` sequence numbers later, and like ring
//! space only once its record was written.

use std::io;

use super::ring::Ring;
use crate::primitives::{AtomicU64, Ordering, SLOTS};

struct Slot {
    /// The sequence number whose record is filled; `u64::MAX` before the first.
    seq: AtomicU64,
    /// The log position behind it; valid once `seq` says so.
    end: AtomicU64,
}

pub(super) struct Buffer {
    pub(super) ring: Ring,
    slots: Box<[Slot]>,
}

impl Buffer {
    /// With a ring of so many bytes.
    ///
    /// # Errors
    /// Where the system has no memory.
    pub(super) fn new(ring_bytes: u64) -> io::Result<Self> {
        let slots = (0..SLOTS)
            .map(|_| Slot {
                seq: AtomicU64::new(u64::MAX),
                end: AtomicU64::new(0),
            })
            .collect();
        Ok(Self {
            ring: Ring::new(ring_bytes as usize)?,
            slots,
        })
    }

    fn slot(&self, seq: u64) -> &Slot {
        &self.slots[(seq % SLOTS) as usize]
    }

    /// Whether `seq` is filled.
    pub(super) fn is_filled(&self, seq: u64) -> bool {
        self.slot(seq).seq.load(Ordering::SeqCst) == seq
    }

    /// Publishes the record `seq`, which ends at `end`. A full barrier: whoever
    /// registered as starved before is seen by the caller afterwards.
    pub(super) fn publish(&self, seq: u64, end: u64) {
        let slot = self.slot(seq);
        slot.end.store(end, Ordering::Relaxed);
        slot.seq.swap(seq, Ordering::SeqCst);
    }

    /// The sequence number behind the filled prefix that starts with
    /// `next_seq`, and the log position behind it (`start` if it is empty).
    pub(super) fn filled_prefix(&self, mut next_seq: u64, start: u64) -> (u64, u64) {
        let mut end = start;
        loop {
            let slot = self.slot(next_seq);
            if slot.seq.load(Ordering::SeqCst) != next_seq {
                return (next_seq, end);
            }
            end = slot.end.load(Ordering::Relaxed);
            next_seq += 1;
        }
    }
}
