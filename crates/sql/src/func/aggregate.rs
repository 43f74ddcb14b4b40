//! Aggregates: count, sum, total, avg, min, max, group_concat, and those of JSON.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::argument;
use super::json::aggregate::{Group, JsonGroup};
use super::sum::{Sum, Total};
use super::user::{UserFunction, UserState};
use crate::error::{Error, Result};
use crate::value::{Collation, LENGTH_MAX, Value, ValueRef, compare};

/// Which aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AggregateKind {
    Count,
    Sum,
    Total,
    Avg,
    Min,
    Max,
    GroupConcat,
    Json(JsonGroup),
    /// One of the program's.
    User,
}

/// A function over the rows of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateFunction {
    /// Its name in lower case.
    pub name: Cow<'static, str>,
    /// What it computes.
    pub kind: AggregateKind,
    /// Fewest arguments.
    pub arguments_min: usize,
    /// Most arguments.
    pub arguments_max: usize,
    /// May raise an error.
    pub fallible: bool,
    /// The program's function, if it is one.
    pub user: Option<Arc<UserFunction>>,
}

impl AggregateFunction {
    /// Asks which of its arguments are texts of JSON.
    pub fn takes_json(&self) -> bool {
        matches!(self.kind, AggregateKind::Json(_))
    }

    /// It may be used over a window.
    pub fn is_windowed(&self) -> bool {
        self.user.as_ref().is_none_or(|user| user.is_window())
    }

    /// Its accumulators may hold values of any size.
    pub fn holds_values(&self) -> bool {
        use AggregateKind::{GroupConcat, Json, Max, Min};
        matches!(self.kind, Min | Max | GroupConcat | Json(_))
    }

    /// Its accumulators can take back rows, so that a frame may move on.
    pub fn takes_back(&self) -> bool {
        use AggregateKind::{Avg, Count, Sum, Total, User};
        matches!(self.kind, Count | Sum | Total | Avg | User)
    }

    /// An accumulator for a group without rows.
    pub fn accumulator(&self) -> Accumulator {
        match self.kind {
            AggregateKind::Count => Accumulator::Count(0),
            AggregateKind::Sum => Accumulator::Sum(Sum::default()),
            AggregateKind::Total => Accumulator::Total(Sum::default()),
            AggregateKind::Avg => Accumulator::Avg(Sum::default()),
            AggregateKind::Min => Accumulator::Min(Value::Null),
            AggregateKind::Max => Accumulator::Max(Value::Null),
            AggregateKind::GroupConcat => Accumulator::GroupConcat(None),
            AggregateKind::Json(of) => Accumulator::Json(Group::new(of)),
            AggregateKind::User => {
                let state = self.user.as_deref().and_then(UserState::new);
                Accumulator::User(state.map(Box::new))
            }
        }
    }
}

/// The state of one aggregate in one group.
#[derive(Debug)]
pub enum Accumulator {
    /// Rows, or values that are not NULL.
    Count(i64),
    /// `sum`
    Sum(Sum),
    /// `total`
    Total(Sum),
    /// `avg`
    Avg(Sum),
    /// The least value so far.
    Min(Value),
    /// The greatest value so far.
    Max(Value),
    /// The texts so far, with their separators.
    GroupConcat(Option<Vec<u8>>),
    /// The array or object so far.
    Json(Group),
    /// That of a function of the program.
    User(Option<Box<UserState>>),
}

