//! What follows from conditions: whether a partial index holds all rows that they let
//! through.

use super::outer_to_inner::needs;
use crate::bind::expr::{Expr, ExprKind};

/// Whether `wanted` is true in every row in which all of the conditions are: it is one
/// of them, or asks that something is not NULL of which one of them could not be true
/// otherwise. A few forms only, as in SQLite; false is always safe.
pub fn implied<'c>(conditions: impl Iterator<Item = &'c Expr> + Clone, wanted: &Expr) -> bool {
    if conditions
        .clone()
        .any(|condition| condition.kind == wanted.kind)
    {
        return wanted.props.deterministic;
    }
    match &wanted.kind {
        ExprKind::And(list) => list.iter().all(|part| implied(conditions.clone(), part)),
        ExprKind::Or(list) => list.iter().any(|part| implied(conditions.clone(), part)),
        ExprKind::IsNull {
            expr,
            negated: true,
        } => {
            matches!(expr.kind, ExprKind::Column(_))
                && conditions
                    .clone()
                    .any(|c| needs(c, &|e| e.kind == expr.kind))
        }
        _ => false,
    }
}
