//! What a condition says about one column, or about an expression that is part of an
//! index's key: the terms that keys can serve.
//!
//! A term may take a condition's place only where searching by key gives what
//! the comparison gives: the comparison's collation must be the key's, and its
//! affinity must treat the stored values as they are ([`Term::fits`]).

use super::members::Members;
use super::prefix::prefix;
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
    /// Begins with a text, as LIKE and GLOB say it: at least the first of two values and
    /// less than the second, or a blob.
    Prefix,
}

/// What a term is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A column of the source, or its rowid.
    Column(usize),
    /// An expression that is part of a key.
    Computed(Box<ExprKind>),
}

/// How much of a condition a term says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// All of it.
    Whole,
    /// One bound of a BETWEEN, which together with the other one is all of it.
    Half,
    /// What follows from it.
    Part,
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
    /// How many values that are, as far as it can be told.
    pub keys: f64,
    /// The pair.
    comparison: Comparison,
    /// The condition it stems from.
    pub condition: usize,
    /// How much of that it says: what is wholly said need not be evaluated again.
    pub says: Says,
    /// Of a bound: what it lets through, where that is known.
    pub shares: Vec<BoundShare>,
    /// Of a bound: it is the same for all rows that the statement looks at.
    pub fixed: bool,
}

/// What a bound lets through of the entries of an index that begins with its operand.
#[derive(Debug, Clone, Copy)]
pub struct BoundShare {
    /// The index by its number; ROWID: the table.
    pub index: usize,
    /// The share of the entries that is within the bound, NULLs too below an upper one.
    pub within: f64,
    /// The share of NULLs.
    pub nulls: f64,
}

impl Term {
    /// Whether it has one value, known or not.
    pub fn is_single(&self) -> bool {
        self.values.len() == 1 && !self.is_of_subquery()
    }

    /// The bounds of a [`TermOp::Prefix`].
    pub fn prefix(&self) -> Option<[&Expr; 2]> {
        match self.values.as_slice() {
            [low, high] if self.op == TermOp::Prefix => Some([low, high]),
            _ => None,
        }
    }

    /// Whether it asks for one value of what `other` is about, as that does.
    pub fn says_as_much(&self, other: &Term) -> bool {
        self.op == TermOp::Equal && other.op == TermOp::Equal && self.operand == other.operand
    }

    /// Whether it is a lower bound.
    pub fn is_lower(&self) -> bool {
        matches!(self.op, TermOp::Lower { .. })
    }

    /// Whether its values are what a subquery yields.
    pub fn is_of_subquery(&self) -> bool {
        self.values.iter().any(Expr::is_many)
    }

