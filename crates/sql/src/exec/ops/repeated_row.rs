//! A row for every so many of the values that are bound.

use super::{Delayed, Operator};
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::txns::Txns;

/// See the module.
pub struct RepeatedRow {
    row: Vec<Expr>,
    parameters: usize,
    /// Where the values of the next one begin.
    position: usize,
    delayed: Delayed,
}

impl RepeatedRow {
    /// One of expressions with so many parameters.
    pub fn new(row: Vec<Expr>, parameters: usize) -> Self {
        Self {
            row,
            parameters,
            position: 0,
            delayed: Delayed::default(),
        }
    }

    /// Puts the next rows behind each other, up to `most`.
    fn fill(
        &mut self,
        cx: &mut Context<'_, '_>,
        most: usize,
        out: &mut Batch,
        done: &mut usize,
    ) -> Result<()> {
        let bound = cx.parameters;
        while *done < most
            && let Some(values) = bound.get(self.position..self.position + self.parameters)
        {
            self.position += self.parameters;
            cx.parameters = values;
            for (expr, column) in self.row.iter().zip(&mut out.columns) {
                column.push(eval(expr, Row::Empty, cx)?.as_ref())?;
            }
            *done += 1;
        }
        Ok(())
    }
}

impl Operator for RepeatedRow {
    fn attach(&mut self, _txn: &mut Txns) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.position = 0;
        self.delayed.clear();
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.row.len());
        let (bound, mut done) = (cx.parameters, 0);
        let filled = self.fill(cx, want.clamp(1, ROWS_MAX), out, &mut done);
        cx.parameters = bound;
        for column in &mut out.columns {
            column.truncate(done);
        }
        out.set_rows(done);
        match filled {
            Err(error) => self.delayed.after(done, error),
            Ok(()) => Ok(done > 0),
        }
    }

    fn detach(&mut self) {}
}
