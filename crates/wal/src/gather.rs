//! How long committers wait for others before one of them leads, and look again
//! before they sleep.
//!
//! Without a wait a crowd falls into two halves that take turns: while one
//! half's sync runs the other half arrives, so two syncs serve it once. A crowd
//! that needs the time g to be there again had better be waited for, until as
//! many records are there as it brought last time, where g is less than a sync's
//! time τ. So it is waited for
//!
//! - at most τ;
//! - only where at least two committers were waiting when the last sync ended:
//!   a lone committer is never delayed;
//! - only where that lately went well: after a wait in vain the next [`REST_MIN`]
//!   syncs follow each other, twice as many after the next one, up to
//!   [`REST_MAX`]; each crowd that comes in time halves that.
//!
//! A caller may also name a number of records or bytes to wait for, and how
//! long at most.
//!
//! One committer waits at a time, and holds no lock while it does: whoever makes
//! the crowd complete leads, without a need for the waiter to get a processor
//! first. Whoever ends the waiting leads next, or finds that somebody does, or
//! wakes the sleepers; so they can rely on it as on a leader.
//!
//! The others of a crowd let others run (`giving_way.rs`) for two syncs' time, where
//! syncs are so short that sleeping would take a good part of one, and sleep after that
//! (ADR 48). Which of them leads depends on the processors they are on, too
//! (`processors.rs`).

use std::time::Duration;

use super::giving_way::{GivingWay, nap};
use super::processors::Processors;
use crate::primitives::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, QUICK_SYNC_NANOS, YIELDS_SLOW, now,
    processor,
};

/// Up to this time of a sync a crowd stays awake through it: to sleep and be woken takes
/// 5 µs, where the processor sleeps too 20 to 50, in a virtual machine whose host is
/// busy more than 100.
const PATIENT_SYNC_NANOS: u32 = 300_000;
/// Every how many syncs one is timed where they are quick, and changes what is known of
/// their time in any case; reading the clock costs a tenth of a commit on a memory file
/// system.
const TIMED_EVERY: u32 = 16;
/// How many syncs follow each other after a crowd was waited for in vain, at least
/// and at most.
const REST_MIN: u32 = 2;
const REST_MAX: u32 = 4096;

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
    /// Whether a committer waits for a crowd, and since when, in nanoseconds.
    is_open: AtomicBool,
    opened: AtomicU64,
    /// How many more syncs go on without waiting, and how many after the last wait in
    /// vain, less what crowds that came took off.
    resting: AtomicU32,
    rest: AtomicU32,
    giving_way: GivingWay,
    processors: Processors,
}

/// What is waited for, and how long at most.
pub(super) struct Awaited {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) at_most: Duration,
    /// Also where others have the processors: a caller asked for it.
    pub(super) anyway: bool,
}

impl Awaited {
    /// Whether the records and bytes that a leader would acknowledge are enough.
    pub(super) fn is_here(&self, (records, bytes): (u64, u64)) -> bool {
        records >= self.records || bytes >= self.bytes
    }
}

/// How the waiting for a crowd ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The crowd is there.
    Came,
    /// The time is over.
    InVain,
    /// Others have the processors, which says nothing about the crowd.
    Hindered,
    /// Somebody leads, or led, who did not know of it; or the log ended.
    Overtaken,
}

