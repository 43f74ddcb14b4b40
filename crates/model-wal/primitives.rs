//! The log's `primitives`, made of a scheduler's. Sizes are small, so that
//! waiting for room, sleeping and waking happen in nearly every run.

pub(crate) use super::bell::Portable as Bell;
pub(crate) use shuttle::hint::spin_loop;
pub(crate) use shuttle::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use shuttle::thread::yield_now;

/// One for each thread, so that some lead from where a sync took longer.
pub(crate) fn processor() -> usize {
    shuttle::current::me().into()
}

pub(crate) fn sleep(_: std::time::Duration) {
    yield_now();
}

pub(crate) const RING_BYTES: u64 = 1024;
pub(crate) const SLOTS: u64 = 4;
pub(crate) const LEASE_BYTES: u64 = 4096;
pub(crate) const RING_RECORD_BYTES_MAX: u64 = 512;
pub(crate) const QUICK_SYNC_NANOS: u32 = 200_000;
pub(crate) const SPINS: u32 = 1;
pub(crate) const YIELDS_QUICK: u32 = 1;
pub(crate) const YIELDS_SLOW: u32 = 0;
pub(crate) const SOLO_RING_BYTES: u64 = 4096;
pub(crate) const SOLO_AHEAD_BYTES: u64 = 4096;
pub(crate) const SOLO_LEAD_BYTES: u64 = 0;
pub(crate) const SOLO_PIECE_BYTES: u64 = 4096;
pub(crate) const SOLO_STEP_BYTES_MIN: u64 = 8192;
pub(crate) const SOLO_STEP_BYTES_MAX: u64 = 8192;
pub(crate) const HAS_BACKGROUND: bool = false;

thread_local! {
    static NOW: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Time that passes by being looked at, so that it is the same in every run of a
/// schedule. A sync in which nobody else looks is quick.
pub(crate) fn now() -> std::time::Duration {
    NOW.set(NOW.get() + 1);
    std::time::Duration::from_micros(150) * NOW.get()
}
