//! A log on two paths: everything is written and synced to both, in parallel.
//!
//! Each side carries a *label* (`label.rs`); what opening makes of those is in `settle.rs`.
//!
//! Where a write or sync fails on one side, the other gets a label with the next
//! epoch that names it the only member, synced, before the call returns. So
//! nothing is acknowledged on one side alone that a stale other side could hide:
//! when both are seen again, the lower epoch is stale and is rebuilt. A side
//! alone cannot know whether it is stale, so opening one is the caller's
//! explicit choice. Sides whose labels exclude each other are never chosen
//! between.
//!
//! Before a side is rebuilt the other one names itself the only member in the
//! same way: the lost side is stale from then on, and a side that bears a copy of
//! that label is a copy, to be made again.
//!
//! After a crash both sides are members and may differ in what was never
//! acknowledged, or one of them in what it lost since; the one that reaches further is
//! taken, and the other one made equal to it before the log is opened.
//!
//! A side without a label, which is damaged then, is as a missing one, if there is proof
//! that it is a side; what may be somebody else's is never replaced.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use fulgurite_disk::{DiskError, DiskErrorKind, DiskFile, FileId, Lifetime, Result as DiskResult};

use super::error::{Error, Result};
use super::label::{Label, MaxByEpoch};
use super::locks::lock;
use super::sectors::WithSectorsOf;
use crate::primitives::{AtomicBool, Mutex, Ordering};

/// What is to be done on a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Write,
    WriteAndSync,
    Sync,
}

impl Act {
    fn run(self, file: &dyn DiskFile, bufs: &[IoSlice<'_>], offset: u64) -> DiskResult<()> {
        match self {
            Self::Write => file.write_vectored_at(bufs, offset),
            Self::WriteAndSync => file.write_and_sync_at(bufs, offset),
            Self::Sync => file.sync_data(),
        }
    }
}

struct Job {
    act: Act,
    bytes: Vec<u8>,
    offset: u64,
}

type Answer = (DiskResult<()>, Vec<u8>);

/// The thread that works on the second side while the caller works on the first.
#[derive(Debug)]
struct Second {
    jobs: Sender<Job>,
    answers: Receiver<Answer>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Side {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    lost: AtomicBool,
    /// Its bit in a label's members.
    bit: u8,
}

#[derive(Debug)]
struct State {
    label: Label,
    second: Option<Second>,
}

/// The sides as one file.
#[derive(Debug)]
pub(super) struct MirrorFile {
    sides: Vec<Side>,
    state: Mutex<State>,
}

impl MirrorFile {
    /// The sides that [`settle`](super::settle::settle) returned, opened; `first` is the path that bit
    /// 0 of a label's members stands for.
    pub(super) fn new(
        files: Vec<(PathBuf, Arc<dyn DiskFile>)>,
        first: &Path,
        in_parallel: bool,
    ) -> Result<Self> {
        let mut label = None;
        let mut sides = Vec::new();
        for (path, file) in files {
            let own = Label::read(&*file, &path)?;
            label = label.max_by_epoch(Some(own));
            sides.push(Side {
                bit: if path == first { 1 } else { 2 },
                path,
                file,
                lost: AtomicBool::new(false),
            });
        }
        let label = label.ok_or(Error::Misuse("a mirror without sides"))?;
        let second = match sides.as_slice() {
            [_, second] if in_parallel => {
                Some(Second::start(Arc::clone(&second.file), &second.path)?)
            }
            _ => None,
        };
        Ok(Self {
            sides,
            state: Mutex::new(State { label, second }),
        })
    }

    /// How many sides work.
    pub(super) fn working(&self) -> u32 {
        self.working_sides().count() as u32
    }

    fn working_sides(&self) -> impl Iterator<Item = &Side> {
        self.sides
            .iter()
            .filter(|side| !side.lost.load(Ordering::Acquire))
    }

    /// Where both sides work, each of them by itself, with those sectors of the other that
    /// it lost.
    pub(super) fn each_alone(&self) -> Vec<Arc<dyn DiskFile>> {
        let mut working = self.working_sides().map(|side| &side.file);
        match (working.next(), working.next()) {
            (Some(first), Some(second)) => vec![
                WithSectorsOf::file(second, first),
                WithSectorsOf::file(first, second),
            ],
            _ => Vec::new(),
        }
    }