/// Counts a committer for as long as it waits.
pub(super) struct Present<'g>(&'g Gather);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.committers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gather {
    /// Counts a committer. Not where syncs are quick: no crowd is waited for there.
    pub(super) fn enter(&self) -> Option<Present<'_>> {
        if self.sync_is_quick() {
            return None;
        }
        self.committers.fetch_add(1, Ordering::Relaxed);
        Some(Present(self))
    }

    /// Lets others run who may be on their way here; false, and nothing done, where they
    /// are strangers.
    fn give_way(&self) -> bool {
        let committers = self.committers.load(Ordering::Relaxed);
        self.giving_way.give_way(committers)
    }

    /// The same for the one of a crowd that has looked so often, if it had better look again
    /// than sleep; `until` when, once that is known.
    pub(super) fn goes_on(&self, turns: u32, until: &mut Option<Duration>) -> bool {
        let at_first = (..=YIELDS_SLOW).contains(&turns) && !self.giving_way.rests();
        (at_first || self.is_patient(until)) && self.give_way()
    }

    /// Whether one of a crowd had better look again than sleep; `until` when, once that
    /// is known.
    fn is_patient(&self, until: &mut Option<Duration>) -> bool {
        let now = now();
        let limit = match *until {
            Some(limit) => limit,
            None => now.saturating_add(patience(
                self.sync_nanos.load(Ordering::Relaxed),
                self.crowd.load(Ordering::Relaxed),
            )),
        };
        *until = Some(limit);
        now < limit
    }

    /// Whether one who could lead leaves that to others of the crowd, who look again on a
    /// processor from where syncs are quicker.
    pub(super) fn leaves_lead(&self) -> bool {
        is_crowd(self.committers.load(Ordering::Relaxed))
            && self.stays_awake()
            && !self.giving_way.rests()
            && self.processors.leaves_lead(processor(), now)
    }

    /// Whether a crowd looks again through a sync.
    fn stays_awake(&self) -> bool {
        let sync = self.sync_nanos.load(Ordering::Relaxed);
        patience(sync, self.crowd.load(Ordering::Relaxed)) > Duration::ZERO
    }

    /// Whether sleeping costs more than a sync.
    pub(super) fn sync_is_quick(&self) -> bool {
        self.sync_nanos.load(Ordering::Relaxed) < QUICK_SYNC_NANOS
    }

    /// What a leader had better wait for, if for anything.
    pub(super) fn awaited(&self, waiting: Waiting) -> Option<Awaited> {
        match waiting {
            Waiting::Never => None,
            Waiting::Adaptive => self.returning_crowd(),
            Waiting::Batch {
                records,
                bytes,
                at_most,
            } => Some(Awaited {
                records,
                bytes,
                at_most,
                anyway: true,
            }),
        }
    }

    fn returning_crowd(&self) -> Option<Awaited> {
        if self.resting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        Some(Awaited {
            records: self.crowd_records.load(Ordering::Relaxed),
            bytes: u64::MAX,
            at_most: crowd_wait(
                self.sync_nanos.load(Ordering::Relaxed),
                self.crowd.load(Ordering::Relaxed),
            )?,
            anyway: false,
        })
    }

    /// Begins to wait for a crowd; false where somebody does already. Under the flush
    /// lock, so one at a time.
    pub(super) fn open(&self) -> bool {
        if self.is_open() {
            return false;
        }
        self.opened.store(nanos(now()), Ordering::Relaxed);
        self.is_open.store(true, Ordering::SeqCst);
        true
    }

    /// Whether a committer waits for a crowd.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Whether it has been waited for the crowd for as long as that is worth it.
    pub(super) fn is_overdue(&self, awaited: &Awaited) -> bool {
        self.open_for() > awaited.at_most
    }

    /// How long it is since the waiting began.
    fn open_for(&self) -> Duration {
        let opened = Duration::from_nanos(self.opened.load(Ordering::Relaxed));
        now().saturating_sub(opened)
    }

    /// Waits for the others, who find it open meanwhile: how that ended, unless
    /// somebody else ended it.
    pub(super) fn wait(
        &self,
        awaited: &Awaited,
        is_here: impl Fn() -> bool,
        is_overtaken: impl Fn() -> bool,
    ) -> Option<Ending> {
        let until = now().saturating_add(awaited.at_most);
        loop {
            let mut hogged = !self.give_way();
            if hogged && awaited.anyway {
                nap();
                hogged = false;
            }
            if !self.is_open() {
                return None;
            } else if is_here() {
                if !self.leaves_lead() {
                    return Some(Ending::Came);
                }
            } else if is_overtaken() {
                return Some(Ending::Overtaken);
            } else if hogged {
                return Some(Ending::Hindered);
            } else if now() >= until {
                return Some(Ending::InVain);
            }
        }
    }

    /// Ends the waiting: how long it was, unless somebody else ended it.
    pub(super) fn close(&self, awaited: &Awaited, ending: Ending) -> Option<Duration> {
        if !self.is_open.swap(false, Ordering::SeqCst) {
            return None;
        }
        let spent = self.open_for();
        let in_time = match ending {
            Ending::Came => spent <= awaited.at_most,
            Ending::InVain => false,
            Ending::Hindered | Ending::Overtaken => return Some(spent),
        };
        let rest = rest_after(self.rest.load(Ordering::Relaxed), in_time);
        self.rest.store(rest, Ordering::Relaxed);
        if !in_time {
            self.resting.store(rest, Ordering::Relaxed);
        }
        Some(spent)
    }

    /// Runs a sync, the `number`-th, and times it by a clock, now and then where it is quick.
    pub(super) fn timed<T>(
        &self,
        number: u32,
        now: impl Fn() -> Duration,
        sync: impl FnOnce() -> T,
    ) -> T {
        if !number.is_multiple_of(TIMED_EVERY) && self.sync_is_quick() {
            return sync();
        }
        let from = processor();
        let start = now();
        let result = sync();
        let nanos = u32::try_from(nanos(now().saturating_sub(start))).unwrap_or(u32::MAX);
        if number.is_multiple_of(TIMED_EVERY) {
            let smoothed = match number {
                0 => nanos,
                _ => smooth(self.sync_nanos.load(Ordering::Relaxed), nanos),
            };
            self.sync_nanos.store(smoothed, Ordering::Relaxed);
        }
        self.processors.led(from, nanos);
        result
    }

    /// Takes note, at the end of a sync, of the `records` it served and that
    /// came meanwhile. Before anybody is told.
    pub(super) fn served(&self, records: u64) {
        self.crowd_records.store(records, Ordering::Relaxed);
        self.crowd
            .store(self.committers.load(Ordering::Relaxed), Ordering::Relaxed);
        let resting = self.resting.load(Ordering::Relaxed);
        if resting > 0 {
            self.resting.store(resting - 1, Ordering::Relaxed);
        }
        self.processors.ended();
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

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether so many committers are a crowd.
fn is_crowd(committers: usize) -> bool {
    committers >= 2
}

/// How long a crowd is waited for where a sync takes `nanos`.
fn crowd_wait(nanos: u32, crowd: usize) -> Option<Duration> {
    let is_worth_it = is_crowd(crowd) && nanos >= QUICK_SYNC_NANOS;
    is_worth_it.then(|| Duration::from_nanos(nanos.into()))
}

/// For how long one of a crowd rather looks again than sleeps, where a sync takes
/// `nanos`: for the one under way and its own.
fn patience(nanos: u32, crowd: usize) -> Duration {
    if is_crowd(crowd) && nanos <= PATIENT_SYNC_NANOS {
        Duration::from_nanos(2 * u64::from(nanos))
    } else {
        Duration::ZERO
    }
}

/// For how many syncs no crowd is waited for after the next wait in vain, once a
/// crowd came in time or not.
pub(super) fn rest_after(rest: u32, in_time: bool) -> u32 {
    match in_time {
        true => rest / 2,
        false => (rest * 2).clamp(REST_MIN, REST_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::scheduled;
    use super::*;

    #[test]
    fn a_lone_committer_is_never_delayed() {
        assert_eq!(crowd_wait(5_000_000, 1), None);
        assert_eq!(crowd_wait(5_000_000, 0), None);
    }

    #[test]
    fn a_crowd_is_waited_for_no_longer_than_a_sync_and_not_where_that_is_quick() {
        assert_eq!(crowd_wait(1_000_000, 2), Some(Duration::from_millis(1)));
        assert_eq!(crowd_wait(10_000, 64), Some(Duration::from_micros(10)));
        assert_eq!(crowd_wait(9_999, 64), None);
        assert!(crowd_wait(u32::MAX, usize::MAX).is_some());
    }

    /// Who waited for a crowd, and lost its processor to strangers, kept all others from
    /// leading until it had it back.
    #[test]
    fn a_crowd_that_is_overdue_need_not_be_waited_for_by_who_began_to() {
        scheduled(|| {
            let gather = Gather::default();
            let awaited = |at_most| Awaited {
                records: 2,
                bytes: u64::MAX,
                at_most,
                anyway: false,
            };
            assert!(gather.open());
            while !gather.is_overdue(&awaited(Duration::ZERO)) {}
            assert!(!gather.is_overdue(&awaited(Duration::MAX)));
            let another = awaited(Duration::ZERO);
            assert!(gather.close(&another, Ending::InVain).is_some());
            assert!(gather.close(&another, Ending::InVain).is_none());
            let waited = gather.wait(&another, || false, || false);
            assert_eq!(waited, None, "it is told that somebody ended it");
        });
    }

    /// Each wait that others cut short counted as one in vain, so that crowds were not waited
    /// for long after the others had gone.
    #[test]
    fn what_others_cut_short_says_nothing_about_a_crowd() {
        scheduled(|| {
            let gather = Gather::default();
            let awaited = Awaited {
                records: 2,
                bytes: u64::MAX,
                at_most: Duration::MAX,
                anyway: false,
            };
            let resting = || gather.resting.load(Ordering::Relaxed);
            for ending in [Ending::Hindered, Ending::Overtaken] {
                assert!(gather.open() && gather.close(&awaited, ending).is_some());
                assert_eq!(resting(), 0, "{ending:?}");
            }
            assert!(gather.open() && gather.close(&awaited, Ending::InVain).is_some());
            assert_eq!(resting(), REST_MIN);
        });
    }

    #[test]
    fn a_crowd_stays_awake_for_two_syncs_unless_they_are_long() {
        assert_eq!(patience(100_000, 2), Duration::from_micros(200));
        assert_eq!(patience(300_000, 64), Duration::from_micros(600));
        assert_eq!(patience(300_001, 64), Duration::ZERO);
        assert_eq!(patience(100_000, 1), Duration::ZERO);
    }

    #[test]
    fn a_crowd_that_does_not_come_is_waited_for_ever_more_rarely() {
        let in_vain: Vec<u32> =
            std::iter::successors(Some(0), |rest| Some(rest_after(*rest, false)))
                .take(14)
                .collect();
        let doubled = [
            0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096,
        ];
        assert_eq!(in_vain, doubled);
        assert_eq!(rest_after(rest_after(64, true), false), 64);
        assert_eq!((0..13).fold(4096, |rest, _| rest_after(rest, true)), 0);
    }

    #[test]
    fn one_slow_sync_is_not_believed_and_many_are() {
        let once = smooth(2_000, 4_000_000);
        assert!(once < 4_000, "{once}");
        let often = (0..30).fold(2_000, |before, _| smooth(before, 4_000_000));
        assert!(often > 3_000_000, "{often}");
        assert_eq!(smooth(4_000, 4_000), 4_000);
    }
}
