//! Parts of large values: what is read and written of them, and what that costs.

mod common;

use common::Rng;
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Isolation, Key, KeyKind, Options, Result, Store, Tree, Txn};
use std::sync::Arc;

const NAME: &str = "large.db";
const KEY: Key<'static> = Key::Int(7);

fn open(disk: &Arc<MemoryDisk>, cache_bytes: usize) -> Store {
    let options = Options {
        cache_bytes,
        ..Options::default()
    };
    Store::open_on(disk.clone(), NAME, options).expect("opens")
}

fn noise(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let words = std::iter::repeat_with(|| rng.next().to_le_bytes());
    words.flatten().take(bytes).collect()
}

fn value_of(txn: &mut Txn, tree: &Tree) -> Vec<u8> {
    let mut value = Vec::new();
    assert!(txn.get_into(tree, KEY, &mut value).expect("reads"));
    value
}

fn write(store: &Store, change: impl FnOnce(&mut Txn) -> Result<()>) {
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    change(&mut txn).expect("writes");
    txn.commit().expect("commits");
}

fn check(store: &Store) {
    let found = store.integrity_check().expect("a check");
    assert_eq!(found, Vec::<String>::new());
}

/// Of one, two and three levels, in a cache that holds a part of the last.
#[test]
fn parts_are_written_over() {
    let mut rng = Rng::new(1);
    for length in [1_500, 30_000, 1_032_256, 1_032_257, 5_000_000] {
        let disk = Arc::new(MemoryDisk::new());
        let mut store = open(&disk, 2 << 20);
        let mut value = noise(&mut rng, length);
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        write(&store, |txn| txn.put(&tree, KEY, &value).map(drop));
        for round in 0..30 {
            let from = rng.below(length as u64) as usize;
            let most = [10, 5_000, 300_000][rng.below(3) as usize];
            let to = length.min(from + rng.below(most) as usize);
            let part = noise(&mut rng, to - from);
            let tree = store.create_family("t", KeyKind::Int).expect("a family");
            let mut txn = store.txn();
            txn.begin(Isolation::Serializable).expect("begins");
            assert!(txn.put_part(&tree, KEY, from, &part).expect("writes"));
            if round % 5 == 0 {
                txn.rollback();
            } else {
                txn.commit().expect("commits");
                value[from..to].copy_from_slice(&part);
            }
            txn.begin_read().expect("begins");
            assert!(value_of(&mut txn, &tree) == value, "{length}, {from}..{to}");
            drop(txn);
            if round % 7 == 0 {
                check(&store);
                drop(store);
                store = open(&disk, 2 << 20);
            }
        }
        check(&store);
    }
}

/// What a transaction started from stays as it was, whatever is written over it.
#[test]
fn readers_keep_their_value() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, 8 << 20);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let before = noise(&mut Rng::new(2), 100_000);
    write(&store, |txn| txn.put(&tree, KEY, &before).map(drop));
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    let mut seen = Vec::new();
    assert!(reader.get_into(&tree, KEY, &mut seen).expect("reads"));
    write(&store, |txn| {
        txn.put_part(&tree, KEY, 50_000, &[1; 20_000]).map(drop)
    });
    write(&store, |txn| {
        txn.put_start(&tree, KEY, 100, b"another start").map(drop)
    });
    store.checkpoint().expect("a checkpoint");
    assert!(value_of(&mut reader, &tree) == before);
    reader.rollback();
    reader.begin_read().expect("begins");
    let mut after = before;
    after[50_000..70_000].fill(1);
    after.splice(..100, *b"another start");
    assert!(value_of(&mut reader, &tree) == after);
}

/// Two that write to the same value: the second loses, whichever parts they write.
#[test]
fn parts_of_one_value_conflict() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, 8 << 20);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    write(&store, |txn| txn.put(&tree, KEY, &[0; 100_000]).map(drop));
    let [mut first, mut second] = [store.txn(), store.txn()];
    for txn in [&mut first, &mut second] {
        txn.begin(Isolation::Snapshot).expect("begins");
    }
    first.put_part(&tree, KEY, 10, b"first").expect("writes");
    second
        .put_part(&tree, KEY, 90_000, b"second")
        .expect("writes");
    first.commit().expect("commits");
    let lost = second.commit().expect_err("the value is another one");
    assert_eq!(lost.kind(), fulgurite_store::ErrorKind::Conflict);
}

/// Writing a part costs the part, in the log and in the file.
#[test]
fn a_part_costs_what_it_takes() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, 64 << 20);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let value = noise(&mut Rng::new(3), 20_000_000);
    write(&store, |txn| txn.put(&tree, KEY, &value).map(drop));
    store.checkpoint().expect("a checkpoint");
    let logged = || store.stats().log.map_or(0, |log| log.bytes);
    let before = logged();
    write(&store, |txn| {
        (0..100).try_for_each(|i| txn.put_part(&tree, KEY, i * 190_000, &[7; 1_000]).map(drop))
    });
    let after = logged();
    assert!(after - before < 120_000, "{before} to {after}");
    let made = store.stats().cache.unwritten;
    assert!(made < 500, "{made} pages for a hundred parts");
}
