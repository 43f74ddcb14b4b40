//! Who is reading what: snapshot pins and walks, in one table of slots.
//!
//! A **pin** says "the nodes of the snapshot at this sequence number are in
//! use"; it keeps them from being reclaimed for as long as the slot is held. A
//! **walk** says "I am following frame hints right now"; it keeps evicted
//! frames from being reused, and is short: no I/O, no lock, no wait inside. A slot
//! may pin nothing: its holder walks through what only itself can replace.
//!
//! Protocols:
//! 1. Pinning publishes the number, fences, and reads the moving number again;
//!    if it moved, it starts over with the new one. So whoever reclaims (moves
//!    the number, fences, scans the slots) either sees the pin or is seen by it.
//! 2. A walk makes its slot's ticket odd, fences, and follows hints. Who
//!    evicts clears identities, fences, and waits until each ticket that was
//!    odd has changed; then nobody is left who compared before the clearing.
//!
//! Slots are taken with one compare-and-swap, from a place that a thread tends
//! to return to: every scan reads all slots that were ever used, so threads must not
//! wander through the table. There are [`SLOTS`]; taking one more fails with Busy.

use crate::error::{Error, ErrorKind, Result};
use crate::primitives::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence};
use crate::primitives::{SLOTS, Table, Zeros, spin_loop, yield_now};
use std::cell::Cell;

#[derive(Default)]
struct Slot {
    walker: Walker,
    pin: Pin,
}

// SAFETY: numbers and a flag, 0 and unset by default.
unsafe impl Zeros for Slot {}

/// What the holder of a slot writes all the time.
#[derive(Default)]
#[repr(align(64))]
struct Walker {
    taken: AtomicBool,
    /// Odd while the holder walks.
    ticket: AtomicU64,
}

/// What every scan reads, on a line of its own: a holder that pins nothing leaves it
/// in the caches of those who scan.
#[derive(Default)]
#[repr(align(64))]
struct Pin {
    /// 0: nothing; else the pinned sequence number + 1.
    number: AtomicU64,
}

/// The table of slots.
pub(crate) struct Readers {
    slots: Table<Slot>,
    /// No slot at or above this index was ever taken.
    high: AtomicUsize,
    /// Counts pins made by copying another: a scan that one moved past starts
    /// over.
    copies: AtomicU64,
}

/// A held slot: give it back with [`Readers::release`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

impl SlotId {
    /// The same slot, for who pins in it for its holder; only that one releases it.
    pub(crate) fn same(&self) -> Self {
        Self(self.0)
    }
}

/// After so many pins a thread looks for the lowest free slot again: where others
/// give its slots back it would move upwards.
const SETTLE: usize = 256;

thread_local! {
    /// Where the thread looks first, and how many slots it took.
    static NEAR: Cell<usize> = const { Cell::new(0) };
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

impl Readers {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            slots: Table::new(SLOTS)?,
            high: AtomicUsize::new(0),
            copies: AtomicU64::new(0),
        })
    }

    /// Takes a slot and pins the number that `current` says, following it while
    /// it moves. Returns the slot and the pinned number.
    #[inline]
    pub(crate) fn pin(&self, current: impl Fn() -> u64) -> Result<(SlotId, u64)> {
        let slot = self.take()?;
        let seq = self.pin_in(&slot, current);
        Ok((slot, seq))
    }

    /// Pins, in a slot that pins nothing, the number that `current` says, following it
    /// while it moves. Returns that number.
    #[inline]
    pub(crate) fn pin_in(&self, slot: &SlotId, current: impl Fn() -> u64) -> u64 {
        let pin = &self.slots[slot.0 as usize].pin.number;
        debug_assert_eq!(pin.load(Relaxed), 0, "a slot pins one number");
        let mut seq = current();
        loop {
            pin.store(seq + 1, Relaxed);
            fence(SeqCst);
            let now = current();
            if now == seq {
                return seq;
            }
            seq = now;
        }
    }

    /// Takes a slot for a number that is already pinned by the caller, and stays
    /// so until this returns.
    pub(crate) fn pin_also(&self, seq: u64) -> Result<SlotId> {
        let slot = self.take()?;
        let pin = &self.slots[slot.0 as usize].pin.number;
        pin.store(seq + 1, Release);
        self.copies.fetch_add(1, SeqCst);
        Ok(slot)
    }

    /// Takes a slot that pins nothing.
    #[inline]
    pub(crate) fn take(&self) -> Result<SlotId> {
        let taken = TAKEN.get().wrapping_add(1);
        TAKEN.set(taken);
        let near = if taken.is_multiple_of(SETTLE) {
            0
        } else {
            NEAR.get()
        };
        for step in 0..SLOTS {
            let index = (near + step) % SLOTS;
            let taken = &self.slots[index].walker.taken;
            // The high mark first: who scans after this swap must look here.
            if index >= self.high.load(Relaxed) {
                self.high.fetch_max(index + 1, SeqCst);
            }
            if !taken.load(Relaxed) && taken.compare_exchange(false, true, SeqCst, Relaxed).is_ok()
            {
                NEAR.set(index);
                return Ok(SlotId(index as u32));
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("{SLOTS} snapshots are open already; close some"),
        ))
    }

    /// Ends the pin, if there is one, and frees the slot. The thread comes back to the
    /// lowest that it gave back, in whatever order it does.
    #[inline]
    pub(crate) fn release(&self, slot: &SlotId) {
        NEAR.set(NEAR.get().min(slot.0 as usize));
        let Slot { walker, pin } = &self.slots[slot.0 as usize];
        if pin.number.load(Relaxed) != 0 {
            pin.number.store(0, Release);
        }
        walker.taken.store(false, Release);
    }

    /// Begins a walk. The slot's holder must not walk already.
    #[inline]
    pub(crate) fn walk(&self, slot: &SlotId) -> Walk<'_> {
        let ticket = &self.slots[slot.0 as usize].walker.ticket;
        let began = ticket.load(Relaxed) + 1;
        debug_assert!(began % 2 == 1, "a walk within a walk");
        ticket.store(began, Relaxed);
        fence(SeqCst);
        Walk { ticket, began }
    }

    /// All pinned numbers, unordered, with repetitions.
    pub(crate) fn pinned(&self, out: &mut Vec<u64>) {
        let start = out.len();
        loop {
            let copies = self.copies.load(SeqCst);
            fence(SeqCst);
            for slot in &self.slots[..self.high.load(SeqCst)] {
                let pin = slot.pin.number.load(SeqCst);
                if pin != 0 {
                    out.push(pin - 1);
                }
            }
            if self.copies.load(SeqCst) == copies {
                return;
            }
            out.truncate(start);
        }
    }

    /// Waits until every walk that is under way has ended.
    pub(crate) fn quiesce(&self) {
        fence(SeqCst);
        for slot in &self.slots[..self.high.load(SeqCst)] {
            let seen = slot.walker.ticket.load(Acquire);
            if seen % 2 == 0 {
                continue;
            }
            let mut rounds = 0u32;
            while slot.walker.ticket.load(Acquire) == seen {
                rounds += 1;
                if rounds < 64 {
                    spin_loop();
                } else {
                    yield_now();
                }
            }
        }
    }
}

