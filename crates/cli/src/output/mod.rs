//! How results are shown.

mod boxes;
mod csv_rows;
pub mod json;
mod lines;

use std::io::{self, Write};

use clap::ValueEnum;
use fulgurite::Rows;
use fulgurite::types::{Value, ValueRef};

/// A way to show results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Tables drawn with lines.
    Box,
    /// One object a statement.
    Json,
    /// Comma-separated values with a heading.
    Csv,
    /// One line a value.
    Line,
}

/// What showing a result comes to: whether output or the query failed.
pub type Shown = io::Result<fulgurite::Result<()>>;

/// Runs a query to its end and shows its rows. Where the query fails on its
/// way, the rows before it may have been shown, except as JSON.
pub fn show(mode: Mode, columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    match mode {
        Mode::Box => boxes::show(columns, rows, out),
        Mode::Json => json::show(columns, rows, out),
        Mode::Csv => csv_rows::show(columns, rows, out),
        Mode::Line => lines::show(columns, rows, out),
    }
}

/// Unwraps an engine's result within a function that answers with [`Shown`].
macro_rules! or_answer {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(e) => return Ok(Err(e)),
        }
    };
}
use or_answer;

/// Bytes of a blob that are shown to people.
const BLOB_SHOWN_MAX: usize = 32;

/// A value for people: NULL by name, blobs as literals, control characters made
/// visible.
fn for_people(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Blob(b) => match b.get(..BLOB_SHOWN_MAX) {
            Some(start) if b.len() > BLOB_SHOWN_MAX => {
                format!("x'{}…' ({} bytes)", hex(start), b.len())
            }
            _ => format!("x'{}'", hex(b)),
        },
        _ => visible(&String::from_utf8_lossy(&value.to_sql_text())),
    }
}

fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            // As terminals write them: ^A for 1, ^[ for escape.
            '\0'..='\x1f' => out.extend(['^', char::from(c as u8 + b'@')]),
            '\x7f' => out.push_str("^?"),
            _ => out.push(c),
        }
    }
    out
}

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|d| DIGITS[usize::from(d)])
        .collect()
}

/// Whether a value is a number, for alignment.
fn is_number(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Integer(_) | ValueRef::Real(_))
}

/// Shows values that were not queried, as a result of one statement.
pub fn show_values(
    mode: Mode,
    columns: &[&str],
    rows: &[Vec<Value>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns: Vec<String> = columns.iter().map(|c| (*c).to_owned()).collect();
    match mode {
        Mode::Json => json::show_values(&columns, rows, out),
        _ => boxes::show_values(&columns, rows, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_readable() {
        assert_eq!(for_people(ValueRef::Null), "NULL");
        assert_eq!(for_people(ValueRef::Blob(&[0, 0xff])), "x'00ff'");
        assert_eq!(
            for_people(ValueRef::Blob(&[7; 33])),
            format!("x'{}…' (33 bytes)", "07".repeat(32))
        );
        assert_eq!(
            for_people(ValueRef::Text(b"a\x1b[1m\tb\nc")),
            "a^[[1m    b\nc"
        );
        assert_eq!(for_people(ValueRef::Integer(-5)), "-5");
        assert_eq!(for_people(ValueRef::Real(1.0)), "1.0");
    }
}
