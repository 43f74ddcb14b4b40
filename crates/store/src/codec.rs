//! Page images: how a page lies in its extent on disk.
//!
//! ```text
//! 0   the page's header, of which the last four bytes are the image's own:
//! 28    stored length u16 of the payload | version and codec u8 | page size and dictionary u8
//! 32  payload, then zeros up to a multiple of 64
//! ```
//!
//! Version and codec (bit 0: lz4, bit 1: packed slots) are a nibble each, the version
//! the higher one. The last byte has log2 of the page size in its lower five bits and
//! above them the number of the [dictionary] that the payload was
//! compressed with, 0 for none. An image never takes more room than its page.
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
//! compares the checksum before and runs [`node::check`](fn@crate::node::check) after it.

pub(crate) mod dictionary;
mod lz4;

use crate::node::{self, CHILD, HEADER, Kind, Regions};
pub(crate) use dictionary::Dictionary;
use std::cell::RefCell;
use std::sync::Arc;

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
/// In the codec's nibble: the payload is compressed.
const LZ4: u8 = 1;
/// In the codec's nibble: the slots are packed.
const PACKED: u8 = 2;
/// Bits of log2 of the page size in the byte that it shares with a dictionary.
const LOG2_BITS: u32 = 5;

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
    /// A dictionary is needed that is not at hand.
    #[error("page image compressed with dictionary {0}, which its tree does not have")]
    NoDictionary(u8),
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
    payload: Vec<u8>,
    packing: Option<Packing>,
    image: Vec<u8>,
}

/// What a payload is compressed in.
#[derive(Debug)]
struct Packing {
    /// The dictionary, and behind it the payload.
    window: Box<lz4::Window>,
    /// The dictionary in the window and its hash table.
    dictionary: Option<Arc<Dictionary>>,
    preset: Box<lz4::Table>,
    table: Box<lz4::Table>,
}

impl Default for Packing {
    fn default() -> Self {
        let window = Box::new([0; _]);
        let preset = lz4::preset(&window, 0);
        Self {
            window,
            dictionary: None,
            table: preset.clone(),
            preset,
        }
    }
}

impl Packing {
    /// Compresses a payload into `out`; its length there, if it fits.
    fn pack(
        &mut self,
        payload: &[u8],
        dictionary: Option<&Arc<Dictionary>>,
        out: &mut [u8],
    ) -> Option<usize> {
        let bytes = dictionary.map_or(&[][..], |dictionary| dictionary.bytes());
        let from = bytes.len();
        let serial = |dictionary: Option<&Arc<Dictionary>>| dictionary.map(|it| it.serial());
        if serial(dictionary) != serial(self.dictionary.as_ref()) {
            self.window[..from].copy_from_slice(bytes);
            self.preset = lz4::preset(&self.window, from);
            self.dictionary = dictionary.cloned();
        }
        let place = from..from + payload.len();
        self.window[place.clone()].copy_from_slice(payload);
        self.table.copy_from_slice(&*self.preset);
        lz4::compress(&self.window, place, &mut self.table, out)
    }
}

/// CRC32C of an image, padding included.
#[inline]
pub fn checksum(image: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(image)
}

/// The payload of a compact page, appended to `raw`, and whether its slots are
/// packed.
fn gather(keys: &[u8], children: &[(u64, u32)], raw: &mut Vec<u8>) -> bool {
    let page_size = keys.len() + CHILD * children.len();
    let start = raw.len();
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
            raw.truncate(start + SLOTS - HEADER);
            node::pack_slots(keys, raw);
            packed = HEADER + raw.len() - start <= low;
            if !packed {
                raw.truncate(start);
                raw.extend_from_slice(&keys[HEADER..low]);
            }
        }
        raw.extend_from_slice(&keys[heap_start..heap_end]);
    }
    for (word, checksum) in children.iter().rev() {
        raw.extend_from_slice(&word.to_le_bytes());
        raw.extend_from_slice(&checksum.to_le_bytes());
    }
    packed
}

