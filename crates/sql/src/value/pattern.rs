//! LIKE and GLOB.
//!
//! A `%` or `*` is matched by going back to the last one only, which is enough
//! for the answer: at most pattern × text steps, constant stack.

use super::utf8;

/// Longest pattern SQLite accepts, in bytes.
pub const PATTERN_LENGTH_MAX: usize = 50_000;

struct Walk<'a> {
    rest: &'a [u8],
}

impl Walk<'_> {
    /// The next character; text ends at a NUL.
    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (c, len) = utf8::next(self.rest)?;
        if c == 0 {
            return None;
        }
        self.rest = self.rest.get(len..).unwrap_or(&[]);
        Some(c)
    }
}

/// `text` from the next place on where a pattern that begins with this byte can match, all of
/// it where the byte is not `plain`; None if there is no such place. No character but itself
/// holds a byte of ASCII, so that bytes can be looked at.
#[inline]
fn skip_to<'t>(pattern: &[u8], text: &'t [u8], plain: Plain) -> Option<&'t [u8]> {
    let first = pattern.first().copied().unwrap_or(0);
    if !first.is_ascii() || first == 0 || plain.special.contains(&u32::from(first)) {
        return Some(text);
    }
    let (one, other) = match plain.folds {
        true => (first.to_ascii_lowercase(), first.to_ascii_uppercase()),
        false => (first, first),
    };
    let at = text
        .iter()
        .position(|b| *b == one || *b == other || *b == 0)?;
    text.get(at..).filter(|rest| !rest.starts_with(&[0]))
}

/// Which characters of a pattern stand for themselves, and how.
#[derive(Clone, Copy)]
struct Plain {
    /// Those that do not.
    special: [u32; 3],
    /// ASCII letters in any case.
    folds: bool,
}

#[inline]
fn lower(c: u32) -> u32 {
    if (u32::from(b'A')..=u32::from(b'Z')).contains(&c) {
        c + 32
    } else {
        c
    }
}

/// `text LIKE pattern ESCAPE escape`: `%` is any run, `_` any character, ASCII
/// letters in any case.
pub fn like(pattern: &[u8], text: &[u8], escape: Option<u32>) -> bool {
    like_folded(pattern, text, escape, true, lower)
}

/// The same with letters as they are written.
pub fn like_exact(pattern: &[u8], text: &[u8], escape: Option<u32>) -> bool {
    like_folded(pattern, text, escape, false, |c| c)
}

#[inline]
fn like_folded(
    pattern: &[u8],
    text: &[u8],
    escape: Option<u32>,
    folds: bool,
    fold: impl Fn(u32) -> u32,
) -> bool {
    let (percent, underscore) = (u32::from(b'%'), u32::from(b'_'));
    let plain = Plain {
        special: [percent, underscore, escape.unwrap_or(percent)],
        folds,
    };
    let mut p = Walk { rest: pattern };
    let mut t = Walk { rest: text };
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        let matched = match p.next() {
            Some(c) if Some(c) == escape => match p.next() {
                Some(literal) => t.next().is_some_and(|x| fold(x) == fold(literal)),
                // A pattern that ends in its escape character matches nothing.
                None => return false,
            },
            Some(c) if c == percent => {
                let Some(rest) = skip_to(p.rest, t.rest, plain) else {
                    return false;
                };
                t.rest = rest;
                retry = Some((p.rest, rest));
                true
            }
            Some(c) if c == underscore => t.next().is_some(),
            Some(c) => t.next().is_some_and(|x| fold(x) == fold(c)),
            None => {
                let mut end = Walk { rest: t.rest };
                if end.next().is_none() {
                    return true;
                }
                false
            }
        };
        if !matched {
            let Some((pattern_mark, text_mark)) = retry else {
                return false;
            };
            let mut again = Walk { rest: text_mark };
            if again.next().is_none() {
                return false;
            }
            let Some(rest) = skip_to(pattern_mark, again.rest, plain) else {
                return false;
            };
            retry = Some((pattern_mark, rest));
            p.rest = pattern_mark;
            t.rest = rest;
        }
    }
}

/// `text GLOB pattern`: `*`, `?`, `[a-z]`, `[^a-z]`, case-sensitive.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (star, question, bracket) = (u32::from(b'*'), u32::from(b'?'), u32::from(b'['));
    let plain = Plain {
        special: [star, question, bracket],
        folds: false,
    };
    let mut p = Walk { rest: pattern };
    let mut t = Walk { rest: text };
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        let matched = match p.next() {
            Some(c) if c == star => {
                let Some(rest) = skip_to(p.rest, t.rest, plain) else {
                    return false;
                };
                t.rest = rest;
                retry = Some((p.rest, rest));
                true
            }
            Some(c) if c == question => t.next().is_some(),
            Some(c) if c == bracket => t.next().is_some_and(|x| set(&mut p, x)),
            Some(c) => t.next() == Some(c),
            None => {
                let mut end = Walk { rest: t.rest };
                if end.next().is_none() {
                    return true;
                }
                false
            }
        };
        if !matched {
            let Some((pattern_mark, text_mark)) = retry else {
                return false;
            };
            let mut again = Walk { rest: text_mark };
            if again.next().is_none() {
                return false;
            }
            let Some(rest) = skip_to(pattern_mark, again.rest, plain) else {
                return false;
            };
            retry = Some((pattern_mark, rest));
            p.rest = pattern_mark;
            t.rest = rest;
        }
    }
}

/// Is `c` in the set whose `[` has just been read? A set without its `]`
/// matches nothing.
fn set(p: &mut Walk<'_>, c: u32) -> bool {
    let (close, caret, dash) = (u32::from(b']'), u32::from(b'^'), u32::from(b'-'));
    let mut seen = false;
    let mut invert = false;
    let mut prior = 0;
    let mut next = p.next();
    if next == Some(caret) {
        invert = true;
        next = p.next();
    }
    if next == Some(close) {
        seen = c == close;
        next = p.next();
    }
    while let Some(x) = next {
        if x == close {
            return seen != invert;
        }
        let follows = Walk { rest: p.rest }.next();
        if x == dash && follows != Some(close) && follows.is_some() && prior > 0 {
            let high = p.next().unwrap_or(0);
            if c >= prior && c <= high {
                seen = true;
            }
            prior = 0;
        } else {
            if c == x {
                seen = true;
            }
            prior = x;
        }
        next = p.next();
    }
    false
}
