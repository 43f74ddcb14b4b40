//! Rows of which only the start is at hand.
//!
//! The store keeps the start of a large row beside its key and the rest apart. A narrow
//! row has what the wanted columns take, and NULL for all others: a row like any other,
//! put together from as few bytes of the rest as that needs. Columns that are passed over
//! cost what says how long they are.

use std::ops::Range;

use super::read::malformed;
use super::tag;
use crate::error::Result;

/// A row of so many bytes, of which the first ones are `start`, and what reads others:
/// it appends those of a range to a buffer.
pub struct Large<'a, L> {
    /// What is at hand.
    pub start: &'a [u8],
    /// The length of the whole row.
    pub length: usize,
    /// Reads.
    pub load: L,
}

/// What is wanted of a row.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// These columns, which ascend.
    pub wanted: &'a [usize],
    /// Those of them in whose place an empty text or blob may stand, where theirs does not
    /// lie in the start.
    pub kept: &'a [usize],
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// NULL, or an INTEGER PRIMARY KEY, whose value is the row's key.
    Null,
    /// An integer.
    Integer,
    /// A real.
    Real,
    /// A text.
    Text,
    /// A blob.
    Blob,
}

impl Kind {
    pub(super) fn of(tag: u8) -> Self {
        match tag {
            tag::NULL => Kind::Null,
            1..=8 => Kind::Integer,
            tag::REAL_64..=tag::REAL_HUNDREDTHS_4 => Kind::Real,
            tag::INLINE..tag::TEXT => Kind::Integer,
            tag::TEXT_1..=tag::TEXT_4
            | tag::FAR_TEXT_2..=tag::FAR_TEXT_4
            | tag::TEXT..tag::BLOB => Kind::Text,
            _ => Kind::Blob,
        }
    }
}

fn set(out: &mut [u8], at: usize, tag: u8) {
    if let Some(slot) = out.get_mut(at) {
        *slot = tag;
    }
}

/// The tag of an empty text or blob in the place of one of any length.
fn emptied(tag: u8) -> Option<u8> {
    match tag {
        tag::TEXT_1..=tag::TEXT_4 | tag::FAR_TEXT_2..=tag::FAR_TEXT_4 => Some(tag::TEXT),
        tag::BLOB_1..=tag::BLOB_4 | tag::FAR_BLOB_2..=tag::FAR_BLOB_4 => Some(tag::BLOB),
        _ => None,
    }
}

