//! Limit: LIMIT and OFFSET.

use super::{BoxOperator, Operator};
use crate::error::{Error, Result};
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::txns::Txns;
use crate::plan::physical::LimitClause;
use crate::value::{Affinity, ValueRef};

/// See the module.
pub struct Limit {
    input: BoxOperator,
    clause: LimitClause,
    skip: u64,
    left: u64,
}

/// Rows to skip and rows to keep then (u64::MAX: all).
pub fn bounds(clause: &LimitClause, cx: &mut Context<'_, '_>) -> Result<(u64, u64)> {
    let mut value = |expr: &Option<crate::bind::expr::Expr>| -> Result<Option<i64>> {
        let Some(expr) = expr else { return Ok(None) };
        let value = eval(expr, Row::Empty, cx)?;
        match Affinity::Numeric.apply(value.as_ref()).as_ref() {
            ValueRef::Integer(i) => Ok(Some(i)),
            _ => Err(Error::mismatch()),
        }
    };
    let limit = value(&clause.limit)?
        .and_then(|l| u64::try_from(l).ok())
        .unwrap_or(u64::MAX);
    // Nobody asks then what is to be skipped, whatever that is.
    if limit == 0 {
        return Ok((0, 0));
    }
    let offset = value(&clause.offset)?
        .and_then(|o| u64::try_from(o).ok())
        .unwrap_or(0);
    Ok((offset, limit))
}

impl Limit {
    /// Over `input`.
    pub fn new(input: BoxOperator, clause: LimitClause) -> Self {
        Self {
            input,
            clause,
            skip: 0,
            left: 0,
        }
    }
}

impl Operator for Limit {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        (self.skip, self.left) = bounds(&self.clause, cx)?;
        if self.left > 0 {
            self.input.open(cx)
        } else {
            Ok(())
        }
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        if self.skip > 0 && self.left > 0 {
            self.skip -= self.input.skip(cx, self.skip)?;
        }
        while self.left > 0 {
            let useful = usize::try_from(self.skip.saturating_add(self.left)).unwrap_or(usize::MAX);
            if !self.input.next(cx, want.min(useful), out)? {
                break;
            }
            let rows = out.len() as u64;
            if rows <= self.skip {
                self.skip -= rows;
                continue;
            }
            let keep = (rows - self.skip).min(self.left);
            out.slice(self.skip as usize, keep as usize);
            self.skip = 0;
            self.left -= keep;
            return Ok(true);
        }
        out.reset(out.columns.len());
        Ok(false)
    }

    fn detach(&mut self) {
        self.input.detach();
    }
}
