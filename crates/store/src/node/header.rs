//! What every page begins with, and where its parts lie by that alone.

use super::{bytes, int};
use std::ops::Range;

/// Bytes of the header that all pages share.
pub const HEADER: usize = 32;
/// Bytes of a child slot: reference u64, checksum u32, hint u32.
pub const CHILD: usize = 16;

/// From here on the header's bytes are zero; images on disk use them.
pub const HEADER_SPARE: usize = 28;

pub(super) const AT_KIND: usize = 0;
pub(super) const AT_LEVEL: usize = 1;
pub(super) const AT_COUNT: usize = 2;
pub(super) const AT_HEAP: usize = 4;
pub(super) const AT_GARBAGE: usize = 6;
pub(super) const AT_BIRTH: usize = 8;
pub(super) const AT_TREE: usize = 16;
pub(super) const AT_HEAP_END: usize = 20;
/// Length of the common prefix in pages of byte keys.
pub(super) const AT_PREFIX: usize = 22;
/// Which fences exist in pages of integer keys.
pub(super) const AT_FLAGS: usize = 22;
pub(super) const AT_LOWER_LEN: usize = 24;
pub(super) const AT_UPPER_LEN: usize = 26;
pub(super) const AT_PAYLOAD: usize = 24;

/// What a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Integer keys with values.
    IntLeaf = 1,
    /// Integer separators.
    IntInner = 2,
    /// Byte-string keys with values.
    BytesLeaf = 3,
    /// Byte-string separators.
    BytesInner = 4,
    /// A piece of a large value.
    Overflow = 5,
}

impl Kind {
    /// The kind that a stored byte names.
    pub const fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::IntLeaf,
            2 => Kind::IntInner,
            3 => Kind::BytesLeaf,
            4 => Kind::BytesInner,
            5 => Kind::Overflow,
            _ => return None,
        })
    }

    /// Whether pages of this kind have separators and children.
    pub const fn is_inner(self) -> bool {
        matches!(self, Kind::IntInner | Kind::BytesInner)
    }
}

/// Where child `i` of an inner node (or of an overflow index) lies.
pub const fn child_offset(page_size: usize, i: usize) -> usize {
    page_size - CHILD * (i + 1)
}

/// The length of the key area of a page with `children` children; 0 when so many do
/// not fit.
pub const fn key_area(page_size: usize, children: usize) -> usize {
    page_size.saturating_sub(CHILD * children)
}

#[inline]
pub(super) fn get16(page: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
}

