//! Room for records in the file.
//!
//! Three things bound where records may be placed, and `until` is the least of
//! them: the log's limit, counted from its beginning; on the file's first lap
//! the blocks that the file system has *reserved*, so that a full disk is an
//! error of the append and not of a later write; and, for a moment, a *fence*
//! in front of a piece that is being filled with zeros.
//!
//! Zeros are written and synced ahead of committers, whose syncs then find
//! nothing to write but data. Who appends without flushing has no use for that
//! and does not wait for it: such records go to reserved blocks that were not
//! prepared. So zeros must never meet a record. They are written only behind
//! the fence, and the fence counts only if, looked at under the tail's lock,
//! no record was placed behind it.
//!
//! A failed reservation or zero leaves the log as it was; a failed sync or
//! head poisons it.

use std::time::Instant;

use super::core::Core;
use super::error::{Error, Result};
use super::generation::fill_with_zeros;
use super::locks::{lock, try_lock, wait, wait_at_most};
use super::options::Preallocation;
use super::volume::{BLOCK, START};
use crate::primitives::{AtomicU64, Condvar, Mutex, Ordering};
use crate::primitives::{SOLO_AHEAD_BYTES, SOLO_LEAD_BYTES, SOLO_PIECE_BYTES};
use crate::primitives::{SOLO_STEP_BYTES_MAX, SOLO_STEP_BYTES_MIN};

/// Where there is nothing left to reserve, to prepare, or no fence.
const NONE: u64 = u64::MAX;

/// How far records may go. All are log positions.
pub(super) struct Room {
    until: AtomicU64,
    reserved: AtomicU64,
    /// Zeros, or whatever stands for them, are durable up to here.
    prepared: AtomicU64,
    fence: AtomicU64,
    /// Held while more is reserved, and while more is prepared.
    reserving: Mutex<()>,
    preparing: Mutex<()>,
    /// Counts the events that may have made room.
    epoch: Mutex<u64>,
    made: Condvar,
}

impl Room {
    /// Room in a file that holds records up to `end`, was prepared up to
    /// `prepared` and grows as `how` says.
    pub(super) fn new(end: u64, prepared: u64, capacity: u64, how: Preallocation) -> Self {
        let behind_records = end.next_multiple_of(BLOCK);
        let ready = match how {
            Preallocation::None => NONE,
            _ => all_of(prepared.max(behind_records), capacity),
        };
        Self {
            until: AtomicU64::new(0),
            reserved: AtomicU64::new(ready),
            prepared: AtomicU64::new(ready),
            fence: AtomicU64::new(NONE),
            reserving: Mutex::default(),
            preparing: Mutex::default(),
            epoch: Mutex::default(),
            made: Condvar::default(),
        }
    }

    /// Up to where records may be placed.
    pub(super) fn until(&self) -> u64 {
        self.until.load(Ordering::Acquire)
    }

    /// From which position on the file should be prepared further.
    pub(super) fn low_at(&self) -> u64 {
        self.prepared
            .load(Ordering::Relaxed)
            .saturating_sub(SOLO_AHEAD_BYTES)
    }

    /// Wakes all who wait for room, to look again.
    pub(super) fn changed(&self) {
        *lock(&self.epoch) += 1;
        self.made.notify_all();
    }
}

/// `position`, or that there is nothing more where that is the whole file.
fn all_of(position: u64, capacity: u64) -> u64 {
    if position < capacity { position } else { NONE }
}

/// Where the file ends after its next step beyond `from`.
fn step_from(from: u64, capacity: u64) -> u64 {
    let step = from.clamp(SOLO_STEP_BYTES_MIN, SOLO_STEP_BYTES_MAX);
    (from + step).next_multiple_of(BLOCK).min(capacity)
}

/// Keeps records from being placed behind it.
struct Fence<'c> {
    core: &'c Core,
}

impl Drop for Fence<'_> {
    fn drop(&mut self) {
        self.core.room.fence.store(NONE, Ordering::Relaxed);
        self.core.update_room();
    }
}

impl Core {
    /// Recomputes up to where records may be placed, after a change of what
    /// bounds it.
    pub(super) fn update_room(&self) {
        let room = &self.room;
        {
            // Under the lock, or an older result could replace a newer one.
            let _epoch = lock(&room.epoch);
            let until = (self.head() + self.volume.capacity)
                .min(room.reserved.load(Ordering::Relaxed))
                .min(room.fence.load(Ordering::Relaxed));
            room.until.store(until, Ordering::Release);
        }
        room.changed();
    }