/// The page without its garbage, in `buffer` if there is any.
fn compacted<'p>(keys: &'p [u8], buffer: &'p mut Vec<u8>) -> &'p [u8] {
    if node::is_compact(keys) {
        return keys;
    }
    buffer.clear();
    buffer.extend_from_slice(keys);
    node::compact(buffer);
    buffer
}

/// What a leaf's image would hold uncompressed: what dictionaries are trained on.
pub(crate) fn payload(leaf: &[u8]) -> Vec<u8> {
    let (mut buffer, mut raw) = (Vec::new(), Vec::new());
    gather(compacted(leaf, &mut buffer), &[], &mut raw);
    raw
}

/// Bytes that the payload takes in an image with this dictionary, or none.
pub(crate) fn compressed_len(
    payload: &[u8],
    dictionary: Option<&Arc<Dictionary>>,
    scratch: &mut Scratch,
) -> usize {
    scratch.image.resize(payload.len(), 0);
    let packing = scratch.packing.get_or_insert_default();
    let compressed = packing.pack(payload, dictionary, &mut scratch.image);
    compressed.map_or(payload.len(), |len| len.min(payload.len()))
}

/// Makes the image of a page: `keys` is its key area (the whole page of a leaf) and
/// `children` are the references and checksums of its children, as many as it has.
pub fn encode<'a>(
    keys: &[u8],
    children: &[(u64, u32)],
    codec: Codec,
    dictionary: Option<&Arc<Dictionary>>,
    scratch: &'a mut Scratch,
) -> &'a [u8] {
    debug_assert_eq!(children.len(), node::child_count(keys));
    debug_assert!(
        children
            .iter()
            .all(|(word, _)| !ExtentRef::is_handle(*word))
    );
    let Scratch {
        page,
        payload,
        packing,
        image,
    } = scratch;
    let page_size = keys.len() + CHILD * children.len();
    let keys = compacted(keys, page);
    payload.clear();
    let packed = gather(keys, children, payload);
    let raw_len = payload.len();

    // Room for the payload as it is; compressed it has to be shorter.
    image.resize((HEADER + raw_len).next_multiple_of(UNIT), 0);
    let compressed = match codec {
        Codec::Lz4 if raw_len > WORTH => {
            let packing = packing.get_or_insert_default();
            packing.pack(payload, dictionary, &mut image[HEADER..])
        }
        _ => None,
    };
    let mut own = if packed { PACKED } else { 0 };
    let mut number = 0;
    let stored = match compressed {
        Some(len) if len + WORTH <= raw_len => {
            own |= LZ4;
            number = dictionary.map_or(0, |dictionary| dictionary.number());
            len
        }
        _ => {
            image[HEADER..HEADER + raw_len].copy_from_slice(payload);
            raw_len
        }
    };
    image[..HEADER].copy_from_slice(&keys[..HEADER]);
    let [s0, s1] = (stored as u16).to_le_bytes();
    let size = page_size.ilog2() as u8 | number << LOG2_BITS;
    image[AT_OWN..HEADER].copy_from_slice(&[s0, s1, VERSION << 4 | own, size]);
    let end = (HEADER + stored).next_multiple_of(UNIT);
    image[HEADER + stored..end].fill(0);
    &image[..end]
}

/// The number of the dictionary that the image needs, 0 for none.
pub(crate) fn dictionary_of(image: &[u8]) -> u8 {
    let last = image.get(HEADER - 1);
    last.map_or(0, |byte| byte >> LOG2_BITS)
}

