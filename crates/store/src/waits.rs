//! Waits for another thread that end after a time: by the machine's clock, woken
//! by whoever lets go, or by the clock of who drives the store, looking again
//! whenever that lets the thread go on.

use crate::primitives::{Condvar, Mutex, MutexGuard, now, wait_briefly};
use fulgurite_disk::{Driver, Machine};
use std::sync::Arc;
use std::time::Duration;

/// See the module's header.
#[derive(Clone)]
pub(crate) struct Waits(Option<Arc<dyn Driver>>);

impl Waits {
    pub(crate) fn new(driver: Option<Arc<dyn Driver>>) -> Self {
        Self(driver)
    }

    /// The time since some moment.
    pub(crate) fn now(&self) -> Duration {
        match &self.0 {
            Some(driver) => driver.now(),
            None => now(),
        }
    }

    /// 64 random bits.
    pub(crate) fn random(&self) -> u64 {
        match &self.0 {
            Some(driver) => driver.random(),
            None => Machine.random(),
        }
    }

    /// Waits for a wake-up, once; false when `deadline` has come instead. What
    /// is waited for is to be looked at again in either case.
    pub(crate) fn on<T>(
        &self,
        condition: &Condvar,
        guard: &mut MutexGuard<'_, T>,
        deadline: Duration,
    ) -> bool {
        let left = deadline.saturating_sub(self.now());
        match &self.0 {
            None => !condition.wait_for(guard, left).timed_out(),
            Some(_) if left.is_zero() => false,
            Some(driver) => {
                MutexGuard::unlocked(guard, || driver.pass(left));
                true
            }
        }
    }

    /// Waits until `until`, or for a wake-up that nothing depends on.
    pub(crate) fn briefly<'m, T>(
        &self,
        condition: &Condvar,
        mutex: &'m Mutex<T>,
        mut held: MutexGuard<'m, T>,
        until: Duration,
    ) -> MutexGuard<'m, T> {
        let left = until.saturating_sub(self.now());
        match &self.0 {
            None => wait_briefly(mutex, held, condition, left),
            Some(driver) => {
                MutexGuard::unlocked(&mut held, || driver.pass(left));
                held
            }
        }
    }

    /// Takes a lock: `now` tries to at once, `within` waits for it on the
    /// machine's clock. False if the time is over first.
    pub(crate) fn lock(
        &self,
        timeout: Duration,
        now: impl Fn() -> bool,
        within: impl FnOnce(Duration) -> bool,
    ) -> bool {
        let Some(driver) = &self.0 else {
            return within(timeout);
        };
        let began = driver.now();
        while !now() {
            let left = timeout.saturating_sub(driver.now().saturating_sub(began));
            if left.is_zero() {
                return false;
            }
            driver.pass(left);
        }
        true
    }

    /// Waits without anything to wait for.
    pub(crate) fn pause(&self, time: Duration) {
        match &self.0 {
            Some(driver) => driver.pass(time),
            None => std::thread::sleep(time),
        }
    }
}
