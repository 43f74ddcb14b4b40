//! The thread behind a log: it writes what is appended and not flushed before
//! the ring is full, and prepares the file ahead on its first lap. Nothing but
//! speed depends on it: without one, who finds the ring full writes it, and who
//! appends prepares.

use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use fulgurite_disk::{DiskError, DiskErrorKind};

use super::core::Core;
use super::error::Result;
use super::locks::{lock, wait};
use crate::primitives::{AtomicBool, Condvar, Mutex, Ordering};

/// Wakes the thread.
#[derive(Default)]
pub(super) struct Signal {
    raised: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: bool,
    stop: bool,
}

impl Signal {
    #[inline]
    pub(super) fn raise(&self) {
        if !self.raised.load(Ordering::Relaxed) {
            self.raise_slowly();
        }
    }

    #[cold]
    fn raise_slowly(&self) {
        if !self.raised.swap(true, Ordering::Relaxed) {
            lock(&self.state).work = true;
            self.changed.notify_one();
        }
    }

    fn stop(&self) {
        lock(&self.state).stop = true;
        self.changed.notify_one();
    }

    /// Waits for work; false if the log is closed.
    fn next(&self) -> bool {
        let mut state = lock(&self.state);
        while !state.work && !state.stop {
            state = wait(&self.changed, state);
        }
        state.work = false;
        self.raised.store(false, Ordering::Relaxed);
        !state.stop
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Background {
    core: Weak<Core>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(super) fn start(core: &Arc<Core>) -> Result<Self> {
        if !core.has_background {
            return Ok(Self {
                core: Weak::new(),
                thread: None,
            });
        }
        let worked = Arc::clone(core);
        let thread = thread::Builder::new()
            .name("fulgurite-log".to_owned())
            .spawn(move || work(&worked))
            .map_err(|error| {
                DiskError::with_kind(
                    "start a thread for",
                    &core.path,
                    DiskErrorKind::Other,
                    error,
                )
            })?;
        Ok(Self {
            core: Arc::downgrade(core),
            thread: Some(thread),
        })
    }

    /// Stops the thread and waits for its end.
    pub(super) fn stop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.signal.stop();
        }
        if let Some(thread) = self.thread.take() {
            // It has no result, and what it failed at poisoned the log.
            let _ = thread.join();
        }
    }
}

fn work(core: &Core) {
    while core.signal.next() {
        // A failed write or sync poisons the log, which says so; a file that
        // cannot grow is reported to the append that needs the room.
        let _ = core.wait_written(core.appended());
        let _ = core.prepare_ahead();
    }
}
