//! Predicates over a batch: they narrow a selection.
//!
//! Conjuncts run left to right, each only on the rows the ones before let
//! through; disjuncts each only on the rows that none before accepted. So a
//! conjunct that may fail is never evaluated for a row that an earlier one
//! rejected.

use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::context::Context;
use crate::exec::expr::batch::{Operand, is_same_for_all, operand};
use crate::exec::expr::eval::condition;
use crate::exec::expr::like::{self, Like};
use crate::exec::expr::{compare, in_list, kernel, row::Row};
use crate::exec::subquery;
use crate::value::Affinity;

/// Appends to `out` the selected rows for which the predicate is true.
pub fn filter(
    predicate: &Expr,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    if selection.is_empty() {
        return Ok(());
    }
    match &predicate.kind {
        ExprKind::And(parts) if !parts.is_empty() => conjunction(parts, input, selection, cx, out),
        ExprKind::Or(parts) => disjunction(parts, input, selection, cx, out),
        ExprKind::Compare(op, how, left, right) => {
            let a = operand(left, input, selection, cx)?;
            let b = operand(right, input, selection, cx)?;
            comparison(*op, *how, &a, &b, selection, out);
            a.release(cx);
            b.release(cx);
            Ok(())
        }
        ExprKind::Between {
            expr,
            low,
            high,
            low_comparison,
            high_comparison,
            negated: false,
        } => {
            let x = operand(expr, input, selection, cx)?;
            let low = operand(low, input, selection, cx)?;
            let mut above = cx.run.rows();
            comparison(
                CompareOp::GreaterEqual,
                *low_comparison,
                &x,
                &low,
                selection,
                &mut above,
            );
            low.release(cx);
            if !above.is_empty() {
                let rest = Selection::Rows(&above);
                let high = operand(high, input, rest, cx)?;
                comparison(CompareOp::LessEqual, *high_comparison, &x, &high, rest, out);
                high.release(cx);
            }
            x.release(cx);
            cx.run.recycle_rows(above);
            Ok(())
        }
        ExprKind::IsNull { expr, negated } => {
            let x = operand(expr, input, selection, cx)?;
            selection.each(|row| {
                if x.get(row).is_null() != *negated {
                    out.push(row as u32);
                }
            });
            x.release(cx);
            Ok(())
        }
        ExprKind::InList {
            expr,
            list,
            comparison,
            negated,
        } if !list.is_empty() && in_list::is_constant(list, *comparison) => {
            let how = (*comparison, *negated);
            in_list::select(expr, list, how, input, selection, cx, out)
        }
        ExprKind::Like {
            kind,
            expr,
            pattern,
            escape,
            negated,
        } => {
            let it = Like {
                kind: *kind,
                expr,
                pattern,
                escape: escape.as_deref(),
                negated: *negated,
            };
            match like::select(it, input, selection, cx, out)? {
                true => Ok(()),
                false => by_row(predicate, input, selection, cx, out),
            }
        }
        ExprKind::InSubquery {
            exprs,
            subquery: id,
            comparisons,
            negated,
        } if subquery::is_shared(*id, cx) => match (exprs.as_slice(), comparisons.as_slice()) {
            ([x], [how]) => {
                let x = operand(x, input, selection, cx)?;
                subquery::select(*id, &x, (*how, *negated), selection, cx, out)?;
                x.release(cx);
                Ok(())
            }
            _ => by_row(predicate, input, selection, cx, out),
        },
        ExprKind::Exists(_) | ExprKind::ScalarSubquery { .. } | ExprKind::Unary(..)
            if is_same_for_all(predicate, cx) =>
        {
            if condition(predicate, Row::Empty, cx)? == Some(true) {
                selection.each(|row| out.push(row as u32));
            }
            Ok(())
        }
        _ => by_row(predicate, input, selection, cx, out),
    }
}

fn by_row(
    predicate: &Expr,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    selection.try_each(|row| {
        if condition(predicate, Row::Batch(input, row), cx)? == Some(true) {
            out.push(row as u32);
        }
        Ok(())
    })
}

fn conjunction(
    parts: &[Expr],
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    let (mut from, mut to) = (cx.run.rows(), cx.run.rows());
    let last = parts.len() - 1;
    let mut result = Ok(());
    for (i, part) in parts.iter().enumerate() {
        let current = if i == 0 {
            selection
        } else {
            Selection::Rows(&from)
        };
        to.clear();
        result = filter(
            part,
            input,
            current,
            cx,
            if i == last { out } else { &mut to },
        );
        if result.is_err() {
            break;
        }
        std::mem::swap(&mut from, &mut to);
    }
    cx.run.recycle_rows(from);
    cx.run.recycle_rows(to);
    result
}

fn disjunction(
    parts: &[Expr],
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    let start = out.len();
    let mut rest = cx.run.rows();
    selection.each(|row| rest.push(row as u32));
    for part in parts {
        let before = out.len();
        filter(part, input, Selection::Rows(&rest), cx, out)?;
        let mut hits = out.iter().skip(before).copied().peekable();
        rest.retain(|row| {
            let hit = hits.peek() == Some(row);
            if hit {
                hits.next();
            }
            !hit
        });
        if rest.is_empty() {
            break;
        }
    }
    if let Some(added) = out.get_mut(start..) {
        added.sort_unstable();
    }
    cx.run.recycle_rows(rest);
    Ok(())
}

fn comparison(
    op: CompareOp,
    how: Comparison,
    a: &Operand<'_>,
    b: &Operand<'_>,
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) {
    if how.affinity == Affinity::Text {
        return general(op, how, a, b, selection, out);
    }
    // A constant is converted once; plain numbers need no conversion.
    if let Operand::Constant(value) = b {
        let converted = Operand::Constant(how.affinity.apply_comparison(value.as_ref()));
        return numbers_or_general(op, how, a, &converted, selection, out);
    }
    if let Operand::Constant(value) = a {
        let converted = Operand::Constant(how.affinity.apply_comparison(value.as_ref()));
        return numbers_or_general(compare::mirrored(op), how, b, &converted, selection, out);
    }
    numbers_or_general(op, how, a, b, selection, out);
}

fn numbers_or_general(
    op: CompareOp,
    how: Comparison,
    a: &Operand<'_>,
    b: &Operand<'_>,
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) {
    if !kernel::select(op, a, b, selection, out) {
        general(op, how, a, b, selection, out);
    }
}

fn general(
    op: CompareOp,
    how: Comparison,
    a: &Operand<'_>,
    b: &Operand<'_>,
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) {
    selection.each(|row| {
        if compare::test(op, how, a.get(row), b.get(row)) == Some(true) {
            out.push(row as u32);
        }
    });
}
