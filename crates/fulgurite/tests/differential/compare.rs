//! When two answers count as the same: exactly where SQL defines them, loosely
//! where it leaves a choice.

use crate::common::{Answer, Failure, Value};

/// What an answer's statement leaves open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Check {
    /// The ORDER BY names a total order: rows are compared in place.
    pub total_order: bool,
    /// A row stands for several equal ones (1 and 1.0, 'a' and 'A'): values are
    /// compared as equal numbers and folded texts.
    pub loose: bool,
    /// Rows are changed in the order of a plan: which of several constraints is
    /// broken first is open, that one is broken is not.
    pub any_constraint: bool,
    /// Sums of reals may differ in their last digits, and a sum that overflows
    /// on the way may do so in one order of rows only.
    pub sums: bool,
    /// NOCASE is at work, under which SQLite takes texts of one length for equal
    /// that agree up to a zero byte (a listed deviation).
    pub no_case: bool,
}

/// What differs, or nothing.
pub fn difference(check: Check, sqlite: &Answer, ours: &Answer) -> Option<String> {
    let overflowed = |answer: &Answer| {
        let failure = answer.failure.as_ref();
        failure.is_some_and(|failure| failure.message == "integer overflow")
    };
    if check.sums && (overflowed(sqlite) || overflowed(ours)) {
        return None;
    }
    match (&sqlite.failure, &ours.failure) {
        (None, None) => {}
        (Some(a), Some(b)) if check.any_constraint && constraint(a) && constraint(b) => {
            return None;
        }
        (Some(a), Some(b)) if a.extended_code == b.extended_code && a.message == b.message => {
            return None;
        }
        (a, b) => {
            let say = |failure: &Option<_>| {
                failure
                    .as_ref()
                    .map_or("no error".into(), ToString::to_string)
            };
            return Some(format!("SQLite: {}\n  ours: {}", say(a), say(b)));
        }
    }
    if sqlite.columns != ours.columns {
        return Some(format!(
            "columns {:?}\n    ours {:?}",
            sqlite.columns, ours.columns
        ));
    }
    if check.no_case && (has_zero_byte(&sqlite.rows) || has_zero_byte(&ours.rows)) {
        return None;
    }
    let (a, b) = (canonical(check, &sqlite.rows), canonical(check, &ours.rows));
    (a != b).then(|| {
        let (only_sqlite, only_ours) = (missing(&a, &b), missing(&b, &a));
        let first = a.iter().zip(&b).position(|(a, b)| a != b);
        format!(
            "SQLite: {}\n  ours: {}\n  only SQLite's: {}\n  only ours: {}\n  first difference: {}",
            shown(&sqlite.rows),
            shown(&ours.rows),
            only_sqlite.join("; "),
            only_ours.join("; "),
            first.map_or("the number of rows".into(), |at| format!("row {at}")),
        )
    })
}

fn has_zero_byte(rows: &[Vec<Value>]) -> bool {
    let zero = |value: &Value| matches!(value, Value::Text(bytes) if bytes.contains(&0));
    rows.iter().flatten().any(zero)
}

/// A few of the rows that `rows` has and `others` has not, or has fewer times.
fn missing(rows: &[String], others: &[String]) -> Vec<String> {
    let mut others: Vec<&String> = others.iter().collect();
    let mut missing = Vec::new();
    for row in rows {
        match others.iter().position(|other| *other == row) {
            Some(at) => drop(others.swap_remove(at)),
            None => missing.push(row.clone()),
        }
    }
    missing.truncate(4);
    missing
}

fn constraint(failure: &Failure) -> bool {
    failure.extended_code & 0xFF == 19
}

fn canonical(check: Check, rows: &[Vec<Value>]) -> Vec<String> {
    let mut rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let values: Vec<String> = row.iter().map(|value| key(check, value)).collect();
            values.join("|")
        })
        .collect();
    if !check.total_order {
        rows.sort();
    }
    rows
}

/// Equal for values that count as the same.
fn key(check: Check, value: &Value) -> String {
    match value {
        Value::Integer(value) if check.loose => number(*value as f64),
        Value::Real(value) if check.loose => number(*value),
        Value::Real(value) if value.is_nan() => "NaN".into(),
        Value::Real(value) => format!("real {value:?}"),
        Value::Text(bytes) if check.loose => String::from_utf8_lossy(bytes)
            .to_ascii_lowercase()
            .trim_end()
            .into(),
        other => other.to_string(),
    }
}

fn number(value: f64) -> String {
    format!("{:.9e}", value + 0.0)
}

fn shown(rows: &[Vec<Value>]) -> String {
    let first: Vec<String> = rows
        .iter()
        .take(12)
        .map(|row| {
            let values: Vec<String> = row.iter().map(ToString::to_string).collect();
            format!("({})", values.join(", "))
        })
        .collect();
    format!("{} rows {}", rows.len(), first.join(" "))
}
