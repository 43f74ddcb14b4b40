//! Committing: validate, rebase, reserve, publish, log, wait.
//!
//! 1. An optimistic transaction takes the writers' lock shared and the writer
//!    locks of the trees it changed. (A statement and an immediate transaction
//!    hold what they need already; one that holds its trees goes on as a statement.)
//! 2. Each of its forks whose tree moved on is *rebased*: what it wrote, and for
//!    serializable all it read, must be the same in its base and in the head;
//!    then its leaves are grafted onto the head where only it changed them, all
//!    (`tree/graft.rs`) or as many as can be (`tree/transplant.rs`), and the other
//!    operations are replayed onto a fork of the head. A difference is a conflict: the
//!    transaction has rolled back and nothing was published.
//! 3. Log space is reserved. A full disk fails here. (A statement that depends on
//!    nothing but the trees it locked may have a lease instead, and be done, or write
//!    where its entries lie: `txn/lease.rs`, `txn/in_place.rs`.) Before that it waits for
//!    commits to other stores that have read what it changes: `txn/together/elsewhere.rs`.
//! 4. The commit lock covers: comparing that no tree that was only read moved
//!    on since 2, taking the sequence number and the place in the log, and
//!    publishing roots and deaths. No I/O, no frame, no wait.
//! 5. The locks are released, the record is copied to its place, and the group
//!    commit makes it durable. If that fails the outcome is unknown until the
//!    database is opened again, and the store is poisoned.

mod rebase;
#[cfg(test)]
mod tests;
mod validate;

pub(super) use rebase::Replay;
pub(super) use validate::Between;

use super::critical::{Held, SAMPLE};
use super::lease::Leased;
use super::locks::unlock_writers;
use super::recycle::Seen;
use super::{TxnContext, TxnState};
use crate::error::{Error, ErrorKind, Result};
use crate::primitives::LOOK_AT;
use crate::store::log_error;
use crate::tree::Tree;
use fulgurite_wal::{Permit, TwinLog};
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// A tree that was read and not written, and the head it was validated with.
pub(super) struct ReadHead {
    tree: Tree,
    seq: u64,
}

impl TxnContext {
    /// Commits. Durable on return as the store's durability says. The context
    /// is idle afterwards, also after an error; then nothing was committed,
    /// except that after a failed sync the outcome is unknown until reopening.
    ///
    /// # Errors
    /// `Conflict`: it lost; run it again. `Busy`, where another writer was not
    /// done in time, or a checkpoint that makes space in the log: if the context is
    /// not idle then, the transaction is as it was and can be committed later.
    /// `Misuse`, where one of its operations failed midway and was not rolled back.
    /// Whatever reading and writing fail with.
    pub fn commit(&mut self) -> Result<()> {
        self.commit_and(|_| ())
    }

    /// As [`commit`](Self::commit); where it wrote, `published` is called with its number as
    /// soon as the next writers may build on that, before it is acknowledged, if it is not
    /// acknowledged at once.
    pub(super) fn commit_and(&mut self, published: impl FnOnce(u64)) -> Result<()> {
        match self.state {
            TxnState::Idle => Err(Error::misuse("no transaction is under way")),
            TxnState::Read => {
                self.end();
                Ok(())
            }
            _ if !self.wrote => {
                let (base, left) = (self.seq, self.left);
                self.rollback();
                self.core.wait_visible(base)?;
                self.make_left_durable(base, left)
            }
            _ => {
                self.choose_record();
                // Its counter is shared by all who commit, who have no time for it now.
                let core = self.is_short_of_space().then(|| self.core.clone());
                let permit = match core.as_ref().and_then(|core| core.wal()) {
                    Some(wal) => self.lock_with_space(wal).map(Some),
                    None => self
                        .get_ready()
                        .and_then(|()| self.lock_for_commit())
                        .map(|()| None),
                };
                let permit = match permit {
                    Ok(permit) => permit,
                    Err(error) => return self.lose_unless_busy(error),
                };
                let prepared = self.prepare();
                match prepared.and_then(|reads| self.publish_and_wait(reads, permit, published)) {
                    Ok(()) => Ok(()),
                    Err(error) => Err(self.lose(error)),
                }
            }
        }
    }

