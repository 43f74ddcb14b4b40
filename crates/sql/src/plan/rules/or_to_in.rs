//! `x = a OR x = b` is `x IN (a, b)`, which an index can serve.

use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind};

/// Rewrites an OR whose operands all compare one column with the same pair.
pub fn or_to_in(expr: Expr) -> Expr {
    let ExprKind::Or(operands) = &expr.kind else {
        return expr;
    };
    let mut column: Option<(&Expr, Comparison)> = None;
    let mut list = Vec::with_capacity(operands.len());
    for operand in operands {
        let Some((left, values, comparison)) = alternatives(operand) else {
            return expr;
        };
        match column {
            None => column = Some((left, comparison)),
            Some((known, pair)) if known == left && pair == comparison => {}
            Some(_) => return expr,
        }
        list.extend(values.iter().map(|v| (*v).clone()));
    }
    let Some((left, comparison)) = column else {
        return expr;
    };
    let kind = ExprKind::InList {
        expr: Box::new(left.clone()),
        list,
        comparison,
        negated: false,
    };
    Expr {
        props: expr.props,
        kind,
    }
}

/// The column that the operand compares for equality, and with what.
fn alternatives(operand: &Expr) -> Option<(&Expr, Vec<&Expr>, Comparison)> {
    match &operand.kind {
        ExprKind::Compare(CompareOp::Equal, comparison, left, right) => {
            let plain = |e: &Expr| matches!(e.kind, ExprKind::Literal(_) | ExprKind::Parameter(_));
            if matches!(left.kind, ExprKind::Column(_)) && plain(right) {
                Some((&**left, vec![&**right], *comparison))
            } else if matches!(right.kind, ExprKind::Column(_)) && plain(left) {
                Some((&**right, vec![&**left], *comparison))
            } else {
                None
            }
        }
        ExprKind::InList {
            expr,
            list,
            comparison,
            negated: false,
        } if matches!(expr.kind, ExprKind::Column(_)) => {
            Some((&**expr, list.iter().collect(), *comparison))
        }
        _ => None,
    }
}
