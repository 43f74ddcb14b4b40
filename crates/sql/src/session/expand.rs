//! A statement's text with the bound values in the places of its parameters.

use crate::value::{Value, ValueRef, quote};

/// Replaces the parameters outside strings, quoted names and comments.
pub fn expand(sql: &str, names: &[Option<String>], values: &[Value]) -> String {
    let bytes = sql.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() + 16 * values.len());
    let (mut at, mut last) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or(&[]);
        let skip = match byte {
            b'\'' | b'"' | b'`' => quoted(rest, byte),
            b'[' => quoted(rest, b']'),
            b'-' if rest.starts_with(b"--") => {
                rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with(b"/*") => rest
                .windows(2)
                .skip(2)
                .position(|w| w == b"*/")
                .map_or(rest.len(), |i| i + 4),
            b'?' | b':' | b'@' | b'$' | b'#' => {
                let length = 1 + rest.iter().skip(1).take_while(|b| is_word(**b)).count();
                let token = rest.get(..length).unwrap_or(rest);
                match number(token, names, last) {
                    Some(i) => {
                        last = last.max(i);
                        let value = values.get(i - 1).map_or(ValueRef::Null, Value::as_ref);
                        match value {
                            ValueRef::Blob(bytes) => blob(bytes, &mut out),
                            value => quote(value, &mut out),
                        }
                        at += length;
                        continue;
                    }
                    None => length,
                }
            }
            b if is_word(b) => rest.iter().take_while(|b| is_word(**b)).count(),
            _ => 1,
        };
        out.extend_from_slice(rest.get(..skip).unwrap_or(rest));
        at += skip.max(1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// In small letters, which `quote()` writes large.
fn blob(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"x'");
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'\'');
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

/// Length of a quoted piece; a doubled quote stays inside.
fn quoted(rest: &[u8], end: u8) -> usize {
    let mut at = 1;
    while let Some(b) = rest.get(at) {
        at += 1;
        if *b == end {
            if end != b']' && rest.get(at) == Some(&end) {
                at += 1;
            } else {
                break;
            }
        }
    }
    at
}

/// The parameter, counted from 1, that a token names.
fn number(token: &[u8], names: &[Option<String>], last: usize) -> Option<usize> {
    if token == b"?" {
        return Some(last + 1);
    }
    if token.first() == Some(&b'?') {
        return std::str::from_utf8(token.get(1..)?)
            .ok()?
            .parse()
            .ok()
            .filter(|n| *n > 0);
    }
    names
        .iter()
        .position(|n| n.as_ref().is_some_and(|n| n.as_bytes() == token))
        .map(|i| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_outside_strings_and_comments_are_replaced() {
        let names = [None, Some(":n".to_owned())];
        let values = [Value::Integer(7), Value::from("it's")];
        let sql = "SELECT ?, '?', \"a?b\", :n -- ?\n/* :n */ FROM t WHERE x=?1";
        assert_eq!(
            expand(sql, &names, &values),
            "SELECT 7, '?', \"a?b\", 'it''s' -- ?\n/* :n */ FROM t WHERE x=7"
        );
    }
}
