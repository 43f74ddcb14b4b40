//! Where committers sleep who can do nothing themselves.
//!
//! Two things wake them: a leader that let go of the flush lock, and, for those
//! who found that lock free but the front record still being copied, the copy's
//! end. Both sides follow the same pattern (register, full barrier, look again
//! against change, full barrier, look for sleepers), so no wake-up is lost, and
//! nobody pays for a wake-up that no one waits for.

use super::locks::{lock, wait};
use crate::primitives::{AtomicUsize, Condvar, Mutex, Ordering, fence};

#[derive(Default)]
pub(super) struct Parking {
    mutex: Mutex<()>,
    condvar: Condvar,
    parked: AtomicUsize,
    starved: AtomicUsize,
}

/// What a sleeper finds when it looks again.
pub(super) enum Outlook {
    /// It can go on.
    GoOn,
    /// A leader is at work and will wake it.
    Led,
    /// The next record is still being copied.
    Starved,
}

impl Parking {
    /// Sleeps until `look` says to go on. `look` runs under this lot's lock.
    pub(super) fn park(&self, look: impl Fn() -> Outlook) {
        let mut guard = lock(&self.mutex);
        self.parked.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        loop {
            match look() {
                Outlook::GoOn => break,
                Outlook::Led => guard = wait(&self.condvar, guard),
                Outlook::Starved => {
                    self.starved.fetch_add(1, Ordering::SeqCst);
                    fence(Ordering::SeqCst);
                    if matches!(look(), Outlook::Starved) {
                        guard = wait(&self.condvar, guard);
                    }
                    self.starved.fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    /// After the flush lock was let go.
    pub(super) fn flush_ended(&self) {
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) > 0 {
            self.wake_all();
        }
    }

    /// After a record was published as filled (which is a full barrier).
    pub(super) fn record_filled(&self) {
        if self.starved.load(Ordering::SeqCst) > 0 {
            self.wake_all();
        }
    }

    /// Wakes everybody.
    #[cold]
    pub(super) fn wake_all(&self) {
        drop(lock(&self.mutex));
        self.condvar.notify_all();
    }
}