/// Stores a count or length. All of them fit: pages end at 64 KiB and begin with a header.
#[inline]
pub(super) fn put16(page: &mut [u8], at: usize, value: usize) {
    debug_assert!(value <= usize::from(u16::MAX));
    page[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

#[inline]
pub(super) fn get32(page: &[u8], at: usize) -> u32 {
    page[at..]
        .first_chunk()
        .map_or(0, |b| u32::from_le_bytes(*b))
}

#[inline]
pub(super) fn get64(page: &[u8], at: usize) -> u64 {
    page[at..]
        .first_chunk()
        .map_or(0, |b| u64::from_le_bytes(*b))
}

/// What the page holds; `None` for a byte that names no kind.
#[inline]
pub fn kind(page: &[u8]) -> Option<Kind> {
    Kind::from_byte(page[AT_KIND])
}

/// Distance from the leaves, which are level 0.
#[inline]
pub fn level(page: &[u8]) -> u8 {
    page[AT_LEVEL]
}

/// Whether the page is a leaf, or an overflow chunk.
#[inline]
pub fn is_leaf(page: &[u8]) -> bool {
    page[AT_LEVEL] == 0
}

/// Entries of a leaf, separators of an inner node.
#[inline]
pub fn count(page: &[u8]) -> usize {
    get16(page, AT_COUNT)
}

/// Child slots of the page: one more than separators; all entries of an overflow index;
/// none in leaves and chunks.
#[inline]
pub fn child_count(page: &[u8]) -> usize {
    match kind(page) {
        Some(Kind::IntInner | Kind::BytesInner) => count(page) + 1,
        Some(Kind::Overflow) if level(page) > 0 => count(page),
        _ => 0,
    }
}

/// The commit sequence that made the page, as a lower bound.
#[inline]
pub fn birth(page: &[u8]) -> u64 {
    get64(page, AT_BIRTH)
}

/// Sets the commit sequence that made the page.
#[inline]
pub fn set_birth(page: &mut [u8], birth: u64) {
    page[AT_BIRTH..AT_BIRTH + 8].copy_from_slice(&birth.to_le_bytes());
}

/// The tree the page belongs to.
#[inline]
pub fn tree(page: &[u8]) -> u32 {
    get32(page, AT_TREE)
}

#[inline]
pub(super) fn heap(page: &[u8]) -> usize {
    get16(page, AT_HEAP)
}

#[inline]
pub(super) fn garbage(page: &[u8]) -> usize {
    get16(page, AT_GARBAGE)
}

/// Where the heap ends: at the page's end in leaves, at or before the children in inner nodes.
#[inline]
pub(super) fn heap_end(page: &[u8]) -> usize {
    get16(page, AT_HEAP_END) * CHILD
}

pub(super) fn put_header(page: &mut [u8], kind: Kind, level: u8, tree: u32) {
    page[..HEADER].fill(0);
    page[AT_KIND] = kind as u8;
    page[AT_LEVEL] = level;
    page[AT_TREE..AT_TREE + 4].copy_from_slice(&tree.to_le_bytes());
    let end = page.len() / CHILD;
    put16(page, AT_HEAP_END, end);
}

/// The occupied parts of a page's key area: `page[..low]` and `page[heap_start..heap_end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regions {
    /// End of the header and the slots.
    pub low: usize,
    /// Start of the heap.
    pub heap_start: usize,
    /// End of the heap.
    pub heap_end: usize,
}

/// The bytes of a key area that a copy needs: those before the number, and the range.
/// Of leaves that is all of it: they are copied from memory far away, where one piece
/// takes less time than two that are shorter together.
#[inline]
pub fn used_parts(keys: &[u8]) -> (usize, Range<usize>) {
    match kind(keys) {
        Some(kind) if kind.is_inner() => {
            let end = heap_end(keys);
            (slots_end(keys, kind), end - heap(keys)..end)
        }
        _ => (keys.len(), 0..0),
    }
}

/// The end of header and slots of a node.
#[inline]
fn slots_end(header: &[u8], kind: Kind) -> usize {
    let count = count(header);
    match kind {
        Kind::IntLeaf => int::BASE + int::LEAF * count,
        Kind::IntInner => int::BASE + int::INNER * count,
        Kind::BytesLeaf => HEADER + bytes::LEAF * count,
        Kind::BytesInner => HEADER + bytes::INNER * count,
        Kind::Overflow => HEADER,
    }
}

/// The occupied parts of a page, by its header alone; `None` where the header
/// contradicts itself or the page's size.
pub fn regions(header: &[u8; HEADER], page_size: usize) -> Option<Regions> {
    let kind = kind(header)?;
    let low = match kind {
        Kind::Overflow => HEADER.checked_add(get32(header, AT_PAYLOAD) as usize)?,
        _ => slots_end(header, kind),
    };
    let heap_end = heap_end(header);
    let heap_start = heap_end.checked_sub(heap(header))?;
    let limit = page_size.checked_sub(CHILD * child_count(header))?;
    (low <= heap_start && heap_end <= limit).then_some(Regions {
        low,
        heap_start,
        heap_end,
    })
}

#[inline]
pub(super) fn is_int(page: &[u8]) -> bool {
    page[AT_KIND] <= Kind::IntInner as u8
}
