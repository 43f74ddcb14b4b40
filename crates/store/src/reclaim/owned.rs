//! What a node owns: its children, and the large values and rests of keys it refers to.
//! Whoever frees a dead subtree, writes a node or checks one asks here.

use super::Dead;
use crate::cache::{ChildRef, Frame};
use crate::error::Result;
use crate::node;
use crate::store::Core;
use crate::tree::overflow::Reference;

/// The nodes that died: one, or all of a subtree.
pub(crate) fn nodes_of(
    core: &Core,
    slot: &crate::cache::SlotId,
    dead: Dead,
    tree: u32,
) -> Result<Vec<Dead>> {
    if dead.subtree {
        expand(core, slot, Dead { tree, ..dead })
    } else {
        Ok(vec![dead])
    }
}

/// The nodes of a dead subtree, the values outside its leaves included. Those that
/// are not in memory are read past the cache: a checkpoint expands, and must not
/// wait for frames that only it can free.
pub(super) fn expand(core: &Core, slot: &crate::cache::SlotId, dead: Dead) -> Result<Vec<Dead>> {
    let mut nodes = Vec::new();
    let mut open = vec![(dead.node, dead.birth)];
    let mut page = Vec::new();
    while let Some((mut node, mut birth)) = open.pop() {
        if node.is_none() {
            continue;
        }
        let walk = core.pool.readers.walk(slot);
        let owned = match core.pool.enter(&mut node) {
            Ok(frame) => {
                // SAFETY: inside the walk.
                let keys = unsafe { core.pool.frames.keys(frame) };
                let child = |index| core.pool.frames.child(frame, index);
                owned_by(keys, (0..node::child_count(keys)).map(child))
            }
            Err(absent) => {
                drop(walk);
                page.resize(core.pool.page_size(), 0);
                core.pool.read_page(absent, dead.tree, &mut page)?;
                let count = node::child_count(&page);
                let keys = &page[..node::key_area(page.len(), count)];
                owned_by(keys, (0..count).map(|index| child_in(&page, index)))
            }
        };
        // A value's nodes are all as old as the value.
        birth = owned.birth.unwrap_or(birth);
        for (child, value_birth) in owned.children {
            let birth = if owned.birth.is_none() {
                birth
            } else {
                value_birth
            };
            if owned.chunks {
                nodes.push(Dead {
                    node: child,
                    birth,
                    subtree: false,
                    ..dead
                });
            } else {
                open.push((child, birth));
            }
        }
        nodes.push(Dead {
            node,
            birth,
            subtree: false,
            ..dead
        });
    }
    Ok(nodes)
}

/// What a node owns, copied.
struct Owned {
    /// The node's own birth; none for those of large values.
    birth: Option<u64>,
    /// The children are chunks, which own nothing.
    chunks: bool,
    children: Vec<(ChildRef, u64)>,
}

fn owned_by(keys: &[u8], children: impl Iterator<Item = ChildRef>) -> Owned {
    let is_value = node::kind(keys) == Some(node::Kind::Overflow);
    let mut owned = Owned {
        birth: (!is_value).then(|| node::birth(keys)),
        chunks: is_value && node::level(keys) == 1,
        children: children.map(|child| (child, 0)).collect(),
    };
    each_value(keys, |child, birth| owned.children.push((child, birth)));
    owned
}

/// Child `index` of a page as it was read.
pub(crate) fn child_in(page: &[u8], index: usize) -> ChildRef {
    let word = |at: usize| {
        let bytes = page.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let at = node::child_offset(page.len(), index);
    ChildRef::from_words([word(at), word(at + 8)])
}

/// Visits what a node owns: its children, the large values of a leaf, the rests of
/// its long keys, with a lower bound of their births. Inside a walk.
pub(crate) fn each_child(core: &Core, frame: Frame, mut visit: impl FnMut(ChildRef, u64)) {
    // SAFETY: inside a walk.
    let keys = unsafe { core.pool.frames.keys(frame) };
    for index in 0..node::child_count(keys) {
        visit(core.pool.frames.child(frame, index), 0);
    }
    each_value(keys, visit);
}

/// Visits the large values of a leaf, and the rests of a node's long keys.
pub(crate) fn each_value(keys: &[u8], mut visit: impl FnMut(ChildRef, u64)) {
    if node::has_long(keys) {
        for index in 0..node::count(keys) {
            let rest = node::rest_at(keys, index);
            if let Some(rest) = rest.and_then(|rest| Reference::decode(rest)) {
                visit(rest.node, rest.birth);
            }
        }
    }
    let is_value = node::kind(keys) == Some(node::Kind::Overflow);
    if node::is_leaf(keys) && !is_value && node::has_references(keys) {
        for index in 0..node::count(keys) {
            let (value, overflow) = node::value_at(keys, index);
            if overflow && let Some(reference) = Reference::decode(value) {
                visit(reference.node, reference.birth);
            }
        }
    }
}
