//! Nodes of byte-string keys.
//!
//! The heap begins, at its end, with the lower fence and below it the upper one
//! (empty: unbounded). Their common prefix, `lower[..prefix]`, is missing from all
//! keys. A slot is `head [u8; 4] | distance u16 | remainder length u16`, in leaves
//! followed by the value's length u16: the head is the start of the key's remainder,
//! zero-padded, compared as a big-endian number. The heap holds what the remainder
//! has beyond four bytes, and the value right behind it.
//!
//! Of a long key (see [`super::key`]) prefix, head and remainder are those of its
//! start, and the reference to its rest stands between remainder and value. A long
//! fence is its start with the reference behind it. Pages that have neither are told
//! by one bit, and searched without a thought of them.

use std::cmp::Ordering;

pub(super) use super::slot::{Cell, Slot};
use super::{
    AT_COUNT, AT_GARBAGE, AT_HEAP, AT_HEAP_END, AT_LOWER_LEN, AT_PREFIX, AT_UPPER_LEN, CHILD,
    HEADER, LONG_BIT, Rests, Unknown, common_prefix, count, garbage, get16, has_long, heap,
    heap_end, long, put16,
};

/// Bytes of a leaf's slot.
pub(super) const LEAF: usize = 10;
/// Bytes of an inner node's slot.
pub(super) const INNER: usize = 8;

/// Bytes of a key's remainder in its slot.
pub(super) const HEAD: usize = 4;

/// Whether so short a gap is likely to be gone soon: then the hole of what is removed is
/// closed at once, since the next entry that finds no gap would have the heap rewritten.
#[inline]
fn is_scarce(gap: usize) -> bool {
    gap < 256
}

#[inline]
fn head_of(remainder: &[u8]) -> [u8; HEAD] {
    match remainder.first_chunk() {
        Some(head) => *head,
        None => {
            let mut head = [0; HEAD];
            head[..remainder.len()].copy_from_slice(remainder);
            head
        }
    }
}

#[inline]
pub(super) fn tail_of(remainder: &[u8]) -> &[u8] {
    remainder.get(HEAD..).unwrap_or(&[])
}

#[inline]
fn slot_head<const S: usize>(raw: &[u8; S]) -> u32 {
    u32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]])
}

#[inline]
pub(super) fn slots<const S: usize>(page: &[u8]) -> &[[u8; S]] {
    page[HEADER..HEADER + S * count(page)].as_chunks().0
}

#[inline]
pub(super) fn slot<const S: usize>(page: &[u8], i: usize) -> Slot {
    Slot::decode(&slots::<S>(page)[i])
}

#[inline]
fn put_slot<const S: usize>(page: &mut [u8], i: usize, slot: Slot) {
    page[HEADER + S * i..HEADER + S * (i + 1)].copy_from_slice(&slot.encode::<S>());
}

/// Writes the fences into the empty heap of a fresh page.
pub(super) fn put_fences(page: &mut [u8], lower: Cell<'_>, upper: Cell<'_>) {
    let end = heap_end(page);
    let mut used = 0;
    for (fence, at) in [(lower, AT_LOWER_LEN), (upper, AT_UPPER_LEN)] {
        let rest = fence.rest.map_or(&[][..], |rest| rest);
        let start = end - used - fence.start.len() - rest.len();
        let middle = start + fence.start.len();
        page[start..middle].copy_from_slice(fence.start);
        page[middle..end - used].copy_from_slice(rest);
        let len = fence.start.len() + rest.len();
        used += len;
        put16(page, at, len | if rest.is_empty() { 0 } else { LONG_BIT });
    }
    let any_long = lower.rest.is_some() || upper.rest.is_some();
    let prefix = common_prefix(lower.start, upper.start);
    put16(
        page,
        AT_PREFIX,
        prefix | if any_long { LONG_BIT } else { 0 },
    );
    put16(page, AT_HEAP, used);
}

