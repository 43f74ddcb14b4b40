//! GROUP BY with a LIMIT, beside SQLite: an index that begins with the keys gives the groups
//! one after the other, also where their rows have to be looked up.

mod support;

use support::{must, same};

const TABLE: &str = "CREATE TABLE t(k INT, n, s TEXT COLLATE NOCASE, g INT, w TEXT, v INT);
    WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 2999)
        INSERT INTO t SELECT nullif(i * 7919 % 1009, 5),
            CASE i % 7 WHEN 0 THEN i % 500 WHEN 1 THEN i % 500 * 1.0 WHEN 2 THEN NULL
                WHEN 3 THEN 'x' || (i % 300) ELSE -(i % 400) END,
            substr('aAbBcC', 1 + i % 6, 1) || (i / 6 % 200), i * 31 % 700,
            'w' || (i * 13 % 900), i * 17 % 1000 FROM c;
    CREATE INDEX tk ON t(k);
    CREATE INDEX tn ON t(n, g);
    CREATE INDEX ts ON t(s);
    CREATE INDEX tb ON t(s COLLATE BINARY);
    CREATE INDEX td ON t(w DESC);
    CREATE INDEX tg ON t(g, k) WHERE k > 10;";

/// Which of a group's equal values stands for it depends on the plan: such keys are shown in
/// a way that is the same for all.
const GROUPED: [&str; 14] = [
    "k, min(v) FROM t GROUP BY k",
    "k, sum(v), count(*) FROM t GROUP BY k HAVING sum(v) > 900",
    "k, count(DISTINCT v), max(w) FROM t GROUP BY k ORDER BY k",
    "k, sum(v) FROM t WHERE v % 5 = 2 GROUP BY k",
    "k, sum(v) FROM t WHERE k > 300 GROUP BY k",
    "k, sum(v) FROM t WHERE g = 31 GROUP BY k",
    "k, sum(v) FROM t GROUP BY k ORDER BY k DESC",
    "round(n), typeof(n) = 'text', count(*), sum(v) FROM t GROUP BY n",
    "round(n), g, sum(v) FROM t GROUP BY n, g",
    "lower(s), count(*), sum(v) FROM t GROUP BY s",
    "s, sum(v) FROM t GROUP BY s COLLATE BINARY",
    "w, sum(v) FROM t GROUP BY w ORDER BY w",
    "g, sum(v) FROM t GROUP BY g",
    "g, sum(v) FROM t WHERE k > 10 GROUP BY g",
];

const LIMITS: [&str; 7] = [
    "",
    "LIMIT 1",
    "LIMIT 10",
    "LIMIT 5 OFFSET 20",
    "LIMIT 0",
    "LIMIT -1 OFFSET 90",
    "LIMIT 5000",
];

#[test]
fn the_first_groups_are_those_of_all() {
    let mut queries = String::new();
    for grouped in GROUPED {
        for limit in LIMITS {
            queries += &format!("SELECT {grouped} {limit};");
        }
    }
    same(&format!("{TABLE}{queries}"));
    same(&format!("{TABLE}ANALYZE;{queries}"));
    same(&format!("{TABLE}DELETE FROM t;{queries}"));
}

/// All rows were grouped for the first ten groups: 185 times SQLite's time.
#[test]
fn few_groups_are_found_by_their_index() {
    let session = support::session();
    must(&session, TABLE);
    let plan = |tail: &str| {
        let text = format!("EXPLAIN QUERY PLAN SELECT k, sum(v) FROM t GROUP BY k {tail}");
        must(&session, &text).join("\n")
    };
    for tail in [
        "LIMIT 10",
        "HAVING sum(v) > 2 LIMIT 10",
        "ORDER BY k LIMIT 10",
        "LIMIT ?",
        "LIMIT 10 OFFSET 20",
    ] {
        assert!(plan(tail).contains("INDEX tk"), "{}", plan(tail));
    }
    for tail in [
        "",
        "LIMIT -1",
        "LIMIT 5000",
        "LIMIT 10 OFFSET 5000",
        "ORDER BY 2 LIMIT 10",
    ] {
        assert!(!plan(tail).contains("INDEX tk"), "{}", plan(tail));
    }
}
