//! Constant folding: operators over literals become literals.
//!
//! Only operators that cannot raise are folded, so preparing never fails where
//! running might not. Functions are left to the executor: a constant argument
//! costs little there, and what they raise appears only if they are reached.

use crate::bind::expr::{BinaryOp, CompareOp, Comparison, Expr, ExprKind, UnaryOp};
use crate::value::{self, Value, ValueRef};

/// Folds an expression from its leaves up.
pub fn fold(expr: &mut Expr) {
    crate::stack::grow(|| {
        expr.kind.for_each_child_mut(&mut fold);
        if let Some(value) = constant(expr) {
            expr.kind = ExprKind::Literal(value);
        }
    });
}

/// A literal's value.
pub fn literal(expr: &Expr) -> Option<ValueRef<'_>> {
    match &expr.kind {
        ExprKind::Literal(value) => Some(value.as_ref()),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Unary(op, a) => {
            let a = literal(a)?;
            Some(match op {
                UnaryOp::Negate => value::negate(a),
                UnaryOp::BitNot => value::bit_not(a),
                UnaryOp::Not => truth(a.truth().map(|t| !t)),
            })
        }
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (literal(a)?, literal(b)?);
            Some(match op {
                BinaryOp::Add => value::add(a, b),
                BinaryOp::Subtract => value::subtract(a, b),
                BinaryOp::Multiply => value::multiply(a, b),
                BinaryOp::Divide => value::divide(a, b),
                BinaryOp::Remainder => value::remainder(a, b),
                BinaryOp::BitAnd => value::bit_and(a, b),
                BinaryOp::BitOr => value::bit_or(a, b),
                BinaryOp::ShiftLeft => value::shift_left(a, b),
                BinaryOp::ShiftRight => value::shift_right(a, b),
                // The text may grow without bound: the executor checks its length.
                BinaryOp::Concat => return None,
            })
        }
        // A collation of the program is asked while the statement runs only.
        ExprKind::Compare(_, comparison, ..) if comparison.collation.is_of_program() => None,
        ExprKind::Compare(op, comparison, a, b) => {
            Some(compare(*op, *comparison, literal(a)?, literal(b)?))
        }
        ExprKind::IsNull { expr, negated } => Some(Value::Integer(
            (literal(expr)?.is_null() != *negated).into(),
        )),
        ExprKind::And(list) => {
            let known: Option<Vec<_>> = list
                .iter()
                .map(|e| literal(e).map(ValueRef::truth))
                .collect();
            let known = known?;
            let any = |t: Option<bool>| known.contains(&t);
            Some(truth(if any(Some(false)) {
                Some(false)
            } else if any(None) {
                None
            } else {
                Some(true)
            }))
        }
        ExprKind::Or(list) => {
            let known: Option<Vec<_>> = list
                .iter()
                .map(|e| literal(e).map(ValueRef::truth))
                .collect();
            let known = known?;
            let any = |t: Option<bool>| known.contains(&t);
            Some(truth(if any(Some(true)) {
                Some(true)
            } else if any(None) {
                None
            } else {
                Some(false)
            }))
        }
        _ => None,
    }
}

fn compare(op: CompareOp, comparison: Comparison, a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    let (a, b) = (
        comparison.affinity.apply_comparison(a),
        comparison.affinity.apply_comparison(b),
    );
    let (a, b) = (a.as_ref(), b.as_ref());
    let order = value::compare(a, b, comparison.collation);
    let known = !a.is_null() && !b.is_null();
    truth(match op {
        CompareOp::Is => Some(order.is_eq()),
        CompareOp::IsNot => Some(order.is_ne()),
        _ if !known => None,
        CompareOp::Equal => Some(order.is_eq()),
        CompareOp::NotEqual => Some(order.is_ne()),
        CompareOp::Less => Some(order.is_lt()),
        CompareOp::LessEqual => Some(order.is_le()),
        CompareOp::Greater => Some(order.is_gt()),
        CompareOp::GreaterEqual => Some(order.is_ge()),
    })
}

fn truth(t: Option<bool>) -> Value {
    t.map_or(Value::Null, |t| Value::Integer(t.into()))
}
