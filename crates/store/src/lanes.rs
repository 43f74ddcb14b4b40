//! A lock that many hold shared, or one alone, made for many.
//!
//! Who takes it shared counts itself in its *lane*, a cache line that it shares with
//! few, and reads a line that hardly anybody writes. (One counter for all would go to
//! and fro between processors twice a commit.) Who wants to be alone passes the *gate*,
//! which lets one through, closes the lanes, and waits until all are empty.
//!
//! 1. Who enters a lane and finds the lanes open holds the lock. Entering and closing
//!    are written before the other is read, in one order for all, so one of the two
//!    sees the other.
//! 2. Who finds them closed leaves its lane, waits at the gate, and enters while it
//!    holds that shared, so that nobody can close them meanwhile.
//! 3. Who leaves a lane that is closed rings for who waits; that one looks under the
//!    bell's lock before it sleeps.
//!
//! Known as a big-reader lock; the way past the gate as BRAVO (Dice and Kogan, 2019).

use crate::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use crate::primitives::{Condvar, LANES, Mutex, SharedLock, now};
use fulgurite_disk::LineStart;
use std::time::Duration;

/// See the module's header. It is given back by a call, as it may be held across
/// others.
#[derive(Default)]
#[repr(C)]
pub(crate) struct LaneLock {
    closed: AtomicBool,
    gate: SharedLock,
    bell: Mutex<()>,
    emptied: Condvar,
    lanes: [Lane; LANES],
}

/// How many hold the lock shared by this lane.
#[derive(Default)]
#[repr(C)]
struct Lane {
    line: LineStart,
    holders: AtomicUsize,
}

impl LaneLock {
    fn lane(&self, context: u64) -> &AtomicUsize {
        &self.lanes[context as usize % LANES].holders
    }

    /// Takes it shared for the context of this number, unless somebody is alone or
    /// about to be.
    #[inline]
    pub(crate) fn try_lock_shared(&self, context: u64) -> bool {
        self.lane(context).fetch_add(1, SeqCst);
        if !self.closed.load(SeqCst) {
            return true;
        }
        self.leave(context);
        false
    }

    /// The same, after a wait.
    pub(crate) fn try_lock_shared_for(&self, context: u64, timeout: Duration) -> bool {
        if !self.gate.try_lock_shared_for(timeout) {
            return false;
        }
        self.lane(context).fetch_add(1, SeqCst);
        // SAFETY: taken above.
        unsafe { self.gate.unlock_shared() };
        true
    }

    /// Takes it alone, unless somebody holds it.
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        // Those who come meanwhile are not to find it closed for nothing.
        if !self.is_empty() || !self.gate.try_lock_exclusive() {
            return false;
        }
        self.closed.store(true, SeqCst);
        let is_alone = self.is_empty();
        if !is_alone {
            // SAFETY: taken above.
            unsafe { self.unlock_exclusive() };
        }
        is_alone
    }

    /// The same, after a wait, which keeps new ones out. Once it does, `recall` asks
    /// those to leave who do when they are asked.
    pub(crate) fn try_lock_exclusive_for(&self, timeout: Duration, recall: impl Fn()) -> bool {
        if timeout.is_zero() {
            return self.try_lock_exclusive() || {
                recall();
                self.try_lock_exclusive()
            };
        }
        let until = now().saturating_add(timeout);
        if !self.gate.try_lock_exclusive_for(timeout) {
            return false;
        }
        self.closed.store(true, SeqCst);
        if !self.is_empty() {
            recall();
        }
        let mut bell = self.bell.lock();
        while !self.is_empty() {
            let left = until.saturating_sub(now());
            if left.is_zero() {
                drop(bell);
                // SAFETY: taken above.
                unsafe { self.unlock_exclusive() };
                return false;
            }
            self.emptied.wait_for(&mut bell, left);
        }
        true
    }

    fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.holders.load(SeqCst) == 0)
    }

    #[inline]
    fn leave(&self, context: u64) {
        self.lane(context).fetch_sub(1, SeqCst);
        if self.closed.load(SeqCst) {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        drop(self.bell.lock());
        self.emptied.notify_all();
    }

    /// # Safety
    /// The context of this number holds the lock shared.
    #[inline]
    pub(crate) unsafe fn unlock_shared(&self, context: u64) {
        self.leave(context);
    }

    /// # Safety
    /// The caller holds the lock alone.
    pub(crate) unsafe fn unlock_exclusive(&self) {
        self.closed.store(false, SeqCst);
        // SAFETY: who is alone holds the gate.
        unsafe { self.gate.unlock_exclusive() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn one_is_alone_or_many_share() {
        let lock = LaneLock::default();
        assert!(lock.try_lock_shared(1) && lock.try_lock_shared(2));
        assert!(lock.try_lock_shared_for(1 + LANES as u64, NOW));
        assert!(!lock.try_lock_exclusive());
        assert!(!lock.try_lock_exclusive_for(NOW, || ()));
        // Who failed to be alone keeps nobody out.
        assert!(lock.try_lock_shared(3));
        for context in [1, 2, 1 + LANES as u64] {
            // SAFETY: taken above.
            unsafe { lock.unlock_shared(context) };
            assert!(!lock.try_lock_exclusive());
        }
        // SAFETY: taken above.
        unsafe { lock.unlock_shared(3) };
        assert!(lock.try_lock_exclusive());
        assert!(!lock.try_lock_shared(1) && !lock.try_lock_shared_for(1, NOW));
        assert!(!lock.try_lock_exclusive_for(NOW, || ()));
        // SAFETY: taken above.
        unsafe { lock.unlock_exclusive() };
        assert!(lock.try_lock_exclusive_for(NOW, || ()));
        // SAFETY: taken above.
        unsafe { lock.unlock_exclusive() };
        assert!(lock.try_lock_shared(1));
    }

    /// The end of the longest time there is lies beyond the clock's last moment.
    #[test]
    fn one_may_wait_for_ever() {
        let lock = LaneLock::default();
        assert!(lock.try_lock_exclusive_for(Duration::MAX, || ()));
        // SAFETY: taken above.
        unsafe { lock.unlock_exclusive() };
    }
}
