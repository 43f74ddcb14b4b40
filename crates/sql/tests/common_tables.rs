//! Common table expressions that are named more than once, beside SQLite: they are computed
//! once where nothing speaks against it.

mod support;

use support::{must, run, same};

const TABLES: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, v REAL, s TEXT);
    CREATE INDEX tk ON t(k);
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300)
        INSERT INTO t SELECT i, i % 17, i * 7 % 50 / 2.0, 's' || (i % 5) FROM c;
    CREATE TABLE u(k INT, name TEXT); INSERT INTO u VALUES (1, 'one'), (2, 'two'), (3, NULL), (99, 'none');";

const QUERIES: &[&str] = &[
    "WITH c AS (SELECT k, sum(v) AS total FROM t GROUP BY k)
        SELECT name, total FROM u, c WHERE u.k = c.k AND total >= (SELECT min(total) FROM c) ORDER BY name",
    "WITH c AS (SELECT k, sum(v) AS total FROM t GROUP BY k)
        SELECT k, total FROM c WHERE total = (SELECT max(total) FROM c)",
    "WITH c(a, b) AS (SELECT k, count(*) FROM t GROUP BY k) SELECT x.a, y.b FROM c x, c y WHERE x.a = y.a + 1 ORDER BY 1",
    "WITH c AS (SELECT DISTINCT s FROM t) SELECT a.s, b.s FROM c a LEFT JOIN c b ON b.s > a.s ORDER BY 1, 2",
    "WITH c AS (SELECT k FROM t UNION SELECT k FROM u) SELECT count(*), (SELECT max(k) FROM c) FROM c",
    "WITH c AS (SELECT k FROM t WHERE id < 4 UNION ALL SELECT k FROM u) SELECT * FROM c UNION ALL SELECT k + 100 FROM c",
    "WITH c AS (SELECT k FROM t WHERE id < 40 UNION ALL SELECT k FROM u) SELECT (SELECT count(*) FROM c WHERE k = 3), (SELECT count(*) FROM c WHERE k > 3)",
    "WITH c AS (SELECT id, k FROM t ORDER BY v DESC, id LIMIT 5) SELECT (SELECT group_concat(id) FROM c), (SELECT sum(k) FROM c)",
    "WITH c AS (SELECT id FROM t ORDER BY v, id LIMIT 3) SELECT id FROM c UNION ALL SELECT id FROM c",
    "WITH c AS NOT MATERIALIZED (SELECT k, max(v) AS m FROM t GROUP BY k) SELECT (SELECT count(*) FROM c), (SELECT sum(m) FROM c)",
    "WITH c AS MATERIALIZED (SELECT k, max(v) AS m FROM t GROUP BY k) SELECT (SELECT count(*) FROM c), (SELECT sum(m) FROM c)",
    // One that names another one, and that is named in turn.
    "WITH a AS (SELECT k, count(*) AS n FROM t GROUP BY k), b AS (SELECT n, count(*) AS m FROM a GROUP BY n)
        SELECT (SELECT sum(m) FROM b), (SELECT max(n) FROM b), (SELECT min(n) FROM a), (SELECT count(*) FROM a)",
    // What is around it: one value of it for each row.
    "SELECT k, (WITH c AS (SELECT max(v) AS m FROM t WHERE t.k = u.k) SELECT a.m + b.m FROM c a, c b) FROM u",
    "SELECT k, (WITH c AS (SELECT max(v) AS m FROM t) SELECT a.m + b.m + u.k FROM c a, c b) FROM u",
    "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k)
        SELECT k, (SELECT n FROM c WHERE c.k = u.k), (SELECT sum(n) FROM c WHERE c.n > u.k) FROM u",
    // Conditions that choose groups.
    "WITH c AS (SELECT k, sum(v) AS total FROM t GROUP BY k)
        SELECT a.total, b.total FROM c a, c b WHERE a.k = 3 AND b.k = 5",
    "WITH c AS (SELECT k, sum(v) AS total FROM t GROUP BY k)
        SELECT (SELECT total FROM c WHERE k = 3), (SELECT max(total) FROM c), count(*) FROM c",
    // A value that is another one each time.
    "WITH c AS (SELECT random() AS r) SELECT a.r = b.r FROM c a, c b",
    "WITH c AS (SELECT k, random() AS r FROM t GROUP BY k) SELECT count(*) FROM c a JOIN c b ON a.k = b.k AND a.r = b.r",
    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i * 2 FROM c WHERE i < 100)
        SELECT (SELECT count(*) FROM c), (SELECT max(i) FROM c), a.i + b.i FROM c a, c b WHERE a.i = b.i * 4",
    "WITH RECURSIVE n AS (SELECT max(k) AS m FROM t),
        c(i) AS (SELECT m FROM n UNION ALL SELECT i - 1 FROM c, n WHERE i > m - 4) SELECT i, m FROM c, n",
    "WITH v(a, b) AS (VALUES (1, 'x'), (2, 'y'), (3, NULL)) SELECT * FROM v, v AS w WHERE v.a < w.a",
    "SELECT * FROM (WITH c AS (SELECT count(*) AS n FROM t) SELECT n FROM c UNION ALL SELECT n + 1 FROM c)",
    "WITH c AS (SELECT nothing FROM t GROUP BY 1) SELECT * FROM c, c AS d",
    "WITH c AS (SELECT k FROM d GROUP BY k), d AS (SELECT k FROM c GROUP BY k) SELECT * FROM c, c AS e",
    "WITH c AS (SELECT abs(-9223372036854775808) AS x FROM u GROUP BY k) SELECT count(*) FROM c, c AS d WHERE d.x > 0",
    "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT count(*) FROM c AS a, c AS b, c AS d WHERE a.k = b.k AND b.k = d.k",
];

