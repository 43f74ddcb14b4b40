//! A store's file is as short as what it holds once it was compacted, whatever it was
//! before, and everybody finds what was there.

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_store::{
    ErrorKind, Isolation, Key, KeyKind, Options, Result, Seek, Store, Tree, Txn,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "c.db";
const ROWS: i64 = 60_000;

fn open(disk: &Arc<MemoryDisk>) -> Store {
    let options = Options {
        cache_bytes: 4 << 20,
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    Store::open_on(disk.clone(), NAME, options).expect("opens")
}

fn length(disk: &Arc<MemoryDisk>) -> u64 {
    let file = disk
        .open(Path::new(NAME), OpenOptions::default())
        .expect("opens");
    file.len().expect("a length")
}

fn value(key: i64) -> Vec<u8> {
    let mix = (key as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("some words and {mix:x}").into_bytes()
}

/// Where a key's entry is, so that neighbours are written at different times.
fn scattered(at: i64) -> i64 {
    (at * 7_919) % ROWS
}

fn filled(store: &Store, name: &str) -> Tree {
    let tree = store.create_family(name, KeyKind::Int).expect("a family");
    write(store, |txn| {
        for at in 0..ROWS {
            let key = scattered(at);
            txn.put(&tree, Key::Int(key), &value(key))?;
        }
        Ok(())
    });
    tree
}

fn write(store: &Store, work: impl FnOnce(&mut Txn) -> Result<()>) {
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    work(&mut txn).expect("writes");
    txn.commit().expect("commits");
}

/// Leaves every so manieth.
fn thin(store: &Store, tree: &Tree, each: i64) {
    write(store, |txn| {
        for key in (0..ROWS).filter(|key| key % each != 0) {
            txn.delete(tree, Key::Int(key))?;
        }
        Ok(())
    });
}

fn verify(txn: &mut Txn, tree: &Tree, each: i64) {
    let mut cursor = txn.cursor(tree).expect("a cursor");
    let mut more = cursor.seek(Seek::First).expect("a seek");
    for key in (0..ROWS).filter(|key| key % each == 0) {
        assert!(more, "ends before {key}");
        assert_eq!(cursor.key_int(), key);
        assert_eq!(cursor.value().expect("a value"), value(key));
        more = cursor.next().expect("a step");
    }
    assert!(!more, "ends");
}

fn verify_now(store: &Store, tree: &Tree, each: i64) {
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    verify(&mut txn, tree, each);
    let count = txn.count(tree).expect("a count");
    assert_eq!(
        count,
        (0..ROWS).filter(|key| key % each == 0).count() as u64
    );
    txn.rollback();
    let problems = store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new());
}

/// The length of a file that never held anything else.
fn shortest(each: i64) -> u64 {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    write(&store, |txn| {
        for key in (0..ROWS).filter(|key| key % each == 0) {
            txn.put(&tree, Key::Int(key), &value(key))?;
        }
        Ok(())
    });
    drop((tree, store));
    length(&disk)
}

fn compact(store: &Store) -> u64 {
    let less = store.compact(|| true).expect("compacts");
    less.expect("goes to its end")
}

#[test]
fn what_deletions_left_is_given_back() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    thin(&store, &tree, 10);
    store.checkpoint().expect("a checkpoint");
    let before = length(&disk);
    let less = compact(&store);
    assert_eq!(length(&disk), before - less);
    verify_now(&store, &tree, 10);
    drop((tree, store));
    let (now, shortest) = (length(&disk), shortest(10));
    assert!(
        now <= shortest * 5 / 4,
        "{before}, then {now}, could be {shortest}"
    );
    let store = open(&disk);
    let tree = store.family("t").expect("reads").expect("a family");
    verify_now(&store, &tree, 10);
}

/// One that was written in no order has pages two thirds full, and no free space: it grows
/// before it shrinks.
#[test]
fn a_file_without_free_space_becomes_as_short_as_it_can_be() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    for part in 0..60 {
        write(&store, |txn| {
            for at in part * ROWS / 60..(part + 1) * ROWS / 60 {
                let key = scattered(at);
                txn.put(&tree, Key::Int(key), &value(key))?;
            }
            Ok(())
        });
    }
    store.checkpoint().expect("a checkpoint");
    let before = length(&disk);
    compact(&store);
    verify_now(&store, &tree, 1);
    drop((tree, store));
    let (now, shortest) = (length(&disk), shortest(1));
    assert!(
        now <= shortest * 5 / 4,
        "{before}, then {now}, could be {shortest}"
    );
}

#[test]
fn a_file_that_is_short_stays_so() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    compact(&store);
    let once = length(&disk);
    compact(&store);
    let twice = length(&disk);
    assert!(twice <= once * 17 / 16, "{once}, then {twice}");
    verify_now(&store, &tree, 1);
}

