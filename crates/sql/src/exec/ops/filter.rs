//! Filter: rows for which a predicate is true.

use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition, filter};
use crate::exec::txns::Txns;

/// See the module.
pub struct Filter {
    input: BoxOperator,
    predicate: Expr,
    delayed: Delayed,
}

impl Filter {
    /// Over `input`.
    pub fn new(input: BoxOperator, predicate: Expr) -> Self {
        Self {
            input,
            predicate,
            delayed: Delayed::default(),
        }
    }
}

/// Narrows the batch to the rows for which the predicate is true. An error after
/// good rows is left in `delayed`.
pub fn narrow(
    predicate: &Expr,
    batch: &mut Batch,
    cx: &mut Context<'_, '_>,
    delayed: &mut Delayed,
) -> Result<()> {
    let mut kept = cx.run.rows();
    // A kernel is not worth its preparation for one row.
    let done = predicate.props.deterministic
        && batch.len() > 1
        && match filter(predicate, batch, batch.selection(), cx, &mut kept) {
            Ok(()) => true,
            Err(_) => {
                kept.clear();
                false
            }
        };
    let outcome = if done {
        Ok(())
    } else {
        batch.selection().try_each(|row| {
            if condition(predicate, Row::Batch(batch, row), cx)? == Some(true) {
                kept.push(row as u32);
            }
            Ok(())
        })
    };
    batch.select(&mut kept);
    cx.run.recycle_rows(kept);
    if let Err(error) = outcome {
        delayed.after(batch.len(), error)?;
    }
    Ok(())
}

impl Operator for Filter {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, mut want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        while self.input.next(cx, want, out)? {
            cx.run.check_interrupt()?;
            narrow(&self.predicate, out, cx, &mut self.delayed)?;
            if !out.is_empty() {
                return Ok(true);
            }
            // Whoever finds nothing looks at more at once.
            want = want.saturating_mul(4);
        }
        Ok(false)
    }

    fn detach(&mut self) {
        self.input.detach();
    }
}
