//! Doubles and decimal digits.
//!
//! Decimal to double is correctly rounded. Double to decimal gives up to 18
//! significant digits computed as SQLite does (a 64-bit by 64-bit product with
//! the top bits of a power of ten), so that the 17 digits shown are the same
//! ones, also where that product is a digit off the exact value.

/// Where the digits end in their buffer; 64 bits need at most 20 of them.
const DIGITS_END: usize = 23;

/// Smallest and largest power of ten in play.
const POWER_MIN: i32 = -348;
const POWER_MAX: i32 = 347;

/// The top 64 bits of every power of ten from `POWER_MIN` to `POWER_MAX`,
/// rounded down, the highest bit set.
static POWERS: [u64; (POWER_MAX - POWER_MIN + 1) as usize] = powers();

/// Walks up and down from 10^0 with 128-bit mantissas: the error after 348
/// steps stays below 2^-117 of the value, far from the 64 bits kept.
const fn powers() -> [u64; (POWER_MAX - POWER_MIN + 1) as usize] {
    let mut out = [0u64; (POWER_MAX - POWER_MIN + 1) as usize];
    let zero = (-POWER_MIN) as usize;
    let mut mantissa: u128 = 1 << 127;
    let mut i = zero;
    while i < out.len() {
        out[i] = (mantissa >> 64) as u64;
        let (sum, carry) = mantissa.overflowing_add(mantissa >> 2);
        mantissa = if carry { (sum >> 1) | (1 << 127) } else { sum };
        i += 1;
    }
    let mut mantissa: u128 = 1 << 127;
    let mut i = zero;
    while i > 0 {
        i -= 1;
        // mantissa / 10 with the binary point moved: x * 4/5 lies in
        // [0.4, 0.8) of 2^128, and one doubling may follow.
        let (q, r) = (mantissa / 5, mantissa % 5);
        mantissa = if q * 4 + r * 4 / 5 >= 1 << 127 {
            q * 4 + r * 4 / 5
        } else {
            q * 8 + r * 8 / 5
        };
        out[i] = (mantissa >> 64) as u64;
    }
    out
}

/// floor(log2(10^p))
fn log2_of_power_of_ten(p: i32) -> i32 {
    (p * 108_853) >> 15
}

/// floor(log10(2^e))
fn log10_of_power_of_two(e: i32) -> i32 {
    (e * 78_913) >> 18
}

/// The double nearest to `digits` × 10^`exponent`; infinity or zero beyond the
/// range.
pub fn decimal_to_real(digits: u64, exponent: i32) -> f64 {
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    if digits == 0 || exponent < POWER_MIN {
        return 0.0;
    }
    if exponent > POWER_MAX {
        return f64::INFINITY;
    }
    if digits <= 1 << 53
        && let Some(power) = EXACT.get(exponent.unsigned_abs() as usize)
    {
        let d = digits as f64;
        return if exponent < 0 { d / power } else { d * power };
    }
    use std::io::Write;
    let mut text = [0u8; 32];
    let mut rest: &mut [u8] = &mut text;
    let written = write!(rest, "{digits}e{exponent}").is_ok();
    debug_assert!(written, "20 digits, a sign and 4 more fit");
    let used = 32 - rest.len();
    std::str::from_utf8(text.get(..used).unwrap_or(&[]))
        .ok()
        .and_then(|t| t.parse().ok())
        .unwrap_or(0.0)
}

/// Decimal digits of a finite double: 0.d₁d₂d₃… × 10^`point`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    digits: [u8; 24],
    start: usize,
    end: usize,
    /// Where the decimal point stands, counted from the first digit.
    pub point: i32,
    /// The sign bit of a non-zero value.
    pub negative: bool,
}

impl Decimal {
    /// The significant digits in ASCII, without trailing zeros; at least one.
    pub fn digits(&self) -> &[u8] {
        self.digits.get(self.start..self.end).unwrap_or(b"0")
    }

