//! A tree's writer lock, with a seat for the one who waits next.
//!
//! What a commit works on lies in the caches of the processor it ran on. Where
//! writers of one tree take turns at every statement, all of that goes back and
//! forth: two threads that insert into one table take two to eight times as long
//! for a statement as one. So whoever comes back for the lock at once may keep it
//! for [`TURNS`] statements, while one other waits in the seat and the rest sleep
//! behind it.
//!
//! 1. The seat is taken before the lock, by statements that found the lock taken.
//!    Its holder waits for nothing but the lock, so no circle of waiting forms.
//! 2. Who sits looks every now and then. Where the same context held the lock again
//!    since, without another one in between, that *stays*, and who sits goes on
//!    sitting. Where not, it takes the lock if it is free, and otherwise waits for it
//!    as everybody did. Then the seat goes to who has queued for it longest.
//! 3. While a context stays, only it, and whoever commits an explicit transaction,
//!    takes the lock past the seat; after [`TURNS`], or [`LOOKS_KEPT`], it queues for
//!    the seat, too, whether who sits there has a processor or not. Where who sits
//!    has not stayed itself, it has [`TURNS_MEANWHILE`]: who writes now and then does
//!    not wait long for one that writes all the time.
//! 4. Whether staying pays is seen, not reckoned: where contexts do not come back
//!    (they wait for a sync, or work on something else), the next [`REST_MIN`] who
//!    wait do so without the seat, then twice as many, up to [`REST_MAX`]. While one
//!    sits only to see, the others wait for that instead of queueing behind it.
//!
//! 5. Where commits wait for a sync nobody comes back at once, and nobody sits. But all
//!    whom one sync served come for the lock together then, so who finds it taken stays
//!    awake for a while: those before it are soon done, and the next sync is to find all
//!    of them there. Where that takes a time slice, others want the processors, and the
//!    next [`HOGGED_WAITS`] who wait sleep. Who comes to commit an explicit transaction
//!    stays awake elsewhere, too, where few wait: to be woken takes longer than a commit.
//!
//! All but the two locks, and what `holds.rs` says of explicit transactions, are
//! hints: what they say may be old, and then somebody waits a little longer or the lock
//! changes hands once more.

use crate::primitives::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use crate::primitives::{DOUBTS_MAX, REST_MAX, REST_MIN, TURNS, TURNS_MEANWHILE};
use crate::primitives::{ExclusiveLock, Stayed, look_again, look_later, look_soon, processors};
use std::time::Duration;

/// How often who sits looks for a context that stays: those who sleep for the lock
/// get it before that, one after the other.
const LOOKS_MAX: u32 = 4;
/// After so many looks, some milliseconds, who stays has had its turns however few
/// they were.
const LOOKS_KEPT: u32 = 128;
/// A context that has held the lock so often in a row stays, though it may have lost
/// the processor to who sits.
const MANY: u64 = 8;
/// How many who wait sleep at once after one found the processors taken by others.
const HOGGED_WAITS: u32 = 4096;
/// The part of the processors that those who wait may keep busy where commits do not wait
/// for a sync.
const AWAKE_SHARE: usize = 4;
/// Who has less time than this does not sit: those before it may take that long.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// See the module's header.
#[repr(align(128))]
pub(crate) struct WriterLock {
    lock: ExclusiveLock,
    seat: ExclusiveLock,
    /// Whether it is an explicit transaction that has the lock, which lets go when it is
    /// asked to; written by the lock's holder. And how many wait for the lock.
    is_held: AtomicBool,
    waiting: AtomicU32,
    /// Whether somebody sits, and up to which turn a context may stay meanwhile.
    is_kept: AtomicBool,
    turns_end: AtomicU64,
    /// The context that held the lock for a statement last, and how often since
    /// another one did. Written by the lock's holder.
    holder: AtomicU64,
    turns: AtomicU64,
    /// Whether contexts stay, and how many saw none since one was seen.
    pays: AtomicBool,
    doubts: AtomicU32,
    /// How many more wait without the seat, and how many after the last wait in vain.
    resting: AtomicU32,
    rest: AtomicU32,
    /// How many more who wait sleep at once.
    hogged: AtomicU32,
}

impl WriterLock {
    pub(crate) fn new() -> Self {
        Self {
            lock: ExclusiveLock::new(),
            seat: ExclusiveLock::new(),
            is_held: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            is_kept: AtomicBool::new(false),
            turns_end: AtomicU64::new(0),
            holder: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            pays: AtomicBool::new(false),
            doubts: AtomicU32::new(0),
            resting: AtomicU32::new(0),
            rest: AtomicU32::new(0),
            hogged: AtomicU32::new(0),
        }
    }

    /// Takes the lock where it is free.
    pub(crate) fn try_lock(&self) -> bool {
        self.lock.try_lock()
    }

    /// Waits for the lock, for what does not come back soon.
    pub(crate) fn try_lock_for(&self, timeout: Duration) -> bool {
        self.lock.try_lock_for(timeout)
    }

