//! Evaluating an expression over the selected rows of a batch.
//!
//! Columns and constants are used where they lie; arithmetic over integers and
//! reals and all comparisons have kernels; everything else goes row by row
//! through [`mod@super::eval`]. Results have a value for each row up to the last
//! selected one; those of rows that are not selected mean nothing.
//!
//! An error says nothing about its row: the caller evaluates the batch again
//! row by row. Only deterministic expressions come here (callers see to it), so
//! that nobody can tell.

use crate::bind::expr::{BinaryOp, Expr, ExprKind};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::call::{Call, eval_call};
use crate::exec::expr::case::{Case, eval_case};
use crate::exec::expr::coalesce::eval_coalesce;
use crate::exec::expr::eval::{self, Datum, binary, may_be_json};
use crate::exec::expr::nullif::eval_nullif;
use crate::exec::expr::{compare, kernel, row::Row};
use crate::exec::subquery;
use crate::func::Form;
use crate::value::{self, ValueRef};

/// Where an operand's values are.
pub enum Operand<'a> {
    /// The same value for all rows.
    Constant(Datum<'a>),
    /// A column of the input.
    Column(&'a Vector),
    /// Computed; give it back with [`Operand::release`].
    Computed(Vector),
}

impl Operand<'_> {
    /// The value for a row.
    #[inline(always)]
    pub fn get(&self, row: usize) -> ValueRef<'_> {
        match self {
            Operand::Constant(value) => value.as_ref(),
            Operand::Column(vector) => vector.get(row),
            Operand::Computed(vector) => vector.get(row),
        }
    }

    /// The values, unless it is a constant.
    #[inline]
    pub fn vector(&self) -> Option<&Vector> {
        match self {
            Operand::Constant(_) => None,
            Operand::Column(vector) => Some(vector),
            Operand::Computed(vector) => Some(vector),
        }
    }

    /// Hands the memory back.
    pub fn release(self, cx: &mut Context<'_, '_>) {
        if let Operand::Computed(vector) = self {
            cx.run.recycle(vector);
        }
    }
}

/// The expression's values for the selected rows, wherever they are.
pub fn operand<'a, 'p: 'a>(
    expr: &'a Expr,
    input: &'a Batch,
    selection: Selection<'_>,
    cx: &mut Context<'p, '_>,
) -> Result<Operand<'a>> {
    match &expr.kind {
        ExprKind::Input(column) => {
            if let Some(vector) = input.columns.get(*column) {
                return Ok(Operand::Column(vector));
            }
            Ok(Operand::Constant(Datum::Same(ValueRef::Null)))
        }
        ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Register(_) => {
            Ok(Operand::Constant(eval::eval(expr, Row::Empty, cx)?))
        }
        _ if !selection.is_empty() && is_same_for_all(expr, cx) => {
            Ok(Operand::Constant(eval::eval(expr, Row::Empty, cx)?))
        }
        _ => {
            let mut out = cx.run.vector();
            match crate::stack::grow(|| eval_batch(expr, input, selection, cx, &mut out)) {
                Ok(()) => Ok(Operand::Computed(out)),
                Err(error) => {
                    cx.run.recycle(out);
                    Err(error)
                }
            }
        }
    }
}

/// Whether an expression has one value, whatever the row.
pub fn is_same_for_all(expr: &Expr, cx: &Context<'_, '_>) -> bool {
    let mut expr = expr;
    while let ExprKind::Unary(_, operand) = &expr.kind {
        expr = operand;
    }
    match &expr.kind {
        ExprKind::ScalarSubquery { subquery, .. } | ExprKind::Exists(subquery) => {
            subquery::is_shared(*subquery, cx)
        }
        _ => expr.props.constant && expr.props.deterministic,
    }
}

