//! When the log's length calls for a checkpoint.
//!
//! At [`Options::checkpoint_bytes`](crate::Options), but while the log fills fast: what a
//! checkpoint writes is written over soon, and the next one writes it again, beside
//! writers that need the processors. So the log may go on to [`GROWTH`] times as much, and
//! to three quarters of its limit, as long as each *step*, a third of `checkpoint_bytes`,
//! fills at [`FAST`] or faster. The step is what is looked at, not the time since the last
//! checkpoint: writers may have rested in between. Once they slow down a checkpoint is
//! due, with the next step or when the background tidies up; so only a log that was being
//! filled at that rate is ever longer than `checkpoint_bytes` when the process ends, but
//! for what is committed while a checkpoint is made (ADR 81).
//!
//! Committers compare the log's length with one number. All else is done by who makes
//! checkpoints, one at a time.

use crate::primitives::Mutex;
use crate::primitives::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// In bytes a second. With the default of 24 MiB there would be two checkpoints a second.
const FAST: u64 = 48 << 20;
const GROWTH: u64 = 4;
const STEPS: u64 = 3;

/// See the module's header.
pub(crate) struct LogLength {
    /// The length at which it is looked at.
    look_at: AtomicU64,
    /// At which a checkpoint is due where the log does not fill fast, and in any case.
    due: u64,
    longest: u64,
    step: Mutex<Step>,
}

/// Where a step began.
struct Step {
    bytes: u64,
    at: Duration,
}

impl LogLength {
    pub(crate) fn new(checkpoint_bytes: u64, limit_bytes: u64) -> Self {
        let grown = checkpoint_bytes.saturating_mul(GROWTH);
        let longest = grown.min(limit_bytes / 4 * 3).max(checkpoint_bytes);
        let length = Self {
            look_at: AtomicU64::new(0),
            due: checkpoint_bytes,
            longest,
            step: Mutex::new(Step {
                bytes: 0,
                at: Duration::ZERO,
            }),
        };
        length.look_after(0);
        length
    }

    /// Whether the log, that long, is to be looked at.
    #[inline]
    pub(crate) fn is_reached(&self, bytes: u64) -> bool {
        bytes >= self.look_at.load(Relaxed)
    }

    /// Whether a checkpoint is due with a log that long, now.
    pub(crate) fn is_due(&self, bytes: u64, now: Duration) -> bool {
        if !self.is_reached(bytes) && bytes < self.due {
            return false;
        }
        let mut step = self.step.lock();
        let took = now.saturating_sub(step.at);
        if !self.is_reached(bytes) {
            // The step is not full, and takes long already.
            return is_slow(self.step_bytes(), took);
        }
        let grown = bytes.saturating_sub(step.bytes);
        if bytes >= self.longest || (bytes >= self.due && is_slow(grown, took)) {
            return true;
        }
        *step = Step { bytes, at: now };
        self.look_after(bytes);
        false
    }

    /// The log has begun anew, with a checkpoint.
    pub(crate) fn begin(&self, now: Duration) {
        let mut step = self.step.lock();
        *step = Step { bytes: 0, at: now };
        self.look_after(0);
    }

    fn step_bytes(&self) -> u64 {
        (self.due / STEPS).max(1)
    }

    /// The length to look at next. Nothing but the last step before a checkpoint is due
    /// says how fast the log fills then.
    fn look_after(&self, bytes: u64) {
        let last_step = self.due.saturating_sub(self.step_bytes());
        let next = if self.longest == self.due || (last_step..self.due).contains(&bytes) {
            self.due
        } else if bytes < last_step {
            last_step
        } else {
            bytes.saturating_add(self.step_bytes()).min(self.longest)
        };
        self.look_at.store(next, Relaxed);
    }
}

/// Whether a log that has grown by `bytes` in that time fills slowly.
fn is_slow(bytes: u64, took: Duration) -> bool {
    u128::from(bytes) * Duration::from_secs(1).as_nanos() < took.as_nanos() * u128::from(FAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Fills a log MiB by MiB, each in so many milliseconds by its number, and tells at
    /// which a checkpoint was due.
    fn due_at(length: &LogLength, ms_of: impl Fn(u64) -> u64) -> u64 {
        let mut now = ms(1_000_000);
        length.begin(now);
        let due = (1..1_000).find(|mib| {
            now += ms(ms_of(*mib));
            length.is_reached(mib * MIB) && length.is_due(mib * MIB, now)
        });
        due.unwrap_or(u64::MAX)
    }

    #[test]
    fn a_log_that_fills_fast_goes_on_to_three_quarters_of_its_limit() {
        let length = LogLength::new(24 * MIB, 128 * MIB);
        assert_eq!(due_at(&length, |_| 100), 24);
        assert_eq!(due_at(&length, |_| 5), 96);
        assert_eq!(due_at(&length, |_| 100), 24, "it begins anew");
    }

    /// Writers that rest between rounds fill the log no slower.
    #[test]
    fn a_rest_before_the_last_step_is_not_counted() {
        let length = LogLength::new(24 * MIB, 128 * MIB);
        assert_eq!(
            due_at(&length, |mib| if mib == 10 { 60_000 } else { 5 }),
            96
        );
        assert_eq!(
            due_at(&length, |mib| if mib == 50 { 60_000 } else { 5 }),
            56
        );
    }

    #[test]
    fn once_it_fills_slowly_a_checkpoint_is_due_without_the_next_step() {
        let length = LogLength::new(24 * MIB, 128 * MIB);
        let begun = ms(7);
        length.begin(begun);
        for mib in 1..=33 {
            assert!(!length.is_due(mib * MIB, begun + ms(5 * mib)));
        }
        let stopped = begun + ms(5 * 33);
        assert!(!length.is_due(33 * MIB, stopped + ms(100)));
        assert!(!length.is_reached(33 * MIB));
        assert!(length.is_due(33 * MIB, stopped + ms(200)));
    }

    #[test]
    fn without_room_to_grow_it_is_due_as_asked_for() {
        for limit in [32 * MIB, 24 * MIB, 1] {
            let length = LogLength::new(24 * MIB, limit);
            assert_eq!(due_at(&length, |_| 1), 24);
            assert!(!length.is_reached(24 * MIB - 1));
        }
    }

    #[test]
    fn it_does_not_outgrow_what_was_asked_for_by_far() {
        let length = LogLength::new(2 * MIB, 1 << 40);
        assert_eq!(due_at(&length, |_| 1), 8);
        assert_eq!(due_at(&length, |_| 50), 2);
    }

    /// The log is looked at some ten times before it is full, not at every commit.
    #[test]
    fn it_is_looked_at_once_a_step() {
        let length = LogLength::new(24 * MIB, 128 * MIB);
        length.begin(ms(0));
        let mut looks = 0;
        for kib in 1..96 << 10 {
            if length.is_reached(kib << 10) {
                looks += 1;
                assert!(!length.is_due(kib << 10, ms(kib >> 10)));
            }
        }
        assert_eq!(looks, 10);
    }
}
