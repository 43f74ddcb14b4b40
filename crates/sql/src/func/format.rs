//! `format()` and `printf()`.

use super::registry::fallible;
use super::text::{escape, push_number, quote_escaped};
use super::{Context, ScalarFunction, argument};
use crate::error::{Error, Result};
use crate::value::{Decimal, LENGTH_MAX, Value, ValueRef, utf8};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    fallible("format", 0, usize::MAX, format),
    fallible("printf", 0, usize::MAX, format),
];

/// Most digits a number is asked to show.
const PRECISION_MAX: usize = 100_000_000;

/// One `%` directive.
#[derive(Default)]
struct Directive {
    left: bool,
    sign: Option<u8>,
    alternate: bool,
    alternate_2: bool,
    zero: bool,
    thousands: bool,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
}

impl Directive {
    fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.sign) {
            (true, _) => b"-",
            (false, Some(b'+')) => b"+",
            (false, Some(_)) => b" ",
            _ => b"",
        }
    }
}

/// The arguments, taken one after the other; missing ones are NULL.
struct Arguments<'a, 'b> {
    all: &'b [ValueRef<'a>],
    next: usize,
}

impl<'a> Arguments<'a, '_> {
    fn take(&mut self) -> ValueRef<'a> {
        let value = argument(self.all, self.next);
        self.next += 1;
        value
    }
}

fn format(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(text) = argument(arguments, 0).to_text() else {
        return Ok(Value::Null);
    };
    let mut arguments = Arguments {
        all: arguments,
        next: 1,
    };
    let mut rest: &[u8] = text.split(|b| *b == 0).next().unwrap_or(&[]);
    let mut out = Vec::with_capacity(rest.len());
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        out.extend_from_slice(rest.get(..at).unwrap_or(&[]));
        rest = rest.get(at + 1..).unwrap_or(&[]);
        if rest.is_empty() {
            out.push(b'%');
            break;
        }
        let directive = parse(&mut rest, &mut arguments);
        if !render(&directive, &mut arguments, &mut out)? {
            return Ok(Value::Text(out));
        }
        if out.len() > LENGTH_MAX {
            return Err(Error::too_big());
        }
    }
    out.extend_from_slice(rest);
    Ok(Value::Text(out))
}

/// Takes a number written in the format.
fn digits(rest: &mut &[u8]) -> usize {
    let mut n = 0u32;
    while let [b @ b'0'..=b'9', tail @ ..] = *rest {
        n = n.wrapping_mul(10).wrapping_add(u32::from(b - b'0'));
        *rest = tail;
    }
    (n & 0x7fff_ffff) as usize
}

fn parse(rest: &mut &[u8], arguments: &mut Arguments<'_, '_>) -> Directive {
    let mut d = Directive::default();
    while let [b, tail @ ..] = *rest {
        match b {
            b'-' => d.left = true,
            b'+' | b' ' => d.sign = Some(*b),
            b'#' => d.alternate = true,
            b'!' => d.alternate_2 = true,
            b'0' => d.zero = true,
            b',' => d.thousands = true,
            b'1'..=b'9' => {
                d.width = digits(rest);
                continue;
            }
            b'*' => {
                let width = arguments.take().to_integer() as i32;
                d.left |= width < 0;
                d.width = width.checked_abs().unwrap_or(0) as usize;
            }
            b'.' => {
                *rest = tail;
                if let [b'*', tail @ ..] = *rest {
                    *rest = tail;
                    let precision = arguments.take().to_integer() as i32;
                    d.precision = precision.checked_abs().map(|p| p as usize);
                } else {
                    d.precision = Some(digits(rest));
                }
                continue;
            }
            b'l' => {}
            conversion => {
                d.conversion = *conversion;
                *rest = tail;
                return d;
            }
        }
        *rest = tail;
    }
    d
}

