//! What a value is asked for without its bytes: its type or its length.
//!
//! A row's tags tell both but the number of a text's characters, so that of a large row
//! only the start is read for them.

use std::ops::Range;

use super::narrow::{Columns, Kind, Large};
use super::read::RowReader;
use crate::error::Result;
use crate::value::{ValueRef, utf8};

/// So many bytes of a text are at hand at a time while its characters are counted.
const PIECE: usize = 64 << 10;

/// A property of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Its type, as a value of that type which is empty or 0.
    Type,
    /// What `length()` says of it.
    Length,
    /// What `octet_length()` says of it.
    Octets,
}

impl Property {
    /// The function that tells it.
    pub fn name(self) -> &'static str {
        match self {
            Property::Type => "typeof",
            Property::Length => "length",
            Property::Octets => "octet_length",
        }
    }

    /// The property of a value at hand.
    pub fn of(self, value: ValueRef<'_>) -> ValueRef<'static> {
        match self {
            Property::Type => match value {
                ValueRef::Null => ValueRef::Null,
                ValueRef::Integer(_) => ValueRef::Integer(0),
                ValueRef::Real(_) => ValueRef::Real(0.0),
                ValueRef::Text(_) => ValueRef::Text(&[]),
                ValueRef::Blob(_) => ValueRef::Blob(&[]),
            },
            Property::Length => length(value),
            Property::Octets => octets(value),
        }
    }
}

/// `length()`: characters of a text up to its first NUL, bytes of anything else.
pub fn length(value: ValueRef<'_>) -> ValueRef<'static> {
    match value {
        ValueRef::Text(text) => integer(utf8::count(utf8::until_nul(text))),
        other => octets(other),
    }
}

/// `octet_length()`: bytes, of a number those of its text.
pub fn octets(value: ValueRef<'_>) -> ValueRef<'static> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => integer(bytes.len()),
        number => number
            .to_text()
            .map_or(ValueRef::Null, |text| integer(text.len())),
    }
}

fn integer(n: usize) -> ValueRef<'static> {
    ValueRef::Integer(n as i64)
}

/// The property of a value of this kind and so many bytes, where that tells it.
fn told(property: Property, kind: Kind, length: usize) -> Option<ValueRef<'static>> {
    let empty = match kind {
        Kind::Null => ValueRef::Null,
        Kind::Integer => ValueRef::Integer(0),
        Kind::Real => ValueRef::Real(0.0),
        Kind::Text => ValueRef::Text(&[]),
        Kind::Blob => ValueRef::Blob(&[]),
    };
    match (property, kind) {
        // A real that is no number is NULL.
        (Property::Type, Kind::Real) => None,
        (Property::Type, _) | (_, Kind::Null) => Some(empty),
        (_, Kind::Blob) | (Property::Octets, Kind::Text) => Some(integer(length)),
        _ => None,
    }
}

