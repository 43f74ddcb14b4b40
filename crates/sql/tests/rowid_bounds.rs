//! Bounds on the rowid behind the columns of an index: its entries are in that order.

mod support;

use support::{must, run, same, session};

const TABLES: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c, u INT);
CREATE INDEX ta ON t(a);
CREATE INDEX tba ON t(b DESC, a);
CREATE UNIQUE INDEX tu ON t(u);
CREATE TABLE plain(a, b);
CREATE INDEX pa ON plain(a);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400)
    INSERT INTO t SELECT i * 3 - 200, i % 7, 'b' || i % 3, i, iif(i % 5, i, NULL) FROM n;
INSERT INTO t VALUES (-9223372036854775807 - 1, 3, 'b1', 0, -1), (9223372036854775807, 3, 'b1', 0, -2),
    (70000, 3, 'b1', 0, -3), (-70000, 3, 'b1', 0, NULL), (1000000, NULL, NULL, 0, NULL), (2000000, NULL, NULL, 1, NULL);
INSERT INTO plain SELECT a, id FROM t ORDER BY id;
";

#[test]
fn bounds_of_all_kinds() {
    let bounds = [
        "id > 100",
        "id >= 100",
        "id < 100",
        "id <= 100 AND id > -50",
        "id BETWEEN 10 AND 200",
        "id > 5 AND id < 5",
        "id > 9223372036854775806",
        "id >= -9223372036854775808",
        "id > 9223372036854775807",
        "id < 100.5",
        "id > -0.5 AND id <= 99.0",
        "id > '100'",
        "id > 'a'",
        "id < 'a'",
        "id > x'00'",
        "id < NULL",
        "id > 1e300",
        "id < -1e300",
        "id > (SELECT 150)",
        "id > a * 20",
        "id > 10 AND id > 500",
    ];
    let keys = [
        "a = 3",
        "a IN (2, 3, 5)",
        "a IS NULL",
        "b = 'b1' AND a = 3",
        "b IN ('b1', 'b2') AND a IN (1, 3)",
        "u = 17",
        "u IS NULL",
        "a = (SELECT 3)",
        "a IN (SELECT a FROM t WHERE id < 0)",
    ];
    let mut all = String::from(TABLES);
    for key in keys {
        for bound in bounds {
            all += &format!(
                "SELECT id, c FROM t WHERE {key} AND {bound} ORDER BY id;
                 SELECT id FROM t WHERE {key} AND {bound} ORDER BY id DESC LIMIT 3;
                 SELECT count(*) FROM t WHERE {key} AND {bound};"
            );
        }
    }
    all += "SELECT rowid, b FROM plain WHERE a = 3 AND rowid > 20 ORDER BY rowid LIMIT 4;
        SELECT count(*) FROM plain WHERE a = 3 AND rowid > 20 AND _rowid_ <= 300;
        SELECT x.id, count(y.id), min(y.id) FROM t x LEFT JOIN t y ON y.a = x.a AND y.id > x.id GROUP BY x.id ORDER BY x.id;
        SELECT x.id, (SELECT min(id) FROM t y WHERE y.a = x.a AND y.id > x.id) FROM t x ORDER BY id;
        UPDATE t SET c = -1 WHERE a = 4 AND id > 300; SELECT id FROM t WHERE c = -1 ORDER BY id;
        DELETE FROM t WHERE a = 4 AND id < 300; SELECT count(*), sum(id % 1000) FROM t;";
    same(&all);
}

/// The next page behind a key: the order is that of the index, and nothing before is read.
#[test]
fn pages_behind_a_rowid_are_searched() {
    let session = session();
    must(&session, TABLES);
    let explain =
        "EXPLAIN QUERY PLAN SELECT id, c FROM t WHERE a = ?1 AND id > ?2 ORDER BY id LIMIT 10";
    let plan = run(&session, explain).join("\n");
    assert!(
        plan.contains("SEARCH t USING INDEX ta (a=?1 AND rowid>?2)"),
        "{plan}"
    );
    assert!(!plan.contains("SORT"), "{plan}");
    let unique = run(
        &session,
        "EXPLAIN QUERY PLAN SELECT c FROM t WHERE u = 1 AND id > 2",
    );
    assert!(unique.join("\n").contains("tu (u=1)"), "{unique:?}");
}

/// A range that an index answers is not asked again of each row that is found: of values of
/// all kinds, in columns and indexes of all kinds.
#[test]
fn between_is_answered_by_both_its_bounds() {
    let values = [
        "1", "2.5", "'1'", "'b'", "'B'", "x'31'", "NULL", "-1e300", "''", "'01'", "?1",
    ];
    let mut all = String::new();
    for column in ["INT", "TEXT", "TEXT COLLATE NOCASE", "REAL", ""] {
        for index in ["c", "c DESC", "c COLLATE NOCASE", "c, id", "n, c"] {
            all.push_str(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t(id INTEGER PRIMARY KEY, c {column}, n INT);
                 INSERT INTO t(c) VALUES (1), (2), (2.5), ('1'), ('a'), ('B'), ('b'), ('c'),
                     (x'31'), (NULL), (-3), (1e301), ('01'), ('ab'), (x'');
                 CREATE INDEX tc ON t({index});"
            ));
            for low in values {
                for high in values {
                    all.push_str(&format!(
                        "SELECT group_concat(id) FROM (SELECT id FROM t WHERE c BETWEEN {low} AND {high} ORDER BY id);"
                    ));
                }
                all.push_str(&format!(
                    "SELECT count(*) FROM t WHERE c BETWEEN {low} AND 'b' AND c > 1;
                     SELECT count(*) FROM t WHERE c BETWEEN {low} AND 'c' AND c < 'b' AND c BETWEEN 0 AND 'bb';
                     SELECT count(*) FROM t WHERE c NOT BETWEEN {low} AND 'b';
                     SELECT count(*) FROM t WHERE (c BETWEEN {low} AND 2 OR c BETWEEN 'b' AND 'c') AND id < 12;
                     SELECT count(*) FROM t WHERE id BETWEEN {low} AND 7.5 AND n IS NULL AND c BETWEEN 1 AND 3;"
                ));
            }
        }
        same(&std::mem::take(&mut all));
    }
    let session = session();
    must(&session, "CREATE TABLE t(c, d); CREATE INDEX tc ON t(c)");
    let plan = |condition: &str| {
        let sql = format!("EXPLAIN QUERY PLAN SELECT d FROM t WHERE {condition}");
        run(&session, &sql).join("\n")
    };
    assert!(!plan("c BETWEEN 3 AND 5").contains("FILTER"));
    assert!(!plan("rowid BETWEEN 3 AND 5").contains("FILTER"));
    assert!(plan("c BETWEEN 3 AND 5 AND c BETWEEN 4 AND 7").contains("FILTER"));
    assert!(plan("(c BETWEEN 3 AND 5 OR c BETWEEN 7 AND 9)").contains("FILTER"));
}
