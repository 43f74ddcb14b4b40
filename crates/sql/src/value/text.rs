//! Numbers as text, and values as SQL literals.

use super::{Decimal, ValueRef};

/// Significant digits of a real shown as text.
const REAL_DIGITS: i32 = 17;

/// Appends an integer in decimal.
pub fn render_integer(i: i64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = i.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if i < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends a real as SQLite turns it into text: `1.0`, `0.1`, `1.0e+20`,
/// `-Inf`.
pub fn render_real(r: f64, out: &mut Vec<u8>) {
    render_real_digits(r, REAL_DIGITS, out);
}

/// As [`render_real`] with at most `digits` significant digits.
pub fn render_real_digits(r: f64, digits: i32, out: &mut Vec<u8>) {
    if !r.is_finite() {
        out.extend_from_slice(if r.is_nan() {
            b"NaN"
        } else if r < 0.0 {
            b"-Inf"
        } else {
            b"Inf"
        });
        return;
    }
    let decimal = Decimal::new(r, digits, 20);
    if decimal.negative {
        out.push(b'-');
    }
    let exponent = decimal.point - 1;
    let shown = decimal.digits();
    if exponent < -4 || exponent > digits - 1 {
        scientific(shown, exponent, out);
    } else if decimal.point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(
            b'0',
            decimal.point.unsigned_abs() as usize,
        ));
        out.extend_from_slice(shown);
    } else {
        let point = decimal.point as usize;
        match shown.split_at_checked(point) {
            Some((whole, fraction)) if !fraction.is_empty() => {
                out.extend_from_slice(whole);
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
            _ => {
                out.extend_from_slice(shown);
                out.extend(std::iter::repeat_n(b'0', point - shown.len().min(point)));
                out.extend_from_slice(b".0");
            }
        }
    }
}

fn scientific(shown: &[u8], exponent: i32, out: &mut Vec<u8>) {
    let (first, fraction) = shown.split_at_checked(1).unwrap_or((b"0", b""));
    out.extend_from_slice(first);
    out.push(b'.');
    out.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
    out.push(b'e');
    out.push(if exponent < 0 { b'-' } else { b'+' });
    let e = exponent.unsigned_abs();
    if e >= 100 {
        out.push(b'0' + (e / 100) as u8);
    }
    out.push(b'0' + (e / 10 % 10) as u8);
    out.push(b'0' + (e % 10) as u8);
}

/// Appends the value as an SQL literal, as `quote()` does.
pub fn quote(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"NULL"),
        ValueRef::Integer(i) => render_integer(i, out),
        ValueRef::Real(r) if r.is_infinite() => {
            out.extend_from_slice(if r < 0.0 { b"-9.0e+999" } else { b"9.0e+999" });
        }
        ValueRef::Real(r) => render_real(r, out),
        ValueRef::Text(text) => {
            out.push(b'\'');
            for &b in text.iter().take_while(|b| **b != 0) {
                if b == b'\'' {
                    out.push(b'\'');
                }
                out.push(b);
            }
            out.push(b'\'');
        }
        ValueRef::Blob(bytes) => {
            out.extend_from_slice(b"X'");
            append_hex(bytes, out);
            out.push(b'\'');
        }
    }
}

/// Appends bytes as upper-case hexadecimal.
pub(crate) fn append_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(bytes.len() * 2);
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)]);
        out.push(DIGITS[usize::from(b & 15)]);
    }
}
