//! Scans over rows that differ from each other in what they store, and OFFSET over them.

mod support;

use support::same;

/// A value for row `i`: `kind` of them repeat row after row, as far as they do.
fn value(kind: usize, i: usize) -> String {
    let text = |len: usize| format!("'{}'", "xyz".repeat(len).get(..len).unwrap_or_default());
    match kind % 12 {
        0 => (i % 100).to_string(),
        1 => format!("{}", (i as i64 - 300) * 7_919),
        2 => i64::MAX.wrapping_sub(i as i64).to_string(),
        3 => "NULL".to_owned(),
        4 => text(i % 96),
        5 => text(90 + i % 20),
        6 => text(5_000 + i),
        7 => format!("{}.25", i),
        8 => format!("x'{:04x}'", i),
        9 => format!("zeroblob({})", 40 + i),
        10 => format!("{}e300", i + 1),
        _ => text(3),
    }
}

/// 700 rows of three columns; `mix` says how often a row breaks the pattern.
fn table(kinds: [usize; 3], mix: usize) -> String {
    let rows: Vec<String> = (1..=700)
        .map(|i| {
            let kind = |k: usize| if i % mix == 0 { k + i / mix } else { k };
            let values = kinds.map(|k| value(kind(k), i));
            format!("({}, {})", i * 3, values.join(", "))
        })
        .collect();
    format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c); INSERT INTO t VALUES {};",
        rows.join(", ")
    )
}

const QUERIES: &str = "
SELECT * FROM t;
SELECT c, a, c, id FROM t WHERE id >= 100 AND id < 401;
SELECT b FROM t WHERE id BETWEEN 99 AND 102;
SELECT id FROM t WHERE id > 2050;
SELECT c, id FROM t ORDER BY id DESC LIMIT 70;
SELECT * FROM t ORDER BY id DESC;
SELECT b, id, a, b FROM t WHERE id BETWEEN 100 AND 1300 ORDER BY id DESC;
SELECT id, a FROM t LIMIT 5 OFFSET 63;
SELECT typeof(a), typeof(b), typeof(c), count(*), min(id), max(id) FROM t
    GROUP BY typeof(a), typeof(b), typeof(c) ORDER BY 1, 2, 3;
SELECT x.id, y.id, y.b FROM t x JOIN t y ON x.id = y.id + 3 WHERE x.id < 600;
SELECT x.id, x.b, count(y.id), min(y.c) FROM t x LEFT JOIN t y ON y.id = x.id - 900
    GROUP BY x.id, x.b ORDER BY x.id;
SELECT count(*) FROM t;
";

#[test]
fn rows_of_one_pattern() {
    for first in 0..12 {
        same(&format!(
            "{}{QUERIES}",
            table([first, first + 1, first + 5], usize::MAX)
        ));
    }
}

#[test]
fn rows_that_break_the_pattern() {
    for (first, mix) in [(0, 2), (4, 3), (1, 50), (4, 65), (11, 64), (8, 7)] {
        same(&format!(
            "{}{QUERIES}",
            table([first, first + 3, first + 4], mix)
        ));
    }
}

