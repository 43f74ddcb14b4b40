//! A statement's commit under its context's lease. See `leases.rs`.
//!
//! A context whose statements follow one another without anybody who settles between
//! them takes a lease; where leases end soon after they were opened it waits for more
//! statements before it takes the next one.

use super::recycle::Seen;
use super::{TxnContext, TxnState};
use crate::error::Result;
use crate::leases::{Lane, Occupancy};
use crate::options::Durability;
use crate::primitives::{LEASE_AFTER, LEASE_AFTER_MAX, LOOK_AT};
use crate::store::log_error;
use fulgurite_wal::{Kind, TwinLog};
use std::sync::Arc;

/// A commit with more redo than this asks for log space of its own.
pub(super) const REDO_MAX: usize = 4 << 10;

/// A lease is for so many commits at first, and at most.
const COMMITS_MIN: u64 = 64;
const COMMITS_MAX: u64 = 512;

/// To look at what is dead ends all leases, so there is more to look at: as many nodes
/// as this share of the cache where snapshots keep them in memory, and where they are
/// on disk.
const KEPT_SHARE: usize = 64;
const WRITTEN_SHARE: usize = 2;

/// A commit that was made under a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leased {
    pub(super) seq: u64,
    /// Whether it is time to look at what is dead.
    pub(super) look: bool,
}

/// What a context knows of its leases.
pub(super) struct Leasing {
    pub(super) lane: Option<Arc<Lane>>,
    /// The first number of the last lease, until somebody else ended it; the one behind
    /// that of the last commit under it.
    first: u64,
    next: u64,
    /// Commits in a row that could have been made under a lease.
    streak: u32,
    /// How many of them it takes for one.
    streak_wanted: u32,
    /// How many commits a lease is asked for.
    commits: u64,
}

impl Default for Leasing {
    fn default() -> Self {
        Self {
            lane: None,
            first: 0,
            next: 0,
            streak: 0,
            streak_wanted: LEASE_AFTER,
            commits: COMMITS_MIN,
        }
    }
}

impl Leasing {
    /// Whether it had a lease when it last committed.
    pub(super) fn has_lease(&self) -> bool {
        self.next > 0
    }

    /// Whether the last lease gave this number to a commit.
    pub(super) fn gave(&self, seq: u64) -> bool {
        (self.first..self.next).contains(&seq)
    }

    /// The last number that it gave.
    pub(super) fn last_given(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// It gave this one.
    pub(super) fn gave_one(&mut self, seq: u64) {
        self.next = seq + 1;
    }

    fn began(&mut self, first: u64) {
        self.first = first;
        self.next = first + 1;
    }

    /// Somebody else ended the lease.
    fn was_settled(&mut self) {
        let used = self.next - self.first - 1;
        (self.first, self.next) = (0, 0);
        // What is left of it is lost to the log.
        if used < self.commits / 2 {
            self.commits = (self.commits / 2).max(COMMITS_MIN);
        }
        if used < u64::from(LEASE_AFTER) {
            self.streak = 0;
            self.streak_wanted = (self.streak_wanted * 2).min(LEASE_AFTER_MAX);
        } else {
            self.paid_off();
        }
    }

    fn was_used_up(&mut self) {
        self.commits = (self.commits * 2).min(COMMITS_MAX);
        self.paid_off();
    }

    /// A lease was of use: the next one can follow at once.
    fn paid_off(&mut self) {
        self.streak = LEASE_AFTER;
        self.streak_wanted = LEASE_AFTER;
    }
}

impl TxnContext {
    /// For a statement that has locked its trees: the number of the state that it works
    /// on, where leased commits made it.
    #[cold]
    pub(super) fn find_leased_head(&mut self) {
        let newest = self.locked.newest_head();
        if newest <= self.seq {
            return;
        }
        if self.leasing.gave(newest) {
            self.seq = self.leasing.last_given();
        } else {
            self.core.settle();
            self.seq = self.core.head();
        }
        debug_assert!(newest <= self.seq);
    }

    /// Whether a lease, if the context has one, may hold what is to be committed.
    pub(super) fn can_be_leased(&self) -> bool {
        self.core.wal().is_some_and(TwinLog::gives_leases)
            && self.durability != Durability::Full
            && self.depends_on_its_trees()
    }

    /// Whether what is to be committed depends on nothing but the trees it locked.
    pub(super) fn depends_on_its_trees(&self) -> bool {
        self.state == TxnState::Statement
            && !self.bulk
            && !self.pinned
            && self.reads.is_none()
            && self.redo.len() <= REDO_MAX
            && self.forks.iter().all(|fork| {
                !fork.created && !fork.dropped && !fork.attached && fork.published.is_none()
            })
    }

