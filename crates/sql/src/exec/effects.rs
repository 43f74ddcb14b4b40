//! What a writing statement did, for its connection and its RETURNING clause.

use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::rows::RowStore;

/// See the module.
#[derive(Default)]
pub struct Effects {
    /// Rows inserted, updated or deleted.
    pub changes: u64,
    /// Rows that actions of foreign keys changed beside them.
    pub by_actions: u64,
    /// The last row inserted.
    pub last_rowid: Option<i64>,
    /// Rows of RETURNING.
    pub rows: Option<RowStore>,
    scratch: Batch,
}

impl Effects {
    /// Nothing done yet.
    pub fn clear(&mut self) {
        self.changes = 0;
        self.by_actions = 0;
        self.last_rowid = None;
        self.rows = None;
    }

    /// Gives back what large rows took.
    pub fn let_go(&mut self) {
        self.scratch.let_go();
    }

    /// Rows were inserted, the last of them with this rowid.
    #[inline]
    pub fn inserted(&mut self, rows: u64, last: i64) {
        self.changes += rows;
        self.last_rowid = Some(last);
    }

    /// Rows were updated or deleted.
    #[inline]
    pub fn changed(&mut self, rows: u64) {
        self.changes += rows;
    }

    /// Adds a row of RETURNING.
    pub fn returned(
        &mut self,
        exprs: &[Expr],
        row: Row<'_>,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        self.scratch.reset(exprs.len());
        for (expr, column) in exprs.iter().zip(&mut self.scratch.columns) {
            column.push(eval(expr, row, cx)?.as_ref())?;
        }
        self.scratch.set_rows(1);
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => self.rows.insert(RowStore::new(exprs.len(), &cx.run.memory)),
        };
        rows.append(&self.scratch)
    }
}
