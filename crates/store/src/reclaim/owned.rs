//! What a node owns: its children, and the large values and rests of keys it refers to.
//! Whoever frees a dead subtree, writes a node or checks one asks here.

use super::Dead;
use crate::cache::{ChildRef, Frame, Topmost};
use crate::codec::ExtentRef;
use crate::error::Result;
use crate::node::{self, Mismatch};
use crate::space::extent_of;
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

/// A node of a dead subtree that is to be looked at.
struct Open {
    node: ChildRef,
    birth: u64,
    /// Its level, where its parent is known.
    level: Option<u8>,
    is_value: Option<bool>,
}

/// The nodes of a dead subtree, the values outside its leaves included. Those that
/// are not in memory are read past the cache: a checkpoint expands, and must not
/// wait for frames that only it can free. What a file says that makes no sense, of nodes
/// above themselves or in several places, ends: levels fall, and there is no more to free
/// than the file has.
pub(super) fn expand(core: &Core, slot: &crate::cache::SlotId, dead: Dead) -> Result<Vec<Dead>> {
    let mut nodes = Vec::new();
    let (mut used, mut end) = (0, 0);
    let mut open = vec![Open {
        node: dead.node,
        birth: dead.birth,
        level: None,
        is_value: None,
    }];
    let mut page = Vec::new();
    let mut bury = |node: ChildRef, birth: u64| -> Result<()> {
        if !node.is_handle() {
            let extent = extent_of(node.reference);
            used += u64::from(extent.units());
            if used > end {
                // The file may grow meanwhile.
                end = core.space.lock().map.end();
            }
            if used > end {
                return Err(core.pool.rot(extent, TOO_MANY));
            }
        }
        nodes.push(Dead {
            node,
            birth,
            subtree: false,
            ..dead
        });
        Ok(())
    };
    while let Some(mut next) = open.pop() {
        if next.node.is_none() {
            continue;
        }
        let owned = look_at(core, slot, dead.tree, &mut next, &mut page)?;
        // A value's nodes are all as old as the value.
        let birth = owned.birth.unwrap_or(next.birth);
        for (node, value_birth) in owned.children {
            let is_child = value_birth.is_none();
            if owned.chunks {
                bury(node, birth)?;
                continue;
            }
            open.push(Open {
                node,
                birth: value_birth.unwrap_or(match owned.birth {
                    Some(_) => 0,
                    None => birth,
                }),
                level: is_child.then(|| owned.level.saturating_sub(1)),
                is_value: Some(!is_child || owned.birth.is_none()),
            });
        }
        bury(core.pool.resolved(next.node), birth)?;
    }
    Ok(nodes)
}

/// What is wrong with a node where there are more of them than the file has room for.
pub(crate) const TOO_MANY: &str = "the page is referred to from several places";

/// What a node of a dead subtree owns.
fn look_at(
    core: &Core,
    slot: &crate::cache::SlotId,
    tree: u32,
    next: &mut Open,
    page: &mut Vec<u8>,
) -> Result<Owned> {
    let pool = &core.pool;
    let walk = pool.readers.walk(slot);
    let owned = match pool.enter(&mut next.node, Topmost::Any(tree)) {
        Ok(frame) => {
            // SAFETY: inside the walk.
            let keys = unsafe { pool.frames.keys(frame) };
            let child = |index| pool.frames.child(frame, index);
            owned_by(keys, (0..node::child_count(keys)).map(child))
        }
        Err(mut absent) => {
            drop(walk);
            page.resize(pool.page_size(), 0);
            absent.level = next.level;
            pool.read_page(absent, tree, page)?;
            let count = node::child_count(page);
            let keys = &page[..node::key_area(page.len(), count)];
            owned_by(keys, (0..count).map(|index| child_in(page, index)))
        }
    };
    let extent = || extent_of(pool.resolved(next.node).reference);
    if next.level.is_some_and(|level| level != owned.level) {
        return Err(pool.rot(extent(), &Mismatch::Level.to_string()));
    }
    if next
        .is_value
        .is_some_and(|is_value| is_value != owned.birth.is_none())
    {
        return Err(pool.rot(extent(), &Mismatch::Kind.to_string()));
    }
    Ok(owned)
}

/// What a node owns, copied.
struct Owned {
    /// The node's own birth; none for those of large values.
    birth: Option<u64>,
    level: u8,
    /// The children are chunks, which own nothing.
    chunks: bool,
    /// Nodes of values, and of rests of keys, with their births; children without.
    children: Vec<(ChildRef, Option<u64>)>,
}

fn owned_by(keys: &[u8], children: impl Iterator<Item = ChildRef>) -> Owned {
    let is_value = node::kind(keys) == Some(node::Kind::Overflow);
    let mut owned = Owned {
        birth: (!is_value).then(|| node::birth(keys)),
        level: node::level(keys),
        chunks: is_value && node::level(keys) == 1,
        children: children.map(|child| (child, None)).collect(),
    };
    each_value(keys, |child, birth| {
        owned.children.push((child, Some(birth)))
    });
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

/// Whether all that a page refers to beside its children has a place in the file: of one
/// that was read just now, nothing is in memory alone. The children are judged when the
/// page is decoded.
pub(crate) fn refers_to_extents(page: &[u8]) -> bool {
    let is_extent = |node: ChildRef| ExtentRef::from_word(node.reference).is_some();
    let mut all = true;
    each_value(page, |node, _| all &= is_extent(node));
    if node::has_long(page) {
        let fences = [node::lower_fence(page), node::upper_fence(page)];
        let rests = fences.into_iter().flatten().filter_map(|fence| fence.rest);
        let mut references = rests.filter_map(|rest| Reference::decode(rest));
        all &= references.all(|reference| is_extent(reference.node));
    }
    all
}
