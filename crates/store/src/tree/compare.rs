//! Whether two versions of a tree agree.
//!
//! Versions share what did not change, so equal references mean equal contents
//! and are not descended into. Where they differ, entries are compared byte by
//! byte. (Overflow values are written once, so their references stand for them:
//! a value that was rewritten with the same bytes counts as changed, which costs
//! a retry and never an anomaly.)

use super::overflow::{self, Reference};
use super::walk::{Halt, Learnt};
use crate::Tree;
use crate::cache::{ChildRef, Frame, Pool, SlotId, Topmost, Walk};
use crate::error::Result;
use crate::node::{self, Key, Rests};
use std::ops::Range;

/// Keys that are compared in one walk.
const KEYS_A_WALK: usize = 64;

/// What has to be the same under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aspect {
    /// Whether there is an entry.
    Presence,
    /// Also what it holds.
    Entry,
}

/// Compares two versions of a tree key by key. Keys that come one after the other are
/// mostly in the same leaves, which are looked at first. It may be inside of a walk from one
/// key to the next: see [`Comparer::pause`].
pub(crate) struct Comparer<'p> {
    pool: &'p Pool,
    slot: &'p SlotId,
    topmost: Topmost,
    roots: [ChildRef; 2],
    /// With the number of keys that it is still for.
    walk: Option<(Walk<'p>, usize)>,
    /// Those that an earlier key of the walk was in.
    leaves: [Option<Frame>; 2],
}

impl<'p> Comparer<'p> {
    pub(crate) fn new(pool: &'p Pool, slot: &'p SlotId, tree: &Tree, roots: [ChildRef; 2]) -> Self {
        Self {
            pool,
            slot,
            topmost: tree.0.topmost(),
            roots,
            walk: None,
            leaves: [None; 2],
        }
    }

    /// Ends the walk, before anything that may wait.
    pub(crate) fn pause(&mut self) {
        self.walk = None;
        self.leaves = [None; 2];
    }

    /// Whether this aspect of the entry under a key is the same in both.
    pub(crate) fn is_same(&mut self, key: Key<'_>, aspect: Aspect) -> Result<bool> {
        if self.walk.as_ref().is_some_and(|(_, left)| *left == 0) {
            self.pause();
        }
        let begin = || (self.pool.readers.walk(self.slot), KEYS_A_WALK);
        self.walk.get_or_insert_with(begin).1 -= 1;
        let (roots, leaves) = ((&mut self.roots, self.topmost), &mut self.leaves);
        let Ok(same) = try_same(self.pool, roots, leaves, (key, aspect), Rests::NONE) else {
            self.pause();
            return self.is_same_fetched(key, aspect);
        };
        Ok(same)
    }

    /// The same where nodes are not in memory, or the rest of a long key decides.
    #[cold]
    fn is_same_fetched(&mut self, key: Key<'_>, aspect: Aspect) -> Result<bool> {
        let mut learnt = Learnt::default();
        loop {
            let walk = self.pool.readers.walk(self.slot);
            let (roots, leaves) = ((&mut self.roots, self.topmost), &mut [None; 2]);
            match try_same(self.pool, roots, leaves, (key, aspect), &learnt.rests) {
                Ok(same) => return Ok(same),
                Err(halt) => {
                    drop(walk);
                    learnt.get(self.pool, self.slot, self.topmost.tree(), Some(key), halt)?;
                }
            }
        }
    }
}

