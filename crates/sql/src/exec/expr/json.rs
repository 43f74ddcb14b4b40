//! Calls of functions that ask which of their arguments are texts of JSON.
//!
//! A value is one where the call that made it says so. What only hands a value on (CASE,
//! `coalesce()`, CAST) is looked through, to the call in the branch that was taken.

use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::eval::{self, Datum};
use crate::exec::expr::row::Row;
use crate::func::user::JSON_SUBTYPE;
use crate::func::{Form, JsonText, ScalarFunction};
use crate::value::{Collation, ValueRef};

/// Calls a function after it is known which of its arguments are texts of JSON.
pub fn call<'a, 'p: 'a>(
    function: &ScalarFunction,
    args: &'a [Expr],
    collation: Collation,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    let mut are_json = std::mem::take(&mut cx.run.functions.json_arguments);
    are_json.clear();
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        let (value, is_json) = tagged(arg, row, cx)?;
        values.push(value);
        are_json.push(is_json);
    }
    let refs: Vec<ValueRef<'_>> = values.iter().map(Datum::as_ref).collect();
    cx.run.functions.json_arguments = are_json;
    eval::call(function, &refs, collation, cx)
}

/// A value and whether it is a text of JSON.
pub fn tagged<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<(Datum<'a>, bool)> {
    match &expr.kind {
        _ if expr.props.json == JsonText::Never => Ok((eval::eval(expr, row, cx)?, false)),
        ExprKind::Function { function, args, .. } => match function.form {
            Form::Eager | Form::NullIf => {
                cx.run.functions.gave_json = false;
                let value = eval::eval(expr, row, cx)?;
                Ok((value, cx.run.functions.gave_json))
            }
            Form::Coalesce => {
                for arg in args {
                    let (value, is_json) = tagged(arg, row, cx)?;
                    if !value.as_ref().is_null() {
                        return Ok((value, is_json));
                    }
                }
                Ok((Datum::Same(ValueRef::Null), false))
            }
            Form::If => match eval::chosen(args, row, cx)? {
                Some(result) => crate::stack::grow(|| tagged(result, row, cx)),
                None => Ok((Datum::Same(ValueRef::Null), false)),
            },
            Form::First => match args.first() {
                Some(first) => tagged(first, row, cx),
                None => Ok((Datum::Same(ValueRef::Null), false)),
            },
        },
        ExprKind::UserFunction { .. } => {
            let value = eval::eval(expr, row, cx)?;
            Ok((value, cx.run.functions.subtype == JSON_SUBTYPE))
        }
        ExprKind::Case {
            base,
            arms,
            otherwise,
        } => match eval::taken(base.as_deref(), arms, otherwise.as_deref(), row, cx)? {
            Some(result) => crate::stack::grow(|| tagged(result, row, cx)),
            None => Ok((Datum::Same(ValueRef::Null), false)),
        },
        ExprKind::Cast(operand, to) => {
            let (value, is_json) = crate::stack::grow(|| tagged(operand, row, cx))?;
            let value = crate::value::cast(value.as_ref(), *to);
            Ok((Datum::Changed(value), is_json))
        }
        _ => Ok((
            eval::eval(expr, row, cx)?,
            expr.props.json == JsonText::Always,
        )),
    }
}
