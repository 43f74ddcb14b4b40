//! Keys that do not stand in their page whole: rot, the log, freeing, the limit.

mod common;

use common::Rng;
use fulgurite_disk::{Disk, DiskFile, MemoryDisk, OpenOptions};
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Result, Seek, Store, Tree};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "long.db";

fn open(disk: &Arc<MemoryDisk>, read_only: bool) -> Result<Store> {
    let options = Options {
        cache_bytes: 1 << 20,
        read_only,
        ..Options::default()
    };
    Store::open_on(disk.clone(), NAME, options)
}

/// Keys with the same 1,500 bytes in front, and some that are parts of others.
fn keys() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(7);
    let shared: Vec<u8> = (0..1500).map(|_| rng.next() as u8).collect();
    let numbered = (0..60u32).map(|n| [&shared[..], &n.to_be_bytes()].concat());
    let parts = [511, 512, 513, 1499].map(|length| shared[..length].to_vec());
    let far = [&shared[..], &[7; 9000]].concat();
    let mut keys: Vec<_> = numbered.chain(parts).chain([far]).collect();
    keys.sort();
    keys
}

fn value(key: &[u8]) -> Vec<u8> {
    key.len().to_be_bytes().to_vec()
}

fn fill(store: &Store) -> Tree {
    let tree = store
        .create_family("keys", KeyKind::Bytes)
        .expect("a family");
    let mut keys = keys();
    keys.reverse();
    for some in keys.chunks(9) {
        store
            .transact(Isolation::Serializable, |txn| {
                for key in some {
                    txn.put(&tree, Key::Bytes(key), &value(key))?;
                }
                Ok(())
            })
            .expect("commits");
    }
    tree
}

/// Looks each key up, then walks over all of them: what is read is right.
fn verify(store: &Store) -> Result<()> {
    let tree = store.family("keys")?.expect("is there");
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut found = Vec::new();
    for key in keys() {
        assert!(txn.get_into(&tree, Key::Bytes(&key), &mut found)?);
        assert_eq!(found, value(&key));
    }
    let mut cursor = txn.cursor(&tree)?;
    let mut more = cursor.seek(Seek::First)?;
    for key in keys() {
        assert!(more);
        assert_eq!(cursor.key_bytes()?, key);
        more = cursor.next()?;
    }
    assert!(!more);
    Ok(())
}

fn file(disk: &MemoryDisk) -> Arc<dyn DiskFile> {
    disk.open(Path::new(NAME), OpenOptions::WRITE)
        .expect("opens")
}

#[test]
fn flipped_bytes_are_typed_errors() {
    let disk = Arc::new(MemoryDisk::new());
    drop({
        let store = open(&disk, false).expect("opens");
        fill(&store);
        store
    });
    verify(&open(&disk, true).expect("opens")).expect("is whole");
    let file = file(&disk);
    let length = file.len().expect("a length");
    let mut refused = 0;
    for at in (8192..length).step_by(211) {
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("reads");
        file.write_at(&[byte[0] ^ 0x20], at).expect("writes");
        match open(&disk, true).and_then(|store| verify(&store)) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
                refused += 1;
            }
        }
        file.write_at(&byte, at).expect("writes");
    }
    assert!(refused > 100, "{refused} flips mattered of {length} bytes");
    verify(&open(&disk, true).expect("opens")).expect("is whole again");
}

#[test]
fn the_log_brings_them_back() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, false).expect("opens");
    fill(&store);
    let crashed = Arc::new(disk.copied());
    drop(store);
    let store = open(&crashed, false).expect("recovers");
    verify(&store).expect("is whole");
    assert_eq!(
        store.integrity_check().expect("checks"),
        Vec::<String>::new()
    );
}