    /// Commits under the context's lease, if it has one or gets one now. `None`: to be
    /// committed as any other.
    #[inline]
    pub(super) fn commit_leased(&mut self) -> Result<Option<Leased>> {
        if !self.can_be_leased() {
            self.leasing.streak = 0;
            return Ok(None);
        }
        let Some(lane) = self.leasing.lane.take() else {
            return self.ask_for_lease();
        };
        let committed = self.publish_leased(&lane);
        self.leasing.lane = Some(lane);
        match committed {
            Ok(None) => self.ask_for_lease(),
            committed => committed,
        }
    }

    /// The lease is used up, somebody ended it, or there was none.
    #[cold]
    fn ask_for_lease(&mut self) -> Result<Option<Leased>> {
        let core = &*self.core;
        self.leasing.streak += 1;
        // Without a lease it would have to end those of others.
        if self.leasing.streak < self.leasing.streak_wanted && !core.leases.any() {
            return Ok(None);
        }
        let lane = match self.leasing.lane.take() {
            Some(lane) => lane,
            None => core.add_lane(),
        };
        let wanted = (self.leasing.commits, self.redo.len());
        let committed = match core.open_lease(&lane, wanted, self.busy.timeout) {
            Ok(Some(first)) => {
                self.leasing.began(first);
                self.publish_leased(&lane)
            }
            Ok(None) => {
                self.leasing.streak = 0;
                Ok(None)
            }
            Err(error) => Err(error),
        };
        self.leasing.lane = Some(lane);
        committed
    }

    /// Writes the record, publishes, and frees what was replaced, under the lane's lock.
    /// `None` where it has no lease with room.
    fn publish_leased(&mut self, lane: &Lane) -> Result<Option<Leased>> {
        let Occupancy { lease, .. } = &mut *lane.occupancy.lock();
        let Some(lease) = lease else {
            if self.leasing.next > 0 {
                self.leasing.was_settled();
            }
            return Ok(None);
        };
        let core = &*self.core;
        let wal = core.wal();
        let follows = |base: u64| base < lease.next_seq();
        let fits =
            lease.has_room(self.redo.len()) && self.forks.iter().all(|fork| follows(fork.base.seq));
        let Some(wal) = wal.filter(|_| fits) else {
            self.leasing.was_used_up();
            return Ok(None);
        };
        let seq = wal
            .write_leased(lease, Kind::Commit, &self.redo)
            .map_err(log_error)?;
        // No checkpoint begins while the lease is open.
        self.recycling.keep_apart(core, &mut self.forks);
        let share = match self.recycling.is_in_company(core) {
            true => KEPT_SHARE,
            false => WRITTEN_SHARE,
        };
        let look_at = LOOK_AT.max(core.pool.usable() / share);
        let (needed_from, first) = (core.needed_from(), lease.first_seq());
        let mut look = false;
        for fork in self.forks.iter_mut().filter(|fork| fork.changed) {
            look |= fork.let_replaced_die(seq, look_at);
            let versions = &fork.tree.0.versions;
            versions.publish_within(fork.version(seq), first, needed_from);
        }
        self.leasing.gave_one(seq);
        self.others.note_own(first, lease.last_seq());
        self.recycle(seq, Seen::ByNobody);
        Ok(Some(Leased { seq, look }))
    }

