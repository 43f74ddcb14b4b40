//! Several handles of one file in one process, and who waits for whom.

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as Done, forward};
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// A file name in a folder of its own, removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("fulgurite-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("test.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn opening_again_joins_the_open_store() {
    let place = Place::new("join");
    let first = Store::open(place.file(), Options::default()).expect("opens");
    let second = Store::open(place.file(), Options::default()).expect("joins");
    assert!(first.ptr_eq(&second));
    let tree = first.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = second.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    txn.put(&tree, Key::Int(1), b"one").expect("puts");
    txn.commit().expect("commits");
    drop((txn, tree, first, second));

    let again = Store::open(place.file(), Options::default()).expect("opens");
    let tree = again.family("t").expect("reads").expect("is there");
    let mut txn = again.txn();
    txn.begin_read().expect("begins");
    assert!(txn.contains(&tree, Key::Int(1)).expect("looks"));
}

#[test]
fn a_read_only_handle_of_a_writable_store_refuses_writes() {
    let place = Place::new("read-only");
    let writable = Store::open(place.file(), Options::default()).expect("opens");
    let tree = writable.create_family("t", KeyKind::Int).expect("a family");
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let reading = Store::open(place.file(), options.clone()).expect("joins");
    let mut txn = reading.txn();
    let refused = txn.begin(Isolation::Serializable).expect_err("read-only");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    let refused = txn.begin_statement(&[&tree]).expect_err("read-only");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert_eq!(
        reading.checkpoint().expect_err("read-only").kind(),
        ErrorKind::ReadOnly
    );
    txn.begin_read().expect("reads");
    assert_eq!(txn.count(&tree).expect("counts"), 0);
    drop((txn, reading, tree, writable));

    // The other way round nobody may write.
    let reading = Store::open(place.file(), options).expect("opens");
    let refused = Store::open(place.file(), Options::default()).expect_err("open for reading");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    drop(reading);
    Store::open(place.file(), Options::default()).expect("opens for writing");
}

/// Puts one row into a family and has it acknowledged.
fn put_one(store: &Store, family: &str) -> fulgurite_store::Result<()> {
    let tree = store.create_family(family, KeyKind::Int)?;
    let mut txn = store.txn();
    txn.begin_statement(&[&tree])?;
    txn.put(&tree, Key::Int(1), b"one")?;
    txn.commit()
}

/// What a process that opens the files finds, once this one has ended.
fn families_after_a_crash(place: &Place) -> Vec<String> {
    let after = place.0.join("after");
    std::fs::create_dir_all(&after).expect("a folder");
    for name in ["test.db", "test.db-wal0", "test.db-wal1"] {
        // Those that are there.
        let _ = std::fs::copy(place.0.join(name), after.join(name));
    }
    let store = Store::open(after.join("test.db"), Options::default()).expect("recovers");
    store.families().expect("reads")
}

/// "Start anew" removes the file and makes another one, while some thread still has the
/// old one open. When that closed, it removed the log by its name, which was the new
/// one's: all that was acknowledged there was gone with the process.
#[test]
fn who_closes_a_database_that_was_replaced_leaves_the_new_ones_log() {
    let place = Place::new("replaced");
    let old = Store::open(place.file(), Options::default()).expect("opens");
    put_one(&old, "old").expect("commits");
    std::fs::remove_file(place.file()).expect("removes");
    let new = Store::open(place.file(), Options::default()).expect("makes another one");
    put_one(&new, "new").expect("commits");
    drop(old);
    assert_eq!(families_after_a_crash(&place), ["new"]);
}

/// A store makes its log with its first commit. One whose file was replaced before
/// gave its log the name that the new one's log had.
#[test]
fn who_writes_first_to_a_database_that_was_replaced_is_refused() {
    let place = Place::new("replaced-before");
    let old = Store::open(place.file(), Options::default()).expect("opens");
    std::fs::remove_file(place.file()).expect("removes");
    let new = Store::open(place.file(), Options::default()).expect("makes another one");
    put_one(&new, "new").expect("commits");
    let refused = put_one(&old, "old").expect_err("there is no name for its log");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
    assert_eq!(families_after_a_crash(&place), ["new"]);
    drop(old);
    assert_eq!(families_after_a_crash(&place), ["new"]);
}

