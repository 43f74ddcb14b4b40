//! What sleepers listen to: all of a group are woken by one call, and with a
//! futex none of them needs a lock to get up. `primitives.rs` chooses.
//!
//! A listener reads the bell, makes sure that it has reason to sleep, and sleeps
//! unless the bell rang since. It may wake for no reason.

use super::locks::{lock, wait};
use crate::primitives::{Condvar, Mutex};

/// Set once the bell rang for everybody; the rest counts the rings for one.
const FOR_ALL: u32 = 1;
const FOR_ONE: u32 = 2;

/// A bell on Linux.
#[cfg(all(target_os = "linux", not(fulgurite_model)))]
#[derive(Default)]
pub(crate) struct Futex(std::sync::atomic::AtomicU32);

#[cfg(all(target_os = "linux", not(fulgurite_model)))]
impl Futex {
    pub(crate) fn read(&self) -> u32 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    pub(crate) fn rang_for_all(&self) -> bool {
        self.read() & FOR_ALL != 0
    }

    /// Sleeps until the bell rings, unless it did since `read`.
    pub(crate) fn sleep(&self, read: u32) {
        use rustix::thread::futex::{Flags, wait};
        // It rang meanwhile, a signal came, or it was woken: all the same.
        let _ = wait(&self.0, Flags::PRIVATE, read, None);
    }

    pub(crate) fn ring_one(&self) {
        let order = std::sync::atomic::Ordering::SeqCst;
        self.0.fetch_add(FOR_ONE, order);
        self.wake(1);
    }

    pub(crate) fn ring_all(&self) {
        let order = std::sync::atomic::Ordering::SeqCst;
        self.0.fetch_or(FOR_ALL, order);
        self.wake(i32::MAX as u32);
    }

    fn wake(&self, sleepers: u32) {
        use rustix::thread::futex::{Flags, wake};
        // It cannot fail on an address of ours.
        let _ = wake(&self.0, Flags::PRIVATE, sleepers);
    }
}

/// A bell elsewhere, and where interleavings are explored.
#[allow(dead_code, reason = "only one kind of bell is used in a build")]
#[derive(Default)]
pub(crate) struct Portable {
    rings: Mutex<u32>,
    rang: Condvar,
}

#[allow(dead_code, reason = "as above")]
impl Portable {
    pub(crate) fn read(&self) -> u32 {
        *lock(&self.rings)
    }

    pub(crate) fn rang_for_all(&self) -> bool {
        self.read() & FOR_ALL != 0
    }

    /// Sleeps until the bell rings, unless it did since `read`.
    pub(crate) fn sleep(&self, read: u32) {
        let rings = lock(&self.rings);
        if *rings == read {
            drop(wait(&self.rang, rings));
        }
    }

    pub(crate) fn ring_one(&self) {
        let mut rings = lock(&self.rings);
        *rings = rings.wrapping_add(FOR_ONE);
        drop(rings);
        self.rang.notify_one();
    }

    pub(crate) fn ring_all(&self) {
        *lock(&self.rings) |= FOR_ALL;
        self.rang.notify_all();
    }
}
