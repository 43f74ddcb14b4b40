//! Which nodes under a root wait to be written.
//!
//! A clean node has only clean nodes under it (it could not have been written
//! otherwise), so the walk follows unwritten nodes alone. They are returned by
//! rank, and in key order within a rank, which makes neighbours in the tree
//! neighbours on disk.

use crate::cache::{ChildRef, Pool};
use crate::node::{self, Kind};
use crate::reclaim::owned::each_child;
use crate::store::Core;
use std::collections::BTreeMap;

/// The rank of leaves: nodes of large values, which they may refer to, come before.
const LEAF: u16 = 256;

/// Where a node stands in the order of writing: behind all it may refer to.
pub(crate) fn rank(keys: &[u8]) -> u16 {
    let level = u16::from(node::level(keys));
    if node::kind(keys) == Some(Kind::Overflow) {
        level
    } else {
        level + LEAF
    }
}

/// Nodes by rank, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Ranks(BTreeMap<u16, Vec<ChildRef>>);

impl Ranks {
    /// Adds those of another tree, behind those of the same ranks.
    pub(super) fn append(&mut self, other: Self) {
        for (rank, mut nodes) in other.0 {
            self.0.entry(rank).or_default().append(&mut nodes);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The leaves of trees.
    pub(crate) fn leaves(&self) -> &[ChildRef] {
        self.0.get(&LEAF).map_or(&[], Vec::as_slice)
    }

    /// Those of each rank, children before parents.
    pub(crate) fn lowest_first(self) -> impl Iterator<Item = Vec<ChildRef>> {
        self.0.into_values()
    }
}

/// The unwritten nodes under `root`, by handle and frame. The caller's pin
/// keeps them what and where they are.
pub(crate) fn unwritten(core: &Core, root: ChildRef) -> Ranks {
    let mut found = Ranks::default();
    let mut open = Vec::new();
    open.extend(waiting(&core.pool, root));
    while let Some(node) = open.pop() {
        // SAFETY: unwritten, so it stays in its frame; kept by the caller's pin.
        let keys = unsafe { core.pool.frames.keys(node.hint()) };
        found.0.entry(rank(keys)).or_default().push(node);
        let first = open.len();
        each_child(core, node.hint(), |child, _| {
            open.extend(waiting(&core.pool, child));
        });
        open[first..].reverse();
    }
    found
}

fn waiting(pool: &Pool, child: ChildRef) -> Option<ChildRef> {
    if !child.is_handle() || pool.frames.holding(child.hint(), child.reference).is_none() {
        return None;
    }
    Some(child)
}
