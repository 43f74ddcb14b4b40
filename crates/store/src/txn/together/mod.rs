//! Transactions in several stores that commit as one.
//!
//! One of the written stores is the *coordinator*: its commit is everybody's. In two
//! families of the stores themselves (`decisions.rs`) is kept what a crash needs:
//!
//! 1. Every store that was written to or read from has its writers excluded, in the order
//!    of the stores' numbers, and all that was committed to it is visible. Each
//!    transaction is validated and rebased: what all of them have read is so at once.
//!    (Where one store alone is written to, its commit is all that follows; it need not
//!    have been visible itself, and the others' writers come in again when that commit is
//!    published: `elsewhere.rs`.)
//! 2. Space in the logs is reserved. So far any failure undoes everything.
//! 3. *Prepare*: each written store but the coordinator durably commits an entry that
//!    says who coordinates, and the redo of its transaction.
//! 4. *Decide*: the coordinator's transaction, which has an entry for this number, too,
//!    is committed durably. If that fails the others are undone as well; if its outcome is
//!    unknown until the coordinator is opened again, they are poisoned, as it is.
//! 5. *Complete*: the others are published, each with the end of its prepared entry in
//!    the same commit. What fails here poisons that store; opening it completes it, and
//!    until then nobody reads it beside others. These commits are written, and the next
//!    sync makes them durable, at the latest the background's: what a power cut takes of
//!    them is done again from the entry that was prepared.
//! 6. The coordinator forgets its entry in the next such commit with the same others: what
//!    those prepared for that was synced behind the end of the one before.
//!
//! A store that finds a prepared entry when it is opened asks the coordinator's file
//! (`in_doubt.rs`): an entry there means that it is committed, none that it never was.
//! Between 3 and 5 the store's gate is shut, so that nobody begins to read several stores
//! where one of them shows the transaction and another does not yet (`at_once.rs`).

mod at_once;
pub(crate) mod decisions;
mod elsewhere;
pub(crate) mod in_doubt;
#[cfg(test)]
mod tests;

pub(crate) use at_once::Gate;
pub use at_once::read_together;
pub(crate) use elsewhere::Elsewhere;

use super::commit::ReadHead;
use super::redo::{self, Op};
use super::{Txn, TxnContext, TxnState, WritersLock};
use crate::error::{Error, ErrorKind, Result};
use crate::names::NAMES;
use crate::options::Durability;
use crate::primitives::DENSE_LIMIT;
use crate::store::{Core, Store, log_error};
use crate::tree::Tree;
use crate::tree::edit::IfExists;
use decisions::{DECIDED, Number, PREPARED, Prepared};
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_wal::Permit;
use std::sync::Arc;
use std::time::Duration;

/// Commits transactions in stores of this process as one: after a crash, too, either all
/// of them are committed or none, and they are serializable as one. All contexts are idle
/// afterwards. The first that was written to coordinates, or the one that is too large for
/// the log. Such a commit is synced, whatever the durability of its contexts, but where a
/// store was opened with [`Durability::Off`].
///
/// Those that are idle, only read a snapshot or have only kept writers out are just ended.
/// A statement may be among them where one store at most is written to.
///
/// # Errors
/// As [`TxnContext::commit`]; `Busy`, if the contexts are not idle then, has left all of
/// them as they were, and so has `Misuse` where two of them are of one store. `TooBig` where
/// more than one transaction is too large for the log. `Poisoned` where it was decided and
/// could not be completed in all stores: it will be where they are opened again.
pub fn commit_together(txns: &mut [&mut TxnContext]) -> Result<()> {
    if !txns.iter().any(|txn| txn.wrote) {
        let mut all = Ok(());
        for txn in txns.iter_mut().filter(|txn| txn.state != TxnState::Idle) {
            all = all.and(txn.commit());
        }
        return all;
    }
    if txns.iter().filter(|txn| txn.counts()).count() <= 1 {
        return commit_alone(txns);
    }
    check_apart(txns, TxnContext::counts)?;
    let taken = match exclude_all(txns) {
        Ok(taken) => taken,
        Err(error) if error.kind() == ErrorKind::Busy => return Err(error),
        Err(error) => return Err(lose_all(txns, error)),
    };
    debug_assert!(
        taken
            .iter()
            .all(|at| txns[*at].writers == WritersLock::Exclusive)
    );
    match commit_excluded(txns) {
        Ok(()) => {
            txns.iter_mut().for_each(|txn| txn.undo());
            Ok(())
        }
        Err(error) => Err(lose_all(txns, error)),
    }
}

