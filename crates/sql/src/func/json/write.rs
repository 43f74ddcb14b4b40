//! JSONB and SQL values to text.
//!
//! What is written is RFC 8259: strings and numbers as they are in the JSONB, but for what
//! JSON5 alone knows. Containers that have begun lie on a stack of their own.

use super::jsonb::{DEPTH_MAX, Element, element, is_jsonb, kind};
use super::text::{plain_len, push_control, push_string, separator_len};
use super::{blob_value, malformed, too_deep};
use crate::error::Result;
use crate::value::{LENGTH_MAX, ValueRef, render_integer, render_real};

/// A container that has begun.
struct Open {
    end: usize,
    is_object: bool,
    /// Elements written so far.
    elements: usize,
}

/// How containers are laid out.
#[derive(Debug, Clone, Copy)]
pub enum Layout<'a> {
    /// Without any space.
    Dense,
    /// An element a line, each level indented by so much.
    Lines(&'a [u8]),
}

/// Appends the element at `at` as text.
///
/// # Errors
/// `malformed JSON`, `JSON nested too deep`.
pub fn push_text(blob: &[u8], at: usize, layout: Layout<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut open: Vec<Open> = Vec::new();
    let mut at = at;
    loop {
        let found = element(blob, at).ok_or_else(malformed)?;
        // What a word has for a payload is the next element.
        at = match found.kind {
            kind::NULL..=kind::FALSE => at + 1,
            _ => found.end,
        };
        if !found.is_container() {
            push_scalar(blob, found, out)?;
        } else {
            let is_object = found.kind == kind::OBJECT;
            out.push(if is_object { b'{' } else { b'[' });
            let depth = open.len() + 1;
            let is_empty = found.start == found.end;
            if match layout {
                Layout::Dense => depth > DEPTH_MAX,
                Layout::Lines(_) => depth >= DEPTH_MAX && !is_empty,
            } {
                return Err(too_deep());
            }
            if is_empty {
                out.push(if is_object { b'}' } else { b']' });
            } else {
                open.push(Open {
                    end: found.end,
                    is_object,
                    elements: 0,
                });
                at = found.start;
                push_line(layout, depth, out);
                continue;
            }
        }
        if out.len() > LENGTH_MAX {
            return Err(crate::error::Error::too_big());
        }
        if !push_separator(&mut open, at, layout, out)? {
            return Ok(());
        }
    }
}

/// Ends the containers that end at `at`, and writes what parts the next element from the
/// one before. False: there is none.
fn push_separator(
    open: &mut Vec<Open>,
    at: usize,
    layout: Layout<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    while let Some(container) = open.last_mut() {
        container.elements += 1;
        let is_value_due = container.is_object && !container.elements.is_multiple_of(2);
        if at < container.end {
            match (is_value_due, layout) {
                (true, Layout::Dense) => out.push(b':'),
                (true, Layout::Lines(_)) => out.extend_from_slice(b": "),
                (false, _) => {
                    out.push(b',');
                    push_line(layout, open.len(), out);
                }
            }
            return Ok(true);
        }
        if at > container.end || is_value_due {
            return Err(malformed());
        }
        let close = if container.is_object { b'}' } else { b']' };
        open.pop();
        push_line(layout, open.len(), out);
        out.push(close);
    }
    Ok(false)
}

fn push_line(layout: Layout<'_>, depth: usize, out: &mut Vec<u8>) {
    if let Layout::Lines(indent) = layout {
        out.push(b'\n');
        for _ in 0..depth {
            out.extend_from_slice(indent);
        }
    }
}

fn push_scalar(blob: &[u8], of: Element, out: &mut Vec<u8>) -> Result<()> {
    let payload = of.payload(blob);
    match of.kind {
        kind::NULL => out.extend_from_slice(b"null"),
        kind::TRUE => out.extend_from_slice(b"true"),
        kind::FALSE => out.extend_from_slice(b"false"),
        kind::TEXT | kind::TEXTJ => {
            out.reserve(payload.len() + 2);
            out.push(b'"');
            out.extend_from_slice(payload);
            out.push(b'"');
        }
        kind::TEXT5 => return push_text5(payload, out),
        kind::TEXTRAW => push_string(payload, out),
        kind::INT..=kind::FLOAT5 if payload.is_empty() => return Err(malformed()),
        kind::INT | kind::FLOAT => out.extend_from_slice(payload),
        kind::INT5 => return push_hexadecimal(payload, out),
        kind::FLOAT5 => return push_float5(payload, out),
        _ => return Err(malformed()),
    }
    Ok(())
}

