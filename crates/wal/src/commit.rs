//! Filling a placed record, and waiting until it is acknowledged. See
//! `leading.rs` for who leads.

use std::io::IoSlice;
use std::mem;

use super::error::{Error, Result};
use super::flush::Flush;
use super::gather::Waiting;
use super::leading::{Leads, Turns};
use super::locks::lock;
use super::parking::Wish;
use super::record::{HEADER_BYTES, Head, Kind, padding};
use super::twin::{Durability, Placed, Ticket, TwinLog};
use crate::primitives::{Mutex, Ordering, RING_BYTES, RING_RECORD_BYTES_MAX, SLOTS};

impl TwinLog {
    /// Copies a placed record into the log, outside all locks. The parts
    /// together must have the length that was reserved. May wait for room in
    /// the buffer, which records placed earlier make once they are filled: a
    /// thread that places several fills them in their order.
    ///
    /// # Errors
    /// `Poisoned` (then the record's outcome is unknown until the log is
    /// recovered), `Closed`, or `Misuse` for a wrong length.
    pub fn fill(&self, placed: Placed<'_>, kind: Kind, parts: &[&[u8]]) -> Result<Ticket> {
        // An error on the way drops `placed`, which poisons; the first cause stays.
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if !std::ptr::eq(self, placed.wal) || len != placed.payload_len {
            return Err(Error::Misuse(
                "a record was filled with another length than was reserved",
            ));
        }
        self.check()?;
        let head = Head {
            len: len as u32,
            seq: placed.seq,
            durable: self.synced_seq.load(Ordering::Relaxed),
            kind: kind.byte(),
        };
        if self.writes_in_place() {
            self.write_in_place(&placed, &head, parts)?;
        } else if placed.end - placed.start > RING_RECORD_BYTES_MAX {
            self.write_around_ring(&placed, &head, parts)?;
        } else {
            self.copy_to_ring(&placed, &head, parts)?;
        }
        let seq = placed.seq;
        mem::forget(placed);
        Ok(Ticket::new(seq))
    }

    fn copy_to_ring(&self, placed: &Placed<'_>, head: &Head, parts: &[&[u8]]) -> Result<()> {
        if !self.has_buffer_room(placed) {
            self.until(|| self.has_buffer_room(placed), Wish::Progress)?;
        }
        let ring = &self.buffer()?.ring;
        let encoded = head.seal(placed.salt, placed.position, parts);
        // SAFETY: `place` gave these positions to this record alone, and
        // `has_buffer_room` says that what lay there one lap ago is written.
        // They are published only below, so nobody reads them yet.
        unsafe {
            ring.write(placed.start, &encoded);
            let mut at = placed.start + HEADER_BYTES as u64;
            for part in parts {
                ring.write(at, part);
                at += part.len() as u64;
            }
            ring.write(at, padding(placed.payload_len));
        }
        self.buffer()?.publish(placed.seq, placed.end);
        self.turns.parking.record_filled();
        Ok(())
    }

    /// Writes a large record from where the caller has it, once everything
    /// before it is written.
    fn write_around_ring(&self, placed: &Placed<'_>, head: &Head, parts: &[&[u8]]) -> Result<()> {
        let encoded = head.seal(placed.salt, placed.position, parts);
        let mut slices = Vec::with_capacity(parts.len() + 2);
        slices.push(IoSlice::new(&encoded));
        slices.extend(parts.iter().map(|part| IoSlice::new(part)));
        slices.push(IoSlice::new(padding(placed.payload_len)));

        let is_next = || self.written_seq.load(Ordering::SeqCst) + 1 == placed.seq;
        let result = loop {
            self.until(is_next, Wish::Written(placed.seq - 1))?;
            let mut flush = lock(&self.flush);
            if flush.next_seq == placed.seq {
                break self.write_next(&mut flush, placed, &slices);
            }
        };
        self.flush_ended();
        result
    }

