//! What joins ask of pairs of rows beside their keys: of many pairs at once, on the right side
//! of a nested loop or of the pairs that a hash join finds.

mod support;

use support::{must, run, same, session};

/// Tables of 40 rows and of 3,000, which has no index on what is joined, with values of all
/// kinds among those that are compared.
const TABLES: &str = "
CREATE TABLE few(id INTEGER PRIMARY KEY, k INT, x, s TEXT, n TEXT COLLATE NOCASE, r REAL);
CREATE TABLE many(id INTEGER PRIMARY KEY, k INT, x, s TEXT, n TEXT COLLATE NOCASE, r REAL);
WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT 40)
    INSERT INTO few SELECT i, i % 13, iif(i % 5, i * 7, 'x' || i), i * 3 || '', char(65 + i % 6 + i % 2 * 32), i / 3.0 FROM i;
INSERT INTO few VALUES (100, NULL, NULL, NULL, NULL, NULL), (101, 4, 9.5, 'é', 'b', -1e300), (102, 4, x'3132', '12', 'B ', 12);
WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT 3000)
    INSERT INTO many SELECT i, i % 60, iif(i % 7, i, i || ''), i % 200 || '', char(65 + i % 9), i / 16.0 FROM i;
INSERT INTO many VALUES (5000, NULL, NULL, NULL, NULL, NULL), (5001, 5, x'35', 'é', 'ä', 0.5);
";

fn with(sql: &str) {
    same(&format!("{TABLES}{sql}"));
}

fn plan(sql: &str) -> String {
    let session = session();
    must(&session, TABLES);
    run(&session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n")
}

const CONDITIONS: [&str; 12] = [
    "a.r < b.r",
    "a.x < b.x AND a.k <> b.k",
    "a.id * 2 > b.id + 3",
    "a.n > b.n",
    "a.s >= b.s AND b.r > 2",
    "a.x IS NOT b.x OR a.n = b.n",
    "b.r BETWEEN a.r AND a.r + 1",
    "abs(a.k - b.k) < 2",
    "b.s LIKE a.k || '%'",
    "CASE WHEN a.k > 5 THEN b.k > 5 ELSE b.x IS NULL END",
    "b.x IN (a.x, a.k, a.s)",
    "(SELECT max(c.k) FROM few c WHERE c.id < a.id) > b.k",
];

#[test]
fn nested_loops_filter_their_right_side() {
    for condition in CONDITIONS {
        with(&format!(
            "SELECT a.id, b.id FROM few a JOIN few b ON {condition} ORDER BY 1, 2;
             SELECT a.id, b.id FROM few a LEFT JOIN few b ON {condition} ORDER BY 1, 2;
             SELECT count(*), sum(b.id) FROM few a CROSS JOIN many b WHERE {condition};
             SELECT count(*), sum(b.id) FROM few a LEFT JOIN many b ON {condition} AND b.id > 2000;
             SELECT a.id, b.id FROM few a FULL JOIN few b ON {condition} ORDER BY 1, 2;
             SELECT count(*) FROM (SELECT a.id FROM few a JOIN many b ON {condition} LIMIT 5);
             SELECT count(*), sum(c.id) FROM few a JOIN few b ON {condition} LEFT JOIN few c ON c.r > a.r + b.r;"
        ));
    }
    let plan = plan("SELECT count(*) FROM few a JOIN few b ON a.r < b.r");
    let filter = plan.find("FILTER r0<$0").expect(&plan);
    assert!(plan[filter..].contains("MATERIALIZE"), "{plan}");
}

#[test]
fn hash_joins_test_the_pairs_they_find() {
    for condition in CONDITIONS {
        with(&format!(
            "SELECT count(*), sum(a.id), sum(b.id) FROM few a JOIN many b ON a.k = b.k AND {condition};
             SELECT a.id, b.id FROM many a JOIN many b ON a.k = b.k AND {condition} AND a.id % 50 = 7 ORDER BY 1, 2;
             SELECT a.id, b.id FROM few a LEFT JOIN many b ON a.k = b.k AND {condition} ORDER BY 1, 2;
             SELECT a.id, b.id FROM few a FULL JOIN few b ON a.k = b.k AND {condition} ORDER BY 1, 2;
             SELECT count(*) FROM (SELECT a.id FROM many a JOIN many b ON a.k = b.k AND {condition} LIMIT 5);
             SELECT a.s, b.n, b.x FROM few a JOIN many b ON a.k = b.k WHERE {condition} ORDER BY 1, 2, 3, a.id, b.id LIMIT 20;"
        ));
    }
    let plan = plan("SELECT count(*) FROM many a JOIN many b ON a.k = b.k AND a.r < b.r");
    assert!(plan.contains("HASH JOIN ($0=$0) ON "), "{plan}");
}

/// An error comes where it is pulled, behind the rows before it.
#[test]
fn what_fails_comes_behind_the_pairs_before_it() {
    let huge = "-9223372036854775807 - 1";
    for join in [
        "few a JOIN many b ON abs(iif(b.id = 1500, HUGE, b.id - 1000)) > a.id",
        "few a JOIN many b ON a.k = b.k AND abs(iif(b.id > 1500, HUGE, b.id - 1000)) > a.id",
        "many a JOIN many b ON a.k = b.k AND abs(iif(a.id + b.id = 3000, HUGE, b.id)) > a.id",
    ] {
        let session = session();
        must(&session, TABLES);
        let join = join.replace("HUGE", huge);
        let all = run(&session, &format!("SELECT a.id, b.id FROM {join}"));
        assert!(all.len() > 10, "{join}: {all:?}");
        assert_eq!(all.last().unwrap(), "error 1: integer overflow", "{join}");
        let some = run(&session, &format!("SELECT a.id, b.id FROM {join} LIMIT 10"));
        assert_eq!(some, all[..10], "{join}");
    }
}

/// Right sides of few rows, of more than a batch, and of texts too large to be kept together.
#[test]
fn right_sides_of_all_sizes_are_replayed() {
    for (rows, text) in [
        (0, 1),
        (1, 1),
        (1_024, 1),
        (1_025, 1),
        (3_000, 1),
        (100, 2_000),
    ] {
        same(&format!(
            "CREATE TABLE l(x INT); INSERT INTO l VALUES (1), (700), (NULL), (2000);
             CREATE TABLE r(y INT, t TEXT);
             WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT 3000)
                 INSERT INTO r SELECT i, i || hex(zeroblob({text})) FROM i WHERE i <= {rows};
             SELECT x, count(*), min(y), max(y), sum(length(t)), max(t) FROM l CROSS JOIN r WHERE y > x GROUP BY x;
             SELECT x, count(y), min(t) FROM l LEFT JOIN r ON y < x GROUP BY x;
             SELECT x, (SELECT count(*) FROM r a CROSS JOIN r b WHERE a.y = x AND b.y < a.y) FROM l"
        ));
    }
}

/// The right side of a pass of a subquery is that of its caller's row.
#[test]
fn rows_that_are_handed_in_reach_both_sides() {
    with(
        "SELECT f.id, (SELECT count(*) FROM few a JOIN few b ON a.r < b.r AND a.k <> f.k WHERE b.k > f.k) FROM few f;
         SELECT f.id, (SELECT sum(b.id) FROM few a JOIN many b ON a.k = b.k AND a.r + f.r < b.r WHERE a.id > f.id) FROM few f;",
    );
}
