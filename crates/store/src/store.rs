//! An open store: the public handle, and its end. What all handles share is in `store/core.rs`.

mod core;
mod failure;

use crate::cache::MemoryCounter;
use crate::check;
use crate::checkpoint;
use crate::error::{Error, Result};
use crate::names;
use crate::open;
use crate::options::{Durability, Options};
use crate::registry;
use crate::shelf::Shelf;
use crate::tree::{KeyKind, Tree, TreeId};
use crate::txn::TxnContext;
use fulgurite_disk::{Disk, DiskFile, MemoryDisk, RealDisk};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub(crate) use self::core::Core;
pub(crate) use failure::log_error;

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
        registry::open_on(disk, path.as_ref(), options)
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

    /// Whether this handle refuses writes. One that was opened for reading only does, also
    /// where it joined a store that others write to.
    pub fn is_read_only(&self) -> bool {
        self.read_only
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
    /// `None` where only a snapshot would tell, and where the tree is not there.
    pub fn stamp(&self, tree: &Tree) -> Option<u64> {
        if tree.store_number() != self.number() {
            return None;
        }
        let head = tree.0.versions.head().filter(|head| !head.dropped)?.seq;
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

    /// The same through a handle for reading only, too, where others write to the store: for
    /// what all who open it begin with.
    ///
    /// # Errors
    /// As [`create_family`](Self::create_family); `ReadOnly` where nobody writes.
    pub fn provide_family(&self, name: &str, kind: KeyKind) -> Result<Tree> {
        Store::new(Arc::clone(&self.handle)).create_family(name, kind)
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

    /// The trees that have names, those of the store's own use among them: none that
    /// [`TxnContext::create_tree`] made by itself.
    pub fn named_trees(&self) -> Result<Vec<TreeId>> {
        names::trees(self)
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
