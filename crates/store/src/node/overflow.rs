//! Overflow chunks: pieces of a value too large for its leaf.
//!
//! After the header the payload, whose length the header carries; the next chunk is
//! child 0, its reference 0 in the last one. Chunks are written once.

use super::{AT_HEAP, AT_PAYLOAD, CHILD, HEADER, Kind, get32, put_header, put16};

/// The longest payload of one chunk.
pub const fn max_chunk(page_size: usize) -> usize {
    page_size - HEADER - CHILD
}

/// Makes `keys`, the page without its last [`CHILD`] bytes, a chunk with this
/// payload, of at most [`max_chunk`] bytes. The caller writes the child.
pub fn init_overflow(keys: &mut [u8], tree: u32, payload: &[u8]) {
    put_header(keys, Kind::Overflow, 0, tree);
    put16(keys, AT_HEAP, 0);
    keys[AT_PAYLOAD..AT_PAYLOAD + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    keys[HEADER..HEADER + payload.len()].copy_from_slice(payload);
}

/// The payload of a chunk.
pub fn overflow_payload(page: &[u8]) -> &[u8] {
    &page[HEADER..HEADER + get32(page, AT_PAYLOAD) as usize]
}