/// A hexadecimal integer in decimal; one beyond 64 bits is beyond all numbers.
fn push_hexadecimal(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (sign, digits) = match payload {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if sign {
        out.push(b'-');
    }
    let mut number = Some(0u64);
    for byte in digits.get(2..).unwrap_or(&[]) {
        let digit = char::from(*byte).to_digit(16).ok_or_else(malformed)?;
        number = number
            .filter(|n| n >> 60 == 0)
            .map(|n| n << 4 | u64::from(digit));
    }
    match number {
        Some(number) => out.extend_from_slice(number.to_string().as_bytes()),
        None => out.extend_from_slice(b"9.0e999"),
    }
    Ok(())
}

/// A number with the digits before and behind its point that JSON5 lets out.
fn push_float5(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let digits = match payload {
        [b'-'] => return Err(malformed()),
        [b'-', rest @ ..] => {
            out.push(b'-');
            rest
        }
        rest => rest,
    };
    if digits.first() == Some(&b'.') {
        out.push(b'0');
    }
    for (i, byte) in digits.iter().enumerate() {
        out.push(*byte);
        if *byte == b'.' && !digits.get(i + 1).is_some_and(u8::is_ascii_digit) {
            out.push(b'0');
        }
    }
    Ok(())
}

/// A string with the escapes of JSON5 replaced by those of RFC 8259.
fn push_text5(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.push(b'"');
    let mut rest = payload;
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        let len = match special {
            [] => break,
            [b'\'', ..] => {
                out.push(b'\'');
                1
            }
            [b'"', ..] => {
                out.extend_from_slice(b"\\\"");
                1
            }
            [b'\\', escape @ ..] => 1 + push_escape(escape, out)?,
            [control, ..] => {
                push_control(*control, out);
                1
            }
        };
        rest = special.get(len..).unwrap_or(&[]);
    }
    out.push(b'"');
    Ok(())
}

/// What is behind a backslash, and how long it is.
fn push_escape(escape: &[u8], out: &mut Vec<u8>) -> Result<usize> {
    Ok(match escape {
        [] => return Err(malformed()),
        [b'\'', ..] => {
            out.push(b'\'');
            1
        }
        [b'v', ..] => {
            out.extend_from_slice(b"\\u000b");
            1
        }
        [b'0', ..] => {
            out.extend_from_slice(b"\\u0000");
            1
        }
        [b'x', high, low, ..] => {
            out.extend_from_slice(b"\\u00");
            out.extend([*high, *low]);
            3
        }
        [b'x', ..] => return Err(malformed()),
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        [0xe2, ..] => match separator_len(escape) {
            0 => return Err(malformed()),
            len => len,
        },
        [other, ..] => {
            out.extend([b'\\', *other]);
            1
        }
    })
}

/// Appends a value as JSON; `is_json`: it is a text of JSON.
///
/// # Errors
/// `JSON cannot hold BLOB values`, but for JSONB.
pub fn push_value(value: ValueRef<'_>, is_json: bool, out: &mut Vec<u8>) -> Result<()> {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Integer(i) => render_integer(i, out),
        ValueRef::Real(r) if r.is_infinite() => {
            let text: &[u8] = if r < 0.0 { b"-9.0e+999" } else { b"9.0e+999" };
            out.extend_from_slice(text);
        }
        ValueRef::Real(r) => render_real(r, out),
        ValueRef::Text(text) if is_json => out.extend_from_slice(text),
        ValueRef::Text(text) => push_string(text, out),
        ValueRef::Blob(blob) if is_jsonb(blob) => push_text(blob, 0, Layout::Dense, out)?,
        ValueRef::Blob(_) => return Err(blob_value()),
    }
    Ok(())
}
