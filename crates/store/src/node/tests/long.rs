//! The page functions as the tests call them, for whole keys.
//!
//! The rest of a long key, of at most [`REST_MAX`] bytes, stands in its reference
//! itself, behind its length, so that no other page is needed to compare it.

use super::super as node;
use super::*;

/// The longest rest.
pub(crate) const REST_MAX: usize = OVERFLOW_REF - 1;

/// How a leaf was split, with the whole separator.
#[derive(Debug, PartialEq)]
pub(crate) struct Split {
    pub separator: OwnedKey,
    pub right: bool,
    pub index: usize,
}

fn to_reference(rest: &[u8]) -> RestRef {
    let mut reference = [0; OVERFLOW_REF];
    reference[0] = rest.len() as u8;
    reference[1..=rest.len()].copy_from_slice(rest);
    reference
}

fn to_rest(reference: &RestRef) -> &[u8] {
    // Damaged pages have any length there.
    &reference[1..=usize::from(reference[0]).min(REST_MAX)]
}

/// The key as a page stores it.
fn stored(page_size: usize, key: Key<'_>) -> OwnedStored {
    let (start, rest) = split_key(page_size, key);
    OwnedStored {
        key: start.into(),
        rest: rest.map(to_reference),
    }
}

fn whole(stored: Stored<'_>) -> OwnedKey {
    let mut key = OwnedKey::from(stored.key);
    if let (OwnedKey::Bytes(bytes), Some(rest)) = (&mut key, stored.rest) {
        bytes.extend_from_slice(to_rest(rest));
    }
    key
}

/// The size of the page whose key area this is.
fn page_size(keys: &[u8]) -> usize {
    (keys.len() + CHILD * child_count(keys)).next_power_of_two()
}

/// Asks until all rests are known.
fn settle<R>(page: &[u8], key: Key<'_>, mut ask: impl FnMut(&Rests) -> Result<R, Unknown>) -> R {
    let sought = split_key(page_size(page), key).1.unwrap_or(&[]);
    let mut rests = Rests::default();
    loop {
        match ask(&rests) {
            Ok(answer) => return answer,
            Err(unknown) => rests.note(unknown, to_rest(&unknown.0).cmp(sought)),
        }
    }
}

pub(crate) fn search(page: &[u8], key: Key<'_>) -> Result<usize, usize> {
    settle(page, key, |rests| find(page, key, rests))
}

pub(crate) fn child_index(keys: &[u8], key: Key<'_>) -> usize {
    settle(keys, key, |rests| node::child_index(keys, key, rests))
}

pub(crate) fn insert_at(
    page: &mut [u8],
    i: usize,
    key: Key<'_>,
    value: &[u8],
    overflow: bool,
) -> bool {
    let key = stored(page.len(), key);
    node::insert_at(page, i, key.as_stored(), value, overflow)
}

pub(crate) fn insert_separator_at(keys: &mut [u8], i: usize, separator: Key<'_>) -> bool {
    let separator = stored(page_size(keys), separator);
    node::insert_separator_at(keys, i, separator.as_stored())
}

pub(crate) fn owned_key_at(page: &[u8], i: usize) -> OwnedKey {
    whole(stored_key_at(page, i).as_stored())
}

pub(crate) fn lower_fence(page: &[u8]) -> Option<OwnedKey> {
    node::lower_fence(page).map(whole)
}

pub(crate) fn upper_fence(page: &[u8]) -> Option<OwnedKey> {
    node::upper_fence(page).map(whole)
}

pub(crate) fn init(
    page: &mut [u8],
    kind: Kind,
    level: u8,
    tree: u32,
    lower: Option<Key<'_>>,
    upper: Option<Key<'_>>,
) {
    let page_size = page.len().next_power_of_two();
    let [lower, upper] = [lower, upper].map(|fence| fence.map(|key| stored(page_size, key)));
    let lower = lower.as_ref().map(OwnedStored::as_stored);
    let upper = upper.as_ref().map(OwnedStored::as_stored);
    node::init(page, kind, level, tree, lower, upper);
}

pub(crate) fn split_leaf(
    src: &[u8],
    left: &mut [u8],
    right: &mut [u8],
    at: SplitPoint,
    index: usize,
    key: Key<'_>,
    value_len: usize,
) -> Option<Split> {
    let key = stored(src.len(), key);
    let key = key.as_stored();
    let mut load = |rest: &RestRef| Ok::<_, ()>(to_rest(rest).to_vec());
    let split = node::split_leaf(src, left, right, at, index, key, value_len, &mut load);
    let mut split = split.ok()??;
    if let Some(rest) = split.rest {
        let rest = to_reference(&rest);
        join_fences(left, right, &rest);
        split.separator.rest = Some(rest);
    }
    Some(Split {
        separator: whole(split.separator.as_stored()),
        right: split.right,
        index: split.index,
    })
}

pub(crate) fn split_inner(src: &[u8], m: usize, left: &mut [u8], right: &mut [u8]) -> OwnedKey {
    whole(node::split_inner(src, m, left, right).as_stored())
}

pub(crate) fn merge_inner(left: &[u8], right: &[u8], separator: Key<'_>, dst: &mut [u8]) -> bool {
    let separator = stored(page_size(left), separator);
    node::merge_inner(left, right, separator.as_stored(), dst)
}

/// As `docs/file-format.md` has it.
#[test]
fn documented_bytes() {
    let (start, rest) = ([b'a'; 512], [7; OVERFLOW_REF]);
    let fence = Stored {
        key: Key::Bytes(&start),
        rest: Some(&rest),
    };
    let mut page = stale(4096);
    node::init(&mut page, Kind::BytesLeaf, 0, 1, None, Some(fence));
    assert_eq!(page[20..28], [0, 1, 0, 0x80, 0, 0, 0x20, 0x82]);
    assert_eq!(page[4096 - 544..], [&start[..], &rest].concat());

    let rest = [9; OVERFLOW_REF];
    let key = Stored {
        key: Key::Bytes(&start),
        rest: Some(&rest),
    };
    let mut page = stale(4096);
    node::init(&mut page, Kind::BytesLeaf, 0, 1, None, None);
    assert!(node::insert_at(&mut page, 0, key, b"v", false));
    assert_eq!(page[20..28], [0, 1, 0, 0x80, 0, 0, 0, 0]);
    assert_eq!(
        page[32..42],
        [b'a', b'a', b'a', b'a', 0x1d, 2, 0, 0x82, 1, 0]
    );
    assert_eq!(
        page[4096 - 541..],
        [&start[4..], &rest, b"v".as_slice()].concat()
    );
    assert_eq!(check(&page), Ok(()));
}
