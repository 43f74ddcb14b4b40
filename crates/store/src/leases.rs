//! Statements that commit without a word to others: who holds a lease of the log.
//!
//! Where nothing is synced, what commits share (the commit lock, the end of the log,
//! who is acknowledged) costs them more than their work: cache lines that go back and
//! forth at every commit. A context whose statements follow one another takes a lease
//! (`fulgurite_wal::Lease`): numbers and log space for some hundred commits, which it
//! then makes under its own *lane* alone (`txn/lease.rs`).
//!
//! 1. While a lease is open the number that readers see, and the head, stay before
//!    it. Whoever asks for either to begin something (a snapshot, a transaction's
//!    commit, a checkpoint, a sync) *settles* first: it ends all leases, and what they
//!    hold is visible then. So nobody can tell that their commits, of which a later
//!    number may be older, have no order between lanes.
//! 2. Numbers are given to commits without a lease only while none is open: leases are
//!    opened, and those commits numbered, under the commit lock. The trees that a
//!    leased commit writes are locked by its statement, as ever.
//! 3. No snapshot lies within a lease's numbers, and none is begun before them while
//!    it is open: who pins looks, after that, whether a lease is open, and who frees
//!    what a leased commit replaced looks at the pins after its lease was opened. So
//!    that is freed at once.
//! 4. Once a system was started anew, what leases held counts only where all of their
//!    phase is there, so a process that ended before its last phase did loses that.
//!    Hence phases are short ([`PHASE_MAX`]).
//! 5. Locks: `lanes`, then one lane's, then none that is waited for. Who has `lanes`
//!    to open a lease waits for records that were placed before, whose owners ask for
//!    neither; who is secluded, for the commit lock and for its own record, too.
//! 6. Where commits are synced, whoever commits in place has `lanes` meanwhile and counts
//!    as a lease that is open: who looks whether one is waits for `lanes`. Its number and
//!    its place in the log are given as to any commit.

use crate::error::{Error, Result};
use crate::holds::Holding;
use crate::primitives::atomic::{AtomicBool, AtomicU64, Ordering::*};
use crate::primitives::{Mutex, MutexGuard};
use crate::store::{Core, log_error};
use fulgurite_disk::LineStart;
use fulgurite_wal::Lease;
use std::sync::Arc;
use std::time::Duration;

/// What a context has that others may end. On cache lines of its own.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Lane {
    start: LineStart,
    pub(crate) occupancy: Mutex<Occupancy>,
    /// Whether its transaction holds anything. Written under the lock.
    pub(crate) held: AtomicBool,
    end: LineStart,
}

/// A context's lease, if it has one, and what its transaction holds (`holds.rs`).
#[derive(Default)]
pub(crate) struct Occupancy {
    pub(crate) lease: Option<Lease>,
    /// Commits under it that copied nothing (`txn/in_place.rs`).
    pub(crate) in_place: u64,
    pub(crate) holding: Holding,
}

/// See the module's header.
#[derive(Default)]
pub(crate) struct Leases {
    /// How many leases are open, and whether somebody is secluded. Both ways by who holds
    /// `lanes`; of leases more only under the commit lock.
    open: AtomicU64,
    lanes: Mutex<Lanes>,
    /// Commits that copied nothing, in seclusion or under leases that have ended.
    in_place: AtomicU64,
}

/// All lanes, and when the first of the leases was opened that are open.
#[derive(Default)]
pub(crate) struct Lanes {
    all: Vec<Arc<Lane>>,
    phase_began: Duration,
}

/// As long as it lives, no lease is open.
pub(crate) type Calm<'c> = MutexGuard<'c, Lanes>;

/// As long as it lives, no lease is open and nobody begins to read: for whoever asks
/// what there is to be read it is like a lease, whose end they wait for.
pub(crate) struct Seclusion<'c> {
    leases: &'c Leases,
    _calm: Calm<'c>,
}

impl Seclusion<'_> {
    /// A commit copied nothing.
    pub(crate) fn note_in_place(&self) {
        self.leases.in_place.fetch_add(1, Relaxed);
    }
}

impl Drop for Seclusion<'_> {
    fn drop(&mut self) {
        self.leases.open.fetch_sub(1, SeqCst);
    }
}

impl Lanes {
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.all.iter().map(|lane| &**lane)
    }
}