    fn act(&self, act: Act, bufs: &[IoSlice<'_>], offset: u64) -> DiskResult<()> {
        let mut state = lock(&self.state);
        let mut working = self.working_sides();
        let (Some(first), second) = (working.next(), working.next()) else {
            return Err(self.no_side());
        };
        let Some(second) = second else {
            return act.run(&*first.file, bufs, offset);
        };
        let sent = state
            .second
            .as_mut()
            .is_some_and(|other| other.send(act, bufs, offset));
        let of_first = act.run(&*first.file, bufs, offset);
        let answer = if sent {
            state.second.as_mut().and_then(Second::receive)
        } else {
            None
        };
        let of_second = answer.unwrap_or_else(|| act.run(&*second.file, bufs, offset));
        self.decide(&mut state, (first, of_first), (second, of_second))
    }

    /// What two results mean: a side that failed is given up, durably, before
    /// the other one's success counts.
    fn decide(
        &self,
        state: &mut State,
        first: (&Side, DiskResult<()>),
        second: (&Side, DiskResult<()>),
    ) -> DiskResult<()> {
        let (lost, survivor) = match (first, second) {
            ((_, Ok(())), (_, Ok(()))) => return Ok(()),
            ((_, Err(error)), (_, Err(_))) => return Err(error),
            ((lost, Err(_)), (survivor, Ok(()))) | ((survivor, Ok(())), (lost, Err(_))) => {
                (lost, survivor)
            }
        };
        state.label.epoch += 1;
        state.label.members = survivor.bit;
        lost.lost.store(true, Ordering::Release);
        state.label.write(&*survivor.file).inspect_err(|_| {
            // A sync that follows a failed one succeeds, whatever was lost with that. Not
            // every caller ends the log with this error, so that nobody may get to one.
            survivor.lost.store(true, Ordering::Release);
        })
    }

    /// Does the same on both sides, one after the other.
    fn each(&self, run: impl Fn(&dyn DiskFile) -> DiskResult<()>) -> DiskResult<()> {
        let mut state = lock(&self.state);
        let mut working = self.working_sides();
        match (working.next(), working.next()) {
            (Some(first), Some(second)) => {
                let results = (run(&*first.file), run(&*second.file));
                self.decide(&mut state, (first, results.0), (second, results.1))
            }
            (Some(only), None) => run(&*only.file),
            _ => Err(self.no_side()),
        }
    }

    fn no_side(&self) -> DiskError {
        let path = self.sides.first().map_or(Path::new(""), |side| &side.path);
        let source = std::io::Error::other("no side of the mirror works any more");
        DiskError::with_kind("write", path, DiskErrorKind::Other, source)
    }

    fn any(&self) -> DiskResult<&dyn DiskFile> {
        let side = self.working_sides().next().ok_or_else(|| self.no_side())?;
        Ok(&*side.file)
    }
}

impl Second {
    fn start(file: Arc<dyn DiskFile>, path: &Path) -> Result<Self> {
        let (jobs, to_do) = channel::<Job>();
        let (done, answers) = channel::<Answer>();
        thread::Builder::new()
            .name("fulgurite-mirror".to_owned())
            .spawn(move || {
                // Ends with the mirror, which holds the other ends.
                while let Ok(job) = to_do.recv() {
                    let bufs = [IoSlice::new(&job.bytes)];
                    let result = job.act.run(&*file, &bufs, job.offset);
                    if done.send((result, job.bytes)).is_err() {
                        break;
                    }
                }
            })
            .map_err(|e| {
                DiskError::with_kind("start a thread for", path, DiskErrorKind::Other, e)
            })?;
        Ok(Self {
            jobs,
            answers,
            buffer: Vec::new(),
        })
    }

    fn send(&mut self, act: Act, bufs: &[IoSlice<'_>], offset: u64) -> bool {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        for buf in bufs {
            bytes.extend_from_slice(buf);
        }
        self.jobs.send(Job { act, bytes, offset }).is_ok()
    }

    fn receive(&mut self) -> Option<DiskResult<()>> {
        let (result, bytes) = self.answers.recv().ok()?;
        self.buffer = bytes;
        Some(result)
    }
}

impl DiskFile for MirrorFile {
    fn len(&self) -> DiskResult<u64> {
        self.any()?.len()
    }

    fn identity(&self) -> DiskResult<FileId> {
        self.any()?.identity()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        let mut last = Err(self.no_side());
        for side in self.working_sides() {
            last = side.file.read_at(buf, offset);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> DiskResult<()> {
        self.act(Act::Write, &[IoSlice::new(buf)], offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> DiskResult<()> {
        self.act(Act::Write, bufs, offset)
    }

    fn write_and_sync_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> DiskResult<()> {
        self.act(Act::WriteAndSync, bufs, offset)
    }

    fn sync_data(&self) -> DiskResult<()> {
        self.act(Act::Sync, &[], 0)
    }

    fn sync_all(&self) -> DiskResult<()> {
        self.each(|file| file.sync_all())
    }

    fn hint_lifetime(&self, lifetime: Lifetime) {
        for side in self.working_sides() {
            side.file.hint_lifetime(lifetime);
        }
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        for side in self.working_sides() {
            side.file.start_writeback(offset, len);
        }
    }

    fn finish_writeback(&self, offset: u64, len: u64) -> DiskResult<()> {
        self.each(|file| file.finish_writeback(offset, len))
    }

    fn allocate(&self, offset: u64, len: u64) -> DiskResult<()> {
        self.each(|file| file.allocate(offset, len))
    }

    fn truncate(&self, len: u64) -> DiskResult<()> {
        self.each(|file| file.truncate(len))
    }

    fn lock_exclusive(&self) -> DiskResult<()> {
        self.each(|file| file.lock_exclusive())
    }

    fn lock_shared(&self) -> DiskResult<()> {
        self.each(|file| file.lock_shared())
    }

    fn unlock(&self) {
        for side in &self.sides {
            side.file.unlock();
        }
    }
}
