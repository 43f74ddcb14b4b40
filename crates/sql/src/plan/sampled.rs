//! How many rows fulfil conditions that no index tells anything of: some rows are looked at.
//!
//! The order of a join hangs on what is left of each source. Where nothing is known of
//! `size = 15` or `name LIKE '%brass'` a fixed share is guessed, and a join that should begin
//! with the few rows of one table may begin with all of another one. So where the order that
//! guesses led to is not cheap, conditions on one table alone are tried on rows from all over
//! it, and the order is sought again. That costs some 15 µs, once a compilation.
//!
//! What has no value yet, a parameter, is guessed at as before, and the plan says so
//! ([`Plan::guesses`]); conditions that call functions or ask subqueries are guessed at, too.
//!
//! [`Plan::guesses`]: super::physical::Plan::guesses

use super::Planner;
use super::order::{Condition, Order, Problem};
use crate::bind::expr::{ColumnRef, CompareOp, Expr, ExprKind, LikeKind, ROWID, UnaryOp};
use crate::bind::logical::SourceKind;
use crate::exec::expr::compare;
use crate::plan::physical::ScanColumn;
use crate::value::{self, Collation, Value, ValueRef};

/// Orders that cost no more than reading so many rows are as good as any.
const COST_MIN: f64 = 2_000.0;
/// Of a table of fewer rows nothing is looked at.
const ROWS_MIN: f64 = 500.0;

/// A row of a sample: the values of the columns that are read.
struct Row<'r> {
    source: usize,
    columns: &'r [usize],
    values: &'r [Value],
}

impl Planner<'_, '_> {
    /// Notes which shares of the rows of each source fulfil the conditions on it alone, where
    /// this is the best order so far; true where anything was learned.
    pub(super) fn sample(&mut self, problem: &Problem<'_, '_>, order: &Order) -> bool {
        let is_choice = problem.items.len() > 1 || !problem.placed.is_empty();
        if self.writes_rows || !is_choice || order.cost < COST_MIN {
            return false;
        }
        let mut learned = false;
        for at in 0..problem.items.len() {
            learned |= self.sample_item(problem, at);
        }
        learned
    }

    fn sample_item(&mut self, problem: &Problem<'_, '_>, at: usize) -> bool {
        let Some(item) = problem.items.get(at).filter(|item| item.rows >= ROWS_MIN) else {
            return false;
        };
        let SourceKind::Table(table) = &item.source.kind else {
            return false;
        };
        let id = item.source.id;
        let list = problem.applicable(at).iter().enumerate();
        let alone = |c: &Condition| c.movable && c.sources.len() == 1 && c.sources.contains(&id);
        let unknown = |at: &usize| item.facts.share_of(*at).is_none();
        let mut asked = Vec::new();
        for (at, condition) in list.filter(|(at, c)| alone(c) && unknown(at)) {
            match is_evaluable(&condition.expr) {
                true => asked.push((at, &condition.expr)),
                false => self.guesses |= condition.expr.has_parameter(),
            }
        }
        if asked.is_empty() {
            return false;
        }
        let columns: Vec<usize> = item.needed.iter().copied().collect();
        let wanted: Vec<ScanColumn> = columns.iter().map(|column| scanned(*column)).collect();
        let rows = self.statistics.sample(table, &wanted);
        if rows.is_empty() {
            return false;
        }
        let mut shares = Vec::with_capacity(asked.len());
        for (at, condition) in asked {
            let holds = |values: &&Vec<Value>| {
                let row = Row {
                    source: id,
                    columns: &columns,
                    values,
                };
                holds(condition, &row) == Some(true)
            };
            let found = rows.iter().filter(holds).count();
            // Of what is rare nothing may have been found.
            shares.push((at, (found as f64 + 0.5) / (rows.len() as f64 + 1.0)));
        }
        item.facts.note_sampled(shares);
        true
    }
}

fn scanned(column: usize) -> ScanColumn {
    match column {
        ROWID => ScanColumn::Rowid,
        column => ScanColumn::Column(column),
    }
}