#[inline]
pub(super) fn lower_len(page: &[u8]) -> usize {
    get16(page, AT_LOWER_LEN) & !LONG_BIT
}

#[inline]
pub(super) fn upper_len(page: &[u8]) -> usize {
    get16(page, AT_UPPER_LEN) & !LONG_BIT
}

/// Length of the common prefix.
#[inline]
pub(super) fn prefix_len(page: &[u8]) -> usize {
    get16(page, AT_PREFIX) & !LONG_BIT
}

#[inline]
pub(super) fn lower(page: &[u8]) -> Cell<'_> {
    let end = heap_end(page);
    let long = get16(page, AT_LOWER_LEN) & LONG_BIT != 0;
    Cell::of(&page[end - lower_len(page)..end], long)
}

#[inline]
pub(super) fn upper(page: &[u8]) -> Cell<'_> {
    let end = heap_end(page) - lower_len(page);
    let long = get16(page, AT_UPPER_LEN) & LONG_BIT != 0;
    Cell::of(&page[end - upper_len(page)..end], long)
}

#[inline]
pub(super) fn fence_bytes(page: &[u8]) -> usize {
    lower_len(page) + upper_len(page)
}

#[inline]
pub(super) fn prefix(page: &[u8]) -> &[u8] {
    let start = heap_end(page) - lower_len(page);
    &page[start..start + prefix_len(page)]
}

/// Compares byte strings as `Ord` does, without a look beyond their ends. The fences end
/// where the page does, and `memcmp` loads whole vectors under a mask: where the page behind
/// is not mapped that takes a processor as long as a line from memory.
#[inline]
fn compare_words(left: &[u8], right: &[u8]) -> Ordering {
    let common = left.len().min(right.len());
    let (a, b) = (&left[..common], &right[..common]);
    let order = match common {
        8.. => compare_by::<8>(a, b),
        4.. => compare_by::<4>(a, b),
        _ => a.iter().cmp(b),
    };
    order.then(left.len().cmp(&right.len()))
}

/// The same of as many bytes, `N` at least, by so many at a time: the last ones overlap those
/// before, which are the same by then.
#[inline]
fn compare_by<const N: usize>(a: &[u8], b: &[u8]) -> Ordering {
    let (words, _) = a.as_chunks::<N>();
    let (others, _) = b.as_chunks::<N>();
    let ends = a.last_chunk::<N>().zip(b.last_chunk::<N>());
    let pairs = words.iter().zip(others).chain(ends);
    let other = pairs.into_iter().find(|(x, y)| x != y);
    other.map_or(Ordering::Equal, |(x, y)| x.cmp(y))
}

/// Whether the key lies within the fences, as far as the page alone tells.
pub(super) fn covers(page: &[u8], key: &[u8]) -> bool {
    let (lower, upper) = (lower(page), upper(page));
    if !has_long(page) {
        return compare_words(lower.start, key).is_le()
            && (upper.start.is_empty() || compare_words(key, upper.start).is_lt());
    }
    let above = match lower.rest {
        None => lower.start <= key,
        Some(_) => lower.start < key && !key.starts_with(lower.start),
    };
    let below = match upper.rest {
        None => upper.start.is_empty() || key < upper.start,
        Some(_) => key <= upper.start,
    };
    above && below
}

/// The key without the page's prefix, or on which side of all keys it lies.
#[inline]
pub(super) fn strip<'a>(page: &[u8], key: &'a [u8]) -> Result<&'a [u8], Ordering> {
    let prefix = prefix(page);
    match key.split_at_checked(prefix.len()) {
        Some((start, remainder)) if compare_words(start, prefix).is_eq() => Ok(remainder),
        _ => Err(compare_words(key, prefix)),
    }
}

