//! Where committers sleep who can do nothing themselves.
//!
//! Two things wake them: a leader that let go of the flush lock, and, for those
//! who found that lock free but the front record still being copied, the copy's
//! end. Both sides follow the same pattern (register, full barrier, look again
//! against change, full barrier, look for sleepers), so no wake-up is lost, and
//! nobody pays for a wake-up that no one waits for.
//!
//! Sleepers whose wishes will come true at the same flush share a bell. A leader
//! first wakes one that it did not serve, whose sync then runs while the others
//! get up, and then all it served, with one ring. The rest sleeps on; whoever
//! leads next wakes one of them again. So wherever nobody leads and somebody
//! sleeps, one is awake, or waits for a copy's end. (Woken all together, those
//! not served got up for nothing; woken one by one, the last ones waited until
//! the leader had run again and again between those it had woken.)

use std::sync::Arc;

use super::locks::lock;
use crate::primitives::{AtomicUsize, Bell, Mutex, Ordering, fence};

#[derive(Default)]
pub(super) struct Parking {
    groups: Mutex<Vec<Group>>,
    parked: AtomicUsize,
    starved: AtomicUsize,
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// That this position, in the log's own count, is acknowledged.
    Acknowledged(u64),
    /// That this position is written.
    Written(u64),
    /// That anything more is written.
    Progress,
}

impl Wish {
    /// Whether it takes a sync, where the log syncs at all.
    pub(super) fn wants_sync(self) -> bool {
        matches!(self, Self::Acknowledged(_))
    }
}

/// Sleepers that share a bell.
struct Group {
    /// Of its members' wishes, the one that comes true first.
    first: Wish,
    /// How many have not left it.
    members: usize,
    bell: Arc<Bell>,
}

/// What a sleeper finds when it looks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    /// It can go on.
    GoOn,
    /// A leader is at work and will wake it.
    Led,
    /// The next record is still being copied.
    Starved,
}

impl Parking {
    /// Sleeps, unless `look` says to go on, until there may be reason to look
    /// again. `look` runs under this lot's lock. `is_covered` tells whether the
    /// flush in progress fulfils a wish; where it errs, somebody wakes too early.
    pub(super) fn park(
        &self,
        wish: Wish,
        is_covered: impl Fn(Wish) -> bool,
        look: impl Fn() -> Outlook,
    ) {
        self.parked.fetch_add(1, Ordering::SeqCst);
        self.sleep(wish, is_covered, look);
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    fn sleep(&self, wish: Wish, is_covered: impl Fn(Wish) -> bool, look: impl Fn() -> Outlook) {
        let mut groups = lock(&self.groups);
        fence(Ordering::SeqCst);
        let is_starved = match look() {
            Outlook::GoOn => return,
            Outlook::Led => false,
            Outlook::Starved => {
                self.starved.fetch_add(1, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                true
            }
        };
        if !is_starved || look() == Outlook::Starved {
            let bell = join(&mut groups, wish, is_covered);
            let heard = bell.read();
            drop(groups);
            bell.sleep(heard);
            if !bell.rang_for_all() {
                self.leave(&bell);
            }
        }
        if is_starved {
            self.starved.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Takes one who woke alone out of its group.
    fn leave(&self, bell: &Arc<Bell>) {
        let mut groups = lock(&self.groups);
        let own = |group: &Group| Arc::ptr_eq(&group.bell, bell);
        if let Some(index) = groups.iter().position(own) {
            groups[index].members -= 1;
            if groups[index].members == 0 {
                groups.remove(index);
            }
        }
    }

    /// After the flush lock was let go: `is_met` says which wishes came true.
    pub(super) fn flush_ended(&self, is_met: impl Fn(Wish) -> bool) {
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) > 0 {
            self.wake_served(is_met);
        }
    }

    /// After more was acknowledged without the flush lock, by a write that is a full
    /// barrier.
    pub(super) fn went_on(&self, is_met: impl Fn(Wish) -> bool) {
        if self.parked.load(Ordering::SeqCst) > 0 {
            self.wake_served(is_met);
        }
    }

    #[cold]
    fn wake_served(&self, is_met: impl Fn(Wish) -> bool) {
        let (served, next) = {
            let mut groups = lock(&self.groups);
            let served: Vec<Group> = groups.extract_if(.., |group| is_met(group.first)).collect();
            (served, groups.first().map(|group| Arc::clone(&group.bell)))
        };
        if let Some(next) = next {
            next.ring_one();
        }
        for group in served {
            group.bell.ring_all();
        }
    }

    /// After a record was published as filled (which is a full barrier).
    pub(super) fn record_filled(&self) {
        if self.starved.load(Ordering::SeqCst) > 0 {
            self.wake_all();
        }
    }

    /// Wakes everybody.
    #[cold]
    pub(super) fn wake_all(&self) {
        let groups = std::mem::take(&mut *lock(&self.groups));
        for group in groups {
            group.bell.ring_all();
        }
    }
}

/// Adds a member to the group whose wishes come true at the same flush.
fn join(groups: &mut Vec<Group>, wish: Wish, is_covered: impl Fn(Wish) -> bool) -> Arc<Bell> {
    let now = is_covered(wish);
    let alike = |group: &&mut Group| is_alike(group.first, wish) && is_covered(group.first) == now;
    if let Some(group) = groups.iter_mut().find(alike) {
        group.members += 1;
        group.first = earlier(group.first, wish);
        return Arc::clone(&group.bell);
    }
    let bell = Arc::default();
    groups.push(Group {
        first: wish,
        members: 1,
        bell: Arc::clone(&bell),
    });
    bell
}

/// Whether two wishes are of one kind.
fn is_alike(a: Wish, b: Wish) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

/// Of two wishes of one kind, the one that comes true first.
fn earlier(a: Wish, b: Wish) -> Wish {
    match (a, b) {
        (Wish::Acknowledged(a), Wish::Acknowledged(b)) => Wish::Acknowledged(a.min(b)),
        (Wish::Written(a), Wish::Written(b)) => Wish::Written(a.min(b)),
        _ => a,
    }
}
