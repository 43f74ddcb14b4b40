//! Evaluating a bound expression over one row.
//!
//! This is the complete evaluator: point paths and sinks use it directly, and
//! the batch evaluator falls back to it for whatever has no kernel and, row by
//! row, to find out which row of a batch failed.
//!
//! AND, OR, CASE and IN evaluate their parts left to right and stop as soon as
//! the result is settled. Recursion follows the expression, whose depth the
//! binder bounds, and takes stack as it needs: a thread of the application may
//! be a small one. The rarer operations live in functions of their own so that
//! the frame of a level stays small.

use crate::bind::expr::{
    BinaryOp, CaseArm, Comparison, Expr, ExprKind, LikeKind, RowSource, UnaryOp,
};
use crate::error::{Error, Result};
use crate::exec::context::Context;
use crate::exec::expr::compare;
use crate::exec::expr::row::Row;
use crate::exec::subquery;
use crate::func::{Form, JsonText, ScalarFunction};
use crate::value::{self, Applied, Collation, Value, ValueRef, utf8};

/// What evaluation yields: borrowed from the row, the expression or a parameter
/// where possible.
pub type Datum<'a> = Applied<'a>;

fn truth<'a>(value: Option<bool>) -> Datum<'a> {
    Datum::Same(value.map_or(ValueRef::Null, |b| ValueRef::Integer(i64::from(b))))
}

/// The expression's value over `row`.
#[inline]
pub fn eval<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    Ok(match &expr.kind {
        ExprKind::Input(column) => Datum::Same(row.get(*column)),
        ExprKind::Literal(value) => Datum::Same(value.as_ref()),
        ExprKind::Parameter(index) => {
            let params: &'p [Value] = cx.parameters;
            Datum::Same(params.get(*index).map_or(ValueRef::Null, Value::as_ref))
        }
        _ => return level(expr, row, cx),
    })
}

/// As [`eval`], one level further down.
fn level<'a, 'p: 'a>(expr: &'a Expr, row: Row<'a>, cx: &mut Context<'p, '_>) -> Result<Datum<'a>> {
    crate::stack::grow(|| operation(expr, row, cx))
}

/// The value of what has operands, or is neither of the row nor of the text.
fn operation<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    Ok(match &expr.kind {
        ExprKind::Register(register) => register_value(*register, cx),
        ExprKind::Binary(op, left, right) => {
            let a = eval(left, row, cx)?;
            let b = eval(right, row, cx)?;
            binary(*op, a.as_ref(), b.as_ref())
        }
        ExprKind::Compare(op, how, left, right) => {
            let a = eval(left, row, cx)?;
            let b = eval(right, row, cx)?;
            truth(compare::test(*op, *how, a.as_ref(), b.as_ref()))
        }
        ExprKind::And(_) | ExprKind::Or(_) | ExprKind::Between { .. } | ExprKind::InList { .. } => {
            truth(condition(expr, row, cx)?)
        }
        ExprKind::IsNull { expr, negated } => {
            truth(Some(eval(expr, row, cx)?.as_ref().is_null() != *negated))
        }
        ExprKind::IsTruth {
            expr,
            truth: wanted,
            negated,
        } => {
            let is = eval(expr, row, cx)?.as_ref().truth() == Some(*wanted);
            truth(Some(is != *negated))
        }
        ExprKind::Unary(op, operand) => unary(*op, eval(operand, row, cx)?.as_ref()),
        ExprKind::Cast(operand, to) => {
            Datum::Changed(value::cast(eval(operand, row, cx)?.as_ref(), *to))
        }
        ExprKind::Case {
            base,
            arms,
            otherwise,
        } => case(base.as_deref(), arms, otherwise.as_deref(), row, cx)?,
        ExprKind::Like { .. } => truth(like(expr, row, cx)?),
        ExprKind::Function { .. } => function(expr, row, cx)?,
        ExprKind::UserFunction { .. } => super::user::call(expr, row, cx)?,
        ExprKind::RefusedFunction { error, .. } => return Err(error.clone()),
        ExprKind::ScalarSubquery { subquery, column } => {
            Datum::Changed(subquery::scalar(*subquery, *column, row, cx)?)
        }
        ExprKind::WithRow { .. } => with_row(expr, row, cx)?,
        ExprKind::Exists(id) => truth(Some(subquery::exists(*id, row, cx)?)),
        ExprKind::InSubquery {
            exprs,
            subquery,
            comparisons,
            negated,
        } => {
            let found = subquery::contains(*subquery, exprs, comparisons, row, cx)?;
            truth(found.map(|f| f != *negated))
        }
        ExprKind::Input(_)
        | ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Column(_)
        | ExprKind::Aggregate(_)
        | ExprKind::Window(..)
        | ExprKind::Members { .. } => {
            return Err(unplanned());
        }
    })
}

