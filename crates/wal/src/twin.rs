//! The log as its users see it, and the committer's path through it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, DiskError, DiskFile, Driver, LineStart, Machine};

use super::buffer::Buffer;
use super::continuation::BegunHook;
use super::error::{Error, Result};
use super::flush::Flush;
use super::generation::Generation;
use super::growth::{Asked, GrowthHook};
use super::leading::Turns;
use super::lease::Leases;
use super::locks::lock;
use super::record::{EMPTY_RECORD_BYTES, PAYLOAD_BYTES_MAX, record_bytes};
use super::space::Room;
use super::stats::WalStats;
use crate::primitives::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};

/// What an acknowledged commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power cut: `wait` returns once the record is synced.
    #[default]
    Full,
    /// The end of the process: `wait` returns once the record is written to the
    /// operating system, through a map of the file where the disk has maps.
    /// [`TwinLog::sync`] makes what was written durable.
    Normal,
    /// As `Normal`, and nothing is ever synced. For tests.
    Off,
}

/// Called, without locks, by a reservation that has to wait for a checkpoint, with the
/// time that it has left.
pub type PressureHook = Arc<dyn Fn(Duration) + Send + Sync>;

/// Says whether the log's name is another database's by now: somebody moved the
/// database's file or removed it, and made another one. Where it cannot tell, nothing is
/// done to the files of the name.
pub type MovedHook = Arc<dyn Fn() -> fulgurite_disk::Result<bool> + Send + Sync>;

/// How a log behaves while it is open.
#[derive(Clone)]
pub struct WalOptions {
    /// What an acknowledged commit survives, until [`TwinLog::relax`].
    pub durability: Durability,
    /// How many bytes of records both generations hold together at most. One
    /// record larger than this is let through when the log is empty.
    pub limit_bytes: u64,
    /// How long [`TwinLog::reserve`] waits for a checkpoint to make room.
    pub reserve_timeout: Duration,
    /// Should make a checkpoint start: a reservation waits for one.
    pub pressure: Option<PressureHook>,
    /// Should make [`TwinLog::grow_ahead`] be called soon: the current file is nearly
    /// full. Without it whoever needs more room makes it.
    pub growth: Option<GrowthHook>,
    /// Told of the first generation.
    pub begun: Option<BegunHook>,
    /// Asked before a file is given one of the log's names, or one is taken away.
    pub moved: Option<MovedHook>,
    /// Gives time and salts; the machine does where there is none.
    pub driver: Option<Arc<dyn Driver>>,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            limit_bytes: 32 << 20,
            reserve_timeout: Duration::from_secs(5),
            pressure: None,
            growth: None,
            begun: None,
            moved: None,
            driver: None,
        }
    }
}

impl WalOptions {
    /// A salt no earlier generation had: 64 random bits.
    pub(super) fn fresh_salt(&self) -> u64 {
        match &self.driver {
            Some(driver) => driver.random(),
            None => Machine.random(),
        }
    }
}

/// Names a generation, from [`TwinLog::switch`] to [`TwinLog::recycle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GenerationId(pub(super) u64);

/// Room in the log for one record. Dropping it gives the room back.
#[derive(Debug)]
#[must_use = "dropping a permit gives the room back"]
pub struct Permit<'w> {
    wal: &'w TwinLog,
    payload_len: usize,
    bytes: u64,
}

impl<'w> Permit<'w> {
    /// How long the record's payload is.
    pub fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// For bytes that were added to those outstanding.
    pub(super) fn new(wal: &'w TwinLog, payload_len: usize) -> Self {
        Self {
            wal,
            payload_len,
            bytes: record_bytes(payload_len),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.wal.outstanding.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// A record's place in the log, which must be filled. Dropping it unfilled
/// poisons the log, since nothing after it could ever be acknowledged.
#[derive(Debug)]
#[must_use = "a placed record must be filled"]
pub struct Placed<'w> {
    pub(super) wal: &'w TwinLog,
    pub(super) seq: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) position: u64,
    pub(super) salt: u64,
    /// Which of the two files.
    pub(super) slot: usize,
    pub(super) payload_len: usize,
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        self.wal
            .poison(Error::Misuse("a record was placed and never filled"));
    }
}

