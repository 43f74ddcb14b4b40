//! How results are shown.

mod boxes;
mod grid;
pub mod json;
mod json_rows;
mod lines;
mod look;
mod plain;

use std::io::{self, Write};

use clap::ValueEnum;
use fulgurite::Rows;
use fulgurite::types::{Value, ValueRef};

pub use look::Look;

/// A way to show results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Values between the characters 0x1f and 0x1e.
    Ascii,
    /// Tables drawn with lines.
    Box,
    /// Columns under their names.
    Column,
    /// Comma-separated values.
    Csv,
    /// Rows of an HTML table.
    Html,
    /// INSERT statements.
    Insert,
    /// An array of objects a query.
    Json,
    /// One line a value.
    Line,
    /// Values between bars.
    List,
    /// A table of Markdown.
    Markdown,
    /// One object a statement, results and errors.
    Objects,
    /// Values as SQL literals.
    Quote,
    /// Tables drawn with plain characters.
    Table,
    /// Values between tabs.
    Tabs,
}

/// What showing a result comes to: whether output or the query failed.
pub type Shown = io::Result<fulgurite::Result<()>>;

/// Runs a query to its end and shows its rows. Where the query fails on its
/// way, the rows before it may have been shown, except as objects.
pub fn show(look: &Look, columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    match look.mode {
        Mode::Box => boxes::show(look, columns, rows, out),
        Mode::Column | Mode::Table | Mode::Markdown => grid::show(look, columns, rows, out),
        Mode::Json => json_rows::show(columns, rows, out),
        Mode::Line => lines::show(look, columns, rows, out),
        Mode::Objects => json::show(columns, rows, out),
        Mode::Ascii
        | Mode::Csv
        | Mode::Html
        | Mode::Insert
        | Mode::List
        | Mode::Quote
        | Mode::Tabs => plain::show(look, columns, rows, out),
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

/// A value for people: NULL as they want it, blobs as literals, control characters made
/// visible.
fn for_people(value: ValueRef<'_>, null: &str) -> String {
    match value {
        ValueRef::Null => null.to_owned(),
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
    look: &Look,
    columns: &[&str],
    rows: &[Vec<Value>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns: Vec<String> = columns.iter().map(|c| (*c).to_owned()).collect();
    match look.mode {
        Mode::Objects => json::show_values(&columns, rows, out),
        _ => boxes::show_values(look, &columns, rows, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_readable() {
        assert_eq!(for_people(ValueRef::Null, "NULL"), "NULL");
        assert_eq!(for_people(ValueRef::Blob(&[0, 0xff]), "NULL"), "x'00ff'");
        assert_eq!(
            for_people(ValueRef::Blob(&[7; 33]), "NULL"),
            format!("x'{}…' (33 bytes)", "07".repeat(32))
        );
        assert_eq!(
            for_people(ValueRef::Text(b"a\x1b[1m\tb\nc"), "NULL"),
            "a^[[1m    b\nc"
        );
        assert_eq!(for_people(ValueRef::Integer(-5), "NULL"), "-5");
        assert_eq!(for_people(ValueRef::Real(1.0), "NULL"), "1.0");
    }
}