#[cold]
fn unplanned() -> Error {
    Error::misuse("an expression without a value of its own cannot be evaluated")
}

fn register_value<'a>(register: usize, cx: &Context<'_, '_>) -> Datum<'a> {
    match cx.run.registers.get(register) {
        None | Some(Value::Null) => Datum::Same(ValueRef::Null),
        Some(Value::Integer(i)) => Datum::Same(ValueRef::Integer(*i)),
        Some(Value::Real(r)) => Datum::Same(ValueRef::Real(*r)),
        Some(other) => Datum::Changed(other.clone()),
    }
}

fn with_row<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    let ExprKind::WithRow {
        row: source,
        registers,
        body,
    } = &expr.kind
    else {
        return Ok(Datum::Same(ValueRef::Null));
    };
    match source {
        RowSource::Subquery(id) => subquery::store_row(*id, registers, row, cx)?,
        RowSource::Exprs(exprs) => {
            for (expr, register) in exprs.iter().zip(registers) {
                let value = eval(expr, row, cx)?;
                cx.run.set_register(*register, value.as_ref());
            }
        }
    }
    eval(body, row, cx)
}

/// The expression as a condition; None is NULL.
pub fn condition<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<bool>> {
    match &expr.kind {
        ExprKind::And(parts) => crate::stack::grow(|| connected(parts, false, row, cx)),
        ExprKind::Or(parts) => crate::stack::grow(|| connected(parts, true, row, cx)),
        ExprKind::Compare(op, how, left, right) => {
            let a = eval(left, row, cx)?;
            let b = eval(right, row, cx)?;
            Ok(compare::test(*op, *how, a.as_ref(), b.as_ref()))
        }
        ExprKind::Between { .. } => between(expr, row, cx),
        ExprKind::InList { .. } => in_list(expr, row, cx),
        _ => Ok(eval(expr, row, cx)?.as_ref().truth()),
    }
}

/// AND and OR: one part that is `settled` settles the result.
fn connected<'a, 'p: 'a>(
    parts: &'a [Expr],
    settled: bool,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<bool>> {
    let mut result = Some(!settled);
    for part in parts {
        match condition(part, row, cx)? {
            Some(is) if is == settled => return Ok(Some(settled)),
            None => result = None,
            Some(_) => {}
        }
    }
    Ok(result)
}

fn between<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<bool>> {
    use crate::bind::expr::CompareOp::{GreaterEqual, LessEqual};
    let ExprKind::Between {
        expr,
        low,
        high,
        low_comparison,
        high_comparison,
        negated,
    } = &expr.kind
    else {
        return Ok(None);
    };
    let x = eval(expr, row, cx)?;
    let above = {
        let low = eval(low, row, cx)?;
        compare::test(GreaterEqual, *low_comparison, x.as_ref(), low.as_ref())
    };
    if above == Some(false) {
        return Ok(Some(*negated));
    }
    let high = eval(high, row, cx)?;
    let below = compare::test(LessEqual, *high_comparison, x.as_ref(), high.as_ref());
    Ok(compare::and(above, below).map(|b| b != *negated))
}

fn in_list<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<bool>> {
    use crate::bind::expr::CompareOp::Equal;
    let ExprKind::InList {
        expr,
        list,
        comparison,
        negated,
    } = &expr.kind
    else {
        return Ok(None);
    };
    if list.is_empty() {
        return Ok(Some(*negated));
    }
    let x = eval(expr, row, cx)?;
    let mut result = Some(false);
    for candidate in list {
        let candidate = eval(candidate, row, cx)?;
        match compare::test(Equal, *comparison, x.as_ref(), candidate.as_ref()) {
            Some(true) => return Ok(Some(!negated)),
            None => result = None,
            Some(false) => {}
        }
    }
    Ok(result.map(|b| b != *negated))
}

