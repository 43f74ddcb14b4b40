//! What lies under the names that databases and copies have while they are made.
//!
//! A link there was followed, and what it led to was written over; another file there was
//! written over or removed.

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as Done, forward};
use fulgurite_store::{ErrorKind, KeyKind, Making, Options, Store};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A folder of its own, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("fulgurite-passing-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn make(&self, name: &str) -> fulgurite_store::Result<Store> {
        Store::open(self.at(name), Options::default())
    }

    fn copy(&self, name: &str) -> fulgurite_store::Result<()> {
        let disk = Arc::new(fulgurite_disk::RealDisk);
        let making = Making::begin(disk, &self.at(name), Options::default())?;
        making.store()?.create_family("copied", KeyKind::Int)?;
        making.publish()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Refused with a message that names the passing name, and nothing is changed.
fn is_refused<T>(made: fulgurite_store::Result<T>, passing: &str) {
    let Err(error) = made else {
        panic!("{passing} is not ours");
    };
    assert_eq!(error.kind(), ErrorKind::CantOpen, "{error}");
    assert!(error.message().contains(passing), "{error}");
}

#[test]
fn links_are_not_followed() {
    let folder = Folder::new("links");
    // As long as a database in the making may be.
    for bytes in [&b"somebody's"[..], &[7; 8192]] {
        fs::write(folder.at("other"), bytes).expect("writes");
        for passing in ["a.db-new", "b.db-copy", "b.db-copy-new"] {
            symlink(folder.at("other"), folder.at(passing)).expect("a link");
            match passing.starts_with('a') {
                true => is_refused(folder.make("a.db"), passing),
                false => is_refused(folder.copy("b.db"), passing),
            }
            assert_eq!(fs::read(folder.at("other")).expect("reads"), bytes);
            fs::remove_file(folder.at(passing)).expect("the link is there");
        }
    }
    assert!(!folder.at("a.db").exists() && !folder.at("b.db").exists());
    // One that leads nowhere makes nothing there.
    symlink(folder.at("nowhere"), folder.at("a.db-new")).expect("a link");
    is_refused(folder.make("a.db"), "a.db-new");
    symlink(folder.at("nowhere"), folder.at("b.db-copy")).expect("a link");
    folder.copy("b.db").expect("takes the link's place");
    assert!(!folder.at("nowhere").exists());
}

/// The log's file is made beside a link of its name.
#[test]
fn a_link_in_the_place_of_the_log_gives_way() {
    let folder = Folder::new("log");
    fs::write(folder.at("other"), b"somebody's").expect("writes");
    let store = folder.make("a.db").expect("opens");
    symlink(folder.at("other"), folder.at("a.db-wal-new")).expect("a link");
    store.create_family("t", KeyKind::Int).expect("commits");
    assert_eq!(fs::read(folder.at("other")).expect("reads"), b"somebody's");
}

#[test]
fn other_files_are_left_alone() {
    let folder = Folder::new("files");
    let note = b"what I wrote down".to_vec();
    for passing in ["a.db-new", "b.db-copy", "b.db-copy-new"] {
        fs::write(folder.at(passing), &note).expect("writes");
        match passing.starts_with('a') {
            true => is_refused(folder.make("a.db"), passing),
            false => is_refused(folder.copy("b.db"), passing),
        }
        assert_eq!(fs::read(folder.at(passing)).expect("reads"), note);
        fs::remove_file(folder.at(passing)).expect("is there");
    }
    // A database that somebody named so is none in the making either, though all it holds
    // is in its log.
    let store = folder.make("a.db-new").expect("opens");
    store.create_family("mine", KeyKind::Int).expect("commits");
    fs::copy(folder.at("a.db-new"), folder.at("c.db-new")).expect("copies");
    drop(store);
    is_refused(folder.make("a.db"), "a.db-new");
    is_refused(folder.make("c.db"), "c.db-new");
    let store = folder.make("b.db-copy").expect("opens");
    store.create_family("mine", KeyKind::Int).expect("commits");
    drop(store);
    is_refused(folder.copy("b.db"), "b.db-copy");
    let store = folder.make("b.db-copy").expect("opens");
    assert_eq!(store.families().expect("reads"), ["mine"]);
}

/// What a crash left is taken, whatever it holds, and a copy that has its name is a
/// database as any other.
#[test]
fn what_a_crash_left_is_taken() {
    let folder = Folder::new("left");
    for left in [0, 4096, 8192] {
        fs::write(folder.at("a.db-new"), vec![9; left]).expect("writes");
        drop(folder.make("a.db").expect("is made"));
        fs::remove_file(folder.at("a.db")).expect("is there");
    }
    let disk = Arc::new(fulgurite_disk::RealDisk);
    let making = Making::begin(disk, &folder.at("b.db"), Options::default());
    let making = making.expect("begins");
    for checkpointed in [false, true] {
        if checkpointed {
            let store = making.store().expect("is open");
            store.create_family("half", KeyKind::Int).expect("commits");
            store.checkpoint().expect("a checkpoint");
        }
        let left = fs::read(folder.at("b.db-copy")).expect("is there");
        fs::write(folder.at("c.db-copy"), left).expect("writes");
        folder.copy("c.db").expect("is made");
        let families = folder.make("c.db").expect("opens").families();
        assert_eq!(families.expect("reads"), ["copied"]);
        fs::rename(folder.at("c.db"), folder.at("d.db-copy")).expect("has its name");
        is_refused(folder.copy("d.db"), "d.db-copy");
    }
}

/// A disk that something happens to while a database is made.
#[derive(Debug, Default, Clone)]
struct Uneasy {
    inner: MemoryDisk,
    /// No file can be read.
    reads_fail: Arc<AtomicBool>,
    /// Another process removes the file between its next opening and its locking.
    is_taken: Arc<AtomicBool>,
}

#[derive(Debug)]
struct UneasyFile {
    inner: Arc<dyn DiskFile>,
    disk: Uneasy,
    path: PathBuf,
}

impl Disk for Uneasy {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        Ok(Arc::new(UneasyFile {
            inner: self.inner.open(path, options)?,
            disk: self.clone(),
            path: path.to_path_buf(),
        }))
    }
}