/// A walk under way; ends when dropped.
pub(crate) struct Walk<'r> {
    ticket: &'r AtomicU64,
    began: u64,
}

impl Drop for Walk<'_> {
    #[inline]
    fn drop(&mut self) {
        self.ticket.store(self.began + 1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_seen_until_released() {
        let readers = Readers::new().unwrap();
        let (first, seq) = readers.pin(|| 7).expect("a slot");
        assert_eq!(seq, 7);
        let second = readers.pin_also(7).expect("a slot");
        let (third, _) = readers.pin(|| 9).expect("a slot");
        let mut pinned = Vec::new();
        readers.pinned(&mut pinned);
        pinned.sort_unstable();
        assert_eq!(pinned, [7, 7, 9]);
        for slot in [&first, &second, &third] {
            readers.release(slot);
        }
        pinned.clear();
        readers.pinned(&mut pinned);
        assert!(pinned.is_empty());
    }

    /// Every transaction that pinned once more while it committed, and every cursor
    /// that outlived its transaction, left its slot for the next one, until each look
    /// at the pins read 4,096 of them.
    #[test]
    fn pins_within_pins_do_not_use_up_the_table() {
        for inner_first in [true, false] {
            let readers = Readers::new().unwrap();
            NEAR.set(0);
            for _ in 0..SLOTS {
                let (outer, _) = readers.pin(|| 1).expect("a slot");
                let inner = readers.pin_also(1).expect("a slot");
                let order = if inner_first {
                    [&inner, &outer]
                } else {
                    [&outer, &inner]
                };
                order.iter().for_each(|slot| readers.release(slot));
            }
            assert_eq!(readers.high.load(SeqCst), 2);
        }
    }

    #[test]
    fn who_has_its_pins_ended_by_others_does_not_use_up_the_table() {
        let readers = Readers::new().unwrap();
        for _ in 0..SLOTS {
            let (outer, _) = readers.pin(|| 1).expect("a slot");
            let inner = readers.pin_also(1).expect("a slot");
            std::thread::scope(|scope| {
                scope.spawn(|| readers.release(&outer));
            });
            readers.release(&inner);
        }
        assert!(readers.high.load(SeqCst) <= SETTLE + 2);
    }

    #[test]
    fn a_moving_number_is_followed() {
        let readers = Readers::new().unwrap();
        let calls = Cell::new(0);
        let (slot, seq) = readers
            .pin(|| {
                calls.set(calls.get() + 1);
                calls.get().min(3)
            })
            .expect("a slot");
        assert_eq!(seq, 3);
        readers.release(&slot);
    }

    #[test]
    fn a_slot_without_a_pin_keeps_nothing_and_can_pin_later() {
        let readers = Readers::new().unwrap();
        let slot = readers.take().expect("a slot");
        let mut pinned = Vec::new();
        readers.pinned(&mut pinned);
        assert!(pinned.is_empty());
        assert_eq!(readers.pin_in(&slot, || 4), 4);
        readers.pinned(&mut pinned);
        assert_eq!(pinned, [4]);
        readers.release(&slot);
        pinned.clear();
        readers.pinned(&mut pinned);
        assert!(pinned.is_empty());
        let again = readers.take().expect("a slot");
        assert_eq!(again, slot, "released, it is the first that is free");
    }

    #[test]
    fn one_snapshot_too_many_is_busy() {
        let readers = Readers::new().unwrap();
        let held: Vec<_> = (0..SLOTS)
            .map(|_| readers.pin_also(1).expect("a slot"))
            .collect();
        let error = readers.pin_also(1).expect_err("none is left");
        assert_eq!(error.kind(), ErrorKind::Busy);
        held.iter().for_each(|slot| readers.release(slot));
    }

    #[test]
    fn quiescing_waits_for_walks() {
        use std::sync::atomic::AtomicBool;
        let readers = Readers::new().unwrap();
        let done = AtomicBool::new(false);
        let (slot, _) = readers.pin(|| 1).expect("a slot");
        let walk = readers.walk(&slot);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                readers.quiesce();
                assert!(done.load(SeqCst), "returned while the walk went on");
            });
            done.store(true, SeqCst);
            drop(walk);
            waiter.join().expect("no panic");
        });
    }
}
