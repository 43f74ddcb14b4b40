//! RIGHT and FULL JOIN beside bundled SQLite: which rows they keep, what USING and NATURAL
//! make of names, what may be moved past them; and generated joins of all kinds.

mod common;
mod support;

use common::Random as Numbers;
use fulgurite_sql::session::Session;
use support::same;

/// Rows with and without partners, NULL keys, equal keys, all kinds of columns.
const TABLES: &str = "
    CREATE TABLE a(x INT, y TEXT);
    CREATE TABLE b(x TEXT COLLATE NOCASE, z);
    CREATE TABLE c(x, y, z);
    CREATE TABLE d(id INTEGER PRIMARY KEY, x REAL);
    CREATE TABLE t(id INTEGER PRIMARY KEY, v);
    INSERT INTO a VALUES (1,'one'),(2,'two'),(2,'deux'),(NULL,'nil'),(4,'four');
    INSERT INTO b VALUES ('2','B'),('3','C'),(NULL,'N'),('4','D'),('4','E');
    INSERT INTO c VALUES (2,'two','B'),(5,'five','X'),('4',NULL,'D'),(NULL,'nil',NULL);
    INSERT INTO d VALUES (1,2.0),(2,4.0),(3,7.5),(9,NULL);
    INSERT INTO t VALUES (1,10),(2,20),(3,30);
    CREATE VIEW v AS SELECT x, 5 AS five FROM b WHERE z > 'B';
    CREATE VIEW w AS SELECT * FROM a FULL JOIN b USING (x);
";

/// These queries over the tables, one after the other.
fn all(queries: &[&str]) {
    same(&format!("{TABLES}{};", queries.join(";\n")));
}

/// Each of these statements over fresh tables.
fn each(statements: &[&str]) {
    for sql in statements {
        same(&format!("{TABLES}{sql}; SELECT * FROM t ORDER BY id;"));
    }
}

#[test]
fn rows_without_a_partner_are_kept() {
    all(&[
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x",
        "SELECT * FROM t RIGHT JOIN d ON t.id = d.id",
        "SELECT * FROM t FULL JOIN d ON t.id = d.id",
        "SELECT 1 FROM a RIGHT JOIN b ON a.x = b.x",
        "SELECT a.x, b.x FROM a RIGHT JOIN b ON a.x = b.x AND abs(a.x) > 2",
    ]);
}

#[test]
fn conditions_of_any_kind() {
    all(&[
        "SELECT 1 FROM a LEFT RIGHT JOIN b ON 0",
        "SELECT 1 FROM a FULL LEFT JOIN b ON 0",
        "SELECT 1 FROM a RIGHT JOIN b",
        "SELECT 1 FROM a FULL OUTER RIGHT JOIN b ON 0",
        "SELECT * FROM a RIGHT OUTER JOIN b ON a.x = b.x AND a.y <> 'two'",
        "SELECT * FROM a FULL OUTER JOIN b ON a.x = b.x AND b.z <> 'D'",
        "SELECT * FROM a RIGHT JOIN b ON a.x > b.x",
        "SELECT * FROM a RIGHT JOIN b ON a.x = 2",
        "SELECT * FROM a RIGHT JOIN b ON b.x = 4",
        "SELECT * FROM a FULL JOIN b ON a.x = 2",
        "SELECT * FROM a FULL JOIN b ON b.x = 4",
        "SELECT * FROM a FULL JOIN b ON 0",
        "SELECT * FROM a FULL JOIN b ON NULL",
        "SELECT * FROM a FULL JOIN b ON 1",
        "SELECT * FROM a RIGHT JOIN b ON 0",
        "SELECT * FROM a RIGHT JOIN b ON NULL",
        "SELECT * FROM a RIGHT JOIN b ON 'x'",
        "SELECT * FROM a FULL JOIN b ON a.x IS b.x",
        "SELECT * FROM a RIGHT JOIN b ON a.x IS NOT b.x",
        "SELECT * FROM t, a FULL JOIN b ON a.x = b.x AND t.id = 2",
        "SELECT a.y FROM a RIGHT JOIN b ON a.y = b.z COLLATE NOCASE",
        "SELECT a.x, b.x FROM a RIGHT JOIN b ON b.x = a.y",
        "SELECT d.x, b.x FROM d FULL JOIN b ON d.x = b.x",
        "SELECT d.x, c.x FROM d FULL JOIN c ON d.x = c.x",
        "SELECT c.x, b.x FROM c FULL JOIN b ON c.x = b.x",
        "SELECT c.x, b.x FROM b FULL JOIN c ON c.x = b.x",
        "SELECT a.x, b.x FROM a RIGHT JOIN b ON abs(a.x) = b.x",
    ]);
}

