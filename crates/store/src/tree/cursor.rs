//! Ordered access to one version of a tree.
//!
//! A cursor owns what it needs: a slot whose pin keeps the version's nodes, and
//! a pin on the one leaf it is on. It holds no lock and no walk between calls,
//! may be sent to another thread, and outlives the transaction it came from.
//! There are no sibling links in a copy-on-write tree: at a leaf's end it goes
//! on from the root with the leaf's fence as the target. A key within the fences of
//! the leaf it is on is found there, without a walk.

mod observed;

use super::compare;
use super::overflow;
use super::rank;
use super::walk::{self, Ahead, Target};
use super::{KeyKind, TreeId};
use crate::cache::{ChildRef, Frame, Pool, SlotId, Topmost};
use crate::error::{Error, Result};
use crate::node::{self, Entries, Key, OwnedKey, Rests, Run, Stored, Unknown};
use crate::store::Handle;
use crate::txn::reads::Observer;
pub(crate) use observed::Leaf;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Where [`Cursor::seek`] goes. The answer is whether there is an entry there.
#[derive(Debug, Clone, Copy)]
pub enum Seek<'a> {
    /// The first entry.
    First,
    /// The last entry.
    Last,
    /// The first entry at or after the key.
    AtLeast(Key<'a>),
    /// The first entry after the key.
    After(Key<'a>),
    /// The last entry at or before the key.
    AtMost(Key<'a>),
    /// The last entry before the key.
    Before(Key<'a>),
}

impl<'a> Seek<'a> {
    fn key(self) -> Option<Key<'a>> {
        match self {
            Seek::First | Seek::Last => None,
            Seek::AtLeast(key) | Seek::After(key) | Seek::AtMost(key) | Seek::Before(key) => {
                Some(key)
            }
        }
    }
}

/// A position in a version of a tree, which stays as it is whatever is written
/// meanwhile. It holds no lock and borrows nothing, may be sent to another thread, and
/// outlives the transaction it came from; until it is dropped its store stays open.
pub struct Cursor {
    handle: Arc<Handle>,
    slot: SlotId,
    tree: u32,
    kind: KeyKind,
    root: ChildRef,
    /// The pinned leaf; [`NOWHERE`] if there is none.
    leaf: Frame,
    index: usize,
    count: usize,
    /// Keeps the fork it looks at from being edited in place.
    _watch: Option<Arc<()>>,
    /// Records what was read, for serializable transactions.
    observer: Option<Observer>,
    key: Vec<u8>,
    value: Vec<u8>,
}

const NOWHERE: Frame = Frame::MAX;

impl Cursor {
    pub(crate) fn new(
        handle: Arc<Handle>,
        slot: SlotId,
        tree: &super::Tree,
        root: ChildRef,
        watch: Option<Arc<()>>,
        observer: Option<Observer>,
    ) -> Self {
        Self {
            handle,
            slot,
            tree: tree.id().0,
            kind: tree.kind(),
            root,
            leaf: NOWHERE,
            index: 0,
            count: 0,
            _watch: watch,
            observer,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// How the keys are ordered.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Whether the cursor is on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.leaf != NOWHERE
    }

    /// Says, for the calls to come, that no entry outside of these bounds concerns the
    /// reader, who ends at them: a serializable transaction then depends on nothing beyond
    /// them. (A cursor has to look at the entry behind a range to know that it ends.)
    #[inline]
    pub fn narrow(&mut self, low: Bound<Key<'_>>, high: Bound<Key<'_>>) {
        self.catch_up();
        if let Some(observer) = &mut self.observer {
            observer.narrow(low, high);
        }
    }

    /// Goes to a place; false, and the cursor is nowhere, if no entry is there.
    ///
    /// # Errors
    /// `Misuse` for a key of the other kind; what reading may fail with.
    pub fn seek(&mut self, to: Seek<'_>) -> Result<bool> {
        if to.key().is_some_and(|key| !self.kind.fits(key)) {
            return Err(self.wrong_kind());
        }
        self.catch_up();
        let found = match to {
            Seek::First => self.enter(Target::First, |_, _| Ok(0))? && self.settle_forward()?,
            Seek::Last => {
                self.enter(Target::Last, |page, _| Ok(node::count(page)))?
                    && self.settle_backward()?
            }
            Seek::AtLeast(key) => {
                self.enter_for(key, |page, rests| {
                    Ok(node::find(page, key, rests)?.unwrap_or_else(|index| index))
                })? && self.settle_forward()?
            }
            Seek::After(key) => {
                self.enter_for(key, |page, rests| {
                    Ok(match node::find(page, key, rests)? {
                        Ok(index) => index + 1,
                        Err(index) => index,
                    })
                })? && self.settle_forward()?
            }
            Seek::AtMost(key) => {
                self.enter_for(key, |page, rests| {
                    Ok(match node::find(page, key, rests)? {
                        Ok(index) => index + 1,
                        Err(index) => index,
                    })
                })? && self.settle_backward()?
            }
            Seek::Before(key) => {
                self.enter_for(key, |page, rests| {
                    Ok(node::find(page, key, rests)?.unwrap_or_else(|index| index))
                })? && self.settle_backward()?
            }
        };
        if self.observer.is_some() {
            self.observe_seek(to)?;
        }
        Ok(found)
    }

    #[cold]
    fn wrong_kind(&self) -> Error {
        let tree = self.handle.core.tree(TreeId(self.tree));
        let gone = || Error::misuse(format!("the tree had keys of kind {:?}", self.kind));
        tree.map_or_else(gone, |tree| Error::wrong_kind(&tree))
    }

    /// Goes to the first entry of the leaf before which about this share of all leaves
    /// lies, in parts of 2^32: for samples. A serializable transaction then depends on the
    /// whole tree, unless the cursor is one for an estimate.
    ///
    /// # Errors
    /// What reading may fail with.
    pub fn seek_share(&mut self, share: u32) -> Result<bool> {
        let found = self.enter(Target::Share(share), |_, _| Ok(0))? && self.settle_forward()?;
        self.catch_up();
        if let Some(observer) = &mut self.observer {
            observer.seek(Seek::First, None);
        }
        Ok(found)
    }

    /// About which share of all entries lies before a key, from one descent; the cursor
    /// stays where it is. A serializable transaction then depends on the whole tree, unless
    /// the cursor is one for an estimate.
    ///
    /// # Errors
    /// `Misuse` for a key of the other kind; what reading may fail with.
    pub fn share_before(&mut self, key: Key<'_>) -> Result<f64> {
        if !self.kind.fits(key) {
            return Err(self.wrong_kind());
        }
        let root = (&mut self.root, Topmost::Root(self.tree, self.kind));
        let share = rank::share_before(&self.handle.core.pool, &self.slot, root, key)?;
        self.catch_up();
        if let Some(observer) = &mut self.observer {
            observer.seek(Seek::First, None);
        }
        Ok(share)
    }

    /// Moves to the next entry; false, and nowhere, at the end.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a lending cursor is no iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        if self.leaf == NOWHERE {
            return Ok(false);
        }
        self.index += 1;
        let found = self.index < self.count || self.settle_forward()?;
        self.observe_step(true)?;
        Ok(found)
    }

    /// Moves to the previous entry; false, and nowhere, at the beginning.
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if self.leaf == NOWHERE {
            return Ok(false);
        }
        let found = if self.index > 0 {
            self.index -= 1;
            true
        } else {
            self.settle_backward()?
        };
        self.observe_step(false)?;
        Ok(found)
    }

    /// The entry and those after it in its leaf; none if the cursor is nowhere or
    /// the keys are bytes. To whoever goes on by [`Cursor::skip`] they count as
    /// read only as far as that goes.
    #[inline]
    pub fn run(&self) -> Run<'_> {
        if self.leaf == NOWHERE || self.kind != KeyKind::Int {
            return Run::EMPTY;
        }
        Run::new(self.page(), self.index)
    }

    /// The entry and those before it in its leaf, in ascending order; none if the cursor is
    /// nowhere or the keys are bytes. To whoever goes on by [`Cursor::skip_back`] they count
    /// as read only as far as that goes.
    pub fn run_back(&self) -> Run<'_> {
        if self.leaf == NOWHERE || self.kind != KeyKind::Int {
            return Run::EMPTY;
        }
        Run::new(self.page(), 0).first(self.index + 1)
    }

    /// As [`Cursor::run`] where the keys are bytes; none if they are integers, or the leaf
    /// may hold long ones.
    #[inline]
    pub fn entries(&self) -> Entries<'_> {
        if self.leaf == NOWHERE || self.kind != KeyKind::Bytes {
            return Entries::EMPTY;
        }
        Entries::new(self.page(), self.index)
    }

    /// As [`Cursor::run_back`] where the keys are bytes; none if they are integers, or the leaf
    /// may hold long ones.
    pub fn entries_back(&self) -> Entries<'_> {
        if self.leaf == NOWHERE || self.kind != KeyKind::Bytes {
            return Entries::EMPTY;
        }
        Entries::new(self.page(), 0).first(self.index + 1)
    }

    /// Moves `count` entries on, at most past the last one of the leaf ([`Cursor::run`]);
    /// false, and nowhere, at the end. Every entry up to there counts as read.
    pub fn skip(&mut self, count: usize) -> Result<bool> {
        if self.leaf == NOWHERE {
            return Ok(false);
        }
        self.index = self.index.saturating_add(count).min(self.count);
        let found = self.settle_forward()?;
        self.observe_step(true)?;
        Ok(found)
    }

    /// Moves `count` entries back, at most past the first one of the leaf
    /// ([`Cursor::run_back`], [`Cursor::entries_back`]); false, and nowhere, at the beginning.
    /// Every entry down to there counts as read.
    pub fn skip_back(&mut self, count: usize) -> Result<bool> {
        if self.leaf == NOWHERE {
            return Ok(false);
        }
        let found = match self.index.checked_sub(count) {
            Some(index) => {
                self.index = index;
                true
            }
            None => {
                self.index = 0;
                self.settle_backward()?
            }
        };
        self.observe_step(false)?;
        Ok(found)
    }

    /// The integer key of the entry; 0 if the cursor is nowhere.
    #[inline]
    pub fn key_int(&self) -> i64 {
        if self.leaf == NOWHERE || self.kind != KeyKind::Int {
            return 0;
        }
        node::int_key_at(self.page(), self.index)
    }

    /// The byte key of the entry; empty if the cursor is nowhere. Loads what of a
    /// long key lies outside its leaf. Valid until the cursor moves.
    ///
    /// # Errors
    /// Those of reading, for long keys.
    pub fn key_bytes(&mut self) -> Result<&[u8]> {
        self.key_start();
        let mut key = std::mem::take(&mut self.key);
        let rest = match self.leaf != NOWHERE && self.kind == KeyKind::Bytes {
            true => node::rest_at(self.page(), self.index),
            false => None,
        };
        let read = rest.map_or(Ok(()), |rest| {
            overflow::read(self.pool(), &self.slot, self.tree, rest, &mut key)
        });
        self.key = key;
        read?;
        Ok(&self.key)
    }

    /// As much of the byte key of the entry as lies in its leaf: all, but of a long key;
    /// empty if the cursor is nowhere. Valid until the cursor moves.
    #[inline]
    pub fn key_start(&mut self) -> &[u8] {
        self.key.clear();
        if self.leaf != NOWHERE && self.kind == KeyKind::Bytes {
            let mut key = std::mem::take(&mut self.key);
            node::start_into(self.page(), self.index, &mut key);
            self.key = key;
        }
        &self.key
    }

    /// The value of the entry; empty if the cursor is nowhere. Loads a value
    /// that lies outside its leaf. Valid until the cursor moves.
    #[inline]
    pub fn value(&mut self) -> Result<&[u8]> {
        if self.leaf == NOWHERE {
            return Ok(&[]);
        }
        if node::value_at(self.page(), self.index).1 {
            return self.load_value();
        }
        Ok(node::value_at(self.page(), self.index).0)
    }

    /// As much of the value of the entry as lies in its leaf, and how long the value is:
    /// all of it, but of a large one; empty if the cursor is nowhere.
    ///
    /// # Errors
    /// `Corrupt` where a large value has no length.
    #[inline]
    pub fn value_start(&self) -> Result<(&[u8], usize)> {
        if self.leaf == NOWHERE {
            return Ok((&[], 0));
        }
        let (value, overflows) = node::value_at(self.page(), self.index);
        if overflows {
            let length = overflow::length(self.pool(), self.tree, value)?;
            return Ok((overflow::start(value), length));
        }
        Ok((value, value.len()))
    }

    /// Appends bytes of the entry's value to `out`: those that it has of the range. Of a
    /// large value no more is read than that takes.
    ///
    /// # Errors
    /// Those of reading.
    pub fn value_part(&self, part: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        if self.leaf == NOWHERE {
            return Ok(());
        }
        let (value, overflows) = node::value_at(self.page(), self.index);
        if overflows {
            return overflow::read_part(self.pool(), &self.slot, self.tree, value, part, out);
        }
        out.extend_from_slice(
            value
                .get(part.start..part.end.min(value.len()))
                .unwrap_or(&[]),
        );
        Ok(())
    }

    /// The value of the entry, where it lies in its leaf.
    pub fn value_in_leaf(&self) -> Option<&[u8]> {
        if self.leaf == NOWHERE {
            return None;
        }
        let (value, overflows) = node::value_at(self.page(), self.index);
        (!overflows).then_some(value)
    }

    #[cold]
    fn load_value(&mut self) -> Result<&[u8]> {
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        let stored = node::value_at(self.page(), self.index).0;
        let read = overflow::read_value(
            &self.handle.core.pool,
            &self.slot,
            self.tree,
            stored,
            &mut value,
        );
        self.value = value;
        read?;
        Ok(&self.value)
    }

    #[inline]
    fn page(&self) -> &[u8] {
        debug_assert!(self.leaf != NOWHERE);
        // SAFETY: a leaf of a version that our slot pins; the frame is pinned
        // against eviction, and a sealed or published leaf is not edited.
        unsafe { self.handle.core.pool.frames.page(self.leaf) }
    }

    fn pool(&self) -> &Pool {
        &self.handle.core.pool
    }

    fn leave(&mut self) {
        if self.leaf != NOWHERE {
            self.catch_up();
            self.pool().frames.unpin(self.leaf);
            self.leaf = NOWHERE;
        }
    }

    /// As [`enter`](Self::enter) for the key's leaf; stays in the leaf it is on where that
    /// is the one, because the version does not change under it.
    fn enter_for(
        &mut self,
        key: Key<'_>,
        place: impl Fn(&[u8], &Rests) -> std::result::Result<usize, Unknown>,
    ) -> Result<bool> {
        if self.leaf != NOWHERE
            && node::covers(self.page(), key)
            // Where the rest of a long key decides, the walk gets it.
            && let Ok(index) = place(self.page(), Rests::NONE)
        {
            self.index = index;
            return Ok(true);
        }
        self.enter(Target::Key(key), place)
    }

    /// Pins the target's leaf and goes to the index that `place` says, which
    /// may be one past its end. False if the tree is empty.
    fn enter(
        &mut self,
        target: Target<'_>,
        place: impl Fn(&[u8], &Rests) -> std::result::Result<usize, Unknown>,
    ) -> Result<bool> {
        self.leave();
        let topmost = Topmost::Root(self.tree, self.kind);
        loop {
            let core = &*self.handle.core;
            let entered = walk::with_leaf(
                &core.pool,
                &self.slot,
                (&mut self.root, topmost),
                (target, Ahead::Slot),
                |frame, page, rests| {
                    let index = place(page, rests)?;
                    let pinned = core.pool.frames.pin(frame);
                    Ok(pinned.then(|| (frame, index, node::count(page))))
                },
            )?;
            match entered {
                None => return Ok(false),
                // It is being evicted: it will be gone, and fetched again.
                Some(None) => crate::primitives::yield_now(),
                Some(Some((frame, index, count))) => {
                    self.leaf = frame;
                    self.index = index;
                    self.count = count;
                    return Ok(true);
                }
            }
        }
    }

    /// A fence of the leaf, whole.
    fn fence(&self, which: impl Fn(&[u8]) -> Option<Stored<'_>>) -> Result<Option<OwnedKey>> {
        let whole = |fence| overflow::whole_key(self.pool(), &self.slot, self.tree, fence);
        which(self.page()).map(whole).transpose()
    }

    /// From an index that may be past the leaf's end to the entry there.
    fn settle_forward(&mut self) -> Result<bool> {
        while self.index >= self.count {
            let Some(fence) = self.fence(node::upper_fence)? else {
                self.leave();
                return Ok(false);
            };
            self.enter(Target::Key(fence.as_key()), |_, _| Ok(0))?;
            self.check_moved(node::upper_fence, |next| *next > fence)?;
        }
        Ok(true)
    }

    /// From the index after the wanted entry to that entry.
    fn settle_backward(&mut self) -> Result<bool> {
        while self.index == 0 {
            let Some(fence) = self.fence(node::lower_fence)? else {
                self.leave();
                return Ok(false);
            };
            self.enter(Target::Below(fence.as_key()), |page, _| {
                Ok(node::count(page))
            })?;
            self.check_moved(node::lower_fence, |next| *next < fence)?;
        }
        self.index -= 1;
        Ok(true)
    }

    /// Fails where the leaf's next fence is not beyond the one that led to it. That of short
    /// ones the pages themselves tell; the rests of long ones are compared by nobody else, and
    /// a scan could go around for ever.
    fn check_moved(
        &self,
        which: impl Fn(&[u8]) -> Option<Stored<'_>>,
        is_beyond: impl Fn(&OwnedKey) -> bool,
    ) -> Result<()> {
        if self.leaf == NOWHERE || !node::has_long(self.page()) {
            return Ok(());
        }
        match self.fence(which)? {
            Some(next) if !is_beyond(&next) => Err(Error::corrupt(format!(
                "database disk image is malformed: long keys of tree {} in {} are out of order",
                self.tree,
                self.pool().path
            ))),
            _ => Ok(()),
        }
    }

    /// Where both cursors are on the first entry of the same leaf, takes both to
    /// its end: what versions share need not be compared. Says whether it did.
    pub(crate) fn skip_shared_leaf(&mut self, other: &mut Self) -> Result<bool> {
        let shared = self.leaf != NOWHERE
            && self.leaf == other.leaf
            && self.index == other.index
            && self.count > self.index + 1;
        if shared {
            self.index = self.count - 1;
            other.index = other.count - 1;
        }
        Ok(shared)
    }

    /// The key of the entry, if the cursor is on one not beyond `high`.
    pub(crate) fn key_within(&self, high: Bound<Key<'_>>) -> Result<Option<OwnedKey>> {
        Ok(self.current_key()?.filter(|key| match high {
            Bound::Unbounded => true,
            Bound::Included(high) => key.as_key() <= high,
            Bound::Excluded(high) => key.as_key() < high,
        }))
    }

    /// Whether both cursors are on entries of one tree with the same key, and these bytes of
    /// their values are the same: as far as that shows without reading what lies apart, which
    /// is the same where it was not written between the states that they look at.
    pub fn is_same_part(&self, part: Range<usize>, other: &Self, other_part: Range<usize>) -> bool {
        let of_one_tree = self.tree == other.tree && Arc::ptr_eq(&self.handle, &other.handle);
        if !of_one_tree || !self.valid() || !other.valid() || part.len() != other_part.len() {
            return false;
        }
        let is_same_key = match (self.current_key(), other.current_key()) {
            (Ok(key), Ok(other)) => key == other,
            _ => false,
        };
        let value = node::value_at(self.page(), self.index);
        let others = node::value_at(other.page(), other.index);
        is_same_key && compare::same_part(self.pool(), (value, part), (others, other_part))
    }

    /// Whether both cursors are on the same value, or both nowhere.
    pub(crate) fn same_value(&self, other: &Self) -> bool {
        match (self.valid(), other.valid()) {
            (true, true) => {
                let left = node::value_at(self.page(), self.index);
                let right = node::value_at(other.page(), other.index);
                compare::same_value(self.pool(), left, right)
            }
            _ => true,
        }
    }

    fn current_key(&self) -> Result<Option<OwnedKey>> {
        if self.leaf == NOWHERE {
            return Ok(None);
        }
        let stored = node::stored_key_at(self.page(), self.index);
        overflow::whole_key(self.pool(), &self.slot, self.tree, stored.as_stored()).map(Some)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // The leaf first: the slot's pin is what keeps its node alive.
        self.leave();
        self.handle.core.pool.readers.release(&self.slot);
    }
}
