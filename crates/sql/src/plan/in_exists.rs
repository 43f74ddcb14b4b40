//! Conditions `x IN (SELECT y …)` whose subquery looks at the row around it, where an index
//! may find `y`.
//!
//! All that the subquery yields would be gathered for each row. As a condition NULL is as good
//! as false, so that it asks whether the subquery has a row with `y = x`, which an index may
//! find, and stops at the first. (Of one table compared for equality it is a semi-join.)

use super::Planner;
use super::resolve::{Asked, Rows};
use super::semi::compared;
use crate::bind::expr::{Comparison, Expr, ExprKind, ROWID, Register, SubqueryId};
use crate::bind::logical::{Block, Body, LogicalSubquery, SourceKind};
use crate::error::Result;
use crate::schema::IndexTarget;

impl Planner<'_, '_> {
    /// An expression of which only matters whether it is true.
    pub(super) fn resolve_condition(&mut self, expr: &mut Expr, rows: &mut Rows<'_>) -> Result<()> {
        if let Some(found) = self.find(expr, rows)? {
            *expr = found;
            return Ok(());
        }
        match &mut expr.kind {
            ExprKind::And(parts) | ExprKind::Or(parts) => {
                let mut parts = parts.iter_mut();
                return parts.try_for_each(|part| {
                    crate::stack::grow(|| self.resolve_condition(part, rows))
                });
            }
            ExprKind::InSubquery {
                exprs,
                subquery,
                comparisons,
                negated: false,
            } => {
                if let Some(exists) = self.in_as_exists(*subquery, (exprs, comparisons), rows)? {
                    expr.kind = ExprKind::Exists(exists);
                    return Ok(());
                }
            }
            _ => {}
        }
        self.resolve_in_place(expr, rows)
    }

    /// A subquery that has a row where these operands are among its rows, if it is to be
    /// asked so.
    fn in_as_exists(
        &mut self,
        id: SubqueryId,
        (operands, comparisons): (&[Expr], &[Comparison]),
        rows: &mut Rows<'_>,
    ) -> Result<Option<SubqueryId>> {
        let logical = self.logical;
        let is_quiet = |expr: &Expr| expr.props.deterministic && !expr.props.fallible;
        let Some((subquery, block)) = logical.get(id).and_then(searched) else {
            return Ok(None);
        };
        if !operands.iter().chain(&block.outputs).all(is_quiet) {
            return Ok(None);
        }
        let mut handed_in: Vec<(Register, Expr)> = Vec::with_capacity(operands.len());
        let mut registers = Vec::with_capacity(operands.len());
        for operand in operands {
            handed_in.push((self.registers, operand.clone()));
            registers.push(Expr {
                kind: ExprKind::Register(self.registers),
                props: operand.props,
            });
            self.registers += 1;
        }
        let equal = compared(block, &registers, comparisons, false);
        let asked = Asked::Exists;
        let planned = self.subquery_where(subquery, equal, &handed_in, rows, asked)?;
        Ok(Some(planned))
    }
}

/// The block of a correlated subquery whose rows are those that its WHERE lets through, where
/// an index begins with one of its results.
fn searched(subquery: &LogicalSubquery) -> Option<(&LogicalSubquery, &Block)> {
    let Body::Block(block) = &subquery.query.body else {
        return None;
    };
    let is_plain = block.aggregation.is_none() && block.windows.is_empty();
    let is_plain = is_plain && block.having.is_empty() && subquery.query.limit.is_none();
    let is_correlated = subquery.cacheable && !subquery.bindings.is_empty();
    (is_plain && is_correlated && has_index(block)).then_some((subquery, block))
}

fn has_index(block: &Block) -> bool {
    let column_of = |output: &Expr| match output.kind {
        ExprKind::Column(column) => Some(column),
        _ => None,
    };
    block.outputs.iter().filter_map(column_of).any(|column| {
        let source = block.sources.iter().find(|s| s.id == column.source);
        let Some(SourceKind::Table(table)) = source.map(|source| &source.kind) else {
            return false;
        };
        let begins =
            |target: &IndexTarget| matches!(target, IndexTarget::Column(at) if *at == column.column);
        let mut firsts = table.indexes.iter().filter_map(|it| it.columns.first());
        column.column == ROWID || firsts.any(|first| begins(&first.target))
    })
}
