//! Moving a transaction's forks to the heads of their trees, whose writer locks it holds.
//!
//! A fork that is small enough and whose leaves nobody else changed is grafted as a whole
//! (`tree/graft.rs`). Any other starts over from the head: the leaves that nobody else
//! changed are moved (`tree/transplant.rs`), and the operations in the others replayed.
//! What is grafted or moved is the same in base and head by that; the keys of what is
//! replayed are compared before (`validate.rs`).
//!
//! Not so where all that was done to a tree was to make entries: the base has none under
//! those keys, so it is enough that the head has none, which the replay itself finds. That
//! they were all made tells the tree's count: it grew by as many as there are operations,
//! and none adds more than one.

use super::super::redo::{Op, Ops};
use super::super::{TxnContext, no_slot};
use super::ReadHead;
use crate::error::{Error, Result};
use crate::node::Key;
use crate::tree::TreeId;
use crate::tree::edit::{IfExists, Wrote};
use crate::tree::fork::Fork;
use crate::tree::transplant::Moving;
use rustc_hash::FxHashSet;

/// What is to be done again of a fork, from the head of its tree on.
#[derive(Default)]
pub(in crate::txn) struct Replay {
    /// Where in the redo its operations begin, in their order.
    ops: Vec<usize>,
    /// What of it needs no replaying.
    pub(super) moving: Option<Moving>,
    /// Each operation made an entry that was not there.
    pub(super) only_inserts: bool,
}

impl Replay {
    /// What is done to the entries of a tree, of which this redo tells.
    pub(in crate::txn) fn of(redo: &[u8], tree: TreeId) -> Result<Self> {
        let mut replay = Self::default();
        each_op(redo, |at, op| {
            if op.tree() == tree.0 {
                replay.ops.push(at);
            }
            Ok(())
        })?;
        Ok(replay)
    }

    fn ops<'r>(&self, redo: &'r [u8]) -> impl Iterator<Item = Result<(Key<'r>, Op<'r>)>> {
        self.ops.iter().map(|at| {
            let op = Ops::from(redo, *at).next().and_then(|op| op.ok());
            let of_entry = op.and_then(|op| Some((op.key()?, op)));
            of_entry.ok_or_else(unreadable)
        })
    }

    /// The keys of all, up to what is not readable.
    fn keys<'r>(&self, redo: &'r [u8]) -> impl Iterator<Item = Key<'r>> {
        self.ops(redo).map_while(|op| op.ok().map(|(key, _)| key))
    }

    /// The operations that do not move.
    fn to_replay<'r>(&self, redo: &'r [u8]) -> impl Iterator<Item = Result<(Key<'r>, Op<'r>)>> {
        let moves = |at: &usize| {
            self.moving
                .as_ref()
                .is_some_and(|moving| moving.covers(*at))
        };
        let ops = self.ops(redo).enumerate();
        ops.filter(move |(at, _)| !moves(at)).map(|(_, op)| op)
    }

    /// The keys of these.
    pub(super) fn to_make<'r>(&self, redo: &'r [u8]) -> impl Iterator<Item = Result<Key<'r>>> {
        self.to_replay(redo).map(|op| Ok(op?.0))
    }

    /// Those of them that are to be compared before they are written.
    pub(super) fn to_compare<'r>(&self, redo: &'r [u8]) -> impl Iterator<Item = Result<Key<'r>>> {
        let keys = (!self.only_inserts).then(|| self.to_make(redo));
        keys.into_iter().flatten()
    }
}

fn unreadable() -> Error {
    Error::misuse("a redo buffer is not readable")
}

/// Calls `visit` with each operation on an entry, and where in the redo it begins.
fn each_op<'r>(redo: &'r [u8], mut visit: impl FnMut(usize, Op<'r>) -> Result<()>) -> Result<()> {
    let mut ops = Ops::from(redo, 0);
    loop {
        let at = ops.position();
        let Some(op) = ops.next() else {
            return Ok(());
        };
        let op = op.map_err(|_| unreadable())?;
        if op.key().is_some() {
            visit(at, op)?;
        }
    }
}

impl TxnContext {
    /// Validates all that it depends on, and rebases it onto the heads of its trees.
    pub(super) fn move_to_heads(&mut self) -> Result<Vec<ReadHead>> {
        if self.bulk {
            return self.validate(&[]);
        }
        let moved_on = |fork: &Fork| fork.changed && fork.has_moved_on();
        for at in 0..self.forks.len() {
            if moved_on(&self.forks[at]) {
                self.graft(at)?;
            }
        }
        if !self.forks.iter().any(moved_on) {
            return self.validate(&[]);
        }
        let replays = self.replays(moved_on)?;
        let reads = self.validate(&replays)?;
        for (at, replay) in replays.into_iter().enumerate() {
            if let Some(replay) = replay {
                self.rebase(at, replay)?;
            }
        }
        Ok(reads)
    }

