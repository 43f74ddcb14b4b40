//! The log's sources once more, on threads, locks and atomics whose every step
//! is a choice of a scheduler that explores interleavings. Sizes are small, so
//! that waiting for room, sleeping and waking happen in nearly every run.
//!
//! What is checked: no run hangs (the scheduler reports that), every record
//! acknowledged is on the disk and synced at that moment, all come back in
//! order, and a failing sync leaves nobody waiting and nothing acknowledged.

use std::collections::HashMap;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result, forward};
use shuttle::sync::Mutex;
use shuttle::thread;

mod primitives {
    pub(crate) use crate::wal::bell::Portable as Bell;
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread::yield_now;

    pub(crate) fn sleep(_: std::time::Duration) {
        yield_now();
    }

    /// One for each thread, so that some lead from where a sync took longer.
    pub(crate) fn processor() -> usize {
        shuttle::current::me().into()
    }

    pub(crate) const RING_BYTES: u64 = 256;
    pub(crate) const SOLO_RING_BYTES: u64 = 2048;
    pub(crate) const SOLO_AHEAD_BYTES: u64 = 4096;
    pub(crate) const SOLO_LEAD_BYTES: u64 = 0;
    pub(crate) const SOLO_PIECE_BYTES: u64 = 4096;
    pub(crate) const SOLO_STEP_BYTES_MIN: u64 = 8192;
    pub(crate) const SOLO_STEP_BYTES_MAX: u64 = 8192;
    pub(crate) const HAS_BACKGROUND: bool = false;
    pub(crate) const SLOTS: u64 = 4;
    pub(crate) const LEASE_BYTES: u64 = 1024;
    pub(crate) const RING_RECORD_BYTES_MAX: u64 = 128;
    pub(crate) const QUICK_SYNC_NANOS: u32 = 10_000;
    pub(crate) const SPINS: u32 = 1;
    pub(crate) const YIELDS_QUICK: u32 = 1;
    pub(crate) const YIELDS_SLOW: u32 = 0;

    thread_local! {
        static NOW: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    /// Time that passes by being looked at, so that it is the same in every run of a
    /// schedule.
    pub(crate) fn now() -> std::time::Duration {
        NOW.set(NOW.get() + 1);
        std::time::Duration::from_micros(150) * NOW.get()
    }
}

#[allow(dead_code, unused_imports, missing_docs, clippy::module_inception)]
#[path = "../src/lib.rs"]
mod wal;

#[path = "../../model-store/tests/common/explore.rs"]
mod explore;

#[path = "model/alone.rs"]
mod alone;

use explore::{
    Schedulers::{All, Fair},
    explore,
};

use wal::{Durability, Kind, Recovery, TwinLog, WalOptions};

const DATABASE: [u8; 16] = [3; 16];

/// A disk in memory that gives the scheduler a choice before every transfer,
/// counts the bytes of log records synced, and can fail.
#[derive(Clone)]
struct TestDisk {
    inner: MemoryDisk,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    writes: AtomicU64,
    synced_writes: AtomicU64,
    fail_syncs: AtomicBool,
    /// How often others get a turn before zeros are written.
    turns_before_zeros: AtomicU64,
    /// How many more writes succeed.
    writes_left: AtomicU64,
    /// What each file, by its inode, held at its last sync.
    synced: std::sync::Mutex<HashMap<u64, Vec<u8>>>,
}

impl State {
    fn take_write(&self) -> Result<()> {
        let left = |left: u64| left.checked_sub(1);
        let (order, also) = (Ordering::SeqCst, Ordering::SeqCst);
        let taken = self.writes_left.fetch_update(order, also, left);
        taken.map(|_| ()).map_err(|_| no_more("write"))
    }
}

fn no_more(operation: &'static str) -> DiskError {
    DiskError::new(
        operation,
        Path::new("log"),
        std::io::Error::other("no more"),
    )
}

#[derive(Debug)]
struct TestFile {
    inner: Arc<dyn DiskFile>,
    state: Arc<State>,
}

impl Disk for TestDisk {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir, boot_id);

    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(TestFile {
            inner: self.inner.open(path, options)?,
            state: Arc::clone(&self.state),
        }))
    }
}

