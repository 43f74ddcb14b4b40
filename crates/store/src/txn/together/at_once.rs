//! Reading several stores as they were at one moment.
//!
//! Each store shows a state that moves with its commits. A transaction pins what each
//! shows, one after the other, and looks whether any has moved since: if none has, all
//! of them showed that when the last was pinned. Where one moves too fast it tries again,
//! for as long as its busy timeout lasts.
//!
//! A commit to several stores is shown by one of them before it is by another. Between
//! the two the gates of those stores are shut (`mod.rs`), and nobody takes what they show.
//! One that cannot come to show it any more, since its log has failed, or alone does, keeps
//! its gate shut: it may be read by itself, and not beside others, until it is opened again.
//! So does one that does not know what became of a commit, once the store that decided is
//! closed: whoever opens that or another one again is shown what became of it.

use super::super::{TxnContext, TxnState};
use crate::error::{Error, ErrorKind, Result};
use crate::primitives::atomic::{AtomicBool, AtomicU64, Ordering::*};
use crate::primitives::look_later;
use crate::store::Handle;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How often to look at a gate again, letting others run, before sleeping: a commit syncs
/// meanwhile, some hundreds of microseconds.
const LOOKS_AWAKE: usize = 50;
/// How long to sleep then.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// Shut while the store takes part in a commit that another one shows already, or not yet.
#[derive(Default)]
pub(crate) struct Gate {
    /// How many have shut it, and in the upper half how often it was opened. There may be
    /// more than one: a commit gives its locks back before it is acknowledged, and opens
    /// the gate after that, so the next one may shut it first.
    turns: AtomicU64,
    /// It stays shut: the store and another one differ over a commit to both.
    torn: AtomicBool,
    /// The store that decides about a commit of unknown outcome, which this one does not
    /// show, and no other one as long as that is open.
    decides: OnceLock<Weak<Handle>>,
}

const OPENED: u64 = 1 << 32;

/// Opens the gate when it is dropped.
pub(crate) struct Shut<'g>(&'g Gate);

impl Gate {
    /// For who has excluded the store's other writers.
    pub(crate) fn shut(&self) -> Shut<'_> {
        self.turns.fetch_add(1, SeqCst);
        Shut(self)
    }

    /// For who has shut it, and found that the store will not come to show what others do.
    pub(super) fn tear(&self) {
        self.torn.store(true, SeqCst);
        self.turns.fetch_add(1, SeqCst);
    }

    /// For who has shut it, and does not know what will be found of a commit once the store
    /// that decides is opened again.
    pub(super) fn leave_to(&self, coordinator: &Arc<Handle>) {
        // Nothing is committed here any more, so there is no other one.
        let _ = self.decides.set(Arc::downgrade(coordinator));
    }

    /// Whether the store and another one may differ over a commit to both, for good.
    fn is_torn(&self) -> bool {
        let is_closed = |decides: &Weak<Handle>| decides.strong_count() == 0;
        self.torn.load(SeqCst) || self.decides.get().is_some_and(is_closed)
    }

    /// A number that stays until it is shut again; `None` while it is shut.
    fn opened(&self) -> Option<u64> {
        let turns = self.turns.load(SeqCst);
        (turns.is_multiple_of(OPENED) && !self.is_torn()).then_some(turns)
    }
}

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        self.0.turns.fetch_add(OPENED - 1, SeqCst);
    }
}

