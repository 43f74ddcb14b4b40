//! A transaction's private version of a tree.
//!
//! It starts as the base's root. Editing copies the path from the root to what
//! is touched, once a node; copies belong to the fork's generation and are
//! edited in place. Beside the root the fork keeps what publication needs: the
//! nodes it made (to free them if it is abandoned) and the nodes it replaced
//! (which die when it is published).
//!
//! 1. Nobody else reaches a node of the fork's own generation. That makes the
//!    in-place edits sound: frames rule 2.
//! 2. Making a mark to go back to (`mark.rs`) ends the generation, and so does the next
//!    edit where a cursor is open, so what either refers to is not edited any more.
//! 3. Births are lower bounds: the base's number. So who pins the base keeps what is
//!    made on top of it too: a cursor over this fork does, for as long as it likes.
//! 4. Handles are taken in blocks; a handle names one node for ever.

use super::versions::Root;
use super::{Tree, walk};
use crate::cache::{ChildRef, Frame, Pool, SlotId, Topmost};
use crate::chunks::Chunks;
use crate::error::Result;
use crate::node::{self, Key, Rests, Unknown};
use crate::reclaim::Dead;
use crate::store::Core;
use crate::tree::undo::Undo;
use crate::tree::walk::{Ahead, Halt, Learnt, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*, fence};

/// Frames taken ahead of an edit; more are taken if the tree is that high.
pub(crate) const SPARE: usize = 5;

/// What fork operations work with.
pub(crate) struct Context<'c> {
    pub(crate) core: &'c Core,
    pub(crate) pool: &'c Pool,
    /// The transaction's slot. Its pin keeps the base alive, or, for a statement, that
    /// it holds the tree's writer lock.
    pub(crate) slot: &'c SlotId,
    /// Frames taken ahead, so that none is taken inside a walk.
    pub(crate) spare: &'c mut Vec<Frame>,
    /// A page-sized buffer.
    pub(crate) scratch: &'c mut Vec<u8>,
    /// Where what is written is noted, as long as it is.
    pub(crate) undo: Option<&'c mut Undo>,
}

impl Context<'_> {
    /// Makes sure that `count` frames can be had without waiting.
    pub(crate) fn ensure_spare(&mut self, count: usize) -> Result<()> {
        if self.spare.len() < count {
            self.pool.take_frames(self.spare, count)?;
        }
        Ok(())
    }
}

/// A private version. See the module's header.
pub(crate) struct Fork {
    pub(crate) tree: Tree,
    /// The version it started from.
    pub(crate) base: Root,
    pub(crate) root: ChildRef,
    pub(crate) count: u64,
    /// What nodes made here have as their birth. All in the base have a lower one.
    pub(crate) base_seq: u64,
    pub(crate) generation: u64,
    /// Nodes made, in order.
    pub(crate) own: Vec<ChildRef>,
    /// Nodes replaced, in order.
    pub(crate) replaced: Chunks<Dead>,
    handles: (u64, u64),
    /// The private leaf edited last.
    pub(crate) memo: Option<ChildRef>,
    /// The leaf read last, where it is private: it may be edited next.
    pub(super) looked_up: Option<ChildRef>,
    /// Consecutive inserts at the end of the memo's leaf.
    pub(crate) run: u32,
    /// The largest integer key, if known.
    pub(crate) max_key: Option<i64>,
    /// Nodes made since the last spill looked: `own[spilled_to..]`.
    pub(crate) spilled_to: usize,
    /// Inner nodes that a spill passed by.
    pub(crate) passed_by: Vec<ChildRef>,
    /// Set to the commit's number at publication: tells the checkpoint whether
    /// it covers the extents this fork spilled to.
    pub(crate) published: Option<Arc<AtomicU64>>,
    /// Clones are held by cursors over this fork.
    pub(crate) cursors: Arc<()>,
    /// A cursor was opened since the last edit: seal before the next one, if it is open then.
    pub(crate) observed: bool,
    /// The tree was made by this transaction.
    pub(crate) created: bool,
    /// Its root came from an attach record: it reaches nodes that it did not make.
    pub(crate) attached: bool,
    pub(crate) dropped: bool,
    /// The fork differs from its base.
    pub(crate) changed: bool,
    /// It was grafted onto its base: the leaves it wrote in were the same there and in the
    /// version that it started from.
    pub(crate) grafted: bool,
    /// Counts edits and rewinds; never goes back.
    pub(crate) edits: u64,
    /// The stamp given to the state after that many edits.
    pub(crate) stamp: (u64, u64),
    /// Nodes of `own` that were written already.
    pub(crate) spilled: usize,
    /// How many nodes were copied again after they had been spilled.
    pub(crate) respilled: usize,
    /// How many of its own nodes were replaced and not given up, and how many of those were
    /// found needed.
    pub(crate) outdated: usize,
    pub(super) needed: usize,
    /// The lengths of the two lists at the last mark that may be gone back to.
    pub(super) marked: (usize, usize),
    /// The same when a cursor was opened last: it sees nothing that is younger.
    pub(super) watched: (usize, usize),
    /// How many nodes were copied to be edited; no number after some of them were
    /// given up.
    pub(super) copied: Option<usize>,
    /// Of `own`, in its order, what splits made, and the leaves that they split, by their
    /// references.
    pub(super) split_off: Vec<u64>,
    pub(super) split: Vec<u64>,
    /// Nodes made that the pool has not been told of.
    uncounted: usize,
}

