//! Decoding key columns.

use super::{KeyColumn, Residue, malformed, tag};
use crate::error::Result;
use crate::value::{LENGTH_MAX, Value, ValueRef};

/// A decoded column: borrowed from the key where its bytes stand there as they
/// are.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyValue<'a> {
    /// A number, NULL, or bytes of the key itself.
    Borrowed(ValueRef<'a>),
    /// Bytes that had to be unescaped, complemented or restored.
    Owned(Value),
}

impl KeyValue<'_> {
    /// Borrows it either way.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            KeyValue::Borrowed(v) => *v,
            KeyValue::Owned(v) => v.as_ref(),
        }
    }

    /// Owns it either way.
    pub fn into_value(self) -> Value {
        match self {
            KeyValue::Borrowed(v) => v.to_value(),
            KeyValue::Owned(v) => v,
        }
    }
}

/// Takes a column off the front of `input` and restores its exact value with
/// its residue, None where it has none.
///
/// # Errors
/// `SQLITE_CORRUPT`.
#[inline]
pub fn decode<'a>(
    input: &mut &'a [u8],
    column: KeyColumn,
    residue: Option<Residue<'_>>,
) -> Result<KeyValue<'a>> {
    let [first, rest @ ..] = *input else {
        return Err(malformed("key shorter than its columns"));
    };
    let mask = if column.descending { 0xff } else { 0 };
    let tag = first ^ mask;
    match tag {
        tag::NULL => {
            *input = rest;
            Ok(KeyValue::Borrowed(ValueRef::Null))
        }
        tag::TEXT | tag::BLOB => bytes(input, rest, tag == tag::TEXT, mask, residue),
        _ => {
            *input = rest;
            number(input, tag, mask, column.real, residue).map(KeyValue::Borrowed)
        }
    }
}

/// Takes a number without a fraction, of at most seven bytes, off the front of `input`, which
/// is what most numbers are. None: there is something else, and nothing is taken. What a
/// residue says of it is left to [`decode`].
#[inline(always)]
pub fn take_integer(input: &mut &[u8], descending: bool) -> Option<i64> {
    let [first, rest @ ..] = *input else {
        return None;
    };
    let mask = if descending { 0xff } else { 0 };
    let tag = first ^ mask;
    let len = usize::from(tag.abs_diff(tag::ZERO));
    if len >= size_of::<u64>() {
        return None;
    }
    let word = match rest.first_chunk() {
        // In two steps, since all bits may have to go.
        Some(bytes) => (u64::from_be_bytes(*bytes) >> 1) >> (63 - 8 * len),
        None => {
            let bytes = rest.get(..len)?.iter();
            bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    };
    // As in `number`.
    let negative = tag < tag::ZERO;
    let doubled = match descending == negative {
        true => word,
        false => word ^ ((1 << (8 * len)) - 1),
    };
    if doubled & 1 == 1 {
        return None;
    }
    *input = rest.get(len..)?;
    let whole = (doubled >> 1) as i64;
    Some(if negative { -whole } else { whole })
}

/// Takes a column off the front of `input` without restoring it.
///
/// # Errors
/// `SQLITE_CORRUPT`.
#[inline]
pub fn skip(input: &mut &[u8]) -> Result<()> {
    let [first, rest @ ..] = *input else {
        return Err(malformed("key shorter than its columns"));
    };
    let is_complemented = *first >= tag::COMPLEMENTED;
    if take_integer(input, is_complemented).is_some() {
        return Ok(());
    }
    let mask = if is_complemented { 0xff } else { 0 };
    let tag = first ^ mask;
    *input = rest;
    match tag {
        tag::NULL => Ok(()),
        tag::TEXT | tag::BLOB => {
            let end = first_below(rest, mask, tag::END + 1);
            *input = end
                .and_then(|e| rest.get(e + 1..))
                .ok_or_else(|| malformed("key text without end"))?;
            Ok(())
        }
        _ => number(input, tag, mask, false, None).map(|_| ()),
    }
}

fn number(
    input: &mut &[u8],
    tag: u8,
    mask: u8,
    real_column: bool,
    residue: Option<Residue<'_>>,
) -> Result<ValueRef<'static>> {
    let impossible = || malformed("key with an impossible number");
    let negative = tag < tag::ZERO;
    let signed = |magnitude: f64| {
        if magnitude.is_nan() {
            Err(impossible())
        } else {
            Ok(ValueRef::Real(if negative {
                -magnitude
            } else {
                magnitude
            }))
        }
    };
    // Bytes of negative numbers are complemented, and those of DESC once more.
    let flip = if negative { !mask } else { mask };
    if tag == tag::NEGATIVE_BIG || tag == tag::POSITIVE_BIG {
        return signed(f64::from_bits(take(input, 8, flip)? as u64));
    }
    let len = tag.abs_diff(tag::ZERO);
    if len > tag::MAGNITUDE_MAX {
        return Err(malformed("key with an unknown column type"));
    }
    let doubled = take(input, usize::from(len), flip)?;
    if doubled > 1 << 64 {
        return Err(impossible());
    }
    let whole = (doubled >> 1) as u64;
    if doubled & 1 == 1 {
        return signed(whole as f64 + f64::from_bits(take(input, 8, flip)? as u64));
    }
    if residue == Some(Residue::NegativeZero) {
        return Ok(ValueRef::Real(-0.0));
    }
    if real_column != (residue == Some(Residue::OtherNumber)) {
        return signed(whole as f64);
    }
    match i64::try_from(whole) {
        Ok(i) => Ok(ValueRef::Integer(if negative { -i } else { i })),
        Err(_) if negative => Ok(ValueRef::Integer(i64::MIN)),
        // 2^63 itself is never an integer.
        Err(_) => signed(whole as f64),
    }
}

