//! One cursor that is sent all over a tree, as the lookups of a join send it: a key that
//! lies in the leaf it is on is found there, and found as from the root.

mod common;

use common::Rng;
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Cursor, Isolation, Key, KeyKind, Seek, Store};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum OwnedKey {
    Int(i64),
    Bytes(Vec<u8>),
}

impl OwnedKey {
    fn as_key(&self) -> Key<'_> {
        match self {
            OwnedKey::Int(key) => Key::Int(*key),
            OwnedKey::Bytes(key) => Key::Bytes(key),
        }
    }
}

fn open() -> Store {
    let disk = Arc::new(MemoryDisk::new());
    Store::open_on(disk, "seeks.db", Default::default()).expect("opens")
}

/// Seeks keys near and far, between those that are there, and at both ends.
fn seek_all_over(store: &Store, kind: KeyKind, keys: &[OwnedKey], sought: &[OwnedKey]) {
    let tree = store.create_family("keys", kind).expect("a family");
    store
        .transact(Isolation::Snapshot, |txn| {
            for key in keys {
                txn.put(&tree, key.as_key(), b"a value of some bytes")?;
            }
            Ok(())
        })
        .expect("commits");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    let mut rng = Rng::new(3);
    let mut at = 0;
    for round in 0..20_000 {
        at = match rng.below(4) {
            0 => rng.below(sought.len() as u64) as usize,
            1 => at.saturating_sub(rng.below(9) as usize),
            _ => (at + rng.below(9) as usize).min(sought.len() - 1),
        };
        let key = &sought[at];
        let (seek, place) = match rng.below(4) {
            0 => (
                Seek::AtLeast(key.as_key()),
                Some(keys.partition_point(|k| k < key)),
            ),
            1 => (
                Seek::After(key.as_key()),
                Some(keys.partition_point(|k| k <= key)),
            ),
            2 => (
                Seek::AtMost(key.as_key()),
                keys.partition_point(|k| k <= key).checked_sub(1),
            ),
            _ => (
                Seek::Before(key.as_key()),
                keys.partition_point(|k| k < key).checked_sub(1),
            ),
        };
        let expected = place.and_then(|place| keys.get(place));
        let found = cursor.seek(seek).expect("seeks");
        assert_eq!(
            found.then(|| key_of(&mut cursor)).as_ref(),
            expected,
            "round {round}"
        );
    }
}

fn key_of(cursor: &mut Cursor) -> OwnedKey {
    match cursor.kind() {
        KeyKind::Int => OwnedKey::Int(cursor.key_int()),
        KeyKind::Bytes => OwnedKey::Bytes(cursor.key_bytes().expect("reads").to_vec()),
    }
}

#[test]
fn integers() {
    let keys: Vec<_> = (0..20_000).map(|i| OwnedKey::Int(i * 3)).collect();
    let sought: Vec<_> = (-3..60_006).map(OwnedKey::Int).collect();
    seek_all_over(&open(), KeyKind::Int, &keys, &sought);
}

#[test]
fn bytes() {
    let key = |i: u32| OwnedKey::Bytes(format!("key {i:06}").into_bytes());
    let keys: Vec<_> = (0..20_000).map(|i| key(i * 3)).collect();
    let mut sought: Vec<_> = (0..60_006).map(key).collect();
    sought.insert(0, OwnedKey::Bytes(Vec::new()));
    sought.push(OwnedKey::Bytes(b"l".to_vec()));
    seek_all_over(&open(), KeyKind::Bytes, &keys, &sought);
}

/// What lies outside of the pages decides which leaf it is.
#[test]
fn keys_longer_than_their_page_holds() {
    let long = |i: u32| [&[7; 2500][..], &i.to_be_bytes()].concat();
    let key = |i: u32| match i % 5 {
        0 => OwnedKey::Bytes(vec![7; i as usize]),
        _ => OwnedKey::Bytes(long(i)),
    };
    let mut sought: Vec<_> = (0..3_000).map(key).collect();
    sought.sort();
    let keys: Vec<_> = sought.iter().step_by(3).cloned().collect();
    seek_all_over(&open(), KeyKind::Bytes, &keys, &sought);
}
