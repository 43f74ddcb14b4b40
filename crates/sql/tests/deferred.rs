//! Statements of so many rows, and transactions of so many statements, that their index
//! entries are kept back and made in the order of their keys: what they leave behind, and
//! which of them fail, beside SQLite.

mod common;
mod support;

use std::time::Duration;

use common::Random;

use support::{must, run, same, same_but_last_rowid};

/// Three thousand rows: numbers in no order and some NULLs, words that differ in case.
const ROWS: &str = "CREATE TABLE d(x);
    INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
    CREATE TABLE s(id INTEGER PRIMARY KEY, k INTEGER, w TEXT, b INTEGER);
    INSERT INTO s SELECT n, n * 7919 % 100003, CASE n % 2 WHEN 0 THEN 'w' ELSE 'W' END || (n * 31 % 7001), nullif(n % 9, 4)
    FROM (SELECT a.x + 10 * b.x + 100 * c.x + 1000 * e.x AS n
          FROM d AS e, d AS c, d AS b, d AS a WHERE e.x < 3);";

/// All rows as the table and as each index has them, and whether these agree.
const SEE: &str = "SELECT changes(), total_changes();
    SELECT group_concat(id || ' ' || ifnull(k, '-') || ' ' || ifnull(w, '-') || ' ' || ifnull(b, '-')) FROM t;
    SELECT group_concat(k || ' ' || id) FROM (SELECT k, id FROM t WHERE k >= 0 ORDER BY k, id);
    SELECT group_concat(w || ' ' || id) FROM (SELECT w, id FROM t WHERE w >= 'a' COLLATE NOCASE ORDER BY w COLLATE NOCASE, id);
    SELECT count(*) FROM t WHERE b > 2 AND k > 50000; PRAGMA integrity_check;";

const TABLE: &str =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, w TEXT COLLATE NOCASE, b INTEGER)";

const INDEXES: [&str; 5] = [
    "CREATE INDEX tk ON t(k); CREATE INDEX tw ON t(w)",
    "CREATE UNIQUE INDEX tk ON t(k); CREATE INDEX tw ON t(w, b DESC)",
    "CREATE INDEX tk ON t(k DESC); CREATE UNIQUE INDEX tw ON t(w, b)",
    "CREATE INDEX tk ON t(k) WHERE b > 2; CREATE INDEX tw ON t(w || b, k % 100)",
    "CREATE UNIQUE INDEX tk ON t(k) WHERE b > 2; CREATE UNIQUE INDEX tw ON t(w, k + b)",
];

/// The statement over a filled table with each set of indexes: in a transaction that puts
/// it back, in one that keeps it, and by itself.
fn each(statement: &str) {
    for indexes in INDEXES {
        same(&format!(
            "{ROWS} {TABLE}; INSERT INTO t SELECT * FROM s; {indexes};
            BEGIN; DELETE FROM t WHERE id = 17; SAVEPOINT p; {statement}; {SEE} ROLLBACK TO p; {SEE}
            {statement}; COMMIT; {SEE} {statement}; {SEE}"
        ));
    }
}

#[test]
fn updates() {
    for update in [
        "UPDATE t SET k = k * 7919 % 100019",
        "UPDATE t SET k = 100003 - k, w = 'x' || w WHERE id > 10",
        "UPDATE t SET w = upper(w), b = b + 1",
        "UPDATE t SET w = id % 100 || 'v', k = k - 1 WHERE b IS NOT NULL",
        "UPDATE t SET k = NULL, w = NULL",
        "UPDATE t SET b = nullif(b, 7) WHERE k > 300",
        "UPDATE t SET id = id + 3000",
        "UPDATE t SET k = (SELECT max(o.k) FROM t AS o) + id",
    ] {
        each(update);
    }
}

/// What is there already, what the statement itself has put there, and what it has taken
/// away before or takes away later.
#[test]
fn keys_that_are_taken() {
    for or in [
        "",
        "OR ABORT",
        "OR FAIL",
        "OR ROLLBACK",
        "OR IGNORE",
        "OR REPLACE",
    ] {
        for change in [
            "SET k = CASE id WHEN 2900 THEN 7919 ELSE k END",
            "SET k = k + (id >= 2500)",
            "SET w = CASE WHEN id > 2700 THEN 'W31' ELSE w END, b = 1",
            "SET b = 5 WHERE id >= 100",
        ] {
            each(&format!("UPDATE {or} t {change}"));
        }
    }
}