    /// Writes the record that comes next, past the ring.
    fn write_next(
        &self,
        flush: &mut Flush,
        placed: &Placed<'_>,
        slices: &[IoSlice<'_>],
    ) -> Result<()> {
        self.check()?;
        if placed.start >= self.boundary.load(Ordering::Acquire) {
            self.cross(flush)?;
        }
        if flush.lsn < placed.start {
            // The generation's begin record waits in the ring.
            self.write_up_to(flush, placed.seq, placed.start)?;
        }
        let file = self.file(flush.target.slot)?;
        let written = file.write_vectored_at(slices, placed.position);
        self.written(flush, placed.seq + 1, placed.end, written)
    }

    /// Waits until a record is acknowledged: in `full` mode synced, otherwise
    /// written to the operating system (where [`sync_up_to`](Self::sync_up_to) does more).
    ///
    /// # Errors
    /// `Poisoned`: the outcome is unknown until the log is recovered.
    pub fn wait(&self, ticket: Ticket) -> Result<()> {
        self.wait_seq(ticket.seq())
    }

    /// Waits until a record is written, and acknowledges it without a sync where all before
    /// it is acknowledged: for one that a power cut may take, since what it says is durable
    /// elsewhere and is done again. The next sync covers it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn acknowledge_written(&self, ticket: Ticket) -> Result<()> {
        // With a record that is not acknowledged the log does not go over to `normal`.
        if self.is_synced() {
            let seq = ticket.seq();
            let mut flush = lock(&self.flush);
            let written = self.write_filled(&mut flush).and_then(|()| self.check());
            if written.is_ok() && flush.next_seq > seq {
                let (order, others) = (Ordering::SeqCst, Ordering::Relaxed);
                let acked = &self.acked_seq;
                // Where something before it waits for its sync, so does this.
                let _ = acked.compare_exchange(seq - 1, seq, order, others);
            }
            drop(flush);
            self.flush_ended();
            written?;
        }
        self.wait(ticket)
    }

    /// Waits until everything up to `seq` is acknowledged.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); `Misuse` where no record has that number.
    pub fn wait_seq(&self, seq: u64) -> Result<()> {
        if self.acked() >= seq {
            return Ok(());
        }
        if seq > self.placed_seq.load(Ordering::Relaxed) {
            self.check()?;
            return Err(Error::Misuse(
                "a record that was never placed was waited for",
            ));
        }
        // Nobody waits for a crowd where nothing is synced.
        let _present = self
            .is_synced()
            .then(|| self.turns.gather.enter())
            .flatten();
        let wish = Wish::Acknowledged(seq);
        self.until(|| self.is_met(wish), wish)
    }

    fn has_buffer_room(&self, placed: &Placed<'_>) -> bool {
        placed.end <= self.written_lsn.load(Ordering::Acquire) + RING_BYTES
            && placed.seq <= self.written_seq.load(Ordering::Acquire) + SLOTS
    }
}

impl Leads for TwinLog {
    type Flush = Flush;

    fn turns(&self) -> &Turns {
        &self.turns
    }

    fn flush(&self) -> &Mutex<Flush> {
        &self.flush
    }

    fn is_synced(&self) -> bool {
        self.durability() == Durability::Full
    }

    fn is_met(&self, wish: Wish) -> bool {
        match wish {
            Wish::Acknowledged(seq) => self.acked() >= seq,
            Wish::Written(seq) => self.written_seq.load(Ordering::SeqCst) >= seq,
            Wish::Progress => true,
        }
    }

    fn is_covered(&self, wish: Wish) -> bool {
        match wish {
            Wish::Acknowledged(seq) | Wish::Written(seq) => {
                self.flushing_seq.load(Ordering::Relaxed) >= seq
            }
            Wish::Progress => true,
        }
    }

    fn can_lead(&self, sync: bool) -> bool {
        if self.writes_in_place() {
            return self.is_filled(self.acked_seq.load(Ordering::SeqCst) + 1);
        }
        let written = self.written_seq.load(Ordering::SeqCst);
        self.is_filled(written + 1) || (sync && self.acked() < written)
    }

    fn lead(&self, flush: &mut Flush, sync: bool) -> Result<()> {
        self.check()?;
        if self.writes_in_place() {
            return self.lead_in_place(flush);
        }
        self.write_filled(flush)?;
        self.acknowledge(flush, sync)
    }

    fn waiting(&self) -> Waiting {
        Waiting::Adaptive
    }

    fn pending(&self) -> (u64, u64) {
        let acked = self.acked();
        let written = self.written_seq.load(Ordering::Acquire);
        let filled = (written + 1..).take_while(|seq| self.is_filled(*seq));
        ((written + filled.count() as u64).saturating_sub(acked), 0)
    }
}
