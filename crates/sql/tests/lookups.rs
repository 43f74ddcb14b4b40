//! Conditions that tell where to look: what a subquery yields, alternatives, bounds of row
//! values and times. Each of these read the whole table for want of a plan.

mod support;

use support::{must, run, same, session};

const TABLES: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c, d TEXT COLLATE NOCASE, r REAL, UNIQUE (a, b));
CREATE INDEX tb ON t(b);
CREATE INDEX tc ON t(c, a);
CREATE INDEX td ON t(d, id);
CREATE INDEX tr ON t(r);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400)
    INSERT INTO t SELECT i, i % 40, i % 11 || '', iif(i % 7, i % 9, 'x' || i % 5), char(65 + i % 3 + i % 2 * 32), i / 4.0 FROM n;
INSERT INTO t VALUES (500, NULL, NULL, NULL, NULL, NULL), (501, 5, '05', 5.0, 'ä', 1e300), (502, NULL, x'35', x'35', 'B', 2);
CREATE TABLE v(x, i INT, s TEXT, n TEXT COLLATE NOCASE, y BLOB);
INSERT INTO v VALUES (5, 5, '5', 'a', 5), ('5', 7, '05', 'A', '5'), (5.0, 5, '5', 'b', x'35'), (NULL, NULL, NULL, NULL, NULL), ('x1', 9, 'x1', 'B', 'x1'), (1e300, 3, '3', 'ä', 3);
";

fn with(sql: &str) {
    same(&format!("{TABLES}{sql}"));
}

