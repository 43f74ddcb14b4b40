//! Scalar subqueries as joins.
//!
//! `(SELECT b.name FROM b WHERE b.id = a.b_id)` is a column of the first partner that a row
//! of `a` has in `b`, or NULL: what a single join yields beside it. So `b` is hashed once or
//! looked up as in any join ([`semi`](super::semi)).
//!
//! `EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)` as a value is whether the partner has a
//! rowid. (As a condition it is a semi-join.)
//!
//! Only what is computed for every row is taken: where a CASE or AND may leave a subquery
//! out, it is called where it is needed. But under OR and AND an EXISTS is taken where the
//! table of the subquery has no more rows than are hashed faster than looked up.

use super::Planner;
use super::few::Few;
use super::physical::JoinKind;
use super::semi::{SemiJoin, Wanted, asked};
use crate::bind::expr::{AggregateCall, ColumnRef, Expr, ExprKind, SortKey, SubqueryId, UnaryOp};
use crate::bind::logical::{Block, Body, Source};
use crate::error::Result;

/// Joins for which an order is sought; whatever more there is, is called for each row.
const JOINS_MAX: usize = 64;
/// Under OR and AND, rows of the subquery's table for each row of the largest source.
const ROWS_EACH: f64 = 16.0;

/// The subqueries of a block that are joins.
struct Singles<'b> {
    /// The joins.
    joins: Vec<SemiJoin<'b>>,
    /// Which subquery is which column; None: it is none.
    known: Vec<(SubqueryId, Option<ColumnRef>)>,
    /// The sources of the block, and the rows of the largest one.
    sources: Few<usize>,
    rows: f64,
}

impl<'a> Planner<'a, '_> {
    /// Puts columns of joins in place of subqueries in the conditions, the results, the sort
    /// keys and what the aggregates of a block are called with.
    pub(super) fn singles(
        &mut self,
        block: &Block,
        filter: &mut [Expr],
        outputs: &mut [Expr],
        keys: &mut [SortKey],
        calls: &mut [AggregateCall],
    ) -> Result<Vec<SemiJoin<'a>>> {
        if self.logical.is_empty() {
            return Ok(Vec::new());
        }
        let mut singles = Singles {
            joins: Vec::new(),
            known: Vec::new(),
            sources: block.sources.iter().map(|source| source.id).collect(),
            rows: 0.0,
        };
        if block.sources.is_empty() || block.sources.iter().any(Source::keeps_right) {
            return Ok(singles.joins);
        }
        for source in &block.sources {
            singles.rows = singles.rows.max(self.source_rows(source));
        }
        for condition in filter {
            // What asks for a row and nothing else is a semi-join.
            if asked(condition).is_none() {
                self.put_joined(condition, &mut singles)?;
            }
        }
        for arg in calls.iter_mut().flat_map(|call| &mut call.args) {
            self.put_joined(arg, &mut singles)?;
        }
        if block.aggregation.is_none() && block.windows.is_empty() {
            for output in outputs {
                self.put_joined(output, &mut singles)?;
            }
            for key in keys {
                self.put_joined(&mut key.expr, &mut singles)?;
            }
        }
        Ok(singles.joins)
    }

    fn put_joined(&mut self, expr: &mut Expr, singles: &mut Singles<'a>) -> Result<()> {
        match &mut expr.kind {
            ExprKind::ScalarSubquery {
                subquery,
                column: 0,
            } => {
                if let Some(column) = self.single(*subquery, false, singles)? {
                    expr.kind = ExprKind::Column(column);
                }
                Ok(())
            }
            ExprKind::Exists(_) => self.put_existing(expr, singles),
            ExprKind::Or(_) | ExprKind::And(_) => self.put_within(expr, singles),
            // Others may do with the first of their arguments.
            ExprKind::Function { args, .. } => match args.first_mut() {
                Some(arg) => crate::stack::grow(|| self.put_joined(arg, singles)),
                None => Ok(()),
            },
            ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Compare(..)
            | ExprKind::IsNull { .. }
            | ExprKind::IsTruth { .. }
            | ExprKind::Cast(..) => {
                let mut result = Ok(());
                expr.kind.for_each_child_mut(&mut |child| {
                    if result.is_ok() {
                        result = crate::stack::grow(|| self.put_joined(child, singles));
                    }
                });
                result
            }
            _ => Ok(()),
        }
    }

    /// Puts whether a rowid is there in place of an EXISTS.
    fn put_existing(&mut self, expr: &mut Expr, singles: &mut Singles<'a>) -> Result<()> {
        let ExprKind::Exists(subquery) = expr.kind else {
            return Ok(());
        };
        if let Some(column) = self.single(subquery, true, singles)? {
            let rowid = Expr {
                kind: ExprKind::Column(column),
                props: expr.props,
            };
            expr.kind = ExprKind::IsNull {
                expr: Box::new(rowid),
                negated: true,
            };
        }
        Ok(())
    }

    /// The same within what may leave it out.
    fn put_within(&mut self, expr: &mut Expr, singles: &mut Singles<'a>) -> Result<()> {
        match &mut expr.kind {
            ExprKind::Exists(subquery) => {
                let known = self.logical.get(*subquery).map(|it| &it.query.body);
                let rows = match known {
                    Some(Body::Block(block)) => match block.sources.as_slice() {
                        [source] => self.source_rows(source),
                        _ => f64::INFINITY,
                    },
                    _ => f64::INFINITY,
                };
                match rows <= singles.rows * ROWS_EACH {
                    true => self.put_existing(expr, singles),
                    false => Ok(()),
                }
            }
            ExprKind::Unary(UnaryOp::Not, operand) => {
                crate::stack::grow(|| self.put_within(operand, singles))
            }
            ExprKind::Or(parts) | ExprKind::And(parts) => {
                for part in parts {
                    crate::stack::grow(|| self.put_within(part, singles))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The column that a subquery is, where it can be a join; `any`: whether it has a row.
    fn single(
        &mut self,
        subquery: SubqueryId,
        any: bool,
        singles: &mut Singles<'a>,
    ) -> Result<Option<ColumnRef>> {
        if let Some((_, known)) = singles.known.iter().find(|(id, _)| *id == subquery) {
            return Ok(*known);
        }
        if singles.joins.len() >= JOINS_MAX {
            return Ok(None);
        }
        let asked = Wanted {
            subquery,
            kind: JoinKind::Single,
            any,
            members: None,
        };
        let join = self.semi_join(&asked, &singles.sources)?;
        let column = join.as_ref().and_then(|join| {
            let source = join.source.id;
            join.shown.map(|column| ColumnRef { source, column })
        });
        singles.known.push((subquery, column));
        singles.joins.extend(join);
        Ok(column)
    }
}
