//! Who writes and syncs: leader and followers, for both kinds of log.
//!
//! A committer who is alone takes the straight path: take the flush lock,
//! write, sync, return. Where another one leads, it looks again for a while,
//! letting others run, for as long as that is cheaper than to sleep and be woken
//! (`gather.rs`), and then sleeps until the leader is done; whoever wakes unserved
//! leads next. Before a sync one committer may wait for a crowd on its way, without
//! the lock, and one may leave the lead to those on quicker processors
//! (`processors.rs`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fulgurite_disk::LineStart;

use super::error::{Error, Result};
use super::gather::{Awaited, Ending, Gather, Waiting};
use super::locks::try_lock;
use super::parking::{Outlook, Parking, Wish};
use super::stats::Counters;
use crate::primitives::{
    AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering, SPINS, YIELDS_QUICK, now, spin_loop,
    yield_now,
};

/// Letting others run takes longer than this only where the processors are others'.
const HOGGED: Duration = Duration::from_micros(600);
/// How many who wait for records to be written sleep at once after that.
const HOGGED_WAITS: u32 = 256;

/// How often a committer has looked again since it began or slept, and until when it
/// goes on.
#[derive(Default)]
pub(super) struct Looks {
    turns: u32,
    until: Option<Duration>,
}

/// What committers take turns with, until the log ends.
#[derive(Default)]
#[repr(C)]
pub(super) struct Turns {
    failed: AtomicBool,
    /// Somebody leads, as a hint: to try for the flush lock takes its cache line from the
    /// leader, to look here does not.
    is_led: AtomicBool,
    cause: OnceLock<Error>,
    pub(super) parking: Parking,
    waiting: LineStart,
    pub(super) gather: Gather,
    counting: LineStart,
    pub(super) counters: Counters,
    /// How many more who wait for records to be written sleep at once.
    hogged: AtomicU32,
}

impl Turns {
    /// Ends all committing, for good, and wakes who sleeps. The first cause
    /// stays.
    pub(super) fn end(&self, cause: Error) {
        // A second failure while the first one spreads is a consequence of it.
        let _ = self.cause.set(cause);
        self.failed.store(true, Ordering::SeqCst);
        self.parking.wake_all();
    }

    /// Whether committing ended.
    #[inline]
    pub(super) fn ended(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Lets others run, unless they are strangers: those keep the processor for a time slice,
    /// which is many times as long as a large record takes to be written, and all who wait
    /// lose one. To be woken takes less.
    fn lets_others_run(&self) -> bool {
        let hogged = self.hogged.load(Ordering::Relaxed);
        if hogged > 0 {
            // A turn that two count as one does no harm.
            self.hogged.store(hogged - 1, Ordering::Relaxed);
            return false;
        }
        let start = now();
        yield_now();
        let is_hogged = now().saturating_sub(start) > HOGGED;
        if is_hogged {
            self.hogged.store(HOGGED_WAITS, Ordering::Relaxed);
        }
        !is_hogged
    }

    /// Fails once the log is poisoned or closed.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.ended() {
            Err(self.failure())
        } else {
            Ok(())
        }
    }

    /// What committers are told from then on.
    #[cold]
    pub(super) fn failure(&self) -> Error {
        match self.cause.get() {
            Some(Error::Closed) | None => Error::Closed,
            Some(cause) => Error::Poisoned(Arc::new(cause.clone())),
        }
    }
}

/// Says that somebody leads, for as long as it lives.
struct Leading<'t>(&'t AtomicBool);