    fn lose_unless_busy(&mut self, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::Busy => Err(error),
            _ => Err(self.lose(error)),
        }
    }

    /// Rolls back. Who lost against another transaction hears of it when that one
    /// is visible: to run again before would only lose again.
    #[cold]
    pub(super) fn lose(&mut self, error: Error) -> Error {
        if self.state != TxnState::Idle {
            self.rollback();
        }
        if error.kind() != ErrorKind::Conflict {
            return error;
        }
        match self.core.wait_visible(self.core.head()) {
            Ok(()) => error,
            Err(poisoned) => poisoned,
        }
    }

    /// Step 2, and what a transaction writes that is too large for the log.
    pub(super) fn prepare(&mut self) -> Result<Vec<ReadHead>> {
        self.core.check_writable()?;
        self.savepoints.check_whole()?;
        self.settle_spills()?;
        // Nobody goes back to a place any more.
        self.savepoints.undo.clear();
        self.discard_unborn();
        let reads = match self.state {
            TxnState::Optimistic => self.move_to_heads()?,
            _ => Vec::new(),
        };
        if self.attaches && self.core.wal().is_some() {
            // The trees it wrote to are locked, and it stands on their heads.
            self.write_put_off()?;
            self.bulk = true;
            self.redo = self.write_bulk()?;
        }
        Ok(reads)
    }

    /// Trees made and dropped in this transaction were never there. (What an
    /// attach record brought is freed as any dropped tree.)
    pub(super) fn discard_unborn(&mut self) {
        let mut at = 0;
        while at < self.forks.len() {
            let fork = &self.forks[at];
            if fork.created && fork.dropped && !fork.attached {
                let made = std::mem::take(&mut self.forks[at].own);
                let watched = self.forks[at].is_watched();
                self.abandon(at, made, watched);
                self.core.forget_tree(self.forks[at].tree.id());
                self.forks.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Steps 3 to 5, unless there is a permit already.
    pub(super) fn publish_and_wait(
        &mut self,
        mut reads: Vec<ReadHead>,
        permit: Option<Permit<'_>>,
        published: impl FnOnce(u64),
    ) -> Result<()> {
        debug_assert!(!self.spilling.is_under_way(), "its nodes are being written");
        self.core.background.attend_commit()?;
        self.follow_readers_elsewhere();
        if permit.is_none() {
            if let Some(Leased { seq, look }) = self.commit_in_place()? {
                return self.after_leased(seq, look);
            }
            if let Some(seq) = self.commit_in_place_synced()? {
                self.locked.unlock();
                self.unlock_writers();
                self.after_commit(seq, false);
                return Ok(());
            }
        }
        if !self.put_off.is_empty() {
            self.write_put_off()?;
            self.settle_spills()?;
        }
        self.set_apart();
        if permit.is_none()
            && let Some(Leased { seq, look }) = self.commit_leased()?
        {
            return self.after_leased(seq, look);
        }
        // Borrowed field by field from here on: a clone of the core would take its
        // counter's cache line from all who commit beside.
        let core = &*self.core;
        let wal = core.wal();
        let mut permit = match wal {
            Some(_) if permit.is_some() => permit,
            Some(wal) => {
                let permit = wal.reserve_within(self.redo.len(), self.busy.timeout);
                Some(permit.map_err(log_error)?)
            }
            None => None,
        };
        let kind = if self.bulk {
            fulgurite_wal::Kind::Attach
        } else {
            fulgurite_wal::Kind::Commit
        };
        let needed_from = core.needed_from();
        let (seq, placed, look) = loop {
            // A number comes after those of all leases.
            let calm = core.leases.any().then(|| core.calm());
            let mut commit = core.commit.lock();
            if calm.is_none() && core.leases.any() {
                continue;
            }
            let held = Held::begin();
            let since = commit.head.is_multiple_of(SAMPLE).then(Instant::now);
            if reads.iter().any(|read| read.tree.0.head().seq != read.seq) {
                drop((held, commit, calm));
                reads = self.validate(&[])?;
                continue;
            }
            let seq = commit.head + 1;
            if self.bulk && wal.is_some() {
                core.checkpoint_pins.attach(seq);
            }
            let placed = match (wal, permit.take()) {
                (Some(wal), Some(permit)) => Some(wal.place(permit, seq)),
                _ => None,
            };
            self.recycling.keep_apart(core, &mut self.forks);
            let mut look = false;
            for fork in self.forks.iter_mut().filter(|fork| fork.changed) {
                look |= fork.let_replaced_die(seq, LOOK_AT);
                fork.tree.0.versions.publish(fork.version(seq), needed_from);
                if let Some(published) = &fork.published {
                    published.store(seq, Release);
                }
            }
            commit.head = seq;
            core.publish_head(seq);
            if let Some(since) = since {
                core.critical.record(since.elapsed());
            }
            break (seq, placed, look);
        };
        self.locked.unlock();
        unlock_writers(core, self.visitor.context(), &mut self.writers);
        // What others replace during the sync need not stay.
        if let Some(slot) = self.slot.take() {
            core.pool.readers.release(&slot);
        }
        published(seq);
        let logged = match (wal, placed) {
            (Some(wal), Some(placed)) => wal
                .fill(placed, kind, &[&self.redo])
                .and_then(|ticket| match self.is_decided {
                    false => wal.wait(ticket),
                    true => wal.acknowledge_written(ticket),
                })
                .and_then(|()| self.make_durable(wal, seq))
                .map_err(log_error),
            _ => Ok(()),
        };
        drop(permit);
        self.after_commit(seq, look && logged.is_ok());
        logged
    }

    /// Once a commit of this number is acknowledged, or has failed, and its locks are given
    /// back.
    fn after_commit(&mut self, seq: u64, look: bool) {
        let bytes = self.redo.len();
        self.succession.note(seq);
        self.others.note_own(seq, seq);
        self.after_publication(seq, look);
        self.core.check_pressure();
        self.core.pool.pace();
        self.count_commit(bytes);
        if self.relaxes {
            self.relax_log(Duration::ZERO);
        }
        let core = &*self.core;
        core.admission.goes(&mut self.visitor, &core.pool.waits);
    }

    /// After a commit under a lease, which is acknowledged.
    fn after_leased(&mut self, seq: u64, look: bool) -> Result<()> {
        if look {
            // What this lease let die can be freed once it has ended.
            self.core.settle();
        }
        self.after_publication(seq, look);
        self.core.check_pressure();
        self.core.pool.pace();
        self.core.let_checkpoint_go_on(seq);
        Ok(())
    }

    /// Has the number of writers reconsidered now and then.
    #[inline]
    fn count_commit(&mut self, bytes: usize) {
        let core = &*self.core;
        if core.admission.count(&mut self.visitor, bytes) && core.options.driver.is_none() {
            let may_limit = core.wal().is_none_or(TwinLog::acknowledges_quickly);
            let now = core.pool.waits.now();
            core.admission.tick(&mut self.visitor, now, may_limit);
        }
    }

    fn after_publication(&mut self, seq: u64, look: bool) {
        self.committed = seq;
        self.recycle(seq, Seen::IfVisible);
        let trees: Vec<Tree> = if look {
            let changed = self.forks.iter().filter(|fork| fork.changed);
            changed.map(|fork| fork.tree.clone()).collect()
        } else {
            Vec::new()
        };
        for fork in self.forks.iter_mut() {
            fork.own.clear();
        }
        self.end();
        // Our own pin is gone, so what we replaced can be freed here and now.
        if trees.is_empty() {
            return;
        }
        let Some(mut reclaim) = self.core.reclaim.try_lock() else {
            return;
        };
        for tree in &trees {
            reclaim.process(&self.core, &tree.0, &mut self.spare);
        }
        drop(reclaim);
        self.keep_spare(2 * self.core.pool.spare_share());
    }
}
