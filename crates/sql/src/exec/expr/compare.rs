//! Comparisons of two values under a comparison's (affinity, collation) pair.

use std::cmp::Ordering;

use crate::bind::expr::{CompareOp, Comparison};
use crate::value::{Affinity, ValueRef, compare};

/// Does this order of the operands satisfy the operator?
#[inline]
pub fn holds(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Equal | CompareOp::Is => order == Ordering::Equal,
        CompareOp::NotEqual | CompareOp::IsNot => order != Ordering::Equal,
        CompareOp::Less => order == Ordering::Less,
        CompareOp::LessEqual => order != Ordering::Greater,
        CompareOp::Greater => order == Ordering::Greater,
        CompareOp::GreaterEqual => order != Ordering::Less,
    }
}

/// Order of two values, neither of them NULL, after the affinity was applied.
#[inline]
pub fn order(how: Comparison, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Integer(x), ValueRef::Integer(y)) if how.affinity != Affinity::Text => x.cmp(&y),
        (ValueRef::Text(x), ValueRef::Text(y)) if !how.affinity.is_numeric() => {
            how.collation.compare(x, y)
        }
        _ if how.affinity == Affinity::Blob => compare(a, b, how.collation),
        _ => {
            let (a, b) = (
                how.affinity.apply_comparison(a),
                how.affinity.apply_comparison(b),
            );
            compare(a.as_ref(), b.as_ref(), how.collation)
        }
    }
}

/// The comparison's result; None is NULL.
#[inline]
pub fn test(op: CompareOp, how: Comparison, a: ValueRef<'_>, b: ValueRef<'_>) -> Option<bool> {
    if a.is_null() || b.is_null() {
        return match op {
            CompareOp::Is => Some(a.is_null() && b.is_null()),
            CompareOp::IsNot => Some(a.is_null() != b.is_null()),
            _ => None,
        };
    }
    Some(holds(op, order(how, a, b)))
}

/// The operator with its operands exchanged.
pub fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessEqual => CompareOp::GreaterEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterEqual => CompareOp::LessEqual,
        same => same,
    }
}

/// Three-valued AND of two results.
#[inline]
pub fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
