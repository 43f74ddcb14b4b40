//! Page layouts: B+tree nodes and the nodes of large values over plain byte buffers.
//!
//! A page is a buffer of 4 KiB to 64 KiB whose length is a power of two. All
//! integers are little-endian unless said otherwise.
//!
//! ```text
//! 0   kind u8 | level u8 | count u16 | heap u16 | garbage u16
//! 8   birth u64                     commit sequence, lower bound
//! 16  tree u32 | heap end u16 (in 16-byte units) | prefix length or fence flags u16
//! 24  lower fence length u16 | upper fence length u16 | 0 u32     (byte keys; top
//!     bits of the prefix's length: the page may hold long keys; of a fence's
//!     length: the fence is long)
//!     payload length u32 | 0 u32                                  (overflow chunks)
//! 32  [int pages: lower fence i64 | upper fence i64], slots growing up
//!     ... gap ...
//!     heap, growing down from its end, then the children
//! ```
//!
//! The heap's entries are named by their distance from the heap's end, so that
//! every offset of a 64 KiB page fits 16 bits. Children of inner nodes, 16 bytes
//! each, grow down from the end of the page: child `i` lies at
//! [`child_offset`]`(page_size, i)`. They may be changed by other threads while a
//! node is read, so the functions on inner nodes take the *key area* only,
//! `page[..page_size - 16 * children]`, and never touch what lies behind it.
//!
//! Invariants, established by [`init`], kept by every function here, and verified
//! for a page from outside by [`mod@check`]:
//! 1. keys ascend strictly and lie within the fences `[lower, upper)`;
//! 2. every entry lies in the heap, and fences + entries + garbage = heap;
//! 3. slots, heap and children do not overlap;
//! 4. keys and values respect [`max_key`] and [`max_inline_value`], so that a full
//!    page can always be split.
//!
//! Functions other than [`mod@check`] expect a page that satisfies these and an index
//! below the count; on such pages none of them panics. The loader also compares
//! kind, level and tree id with what the parent promised.

mod bytes;
mod check;
mod draft;
mod entries;
mod header;
mod int;
mod key;
mod long;
mod overflow;
mod pack;
mod run;
mod slot;
mod split;
#[cfg(test)]
pub(crate) mod tests;

use std::ops::Range;

pub use check::{Mismatch, check, check_child, check_root, check_value, is_compact};
pub use draft::{Draft, Pushed};
pub use entries::{Entries, Entry};
use header::{
    AT_COUNT, AT_FLAGS, AT_GARBAGE, AT_HEAP, AT_HEAP_END, AT_KIND, AT_LOWER_LEN, AT_PAYLOAD,
    AT_PREFIX, AT_UPPER_LEN, garbage, get16, get32, get64, heap, heap_end, is_int, put_header,
    put16,
};
pub use header::{
    CHILD, HEADER, HEADER_SPARE, Kind, Regions, birth, child_count, child_offset, count, is_leaf,
    key_area, kind, level, regions, set_birth, tree, used_parts,
};
pub use key::{Key, OwnedKey, OwnedStored, RestRef, Rests, Stored, Unknown};
pub use overflow::{
    init_overflow, init_overflow_index, max_chunk, max_overflow_children, overflow_payload,
};
pub use pack::{pack_slots, unpack_slots};
pub use run::Run;
pub use split::{SplitPoint, merge_inner, merge_leaves, split_inner, split_leaf, split_point};

/// Smallest page size.
pub const PAGE_SIZE_MIN: usize = 4096;
/// Largest page size.
pub const PAGE_SIZE_MAX: usize = 65536;
/// Bytes of an overflow reference, with which a large value's place in a leaf begins. What
/// follows them there is the value's start.
pub const OVERFLOW_REF: usize = 32;

/// The top bit of a value's length: an overflow reference and the start of a large value.
const OVERFLOW_BIT: u16 = 1 << 15;
/// The top bit of a remainder's or a fence's length: the key is long. Of the prefix's
/// length: such keys or fences may be in the page.
const LONG_BIT: usize = 1 << 15;

const _: () = {
    assert!(HEADER.is_multiple_of(CHILD));
    assert!(PAGE_SIZE_MAX - HEADER <= u16::MAX as usize);
    assert!(PAGE_SIZE_MAX / 4 < OVERFLOW_BIT as usize);
    assert!(max_key(PAGE_SIZE_MIN) + 2 * OVERFLOW_REF <= PAGE_SIZE_MIN / 4);
    assert!(max_key(PAGE_SIZE_MAX) + OVERFLOW_REF < LONG_BIT);
};