impl DiskFile for TestFile {
    forward!(inner: len, read_at, start_writeback, truncate, lock_shared, unlock, identity);
    forward!(inner: allocate, lock_exclusive);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.write_vectored_at(&[IoSlice::new(buf)], offset)
    }
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        thread::yield_now();
        if bufs.iter().all(|buf| buf.iter().all(|byte| *byte == 0)) {
            for _ in 0..self.state.turns_before_zeros.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        self.state.take_write()?;
        self.inner.write_vectored_at(bufs, offset)?;
        self.state.writes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn sync_data(&self) -> Result<()> {
        let covered = self.state.writes.load(Ordering::SeqCst);
        let mut bytes = vec![0; self.inner.len()? as usize];
        self.inner.read_at(&mut bytes, 0)?;
        thread::yield_now();
        if self.state.fail_syncs.load(Ordering::SeqCst) {
            return Err(no_more("sync"));
        }
        self.state
            .synced_writes
            .fetch_max(covered, Ordering::SeqCst);
        let inode = self.inner.identity()?.inode;
        self.state.synced.lock().unwrap().insert(inode, bytes);
        Ok(())
    }
    fn sync_all(&self) -> Result<()> {
        self.sync_data()
    }
}

fn open(disk: &TestDisk, durability: Durability) -> TwinLog {
    let options = WalOptions {
        durability,
        ..WalOptions::default()
    };
    Recovery::open(
        Arc::new(disk.clone()),
        Path::new("m.db"),
        DATABASE,
        0,
        false,
    )
    .unwrap()
    .start(options, 1)
    .unwrap()
}

/// As [`open`], with the first file made, for what is to fail after that.
fn open_with_file(disk: &TestDisk, durability: Durability) -> TwinLog {
    let wal = open(disk, durability);
    drop(wal.reserve(0).unwrap());
    wal
}

fn new_disk() -> TestDisk {
    let state = State::default();
    state.writes_left.store(u64::MAX, Ordering::SeqCst);
    TestDisk {
        inner: MemoryDisk::new(),
        state: Arc::new(state),
    }
}

fn commit(wal: &TwinLog, next: &Mutex<u64>, len: usize, wait: bool) -> wal::Result<u64> {
    let permit = wal.reserve(len)?;
    let placed = {
        let mut next = next.lock().unwrap();
        let placed = wal.place(permit, *next);
        *next += 1;
        placed
    };
    let ticket = wal.fill(placed, Kind::Commit, &[&vec![1; len]])?;
    if wait {
        wal.wait(ticket)?;
        assert!(wal.acked() >= ticket.seq());
    }
    Ok(ticket.seq())
}

fn replayed(disk: &TestDisk, after: u64) -> u64 {
    let mut expected = after;
    let mut recovery = Recovery::open(
        Arc::new(disk.clone()),
        Path::new("m.db"),
        DATABASE,
        after,
        true,
    )
    .unwrap();
    recovery
        .replay(&mut |record| {
            expected += 1;
            assert_eq!(record.seq, expected);
            Ok(())
        })
        .unwrap();
    expected
}

/// Three committers with records of several sizes, one of which is only filled
/// and left to the others, beside a switch.
fn committers_and_a_switch(durability: Durability) {
    let disk = new_disk();
    let wal = Arc::new(open(&disk, durability));
    let next = Arc::new(Mutex::new(1));
    let threads: Vec<_> = [[20, 0], [40, 150], [7, 80]]
        .into_iter()
        .enumerate()
        .map(|(index, sizes)| {
            let (wal, next) = (Arc::clone(&wal), Arc::clone(&next));
            thread::spawn(move || {
                commit(&wal, &next, sizes[0], index != 1).unwrap();
                commit(&wal, &next, sizes[1], true).unwrap();
            })
        })
        .collect();
    wal.prepare_switch().unwrap();
    let (old, covered) = {
        let next = next.lock().unwrap();
        (wal.switch(*next).unwrap(), *next - 1)
    };
    wal.recycle(old).unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    wal.wait_seq(6).unwrap();
    assert_eq!(replayed(&disk, covered), 6);
    if durability == Durability::Full {
        let state = &disk.state;
        assert_eq!(
            state.synced_writes.load(Ordering::SeqCst),
            state.writes.load(Ordering::SeqCst)
        );
    }
}

#[test]
fn full_mode() {
    explore(1000, All, || committers_and_a_switch(Durability::Full));
}

#[test]
fn normal_mode() {
    explore(300, Fair, || committers_and_a_switch(Durability::Normal));
}

/// Nobody leads: at the moment a commit returns it and all before it are on the disk,
/// across a switch too, though records behind may be there before them.
fn committers_in_place() {
    let disk = new_disk();
    let wal = Arc::new(open(&disk, Durability::Normal));
    let next = Arc::new(Mutex::new(1));
    let threads: Vec<_> = [[20, 0, 7], [40, 600, 150]]
        .into_iter()
        .map(|sizes| {
            let (disk, wal, next) = (disk.clone(), Arc::clone(&wal), Arc::clone(&next));
            thread::spawn(move || {
                for len in sizes {
                    let seq = commit(&wal, &next, len, true).unwrap();
                    assert!(replayed(&disk, 0) >= seq);
                }
            })
        })
        .collect();
    wal.prepare_switch().unwrap();
    {
        let next = next.lock().unwrap();
        wal.switch(*next).unwrap();
    }
    wal.sync().unwrap();
    assert!(replayed(&disk, 0) >= wal.durable());
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!((wal.acked(), wal.stats().records), (6, 6));
    assert_eq!(replayed(&disk, 0), 6);
}

