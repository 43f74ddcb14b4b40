//! Writing a transaction's nodes out before it commits, so that it may be far
//! larger than the cache.
//!
//! When a transaction's forks hold more unwritten nodes than its budget, the
//! older half of the largest goes to free extents (where it holds far too many, what
//! is too much; where that is hardly anything, as in a transaction that writes to
//! thousands of trees, some of the next largest as well), leaves first, nodes with
//! children or large values once those are written. The budget shrinks where unwritten
//! nodes fill half the cache, and again where they fill nearly all of it, more than
//! committers may.
//!
//! Where many of the nodes written are edited again, the changes are *scattered* over
//! more pages than the transaction may hold, as those of an index often are. Each page
//! more that it holds is then a write and a read saved. So it sets two thirds of the
//! cache aside for itself ([`Pool::set_aside`](crate::cache::Pool::set_aside)), or its
//! part of them where there are more of its kind, as far as unwritten nodes leave room.
//! It spills little at a time, and first what is not edited again, as the leaves of a
//! table that grows at its end beside such an index.
//!
//! A helper thread of the transaction encodes, compresses and writes nodes, while the
//! transaction goes on; where somebody drives the store there is no thread, and it is
//! done at once. What must hold:
//!
//! 1. A node that was handed over belongs to no generation: it is read, and
//!    copied before it is edited, as any shared node.
//! 2. What a node refers to is written before it is handed over, so batches may be
//!    written in any order: where the helper has enough to do, the transaction writes
//!    one itself. Nothing that is under way is freed: rewinding, rolling back and
//!    committing wait for the helper first ([`TxnContext::settle_spills`]).
//! 3. The extents are registered as belonging to no checkpoint until the fork is
//!    published, so a crash frees them.
//!    What was copied again is of no use to anybody, unless a savepoint or a cursor may
//!    go back to it: it is given up when there is enough of it, so that changes scattered
//!    over a large tree take space in its size, not in their number.
//! 4. Frames of written nodes are free at once, not kept as cached pages: a load
//!    reuses its own frames, which are warm, and leaves the others' pages in the
//!    cache. (Keeping them while the cache has room cost a third of the rows a
//!    second of a load of 1,000,000.)
//!
//! A failed write is reported by the next operation of the transaction.

use super::TxnContext;
use super::forks::unwritten;
use crate::cache::ChildRef;
use crate::checkpoint::{train, writer};
use crate::error::{Error, ErrorKind, Result};
use crate::node;
use crate::primitives::{BUDGET_BYTES, BUDGET_MIN};
use crate::primitives::{JoinHandle, Mutex, SyncSender, TrySendError, spawn, sync_channel};
use crate::reclaim::Dead;
use crate::store::Core;
use crate::tree::Tree;
use crate::tree::fork::{Fork, SPARE};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// The same in the smallest cache.
const BUDGET_LEAST: usize = 4;
/// What a transaction may hold of the cache where unwritten nodes, whosever they are,
/// fill half of it. With less, short ones would write pages, and read them back, for what
/// a checkpoint has to write.
const SHARE: usize = 16;
/// One in so many spilled nodes edited again: the changes are scattered.
const SCATTERED: usize = 32;
/// Spilled nodes that this is judged by, at least.
const SCATTERED_MIN: usize = 256;
/// Nodes copied again are given up where they are one in so many of those made, and so
/// many at least; or so many, where a savepoint is taken and nobody could use them for
/// moving leaves to a newer head (`tree/transplant.rs`).
const OUTDATED: usize = 4;
const OUTDATED_MIN: usize = 512;
const OUTDATED_MIN_UNMOVED: usize = 64;
/// Bytes of a fork's node in its own list, the space's list of unpublished
/// extents, and at commit in the list of used extents, their runs and the record.
const OWN_ENTRY: usize = 24 + 28 + 40;
/// Bytes of a replaced node in its list, and at commit in the list of freed
/// extents and the record.
const REPLACED_ENTRY: usize = size_of::<Dead>() + 16;
/// Batches that wait for the helper; the next one the transaction writes itself.
const WAITING: usize = 1;
/// Batches that are on their way at most, with those that both are writing.
const UNDER_WAY: usize = WAITING + 2;
/// Nodes of a batch where changes are scattered: a share of the budget, and at most.
const PART_SHARE: usize = 16;
const PART_MAX: usize = 512;
/// Forks of which the leaves that they edited last are one in so many of the nodes to be
/// written at a time: these are written, too.
const MANY_FORKS: usize = 4;
/// Frames that a transaction leaves to others before it sets aside more than a third.
const LEFT: usize = 256;

