//! Deleting from a fork, and merging what becomes too empty.
//!
//! A node that falls below a quarter is merged with a neighbour under the same
//! parent if both fit into one page; otherwise it stays. An inner root with a
//! single child gives way to it; the last leaf of a tree stays, empty.

use super::edit::remove_child;
use super::fork::{Context, Fork};
use super::overflow;
use super::path::Path;
use super::walk::Target;
use crate::cache::{ChildRef, Frame};
use crate::error::Result;
use crate::node::{self, Key};

/// What a deletion found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The entry was there, and is gone.
    Yes,
    /// There was none.
    No,
    /// Nothing was removed: the value is too large to be noted.
    Unnoted,
}

impl Fork {
    /// Removes the entry under `key`.
    pub(crate) fn delete(&mut self, cx: &mut Context<'_>, key: Key<'_>) -> Result<Removed> {
        let Some(leaf) = self.leaf_to_delete_from(cx, key)? else {
            return Ok(Removed::No);
        };
        let Ok(index) = self.find(cx, leaf, key)? else {
            return Ok(Removed::No);
        };
        self.note_edit();
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let page = unsafe { cx.pool.frames.page_mut(leaf) };
        let (value, is_overflow) = node::value_at(page, index);
        match &mut cx.undo {
            Some(_) if is_overflow => return Ok(Removed::Unnoted),
            Some(undo) => undo.note(self.tree.id(), key, Some(value)),
            None => {}
        }
        if let Some(rest) = node::rest_at(page, index) {
            self.replaced
                .extend(overflow::dead(rest, cx.pool.page_size()));
        }
        if is_overflow {
            self.replaced
                .extend(overflow::dead(value, cx.pool.page_size()));
        }
        node::remove_at(page, index);
        self.note_removed(key);
        self.remember(cx, leaf);
        self.merge_sparse(cx, key, leaf)?;
        Ok(Removed::Yes)
    }

    /// Removes the entry under the first of these ascending keys, and those under the ones
    /// after it that lie in the same leaf; `removed` takes those that were there. How
    /// many keys were dealt with: none where the first one's value has nodes of its own.
    pub(crate) fn delete_run(
        &mut self,
        cx: &mut Context<'_>,
        keys: &[i64],
        removed: &mut Vec<i64>,
    ) -> Result<usize> {
        let Some(first) = keys.first().map(|key| Key::Int(*key)) else {
            return Ok(0);
        };
        let Some(leaf) = self.leaf_to_delete_from(cx, first)? else {
            return Ok(1);
        };
        if self.find(cx, leaf, first)?.is_err() {
            return Ok(1);
        }
        self.note_edit();
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let page = unsafe { cx.pool.frames.page_mut(leaf) };
        let before = removed.len();
        let taken = node::remove_run(page, keys, removed);
        for key in &removed[before..] {
            self.note_removed(Key::Int(*key));
        }
        self.remember(cx, leaf);
        self.merge_sparse(cx, first, leaf)?;
        Ok(taken)
    }

    /// A private leaf in whose range the key lies; None where there is no such entry and
    /// the leaf is not private yet.
    fn leaf_to_delete_from(&mut self, cx: &mut Context<'_>, key: Key<'_>) -> Result<Option<Frame>> {
        if self.root.is_none() {
            return Ok(None);
        }
        self.settle_cursors(cx.pool);
        let at_hand = self.remembered(cx, key).or_else(|| self.looked_up(cx, key));
        if at_hand.is_some() {
            return Ok(at_hand);
        }
        let path = self.private_path_only(cx, key, true)?;
        Ok(path.map(|path| path.leaf))
    }

    fn note_removed(&mut self, key: Key<'_>) {
        // A file may say that there are fewer than there are.
        self.count = self.count.saturating_sub(1);
        if let Key::Int(key) = key
            && self.max_key == Some(key)
        {
            self.max_key = None;
        }
        self.run = 0;
    }

    /// Merges the private leaf of a key where it has become too empty.
    fn merge_sparse(&mut self, cx: &mut Context<'_>, key: Key<'_>, leaf: Frame) -> Result<()> {
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let used = node::used_bytes(unsafe { cx.pool.frames.keys(leaf) });
        if !node::is_sparse(used, cx.pool.page_size()) {
            return Ok(());
        }
        let path = self.private_path(cx, Target::Key(key))?;
        if path.steps().is_empty() {
            return Ok(());
        }
        self.merge_up(cx, &path)
    }

    fn merge_up(&mut self, cx: &mut Context<'_>, path: &Path) -> Result<()> {
        let mut frame = path.leaf;
        for &(parent, index) in path.steps().iter().rev() {
            // SAFETY: private to this fork (rule 2), and nothing else borrows it.
            let used = node::used_bytes(unsafe { cx.pool.frames.keys(frame) });
            if !node::is_sparse(used, cx.pool.page_size())
                || !self.merge_with_neighbour(cx, parent, index as usize, frame)?
            {
                return Ok(());
            }
            frame = parent;
        }
        self.lower_root(cx)
    }

