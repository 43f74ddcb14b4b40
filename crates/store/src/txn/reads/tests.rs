//! What was read stays covered, in bounded memory.

use super::*;
use crate::node::OwnedKey;
use crate::primitives::Mutex;
use crate::tree::cursor::Seek;
use crate::{KeyKind, Options, Store};
use std::sync::Arc;

/// A range that owns its keys.
#[derive(Debug, PartialEq)]
struct Covered {
    low: Bound<OwnedKey>,
    high: Bound<OwnedKey>,
    aspect: Aspect,
}

fn tree(kind: KeyKind) -> Tree {
    let store = Store::in_memory(Options::default()).unwrap();
    store.create_family("t", kind).unwrap()
}

fn covers(range: &Covered, key: &OwnedKey) -> bool {
    let from = match &range.low {
        Bound::Unbounded => true,
        Bound::Included(low) => low <= key,
        Bound::Excluded(low) => low < key,
    };
    from && match &range.high {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
    }
}

fn ranges(reads: &Reads) -> Vec<Covered> {
    reads.trees.iter().flat_map(ranges_of).collect()
}

fn ranges_of(tree: &TreeReads) -> Vec<Covered> {
    let mut all = Vec::new();
    let outcome: Result<(), ()> = tree.try_for_each(|range| {
        all.push(Covered {
            low: range.low.map(OwnedKey::from),
            high: range.high.map(OwnedKey::from),
            aspect: range.aspect,
        });
        Ok(())
    });
    outcome.unwrap();
    all
}

fn scattered(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % below
    }
}

/// A load of ascending keys looks each of them up; their list had a megabyte after
/// 32,768 of them, and then the whole tree was depended on.
#[test]
fn integers_in_a_row_are_one_range() {
    let tree = tree(KeyKind::Int);
    let mut reads = Reads::default();
    for key in (500..100_000).chain((0..500).rev()) {
        reads.point(&tree, Key::Int(key), Aspect::Entry);
    }
    let all = ranges(&reads);
    assert_eq!(all.len(), 1);
    assert!((0..100_000).all(|key| all.iter().any(|range| covers(range, &OwnedKey::Int(key)))));
    assert!(
        !all.iter()
            .any(|range| covers(range, &OwnedKey::Int(100_000)))
    );
}

/// Whether keys are there, asked one after the other beside what they hold: a change of
/// the others' values is no matter, in one range or in several.
#[test]
fn presence_and_entries_are_ranges_apart() {
    let tree = tree(KeyKind::Int);
    let mut reads = Reads::default();
    for key in 0..1_000 {
        reads.point(&tree, Key::Int(key), Aspect::Presence);
    }
    reads.point(&tree, Key::Int(500), Aspect::Entry);
    reads.point(&tree, Key::Int(500), Aspect::Presence);
    reads.point(&tree, Key::Int(501), Aspect::Presence);
    let all = ranges(&reads);
    let entries: Vec<_> = all.iter().filter(|r| r.aspect == Aspect::Entry).collect();
    assert_eq!(all.len(), 2);
    let point = Covered {
        low: Bound::Included(OwnedKey::Int(500)),
        high: Bound::Included(OwnedKey::Int(500)),
        aspect: Aspect::Entry,
    };
    assert_eq!(entries, [&point]);
}

#[test]
fn what_was_read_is_covered_whatever_was_joined() {
    for seed in 1..=4 {
        let mut draw = scattered(seed);
        let store = Store::in_memory(Options::default()).unwrap();
        let kinds = [("a", KeyKind::Int), ("b", KeyKind::Bytes)];
        let trees = kinds.map(|(name, kind)| store.create_family(name, kind).unwrap());
        let reads = Arc::new(Mutex::new(Reads::default()));
        let mut read: [Vec<(OwnedKey, Aspect)>; 2] = Default::default();
        let mut observers: Vec<Observer> = Vec::new();
        for _ in 0..40_000 {
            let which = draw(2) as usize;
            let number = draw(1 << 30) as i64;
            let key = match which {
                0 => OwnedKey::Int(number),
                _ => OwnedKey::Bytes(number.to_be_bytes().repeat(1 + draw(3) as usize)),
            };
            let mut aspect = Aspect::Entry;
            match draw(40) {
                0 => {
                    let mut observer = Reads::observer(&reads, &trees[which]);
                    observer.seek(Seek::AtLeast(key.as_key()), Some(key.as_key()));
                    observers.push(observer);
                    if observers.len() > 20 {
                        observers.remove(0);
                    }
                }
                at => {
                    if at % 2 == 0 {
                        aspect = Aspect::Presence;
                    }
                    reads.lock().point(&trees[which], key.as_key(), aspect);
                }
            }
            read[which].push((key, aspect));
        }
        let reads = reads.lock();
        assert!(reads.bytes <= LIMIT, "seed {seed}");
        for tree in reads.trees.iter() {
            assert!(!tree.whole, "seed {seed}");
            let mut all = ranges_of(tree);
            all.sort_by(|a, b| by_start(&a.low, &b.low));
            let which = usize::from(tree.tree.id() == trees[1].id());
            for (key, aspect) in &read[which] {
                let start = Bound::Included(key.clone());
                let after = all.partition_point(|r| by_start(&r.low, &start) != Ordering::Greater);
                let covers = |range: &Covered| range.aspect >= *aspect && covers(range, key);
                assert!(
                    all[..after].iter().rev().any(covers),
                    "seed {seed}: {key:?}"
                );
            }
        }
    }
}

