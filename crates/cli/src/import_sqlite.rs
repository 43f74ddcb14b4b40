//! `fulgurite import-sqlite`: copies an SQLite file into a new database.
//!
//! Tables are made first, then filled in transactions of many rows, then the
//! indexes are built, and triggers made that would have fired; at the end the rows of
//! both sides are counted. What this engine has no form for yet (virtual tables) is
//! named and left out, and the exit status says so. The target must not exist;
//! when the import fails on its way, what was written stays there, and the
//! message says that it is not whole.

use std::io;
use std::path::{Path, PathBuf};

use fulgurite::types::{ToSqlOutput, ValueRef};
use fulgurite::{Database, Durability, Options, params_from_iter};
use indicatif::{ProgressBar, ProgressStyle};
use rusqlite::{Connection as Sqlite, OpenFlags};

use crate::dump::quoted;
use crate::report;

/// Rows in one transaction.
const BATCH_ROWS: u64 = 50_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One entry of the source's schema.
struct Entry {
    kind: String,
    name: String,
    sql: String,
}

/// Copies `from` to the new file `to`; true if all of it went over.
pub fn run(from: &Path, to: &Path) -> io::Result<bool> {
    match import(from, to) {
        Ok(left_out) => {
            for what in &left_out {
                report::say(&format!("left out: {what}\n"));
            }
            Ok(left_out.is_empty())
        }
        Err(e) => {
            report::say(&format!("Error: {e}\n"));
            Ok(false)
        }
    }
}

fn import(from: &Path, to: &Path) -> Outcome<Vec<String>> {
    let source = Sqlite::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|e| format!("cannot open {}: {e}", from.display()))?;
    let entries =
        read_schema(&source).map_err(|e| format!("cannot read {}: {e}", from.display()))?;
    // One snapshot for the rows and for counting them.
    source.execute_batch("BEGIN")?;
    if let Some(there) = [
        to.to_owned(),
        with_suffix(to, "-wal0"),
        with_suffix(to, "-wal1"),
    ]
    .iter()
    .find(|p| p.exists())
    {
        return Err(format!(
            "{} exists; an import only makes new databases",
            there.display()
        )
        .into());
    }
    // Nobody relies on the target before the last line is said.
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let target = Database::open_with_options(to, options)
        .map_err(|e| format!("cannot make {}: {e}", to.display()))?;
    copy(&source, &target, &entries).map_err(|e| {
        format!(
            "{e}\n{} is not whole: remove it before trying again",
            to.display()
        )
        .into()
    })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn read_schema(source: &Sqlite) -> rusqlite::Result<Vec<Entry>> {
    let mut stmt = source.prepare(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
         ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, rowid",
    )?;
    stmt.query_map([], |row| {
        Ok(Entry {
            kind: row.get(0)?,
            name: row.get(1)?,
            sql: row.get(2)?,
        })
    })?
    .collect()
}

/// Does the work; what was left out and why.
fn copy(source: &Sqlite, target: &Database, entries: &[Entry]) -> Outcome<Vec<String>> {
    let connection = target.connect()?;
    let mut left_out = Vec::new();
    let (tables, others): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|e| e.kind == "table");
    // Their shadow tables, which hold what they index, are not in the schema read.
    let (virtual_tables, tables): (Vec<&Entry>, Vec<&Entry>) =
        tables.into_iter().partition(|e| is_virtual(&e.sql));
    left_out.extend(
        virtual_tables
            .iter()
            .map(|e| format!("virtual table {}", e.name)),
    );

    let mut made = Vec::new();
    let mut counts = Vec::new();
    for table in tables {
        match connection.execute_batch(&table.sql) {
            Ok(()) => {
                counts.push(count_of(source, &table.name)?);
                made.push(table);
            }
            Err(e) => left_out.push(format!("table {}: {e}", table.name)),
        }
    }
    let tables = made;
    let bar = ProgressBar::new(counts.iter().sum());
    bar.set_style(ProgressStyle::with_template(
        "{msg:20!} {wide_bar} {human_pos}/{human_len} rows {eta}",
    )?);
    for table in &tables {
        bar.set_message(table.name.clone());
        copy_rows(source, &connection, &table.name, &bar)
            .map_err(|e| format!("table {}: {e}", table.name))?;
    }
    for entry in others {
        bar.set_message(entry.name.clone());
        if let Err(e) = connection.execute_batch(&entry.sql) {
            left_out.push(format!("{} {}: {e}", entry.kind, entry.name));
        }
    }
    let mut rows = 0;
    for (table, expected) in tables.iter().zip(counts) {
        let sql = format!("SELECT count(*) FROM {}", quoted(&table.name));
        let found: u64 = connection.query_row(&sql, [], |row| row.get(0))?;
        if found != expected {
            return Err(format!(
                "table {} has {found} rows instead of {expected}",
                table.name
            )
            .into());
        }
        rows += found;
    }
    target.checkpoint()?;
    bar.finish_and_clear();
    println!("{} tables, {rows} rows", tables.len());
    Ok(left_out)
}

fn is_virtual(sql: &str) -> bool {
    sql.split_ascii_whitespace()
        .nth(1)
        .is_some_and(|word| word.eq_ignore_ascii_case("VIRTUAL"))
}

fn count_of(source: &Sqlite, table: &str) -> rusqlite::Result<u64> {
    let count: i64 = source.query_row(
        &format!("SELECT count(*) FROM {}", quoted(table)),
        [],
        |row| row.get(0),
    )?;
    Ok(count.unsigned_abs())
}

/// The columns that hold data of their own: not those computed from others.
fn stored_columns(source: &Sqlite, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut stmt = source.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
    stmt.query_map([table], |row| row.get::<_, String>(0))?
        .collect()
}

fn copy_rows(
    source: &Sqlite,
    target: &fulgurite::Connection,
    table: &str,
    bar: &ProgressBar,
) -> Outcome<()> {
    let columns: Vec<String> = stored_columns(source, table)?
        .iter()
        .map(|c| quoted(c))
        .collect();
    let (names, marks) = (columns.join(", "), vec!["?"; columns.len()].join(", "));
    let mut select = source.prepare(&format!("SELECT {names} FROM {}", quoted(table)))?;
    let mut insert = target.prepare(&format!(
        "INSERT INTO {} ({names}) VALUES ({marks})",
        quoted(table)
    ))?;
    let mut rows = select.query([])?;
    let mut in_batch = 0;
    target.execute_batch("BEGIN")?;
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns.len());
        for i in 0..columns.len() {
            values.push(ToSqlOutput::Borrowed(convert(row.get_ref(i)?)));
        }
        insert.execute(params_from_iter(&values))?;
        in_batch += 1;
        if in_batch == BATCH_ROWS {
            target.execute_batch("COMMIT; BEGIN")?;
            bar.inc(std::mem::take(&mut in_batch));
        }
    }
    target.execute_batch("COMMIT")?;
    bar.inc(in_batch);
    Ok(())
}

fn convert(value: rusqlite::types::ValueRef<'_>) -> ValueRef<'_> {
    use rusqlite::types::ValueRef as Theirs;
    match value {
        Theirs::Null => ValueRef::Null,
        Theirs::Integer(i) => ValueRef::Integer(i),
        Theirs::Real(r) => ValueRef::Real(r),
        Theirs::Text(t) => ValueRef::Text(t),
        Theirs::Blob(b) => ValueRef::Blob(b),
    }
}
