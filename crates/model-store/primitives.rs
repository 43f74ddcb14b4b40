//! The store's `primitives`, made of a scheduler's: every lock, wait and atomic
//! step is a choice. No wait ever times out, so that whoever would wait for ever
//! is reported. Sizes are small, so that rings turn over and lists fill.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use shuttle::rand::{RngCore, thread_rng};

pub(crate) use shuttle::hint::spin_loop;
pub(crate) use shuttle::sync::mpsc::{SyncSender, TrySendError, sync_channel};
pub(crate) use shuttle::thread::{JoinHandle, yield_now};

pub(crate) mod atomic {
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

pub(crate) const SLOTS: usize = 64;
pub(crate) const LANES: usize = 2;
pub(crate) const SHELF_PLACES: usize = 2;
pub(crate) const RING: usize = 2;
pub(crate) const LOOK_AT: usize = 2;
pub(crate) const LEASE_AFTER: u32 = 1;
pub(crate) const LEASE_AFTER_MAX: u32 = 2;
pub(crate) const IN_COMPANY: u32 = 1;
pub(crate) const IN_COMPANY_ALONE: u32 = 1;
pub(crate) const YIELD_EVERY: u64 = 2;
/// A page is a portion.
pub(crate) const PORTION_BYTES: usize = 1;
pub(crate) const FRAMES_MIN: usize = 16;
pub(crate) const REDO_STEP: usize = 4 << 10;
pub(crate) const REDO_LIMIT: usize = 64 << 10;
pub(crate) const DENSE_LIMIT: usize = 16 << 10;
pub(crate) const BUDGET_BYTES: usize = 32 << 10;
pub(crate) const BUDGET_MIN: usize = 4;
pub(crate) const TURNS: u64 = 2;
pub(crate) const TURNS_MEANWHILE: u64 = 1;
pub(crate) const DOUBTS_MAX: u32 = 1;
pub(crate) const REST_MIN: u32 = 1;
pub(crate) const REST_MAX: u32 = 2;
pub(crate) const TICK_EVERY: u32 = 2;
pub(crate) const TICK_BYTES: usize = 256;
pub(crate) const SLICE: Duration = Duration::from_micros(1000);
pub(crate) const SLICE_MAX: Duration = SLICE;
pub(crate) const SETTLING: Duration = Duration::from_micros(200);
pub(crate) const PAUSE: Duration = Duration::from_millis(1);
pub(crate) const COMMITS_MIN: u64 = 1;
pub(crate) const SOON: Duration = Duration::from_micros(1000);
pub(crate) const TURN: Duration = Duration::from_micros(1000);
/// Never: it would hide a chair that nobody has and nobody can take.
pub(crate) const AWAY: Duration = Duration::MAX;
pub(crate) const AT_WORK: Duration = Duration::MAX;

thread_local! {
    static NOW: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Time that passes by being looked at, so that it is the same in every run of a
/// schedule.
pub(crate) fn now() -> Duration {
    NOW.set(NOW.get() + 1);
    Duration::from_micros(100) * NOW.get()
}

/// # Safety
/// The store's says more. A scheduler's atomics are no zeros, and are made.
pub(crate) unsafe trait Zeros: Default {}

pub(crate) struct Table<T>(Box<[T]>);

impl<T: Zeros> Table<T> {
    pub(crate) fn new(count: usize) -> crate::Result<Self> {
        Ok(Self((0..count).map(|_| T::default()).collect()))
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

pub(crate) fn processors() -> usize {
    2
}

/// Nobody relies on being woken early.
pub(crate) fn wait_briefly<'m, T>(
    mutex: &'m Mutex<T>,
    held: MutexGuard<'m, T>,
    _: &Condvar,
    _: Duration,
) -> MutexGuard<'m, T> {
    drop(held);
    yield_now();
    mutex.lock()
}

pub(crate) fn spawn(
    _name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Ok(shuttle::thread::spawn(work))
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

/// Empty only while its owner waits on a condition.
pub(crate) struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
    }
}

impl<T> MutexGuard<'_, T> {
    /// Nobody drives a store of the models, so nothing calls it.
    pub(crate) fn unlocked<U>(_: &mut Self, work: impl FnOnce() -> U) -> U {
        work()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("held")
    }
}

#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> shuttle::sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> shuttle::sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

/// What a wait that ended without timing out says.
pub(crate) struct Woken;

impl Woken {
    pub(crate) fn timed_out(&self) -> bool {
        false
    }
}

impl Condvar {
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> Woken {
        let held = guard.0.take().expect("held");
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        Woken
    }
}

pub(crate) fn look_again() {
    yield_now();
}

pub(crate) fn look_later() {
    yield_now();
}

pub(crate) fn look_soon() {
    yield_now();
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stayed {
    Taken,
    InVain,
    Hogged,
}

#[derive(Default)]
pub(crate) struct ExclusiveLock {
    held: Mutex<bool>,
    freed: Condvar,
}

impl ExclusiveLock {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn try_lock(&self) -> bool {
        !std::mem::replace(&mut *self.held.lock(), true)
    }

    pub(crate) fn try_lock_for(&self, timeout: Duration) -> bool {
        let mut held = self.held.lock();
        while *held {
            self.freed.wait_for(&mut held, timeout);
        }
        *held = true;
        true
    }

    pub(crate) fn try_lock_awake(&self) -> Stayed {
        yield_now();
        match self.try_lock() {
            true => Stayed::Taken,
            false if thread_rng().next_u64().is_multiple_of(2) => Stayed::InVain,
            false => Stayed::Hogged,
        }
    }

    pub(crate) unsafe fn unlock(&self) {
        let was_held = std::mem::replace(&mut *self.held.lock(), false);
        assert!(was_held, "a lock is given back that nobody holds");
        self.freed.notify_one();
    }

    pub(crate) unsafe fn hand_over(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock() }
    }
}

#[derive(Default)]
struct Holders {
    shared: u32,
    /// Somebody holds it alone, or waits for the last of the others to leave.
    alone: bool,
}

#[derive(Default)]
pub(crate) struct SharedLock {
    holders: Mutex<Holders>,
    freed: Condvar,
}

impl SharedLock {
    pub(crate) fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        let mut holders = self.holders.lock();
        while holders.alone {
            self.freed.wait_for(&mut holders, timeout);
        }
        holders.shared += 1;
        true
    }

    pub(crate) fn try_lock_exclusive(&self) -> bool {
        let mut holders = self.holders.lock();
        let free = !holders.alone && holders.shared == 0;
        holders.alone |= free;
        free
    }

    pub(crate) fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        let mut holders = self.holders.lock();
        while holders.alone {
            self.freed.wait_for(&mut holders, timeout);
        }
        holders.alone = true;
        while holders.shared > 0 {
            self.freed.wait_for(&mut holders, timeout);
        }
        true
    }

    pub(crate) unsafe fn unlock_shared(&self) {
        let mut holders = self.holders.lock();
        assert!(holders.shared > 0, "a lock is given back that nobody holds");
        holders.shared -= 1;
        self.freed.notify_all();
    }

    pub(crate) unsafe fn unlock_exclusive(&self) {
        let mut holders = self.holders.lock();
        assert!(holders.alone, "a lock is given back that nobody holds");
        holders.alone = false;
        self.freed.notify_all();
    }
}
