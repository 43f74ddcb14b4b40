//! Row values: `(a, b)` and subqueries of several columns, where they may stand.
//!
//! No expression has a row for its value. What compares rows compares their columns, each
//! pair with its own affinity and collation. Columns of a subquery that is the same for the
//! whole statement are expressions like others, so that keys of an index can serve them. The
//! first row of another subquery is put into registers for the comparison that reads them,
//! which evaluates it once; so is what is not the same each time it is asked for.

use super::Binder;
use super::expr::{
    CaseArm, CompareOp, Comparison, Expr, ExprKind, Props, Register, RowSource, UnaryOp,
};
use super::scalar::{Subquery, between, compare};
use crate::ast;
use crate::ast::ExprKind as A;
use crate::error::{Error, Result};

/// What a row value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowUse {
    /// A side that is looked at once.
    Side,
    /// A side that is looked at several times.
    Again,
    /// The operand of BETWEEN, CASE and IN, which is looked at several times. The columns of
    /// a subquery have their collations there, and nowhere else, as in SQLite.
    Base,
}

/// Rows that are in registers while an expression is evaluated.
#[derive(Debug, Default)]
pub(super) struct Rows(Vec<(RowSource, Vec<Register>, Props)>);

impl Rows {
    /// The expression with its rows around it.
    pub fn around(self, body: Expr) -> Expr {
        self.0
            .into_iter()
            .rev()
            .fold(body, |body, (row, registers, props)| {
                let mut with = Expr::operator(ExprKind::WithRow {
                    row,
                    registers,
                    body: Box::new(body),
                });
                with.props.add(&props);
                with
            })
    }

    /// Whether the expression is a register of these.
    fn has(&self, expr: &Expr) -> bool {
        let ExprKind::Register(register) = expr.kind else {
            return false;
        };
        self.0.iter().any(|(_, all, _)| all.contains(&register))
    }
}

/// Whether the expression is a row value, unless it is a subquery of one column.
pub(super) fn may_be_row(e: &ast::Expr) -> bool {
    matches!(e.kind, A::RowValue(_) | A::Subquery(_))
}

fn misused(e: &ast::Expr) -> Error {
    Error::sql("row value misused").with_offset(e.offset)
}

