//! How many frames hold unwritten nodes, and what that calls for.
//!
//! An unwritten node costs no more than its frame, and one that changes again
//! before it is written is a write saved. A checkpoint for the sake of those that are
//! alive, which it writes, begins where they fill a quarter of the frames: early, so
//! that it is done before writers must be held up. But a table that changes all over
//! has filled as much again when it ends. So there is a *rest* after one, some times as
//! long as it took, in which another begins only where unwritten nodes have become more
//! since by a sixteenth of the frames, or fill half of them. Those that died and that
//! snapshots still need would not be written: they are counted at the looks that free
//! the rest ([`Pool::note_needed`]), and come on top. With more threads than processors,
//! whose snapshots wait for their turn, that can be as much again.

use super::Pool;
use crate::primitives::atomic::{AtomicUsize, Ordering::*};

/// The most nodes that a fork makes before it tells the pool.
const TOLD_AT_ONCE_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Crowding {
    unwritten: AtomicUsize,
    /// Of these, dead and still needed at the last look.
    needed: AtomicUsize,
    /// Alive ones that call for a checkpoint in a rest; 0 where there is none.
    rested_at: AtomicUsize,
}

impl Pool {
    /// Frames holding nodes that are not written yet, but for a few a fork
    /// ([`told_at_once`](Self::told_at_once)).
    pub(crate) fn unwritten(&self) -> usize {
        (self.crowding.unwritten.load(Relaxed) as isize).max(0) as usize
    }

    /// Of how many nodes that it made a fork tells together, since all share the
    /// counter: so few that those untold, of some transactions that write to some trees
    /// each, are a small part of the cache.
    #[inline]
    pub(crate) fn told_at_once(&self) -> usize {
        (self.frames.count() / 256).clamp(1, TOLD_AT_ONCE_MAX)
    }

    /// So many frames became homes of unwritten nodes.
    #[inline]
    pub(crate) fn note_unwritten(&self, frames: usize) {
        self.crowding.unwritten.fetch_add(frames, Relaxed);
    }

    /// So many unwritten nodes were buried, or written.
    #[inline]
    pub(crate) fn note_buried(&self, nodes: usize) {
        if nodes > 0 {
            self.crowding.unwritten.fetch_sub(nodes, Relaxed);
        }
    }

    /// So many dead nodes in memory alone are needed by readers. Others want frames too,
    /// hence the bound: unwritten nodes fill seven eighths of the frames at most before a
    /// checkpoint begins.
    pub(crate) fn note_needed(&self, nodes: usize) {
        let bound = self.usable() / 8 * 3;
        self.crowding.needed.store(nodes.min(bound), Relaxed);
    }

    /// A checkpoint ended: a rest begins.
    pub(crate) fn begin_rest(&self) {
        let usable = self.usable();
        let more = self.unwritten().max(usable / 4) + usable / 16;
        let at = more.min(usable / 2).max(1);
        self.crowding.rested_at.store(at, Relaxed);
    }

    /// The rest is over.
    pub(crate) fn end_rest(&self) {
        self.crowding.rested_at.store(0, Relaxed);
    }

    /// Whether unwritten nodes call for a look, and after it for a checkpoint.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        let limit = match self.crowding.rested_at.load(Relaxed) {
            0 => self.usable() / 4,
            at => at,
        };
        self.unwritten() > limit + self.crowding.needed.load(Relaxed)
    }

    /// How many unwritten nodes there may be before committers are held up: three
    /// quarters of the frames, and seven eighths where snapshots need the rest.
    pub(super) fn unwritten_max(&self) -> usize {
        let usable = self.usable();
        let needed = self.crowding.needed.load(Relaxed);
        usable / 4 * 3 + needed.min(usable / 8)
    }
}
