//! Writing entries where they lie.
//!
//! A commit copies the nodes from the root to what it changes, since snapshots may need
//! them as they were. Nobody sees the states between the commits of a lease
//! (`leases.rs`), and what these replace is freed at once: copies for nothing. So the
//! first few changes of a transaction are *put off* where they can be: their places are
//! looked up and answer, they stand in the redo, and the commit does them there.
//!
//! 1. A change is put off where its leaf is in memory alone, was born after every number
//!    that a checkpoint ever pinned, and need not be split or merged, and no other one
//!    of its key is. The transaction holds the tree's writer lock, so nobody else writes
//!    there.
//! 2. What needs them in the forks, or changes a fork, has them written there first, as
//!    ever. So has a commit that cannot write in place. Either all are put off that the
//!    redo holds, or none is any more.
//! 3. The commit does it under its lane's lock, with its lease open. That was opened
//!    before the transaction began, and no checkpoint has begun since. Nor does a
//!    reader's pin lie between a leaf's birth and the commit, as it sees then. So nobody
//!    reaches the leaves: who does later begins after the lease has ended, and who ends
//!    it takes that lock. First the record is written, which may fail, then the entries,
//!    which cannot.
//! 4. The leaves' births stay: they are lower bounds, and no pin lies between.
//! 5. Where commits are synced there are no leases. A context that commits alone, and
//!    whose syncs are quick, is *secluded* instead for the time of its commit
//!    (`leases.rs`, rule 6): it looks whether a checkpoint or a reader has come since the
//!    changes were put off, has its record made durable as ever, writes the entries and
//!    publishes. So nobody reads what is not durable, and a sync that fails leaves the
//!    leaves as they were.

use super::critical::{Held, SAMPLE};
use super::hold::Hold;
use super::lease::Leased;
use super::redo::{Op, Ops};
use super::{TxnContext, TxnState};
use crate::error::{Error, Result};
use crate::leases::{Lane, Occupancy};
use crate::node::Key;
use crate::store::{Core, log_error};
use crate::tree::TreeId;
use crate::tree::edit::IfExists;
use crate::tree::fork::Fork;
use crate::tree::place::{Change, Place, Step};
use fulgurite_wal::{Kind, TwinLog};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::time::Instant;

/// So many changes of a transaction are put off: those of short ones, since its lane's
/// lock is held while they are done, and each looks through those before it.
const PUT_OFF_MAX: usize = 32;
/// To look for places that are not to be had costs descents: after some in vain so many
/// transactions do not.
const PATIENCE_MAX: u32 = 32;

/// A change that stands in the redo alone.
pub(super) struct PutOff {
    fork: usize,
    place: Place,
    /// Other keys mostly have other ones.
    digest: u64,
}

/// When to look for places.
#[derive(Default)]
pub(super) struct Patience {
    left: u32,
    next: u32,
}

impl Patience {
    fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }

    fn was_in_vain(&mut self) {
        self.left = self.next;
        self.next = (2 * self.next + 1).min(PATIENCE_MAX);
    }

    fn paid_off(&mut self) {
        *self = Self::default();
    }
}

/// Whether a context commits without anybody's commits between.
#[derive(Default)]
pub(super) struct Succession {
    last: u64,
    alone: bool,
}

impl Succession {
    /// It committed under this number, which was given in order.
    #[inline]
    pub(super) fn note(&mut self, seq: u64) {
        self.alone = seq == self.last + 1;
        self.last = seq;
    }
}

impl TxnContext {
    /// Puts off a change of a fork, if it can be; what it does.
    #[inline]
    pub(super) fn put_off(&mut self, at: usize, key: Key<'_>, change: Change) -> Option<Step> {
        if !self.may_put_off(at) {
            return None;
        }
        let tree = self.forks[at].tree.id();
        match self.put_off.is_empty() {
            true if !self.patience.is_over() => return None,
            false if self.is_put_off(tree, key) => return None,
            _ => {}
        }
        let core = &*self.core;
        let newest = core.checkpoint_pins.newest();
        let around = (&core.pool, self.slot.as_ref()?);
        let others = self.put_off.iter().map(|off| &off.place);
        let what = (key, change);
        let Some(place) = Place::find(&mut self.forks[at], around, what, newest, others) else {
            if self.put_off.is_empty() {
                self.patience.was_in_vain();
            }
            return None;
        };
        let step = place.step;
        if step != Step::Nothing {
            self.put_off.push(PutOff {
                fork: at,
                place,
                digest: digest(key),
            });
        }
        Some(step)
    }