/// An operator over two values.
#[inline]
pub fn binary<'a>(op: BinaryOp, a: ValueRef<'_>, b: ValueRef<'_>) -> Datum<'a> {
    if let (ValueRef::Integer(x), ValueRef::Integer(y)) = (a, b) {
        let quick = match op {
            BinaryOp::Add => x.checked_add(y),
            BinaryOp::Subtract => x.checked_sub(y),
            BinaryOp::Multiply => x.checked_mul(y),
            _ => None,
        };
        if let Some(result) = quick {
            return Datum::Same(ValueRef::Integer(result));
        }
    }
    Datum::Changed(match op {
        BinaryOp::Add => value::add(a, b),
        BinaryOp::Subtract => value::subtract(a, b),
        BinaryOp::Multiply => value::multiply(a, b),
        BinaryOp::Divide => value::divide(a, b),
        BinaryOp::Remainder => value::remainder(a, b),
        BinaryOp::BitAnd => value::bit_and(a, b),
        BinaryOp::BitOr => value::bit_or(a, b),
        BinaryOp::ShiftLeft => value::shift_left(a, b),
        BinaryOp::ShiftRight => value::shift_right(a, b),
        BinaryOp::Concat => value::concat(a, b),
    })
}

/// An operator over one value.
pub fn unary<'a>(op: UnaryOp, operand: ValueRef<'_>) -> Datum<'a> {
    match op {
        UnaryOp::Negate => Datum::Changed(value::negate(operand)),
        UnaryOp::BitNot => Datum::Changed(value::bit_not(operand)),
        UnaryOp::Not => truth(operand.truth().map(|b| !b)),
    }
}

fn case<'a, 'p: 'a>(
    base: Option<&'a Expr>,
    arms: &'a [CaseArm],
    otherwise: Option<&'a Expr>,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    match taken(base, arms, otherwise, row, cx)? {
        Some(result) => eval(result, row, cx),
        None => Ok(Datum::Same(ValueRef::Null)),
    }
}

/// The result that a CASE takes.
#[inline]
pub fn taken<'a, 'p: 'a>(
    base: Option<&'a Expr>,
    arms: &'a [CaseArm],
    otherwise: Option<&'a Expr>,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<&'a Expr>> {
    let base = base.map(|b| eval(b, row, cx)).transpose()?;
    for arm in arms {
        let hit = match (&base, arm.comparison) {
            (Some(base), Some(how)) => arm_matches(base.as_ref(), how, &arm.when, row, cx)?,
            _ => condition(&arm.when, row, cx)? == Some(true),
        };
        if hit {
            return Ok(Some(&arm.then));
        }
    }
    Ok(otherwise)
}

fn arm_matches<'a, 'p: 'a>(
    base: ValueRef<'_>,
    how: Comparison,
    when: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<bool> {
    let when = eval(when, row, cx)?;
    Ok(compare::test(
        crate::bind::expr::CompareOp::Equal,
        how,
        base,
        when.as_ref(),
    ) == Some(true))
}

fn like<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<bool>> {
    let ExprKind::Like {
        kind,
        expr,
        pattern,
        escape,
        negated,
    } = &expr.kind
    else {
        return Ok(None);
    };
    let text = eval(expr, row, cx)?;
    let pattern = eval(pattern, row, cx)?;
    let pattern = pattern.as_ref().to_text();
    if pattern
        .as_ref()
        .is_some_and(|pattern| pattern.len() > value::PATTERN_LENGTH_MAX)
    {
        return Err(Error::sql("LIKE or GLOB pattern too complex"));
    }
    let escape = match escape {
        None => None,
        Some(e) => match escape_character(eval(e, row, cx)?.as_ref())? {
            None => return Ok(None),
            some => some,
        },
    };
    let (Some(pattern), Some(text)) = (pattern, text.as_ref().to_text()) else {
        return Ok(None);
    };
    let matches = match kind {
        LikeKind::Like => value::like(&pattern, &text, escape),
        LikeKind::LikeExact => value::like_exact(&pattern, &text, escape),
        LikeKind::Glob => value::glob(&pattern, &text),
    };
    Ok(Some(matches != *negated))
}

