//! Room for records: the limit on the whole log, and the space in its files.
//!
//! A permit promises both before the caller takes any lock. The quick path
//! compares one sum: log position of the next record + bytes of all outstanding
//! permits must not pass `room_until`, the lower of the current file's end and
//! the limit. What is granted there stays below `QUICK_OUTSTANDING_BYTES_MAX`,
//! which any prepared generation has room for, so that a switch between permit
//! and placement breaks no promise. Everything else is decided under the
//! placement lock, against the prepared generation too; that never does I/O, so
//! files are extended in between (`growth.rs`), and the decision is made anew. So is the
//! first file made: a log that nobody writes to has none.
//!
//! Where the limit stands in the way, a checkpoint is asked for and waited for.
//! Who makes one says so before ([`TwinLog::begin_making_room`]) and, if it comes
//! to nothing, why ([`TwinLog::no_room_made`]). A reservation ends with the cause as
//! soon as a checkpoint failed that began after it asked: that one was made for
//! it, so whatever it met is met by whoever asks next. One failure is enough even
//! where the next try might succeed: its caller holds nothing yet, can try again by
//! itself, and would otherwise learn of a full disk only after the time-out. A
//! failure of a checkpoint that was under way before says less; after it the
//! reservation asks once more. Failures are kept for those who wait, not for those
//! who come later, and a checkpoint that makes room forgets them.
//!
//! Not all that makes room is told: a permit may be given back, and a checkpoint
//! that was asked for while only permits stood in the way had nothing to cover. So
//! a reservation looks, and asks, again every [`LOOK_AGAIN`].

use std::sync::Arc;
use std::time::Duration;

use super::error::{Error, Result};
use super::generation::{CAPACITY_BYTES_MIN, Generation};
use super::locks::{lock, wait_at_most};
use super::record::{EMPTY_RECORD_BYTES, record_bytes};
use super::twin::{Placement, TwinLog};
use crate::primitives::{Ordering, now};

const QUICK_OUTSTANDING_BYTES_MAX: u64 = 128 << 10;
/// How long a reservation waits without looking.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long one who is driven lets others work before it looks again.
pub(super) const PASS: Duration = Duration::from_millis(1);
const _: () = assert!(QUICK_OUTSTANDING_BYTES_MAX + EMPTY_RECORD_BYTES <= CAPACITY_BYTES_MIN);

/// What has become of the room that reservations wait for.
#[derive(Default)]
pub(super) struct Room {
    /// Counts the events after which to look again.
    epoch: u64,
    /// How many checkpoints began.
    attempts: u64,
    /// The last one that failed, unless room was made since, and why.
    failed: Option<(RoomAttempt, Arc<dyn std::error::Error + Send + Sync>)>,
}

/// Names a checkpoint, from [`TwinLog::begin_making_room`] to
/// [`TwinLog::no_room_made`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoomAttempt(u64);

enum Decision {
    Granted,
    /// Generation `number` needs this capacity first.
    Extend {
        number: u64,
        capacity: u64,
    },
    /// A checkpoint must make room first.
    Wait,
}

impl TwinLog {
    #[inline]
    pub(super) fn reserve_quickly(&self, bytes: u64) -> bool {
        let outstanding = self.outstanding.fetch_add(bytes, Ordering::SeqCst) + bytes;
        // Read after the addition: `place` raises the tail before it takes the
        // permit's bytes off, so the sum is never too small.
        let end = self.tail.load(Ordering::SeqCst) + outstanding;
        if outstanding <= QUICK_OUTSTANDING_BYTES_MAX
            && end <= self.room_until.load(Ordering::SeqCst)
        {
            return true;
        }
        self.outstanding.fetch_sub(bytes, Ordering::SeqCst);
        false
    }

    #[cold]
    pub(super) fn reserve_slowly(&self, bytes: u64, patience: Duration) -> Result<()> {
        let until = self.now().saturating_add(patience);
        let mut asked = None;
        loop {
            let epoch = lock(&self.room).epoch;
            self.check()?;
            match self.decide(bytes) {
                Decision::Granted => {
                    self.ask_to_grow();
                    return Ok(());
                }
                Decision::Extend { number, capacity } => self.extend(number, capacity)?,
                Decision::Wait => {
                    let asked = *asked.get_or_insert_with(|| {
                        self.turns.counters.pressure_waits.add(1);
                        self.newest_attempt()
                    });
                    self.check_attempts_after(asked)?;
                    self.ask_for_room(epoch, until)?;
                }
            }
        }
    }

    fn newest_attempt(&self) -> RoomAttempt {
        RoomAttempt(lock(&self.room).attempts)
    }

