//! Nested-loop join: for each left row the right side is opened anew, after the
//! registers it reads were stored. Where right rows without a partner are wanted, the right
//! side takes nothing from the left one and gives the same rows each time; each that finds
//! a partner is marked by its number, and in the end those without a mark are yielded.

use super::marks::Marks;
use super::pairs::{Pairs, push_right};
use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::{Expr, Register};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition, eval};
use crate::exec::txns::Txns;
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
    /// The right rows that have found a partner.
    marks: Marks,
    /// The number of the first of the right rows at hand.
    right_base: u64,
    /// All left rows have been joined, and the right side is open for those alone.
    left_done: bool,
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
            marks: Marks::default(),
            right_base: 0,
            left_done: false,
        }
    }

    fn flush(&mut self, out: &mut Batch) -> Result<()> {
        let right = if self.kind.yields_right() {
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
        self.right_base = 0;
        // The pairs collected so far point into the old right rows.
        self.flush(out)?;
        self.right_rows.clear();
        self.active = true;
        self.matched = false;
        Ok(true)
    }

    /// The left row is done.
    fn leave(&mut self, out: &mut Batch, row: usize) -> Result<()> {
        if !self.matched && self.kind.keeps_left() {
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
                JoinKind::Right | JoinKind::Full => {
                    let place = self.right_base + self.right_position as u64 - 1;
                    self.marks.set(place, &cx.run.memory);
                    self.pairs.push(row, right);
                }
                JoinKind::Semi => {
                    self.pairs.push_alone(row);
                    break;
                }
                JoinKind::Anti => break,
                JoinKind::Single => {
                    self.pairs.push(row, right);
                    break;
                }
            }
        }
        Ok(())
    }

    fn fill(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<()> {
        let most = want.clamp(1, ROWS_MAX);
        let right_want = if self.kind.takes_one() { 1 } else { want };
        while out.rows() + self.pairs.len() < most {
            if !self.active && !self.advance(cx, want, out)? {
                break;
            }
            let row = self.left_rows.row_at(self.position).unwrap_or(0);
            if self.right_position >= self.right_rows.len() {
                self.flush(out)?;
                self.right_base += self.right_position as u64;
                self.right_position = 0;
                if !self.right.next(cx, right_want, &mut self.right_rows)? {
                    self.leave(out, row)?;
                    continue;
                }
            }
            let outcome = self.join(cx, row, most, out.rows());
            if self.matched && self.kind.takes_one() {
                self.leave(out, row)?;
            }
            outcome?;
        }
        Ok(())
    }

    /// Yields the right rows without a partner, once all left rows have been joined.
    fn fill_alone(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<()> {
        if !self.left_done {
            self.right.open(cx)?;
            self.left_done = true;
            self.right_base = 0;
        }
        let mut rows = Vec::new();
        while out.rows() < want.clamp(1, ROWS_MAX)
            && self.right.next(cx, want, &mut self.right_rows)?
        {
            cx.run.check_interrupt()?;
            rows.clear();
            let mut place = self.right_base;
            self.right_rows.selection().each(|row| {
                if !self.marks.is_set(place) {
                    rows.push(row as u32);
                }
                place += 1;
            });
            self.right_base = place;
            push_right(&self.right_rows, &rows, out)?;
        }
        Ok(())
    }
}

impl Operator for NestedLoopJoin {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
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
        self.marks.clear();
        self.left_done = false;
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.width);
        let mut outcome = match self.left_done {
            true => Ok(()),
            false => self.fill(cx, want, out),
        };
        self.flush(out)?;
        if self.kind.keeps_right() && outcome.is_ok() && out.rows() == 0 {
            outcome = self.fill_alone(cx, want, out);
        }
        match outcome {
            Ok(()) => Ok(out.rows() > 0),
            Err(error) => self.delayed.after(out.rows(), error),
        }
    }

    fn detach(&mut self) {
        self.left_rows.let_go();
        self.right_rows.let_go();
        self.marks.clear();
        self.left.detach();
        self.right.detach();
    }
}
