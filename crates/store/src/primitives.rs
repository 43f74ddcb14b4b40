//! The threading primitives the store is written with and the sizes its
//! interleavings depend on, in one place, so that `crates/model-store` can compile
//! the same sources against a scheduler that explores interleavings.

use parking_lot::lock_api::{RawMutex as _, RawMutexTimed as _};
use parking_lot::lock_api::{RawRwLock as _, RawRwLockTimed as _};
use std::time::Duration;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::mpsc::{SyncSender, sync_channel};
pub(crate) use std::thread::{JoinHandle, yield_now};

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Snapshots that can be open at the same time.
pub(crate) const SLOTS: usize = 4096;
/// Versions of a tree that readers find without a lock.
pub(crate) const RING: usize = 8;
/// Dead nodes worth a look.
pub(crate) const LOOK_AT: usize = 48;
/// The fewest frames of a cache.
pub(crate) const FRAMES_MIN: usize = 64;

/// Starts a thread of this name.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
}

/// A lock without a guard, held across calls.
pub(crate) struct ExclusiveLock(parking_lot::RawMutex);

impl ExclusiveLock {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::RawMutex::INIT)
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    pub(crate) fn try_lock_for(&self, timeout: Duration) -> bool {
        self.0.try_lock_for(timeout)
    }

    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock() }
    }
}

/// A lock without a guard that many hold shared or one holds alone. Who waits to
/// be alone keeps new ones out.
pub(crate) struct SharedLock(parking_lot::RawRwLock);

impl SharedLock {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::RawRwLock::INIT)
    }

    pub(crate) fn try_lock_shared(&self) -> bool {
        self.0.try_lock_shared()
    }

    pub(crate) fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.0.try_lock_shared_for(timeout)
    }

    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    pub(crate) fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.0.try_lock_exclusive_for(timeout)
    }

    /// # Safety
    /// The caller holds the lock shared.
    pub(crate) unsafe fn unlock_shared(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_shared() }
    }

    /// # Safety
    /// The caller holds the lock alone.
    pub(crate) unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_exclusive() }
    }
}
