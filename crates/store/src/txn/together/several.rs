//! One commit to several stores that are written to: steps 2 to 6 of the module's.

use super::super::commit::Replay;
use super::super::redo::{self, Op};
use super::super::{Txn, TxnContext, TxnState};
use super::decisions::{self, DECIDED, Number, PREPARED, Prepared};
use super::{Part, validate_all};
use crate::error::{Error, ErrorKind, Result};
use crate::names::NAMES;
use crate::options::Durability;
use crate::primitives::DENSE_LIMIT;
use crate::store::{Core, Store, log_error};
use crate::tree::Tree;
use crate::tree::edit::IfExists;
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_wal::{Permit, TwinLog};
use std::sync::Arc;

/// Steps 1 to 6, for those of the contexts that are written to and last.
pub(super) fn commit_to_several(txns: &mut [&mut TxnContext], lasting: &[usize]) -> Result<()> {
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
        let core = &cores[part.at];
        part.permit = match to_prepare.iter_mut().find(|it| it.at == part.at) {
            None => reserve(txns[part.at], core)?,
            Some(it) if it.is_logged() => reserve_with(txns[part.at], core, (it, &number))?,
            // What is prepared takes its room first.
            Some(_) => None,
        };
    }
    let gates = lasting.iter().map(|at| cores[*at].gate.shut());
    let _gates: Vec<_> = gates.collect();
    if planted(Mutation::DecideFirst) {
        decide(txns, coordinator, &mut parts)?;
    }
    let decided = to_prepare
        .iter_mut()
        .try_for_each(|it| {
            txns[it.at].prepare_in(it, &number)?;
            let part = parts.iter_mut().find(|part| part.at == it.at);
            if let Some(part) = part.filter(|_| !it.is_logged()) {
                part.permit = reserve(txns[it.at], &cores[it.at])?;
            }
            Ok(())
        })
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

impl ToPrepare<'_> {
    /// Whether the log has it. A larger one is written where its pages are: the length of its
    /// record is known only then.
    fn is_logged(&self) -> bool {
        self.entry.len() < DENSE_LIMIT
    }
}

/// Step 2, in one store, for its part.
fn reserve<'c>(txn: &TxnContext, core: &'c Core) -> Result<Option<Permit<'c>>> {
    let reserve = |wal: &'c TwinLog| wal.reserve_within(txn.redo.len(), txn.busy.timeout);
    core.wal().map(reserve).transpose().map_err(log_error)
}

/// The same, and at once for what it prepares, which has as much in it. Together they may be
/// more than the limit of the log, which then waits until it holds nothing else: no
/// checkpoint makes room that the first of them has.
fn reserve_with<'c>(
    txn: &TxnContext,
    core: &'c Core,
    (it, number): (&mut ToPrepare<'c>, &Number),
) -> Result<Option<Permit<'c>>> {
    let Some(wal) = core.wal() else {
        return Ok(None);
    };
    let mut record = Vec::with_capacity(it.entry.len());
    let (tree, key, value) = (it.tree.id().0, number.key(), &*it.entry);
    redo::encode(&mut record, Op::Put { tree, key, value });
    let bytes = [txn.redo.len(), record.len()];
    let permits = wal.reserve_all_within(bytes, txn.busy.timeout);
    let [permit, prepared] = permits.map_err(log_error)?;
    it.permit = Some(prepared);
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
                self.rebase(at, Replay::of(&self.redo, NAMES)?)
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