    /// Whether a change of the entry under `key` is.
    fn is_put_off(&self, tree: TreeId, key: Key<'_>) -> bool {
        let digest = digest(key);
        self.put_off.iter().any(|off| off.digest == digest)
            && ops(&self.redo).any(|op| op.tree() == tree.0 && op.key() == Some(key))
    }

    /// Whether its commit changes this tree, in a fork or where its entries lie.
    pub(super) fn changes(&self, tree: TreeId) -> bool {
        self.forks.find(tree).is_some_and(|at| {
            self.forks[at].changed || self.put_off.iter().any(|off| off.fork == at)
        })
    }

    #[inline]
    pub(super) fn may_put_off(&self, at: usize) -> bool {
        let holds_tree = match self.state {
            TxnState::Statement => !self.pinned,
            _ => self.hold == Hold::Held,
        };
        let fork = &self.forks[at];
        holds_tree
            && (self.leasing.has_lease() || self.commits_alone())
            && self.redo.is_empty() == self.put_off.is_empty()
            && self.put_off.len() < PUT_OFF_MAX
            && !self.bulk
            && !self.recycling.is_in_company(&self.core)
            && fork.edits == 0
            && !fork.created
            && !fork.observed
    }

    /// Whether others may be kept out while it commits: commits are synced, quickly, and
    /// nobody has committed since it did, or between its last two.
    #[inline]
    pub(super) fn commits_alone(&self) -> bool {
        let core = &*self.core;
        self.succession.alone
            && self.succession.last == core.head()
            && core.wal().is_some_and(TwinLog::syncs_quickly)
    }

    /// Before what needs in the forks what was put off.
    #[inline]
    pub(super) fn write_put_off(&mut self) -> Result<()> {
        match self.put_off.is_empty() {
            true => Ok(()),
            false => self.write_late(),
        }
    }

    /// Before an entry is read, of a tree that was written to.
    #[inline]
    pub(super) fn write_put_off_under(&mut self, tree: TreeId, key: Key<'_>) -> Result<()> {
        match self.put_off.is_empty() || !self.is_put_off(tree, key) {
            true => Ok(()),
            false => self.write_late(),
        }
    }

    #[cold]
    fn write_late(&mut self) -> Result<()> {
        self.patience.was_in_vain();
        let redo = std::mem::take(&mut self.redo);
        let put_off = std::mem::take(&mut self.put_off);
        let written = ops(&redo).zip(&put_off).try_for_each(|(op, off)| match op {
            Op::Put { key, value, .. } => self
                .put_in(off.fork, key, value, IfExists::Replace)
                .map(|_| ()),
            Op::Delete { key, .. } => self.delete_in(off.fork, key).map(|_| ()),
            _ => Err(Error::misuse("what is never put off was")),
        });
        self.redo = redo;
        if written.is_err() {
            // To be tried again from the first on, since the redo has them all.
            self.put_off = put_off;
        }
        written
    }

    /// Commits what was put off, where it lies. `None` where that cannot be, and nothing
    /// has changed.
    #[inline]
    pub(super) fn commit_in_place(&mut self) -> Result<Option<Leased>> {
        if self.put_off.is_empty()
            || !self.can_be_leased()
            || self.forks.iter().any(|fork| fork.changed)
        {
            return Ok(None);
        }
        let Some(lane) = self.leasing.lane.take() else {
            return Ok(None);
        };
        let committed = self.publish_in_place(&lane);
        self.leasing.lane = Some(lane);
        committed
    }

