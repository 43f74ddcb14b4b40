//! Functions of any value: conditions, types, blobs, the session.

use std::cmp::Ordering;

use super::registry::{fallible, plain};
use super::{
    Context, Form, GivesJson, SQLITE_VERSION, ScalarCall, ScalarFunction, Volatility, argument,
};
use crate::error::{Error, Result};
use crate::value::{LENGTH_MAX, Value, ValueRef, append_hex, compare};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        form: Form::Coalesce,
        gives_json: GivesJson::Passes,
        ..plain("coalesce", 2, usize::MAX, coalesce)
    },
    ScalarFunction {
        form: Form::Coalesce,
        gives_json: GivesJson::Passes,
        ..plain("ifnull", 2, 2, coalesce)
    },
    ScalarFunction {
        form: Form::If,
        gives_json: GivesJson::Passes,
        ..plain("iif", 2, usize::MAX, iif)
    },
    ScalarFunction {
        form: Form::If,
        gives_json: GivesJson::Passes,
        ..plain("if", 2, usize::MAX, iif)
    },
    ScalarFunction {
        form: Form::First,
        gives_json: GivesJson::Passes,
        ..plain("likely", 1, 1, first)
    },
    ScalarFunction {
        form: Form::First,
        gives_json: GivesJson::Passes,
        ..plain("unlikely", 1, 1, first)
    },
    ScalarFunction {
        form: Form::First,
        gives_json: GivesJson::Passes,
        ..plain("likelihood", 2, 2, first)
    },
    ScalarFunction {
        form: Form::NullIf,
        ..chooses("nullif", 2, nullif)
    },
    chooses("min", usize::MAX, |c, a| Ok(extreme(c, a, false))),
    chooses("max", usize::MAX, |c, a| Ok(extreme(c, a, true))),
    plain("typeof", 1, 1, |_, a| {
        Ok(Value::from(argument(a, 0).kind().name()))
    }),
    ScalarFunction {
        takes_json: true,
        ..plain("subtype", 1, 1, |c, _| {
            Ok(Value::Integer(if c.takes_json(0) {
                JSON_SUBTYPE
            } else {
                0
            }))
        })
    },
    plain("quote", 1, 1, quote),
    plain("hex", 1, 1, hex),
    plain("unhex", 1, 2, unhex),
    fallible("zeroblob", 1, 1, zeroblob),
    stable(plain("sqlite_version", 0, 0, |_, _| {
        Ok(Value::from(SQLITE_VERSION))
    })),
    volatile(plain("random", 0, 0, |c, _| {
        Ok(Value::Integer(c.random() as i64))
    })),
    volatile(fallible("randomblob", 1, 1, randomblob)),
    stable(plain("changes", 0, 0, |c, _| Ok(Value::Integer(c.changes)))),
    stable(plain("total_changes", 0, 0, |c, _| {
        Ok(Value::Integer(c.total_changes))
    })),
    volatile(plain("last_insert_rowid", 0, 0, |c, _| {
        Ok(Value::Integer(c.last_insert_rowid))
    })),
];

/// The subtype of JSON's functions' results.
const JSON_SUBTYPE: i64 = 74;

/// Two arguments at least, one of which is the result, a text of JSON if that is one.
const fn chooses(name: &'static str, most: usize, call: ScalarCall) -> ScalarFunction {
    ScalarFunction {
        takes_json: true,
        gives_json: GivesJson::Passes,
        ..plain(name, 2, most, call)
    }
}

const fn stable(f: ScalarFunction) -> ScalarFunction {
    ScalarFunction {
        volatility: Volatility::Stable,
        ..f
    }
}

const fn volatile(f: ScalarFunction) -> ScalarFunction {
    ScalarFunction {
        volatility: Volatility::Volatile,
        ..f
    }
}

fn coalesce(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(arguments
        .iter()
        .find(|v| !v.is_null())
        .map_or(Value::Null, |v| v.to_value()))
}

fn iif(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    for pair in arguments.chunks(2) {
        match pair {
            [condition, result] if condition.truth() == Some(true) => return Ok(result.to_value()),
            [otherwise] => return Ok(otherwise.to_value()),
            _ => {}
        }
    }
    Ok(Value::Null)
}

fn first(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(argument(arguments, 0).to_value())
}

fn nullif(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (argument(arguments, 0), argument(arguments, 1));
    Ok(if compare(a, b, context.collation) == Ordering::Equal {
        Value::Null
    } else {
        context.gave_json = context.takes_json(0);
        a.to_value()
    })
}

/// Among equals `min` takes the last and `max` the first, as SQLite does.
fn extreme(context: &mut Context, arguments: &[ValueRef<'_>], greatest: bool) -> Value {
    let (mut best, mut place) = (argument(arguments, 0), 0);
    for (i, &v) in arguments.iter().enumerate() {
        if v.is_null() {
            return Value::Null;
        }
        let order = compare(best, v, context.collation);
        if if greatest {
            order == Ordering::Less
        } else {
            order != Ordering::Less
        } {
            (best, place) = (v, i);
        }
    }
    context.gave_json = context.takes_json(place);
    best.to_value()
}

fn quote(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut out = Vec::new();
    crate::value::quote(argument(arguments, 0), &mut out);
    Ok(Value::Text(out))
}

fn hex(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut out = Vec::new();
    if let Some(bytes) = argument(arguments, 0).to_text() {
        append_hex(&bytes, &mut out);
    }
    Ok(Value::Text(out))
}

/// Characters of the second argument may stand between, not within, the pairs
/// of digits; anything else makes NULL.
fn unhex(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(text) = argument(arguments, 0).to_text() else {
        return Ok(Value::Null);
    };
    let ignored = match arguments.get(1) {
        None => Vec::new(),
        Some(v) => match v.to_text() {
            Some(t) => crate::value::utf8::characters(&t).collect(),
            None => return Ok(Value::Null),
        },
    };
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut rest = text.split(|b| *b == 0).next().unwrap_or(&[]);
    while let Some((c, len)) = crate::value::utf8::next(rest) {
        let high = char::from_u32(c).and_then(|c| c.to_digit(16));
        rest = rest.get(len..).unwrap_or(&[]);
        let Some(high) = high else {
            if ignored.contains(&c) {
                continue;
            }
            return Ok(Value::Null);
        };
        let low = rest.first().and_then(|b| char::from(*b).to_digit(16));
        let Some(low) = low else {
            return Ok(Value::Null);
        };
        rest = rest.get(1..).unwrap_or(&[]);
        out.push((high << 4 | low) as u8);
    }
    Ok(Value::Blob(out))
}

/// A length within the limit.
fn checked_length(n: i64) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|n| *n <= LENGTH_MAX)
        .ok_or_else(Error::too_big)
}

fn zeroblob(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(Value::Blob(vec![
        0;
        checked_length(
            argument(arguments, 0).to_integer().max(0)
        )?
    ]))
}

fn randomblob(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let len = checked_length(argument(arguments, 0).to_integer().max(1))?;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        out.extend_from_slice(&context.random().to_le_bytes());
    }
    out.truncate(len);
    Ok(Value::Blob(out))
}
