//! Excluding the writers of several stores, in an order in which nobody waits in a circle:
//! that of the stores' numbers.

use super::super::{TxnContext, TxnState, WritersLock};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Core;
use std::time::Duration;

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
pub(super) fn check_apart(
    txns: &[&mut TxnContext],
    concerns: fn(&TxnContext) -> bool,
) -> Result<()> {
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
pub(super) fn exclude_all(txns: &mut [&mut TxnContext]) -> Result<Vec<usize>> {
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

impl TxnContext {
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
}
