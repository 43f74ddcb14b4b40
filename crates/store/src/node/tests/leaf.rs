//! Leaves against a `BTreeMap`: every operation, then every split and merge.

use std::collections::BTreeMap;

use super::*;

type Model = BTreeMap<OwnedKey, (Vec<u8>, bool)>;

fn assert_same(page: &[u8], model: &Model) {
    assert_eq!(check(page), Ok(()));
    assert_eq!(count(page), model.len());
    for (i, (key, (value, overflow))) in model.iter().enumerate() {
        assert_eq!(&owned_key_at(page, i), key);
        assert_eq!(value_at(page, i), (&value[..], *overflow));
        assert_eq!(search(page, key.as_key()), Ok(i));
    }
}

fn bounds(
    keys: Keys,
    random: &mut Random,
    page_size: usize,
) -> (Option<OwnedKey>, Option<OwnedKey>) {
    let (a, b) = (keys.draw(random, page_size), keys.draw(random, page_size));
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    let empty = OwnedKey::Bytes(Vec::new());
    let low = (random.below(3) > 0 && low != empty).then_some(low);
    let high = (random.below(3) > 0 && high != empty && low.as_ref() < Some(&high)).then_some(high);
    (low, high)
}

fn step(page: &mut [u8], model: &mut Model, key: &OwnedKey, random: &mut Random) {
    let position = search(page, key.as_key());
    let expected = model.range(..key).count();
    assert_eq!(
        position,
        if model.contains_key(key) {
            Ok(expected)
        } else {
            Err(expected)
        }
    );
    if let Err(i) = position
        && i < count(page)
    {
        assert!(owned_key_at(page, i).as_key() > key.as_key());
    }
    let is_last = !model.is_empty() && position == Err(model.len());
    let may_tell = !has_int_keys(page) && !has_long(page);
    assert_eq!(is_behind(page, key.as_key()), is_last && may_tell);
    let (value, overflow) = draw_value(random, key, page.len());
    let before = page.to_vec();
    let fits = match position {
        Err(i) => insert_at(page, i, key.as_key(), &value, overflow),
        Ok(i) if random.below(3) == 0 => {
            remove_at(page, i);
            model.remove(key);
            return;
        }
        Ok(i) => replace_value_at(page, i, &value, overflow),
    };
    if fits {
        model.insert(key.clone(), (value, overflow));
    } else {
        assert_eq!(page, before);
        let grown = value.len() + key_len(key) + 12;
        assert!(free_space(page, page.len()) < grown);
    }
}

#[test]
fn operations_match_the_model() {
    let mut random = Random(1);
    for page_size in [4096, 8192, 65536] {
        for keys in Keys::ALL {
            for _ in 0..12 {
                let (lower, upper) = bounds(keys, &mut random, page_size);
                let mut page = stale(page_size);
                let fence = |key: &Option<OwnedKey>| key.clone();
                let (low, high) = (fence(&lower), fence(&upper));
                init(
                    &mut page,
                    keys.leaf(),
                    0,
                    7,
                    low.as_ref().map(OwnedKey::as_key),
                    high.as_ref().map(OwnedKey::as_key),
                );
                assert_eq!(lower_fence(&page), low);
                assert_eq!(upper_fence(&page), high);
                let mut model = Model::new();
                for round in 0..400 {
                    let key = keys.draw(&mut random, page_size);
                    let inside = low.as_ref().is_none_or(|l| *l <= key)
                        && high.as_ref().is_none_or(|h| key < *h);
                    assert!(inside || !covers(&page, key.as_key()));
                    assert!(covers(&page, key.as_key()) == inside || keys == Keys::Beyond);
                    if inside {
                        step(&mut page, &mut model, &key, &mut random);
                    } else {
                        let end = if low.as_ref().is_some_and(|l| key < *l) {
                            0
                        } else {
                            model.len()
                        };
                        assert_eq!(search(&page, key.as_key()), Err(end));
                    }
                    assert_eq!(check(&page), Ok(()), "{keys:?}");
                    if round % 50 == 0 {
                        assert_same(&page, &model);
                    }
                }
                assert_same(&page, &model);
                compact(&mut page);
                assert!(is_compact(&page));
                assert_same(&page, &model);
                while !model.is_empty() {
                    remove_at(&mut page, 0);
                    model.pop_first();
                    assert_same(&page, &model);
                }
                assert_eq!(garbage(&page), 0);
            }
        }
    }
}

/// Updates of packed pages found no room for a longer value, and each of them
/// rewrote its page, entry by entry.
#[test]
fn a_full_leaf_takes_a_longer_value_by_moving_its_neighbours() {
    let mut random = Random(3);
    for keys in Keys::ALL {
        let mut page = stale(4096);
        init(&mut page, keys.leaf(), 0, 7, None, None);
        let mut model = Model::new();
        fill(&mut page, &mut model, keys, &mut random);
        for step in 0..200 {
            let at = random.below(model.len());
            let (key, (mut value, _)) = model
                .iter()
                .nth(at)
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .unwrap();
            value.push(step as u8);
            if value.len() > max_inline_value(4096, stored_len(4096, key.as_key())) {
                continue;
            }
            let free = free_space(&page, page.len());
            assert_eq!(
                replace_value_at(&mut page, at, &value, false),
                free > 0,
                "{keys:?}"
            );
            if free > 0 {
                model.insert(key, (value, false));
            }
            assert_same(&page, &model);
        }
    }
}

