//! Text to number, by SQLite's rules: leading and trailing ASCII space is
//! allowed, hexadecimal is not, a NUL ends the text for reals, and only about
//! the first 19 significant digits count.

use super::decimal_to_real;

/// A number read from text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numeric {
    /// It was written as an integer and fits.
    Integer(i64),
    /// It has a point or an exponent, or is beyond 64 bits.
    Real(f64),
}

/// What an integer parse found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerPrefix {
    /// The value, clamped to 64 bits; 0 where there are no digits.
    pub value: i64,
    /// How far it can be trusted.
    pub state: IntegerState,
}

/// How an integer parse ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerState {
    /// No digits at all.
    Nothing,
    /// The whole text is an integer.
    Whole,
    /// Something other than space follows the integer.
    Prefix,
    /// Beyond 64 bits; the value is clamped.
    Overflow,
}

/// What a real parse found.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealParse {
    pub value: f64,
    /// Some prefix is a number.
    pub found: bool,
    /// Nothing but space follows it.
    pub whole: bool,
    /// It has a point or an exponent.
    pub fractional: bool,
}

#[inline]
pub(super) fn is_space(b: u8) -> bool {
    matches!(b, b' ' | 0x09..=0x0d)
}

/// A bounds-checked walk over text that ends like a C string.
struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or(&[]);
    }

    fn digit(&mut self) -> Option<u64> {
        let d = self.peek().wrapping_sub(b'0');
        if d < 10 {
            self.skip();
            Some(u64::from(d))
        } else {
            None
        }
    }

    fn spaces(&mut self) {
        while is_space(self.peek()) {
            self.skip();
        }
    }
}

/// Beyond this the mantissa takes no more digits.
const MANTISSA_LIMIT: u64 = (u64::MAX - 9) / 10;

pub(super) fn parse_real(text: &[u8]) -> RealParse {
    const NOTHING: RealParse = RealParse {
        value: 0.0,
        found: false,
        whole: false,
        fractional: false,
    };
    let mut scan = Scan { rest: text };
    scan.spaces();
    let negative = scan.peek() == b'-';
    if negative || scan.peek() == b'+' {
        scan.skip();
    }
    let (mut mantissa, mut exponent, mut found, mut fractional) = (0u64, 0i32, false, false);
    while let Some(d) = scan.digit() {
        found = true;
        mantissa = mantissa * 10 + d;
        if mantissa >= MANTISSA_LIMIT {
            while scan.digit().is_some() {
                exponent = exponent.saturating_add(1);
            }
            break;
        }
    }
    if scan.peek() == b'.' {
        scan.skip();
        while let Some(d) = scan.digit() {
            found = true;
            if mantissa < MANTISSA_LIMIT {
                mantissa = mantissa * 10 + d;
                exponent = exponent.saturating_sub(1);
            }
        }
        fractional = true;
    }
    if !found {
        return NOTHING;
    }
    if matches!(scan.peek(), b'e' | b'E') {
        let mark = scan.rest;
        scan.skip();
        let minus = scan.peek() == b'-';
        if minus || scan.peek() == b'+' {
            scan.skip();
        }
        if let Some(first) = scan.digit() {
            let mut e = first as i32;
            while let Some(d) = scan.digit() {
                e = if e < 10_000 {
                    e * 10 + d as i32
                } else {
                    10_000
                };
            }
            exponent = exponent.saturating_add(if minus { -e } else { e });
            fractional = true;
        } else {
            scan.rest = mark;
        }
    }
    let magnitude = decimal_to_real(mantissa, exponent);
    scan.spaces();
    RealParse {
        value: if negative { -magnitude } else { magnitude },
        found: true,
        whole: scan.peek() == 0,
        fractional,
    }
}

/// The integer at the start of `text`, clamped to 64 bits.
pub fn integer_prefix(text: &[u8]) -> IntegerPrefix {
    let mut rest = text;
    while let [b, tail @ ..] = rest
        && is_space(*b)
    {
        rest = tail;
    }
    let mut negative = false;
    if let [sign @ (b'-' | b'+'), tail @ ..] = rest {
        negative = *sign == b'-';
        rest = tail;
    }
    let mut any = false;
    let mut magnitude = Some(0u64);
    while let [b @ b'0'..=b'9', tail @ ..] = rest {
        any = true;
        magnitude = magnitude
            .and_then(|m| m.checked_mul(10))
            .and_then(|m| m.checked_add(u64::from(*b - b'0')));
        rest = tail;
    }
    let state = if !any {
        IntegerState::Nothing
    } else if rest.iter().all(|b| is_space(*b)) {
        IntegerState::Whole
    } else {
        IntegerState::Prefix
    };
    const LIMIT: u64 = 1 << 63;
    match magnitude {
        Some(m) if m < LIMIT => IntegerPrefix {
            value: if negative {
                (m as i64).wrapping_neg()
            } else {
                m as i64
            },
            state,
        },
        Some(LIMIT) if negative => IntegerPrefix {
            value: i64::MIN,
            state,
        },
        _ => IntegerPrefix {
            value: if negative { i64::MIN } else { i64::MAX },
            state: IntegerState::Overflow,
        },
    }
}

/// The number at the start of `text`; 0.0 where there is none.
#[inline]
pub fn real_prefix(text: &[u8]) -> f64 {
    parse_real(text).value
}

/// A real truncated towards zero and clamped to 64 bits.
#[inline]
pub fn real_to_integer(r: f64) -> i64 {
    r as i64
}

/// The number at the start of text, as arithmetic takes it: an integer where
/// it is written as one and fits, else a real; `Integer(0)` where there is none.
pub fn numeric_prefix(text: &[u8]) -> Numeric {
    let real = parse_real(text);
    if !real.fractional {
        let integer = integer_prefix(text);
        let enough = match integer.state {
            IntegerState::Whole => true,
            IntegerState::Prefix | IntegerState::Nothing => !(real.found && real.whole),
            IntegerState::Overflow => false,
        };
        if enough {
            return Numeric::Integer(integer.value);
        }
    }
    Numeric::Real(real.value)
}

/// The number that the whole of `text` is, as affinity takes it; None where it
/// is not a number or something else follows.
pub fn numeric_whole(text: &[u8]) -> Option<Numeric> {
    let first = text.iter().copied().find(|b| !is_space(*b))?;
    if !matches!(first, b'0'..=b'9' | b'+' | b'-' | b'.') {
        return None;
    }
    let real = parse_real(text);
    if !real.found || !real.whole {
        return None;
    }
    if !real.fractional {
        if let Some(i) = exact_integer(real.value) {
            return Some(Numeric::Integer(i));
        }
        let integer = integer_prefix(text);
        if integer.state == IntegerState::Whole {
            return Some(Numeric::Integer(integer.value));
        }
    }
    Some(Numeric::Real(real.value))
}

/// The integer a real surely stands for: integral and below 2^51.
pub(super) fn exact_integer(r: f64) -> Option<i64> {
    const LIMIT: i64 = 1 << 51;
    let i = real_to_integer(r);
    let same = r == 0.0 || (i as f64 == r && (-LIMIT..LIMIT).contains(&i));
    same.then_some(i)
}
