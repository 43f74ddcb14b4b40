//! Window functions beside bundled SQLite: what they compute over which frames, where
//! they may stand, and what is said where they may not.

mod common;
mod support;

use common::Random;
use fulgurite_sql::session::Step;
use support::{must, prepare, same, session};

const TABLE: &str =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, g TEXT, x INTEGER, r REAL, s TEXT COLLATE NOCASE);
    INSERT INTO t VALUES (1, 'a', 5, 0.1, 'x'), (2, 'b', 3, 0.7, 'Y'), (3, 'a', NULL, NULL, 'y'),
        (4, 'b', 3, 1e10, NULL), (5, 'a', 9, -0.3, 'X'), (6, NULL, 5, 0.2, 'z'),
        (7, 'a', 5, 0.30000001, 'b'), (8, 'b', 1, 2.5, 'B'), (9, NULL, NULL, 4, 'a');";

/// Each of these alone, over a table of its own.
fn each_same(statements: &[&str]) {
    for statement in statements {
        same(&format!("{TABLE} {statement}"));
    }
}

/// Windows, named ones, and bounds of frames.
const WINDOWS: &[&str] = &[
    "SELECT nosuch(x) OVER () FROM t",
    "SELECT sum(x) OVER nosuch FROM t",
    "SELECT sum(x) OVER (nosuch) FROM t",
    "SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY id), w AS (PARTITION BY g)",
    "SELECT sum(x) OVER W FROM t WINDOW w AS (ORDER BY id)",
    "SELECT sum(x) OVER (w ORDER BY id) FROM t WINDOW w AS (PARTITION BY g)",
    "SELECT sum(x) OVER (w PARTITION BY id) FROM t WINDOW w AS (PARTITION BY g)",
    "SELECT sum(x) OVER (w ORDER BY id) FROM t WINDOW w AS (ORDER BY x)",
    "SELECT sum(x) OVER (w) FROM t WINDOW w AS (ORDER BY x ROWS 1 PRECEDING)",
    "SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY x ROWS 1 PRECEDING)",
    "SELECT sum(x) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY x, id)",
    "SELECT sum(x) OVER v FROM t WINDOW w AS (PARTITION BY g), v AS (w ORDER BY id)",
    "SELECT sum(x) OVER v FROM t WINDOW w AS (PARTITION BY g), v AS (w ORDER BY id), u AS (v ROWS 2 PRECEDING)",
    "SELECT sum(x) OVER u FROM t WINDOW w AS (PARTITION BY g), v AS (w ORDER BY id), u AS (v ROWS 2 PRECEDING)",
    "SELECT sum(x) OVER u FROM t WINDOW w AS (PARTITION BY g), v AS (w ORDER BY id), u AS (v PARTITION BY x)",
    "SELECT 1 FROM t WINDOW w AS (ORDER BY nosuch)",
    "SELECT 1 FROM t WINDOW w AS (ORDER BY x), v AS (w ORDER BY g)",
    "SELECT sum(x) OVER (ORDER BY nosuch) FROM t",
    "SELECT sum(x) OVER (PARTITION BY nosuch) FROM t",
    "SELECT sum(x) OVER (RANGE 1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x, id RANGE 1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x, id RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS -1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 1.5 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 'abc' PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS '1' PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 2.0 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS NULL PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS x PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 1+1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS abs(1) PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS TRUE PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 9223372036854775807 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 9223372036854775807 FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 9223372036854775807 FOLLOWING AND 9223372036854775807 FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 9223372036854775808 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x GROUPS 'x' PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE -1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE 1.5 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE 'abc' PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE '2' PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE NULL PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE x'01' PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND -1 FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND -1 FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS -1 PRECEDING) FROM t WHERE 0",
    "SELECT first_value(x) OVER (ORDER BY x ROWS -1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS 1 FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS UNBOUNDED FOLLOWING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM t",
    "SELECT sum(x) OVER (ROWS) FROM t",
    "SELECT nth_value(id,10-id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM t",
    "SELECT nth_value(id,0) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t",
    "SELECT nth_value(x,'abc') OVER (ORDER BY id ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING) FROM t",
    "SELECT min(s COLLATE BINARY) OVER (ORDER BY id ROWS 2 PRECEDING) FROM t",
    "SELECT id, sum(id) OVER (ORDER BY x DESC NULLS FIRST RANGE 2 PRECEDING) FROM t",
    "SELECT id, sum(id) OVER (ORDER BY x NULLS LAST RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT id, sum(id) OVER (ORDER BY x NULLS LAST RANGE BETWEEN 1 FOLLOWING AND 3 FOLLOWING) FROM t",
    "SELECT id, sum(id) OVER (ORDER BY x NULLS LAST RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM t",
    "SELECT id, sum(id) OVER (ORDER BY s RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM t",
    "SELECT id, sum(id) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT id, count(*) OVER (ORDER BY s RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM t",
    "SELECT min(g) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT sum(9223372036854775807) OVER (ORDER BY id ROWS CURRENT ROW) FROM t",
    "SELECT total(9223372036854775807) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t",
    "SELECT avg(s) OVER (ORDER BY id ROWS 1 PRECEDING), sum(s) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t",
    "SELECT id, sum(x) over w FROM t window w as (partition by g order by id rows between 1 preceding and 1 following exclude ties)",
    "SELECT sum(x) OVER (ORDER BY id), sum(x) OVER (ORDER BY id ROWS 1 PRECEDING), lag(x) OVER (ORDER BY id) FROM t",
];

