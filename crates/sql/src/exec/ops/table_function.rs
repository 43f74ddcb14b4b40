//! Table function: the rows that a table-valued function gives for its arguments, which
//! are evaluated whenever it is opened.

use super::{Delayed, Operator};
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{BYTES_MAX, Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::expr::{Datum, Row, eval};
use crate::exec::txns::Txns;
use crate::func::table::{self, TableRows};
use crate::value::ValueRef;

/// See the module.
pub struct TableFunction {
    rows: Box<dyn TableRows>,
    args: Vec<Option<Expr>>,
    columns: Vec<usize>,
    /// The last row has been given.
    is_done: bool,
    delayed: Delayed,
}

impl TableFunction {
    /// Rows of these columns of the function.
    pub fn new(
        function: &dyn table::TableFunction,
        args: Vec<Option<Expr>>,
        columns: Vec<usize>,
    ) -> Self {
        Self {
            rows: function.rows(),
            args,
            columns,
            is_done: true,
            delayed: Delayed::default(),
        }
    }

    /// Appends up to `want` rows; how many.
    fn fill(&mut self, want: usize, out: &mut Batch, done: &mut usize) -> Result<()> {
        while *done < want && !self.is_done {
            if !self.rows.next()? {
                self.is_done = true;
                break;
            }
            for (column, vector) in self.columns.iter().zip(&mut out.columns) {
                vector.push(self.rows.column(*column)?.as_ref())?;
            }
            *done += 1;
            if done.is_multiple_of(16) && out.memory() > BYTES_MAX {
                break;
            }
        }
        Ok(())
    }
}

impl Operator for TableFunction {
    fn attach(&mut self, _txn: &mut Txns) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.is_done = false;
        let mut values = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            let value = arg.as_ref().map(|e| eval(e, Row::Empty, cx)).transpose()?;
            values.push(value);
        }
        let values: Vec<Option<ValueRef<'_>>> = values
            .iter()
            .map(|value| value.as_ref().map(Datum::as_ref))
            .collect();
        self.rows.start(&values, &cx.run.functions)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        cx.run.check_interrupt()?;
        out.reset(self.columns.len());
        let mut done = 0;
        let outcome = self.fill(want.clamp(1, ROWS_MAX), out, &mut done);
        for column in &mut out.columns {
            column.truncate(done);
        }
        out.set_rows(done);
        match outcome {
            Ok(()) => Ok(done > 0),
            Err(error) => {
                self.is_done = true;
                self.delayed.after(done, error)
            }
        }
    }

    fn detach(&mut self) {
        self.is_done = true;
    }
}
