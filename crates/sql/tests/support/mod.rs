//! What the tests of statements share: a fresh database beside bundled SQLite,
//! and answers as text that is easy to compare.
#![allow(dead_code, reason = "each test file uses a part")]

use fulgurite_sql::session::{Engine, Prepared, Session, Step};
use fulgurite_sql::value::ValueRef;
use fulgurite_store::{Options, Store};

/// A connection to a fresh database.
pub fn session() -> Session {
    engine().session()
}

/// A fresh database.
pub fn engine() -> Engine {
    Engine::open(Store::in_memory(Options::default()).unwrap()).unwrap()
}

/// The only statement of a text.
pub fn prepare(session: &Session, sql: &str) -> Prepared {
    let (prepared, _) = session
        .prepare(sql)
        .unwrap_or_else(|e| panic!("{sql}: {e}"));
    prepared.unwrap_or_else(|| panic!("{sql}: no statement"))
}

/// A value with its type to be seen.
pub fn show(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(i) => i.to_string(),
        ValueRef::Real(r) => format!("{r:?}"),
        ValueRef::Text(b) => format!("'{}'", String::from_utf8_lossy(b)),
        ValueRef::Blob(b) => b
            .iter()
            .fold("x".to_owned(), |s, c| s + &format!("{c:02x}")),
    }
}

/// The row a statement is on.
pub fn row(prepared: &Prepared) -> String {
    let values: Vec<String> = (0..prepared.column_count())
        .map(|i| show(prepared.column(i)))
        .collect();
    values.join(",")
}

fn failed(e: &fulgurite_sql::error::Error) -> String {
    format!("error {}: {}", e.extended_code(), e.message())
}

/// Steps to the end: the rows, then the error if one came.
pub fn drain(prepared: &mut Prepared) -> Vec<String> {
    let mut rows = Vec::new();
    loop {
        match prepared.step() {
            Ok(Step::Row) => rows.push(row(prepared)),
            Ok(Step::Done) => return rows,
            Err(e) => {
                rows.push(failed(&e));
                return rows;
            }
        }
    }
}

/// Steps to the end, which is an interrupt.
pub fn ends_interrupted(prepared: &mut Prepared) {
    let error = loop {
        match prepared.step() {
            Ok(Step::Row) => {}
            Ok(Step::Done) => panic!("it was not interrupted"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.message(), "interrupted");
}

/// Runs all statements of a text, going on after errors: all rows and errors.
pub fn run(session: &Session, sql: &str) -> Vec<String> {
    each(session, sql)
        .into_iter()
        .flat_map(|(_, rows)| rows)
        .collect()
}

/// The statements of a text with what each gave.
fn each(session: &Session, sql: &str) -> Vec<(String, Vec<String>)> {
    let mut rest = sql;
    let mut all = Vec::new();
    while !rest.trim().is_empty() {
        match session.prepare(rest) {
            Ok((prepared, consumed)) => {
                let text = rest[..consumed].trim().to_owned();
                rest = &rest[consumed..];
                if let Some(mut prepared) = prepared {
                    let rows = drain(&mut prepared);
                    all.push((text, rows));
                }
            }
            Err(e) => {
                // A statement that doesn't compile ends at its semicolon.
                let end = statement_end(rest);
                all.push((rest[..end].trim().to_owned(), vec![failed(&e)]));
                rest = &rest[end..];
            }
        }
    }
    all
}

/// Runs a text that must not fail.
pub fn must(session: &Session, sql: &str) -> Vec<String> {
    let rows = run(session, sql);
    assert!(
        !rows.iter().any(|r| r.starts_with("error ")),
        "{sql}: {rows:?}"
    );
    rows
}

/// Whether a transaction over these tables that reads something, and then writes, fails to
/// commit because another session made a change in between.
pub fn is_lost(tables: &str, read: &str, write: &str, changed: &str) -> bool {
    let engine = engine();
    let (one, other) = (engine.session(), engine.session());
    must(&one, tables);
    must(&one, "BEGIN");
    must(&one, read);
    must(&one, write);
    must(&other, changed);
    !run(&one, "COMMIT").is_empty()
}

/// Bundled SQLite's answer to one statement, in the same words.
pub fn sqlite(connection: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let error = |e: rusqlite::Error| match e {
        rusqlite::Error::SqliteFailure(code, message) => {
            format!(
                "error {}: {}",
                code.extended_code,
                message.unwrap_or_default()
            )
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => {
            format!("error {}: {msg}", error.extended_code)
        }
        other => format!("error {other}"),
    };
    let mut statement = match connection.prepare(sql) {
        Ok(statement) => statement,
        Err(e) => return vec![error(e)],
    };
    let width = statement.column_count();
    let mut out = Vec::new();
    let mut rows = statement.raw_query();
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let values: Vec<String> = (0..width)
                    .map(|i| match row.get_ref(i).unwrap() {
                        rusqlite::types::ValueRef::Null => show(ValueRef::Null),
                        rusqlite::types::ValueRef::Integer(i) => show(ValueRef::Integer(i)),
                        rusqlite::types::ValueRef::Real(r) => show(ValueRef::Real(r)),
                        rusqlite::types::ValueRef::Text(b) => show(ValueRef::Text(b)),
                        rusqlite::types::ValueRef::Blob(b) => show(ValueRef::Blob(b)),
                    })
                    .collect();
                out.push(values.join(","));
            }
            Ok(None) => return out,
            Err(e) => {
                out.push(error(e));
                return out;
            }
        }
    }
}

/// Runs the statements of a text here and in bundled SQLite: rows, errors,
/// change counts and last rowids must agree after each.
pub fn same(sql: &str) {
    compare(sql, true);
}

/// The same, but for the last rowid.
pub fn same_but_last_rowid(sql: &str) {
    compare(sql, false);
}

fn compare(sql: &str, rowids: bool) {
    let ours = session();
    let theirs = rusqlite::Connection::open_in_memory().unwrap();
    let mut differences = Vec::new();
    let mut rest = sql;
    while !rest.trim().is_empty() {
        let end = statement_end(rest);
        let text = rest[..end].trim();
        rest = &rest[end..];
        let state = |changes: u64, rowid: i64, auto: bool| {
            let rowid = if rowids { rowid } else { 0 };
            format!("changes {changes} rowid {rowid} autocommit {auto}")
        };
        let mut mine = run(&ours, text);
        mine.push(state(
            ours.changes(),
            ours.last_insert_rowid(),
            ours.is_autocommit(),
        ));
        let mut other = sqlite(&theirs, text);
        other.push(state(
            theirs.changes(),
            theirs.last_insert_rowid(),
            theirs.is_autocommit(),
        ));
        if mine != other {
            differences.push(format!("{text}\n   ours:   {mine:?}\n   sqlite: {other:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Where the first statement of a text ends, outside strings; that of a trigger at END.
fn statement_end(sql: &str) -> usize {
    let starts = |text: &str, word: &str| {
        let start = text.trim_start().get(..word.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let begins = ["CREATE TRIGGER", "CREATE TEMP TRIGGER"];
    let (mut quoted, mut in_trigger) = (false, begins.iter().any(|word| starts(sql, word)));
    for (i, c) in sql.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            ';' if !quoted && !in_trigger => return i + 1,
            ';' if !quoted => in_trigger = !starts(&sql[i + 1..], "END"),
            _ => {}
        }
    }
    sql.len()
}
