//! Decoding neighbouring rows a column at a time.
//!
//! Rows of one table mostly have the same columns stored, so what a row-by-row
//! reader decides anew for each row is decided here once a column. Everything a
//! row says about itself is still checked. Texts are not copied one by one: a
//! column takes the part of the page that the rows lie in, and points into it.

use fulgurite_store::Run;

use super::property::Property;
use super::read::RowReader;
use super::tag;
use crate::error::Result;
use crate::exec::batch::Vector;
use crate::value::ValueRef;

/// Most rows of a block.
const ROWS_AT_ONCE: usize = 64;

/// A row in its page.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Where its tags start.
    tags: u32,
    /// Where the next column to be read starts.
    at: u32,
    /// Where it ends.
    end: u32,
}

/// Rows of one page, whose columns are read in ascending order.
pub struct RowBlock<'a> {
    page: &'a [u8],
    rows: [Place; ROWS_AT_ONCE],
    len: usize,
    /// The column at which each row's `at` stands.
    next: usize,
    bytes: usize,
    /// The part of the page that the rows lie in.
    low: usize,
    high: usize,
}

/// Where the row is, if it stores `columns` columns and no offsets.
#[inline(always)]
fn place(page: &[u8], (start, end): (usize, usize), columns: usize) -> Option<Place> {
    let count = usize::from(*page.get(start..end)?.first()?);
    let at = start + 1 + count;
    let plain = count >= columns && count <= tag::GROUP && at <= end;
    plain.then_some(Place {
        tags: start as u32 + 1,
        at: at as u32,
        end: end as u32,
    })
}

impl<'a> RowBlock<'a> {
    /// The first of these rows, or, `reverse`, the last ones from the last one on, as far as
    /// each lies in its leaf, stores at least `columns` columns and is narrow enough to have no
    /// offsets. None: the first one does not.
    pub fn of(run: Run<'a>, columns: usize, reverse: bool) -> Option<Self> {
        match reverse {
            false => Self::at(run.page(), run.places(), columns),
            true => Self::at(run.page(), run.places().rev(), columns),
        }
    }

    fn at(
        page: &'a [u8],
        places: impl Iterator<Item = Option<(usize, usize)>>,
        columns: usize,
    ) -> Option<Self> {
        let mut places = places.peekable();
        let first = places.peek().copied().flatten()?;
        place(page, first, columns)?;
        let mut block = Self {
            page,
            rows: [Place::default(); ROWS_AT_ONCE],
            len: 0,
            next: 0,
            bytes: 0,
            low: first.0,
            high: first.1,
        };
        for (row, slot) in places.zip(&mut block.rows) {
            let Some(row) = row else { break };
            let Some(place) = place(page, row, columns) else {
                break;
            };
            *slot = place;
            block.len += 1;
            block.bytes += row.1 - row.0;
            block.low = block.low.min(row.0);
            block.high = block.high.max(row.1);
        }
        Some(block)
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.len
    }

    /// Bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Goes back to the first column.
    pub fn rewind(&mut self) {
        for row in &mut self.rows {
            let count = (row.tags as usize).checked_sub(1);
            let count = count.and_then(|at| self.page.get(at));
            row.at = row.tags + count.map_or(0, |count| u32::from(*count));
        }
        self.next = 0;
    }

