//! Inserting into a fork, and splitting what overflows.
//!
//! Ascending inserts into the last leaf leave full pages behind (100/0), other
//! splits balance by bytes. A run of inserts into one leaf skips the descent:
//! the fork remembers the private leaf it edited last.

use super::fork::{Context, Fork};
use super::overflow::{self, Reference};
use super::path::Path;
use super::rewrite::rewrite;
use super::walk::{Ahead, Target};
use crate::cache::{ChildRef, Frame, Pool};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{self, Key, OwnedStored, PutInt, RestRef, SplitPoint, Stored};
use std::sync::atomic::Ordering::Relaxed;

/// What a write found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// The key was new.
    Inserted,
    /// The key was there, and has the new value now.
    Replaced,
    /// The key was there, and nothing was written.
    Exists,
    /// Nothing was written: it has a value too large to be noted, or is to have one.
    Unnoted,
}

/// What an entry is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Value,
    Large,
    /// A large value with the rest of the one that it has, or what was made of that.
    SameRest,
}

/// What became of a part of a large value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewPart {
    Put,
    /// There is no such entry.
    Absent,
    /// The value is not large, or has not such a part.
    Elsewhere,
    /// Nothing was written, since it cannot be noted.
    Unnoted,
}

/// Whether an existing entry may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfExists {
    Replace,
    Leave,
}

impl Fork {
    /// Writes an entry.
    #[inline]
    pub(crate) fn put(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        value: &[u8],
        if_exists: IfExists,
    ) -> Result<Wrote> {
        let page_size = cx.pool.page_size();
        check_key(key)?;
        self.settle_cursors(cx.pool);
        let key_len = node::stored_len(page_size, key);
        if value.len() <= node::max_inline_value(page_size, key_len) {
            return self.put_counted(cx, key, value, Holds::Value, if_exists);
        }
        if if_exists == IfExists::Leave && self.holds(cx, key)? {
            return Ok(Wrote::Exists);
        }
        if cx.undo.is_some() {
            return Ok(Wrote::Unnoted);
        }
        let (start, rest) = overflow::split(page_size, key, value)?;
        let reference = overflow::write(self, cx, rest)?;
        let stored = overflow::stored(&reference, start);
        self.put_counted(cx, key, &stored, Holds::Large, if_exists)
    }

    /// Writes the start of a large value anew, which is `until` bytes long.
    pub(crate) fn put_start(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        until: usize,
        start: &[u8],
    ) -> Result<NewPart> {
        self.settle(cx.pool);
        let page_size = cx.pool.page_size();
        let room = node::max_start(page_size, node::stored_len(page_size, key));
        let stored = self.get(cx.pool, cx.slot, (key, Ahead::Page), |entry| {
            entry.map(|(value, is_large)| {
                let fits = is_large && overflow::start(value).len() == until && start.len() <= room;
                fits.then(|| overflow::with_start(value, start))
            })
        })?;
        Ok(match stored {
            None => NewPart::Absent,
            Some(None) => NewPart::Elsewhere,
            Some(Some(stored)) => {
                let wrote =
                    self.put_counted(cx, key, &stored, Holds::SameRest, IfExists::Replace)?;
                match wrote {
                    Wrote::Unnoted => NewPart::Unnoted,
                    _ => NewPart::Put,
                }
            }
        })
    }