/// An index whose leaves are full had a whole leaf rewritten for each entry that was
/// taken out and put back elsewhere.
#[test]
fn a_full_leaf_takes_an_entry_in_the_place_of_another() {
    let mut random = Random(4);
    for keys in [Keys::Short, Keys::Long, Keys::Beyond] {
        let mut page = stale(4096);
        init(&mut page, keys.leaf(), 0, 7, None, None);
        let mut model = Model::new();
        while free_space(&page, page.len()) >= 200 {
            fill(&mut page, &mut model, keys, &mut random);
        }
        assert_eq!(garbage(&page), 0);
        for _ in 0..200 {
            let at = random.below(model.len());
            let (key, (value, overflow)) = model
                .iter()
                .nth(at)
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .unwrap();
            remove_at(&mut page, at);
            model.remove(&key);
            assert_same(&page, &model);
            assert_eq!(garbage(&page), 0, "{keys:?}");
            assert!(insert_at(&mut page, at, key.as_key(), &value, overflow));
            model.insert(key, (value, overflow));
            assert_same(&page, &model);
        }
    }
}

/// Fills a leaf with drawn entries until one does not fit, and returns that one.
fn fill(
    page: &mut [u8],
    model: &mut Model,
    keys: Keys,
    random: &mut Random,
) -> (OwnedKey, Vec<u8>, bool) {
    loop {
        let key = keys.draw(random, page.len());
        let (mut value, overflow) = draw_value(random, &key, page.len());
        if !overflow && random.below(2) == 0 {
            value.resize(
                max_inline_value(page.len(), stored_len(page.len(), key.as_key())),
                1,
            );
        }
        if !covers(page, key.as_key()) {
            continue;
        }
        if let Err(i) = search(page, key.as_key()) {
            if !insert_at(page, i, key.as_key(), &value, overflow) {
                return (key, value, overflow);
            }
            model.insert(key, (value, overflow));
        }
    }
}

#[test]
fn full_leaves_split_and_merge() {
    let mut random = Random(2);
    for page_size in [4096, 65536] {
        for keys in [Keys::WideInts, Keys::Long, Keys::Beyond] {
            for round in 0..60 {
                let (lower, upper) = (None, None);
                let mut page = stale(page_size);
                init(&mut page, keys.leaf(), 0, 7, lower, upper);
                set_birth(&mut page, 77);
                let mut model = Model::new();
                let (key, value, overflow) = fill(&mut page, &mut model, keys, &mut random);
                let index = search(&page, key.as_key()).unwrap_err();
                let at = [SplitPoint::Append, SplitPoint::Middle, SplitPoint::Prepend][round % 3];
                let (mut left, mut right) = (stale(page_size), stale(page_size));
                let split = split_leaf(
                    &page,
                    &mut left,
                    &mut right,
                    at,
                    index,
                    key.as_key(),
                    value.len(),
                )
                .unwrap();
                assert_eq!((check(&left), check(&right)), (Ok(()), Ok(())));
                assert_eq!((birth(&left), tree(&right)), (77, 7));
                assert!(keys == Keys::Beyond || key_len(&split.separator) <= max_key(page_size));
                let side = if split.right { &mut right } else { &mut left };
                assert!(keys == Keys::Beyond || covers(side, key.as_key()));
                assert_eq!(search(side, key.as_key()), Err(split.index));
                assert!(insert_at(side, split.index, key.as_key(), &value, overflow));
                model.insert(key, (value, overflow));
                let mut high = model.split_off(&split.separator);
                assert_same(&left, &model);
                assert_same(&right, &high);
                assert_eq!(upper_fence(&left), Some(split.separator.clone()));
                assert_eq!(lower_fence(&right), Some(split.separator.clone()));

                let mut merged = stale(page_size);
                if merge_leaves(&left, &right, &mut merged) {
                    panic!("an overfull leaf merged");
                }
                while used_bytes(&left) + used_bytes(&right) > page_size {
                    if count(&left) > 0 {
                        remove_at(&mut left, 0);
                        model.pop_first();
                    } else {
                        remove_at(&mut right, 0);
                        high.pop_first();
                    }
                }
                if merge_leaves(&left, &right, &mut merged) {
                    model.append(&mut high);
                    assert_same(&merged, &model);
                    assert_eq!((lower_fence(&merged), upper_fence(&merged)), (None, None));
                } else {
                    assert_ne!(keys, Keys::WideInts, "only lost prefixes may prevent it");
                }
            }
        }
    }
}

#[test]
fn append_splits_leave_the_left_page_full() {
    let mut page = stale(4096);
    init(&mut page, Kind::IntLeaf, 0, 1, None, None);
    let mut n = 0;
    while insert_at(&mut page, n, Key::Int(n as i64), &[1; 40], false) {
        n += 1;
    }
    let (mut left, mut right) = (stale(4096), stale(4096));
    let key = Key::Int(n as i64);
    let split = split_leaf(&page, &mut left, &mut right, SplitPoint::Append, n, key, 40).unwrap();
    assert_eq!(
        split,
        Split {
            separator: OwnedKey::Int(n as i64),
            right: true,
            index: 0
        }
    );
    assert_eq!((count(&left), count(&right)), (n, 0));
    let split = split_leaf(
        &page,
        &mut left,
        &mut right,
        SplitPoint::Prepend,
        0,
        Key::Int(-1),
        40,
    )
    .unwrap();
    assert_eq!(
        split,
        Split {
            separator: OwnedKey::Int(0),
            right: false,
            index: 0
        }
    );
    assert_eq!((count(&left), count(&right)), (0, n));
}
