//! Leaves written from drafts hold what was gathered, and as much as they may.

use super::super::*;
use super::{Keys, Random, draw_value, stale};
use std::collections::BTreeMap;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Entries in the order of their keys, none of which is long and no value large.
fn draw(random: &mut Random, keys: Keys, page_size: usize, count: usize) -> Entries {
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        let key = keys.draw(random, page_size);
        let (value, overflow) = draw_value(random, &key, page_size);
        if let (OwnedKey::Bytes(key), false) = (key, overflow) {
            entries.insert(key, value);
        }
    }
    entries.into_iter().collect()
}

fn entries_of(page: &[u8]) -> Entries {
    let entry = |i| {
        let OwnedKey::Bytes(key) = stored_key_at(page, i).key else {
            unreachable!()
        };
        (key, value_at(page, i).0.to_vec())
    };
    (0..count(page)).map(entry).collect()
}

/// Whether a leaf with these fences has room for entries.
fn fit(entries: &[(Vec<u8>, Vec<u8>)], lower: &[u8], upper: &[u8], page_size: usize) -> bool {
    let mut page = stale(page_size);
    let fence = |fence| Some(Key::Bytes(fence).into());
    init(&mut page, Kind::BytesLeaf, 0, 7, fence(lower), fence(upper));
    entries.iter().enumerate().all(|(at, (key, value))| {
        let key = Key::Bytes(key).into();
        insert_at(&mut page, at, key, value, false)
    })
}

/// Writes entries as drafts do; the leaves.
fn write(entries: &Entries, page_size: usize) -> Vec<Vec<u8>> {
    let mut last = stale(page_size);
    init(&mut last, Kind::BytesLeaf, 0, 7, None, None);
    set_birth(&mut last, 5);
    let (key, value) = &entries[0];
    assert!(insert_at(
        &mut last,
        0,
        Key::Bytes(key).into(),
        value,
        false
    ));
    let mut draft = Draft::of(&last).expect("a single entry");
    let mut leaves = Vec::new();
    let mut fill = |draft: &mut Draft, last: &mut Vec<u8>| {
        let mut right = stale(page_size);
        draft.fill(last, &mut right);
        draft.go_on();
        leaves.push(std::mem::replace(last, right));
    };
    for (key, value) in &entries[1..] {
        while draft.push(key, value) == Pushed::Full {
            fill(&mut draft, &mut last);
        }
        assert_eq!(draft.push(key, value), Pushed::Elsewhere, "it was gathered");
    }
    if !draft.fits_last() {
        fill(&mut draft, &mut last);
    }
    draft.fill_last(&mut last);
    leaves.push(last);
    leaves
}

#[test]
fn leaves_hold_what_was_gathered() {
    for seed in 0..300 {
        let random = &mut Random(seed);
        let keys = [Keys::Short, Keys::Long, Keys::Beyond][random.below(3)];
        let page_size = [4096, 4096, 16384][random.below(3)];
        let count = 1 + random.below(3000);
        let mut entries = draw(random, keys, page_size, count);
        entries.retain(|(key, _)| key.len() <= max_key(page_size));
        if entries.is_empty() {
            continue;
        }
        let leaves = write(&entries, page_size);
        let mut rest = entries.as_slice();
        let mut lower: Option<Vec<u8>> = None;
        for (at, leaf) in leaves.iter().enumerate() {
            check(leaf).unwrap_or_else(|why| panic!("seed {seed}, leaf {at}: {why}"));
            assert_eq!((tree(leaf), level(leaf), birth(leaf)), (7, 0, 5));
            assert_eq!(
                lower_fence(leaf),
                lower.as_deref().map(|it| Key::Bytes(it).into())
            );
            let there = entries_of(leaf);
            assert_eq!(there, rest[..there.len()], "seed {seed}, leaf {at}");
            let (upper, taken) = (upper_fence(leaf), there.len());
            assert_eq!(upper.is_none(), at + 1 == leaves.len());
            // With one more it would not have fit.
            if at + 2 < leaves.len() {
                let next = separator(&rest[taken].0, &rest[taken + 1].0);
                let below = lower.as_deref().unwrap_or_default();
                assert!(!fit(&rest[..=taken], below, next, page_size), "seed {seed}");
            }
            rest = &rest[taken..];
            lower = upper.map(|upper| {
                let Key::Bytes(upper) = upper.key else {
                    unreachable!()
                };
                upper.to_vec()
            });
        }
        assert!(rest.is_empty(), "seed {seed}");
    }
}

#[test]
fn what_is_not_behind_or_too_large_goes_elsewhere() {
    let mut page = stale(4096);
    init(&mut page, Kind::BytesLeaf, 0, 7, None, None);
    assert!(Draft::of(&page).is_none(), "it has no entry");
    assert!(insert_at(
        &mut page,
        0,
        Key::Bytes(b"m").into(),
        b"v",
        false
    ));
    let mut draft = Draft::of(&page).expect("a single entry");
    for (key, value) in [
        (b"m".to_vec(), 0),
        (b"l".to_vec(), 0),
        (Vec::new(), 0),
        (vec![b'n'; max_key(4096) + 1], 0),
        (b"n".to_vec(), max_inline_value(4096, 1) + 1),
    ] {
        assert_eq!(draft.push(&key, &vec![0; value]), Pushed::Elsewhere);
    }
    assert!(draft.is_written());
    assert_eq!(draft.push(b"m\0", b""), Pushed::Yes);
    assert!(!draft.is_written());
    assert!(insert_at(
        &mut page,
        1,
        Key::Bytes(b"n").into(),
        b"v",
        false
    ));
    assert!(Draft::of(&page).is_none(), "it has two");
}