fn plan(sql: &str) -> String {
    let session = session();
    must(&session, TABLES);
    run(&session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n")
}

/// Each pair of affinities and collations, so that what is looked up is what was equal.
#[test]
fn what_a_subquery_yields_is_looked_up() {
    for column in ["id", "a", "b", "c", "d", "r"] {
        for of in ["x", "i", "s", "n", "y", "i + 0", "s || ''"] {
            for list in [
                format!("SELECT {of} FROM v"),
                format!("SELECT {of} FROM v WHERE i = 5"),
                format!("SELECT {of} FROM v WHERE i > 100"),
                format!("VALUES (1), ('5') UNION SELECT {of} FROM v"),
            ] {
                with(&format!(
                    "SELECT id FROM t WHERE {column} IN ({list}) ORDER BY id;
                     SELECT count(*), max(id) FROM t WHERE {column} IN ({list}) AND a > 3;
                     SELECT id FROM t WHERE {column} NOT IN ({list}) ORDER BY id LIMIT 9"
                ));
            }
        }
    }
    let looked_up = [
        (
            "id IN (SELECT i FROM v)",
            "LOOKUP t (rowid=each of subquery 0)",
        ),
        (
            "b IN (SELECT s FROM v WHERE i = 5)",
            "INDEX tb (b=each of subquery 0)",
        ),
        (
            "a IN (SELECT i FROM v) AND b = '5'",
            "(a=each of subquery 0 AND b='5')",
        ),
        (
            "c IN (SELECT x FROM v) AND a > 9",
            "(c=each of subquery 0 AND a>9)",
        ),
    ];
    for (condition, expected) in looked_up {
        let shown = plan(&format!("SELECT r FROM t WHERE {condition}"));
        assert!(shown.contains(expected), "{condition}: {shown}");
    }
}

#[test]
fn what_is_looked_up_by_a_subquery_may_be_joined_ordered_and_written() {
    with(
        "SELECT t.id, w.id FROM t JOIN t w ON w.id = t.a WHERE t.id IN (SELECT i FROM v) ORDER BY 1, 2",
    );
    with(
        "SELECT v.i, t.id FROM v LEFT JOIN t ON t.id IN (SELECT i FROM v) AND t.a = v.i ORDER BY 1, 2",
    );
    with("SELECT id FROM t WHERE id IN (SELECT i FROM v) ORDER BY id DESC LIMIT 2");
    with("SELECT id FROM t WHERE d IN (SELECT n FROM v) ORDER BY d, id DESC LIMIT 7");
    with("SELECT id FROM t WHERE a IN (SELECT i FROM v) AND b IN (SELECT s FROM v) ORDER BY id");
    with(
        "SELECT id FROM t WHERE id IN (SELECT a FROM t WHERE id IN (SELECT i FROM v)) ORDER BY id",
    );
    with("SELECT x, (SELECT count(*) FROM t WHERE a IN (SELECT i FROM v) AND c = v.x) FROM v");
    with(
        "SELECT x, (SELECT count(*) FROM t WHERE a IN (SELECT w.i FROM v w WHERE w.i <= v.i)) FROM v",
    );
    with(
        "DELETE FROM t WHERE id IN (SELECT a FROM t WHERE id > 100); SELECT count(*), sum(id) FROM t",
    );
    with(
        "UPDATE t SET id = id + 1000, a = NULL WHERE a IN (SELECT i FROM v); SELECT count(*), sum(id), sum(a) FROM t",
    );
    with("WITH few AS (SELECT i FROM v WHERE i < 8) SELECT id FROM t WHERE id IN few ORDER BY id");
    with(
        "SELECT id FROM t WHERE id IN (SELECT value FROM json_each('[3, 4, 4, \"5\", null, 9.0, 1.5]')) ORDER BY id",
    );
    with("SELECT id FROM t WHERE id IN (SELECT i FROM v GROUP BY i HAVING count(*) > 1)");
    with("SELECT id FROM t WHERE a = 5 AND id IN (SELECT abs(-9223372036854775808) FROM v)");
}

#[test]
fn lists_of_constants_are_asked_for_a_batch_at_a_time() {
    let many: Vec<String> = (0..60).map(|i| (i * 7).to_string()).collect();
    let many = many.join(", ");
    for column in ["id", "a", "b", "c", "d", "r", "id + 0", "b || ''", "+d"] {
        for list in [
            &many,
            "3, '5', 5.0, x'35', 'x1', 'A', 1.25",
            "3, NULL, 'b'",
            "NULL",
            &format!("{many}, 'x1', 'b', 1.25, x'35'"),
            &format!("{many}, NULL"),
            &format!("{many}, abs(-3), 2 + 2"),
        ] {
            with(&format!(
                "SELECT id FROM t WHERE {column} IN ({list}) ORDER BY id;
                 SELECT id FROM t NOT INDEXED WHERE {column} IN ({list}) ORDER BY id;
                 SELECT id FROM t NOT INDEXED WHERE {column} NOT IN ({list}) ORDER BY id;
                 SELECT count(*) FROM t WHERE {column} IN ({list}) OR a = 3"
            ));
        }
    }
}

#[test]
fn what_alternatives_share_is_a_condition_of_its_own() {
    with(
        "SELECT t.id, v.i FROM t, v WHERE (t.id = v.i AND v.s > '4') OR (t.id = v.i AND t.a < 5) ORDER BY 1, 2",
    );
    with("SELECT id FROM t WHERE (a = 5 AND b = '5') OR (a = 5 AND c = 3) OR a = 5 ORDER BY id");
    with(
        "SELECT id FROM t WHERE (a = 5 AND b IS NULL) OR (b IS NULL AND a = 5) OR (a = 5 AND b IS NULL AND c) ORDER BY id",
    );
    with(
        "SELECT count(*), count((a > 3 AND b) OR (a > 3 AND c)) FROM t WHERE NOT ((a > 3 AND b) OR (a > 3 AND c))",
    );
    let shown =
        plan("SELECT * FROM t, v WHERE (t.id = v.i AND v.s > '4') OR (t.id = v.i AND t.a < 5)");
    assert!(
        shown.contains("LOOKUP t") || shown.contains("HASH JOIN"),
        "{shown}"
    );
}

#[test]
fn row_values_bound_an_index() {
    for op in ["<", "<=", ">", ">="] {
        with(&format!(
            "SELECT id FROM t WHERE (b, id) {op} ('5', 100) ORDER BY b, id;
             SELECT id FROM t WHERE (b, id) {op} ('5', 100) ORDER BY b DESC, id DESC LIMIT 5;
             SELECT id FROM t WHERE (d, id) {op} ('b', 100) ORDER BY d, id LIMIT 5;
             SELECT id FROM t WHERE (r, a, id) {op} (20, 3, 100) ORDER BY r, id LIMIT 5;
             SELECT id FROM t WHERE (r, a) {op} (20, NULL) ORDER BY r, id LIMIT 5;
             SELECT id FROM t WHERE (NULL, a) {op} (r, 3);
             SELECT id FROM t WHERE ('5', 100) {op} (b, id) ORDER BY b, id LIMIT 5"
        ));
    }
    with("SELECT id FROM t WHERE b < '3' OR (b = '3' AND id < 50) ORDER BY b, id");
    with("SELECT id FROM t WHERE r < 3 OR (r > 3 AND id < 50) ORDER BY r, id");
    let shown = plan("SELECT id FROM t WHERE (r, id) < (20, 50) ORDER BY r DESC, id DESC LIMIT 5");
    assert!(shown.contains("tr (r<=20) BACKWARDS"), "{shown}");
}

/// Nothing but the machine's time zone makes these functions raise an error.
#[test]
fn times_computed_from_constants_bound_an_index() {
    let table = "CREATE TABLE e(id INTEGER PRIMARY KEY, at TEXT); CREATE INDEX ea ON e(at);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500)
            INSERT INTO e SELECT i, date('2024-01-01', i || ' days') FROM n;";
    for bound in [
        "BETWEEN '2024-02-01' AND date('2024-02-01', '+3 days')",
        "> datetime('2025-05-01', 'start of month')",
        "< strftime('%Y-%m-%d', '2024-01-04')",
        "> date(at, '-1 day') AND id < 4",
        "> date('no date')",
        "= date('2024-02-01', '+1 month', 'localtime', 'utc')",
    ] {
        same(&format!(
            "{table} SELECT id FROM e WHERE at {bound} ORDER BY id"
        ));
    }
    let session = session();
    must(&session, table);
    let query = "SELECT id FROM e WHERE at BETWEEN ?1 AND date(?1, '+3 days')";
    let shown = run(&session, &format!("EXPLAIN QUERY PLAN {query}")).join("\n");
    assert!(
        shown.contains("ea (at>=?1 AND at<=date(?1, '+3 days'))"),
        "{shown}"
    );
}

#[test]
fn alternatives_are_looked_up_each_by_its_index() {
    for condition in [
        "a = 5 OR r = 2.5",
        "a = 5 OR id = 7 OR d = 'b'",
        "(a = 5 AND b > '3') OR (c = 3 AND a < 9)",
        "a IS NULL OR r > 99",
        "a IN (3, 5) OR b IN ('3', '05') OR id BETWEEN 4 AND 9",
        "a = 5 OR r = 2.5 OR length(d) = 0",
        "(a = 5 OR r = 2.5) AND (b = '3' OR c = 3)",
        "a = 5 OR a = 6 OR id = 500",
        "a = 1e400 OR b = 5",
        "NOT (a = 5 OR r = 2.5) AND id < 9",
    ] {
        for tail in [
            "ORDER BY id",
            "ORDER BY id DESC LIMIT 3",
            "ORDER BY r, id LIMIT 4",
        ] {
            with(&format!("SELECT id, b, d FROM t WHERE {condition} {tail}"));
        }
        with(&format!(
            "SELECT count(*), sum(id) FROM t WHERE {condition}"
        ));
        with(&format!(
            "SELECT v.i, t.id FROM v LEFT JOIN t ON t.a = v.i AND ({condition}) ORDER BY 1, 2;
             DELETE FROM t WHERE {condition}; SELECT count(*) FROM t;
             UPDATE t SET a = 5, b = id WHERE {condition}; SELECT count(*), sum(a) FROM t"
        ));
    }
    with("SELECT v.i, t.id FROM v JOIN t ON t.a = v.i OR t.b = v.s ORDER BY 1, 2");
    with(
        "SELECT v.i, t.id FROM v LEFT JOIN t ON t.id = v.i OR t.b = v.s AND t.a > v.i ORDER BY 1, 2",
    );
    with(
        "SELECT i, (SELECT count(*) || ' ' || sum(id) FROM t WHERE t.a = v.i OR t.b = v.s) FROM v",
    );
    let shown = plan("SELECT d FROM t WHERE a = 5 OR r = 2.5");
    assert!(shown.contains("LOOKUP t (any of rowids)"), "{shown}");
    assert!(shown.contains("tr (r=2.5)"), "{shown}");
}

/// A view that groups was computed as a whole whatever was asked of it.
#[test]
fn conditions_on_groups_are_conditions_of_the_grouped_query() {
    let view = "CREATE VIEW g AS SELECT a, d, b AS bb, count(*) AS n, max(r) AS m, c FROM t GROUP BY d, a, b;
        CREATE VIEW u AS SELECT DISTINCT d, c, a FROM t;";
    for condition in [
        "a = 5",
        "a = 5 AND n > 1",
        "a BETWEEN 3 AND 5 AND d = 'a'",
        "d = 'A' COLLATE BINARY",
        "d > 'a' AND a IS NULL",
        "a IN (3, 5, '7')",
        "a IN (SELECT i FROM v)",
        "a = '5' AND d IS NOT NULL",
        "a || '' = '5'",
        "a = c",
        "5 > a",
        "d = (SELECT n FROM v LIMIT 1)",
        "a NOT IN (SELECT i FROM v WHERE i > 5)",
        // No keys of groups: they were taken for some, and were not where the plan expected them.
        "m IS NULL",
        "n IS NOT NULL AND c IS NULL",
        // These were moved together with what is handed in to them, which has no meaning there.
        "a IN (SELECT i FROM v WHERE i = a)",
        "a NOT IN (SELECT i FROM v WHERE i > c)",
        "a = (SELECT max(i) FROM v WHERE i <= a)",
    ] {
        with(&format!(
            "{view} SELECT a, lower(d), bb, n, m FROM g WHERE {condition} ORDER BY 1, 2, 3;
             SELECT lower(d), c, a FROM u WHERE {condition} ORDER BY 3, 2, 1;
             SELECT v.i, g.a, g.m FROM v LEFT JOIN g ON {condition} ORDER BY v.i, g.a, g.m;
             SELECT v.i, g.a, g.m FROM v JOIN g ON g.a = v.i WHERE {condition} ORDER BY v.i, g.a, g.m"
        ));
    }
    let numbers =
        "CREATE TABLE k(x, y); INSERT INTO k VALUES (1, 1), (1.0, 2), ('1', 3), (2, 4), (2.5, 5);";
    for condition in [
        "x = '1.0'",
        "x = 1",
        "x = '1'",
        "x IN ('1.0', 2)",
        "x LIKE '1%'",
    ] {
        same(&format!(
            "{numbers} SELECT * FROM (SELECT x, sum(y) FROM k GROUP BY x) WHERE {condition};
             SELECT * FROM (SELECT CAST(x AS TEXT) AS x, sum(y) FROM k GROUP BY 1) WHERE {condition};
             SELECT * FROM (SELECT DISTINCT x FROM k) WHERE {condition}"
        ));
    }
    with("SELECT * FROM (SELECT a, count(*) AS n FROM t GROUP BY a LIMIT 3) WHERE a = 5");
    with("SELECT * FROM (SELECT count(*) AS n, 5 AS a FROM t) WHERE a = 6");
    with(
        "SELECT * FROM (SELECT a, row_number() OVER (ORDER BY id) AS n FROM t) WHERE a = 5 AND n > 40",
    );
    let session = session();
    must(&session, &format!("{TABLES}{view}"));
    let shown = run(&session, "EXPLAIN QUERY PLAN SELECT n FROM g WHERE a = 5").join("\n");
    assert!(shown.contains("(a=5)"), "{shown}");
}

/// EXISTS (SELECT * …) read every column of each row that it asked for.
#[test]
fn exists_reads_no_columns() {
    with("SELECT i FROM v WHERE EXISTS (SELECT * FROM t WHERE a = v.i) ORDER BY 1");
    with(
        "SELECT i FROM v WHERE NOT EXISTS (SELECT *, 1 AS k FROM t WHERE a = v.i ORDER BY k, b LIMIT 1) ORDER BY 1",
    );
    with(
        "SELECT EXISTS (SELECT DISTINCT a, b FROM t), EXISTS (SELECT max(a) FROM t WHERE 0), EXISTS (SELECT a FROM t WHERE 0 GROUP BY b)",
    );
    with("SELECT EXISTS (SELECT abs(-9223372036854775808) FROM t WHERE id = 3)");
    with("SELECT EXISTS (SELECT row_number() OVER (ORDER BY a) FROM t LIMIT 1 OFFSET 500)");
    with("SELECT EXISTS (SELECT a, b UNION SELECT 1, 2 LIMIT 1) FROM t WHERE id < 3");
    with(
        "SELECT (SELECT 1 FROM v w WHERE EXISTS (SELECT t.a, v.i, w.x FROM t WHERE t.a = w.i AND t.id > v.i) LIMIT 1) FROM v",
    );
    let shown = plan("SELECT i FROM v WHERE EXISTS (SELECT * FROM t WHERE a = v.i)");
    assert!(
        shown.contains("COVERING INDEX sqlite_autoindex_t_1"),
        "{shown}"
    );
}

/// LIKE and GLOB read the whole index: what stands before the first wildcard bounds it. A
/// blob in a column of texts matches as the text of its bytes, and lies elsewhere.
#[test]
fn a_pattern_is_looked_up_by_its_beginning() {
    let tables = "
        CREATE TABLE p(id INTEGER PRIMARY KEY, b TEXT, n TEXT COLLATE NOCASE, d TEXT, k INT, x, s TEXT);
        CREATE INDEX pb ON p(b);
        CREATE INDEX pn ON p(n);
        CREATE INDEX pd ON p(d DESC);
        CREATE INDEX pk ON p(k, s);
        CREATE INDEX px ON p(x);
        CREATE TABLE texts(t);
        INSERT INTO texts VALUES ('abc'), ('ABC'), ('abcd'), ('ab'), ('abd'), ('aBcx'), ('ab' || char(0) || 'c'),
            ('@b'), ('@'), ('`'), ('[a'), ('Zz'), ('zz'), ('{z'), ('a%c'), ('a_c'), ('a*c'), ('a?c'), ('12'), ('1'),
            ('2'), (''), (NULL), (x'616263'), (x'61'), (x'41'), (x''), (x'ff'), ('\u{fc}ber'), ('\u{dc}ber'), ('\u{10ffff}x'),
            (12), (1.5), ('\u{7f}a'), ('a\u{fffd}'), (CAST(x'61ff' AS TEXT));
        INSERT INTO p SELECT NULL, t, t, t, rowid % 3, t, t FROM texts;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)
            INSERT INTO p SELECT NULL, 'w' || i, 'w' || i, 'w' || i, i % 3, 'w' || i, 'w' || i FROM n;
    ";
    let patterns = [
        "abc%",
        "ABC%",
        "ab_",
        "a%",
        "%",
        "",
        "_b",
        "@%",
        "`%",
        "[%",
        "z%",
        "Z%",
        "{%",
        "abc",
        "1%",
        "12",
        "abc*",
        "ABC*",
        "ab?",
        "a*",
        "*",
        "@*",
        "[a-b]*",
        "a[bB]c*",
        "Z*",
        "1*",
        "\u{fc}%",
        "\u{fc}*",
        "\u{dc}ber%",
        "\u{10ffff}%",
        "\u{10ffff}*",
        "\u{7f}*",
        "\u{7f}%",
        "a\u{fffd}%",
        "a\u{fffd}*",
        "w1%",
        "w2*",
    ];
    for sensitive in ["OFF", "ON"] {
        let mut sql = format!("{tables} PRAGMA case_sensitive_like = {sensitive};");
        for pattern in patterns {
            for operator in ["LIKE", "GLOB"] {
                for column in ["b", "n", "d", "x"] {
                    let condition = format!("{column} {operator} '{pattern}'");
                    sql += &format!(
                        "SELECT id FROM p WHERE {condition} ORDER BY id;
                         SELECT {column} FROM p WHERE {condition} ORDER BY {column} DESC, id;
                         SELECT count(*) FROM p WHERE NOT {condition};
                         SELECT id FROM p WHERE {condition} AND {column} < 'abd' ORDER BY id;
                         SELECT id FROM p WHERE {condition} OR id = 3 ORDER BY id;"
                    );
                }
                sql += &format!(
                    "SELECT id FROM p WHERE k IN (0, 1) AND s {operator} '{pattern}' ORDER BY id;"
                );
            }
        }
        same(&sql);
    }
    let session = session();
    must(&session, tables);
    let shown = |condition: &str| {
        let sql = format!("EXPLAIN QUERY PLAN SELECT id FROM p WHERE {condition}");
        run(&session, &sql).join("\n")
    };
    let looked_up = [
        (
            "n LIKE 'w1%'",
            "INDEX pn ((n>='w1' AND n<'w2' OR n IS BLOB))",
        ),
        (
            "b GLOB 'w1*'",
            "INDEX pb ((b>='w1' AND b<'w2' OR b IS BLOB))",
        ),
        (
            "d GLOB 'w1?'",
            "INDEX pd ((d>='w1' AND d<'w2' OR d IS BLOB))",
        ),
        (
            "k = 1 AND s GLOB 'w1*'",
            "(k=1 AND (s>='w1' AND s<'w2' OR s IS BLOB))",
        ),
    ];
    for (condition, key) in looked_up {
        let shown = shown(condition);
        assert!(shown.contains(key), "{condition}: {shown}");
    }
    for condition in [
        "b LIKE 'w1%'",
        "n GLOB 'w1*'",
        "x GLOB 'w1*'",
        "b GLOB '*1'",
        "n NOT LIKE 'w1%'",
        "n LIKE 'w1%' ESCAPE '!'",
    ] {
        let shown = shown(condition);
        assert!(!shown.contains("SEARCH"), "{condition}: {shown}");
    }
}