impl DiskFile for UneasyFile {
    forward!(inner: len, write_at, write_vectored_at, sync_data, sync_all, allocate, truncate);
    forward!(inner: start_writeback, lock_shared, unlock, identity);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Done<()> {
        if self.disk.reads_fail.load(Ordering::SeqCst) {
            let gone = std::io::Error::other("the disk is gone");
            return Err(DiskError::new("read", &self.path, gone));
        }
        self.inner.read_at(buf, offset)
    }

    fn lock_exclusive(&self) -> Done<()> {
        if self.disk.is_taken.swap(false, Ordering::SeqCst) {
            self.disk.inner.remove(&self.path)?;
        }
        self.inner.lock_exclusive()
    }
}

impl Uneasy {
    fn make(&self) -> fulgurite_store::Result<Store> {
        Store::open_on(Arc::new(self.clone()), "m.db", Options::default())
    }
}

/// An empty file stayed under the passing name where the making of a database failed before
/// anything was written to it.
#[test]
fn a_making_that_fails_before_it_writes_leaves_nothing() {
    let disk = Uneasy::default();
    let passing = Path::new("m.db-new");
    disk.reads_fail.store(true, Ordering::SeqCst);
    let error = disk.make().expect_err("nothing can be read");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(!disk.exists(passing).expect("looks"), "{passing:?} is left");
    // What holds anything is not removed before it is known what that is.
    let file = disk.inner.open(passing, OpenOptions::CREATE_NEW);
    let file = file.expect("a file");
    file.write_at(b"somebody's", 0).expect("writes");
    drop(file);
    disk.make().expect_err("nothing can be read");
    assert!(disk.exists(passing).expect("looks"));
    disk.remove(passing).expect("is there");
    disk.reads_fail.store(false, Ordering::SeqCst);
    disk.make().expect("is made");
}

/// Who opened the passing file just before another process removed it, and then had its lock,
/// made the database in a file without a name, and gave the database's name to nothing or to
/// what a third one was making.
#[test]
fn a_passing_file_that_is_gone_once_it_is_locked_is_made_anew() {
    let disk = Uneasy::default();
    disk.is_taken.store(true, Ordering::SeqCst);
    let store = disk.make().expect("is made");
    store.create_family("f", KeyKind::Int).expect("a family");
    drop(store);
    let store = disk.make().expect("opens");
    assert_eq!(store.families().expect("reads"), ["f"]);
}
