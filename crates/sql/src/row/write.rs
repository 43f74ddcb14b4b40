//! Encoding rows.

use super::tag;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// Most columns a row can have.
pub const COLUMNS_MAX: usize = 0x7fff;

/// Encodes rows.
pub struct RowWriter;

impl RowWriter {
    /// Appends a row of these columns to `out`. An INTEGER PRIMARY KEY is passed
    /// as NULL: its value is the row's key.
    ///
    /// # Errors
    /// `SQLITE_TOOBIG` for more than [`COLUMNS_MAX`] columns or 4 GiB.
    #[inline]
    pub fn encode<'a, I>(out: &mut Vec<u8>, values: I) -> Result<()>
    where
        I: IntoIterator<Item = ValueRef<'a>>,
        I::IntoIter: ExactSizeIterator,
    {
        let values = values.into_iter();
        let count = values.len();
        if count < 0x80 {
            out.push(count as u8);
        } else if count <= COLUMNS_MAX {
            out.extend_from_slice(&[0x80 | (count >> 8) as u8, count as u8]);
        } else {
            return Err(Error::too_big());
        }
        let offsets_start = out.len();
        let tags_start = offsets_start + tag::offsets(count) * tag::OFFSET_BYTES;
        let body_start = tags_start + count;
        out.extend(std::iter::repeat_n(tag::NULL, body_start - offsets_start));
        let mut far = Vec::new();
        for (i, value) in values.take(count).enumerate() {
            if i > 0 && i % tag::GROUP == 0 {
                let offset = u32::try_from(out.len() - body_start).map_err(|_| Error::too_big())?;
                let at = offsets_start + (i / tag::GROUP - 1) * tag::OFFSET_BYTES;
                if let Some(slot) = out.get_mut(at..at + tag::OFFSET_BYTES) {
                    slot.copy_from_slice(&offset.to_le_bytes());
                }
            }
            let tag = append(out, value)?;
            if tag::is_far(tag) {
                far.extend(bytes_of(value));
            }
            if let Some(slot) = out.get_mut(tags_start + i) {
                *slot = tag;
            }
        }
        far.into_iter()
            .for_each(|bytes| out.extend_from_slice(bytes));
        Ok(())
    }
}

/// Most columns of a row that [`RowWriter::encode_integers`] takes: with these it has no
/// stored offsets.
pub const FEW: usize = tag::GROUP;

impl RowWriter {
    /// As [`encode`](Self::encode) for a row of integers and NULLs, of [`FEW`] columns at
    /// most, which is put together beside `out`.
    #[inline]
    pub fn encode_integers<I>(out: &mut Vec<u8>, values: I)
    where
        I: ExactSizeIterator<Item = Option<i64>>,
    {
        let count = values.len();
        debug_assert!(count <= FEW, "its offsets would be missing");
        let mut tags = [tag::NULL; 1 + FEW];
        let mut body = [0; FEW * 8];
        let mut end = 0;
        let [first, of_columns @ ..] = &mut tags;
        *first = count as u8;
        for (slot, value) in of_columns.iter_mut().zip(values) {
            let Some(i) = value else { continue };
            if (0..=tag::INLINE_MAX).contains(&i) {
                *slot = tag::INLINE + i as u8;
            } else if let Some(bytes) = body.get_mut(end..end + 8) {
                let len = integer_length(i);
                bytes.copy_from_slice(&i.to_le_bytes());
                *slot = tag::INTEGER + len as u8;
                end += len;
            }
        }
        out.extend_from_slice(tags.get(..=count).unwrap_or(&[]));
        out.extend_from_slice(body.get(..end).unwrap_or(&[]));
    }
}

/// A text or blob.
fn bytes_of(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    }
}