#[test]
fn inserts() {
    for indexes in INDEXES {
        for or in ["", "OR FAIL", "OR ROLLBACK", "OR IGNORE", "OR REPLACE"] {
            for rows in [
                "SELECT * FROM s",
                "SELECT * FROM s ORDER BY k",
                "SELECT id + 3000, k, w, b FROM s UNION ALL SELECT * FROM s",
                "SELECT NULL, k % 2999, w, b FROM s",
                "SELECT id, CASE id WHEN 2765 THEN 7919 ELSE k END, w, b FROM s",
                "SELECT id / 2 * 2, k, w || id, b FROM s",
            ] {
                same_but_last_rowid(&format!(
                    "{ROWS} {TABLE}; {indexes}; BEGIN; INSERT {or} INTO t {rows}; {SEE} ROLLBACK;
                    INSERT {or} INTO t {rows}; {SEE}"
                ));
            }
        }
        same(&format!(
            "{ROWS} {TABLE}; {indexes}; INSERT INTO t SELECT * FROM s WHERE id % 3 = 0;
            INSERT INTO t SELECT * FROM s WHERE 1 ON CONFLICT DO UPDATE SET k = t.k + 200000, w = 'again'; {SEE}
            INSERT INTO t SELECT NULL, k, w, b FROM s WHERE 1 ON CONFLICT DO NOTHING; {SEE}"
        ));
    }
}

/// Constraints with actions of their own: rows are left out, take others' places, stop the
/// statement with what came before left, or undo the transaction.
#[test]
fn actions_of_constraints() {
    for action in ["ABORT", "FAIL", "ROLLBACK", "IGNORE", "REPLACE"] {
        for table in [
            format!("id INTEGER PRIMARY KEY, k INTEGER UNIQUE ON CONFLICT {action}, w UNIQUE, b"),
            format!("id INTEGER PRIMARY KEY ON CONFLICT {action}, k INTEGER UNIQUE, w, b"),
            format!("id INTEGER PRIMARY KEY, k INTEGER UNIQUE, w, b NOT NULL ON CONFLICT {action}"),
        ] {
            same_but_last_rowid(&format!(
                "{ROWS} CREATE TABLE t({table}); CREATE INDEX tw ON t(w); CREATE INDEX tb ON t(b);
                INSERT INTO t SELECT id / 2 * 2, k, w, ifnull(b, 0) FROM s WHERE id % 2 = 0; {SEE}
                BEGIN; UPDATE t SET b = 10; INSERT INTO t SELECT NULL, k, w, b FROM s WHERE id > 5; {SEE} COMMIT;
                BEGIN; UPDATE t SET k = k + 1, w = k; {SEE} COMMIT;
                INSERT INTO t SELECT id + 2990, -id, NULL, 3 FROM s; {SEE}
                UPDATE t SET k = CASE WHEN id > 2600 THEN 5 ELSE k END, b = nullif(id, 2800); {SEE}"
            ));
        }
    }
}

#[test]
fn deletes() {
    for delete in [
        "DELETE FROM t",
        "DELETE FROM t WHERE id % 2",
        "DELETE FROM t WHERE k > 20000",
        "DELETE FROM t WHERE k BETWEEN 10000 AND 90000 AND w <> 'w31'",
        "DELETE FROM t WHERE w > 'W2' AND b > 2",
        "DELETE FROM t WHERE k IN (SELECT k FROM t WHERE id > 1000)",
        "DELETE FROM t WHERE id > 100; INSERT INTO t SELECT * FROM s WHERE id > 100",
    ] {
        each(delete);
    }
}

/// A statement that looks into nothing but unique indexes: of one row, or of values that
/// are given.
fn simple_statement(random: &mut Random) -> String {
    let (id, k, b) = (random.below(6_000), random.below(100_000), random.below(9));
    let w = format!(
        "'{}{}'",
        ["w", "W", "v"][random.below(3) as usize],
        random.below(7_001)
    );
    let or = ["", "", "", "OR IGNORE", "OR FAIL"][random.below(5) as usize];
    match random.below(25) {
        0..=9 => format!("INSERT {or} INTO t VALUES (NULL, {k}, {w}, {b})"),
        10 | 11 => format!("INSERT {or} INTO t VALUES ({id}, {k}, {w}, NULL)"),
        12 => format!(
            "INSERT INTO t VALUES ({id}, {k}, {w}, {b}) ON CONFLICT DO UPDATE SET k = excluded.k + 1, b = t.b"
        ),
        13 | 14 => format!("UPDATE {or} t SET k = {k} WHERE id = {id}"),
        15 => format!("UPDATE {or} t SET w = {w}, b = {b} WHERE id = {id}"),
        16 => format!("UPDATE {or} t SET id = {} WHERE id = {id}", id + 7_000),
        17 | 18 => format!("DELETE FROM t WHERE id = {id}"),
        19 => format!("SELECT * FROM t WHERE id = {id}"),
        20 => format!(
            "INSERT {or} INTO t VALUES (NULL, {k} + 1, {w}, 1), (NULL, {k}, {w}, 2), ({id}, {k} + 2, {w}, 3)"
        ),
        21 => format!(
            "INSERT INTO t VALUES ({id}, {k}, {w}, 2), (NULL, {k} - 1, 'x', {b}) ON CONFLICT DO NOTHING"
        ),
        22 => format!("INSERT OR REPLACE INTO t VALUES ({id}, {k}, {w}, {b})"),
        23 => format!("INSERT {or} INTO t VALUES (NULL, {k}, {w}, {b}) RETURNING k, w || b"),
        _ => format!(
            "UPDATE t SET k = k + 3, b = {b} WHERE id = {id} RETURNING abs(-9223372036854775807 - (b > 6))"
        ),
    }
}

