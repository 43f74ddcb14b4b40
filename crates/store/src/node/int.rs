//! Nodes of integer keys.
//!
//! After the header: lower fence i64, upper fence i64 (flags bit 0 and bit 1 say
//! which exist), then the slots. A leaf's slot is `key i64 | distance u16 | length
//! u16`, key and value position in one cache line; an inner node's is the separator.

use super::{
    AT_COUNT, AT_FLAGS, AT_GARBAGE, AT_HEAP, CHILD, HEADER, OVERFLOW_BIT, count, garbage, get16,
    get64, heap, put16,
};

/// Where the slots begin.
pub(super) const BASE: usize = HEADER + 16;
/// Bytes of a leaf's slot.
pub(super) const LEAF: usize = 12;
/// Bytes of an inner node's slot.
pub(super) const INNER: usize = 8;

const HAS_LOWER: usize = 1;
const HAS_UPPER: usize = 2;
pub(super) const FLAGS_ALL: usize = HAS_LOWER | HAS_UPPER;

const _: () = assert!(BASE == 48);

pub(super) fn put_fences(page: &mut [u8], lower: Option<i64>, upper: Option<i64>) {
    let flags =
        if lower.is_some() { HAS_LOWER } else { 0 } | if upper.is_some() { HAS_UPPER } else { 0 };
    put16(page, AT_FLAGS, flags);
    page[HEADER..HEADER + 8].copy_from_slice(&lower.unwrap_or(0).to_le_bytes());
    page[HEADER + 8..BASE].copy_from_slice(&upper.unwrap_or(0).to_le_bytes());
}

/// Replaces the upper fence.
pub(super) fn set_upper(page: &mut [u8], upper: i64) {
    let (lower, _) = fences(page);
    put_fences(page, lower, Some(upper));
}

pub(super) fn fences(page: &[u8]) -> (Option<i64>, Option<i64>) {
    let flags = get16(page, AT_FLAGS);
    (
        (flags & HAS_LOWER != 0).then(|| get64(page, HEADER) as i64),
        (flags & HAS_UPPER != 0).then(|| get64(page, HEADER + 8) as i64),
    )
}

#[inline]
pub(super) fn covers(page: &[u8], key: i64) -> bool {
    let (lower, upper) = fences(page);
    lower.is_none_or(|lower| lower <= key) && upper.is_none_or(|upper| key < upper)
}

#[inline]
pub(super) fn leaf_slots(page: &[u8]) -> &[[u8; LEAF]] {
    page[BASE..BASE + LEAF * count(page)].as_chunks().0
}

#[inline]
pub(super) fn separators(keys: &[u8]) -> &[[u8; INNER]] {
    keys[BASE..BASE + INNER * count(keys)].as_chunks().0
}

#[inline]
pub(super) fn slot_key(slot: &[u8; LEAF]) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = *slot;
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Distance, length and overflow flag of a leaf's slot.
#[inline]
pub(super) fn slot_value(slot: &[u8; LEAF]) -> (usize, usize, bool) {
    let [.., d0, d1, l0, l1] = *slot;
    let len = u16::from_le_bytes([l0, l1]);
    (
        usize::from(u16::from_le_bytes([d0, d1])),
        usize::from(len & !OVERFLOW_BIT),
        len & OVERFLOW_BIT != 0,
    )
}

#[inline]
pub(super) fn make_slot(key: i64, distance: usize, len: usize, overflow: bool) -> [u8; LEAF] {
    let [a, b, c, d, e, f, g, h] = key.to_le_bytes();
    let [d0, d1] = (distance as u16).to_le_bytes();
    let [l0, l1] = (len as u16 | if overflow { OVERFLOW_BIT } else { 0 }).to_le_bytes();
    [a, b, c, d, e, f, g, h, d0, d1, l0, l1]
}