/// OFFSET over an index fetched the rows of all entries that it passed over, and computed
/// the results of those.
#[test]
fn what_an_offset_leaves_out_is_not_made() {
    for order in ["b", "b DESC", "c, a", "d, id", "r", "id", "a"] {
        for (limit, offset) in [
            (3, 0),
            (3, 1),
            (5, 399),
            (3, 403),
            (9, 402),
            (9, 1000),
            (-1, 390),
            (3, -1),
            (0, 5),
        ] {
            with(&format!(
                "SELECT id, b || c FROM t ORDER BY {order}, id LIMIT {limit} OFFSET {offset};
                 SELECT b, d FROM t WHERE b IN ('1', '5', '7') ORDER BY {order}, id LIMIT {limit} OFFSET {offset};
                 SELECT id, abs(r) FROM t WHERE c > 4 ORDER BY {order}, id LIMIT {limit} OFFSET {offset};
                 SELECT count(*), sum(x) FROM (SELECT id AS x FROM t ORDER BY {order}, id LIMIT {limit} OFFSET {offset})"
            ));
        }
    }
    // The first of these would be too large.
    with(
        "CREATE TABLE n(i INT); CREATE INDEX ni ON n(i);
         INSERT INTO n VALUES (-9223372036854775807 - 1), (1), (2);
         SELECT abs(i) FROM n ORDER BY i LIMIT 5 OFFSET 1;
         SELECT abs(i) FROM n ORDER BY i LIMIT 5",
    );
}

