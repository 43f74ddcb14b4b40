//! coalesce() over a batch: each argument on the rows for which all before it are NULL.

use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::batch::{map_batch, operand};
use crate::value::ValueRef;

/// Computes it for the selected rows into `out`.
pub fn eval_coalesce(
    args: &[Expr],
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vector,
) -> Result<()> {
    let (mut rest, mut taken) = (cx.run.rows(), cx.run.rows());
    // Of each row the argument that it takes; those of none are NULL.
    taken.resize(selection.end(), args.len() as u32);
    let mut operands = Vec::with_capacity(args.len());
    for (number, arg) in args.iter().enumerate() {
        let rows = match number {
            0 => selection,
            _ => Selection::Rows(&rest),
        };
        let values = operand(arg, input, rows, cx)?;
        let mut left = cx.run.rows();
        rows.each(|row| match values.get(row).is_null() {
            true => left.push(row as u32),
            false => {
                if let Some(slot) = taken.get_mut(row) {
                    *slot = number as u32;
                }
            }
        });
        operands.push(values);
        cx.run.recycle_rows(std::mem::replace(&mut rest, left));
        if rest.is_empty() {
            break;
        }
    }
    out.clear();
    map_batch(selection, out, |row, out| {
        let of = taken.get(row).and_then(|at| operands.get(*at as usize));
        out.push(of.map_or(ValueRef::Null, |of| of.get(row)))
    })?;
    for operand in operands {
        operand.release(cx);
    }
    cx.run.recycle_rows(rest);
    cx.run.recycle_rows(taken);
    Ok(())
}
