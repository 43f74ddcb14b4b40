//! DISTINCT over an index that begins with what is told apart, beside SQLite: values are
//! compared with the one before, or all but the first of each are passed over. And DISTINCT
//! under a LIMIT in ORDER BY's order, which it keeps.

mod support;

use fulgurite_sql::session::Session;
use support::{must, run, same, sqlite};

/// Values of every type, equal ones of different types and cases among them, in columns with
/// and without indexes; so many rows of each value of `k`.
fn tables(each: usize) -> String {
    let rows = 40 * each;
    format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, n, s TEXT COLLATE NOCASE, r REAL, g INT, w TEXT);
        WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < {rows} - 1)
            INSERT INTO t SELECT i, i * 7919 % 40,
                CASE i % 7 WHEN 0 THEN i % 5 WHEN 1 THEN i % 5 * 1.0 WHEN 2 THEN NULL
                    WHEN 3 THEN 'x' || (i % 3) WHEN 4 THEN x'00ff' WHEN 5 THEN '' ELSE -(i % 4) END,
                substr('aAbBcC', 1 + i % 6, 1), i % 9 - 4.0, i % 3, 'wide ' || (i % 11) FROM c;
        CREATE INDEX tk ON t(k, g); CREATE INDEX tn ON t(n); CREATE INDEX ts ON t(s);
        CREATE INDEX tb ON t(s COLLATE BINARY, k); CREATE INDEX tr ON t(r); CREATE INDEX tg ON t(g, n);
        CREATE INDEX td ON t(w DESC, k);"
    )
}

const QUERIES: [&str; 32] = [
    "count(DISTINCT k) FROM t",
    "count(DISTINCT n) FROM t",
    "count(DISTINCT s) FROM t",
    "count(DISTINCT s COLLATE BINARY) FROM t",
    "count(DISTINCT r), sum(DISTINCT r), avg(DISTINCT r) FROM t",
    "count(DISTINCT w) FROM t",
    "count(DISTINCT k), count(DISTINCT g) FROM t",
    "count(DISTINCT k), count(*), sum(g) FROM t",
    "count(DISTINCT k) FILTER (WHERE g > 1), sum(DISTINCT k) FROM t",
    "sum(DISTINCT k), total(DISTINCT k), avg(DISTINCT k) FROM t",
    "group_concat(DISTINCT k) FROM t",
    "group_concat(DISTINCT n) FROM t",
    "group_concat(DISTINCT s) FROM t",
    "min(DISTINCT n), max(DISTINCT k) FROM t",
    "count(DISTINCT k) FROM t WHERE k > 5 AND k < 20",
    "count(DISTINCT k) FROM t WHERE k IS NULL",
    "count(DISTINCT n) FROM t WHERE n > 1",
    "count(DISTINCT k) FROM t WHERE g = 2",
    "g, count(DISTINCT n) FROM t GROUP BY g",
    "g, count(DISTINCT n), group_concat(DISTINCT n) FROM t GROUP BY g ORDER BY g",
    "k, count(DISTINCT g), count(*) FROM t GROUP BY k",
    "k, sum(DISTINCT g) FROM t GROUP BY k HAVING count(DISTINCT g) > 1 LIMIT 7",
    "count(DISTINCT k) FROM t HAVING count(DISTINCT k) > 1000",
    "DISTINCT k FROM t",
    "DISTINCT k, g FROM t",
    "DISTINCT n FROM t",
    "DISTINCT s FROM t",
    "DISTINCT k FROM t ORDER BY k LIMIT 3 OFFSET 2",
    "DISTINCT k, g FROM t ORDER BY k",
    "DISTINCT k FROM t ORDER BY k DESC",
    "DISTINCT k, g FROM t WHERE k BETWEEN 3 AND 9 ORDER BY k, g",
    "count(*) FROM (SELECT DISTINCT k, g FROM t)",
];

#[test]
fn equal_values_count_once() {
    for each in [1, 3, 60] {
        let queries: String = QUERIES.iter().map(|it| format!("SELECT {it};")).collect();
        same(&format!("{}{queries}", tables(each)));
        same(&format!("{}ANALYZE;{queries}", tables(each)));
        same(&format!("{}DELETE FROM t;{queries}", tables(each)));
    }
}

fn plan(session: &Session, query: &str) -> String {
    must(session, &format!("EXPLAIN QUERY PLAN SELECT {query}")).join("\n")
}

