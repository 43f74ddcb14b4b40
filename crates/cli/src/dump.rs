//! A database as the SQL that makes it again.

use std::io::{self, Write};

use fulgurite::types::ValueRef;
use fulgurite::{Connection, Result};

/// A row of the schema table.
pub struct SchemaEntry {
    pub kind: String,
    pub name: String,
    pub sql: String,
}

/// The statements that make the schema (or what belongs to tables by a LIKE pattern), tables
/// first.
pub fn schema(connection: &Connection, table: Option<&str>) -> Result<Vec<SchemaEntry>> {
    let sql = "SELECT type, name, sql FROM sqlite_schema
        WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        AND (?1 IS NULL OR tbl_name LIKE ?1 ESCAPE '\\')
        ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 ELSE 2 END, rowid";
    let mut stmt = connection.prepare(sql)?;
    let entries = stmt.query_map([table], |row| {
        Ok(SchemaEntry {
            kind: row.get(0)?,
            name: row.get(1)?,
            sql: row.get(2)?,
        })
    })?;
    entries.collect()
}

/// Writes everything (or tables by a LIKE pattern) as a script, all of one state.
pub fn dump(
    connection: &Connection,
    table: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<Result<()>> {
    if let Err(e) = connection.execute_batch("SAVEPOINT fulgurite_dump") {
        return Ok(Err(e));
    }
    let outcome = dump_within(connection, table, out);
    if matches!(outcome, Ok(Err(_))) {
        // Whoever runs the script gets nothing, and not a part.
        writeln!(out, "ROLLBACK; -- due to errors")?;
    }
    let end = connection.execute_batch("RELEASE fulgurite_dump");
    outcome.map(|outcome| outcome.and(end))
}

fn dump_within(
    connection: &Connection,
    table: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<Result<()>> {
    let entries = match schema(connection, table) {
        Ok(entries) => entries,
        Err(e) => return Ok(Err(e)),
    };
    // Children may come before their parents.
    writeln!(out, "PRAGMA foreign_keys=OFF;")?;
    writeln!(out, "BEGIN TRANSACTION;")?;
    let (tables, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|e| e.kind == "table");
    for entry in &tables {
        writeln!(out, "{};", entry.sql)?;
        if let Err(e) = rows(connection, &entry.name, out)? {
            return Ok(Err(e));
        }
    }
    if let Err(e) = sequences(connection, table, out)? {
        return Ok(Err(e));
    }
    for entry in &others {
        writeln!(out, "{};", entry.sql)?;
    }
    writeln!(out, "COMMIT;")?;
    Ok(Ok(()))
}

/// The last numbers of AUTOINCREMENT that tables gave.
fn sequences(
    connection: &Connection,
    table: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<Result<()>> {
    let read = || -> Result<Vec<(String, i64)>> {
        if !connection
            .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'")?
            .exists([])?
        {
            return Ok(Vec::new());
        }
        let sql = "SELECT quote(name), seq FROM sqlite_sequence WHERE seq IS NOT NULL
            AND (?1 IS NULL OR name LIKE ?1 ESCAPE '\\') ORDER BY name";
        let mut stmt = connection.prepare(sql)?;
        let rows = stmt.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let sequences = match read() {
        Ok(sequences) => sequences,
        Err(e) => return Ok(Err(e)),
    };
    for (name, seq) in sequences {
        writeln!(out, "DELETE FROM sqlite_sequence WHERE name = {name};")?;
        writeln!(out, "INSERT INTO sqlite_sequence VALUES ({name},{seq});")?;
    }
    Ok(Ok(()))
}

fn rows(connection: &Connection, table: &str, out: &mut dyn Write) -> io::Result<Result<()>> {
    let select = |columns: Vec<String>| {
        connection.prepare(&format!(
            "SELECT {} FROM {}",
            columns.join(", "),
            quoted(table)
        ))
    };
    let mut stmt = match plain_columns(connection, table).and_then(select) {
        Ok(stmt) => stmt,
        Err(e) => return Ok(Err(e)),
    };
    let width = stmt.column_count();
    let mut rows = stmt.raw_query();
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(Ok(())),
            Err(e) => return Ok(Err(e)),
        };
        let values: Vec<String> = (0..width)
            .map(|i| row.get_ref(i).unwrap_or(ValueRef::Null).to_sql_literal())
            .collect();
        writeln!(
            out,
            "INSERT INTO {} VALUES ({});",
            quoted(table),
            values.join(",")
        )?;
    }
}

/// The columns that an INSERT gives values: not those generated from others.
fn plain_columns(connection: &Connection, table: &str) -> Result<Vec<String>> {
    let mut stmt = connection.prepare(&format!("PRAGMA table_info({})", quoted(table)))?;
    let names = stmt.query_map([], |row| row.get::<_, String>(1))?;
    names.map(|name| Ok(quoted(&name?))).collect()
}

/// A name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Words that mean something else where they are not in quotes.
const KEYWORDS: [&str; 62] = [
    "add",
    "all",
    "alter",
    "and",
    "as",
    "autoincrement",
    "between",
    "case",
    "check",
    "collate",
    "commit",
    "constraint",
    "create",
    "default",
    "deferrable",
    "delete",
    "distinct",
    "drop",
    "else",
    "escape",
    "except",
    "exists",
    "foreign",
    "from",
    "group",
    "having",
    "if",
    "in",
    "index",
    "indexed",
    "insert",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "limit",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "primary",
    "references",
    "returning",
    "select",
    "set",
    "table",
    "then",
    "to",
    "transaction",
    "trigger",
    "union",
    "unique",
    "update",
    "using",
    "values",
    "view",
    "when",
    "where",
];

/// A name as it is written, in double quotes where it needs them.
pub fn as_needed(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let lower = name.to_ascii_lowercase();
    match starts_well && name.chars().all(plain) && !KEYWORDS.contains(&lower.as_str()) {
        true => name.to_owned(),
        false => quoted(name),
    }
}