#[test]
fn wide_rows() {
    let names: Vec<String> = (0..40).map(|i| format!("c{i}")).collect();
    let row = |i: usize| {
        let values: Vec<String> = (0..40).map(|c| value(c, i)).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (1..100).map(row).collect();
    same(&format!(
        "CREATE TABLE w({}); INSERT INTO w VALUES {};
         SELECT c0, c15, c16, c39, c4 FROM w; SELECT c39 FROM w WHERE rowid > 90;",
        names.join(", "),
        rows.join(", ")
    ));
}

#[test]
fn a_grouped_rowid_stands_for_its_row() {
    const TABLES: &str = "CREATE TABLE u(id INTEGER PRIMARY KEY, n TEXT COLLATE NOCASE);
        CREATE TABLE o(u INT, x INT);
        INSERT INTO u VALUES (1, 'a'), (2, 'A'), (3, NULL), (4, 'b');
        INSERT INTO o VALUES (1, 5), (2, 6), (1, 7), (9, 8), (NULL, 1), (4, 2);";
    for query in [
        "SELECT u.id, n, sum(x) FROM o LEFT JOIN u ON u.id = o.u GROUP BY u.id, n",
        "SELECT n, u.id, sum(x) FROM o LEFT JOIN u ON u.id = o.u GROUP BY n, u.id",
        "SELECT n, rowid, count(*) FROM u GROUP BY n, rowid ORDER BY 2",
        "SELECT a.id, b.n, count(*) FROM u a, u b GROUP BY a.id, b.n ORDER BY a.id, b.n",
        "SELECT u.id, n, x FROM o JOIN u ON u.id = o.u GROUP BY u.id, n, x",
    ] {
        same(&format!("{TABLES}{query};"));
    }
}

/// Rows that an index names are looked up together, in the order of the table, and come in
/// that of the index; where they are too large for that, one after the other.
#[test]
fn rows_come_in_the_order_of_their_entries() {
    const TABLES: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, v, w TEXT, z REAL DEFAULT 4.5);
        CREATE INDEX tk ON t(k);
        CREATE TABLE u(k TEXT, n INT, v, PRIMARY KEY(k, n)) WITHOUT ROWID;
        CREATE INDEX uv ON u(v);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
            INSERT INTO t(id, k, v, w) SELECT i, i * 7919 % 3001, CASE i % 5 WHEN 0 THEN i WHEN 1 THEN i / 2.0 WHEN 2 THEN 'v' || i WHEN 3 THEN NULL ELSE x'0102' END, 'word ' || i FROM n;
        ALTER TABLE t ADD COLUMN a DEFAULT 'added';
        INSERT INTO t VALUES (-5, 100, 'below', NULL, 1, 'x'), (9223372036854775807, 100, 'above', '', 2, NULL);
        INSERT INTO u SELECT substr('abc', 1 + k % 3, 1), id, w FROM t WHERE id BETWEEN 1 AND 3000 ORDER BY k;";
    let large = "INSERT INTO t(id, k, v) SELECT 4000 + value, 100 - value, CAST(zeroblob(300000 + value) AS TEXT) FROM json_each('[9,1,8,2,7,3,6,4,5,10,12,11]');";
    for query in [
        "SELECT * FROM t INDEXED BY tk WHERE k > 0 ORDER BY k, id",
        "SELECT * FROM t INDEXED BY tk WHERE k BETWEEN 50 AND 900 ORDER BY k DESC, id DESC",
        "SELECT id, w, id, k, w FROM t INDEXED BY tk WHERE k < 1000 ORDER BY k, id LIMIT 700 OFFSET 5",
        "SELECT id, w FROM t INDEXED BY tk WHERE k IN (100, 7, 2000, 9, 10, 11, 12, 13, 14, 15, 16) ORDER BY k, id",
        "SELECT * FROM u ORDER BY k, n",
        "SELECT * FROM u WHERE k >= 'b' ORDER BY k DESC, n DESC LIMIT 100",
        "SELECT n, v FROM u WHERE v BETWEEN 'word 1' AND 'word 2' ORDER BY v",
        "SELECT t.id, (SELECT max(length(v)) FROM t x WHERE x.k BETWEEN t.k AND t.k + 20) FROM t WHERE id % 100 = 3 ORDER BY t.id",
    ] {
        same(&format!("{TABLES}{query}; {large} {query};"));
    }
}