#[test]
fn names_of_shared_columns() {
    all(&[
        "SELECT * FROM a RIGHT JOIN b USING(x)",
        "SELECT * FROM a FULL JOIN b USING(x)",
        "SELECT x, a.x, b.x, typeof(x) FROM a FULL JOIN b USING(x)",
        "SELECT a.*, b.* FROM a FULL JOIN b USING(x)",
        "SELECT a.*, b.* FROM a RIGHT JOIN b USING(x)",
        "SELECT * FROM a NATURAL FULL JOIN c",
        "SELECT * FROM a NATURAL RIGHT JOIN c",
        "SELECT * FROM a NATURAL FULL OUTER JOIN c",
        "SELECT * FROM a NATURAL RIGHT OUTER JOIN c",
        "SELECT * FROM a JOIN b USING(x) RIGHT JOIN c USING(x)",
        "SELECT * FROM a FULL JOIN b USING(x) FULL JOIN c USING(x)",
        "SELECT x FROM a FULL JOIN b USING(x) RIGHT JOIN c USING(x)",
        "SELECT x FROM a FULL JOIN b USING(x) LEFT JOIN c USING(x)",
        "SELECT x FROM a RIGHT JOIN b USING(x) LEFT JOIN c USING(x)",
        "SELECT x FROM a RIGHT JOIN b USING(x) JOIN c USING(x)",
        "SELECT x FROM a FULL JOIN b USING(x) JOIN c USING(x)",
        "SELECT x = '2' FROM a FULL JOIN b USING(x)",
        "SELECT y, z FROM a FULL JOIN c USING (y) FULL JOIN b USING (z)",
        "SELECT * FROM a FULL JOIN c USING (y) FULL JOIN b USING (z)",
        "SELECT x, typeof(x), x || '' FROM d FULL JOIN b USING(x)",
        "SELECT x, typeof(x) FROM b FULL JOIN d USING(x)",
        "SELECT x, x='4.0', x<'10' FROM d FULL JOIN b USING(x) ORDER BY x",
        "SELECT a.rowid, b.rowid FROM a FULL JOIN b USING(x)",
        "SELECT x, count(*) FROM a FULL JOIN b USING(x) GROUP BY x",
        "SELECT x='c', x FROM b FULL JOIN a USING(x)",
        "SELECT * FROM t FULL JOIN d USING (id)",
        "SELECT id, t.id, d.id FROM t FULL JOIN d USING (id) ORDER BY id",
        "SELECT id FROM t FULL JOIN d USING (id) WHERE id = 2",
        "SELECT id FROM t FULL JOIN d USING (id) WHERE id > 2",
        "SELECT id FROM t FULL JOIN d USING (id) WHERE t.id = 2",
        "SELECT id FROM t FULL JOIN d USING (id) WHERE id IS NULL",
        "SELECT id FROM t RIGHT JOIN d USING (id) WHERE id > 2",
        "SELECT id, count(*) FROM t FULL JOIN d USING (id) GROUP BY id HAVING id <> 2",
        "SELECT * FROM t NATURAL JOIN d NATURAL FULL JOIN a",
        "SELECT * FROM a NATURAL FULL JOIN b NATURAL FULL JOIN c",
        "SELECT * FROM t FULL JOIN t u USING (id, v)",
        "SELECT * FROM a FULL JOIN b USING (x) WHERE y = 'two'",
        "SELECT * FROM t NATURAL FULL JOIN d NATURAL LEFT JOIN a ORDER BY id, y",
        "SELECT * FROM a FULL JOIN v USING (x)",
    ]);
}

#[test]
fn conditions_above_a_join_stay_there_unless_they_need_a_side() {
    all(&[
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x WHERE a.x IS NULL",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x WHERE b.x IS NULL",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE a.x IS NULL",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE b.x IS NULL",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE a.x IS NULL AND b.x IS NULL",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE a.x > 1",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE b.z > 'B'",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE a.x > 1 AND b.z > 'B'",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE a.x > 1 OR b.z > 'B'",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE coalesce(a.x, 7) > 1",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x, t WHERE t.id = 2 AND a.x IS NULL",
        "SELECT * FROM t CROSS JOIN a RIGHT JOIN b ON a.x = b.x WHERE t.id = 1 OR t.id IS NULL",
        "SELECT * FROM t JOIN a ON t.id = a.x FULL JOIN b ON t.id = b.x WHERE t.v IS NOT 20",
        "SELECT a.x, b.x FROM a RIGHT JOIN b ON a.x = b.x WHERE abs(a.x) > 2",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x AND a.x = 4 WHERE b.z = 'D'",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE b.z = 'D'",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE b.z = 'D' AND a.y IS NULL",
        "SELECT * FROM a LEFT JOIN b ON a.x = b.x RIGHT JOIN c ON a.x = c.x WHERE b.z IS NULL",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x LEFT JOIN c ON a.x = c.x WHERE c.z = 'D'",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x JOIN c ON 1 WHERE a.x IS NULL AND c.x = 2",
    ]);
}

#[test]
fn joins_follow_each_other() {
    all(&[
        "SELECT * FROM a LEFT JOIN b ON a.x = b.x RIGHT JOIN c ON b.z = c.z FULL JOIN d ON d.x = c.x",
        "SELECT * FROM a JOIN b ON a.x = b.x FULL JOIN c ON c.z = b.z LEFT JOIN t ON t.id = a.x",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x FULL JOIN c ON c.z = b.z AND c.y = a.y",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x RIGHT JOIN c ON c.z = b.z RIGHT JOIN d ON d.x = c.x",
        "SELECT * FROM a FULL JOIN b ON a.x = b.x JOIN c ON c.z = b.z",
        "SELECT t.id FROM t LEFT JOIN t t2 ON t2.id = t.id + 1 RIGHT JOIN t t3 ON t3.id = t2.id",
        "SELECT a.x, b.x FROM a JOIN b ON abs(a.x) = b.x RIGHT JOIN c ON c.x = a.x",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x JOIN c ON a.x = c.x",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x JOIN c ON a.x IS NULL",
    ]);
}