impl<L: FnMut(Range<usize>, &mut Vec<u8>) -> Result<()>> Large<'_, L> {
    /// A property of a column; None where the row does not store it.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`, or what reading fails with.
    pub fn property(
        &mut self,
        column: usize,
        property: Property,
    ) -> Result<Option<ValueRef<'static>>> {
        // As a rule the start tells, and nothing needs to be put together.
        let row = RowReader::new(self.start);
        if let Ok(Some((kind, length))) = row.map(|row| row.extent(column))
            && length <= self.length
            && let Some(told) = told(property, kind, length)
        {
            return Ok(Some(told));
        }
        let Some((kind, place)) = self.place(column)? else {
            return Ok(None);
        };
        let told = told(property, kind, place.len());
        Ok(Some(match (told, kind) {
            (Some(told), _) => told,
            (None, Kind::Text) => integer(self.characters(place)?),
            (None, _) => property.of(self.number(column)?),
        }))
    }

    /// The characters of a text up to its first NUL.
    fn characters(&mut self, text: Range<usize>) -> Result<usize> {
        let mut counter = utf8::Counter::default();
        let (mut piece, mut from) = (Vec::new(), text.start);
        while from < text.end {
            let upto = text.end.min(from.saturating_add(PIECE));
            piece.clear();
            self.append(from..upto, &mut piece)?;
            let counted = utf8::until_nul(&piece);
            counter.add(counted);
            if counted.len() < piece.len() {
                break;
            }
            from = upto;
        }
        Ok(counter.count())
    }

    /// The number in a column.
    fn number(&mut self, column: usize) -> Result<ValueRef<'static>> {
        let columns = Columns {
            wanted: &[column],
            kept: &[],
        };
        let mut row = Vec::new();
        self.narrow(columns, &mut row, &mut Vec::new())?;
        Ok(match RowReader::new(&row)?.column(column)? {
            ValueRef::Integer(i) => ValueRef::Integer(i),
            ValueRef::Real(r) => ValueRef::Real(r),
            _ => ValueRef::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowWriter;
    use crate::value::Value;

    const ALL: [Property; 3] = [Property::Type, Property::Length, Property::Octets];

    /// A property of a column of a row of which so much is at hand, and how many other bytes
    /// were read for it.
    fn large(row: &[u8], start: usize, column: usize, property: Property) -> (Value, usize) {
        let mut read = 0;
        let mut large = Large {
            start: &row[..start.min(row.len())],
            length: row.len(),
            load: |range: Range<usize>, out: &mut Vec<u8>| {
                read += range.len();
                out.extend_from_slice(row.get(range).unwrap_or(&[]));
                Ok(())
            },
        };
        let found = large.property(column, property).expect("whole");
        (found.expect("stored").to_value(), read)
    }

    fn row(values: &[Value]) -> Vec<u8> {
        let mut row = Vec::new();
        RowWriter::encode(&mut row, values.iter().map(Value::as_ref)).expect("encodes");
        row
    }

    fn values() -> Vec<Value> {
        let long = "a\u{e9}\u{20ac}\u{1f600}".repeat(20_000).into_bytes();
        let mut with_nul = long.clone();
        with_nul[150_000] = 0;
        // Ends within a character, and begins with the rest of one.
        let cut = long[3..PIECE + 2].to_vec();
        let mut values = vec![
            Value::Null,
            Value::Integer(-12_345),
            Value::Integer(7),
            Value::Real(1e100),
            Value::Real(0.5),
            Value::Text(Vec::new()),
            Value::Text(b"a\0b".to_vec()),
            Value::Blob(Vec::new()),
            Value::Blob(vec![0; 300]),
            Value::Blob(vec![9; 200_000]),
            Value::Text(vec![0x80; 3 * PIECE]),
        ];
        values.extend([long, with_nul, cut].map(Value::Text));
        values
    }

    #[test]
    fn large_rows_say_the_same_as_values() {
        let values = values();
        let row = row(&values);
        for (column, value) in values.iter().enumerate() {
            for property in ALL {
                for start in [1, 20, 128, row.len()] {
                    let (found, _) = large(&row, start, column, property);
                    let expected = property.of(value.as_ref()).to_value();
                    assert_eq!(found, expected, "{property:?} of column {column}");
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_left_alone() {
        let row = row(&values());
        for column in 0..values().len() {
            for property in ALL {
                let (_, read) = large(&row, 128, column, property);
                let is_text = matches!(values()[column], Value::Text(ref text) if text.len() > 99);
                let is_read = is_text && property == Property::Length;
                assert_eq!(read > 0, is_read, "{property:?} of column {column}");
            }
        }
        // Up to the piece with the NUL.
        let (_, read) = large(&row, 128, 12, Property::Length);
        assert_eq!(read, 3 * PIECE);
    }

    #[test]
    fn columns_that_a_row_lacks() {
        let row = row(&[Value::Integer(1)]);
        let mut large = Large {
            start: &row,
            length: row.len(),
            load: |_: Range<usize>, _: &mut Vec<u8>| Ok(()),
        };
        let found = large.property(1, Property::Length).expect("whole");
        assert!(found.is_none());
    }
}
