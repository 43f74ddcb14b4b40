//! Who drives a simulated database: its time passes where the workload or a wait
//! lets it, its random numbers are the disk's.

use std::sync::Arc;
use std::time::Duration;

use fulgurite_disk::Driver;
use parking_lot::Mutex;

use crate::{Rng, SimDisk};

/// How long the engine is left alone between two ticks.
const TICK: Duration = Duration::from_millis(200);
/// What a wait costs in which another thread got further.
const TURN: Duration = Duration::from_micros(10);

/// Simulated time. See the module's header.
#[derive(Debug)]
pub struct SimDriver {
    disk: SimDisk,
    time: Mutex<Time>,
}

#[derive(Debug)]
struct Time {
    now: Duration,
    next_tick: Duration,
}

impl SimDriver {
    /// Time for the databases of one process on a disk.
    pub fn new(disk: &SimDisk) -> Arc<Self> {
        Arc::new(Self {
            disk: disk.clone(),
            time: Mutex::new(Time {
                now: Duration::ZERO,
                next_tick: TICK,
            }),
        })
    }

    /// Lets some time pass, mostly a little; true if a tick is due then.
    pub(crate) fn elapse(&self, rng: &mut Rng) -> bool {
        let longest = [100_000, 2_000_000][usize::from(rng.one_in(20))];
        let mut time = self.time.lock();
        time.now += Duration::from_micros(rng.below(longest));
        let due = time.now >= time.next_tick;
        if due {
            time.next_tick = time.now + TICK;
        }
        due
    }
}

impl Driver for SimDriver {
    fn now(&self) -> Duration {
        self.time.lock().now
    }

    /// The other thread's turn, if there is one. If there is none, nothing will
    /// change, and all the time passes at once.
    fn pass(&self, time: Duration) {
        let passed = match self.disk.gate() {
            Some(gate) if gate.give_turn() => time.min(TURN),
            _ => time,
        };
        self.time.lock().now += passed;
    }

    fn random(&self) -> u64 {
        self.disk.random()
    }
}