#[test]
fn a_commit_in_place_outlives_the_process() {
    explore(500, All, committers_in_place);
}

/// Somebody lets the first generation's file grow, asked to or by need, and takes so long
/// that others go on to the second one, give the first up and head its file for the third,
/// whose records reach as far: no zeros come over them.
fn an_extension_that_comes_late() {
    const LARGE: usize = 70_000;
    let disk = new_disk();
    let wal = Arc::new(open_with_file(&disk, Durability::Full));
    let next = Mutex::new(1);
    let switch = || {
        wal.prepare_switch().unwrap();
        let next = next.lock().unwrap();
        wal.switch(*next).unwrap()
    };
    wal.prepare_switch().unwrap();
    let late = {
        let wal = Arc::clone(&wal);
        thread::spawn(move || drop(wal.reserve(LARGE).unwrap()))
    };
    // It takes its time over the zeros, if it has come that far, and nobody else does.
    let turns = &disk.state.turns_before_zeros;
    turns.store(200, Ordering::SeqCst);
    (0..20).for_each(|_| thread::yield_now());
    turns.store(0, Ordering::SeqCst);
    let first = switch();
    wal.recycle(first).unwrap();
    commit(&wal, &next, 10, true).unwrap();
    let second = switch();
    for _ in 0..2 {
        commit(&wal, &next, LARGE, true).unwrap();
    }
    late.join().unwrap();
    assert_eq!(replayed(&disk, 1), 3);
    wal.recycle(second).unwrap();
}

#[test]
fn late_zeros_never_come_upon_a_record() {
    explore(1000, All, an_extension_that_comes_late);
}

impl TestDisk {
    /// The log as a power cut leaves it that takes all that was not synced.
    fn after_a_power_cut(&self) -> Self {
        let left = new_disk();
        for path in ["m.db-wal0", "m.db-wal1"].map(Path::new) {
            if !self.inner.exists(path).unwrap() {
                continue;
            }
            let file = self.inner.open(path, OpenOptions::READ).unwrap();
            let inode = file.identity().unwrap().inode;
            if let Some(bytes) = self.state.synced.lock().unwrap().get(&inode) {
                let copy = left.inner.open(path, OpenOptions::CREATE).unwrap();
                copy.write_at(bytes, 0).unwrap();
            }
        }
        left
    }
}

/// Nobody leads, the log is synced now and then, and two switches lie among the
/// commits: what is called durable is, whichever file it lies in.
fn marks_in_place() {
    let disk = new_disk();
    let wal = Arc::new(open(&disk, Durability::Normal));
    let next = Arc::new(Mutex::new(1));
    let threads: Vec<_> = [[20, 0, 7], [40, 60, 15]]
        .into_iter()
        .map(|sizes| {
            let (wal, next) = (Arc::clone(&wal), Arc::clone(&next));
            thread::spawn(move || {
                for len in sizes {
                    commit(&wal, &next, len, true).unwrap();
                }
            })
        })
        .collect();
    let mut covered = 0;
    for is_last in [false, true] {
        wal.prepare_switch().unwrap();
        let (old, last) = {
            let next = next.lock().unwrap();
            (wal.switch(*next).unwrap(), *next - 1)
        };
        for _ in 0..2 {
            wal.sync().unwrap();
            let durable = wal.durable();
            assert!(replayed(&disk.after_a_power_cut(), covered) >= durable);
        }
        if !is_last {
            wal.recycle(old).unwrap();
            covered = last;
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    wal.sync().unwrap();
    assert_eq!(wal.durable(), 6);
    assert_eq!(replayed(&disk.after_a_power_cut(), covered), 6);
}

#[test]
fn what_is_called_durable_in_place_is() {
    explore(2000, All, marks_in_place);
}

/// In `full`, beside records that are acknowledged once they are written: who waited for
/// more has its record and all before it after a power cut, on either side of a switch, and
/// the others have theirs at the end of the process.
fn written_beside_synced() {
    let disk = new_disk();
    let wal = Arc::new(open(&disk, Durability::Full));
    let next = Arc::new(Mutex::new(1));
    let threads: Vec<_> = [[true, false, true], [false, true, true]]
        .into_iter()
        .map(|are_written| {
            let (disk, wal, next) = (disk.clone(), Arc::clone(&wal), Arc::clone(&next));
            thread::spawn(move || {
                for is_written in are_written {
                    let permit = wal.reserve(20).unwrap();
                    let placed = {
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        wal.place(permit, *next - 1)
                    };
                    let ticket = wal.fill(placed, Kind::Commit, &[&[1; 20]]).unwrap();
                    let seq = ticket.seq();
                    let left = match is_written {
                        true => wal.acknowledge_written(ticket).map(|()| disk.clone()),
                        false => wal.wait(ticket).map(|()| disk.after_a_power_cut()),
                    };
                    assert!(wal.acked() >= seq);
                    assert!(replayed(&left.unwrap(), 0) >= seq);
                }
            })
        })
        .collect();
    wal.prepare_switch().unwrap();
    {
        let next = next.lock().unwrap();
        wal.switch(*next).unwrap();
    }
    let durable = wal.durable();
    assert!(replayed(&disk.after_a_power_cut(), 0) >= durable);
    for thread in threads {
        thread.join().unwrap();
    }
    wal.sync().unwrap();
    assert_eq!((wal.acked(), wal.durable(), wal.stats().records), (6, 6, 6));
    assert_eq!(replayed(&disk.after_a_power_cut(), 0), 6);
}

#[test]
fn what_is_acknowledged_unsynced_is_synced_with_the_next() {
    explore(1000, All, written_beside_synced);
}

/// A write fails at some moment: nothing behind it is acknowledged, and nobody waits
/// for it.
fn failing_write_in_place() {
    let disk = new_disk();
    let wal = Arc::new(open_with_file(&disk, Durability::Normal));
    let next = Arc::new(Mutex::new(1));
    disk.state.writes_left.store(4, Ordering::SeqCst);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (wal, next) = (Arc::clone(&wal), Arc::clone(&next));
            thread::spawn(move || {
                let told = (0..3).map_while(|_| commit(&wal, &next, 30, true).ok());
                told.last().unwrap_or(0)
            })
        })
        .collect();
    let told = threads.into_iter().map(|thread| thread.join().unwrap());
    let told = told.max().unwrap();
    assert!(told <= wal.acked() && wal.acked() <= 4);
    assert!(wal.poisoned().is_some());
    assert!(wal.wait_seq(wal.acked() + 1).is_err());
    assert!(wal.recycle_is_refused());
    assert!(replayed(&disk, 0) >= told);
}

