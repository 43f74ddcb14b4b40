//! Transactions in several stores that commit as one.
//!
//! One of the written stores is the *coordinator*: its commit is everybody's. In two
//! families of the stores themselves (`decisions.rs`) is kept what a crash needs (steps 2
//! to 6: `several.rs`):
//!
//! 1. Every store that was written to or read from has its writers excluded, in the order
//!    of the stores' numbers (`excluded.rs`), and all that was committed to it is visible.
//!    Each transaction is validated and rebased: what all of them have read is so at once.
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
mod excluded;
pub(crate) mod in_doubt;
mod several;
#[cfg(test)]
mod tests;

pub(crate) use at_once::Gate;
pub use at_once::read_together;
pub(crate) use elsewhere::Elsewhere;
pub use excluded::exclude_together;

use super::commit::ReadHead;
use super::{TxnContext, TxnState, WritersLock};
use crate::error::{Error, ErrorKind, Result};
use excluded::{check_apart, exclude_all};
use fulgurite_wal::Permit;
use several::commit_to_several;

/// Commits transactions in stores of this process as one: after a crash, too, either all
/// of them are committed or none, and they are serializable as one. All contexts are idle
/// afterwards. The first that was written to coordinates, or the one that is too large for
/// the log. Such a commit is synced, whatever the durability of its contexts, but where a
/// store was opened with [`Off`](crate::Durability::Off).
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

    fn undo(&mut self) {
        if self.state != TxnState::Idle {
            self.rollback();
        }
    }
}