/// Calls and their arguments.
const FUNCTIONS: &[&str] = &[
    "SELECT id FROM t ORDER BY row_number() OVER (ORDER BY x DESC)",
    "SELECT id FROM t ORDER BY sum(x) OVER (PARTITION BY g), id",
    "SELECT abs(x) OVER () FROM t",
    "SELECT abs() OVER () FROM t",
    "SELECT row_number(1) OVER () FROM t",
    "SELECT row_number(*) OVER () FROM t",
    "SELECT count(x,x) OVER () FROM t",
    "SELECT sum(*) OVER () FROM t",
    "SELECT abs(x) FILTER (WHERE x>3) FROM t",
    "SELECT nth_value(x,0) OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,-1) OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,'2') OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,2.0) OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,1.5) OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,NULL) OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,id) OVER (ORDER BY id) FROM t",
    "SELECT nth_value(x,10-id) OVER (ORDER BY id) FROM t",
    "SELECT ntile(0) OVER (ORDER BY id) FROM t",
    "SELECT ntile(-1) OVER (ORDER BY id) FROM t",
    "SELECT ntile(NULL) OVER (ORDER BY id) FROM t",
    "SELECT ntile('3') OVER (ORDER BY id) FROM t",
    "SELECT ntile(2.9) OVER (ORDER BY id) FROM t",
    "SELECT ntile(id) OVER (ORDER BY id DESC) FROM t",
    "SELECT ntile(100) OVER (ORDER BY id) FROM t",
    "SELECT lag(x, 0) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, -1) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, -2) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, -3, 'none') OVER (ORDER BY id) FROM t",
    "SELECT lead(id, -1) OVER (ORDER BY id) FROM t",
    "SELECT lead(id, -3) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, NULL) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, NULL, 7) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, 1.0) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, 1.5) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, '1') OVER (ORDER BY id) FROM t",
    "SELECT lag(id, 'abc') OVER (ORDER BY id) FROM t",
    "SELECT lag(id, id/2, id) OVER (ORDER BY id) FROM t",
    "SELECT lead(id, id/2, id) OVER (PARTITION BY g ORDER BY id) FROM t",
    "SELECT lead(id, 9223372036854775807) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, -9223372036854775808) OVER (ORDER BY id) FROM t",
    "SELECT lag(id, 1, 2, 3) OVER (ORDER BY id) FROM t",
    "SELECT lag() OVER (ORDER BY id) FROM t",
    "SELECT max(x), row_number() OVER () FROM t",
    "SELECT id, rank() OVER (ORDER BY x), rank() OVER (ORDER BY r), sum(x) OVER (PARTITION BY g ORDER BY id) FROM t",
    "SELECT id, sum(x) OVER (PARTITION BY g), row_number() OVER (ORDER BY s) FROM t",
    "SELECT sum(5) OVER (), count(*) OVER (), rank() OVER (ORDER BY 1)",
    "SELECT sum(x) OVER (ORDER BY x COLLATE NOCASE) FROM t",
    "SELECT id, s, rank() OVER (ORDER BY s COLLATE BINARY) FROM t",
    "SELECT id, s, rank() OVER (PARTITION BY s COLLATE BINARY ORDER BY id) FROM t",
    "SELECT id, rank() OVER (ORDER BY x NULLS LAST), rank() OVER (ORDER BY x DESC NULLS FIRST) FROM t",
    "SELECT group_concat(x ORDER BY id) OVER () FROM t",
    "SELECT group_concat(x ORDER BY id DESC) OVER (ORDER BY id) FROM t",
    "SELECT row_number(ORDER BY id) OVER () FROM t",
    "SELECT count(*) FILTER (WHERE x > 3), sum(x) FILTER (WHERE g='a') FROM t",
    "SELECT sum(x) OVER (ORDER BY 1) FROM t",
    "SELECT sum(x) OVER (PARTITION BY 1 ORDER BY 2) FROM t",
    "SELECT sum(x) OVER (PARTITION BY NULL ORDER BY id) FROM t",
    "SELECT x AS a, sum(x) OVER (ORDER BY a) FROM t",
    "SELECT x AS a FROM t ORDER BY sum(x) OVER (ORDER BY a DESC), id",
    "SELECT sum(x) OVER (PARTITION BY g, x ORDER BY g, id) FROM t",
    "SELECT sum(9223372036854775807) OVER (ORDER BY id) FROM t",
    "SELECT min(x,3) OVER () FROM t",
    "SELECT coalesce(x,0) OVER () FROM t",
    "SELECT sum(x) OVER (ORDER BY id) = 5 FROM t",
    "SELECT count(*) OVER (ORDER BY g), sum(id) OVER (ORDER BY g, x) FROM t",
    "SELECT id, lead(id) OVER (ORDER BY id) - id, max(x) OVER () - x FROM t",
    "SELECT group_concat(x ORDER BY id) OVER () FROM t WHERE group_concat(x ORDER BY id) OVER () = 1",
];

