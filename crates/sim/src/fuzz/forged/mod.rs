//! Databases whose pages are whole and whose trees are sound, and whose contents nobody can
//! have written: rows, entries of indexes, rows of sqlite_schema. What must hold:
//!
//! - an answer or an error with a code that says what it is, and no panic;
//! - what fails has changed nothing, what only reads neither;
//! - where `integrity_check` finds nothing, nothing is called damaged, and an index tells
//!   the same as its table;
//! - the trees stay sound.

mod forge;
mod sample;
mod schema;
mod trees;
mod uses;

use std::time::Instant;

use fulgurite::{Connection, Database, Error, Result};

use super::text::Watch;
use crate::{Rng, SimDisk, sql};

/// SQLite's codes.
const INTERNAL: i32 = 2;
const INTERRUPT: i32 = 9;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const MISUSE: i32 = 21;
/// Rows looked at of a result.
const ROWS_MAX: usize = 400;

/// The database that is forged.
#[derive(Debug)]
pub(super) struct Forged(SimDisk);

impl Forged {
    pub(super) fn new() -> Self {
        Self(sample::make())
    }

    pub(super) fn run(&self, watch: &Watch, rng: &mut Rng) {
        let image = self.0.fork();
        let options = sample::options();
        let database = sql::open(&image, &options).expect("it is whole");
        let told = forge::some(database.store(), rng);
        drop(database);
        let told = format!("after {told:#?}");
        let database = match sql::open(&image, &options) {
            Ok(database) => database,
            Err(error) => return judge(&error, "opening", &told),
        };
        let connection = database.connect().expect("nothing fails");
        watch.set(Some((Instant::now(), connection.get_interrupt_handle())));
        read(&database, &connection, &told);
        for _ in 0..2 + rng.below(8) {
            write(&database, &connection, rng, &told);
        }
        if rng.one_in(3) {
            remake_indexes(&connection, &told);
        }
        copy(&connection, rng, &told);
        read(&database, &connection, &told);
        watch.set(None);
        let found = database.store().integrity_check().expect("it is readable");
        assert!(found.is_empty(), "{found:?} {told}");
    }
}

/// An error is one that says what it is.
fn judge(error: &Error, what: &str, told: &str) {
    let code = error.result_code() & 0xff;
    let is_typed = ![0, INTERNAL, INTERRUPT, IOERR, MISUSE].contains(&code);
    assert!(is_typed, "{what}: {error} ({code}) {told}");
    assert!(!error.to_string().is_empty(), "{what}: no word {told}");
}

fn is_corrupt(error: &Error) -> bool {
    error.result_code() & 0xff == CORRUPT
}

/// The rows of a statement as texts.
fn rows(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let width = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let mut text = String::new();
        for at in 0..width {
            text += &format!("{:?}|", row.get_ref(at)?);
        }
        found.push(text);
        if found.len() >= ROWS_MAX {
            break;
        }
    }
    Ok(found)
}

/// Everything is read, and nothing changes.
fn read(database: &Database, connection: &Connection, told: &str) {
    let before = trees::contents(database.store());
    let checked = rows(connection, "PRAGMA integrity_check");
    if let Err(error) = &checked {
        judge(error, "integrity_check", told);
    }
    let is_sound = checked.is_ok_and(|lines| lines == ["Text([111, 107])|"]);
    for sql in uses::READS {
        if let Err(error) = rows(connection, sql) {
            judge(&error, sql, told);
            assert!(
                !is_sound || !is_corrupt(&error),
                "found sound, but {sql}: {error} {told}"
            );
        }
    }
    for (table, index, condition) in uses::PATHS {
        compare(connection, (table, index, condition), is_sound, told);
    }
    let after = trees::contents(database.store());
    assert!(before == after, "reading changed something {told}");
}