#[test]
fn joins_in_parentheses() {
    all(&[
        "SELECT * FROM (a FULL JOIN b USING(x)) AS j",
        "SELECT j.x FROM (a FULL JOIN b USING(x)) AS j",
        "SELECT x FROM (a FULL JOIN b USING(x)) AS j",
        "SELECT * FROM d JOIN (a FULL JOIN b USING(x)) ON d.id = 1",
        "SELECT x FROM t JOIN (a FULL JOIN b USING(x)) ON t.id = 1",
        "SELECT a.x, c.y FROM a LEFT JOIN (b RIGHT JOIN c ON b.x = c.x) ON a.x = c.x",
        "SELECT a.x, c.y FROM a RIGHT JOIN (b LEFT JOIN c ON b.x = c.x) ON a.x = c.x",
        "SELECT a.x, c.y FROM (a FULL JOIN b ON a.x = b.x) RIGHT JOIN c ON a.x = c.x",
        "SELECT a.x, c.y FROM a FULL JOIN (b FULL JOIN c ON b.x = c.x) ON a.x = c.x AND a.x = b.x",
        "SELECT a.x, c.y, t.id FROM (a RIGHT JOIN c ON a.x = c.x) FULL JOIN (b JOIN t ON t.id = b.x) ON a.x = t.id",
        "SELECT * FROM t LEFT JOIN (a JOIN b USING(x)) AS j ON t.id = j.x ORDER BY id, y",
    ]);
}

#[test]
fn queries_views_and_named_queries_as_sides() {
    all(&[
        "SELECT x = 'b' FROM (SELECT 'B' AS x) FULL JOIN b USING(x)",
        "SELECT DISTINCT x FROM (SELECT 'c' x UNION ALL SELECT 'C') p FULL JOIN b USING(x)",
        "SELECT p.k FROM (SELECT x, 1 AS k FROM a) p RIGHT JOIN b ON p.x = b.x WHERE p.k = 1",
        "SELECT p.k FROM (SELECT x, 1 AS k FROM a) p RIGHT JOIN b ON p.x = b.x WHERE p.k IS NULL",
        "SELECT p.k FROM (SELECT x, 1 AS k FROM a) p RIGHT JOIN b ON p.x = b.x WHERE ifnull(p.k, 0) = 0",
        "WITH p AS (SELECT x FROM a WHERE x > 1), q AS (SELECT x FROM b) SELECT * FROM p FULL JOIN q USING (x)",
        "WITH p AS (SELECT x FROM a WHERE x > 1) SELECT l.x, r.x FROM p l RIGHT JOIN p r ON l.x = r.x + 2",
        "SELECT * FROM (VALUES (1, 'p'), (2, 'q')) l FULL JOIN (VALUES (2, 'r'), (3, 's')) r ON l.column1 = r.column1",
        "SELECT * FROM t FULL JOIN t u USING (id) FULL JOIN t w USING (id, v)",
        "SELECT * FROM (SELECT 1 WHERE 0) e RIGHT JOIN a ON 1",
        "SELECT * FROM (SELECT 1 AS q WHERE 0) e FULL JOIN a ON q = x",
        "SELECT * FROM v RIGHT JOIN a USING (x)",
        "SELECT * FROM w",
        "SELECT * FROM w WHERE z IS NULL",
        "SELECT w.x, t.id FROM t FULL JOIN w ON w.x = t.id",
        "SELECT w.x, t.id FROM w RIGHT JOIN t ON w.x = t.id WHERE w.y IS NULL",
        "SELECT count(*) FROM w, w AS w2",
        "SELECT x FROM w GROUP BY x HAVING count(*) > 1 ORDER BY 1",
    ]);
}

#[test]
fn subqueries_in_conditions_and_joins_in_subqueries() {
    all(&[
        "SELECT t.id, (SELECT count(*) FROM a LEFT JOIN b ON b.x = t.id) FROM t",
        "SELECT t.id, (SELECT count(*) FROM a, b WHERE b.x > t.id) FROM t",
        "SELECT t.id, (SELECT count(*) FROM a FULL JOIN (SELECT * FROM b WHERE x > t.id) q ON 1) FROM t",
        "SELECT d.id, (SELECT count(*) FROM a RIGHT JOIN b ON b.x = d.id AND a.x < d.x) FROM d",
        "SELECT d.id, (SELECT count(*) FROM a FULL JOIN b ON a.x < b.x AND b.x = d.x) FROM d",
        "SELECT DISTINCT x FROM b FULL JOIN (SELECT 'c' x UNION ALL SELECT 'C' UNION ALL SELECT 'Q' UNION ALL SELECT 'q') p USING(x)",
        "SELECT * FROM (SELECT x, 1 AS k FROM a) p RIGHT JOIN (SELECT x, 2 AS m FROM b) q ON p.x = q.x",
        "SELECT p.k, q.m FROM (SELECT x, 1 AS k FROM a) p FULL JOIN (SELECT x, 2 AS m FROM b) q ON p.x = q.x",
        "SELECT * FROM (SELECT DISTINCT x FROM a) p FULL JOIN (SELECT x, count(*) n FROM b GROUP BY x) q ON p.x = q.x",
        "SELECT a.x, b.x FROM a FULL JOIN b ON a.x = b.x AND EXISTS (SELECT 1 FROM c WHERE c.x = a.x)",
        "SELECT a.x, b.x FROM a RIGHT JOIN b ON a.x = b.x AND b.z IN (SELECT z FROM c)",
        "SELECT a.x, b.x FROM a FULL JOIN b ON (SELECT count(*) FROM c WHERE c.x = a.x AND c.z = b.z) > 0",
        "SELECT a.x, b.x FROM a FULL JOIN b ON a.x = (SELECT max(c.x) FROM c WHERE c.z = b.z)",
        "SELECT a.x, (SELECT count(*) FROM b FULL JOIN c ON b.x = c.x AND c.x = a.x) FROM a",
        "SELECT a.x, (SELECT group_concat(ifnull(b.z,'-')||ifnull(c.z,'-')) FROM b RIGHT JOIN c ON b.x = c.x AND b.x = a.x) FROM a",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b FULL JOIN c ON b.x = c.x WHERE b.x = a.x)",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b RIGHT JOIN c ON b.x = a.x WHERE c.x = a.x AND b.x IS NULL)",
        "SELECT a.x FROM a WHERE a.x IN (SELECT c.x FROM b RIGHT JOIN c ON b.x = c.x)",
        "SELECT a.x FROM a WHERE a.x NOT IN (SELECT b.x FROM b RIGHT JOIN c ON b.x = c.x)",
        "SELECT (SELECT id) FROM t FULL JOIN d USING (id)",
        "SELECT (SELECT count(*) FROM a WHERE a.x = id) FROM t FULL JOIN d USING (id)",
        "SELECT * FROM a RIGHT JOIN (SELECT 1 WHERE 0) e ON 1",
        "SELECT * FROM a FULL JOIN (SELECT 1 AS q WHERE 0) e ON q = x",
        "SELECT * FROM (SELECT 1 WHERE 0) e FULL JOIN (SELECT 1 WHERE 0) f ON 1",
        "SELECT a.x FROM a RIGHT JOIN b ON a.x = b.x ORDER BY (SELECT count(*) FROM c WHERE c.x = a.x), b.z",
    ]);
}