    /// The same, awake for a while, for who is missed by a sync or soon done.
    #[cold]
    pub(crate) fn try_lock_awake_for(&self, timeout: Duration) -> bool {
        let hogged = self.hogged.load(Relaxed);
        if hogged > 0 {
            // A turn that two count as one does no harm.
            self.hogged.store(hogged - 1, Relaxed);
        } else if !timeout.is_zero() {
            match self.lock.try_lock_awake() {
                Stayed::Taken => return true,
                Stayed::InVain => {}
                Stayed::Hogged => self.hogged.store(HOGGED_WAITS, Relaxed),
            }
        }
        self.lock.try_lock_for(timeout)
    }

    /// Takes the lock for a statement of a context, where it is free and nobody
    /// comes first.
    #[inline]
    pub(crate) fn try_enter(&self, context: u64) -> bool {
        let may = !self.is_kept.load(Relaxed) || self.may_stay(context);
        may && self.lock.try_lock() && self.entered(context)
    }

    /// The same for an explicit transaction, which gives it back where somebody
    /// [`announces`](Self::announce) that it waits.
    #[inline]
    pub(crate) fn try_hold(&self, context: u64) -> bool {
        let taken = self.try_enter(context);
        if taken {
            self.is_held.store(true, SeqCst);
        }
        taken
    }

    /// Who held the lock keeps it as any other does.
    pub(crate) fn keep(&self) {
        self.is_held.store(false, Relaxed);
    }

    /// Whether anybody waits. Who holds asks that once others can find its hold.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }

    /// Before a wait for the lock: as long as the answer lives, no explicit transaction
    /// holds it. `recall` takes it from one that does.
    #[cold]
    pub(crate) fn announce(&self, recall: impl FnOnce()) -> Announced<'_> {
        self.waiting.fetch_add(1, SeqCst);
        if self.is_held.load(SeqCst) {
            recall();
        }
        Announced(self)
    }

    /// Whether so few wait, with the caller, that processors enough are left for the
    /// others while they stay awake.
    pub(crate) fn is_awaited_by_few(&self) -> bool {
        self.waiting.load(Relaxed) as usize * AWAKE_SHARE <= processors()
    }

    fn may_stay(&self, context: u64) -> bool {
        self.holder.load(Relaxed) == context
            && self.turns.load(Relaxed) < self.turns_end.load(Relaxed)
    }

    /// Takes note of who holds the lock; true.
    #[inline]
    fn entered(&self, context: u64) -> bool {
        let turns = if self.holder.load(Relaxed) == context {
            self.turns.load(Relaxed) + 1
        } else {
            self.holder.store(context, Relaxed);
            0
        };
        self.turns.store(turns, Relaxed);
        true
    }

    /// Waits for the lock for a statement of a context. `now` is any clock.
    #[cold]
    pub(crate) fn enter_within(
        &self,
        context: u64,
        timeout: Duration,
        now: impl Fn() -> Duration,
    ) -> bool {
        let until = now().saturating_add(timeout);
        let last = self.last();
        let patience = match last.0 == context && last.1 >= MANY {
            true => TURNS,
            false => TURNS_MEANWHILE,
        };
        let sits = timeout >= PATIENCE_MIN && self.take_seat(timeout);
        let taken = sits && self.sit(patience);
        let taken = taken || self.lock.try_lock_for(until.saturating_sub(now()));
        if sits {
            // SAFETY: taken above.
            unsafe { self.seat.hand_over() };
        }
        taken && self.entered(context)
    }

    /// Takes the seat where that pays, or might.
    fn take_seat(&self, timeout: Duration) -> bool {
        let resting = self.resting.load(Relaxed);
        if resting > 0 {
            // A turn that two count as one does no harm.
            self.resting.store(resting - 1, Relaxed);
            return false;
        }
        if !self.pays.load(Relaxed) {
            if self.seat.try_lock() {
                return true;
            }
            while self.is_kept.load(Relaxed) && !self.pays.load(Relaxed) {
                look_again();
            }
            if !self.pays.load(Relaxed) {
                return false;
            }
        }
        let taken = self.seat.try_lock_for(timeout);
        if taken && !self.pays.load(Relaxed) {
            // SAFETY: just taken.
            unsafe { self.seat.hand_over() };
            return false;
        }
        taken
    }

    /// Sits while a context stays, for so many turns; whether the lock was free after
    /// that. Nobody is kept out any more then.
    fn sit(&self, patience: u64) -> bool {
        let (mut holder, mut turns) = self.last();
        self.turns_end.store(turns + patience, Relaxed);
        self.is_kept.store(true, Relaxed);
        let mut stayed = turns >= MANY;
        let mut looks = 0_u32;
        loop {
            looks = looks.saturating_add(1);
            match stayed && patience == TURNS {
                true => look_later(),
                false => look_soon(),
            }
            let last = self.last();
            let stays = last.0 == holder && last.1 > turns;
            if stays && !stayed {
                stayed = true;
                // Who waits to see that queues now.
                self.pays.store(true, Relaxed);
            }
            let taken = !stays && self.lock.try_lock();
            if taken || (!stays && (stayed || looks >= LOOKS_MAX)) {
                self.learn(stayed);
                self.is_kept.store(false, Relaxed);
                return taken;
            }
            if looks >= LOOKS_KEPT {
                self.turns_end.store(0, Relaxed);
            }
            (holder, turns) = last;
        }
    }

    /// The context that held the lock last, and its turns.
    fn last(&self) -> (u64, u64) {
        (self.holder.load(Relaxed), self.turns.load(Relaxed))
    }

    /// Takes note of whether a context stayed.
    fn learn(&self, stayed: bool) {
        let doubts = match stayed {
            true => 0,
            false => self.doubts.load(Relaxed) + 1,
        };
        let pays = stayed || (self.pays.load(Relaxed) && doubts < DOUBTS_MAX);
        let rest = match pays {
            true => 0,
            false => (self.rest.load(Relaxed) * 2).clamp(REST_MIN, REST_MAX),
        };
        self.doubts.store(doubts, Relaxed);
        self.pays.store(pays, Relaxed);
        self.rest.store(rest, Relaxed);
        self.resting.store(rest, Relaxed);
    }

    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock() }
    }

    /// # Safety
    /// [`try_hold`](Self::try_hold) took the lock, and nobody gave it back since.
    pub(crate) unsafe fn unlock_held(&self) {
        self.keep();
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock() }
    }
}