    /// Digits of a finite `r`.
    ///
    /// With `round` > 0, at most that many significant ones; otherwise up to
    /// `-round` after the decimal point; never more than `most`. Exactly 17
    /// shortens to fewer digits where those stand for the same double and the
    /// rest is a run of nines or zeros.
    pub fn new(r: f64, round: i32, most: i32) -> Decimal {
        let mut out = Decimal {
            digits: [b'0'; 24],
            start: 0,
            end: 1,
            point: 1,
            negative: r < 0.0,
        };
        let r = r.abs();
        if r == 0.0 || !r.is_finite() {
            return out;
        }
        let wanted = if round <= 0 || round >= 18 {
            18
        } else {
            round + 1
        };
        let (value, exponent) = scaled(r, wanted);
        let mut at = DIGITS_END;
        let mut v = value;
        while v > 0 && at > 1 {
            at -= 1;
            out.digits[at] = b'0' + (v % 10) as u8;
            v /= 10;
        }
        out.start = at;
        out.end = DIGITS_END;
        let count = (DIGITS_END - at) as i32;
        out.point = count + exponent;
        let mut keep = round;
        if keep <= 0 {
            keep = out.point - keep;
            if keep == 0 && out.digits[out.start] >= b'5' {
                keep = 1;
                out.start -= 1;
                out.digits[out.start] = b'0';
                out.point += 1;
            }
        }
        if keep > 0 && (keep < (out.end - out.start) as i32 || (out.end - out.start) as i32 > most)
        {
            keep = keep.min(most);
            if keep == 17 {
                keep = out.shorter(r, exponent).unwrap_or(17);
            }
            out.round_to(keep as usize);
        }
        while out.end > out.start + 1 && out.digits[out.end - 1] == b'0' {
            out.end -= 1;
        }
        out
    }

    /// Fewer than 17 digits that stand for the same double, where the tail is
    /// nines or zeros: the number of digits to round to.
    fn shorter(&self, r: f64, exponent: i32) -> Option<i32> {
        let z = self.digits.get(self.start..self.end)?;
        let count = z.len() as i32;
        let prefix = |n: usize| {
            z.iter()
                .take(n)
                .fold(0u64, |v, d| v * 10 + u64::from(d - b'0'))
        };
        if z.get(14..16)? == b"99" {
            let mut n = 14;
            while n > 0 && z[n - 1] == b'9' {
                n -= 1;
            }
            let candidate = if n == 0 { 1 } else { prefix(n) + 1 };
            (r == decimal_to_real(candidate, exponent + count - n as i32)).then_some(n as i32 + 1)
        } else if self.point >= count || z.get(13..16)? == b"000" {
            let mut n = 13;
            while n > 1 && z[n - 1] == b'0' {
                n -= 1;
            }
            (r == decimal_to_real(prefix(n), exponent + count - n as i32)).then_some(n as i32 + 1)
        } else {
            None
        }
    }

    /// Keeps `keep` digits, rounding half up on the next one.
    fn round_to(&mut self, keep: usize) {
        let cut = self.start + keep;
        if cut >= self.end {
            return;
        }
        let up = self.digits[cut] >= b'5';
        self.end = cut;
        if !up {
            return;
        }
        let mut i = cut;
        while i > self.start {
            i -= 1;
            if self.digits[i] < b'9' {
                self.digits[i] += 1;
                return;
            }
            self.digits[i] = b'0';
        }
        // Every digit was a nine: one more in front.
        self.start -= 1;
        self.digits[self.start] = b'1';
        self.point += 1;
    }
}

/// `r` as an integer of at least `wanted` digits (1 to 18) times a power of ten.
fn scaled(r: f64, wanted: i32) -> (u64, i32) {
    let bits = r.to_bits();
    let biased = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, e) = if biased == 0 {
        let shift = fraction.leading_zeros();
        (fraction << shift, -1074 - shift as i32)
    } else {
        ((fraction << 11) | (1 << 63), biased - 1086)
    };
    let power = wanted - 1 - log10_of_power_of_two(e + 63);
    let index = (power - POWER_MIN).clamp(0, POWER_MAX - POWER_MIN) as usize;
    let high = ((u128::from(mantissa) * u128::from(POWERS[index])) >> 64) as u64;
    let shift = -(e + log2_of_power_of_ten(power));
    let value = if wanted == 18 {
        let h = high >> (shift - 2).clamp(0, 63);
        (h + ((h << 1) & 2)) >> 1
    } else {
        high >> (shift - 1).clamp(0, 63)
    };
    (value, -power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_rounded_down() {
        let at = |p: i32| POWERS[(p - POWER_MIN) as usize];
        assert_eq!(at(0), 1 << 63);
        assert_eq!(at(1), 0xa000_0000_0000_0000);
        assert_eq!(at(-1), 0xcccc_cccc_cccc_cccc);
        assert_eq!(at(26), 0xa56f_a5b9_9019_a5c8);
        // 10^-348 and 10^347, as published with shortest-printing algorithms.
        assert_eq!(at(-348), 0xfa8f_d5a0_081c_0288);
        assert_eq!(at(347), 0xd13e_b464_6944_7567);
    }

    #[test]
    fn decimals_round_to_the_nearest_double() {
        assert_eq!(decimal_to_real(1234, -2), 12.34);
        assert_eq!(decimal_to_real(17_976_931_348_623_157, 292), f64::MAX);
        assert_eq!(decimal_to_real(1, 400), f64::INFINITY);
        assert_eq!(decimal_to_real(5, -324), 5e-324);
        assert_eq!(decimal_to_real(1, -400), 0.0);
    }
}