/// Entries are read a leaf at a time, in both directions: from the middle of one to the middle
/// of another, of indexes of every kind.
#[test]
fn entries_are_read_a_leaf_at_a_time() {
    const TABLE: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c, d TEXT COLLATE NOCASE, e TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 4000)
            INSERT INTO t SELECT i, i * 7919 % 500 - 100, 'text ' || i * 31 % 1000 || CASE WHEN i % 50 THEN '' ELSE char(0, 1, 2) || i END,
                CASE i % 7 WHEN 0 THEN i WHEN 1 THEN i / 2.0 WHEN 2 THEN 'v' || i WHEN 3 THEN NULL WHEN 4 THEN i * 1.0 WHEN 5 THEN zeroblob(i % 20) ELSE -i * 1e10 END,
                substr('aAbBcC', 1 + i % 6, 1) || i % 40, i FROM n;
        INSERT INTO t VALUES (-7, 3, 'text 31', -0.0, 'A7', 'x'), (9223372036854775807, 3, '', 9e18, 'ä', 'y'), (-9223372036854775808, -3, NULL, x'', NULL, NULL);";
    let indexes = [
        "INDEX i ON t(a, b, c)",
        "INDEX i ON t(a DESC, b DESC, c DESC)",
        "INDEX i ON t(a, d, b)",
        "UNIQUE INDEX i ON t(a, c, e)",
        "INDEX i ON t(a, b, c) WHERE a >= -20",
    ];
    let results = ["count(*)", "a, b, c", "id", "d, a, id", "e, a", "c, id, a"];
    let rests = [
        "a >= -20",
        "a > 3 AND a < 250",
        "a = 3",
        "a = 3 AND b > 'text 3'",
        "a IN (3, 4, 399, 1000, -7)",
        "a BETWEEN 398 AND 500 AND c > 1",
        "a > 7 AND a < 7",
    ];
    for index in indexes {
        let mut queries = String::new();
        for result in results {
            for rest in rests {
                let rest = format!("FROM t INDEXED BY i WHERE {rest}");
                let rest = match index.contains("WHERE") {
                    true => format!("{rest} AND a >= -20"),
                    false => rest,
                };
                queries.push_str(&match result {
                    "count(*)" => format!("SELECT count(*) {rest};"),
                    _ => format!(
                        "SELECT {result} {rest} ORDER BY a, id;
                         SELECT {result} {rest} ORDER BY a, id LIMIT 5 OFFSET 300;
                         SELECT {result} {rest} ORDER BY a DESC, b DESC, c DESC, id DESC;
                         SELECT {result} {rest} ORDER BY a DESC, c DESC, e DESC, id DESC LIMIT 700 OFFSET 90;
                         SELECT {result} {rest} ORDER BY a, b, c, id DESC LIMIT 70 OFFSET 900;"
                    ),
                });
            }
        }
        same(&format!("{TABLE} CREATE {index}; {queries}"));
        let long = "INSERT INTO t SELECT id + 5000, a, b || zeroblob(3000 + id), zeroblob(9000), d, hex(zeroblob(5000)) || e FROM t WHERE id BETWEEN 100 AND 140;";
        same(&format!("{TABLE} CREATE {index}; {long} {queries}"));
    }
}

/// Where the result does not tell the order of the rows, they are read from an index that
/// has all that is wanted; elsewhere they come as they were.
#[test]
fn rows_whose_order_does_not_show_are_read_from_an_index() {
    const TABLES: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT, k INT, s TEXT, n TEXT COLLATE NOCASE, r REAL, u, more TEXT);
        CREATE INDEX tk ON t(k); CREATE INDEX ts ON t(s, k); CREATE INDEX tn ON t(n); CREATE INDEX tr ON t(r); CREATE INDEX tu ON t(u);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900)
            INSERT INTO t SELECT i, 'body ' || i, i * 7919 % 100, 's' || i % 70, substr('aAbB', 1 + i % 4, 1), i % 9 - 4.0, iif(i % 2, i % 5, i % 5 * 1.0), i FROM n;
        INSERT INTO t VALUES (1000, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (1001, '', 7, 's', 'B', -0.0, 'x', ''), (0, '', 7, 's', 'B', -0.0, 'x', '');
        CREATE TABLE v(x INT, y TEXT); INSERT INTO v VALUES (5, 's5'), (105, 's77'), (7, 's7'), (NULL, 's1');";
    let cases = [
        ("count(*) FROM t WHERE k % 7 > 3", true),
        ("min(k), max(k), count(k), count(DISTINCT k) FROM t", true),
        ("min(s), max(s), count(*) FILTER (WHERE k > 3) FROM t", true),
        ("s, count(*), max(k) FROM t GROUP BY s", true),
        (
            "k, count(*) FROM t GROUP BY k HAVING count(*) > 8 ORDER BY 2 DESC, 1",
            true,
        ),
        (
            "count(*) FROM v WHERE x NOT IN (SELECT k FROM t WHERE k IS NOT NULL)",
            true,
        ),
        ("count(*) FROM v WHERE x + 0 IN (SELECT k FROM t)", true),
        ("DISTINCT s FROM t", true),
        (
            "sum(k), avg(k), total(k + 1), sum(coalesce(k, 5)) FROM t",
            true,
        ),
        ("count(*) FROM (SELECT s FROM t WHERE k < 40)", true),
        (
            "count(*), max(k) FROM (SELECT k, id FROM t WHERE s > 's3' UNION ALL SELECT x, 1 FROM v)",
            true,
        ),
        // The order shows, or what is kept of equal values does.
        ("k FROM t WHERE k % 7 > 3", false),
        ("DISTINCT k % 3 FROM t", false),
        ("group_concat(k), count(*) FROM t", false),
        ("s, k, count(*) FROM t GROUP BY s", false),
        ("s, sum(k) FROM t GROUP BY s", false),
        ("sum(k) FROM t WHERE k % 7 > 3", false),
        ("sum(DISTINCT k % 7) FROM t", false),
        ("min(n), max(n || '') FROM t", false),
        ("n, count(*) FROM t GROUP BY n", false),
        ("min(r), max(r) FROM t", false),
        ("u, count(*) FROM t GROUP BY u", false),
        ("count(*) FROM t WHERE abs(k) > 5", false),
        ("count(*) FROM (SELECT k FROM t LIMIT 5)", false),
        ("count(body) FROM t WHERE k % 7 > 3", false),
        ("count(*) FROM t LEFT JOIN v ON k + x > 100", false),
        // For each row others are looked up, which lie together in the order of the table.
        ("count(*) FROM t, v WHERE k + x > 100", false),
        (
            "count(*) FROM t a JOIN t b ON a.k = b.k WHERE a.s < b.s",
            false,
        ),
        (
            "count(*) FROM t WHERE EXISTS (SELECT 1 FROM v WHERE x = t.id)",
            false,
        ),
    ];
    let session = support::session();
    support::must(&session, TABLES);
    for (query, from_index) in cases {
        if from_index {
            same(&format!("{TABLES} SELECT {query};"));
        }
        let shown = support::must(&session, &format!("EXPLAIN QUERY PLAN SELECT {query}"));
        let shown = shown.join("\n");
        let reads_index = shown.contains("USING COVERING INDEX");
        assert_eq!(reads_index, from_index, "{query}: {shown}");
    }
}