/// The character of an ESCAPE clause; None for NULL.
pub fn escape_character(value: ValueRef<'_>) -> Result<Option<u32>> {
    let Some(text) = value.to_text() else {
        return Ok(None);
    };
    match utf8::next(&text) {
        Some((c, width)) if width == text.len() => Ok(Some(c)),
        _ => Err(Error::sql("ESCAPE expression must be a single character")),
    }
}

/// Arguments that fit without an allocation.
const ARGUMENTS_INLINE: usize = 4;

fn function<'a, 'p: 'a>(
    expr: &'a Expr,
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    let ExprKind::Function {
        function,
        args,
        collation,
    } = &expr.kind
    else {
        return Ok(Datum::Same(ValueRef::Null));
    };
    match function.form {
        Form::Eager | Form::NullIf if function.takes_json && may_be_json(args) => {
            return super::json::call(function, args, *collation, row, cx);
        }
        Form::Eager | Form::NullIf => {}
        Form::Coalesce => return coalesce(args, row, cx),
        Form::If => return choose(args, row, cx),
        Form::First => {
            return args
                .first()
                .map_or(Ok(Datum::Same(ValueRef::Null)), |e| eval(e, row, cx));
        }
    }
    if args.len() <= ARGUMENTS_INLINE {
        let mut values = [const { Datum::Same(ValueRef::Null) }; ARGUMENTS_INLINE];
        for (slot, arg) in values.iter_mut().zip(args) {
            *slot = eval(arg, row, cx)?;
        }
        let refs = values.each_ref().map(Datum::as_ref);
        without_json(function, cx);
        return call(
            function,
            refs.get(..args.len()).unwrap_or(&refs),
            *collation,
            cx,
        );
    }
    let values = args
        .iter()
        .map(|arg| eval(arg, row, cx))
        .collect::<Result<Vec<_>>>()?;
    let refs: Vec<ValueRef<'_>> = values.iter().map(Datum::as_ref).collect();
    without_json(function, cx);
    call(function, &refs, *collation, cx)
}

/// Whether one of a call's arguments may be a text of JSON.
#[inline]
pub fn may_be_json(args: &[Expr]) -> bool {
    args.iter().any(|arg| arg.props.json != JsonText::Never)
}

/// None of the arguments is a text of JSON to a function that asks.
#[inline]
pub fn without_json(function: &ScalarFunction, cx: &mut Context<'_, '_>) {
    if function.takes_json {
        cx.run.functions.json_arguments.clear();
    }
}

/// Calls a function with all that it is called with.
pub fn call<'a>(
    function: &ScalarFunction,
    args: &[ValueRef<'_>],
    collation: Collation,
    cx: &mut Context<'_, '_>,
) -> Result<Datum<'a>> {
    cx.run.functions.collation = collation;
    Ok(Datum::Changed(function.call(&mut cx.run.functions, args)?))
}

fn coalesce<'a, 'p: 'a>(
    args: &'a [Expr],
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    for arg in args {
        let value = eval(arg, row, cx)?;
        if !value.as_ref().is_null() {
            return Ok(value);
        }
    }
    Ok(Datum::Same(ValueRef::Null))
}

fn choose<'a, 'p: 'a>(
    args: &'a [Expr],
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Datum<'a>> {
    match chosen(args, row, cx)? {
        Some(result) => eval(result, row, cx),
        None => Ok(Datum::Same(ValueRef::Null)),
    }
}

/// The result that `iif()` takes.
pub fn chosen<'a, 'p: 'a>(
    args: &'a [Expr],
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<&'a Expr>> {
    for pair in args.chunks(2) {
        match pair {
            [test, then] if condition(test, row, cx)? == Some(true) => return Ok(Some(then)),
            [otherwise] => return Ok(Some(otherwise)),
            _ => {}
        }
    }
    Ok(None)
}