/// The longest key (and separator, and fence) that a page holds whole; of a longer one
/// it holds so many bytes and a reference.
pub const fn max_key(page_size: usize) -> usize {
    page_size / 8
}

/// The bytes that a page stores of a key; 0 for integers.
#[inline]
pub fn stored_len(page_size: usize, key: Key<'_>) -> usize {
    match key {
        Key::Int(_) => 0,
        Key::Bytes(key) if key.len() > max_key(page_size) => max_key(page_size) + OVERFLOW_REF,
        Key::Bytes(key) => key.len(),
    }
}

/// The start of a key, and the rest of a long one.
#[inline]
pub fn split_key(page_size: usize, key: Key<'_>) -> (Key<'_>, Option<&[u8]>) {
    match key {
        Key::Bytes(bytes) if bytes.len() > max_key(page_size) => {
            let (start, rest) = bytes.split_at(max_key(page_size));
            (Key::Bytes(start), Some(rest))
        }
        key => (key, None),
    }
}

/// How much of a large value, `value_len` bytes long, its leaf holds beside a key of which
/// `key_len` bytes are stored: at least a 32nd of a page, where the head of a record lies
/// and what is short in it; up to an eighth where the rest then fills its chunks.
pub fn start_len(page_size: usize, key_len: usize, value_len: usize) -> usize {
    let room = max_start(page_size, key_len);
    let least = (page_size / 32).min(room);
    let most = (page_size / 8).min(room);
    let over = value_len.saturating_sub(least) % max_chunk(page_size);
    match least + over <= most {
        true => least + over,
        false => least,
    }
}

/// The longest start that a leaf can hold of a large value.
pub const fn max_start(page_size: usize, key_len: usize) -> usize {
    max_inline_value(page_size, key_len).saturating_sub(OVERFLOW_REF)
}

/// The longest value stored inline beside a key of which `key_len` bytes are stored.
///
/// A key and its value together stay within a quarter of the page: with less, two
/// entries and two long fences might not leave a way to split.
pub const fn max_inline_value(page_size: usize, key_len: usize) -> usize {
    (page_size / 4).saturating_sub(key_len)
}

/// Makes an empty node of `page`: a whole leaf page, or the key area of an inner
/// node that is about to get the children behind it.
///
/// `lower` is inclusive, `upper` exclusive; `None` is unbounded. The kind and the
/// fences must agree.
pub fn init(
    page: &mut [u8],
    kind: Kind,
    level: u8,
    tree: u32,
    lower: Option<Stored<'_>>,
    upper: Option<Stored<'_>>,
) {
    put_header(page, kind, level, tree);
    match kind {
        Kind::IntLeaf | Kind::IntInner => {
            let int = |fence: Option<Stored<'_>>| match fence?.key {
                Key::Int(key) => Some(key),
                Key::Bytes(_) => None,
            };
            int::put_fences(page, int(lower), int(upper));
        }
        Kind::BytesLeaf | Kind::BytesInner => {
            bytes::put_fences(page, fence_cell(lower), fence_cell(upper));
        }
        Kind::Overflow => init_overflow(page, tree, &[]),
    }
}

