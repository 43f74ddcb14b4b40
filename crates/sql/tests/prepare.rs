//! Preparing gives what SQLite gives: the same column names, the same errors.

use std::sync::Arc;

use fulgurite_sql::schema::{Catalog, Schema, SchemaRow};
use fulgurite_store::{KeyKind, Options, Store, Tree};

const TABLES: &[&str] = &[
    "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c REAL DEFAULT 1.5, \"odd name\" BLOB)",
    "CREATE TABLE u(x, y, z TEXT COLLATE NOCASE, UNIQUE(x, y))",
    "CREATE INDEX ta ON t(a)",
    "CREATE UNIQUE INDEX uz ON u(z, x)",
    "CREATE VIEW v AS SELECT a + 1 AS k, b FROM t WHERE a > 0",
    "CREATE VIEW w(p, q) AS SELECT max(x), z FROM u GROUP BY z",
    "CREATE VIEW odd AS SELECT A, A + 0, a AS k, b COLLATE nocase, rowid, t.id, true, likely(a), \"odd name\" FROM t",
    "CREATE VIEW twice(p, p, true) AS SELECT 1, 2, 3",
    "CREATE VIEW few(p, q) AS SELECT 1",
    "CREATE VIEW lost AS SELECT * FROM nope",
    "CREATE VIEW lost_too AS WITH k AS (SELECT 1 WHERE 1 IN nope) SELECT * FROM k",
];

/// Our schema as SQLite's sqlite_schema describes it.
fn schema(conn: &rusqlite::Connection) -> Catalog {
    let store = Store::in_memory(Options::default()).expect("store");
    let tree = store
        .create_family("sqlite_schema", KeyKind::Int)
        .expect("family");
    let mut stmt = conn
        .prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")
        .expect("prepare");
    let rows: Vec<SchemaRow> = stmt
        .query_map([], |r| {
            let (kind, name): (String, String) = (r.get(0)?, r.get(1)?);
            let key_kind = if kind == "table" {
                KeyKind::Int
            } else {
                KeyKind::Bytes
            };
            let root = store.create_family(&name, key_kind).expect("tree").id().0;
            Ok(SchemaRow {
                kind,
                name,
                table: r.get(2)?,
                root: i64::from(root),
                sql: r.get(3)?,
                database: None,
                key: None,
            })
        })
        .expect("query")
        .collect::<Result<_, _>>()
        .expect("rows");
    Catalog::new(Arc::new(Schema::new(
        store.clone(),
        tree,
        1,
        false,
        (1..).zip(rows),
        &Arc::default(),
    )))
}

type Outcome = Result<Vec<String>, String>;

fn theirs(conn: &rusqlite::Connection, sql: &str) -> Outcome {
    match conn.prepare(sql) {
        Ok(stmt) => Ok(stmt.column_names().map(str::to_owned).collect()),
        Err(rusqlite::Error::SqlInputError { msg, .. }) => Err(msg),
        Err(rusqlite::Error::SqliteFailure(_, Some(msg))) => Err(msg),
        Err(other) => Err(other.to_string()),
    }
}

fn ours(schema: &Catalog, sql: &str) -> Outcome {
    let parsed = fulgurite_sql::parse::parse(sql).map_err(|e| e.message().to_owned())?;
    let plan = fulgurite_sql::plan::prepare(
        schema,
        &mut |_: &Tree| 1000,
        &parsed,
        &fulgurite_sql::plan::Settings::default(),
    )
    .map_err(|e| e.message().to_owned())?;
    Ok(plan.map_or(Vec::new(), |p| {
        p.columns.into_iter().map(|c| c.name).collect()
    }))
}

#[test]
fn names_and_errors_are_sqlites() {
    let conn = rusqlite::Connection::open_in_memory().expect("sqlite");
    for sql in TABLES {
        conn.execute_batch(sql).expect("create");
    }
    let schema = schema(&conn);
    let mut differences = String::new();
    for sql in include_str!("prepare.sql")
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with("--"))
    {
        let (ours, theirs) = (ours(&schema, sql), theirs(&conn, sql));
        if ours != theirs {
            differences.push_str(&format!("{sql}\n  ours   {ours:?}\n  SQLite {theirs:?}\n"));
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}
