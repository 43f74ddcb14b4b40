//! One record, byte by byte.
//!
//! ```text
//!  0  u32  crc      CRC-32C of bytes 4 .. 25+len, XOR seed(salt, position)
//!  4  u32  len      payload bytes
//!  8  u64  seq      commit sequence number
//! 16  u64  durable  every sequence number up to this was durable when this was written
//! 24  u8   kind
//! 25  payload, then zeros up to a multiple of 8
//! ```
//!
//! Little-endian. The seed depends on the generation's random salt and on the
//! record's byte position in its file, so a record judged valid was written for
//! this generation at this place, whatever surrounds it.

use fulgurite_disk::mutation::{Mutation, planted};

use super::crc;

/// Bytes before the payload.
pub(super) const HEADER_BYTES: usize = 25;

/// The largest payload of one record.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// The bytes of a record without payload, which is also the smallest record.
pub(super) const EMPTY_RECORD_BYTES: u64 = record_bytes(0);

/// What a record means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A transaction's changes.
    Commit,
    /// A bulk transaction whose pages are in the data file already.
    Attach,
    /// Reserved: a transaction over several files, ready to commit.
    Prepare,
    /// Reserved: the outcome of such a transaction.
    Decide,
}

/// Begins a generation, and says up to where its predecessor was durable. Its
/// sequence number is that of the last record before it.
pub(super) const KIND_BEGIN: u8 = 64;

impl Kind {
    /// The byte that stands for it.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Attach => 2,
            Self::Prepare => 3,
            Self::Decide => 4,
        }
    }

    /// What a byte stands for.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Commit),
            2 => Some(Self::Attach),
            3 => Some(Self::Prepare),
            4 => Some(Self::Decide),
            _ => None,
        }
    }
}

/// The bytes a record takes in the log, for a payload of at most
/// [`PAYLOAD_BYTES_MAX`].
pub(super) const fn record_bytes(payload_len: usize) -> u64 {
    (HEADER_BYTES as u64 + payload_len as u64).next_multiple_of(8)
}

/// The fields before the payload, less the checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) len: u32,
    pub(super) seq: u64,
    pub(super) durable: u64,
    pub(super) kind: u8,
}

/// The zeros behind a payload of so many bytes.
pub(super) fn padding(payload_len: usize) -> &'static [u8] {
    const ZEROS: [u8; 8] = [0; 8];
    &ZEROS[..record_bytes(payload_len) as usize - HEADER_BYTES - payload_len]
}

impl Head {
    /// The head of a record at `position` whose payload is `parts`, checksum
    /// and all.
    pub(super) fn seal(&self, salt: u64, position: u64, parts: &[&[u8]]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let checksum = self.checksum(salt, position, parts);
        bytes[0..4].copy_from_slice(&checksum.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seq.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.durable.to_le_bytes());
        bytes[24] = self.kind;
        bytes
    }

    /// Lays a whole record out in `place`, which is as long as the record. The
    /// checksum is computed from where the caller has the payload, not from the
    /// copy (see `crc.rs`).
    #[inline]
    pub(super) fn write_record(&self, place: &mut [u8], salt: u64, position: u64, payload: &[u8]) {
        let checksum = self.checksum(salt, position, &[payload]);
        // The padding is less than this; the rest of it is written over.
        if let Some(last) = place.last_chunk_mut::<8>() {
            *last = [0; 8];
        }
        let first = u64::from(checksum) | u64::from(self.len) << 32;
        place[0..8].copy_from_slice(&first.to_le_bytes());
        place[8..16].copy_from_slice(&self.seq.to_le_bytes());
        place[16..24].copy_from_slice(&self.durable.to_le_bytes());
        place[24] = self.kind;
        place[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
    }

    /// The checksum of the record at `position` whose payload is `parts`.
    #[inline]
    fn checksum(&self, salt: u64, position: u64, parts: &[&[u8]]) -> u32 {
        crc::of_record(self.len, self.seq, self.durable, self.kind, parts) ^ seed(salt, position)
    }

    /// The checksum found, and the fields.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> (u32, Self) {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let head = Self {
            len: u32_at(4),
            seq: u64_at(8),
            durable: u64_at(16),
            kind: bytes[24],
        };
        (u32_at(0), head)
    }

    /// The bytes the whole record takes.
    pub(super) fn total_bytes(&self) -> u64 {
        record_bytes(self.len as usize)
    }
}

/// What a generation and a position mix into a record's checksum: the low half
/// of SplitMix64's output function over `salt + position`.
pub(super) fn seed(salt: u64, position: u64) -> u32 {
    if planted(Mutation::NoSalt) {
        return 0;
    }
    let mut x = salt.wrapping_add(position);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as u32
}

/// The checksum of a record that lies in one piece, from its `len` field to the
/// end of its payload.
pub(super) fn checksum_in_place(salt: u64, position: u64, from_len_field: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(from_len_field) ^ seed(salt, position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_survives_encoding() {
        let head = Head {
            len: 0x0102_0304,
            seq: u64::MAX - 7,
            durable: 1 << 40,
            kind: 9,
        };
        let (checksum, decoded) = Head::decode(&head.seal(1, 2, &[b"x"]));
        assert_eq!(checksum, head.checksum(1, 2, &[b"x"]));
        assert_eq!(decoded, head);
    }

    #[test]
    fn sizes_are_aligned() {
        assert_eq!(EMPTY_RECORD_BYTES, 32);
        assert_eq!(record_bytes(7), 32);
        assert_eq!(record_bytes(8), 40);
    }

    #[test]
    fn a_record_is_the_same_in_parts_and_in_place_and_depends_on_the_place() {
        for payload in [&b""[..], b"hello", b"seven..", &[0xff; 128]] {
            let head = Head {
                len: payload.len() as u32,
                seq: 3,
                durable: 2,
                kind: 1,
            };
            let (a, b) = payload.split_at(payload.len() / 2);
            let mut whole = head.seal(11, 4096, &[a, b"", b]).to_vec();
            whole.extend_from_slice(payload);
            let (stored, _) = Head::decode(whole.first_chunk().unwrap());
            assert_eq!(stored, checksum_in_place(11, 4096, &whole[4..]));
            assert_ne!(stored, checksum_in_place(11, 4104, &whole[4..]));
            assert_ne!(stored, checksum_in_place(12, 4096, &whole[4..]));
            let bytes = record_bytes(payload.len()) as usize;
            whole.resize(bytes, 0);
            let mut place = vec![0xAA; bytes];
            head.write_record(&mut place, 11, 4096, payload);
            assert_eq!(place, whole);
        }
    }

    #[test]
    fn known_vector() {
        assert_eq!(crc_fast::crc32_iscsi(b"123456789"), 0xe306_9283);
    }
}
