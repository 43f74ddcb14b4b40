//! Text functions. Positions and lengths count characters; text ends at a NUL
//! where SQLite's does.

use std::borrow::Cow;

use super::registry::{fallible, plain};
use super::{Context, ScalarFunction, argument};
use crate::error::{Error, Result};
use crate::row;
use crate::value::{LENGTH_MAX, PATTERN_LENGTH_MAX, Value, ValueRef, glob, like, utf8};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    plain("char", 0, usize::MAX, char),
    fallible("concat", 1, usize::MAX, concat),
    fallible("concat_ws", 2, usize::MAX, concat_ws),
    fallible("glob", 2, 2, |_, a| {
        glob_value(argument(a, 0), argument(a, 1))
    }),
    fallible("like", 2, 3, |_, a| {
        like_value(argument(a, 0), argument(a, 1), a.get(2).copied())
    }),
    plain("instr", 2, 2, instr),
    plain("length", 1, 1, length),
    plain("octet_length", 1, 1, octet_length),
    plain("lower", 1, 1, |_, a| {
        Ok(mapped(a, <[u8]>::make_ascii_lowercase))
    }),
    plain("upper", 1, 1, |_, a| {
        Ok(mapped(a, <[u8]>::make_ascii_uppercase))
    }),
    plain("ltrim", 1, 2, |_, a| Ok(trim(a, true, false))),
    plain("rtrim", 1, 2, |_, a| Ok(trim(a, false, true))),
    plain("trim", 1, 2, |_, a| Ok(trim(a, true, true))),
    fallible("replace", 3, 3, replace),
    plain("substr", 2, 3, substr),
    plain("substring", 2, 3, substr),
    plain("unicode", 1, 1, unicode),
    fallible("unistr", 1, 1, unistr),
    plain("unistr_quote", 1, 1, unistr_quote),
];

fn char(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut out = Vec::with_capacity(arguments.len());
    for v in arguments {
        let c = u32::try_from(v.to_integer())
            .ok()
            .filter(|c| *c <= 0x10_ffff)
            .unwrap_or(utf8::REPLACEMENT);
        utf8::push(c, &mut out);
    }
    Ok(Value::Text(out))
}

