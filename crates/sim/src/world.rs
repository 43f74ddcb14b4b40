//! The state of a simulated disk: its files, names, and what is to fail.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disk::{DiskError, Result, parent_dir};

use crate::Rng;
use crate::fault::{Call, Fault, FaultError};
use crate::gate::Gate;
use crate::inode::Inode;
use crate::journal::Effect;

/// See the module's header.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) device: u64,
    /// Names the time since the last power cut.
    pub(crate) boot: u64,
    pub(crate) rng: Rng,
    pub(crate) inodes: BTreeMap<u64, Inode>,
    pub(crate) next_inode: u64,
    pub(crate) names: BTreeMap<PathBuf, u64>,
    pub(crate) durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names that are not durable yet, oldest first.
    pub(crate) pending_names: Vec<NameChange>,
    pub(crate) calls: u64,
    pub(crate) stop_at: Option<u64>,
    pub(crate) stopped: bool,
    /// Failures to come, and the folder they are limited to, if they are.
    pub(crate) faults: Vec<(Option<PathBuf>, Fault)>,
    pub(crate) faults_met: u64,
    /// The last write that went elsewhere.
    pub(crate) misdirected: Option<Misdirected>,
    /// Calls transfer less than they are asked to, or are interrupted.
    pub(crate) choppy: bool,
    /// How reads are cut up: apart, so that looking changes nothing else.
    pub(crate) chops: Rng,
    pub(crate) journal: Option<Vec<(u64, Effect)>>,
    pub(crate) gate: Option<Arc<Gate>>,
}

/// A write that went elsewhere in its file although it was reported done.
#[derive(Debug, Clone)]
pub(crate) struct Misdirected {
    pub(crate) path: PathBuf,
    /// Where it should have begun.
    pub(crate) meant: usize,
    /// Where it began.
    pub(crate) landed: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Set(PathBuf, u64),
    Removed(PathBuf),
    Renamed(PathBuf, PathBuf),
}

impl NameChange {
    pub(crate) fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
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
    /// To be reported as done, and not to be done; or, misdirected, elsewhere.
    Pretend {
        misdirected: bool,
    },
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
            Self::Do | Self::Pretend { .. } => Ok(()),
            Self::Fail(error) | Self::Cut(error) | Self::Off(error) => Err(error),
        }
    }
}

impl World {
    pub(crate) fn new(
        seed: u64,
        names: BTreeMap<PathBuf, u64>,
        inodes: BTreeMap<u64, Inode>,
    ) -> Self {
        Self {
            device: new_device(),
            boot: seed,
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
            faults_met: 0,
            misdirected: None,
            choppy: false,
            chops: Rng::new(seed ^ 0xc4095),
            journal: None,
            gate: None,
        }
    }

    /// The same files in the same state, with nothing to fail and no journal.
    pub(crate) fn fork(&self) -> Self {
        Self {
            device: new_device(),
            rng: self.rng.clone(),
            chops: self.chops.clone(),
            inodes: self.inodes.clone(),
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            pending_names: self.pending_names.clone(),
            faults: Vec::new(),
            journal: None,
            gate: None,
            misdirected: self.misdirected.clone(),
            ..*self
        }
    }

    pub(crate) fn inode(&mut self, inode: u64) -> &mut Inode {
        self.inodes.entry(inode).or_default()
    }

    /// Changes the disk, and takes it down where a journal is kept.
    pub(crate) fn enact(&mut self, effect: &Effect) {
        self.apply(effect);
        let call = self.calls.saturating_sub(1);
        if let Some(journal) = &mut self.journal {
            journal.push((call, effect.clone()));
        }
    }

    /// As [`enact`](Self::enact) of a write, of bytes that are borrowed.
    pub(crate) fn enact_write(&mut self, inode: u64, at: usize, bytes: &[u8]) {
        self.inode(inode).write(at, bytes);
        let call = self.calls.saturating_sub(1);
        if let Some(journal) = &mut self.journal {
            journal.push((call, Effect::Write(inode, at, bytes.into())));
        }
    }

    fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Create(path, inode) => {
                self.next_inode = self.next_inode.max(inode + 1);
                self.inodes.insert(*inode, Inode::default());
                self.change_names(NameChange::Set(path.clone(), *inode));
            }
            Effect::Anonymous(inode) => {
                self.next_inode = self.next_inode.max(inode + 1);
                self.inodes.insert(*inode, Inode::default());
            }
            Effect::Name(change) => self.change_names(change.clone()),
            Effect::Write(inode, at, bytes) => self.inode(*inode).write(*at, bytes),
            Effect::SetLen(inode, len) => self.inode(*inode).set_len(*len),
            Effect::Sync(inode) => self.inode(*inode).sync(),
            Effect::FailSync(inode, seed) => self.inode(*inode).fail_sync(&mut Rng::new(*seed)),
            Effect::SyncDir(dir) => self.sync_names(dir),
        }
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn sync_names(&mut self, dir: &Path) {
        let (synced, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending_names)
            .into_iter()
            .partition(|change| change.folder() == dir);
        self.pending_names = rest;
        for change in synced {
            change.apply(&mut self.durable_names);
        }
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
        self.faults.retain_mut(|(folder, fault)| {
            let concerned = fault.call.map_or(changes, |concerned| concerned == call)
                && folder
                    .as_ref()
                    .is_none_or(|folder| path.starts_with(folder));
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
        self.faults_met += u64::from(error.is_some());
        match error {
            Some(FaultError::Io) => Verdict::Fail(DiskError::new(
                op,
                path,
                io::Error::other("simulated I/O error"),
            )),
            Some(FaultError::NoSpace) => {
                Verdict::Fail(DiskError::new(op, path, io::ErrorKind::StorageFull.into()))
            }
            Some(FaultError::Lost) => Verdict::Pretend { misdirected: false },
            Some(FaultError::Misdirected) => Verdict::Pretend { misdirected: true },
            None => Verdict::Do,
        }
    }

    /// Admits a change of names. One that the power cut meets may have
    /// happened.
    pub(crate) fn admit_names(
        &mut self,
        call: Call,
        op: &'static str,
        path: &Path,
        change: NameChange,
    ) -> Result<()> {
        let verdict = self.admit(call, op, path);
        if matches!(verdict, Verdict::Do | Verdict::Pretend { .. })
            || (matches!(verdict, Verdict::Cut(_)) && self.rng.one_in(2))
        {
            self.enact(&Effect::Name(change));
        }
        verdict.or_nothing()
    }
}

fn new_device() -> u64 {
    static DEVICES: AtomicU64 = AtomicU64::new(1 << 32);
    DEVICES.fetch_add(1, Ordering::Relaxed)
}

fn powered_off(op: &'static str, path: &Path) -> DiskError {
    DiskError::new(op, path, io::Error::other("simulated power cut"))
}
