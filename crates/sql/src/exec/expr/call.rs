//! A function over a batch: each argument is computed for all rows where its values lie,
//! then the function is called row by row.

use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::batch::{map_batch, operand};
use crate::exec::expr::eval::{may_be_json, without_json};
use crate::func::{Form, ScalarFunction};
use crate::value::{Collation, ValueRef};

/// A function and what it is called with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The function.
    pub function: &'a ScalarFunction,
    /// Its arguments.
    pub args: &'a [Expr],
    /// The collation that it compares by.
    pub collation: Collation,
}

impl Call<'_> {
    /// Whether all its arguments are computed before it is called, and as values alone.
    pub fn takes_values(&self) -> bool {
        let as_json = self.function.takes_json && may_be_json(self.args);
        matches!(self.function.form, Form::Eager) && !as_json
    }
}

/// Computes a call that [takes values](Call::takes_values) for the selected rows into `out`.
pub fn eval_call(
    call: Call<'_>,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vector,
) -> Result<()> {
    let mut operands = Vec::with_capacity(call.args.len());
    for arg in call.args {
        operands.push(operand(arg, input, selection, cx)?);
    }
    without_json(call.function, cx);
    cx.run.functions.collation = call.collation;
    out.clear();
    let mut args: Vec<ValueRef<'_>> = Vec::with_capacity(operands.len());
    map_batch(selection, out, |row, out| {
        args.clear();
        args.extend(operands.iter().map(|operand| operand.get(row)));
        let value = call.function.call(&mut cx.run.functions, &args)?;
        out.push(value.as_ref())
    })?;
    for operand in operands {
        operand.release(cx);
    }
    Ok(())
}