    /// Waits or reserves blocks until records may reach `end`.
    #[cold]
    pub(super) fn make_room(&self, end: u64) -> Result<()> {
        let room = &self.room;
        let start = Instant::now();
        loop {
            let epoch = *lock(&room.epoch);
            self.check()?;
            if end <= room.until() {
                return Ok(());
            }
            let is_full = end > self.head() + self.volume.capacity;
            if !is_full && end > room.reserved.load(Ordering::Acquire) {
                self.reserve(end)?;
                continue;
            }
            if is_full {
                self.turns.counters.pressure_waits.add(1);
            }
            let mut current = lock(&room.epoch);
            while *current == epoch {
                if !is_full {
                    // A fence, which stands as long as a piece takes to write.
                    current = wait(&room.made, current);
                    continue;
                }
                let left = self.append_timeout.saturating_sub(start.elapsed());
                if left.is_zero() {
                    return Err(Error::Full {
                        limit_bytes: self.volume.capacity,
                    });
                }
                current = wait_at_most(&room.made, current, left);
            }
        }
    }

    /// Reserves blocks up to `end` and a step further.
    fn reserve(&self, end: u64) -> Result<()> {
        let room = &self.room;
        let _alone = lock(&room.reserving);
        let (from, capacity) = (room.reserved.load(Ordering::Relaxed), self.volume.capacity);
        if end <= from {
            return Ok(());
        }
        let to = step_from(from, capacity).max(end.next_multiple_of(BLOCK).min(capacity));
        self.volume.file.allocate(START + from, to - from)?;
        self.turns.counters.extensions.add(1);
        room.reserved.store(all_of(to, capacity), Ordering::Release);
        self.update_room();
        Ok(())
    }

    /// Whether zeros should be written ahead of records that end at `end`:
    /// there are few left, and the log is flushed as it goes.
    pub(super) fn is_low(&self, end: u64) -> bool {
        let unflushed = end.saturating_sub(self.durable.load(Ordering::Relaxed));
        end > self.room.low_at() && unflushed <= SOLO_AHEAD_BYTES
    }

    /// Prepares the file further ahead, where that is called for.
    pub(super) fn prepare_ahead(&self) -> Result<()> {
        let room = &self.room;
        // Who holds this is about it.
        let Some(_alone) = try_lock(&room.preparing) else {
            return Ok(());
        };
        let end = self.appended();
        if !self.is_low(end) {
            return Ok(());
        }
        let capacity = self.volume.capacity;
        let prepared = room.prepared.load(Ordering::Relaxed);
        let from = prepared.max((end + SOLO_LEAD_BYTES).next_multiple_of(BLOCK));
        if from >= capacity {
            // What is left of the first lap is not worth it.
            room.prepared.store(NONE, Ordering::Relaxed);
            return Ok(());
        }
        let to = step_from(from, capacity);
        self.reserve(to)?;
        if self.preallocation == Preallocation::ZeroFill && !self.fill(from, to)? {
            return Ok(());
        }
        self.synced(|| self.volume.file.sync_data())?;
        let mut head = lock(&self.head);
        let mut header = head.header;
        header.prepared = to;
        header.update += 1;
        self.write_header(&mut head, header)?;
        room.prepared.store(all_of(to, capacity), Ordering::Relaxed);
        Ok(())
    }

    /// Writes zeros from one position to another; false if records came first.
    fn fill(&self, from: u64, to: u64) -> Result<bool> {
        let mut at = from;
        while at < to {
            let end = (at + SOLO_PIECE_BYTES).min(to);
            let Some(_fence) = self.fence_off(at) else {
                return Ok(false);
            };
            fill_with_zeros(&*self.volume.file, at, end)?;
            at = end;
        }
        Ok(true)
    }

    /// A fence at `position`, if no record was placed behind that.
    fn fence_off(&self, position: u64) -> Option<Fence<'_>> {
        self.room.fence.store(position, Ordering::Relaxed);
        let fence = Fence { core: self };
        self.update_room();
        let mut tail = self.tail.lock();
        // Whoever has the lock after this finds the fence: here if it goes by
        // what is known to be free, in `until` if it looks anew.
        tail.free_until = tail.free_until.min(position);
        (tail.lsn <= position).then_some(fence)
    }
}
