//! Long keys in nodes of byte strings: what pages without them never get to.

use std::cmp::Ordering;

use super::bytes::{HEAD, Slot, lower, lower_len, slot, slots, strip, upper};
use super::{OVERFLOW_REF, RestRef, Rests, Unknown, count, heap_end};

/// In a page that may hold long keys.
#[cold]
pub(super) fn find_among_long<const S: usize>(
    page: &[u8],
    key: &[u8],
    rests: &Rests,
) -> Result<Result<usize, usize>, Unknown> {
    let (mut low, mut high) = (0, count(page));
    let sought = match strip(page, key) {
        Ok(remainder) => remainder,
        Err(Ordering::Less) => return Ok(Err(0)),
        Err(_) => return Ok(Err(high)),
    };
    while low < high {
        let middle = low.midpoint(high);
        match compare_long::<S>(page, middle, sought, rests)? {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok(Ok(middle)),
            Ordering::Greater => high = middle,
        }
    }
    Ok(Err(low))
}

/// Compares entry `i` with the remainder of a key, which may go on beyond the longest
/// start.
fn compare_long<const S: usize>(
    page: &[u8],
    i: usize,
    sought: &[u8],
    rests: &Rests,
) -> Result<Ordering, Unknown> {
    let slot = slot::<S>(page, i);
    let tail = heap_end(page) - slot.distance;
    let head = &slot.head[..slot.remainder.min(HEAD)];
    let (sought, beyond) = sought.split_at(sought.len().min(slot.remainder));
    let order = head
        .iter()
        .chain(&page[tail..tail + slot.tail()])
        .cmp(sought);
    match rest_at::<S>(page, i) {
        _ if order.is_ne() => Ok(order),
        None => Ok(if beyond.is_empty() {
            Ordering::Equal
        } else {
            Ordering::Less
        }),
        Some(_) if beyond.is_empty() => Ok(Ordering::Greater),
        Some(rest) => rests.order(rest),
    }
}

/// Sets where the long lower fence goes on.
pub(super) fn set_lower_rest(page: &mut [u8], rest: &RestRef) {
    let end = heap_end(page);
    page[end - OVERFLOW_REF..end].copy_from_slice(rest);
}

/// Sets where the long upper fence goes on.
pub(super) fn set_upper_rest(page: &mut [u8], rest: &RestRef) {
    let end = heap_end(page) - lower_len(page);
    page[end - OVERFLOW_REF..end].copy_from_slice(rest);
}

/// Where the key at `i` goes on, if it is long.
pub(super) fn rest_at<const S: usize>(page: &[u8], i: usize) -> Option<&RestRef> {
    let slot = slot::<S>(page, i);
    let start = heap_end(page) - slot.distance + slot.tail();
    if slot.long {
        page[start..].first_chunk()
    } else {
        None
    }
}

pub(super) fn each_rest_mut<const S: usize>(page: &mut [u8], visit: &mut impl FnMut(&mut RestRef)) {
    let end = heap_end(page);
    let mut ends = Vec::new();
    if lower(page).rest.is_some() {
        ends.push(end);
    }
    if upper(page).rest.is_some() {
        ends.push(end - lower_len(page));
    }
    for raw in slots::<S>(page) {
        let slot = Slot::decode(raw);
        if slot.long {
            ends.push(end - slot.distance + slot.key());
        }
    }
    for end in ends {
        if let Some(rest) = page[..end].last_chunk_mut() {
            visit(rest);
        }
    }
}