    /// Writes bytes of a large value anew, from `from` on; a few chunks at most, since no
    /// room is made meanwhile.
    pub(crate) fn put_part(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        from: usize,
        bytes: &[u8],
    ) -> Result<NewPart> {
        self.settle(cx.pool);
        let stored = self.get(cx.pool, cx.slot, (key, Ahead::Page), |entry| {
            entry.map(|(value, is_large)| is_large.then(|| value.to_vec()))
        })?;
        let mut stored = match stored {
            None => return Ok(NewPart::Absent),
            Some(None) => return Ok(NewPart::Elsewhere),
            Some(Some(stored)) => stored,
        };
        let tree = self.tree.id().0;
        let length = overflow::length(cx.pool, tree, &stored)?;
        if from.saturating_add(bytes.len()) > length {
            return Ok(NewPart::Elsewhere);
        }
        if cx.undo.is_some() {
            return Ok(NewPart::Unnoted);
        }
        let start = stored.len() - node::OVERFLOW_REF;
        let (in_start, in_rest) = bytes.split_at(start.saturating_sub(from).min(bytes.len()));
        let at = node::OVERFLOW_REF + from.min(start);
        stored[at..at + in_start.len()].copy_from_slice(in_start);
        if let (false, Some(reference)) = (in_rest.is_empty(), Reference::decode(&stored)) {
            let from = (from + in_start.len()) - start;
            let rewritten = rewrite(self, cx, reference, from, in_rest)?;
            stored[..node::OVERFLOW_REF].copy_from_slice(&rewritten);
        }
        self.put_counted(cx, key, &stored, Holds::SameRest, IfExists::Replace)?;
        Ok(NewPart::Put)
    }

    /// Writes an entry with a large value, as the leaf is to hold it: this fork has written
    /// the rest already, under a key that it may write under.
    pub(crate) fn put_written(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        stored: &[u8],
    ) -> Result<Wrote> {
        check_key(key)?;
        self.settle(cx.pool);
        self.put_counted(cx, key, stored, Holds::Large, IfExists::Replace)
    }

    #[inline]
    fn put_counted(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        value: &[u8],
        holds: Holds,
        if_exists: IfExists,
    ) -> Result<Wrote> {
        let wrote = self.put_stored(cx, key, value, holds, if_exists)?;
        if wrote == Wrote::Inserted {
            self.count += 1;
        }
        if let Key::Int(key) = key
            && self.max_key.is_some_and(|max| key > max)
        {
            self.max_key = Some(key);
        }
        Ok(wrote)
    }

    pub(crate) fn holds(&mut self, cx: &mut Context<'_>, key: Key<'_>) -> Result<bool> {
        self.get(cx.pool, cx.slot, (key, Ahead::Page), |entry| {
            entry.is_some()
        })
    }

    /// The remembered leaf, if it is still private and holds the key's range.
    pub(super) fn remembered(&self, cx: &Context<'_>, key: Key<'_>) -> Option<Frame> {
        self.at_hand(cx.pool, self.memo?, key)
    }

    /// The leaf read last, likewise.
    pub(super) fn looked_up(&self, cx: &Context<'_>, key: Key<'_>) -> Option<Frame> {
        self.at_hand(cx.pool, self.looked_up?, key)
    }

    pub(super) fn remember(&mut self, cx: &Context<'_>, leaf: Frame) {
        let reference = cx.pool.frames.meta(leaf).identity.load(Relaxed);
        self.memo = Some(ChildRef::new(reference, 0, leaf));
    }