impl Binder<'_> {
    /// The columns of an operand, one where it is no row.
    pub(super) fn row(
        &mut self,
        e: &ast::Expr,
        what_for: RowUse,
        rows: &mut Rows,
    ) -> Result<Vec<Expr>> {
        match &e.kind {
            A::RowValue(list) => {
                let mut columns = self.exprs(list)?;
                if what_for != RowUse::Side {
                    self.store_volatile(&mut columns, rows);
                }
                Ok(columns)
            }
            A::Subquery(select) => {
                let subquery = self.subquery(select)?;
                Ok(self.subquery_columns(&subquery, what_for, rows))
            }
            _ => Ok(vec![self.expr(e)?]),
        }
    }

    fn subquery_columns(
        &mut self,
        subquery: &Subquery,
        what_for: RowUse,
        rows: &mut Rows,
    ) -> Vec<Expr> {
        let width = subquery.columns.len();
        let mut columns: Vec<Expr> = (0..width).map(|i| subquery.column(i)).collect();
        if width != 1 && what_for == RowUse::Base {
            for (column, of) in columns.iter_mut().zip(&subquery.columns) {
                column.props.collation = of.collation;
                column.props.explicit_collation = of.explicit_collation;
            }
        }
        if width != 1 && !subquery.once {
            let registers = self.registers_for(columns.iter_mut());
            let source = RowSource::Subquery(subquery.id);
            rows.0.push((source, registers, subquery.props));
        }
        columns
    }

    /// Puts columns that are not the same each time into registers.
    fn store_volatile(&mut self, columns: &mut [Expr], rows: &mut Rows) {
        let volatile = |e: &Expr| !e.props.deterministic;
        let stored: Vec<Expr> = columns.iter().filter(|e| volatile(e)).cloned().collect();
        if !stored.is_empty() {
            let registers = self.registers_for(columns.iter_mut().filter(|e| volatile(e)));
            rows.0
                .push((RowSource::Exprs(stored), registers, Props::CONSTANT));
        }
    }

    /// Makes each of the columns a register.
    fn registers_for<'e>(&mut self, columns: impl Iterator<Item = &'e mut Expr>) -> Vec<Register> {
        columns
            .map(|column| {
                let register = self.registers;
                self.registers += 1;
                column.kind = ExprKind::Register(register);
                column.props = Props {
                    deterministic: true,
                    fallible: false,
                    constant: false,
                    ..column.props
                };
                register
            })
            .collect()
    }

    /// A comparison of which one side may be a row value.
    pub(super) fn compare_rows(
        &mut self,
        op: CompareOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr> {
        if let (A::RowValue(lefts), A::RowValue(rights)) = (&left.kind, &right.kind)
            && lefts.len() != rights.len()
        {
            return Err(misused(left));
        }
        let what_for = match op {
            CompareOp::Equal | CompareOp::NotEqual | CompareOp::Is | CompareOp::IsNot => {
                RowUse::Side
            }
            _ => RowUse::Again,
        };
        let mut rows = Rows::default();
        let lefts = self.row(left, what_for, &mut rows)?;
        let rights = self.row(right, what_for, &mut rows)?;
        let compared = compare_columns(op, lefts, rights).ok_or_else(|| misused(left))?;
        Ok(rows.around(compared))
    }

    /// BETWEEN of which one operand may be a row value.
    pub(super) fn between_rows(
        &mut self,
        expr: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Result<Expr> {
        let mut rows = Rows::default();
        let columns = self.row(expr, RowUse::Base, &mut rows)?;
        let lows = self.row(low, RowUse::Again, &mut rows)?;
        let highs = self.row(high, RowUse::Again, &mut rows)?;
        if let ([column], [low], [high]) = (&*columns, &*lows, &*highs) {
            return Ok(between(column.clone(), low.clone(), high.clone(), negated));
        }
        let misused = || misused(expr);
        let above = compare_columns(CompareOp::GreaterEqual, columns.clone(), lows);
        let below = compare_columns(CompareOp::LessEqual, columns, highs);
        let both = vec![above.ok_or_else(misused)?, below.ok_or_else(misused)?];
        let both = Expr::operator(ExprKind::And(both));
        Ok(rows.around(if negated { not(both) } else { both }))
    }

    /// CASE whose base is a row.
    pub(super) fn case_rows(
        &mut self,
        base: Vec<Expr>,
        rows: Rows,
        whens: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let mut arms = Vec::with_capacity(whens.len());
        for when in whens {
            let mut own = Rows::default();
            let columns = self.row(&when.when, RowUse::Side, &mut own)?;
            let equal = compare_columns(CompareOp::Equal, base.clone(), columns);
            arms.push(CaseArm {
                when: own.around(equal.ok_or_else(|| misused(&when.when))?),
                comparison: None,
                then: self.expr(&when.then)?,
            });
        }
        let otherwise = match otherwise {
            Some(e) => Some(Box::new(self.expr(e)?)),
            None => None,
        };
        Ok(rows.around(Expr::operator(ExprKind::Case {
            base: None,
            arms,
            otherwise,
        })))
    }

    /// `(a, b) IN ((1, 2), …)`. The list is VALUES to SQLite, of which the last row decides
    /// how to compare.
    pub(super) fn row_in_list(
        &mut self,
        row: &[ast::Expr],
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr> {
        let mut rows = Rows::default();
        let mut lefts = self.exprs(row)?;
        self.store_volatile(&mut lefts, &mut rows);
        let mut candidates = Vec::with_capacity(list.len());
        for candidate in list {
            let terms = match &candidate.kind {
                A::RowValue(terms) => terms.as_slice(),
                _ => std::slice::from_ref(candidate),
            };
            if terms.len() != lefts.len() {
                let s = if terms.len() == 1 { "" } else { "s" };
                let (has, expected) = (terms.len(), lefts.len());
                let message = format!("IN(...) element has {has} term{s} - expected {expected}");
                return Err(Error::sql(message).with_offset(candidate.offset));
            }
            candidates.push(self.exprs(terms)?);
        }
        let comparisons: Vec<Comparison> = match candidates.last() {
            Some(last) => {
                let pairs = lefts.iter().zip(last);
                pairs
                    .map(|(l, r)| Comparison::of(&l.props, &r.props))
                    .collect()
            }
            None => Vec::new(),
        };
        let equal = |candidate: Vec<Expr>| {
            let pairs = lefts.iter().zip(candidate).zip(&comparisons);
            let pairs = pairs.map(|((l, r), how)| {
                let (l, r) = (Box::new(l.clone()), Box::new(r));
                Expr::operator(ExprKind::Compare(CompareOp::Equal, *how, l, r))
            });
            Expr::operator(ExprKind::And(pairs.collect()))
        };
        let any = ExprKind::Or(candidates.into_iter().map(equal).collect());
        let any = Expr::operator(any);
        Ok(rows.around(if negated { not(any) } else { any }))
    }

    /// The values that SET gives several columns, and the rows they are registers of.
    pub(super) fn assigned_row(
        &mut self,
        width: usize,
        e: &ast::Expr,
        rows: &mut Rows,
    ) -> Result<Vec<Expr>> {
        let wrong = |values: usize| {
            Error::sql(format!("{width} columns assigned {values} values")).with_offset(e.offset)
        };
        match &e.kind {
            A::RowValue(values) if values.len() != width => Err(wrong(values.len())),
            A::RowValue(values) => self.exprs(values),
            A::Subquery(select) => {
                let subquery = self.subquery(select)?;
                match subquery.columns.len() {
                    values if values != width => Err(wrong(values)),
                    _ => Ok(self.subquery_columns(&subquery, RowUse::Side, rows)),
                }
            }
            _ => Err(wrong(1)),
        }
    }
}

/// Lets the first of the assigned values that reads one of these rows fetch it. Rows of
/// which none is left, as when other assignments came after them, go.
pub(super) fn fetch_rows(assigned: &mut [(usize, Expr)], rows: Rows) {
    for row in rows.0 {
        let row = Rows(vec![row]);
        if let Some((_, first)) = assigned.iter_mut().find(|(_, value)| row.has(value)) {
            *first = row.around(std::mem::replace(first, Expr::null()));
            // The others follow, in the same row.
            first.props.deterministic = false;
        }
    }
}

/// A comparison of columns, pair by pair: lexicographic from left to right. None where there
/// are not as many.
fn compare_columns(op: CompareOp, lefts: Vec<Expr>, rights: Vec<Expr>) -> Option<Expr> {
    if lefts.len() != rights.len() {
        return None;
    }
    let mut pairs: Vec<(Expr, Expr)> = lefts.into_iter().zip(rights).collect();
    if pairs.len() == 1 {
        return pairs.pop().map(|(l, r)| compare(op, l, r));
    }
    let all = |op: CompareOp, pairs: Vec<(Expr, Expr)>| {
        let all = pairs.into_iter().map(|(l, r)| compare(op, l, r));
        Expr::operator(ExprKind::And(all.collect()))
    };
    let strict = match op {
        CompareOp::Equal | CompareOp::Is => return Some(all(op, pairs)),
        CompareOp::NotEqual => return Some(not(all(CompareOp::Equal, pairs))),
        CompareOp::IsNot => return Some(not(all(CompareOp::Is, pairs))),
        CompareOp::Less | CompareOp::LessEqual => CompareOp::Less,
        CompareOp::Greater | CompareOp::GreaterEqual => CompareOp::Greater,
    };
    pairs.into_iter().rev().fold(None, |rest, (l, r)| {
        let Some(rest) = rest else {
            return Some(compare(op, l, r));
        };
        let first = compare(strict, l.clone(), r.clone());
        let equal = compare(CompareOp::Equal, l, r);
        let tail = Expr::operator(ExprKind::And(vec![equal, rest]));
        Some(Expr::operator(ExprKind::Or(vec![first, tail])))
    })
}

fn not(expr: Expr) -> Expr {
    Expr::operator(ExprKind::Unary(UnaryOp::Not, Box::new(expr)))
}
