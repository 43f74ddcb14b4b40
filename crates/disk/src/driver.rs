//! Time and chance for a database that somebody else drives.
//!
//! Usually a database has a thread of its own for what is done in the background,
//! and goes by the machine's clock. One that is opened with a [`Driver`] has
//! neither: whoever opened it says when background work is done, and all its
//! waits and random numbers come from the driver. So it can live where no thread
//! can be had, and the simulator, which drives it from a seed, sees one run a
//! seed.

use std::fmt::Debug;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// See the module's header.
pub trait Driver: Debug + Send + Sync {
    /// The time since a moment that stays the same; never goes back.
    fn now(&self) -> Duration;

    /// Called, without locks of its own, by a thread that waits for another one,
    /// and again until it need not wait any more or its time is over. Returns
    /// after `time` at the latest, by [`now`](Self::now), and not before some
    /// time has passed.
    fn pass(&self, time: Duration);

    /// 64 random bits, for ids and salts.
    fn random(&self) -> u64;
}

/// How long a waiting thread sleeps before it looks again.
const NAP: Duration = Duration::from_millis(1);

/// The machine's clock and the process's random numbers, for databases without a
/// thread of their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Driver for Machine {
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn pass(&self, time: Duration) {
        std::thread::sleep(time.min(NAP));
    }

    fn random(&self) -> u64 {
        RandomState::new().build_hasher().finish()
    }
}