/// OFFSET over a table made the rows that it passed over: 2.7 times SQLite's time from the end.
#[test]
fn what_an_offset_leaves_out_of_a_table_is_not_made() {
    const ROWS: &str = "CREATE TABLE o(id INTEGER PRIMARY KEY, v TEXT);
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 4000)
            INSERT INTO o SELECT i * 3, hex(i * 7919) || iif(i % 900, '', zeroblob(20000)) FROM c;";
    let mut queries = ROWS.to_owned();
    for within in [
        "",
        "WHERE id > 700",
        "WHERE id < 11000",
        "WHERE id BETWEEN 31 AND 9001",
    ] {
        for order in ["id", "id DESC"] {
            for (limit, offset) in [
                (3, 1),
                (5, 2989),
                (-1, 3760),
                (-1, 3999),
                (9, 4000),
                (1, 90_000),
            ] {
                queries += &format!(
                    "SELECT id, length(v), substr(v, 1, 9) FROM o {within} ORDER BY {order} LIMIT {limit} OFFSET {offset};"
                );
            }
        }
    }
    same(&queries);
    // They are read all the same.
    for (changed, is_lost) in [
        ("DELETE FROM o WHERE id = 6000", true),
        ("INSERT INTO o VALUES (3001, 'new')", true),
        ("DELETE FROM o WHERE id = 30", false),
    ] {
        let query = "SELECT v FROM o WHERE id > 60 ORDER BY id DESC LIMIT 1 OFFSET 3500";
        let write = "INSERT INTO o VALUES (-1, 'seen')";
        let lost = support::is_lost(ROWS, query, write, changed);
        assert_eq!(lost, is_lost, "{changed}");
    }
}

/// What is read backwards a leaf at a time was read, and what lies beyond it was not.
#[test]
fn what_was_read_backwards_conflicts_with_what_changes_it() {
    const ROWS: &str = "CREATE TABLE o(id INTEGER PRIMARY KEY, k INT, v TEXT);
        CREATE INDEX ok ON o(k);
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 4000)
            INSERT INTO o SELECT i * 3, i * 3, hex(i) FROM c;";
    for query in [
        "SELECT k FROM o ORDER BY k DESC LIMIT 1000",
        "SELECT v FROM o ORDER BY k DESC LIMIT 1000",
        "SELECT k FROM o WHERE k > 9000 ORDER BY k DESC",
        "SELECT k FROM o ORDER BY k DESC LIMIT 1 OFFSET 999",
        "SELECT v FROM o ORDER BY id DESC LIMIT 1000",
    ] {
        for (changed, is_lost) in [
            ("INSERT INTO o VALUES (11000, 11000, 'new')", true),
            ("INSERT INTO o VALUES (9004, 9004, 'new')", true),
            ("DELETE FROM o WHERE id = 9006", true),
            ("INSERT INTO o VALUES (8000, 8000, 'new')", false),
            ("DELETE FROM o WHERE id = 600", false),
        ] {
            let write = "INSERT INTO o VALUES (-1, -1, 'seen')";
            let lost = support::is_lost(ROWS, query, write, changed);
            assert_eq!(lost, is_lost, "{query}: {changed}");
        }
    }
}