#[test]
fn waits_end_with_the_busy_timeout() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut holder = store.txn();
    holder.begin_immediate().expect("begins");
    let mut waiter = store.txn();
    waiter.set_busy_timeout(Duration::ZERO);
    let busy = waiter.begin_statement(&[&tree]).expect_err("locked");
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.message().starts_with("database is locked"), "{busy}");
    holder.rollback();
    waiter.begin_statement(&[&tree]).expect("free again");
}

/// A clock that had the longest timeout added to it overflowed, and panicked, where
/// frames were waited for.
#[test]
fn no_busy_timeout_is_too_long() {
    let place = Place::new("patience");
    let options = Options {
        busy_timeout: Duration::MAX,
        cache_bytes: 0,
        ..Options::default()
    };
    let store = Store::open(place.file(), options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    for key in 0..2_000 {
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), &[1; 500]).expect("puts");
        txn.commit().expect("commits");
    }
    txn.begin_read().expect("begins");
    let mut value = Vec::new();
    for key in 0..2_000 {
        let found = txn.get_into(&tree, Key::Int(key), &mut value);
        assert!(found.expect("reads"));
    }
}

#[test]
fn overlapping_writers_of_one_key_conflict_and_of_two_do_not() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut first = store.txn();
    let mut second = store.txn();
    for (other_key, wins) in [(2, true), (1, false)] {
        first.begin(Isolation::Snapshot).expect("begins");
        second.begin(Isolation::Snapshot).expect("begins");
        first
            .put(&tree, Key::Int(1), &[b'f', other_key as u8])
            .expect("puts");
        second
            .put(&tree, Key::Int(other_key), &[other_key as u8, wins as u8])
            .expect("puts");
        first.commit().expect("commits");
        match second.commit() {
            Ok(()) => assert!(wins),
            Err(error) => {
                assert!(!wins, "{error}");
                assert_eq!(error.kind(), ErrorKind::Conflict);
                assert!(error.message().contains("row 1"), "{error}");
            }
        }
    }
    first.begin_read().expect("reads");
    assert_eq!(first.count(&tree).expect("counts"), 2);
}

#[test]
fn write_skew_is_prevented_by_serializable_and_allowed_by_snapshot() {
    for (isolation, skew) in [
        (Isolation::Serializable, false),
        (Isolation::Snapshot, true),
    ] {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let [mut first, mut second] = [store.txn(), store.txn()];
        first.begin(isolation).expect("begins");
        second.begin(isolation).expect("begins");
        for txn in [&mut first, &mut second] {
            assert!(!txn.contains(&tree, Key::Int(1)).expect("looks"));
            assert!(!txn.contains(&tree, Key::Int(2)).expect("looks"));
        }
        first.put(&tree, Key::Int(1), b"").expect("puts");
        second.put(&tree, Key::Int(2), b"").expect("puts");
        first.commit().expect("commits");
        assert_eq!(second.commit().is_ok(), skew, "{isolation:?}");
    }
}

