//! The simulated file system: names, power cuts, faults.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result, parent_dir};
use parking_lot::{Mutex, MutexGuard};

use crate::Rng;
use crate::file::SimFile;
use crate::inode::Inode;

/// The kinds of calls, for choosing which one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Opening a file, with or without creating it.
    Open,
    /// Removing a name.
    Remove,
    /// Renaming a file.
    Rename,
    /// Syncing a folder.
    SyncDir,
    /// Reading.
    Read,
    /// Writing, whole or vectored.
    Write,
    /// `sync_data` and `sync_all`.
    Sync,
    /// Allocating room.
    Allocate,
    /// Setting a file's length.
    Truncate,
}

/// What a failing call reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultError {
    /// An I/O error.
    Io,
    /// No space left.
    NoSpace,
}

/// A failure to come.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Which calls it concerns; `None`: all but reads.
    pub call: Option<Call>,
    /// How many of these calls still succeed.
    pub after: u64,
    /// Whether all later ones fail too, or just this one.
    pub for_good: bool,
    /// What is reported.
    pub error: FaultError,
}

/// A file system in memory that keeps apart what a process sees and what a
/// power cut leaves.
///
/// - Bytes and lengths are safe from the next successful sync of their file on,
///   names from the next successful sync of their folder on. Of names changed
///   since, a power cut leaves the oldest so and so many changes.
/// - Every call that changes or syncs something has a number, from 0. The power
///   can be cut at one of them ([`stop_at`](Self::stop_at)): it and all later
///   calls fail, and the one that was cut may have done any part of its work.
/// - [`crash_image`](Self::crash_image) gives a disk as a power cut at this
///   moment could leave it; the seed decides which of the possible ones.
/// - [`fail`](Self::fail) makes a call report an error. A failing write may have
///   done a part of its work. After a failing sync the unsynced bytes may be
///   lost for good, though they are still seen and later syncs succeed.
///
/// Clones share the disk. All of it follows from the seeds and the calls.
#[derive(Debug, Clone)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    locks: MemoryDisk,
}

#[derive(Debug)]
pub(crate) struct World {
    device: u64,
    rng: Rng,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names that are not durable yet, oldest first.
    pending_names: Vec<NameChange>,
    calls: u64,
    stop_at: Option<u64>,
    stopped: bool,
    faults: Vec<Fault>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, u64),
    Removed(PathBuf),
    Renamed(PathBuf, PathBuf),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Self::Set(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Removed(path) => {
                names.remove(path);
            }
            Self::Renamed(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Set(path, _) | Self::Removed(path) | Self::Renamed(_, path) => parent_dir(path),
        }
    }
}

/// Whether a call is to be done, and what it reports.
pub(crate) enum Verdict {
    Do,
    /// To be done in part, or not at all, and reported as this error.
    Fail(DiskError),
    /// As `Fail`, the power being cut meanwhile.
    Cut(DiskError),
    /// Not to be done at all: the power is off.
    Off(DiskError),
}

impl Verdict {
    /// For calls that do all or nothing, and nothing when they fail.
    pub(crate) fn or_nothing(self) -> Result<()> {
        match self {
            Self::Do => Ok(()),
            Self::Fail(error) | Self::Cut(error) | Self::Off(error) => Err(error),
        }
    }
}

