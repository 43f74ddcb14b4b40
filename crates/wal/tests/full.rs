//! The log on its own on a disk that is full, or gone: a typed error, nothing
//! acknowledged is lost, and where room comes back the log goes on.

use std::io::{self, ErrorKind, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fulgurite_disk::{
    Disk, DiskError, DiskErrorKind, DiskFile, MemoryDisk, OpenOptions, Result as Done, forward,
};
use fulgurite_wal::{Error, Lsn, Options, Preallocation, Wal};

/// A disk whose files grow to a limit only, and that can be unplugged.
#[derive(Debug, Clone)]
struct Bounded {
    inner: MemoryDisk,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    file_bytes_max: AtomicU64,
    gone: AtomicBool,
}

impl State {
    fn check(&self, op: &'static str, end: u64) -> Done<()> {
        let source = if self.gone.load(Ordering::Relaxed) {
            io::Error::other("no such device")
        } else if end > self.file_bytes_max.load(Ordering::Relaxed) {
            ErrorKind::StorageFull.into()
        } else {
            return Ok(());
        };
        Err(DiskError::new(op, Path::new("x"), source))
    }
}

#[derive(Debug)]
struct BoundedFile {
    inner: Arc<dyn DiskFile>,
    state: Arc<State>,
}

impl Bounded {
    fn new() -> Self {
        Self {
            inner: MemoryDisk::new(),
            state: Arc::new(State {
                file_bytes_max: AtomicU64::new(u64::MAX),
                gone: AtomicBool::new(false),
            }),
        }
    }

    fn set_room(&self, bytes: u64) {
        self.state.file_bytes_max.store(bytes, Ordering::Relaxed);
    }

    fn set_gone(&self, gone: bool) {
        self.state.gone.store(gone, Ordering::Relaxed);
    }

    fn options(&self, preallocation: Preallocation) -> Options {
        Options::memory()
            .disk(Arc::new(self.clone()))
            .limit_bytes(8 << 20)
            .preallocation(preallocation)
    }
}

impl Disk for Bounded {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        self.state.check("open", 0)?;
        Ok(Arc::new(BoundedFile {
            inner: self.inner.open(path, options)?,
            state: Arc::clone(&self.state),
        }))
    }
}

impl DiskFile for BoundedFile {
    forward!(inner: len, start_writeback, lock_exclusive, identity, lock_shared, unlock);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Done<()> {
        self.state.check("read", 0)?;
        self.inner.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Done<()> {
        self.state.check("write", offset + buf.len() as u64)?;
        self.inner.write_at(buf, offset)
    }
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Done<()> {
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        self.state.check("write", offset + len as u64)?;
        self.inner.write_vectored_at(bufs, offset)
    }
    fn sync_data(&self) -> Done<()> {
        self.state.check("sync", 0)?;
        self.inner.sync_data()
    }
    fn sync_all(&self) -> Done<()> {
        self.state.check("sync", 0)?;
        self.inner.sync_all()
    }
    fn allocate(&self, offset: u64, len: u64) -> Done<()> {
        self.state.check("allocate", offset + len)?;
        self.inner.allocate(offset, len)
    }
    fn truncate(&self, len: u64) -> Done<()> {
        self.state.check("truncate", len)?;
        self.inner.truncate(len)
    }
}

fn count(log: &Wal) -> usize {
    log.replay(Lsn::FIRST)
        .unwrap()
        .inspect(|record| assert!(record.is_ok(), "{record:?}"))
        .count()
}

#[test]
fn a_log_on_a_full_disk_says_so_and_goes_on_when_there_is_room() {
    for preallocation in [Preallocation::ZeroFill, Preallocation::Allocate] {
        let disk = Bounded::new();
        let log = Wal::open("x", disk.options(preallocation)).unwrap();
        disk.set_room(2 << 20);
        let mut acknowledged = 0;
        let error = loop {
            match log.commit(&[7; 10_000]) {
                Ok(_) => acknowledged += 1,
                Err(error) => break error,
            }
        };
        match &error {
            Error::Disk(disk) => assert_eq!(disk.kind, DiskErrorKind::NoSpace, "{error}"),
            _ => panic!("{error}"),
        }
        assert!(acknowledged > 50, "{acknowledged}");
        assert_eq!(count(&log), acknowledged);
        // Room is made before anything is placed in it, so the log is sound.
        log.truncate(log.end()).unwrap();
        disk.set_room(u64::MAX);
        for _ in 0..200 {
            log.commit(&[8; 10_000]).unwrap();
        }
        drop(log);
        let log = Wal::open("x", disk.options(preallocation)).unwrap();
        assert_eq!(count(&log), 200);
    }
}

#[test]
fn no_log_is_made_on_a_full_disk_and_none_is_left_half_made() {
    let disk = Bounded::new();
    disk.set_room(100_000);
    let error = Wal::open("x", disk.options(Preallocation::ZeroFill)).unwrap_err();
    match &error {
        Error::Disk(disk) => assert_eq!(disk.kind, DiskErrorKind::NoSpace, "{error}"),
        _ => panic!("{error}"),
    }
    assert!(!disk.exists(Path::new("x")).unwrap());
    disk.set_room(u64::MAX);
    let log = Wal::open("x", disk.options(Preallocation::ZeroFill)).unwrap();
    log.commit(b"made after all").unwrap();
    assert_eq!(count(&log), 1);
}

#[test]
fn a_disk_that_vanishes_ends_the_log_and_loses_nothing_acknowledged() {
    let disk = Bounded::new();
    let log = Wal::open("x", disk.options(Preallocation::ZeroFill)).unwrap();
    for number in 0..100u8 {
        log.commit(&[number; 500]).unwrap();
    }
    disk.set_gone(true);
    assert!(matches!(log.commit(b"gone"), Err(Error::Poisoned(_))));
    // It is back, but what became of the last write is not known.
    disk.set_gone(false);
    assert!(matches!(log.append(b"more"), Err(Error::Poisoned(_))));
    assert!(matches!(log.flush(), Err(Error::Poisoned(_))));
    assert!(log.poisoned().is_some());
    drop(log);
    disk.set_gone(true);
    let options = disk.options(Preallocation::ZeroFill);
    assert!(matches!(Wal::open("x", options), Err(Error::Disk(_))));
    disk.set_gone(false);
    let log = Wal::open("x", disk.options(Preallocation::ZeroFill)).unwrap();
    let found = log.replay(Lsn::FIRST).unwrap();
    for (record, number) in found.take(100).zip(0..100u8) {
        assert_eq!(record.unwrap().1, [number; 500]);
    }
    assert!(count(&log) >= 100);
}
