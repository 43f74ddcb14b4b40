//! How the log's files grow in their first round, until each holds what comes between
//! two checkpoints.
//!
//! A reservation that the file has no room for extends it, and waits for that: so a full
//! disk is met there, and nowhere later. Hardly any has to, because a file of [`FROM`] or
//! more is extended *ahead*. The reservation that comes within [`AHEAD`] of its end says so
//! ([`WalOptions::growth`](super::twin::WalOptions::growth)), once for each length that the
//! file has, and goes on; the background extends it ([`TwinLog::grow_ahead`]). `room_until`
//! stops there until it was said, so the quick path compares what it compared before.
//! What cannot be done ahead is met again by the reservation that needs it.
//!
//! 1. Zeros are written behind a file's room alone: no record is placed there before
//!    `capacity` says that they were.
//! 2. One extends at a time, and only the file of a generation that records may be placed
//!    in. Who heads a file anew for another one first waits for who still extends it, whose
//!    zeros would come over that one's records.
//! 3. The zeros are synced by whoever syncs the first record behind them. A sync of their
//!    own might be told of a record's failed write, of which the sync that acknowledges
//!    that record would then hear nothing.

use std::sync::Arc;

use super::error::Result;
use super::generation::{Generation, extended_capacity, fill_with_zeros};
use super::locks::{lock, try_lock};
use super::space::PASS;
use super::twin::{Placement, TwinLog};
use crate::primitives::{MutexGuard, Ordering};

/// Called, without locks, by a reservation that finds the current file nearly full.
pub type GrowthHook = Arc<dyn Fn() + Send + Sync>;

/// The room from which on a file is extended ahead. What smaller ones grow by is written
/// in less time than a thread takes to wake.
const FROM: u64 = 512 << 10;
/// How much room is left when that is asked for.
const AHEAD: u64 = 512 << 10;

impl TwinLog {
    /// Extends the current file where that was asked for ([`WalOptions::growth`]). For a
    /// background thread; committers go on meanwhile.
    ///
    /// # Errors
    /// `Disk` if the file cannot grow: whoever needs the room will ask again; `Poisoned`
    /// or `Closed`.
    ///
    /// [`WalOptions::growth`]: super::twin::WalOptions::growth
    pub fn grow_ahead(&self) -> Result<()> {
        self.check()?;
        let asked = lock(&self.placement).growth_asked;
        match asked {
            Some(Asked { number, capacity }) => self.extend(number, capacity + 1),
            None => Ok(()),
        }
    }

    /// After a permit was granted: asks for more room where there will soon be none.
    pub(super) fn ask_to_grow(&self) {
        let Some(hook) = &self.options.growth else {
            return;
        };
        {
            let mut placement = lock(&self.placement);
            let end = placement.tail + self.outstanding.load(Ordering::SeqCst);
            if end <= self.quick_end(&placement) || !self.grows_ahead(&placement) {
                return;
            }
            placement.growth_asked = Some(Asked::of(&placement.current));
            self.update_room(&placement);
        }
        hook();
    }

    /// Up to where the current file takes records without a further look at its room.
    pub(super) fn quick_end(&self, placement: &Placement) -> u64 {
        let end = placement.current.room_end();
        match self.grows_ahead(placement) {
            true => end - AHEAD,
            false => end,
        }
    }

    /// Whether the current file is yet to be extended ahead.
    fn grows_ahead(&self, placement: &Placement) -> bool {
        let current = &placement.current;
        self.options.growth.is_some()
            && current.capacity >= FROM
            && current.room_end() < placement.floor().saturating_add(self.options.limit_bytes)
            && placement.growth_asked != Some(Asked::of(current))
    }

    /// The right to make the first file or to extend one. Where somebody drives, whoever
    /// has it may stand at a call until others had their turn.
    pub(super) fn lock_extending(&self) -> MutexGuard<'_, ()> {
        let Some(driver) = &self.options.driver else {
            return lock(&self.extending);
        };
        loop {
            match try_lock(&self.extending) {
                Some(extending) => return extending,
                None => driver.pass(PASS),
            }
        }
    }

    /// Extends the file of a generation that is still in use.
    pub(super) fn extend(&self, number: u64, needed: u64) -> Result<()> {
        let _extending = self.lock_extending();
        let (slot, from) = {
            let mut placement = lock(&self.placement);
            match placement.generation(number) {
                Some(generation) if generation.capacity < needed => {
                    (generation.slot, generation.capacity)
                }
                // Done by another one, or switched away from.
                _ => return Ok(()),
            }
        };
        if from == 0 {
            return self.make_first_file(needed);
        }
        let to = extended_capacity(from, needed);
        fill_with_zeros(&**self.file(slot)?, from, to)?;
        self.turns.counters.extensions.add(1);
        let mut placement = lock(&self.placement);
        if let Some(generation) = placement.generation(number) {
            generation.capacity = to;
        }
        self.update_room(&placement);
        Ok(())
    }
}

/// Which file was asked to be extended ahead, and how long it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    number: u64,
    capacity: u64,
}

impl Asked {
    fn of(generation: &Generation) -> Self {
        Self {
            number: generation.number,
            capacity: generation.capacity,
        }
    }
}
