//! The leader's work: what is appended goes to the file, and is synced.
//!
//! One write or sync of records at a time, under the flush lock; the next group gathers in
//! the ring meanwhile. (Two overlapping syncs were tried; see ADR 30.)

use super::core::{Core, Flush};
use super::error::Result;
use super::gather::Waiting;
use super::header::Header;
use super::leading::{Leads, Turns};
use super::locks::lock;
use super::parking::Wish;
use crate::primitives::{Mutex, Ordering, SOLO_RING_BYTES, now};

/// How much is written at once where no sync follows.
const PIECE_BYTES: u64 = SOLO_RING_BYTES / 8;

impl Core {
    /// Waits until everything below `end` is durable.
    pub(super) fn wait_durable(&self, end: u64) -> Result<()> {
        if self.durable.load(Ordering::Acquire) >= end {
            return self.check();
        }
        let _present = self.turns.gather.enter();
        let wish = Wish::Acknowledged(end);
        self.until(|| self.is_met(wish), wish)
    }

    /// Makes everything durable where nobody else can append any more: no batch is
    /// waited for that nobody completes.
    pub(super) fn flush_at_last(&self) -> Result<()> {
        self.lead(&mut lock(&self.flush), true)
    }

    /// Waits until everything below `end` is written to the operating system.
    pub(super) fn wait_written(&self, end: u64) -> Result<()> {
        let wish = Wish::Written(end);
        self.until(|| self.is_met(wish), wish)
    }

    fn write(&self, flush: &mut Flush, end: u64, seq: u64) -> Result<()> {
        if end == flush.lsn {
            return Ok(());
        }
        // SAFETY: as in `lead`.
        let parts = unsafe { self.ring.read(flush.lsn, (end - flush.lsn) as usize) };
        self.or_end(self.volume.write(flush.lsn, &parts, false))?;
        self.written_to(flush, end, seq);
        Ok(())
    }

    /// Takes note of a write up to `end`, behind which `seq` follows.
    pub(super) fn written_to(&self, flush: &mut Flush, end: u64, seq: u64) {
        let records = seq - flush.seq;
        self.turns.counters.writes.add_alone(1);
        self.turns.counters.records.add_alone(records);
        self.turns.counters.bytes.add_alone(end - flush.lsn);
        self.turns.counters.largest_group.raise_alone(records);
        flush.lsn = end;
        flush.seq = seq;
        self.written.store(end, Ordering::SeqCst);
    }

    /// Replaces the head on disk. A failure poisons, since either head may be
    /// there.
    pub(super) fn write_header(&self, head: &mut super::core::Head, header: Header) -> Result<()> {
        self.check()?;
        let file = &self.volume.file;
        header
            .write(&**file, || self.synced(|| file.sync_data()))
            .map_err(|error| self.poison(error))?;
        head.header = header;
        Ok(())
    }
}

impl Leads for Core {
    type Flush = Flush;

    fn turns(&self) -> &Turns {
        &self.turns
    }

    fn flush(&self) -> &Mutex<Flush> {
        &self.flush
    }

    fn is_synced(&self) -> bool {
        true
    }

    #[inline]
    fn is_met(&self, wish: Wish) -> bool {
        match wish {
            Wish::Acknowledged(end) => self.durable.load(Ordering::Acquire) >= end,
            Wish::Written(end) => self.written.load(Ordering::Acquire) >= end,
            Wish::Progress => true,
        }
    }

    fn is_covered(&self, wish: Wish) -> bool {
        match wish {
            Wish::Acknowledged(end) | Wish::Written(end) => {
                self.flushing.load(Ordering::Relaxed) >= end
            }
            Wish::Progress => true,
        }
    }

    fn can_lead(&self, sync: bool) -> bool {
        let reached = if sync { &self.durable } else { &self.written };
        self.appended.load(Ordering::SeqCst) > reached.load(Ordering::SeqCst)
    }

    fn lead(&self, flush: &mut Flush, sync: bool) -> Result<()> {
        self.check()?;
        let (end, seq) = {
            let tail = self.tail.lock();
            flush.skip(tail.skipped);
            (tail.lsn, tail.seq)
        };
        if !sync {
            // In pieces: whoever waits for room in the ring goes on meanwhile.
            // Records of a piece are counted with the last one.
            let piece = flush.lsn + PIECE_BYTES;
            let (end, seq) = if end > piece {
                (piece, flush.seq)
            } else {
                (end, seq)
            };
            return self.write(flush, end, seq);
        }
        self.flushing.store(end, Ordering::Relaxed);
        let before = flush.lsn;
        let durable = self.durable.load(Ordering::Relaxed);
        if self.start_writeback && end > before {
            self.write(flush, end, seq)?;
            let offset = self.volume.offset(before);
            self.volume.file.start_writeback(offset, end - before);
        }
        if end == flush.lsn && end == durable {
            return Ok(());
        }
        let number = flush.syncs;
        if end > flush.lsn {
            // SAFETY: the range lies below the tail as it was under its lock, so
            // its bytes are copied and nobody writes to them; their ring space
            // is not used again before `written` passes them.
            let parts = unsafe { self.ring.read(flush.lsn, (end - flush.lsn) as usize) };
            let write = || self.volume.write(flush.lsn, &parts, true);
            self.synced(|| self.turns.gather.timed(number, now, write))?;
            self.written_to(flush, end, seq);
        } else {
            let sync = || self.volume.file.sync_data();
            self.synced(|| self.turns.gather.timed(number, now, sync))?;
        }
        flush.syncs = flush.syncs.wrapping_add(1);
        self.turns.counters.syncs.add_alone(1);
        let placed = self.tail.lock().seq;
        let served_from = self.durable_seq.load(Ordering::Relaxed) + 1;
        self.turns.gather.served(placed.saturating_sub(served_from));
        self.check()?;
        self.durable_seq.store(seq - 1, Ordering::Relaxed);
        self.durable.store(end, Ordering::SeqCst);
        Ok(())
    }

    fn waiting(&self) -> Waiting {
        self.waiting
    }

    fn pending(&self) -> (u64, u64) {
        let durable_seq = self.durable_seq.load(Ordering::Relaxed);
        let durable = self.durable.load(Ordering::Relaxed);
        let tail = self.tail.lock();
        (
            (tail.seq - 1).saturating_sub(durable_seq),
            tail.lsn.saturating_sub(durable),
        )
    }
}
