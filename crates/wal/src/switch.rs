//! The life of a generation: prepared in the background, switched to under the
//! caller's commit lock, recycled once a durable checkpoint covers it.
//!
//! What a crash finds, step by step. Let `a` be the current generation and `S`
//! the sequence number of the last durable checkpoint.
//!
//! 1. *Preparing `a+1`, first time*: a file with a passing name. It is removed
//!    at the next start. It gets its name only after all of it was synced.
//! 2. *Preparing `a+1` in the file of `a-1`*: `a-1` was recycled, so all of its
//!    records are at most `S`, and recovery needs none of them, whatever it
//!    finds there. The two copies of the head are replaced one after the other,
//!    each synced, so one of them is always whole: it says `a-1` or `a+1`.
//! 3. *Prepared, not switched*: `a+1` has a head and no record of its salt.
//! 4. *Switched*: in `full` mode nothing is written to `a+1` before the older file
//!    is written to its end and synced. So a record found in `a+1` implies that `a`
//!    was durable (its begin record's mark says so); and if `a` then has an
//!    unreadable record, that is rot. In the other modes `a+1` may hold records
//!    before `a` is whole, and before its own beginning is there; no mark says
//!    that what is missing was ever synced, and a gap is a lost tail.
//! 5. *Checkpoint durable, not recycled*: `S` covers `a`; replay skips it.
//! 6. *Recycled*: as 2. A commit waits for room until then, so the log never
//!    holds more than two generations.

use std::sync::Arc;

use fulgurite_disk::{DiskErrorKind, DiskFile};

use super::error::{Error, Result};
use super::generation::{self, CAPACITY_BYTES_MIN, Generation, extended_capacity};
use super::header::{Header, RECORDS_START};
use super::in_place::AHEAD_BYTES;
use super::leading::Leads;
use super::locks::lock;
use super::record::EMPTY_RECORD_BYTES;
use super::twin::{Durability, GenerationId, Placement, TwinLog};
use crate::primitives::Ordering;

/// What the next generation is made from.
struct Plan {
    header: Header,
    slot: usize,
    capacity: u64,
    idle: Option<Generation>,
}

impl TwinLog {
    /// Makes the next generation ready: its file is there, headed, filled with
    /// zeros and durable, with its name. For a background thread. Does nothing
    /// if one is ready.
    ///
    /// # Errors
    /// `NotReady` while the older generation is not recycled; `Disk` if there
    /// is no room (to be tried again later); `Poisoned` after a failed sync.
    pub fn prepare_switch(&self) -> Result<()> {
        let _background = lock(&self.background);
        self.check()?;
        // With that it waits for who still extends the file of a generation that is gone.
        self.make_sure_of_first_file()?;
        let Some(plan) = self.plan_next()? else {
            return Ok(());
        };
        let (number, slot, salt) = (plan.header.number, plan.slot, plan.header.salt);
        let (file, capacity) = self.make_file(plan)?;
        let mut next = Generation {
            number,
            slot,
            salt,
            base: 0,
            capacity,
        };
        file.will_write(RECORDS_START, 2 * AHEAD_BYTES);
        loop {
            let mut placement = lock(&self.placement);
            let needed = Placement::capacity_for_permits(self.outstanding.load(Ordering::SeqCst));
            if needed <= next.capacity {
                placement.prepared = Some(next);
                return Ok(());
            }
            drop(placement);
            let extended = extended_capacity(next.capacity, needed);
            let filled = self
                .fill_at_pace(&**file, next.capacity, extended)
                .and_then(|()| self.sync_file(&**file));
            if let Err(error) = filled {
                // The file has its name and is no other's: the next try goes on with it.
                lock(&self.placement).idle = Some(next);
                return Err(error);
            }
            next.capacity = extended;
        }
    }

    /// `None` if one is ready already.
    fn plan_next(&self) -> Result<Option<Plan>> {
        let placement = lock(&self.placement);
        if placement.prepared.is_some() {
            return Ok(None);
        }
        if placement.previous.is_some() {
            return Err(Error::NotReady("the older generation is not recycled yet"));
        }
        let header = Header {
            database: self.database,
            number: placement.current.number + 1,
            salt: self.options.fresh_salt(),
            durable: self.synced_seq.load(Ordering::Acquire),
        };
        let capacity = placement.current.capacity.max(CAPACITY_BYTES_MIN);
        let slot = 1 - placement.current.slot;
        Ok(Some(Plan {
            header,
            slot,
            capacity,
            idle: placement.idle,
        }))
    }