/// Where they stand.
const PLACES: &[&str] = &[
    "SELECT row_number() OVER () FROM t WHERE row_number() OVER () > 1",
    "SELECT row_number()",
    "SELECT row_number() FROM t",
    "SELECT sum(x) FROM t HAVING row_number() OVER () > 1",
    "SELECT x, count(*) FROM t GROUP BY row_number() OVER ()",
    "SELECT row_number() OVER () FROM t GROUP BY 1",
    "SELECT row_number() OVER () r FROM t GROUP BY r",
    "SELECT row_number() OVER () r FROM t WHERE r = 1",
    "SELECT 1+row_number() OVER () r FROM t WHERE r = 1",
    "SELECT row_number() OVER () r FROM t ORDER BY r DESC",
    "SELECT row_number() OVER () r FROM t ORDER BY r+1 DESC LIMIT 3",
    "SELECT row_number() OVER () r, x FROM t GROUP BY x HAVING r > 1",
    "SELECT sum(DISTINCT x) OVER () FROM t",
    "SELECT count(DISTINCT x) FILTER (WHERE x>3) FROM t",
    "SELECT row_number() FILTER (WHERE x>3) OVER () FROM t",
    "SELECT row_number() FILTER (WHERE x>3) FROM t",
    "SELECT row_number() OVER (ORDER BY x, id RANGE 1 PRECEDING) FROM t",
    "SELECT sum(x) OVER (ORDER BY x ROWS (SELECT 1) PRECEDING) FROM t",
    "SELECT row_number() OVER (ORDER BY x ROWS -1 PRECEDING) FROM t",
    "SELECT sum(row_number() OVER ()) OVER () FROM t",
    "SELECT sum(row_number() OVER ()) FROM t",
    "SELECT sum(x) OVER (ORDER BY row_number() OVER ()) FROM t",
    "SELECT sum(x) OVER (PARTITION BY row_number() OVER ()) FROM t",
    "SELECT sum(x) FILTER (WHERE row_number() OVER () > 1) OVER () FROM t",
    "SELECT sum(count(*)) OVER () FROM t",
    "SELECT g, sum(count(*)) OVER () FROM t GROUP BY g",
    "SELECT g, sum(count(*)) OVER (ORDER BY g) FROM t GROUP BY g",
    "SELECT g, rank() OVER (ORDER BY sum(x)) FROM t GROUP BY g",
    "SELECT g, rank() OVER (ORDER BY sum(x) DESC), sum(x) FROM t GROUP BY g ORDER BY 2 DESC",
    "SELECT g, sum(x), sum(sum(x)) OVER (ORDER BY g ROWS UNBOUNDED PRECEDING) FROM t GROUP BY g HAVING count(*) > 1",
    "SELECT g, row_number() OVER () FROM t GROUP BY g",
    "SELECT g, row_number() OVER () FROM t GROUP BY g ORDER BY g DESC",
    "SELECT max(x), id, row_number() OVER (ORDER BY id) FROM t GROUP BY g",
    "SELECT x FROM t ORDER BY sum(count(*)) OVER ()",
    "SELECT count(*) FROM t ORDER BY sum(count(*)) OVER ()",
    "SELECT id, x + row_number() OVER (ORDER BY x), CASE WHEN rank() OVER (ORDER BY x) > 2 THEN 'a' ELSE 'b' END FROM t",
    "SELECT DISTINCT sum(x) OVER (PARTITION BY g) FROM t",
    "SELECT DISTINCT rank() OVER (ORDER BY x) FROM t ORDER BY 1 DESC",
    "SELECT id, row_number() OVER (ORDER BY x, id) FROM t LIMIT 3",
    "SELECT id, row_number() OVER (ORDER BY x, id) FROM t LIMIT 3 OFFSET 2",
    "SELECT id, row_number() OVER (ORDER BY x, id) FROM t ORDER BY id LIMIT 3",
    "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY x) r FROM t) WHERE r = 1",
    "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY x) r, g FROM t) WHERE g = 'a'",
    "WITH w AS (SELECT id, lag(x) OVER (ORDER BY id) p FROM t) SELECT * FROM w WHERE p IS NOT NULL",
    "SELECT id, (SELECT sum(b.x) OVER (ORDER BY b.id) FROM t b WHERE b.id <= t.id ORDER BY b.id DESC LIMIT 1) FROM t",
    "SELECT id, (SELECT sum(b.x + t.id) OVER () FROM t b LIMIT 1) FROM t",
    "SELECT id, (SELECT sum(t.x) OVER ()) FROM t",
    "SELECT id, (SELECT count(*) OVER (PARTITION BY t.x ORDER BY b.id) FROM t b ORDER BY b.id DESC LIMIT 1) FROM t",
    "SELECT id, sum((SELECT count(*) FROM t b WHERE b.x = t.x)) OVER (ORDER BY id) FROM t",
    "SELECT id, sum(x) OVER (ORDER BY (SELECT count(*) FROM t b WHERE b.x = t.x), id) FROM t",
    "SELECT id FROM t WHERE id IN (SELECT row_number() OVER (ORDER BY x) FROM t WHERE x > 3)",
    "SELECT EXISTS (SELECT row_number() OVER () FROM t)",
    "SELECT row_number() OVER (ORDER BY x) FROM t UNION ALL SELECT sum(x) OVER () FROM t",
    "SELECT row_number() OVER (ORDER BY x) FROM t UNION SELECT sum(x) OVER () FROM t",
    "SELECT row_number() OVER (ORDER BY x) FROM t UNION SELECT 100 ORDER BY 1 DESC",
    "SELECT row_number() OVER (ORDER BY x) AS a FROM t UNION SELECT 100 ORDER BY a DESC",
    "SELECT row_number() OVER (ORDER BY x) FROM t UNION SELECT 100 ORDER BY row_number() OVER (ORDER BY x)",
    "CREATE VIEW v AS SELECT id, rank() OVER w AS r FROM t WINDOW w AS (ORDER BY x); SELECT * FROM v WHERE r > 2; SELECT * FROM v ORDER BY id",
    "CREATE TABLE u AS SELECT id, sum(x) OVER (ORDER BY id) s, row_number() OVER () FROM t; SELECT * FROM u; SELECT sql FROM sqlite_schema WHERE name='u'",
    "INSERT INTO t(id,x) SELECT id+100, row_number() OVER (ORDER BY id DESC) FROM t; SELECT id,x FROM t",
    "INSERT INTO t VALUES (row_number() OVER (), 1,1,1,1)",
    "INSERT INTO t(id) VALUES (50),(row_number() OVER () + 60); SELECT id FROM t",
    "VALUES (row_number() OVER ())",
    "VALUES (1),(row_number() OVER ())",
    "VALUES (row_number() OVER ()),(2)",
    "SELECT row_number() OVER ()",
    "UPDATE t SET x = row_number() OVER ()",
    "UPDATE t SET x = (SELECT row_number() OVER ()); SELECT x FROM t",
    "UPDATE t SET x = 1 WHERE row_number() OVER () = 1",
    "DELETE FROM t WHERE sum(x) OVER () = 1",
    "DELETE FROM t WHERE id = 1 RETURNING row_number() OVER ()",
    "INSERT INTO t(id) VALUES(77) RETURNING sum(x) OVER ()",
    "CREATE TABLE c(a CHECK (row_number() OVER () > 1))",
    "CREATE TABLE c(a DEFAULT (row_number() OVER ()))",
    "CREATE TABLE c(a CHECK (sum(a) OVER () > 1))",
    "CREATE INDEX i ON t(row_number() OVER ())",
    "CREATE INDEX i ON t(sum(x) OVER ())",
    "CREATE INDEX i ON t(x) WHERE row_number() OVER () > 1",
    "SELECT * FROM t a JOIN t b ON row_number() OVER () = 1",
    "SELECT 1 LIMIT row_number() OVER ()",
    "SELECT 1 LIMIT sum(1) OVER ()",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+row_number() OVER () FROM c WHERE n<5) SELECT * FROM c",
    "WITH RECURSIVE c(n) AS (SELECT row_number() OVER () FROM t UNION ALL SELECT n+10 FROM c WHERE n<30) SELECT * FROM c",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<5) SELECT n, sum(n) OVER (ORDER BY n) FROM c",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+(SELECT max(rn) FROM (SELECT row_number() OVER () rn FROM t)) FROM c WHERE n<30) SELECT n FROM c",
    "SELECT g, count(*) FILTER (WHERE x > 3) FROM t GROUP BY g",
    "SELECT typeof(sum(CASE WHEN id=2 THEN 1.5 ELSE id END) OVER (ORDER BY id ROWS CURRENT ROW)) FROM t",
    "SELECT id FROM t GROUP BY id HAVING sum(x) > 3 ORDER BY rank() OVER (ORDER BY sum(x) DESC), id",
    "SELECT t.id, b.id, row_number() OVER (PARTITION BY t.g ORDER BY t.id, b.id) FROM t JOIN t b ON b.x = t.x ORDER BY 1,2",
    "SELECT t.id, b.id, count(b.id) OVER (PARTITION BY t.g) FROM t LEFT JOIN t b ON b.id = t.x ORDER BY 1,2",
    "SELECT (SELECT row_number() OVER (ORDER BY r) FROM t LIMIT 1), x FROM t",
    "SELECT row_number() OVER (ORDER BY id) AS a, (SELECT a) FROM t",
    "SELECT (SELECT max(q) FROM (SELECT row_number() OVER (ORDER BY b.id) + t.id AS q FROM t b)) FROM t",
    "SELECT sum(sum(x)) OVER (), sum(x) FROM t",
    "SELECT g, sum(x) OVER (PARTITION BY g) FROM t GROUP BY g",
    "SELECT g, max(x), lag(max(x)) OVER (ORDER BY g), id FROM t GROUP BY g",
    "SELECT rank() OVER (ORDER BY count(*)), g FROM t GROUP BY g ORDER BY 1, 2",
    "CREATE VIEW v AS SELECT id, row_number() OVER (ORDER BY x) AS n FROM t; SELECT n FROM v WHERE id = 3; SELECT count(*) FROM v",
    "SELECT window FROM (SELECT 1 AS window)",
    "SELECT id over FROM t LIMIT 1",
    "SELECT filter FROM (SELECT 2 AS filter)",
    "SELECT * FROM t AS window LIMIT 1",
    "CREATE TABLE c(a DEFAULT (sum(1) OVER ()))",
    "CREATE TABLE c(a DEFAULT (abs(1) OVER ()))",
    "VALUES (row_number() OVER (), 1),(2,3),(4,5),(rank() OVER (), sum(7) OVER ())",
    "SELECT * FROM (VALUES (1),(row_number() OVER ())) ORDER BY 1",
    "VALUES (1, count(*) OVER ())",
    "SELECT 1 FROM t GROUP BY sum(x) OVER ()",
    "SELECT sum(x) OVER () + 1 FROM t GROUP BY 1",
    "INSERT INTO t SELECT * FROM (VALUES (100 + row_number() OVER (), 1,2,3,4)); SELECT * FROM t WHERE id > 50",
    "WITH w(a) AS (VALUES (row_number() OVER ()),(3)) SELECT a, sum(a) OVER (ORDER BY a DESC) FROM w",
];

