//! Transactions.
//!
//! A [`TxnContext`] is begun, used, and committed or rolled back, and can then be begun
//! again; its buffers stay. A [`Txn`] is one that is lent (`contexts.rs`). There are
//! four ways to begin:
//!
//! * **read**: the newest visible snapshot; never waits, never fails.
//! * **optimistic**: reads the visible snapshot, writes into private forks of
//!   it, locks nothing until commit. There the forks are validated against the
//!   head and replayed onto it, or the transaction loses ([`ErrorKind::Conflict`]).
//!   One of many that touch few trees has no snapshot until it needs one, and keeps
//!   its trees from others only until they ask for them (`holds.rs`).
//! * **immediate**: holds the writers' lock alone and cannot lose. It may begin ahead of
//!   what is acknowledged (`ahead.rs`).
//! * **statement**: an autocommitted statement. Holds the writer locks of its
//!   trees from the start, in the order of their numbers, works on the head and
//!   cannot lose. What it says counts when its base is visible: commit waits. It
//!   pins no snapshot until it reads anything else.
//!
//! Locks, in the only order they are taken: writers' lock (shared, or exclusive
//! for immediate), trees' writer locks by number, commit lock, or a lane's where a
//! statement commits under a lease of the log (`leases.rs`). A thread that
//! waits for log space or for frames may hold the first two, and the checkpoint
//! needs neither. Every wait is bounded (`busy.rs`).
//!
//! A transaction that fails half-way through an operation (disk, memory) keeps
//! its state from before the operation if it is rolled back to a savepoint taken
//! there; otherwise roll it back whole.
//!
//! [`ErrorKind::Conflict`]: crate::ErrorKind::Conflict

mod ahead;
mod append;
mod bulk;
mod busy;
mod by_tree;
mod clear;
mod commit;
mod compact;
mod contexts;
mod critical;
mod durability;
mod forks;
mod hold;
mod in_place;
mod lease;
mod locks;
mod many;
mod others;
mod read;
pub(crate) mod reads;
mod recycle;
pub(crate) mod redo;
mod replay;
mod retry;
pub(crate) mod rowid;
mod same;
mod savepoint;
mod spill;
mod start;
pub(crate) mod together;
mod trees;
mod writable;
mod write;

pub use append::{Appending, Suspended};
pub use busy::BusyHandler;
pub use contexts::Txn;
pub use critical::CommitLockStats;
pub(crate) use critical::{Critical, not_within_commit_lock};
pub use retry::{LOSSES_MAX, pause_after};
pub use savepoint::Savepoint;
pub use together::{commit_together, exclude_together, read_together};

use crate::admission::Visitor;
use crate::cache::{Charge, Frame, SlotId};
use crate::error::{Error, Result};
use crate::options::{Durability, Isolation};
use crate::primitives::{DENSE_LIMIT, Mutex, REDO_STEP};
use crate::reclaim::Dead;
use crate::store::{Core, Store};
use crate::tree::TreeId;
use crate::tree::fork::Fork;
use by_tree::ByTree;
use reads::Reads;
use std::sync::Arc;
use trees::View;

/// Where a transaction context stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxnState {
    /// Not begun.
    Idle,
    /// Reading a snapshot.
    Read,
    /// An explicit transaction that keeps nobody waiting.
    Optimistic,
    /// An explicit transaction that holds the writers' lock.
    Immediate,
    /// An autocommitted statement.
    Statement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WritersLock {
    None,
    Shared,
    Exclusive,
}

/// So many forks are kept for their buffers.
const RETIRED_MAX: usize = 4;

