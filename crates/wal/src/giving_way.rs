//! Letting others run, for as long as those are no strangers.
//!
//! Who lets others run hopes for those on their way to the same sync. Where threads
//! that compute want the processors it loses its turn to them instead: a time slice
//! of milliseconds, and Linux takes the rest of its own slice from who lets others run.
//! So whose turn takes long says so, and for the next [`REST_MIN`] turns nobody tries;
//! then one does, for all.
//!
//! One long turn proves nothing: the host of a virtual machine takes a processor away
//! now and then, where strangers take them every time. So only one counts that began
//! within [`SOON`] after another long turn, or the last rest, ended.
//!
//! Where a slice was lost, all take naps for as many turns: to be woken needs somebody
//! else who has a processor, and who sleeps by the clock is owed one when it gets up. As
//! long as the one who tries loses another slice, the naps are twice as many each time, up
//! to [`REST_MAX`]; each time that it does not, half as many, until everybody may let
//! others run again (ADR 98).

use std::time::Duration;

use super::gather::nanos;
use crate::primitives::{AtomicU32, AtomicU64, Ordering, now, sleep, spin_loop, yield_now};

/// Letting others run is over in less where nobody else wanted to.
const UNWANTED: Duration = Duration::from_micros(1);
/// Spins then, for the sake of who shares the processor's core.
const SPINS_UNWANTED: u32 = 32;
/// Letting others run takes longer than this only where the processors are
/// others', or where many take their turns.
const HOGGED: Duration = Duration::from_micros(600);
/// Strangers make the next turn long, too, and that begins this soon.
const SOON: Duration = Duration::from_millis(10);
/// It takes longer than this, and so much more for each committer that may have had its
/// turn, only where a slice was lost.
const SLICE: Duration = Duration::from_millis(1);
const TURN: Duration = Duration::from_micros(25);
/// A nap at the least; Linux makes 60 µs of it.
const NAP: Duration = Duration::from_micros(5);
/// For how many turns nobody tries after a slice was lost, at least and at most.
const REST_MIN: u32 = 256;
const REST_MAX: u32 = 16_384;

/// See the module's header.
#[derive(Default)]
pub(super) struct GivingWay {
    /// For how many more turns nobody tries, and how many of them were naps after the last
    /// one who did: all or none.
    resting: AtomicU32,
    naps: AtomicU32,
    /// When a long turn or a rest last ended, in nanoseconds; zero before there was one.
    ended: AtomicU64,
}

impl GivingWay {
    /// Lets others run who may be on their way here, or takes a nap. False, and nothing done,
    /// where nobody tries and nobody naps. So many `committers` may have their turns meanwhile.
    pub(super) fn give_way(&self, committers: usize) -> bool {
        let resting = self.resting.load(Ordering::Relaxed);
        // A turn that two count as one does no harm.
        match resting {
            0 => {}
            // The others go on resting until it is known how this ends.
            1 => self.resting.store(REST_MIN, Ordering::Relaxed),
            _ => {
                self.resting.store(resting - 1, Ordering::Relaxed);
                let naps = self.naps.load(Ordering::Relaxed) > 0;
                if naps {
                    nap();
                }
                return naps;
            }
        }
        let start = now();
        yield_now();
        let took = now().saturating_sub(start);
        self.took(start, took, committers, resting == 1);
        if took < UNWANTED {
            (0..SPINS_UNWANTED).for_each(|_| spin_loop());
        }
        true
    }

    /// Whether nobody tries now.
    pub(super) fn rests(&self) -> bool {
        self.resting.load(Ordering::Relaxed) > 0
    }

    /// Takes note of how long a turn that began at `start` took, of one who tried for all
    /// or of any.
    fn took(&self, start: Duration, took: Duration, committers: usize, for_all: bool) {
        // Of those whose turns take long together the first one counts.
        if !for_all && (took <= HOGGED || self.rests()) {
            return;
        }
        let end = nanos(start.saturating_add(took));
        let before = self.ended.swap(end, Ordering::Relaxed);
        if !for_all && !is_soon(before, nanos(start)) {
            return;
        }
        let turns = TURN.saturating_mul(u32::try_from(committers).unwrap_or(u32::MAX));
        let naps = self.naps.load(Ordering::Relaxed);
        let (naps, rest) = if took > SLICE.saturating_add(turns) {
            let naps = (naps * 2).clamp(REST_MIN, REST_MAX);
            (naps, naps)
        } else if took > HOGGED {
            (naps, naps.max(REST_MIN))
        } else {
            let naps = if naps > REST_MIN { naps / 2 } else { 0 };
            (naps, naps)
        };
        self.naps.store(naps, Ordering::Relaxed);
        self.resting.store(rest, Ordering::Relaxed);
    }
}