    /// The same where commits are synced: its number, once it is durable. Nobody begins to
    /// read before the entries are written.
    pub(super) fn commit_in_place_synced(&mut self) -> Result<Option<u64>> {
        let core = &*self.core;
        let Some(wal) = core.wal().filter(|wal| wal.syncs_quickly()) else {
            return Ok(None);
        };
        if self.put_off.is_empty()
            || !self.depends_on_its_trees()
            || self.forks.iter().any(|fork| fork.changed)
        {
            return Ok(None);
        }
        // Before any lock, since it may wait for a checkpoint.
        let permit = wal
            .reserve_within(self.redo.len(), self.busy.timeout)
            .map_err(log_error)?;
        let secluded = core.seclude();
        let births = self.put_off.iter().map(|off| off.place.birth);
        let oldest = births.min().unwrap_or(0);
        let mut stay = self.put_off.iter().map(|off| off.place.stays(&core.pool));
        if oldest <= core.checkpoint_pins.newest()
            || !stay.all(|stays| stays)
            || !self.recycling.is_unseen(core, oldest, u64::MAX)
        {
            return Ok(None);
        }
        let (seq, placed) = {
            let mut commit = core.commit.lock();
            let held = Held::begin();
            let since = commit.head.is_multiple_of(SAMPLE).then(Instant::now);
            let seq = commit.head + 1;
            let placed = wal.place(permit, seq);
            commit.head = seq;
            core.publish_head(seq);
            if let Some(since) = since {
                core.critical.record(since.elapsed());
            }
            drop(held);
            (seq, placed)
        };
        wal.fill(placed, Kind::Commit, &[&self.redo])
            .and_then(|ticket| wal.wait(ticket))
            .map_err(log_error)?;
        // SAFETY: nobody else reaches the leaves: as the module's header says.
        unsafe { write_all(&mut self.forks, &self.redo, &mut self.put_off, core) };
        let needed_from = core.needed_from();
        for fork in self.forks.iter().filter(|fork| fork.changed) {
            fork.tree.0.versions.publish(fork.version(seq), needed_from);
        }
        secluded.note_in_place();
        drop(secluded);
        self.patience.paid_off();
        Ok(Some(seq))
    }

    fn publish_in_place(&mut self, lane: &Lane) -> Result<Option<Leased>> {
        let Occupancy {
            lease, in_place, ..
        } = &mut *lane.occupancy.lock();
        let core = &*self.core;
        let (Some(lease), Some(wal)) = (lease, core.wal()) else {
            return Ok(None);
        };
        let follows = |off: &PutOff| self.forks[off.fork].base.seq < lease.next_seq();
        let stays = |off: &PutOff| off.place.stays(&core.pool);
        let births = self.put_off.iter().map(|off| off.place.birth);
        let oldest = births.min().unwrap_or(0);
        debug_assert!(oldest > core.checkpoint_pins.newest(), "rule 3");
        if !lease.has_room(self.redo.len())
            || !self.put_off.iter().all(|off| follows(off) && stays(off))
            || !self.recycling.is_unseen(core, oldest, lease.next_seq())
        {
            return Ok(None);
        }
        let seq = wal
            .write_leased(lease, Kind::Commit, &self.redo)
            .map_err(log_error)?;
        // SAFETY: nobody else reaches the leaves until the lease has ended, as the
        // module's header says.
        unsafe { write_all(&mut self.forks, &self.redo, &mut self.put_off, core) };
        let (first, needed_from) = (lease.first_seq(), core.needed_from());
        for fork in self.forks.iter().filter(|fork| fork.changed) {
            let versions = &fork.tree.0.versions;
            versions.publish_within(fork.version(seq), first, needed_from);
        }
        self.leasing.gave_one(seq);
        self.others.note_own(first, lease.last_seq());
        self.patience.paid_off();
        *in_place += 1;
        Ok(Some(Leased { seq, look: false }))
    }
}

fn digest(key: Key<'_>) -> u64 {
    match key {
        Key::Int(key) => key as u64,
        Key::Bytes(key) => FxBuildHasher.hash_one(key),
    }
}

