//! Nodes of values too large for a leaf: chunks of bytes, and index nodes.
//!
//! A chunk (level 0) has its payload after the header, which carries the length.
//! An index node (level 1 and up) has nothing but children, as many as its count
//! says, in the order of the value. Both are written once.

use super::{AT_COUNT, AT_PAYLOAD, CHILD, HEADER, Kind, get32, key_area, put_header, put16};

/// The longest payload of one chunk.
pub const fn max_chunk(page_size: usize) -> usize {
    page_size - HEADER
}

/// The most children of one index node.
pub const fn max_overflow_children(page_size: usize) -> usize {
    (page_size - HEADER) / CHILD
}

/// Makes `page` a chunk with this payload, of at most [`max_chunk`] bytes.
pub fn init_overflow(page: &mut [u8], tree: u32, payload: &[u8]) {
    put_header(page, Kind::Overflow, 0, tree);
    page[AT_PAYLOAD..AT_PAYLOAD + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    page[HEADER..HEADER + payload.len()].copy_from_slice(payload);
}

/// Makes `page` an index node of so many children, which the caller writes.
pub fn init_overflow_index(page: &mut [u8], tree: u32, level: u8, children: usize) {
    let area = key_area(page.len(), children);
    put_header(&mut page[..area], Kind::Overflow, level, tree);
    put16(page, AT_COUNT, children);
}

/// The payload of a chunk.
pub fn overflow_payload(page: &[u8]) -> &[u8] {
    &page[HEADER..HEADER + get32(page, AT_PAYLOAD) as usize]
}