/// Only one of them is written to or depends on what it has read: that one commits as it
/// would without the others, and excludes nobody. Those end with its locks: what none of
/// them is about need not wait for its sync.
fn commit_alone(txns: &mut [&mut TxnContext]) -> Result<()> {
    if let Some(at) = txns.iter().position(|txn| txn.counts()) {
        let (before, rest) = txns.split_at_mut(at);
        if let [txn, after @ ..] = rest {
            let others = before.iter_mut().chain(after);
            let committed = txn.commit_and(|_| others.for_each(|txn| txn.undo()));
            if txn.state != TxnState::Idle {
                return committed;
            }
            if let Err(error) = committed {
                return Err(lose_all(txns, error));
            }
        }
    }
    txns.iter_mut().for_each(|txn| txn.undo());
    Ok(())
}

/// Keeps the other writers out of the stores of transactions that are under way, as
/// [`TxnContext::exclude_writers`] does, in the order of the stores.
///
/// # Errors
/// As there; `Busy` also where one of them keeps writers out of a store already, and others
/// write to a store before that one; `Misuse` where two of them are of one store. None keeps
/// writers out then that did not before.
pub fn exclude_together(txns: &mut [&mut TxnContext]) -> Result<()> {
    check_apart(txns, |_| true)?;
    let all = (0..txns.len()).collect();
    let excluded = exclude_in_order(txns, all, |txn| {
        let was = txn.writers;
        txn.exclude_writers()?;
        Ok(was != txn.writers)
    });
    excluded.map(drop)
}

/// Fails where two of those that concern it are of one store: the second would wait for the
/// first, which is its own caller.
fn check_apart(txns: &[&mut TxnContext], concerns: fn(&TxnContext) -> bool) -> Result<()> {
    let concerned = txns.iter().filter(|txn| concerns(txn));
    let mut stores: Vec<&Core> = concerned.map(|txn| &*txn.core).collect();
    stores.sort_unstable_by_key(|core| core.number);
    match stores.windows(2).find(|two| two[0].number == two[1].number) {
        None => Ok(()),
        Some(two) => Err(Error::misuse(format!(
            "two of the transactions are of one store, {}: do in one what belongs together",
            two[0].pool.path
        ))),
    }
}

/// Step 1, its locks: which of them took one. `Busy` leaves all as they were.
fn exclude_all(txns: &mut [&mut TxnContext]) -> Result<Vec<usize>> {
    let counting = (0..txns.len()).filter(|at| txns[*at].counts());
    let counting = counting.collect();
    exclude_in_order(txns, counting, TxnContext::exclude_to_commit)
}

/// Excludes the writers of the stores of some of them; of which that had to be done.
fn exclude_in_order(
    txns: &mut [&mut TxnContext],
    mut order: Vec<usize>,
    exclude: fn(&mut TxnContext) -> Result<bool>,
) -> Result<Vec<usize>> {
    order.sort_unstable_by_key(|at| txns[*at].core.number);
    let mut taken = Vec::new();
    for at in order {
        match exclude_next(txns, at, exclude) {
            Ok(true) => taken.push(at),
            Ok(false) => {}
            Err(error) => {
                for at in taken {
                    txns[at].readmit();
                }
                return Err(error);
            }
        }
    }
    Ok(taken)
}

/// Nobody waits for a store and holds a lock of one behind it: who has excluded the writers
/// of such a one gets `Busy`, and a large transaction gives back the locks of what it writes
/// to, takes them anew when it comes to that store, and loses if it has moved on.
fn exclude_next(
    txns: &mut [&mut TxnContext],
    at: usize,
    exclude: fn(&mut TxnContext) -> Result<bool>,
) -> Result<bool> {
    let number = txns[at].core.number;
    let behind = |txn: &TxnContext| txn.core.number > number;
    let excludes = |txn: &TxnContext| txn.writers == WritersLock::Exclusive;
    let writes_large = |txn: &TxnContext| txn.bulk && txn.writers == WritersLock::Shared;
    let must_not_wait = txns.iter().any(|txn| behind(txn) && excludes(txn));
    let has_to_let_go = txns.iter().any(|txn| behind(txn) && writes_large(txn));
    if must_not_wait || has_to_let_go {
        let tried = txns[at].within(Duration::ZERO, exclude);
        let is_busy = tried
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::Busy);
        if must_not_wait || !is_busy {
            return tried;
        }
    }
    for txn in txns.iter_mut() {
        if behind(txn) && writes_large(txn) {
            txn.readmit();
        }
    }
    exclude(txns[at])
}

