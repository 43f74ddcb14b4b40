//! How many contexts write at a time, where commits wait for nothing.
//!
//! Writers on processors that are far from each other take the cache lines from one
//! another, and more writers than processors take the processors, in the middle of a
//! transaction: then fewer at a time get more done. How many is not reckoned but tried
//! (`trial.rs`): all, as many as there are processors, a quarter of them, one.
//!
//! 1. While there is a limit, a context that comes back within [`SOON`] needs a chair.
//!    It keeps it over its transactions, for [`TURN`], or until it has not come for
//!    [`AWAY`], or not gone for [`AT_WORK`]. While it is lent to nobody
//!    (`txn/contexts.rs`) whoever waits may take it.
//! 2. The others sleep in a queue. Who is first in it looks every [`LOOK`] for a chair
//!    that is free or whose holder is away, and asks who has had its turn to leave.
//! 3. Nobody waits for a chair who comes now and then, has just lost one, has a busy
//!    timeout shorter than the others' turns may take, or only reads; nobody waits for one while it
//!    holds a lock or a snapshot, and nobody needs one to end what it began.
//!
//! All of it is hints: who gets past without a chair is one more writer at work, and
//! every wait ends by the clock.

use crate::primitives::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crate::primitives::{AT_WORK, AWAY, SOON, TICK_BYTES, TICK_EVERY, TURN};
use crate::primitives::{Condvar, ExclusiveLock, Mutex, processors, wait_briefly};
use crate::trial::Trial;
use crate::waits::Waits;
use std::time::Duration;

/// How often who waits first looks.
const LOOK: Duration = Duration::from_micros(500);
/// Who has less time than this does not wait.
const PATIENCE_MIN: Duration = Duration::from_millis(100);
/// The most that are worth counting.
const CHAIRS_MAX: usize = 64;
/// Beside a chair's holder: somebody else has asked for it; it is lent to nobody.
const ASKED: u64 = 1;
const UNLENT: u64 = 2;

/// See the module's header.
pub(crate) struct Admission {
    /// How many write at a time; 0 for all.
    limit: AtomicU32,
    /// How many wait for a chair.
    waiting: AtomicU32,
    chairs: Box<[Chair]>,
    queue: ExclusiveLock,
    left: Mutex<()>,
    somebody_left: Condvar,
    /// Commits, as the ticks have told of them.
    commits: AtomicU64,
    trial: Mutex<Trial>,
}

/// A permission to write.
#[derive(Default)]
#[repr(align(128))]
struct Chair {
    /// Four times the context, [`ASKED`] and [`UNLENT`]; 0 where it is free.
    holder: AtomicU64,
    /// How often its holders have come and gone, odd while one is at work, and since when
    /// this one has it, in nanoseconds.
    visits: AtomicU64,
    since: AtomicU64,
    /// The visits that whoever waits first has seen last, and when those were new.
    seen: AtomicU64,
    seen_at: AtomicU64,
}

/// A context, as this knows it.
pub(crate) struct Visitor {
    context: u64,
    chair: Option<usize>,
    /// Whether the chair was told that it came and not yet that it went.
    at_work: bool,
    /// When it last ended a transaction without a chair, while there was a limit.
    ended: Duration,
    /// Since it last ticked: its commits, and these and their bytes.
    commits: u32,
    work: u32,
    slice: u64,
}

impl Visitor {
    /// The context of this number, which tells it from others; not 0.
    pub(crate) fn new(context: u64) -> Self {
        Self {
            context,
            chair: None,
            at_work: false,
            ended: Duration::ZERO,
            commits: 0,
            work: 0,
            slice: 0,
        }
    }

    /// The context's number.
    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    /// As what it holds a chair.
    fn holder(&self) -> u64 {
        self.context * 4
    }

    fn holds(&self, holder: u64) -> bool {
        holder & !(ASKED | UNLENT) == self.holder()
    }
}

