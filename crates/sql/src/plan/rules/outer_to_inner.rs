//! A LEFT JOIN whose right side a WHERE condition needs is an inner join.

use crate::bind::expr::{CompareOp, Expr, ExprKind};

/// Whether the condition is never true in a row where all columns of `source`
/// are NULL.
pub fn rejects_null(condition: &Expr, source: usize) -> bool {
    needs(condition, &|expr| is_column_of(expr, source))
}

/// Whether the condition is never true in a row where the expressions that `is_null`
/// tells are NULL.
pub fn needs(condition: &Expr, is_null: &dyn Fn(&Expr) -> bool) -> bool {
    match &condition.kind {
        ExprKind::Compare(op, _, left, right)
            if !matches!(op, CompareOp::Is | CompareOp::IsNot) =>
        {
            is_null(left) || is_null(right)
        }
        ExprKind::IsNull {
            expr,
            negated: true,
        } => is_null(expr),
        ExprKind::Between {
            expr,
            negated: false,
            ..
        }
        | ExprKind::InList {
            expr,
            negated: false,
            ..
        } => is_null(expr),
        ExprKind::And(list) => list.iter().any(|c| needs(c, is_null)),
        ExprKind::Or(list) => list.iter().all(|c| needs(c, is_null)),
        _ => false,
    }
}

fn is_column_of(expr: &Expr, source: usize) -> bool {
    matches!(&expr.kind, ExprKind::Column(column) if column.source == source)
}
