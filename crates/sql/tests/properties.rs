//! What statements ask of values without their bytes: type and length, which must be
//! SQLite's of every value in every column, and must leave the bytes of large ones alone.

mod support;

use std::sync::Arc;

use fulgurite_disk::{Disk, MemoryDisk};
use fulgurite_sql::session::{Engine, Session};
use fulgurite_store::{Options, Store};
use support::{must, run, same};

/// Of each type, short and long, with and without NULs and characters of several bytes.
const VALUES: &[&str] = &[
    "NULL",
    "0",
    "-12345",
    "9223372036854775807",
    "1.5",
    "-1e300",
    "''",
    "'abc'",
    "'12'",
    "'h\u{e9}\u{20ac}\u{1f600}'",
    "'a' || char(0) || 'b'",
    "CAST(x'80c3a9ff80' AS TEXT)",
    "replace(hex(zeroblob(150)), '00', 'ab')",
    "replace(hex(zeroblob(20000)), '00', 'ab')",
    "replace(hex(zeroblob(30000)), '00', '\u{e9}\u{20ac}')",
    "'\u{e9}' || replace(hex(zeroblob(80000)), '00', '\u{1f600}')",
    "replace(hex(zeroblob(40000)), '00', 'xy') || char(0) || 'behind'",
    "CAST(replace(hex(zeroblob(30000)), '00', CAST(x'80e9' AS TEXT)) AS TEXT)",
    "x''",
    "x'00ff'",
    "zeroblob(300)",
    "zeroblob(2000)",
    "zeroblob(70000)",
    "zeroblob(1100000)",
];

/// Tables with columns of every affinity, and each value in each.
fn tables() -> String {
    let columns = "id INTEGER PRIMARY KEY, a, b TEXT, c BLOB, d INTEGER, e REAL, f JSON";
    let mut sql = format!("CREATE TABLE t({columns}); CREATE TABLE small({columns});");
    for (id, value) in VALUES.iter().enumerate() {
        let row = [*value; 6].join(", ");
        sql += &format!("INSERT INTO t VALUES ({id}, {row});");
        if !value.contains("000)") {
            sql += &format!("INSERT INTO small VALUES ({id}, {row});");
        }
    }
    sql
}

const COLUMNS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Compares queries in which `{c}` is a column, for each column.
fn compare(setup: &str, queries: &[&str]) {
    let mut sql = tables() + setup;
    for query in queries {
        match query.contains("{c}") {
            true => (COLUMNS.iter()).for_each(|c| sql += &(query.replace("{c}", c) + ";")),
            false => sql += &format!("{query};"),
        }
    }
    same(&sql);
}

#[test]
fn alone_and_together() {
    compare(
        "",
        &[
            "SELECT id, length({c}) FROM t",
            "SELECT id, octet_length({c}) FROM t",
            "SELECT id, typeof({c}) FROM t",
            "SELECT id, {c} IS NULL, {c} IS NOT NULL, {c} NOTNULL, NOT {c} ISNULL FROM t",
            "SELECT octet_length({c}), length({c}), typeof({c}), {c} IS NULL FROM t",
            "SELECT length({c}), octet_length({c}) FROM t WHERE {c} IS NOT NULL",
            "SELECT length({c}), typeof({c}), {c} FROM t WHERE id < 13",
            "SELECT length({c}) FROM small",
            "SELECT typeof({c}), octet_length({c}), {c} IS NULL, id FROM small",
            "SELECT length({c}), length({c}) + 1, ifnull(length({c}), -1) FROM t ORDER BY id DESC",
            "SELECT CASE WHEN {c} IS NULL THEN 'none' ELSE typeof({c}) END FROM t",
            "SELECT length({c}) FROM t WHERE typeof({c}) = 'blob' OR typeof({c}) = 'text'",
            "SELECT length(a), typeof(b), octet_length(c), d IS NULL, length(e), typeof(f) FROM t",
            "SELECT length(a), a IS NULL, b, typeof(c), length(d), f FROM small",
            "SELECT length(id), typeof(id), octet_length(rowid), id IS NULL FROM t",
        ],
    );
}

#[test]
fn by_key() {
    let mut queries = Vec::new();
    for id in 0..=VALUES.len() {
        queries.push(format!("SELECT length({{c}}) FROM t WHERE id = {id}"));
        queries.push(format!(
            "SELECT typeof({{c}}), octet_length({{c}}), id FROM t WHERE id = {id} AND {{c}} NOTNULL"
        ));
    }
    queries.push("SELECT length({c}), typeof(a) FROM t WHERE id IN (3, 9, 15, 21, 22)".to_owned());
    queries.push("SELECT length({c}) FROM t WHERE id > 10 AND id < 20".to_owned());
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    compare("", &queries);
}

