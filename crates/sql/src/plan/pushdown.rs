//! Conditions on a grouped or distinct query in FROM that choose whole groups, as conditions
//! of that query: what does not count is then neither read nor grouped.
//!
//! A group is chosen as a whole by what compares its key where no two values of one key can
//! compare differently: by the key's own collation, or any where that is BINARY, and without
//! turning numbers into texts, which tells 1 from 1.0.

use super::Planner;
use crate::bind::expr::{ColumnRef, Comparison, Expr, ExprKind};
use crate::bind::logical::{Block, Body, Query};
use crate::value::{Affinity, Collation};

impl Planner<'_, '_> {
    /// Those of the conditions on `source`, which is `query`, that can be conditions of the
    /// query itself: as such. They are taken out of the list.
    pub(super) fn pushed(
        &self,
        query: &Query,
        source: usize,
        conditions: &mut Vec<Expr>,
    ) -> Vec<Expr> {
        let mut pushed = Vec::new();
        let Body::Block(block) = &query.body else {
            return pushed;
        };
        let is_whole = block.aggregation.is_some() || block.distinct.is_some();
        if query.limit.is_some() || !block.windows.is_empty() || !is_whole {
            return pushed;
        }
        conditions.retain(|condition| {
            let within = self.chooses_groups(block, source, condition);
            let moved = within.then(|| within_query(condition, source, &block.outputs));
            pushed.extend(moved);
            !within
        });
        pushed
    }

    fn chooses_groups(&self, block: &Block, source: usize, condition: &Expr) -> bool {
        let is_key = |expr: &Expr, hows: &[Comparison]| match expr.kind {
            ExprKind::Column(ColumnRef { source: of, column }) if of == source => {
                is_told_by_key(block, column, hows)
            }
            _ => false,
        };
        let reads_none = |expr: &Expr| {
            let mut reads_none = true;
            self.for_each_column(expr, &mut |column| reads_none &= column.source != source);
            reads_none
        };
        match &condition.kind {
            ExprKind::Compare(_, how, left, right) => {
                is_key(left, &[*how]) && reads_none(right)
                    || is_key(right, &[*how]) && reads_none(left)
            }
            ExprKind::Between {
                expr,
                low,
                high,
                low_comparison,
                high_comparison,
                ..
            } => {
                is_key(expr, &[*low_comparison, *high_comparison])
                    && reads_none(low)
                    && reads_none(high)
            }
            ExprKind::InList {
                expr,
                list,
                comparison,
                ..
            } => is_key(expr, &[*comparison]) && list.iter().all(reads_none),
            // What is handed in to the subquery has no meaning within the query.
            ExprKind::InSubquery {
                exprs,
                comparisons,
                subquery,
                ..
            } => match (exprs.as_slice(), self.logical.get(*subquery)) {
                ([expr], Some(asked)) => asked.bindings.is_empty() && is_key(expr, comparisons),
                _ => false,
            },
            ExprKind::IsNull { expr, .. } => is_key(expr, &[]),
            _ => false,
        }
    }
}

/// Whether a column of the block is a key, all values of which compare alike in these ways.
fn is_told_by_key(block: &Block, column: usize, hows: &[Comparison]) -> bool {
    let Some(output) = block.outputs.get(column) else {
        return false;
    };
    let is_same = |collation: Collation| {
        hows.iter().all(|how| {
            let as_text =
                how.affinity == Affinity::Text && output.props.affinity != Some(Affinity::Text);
            !as_text && (collation == Collation::Binary || collation == how.collation)
        })
    };
    let keys = block.aggregation.as_ref().map(|a| a.keys.iter());
    let is_key = keys.is_none_or(|mut keys| {
        keys.any(|(key, collation)| key.kind == output.kind && is_same(*collation))
    });
    let distinct = block.distinct.as_ref().map(|list| list.get(column));
    let is_distinct = distinct.is_none_or(|it| it.is_some_and(|collation| is_same(*collation)));
    is_key && is_distinct && output.props.deterministic && !output.props.fallible
}

/// A condition with what the query's columns are in place of these.
pub(super) fn within_query(condition: &Expr, source: usize, outputs: &[Expr]) -> Expr {
    fn replace(expr: &mut Expr, source: usize, outputs: &[Expr]) {
        if let ExprKind::Column(column) = expr.kind
            && column.source == source
            && let Some(output) = outputs.get(column.column)
        {
            *expr = output.clone();
            return;
        }
        expr.kind.for_each_child_mut(&mut |child| {
            crate::stack::grow(|| replace(child, source, outputs));
        });
    }
    let mut condition = condition.clone();
    replace(&mut condition, source, outputs);
    condition
}