    /// Of each fork that is to start over, what is to be done again.
    pub(super) fn replays(&self, starts_over: fn(&Fork) -> bool) -> Result<Vec<Option<Replay>>> {
        let replay = |fork: &Fork| starts_over(fork).then(Replay::default);
        let mut replays: Vec<Option<Replay>> = self.forks.iter().map(replay).collect();
        each_op(&self.redo, |at, op| {
            let fork = self.fork_of(TreeId(op.tree()));
            if let Some(Some(replay)) = fork.map(|fork| &mut replays[fork]) {
                replay.ops.push(at);
            }
            Ok(())
        })?;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        for (fork, replay) in self.forks.iter().zip(&mut replays) {
            let Some(replay) = replay else { continue };
            let made = fork.count.wrapping_sub(fork.base.count);
            replay.only_inserts = made == replay.ops.len() as u64;
            // (One that the tree's being dropped concerns is found by validating.)
            let keys = replay.keys(&self.redo);
            replay.moving = fork.sort_out((&self.core.pool, slot), fork.tree.0.head(), keys);
        }
        Ok(replays)
    }

    /// Moves a fork to the head of its tree, whose writer lock is held, where nobody
    /// else changed the leaves it changed. It counts as validated then.
    pub(super) fn graft(&mut self, at: usize) -> Result<()> {
        let redo = std::mem::take(&mut self.redo);
        let head = (self.forks[at].tree.0.head(), self.core.head());
        let tree = self.forks[at].tree.id();
        let keys = Self::keys_of(&redo, tree);
        let grafted = self.edit_in_place(at, |fork, cx| fork.graft(cx, head, keys));
        self.redo = redo;
        grafted.map(|_| ())
    }

    /// The keys of the operations on the entries of a tree.
    pub(super) fn written_keys(redo: &[u8], tree: TreeId) -> impl Iterator<Item = Result<Key<'_>>> {
        Ops::new(redo).filter_map(move |op| match op {
            Ok(op) => op.key().filter(|_| op.tree() == tree.0).map(Ok),
            Err(_) => Some(Err(unreadable())),
        })
    }

    /// The same, up to what is not readable.
    pub(super) fn keys_of(redo: &[u8], tree: TreeId) -> impl Iterator<Item = Key<'_>> {
        Self::written_keys(redo, tree).map_while(Result::ok)
    }

    /// Starts a fork over from the head of its tree, whose writer lock is held and keeps
    /// that head where it is: moves the leaves that can be moved, and replays the other
    /// operations.
    ///
    /// # Errors
    /// `Conflict` where an entry is there that was only to be made; what writing fails with.
    pub(in crate::txn) fn rebase(&mut self, at: usize, mut replay: Replay) -> Result<()> {
        let core = self.core.clone();
        let (slot, seq) = core.pool.readers.pin(|| core.head_to_pin())?;
        let tree = self.forks[at].tree.clone();
        // To replay another one's may have spilled what was to move.
        if self.forks[at].spilled > 0 {
            replay.moving = None;
        }
        let mut made = std::mem::take(&mut self.forks[at].own);
        let mut kept = Vec::new();
        if let Some(moving) = &replay.moving {
            let leaves = moving.leaves().iter().map(|moving| moving.leaf.reference);
            let leaves: FxHashSet<u64> = leaves.collect();
            kept.extend(made.extract_if(.., |node| leaves.contains(&node.reference)));
        }
        let fork = &self.forks[at];
        let more = fork.count.wrapping_sub(fork.base.count);
        let watched = fork.is_watched();
        self.abandon(at, made, watched);
        let head = tree.0.head();
        self.forks[at].restart(&tree, head, seq, &core.pool);
        self.forks[at].own = kept;
        let snapshot = self.slot.replace(slot);
        let redo = std::mem::take(&mut self.redo);
        let replayed = self.replay_onto(at, &redo, &replay);
        // Of what was compared, both versions held the same.
        let count = head.count.wrapping_add(more);
        let moves = replay.moving.is_some();
        debug_assert!(replayed.is_err() || moves || self.forks[at].count == count);
        self.forks[at].count = count;
        // What was made of it is written before it is published.
        let settled = self.settle_spills();
        self.redo = redo;
        if let Some(slot) = std::mem::replace(&mut self.slot, snapshot) {
            core.pool.readers.release(&slot);
        }
        replayed.and(settled)
    }

    fn replay_onto(&mut self, at: usize, redo: &[u8], replay: &Replay) -> Result<()> {
        if let Some(moving) = &replay.moving {
            self.forks[at].settle(&self.core.pool);
            let mut leaves = moving.leaves().iter().peekable();
            for (op, key) in replay.keys(redo).enumerate() {
                if let Some(leaf) = leaves.next_if(|leaf| leaf.op == op) {
                    self.edit_in_place(at, |fork, cx| fork.transplant(cx, key, leaf))?;
                }
            }
        }
        let if_exists = match replay.only_inserts {
            true => IfExists::Leave,
            false => IfExists::Replace,
        };
        for op in replay.to_replay(redo) {
            let (key, op) = op?;
            match op {
                Op::Put { value, .. } => {
                    if self.put_in(at, key, value, if_exists)? == Wrote::Exists {
                        return Err(self.conflict(&self.forks[at].tree, Some(key)));
                    }
                }
                Op::Delete { .. } => {
                    self.delete_in(at, key)?;
                }
                Op::PutPart { from, bytes, .. } => {
                    self.put_part_in(at, key, from as usize, bytes)?;
                }
                Op::PutStart { until, start, .. } => {
                    self.put_start_in(at, key, until as usize, start)?;
                }
                // Who cleared a tree that has moved on is refused by validating.
                Op::Create { .. } | Op::Drop { .. } | Op::Clear { .. } => {}
            }
        }
        Ok(())
    }
}