/// Names in texts of the schema.
const TEXTS: &[&str] = &[
    "ALTER TABLE t RENAME COLUMN x TO y; SELECT sum(y) OVER (ORDER BY y) FROM t",
    "CREATE VIEW v AS SELECT sum(x) FILTER (WHERE x > 1) OVER (PARTITION BY g ORDER BY x ROWS 2 PRECEDING) AS a, rank() OVER w FROM t WINDOW w AS (ORDER BY x, r); ALTER TABLE t RENAME COLUMN x TO \"new x\"; SELECT sql FROM sqlite_schema WHERE name='v'; SELECT a FROM v",
    "CREATE VIEW v AS SELECT t.id FROM t WINDOW w AS (PARTITION BY x ORDER BY t.x); ALTER TABLE t RENAME COLUMN x TO y; SELECT sql FROM sqlite_schema WHERE name='v'",
    "CREATE VIEW v AS SELECT sum(t.x) OVER (w ORDER BY t.id) FROM t WINDOW w AS (PARTITION BY t.g); ALTER TABLE t RENAME TO tt; SELECT sql FROM sqlite_schema WHERE name='v'",
    "CREATE VIEW v AS SELECT sum(x) OVER (ORDER BY id) FROM t; ALTER TABLE t DROP COLUMN x",
];

