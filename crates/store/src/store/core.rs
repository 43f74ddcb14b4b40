//! What all users of an open store share: the newest commit, the trees, and the parts that
//! have files of their own.

use super::log_error;
use crate::admission::Admission;
use crate::background::Background;
use crate::cache::Pool;
use crate::checkpoint;
use crate::checkpoint::WriteCounters;
use crate::error::{Error, ErrorKind, Result};
use crate::lanes::LaneLock;
use crate::leases::Leases;
use crate::log_length::LogLength;
use crate::options::Options;
use crate::pins;
use crate::primitives::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crate::primitives::{Mutex, RwLock, YIELD_EVERY, yield_now};
use crate::reclaim::Reclaim;
use crate::space::Space;
use crate::tree::{KeyKind, Tree, TreeId, TreeShared};
use crate::txn::Critical;
use crate::txn::together::{Elsewhere, Gate};
use crate::waits::Waits;
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, DiskFile, LineStart};
use fulgurite_wal::TwinLog;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// What the commit lock covers. See `txn/commit.rs`.
pub(crate) struct CommitState {
    /// The newest published commit.
    pub(crate) head: u64,
}

/// What all users of an open store share. Its fields lie in the order of this text:
/// each group that commits write has cache lines of its own.
#[repr(C)]
pub(crate) struct Core {
    pub(crate) pool: Pool,

    quiet: LineStart,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) path: Option<PathBuf>,
    pub(crate) options: Options,
    pub(crate) database: [u8; 16],
    /// Tells the stores of the process apart.
    pub(crate) number: u64,
    /// The first failure that ended all writing.
    pub(super) failure: OnceLock<Error>,
    trees: RwLock<FxHashMap<u32, Tree>>,
    pub(crate) next_tree: AtomicU32,
    stamps: AtomicU64,
    pub(crate) checkpoint: Mutex<checkpoint::State>,
    pub(crate) checkpoint_pins: checkpoint::Pins,
    pub(crate) crew: checkpoint::Crew,
    pub(crate) background: Background,
    pub(crate) log_length: LogLength,
    pub(crate) admission: Admission,
    /// Shut while a commit to several stores is under way.
    pub(crate) gate: Gate,
    /// Who has read this store and is not acknowledged in another one.
    pub(crate) elsewhere: Elsewhere,
    /// A lower bound of the snapshots that are read.
    needed_from: AtomicU64,
    /// Set once recovery is done; never set in memory or read-only.
    pub(crate) wal: OnceLock<TwinLog>,

    beginning: LineStart,
    /// Shared by committers and statements, exclusive for IMMEDIATE.
    pub(crate) writers: LaneLock,

    publishing: LineStart,
    pub(crate) commit: Mutex<CommitState>,
    head: AtomicU64,

    leasing: LineStart,
    pub(crate) leases: Leases,

    measuring: LineStart,
    pub(crate) critical: Critical,

    freeing: LineStart,
    pub(crate) space: Space,
    pub(crate) reclaim: Mutex<Reclaim>,
    pub(crate) writes: WriteCounters,
    /// Conflicts that transactions lost.
    pub(crate) conflicts: AtomicU64,
    /// Held by who syncs the database file.
    pub(super) syncing: Mutex<()>,
}

