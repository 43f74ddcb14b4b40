//! Damaged pages: whatever [`check`] lets through, no function may panic on.

use super::*;

/// Calls everything on a page that passed `check`.
fn exercise(page: &[u8]) {
    let n = count(page);
    let size = page.len();
    let _ = (
        birth(page),
        tree(page),
        level(page),
        used_bytes(page),
        free_space(page, size),
        is_compact(page),
    );
    let kind = kind(page).unwrap();
    if kind == Kind::Overflow {
        let _ = overflow_payload(page);
        return;
    }
    let mut probes: Vec<OwnedKey> = (0..n).map(|i| owned_key_at(page, i)).collect();
    probes.extend([lower_fence(page), upper_fence(page)].into_iter().flatten());
    let area = key_area(size, child_count(page));
    if kind.is_inner() {
        exercise_inner(page, area, &probes);
        return;
    }
    for (i, key) in probes.iter().enumerate() {
        let found = search(page, key.as_key());
        assert_eq!(found.is_ok(), i < n || page_has(page, key));
        assert!(!is_behind(page, key.as_key()) || found == Err(n));
    }
    for i in 0..n {
        let _ = value_at(page, i);
    }
    let mut copy = page.to_vec();
    compact(&mut copy);
    assert_eq!(check(&copy), Ok(()));
    let mut copy = page.to_vec();
    for (i, key) in probes.iter().take(n).enumerate() {
        if i % 3 == 0 {
            replace_value_at(&mut copy, i, &[1; 70], false);
        } else if i < count(&copy) && i % 3 == 1 {
            let value = value_at(page, 0).0;
            let (mut left, mut right) = (stale(size), stale(size));
            let _ = split_leaf(
                page,
                &mut left,
                &mut right,
                SplitPoint::Middle,
                i + 1,
                key.as_key(),
                value.len(),
            );
        }
    }
    assert_eq!(check(&copy), Ok(()));
    let mut merged = stale(size);
    merge_leaves(page, page, &mut merged);
    while count(&copy) > 0 {
        let last = count(&copy) - 1;
        remove_at(&mut copy, last / 2);
    }
    assert_eq!(check(&copy), Ok(()));
}

fn page_has(page: &[u8], key: &OwnedKey) -> bool {
    (0..count(page)).any(|i| owned_key_at(page, i) == *key)
}

fn exercise_inner(page: &[u8], area: usize, probes: &[OwnedKey]) {
    let (n, size) = (count(page), page.len());
    for key in probes {
        assert!(child_index(&page[..area], key.as_key()) <= n);
    }
    if n > 0 {
        for at in [SplitPoint::Append, SplitPoint::Middle, SplitPoint::Prepend] {
            let m = split_point(&page[..area], at, n);
            let (mut left, mut right) = (stale(size), stale(size));
            let (la, ra) = (key_area(size, m + 1), key_area(size, n - m));
            split_inner(&page[..area], m, &mut left[..la], &mut right[..ra]);
            assert_eq!((check(&left), check(&right)), (Ok(()), Ok(())));
        }
    }
    let mut copy = page.to_vec();
    for i in (0..n).rev() {
        let key = owned_key_at(&copy, i);
        remove_separator_at(&mut copy[..area], i);
        if i % 2 == 0 {
            insert_separator_at(&mut copy[..area], i, key.as_key());
        }
    }
    assert_eq!(check(&copy), Ok(()));
    let mut dst = stale(size);
    if n > 0 {
        let area_2 = key_area(size, 2 * (n + 1));
        merge_inner(
            &page[..area],
            &page[..area],
            probes[0].as_key(),
            &mut dst[..area_2],
        );
    }
}

fn sample(keys: Keys, inner: bool, page_size: usize, random: &mut Random) -> Vec<u8> {
    let mut page = stale(page_size);
    let bound =
        |key: &'static str| (keys.leaf() == Kind::BytesLeaf).then_some(Key::Bytes(key.as_bytes()));
    let (low, high) = (bound("ppp"), bound("pppq"));
    let kind = if inner { keys.inner() } else { keys.leaf() };
    let area = if inner {
        key_area(page_size, 1)
    } else {
        page_size
    };
    init(&mut page[..area], kind, u8::from(inner), 4, low, high);
    for _ in 0..random.below(200) {
        let mut key = keys.draw(random, page_size);
        if let OwnedKey::Bytes(bytes) = &mut key {
            bytes.splice(0..0, *b"ppp");
            bytes.truncate(max_key(page_size));
        }
        if !covers(&page, key.as_key()) {
            continue;
        }
        if inner {
            let area = key_area(page_size, child_count(&page));
            let i = child_index(&page[..area], key.as_key());
            if i == 0 || owned_key_at(&page, i - 1) != key {
                insert_separator_at(&mut page[..area], i, key.as_key());
            }
        } else if let Err(i) = search(&page, key.as_key()) {
            let (value, overflow) = draw_value(random, &key, page_size);
            insert_at(&mut page, i, key.as_key(), &value, overflow);
        } else if let Ok(i) = search(&page, key.as_key()) {
            remove_at(&mut page, i);
        }
    }
    assert_eq!(check(&page), Ok(()));
    page
}

#[test]
fn damaged_pages_are_refused_or_harmless() {
    let mut random = Random(9);
    let mut passed = 0;
    for round in 0..300 {
        let keys = Keys::ALL[round % 5];
        let page = sample(keys, round % 10 >= 5, 4096, &mut random);
        exercise(&page);
        for _ in 0..40 {
            let mut damaged = page.clone();
            let low = used_low(&page);
            for _ in 0..1 + random.below(3) {
                // Mostly the header and the slots, where the structure is.
                let at = if random.below(4) > 0 {
                    random.below(low)
                } else {
                    random.below(4096)
                };
                match random.below(3) {
                    0 => damaged[at] ^= 1 << random.below(8),
                    1 => damaged[at] = random.next() as u8,
                    _ => damaged[at] = damaged[random.below(low)],
                }
            }
            if check(&damaged).is_ok() {
                passed += 1;
                exercise(&damaged);
            }
        }
    }
    assert!(passed > 100, "the accessors were reached");
}

fn used_low(page: &[u8]) -> usize {
    page.first_chunk()
        .and_then(|header| regions(header, page.len()))
        .map_or(HEADER, |r| r.low)
}

#[test]
fn random_bytes_are_refused_or_harmless() {
    let mut random = Random(10);
    for round in 0..20_000 {
        let mut page: Vec<u8> = std::iter::repeat_with(|| random.next().to_le_bytes())
            .take(512)
            .flatten()
            .collect();
        page[0] = 1 + (round % 5) as u8;
        page[1] = u8::from(round % 5 == 1 || round % 5 == 3);
        page[2..8].fill(0);
        page[20..22].copy_from_slice(&256_u16.to_le_bytes());
        page[22..28].fill(0);
        page[2] = random.below(8) as u8;
        if check(&page).is_ok() {
            exercise(&page);
        }
    }
    assert!(check(&[]).is_err() && check(&[1; 31]).is_err() && check(&[0; 5000]).is_err());
}
