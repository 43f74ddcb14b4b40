//! Moving a fork to a newer head without doing its work again.
//!
//! Where the nodes that a fork copied to edit are still those of the head, its
//! copies are as good there. So copies of the head's inner nodes get the fork's
//! own nodes as children, and the fork's copies of older inner nodes are freed:
//! no entry is written again, and no leaf copied. An unchanged leaf also says that
//! all entries written in it are as they were in the base.
//!
//! 1. Only forks that did nothing but copy nodes and edit them are moved: each
//!    node of `own` replaced the one at the same place of `replaced`, and the
//!    tree's shape is the base's. Whoever split, merged or wrote large values has
//!    more of either.
//! 2. Every operation's path is followed; every node of the fork must be met, and
//!    is either grafted, where the head has the node it replaced, or dropped, an
//!    inner node that the head changed too.
//! 3. Where that does not work out, a leaf was changed by both or a node is not in
//!    memory, the fork is as it was, and has to start over (`transplant.rs`).
//!
//! The tree's writer lock keeps the head where it is, and its nodes alive.

use super::fork::{Context, Fork};
use super::versions::Root;
use super::walk::{self, Target};
use crate::cache::{ChildRef, Frame, Pool};
use crate::error::Result;
use crate::node::{self, Key, Rests};

/// More nodes than this are not worth looking for one by one.
const NODES_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unmet,
    Grafted,
    Dropped,
}

/// A graft under way.
struct Graft {
    /// What becomes of the nodes that the fork had.
    fates: Vec<Fate>,
    root: ChildRef,
}

