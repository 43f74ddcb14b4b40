//! The locks of a transaction, and the ways to begin that take some.
//!
//! In the only order they are taken: the writers' lock (shared, or exclusive),
//! the writer locks of trees by ascending number, each perhaps after its seat, the
//! commit lock. A wait for one of the first two is bounded (`busy.rs`) and
//! fails with [`ErrorKind::Busy`]; whoever fails lets go of all it holds, or stays
//! as it was where it says so. Nobody waits for a lock of an earlier kind while it
//! holds one of a later kind, so no circle of waiting can form. (Explicit transactions
//! that hold their trees take locks by trying only, and who waits for one of these
//! takes it away: `holds.rs`.)

use super::hold::Hold;
use super::{TxnContext, TxnState, WritersLock};
use crate::error::{Conflict, Error, ErrorKind, Result};
use crate::store::{Core, log_error};
use crate::tree::fork::Fork;
use crate::tree::{Tree, TreeId};
use fulgurite_wal::{Permit, TwinLog};
use std::sync::Arc;
use std::time::Duration;

/// What others may write to the log while an explicit transaction commits, at a guess: one
/// part of so many of the log.
const SPACE_OF_OTHERS: u64 = 32;

/// The trees whose writer lock a context holds, by ascending number.
#[derive(Default)]
pub(super) struct Locked {
    trees: Vec<Tree>,
    /// Those it held last, which are mostly the next ones: a clone of a tree would
    /// write to a counter that all its users share.
    last: Vec<Tree>,
}

impl Locked {
    pub(super) fn holds(&self, tree: TreeId) -> bool {
        self.trees.binary_search_by_key(&tree, Tree::id).is_ok()
    }

    /// Which they are.
    pub(super) fn ids(&self) -> impl Iterator<Item = TreeId> {
        self.trees.iter().map(Tree::id)
    }

    /// The newest number of a commit to one of them.
    pub(super) fn newest_head(&self) -> u64 {
        let heads = self.trees.iter().map(|tree| tree.0.head().seq);
        heads.max().unwrap_or(0)
    }

    /// Names the trees that are locked next; none may be locked.
    pub(super) fn name<'t>(&mut self, trees: impl Iterator<Item = &'t Tree> + Clone) {
        debug_assert!(self.trees.is_empty(), "some are locked");
        let same = |(a, b): (&Tree, &Tree)| Arc::ptr_eq(&a.0, &b.0);
        if trees.clone().count() == self.last.len() && trees.clone().zip(&self.last).all(same) {
            std::mem::swap(&mut self.trees, &mut self.last);
            return;
        }
        self.trees.extend(trees.cloned());
        self.trees.sort_unstable_by_key(Tree::id);
        self.trees.dedup_by_key(|tree| tree.id());
    }

    /// One more is locked. Those it holds are named again in this order.
    fn add(&mut self, tree: Tree) {
        let at = self.trees.partition_point(|held| held.id() < tree.id());
        self.trees.insert(at, tree);
    }

    /// Gives one back.
    pub(super) fn unlock_one(&mut self, tree: TreeId) {
        if let Ok(at) = self.trees.binary_search_by_key(&tree, Tree::id) {
            // SAFETY: this context took the locks of these trees.
            unsafe { self.trees.remove(at).0.writer.unlock() };
        }
    }

    /// Gives them back.
    pub(super) fn unlock(&mut self) {
        if self.trees.is_empty() {
            return;
        }
        for tree in &self.trees {
            // SAFETY: this context took the locks of these trees.
            unsafe { tree.0.writer.unlock() };
        }
        std::mem::swap(&mut self.trees, &mut self.last);
        self.trees.clear();
    }
}

/// Gives the writers' lock back that a context holds.
pub(super) fn unlock_writers(core: &Core, context: u64, held: &mut WritersLock) {
    match std::mem::replace(held, WritersLock::None) {
        WritersLock::None => {}
        // SAFETY: taken by this context, as `held` said.
        WritersLock::Shared => unsafe { core.writers.unlock_shared(context) },
        // SAFETY: as above.
        WritersLock::Exclusive => unsafe { core.writers.unlock_exclusive() },
    }
}

impl Core {
    /// Whether a commit waits for a sync that takes its time.
    fn waits_for_syncs(&self) -> bool {
        self.wal().is_some_and(|wal| !wal.acknowledges_quickly())
    }
}