/// All groups were made for the first few, rows sorted by a key that an index is in the order
/// of, and many small groups hashed and sorted.
#[test]
fn groups_come_in_the_order_of_an_index() {
    let results = [
        "a",
        "a, count(*), count(b)",
        "a, group_concat(b)",
        "a, max(b), min(b), sum(a)",
    ];
    for result in results {
        for rest in [
            "GROUP BY a",
            "GROUP BY a ORDER BY a",
            "GROUP BY a HAVING count(*) > 10",
            "GROUP BY a HAVING a IS NOT NULL ORDER BY a",
            "GROUP BY a, b",
            "GROUP BY a, b ORDER BY a",
            "GROUP BY a, b ORDER BY b",
            "WHERE a > 7 GROUP BY a",
            "WHERE b = '5' GROUP BY a",
            "WHERE id > 390 GROUP BY a",
        ] {
            for limit in ["", "LIMIT 3", "LIMIT 4 OFFSET 37", "LIMIT 0"] {
                with(&format!("SELECT {result} FROM t {rest} {limit}"));
            }
        }
    }
    with(
        "SELECT a, count(b) FROM t GROUP BY a ORDER BY a DESC LIMIT 3;
         SELECT d, count(*) FROM t GROUP BY d LIMIT 2; SELECT d COLLATE BINARY, count(*) FROM t GROUP BY 1 LIMIT 2;
         SELECT c, count(a) FROM t GROUP BY c LIMIT 5; SELECT c, group_concat(a) FROM t GROUP BY c",
    );
    let cases = [
        ("a, count(b) FROM t GROUP BY a LIMIT 3", true),
        ("a, group_concat(b) FROM t GROUP BY a ORDER BY a", true),
        ("a, count(b) FROM t GROUP BY a", true),
        ("a, count(b) FROM t WHERE a > 20 GROUP BY a", true),
        ("d, count(*) FROM t GROUP BY d", false),
        ("a, count(r) FROM t GROUP BY a LIMIT 3", false),
        (
            "a, group_concat(b) FROM t GROUP BY a ORDER BY a DESC",
            false,
        ),
    ];
    for (query, in_order) in cases {
        let shown = plan(&format!("SELECT {query}"));
        let is_read_so = shown.contains("COVERING INDEX") && !shown.contains("SORT");
        assert_eq!(is_read_so, in_order, "{query}: {shown}");
    }
}