impl Fork {
    /// Moves the fork to `head`, the tree's newest version, of the commit `seq` or
    /// one before. `keys` are those of all its operations. False if that cannot be
    /// done; the fork is as it was then.
    pub(crate) fn graft<'k>(
        &mut self,
        cx: &mut Context<'_>,
        (head, seq): (Root, u64),
        keys: impl Iterator<Item = Key<'k>>,
    ) -> Result<bool> {
        let had = self.own.len();
        let movable = self.only_copied()
            && had <= NODES_MAX
            && !(self.created || self.dropped || head.dropped || self.is_watched())
            && !(self.root.is_none() || head.node.is_none());
        if !movable {
            return Ok(false);
        }
        cx.ensure_spare(had)?;
        let was = std::mem::replace(&mut self.base_seq, seq);
        match self.try_graft(cx, head, keys) {
            Some(done) => {
                self.finish_graft(cx, head, done);
                Ok(true)
            }
            None => {
                self.base_seq = was;
                let mut unwritten = 0;
                for made in self.own.drain(had..) {
                    cx.pool.bury(made, cx.spare, &mut unwritten);
                }
                cx.pool.note_buried(unwritten);
                self.replaced.truncate(had);
                self.copied = Some(had);
                Ok(false)
            }
        }
    }

    /// Step 2. `None` where it does not work out.
    fn try_graft<'k>(
        &mut self,
        cx: &mut Context<'_>,
        head: Root,
        keys: impl Iterator<Item = Key<'k>>,
    ) -> Option<Graft> {
        let pool = cx.pool;
        let _walk = pool.readers.walk(cx.slot);
        let mut from = head.node;
        let frame = pool.enter(&mut from, self.tree.0.topmost()).ok()?;
        let own_root = self.place_of(self.root)?;
        let is_leaf = [frame, self.root.hint()].map(|root| {
            // SAFETY: inside the walk; the other one is private to the fork.
            node::is_leaf(unsafe { pool.frames.keys(root) })
        });
        if is_leaf.contains(&true) {
            return None;
        }
        let mut graft = Graft {
            fates: vec![Fate::Unmet; self.own.len()],
            root: self.copy(cx, from, frame).ok()?,
        };
        graft.fates[own_root] = Fate::Dropped;
        for key in keys {
            self.graft_path(cx, &mut graft, key)?;
        }
        let unmet = graft.fates.contains(&Fate::Unmet);
        (!unmet).then_some(graft)
    }

    /// Grafts what lies on the path of one key. Inside a walk.
    fn graft_path(&mut self, cx: &mut Context<'_>, graft: &mut Graft, key: Key<'_>) -> Option<()> {
        let frames = &cx.pool.frames;
        let had = graft.fates.len();
        // Side by side: the fork's node, and the copy of the head's that takes its
        // place; none below what was grafted.
        let mut ours = self.root.hint();
        let mut theirs = Some(graft.root.hint());
        loop {
            let (_, child) = child_under(cx.pool, ours, key)?;
            let place = self.place_of(child).filter(|place| *place < had)?;
            // SAFETY: private to the fork (rule 2), and only read.
            let is_leaf = node::is_leaf(unsafe { frames.keys(child.hint()) });
            theirs = match theirs {
                None => {
                    graft.fates[place] = Fate::Grafted;
                    None
                }
                Some(frame) => {
                    let (index, other) = child_under(cx.pool, frame, key)?;
                    let fate = graft.fates[place];
                    let replaced = self.replaced.get(place)?.node;
                    if other.reference == child.reference {
                        None
                    } else if fate == Fate::Unmet && same(cx.pool, other, replaced) {
                        frames.set_child(frame, index, child);
                        graft.fates[place] = Fate::Grafted;
                        None
                    } else if is_leaf || fate == Fate::Grafted {
                        return None;
                    } else {
                        graft.fates[place] = Fate::Dropped;
                        Some(self.copied_child(cx, frame, index, had)?)
                    }
                }
            };
            if is_leaf {
                return Some(());
            }
            ours = child.hint();
        }
    }

    /// The frame of a copy's child, itself a copy from now on.
    fn copied_child(
        &mut self,
        cx: &mut Context<'_>,
        frame: Frame,
        index: usize,
        had: usize,
    ) -> Option<Frame> {
        let next = cx.pool.follow(frame, index).ok()?;
        let child = cx.pool.frames.child(frame, index);
        if self.place_of(child).is_some_and(|place| place >= had) {
            return Some(next);
        }
        // SAFETY: inside the caller's walk.
        if node::is_leaf(unsafe { cx.pool.frames.keys(next) }) {
            return None;
        }
        let copy = self.copy(cx, child, next).ok()?;
        cx.pool.frames.set_child(frame, index, copy);
        Some(copy.hint())
    }

    /// Where a node is in the list of those that the fork made.
    fn place_of(&self, node: ChildRef) -> Option<usize> {
        self.own
            .iter()
            .position(|own| own.reference == node.reference)
    }

    fn finish_graft(&mut self, cx: &mut Context<'_>, head: Root, done: Graft) {
        let dropped = |at: usize| done.fates.get(at) == Some(&Fate::Dropped);
        let (mut at, mut unwritten) = (0, 0);
        self.own.retain(|node| {
            let keep = !dropped(at);
            if !keep {
                cx.pool.bury(*node, cx.spare, &mut unwritten);
            }
            at += 1;
            keep
        });
        cx.pool.note_buried(unwritten);
        at = 0;
        self.replaced.retain(|_| {
            at += 1;
            !dropped(at - 1)
        });
        self.count = head
            .count
            .wrapping_add(self.count.wrapping_sub(self.base.count));
        self.root = done.root;
        self.base = head;
        self.grafted = true;
        // None was spilled, and those that a spill looked at may be gone.
        self.spilled_to = 0;
        self.passed_by.clear();
        self.memo = None;
        self.max_key = None;
        self.run = 0;
        self.copied = None;
    }
}

/// Which child of an inner node a key lies under. Inside a walk.
fn child_under(pool: &Pool, frame: Frame, key: Key<'_>) -> Option<(usize, ChildRef)> {
    // SAFETY: inside the caller's walk; private to its fork.
    let keys = unsafe { pool.frames.keys(frame) };
    let index = walk::child_for(keys, Target::Key(key), Rests::NONE).ok()?;
    Some((index, pool.frames.child(frame, index)))
}

/// Whether two references name the same node, one of them perhaps since before it
/// was written.
pub(super) fn same(pool: &Pool, a: ChildRef, b: ChildRef) -> bool {
    a.reference == b.reference || pool.resolved(a).reference == pool.resolved(b).reference
}