    /// Writes entries to the leaf edited last, as long as they lie there, fit as it is,
    /// and need no nodes of their own; `wrote` is told of each, and says whether to go on.
    /// The first that has to be [`put`](Self::put), if any: nothing here waits or fails.
    ///
    /// Called right after an edit, so that no cursor looks at that leaf.
    pub(crate) fn put_beside<'e>(
        &mut self,
        pool: &Pool,
        if_exists: IfExists,
        mut next: Option<(i64, &'e [u8])>,
        entries: &mut impl Iterator<Item = (i64, &'e [u8])>,
        mut wrote: impl FnMut(i64, &[u8]) -> bool,
    ) -> Option<(i64, &'e [u8])> {
        let Some(leaf) = self.memo.filter(|memo| self.owns(pool, *memo)) else {
            return next;
        };
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let page = unsafe { pool.frames.page_mut(leaf.hint()) };
        let longest = node::max_inline_value(pool.page_size(), 0);
        while let Some((key, value)) = next
            && value.len() <= longest
        {
            match node::put_int(page, key, value, if_exists == IfExists::Replace) {
                None => break,
                Some(PutInt::Replaced) => {}
                Some(PutInt::Inserted { at_end }) => {
                    self.run = if at_end {
                        self.run.saturating_add(1)
                    } else {
                        0
                    };
                    self.count += 1;
                    self.max_key = self.max_key.map(|max| max.max(key));
                }
            }
            let goes_on = wrote(key, value);
            next = entries.next();
            if !goes_on {
                break;
            }
        }
        next
    }

    fn put_stored(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        value: &[u8],
        holds: Holds,
        if_exists: IfExists,
    ) -> Result<Wrote> {
        let overflow = holds != Holds::Value;
        let mut path = None;
        let leaf = match self.remembered(cx, key) {
            Some(leaf) => leaf,
            None => {
                let leaf = match self.looked_up(cx, key) {
                    Some(leaf) => leaf,
                    None => {
                        self.plant(cx)?;
                        let found = match if_exists {
                            IfExists::Replace => Some(self.private_path(cx, Target::Key(key))?),
                            IfExists::Leave => self.private_path_only(cx, key, false)?,
                        };
                        let Some(found) = found else {
                            return Ok(Wrote::Exists);
                        };
                        path.insert(found).leaf
                    }
                };
                self.remember(cx, leaf);
                self.run = 0;
                leaf
            }
        };
        let found = self.find(cx, leaf, key)?;
        if found.is_ok() && if_exists == IfExists::Leave {
            return Ok(Wrote::Exists);
        }
        self.note_edit();
        let (start, rest) = node::split_key(cx.pool.page_size(), key);
        let mut stored_rest = None;
        if let (Err(_), Some(rest)) = (found, rest) {
            stored_rest = Some(Box::new(overflow::write(self, cx, rest)?));
        }
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let page = unsafe { cx.pool.frames.page_mut(leaf) };
        let (index, wrote) = match found {
            Ok(index) => {
                let (old, was_overflow) = node::value_at(page, index);
                match &mut cx.undo {
                    Some(_) if was_overflow => return Ok(Wrote::Unnoted),
                    Some(undo) => undo.note(self.tree.id(), key, Some(old)),
                    None => {}
                }
                if was_overflow && holds != Holds::SameRest {
                    self.replaced
                        .extend(overflow::dead(old, cx.pool.page_size()));
                }
                if node::replace_value_at(page, index, value, overflow) {
                    return Ok(Wrote::Replaced);
                }
                stored_rest = node::rest_at(page, index).copied().map(Box::new);
                node::remove_at(page, index);
                (index, Wrote::Replaced)
            }
            Err(index) => {
                if let Some(undo) = &mut cx.undo {
                    undo.note(self.tree.id(), key, None);
                }
                (index, Wrote::Inserted)
            }
        };
        let at_end = index == node::count(page);
        self.run = if at_end {
            self.run.saturating_add(1)
        } else {
            0
        };
        let stored = Stored {
            key: start,
            rest: stored_rest.as_deref(),
        };
        if !node::insert_at(page, index, stored, value, overflow) {
            let path = match path {
                Some(path) => path,
                None => self.private_path(cx, Target::Key(key))?,
            };
            self.split(cx, &path, index, stored, value, overflow)?;
        }
        Ok(wrote)
    }

    /// Gives an empty tree its first leaf.
    fn plant(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if !self.root.is_none() {
            return Ok(());
        }
        let frame = self.new_frame(cx)?;
        // SAFETY: from the free list (rule 1).
        let page = unsafe { cx.pool.frames.page_mut(frame) };
        let tree = self.tree.id().0;
        node::init(page, self.tree.kind().leaf(), 0, tree, None, None);
        self.root = self.adopt(cx.pool, frame);
        Ok(())
    }

    /// A frame for a new node.
    pub(super) fn new_frame(&mut self, cx: &mut Context<'_>) -> Result<Frame> {
        cx.ensure_spare(1)?;
        cx.spare
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::NoMemory, "no frame was taken ahead"))
    }

    fn split(
        &mut self,
        cx: &mut Context<'_>,
        path: &Path,
        index: usize,
        key: Stored<'_>,
        value: &[u8],
        overflow: bool,
    ) -> Result<()> {
        let right_frame = self.new_frame(cx)?;
        cx.scratch.resize(cx.pool.page_size(), 0);
        // SAFETY: the leaf is private (rule 2), the new frame ours (rule 1); they
        // differ, and nothing else borrows them.
        let (leaf, right) = unsafe {
            (
                cx.pool.frames.page_mut(path.leaf),
                cx.pool.frames.page_mut(right_frame),
            )
        };
        let point =
            if index == node::count(leaf) && (node::upper_fence(leaf).is_none() || self.run > 4) {
                SplitPoint::Append
            } else if index == 0 && node::lower_fence(leaf).is_none() {
                SplitPoint::Prepend
            } else {
                SplitPoint::Middle
            };
        let (pool, slot, tree) = (cx.pool, cx.slot, self.tree.id().0);
        let mut load = |rest: &RestRef| -> Result<Vec<u8>> {
            let mut loaded = Vec::new();
            overflow::read(pool, slot, tree, rest, &mut loaded)?;
            Ok(loaded)
        };
        let len = value.len();
        let split = node::split_leaf(leaf, cx.scratch, right, point, index, key, len, &mut load);
        let split = match split {
            Ok(Some(split)) => split,
            refused => {
                cx.spare.push(right_frame);
                refused?;
                return Err(Error::corrupt("a full leaf cannot be split"));
            }
        };
        leaf.copy_from_slice(cx.scratch);
        let side = if split.right { &mut *right } else { &mut *leaf };
        let fits = node::insert_at(side, split.index, key, value, overflow);
        debug_assert!(fits, "the entry fits where the split says");
        let child = self.adopt_half(cx.pool, right_frame);
        let left = cx.pool.frames.meta(path.leaf).identity.load(Relaxed);
        self.split.extend([left, child.reference]);
        self.remember(cx, if split.right { right_frame } else { path.leaf });
        let mut separator = split.separator;
        if let Some(rest) = split.rest {
            let rest = overflow::write(self, cx, &rest)?;
            node::join_fences(leaf, right, &rest);
            separator.rest = Some(rest);
        }
        self.grow(cx, path, separator, child, point)
    }

    /// Inserts a separator and the child to its right into the parent of what
    /// was split, splitting upwards as needed.
    pub(super) fn grow(
        &mut self,
        cx: &mut Context<'_>,
        path: &Path,
        mut separator: OwnedStored,
        mut child: ChildRef,
        point: SplitPoint,
    ) -> Result<()> {
        for &(frame, index) in path.steps().iter().rev() {
            let index = index as usize;
            if insert_child(cx, frame, index, separator.as_stored(), child) {
                return Ok(());
            }
            (separator, child) = self.split_inner(cx, frame, index, separator, child, point)?;
        }
        self.grow_root(cx, separator, child)
    }

    fn grow_root(
        &mut self,
        cx: &mut Context<'_>,
        separator: OwnedStored,
        child: ChildRef,
    ) -> Result<()> {
        let frame = self.new_frame(cx)?;
        let page_size = cx.pool.page_size();
        // SAFETY: `child` is private (rule 2), the new frame ours (rule 1).
        let (level, page) = unsafe {
            (
                node::level(cx.pool.frames.keys(child.hint())) + 1,
                cx.pool.frames.page_mut(frame),
            )
        };
        if level >= crate::cache::pool::MAX_LEVEL {
            return Err(Error::new(
                ErrorKind::Full,
                "the tree is as high as it may be",
            ));
        }
        page.fill(0);
        let kind = self.tree.kind().inner();
        let keys = &mut page[..node::key_area(page_size, 1)];
        node::init(keys, kind, level, self.tree.id().0, None, None);
        let fits = node::insert_separator_at(keys, 0, separator.as_stored());
        debug_assert!(fits, "a separator fits into an empty node");
        cx.pool.frames.set_child(frame, 0, self.root);
        cx.pool.frames.set_child(frame, 1, child);
        self.root = self.adopt_half(cx.pool, frame);
        Ok(())
    }

    /// Splits a full inner node and inserts the separator that did not fit.
    /// Returns what goes into its parent.
    fn split_inner(
        &mut self,
        cx: &mut Context<'_>,
        frame: Frame,
        index: usize,
        separator: OwnedStored,
        child: ChildRef,
        point: SplitPoint,
    ) -> Result<(OwnedStored, ChildRef)> {
        let right_frame = self.new_frame(cx)?;
        let page_size = cx.pool.page_size();
        cx.scratch.resize(page_size, 0);
        let frames = &cx.pool.frames;
        // SAFETY: `frame` is private (rule 2), the new one ours (rule 1).
        let (page, right) = unsafe { (frames.page_mut(frame), frames.page_mut(right_frame)) };
        let count = node::count(page);
        let source = &page[..node::key_area(page_size, count + 1)];
        let middle = node::split_point(source, point, index);
        let left_area = node::key_area(page_size, middle + 1);
        let right_area = node::key_area(page_size, count - middle);
        let pushed = node::split_inner(
            source,
            middle,
            &mut cx.scratch[..left_area],
            &mut right[..right_area],
        );
        for (to, from) in (middle + 1..=count).enumerate() {
            frames.set_child(right_frame, to, frames.child(frame, from));
        }
        page[..left_area].copy_from_slice(&cx.scratch[..left_area]);
        let pushed_child = self.adopt_half(cx.pool, right_frame);
        let (side, at) = if index <= middle {
            (frame, index)
        } else {
            (right_frame, index - middle - 1)
        };
        let fits = insert_child(cx, side, at, separator.as_stored(), child);
        debug_assert!(fits, "a separator fits into half a node");
        Ok((pushed, pushed_child))
    }
}

