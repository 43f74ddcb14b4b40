//! Page images: how a page lies in its extent on disk.
//!
//! ```text
//! 0   the page's header, of which the last four bytes are the image's own:
//! 28    stored length u16 of the payload | version and codec u8 | log2 of the page size u8
//! 32  payload, then zeros up to a multiple of 64
//! ```
//!
//! Version and codec (bit 0: lz4, bit 1: packed slots) are a nibble each, the version
//! the higher one. An image never takes more room than its page.
//!
//! The raw payload is the page without its header and its free gap: slots, heap, and
//! the children in the order of their addresses, the last child first, 12 bytes each
//! (reference u64, checksum u32). Pages are stored compact: no garbage, entries in
//! the order of their keys.
//!
//! The slots of integer leaves are packed (see `node/pack.rs`) unless that makes them
//! longer: keys and places mostly follow from the slot before, which costs a third of
//! the image where it is not said, and a compressor finds only part of it.
//!
//! The checksum is CRC32C over the whole padded image and lies with the reference, in
//! the parent. [`decode`] trusts nothing, but it judges the frame only: the caller
//! compares the checksum before and runs [`node::check`](crate::node::check) after it.

use crate::node::{self, CHILD, HEADER, Kind, Regions};
use std::cell::RefCell;

/// Bytes of a unit, in which extents are counted: small beside an image, of which
/// half a unit is lost on average.
pub const UNIT: usize = 64;
/// Bytes that compression must save to be worth undoing at every load.
const WORTH: usize = 512;
/// The longest extent of one reference, in units.
pub const UNITS_MAX: u32 = (1 << 19) - 1;
/// Where the image's own part of the header begins.
const AT_OWN: usize = node::HEADER_SPARE;
/// Where the slots of an integer leaf begin.
const SLOTS: usize = HEADER + 16;
/// Bytes of a stored child.
const STORED_CHILD: usize = 12;
const VERSION: u8 = 1;
/// In the codec's nibble: the slots are packed.
const PACKED: u8 = 2;

/// How payloads are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Codec {
    /// As they are.
    None = 0,
    /// LZ4 blocks, where that saves a unit.
    #[default]
    Lz4 = 1,
}

/// Why bytes are not an image of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Neither a page kind nor a version.
    #[error("no page image here")]
    NotAnImage,
    /// Written by a later version.
    #[error("page image of version {0}, which is newer than this library")]
    NewerVersion(u8),
    /// A codec that does not exist.
    #[error("unknown page codec {0}")]
    UnknownCodec(u8),
    /// The page size differs from the database's.
    #[error("page image of another page size")]
    PageSize,
    /// A length contradicts another or the extent.
    #[error("page image with contradicting lengths")]
    Lengths,
    /// The page header contradicts itself.
    #[error("page image with a damaged page header")]
    Header,
    /// The compressed payload is damaged.
    #[error("page image that does not decompress")]
    Compressed,
    /// The packed slots are damaged.
    #[error("page image with damaged slots")]
    Slots,
    /// A child is no extent.
    #[error("page image with an invalid child reference")]
    Child,
}

/// A place on disk as one word: bits 0..44 the position and 44..63 the length, both
/// in units of 64 bytes. Bit 63 marks an in-memory handle, which is never stored.
/// The word 0 refers to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExtentRef(u64);

impl ExtentRef {
    const POSITION_BITS: u32 = 44;
    /// The first position that a reference cannot express.
    pub const POSITION_END: u64 = 1 << Self::POSITION_BITS;

    /// The extent of `units` units at `position`; `None` when it cannot be expressed.
    pub const fn new(position: u64, units: u32) -> Option<ExtentRef> {
        if units == 0 || units > UNITS_MAX || position >= Self::POSITION_END - units as u64 {
            return None;
        }
        Some(ExtentRef(position | (units as u64) << Self::POSITION_BITS))
    }

    /// The extent that a stored word names; `None` for handles and for empty extents.
    pub const fn from_word(word: u64) -> Option<ExtentRef> {
        if Self::is_handle(word) {
            return None;
        }
        Self::new(
            word & (Self::POSITION_END - 1),
            (word >> Self::POSITION_BITS) as u32,
        )
    }

    /// Whether a child's word is an in-memory handle.
    pub const fn is_handle(word: u64) -> bool {
        word >> 63 != 0
    }

