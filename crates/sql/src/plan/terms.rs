//! What a condition says about one column: the terms that keys can serve.
//!
//! A term may take a condition's place only where searching by key gives what
//! the comparison gives: the comparison's collation must be the key's, and its
//! affinity must treat the stored values as they are ([`Term::fits`]).

use crate::bind::expr::{ColumnRef, CompareOp, Comparison, Expr, ExprKind};
use crate::value::{Affinity, Collation, Value};

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermOp {
    /// `=`
    Equal,
    /// `IS`, where NULL equals NULL.
    Is,
    /// `IN (…)`
    In,
    /// `<` or `<=`
    Upper {
        /// `<=`
        inclusive: bool,
    },
    /// `>` or `>=`
    Lower {
        /// `>=`
        inclusive: bool,
    },
}

/// A column compared with values.
#[derive(Debug, Clone)]
pub struct Term {
    /// The column.
    pub column: ColumnRef,
    /// Its affinity, None where a `+` took it away.
    affinity: Option<Affinity>,
    /// How.
    pub op: TermOp,
    /// With what: one value, or those of IN.
    pub values: Vec<Expr>,
    /// The pair.
    comparison: Comparison,
    /// The condition it stems from.
    pub condition: usize,
    /// The condition says nothing else, so it need not be evaluated again.
    pub whole: bool,
}

impl Term {
    /// Whether searching a key of this affinity and collation answers the
    /// comparison.
    pub fn fits(&self, key_affinity: Affinity, key_collation: Option<Collation>) -> bool {
        if self.affinity != Some(key_affinity) {
            return false;
        }
        if key_collation.is_some_and(|c| c != self.comparison.collation) {
            return false;
        }
        match key_affinity {
            Affinity::Integer | Affinity::Numeric | Affinity::Real => {
                self.comparison.affinity == Affinity::Numeric
            }
            Affinity::Blob => self.comparison.affinity == Affinity::Blob,
            Affinity::Text => match self.comparison.affinity {
                Affinity::Text => true,
                Affinity::Blob => self
                    .values
                    .iter()
                    .all(|v| v.props.affinity == Some(Affinity::Text)),
                _ => false,
            },
        }
    }
}

/// The terms of a condition about columns of `source`.
pub fn terms(condition: &Expr, at: usize, source: usize, out: &mut Vec<Term>) {
    let column_of = |e: &Expr| match e.kind {
        ExprKind::Column(column) if column.source == source => Some(column),
        _ => None,
    };
    let mut push = |operand: &Expr, op, values: Vec<Expr>, comparison, whole| {
        if let Some(column) = column_of(operand) {
            out.push(Term {
                column,
                affinity: operand.props.affinity,
                op,
                values,
                comparison,
                condition: at,
                whole,
            });
        }
    };
    match &condition.kind {
        ExprKind::Compare(op, comparison, left, right) => {
            let ops = match op {
                CompareOp::Equal => (TermOp::Equal, TermOp::Equal),
                CompareOp::Is => (TermOp::Is, TermOp::Is),
                CompareOp::Less => (
                    TermOp::Upper { inclusive: false },
                    TermOp::Lower { inclusive: false },
                ),
                CompareOp::LessEqual => (
                    TermOp::Upper { inclusive: true },
                    TermOp::Lower { inclusive: true },
                ),
                CompareOp::Greater => (
                    TermOp::Lower { inclusive: false },
                    TermOp::Upper { inclusive: false },
                ),
                CompareOp::GreaterEqual => (
                    TermOp::Lower { inclusive: true },
                    TermOp::Upper { inclusive: true },
                ),
                CompareOp::NotEqual | CompareOp::IsNot => return,
            };
            push(left, ops.0, vec![(**right).clone()], *comparison, true);
            push(right, ops.1, vec![(**left).clone()], *comparison, true);
        }
        ExprKind::Between {
            expr,
            low,
            high,
            low_comparison,
            high_comparison,
            negated: false,
        } => {
            let inclusive = true;
            push(
                expr,
                TermOp::Lower { inclusive },
                vec![(**low).clone()],
                *low_comparison,
                false,
            );
            push(
                expr,
                TermOp::Upper { inclusive },
                vec![(**high).clone()],
                *high_comparison,
                false,
            );
        }
        ExprKind::InList {
            expr,
            list,
            comparison,
            negated: false,
        } => {
            push(expr, TermOp::In, list.clone(), *comparison, true);
        }
        ExprKind::IsNull {
            expr,
            negated: false,
        } => {
            let comparison = Comparison::of(&expr.props, &crate::bind::expr::Props::CONSTANT);
            push(
                expr,
                TermOp::Is,
                vec![Expr::literal(Value::Null)],
                comparison,
                true,
            );
        }
        _ => {}
    }
}
