//! From a root to a leaf.
//!
//! A descent runs inside a [`Walk`](crate::cache::Walk): it follows hints with
//! one load and one compare a level. Where a node is not in memory, the walk
//! ends, the node is fetched and kept pinned, and the descent starts over; what
//! was fetched stays pinned until it succeeds, so it does. In the same way it
//! ends where the rest of a long key decides, which is compared outside of it.

use super::KeyKind;
use super::overflow;
use crate::cache::{Absent, ChildRef, Frame, Pinned, Pool, SlotId, Topmost};
use crate::error::Result;
use crate::node::{self, Key, Rests, Unknown};

/// Which leaf a descent is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'k> {
    /// The leaf whose range holds the key.
    Key(Key<'k>),
    /// The leaf that holds the keys just below this one.
    Below(Key<'k>),
    First,
    Last,
    /// The leaf before which about this share of the leaves lies, in parts of 2^32.
    Share(u32),
}

/// How much of the leaf is asked for ahead of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// The slot of the key sought.
    Slot,
    /// All of it: it is about to be copied, so every line is needed soon.
    Page,
}

impl<'k> Target<'k> {
    pub(crate) fn key(self) -> Option<Key<'k>> {
        match self {
            Target::Key(key) | Target::Below(key) => Some(key),
            Target::First | Target::Last | Target::Share(_) => None,
        }
    }
}

/// Why a walk ends before it is where it should.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A node is not in memory.
    Absent(Absent),
    /// The rest of a long key decides.
    Rest(Unknown),
}

impl From<Absent> for Halt {
    fn from(absent: Absent) -> Self {
        Halt::Absent(absent)
    }
}

impl From<Unknown> for Halt {
    fn from(unknown: Unknown) -> Self {
        Halt::Rest(unknown)
    }
}

/// What a walk that starts over has beyond the one before.
#[derive(Default)]
pub(crate) struct Learnt<'p> {
    fetched: Vec<Pinned<'p>>,
    /// How the rests it met compare with the target's.
    pub(crate) rests: Rests,
}

impl<'p> Learnt<'p> {
    /// Gets what a walk to `key` halted for. Outside of walks.
    #[cold]
    pub(crate) fn get(
        &mut self,
        pool: &'p Pool,
        slot: &SlotId,
        tree: u32,
        key: Option<Key<'_>>,
        halt: Halt,
    ) -> Result<()> {
        match halt {
            Halt::Absent(absent) => self.fetched.push(pool.fetch(absent, tree)?),
            Halt::Rest(unknown) => {
                let sought = key.and_then(|key| node::split_key(pool.page_size(), key).1);
                let sought = sought.unwrap_or(&[]);
                let order = overflow::compare(pool, slot, tree, &unknown.0, sought)?;
                self.rests.note(unknown, order);
            }
        }
        Ok(())
    }
}

/// The child that the target lies in.
#[inline]
pub(crate) fn child_for(
    keys: &[u8],
    target: Target<'_>,
    rests: &Rests,
) -> std::result::Result<usize, Unknown> {
    match target {
        Target::Key(key) => node::child_index(keys, key, rests),
        Target::Below(key) => node::child_below(keys, key, rests),
        Target::First => Ok(0),
        Target::Last => Ok(node::count(keys)),
        Target::Share(share) => Ok(split_share(keys, share).0),
    }
}

/// The child that a share of an inner node's leaves ends in, and what share of that
/// child's. The children count alike.
fn split_share(keys: &[u8], share: u32) -> (usize, u32) {
    let children = node::count(keys) as u64 + 1;
    let at = u64::from(share) * children;
    ((at >> 32) as usize, at as u32)
}

/// One descent, inside a walk.
#[inline]
pub(crate) fn descend(
    pool: &Pool,
    (root, topmost): (&mut ChildRef, Topmost),
    mut target: Target<'_>,
    ahead: Ahead,
    rests: &Rests,
) -> std::result::Result<Frame, Halt> {
    let mut frame = pool.enter(root, topmost)?;
    loop {
        // SAFETY: inside a walk, and the node is shared or the caller's own.
        let keys = unsafe { pool.frames.keys(frame) };
        if node::is_leaf(keys) {
            return Ok(frame);
        }
        let index = child_for(keys, target, rests)?;
        match &mut target {
            Target::Key(key) => {
                if let Some(offset) = node::likely_slot(keys, index, *key) {
                    // The slot is looked at after the leaf's header: both are on their
                    // way at once.
                    let leaf = pool.frames.child(frame, index).hint();
                    pool.frames.prefetch(leaf, offset);
                    if ahead == Ahead::Page {
                        pool.frames.prefetch_page(leaf);
                    }
                }
            }
            Target::Share(share) => *share = split_share(keys, *share).1,
            Target::Below(_) | Target::First | Target::Last => {}
        }
        frame = pool.follow(frame, index)?;
    }
}

/// Walks to the target's leaf and hands its frame and page to `found`, which
/// must not block, and is called again where it lacked a rest. `None` if the tree
/// is empty.
#[inline]
pub(crate) fn with_leaf<R>(
    pool: &Pool,
    slot: &SlotId,
    (root, topmost): (&mut ChildRef, Topmost),
    (target, ahead): (Target<'_>, Ahead),
    mut found: impl FnMut(Frame, &[u8], &Rests) -> std::result::Result<R, Unknown>,
) -> Result<Option<R>> {
    if root.is_none() {
        return Ok(None);
    }
    let mut learnt = Learnt::default();
    loop {
        let walk = pool.readers.walk(slot);
        let halt = match descend(pool, (root, topmost), target, ahead, &learnt.rests) {
            Ok(frame) => {
                // SAFETY: a leaf, inside the walk.
                let page = unsafe { pool.frames.page(frame) };
                match found(frame, page, &learnt.rests) {
                    Ok(found) => return Ok(Some(found)),
                    Err(unknown) => unknown.into(),
                }
            }
            Err(halt) => halt,
        };
        drop(walk);
        learnt.get(pool, slot, topmost.tree(), target.key(), halt)?;
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
    let topmost = Topmost::Root(tree, KeyKind::Int);
    loop {
        let found = with_leaf(
            pool,
            slot,
            (root, topmost),
            (target, Ahead::Slot),
            |_, page, _| {
                Ok(match node::count(page) {
                    0 => Err(node::lower_fence(page).and_then(|fence| match fence.key {
                        Key::Int(key) => Some(key),
                        Key::Bytes(_) => None,
                    })),
                    count => Ok(node::int_key_at(page, count - 1)),
                })
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