/// Appends the bytes of one column, of a far one its length, and answers with its tag. What
/// rows are mostly made of is in line.
#[inline]
pub(super) fn append(out: &mut Vec<u8>, value: ValueRef<'_>) -> Result<u8> {
    match value {
        ValueRef::Null => Ok(tag::NULL),
        ValueRef::Text(text) if text.len() <= tag::TEXT_MAX => {
            out.extend_from_slice(text);
            Ok(tag::TEXT + text.len() as u8)
        }
        ValueRef::Text(text) => append_prefixed(out, text, [tag::TEXT_1, tag::FAR_TEXT_2]),
        ValueRef::Integer(i) => Ok(append_smallest(out, i)),
        ValueRef::Real(r) => Ok(append_real(out, r)),
        ValueRef::Blob(blob) if blob.len() <= tag::BLOB_MAX => {
            out.extend_from_slice(blob);
            Ok(tag::BLOB + blob.len() as u8)
        }
        ValueRef::Blob(blob) => append_prefixed(out, blob, [tag::BLOB_1, tag::FAR_BLOB_2]),
    }
}

fn append_smallest(out: &mut Vec<u8>, i: i64) -> u8 {
    if (0..=tag::INLINE_MAX).contains(&i) {
        tag::INLINE + i as u8
    } else {
        let len = integer_length(i);
        append_integer(out, i, len);
        tag::INTEGER + len as u8
    }
}

/// Bytes that the integer takes in two's complement, 1 to 8.
#[inline]
fn integer_length(i: i64) -> usize {
    let magnitude = (i ^ (i >> 63)) as u64;
    (72 - magnitude.leading_zeros() as usize) / 8
}

#[inline]
fn append_integer(out: &mut Vec<u8>, i: i64, len: usize) {
    out.extend_from_slice(&i.to_le_bytes());
    out.truncate(out.len() - 8 + len);
}

/// `near`: the tag where the length is one byte; `far`: where it is two.
fn append_prefixed(out: &mut Vec<u8>, bytes: &[u8], [near, far]: [u8; 2]) -> Result<u8> {
    if let Ok(len) = u8::try_from(bytes.len()) {
        out.push(len);
        out.extend_from_slice(bytes);
        Ok(near)
    } else if let Ok(len) = u16::try_from(bytes.len()) {
        out.extend_from_slice(&len.to_le_bytes());
        Ok(far)
    } else {
        let len = u32::try_from(bytes.len()).map_err(|_| Error::too_big())?;
        out.extend_from_slice(&len.to_le_bytes());
        Ok(far + 1)
    }
}

/// The shortest of the real's forms that gives back the same bits.
fn append_real(out: &mut Vec<u8>, r: f64) -> u8 {
    if r.is_nan() {
        return tag::NULL;
    }
    let same = |x: f64| x.to_bits() == r.to_bits();
    let whole = r as i64;
    if same(whole as f64) {
        let form = match integer_length(whole) {
            1 => Some((1, tag::REAL_INTEGRAL_1)),
            2 => Some((2, tag::REAL_INTEGRAL_2)),
            3 => Some((3, tag::REAL_INTEGRAL_3)),
            4 => Some((4, tag::REAL_INTEGRAL_4)),
            5 | 6 => Some((6, tag::REAL_INTEGRAL_6)),
            _ => None,
        };
        if let Some((len, tag)) = form {
            append_integer(out, whole, len);
            return tag;
        }
    }
    let hundredths = (r * 100.0 + 0.5f64.copysign(r)) as i64;
    let hundredths_length = if same(hundredths as f64 / 100.0) {
        integer_length(hundredths)
    } else {
        8
    };
    if hundredths_length <= 3 {
        let (len, tag) = if hundredths_length == 3 {
            (3, tag::REAL_HUNDREDTHS_3)
        } else {
            (2, tag::REAL_HUNDREDTHS_2)
        };
        append_integer(out, hundredths, len);
        tag
    } else if same(f64::from(r as f32)) {
        out.extend_from_slice(&(r as f32).to_le_bytes());
        tag::REAL_32
    } else if hundredths_length == 4 {
        append_integer(out, hundredths, 4);
        tag::REAL_HUNDREDTHS_4
    } else {
        out.extend_from_slice(&r.to_le_bytes());
        tag::REAL_64
    }
}