/// Rolls all back. Who lost hears of it when what it lost to is visible.
#[cold]
fn lose_all(txns: &mut [&mut TxnContext], error: Error) -> Error {
    txns.iter_mut().for_each(|txn| txn.undo());
    let mut error = error;
    for txn in txns.iter_mut() {
        error = txn.lose(error);
    }
    error
}

/// What one store has its part in.
struct Part<'c> {
    /// Which of the contexts.
    at: usize,
    reads: Vec<ReadHead>,
    permit: Option<Permit<'c>>,
}

fn commit_excluded(txns: &mut [&mut TxnContext]) -> Result<()> {
    let lasting: Vec<usize> = {
        let lasts = |at: &usize| txns[*at].wrote && txns[*at].core.wal().is_some();
        (0..txns.len()).filter(lasts).collect()
    };
    for (at, txn) in txns.iter_mut().enumerate().filter(|(_, txn)| txn.counts()) {
        txn.core.check_writable()?;
        txn.choose_record();
        // What alone is written to follows, in its log, all that it builds on.
        if lasting != [at] {
            txn.wait_for_base()?;
            let head = txn.core.head();
            txn.core.wait_visible(head)?;
            txn.make_left_durable(head, txn.left)?;
        }
    }
    if let [_, _, ..] = lasting.as_slice() {
        commit_to_several(txns, &lasting)?;
    } else {
        let mut parts = validate_all(txns, &lasting)?;
        if let Some(part) = parts.pop() {
            commit_to_one(txns, part)?;
        }
    }
    // What ends with the process has nobody to lose against.
    for txn in txns
        .iter_mut()
        .filter(|txn| txn.wrote && txn.state != TxnState::Idle)
    {
        txn.commit()?;
    }
    Ok(())
}

/// Where one store alone is written to that lasts, its part is all there is to commit. The
/// stores that are only read are given back when that is published, as it is: who changes
/// what was read there follows it (`elsewhere.rs`).
fn commit_to_one(txns: &mut [&mut TxnContext], part: Part<'_>) -> Result<()> {
    let (before, rest) = txns.split_at_mut(part.at);
    let Some((txn, after)) = rest.split_first_mut() else {
        return Ok(());
    };
    let core = txn.core.clone();
    let others = before.iter_mut().chain(after);
    let read = others.filter(|txn| !txn.wrote && txn.state != TxnState::Idle);
    txn.publish_and_wait(part.reads, part.permit, |seq| {
        read.for_each(|txn| txn.end_before(&core, seq));
    })
}

/// Step 1: validates all, and rebases those that are to last.
fn validate_all<'c>(txns: &mut [&mut TxnContext], lasting: &[usize]) -> Result<Vec<Part<'c>>> {
    let mut parts = Vec::with_capacity(lasting.len());
    for (at, txn) in txns.iter_mut().enumerate() {
        if lasting.contains(&at) {
            let reads = txn.prepare()?;
            parts.push(Part {
                at,
                reads,
                permit: None,
            });
        } else if txn.counts() && txn.state == TxnState::Optimistic {
            txn.validate(&[])?;
        }
    }
    Ok(parts)
}

