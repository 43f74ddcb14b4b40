//! Which rows of a batch may be among the first ones of an order: those that are not behind
//! the last one that is kept so far. Told by the first term alone, of which nothing is
//! encoded for it.

use std::cmp::Ordering;

use crate::bind::expr::{ExprKind, SortKey};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::rows::decode_cell;
use crate::exec::sorter::Sorter;
use crate::value::{Value, ValueRef, compare};

/// See the module.
pub struct Top<'a> {
    column: usize,
    term: &'a SortKey,
    /// It is the only term.
    alone: bool,
    /// What the last row that is kept has there, and how often rows had been cut off then.
    last: Value,
    cuts: u64,
}

impl<'a> Top<'a> {
    /// By these terms; None where the first one is no column, or only the program knows how
    /// its texts compare.
    pub fn new(keys: &'a [SortKey]) -> Option<Self> {
        let term = keys.first().filter(|it| !it.collation.is_of_program())?;
        let ExprKind::Input(column) = term.expr.kind else {
            return None;
        };
        Some(Self {
            column,
            term,
            alone: keys.len() == 1,
            last: Value::Null,
            cuts: 0,
        })
    }

    /// Has the rows of the batch in `kept` that may be among the first; false: all may.
    pub fn keep(&mut self, sorter: &Sorter, batch: &Batch, kept: &mut Vec<u32>) -> Result<bool> {
        let Some((cuts, mut cells)) = sorter.last_kept() else {
            return Ok(false);
        };
        let Some(column) = batch.columns.get(self.column) else {
            return Ok(false);
        };
        if cuts != self.cuts {
            for _ in 0..self.column {
                decode_cell(&mut cells)?;
            }
            self.last = decode_cell(&mut cells)?.to_value();
            self.cuts = cuts;
        }
        kept.clear();
        let (last, alone) = (self.last.as_ref(), self.alone);
        let selection = batch.selection();
        if let (Some(words), ValueRef::Integer(last)) = (column.integers(), last) {
            let word = |row: usize| words.get(row).copied().unwrap_or(0);
            self.keep_where(selection, kept, alone, |row| word(row).cmp(&last));
        } else if let (Some(words), ValueRef::Real(last)) = (column.reals(), last) {
            let real = |row: usize| words.get(row).map_or(0.0, |w| f64::from_bits(*w as u64));
            let order = |row: usize| real(row).partial_cmp(&last).unwrap_or(Ordering::Equal);
            self.keep_where(selection, kept, alone, order);
        } else {
            let nulls = match self.term.nulls_first != self.term.descending {
                true => Ordering::Less,
                false => Ordering::Greater,
            };
            let order = |row: usize| match (column.get(row), last) {
                (ValueRef::Null, ValueRef::Null) => Ordering::Equal,
                (ValueRef::Null, _) => nulls,
                (_, ValueRef::Null) => nulls.reverse(),
                (value, last) => compare(value, last, self.term.collation),
            };
            self.keep_where(selection, kept, alone, order);
        }
        Ok(true)
    }

    /// `order`: of a row's value and the last one, ascending. A row that equals the last one
    /// came later, and so is behind it where there is no other term.
    #[inline]
    fn keep_where(
        &self,
        selection: Selection<'_>,
        kept: &mut Vec<u32>,
        alone: bool,
        order: impl Fn(usize) -> Ordering,
    ) {
        let descending = self.term.descending;
        selection.each(|row| {
            let order = order(row);
            let order = if descending { order.reverse() } else { order };
            if order.is_lt() || !alone && order.is_eq() {
                kept.push(row as u32);
            }
        });
    }
}
