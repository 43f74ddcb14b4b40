//! What is left in doubt in one file while this process has the other one open.

use super::super::super::redo::{self, Op};
use super::super::decisions::{self, DECIDED, Number, PREPARED, Prepared};
use crate::{Error, ErrorKind, Key, KeyKind, Options, Result, Store};
use fulgurite_disk::{Disk, MemoryDisk};
use std::path::PathBuf;
use std::sync::Arc;

/// Two files, of which this process has both open.
struct Files {
    /// The caller's; otherwise the system's.
    disk: Option<Arc<dyn Disk>>,
    folder: PathBuf,
    number: Number,
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.disk.is_none() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl Files {
    /// With a transaction that was prepared in one of them, and that its coordinator, which
    /// is the other one, did not come to decide.
    fn in_doubt(name: &str) -> Self {
        let name = format!("fulgurite-doubt-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self::in_doubt_on(None, folder)
    }

    fn in_doubt_on(disk: Option<Arc<dyn Disk>>, folder: PathBuf) -> Self {
        let files = Self {
            disk,
            folder,
            number: Number::from_key(&[7; 16]).expect("a number"),
        };
        let coordinator = files.open("coordinator.db", false).expect("opens");
        let other = files.open("other.db", false).expect("opens");
        let tree = other.create_family("t", KeyKind::Int).expect("a family");
        let mut redo = Vec::new();
        let put = Op::Put {
            tree: tree.id().0,
            key: Key::Int(1),
            value: b"half of it",
        };
        redo::encode(&mut redo, put);
        let entry = Prepared::of(coordinator.core(), &redo).encode();
        files.keep(&other, PREPARED, &entry);
        files
    }

    fn open(&self, name: &str, read_only: bool) -> Result<Store> {
        let options = Options {
            read_only,
            ..Options::default()
        };
        let path = self.folder.join(name);
        match &self.disk {
            None => Store::open(path, options),
            Some(disk) => Store::open_on(disk.clone(), path, options),
        }
    }

    /// Keeps something of the transaction in one of the stores' own families.
    fn keep(&self, store: &Store, family: &str, entry: &[u8]) {
        let mut txn = store.txn();
        txn.begin_immediate().expect("begins");
        let tree = decisions::create(&mut txn, family).expect("a family");
        txn.put(&tree, self.number.key(), entry).expect("puts");
        txn.commit().expect("commits");
    }

    fn decide(&self, coordinator: &Store) {
        let entry = decisions::decision([[7; 16]].iter());
        self.keep(coordinator, DECIDED, &entry);
    }

    fn refused(&self, read_only: bool, with: ErrorKind, says: &str) {
        let error = self.open("other.db", read_only).expect_err("it is refused");
        assert_eq!(error.kind(), with, "{error}");
        assert!(error.message().contains(says), "{error}");
    }

    /// Whether the transaction is committed in the file where it was prepared.
    fn is_done(&self, read_only: bool) -> bool {
        let store = self.open("other.db", read_only).expect("opens");
        let tree = store.family("t").expect("a look").expect("a family");
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        txn.contains(&tree, Key::Int(1)).expect("reads")
    }
}

/// The sync of the decision failed, so that nobody knew of it until the coordinator was
/// opened again. But its log had it: the other file, opened meanwhile, was told that nothing
/// had been decided, and the transaction was in one of them for good.
#[test]
fn a_coordinator_that_failed_is_not_asked_before_it_is_opened_again() {
    let files = Files::in_doubt("failed");
    let coordinator = files.open("coordinator.db", false).expect("opens");
    let cause = Error::misuse("what a sync failed with");
    coordinator.core().fail(&cause);
    files.refused(false, ErrorKind::Poisoned, "what a sync failed with");
    files.refused(true, ErrorKind::Poisoned, "what a sync failed with");
    drop(coordinator);
    let coordinator = files.open("coordinator.db", false).expect("opens");
    files.decide(&coordinator);
    assert!(files.is_done(false));
}

/// What was read of a decision in a log that nobody has synced was made durable in the other
/// file: a power cut would have taken it from the one that decides.
#[test]
fn a_coordinator_open_for_reading_is_asked_only_by_who_reads() {
    let files = Files::in_doubt("read");
    let coordinator = files.open("coordinator.db", false).expect("opens");
    files.decide(&coordinator);
    drop(coordinator);
    let coordinator = files.open("coordinator.db", true).expect("opens");
    assert!(files.is_done(true));
    files.refused(false, ErrorKind::ReadOnly, "close it there first");
    drop(coordinator);
    assert!(files.is_done(false));
}

/// On a disk of the caller's it was looked for in the file alone, whose lock this process
/// had, and so whoever opened both after a power cut was refused the second.
#[test]
fn a_coordinator_open_on_a_disk_of_the_callers_is_asked() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    for is_decided in [true, false] {
        let folder = PathBuf::from(format!("/{is_decided}"));
        let files = Files::in_doubt_on(Some(disk.clone()), folder);
        let coordinator = files.open("coordinator.db", false).expect("opens");
        if is_decided {
            files.decide(&coordinator);
        }
        assert_eq!(files.is_done(false), is_decided);
        drop(coordinator);
    }
}
