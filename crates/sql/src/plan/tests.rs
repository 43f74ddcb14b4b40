//! Plans as text, and what preparing refuses.

use fulgurite_store::{KeyKind, Options, Store};

use super::physical::Plan;
use crate::error::{Error, Result};
use crate::schema::{Schema, SchemaRow};

/// A schema whose tables and indexes have empty trees.
pub(crate) fn schema_of(statements: &[&str]) -> Schema {
    let store = Store::in_memory(Options::default()).expect("store");
    let schema_tree = store
        .create_family("sqlite_schema", KeyKind::Int)
        .expect("family");
    let mut rows: Vec<SchemaRow> = Vec::new();
    let mut add = |kind: &str, name: &str, table: &str, sql: Option<String>| {
        let tree_kind = if kind == "table" {
            KeyKind::Int
        } else {
            KeyKind::Bytes
        };
        let tree = store
            .create_family(&format!("{kind} {name}"), tree_kind)
            .expect("tree");
        let root = i64::from(tree.id().0);
        let (kind, name, table) = (kind.to_owned(), name.to_owned(), table.to_owned());
        rows.push(SchemaRow {
            kind,
            name,
            table,
            root,
            sql,
        });
    };
    for sql in statements {
        match crate::parse::parse(sql).expect("parses").statement {
            Some(crate::ast::Statement::CreateTable(create)) => {
                let name = &create.name.name.text;
                add("table", name, name, Some((*sql).to_owned()));
                for index in crate::schema::table_shape(&create)
                    .expect("shape")
                    .automatic
                {
                    add("index", &index.name, name, None);
                }
            }
            Some(crate::ast::Statement::CreateIndex(create)) => {
                add(
                    "index",
                    &create.name.name.text,
                    &create.table.text,
                    Some((*sql).to_owned()),
                );
            }
            _ => panic!("not a CREATE: {sql}"),
        }
    }
    Schema::new(store, schema_tree, 1, rows)
}

pub(crate) fn prepare(schema: &Schema, sql: &str) -> Result<Plan> {
    let parsed = crate::parse::parse(sql)?;
    let plan = super::prepare(schema, &mut |_| 1000, &parsed)?;
    plan.ok_or_else(|| Error::misuse("nothing to plan"))
}

fn shop() -> Schema {
    schema_of(&[
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, age INT)",
        "CREATE TABLE orders(id INTEGER PRIMARY KEY, user_id INT, total REAL, note TEXT COLLATE NOCASE)",
        "CREATE INDEX by_user ON orders(user_id, total)",
        "CREATE INDEX by_note ON orders(note)",
    ])
}

fn plan(sql: &str) -> String {
    let plan = prepare(&shop(), sql).unwrap_or_else(|e| panic!("{sql}: {}", e.message()));
    crate::explain::plan_text(&plan.action, &plan.subqueries)
}

fn error(sql: &str) -> String {
    prepare(&shop(), sql).expect_err(sql).message().to_owned()
}

#[test]
fn a_key_is_looked_up() {
    assert_eq!(
        plan("SELECT id, name FROM users WHERE id = ?"),
        "LOOKUP users (rowid=?1) [rowid, name]\n"
    );
}

#[test]
fn statements_are_planned_or_refused() {
    for sql in [
        "SELECT * FROM users WHERE email = 'x'",
        "SELECT count(*) FROM orders",
        "SELECT max(id) FROM orders",
        "SELECT u.id, u.name, sum(o.total) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.id, u.name",
        "SELECT * FROM users ORDER BY id DESC LIMIT 3",
        "SELECT total FROM orders WHERE user_id = 3 ORDER BY total",
        "SELECT * FROM users u LEFT JOIN orders o ON o.user_id=u.id WHERE u.id BETWEEN 1 AND 5",
        "UPDATE users SET name = ? WHERE id = ?",
        "DELETE FROM users WHERE id IN (1,2)",
        "INSERT INTO users VALUES(1,'a','b',3)",
        "SELECT (SELECT max(total) FROM orders o WHERE o.user_id = u.id) FROM users u",
        "SELECT id FROM users UNION SELECT id FROM orders ORDER BY 1 LIMIT 2",
    ] {
        assert!(!plan(sql).is_empty(), "{sql}");
    }
    for (sql, message) in [
        ("SELECT x FROM users", "no such column: x"),
        ("SELECT", "incomplete input"),
        ("SELECT * FROM nope", "no such table: nope"),
        ("SELECT id FROM users, orders", "ambiguous column name: id"),
        ("SELECT 1 +", "incomplete input"),
        ("SELECT 1 FROM FROM users", "near \"FROM\": syntax error"),
        ("SELECT 'abc", "unrecognized token: \"'abc\""),
        ("SELECT foo(1)", "no such function: foo"),
        (
            "SELECT max(count(*)) FROM users",
            "misuse of aggregate function count()",
        ),
    ] {
        assert_eq!(error(sql), message, "{sql}");
    }
}