impl<L: FnMut(Range<usize>, &mut Vec<u8>) -> Result<()>> Large<'_, L> {
    /// Appends bytes of the row to `out`.
    pub(super) fn append(&mut self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        if range.end > self.length || range.start > range.end {
            return Err(malformed("row shorter than its columns"));
        }
        let end = out.len() + range.len();
        match self.start.get(range.clone()) {
            Some(here) => out.extend_from_slice(here),
            None => (self.load)(range, out)?,
        }
        match out.len() == end {
            true => Ok(()),
            false => Err(malformed("row shorter than its columns")),
        }
    }

    /// Bytes of the row, at most eight.
    fn few<const N: usize>(&mut self, at: usize, spare: &mut Vec<u8>) -> Result<[u8; N]> {
        let range = at..at.saturating_add(N);
        spare.clear();
        self.append(range, spare)?;
        let bytes = spare.first_chunk().copied();
        bytes.ok_or_else(|| malformed("row shorter than its columns"))
    }

    /// The bytes that a column at `at` takes.
    fn column_bytes(&mut self, tag: u8, at: usize, spare: &mut Vec<u8>) -> Result<usize> {
        let len = tag::LENGTHS[usize::from(tag)];
        if len < tag::NO_LENGTH {
            return Ok(usize::from(len));
        }
        Ok(match tag {
            tag::TEXT_1 | tag::BLOB_1 => 1 + usize::from(self.few::<1>(at, spare)?[0]),
            tag::TEXT_2 | tag::BLOB_2 => 2 + usize::from(u16::from_le_bytes(self.few(at, spare)?)),
            tag::TEXT_4 | tag::BLOB_4 => 4 + u32::from_le_bytes(self.few(at, spare)?) as usize,
            _ => return Err(malformed("row with an unknown column type")),
        })
    }

    /// Where the bytes of the far columns lie from column `first` on, which is at `at`. `tags`
    /// are those of it and all behind it.
    fn far_places(
        &mut self,
        tags: &[u8],
        first: usize,
        mut at: usize,
        spare: &mut Vec<u8>,
    ) -> Result<Vec<(usize, Range<usize>)>> {
        // Behind the last of them nobody needs to know where columns are.
        let last = tags.iter().rposition(|tag| tag::is_far(*tag));
        let tags = last.and_then(|last| tags.get(..=last)).unwrap_or(&[]);
        let (mut lengths, mut all) = (Vec::new(), 0usize);
        for (i, tag) in (first..).zip(tags) {
            if tag::is_far(*tag) {
                let length = match *tag {
                    tag::FAR_TEXT_2 | tag::FAR_BLOB_2 => {
                        usize::from(u16::from_le_bytes(self.few(at, spare)?))
                    }
                    _ => u32::from_le_bytes(self.few(at, spare)?) as usize,
                };
                lengths.push((i, length));
                all = all.saturating_add(length);
            }
            at = at.saturating_add(self.column_bytes(*tag, at, spare)?);
        }
        // They lie behind all that is not far.
        let start = self.length.checked_sub(all).filter(|start| *start >= at);
        let mut end = start.ok_or_else(|| malformed("row shorter than its columns"))?;
        let place = |(i, length)| {
            let start = end;
            end += length;
            (i, start..end)
        };
        Ok(lengths.into_iter().map(place).collect())
    }

    /// What a column holds, and which bytes of the row that is, without its length in front;
    /// none where the row does not store it.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`, or what reading fails with.
    pub fn place(&mut self, column: usize) -> Result<Option<(Kind, Range<usize>)>> {
        let (mut header, mut spare) = (Vec::new(), Vec::new());
        let (count, before) = self.count(&mut spare)?;
        let tags = before + tag::offsets(count) * tag::OFFSET_BYTES;
        let body = tags + count;
        self.append(0..body, &mut header)?;
        let (mut i, mut at) = (0, body);
        if let Some(group) = (column / tag::GROUP).checked_sub(1)
            && column < count
        {
            let offset = header.get(before + group * tag::OFFSET_BYTES..);
            let offset = offset.and_then(|rest| rest.first_chunk::<4>());
            let offset = offset.ok_or_else(|| malformed("row without its column offsets"))?;
            (i, at) = (
                (group + 1) * tag::GROUP,
                body + u32::from_le_bytes(*offset) as usize,
            );
        }
        let Some(passed) = header
            .get(tags + i..=tags + column)
            .filter(|_| column < count)
        else {
            return Ok(None);
        };
        let (tag, passed) = passed.split_last().unwrap_or((&tag::NULL, &[]));
        for tag in passed {
            at = at.saturating_add(self.column_bytes(*tag, at, &mut spare)?);
        }
        if tag::is_far(*tag) {
            let behind = header.get(tags + column..).unwrap_or(&[]);
            let places = self.far_places(behind, column, at, &mut spare)?;
            let own = places.into_iter().next().map(|(_, place)| place);
            return Ok(own.map(|place| (Kind::of(*tag), place)));
        }
        let end = at.saturating_add(self.column_bytes(*tag, at, &mut spare)?);
        if end > self.length {
            return Err(malformed("row shorter than its columns"));
        }
        let prefix = match *tag {
            tag::TEXT_1 | tag::BLOB_1 => 1,
            tag::TEXT_2 | tag::BLOB_2 => 2,
            tag::TEXT_4 | tag::BLOB_4 => 4,
            _ => 0,
        };
        Ok(Some((Kind::of(*tag), at + prefix..end)))
    }

    /// How many columns the row stores, and how many bytes say so.
    fn count(&mut self, spare: &mut Vec<u8>) -> Result<(usize, usize)> {
        let [first] = self.few(0, spare)?;
        if first < 0x80 {
            return Ok((usize::from(first), 1));
        }
        let [high, low] = self.few(0, spare)?;
        Ok(((usize::from(high & 0x7f) << 8) | usize::from(low), 2))
    }

    /// Makes `out` a row that has the wanted columns and NULL for all others. `spare` is
    /// memory.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`, or what reading fails with.
    pub fn narrow(
        &mut self,
        columns: Columns<'_>,
        out: &mut Vec<u8>,
        spare: &mut Vec<u8>,
    ) -> Result<()> {
        out.clear();
        let (count, before) = self.count(spare)?;
        let tags = before + tag::offsets(count) * tag::OFFSET_BYTES;
        let body = tags + count;
        self.append(0..body, out)?;
        let mut wanted = columns.wanted.iter().copied().peekable();
        let (mut at, mut far) = (body, Vec::new());
        let mut places: Option<std::vec::IntoIter<_>> = None;
        for i in 0..count {
            if i >= tag::GROUP && i.is_multiple_of(tag::GROUP) {
                at = body
                    + self.regroup(before + (i / tag::GROUP - 1) * tag::OFFSET_BYTES, body, out)?;
            }
            while wanted.next_if(|column| *column < i).is_some() {}
            let group_end = (i / tag::GROUP + 1) * tag::GROUP;
            // Behind the last wanted column of a group nobody needs to know where one is.
            let is_passed = wanted.peek().is_none_or(|column| *column >= group_end);
            let behind = out.get(tags + i..body).unwrap_or(&[]);
            let tag = behind.first().copied().unwrap_or(tag::NULL);
            let is_wanted = wanted.peek() == Some(&i);
            if is_passed {
                set(out, tags + i, tag::NULL);
                continue;
            }
            let end = at.saturating_add(self.column_bytes(tag, at, spare)?);
            let place = match (is_wanted && tag::is_far(tag), &mut places) {
                (false, _) => None,
                (true, Some(places)) => places.find(|(column, _)| *column == i),
                (true, None) => {
                    let all = self.far_places(behind, i, at, spare)?;
                    places.insert(all.into_iter()).next()
                }
            };
            let place = place.map(|(_, place)| place);
            let upto = place.as_ref().map_or(end, |place| place.end);
            let stays = upto > self.start.len() && columns.kept.contains(&i);
            match emptied(tag).filter(|_| stays) {
                _ if !is_wanted => set(out, tags + i, tag::NULL),
                Some(empty) => set(out, tags + i, empty),
                None => {
                    self.append(at..end, out)?;
                    far.extend(place);
                }
            }
            at = end;
        }
        far.into_iter()
            .try_for_each(|place| self.append(place, out))
    }

    /// Where a group of columns starts in the body: what the offset here says, which from
    /// now on says where it starts in `out`.
    fn regroup(&mut self, offset: usize, body: usize, out: &mut [u8]) -> Result<usize> {
        let now = (out.len() - body) as u32;
        let slot = out
            .get_mut(offset..)
            .and_then(|rest| rest.first_chunk_mut::<4>());
        let slot = slot.ok_or_else(|| malformed("row without its column offsets"))?;
        let was = u32::from_le_bytes(*slot);
        *slot = now.to_le_bytes();
        Ok(was as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{RowReader, RowWriter};
    use crate::value::{Value, ValueRef};

    fn row(values: &[Value]) -> Vec<u8> {
        let mut row = Vec::new();
        RowWriter::encode(&mut row, values.iter().map(Value::as_ref)).expect("encodes");
        row
    }

    /// The narrow row, and how many bytes of the rest were read for it.
    fn narrow(row: &[u8], start: usize, columns: &[usize]) -> Result<(Vec<u8>, usize)> {
        let (mut out, mut read) = (Vec::new(), 0);
        let mut large = Large {
            start: &row[..start],
            length: row.len(),
            load: |range: Range<usize>, out: &mut Vec<u8>| {
                read += range.len();
                out.extend_from_slice(row.get(range).unwrap_or(&[]));
                Ok(())
            },
        };
        let columns = Columns {
            wanted: columns,
            kept: &[],
        };
        large.narrow(columns, &mut out, &mut Vec::new())?;
        Ok((out, read))
    }

    fn values(count: usize) -> Vec<Value> {
        let value = |i: usize| match i % 5 {
            0 => Value::Integer(i as i64 * 1_000_003),
            1 => Value::Text(vec![b'a' + (i % 26) as u8; 70 * i]),
            2 => Value::Blob(vec![i as u8; 300 * i]),
            3 => Value::Real(i as f64 / 7.0),
            _ => Value::Null,
        };
        (0..count).map(value).collect()
    }

    #[test]
    fn wanted_columns_come_and_the_others_are_null() {
        for count in [1, 3, 16, 17, 40, 130] {
            let values = values(count);
            let row = row(&values);
            for step in [1, 2, 3, 7, 16, 33] {
                for start in [0, 1, 2, 7, count, 128.min(row.len()), row.len()] {
                    let columns: Vec<_> = (0..count + 3).skip(step / 2).step_by(step).collect();
                    let (narrow, _) = narrow(&row, start.min(row.len()), &columns).expect("narrow");
                    let reader = RowReader::new(&narrow).expect("a row");
                    reader.validate().expect("whole");
                    assert_eq!(reader.len(), count);
                    for (i, value) in values.iter().enumerate() {
                        let expected = match columns.contains(&i) {
                            true => value.as_ref(),
                            false => ValueRef::Null,
                        };
                        assert_eq!(reader.column(i).expect("a column"), expected, "column {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn columns_are_where_the_row_has_them() {
        for count in [1, 3, 16, 17, 40, 130] {
            let values = values(count);
            let row = row(&values);
            for start in [1, 60, row.len()] {
                let mut large = Large {
                    start: &row[..start.min(row.len())],
                    length: row.len(),
                    load: |range: Range<usize>, out: &mut Vec<u8>| {
                        out.extend_from_slice(row.get(range).unwrap_or(&[]));
                        Ok(())
                    },
                };
                for (i, value) in values.iter().enumerate() {
                    let (kind, range) = large.place(i).expect("a place").expect("stored");
                    match value {
                        Value::Text(bytes) => {
                            assert_eq!((kind, &row[range]), (Kind::Text, &**bytes))
                        }
                        Value::Blob(bytes) => {
                            assert_eq!((kind, &row[range]), (Kind::Blob, &**bytes))
                        }
                        Value::Integer(_) => assert_eq!(kind, Kind::Integer),
                        Value::Real(_) => assert_eq!(kind, Kind::Real),
                        Value::Null => assert_eq!(kind, Kind::Null),
                    }
                }
                assert_eq!(large.place(count).expect("a place"), None);
            }
        }
    }

    #[test]
    fn selected_columns_are_those_asked_for_one_by_one() {
        for count in [1, 16, 40, 130] {
            let row = row(&values(count));
            let reader = RowReader::new(&row).expect("a row");
            for (from, step) in [(0, 1), (1, 1), (2, 5), (1, 3), (7, 16), (0, 20)] {
                let columns: Vec<_> = (from..count).step_by(step).chain([1, 2, 0]).collect();
                let mut selected = Vec::new();
                let select = reader.select(columns.iter().copied(), |place, value| {
                    selected.push((place, value));
                    Ok(())
                });
                select.expect("whole");
                let alone = columns.iter().enumerate().filter(|(_, i)| **i < count);
                let alone: Vec<_> = alone
                    .map(|(place, i)| (place, reader.column(*i).expect("a column")))
                    .collect();
                assert_eq!(selected, alone, "{count} columns from {from} by {step}");
            }
        }
    }

    #[test]
    fn no_more_is_read_than_the_columns_take() {
        let values = [
            Value::Integer(7),
            Value::Blob(vec![1; 100_000]),
            Value::Integer(1 << 40),
            Value::Text(vec![b't'; 50_000]),
        ];
        let row = row(&values);
        let read = |columns: &[usize]| narrow(&row, 128, columns).expect("narrow").1;
        assert_eq!(read(&[0]), 0);
        assert_eq!(read(&[2]), 0);
        assert_eq!(read(&[3]), 50_000);
        assert_eq!(read(&[0, 2]), 0);
        assert_eq!(read(&[1]), 100_000);
    }

    /// As version 4 of the format has them: large columns lie where the others do.
    #[test]
    fn rows_of_an_older_format() {
        let (text, blob) = ([b't'; 300], [9; 70_000]);
        let mut row = vec![4, 0x21, 0x41, 0x26, 0x02, 44, 1];
        row.extend_from_slice(&text);
        row.extend_from_slice(&70_000_u32.to_le_bytes());
        row.extend_from_slice(&blob);
        row.extend_from_slice(&[0x39, 0x30]);
        let expected = [
            ValueRef::Text(&text),
            ValueRef::Integer(1),
            ValueRef::Blob(&blob),
            ValueRef::Integer(12_345),
        ];
        let reader = RowReader::new(&row).expect("a row");
        reader.validate().expect("whole");
        for (i, value) in expected.into_iter().enumerate() {
            assert_eq!(reader.column(i).expect("a column"), value);
            let (narrow, _) = narrow(&row, 128, &[i]).expect("narrow");
            let reader = RowReader::new(&narrow).expect("a row");
            assert_eq!(reader.column(i).expect("a column"), value);
        }
        assert_eq!(narrow(&row, 128, &[3]).expect("narrow").1, 4 + 2);
    }

    #[test]
    fn damaged_rows_are_refused_or_give_a_row() {
        let whole = row(&values(40));
        for at in 0..whole.len().min(400) {
            for byte in [0, 1, 0x22, 0x26, 0x7f, 0x80, 0xff] {
                let mut row = whole.clone();
                row[at] = byte;
                for cut in [row.len(), row.len() / 2, at] {
                    if let Ok((narrow, _)) = narrow(&row[..cut], 64.min(cut), &[1, 2, 17, 39]) {
                        RowReader::new(&narrow).expect("a header");
                    }
                }
            }
        }
    }
}