    /// Fails with the cause if a checkpoint failed that began after `asked`.
    fn check_attempts_after(&self, asked: RoomAttempt) -> Result<()> {
        match &lock(&self.room).failed {
            Some((attempt, cause)) if *attempt > asked => Err(Error::NoRoom {
                limit_bytes: self.options.limit_bytes,
                source: cause.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// The time, by the driver's clock where there is one.
    pub(super) fn now(&self) -> Duration {
        match &self.options.driver {
            Some(driver) => driver.now(),
            None => now(),
        }
    }

    fn decide(&self, bytes: u64) -> Decision {
        let placement = lock(&self.placement);
        let outstanding = self.outstanding.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let decision = placement.decide(outstanding, bytes, self.options.limit_bytes);
        if !matches!(decision, Decision::Granted) {
            self.outstanding.fetch_sub(bytes, Ordering::SeqCst);
        }
        decision
    }

    /// Recomputes `room_until`; called with every change of what it depends on.
    pub(super) fn update_room(&self, placement: &Placement) {
        let by_limit = placement.floor().saturating_add(self.options.limit_bytes);
        self.limit_until.store(by_limit, Ordering::Relaxed);
        self.room_until
            .store(by_limit.min(self.quick_end(placement)), Ordering::SeqCst);
    }

    /// Whether one more record would have to wait for a checkpoint, as far as can be
    /// told at a glance.
    pub fn is_at_limit(&self, payload_len: usize) -> bool {
        let placed = self.tail.load(Ordering::Relaxed);
        let end = placed + self.outstanding.load(Ordering::Relaxed) + record_bytes(payload_len);
        end > self.limit_until.load(Ordering::Relaxed)
    }

    #[cold]
    fn ask_for_room(&self, epoch: u64, until: Duration) -> Result<()> {
        if let Some(hook) = &self.options.pressure {
            hook(until.saturating_sub(self.now()));
        }
        let look_again = self.now() + LOOK_AGAIN;
        let mut room = lock(&self.room);
        while room.epoch == epoch {
            let now = self.now();
            let left = until.saturating_sub(now);
            if left.is_zero() {
                return Err(Error::Full {
                    limit_bytes: self.options.limit_bytes,
                });
            }
            let left = left.min(look_again.saturating_sub(now));
            if left.is_zero() {
                break;
            }
            room = match &self.options.driver {
                None => wait_at_most(&self.room_changed, room, left),
                Some(driver) => {
                    drop(room);
                    driver.pass(left);
                    lock(&self.room)
                }
            };
        }
        Ok(())
    }

    /// Lets the reservations that wait for room look again, since there may be some.
    pub(super) fn announce_room(&self) {
        let mut room = lock(&self.room);
        room.epoch += 1;
        room.failed = None;
        drop(room);
        self.room_changed.notify_all();
    }

    /// Has the reservations that wait for room look whether there is some, and call
    /// [`WalOptions::pressure`](super::twin::WalOptions::pressure) again if not.
    pub fn look_again(&self) {
        lock(&self.room).epoch += 1;
        self.room_changed.notify_all();
    }

    /// To be called before a checkpoint begins, by who makes it: a reservation that
    /// asked for one before this call is served by this one.
    pub fn begin_making_room(&self) -> RoomAttempt {
        let mut room = lock(&self.room);
        room.attempts += 1;
        RoomAttempt(room.attempts)
    }

    /// Says that this checkpoint failed. The reservations that it was made for end
    /// with [`Error::NoRoom`], which carries the cause; those that came later ask
    /// for another one. The log itself takes no harm.
    pub fn no_room_made(
        &self,
        attempt: RoomAttempt,
        cause: Arc<dyn std::error::Error + Send + Sync>,
    ) {
        let mut room = lock(&self.room);
        room.epoch += 1;
        room.failed = Some((attempt, cause));
        drop(room);
        self.room_changed.notify_all();
    }
}

impl Placement {
    /// The generation with this number, if records may still be placed in it.
    pub(super) fn generation(&mut self, number: u64) -> Option<&mut Generation> {
        if self.current.number == number {
            return Some(&mut self.current);
        }
        self.prepared
            .as_mut()
            .filter(|prepared| prepared.number == number)
    }

    fn decide(&self, outstanding: u64, bytes: u64, limit_bytes: u64) -> Decision {
        let end = self.tail + outstanding;
        let holds_nothing =
            self.previous.is_none() && self.tail == self.current.base + EMPTY_RECORD_BYTES;
        let alone = holds_nothing && outstanding == bytes;
        if end > self.floor().saturating_add(limit_bytes) && !alone {
            return Decision::Wait;
        }
        if end > self.current.room_end() {
            return Decision::Extend {
                number: self.current.number,
                capacity: end - self.current.base,
            };
        }
        self.decide_for_prepared(outstanding)
    }

    /// Whether the prepared generation could take all permits.
    fn decide_for_prepared(&self, outstanding: u64) -> Decision {
        let capacity = EMPTY_RECORD_BYTES + outstanding;
        match &self.prepared {
            Some(prepared) if prepared.capacity < capacity => Decision::Extend {
                number: prepared.number,
                capacity,
            },
            _ => Decision::Granted,
        }
    }

    /// The capacity a generation needs before it can be published as prepared.
    pub(super) fn capacity_for_permits(outstanding: u64) -> u64 {
        EMPTY_RECORD_BYTES + outstanding
    }
}