    /// What it lets through of this index's entries, where it is a bound of which that is
    /// known.
    pub fn share_of(&self, index: usize) -> Option<&BoundShare> {
        self.shares.iter().find(|share| share.index == index)
    }

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

/// The terms of a condition, an IN of these members perhaps, about columns of `source`, and about what its indexes'
/// keys compute.
pub fn terms(
    condition: &Expr,
    members: Option<&Members>,
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
    let mut push = |operand: &Expr, op, values: &[&Expr], comparison, says| {
        if let Some(about) = operand_of(operand) {
            let keys = members.map_or(values.len() as f64, |m| m.keys);
            let values = values.iter().copied().cloned().collect();
            out.push(Term {
                operand: about,
                affinity: operand.props.affinity,
                op,
                keys,
                values,
                comparison,
                condition: at,
                says,
                shares: Vec::new(),
                fixed: false,
            });
        }
    };
    match &condition.kind {
        ExprKind::Compare(op, comparison, left, right) => {
            let Some(ops) = term_ops(*op) else { return };
            push(left, ops.0, &[right], *comparison, Says::Whole);
            push(right, ops.1, &[left], *comparison, Says::Whole);
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
                &[low],
                *low_comparison,
                Says::Half,
            );
            push(
                expr,
                TermOp::Upper { inclusive },
                &[high],
                *high_comparison,
                Says::Half,
            );
        }
        ExprKind::InList {
            expr,
            list,
            comparison,
            negated: false,
        } => {
            let values: Vec<&Expr> = list.iter().collect();
            push(expr, TermOp::In, &values, *comparison, Says::Whole);
        }
        ExprKind::Like { .. } => {
            if let Some(it) = prefix(condition) {
                let bounds = it.bounds.each_ref();
                push(
                    it.operand,
                    TermOp::Prefix,
                    &bounds,
                    it.comparison,
                    Says::Part,
                );
            }
        }
        ExprKind::Or(disjuncts) => {
            for (operand, op, value, comparison) in common_bounds(disjuncts) {
                push(operand, op, &[value], comparison, Says::Part);
            }
        }
        ExprKind::InSubquery {
            exprs, comparisons, ..
        } => {
            let values = members.map_or(&[][..], |members| &members.values);
            let says = match exprs.len() {
                1 => Says::Whole,
                _ => Says::Part,
            };
            for ((expr, comparison), values) in exprs.iter().zip(comparisons).zip(values) {
                push(expr, TermOp::In, &[values], *comparison, says);
            }
        }
        ExprKind::IsNull {
            expr,
            negated: false,
        } => {
            let comparison = Comparison::of(&expr.props, &crate::bind::expr::Props::CONSTANT);
            let null = Expr::literal(Value::Null);
            push(expr, TermOp::Is, &[&null], comparison, Says::Whole);
        }
        _ => {}
    }
}

/// What a comparison is to its left side, and to its right one.
fn term_ops(op: CompareOp) -> Option<(TermOp, TermOp)> {
    let upper = |inclusive| TermOp::Upper { inclusive };
    let lower = |inclusive| TermOp::Lower { inclusive };
    Some(match op {
        CompareOp::Equal => (TermOp::Equal, TermOp::Equal),
        CompareOp::Is => (TermOp::Is, TermOp::Is),
        CompareOp::Less => (upper(false), lower(false)),
        CompareOp::LessEqual => (upper(true), lower(true)),
        CompareOp::Greater => (lower(false), upper(false)),
        CompareOp::GreaterEqual => (lower(true), upper(true)),
        CompareOp::NotEqual | CompareOp::IsNot => return None,
    })
}

/// The bounds that hold in each disjunct: of `a < x OR (a = x AND b < y)`, which is what
/// `(a, b) < (x, y)` says, `a <= x` and `x >= a`.
fn common_bounds(disjuncts: &[Expr]) -> Vec<(&Expr, TermOp, &Expr, Comparison)> {
    let Some((first, others)) = disjuncts.split_first() else {
        return Vec::new();
    };
    let ExprKind::Compare(op, comparison, left, right) = &first.kind else {
        return Vec::new();
    };
    let (at_most, strict) = match op {
        CompareOp::Less | CompareOp::LessEqual => (CompareOp::LessEqual, CompareOp::Less),
        CompareOp::Greater | CompareOp::GreaterEqual => {
            (CompareOp::GreaterEqual, CompareOp::Greater)
        }
        _ => return Vec::new(),
    };
    let is_within = |part: &Expr| match &part.kind {
        ExprKind::Compare(op, how, l, r) => {
            (*op == CompareOp::Equal || *op == at_most || *op == strict)
                && (how, l, r) == (comparison, left, right)
        }
        _ => false,
    };
    let bounded = |disjunct: &Expr| match &disjunct.kind {
        ExprKind::And(parts) => parts.iter().any(is_within),
        _ => is_within(disjunct),
    };
    match term_ops(at_most) {
        Some((of_left, of_right)) if others.iter().all(bounded) => vec![
            (left, of_left, right, *comparison),
            (right, of_right, left, *comparison),
        ],
        _ => Vec::new(),
    }
}
