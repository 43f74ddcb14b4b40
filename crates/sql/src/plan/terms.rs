//! What a condition says about one column, or about an expression that is part of an
//! index's key: the terms that keys can serve.
//!
//! A term may take a condition's place only where searching by key gives what
//! the comparison gives: the comparison's collation must be the key's, and its
//! affinity must treat the stored values as they are ([`Term::fits`]).

use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind};
use crate::bind::logical::KeyExpr;
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

/// What a term is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A column of the source, or its rowid.
    Column(usize),
    /// An expression that is part of a key.
    Computed(Box<ExprKind>),
}

/// A column or key expression compared with values.
#[derive(Debug, Clone)]
pub struct Term {
    /// Which.
    pub operand: Operand,
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
    /// Whether it is about this column.
    pub fn is_about(&self, column: usize) -> bool {
        self.operand == Operand::Column(column)
    }

    /// Whether searching a key of this affinity (None: it is an expression without one)
    /// and collation answers the comparison.
    pub fn fits(&self, key_affinity: Option<Affinity>, key_collation: Option<Collation>) -> bool {
        if self.affinity != key_affinity {
            return false;
        }
        if key_collation.is_some_and(|c| c != self.comparison.collation) {
            return false;
        }
        match key_affinity {
            Some(Affinity::Integer | Affinity::Numeric | Affinity::Real) => {
                self.comparison.affinity == Affinity::Numeric
            }
            None | Some(Affinity::Blob) => self.comparison.affinity == Affinity::Blob,
            Some(Affinity::Text) => match self.comparison.affinity {
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

/// The terms of a condition about columns of `source`, and about what its indexes'
/// keys compute.
pub fn terms(
    condition: &Expr,
    at: usize,
    source: usize,
    computed: &[KeyExpr],
    out: &mut Vec<Term>,
) {
    let operand_of = |e: &Expr| match &e.kind {
        ExprKind::Column(column) if column.source == source => Some(Operand::Column(column.column)),
        kind if computed.iter().any(|part| part.expr.kind == *kind) => {
            Some(Operand::Computed(Box::new(kind.clone())))
        }
        _ => None,
    };
    let mut push = |operand: &Expr, op, values: Vec<Expr>, comparison, whole| {
        if let Some(about) = operand_of(operand) {
            out.push(Term {
                operand: about,
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
