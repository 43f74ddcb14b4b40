//! Writing bytes in the middle of a large value.
//!
//! The chunks that hold them and the index nodes above those are made anew; the value
//! shares all others with the one before, as versions of a tree share nodes. Its birth
//! stays, which is a lower bound for each of them.

use super::fork::{Context, Fork};
use super::overflow::Reference;
use crate::cache::{ChildRef, Frame, Topmost};
use crate::error::{Error, Result};
use crate::node;

/// Makes the rest of a large value whose bytes from `from` on are these, all of which it
/// has; the reference to it. What it does not share with the rest before dies.
pub(crate) fn rewrite(
    fork: &mut Fork,
    cx: &mut Context<'_>,
    reference: Reference,
    from: usize,
    bytes: &[u8],
) -> Result<[u8; node::OVERFLOW_REF]> {
    let page_size = cx.pool.page_size();
    let mut rest = Rest {
        reference,
        from,
        bytes,
        level: 0,
        span: node::max_chunk(page_size),
    };
    while (rest.span as u64) < reference.length {
        rest.span = rest
            .span
            .saturating_mul(node::max_overflow_children(page_size));
        rest.level += 1;
    }
    let node = rest.node(fork, cx, reference.node, 0)?;
    Ok(Reference { node, ..reference }.encode())
}

/// A node's level and how many bytes it spans, of the rest that is rewritten; at first
/// those of the root.
#[derive(Clone, Copy)]
struct Rest<'b> {
    reference: Reference,
    from: usize,
    bytes: &'b [u8],
    level: u8,
    span: usize,
}

impl Rest<'_> {
    /// Makes anew the node that begins at byte `at`.
    fn node(
        self,
        fork: &mut Fork,
        cx: &mut Context<'_>,
        mut old: ChildRef,
        at: usize,
    ) -> Result<ChildRef> {
        let frame = match self.level {
            0 => self.chunk(fork, cx, &mut old, at)?,
            _ => self.index(fork, cx, &mut old, at)?,
        };
        fork.replace(old, self.reference.birth);
        Ok(fork.adopt(cx.pool, frame))
    }

    /// How many bytes a node has that begins there.
    fn bytes_at(self, at: usize) -> usize {
        self.span.min(self.reference.length as usize - at)
    }

    fn chunk(
        self,
        fork: &mut Fork,
        cx: &mut Context<'_>,
        old: &mut ChildRef,
        at: usize,
    ) -> Result<Frame> {
        let len = self.bytes_at(at);
        let (from, to) = (
            self.from.max(at),
            (self.from + self.bytes.len()).min(at + len),
        );
        let new = &self.bytes[from - self.from..to - self.from];
        let tree = fork.tree.id().0;
        if new.len() == len {
            let frame = fork.new_frame(cx)?;
            // SAFETY: from the free list (frames rule 1).
            node::init_overflow(unsafe { cx.pool.frames.page_mut(frame) }, tree, new);
            return Ok(frame);
        }
        let mut payload = self.read(tree, cx, old, |page, _| match node::child_count(page) {
            0 => node::overflow_payload(page).to_vec(),
            _ => Vec::new(),
        })?;
        if payload.len() != len {
            return Err(wrong_node(cx, tree));
        }
        payload[from - at..to - at].copy_from_slice(new);
        let frame = fork.new_frame(cx)?;
        // SAFETY: from the free list (frames rule 1).
        node::init_overflow(unsafe { cx.pool.frames.page_mut(frame) }, tree, &payload);
        Ok(frame)
    }

    fn index(
        self,
        fork: &mut Fork,
        cx: &mut Context<'_>,
        old: &mut ChildRef,
        at: usize,
    ) -> Result<Frame> {
        let tree = fork.tree.id().0;
        let below = Self {
            level: self.level - 1,
            span: self.span / node::max_overflow_children(cx.pool.page_size()),
            ..self
        };
        let level = self.level;
        let mut children = self.read(tree, cx, old, |page, child| {
            let count = match node::level(page) == level {
                true => node::child_count(page),
                false => 0,
            };
            (0..count).map(child).collect::<Vec<_>>()
        })?;
        if children.len() != self.bytes_at(at).div_ceil(below.span) {
            return Err(wrong_node(cx, tree));
        }
        let first = self.from.saturating_sub(at) / below.span;
        let end = (self.from + self.bytes.len() - at).div_ceil(below.span);
        for (i, child) in children.iter_mut().enumerate().take(end).skip(first) {
            *child = below.node(fork, cx, *child, at + i * below.span)?;
        }
        let frame = fork.new_frame(cx)?;
        // SAFETY: from the free list (frames rule 1).
        let page = unsafe { cx.pool.frames.page_mut(frame) };
        node::init_overflow_index(page, tree, level, children.len());
        for (i, child) in children.into_iter().enumerate() {
            cx.pool.frames.set_child(frame, i, child);
        }
        Ok(frame)
    }

    /// Reads a node: the part of its page that holds no children, and each child.
    fn read<R>(
        self,
        tree: u32,
        cx: &Context<'_>,
        node: &mut ChildRef,
        take: impl Fn(&[u8], &dyn Fn(usize) -> ChildRef) -> R,
    ) -> Result<R> {
        let pool = cx.pool;
        // What was fetched stays until it was read.
        let mut fetched = Vec::new();
        loop {
            let walk = pool.readers.walk(cx.slot);
            match pool.enter(node, Topmost::Value(tree)) {
                Ok(frame) => {
                    // SAFETY: inside the walk.
                    let keys = unsafe { pool.frames.keys(frame) };
                    if node::kind(keys) != Some(node::Kind::Overflow) {
                        return Err(wrong_node(cx, tree));
                    }
                    return Ok(take(keys, &|index| pool.frames.child(frame, index)));
                }
                Err(absent) => {
                    drop(walk);
                    fetched.push(pool.fetch(absent, tree)?);
                }
            }
        }
    }
}

fn wrong_node(cx: &Context<'_>, tree: u32) -> Error {
    Error::corrupt(format!(
        "database disk image is malformed: a large value of tree {tree} in {} is not made as its length says",
        cx.pool.path
    ))
}
