//! Nested-loop join: for each left row the right side is opened anew, after the
//! registers it reads were stored.

use fulgurite_store::Txn;

use super::pairs::Pairs;
use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::{Expr, Register};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition, eval};
use crate::plan::physical::JoinKind;

/// See the module.
pub struct NestedLoopJoin {
    left: BoxOperator,
    right: BoxOperator,
    kind: JoinKind,
    bindings: Vec<(Register, Expr)>,
    condition: Option<Expr>,
    width: usize,
    left_rows: Batch,
    right_rows: Batch,
    /// The left row being joined, by position among those that count.
    position: usize,
    right_position: usize,
    /// The right side is open for the left row.
    active: bool,
    matched: bool,
    pairs: Pairs,
    delayed: Delayed,
}

impl NestedLoopJoin {
    /// Yields rows of `width` columns.
    pub fn new(
        left: BoxOperator,
        right: BoxOperator,
        kind: JoinKind,
        bindings: Vec<(Register, Expr)>,
        condition: Option<Expr>,
        width: usize,
    ) -> Self {
        Self {
            left,
            right,
            kind,
            bindings,
            condition,
            width,
            left_rows: Batch::default(),
            right_rows: Batch::default(),
            position: 0,
            right_position: 0,
            active: false,
            matched: false,
            pairs: Pairs::default(),
            delayed: Delayed::default(),
        }
    }

    fn yields_right(&self) -> bool {
        matches!(self.kind, JoinKind::Inner | JoinKind::Left)
    }

    fn flush(&mut self, out: &mut Batch) -> Result<()> {
        let right = if self.yields_right() {
            Some(&self.right_rows)
        } else {
            None
        };
        self.pairs.flush(&self.left_rows, right, out)
    }

    /// Opens the right side for the next left row; false: no left row is left.
    fn advance(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        if self.position >= self.left_rows.len() {
            self.flush(out)?;
            cx.run.check_interrupt()?;
            self.position = 0;
            if !self.left.next(cx, want, &mut self.left_rows)? {
                return Ok(false);
            }
        }
        let row = self.left_rows.row_at(self.position).unwrap_or(0);
        for (register, expr) in &self.bindings {
            let value = eval(expr, Row::Batch(&self.left_rows, row), cx)?;
            cx.run.set_register(*register, value.as_ref());
        }
        self.right.open(cx)?;
        self.right_position = 0;
        // The pairs collected so far point into the old right rows.
        self.flush(out)?;
        self.right_rows.clear();
        self.active = true;
        self.matched = false;
        Ok(true)
    }

    /// The left row is done.
    fn leave(&mut self, out: &mut Batch, row: usize) -> Result<()> {
        if !self.matched && matches!(self.kind, JoinKind::Left | JoinKind::Anti) {
            self.flush(out)?;
            self.pairs.push_alone(row);
            self.flush(out)?;
        }
        self.active = false;
        self.position += 1;
        Ok(())
    }

    /// Joins the left row with the right rows at hand.
    fn join(
        &mut self,
        cx: &mut Context<'_, '_>,
        row: usize,
        most: usize,
        have: usize,
    ) -> Result<()> {
        while have + self.pairs.len() < most {
            let Some(right) = self.right_rows.row_at(self.right_position) else {
                break;
            };
            self.right_position += 1;
            if let Some(test) = &self.condition
                && condition(
                    test,
                    Row::Pair(&self.left_rows, row, &self.right_rows, right),
                    cx,
                )? != Some(true)
            {
                continue;
            }
            self.matched = true;
            match self.kind {
                JoinKind::Inner | JoinKind::Left => self.pairs.push(row, right),
                JoinKind::Semi => {
                    self.pairs.push_alone(row);
                    break;
                }
                JoinKind::Anti => break,
            }
        }
        Ok(())
    }

    fn fill(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<()> {
        let most = want.clamp(1, ROWS_MAX);
        let right_want = if self.yields_right() { want } else { 1 };
        while out.rows() + self.pairs.len() < most {
            if !self.active && !self.advance(cx, want, out)? {
                break;
            }
            let row = self.left_rows.row_at(self.position).unwrap_or(0);
            if self.right_position >= self.right_rows.len() {
                self.flush(out)?;
                self.right_position = 0;
                if !self.right.next(cx, right_want, &mut self.right_rows)? {
                    self.leave(out, row)?;
                    continue;
                }
            }
            let outcome = self.join(cx, row, most, out.rows());
            if self.matched && !self.yields_right() {
                self.leave(out, row)?;
            }
            outcome?;
        }
        Ok(())
    }
}

impl Operator for NestedLoopJoin {
    fn attach(&mut self, txn: &mut Txn) -> Result<()> {
        self.left.attach(txn)?;
        self.right.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.pairs.clear();
        self.left_rows.clear();
        self.right_rows.clear();
        self.position = 0;
        self.right_position = 0;
        self.active = false;
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.width);
        let outcome = self.fill(cx, want, out);
        self.flush(out)?;
        match outcome {
            Ok(()) => Ok(out.rows() > 0),
            Err(error) => self.delayed.after(out.rows(), error),
        }
    }

    fn detach(&mut self) {
        self.left_rows.let_go();
        self.right_rows.let_go();
        self.left.detach();
        self.right.detach();
    }
}