/// What a [`Txn`] is while it lives: how transactions are begun, used and ended.
///
/// A call that may not be made where the transaction stands, or with such a tree or key,
/// fails with `Misuse` and has done nothing. One that writes and fails in any other way
/// (disk, memory) may have done a part of its work: roll back to a savepoint taken before
/// it, or whole.
pub struct TxnContext {
    store: Store,
    core: Arc<Core>,
    visitor: Visitor,
    state: TxnState,
    slot: Option<SlotId>,
    /// Whether the slot pins `seq`; not before a statement needs it.
    pinned: bool,
    /// The snapshot it reads.
    seq: u64,
    /// Trees that it was told are not there.
    absent: Vec<TreeId>,
    forks: forks::Forks,
    /// Forks of past transactions, kept for their buffers.
    retired: Vec<Fork>,
    views: ByTree<View>,
    redo: Vec<u8>,
    spare: Vec<Frame>,
    recycling: recycle::Recycling,
    /// What the redo has and no fork yet.
    put_off: Vec<in_place::PutOff>,
    patience: in_place::Patience,
    succession: in_place::Succession,
    others: others::Others,
    leasing: lease::Leasing,
    hold: hold::Hold,
    /// A tree that changes only where writers are excluded.
    relies_on: Option<TreeId>,
    restraint: hold::Restraint,
    scratch: Vec<u8>,
    /// What the lists of the forks and the redo hold.
    charge: Charge,
    writers: WritersLock,
    locked: locks::Locked,
    /// Trees on whose rowids this transaction holds a claim.
    claims: Vec<rowid::Claim>,
    /// What its answers depended on, where a commit may lose.
    reads: Option<Arc<Mutex<Reads>>>,
    /// An empty set for the next one that needs it.
    no_reads: Option<Arc<Mutex<Reads>>>,
    /// While what it builds on is not known to be acknowledged.
    ahead: Option<ahead::Ahead>,
    /// Every answer counts (serializable), not only what decides about
    /// uniqueness and the schema.
    observes: bool,
    stored: Vec<u8>,
    /// No redo is kept: see `bulk.rs`.
    bulk: bool,
    /// Bytes of redo at which to ask whether to become bulk.
    bulk_at: usize,
    /// That is not asked now: see [`set_whole`](Self::set_whole).
    is_whole: bool,
    /// Nor before a row: see [`set_unasked`](Self::set_unasked).
    is_unasked: bool,
    /// Its commit logs where its pages are in place of its redo.
    attaches: bool,
    /// Bytes of redo at which to count it again.
    redo_step: usize,
    /// Something was written, kept in the redo or not; and in the transaction before
    /// this one.
    wrote: bool,
    wrote_before: bool,
    /// Something was put that is there as it was: see `same.rs`.
    left: bool,
    /// The number of its last commit.
    committed: u64,
    spilling: spill::Spilling,
    savepoints: savepoint::Savepoints,
    busy: busy::Busy,
    /// What its commits survive; and whether the log does more for them, and need not.
    durability: Durability,
    relaxes: bool,
    /// While it commits what is decided, and durable, in another store.
    is_decided: bool,
    /// Begun through a handle for reading only: it is refused to write.
    only_reads: bool,
    /// While it begins after others, in other stores.
    begins_after_others: bool,
}

impl TxnContext {
    fn new(store: &Store) -> Self {
        store.core().pool.context_begins();
        Self {
            store: store.for_context(),
            core: store.core().clone(),
            visitor: Visitor::new(store.core().pool.next_context()),
            state: TxnState::Idle,
            slot: None,
            pinned: false,
            seq: 0,
            absent: Vec::new(),
            forks: forks::Forks::default(),
            retired: Vec::new(),
            views: ByTree::default(),
            redo: Vec::new(),
            spare: Vec::new(),
            recycling: recycle::Recycling::default(),
            put_off: Vec::new(),
            patience: in_place::Patience::default(),
            succession: in_place::Succession::default(),
            others: others::Others::default(),
            leasing: lease::Leasing::default(),
            hold: hold::Hold::None,
            relies_on: None,
            restraint: hold::Restraint::default(),
            scratch: Vec::new(),
            charge: store.core().pool.charge(),
            writers: WritersLock::None,
            locked: locks::Locked::default(),
            claims: Vec::new(),
            reads: None,
            no_reads: None,
            ahead: None,
            observes: false,
            stored: Vec::new(),
            bulk: false,
            bulk_at: DENSE_LIMIT,
            is_whole: false,
            is_unasked: false,
            attaches: false,
            redo_step: REDO_STEP,
            wrote: false,
            wrote_before: false,
            left: false,
            committed: 0,
            spilling: spill::Spilling::default(),
            savepoints: savepoint::Savepoints::new(),
            busy: busy::Busy::within(store.options().busy_timeout),
            durability: store.options().durability,
            relaxes: false,
            is_decided: false,
            only_reads: false,
            begins_after_others: false,
        }
    }

    /// The store it belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Where it stands.
    #[inline]
    pub fn state(&self) -> TxnState {
        self.state
    }

