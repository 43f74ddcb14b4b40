//! Calls of functions of the program.

use super::json;
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::eval::{Datum, eval};
use crate::exec::expr::row::Row;
use crate::func::user::JSON_SUBTYPE;
use crate::value::ValueRef;

/// The value of a call. What a function gives may have a subtype, which its caller finds in
/// the run.
pub fn call<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    let ExprKind::UserFunction {
        function,
        args,
        site,
    } = &expr.kind
    else {
        return Ok(Datum::Same(ValueRef::Null));
    };
    let mut values = Vec::with_capacity(args.len());
    let mut subtypes = Vec::new();
    for arg in args {
        if function.flags.takes_subtypes {
            let (value, subtype) = with_subtype(arg, row, cx)?;
            values.push(value);
            subtypes.push(subtype);
        } else {
            values.push(eval(arg, row, cx)?);
        }
    }
    let refs: Vec<ValueRef<'_>> = values.iter().map(Datum::as_ref).collect();
    let value = function.call(*site, &refs, &subtypes, &mut cx.run.functions)?;
    Ok(Datum::Changed(value))
}

/// A value and its subtype.
fn with_subtype<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<(Datum<'a>, u32)> {
    if let ExprKind::UserFunction { .. } = &expr.kind {
        let value = eval(expr, row, cx)?;
        return Ok((value, cx.run.functions.subtype));
    }
    let (value, is_json) = json::tagged(expr, row, cx)?;
    Ok((value, if is_json { JSON_SUBTYPE } else { 0 }))
}