/// A subquery is opened anew for each row, with the memory of the row before: bounds that
/// nothing can be between, NULLs and shorter keys leave nothing behind.
#[test]
fn a_subquery_looks_up_each_row_anew() {
    for index in ["u(x, y)", "u(x DESC, y DESC)", "u(y, x)", "u(x)"] {
        for subquery in [
            "EXISTS (SELECT 1 FROM u WHERE x = t.c)",
            "NOT EXISTS (SELECT x FROM u WHERE x = t.c AND y > t.a)",
            "(SELECT count(*) FROM u WHERE x = t.c AND y BETWEEN t.a AND t.id)",
            "(SELECT group_concat(y) FROM (SELECT y FROM u WHERE x IN (t.c, t.a, 3) ORDER BY x, y))",
            "(SELECT max(y) FROM u WHERE x = t.b)",
            "(SELECT count(*) FROM u WHERE x > t.c AND x <= t.a)",
            "(SELECT y FROM u WHERE x >= t.c ORDER BY x DESC, y DESC LIMIT 1 OFFSET 2)",
            "(SELECT count(z) FROM u WHERE x IS t.c)",
        ] {
            with(&format!(
                "CREATE TABLE u(x, y INT, z); CREATE INDEX ui ON {index};
                 INSERT INTO u SELECT c, id, b FROM t WHERE id % 3; INSERT INTO u VALUES (NULL, 5, 1), (7, NULL, 2);
                 SELECT id, {subquery} FROM t ORDER BY id; SELECT id FROM t WHERE {subquery} ORDER BY id DESC"
            ));
        }
    }
}

