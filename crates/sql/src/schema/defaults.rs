//! What the default of a column may be, and its value where it is a literal.

use crate::ast::{self, ExprKind, Literal};
use crate::value::Value;

/// A literal with signs.
pub fn literal_value(expr: &ast::Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Literal(literal) => match literal {
            Literal::Null => Some(Value::Null),
            Literal::Integer(n) => Some(Value::Integer(*n)),
            Literal::Real(r) => Some(Value::real(*r)),
            Literal::Text(t) => Some(Value::Text(t.clone().into_bytes())),
            Literal::Blob(b) => Some(Value::Blob(b.clone())),
            Literal::Current(_) => None,
        },
        ExprKind::Negate(inner) => literal_value(inner).map(|v| crate::value::negate(v.as_ref())),
        ExprKind::Plus(inner) => literal_value(inner),
        _ => None,
    }
}

/// Names no column, parameter or subquery.
pub fn is_constant(expr: &ast::Expr) -> bool {
    let all = |list: &[ast::Expr]| list.iter().all(is_constant);
    let option = |e: &Option<Box<ast::Expr>>| e.as_deref().is_none_or(is_constant);
    match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Column(name) => name.double_quoted,
        ExprKind::Qualified { .. }
        | ExprKind::Parameter(_)
        | ExprKind::InSelect { .. }
        | ExprKind::Exists(_)
        | ExprKind::Subquery(_) => false,
        ExprKind::Negate(e)
        | ExprKind::Plus(e)
        | ExprKind::BitNot(e)
        | ExprKind::Not(e)
        | ExprKind::Cast(e, _)
        | ExprKind::Collate(e, _)
        | ExprKind::IsNull { expr: e, .. } => is_constant(e),
        ExprKind::Binary(_, a, b) | ExprKind::Compare(_, a, b) => is_constant(a) && is_constant(b),
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::RowValue(list) => all(list),
        ExprKind::Between {
            expr, low, high, ..
        } => is_constant(expr) && is_constant(low) && is_constant(high),
        ExprKind::InList { expr, list, .. } => is_constant(expr) && all(list),
        ExprKind::Case {
            base,
            whens,
            otherwise,
        } => {
            option(base)
                && option(otherwise)
                && whens
                    .iter()
                    .all(|w| is_constant(&w.when) && is_constant(&w.then))
        }
        ExprKind::Like {
            expr,
            pattern,
            escape,
            ..
        } => is_constant(expr) && is_constant(pattern) && option(escape),
        ExprKind::Function(call) => call.over.is_none() && call.args.as_deref().is_none_or(all),
        ExprKind::Raise(_, message) => option(message),
    }
}
