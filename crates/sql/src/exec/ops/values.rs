//! Values: rows of constant expressions.

use super::{Delayed, Operator};
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::txns::Txns;

/// See the module.
pub struct Values {
    rows: Vec<Vec<Expr>>,
    width: usize,
    position: usize,
    delayed: Delayed,
}

impl Values {
    /// Rows of `width` expressions.
    pub fn new(rows: Vec<Vec<Expr>>, width: usize) -> Self {
        Self {
            rows,
            width,
            position: 0,
            delayed: Delayed::default(),
        }
    }
}

impl Operator for Values {
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
        out.reset(self.width);
        let mut done = 0;
        let mut failure = None;
        while let Some(row) = self.rows.get(self.position) {
            let outcome = row
                .iter()
                .zip(&mut out.columns)
                .try_for_each(|(expr, column)| column.push(eval(expr, Row::Empty, cx)?.as_ref()));
            self.position += 1;
            if let Err(error) = outcome {
                failure = Some(error);
                break;
            }
            done += 1;
            if done >= want.clamp(1, ROWS_MAX) {
                break;
            }
        }
        for column in &mut out.columns {
            column.truncate(done);
        }
        out.set_rows(done);
        match failure {
            Some(error) => self.delayed.after(done, error),
            None => Ok(done > 0),
        }
    }

    fn detach(&mut self) {}
}
