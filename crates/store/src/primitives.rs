//! The threading primitives the store is written with and the sizes its
//! interleavings depend on, in one place, so that `crates/model-store` can compile
//! the same sources against a scheduler that explores interleavings.

use fulgurite_disk::{Driver as _, Machine};
use parking_lot::lock_api::{RawMutex as _, RawMutexFair as _, RawMutexTimed as _};
use parking_lot::lock_api::{RawRwLock as _, RawRwLockTimed as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) use crate::table::{Table, Zeros};
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
pub(crate) use std::thread::{JoinHandle, yield_now};

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Snapshots that can be open at the same time.
pub(crate) const SLOTS: usize = 4096;
/// Lanes of a lock that many hold shared; see `lanes.rs`.
pub(crate) const LANES: usize = 16;
/// Places of a shelf; see `shelf.rs`.
pub(crate) const SHELF_PLACES: usize = 32;
/// Versions of a tree that readers find without a lock.
pub(crate) const RING: usize = 8;
/// Dead nodes worth a look: few enough for their frames to be in the processor's
/// cache when the next commits fill them, so many that hardly a commit looks.
pub(crate) const LOOK_AT: usize = 96;
/// Statements that a context may run on a tree while another one waits for it that did
/// the same before, and one that did not.
pub(crate) const TURNS: u64 = 1024;
pub(crate) const TURNS_MEANWHILE: u64 = 16;
/// How many in a row may see nobody stay before that is believed: who stays may have
/// lost the processor.
pub(crate) const DOUBTS_MAX: u32 = 4;
/// How many wait for a tree without looking whether contexts stay, after a look in
/// vain: at least and at most.
pub(crate) const REST_MIN: u32 = 16;
pub(crate) const REST_MAX: u32 = 16_384;
/// Every how many commits a context sees whether another limit of writers is due; so
/// many bytes of redo count as one more.
pub(crate) const TICK_EVERY: u32 = 64;
pub(crate) const TICK_BYTES: usize = 256;
/// How long a limit is measured, at least and at most, and how long before it counts.
/// With fewer commits it is measured for longer; where they are as few in the longest
/// time, they do not hold each other up.
pub(crate) const SLICE: Duration = Duration::from_millis(6);
pub(crate) const SLICE_MAX: Duration = Duration::from_millis(100);
pub(crate) const SETTLING: Duration = Duration::from_millis(1);
/// Where nobody tells of commits for so long, nobody commits.
pub(crate) const PAUSE: Duration = Duration::from_millis(12);
pub(crate) const COMMITS_MIN: u64 = 40;
/// Who comes back later than this does not write without end.
pub(crate) const SOON: Duration = Duration::from_micros(20);
/// How long a context keeps a chair that another one waits for.
pub(crate) const TURN: Duration = Duration::from_millis(4);
/// Who has not come for so long, or has been in a transaction for so long, may lose its
/// chair. It may as well have lost the processor.
pub(crate) const AWAY: Duration = Duration::from_millis(1);
pub(crate) const AT_WORK: Duration = TURN;
/// After how many statements in a row a context commits under a lease, and at most
/// where leases were ended before they were used for as many.
pub(crate) const LEASE_AFTER: u32 = 32;
pub(crate) const LEASE_AFTER_MAX: u32 = 4096;
/// To read the others' pins takes cache lines from them that they write all the time:
/// where there are any, so many commits do not, and so many where one writes at a time.
pub(crate) const IN_COMPANY: u32 = 31;
pub(crate) const IN_COMPANY_ALONE: u32 = 3;
/// Of so many commits that waited for nothing, one lets a checkpoint go on.
pub(crate) const YIELD_EVERY: u64 = 64;
/// Pages, before they are compressed, that a thread writes at a time for a checkpoint.
pub(crate) const PORTION_BYTES: usize = 512 << 10;
/// The fewest frames of a cache.
pub(crate) const FRAMES_MIN: usize = 64;
/// Bytes of redo after which it is counted anew.
pub(crate) const REDO_STEP: usize = 512 << 10;
/// Bytes of redo beyond which a transaction becomes bulk, and beyond which one does
/// that fills its pages, as loads do: multiples of [`REDO_STEP`].
pub(crate) const REDO_LIMIT: usize = 8 << 20;
pub(crate) const DENSE_LIMIT: usize = 4 << 20;
/// Unwritten bytes a fork holds at most, where the cache is large enough.
pub(crate) const BUDGET_BYTES: usize = 8 << 20;
/// Unwritten nodes that the forks of a transaction may always hold.
pub(crate) const BUDGET_MIN: usize = 16;