/// Steps 1 to 6, for those of the contexts that are written to and last.
fn commit_to_several(txns: &mut [&mut TxnContext], lasting: &[usize]) -> Result<()> {
    let coordinator = coordinator_of(txns, lasting)?;
    let number = Number::random(&txns[coordinator].core);
    let cores: Vec<Arc<Core>> = txns.iter().map(|txn| txn.core.clone()).collect();
    let decisions = txns[coordinator].decisions()?;
    let others = lasting.iter().filter(|at| **at != coordinator);
    let others: Vec<[u8; 16]> = others.map(|at| cores[*at].database).collect();
    txns[coordinator].note_decision(&decisions, &number, &others)?;
    // Before anything is validated: nobody loses to a name once it is decided.
    let mut prepared = Vec::with_capacity(lasting.len() - 1);
    for at in lasting.iter().copied().filter(|at| *at != coordinator) {
        prepared.push((at, family(&txns[at].store, PREPARED)?));
    }
    for at in lasting {
        txns[*at].follow_names()?;
    }
    let mut parts = validate_all(txns, lasting)?;
    let mut to_prepare = Vec::with_capacity(prepared.len());
    for (at, tree) in prepared {
        let entry = txns[at].redo_to_prepare(&cores[coordinator], &tree, &number);
        let permit = None;
        to_prepare.push(ToPrepare {
            at,
            tree,
            entry,
            permit,
        });
    }
    for part in &mut parts {
        let to_prepare = to_prepare.iter_mut().find(|it| it.at == part.at);
        part.permit = reserve(txns[part.at], &cores[part.at], (to_prepare, &number))?;
    }
    let gates = lasting.iter().map(|at| cores[*at].gate.shut());
    let _gates: Vec<_> = gates.collect();
    if planted(Mutation::DecideFirst) {
        decide(txns, coordinator, &mut parts)?;
    }
    let decided = to_prepare
        .iter_mut()
        .try_for_each(|it| txns[it.at].prepare_in(it, &number))
        .and_then(|()| decide(txns, coordinator, &mut parts));
    if let Err(error) = decided {
        let unknown = cores[coordinator].check_writable().is_err();
        drop(parts);
        for mut it in to_prepare {
            it.permit = None;
            match unknown {
                true => {
                    cores[it.at].fail(&error);
                    cores[it.at].gate.leave_to(&txns[coordinator].store.handle);
                }
                false => txns[it.at].forget_prepared(&it.tree, &number),
            }
        }
        return Err(error);
    }
    complete(txns, parts, &cores)
}

/// What a store that does not coordinate commits before the decision.
struct ToPrepare<'c> {
    at: usize,
    tree: Tree,
    entry: Vec<u8>,
    permit: Option<Permit<'c>>,
}

/// Step 2, in one store: for its part, and at once for what it prepares, which has the same
/// in it. Together they may be more than the limit of the log, which then waits until it
/// holds nothing else: no checkpoint makes room that the first of them has.
fn reserve<'c>(
    txn: &TxnContext,
    core: &'c Core,
    (to_prepare, number): (Option<&mut ToPrepare<'c>>, &Number),
) -> Result<Option<Permit<'c>>> {
    let Some(wal) = core.wal() else {
        return Ok(None);
    };
    let (bytes, patience) = (txn.redo.len(), txn.busy.timeout);
    // A larger one is written where its pages are.
    let logged = to_prepare.filter(|it| it.entry.len() < DENSE_LIMIT);
    let permit = match logged {
        None => wal.reserve_within(bytes, patience).map_err(log_error)?,
        Some(it) => {
            let mut record = Vec::with_capacity(it.entry.len());
            let (tree, key, value) = (it.tree.id().0, number.key(), &*it.entry);
            redo::encode(&mut record, Op::Put { tree, key, value });
            let permits = wal.reserve_all_within([bytes, record.len()], patience);
            let [permit, prepared] = permits.map_err(log_error)?;
            it.permit = Some(prepared);
            permit
        }
    };
    Ok(Some(permit))
}

/// The one that cannot be prepared, or the first.
fn coordinator_of(txns: &[&mut TxnContext], lasting: &[usize]) -> Result<usize> {
    let mut large = lasting.iter().copied().filter(|at| txns[*at].attaches);
    let first = large.next();
    if let (Some(first), Some(second)) = (first, large.next()) {
        let name = |at: usize| txns[at].core.pool.path.clone();
        return Err(Error::new(
            ErrorKind::TooBig,
            format!(
                "a transaction over several files has too many changes to both {} and {}; \
                 commit smaller parts of them",
                name(first),
                name(second)
            ),
        ));
    }
    Ok(first.or(lasting.first().copied()).unwrap_or_default())
}

/// The family of this name in a store whose writers are excluded.
fn family(store: &Store, name: &str) -> Result<Tree> {
    if let Some(tree) = decisions::find(store, name)? {
        return Ok(tree);
    }
    let mut txn = beside(store)?;
    let tree = decisions::create(&mut txn, name)?;
    txn.commit()?;
    Ok(tree)
}

