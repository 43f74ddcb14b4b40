//! Functions of numbers.

use super::registry::{fallible, plain};
use super::{Context, ScalarFunction, argument};
use crate::error::{Error, Result};
use crate::value::{Decimal, Numeric, Value, ValueRef, decimal_to_real, numeric_whole};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    fallible("abs", 1, 1, abs),
    plain("round", 1, 2, round),
    plain("sign", 1, 1, sign),
    plain("ceil", 1, 1, |_, a| Ok(rounded(a, f64::ceil))),
    plain("ceiling", 1, 1, |_, a| Ok(rounded(a, f64::ceil))),
    plain("floor", 1, 1, |_, a| Ok(rounded(a, f64::floor))),
    plain("trunc", 1, 1, |_, a| Ok(rounded(a, f64::trunc))),
    plain("ln", 1, 1, |_, a| Ok(logarithm(a, f64::ln))),
    plain("log10", 1, 1, |_, a| Ok(logarithm(a, f64::log10))),
    plain("log2", 1, 1, |_, a| Ok(logarithm(a, f64::log2))),
    plain("log", 1, 2, log),
    plain("exp", 1, 1, |_, a| Ok(of_one(a, f64::exp))),
    plain("sqrt", 1, 1, |_, a| Ok(of_one(a, f64::sqrt))),
    plain("sin", 1, 1, |_, a| Ok(of_one(a, f64::sin))),
    plain("cos", 1, 1, |_, a| Ok(of_one(a, f64::cos))),
    plain("tan", 1, 1, |_, a| Ok(of_one(a, f64::tan))),
    plain("asin", 1, 1, |_, a| Ok(of_one(a, f64::asin))),
    plain("acos", 1, 1, |_, a| Ok(of_one(a, f64::acos))),
    plain("atan", 1, 1, |_, a| Ok(of_one(a, f64::atan))),
    plain("sinh", 1, 1, |_, a| Ok(of_one(a, f64::sinh))),
    plain("cosh", 1, 1, |_, a| Ok(of_one(a, f64::cosh))),
    plain("tanh", 1, 1, |_, a| Ok(of_one(a, f64::tanh))),
    plain("asinh", 1, 1, |_, a| Ok(of_one(a, f64::asinh))),
    plain("acosh", 1, 1, |_, a| Ok(of_one(a, f64::acosh))),
    plain("atanh", 1, 1, |_, a| Ok(of_one(a, f64::atanh))),
    plain("radians", 1, 1, |_, a| Ok(of_one(a, f64::to_radians))),
    plain("degrees", 1, 1, |_, a| Ok(of_one(a, f64::to_degrees))),
    plain("pow", 2, 2, |_, a| Ok(of_two(a, f64::powf))),
    plain("power", 2, 2, |_, a| Ok(of_two(a, f64::powf))),
    plain("mod", 2, 2, |_, a| Ok(of_two(a, |x, y| x % y))),
    plain("atan2", 2, 2, |_, a| Ok(of_two(a, f64::atan2))),
    plain("pi", 0, 0, |_, _| Ok(Value::Real(std::f64::consts::PI))),
];

/// A number, or text that is one.
fn number(value: ValueRef<'_>) -> Option<Numeric> {
    match value {
        ValueRef::Integer(i) => Some(Numeric::Integer(i)),
        ValueRef::Real(r) => Some(Numeric::Real(r)),
        ValueRef::Text(text) => numeric_whole(text),
        _ => None,
    }
}

fn real(value: ValueRef<'_>) -> Option<f64> {
    number(value).map(|n| match n {
        Numeric::Integer(i) => i as f64,
        Numeric::Real(r) => r,
    })
}

fn of_one(arguments: &[ValueRef<'_>], f: impl Fn(f64) -> f64) -> Value {
    real(argument(arguments, 0)).map_or(Value::Null, |x| Value::real(f(x)))
}

fn of_two(arguments: &[ValueRef<'_>], f: impl Fn(f64, f64) -> f64) -> Value {
    match (real(argument(arguments, 0)), real(argument(arguments, 1))) {
        (Some(x), Some(y)) => Value::real(f(x, y)),
        _ => Value::Null,
    }
}

fn rounded(arguments: &[ValueRef<'_>], f: impl Fn(f64) -> f64) -> Value {
    match number(argument(arguments, 0)) {
        Some(Numeric::Integer(i)) => Value::Integer(i),
        Some(Numeric::Real(r)) => Value::real(f(r)),
        None => Value::Null,
    }
}

fn logarithm(arguments: &[ValueRef<'_>], f: impl Fn(f64) -> f64) -> Value {
    match real(argument(arguments, 0)) {
        Some(x) if x > 0.0 => Value::real(f(x)),
        _ => Value::Null,
    }
}

/// `log(x)` to base 10, or `log(base, x)`.
fn log(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    if arguments.len() < 2 {
        return Ok(logarithm(arguments, f64::log10));
    }
    Ok(
        match (real(argument(arguments, 0)), real(argument(arguments, 1))) {
            (Some(base), Some(x)) if base > 0.0 && x > 0.0 && base.ln() > 0.0 => {
                Value::real(x.ln() / base.ln())
            }
            _ => Value::Null,
        },
    )
}

fn abs(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    match argument(arguments, 0) {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(i) => i
            .checked_abs()
            .map(Value::Integer)
            .ok_or_else(Error::integer_overflow),
        other => {
            let r = other.to_real();
            // Not abs(): the sign of zero stays.
            Ok(Value::Real(if r < 0.0 { -r } else { r }))
        }
    }
}

fn sign(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(real(argument(arguments, 0)).map_or(Value::Null, |x| {
        Value::Integer(if x < 0.0 { -1 } else { i64::from(x > 0.0) })
    }))
}

/// Half away from zero, on the decimal digits SQLite would show.
fn round(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    const NO_FRACTION: f64 = 4_503_599_627_370_496.0;
    if arguments.iter().any(|v| v.is_null()) {
        return Ok(Value::Null);
    }
    let places = arguments.get(1).map_or(0, |v| v.to_integer().clamp(0, 30));
    let r = argument(arguments, 0).to_real();
    if !(-NO_FRACTION..=NO_FRACTION).contains(&r) {
        return Ok(Value::real(r));
    }
    if places == 0 {
        return Ok(Value::Real(
            (r + if r < 0.0 { -0.5 } else { 0.5 }) as i64 as f64,
        ));
    }
    let decimal = Decimal::new(r, -(places as i32), 20);
    let digits = if decimal.point + places as i32 > 0 {
        decimal.digits()
    } else {
        b"0"
    };
    let mantissa = digits.iter().fold(0u64, |n, d| {
        n.wrapping_mul(10).wrapping_add(u64::from(d - b'0'))
    });
    let magnitude = decimal_to_real(mantissa, decimal.point - digits.len() as i32);
    Ok(Value::Real(if decimal.negative {
        -magnitude
    } else {
        magnitude
    }))
}