#[test]
fn plans_say_what_is_compared_and_passed_over() {
    let session = support::session();
    must(&session, &tables(60));
    must(&session, "ANALYZE");
    for query in [
        "count(DISTINCT k) FROM t",
        "DISTINCT k FROM t",
        "sum(DISTINCT k), count(DISTINCT k) FROM t WHERE k > 4",
        "g, count(DISTINCT n) FROM t GROUP BY g",
    ] {
        let shown = plan(&session, query);
        assert!(shown.contains("DISTINCT IN ORDER"), "{shown}");
        assert!(shown.contains(" FIRST OF EACH "), "{shown}");
    }
    for query in [
        "count(DISTINCT k), count(*) FROM t",
        "count(DISTINCT k) FILTER (WHERE g > 1) FROM t",
        "count(DISTINCT k), max(g) FROM t",
        "k, count(DISTINCT g), g FROM t GROUP BY k",
    ] {
        let shown = plan(&session, query);
        assert!(shown.contains("DISTINCT IN ORDER"), "{shown}");
    }
    for query in [
        "count(DISTINCT w) FROM t",
        "count(DISTINCT k + 1) FROM t",
        "count(DISTINCT k), sum(r) FROM t",
        "DISTINCT k FROM t ORDER BY k DESC",
        "DISTINCT g, k FROM t",
    ] {
        let shown = plan(&session, query);
        assert!(!shown.contains("IN ORDER"), "{shown}");
    }
    // Not where it would have to be counted how often a value comes.
    let shown = plan(&session, "count(DISTINCT k), count(*) FROM t");
    assert!(!shown.contains("FIRST OF EACH"), "{shown}");
}

/// What is passed over is not read; what stands between is.
#[test]
fn entries_between_the_first_ones_conflict_where_they_would_count() {
    let begin = |changed: &str| {
        let engine = support::engine();
        let (one, other) = (engine.session(), engine.session());
        must(&one, &tables(60));
        must(&one, "ANALYZE; CREATE TABLE seen(x);");
        must(&one, "BEGIN");
        assert!(plan(&one, "count(DISTINCT k) FROM t").contains("FIRST OF EACH"));
        let counted = must(&one, "SELECT count(DISTINCT k) FROM t");
        assert_eq!(counted, ["40"]);
        must(&one, "INSERT INTO seen VALUES (40)");
        must(&other, changed);
        run(&one, "COMMIT")
    };
    let lost = ["error 517: database is locked"];
    // A new value, behind all and between two, and the first one of a value.
    assert_eq!(begin("INSERT INTO t(k, g) VALUES (77, 1)"), lost);
    assert_eq!(begin("INSERT INTO t(k, g) VALUES (11.5, 1)"), lost);
    assert_eq!(begin("DELETE FROM t WHERE k = 11"), lost);
    assert_eq!(begin("INSERT INTO t(k, g) VALUES (11, -5)"), lost);
    // What is in no entry of the index.
    assert!(begin("UPDATE t SET w = 'other' WHERE id = 3").is_empty());
}

/// 6,000 rows of one `k`, and others; texts that are equal but for their case.
const ORDERED: &str = "CREATE TABLE r(id INTEGER PRIMARY KEY, k INT, n INT, s TEXT COLLATE NOCASE);
    WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 11999)
        INSERT INTO r SELECT i, CASE WHEN i % 2 THEN 7 ELSE nullif(i * 7919 % 3001, 5) END,
            i * 31 % 4500, substr('aAbBcC', 1 + i % 6, 1) || (i % 400) FROM c;
    CREATE INDEX rk ON r(k);
    CREATE INDEX rs ON r(s);
    CREATE TABLE p(id INTEGER PRIMARY KEY, k INT, n INT);
    INSERT INTO p SELECT id, n % 90, k FROM r WHERE id % 60 = 0;";

/// All rows were told apart and sorted for the first ten: 75 times SQLite's time.
#[test]
fn the_first_rows_are_told_apart_in_order() {
    let ours = support::session();
    let theirs = rusqlite::Connection::open_in_memory().unwrap();
    must(&ours, ORDERED);
    theirs.execute_batch(ORDERED).unwrap();
    for query in [
        "DISTINCT k, n FROM r ORDER BY k",
        "DISTINCT n, k FROM r ORDER BY k DESC",
        "DISTINCT n % 5, k FROM r WHERE n % 3 > 0 ORDER BY k",
        "DISTINCT n FROM r ORDER BY k",
        "DISTINCT s, n / 9 FROM r ORDER BY s",
        "DISTINCT s COLLATE BINARY, n FROM r ORDER BY s",
        "DISTINCT n FROM r ORDER BY id",
        "DISTINCT p.id, p.k FROM p JOIN r ON r.k = p.k ORDER BY p.id",
        "DISTINCT p.k, p.id, r.n % 7 FROM p JOIN r ON r.k = p.k ORDER BY p.id DESC",
        "DISTINCT p.id, r.s FROM p LEFT JOIN r ON r.k = p.n ORDER BY p.id",
    ] {
        let shown = plan(&ours, &format!("{query} LIMIT 10"));
        assert!(!shown.contains("SORT"), "{query}\n{shown}");
        let shown = plan(&ours, query);
        assert!(shown.contains("SORT"), "{query}\n{shown}");
        for limit in ["0", "1", "10", "10 OFFSET 4400", "900000"] {
            let query = format!("SELECT {query} LIMIT {limit}");
            let expected = sqlite(&theirs, &query);
            for memory in [0, 100_000, 1 << 30] {
                ours.set_memory_limit(memory);
                let got = run(&ours, &query);
                let at = (0..got.len()).find(|at| got.get(*at) != expected.get(*at));
                assert_eq!(at, None, "{query} in {memory} bytes");
                assert_eq!(got.len(), expected.len(), "{query} in {memory} bytes");
            }
        }
    }
    for query in [
        "DISTINCT n, k FROM r ORDER BY n, k LIMIT 10",
        "DISTINCT k, row_number() OVER (ORDER BY n) FROM r ORDER BY k LIMIT 10",
        "DISTINCT k, count(*) FROM r GROUP BY k, n ORDER BY k LIMIT 10",
    ] {
        let shown = plan(&ours, query);
        assert!(shown.contains("SORT"), "{query}\n{shown}");
    }
    // An index that tells rows apart without a table of them goes on doing so.
    must(&ours, "CREATE INDEX rkn ON r(k, n)");
    let shown = plan(&ours, "DISTINCT k, n FROM r ORDER BY k LIMIT 10");
    assert!(shown.contains("DISTINCT IN ORDER"), "{shown}");
}

