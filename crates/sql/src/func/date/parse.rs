//! Time values and modifiers.

use super::super::Context;
use super::instant::{Instant, MS_A_DAY, UNIX_EPOCH_MS, month_length};
use crate::error::Result;
use crate::value::{Numeric, ValueRef, numeric_whole};

/// Julian days from here on are no days any more.
const JULIAN_DAY_END: f64 = 5_373_484.5;
/// From further away than this no step, of 4.7e17 milliseconds at most, is taken: the sum
/// must be a number.
const MS_FAR: u64 = 4_000_000_000_000_000_000;

/// Bytes of modifiers that are looked at without allocating.
const SHORT: usize = 32;

/// A walk over ASCII text.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn take(&mut self, b: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == b => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Exactly `n` digits, a number from `low` to `high`.
    fn number(&mut self, n: usize, low: i64, high: i64) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(n)?;
        let mut value = 0;
        for d in digits {
            if !d.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(d - b'0');
        }
        self.0 = rest;
        (low..=high).contains(&value).then_some(value)
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// `YYYY-MM-DD`
    fn date(&mut self) -> Option<(i64, i64, i64)> {
        let year = self.number(4, 0, 9999)?;
        let month = self.take(b'-').then(|| self.number(2, 1, 12))??;
        let day = self.take(b'-').then(|| self.number(2, 1, 31))??;
        Some((year, month, day))
    }

    /// `HH:MM[:SS[.SSS]]` in milliseconds, 24:00 at the latest.
    fn time(&mut self) -> Option<i64> {
        let hour = self.number(2, 0, 24)?;
        let minute = self.take(b':').then(|| self.number(2, 0, 59))??;
        let mut seconds = 0.0;
        if self.take(b':') {
            seconds = self.number(2, 0, 59)? as f64;
            if let [b'.', b'0'..=b'9', ..] = self.0 {
                self.take(b'.');
                let (mut value, mut scale) = (0.0, 1.0);
                while let [d @ b'0'..=b'9', rest @ ..] = self.0 {
                    value = value * 10.0 + f64::from(d - b'0');
                    scale *= 10.0;
                    self.0 = rest;
                }
                seconds += (value / scale).min(0.999);
            }
        }
        let behind_the_day = hour == 24 && (minute > 0 || seconds > 0.0);
        let ms = hour * 3_600_000 + minute * 60_000 + (seconds * 1000.0 + 0.5) as i64;
        (!behind_the_day).then_some(ms)
    }

    /// A time and its zone to the end, less whole days: what a modifier moves by.
    fn time_to_move_by(&mut self) -> Option<i64> {
        Some((self.time()? - self.zone()?.unwrap_or(0)).rem_euclid(MS_A_DAY))
    }

    /// `Z` or `±HH:MM`, milliseconds to take off, or nothing.
    fn zone(&mut self) -> Option<Option<i64>> {
        self.spaces();
        let sign = match self.0 {
            [] => return Some(None),
            [b'z' | b'Z', rest @ ..] => {
                self.0 = rest;
                self.spaces();
                return self.0.is_empty().then_some(Some(0));
            }
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return None,
        };
        self.0 = self.0.get(1..)?;
        let hour = self.number(2, 0, 14)?;
        let minute = self.take(b':').then(|| self.number(2, 0, 59))??;
        self.spaces();
        self.0
            .is_empty()
            .then_some(Some(sign * (hour * 60 + minute) * 60_000))
    }
}