/// Names a filled record until it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    seq: u64,
}

impl Ticket {
    pub(super) fn new(seq: u64) -> Self {
        Self { seq }
    }

    /// The record's sequence number.
    pub fn seq(self) -> u64 {
        self.seq
    }
}

/// What the next record gets: changed under the caller's commit lock, and for
/// a few instructions at a time by the rare events that change the generations.
pub(super) struct Placement {
    pub(super) next_seq: u64,
    /// The log position of the next record.
    pub(super) tail: u64,
    pub(super) current: Generation,
    /// Still needed by a checkpoint that is not durable yet.
    pub(super) previous: Option<Generation>,
    /// Ready to become current.
    pub(super) prepared: Option<Generation>,
    /// Its file can be headed anew.
    pub(super) idle: Option<Generation>,
    /// The last growth ahead that was asked for.
    pub(super) growth_asked: Option<Asked>,
}

impl Placement {
    /// The log position from which on bytes count against the limit.
    pub(super) fn floor(&self) -> u64 {
        self.previous.as_ref().unwrap_or(&self.current).base
    }
}

/// The open log. All methods take `&self` and may be called from many threads. Its
/// fields lie in the order of this text: first what hardly changes.
#[repr(C)]
pub struct TwinLog {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) base: PathBuf,
    pub(super) database: [u8; 16],
    pub(super) options: WalOptions,
    /// `full` has become `normal`.
    pub(super) relaxed: AtomicBool,
    /// Where the leader must go over to the next file; `u64::MAX` if nowhere.
    pub(super) boundary: AtomicU64,
    /// The last sequence number before the boundary.
    pub(super) boundary_seq: AtomicU64,
    /// The two files, each from when a generation was first ready in it: who writes in
    /// place finds it without a lock.
    pub(super) files: [OnceLock<Arc<dyn DiskFile>>; 2],
    /// The system that keeps what is written, if it can be told.
    pub(super) boot: Option<[u8; 16]>,
    /// The last sequence number before this log, and its first log position.
    pub(super) first: (u64, u64),
    /// The same of what is written in place.
    pub(super) in_place_first: (AtomicU64, AtomicU64),
    /// Held through preparing, recycling and closing.
    pub(super) background: Mutex<()>,
    /// Whether somebody makes an explicit sync.
    pub(super) syncing: Mutex<bool>,
    pub(super) explicit_sync_ended: Condvar,
    /// Held through extending a file.
    pub(super) extending: Mutex<()>,
    pub(super) room: Mutex<Room>,
    pub(super) room_changed: Condvar,
    /// There once there is a file: a life without commits need not touch it.
    pub(super) lazy_buffer: OnceLock<Buffer>,

    /// What reserving and placing write.
    pub(super) placing: LineStart,
    /// Bytes of permits that were granted and not placed yet.
    pub(super) outstanding: AtomicU64,
    /// `Placement::tail`, to read without its lock, and the last record placed.
    pub(super) tail: AtomicU64,
    pub(super) placed_seq: AtomicU64,
    /// The log position up to which file space and limit allow records.
    pub(super) room_until: AtomicU64,
    /// The same by the limit alone.
    pub(super) limit_until: AtomicU64,
    /// The current generation's first log position.
    pub(super) current_base: AtomicU64,
    pub(super) placement: Mutex<Placement>,

    /// What leading writes.
    pub(super) leading: LineStart,
    /// Everything below is written, and its ring space free.
    pub(super) written_lsn: AtomicU64,
    pub(super) written_seq: AtomicU64,
    /// Everything up to this is synced or in a durable checkpoint.
    pub(super) synced_seq: AtomicU64,
    pub(super) acked_seq: AtomicU64,
    /// The last sequence number that the newest leader writes.
    pub(super) flushing_seq: AtomicU64,
    pub(super) flush: Mutex<Flush>,

    pub(super) committing: LineStart,
    pub(super) leases: Mutex<Leases>,
    pub(super) turns: Turns,
}

