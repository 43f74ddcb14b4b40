//! When a tree gets a dictionary, and a newer one.
//!
//! Whoever is about to write many leaves of a tree asks [`prepare`] first. From
//! [`LEAVES_MIN`] leaves on, some of them become samples: a dictionary is trained
//! on three quarters and tried on the others. It is kept if it saves more than it
//! costs beside the one that the tree has. The next try comes when four times as
//! many leaves were written: a few milliseconds each, and few of them. So small
//! trees have none, and one that has changed or outgrown its dictionary gets
//! another; pages keep the one that they were compressed with.

use super::meta::Blob;
use crate::cache::ChildRef;
use crate::codec::{self, Dictionary, dictionary};
use crate::dictionaries::{Entry, Progress};
use crate::error::Result;
use crate::node::{self, Kind};
use crate::options::Compression;
use crate::store::Core;
use std::sync::Arc;

/// Leaves written at once that a dictionary is worth trying for.
const LEAVES_MIN: usize = 64;
/// Leaves looked at; every fourth is not trained on but tried with.
const SAMPLES: usize = 128;
/// How much less than without it images must take: a 32nd for the first one of a
/// tree, a 16th for the others.
const GAIN_FIRST: usize = 32;
const GAIN_NEXT: usize = 16;
/// Leaves written, in a tree that has a dictionary, before the first try.
const PATIENCE: u64 = 1024;
/// Between tries the number of leaves written grows by this.
const GROWTH: u64 = 4;

/// Trains a dictionary for the tree of these unwritten nodes, if it is time to.
/// All but the tree's leaves are passed over.
pub(crate) fn prepare(core: &Core, nodes: &[ChildRef]) -> Result<()> {
    if nodes.len() < LEAVES_MIN
        || core.options.compression == Compression::None
        || !dictionary::fits(core.pool.page_size())
    {
        return Ok(());
    }
    let Some((tree, leaves)) = leaves(core, nodes) else {
        return Ok(());
    };
    let dictionaries = &core.pool.dictionaries;
    let last = dictionaries.of(tree).last().map_or(0, |entry| entry.number);
    let first = Progress {
        leaves: 0,
        next: if last == 0 { 0 } else { PATIENCE },
    };
    let is_due = dictionaries.progress(tree, first, |progress| {
        progress.leaves += leaves.len() as u64;
        let is_due = leaves.len() >= LEAVES_MIN && progress.leaves >= progress.next;
        if is_due {
            progress.next = progress.leaves * GROWTH;
        }
        is_due
    });
    if !is_due || last == dictionary::NUMBER_MAX {
        return Ok(());
    }
    match choose(core, tree, last, &leaves)? {
        Some(dictionary) => store(core, tree, dictionary),
        None => Ok(()),
    }
}

/// The tree of the first leaf and all its leaves.
fn leaves(core: &Core, nodes: &[ChildRef]) -> Option<(u32, Vec<ChildRef>)> {
    let mut tree = None;
    let mut leaves = Vec::new();
    for node in nodes {
        // SAFETY: an unwritten node stays in its frame, and only its owner or the
        // checkpoint that keeps it asks.
        let keys = unsafe { core.pool.frames.keys(node.hint()) };
        let is_leaf = matches!(node::kind(keys), Some(Kind::IntLeaf | Kind::BytesLeaf));
        if is_leaf && node::tree(keys) == *tree.get_or_insert(node::tree(keys)) {
            leaves.push(*node);
        }
    }
    Some((tree?, leaves))
}

/// A dictionary that is better than the last one.
fn choose(
    core: &Core,
    tree: u32,
    last: u8,
    leaves: &[ChildRef],
) -> Result<Option<Arc<Dictionary>>> {
    let count = leaves.len().min(SAMPLES);
    let samples = (0..count).map(|at| {
        let leaf = leaves[at * leaves.len() / count];
        // SAFETY: as above; leaves have no children.
        codec::payload(unsafe { core.pool.frames.page(leaf.hint()) })
    });
    let (mut samples, mut held_out) = (samples.collect::<Vec<_>>(), Vec::new());
    for at in (0..count).step_by(4).rev() {
        held_out.push(samples.swap_remove(at));
    }
    let Some(bytes) = dictionary::train(&samples) else {
        return Ok(None);
    };
    let cost = bytes.len();
    let trained = Arc::new(Dictionary::new(last + 1, bytes));
    let old = core.pool.newest_dictionary(tree)?;
    let mut scratch = codec::Scratch::default();
    let mut total = |dictionary: Option<&Arc<Dictionary>>| -> usize {
        let lengths = held_out.iter();
        lengths
            .map(|payload| codec::compressed_len(payload, dictionary, &mut scratch))
            .sum()
    };
    let (before, after) = (total(old.as_ref()), total(Some(&trained)));
    let gain = before.saturating_sub(after);
    let least = if last == 0 { GAIN_FIRST } else { GAIN_NEXT };
    let pays = gain * leaves.len() / held_out.len().max(1) >= 2 * cost;
    Ok((pays && gain >= before / least).then_some(trained))
}

/// Writes a dictionary to the file and makes it known.
fn store(core: &Core, tree: u32, dictionary: Arc<Dictionary>) -> Result<()> {
    let bytes = dictionary.bytes();
    let extent = core
        .space
        .allocate_dictionary(super::blob_units(bytes.len())?)?;
    let blob: Blob = match super::fill_blob(core, extent, bytes) {
        Ok(blob) => blob,
        Err(error) => {
            core.space.free(vec![extent]);
            return Err(error);
        }
    };
    let entry = Entry {
        tree,
        number: dictionary.number(),
        blob,
    };
    let length = bytes.len();
    if core.pool.dictionaries.add(entry, Some(dictionary)) {
        core.pool.charge_bytes(length);
    } else {
        // Another thread was faster: its one will do.
        core.space.free(vec![extent]);
    }
    Ok(())
}