    fn make_file(&self, plan: Plan) -> Result<(&Arc<dyn DiskFile>, u64)> {
        let Some(idle) = plan.idle else {
            self.check_names()?;
            let file = self.make_named_file(&plan.header, plan.slot, &[], plan.capacity)?;
            // From now on the file is reused, also if a later step fails.
            return Ok((self.keep_file(plan.slot, file)?, plan.capacity));
        };
        let file = self.file(idle.slot)?;
        let capacity = plan.capacity.max(idle.capacity);
        self.fill_at_pace(&**file, idle.capacity, capacity)?;
        let sync = |file: &dyn DiskFile| self.sync_file(file);
        plan.header.write(&**file, &sync)?;
        lock(&self.placement).idle = None;
        Ok((file, capacity))
    }

    /// Makes later records go to the prepared generation. Called under the
    /// commit lock, with the sequence number of the next record: no I/O, no
    /// allocation, no wait. Returns the generation that was current.
    ///
    /// # Errors
    /// `NotReady` if none is prepared, `Misuse` for a wrong sequence number;
    /// nothing has changed then.
    pub fn switch(&self, next_seq: u64) -> Result<GenerationId> {
        let mut placement = lock(&self.placement);
        if next_seq != placement.next_seq {
            return Err(Error::Misuse(
                "a switch was asked for at another sequence number than the next",
            ));
        }
        let Some(mut next) = placement.prepared.take() else {
            return Err(Error::NotReady("no generation is prepared"));
        };
        next.base = placement.tail;
        self.current_base.store(next.base, Ordering::Relaxed);
        self.boundary_seq.store(next_seq - 1, Ordering::Release);
        self.boundary.store(placement.tail, Ordering::Release);
        let old = std::mem::replace(&mut placement.current, next);
        let id = GenerationId(old.number);
        placement.previous = Some(old);
        // The begin record's place.
        placement.tail += EMPTY_RECORD_BYTES;
        self.tail.store(placement.tail, Ordering::SeqCst);
        self.update_room(&placement);
        self.turns.counters.switches.add_alone(1);
        Ok(id)
    }

    /// Gives up a generation that a durable checkpoint covers, and lets waiting
    /// reservations go on. Waits until all of its records are acknowledged.
    ///
    /// # Errors
    /// `Misuse` if it is not the older one of two; `Poisoned`: it is kept.
    pub fn recycle(&self, old: GenerationId) -> Result<()> {
        let _background = lock(&self.background);
        let last = {
            let placement = lock(&self.placement);
            match &placement.previous {
                Some(previous) if previous.number == old.0 => {
                    self.boundary_seq.load(Ordering::Acquire)
                }
                _ => {
                    return Err(Error::Misuse(
                        "only the older one of two generations can be recycled",
                    ));
                }
            }
        };
        self.wait_seq(last)?;
        self.leave(old, last)?;
        let mut placement = lock(&self.placement);
        placement.idle = placement.previous.take();
        self.update_room(&placement);
        drop(placement);
        self.announce_room();
        Ok(())
    }

    /// Makes sure that no leader writes to or syncs the older generation again.
    fn leave(&self, old: GenerationId, last: u64) -> Result<()> {
        let mut flush = lock(&self.flush);
        let result = self.check().and_then(|()| {
            if flush.target.number == old.0 {
                match self.writes_in_place() {
                    true => self.cross_in_place(&mut flush),
                    false => self.cross(&mut flush)?,
                }
            }
            flush.older_unsynced = None;
            // The checkpoint made these durable, if their own sync did not.
            self.synced_seq.fetch_max(last, Ordering::AcqRel);
            Ok(())
        });
        drop(flush);
        self.flush_ended();
        result
    }

    /// Closes the log after a last checkpoint that covers every record: removes
    /// both files, durably. Every later call fails with `Closed`.
    ///
    /// # Errors
    /// `Misuse` if a permit or an unacknowledged record is left; `Poisoned`; `Moved`:
    /// then nothing is removed.
    pub fn close(&self) -> Result<()> {
        let _background = lock(&self.background);
        self.check()?;
        {
            let placement = lock(&self.placement);
            if self.outstanding.load(Ordering::SeqCst) != 0
                || self.acked() + 1 != placement.next_seq
            {
                return Err(Error::Misuse("the log was closed with commits under way"));
            }
            self.poison(Error::Closed);
        }
        self.check_names()?;
        generation::remove_files(&*self.disk, &self.base)
    }

    /// Makes the names of new files durable. A failure poisons, and says so to who asks,
    /// but where no file handle was left to begin with: then the names are made anew.
    pub(super) fn sync_names(&self) -> Result<()> {
        if self.options.durability == Durability::Off {
            return Ok(());
        }
        generation::sync_names(&*self.disk, &self.base).map_err(|error| match error {
            Error::Disk(e) if e.kind == DiskErrorKind::NoHandles => Error::Disk(e),
            error => self.ended_by(error),
        })
    }
}