impl Accumulator {
    /// Takes one row's arguments (none for `count(*)`). True where the row
    /// became the least or greatest: bare columns beside `min` or `max` come
    /// from it.
    ///
    /// # Errors
    /// `SQLITE_TOOBIG` from `group_concat`, those of JSON's.
    #[inline]
    pub fn step(&mut self, arguments: &[ValueRef<'_>], collation: Collation) -> Result<bool> {
        let value = argument(arguments, 0);
        match self {
            Accumulator::Count(n) => *n += i64::from(arguments.is_empty() || !value.is_null()),
            Accumulator::Sum(sum) | Accumulator::Total(sum) | Accumulator::Avg(sum) => {
                sum.add(value)
            }
            Accumulator::Min(least) => {
                return Ok(replace_if(least, value, collation, Ordering::Less));
            }
            Accumulator::Max(greatest) => {
                return Ok(replace_if(greatest, value, collation, Ordering::Greater));
            }
            Accumulator::GroupConcat(text) => {
                return concat(text, value, arguments.get(1).copied());
            }
            Accumulator::Json(group) => group.step(arguments)?,
            Accumulator::User(Some(state)) => state.step(arguments)?,
            Accumulator::User(None) => {}
        }
        Ok(false)
    }

    /// Takes back a row that was taken, where the function
    /// [can](AggregateFunction::takes_back).
    ///
    /// # Errors
    /// Those of a function of the program.
    #[inline]
    pub fn remove(&mut self, arguments: &[ValueRef<'_>]) -> Result<()> {
        let value = argument(arguments, 0);
        match self {
            Accumulator::Count(n) => *n -= i64::from(arguments.is_empty() || !value.is_null()),
            Accumulator::Sum(sum) | Accumulator::Total(sum) | Accumulator::Avg(sum) => {
                sum.remove(value);
            }
            Accumulator::User(Some(state)) => state.remove(arguments)?,
            _ => {}
        }
        Ok(())
    }

    /// Takes that many rows of `count(*)`, or values known not to be NULL of
    /// `count(x)`.
    pub fn step_count(&mut self, rows: u64) {
        if let Accumulator::Count(n) = self {
            *n = n.saturating_add_unsigned(rows);
        }
    }

    /// Takes a vector of integers. For `min` and `max`, the place of the row
    /// that became the extreme.
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    #[inline]
    pub fn step_integers(&mut self, values: &[i64]) -> Result<Option<usize>> {
        match self {
            Accumulator::Sum(sum) | Accumulator::Total(sum) | Accumulator::Avg(sum) => {
                sum.add_integers(values)
            }
            Accumulator::Count(_) => self.step_count(values.len() as u64),
            Accumulator::Min(_) | Accumulator::Max(_) => return self.step_extreme(values),
            _ => return self.step_each(values.iter().map(|i| ValueRef::Integer(*i))),
        }
        Ok(None)
    }

    /// Takes integers, of which only the least or greatest one counts. A function of its
    /// own: within the other it kept sums of groups, one value a call, from being inlined.
    #[inline(never)]
    fn step_extreme(&mut self, values: &[i64]) -> Result<Option<usize>> {
        let one = match self {
            Accumulator::Min(_) => values.iter().min(),
            _ => values.iter().max(),
        };
        let Some(one) = one else { return Ok(None) };
        let changed = self.step(&[ValueRef::Integer(*one)], Collation::Binary)?;
        match changed {
            true => Ok(values.iter().position(|value| value == one)),
            false => Ok(None),
        }
    }

    /// Takes reals, none of them NaN; see [`Accumulator::step_integers`].
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    #[inline]
    pub fn step_reals(
        &mut self,
        mut values: impl ExactSizeIterator<Item = f64>,
    ) -> Result<Option<usize>> {
        let one = match self {
            Accumulator::Sum(sum) | Accumulator::Total(sum) | Accumulator::Avg(sum) => {
                sum.add_reals(values);
                return Ok(None);
            }
            Accumulator::Count(_) => {
                self.step_count(values.len() as u64);
                return Ok(None);
            }
            Accumulator::Min(_) => first_by(&mut values, |one, other| one < other),
            Accumulator::Max(_) => first_by(&mut values, |one, other| one > other),
            _ => return self.step_each(values.map(ValueRef::Real)),
        };
        let Some((place, one)) = one else {
            return Ok(None);
        };
        let changed = self.step(&[ValueRef::Real(one)], Collation::Binary)?;
        Ok(changed.then_some(place))
    }

    fn step_each<'a>(
        &mut self,
        values: impl Iterator<Item = ValueRef<'a>>,
    ) -> Result<Option<usize>> {
        let mut extreme = None;
        for (i, value) in values.enumerate() {
            if self.step(&[value], Collation::Binary)? {
                extreme = Some(i);
            }
        }
        Ok(extreme)
    }

    /// What the rows so far give; others may follow.
    ///
    /// # Errors
    /// As [`Accumulator::finish`].
    pub fn value(&mut self) -> Result<Value> {
        match self {
            Accumulator::User(Some(state)) => state.value(),
            _ => self.finish(),
        }
    }

    /// The aggregate's value.
    ///
    /// # Errors
    /// `integer overflow` from `sum`, where the exact total leaves 64 bits; those of a
    /// function of the program.
    pub fn finish(&mut self) -> Result<Value> {
        Ok(match self {
            Accumulator::Count(n) => Value::Integer(*n),
            Accumulator::Sum(sum) if sum.count() == 0 => Value::Null,
            Accumulator::Sum(sum) => match sum.total() {
                Total::Integer(i) => {
                    Value::Integer(i64::try_from(i).map_err(|_| Error::integer_overflow())?)
                }
                Total::Real(r) => Value::real(r),
            },
            Accumulator::Total(sum) => Value::real(sum.real()),
            Accumulator::Avg(sum) if sum.count() == 0 => Value::Null,
            Accumulator::Avg(sum) => Value::real(sum.real() / sum.count() as f64),
            Accumulator::Min(value) | Accumulator::Max(value) => value.clone(),
            Accumulator::GroupConcat(text) => text.clone().map_or(Value::Null, Value::Text),
            Accumulator::Json(group) => group.finish()?,
            Accumulator::User(Some(state)) => state.finish()?,
            Accumulator::User(None) => Value::Null,
        })
    }

    /// Bytes held beyond the accumulator itself, for the memory budget.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Accumulator::Min(value) | Accumulator::Max(value) => value.heap_bytes(),
            Accumulator::GroupConcat(Some(text)) => text.capacity(),
            Accumulator::Json(group) => group.heap_bytes(),
            _ => 0,
        }
    }
}

/// Keeps the first of equals; NULL is passed over.
#[inline]
fn replace_if(
    held: &mut Value,
    value: ValueRef<'_>,
    collation: Collation,
    wanted: Ordering,
) -> bool {
    if value.is_null() || !held.is_null() && compare(value, held.as_ref(), collation) != wanted {
        return false;
    }
    held.assign(value);
    true
}

fn concat(
    text: &mut Option<Vec<u8>>,
    value: ValueRef<'_>,
    separator: Option<ValueRef<'_>>,
) -> Result<bool> {
    if value.is_null() {
        return Ok(false);
    }
    match text {
        None => {
            let mut first = Vec::new();
            value.append_text(&mut first);
            *text = Some(first);
        }
        Some(text) => {
            match separator {
                None => text.push(b','),
                Some(separator) => separator.append_text(text),
            }
            value.append_text(text);
            if text.len() > LENGTH_MAX {
                return Err(Error::too_big());
            }
        }
    }
    Ok(false)
}

/// The place and the value of the first of these that is before all others.
fn first_by(
    values: &mut impl Iterator<Item = f64>,
    is_before: impl Fn(f64, f64) -> bool,
) -> Option<(usize, f64)> {
    let mut values = values.enumerate();
    let first = values.next()?;
    Some(
        values.fold(first, |best, next| match is_before(next.1, best.1) {
            true => next,
            false => best,
        }),
    )
}