/// The bytes of a fence; none where there is none.
fn fence_cell(fence: Option<Stored<'_>>) -> bytes::Cell<'_> {
    match fence {
        Some(Stored {
            key: Key::Bytes(start),
            rest,
        }) => bytes::Cell { start, rest },
        _ => bytes::Cell::EMPTY,
    }
}

/// The position of `key` in a leaf, or where it would go, as far as `rests` tells.
#[inline]
pub fn find(page: &[u8], key: Key<'_>, rests: &Rests) -> Result<Result<usize, usize>, Unknown> {
    match key {
        Key::Int(key) => Ok(int::search(page, key)),
        Key::Bytes(key) => bytes::find::<{ bytes::LEAF }>(page, key, rests),
    }
}

/// The child of an inner node whose range holds `key`.
#[inline]
pub fn child_index(keys: &[u8], key: Key<'_>, rests: &Rests) -> Result<usize, Unknown> {
    match key {
        Key::Int(key) => Ok(int::child_index(keys, key)),
        Key::Bytes(key) => Ok(match bytes::find::<{ bytes::INNER }>(keys, key, rests)? {
            Ok(i) => i + 1,
            Err(i) => i,
        }),
    }
}

/// The child of an inner node whose range holds what lies just below `key`.
pub fn child_below(keys: &[u8], key: Key<'_>, rests: &Rests) -> Result<usize, Unknown> {
    match key {
        Key::Int(key) => {
            let index = int::child_index(keys, key);
            let is_above = index > 0 && int::separator(keys, index - 1) == key;
            Ok(index - usize::from(is_above))
        }
        Key::Bytes(key) => {
            let found = bytes::find::<{ bytes::INNER }>(keys, key, rests)?;
            Ok(found.unwrap_or_else(|index| index))
        }
    }
}

/// Where the slot of `key` lies in child `index`, a leaf, if its keys are dense: a
/// hint for fetching it ahead, which may be wrong and point behind the page.
#[inline]
pub fn likely_slot(parent: &[u8], index: usize, key: Key<'_>) -> Option<usize> {
    match key {
        Key::Int(key) if level(parent) == 1 => int::likely_slot(parent, index, key),
        _ => None,
    }
}

/// Whether `key` lies within the page's fences; false also where only the rest of a
/// long fence could tell.
#[inline]
pub fn covers(page: &[u8], key: Key<'_>) -> bool {
    match key {
        Key::Int(key) => int::covers(page, key),
        Key::Bytes(key) => bytes::covers(page, key),
    }
}

/// Whether a byte string is known to lie behind all keys of a leaf.
#[inline]
pub fn is_behind(leaf: &[u8], key: Key<'_>) -> bool {
    matches!(key, Key::Bytes(key) if bytes::is_behind(leaf, key))
}

/// The integer key or separator at `i` of a page of integer keys.
#[inline]
pub fn int_key_at(page: &[u8], i: usize) -> i64 {
    if page[AT_KIND] == Kind::IntLeaf as u8 {
        int::leaf_key(page, i)
    } else {
        int::separator(page, i)
    }
}

/// Appends the byte-string key or separator at `i`, prefix included, to `out`; of a
/// long one its start.
#[inline]
pub fn start_into(page: &[u8], i: usize, out: &mut Vec<u8>) {
    if page[AT_KIND] == Kind::BytesLeaf as u8 {
        bytes::start_into::<{ bytes::LEAF }>(page, i, out);
    } else {
        bytes::start_into::<{ bytes::INNER }>(page, i, out);
    }
}

/// Where the key or separator at `i` goes on, if it is long.
#[inline]
pub fn rest_at(page: &[u8], i: usize) -> Option<&RestRef> {
    if !has_long(page) {
        return None;
    }
    if page[AT_KIND] == Kind::BytesLeaf as u8 {
        long::rest_at::<{ bytes::LEAF }>(page, i)
    } else {
        long::rest_at::<{ bytes::INNER }>(page, i)
    }
}

/// The key or separator at `i` as stored, copied.
pub fn stored_key_at(page: &[u8], i: usize) -> OwnedStored {
    let key = if is_int(page) {
        OwnedKey::Int(int_key_at(page, i))
    } else {
        let mut start = Vec::new();
        start_into(page, i, &mut start);
        OwnedKey::Bytes(start)
    };
    OwnedStored {
        key,
        rest: rest_at(page, i).copied(),
    }
}

/// Whether the keys of a leaf or inner node are integers.
pub fn has_int_keys(page: &[u8]) -> bool {
    is_int(page)
}

/// Whether a leaf refers to large values.
#[inline]
pub fn has_references(leaf: &[u8]) -> bool {
    // A slot of either kind ends with the value's length.
    const { assert!(OVERFLOW_BIT == 0x80 << 8) };
    if is_int(leaf) {
        int::leaf_slots(leaf)
            .iter()
            .any(|slot| slot[int::LEAF - 1] & 0x80 != 0)
    } else {
        let slots = bytes::slots::<{ bytes::LEAF }>(leaf);
        slots.iter().any(|slot| slot[bytes::LEAF - 1] & 0x80 != 0)
    }
}

/// Whether long keys or fences may be in the page. Such pages take longer to search.
#[inline]
pub fn has_long(page: &[u8]) -> bool {
    page[AT_PREFIX + 1] & (LONG_BIT >> 8) as u8 != 0
}

/// Visits the references to rests that the page holds, those of its fences included,
/// which belong to separators above it.
pub fn each_rest_mut(page: &mut [u8], mut visit: impl FnMut(&mut RestRef)) {
    if !has_long(page) {
        return;
    }
    if page[AT_KIND] == Kind::BytesLeaf as u8 {
        long::each_rest_mut::<{ bytes::LEAF }>(page, &mut visit);
    } else {
        long::each_rest_mut::<{ bytes::INNER }>(page, &mut visit);
    }
}

/// Sets where the long upper fence of `left` and lower fence of `right` go on.
pub fn join_fences(left: &mut [u8], right: &mut [u8], rest: &RestRef) {
    long::set_upper_rest(left, rest);
    long::set_lower_rest(right, rest);
}

/// The value at `i` of a leaf, and whether it is an overflow reference and a start.
#[inline]
pub fn value_at(page: &[u8], i: usize) -> (&[u8], bool) {
    if is_int(page) {
        int::value_at(page, i)
    } else {
        bytes::value_at(page, i)
    }
}

/// As [`value_at`], which bytes of the leaf the value has.
#[inline]
pub fn value_range(page: &[u8], i: usize) -> (Range<usize>, bool) {
    let (value, overflow) = value_at(page, i);
    let start = value.as_ptr().addr() - page.as_ptr().addr();
    (start..start + value.len(), overflow)
}

/// Which bytes of a leaf are the next that its heap gets, of as many as an entry takes.
#[inline]
pub fn heap_room(page: &[u8], takes: usize) -> Range<usize> {
    let end = heap_end(page) - heap(page);
    end.saturating_sub(takes)..end
}

/// Inserts an entry at `i`, where [`find`] said it belongs. `false`: it does not
/// fit, even with the garbage collected, and the page is as before.
#[inline]
pub fn insert_at(page: &mut [u8], i: usize, key: Stored<'_>, value: &[u8], overflow: bool) -> bool {
    let rest = key.rest;
    match key.key {
        Key::Int(key) => int::insert_at(page, i, key, value, overflow),
        Key::Bytes(start) => {
            bytes::insert_at(page, i, bytes::Cell { start, rest }, value, overflow)
        }
    }
}

/// Bytes of [`free_space`] that [`insert_at`] takes for a key that is not long and a
/// value of `len` bytes.
#[inline]
pub fn insert_takes(page: &[u8], key: Key<'_>, len: usize) -> usize {
    match key {
        Key::Int(_) => int::insert_takes(len),
        Key::Bytes(start) => bytes::insert_takes(page, bytes::Cell { start, rest: None }, len),
    }
}

/// Replaces the value at `i` of a leaf. `false`: it does not fit, and the page is as before.
#[inline]
pub fn replace_value_at(page: &mut [u8], i: usize, value: &[u8], overflow: bool) -> bool {
    if is_int(page) {
        int::replace_value_at(page, i, value, overflow)
    } else {
        bytes::replace_value_at(page, i, value, overflow)
    }
}

/// What [`put_int`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutInt {
    /// The key was new, and above all others or not.
    Inserted { at_end: bool },
    /// The key was there, and has the new value now.
    Replaced,
}