#[test]
fn windows_are_what_they_are_in_sqlite() {
    each_same(WINDOWS);
}

#[test]
fn functions_take_what_they_take_in_sqlite() {
    each_same(FUNCTIONS);
}

#[test]
fn they_stand_where_they_may_in_sqlite() {
    each_same(PLACES);
}

#[test]
fn alter_table_knows_the_names_in_windows() {
    each_same(TEXTS);
}

#[test]
fn every_function_over_every_order() {
    let functions = [
        "row_number()",
        "rank()",
        "dense_rank()",
        "percent_rank()",
        "cume_dist()",
        "ntile(3)",
        "lag(x)",
        "lag(x, 2)",
        "lag(x, 2, 'd')",
        "lead(x)",
        "lead(x, 2, id)",
        "first_value(x)",
        "last_value(x)",
        "nth_value(x, 2)",
        "count(*)",
        "count(x)",
        "sum(x)",
        "sum(r)",
        "total(r)",
        "avg(r)",
        "avg(x)",
        "min(x)",
        "max(x)",
        "min(s)",
        "max(s)",
        "group_concat(x)",
        "group_concat(s, '-')",
        "string_agg(s, x)",
    ];
    let orders = [
        "",
        "ORDER BY x",
        "PARTITION BY g ORDER BY x",
        "PARTITION BY g",
        "ORDER BY s DESC",
        "PARTITION BY g ORDER BY x DESC, id",
        "ORDER BY x NULLS LAST",
        "ORDER BY x DESC NULLS FIRST",
        "PARTITION BY s ORDER BY r",
    ];
    let mut script = TABLE.to_owned();
    for function in functions {
        for order in orders {
            script += &format!("SELECT id, {function} OVER ({order}) FROM t;");
        }
    }
    same(&script);
}