/// Entries of a list that an idle fork keeps room for.
const KEPT: usize = 4096;

impl Fork {
    /// Hands what it replaced to the tree's graves, when it is published as commit
    /// `seq`. Says whether it is time to look at them: there are `more` than are known
    /// to be needed.
    #[inline]
    pub(crate) fn let_replaced_die(&mut self, seq: u64, more: usize) -> bool {
        if self.replaced.len() == 0 {
            return false;
        }
        let mut graves = self.tree.0.graves.lock();
        graves.take_over(self.tree.id().0, seq, &mut self.replaced);
        graves.are_due(more)
    }

    /// What is published of it as commit `seq`.
    #[inline]
    pub(crate) fn version(&self, seq: u64) -> Root {
        Root {
            seq,
            node: self.root,
            count: self.count,
            dropped: self.dropped,
        }
    }

    pub(crate) fn new(tree: Tree, base: Root, base_seq: u64, pool: &Pool) -> Self {
        let mut fork = Self {
            tree,
            base,
            root: base.node,
            count: base.count,
            base_seq,
            generation: 0,
            own: Vec::new(),
            replaced: Chunks::default(),
            handles: (0, 0),
            memo: None,
            looked_up: None,
            run: 0,
            max_key: None,
            spilled_to: 0,
            passed_by: Vec::new(),
            published: None,
            cursors: Arc::new(()),
            observed: false,
            created: false,
            attached: false,
            dropped: base.dropped,
            changed: false,
            grafted: false,
            edits: 0,
            stamp: (0, 0),
            spilled: 0,
            respilled: 0,
            outdated: 0,
            needed: 0,
            marked: (0, 0),
            watched: (0, 0),
            copied: Some(0),
            split_off: Vec::new(),
            split: Vec::new(),
            uncounted: 0,
        };
        fork.generation = fork.next_handle(pool);
        fork
    }

    /// Starts over from another base, keeping the buffers. What was made before
    /// must have been published or abandoned.
    pub(crate) fn restart(&mut self, tree: &Tree, base: Root, base_seq: u64, pool: &Pool) {
        // A clone writes to a counter that all users of the tree share.
        if !Arc::ptr_eq(&self.tree.0, &tree.0) {
            self.tree = tree.clone();
        }
        self.base = base;
        self.root = base.node;
        self.count = base.count;
        self.base_seq = base_seq;
        self.generation = self.next_handle(pool);
        self.own.clear();
        self.replaced.clear();
        self.memo = None;
        self.looked_up = None;
        self.run = 0;
        self.max_key = None;
        self.spilled_to = 0;
        self.passed_by.clear();
        self.published = None;
        self.created = false;
        self.attached = false;
        self.dropped = base.dropped;
        self.changed = false;
        self.grafted = false;
        self.edits = 0;
        self.stamp = (0, 0);
        self.spilled = 0;
        self.respilled = 0;
        self.outdated = 0;
        self.needed = 0;
        self.marked = (0, 0);
        self.watched = (0, 0);
        self.copied = Some(0);
        self.split_off.clear();
        self.split.clear();
        self.observed = false;
        if Arc::strong_count(&self.cursors) > 1 {
            self.cursors = Arc::new(());
        }
    }

    /// Lets go of what a large transaction's lists took.
    pub(crate) fn trim(&mut self) {
        self.own.clear();
        self.own.shrink_to(KEPT);
        self.replaced.clear();
        self.passed_by.clear();
        self.passed_by.shrink_to(KEPT);
        self.split_off.clear();
        self.split_off.shrink_to(KEPT);
        self.split.clear();
        self.split.shrink_to(KEPT);
    }

    /// Ends the generation: what exists now is not edited in place any more.
    pub(crate) fn seal(&mut self, pool: &Pool) {
        self.generation = self.next_handle(pool);
        self.memo = None;
        self.looked_up = None;
        self.run = 0;
    }