impl TxnContext {
    pub(super) fn busy(&self, why: &str) -> Error {
        Error::new(ErrorKind::Busy, self.locked_out(why))
    }

    fn locked_out(&self, why: &str) -> String {
        format!("database is locked: {why}, {}", self.busy.ended())
    }

    /// Begins an explicit transaction that no other can make fail: waits for
    /// the writers to finish and keeps others out until it ends.
    pub fn begin_immediate(&mut self) -> Result<()> {
        self.writable()?;
        if self.wrote_before {
            self.enter();
        }
        self.lock_exclusive()?;
        let begun = self
            .core
            .wait_visible(self.core.head())
            .and_then(|()| self.pin_head());
        if let Err(error) = begun {
            self.end();
            return Err(error);
        }
        self.state = TxnState::Immediate;
        Ok(())
    }

    /// Begins an autocommitted statement that writes, or decides by reading,
    /// these trees.
    pub fn begin_statement(&mut self, trees: &[&Tree]) -> Result<()> {
        self.writable()?;
        trees.iter().try_for_each(|tree| self.check_own(tree))?;
        // Who has a lease is in nobody's way.
        if !self.leasing.has_lease() {
            self.enter();
        }
        self.lock_shared()?;
        self.locked.name(trees.iter().copied());
        let locked = match self.begins_after_others {
            true => self.lock_trees(),
            false => self.enter_trees(),
        };
        let begun = locked.and_then(|()| self.pin_nothing());
        if let Err(error) = begun {
            self.end();
            return Err(error);
        }
        self.state = TxnState::Statement;
        Ok(())
    }

    /// Takes the writer locks of `self.locked`, which is in order, for a statement;
    /// on failure it names those that were taken.
    fn enter_trees(&mut self) -> Result<()> {
        let (context, waits) = (self.visitor.context(), &self.core.pool.waits);
        let first_missed = self.locked.trees.iter().position(|tree| {
            let lock = &tree.0.writer;
            let within = |time| match self.core.waits_for_syncs() {
                // Who does that does not come back at once.
                true => lock.try_lock_awake_for(time),
                false => lock.enter_within(context, time, || waits.now()),
            };
            !lock.try_enter(context) && {
                let _waits = lock.announce(|| self.core.recall(Some(tree.id())));
                !self.busy.take(waits, || lock.try_enter(context), within)
            }
        });
        first_missed.map_or(Ok(()), |at| Err(self.missed(at)))
    }

    /// The same for what does not come back for them soon.
    pub(super) fn lock_trees(&mut self) -> Result<()> {
        let waits = &self.core.pool.waits;
        let first_missed = self.locked.trees.iter().position(|tree| {
            let lock = &tree.0.writer;
            let within = |time| match self.core.waits_for_syncs() || lock.is_awaited_by_few() {
                true => lock.try_lock_awake_for(time),
                false => lock.try_lock_for(time),
            };
            !lock.try_lock() && {
                let _waits = lock.announce(|| self.core.recall(Some(tree.id())));
                !self.busy.take(waits, || lock.try_lock(), within)
            }
        });
        first_missed.map_or(Ok(()), |at| Err(self.missed(at)))
    }

    /// Of the trees to be locked, those from `at` on are not.
    #[cold]
    fn missed(&mut self, at: usize) -> Error {
        let over = Conflict::over(&self.locked.trees[at], None);
        self.locked.trees.truncate(at);
        let message = self.locked_out(&format!("{over} is being written"));
        Error::busy_with(over, message)
    }

    pub(super) fn unlock_writers(&mut self) {
        unlock_writers(&self.core, self.visitor.context(), &mut self.writers);
    }

    /// Waits until no other writer is at work and keeps them out until this
    /// transaction ends, as if it had begun IMMEDIATE, except that its snapshot
    /// stays, so that its commit may lose. For what no overlapping writer can
    /// take into account, such as a change of the schema. What is read from here
    /// on counts at commit, under `snapshot` too.
    ///
    /// # Errors
    /// `Busy`, and nothing has changed; `Conflict` where the transaction cannot
    /// commit any more.
    pub fn exclude_writers(&mut self) -> Result<()> {
        match self.state {
            TxnState::Immediate => return Ok(()),
            TxnState::Optimistic => {}
            _ => return Err(Error::misuse("no explicit transaction is under way")),
        }
        self.need_snapshot();
        self.observes = true;
        if self.writers == WritersLock::Exclusive {
            return Ok(());
        }
        // What a bulk transaction holds must not be held while it waits.
        self.locked.unlock();
        self.unlock_writers();
        self.lock_exclusive()?;
        self.check_bulk_base()
    }