/// Writes an entry to a leaf of integer keys, all in one. `None`, and the page is as
/// before: the leaf does not cover the key, or has no room as it is, or the key is there
/// and must not be (without `may_replace`) or has a large value.
#[inline]
pub fn put_int(page: &mut [u8], key: i64, value: &[u8], may_replace: bool) -> Option<PutInt> {
    if !int::covers(page, key) {
        return None;
    }
    let (done, put) = match int::search(page, key) {
        Ok(_) if !may_replace => return None,
        Ok(index) => {
            let (_, overflow) = int::value_at(page, index);
            let done = !overflow && int::replace_value_at(page, index, value, false);
            (done, PutInt::Replaced)
        }
        Err(index) => {
            let at_end = index == count(page);
            let done = int::insert_at(page, index, key, value, false);
            (done, PutInt::Inserted { at_end })
        }
    };
    done.then_some(put)
}

/// Removes the entries under ascending keys from a leaf of integers, as far as the leaf
/// covers them and up to one with a large value; `removed` takes those that were there.
/// How many keys that were.
pub fn remove_run(page: &mut [u8], keys: &[i64], removed: &mut Vec<i64>) -> usize {
    int::remove_run(page, keys, removed)
}

/// Removes the entry at `i` of a leaf.
#[inline]
pub fn remove_at(page: &mut [u8], i: usize) {
    if is_int(page) {
        int::remove_at(page, i);
    } else {
        bytes::remove_at::<{ bytes::LEAF }>(page, i);
    }
}

