//! Distinct over rows of which equal ones come one after the other: the first of each run,
//! which is all that has to be remembered.

use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::txns::Txns;
use crate::value::{Collation, Value, not_distinct};

/// See the module.
pub struct DistinctNeighbours {
    input: BoxOperator,
    collations: Vec<Collation>,
    /// The last row that came out, as far as it tells rows apart; empty before the first.
    last: Vec<Value>,
}

impl DistinctNeighbours {
    /// Over `input`, whose leading columns, one a collation, tell rows apart.
    pub fn new(input: BoxOperator, collations: Vec<Collation>) -> Self {
        Self {
            input,
            collations,
            last: Vec::new(),
        }
    }

    /// Keeps the rows of the batch that differ from the one before them.
    fn keep_new(&mut self, batch: &mut Batch, cx: &mut Context<'_, '_>) {
        let mut kept = cx.run.rows();
        let columns = || batch.columns.iter().zip(&self.collations);
        let mut before: Option<usize> = None;
        batch.selection().each(|row| {
            let is_same = match before {
                Some(before) => columns()
                    .all(|(column, it)| not_distinct(column.get(before), column.get(row), *it)),
                None => {
                    let mut last = self.last.iter();
                    !self.last.is_empty()
                        && columns().all(|(column, it)| {
                            let last = last.next().map(Value::as_ref);
                            last.is_some_and(|last| not_distinct(last, column.get(row), *it))
                        })
                }
            };
            if !is_same {
                before = Some(row);
                kept.push(row as u32);
            }
        });
        if let Some(row) = before {
            self.last.clear();
            let values = columns().map(|(column, _)| column.get(row).to_value());
            self.last.extend(values);
        }
        batch.select(&mut kept);
        cx.run.recycle_rows(kept);
    }
}

impl Operator for DistinctNeighbours {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.last.clear();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        while self.input.next(cx, want, out)? {
            cx.run.check_interrupt()?;
            self.keep_new(out, cx);
            if !out.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn detach(&mut self) {
        self.last.clear();
        self.input.detach();
    }
}
