//! The slots of an integer leaf as its image stores them.
//!
//! A slot takes 12 bytes in memory, for one aligned load; most of them follow
//! from the slot before. On disk they are, in the order of the keys:
//!
//! 1. the keys: the first one zigzag-coded, then the differences, as LEB128;
//! 2. the lengths of the values, doubled, plus 1 for a reference to a large
//!    value, as LEB128. The values' places follow from them, since pages are
//!    stored compact.

use super::int;

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
fn take(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut number = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends the slots of a compact integer leaf to `out`.
pub fn pack_slots(page: &[u8], out: &mut Vec<u8>) {
    let slots = int::leaf_slots(page);
    let mut previous = None;
    for slot in slots {
        let key = int::slot_key(slot);
        put(
            out,
            match previous {
                None => ((key << 1) ^ (key >> 63)) as u64,
                Some(previous) => key.wrapping_sub(previous) as u64,
            },
        );
        previous = Some(key);
    }
    for slot in slots {
        let (_, len, overflow) = int::slot_value(slot);
        put(out, (len as u64) << 1 | u64::from(overflow));
    }
}

/// Restores the slots of an integer leaf whose header is in place. Returns the
/// bytes taken; `None` if they are no slots, or do not add up to the heap.
pub fn unpack_slots(packed: &[u8], page: &mut [u8]) -> Option<usize> {
    let count = super::count(page);
    let mut at = 0;
    let mut key = 0;
    for i in 0..count {
        let number = take(packed, &mut at)?;
        key = if i == 0 {
            (number >> 1) as i64 ^ -((number & 1) as i64)
        } else {
            key.wrapping_add(number as i64)
        };
        int::put_slot(page, i, int::make_slot(key, 0, 0, false));
    }
    let heap = super::heap(page) as u64;
    let mut end = 0;
    for i in 0..count {
        let number = take(packed, &mut at)?;
        let len = number >> 1;
        end += len;
        if end > heap {
            return None;
        }
        let distance = if len == 0 { 0 } else { end };
        int::set_value(page, i, distance as usize, len as usize, number & 1 != 0);
    }
    (end == heap).then_some(at)
}
