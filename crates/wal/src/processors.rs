//! From which processor a crowd's sync is led.
//!
//! A disk with one queue interrupts one processor. A leader that sleeps there is woken
//! there; one on another processor is woken by it across both, and where that one has
//! gone to sleep meanwhile, in a virtual machine, the sync takes half as long again. So
//! the time of syncs is kept by the processor they were led from, and who finds a crowd
//! complete on a slower one leaves the lead to those of the crowd who look again on a
//! quicker one, for at most half of the time that is to be saved.
//!
//! - Only where a crowd stays awake through its sync (`gather.rs`): nothing is left to
//!   who sleeps.
//! - After nobody took it the next syncs are led by whoever comes, twice as many after
//!   the next time, so that it costs little where none of the crowd is on a quicker one.
//! - Every [`TRIED_EVERY`]th sync is led by whoever comes, so that what is known of the
//!   slower ones stays true.
//!
//! All of this is advice, read and written without order: a sync is as good from
//! anywhere, and whoever leaves the lead looks again, or sleeps as any other follower.

use std::time::Duration;

use super::gather::rest_after;
use crate::primitives::{AtomicU32, AtomicU64, Ordering};

/// Processors that are told apart. Those with higher numbers share the places.
const PLACES: usize = 64;
/// Every how many syncs one is led by whoever comes.
const TRIED_EVERY: u32 = 32;
/// One is slower whose syncs take longer than the quickest one's by more than this part.
const SLOWER_BY: u32 = 8;
/// By which part of the difference a sync changes what is known of its processor. The
/// times of single syncs differ by a third.
const WEIGHT: u32 = 16;

pub(super) struct Processors {
    /// The smoothed time of syncs led from each, in nanoseconds; zero where none was.
    syncs: [AtomicU32; PLACES],
    /// The least of them.
    quickest: AtomicU32,
    /// Since when the lead is left to others, in nanoseconds; zero where it is not.
    left_since: AtomicU64,
    /// Syncs that ended, wrapping.
    ended: AtomicU32,
    /// How many more syncs are led by whoever comes, and how many after the lead was
    /// left in vain the last time, less what was taken off since.
    resting: AtomicU32,
    rest: AtomicU32,
}

impl Default for Processors {
    fn default() -> Self {
        Self {
            syncs: [const { AtomicU32::new(0) }; PLACES],
            quickest: AtomicU32::new(0),
            left_since: AtomicU64::new(0),
            ended: AtomicU32::new(0),
            resting: AtomicU32::new(0),
            rest: AtomicU32::new(0),
        }
    }
}

impl Processors {
    /// Whether one who runs on `processor` and could lead leaves that to others.
    pub(super) fn leaves_lead(&self, processor: usize, now: impl Fn() -> Duration) -> bool {
        let quickest = self.quickest.load(Ordering::Relaxed);
        let own = self.syncs[processor % PLACES].load(Ordering::Relaxed);
        let is_slower = own > quickest.saturating_add(quickest / SLOWER_BY);
        if !is_slower || self.whoever_comes() {
            return false;
        }
        let now = u64::try_from(now().as_nanos()).unwrap_or(u64::MAX);
        let since = self.left_since.load(Ordering::Relaxed);
        if since == 0 {
            self.left_since.store(now, Ordering::Relaxed);
            return true;
        }
        if now.saturating_sub(since) < u64::from(own.saturating_sub(quickest) / 2) {
            return true;
        }
        let rest = rest_after(self.rest.load(Ordering::Relaxed), false);
        self.rest.store(rest, Ordering::Relaxed);
        self.resting.store(rest, Ordering::Relaxed);
        false
    }

    /// Whether the next sync is led by whoever comes.
    fn whoever_comes(&self) -> bool {
        self.resting.load(Ordering::Relaxed) > 0
            || self
                .ended
                .load(Ordering::Relaxed)
                .is_multiple_of(TRIED_EVERY)
    }

