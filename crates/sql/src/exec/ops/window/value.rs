//! What a call is called with.

use super::rows::Kept;
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::value::{Value, ValueRef};

/// An argument.
pub enum Argument {
    /// A column of the row.
    Column(usize),
    /// The same for all rows.
    Constant(Value),
}

impl Argument {
    /// Of an expression as the planner makes them.
    pub fn new(expr: &Expr, cx: &mut Context<'_, '_>) -> Result<Self> {
        Ok(match expr.kind {
            ExprKind::Input(column) => Argument::Column(column),
            _ => Argument::Constant(eval(expr, Row::Empty, cx)?.as_ref().to_value()),
        })
    }

    /// Its value in a row.
    #[inline]
    pub fn get<'a>(&'a self, kept: &'a Kept, row: usize) -> ValueRef<'a> {
        match self {
            Argument::Column(column) => kept.batch.get(*column, row),
            Argument::Constant(value) => value.as_ref(),
        }
    }

    /// Whether it is true in a row.
    pub fn is_true(&self, kept: &Kept, row: usize) -> bool {
        self.get(kept, row).truth() == Some(true)
    }
}