/// Appends a directive's text; false where it is unknown, which ends the
/// formatting.
fn render(d: &Directive, arguments: &mut Arguments<'_, '_>, out: &mut Vec<u8>) -> Result<bool> {
    if d.width > LENGTH_MAX || d.precision.is_some_and(|p| p > LENGTH_MAX) {
        return Err(Error::too_big());
    }
    match d.conversion {
        b'%' => pad(d, b"", b"%", 1, false, out),
        b'd' | b'i' => {
            let i = arguments.take().to_integer();
            integer(d, i.unsigned_abs(), 10, d.sign(i < 0), out);
        }
        b'u' => integer(d, arguments.take().to_integer() as u64, 10, b"", out),
        b'x' | b'X' | b'p' => integer(d, arguments.take().to_integer() as u64, 16, b"", out),
        b'o' => integer(d, arguments.take().to_integer() as u64, 8, b"", out),
        b'r' => {
            let i = arguments.take().to_integer();
            integer(d, i.unsigned_abs(), 10, d.sign(i < 0), out);
        }
        b'f' | b'e' | b'E' | b'g' | b'G' => real(d, arguments.take().to_real(), out),
        b'c' => character(d, arguments.take(), out),
        b's' | b'z' => string(d, arguments.take(), out),
        b'q' | b'Q' | b'w' => quoted(d, arguments.take(), out),
        b'j' | b'J' => json(d, arguments.take(), out),
        b'n' => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Appends `body` padded to the width; zeros go between `sign` and `body`.
fn pad(d: &Directive, sign: &[u8], body: &[u8], columns: usize, zeros: bool, out: &mut Vec<u8>) {
    let missing = d.width.saturating_sub(sign.len() + columns);
    if !d.left && !zeros {
        out.extend(std::iter::repeat_n(b' ', missing));
    }
    out.extend_from_slice(sign);
    if !d.left && zeros {
        out.extend(std::iter::repeat_n(b'0', missing));
    }
    out.extend_from_slice(body);
    if d.left {
        out.extend(std::iter::repeat_n(b' ', missing));
    }
}

fn integer(d: &Directive, magnitude: u64, base: u64, sign: &'static [u8], out: &mut Vec<u8>) {
    let alphabet: &[u8; 16] = if matches!(d.conversion, b'X' | b'p') {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let mut reversed = Vec::with_capacity(24);
    if d.conversion == b'r' {
        let last = magnitude % 10;
        let ordinal: &[u8; 2] = match (last, magnitude / 10 % 10 == 1) {
            (1, false) => b"ts",
            (2, false) => b"dn",
            (3, false) => b"dr",
            _ => b"ht",
        };
        reversed.extend_from_slice(ordinal);
    }
    let mut rest = magnitude;
    loop {
        reversed.push(alphabet[(rest % base) as usize]);
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    let mut precision = d.precision.unwrap_or(0);
    if d.zero {
        precision = precision.max(d.width.saturating_sub(sign.len()));
    }
    if precision > reversed.len() {
        reversed.resize(precision, b'0');
    }
    if d.thousands && base == 10 && d.conversion != b'r' {
        let plain = std::mem::take(&mut reversed);
        for (i, digit) in plain.into_iter().enumerate() {
            if i > 0 && i % 3 == 0 {
                reversed.push(b',');
            }
            reversed.push(digit);
        }
    }
    reversed.reverse();
    let prefix: &[u8] = match (d.alternate && magnitude != 0, d.conversion) {
        (true, b'x' | b'p') => b"0x",
        (true, b'X') => b"0X",
        (true, b'o') => b"0",
        _ => sign,
    };
    pad(d, prefix, &reversed, reversed.len(), false, out);
}

fn real(d: &Directive, r: f64, out: &mut Vec<u8>) {
    let mut precision = d.precision.unwrap_or(6).min(PRECISION_MAX);
    let general = matches!(d.conversion, b'g' | b'G');
    let mut scientific = matches!(d.conversion, b'e' | b'E');
    if general && precision == 0 {
        precision = 1;
    }
    let round = match (general, scientific) {
        (true, _) => precision as i32,
        (_, true) => precision as i32 + 1,
        _ => -(precision as i32),
    };
    if r.is_infinite() && !d.zero {
        pad(d, d.sign(r < 0.0), b"Inf", 3, false, out);
        return;
    }
    let decimal = Decimal::new(r, round, if d.alternate_2 { 20 } else { 16 });
    let (shown, point): (&[u8], i32) = if r.is_infinite() {
        (b"9", 1000)
    } else {
        (decimal.digits(), decimal.point)
    };
    let negative =
        r < 0.0 && !(d.alternate && d.sign.is_none() && d.conversion == b'f' && point <= round);
    let exponent = point - 1;
    let mut trim = d.alternate_2;
    if general {
        precision -= 1;
        trim = !d.alternate;
        scientific = exponent < -4 || exponent > precision as i32;
        if !scientific {
            precision = (precision as i32 - exponent) as usize;
        }
    }
    let mut body = Vec::with_capacity(precision.min(400) + 24);
    let whole_digits = if scientific { 1 } else { point.max(0) as usize };
    let whole = shown.get(..whole_digits.min(shown.len())).unwrap_or(&[]);
    let leading_zeros = if scientific {
        0
    } else {
        point.min(0).unsigned_abs() as usize
    };
    if whole_digits == 0 {
        body.push(b'0');
    }
    for i in 0..whole_digits {
        body.push(whole.get(i).copied().unwrap_or(b'0'));
        let left = whole_digits - 1 - i;
        if d.thousands && !scientific && left > 0 && left % 3 == 0 {
            body.push(b',');
        }
    }
    if precision > 0 || d.alternate || d.alternate_2 {
        body.push(b'.');
        let fraction = shown.get(whole.len()..).unwrap_or(&[]);
        let zeros = leading_zeros.min(precision);
        body.extend(std::iter::repeat_n(b'0', zeros));
        let room = precision - zeros;
        body.extend(fraction.iter().take(room));
        match trim {
            true => trim_zeros(d, &mut body),
            false => {
                let missing = room.saturating_sub(fraction.len());
                body.extend(std::iter::repeat_n(b'0', missing));
            }
        }
    }
    if scientific {
        push_exponent(d, exponent, &mut body);
    }
    pad(d, d.sign(negative), &body, body.len(), d.zero, out);
}

/// Takes the zeros at the end away, and a point with nothing behind it.
fn trim_zeros(d: &Directive, body: &mut Vec<u8>) {
    while body.last() == Some(&b'0') {
        body.pop();
    }
    if body.last() == Some(&b'.') {
        if d.alternate_2 {
            body.push(b'0');
        } else {
            body.pop();
        }
    }
}

fn push_exponent(d: &Directive, exponent: i32, body: &mut Vec<u8>) {
    body.push(match d.conversion {
        b'E' | b'G' => b'E',
        _ => b'e',
    });
    body.push(if exponent < 0 { b'-' } else { b'+' });
    let e = exponent.unsigned_abs();
    if e >= 100 {
        body.push(b'0' + (e / 100) as u8);
    }
    body.push(b'0' + (e / 10 % 10) as u8);
    body.push(b'0' + (e % 10) as u8);
}

fn character(d: &Directive, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let text = value.to_text().unwrap_or_default();
    let one = text.get(..utf8::width(&text).min(4)).unwrap_or(&[]);
    let one: &[u8] = if one.is_empty() { b"\0" } else { one };
    let times = d.precision.unwrap_or(1).max(1);
    pad(d, b"", &one.repeat(times), times, false, out);
}

/// The first `precision` bytes, or characters with `!`.
fn cut<'a>(d: &Directive, text: &'a [u8]) -> &'a [u8] {
    let text = text.split(|b| *b == 0).next().unwrap_or(&[]);
    match d.precision {
        None => text,
        Some(n) if d.alternate_2 => text.get(..utf8::offset(text, n)).unwrap_or(text),
        Some(n) => text.get(..n).unwrap_or(text),
    }
}

fn columns(d: &Directive, text: &[u8]) -> usize {
    if d.alternate_2 {
        utf8::count(text)
    } else {
        text.len()
    }
}

fn string(d: &Directive, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let text = value.to_text().unwrap_or_default();
    let text = cut(d, &text);
    pad(d, b"", text, columns(d, text), false, out);
}

/// `%q` doubles single quotes, `%Q` puts quotes around as well, `%w` doubles
/// double quotes; with `#` control characters come by their numbers.
fn quoted(d: &Directive, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let quote = if d.conversion == b'w' { b'"' } else { b'\'' };
    let null: &[u8] = if d.conversion == b'Q' {
        b"NULL"
    } else {
        b"(NULL)"
    };
    let text = value.to_text();
    let mut body = Vec::new();
    if d.alternate
        && quote == b'\''
        && let Some(text) = &text
    {
        match d.conversion {
            b'Q' => quote_escaped(cut(d, text), &mut body),
            _ => escape(cut(d, text), &mut body),
        }
        return pad(d, b"", &body, columns(d, &body), false, out);
    }
    let around = d.conversion == b'Q' && text.is_some();
    if around {
        body.push(quote);
    }
    for &b in cut(d, text.as_deref().unwrap_or(null)) {
        if b == quote {
            body.push(quote);
        }
        body.push(b);
    }
    if around {
        body.push(quote);
    }
    pad(d, b"", &body, columns(d, &body), false, out);
}

/// `%j` writes a text as within a string of JSON, `%J` as the string.
fn json(d: &Directive, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let around = d.conversion == b'J';
    let mut body = Vec::new();
    match value.to_text() {
        None if around => body.extend_from_slice(b"null"),
        None => {}
        Some(text) => {
            body.extend_from_slice(if around { b"\"" } else { b"" });
            for &b in cut(d, &text) {
                match b {
                    b'"' | b'\\' => body.extend_from_slice(&[b'\\', b]),
                    0x08 => body.extend_from_slice(b"\\b"),
                    0x0c => body.extend_from_slice(b"\\f"),
                    b'\n' => body.extend_from_slice(b"\\n"),
                    b'\r' => body.extend_from_slice(b"\\r"),
                    b'\t' => body.extend_from_slice(b"\\t"),
                    _ if b < b' ' => push_number(b, &mut body),
                    _ => body.push(b),
                }
            }
            body.extend_from_slice(if around { b"\"" } else { b"" });
        }
    }
    pad(d, b"", &body, columns(d, &body), false, out);
}