    /// Whether something was written since the transaction began, or went back to a savepoint.
    pub fn has_written(&self) -> bool {
        self.wrote
    }

    /// The number of the last commit of this context that wrote something, by which
    /// [`stamp`](Self::stamp) identifies the trees that it changed; 0 before the first.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    // ---- beginning -------------------------------------------------------

    fn idle(&self) -> Result<()> {
        if self.state == TxnState::Idle {
            Ok(())
        } else {
            Err(Error::misuse("a transaction is under way in this context"))
        }
    }

    #[inline]
    fn pin_visible(&mut self) -> Result<()> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.visible_to_pin())?;
        self.slot = Some(slot);
        self.pinned = true;
        self.seq = seq;
        Ok(())
    }

    fn pin_head(&mut self) -> Result<()> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.head_to_pin())?;
        self.slot = Some(slot);
        self.pinned = true;
        self.seq = seq;
        Ok(())
    }

    /// For a statement, which works on the head of the trees that it locked: nobody
    /// else replaces their nodes, so they stay without a pin, and a statement whose
    /// thread waits for a processor keeps nothing of other trees in memory.
    fn pin_nothing(&mut self) -> Result<()> {
        let core = &*self.core;
        self.slot = Some(core.pool.readers.take()?);
        // In this order: what a lease holds that has ended since is in the head.
        let leased = core.leases.any();
        self.seq = core.head();
        if leased {
            self.find_leased_head();
        }
        Ok(())
    }

    /// Before a statement reads what others may replace: a tree that it did not lock,
    /// or through a cursor, which may outlive its locks. The trees it locked are at the
    /// head of this moment what they were when it began.
    #[cold]
    fn pin_late(&mut self) -> Result<()> {
        let core = &*self.core;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        self.seq = core.pool.readers.pin_in(slot, || core.head_to_pin());
        self.pinned = true;
        Ok(())
    }

    /// Begins to read the newest visible state.
    #[inline]
    pub fn begin_read(&mut self) -> Result<()> {
        self.idle()?;
        self.pin_visible()?;
        self.state = TxnState::Read;
        Ok(())
    }

    /// Begins an explicit transaction that keeps nobody waiting until it commits. It
    /// reads one state of the whole store, which holds all that was acknowledged before
    /// this call: the one of this moment, or, where this context's transactions touch
    /// few trees each, that of a later one, at the latest when it comes to the last of
    /// its trees.
    pub fn begin(&mut self, isolation: Isolation) -> Result<()> {
        self.writable()?;
        self.restraint.note_begin();
        let holds = self.may_hold();
        // Who has a lease is in nobody's way.
        if self.wrote_before && !(holds && self.leasing.has_lease()) {
            self.enter();
        }
        match holds {
            true => self.begin_open()?,
            false => self.pin_visible()?,
        }
        self.reads = Some(self.no_reads.take().unwrap_or_default());
        self.observes = isolation == Isolation::Serializable;
        self.state = TxnState::Optimistic;
        Ok(())
    }

    /// Before this context begins to write.
    #[inline]
    pub(super) fn enter(&mut self) {
        if self.begins_after_others {
            return;
        }
        let core = &*self.core;
        core.admission
            .enter(&mut self.visitor, self.busy.timeout, &core.pool.waits);
    }

    /// How it stands with the turns.
    #[cfg(test)]
    pub(crate) fn visitor(&mut self) -> &mut Visitor {
        &mut self.visitor
    }

    /// Where only some write at a time, waits for this context's turn, as beginning does.
    /// True where its last transaction wrote, so that it takes turns here. For who begins in
    /// several stores next, [`each after the others`](Self::begin_after_others), where no
    /// turn is waited for.
    ///
    /// # Errors
    /// `Misuse` where a transaction is under way.
    pub fn take_turn(&mut self) -> Result<bool> {
        self.idle()?;
        if self.wrote_before && !self.leasing.has_lease() {
            self.enter();
        }
        Ok(self.wrote_before)
    }

    /// Begins in this way where the caller may have begun in other stores before: whoever
    /// is at its turn here, and comes back for it at once, is not waited for. Two who each
    /// have their turn in one of two stores would wait for one another until either ends.
    ///
    /// # Errors
    /// What beginning may fail with.
    pub fn begin_after_others(
        &mut self,
        begin: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.begins_after_others = true;
        let begun = begin(self);
        self.begins_after_others = false;
        begun
    }

    // ---- ending ----------------------------------------------------------

    /// Undoes everything and goes back to idle.
    pub fn rollback(&mut self) {
        // What could not be written is not needed any more.
        let _ = self.settle_spills();
        self.recycling.forget();
        for at in 0..self.forks.len() {
            let made = std::mem::take(&mut self.forks[at].own);
            let watched = self.forks[at].is_watched();
            self.abandon(at, made, watched);
            if self.forks[at].created {
                self.core.forget_tree(self.forks[at].tree.id());
            }
        }
        self.end();
    }

    /// Releases whatever the transaction holds. The forks' nodes have been
    /// published or abandoned.
    fn end(&mut self) {
        self.let_go();
        self.relies_on = None;
        self.put_off.clear();
        self.locked.unlock();
        self.unlock_writers();
        for fork in self.forks.iter_mut() {
            fork.count_made(&self.core.pool);
        }
        self.forks.retire(&mut self.retired, RETIRED_MAX);
        self.retired.iter_mut().for_each(Fork::trim);
        self.charge.set(0);
        self.views.clear();
        self.absent.clear();
        self.redo.clear();
        if self.redo.capacity() > REDO_STEP {
            self.redo = Vec::new();
        }
        for claim in self.claims.drain(..) {
            claim.tree.0.rowids.release();
        }
        self.leave_ahead();
        self.forget_reads();
        self.observes = false;
        self.only_reads = false;
        self.bulk = false;
        self.end_spilling();
        self.bulk_at = DENSE_LIMIT;
        self.set_unasked(false);
        self.attaches = false;
        self.redo_step = REDO_STEP;
        if self.state != TxnState::Read {
            self.wrote_before = self.wrote;
            self.core
                .admission
                .ended(&mut self.visitor, &self.core.pool.waits);
        }
        (self.wrote, self.left) = (false, false);
        self.savepoints.end();
        self.keep_spare(self.core.pool.spare_share());
        if let Some(slot) = self.slot.take() {
            self.core.pool.readers.release(&slot);
        }
        self.pinned = false;
        self.state = TxnState::Idle;
    }

    /// What it has read counts no more.
    fn forget_reads(&mut self) {
        let Some(mut reads) = self.reads.take() else {
            return;
        };
        // A cursor that outlives the transaction may still write to it.
        if let Some(own) = Arc::get_mut(&mut reads) {
            own.get_mut().clear();
            self.no_reads = Some(reads);
        }
    }

    /// Frees nodes that a fork made and that will not be published.
    fn abandon(&mut self, fork: usize, made: Vec<crate::cache::ChildRef>, watched: bool) {
        if made.is_empty() {
            return;
        }
        debug_assert!(
            !self.spilling.is_under_way(),
            "some of them are being written"
        );
        let fork = &self.forks[fork];
        if watched {
            // Cursors may still read them; their pins are at our snapshot.
            let dead = made.into_iter().map(|node| Dead {
                death: self.seq + 1,
                tree: fork.tree.id().0,
                ..Dead::node(node, self.seq)
            });
            self.core.lock_reclaim().keep(self.seq, dead);
            return;
        }
        let (mut extents, mut unwritten) = (Vec::new(), 0);
        for node in made {
            let pool = &self.core.pool;
            extents.extend(pool.bury(node, &mut self.spare, &mut unwritten));
        }
        self.core.pool.note_buried(unwritten);
        self.core.space.free(extents);
        // In a small cache they could be nearly all frames, and reading waits for
        // those that the pool has.
        self.keep_spare(self.core.pool.spare_share());
    }

    /// Where there are more spare frames than `most`, gives back all but half as
    /// many.
    pub(super) fn keep_spare(&mut self, most: usize) {
        if self.spare.len() > most {
            let mut surplus = self.spare.split_off(most / 2);
            self.core.pool.give_frames(&mut surplus);
        }
    }
}

fn no_slot() -> Error {
    Error::misuse("no transaction is under way")
}

impl Drop for TxnContext {
    fn drop(&mut self) {
        if self.state != TxnState::Idle {
            self.rollback();
        }
        self.leave_lane();
        self.core.admission.leave_chair(&mut self.visitor);
        self.core.pool.give_frames(&mut self.spare);
        self.core.pool.context_ends();
    }
}