/// Keys are distinct integers, so key `first + g` can lie at `g` or before it:
/// dense pages are answered by one comparison, others by a search below `g`.
#[inline]
pub(super) fn search(page: &[u8], key: i64) -> Result<usize, usize> {
    let slots = leaf_slots(page);
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else {
        return Err(0);
    };
    let first = slot_key(first);
    if key <= first {
        return if key == first { Ok(0) } else { Err(0) };
    }
    let guess = key.wrapping_sub(first) as u64;
    let below = match slots.get(guess as usize) {
        Some(slot) if slot_key(slot) == key => return Ok(guess as usize),
        Some(_) => &slots[..guess as usize],
        None if key > slot_key(last) => return Err(slots.len()),
        None => slots,
    };
    below.binary_search_by(|slot| slot_key(slot).cmp(&key))
}

/// How many separators are not above the key. Rowids are mostly dense, so that the
/// fences say about where: the guess is checked, and a search on the side where the
/// key lies makes up for a wrong one.
#[inline]
pub(super) fn child_index(keys: &[u8], key: i64) -> usize {
    let separators = separators(keys);
    let not_above = |separator: &[u8; INNER]| i64::from_le_bytes(*separator) <= key;
    let guess = guess_child(keys, separators.len(), key);
    match separators.get(guess) {
        Some(next) if not_above(next) => {
            guess + 1 + separators[guess + 1..].partition_point(not_above)
        }
        _ => {
            let below = &separators[..guess];
            match below.last() {
                Some(last) if !not_above(last) => below[..guess - 1].partition_point(not_above),
                _ => guess,
            }
        }
    }
}

/// The child where the key would lie if the keys between the fences were spread
/// evenly over the children; one in the middle if there is a fence missing.
#[inline]
fn guess_child(keys: &[u8], separators: usize, key: i64) -> usize {
    let (Some(lower), Some(upper)) = fences(keys) else {
        return separators / 2;
    };
    let span = upper.wrapping_sub(lower) as u64 as f64;
    let above = key.wrapping_sub(lower) as u64 as f64;
    let guess = above / span * (separators + 1) as f64;
    (guess as usize).min(separators)
}

/// Where in its leaf the slot of `key` begins if the leaf holds all integers from
/// its lower fence on, which separator `index - 1` of its parent is.
#[inline]
pub(super) fn likely_slot(parent: &[u8], index: usize, key: i64) -> Option<usize> {
    let lower = separators(parent).get(index.checked_sub(1)?)?;
    let above = key.wrapping_sub(i64::from_le_bytes(*lower)) as u64;
    let offset = usize::try_from(above).ok()?.checked_mul(LEAF)?;
    offset.checked_add(BASE)
}

#[inline]
pub(super) fn leaf_key(page: &[u8], i: usize) -> i64 {
    slot_key(&leaf_slots(page)[i])
}

#[inline]
pub(super) fn separator(keys: &[u8], i: usize) -> i64 {
    i64::from_le_bytes(separators(keys)[i])
}

#[inline]
pub(super) fn value_at(page: &[u8], i: usize) -> (&[u8], bool) {
    let (distance, len, overflow) = slot_value(&leaf_slots(page)[i]);
    let start = page.len() - distance;
    (&page[start..start + len], overflow)
}

/// Opens a gap for slot `i` of `S` bytes and counts it.
fn open_slot<const S: usize>(page: &mut [u8], i: usize) {
    let n = count(page);
    if i < n {
        page.copy_within(BASE + S * i..BASE + S * n, BASE + S * (i + 1));
    }
    put16(page, AT_COUNT, n + 1);
}

fn close_slot<const S: usize>(page: &mut [u8], i: usize) {
    let n = count(page);
    page.copy_within(BASE + S * (i + 1)..BASE + S * n, BASE + S * i);
    put16(page, AT_COUNT, n - 1);
}

#[inline]
pub(super) fn put_slot(page: &mut [u8], i: usize, slot: [u8; LEAF]) {
    page[BASE + LEAF * i..BASE + LEAF * (i + 1)].copy_from_slice(&slot);
}

/// Says where the value of a slot lies, leaving its key.
#[inline]
pub(super) fn set_value(page: &mut [u8], i: usize, distance: usize, len: usize, overflow: bool) {
    let slot = make_slot(0, distance, len, overflow);
    let at = BASE + LEAF * i + 8;
    page[at..at + 4].copy_from_slice(&slot[8..]);
}

