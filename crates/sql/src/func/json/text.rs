//! Texts within JSON: escapes of RFC 8259 and JSON5, and labels that are compared.

use crate::value::utf8;

/// Bytes that stand for themselves in any string: no control character, quote or
/// backslash.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < b' ' as usize {
        plain[control] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\'' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

/// See [`PLAIN`].
#[inline(always)]
pub fn is_plain(byte: u8) -> bool {
    PLAIN[byte as usize]
}

/// How many bytes at the start are plain: eight at a time are looked at.
#[inline]
pub fn plain_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let special = special_bytes(u64::from_le_bytes(*eight));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or(&[]);
    at + rest
        .iter()
        .position(|b| !is_plain(*b))
        .unwrap_or(rest.len())
}

/// The high bit of each byte that is not plain; above the first such byte there may be
/// more.
#[inline(always)]
fn special_bytes(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let is_zero = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes;
    let is_byte = |byte: u8| is_zero(eight ^ (ONES * u64::from(byte)));
    let is_control = eight.wrapping_sub(ONES * 0x20) & !eight;
    (is_control | is_byte(b'"') | is_byte(b'\'') | is_byte(b'\\')) & HIGHS
}

/// The number of so many hexadecimal digits at the start of `text`.
pub fn hex(text: &[u8], digits: usize) -> Option<u32> {
    text.get(..digits)?
        .iter()
        .try_fold(0, |n, b| Some(n << 4 | char::from(*b).to_digit(16)?))
}

/// The length of a line separator (U+2028) or paragraph separator at the start.
pub fn separator_len(text: &[u8]) -> usize {
    match text {
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
        _ => 0,
    }
}

/// How many bytes of escaped ends of lines, which stand for nothing, are at the start.
fn continuation_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some([b'\\', rest @ ..]) = text.get(at..) {
        let len = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => separator_len(rest),
        };
        if len == 0 {
            break;
        }
        at += 1 + len;
    }
    at
}

/// The character of the escape at the start of `text`, a backslash, and the length of the
/// escape; None as the character where it is none. An escaped end of line stands for what
/// follows it.
pub fn unescape_one(text: &[u8]) -> (Option<u32>, usize) {
    let simple = |c: u8| (Some(u32::from(c)), 2);
    match text.get(1) {
        None => (None, text.len()),
        Some(b'u') => match hex(text.get(2..).unwrap_or(&[]), 4) {
            None => (None, text.len().min(6)),
            Some(high) => match low_surrogate(high, text) {
                Some(low) => (Some(((high & 0x3ff) << 10) + (low & 0x3ff) + 0x1_0000), 12),
                None => (Some(high), 6),
            },
        },
        Some(b'b') => simple(0x08),
        Some(b'f') => simple(0x0c),
        Some(b'n') => simple(b'\n'),
        Some(b'r') => simple(b'\r'),
        Some(b't') => simple(b'\t'),
        Some(b'v') => simple(0x0b),
        Some(b'0') if text.get(2).is_some_and(u8::is_ascii_digit) => (None, 2),
        Some(b'0') => simple(0),
        Some(c @ (b'\'' | b'"' | b'/' | b'\\')) => simple(*c),
        // In damaged JSONB there may be anything in place of the digits.
        Some(b'x') => match text.get(2..4) {
            None => (None, text.len()),
            Some(digits) => (Some(hex(digits, 2).unwrap_or(0)), 4),
        },
        Some(0xe2 | b'\r' | b'\n') => {
            let skipped = continuation_len(text);
            let rest = text.get(skipped..).unwrap_or(&[]);
            match rest.first() {
                _ if skipped == 0 => (None, text.len()),
                None => (Some(0), skipped),
                Some(b'\\') => {
                    let (c, len) = unescape_one(rest);
                    (c, skipped + len)
                }
                Some(_) => {
                    let (c, len) = utf8::next(rest).unwrap_or((0, 0));
                    (Some(c), skipped + len)
                }
            }
        }
        Some(_) => (None, 2),
    }
}

/// The second half of a pair of surrogates whose first half is the escape before it.
fn low_surrogate(high: u32, text: &[u8]) -> Option<u32> {
    let rest = text.get(6..).filter(|_| high & 0xfc00 == 0xd800)?;
    let digits = rest.strip_prefix(b"\\u")?;
    hex(digits, 4).filter(|low| low & 0xfc00 == 0xdc00)
}

/// Appends a text with its escapes replaced by what they stand for; what is no escape is
/// left out.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        let (c, len) = unescape_one(escape);
        if let Some(c) = c {
            push_character(c, out);
        }
        rest = escape.get(len..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
}

/// Appends a character as UTF-8, half a pair of surrogates too.
fn push_character(c: u32, out: &mut Vec<u8>) {
    match c {
        0..=0x7f => out.push(c as u8),
        0x80..=0x7ff => out.extend([0xc0 | (c >> 6) as u8, 0x80 | (c & 0x3f) as u8]),
        0x800..=0xffff => out.extend([
            0xe0 | (c >> 12) as u8,
            0x80 | (c >> 6 & 0x3f) as u8,
            0x80 | (c & 0x3f) as u8,
        ]),
        _ => out.extend([
            0xf0 | (c >> 18) as u8,
            0x80 | (c >> 12 & 0x3f) as u8,
            0x80 | (c >> 6 & 0x3f) as u8,
            0x80 | (c & 0x3f) as u8,
        ]),
    }
}

/// A label as it is written, and whether that is without escapes.
#[derive(Debug, Clone, Copy)]
pub struct Label<'a> {
    /// Its bytes.
    pub text: &'a [u8],
    /// No backslash in it is an escape.
    pub is_raw: bool,
}

impl Label<'_> {
    /// Whether two labels stand for the same text. A zero character ends one.
    #[inline]
    pub fn is_same(self, other: Label<'_>) -> bool {
        match self.is_raw && other.is_raw {
            true => self.text == other.text,
            false => self.is_same_unescaped(other),
        }
    }

    #[cold]
    fn is_same_unescaped(mut self, mut other: Label<'_>) -> bool {
        loop {
            let (a, b) = (self.next_character(), other.next_character());
            if a != b {
                return false;
            }
            if a == Some(0) {
                return true;
            }
        }
    }

    /// The next character, 0 at the end, None where an escape is wrong.
    fn next_character(&mut self) -> Option<u32> {
        let (c, len) = match self.text.first() {
            None => (Some(0), 0),
            Some(b'\\') if !self.is_raw => unescape_one(self.text),
            Some(_) => match utf8::next(self.text) {
                Some((c, len)) => (Some(c), len),
                None => (Some(0), 0),
            },
        };
        self.text = self.text.get(len..).unwrap_or(&[]);
        c
    }
}

/// Appends a control character, escaped as JSON does.
pub fn push_control(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => return crate::func::text::push_number(byte, out),
    };
    out.extend([b'\\', short]);
}

/// Appends a text as a string of JSON.
pub fn push_string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        match special {
            [] => break,
            [b'\'', ..] => out.push(b'\''),
            [c @ (b'"' | b'\\'), ..] => out.extend([b'\\', *c]),
            [c, ..] => push_control(*c, out),
        }
        rest = special.get(1..).unwrap_or(&[]);
    }
    out.push(b'"');
}
