//! Where an entry lies, or will, in a leaf that nothing but memory holds.
//!
//! A place is looked up without copying anything. It is good until somebody else writes
//! to its leaf, and as long as the leaf [`stays`](Place::stays). Several may lie in one
//! leaf: whether they fit is reckoned with those before. Whether one may write there is
//! for who asked to know: `txn/in_place.rs`.

use super::edit::IfExists;
use super::fork::Fork;
use super::walk::{self, Ahead, Target};
use crate::cache::{ChildRef, Frame, Pool, SlotId};
use crate::node::{self, Key, Rests};
use std::ops::Range;
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
    /// Others in its leaf come before: the index is another one by then.
    is_beside: bool,
    pub(crate) step: Step,
    /// Bytes that it takes from the leaf's room, and from its entries.
    grows: usize,
    shrinks: usize,
}

impl Place {
    /// The place of a short key; none where its leaf is not in memory alone, was born at
    /// or before `newest`, has long keys, or would have to be split or merged. The
    /// `others` are of other keys and come before.
    #[inline]
    pub(crate) fn find<'p>(
        fork: &mut Fork,
        (pool, slot): (&Pool, &SlotId),
        (key, change): (Key<'_>, Change),
        newest: u64,
        others: impl Iterator<Item = &'p Place>,
    ) -> Option<Self> {
        let page_size = pool.page_size();
        if fork.root.is_none() || node::split_key(page_size, key).1.is_some() {
            return None;
        }
        let _walk = pool.readers.walk(slot);
        let target = Target::Key(key);
        let root = (&mut fork.root, fork.tree.0.topmost());
        let frame = walk::descend(pool, root, target, Ahead::Slot, Rests::NONE).ok()?;
        let reference = pool.frames.meta(frame).identity.load(Acquire);
        let leaf = ChildRef::new(reference, 0, frame);
        // SAFETY: a leaf, inside the walk.
        let page = unsafe { pool.frames.page(frame) };
        let birth = node::birth(page);
        if !leaf.is_handle() || birth <= newest || node::has_long(page) {
            return None;
        }
        let found = node::find(page, key, Rests::NONE).ok()?;
        let mut place = Self {
            leaf,
            birth,
            index: found.unwrap_or_else(|index| index),
            is_beside: false,
            step: Step::Nothing,
            grows: 0,
            shrinks: 0,
        };
        let writes = place.plan(page, (key, change), found.is_ok())?;
        let is_root = fork.root.reference == reference;
        place.fits(page, is_root, others).then(|| {
            // On their way while the record is made.
            pool.frames.prefetch_to_write(frame, writes);
            place
        })
    }

    /// What a change takes: which bytes of the leaf it writes, apart from header and
    /// slots. `None` where it takes more than a leaf.
    fn plan(
        &mut self,
        page: &[u8],
        (key, change): (Key<'_>, Change),
        exists: bool,
    ) -> Option<Range<usize>> {
        let was = match exists {
            true => match node::value_range(page, self.index) {
                (_, true) => return None,
                (was, false) => was,
            },
            false => 0..0,
        };
        let mut writes = 0..0;
        match change {
            Change::Put { if_exists, .. } if exists && if_exists == IfExists::Leave => {}
            Change::Put { len, .. } => {
                let key_len = node::stored_len(page.len(), key);
                if len > node::max_inline_value(page.len(), key_len) {
                    return None;
                }
                if exists {
                    self.step = Step::Replace;
                    self.grows = len.saturating_sub(was.len());
                    self.shrinks = was.len().saturating_sub(len);
                    writes = match self.grows {
                        0 => was,
                        _ => node::heap_room(page, len),
                    };
                } else {
                    self.step = Step::Insert;
                    self.grows = node::insert_takes(page, key, len);
                    writes = node::heap_room(page, self.grows);
                }
            }
            Change::Deleted if exists => {
                self.step = Step::Remove;
                self.shrinks = node::entry_bytes(page, self.index);
            }
            Change::Deleted => {}
        }
        Some(writes)
    }

    /// Whether it can be done after the `others`, without a neighbour of the leaf.
    fn fits<'p>(
        &mut self,
        page: &[u8],
        is_root: bool,
        others: impl Iterator<Item = &'p Place>,
    ) -> bool {
        let (mut grows, mut shrinks) = (self.grows, self.shrinks);
        for other in others.filter(|other| other.leaf.reference == self.leaf.reference) {
            self.is_beside = true;
            grows += other.grows;
            shrinks += other.shrinks;
        }
        let used = node::used_bytes(page);
        let is_left_sparse = || node::is_sparse(used.saturating_sub(shrinks), page.len());
        used + grows <= page.len() && (self.step != Step::Remove || is_root || !is_left_sparse())
    }

    /// Whether the leaf is in its frame still.
    pub(crate) fn stays(&self, pool: &Pool) -> bool {
        let holding = pool.frames.holding(self.frame(), self.leaf.reference);
        holding.is_some()
    }

    fn frame(&self) -> Frame {
        self.leaf.hint()
    }

    /// Does what the place was looked for, with the same key and length of value, after
    /// what comes before. False where it does not fit, which [`find`](Self::find) saw
    /// that it does.
    ///
    /// # Safety
    /// The leaf is in its frame, and nobody else reaches it (frames, rule 2).
    pub(crate) unsafe fn write(&self, pool: &Pool, key: Key<'_>, value: &[u8]) -> bool {
        // SAFETY: as promised by the caller.
        let page = unsafe { pool.frames.page_mut(self.frame()) };
        let index = match self.is_beside {
            false => self.index,
            true => match node::find(page, key, Rests::NONE) {
                Ok(found) => found.unwrap_or_else(|index| index),
                Err(_) => return false,
            },
        };
        match self.step {
            Step::Insert => node::insert_at(page, index, key.into(), value, false),
            Step::Replace => node::replace_value_at(page, index, value, false),
            Step::Remove => {
                node::remove_at(page, index);
                true
            }
            Step::Nothing => true,
        }
    }
}
