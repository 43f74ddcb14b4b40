//! Whether two versions of a tree agree.
//!
//! Versions share what did not change, so equal references mean equal contents
//! and are not descended into. Where they differ, entries are compared byte by
//! byte. (Overflow values are written once, so their references stand for them:
//! a value that was rewritten with the same bytes counts as changed, which costs
//! a retry and never an anomaly.)

use super::overflow::Reference;
use super::walk::{self, Ahead, Halt, Learnt, Target};
use crate::cache::{ChildRef, Pool, SlotId};
use crate::error::Result;
use crate::node::{self, Key, Rests};

/// Whether the entry under `key`, or its absence, is the same in both.
pub(crate) fn same_under_key(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    roots: [ChildRef; 2],
    key: Key<'_>,
) -> Result<bool> {
    let mut roots = roots;
    let mut learnt = Learnt::default();
    loop {
        let walk = pool.readers.walk(slot);
        match try_same(pool, &mut roots, key, &learnt.rests) {
            Ok(same) => return Ok(same),
            Err(halt) => {
                drop(walk);
                learnt.get(pool, slot, tree, Some(key), halt)?;
            }
        }
    }
}

fn try_same(
    pool: &Pool,
    roots: &mut [ChildRef; 2],
    key: Key<'_>,
    rests: &Rests,
) -> std::result::Result<bool, Halt> {
    let [left, right] = roots;
    if left.reference == right.reference {
        return Ok(true);
    }
    let entry = |root: &mut ChildRef| {
        if root.is_none() {
            return Ok::<_, Halt>(None);
        }
        let frame = walk::descend(pool, root, Target::Key(key), Ahead::Slot, rests)?;
        // SAFETY: a leaf, inside the caller's walk.
        let page = unsafe { pool.frames.page(frame) };
        Ok(node::find(page, key, rests)?
            .ok()
            .map(|index| (frame, node::value_at(page, index))))
    };
    Ok(match (entry(left)?, entry(right)?) {
        (None, None) => true,
        (Some((left_leaf, left)), Some((right_leaf, right))) => {
            left_leaf == right_leaf || same_value(pool, left, right)
        }
        _ => false,
    })
}

/// Whether two stored values are the same; both may be overflow references.
pub(crate) fn same_value(pool: &Pool, left: (&[u8], bool), right: (&[u8], bool)) -> bool {
    if left.1 != right.1 {
        return false;
    }
    if !left.1 {
        return left.0 == right.0;
    }
    match (Reference::decode(left.0), Reference::decode(right.0)) {
        (Some(left), Some(right)) => {
            pool.resolved(left.node).reference == pool.resolved(right.node).reference
        }
        _ => false,
    }
}