fn joined(values: &[ValueRef<'_>], separator: &[u8]) -> Result<Value> {
    let mut out = Vec::new();
    let mut any = false;
    for v in values.iter().filter(|v| !v.is_null()) {
        if any {
            out.extend_from_slice(separator);
        }
        any = true;
        v.append_text(&mut out);
        if out.len() > LENGTH_MAX {
            return Err(Error::too_big());
        }
    }
    Ok(Value::Text(out))
}

fn concat(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    joined(arguments, b"")
}

fn concat_ws(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    match argument(arguments, 0).to_text() {
        Some(separator) => joined(arguments.get(1..).unwrap_or(&[]), &separator),
        None => Ok(Value::Null),
    }
}

fn check_pattern(pattern: &[u8]) -> Result<()> {
    if pattern.len() > PATTERN_LENGTH_MAX {
        Err(Error::sql("LIKE or GLOB pattern too complex"))
    } else {
        Ok(())
    }
}

/// `text LIKE pattern [ESCAPE escape]` on values of any kind: 1, 0 or NULL.
///
/// # Errors
/// For a pattern over [`PATTERN_LENGTH_MAX`] bytes, or an escape that is not one
/// character.
pub fn like_value(
    pattern: ValueRef<'_>,
    text: ValueRef<'_>,
    escape: Option<ValueRef<'_>>,
) -> Result<Value> {
    if let Some(p) = pattern.to_text() {
        check_pattern(&p)?;
    }
    let escape = match escape.map(ValueRef::to_text) {
        None => None,
        Some(None) => return Ok(Value::Null),
        Some(Some(e)) => match utf8::next(utf8::until_nul(&e)) {
            Some((c, len)) if len == utf8::until_nul(&e).len() => Some(c),
            _ => return Err(Error::sql("ESCAPE expression must be a single character")),
        },
    };
    let (Some(pattern), Some(text)) = (pattern.to_text(), text.to_text()) else {
        return Ok(Value::Null);
    };
    Ok(Value::from(like(&pattern, &text, escape)))
}

/// `text GLOB pattern` on values of any kind: 1, 0 or NULL.
///
/// # Errors
/// For a pattern over [`PATTERN_LENGTH_MAX`] bytes.
pub fn glob_value(pattern: ValueRef<'_>, text: ValueRef<'_>) -> Result<Value> {
    if let Some(p) = pattern.to_text() {
        check_pattern(&p)?;
    }
    let (Some(pattern), Some(text)) = (pattern.to_text(), text.to_text()) else {
        return Ok(Value::Null);
    };
    Ok(Value::from(glob(&pattern, &text)))
}

/// The first place of `needle`, None where it is not there.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let Some(first) = needle.first() else {
        return Some(0);
    };
    let mut from = 0;
    loop {
        let at = from + haystack.get(from..)?.iter().position(|b| b == first)?;
        if haystack.get(at..)?.starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn instr(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (haystack, needle) = (argument(arguments, 0), argument(arguments, 1));
    let blobs = matches!((haystack, needle), (ValueRef::Blob(_), ValueRef::Blob(_)));
    let (Some(haystack), Some(needle)) = (haystack.to_text(), needle.to_text()) else {
        return Ok(Value::Null);
    };
    let place = find(&haystack, &needle).map_or(0, |at| {
        1 + if blobs {
            at
        } else {
            utf8::count(haystack.get(..at).unwrap_or(&[]))
        }
    });
    Ok(Value::Integer(place as i64))
}

fn length(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(row::length(argument(arguments, 0)).to_value())
}

fn octet_length(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(row::octets(argument(arguments, 0)).to_value())
}

fn mapped(arguments: &[ValueRef<'_>], map: fn(&mut [u8])) -> Value {
    match argument(arguments, 0).to_text() {
        None => Value::Null,
        Some(text) => {
            let mut text = text.into_owned();
            map(&mut text);
            Value::Text(text)
        }
    }
}

fn trim(arguments: &[ValueRef<'_>], left: bool, right: bool) -> Value {
    let Some(text) = argument(arguments, 0).to_text() else {
        return Value::Null;
    };
    let set = match arguments.get(1) {
        None => Cow::Borrowed(b" ".as_slice()),
        Some(v) => match v.to_text() {
            Some(set) => set,
            None => return Value::Null,
        },
    };
    let mut members = Vec::new();
    let mut rest = utf8::until_nul(&set);
    while !rest.is_empty() {
        let (member, tail) = rest
            .split_at_checked(utf8::width(rest))
            .unwrap_or((rest, &[]));
        members.push(member);
        rest = tail;
    }
    let mut text: &[u8] = &text;
    while left && let Some(member) = members.iter().find(|m| text.starts_with(m)) {
        text = text.get(member.len()..).unwrap_or(&[]);
    }
    while right && let Some(member) = members.iter().find(|m| text.ends_with(m)) {
        text = text.get(..text.len() - member.len()).unwrap_or(&[]);
    }
    Value::Text(text.to_vec())
}

fn replace(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (Some(text), Some(pattern)) = (
        argument(arguments, 0).to_text(),
        argument(arguments, 1).to_text(),
    ) else {
        return Ok(Value::Null);
    };
    if pattern.first().is_none_or(|b| *b == 0) {
        return Ok(Value::Text(text.into_owned()));
    }
    let Some(replacement) = argument(arguments, 2).to_text() else {
        return Ok(Value::Null);
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest: &[u8] = &text;
    while let Some(at) = find(rest, &pattern) {
        out.extend_from_slice(rest.get(..at).unwrap_or(&[]));
        out.extend_from_slice(&replacement);
        rest = rest.get(at + pattern.len()..).unwrap_or(&[]);
        if out.len() > LENGTH_MAX {
            return Err(Error::too_big());
        }
    }
    out.extend_from_slice(rest);
    if out.len() > LENGTH_MAX {
        Err(Error::too_big())
    } else {
        Ok(Value::Text(out))
    }
}

/// Start (from 1, negative from the end) and length (negative: to the left) to a
/// place and a count.
fn window(start: i64, count: Option<i64>, length: impl Fn() -> i64) -> (usize, usize) {
    let mut at = i128::from(start);
    let mut n = i128::from(count.unwrap_or(i64::MAX));
    let backwards = n < 0;
    n = n.abs();
    if at < 0 {
        at += i128::from(length());
        if at < 0 {
            n = (n + at).max(0);
            at = 0;
        }
    } else if at > 0 {
        at -= 1;
    } else if n > 0 {
        n -= 1;
    }
    if backwards {
        at -= n;
        if at < 0 {
            n += at;
            at = 0;
        }
    }
    (
        usize::try_from(at).unwrap_or(0),
        usize::try_from(n).unwrap_or(0),
    )
}

fn substr(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    if arguments.iter().any(|v| v.is_null()) {
        return Ok(Value::Null);
    }
    let start = argument(arguments, 1).to_integer();
    let count = arguments.get(2).map(|v| v.to_integer());
    if let ValueRef::Blob(bytes) = argument(arguments, 0) {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        let (at, n) = window(start, count, || bytes.len() as i64);
        let rest = bytes.get(at..).unwrap_or(&[]);
        return Ok(Value::Blob(rest.get(..n).unwrap_or(rest).to_vec()));
    }
    let Some(text) = argument(arguments, 0).to_text() else {
        return Ok(Value::Null);
    };
    let text = utf8::until_nul(&text);
    let (at, n) = window(start, count, || utf8::count(text) as i64);
    let rest = text.get(utf8::offset(text, at)..).unwrap_or(&[]);
    Ok(Value::Text(
        rest.get(..utf8::offset(rest, n)).unwrap_or(rest).to_vec(),
    ))
}

fn unicode(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let text = argument(arguments, 0).to_text();
    let first = text
        .as_deref()
        .and_then(utf8::next)
        .filter(|(c, _)| *c != 0);
    Ok(first.map_or(Value::Null, |(c, _)| Value::Integer(i64::from(c))))
}

/// Characters by their numbers: `\XXXX`, `\uXXXX`, `\+XXXXXX`, `\UXXXXXXXX`.
fn unistr(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(text) = argument(arguments, 0).to_text() else {
        return Ok(Value::Null);
    };
    let mut out = Vec::with_capacity(text.len());
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    let (mut rest, behind) = text.split_at(end);
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        let (before, escape) = rest.split_at(at);
        out.extend_from_slice(before);
        let (mark, digits) = match escape.get(1) {
            Some(b'\\') => {
                out.push(b'\\');
                rest = escape.get(2..).unwrap_or(&[]);
                continue;
            }
            Some(b'u') => (2, 4),
            Some(b'+') => (2, 6),
            Some(b'U') => (2, 8),
            _ => (1, 4),
        };
        let number = escape
            .get(mark..mark + digits)
            .filter(|number| number.iter().all(u8::is_ascii_hexdigit))
            .and_then(|number| std::str::from_utf8(number).ok())
            .and_then(|number| u32::from_str_radix(number, 16).ok())
            .ok_or_else(|| Error::sql("invalid Unicode escape"))?;
        utf8::push(number, &mut out);
        rest = escape.get(mark + digits..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(behind);
    Ok(Value::Text(out))
}

/// As `quote()`, with control characters by their numbers.
fn unistr_quote(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut out = Vec::new();
    match argument(arguments, 0) {
        ValueRef::Text(text) => quote_escaped(text, &mut out),
        other => crate::value::quote(other, &mut out),
    }
    Ok(Value::Text(out))
}

/// Appends a text as a literal, or as a call of `unistr()` where there are control
/// characters in it.
pub(super) fn quote_escaped(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().take_while(|b| **b != 0).any(|b| is_control(*b)) {
        return crate::value::quote(ValueRef::Text(text), out);
    }
    out.extend_from_slice(b"unistr('");
    escape(text, out);
    out.extend_from_slice(b"')");
}

fn is_control(byte: u8) -> bool {
    byte < b' '
}

/// Appends a text up to its first zero byte with quotes doubled and as `unistr()` reads it.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &b in text.iter().take_while(|b| **b != 0) {
        match b {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ if is_control(b) => push_number(b, out),
            _ => out.push(b),
        }
    }
}

/// Appends a control character by its number.
pub(super) fn push_number(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u00");
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}