    /// Appends a column of all rows, none before one that was read.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    pub fn column(&mut self, column: usize, out: &mut Vector) -> Result<()> {
        let first = self.rows.first().copied().unwrap_or_default();
        let done = match self.page.get(first.tags as usize + column) {
            Some(tag) if is_integer(*tag) => self.integers(column, out),
            Some(tag) if is_text(*tag) => self.texts(column, out, first, *tag),
            _ => 0,
        };
        self.each(column, done, |value| out.push(value))
    }

    /// As [`column`](Self::column), for a property of the column.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    pub fn property(&mut self, column: usize, property: Property, out: &mut Vector) -> Result<()> {
        self.each(column, 0, |value| out.push(property.of(value)))
    }

    /// Calls `f` with a column of each row but those that are `done`.
    #[inline(always)]
    fn each(
        &mut self,
        column: usize,
        done: usize,
        mut f: impl FnMut(ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        let next = self.next;
        for row in self.rows.iter_mut().take(self.len).skip(done) {
            let reader = RowReader::narrow(self.page, row.tags as usize, row.end as usize)?;
            let body = row.tags as usize + reader.len();
            let (value, end) = reader.go_on(next, column, row.at as usize - body)?;
            row.at = (body + end) as u32;
            f(value)?;
        }
        self.next = column + 1;
        Ok(())
    }

    /// As [`RowBlock::column`] for as many rows as hold plain integers there.
    fn integers(&mut self, column: usize, out: &mut Vector) -> usize {
        let start = out.len();
        let Some(slots) = out.extend_integers(self.len) else {
            return 0;
        };
        let (page, next) = (self.page, self.next);
        let mut done = 0;
        for (row, slot) in self.rows.iter_mut().zip(slots) {
            let Some((tag, end)) = locate(page, row, next, column).filter(|f| is_integer(f.0))
            else {
                break;
            };
            // Eight bytes that end with the integer; what precedes it is
            // shifted out.
            let word = end.checked_sub(8).and_then(|from| page.get(from..end));
            let Some(word) = word.and_then(|bytes| bytes.first_chunk::<8>()) else {
                break;
            };
            let len = u32::from(tag::LENGTHS[usize::from(tag)]);
            let stored = i64::from_le_bytes(*word) >> ((64 - 8 * len) & 63);
            let inline = i64::from(tag.wrapping_sub(tag::INLINE));
            *slot = if len == 0 { inline } else { stored };
            row.at = end as u32;
            done += 1;
        }
        out.truncate(start + done);
        done
    }

    /// As [`RowBlock::column`] for as many rows as hold short texts there.
    fn texts(&mut self, column: usize, out: &mut Vector, first: Place, tag: u8) -> usize {
        let heap = self.page.get(self.low..self.high).unwrap_or(&[]);
        // Worth it where the column is a good part of what is copied for it.
        let share = usize::from(tag - tag::TEXT) * 4;
        if share < (first.end - first.tags) as usize || heap.len() > 2 * self.bytes {
            return 0;
        }
        let start = out.len();
        let Some((base, slots)) = out.extend_texts(heap, self.len) else {
            return 0;
        };
        let (page, next, low) = (self.page, self.next, self.low);
        let mut done = 0;
        for (row, slot) in self.rows.iter_mut().zip(slots) {
            let Some((tag, end)) = locate(page, row, next, column).filter(|f| is_text(f.0)) else {
                break;
            };
            let len = usize::from(tag - tag::TEXT);
            *slot = Vector::word_of(base + end - len - low, len);
            row.at = end as u32;
            done += 1;
        }
        out.truncate(start + done);
        done
    }
}

#[inline(always)]
fn is_integer(tag: u8) -> bool {
    (tag::INTEGER + 1..=tag::INTEGER + 8).contains(&tag)
        || (tag::INLINE..=tag::INLINE + tag::INLINE_MAX as u8).contains(&tag)
}

#[inline(always)]
fn is_text(tag: u8) -> bool {
    (tag::TEXT..=tag::TEXT + tag::TEXT_MAX as u8).contains(&tag)
}

/// The tag of column `to` and where that column ends, the row standing at column
/// `from`. None: it must be read with more care.
#[inline(always)]
fn locate(page: &[u8], row: &Place, from: usize, to: usize) -> Option<(u8, usize)> {
    let tags = row.tags as usize;
    let mut end = row.at as usize;
    let (&tag, before) = page.get(tags + from..=tags + to)?.split_last()?;
    for tag in before {
        let len = tag::LENGTHS[usize::from(*tag)];
        end += match len < tag::NO_LENGTH {
            true => usize::from(len),
            false => prefixed(page, *tag, end)?,
        };
    }
    let len = tag::LENGTHS[usize::from(tag)];
    end += usize::from(len);
    (len < tag::NO_LENGTH && end <= row.end as usize).then_some((tag, end))
}

/// Bytes of a column at `at` whose length stands in front of it. None: it has no such tag.
#[inline]
fn prefixed(page: &[u8], tag: u8, at: usize) -> Option<usize> {
    let rest = page.get(at..)?;
    match tag {
        tag::TEXT_1 | tag::BLOB_1 => rest.first().map(|len| usize::from(*len) + 1),
        tag::TEXT_2 | tag::BLOB_2 => {
            let len = rest.first_chunk::<2>()?;
            Some(usize::from(u16::from_le_bytes(*len)) + 2)
        }
        tag::TEXT_4 | tag::BLOB_4 => {
            let len = rest.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*len) as usize + 4)
        }
        _ => None,
    }
}
