//! What the store holds beside its frames, counted against the cache's limit.
//!
//! Lists of a transaction's pages, of dead pages, the map of written handles,
//! redo, and what SQL operators buffer grow with the work. Each is *charged*:
//! its holder keeps a [`Charge`] up to date. [`Pool::balance`] then takes as
//! many bytes of frames out of use, and some for what nobody counts, giving their
//! memory back to the system, and puts them back when the charges shrink. What
//! must hold:
//!
//! 1. A frame out of use is like a free one: nobody can reach it.
//! 2. At most three quarters of the frames are out of use, so that work goes on;
//!    charges beyond that exceed the limit. Who decides by a share of the cache
//!    asks for the share of those in use ([`Pool::usable`]). Caches below
//!    [`COUNTING_MIN`] frames count nothing.
//! 3. `balance` may wait for walks to end, so it is called outside of them.

use super::Pool;
use crate::cache::Frame;
use crate::primitives::Mutex;
use crate::primitives::atomic::{AtomicUsize, Ordering::*};
use crate::store::Core;
use std::sync::Arc;

/// Frames of the smallest cache whose limit counts charges.
const COUNTING_MIN: usize = 1024;
/// What an open store holds whatever it does: buffers of the log, of checkpoints
/// and of spilling, stacks, code.
const STANDING_BYTES: usize = 6 << 20;
/// The share of the cache that is given up for that at most.
const STANDING_SHARE: usize = 10;
/// The share of what is charged that the allocator loses beside it.
const SLACK_SHARE: usize = 8;
/// Bytes by which charges change before it is worth an adjustment.
const STEP_BYTES: usize = 256 << 10;

/// A share of the cache that may stay out of use for nothing.
const KEPT_SHARE: usize = 16;

/// The charges of a store, and the frames given up for them.
pub(super) struct Ballast {
    charged: Arc<AtomicUsize>,
    idle: Mutex<Vec<Frame>>,
    /// Frames in `idle`.
    held: AtomicUsize,
}

impl Ballast {
    pub(super) fn new() -> Self {
        Self {
            charged: Arc::new(AtomicUsize::new(0)),
            idle: Mutex::new(Vec::new()),
            held: AtomicUsize::new(0),
        }
    }

    pub(super) fn add(&self, bytes: usize) {
        self.charged.fetch_add(bytes, Relaxed);
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.charged.fetch_sub(bytes, Relaxed);
    }
}

/// Bytes charged by one holder, taken back when it is dropped.
pub(crate) struct Charge {
    charged: Arc<AtomicUsize>,
    bytes: usize,
}

impl Charge {
    /// The holder has `bytes` now.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        if bytes > self.bytes {
            self.charged.fetch_add(bytes - self.bytes, Relaxed);
        } else {
            self.charged.fetch_sub(self.bytes - bytes, Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A part of a program that buffers beside a store, and whose memory counts
/// against the limit of the store's cache.
#[derive(Clone)]
pub struct MemoryCounter(Arc<Core>);

impl MemoryCounter {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self(core)
    }

    /// A charge of nothing yet.
    pub fn charge(&self) -> MemoryCharge {
        MemoryCharge {
            charge: self.0.pool.charge(),
            core: self.0.clone(),
            balanced: 0,
        }
    }
}

/// What one buffer holds; dropping it takes it back.
pub struct MemoryCharge {
    charge: Charge,
    core: Arc<Core>,
    /// Bytes at the last adjustment of the cache.
    balanced: usize,
}

impl MemoryCharge {
    /// The buffer has `bytes` now. May wait for the pages of others: not to be
    /// called under a lock that readers need.
    pub fn set(&mut self, bytes: usize) {
        self.charge.set(bytes);
        if bytes.abs_diff(self.balanced) >= STEP_BYTES {
            self.balanced = bytes;
            self.core.pool.balance();
        }
    }
}

impl Pool {
    /// A charge of nothing yet.
    pub(crate) fn charge(&self) -> Charge {
        Charge {
            charged: self.ballast.charged.clone(),
            bytes: 0,
        }
    }

    /// Charges what stays as long as the store is open, or is taken back with
    /// [`uncharge_bytes`](Self::uncharge_bytes).
    pub(crate) fn charge_bytes(&self, bytes: usize) {
        self.ballast.add(bytes);
    }

    pub(crate) fn uncharge_bytes(&self, bytes: usize) {
        self.ballast.subtract(bytes);
    }

    /// Bytes charged.
    pub(crate) fn charged(&self) -> usize {
        self.ballast.charged.load(Relaxed)
    }

    /// Bytes that the process holds beside the frames.
    fn held_beside(&self) -> usize {
        let cache = self.frames.count() * self.page_size();
        let charged = self.charged();
        charged + charged / SLACK_SHARE + STANDING_BYTES.min(cache / STANDING_SHARE)
    }

    /// Frames in use.
    pub(crate) fn usable(&self) -> usize {
        let held = self.ballast.held.load(Relaxed);
        self.frames.count().saturating_sub(held)
    }

    /// Takes frames out of use, or back into it, as the charges say. Call
    /// outside walks. Where all frames hold unwritten nodes the next call goes
    /// on.
    pub(crate) fn balance(&self) {
        let count = self.frames.count();
        let ballast = &self.ballast;
        let wanted = match count < COUNTING_MIN {
            true => 0,
            false => (self.held_beside() / self.page_size()).min(count / 4 * 3),
        };
        let held = ballast.held.load(Relaxed);
        let step = STEP_BYTES / self.page_size();
        // Frames come back late: the next transaction is like the last one.
        if wanted <= held + step && held <= wanted + count / KEPT_SHARE {
            return;
        }
        // Somebody else is at it already.
        let Some(mut idle) = ballast.idle.try_lock() else {
            return;
        };
        // Of these the system has nothing to take back.
        self.take_untouched(&mut idle, wanted);
        while idle.len() < wanted {
            let Some(frame) = self.try_take_frame() else {
                break;
            };
            self.frames.let_go(frame);
            idle.push(frame);
        }
        if idle.len() > wanted {
            let mut back = idle.split_off(wanted);
            self.give_frames(&mut back);
        }
        ballast.held.store(idle.len(), Relaxed);
    }

    /// A frame out of use, where no other can be had.
    pub(super) fn take_idle(&self) -> Option<Frame> {
        let mut idle = self.ballast.idle.lock();
        let frame = idle.pop();
        self.ballast.held.store(idle.len(), Relaxed);
        frame
    }
}