/// A cursor that is open goes on extending its own range.
#[test]
fn an_open_cursors_range_is_not_joined() {
    let tree = tree(KeyKind::Int);
    let reads = Arc::new(Mutex::new(Reads::default()));
    let mut observer = Reads::observer(&reads, &tree);
    observer.seek(Seek::First, Some(Key::Int(-10)));
    for key in 0..40_000 {
        reads.lock().point(&tree, Key::Int(key * 10), Aspect::Entry);
    }
    observer.step(true, Some(Key::Int(-5)), None);
    let all = ranges(&reads.lock());
    assert!(all.iter().any(|range| covers(range, &OwnedKey::Int(-5))));
    assert!(!all.iter().any(|range| covers(range, &OwnedKey::Int(-4))));
}

/// What a cursor read stays when it goes on elsewhere and when it is closed, and ends where
/// its reader said that it ends; the next cursor knows nothing of that.
#[test]
fn what_cursors_passed_is_kept_after_them() {
    let tree = tree(KeyKind::Bytes);
    let reads = Arc::new(Mutex::new(Reads::default()));
    let key = |text: &'static str| Key::Bytes(text.as_bytes());
    let mut observer = Reads::observer(&reads, &tree);
    observer.narrow(Bound::Included(key("b")), Bound::Excluded(key("d")));
    observer.seek(Seek::AtLeast(key("b")), Some(key("bb")));
    observer.step(true, Some(key("cc")), None);
    observer.step(true, Some(key("x")), None);
    observer.seek(Seek::AtLeast(key("p")), Some(key("p")));
    drop(observer);
    let mut observer = Reads::observer(&reads, &tree);
    observer.seek(Seek::AtMost(key("s")), Some(key("r")));
    observer.step(false, Some(key("qq")), None);
    drop(observer);
    let all = ranges(&reads.lock());
    let covered = |text: &str| {
        let key = OwnedKey::Bytes(text.as_bytes().to_vec());
        all.iter().any(|range| covers(range, &key))
    };
    for (text, expected) in [
        ("a", false),
        ("b", true),
        ("cz", true),
        ("d", false),
        ("p", false),
        ("q", false),
        ("qq", true),
        ("s", true),
        ("sa", false),
    ] {
        assert_eq!(covered(text), expected, "{text}");
    }
}

/// An INSERT that finds its key taken asks for what is there: that took two places.
#[test]
fn a_key_that_is_looked_up_after_it_was_asked_for_takes_no_more() {
    let tree = tree(KeyKind::Bytes);
    let mut reads = Reads::default();
    reads.point(&tree, Key::Bytes(b"taken"), Aspect::Presence);
    let before = reads.bytes;
    reads.point(&tree, Key::Bytes(b"taken"), Aspect::Entry);
    reads.point(&tree, Key::Bytes(b"taken"), Aspect::Presence);
    assert_eq!(reads.bytes, before);
    let all = ranges(&reads);
    assert!(matches!(all.as_slice(), [range] if range.aspect == Aspect::Entry));
}

/// Joined two by two, neighbours cover what they did and what lies between, and nothing
/// beyond the first and the last.
#[test]
fn integers_of_both_signs_are_joined_in_their_order() {
    let tree = tree(KeyKind::Int);
    let mut reads = Reads::default();
    let mut draw = scattered(7);
    let keys: Vec<i64> = (0..200_000)
        .map(|_| draw(1 << 40) as i64 - (1 << 39))
        .chain([i64::MIN, i64::MAX])
        .collect();
    for key in &keys {
        reads.point(&tree, Key::Int(*key), Aspect::Presence);
    }
    assert!(reads.bytes <= LIMIT);
    let all = ranges(&reads);
    let after = |key: i64| {
        let start = Bound::Included(OwnedKey::Int(key));
        all.partition_point(|r| by_start(&r.low, &start) != Ordering::Greater)
    };
    for key in keys {
        let mut before = all[..after(key)].iter().rev();
        assert!(
            before.any(|range| covers(range, &OwnedKey::Int(key))),
            "{key}"
        );
    }
}