#[test]
fn in_conditions_orders_and_groups() {
    compare(
        "",
        &[
            "SELECT id FROM t WHERE length({c}) > 100",
            "SELECT id FROM t WHERE octet_length({c}) BETWEEN 3 AND 5000 AND typeof({c}) <> 'text'",
            "SELECT id FROM t ORDER BY length({c}), id",
            "SELECT id, typeof({c}) FROM t ORDER BY typeof({c}), octet_length({c}) DESC, id",
            "SELECT DISTINCT typeof({c}) FROM t ORDER BY 1",
            "SELECT sum(length({c})), max(octet_length({c})), count({c}), count(*) FROM t",
            "SELECT count({c}) FROM t",
            "SELECT count({c}), count(DISTINCT {c}) FROM t",
            "SELECT count({c}) FILTER (WHERE length({c}) > 3), total(length({c})) FROM t",
            "SELECT typeof({c}), count(*), sum(length({c})) FROM t GROUP BY typeof({c}) ORDER BY 1",
            "SELECT length({c}), count({c}) FROM t GROUP BY length({c}) HAVING length({c}) > 1
                ORDER BY length({c})",
            "SELECT max(id), length({c}), typeof({c}) FROM t",
            "SELECT id % 3, min(id), length({c}), {c} IS NULL FROM t GROUP BY id % 3 ORDER BY 1",
            "SELECT sum(length({c})) OVER (ORDER BY id), count({c}) OVER (ORDER BY id) FROM t",
            "SELECT id, row_number() OVER (ORDER BY length({c}), id) FROM t ORDER BY length({c}), id",
            "SELECT typeof({c}), sum(count({c})) OVER (ORDER BY typeof({c})) FROM t
                GROUP BY typeof({c})",
            "SELECT group_concat(length({c}), '-' ORDER BY id) FROM t",
        ],
    );
}

#[test]
fn in_joins_and_subqueries() {
    compare(
        "CREATE VIEW v AS SELECT id, a, b AS bb, length(c) AS lc FROM t;",
        &[
            "SELECT s.id, typeof(t.{c}), t.{c} IS NULL, length(t.{c})
                FROM small s LEFT JOIN t ON t.id = s.id + 12 ORDER BY s.id",
            "SELECT s.id FROM small s LEFT JOIN t ON t.id = s.id + 12 AND t.{c} IS NOT NULL
                WHERE t.{c} IS NULL ORDER BY s.id",
            "SELECT s.id, length(t.{c}) FROM t JOIN small s ON length(t.{c}) = length(s.{c})
                ORDER BY s.id, t.id",
            "SELECT s.id, typeof(s.a), t.id, octet_length(t.{c}) FROM small s
                FULL JOIN t ON t.id = s.id + 9 ORDER BY s.id, t.id",
            "SELECT typeof(s.{c}), t.id FROM small s RIGHT JOIN t ON t.id = s.id ORDER BY t.id",
            "SELECT id, (SELECT length(u.{c}) FROM t u WHERE u.id = t.id + 1) FROM t",
            "SELECT id, length((SELECT u.{c} FROM t u WHERE u.id = t.id + 1)) FROM t",
            "SELECT id, (SELECT count(*) FROM t u WHERE length(u.{c}) < length(t.{c})) FROM t",
            "SELECT id, (SELECT typeof(t.{c}) || u.id FROM t u WHERE u.id = t.id) FROM t",
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 2
                AND u.{c} IS NOT NULL AND typeof(u.{c}) <> 'text')",
            "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM small u WHERE u.id = t.id
                AND length(u.{c}) > 2)",
            "SELECT id FROM t WHERE length({c}) IN (SELECT length({c}) FROM small)",
            "SELECT length({c}) FROM (SELECT * FROM t ORDER BY id LIMIT 20)",
            "WITH w AS (SELECT id, {c} FROM t) SELECT sum(length({c})), count({c}) FROM w",
            "SELECT length({c}) FROM t UNION ALL SELECT typeof({c}) FROM small",
            "SELECT id, length(a), typeof(bb), lc FROM v ORDER BY id",
            "SELECT count(a), sum(length(bb)), sum(lc) FROM v WHERE bb IS NOT NULL",
        ],
    );
}

