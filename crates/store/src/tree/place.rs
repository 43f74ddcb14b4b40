//! Where an entry lies, or will, in a leaf that nothing but memory holds.
//!
//! A place is looked up without copying anything. It is good until somebody writes to
//! its leaf, and as long as the leaf [`stays`](Place::stays). Whether one may write
//! there is for who asked to know: `txn/in_place.rs`.

use super::edit::IfExists;
use super::fork::Fork;
use super::walk::{self, Ahead, Target};
use crate::cache::{ChildRef, Frame, Pool, SlotId};
use crate::node::{self, Key, Rests};
use std::sync::atomic::Ordering::*;

/// What is to be done with an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// Written, with a value of so many bytes.
    Put {
        len: usize,
        if_exists: IfExists,
    },
    Deleted,
}

/// What doing it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Insert,
    Replace,
    Remove,
    /// The entry is, or is not, there, so that nothing is done.
    Nothing,
}

/// See the module's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    leaf: ChildRef,
    /// A lower bound of the number that made the leaf.
    pub(crate) birth: u64,
    index: usize,
    pub(crate) step: Step,
}

impl Place {
    /// The place of a short key; none where its leaf is not in memory alone, was born at
    /// or before `newest`, or would have to be split or merged.
    #[inline]
    pub(crate) fn find(
        fork: &mut Fork,
        (pool, slot): (&Pool, &SlotId),
        (key, change): (Key<'_>, Change),
        newest: u64,
    ) -> Option<Self> {
        let page_size = pool.page_size();
        if fork.root.is_none() || node::split_key(page_size, key).1.is_some() {
            return None;
        }
        let _walk = pool.readers.walk(slot);
        let target = Target::Key(key);
        let frame = walk::descend(pool, &mut fork.root, target, Ahead::Slot, Rests::NONE).ok()?;
        let reference = pool.frames.meta(frame).identity.load(Acquire);
        let leaf = ChildRef::new(reference, 0, frame);
        // SAFETY: a leaf, inside the walk.
        let page = unsafe { pool.frames.page(frame) };
        let birth = node::birth(page);
        if !leaf.is_handle() || birth <= newest {
            return None;
        }
        let found = node::find(page, key, Rests::NONE).ok()?;
        let is_root = fork.root.reference == reference;
        Some(Self {
            leaf,
            birth,
            index: found.unwrap_or_else(|index| index),
            step: step(page, is_root, key, found.ok(), change)?,
        })
    }

    /// Whether two of them lie in one leaf, so that writing at one moves the other.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.leaf.reference == other.leaf.reference
    }

    /// Whether the leaf is in its frame still.
    pub(crate) fn stays(&self, pool: &Pool) -> bool {
        let holding = pool.frames.holding(self.frame(), self.leaf.reference);
        holding.is_some()
    }

    fn frame(&self) -> Frame {
        self.leaf.hint()
    }

    /// Does what the place was looked for, with the same key and length of value.
    ///
    /// # Safety
    /// The leaf is in its frame, and nobody else reaches it (frames, rule 2).
    pub(crate) unsafe fn write(&self, pool: &Pool, key: Key<'_>, value: &[u8]) {
        // SAFETY: as promised by the caller.
        let page = unsafe { pool.frames.page_mut(self.frame()) };
        let fits = match self.step {
            Step::Insert => node::insert_at(page, self.index, key.into(), value, false),
            Step::Replace => node::replace_value_at(page, self.index, value, false),
            Step::Remove => {
                node::remove_at(page, self.index);
                true
            }
            Step::Nothing => true,
        };
        debug_assert!(fits, "there was room, and nobody else writes there");
    }
}

/// What a change of a leaf's entry takes, if it takes no more than that leaf.
fn step(
    page: &[u8],
    is_root: bool,
    key: Key<'_>,
    found: Option<usize>,
    change: Change,
) -> Option<Step> {
    let is_plain = |index| !node::value_at(page, index).1 && node::rest_at(page, index).is_none();
    match (change, found) {
        (
            Change::Put {
                if_exists: IfExists::Leave,
                ..
            },
            Some(_),
        ) => Some(Step::Nothing),
        (Change::Put { len, .. }, found) => {
            let page_size = page.len();
            if len > node::max_inline_value(page_size, node::stored_len(page_size, key)) {
                return None;
            }
            match found {
                Some(index) => (is_plain(index) && node::has_room_at(page, index, len))
                    .then_some(Step::Replace),
                None => node::has_room(page, key, len).then_some(Step::Insert),
            }
        }
        (Change::Deleted, None) => Some(Step::Nothing),
        (Change::Deleted, Some(index)) => {
            let left = node::used_bytes(page) - node::entry_bytes(page, index);
            let stays = is_root || !node::is_sparse(left, page.len());
            (is_plain(index) && stays).then_some(Step::Remove)
        }
    }
}
