//! Plans as text, and what preparing refuses.

use std::sync::Arc;

use fulgurite_store::{KeyKind, Options, Store, Tree};

use super::physical::Plan;
use crate::error::{Error, Result};
use crate::schema::{Catalog, Schema, SchemaRow};

/// A schema whose tables and indexes have empty trees.
pub(crate) fn schema_of(statements: &[&str]) -> Catalog {
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
            database: None,
            key: None,
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
    Catalog::new(Arc::new(Schema::new(
        store,
        schema_tree,
        1,
        false,
        (1..).zip(rows),
        &Arc::default(),
    )))
}

pub(crate) fn prepare(catalog: &Catalog, sql: &str) -> Result<Plan> {
    let parsed = crate::parse::parse(sql)?;
    let plan = super::prepare(
        catalog,
        &mut |_: &Tree| 1000,
        &parsed,
        &super::Settings::default(),
    )?;
    plan.ok_or_else(|| Error::misuse("nothing to plan"))
}

fn shop() -> Catalog {
    schema_of(&[
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, age INT)",
        "CREATE TABLE orders(id INTEGER PRIMARY KEY, user_id INT, total REAL, note TEXT COLLATE NOCASE)",
        "CREATE INDEX by_user ON orders(user_id, total)",
        "CREATE INDEX by_note ON orders(note)",
        "CREATE TABLE jobs(id INTEGER PRIMARY KEY, queue, done)",
        "CREATE INDEX open_jobs ON jobs(queue) WHERE done IS NULL",
        "CREATE INDEX done_jobs ON jobs(done) WHERE done IS NOT NULL",
        "CREATE INDEX folded ON users(lower(name), age)",
        "CREATE INDEX sums ON users(age + id) WHERE age > 0",
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
    assert_eq!(
        plan("SELECT name FROM users WHERE id = ?"),
        "LOOKUP users (rowid=?1) [name]\n"
    );
}

#[test]
fn access_paths_orders_and_joins() {
    for (sql, expected) in [
        (
            "SELECT total FROM orders WHERE user_id = 3 ORDER BY total DESC",
            "SEARCH orders USING COVERING INDEX by_user (user_id=3) BACKWARDS [total]\n",
        ),
        ("SELECT count(*) FROM orders", "COUNT orders FROM COUNTER\n"),
        (
            "SELECT max(id) FROM orders",
            "AGGREGATE max($0)\n  LIMIT 1\n    FILTER $0 IS NOT NULL\n      SCAN orders BACKWARDS [rowid]\n",
        ),
        (
            "SELECT name FROM users WHERE id = 1 OR id = 2",
            "LOOKUP users (rowid IN (1, 2)) [name]\n",
        ),
        // A text compared with a NOCASE index needs NOCASE, and a column of
        // numbers compared with a TEXT one cannot be looked up in its index.
        (
            "SELECT id FROM orders WHERE note = 'x' COLLATE BINARY",
            "PROJECT $0\n  FILTER $1='x'\n    SCAN orders [rowid, note]\n",
        ),
        (
            "SELECT id FROM users WHERE email = 5.5",
            "SEARCH users USING COVERING INDEX sqlite_autoindex_users_1 (email=5.5) [rowid]\n",
        ),
        (
            "SELECT id FROM users WHERE email = CAST(? AS INT)",
            "PROJECT $0\n  FILTER $1=CAST(?1 AS Integer)\n    SCAN users [rowid, email]\n",
        ),
        (
            "SELECT k FROM (SELECT id AS k, name FROM users WHERE age > 3) WHERE k = 7",
            "PROJECT $0\n  FILTER $1>3\n    LOOKUP users (rowid=7) [rowid, age]\n",
        ),
        (
            "SELECT u.name, o.total FROM orders o JOIN users u ON u.id = o.user_id WHERE o.id = 9",
            "PROJECT $2, $1\n  NESTED LOOP JOIN PASSING r0=$0\n    LOOKUP orders (rowid=9) [user_id, total]\n    \
             LOOKUP users (rowid=r0) [name]\n",
        ),
    ] {
        assert_eq!(plan(sql), expected, "{sql}");
    }
}

#[test]
fn a_partial_index_is_used_where_it_holds_all_rows_asked_for() {
    for (sql, index) in [
        (
            "WHERE queue = 'q' AND done IS NULL",
            "open_jobs (queue='q')",
        ),
        (
            "WHERE queue = 'q' AND done IS NULL AND id > 3",
            "open_jobs (queue='q' AND rowid>3)",
        ),
        (
            "WHERE done > 3 AND done < 9",
            "done_jobs (done>3 AND done<9)",
        ),
        (
            "WHERE done BETWEEN 3 AND 4",
            "done_jobs (done>=3 AND done<=4)",
        ),
        (
            "WHERE done IN (3, 4) OR done = 5",
            "done_jobs (3 keys of done)",
        ),
    ] {
        let found = plan(&format!("SELECT queue, done FROM jobs {sql}"));
        assert!(
            found.contains(&format!("SEARCH jobs USING INDEX {index}")),
            "{found}"
        );
    }
    for sql in [
        "queue = 'q'",
        "queue = 'q' AND done IS NOT NULL",
        "queue = 'q' OR done IS NULL",
    ] {
        let found = plan(&format!("SELECT id FROM jobs WHERE {sql}"));
        assert!(!found.contains("open_jobs"), "{found}");
    }
    // What all its entries fulfil is not looked at again, and no row is fetched for it.
    for (sql, expected) in [
        (
            "SELECT id FROM jobs WHERE queue = 'q' AND done IS NULL",
            "SEARCH jobs USING COVERING INDEX open_jobs (queue='q') [rowid]\n",
        ),
        (
            "SELECT id FROM jobs WHERE done IS NULL AND queue > 'q' ORDER BY queue",
            "PROJECT $0\n  SEARCH jobs USING COVERING INDEX open_jobs (queue>'q') [rowid, queue]\n",
        ),
        (
            "SELECT id FROM jobs WHERE done > 3 AND done IS NOT NULL",
            "SEARCH jobs USING COVERING INDEX done_jobs (done>3) [rowid]\n",
        ),
    ] {
        assert_eq!(plan(sql), expected, "{sql}");
    }
    let shown = plan("SELECT done FROM jobs WHERE queue = 'q' AND done IS NULL");
    assert!(shown.contains("USING INDEX open_jobs"), "{shown}");
    // The right side of a LEFT JOIN has only its own condition to go by.
    let joined = "SELECT * FROM users u LEFT JOIN jobs j ON j.queue = u.name";
    let by_on = plan(&format!("{joined} AND j.done IS NULL WHERE u.id = 1"));
    assert!(
        by_on.contains("USING INDEX open_jobs (queue=r0)"),
        "{by_on}"
    );
    let by_where = plan(&format!("{joined} WHERE u.id = 1 AND j.done IS NULL"));
    assert!(!by_where.contains("open_jobs"), "{by_where}");
}

#[test]
fn an_index_over_an_expression_is_used_for_that_expression() {
    for (sql, index) in [
        ("lower(name) = 'x'", "folded (expr='x')"),
        (
            "u.age = 3 AND 'x' = lower(u.name)",
            "folded (expr='x' AND age=3)",
        ),
        (
            "lower(name) = 'x' AND age > 3",
            "folded (expr='x' AND age>3)",
        ),
        ("lower(name) IN ('x', 'y')", "folded (2 keys of expr)"),
        ("age > 0 AND age + id = 7", "sums (expr=7)"),
    ] {
        let found = plan(&format!("SELECT email FROM users u WHERE {sql}"));
        assert!(
            found.contains(&format!("SEARCH users USING INDEX {index}")),
            "{found}"
        );
    }
    for sql in [
        "upper(name) = 'x'",
        "lower(email) = 'x'",
        "age + id = 7",
        // Other texts are equal here, and another affinity is at work.
        "lower(name) = 'x' COLLATE NOCASE",
        "lower(name) = age",
    ] {
        let found = plan(&format!("SELECT email FROM users WHERE {sql}"));
        assert!(found.contains("SCAN users"), "{found}");
    }
    let joined = plan(
        "SELECT u.id FROM orders o JOIN users u ON lower(u.name) = o.note || '' WHERE o.id = 5",
    );
    assert!(
        joined.contains("USING COVERING INDEX folded (expr=("),
        "{joined}"
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

#[test]
fn deep_statements_end_with_an_answer_on_a_small_stack() {
    let wrap = |open: &str, inner: &str, close: &str, n: usize| {
        format!("SELECT {}{inner}{}", open.repeat(n), close.repeat(n))
    };
    let check = move || {
        for n in [10, 400, 990, 1_100, 50_000] {
            let chain = |op: &str| format!("SELECT id{} FROM users", format!(" {op} id").repeat(n));
            for sql in [
                wrap("(", "1", ")", n),
                wrap("NOT ", "1", "", n),
                wrap("-(", "?", ")", n),
                wrap("abs(", "?", ")", n),
                wrap("(SELECT ", "1", ")", n),
                wrap("EXISTS(SELECT * FROM (SELECT ", "1", "))", n / 3),
                wrap("CASE WHEN 1 THEN ", "1", " END", n),
                wrap("1 IN (", "1", ")", n),
                chain("+"),
                chain("AND"),
                chain("="),
                format!("SELECT 1 WHERE {}1", "1 = 1 OR ".repeat(n)),
                format!("VALUES (1){}", ",(1)".repeat(n)),
            ] {
                if let Err(error) = prepare(&shop(), &sql) {
                    assert!(!error.message().is_empty());
                }
            }
        }
    };
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
    small.expect("thread").join().expect("no panic");
}