/// Counters were read under the lock of the free map, and then that of the dead
/// nodes was taken: a checkpoint takes them the other way round, and both waited
/// for ever.
#[test]
fn counters_can_be_read_during_checkpoints() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store
        .create_family("counted", KeyKind::Int)
        .expect("creates");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                assert!(store.stats().file_bytes > 0);
            }
        });
        let mut txn = store.txn();
        for number in 0..400_i64 {
            txn.begin_statement(&[&tree]).expect("begins");
            txn.put(&tree, Key::Int(number % 50), &[7; 900])
                .expect("puts");
            txn.commit().expect("commits");
            if number % 4 == 0 {
                store.checkpoint().expect("makes a checkpoint");
            }
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

#[test]
fn an_empty_file_beside_a_log_is_no_new_database() {
    let place = Place::new("empty");
    let log = place.0.join("test.db-wal0");
    std::fs::write(place.file(), b"").expect("writes");
    std::fs::write(&log, b"what was committed").expect("writes");
    let refused = Store::open(place.file(), Options::default()).expect_err("data is lost");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(refused.to_string().contains("test.db-wal0"), "{refused}");
    assert_eq!(
        std::fs::read(&log).expect("still there"),
        b"what was committed"
    );
    std::fs::remove_file(&log).expect("removes");
    drop(Store::open(place.file(), Options::default()).expect("opens"));
}

#[test]
fn an_error_while_creating_names_the_database() {
    let place = Place::new("names");
    let path = place.0.join("no such folder").join("test.db");
    let refused = Store::open(&path, Options::default()).expect_err("no folder");
    assert_eq!(refused.kind(), ErrorKind::CantOpen);
    assert!(!refused.to_string().contains("-new"), "{refused}");
}

/// Who made the file has its lock by another handle than who opened it.
#[test]
fn a_file_has_one_owner_who_made_it_or_opened_it() {
    let disk = Arc::new(MemoryDisk::new());
    let options = Options {
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    let open = || Store::open_on(disk.clone(), "owned.db", options.clone());
    for _ in 0..2 {
        let owner = open().expect("nobody has it");
        let refused = open().expect_err("somebody has it");
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        drop(owner);
    }
}

/// A disk that tells when somebody else's lock was met.
struct Telling {
    inner: Arc<MemoryDisk>,
    met: Sender<()>,
}

#[derive(Debug)]
struct TellingFile {
    inner: Arc<dyn DiskFile>,
    met: Sender<()>,
}

impl Disk for Telling {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        Ok(Arc::new(TellingFile {
            inner: self.inner.open(path, options)?,
            met: self.met.clone(),
        }))
    }
}

impl DiskFile for TellingFile {
    forward!(inner: len, read_at, write_at, write_vectored_at, sync_data, sync_all);
    forward!(inner: allocate, truncate, start_writeback, unlock, identity, lock_shared);

    fn lock_exclusive(&self) -> Done<()> {
        self.inner.lock_exclusive().inspect_err(|_| {
            let _ = self.met.send(());
        })
    }
}

/// A database that another process was just closing was refused at once, whatever the
/// busy timeout: a service that takes over from its predecessor had to try again itself.
#[test]
fn who_opens_waits_for_a_process_that_closes() {
    // To the second store the first one's lock is that of another process.
    let disk = Arc::new(MemoryDisk::new());
    let owner = Store::open_on(disk.clone(), "handed-over.db", Options::default());
    let owner = owner.expect("nobody has it");
    let tree = owner.create_family("t", KeyKind::Int).expect("a family");
    let (met, meets) = mpsc::channel();
    let telling = Arc::new(Telling { inner: disk, met });
    let next = std::thread::spawn(move || {
        let options = Options {
            busy_timeout: Duration::MAX,
            ..Options::default()
        };
        Store::open_on(telling, "handed-over.db", options)
    });
    meets.recv().expect("the lock is met");
    drop((tree, owner));
    let store = next.join().expect("no panic").expect("it was given back");
    assert_eq!(store.families().expect("reads"), ["t"]);
}

/// A disk on which another process makes the database, and closes it, before the first
/// lock is taken.
struct Raced(MemoryDisk);

#[derive(Debug)]
struct RacedFile {
    inner: Arc<dyn DiskFile>,
    disk: MemoryDisk,
}

impl Disk for Raced {
    forward!(0: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        Ok(Arc::new(RacedFile {
            inner: self.0.open(path, options)?,
            disk: self.0.clone(),
        }))
    }
}

impl DiskFile for RacedFile {
    forward!(inner: len, read_at, write_at, write_vectored_at, sync_data, sync_all);
    forward!(inner: allocate, truncate, start_writeback, unlock, identity, lock_shared);

    fn lock_exclusive(&self) -> Done<()> {
        if !self.disk.exists(Path::new("raced.db"))? {
            let other = Arc::new(self.disk.clone());
            let made = Store::open_on(other, "raced.db", Options::default()).expect("makes it");
            made.create_family("t", KeyKind::Int).expect("a family");
        }
        self.inner.lock_exclusive()
    }
}

/// Of two processes that made a database at once, one had opened the other's file under
/// its passing name, and found it whole when it had the lock. It failed to remove that
/// name, which the file had lost, instead of opening the database.
#[test]
fn who_comes_late_to_make_a_database_opens_it() {
    let disk = Arc::new(Raced(MemoryDisk::new()));
    let store = Store::open_on(disk, "raced.db", Options::default()).expect("it is there");
    assert_eq!(store.families().expect("reads"), ["t"]);
}

/// A disk whose process may open no folder.
struct Exhausted {
    inner: MemoryDisk,
    is_exhausted: AtomicBool,
}

impl Disk for Exhausted {
    forward!(inner: open, exists, rename, temp_file, remove, canonical);

    fn sync_dir(&self, dir: &Path) -> Done<()> {
        if self.is_exhausted.load(Ordering::Relaxed) {
            let source = std::io::Error::from(rustix::io::Errno::MFILE);
            return Err(DiskError::new("sync folder", dir, source));
        }
        self.inner.sync_dir(dir)
    }
}

/// A process that had as many files open as it may, when the log's first or second file
/// was made, could not commit any more until it opened the database again: that its folder
/// could not be opened counted as a failed sync of it.
#[test]
fn who_runs_out_of_file_handles_may_try_again() {
    let disk = Arc::new(Exhausted {
        inner: MemoryDisk::new(),
        is_exhausted: AtomicBool::new(false),
    });
    let open = || Store::open_on(disk.clone(), "exhausted.db", Options::default());
    let store = open().expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    drop(store);
    let exhaust = |is| disk.is_exhausted.store(is, Ordering::Relaxed);
    let put = |store: &Store, key: i64| {
        let tree = store.family("t").expect("reads").expect("is there");
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), b"here").expect("puts");
        txn.commit()
    };
    drop(tree);
    let store = open().expect("opens");
    exhaust(true);
    for _ in 0..2 {
        let refused = put(&store, 1).expect_err("the log has no first file");
        assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
    }
    exhaust(false);
    put(&store, 2).expect("commits");
    exhaust(true);
    assert!(store.checkpoint().is_err(), "the log has no second file");
    put(&store, 3).expect("commits to the first one");
    exhaust(false);
    store.checkpoint().expect("checkpoints");
    put(&store, 4).expect("commits to the second one");
    drop(store);
    let store = open().expect("opens");
    let tree = store.family("t").expect("reads").expect("is there");
    assert_eq!(tree.estimate(), 3);
}

