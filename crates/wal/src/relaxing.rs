//! From `full` to `normal` while the log is open, and durability where nobody leads.
//!
//! Whether an acknowledgement waits for a sync is the log's, since a record that is
//! acknowledged when it is written is so to everybody. So a log that one committer may
//! lose goes over to `normal`, once and for good, and who wants more than that syncs
//! ([`sync_up_to`](TwinLog::sync_up_to)) what it committed, with all before it.
//!
//! 1. The log goes over while its caller keeps all committers out, and all that was
//!    placed is acknowledged: no record is on its way, neither in the ring nor to a file.
//!    What was acknowledged without a sync is synced now. Who reserved room keeps it.
//! 2. It does so under the flush lock, so no leader is at work, and whoever takes that
//!    lock next finds the new mode. What the older generation holds is synced by 1.
//! 3. A boundary set before is crossed here or by the next who goes on, one set later by
//!    the latter, as ever in `normal`. The begin record that a crossing in `full` left in
//!    the ring is written with the generation's first record, as ever in `normal`.
//! 4. Files that are open stay as they are: without a map, to which records are written
//!    by calls of the system. Those made later are mapped.
//!
//! Who wants its commit durable beside others that do not syncs after it was
//! acknowledged, one at a time: what was acknowledged when a sync began is durable at its
//! end, whoever wanted it.

use super::error::{Error, Result};
use super::leading::Leads;
use super::locks::{lock, wait};
use super::space::PASS;
use super::twin::{Durability, TwinLog};
use crate::primitives::Ordering;

impl TwinLog {
    /// What an acknowledged commit survives now.
    #[inline]
    pub fn durability(&self) -> Durability {
        match self.options.durability {
            Durability::Full if self.relaxed.load(Ordering::Relaxed) => Durability::Normal,
            opened => opened,
        }
    }

    /// Goes over from `full` to `normal`, for good; in the other modes it does nothing.
    /// For who keeps all committers out, with everything placed acknowledged.
    ///
    /// # Errors
    /// `Misuse` if something is not acknowledged; nothing has changed then. `Poisoned`
    /// or `Closed`.
    pub fn relax(&self) -> Result<()> {
        let mut flush = lock(&self.flush);
        let relaxed = self.check().and_then(|()| {
            if self.durability() != Durability::Full {
                return Ok(());
            }
            let last = self.acked_seq.load(Ordering::SeqCst);
            if self.placed_seq.load(Ordering::SeqCst) != last {
                return Err(Error::Misuse(
                    "the durability was changed with commits under way",
                ));
            }
            self.acknowledge(&mut flush, true)?;
            let (seq, start) = &self.in_place_first;
            seq.store(last, Ordering::Relaxed);
            start.store(self.tail.load(Ordering::Relaxed), Ordering::Relaxed);
            self.relaxed.store(true, Ordering::SeqCst);
            self.cross_in_place(&mut flush);
            Ok(())
        });
        drop(flush);
        self.flush_ended();
        relaxed
    }

    /// Makes everything acknowledged so far durable, whatever the mode (`off`
    /// excepted). `full` commits need no such call; in `normal` mode a
    /// background thread makes it every now and then.
    ///
    /// # Errors
    /// `Poisoned` after a failed sync.
    pub fn sync(&self) -> Result<()> {
        loop {
            if let Some(turn) = self.turn_to_sync() {
                return turn.sync();
            }
        }
    }

    /// The same for who wants everything up to `seq`, which is acknowledged: returns as soon
    /// as that is durable, by whoever's sync.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn sync_up_to(&self, seq: u64) -> Result<()> {
        while self.durable() < seq {
            if let Some(turn) = self.turn_to_sync() {
                // Somebody else's sync may have ended before this turn began.
                return match self.durable() < seq {
                    true => turn.sync(),
                    false => Ok(()),
                };
            }
        }
        Ok(())
    }

    /// The right to make an explicit sync; or None once somebody else's has ended.
    fn turn_to_sync(&self) -> Option<SyncTurn<'_>> {
        let mut syncing = lock(&self.syncing);
        if !*syncing {
            *syncing = true;
            return Some(SyncTurn(self));
        }
        match &self.options.driver {
            None => drop(wait(&self.explicit_sync_ended, syncing)),
            // Whoever has it may stand at a call until others had their turn.
            Some(driver) => {
                drop(syncing);
                driver.pass(PASS);
            }
        }
        None
    }

    fn sync_acknowledged(&self) -> Result<()> {
        let mut flush = lock(&self.flush);
        let led = self.lead(&mut flush, true);
        let unsynced = self.unsynced_in_place(&mut flush);
        drop(flush);
        self.flush_ended();
        led?;
        // Outside the flush lock: commits go on meanwhile.
        unsynced.map_or(Ok(()), |unsynced| self.sync_in_place(unsynced))
    }
}

/// While somebody makes an explicit sync. All who wait look, at its end, whether it covered
/// what they want: they are woken together, since one after the other would let whoever is
/// at work sync for itself in between.
struct SyncTurn<'w>(&'w TwinLog);

impl SyncTurn<'_> {
    fn sync(self) -> Result<()> {
        self.0.sync_acknowledged()
    }
}

impl Drop for SyncTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.syncing) = false;
        self.0.explicit_sync_ended.notify_all();
    }
}
