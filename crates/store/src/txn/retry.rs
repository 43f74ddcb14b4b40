//! Running a transaction until it commits.
//!
//! An optimistic transaction that lost is run again after a pause that doubles
//! with each loss and is drawn at random, so that those who lost against each
//! other do not meet again. After [`LOSSES_MAX`] losses it runs as IMMEDIATE,
//! which cannot lose: however crowded the rows are, everybody gets through.

use super::Txn;
use crate::error::{ErrorKind, Result};
use crate::options::Isolation;
use crate::store::Store;
use fulgurite_disk::{Driver as _, Machine};
use std::time::Duration;

/// Losses after which a transaction keeps the others out.
pub const LOSSES_MAX: u32 = 4;
/// The longest pause after the first loss.
const PAUSE: Duration = Duration::from_micros(100);

/// How long to wait before running again a transaction that lost `losses` times
/// in a row: between a half and the whole of a time that doubles each time.
pub fn pause_after(losses: u32) -> Duration {
    let longest = PAUSE * (1 << losses.min(8));
    let random = Machine.random();
    let share = (random >> 40) as f64 / (1u64 << 24) as f64;
    longest.mul_f64(0.5 + share / 2.0)
}

impl Store {
    /// Waits, by the clock of who drives the store if somebody does.
    pub fn pause(&self, time: Duration) {
        self.core().pool.waits.pause(time);
    }

    /// Runs `work` in a transaction and commits it; runs it again where it lost
    /// against an overlapping one. So `work` may run several times, and what it
    /// does beside the transaction should bear that. An error or a panic of
    /// `work` rolls back.
    ///
    /// ```
    /// # use fulgurite_store::{Isolation, Key, KeyKind, Options, Store};
    /// # fn main() -> fulgurite_store::Result<()> {
    /// let store = Store::in_memory(Options::default())?;
    /// let counts = store.create_family("counts", KeyKind::Int)?;
    /// let count = store.transact(Isolation::Serializable, |txn| {
    ///     let mut value = Vec::new();
    ///     let found = txn.get_into(&counts, Key::Int(7), &mut value)?;
    ///     let count = if found { value[0] + 1 } else { 1 };
    ///     txn.put(&counts, Key::Int(7), &[count])?;
    ///     Ok(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `work` and of committing, except conflicts. `Busy` is not tried
    /// again: it has waited for the busy timeout already.
    pub fn transact<T>(
        &self,
        isolation: Isolation,
        mut work: impl FnMut(&mut Txn) -> Result<T>,
    ) -> Result<T> {
        self.txn().run(isolation, &mut work)
    }
}

impl Txn {
    /// See [`Store::transact`].
    fn run<T>(
        &mut self,
        isolation: Isolation,
        work: &mut impl FnMut(&mut Txn) -> Result<T>,
    ) -> Result<T> {
        let mut losses = 0;
        loop {
            if losses < LOSSES_MAX {
                self.begin(isolation)?;
            } else {
                self.begin_immediate()?;
            }
            let outcome = work(self).and_then(|value| self.commit().map(|()| value));
            match outcome {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.rollback();
                    losses += 1;
                    self.store.pause(pause_after(losses));
                }
                Err(error) => {
                    self.rollback();
                    return Err(error);
                }
                Ok(value) => return Ok(value),
            }
        }
    }
}
