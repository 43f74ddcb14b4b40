//! What was read stays covered, in bounded memory.

use super::*;
use crate::{KeyKind, Options, Store};

fn tree(kind: KeyKind) -> Tree {
    let store = Store::in_memory(Options::default()).unwrap();
    store.create_family("t", kind).unwrap()
}

fn covers(range: &Range, key: &OwnedKey) -> bool {
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

fn ranges(reads: &Reads) -> Vec<Range> {
    let mut all = Vec::new();
    for tree in &reads.trees {
        let outcome: Result<(), ()> = tree.try_for_each(|range| {
            all.push(range.clone());
            Ok(())
        });
        outcome.unwrap();
    }
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
    assert_eq!(entries, [&Range::point(OwnedKey::Int(500), Aspect::Entry)]);
}

#[test]
fn what_was_read_is_covered_whatever_was_joined() {
    for seed in 1..=4 {
        let mut draw = scattered(seed);
        let trees = [tree(KeyKind::Int), tree(KeyKind::Bytes)];
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
                    observer.seek(Seek::AtLeast(key.as_key()), Some(key.clone()));
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
        for tree in &reads.trees {
            assert!(!tree.whole, "seed {seed}");
            let mut all = Vec::new();
            let _: Result<(), ()> = tree.try_for_each(|range| {
                all.push(range.clone());
                Ok(())
            });
            all.sort_by(|a, b| by_start(&a.low, &b.low));
            let which = usize::from(tree.tree.id() == trees[1].id());
            for (key, aspect) in &read[which] {
                let start = Bound::Included(key.clone());
                let after = all.partition_point(|r| by_start(&r.low, &start) != Ordering::Greater);
                let covers = |range: &Range| range.aspect >= *aspect && covers(range, key);
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
    observer.seek(Seek::First, Some(OwnedKey::Int(-10)));
    for key in 0..40_000 {
        reads.lock().point(&tree, Key::Int(key * 10), Aspect::Entry);
    }
    observer.step(true, Some(OwnedKey::Int(-5)));
    let all = ranges(&reads.lock());
    assert!(all.iter().any(|range| covers(range, &OwnedKey::Int(-5))));
    assert!(!all.iter().any(|range| covers(range, &OwnedKey::Int(-4))));
}