impl std::fmt::Debug for TwinLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TwinLog")
            .field("base", &self.base)
            .field("acked", &self.acked())
            .finish_non_exhaustive()
    }
}

impl TwinLog {
    /// A log whose current generation holds nothing but its begin record, and has no
    /// file yet.
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        base: PathBuf,
        database: [u8; 16],
        options: WalOptions,
        current: Generation,
        next_seq: u64,
    ) -> Self {
        let tail = current.base + EMPTY_RECORD_BYTES;
        let last = next_seq - 1;
        let wal = Self {
            boot: disk.boot_id(),
            disk,
            base,
            database,
            options,
            relaxed: AtomicBool::new(false),
            boundary: AtomicU64::new(u64::MAX),
            boundary_seq: AtomicU64::new(0),
            files: Default::default(),
            first: (last, tail),
            in_place_first: (AtomicU64::new(last), AtomicU64::new(tail)),
            background: Mutex::default(),
            syncing: Mutex::default(),
            explicit_sync_ended: Condvar::default(),
            extending: Mutex::default(),
            room: Mutex::default(),
            room_changed: Condvar::default(),
            lazy_buffer: OnceLock::new(),
            placing: LineStart,
            outstanding: AtomicU64::new(0),
            tail: AtomicU64::new(tail),
            placed_seq: AtomicU64::new(last),
            room_until: AtomicU64::new(0),
            limit_until: AtomicU64::new(0),
            current_base: AtomicU64::new(current.base),
            leading: LineStart,
            written_lsn: AtomicU64::new(tail),
            written_seq: AtomicU64::new(last),
            synced_seq: AtomicU64::new(last),
            acked_seq: AtomicU64::new(last),
            flushing_seq: AtomicU64::new(last),
            flush: Mutex::new(Flush::new(next_seq, tail, current)),
            placement: Mutex::new(Placement {
                next_seq,
                tail,
                current,
                previous: None,
                prepared: None,
                idle: None,
                growth_asked: None,
            }),
            committing: LineStart,
            leases: Mutex::default(),
            turns: Turns::default(),
        };
        wal.update_room(&lock(&wal.placement));
        wal
    }

    /// Reserves room for one record, before the caller takes any lock: waits
    /// for a checkpoint where the log is at its limit, and makes sure of the
    /// file space, so that a full disk fails here and nowhere later.
    ///
    /// # Errors
    /// `TooBig`; `NoRoom` when the checkpoint that it asked for failed; `Full`
    /// when none made room in time; `Disk` when the file cannot grow; `Poisoned`
    /// or `Closed`.
    pub fn reserve(&self, payload_len: usize) -> Result<Permit<'_>> {
        self.reserve_within(payload_len, self.options.reserve_timeout)
    }

    /// The same for who waits for a checkpoint no longer than `patience`.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_within(&self, payload_len: usize, patience: Duration) -> Result<Permit<'_>> {
        let [permit] = self.reserve_all_within([payload_len], patience)?;
        Ok(permit)
    }

    /// Room for several records at once: who asked for one after the other could wait for
    /// room that it has itself.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_all_within<const N: usize>(
        &self,
        payload_lens: [usize; N],
        patience: Duration,
    ) -> Result<[Permit<'_>; N]> {
        if let Some(too_big) = payload_lens.iter().find(|len| **len > PAYLOAD_BYTES_MAX) {
            return Err(Error::TooBig {
                bytes: *too_big as u64,
                limit_bytes: PAYLOAD_BYTES_MAX as u64,
            });
        }
        self.check()?;
        let bytes = payload_lens.iter().map(|len| record_bytes(*len)).sum();
        if !self.reserve_quickly(bytes) {
            self.reserve_slowly(bytes, patience)?;
        }
        Ok(payload_lens.map(|len| Permit::new(self, len)))
    }

    /// Gives a record its place, under the caller's commit lock: no I/O, no
    /// allocation, no wait. Sequence numbers must follow one another; one that
    /// does not poisons the log, and the record's `fill` reports it.
    pub fn place<'w>(&'w self, permit: Permit<'w>, seq: u64) -> Placed<'w> {
        debug_assert!(!self.has_leases(), "a record was placed beside a lease");
        self.place_numbers(permit, seq, seq)
    }

    /// The same for what takes all numbers from `seq` to `last`.
    pub(super) fn place_numbers<'w>(
        &'w self,
        permit: Permit<'w>,
        seq: u64,
        last: u64,
    ) -> Placed<'w> {
        let (payload_len, bytes) = (permit.payload_len, permit.bytes);
        let mut placement = lock(&self.placement);
        if seq != placement.next_seq {
            drop(placement);
            self.poison(Error::Misuse("a record was placed out of sequence"));
            return Placed {
                wal: self,
                seq: u64::MAX,
                start: 0,
                end: 0,
                position: 0,
                salt: 0,
                slot: 0,
                payload_len,
            };
        }
        placement.next_seq = last + 1;
        let start = placement.tail;
        let end = start + bytes;
        placement.tail = end;
        let position = placement.current.position(start);
        let (salt, slot) = (placement.current.salt, placement.current.slot);
        // First the tail, then the permit: a reservation may see the bytes
        // twice for a moment, but never not at all.
        self.tail.store(end, Ordering::Release);
        self.placed_seq.store(last, Ordering::Relaxed);
        drop(placement);
        drop(permit);
        Placed {
            wal: self,
            seq,
            start,
            end,
            position,
            salt,
            slot,
            payload_len,
        }
    }

    /// The largest acknowledged sequence number. Everything up to it is
    /// acknowledged too, and it never falls.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.acked_seq.load(Ordering::Acquire)
    }

    /// The largest sequence number known to survive a power cut.
    pub fn durable(&self) -> u64 {
        self.synced_seq.load(Ordering::Acquire)
    }

    /// Whether a commit is acknowledged in less time than a sleep takes: nothing is
    /// synced for it, or syncs are that quick here.
    pub fn acknowledges_quickly(&self) -> bool {
        self.durability() != Durability::Full || self.turns.gather.sync_is_quick()
    }

    /// Whether commits are synced, in less time than a sleep takes.
    #[inline]
    pub fn syncs_quickly(&self) -> bool {
        self.durability() == Durability::Full && self.turns.gather.sync_is_quick()
    }

    /// Bytes of records placed since the last switch.
    pub fn bytes_since_switch(&self) -> u64 {
        let begin = self.current_base.load(Ordering::Relaxed) + EMPTY_RECORD_BYTES;
        self.tail.load(Ordering::Relaxed).saturating_sub(begin)
    }

    /// Counters since the log was opened.
    pub fn stats(&self) -> WalStats {
        let mut stats = self.turns.counters.read();
        if self.writes_in_place() {
            self.count_in_place(&mut stats);
        }
        stats
    }

    /// Ends all committing, for good. The first cause stays; nothing that is
    /// not acknowledged yet will be.
    pub fn poison(&self, cause: Error) {
        self.turns.end(cause);
        self.announce_room();
    }

    /// Why the log takes no more commits, if it takes none.
    pub fn poisoned(&self) -> Option<Error> {
        self.check().err()
    }

    /// Fails if the log is poisoned or closed.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.turns.check()
    }

    /// Syncs where the mode does. A failure poisons: the operating system may
    /// have dropped what it could not write, so trying again proves nothing.
    pub(super) fn sync_file(&self, file: &dyn DiskFile) -> Result<()> {
        if self.options.durability == Durability::Off {
            return Ok(());
        }
        let mut synced = file.sync_data();
        if synced.is_err() && planted(Mutation::RetryFailedSync) {
            synced = file.sync_data();
        }
        synced.map_err(|error| self.sync_failed(error))
    }

    pub(super) fn sync_failed(&self, error: DiskError) -> Error {
        self.ended_by(Error::Disk(error))
    }

    /// Ends the log with a failure. What who met it is to be told is that as well: the
    /// failure alone might say that it can be tried again.
    #[cold]
    pub(super) fn ended_by(&self, cause: Error) -> Error {
        self.poison(cause);
        self.turns.failure()
    }
}