impl<'t> Leading<'t> {
    fn begin(is_led: &'t AtomicBool) -> Self {
        is_led.store(true, Ordering::Relaxed);
        Self(is_led)
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A log whose committers take turns in leading.
pub(super) trait Leads {
    /// What a leader goes on from. Whoever holds its lock leads.
    type Flush;

    fn turns(&self) -> &Turns;

    fn flush(&self) -> &Mutex<Self::Flush>;

    /// Whether an acknowledgement needs a sync at all.
    fn is_synced(&self) -> bool;

    /// Whether leading would get anything done.
    fn can_lead(&self, sync: bool) -> bool;

    /// Writes what is there and, with `sync`, goes on to the acknowledgement.
    fn lead(&self, flush: &mut Self::Flush, sync: bool) -> Result<()>;

    /// What leaders wait for.
    fn waiting(&self) -> Waiting;

    /// The records and bytes that a leader would acknowledge now.
    fn pending(&self) -> (u64, u64);

    /// Whether a wish came true. `Progress` always did, where a leader asks.
    fn is_met(&self, wish: Wish) -> bool;

    /// Whether the flush in progress, or the last one, goes as far as a wish
    /// wants.
    fn is_covered(&self, wish: Wish) -> bool;

    /// Whether somebody leads.
    fn is_led(&self) -> bool {
        try_lock(self.flush()).is_none()
    }

    /// Leads once, unless somebody does already or waits for a crowd to do it. Lets
    /// go of the flush lock before it returns.
    fn try_lead(&self, sync: bool, done: impl Fn() -> bool) -> Option<Result<()>> {
        let is_led = &self.turns().is_led;
        if is_led.load(Ordering::Relaxed) {
            return None;
        }
        let mut flush = if sync && self.is_synced() {
            self.gathered(done)?
        } else {
            try_lock(self.flush())?
        };
        let _leading = Leading::begin(is_led);
        Some(self.lead(&mut flush, sync))
    }

    /// The flush lock, once the crowd is there that is worth waiting for. Not where
    /// the caller is `done` meanwhile: the others wait for themselves.
    fn gathered(&self, done: impl Fn() -> bool) -> Option<MutexGuard<'_, Self::Flush>> {
        let gather = &self.turns().gather;
        let awaited = gather.awaited(self.waiting());
        let is_here = || {
            let awaited = awaited.as_ref();
            awaited.is_none_or(|awaited| awaited.is_here(self.pending()))
        };
        if self.waiting() != Waiting::Never && is_here() && gather.leaves_lead() {
            return None;
        }
        let Some(awaited) = &awaited else {
            return try_lock(self.flush());
        };
        if gather.is_open() {
            // Who waits may have lost its processor.
            let ending = match is_here() {
                true => Ending::Came,
                false if gather.is_overdue(awaited) => Ending::InVain,
                false => return None,
            };
            self.close(awaited, ending);
            return try_lock(self.flush());
        }
        let flush = try_lock(self.flush())?;
        if is_here() {
            return Some(flush);
        }
        let opens = !done() && gather.open();
        // Who was refused the lock meanwhile and sleeps relies on us: we wait now, or
        // look again before we sleep, or wake it below.
        drop(flush);
        if opens {
            let overtaken = || self.is_led() || done() || self.turns().ended();
            let ending = gather.wait(awaited, is_here, overtaken)?;
            self.close(awaited, ending);
            if ending != Ending::Overtaken {
                return try_lock(self.flush());
            }
        } else if !done() {
            return None;
        }
        // Whoever led may have looked for sleepers before we let go of them.
        self.flush_ended();
        None
    }

    fn close(&self, awaited: &Awaited, ending: Ending) {
        if let Some(time) = self.turns().gather.close(awaited, ending) {
            self.turns().counters.gathered(time);
        }
    }

    /// After the flush lock was let go.
    fn flush_ended(&self) {
        self.turns().parking.flush_ended(|wish| self.is_met(wish));
    }

    /// Works or waits until `done`, woken where `wish` comes true.
    fn until(&self, done: impl Fn() -> bool, wish: Wish) -> Result<()> {
        let sync = wish.wants_sync();
        let mut looks = Looks::default();
        loop {
            if done() {
                return Ok(());
            }
            self.turns().check()?;
            if self.can_lead(sync)
                && let Some(result) = self.try_lead(sync, &done)
            {
                self.flush_ended();
                result?;
                continue;
            }
            if !self.looks_again(&mut looks, wish) {
                self.turns().counters.parks.add(1);
                self.sleep(&done, wish);
                looks = Looks::default();
            }
        }
    }

    /// Spins or lets others run; false where it is better to sleep. Where a sync is
    /// quick, whoever takes the processor for long mostly commits in that time, and to
    /// sleep would cost more than it; who waits until large records are written sees
    /// whether that is so.
    fn looks_again(&self, looks: &mut Looks, wish: Wish) -> bool {
        looks.turns += 1;
        let gather = &self.turns().gather;
        if self.is_synced() && !gather.sync_is_quick() {
            return gather.goes_on(looks.turns, &mut looks.until);
        }
        match looks.turns {
            ..=SPINS => spin_loop(),
            _ if looks.turns > SPINS + YIELDS_QUICK => return false,
            _ if matches!(wish, Wish::Written(_)) => return self.turns().lets_others_run(),
            _ => yield_now(),
        }
        true
    }

    fn sleep(&self, done: &impl Fn() -> bool, wish: Wish) {
        let is_covered = |wish| self.is_covered(wish);
        self.turns().parking.park(wish, is_covered, || {
            if done() || self.turns().check().is_err() {
                Outlook::GoOn
            } else if !self.can_lead(wish.wants_sync()) {
                Outlook::Starved
            } else if self.is_led() || (wish.wants_sync() && self.turns().gather.is_open()) {
                Outlook::Led
            } else {
                Outlook::GoOn
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::scheduled;
    use super::*;

    /// All eight who wrote large records beside programs that compute lost a time slice each
    /// time one of them waited for the one before.
    #[test]
    fn who_waits_for_records_to_be_written_sleeps_where_others_have_the_processors() {
        scheduled(|| {
            let turns = Turns::default();
            turns.hogged.store(2, Ordering::Relaxed);
            assert!(!turns.lets_others_run());
            assert!(!turns.lets_others_run());
            assert_eq!(turns.hogged.load(Ordering::Relaxed), 0);
            let stays = turns.lets_others_run();
            let hogged = turns.hogged.load(Ordering::Relaxed);
            assert_eq!(stays, hogged == 0, "{hogged} more sleep");
        });
    }
}
