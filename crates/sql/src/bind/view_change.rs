//! INSERT, UPDATE and DELETE of views, for which INSTEAD OF triggers stand in.
//!
//! The view is read, or the rows are made, and each is handed to the triggers. Nothing is
//! written but by these.

use std::sync::Arc;

use super::Binder;
use super::dml::plain_query;
use super::expr::{Expr, Props};
use super::logical::{Block, Bound, BoundViewChange};
use super::scalar::push_conjuncts;
use crate::ast;
use crate::error::Result;
use crate::schema::Table;
use crate::value::Value;

/// What triggers see of a new row: no OLD, and NEW over the source's row.
pub(super) fn inserted_view_row(rowid: Option<Expr>, values: Vec<Expr>) -> Vec<Expr> {
    let old = vec![Expr::null(); values.len() + 1];
    let rowid = rowid.unwrap_or_else(|| Expr::literal(Value::Integer(-1)));
    old.into_iter().chain([rowid]).chain(values).collect()
}

/// Columns of a source's row, behind a rowid that there is not.
fn row_of(columns: impl Iterator<Item = usize>) -> impl Iterator<Item = Expr> {
    let input = |at| Expr::input(at, Props::column(None, None));
    std::iter::once(Expr::null()).chain(columns.map(input))
}

impl Binder<'_> {
    pub(super) fn update_view(
        &mut self,
        update: &ast::Update,
        table: Arc<Table>,
        fires: Vec<usize>,
    ) -> Result<Bound> {
        let alias = update.alias.as_ref();
        let (block, assigned) = self.view_rows(&update.table, alias, |this, block| {
            this.more_from(&update.from, block)?;
            let mut assigned = Vec::new();
            for (column, value) in this.assignments(&update.sets, &table)? {
                assigned.push(column);
                block.outputs.push(value);
            }
            let filter = update.filter.iter();
            for filter in filter {
                push_conjuncts(this.expr(filter)?, &mut block.filter);
            }
            this.join_conditions(block)?;
            Ok(assigned)
        })?;
        let width = table.columns.len();
        let old = row_of(0..width);
        // Of a column assigned twice the last counts, and there is but one.
        let new = row_of((0..width).map(|column| {
            let place = assigned.iter().position(|it| *it == column);
            place.map_or(column, |place| width + place)
        }));
        let rows = old.chain(new).collect();
        self.view_change(&update.returning, table, block, rows, false, fires)
    }

    pub(super) fn delete_from_view(
        &mut self,
        delete: &ast::Delete,
        table: Arc<Table>,
        fires: Vec<usize>,
    ) -> Result<Bound> {
        let alias = delete.alias.as_ref();
        let (block, ()) = self.view_rows(&delete.table, alias, |this, block| {
            if let Some(filter) = &delete.filter {
                push_conjuncts(this.expr(filter)?, &mut block.filter);
            }
            this.join_conditions(block)
        })?;
        let width = table.columns.len();
        let new = vec![Expr::null(); width + 1];
        let rows = row_of(0..width).chain(new).collect();
        self.view_change(&delete.returning, table, block, rows, true, fires)
    }

    /// The rows of a view; `more` adds what else there is to them.
    fn view_rows<T>(
        &mut self,
        name: &ast::QualifiedName,
        alias: Option<&ast::Name>,
        more: impl FnOnce(&mut Self, &mut Block) -> Result<T>,
    ) -> Result<(Block, T)> {
        let (bound, _) = self.in_frame(|this| {
            let mut block = Block::default();
            this.sole_source(name, alias, &mut block)?;
            for table in &this.frame().tables {
                let columns = (0..table.width()).map(|at| table.column(at).expr);
                block.outputs.extend(columns);
            }
            let more = more(this, &mut block)?;
            Ok((block, more))
        })?;
        Ok(bound)
    }

    fn view_change(
        &mut self,
        returning: &[ast::ResultColumn],
        table: Arc<Table>,
        block: Block,
        rows: Vec<Expr>,
        is_delete: bool,
        fires: Vec<usize>,
    ) -> Result<Bound> {
        let id = self.new_source()?;
        let (returning, columns) = self.returning(returning, &table, id)?;
        Ok(Bound::ViewChange(Box::new(BoundViewChange {
            table,
            id,
            source: plain_query(block),
            rows,
            is_delete,
            fires,
            returning,
            columns,
        })))
    }
}