/// A transaction of who has excluded a store's writers, beside that one.
fn beside(store: &Store) -> Result<Txn> {
    let mut txn = store.txn();
    txn.begin_beside()?;
    Ok(txn)
}

/// Step 4, once.
fn decide(
    txns: &mut [&mut TxnContext],
    coordinator: usize,
    parts: &mut Vec<Part<'_>>,
) -> Result<()> {
    let Some(at) = parts.iter().position(|part| part.at == coordinator) else {
        return Ok(());
    };
    let core = txns[coordinator].core.clone();
    let before = core.visible_to_pin();
    let part = parts.remove(at);
    let decided = match planted(Mutation::DecideUnsynced) {
        false => txns[coordinator].publish_synced(part),
        true => txns[coordinator].publish_decided(part),
    };
    // Where commits are acknowledged once they are written it is shown, though its sync
    // failed, and the others will not show it.
    if decided.is_err() && core.visible_to_pin() > before {
        core.gate.tear();
    }
    decided
}

/// Step 5.
fn complete(txns: &mut [&mut TxnContext], parts: Vec<Part<'_>>, cores: &[Arc<Core>]) -> Result<()> {
    let mut all = Ok(());
    for part in parts {
        let core = &cores[part.at];
        let before = core.visible_to_pin();
        if let Err(error) = txns[part.at].publish_decided(part) {
            core.fail(&error);
            if core.visible_to_pin() == before {
                core.gate.tear();
            }
            all = all.and(Err(Error::caused(
                ErrorKind::Poisoned,
                format!(
                    "the transaction is committed, and {} shows it once it is opened again: {error}",
                    core.pool.path
                ),
                error,
            )));
        }
    }
    all
}

impl TxnContext {
    /// Whether others may have to wait for it to be committed with those of other stores:
    /// where nobody can write, nothing that it has read changes; and who has done no more
    /// than to keep writers out has no place in their order.
    fn counts(&self) -> bool {
        match self.state {
            TxnState::Idle | TxnState::Read => false,
            TxnState::Optimistic => self.wrote || self.depends(),
            TxnState::Immediate => !self.is_unused() || self.depends(),
            TxnState::Statement => true,
        }
    }

    /// Whether its commit would validate anything that it has read.
    fn depends(&self) -> bool {
        let reads = self.reads.as_ref();
        self.relies_on.is_some() || reads.is_some_and(|reads| !reads.lock().is_empty())
    }

    /// Excludes the other writers, for the commit alone; whether that was to be done.
    /// Where it fails nothing has changed.
    fn exclude_to_commit(&mut self) -> Result<bool> {
        if self.state != TxnState::Optimistic {
            return Ok(false);
        }
        self.need_snapshot();
        self.write_put_off()?;
        let was = (self.observes, self.writers);
        let excluded = self.exclude_writers();
        self.observes = was.0;
        excluded.map(|()| was.1 != WritersLock::Exclusive)
    }

    /// Lets them in again. (What a large transaction holds beside is taken anew with them.)
    fn readmit(&mut self) {
        self.locked.unlock();
        self.unlock_writers();
    }

    fn undo(&mut self) {
        if self.state != TxnState::Idle {
            self.rollback();
        }
    }

    /// Begins beside the transaction that has excluded this store's writers, for its
    /// caller: it takes no lock, and has nobody to lose against.
    fn begin_beside(&mut self) -> Result<()> {
        self.writable()?;
        self.pin_head()?;
        self.state = TxnState::Immediate;
        Ok(())
    }

    /// Commits one that began beside another, into the room that is there for it.
    fn commit_beside(&mut self, permit: Option<Permit<'_>>) -> Result<()> {
        self.choose_record();
        let readied = self.get_ready().and_then(|()| self.prepare());
        let published = readied.and_then(|reads| {
            let permit = permit.filter(|permit| permit.payload_len() == self.redo.len());
            self.publish_and_wait(reads, permit, |_| ())
        });
        published.map_err(|error| self.lose(error))
    }

    /// What makes its commits durable, where anything is.
    fn synced(&self) -> Durability {
        match self.store.options().durability {
            Durability::Off => Durability::Off,
            Durability::Full | Durability::Normal => Durability::Full,
        }
    }