    /// The word to store.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The first unit.
    pub const fn position(self) -> u64 {
        self.0 & (Self::POSITION_END - 1)
    }

    /// The length in units.
    pub const fn units(self) -> u32 {
        (self.0 >> Self::POSITION_BITS) as u32
    }

    /// The unit behind the last one.
    pub const fn end(self) -> u64 {
        self.position() + self.units() as u64
    }

    /// Offset in the file, in bytes.
    pub const fn byte_offset(self) -> u64 {
        self.position() * UNIT as u64
    }

    /// Length in bytes.
    pub const fn byte_len(self) -> usize {
        self.units() as usize * UNIT
    }
}

/// Buffers of [`encode`], reused from page to page.
#[derive(Debug, Default)]
pub struct Scratch {
    page: Vec<u8>,
    raw: Vec<u8>,
    image: Vec<u8>,
}

/// CRC32C of an image, padding included.
#[inline]
pub fn checksum(image: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(image)
}

/// Makes the image of a page: `keys` is its key area (the whole page of a leaf) and
/// `children` are the references and checksums of its children, as many as it has.
pub fn encode<'a>(
    keys: &[u8],
    children: &[(u64, u32)],
    codec: Codec,
    scratch: &'a mut Scratch,
) -> &'a [u8] {
    debug_assert_eq!(children.len(), node::child_count(keys));
    debug_assert!(
        children
            .iter()
            .all(|(word, _)| !ExtentRef::is_handle(*word))
    );
    let Scratch { page, raw, image } = scratch;
    let page_size = keys.len() + CHILD * children.len();
    let keys = if node::is_compact(keys) {
        keys
    } else {
        page.clear();
        page.extend_from_slice(keys);
        node::compact(page);
        page
    };
    raw.clear();
    let mut packed = false;
    if let Some(Regions {
        low,
        heap_start,
        heap_end,
    }) = keys
        .first_chunk()
        .and_then(|header| node::regions(header, page_size))
    {
        raw.extend_from_slice(&keys[HEADER..low]);
        if node::kind(keys) == Some(Kind::IntLeaf) {
            raw.truncate(SLOTS - HEADER);
            node::pack_slots(keys, raw);
            packed = HEADER + raw.len() <= low;
            if !packed {
                raw.clear();
                raw.extend_from_slice(&keys[HEADER..low]);
            }
        }
        raw.extend_from_slice(&keys[heap_start..heap_end]);
    }
    for (word, checksum) in children.iter().rev() {
        raw.extend_from_slice(&word.to_le_bytes());
        raw.extend_from_slice(&checksum.to_le_bytes());
    }

    let most = HEADER + lz4_flex::block::get_maximum_output_size(raw.len());
    image.resize(most.next_multiple_of(UNIT), 0);
    let compressed = match codec {
        Codec::None => None,
        Codec::Lz4 => lz4_flex::block::compress_into(raw, &mut image[HEADER..]).ok(),
    };
    let units = |stored: usize| (HEADER + stored).div_ceil(UNIT);
    let (codec, stored) = match compressed {
        Some(len) if len + WORTH <= raw.len() => (Codec::Lz4, len),
        _ => {
            image[HEADER..HEADER + raw.len()].copy_from_slice(raw);
            (Codec::None, raw.len())
        }
    };
    image[..HEADER].copy_from_slice(&keys[..HEADER]);
    let [s0, s1] = (stored as u16).to_le_bytes();
    let codec = codec as u8 | if packed { PACKED } else { 0 };
    let own = [s0, s1, VERSION << 4 | codec, page_size.ilog2() as u8];
    image[AT_OWN..HEADER].copy_from_slice(&own);
    let end = units(stored) * UNIT;
    image[HEADER + stored..end].fill(0);
    &image[..end]
}

