//! About where in a tree a key is, told from one descent.
//!
//! The children of an inner node count alike, and the entries of a leaf. Nodes are filled
//! alike but for those of the root: one of two may have just begun. So each of the root's
//! children counts for as many as it has itself, where these are inner nodes.

use super::walk::{self, Halt, Learnt, Target};
use crate::cache::{ChildRef, Frame, Pool, SlotId, Topmost};
use crate::error::Result;
use crate::node::{self, Key, Rests};

/// A root of more children has some that are alike on either side of each.
const WEIGHED_MAX: usize = 16;

/// About which share of a tree's entries lies before a key.
pub(super) fn share_before(
    pool: &Pool,
    slot: &SlotId,
    (root, topmost): (&mut ChildRef, Topmost),
    key: Key<'_>,
) -> Result<f64> {
    if root.is_none() {
        return Ok(0.0);
    }
    let mut learnt = Learnt::default();
    loop {
        let walk = pool.readers.walk(slot);
        let halt = match descend(pool, (root, topmost), key, &learnt.rests) {
            Ok(share) => return Ok(share),
            Err(halt) => halt,
        };
        drop(walk);
        learnt.get(pool, slot, topmost.tree(), Some(key), halt)?;
    }
}

/// One descent, inside a walk.
fn descend(
    pool: &Pool,
    (root, topmost): (&mut ChildRef, Topmost),
    key: Key<'_>,
    rests: &Rests,
) -> std::result::Result<f64, Halt> {
    let mut frame = pool.enter(root, topmost)?;
    let (mut before, mut within) = (0.0, 1.0);
    let mut is_root = true;
    loop {
        // SAFETY: inside a walk, and the node is shared or the caller's own.
        let keys = unsafe { pool.frames.keys(frame) };
        if node::is_leaf(keys) {
            // SAFETY: a leaf, inside the walk.
            let page = unsafe { pool.frames.page(frame) };
            let index = node::find(page, key, rests)?.unwrap_or_else(|index| index);
            return Ok(before + within * share(index, node::count(page)));
        }
        let index = walk::child_for(keys, Target::Key(key), rests)?;
        let children = node::count(keys) + 1;
        let child = pool.follow(frame, index)?;
        let weighed = match is_root && children <= WEIGHED_MAX {
            true => weigh(pool, frame, index, child, children)?,
            false => None,
        };
        let (left, own) = weighed.unwrap_or((share(index, children), share(1, children)));
        before += within * left;
        within *= own;
        frame = child;
        is_root = false;
    }
}

/// Which share of the grandchildren of a node lies before a child of it, and which within;
/// None where the children are leaves.
fn weigh(
    pool: &Pool,
    frame: Frame,
    index: usize,
    child: Frame,
    children: usize,
) -> std::result::Result<Option<(f64, f64)>, Halt> {
    // SAFETY: inside a walk, and the nodes are shared or the caller's own.
    let keys = |frame| unsafe { pool.frames.keys(frame) };
    if node::is_leaf(keys(child)) {
        return Ok(None);
    }
    let (mut before, mut all) = (0, 0);
    for at in 0..children {
        let own = node::count(keys(pool.follow(frame, at)?)) + 1;
        before += if at < index { own } else { 0 };
        all += own;
    }
    let own = node::count(keys(child)) + 1;
    Ok(Some((share(before, all), share(own, all))))
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of.max(1) as f64
}
