//! nullif() over a batch.

use std::cmp::Ordering;

use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::batch::{map_batch, operand};
use crate::value::{Collation, ValueRef, compare};

/// Computes the first where it differs from the second for the selected rows into `out`.
pub fn eval_nullif(
    (first, second): (&Expr, &Expr),
    collation: Collation,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vector,
) -> Result<()> {
    let a = operand(first, input, selection, cx)?;
    let b = operand(second, input, selection, cx)?;
    out.clear();
    let integers = a.vector().and_then(Vector::integers);
    match (integers, b.vector().is_none(), b.get(0)) {
        (Some(words), true, ValueRef::Integer(b)) => map_batch(selection, out, |row, out| {
            match words.get(row) {
                Some(word) if *word != b => out.push_integer(*word),
                _ => out.push_null(),
            }
            Ok(())
        })?,
        _ => map_batch(selection, out, |row, out| {
            let a = a.get(row);
            match compare(a, b.get(row), collation) {
                Ordering::Equal => out.push_null(),
                _ => out.push(a)?,
            }
            Ok(())
        })?,
    }
    a.release(cx);
    b.release(cx);
    Ok(())
}
