//! What an expression reads: one row, wherever its values lie.

use crate::exec::batch::Batch;
use crate::exec::point::PointRow;
use crate::exec::point_read::PointRead;
use crate::value::{Value, ValueRef};

/// The input row of an expression. Reading a column it does not have gives NULL.
#[derive(Clone, Copy)]
pub enum Row<'a> {
    /// No columns.
    Empty,
    /// A row of a batch.
    Batch(&'a Batch, usize),
    /// A left row followed by a right one; the left batch's width divides them.
    Pair(&'a Batch, usize, &'a Batch, usize),
    /// Owned values.
    Values(&'a [Value]),
    /// Two rows of owned values, one after the other.
    Chain(&'a [Value], &'a [Value]),
    /// Borrowed values.
    Refs(&'a [ValueRef<'a>]),
    /// A stored row that a point path found.
    Point(&'a PointRow),
    /// The result columns of a point read.
    Read(&'a PointRead),
}

impl<'a> Row<'a> {
    /// A column.
    #[inline]
    pub fn get(self, column: usize) -> ValueRef<'a> {
        match self {
            Row::Empty => ValueRef::Null,
            Row::Batch(batch, row) => batch.get(column, row),
            Row::Pair(left, l, right, r) => match column.checked_sub(left.columns.len()) {
                None => left.get(column, l),
                Some(column) => right.get(column, r),
            },
            Row::Values(values) => values.get(column).map_or(ValueRef::Null, Value::as_ref),
            Row::Chain(first, second) => match column.checked_sub(first.len()) {
                None => first.get(column).map_or(ValueRef::Null, Value::as_ref),
                Some(column) => second.get(column).map_or(ValueRef::Null, Value::as_ref),
            },
            Row::Refs(values) => values.get(column).copied().unwrap_or(ValueRef::Null),
            Row::Point(row) => row.get(column),
            Row::Read(read) => read.column(column),
        }
    }
}
