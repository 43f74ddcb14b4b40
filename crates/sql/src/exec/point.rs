//! A single stored row that a point path found: the row's bytes, copied once,
//! and where the wanted columns lie in them. Finding another row reuses the
//! memory.

use crate::error::Result;
use crate::exec::fetch::{Fetch, Fetched};
use crate::exec::memory::KEPT_BYTES;
use crate::value::{Value, ValueRef};

#[derive(Debug, Clone)]
enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text {
        start: usize,
        end: usize,
    },
    Blob {
        start: usize,
        end: usize,
    },
    /// Not in the row: a column's default.
    Elsewhere(Value),
}

/// See the module.
#[derive(Debug, Default)]
pub struct PointRow {
    /// The row as stored; filled by the caller before [`PointRow::decode`].
    pub bytes: Vec<u8>,
    /// It is not all that is stored.
    pub is_large: bool,
    /// What is asked of a large one's columns without their bytes.
    pub properties: Vec<ValueRef<'static>>,
    cells: Vec<Cell>,
}

impl PointRow {
    /// Forgets a large row, and gives back what it took.
    pub fn let_go(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES {
            *self = Self::default();
        }
    }

    /// Finds the wanted columns in `bytes`.
    #[inline]
    pub fn decode(&mut self, fetch: &Fetch, rowid: i64) -> Result<()> {
        // Every cell is set below.
        if self.cells.len() != fetch.width() {
            self.cells.resize(fetch.width(), Cell::Null);
        }
        let (bytes, cells) = (&self.bytes, &mut self.cells);
        let base = bytes.as_ptr() as usize;
        let place_of = |slice: &[u8]| {
            let start = (slice.as_ptr() as usize).wrapping_sub(base);
            (start <= bytes.len() && slice.len() <= bytes.len() - start)
                .then_some((start, start + slice.len()))
        };
        let row = Fetched {
            row: bytes,
            is_large: self.is_large,
            properties: &self.properties,
        };
        fetch.each(rowid, row, |place, value| {
            let cell = match value {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(i) => Cell::Integer(i),
                ValueRef::Real(r) => Cell::Real(r),
                ValueRef::Text(b) => match place_of(b) {
                    Some((start, end)) => Cell::Text { start, end },
                    None => Cell::Elsewhere(value.to_value()),
                },
                ValueRef::Blob(b) => match place_of(b) {
                    Some((start, end)) => Cell::Blob { start, end },
                    None => Cell::Elsewhere(value.to_value()),
                },
            };
            if let Some(slot) = cells.get_mut(place) {
                *slot = cell;
            }
            Ok(())
        })
    }

    /// For columns that are [set](Self::set) one by one.
    pub fn clear(&mut self, width: usize) {
        self.bytes.clear();
        self.cells.clear();
        self.cells.resize(width, Cell::Null);
    }

    /// Sets a column.
    pub fn set(&mut self, place: usize, value: ValueRef<'_>) {
        let start = self.bytes.len();
        let cell = match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(i) => Cell::Integer(i),
            ValueRef::Real(r) => Cell::Real(r),
            ValueRef::Text(b) | ValueRef::Blob(b) => {
                self.bytes.extend_from_slice(b);
                let end = self.bytes.len();
                match value {
                    ValueRef::Text(_) => Cell::Text { start, end },
                    _ => Cell::Blob { start, end },
                }
            }
        };
        if let Some(slot) = self.cells.get_mut(place) {
            *slot = cell;
        }
    }

    /// Puts a value behind the wanted columns.
    pub fn push(&mut self, value: Value) {
        self.cells.push(Cell::Elsewhere(value));
    }

    /// A wanted column.
    #[inline]
    pub fn get(&self, column: usize) -> ValueRef<'_> {
        match self.cells.get(column) {
            None | Some(Cell::Null) => ValueRef::Null,
            Some(Cell::Integer(i)) => ValueRef::Integer(*i),
            Some(Cell::Real(r)) => ValueRef::Real(*r),
            Some(Cell::Text { start, end }) => {
                ValueRef::Text(self.bytes.get(*start..*end).unwrap_or(&[]))
            }
            Some(Cell::Blob { start, end }) => {
                ValueRef::Blob(self.bytes.get(*start..*end).unwrap_or(&[]))
            }
            Some(Cell::Elsewhere(value)) => value.as_ref(),
        }
    }
}
