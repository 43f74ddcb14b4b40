//! Whether two versions of a tree agree.
//!
//! Versions share what did not change, so equal references mean equal contents
//! and are not descended into. Where they differ, entries are compared byte by
//! byte. (Overflow values are written once, so their references stand for them:
//! a value that was rewritten with the same bytes counts as changed, which costs
//! a retry and never an anomaly.)

use super::overflow::Reference;
use super::walk::{self, Ahead, Halt, Learnt, Target};
use crate::cache::{ChildRef, Frame, Pool, SlotId};
use crate::error::Result;
use crate::node::{self, Key, Rests};

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

/// The first of the keys under which the entry, or its absence, is not the same in both.
/// Keys that come one after the other are mostly in the same leaves, which are looked at
/// first.
pub(crate) fn first_difference<'k>(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    mut roots: [ChildRef; 2],
    keys: impl Iterator<Item = Result<Key<'k>>>,
) -> Result<Option<Key<'k>>> {
    let mut left = KEYS_A_WALK;
    let mut walk = pool.readers.walk(slot);
    let mut leaves = [None; 2];
    for key in keys {
        let key = key?;
        if left == 0 {
            drop(walk);
            walk = pool.readers.walk(slot);
            (leaves, left) = ([None; 2], KEYS_A_WALK);
        }
        left -= 1;
        let same = match try_same(
            pool,
            &mut roots,
            &mut leaves,
            (key, Aspect::Entry),
            Rests::NONE,
        ) {
            Ok(same) => same,
            Err(_) => {
                drop(walk);
                let same = same_under_key(pool, slot, tree, roots, (key, Aspect::Entry))?;
                walk = pool.readers.walk(slot);
                leaves = [None; 2];
                same
            }
        };
        if !same {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Whether this aspect of the entry under a key is the same in both.
pub(crate) fn same_under_key(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    roots: [ChildRef; 2],
    (key, aspect): (Key<'_>, Aspect),
) -> Result<bool> {
    let mut roots = roots;
    let mut learnt = Learnt::default();
    loop {
        let walk = pool.readers.walk(slot);
        let leaves = &mut [None; 2];
        match try_same(pool, &mut roots, leaves, (key, aspect), &learnt.rests) {
            Ok(same) => return Ok(same),
            Err(halt) => {
                drop(walk);
                learnt.get(pool, slot, tree, Some(key), halt)?;
            }
        }
    }
}

/// Inside a walk; `leaves` are those that an earlier key of the same walk was in.
fn try_same(
    pool: &Pool,
    roots: &mut [ChildRef; 2],
    leaves: &mut [Option<Frame>; 2],
    (key, aspect): (Key<'_>, Aspect),
    rests: &Rests,
) -> std::result::Result<bool, Halt> {
    if roots[0].reference == roots[1].reference {
        return Ok(true);
    }
    let mut entries = [None; 2];
    for ((root, leaf), entry) in roots.iter_mut().zip(leaves).zip(&mut entries) {
        if root.is_none() {
            continue;
        }
        // SAFETY: leaves, inside the caller's walk.
        let page = |frame| unsafe { pool.frames.page(frame) };
        let frame = match leaf.filter(|leaf| node::covers(page(*leaf), key)) {
            Some(leaf) => leaf,
            None => walk::descend(pool, root, Target::Key(key), Ahead::Slot, rests)?,
        };
        *leaf = Some(frame);
        let page = page(frame);
        let found = node::find(page, key, rests)?.ok();
        *entry = found.map(|index| (frame, node::value_at(page, index)));
    }
    Ok(match entries {
        [None, None] => true,
        [Some(_), Some(_)] if aspect == Aspect::Presence => true,
        [Some((left_leaf, left)), Some((right_leaf, right))] => {
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
