//! Entries that come in the order of their keys, behind all others of a fork: gathered in
//! a [`Draft`], and written a leaf at a time.

use super::fork::{Context, Fork};
use super::walk::Target;
use crate::cache::Pool;
use crate::error::Result;
use crate::node::{Draft, SplitPoint, Stored};
use std::sync::atomic::Ordering::Relaxed;

impl Fork {
    /// A draft of the leaf edited last, where it is one to go on from.
    pub(crate) fn draft(&self, pool: &Pool) -> Option<Draft> {
        let leaf = self.memo.filter(|leaf| self.owns(pool, *leaf))?;
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        Draft::of(unsafe { pool.frames.page(leaf.hint()) })
    }

    /// Writes the draft's leaf, which is full, and the one behind it with a single entry.
    pub(crate) fn write_full(&mut self, cx: &mut Context<'_>, draft: &Draft) -> Result<()> {
        self.settle(cx.pool);
        let path = self.private_path(cx, Target::Last)?;
        let right = self.new_frame(cx)?;
        // SAFETY: the leaf is private (rule 2), the new frame ours (rule 1); they differ,
        // and nothing else borrows them.
        let fence = unsafe {
            let frames = &cx.pool.frames;
            draft.fill(frames.page_mut(path.leaf), frames.page_mut(right))
        };
        let child = self.adopt_half(cx.pool, right);
        let left = cx.pool.frames.meta(path.leaf).identity.load(Relaxed);
        self.split.extend([left, child.reference]);
        self.remember(cx, right);
        self.count += draft.unwritten().len() as u64;
        let fence = Stored::from(fence).to_owned();
        self.grow(cx, &path, fence, child, SplitPoint::Append)
    }

    /// Writes what is left of a draft into the last leaf, where it fits.
    pub(crate) fn write_last(&mut self, cx: &mut Context<'_>, draft: &Draft) -> Result<()> {
        self.settle(cx.pool);
        let leaf = self.private_path(cx, Target::Last)?.leaf;
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        draft.fill_last(unsafe { cx.pool.frames.page_mut(leaf) });
        self.remember(cx, leaf);
        self.count += draft.unwritten().len() as u64;
        Ok(())
    }
}