#[test]
fn groups_order_and_limits() {
    all(&[
        "SELECT count(*) FROM a FULL JOIN b",
        "SELECT count(*), count(a.x), count(b.x), sum(a.x), group_concat(b.z) FROM a FULL JOIN b ON a.x = b.x",
        "SELECT a.x, count(*), min(b.z), max(b.z) FROM a FULL JOIN b ON a.x = b.x GROUP BY a.x",
        "SELECT b.z, count(a.x) FROM a RIGHT JOIN b ON a.x = b.x GROUP BY b.z HAVING count(a.x) < 2",
        "SELECT DISTINCT a.x FROM a FULL JOIN b ON a.x = b.x",
        "SELECT a.x, b.z FROM a FULL JOIN b ON a.x = b.x ORDER BY b.z DESC, a.x",
        "SELECT a.x, b.z FROM a FULL JOIN b ON a.x = b.x ORDER BY a.x NULLS LAST, b.z",
        "SELECT a.x, b.z FROM a FULL JOIN b ON a.x = b.x ORDER BY a.rowid, b.rowid",
        "SELECT a.x, b.z FROM a FULL JOIN b ON a.x = b.x LIMIT 3",
        "SELECT a.x, b.z FROM a FULL JOIN b ON a.x = b.x LIMIT 3 OFFSET 5",
        "SELECT a.x, b.z FROM a RIGHT JOIN b ON a.x = b.x LIMIT 2 OFFSET 4",
        "SELECT a.x, b.z FROM a RIGHT JOIN b ON 0 LIMIT 2",
        "SELECT a.x FROM a FULL JOIN b ON a.x = b.x UNION SELECT c.x FROM b RIGHT JOIN c ON b.x = c.x",
        "SELECT a.x FROM a FULL JOIN b ON a.x = b.x EXCEPT SELECT c.x FROM b RIGHT JOIN c ON b.x = c.x",
        "SELECT max(a.x) FROM a RIGHT JOIN b ON a.x = b.x",
        "SELECT min(b.z), a.y FROM a FULL JOIN b ON a.x = b.x",
        "SELECT count(*) FROM a FULL JOIN b ON 0",
        "SELECT count(*) FROM a RIGHT JOIN b ON 1",
        "SELECT * FROM t JOIN a ON t.id = a.x RIGHT JOIN b ON t.id = b.x ORDER BY b.z, y",
        "SELECT * FROM a LEFT JOIN b ON a.x = b.x RIGHT JOIN c ON a.x = c.x WHERE b.z = 'B' ORDER BY a.y",
    ]);
}

#[test]
fn statements_that_write() {
    each(&[
        "UPDATE t SET v = b.z FROM a RIGHT JOIN b ON a.x=b.x WHERE b.z = 'C' AND t.id = 1 RETURNING *, rowid",
        "UPDATE t SET v = b.z FROM a RIGHT JOIN b ON a.x=b.x WHERE b.z = 'C' RETURNING *, rowid",
        "UPDATE t SET v = b.z FROM a FULL JOIN b ON a.x=b.x WHERE a.y = 'nil' RETURNING *, rowid",
        "UPDATE t SET v = b.z FROM a FULL JOIN b ON a.x=b.x AND t.id = 2 RETURNING *, rowid",
        "UPDATE t SET v = 5 FROM a RIGHT JOIN b ON 0 RETURNING *, rowid",
        "UPDATE t SET v = 5 FROM a RIGHT JOIN b ON 0 WHERE t.id > 1 RETURNING *, rowid",
        "UPDATE t SET v = 5 FROM (a RIGHT JOIN b ON 0) WHERE t.id > 1 RETURNING *, rowid",
        "UPDATE t SET v = 5 FROM (SELECT * FROM a RIGHT JOIN b ON 0) WHERE t.id > 1 RETURNING *, rowid",
        "UPDATE t SET v = x FROM a FULL JOIN d USING (x) WHERE t.id = d.id RETURNING *",
        "UPDATE t SET v = id FROM a FULL JOIN d USING (x) RETURNING *",
        "UPDATE t SET v = x FROM a FULL JOIN d USING (id) RETURNING *",
        "CREATE TABLE made AS SELECT * FROM a FULL JOIN b USING (x)",
        "INSERT INTO t SELECT NULL, b.z FROM a FULL JOIN b USING (x) RETURNING *",
        "DELETE FROM t WHERE id IN (SELECT a.x FROM a RIGHT JOIN b ON a.x = b.x) RETURNING *",
        "UPDATE t SET v = (SELECT count(*) FROM a FULL JOIN b ON a.x = t.id AND b.x = t.id) RETURNING *",
    ]);
}