/// The first eight bytes as a big-endian number, missing ones as zeros.
#[inline]
fn zero_padded(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    let len = bytes.len().min(8);
    number[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(number)
}

/// [`zero_padded`] of `page[start..start + len]`, by one load where the page goes on.
#[inline]
fn number_at(page: &[u8], start: usize, len: usize) -> u64 {
    let missing = u64::MAX.checked_shr(8 * len as u32).unwrap_or(0);
    match page[start..].first_chunk() {
        Some(first) => u64::from_be_bytes(*first) & !missing,
        None => zero_padded(&page[start..start + len]),
    }
}

/// A key to compare with those that share its prefix and head: its length without the
/// prefix, and what follows the head, of which the first eight bytes mostly decide.
#[derive(Clone, Copy)]
pub(super) struct Tail<'a> {
    number: u64,
    remainder: usize,
    tail: &'a [u8],
}

impl<'a> Tail<'a> {
    #[inline]
    fn of(remainder: &'a [u8]) -> Tail<'a> {
        let tail = tail_of(remainder);
        Tail {
            number: zero_padded(tail),
            remainder: remainder.len(),
            tail,
        }
    }

    #[inline]
    pub fn stored(page: &'a [u8], heap_end: usize, slot: &Slot) -> Tail<'a> {
        let (start, len) = (heap_end - slot.distance, slot.tail());
        Tail {
            number: number_at(page, start, len),
            remainder: slot.remainder,
            tail: &page[start..start + len],
        }
    }

    /// Without branches that depend on which is less: binary searches mispredict them.
    #[inline]
    pub fn less(&self, other: &Tail<'_>) -> bool {
        if self.number == other.number && self.tail.len().min(other.tail.len()) > 8 {
            return self.tail < other.tail;
        }
        // Equal up to zeros: the shorter one is less.
        (self.number < other.number)
            | ((self.number == other.number) & (self.remainder < other.remainder))
    }
}

/// The position of the key, or where it would go.
#[inline]
pub(super) fn find<const S: usize>(
    page: &[u8],
    key: &[u8],
    rests: &Rests,
) -> Result<Result<usize, usize>, Unknown> {
    if has_long(page) {
        return long::find_among_long::<S>(page, key, rests);
    }
    Ok(search::<S>(page, key))
}

/// Only for pages without long keys.
#[inline]
fn search<const S: usize>(page: &[u8], key: &[u8]) -> Result<usize, usize> {
    let slots = slots::<S>(page);
    let remainder = match strip(page, key) {
        Ok(remainder) => remainder,
        Err(Ordering::Less) => return Err(0),
        Err(_) => return Err(slots.len()),
    };
    let head = u32::from_be_bytes(head_of(remainder));
    let low = slots.partition_point(|slot| slot_head(slot) < head);
    // Usually no key, or just one, shares the head.
    let equal = |i: usize| slots.get(i).is_some_and(|slot| slot_head(slot) == head);
    if !equal(low) {
        return Err(low);
    }
    let run = if equal(low + 1) {
        slots[low..].partition_point(|slot| slot_head(slot) == head)
    } else {
        1
    };
    let run = &slots[low..low + run];
    let heap_end = heap_end(page);
    let sought = Tail::of(remainder);
    let less = |slot: &[u8; S]| Tail::stored(page, heap_end, &Slot::decode(slot)).less(&sought);
    // Ascending inserts of keys that share their head end here.
    if low + run.len() == slots.len() && run.last().is_some_and(less) {
        return Err(slots.len());
    }
    let i = run.partition_point(less);
    match run.get(i) {
        Some(slot) if !sought.less(&Tail::stored(page, heap_end, &Slot::decode(slot))) => {
            Ok(low + i)
        }
        _ => Err(low + i),
    }
}

/// Whether the key lies behind all of a leaf's, which ascending ones do; false also where
/// only the rest of a long key could tell.
#[inline]
pub(super) fn is_behind(page: &[u8], key: &[u8]) -> bool {
    let (false, Some(last)) = (has_long(page), slots::<LEAF>(page).last()) else {
        return false;
    };
    let Ok(remainder) = strip(page, key) else {
        return false;
    };
    let head = u32::from_be_bytes(head_of(remainder));
    match slot_head(last).cmp(&head) {
        Ordering::Equal => {
            let last = Tail::stored(page, heap_end(page), &Slot::decode(last));
            last.less(&Tail::of(remainder))
        }
        order => order.is_lt(),
    }
}

/// Compares the key at `i`, of a long one its start, with `key`.
pub(super) fn compare_at<const S: usize>(page: &[u8], i: usize, key: &[u8]) -> Ordering {
    match strip(page, key) {
        Err(side) => side.reverse(),
        Ok(remainder) => {
            let slot = slot::<S>(page, i);
            let (stored, sought) = (
                Tail::stored(page, heap_end(page), &slot),
                Tail::of(remainder),
            );
            slot.head
                .cmp(&head_of(remainder))
                .then_with(|| sought.less(&stored).cmp(&stored.less(&sought)))
        }
    }
}

#[inline]
pub(super) fn start_into<const S: usize>(page: &[u8], i: usize, out: &mut Vec<u8>) {
    let slot = slot::<S>(page, i);
    let start = heap_end(page) - slot.distance;
    out.extend_from_slice(prefix(page));
    out.extend_from_slice(&slot.head[..slot.remainder.min(HEAD)]);
    out.extend_from_slice(&page[start..start + slot.tail()]);
}

#[inline]
pub(super) fn value_at(page: &[u8], i: usize) -> (&[u8], bool) {
    let slot = slot::<LEAF>(page, i);
    let start = page.len() - slot.distance + slot.key();
    (&page[start..start + slot.value], slot.overflow)
}

/// Bytes between the slots and the heap.
#[inline]
fn gap<const S: usize>(page: &[u8]) -> usize {
    heap_end(page) - heap(page) - (HEADER + S * count(page))
}

/// Grows the heap by `len` bytes, for which there is room; returns where they start
/// and their distance (0 for nothing, so that the heap may shrink below it).
#[inline]
fn push(page: &mut [u8], len: usize) -> (usize, usize) {
    if len == 0 {
        return (heap_end(page), 0);
    }
    let distance = heap(page) + len;
    put16(page, AT_HEAP, distance);
    (heap_end(page) - distance, distance)
}

/// Rewrites the heap without its garbage so that it ends at `end`, a multiple of 16.
#[cold]
pub(super) fn compact<const S: usize>(page: &mut [u8], end: usize) {
    let old_end = heap_end(page);
    let old = page[old_end - heap(page)..old_end].to_vec();
    let fences = fence_bytes(page);
    put16(page, AT_HEAP_END, end / CHILD);
    put16(page, AT_GARBAGE, 0);
    put16(page, AT_HEAP, fences);
    page[end - fences..end].copy_from_slice(&old[old.len() - fences..]);
    for i in 0..count(page) {
        let mut slot = slot::<S>(page, i);
        let from = old.len() - slot.distance;
        let (start, distance) = push(page, slot.stored());
        page[start..start + slot.stored()].copy_from_slice(&old[from..from + slot.stored()]);
        slot.distance = distance;
        put_slot::<S>(page, i, slot);
    }
}

/// Writes an entry for which there is a gap; its key is stripped.
#[inline]
fn write_entry<const S: usize>(
    page: &mut [u8],
    i: usize,
    key: Cell<'_>,
    value: &[u8],
    overflow: bool,
) {
    let tail = tail_of(key.start);
    let (start, distance) = push(page, key.heap_bytes() + value.len());
    page[start..start + tail.len()].copy_from_slice(tail);
    let mut start = start + tail.len();
    if let Some(rest) = key.rest {
        page[start..start + rest.len()].copy_from_slice(rest);
        start += rest.len();
        page[AT_PREFIX + 1] |= (LONG_BIT >> 8) as u8;
    }
    page[start..start + value.len()].copy_from_slice(value);
    let n = count(page);
    page.copy_within(HEADER + S * i..HEADER + S * n, HEADER + S * (i + 1));
    put16(page, AT_COUNT, n + 1);
    let slot = Slot {
        head: head_of(key.start),
        distance,
        remainder: key.start.len(),
        long: key.rest.is_some(),
        value: value.len(),
        overflow,
    };
    put_slot::<S>(page, i, slot);
}

#[inline]
pub(super) fn insert_at(
    page: &mut [u8],
    i: usize,
    key: Cell<'_>,
    value: &[u8],
    overflow: bool,
) -> bool {
    let need = insert_takes(page, key, value.len());
    if free(page) < need {
        return false;
    }
    let key = key.stripped(page);
    if gap::<LEAF>(page) < need {
        let end = page.len();
        compact::<LEAF>(page, end);
    }
    write_entry::<LEAF>(page, i, key, value, overflow);
    true
}

/// Writes an entry behind all others, where there is a gap for it.
#[inline]
pub(super) fn append(page: &mut [u8], key: Cell<'_>, value: &[u8]) {
    let (key, at) = (key.stripped(page), count(page));
    write_entry::<LEAF>(page, at, key, value, false);
}

/// Bytes that inserting an entry with a value of `len` bytes takes.
#[inline]
pub(super) fn insert_takes(page: &[u8], key: Cell<'_>, len: usize) -> usize {
    LEAF + key.stripped(page).heap_bytes() + len
}

/// Bytes that entries may take, once the garbage is collected.
#[inline]
fn free(page: &[u8]) -> usize {
    gap::<LEAF>(page) + garbage(page)
}

/// Bytes of the entry at `i`, slot, key and value.
pub(super) fn entry_bytes(page: &[u8], i: usize) -> usize {
    LEAF + slot::<LEAF>(page, i).stored()
}

/// Bytes that all entries of a leaf take in one whose keys share only `prefix` bytes.
pub(super) fn entries_under(page: &[u8], prefix: usize) -> usize {
    let longer = prefix_len(page) - prefix;
    let entries = slots::<LEAF>(page).iter().map(|raw| {
        let slot = Slot::decode(raw);
        let tail = (slot.remainder + longer).saturating_sub(HEAD);
        LEAF + slot.stored() - slot.tail() + tail
    });
    entries.sum()
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

/// Adds `by` to the distances of all entries that lie before `distance`.
fn shift<const S: usize>(page: &mut [u8], distance: usize, by: u16) {
    let slots = HEADER..HEADER + S * count(page);
    for slot in page[slots].as_chunks_mut::<S>().0 {
        let was = u16::from_le_bytes([slot[4], slot[5]]);
        let by = if usize::from(was) > distance { by } else { 0 };
        [slot[4], slot[5]] = was.wrapping_add(by).to_le_bytes();
    }
}

/// Makes room for `by` more bytes of an entry's value by moving all that lies before
/// it, and its own key, so that a full page takes a longer value without being
/// rewritten. The gap must be that large. Returns the entry's new distance.
fn widen(page: &mut [u8], entry: Slot, by: usize) -> usize {
    let (end, heap) = (heap_end(page), heap(page));
    let moved = end - heap..end - entry.distance + entry.key();
    page.copy_within(moved, end - heap - by);
    put16(page, AT_HEAP, heap + by);
    shift::<LEAF>(page, entry.distance, by as u16);
    entry.distance + by
}

/// Moves all that lies before the `len` heap bytes at `distance` into their place.
fn close<const S: usize>(page: &mut [u8], distance: usize, len: usize) {
    let (end, heap) = (heap_end(page), heap(page));
    page.copy_within(end - heap..end - distance, end - heap + len);
    put16(page, AT_HEAP, heap - len);
    shift::<S>(page, distance, (len as u16).wrapping_neg());
}

pub(super) fn replace_value_at(page: &mut [u8], i: usize, value: &[u8], overflow: bool) -> bool {
    let mut slot = slot::<LEAF>(page, i);
    let start = page.len() - slot.distance;
    if value.len() <= slot.value {
        let from = start + slot.key();
        page[from..from + value.len()].copy_from_slice(value);
        let dead = garbage(page) + slot.value - value.len();
        put16(page, AT_GARBAGE, dead);
        slot.value = value.len();
        slot.overflow = overflow;
        if slot.stored() == 0 {
            slot.distance = 0;
        }
        put_slot::<LEAF>(page, i, slot);
        return true;
    }
    if free(page) + slot.value < value.len() {
        return false;
    }
    let need = slot.key() + value.len();
    let gap = gap::<LEAF>(page);
    if gap < need && gap + slot.value >= value.len() && slot.stored() > 0 {
        slot.distance = widen(page, slot, value.len() - slot.value);
        slot.value = value.len();
        slot.overflow = overflow;
        let from = page.len() - slot.distance + slot.key();
        page[from..from + value.len()].copy_from_slice(value);
        put_slot::<LEAF>(page, i, slot);
        return true;
    }
    let key = page[start..start + slot.key()].to_vec();
    discard(page, slot.distance, slot.stored());
    if self::gap::<LEAF>(page) < need {
        // An entry without bytes, for the while of the compaction.
        put_slot::<LEAF>(
            page,
            i,
            Slot {
                distance: 0,
                remainder: 0,
                long: false,
                value: 0,
                overflow: false,
                ..slot
            },
        );
        let end = page.len();
        compact::<LEAF>(page, end);
    }
    let (start, distance) = push(page, need);
    page[start..start + key.len()].copy_from_slice(&key);
    page[start + key.len()..start + need].copy_from_slice(value);
    put_slot::<LEAF>(
        page,
        i,
        Slot {
            distance,
            value: value.len(),
            overflow,
            ..slot
        },
    );
    true
}

pub(super) fn remove_at<const S: usize>(page: &mut [u8], i: usize) {
    let slot = slot::<S>(page, i);
    if slot.distance < heap(page) && slot.stored() > 0 && is_scarce(gap::<S>(page)) {
        close::<S>(page, slot.distance, slot.stored());
    } else {
        discard(page, slot.distance, slot.stored());
    }
    let n = count(page);
    page.copy_within(HEADER + S * (i + 1)..HEADER + S * n, HEADER + S * i);
    put16(page, AT_COUNT, n - 1);
    if n == 1 {
        put16(page, AT_HEAP, fence_bytes(page));
        put16(page, AT_GARBAGE, 0);
    }
}

/// Appends a separator to a key area that already has its final length.
pub(super) fn push_separator(keys: &mut [u8], separator: Cell<'_>) -> bool {
    let separator = separator.stripped(keys);
    let fits = gap::<INNER>(keys) >= INNER + separator.heap_bytes();
    if fits {
        let n = count(keys);
        write_entry::<INNER>(keys, n, separator, &[], false);
    }
    fits
}

pub(super) fn insert_separator_at(keys: &mut [u8], i: usize, separator: Cell<'_>) -> bool {
    let separator = separator.stripped(keys);
    let need = INNER + separator.heap_bytes();
    let end = keys.len() - CHILD;
    let low = HEADER + INNER * count(keys);
    if low + heap(keys) - garbage(keys) + need > end {
        return false;
    }
    let old_end = heap_end(keys);
    if old_end > end {
        if low + heap(keys) + need <= end {
            let start = old_end - heap(keys);
            keys.copy_within(start..old_end, end - heap(keys));
            put16(keys, AT_HEAP_END, end / CHILD);
        } else {
            compact::<INNER>(keys, end);
        }
    } else if gap::<INNER>(keys) < need {
        compact::<INNER>(keys, end);
    }
    write_entry::<INNER>(keys, i, separator, &[], false);
    true
}