/// Does what was put off in the leaves themselves.
///
/// # Safety
/// They stay, and nobody else reaches them.
unsafe fn write_all(forks: &mut [Fork], redo: &[u8], put_off: &mut Vec<PutOff>, core: &Core) {
    for (op, off) in ops(redo).zip(put_off.drain(..)) {
        let (key, value) = match op {
            Op::Put { key, value, .. } => (key, value),
            Op::Delete { key, .. } => (key, &[][..]),
            _ => continue,
        };
        // SAFETY: as promised by the caller.
        let fits = unsafe { off.place.write(&core.pool, key, value) };
        debug_assert!(fits, "there was room, and nobody else writes there");
        let fork = &mut forks[off.fork];
        fork.changed = true;
        match off.place.step {
            Step::Insert => fork.count += 1,
            Step::Remove => fork.count = fork.count.saturating_sub(1),
            Step::Replace | Step::Nothing => {}
        }
    }
}

/// The operations of a redo that this transaction wrote.
fn ops(redo: &[u8]) -> impl Iterator<Item = Op<'_>> {
    Ops::new(redo).map_while(|op| op.ok())
}

#[cfg(test)]
mod tests {
    use crate::primitives::{IN_COMPANY, LEASE_AFTER};
    use crate::{Durability, Key, KeyKind, Options, Result, Store, Tree, Txn};
    use fulgurite_disk::{Driver, Machine, MemoryDisk};
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    /// A clock by which everything is done at once, however busy the machine is.
    #[derive(Debug)]
    struct Still;

    impl Driver for Still {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn pass(&self, _: Duration) {}

        fn random(&self) -> u64 {
            Machine.random()
        }
    }

    fn store() -> (Store, Tree) {
        store_with(Durability::Normal, &Arc::new(MemoryDisk::new()))
    }

