//! Transactions.
//!
//! A [`Txn`] is a context that is begun, used, and committed or rolled back, and
//! can then be begun again; its buffers stay. There are four ways to begin:
//!
//! * **read**: the newest visible snapshot; never waits, never fails.
//! * **optimistic**: reads the visible snapshot, writes into private forks of
//!   it, locks nothing until commit. There the forks are validated against the
//!   head and replayed onto it, or the transaction loses ([`ErrorKind::Conflict`]).
//! * **immediate**: holds the writers' lock alone and cannot lose.
//! * **statement**: an autocommitted statement. Holds the writer locks of its
//!   trees from the start, in the order of their numbers, works on the head and
//!   cannot lose. What it says counts when its base is visible: commit waits.
//!
//! Locks, in the only order they are taken: writers' lock (shared, or exclusive
//! for immediate), trees' writer locks by number, commit lock. A thread that
//! waits for log space or for frames may hold the first two, and the checkpoint
//! needs neither. Every wait is bounded by `busy_timeout`.
//!
//! A transaction that fails half-way through an operation (disk, memory) keeps
//! its state from before the operation if it is rolled back to a savepoint taken
//! there; otherwise roll it back whole.

mod bulk;
mod commit;
mod critical;
mod locks;
pub(crate) mod reads;
pub(crate) mod redo;
mod replay;
mod retry;
pub(crate) mod rowid;
mod spill;

pub use critical::CommitLockStats;
pub(crate) use critical::{Critical, not_within_commit_lock};
pub use retry::{LOSSES_MAX, pause_after};

use crate::cache::{Charge, Frame, SlotId};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Key;
use crate::options::Isolation;
use crate::primitives::Mutex;
use crate::reclaim::Dead;
use crate::store::{Core, Store};
use crate::tree::cursor::Cursor;
use crate::tree::edit::{IfExists, Wrote};
use crate::tree::fork::{self, Context, Fork, Mark};
use crate::tree::versions::Root;
use crate::tree::walk::Ahead;
use crate::tree::{EMPTY, KeyKind, Tree, TreeId, overflow, walk};
use reads::Reads;
use redo::Op;
use std::sync::Arc;
use std::time::Duration;

/// Where a transaction context stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxnState {
    /// Not begun.
    Idle,
    /// Reading a snapshot.
    Read,
    /// An explicit transaction that locks nothing yet.
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

/// A tree's root as this transaction sees it, if it has not written to it.
struct View {
    tree: TreeId,
    root: Root,
}

/// A transaction context. `Send`; dropping it rolls back.
pub struct Txn {
    store: Store,
    core: Arc<Core>,
    state: TxnState,
    slot: Option<SlotId>,
    /// The snapshot it reads.
    seq: u64,
    forks: Vec<Fork>,
    /// Forks of past transactions, kept for their buffers.
    retired: Vec<Fork>,
    views: Vec<View>,
    redo: Vec<u8>,
    spare: Vec<Frame>,
    scratch: Vec<u8>,
    /// What the lists of the forks and the redo hold.
    charge: Charge,
    writers: WritersLock,
    locked: Vec<Tree>,
    /// Trees on whose rowids this transaction holds a claim.
    claims: Vec<Tree>,
    /// What its answers depended on, where a commit may lose.
    reads: Option<Arc<Mutex<Reads>>>,
    /// Every answer counts (serializable), not only what decides about
    /// uniqueness and the schema.
    observes: bool,
    stored: Vec<u8>,
    /// No redo is kept: see `bulk.rs`.
    bulk: bool,
    /// Bytes of redo at which to become bulk.
    bulk_at: usize,
    /// Bytes of redo at which to count it again.
    redo_step: usize,
    /// Something was written, kept in the redo or not.
    wrote: bool,
    spiller: Option<spill::Spiller>,
    busy_timeout: Duration,
}

/// A place to roll back to. Taking one costs the same whatever was written.
#[derive(Debug, Clone)]
pub struct Savepoint {
    marks: Vec<(TreeId, Mark)>,
    redo: usize,
}