/// Many families, large values, keys of bytes, and families that come and go meanwhile.
#[test]
fn all_kinds_of_trees_are_compacted() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let mut families = Vec::new();
    for at in 0..600 {
        let name = format!("family {at}");
        families.push(
            store
                .create_family(&name, KeyKind::Bytes)
                .expect("a family"),
        );
    }
    let large = store
        .create_family("large", KeyKind::Int)
        .expect("a family");
    let long = [b'k'; 3_000];
    write(&store, |txn| {
        for (at, family) in families.iter().enumerate() {
            txn.put(family, Key::Bytes(&at.to_be_bytes()), &[1; 900])?;
            txn.put(family, Key::Bytes(&long), b"of a long key")?;
        }
        (0..60).try_for_each(|key| {
            let value = vec![key as u8; 50_000 + 1_000 * key as usize];
            txn.put(&large, Key::Int(key), &value).map(drop)
        })
    });
    write(&store, |txn| {
        (0..50).try_for_each(|key| txn.delete(&large, Key::Int(key)).map(drop))
    });
    for at in 0..500 {
        store.drop_family(&format!("family {at}")).expect("drops");
    }
    store.checkpoint().expect("a checkpoint");
    let before = length(&disk);
    let mut asked = 0;
    let less = store.compact(|| {
        asked += 1;
        let name = format!("family {}", 500 + asked % 20);
        // Those that are being compacted cannot be dropped.
        let refused = store.drop_family(&name).err();
        assert!(refused.is_none_or(|error| error.kind() == ErrorKind::Busy));
        true
    });
    assert!(less.expect("compacts").is_some_and(|less| less > 0));
    assert!(length(&disk) < before);
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut found = Vec::new();
    for at in 520..600 {
        let family = store.family(&format!("family {at}"));
        let family = family.expect("reads").expect("a family");
        let key = (at as usize).to_be_bytes();
        assert!(
            txn.get_into(&family, Key::Bytes(&key), &mut found)
                .expect("reads")
        );
        assert_eq!(found, [1; 900]);
        assert!(
            txn.get_into(&family, Key::Bytes(&long), &mut found)
                .expect("reads")
        );
        assert_eq!(found, b"of a long key");
    }
    for key in 50..60 {
        assert!(
            txn.get_into(&large, Key::Int(key), &mut found)
                .expect("reads")
        );
        assert_eq!(found, vec![key as u8; 50_000 + 1_000 * key as usize]);
    }
    txn.rollback();
    let problems = store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new());
}

/// A snapshot keeps what it shows; what it needs stays where it is, and is given back by the
/// next call.
#[test]
fn snapshots_stay_as_they_are() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    thin(&store, &tree, 10);
    compact(&store);
    verify(&mut reader, &tree, 1);
    verify_now(&store, &tree, 10);
    let held = length(&disk);
    reader.rollback();
    compact(&store);
    assert!(length(&disk) < held / 2);
    verify_now(&store, &tree, 10);
}

/// Of a file without free space: a reader would keep it twice as long, so nothing goes to
/// its end until it is gone.
#[test]
fn nothing_is_written_twice_beside_a_snapshot() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    store.checkpoint().expect("a checkpoint");
    let before = length(&disk);
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    write(&store, |txn| {
        (0..ROWS).try_for_each(|key| txn.put(&tree, Key::Int(key), &value(key)).map(drop))
    });
    store.checkpoint().expect("a checkpoint");
    let held = length(&disk);
    compact(&store);
    assert!(length(&disk) <= held, "{before}, {held}, {}", length(&disk));
    verify(&mut reader, &tree, 1);
    reader.rollback();
    compact(&store);
    assert!(length(&disk) <= before * 17 / 16);
    verify_now(&store, &tree, 1);
}

/// Nothing has changed for who read or wrote something before.
#[test]
fn transactions_that_overlap_commit() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    thin(&store, &tree, 10);
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    verify(&mut txn, &tree, 10);
    txn.put(&tree, Key::Int(ROWS), b"new").expect("puts");
    txn.put(&tree, Key::Int(100), b"other").expect("puts");
    compact(&store);
    txn.commit().expect("commits");
    let mut found = Vec::new();
    txn.begin_read().expect("begins");
    for (key, value) in [(ROWS, &b"new"[..]), (100, b"other")] {
        assert!(
            txn.get_into(&tree, Key::Int(key), &mut found)
                .expect("reads")
        );
        assert_eq!(found, value);
    }
    assert_eq!(txn.count(&tree).expect("a count"), ROWS as u64 / 10 + 1);
}

#[test]
fn who_writes_is_waited_for_and_nothing_is_lost() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    let mut writer = store.txn();
    writer.begin_immediate().expect("begins");
    writer.delete(&tree, Key::Int(1)).expect("deletes");
    let refused = store.compact(|| true).expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    writer.rollback();
    verify_now(&store, &tree, 1);
}

#[test]
fn it_ends_where_it_is_told_to() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = filled(&store, "t");
    for times in [0, 1, 20] {
        let mut left = times;
        let told = store.compact(|| {
            left -= i32::from(left > 0);
            left > 0
        });
        assert_eq!(told.expect("ends"), None, "after {times}");
        verify_now(&store, &tree, 1);
    }
}

#[test]
fn who_cannot_compact_is_told() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    let refused = txn.compact(|| true).expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    txn.rollback();
    drop((txn, store));
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let store = Store::open_on(disk, NAME, options).expect("opens");
    let refused = store.compact(|| true).expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    let store = Store::in_memory(Options::default()).expect("opens");
    assert_eq!(store.compact(|| true).expect("does nothing"), Some(0));
}
