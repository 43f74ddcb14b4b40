//! What one operation writes may be larger than the cache: it is spilled while it
//! is made. Values of such a size once waited for frames without end, since each
//! checkpoint went well and none could write what only its transaction reaches;
//! so did a rebase of more pages than the cache has frames.

mod common;

use common::Rng;
use fulgurite_disk::{Driver, Machine, MemoryDisk};
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const NAME: &str = "beyond.db";
const CACHE: usize = 1 << 20;

/// A clock on which time passes only where somebody waits.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl Driver for Counted {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Relaxed))
    }

    fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_micros() as u64, Relaxed);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

/// With a thread of its own for checkpoints and one for spilling, or with neither.
fn kinds() -> [Options; 2] {
    let options = Options {
        cache_bytes: CACHE,
        ..Options::default()
    };
    let driven = Options {
        driver: Some(Arc::new(Counted::default())),
        ..options.clone()
    };
    [options, driven]
}

fn open(disk: &Arc<MemoryDisk>, options: &Options) -> Store {
    Store::open_on(disk.clone(), NAME, options.clone()).expect("opens")
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let words = std::iter::repeat_with(|| rng.next().to_le_bytes());
    words.flatten().take(bytes).collect()
}

fn read(store: &Store, tree: &Tree, key: i64) -> Vec<u8> {
    let mut value = Vec::new();
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let found = txn.get_into(tree, Key::Int(key), &mut value);
    assert!(found.expect("reads"), "key {key} is there");
    value
}

fn check(store: &Store) {
    let found = store.integrity_check().expect("a check");
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_value_may_be_larger_than_the_cache() {
    for options in kinds() {
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &options);
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let values = [1, 2, 3].map(|seed| noise(seed, 5 * CACHE + seed as usize));
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        for (key, value) in (0..).zip(&values) {
            let inserted = txn.insert(&tree, Key::Int(key), value);
            assert!(inserted.expect("an insert"));
        }
        let again = txn.insert(&tree, Key::Int(0), &values[1]);
        assert!(!again.expect("an insert"), "it is there");
        let replaced = txn.put(&tree, Key::Int(1), &values[2]);
        assert!(replaced.expect("a put"));
        txn.commit().expect("commits");
        drop((txn, tree, store));

        let store = open(&disk, &options);
        let tree = store.family("t").expect("reads").expect("is there");
        for (key, value) in [(0, 0), (1, 2), (2, 2)] {
            assert!(read(&store, &tree, key) == values[value], "value {key}");
        }
        check(&store);
    }
}

#[test]
fn a_value_larger_than_the_cache_comes_back_from_the_log() {
    for options in kinds() {
        let options = Options {
            checkpoint_bytes: 64 << 20,
            log_limit_bytes: Some(128 << 20),
            ..options
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &options);
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let value = noise(4, CACHE + CACHE / 2);
        for key in 0..3 {
            let mut txn = store.txn();
            txn.begin_statement(&[&tree]).expect("begins");
            txn.put(&tree, Key::Int(key), &value).expect("a put");
            txn.commit().expect("commits");
        }
        let left = Arc::new(disk.copied());
        let recovered = open(&left, &options);
        let tree = recovered.family("t").expect("reads").expect("is there");
        for key in 0..3 {
            assert!(read(&recovered, &tree, key) == value, "value {key}");
        }
        check(&recovered);
    }
}

#[test]
fn a_rebase_may_need_more_pages_than_the_cache_has() {
    for options in kinds() {
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &options);
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let rows = 4_000;
        store
            .transact(Isolation::Serializable, |txn| {
                (0..rows).try_for_each(|key| {
                    let value = noise(key as u64, 900);
                    txn.put(&tree, Key::Int(key), &value).map(drop)
                })
            })
            .expect("commits");
        let mut scattered = store.txn();
        scattered.begin(Isolation::Serializable).expect("begins");
        for key in (0..rows).step_by(12) {
            let put = scattered.put(&tree, Key::Int(key), b"scattered");
            assert!(put.expect("a put"), "it is there");
        }
        let mut other = store.txn();
        other.begin_statement(&[&tree]).expect("begins");
        other.put(&tree, Key::Int(1), b"other").expect("a put");
        other.commit().expect("commits");
        scattered.commit().expect("is put on top of the other");
        for key in 0..rows {
            let value = read(&store, &tree, key);
            match key {
                1 => assert_eq!(value, b"other"),
                key if key % 12 == 0 => assert_eq!(value, b"scattered"),
                key => assert_eq!(value, noise(key as u64, 900)),
            }
        }
        check(&store);
    }
}

/// Their rests are written in the middle of edits and splits.
#[test]
fn keys_may_be_larger_than_the_cache() {
    for options in kinds() {
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &options);
        let tree = store.create_family("k", KeyKind::Bytes).expect("a family");
        let shared = noise(5, 2 * CACHE);
        let keys: Vec<_> = (0..40_u8)
            .map(|n| [&shared[..], &[n; 9]].concat())
            .collect();
        for some in keys.chunks(8) {
            store
                .transact(Isolation::Snapshot, |txn| {
                    some.iter().try_for_each(|key| {
                        txn.put(&tree, Key::Bytes(key), &key[2 * CACHE..]).map(drop)
                    })
                })
                .expect("commits");
        }
        check(&store);
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        for key in keys.iter().step_by(2) {
            assert!(txn.delete(&tree, Key::Bytes(key)).expect("a delete"));
        }
        txn.commit().expect("commits");
        let mut value = Vec::new();
        txn.begin_read().expect("begins");
        for (at, key) in keys.iter().enumerate() {
            let found = txn.get_into(&tree, Key::Bytes(key), &mut value);
            assert_eq!(found.expect("reads"), at % 2 == 1, "key {at}");
        }
        drop(txn);
        check(&store);
    }
}

