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
//!
//! What transactions hold no checkpoint writes. Those that change more than fits, all
//! over, hold much for long, so they *set frames aside* ([`Pool::set_aside`]): all these
//! shares are of the other frames, and of the unwritten nodes beyond those set aside. A
//! store with such a transaction works as one with a smaller cache does.

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
    /// Frames set aside, and by how many transactions.
    set_aside: AtomicUsize,
    set_aside_by: AtomicUsize,
}

impl Pool {
    /// Frames holding nodes that are not written yet, but for a few a fork
    /// ([`told_at_once`](Self::told_at_once)).
    pub(crate) fn unwritten(&self) -> usize {
        (self.crowding.unwritten.load(Relaxed) as isize).max(0) as usize
    }

    /// Frames that are set aside, of which an eighth is left to all in any case.
    #[inline]
    fn aside(&self) -> usize {
        let set_aside = self.crowding.set_aside.load(Relaxed);
        set_aside.min(self.usable() / 8 * 7)
    }

    /// Frames that are not set aside.
    #[inline]
    pub(crate) fn shared(&self) -> usize {
        self.usable() - self.aside()
    }

    /// Unwritten nodes beyond those that frames are set aside for.
    #[inline]
    pub(crate) fn unwritten_shared(&self) -> usize {
        self.unwritten().saturating_sub(self.aside())
    }

    /// A transaction sets `now` frames aside, where it had set `before` aside; with 0 it
    /// gives them back, which each has to.
    pub(crate) fn set_aside(&self, before: usize, now: usize) {
        let crowding = &self.crowding;
        crowding
            .set_aside
            .fetch_add(now.wrapping_sub(before), Relaxed);
        match (before, now) {
            (0, 1..) => crowding.set_aside_by.fetch_add(1, Relaxed),
            (1.., 0) => crowding.set_aside_by.fetch_sub(1, Relaxed),
            _ => return,
        };
    }

    /// How many transactions have set frames aside.
    #[inline]
    pub(crate) fn set_aside_by(&self) -> usize {
        self.crowding.set_aside_by.load(Relaxed)
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
        let bound = self.shared() / 8 * 3;
        self.crowding.needed.store(nodes.min(bound), Relaxed);
    }

    /// A checkpoint ended: a rest begins.
    pub(crate) fn begin_rest(&self) {
        let shared = self.shared();
        let more = self.unwritten_shared().max(shared / 4) + shared / 16;
        let at = more.min(shared / 2).max(1);
        self.crowding.rested_at.store(at, Relaxed);
    }

    /// The rest is over.
    pub(crate) fn end_rest(&self) {
        self.crowding.rested_at.store(0, Relaxed);
    }

    /// Whether unwritten nodes call for a look, and after it for a checkpoint.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        let rested_at = self.crowding.rested_at.load(Relaxed);
        let limit = rested_at.max(self.shared() / 4);
        self.unwritten_shared() > limit + self.crowding.needed.load(Relaxed)
    }

    /// Whether unwritten nodes fill more than after a checkpoint they should.
    pub(crate) fn stays_crowded(&self) -> bool {
        self.unwritten_shared() > self.shared() / 4
    }

    /// How many unwritten nodes there may be before committers are held up: three
    /// quarters of the frames, and seven eighths where snapshots need the rest.
    pub(super) fn unwritten_max(&self) -> usize {
        let shared = self.shared();
        let needed = self.crowding.needed.load(Relaxed);
        shared / 4 * 3 + needed.min(shared / 8)
    }
}
