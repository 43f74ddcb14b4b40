//! Values too large for a leaf, and the rests of long keys.
//!
//! Such a value is a small tree of its own: chunks of bytes at level 0, and above
//! them index nodes that hold nothing but children. It is written once and never
//! changed. The leaf keeps, in the value's place, a reference and the value's *start*
//! ([`node::start_len`] bytes); the tree has the *rest*, which is not empty:
//!
//! ```text
//! 0   reference u64 | checksum u32 | hint u32     the root node of the rest
//! 16  length u64                                  of the rest, in bytes
//! 24  birth u64                                   a lower bound, as in nodes
//! 32  the value's start
//! ```
//!
//! So what stands first in a value is read without its rest, and can be written anew
//! without it.
//!
//! A leaf's bytes do not change while it is shared, so a handle stays in the
//! reference as long as the leaf is in memory, and is looked up when followed;
//! the leaf's disk image carries the extent.
//!
//! The rest of a long key (see `node/key.rs`) is written in the same way. The
//! entry of a leaf owns the rest of its key, and a separator of an inner node its own
//! copy of what distinguishes it: they die with it. Fences refer to the rest of the
//! separator that they repeat. That separator is made by the split that makes the
//! fences, and goes with the merge that unmakes the last of them, so no page with
//! such a fence lives longer than it.

mod read;

pub(crate) use read::{compare, is_value, length, read, read_part, read_value, whole_key};

use super::fork::{Context, Fork};
use crate::cache::ChildRef;
use crate::checkpoint::writer::{self, After};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{self, Key};
use crate::reclaim::Dead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Longest value in bytes.
pub(crate) const MAX_VALUE: usize = 1 << 30;
/// Longest key in bytes.
pub(crate) const MAX_KEY: usize = 1 << 30;
/// Nodes that are made within an edit before they are written out.
const KEPT_WITHIN_EDIT: usize = 16;

/// An overflow reference, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) node: ChildRef,
    pub(crate) length: u64,
    pub(crate) birth: u64,
}

impl Reference {
    /// Reads the bytes that stand in a leaf; `None` if they are too few.
    pub(crate) fn decode(stored: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = stored.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        Some(Self {
            node: ChildRef::from_words([word(0)?, word(8)?]),
            length: word(16)?,
            birth: word(24)?,
        })
    }