/// The pages are more than a transaction may hold at first, so that those spilled are
/// edited again; once it is known to do that it may hold them all.
#[test]
fn scattered_changes_are_not_spilled_again_and_again() {
    let [_, driven] = kinds();
    let options = Options {
        cache_bytes: 32 << 20,
        ..driven
    };
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, &options);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let pages = 480;
    let rows = pages * 17;
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for key in 0..rows {
        let put = txn.put(&tree, Key::Int(key), &noise(key as u64, 900));
        assert!(!put.expect("a put"));
    }
    txn.commit().expect("commits");
    store.checkpoint().expect("a checkpoint");
    let written = || store.stats().writes.pages;
    let before = written();
    let mut rng = Rng::new(8);
    txn.begin_immediate().expect("begins");
    for round in 0..20_000 {
        let key = (rng.next() % rows as u64) as i64;
        let put = txn.put(&tree, Key::Int(key), &noise(round, 60));
        assert!(put.expect("a put"), "it is there");
    }
    let spilled = written() - before;
    // 1,420; with what a transaction may hold at first, 7,128.
    assert!(spilled < 4 * pages as u64, "{spilled} pages spilled");
    txn.commit().expect("commits");
    check(&store);
}

/// Transactions that each hold too little to be spilled.
#[test]
fn who_finds_no_frame_is_told_in_time() {
    let [_, options] = kinds();
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, &options);
    let names: Vec<_> = (0..40).map(|number| format!("t{number}")).collect();
    let trees = names
        .iter()
        .map(|name| store.create_family(name, KeyKind::Int));
    let trees: Vec<Tree> = trees.map(|tree| tree.expect("a family")).collect();
    let mut open = Vec::new();
    let refused = trees.iter().find_map(|tree| {
        let mut txn = store.txn();
        txn.begin(Isolation::Snapshot).expect("begins");
        let mut puts = (0..4).map(|key| txn.put(tree, Key::Int(key), &noise(6, 15_000)));
        let error = puts.find_map(Result::err);
        drop(puts);
        open.push(txn);
        error
    });
    let error = refused.expect("the cache has 64 frames");
    assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
    assert!(error.message().contains("raise cache_bytes"), "{error}");
    open.drain(..).for_each(|mut txn| txn.rollback());
    let mut txn = store.txn();
    txn.begin_statement(&[&trees[0]]).expect("begins");
    let put = txn.put(&trees[0], Key::Int(1), &noise(6, 15_000));
    assert!(!put.expect("a put"), "nothing was committed");
    txn.commit().expect("commits");
    check(&store);
}

/// A transaction held the way to the leaf edited last in every tree that it wrote to, and
/// was told that the cache is full where that was more than the cache. Several that held
/// less waited for one another until their time was over. Who waits writes out all it
/// holds now.
#[test]
fn a_transaction_may_write_to_more_trees_than_the_cache_has_pages() {
    const TREES: i64 = 150;
    for options in kinds() {
        let options = Options {
            cache_bytes: 0,
            ..options
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &options);
        let trees: Vec<Tree> = (0..TREES)
            .map(|tree| store.create_family(&format!("t{tree}"), KeyKind::Int))
            .map(|tree| tree.expect("a family"))
            .collect();
        let mut txn = store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        for round in 0..3 {
            for (seed, tree) in (0..).zip(&trees) {
                let value = noise(seed, 1_000);
                txn.put(tree, Key::Int(round), &value).expect("a put");
            }
        }
        txn.commit().expect("commits");
        check(&store);
        drop((txn, store));
        let store = open(&disk, &options);
        for seed in 0..TREES as u64 {
            let tree = store.family(&format!("t{seed}")).expect("reads");
            let tree = tree.expect("is there");
            for round in 0..3 {
                assert_eq!(read(&store, &tree, round), noise(seed, 1_000));
            }
        }
    }
}

/// One of sixteen nodes and more, up to 64 KiB, was written out within its edit, and again
/// to the log, so that the file grew by each that was replaced until the next checkpoint.
#[test]
fn a_value_that_the_cache_holds_is_written_by_the_checkpoint() {
    for options in kinds() {
        let options = Options {
            cache_bytes: 8 * CACHE,
            ..options
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &options);
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        store.checkpoint().expect("a checkpoint");
        let pages = || store.stats().writes.pages;
        let before = pages();
        for length in [8 * 4064, 8 * 4064 + 1, 60_000, 64 << 10, 100_000] {
            let value = noise(length as u64, length);
            let mut txn = store.txn();
            txn.begin_statement(&[&tree]).expect("begins");
            txn.put(&tree, Key::Int(1), &value).expect("a put");
            txn.commit().expect("commits");
            assert_eq!(pages(), before, "{length} bytes");
            assert_eq!(read(&store, &tree, 1), value);
        }
        store.checkpoint().expect("a checkpoint");
        assert!(pages() >= before + 100_000 / 4064);
        check(&store);
    }
}
