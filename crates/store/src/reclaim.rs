//! Freeing what no snapshot can reach any more.
//!
//! A node lives from its birth to its death, the commit that replaced it. It is
//! freed when its death is visible and no pin lies in `[birth, death)`. Pins are
//! the open snapshots and transactions, the last durable checkpoint and the one
//! under way. So a snapshot held for long keeps what changed under it once, and
//! nothing of what came and went since.
//!
//! * Deaths are noted in their tree's `graves` at publication. What is in memory
//!   alone and no snapshot needs never gets there: see `txn/recycle.rs`.
//! * [`Reclaim::process`] looks at each visible one once: it is freed, or noted
//!   under the newest pin that keeps it, and looked at again when that pin ends.
//!   The work is in what died, never in what exists.
//! * A dead subtree (a dropped tree, a large value) is first expanded into its
//!   nodes, which may read inner nodes from disk: by the background thread only.
//!
//! Extents go back to the allocator under the `reclaim` lock, so a checkpoint
//! that holds it sees each dead extent either in a list or free, never neither.

pub(crate) mod owned;

use crate::cache::{Charge, ChildRef, Frame, NO_HINT};
use crate::checkpoint::{collect, writer};
use crate::chunks::Chunks;
use crate::codec::ExtentRef;
use crate::error::Result;
use crate::pins::Pins;
use crate::primitives::MutexGuard;
use crate::space::extent_of;
use crate::store::Core;
use crate::tree::TreeShared;
use owned::expand;
use std::collections::BTreeMap;
use std::time::Duration;

/// A node, or with `subtree` all nodes under it too, that a commit took out of
/// its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) node: ChildRef,
    pub(crate) birth: u64,
    pub(crate) death: u64,
    pub(crate) tree: u32,
    pub(crate) subtree: bool,
    /// A reader keeps it in memory, unwritten. Of those that are kept.
    pub(crate) in_memory: bool,
}

impl Dead {
    pub(crate) fn node(node: ChildRef, birth: u64) -> Self {
        Self {
            node,
            birth,
            death: 0,
            tree: 0,
            subtree: false,
            in_memory: false,
        }
    }

    /// Whether it is in memory alone.
    fn is_unwritten(&self, core: &Core) -> bool {
        let frames = &core.pool.frames;
        let node = self.node;
        !self.subtree && node.is_handle() && frames.holding(node.hint(), node.reference).is_some()
    }

    pub(crate) fn subtree(node: ChildRef, birth: u64) -> Self {
        Self {
            subtree: true,
            ..Self::node(node, birth)
        }
    }
}

/// The dead of one tree.
#[derive(Default)]
pub(crate) struct Graves {
    few: Vec<Dead>,
    /// From commits with many, moved instead of copied; the first entry of each
    /// carries the death.
    many: Vec<Chunks<Dead>>,
    /// How many survived the last look: look again when they have doubled.
    survivors: usize,
}

impl Graves {
    /// Takes over what a commit replaced. Under the commit lock, hence cheap.
    pub(crate) fn take_over(&mut self, tree: u32, death: u64, replaced: &mut Chunks<Dead>) {
        if replaced.len() > MANY {
            if let Some(first) = replaced.first_mut() {
                first.death = death;
                first.tree = tree;
            }
            self.many.push(std::mem::take(replaced));
            return;
        }
        self.few.extend(replaced.iter().map(|dead| Dead {
            death,
            tree,
            ..*dead
        }));
        replaced.clear();
    }

    /// Whether it is time to look at them: there are that many more than are known to
    /// be needed.
    pub(crate) fn are_due(&self, more: usize) -> bool {
        !self.many.is_empty() || self.few.len() >= 2 * self.survivors + more
    }

