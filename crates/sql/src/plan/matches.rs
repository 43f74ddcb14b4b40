//! How many rows an equality between two sources lets through.
//!
//! Each row of one side finds as many of the other as share its key there: of all pairs of
//! rows, one in as many as the side of more different keys has. That number is known of a
//! rowid, and of a column that an index begins with which is unique or was sampled.

use super::order::{Condition, Problem};
use crate::bind::expr::{Expr, ExprKind, ROWID};
use crate::bind::logical::SourceKind;
use crate::schema::IndexTarget;

impl Problem<'_, '_> {
    /// Of the pairs of rows that these equalities compare, one in so many is a match; None
    /// where nothing is known. No more than there are rows on one side or the other.
    pub(super) fn pairs_per_match(
        &self,
        conditions: &[Condition],
        keys: &[usize],
        rows_max: f64,
    ) -> Option<f64> {
        let sides = |at: &usize| match conditions.get(*at).map(|c| &c.expr.kind) {
            Some(ExprKind::Compare(_, _, left, right)) => {
                [self.distinct(left), self.distinct(right)]
            }
            _ => [None, None],
        };
        let known = keys
            .iter()
            .filter_map(|at| sides(at).into_iter().flatten().reduce(f64::max));
        let all = known.reduce(|all, one| all * one);
        all.map(|all| all.min(rows_max).max(1.0))
    }

    /// About how many different values an expression has over its source's rows.
    fn distinct(&self, expr: &Expr) -> Option<f64> {
        let ExprKind::Column(column) = expr.kind else {
            return None;
        };
        let item = self.items.iter().find(|i| i.source.id == column.source)?;
        let SourceKind::Table(table) = &item.source.kind else {
            return None;
        };
        if column.column == ROWID {
            return Some(item.rows);
        }
        table
            .indexes
            .iter()
            .enumerate()
            .find_map(|(number, index)| {
                let first = index.columns.first()?;
                if !matches!(first.target, IndexTarget::Column(at) if at == column.column) {
                    return None;
                }
                if index.unique && index.columns.len() == 1 && index.predicate.is_none() {
                    return Some(item.rows);
                }
                let per_key = item.per_key.iter().find(|(known, _)| *known == number)?;
                per_key.1.first().map(|rows| item.rows / rows.max(1.0))
            })
    }
}