/// Puts a value into the heap, which has room, and returns its distance (0 for an
/// empty one, so that the heap may shrink below it).
#[inline]
fn push_value(page: &mut [u8], value: &[u8]) -> usize {
    if value.is_empty() {
        return 0;
    }
    let distance = heap(page) + value.len();
    put16(page, AT_HEAP, distance);
    let start = page.len() - distance;
    page[start..start + value.len()].copy_from_slice(value);
    distance
}

#[inline]
fn gap(page: &[u8]) -> usize {
    page.len() - heap(page) - (BASE + LEAF * count(page))
}

/// Rewrites the heap without its garbage.
#[cold]
pub(super) fn compact(page: &mut [u8]) {
    let len = page.len();
    let old = page[len - heap(page)..].to_vec();
    put16(page, AT_HEAP, 0);
    put16(page, AT_GARBAGE, 0);
    for i in 0..count(page) {
        let slot = leaf_slots(page)[i];
        let (distance, len, overflow) = slot_value(&slot);
        let start = old.len() - distance;
        let distance = push_value(page, &old[start..start + len]);
        put_slot(page, i, make_slot(slot_key(&slot), distance, len, overflow));
    }
}

#[inline]
pub(super) fn insert_at(page: &mut [u8], i: usize, key: i64, value: &[u8], overflow: bool) -> bool {
    let need = insert_takes(value.len());
    if free(page) < need {
        return false;
    }
    if gap(page) < need {
        compact(page);
    }
    let distance = push_value(page, value);
    open_slot::<LEAF>(page, i);
    put_slot(page, i, make_slot(key, distance, value.len(), overflow));
    true
}

/// Bytes that inserting an entry with a value of `len` bytes takes.
#[inline]
pub(super) fn insert_takes(len: usize) -> usize {
    LEAF + len
}

/// Bytes that entries may take, once the garbage is collected.
#[inline]
fn free(page: &[u8]) -> usize {
    gap(page) + garbage(page)
}

/// Bytes of the entry at `i`, slot and value.
pub(super) fn entry_bytes(page: &[u8], i: usize) -> usize {
    LEAF + slot_value(&leaf_slots(page)[i]).1
}

/// Counts `len` heap bytes at `distance` as dead, or takes them back if they are the newest.
fn discard(page: &mut [u8], distance: usize, len: usize) {
    if distance == heap(page) {
        put16(page, AT_HEAP, distance - len);
    } else {
        let dead = garbage(page) + len;
        put16(page, AT_GARBAGE, dead);
    }
}

/// Makes room for `by` more bytes in front of the value at `distance` by moving all
/// that lies before it, so that a full page takes a longer value without being
/// rewritten. The gap must be that large. Returns where the value begins now.
fn widen(page: &mut [u8], distance: usize, by: usize) -> usize {
    let (end, heap) = (page.len(), heap(page));
    page.copy_within(end - heap..end - distance, end - heap - by);
    put16(page, AT_HEAP, heap + by);
    let slots = BASE..BASE + LEAF * count(page);
    for slot in page[slots].as_chunks_mut::<LEAF>().0 {
        let [.., d0, d1, _, _] = slot;
        let was = u16::from_le_bytes([*d0, *d1]);
        let shift = if usize::from(was) > distance {
            by as u16
        } else {
            0
        };
        [*d0, *d1] = was.wrapping_add(shift).to_le_bytes();
    }
    distance + by
}