/// Has transactions in several stores, which were begun and have read nothing yet, read
/// what all of those stores showed at one moment. (One that excludes other writers reads
/// that anyway.)
///
/// # Errors
/// `Busy` where their commits come too fast for that until the busy timeout is over;
/// `Misuse` for a transaction that was used; `Poisoned` for a store whose part of a commit
/// to several could not be completed, until it is opened again.
pub fn read_together(txns: &mut [&mut TxnContext]) -> Result<()> {
    let mut readers: Vec<&mut &mut TxnContext> = Vec::with_capacity(txns.len());
    for txn in txns.iter_mut() {
        match txn.state {
            TxnState::Read | TxnState::Optimistic if txn.is_unused() => readers.push(txn),
            TxnState::Immediate | TxnState::Statement => {}
            _ => return Err(Error::misuse("a transaction that was used is to read anew")),
        }
    }
    let Some(first) = readers.first() else {
        return Ok(());
    };
    let (core, busy_timeout) = (first.core.clone(), first.busy.timeout);
    let waits = &core.pool.waits;
    let until = waits.now().saturating_add(busy_timeout);
    let mut looks = 0;
    loop {
        if try_together(&mut readers) {
            return Ok(());
        }
        readers.iter().try_for_each(|reader| reader.check_whole())?;
        if waits.now() >= until {
            return Err(first_busy(&readers));
        }
        looks += 1;
        look_later();
        if looks > LOOKS_AWAKE || core.options.driver.is_some() {
            waits.pause(LOOK_AGAIN);
        }
    }
}

fn first_busy(readers: &[&mut &mut TxnContext]) -> Error {
    let why = "several databases are read at once, and their commits come too fast";
    readers
        .first()
        .map_or_else(|| Error::misuse(why), |first| first.busy(why))
}

/// How often to try before letting others run.
const TRIES: usize = 64;

fn try_together(readers: &mut [&mut &mut TxnContext]) -> bool {
    (0..TRIES).any(|_| {
        let mut gates = Vec::with_capacity(readers.len());
        for reader in readers.iter_mut() {
            let Some(opened) = reader.core.gate.opened() else {
                return false;
            };
            gates.push(opened);
        }
        if !readers.iter_mut().all(|reader| reader.pin_anew()) {
            return false;
        }
        let stays = |(reader, opened): (&&mut &mut TxnContext, &u64)| {
            reader.core.visible_to_pin() == reader.seq && reader.core.gate.opened() == Some(*opened)
        };
        readers.iter().zip(&gates).all(stays)
    })
}

impl TxnContext {
    /// Fails where the store must not be read beside another one.
    ///
    /// # Errors
    /// `Poisoned`, which names the file and why.
    pub fn check_whole(&self) -> Result<()> {
        if !self.core.gate.is_torn() {
            return Ok(());
        }
        let path = &self.core.pool.path;
        let message = format!(
            "a commit to several files is not the same in {path} as in another one until {path} \
             is opened again; till then it can only be read by itself"
        );
        match self.core.check_writable() {
            Err(cause) => Err(Error::caused(
                ErrorKind::Poisoned,
                format!("{message}: {cause}"),
                cause,
            )),
            Ok(()) => Err(Error::new(ErrorKind::Poisoned, message)),
        }
    }

    /// Whether it has neither read nor written anything.
    pub fn is_unused(&self) -> bool {
        self.views.is_empty() && self.absent.is_empty() && self.forks.is_empty() && !self.wrote
    }

    /// Pins what the store shows now in place of what it has pinned; false where there are
    /// too many who read.
    fn pin_anew(&mut self) -> bool {
        self.need_snapshot();
        let core = &*self.core;
        let Ok((slot, seq)) = core.pool.readers.pin(|| core.visible_to_pin()) else {
            return false;
        };
        if let Some(last) = self.slot.replace(slot) {
            core.pool.readers.release(&last);
        }
        (self.seq, self.pinned) = (seq, true);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    /// A second commit to the same stores shut the gates while the first one had not opened
    /// them yet. Two shuttings counted as open: who read both stores then saw half of the
    /// second one, where the first thread was long in coming to its end.
    #[test]
    fn a_gate_is_open_when_all_who_shut_it_have_opened_it() {
        let gate = Gate::default();
        let before = gate.opened();
        assert!(before.is_some());
        let first = gate.shut();
        let second = gate.shut();
        assert_eq!(gate.opened(), None);
        drop(first);
        assert_eq!(gate.opened(), None);
        drop(second);
        assert!(gate.opened().is_some());
        assert_ne!(gate.opened(), before);
    }
}
