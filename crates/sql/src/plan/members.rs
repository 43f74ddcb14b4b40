//! What an IN's subquery yields, as keys to look a column up by.
//!
//! `x IN (SELECT …)` is a list of values like any other once the subquery has run, which it
//! does once where nothing of the rows around is handed in to it. Of `(x, y) IN (SELECT …)`
//! each column's values are such a list, which leaves the condition itself to be asked. It is
//! planned before the order of the joins is chosen, since how many keys it brings tells what a
//! lookup costs.

use super::Planner;
use super::order::Condition;
use super::resolve::{Asked, Rows};
use crate::bind::expr::{Expr, ExprKind, Props, SubqueryId};
use crate::error::Result;

/// The values of a subquery.
#[derive(Debug, Clone)]
pub struct Members {
    /// All of each column, in an expression.
    pub values: Vec<Expr>,
    /// About how many there are.
    pub keys: f64,
}

impl Planner<'_, '_> {
    /// A condition with what is known of it.
    pub(super) fn condition(&mut self, expr: Expr) -> Result<Condition> {
        let sources = self.sources_of(&expr);
        let members = self.members(&expr)?;
        // What is asked before any row is read may raise whatever the rows are.
        let fallible = match (&expr.kind, &members) {
            (ExprKind::InSubquery { exprs, .. }, Some(_)) => exprs.iter().any(|e| e.props.fallible),
            _ => expr.props.fallible,
        };
        let movable = expr.props.deterministic && !fallible;
        Ok(Condition {
            expr,
            sources,
            movable,
            members,
            class: None,
            implied: false,
        })
    }

    /// What the subquery of a condition yields, where the condition is `x IN (SELECT …)`, or
    /// `(x, y) IN (SELECT …)`, and nothing is handed in.
    fn members(&mut self, condition: &Expr) -> Result<Option<Members>> {
        let ExprKind::InSubquery {
            exprs,
            subquery,
            comparisons,
            negated: false,
        } = &condition.kind
        else {
            return Ok(None);
        };
        let Some(logical) = self.logical.get(*subquery) else {
            return Ok(None);
        };
        let columns = logical.query.operand_columns();
        if !logical.bindings.is_empty() || exprs.len() != comparisons.len() {
            return Ok(None);
        }
        let rows = self.rows_gathered(*subquery)?;
        let values = (0..exprs.len()).map(|column| Expr {
            kind: ExprKind::Members {
                subquery: *subquery,
                column,
                comparisons: comparisons.clone(),
            },
            props: Props {
                affinity: columns.get(column).and_then(|c| c.affinity),
                constant: false,
                ..Props::CONSTANT
            },
        });
        Ok(Some(Members {
            values: values.collect(),
            keys: rows,
        }))
    }
    /// About how many rows are gathered of a subquery to which nothing is handed in.
    pub(super) fn rows_gathered(&mut self, subquery: SubqueryId) -> Result<f64> {
        let so_far = self.subqueries.len();
        let planned = self.plan_subquery(subquery, &mut Rows::None, Asked::Members)?;
        let Some(it) = self.subqueries.get_mut(planned) else {
            return Ok(1.0);
        };
        // Whether it will be is not known yet.
        it.asked &= planned < so_far;
        Ok(it.root.rows.max(1.0))
    }
}