    /// Ends what the context has of leases.
    pub(super) fn leave_lane(&mut self) {
        if let Some(lane) = self.leasing.lane.take() {
            self.core.remove_lane(&lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LEASE_AFTER, TxnContext};
    use crate::error::{Error, ErrorKind};
    use crate::{Durability, Key, KeyKind, Options, Store, Tree};
    use fulgurite_disk::{Machine, MemoryDisk};
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;

    fn store() -> (Store, Tree) {
        let options = Options {
            durability: Durability::Normal,
            // No thread of its own, which would end leases after a while.
            driver: Some(Arc::new(Machine)),
            ..Options::default()
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, Path::new("l.db"), options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    }

    fn put(txn: &mut TxnContext, tree: &Tree, value: u64) -> crate::Result<()> {
        txn.begin_statement(&[tree])?;
        txn.put(tree, Key::Int(0), &value.to_le_bytes())?;
        txn.commit()
    }

    /// Statements until the context has a lease, and so many more that it was of use.
    fn put_until_leased(store: &Store, txn: &mut TxnContext, tree: &Tree) -> u64 {
        let mut value = 0;
        while !store.core().leases.any() {
            value += 1;
            put(txn, tree, value).expect("commits");
            assert!(value <= u64::from(LEASE_AFTER));
        }
        for more in 1..=u64::from(LEASE_AFTER) {
            put(txn, tree, value + more).expect("commits");
        }
        value + u64::from(LEASE_AFTER)
    }

    fn get(txn: &mut TxnContext, tree: &Tree) -> u64 {
        let mut value = Vec::new();
        assert!(txn.get_into(tree, Key::Int(0), &mut value).expect("reads"));
        u64::from_le_bytes(value.try_into().expect("eight bytes"))
    }

    fn leases(store: &Store) -> u64 {
        store.stats().log.expect("a log").leases
    }

    #[test]
    fn a_snapshot_shows_what_leases_hold() {
        let (store, tree) = store();
        let mut writer = store.txn();
        let last = put_until_leased(&store, &mut writer, &tree);
        let core = store.core();
        assert!(core.visible() < tree.0.head().seq);
        let mut reader = store.txn();
        reader.begin_read().expect("reads");
        assert_eq!(get(&mut reader, &tree), last);
        assert!(core.visible() >= tree.0.head().seq);
        assert!(!core.leases.any());
        put(&mut writer, &tree, last + 1).expect("commits");
        assert_eq!(get(&mut reader, &tree), last, "it stays what it was");
    }

    /// Between a reader's look at what is visible and its pin a lease is opened, and
    /// what its commits replace is freed: the reader has no pin yet.
    #[test]
    fn who_pins_where_a_lease_is_opened_starts_over() {
        let (store, tree) = store();
        let mut writer = store.txn();
        let last = put_until_leased(&store, &mut writer, &tree);
        let core = store.core();
        let writer = Cell::new(Some(writer));
        let (slot, seq) = core
            .pool
            .readers
            .pin(|| {
                let visible = core.visible_to_pin();
                if let Some(mut writer) = writer.take() {
                    put(&mut writer, &tree, last + 1).expect("commits");
                    assert!(core.leases.any());
                    // Its lease stays open.
                    std::mem::forget(writer);
                }
                visible
            })
            .expect("a slot");
        assert!(seq >= tree.0.head().seq);
        core.pool.readers.release(&slot);
        let mut reader = store.txn();
        reader.begin_read().expect("reads");
        assert_eq!(get(&mut reader, &tree), last + 1);
    }

    #[test]
    fn where_readers_come_between_leases_become_rare() {
        let (store, tree) = store();
        let (mut writer, mut reader) = (store.txn(), store.txn());
        for value in 1..=4000 {
            put(&mut writer, &tree, value).expect("commits");
            reader.begin_read().expect("reads");
            assert_eq!(get(&mut reader, &tree), value);
            reader.commit().expect("ends");
        }
        let few = leases(&store);
        assert!((1..10).contains(&few), "{few} leases");
        for value in 4001..=12_000 {
            put(&mut writer, &tree, value).expect("commits");
        }
        assert!(leases(&store) > few, "they come back");
    }

    #[test]
    fn a_context_that_goes_ends_its_lease() {
        let (store, tree) = store();
        let mut writer = TxnContext::new(&store);
        let last = put_until_leased(&store, &mut writer, &tree);
        drop(writer);
        assert!(!store.core().leases.any());
        assert!(store.core().visible() >= tree.0.head().seq);
        let mut other = store.txn();
        put(&mut other, &tree, last + 1).expect("commits");
    }

    #[test]
    fn whoever_is_lent_a_context_goes_on_with_its_lease() {
        let (store, tree) = store();
        let mut writer = store.txn();
        let last = put_until_leased(&store, &mut writer, &tree);
        drop(writer);
        put(&mut store.txn(), &tree, last + 1).expect("commits");
        assert!(store.core().leases.any());
        assert_eq!(leases(&store), 1);
        let mut reader = store.txn();
        reader.begin_read().expect("reads");
        assert_eq!(get(&mut reader, &tree), last + 1);
    }

    #[test]
    fn where_writing_has_ended_readers_see_what_was_acknowledged() {
        let (store, tree) = store();
        let mut writer = store.txn();
        let last = put_until_leased(&store, &mut writer, &tree);
        store
            .core()
            .fail(&Error::new(ErrorKind::Io, "the disk is gone"));
        let refused = put(&mut writer, &tree, last + 1).expect_err("writing has ended");
        assert_eq!(refused.kind(), ErrorKind::Poisoned);
        let mut reader = store.txn();
        reader.begin_read().expect("reads");
        assert_eq!(get(&mut reader, &tree), last);
    }
}
