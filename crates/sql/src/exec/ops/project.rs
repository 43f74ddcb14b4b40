//! Project: one value for each expression.
//!
//! A column that is passed on as it is moves over instead of being copied,
//! unless a later expression still reads it.

use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval, eval_batch};
use crate::exec::txns::Txns;

/// See the module.
pub struct Project {
    input: BoxOperator,
    exprs: Vec<Expr>,
    /// For each expression that is a bare column: the column, and whether it is
    /// the last one to ask for it.
    bare: Vec<Option<(usize, bool)>>,
    volatile: bool,
    rows: Batch,
    delayed: Delayed,
}

impl Project {
    /// Over `input`.
    pub fn new(input: BoxOperator, exprs: Vec<Expr>) -> Self {
        let column = |e: &Expr| {
            if let ExprKind::Input(c) = e.kind {
                Some(c)
            } else {
                None
            }
        };
        let bare = exprs
            .iter()
            .enumerate()
            .map(|(i, e)| {
                column(e).map(|c| {
                    (
                        c,
                        !exprs
                            .iter()
                            .skip(i + 1)
                            .any(|later| column(later) == Some(c)),
                    )
                })
            })
            .collect();
        let volatile = exprs.iter().any(|e| !e.props.deterministic);
        Self {
            input,
            exprs,
            bare,
            volatile,
            rows: Batch::default(),
            delayed: Delayed::default(),
        }
    }

    fn by_column(&mut self, cx: &mut Context<'_, '_>, out: &mut Batch) -> Result<()> {
        for ((expr, bare), column) in self.exprs.iter().zip(&self.bare).zip(&mut out.columns) {
            if bare.is_none() {
                eval_batch(expr, &self.rows, self.rows.selection(), cx, column)?;
            }
        }
        for (bare, column) in self.bare.iter().zip(&mut out.columns) {
            let Some((source, last)) = *bare else {
                continue;
            };
            let Some(source) = self.rows.columns.get_mut(source) else {
                continue;
            };
            if last {
                std::mem::swap(source, column);
            } else {
                column.copy_from(source);
            }
        }
        out.copy_selection(&self.rows);
        Ok(())
    }

    /// Row by row; the good rows before an error are kept.
    fn by_row(&mut self, cx: &mut Context<'_, '_>, out: &mut Batch) -> Result<()> {
        let mut done = 0;
        let outcome = self.rows.selection().try_each(|row| {
            for (expr, column) in self.exprs.iter().zip(&mut out.columns) {
                column.push(eval(expr, Row::Batch(&self.rows, row), cx)?.as_ref())?;
            }
            done += 1;
            Ok(())
        });
        for column in &mut out.columns {
            column.truncate(done);
        }
        out.set_rows(done);
        if let Err(error) = outcome {
            self.delayed.after(done, error)?;
        }
        Ok(())
    }
}

impl Operator for Project {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.exprs.len());
        if !self.input.next(cx, want, &mut self.rows)? {
            return Ok(false);
        }
        // A kernel is not worth its preparation for one row.
        if self.volatile || self.rows.len() == 1 || self.by_column(cx, out).is_err() {
            out.reset(self.exprs.len());
            self.by_row(cx, out)?;
        }
        Ok(true)
    }

    fn skip(&mut self, cx: &mut Context<'_, '_>, rows: u64) -> Result<u64> {
        self.input.skip(cx, rows)
    }

    fn detach(&mut self) {
        self.rows.let_go();
        self.input.detach();
    }
}