impl Admission {
    pub(crate) fn new() -> Self {
        let chairs = processors().min(CHAIRS_MAX);
        Self {
            limit: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            chairs: (0..chairs).map(|_| Chair::default()).collect(),
            queue: ExclusiveLock::new(),
            left: Mutex::default(),
            somebody_left: Condvar::default(),
            commits: AtomicU64::new(0),
            trial: Mutex::new(Trial::new(chairs as u32)),
        }
    }

    /// How many contexts write at a time; `None` for all.
    pub(crate) fn limit(&self) -> Option<u32> {
        Some(self.limit.load(Relaxed)).filter(|limit| *limit > 0)
    }

    /// Before a context begins to write, while it holds nothing.
    #[inline]
    pub(crate) fn enter(&self, visitor: &mut Visitor, patience: Duration, waits: &Waits) {
        if self.limit.load(Relaxed) > 0 {
            self.enter_limited(visitor, patience, waits);
        }
    }

    fn enter_limited(&self, visitor: &mut Visitor, patience: Duration, waits: &Waits) {
        if let Some(at) = visitor.chair {
            let chair = &self.chairs[at];
            if chair.is_kept_by(visitor) && at < self.limit.load(Relaxed) as usize {
                chair.note_visit(true);
                visitor.at_work = true;
                return;
            }
            // This once without one: if it comes back soon after, it waits for one.
            self.leave_chair(visitor);
            return;
        }
        let is_soon = waits.now().saturating_sub(visitor.ended) <= SOON;
        if is_soon && patience >= PATIENCE_MIN {
            self.wait(visitor, patience, waits);
        }
    }

    /// Waits for a chair.
    #[cold]
    fn wait(&self, visitor: &mut Visitor, patience: Duration, waits: &Waits) {
        let until = waits.now().saturating_add(patience);
        self.waiting.fetch_add(1, Relaxed);
        if self.queue.try_lock_for(patience) {
            let mut left = self.left.lock();
            loop {
                let now = waits.now();
                let limit = self.limit.load(Relaxed) as usize;
                let chairs = &self.chairs[..limit];
                let taken = chairs.iter().position(|chair| chair.take(visitor, now));
                visitor.chair = taken;
                visitor.at_work = taken.is_some();
                if limit == 0 || taken.is_some() || now >= until {
                    break;
                }
                ask_longest(chairs, now);
                left = wait_briefly(&self.left, left, &self.somebody_left, LOOK);
            }
            drop(left);
            // SAFETY: taken above.
            unsafe { self.queue.hand_over() };
        }
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// Gives back the chair of a context, if it has one.
    pub(crate) fn leave_chair(&self, visitor: &mut Visitor) {
        let Some(at) = visitor.chair.take() else {
            return;
        };
        let gives = |holder| visitor.holds(holder).then_some(0);
        let given = self.chairs[at].holder.fetch_update(AcqRel, Relaxed, gives);
        if given.is_ok() {
            self.wake_first();
        }
    }

    /// When somebody lets go of a context.
    #[inline]
    pub(crate) fn note_unlent(&self, visitor: &Visitor) {
        if let Some(at) = visitor.chair {
            let notes = |holder| visitor.holds(holder).then_some(holder | UNLENT);
            let _ = self.chairs[at].holder.fetch_update(Relaxed, Relaxed, notes);
        }
    }

    /// After a context ended a transaction that may have written.
    #[inline]
    pub(crate) fn ended(&self, visitor: &mut Visitor, waits: &Waits) {
        if std::mem::take(&mut visitor.at_work)
            && let Some(at) = visitor.chair
        {
            self.chairs[at].note_visit(false);
        } else if self.limit.load(Relaxed) > 0 && visitor.chair.is_none() {
            visitor.ended = waits.now();
        }
    }

    /// Before a context goes back to its caller, with what there was to do after such a
    /// transaction: only from here on may it come back soon.
    #[inline]
    pub(crate) fn goes(&self, visitor: &mut Visitor, waits: &Waits) {
        if self.limit.load(Relaxed) > 0 && visitor.chair.is_none() {
            visitor.ended = waits.now();
        }
    }

    /// Counts a commit of a context, of so many bytes of redo; true now and then: the
    /// caller [`tick`](Self::tick)s.
    #[inline]
    pub(crate) fn count(&self, visitor: &mut Visitor, bytes: usize) -> bool {
        visitor.commits += 1;
        visitor.work += 1 + (bytes / TICK_BYTES).min(TICK_EVERY as usize) as u32;
        visitor.work >= TICK_EVERY
    }

    /// Sees whether another limit is to be tried. Where commits wait for syncs nobody may
    /// be limited.
    #[cold]
    pub(crate) fn tick(&self, visitor: &mut Visitor, now: Duration, may_limit: bool) {
        // Not those under leases of the log, which are in nobody's way.
        let told = u64::from(std::mem::take(&mut visitor.commits));
        visitor.work = 0;
        let commits = self.commits.fetch_add(told, Relaxed) + told;
        let Some(mut trial) = self.trial.try_lock() else {
            return;
        };
        if visitor.slice != trial.slice() {
            visitor.slice = trial.slice();
            trial.met_writer();
        }
        if trial.is_over(now, commits) {
            let waiting = self.waiting.load(Relaxed);
            self.set_limit(trial.next(now, commits, waiting, may_limit));
        }
    }

    /// From now on so many write at a time; 0 for all. Whoever has a chair loses it
    /// where that is news.
    fn set_limit(&self, limit: u32) {
        if self.limit.swap(limit, Relaxed) == limit {
            return;
        }
        for chair in &self.chairs {
            chair.holder.store(0, Relaxed);
        }
        self.wake_first();
    }

    /// Wakes who waits first: a chair is free, or nobody needs one.
    fn wake_first(&self) {
        let _left = self.left.lock();
        self.somebody_left.notify_one();
    }
}

impl Chair {
    /// Its holder comes, or goes.
    fn note_visit(&self, comes: bool) {
        let next = self.visits.load(Relaxed) + 1;
        let right = (next % 2 == 1) == comes;
        self.visits.store(next + u64::from(!right), Relaxed);
    }