#[test]
fn what_is_refused() {
    all(&[
        "SELECT * FROM a JOIN b ON a.x=b.x RIGHT JOIN c USING(x)",
        "SELECT z FROM b FULL JOIN c USING(x)",
        "SELECT a.x FROM a JOIN b ON a.x = c.x RIGHT JOIN c ON 1",
        "SELECT a.x FROM a RIGHT JOIN c ON 1 JOIN b ON d.x = b.x JOIN d",
        "SELECT a.x FROM a JOIN b ON a.x = c.x JOIN c ON 1 RIGHT JOIN d ON 1",
        "SELECT a.x FROM a RIGHT JOIN b ON a.x = c.x JOIN c",
        "SELECT 1 FROM a RIGHT INNER JOIN b",
        "SELECT 1 FROM a OUTER JOIN b ON 0",
        "SELECT 1 FROM a CROSS RIGHT JOIN b ON 0",
        "SELECT 1 FROM a NATURAL FULL OUTER JOIN b ON 0",
        "SELECT rowid FROM a FULL JOIN b USING(x)",
        "SELECT * FROM a FULL JOIN b USING (nope)",
    ]);
}

/// The names of columns, too.
#[test]
fn names_of_columns() {
    let ours = support::session();
    let theirs = rusqlite::Connection::open_in_memory().unwrap();
    support::must(&ours, TABLES);
    theirs.execute_batch(TABLES).unwrap();
    for sql in [
        "SELECT * FROM a FULL JOIN b USING (x)",
        "SELECT * FROM a NATURAL RIGHT JOIN c",
        "SELECT x, a.x, b.* FROM a FULL JOIN b USING (x)",
        "SELECT * FROM a FULL JOIN c USING (y) FULL JOIN b USING (z)",
        "SELECT * FROM (SELECT x, y FROM a FULL JOIN b USING (x)) RIGHT JOIN t ON id = x",
    ] {
        let mine = support::prepare(&ours, sql);
        let mine: Vec<_> = (0..mine.column_count())
            .filter_map(|i| mine.column_name(i))
            .collect();
        let other = theirs.prepare(sql).unwrap();
        assert_eq!(mine, other.column_names().collect::<Vec<_>>(), "{sql}");
    }
}

/// A WHERE that needs a side makes another join of it, which EXPLAIN shows.
#[test]
fn joins_become_others() {
    let session = support::session();
    support::must(&session, TABLES);
    for (filter, join) in [
        ("1", "FULL JOIN"),
        ("a.y IS NULL", "FULL JOIN"),
        ("a.y = 'one'", "LEFT JOIN"),
        ("b.z = 'B'", "RIGHT JOIN"),
        ("a.y > b.z", "JOIN"),
    ] {
        let sql = format!("EXPLAIN SELECT * FROM a FULL JOIN b ON a.x = b.x WHERE {filter}");
        let plan = support::run(&session, &sql).join("\n");
        let is_there = |kind: &&str| plan.contains(&format!("{kind}JOIN"));
        let kinds = ["LEFT ", "RIGHT ", "FULL "];
        let kind: String = kinds.into_iter().filter(is_there).collect();
        assert_eq!(format!("{kind}JOIN"), join, "{filter}: {plan}");
    }
}

/// Where a side is large, its rows are not put into a hash table, or its index is asked.
#[test]
fn large_sides_are_not_hashed() {
    let sql = "
        CREATE TABLE s(id INTEGER PRIMARY KEY, k INT);
        CREATE TABLE l(id INTEGER PRIMARY KEY, k INT, n);
        INSERT INTO s VALUES (1, 5), (2, 5), (3, 900), (4, NULL), (5, 7000);
        INSERT INTO l WITH d(x) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
            SELECT NULL, p.x * 1000 + q.x * 100 + r.x * 10 + s.x, s.x FROM d p, d q, d r, d s;
    ";
    let session = support::session();
    support::must(&session, sql);
    for (query, wanted) in [
        ("s RIGHT JOIN l ON s.k = l.k", "HASH LEFT JOIN ($1=$1)"),
        ("s FULL JOIN l ON s.k = l.k", "HASH FULL JOIN ($1=$1)"),
        ("l RIGHT JOIN s ON s.k = l.id", "LOOKUP l (rowid=r0)"),
    ] {
        let explained = format!("EXPLAIN SELECT s.id, s.k, l.k, l.n, l.id FROM {query}");
        let plan = support::run(&session, &explained).join("\n");
        assert!(plan.contains(wanted), "{query}: {plan}");
        let counted = format!("SELECT count(*), sum(s.id), sum(l.id), count(n) FROM {query};");
        let first =
            format!("SELECT s.*, l.* FROM {query} ORDER BY s.id IS NULL, s.id, l.id LIMIT 9;");
        same(&format!("{sql}{counted}{first}"));
    }
    same(&format!(
        "{sql}SELECT s.id, l.id FROM s FULL JOIN l ON s.k > l.k AND l.n = 3 ORDER BY 1, 2 LIMIT 40;
        SELECT s.id, l.id, t.k FROM s JOIN s t ON t.id = s.id RIGHT JOIN l ON t.k = l.k WHERE l.id < 9 ORDER BY 1, 2;"
    ));
}