/// Whether [`holds`] can tell of every row.
fn is_evaluable(condition: &Expr) -> bool {
    let is_operand = |e: &Expr| matches!(e.kind, ExprKind::Column(_) | ExprKind::Literal(_));
    let is_asked_now = |collation: Collation| !collation.is_of_program();
    match &condition.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) => parts
            .iter()
            .all(|part| crate::stack::grow(|| is_evaluable(part))),
        ExprKind::Unary(UnaryOp::Not, part) => crate::stack::grow(|| is_evaluable(part)),
        ExprKind::Compare(_, how, left, right) => {
            is_operand(left) && is_operand(right) && is_asked_now(how.collation)
        }
        ExprKind::Between {
            expr,
            low,
            high,
            low_comparison,
            high_comparison,
            ..
        } => {
            [expr, low, high].into_iter().all(|e| is_operand(e))
                && is_asked_now(low_comparison.collation)
                && is_asked_now(high_comparison.collation)
        }
        ExprKind::InList {
            expr,
            list,
            comparison,
            ..
        } => is_operand(expr) && list.iter().all(is_operand) && is_asked_now(comparison.collation),
        ExprKind::IsNull { expr, .. } => is_operand(expr),
        ExprKind::Like {
            expr,
            pattern,
            escape: None,
            ..
        } => {
            let fits = |text: &[u8]| text.len() <= value::PATTERN_LENGTH_MAX;
            is_operand(expr)
                && matches!(&pattern.kind, ExprKind::Literal(Value::Text(t)) if fits(t))
        }
        _ => false,
    }
}

fn operand<'a>(expr: &'a Expr, row: &Row<'a>) -> ValueRef<'a> {
    match &expr.kind {
        ExprKind::Literal(value) => value.as_ref(),
        ExprKind::Column(ColumnRef { source, column }) if *source == row.source => {
            let at = row.columns.iter().position(|it| it == column);
            let value = at.and_then(|at| row.values.get(at));
            value.map_or(ValueRef::Null, Value::as_ref)
        }
        _ => ValueRef::Null,
    }
}

/// A condition that [`is_evaluable`], of a row; None is NULL.
fn holds(condition: &Expr, row: &Row<'_>) -> Option<bool> {
    let negate = |holds: Option<bool>, negated: bool| holds.map(|holds| holds != negated);
    let equal = CompareOp::Equal;
    match &condition.kind {
        ExprKind::And(parts) => every(parts, true, row),
        // Not each of them is false.
        ExprKind::Or(parts) => negate(every(parts, false, row), true),
        ExprKind::Unary(_, part) => crate::stack::grow(|| holds(part, row)).map(|it| !it),
        ExprKind::Compare(op, how, left, right) => {
            compare::test(*op, *how, operand(left, row), operand(right, row))
        }
        ExprKind::Between {
            expr,
            low,
            high,
            low_comparison,
            high_comparison,
            negated,
        } => {
            let value = operand(expr, row);
            let (low, high) = (operand(low, row), operand(high, row));
            let above = compare::test(CompareOp::GreaterEqual, *low_comparison, value, low);
            let below = compare::test(CompareOp::LessEqual, *high_comparison, value, high);
            negate(compare::and(above, below), *negated)
        }
        ExprKind::InList {
            expr,
            list,
            comparison,
            negated,
        } => {
            let value = operand(expr, row);
            let is = |it: &Expr| compare::test(equal, *comparison, value, operand(it, row));
            negate(Some(list.iter().any(|it| is(it) == Some(true))), *negated)
        }
        ExprKind::IsNull { expr, negated } => Some(operand(expr, row).is_null() != *negated),
        ExprKind::Like {
            kind,
            expr,
            pattern,
            negated,
            ..
        } => {
            let text = operand(expr, row).to_text()?;
            let pattern = operand(pattern, row).to_text()?;
            let matches = match kind {
                LikeKind::Like => value::like(&pattern, &text, None),
                LikeKind::LikeExact => value::like_exact(&pattern, &text, None),
                LikeKind::Glob => value::glob(&pattern, &text),
            };
            Some(matches != *negated)
        }
        _ => None,
    }
}

/// Whether each of these conditions is what is `wanted`; None is NULL.
fn every(conditions: &[Expr], wanted: bool, row: &Row<'_>) -> Option<bool> {
    let mut every = Some(true);
    for condition in conditions {
        let is = crate::stack::grow(|| holds(condition, row));
        every = compare::and(every, is.map(|is| is == wanted));
    }
    every
}
