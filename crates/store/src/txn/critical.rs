//! How long the commit lock is held, measured on one commit in [`SAMPLE`].
//!
//! A histogram with eight steps an octave, so a percentile is exact within an
//! eighth. It is written under the commit lock and read without it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Marks, in debug builds, that this thread is inside the commit lock, so that
/// what must never happen there can say so: every debug test checks it.
pub(crate) struct Held(());

#[cfg(all(debug_assertions, not(fulgurite_model)))]
thread_local! {
    static HELD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Held {
    #[inline]
    pub(crate) fn begin() -> Self {
        #[cfg(all(debug_assertions, not(fulgurite_model)))]
        HELD.set(true);
        Self(())
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        #[cfg(all(debug_assertions, not(fulgurite_model)))]
        HELD.set(false);
    }
}

/// For what takes a page, transfers data or waits: none of it belongs inside the
/// commit lock.
#[inline]
pub(crate) fn not_within_commit_lock() {
    #[cfg(all(debug_assertions, not(fulgurite_model)))]
    debug_assert!(
        !HELD.get(),
        "a page, a transfer or a wait inside the commit lock"
    );
}

/// One commit in so many is measured.
pub(crate) const SAMPLE: u64 = 8;

const STEPS: usize = 8;
const BUCKETS: usize = 36 * STEPS;

/// The time the commit lock is held, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitLockStats {
    /// Commits measured: one in eight.
    pub measured: u64,
    /// Half of them held it no longer.
    pub p50_ns: u64,
    /// Of a hundred, 99 held it no longer.
    pub p99_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

pub(crate) struct Critical {
    buckets: [AtomicU64; BUCKETS],
    longest: AtomicU64,
}

impl Default for Critical {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            longest: AtomicU64::new(0),
        }
    }
}

/// Where a time is counted. Below eight nanoseconds each has its own bucket.
fn bucket(nanos: u64) -> usize {
    let octave = nanos.max(1).ilog2() as usize;
    let index = match octave {
        0..3 => nanos as usize,
        _ => (octave - 2) * STEPS + (nanos >> (octave - 3)) as usize - STEPS,
    };
    index.min(BUCKETS - 1)
}

/// The longest time that is counted there.
fn upper(index: usize) -> u64 {
    let (octave, step) = (index / STEPS, (index % STEPS) as u64);
    match octave {
        0 => step,
        _ => ((STEPS as u64 + step + 1) << (octave - 1)) - 1,
    }
}

impl Critical {
    /// Counts one. Under the commit lock.
    pub(crate) fn record(&self, held: Duration) {
        let nanos = u64::try_from(held.as_nanos()).unwrap_or(u64::MAX);
        let count = &self.buckets[bucket(nanos)];
        count.store(count.load(Relaxed) + 1, Relaxed);
        if nanos > self.longest.load(Relaxed) {
            self.longest.store(nanos, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> CommitLockStats {
        let counts: Vec<u64> = self
            .buckets
            .iter()
            .map(|count| count.load(Relaxed))
            .collect();
        let measured: u64 = counts.iter().sum();
        let longest_ns = self.longest.load(Relaxed);
        let at = |hundredths: u64| {
            let rank = (measured * hundredths).div_ceil(100).max(1);
            let mut seen = 0;
            let found = counts.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            found.map_or(0, upper).min(longest_ns)
        };
        CommitLockStats {
            measured,
            p50_ns: at(50),
            p99_ns: at(99),
            longest_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_has_a_bucket_that_ends_within_an_eighth_of_it() {
        for nanos in (1..5000).chain([65_535, 65_536, 1_000_000, 123_456_789]) {
            let upper = upper(bucket(nanos));
            assert!(
                upper >= nanos && upper - nanos <= nanos / 8,
                "{nanos}: {upper}"
            );
            assert!(bucket(nanos) == 0 || super::upper(bucket(nanos) - 1) < nanos);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_count_what_was_recorded() {
        let critical = Critical::default();
        assert_eq!(critical.read(), CommitLockStats::default());
        for nanos in 1..=100 {
            critical.record(Duration::from_nanos(nanos));
        }
        let stats = critical.read();
        assert_eq!((stats.measured, stats.longest_ns), (100, 100));
        assert!((50..=56).contains(&stats.p50_ns), "{stats:?}");
        assert!((99..=100).contains(&stats.p99_ns), "{stats:?}");
    }
}
