//! The simulated file system: names, power cuts, faults.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::Rng;
use crate::fault::{Call, Fault};
use crate::file::SimFile;
use crate::gate::Gate;
use crate::inode::Inode;
use crate::journal::{Effect, Journal};
use crate::world::{Misdirected, NameChange, Verdict, World};

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
/// - [`record`](Self::record) keeps a [`Journal`], from which the disk of any
///   earlier moment can be had again.
///
/// Clones share the disk. All of it follows from the seeds and the calls.
#[derive(Debug, Clone)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    locks: MemoryDisk,
}

impl SimDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> Self {
        Self::of(World::new(seed, BTreeMap::new(), BTreeMap::new()))
    }

    fn of(world: World) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
            locks: MemoryDisk::new(),
        }
    }

    /// Another disk in the same state, unsynced bytes and names included, with
    /// nothing to fail.
    pub fn fork(&self) -> Self {
        Self::of(self.world.lock().fork())
    }

    /// Begins to keep a journal.
    pub fn record(&self) {
        self.world.lock().journal = Some(Vec::new());
    }

    /// Ends the journal. `before` is a fork of the moment it was begun.
    pub fn recorded(&self, before: SimDisk) -> Journal {
        Journal {
            before,
            effects: self.world.lock().journal.take().unwrap_or_default(),
        }
    }

    pub(crate) fn enact(&self, effect: &Effect) {
        self.world.lock().enact(effect);
    }

    /// Makes one thread stop at its calls.
    pub fn set_gate(&self, gate: Option<Arc<Gate>>) {
        self.world.lock().gate = gate;
    }

    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        self.world.lock().gate.clone()
    }

    /// The disk's next random number.
    pub(crate) fn random(&self) -> u64 {
        self.world.lock().rng.bits()
    }

    /// Other random numbers from now on.
    pub(crate) fn reseed(&self, seed: u64) {
        self.world.lock().rng = Rng::new(seed);
    }

    /// Before a call of the gate's thread, outside the disk's own lock.
    pub(crate) fn pass_gate(world: &Mutex<World>) {
        let gate = world.lock().gate.clone();
        if let Some(gate) = gate {
            gate.stop_here();
        }
    }

    /// From now on system calls transfer less than they are asked to, or are
    /// interrupted, at random.
    pub fn set_choppy(&self, choppy: bool) {
        self.world.lock().choppy = choppy;
    }

    /// How many calls have changed or synced something.
    pub fn calls(&self) -> u64 {
        self.world.lock().calls
    }

    /// How many calls met a fault.
    pub fn faults_met(&self) -> u64 {
        self.world.lock().faults_met
    }

    /// The last write that went elsewhere.
    pub(crate) fn misdirected(&self) -> Option<Misdirected> {
        self.world.lock().misdirected.clone()
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
        self.world.lock().faults.push((None, fault));
    }

    /// Makes a call on files under `folder` fail: one of several disks.
    pub fn fail_under(&self, folder: &Path, fault: Fault) {
        let folder = Some(folder.to_owned());
        self.world.lock().faults.push((folder, fault));
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
        Self::of(World::new(rng.bits(), names, inodes))
    }

    /// A disk as the end of the process at this moment leaves it, with the power
    /// on: nothing is lost, and what was not synced still is not.
    pub fn kill_image(&self) -> Self {
        let mut world = self.world.lock().fork();
        world.calls = 0;
        world.stop_at = None;
        world.stopped = false;
        Self::of(world)
    }

    /// A disk on which everything that a process sees now is safe.
    pub fn settled_image(&self) -> Self {
        let mut world = self.world.lock();
        let names = world.names.clone();
        let inodes = names.values().filter_map(|inode| {
            let file = world.inodes.get(inode)?;
            Some((*inode, Inode::settled(file.live().clone())))
        });
        let inodes = inodes.collect();
        let seed = world.rng.bits();
        drop(world);
        Self::of(World::new(seed, names, inodes))
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

fn error(op: &'static str, path: &Path, kind: io::ErrorKind) -> DiskError {
    DiskError::new(op, path, kind.into())
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        if options.create || options.create_new || options.truncate {
            Self::pass_gate(&self.world);
        }
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
            None => {
                let inode = world.next_inode;
                world.enact(&Effect::Create(path.to_owned(), inode));
                inode
            }
        };
        if options.truncate && present.is_some() {
            world.enact(&Effect::SetLen(inode, 0));
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
        world.enact(&Effect::SyncDir(dir.to_owned()));
        Ok(())
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        if let Verdict::Fail(error) = world.admit(Call::Open, "create a temporary file near", near)
        {
            return Err(error);
        }
        let inode = world.next_inode;
        world.enact(&Effect::Anonymous(inode));
        drop(world);
        self.handle(inode, Path::new("(temporary)"), false)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Changes with each power cut.
    fn boot_id(&self) -> Option<[u8; 16]> {
        Some(u128::from(self.world.lock().boot).to_le_bytes())
    }
}
