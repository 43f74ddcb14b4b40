//! `statements`: a thousand prepared statements in one transaction, of kinds that find
//! their rows in different ways, and texts that never came before, each beside SQLite.
//!
//! A transaction is measured whole, from its BEGIN to the end of its COMMIT, in `normal`;
//! where it deletes, to its last statement, since it is rolled back then: all transactions
//! find the table as the one before did.

use crate::compare::Options;
use crate::data;
use crate::measure::{Pair, Plan};
use crate::report::Report;
use crate::side::{Durability, End, Settings, Workspace};
use anyhow::Result;

/// Statements of a transaction.
const EACH: usize = 1_000;
/// Rows of a text with values.
const VALUES: usize = 1_000;
/// New texts a round.
const TEXTS: usize = 200;

/// Every key has a code and a place that no other has: 1,000,003 is a prime, and there are
/// fewer rows.
const TABLES: &str = "
    CREATE TABLE items (id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL, n INTEGER NOT NULL);
    CREATE INDEX items_by_place ON items (place);
    CREATE TABLE log (id INTEGER PRIMARY KEY, note TEXT NOT NULL, n INTEGER NOT NULL, x REAL)";
const ROWS_MAX: usize = 1_000_000;

/// Name, what is said of it, the statement of a key `?1`, and how the transaction ends.
const CASES: [(&str, &str, &str, End); 7] = [
    (
        "update_key",
        "UPDATE by key",
        "UPDATE items SET n = n + 1 WHERE id = ?1",
        End::Commit,
    ),
    (
        "update_index",
        "UPDATE by an index",
        "UPDATE items SET n = n + 1 WHERE place = ?1 * 104729 % 1000003",
        End::Commit,
    ),
    (
        "delete_key",
        "DELETE by key",
        "DELETE FROM items WHERE id = ?1",
        End::Rollback,
    ),
    (
        "delete_index",
        "DELETE by an index",
        "DELETE FROM items WHERE place = ?1 * 104729 % 1000003",
        End::Rollback,
    ),
    (
        "queue",
        "DELETE of the row with the least key",
        "DELETE FROM items WHERE id = (SELECT min(id) FROM items) AND ?1",
        End::Rollback,
    ),
    (
        "ignore",
        "INSERT OR IGNORE of rows that are there",
        "INSERT OR IGNORE INTO items (code, place, n) \
         VALUES ('code-' || (?1 * 7919 % 1000003), 0, 0)",
        End::Commit,
    ),
    (
        "upsert",
        "upsert of rows that are there",
        "INSERT INTO items (code, place, n) VALUES ('code-' || (?1 * 7919 % 1000003), 0, 0) \
         ON CONFLICT (code) DO UPDATE SET n = n + 1",
        End::Commit,
    ),
];

/// Runs all metrics and adds them to the report.
pub fn run(options: Options, workspace: &Workspace, report: &mut Report) -> Result<()> {
    let settings = Settings::new(options.cache_bytes, Durability::Normal);
    let mut sides = workspace.open("statements.db", &settings)?;
    let rows = options.rows.min(ROWS_MAX);
    for side in &mut sides {
        side.batch(TABLES)?;
        side.batch(&format!(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {rows})
             INSERT INTO items
             SELECT i, 'code-' || (i * 7919 % 1000003), i * 104729 % 1000003, 0 FROM c"
        ))?;
        side.checkpoint()?;
    }
    let mut bench = Pair {
        sides,
        rng: fastrand::Rng::with_seed(options.seed),
        report,
    };
    let plan = Plan::new(options.effort, 60, 1);
    for (name, what, sql, end) in CASES {
        let what = format!("{EACH} times {what} in a transaction");
        let keys = |rng: &mut fastrand::Rng| data::keys(rng, rows, EACH);
        bench.measure((name, &what), plan, keys, |side, keys, laps| {
            side.statements(sql, keys, end, laps)
        })?;
    }
    let plan = Plan::new(options.effort, 30, TEXTS);
    for (name, what, text) in [
        (
            "new_lookup",
            "a point SELECT",
            "SELECT id, n AS @ FROM items WHERE code = ?1",
        ),
        (
            "new_update",
            "an UPDATE by key",
            "UPDATE items SET n = n + length('@') WHERE id = ?1",
        ),
        (
            "new_join",
            "a join of two with a sort",
            "SELECT a.id, b.n AS @ FROM items a JOIN items b ON b.place = a.n \
             WHERE a.code = ?1 ORDER BY b.n",
        ),
    ] {
        let what = format!("compiling {what}, a new text each time");
        let texts = |rng: &mut fastrand::Rng| -> Vec<String> {
            let name = |_| text.replace('@', &format!("c{}", rng.u64(..)));
            (0..TEXTS).map(name).collect()
        };
        bench.measure((name, &what), plan, texts, |side, texts, laps| {
            side.compile(texts, laps)
        })?;
    }
    let what = format!("INSERT of {VALUES} rows of literals as a new text");
    let plan = Plan::new(options.effort, 60, 1);
    bench.measure(
        ("new_values", &what),
        plan,
        new_values,
        |side, text, laps| side.insert_literal(std::slice::from_ref(text), laps),
    )
}

fn new_values(rng: &mut fastrand::Rng) -> String {
    let mut text = "INSERT INTO log (note, n, x) VALUES ".to_owned();
    for row in 0..VALUES {
        let comma = if row > 0 { ", " } else { "" };
        let (note, n, x) = (data::name(rng), rng.i32(..), rng.f64());
        text.push_str(&format!(
            "{comma}('{}', {n}, {x})",
            note.replace('\'', "''")
        ));
    }
    text
}
