//! The rows that a join puts together: row numbers first, values in one go.

use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::hash::NONE;

/// Pairs of row numbers of a left and a right batch.
#[derive(Default)]
pub struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Pairs {
    /// How many.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// No pairs?
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Adds a pair.
    #[inline]
    pub fn push(&mut self, left: usize, right: usize) {
        self.left.push(left as u32);
        self.right.push(right as u32);
    }

    /// Adds a left row without a partner.
    pub fn push_alone(&mut self, left: usize) {
        self.left.push(left as u32);
        self.right.push(NONE);
    }

    /// Appends the pairs' values to `out`: left columns, then, if `right` is
    /// given, right columns. Forgets the pairs.
    pub fn flush(&mut self, left: &Batch, right: Option<&Batch>, out: &mut Batch) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (front, back) = out
            .columns
            .split_at_mut_checked(left.columns.len())
            .unwrap_or_default();
        for (column, source) in front.iter_mut().zip(&left.columns) {
            column.gather(source, &self.left)?;
        }
        if let Some(right) = right {
            for (i, column) in back.iter_mut().enumerate() {
                match right.columns.get(i) {
                    Some(source) => column.gather(source, &self.right)?,
                    None => self.right.iter().for_each(|_| column.push_null()),
                }
            }
        }
        out.set_rows(out.rows() + self.len());
        self.left.clear();
        self.right.clear();
        Ok(())
    }

    /// Has these columns of all pairs in `out`, left columns first; the others stay empty.
    pub fn put_together(
        &self,
        columns: &[usize],
        left: &Batch,
        right: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        for at in columns {
            let (source, rows) = match left.columns.get(*at) {
                Some(source) => (Some(source), &self.left),
                None => (right.columns.get(*at - left.columns.len()), &self.right),
            };
            if let (Some(source), Some(column)) = (source, out.columns.get_mut(*at)) {
                column.gather(source, rows)?;
            }
        }
        out.set_rows(self.len());
        Ok(())
    }

    /// Keeps the pairs of these numbers.
    pub fn keep(&mut self, numbers: Selection<'_>) {
        for rows in [&mut self.left, &mut self.right] {
            let mut kept = 0;
            numbers.each(|number| {
                if let Some(row) = rows.get(number).copied()
                    && let Some(slot) = rows.get_mut(kept)
                {
                    *slot = row;
                    kept += 1;
                }
            });
            rows.truncate(kept);
        }
    }

    /// Forgets the pairs.
    pub fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
    }
}

/// Appends right rows without a partner to `out`: NULLs, then their columns.
pub fn push_right(right: &Batch, rows: &[u32], out: &mut Batch) -> Result<()> {
    let left_width = out.columns.len().saturating_sub(right.columns.len());
    for (i, column) in out.columns.iter_mut().enumerate() {
        match i.checked_sub(left_width).and_then(|i| right.columns.get(i)) {
            Some(source) => column.gather(source, rows)?,
            None => rows.iter().for_each(|_| column.push_null()),
        }
    }
    out.set_rows(out.rows() + rows.len());
    Ok(())
}