#[test]
fn with_indexes_and_generated_columns() {
    compare(
        "CREATE INDEX of_length ON t(length(a));
         CREATE INDEX of_some ON t(id) WHERE b IS NOT NULL;
         CREATE INDEX of_c ON t(c, f);
         CREATE INDEX of_small ON small(b);
         CREATE TABLE g(id INTEGER PRIMARY KEY, a TEXT, b BLOB, n AS (length(b)), k AS (typeof(a)),
             m AS (n + 1), s AS (length(a)) STORED, w AS (substr(a, 1, 2)));
         INSERT INTO g(id, a, b) SELECT id, b, c FROM t;",
        &[
            "SELECT id, length(a) FROM t WHERE length(a) = 2 ORDER BY id",
            "SELECT id, length(b) FROM t WHERE b IS NOT NULL AND id > 3",
            "SELECT id, length(c), typeof(f) FROM t WHERE c IS NULL",
            "SELECT length(c), typeof(f), octet_length(f) FROM t ORDER BY c, id",
            "SELECT id, length(c), typeof(a) FROM t WHERE c = x'00ff'",
            "SELECT id, length(b), typeof(c) FROM small WHERE b = 'abc'",
            "SELECT id, n, k, m, s, w FROM g",
            "SELECT m, length(b) FROM g WHERE k = 'text' AND a IS NOT NULL",
            "SELECT n, a FROM g WHERE id < 13",
            "SELECT w, length(a) FROM g",
            "SELECT typeof(n), length(k), n IS NULL, count(m) FROM g",
            "SELECT id, m FROM g WHERE id = 21",
        ],
    );
}

#[test]
fn where_rows_are_changed() {
    compare(
        "CREATE TABLE log(id, n, k);
         CREATE TRIGGER tr AFTER UPDATE OF d ON t WHEN old.c IS NOT NULL BEGIN
            INSERT INTO log SELECT new.id, length(a), typeof(b) FROM t WHERE id = new.id; END;
         CREATE TABLE checked(id INTEGER PRIMARY KEY, a CHECK (length(a) > 1), b);
         INSERT INTO checked VALUES (1, zeroblob(40000), 'b');",
        &[
            "BEGIN",
            "UPDATE t SET e = length(a) WHERE length({c}) > 20",
            "SELECT id, e, length(a), octet_length(b) FROM t",
            "UPDATE t SET a = zeroblob(50000 + id) WHERE typeof(a) = 'text'",
            "SELECT id, length(a), typeof(a) FROM t",
            "SAVEPOINT s",
            "UPDATE t SET d = 1 WHERE id % 2 = 0",
            "UPDATE t SET b = b || 'more' WHERE octet_length(b) > 3",
            "DELETE FROM t WHERE length(c) = 1100000",
            "SELECT id, length(a), length(b), typeof(c), d IS NULL FROM t",
            "SELECT count(b), sum(length(b)) FROM t",
            "SELECT * FROM log",
            "ROLLBACK TO s",
            "SELECT id, length(a), length(b), typeof(c), d IS NULL FROM t",
            "COMMIT",
            "SELECT sum(length(a)), sum(octet_length(b)), count(c) FROM t",
            "UPDATE checked SET b = 'x'",
            "UPDATE checked SET a = 'x'",
            "SELECT length(a), length(b) FROM checked",
            "INSERT INTO checked SELECT id + 10, a, length(b) FROM t WHERE length(a) > 300",
            "SELECT id, length(a), b FROM checked",
            "DELETE FROM t WHERE {c} IS NULL",
            "SELECT count(*), count({c}) FROM t",
            "DELETE FROM t WHERE octet_length({c}) > 1000 RETURNING id, length({c})",
        ],
    );
}

#[test]
fn in_other_kinds_of_tables() {
    compare(
        "CREATE TABLE w(k TEXT PRIMARY KEY, a, b TEXT) WITHOUT ROWID;
         INSERT INTO w SELECT 'k' || id, a, b FROM t;
         CREATE TEMP TABLE tt AS SELECT id, a, b, c FROM t;
         CREATE TABLE s(id INTEGER PRIMARY KEY, a ANY, b TEXT) STRICT;
         INSERT INTO s SELECT id, a, CAST(b AS TEXT) FROM t;
         ATTACH ':memory:' AS beside;
         CREATE TABLE beside.o(id INTEGER PRIMARY KEY, a, b);
         INSERT INTO o SELECT id, a, b FROM t;
         ALTER TABLE o ADD COLUMN late TEXT DEFAULT 'h\u{e9}';",
        &[
            "SELECT k, length(a), typeof(a), octet_length(b) FROM w ORDER BY k",
            "SELECT length(a), count(*) FROM w WHERE k = 'k22'",
            "SELECT id, length(a), typeof(b), c IS NULL FROM tt",
            "SELECT id, length(a), octet_length(a), typeof(a), length(b) FROM s",
            "SELECT id, length(a), length(late), octet_length(late), typeof(late) FROM o",
            "SELECT length(late), late IS NULL FROM o WHERE id = 22",
            "SELECT count(late), count(a), sum(length(b)) FROM o",
            "UPDATE o SET late = NULL WHERE id = 22",
            "SELECT id, length(late), typeof(late) FROM o WHERE id > 20",
        ],
    );
}