    fn store_with(durability: Durability, disk: &Arc<MemoryDisk>) -> (Store, Tree) {
        let options = Options {
            durability,
            // No thread of its own, which would end leases after a while.
            driver: Some(Arc::new(Still)),
            log_limit_bytes: Some(1 << 20),
            busy_timeout: Duration::ZERO,
            ..Options::default()
        };
        let store = Store::open_on(disk.clone(), Path::new("p.db"), options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    }

    /// A store whose commits are synced, at once, and a context that alone commits.
    fn synced() -> (Arc<MemoryDisk>, Store, Tree, Txn) {
        let disk = Arc::new(MemoryDisk::new());
        let (store, tree) = store_with(Durability::Full, &disk);
        let mut txn = store.txn();
        for key in 0..3 {
            put(&mut txn, &tree, key, b"before").expect("commits");
        }
        (disk, store, tree, txn)
    }

    fn in_place(store: &Store) -> u64 {
        store.stats().commits_in_place
    }

    fn put(txn: &mut Txn, tree: &Tree, key: i64, value: &[u8]) -> Result<()> {
        txn.begin_statement(&[tree])?;
        txn.put(tree, Key::Int(key), value)?;
        txn.commit()
    }

    /// A context in the middle of a lease, whose next commit can be made in place.
    fn writer(store: &Store, tree: &Tree) -> Txn {
        let mut txn = store.txn();
        for _ in 0..2 * LEASE_AFTER {
            put(&mut txn, tree, 0, b"before").expect("commits");
        }
        assert!(store.core().leases.any());
        txn
    }

    fn check(store: &Store, tree: &Tree, expected: &[u8]) {
        let mut txn = store.txn();
        txn.begin_read().expect("reads");
        let mut value = Vec::new();
        assert!(txn.get_into(tree, Key::Int(0), &mut value).expect("reads"));
        assert_eq!(value, expected);
        drop(txn);
        assert_eq!(store.integrity_check().expect("checks"), [""; 0]);
    }

    #[test]
    fn a_commit_in_place_copies_nothing() {
        let (store, tree) = store();
        let mut txn = writer(&store, &tree);
        let before = tree.0.head();
        put(&mut txn, &tree, 0, b"after").expect("commits");
        put(&mut txn, &tree, 1, b"another").expect("commits");
        let after = tree.0.head();
        assert_eq!(after.node.reference, before.node.reference);
        assert_eq!((after.seq, after.count), (before.seq + 2, before.count + 1));
        check(&store, &tree, b"after");
    }

    #[test]
    fn synced_commits_of_one_context_copy_nothing_either() {
        let (_, store, tree, mut txn) = synced();
        let (before, commits) = (tree.0.head(), in_place(&store));
        put(&mut txn, &tree, 0, b"after").expect("commits");
        put(&mut txn, &tree, 7, b"another").expect("commits");
        txn.begin_statement(&[&tree]).expect("begins");
        assert!(txn.delete(&tree, Key::Int(7)).expect("deletes"));
        txn.commit().expect("commits");
        let after = tree.0.head();
        assert_eq!(after.node.reference, before.node.reference);
        assert_eq!((after.seq, after.count), (before.seq + 3, before.count));
        assert_eq!(in_place(&store), commits + 3);
        assert_eq!(store.core().visible(), after.seq);
        check(&store, &tree, b"after");
    }

    #[test]
    fn what_a_snapshot_shows_is_copied_once() {
        let (_, store, tree, mut txn) = synced();
        let mut reader = store.txn();
        reader.begin_read().expect("reads");
        let before = in_place(&store);
        put(&mut txn, &tree, 0, b"after").expect("commits");
        assert_eq!(in_place(&store), before, "the reader needs it as it was");
        for _ in 0..=IN_COMPANY {
            put(&mut txn, &tree, 0, b"later").expect("commits");
        }
        assert!(in_place(&store) > before, "what was copied nobody sees");
        let mut value = Vec::new();
        assert!(
            reader
                .get_into(&tree, Key::Int(0), &mut value)
                .expect("reads")
        );
        assert_eq!(value, b"before");
        check(&store, &tree, b"later");
    }

    #[test]
    fn what_a_checkpoint_writes_is_copied_once() {
        let (_, store, tree, mut txn) = synced();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(0), b"after").expect("puts");
        assert_eq!(txn.put_off.len(), 1, "it was put off");
        store.checkpoint().expect("a checkpoint");
        let before = (in_place(&store), tree.0.head());
        txn.commit().expect("commits");
        assert_eq!(in_place(&store), before.0);
        assert_ne!(tree.0.head().node.reference, before.1.node.reference);
        for _ in 0..3 {
            put(&mut txn, &tree, 0, b"later").expect("commits");
        }
        assert!(in_place(&store) > before.0, "the copy is not written yet");
        check(&store, &tree, b"later");
    }

    /// A reader that has looked at what is visible and not pinned it yet is not seen by
    /// who writes in place: it looks again.
    #[test]
    fn who_pins_beside_a_synced_commit_starts_over() {
        let (_, store, tree, txn) = synced();
        let core = store.core();
        let (before, commits) = (core.visible(), in_place(&store));
        let writer = Cell::new(Some(txn));
        let pin = || {
            let visible = core.visible_to_pin();
            if let Some(mut txn) = writer.take() {
                put(&mut txn, &tree, 0, b"after").expect("commits");
            }
            visible
        };
        let (slot, seq) = core.pool.readers.pin(pin).expect("a slot");
        core.pool.readers.release(&slot);
        assert_eq!(in_place(&store), commits + 1);
        assert_eq!(seq, before + 1);
    }

    /// What a commit was about to replace, which failed for want of room in the log,
    /// was freed by the next one, if that was made in place.
    #[test]
    fn what_a_failed_commit_would_have_replaced_stays() {
        let (store, tree) = store();
        let mut txn = writer(&store, &tree);
        let checkpoints = store.core().checkpoint.lock();
        put(&mut txn, &tree, 0, &vec![7; 2 << 20]).expect_err("no room in the log");
        assert!(store.core().leases.any());
        drop(checkpoints);
        put(&mut txn, &tree, 0, b"after").expect("commits");
        store.checkpoint().expect("a checkpoint");
        for key in 1..200 {
            put(&mut txn, &tree, key, &[1; 300]).expect("commits");
        }
        check(&store, &tree, b"after");
    }
}
