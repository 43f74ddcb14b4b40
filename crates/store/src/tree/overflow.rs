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

use super::fork::{Context, Fork};
use crate::cache::{Absent, ChildRef, Frame, Pool, SlotId};
use crate::checkpoint::writer::{self, After};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{self, Key, OwnedKey, RestRef, Stored};
use crate::reclaim::Dead;
use std::cmp::Ordering;
use std::ops::Range;
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

/// How long a large value is, of what its leaf holds.
///
/// # Errors
/// `Corrupt` where it says more than a value can have.
pub(crate) fn length(pool: &Pool, tree: u32, stored: &[u8]) -> Result<usize> {
    let reference = Reference::decode(stored);
    let rest = reference.map_or(u64::MAX, |reference| reference.length);
    let start = start(stored).len();
    match rest <= (MAX_VALUE - start) as u64 {
        true => Ok(start + rest as usize),
        false => Err(wrong_length(pool, tree, "an overflow value")),
    }
}

/// Appends bytes of a large value to `out`, of what its leaf holds; those that it has of
/// the range.
pub(crate) fn read_part(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    part: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let end = part.end.min(length(pool, tree, stored)?);
    let start = start(stored);
    if let Some(here) = start.get(part.start..end.min(start.len())) {
        out.extend_from_slice(here);
    }
    let rest = part.start.max(start.len())..end;
    if rest.is_empty() {
        return Ok(());
    }
    let rest = rest.start - start.len()..rest.end - start.len();
    read_range(pool, slot, tree, stored, rest, out)
}

/// Appends a large value to `out`, of what its leaf holds.
pub(crate) fn read_value(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.extend_from_slice(start(stored));
    read(pool, slot, tree, stored, out)
}

/// Appends the rest with this reference to `out`.
pub(crate) fn read(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let wrong = || wrong_length(pool, tree, "an overflow value");
    let reference = Reference::decode(stored).ok_or_else(wrong)?;
    if reference.length > MAX_VALUE as u64 {
        return Err(wrong());
    }
    let length = reference.length as usize;
    let end = out.len() + length;
    let chunk_bytes = node::max_chunk(pool.page_size());
    let mut root = reference.node;
    for chunk in 0..length.div_ceil(chunk_bytes) {
        read_chunk(pool, slot, tree, &mut root, chunk, out)?;
    }
    if out.len() == end {
        Ok(())
    } else {
        Err(wrong())
    }
}

/// Appends bytes of the rest with this reference to `out`, all of which it has.
pub(crate) fn read_range(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let wrong = || wrong_length(pool, tree, "an overflow value");
    let reference = Reference::decode(stored).ok_or_else(wrong)?;
    let chunk_bytes = node::max_chunk(pool.page_size());
    let mut root = reference.node;
    let mut buffer = Vec::new();
    for chunk in range.start / chunk_bytes..range.end.div_ceil(chunk_bytes) {
        buffer.clear();
        read_chunk(pool, slot, tree, &mut root, chunk, &mut buffer)?;
        let at = chunk * chunk_bytes;
        let part = range.start.max(at) - at..range.end.min(at + chunk_bytes) - at;
        out.extend_from_slice(buffer.get(part).ok_or_else(wrong)?);
    }
    Ok(())
}

/// Compares the rest of a long key with that of a key sought. Reads no further than
/// they are the same, and holds no more than a page of it.
pub(crate) fn compare(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    rest: &RestRef,
    sought: &[u8],
) -> Result<Ordering> {
    let wrong = || wrong_length(pool, tree, "a long key");
    let reference = Reference::decode(rest).ok_or_else(wrong)?;
    if reference.length > MAX_KEY as u64 {
        return Err(wrong());
    }
    let chunks = (reference.length as usize).div_ceil(node::max_chunk(pool.page_size()));
    let mut root = reference.node;
    let (mut read, mut sought) = (0, sought);
    let mut buffer = Vec::new();
    for chunk in 0..chunks {
        buffer.clear();
        read_chunk(pool, slot, tree, &mut root, chunk, &mut buffer)?;
        let (here, beyond) = sought.split_at(sought.len().min(buffer.len()));
        match buffer.as_slice().cmp(here) {
            Ordering::Equal => sought = beyond,
            order => return Ok(order),
        }
        read += buffer.len() as u64;
    }
    if read != reference.length {
        return Err(wrong());
    }
    Ok(if sought.is_empty() {
        Ordering::Equal
    } else {
        Ordering::Less
    })
}

/// The whole of a key as stored.
pub(crate) fn whole_key(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: Stored<'_>,
) -> Result<OwnedKey> {
    let mut key = OwnedKey::from(stored.key);
    if let (OwnedKey::Bytes(bytes), Some(rest)) = (&mut key, stored.rest) {
        read(pool, slot, tree, rest, bytes)?;
    }
    Ok(key)
}

fn wrong_length(pool: &Pool, tree: u32, what: &str) -> Error {
    Error::corrupt(format!(
        "database disk image is malformed: {what} of tree {tree} in {} is not as long as its entry says",
        pool.path
    ))
}

/// Appends chunk number `chunk` of the value under `root`.
fn read_chunk(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    root: &mut ChildRef,
    chunk: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut fetched = Vec::new();
    loop {
        let walk = pool.readers.walk(slot);
        match find_chunk(pool, root, chunk) {
            Ok(Some(frame)) => {
                // SAFETY: a chunk, inside the walk.
                out.extend_from_slice(node::overflow_payload(unsafe { pool.frames.page(frame) }));
                return Ok(());
            }
            Ok(None) => {
                return Err(Error::corrupt(format!(
                    "database disk image is malformed: an overflow value of tree {tree} in {} ends early",
                    pool.path
                )));
            }
            Err(absent) => {
                drop(walk);
                fetched.push(pool.fetch(absent, tree)?);
            }
        }
    }
}

/// The frame of chunk number `chunk`; `None` if the value has no such chunk.
/// Inside a walk.
fn find_chunk(
    pool: &Pool,
    root: &mut ChildRef,
    chunk: usize,
) -> std::result::Result<Option<Frame>, Absent> {
    let fan = node::max_overflow_children(pool.page_size());
    let mut frame = pool.enter(root)?;
    loop {
        // SAFETY: inside the caller's walk.
        let keys = unsafe { pool.frames.keys(frame) };
        if node::kind(keys) != Some(node::Kind::Overflow) {
            return Ok(None);
        }
        let level = u32::from(node::level(keys));
        if level == 0 {
            return Ok(Some(frame));
        }
        let index = chunk / fan.saturating_pow(level - 1) % fan;
        if index >= node::child_count(keys) {
            return Ok(None);
        }
        frame = pool.follow(frame, index)?;
    }
}
