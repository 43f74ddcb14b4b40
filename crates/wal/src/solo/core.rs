//! The state of an open log, shared by its threads.
//!
//! Positions only grow: `durable <= written <= appended`. The tail's lock covers
//! placing a record and copying it into the ring; the flush lock covers writing
//! and syncing. Where several locks are taken, their order is: preparing,
//! reserving, head, flush, syncing, tail, the room's epoch.
//!
//! Whoever syncs the file does so alone: the operating system reports a failure to
//! one of those who sync, and to the next ones that all is well. So no sync begins
//! before the failure of the one before has ended the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_disk::{DiskFile, Result as DiskResult};

use super::background::Signal;
use super::device::Device;
use super::error::{Error, Result};
use super::gather::Waiting;
use super::header::Header;
use super::leading::Turns;
use super::locks::lock;
use super::mirror::MirrorFile;
use super::options::Preallocation;
use super::probe::Measured;
use super::ring::Ring;
use super::room::Room;
use super::spin::SpinLock;
use super::volume::Volume;
use crate::primitives::{AtomicU64, Mutex, Ordering};

/// Where the next record goes.
pub(super) struct Tail {
    pub(super) lsn: u64,
    pub(super) seq: u64,
    /// The life whose first record is still to be placed, with the first entry:
    /// a log at its limit has no room for it.
    pub(super) begins: Option<u64>,
    /// Records that end at or before this position have room in the file and in
    /// the ring; zero while something else must come first. Room only grows, so
    /// this may be old; who puts up a fence (`room.rs`) lowers it.
    pub(super) free_until: u64,
    /// An end behind this position may be work for the background thread.
    pub(super) attend_at: u64,
    /// The last rest of a block that was left empty, and where the record
    /// behind it begins. A write that would begin with it begins behind it, so
    /// that the block before is not written again.
    pub(super) skipped: (u64, u64),
}

/// What the leader goes on from.
pub(super) struct Flush {
    /// The first position that is not written, and the next sequence number there.
    pub(super) lsn: u64,
    pub(super) seq: u64,
    pub(super) syncs: u32,
}

impl Flush {
    /// Passes over the empty rest of a block.
    pub(super) fn skip(&mut self, skipped: (u64, u64)) {
        if skipped.0 == self.lsn {
            self.lsn = skipped.1;
        }
    }
}

/// The head as it is on disk, and where lives begin behind it.
pub(super) struct Head {
    pub(super) header: Header,
    pub(super) lives: Vec<Life>,
}

/// A life's number and where it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) start: u64,
    pub(super) number: u64,
}

pub(super) struct Core {
    pub(super) path: PathBuf,
    pub(super) device: Device,
    pub(super) measured: Vec<Measured>,
    pub(super) volume: Volume,
    pub(super) mirror: Option<Arc<MirrorFile>>,
    /// See [`Stats::turns_to_other_side`].
    pub(super) turned: AtomicU64,
    /// Held for its locks, which exclude other processes.
    pub(super) _locks: Vec<Arc<dyn DiskFile>>,
    pub(super) waiting: Waiting,
    pub(super) start_writeback: bool,
    pub(super) preallocation: Preallocation,
    pub(super) append_timeout: Duration,
    /// The salt of this life's records.
    pub(super) salt: u64,
    /// The longest payload that fits.
    pub(super) payload_bytes_max: u64,
    /// Larger records go the long way, which knows what to do with them.
    pub(super) quick_bytes_max: u64,

    pub(super) ring: Ring,
    pub(super) tail: SpinLock<Tail>,
    pub(super) appended: AtomicU64,
    pub(super) room: Room,
    pub(super) head_lsn: AtomicU64,
    pub(super) head: Mutex<Head>,

    pub(super) flush: Mutex<Flush>,
    pub(super) syncing: Mutex<()>,
    /// Up to where the newest leader goes.
    pub(super) flushing: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) durable: AtomicU64,
    /// The last sequence number that is durable.
    pub(super) durable_seq: AtomicU64,

    pub(super) turns: Turns,
    pub(super) signal: Signal,
    /// Whether somebody waits for the signal.
    pub(super) has_background: bool,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("path", &self.path)
            .field("device", &self.device)
            .field("appended", &self.appended())
            .finish_non_exhaustive()
    }
}

/// Counters since a log was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Records appended and written.
    pub records: u64,
    /// Bytes of records written, with their heads and padding.
    pub bytes: u64,
    /// Write calls.
    pub writes: u64,
    /// Syncs. `records / syncs` is the mean group.
    pub syncs: u64,
    /// The most records one write carried.
    pub largest_group: u64,
    /// How often a committer slept because another one led.
    pub parks: u64,
    /// How often a leader waited for a crowd on its way, and how long all
    /// together, in nanoseconds.
    pub crowd_waits: u64,
    /// See `crowd_waits`.
    pub crowd_wait_nanos: u64,
    /// How often an append waited for a truncation.
    pub pressure_waits: u64,
    /// How often the file was extended.
    pub extensions: u64,
    /// Bytes of records kept now.
    pub kept_bytes: u64,
    /// The most bytes that can be kept.
    pub limit_bytes: u64,
    /// The sides of a mirror that work; 1 without a mirror.
    pub sides: u32,
    /// How often reading met a record that one side of a mirror has lost, and went on with
    /// the other. Opening the log again mends that side.
    pub turns_to_other_side: u64,
}

impl Core {
    pub(super) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    pub(super) fn head(&self) -> u64 {
        self.head_lsn.load(Ordering::Acquire)
    }

    pub(super) fn stats(&self) -> Stats {
        let counted = self.turns.counters.read();
        Stats {
            records: counted.records,
            bytes: counted.bytes,
            writes: counted.writes,
            syncs: counted.syncs,
            largest_group: counted.largest_group,
            parks: counted.parks,
            crowd_waits: counted.crowd_waits,
            crowd_wait_nanos: counted.crowd_wait_nanos,
            pressure_waits: counted.pressure_waits,
            extensions: counted.extensions,
            kept_bytes: self.appended().saturating_sub(self.head()),
            limit_bytes: self.volume.capacity,
            sides: self.mirror.as_ref().map_or(1, |mirror| mirror.working()),
            turns_to_other_side: self.turned.load(Ordering::Relaxed),
        }
    }

    /// Does what syncs the file, unless the log has ended. A failure ends it.
    pub(super) fn synced(&self, sync: impl FnOnce() -> DiskResult<()>) -> Result<()> {
        let _alone = lock(&self.syncing);
        self.check()?;
        self.or_end(sync())
    }

    /// A call that fails ends the log.
    pub(super) fn or_end<T>(&self, result: DiskResult<T>) -> Result<T> {
        result.map_err(|error| self.poison(Error::Disk(error)))
    }

    /// Ends all appending, for good; the first cause stays.
    pub(super) fn poison(&self, cause: Error) -> Error {
        self.turns.end(cause);
        self.room.changed();
        self.turns.failure()
    }

    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.turns.check()
    }
}