/// Tables of a world by number, with their columns.
const COLUMNS: [&[(&str, &str)]; 5] = [
    &[("a", "INT"), ("b", "TEXT COLLATE NOCASE")],
    &[("a", "TEXT"), ("c", "")],
    &[("b", "TEXT"), ("c", "REAL"), ("d", "INT")],
    &[("a", "REAL"), ("d", "")],
    &[("c", "INT"), ("d", "TEXT COLLATE NOCASE"), ("e", "INT")],
];

const VALUES: [&str; 12] = [
    "NULL", "NULL", "0", "1", "1", "2", "'1'", "'x'", "'X'", "'y'", "1.0", "2.5",
];

/// Numbers below a length.
struct Random(Numbers);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }
}

/// The same tables here and in bundled SQLite.
struct Both {
    ours: Session,
    theirs: rusqlite::Connection,
}

impl Both {
    fn new(random: &mut Random, rows: usize) -> Both {
        let both = Both {
            ours: support::session(),
            theirs: rusqlite::Connection::open_in_memory().unwrap(),
        };
        for (table, columns) in COLUMNS.iter().enumerate() {
            let key = ["", "id INTEGER PRIMARY KEY, "][random.below(2)];
            let list: Vec<String> = columns.iter().map(|(n, t)| format!("{n} {t}")).collect();
            both.run(&format!("CREATE TABLE t{table} ({key}{})", list.join(", ")));
            let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            if random.below(2) == 0 {
                let first = names[random.below(names.len())];
                let filter = ["", "", " WHERE a IS NOT NULL"][random.below(3)];
                let filter = if names[0] == "a" { filter } else { "" };
                both.run(&format!(
                    "CREATE INDEX i{table} ON t{table} ({first}){filter}"
                ));
            }
            let rows = if random.below(8) == 0 {
                0
            } else {
                rows / 2 + random.below(rows / 2 + 1)
            };
            for chunk in 0..rows.div_ceil(200) {
                let rows: Vec<String> = (chunk * 200..rows.min(chunk * 200 + 200))
                    .map(|_| {
                        let value = |_: &&str| match rows > 100 && random.below(10) > 0 {
                            true => random.below(3 * rows).to_string(),
                            false => VALUES[random.below(VALUES.len())].to_owned(),
                        };
                        let values: Vec<String> = names.iter().map(value).collect();
                        format!("({})", values.join(", "))
                    })
                    .collect();
                let names = names.join(", ");
                both.run(&format!(
                    "INSERT INTO t{table} ({names}) VALUES {}",
                    rows.join(", ")
                ));
            }
        }
        both
    }

    fn run(&self, sql: &str) {
        support::must(&self.ours, sql);
        self.theirs.execute_batch(sql).unwrap();
    }

    /// The rows, whatever their order, or the error.
    fn same(&self, sql: &str) {
        let mut mine = support::run(&self.ours, sql);
        let mut theirs = support::sqlite(&self.theirs, sql);
        // The columns of a join in parentheses are looked up by name there.
        let mut rows = mine.iter().chain(&theirs);
        let is_ambiguous = rows.any(|r| r.contains(": ambiguous "));
        if is_ambiguous && has_parentheses(sql) {
            return;
        }
        mine.sort();
        theirs.sort();
        assert_eq!(mine, theirs, "{sql}");
    }
}

/// A join in parentheses, of whose columns `*` makes another order there.
fn has_parentheses(sql: &str) -> bool {
    sql.contains("((") || sql.contains("(t")
}

/// What a FROM clause has so far.
#[derive(Default)]
struct Scope {
    /// Alias and column.
    columns: Vec<(String, String)>,
    aliases: usize,
    /// A join in parentheses is being written, which holds no other.
    is_nested: bool,
}

/// Writes joins.
struct Writer<'r> {
    random: &'r mut Random,
    rows: usize,
}

