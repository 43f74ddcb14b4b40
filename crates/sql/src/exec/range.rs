//! Bounds of scans: of rowids, and of index keys.

use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::key::{self, AFTER, KeyColumn};
use crate::plan::physical::{Bound, Range};
use crate::schema::IndexColumn;
use crate::value::{Affinity, ValueRef};

/// How an index column is encoded.
pub fn key_column(column: &IndexColumn) -> KeyColumn {
    KeyColumn {
        collation: column.collation,
        descending: column.descending,
        real: column.affinity == Some(Affinity::Real),
    }
}

/// The rowid that a value names: an integer after NUMERIC affinity.
#[inline]
pub fn rowid_of(value: ValueRef<'_>) -> Option<i64> {
    if let ValueRef::Integer(i) = value {
        return Some(i);
    }
    match Affinity::Numeric.apply(value).as_ref() {
        ValueRef::Integer(i) => Some(i),
        _ => None,
    }
}

/// Both ends, inclusive; None: nothing is between them.
pub fn rowid_range(range: &Range, cx: &mut Context<'_, '_>) -> Result<Option<(i64, i64)>> {
    let low = match &range.low {
        Some(bound) => rowid_low(bound, cx)?,
        None => Some(i64::MIN),
    };
    let high = match &range.high {
        Some(bound) => rowid_high(bound, cx)?,
        None => Some(i64::MAX),
    };
    Ok(match (low, high) {
        (Some(low), Some(high)) if low <= high => Some((low, high)),
        _ => None,
    })
}

/// 2^63, the first real above all rowids.
const ABOVE_ALL: f64 = 9_223_372_036_854_775_808.0;

fn rowid_low(bound: &Bound, cx: &mut Context<'_, '_>) -> Result<Option<i64>> {
    let value = eval(&bound.expr, Row::Empty, cx)?;
    Ok(match Affinity::Numeric.apply(value.as_ref()).as_ref() {
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
        ValueRef::Integer(i) if bound.inclusive => Some(i),
        ValueRef::Integer(i) => i.checked_add(1),
        ValueRef::Real(r) if r >= ABOVE_ALL => None,
        ValueRef::Real(r) if r < -ABOVE_ALL => Some(i64::MIN),
        // An integral real became an integer above, unless it is too large to
        // tell; what is left lies between two rowids.
        ValueRef::Real(r) => {
            let up = r.ceil() as i64;
            if up as f64 == r && !bound.inclusive {
                up.checked_add(1)
            } else {
                Some(up)
            }
        }
    })
}

fn rowid_high(bound: &Bound, cx: &mut Context<'_, '_>) -> Result<Option<i64>> {
    let value = eval(&bound.expr, Row::Empty, cx)?;
    Ok(match Affinity::Numeric.apply(value.as_ref()).as_ref() {
        ValueRef::Null => None,
        ValueRef::Text(_) | ValueRef::Blob(_) => Some(i64::MAX),
        ValueRef::Integer(i) if bound.inclusive => Some(i),
        ValueRef::Integer(i) => i.checked_sub(1),
        ValueRef::Real(r) if r >= ABOVE_ALL => Some(i64::MAX),
        ValueRef::Real(r) if r < -ABOVE_ALL => None,
        ValueRef::Real(r) => {
            let down = r.floor() as i64;
            if down as f64 == r && !bound.inclusive {
                down.checked_sub(1)
            } else {
                Some(down)
            }
        }
    })
}

/// Keys from `start` (inclusive) up to `end` (exclusive).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct KeyRange {
    /// First key.
    pub start: Vec<u8>,
    /// First key after it; empty: no end.
    pub end: Vec<u8>,
}

/// Narrows the keys that begin as `keys.start` does to those whose next part, encoded as
/// `column` says, lies in `range`; behind all columns that is the rowid. False: nothing can.
pub fn key_range(
    keys: &mut KeyRange,
    column: Option<&IndexColumn>,
    range: &Range,
    cx: &mut Context<'_, '_>,
) -> Result<bool> {
    keys.end.clone_from(&keys.start);
    if range.low.is_none() && range.high.is_none() {
        if !keys.end.is_empty() {
            keys.end.push(AFTER);
        }
        return Ok(true);
    }
    let Some(column) = column else {
        let rowids = rowid_range(range, cx)?;
        if let Some((low, high)) = rowids {
            key::encode_rowid(&mut keys.start, low);
            key::encode_rowid(&mut keys.end, high);
            keys.end.push(AFTER);
        }
        return Ok(rowids.is_some());
    };
    let how = key_column(column);
    // Ascending, the low bound starts the range; descending, it ends it.
    let (low, high) = match how.descending {
        false => (&mut keys.start, &mut keys.end),
        true => (&mut keys.end, &mut keys.start),
    };
    match &range.low {
        Some(bound) => {
            if !bound_value(low, bound, column, how, cx)? {
                return Ok(false);
            }
            if bound.inclusive == how.descending {
                low.push(AFTER);
            }
        }
        None => {
            key::encode(low, ValueRef::Null, how);
            if !how.descending {
                low.push(AFTER);
            }
        }
    }
    match &range.high {
        Some(bound) => {
            if !bound_value(high, bound, column, how, cx)? {
                return Ok(false);
            }
            if bound.inclusive != how.descending {
                high.push(AFTER);
            }
        }
        None if how.descending => {}
        None => high.push(AFTER),
    }
    Ok(keys.start < keys.end)
}

/// The keys that start with `prefix` and whose next part, encoded as `column` says, is a
/// blob.
pub fn blob_range(prefix: Vec<u8>, column: &IndexColumn) -> KeyRange {
    let mut least = prefix.clone();
    key::encode(&mut least, ValueRef::Blob(&[]), key_column(column));
    match column.descending {
        false => {
            let mut end = prefix;
            end.push(AFTER);
            KeyRange { start: least, end }
        }
        true => {
            least.push(AFTER);
            KeyRange {
                start: prefix,
                end: least,
            }
        }
    }
}

/// Appends a bound's value; false for NULL.
fn bound_value(
    out: &mut Vec<u8>,
    bound: &Bound,
    column: &IndexColumn,
    how: KeyColumn,
    cx: &mut Context<'_, '_>,
) -> Result<bool> {
    let value = eval(&bound.expr, Row::Empty, cx)?;
    if value.as_ref().is_null() {
        return Ok(false);
    }
    encode_bound(out, value.as_ref(), column, how);
    Ok(true)
}

/// The first part of a key with this value; `behind`: what is behind all such keys.
pub fn bound_key(value: ValueRef<'_>, column: &IndexColumn, behind: bool) -> Vec<u8> {
    let mut key = Vec::new();
    encode_bound(&mut key, value, column, key_column(column));
    if behind {
        key.push(AFTER);
    }
    key
}

fn encode_bound(out: &mut Vec<u8>, value: ValueRef<'_>, column: &IndexColumn, how: KeyColumn) {
    // As the comparison sees it, not as the column would store it: a REAL column
    // would round large integers, and equal what it is not equal to.
    let affinity = column.affinity.unwrap_or(Affinity::Blob);
    let value = affinity.apply_comparison(value);
    key::encode(out, value.as_ref(), how);
}
