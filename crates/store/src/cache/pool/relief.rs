//! Frames when there are none: asking for a checkpoint, and waiting for it.
//!
//! Who needs a frame that neither is free nor can be evicted asks whoever makes
//! checkpoints for one, and looks again when that says it is done. A checkpoint
//! that failed ends the wait with its failure. One that brought no frame, because
//! others were quicker or because the cache is full of what transactions have not
//! committed, is followed by a pause and another one, until the time is over; then
//! it is an error that says what to do, and the caller is as with any error of its operation.
//! Who waits holds nothing that a checkpoint needs. So that transactions do not wait for
//! one another, each writes out what it holds before it waits for more than one
//! checkpoint (`txn/spill.rs`).

use super::{Frame, Pool};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long somebody waits before asking again, after a checkpoint that brought no
/// frame; twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(128);
/// The longest that somebody is held up for the sake of others.
const PACE: Duration = Duration::from_millis(100);

/// How those who wait for frames and the checkpointer find each other.
#[derive(Default)]
pub(super) struct Relief {
    /// Called to ask for a checkpoint.
    request: Option<Arc<dyn Fn() + Send + Sync>>,
    rounds: u64,
    failed: Option<Error>,
}

/// How a wait for frames ended.
enum Relieved {
    /// With a checkpoint, or a part of one, and its failure.
    In(Option<Error>),
    /// Nobody can be asked, or the time is over.
    Not,
}

impl Pool {
    /// A free frame, for a node to be loaded. Evicts clean pages; if
    /// there are none, asks for a checkpoint and waits for it. Nodes of transactions
    /// that have not committed stay through checkpoints: where those fill the cache
    /// it ends when the time is over.
    pub(crate) fn take_frame(&self) -> Result<Frame> {
        let mut taken = self.try_take_frame();
        if taken.is_none() {
            self.wait_for_frames(|| {
                taken = self.try_take_frame();
                taken.is_some()
            })?;
        }
        let taken = taken.or_else(|| self.take_idle());
        taken.ok_or_else(|| self.no_memory())
    }

    /// The same for nodes to be made, until there are `count`. Who waits keeps none: others
    /// may wait for these. It also leaves some to those who read, if not for long, for
    /// perhaps nobody does.
    pub(crate) fn take_frames(&self, frames: &mut Vec<Frame>, count: usize) -> Result<()> {
        let leaves_some_until = self.waits.now() + PACE;
        self.wait_for_frames(|| {
            let taken = self.take_ahead(frames, count)
                || (self.waits.now() >= leaves_some_until && self.take_beside(0, frames, count));
            if !taken {
                self.give_frames(frames);
            }
            taken
        })?;
        while frames.len() < count {
            let frame = self.try_take_frame().or_else(|| self.take_idle());
            frames.push(frame.ok_or_else(|| self.no_memory())?);
        }
        Ok(())
    }

    /// Takes, and where nothing is to be had waits and tries again, until the time is
    /// over or nobody can be asked.
    fn wait_for_frames(&self, mut take: impl FnMut() -> bool) -> Result<()> {
        crate::txn::not_within_commit_lock();
        let patience = self.busy_timeout.max(Duration::from_secs(5));
        let deadline = self.waits.now().saturating_add(patience);
        let mut pause = PAUSE_MIN;
        while !take() {
            match self.ask_for_relief(deadline, || false) {
                Relieved::In(Some(error)) => return Err(error),
                Relieved::In(None) if self.waits.now() < deadline => {}
                _ => return Ok(()),
            }
            if take() {
                return Ok(());
            }
            // What came free was taken by others, or nothing did.
            self.pause_for_relief(deadline.min(self.waits.now() + pause));
            pause = PAUSE_MAX.min(2 * pause);
        }
        Ok(())
    }

    /// As [`take_ahead`](Self::take_ahead), after one checkpoint.
    pub(crate) fn take_after_relief(&self, frames: &mut Vec<Frame>, count: usize) -> Result<bool> {
        self.give_frames(frames);
        match self.ask_for_relief(self.waits.now() + PACE, || false) {
            Relieved::In(Some(error)) => Err(error),
            _ => Ok(self.take_ahead(frames, count)),
        }
    }

    /// Waits for another checkpoint without asking for one, until `until`: perhaps
    /// there comes none.
    fn pause_for_relief(&self, until: Duration) {
        let mut relief = self.relief.lock();
        let round = relief.rounds;
        while relief.rounds == round && self.waits.now() < until {
            relief = self
                .waits
                .briefly(&self.relieved, &self.relief, relief, until);
        }
    }

    /// Holds up a committer that has let go of everything, while too many frames wait
    /// to be written: for a batch of them, which takes milliseconds. So the pages that
    /// are read keep a part of the cache, and writers never run into its end all at
    /// once.
    pub(crate) fn pace(&self) {
        let limit = self.unwritten_max();
        if self.unwritten_shared() <= limit {
            return;
        }
        // What was written since is seen: it is counted before its relief is told.
        let until = self.waits.now() + PACE;
        self.ask_for_relief(until, || self.unwritten_shared() <= limit);
    }

    /// Asks for a checkpoint, and waits until one brings relief or there is
    /// `enough` of it.
    fn ask_for_relief(&self, deadline: Duration, enough: impl Fn() -> bool) -> Relieved {
        let (round, request) = {
            let relief = self.relief.lock();
            (relief.rounds, relief.request.clone())
        };
        let Some(request) = request else {
            return Relieved::Not;
        };
        request();
        let mut relief = self.relief.lock();
        while relief.rounds == round && !enough() {
            if !self.waits.on(&self.relieved, &mut relief, deadline) {
                return Relieved::Not;
            }
        }
        Relieved::In(relief.failed.clone())
    }

    fn no_memory(&self) -> Error {
        Error::new(
            ErrorKind::NoMemory,
            format!(
                "the page cache ({} frames of {} bytes) is full of pages in use; raise cache_bytes or write in smaller transactions",
                self.frames.count(),
                self.page_size(),
            ),
        )
    }

    /// Who to ask for a checkpoint when frames run out.
    pub(crate) fn on_pressure(&self, request: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.relief.lock().request = request;
    }

    /// A checkpoint ended: those who wait for frames look again.
    pub(crate) fn relieve(&self, failed: Option<Error>) {
        let mut relief = self.relief.lock();
        relief.rounds += 1;
        relief.failed = failed;
        self.relieved.notify_all();
    }
}
