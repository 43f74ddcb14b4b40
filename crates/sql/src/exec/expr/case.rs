//! CASE over a batch: each WHEN on the rows that none before it took, each result on the
//! rows that its WHEN took.

use crate::bind::expr::{CaseArm, CompareOp, Expr};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::batch::{Operand, map_batch, operand};
use crate::exec::expr::eval::Datum;
use crate::exec::expr::{compare, filter};
use crate::value::ValueRef;

/// The parts of a CASE.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// What is compared with each WHEN, where there is such.
    pub base: Option<&'a Expr>,
    /// The WHENs in order.
    pub arms: &'a [CaseArm],
    /// ELSE.
    pub otherwise: Option<&'a Expr>,
}

/// Computes it for the selected rows into `out`.
pub fn eval_case(
    case: Case<'_>,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vector,
) -> Result<()> {
    let base = case.base.map(|base| operand(base, input, selection, cx));
    let base = base.transpose()?;
    let (mut rest, mut hits, mut taken) = (cx.run.rows(), cx.run.rows(), cx.run.rows());
    selection.each(|row| rest.push(row as u32));
    // Of each row the result that it takes; those of no arm take the last one.
    taken.resize(selection.end(), case.arms.len() as u32);
    let mut results = Vec::with_capacity(case.arms.len() + 1);
    for (number, arm) in case.arms.iter().enumerate() {
        hits.clear();
        match (&base, arm.comparison) {
            (Some(base), Some(how)) if !rest.is_empty() => {
                let when = operand(&arm.when, input, Selection::Rows(&rest), cx)?;
                let equals = |row: usize| {
                    compare::test(CompareOp::Equal, how, base.get(row), when.get(row)) == Some(true)
                };
                hits.extend(rest.iter().filter(|row| equals(**row as usize)));
                when.release(cx);
            }
            _ => filter(&arm.when, input, Selection::Rows(&rest), cx, &mut hits)?,
        }
        for row in &hits {
            if let Some(slot) = taken.get_mut(*row as usize) {
                *slot = number as u32;
            }
        }
        rest.retain(|row| taken.get(*row as usize) != Some(&(number as u32)));
        results.push(result(Some(&arm.then), input, &hits, cx)?);
    }
    results.push(result(case.otherwise, input, &rest, cx)?);
    out.clear();
    map_batch(selection, out, |row, out| {
        let of = taken.get(row).and_then(|at| results.get(*at as usize));
        out.push(of.map_or(ValueRef::Null, |of| of.get(row)))
    })?;
    for operand in results.into_iter().chain(base) {
        operand.release(cx);
    }
    for rows in [rest, hits, taken] {
        cx.run.recycle_rows(rows);
    }
    Ok(())
}

/// A result for the rows that take it.
fn result<'a, 'p: 'a>(
    expr: Option<&'a Expr>,
    input: &'a Batch,
    rows: &[u32],
    cx: &mut Context<'p, '_>,
) -> Result<Operand<'a>> {
    match expr {
        Some(expr) if !rows.is_empty() => operand(expr, input, Selection::Rows(rows), cx),
        _ => Ok(Operand::Constant(Datum::Same(ValueRef::Null))),
    }
}