/// Restores the page of an image into `page`, which has the database's page size.
/// Hints of children become `u32::MAX`; the gap's bytes are undefined.
pub fn decode(image: &[u8], page: &mut [u8]) -> Result<(), CodecError> {
    let header = image.first_chunk::<HEADER>().ok_or(CodecError::Lengths)?;
    let [.., s0, s1, kind, log2] = *header;
    let (version, codec) = (kind >> 4, kind & 15);
    if version == 0 || node::kind(header).is_none() {
        return Err(CodecError::NotAnImage);
    }
    if version > VERSION {
        return Err(CodecError::NewerVersion(version));
    }
    let size = page.len();
    if !(node::PAGE_SIZE_MIN..=node::PAGE_SIZE_MAX).contains(&size)
        || 1_usize.checked_shl(log2.into()) != Some(size)
    {
        return Err(CodecError::PageSize);
    }
    let stored_len = usize::from(u16::from_le_bytes([s0, s1]));
    let payload = image[HEADER..]
        .get(..stored_len)
        .ok_or(CodecError::Lengths)?;
    if (HEADER + stored_len).next_multiple_of(UNIT) != image.len() {
        return Err(CodecError::Lengths);
    }
    let regions = node::regions(header, size).ok_or(CodecError::Header)?;
    let children = node::child_count(header);
    let heap = regions.heap_end - regions.heap_start;
    if codec & PACKED != 0 {
        return decode_packed(codec, header, payload, page, regions);
    }
    // Not more than the page holds: slots, heap and whole children fit, says `regions`.
    let raw_len = regions.low - HEADER + heap + STORED_CHILD * children;
    page[..HEADER].copy_from_slice(header);
    page[AT_OWN..HEADER].fill(0);
    let raw = &mut page[HEADER..HEADER + raw_len];
    match codec {
        0 if stored_len == raw_len => raw.copy_from_slice(payload),
        0 => return Err(CodecError::Lengths),
        1 => match lz4_flex::block::decompress_into(payload, raw) {
            Ok(len) if len == raw_len => {}
            _ => return Err(CodecError::Compressed),
        },
        other => return Err(CodecError::UnknownCodec(other)),
    }
    spread(page, regions, children)
}

/// Restores an integer leaf whose slots are packed.
fn decode_packed(
    codec: u8,
    header: &[u8; HEADER],
    payload: &[u8],
    page: &mut [u8],
    regions: Regions,
) -> Result<(), CodecError> {
    thread_local! {
        static RAW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    if node::kind(header) != Some(Kind::IntLeaf) {
        return Err(CodecError::UnknownCodec(codec));
    }
    page[..HEADER].copy_from_slice(header);
    page[AT_OWN..HEADER].fill(0);
    let mut restore = |raw: &[u8]| {
        let (fences, rest) = raw
            .split_at_checked(SLOTS - HEADER)
            .ok_or(CodecError::Lengths)?;
        page[HEADER..SLOTS].copy_from_slice(fences);
        let taken = node::unpack_slots(rest, page).ok_or(CodecError::Slots)?;
        let heap = &mut page[regions.heap_start..regions.heap_end];
        if rest.len() - taken != heap.len() {
            return Err(CodecError::Lengths);
        }
        heap.copy_from_slice(&rest[taken..]);
        Ok(())
    };
    match codec & !PACKED {
        0 => restore(payload),
        1 => RAW.with_borrow_mut(|raw| {
            raw.resize(1 << header[HEADER - 1], 0);
            match lz4_flex::block::decompress_into(payload, raw) {
                Ok(len) => restore(&raw[..len]),
                Err(_) => Err(CodecError::Compressed),
            }
        }),
        _ => Err(CodecError::UnknownCodec(codec)),
    }
}

/// Moves heap and children from behind the slots to their places. Children go first,
/// from the highest address down: each lands at or above where it comes from, below
/// those already moved.
fn spread(page: &mut [u8], regions: Regions, children: usize) -> Result<(), CodecError> {
    let Regions {
        low,
        heap_start,
        heap_end,
    } = regions;
    let packed = low + (heap_end - heap_start) + STORED_CHILD * children;
    for i in 0..children {
        let from = packed - STORED_CHILD * (i + 1);
        let mut child = [0xff; CHILD];
        child[..STORED_CHILD].copy_from_slice(&page[from..from + STORED_CHILD]);
        let [a, b, c, d, e, f, g, h, ..] = child;
        let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if ExtentRef::from_word(word).is_none() {
            return Err(CodecError::Child);
        }
        let to = node::child_offset(page.len(), i);
        page[to..to + CHILD].copy_from_slice(&child);
    }
    page.copy_within(low..low + (heap_end - heap_start), heap_start);
    Ok(())
}

#[cfg(test)]
mod tests;
