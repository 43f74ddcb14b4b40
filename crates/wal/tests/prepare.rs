//! A disk that fills up while the next generation is being prepared, or while the file
//! that records go to grows ahead of them.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as Done, forward};
use fulgurite_wal::{Durability, Error, Kind, Recovery, TwinLog, WalOptions};

const PATH: &str = "p.db";
const DATABASE: [u8; 16] = [5; 16];

/// A disk that can call back before a sync, and whose files grow to a limit only.
#[derive(Debug, Clone)]
struct Watched {
    inner: MemoryDisk,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    file_bytes_max: AtomicU64,
    is_armed: AtomicBool,
    /// No folder can be synced any more, since the disk is full.
    names_fail: AtomicBool,
    log: OnceLock<TwinLog>,
}

#[derive(Debug)]
struct WatchedFile {
    inner: Arc<dyn DiskFile>,
    state: Arc<State>,
}

impl Disk for Watched {
    forward!(inner: exists, rename, temp_file, remove, canonical);

    fn sync_dir(&self, dir: &Path) -> Done<()> {
        if self.state.names_fail.load(Ordering::SeqCst) {
            let full = ErrorKind::StorageFull.into();
            return Err(DiskError::new("sync", dir, full));
        }
        self.inner.sync_dir(dir)
    }

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        Ok(Arc::new(WatchedFile {
            inner: self.inner.open(path, options)?,
            state: Arc::clone(&self.state),
        }))
    }
}

impl DiskFile for WatchedFile {
    forward!(inner: len, read_at, start_writeback, truncate, lock_shared, unlock, identity);
    forward!(inner: allocate, lock_exclusive, sync_all);

