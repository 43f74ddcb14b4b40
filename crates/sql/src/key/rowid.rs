//! Rowids in index entries: ordered, and readable from the end of the key.
//!
//! A tag, then the magnitude shifted left by three bits, big-endian; the low
//! three bits tell the number of bytes, so that the rowid is found without
//! walking over the columns before it. Negative rowids have their bits (not the
//! low three) complemented; their magnitude is that of -1 - rowid.

use super::malformed;
use crate::error::Result;

/// `ROWID ± n`: n bytes follow.
const ROWID: u8 = 0x50;
/// What the low three bits say for nine bytes; 0 to 6 say one to seven.
const NINE: u8 = 7;

/// Bytes that the low three bits of the last byte announce.
fn length(code: u8) -> usize {
    if code == NINE {
        9
    } else {
        usize::from(code) + 1
    }
}

/// Appends a rowid.
#[inline]
pub fn encode_rowid(out: &mut Vec<u8>, rowid: i64) {
    let negative = rowid < 0;
    let magnitude = (rowid ^ (rowid >> 63)) as u64;
    let needed = (64 - magnitude.leading_zeros() + 3).div_ceil(8) as u8;
    let code = if needed <= 7 { needed - 1 } else { NINE };
    let len = length(code);
    // The complement of a negative rowid's magnitude is the rowid itself.
    let payload = (u128::from(rowid as u64) << 3) | u128::from(code);
    out.push(if negative {
        ROWID - len as u8
    } else {
        ROWID + len as u8
    });
    if len <= 7 {
        let word = (payload as u64) << (64 - 8 * len);
        out.extend_from_slice(&word.to_be_bytes());
        out.truncate(out.len() - 8 + len);
    } else {
        out.extend(payload.to_be_bytes().iter().skip(7));
    }
}

/// Takes a rowid off the front of `input`.
///
/// # Errors
/// `SQLITE_CORRUPT`.
#[inline]
pub fn decode_rowid(input: &mut &[u8]) -> Result<i64> {
    let [tag, rest @ ..] = *input else {
        return Err(malformed("index entry without its rowid"));
    };
    let len = usize::from(tag.abs_diff(ROWID));
    let Some((bytes, rest)) = rest.split_at_checked(len) else {
        return Err(malformed("index entry without its rowid"));
    };
    *input = rest;
    read(*tag, bytes)
}

/// The rowid at the end of a key.
///
/// # Errors
/// `SQLITE_CORRUPT`.
#[inline]
pub fn rowid_suffix(key: &[u8]) -> Result<i64> {
    let found = key.last().and_then(|last| {
        let (front, bytes) = key.split_at_checked(key.len().checked_sub(length(last & 7))?)?;
        Some((*front.last()?, bytes))
    });
    match found {
        Some((tag, bytes)) => read(tag, bytes),
        None => Err(malformed("index entry without its rowid")),
    }
}

/// The rowid of an index entry, wherever it stands.
///
/// # Errors
/// `SQLITE_CORRUPT`.
#[inline]
pub fn entry_rowid(key: &[u8], value: &[u8], unique: bool) -> Result<i64> {
    if unique {
        let mut value = value;
        decode_rowid(&mut value)
    } else {
        rowid_suffix(key)
    }
}

#[inline]
fn read(tag: u8, bytes: &[u8]) -> Result<i64> {
    let len = bytes.len();
    let wrong = || malformed("index entry with a wrong rowid");
    let code = bytes.last().ok_or_else(wrong)? & 7;
    if usize::from(tag.abs_diff(ROWID)) != len || length(code) != len {
        return Err(wrong());
    }
    // The ninth byte's bits above 64 are zeros or, for negative rowids, ones
    // that are set below.
    let low = bytes.iter().fold(0u64, |n, b| (n << 8) | u64::from(*b)) >> 3;
    let bits = match bytes {
        [first, _, _, _, _, _, _, _, _] => low | (u64::from(*first) << 61),
        _ => low,
    };
    if tag > ROWID {
        return i64::try_from(bits).map_err(|_| wrong());
    }
    // The bits above those stored are ones, as in the complement.
    let used = (8 * len - 3).min(64) as u32;
    let full = if used < 64 {
        bits | (u64::MAX << used)
    } else {
        bits
    };
    if full >> 63 == 1 {
        Ok(full as i64)
    } else {
        Err(wrong())
    }
}
