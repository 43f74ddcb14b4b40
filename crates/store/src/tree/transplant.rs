//! Moving those leaves of a fork to a newer head that nobody else changed.
//!
//! A fork that cannot be grafted as a whole (`graft.rs`), since it is large, has split
//! nodes or changed a leaf that others changed too, starts over from the head. But where
//! the head still has the node that a leaf of the fork was copied from, that leaf takes
//! its place as it is, and only what was done in the others is replayed.
//!
//! 1. Forks are looked at that made copies, each of one node that they replaced, and
//!    nodes that came from splits, no others. So a copy that was never split holds all
//!    that the fork did between its fences, and the entries there of what it replaced.
//! 2. An operation *moves* where its leaf in the fork is such a copy and the head has
//!    under its key what the leaf replaced. All entries between the leaf's fences are as
//!    they were in the base then, so the operation needs no validating either.
//! 3. Of a leaf all operations move or none, since who replays one would undo what came
//!    after it. So where the head's leaf cannot be found (a node is not in memory, the
//!    rest of a long key decides), the fork's is replayed, though it could be found later;
//!    where the fork's own cannot, nothing moves.
//! 4. [`Fork::sort_out`] changes nothing. [`Fork::transplant`] is for a fork that started
//!    over from the same head, has nothing but the leaves that move, and spilled nothing
//!    since.
//!
//! The tree's writer lock keeps the head where it is, and its nodes alive.

use super::fork::{Context, Fork};
use super::graft::same;
use super::versions::Root;
use super::walk::{self, Target};
use crate::cache::{ChildRef, Frame, Pool, SlotId, Topmost};
use crate::error::{Error, Result};
use crate::node::{self, Key, Rests};
use crate::reclaim::Dead;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Operations that are looked at in one walk.
const OPS_A_WALK: usize = 64;

/// What moves of a fork.
pub(crate) struct Moving {
    /// For each operation, in their order.
    ops: Vec<bool>,
    leaves: Vec<MovingLeaf>,
}

/// A leaf that moves.
pub(crate) struct MovingLeaf {
    /// The first operation in it.
    pub(crate) op: usize,
    pub(crate) leaf: ChildRef,
    /// What it takes the place of.
    pub(crate) replaces: Dead,
}

impl Moving {
    /// Whether this operation, of those that were looked at, is done by moving a leaf.
    pub(crate) fn covers(&self, op: usize) -> bool {
        self.ops.get(op) == Some(&true)
    }

    /// The leaves, in the order of their first operations.
    pub(crate) fn leaves(&self) -> &[MovingLeaf] {
        &self.leaves
    }
}

/// What is known of a copy.
enum Fate {
    Unmet(Dead),
    Moves,
    Stays,
}

impl Fork {
    /// What can be moved to `head`, the tree's newest version. `keys` are those of all
    /// operations of the fork. `None` if it is nothing, or cannot be told.
    pub(crate) fn sort_out<'k>(
        &self,
        (pool, slot): (&Pool, &SlotId),
        head: Root,
        keys: impl Iterator<Item = Key<'k>>,
    ) -> Option<Moving> {
        let unfit = self.created || self.dropped || head.dropped || self.is_watched();
        if unfit || self.root.is_none() || head.node.is_none() {
            return None;
        }
        let mut fates = self.copies()?;
        let mut moving = Moving {
            ops: Vec::new(),
            leaves: Vec::new(),
        };
        let topmost = self.tree.0.topmost();
        let mut keys = keys.enumerate().peekable();
        while keys.peek().is_some() {
            let _walk = pool.readers.walk(slot);
            for (op, key) in keys.by_ref().take(OPS_A_WALK) {
                let leaf = leaf_under(pool, (self.root, topmost), key)?;
                let moves = fates.get_mut(&leaf.reference).is_some_and(|fate| {
                    if let Fate::Unmet(replaces) = *fate {
                        let theirs = leaf_under(pool, (head.node, topmost), key);
                        let is_there = theirs.is_some_and(|node| same(pool, node, replaces.node));
                        *fate = if is_there { Fate::Moves } else { Fate::Stays };
                        let leaf = MovingLeaf { op, leaf, replaces };
                        moving.leaves.extend(is_there.then_some(leaf));
                    }
                    matches!(fate, Fate::Moves)
                });
                moving.ops.push(moves);
            }
        }
        (!moving.leaves.is_empty()).then_some(moving)
    }

    /// The fork's copies by their references, each with what it replaced. `None` if it
    /// made others than copies and halves.
    fn copies(&self) -> Option<FxHashMap<u64, Fate>> {
        let copied = self.own.len().checked_sub(self.split_off.len());
        let only_copied_and_split =
            self.copied == copied && self.copied == Some(self.replaced.len()) && self.spilled == 0;
        if !only_copied_and_split {
            return None;
        }
        let mut split_off = self.split_off.iter().peekable();
        let copies = self
            .own
            .iter()
            .filter(|node| split_off.next_if_eq(&&node.reference).is_none());
        let mut fates: FxHashMap<u64, Fate> = copies
            .zip(self.replaced.iter())
            .map(|(copy, replaced)| (copy.reference, Fate::Unmet(*replaced)))
            .collect();
        for split in &self.split {
            fates.insert(*split, Fate::Stays);
        }
        Some(fates)
    }

    /// Puts a leaf in the place of what it replaces; `key` is that of its first operation.
    pub(crate) fn transplant(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        moving: &MovingLeaf,
    ) -> Result<()> {
        let parent = self.private_parent(cx, key)?;
        let frames = &cx.pool.frames;
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let keys = unsafe { frames.keys(parent) };
        let index = walk::child_for(keys, Target::Key(key), Rests::NONE);
        let is_there = |index: &usize| {
            let child = frames.child(parent, *index);
            same(cx.pool, child, moving.replaces.node)
        };
        let index = index.ok().filter(is_there).ok_or_else(|| {
            Error::misuse("a tree was changed by somebody who did not have its writer lock")
        })?;
        let leaf = moving.leaf;
        debug_assert!(
            frames.holding(leaf.hint(), leaf.reference).is_some(),
            "it was spilled"
        );
        frames
            .meta(leaf.hint())
            .generation
            .store(self.generation, Relaxed);
        frames.set_child(parent, index, leaf);
        self.replaced.push(moving.replaces);
        self.copied = None;
        Ok(())
    }
}

/// The leaf that a key lies under, as its parent refers to it, with its frame if it is in
/// one. `None` where a node above it is not in memory, there is none, or the rest of a
/// long key decides. Inside a walk.
fn leaf_under(
    pool: &Pool,
    (mut root, topmost): (ChildRef, Topmost),
    key: Key<'_>,
) -> Option<ChildRef> {
    let mut frame: Frame = pool.enter(&mut root, topmost).ok()?;
    loop {
        // SAFETY: inside the caller's walk; shared, or private to its fork.
        let keys = unsafe { pool.frames.keys(frame) };
        if node::is_leaf(keys) {
            return None;
        }
        let index = walk::child_for(keys, Target::Key(key), Rests::NONE).ok()?;
        if node::level(keys) == 1 {
            return Some(pool.frames.child(frame, index));
        }
        frame = pool.follow(frame, index).ok()?;
    }
}