impl Writer<'_> {
    fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of[self.random.below(of.len())]
    }

    fn query(&mut self) -> String {
        let mut scope = Scope::default();
        let count = 2 + self.random.below(if self.rows > 100 { 2 } else { 4 });
        let from = self.joins(count, &mut scope);
        let filter = match self.random.below(5) {
            0..=2 => format!(" WHERE {}", self.condition(&scope.columns, 2)),
            _ => String::new(),
        };
        let column = |(alias, column): &(String, String)| format!("{alias}.{column}");
        let columns: Vec<String> = scope.columns.iter().map(column).collect();
        let shown = match self.random.below(8) {
            0 | 1 if !has_parentheses(&from) => "*".to_owned(),
            2 => "count(*)".to_owned(),
            3 => format!("{}, count(*)", self.one(&scope.columns)),
            4 => scope.columns[self.random.below(scope.columns.len())]
                .1
                .clone(),
            _ => columns.join(", "),
        };
        let group = match shown.strip_suffix(", count(*)") {
            Some(key) => format!(" GROUP BY typeof({key}), CAST({key} AS BLOB)"),
            None => String::new(),
        };
        format!("SELECT {shown} FROM {from}{filter}{group}")
    }

    fn one(&mut self, columns: &[(String, String)]) -> String {
        let (alias, column) = &columns[self.random.below(columns.len())];
        format!("{alias}.{column}")
    }

    fn joins(&mut self, count: usize, scope: &mut Scope) -> String {
        let begin = scope.columns.len();
        let mut from = self.source(count, scope);
        for left in (0..count - 1).rev() {
            let before: Vec<String> = scope.columns[begin..].iter().map(|c| c.1.clone()).collect();
            let here = scope.columns.len();
            let source = self.source(left.max(1), scope);
            let kind = self.pick(&[
                "JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "RIGHT OUTER JOIN",
                "FULL OUTER JOIN",
            ]);
            let shared = |c: &&(String, String)| before.iter().filter(|b| **b == c.1).count() == 1;
            let shared = scope.columns[here..]
                .iter()
                .find(shared)
                .map(|c| c.1.clone());
            from += &match (self.random.below(10), shared) {
                (0, Some(_)) => format!(" NATURAL {kind} {source}"),
                (1 | 2, Some(name)) => format!(" {kind} {source} USING ({name})"),
                (3, _) if self.rows < 100 => format!(", {source}"),
                _ => {
                    let seen = scope.columns[begin..].to_vec();
                    let on = self.on(&seen, here - begin);
                    format!(" {kind} {source} ON {on}")
                }
            };
        }
        from
    }

    /// A table, a subquery, or a join of at most so many tables in parentheses.
    fn source(&mut self, most: usize, scope: &mut Scope) -> String {
        if most >= 2 && !scope.is_nested && self.random.below(6) == 0 {
            scope.is_nested = true;
            let join = self.joins(2, scope);
            scope.is_nested = false;
            return format!("({join})");
        }
        let table = self.random.below(COLUMNS.len());
        let alias = format!("x{}", scope.aliases);
        scope.aliases += 1;
        let names: Vec<&str> = COLUMNS[table].iter().map(|(name, _)| *name).collect();
        let is_query = self.random.below(5) == 0;
        let mut columns: Vec<(String, String)> = names
            .iter()
            .map(|n| (alias.clone(), (*n).to_owned()))
            .collect();
        let source = match is_query {
            true => {
                let own: Vec<_> = names
                    .iter()
                    .map(|n| (format!("t{table}"), (*n).to_owned()))
                    .collect();
                let filter = self.condition(&own, 1);
                let list = names.join(", ");
                columns.push((alias.clone(), "k".to_owned()));
                format!("(SELECT {list}, 7 AS k FROM t{table} WHERE {filter}) AS {alias}")
            }
            false => format!("t{table} AS {alias}"),
        };
        scope.columns.extend(columns);
        source
    }

    /// A condition between what comes from `here` on and what is before it.
    fn on(&mut self, columns: &[(String, String)], here: usize) -> String {
        let (before, own) = columns.split_at(here);
        let (one, other) = (self.one(before), self.one(own));
        let equal = format!("{one} = {other}");
        if self.rows > 100 || self.random.below(3) > 0 {
            return match self.random.below(3) {
                0 => format!("{equal} AND {}", self.condition(columns, 1)),
                _ => equal,
            };
        }
        self.condition(columns, 1)
    }

    fn condition(&mut self, columns: &[(String, String)], depth: usize) -> String {
        let (one, other) = (self.one(columns), self.one(columns));
        let value = self.pick(&VALUES);
        match self.random.below(if depth > 0 { 15 } else { 11 }) {
            11 if self.rows > 100 => format!("{one} <> {other}"),
            0 => format!("{one} = {other}"),
            1 => format!("{one} = {value}"),
            2 => format!(
                "{one} {} {other}",
                self.pick(&["<", ">=", "<>", "IS", "IS NOT"])
            ),
            3 => format!("{one} IS NULL"),
            4 => format!("{one} IS NOT NULL"),
            5 => format!("{one} IN (1, 'x', {value})"),
            6 => format!("coalesce({one}, {value}) = {other}"),
            7 => self.pick(&["1", "0", "NULL", "1 = 1"]).to_owned(),
            8 => format!("{one} BETWEEN 0 AND {other}"),
            9 => format!("{one} LIKE {value}"),
            10 => format!("EXISTS (SELECT 1 FROM t1 WHERE t1.c = {one})"),
            11 => {
                let kind = self.pick(&["LEFT", "RIGHT", "FULL"]);
                let on = self.pick(&["q.c = p.c", "q.c < p.c", "1"]);
                format!(
                    "(SELECT count(*) FROM t1 AS p {kind} JOIN t4 AS q ON {on} AND q.d = {one} \
                     WHERE p.a IS NULL OR p.a = {other}) > 2"
                )
            }
            12 => {
                let (l, r) = (
                    self.condition(columns, 0),
                    self.condition(columns, depth - 1),
                );
                format!("({l} OR {r})")
            }
            13 => {
                let (l, r) = (
                    self.condition(columns, 0),
                    self.condition(columns, depth - 1),
                );
                format!("{l} AND {r}")
            }
            _ => format!("NOT ({})", self.condition(columns, depth - 1)),
        }
    }
}

