//! `.import`: rows of a text file into a table.

use std::fs::File;
use std::io;

use fulgurite::types::ValueRef;
use fulgurite::{Connection, Error, params_from_iter};

use super::open_file;
use crate::dump::quoted;
use crate::output::Mode;
use crate::shell::Shell;

/// Runs `.import [--csv|--ascii] [--skip N] FILE TABLE`.
pub fn run(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let mut separator = match (shell.look.mode, &shell.look.separator) {
        (Mode::Tabs | Mode::Ascii, None) | (_, Some(_)) => single_byte(shell.look.separator()),
        _ => Some(b','),
    };
    let mut record_end = None;
    let (mut skip, mut names) = (0, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--csv" | "-csv" => separator = Some(b','),
            "--ascii" | "-ascii" => (separator, record_end) = (Some(0x1f), Some(0x1e)),
            "--skip" | "-skip" => match arguments.next().map(|count| count.parse()) {
                Some(Ok(count)) => skip = count,
                _ => return shell.fail_with("--skip wants a number of lines"),
            },
            _ if argument.starts_with('-') => {
                return shell.fail_with(format!("no option {argument} of .import"));
            }
            name => names.push(name),
        }
    }
    let ([path, table], Some(delimiter)) = (names.as_slice(), separator) else {
        return shell.fail_with(match separator {
            Some(_) => ".import wants a file and a table",
            None => ".import takes a separator of one byte",
        });
    };
    let source = Source {
        path,
        delimiter,
        record_end,
        skip,
    };
    match import(&shell.connection, &source, table)? {
        Ok(_) => Ok(()),
        Err(e) => shell.fail(&e, None),
    }
}

fn single_byte(separator: &str) -> Option<u8> {
    match separator.as_bytes() {
        [byte] => Some(*byte),
        _ => None,
    }
}

/// A text file and how it is read.
struct Source<'a> {
    path: &'a str,
    delimiter: u8,
    record_end: Option<u8>,
    /// Records at its start that are left out.
    skip: usize,
}

/// Appends the rows of a CSV file, all or none; how many there were.
fn import(
    connection: &Connection,
    source: &Source<'_>,
    table: &str,
) -> io::Result<fulgurite::Result<u64>> {
    let path = source.path;
    let file = match open_file(path) {
        Ok(file) => file,
        Err(e) => return Ok(Err(failure(format!("cannot open {path}: {e}")))),
    };
    let mut builder = csv::ReaderBuilder::new();
    builder
        .has_headers(false)
        .flexible(true)
        .delimiter(source.delimiter);
    if let Some(end) = source.record_end {
        builder.terminator(csv::Terminator::Any(end)).quoting(false);
    }
    let mut reader = builder.from_reader(file);
    let savepoint = "SAVEPOINT fulgurite_import";
    if let Err(e) = connection.execute_batch(savepoint) {
        return Ok(Err(e));
    }
    let outcome = append(connection, &mut reader, source.skip, table);
    let end = match outcome {
        Ok(_) => "RELEASE fulgurite_import",
        Err(_) => "ROLLBACK TO fulgurite_import; RELEASE fulgurite_import",
    };
    Ok(connection.execute_batch(end).and(outcome))
}

fn append(
    connection: &Connection,
    reader: &mut csv::Reader<File>,
    skip: usize,
    table: &str,
) -> fulgurite::Result<u64> {
    let mut records = reader.byte_records();
    for record in records.by_ref().take(skip) {
        record.map_err(|e| failure(e.to_string()))?;
    }
    if !connection.table_exists(None, table)? {
        let heading = match records.next() {
            Some(Ok(heading)) => heading,
            Some(Err(e)) => return Err(failure(e.to_string())),
            None => {
                return Err(failure(format!(
                    "no table {table}, and no heading to make it from"
                )));
            }
        };
        let columns: Vec<String> = heading
            .iter()
            .map(|c| format!("{} TEXT", quoted(&String::from_utf8_lossy(c))))
            .collect();
        connection.execute_batch(&format!(
            "CREATE TABLE {} ({})",
            quoted(table),
            columns.join(", ")
        ))?;
    }
    let width = connection
        .prepare(&format!("SELECT * FROM {}", quoted(table)))?
        .column_count();
    let marks = vec!["?"; width].join(", ");
    let mut insert =
        connection.prepare(&format!("INSERT INTO {} VALUES ({marks})", quoted(table)))?;
    let mut rows = 0;
    for record in records {
        let record = record.map_err(|e| failure(e.to_string()))?;
        if record.len() != width {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(failure(format!(
                "line {line} has {} values, {table} has {width} columns",
                record.len()
            )));
        }
        let values = record
            .iter()
            .map(|field| fulgurite::types::ToSqlOutput::Borrowed(ValueRef::Text(field)));
        insert.execute(params_from_iter(values))?;
        rows += 1;
    }
    Ok(rows)
}

fn failure(message: String) -> Error {
    Error::SqliteFailure(
        fulgurite::ffi::Error::new(fulgurite::ffi::SQLITE_ERROR),
        Some(message),
    )
}