/// What is handed over at a time.
#[derive(Default)]
struct Batch(Vec<Part>);

impl Batch {
    fn write(&self, core: &Core) -> Result<()> {
        self.0.iter().try_for_each(|part| part.write(core))
    }
}

/// Nodes of one fork.
struct Part {
    nodes: Vec<ChildRef>,
    unpublished: Arc<AtomicU64>,
    /// A cursor may be on the nodes: they stay cached.
    watched: bool,
}

impl Part {
    fn write(&self, core: &Core) -> Result<()> {
        train::prepare(core, &self.nodes)?;
        let after = if self.watched {
            writer::After::Keep
        } else {
            writer::After::Release
        };
        writer::write_nodes(core, &self.nodes, Some(&self.unpublished), after).map(drop)
    }
}

/// What a transaction has of this, and nothing of between two of them.
#[derive(Default)]
pub(super) struct Spilling {
    helper: Option<Spiller>,
    /// What it spills it mostly edits again.
    scattered: bool,
    /// Frames set aside for it.
    set_aside: usize,
}

impl Spilling {
    /// Whether nodes may be on their way to the disk.
    pub(super) fn is_under_way(&self) -> bool {
        self.helper.is_some()
    }
}

/// The helper thread of a transaction that spills.
struct Spiller {
    batches: SyncSender<Batch>,
    thread: JoinHandle<()>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Spiller {
    fn start(core: &Arc<Core>) -> Result<Self> {
        let (batches, received) = sync_channel::<Batch>(WAITING);
        let failure = Arc::new(Mutex::new(None));
        let (core, reported) = (core.clone(), failure.clone());
        let thread = spawn("fulgurite-spill", move || {
            for batch in received {
                if let Err(error) = batch.write(&core) {
                    reported.lock().get_or_insert(error);
                    return;
                }
            }
        })
        .map_err(|error| {
            Error::new(
                ErrorKind::NoMemory,
                format!("the spill thread cannot be started: {error}"),
            )
        })?;
        Ok(Self {
            batches,
            thread,
            failure,
        })
    }

    /// Waits until everything handed over is written.
    fn finish(self) -> Result<()> {
        drop(self.batches);
        let ended = self.thread.join();
        match (self.failure.lock().take(), ended) {
            (Some(error), _) => Err(error),
            (None, Err(_)) => Err(Error::misuse("the spill thread panicked")),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// Whether one in so many of the nodes that were spilled, or of a few, was edited again.
fn is_scattered(spilled: usize, again: usize) -> bool {
    again * SCATTERED > spilled.max(SCATTERED_MIN)
}

impl TxnContext {
    /// Before an edit: spills if the forks hold too much of the cache, and takes frames
    /// ahead.
    #[inline]
    pub(super) fn make_room(&mut self) -> Result<()> {
        let held = self.held();
        if held > self.budget_min() && held > self.budget(held) {
            self.spill()?;
        }
        if self.spare.len() < SPARE {
            self.take_ahead()?;
        }
        Ok(())
    }

    /// Before a commit waits for locks, whose holders may need frames to give them back.
    #[inline]
    pub(super) fn make_room_to_wait(&mut self) -> Result<()> {
        self.keep_spare(self.core.pool.spare_share());
        if self.held() > self.budget_min() && self.core.pool.is_scarce() {
            self.give_way()?;
        }
        Ok(())
    }

    /// Whether the transaction's changes of a tree are scattered over more pages than it may
    /// hold, so that they come back to pages that it has written out already. It is bulk
    /// then: nobody else changes the tree meanwhile.
    pub fn is_scattered(&self, tree: &Tree) -> bool {
        let fork = self.fork_of(tree.id()).map(|at| &self.forks[at]);
        let spills = |fork: &Fork| fork.changed && is_scattered(fork.spilled, fork.respilled);
        let held = self.held();
        self.bulk
            && self.spilling.scattered
            && fork.is_some_and(spills)
            && held > self.budget(held) / 8 * 7
    }

    /// Nodes that the forks hold unwritten.
    #[inline]
    fn held(&self) -> usize {
        self.forks.held()
    }

    /// Takes the frames that most edits need. Where a checkpoint brings none, the cache
    /// is full of what transactions hold: so this one gives all of it away before it
    /// waits for the others, which may wait for it.
    #[cold]
    fn take_ahead(&mut self) -> Result<()> {
        let pool = &self.core.pool;
        let taken = pool.take_ahead(&mut self.spare, SPARE)
            || self.held() == 0
            || pool.take_after_relief(&mut self.spare, SPARE)?;
        if taken { Ok(()) } else { self.give_way() }
    }

    /// Writes out all that the forks hold, the leaves edited last as well, level by level.
    fn give_way(&mut self) -> Result<()> {
        self.settle_spills()?;
        for at in 0..self.forks.len() {
            self.forks[at].memo = None;
            self.forks[at].run = 0;
            loop {
                let nodes = self.choose(at, usize::MAX);
                if nodes.is_empty() {
                    break;
                }
                self.hand_over(at, nodes).write(&self.core)?;
            }
        }
        Ok(())
    }

    /// Nodes that the forks, which hold so many, may hold unwritten.
    #[inline]
    fn budget(&self, held: usize) -> usize {
        let pool = &self.core.pool;
        let least = self.budget_min();
        if self.spilling.scattered {
            let count = pool.usable();
            let most = (count / 3 * 2).min(count.saturating_sub(LEFT));
            let most = most.max(count / 3);
            let fair = most / pool.set_aside_by().max(1);
            // What is on its way to the disk is among the others'.
            let others = pool.unwritten().saturating_sub(held);
            let room = (most + count / 6).saturating_sub(others);
            return fair.min(room).max(least);
        }
        let count = pool.shared();
        let unwritten = pool.unwritten_shared();
        if unwritten > count / 8 * 7 {
            return least;
        }
        if unwritten > count / 2 {
            return (count / SHARE).max(least);
        }
        // Page sizes are powers of two; this is asked at every write.
        let most = BUDGET_BYTES >> pool.frames.page_size().trailing_zeros();
        (count / 4).min(most).max(least)
    }

    /// Nodes that they may hold whatever others do: a way from a root to a leaf at
    /// least, and in a small cache no more, for many may be at work in it.
    #[inline]
    fn budget_min(&self) -> usize {
        (self.core.pool.frames.count() / 64).clamp(BUDGET_LEAST, BUDGET_MIN)
    }

    /// Waits for the helper thread, if there is one.
    pub(super) fn settle_spills(&mut self) -> Result<()> {
        match self.spilling.helper.take() {
            None => Ok(()),
            Some(helper) => helper.finish(),
        }
    }

    /// The transaction ends: what was set aside for it is everybody's.
    #[inline]
    pub(super) fn end_spilling(&mut self) {
        self.set_aside(0);
        self.spilling.scattered = false;
    }

    #[inline]
    fn set_aside(&mut self, frames: usize) {
        let before = std::mem::replace(&mut self.spilling.set_aside, frames);
        if before != frames {
            self.core.pool.set_aside(before, frames);
        }
    }

    /// Counts the lists of the forks against the cache's limit.
    pub(super) fn charge_lists(&mut self) {
        let lists = self
            .forks
            .iter()
            .map(|fork| fork.own.len() * OWN_ENTRY + fork.replaced.len() * REPLACED_ENTRY);
        self.charge.set(lists.sum::<usize>() + 2 * self.redo.len());
        self.core.pool.balance();
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.charge_lists();
        let spilled = self.forks.iter().map(|fork| fork.spilled).sum();
        let again = self.forks.iter().map(|fork| fork.respilled).sum();
        self.spilling.scattered |= is_scattered(spilled, again);
        let scattered = self.spilling.scattered;
        let held = self.held();
        let budget = self.budget(held);
        let mut part = budget / 2;
        if scattered {
            part = (budget / PART_SHARE).clamp(self.budget_min(), PART_MAX);
            self.set_aside(budget + UNDER_WAY * part);
        }
        let aim = part.max(held.saturating_sub(budget));
        let mut order: Vec<usize> = (0..self.forks.len()).collect();
        order.sort_by_key(|at| {
            let fork = &self.forks[*at];
            let goes_first =
                scattered && unwritten(fork) >= part && !is_scattered(fork.spilled, fork.respilled);
            Reverse((goes_first, unwritten(fork)))
        });
        let batch = self.gather(&order, aim, held.saturating_sub(budget))?;
        match batch.0.is_empty() {
            true => Ok(()),
            false => self.send(batch),
        }
    }

    /// Hands over about so many nodes, of the first of the forks that has any that can be
    /// written now; of more forks where that is less than half, or less than has to go.
    fn gather(&mut self, order: &[usize], aim: usize, needed: usize) -> Result<Batch> {
        let has_many = order.len() * MANY_FORKS > aim;
        let (mut batch, mut found) = (Batch::default(), 0);
        for &at in order {
            self.give_up_outdated_of(at, OUTDATED_MIN)?;
            let mut of_this = aim - found;
            if has_many {
                // Each has a leaf that it edited last, and most hold little else.
                self.forks[at].memo = None;
                self.forks[at].run = 0;
                of_this = of_this.min(unwritten(&self.forks[at]));
            }
            let nodes = self.choose(at, of_this);
            if nodes.is_empty() {
                continue;
            }
            found += nodes.len();
            batch.0.push(self.hand_over(at, nodes));
            if found >= (aim / 2).max(needed) || found == aim {
                break;
            }
        }
        Ok(batch)
    }

    /// Has the helper write a batch, or writes it where that has enough to do.
    fn send(&mut self, batch: Batch) -> Result<()> {
        if self.core.options.driver.is_some() {
            return batch.write(&self.core);
        }
        let helper = match self.spilling.helper.take() {
            Some(helper) => helper,
            None => Spiller::start(&self.core)?,
        };
        let sent = helper.batches.try_send(batch);
        self.spilling.helper = Some(helper);
        match sent {
            Ok(()) => {}
            // It has enough to do.
            Err(TrySendError::Full(batch)) => batch.write(&self.core)?,
            // It ended, so it has failed.
            Err(TrySendError::Disconnected(_)) => self.settle_spills()?,
        }
        Ok(())
    }

    /// Gives up what was copied again, before a savepoint keeps it.
    pub(super) fn give_up_outdated(&mut self) -> Result<()> {
        for at in 0..self.forks.len() {
            let moves = !self.bulk && self.forks[at].spilled == 0;
            let least = if moves {
                OUTDATED_MIN
            } else {
                OUTDATED_MIN_UNMOVED
            };
            self.give_up_outdated_of(at, least)?;
        }
        Ok(())
    }

    /// Where so many of a fork's nodes have been copied again that what they take in
    /// memory, on disk and in the lists is worth a look, gives them up.
    fn give_up_outdated_of(&mut self, at: usize, least: usize) -> Result<()> {
        if !self.forks[at].is_outdated(least, OUTDATED) {
            return Ok(());
        }
        self.settle_spills()?;
        let outdated = self.forks[at].give_up_replaced(&self.core.pool);
        self.abandon(at, outdated, false);
        Ok(())
    }

    /// Takes nodes out of the fork's generation: they may be written now.
    fn hand_over(&mut self, at: usize, nodes: Vec<ChildRef>) -> Part {
        let fork = &mut self.forks[at];
        let unpublished = fork
            .published
            .get_or_insert_with(|| Arc::new(AtomicU64::new(u64::MAX)))
            .clone();
        for node in &nodes {
            let meta = self.core.pool.frames.meta(node.hint());
            meta.generation.store(0, Relaxed);
        }
        fork.spilled += nodes.len();
        Part {
            nodes,
            unpublished,
            watched: fork.is_watched(),
        }
    }

    /// Of the fork's unwritten nodes that are ready, so many of the oldest.
    fn choose(&mut self, at: usize, aim: usize) -> Vec<ChildRef> {
        let core = self.core.clone();
        let pool = &core.pool;
        let fork = &mut self.forks[at];
        let memo = fork.memo.map(|memo| memo.reference);
        let mut chosen: Vec<ChildRef> = Vec::with_capacity(aim.min(unwritten(fork)));
        while chosen.len() < aim && fork.spilled_to < fork.own.len() {
            let node = fork.own[fork.spilled_to];
            fork.spilled_to += 1;
            if pool.frames.holding(node.hint(), node.reference).is_none() {
                // It died, and counts no more.
                fork.spilled += 1;
                continue;
            }
            // SAFETY: a private node (frames rule 2), and nothing borrows it.
            let keys = unsafe { pool.frames.keys(node.hint()) };
            let is_bottom = node::is_leaf(keys)
                && (node::kind(keys) == Some(node::Kind::Overflow)
                    || writer::is_ready(&core, node));
            if Some(node.reference) == memo || !is_bottom {
                fork.passed_by.push(node);
            } else {
                chosen.push(node);
            }
        }
        // Nodes passed by come last: what they refer to is on disk by now more
        // often than not.
        if aim == usize::MAX || fork.passed_by.len() > aim / 4 {
            let passed_by = std::mem::take(&mut fork.passed_by);
            for node in passed_by {
                debug_assert!(
                    pool.frames.holding(node.hint(), node.reference).is_some(),
                    "what is freed leaves this list"
                );
                if Some(node.reference) != memo && writer::is_ready(&core, node) {
                    chosen.push(node);
                } else {
                    fork.passed_by.push(node);
                }
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests;