/// Somebody waits for a tree's writer lock.
pub(crate) struct Announced<'l>(&'l WriterLock);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyKind, Options, Store};
    use std::thread;
    use std::time::Instant;

    fn enter(lock: &WriterLock, context: u64, timeout: Duration) -> bool {
        let start = Instant::now();
        lock.try_enter(context) || lock.enter_within(context, timeout, || start.elapsed())
    }

    fn leave(lock: &WriterLock) {
        // SAFETY: the tests call it where they hold the lock.
        unsafe { lock.unlock() };
    }

    /// Who looked whether it pays to sit, and then slept for the lock, kept the others
    /// looking for as long, whatever time they had.
    #[test]
    fn who_waits_behind_one_that_sleeps_for_the_lock_waits_no_longer_than_it_wants() {
        let lock = WriterLock::new();
        assert!(enter(&lock, 1, Duration::ZERO));
        thread::scope(|scope| {
            let patient = scope.spawn(|| {
                let entered = enter(&lock, 2, Duration::MAX);
                leave(&lock);
                entered
            });
            while lock.rest.load(Relaxed) == 0 {
                thread::yield_now();
            }
            lock.resting.store(0, Relaxed);
            assert!(!enter(&lock, 3, PATIENCE_MIN));
            assert!(!patient.is_finished());
            leave(&lock);
            assert!(patient.join().expect("no panic"));
        });
    }

    #[test]
    fn who_waits_for_a_sync_sleeps_where_others_have_the_processors() {
        let lock = WriterLock::new();
        assert!(lock.try_lock_awake_for(Duration::ZERO));
        lock.hogged.store(1, Relaxed);
        assert!(!lock.try_lock_awake_for(Duration::from_micros(1)));
        assert_eq!(lock.hogged.load(Relaxed), 0);
        assert!(!lock.try_lock_awake_for(Duration::from_micros(1)));
        leave(&lock);
        assert!(lock.try_lock_awake_for(Duration::from_micros(1)));
    }

    #[test]
    fn who_comes_back_is_let_past_the_seat_and_nobody_else() {
        let lock = WriterLock::new();
        assert!(lock.try_enter(1));
        leave(&lock);
        lock.turns_end.store(2, Relaxed);
        lock.is_kept.store(true, Relaxed);
        assert!(!lock.try_enter(2), "another one is seated");
        for _ in 0..2 {
            assert!(lock.try_enter(1));
            leave(&lock);
        }
        assert!(!lock.try_enter(1), "it has had its turns");
        lock.is_kept.store(false, Relaxed);
        assert!(lock.try_enter(2));
        leave(&lock);
        assert_eq!(lock.last(), (2, 0));
    }

    /// Two statements that write one file and read another waited for one another, each
    /// with its turn at a table of one of the files.
    #[test]
    fn who_begins_after_others_takes_no_turn_at_a_table() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("made");
        let lock = &tree.0.writer;
        let [mut first, mut second] = [store.txn(), store.txn()];
        for turns in 0..3 {
            first.begin_statement(&[&tree]).expect("begins");
            assert_eq!(lock.last(), (first.visitor().context(), turns));
            first.rollback();
            let begun = second.begin_after_others(|txn| txn.begin_statement(&[&tree]));
            begun.expect("nobody has the lock");
            assert!(!lock.try_lock());
            second.rollback();
        }
    }
}