/// Computes the expression for the selected rows into `out`.
pub fn eval_batch<'p>(
    expr: &Expr,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'p, '_>,
    out: &mut Vector,
) -> Result<()> {
    match &expr.kind {
        ExprKind::Input(_)
        | ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Register(_) => {
            let source = operand(expr, input, selection, cx)?;
            match &source {
                Operand::Column(vector) => out.copy_from(vector),
                constant => out.fill(constant.get(0), selection.end())?,
            }
            Ok(())
        }
        ExprKind::Binary(op, left, right) => {
            let a = operand(left, input, selection, cx)?;
            let b = operand(right, input, selection, cx)?;
            let result = binary_batch(*op, &a, &b, selection, out);
            a.release(cx);
            b.release(cx);
            result
        }
        ExprKind::Compare(op, how, left, right) => {
            let a = operand(left, input, selection, cx)?;
            let b = operand(right, input, selection, cx)?;
            out.clear();
            map_batch(selection, out, |row, out| {
                out.push_truth(compare::test(*op, *how, a.get(row), b.get(row)));
                Ok(())
            })?;
            a.release(cx);
            b.release(cx);
            Ok(())
        }
        ExprKind::Unary(op, inner) => map_operand(inner, input, selection, cx, out, |a, out| {
            out.push(eval::unary(*op, a).as_ref())
        }),
        ExprKind::IsNull { expr, negated } => {
            map_operand(expr, input, selection, cx, out, |a, out| {
                out.push_truth(Some(a.is_null() != *negated));
                Ok(())
            })
        }
        ExprKind::Cast(inner, to) => map_operand(inner, input, selection, cx, out, |a, out| {
            out.push(value::cast(a, *to).as_ref())
        }),
        ExprKind::Case {
            base,
            arms,
            otherwise,
        } => {
            let case = Case {
                base: base.as_deref(),
                arms,
                otherwise: otherwise.as_deref(),
            };
            eval_case(case, input, selection, cx, out)
        }
        ExprKind::Function {
            function,
            args,
            collation,
        } => {
            let collation = *collation;
            let call = Call {
                function,
                args,
                collation,
            };
            match (function.form, args.as_slice()) {
                (Form::NullIf, [a, b]) if !may_be_json(args) => {
                    eval_nullif((a, b), collation, input, selection, cx, out)
                }
                (Form::Coalesce, _) => eval_coalesce(args, input, selection, cx, out),
                _ if call.takes_values() => eval_call(call, input, selection, cx, out),
                _ => eval_rows(expr, input, selection, cx, out),
            }
        }
        _ => eval_rows(expr, input, selection, cx, out),
    }
}

/// Calls `f` with each value of an operand; it pushes one.
fn map_operand(
    expr: &Expr,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vector,
    mut f: impl FnMut(ValueRef<'_>, &mut Vector) -> Result<()>,
) -> Result<()> {
    let operand = operand(expr, input, selection, cx)?;
    out.clear();
    map_batch(selection, out, |row, out| f(operand.get(row), out))?;
    operand.release(cx);
    Ok(())
}

/// Row by row, in row order.
pub fn eval_rows(
    expr: &Expr,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vector,
) -> Result<()> {
    out.clear();
    map_batch(selection, out, |row, out| {
        out.push(eval::eval(expr, Row::Batch(input, row), cx)?.as_ref())
    })
}

/// Calls `f` for each selected row; it pushes one value. Rows between get NULL.
pub fn map_batch(
    selection: Selection<'_>,
    out: &mut Vector,
    mut f: impl FnMut(usize, &mut Vector) -> Result<()>,
) -> Result<()> {
    match selection {
        Selection::All(n) => (0..n).try_for_each(|row| f(row, out)),
        Selection::Rows(rows) => rows.iter().try_for_each(|row| {
            let row = *row as usize;
            while out.len() < row {
                out.push_null();
            }
            f(row, out)
        }),
    }
}

fn binary_batch(
    op: BinaryOp,
    a: &Operand<'_>,
    b: &Operand<'_>,
    selection: Selection<'_>,
    out: &mut Vector,
) -> Result<()> {
    if kernel::arithmetic(op, a, b, selection, out) {
        return Ok(());
    }
    out.clear();
    map_batch(selection, out, |row, out| {
        out.push(binary(op, a.get(row), b.get(row)).as_ref())
    })
}