/// How often who waits for an [`ExclusiveLock`] looks again before anything slower,
/// and the pauses between two looks: together a few microseconds.
const LOOKS: u32 = 30;
const PAUSES_A_LOOK: u32 = 4;
/// How [`look_later`] passes the time.
const YIELDS_A_LOOK: u32 = 16;
const LOOK_SOON: Duration = Duration::from_micros(10);
const PAUSES_A_YIELD: u32 = 64;
/// How long who waits for an [`ExclusiveLock`] stays awake where all come for it at once,
/// and the pauses between two looks. To sleep and be woken takes as long where the
/// processor sleeps too.
const AWAKE: Duration = Duration::from_micros(60);
const PAUSES_AWAKE: u32 = 16;
/// Letting others run takes longer than this only where the processors are others', who
/// keep them for milliseconds.
const HOGGED: Duration = Duration::from_micros(600);

/// How many threads run at a time, asked once: the answer is in files of the system's.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The time since some moment.
pub(crate) fn now() -> Duration {
    Machine.now()
}

/// Lets go of a lock until woken, or for so long.
pub(crate) fn wait_briefly<'m, T>(
    _: &'m Mutex<T>,
    mut held: MutexGuard<'m, T>,
    condition: &Condvar,
    time: Duration,
) -> MutexGuard<'m, T> {
    condition.wait_for(&mut held, time);
    held
}

/// Lets a microsecond pass, or longer where others want to run.
pub(crate) fn look_again() {
    for _ in 0..PAUSES_A_YIELD {
        spin_loop();
    }
    yield_now();
}

/// The same for ten microseconds and more.
pub(crate) fn look_later() {
    for _ in 0..YIELDS_A_LOOK {
        look_again();
    }
}

/// Lets ten microseconds pass, no longer.
pub(crate) fn look_soon() {
    let start = Instant::now();
    while start.elapsed() < LOOK_SOON {
        spin_loop();
    }
}

/// Starts a thread of this name.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
}

/// How staying awake for a lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stayed {
    Taken,
    InVain,
    /// Others have the processors.
    Hogged,
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

    /// Looks again for as long as a small commit holds the lock before it lets
    /// others run and then sleeps: of more writers than processors, those would
    /// take turns at every commit, each with what it works on out of the caches.
    pub(crate) fn try_lock_for(&self, timeout: Duration) -> bool {
        for _ in 0..LOOKS {
            for _ in 0..PAUSES_A_LOOK {
                spin_loop();
            }
            if !self.0.is_locked() && self.0.try_lock() {
                return true;
            }
        }
        self.0.try_lock_for(timeout)
    }

    /// Looks again for a while, letting others run, without sleeping.
    pub(crate) fn try_lock_awake(&self) -> Stayed {
        let start = Instant::now();
        let mut last = Duration::ZERO;
        loop {
            for _ in 0..PAUSES_AWAKE {
                spin_loop();
            }
            if !self.0.is_locked() && self.0.try_lock() {
                return Stayed::Taken;
            }
            yield_now();
            let now = start.elapsed();
            if now - last > HOGGED {
                return Stayed::Hogged;
            } else if now > AWAKE {
                return Stayed::InVain;
            }
            last = now;
        }
    }

    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock() }
    }

    /// Gives the lock to who has slept for it longest, if anybody does.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn hand_over(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_fair() }
    }
}

/// A lock without a guard that many hold shared or one holds alone. Who waits to
/// be alone keeps new ones out.
pub(crate) struct SharedLock(parking_lot::RawRwLock);

impl Default for SharedLock {
    fn default() -> Self {
        Self(parking_lot::RawRwLock::INIT)
    }
}

impl SharedLock {
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
