//! Conditions `x IN (SELECT y …)` whose subquery looks at the row around it, where an index
//! may find `y`.
//!
//! All that the subquery yields would be gathered for each row. As a condition NULL is as good
//! as false, so that it asks whether the subquery has a row with `y = x`, which an index may
//! find, and stops at the first. (Of one table compared for equality it is a semi-join.)
//!
//! A subquery that looks at no row around it is gathered once. Where few rows ask, what they ask
//! for is looked up instead (where that is a condition that must hold, by a join:
//! [`in_lookup`](super::in_lookup)): `x IN (SELECT y …)` is true where there is a row with
//! `y = x`, else NULL where `x` is and there is any row, or where there is a row whose `y` is,
//! and false elsewhere.

use super::Planner;
use super::resolve::{Asked, Rows};
use super::semi::{compared, output_of};
use super::weigh::COST_BUILD;
use crate::bind::expr::{CaseArm, Comparison, Expr, ExprKind, ROWID, Register, SubqueryId};
use crate::bind::logical::{Block, Body, LogicalSubquery, SourceKind};
use crate::error::Result;
use crate::schema::IndexTarget;
use crate::value::Value;

/// Cost of beginning a subquery anew and finding its first row.
const COST_CALL: f64 = 20.0;

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
        let Some((subquery, block)) = logical.get(id).and_then(searched) else {
            return Ok(None);
        };
        if !operands.iter().chain(&block.outputs).all(is_quiet) {
            return Ok(None);
        }
        let planned = self.has_row((subquery, block), (operands, comparisons), rows)?;
        Ok(Some(planned))
    }

    /// A subquery that has a row where these operands are among the rows of one.
    fn has_row(
        &mut self,
        (subquery, block): (&LogicalSubquery, &Block),
        (operands, comparisons): (&[Expr], &[Comparison]),
        rows: &mut Rows<'_>,
    ) -> Result<SubqueryId> {
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
        self.subquery_where(subquery, equal, &handed_in, rows, Asked::Exists)
    }

    /// An IN over a subquery that is the same for all rows, resolved as look-ups, where those
    /// cost less than to gather all that the subquery yields.
    pub(super) fn in_as_lookup(
        &mut self,
        expr: &Expr,
        rows: &mut Rows<'_>,
    ) -> Result<Option<Expr>> {
        let ExprKind::InSubquery {
            exprs,
            subquery: id,
            comparisons,
            negated,
        } = &expr.kind
        else {
            return Ok(None);
        };
        let logical = self.logical;
        let alone = logical.get(*id).filter(|it| it.bindings.is_empty());
        let (Some((subquery, block, output)), [operand], Some(callers)) =
            (alone.and_then(output_of), exprs.as_slice(), self.callers)
        else {
            return Ok(None);
        };
        let mut read = block.filter.iter().chain([operand]);
        if !has_index(block) || !read.all(is_quiet) {
            return Ok(None);
        }
        let gathered = self.rows_gathered(*id)? * (1.0 + COST_BUILD);
        if gathered <= self.calls * callers * COST_CALL {
            return Ok(None);
        }
        // What it is hangs on the row, as before.
        let props = expr.props;
        let is_null = |expr: Expr| {
            let (expr, negated) = (Box::new(expr), false);
            let kind = ExprKind::IsNull { expr, negated };
            Expr { kind, props }
        };
        let exists = |id: SubqueryId| Expr {
            kind: ExprKind::Exists(id),
            props,
        };
        let same = self.has_row((subquery, block), (exprs, comparisons), rows)?;
        let (mut rest, asked) = (Rows::None, Asked::Exists);
        let any = self.subquery_where(subquery, Vec::new(), &[], &mut rest, asked)?;
        let none = vec![is_null(output.clone())];
        let none = self.subquery_where(subquery, none, &[], &mut rest, asked)?;
        let operand = is_null(self.resolve_rows(operand, rows)?);
        let unknown = ExprKind::And(vec![operand, exists(any)]);
        let unknown = Expr {
            kind: unknown,
            props,
        };
        let unknown = ExprKind::Or(vec![unknown, exists(none)]);
        let unknown = Expr {
            kind: unknown,
            props,
        };
        let arm = |when: Expr, then: Value| CaseArm {
            when,
            comparison: None,
            then: Expr::literal(then),
        };
        let truth = |truth: bool| Value::Integer(i64::from(truth != *negated));
        Ok(Some(Expr {
            kind: ExprKind::Case {
                base: None,
                arms: vec![arm(exists(same), truth(true)), arm(unknown, Value::Null)],
                otherwise: Some(Box::new(Expr::literal(truth(false)))),
            },
            props,
        }))
    }
}

fn is_quiet(expr: &Expr) -> bool {
    expr.props.deterministic && !expr.props.fallible
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
