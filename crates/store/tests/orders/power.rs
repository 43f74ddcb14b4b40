//! A disk that says what a power cut would leave of it: what was synced.
//!
//! Syncs take their time now and then, so that others get to see what is on its way, if
//! they can.

use crate::common::Rng;
use fulgurite_disk::{Disk, DiskFile, FileId, MemoryDisk, OpenOptions, Result, forward};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

/// Of one file, what has not come to what a power cut leaves.
#[derive(Default)]
struct Pending {
    changes: VecDeque<Change>,
    /// How many have come to it.
    kept: usize,
}

struct Shared {
    /// What a process sees, and what a power cut leaves. Names are in both at once.
    live: MemoryDisk,
    kept: MemoryDisk,
    pending: Mutex<HashMap<FileId, Arc<Mutex<Pending>>>>,
    rng: Mutex<Rng>,
    /// Whether syncs may take their time, and how many of those are under way.
    is_slow: AtomicBool,
    syncing: AtomicUsize,
    /// Held by who changes or copies what is kept.
    copying: Mutex<()>,
    /// Names the system that runs, of which a power cut is the end.
    boot: u8,
}

/// See the module. Clones share it.
#[derive(Clone)]
pub struct Power(Arc<Shared>);

impl Power {
    pub fn new(seed: u64) -> Self {
        Self::of((MemoryDisk::new(), MemoryDisk::new()), seed, 0)
    }

    fn of((live, kept): (MemoryDisk, MemoryDisk), seed: u64, boot: u8) -> Self {
        Self(Arc::new(Shared {
            live,
            kept,
            pending: Mutex::default(),
            rng: Mutex::new(Rng::new(seed)),
            is_slow: AtomicBool::new(false),
            syncing: AtomicUsize::new(0),
            copying: Mutex::default(),
            boot,
        }))
    }

    pub fn set_slow(&self, is_slow: bool) {
        self.0.is_slow.store(is_slow, SeqCst);
    }

    /// Whether a sync is taking its time.
    pub fn is_syncing(&self) -> bool {
        self.0.syncing.load(SeqCst) > 0
    }

    /// The disk that a power cut at this moment would leave.
    pub fn cut(&self) -> Self {
        let copying = self.0.copying.lock().expect("no panic");
        let kept = self.0.kept.copied();
        drop(copying);
        Self::of((kept.copied(), kept), 0, self.0.boot + 1)
    }

    /// The disk that the end of the process at this moment would leave.
    pub fn copied(&self) -> Self {
        let live = self.0.live.copied();
        Self::of((live.copied(), live), 0, self.0.boot)
    }
}

impl Disk for Power {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        let live = self.0.live.open(path, options)?;
        let kept = match options.read_only {
            true => OpenOptions::READ,
            false => OpenOptions::CREATE,
        };
        let mut pending = self.0.pending.lock().expect("no panic");
        let pending = pending.entry(live.identity()?).or_default();
        Ok(Arc::new(PowerFile {
            kept: self.0.kept.open(path, kept)?,
            pending: pending.clone(),
            live,
            shared: self.0.clone(),
        }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.live.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let _copying = self.0.copying.lock().expect("no panic");
        self.0.kept.remove(path)?;
        self.0.live.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let _copying = self.0.copying.lock().expect("no panic");
        self.0.kept.rename(from, to)?;
        self.0.live.rename(from, to)
    }

    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn temp_file(&self, near: &Path) -> Result<Arc<dyn DiskFile>> {
        self.0.live.temp_file(near)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        self.0.live.canonical(path)
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        Some([self.0.boot; 16])
    }
}

struct PowerFile {
    live: Arc<dyn DiskFile>,
    kept: Arc<dyn DiskFile>,
    pending: Arc<Mutex<Pending>>,
    shared: Arc<Shared>,
}

impl fmt::Debug for PowerFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PowerFile({:?})", self.live)
    }
}

impl PowerFile {
    /// Changes what a process sees, and notes that.
    fn change(
        &self,
        live: impl FnOnce() -> Result<()>,
        noted: impl FnOnce() -> Result<Change>,
    ) -> Result<()> {
        let mut pending = self.pending.lock().expect("no panic");
        live()?;
        pending.changes.push_back(noted()?);
        Ok(())
    }

    fn new_length(&self) -> Result<Change> {
        Ok(Change::SetLen(self.live.len()?))
    }

    fn sync(&self) -> Result<()> {
        let pending = || self.pending.lock().expect("no panic");
        let (kept, changes) = {
            let pending = pending();
            (pending.kept, pending.changes.len())
        };
        let until = kept + changes;
        let is_slow = changes > 0 && self.shared.is_slow.load(SeqCst);
        let naps = if is_slow { self.naps() } else { 0 };
        if naps > 0 {
            self.shared.syncing.fetch_add(1, SeqCst);
            (0..naps).for_each(|_| std::thread::yield_now());
        }
        let mut pending = pending();
        let copying = self.shared.copying.lock().expect("no panic");
        let kept = (0..until.saturating_sub(pending.kept)).try_for_each(|_| {
            pending.kept += 1;
            match pending.changes.pop_front() {
                Some(Change::Write(offset, bytes)) => self.kept.write_at(&bytes, offset),
                Some(Change::SetLen(len)) => self.kept.truncate(len),
                None => Ok(()),
            }
        });
        drop((copying, pending));
        if naps > 0 {
            self.shared.syncing.fetch_sub(1, SeqCst);
        }
        kept
    }

    /// How often one that takes its time lets others run.
    fn naps(&self) -> u64 {
        let mut rng = self.shared.rng.lock().expect("no panic");
        match rng.chance(1, 2) {
            true => 1 << rng.below(9),
            false => 0,
        }
    }
}

impl DiskFile for PowerFile {
    forward!(live: len, identity, read_at, start_writeback);
    forward!(live: lock_exclusive, lock_shared, unlock);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let write = || self.live.write_at(buf, offset);
        self.change(write, || Ok(Change::Write(offset, buf.to_vec())))
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let whole: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.write_at(&whole, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> Result<()> {
        self.sync()
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let allocate = || self.live.allocate(offset, len);
        self.change(allocate, || self.new_length())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.change(|| self.live.truncate(len), || self.new_length())
    }
}
