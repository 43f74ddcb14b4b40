//! JSONB to SQL values and back.

use super::jsonb::{self, element, is_jsonb, kind};
use super::text::unescape;
use super::write::{Layout, push_text};
use super::{blob_value, malformed, parse};
use crate::error::Result;
use crate::value::{
    Applied, IntegerState, Numeric, Value, ValueRef, integer_prefix, numeric_whole, render_integer,
    render_real,
};

/// The element at `at` as a value: text, number or NULL, an array or object as a text of
/// JSON, or with `as_blob` as JSONB.
///
/// # Errors
/// `malformed JSON`.
pub fn sql_value(blob: &[u8], at: usize, as_blob: bool) -> Result<Value> {
    Ok(match sql_value_in(blob, at, as_blob)? {
        Applied::Same(value) => value.to_value(),
        Applied::Changed(value) => value,
    })
}

/// The same, borrowed where it stands there as it is.
///
/// # Errors
/// `malformed JSON`.
pub fn sql_value_in(blob: &[u8], at: usize, as_blob: bool) -> Result<Applied<'_>> {
    let of = element(blob, at).ok_or_else(malformed)?;
    let payload = of.payload(blob);
    let borrowed = match of.kind {
        kind::NULL..=kind::FALSE if !payload.is_empty() => return Err(malformed()),
        kind::NULL => Some(ValueRef::Null),
        kind::TRUE => Some(ValueRef::Integer(1)),
        kind::FALSE => Some(ValueRef::Integer(0)),
        kind::TEXT | kind::TEXTRAW => Some(ValueRef::Text(payload)),
        kind::ARRAY | kind::OBJECT if as_blob => {
            Some(ValueRef::Blob(blob.get(at..of.end).unwrap_or(&[])))
        }
        _ => None,
    };
    if let Some(value) = borrowed {
        return Ok(Applied::Same(value));
    }
    Ok(Applied::Changed(match of.kind {
        kind::INT | kind::INT5 => integer(payload).ok_or_else(malformed)?,
        kind::FLOAT | kind::FLOAT5 => real(payload).ok_or_else(malformed)?,
        kind::TEXTJ | kind::TEXT5 => {
            let mut text = Vec::with_capacity(payload.len());
            unescape(payload, &mut text);
            Value::Text(text)
        }
        kind::ARRAY | kind::OBJECT => {
            let mut text = Vec::with_capacity(payload.len() + 2);
            push_text(blob, at, Layout::Dense, &mut text)?;
            Value::Text(text)
        }
        _ => return Err(malformed()),
    }))
}

fn integer(payload: &[u8]) -> Option<Value> {
    let (is_negative, digits) = match payload {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if let [b'0', b'x' | b'X', hex @ ..] = digits {
        let zeros = hex.iter().take_while(|b| **b == b'0').count();
        let hex = std::str::from_utf8(hex.get(zeros..)?).ok()?;
        let number = match hex {
            "" => 0,
            hex => u64::from_str_radix(hex, 16).ok()?,
        };
        return Some(match i64::try_from(number) {
            Ok(i) => Value::Integer(if is_negative { -i } else { i }),
            Err(_) => Value::real(if is_negative {
                -(number as f64)
            } else {
                number as f64
            }),
        });
    }
    let found = integer_prefix(payload);
    match found.state {
        IntegerState::Whole => Some(Value::Integer(found.value)),
        IntegerState::Overflow => real(payload),
        _ => None,
    }
}

fn real(payload: &[u8]) -> Option<Value> {
    Some(match numeric_whole(payload)? {
        Numeric::Integer(i) => Value::real(i as f64),
        Numeric::Real(r) => Value::real(r),
    })
}

/// A value as an element; `is_json`: it is a text of JSON.
///
/// # Errors
/// `JSON cannot hold BLOB values`, but for JSONB; `malformed JSON`.
pub fn element_of(value: ValueRef<'_>, is_json: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut digits = Vec::new();
    match value {
        ValueRef::Null => out.push(kind::NULL),
        ValueRef::Integer(i) => {
            render_integer(i, &mut digits);
            jsonb::push(&mut out, kind::INT, &digits);
        }
        ValueRef::Real(r) if r.is_infinite() => {
            let text: &[u8] = if r < 0.0 { b"-9e999" } else { b"9e999" };
            jsonb::push(&mut out, kind::FLOAT, text);
        }
        ValueRef::Real(r) => {
            render_real(r, &mut digits);
            jsonb::push(&mut out, kind::FLOAT, &digits);
        }
        ValueRef::Text(text) if is_json => {
            parse::parse(text, &mut out).map_err(|_| malformed())?;
        }
        ValueRef::Text(text) => jsonb::push(&mut out, kind::TEXTRAW, text),
        ValueRef::Blob(blob) if is_jsonb(blob) => out.extend_from_slice(blob),
        ValueRef::Blob(_) => return Err(blob_value()),
    }
    Ok(out)
}