    /// Whether the tree has changed since the fork was made.
    pub(crate) fn has_moved_on(&self) -> bool {
        !self.created && self.tree.0.head().seq != self.base.seq
    }

    /// Whether a cursor over this fork is open.
    pub(crate) fn is_watched(&self) -> bool {
        Arc::strong_count(&self.cursors) > 1
    }

    /// Whether the node is of this generation and still in its frame.
    #[inline]
    pub(crate) fn owns(&self, pool: &Pool, child: ChildRef) -> bool {
        child.is_handle()
            && pool.frames.holding(child.hint(), child.reference).is_some()
            && pool.frames.meta(child.hint()).generation.load(Relaxed) == self.generation
    }

    /// The frame of a leaf seen before, if it is still private and holds the key's range.
    #[inline]
    pub(super) fn at_hand(&self, pool: &Pool, leaf: ChildRef, key: Key<'_>) -> Option<Frame> {
        if !self.owns(pool, leaf) {
            return None;
        }
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let page = unsafe { pool.frames.page(leaf.hint()) };
        node::covers(page, key).then_some(leaf.hint())
    }

    pub(crate) fn owns_frame(&self, pool: &Pool, frame: Frame) -> bool {
        pool.frames.meta(frame).generation.load(Relaxed) == self.generation
    }

    /// Whether a node that this fork made was handed over to be written.
    pub(super) fn is_spilled(&self, pool: &Pool, frame: Frame) -> bool {
        pool.frames.meta(frame).generation.load(Relaxed) == 0
    }

    /// A number that no node and no generation has or had.
    fn next_handle(&mut self, pool: &Pool) -> u64 {
        if self.handles.0 == self.handles.1 {
            self.handles = pool.handle_block();
        }
        self.handles.0 += 1;
        self.handles.0 - 1
    }

    /// Gives a filled spare frame an identity: a new node of this fork.
    pub(crate) fn adopt(&mut self, pool: &Pool, frame: Frame) -> ChildRef {
        let reference = self.next_handle(pool);
        // SAFETY: the frame is being filled by us (rule 1).
        let page = unsafe { pool.frames.page_mut(frame) };
        node::set_birth(page, self.base_seq);
        let meta = pool.frames.meta(frame);
        meta.generation.store(self.generation, Relaxed);
        meta.heat.store(0, Relaxed);
        meta.identity.store(reference, Release);
        // Whoever publishes or abandons it sees to what it made.
        self.changed = true;
        self.uncounted += 1;
        if self.uncounted >= pool.told_at_once() {
            self.count_made(pool);
        }
        let child = ChildRef::new(reference, 0, frame);
        self.own.push(child);
        child
    }

    /// Sets nodes that were `buried` off against those made since the pool was told
    /// last; how many are left.
    pub(crate) fn set_off(&mut self, buried: usize) -> usize {
        let both = self.uncounted.min(buried);
        self.uncounted -= both;
        buried - both
    }

    /// Tells the pool of the nodes made since it was told last.
    pub(crate) fn count_made(&mut self, pool: &Pool) {
        if self.uncounted > 0 {
            pool.note_unwritten(std::mem::take(&mut self.uncounted));
        }
    }

    /// As [`adopt`](Self::adopt), for what a split made.
    pub(super) fn adopt_half(&mut self, pool: &Pool, frame: Frame) -> ChildRef {
        let half = self.adopt(pool, frame);
        self.split_off.push(half.reference);
        half
    }

    /// Goes on without entries; `dead` is what was under the root.
    pub(crate) fn become_empty(&mut self, pool: &Pool, dead: Vec<Dead>) {
        let is_own = |dead: &&Dead| !dead.subtree && dead.birth >= self.base_seq;
        self.outdated += dead.iter().filter(is_own).count();
        self.replaced.extend(dead);
        self.root = ChildRef::NONE;
        self.count = 0;
        self.max_key = None;
        self.copied = None;
        self.seal(pool);
    }

    /// Notes that a node is no longer part of this version.
    pub(crate) fn replace(&mut self, node: ChildRef, birth: u64) {
        self.outdated += usize::from(birth >= self.base_seq);
        self.replaced.push(Dead::node(node, birth));
    }

    /// What it wrote was put back: there are nodes that nothing that is logged asked for.
    pub(crate) fn was_put_back(&mut self) {
        self.copied = None;
    }

    /// Whether the fork made no nodes but copies, each of one node that it replaced,
    /// and holds them all in memory.
    pub(super) fn only_copied(&self) -> bool {
        self.copied == Some(self.own.len())
            && self.copied == Some(self.replaced.len())
            && self.spilled == 0
    }

    /// Before any edit: what cursors look at is not edited in place.
    #[inline]
    pub(crate) fn settle(&mut self, pool: &Pool) {
        self.note_edit();
        self.settle_cursors(pool);
    }

