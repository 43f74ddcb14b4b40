//! How long a leader waits for others before it writes and syncs.
//!
//! Without a wait a crowd falls into two halves that take turns: while one
//! half's sync runs the other half arrives, so each sync serves half of them.
//! Where a sync is long, the leader waits until as many records are there as
//! the crowd brought last time:
//!
//! - only where waking the crowd takes less than half of the smoothed sync time
//!   τ: otherwise one half had better wake while the other half's sync runs;
//! - only where at least two committers were waiting when the last sync ended:
//!   a lone committer is never delayed;
//! - at most min(τ/4, √(τ/λ)). Arrivals come at about λ = crowd/τ, so the
//!   second bound is τ/√crowd, and no clock need be read to know λ.
//!
//! A caller may also name a number of records or bytes to wait for, and how
//! long at most.

use std::time::Duration;

use crate::primitives::{AtomicU32, AtomicU64, AtomicUsize, Ordering, now, yield_now};

/// Up to this time a sync is quick: sleeping and waking costs more.
const QUICK_SYNC_NANOS: u32 = 10_000;
/// What it takes until a woken committer has its next record in the log: 64 of
/// them took 170 µs on two cores.
const WAKE_NANOS: u32 = 2_500;
/// Letting others run takes longer than this only where the processors are
/// others', who keep them for milliseconds.
const HOGGED: Duration = Duration::from_micros(600);
/// How many times nobody tries that again then.
const HOGGED_TURNS: u32 = 256;
/// Every how many syncs one is timed; reading the clock costs a tenth of a
/// commit on a memory file system.
const TIMED_EVERY: u32 = 16;

/// When a leader stops waiting for more records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// By the measured sync time and the crowd that came back recently.
    #[default]
    Adaptive,
    /// Never: what is there is written.
    Never,
    /// Until a batch of this size is there, or the time is over.
    Batch {
        /// Records to wait for.
        records: u64,
        /// Bytes of records to wait for; what comes first counts.
        bytes: u64,
        /// How long at most.
        at_most: Duration,
    },
}

#[derive(Default)]
pub(super) struct Gather {
    /// Smoothed time of a sync.
    sync_nanos: AtomicU32,
    /// Committers that wait for an acknowledgement now.
    committers: AtomicUsize,
    /// Records and committers there were when the last sync ended.
    crowd_records: AtomicU64,
    crowd: AtomicUsize,
    /// How many more times nobody lets others run.
    hogged: AtomicU32,
}

