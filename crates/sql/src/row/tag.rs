//! The tag bytes of a row.

/// NULL, and an INTEGER PRIMARY KEY, whose value is the row's key.
pub(super) const NULL: u8 = 0x00;
/// `INTEGER + n` (n from 1 to 8): n bytes, little-endian two's complement.
pub(super) const INTEGER: u8 = 0x00;
/// A real in 8 bytes.
pub(super) const REAL_64: u8 = 0x09;
/// A real that a 32-bit float holds exactly.
pub(super) const REAL_32: u8 = 0x0a;
/// Integral reals, as an integer of 1, 2, 3, 4 or 6 bytes.
pub(super) const REAL_INTEGRAL_1: u8 = 0x0b;
/// See [`REAL_INTEGRAL_1`].
pub(super) const REAL_INTEGRAL_2: u8 = 0x0c;
/// See [`REAL_INTEGRAL_1`].
pub(super) const REAL_INTEGRAL_3: u8 = 0x0d;
/// See [`REAL_INTEGRAL_1`].
pub(super) const REAL_INTEGRAL_4: u8 = 0x0e;
/// See [`REAL_INTEGRAL_1`].
pub(super) const REAL_INTEGRAL_6: u8 = 0x0f;
/// Reals that are an integer of 2, 3 or 4 bytes divided by 100.
pub(super) const REAL_HUNDREDTHS_2: u8 = 0x10;
/// See [`REAL_HUNDREDTHS_2`].
pub(super) const REAL_HUNDREDTHS_3: u8 = 0x11;
/// See [`REAL_HUNDREDTHS_2`].
pub(super) const REAL_HUNDREDTHS_4: u8 = 0x12;
/// Text behind a length of 1, 2 or 4 bytes. Rows of format version 4 have the longer two,
/// in place of far ones.
pub(super) const TEXT_1: u8 = 0x20;
/// See [`TEXT_1`].
pub(super) const TEXT_2: u8 = 0x21;
/// See [`TEXT_1`].
pub(super) const TEXT_4: u8 = 0x22;
/// A blob behind a length of 1, 2 or 4 bytes.
pub(super) const BLOB_1: u8 = 0x24;
/// See [`BLOB_1`].
pub(super) const BLOB_2: u8 = 0x25;
/// See [`BLOB_1`].
pub(super) const BLOB_4: u8 = 0x26;
/// A text whose bytes lie behind those of all columns that are not far; in its place is its
/// length, of 2 or 4 bytes. So what is short in a row lies in the row's first bytes.
pub(super) const FAR_TEXT_2: u8 = 0x28;
/// See [`FAR_TEXT_2`].
pub(super) const FAR_TEXT_4: u8 = 0x29;
/// A blob of this kind.
pub(super) const FAR_BLOB_2: u8 = 0x2c;
/// See [`FAR_BLOB_2`].
pub(super) const FAR_BLOB_4: u8 = 0x2d;
/// `INLINE + n`: the integer n, 0 to 63, without bytes of its own.
pub(super) const INLINE: u8 = 0x40;
/// The largest inline integer.
pub(super) const INLINE_MAX: i64 = 63;
/// `TEXT + n`: a text of n bytes, 0 to 95.
pub(super) const TEXT: u8 = 0x80;
/// The longest text whose length is in its tag.
pub(super) const TEXT_MAX: usize = 95;
/// `BLOB + n`: a blob of n bytes, 0 to 16.
pub(super) const BLOB: u8 = 0xe0;
/// The longest blob whose length is in its tag.
pub(super) const BLOB_MAX: usize = 16;

/// From here on an entry of [`LENGTHS`] is not a length.
pub(super) const NO_LENGTH: u8 = 0xf0;
/// The length stands in front of the bytes.
const PREFIXED: u8 = 0xfe;
/// No such tag.
const INVALID: u8 = 0xff;

/// Bytes that a column of each tag takes.
pub(super) static LENGTHS: [u8; 256] = lengths();

const fn lengths() -> [u8; 256] {
    let mut out = [INVALID; 256];
    out[NULL as usize] = 0;
    let mut n = 1;
    while n <= 8 {
        out[INTEGER as usize + n] = n as u8;
        n += 1;
    }
    out[REAL_64 as usize] = 8;
    out[REAL_32 as usize] = 4;
    out[REAL_INTEGRAL_1 as usize] = 1;
    out[REAL_INTEGRAL_2 as usize] = 2;
    out[REAL_INTEGRAL_3 as usize] = 3;
    out[REAL_INTEGRAL_4 as usize] = 4;
    out[REAL_INTEGRAL_6 as usize] = 6;
    out[REAL_HUNDREDTHS_2 as usize] = 2;
    out[REAL_HUNDREDTHS_3 as usize] = 3;
    out[REAL_HUNDREDTHS_4 as usize] = 4;
    out[FAR_TEXT_2 as usize] = 2;
    out[FAR_TEXT_4 as usize] = 4;
    out[FAR_BLOB_2 as usize] = 2;
    out[FAR_BLOB_4 as usize] = 4;
    let mut n = 0;
    while n < 3 {
        out[TEXT_1 as usize + n] = PREFIXED;
        out[BLOB_1 as usize + n] = PREFIXED;
        n += 1;
    }
    let mut n = 0;
    while n <= INLINE_MAX as usize {
        out[INLINE as usize + n] = 0;
        n += 1;
    }
    let mut n = 0;
    while n <= TEXT_MAX {
        out[TEXT as usize + n] = n as u8;
        n += 1;
    }
    let mut n = 0;
    while n <= BLOB_MAX {
        out[BLOB as usize + n] = n as u8;
        n += 1;
    }
    out
}

/// Whether the bytes of a column lie behind those of all that are not far.
#[inline(always)]
pub(super) const fn is_far(tag: u8) -> bool {
    tag & 0xf8 == FAR_TEXT_2
}

/// Columns from one stored offset to the next.
pub(super) const GROUP: usize = 16;
/// Bytes of a stored offset.
pub(super) const OFFSET_BYTES: usize = 4;

/// Stored offsets of a row of `columns` columns.
pub(super) const fn offsets(columns: usize) -> usize {
    columns.saturating_sub(1) / GROUP
}
