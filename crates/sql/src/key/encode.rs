//! Encoding key columns and index entries.

use super::{KeyColumn, encode_residue, encode_rowid, tag};
use crate::value::{Collation, ValueRef};

/// 2^63, the magnitude up to which numbers are encoded as integer and fraction.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Appends a column's key encoding.
#[inline]
pub fn encode(out: &mut Vec<u8>, value: ValueRef<'_>, column: KeyColumn) {
    let start = out.len();
    match value {
        ValueRef::Integer(i) => integer(out, i.unsigned_abs(), i < 0),
        ValueRef::Text(bytes) => text(out, bytes, column.collation),
        ValueRef::Real(r) => real(out, r),
        ValueRef::Null => out.push(tag::NULL),
        ValueRef::Blob(bytes) => {
            out.push(tag::BLOB);
            escape(out, bytes, false);
            out.push(tag::END);
        }
    }
    if column.descending {
        for b in out.iter_mut().skip(start) {
            *b = !*b;
        }
    }
}

/// Appends the encodings of the first columns of a key, for a seek.
pub fn encode_prefix<'a>(
    out: &mut Vec<u8>,
    columns: &[KeyColumn],
    values: impl IntoIterator<Item = ValueRef<'a>>,
) {
    for (column, value) in columns.iter().zip(values) {
        encode(out, value, *column);
    }
}

/// Builds a whole index entry; `key` and `value` are cleared first. True where
/// another entry with the same key would break uniqueness.
pub fn encode_entry<'a>(
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
    columns: &[KeyColumn],
    values: impl IntoIterator<Item = ValueRef<'a>>,
    rowid: i64,
    unique: bool,
) -> bool {
    key.clear();
    value.clear();
    if unique {
        encode_rowid(value, rowid);
    }
    let mut nulls = false;
    for (i, (column, v)) in columns.iter().zip(values).enumerate() {
        nulls |= v.is_null();
        encode(key, v, *column);
        encode_residue(value, i, v, *column);
    }
    let exclusive = unique && !nulls;
    if !exclusive {
        encode_rowid(key, rowid);
    }
    exclusive
}

#[inline]
fn integer(out: &mut Vec<u8>, magnitude: u64, negative: bool) {
    if magnitude >> 63 != 0 {
        return wide(out, negative);
    }
    number(out, magnitude << 1, negative);
}

/// Tag and bytes of twice the magnitude, plus one where a fraction follows.
#[inline]
fn number(out: &mut Vec<u8>, doubled: u64, negative: bool) {
    let len = 8 - doubled.leading_zeros() / 8;
    let shifted = if len == 0 {
        0
    } else {
        doubled << (64 - 8 * len)
    };
    let (tag, word) = if negative {
        (tag::ZERO - len as u8, !shifted)
    } else {
        (tag::ZERO + len as u8, shifted)
    };
    let mut bytes = [tag; 9];
    bytes[1..].copy_from_slice(&word.to_be_bytes());
    out.extend_from_slice(&bytes);
    out.truncate(out.len() - 8 + len as usize);
}

/// A magnitude of 2^63, whose double takes nine bytes.
#[cold]
fn wide(out: &mut Vec<u8>, negative: bool) {
    let doubled = (1u128 << 64).to_be_bytes();
    out.push(if negative {
        tag::ZERO - tag::MAGNITUDE_MAX
    } else {
        tag::ZERO + tag::MAGNITUDE_MAX
    });
    out.extend(
        doubled
            .iter()
            .skip(7)
            .map(|b| if negative { !b } else { *b }),
    );
}

fn real(out: &mut Vec<u8>, r: f64) {
    if r.is_nan() {
        out.push(tag::NULL);
        return;
    }
    let magnitude = r.abs();
    let negative = r < 0.0;
    if magnitude > LIMIT {
        let (tag, bits) = if negative {
            (tag::NEGATIVE_BIG, !magnitude.to_bits())
        } else {
            (tag::POSITIVE_BIG, magnitude.to_bits())
        };
        out.push(tag);
        out.extend_from_slice(&bits.to_be_bytes());
        return;
    }
    let whole = magnitude as u64;
    let fraction = magnitude - whole as f64;
    if fraction == 0.0 {
        return integer(out, whole, negative);
    }
    // A fraction means a magnitude below 2^52, and the difference is exact.
    number(out, (whole << 1) | 1, negative);
    let bits = fraction.to_bits();
    out.extend_from_slice(&if negative { !bits } else { bits }.to_be_bytes());
}

#[inline]
fn text(out: &mut Vec<u8>, bytes: &[u8], collation: Collation) {
    out.push(tag::TEXT);
    match collation {
        Collation::Binary | Collation::Program(_) => escape(out, bytes, false),
        Collation::NoCase => escape(out, bytes, true),
        Collation::RTrim => escape(out, crate::value::trim_spaces(bytes), false),
    }
    out.push(tag::END);
}

/// Appends bytes with 0 and 1 escaped.
#[inline]
fn escape(out: &mut Vec<u8>, bytes: &[u8], fold: bool) {
    let start = out.len();
    if bytes
        .iter()
        .fold(true, |plain, b| plain & (*b > tag::ESCAPE))
    {
        out.extend_from_slice(bytes);
    } else {
        out.reserve(bytes.len() + 8);
        for &b in bytes {
            if b > tag::ESCAPE {
                out.push(b);
            } else {
                out.extend_from_slice(&[tag::ESCAPE, b + 1]);
            }
        }
    }
    if fold && let Some(copied) = out.get_mut(start..) {
        copied.make_ascii_lowercase();
    }
}
