//! Pages that a checkpoint waits for on their way to the device (ADR 93), and that do not
//! get there.

use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as Done, forward};
use fulgurite_store::{
    Compression, Durability, ErrorKind, Isolation, Key, KeyKind, Options, Result, Store, Tree,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const PATH: &str = "p.db";
const ROWS: i64 = 2_000;

/// What is seen of the database file's calls.
#[derive(Debug, Default)]
struct Calls {
    is_failing: AtomicBool,
    /// Bytes asked for, those of them that were not waited for, and the most of these.
    asked: AtomicU64,
    under_way: AtomicU64,
    under_way_max: AtomicU64,
    longest_write: AtomicU64,
}

/// A disk whose database file can lose what it was to write back, and says so to who
/// waits for it, once, as Linux does.
#[derive(Debug, Clone, Default)]
struct Losing {
    inner: MemoryDisk,
    calls: Arc<Calls>,
}

#[derive(Debug)]
struct LosingFile {
    inner: Arc<dyn DiskFile>,
    calls: Arc<Calls>,
}

impl Disk for Losing {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        let inner = self.inner.open(path, options)?;
        Ok(match path.ends_with(PATH) {
            false => inner,
            true => Arc::new(LosingFile {
                inner,
                calls: Arc::clone(&self.calls),
            }),
        })
    }
}

impl DiskFile for LosingFile {
    forward!(inner: len, read_at, write_vectored_at, sync_data, sync_all, allocate, truncate);
    forward!(inner: lock_exclusive, lock_shared, unlock, identity);

    fn write_at(&self, buf: &[u8], offset: u64) -> Done<()> {
        self.calls.longest_write.fetch_max(buf.len() as u64, SeqCst);
        self.inner.write_at(buf, offset)
    }

    fn start_writeback(&self, _offset: u64, len: u64) {
        self.calls.asked.fetch_add(len, SeqCst);
        let under_way = self.calls.under_way.fetch_add(len, SeqCst) + len;
        self.calls.under_way_max.fetch_max(under_way, SeqCst);
    }

    fn finish_writeback(&self, _offset: u64, len: u64) -> Done<()> {
        self.calls.under_way.fetch_sub(len, SeqCst);
        if self.calls.is_failing.swap(false, SeqCst) {
            let source = io::Error::other("the device lost it");
            return Err(DiskError::new("write back", Path::new(PATH), source));
        }
        Ok(())
    }
}

fn open(disk: &Losing, durability: Durability) -> Store {
    let options = Options {
        compression: Compression::None,
        durability,
        ..Options::default()
    };
    Store::open_on(Arc::new(disk.clone()), PATH, options).expect("opens")
}

fn put(store: &Store, tree: &Tree, id: i64, value: &[u8]) -> Result<bool> {
    store.transact(Isolation::Snapshot, |txn| {
        txn.put(tree, Key::Int(id), value)
    })
}

fn fill(store: &Store) -> Tree {
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    for id in 0..ROWS {
        put(store, &tree, id, &[id as u8; 500]).expect("commits");
    }
    tree
}

fn check(store: &Store, tree: &Tree) {
    let mut value = Vec::new();
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    for id in 0..ROWS {
        let found = txn.get_into(tree, Key::Int(id), &mut value);
        assert!(found.expect("reads"), "row {id}");
        assert_eq!(value, [id as u8; 500], "row {id}");
    }
}

/// A sync that follows may succeed, and what was lost be named by the meta slots.
#[test]
fn what_is_lost_on_its_way_ends_writing_and_costs_nothing() {
    let disk = Losing::default();
    let store = open(&disk, Durability::Full);
    let tree = fill(&store);
    disk.calls.is_failing.store(true, SeqCst);
    let error = store.checkpoint().expect_err("pages were lost");
    assert!(error.to_string().contains("the device lost it"), "{error}");
    let error = put(&store, &tree, 0, b"x").expect_err("nothing is written any more");
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    let error = store.checkpoint().expect_err("nor tried again");
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    check(&store, &tree);
    drop((store, tree));
    let store = open(&disk, Durability::Full);
    let tree = store.family("t").expect("reads").expect("is there");
    check(&store, &tree);
}

#[test]
fn a_checkpoint_never_has_much_on_its_way() {
    let disk = Losing::default();
    let store = open(&disk, Durability::Full);
    let tree = fill(&store);
    store.checkpoint().expect("a checkpoint");
    let calls = &disk.calls;
    let (asked, most) = (calls.asked.load(SeqCst), calls.under_way_max.load(SeqCst));
    assert!(asked > ROWS as u64 * 500 * 9 / 10, "{asked} bytes");
    // Two pieces of 64 KiB and the one after, each up to a page longer.
    assert!(most <= 3 * (68 << 10), "{most} bytes on their way");
    assert!(calls.longest_write.load(SeqCst) <= 64 << 10);
    check(&store, &tree);
}

/// Where no commit waits for a sync, no page waits for the device.
#[test]
fn without_syncs_of_commits_nothing_is_waited_for() {
    for durability in [Durability::Normal, Durability::Off] {
        let disk = Losing::default();
        let store = open(&disk, durability);
        let tree = fill(&store);
        disk.calls.is_failing.store(true, SeqCst);
        store.checkpoint().expect("a checkpoint");
        assert!(disk.calls.asked.load(SeqCst) > 0);
        assert!(disk.calls.is_failing.load(SeqCst), "somebody waited");
        check(&store, &tree);
    }
}