/// What shows a key of its table differs without DISTINCT. It was hashed and sorted: 2.9 times
/// SQLite's time for all rows by rowid.
#[test]
fn rows_with_a_key_are_not_told_apart() {
    const KEYS: &str = "CREATE TABLE u(id INTEGER PRIMARY KEY, a TEXT NOT NULL, b TEXT COLLATE NOCASE NOT NULL,
            c INT UNIQUE, d INT NOT NULL, e INT NOT NULL);
        CREATE UNIQUE INDEX ua ON u(a); CREATE UNIQUE INDEX ub ON u(b COLLATE BINARY);
        CREATE UNIQUE INDEX un ON u(d, e); CREATE UNIQUE INDEX up ON u(e) WHERE e > 100;
        CREATE UNIQUE INDEX ux ON u(d + e, d);
        CREATE TABLE w(x INT, y TEXT COLLATE NOCASE, PRIMARY KEY (x, y)) WITHOUT ROWID;
        INSERT INTO u VALUES (1, 'a', 'x', NULL, 1, 1), (2, 'A', 'X', NULL, 1, 2), (3, 'b', 'y', 3, 2, 1);
        INSERT INTO w VALUES (1, 'a'), (1, 'b'), (2, 'A');";
    let session = support::session();
    let theirs = rusqlite::Connection::open_in_memory().unwrap();
    must(&session, KEYS);
    theirs.execute_batch(KEYS).unwrap();
    let told_apart = |query: &str| {
        let text = format!("SELECT {query}");
        // In any order, and any of equal values may stand for all.
        let [rows, expected] = [must(&session, &text), sqlite(&theirs, &text)].map(|rows| {
            let mut rows: Vec<String> = rows.iter().map(|row| row.to_lowercase()).collect();
            rows.sort();
            rows
        });
        assert_eq!(rows, expected, "{query}");
        plan(&session, query).contains("DISTINCT")
    };
    for query in [
        "DISTINCT id, d FROM u ORDER BY id",
        "DISTINCT * FROM u WHERE d = 1",
        "DISTINCT rowid FROM u",
        "DISTINCT a FROM u",
        "DISTINCT b COLLATE BINARY FROM u",
        "DISTINCT e, d FROM u",
        "DISTINCT y, x FROM w",
        "DISTINCT y COLLATE BINARY, x FROM w",
        "DISTINCT id, row_number() OVER (ORDER BY a) FROM u",
        "count(*) FROM (SELECT DISTINCT id, d FROM u)",
        "count(*), sum(v.d) FROM u, (SELECT DISTINCT id, d FROM u) AS v WHERE v.id = u.id",
    ] {
        assert!(!told_apart(query), "{query}");
    }
    for query in [
        "DISTINCT a COLLATE NOCASE FROM u",
        "DISTINCT b FROM u",
        "DISTINCT c FROM u",
        "DISTINCT d FROM u",
        "DISTINCT e FROM u",
        "DISTINCT d + e, e FROM u",
        "DISTINCT y FROM w",
        "DISTINCT id + 0 FROM u",
        "DISTINCT u.id FROM u JOIN w ON w.x = u.d",
        "DISTINCT u.id FROM w LEFT JOIN u ON u.d = w.x",
        "DISTINCT max(id) FROM u GROUP BY d",
        "DISTINCT id FROM (SELECT id FROM u UNION ALL SELECT id FROM u)",
    ] {
        assert!(told_apart(query), "{query}");
    }
}
