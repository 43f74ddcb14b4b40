//! Local time: the machine's zone, as the C library reads it from `TZ` and
//! `/etc/localtime`.
//!
//! The library is asked about the years 1970 to 2037 only, which every zone's rules
//! cover. Another year counts as one of 1999 to 2003, of the same length where that
//! matters, as in SQLite: summer time is where it was around the year 2000.

use super::super::Context;
use super::instant::{Instant, UNIX_EPOCH_MS};
use crate::error::{Error, Result};

/// Milliseconds from 1970 to 18 January 2038, from where on 32 bits of seconds may not do.
const ASKED_END_MS: i64 = 2_147_385_600_000;
/// Guesses at a time of which only the local one is known. As many as SQLite makes: a time
/// that clocks skip has no last one.
const GUESSES: usize = 4;

impl Instant {
    /// `localtime`: the time that clocks show here.
    pub(super) fn set_local(&mut self, context: &mut Context) -> Result<()> {
        context.ask_clock();
        if !self.is_local {
            *self = self.moved(local(self)?);
        }
        (self.is_local, self.is_utc) = (true, false);
        Ok(())
    }

    /// `utc`: the time at which clocks show this one here. It forgets `subsec`, as SQLite
    /// does.
    pub(super) fn set_utc(&mut self, context: &mut Context) -> Result<()> {
        context.ask_clock();
        if !self.is_utc {
            let mut guess = Instant {
                subsecond: false,
                ..self.moved(self.ms)
            };
            for _ in 1..GUESSES {
                guess.ms -= local(&guess)? - self.ms;
            }
            *self = guess;
        }
        (self.is_local, self.is_utc) = (false, true);
        Ok(())
    }
}

/// The local time of an instant, in the same milliseconds as its own.
fn local(at: &Instant) -> Result<i64> {
    let (year, month, day) = at.date();
    let asked = (0..=ASKED_END_MS).contains(&(at.ms - UNIX_EPOCH_MS));
    let years = if asked { 0 } else { 2000 + year % 4 - year };
    let known = Instant::from_date(year + years, month, day) + at.ms_of_day();
    let fields = broken_down((known - UNIX_EPOCH_MS).div_euclid(1000))
        .ok_or_else(|| Error::sql("local time unavailable"))?;
    let field = |value: libc::c_int| i64::from(value);
    let day = Instant::from_date(
        field(fields.tm_year) + 1900 - years,
        field(fields.tm_mon) + 1,
        field(fields.tm_mday),
    );
    let seconds = (field(fields.tm_hour) * 60 + field(fields.tm_min)) * 60 + field(fields.tm_sec);
    Ok(day + seconds * 1000 + at.ms.rem_euclid(1000))
}

/// What the C library says of a second since 1970.
fn broken_down(second: i64) -> Option<libc::tm> {
    let second = libc::time_t::try_from(second).ok()?;
    let mut fields = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live values of this frame, of the types that the
    // function is declared with, and it keeps neither. Unlike `localtime` it has no state
    // of its own that another thread could change meanwhile; the zone is the library's,
    // which locks it. Zeros are a valid `tm`, of integers and a pointer that is not read.
    unsafe {
        let known = libc::localtime_r(&raw const second, fields.as_mut_ptr());
        (!known.is_null()).then(|| fields.assume_init())
    }
}