    /// Takes note of a sync led from `processor`. One at a time.
    pub(super) fn led(&self, processor: usize, nanos: u32) {
        let place = &self.syncs[processor % PLACES];
        let known = match place.load(Ordering::Relaxed) {
            0 => self.quickest.load(Ordering::Relaxed),
            known => known,
        };
        let smoothed = match known {
            0 => nanos,
            // One that took far longer was not kept by its processor.
            _ => known - known / WEIGHT + nanos.min(known.saturating_mul(2)) / WEIGHT,
        };
        place.store(smoothed.max(1), Ordering::Relaxed);
        let all = self.syncs.iter().map(|sync| sync.load(Ordering::Relaxed));
        let quickest = all.filter(|sync| *sync > 0).min().unwrap_or(0);
        self.quickest.store(quickest, Ordering::Relaxed);
    }

    /// Takes note of the end of a sync. One at a time.
    pub(super) fn ended(&self) {
        let was_left = self.left_since.load(Ordering::Relaxed) > 0;
        if was_left {
            self.left_since.store(0, Ordering::Relaxed);
        }
        let resting = self.resting.load(Ordering::Relaxed);
        if resting > 0 {
            self.resting.store(resting - 1, Ordering::Relaxed);
        } else if was_left {
            let rest = rest_after(self.rest.load(Ordering::Relaxed), true);
            self.rest.store(rest, Ordering::Relaxed);
        }
        let ended = self.ended.load(Ordering::Relaxed);
        self.ended.store(ended.wrapping_add(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::scheduled;
    use super::*;

    const QUICK: usize = 1;
    const SLOW: usize = 0;

    /// Both processors known, the next sync led by whoever comes is far.
    fn known(slow: u32) -> Processors {
        let processors = Processors::default();
        processors.led(QUICK, 100_000);
        for _ in 0..200 {
            processors.led(SLOW, slow);
        }
        processors.ended();
        processors
    }

    fn at(micros: u64) -> impl Fn() -> Duration {
        move || Duration::from_micros(micros)
    }

    #[test]
    fn who_is_on_a_slower_processor_leaves_the_lead_for_half_of_what_that_saves() {
        scheduled(|| {
            let processors = known(140_000);
            assert!(!processors.leaves_lead(QUICK, at(1)));
            assert!(processors.leaves_lead(SLOW, at(1)));
            assert!(processors.leaves_lead(SLOW, at(20)));
            assert!(!processors.leaves_lead(SLOW, at(21)));
        });
    }

    #[test]
    fn processors_that_are_about_as_quick_lead_as_they_come() {
        scheduled(|| {
            let processors = known(112_000);
            assert!(!processors.leaves_lead(SLOW, at(1)));
        });
    }

    #[test]
    fn one_from_where_nobody_has_led_does() {
        scheduled(|| {
            let processors = known(140_000);
            assert!(!processors.leaves_lead(5, at(1)));
        });
    }

    #[test]
    fn a_lead_left_in_vain_is_left_ever_more_rarely() {
        scheduled(|| {
            let processors = known(140_000);
            let mut in_a_row = Vec::new();
            let mut led = 0;
            for turn in 1..2_000 {
                if processors.leaves_lead(SLOW, at(turn * 100)) {
                    assert!(!processors.leaves_lead(SLOW, at(turn * 100 + 50)));
                    in_a_row.push(led);
                    led = 0;
                }
                led += 1;
                processors.ended();
            }
            assert!(in_a_row.len() < 16, "{in_a_row:?}");
            assert!(in_a_row.is_sorted(), "{in_a_row:?}");
        });
    }

    #[test]
    fn every_so_often_a_sync_is_led_by_whoever_comes() {
        scheduled(|| {
            let processors = known(140_000);
            let mut left = 0;
            for turn in 1..=10 * u64::from(TRIED_EVERY) {
                left += u32::from(processors.leaves_lead(SLOW, at(turn)));
                processors.ended();
            }
            assert_eq!(left, 10 * TRIED_EVERY - 10);
        });
    }

    #[test]
    fn a_processor_that_became_quick_is_believed() {
        scheduled(|| {
            let processors = known(140_000);
            for _ in 0..100 {
                processors.led(SLOW, 60_000);
            }
            assert!(!processors.leaves_lead(SLOW, at(1)));
            assert!(processors.leaves_lead(QUICK, at(1)));
        });
    }

    #[test]
    fn one_slow_sync_says_little_even_if_it_is_the_first() {
        scheduled(|| {
            let processors = Processors::default();
            processors.ended();
            processors.led(QUICK, 100_000);
            processors.led(SLOW, 4_000_000);
            assert!(!processors.leaves_lead(SLOW, at(1)));
        });
    }
}
