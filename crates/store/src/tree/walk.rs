//! From a root to a leaf.
//!
//! A descent runs inside a [`Walk`](crate::cache::Walk): it follows hints with
//! one load and one compare a level. Where a node is not in memory, the walk
//! ends, the node is fetched and kept pinned, and the descent starts over; what
//! was fetched stays pinned until it succeeds, so it does.

use crate::cache::{Absent, ChildRef, Frame, Pool, SlotId};
use crate::error::Result;
use crate::node::{self, Key};

/// Which leaf a descent is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'k> {
    /// The leaf whose range holds the key.
    Key(Key<'k>),
    /// The leaf that holds the keys just below this one.
    Below(Key<'k>),
    First,
    Last,
}

/// How much of the leaf is asked for ahead of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// The slot of the key sought.
    Slot,
    /// All of it: it is about to be copied, so every line is needed soon.
    Page,
}

/// The child that the target lies in.
pub(crate) fn child_for(keys: &[u8], target: Target<'_>) -> usize {
    match target {
        Target::Key(key) => node::child_index(keys, key),
        Target::Below(key) => {
            let index = node::child_index(keys, key);
            if index > 0 && node::owned_key_at(keys, index - 1).as_key() == key {
                index - 1
            } else {
                index
            }
        }
        Target::First => 0,
        Target::Last => node::count(keys),
    }
}

/// One descent, inside a walk.
#[inline]
pub(crate) fn descend(
    pool: &Pool,
    root: &mut ChildRef,
    target: Target<'_>,
    ahead: Ahead,
) -> std::result::Result<Frame, Absent> {
    let mut frame = pool.enter(root)?;
    loop {
        // SAFETY: inside a walk, and the node is shared or the caller's own.
        let keys = unsafe { pool.frames.keys(frame) };
        if node::is_leaf(keys) {
            return Ok(frame);
        }
        let index = child_for(keys, target);
        if let Target::Key(key) = target
            && let Some(offset) = node::likely_slot(keys, index, key)
        {
            // The slot is looked at after the leaf's header: both are on their
            // way at once.
            let leaf = pool.frames.child(frame, index).hint;
            pool.frames.prefetch(leaf, offset);
            if ahead == Ahead::Page {
                pool.frames.prefetch_page(leaf);
            }
        }
        frame = pool.follow(frame, index)?;
    }
}

/// Walks to the target's leaf and hands its frame and page to `found`, which
/// must not block. `None` if the tree is empty.
#[inline]
pub(crate) fn with_leaf<R>(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    root: &mut ChildRef,
    (target, ahead): (Target<'_>, Ahead),
    found: impl FnOnce(Frame, &[u8]) -> R,
) -> Result<Option<R>> {
    if root.is_none() {
        return Ok(None);
    }
    let mut fetched = Vec::new();
    loop {
        let walk = pool.readers.walk(slot);
        match descend(pool, root, target, ahead) {
            Ok(frame) => {
                // SAFETY: a leaf, inside the walk.
                let page = unsafe { pool.frames.page(frame) };
                return Ok(Some(found(frame, page)));
            }
            Err(absent) => {
                drop(walk);
                fetched.push(pool.fetch(absent, tree)?);
            }
        }
    }
}

/// The largest key of a tree of integers.
pub(crate) fn last_int_key(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    root: &mut ChildRef,
) -> Result<Option<i64>> {
    let mut target = Target::Last;
    loop {
        let found =
            with_leaf(
                pool,
                slot,
                tree,
                root,
                (target, Ahead::Slot),
                |_, page| match node::count(page) {
                    0 => Err(node::lower_fence(page).and_then(|fence| match fence {
                        Key::Int(key) => Some(key),
                        Key::Bytes(_) => None,
                    })),
                    count => Ok(node::int_key_at(page, count - 1)),
                },
            )?;
        match found {
            Some(Ok(key)) => return Ok(Some(key)),
            // An empty leaf: the one before it.
            Some(Err(Some(fence))) => target = Target::Below(Key::Int(fence)),
            Some(Err(None)) | None => return Ok(None),
        }
    }
}