impl Core {
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, when a store is opened"
    )]
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        file: Arc<dyn DiskFile>,
        path: Option<PathBuf>,
        options: Options,
        page_size: usize,
        database: [u8; 16],
        space: Space,
        checkpoint: checkpoint::State,
    ) -> Result<Self> {
        let name = path
            .as_ref()
            .map_or_else(|| ":memory:".to_owned(), |path| path.display().to_string());
        let pool = Pool::new(
            file,
            name,
            options.cache_bytes,
            page_size,
            options.busy_timeout,
            Waits::new(options.driver.clone()),
        )?;
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let seq = checkpoint.seq;
        let log_length = LogLength::new(options.checkpoint_bytes, options.log_limit());
        Ok(Self {
            pool,
            quiet: LineStart,
            disk,
            path,
            options,
            database,
            number: NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            failure: OnceLock::new(),
            trees: RwLock::default(),
            next_tree: AtomicU32::new(1),
            stamps: AtomicU64::new(1),
            checkpoint: Mutex::new(checkpoint),
            checkpoint_pins: checkpoint::Pins::new(seq),
            crew: checkpoint::Crew::default(),
            background: Background::default(),
            log_length,
            admission: Admission::new(),
            gate: Gate::default(),
            elsewhere: Elsewhere::default(),
            needed_from: AtomicU64::new(0),
            wal: OnceLock::new(),
            beginning: LineStart,
            writers: LaneLock::default(),
            publishing: LineStart,
            commit: Mutex::new(CommitState { head: seq }),
            head: AtomicU64::new(seq),
            leasing: LineStart,
            leases: Leases::default(),
            measuring: LineStart,
            critical: Critical::default(),
            freeing: LineStart,
            space,
            reclaim: Mutex::default(),
            writes: WriteCounters::default(),
            conflicts: AtomicU64::new(0),
            syncing: Mutex::default(),
        })
    }

    // ---- sequence numbers --------------------------------------------------

    #[inline]
    pub(crate) fn wal(&self) -> Option<&TwinLog> {
        self.wal.get()
    }

    /// The newest published commit, which the next writer builds on.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Acquire)
    }

    /// The newest acknowledged commit, which readers see.
    #[inline]
    pub(crate) fn visible(&self) -> u64 {
        match self.wal.get() {
            Some(_) if planted(Mutation::ShowHead) => self.head(),
            Some(wal) => wal.acked(),
            None => self.head(),
        }
    }

    /// For who pins the newest published commit: what leases hold counts too.
    #[inline]
    pub(crate) fn head_to_pin(&self) -> u64 {
        self.settle();
        self.head()
    }

    /// The same for the newest acknowledged one.
    #[inline]
    pub(crate) fn visible_to_pin(&self) -> u64 {
        self.settle();
        self.visible()
    }

    /// When a lease has ended.
    pub(crate) fn raise_head(&self, seq: u64) {
        self.head.fetch_max(seq, AcqRel);
    }

    /// Under the commit lock.
    pub(crate) fn publish_head(&self, seq: u64) {
        self.head.store(seq, Release);
    }

    /// Waits until this commit is acknowledged. One beyond the head was made under a
    /// lease, and is.
    pub(crate) fn wait_visible(&self, seq: u64) -> Result<()> {
        crate::txn::not_within_commit_lock();
        match self.wal.get() {
            Some(wal) if !self.is_acknowledged(seq) => wal.wait_seq(seq).map_err(log_error),
            _ => Ok(()),
        }
    }

    /// Whether nobody has to wait for that.
    pub(crate) fn is_acknowledged(&self, seq: u64) -> bool {
        let wal = self.wal.get();
        wal.is_none_or(|wal| wal.acked() >= seq || seq > self.head())
    }

    /// Notes the lowest of the snapshots that are read, by readers and the
    /// checkpoint under way. `visible` was read before them.
    pub(crate) fn note_oldest_snapshot(&self, oldest: Option<u64>, visible: u64) {
        let needed_from = oldest.map_or(visible, |oldest| oldest.min(visible));
        if self.needed_from() != needed_from {
            self.needed_from.store(needed_from, Relaxed);
        }
    }

    /// A number that nobody asks a tree for less than: a bound, not the minimum.
    pub(crate) fn needed_from(&self) -> u64 {
        self.needed_from.load(Relaxed)
    }

    pub(crate) fn next_stamp(&self) -> u64 {
        self.stamps.fetch_add(1, Relaxed)
    }

    // ---- trees -------------------------------------------------------------

    pub(crate) fn tree(&self, id: TreeId) -> Option<Tree> {
        self.trees.read().get(&id.0).cloned()
    }

    pub(crate) fn all_trees(&self) -> Vec<Tree> {
        let mut trees: Vec<Tree> = self.trees.read().values().cloned().collect();
        trees.sort_unstable_by_key(Tree::id);
        trees
    }

    pub(crate) fn new_tree(&self, kind: KeyKind) -> Result<Tree> {
        // It stays at its end: the number after that would be the tree of names.
        let next = |id: u32| id.checked_add(1);
        let used_up = |_| Error::new(ErrorKind::Full, "all tree numbers are used");
        let id = self.next_tree.fetch_update(Relaxed, Relaxed, next);
        Ok(self.add_tree(TreeId(id.map_err(used_up)?), kind))
    }

    /// Makes a tree known. Its first version is published by whoever adds it.
    pub(crate) fn add_tree(&self, id: TreeId, kind: KeyKind) -> Tree {
        self.next_tree.fetch_max(id.0.saturating_add(1), Relaxed);
        let tree = Tree(Arc::new(TreeShared::new(id, kind, self.number)));
        self.trees.write().insert(id.0, tree.clone());
        tree
    }

    pub(crate) fn forget_tree(&self, id: TreeId) {
        self.trees.write().remove(&id.0);
    }

    /// Forgets a dropped tree once nobody can ask for it.
    pub(crate) fn retire_tree(&self, tree: &Tree, dropped: u64) {
        let oldest = pins::oldest(self).unwrap_or(dropped);
        if oldest >= dropped && tree.0.graves.lock().is_empty() {
            self.forget_tree(tree.id());
        }
    }

    // ---- room in the log and the cache --------------------------------------

    /// Asks whether a checkpoint is due where the log or the unwritten pages call for one.
    #[inline]
    pub(crate) fn check_pressure(&self) {
        let log_is_reached = |wal: &TwinLog| self.log_length.is_reached(wal.bytes_since_switch());
        if self.wal.get().is_some_and(log_is_reached) || self.pool.is_crowded() {
            self.background.ask_to_look();
        }
    }

    /// After the commit of `seq`, which waited for nothing: lets a checkpoint have a
    /// processor now and then. Beside as many writers as there are processors, and more,
    /// it would get an equal share of one, until all of them wait for its end.
    #[inline]
    pub(crate) fn let_checkpoint_go_on(&self, seq: u64) {
        if seq.is_multiple_of(YIELD_EVERY) && self.checkpoint_pins.running().is_some() {
            yield_now();
        }
    }

    /// Whether the log calls for a checkpoint, for who makes them.
    pub(crate) fn log_is_long(&self) -> bool {
        let now = || self.pool.waits.now();
        let wal = self.wal.get();
        wal.is_some_and(|wal| self.log_length.is_due(wal.bytes_since_switch(), now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    /// The number after the last one was that of the tree of names, so that the second
    /// family too many replaced the names of all others.
    #[test]
    fn tree_numbers_end() {
        let store = Store::in_memory(Options::default()).expect("opens");
        store.create_family("kept", KeyKind::Int).expect("a family");
        store.core().next_tree.store(u32::MAX, Relaxed);
        for _ in 0..2 {
            let refused = store.create_family("one more", KeyKind::Int);
            let full = refused.expect_err("no number is left");
            assert_eq!(full.kind(), ErrorKind::Full);
        }
        assert_eq!(store.families().expect("the names"), ["kept"]);
    }
}
