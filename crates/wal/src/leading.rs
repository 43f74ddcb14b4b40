//! Who writes and syncs: leader and followers, for both kinds of log.
//!
//! A committer who is alone takes the straight path: take the flush lock,
//! write, sync, return. Where another one leads, it spins briefly, yields where
//! a sync is cheaper than a sleep, and otherwise sleeps until the leader is
//! done; whoever wakes unserved leads next.

use super::error::Result;
use super::gather::Gather;
use super::parking::{Outlook, Parking, Wish};
use super::stats::Counters;
use crate::primitives::{SPINS, YIELDS_QUICK, YIELDS_SLOW, spin_loop};

/// A log whose committers take turns in leading.
pub(super) trait Leads {
    fn parking(&self) -> &Parking;

    fn gather(&self) -> &Gather;

    fn counters(&self) -> &Counters;

    /// Fails once the log is poisoned or closed.
    fn check(&self) -> Result<()>;

    /// Whether an acknowledgement needs a sync at all.
    fn is_synced(&self) -> bool;

    /// Whether leading would get anything done.
    fn can_lead(&self, sync: bool) -> bool;

    /// Leads once, unless somebody does already: writes what is there and, with
    /// `sync`, goes on to the acknowledgement. Lets go of the flush lock before
    /// it returns.
    fn try_lead(&self, sync: bool) -> Option<Result<()>>;

    /// Whether somebody leads.
    fn is_led(&self) -> bool;

    /// Whether a wish came true. `Progress` always did, where a leader asks.
    fn is_met(&self, wish: Wish) -> bool;

    /// Whether the flush in progress, or the last one, goes as far as a wish
    /// wants.
    fn is_covered(&self, wish: Wish) -> bool;

    /// After the flush lock was let go.
    fn flush_ended(&self) {
        self.parking().flush_ended(|wish| self.is_met(wish));
    }

    /// Works or waits until `done`, woken where `wish` comes true.
    fn until(&self, done: impl Fn() -> bool, wish: Wish) -> Result<()> {
        let sync = wish.wants_sync();
        let mut turns = 0;
        loop {
            if done() {
                return Ok(());
            }
            self.check()?;
            if self.can_lead(sync)
                && let Some(result) = self.try_lead(sync)
            {
                self.flush_ended();
                result?;
                continue;
            }
            turns += 1;
            let (spins, yields) = self.patience();
            if turns <= spins {
                spin_loop();
            } else if turns > spins + yields || !self.gather().give_way() {
                self.counters().parks.add(1);
                self.sleep(&done, wish);
                turns = 0;
            }
        }
    }

    /// How often to look again, and to let others run, before sleeping. Where a
    /// sync takes its time, looking again is in the way of those who could run.
    fn patience(&self) -> (u32, u32) {
        if !self.is_synced() || self.gather().sync_is_quick() {
            (SPINS, YIELDS_QUICK)
        } else {
            (0, YIELDS_SLOW)
        }
    }

    fn sleep(&self, done: &impl Fn() -> bool, wish: Wish) {
        let is_covered = |wish| self.is_covered(wish);
        self.parking().park(wish, is_covered, || {
            if done() || self.check().is_err() {
                Outlook::GoOn
            } else if !self.can_lead(wish.wants_sync()) {
                Outlook::Starved
            } else if self.is_led() {
                Outlook::Led
            } else {
                Outlook::GoOn
            }
        });
    }
}