    fn publish_synced(&mut self, part: Part<'_>) -> Result<()> {
        let synced = self.synced();
        let kept = std::mem::replace(&mut self.durability, synced);
        let published = self.publish_and_wait(part.reads, part.permit, |_| ());
        self.durability = kept;
        published
    }

    /// Step 5, in one store: unsynced where somebody sees to a sync soon, so that the
    /// coordinator's file need not be there for long.
    fn publish_decided(&mut self, part: Part<'_>) -> Result<()> {
        self.is_decided = self.core.background.attend_unsynced().is_ok();
        let published = self.publish_synced(part);
        self.is_decided = false;
        published
    }

    /// The family of its decisions. One that is too large for the log keeps nothing that it
    /// could do again, so where it has named or dropped families it makes that, too.
    fn decisions(&mut self) -> Result<Tree> {
        let changed = |at: usize| self.forks[at].changed;
        let makes = self.bulk && self.fork_of(NAMES).is_some_and(changed);
        match decisions::find(&self.store, DECIDED)? {
            None if makes => decisions::create(self, DECIDED),
            _ => family(&self.store, DECIDED),
        }
    }

    /// Takes up the names that were given beside this transaction by its own commit, where
    /// it has named or dropped families itself. Nobody else was let in, so a transaction
    /// that has nobody to lose against does not look whether its trees have moved on.
    fn follow_names(&mut self) -> Result<()> {
        let moved_on = |at: &usize| self.forks[*at].changed && self.forks[*at].has_moved_on();
        match self.fork_of(NAMES).filter(moved_on) {
            Some(at) if self.state != TxnState::Optimistic => {
                self.write_put_off()?;
                self.settle_spills()?;
                // Nobody goes back to a place any more.
                self.savepoints.undo.clear();
                self.rebase(at, None)
            }
            _ => Ok(()),
        }
    }

    /// Forks a family at its head, which stays where it is as long as writers are excluded.
    fn fork_at_head(&mut self, tree: &Tree) -> usize {
        let (head, seq) = (tree.0.head(), self.core.head());
        let mut fork = self.new_fork(tree, head);
        fork.restart(tree, head, seq, &self.core.pool);
        self.forks.push(fork)
    }

    /// Writes the coordinator's entry, and forgets those that nobody will ask for.
    fn note_decision(&mut self, tree: &Tree, number: &Number, others: &[[u8; 16]]) -> Result<()> {
        let (at, finished) = match self.fork_of(tree.id()) {
            Some(made) => (made, Vec::new()),
            None => {
                let finished = decisions::finished(&mut beside(&self.store)?, tree, others)?;
                (self.fork_at_head(tree), finished)
            }
        };
        let tree = tree.id().0;
        for number in &finished {
            let key = number.key();
            if self.delete_in(at, key)? {
                self.log(Op::Delete { tree, key });
            }
        }
        let key = number.key();
        let value = &decisions::decision(others.iter());
        self.put_in(at, key, value, IfExists::Replace)?;
        self.log(Op::Put { tree, key, value });
        Ok(())
    }

    /// What is prepared of this transaction, whose redo gets the end of that.
    fn redo_to_prepare(&mut self, coordinator: &Core, tree: &Tree, number: &Number) -> Vec<u8> {
        let entry = Prepared::of(coordinator, &self.redo).encode();
        let (tree, key) = (tree.id().0, number.key());
        redo::encode(&mut self.redo, Op::Delete { tree, key });
        entry
    }

    /// Step 3, in one store.
    fn prepare_in(&mut self, it: &mut ToPrepare<'_>, number: &Number) -> Result<()> {
        let mut side = beside(&self.store)?;
        side.durability = self.synced();
        side.put(&it.tree, number.key(), &it.entry)?;
        side.commit_beside(it.permit.take())?;
        drop(side);
        let at = self.fork_at_head(&it.tree);
        self.delete_in(at, number.key())?;
        self.settle_spills()
    }

    /// Takes back what was prepared and never decided. If that fails, or never comes to it,
    /// who opens the store finds no decision.
    fn forget_prepared(&mut self, tree: &Tree, number: &Number) {
        self.undo();
        let mut side = self.store.txn();
        let forgotten = side
            .begin_statement(&[tree])
            .and_then(|()| side.delete(tree, number.key()))
            .and_then(|_| side.commit());
        if forgotten.is_err() {
            side.undo();
        }
    }
}
