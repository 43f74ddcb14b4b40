//! A lock for a few dozen instructions: one atomic exchange to take it and a
//! plain store to give it back, where a mutex needs two exchanges and so costs
//! twice as much uncontended, a third of an append.
//!
//! Who finds it taken looks again a few times, then lets others run, and sleeps
//! where it stays taken (the holder writes a large record, or is not running).
//! Nothing is promised about the order in which waiters get it.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::primitives::{AtomicBool, Ordering, sleep, spin_loop, yield_now};

const SPINS: u32 = 16;
const YIELDS: u32 = 64;
const NAP: Duration = Duration::from_micros(100);

pub(super) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through the guard, which one thread at a
// time holds; it moves between threads with the lock.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(super) fn lock(&self) -> SpinGuard<'_, T> {
        if !self.try_take() {
            self.wait();
        }
        SpinGuard { lock: self }
    }

    #[inline]
    fn try_take(&self) -> bool {
        self.taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut turns = 0u32;
        loop {
            turns = turns.saturating_add(1);
            if turns <= SPINS {
                spin_loop();
            } else if turns <= SPINS + YIELDS {
                yield_now();
            } else {
                sleep(NAP);
            }
            if !self.taken.load(Ordering::Relaxed) && self.try_take() {
                return;
            }
        }
    }
}

pub(super) struct SpinGuard<'l, T> {
    lock: &'l SpinLock<T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}
