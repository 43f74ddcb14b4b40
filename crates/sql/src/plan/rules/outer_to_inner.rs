//! A LEFT JOIN whose right side a WHERE condition needs is an inner join.

use crate::bind::expr::{CompareOp, Expr, ExprKind};

/// Whether the condition is never true in a row where all columns of `source`
/// are NULL.
pub fn rejects_null(condition: &Expr, source: usize) -> bool {
    match &condition.kind {
        ExprKind::Compare(op, _, left, right)
            if !matches!(op, CompareOp::Is | CompareOp::IsNot) =>
        {
            is_column_of(left, source) || is_column_of(right, source)
        }
        ExprKind::IsNull {
            expr,
            negated: true,
        } => is_column_of(expr, source),
        ExprKind::Between {
            expr,
            negated: false,
            ..
        }
        | ExprKind::InList {
            expr,
            negated: false,
            ..
        } => is_column_of(expr, source),
        ExprKind::And(list) => list.iter().any(|c| rejects_null(c, source)),
        ExprKind::Or(list) => list.iter().all(|c| rejects_null(c, source)),
        _ => false,
    }
}

fn is_column_of(expr: &Expr, source: usize) -> bool {
    matches!(&expr.kind, ExprKind::Column(column) if column.source == source)
}