/// The bounds of a frame, those that no frame has included.
const STARTS: [&str; 6] = [
    "UNBOUNDED PRECEDING",
    "2 PRECEDING",
    "1 PRECEDING",
    "CURRENT ROW",
    "1 FOLLOWING",
    "2 FOLLOWING",
];
const ENDS: [&str; 6] = [
    "2 PRECEDING",
    "1 PRECEDING",
    "CURRENT ROW",
    "1 FOLLOWING",
    "2 FOLLOWING",
    "UNBOUNDED FOLLOWING",
];
const EXCLUDED: [&str; 4] = ["", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES"];

#[test]
fn every_frame() {
    let calls = [
        "sum(x)",
        "sum(r)",
        "total(r)",
        "count(*)",
        "min(s)",
        "max(x)",
        "group_concat(id)",
        "group_concat(s, x)",
        "first_value(id)",
        "last_value(id)",
        "nth_value(id, 2)",
        "row_number()",
        "count(*) FILTER (WHERE x > 3)",
        "max(s) FILTER (WHERE x > 3)",
    ];
    let calls: Vec<String> = calls.iter().map(|call| format!("{call} OVER w")).collect();
    let calls = calls.join(", ");
    let mut script = TABLE.to_owned();
    for mode in ["ROWS", "RANGE", "GROUPS"] {
        for (start, end) in STARTS.iter().flat_map(|s| ENDS.iter().map(move |e| (s, e))) {
            for excluded in EXCLUDED {
                for order in ["PARTITION BY g ORDER BY x", "ORDER BY r DESC"] {
                    script += &format!(
                        "SELECT id, {calls} FROM t \
                         WINDOW w AS ({order} {mode} BETWEEN {start} AND {end} {excluded});"
                    );
                }
            }
        }
    }
    same(&script);
}

/// A table of values that like to be equal, NULL, or of another type.
fn random_table(random: &mut Random) -> String {
    let mut script = "CREATE TABLE t(id INTEGER PRIMARY KEY, g INTEGER, x, r REAL, \
        s TEXT COLLATE NOCASE);"
        .to_owned();
    for id in 0..=random.below(40) {
        let x = match random.below(8) {
            0 => "NULL".to_owned(),
            1 => format!("'{}'", random.pick(&["a", "B", "7", ""])),
            2 => format!("{}.5", random.below(9)),
            3 => format!("x'{:02x}'", random.below(3)),
            _ => (random.below(12) as i64 - 3).to_string(),
        };
        let r = match random.below(6) {
            0 => "NULL".to_owned(),
            1 => format!("{}e{}", random.below(1000), random.below(18)),
            _ => format!("{}.{}", random.below(20) as i64 - 9, random.below(1000)),
        };
        let s = *random.pick(&["NULL", "'a'", "'A'", "'b'", "'B'", "'c '", "''"]);
        let g = random.below(4);
        script += &format!("INSERT INTO t VALUES ({id}, {g}, {x}, {r}, {s});");
    }
    script
}

fn random_window(random: &mut Random) -> String {
    let partition = *random.pick(&["", "PARTITION BY g", "PARTITION BY s", "PARTITION BY g, s"]);
    let terms = ["x", "r", "s", "g", "s COLLATE BINARY", "abs(r)", "id"];
    let count = random.below(3);
    let order: Vec<String> = (0..count)
        .map(|_| {
            let way = *random.pick(&["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]);
            format!("{}{way}", random.pick(&terms))
        })
        .collect();
    let order = match count {
        0 => String::new(),
        _ => format!("ORDER BY {}", order.join(", ")),
    };
    if random.below(4) == 0 {
        return format!("{partition} {order}");
    }
    let mode = *random.pick(&["ROWS", "RANGE", "GROUPS"]);
    let bound = |random: &mut Random, unbounded: &str, first: u64| {
        let offset = *random.pick(&["0", "1", "2", "3", "5"]);
        // Distances that are no integers are for RANGE only.
        let offset = match mode {
            "RANGE" if random.below(3) == 0 => "1.5",
            _ => offset,
        };
        let kind = first + random.below(4 - first);
        let bound = match kind {
            0 => unbounded.to_owned(),
            1 => format!("{offset} PRECEDING"),
            2 => "CURRENT ROW".to_owned(),
            _ => format!("{offset} FOLLOWING"),
        };
        (bound, kind)
    };
    let (start, kind) = bound(random, "UNBOUNDED PRECEDING", 0);
    let (end, _) = match random.below(4) {
        0 => ("UNBOUNDED FOLLOWING".to_owned(), 0),
        _ => bound(random, "", kind.max(1)),
    };
    let excluded = match random.below(3) {
        0 => *random.pick(&EXCLUDED),
        _ => "",
    };
    format!("{partition} {order} {mode} BETWEEN {start} AND {end} {excluded}")
}

fn random_call(random: &mut Random) -> String {
    let column = *random.pick(&["x", "r", "s", "id", "g", "r + 1", "x COLLATE NOCASE"]);
    let number = *random.pick(&["r", "g", "id", "r * 3", "length(s)", "x"]);
    let filter = *random.pick(&[
        "",
        "",
        "",
        " FILTER (WHERE g <> 1)",
        " FILTER (WHERE r > 0)",
    ]);
    match random.below(14) {
        0 => "row_number()".to_owned(),
        1 => random
            .pick(&["rank()", "dense_rank()", "percent_rank()", "cume_dist()"])
            .to_string(),
        2 => format!("ntile({})", 1 + random.below(5)),
        3 => format!("lag({column}, {}, 'none')", random.below(4)),
        4 => format!("lead({column}, {})", random.below(4)),
        5 => format!("first_value({column})"),
        6 => format!("last_value({column})"),
        7 => format!("nth_value({column}, {})", 1 + random.below(3)),
        8 => format!("count({column}){filter}"),
        9 | 10 => {
            let name = *random.pick(&["sum", "total", "avg"]);
            format!("{name}({number}){filter}")
        }
        11 | 12 => format!("{}({column}){filter}", random.pick(&["min", "max"])),
        _ => {
            // Of empty texts in moving frames SQLite loses the separators.
            let column = *random.pick(&["id", "r", "nullif(s, '')"]);
            let separator = *random.pick(&["','", "s", "id"]);
            format!("group_concat({column}, {separator}){filter}")
        }
    }
}

#[test]
fn random_windows_answer_as_sqlite_does() {
    let tables = std::env::var("FULGURITE_WINDOW_TABLES").map_or(60, |n| n.parse().unwrap());
    let seed = std::env::var("FULGURITE_WINDOW_SEED").map_or(20_261_127, |n| n.parse().unwrap());
    println!("seed {seed}");
    let mut random = Random(seed);
    for _ in 0..tables {
        let mut script = random_table(&mut random);
        for _ in 0..25 {
            let (first, second) = (random_window(&mut random), random_window(&mut random));
            let calls = |random: &mut Random, name: &str| -> Vec<String> {
                let count = 1 + random.below(3);
                (0..count)
                    .map(|_| format!("{} OVER {name}", random_call(random)))
                    .collect()
            };
            let mut columns = calls(&mut random, "v");
            if random.below(3) == 0 {
                columns.extend(calls(&mut random, "w"));
            }
            let tail = *random.pick(&["", "", "", " ORDER BY id DESC", " LIMIT 5"]);
            script += &format!(
                "SELECT id, {} FROM t WINDOW v AS ({first}), w AS ({second}){tail};",
                columns.join(", ")
            );
        }
        same(&script);
    }
}

/// Rows come out as they come in where nothing ahead is asked for: of an endless input
/// the first ones are there at once.
#[test]
fn running_frames_stream() {
    let endless = "WITH c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)";
    let calls = "row_number() OVER (), sum(n) OVER (ROWS UNBOUNDED PRECEDING), \
        avg(n) OVER (ROWS 3 PRECEDING), max(n) OVER (ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING), \
        lag(n, 2) OVER (), lead(n) OVER (), first_value(n) OVER (ROWS 1 PRECEDING)";
    let rows = must(
        &session(),
        &format!("{endless} SELECT n, {calls} FROM c LIMIT 3"),
    );
    let expected = [
        "1,1,1,1.0,3,NULL,2,1",
        "2,2,3,1.5,4,NULL,3,1",
        "3,3,6,2.0,5,1,4,2",
    ];
    assert_eq!(rows, expected);
}

/// An index in the order of a window spares its sort, and the window's order that of the
/// statement.
#[test]
fn orders_are_used_again() {
    let session = session();
    must(
        &session,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, g, x); CREATE INDEX i ON t(g, x)",
    );
    let sorts = |sql: &str| {
        let plan = must(&session, &format!("EXPLAIN {sql}")).join("\n");
        assert!(plan.contains("WINDOW"), "{plan}");
        plan.matches("SORT").count()
    };
    assert_eq!(
        sorts("SELECT g, row_number() OVER (PARTITION BY g ORDER BY x) FROM t"),
        0
    );
    assert_eq!(
        sorts("SELECT id, sum(x) OVER (ORDER BY id) FROM t ORDER BY id LIMIT 3"),
        0
    );
    assert_eq!(
        sorts("SELECT id, rank() OVER (ORDER BY x + 1) FROM t ORDER BY x + 1"),
        1
    );
    let both = "SELECT rank() OVER w, sum(id) OVER (w ROWS 2 PRECEDING), \
        count(*) OVER (PARTITION BY x) FROM t WINDOW w AS (PARTITION BY x ORDER BY id)";
    assert_eq!(sorts(both), 2);
    assert_eq!(
        sorts("SELECT g, x, lag(x) OVER (ORDER BY x DESC) FROM t ORDER BY g"),
        2
    );
}

#[test]
fn explain_shows_windows() {
    let session = session();
    must(&session, "CREATE TABLE t(id INTEGER PRIMARY KEY, g, x)");
    let sql = "EXPLAIN SELECT sum(x) FILTER (WHERE x > 1) OVER (PARTITION BY g ORDER BY id \
        ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES), rank() OVER (ORDER BY g) \
        FROM t";
    let plan = must(&session, sql).join("\n");
    for part in [
        "WINDOW rank() ORDER BY",
        "ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES PARTITION BY",
        "FILTER",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
}

/// Frames that leave rows out are gone through anew for each row.
#[test]
fn an_interrupt_ends_a_statement_over_windows() {
    let session = session();
    must(
        &session,
        "CREATE TABLE t(x); INSERT INTO t WITH c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c
         WHERE n < 20000) SELECT n * 0.5 FROM c",
    );
    for frame in [
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
        "ROWS 5 PRECEDING",
    ] {
        let sql = format!("SELECT sum(x) OVER ({frame}) FROM t");
        let mut statement = prepare(&session, &sql);
        assert_eq!(statement.step().unwrap(), Step::Row);
        session.interrupt_handle().interrupt();
        support::ends_interrupted(&mut statement);
    }
}

/// Each order has a sort of its own, below the one before.
#[test]
fn there_may_be_many_windows() {
    let session = session();
    must(&session, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2)");
    let columns: Vec<String> = (0..300)
        .map(|n| format!("rank() OVER (ORDER BY x % {})", n + 2))
        .collect();
    let sql = format!("SELECT {} FROM t", columns.join(", "));
    assert_eq!(must(&session, &sql).len(), 2);
    let windows: Vec<String> = (0..300).map(|n| format!("w{} AS (w{n})", n + 1)).collect();
    let sql = format!(
        "SELECT max(x) OVER w300 FROM t WINDOW w0 AS (PARTITION BY x), {}",
        windows.join(", ")
    );
    assert_eq!(must(&session, &sql), ["1", "2"]);
}