impl Instant {
    /// A time value: a date, a time (of 1 January 2000), a number or 'now'.
    pub fn parse(context: &mut Context, value: ValueRef<'_>) -> Option<Instant> {
        match value {
            ValueRef::Null => None,
            ValueRef::Integer(i) => Some(Self::raw(i as f64)),
            ValueRef::Real(r) => Some(Self::raw(r)),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                if let Some(at) = Self::parse_date(text).or_else(|| Self::parse_time(text)) {
                    return Some(at);
                }
                if text.eq_ignore_ascii_case(b"now") {
                    return Some(Self::now(context));
                }
                if is_subsecond(text) {
                    return Some(Instant {
                        subsecond: true,
                        ..Self::now(context)
                    });
                }
                match numeric_whole(text)? {
                    Numeric::Integer(i) => Some(Self::raw(i as f64)),
                    Numeric::Real(r) => Some(Self::raw(r)),
                }
            }
        }
    }

    fn raw(r: f64) -> Instant {
        let julian = (0.0..JULIAN_DAY_END).contains(&r);
        let ms = if julian {
            (r * MS_A_DAY as f64 + 0.5) as i64
        } else {
            0
        };
        Instant {
            ms,
            raw: Some(r),
            undecided: !julian,
            ..Instant::default()
        }
    }

    fn parse_date(text: &[u8]) -> Option<Instant> {
        let mut scan = Scan(text);
        let negative = scan.take(b'-');
        let (year, month, day) = scan.date()?;
        let year = if negative { -year } else { year };
        let mut at = Instant {
            ms: Self::from_date(year, month, day),
            floor_days: (day - month_length(year, month)).max(0),
            written_days: (day - month_length(year, month)).max(0),
            ..Instant::default()
        };
        while let [b' ' | b'T' | b'\t', rest @ ..] = scan.0 {
            scan.0 = rest;
        }
        if !scan.0.is_empty() {
            at.ms += scan.time()?;
            at.in_zone(scan.zone()?);
        }
        Some(at)
    }

    fn parse_time(text: &[u8]) -> Option<Instant> {
        let mut scan = Scan(text);
        let mut at = Instant {
            ms: Self::from_date(2000, 1, 1) + scan.time()?,
            ..Instant::default()
        };
        at.in_zone(scan.zone()?);
        Some(at)
    }

    fn in_zone(&mut self, zone: Option<i64>) {
        self.ms -= zone.unwrap_or(0);
        self.is_utc = zone.is_some();
    }

    /// Applies one modifier; false where it is none.
    pub fn modify(&mut self, context: &mut Context, text: &[u8], first: bool) -> Result<bool> {
        let (mut short, long);
        let lower: &[u8] = match text.len() <= SHORT {
            true => {
                short = [0; SHORT];
                let slot = short.get_mut(..text.len()).unwrap_or_default();
                slot.copy_from_slice(text);
                slot.make_ascii_lowercase();
                slot
            }
            false => {
                long = text.to_ascii_lowercase();
                &long
            }
        };
        let lower = lower.split(|b| *b == 0).next().unwrap_or(&[]);
        let raw = self.raw.filter(|_| first);
        match lower {
            b"auto" => return Ok(first && self.auto()),
            b"julianday" => return Ok(raw.is_some() && !self.undecided),
            b"unixepoch" => return Ok(raw.is_some_and(|r| self.set_unix(r))),
            _ if is_subsecond(lower) => {
                self.subsecond = true;
                return Ok(true);
            }
            _ => {}
        }
        if self.undecided || self.ms.unsigned_abs() > MS_FAR {
            return Ok(false);
        }
        self.raw = None;
        match lower {
            b"start of day" | b"start of month" | b"start of year" if !self.is_valid() => {
                return Ok(false);
            }
            b"localtime" | b"utc" if !self.is_valid() => return Ok(false),
            b"localtime" => self.set_local(context)?,
            b"utc" => self.set_utc(context)?,
            b"ceiling" => self.floor_days = 0,
            b"floor" => {
                self.ms -= self.floor_days * MS_A_DAY;
                self.floor_days = 0;
            }
            b"start of day" => self.ms -= self.ms_of_day(),
            // A day beyond its month's end counts from the month it was written in.
            b"start of month" => {
                let (year, month, _) = self.written().date();
                *self = self.moved(Self::from_date(year, month, 1));
            }
            b"start of year" => {
                let (year, ..) = self.written().date();
                *self = self.moved(Self::from_date(year, 1, 1));
            }
            _ => match lower.strip_prefix(b"weekday ") {
                Some(day) => return Ok(self.is_valid() && self.weekday(day)),
                None => return Ok(self.shift(lower).is_some()),
            },
        }
        Ok(true)
    }

    pub(super) fn moved(&self, ms: i64) -> Instant {
        Instant {
            ms,
            floor_days: 0,
            written_days: 0,
            ..*self
        }
    }

    fn auto(&mut self) -> bool {
        match self.raw {
            Some(r) if self.undecided => {
                (-210_866_760_000.0..=253_402_300_799.0).contains(&r) && self.set_unix(r)
            }
            _ => true,
        }
    }

    fn set_unix(&mut self, seconds: f64) -> bool {
        let ms = seconds * 1000.0 + UNIX_EPOCH_MS as f64;
        if !(0.0..464_269_060_800_000.0).contains(&ms) {
            return false;
        }
        self.ms = (ms + 0.5) as i64;
        self.raw = None;
        self.undecided = false;
        true
    }

    /// Moves on to the next such weekday (0 is Sunday), if it is not one.
    fn weekday(&mut self, day: &[u8]) -> bool {
        let wanted = match numeric_whole(day) {
            Some(Numeric::Integer(i)) => i,
            Some(Numeric::Real(r)) if r.fract() == 0.0 => r as i64,
            _ => return false,
        };
        if !(0..7).contains(&wanted) {
            return false;
        }
        let today = (self.weekday_from_monday() + 1) % 7;
        self.ms += (wanted - today).rem_euclid(7) * MS_A_DAY;
        true
    }

    /// What goes by the calendar needs a year that it has; other steps may pass through
    /// such as it has not.
    fn on_the_calendar(&self) -> Option<()> {
        self.is_valid().then_some(())
    }

    /// `±N unit`, `±HH:MM[:SS.SSS][zone]` or `±YYYY-MM-DD[ HH:MM…]`.
    fn shift(&mut self, text: &[u8]) -> Option<()> {
        let signed = matches!(text.first(), Some(b'+' | b'-'));
        let negative = text.first() == Some(&b'-');
        let body = if signed { text.get(1..)? } else { text };
        if signed && body.get(4) == Some(&b'-') {
            return self.shift_date(body, negative);
        }
        if body.get(2) == Some(&b':') {
            let ms = Scan(body).time_to_move_by()?;
            self.ms += if negative { -ms } else { ms };
            (self.floor_days, self.written_days) = (0, 0);
            return Some(());
        }
        let end = text.iter().position(|b| b.is_ascii_whitespace())?;
        let number = text.get(..end)?;
        let amount = match small(number) {
            Some(amount) => amount,
            None => match numeric_whole(number)? {
                Numeric::Integer(i) => i as f64,
                Numeric::Real(r) => r,
            },
        };
        self.shift_units(amount, text.get(end..)?.trim_ascii_start())
    }

    fn shift_date(&mut self, body: &[u8], negative: bool) -> Option<()> {
        let mut scan = Scan(body);
        let sign = if negative { -1 } else { 1 };
        let years = scan.number(4, 0, 9999)?;
        let months = scan.take(b'-').then(|| scan.number(2, 0, 11))??;
        let days = scan.take(b'-').then(|| scan.number(2, 0, 30))??;
        let mut ms = days * MS_A_DAY;
        if let [space, rest @ ..] = scan.0 {
            scan.0 = space.is_ascii_whitespace().then_some(rest)?;
            ms += scan.time_to_move_by()?;
        }
        self.on_the_calendar()?;
        self.add_months(sign * (years * 12 + months));
        self.ms += sign * ms;
        Some(())
    }

    fn shift_units(&mut self, amount: f64, unit: &[u8]) -> Option<()> {
        let unit = unit.strip_suffix(b"s").unwrap_or(unit);
        let (limit, seconds) = match unit {
            b"second" => (4.6427e14, 1.0),
            b"minute" => (7.7379e12, 60.0),
            b"hour" => (1.2897e11, 3600.0),
            b"day" => (5_373_485.0, 86_400.0),
            b"month" => (176_546.0, 2_592_000.0),
            b"year" => (14_713.0, 31_536_000.0),
            _ => return None,
        };
        if !(-limit < amount && amount < limit) {
            return None;
        }
        let mut rest = amount;
        let calendar = match unit {
            b"month" => Some(1),
            b"year" => Some(12),
            _ => None,
        };
        if let Some(months) = calendar {
            self.on_the_calendar()?;
            self.add_months(amount as i64 * months);
            rest -= amount.trunc();
        } else {
            (self.floor_days, self.written_days) = (0, 0);
        }
        self.ms += (rest * 1000.0 * seconds + 0.5f64.copysign(rest)) as i64;
        Some(())
    }

    /// The last day of the month that the text names, where its day lies beyond.
    fn written(&self) -> Instant {
        Instant {
            ms: self.ms - self.written_days * MS_A_DAY,
            ..*self
        }
    }

    fn add_months(&mut self, months: i64) {
        let (year, month, day) = self.written().date();
        let day = day + self.written_days;
        self.written_days = 0;
        let total = year * 12 + (month - 1) + months;
        self.set_date(total.div_euclid(12), total.rem_euclid(12) + 1, day);
    }
}

/// A number of a few digits, with or without a sign: what modifiers mostly say.
fn small(text: &[u8]) -> Option<f64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1.0, digits),
        [b'+', digits @ ..] => (1.0, digits),
        digits => (1.0, digits),
    };
    let is_small = (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let value = |number: u32, digit: &u8| number * 10 + u32::from(digit - b'0');
    is_small.then(|| sign * f64::from(digits.iter().fold(0, value)))
}

fn is_subsecond(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"subsec") || text.eq_ignore_ascii_case(b"subsecond")
}
