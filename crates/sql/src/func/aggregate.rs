//! Aggregates: count, sum, total, avg, min, max, group_concat, and those of JSON.

use std::cmp::Ordering;

use super::argument;
use super::json::aggregate::{Group, JsonGroup};
use super::sum::{Sum, Total};
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
}

/// A function over the rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregateFunction {
    /// Its name in lower case.
    pub name: &'static str,
    /// What it computes.
    pub kind: AggregateKind,
    /// Fewest arguments.
    pub arguments_min: usize,
    /// Most arguments.
    pub arguments_max: usize,
    /// May raise an error.
    pub fallible: bool,
}

impl AggregateFunction {
    /// Asks which of its arguments are texts of JSON.
    pub fn takes_json(&self) -> bool {
        matches!(self.kind, AggregateKind::Json(_))
    }

    /// Its accumulators may hold values of any size.
    pub fn holds_values(&self) -> bool {
        use AggregateKind::{GroupConcat, Json, Max, Min};
        matches!(self.kind, Min | Max | GroupConcat | Json(_))
    }

    /// Its accumulators can take back rows, so that a frame may move on.
    pub fn takes_back(&self) -> bool {
        use AggregateKind::{Avg, Count, Sum, Total};
        matches!(self.kind, Count | Sum | Total | Avg)
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
        }
    }
}

/// The state of one aggregate in one group.
#[derive(Debug, Clone)]
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
        }
        Ok(false)
    }

    /// Takes back a row that was taken, where the function
    /// [can](AggregateFunction::takes_back).
    #[inline]
    pub fn remove(&mut self, arguments: &[ValueRef<'_>]) {
        let value = argument(arguments, 0);
        match self {
            Accumulator::Count(n) => *n -= i64::from(arguments.is_empty() || !value.is_null()),
            Accumulator::Sum(sum) | Accumulator::Total(sum) | Accumulator::Avg(sum) => {
                sum.remove(value);
            }
            _ => {}
        }
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
            _ => return self.step_each(values.iter().map(|i| ValueRef::Integer(*i))),
        }
        Ok(None)
    }

    /// Takes a vector of reals; see [`Accumulator::step_integers`].
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    pub fn step_reals(&mut self, values: &[f64]) -> Result<Option<usize>> {
        match self {
            Accumulator::Sum(sum) | Accumulator::Total(sum) | Accumulator::Avg(sum) => {
                sum.add_reals(values)
            }
            Accumulator::Count(_) => self.step_count(values.len() as u64),
            _ => return self.step_each(values.iter().map(|r| ValueRef::Real(*r))),
        }
        Ok(None)
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

    /// The aggregate's value.
    ///
    /// # Errors
    /// `integer overflow` from `sum`, where the exact total leaves 64 bits.
    pub fn finish(&self) -> Result<Value> {
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