    /// Sees to it that a bulk transaction holds the writer locks of all trees it
    /// changed, and of `also`. Where it has to wait it lets go of those it has
    /// and takes all in order; none may have moved on by then, since it keeps no
    /// redo to rebase.
    pub(super) fn hold_bulk_locks(&mut self, also: Option<&Tree>) -> Result<()> {
        if self.writers == WritersLock::None {
            self.lock_shared()?;
        }
        let changed = self.forks.iter().filter(|fork| fork.changed);
        let changed = changed.map(|fork| fork.tree.clone());
        let mut needed: Vec<Tree> = changed.chain(also.cloned()).collect();
        needed.retain(|tree| !self.locked.holds(tree.id()));
        if let [tree] = needed.as_slice()
            && tree.0.writer.try_lock()
        {
            self.locked.add(tree.clone());
        } else if !needed.is_empty() {
            needed.extend(self.locked.trees.iter().cloned());
            self.locked.unlock();
            self.locked.name(needed.iter());
            self.lock_trees()?;
        }
        self.check_bulk_base()
    }

    /// Before an explicit transaction takes the locks of its commit. Where that fails it
    /// has lost.
    #[inline]
    pub(super) fn get_ready(&mut self) -> Result<()> {
        if self.state == TxnState::Optimistic {
            match self.hold {
                Hold::None => self.note_touched(),
                Hold::Open | Hold::Held => self.turn_to_statement(),
            }
        }
        if self.state == TxnState::Optimistic {
            let ready = self.write_put_off().and_then(|()| self.make_room_to_wait());
            return ready.map_err(|error| self.lose(error));
        }
        Ok(())
    }

    /// Whether others could take the space in the log that an explicit transaction needs
    /// before it comes to its record. (What a bulk transaction will log is not known yet.)
    #[inline]
    pub(super) fn is_short_of_space(&self) -> bool {
        let Some(wal) = self.core.wal() else {
            return false;
        };
        let others = (self.core.options.log_limit() / SPACE_OF_OTHERS) as usize;
        self.state != TxnState::Statement
            && !self.attaches
            && wal.is_at_limit(self.redo.len().saturating_add(others))
    }