    /// It is edited now.
    #[inline]
    pub(super) fn note_edit(&mut self) {
        self.changed = true;
        self.edits += 1;
    }

    /// Before a way is made private for what may turn out to be no edit.
    #[inline]
    pub(super) fn settle_cursors(&mut self, pool: &Pool) {
        if self.observed {
            self.observed = false;
            if self.is_watched() {
                self.seal(pool);
            } else {
                // What another thread read by a cursor, it read before it closed it.
                fence(Acquire);
            }
        }
    }

    /// The position of `key` in a private leaf, or where it would go.
    #[inline]
    pub(crate) fn find(
        &self,
        cx: &Context<'_>,
        leaf: Frame,
        key: Key<'_>,
    ) -> Result<std::result::Result<usize, usize>> {
        // SAFETY: private to this fork (rule 2), and nothing else borrows it.
        let page = unsafe { cx.pool.frames.page(leaf) };
        // Where keys ascend the next one mostly is.
        if self.run > 0 && node::is_behind(page, key) {
            return Ok(Err(node::count(page)));
        }
        match node::find(page, key, Rests::NONE) {
            Ok(found) => Ok(found),
            Err(unknown) => self.find_among_rests(cx, page, key, unknown),
        }
    }

    #[cold]
    fn find_among_rests(
        &self,
        cx: &Context<'_>,
        page: &[u8],
        key: Key<'_>,
        mut unknown: Unknown,
    ) -> Result<std::result::Result<usize, usize>> {
        let mut learnt = Learnt::default();
        loop {
            let halt = Halt::Rest(unknown);
            learnt.get(cx.pool, cx.slot, self.tree.id().0, Some(key), halt)?;
            match node::find(page, key, &learnt.rests) {
                Ok(found) => return Ok(found),
                Err(next) => unknown = next,
            }
        }
    }

    /// Reads the entry under `key`.
    pub(crate) fn get<R>(
        &mut self,
        pool: &Pool,
        slot: &SlotId,
        key: (Key<'_>, Ahead),
        found: impl FnOnce(Option<(&[u8], bool)>) -> R,
    ) -> Result<R> {
        let mut seen = self.memo.into_iter().chain(self.looked_up);
        if let Some(leaf) = seen.find_map(|leaf| self.at_hand(pool, leaf, key.0)) {
            // SAFETY: private to this fork (rule 2), and nothing else borrows it.
            let page = unsafe { pool.frames.page(leaf) };
            match node::find(page, key.0, Rests::NONE) {
                Ok(Ok(index)) => return Ok(found(Some(node::value_at(page, index)))),
                Ok(Err(_)) => return Ok(found(None)),
                // The rest of a long key decides.
                Err(_) => {}
            }
        }
        let generation = self.generation;
        let looked_up = &mut self.looked_up;
        let visit = |frame| {
            let meta = pool.frames.meta(frame);
            if meta.generation.load(Relaxed) == generation {
                let reference = meta.identity.load(Relaxed);
                *looked_up = Some(ChildRef::new(reference, 0, frame));
            }
        };
        let root = (&mut self.root, self.tree.0.topmost());
        get_visiting(pool, slot, root, key, found, visit)
    }
}

/// Reads the entry under `key` of the version with this root: its stored value,
/// and whether that is an overflow reference.
#[inline]
pub(crate) fn get<R>(
    pool: &Pool,
    slot: &SlotId,
    root: (&mut ChildRef, Topmost),
    key: (Key<'_>, Ahead),
    found: impl FnOnce(Option<(&[u8], bool)>) -> R,
) -> Result<R> {
    get_visiting(pool, slot, root, key, found, |_| {})
}

/// The same; `visit` is told of the leaf that it came to.
#[inline]
fn get_visiting<R>(
    pool: &Pool,
    slot: &SlotId,
    root: (&mut ChildRef, Topmost),
    (key, ahead): (Key<'_>, Ahead),
    found: impl FnOnce(Option<(&[u8], bool)>) -> R,
    mut visit: impl FnMut(Frame),
) -> Result<R> {
    let mut found = Some(found);
    let mut call = |entry: Option<(&[u8], bool)>| found.take().map(|found| found(entry));
    let answer = walk::with_leaf(
        pool,
        slot,
        root,
        (Target::Key(key), ahead),
        |frame, page, rests| {
            visit(frame);
            Ok(match node::find(page, key, rests)? {
                Ok(index) => call(Some(node::value_at(page, index))),
                Err(_) => call(None),
            })
        },
    )?;
    match answer.flatten() {
        Some(answer) => Ok(answer),
        None => call(None).ok_or_else(|| crate::error::Error::misuse("a lookup answered twice")),
    }
}
