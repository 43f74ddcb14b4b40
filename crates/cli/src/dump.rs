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

/// The statements that make the schema (or what belongs to one table), tables
/// first.
pub fn schema(connection: &Connection, table: Option<&str>) -> Result<Vec<SchemaEntry>> {
    let sql = "SELECT type, name, sql FROM sqlite_schema
        WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        AND (?1 IS NULL OR tbl_name = ?1 COLLATE NOCASE)
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

/// Writes everything (or one table) as a script.
pub fn dump(
    connection: &Connection,
    table: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<Result<()>> {
    let entries = match schema(connection, table) {
        Ok(entries) => entries,
        Err(e) => return Ok(Err(e)),
    };
    writeln!(out, "BEGIN TRANSACTION;")?;
    let (tables, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|e| e.kind == "table");
    for entry in &tables {
        writeln!(out, "{};", entry.sql)?;
        if let Err(e) = rows(connection, &entry.name, out)? {
            return Ok(Err(e));
        }
    }
    for entry in &others {
        writeln!(out, "{};", entry.sql)?;
    }
    writeln!(out, "COMMIT;")?;
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