/// Takes `len` big-endian bytes (at most 9).
#[inline]
fn take(input: &mut &[u8], len: usize, flip: u8) -> Result<u128> {
    let Some((bytes, rest)) = input.split_at_checked(len) else {
        return Err(malformed("key shorter than its columns"));
    };
    *input = rest;
    let fold = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0u64, |n, b| (n << 8) | u64::from(b ^ flip))
    };
    Ok(match bytes {
        [first, rest @ ..] if len == 9 => (u128::from(first ^ flip) << 64) | u128::from(fold(rest)),
        _ => u128::from(fold(bytes)),
    })
}

/// The place of the first byte that is, complemented where `mask` says so, less than
/// `limit` (at most 128), eight at a time.
#[inline]
fn first_below(bytes: &[u8], mask: u8, limit: u8) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let (flip, least) = (EACH * u64::from(mask), EACH * u64::from(limit));
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word) ^ flip;
        // The lowest bit set is that of the first such byte; those above may be wrong.
        let found = word.wrapping_sub(least) & !word & (EACH << 7);
        if found != 0 {
            return Some(i * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let found = rest.iter().position(|byte| byte ^ mask < limit)?;
    Some(words.len() * 8 + found)
}

/// A text or blob; `rest` follows its tag.
fn bytes<'a>(
    input: &mut &'a [u8],
    rest: &'a [u8],
    is_text: bool,
    mask: u8,
    residue: Option<Residue<'_>>,
) -> Result<KeyValue<'a>> {
    // Mostly no byte was escaped, and the end comes first of both.
    let plain = first_below(rest, mask, tag::ESCAPE + 1);
    let plain = plain.filter(|at| rest.get(*at) == Some(&(tag::END ^ mask)));
    let is_plain = plain.is_some();
    let end = plain.or_else(|| first_below(rest, mask, tag::END + 1));
    let Some((stored, after)) = end.and_then(|e| Some((rest.get(..e)?, rest.get(e + 1..)?))) else {
        return Err(malformed("key text without end"));
    };
    *input = after;
    if mask == 0 && residue.is_none() && is_plain {
        return Ok(KeyValue::Borrowed(if is_text {
            ValueRef::Text(stored)
        } else {
            ValueRef::Blob(stored)
        }));
    }
    let mut out = Vec::with_capacity(stored.len());
    let mut each = stored.iter().map(|b| b ^ mask);
    while let Some(b) = each.next() {
        if b != tag::ESCAPE {
            out.push(b);
            continue;
        }
        match each.next() {
            Some(escaped @ 1..=2) => out.push(escaped - 1),
            _ => return Err(malformed("key with a wrong escape")),
        }
    }
    match residue {
        Some(Residue::UpperCase(bitmap)) => {
            for (i, b) in out.iter_mut().enumerate() {
                if bitmap
                    .get(i / 8)
                    .is_some_and(|bits| (bits >> (i % 8)) & 1 == 1)
                {
                    b.make_ascii_uppercase();
                }
            }
        }
        Some(Residue::Spaces(count)) => {
            let wanted = out.len().checked_add(count).filter(|n| *n <= LENGTH_MAX);
            let Some(wanted) = wanted else {
                return Err(malformed("key with an impossible length"));
            };
            out.resize(wanted, b' ');
        }
        _ => {}
    }
    Ok(KeyValue::Owned(if is_text {
        Value::Text(out)
    } else {
        Value::Blob(out)
    }))
}