/// Counts a committer for as long as it waits.
pub(super) struct Present<'g>(&'g Gather);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.committers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gather {
    pub(super) fn enter(&self) -> Present<'_> {
        self.committers.fetch_add(1, Ordering::Relaxed);
        Present(self)
    }

    /// Lets others run who may be on their way here. False, and nothing done,
    /// where strangers lately took the processor instead.
    pub(super) fn give_way(&self) -> bool {
        let hogged = self.hogged.load(Ordering::Relaxed);
        if hogged > 0 {
            // A turn that two count as one does no harm.
            self.hogged.store(hogged - 1, Ordering::Relaxed);
            return false;
        }
        let start = now();
        yield_now();
        if now().saturating_sub(start) > HOGGED {
            self.hogged.store(HOGGED_TURNS, Ordering::Relaxed);
        }
        true
    }

    /// Whether sleeping costs more than a sync.
    pub(super) fn sync_is_quick(&self) -> bool {
        self.sync_nanos.load(Ordering::Relaxed) < QUICK_SYNC_NANOS
    }

    /// Waits until `pending`, the records and bytes not written yet, are as
    /// many as `waiting` asks for. The time spent, if any.
    pub(super) fn wait(
        &self,
        waiting: Waiting,
        pending: impl Fn() -> (u64, u64),
    ) -> Option<Duration> {
        let (records, bytes, at_most) = match waiting {
            Waiting::Never => return None,
            Waiting::Adaptive => {
                let (records, at_most) = self.expected()?;
                (records, u64::MAX, at_most)
            }
            Waiting::Batch {
                records,
                bytes,
                at_most,
            } => (records, bytes, at_most),
        };
        let enough = || {
            let now = pending();
            now.0 >= records || now.1 >= bytes
        };
        if enough() {
            return None;
        }
        let start = now();
        loop {
            // What a caller asked for is waited for whoever has the processors.
            let hogged = !self.give_way() && waiting == Waiting::Adaptive;
            let spent = now().saturating_sub(start);
            if hogged || enough() || spent >= at_most {
                return Some(spent);
            }
        }
    }

    /// The records a crowd will bring, and how long to wait for them.
    fn expected(&self) -> Option<(u64, Duration)> {
        let nanos = self.sync_nanos.load(Ordering::Relaxed);
        let at_most = crowd_wait(nanos, self.crowd.load(Ordering::Relaxed))?;
        Some((self.crowd_records.load(Ordering::Relaxed), at_most))
    }

    /// Runs a sync, the `number`-th, and times it now and then.
    pub(super) fn timed<T>(&self, number: u32, sync: impl FnOnce() -> T) -> T {
        if !number.is_multiple_of(TIMED_EVERY) {
            return sync();
        }
        let start = now();
        let result = sync();
        let nanos = u32::try_from(now().saturating_sub(start).as_nanos()).unwrap_or(u32::MAX);
        let before = self.sync_nanos.load(Ordering::Relaxed);
        let smoothed = if number == 0 {
            nanos
        } else {
            smooth(before, nanos)
        };
        self.sync_nanos.store(smoothed, Ordering::Relaxed);
        result
    }

    /// Takes note, at the end of a sync, of the `records` it served and that
    /// came meanwhile. Before anybody is told.
    pub(super) fn served(&self, records: u64) {
        self.crowd_records.store(records, Ordering::Relaxed);
        self.crowd
            .store(self.committers.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The smoothed time of a sync after one more. One that takes far longer than
/// those before it, since its thread lost the processor, counts as little more
/// than twice as long; a disk that became slow is believed step by step.
fn smooth(before: u32, nanos: u32) -> u32 {
    let believed = nanos.min(
        before
            .saturating_mul(2)
            .saturating_add(QUICK_SYNC_NANOS / 4),
    );
    before - before / 4 + believed / 4
}

/// How long a crowd is waited for where a sync takes `nanos`.
fn crowd_wait(nanos: u32, crowd: usize) -> Option<Duration> {
    let crowd = u32::try_from(crowd).unwrap_or(u32::MAX);
    let is_worth_it = crowd >= 2 && crowd.saturating_mul(WAKE_NANOS) <= nanos / 2;
    let share = crowd.isqrt().max(4);
    is_worth_it.then(|| Duration::from_nanos(u64::from(nanos / share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_committer_is_never_delayed() {
        assert_eq!(crowd_wait(5_000_000, 1), None);
        assert_eq!(crowd_wait(5_000_000, 0), None);
    }

    #[test]
    fn a_crowd_that_wakes_slowly_is_not_waited_for() {
        assert_eq!(crowd_wait(39_999, 8), None);
        assert_eq!(crowd_wait(40_000, 8), Some(Duration::from_micros(10)));
        assert_eq!(crowd_wait(100_000, 64), None);
        assert_eq!(crowd_wait(u32::MAX, usize::MAX), None);
    }

    #[test]
    fn one_slow_sync_is_not_believed_and_many_are() {
        let once = smooth(2_000, 4_000_000);
        assert!(once < 4_000, "{once}");
        let often = (0..30).fold(2_000, |before, _| smooth(before, 4_000_000));
        assert!(often > 3_000_000, "{often}");
        assert_eq!(smooth(4_000, 4_000), 4_000);
    }

    #[test]
    fn the_wait_is_bounded_by_the_sync_time_and_the_crowd() {
        assert_eq!(crowd_wait(1_000_000, 8), Some(Duration::from_micros(250)));
        assert_eq!(crowd_wait(1_000_000, 64), Some(Duration::from_micros(125)));
    }
}