/// Inserts separator `i` into an inner node; `keys` is the key area as it was.
/// Afterwards its last [`CHILD`] bytes are free, and the caller makes them part of
/// the children by inserting child `i + 1`. `false`: no room, nothing changed.
pub fn insert_separator_at(keys: &mut [u8], i: usize, separator: Stored<'_>) -> bool {
    let rest = separator.rest;
    match separator.key {
        Key::Int(key) => int::insert_separator_at(keys, i, key),
        Key::Bytes(start) => bytes::insert_separator_at(keys, i, bytes::Cell { start, rest }),
    }
}

/// Removes separator `i` of an inner node. The caller removes child `i` or `i + 1`.
pub fn remove_separator_at(keys: &mut [u8], i: usize) {
    if is_int(keys) {
        int::remove_separator_at(keys, i);
    } else {
        bytes::remove_at::<{ bytes::INNER }>(keys, i);
    }
}

/// The inclusive lower fence, `None` when unbounded.
pub fn lower_fence(page: &[u8]) -> Option<Stored<'_>> {
    if is_int(page) {
        int::fences(page).0.map(|fence| Key::Int(fence).into())
    } else {
        bytes::lower(page).as_fence()
    }
}

/// The exclusive upper fence, `None` when unbounded.
pub fn upper_fence(page: &[u8]) -> Option<Stored<'_>> {
    if is_int(page) {
        int::fences(page).1.map(|fence| Key::Int(fence).into())
    } else {
        bytes::upper(page).as_fence()
    }
}

/// Bytes in use: header, slots, live heap, and children.
pub fn used_bytes(page: &[u8]) -> usize {
    let slot = match kind(page) {
        Some(Kind::IntLeaf) => {
            return int::BASE + int::LEAF * count(page) + heap(page) - garbage(page);
        }
        Some(Kind::IntInner) => {
            return int::BASE + int::INNER * count(page) + CHILD * child_count(page);
        }
        Some(Kind::BytesLeaf) => bytes::LEAF,
        Some(Kind::BytesInner) => bytes::INNER,
        _ => return HEADER + overflow_payload(page).len() + CHILD,
    };
    HEADER + slot * count(page) + heap(page) - garbage(page) + CHILD * child_count(page)
}

/// Whether a node with so many bytes in use should be merged with another.
#[inline]
pub fn is_sparse(used: usize, page_size: usize) -> bool {
    used < page_size / 4
}

/// Bytes of [`used_bytes`] that the entry at `i` of a leaf accounts for.
pub fn entry_bytes(page: &[u8], i: usize) -> usize {
    if is_int(page) {
        int::entry_bytes(page, i)
    } else {
        bytes::entry_bytes(page, i)
    }
}

/// Bytes that are free once the garbage is collected, of a page of `page_size` bytes.
pub fn free_space(page: &[u8], page_size: usize) -> usize {
    page_size.saturating_sub(used_bytes(page))
}

/// Rewrites the page (its key area) so that it has no garbage and its entries lie in
/// the order of their keys, as pages are stored.
pub fn compact(page: &mut [u8]) {
    let end = heap_end(page);
    match kind(page) {
        Some(Kind::IntLeaf) => int::compact(page),
        Some(Kind::BytesLeaf) => bytes::compact::<{ bytes::LEAF }>(page, end),
        Some(Kind::BytesInner) => bytes::compact::<{ bytes::INNER }>(page, end),
        _ => {}
    }
}

/// The shortest string that is greater than `left` and at most `right`, a prefix of
/// `right`; `left` must be less than `right`.
pub fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let common = common_prefix(left, right);
    &right[..right.len().min(common + 1)]
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let common = a.len().min(b.len());
    let (a, b) = (&a[..common], &b[..common]);
    let (words, _) = a.as_chunks::<8>();
    let (others, _) = b.as_chunks::<8>();
    let same = words.iter().zip(others).take_while(|(x, y)| x == y).count();
    if let (Some(word), Some(other)) = (words.get(same), others.get(same)) {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        return 8 * same + differing.trailing_zeros() as usize / 8;
    }
    let (a, b) = (&a[8 * same..], &b[8 * same..]);
    8 * same + a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
