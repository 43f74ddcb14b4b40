//! UTF-8 read the lenient way of SQLite: any bytes are text, and what is not
//! well-formed reads as U+FFFD.

use memchr::memchr;

/// What an ill-formed sequence reads as.
pub const REPLACEMENT: u32 = 0xfffd;

/// The character at the start of `text` and how many bytes it takes; None at
/// the end.
#[inline]
pub fn next(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    if first < 0xc0 {
        return Some((u32::from(first), 1));
    }
    let mut c = u32::from(match first {
        0xc0..=0xdf => first & 0x1f,
        0xe0..=0xef => first & 0x0f,
        0xf0..=0xf7 => first & 0x07,
        0xf8..=0xfb => first & 0x03,
        0xfc..=0xfd => first & 0x01,
        _ => 0,
    });
    let mut len = 1;
    while let Some(b) = text.get(len)
        && b & 0xc0 == 0x80
    {
        c = (c << 6).wrapping_add(u32::from(b & 0x3f));
        len += 1;
    }
    if c < 0x80 || (c & 0xffff_f800) == 0xd800 || (c & 0xffff_fffe) == 0xfffe {
        c = REPLACEMENT;
    }
    Some((c, len))
}

/// How many bytes the character at the start of `text` takes, where only its
/// boundaries matter; 0 at the end.
#[inline]
pub fn width(text: &[u8]) -> usize {
    let Some(first) = text.first() else { return 0 };
    let mut len = 1;
    if *first >= 0xc0 {
        while text.get(len).is_some_and(|b| b & 0xc0 == 0x80) {
            len += 1;
        }
    }
    len
}

/// What a text has before its first NUL, where some functions take it to end.
#[inline]
pub fn until_nul(text: &[u8]) -> &[u8] {
    let end = memchr(0, text).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// The number of characters in `text`.
pub fn count(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let mut rest = text;
    let mut n = 0;
    while !rest.is_empty() {
        rest = rest.get(width(rest)..).unwrap_or(&[]);
        n += 1;
    }
    n
}

/// Counts the characters of a text that comes in pieces, which may end within one.
#[derive(Debug, Default)]
pub struct Counter {
    count: usize,
    /// The last character may go on.
    open: bool,
}

impl Counter {
    /// Adds the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        let goes_on = |b: &&u8| **b & 0xc0 == 0x80;
        let rest = match self.open {
            true => piece.iter().take_while(goes_on).count(),
            false => 0,
        };
        let rest = piece.get(rest..).unwrap_or(&[]);
        if !rest.is_empty() {
            self.count += count(rest);
            let first = rest.iter().rev().find(|b| !goes_on(b));
            self.open = first.is_some_and(|b| *b >= 0xc0);
        }
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// The byte at which character `n` (from 0) starts; the length where there are
/// fewer.
pub fn offset(text: &[u8], n: usize) -> usize {
    let mut at = 0;
    for _ in 0..n {
        match text.get(at..) {
            Some(rest) if !rest.is_empty() => at += width(rest),
            _ => break,
        }
    }
    at
}

/// Appends a code point; beyond U+10FFFF and surrogates as SQLite's `char()`
/// writes them.
pub fn push(c: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | ((c >> shift) & 0x3f) as u8;
    match c {
        0..=0x7f => out.push(c as u8),
        0x80..=0x7ff => out.extend_from_slice(&[0xc0 | ((c >> 6) & 0x1f) as u8, tail(0)]),
        0x800..=0xffff => {
            out.extend_from_slice(&[0xe0 | ((c >> 12) & 0x0f) as u8, tail(6), tail(0)])
        }
        _ => out.extend_from_slice(&[0xf0 | ((c >> 18) & 0x07) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// The characters of `text`.
pub fn characters(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (c, len) = next(rest)?;
        rest = rest.get(len..).unwrap_or(&[]);
        Some(c)
    })
}
