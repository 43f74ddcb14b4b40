//! What a log has done since it was opened.

use crate::primitives::{AtomicU64, Ordering};

/// Counters since the log was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalStats {
    /// Records written.
    pub records: u64,
    /// Bytes written to the log's files for them.
    pub bytes: u64,
    /// Write calls for records.
    pub writes: u64,
    /// Syncs that made records durable. `records / syncs` is the mean group.
    pub syncs: u64,
    /// The most records one write carried.
    pub largest_group: u64,
    /// How often a committer slept because another one led.
    pub parks: u64,
    /// How often a reservation waited for a checkpoint.
    pub pressure_waits: u64,
    /// How often a file was extended by a committer.
    pub extensions: u64,
    /// Switches to another generation.
    pub switches: u64,
    /// Leases that committers took, where nothing is synced.
    pub leases: u64,
    /// How often a crowd on its way was waited for.
    pub crowd_waits: u64,
    /// How long that took, all together, in nanoseconds.
    pub crowd_wait_nanos: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) records: Counter,
    pub(super) bytes: Counter,
    pub(super) writes: Counter,
    pub(super) syncs: Counter,
    pub(super) largest_group: Counter,
    pub(super) parks: Counter,
    pub(super) pressure_waits: Counter,
    pub(super) extensions: Counter,
    pub(super) switches: Counter,
    pub(super) leases: Counter,
    pub(super) crowd_waits: Counter,
    pub(super) crowd_wait_nanos: Counter,
}

#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Counts where the caller holds a lock that all who count this hold.
    pub(super) fn add_alone(&self, count: u64) {
        self.0.store(self.get() + count, Ordering::Relaxed);
    }

    /// As `add_alone`, for a maximum.
    pub(super) fn raise_alone(&self, value: u64) {
        if self.get() < value {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    /// Counts from anywhere.
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Somebody waited for a crowd.
    pub(super) fn gathered(&self, time: std::time::Duration) {
        self.crowd_waits.add(1);
        self.crowd_wait_nanos
            .add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn read(&self) -> WalStats {
        WalStats {
            records: self.records.get(),
            bytes: self.bytes.get(),
            writes: self.writes.get(),
            syncs: self.syncs.get(),
            largest_group: self.largest_group.get(),
            parks: self.parks.get(),
            pressure_waits: self.pressure_waits.get(),
            extensions: self.extensions.get(),
            switches: self.switches.get(),
            leases: self.leases.get(),
            crowd_waits: self.crowd_waits.get(),
            crowd_wait_nanos: self.crowd_wait_nanos.get(),
        }
    }
}
