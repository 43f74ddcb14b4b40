//! A point in time and its calendar.

use super::super::Context;

/// Milliseconds in a day.
pub(super) const MS_A_DAY: i64 = 86_400_000;
/// Julian milliseconds of 1 January 1970.
pub(super) const UNIX_EPOCH_MS: i64 = 210_866_760_000_000;
/// The last millisecond of the year 9999.
const MS_MAX: i64 = 464_269_060_799_999;

/// Milliseconds since Julian day 0, and how the text about it has gone so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Instant {
    /// The time.
    pub ms: i64,
    /// A bare number whose meaning a modifier may still change.
    pub raw: Option<f64>,
    /// The number is no Julian day, so a modifier must say what it is.
    pub undecided: bool,
    /// Known to be in UTC: `utc` leaves it.
    pub is_utc: bool,
    /// In local time: `localtime` leaves it.
    pub is_local: bool,
    /// Show fractions of seconds.
    pub subsecond: bool,
    /// Days by which the day passed its month's end, for `floor`.
    pub floor_days: i64,
    /// The same while the date still stands as it was written.
    pub written_days: i64,
}

impl Instant {
    /// The statement's time.
    pub fn now(context: &mut Context) -> Instant {
        Instant {
            ms: context.now_ms().saturating_add(UNIX_EPOCH_MS),
            is_utc: true,
            ..Instant::default()
        }
    }

    /// Within the years that can be shown, and decided.
    pub fn is_valid(&self) -> bool {
        !self.undecided && (0..=MS_MAX).contains(&self.ms)
    }

    /// Midnight of a date; days beyond the month's end run into the next one.
    pub fn from_date(year: i64, month: i64, day: i64) -> i64 {
        days_from_civil(year, month, 1) * MS_A_DAY + (day - 1) * MS_A_DAY + UNIX_EPOCH_MS
    }

    /// Year, month, day.
    pub fn date(&self) -> (i64, i64, i64) {
        civil_from_days((self.ms - UNIX_EPOCH_MS).div_euclid(MS_A_DAY))
    }

    /// Milliseconds since midnight.
    pub fn ms_of_day(&self) -> i64 {
        (self.ms - UNIX_EPOCH_MS).rem_euclid(MS_A_DAY)
    }

    /// Hour, minute, second, millisecond.
    pub fn time(&self) -> (i64, i64, i64, i64) {
        let ms = self.ms_of_day();
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
    }

    /// 0 is Monday.
    pub fn weekday_from_monday(&self) -> i64 {
        // 1 January 1970 was a Thursday.
        ((self.ms - UNIX_EPOCH_MS).div_euclid(MS_A_DAY) + 3).rem_euclid(7)
    }

    /// 0 is 1 January.
    pub fn day_of_year(&self) -> i64 {
        let (year, ..) = self.date();
        (self.ms - Self::from_date(year, 1, 1)).div_euclid(MS_A_DAY)
    }

    /// ISO 8601 year and week: those of the week's Thursday.
    pub fn iso_week(&self) -> (i64, i64) {
        let thursday = Instant {
            ms: self.ms + (3 - self.weekday_from_monday()) * MS_A_DAY,
            ..*self
        };
        (thursday.date().0, thursday.day_of_year() / 7 + 1)
    }

    /// Moves to another date, keeping the time of day.
    pub fn set_date(&mut self, year: i64, month: i64, day: i64) {
        self.ms = Self::from_date(year, month, day) + self.ms_of_day();
        self.floor_days = (day - month_length(year, month)).max(0);
    }
}

/// Days of a month.
pub(super) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1 January 1970 in the proleptic Gregorian calendar (the algorithm
/// of Hinnant's "chrono-Compatible Low-Level Date Algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * mp + 2) / 5 + 1)
}
