//! The threading primitives the log is written with and the sizes its
//! interleavings depend on, in one place, so that `tests/model.rs` can compile
//! the same sources against a scheduler that explores interleavings.

#[cfg(target_os = "linux")]
pub(crate) use super::bell::Futex as Bell;
#[cfg(not(target_os = "linux"))]
pub(crate) use super::bell::Portable as Bell;
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{sleep, yield_now};
use std::time::Duration;

use fulgurite_disk::{Driver as _, Machine};

/// The time since some moment.
pub(crate) fn now() -> Duration {
    Machine.now()
}

/// The number of the processor that the caller runs on.
#[cfg(target_os = "linux")]
pub(crate) fn processor() -> usize {
    rustix::thread::sched_getcpu()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn processor() -> usize {
    0
}

/// Bytes of the log buffer's ring.
pub(crate) const RING_BYTES: u64 = 256 << 10;
/// How many records the log buffer holds at most.
pub(crate) const SLOTS: u64 = 4096;
/// How much of the log a committer takes at a time, where it takes more than a record.
pub(crate) const LEASE_BYTES: u64 = 64 << 10;
/// Records longer than this never enter the ring: they are written from where
/// the caller has them, once everything before them is written.
pub(crate) const RING_RECORD_BYTES_MAX: u64 = 32 << 10;

/// Bytes of the ring of a log on its own.
pub(crate) const SOLO_RING_BYTES: u64 = 4 << 20;

/// How far ahead of its records the file of a log on its own is prepared at
/// least, and how much may be appended and not durable for the log to count as
/// one that is flushed as it goes.
pub(crate) const SOLO_AHEAD_BYTES: u64 = 512 << 10;
/// Zeros begin so far behind the end of records that overtook them, or the
/// next ones would overtake them again.
pub(crate) const SOLO_LEAD_BYTES: u64 = 256 << 10;
/// What is filled with zeros behind one fence: who comes to it waits for that.
pub(crate) const SOLO_PIECE_BYTES: u64 = 256 << 10;
/// The file grows by as much as it has, but by so much at least and at most.
pub(crate) const SOLO_STEP_BYTES_MIN: u64 = 1 << 20;
pub(crate) const SOLO_STEP_BYTES_MAX: u64 = 16 << 20;

/// Whether a log on its own may have a thread behind it.
pub(crate) const HAS_BACKGROUND: bool = true;

/// Up to this time a sync is quick: sleeping and waking costs more.
pub(crate) const QUICK_SYNC_NANOS: u32 = 10_000;

/// How often a committer looks again before anything slower.
pub(crate) const SPINS: u32 = 40;
/// How often it lets others run before it sleeps, where a sync is quick.
pub(crate) const YIELDS_QUICK: u32 = 400;
/// The same where it is not, whatever the time. (With 64 committers on two cores, 4
/// instead of none saves most sleeps: whoever lets others run finds the sync done.)
pub(crate) const YIELDS_SLOW: u32 = 4;
