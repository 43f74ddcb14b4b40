//! Batches: what operators hand to each other.
//!
//! A batch holds columns of equal length and says which of its rows count: all
//! of them, or those in the selection (ascending). A filter only writes the
//! selection; nothing is moved.

pub mod vector;

pub use vector::{Vector, tag};

use crate::error::Result;
use crate::exec::memory::KEPT_BYTES;
use crate::value::{Affinity, ValueRef};

/// Rows that a scan puts into its first batch when nobody said how many are wanted.
pub const ROWS_FIRST: usize = 16;
/// Most rows of a batch.
pub const ROWS_MAX: usize = 1024;
/// Bytes of texts and blobs after which a batch ends early.
pub const BYTES_MAX: usize = 1 << 20;

/// Rows as columns.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The columns, each with at least `rows` values.
    pub columns: Vec<Vector>,
    rows: usize,
    selection: Vec<u32>,
    selected: bool,
}

/// The kinds that an affinity leaves as they are, all of them.
pub fn kept(affinity: Affinity) -> u8 {
    match affinity {
        Affinity::Blob => u8::MAX,
        Affinity::Text => tag::NULL | tag::BLOB | tag::TEXT,
        Affinity::Numeric | Affinity::Integer => tag::NULL | tag::BLOB | tag::INTEGER,
        Affinity::Real => tag::NULL | tag::BLOB,
    }
}

/// The rows of a batch that count.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// The first n.
    All(usize),
    /// These, ascending.
    Rows(&'a [u32]),
}

impl Selection<'_> {
    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Selection::All(n) => *n,
            Selection::Rows(rows) => rows.len(),
        }
    }

    /// None at all?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One more than the largest row.
    #[inline]
    pub fn end(&self) -> usize {
        match self {
            Selection::All(n) => *n,
            Selection::Rows(rows) => rows.last().map_or(0, |r| *r as usize + 1),
        }
    }

    /// The i-th row.
    #[inline]
    pub fn row(&self, i: usize) -> Option<usize> {
        match self {
            Selection::All(n) => (i < *n).then_some(i),
            Selection::Rows(rows) => rows.get(i).map(|r| *r as usize),
        }
    }

    /// Calls `f` with each row, stops at an error.
    #[inline]
    pub fn try_each(&self, mut f: impl FnMut(usize) -> Result<()>) -> Result<()> {
        match self {
            Selection::All(n) => (0..*n).try_for_each(f),
            Selection::Rows(rows) => rows.iter().try_for_each(|r| f(*r as usize)),
        }
    }

    /// Calls `f` with each row.
    #[inline]
    pub fn each(&self, mut f: impl FnMut(usize)) {
        match self {
            Selection::All(n) => (0..*n).for_each(f),
            Selection::Rows(rows) => rows.iter().for_each(|r| f(*r as usize)),
        }
    }

    /// Its first `count` rows.
    pub fn first(&self, count: usize) -> Self {
        match *self {
            Selection::All(n) => Selection::All(n.min(count)),
            Selection::Rows(rows) => Selection::Rows(rows.get(..count).unwrap_or(rows)),
        }
    }
}

impl Batch {
    /// A batch of `width` empty columns.
    pub fn new(width: usize) -> Self {
        Self {
            columns: vec![Vector::new(); width],
            ..Self::default()
        }
    }

    /// Forgets the rows and has `width` columns.
    #[inline]
    pub fn reset(&mut self, width: usize) {
        if self.columns.len() != width {
            self.columns.resize_with(width, Vector::new);
        }
        for column in &mut self.columns {
            column.clear();
        }
        self.rows = 0;
        self.selected = false;
        self.selection.clear();
    }

    /// Forgets the rows and keeps columns and memory.
    #[inline]
    pub fn clear(&mut self) {
        for column in &mut self.columns {
            column.clear();
        }
        self.rows = 0;
        self.selected = false;
        self.selection.clear();
    }

    /// Says how many rows the columns hold; all of them count.
    #[inline]
    pub fn set_rows(&mut self, rows: usize) {
        self.rows = rows;
        self.selected = false;
    }

    /// Rows held, counting or not.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows that count.
    #[inline]
    pub fn len(&self) -> usize {
        if self.selected {
            self.selection.len()
        } else {
            self.rows
        }
    }

    /// No row counts?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows that count.
    #[inline]
    pub fn selection(&self) -> Selection<'_> {
        if self.selected {
            Selection::Rows(&self.selection)
        } else {
            Selection::All(self.rows)
        }
    }

    /// The i-th row that counts.
    #[inline]
    pub fn row_at(&self, i: usize) -> Option<usize> {
        if self.selected {
            self.selection.get(i).map(|r| *r as usize)
        } else {
            (i < self.rows).then_some(i)
        }
    }

    /// From now on these rows count; `selection` gets the old list's memory.
    #[inline]
    pub fn select(&mut self, selection: &mut Vec<u32>) {
        std::mem::swap(&mut self.selection, selection);
        self.selected = true;
    }

    /// Drops rows that count: the first `skip`, and those after `keep` more.
    pub fn slice(&mut self, skip: usize, keep: usize) {
        if skip == 0 && keep >= self.len() {
            return;
        }
        if !self.selected {
            self.selection.clear();
            let end = self.rows.min(skip.saturating_add(keep));
            self.selection
                .extend((skip.min(end)..end).map(|r| r as u32));
            self.selected = true;
            return;
        }
        self.selection.truncate(skip.saturating_add(keep));
        self.selection.drain(..skip.min(self.selection.len()));
    }

    /// A value; NULL outside.
    #[inline]
    pub fn get(&self, column: usize, row: usize) -> ValueRef<'_> {
        self.value(column, row)
    }

    /// As [`Batch::get`], for the one place that hands out every value.
    #[inline(always)]
    pub fn value(&self, column: usize, row: usize) -> ValueRef<'_> {
        match self.columns.get(column) {
            Some(column) => column.value(row),
            None => ValueRef::Null,
        }
    }

    /// Adds the rows of another batch that count.
    pub fn append(&mut self, other: &Batch) -> Result<()> {
        for (to, from) in self.columns.iter_mut().zip(&other.columns) {
            other.selection().try_each(|row| to.push_from(from, row))?;
        }
        self.rows += other.len();
        Ok(())
    }

    /// Takes over another batch's selection.
    pub fn copy_selection(&mut self, other: &Batch) {
        self.rows = other.rows;
        self.selected = other.selected;
        self.selection.clone_from(&other.selection);
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(Vector::memory).sum::<usize>() + self.selection.capacity() * 4
    }

    /// Forgets the rows, at the end of a run, and gives back what large ones took.
    pub fn let_go(&mut self) {
        if self.memory() > KEPT_BYTES {
            *self = Self::default();
        }
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slicing_keeps_the_middle() {
        let mut b = Batch::new(1);
        for i in 0..10 {
            b.columns[0].push_integer(i);
        }
        b.set_rows(10);
        b.slice(2, 5);
        assert_eq!(b.len(), 5);
        b.slice(1, 2);
        let rows: Vec<_> = (0..b.len()).filter_map(|i| b.row_at(i)).collect();
        assert_eq!(rows, [3, 4]);
        b.slice(5, 5);
        assert!(b.is_empty());
    }
}
