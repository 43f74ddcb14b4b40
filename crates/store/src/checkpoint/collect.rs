//! Which nodes under a root wait to be written.
//!
//! A clean node has only clean nodes under it (it could not have been written
//! otherwise), so the walk follows unwritten nodes alone. They are returned by
//! rank, children before parents, and in key order within a rank, which makes
//! neighbours in the tree neighbours on disk.

use crate::cache::{ChildRef, Pool};
use crate::node::{self, Kind};
use crate::reclaim::owned::each_child;
use crate::store::Core;

/// Where a node stands in the order of writing: behind all it may refer to.
/// Nodes of large values come before the leaves that refer to them.
pub(crate) fn rank(keys: &[u8]) -> u16 {
    let level = u16::from(node::level(keys));
    if node::kind(keys) == Some(Kind::Overflow) {
        level
    } else {
        level + 256
    }
}

/// The unwritten nodes under `root`, by handle and frame. The caller's pin
/// keeps them what and where they are.
pub(crate) fn unwritten(core: &Core, root: ChildRef) -> Vec<ChildRef> {
    let mut found: Vec<(u16, ChildRef)> = Vec::new();
    let mut open = Vec::new();
    open.extend(waiting(&core.pool, root));
    while let Some(node) = open.pop() {
        // SAFETY: unwritten, so it stays in its frame; kept by the caller's pin.
        let keys = unsafe { core.pool.frames.keys(node.hint()) };
        found.push((rank(keys), node));
        let first = open.len();
        each_child(core, node.hint(), |child, _| {
            open.extend(waiting(&core.pool, child));
        });
        open[first..].reverse();
    }
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, node)| node).collect()
}

fn waiting(pool: &Pool, child: ChildRef) -> Option<ChildRef> {
    if !child.is_handle() || pool.frames.holding(child.hint(), child.reference).is_none() {
        return None;
    }
    Some(child)
}