/// Separators own extents too: when all entries are gone, so are they.
#[test]
fn their_space_is_freed() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, false).expect("opens");
    let tree = fill(&store);
    store.checkpoint().expect("a checkpoint");
    let mut snapshot = store.txn();
    snapshot.begin_read().expect("reads");
    let before = keys();
    for key in &before {
        let deleted = store.transact(Isolation::Snapshot, |txn| {
            txn.delete(&tree, Key::Bytes(key))
        });
        assert!(deleted.expect("commits"));
    }
    store.checkpoint().expect("a checkpoint");
    let mut cursor = snapshot.cursor(&tree).expect("a cursor");
    let mut more = cursor.seek(Seek::Last).expect("seeks");
    for key in before.iter().rev() {
        assert!(more);
        assert_eq!(cursor.key_bytes().expect("a key"), key);
        more = cursor.prev().expect("moves");
    }
    drop((cursor, snapshot));
    for key in [b"one".as_slice(), b"two"] {
        store
            .transact(Isolation::Snapshot, |txn| {
                txn.put(&tree, Key::Bytes(key), b"")
            })
            .expect("commits");
        store.checkpoint().expect("a checkpoint");
    }
    assert_eq!(
        store.integrity_check().expect("checks"),
        Vec::<String>::new()
    );
    drop((store, tree));
    let length = file(&disk).len().expect("a length");
    assert!(length < 32 << 10, "{length} bytes for two short keys");
}

#[test]
fn overlapping_writers_compare_them() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = fill(&store);
    let keys = keys();
    let [first, second] = [&keys[20], &keys[21]].map(|key| Key::Bytes(key));
    let mut txns = [store.txn(), store.txn(), store.txn()];
    for txn in &mut txns {
        txn.begin(Isolation::Serializable).expect("begins");
    }
    let [one, other, reader] = &mut txns;
    one.put(&tree, first, b"one").expect("puts");
    other.put(&tree, second, b"other").expect("puts");
    // The third has read what the first one changes.
    let mut cursor = reader.cursor(&tree).expect("a cursor");
    assert!(cursor.seek(Seek::AtLeast(first)).expect("seeks"));
    reader.put(&tree, Key::Int(0), b"").expect_err("no integer");
    reader
        .put(&tree, Key::Bytes(b"elsewhere"), b"")
        .expect("puts");
    one.commit().expect("commits");
    other.commit().expect("another key with the same start");
    let lost = reader.commit().expect_err("what it read has changed");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
}

#[test]
fn the_limit_is_a_typed_error() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store
        .create_family("keys", KeyKind::Bytes)
        .expect("a family");
    let key = vec![0; (1 << 30) + 1];
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    let error = txn.put(&tree, Key::Bytes(&key), b"").expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::TooBig);
    assert!(!txn.contains(&tree, Key::Bytes(&key)).expect("looks"));
}

/// The check needs frames to put keys together again. Where cursors are on all that there
/// are, it says so: nothing is wrong with the keys.
#[test]
fn a_check_without_room_says_nothing_about_the_keys() {
    let disk = Arc::new(MemoryDisk::new());
    drop(fill(&open(&disk, false).expect("opens")));
    let options = Options {
        cache_bytes: 0,
        busy_timeout: std::time::Duration::from_millis(1),
        ..Options::default()
    };
    let store = Store::open_on(disk, NAME, options).expect("opens");
    let rows = store.create_family("rows", KeyKind::Int).expect("a family");
    store
        .transact(Isolation::Serializable, |txn| {
            (0..400).try_for_each(|key| txn.put(&rows, Key::Int(key), &[1; 900]).map(drop))
        })
        .expect("commits");
    store.checkpoint().expect("a checkpoint");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut cursors = Vec::new();
    let full = (0..400).find_map(|key| {
        let mut cursor = txn.cursor(&rows).ok()?;
        let sought = cursor.seek(Seek::AtLeast(Key::Int(key)));
        cursors.push(cursor);
        sought.err()
    });
    assert_eq!(full.expect("fewer frames").kind(), ErrorKind::NoMemory);
    let refused = store.integrity_check().expect_err("no room");
    assert_eq!(refused.kind(), ErrorKind::NoMemory, "{refused}");
    drop(cursors);
    assert_eq!(store.integrity_check().expect("checks"), [""; 0]);
}