/// After this time who wants a lease first ends those that are open.
const PHASE_MAX: Duration = Duration::from_millis(20);

impl Leases {
    /// Whether any lease is open, or somebody secluded. Under the commit lock no lease is
    /// opened after this.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.open.load(SeqCst) != 0
    }

    /// How many commits copied nothing, apart from those of leases that are open.
    pub(crate) fn in_place(&self) -> u64 {
        self.in_place.load(Relaxed)
    }
}

impl Core {
    /// Makes visible what leases hold.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.leases.any() {
            drop(self.calm());
        }
    }

    /// The same, and none is opened until the answer is dropped.
    #[cold]
    pub(crate) fn calm(&self) -> Calm<'_> {
        crate::txn::not_within_commit_lock();
        let lanes = self.leases.lanes.lock();
        if self.leases.any() {
            self.end_all(&lanes);
        }
        lanes
    }

    /// The same, and who pins waits until the answer is dropped. Pins of before are to be
    /// looked at after this.
    pub(crate) fn seclude(&self) -> Seclusion<'_> {
        let calm = self.calm();
        self.leases.open.fetch_add(1, SeqCst);
        Seclusion {
            leases: &self.leases,
            _calm: calm,
        }
    }

    fn end_all(&self, lanes: &Lanes) {
        for lane in &lanes.all {
            self.end_lease(&mut lane.occupancy.lock());
        }
        debug_assert!(!self.leases.any());
    }

    /// Ends a lane's lease, for who holds all lanes.
    fn end_lease(&self, occupancy: &mut Occupancy) {
        if let (Some(wal), Some(lease)) = (self.wal(), occupancy.lease.take()) {
            let in_place = std::mem::take(&mut occupancy.in_place);
            self.leases.in_place.fetch_add(in_place, Relaxed);
            let is_last = self.leases.open.load(SeqCst) == 1;
            wal.end_lease(lease, is_last);
            self.raise_head(wal.acked());
            self.leases.open.fetch_sub(1, SeqCst);
        }
    }

    /// Makes a lane known, whose lease others may end from now on.
    pub(crate) fn add_lane(&self) -> Arc<Lane> {
        let lane = Arc::new(Lane::default());
        self.leases.lanes.lock().all.push(lane.clone());
        lane
    }

    /// Ends a lane's lease and forgets the lane.
    pub(crate) fn remove_lane(&self, lane: &Arc<Lane>) {
        let mut lanes = self.leases.lanes.lock();
        self.end_lease(&mut lane.occupancy.lock());
        lanes.all.retain(|other| !Arc::ptr_eq(other, lane));
    }

    /// Ends the lease that a lane has and opens one for about so many commits with about
    /// so much redo each; its first number. `None` where there is none to be had.
    pub(crate) fn open_lease(
        &self,
        lane: &Lane,
        (commits, redo_len): (u64, usize),
        patience: Duration,
    ) -> Result<Option<u64>> {
        let Some(wal) = self.wal() else {
            return Ok(None);
        };
        // Before any lock, since it may wait for a checkpoint.
        let permit = wal
            .reserve_lease(commits, redo_len, patience)
            .map_err(log_error)?;
        let mut lanes = self.leases.lanes.lock();
        self.end_lease(&mut lane.occupancy.lock());
        let Some(permit) = permit else {
            return Ok(None);
        };
        let now = self.pool.waits.now();
        if self.leases.any() && now.saturating_sub(lanes.phase_began) > PHASE_MAX {
            self.end_all(&lanes);
        }
        if !self.leases.any() {
            lanes.phase_began = now;
        }
        let placed = {
            let mut commit = self.commit.lock();
            let first = commit.head + 1;
            commit.head += permit.numbers();
            self.leases.open.fetch_add(1, SeqCst);
            wal.place_lease(permit, first)
        };
        let begun = wal.begin_lease(placed).map_err(log_error);
        let first = begun.as_ref().map(Lease::first_seq).map_err(Error::clone);
        match begun {
            Ok(lease) => lane.occupancy.lock().lease = Some(lease),
            // Of a log that has failed.
            Err(_) => drop(self.leases.open.fetch_sub(1, SeqCst)),
        }
        drop(lanes);
        if let Some(lease) = &lane.occupancy.lock().lease {
            wal.prepare_lease(lease);
        }
        first.map(Some)
    }
}