    pub(crate) fn encode(self) -> [u8; node::OVERFLOW_REF] {
        let [reference, rest] = self.node.words();
        let mut stored = [0; node::OVERFLOW_REF];
        for (at, word) in [reference, rest, self.length, self.birth]
            .iter()
            .enumerate()
        {
            stored[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        stored
    }
}

/// What dies when the value with this reference is replaced or deleted: a subtree
/// that has to be read to be freed, or its only node.
pub(crate) fn dead(stored: &[u8], page_size: usize) -> Option<Dead> {
    let reference = Reference::decode(stored)?;
    Some(if reference.length <= node::max_chunk(page_size) as u64 {
        Dead::node(reference.node, reference.birth)
    } else {
        Dead::subtree(reference.node, reference.birth)
    })
}

/// The start and the rest of a value that is too large for a leaf, under this key.
///
/// # Errors
/// [`ErrorKind::TooBig`] if the value is longer than [`MAX_VALUE`].
pub(crate) fn split<'v>(
    page_size: usize,
    key: Key<'_>,
    value: &'v [u8],
) -> Result<(&'v [u8], &'v [u8])> {
    if value.len() > MAX_VALUE {
        return Err(Error::new(
            ErrorKind::TooBig,
            format!(
                "a value of {} bytes is over the limit of {MAX_VALUE}",
                value.len()
            ),
        ));
    }
    let key_len = node::stored_len(page_size, key);
    Ok(value.split_at(node::start_len(page_size, key_len, value.len())))
}

/// A large value as its leaf holds it.
pub(crate) fn stored(reference: &[u8; node::OVERFLOW_REF], start: &[u8]) -> Vec<u8> {
    [reference, start].concat()
}

/// Another large value with the same rest.
pub(crate) fn with_start(stored: &[u8], start: &[u8]) -> Vec<u8> {
    let reference = stored.get(..node::OVERFLOW_REF).unwrap_or(stored);
    [reference, start].concat()
}

/// The start of a large value, of what its leaf holds.
pub(crate) fn start(stored: &[u8]) -> &[u8] {
    stored.get(node::OVERFLOW_REF..).unwrap_or(&[])
}

/// Writes a rest as nodes of the fork, in the middle of an edit; returns the reference. No transaction makes room meanwhile, so the nodes of what is large
/// are written out as they are made.
pub(crate) fn write(
    fork: &mut Fork,
    cx: &mut Context<'_>,
    value: &[u8],
) -> Result<[u8; node::OVERFLOW_REF]> {
    let mut value = Writer::new(value);
    let mut written_to = fork.own.len();
    while value.step(fork, cx)? {
        if fork.own.len() >= written_to + KEPT_WITHIN_EDIT {
            write_out(fork, cx, written_to)?;
            written_to = fork.own.len();
        }
    }
    value.reference(fork)
}

/// Writes those of the nodes `fork.own[from..]` that can be, and frees their frames.
/// They are all of one value that nothing refers to yet.
#[cold]
fn write_out(fork: &mut Fork, cx: &Context<'_>, from: usize) -> Result<()> {
    let nodes = &fork.own[from..];
    let ready = nodes.iter().copied();
    let ready: Vec<_> = ready
        .filter(|node| writer::is_ready(cx.core, *node))
        .collect();
    let meta = |node: &ChildRef| cx.pool.frames.meta(node.hint());
    for node in &ready {
        meta(node).generation.store(0, Relaxed);
    }
    let unpublished = fork
        .published
        .get_or_insert_with(|| Arc::new(AtomicU64::new(u64::MAX)));
    writer::write_nodes(cx.core, &ready, Some(unpublished), After::Release).map(drop)
}

/// A rest that is written node by node, so that a transaction can make room in
/// between and a value may be larger than the cache.
pub(crate) struct Writer<'v> {
    length: u64,
    /// What no chunk holds yet.
    rest: &'v [u8],
    /// The level that is being made, and its nodes so far.
    level: u8,
    nodes: Vec<ChildRef>,
    /// The level below it, and how many of its nodes have a parent.
    below: Vec<ChildRef>,
    placed: usize,
}

impl<'v> Writer<'v> {
    pub(crate) fn new(rest: &'v [u8]) -> Self {
        Self {
            length: rest.len() as u64,
            rest,
            level: 0,
            nodes: Vec::new(),
            below: Vec::new(),
            placed: 0,
        }
    }

    /// Makes one node; false if there is nothing left to do.
    pub(crate) fn step(&mut self, fork: &mut Fork, cx: &mut Context<'_>) -> Result<bool> {
        let page_size = cx.pool.page_size();
        let tree = fork.tree.id().0;
        if !self.rest.is_empty() {
            let frame = fork.new_frame(cx)?;
            let (chunk, rest) = self
                .rest
                .split_at(node::max_chunk(page_size).min(self.rest.len()));
            // SAFETY: from the free list (frames rule 1).
            node::init_overflow(unsafe { cx.pool.frames.page_mut(frame) }, tree, chunk);
            self.nodes.push(fork.adopt(cx.pool, frame));
            self.rest = rest;
            return Ok(true);
        }
        if self.placed == self.below.len() {
            if self.nodes.len() <= 1 {
                return Ok(false);
            }
            self.below = std::mem::take(&mut self.nodes);
            self.placed = 0;
            self.level += 1;
        }
        let frame = fork.new_frame(cx)?;
        let children = &self.below[self.placed..];
        let children = &children[..children.len().min(node::max_overflow_children(page_size))];
        // SAFETY: from the free list (frames rule 1).
        let page = unsafe { cx.pool.frames.page_mut(frame) };
        node::init_overflow_index(page, tree, self.level, children.len());
        for (index, child) in children.iter().enumerate() {
            cx.pool.frames.set_child(frame, index, *child);
        }
        self.placed += children.len();
        self.nodes.push(fork.adopt(cx.pool, frame));
        Ok(true)
    }

    /// The reference, once there is nothing left to do.
    pub(crate) fn reference(&self, fork: &Fork) -> Result<[u8; node::OVERFLOW_REF]> {
        let node = self
            .nodes
            .first()
            .copied()
            .ok_or_else(|| Error::misuse("an empty rest needs no overflow"))?;
        Ok(Reference {
            node,
            length: self.length,
            birth: fork.base_seq,
        }
        .encode())
    }
}