fn open(disk: &Arc<dyn Disk>) -> (Store, Session) {
    let store = Store::open_on(Arc::clone(disk), "/large.db", Options::default()).unwrap();
    let session = Engine::open(store.clone()).unwrap().session();
    (store, session)
}

/// The pages that are read for a query by one that has read nothing before.
fn loads(disk: &Arc<dyn Disk>, query: &str) -> u64 {
    let (store, session) = open(disk);
    must(&session, "SELECT n FROM t; SELECT id FROM other");
    let before = store.stats().cache.loads;
    must(&session, query);
    store.stats().cache.loads - before
}

#[test]
fn bytes_are_left_alone() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let rows = "WITH r(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM r WHERE i < 5)
        INSERT INTO t SELECT i, i, randomblob(200000), hex(randomblob(100000)),
            hex(randomblob(100000)) FROM r;";
    must(
        &open(&disk).1,
        &format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, b BLOB, x TEXT, y);
             {rows} CREATE TABLE other(id INTEGER PRIMARY KEY);
             INSERT INTO other SELECT id FROM t; PRAGMA wal_checkpoint"
        ),
    );
    for query in [
        "SELECT length(b) FROM t WHERE id = 3",
        "SELECT octet_length(x), octet_length(b), typeof(y), typeof(b) FROM t WHERE id = 3",
        "SELECT octet_length(x), n FROM t WHERE y IS NOT NULL",
        "SELECT length(b) FROM t WHERE length(b) > 5 AND x IS NOT NULL ORDER BY length(b)",
        "SELECT sum(length(b)), count(x), count(y), max(octet_length(y)) FROM t",
        "SELECT n, length(b) FROM t ORDER BY n",
        "SELECT typeof(x), count(*) FROM t GROUP BY typeof(x)",
        "SELECT sum(length(b)) OVER (ORDER BY n) FROM t",
        "SELECT o.id, length(t.b), typeof(t.x) FROM other o LEFT JOIN t ON t.id = o.id",
        "SELECT id, (SELECT length(b) FROM t WHERE t.id = o.id) FROM other o",
        "SELECT id FROM other o WHERE EXISTS (SELECT 1 FROM t WHERE t.n = o.id AND t.y NOTNULL)",
        "SELECT length(b) FROM (SELECT * FROM t) WHERE x IS NOT NULL",
    ] {
        assert_eq!(loads(&disk, query), 0, "{query}");
    }
    for (query, values) in [
        ("SELECT length(x) FROM t WHERE id = 3", 1),
        ("SELECT length(b), b IS NULL, hex(b) FROM t WHERE id = 3", 1),
        ("SELECT length(b), sum(length(x)) FROM t", 5),
    ] {
        let found = loads(&disk, query);
        assert!(found >= 10 * values, "{query}: {found}");
        assert!(found < 60 * values, "{query}: {found}");
    }
}

/// Who asks only for the length depends on the row as a whole.
#[test]
fn changes_of_what_was_asked_conflict() {
    let overlap = |asked: &str, changed: &str| {
        let engine = support::engine();
        let (one, other) = (engine.session(), engine.session());
        must(
            &one,
            "CREATE TABLE t(id INTEGER PRIMARY KEY, b);
             CREATE TABLE seen(x);
             INSERT INTO t VALUES (1, zeroblob(50000)), (2, 'short'), (3, zeroblob(90000))",
        );
        must(&one, &format!("BEGIN; INSERT INTO seen {asked}"));
        must(&other, changed);
        (run(&one, "COMMIT"), must(&one, "SELECT count(*) FROM seen"))
    };
    let lost = ["error 517: database is locked"];
    for asked in [
        "SELECT length(b) FROM t WHERE id = 1",
        "SELECT octet_length(b) FROM t WHERE id BETWEEN 1 AND 2",
        "SELECT sum(length(b)) FROM t",
        "SELECT id FROM t WHERE length(b) = 50000",
        "SELECT typeof(b) FROM t",
        "SELECT count(b) FROM t",
    ] {
        for changed in [
            "UPDATE t SET b = zeroblob(50001) WHERE id = 1",
            "UPDATE t SET b = NULL WHERE id = 1",
            "DELETE FROM t WHERE id = 1",
        ] {
            let (committed, _) = overlap(asked, changed);
            assert_eq!(committed, lost, "{asked}, {changed}");
        }
        // Other bytes of the same length: whether that conflicts or not, nothing is lost.
        let (committed, seen) = overlap(asked, "UPDATE t SET b = randomblob(50000) WHERE id = 1");
        assert_eq!(committed.is_empty(), seen != ["0"], "{asked}");
    }
    let by_key = "SELECT length(b) FROM t WHERE id = 1";
    let (committed, seen) = overlap(by_key, "UPDATE t SET b = 'else' WHERE id = 2");
    assert!(committed.is_empty(), "{committed:?}");
    assert_eq!(seen, ["1"]);
}