    /// An inner root with one child is not needed.
    fn lower_root(&mut self, cx: &mut Context<'_>) -> Result<()> {
        loop {
            let root = self.root;
            // SAFETY: the root is private since the path was made so (rule 2).
            let keys = unsafe { cx.pool.frames.keys(root.hint()) };
            if node::is_leaf(keys) || node::count(keys) > 0 {
                return Ok(());
            }
            self.replace(root, node::birth(keys));
            self.root = cx.pool.frames.child(root.hint(), 0);
            if !self.owns(cx.pool, self.root) {
                return Ok(());
            }
        }
    }

    /// Merges the node in `frame`, child `index` of `parent`, with the one
    /// beside it. False if there is none or they do not fit.
    fn merge_with_neighbour(
        &mut self,
        cx: &mut Context<'_>,
        parent: Frame,
        index: usize,
        frame: Frame,
    ) -> Result<bool> {
        let pool = cx.pool;
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let separators = node::count(unsafe { pool.frames.keys(parent) });
        if separators == 0 {
            return Ok(false);
        }
        let beside = if index < separators {
            index + 1
        } else {
            index - 1
        };
        let left_index = index.min(beside);
        let tree = self.tree.id().0;
        let mut fetched = Vec::new();
        loop {
            let walk = pool.readers.walk(cx.slot);
            match pool.follow(parent, beside) {
                Ok(other) => {
                    let child = pool.frames.child(parent, beside).with_hint(other);
                    // SAFETY: inside the walk, shared or our own.
                    let birth = node::birth(unsafe { pool.frames.keys(other) });
                    let sides = if beside > index {
                        (frame, other)
                    } else {
                        (other, frame)
                    };
                    if !merge_into_scratch(cx, parent, left_index, sides) {
                        return Ok(false);
                    }
                    let merged = pool.frames.child(parent, index).with_hint(frame);
                    take_over(cx, frame, sides);
                    drop(walk);
                    // It may be what is no node of the tree any more.
                    self.looked_up = None;
                    self.replace(child, birth);
                    self.forget_separator(cx, parent, left_index, frame);
                    pool.frames.set_child(parent, left_index, merged);
                    remove_child(cx, parent, left_index);
                    return Ok(true);
                }
                Err(absent) => {
                    drop(walk);
                    fetched.push(pool.fetch(absent, tree)?);
                }
            }
        }
    }
}

impl Fork {
    /// The separator between two leaves that were merged dies; one between inner
    /// nodes lies between two children of the merged one now.
    fn forget_separator(&mut self, cx: &Context<'_>, parent: Frame, index: usize, merged: Frame) {
        // SAFETY: both are private to this fork (rule 2), and only read.
        let (parent, merged) =
            unsafe { (cx.pool.frames.keys(parent), cx.pool.frames.keys(merged)) };
        if node::is_leaf(merged)
            && let Some(rest) = node::rest_at(parent, index)
        {
            self.replaced
                .extend(overflow::dead(rest, cx.pool.page_size()));
        }
    }
}

/// Builds the merged page (without children) in the scratch buffer.
fn merge_into_scratch(
    cx: &mut Context<'_>,
    parent: Frame,
    left_index: usize,
    (left, right): (Frame, Frame),
) -> bool {
    let page_size = cx.pool.page_size();
    cx.scratch.resize(page_size, 0);
    let frames = &cx.pool.frames;
    // SAFETY: inside the caller's walk; shared or private, and only read.
    let (left, right, parent) =
        unsafe { (frames.keys(left), frames.keys(right), frames.keys(parent)) };
    if node::is_leaf(left) {
        return node::merge_leaves(left, right, cx.scratch);
    }
    let children = node::child_count(left) + node::child_count(right);
    if children * node::CHILD + node::HEADER >= page_size {
        return false;
    }
    let separator = node::stored_key_at(parent, left_index);
    let area = node::key_area(page_size, children);
    node::merge_inner(left, right, separator.as_stored(), &mut cx.scratch[..area])
}

/// Moves the merged page and the children of both sides into `frame`.
fn take_over(cx: &mut Context<'_>, frame: Frame, (left, right): (Frame, Frame)) {
    let frames = &cx.pool.frames;
    let children: Vec<ChildRef> = [left, right]
        .into_iter()
        .flat_map(|side| {
            // SAFETY: inside the caller's walk; shared or private, only read.
            let count = node::child_count(unsafe { frames.keys(side) });
            (0..count).map(move |index| frames.child(side, index))
        })
        .collect();
    // SAFETY: private to the fork (rule 2), and nothing else borrows it.
    let page = unsafe { frames.page_mut(frame) };
    let birth = node::birth(page);
    let area = node::key_area(page.len(), children.len());
    page[..area].copy_from_slice(&cx.scratch[..area]);
    node::set_birth(page, birth);
    for (index, child) in children.into_iter().enumerate() {
        frames.set_child(frame, index, child);
    }
}