/// What comes between: it looks into indexes, changes many rows, fails in the midst of a
/// row, sets a place to go back to, goes back, changes the schema, or ends the transaction.
const BETWEEN: [&str; 13] = [
    "SELECT sum(id), count(*) FROM t WHERE k BETWEEN 20000 AND 29000",
    "SELECT group_concat(id) FROM (SELECT id FROM t WHERE w > 'w5' ORDER BY w, id)",
    "UPDATE t SET b = b + 1 WHERE k > 40000",
    "DELETE FROM t WHERE w BETWEEN 'w1' AND 'w12' AND k > 30000",
    "INSERT OR REPLACE INTO t VALUES (1234, 77, 'r', 1)",
    "INSERT INTO t VALUES (NULL, 78, 'q', (SELECT count(*) FROM t WHERE k > 50000))",
    "INSERT INTO t VALUES (NULL, 79, 'o', 1) RETURNING abs(-9223372036854775807 - (k > (SELECT 0)))",
    "ROLLBACK TO p",
    "SAVEPOINT q; INSERT INTO t(k) VALUES (3); RELEASE q",
    "SAVEPOINT q; UPDATE t SET w = 'u' WHERE id < 40; DELETE FROM t WHERE id = 999; ROLLBACK TO q",
    "DROP INDEX tb; CREATE INDEX tb ON t(b)",
    "ROLLBACK; BEGIN; SAVEPOINT p",
    "COMMIT; BEGIN; SAVEPOINT p",
];

#[test]
fn transactions_of_many_statements() {
    for (seed, indexes) in [INDEXES[0], INDEXES[1], INDEXES[3]].iter().enumerate() {
        println!("seed {seed}");
        let mut random = Random(seed as u64);
        let mut between = BETWEEN.to_vec();
        let mut sql =
            format!("{ROWS} {TABLE}; {indexes}; CREATE INDEX tb ON t(b, w); BEGIN; SAVEPOINT p;");
        while !between.is_empty() {
            for _ in 0..2_400 {
                sql += &format!("{};", simple_statement(&mut random));
            }
            let at = random.below(between.len() as u64) as usize;
            sql += &format!("{}; {SEE}", between.swap_remove(at));
        }
        same(&format!("{sql} COMMIT; {SEE}"));
    }
}

/// Somebody else holds the locks that a large transaction needs, when its entries are made:
/// it stays open, and what was made before is not made twice, be the rest in memory or not.
#[test]
fn who_is_busy_leaves_the_transaction_open() {
    for memory in [64 << 20, 0] {
        let engine = support::engine();
        let (ours, other) = (engine.session(), engine.session());
        ours.set_busy_timeout(Duration::from_millis(1));
        ours.set_memory_limit(memory);
        must(
            &ours,
            "CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT); CREATE INDEX a ON t(k);
            CREATE INDEX b ON t(k || 'b'); CREATE INDEX c ON t(k || 'c'); CREATE INDEX d ON t(k || 'd')",
        );
        let mut random = Random(5);
        must(&ours, "BEGIN");
        for _ in 0..4_000 {
            let key = format!("{:016x}", random.next()).repeat(36);
            must(&ours, &format!("INSERT INTO t(k) VALUES ('{key}')"));
        }
        must(&other, "BEGIN IMMEDIATE");
        let count = "SELECT count(*) FROM t INDEXED BY d WHERE k || 'd' > ''";
        let insert = "INSERT INTO t(k) VALUES ('one more')";
        for asked in [count, "SAVEPOINT p", insert, "COMMIT", count] {
            let answer = run(&ours, asked);
            assert!(answer[0].starts_with("error 5: "), "{asked}: {answer:?}");
            assert!(!ours.is_autocommit(), "{asked}");
        }
        must(&other, "COMMIT");
        must(&ours, insert);
        assert_eq!(run(&ours, count), ["4001"]);
        must(&ours, "COMMIT");
        assert_eq!(run(&other, "PRAGMA integrity_check"), ["'ok'"]);
    }
}