#[test]
fn they_give_what_sqlite_gives() {
    for query in QUERIES {
        same(&format!("{TABLES} {query};"));
    }
}

#[test]
fn statements_that_write_read_them_as_they_were() {
    for statement in [
        "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k) INSERT INTO u SELECT a.k, b.n FROM c a, c b WHERE a.k = b.k",
        "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k)
            UPDATE u SET name = (SELECT n FROM c WHERE c.k = u.k) WHERE k IN (SELECT k FROM c)",
        "WITH c AS (SELECT k, avg(v) AS n FROM t GROUP BY k)
            DELETE FROM t WHERE v > (SELECT n FROM c WHERE c.k = t.k) AND k < (SELECT max(k) FROM c)",
        "CREATE VIEW w AS WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT a.k, b.n FROM c a JOIN c b USING (k);
            SELECT * FROM w; SELECT count(*) FROM w a, w b WHERE a.k = b.k",
        "CREATE TRIGGER g AFTER INSERT ON u BEGIN INSERT INTO t(k, s) SELECT new.k, x FROM
            (WITH c AS (SELECT count(*) AS n FROM t) SELECT a.n + b.n AS x FROM c a, c b); END;
            INSERT INTO u VALUES (1, 'a'), (2, 'b')",
    ] {
        same(&format!("{TABLES} {statement}; SELECT * FROM u; SELECT * FROM t;"));
    }
}

#[test]
fn plans_show_one_computation() {
    let session = support::session();
    must(&session, TABLES);
    let plan = |query: &str| must(&session, &format!("EXPLAIN QUERY PLAN {query}")).join("\n");
    let shown = plan(
        "WITH c AS (SELECT k, sum(v) AS total FROM t GROUP BY k)
        SELECT name, total FROM u, c WHERE u.k = c.k AND total = (SELECT max(total) FROM c)",
    );
    assert_eq!(
        shown.matches("ROWS OF c FROM SUBQUERY").count(),
        2,
        "{shown}"
    );
    assert_eq!(shown.matches("SCAN t").count(), 1, "{shown}");
    for query in [
        // Once, or as it says, or joined with what is around it, or for what is chosen of it.
        "WITH c AS (SELECT k, count(*) FROM t GROUP BY k) SELECT * FROM c",
        "WITH c AS NOT MATERIALIZED (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT (SELECT max(n) FROM c), (SELECT min(n) FROM c)",
        "WITH c AS (SELECT k, v FROM t WHERE v > 3) SELECT * FROM c, c AS d WHERE c.k = 1 AND d.k = 2",
        "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT * FROM c, c AS d WHERE c.k = 1 AND d.k = 2",
        "SELECT (WITH c AS (SELECT max(v) AS m FROM t WHERE t.k = u.k) SELECT a.m + b.m FROM c a, c b) FROM u",
    ] {
        let shown = plan(query);
        assert!(!shown.contains("ROWS OF"), "{shown}");
    }
}

/// Thirty levels, each of which names the one before twice: a billion computations one by one.
#[test]
fn chains_are_bound_and_computed_once_a_link() {
    let mut ctes = vec!["c0 AS (SELECT count(*) AS n FROM t)".to_owned()];
    for i in 1..=30 {
        let before = i - 1;
        ctes.push(format!(
            "c{i} AS (SELECT max(a.n + b.n) AS n FROM c{before} a, c{before} b)"
        ));
    }
    let session = support::session();
    must(&session, TABLES);
    let query = format!("WITH {} SELECT n FROM c30", ctes.join(", "));
    assert_eq!(run(&session, &query), [(300u64 << 30).to_string()]);
}

#[test]
fn rows_that_do_not_fit_are_kept_on_disk() {
    let session = support::session();
    session.set_memory_limit(0);
    must(&session, TABLES);
    let rows = must(
        &session,
        "WITH c AS (SELECT t.id * 300 + o.id AS i, max(t.s || o.s) AS s FROM t, t o GROUP BY 1)
        SELECT (SELECT count(*) FROM c), sum(a.i = b.i), sum(length(a.s)) FROM c a JOIN c b ON a.i = b.i",
    );
    assert_eq!(rows, ["90000,90000,360000"]);
}

/// Each stands for two of the one before it: what is guessed of their rows must not count
/// them all.
#[test]
fn a_chain_of_doubled_tables_is_planned_in_time() {
    let mut sql = String::from("WITH c0(x) AS (SELECT 1)");
    for i in 1..=60 {
        let before = i - 1;
        sql.push_str(&format!(
            ", c{i}(x) AS (SELECT x FROM c{before} UNION ALL SELECT x FROM c{before} LIMIT 3)"
        ));
    }
    sql.push_str(" SELECT count(*) FROM c60 a JOIN (VALUES (1), (2)) b ON b.column1 = a.x");
    let session = support::session();
    assert_eq!(support::run(&session, &sql), ["3"]);
}