    /// Takes what could not be freed at once after all.
    pub(crate) fn add(&mut self, dead: Dead) {
        self.few.push(dead);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    /// Moves all of them to `taken`, which is empty; its memory is used from now on.
    fn take(&mut self, taken: &mut Vec<Dead>) -> Vec<Chunks<Dead>> {
        std::mem::swap(&mut self.few, taken);
        std::mem::take(&mut self.many)
    }

    /// Puts back what was taken and is still needed. What `survivors` holds then is
    /// memory to use again.
    fn put_back(&mut self, survivors: &mut Vec<Dead>) {
        self.survivors = survivors.len();
        survivors.append(&mut self.few);
        std::mem::swap(&mut self.few, survivors);
    }

    /// How many of those that single commits replaced are in memory alone. Batches wait
    /// for their first look, which parts them.
    fn unwritten(&self, core: &Core) -> usize {
        let few = self.few.iter();
        few.filter(|dead| dead.is_unwritten(core)).count()
    }

    /// All of them with their deaths, copied, so that who publishes waits for no
    /// more than the copy.
    fn copied(&self) -> Vec<Dead> {
        let mut all = self.few.clone();
        for batch in &self.many {
            let death = batch.iter().next().map_or(0, |dead| dead.death);
            all.extend(batch.iter().map(|dead| Dead { death, ..*dead }));
        }
        all
    }
}

/// More than this is moved at publication instead of copied.
pub(crate) const MANY: usize = 64;
/// Extents gathered before they go back to the allocator.
const FREED_AT_ONCE: usize = 4096;
/// Survivors of a look that are set aside under the reader's pin that keeps them.
const SET_ASIDE: usize = 192;

/// The dead that are kept by somebody, and those to be expanded.
#[derive(Default)]
pub(crate) struct Reclaim {
    kept: BTreeMap<u64, Chunks<Dead>>,
    /// How many of them readers keep in memory.
    kept_in_memory: usize,
    subtrees: Vec<Dead>,
    /// Counts the lists against the cache's limit.
    charge: Option<Charge>,
    /// Taken in turns with the trees' lists, so that none of them grows anew.
    buffer: Vec<Dead>,
    pins: Pins,
    /// Unwritten nodes buried and not told to the pool.
    buried: usize,
}

/// The dead of a batch, each with its death.
fn with_deaths(mut batch: Chunks<Dead>) -> impl Iterator<Item = Dead> {
    let first = batch.first_mut();
    let (death, tree) = first.map_or((0, 0), |dead| (dead.death, dead.tree));
    batch.into_iter().map(move |dead| Dead {
        death,
        tree,
        ..dead
    })
}

/// Frees the frame of a dead node that is on disk and that no reader can ask
/// for: only a checkpoint keeps it, which needs no more than its extent.
fn unseat(core: &Core, readers: &[u64], dead: &mut Dead, free: &mut Vec<Frame>) {
    let on_disk = !dead.node.is_handle() && !dead.subtree && dead.node.hint() != NO_HINT;
    if on_disk && keeper(readers, dead.birth, dead.death).is_none() {
        core.pool
            .drop_resident(extent_of(dead.node.reference), free);
        dead.node = dead.node.with_hint(NO_HINT);
    }
}

/// The newest of the sorted `pins` that lies in `[birth, death)`.
fn keeper(pins: &[u64], birth: u64, death: u64) -> Option<u64> {
    let below = pins.partition_point(|pin| *pin < death);
    let newest = *pins.get(below.checked_sub(1)?)?;
    (newest >= birth).then_some(newest)
}

impl Reclaim {
    /// Looks at the dead of one tree. Frames that come free go to `free`.
    pub(crate) fn process(&mut self, core: &Core, tree: &TreeShared, free: &mut Vec<Frame>) {
        let visible = core.visible();
        let mut pins = std::mem::take(&mut self.pins);
        pins.read(core);
        let mut few = std::mem::take(&mut self.buffer);
        let many = tree.graves.lock().take(&mut few);
        let taken = few.len() + many.iter().map(Chunks::len).sum::<usize>();
        self.charge_lists(core, taken);
        let set_aside = taken > SET_ASIDE;
        let mut extents = Vec::new();
        let mut survives = |dead: &mut Dead| {
            // `visible` was read before the pins: who pins later pins no less.
            if dead.death > visible {
                return true;
            }
            match keeper(pins.all(), dead.birth, dead.death) {
                // Readers come and go; a checkpoint's pin stays.
                Some(pin) if !set_aside && !pins.is_checkpoint(pin) => return true,
                keeper => self.settle(core, (&pins, keeper), *dead, free, &mut extents),
            }
            if extents.len() >= FREED_AT_ONCE {
                core.space.free(std::mem::take(&mut extents));
            }
            false
        };
        few.retain_mut(&mut survives);
        for mut dead in many.into_iter().flat_map(with_deaths) {
            if survives(&mut dead) {
                few.push(dead);
            }
        }
        let survived = few.len();
        tree.graves.lock().put_back(&mut few);
        few.shrink_to(SET_ASIDE);
        self.buffer = few;
        self.look_at_kept(core, &pins, free, &mut extents);
        self.charge_lists(core, survived);
        core.pool.note_buried(std::mem::take(&mut self.buried));
        core.space.free(extents);
        tree.versions.prune(pins.snapshots(), visible);
        self.pins = pins;
    }