impl SimDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, BTreeMap::new(), BTreeMap::new())
    }

    fn with(seed: u64, names: BTreeMap<PathBuf, u64>, inodes: BTreeMap<u64, Inode>) -> Self {
        static DEVICES: AtomicU64 = AtomicU64::new(1 << 32);
        let world = World {
            device: DEVICES.fetch_add(1, Ordering::Relaxed),
            rng: Rng::new(seed),
            next_inode: inodes.keys().last().map_or(1, |last| last + 1),
            inodes,
            durable_names: names.clone(),
            names,
            pending_names: Vec::new(),
            calls: 0,
            stop_at: None,
            stopped: false,
            faults: Vec::new(),
        };
        Self {
            world: Arc::new(Mutex::new(world)),
            locks: MemoryDisk::new(),
        }
    }

    /// How many calls have changed or synced something.
    pub fn calls(&self) -> u64 {
        self.world.lock().calls
    }

    /// Cuts the power at the call with this number.
    pub fn stop_at(&self, call: u64) {
        self.world.lock().stop_at = Some(call);
    }

    /// Cuts the power now.
    pub fn power_off(&self) {
        self.world.lock().stopped = true;
    }

    /// Whether the power is cut.
    pub fn is_stopped(&self) -> bool {
        self.world.lock().stopped
    }

    /// Makes a call fail.
    pub fn fail(&self, fault: Fault) {
        self.world.lock().faults.push(fault);
    }

    /// Forgets all faults that are still to come or go on.
    pub fn heal(&self) {
        self.world.lock().faults.clear();
    }

    /// A disk as a power cut at this moment could leave it.
    pub fn crash_image(&self, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let world = self.world.lock();
        let mut names = world.durable_names.clone();
        let survive = match rng.below(3) {
            0 => 0,
            1 => world.pending_names.len(),
            _ => rng.index(world.pending_names.len() + 1),
        };
        for change in world.pending_names.iter().take(survive) {
            change.apply(&mut names);
        }
        let mut inodes = BTreeMap::new();
        for inode in names.values() {
            if let Some(file) = world.inodes.get(inode) {
                inodes.insert(*inode, Inode::settled(file.after_power_cut(&mut rng)));
            }
        }
        drop(world);
        Self::with(rng.bits(), names, inodes)
    }

    /// A disk as the end of the process at this moment leaves it: nothing is lost.
    pub fn kill_image(&self) -> Self {
        let mut world = self.world.lock();
        let names = world.names.clone();
        let inodes = names.values().filter_map(|inode| {
            let file = world.inodes.get(inode)?;
            Some((*inode, Inode::settled(file.live().to_vec())))
        });
        let inodes = inodes.collect();
        let seed = world.rng.bits();
        drop(world);
        Self::with(seed, names, inodes)
    }

    /// The files, by name.
    pub fn files(&self) -> Vec<PathBuf> {
        self.world.lock().names.keys().cloned().collect()
    }

    /// A file's bytes as a process sees them.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.world.lock();
        let inode = world.names.get(path)?;
        Some(world.inodes.get(inode)?.live().to_vec())
    }

    /// Changes one byte of a file for good, as rot does. False if there is none.
    pub fn rot(&self, path: &Path, offset: usize, change: &mut dyn FnMut(&mut u8)) -> bool {
        let mut world = self.world.lock();
        let Some(inode) = world.names.get(path).copied() else {
            return false;
        };
        world
            .inodes
            .get_mut(&inode)
            .is_some_and(|file| file.rot(offset, change))
    }

    fn handle(&self, inode: u64, path: &Path, read_only: bool) -> Result<Arc<dyn DiskFile>> {
        // Locks behave as those of a disk in memory.
        let lock = self
            .locks
            .open(Path::new(&inode.to_string()), OpenOptions::CREATE)?;
        Ok(Arc::new(SimFile::new(
            Arc::clone(&self.world),
            inode,
            path.to_owned(),
            read_only,
            lock,
        )))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }
}

impl World {
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    pub(crate) fn inode(&mut self, inode: u64) -> &mut Inode {
        self.inodes.entry(inode).or_default()
    }

    /// The inode and the generator at once.
    pub(crate) fn inode_and_rng(&mut self, inode: u64) -> (&mut Inode, &mut Rng) {
        (self.inodes.entry(inode).or_default(), &mut self.rng)
    }

