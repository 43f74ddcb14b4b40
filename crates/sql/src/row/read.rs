//! Decoding rows.

use super::narrow::Kind;
use super::tag;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// A row's bytes with their header read. Cheap to make and to copy; columns are
/// decoded when asked for and borrow from the row.
#[derive(Debug, Clone, Copy)]
pub struct RowReader<'a> {
    pub(super) offsets: &'a [u8],
    pub(super) tags: &'a [u8],
    pub(super) body: &'a [u8],
}

impl<'a> RowReader<'a> {
    /// Reads the header of a row.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT` where it is longer than the row.
    #[inline]
    pub fn new(row: &'a [u8]) -> Result<Self> {
        let (count, rest) = match row {
            [first, rest @ ..] if *first < 0x80 => (usize::from(*first), rest),
            [first, second, rest @ ..] => (
                (usize::from(*first & 0x7f) << 8) | usize::from(*second),
                rest,
            ),
            _ => return Err(malformed("row without header")),
        };
        let short = || malformed("row shorter than its header");
        let (offsets, rest) = rest
            .split_at_checked(tag::offsets(count) * tag::OFFSET_BYTES)
            .ok_or_else(short)?;
        let (tags, body) = rest.split_at_checked(count).ok_or_else(short)?;
        Ok(Self {
            offsets,
            tags,
            body,
        })
    }

    /// A row whose tags, as many as the byte before them says, start at `tags`
    /// of a page, and which ends at `end`. It stores no offsets.
    #[inline(always)]
    pub(super) fn narrow(page: &'a [u8], tags: usize, end: usize) -> Result<Self> {
        let short = || malformed("row shorter than its header");
        let count = tags.checked_sub(1).and_then(|at| page.get(at));
        let (tags, body) = (count.zip(page.get(tags..end)))
            .and_then(|(count, rest)| rest.split_at_checked(usize::from(*count)))
            .ok_or_else(short)?;
        Ok(Self {
            offsets: &[],
            tags,
            body,
        })
    }

    /// Column `to` and where it ends in the body, column `from` starting at `at`.
    #[inline(always)]
    pub(super) fn go_on(&self, from: usize, to: usize, at: usize) -> Result<(ValueRef<'a>, usize)> {
        let at = self.advance(from, to, at)?;
        let Some(&tag) = self.tags.get(to) else {
            return Ok((ValueRef::Null, at));
        };
        let (value, len) = self.decode(to, tag, at)?;
        Ok((value, at + len))
    }

    /// Whether these columns, which ascend, lie in the bytes at hand, which may be but the
    /// start of the row.
    pub fn holds(&self, columns: &[usize]) -> bool {
        let tag_of = |column: &usize| self.tags.get(*column).copied().unwrap_or(tag::NULL);
        if columns.iter().any(|column| tag::is_far(tag_of(column))) {
            return false;
        }
        let last = columns.last().map_or(0, |last| last + 1).min(self.len());
        let (from, at) = match last.checked_sub(1).filter(|last| *last >= tag::GROUP) {
            None => (0, 0),
            Some(last) => match self.group(last) {
                Ok(place) => place,
                Err(_) => return false,
            },
        };
        let end = self.advance(from, last, at);
        end.is_ok_and(|end| end <= self.body.len())
    }

    /// What a column holds and how many bytes that is, as far as the bytes at hand tell, which
    /// may be but the start of the row.
    pub(super) fn extent(&self, column: usize) -> Option<(Kind, usize)> {
        let tag = *self.tags.get(column)?;
        let (from, at) = match column < tag::GROUP {
            true => (0, 0),
            false => self.group(column).ok()?,
        };
        let at = self.advance(from, column, at).ok()?;
        let length = match usize::from(tag::LENGTHS[usize::from(tag)]) {
            _ if tag::is_far(tag) => self.far_length(tag, at).ok()?,
            length if length < usize::from(tag::NO_LENGTH) => length,
            _ => self.prefixed(tag, at).ok()?.0.bytes()?.len(),
        };
        Some((Kind::of(tag), length))
    }