    /// With `more` dead under way.
    fn charge_lists(&mut self, core: &Core, more: usize) {
        let entries = more + self.kept_len() + self.subtrees.len();
        // And the extents they become, for the next checkpoint's free map.
        let bytes = entries * (size_of::<Dead>() + 16);
        let charge = self.charge.get_or_insert_with(|| core.pool.charge());
        charge.set(bytes);
    }

    /// Keeps nodes of an abandoned fork for the cursors that are on it.
    pub(crate) fn keep(&mut self, pin: u64, dead: impl Iterator<Item = Dead>) {
        self.kept.entry(pin).or_default().extend(dead);
    }

    fn look_at_kept(
        &mut self,
        core: &Core,
        pins: &Pins,
        free: &mut Vec<Frame>,
        extents: &mut Vec<ExtentRef>,
    ) {
        let ended: Vec<u64> = self
            .kept
            .keys()
            .filter(|pin| pins.all().binary_search(pin).is_err())
            .copied()
            .collect();
        for pin in ended {
            for dead in self.kept.remove(&pin).unwrap_or_default() {
                self.kept_in_memory -= usize::from(dead.in_memory);
                let keeper = keeper(pins.all(), dead.birth, dead.death);
                self.settle(core, (pins, keeper), dead, free, extents);
            }
        }
    }

    fn settle(
        &mut self,
        core: &Core,
        (pins, keeper): (&Pins, Option<u64>),
        mut dead: Dead,
        free: &mut Vec<Frame>,
        extents: &mut Vec<ExtentRef>,
    ) {
        if let Some(pin) = keeper {
            unseat(core, pins.readers(), &mut dead, free);
            // What a checkpoint keeps it has written, or will.
            dead.in_memory = !pins.is_checkpoint(pin) && dead.is_unwritten(core);
            self.kept_in_memory += usize::from(dead.in_memory);
            self.kept.entry(pin).or_default().push(dead);
        } else if dead.subtree {
            self.subtrees.push(dead);
        } else {
            extents.extend(core.pool.bury(dead.node, free, &mut self.buried));
        }
    }

    /// Puts visible dead nodes back: the next look at what is kept decides.
    fn keep_waiting(&mut self, nodes: Vec<Dead>) {
        for dead in nodes {
            if dead.subtree {
                self.subtrees.push(dead);
            } else {
                // Its birth is the oldest number that could keep it.
                self.kept.entry(dead.birth).or_default().push(dead);
            }
        }
    }

    pub(crate) fn kept_len(&self) -> usize {
        self.kept.values().map(Chunks::len).sum()
    }

    /// Nodes in memory alone that died at or before `seq`, lowest first: old
    /// snapshots keep them, no checkpoint writes them.
    fn unwritten(&self, core: &Core, seq: u64) -> Vec<ChildRef> {
        let frames = &core.pool.frames;
        let mut found: Vec<(u16, ChildRef)> = Vec::new();
        let mut visit = |dead: &Dead, death: u64| {
            let node = dead.node;
            if !dead.subtree
                && death <= seq
                && node.is_handle()
                && frames.holding(node.hint(), node.reference).is_some()
            {
                // SAFETY: dead and not buried, which takes the lock that the
                // caller holds: it is shared and stays in its frame.
                let rank = collect::rank(unsafe { frames.keys(node.hint()) });
                found.push((rank, node));
            }
        };
        for dead in self.kept.values().flat_map(Chunks::iter) {
            visit(dead, dead.death);
        }
        for tree in core.all_trees() {
            let dead = tree.0.graves.lock().copied();
            dead.iter().for_each(|dead| visit(dead, dead.death));
        }
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, node)| node).collect()
    }

    /// Every extent whose node died at or before `seq` and was not freed yet.
    pub(crate) fn dead_extents(&self, core: &Core, seq: u64) -> Vec<ExtentRef> {
        let mut extents = Vec::new();
        let mut visit = |dead: &Dead, death: u64| {
            if death <= seq {
                let node = core.pool.resolved(dead.node);
                if !node.is_handle() {
                    extents.push(extent_of(node.reference));
                }
            }
        };
        for dead in self.kept.values().flat_map(Chunks::iter) {
            visit(dead, dead.death);
        }
        for dead in &self.subtrees {
            visit(dead, dead.death);
        }
        for tree in core.all_trees() {
            let dead = tree.0.graves.lock().copied();
            dead.iter().for_each(|dead| visit(dead, dead.death));
        }
        extents
    }
}