/// What an index tells is what its table tells, where all is said to be sound.
fn compare(
    connection: &Connection,
    (table, index, condition): (&str, &str, &str),
    is_sound: bool,
    told: &str,
) {
    let columns = uses::COLUMNS.iter().find(|(name, _)| *name == table);
    let columns = columns.map_or("*", |(_, columns)| columns);
    for columns in [columns, "count(*)", "1"] {
        let ask = |how: &str| {
            let sql = format!("SELECT {columns} FROM {table} {how} WHERE {condition}");
            let mut found = rows(connection, &sql).inspect_err(|error| judge(error, &sql, told));
            if let Ok(found) = &mut found {
                found.sort();
            }
            (sql, found)
        };
        let (_, scanned) = ask("NOT INDEXED");
        let (sql, looked_up) = ask(&format!("INDEXED BY {index}"));
        match (scanned, looked_up) {
            _ if !is_sound => {}
            (Ok(scanned), Ok(looked_up)) => {
                assert!(
                    scanned == looked_up,
                    "found sound, but {sql} gives {looked_up:?} and a scan {scanned:?} {told}"
                );
            }
            (scanned, looked_up) => {
                let errors = [scanned.err(), looked_up.err()];
                let mut errors = errors.iter().flatten();
                assert!(
                    !errors.any(is_corrupt),
                    "found sound, but {sql}: {errors:?} {told}"
                );
            }
        }
    }
}

/// Something is written; what fails has changed nothing.
fn write(database: &Database, connection: &Connection, rng: &mut Rng, told: &str) {
    let sql = uses::WRITES[rng.index(uses::WRITES.len())];
    let enforced = format!("PRAGMA foreign_keys = {}", rng.below(2));
    if let Err(error) = connection.execute_batch(&enforced) {
        return judge(&error, &enforced, told);
    }
    let before = trees::contents(database.store());
    let undone = rng.one_in(3);
    if undone {
        connection.execute_batch("BEGIN").expect("it begins");
    }
    let done = rows(connection, sql);
    if let Err(error) = &done {
        judge(error, sql, told);
    }
    if undone && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").expect("it rolls back");
    }
    if undone || done.is_err() {
        let after = trees::contents(database.store());
        assert!(before == after, "{sql} changed something {told}");
    }
}

/// Where only indexes are wrong, REINDEX is the way out.
fn remake_indexes(connection: &Connection, told: &str) {
    if let Err(error) = rows(connection, "REINDEX") {
        return judge(&error, "REINDEX", told);
    }
    if let Ok(found) = rows(connection, "SELECT * FROM pragma_integrity_check") {
        let sound = found.len() == 1 && found[0].starts_with("Text([111, 107])");
        let are_indexes = found.iter().all(|line| !sound && is_of_index(line));
        assert!(!are_indexes, "after REINDEX: {found:?} {told}");
    }
}

/// Whether a finding, as its bytes are shown, is about an index.
fn is_of_index(line: &str) -> bool {
    let shown = format!("{:?}", b" index ");
    line.contains(shown.trim_matches(['[', ']']))
}

/// Copies, which need not make sense of all that they copy, and handles of blobs.
fn copy(connection: &Connection, rng: &mut Rng, told: &str) {
    if let Err(error) = connection.execute_batch("VACUUM INTO 'd/copy.db'") {
        judge(&error, "VACUUM INTO", told);
    }
    let mut other = Connection::open_in_memory().expect("memory is there");
    let copied =
        fulgurite::backup::Backup::new(connection, &mut other).and_then(|backup| backup.step(-1));
    if let Err(error) = copied {
        judge(&error, "backup", told);
    }
    for (table, column) in [
        ("big", "large"),
        ("a", "b"),
        ("wide", "c20"),
        ("added", "z"),
    ] {
        let row = 1 + rng.below(4) as i64;
        let handle = connection.blob_open("main", table, column, row, false);
        let used = handle.and_then(|mut blob| {
            let mut bytes = vec![0; blob.len()];
            blob.read_at(&mut bytes, 0)?;
            let end = bytes.len().min(2);
            blob.write_at(&bytes[..end], 0)
        });
        if let Err(error) = used {
            judge(&error, "a blob", told);
        }
    }
}