    /// Columns stored; a table may have more by now.
    #[inline]
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// A row without any column.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Column `i`; NULL where it is not stored.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    #[inline]
    pub fn column(&self, i: usize) -> Result<ValueRef<'a>> {
        self.column_or(i, ValueRef::Null)
    }

    /// Column `i`; `default` where it is not stored.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    #[inline]
    pub fn column_or(&self, i: usize, default: ValueRef<'a>) -> Result<ValueRef<'a>> {
        let Some(&tag) = self.tags.get(i) else {
            return Ok(default);
        };
        let (from, at) = if i < tag::GROUP {
            (0, 0)
        } else {
            self.group(i)?
        };
        let at = self.advance(from, i, at)?;
        Ok(self.decode(i, tag, at)?.0)
    }

    /// Calls `f` with the place and the value of each of `columns`: one walk
    /// over the row where they ascend. Columns that are not stored are left out.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`, or what `f` returns.
    #[inline(always)]
    pub fn select(
        &self,
        columns: impl IntoIterator<Item = usize>,
        mut f: impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        let (mut done, mut at) = (0, 0);
        let mut last_far = None;
        for (place, i) in columns.into_iter().enumerate() {
            let Some(&tag) = self.tags.get(i) else {
                continue;
            };
            if i < done {
                (done, at) = (0, 0);
            }
            if i - done > tag::GROUP {
                (done, at) = self.group(i)?;
            }
            at = self.advance(done, i, at)?;
            let (value, len) = match tag::is_far(tag) {
                true => self.far_behind(&mut last_far, i, tag, at)?,
                false => self.decode(i, tag, at)?,
            };
            f(place, value)?;
            at += len;
            done = i + 1;
        }
        Ok(())
    }

    /// All stored columns in order; ends after the first error.
    pub fn values(&self) -> impl Iterator<Item = Result<ValueRef<'a>>> + use<'a> {
        let row = *self;
        let mut at = 0;
        let mut failed = false;
        row.tags.iter().enumerate().map_while(move |(i, &tag)| {
            if failed {
                return None;
            }
            Some(match row.decode(i, tag, at) {
                Ok((value, len)) => {
                    at += len;
                    Ok(value)
                }
                Err(e) => {
                    failed = true;
                    Err(e)
                }
            })
        })
    }

    /// Checks the whole row: every column, every offset, and that nothing
    /// follows.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    pub fn validate(&self) -> Result<()> {
        let (mut at, mut far) = (0, 0);
        for (i, &tag) in self.tags.iter().enumerate() {
            if i >= tag::GROUP && i % tag::GROUP == 0 && self.group(i)? != (i, at) {
                return Err(malformed("row with a wrong column offset"));
            }
            let (value, len) = self.decode(i, tag, at)?;
            if let (true, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = (tag::is_far(tag), value)
            {
                far += bytes.len();
            }
            at += len;
        }
        if at + far == self.body.len() {
            Ok(())
        } else {
            Err(malformed("row longer than its columns"))
        }
    }

    /// The first column of the group of column `i`, and its place.
    #[cold]
    fn group(&self, i: usize) -> Result<(usize, usize)> {
        let group = i / tag::GROUP;
        if group == 0 {
            return Ok((0, 0));
        }
        let at = (group - 1) * tag::OFFSET_BYTES;
        let Some(bytes) = self.offsets.get(at..).and_then(|b| b.first_chunk::<4>()) else {
            return Err(malformed("row without its column offsets"));
        };
        Ok((group * tag::GROUP, u32::from_le_bytes(*bytes) as usize))
    }

    /// The place of column `to`, that of `from` being `at`.
    #[inline(always)]
    pub(super) fn advance(&self, from: usize, to: usize, mut at: usize) -> Result<usize> {
        for &tag in self.tags.get(from..to).unwrap_or(&[]) {
            let len = tag::LENGTHS[usize::from(tag)];
            at += if len < tag::NO_LENGTH {
                usize::from(len)
            } else {
                self.prefixed(tag, at)?.1
            };
        }
        Ok(at)
    }

    /// The value of column `i` at `at`, and the bytes it takes there. Scans spend their
    /// time here: inlined, the value goes to its place without being built first.
    #[inline(always)]
    fn decode(&self, i: usize, tag: u8, at: usize) -> Result<(ValueRef<'a>, usize)> {
        let len = tag::LENGTHS[usize::from(tag)];
        if len >= tag::NO_LENGTH {
            return self.prefixed(tag, at);
        }
        let len = usize::from(len);
        let Some(bytes) = self.body.get(at..).and_then(|b| b.get(..len)) else {
            return Err(malformed("row shorter than its columns"));
        };
        let value = if tag >= tag::BLOB {
            ValueRef::Blob(bytes)
        } else if tag >= tag::TEXT {
            ValueRef::Text(bytes)
        } else if tag >= tag::INLINE {
            ValueRef::Integer(i64::from(tag - tag::INLINE))
        } else if tag == tag::NULL {
            ValueRef::Null
        } else if tag <= tag::INTEGER + 8 {
            ValueRef::Integer(self.integer(at, len))
        } else {
            self.real_or_far(i, tag, (at, len))?
        };
        Ok((value, len))
    }

    /// The integer of `len` bytes (1 to 8) at `at`, known to lie in the body.
    #[inline]
    fn integer(&self, at: usize, len: usize) -> i64 {
        let unused = 64 - 8 * len as u32;
        if let Some(bytes) = self.body.get(at..).and_then(|b| b.first_chunk::<8>()) {
            return ((u64::from_le_bytes(*bytes) << unused) as i64) >> unused;
        }
        // Near the end of the row: the eight bytes that end with the integer.
        let upto = self.body.get(..at + len).unwrap_or(&[]);
        if let Some(bytes) = upto.last_chunk::<8>() {
            return i64::from_le_bytes(*bytes) >> unused;
        }
        let word = short_word(upto.get(at..).unwrap_or(&[]));
        ((word << unused) as i64) >> unused
    }

    fn real_or_far(&self, i: usize, tag: u8, (at, len): (usize, usize)) -> Result<ValueRef<'a>> {
        if tag::is_far(tag) {
            return self.far(i, tag, at);
        }
        let number = self.integer(at, len);
        Ok(match tag {
            tag::REAL_64 => ValueRef::real(f64::from_bits(number as u64)),
            tag::REAL_32 => ValueRef::real(f64::from(f32::from_bits(number as u32))),
            tag::REAL_HUNDREDTHS_2..=tag::REAL_HUNDREDTHS_4 => {
                ValueRef::Real(number as f64 / 100.0)
            }
            _ => ValueRef::Real(number as f64),
        })
    }

    /// As [`decode`](Self::decode) for far column `i`. Of the last one that was decoded `last`
    /// has the column, where it stands and where its bytes end: where that is not far ahead
    /// of this one, the columns behind this one need not be looked at.
    #[cold]
    fn far_behind(
        &self,
        last: &mut Option<(usize, usize, usize)>,
        i: usize,
        tag: u8,
        at: usize,
    ) -> Result<(ValueRef<'a>, usize)> {
        let length = self.far_length(tag, at)?;
        let start = match last.filter(|(column, ..)| *column < i) {
            None => None,
            Some((column, mut at, mut end)) => {
                for (j, passed) in (column..i).zip(self.tags.get(column..i).unwrap_or(&[])) {
                    if tag::is_far(*passed) && j > column {
                        end = end.saturating_add(self.far_length(*passed, at)?);
                    }
                    at = self.advance(j, j + 1, at)?;
                }
                Some(end)
            }
        };
        let value = match start {
            None => self.far(i, tag, at)?,
            Some(start) => {
                let bytes = self.body.get(start..start.saturating_add(length));
                far_value(tag, bytes)?
            }
        };
        let end = start.map_or_else(|| self.end_of(value), |start| start + length);
        *last = Some((i, at, end));
        Ok((value, usize::from(tag::LENGTHS[usize::from(tag)])))
    }

    /// Where the bytes of a text or blob end in the body.
    fn end_of(&self, value: ValueRef<'_>) -> usize {
        let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = value else {
            return 0;
        };
        (bytes.as_ptr().addr() + bytes.len()).saturating_sub(self.body.as_ptr().addr())
    }

    /// The value of far column `i`, whose length is at `at`: behind it are only the bytes of
    /// far columns that follow it.
    #[cold]
    fn far(&self, i: usize, tag: u8, at: usize) -> Result<ValueRef<'a>> {
        let length = self.far_length(tag, at)?;
        let mut end = self.body.len();
        let behind = self.tags.get(i + 1..).unwrap_or(&[]);
        if behind.iter().any(|tag| tag::is_far(*tag)) {
            let mut at = at + usize::from(tag::LENGTHS[usize::from(tag)]);
            let mut all = 0usize;
            for (j, tag) in (i + 1..).zip(behind) {
                if tag::is_far(*tag) {
                    all = all.saturating_add(self.far_length(*tag, at)?);
                }
                at = self.advance(j, j + 1, at)?;
            }
            end = end.saturating_sub(all);
        }
        let bytes = end
            .checked_sub(length)
            .and_then(|start| self.body.get(start..end));
        far_value(tag, bytes)
    }

    fn far_length(&self, tag: u8, at: usize) -> Result<usize> {
        let rest = self.body.get(at..).unwrap_or(&[]);
        let length = match tag {
            tag::FAR_TEXT_2 | tag::FAR_BLOB_2 => rest
                .first_chunk::<2>()
                .map(|bytes| usize::from(u16::from_le_bytes(*bytes))),
            _ => rest
                .first_chunk::<4>()
                .map(|bytes| u32::from_le_bytes(*bytes) as usize),
        };
        length.ok_or_else(|| malformed("row shorter than its columns"))
    }

    /// A column whose length stands in front of its bytes, or a tag that does
    /// not exist.
    #[cold]
    fn prefixed(&self, tag: u8, at: usize) -> Result<(ValueRef<'a>, usize)> {
        let rest = self.body.get(at..).unwrap_or(&[]);
        let prefix = match tag {
            tag::TEXT_1 | tag::BLOB_1 => rest.first_chunk::<1>().map(|b| (usize::from(b[0]), 1)),
            tag::TEXT_2 | tag::BLOB_2 => rest
                .first_chunk::<2>()
                .map(|b| (usize::from(u16::from_le_bytes(*b)), 2)),
            tag::TEXT_4 | tag::BLOB_4 => rest
                .first_chunk::<4>()
                .map(|b| (u32::from_le_bytes(*b) as usize, 4)),
            _ => return Err(malformed("row with an unknown column type")),
        };
        let bytes = prefix.and_then(|(len, skip)| Some((rest.get(skip..)?.get(..len)?, skip)));
        let Some((bytes, skip)) = bytes else {
            return Err(malformed("row shorter than its columns"));
        };
        let value = if tag >= tag::BLOB_1 {
            ValueRef::Blob(bytes)
        } else {
            ValueRef::Text(bytes)
        };
        Ok((value, skip + bytes.len()))
    }
}

fn far_value(tag: u8, bytes: Option<&[u8]>) -> Result<ValueRef<'_>> {
    match bytes {
        Some(bytes) if tag >= tag::FAR_BLOB_2 => Ok(ValueRef::Blob(bytes)),
        Some(bytes) => Ok(ValueRef::Text(bytes)),
        None => Err(malformed("row shorter than its columns")),
    }
}

/// Up to eight bytes, little-endian, from loads that overlap: a loop over their
/// number would be mispredicted at every other row.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(low), Some(high)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let high = u64::from(u32::from_le_bytes(*high));
        return u64::from(u32::from_le_bytes(*low)) | high << (8 * (len.min(8) - 4));
    }
    let byte = |i: usize| bytes.get(i).map_or(0, |b| u64::from(*b) << (8 * i));
    byte(0) | byte(len / 2) | byte(len.saturating_sub(1))
}

#[cold]
pub(super) fn malformed(what: &'static str) -> Error {
    Error::corrupt(what)
}
