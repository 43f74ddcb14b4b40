//! Arithmetic, bit and text operators on values of any kind.
//!
//! NULL makes NULL. Text and blobs count by their numeric prefix. Integers
//! that overflow become reals; a result that is not a number is NULL, and so
//! are division and remainder by zero.

use super::number::{Numeric, numeric_prefix};
use super::{Value, ValueRef};

/// None for NULL.
#[inline]
fn numeric(v: ValueRef<'_>) -> Option<Numeric> {
    match v {
        ValueRef::Null => None,
        ValueRef::Integer(i) => Some(Numeric::Integer(i)),
        ValueRef::Real(r) => Some(Numeric::Real(r)),
        ValueRef::Text(b) | ValueRef::Blob(b) => Some(numeric_prefix(b)),
    }
}

#[inline]
fn arithmetic(
    a: ValueRef<'_>,
    b: ValueRef<'_>,
    integers: impl Fn(i64, i64) -> Option<i64>,
    reals: impl Fn(f64, f64) -> f64,
) -> Value {
    let (Some(x), Some(y)) = (numeric(a), numeric(b)) else {
        return Value::Null;
    };
    if let (Numeric::Integer(i), Numeric::Integer(j)) = (x, y)
        && let Some(k) = integers(i, j)
    {
        return Value::Integer(k);
    }
    // From the operands themselves: the text '-0' is the integer 0 and the real -0.0.
    Value::real(reals(a.to_real(), b.to_real()))
}

/// `a + b`
#[inline]
pub fn add(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    arithmetic(a, b, i64::checked_add, |x, y| x + y)
}

/// `a - b`
#[inline]
pub fn subtract(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    arithmetic(a, b, i64::checked_sub, |x, y| x - y)
}

/// `a * b`
#[inline]
pub fn multiply(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    arithmetic(a, b, i64::checked_mul, |x, y| x * y)
}

/// `a / b`: integers divide to an integer, truncated.
#[inline]
pub fn divide(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    match numeric(b) {
        Some(Numeric::Integer(0)) => Value::Null,
        Some(Numeric::Real(0.0)) => Value::Null,
        _ => arithmetic(a, b, i64::checked_div, |x, y| x / y),
    }
}

/// `a % b`: computed on integers; the result is real where an operand is.
pub fn remainder(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    let (Some(x), Some(y)) = (numeric(a), numeric(b)) else {
        return Value::Null;
    };
    match (x, y) {
        (Numeric::Integer(_), Numeric::Integer(0)) => Value::Null,
        (Numeric::Integer(i), Numeric::Integer(j)) => Value::Integer(i.wrapping_rem(j)),
        _ => match b.to_integer() {
            0 => Value::Null,
            j => Value::Real(a.to_integer().wrapping_rem(j) as f64),
        },
    }
}

/// `-a`, which SQLite computes as `0 - a`.
#[inline]
pub fn negate(a: ValueRef<'_>) -> Value {
    subtract(ValueRef::Integer(0), a)
}

#[inline]
fn bits(a: ValueRef<'_>, b: ValueRef<'_>, op: impl Fn(i64, i64) -> i64) -> Value {
    if a.is_null() || b.is_null() {
        Value::Null
    } else {
        Value::Integer(op(a.to_integer(), b.to_integer()))
    }
}

/// `a & b`
pub fn bit_and(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    bits(a, b, |x, y| x & y)
}

/// `a | b`
pub fn bit_or(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    bits(a, b, |x, y| x | y)
}

/// `~a`
pub fn bit_not(a: ValueRef<'_>) -> Value {
    if a.is_null() {
        Value::Null
    } else {
        Value::Integer(!a.to_integer())
    }
}

/// `a << b`; a negative count shifts the other way.
pub fn shift_left(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    bits(a, b, |x, n| {
        if n < 0 {
            right(x, n.unsigned_abs())
        } else {
            left(x, n.unsigned_abs())
        }
    })
}

/// `a >> b`, keeping the sign; a negative count shifts the other way.
pub fn shift_right(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    bits(a, b, |x, n| {
        if n < 0 {
            left(x, n.unsigned_abs())
        } else {
            right(x, n.unsigned_abs())
        }
    })
}

fn left(x: i64, n: u64) -> i64 {
    if n > 63 { 0 } else { x << n }
}

fn right(x: i64, n: u64) -> i64 {
    x >> n.min(63)
}

/// `a || b`: always text.
pub fn concat(a: ValueRef<'_>, b: ValueRef<'_>) -> Value {
    if a.is_null() || b.is_null() {
        return Value::Null;
    }
    let known = |v: ValueRef<'_>| v.bytes().map_or(24, <[u8]>::len);
    let mut out = Vec::with_capacity(known(a) + known(b));
    a.append_text(&mut out);
    b.append_text(&mut out);
    Value::Text(out)
}