    fn write_at(&self, buf: &[u8], offset: u64) -> Done<()> {
        self.write_vectored_at(&[IoSlice::new(buf)], offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Done<()> {
        let bytes = bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
        if offset + bytes > self.state.file_bytes_max.load(Ordering::SeqCst) {
            let full = ErrorKind::StorageFull.into();
            return Err(DiskError::new("write", Path::new(PATH), full));
        }
        self.inner.write_vectored_at(bufs, offset)
    }

    /// When armed: somebody is granted more than the file being made has room for,
    /// and that was the disk's last.
    fn sync_data(&self) -> Done<()> {
        if self.state.is_armed.swap(false, Ordering::SeqCst)
            && let Some(log) = self.state.log.get()
        {
            let permit = log.reserve(4 << 20).expect("there is room yet");
            std::mem::forget(permit);
            self.state.file_bytes_max.store(1 << 20, Ordering::SeqCst);
        }
        self.inner.sync_data()
    }
}

fn recover(disk: &Watched) -> Recovery {
    let disk = Arc::new(disk.clone());
    Recovery::open(disk, Path::new(PATH), DATABASE, 0, false).expect("is sound")
}

/// The file has its name by then. The next try must go on with it: one that made
/// another file of that name would leave commits to be written to the first.
fn goes_on_with_its_file(durability: Durability) {
    let disk = Watched {
        inner: MemoryDisk::new(),
        state: Arc::new(State {
            file_bytes_max: AtomicU64::new(u64::MAX),
            is_armed: AtomicBool::new(false),
            names_fail: AtomicBool::new(false),
            log: OnceLock::new(),
        }),
    };
    let options = WalOptions {
        durability,
        ..WalOptions::default()
    };
    let log = recover(&disk).start(options, 1).expect("starts");
    let log = disk.state.log.get_or_init(|| log);
    let commit = |seq: u64| {
        let permit = log.reserve(5).expect("room");
        let ticket = log.fill(log.place(permit, seq), Kind::Commit, &[b"hello"]);
        log.wait(ticket.expect("filled")).expect("acknowledged");
    };
    commit(1);
    disk.state.is_armed.store(true, Ordering::SeqCst);
    log.prepare_switch().expect_err("the disk is full");
    assert!(log.poisoned().is_none());
    disk.state.file_bytes_max.store(u64::MAX, Ordering::SeqCst);
    log.prepare_switch().expect("there is room again");
    log.switch(2).expect("is prepared");
    commit(2);
    let mut seen = Vec::new();
    recover(&disk)
        .replay(&mut |record| {
            seen.push((record.seq, record.payload.to_vec()));
            Ok(())
        })
        .expect("replays");
    assert_eq!(seen, [(1, b"hello".to_vec()), (2, b"hello".to_vec())]);
}

#[test]
fn a_generation_that_could_not_be_extended_keeps_its_file() {
    for durability in [Durability::Full, Durability::Normal] {
        goes_on_with_its_file(durability);
    }
}

/// It is nobody's failure yet: commits go on in the room that there is, the one that
/// needs more is told, and they go on where the disk has some again.
#[test]
fn who_needs_room_is_told_that_the_disk_is_full() {
    let disk = Watched {
        inner: MemoryDisk::new(),
        state: Arc::new(State {
            file_bytes_max: AtomicU64::new(1 << 20),
            is_armed: AtomicBool::new(false),
            names_fail: AtomicBool::new(false),
            log: OnceLock::new(),
        }),
    };
    let asked = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&asked);
    let options = WalOptions {
        growth: Some(Arc::new(move || asks.store(true, Ordering::SeqCst))),
        ..WalOptions::default()
    };
    let log = recover(&disk).start(options, 1).expect("starts");
    let payload = [7; 10_000];
    let commit = |seq: u64| {
        let permit = log.reserve(payload.len())?;
        let ticket = log.fill(log.place(permit, seq), Kind::Commit, &[&payload])?;
        log.wait(ticket)
    };
    let mut next = 1;
    while !asked.load(Ordering::SeqCst) {
        commit(next).expect("there is room");
        next += 1;
    }
    assert!(matches!(log.grow_ahead(), Err(Error::Disk(_))));
    assert!(log.poisoned().is_none());
    let failed = loop {
        match commit(next) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
        assert!(next < 200, "the disk never was full");
    };
    assert!(matches!(failed, Error::Disk(_)), "{failed}");
    assert!(log.poisoned().is_none());
    disk.state.file_bytes_max.store(u64::MAX, Ordering::SeqCst);
    commit(next).expect("there is room again");
    let mut seen = 0;
    recover(&disk)
        .replay(&mut |_| {
            seen += 1;
            Ok(())
        })
        .expect("replays");
    assert_eq!(seen, next);
}

/// A folder's sync that failed while a file was made for the log ended that, but whoever had
/// asked for the file was told that the disk is full, as if it could be tried again. Only the
/// next one heard that the log had ended.
#[test]
fn who_meets_a_failed_sync_of_the_folder_is_told_that_the_log_has_ended() {
    for first in [true, false] {
        let disk = Watched {
            inner: MemoryDisk::new(),
            state: Arc::new(State {
                file_bytes_max: AtomicU64::new(u64::MAX),
                is_armed: AtomicBool::new(false),
                names_fail: AtomicBool::new(first),
                log: OnceLock::new(),
            }),
        };
        let log = recover(&disk).start(WalOptions::default(), 1);
        let log = log.expect("starts");
        let told = if first {
            log.reserve(5).expect_err("the folder cannot be synced")
        } else {
            drop(log.reserve(5).expect("room"));
            disk.state.names_fail.store(true, Ordering::SeqCst);
            log.prepare_switch()
                .expect_err("the folder cannot be synced")
        };
        let is_cause = |cause: &Error| matches!(cause, Error::Disk(_)) && cause.is_full();
        let is_end = |told: &Error| matches!(told, Error::Poisoned(cause) if is_cause(cause));
        assert!(is_end(&told), "{told}");
        assert!(!told.is_full());
        disk.state.names_fail.store(false, Ordering::SeqCst);
        let again = log.reserve(5).expect_err("it has ended");
        assert!(is_end(&again), "{again}");
    }
}