/// Bytes of redo after which it is counted anew. [`bulk::REDO_LIMIT`] is a
/// multiple of it.
const REDO_STEP: usize = 512 << 10;
/// Spare frames a context keeps between transactions.
const SPARE_KEPT: usize = 32;

impl Txn {
    pub(crate) fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            core: store.core().clone(),
            state: TxnState::Idle,
            slot: None,
            seq: 0,
            forks: Vec::new(),
            retired: Vec::new(),
            views: Vec::new(),
            redo: Vec::new(),
            spare: Vec::new(),
            scratch: Vec::new(),
            charge: store.core().pool.charge(),
            writers: WritersLock::None,
            locked: Vec::new(),
            claims: Vec::new(),
            reads: None,
            observes: false,
            stored: Vec::new(),
            bulk: false,
            bulk_at: bulk::REDO_LIMIT,
            redo_step: REDO_STEP,
            wrote: false,
            spiller: None,
            busy_timeout: store.options().busy_timeout,
        }
    }

    /// The store it belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Bounds every wait of this context for a lock. At first it is the store's
    /// `busy_timeout`.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        self.busy_timeout = timeout;
    }

    /// Where it stands.
    #[inline]
    pub fn state(&self) -> TxnState {
        self.state
    }

    // ---- beginning -------------------------------------------------------

    fn idle(&self) -> Result<()> {
        if self.state == TxnState::Idle {
            Ok(())
        } else {
            Err(Error::misuse("a transaction is under way in this context"))
        }
    }

    fn writable(&self) -> Result<()> {
        self.idle()?;
        self.store.check_writable()
    }

    #[inline]
    fn pin_visible(&mut self) -> Result<()> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.visible())?;
        self.slot = Some(slot);
        self.seq = seq;
        Ok(())
    }

    fn pin_head(&mut self) -> Result<()> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.head())?;
        self.slot = Some(slot);
        self.seq = seq;
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

    /// Begins an explicit transaction that locks nothing until it commits.
    pub fn begin(&mut self, isolation: Isolation) -> Result<()> {
        self.writable()?;
        self.pin_visible()?;
        self.reads = Some(Arc::default());
        self.observes = isolation == Isolation::Serializable;
        self.state = TxnState::Optimistic;
        Ok(())
    }

    // ---- ending ----------------------------------------------------------

    /// Undoes everything and goes back to idle.
    pub fn rollback(&mut self) {
        // What could not be written is not needed any more.
        let _ = self.settle_spills();
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
        self.unlock_trees();
        self.unlock_writers();
        self.retired.append(&mut self.forks);
        self.retired.truncate(4);
        self.retired.iter_mut().for_each(Fork::trim);
        self.charge.set(0);
        self.views.clear();
        self.redo.clear();
        if self.redo.capacity() > REDO_STEP {
            self.redo = Vec::new();
        }
        for tree in self.claims.drain(..) {
            tree.0.rowids.release();
        }
        self.reads = None;
        self.observes = false;
        self.bulk = false;
        self.bulk_at = bulk::REDO_LIMIT;
        self.redo_step = REDO_STEP;
        self.wrote = false;
        if self.spare.len() > SPARE_KEPT {
            let mut surplus = self.spare.split_off(SPARE_KEPT / 2);
            self.core.pool.give_frames(&mut surplus);
        }
        if let Some(slot) = self.slot.take() {
            self.core.pool.readers.release(&slot);
        }
        self.state = TxnState::Idle;
    }

    /// Frees nodes that a fork made and that will not be published.
    fn abandon(&mut self, fork: usize, made: Vec<crate::cache::ChildRef>, watched: bool) {
        if made.is_empty() {
            return;
        }
        let fork = &self.forks[fork];
        if watched {
            // Cursors may still read them; their pins are at our snapshot.
            let dead = made.into_iter().map(|node| Dead {
                death: self.seq + 1,
                tree: fork.tree.id().0,
                ..Dead::node(node, self.seq)
            });
            self.core.reclaim.lock().keep(self.seq, dead);
            return;
        }
        let mut extents = Vec::new();
        for node in made {
            extents.extend(self.core.pool.bury(node, &mut self.spare));
        }
        self.core.space.free(extents);
    }

    // ---- savepoints ------------------------------------------------------

    /// A place to roll back to.
    pub fn savepoint(&mut self) -> Savepoint {
        let pool = &self.core.pool;
        Savepoint {
            marks: self
                .forks
                .iter_mut()
                .map(|fork| (fork.tree.id(), fork.mark(pool)))
                .collect(),
            redo: self.redo.len(),
        }
    }

    /// Puts trees and counts back to what they were; the savepoint stays.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.settle_spills()?;
        if !self.bulk {
            if savepoint.redo > self.redo.len() {
                return Err(Error::misuse("the savepoint is of another transaction"));
            }
            self.redo.truncate(savepoint.redo);
        }
        let mut at = 0;
        while at < self.forks.len() {
            let id = self.forks[at].tree.id();
            let known = savepoint.marks.iter().find(|(tree, _)| *tree == id);
            let watched = self.forks[at].is_watched();
            let mark = match known {
                Some((_, mark)) => mark.clone(),
                None => self.forks[at].first_mark(),
            };
            let made = self.forks[at].rewind(&mark, &self.core.pool);
            self.abandon(at, made, watched);
            if known.is_none() && self.forks[at].created {
                self.core.forget_tree(id);
                self.forks.remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    // ---- finding trees ---------------------------------------------------

    fn fork_of(&self, tree: TreeId) -> Option<usize> {
        self.forks.iter().position(|fork| fork.tree.id() == tree)
    }

    /// The version of a tree at this transaction's snapshot.
    #[inline]
    fn view(&mut self, tree: &Tree) -> Result<usize> {
        if self.state == TxnState::Idle {
            return Err(Error::misuse("no transaction is under way"));
        }
        if let Some(at) = self.views.iter().position(|view| view.tree == tree.id()) {
            return Ok(at);
        }
        let root = tree.0.versions.at(self.seq).unwrap_or(EMPTY);
        if root.dropped {
            return Err(Error::misuse(format!("tree {} was dropped", tree.id().0)));
        }
        self.views.push(View {
            tree: tree.id(),
            root,
        });
        Ok(self.views.len() - 1)
    }

    /// The fork of a tree, made when it is first written to.
    fn fork(&mut self, tree: &Tree) -> Result<usize> {
        if let Some(at) = self.fork_of(tree.id()) {
            if self.forks[at].dropped {
                return Err(Error::misuse(format!("tree {} was dropped", tree.id().0)));
            }
            return Ok(at);
        }
        match self.state {
            TxnState::Idle | TxnState::Read => {
                return Err(Error::misuse("this transaction only reads"));
            }
            TxnState::Statement => {
                if !self.locked.iter().any(|locked| locked.id() == tree.id()) {
                    return Err(Error::misuse(format!(
                        "tree {} was not named when the statement began",
                        tree.id().0
                    )));
                }
            }
            TxnState::Optimistic | TxnState::Immediate => {}
        }
        self.lock_for_bulk(tree)?;
        let view = self.view(tree)?;
        let base = self.views[view].root;
        let fork = self.new_fork(tree, base);
        self.forks.push(fork);
        Ok(self.forks.len() - 1)
    }

    fn new_fork(&mut self, tree: &Tree, base: Root) -> Fork {
        match self.retired.pop() {
            Some(mut fork) => {
                fork.restart(tree.clone(), base, self.seq, &self.core.pool);
                fork
            }
            None => Fork::new(tree.clone(), base, self.seq, &self.core.pool),
        }
    }

    // ---- reading ---------------------------------------------------------

    fn observe(&self, tree: &Tree, key: Key<'_>) {
        if self.observes {
            self.observe_always(tree, key);
        }
    }

    /// Also under `snapshot`: uniqueness is decided by this answer.
    fn observe_always(&self, tree: &Tree, key: Key<'_>) {
        if let Some(reads) = &self.reads {
            reads.lock().point(tree, key);
        }
    }

    /// Makes the transaction depend on every entry of a tree, under `snapshot`
    /// too: its commit loses if another one changed the tree meanwhile.
    pub fn depend_on(&mut self, tree: &Tree) {
        if let Some(reads) = &self.reads {
            reads.lock().whole(tree);
        }
    }

    /// Copies the value under `key` into `out`, which is cleared first; false
    /// if there is none.
    #[inline]
    pub fn get_into(&mut self, tree: &Tree, key: Key<'_>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_out(tree, (key, Ahead::Slot), out)
    }

    /// As [`get_into`](Self::get_into), for an entry that is about to be changed:
    /// the page, which the change will copy, is on its way meanwhile.
    #[inline]
    pub fn get_to_change(&mut self, tree: &Tree, key: Key<'_>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_out(tree, (key, Ahead::Page), out)
    }

    #[inline]
    fn copy_out(
        &mut self,
        tree: &Tree,
        (key, ahead): (Key<'_>, Ahead),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        check_kind(tree, key)?;
        self.observe(tree, key);
        let found = self.look_up(tree, (key, ahead), |entry| {
            entry.map(|(value, is_overflow)| {
                out.extend_from_slice(value);
                is_overflow
            })
        })?;
        if found == Some(true) {
            self.load_overflow(tree, out)?;
        }
        Ok(found.is_some())
    }

    #[cold]
    fn load_overflow(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<()> {
        self.stored.clear();
        self.stored.append(out);
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        overflow::read(&self.core.pool, slot, tree.id().0, &self.stored, out)
    }

    #[inline]
    fn look_up<R>(
        &mut self,
        tree: &Tree,
        key: (Key<'_>, Ahead),
        found: impl FnOnce(Option<(&[u8], bool)>) -> R,
    ) -> Result<R> {
        if !self.forks.is_empty()
            && let Some(at) = self.fork_of(tree.id())
        {
            let slot = self.slot.as_ref().ok_or_else(no_slot)?;
            return self.forks[at].get(&self.core.pool, slot, key, found);
        }
        let view = self.view(tree)?;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let root = &mut self.views[view].root;
        let was = root.node;
        let answer = fork::get(
            &self.core.pool,
            slot,
            tree.id().0,
            &mut root.node,
            key,
            found,
        );
        if root.node != was {
            tree.0.versions.refine(was.reference, root.seq, root.node);
        }
        answer
    }

    /// Whether there is an entry under `key`.
    #[inline]
    pub fn contains(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        check_kind(tree, key)?;
        self.observe(tree, key);
        self.has(tree, key)
    }

    /// As [`contains`](Self::contains), to decide about uniqueness: the commit
    /// depends on the answer under `snapshot` too.
    #[inline]
    pub fn is_taken(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        check_kind(tree, key)?;
        self.observe_always(tree, key);
        self.has(tree, key)
    }

    fn has(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        self.look_up(tree, (key, Ahead::Slot), |entry| entry.is_some())
    }

    /// The number of entries; costs the same however many they are.
    pub fn count(&mut self, tree: &Tree) -> Result<u64> {
        if self.observes {
            self.depend_on(tree);
        }
        self.estimate(tree)
    }

    /// The number of entries for planning: as [`count`](Self::count), but the
    /// transaction does not depend on the answer.
    pub fn estimate(&mut self, tree: &Tree) -> Result<u64> {
        if let Some(at) = self.fork_of(tree.id()) {
            return Ok(self.forks[at].count);
        }
        let view = self.view(tree)?;
        Ok(self.views[view].root.count)
    }

    /// Identifies what this transaction sees in a tree: equal stamps mean equal
    /// contents. Never reused.
    #[inline]
    pub fn stamp(&mut self, tree: &Tree) -> Result<u64> {
        if let Some(at) = self.fork_of(tree.id())
            && self.forks[at].changed
        {
            // Private states are numbered apart from commits.
            let fork = &mut self.forks[at];
            if fork.stamp.0 != fork.edits {
                fork.stamp = (fork.edits, self.core.next_stamp());
            }
            return Ok(1 << 63 | fork.stamp.1);
        }
        let view = self.view(tree)?;
        Ok(self.views[view].root.seq)
    }

    /// A cursor over the tree as it is now. Later writes of this transaction do
    /// not show in it, and it may outlive the transaction.
    pub fn cursor(&mut self, tree: &Tree) -> Result<Cursor> {
        let observer = self
            .reads
            .as_ref()
            .filter(|_| self.observes)
            .map(|reads| Reads::observer(reads, tree));
        if let Some(at) = self.fork_of(tree.id()) {
            let slot = self.core.pool.readers.pin_also(self.seq)?;
            let fork = &mut self.forks[at];
            fork.observed = true;
            let watch = Some(fork.cursors.clone());
            return Ok(Cursor::new(
                self.store.clone(),
                slot,
                tree,
                fork.root,
                watch,
                observer,
            ));
        }
        let view = self.view(tree)?;
        let root = self.views[view].root.node;
        let slot = self.core.pool.readers.pin_also(self.seq)?;
        Ok(Cursor::new(
            self.store.clone(),
            slot,
            tree,
            root,
            None,
            observer,
        ))
    }

    // ---- writing ---------------------------------------------------------

    #[inline]
    fn with_fork<R>(
        &mut self,
        tree: &Tree,
        edit: impl FnOnce(&mut Fork, &mut Context<'_>) -> Result<R>,
    ) -> Result<R> {
        let at = self.fork(tree)?;
        self.make_room()?;
        let mut cx = Context {
            pool: &self.core.pool,
            slot: self.slot.as_ref().ok_or_else(no_slot)?,
            spare: &mut self.spare,
            scratch: &mut self.scratch,
        };
        edit(&mut self.forks[at], &mut cx)
    }

    /// Appends an operation to the redo, unless none is kept.
    #[inline]
    fn log(&mut self, op: Op<'_>) -> Result<()> {
        self.wrote = true;
        if self.bulk {
            return Ok(());
        }
        redo::encode(&mut self.redo, op);
        if self.redo.len() >= self.redo_step {
            self.redo_has_grown()?;
        }
        Ok(())
    }

    #[cold]
    fn redo_has_grown(&mut self) -> Result<()> {
        self.redo_step = self.redo.len() + REDO_STEP;
        self.charge_lists();
        if self.redo.len() >= self.bulk_at {
            self.become_bulk()?;
        }
        Ok(())
    }

    /// Writes an entry; true if there was one under this key.
    pub fn put(&mut self, tree: &Tree, key: Key<'_>, value: &[u8]) -> Result<bool> {
        Ok(self.write(tree, key, value, IfExists::Replace)? == Wrote::Replaced)
    }

    /// Writes an entry unless there is one under this key; false, and nothing
    /// is written, if there is.
    pub fn insert(&mut self, tree: &Tree, key: Key<'_>, value: &[u8]) -> Result<bool> {
        check_kind(tree, key)?;
        self.observe_always(tree, key);
        Ok(self.write(tree, key, value, IfExists::Leave)? == Wrote::Inserted)
    }

    fn write(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        value: &[u8],
        if_exists: IfExists,
    ) -> Result<Wrote> {
        check_kind(tree, key)?;
        let wrote = self.with_fork(tree, |fork, cx| fork.put(cx, key, value, if_exists))?;
        if wrote != Wrote::Exists {
            let tree = tree.id().0;
            self.log(Op::Put { tree, key, value })?;
        }
        Ok(wrote)
    }

    /// Removes an entry; false if there was none.
    pub fn delete(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        check_kind(tree, key)?;
        self.observe(tree, key);
        let deleted = self.with_fork(tree, |fork, cx| fork.delete(cx, key))?;
        if deleted {
            let tree = tree.id().0;
            self.log(Op::Delete { tree, key })?;
        }
        Ok(deleted)
    }

    /// A key for a new row of a tree of integers: the largest plus one, and
    /// never one that an overlapping transaction was given.
    pub fn allocate_rowid(&mut self, tree: &Tree) -> Result<i64> {
        self.allocate_rowid_above(tree, None)
    }

    /// As [`allocate_rowid`](Self::allocate_rowid), and above `floor`.
    pub fn allocate_rowid_above(&mut self, tree: &Tree, floor: Option<i64>) -> Result<i64> {
        let at = self.fork(tree)?;
        let mut largest = match self.forks[at].max_key {
            Some(key) => Some(key),
            None => {
                let largest = self.largest_key(tree)?;
                self.forks[at].max_key = largest;
                largest
            }
        };
        largest = largest.max(floor);
        let base = self.forks[at].base.seq;
        let mut seen = base;
        let allocated = loop {
            let head = tree.0.head().seq;
            if self.state == TxnState::Optimistic && head != seen {
                largest = largest.max(self.largest_at_head(tree)?);
            }
            seen = head;
            let first_claim = !self.claims.iter().any(|claim| claim.id() == tree.id());
            let allocated = tree.0.rowids.allocate(largest, first_claim);
            if first_claim && allocated.is_some() {
                self.claims.push(tree.clone());
            }
            // One that published in between has let go of its claim, maybe
            // before ours was asked for: its rows decide then.
            if self.state != TxnState::Optimistic || tree.0.head().seq == seen {
                break allocated;
            }
        };
        allocated.ok_or_else(|| {
            Error::new(
                ErrorKind::Full,
                "database or disk is full: the largest row number is taken",
            )
        })
    }

    /// The largest integer key as this transaction sees it, which it does not
    /// come to depend on: good for what only must not be too small.
    pub fn largest_rowid(&mut self, tree: &Tree) -> Result<Option<i64>> {
        check_kind(tree, Key::Int(0))?;
        self.largest_key(tree)
    }

    /// The largest integer key as this transaction sees it.
    fn largest_key(&mut self, tree: &Tree) -> Result<Option<i64>> {
        let at = self.fork(tree)?;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let fork = &mut self.forks[at];
        walk::last_int_key(&self.core.pool, slot, tree.id().0, &mut fork.root)
    }

    fn largest_at_head(&mut self, tree: &Tree) -> Result<Option<i64>> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.head())?;
        let mut root = tree.0.versions.at(seq).unwrap_or(EMPTY);
        let largest = walk::last_int_key(&core.pool, &slot, tree.id().0, &mut root.node);
        core.pool.readers.release(&slot);
        largest
    }

    /// Makes a new, empty tree. Others see it when this transaction commits.
    pub fn create_tree(&mut self, kind: KeyKind) -> Result<Tree> {
        if matches!(self.state, TxnState::Idle | TxnState::Read) {
            return Err(Error::misuse("this transaction only reads"));
        }
        let tree = self.core.new_tree(kind)?;
        let mut fork = self.new_fork(&tree, EMPTY);
        fork.created = true;
        fork.changed = true;
        self.forks.push(fork);
        let tree_number = tree.id().0;
        self.log(Op::Create {
            tree: tree_number,
            kind,
        })?;
        Ok(tree)
    }

    /// Removes a tree and everything in it.
    pub fn drop_tree(&mut self, tree: &Tree) -> Result<()> {
        let at = self.fork(tree)?;
        let fork = &mut self.forks[at];
        fork.settle(&self.core.pool);
        if !fork.root.is_none() {
            let root = fork.root;
            fork.replaced.push(Dead::subtree(root, 0));
        }
        fork.root = crate::cache::ChildRef::NONE;
        fork.count = 0;
        fork.max_key = None;
        fork.dropped = true;
        let tree = tree.id().0;
        self.log(Op::Drop { tree })
    }
}

fn no_slot() -> Error {
    Error::misuse("no transaction is under way")
}

fn check_kind(tree: &Tree, key: Key<'_>) -> Result<()> {
    let fits = matches!(
        (tree.kind(), key),
        (KeyKind::Int, Key::Int(_)) | (KeyKind::Bytes, Key::Bytes(_))
    );
    if fits {
        Ok(())
    } else {
        Err(Error::misuse(format!(
            "tree {} has keys of kind {:?}",
            tree.id().0,
            tree.kind()
        )))
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        if self.state != TxnState::Idle {
            self.rollback();
        }
        self.core.pool.give_frames(&mut self.spare);
    }
}
