//! Generate: generated columns behind those of the input.

use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, Vector, kept};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval, eval_batch, map_batch};
use crate::exec::txns::Txns;
use crate::value::Affinity;

/// See the module.
pub struct Generate {
    input: BoxOperator,
    width: usize,
    columns: Vec<(Expr, Affinity)>,
    delayed: Delayed,
}

impl Generate {
    /// Over `input`, whose rows are so wide.
    pub fn new(input: BoxOperator, width: usize, columns: Vec<(Expr, Affinity)>) -> Self {
        Self {
            input,
            width,
            columns,
            delayed: Delayed::default(),
        }
    }

    fn by_column(&self, cx: &mut Context<'_, '_>, out: &mut Batch) -> Result<()> {
        for (expr, affinity) in &self.columns {
            let mut column = cx.run.vector();
            eval_batch(expr, out, out.selection(), cx, &mut column)?;
            if column.kinds() & !kept(*affinity) != 0 {
                let computed = std::mem::replace(&mut column, cx.run.vector());
                map_batch(out.selection(), &mut column, |row, column| {
                    column.push(affinity.apply(computed.get(row)).as_ref())
                })?;
                cx.run.recycle(computed);
            }
            push(out, column);
        }
        Ok(())
    }

    /// Row by row; the good rows before an error are kept.
    fn by_row(&mut self, cx: &mut Context<'_, '_>, out: &mut Batch) -> Result<()> {
        let mut good = out.len();
        let mut failed = None;
        for (expr, affinity) in &self.columns {
            let (mut column, mut done) = (cx.run.vector(), 0);
            let rows = out.selection().first(good);
            let outcome = map_batch(rows, &mut column, |row, column| {
                let value = eval(expr, Row::Batch(out, row), cx)?;
                column.push(affinity.apply(value.as_ref()).as_ref())?;
                done += 1;
                Ok(())
            });
            // Each error is of an earlier row than the one before.
            if let Err(error) = outcome {
                (good, failed) = (done, Some(error));
            }
            push(out, column);
        }
        out.slice(0, good);
        match failed {
            Some(error) => self.delayed.after(good, error).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// Columns are as long as their batch, whatever the rows that do not count.
fn push(out: &mut Batch, mut column: Vector) {
    while column.len() < out.rows() {
        column.push_null();
    }
    out.columns.push(column);
}

impl Operator for Generate {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.columns
            .drain(self.width.min(out.columns.len())..)
            .for_each(|column| cx.run.recycle(column));
        if !self.input.next(cx, want, out)? {
            return Ok(false);
        }
        // A kernel is not worth its preparation for one row.
        if out.len() == 1 || self.by_column(cx, out).is_err() {
            out.columns.truncate(self.width);
            self.by_row(cx, out)?;
        }
        Ok(true)
    }

    fn detach(&mut self) {
        self.input.detach();
    }
}