impl Core {
    /// What keeps account of the dead. Where somebody drives, whoever has it may stand at a
    /// call until others had their turn.
    pub(crate) fn lock_reclaim(&self) -> MutexGuard<'_, Reclaim> {
        let Some(driver) = &self.options.driver else {
            return self.reclaim.lock();
        };
        loop {
            match self.reclaim.try_lock() {
                Some(reclaim) => return reclaim,
                None => driver.pass(Duration::from_millis(1)),
            }
        }
    }
}

/// Looks at the dead of all trees. How many readers keep in memory, unwritten.
pub(crate) fn look_at_all(core: &Core) -> usize {
    let mut free = Vec::new();
    let needed = {
        let mut reclaim = core.lock_reclaim();
        let mut waiting = 0;
        for tree in core.all_trees() {
            reclaim.process(core, &tree.0, &mut free);
            waiting += tree.0.graves.lock().unwritten(core);
        }
        waiting + reclaim.kept_in_memory
    };
    core.pool.give_frames(&mut free);
    needed
}

/// Looks at all dead of all trees, expanding subtrees: each is replaced by its
/// nodes wherever it waits. Reads inner nodes that are not in memory, hence for
/// the background thread only.
pub(crate) fn sweep(core: &Core) -> Result<()> {
    let mut free = Vec::new();
    loop {
        let mut subtrees = Vec::new();
        {
            let mut reclaim = core.lock_reclaim();
            let visible = core.visible();
            for tree in core.all_trees() {
                reclaim.process(core, &tree.0, &mut free);
                let mut graves = tree.0.graves.lock();
                let mut rest = Vec::new();
                let many = graves.take(&mut rest);
                rest.extend(many.into_iter().flat_map(with_deaths));
                let expandable = |dead: &mut Dead| dead.subtree && dead.death <= visible;
                subtrees.extend(rest.extract_if(.., expandable));
                graves.put_back(&mut rest);
            }
            subtrees.append(&mut reclaim.subtrees);
            for kept in reclaim.kept.values_mut() {
                subtrees.extend(kept.extract(|dead| dead.subtree));
            }
        }
        core.pool.give_frames(&mut free);
        if subtrees.is_empty() {
            return Ok(());
        }
        let slot = core.pool.readers.pin_also(core.visible())?;
        let expanded: Result<Vec<Vec<Dead>>> = subtrees
            .iter()
            .map(|dead| expand(core, &slot, *dead))
            .collect();
        core.pool.readers.release(&slot);
        let mut reclaim = core.lock_reclaim();
        let kept = match expanded {
            Ok(lists) => lists.into_iter().flatten().collect(),
            Err(error) => {
                reclaim.keep_waiting(subtrees);
                return Err(error);
            }
        };
        reclaim.keep_waiting(kept);
    }
}

/// Writes out what old snapshots alone keep in memory, so that its frames can be
/// evicted. Only what died before the durable checkpoint, hence what every later
/// one counts as free. For the background thread.
pub(crate) fn write_kept(core: &Core) -> Result<()> {
    let reclaim = core.lock_reclaim();
    let nodes = reclaim.unwritten(core, core.checkpoint_pins.durable());
    let rank = |node: &ChildRef| {
        // SAFETY: as in `unwritten`; the lock is still held.
        collect::rank(unsafe { core.pool.frames.keys(node.hint()) })
    };
    for level in nodes.chunk_by(|a, b| rank(a) == rank(b)) {
        let ready: Vec<ChildRef> = level
            .iter()
            .filter(|node| writer::is_ready(core, **node))
            .copied()
            .collect();
        writer::write_nodes(core, &ready, None, writer::After::Keep)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pin_inside_the_life_keeps_a_node() {
        let pins = [3, 7, 12];
        assert_eq!(keeper(&pins, 4, 7), None);
        assert_eq!(keeper(&pins, 4, 8), Some(7));
        assert_eq!(keeper(&pins, 1, 100), Some(12));
        assert_eq!(keeper(&pins, 13, 100), None);
        assert_eq!(keeper(&pins, 1, 3), None);
        assert_eq!(keeper(&[], 0, 100), None);
    }
}