/// Restores the page of an image into `page`, which has the database's page size,
/// with the dictionary that [`dictionary_of`] names. Hints of children become
/// `u32::MAX`; the gap's bytes are undefined.
pub fn decode(
    image: &[u8],
    page: &mut [u8],
    dictionary: Option<&Dictionary>,
) -> Result<(), CodecError> {
    let header = image.first_chunk::<HEADER>().ok_or(CodecError::Lengths)?;
    let [.., s0, s1, kind, size] = *header;
    let (version, codec) = (kind >> 4, kind & 15);
    if version == 0 || node::kind(header).is_none() {
        return Err(CodecError::NotAnImage);
    }
    if version > VERSION {
        return Err(CodecError::NewerVersion(version));
    }
    let log2 = u32::from(size) & ((1 << LOG2_BITS) - 1);
    let size = page.len();
    if !(node::PAGE_SIZE_MIN..=node::PAGE_SIZE_MAX).contains(&size)
        || 1_usize.checked_shl(log2) != Some(size)
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
    if codec & !(LZ4 | PACKED) != 0
        || (codec & PACKED != 0 && node::kind(header) != Some(Kind::IntLeaf))
    {
        return Err(CodecError::UnknownCodec(codec));
    }
    let dictionary = match (dictionary_of(image), dictionary) {
        (0, _) => None,
        (_, _) if codec & LZ4 == 0 => return Err(CodecError::UnknownCodec(codec)),
        (number, Some(dictionary)) if dictionary.number() == number => Some(dictionary),
        (number, _) => return Err(CodecError::NoDictionary(number)),
    };
    page[..HEADER].copy_from_slice(header);
    page[AT_OWN..HEADER].fill(0);
    let restore = |raw: &[u8], page: &mut [u8]| match codec & PACKED {
        0 => restore(raw, page, regions),
        _ => restore_packed(raw, page, regions),
    };
    if codec & LZ4 == 0 {
        return restore(payload, page);
    }
    let mut decompress = |window: &mut Window| {
        let raw = window.decompress(payload, dictionary, size)?;
        restore(raw, page)
    };
    // There is none where the thread has ended, and its variables let go of things.
    WINDOW
        .try_with(|window| decompress(&mut window.borrow_mut()))
        .unwrap_or_else(|_| decompress(&mut Window::new()))
}

/// Where payloads are decompressed.
struct Window {
    bytes: Option<Box<lz4::Restoring>>,
    /// The serial of the dictionary at the start, 0 for none.
    serial: u64,
}

thread_local! {
    static WINDOW: RefCell<Window> = const { RefCell::new(Window::new()) };
}

impl Window {
    const fn new() -> Self {
        Self {
            bytes: None,
            serial: 0,
        }
    }

    /// Restores a payload of at most `most` bytes.
    fn decompress(
        &mut self,
        payload: &[u8],
        dictionary: Option<&Dictionary>,
        most: usize,
    ) -> Result<&[u8], CodecError> {
        let before = dictionary.map_or(&[][..], Dictionary::bytes);
        let serial = dictionary.map_or(0, Dictionary::serial);
        let from = before.len();
        let bytes = self.bytes.get_or_insert_with(|| Box::new([0; _]));
        if self.serial != serial {
            bytes[..from].copy_from_slice(before);
            self.serial = serial;
        }
        let end =
            lz4::decompress(payload, bytes, from, from + most).ok_or(CodecError::Compressed)?;
        Ok(&bytes[from..end])
    }
}

/// Restores a page from its payload.
fn restore(raw: &[u8], page: &mut [u8], regions: Regions) -> Result<(), CodecError> {
    let children = node::child_count(page);
    let heap = regions.heap_end - regions.heap_start;
    // Not more than the page holds: slots, heap and whole children fit, says `regions`.
    let raw_len = regions.low - HEADER + heap + STORED_CHILD * children;
    if raw.len() != raw_len {
        return Err(CodecError::Lengths);
    }
    let (slots, rest) = raw.split_at(regions.low - HEADER);
    let (heap, rest) = rest.split_at(heap);
    page[HEADER..regions.low].copy_from_slice(slots);
    page[regions.heap_start..regions.heap_end].copy_from_slice(heap);
    let (stored, _) = rest.as_chunks::<STORED_CHILD>();
    for (index, stored) in stored.iter().rev().enumerate() {
        let mut child = [0xff; CHILD];
        child[..STORED_CHILD].copy_from_slice(stored);
        let [a, b, c, d, e, f, g, h, ..] = child;
        let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if ExtentRef::from_word(word).is_none() {
            return Err(CodecError::Child);
        }
        let to = node::child_offset(page.len(), index);
        page[to..to + CHILD].copy_from_slice(&child);
    }
    Ok(())
}

/// Restores an integer leaf whose slots are packed.
fn restore_packed(raw: &[u8], page: &mut [u8], regions: Regions) -> Result<(), CodecError> {
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
}

#[cfg(test)]
mod tests;