/// What the entries of a partial index fulfil was looked at again in each row, which was
/// fetched for that alone. It is left out, and nothing else is.
#[test]
fn what_a_partial_index_says_is_not_looked_at_again() {
    for (index, conditions) in [
        (
            "t(c, a) WHERE r > 20",
            &[
                "r > 20",
                "r > 20 AND c = 5",
                "c > 3 AND r > 20 AND a < 9",
                "r > 20 AND d = 'a'",
            ][..],
        ),
        (
            "t(a) WHERE c IS NOT NULL",
            &[
                "c IS NOT NULL AND a = 5",
                "c = 5 AND a = 5",
                "c > 1 AND a IN (5, 7)",
                "c IS NOT NULL OR a = 5",
            ],
        ),
        (
            "t(a, r) WHERE d = 'b' AND c = 5",
            &[
                "d = 'b' AND c = 5 AND a > 1",
                "c = 5 AND d = 'b'",
                "d = 'B' AND c = 5",
                "d = 'b' COLLATE BINARY AND c = 5",
            ],
        ),
        (
            "t(b) WHERE a IN (1, 2, 3)",
            &[
                "a IN (1, 2, 3)",
                "a IN (1, 2, 3) AND b > '3'",
                "(a = 1 OR a = 2 OR a = 3) AND b = '3'",
                "a = 1 AND b = '3'",
            ],
        ),
        ("t(a) WHERE NULL", &["NULL", "a = 5 AND NULL"]),
    ] {
        for condition in conditions {
            with(&format!(
                "CREATE INDEX p ON {index};
                 SELECT id FROM t WHERE {condition} ORDER BY id; SELECT count(*), sum(a) FROM t WHERE {condition};
                 SELECT t.id, t.r, v.x FROM v LEFT JOIN t ON {condition} AND t.a = v.i ORDER BY 1, 2, 3, typeof(v.x);
                 SELECT v.x, t.c FROM t JOIN v ON t.a = v.i WHERE {condition} ORDER BY 1, 2, typeof(v.x), typeof(t.c);
                 SELECT i FROM v WHERE i IN (SELECT a FROM t WHERE {condition}) ORDER BY 1;
                 SELECT (SELECT max(a) FROM t WHERE {condition} AND a < v.i) FROM v;
                 UPDATE t SET a = a + 1, r = r / 2 WHERE {condition}; SELECT id, a, r FROM t ORDER BY id;
                 DELETE FROM t WHERE {condition}; SELECT count(*), sum(id) FROM t; PRAGMA integrity_check"
            ));
        }
    }
    let session = session();
    must(&session, TABLES);
    must(
        &session,
        "CREATE INDEX p ON t(c, a) WHERE r > 20 AND d IS NOT NULL",
    );
    let shown = run(
        &session,
        "EXPLAIN QUERY PLAN SELECT id, c FROM t WHERE r > 20 AND d IS NOT NULL AND c = 5",
    )
    .join("\n");
    assert!(
        shown.contains("COVERING INDEX p") && !shown.contains("FILTER"),
        "{shown}"
    );
}