/// Whether a turn that began at `start` did soon after what `ended`, and not before it had.
fn is_soon(ended: u64, start: u64) -> bool {
    let between = start.checked_sub(ended);
    ended > 0 && between.is_some_and(|between| between <= nanos(SOON))
}

/// Sleeps for a moment.
pub(super) fn nap() {
    sleep(NAP);
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::scheduled;
    use super::*;

    const LOST: Duration = Duration::from_millis(4);
    const LATE: Duration = Duration::from_micros(900);
    const SHORT: Duration = Duration::from_micros(20);
    /// When a turn begins, and when one does that followed a long one.
    const FIRST: Duration = Duration::from_secs(1);
    const NEXT: Duration = Duration::from_millis(1_005);

    /// One that has just met a long turn.
    fn after_a_long_turn() -> GivingWay {
        let giving_way = GivingWay::default();
        giving_way.took(FIRST, LATE, 8, false);
        assert_eq!(rest(&giving_way), (0, 0));
        giving_way
    }

    /// How many turns nobody tries, and how many of them are naps.
    fn rest(giving_way: &GivingWay) -> (u32, u32) {
        let resting = giving_way.resting.load(Ordering::Relaxed);
        (resting, giving_way.naps.load(Ordering::Relaxed))
    }

    #[test]
    fn lost_slices_are_followed_by_ever_more_naps() {
        scheduled(|| {
            let giving_way = after_a_long_turn();
            giving_way.took(NEXT, SHORT, 8, false);
            assert_eq!(rest(&giving_way), (0, 0));
            giving_way.took(NEXT, LOST, 8, false);
            let mut naps = vec![rest(&giving_way)];
            for took in [LOST, LOST, LATE, LOST, LOST, LOST, LOST, LOST] {
                giving_way.took(NEXT, took, 8, true);
                naps.push(rest(&giving_way));
            }
            let doubled = [256, 512, 1024, 1024, 2048, 4096, 8192, 16_384, 16_384];
            assert_eq!(naps, doubled.map(|naps| (naps, naps)));
            naps.clear();
            while giving_way.rests() {
                giving_way.took(NEXT, SHORT, 8, true);
                naps.push(rest(&giving_way));
            }
            let halved = [8192, 4096, 2048, 1024, 512, 256, 0];
            assert_eq!(naps, halved.map(|naps| (naps, naps)));
        });
    }

    #[test]
    fn who_is_late_since_many_had_their_turns_does_not_make_the_others_nap() {
        scheduled(|| {
            let giving_way = after_a_long_turn();
            giving_way.took(NEXT, LATE, 2, false);
            assert_eq!(rest(&giving_way), (REST_MIN, 0));
            assert!(!giving_way.give_way(2));
            giving_way.took(NEXT, SHORT, 2, true);
            assert_eq!(rest(&giving_way), (0, 0));
            let soon = NEXT + SHORT + SOON;
            giving_way.took(soon, LOST, 200, false);
            assert_eq!(rest(&giving_way), (REST_MIN, 0), "soon after a rest");
        });
    }

    /// The host of a virtual machine took a processor away for a moment, several times a
    /// second, and each time the crowd was not waited for in the next hundred syncs.
    #[test]
    fn a_long_turn_now_and_then_changes_nothing() {
        scheduled(|| {
            let giving_way = GivingWay::default();
            let later = SOON + Duration::from_nanos(1);
            let mut start = FIRST;
            for took in [LOST, LATE, LOST] {
                (0..8).for_each(|_| giving_way.took(start, took, 8, false));
                assert_eq!(rest(&giving_way), (0, 0), "they were late together");
                start += took + later;
            }
            giving_way.took(start, LOST, 8, false);
            giving_way.took(start + LOST + SOON, LATE, 8, false);
            assert_eq!(rest(&giving_way), (REST_MIN, 0), "and soon again");
        });
    }

    #[test]
    fn many_who_lose_their_slices_together_count_once() {
        scheduled(|| {
            let giving_way = after_a_long_turn();
            (0..8).for_each(|_| giving_way.took(NEXT, LOST, 8, false));
            assert_eq!(rest(&giving_way), (REST_MIN, REST_MIN));
        });
    }

    #[test]
    fn all_nap_until_one_tries_again() {
        scheduled(|| {
            let giving_way = after_a_long_turn();
            giving_way.took(NEXT, LOST, 8, false);
            giving_way.resting.store(3, Ordering::Relaxed);
            assert!(giving_way.give_way(8) && giving_way.give_way(8));
            assert_eq!(rest(&giving_way), (1, REST_MIN));
            // That one's turn takes as long as it does, which is known then.
            let before = giving_way.ended.load(Ordering::Relaxed);
            assert!(giving_way.give_way(8));
            assert_ne!(giving_way.ended.load(Ordering::Relaxed), before);
        });
    }
}