#[test]
fn a_failed_write_in_place_poisons() {
    explore(1000, Fair, failing_write_in_place);
}

/// A sync fails at some moment: everybody returns, and whoever was told that
/// the commit stands was told so before.
fn failing_sync() {
    let disk = new_disk();
    let wal = Arc::new(open_with_file(&disk, Durability::Full));
    let next = Arc::new(Mutex::new(1));
    let threads: Vec<_> = (0..3)
        .map(|index| {
            let (wal, next) = (Arc::clone(&wal), Arc::clone(&next));
            thread::spawn(move || {
                let mut last = 0;
                for len in [10, 150 * (index % 2), 30] {
                    match commit(&wal, &next, len, true) {
                        Ok(seq) => last = seq,
                        Err(_) => break,
                    }
                }
                last
            })
        })
        .collect();
    disk.state.fail_syncs.store(true, Ordering::SeqCst);
    let told = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .max()
        .unwrap();
    let acked = wal.acked();
    assert!(told <= acked);
    if acked < 9 {
        assert!(wal.poisoned().is_some());
        assert!(wal.reserve(1).is_err());
        assert!(wal.wait_seq(acked + 1).is_err());
        assert!(wal.recycle_is_refused());
    }
    assert!(replayed(&disk, 0) >= acked);
}

trait Refusal {
    fn recycle_is_refused(&self) -> bool;
}

impl Refusal for TwinLog {
    fn recycle_is_refused(&self) -> bool {
        self.prepare_switch().is_err() && self.close().is_err()
    }
}

#[test]
fn poison_reaches_everybody() {
    explore(1000, Fair, failing_sync);
}

/// One fills its record and leaves without waiting; the one behind it, whose
/// record was there first, must be woken, in `full` to lead.
fn a_filler_leaves(durability: Durability) {
    let disk = new_disk();
    let wal = Arc::new(open(&disk, durability));
    let waiter = Arc::clone(&wal);
    let next = Arc::new(Mutex::new(1));
    let first = wal.place(wal.reserve(10).unwrap(), 1);
    *next.lock().unwrap() = 2;
    let thread = thread::spawn(move || commit(&waiter, &next, 20, true).unwrap());
    for _ in 0..40 {
        thread::yield_now();
    }
    wal.fill(first, Kind::Commit, &[&[1; 10]]).unwrap();
    assert_eq!(thread.join().unwrap(), 2);
    assert_eq!(replayed(&disk, 0), 2);
}

#[test]
fn a_filler_that_leaves_wakes_who_waits_behind_it() {
    for durability in [Durability::Full, Durability::Normal] {
        explore(1000, Fair, move || a_filler_leaves(durability));
    }
}