    fn create(&mut self, path: &Path) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, Inode::default());
        self.change_names(NameChange::Set(path.to_owned(), inode));
        inode
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    /// Counts a call and decides about it.
    pub(crate) fn admit(&mut self, call: Call, op: &'static str, path: &Path) -> Verdict {
        let changes = call != Call::Read;
        if changes && self.stop_at == Some(self.calls) {
            self.stopped = true;
            self.calls += 1;
            return Verdict::Cut(powered_off(op, path));
        }
        if self.stopped {
            return Verdict::Off(powered_off(op, path));
        }
        if changes {
            self.calls += 1;
        }
        let mut error = None;
        self.faults.retain_mut(|fault| {
            let concerned = fault.call.map_or(changes, |concerned| concerned == call);
            if !concerned {
                return true;
            }
            if fault.after > 0 {
                fault.after -= 1;
                return true;
            }
            error = Some(fault.error);
            fault.for_good
        });
        match error {
            Some(FaultError::Io) => Verdict::Fail(DiskError::new(
                op,
                path,
                io::Error::other("simulated I/O error"),
            )),
            Some(FaultError::NoSpace) => {
                Verdict::Fail(DiskError::new(op, path, io::ErrorKind::StorageFull.into()))
            }
            None => Verdict::Do,
        }
    }

    /// Admits a change of names. One that the power cut meets may have
    /// happened.
    fn admit_names(
        &mut self,
        call: Call,
        op: &'static str,
        path: &Path,
        change: NameChange,
    ) -> Result<()> {
        let verdict = self.admit(call, op, path);
        if matches!(verdict, Verdict::Do)
            || (matches!(verdict, Verdict::Cut(_)) && self.rng.one_in(2))
        {
            self.change_names(change);
        }
        verdict.or_nothing()
    }
}

fn powered_off(op: &'static str, path: &Path) -> DiskError {
    DiskError::new(op, path, io::Error::other("simulated power cut"))
}

fn error(op: &'static str, path: &Path, kind: io::ErrorKind) -> DiskError {
    DiskError::new(op, path, kind.into())
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        let present = world.names.get(path).copied();
        let creates = options.create || options.create_new;
        match present {
            None if !creates => return Err(error("open", path, io::ErrorKind::NotFound)),
            Some(_) if options.create_new => {
                return Err(error("open", path, io::ErrorKind::AlreadyExists));
            }
            _ => {}
        }
        let changes = present.is_none() || options.truncate;
        let call = if changes { Call::Open } else { Call::Read };
        world.admit(call, "open", path).or_nothing()?;
        let inode = match present {
            Some(inode) => inode,
            None => world.create(path),
        };
        if options.truncate {
            world.inode(inode).set_len(0);
        }
        drop(world);
        self.handle(inode, path, options.read_only)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let mut world = self.world();
        world.admit(Call::Read, "look up", path).or_nothing()?;
        Ok(world.names.contains_key(path))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut world = self.world();
        if !world.names.contains_key(path) {
            return Err(error("remove", path, io::ErrorKind::NotFound));
        }
        world.admit_names(
            Call::Remove,
            "remove",
            path,
            NameChange::Removed(path.to_owned()),
        )
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut world = self.world();
        if !world.names.contains_key(from) {
            return Err(error("rename", from, io::ErrorKind::NotFound));
        }
        world.admit_names(
            Call::Rename,
            "rename",
            from,
            NameChange::Renamed(from.to_owned(), to.to_owned()),
        )
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut world = self.world();
        world
            .admit(Call::SyncDir, "sync folder", dir)
            .or_nothing()?;
        let (synced, rest) = std::mem::take(&mut world.pending_names)
            .into_iter()
            .partition(|change| change.folder() == dir);
        world.pending_names = rest;
        let synced: Vec<NameChange> = synced;
        for change in synced {
            change.apply(&mut world.durable_names);
        }
        Ok(())
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        if let Verdict::Fail(error) = world.admit(Call::Open, "create a temporary file near", near)
        {
            return Err(error);
        }
        let inode = world.next_inode;
        world.next_inode += 1;
        world.inodes.insert(inode, Inode::default());
        drop(world);
        self.handle(inode, Path::new("(temporary)"), false)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }
}
