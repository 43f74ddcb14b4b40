//! What stands between elements: space as RFC 8259 and JSON5 have it, and comments.

use std::ffi::CStr;

use super::text::separator_len;

/// Space as RFC 8259 has it.
#[inline]
pub fn standard_space_len(text: &[u8]) -> usize {
    let is_space = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | b' ');
    text.iter().position(|b| !is_space(b)).unwrap_or(text.len())
}

/// Space and comments as JSON5 has them.
pub fn space_len(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or(&[]);
        at += match rest {
            [b'\t'..=b'\r' | b' ', ..] => 1,
            [b'/', b'*', comment @ ..] => match comment_len(until_zero(comment)) {
                Some(len) => len + 4,
                None => return at,
            },
            [b'/', b'/', comment @ ..] => 2 + line_len(until_zero(comment)),
            [0xc2, 0xa0, ..] => 2,
            [0xe1, 0x9a, 0x80, ..]
            | [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..]
            | [0xe2, 0x81, 0x9f, ..]
            | [0xe3, 0x80, 0x80, ..]
            | [0xef, 0xbb, 0xbf, ..] => 3,
            _ => return at,
        };
    }
}

/// How long a comment is before its end, if it has one.
fn comment_len(text: &[u8]) -> Option<usize> {
    text.windows(2).position(|two| two == b"*/")
}

/// How long a line is, with its end.
fn line_len(text: &[u8]) -> usize {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\n' | b'\r' => return at + 1,
            0xe2 => match separator_len(text.get(at..).unwrap_or(&[])) {
                0 => {}
                len => return at + len,
            },
            _ => {}
        }
    }
    text.len()
}

/// The text up to its first zero byte.
pub fn until_zero(text: &[u8]) -> &[u8] {
    match CStr::from_bytes_until_nul(text) {
        Ok(text) => text.to_bytes(),
        Err(_) => text,
    }
}
