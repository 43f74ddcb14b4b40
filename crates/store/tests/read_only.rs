//! Reading a database that was killed, without writing to any of its files.
//!
//! What its log holds has to be replayed. Where that took more pages than the cache has,
//! opening for reading failed: they could be written nowhere.

mod common;

use common::Rng;
use fulgurite_disk::{
    Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as DiskResult, forward,
};
use fulgurite_store::{Durability, Key, KeyKind, Options, Seek, Store, Tree};
use std::path::Path;
use std::sync::Arc;

const NAMES: [&str; 3] = ["a.db", "a.db-wal0", "a.db-wal1"];

fn read(disk: &MemoryDisk, name: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(name), OpenOptions::READ).ok()?;
    let mut bytes = vec![0; file.len().expect("its length") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    Some(bytes)
}

/// A file system that takes no writes: what has no name is elsewhere.
struct ReadOnlyDisk(MemoryDisk);

impl ReadOnlyDisk {
    fn refuse<T>(&self, op: &'static str, path: &Path) -> DiskResult<T> {
        let refused = std::io::ErrorKind::ReadOnlyFilesystem.into();
        Err(DiskError::new(op, path, refused))
    }
}

impl Disk for ReadOnlyDisk {
    forward!(0: exists, temp_file, canonical, boot_id);

    fn open(&self, path: &Path, options: OpenOptions) -> DiskResult<Arc<dyn DiskFile>> {
        match options.read_only {
            true => self.0.open(path, options),
            false => self.refuse("open", path),
        }
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        self.refuse("remove", path)
    }

    fn rename(&self, from: &Path, _to: &Path) -> DiskResult<()> {
        self.refuse("rename", from)
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        self.refuse("sync folder", dir)
    }
}

type Entry = (i64, Vec<u8>);

/// All families with all their entries.
fn everything(store: &Store) -> Vec<(String, Vec<Entry>)> {
    let mut found = Vec::new();
    for name in store.families().expect("the names") {
        let tree = store.family(&name).expect("reads").expect("is there");
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        let mut cursor = txn.cursor(&tree).expect("a cursor");
        let mut rows = Vec::new();
        let mut more = cursor.seek(Seek::First).expect("seeks");
        while more {
            let value = cursor.value().expect("reads").to_vec();
            rows.push((cursor.key_int(), value));
            more = cursor.next().expect("goes on");
        }
        found.push((name, rows));
    }
    found
}

/// Many commits behind a checkpoint: of keys here and there, of large values, of trees
/// that come and go, and of a load that is not in the log itself.
fn killed(seed: u64, loads: bool) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), NAMES[0], options).expect("opens");
    let mut rng = Rng::new(seed);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let gone = store.create_family("gone", KeyKind::Int).expect("a family");
    let mut change = |tree: &Tree, count: u64, length: u64| {
        let mut txn = store.txn();
        txn.begin_statement(&[tree]).expect("begins");
        for _ in 0..count {
            let key = Key::Int(rng.below(20_000) as i64);
            if rng.chance(1, 5) {
                txn.delete(tree, key).expect("deletes");
            } else {
                let value: Vec<u8> = (0..rng.below(length)).map(|_| rng.next() as u8).collect();
                txn.put(tree, key, &value).expect("puts");
            }
        }
        txn.commit().expect("commits");
    };
    change(&tree, 3_000, 300);
    change(&gone, 300, 300);
    store.checkpoint().expect("a checkpoint");
    for round in 0..40 {
        change(&tree, 200, if round % 10 == 0 { 9_000 } else { 300 });
    }
    if loads {
        let loaded = store
            .create_family("loaded", KeyKind::Int)
            .expect("a family");
        change(&loaded, 30_000, 400);
    }
    store.drop_family("gone").expect("drops");
    change(&tree, 100, 300);
    let killed = disk.copied();
    drop(store);
    killed
}

#[test]
fn a_killed_database_is_read_and_not_touched() {
    for (seed, loads) in [(1, false), (2, false), (3, true)] {
        let killed = killed(seed, loads);
        let recovered = killed.copied();
        let store = Store::open_on(Arc::new(recovered), NAMES[0], Options::default());
        let expected = everything(&store.expect("recovers"));
        let before = NAMES.map(|name| read(&killed, name));
        assert!(before[1].is_some(), "a log to replay");
        for cache_bytes in [0, 1 << 20, 64 << 20] {
            let disk = Arc::new(ReadOnlyDisk(killed.clone()));
            let options = Options {
                cache_bytes,
                read_only: true,
                ..Options::default()
            };
            let store = Store::open_on(disk, NAMES[0], options).expect("opens for reading");
            assert!(everything(&store) == expected, "seed {seed}, {cache_bytes}");
            let problems = store.integrity_check().expect("checks");
            assert!(
                problems.is_empty(),
                "seed {seed}, {cache_bytes}: {problems:?}"
            );
            drop(store);
            let after = NAMES.map(|name| read(&killed, name));
            assert!(before == after, "seed {seed}, {cache_bytes}: files changed");
        }
    }
}
