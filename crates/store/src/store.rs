//! The open store: what all its users share, and the public handle.

use crate::admission::Admission;
use crate::background::Background;
use crate::cache::{MemoryCounter, Pool};
use crate::check;
use crate::checkpoint;
use crate::checkpoint::WriteCounters;
use crate::error::{Error, ErrorKind, Result};
use crate::lanes::LaneLock;
use crate::leases::Leases;
use crate::names;
use crate::open::{self, Purpose};
use crate::options::{Durability, Options};
use crate::pins;
use crate::primitives::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crate::primitives::{Mutex, RwLock, YIELD_EVERY, yield_now};
use crate::reclaim::Reclaim;
use crate::registry;
use crate::shelf::Shelf;
use crate::space::Space;
use crate::tree::{KeyKind, Tree, TreeId, TreeShared};
use crate::txn::together::Gate;
use crate::txn::{Critical, TxnContext};
use crate::waits::Waits;
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, DiskError, DiskErrorKind, DiskFile, LineStart, MemoryDisk, RealDisk};
use fulgurite_wal::TwinLog;
use rustc_hash::FxHashMap;
use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};
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
    failure: OnceLock<Error>,
    trees: RwLock<FxHashMap<u32, Tree>>,
    pub(crate) next_tree: AtomicU32,
    stamps: AtomicU64,
    pub(crate) checkpoint: Mutex<checkpoint::State>,
    pub(crate) checkpoint_pins: checkpoint::Pins,
    pub(crate) crew: checkpoint::Crew,
    pub(crate) background: Background,
    pub(crate) admission: Admission,
    /// Shut while a commit to several stores is under way.
    pub(crate) gate: Gate,
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
    syncing: Mutex<()>,
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
            admission: Admission::new(),
            gate: Gate::default(),
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
            Some(wal) if wal.acked() < seq && seq <= self.head() => {
                wal.wait_seq(seq).map_err(log_error)
            }
            _ => Ok(()),
        }
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

    // ---- limits and failures -----------------------------------------------

    fn read_only(&self) -> Error {
        Error::new(
            ErrorKind::ReadOnly,
            format!(
                "attempt to write a readonly database: {} was opened for reading",
                self.pool.path
            ),
        )
    }

    /// Fails if nothing may be written (any more).
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(self.read_only());
        }
        if let Some(failure) = self.failure.get() {
            return Err(poisoned(failure));
        }
        match self.wal.get().and_then(TwinLog::poisoned) {
            Some(error) => Err(log_error(error)),
            None => Ok(()),
        }
    }

    /// Syncs the database file, unless its mode says that nothing is. A failure ends
    /// all writing, for good, before anybody else's sync begins: that one would report
    /// nothing of what this one lost.
    ///
    /// # Errors
    /// Also where writing has ended.
    pub(crate) fn sync_file(&self) -> Result<()> {
        let _one_at_a_time = self.syncing.lock();
        self.check_writable()?;
        if self.options.durability == Durability::Off {
            return Ok(());
        }
        let file = &self.pool.file;
        let again = |error| match planted(Mutation::RetryFailedSync) {
            true => file.sync_data(),
            false => Err(error),
        };
        let synced = file.sync_data().or_else(again).map_err(Error::from);
        synced.inspect_err(|error| self.fail(error))
    }

    /// Whether the file was moved or removed, and its name is another one's. Where nobody
    /// has the name the log's are nobody's either.
    ///
    /// # Errors
    /// What keeps from telling: then they may be another one's.
    pub(crate) fn was_moved(&self) -> fulgurite_disk::Result<bool> {
        let Some(path) = &self.path else {
            return Ok(false);
        };
        match self.disk.identity_at(path) {
            Ok(named) => Ok(named != self.pool.file.identity()?),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A write or sync of the data file failed: ends all writing, for good.
    pub(crate) fn fail(&self, error: &Error) {
        let _ = self.failure.set(error.clone());
        if let Some(wal) = self.wal.get() {
            // Who is just committing hears of it from the log.
            let disk = error.source().and_then(|cause| cause.downcast_ref());
            wal.poison(match disk {
                Some(disk) => fulgurite_wal::Error::Disk(DiskError::clone(disk)),
                None => {
                    fulgurite_wal::Error::Misuse("the database file could not be written or synced")
                }
            });
        }
    }

    /// Asks whether a checkpoint is due where the log or the unwritten pages call for one.
    #[inline]
    pub(crate) fn check_pressure(&self) {
        if self.log_is_long() || self.pool.is_crowded() {
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

    /// Whether the log calls for a checkpoint.
    pub(crate) fn log_is_long(&self) -> bool {
        let wal = self.wal.get();
        wal.is_some_and(|wal| wal.bytes_since_switch() >= self.options.checkpoint_bytes)
    }
}

pub(crate) fn poisoned(cause: &Error) -> Error {
    Error::new(
        ErrorKind::Poisoned,
        format!(
            "writing ended with an earlier failure ({cause}); close all connections and open the database again"
        ),
    )
}

/// A failure of the log, as the store reports it.
pub(crate) fn log_error(error: fulgurite_wal::Error) -> Error {
    use fulgurite_wal::Error as Log;
    if let Log::NoRoom { source, .. } = &error
        && let Some(own) = source.downcast_ref::<Error>()
    {
        return own
            .clone()
            .during("making room in the log, which has reached its limit");
    }
    let kind = match &error {
        Log::Disk(disk) => return Error::from(disk.clone()),
        Log::Corrupt { .. } | Log::Foreign { .. } => ErrorKind::Corrupt,
        Log::NewerFormat { .. } => ErrorKind::NewerFormat,
        Log::Missing { .. } | Log::Astray { .. } => ErrorKind::MissingLog,
        Log::Full { .. } | Log::NoRoom { .. } => ErrorKind::Busy,
        Log::TooBig { .. } => ErrorKind::TooBig,
        Log::Moved { .. } => ErrorKind::ReadOnly,
        Log::Poisoned(_) => ErrorKind::Poisoned,
        _ => ErrorKind::Misuse,
    };
    let message = error.to_string();
    match kind {
        ErrorKind::Corrupt => {
            Error::new(kind, format!("database disk image is malformed: {message}"))
        }
        ErrorKind::MissingLog => {
            Error::new(kind, format!("unable to open database file: {message}"))
        }
        ErrorKind::ReadOnly => Error::new(
            kind,
            format!("attempt to write a readonly database: {message}"),
        ),
        _ => Error::new(kind, message),
    }
}

/// The last handle of a store closes it.
pub(crate) struct Handle {
    pub(crate) core: Arc<Core>,
    /// What has the file's lock.
    lock: Arc<dyn DiskFile>,
    /// Among the stores of this process.
    pub(crate) place: OnceLock<registry::Occupied>,
}

impl Handle {
    pub(crate) fn new(core: Arc<Core>, lock: Arc<dyn DiskFile>) -> Self {
        Self {
            core,
            lock,
            place: OnceLock::new(),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        crate::background::close(&self.core);
        // Contexts and what counts memory may keep the core for a while, and its files.
        self.lock.unlock();
        drop(self.place.take());
    }
}

/// An open store: a transactional key-value store with column families (trees).
/// Cheap to clone, `Send + Sync`. The last clone, transactions included, closes
/// it with a checkpoint.
#[derive(Clone)]
pub struct Store {
    pub(crate) handle: Arc<Handle>,
    /// See `txn/contexts.rs`.
    pub(crate) contexts: Shelf<Box<TxnContext>>,
    /// This handle refuses writes, whatever others of the same store may do.
    pub(crate) read_only: bool,
}

impl Store {
    /// Opens, and creates if it is absent, the database at `path`. A file that
    /// this process has open already (by device and inode) joins the same store,
    /// with the options of the first; asked for reading only, this handle refuses
    /// writes. Where another thread is opening or closing it, this waits for that;
    /// where another process has it, for at most the busy timeout.
    ///
    /// # Errors
    /// `CantOpen`, `ReadOnly`, `NotADatabase`, `NewerFormat`, `Corrupt`, `Busy`
    /// (another process holds the file for longer), `Io`, `Full`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        registry::open(path.as_ref(), options)
    }

    /// As [`open`](Self::open), on a disk of the caller's.
    pub fn open_on(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: Options) -> Result<Store> {
        let path = open::resolve(&*disk, path.as_ref())?;
        open::open(disk, &path, options, Purpose::Use)
    }

    /// A store in memory, gone with its last handle.
    pub fn in_memory(options: Options) -> Result<Store> {
        let options = Options {
            durability: Durability::Off,
            read_only: false,
            ..options
        };
        open::nameless(Arc::new(MemoryDisk::new()), Path::new("memory"), options)
    }

    /// A store for what nobody needs later, gone with its last handle: what its cache has
    /// no room for is in a temporary file of `disk`, on the file system of `near`, and
    /// nothing is logged or synced.
    ///
    /// # Errors
    /// `Io`, `Full`, and others that a disk gives where the file cannot be made.
    pub fn temporary(disk: Arc<dyn Disk>, near: &Path, options: Options) -> Result<Store> {
        let options = Options {
            durability: Durability::Off,
            read_only: false,
            ..options
        };
        open::nameless(disk, near, options)
    }

    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        let options = &handle.core.options;
        let read_only = options.read_only;
        let contexts = match options.driver {
            // Who drives it is to find the same on every run.
            Some(_) => Shelf::with_places(1),
            None => Shelf::default(),
        };
        Self {
            handle,
            contexts,
            read_only,
        }
    }

    /// Fails if this handle may not write, or nobody may any more.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(self.core().read_only());
        }
        self.core().check_writable()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// The file; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.core().path.as_deref()
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.core().options
    }

    /// The disk it is on, for temporary files beside it.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.core().disk
    }

    /// Counts memory that is buffered beside the store against the limit of its
    /// cache, which gives up as many pages.
    pub fn memory_counter(&self) -> MemoryCounter {
        MemoryCounter::new(self.core().clone())
    }

    /// Bytes that the cache may take.
    pub fn cache_bytes(&self) -> usize {
        self.core().options.cache_bytes
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.core().pool.page_size()
    }

    /// The store's number in this process, which no other one gets, not after it is closed
    /// either.
    pub fn number(&self) -> u64 {
        self.core().number
    }

    /// Whether two handles are of the same open store.
    pub fn ptr_eq(&self, other: &Store) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// The handle of a tree that exists, or that an open transaction makes.
    pub fn tree(&self, id: TreeId) -> Result<Tree> {
        self.core()
            .tree(id)
            .ok_or_else(|| Error::misuse(format!("there is no tree {}", id.0)))
    }

    /// The [stamp](TxnContext::stamp) of a tree that whoever began to read now would be told;
    /// `None` where only a snapshot would tell.
    pub fn stamp(&self, tree: &Tree) -> Option<u64> {
        let head = tree.0.head().seq;
        (head <= self.core().visible()).then_some(head)
    }

    /// The newest commit that whoever began to read now would see: a number that grows.
    pub fn newest(&self) -> u64 {
        self.core().visible_to_pin()
    }

    /// The tree with this name, if there is one.
    pub fn family(&self, name: &str) -> Result<Option<Tree>> {
        names::check(name)?;
        names::find(self, name)
    }

    /// The tree with this name, created durably if there is none.
    ///
    /// # Errors
    /// `Misuse` if there is one with other keys; what writing may fail with.
    pub fn create_family(&self, name: &str, kind: KeyKind) -> Result<Tree> {
        names::check(name)?;
        names::create(self, name, kind)
    }

    /// Removes the tree with this name and everything in it; false if there is
    /// none.
    pub fn drop_family(&self, name: &str) -> Result<bool> {
        names::check(name)?;
        names::remove(self, name)
    }

    /// The names of all named trees, in order.
    pub fn families(&self) -> Result<Vec<String>> {
        names::list(self)
    }

    /// Writes everything committed so far to the database file and shortens the
    /// log. Runs by itself in the background.
    pub fn checkpoint(&self) -> Result<()> {
        self.check_writable()?;
        checkpoint::run(self.core())
    }

    /// Does what there is to do in the background: a checkpoint if one was asked
    /// for, otherwise in `normal` a sync of the log, and the reclaim of what
    /// snapshots let go of. A store without a thread of its own
    /// ([`Options::driver`]) wants this called about every 200 ms, by one thread
    /// or another: what a power cut takes back in `normal` is what was committed
    /// since the last call. While another thread makes a checkpoint it does
    /// nothing. Where there is a thread it is not needed.
    ///
    /// # Errors
    /// What the checkpoint or the sync failed with. The store keeps in mind by
    /// itself what ends writing.
    pub fn tick(&self) -> Result<()> {
        crate::background::tick(self.core())
    }

    /// Walks everything: order, fences, checksums, counts, and that each extent
    /// is used once or free. An empty list means sound.
    pub fn integrity_check(&self) -> Result<Vec<String>> {
        check::run(self.core())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.core().pool.path)
    }
}

/// The real disk, shared by all stores of the process.
pub(crate) fn real_disk() -> Arc<dyn Disk> {
    static DISK: OnceLock<Arc<dyn Disk>> = OnceLock::new();
    DISK.get_or_init(|| Arc::new(RealDisk)).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who was committing while the database file failed heard of a misuse of the log.
    #[test]
    fn who_commits_when_the_database_file_fails_hears_why() {
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, "failed.db", Options::default()).expect("opens");
        let gone = std::io::Error::other("the disk is gone");
        let failed = DiskError::new("sync", Path::new("failed.db"), gone);
        store.core().fail(&Error::from(failed));
        let log = store.core().wal().expect("a log");
        let told = log_error(log.poisoned().expect("it ended"));
        assert_eq!(told.kind(), ErrorKind::Poisoned);
        assert!(told.message().contains("the disk is gone"), "{told}");
    }

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