fn compare(seed: u64, worlds: usize, queries: usize, rows: usize) {
    let mut random = Random(Numbers(seed));
    for _ in 0..worlds {
        let both = Both::new(&mut random, rows);
        for _ in 0..queries {
            let limit = [0, 0, 30_000, 1 << 26][random.below(4)];
            both.ours.set_memory_limit(limit);
            let random = &mut random;
            both.same(&Writer { random, rows }.query());
        }
    }
}

#[test]
fn generated_joins() {
    let worlds = std::env::var("FULGURITE_JOIN_WORLDS").map_or(20, |n| n.parse().unwrap());
    let seed = std::env::var("FULGURITE_JOIN_SEED").map_or(7, |n| n.parse().unwrap());
    compare(seed, worlds, 40, 9);
    compare(seed + 1, worlds / 10, 20, 1600);
}

/// LEFT JOINs of which the rows without a partner are wanted, and those that look alike.
#[test]
fn rows_without_a_partner() {
    let tables = "
        CREATE TABLE l(id INTEGER PRIMARY KEY, a INT, b TEXT);
        CREATE TABLE r(id INTEGER PRIMARY KEY, a INT, b TEXT, c INT);
        CREATE TABLE w(k INT, a INT, PRIMARY KEY (k)) WITHOUT ROWID;
        CREATE INDEX ra ON r(a);
        WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT 150)
            INSERT INTO l SELECT i, i % 90, i % 7 || '' FROM i;
        INSERT INTO l VALUES (1000, NULL, NULL), (1001, NULL, '3');
        INSERT INTO r SELECT id * 2, a * 2, b, iif(id % 3, id, NULL) FROM l WHERE id < 100;
        INSERT INTO r VALUES (5000, NULL, NULL, NULL);
        INSERT INTO w SELECT id * 3, a FROM l WHERE id < 50;";
    let mut all = tables.to_owned();
    for on in [
        "r.a = l.a",
        "r.a = l.a AND r.b = l.b",
        "r.a = l.a AND r.c > 20",
        "r.id = l.id AND l.b = '3'",
        "r.b = l.b AND r.c < l.a",
        "r.a IS l.a",
        "r.a = l.a AND abs(r.c) > 9",
        "r.c > l.a",
    ] {
        for none in ["r.id IS NULL", "r.a IS NULL", "r.c IS NULL", "r.b ISNULL"] {
            all += &format!(
                "SELECT l.id FROM l LEFT JOIN r ON {on} WHERE {none} ORDER BY 1;
                 SELECT count(*) FROM l LEFT JOIN r ON {on} WHERE {none} AND l.id > 50;
                 SELECT l.id, r.b FROM l LEFT JOIN r ON {on} WHERE {none} ORDER BY 1, 2;
                 SELECT l.id FROM l LEFT JOIN r ON {on} WHERE {none} AND r.b IS NULL ORDER BY 1;
                 SELECT l.id, x.id FROM l LEFT JOIN r ON {on} LEFT JOIN l x ON x.id = l.id + 1 WHERE {none} ORDER BY 1, 2;
                 SELECT l.id, x.id FROM l LEFT JOIN r ON {on} LEFT JOIN l x ON x.id = r.id WHERE {none} ORDER BY 1, 2;
                 SELECT l.id, x.id FROM l JOIN l x ON x.id = l.id + 1 LEFT JOIN r ON {on} WHERE {none} AND x.a > 3 ORDER BY 1, 2;
                 SELECT l.id FROM r RIGHT JOIN l ON {on} WHERE {none} ORDER BY 1;
                 SELECT l.id FROM l LEFT JOIN r ON {on} WHERE {none} AND EXISTS (SELECT 1 FROM w WHERE w.k = l.id) ORDER BY 1;
                 SELECT l.id FROM l LEFT JOIN r ON {on} WHERE {none} AND EXISTS (SELECT 1 FROM w WHERE w.a = r.c) ORDER BY 1;
                 SELECT l.id FROM l LEFT JOIN r ON {on} WHERE {none} ORDER BY l.a, 1 LIMIT 5;"
            );
        }
    }
    all += "SELECT l.id FROM l LEFT JOIN w ON w.k = l.id WHERE w.k IS NULL ORDER BY 1;
        SELECT l.id FROM l LEFT JOIN w ON w.a = l.a WHERE w.k IS NULL ORDER BY 1;
        SELECT l.id FROM l LEFT JOIN r ON r.a = l.a LEFT JOIN w ON w.k = l.id WHERE r.id IS NULL AND w.a IS NULL ORDER BY 1;
        SELECT l.id FROM l LEFT JOIN r ON r.a = l.a WHERE r.id IS NULL OR l.id = 4 ORDER BY 1;
        SELECT l.id FROM l LEFT JOIN r ON r.a = l.a GROUP BY l.id HAVING max(r.id) IS NULL ORDER BY 1;
        DELETE FROM l WHERE id IN (SELECT l.id FROM l LEFT JOIN r ON r.a = l.a WHERE r.id IS NULL);
        SELECT count(*), sum(id) FROM l";
    support::same(&all);
    let session = support::session();
    support::must(&session, tables);
    let explain =
        "EXPLAIN QUERY PLAN SELECT l.id FROM l LEFT JOIN r ON r.a = l.a WHERE r.id IS NULL";
    let plan = support::run(&session, explain).join("\n");
    assert!(plan.contains("ANTI JOIN"), "{plan}");
}