pub(super) fn replace_value_at(page: &mut [u8], i: usize, value: &[u8], overflow: bool) -> bool {
    let slot = leaf_slots(page)[i];
    let (distance, len, _) = slot_value(&slot);
    let key = slot_key(&slot);
    if value.len() <= len {
        let start = page.len() - distance;
        page[start..start + value.len()].copy_from_slice(value);
        let dead = garbage(page) + len - value.len();
        put16(page, AT_GARBAGE, dead);
        let distance = if value.is_empty() { 0 } else { distance };
        put_slot(page, i, make_slot(key, distance, value.len(), overflow));
        return true;
    }
    if free(page) + len < value.len() {
        return false;
    }
    let gap = gap(page);
    if gap < value.len() && gap + len >= value.len() {
        let distance = widen(page, distance, value.len() - len);
        let start = page.len() - distance;
        page[start..start + value.len()].copy_from_slice(value);
        put_slot(page, i, make_slot(key, distance, value.len(), overflow));
        return true;
    }
    discard(page, distance, len);
    if self::gap(page) < value.len() {
        put_slot(page, i, make_slot(key, 0, 0, false));
        compact(page);
    }
    let distance = push_value(page, value);
    put_slot(page, i, make_slot(key, distance, value.len(), overflow));
    true
}

pub(super) fn remove_at(page: &mut [u8], i: usize) {
    let (distance, len, _) = slot_value(&leaf_slots(page)[i]);
    discard(page, distance, len);
    close_slot::<LEAF>(page, i);
    if count(page) == 0 {
        put16(page, AT_HEAP, 0);
        put16(page, AT_GARBAGE, 0);
    }
}

/// See [`super::remove_run`]. The slots that stay are moved once, however many go.
pub(super) fn remove_run(page: &mut [u8], keys: &[i64], removed: &mut Vec<i64>) -> usize {
    let n = count(page);
    let (mut taken, mut dead) = (0, 0);
    // Slots before `to` are done, those from `from` on are yet to be looked at.
    let (mut to, mut from) = (0, 0);
    let (mut lower, upper) = fences(page);
    for &key in keys {
        if lower.is_some_and(|lower| key < lower) || upper.is_some_and(|upper| upper <= key) {
            break;
        }
        let left = &leaf_slots(page)[from..];
        let found = match left.first() {
            Some(slot) if slot_key(slot) == key => Ok(0),
            _ => left.binary_search_by(|slot| slot_key(slot).cmp(&key)),
        };
        let before = match found {
            Ok(index) | Err(index) => index,
        };
        if found.is_ok() {
            let (_, len, overflow) = slot_value(&left[before]);
            if overflow {
                break;
            }
            dead += len;
            removed.push(key);
        }
        move_slots(page, from..from + before, to);
        to += before;
        from += before + usize::from(found.is_ok());
        taken += 1;
        // Only what lies above it is looked at from here on.
        lower = key.checked_add(1);
        if lower.is_none() {
            break;
        }
    }
    move_slots(page, from..n, to);
    let left = to + n - from;
    put16(page, AT_COUNT, left);
    let (heap, dead) = match left {
        0 => (0, 0),
        _ => (heap(page), garbage(page) + dead),
    };
    put16(page, AT_HEAP, heap);
    put16(page, AT_GARBAGE, dead);
    taken
}

/// Moves slots down to `to`.
fn move_slots(page: &mut [u8], slots: std::ops::Range<usize>, to: usize) {
    if slots.start != to && !slots.is_empty() {
        let bytes = BASE + LEAF * slots.start..BASE + LEAF * slots.end;
        page.copy_within(bytes, BASE + LEAF * to);
    }
}

/// Appends a separator to a key area that already has its final length.
pub(super) fn push_separator(keys: &mut [u8], separator: i64) -> bool {
    let n = count(keys);
    let at = BASE + INNER * n;
    let fits = at + INNER <= keys.len();
    if fits {
        keys[at..at + INNER].copy_from_slice(&separator.to_le_bytes());
        put16(keys, AT_COUNT, n + 1);
    }
    fits
}

pub(super) fn insert_separator_at(keys: &mut [u8], i: usize, separator: i64) -> bool {
    if BASE + INNER * (count(keys) + 1) + CHILD > keys.len() {
        return false;
    }
    open_slot::<INNER>(keys, i);
    keys[BASE + INNER * i..BASE + INNER * (i + 1)].copy_from_slice(&separator.to_le_bytes());
    let end = super::heap_end(keys).min(keys.len() - CHILD);
    put16(keys, super::AT_HEAP_END, end / CHILD);
    true
}

pub(super) fn remove_separator_at(keys: &mut [u8], i: usize) {
    close_slot::<INNER>(keys, i);
}