/// Inserts separator `index` and child `index + 1` into a private inner node.
/// False, with nothing changed, if there is no room.
fn insert_child(
    cx: &Context<'_>,
    frame: Frame,
    index: usize,
    separator: Stored<'_>,
    child: ChildRef,
) -> bool {
    let page_size = cx.pool.page_size();
    let frames = &cx.pool.frames;
    // SAFETY: private to the fork (rule 2), and nothing else borrows it.
    let page = unsafe { frames.page_mut(frame) };
    let children = node::child_count(page);
    let keys = &mut page[..node::key_area(page_size, children)];
    if !node::insert_separator_at(keys, index, separator) {
        return false;
    }
    for at in (index + 1..children).rev() {
        frames.set_child(frame, at + 1, frames.child(frame, at));
    }
    frames.set_child(frame, index + 1, child);
    true
}

/// Removes separator `index` and child `index + 1` of a private inner node.
pub(super) fn remove_child(cx: &Context<'_>, frame: Frame, index: usize) {
    let page_size = cx.pool.page_size();
    let frames = &cx.pool.frames;
    // SAFETY: private to the fork (rule 2), and nothing else borrows it.
    let page = unsafe { frames.page_mut(frame) };
    let children = node::child_count(page);
    for at in index + 1..children - 1 {
        frames.set_child(frame, at, frames.child(frame, at + 1));
    }
    let keys = &mut page[..node::key_area(page_size, children)];
    node::remove_separator_at(keys, index);
}

fn check_key(key: Key<'_>) -> Result<()> {
    match key {
        Key::Bytes(key) if key.len() > overflow::MAX_KEY => Err(Error::new(
            ErrorKind::TooBig,
            format!(
                "a key of {} bytes is over the limit of {}",
                key.len(),
                overflow::MAX_KEY
            ),
        )),
        _ => Ok(()),
    }
}