    /// The locks of an explicit transaction's commit together with space in the log. While
    /// it waits for one of them it has not got the other: who has the locks may wait for
    /// the space. Where it gets them not in time it is as it was, and can be committed
    /// later.
    #[cold]
    pub(super) fn lock_with_space<'w>(&mut self, wal: &'w TwinLog) -> Result<Permit<'w>> {
        let waits = &self.core.pool.waits;
        let until = waits.now().saturating_add(self.busy.timeout);
        let bytes = self.redo.len();
        let reserve = |patience| wal.reserve_within(bytes, patience).map_err(log_error);
        let permit = reserve(self.busy.timeout)?;
        self.get_ready()?;
        if self.state != TxnState::Optimistic {
            // It has its locks already.
            return Ok(permit);
        }
        drop(permit);
        loop {
            self.lock_for_commit()?;
            let error = match reserve(Duration::ZERO) {
                Ok(permit) => return Ok(permit),
                Err(error) => error,
            };
            self.unlock_for_commit();
            let left = until.saturating_sub(self.core.pool.waits.now());
            if error.kind() != ErrorKind::Busy || left.is_zero() {
                return Err(error);
            }
            drop(reserve(left)?);
        }
    }

    /// Takes what an optimistic transaction needs to commit; `Busy` leaves it as
    /// it was.
    pub(super) fn lock_for_commit(&mut self) -> Result<()> {
        if self.state != TxnState::Optimistic {
            return Ok(());
        }
        let locked = self.lock_changed();
        if locked.is_err() {
            self.unlock_for_commit();
        }
        // What the trees hold now counts as the head from here on.
        self.core.settle();
        locked
    }

    /// Gives back what [`lock_for_commit`](Self::lock_for_commit) took.
    pub(super) fn unlock_for_commit(&mut self) {
        self.locked.unlock();
        if self.writers != WritersLock::Exclusive {
            self.unlock_writers();
        }
    }

    fn lock_changed(&mut self) -> Result<()> {
        if self.bulk {
            return self.hold_bulk_locks(None);
        }
        if self.writers == WritersLock::None {
            self.lock_shared()?;
        }
        // Those that it makes as well: a statement that has named one, and found it not to be
        // there, comes before.
        let changed = self.forks.iter().filter(|fork| fork.changed);
        self.locked.name(changed.map(|fork| &fork.tree));
        self.lock_trees()
    }

    /// Locks a tree that a statement has made, as those that it named. No other tree has a
    /// higher number, so the order of locks stays.
    ///
    /// # Errors
    /// `Busy`, where another one has found it by its number and locked it.
    pub(super) fn lock_made(&mut self, tree: &Tree) -> Result<()> {
        let waits = &self.core.pool.waits;
        let lock = &tree.0.writer;
        if !lock.try_lock() {
            let _waits = lock.announce(|| self.core.recall(Some(tree.id())));
            let within = |time| lock.try_lock_for(time);
            if !self.busy.take(waits, || lock.try_lock(), within) {
                let over = Conflict::over(tree, None);
                let message = self.locked_out(&format!("{over} is being written"));
                return Err(Error::busy_with(over, message));
            }
        }
        self.locked.add(tree.clone());
        Ok(())
    }

    /// Fails if a bulk transaction has lost.
    pub(super) fn check_bulk_base(&self) -> Result<()> {
        let lost = |fork: &&Fork| self.bulk && fork.changed && fork.has_moved_on();
        match self.forks.iter().find(lost) {
            Some(fork) => Err(self.conflict(&fork.tree, None)),
            None => Ok(()),
        }
    }

    /// Takes the writers' lock alone.
    pub(super) fn lock_exclusive(&mut self) -> Result<()> {
        let lock = &self.core.writers;
        let recall = || self.core.recall(None);
        let now = || lock.try_lock_exclusive_for(Duration::ZERO, recall);
        let within = |time| lock.try_lock_exclusive_for(time, recall);
        let waits = &self.core.pool.waits;
        if !self.busy.take(waits, now, within) {
            return Err(self.busy("another writer is at work"));
        }
        self.writers = WritersLock::Exclusive;
        self.core.settle();
        Ok(())
    }

    /// Takes the writers' lock shared.
    pub(super) fn lock_shared(&mut self) -> Result<()> {
        let lock = &self.core.writers;
        let context = self.visitor.context();
        let within = |time| lock.try_lock_shared_for(context, time);
        let waits = &self.core.pool.waits;
        if !lock.try_lock_shared(context)
            && !self
                .busy
                .take(waits, || lock.try_lock_shared(context), within)
        {
            return Err(self.busy(
                "a transaction that was begun IMMEDIATE, or that changes the schema, is at work",
            ));
        }
        self.writers = WritersLock::Shared;
        Ok(())
    }

    /// Waits until all that this transaction, or the last one of this context,
    /// saw is acknowledged. What is told about the data that a statement met, its
    /// errors too, must not be told before.
    pub fn wait_until_visible(&self) -> Result<()> {
        self.core.wait_visible(self.seq)
    }

    /// Whether it would not wait.
    pub fn is_acknowledged(&self) -> bool {
        self.core.is_acknowledged(self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyKind, Options, Store};

    /// A bulk transaction took a tree's lock past one with a higher number, which it
    /// held; the next transaction that changed the two in that order waited for their
    /// locks in it, too, and another one in the other.
    #[test]
    fn the_order_of_locks_does_not_depend_on_who_took_them_before() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let made = |name| store.create_family(name, KeyKind::Int).expect("a family");
        let (low, high) = (made("low"), made("high"));
        let mut locked = Locked::default();
        locked.name([&high].into_iter());
        assert!(high.0.writer.try_lock() && low.0.writer.try_lock());
        locked.add(low.clone());
        locked.unlock();
        locked.name([&high, &low].into_iter());
        assert_eq!(
            locked.trees.iter().map(Tree::id).collect::<Vec<_>>(),
            [low.id(), high.id()]
        );
    }
}