/// Who opened a database while another thread was closing its last handle was told that
/// the file is locked, by its own process: the lock was given back a little after the
/// table of open stores had been let go of.
#[test]
fn threads_open_and_close_one_database_as_they_like() {
    let place = Place::new("in-turns");
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let place = &place;
            scope.spawn(move || {
                for round in 0..60 {
                    let store = Store::open(place.file(), Options::default()).expect("opens");
                    let tree = store.create_family("t", KeyKind::Int).expect("a family");
                    let mut txn = store.txn();
                    drop(store);
                    txn.begin_statement(&[&tree]).expect("begins");
                    txn.put(&tree, Key::Int(round * 4 + thread), b"here")
                        .expect("puts");
                    txn.commit().expect("commits");
                }
            });
        }
    });
    let store = Store::open(place.file(), Options::default()).expect("opens");
    let tree = store.family("t").expect("reads").expect("is there");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    assert_eq!(txn.count(&tree).expect("counts"), 240);
}

/// A counter of memory kept the file, and its lock, after the last handle was gone.
#[test]
fn a_counter_of_memory_does_not_keep_a_closed_database() {
    let place = Place::new("counter");
    let store = Store::open(place.file(), Options::default()).expect("opens");
    let mut charge = store.memory_counter().charge();
    drop(store);
    charge.set(10 << 20);
    let store = Store::open(place.file(), Options::default()).expect("opens again");
    store.create_family("t", KeyKind::Int).expect("a family");
    charge.set(0);
}

/// What was dropped last ran when the thread's own variables were gone, one of which every
/// page is read into; and a panic there ends the process.
#[test]
fn the_last_handle_may_be_a_variable_of_a_thread_that_ends() {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Store>> = const { std::cell::RefCell::new(None) };
    }
    let disk = Arc::new(MemoryDisk::new());
    let open = || Store::open_on(disk.clone(), "p.db", Options::default()).expect("opens");
    let store = open();
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    let entries = (0..10_000).map(|key| (key, [7; 100].as_slice()));
    txn.put_all(&tree, entries).expect("puts");
    txn.commit().expect("commits");
    drop((txn, tree, store));
    std::thread::scope(|scope| {
        let ends = scope.spawn(|| {
            // First, so that it is let go of last.
            KEPT.set(Some(open()));
            KEPT.with_borrow(|store| {
                let store = store.as_ref().expect("kept");
                // A page is read now; all of the tree when it is freed.
                assert!(store.drop_family("t").expect("drops"));
            });
        });
        ends.join().expect("ends well");
    });
    assert!(open().families().expect("reads").is_empty());
}