/// Inside a walk; `leaves` are those that an earlier key of the same walk was in.
fn try_same(
    pool: &Pool,
    (roots, topmost): (&mut [ChildRef; 2], Topmost),
    leaves: &mut [Option<Frame>; 2],
    (key, aspect): (Key<'_>, Aspect),
    rests: &Rests,
) -> std::result::Result<bool, Halt> {
    if roots[0].reference == roots[1].reference {
        return Ok(true);
    }
    // SAFETY: leaves, inside the caller's walk.
    let page = |frame| unsafe { pool.frames.page(frame) };
    let covers = |leaf: &Option<Frame>| leaf.is_some_and(|leaf| node::covers(page(leaf), key));
    if !leaves.iter().all(covers) {
        *leaves = leaves_of(pool, (roots, topmost), key, rests)?;
    }
    if leaves[0] == leaves[1] {
        // SAFETY: as above.
        let is_leaf = |node| node::is_leaf(unsafe { pool.frames.keys(node) });
        if !leaves[0].is_some_and(is_leaf) {
            *leaves = [None; 2];
        }
        return Ok(true);
    }
    let mut entries = [None; 2];
    for (leaf, entry) in leaves.iter().zip(&mut entries) {
        let Some(frame) = *leaf else { continue };
        let page = page(frame);
        let found = node::find(page, key, rests)?.ok();
        *entry = found.map(|index| node::value_at(page, index));
    }
    Ok(match entries {
        [None, None] => true,
        [Some(_), Some(_)] if aspect == Aspect::Presence => true,
        [Some(left), Some(right)] => same_value(pool, left, right),
        _ => false,
    })
}

/// The leaves that a key belongs to, where there are trees; or one and the same node above
/// them.
fn leaves_of(
    pool: &Pool,
    (roots, topmost): (&mut [ChildRef; 2], Topmost),
    key: Key<'_>,
    rests: &Rests,
) -> std::result::Result<[Option<Frame>; 2], Halt> {
    let mut nodes = [None; 2];
    for (root, node) in roots.iter_mut().zip(&mut nodes) {
        if !root.is_none() {
            *node = Some(pool.enter(root, topmost)?);
        }
    }
    let mut goes_on = true;
    while goes_on && nodes[0] != nodes[1] {
        goes_on = false;
        for node in nodes.iter_mut().flatten() {
            // SAFETY: inside the caller's walk, and the node is shared.
            let keys = unsafe { pool.frames.keys(*node) };
            if !node::is_leaf(keys) {
                let index = node::child_index(keys, key, rests)?;
                *node = pool.follow(*node, index)?;
                goes_on = true;
            }
        }
    }
    Ok(nodes)
}

/// Whether these bytes of two stored values, as many, are the same; both may be large. What
/// lies apart is where it is shared.
pub(crate) fn same_part(
    pool: &Pool,
    (left, part): ((&[u8], bool), Range<usize>),
    (right, other): ((&[u8], bool), Range<usize>),
) -> bool {
    let (left_here, right_here) = (here(left, part.clone()), here(right, other));
    if left_here != right_here {
        return false;
    }
    if left_here.len() == part.len() {
        return true;
    }
    // The rest of both goes on at the same byte, if it is one.
    left.1 && right.1 && share_rest(pool, left.0, right.0)
}

/// What lies in the leaf of these bytes of a value.
fn here((value, is_large): (&[u8], bool), part: Range<usize>) -> &[u8] {
    let start = match is_large {
        true => overflow::start(value),
        false => value,
    };
    let within = part.start.min(start.len())..part.end.min(start.len());
    start.get(within).unwrap_or(&[])
}

fn share_rest(pool: &Pool, left: &[u8], right: &[u8]) -> bool {
    match (Reference::decode(left), Reference::decode(right)) {
        (Some(left), Some(right)) => {
            pool.resolved(left.node).reference == pool.resolved(right.node).reference
        }
        _ => false,
    }
}

/// Whether two stored values are the same; both may be large.
pub(crate) fn same_value(pool: &Pool, left: (&[u8], bool), right: (&[u8], bool)) -> bool {
    if left.1 != right.1 {
        return false;
    }
    if !left.1 {
        return left.0 == right.0;
    }
    if overflow::start(left.0) != overflow::start(right.0) {
        return false;
    }
    share_rest(pool, left.0, right.0)
}