    /// Whether its holder, which comes back, may keep it.
    fn is_kept_by(&self, visitor: &Visitor) -> bool {
        let own = visitor.holder();
        let holder = self.holder.load(Relaxed);
        let is_lent_again = || {
            let lent = self
                .holder
                .compare_exchange(own | UNLENT, own, AcqRel, Relaxed);
            lent.is_ok()
        };
        holder == own || holder == own | UNLENT && is_lent_again()
    }

    /// Takes the chair where it is free or its holder is away or lent to nobody. By who
    /// waits first.
    fn take(&self, visitor: &Visitor, now: Duration) -> bool {
        let nanos = nanos(now);
        let (holder, visits) = (self.holder.load(Relaxed), self.visits.load(Relaxed));
        if self.seen.swap(visits, Relaxed) != visits {
            self.seen_at.store(nanos, Relaxed);
        }
        let patience = if visits & 1 == 1 { AT_WORK } else { AWAY };
        let is_away = nanos.saturating_sub(self.seen_at.load(Relaxed)) >= self::nanos(patience);
        let is_taken = (holder == 0 || holder & UNLENT != 0 || is_away)
            && self
                .holder
                .compare_exchange(holder, visitor.holder(), AcqRel, Relaxed)
                .is_ok();
        if is_taken {
            self.since.store(nanos, Relaxed);
            self.seen_at.store(nanos, Relaxed);
            self.note_visit(true);
        }
        is_taken
    }
}

/// Asks for the chair that has been kept longest, if its holder has had its turn.
fn ask_longest(chairs: &[Chair], now: Duration) {
    let longest = chairs.iter().min_by_key(|chair| chair.since.load(Relaxed));
    if let Some(chair) = longest
        && nanos(now).saturating_sub(chair.since.load(Relaxed)) >= nanos(TURN)
    {
        // Its holder may leave it at this moment: a free chair must stay free.
        let ask = |holder: u64| (holder != 0).then_some(holder | ASKED);
        let _ = chair.holder.fetch_update(Relaxed, Relaxed, ask);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
