//! Queries over one and several tables.

mod support;

use support::same;

const TABLES: &str = "
CREATE TABLE u(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, age INT);
CREATE TABLE o(id INTEGER PRIMARY KEY, uid INT, sum REAL, note);
CREATE INDEX ou ON o(uid);
INSERT INTO u VALUES (1, 'Ann', 30), (2, 'bob', NULL), (3, 'ANN', 41), (4, 'Cy', 30), (5, NULL, 7);
INSERT INTO o VALUES (1, 1, 10.5, 'a'), (2, 1, 2, NULL), (3, 2, NULL, 'c'), (4, 9, 4, x'00'), (5, 4, 1e3, '1'), (6, 4, 1, 1), (7, NULL, 2, 1.0);
";

fn with(sql: &str) {
    same(&format!("{TABLES}{sql}"));
}

#[test]
fn joins() {
    with("SELECT u.id, o.id FROM u JOIN o ON o.uid = u.id ORDER BY 1, 2");
    with("SELECT u.id, o.id FROM u LEFT JOIN o ON o.uid = u.id ORDER BY 1, 2");
    with(
        "SELECT u.id, o.id FROM u LEFT JOIN o ON o.uid = u.id AND o.sum > 5 WHERE u.age IS NOT NULL ORDER BY 1, 2",
    );
    with("SELECT u.id, o.id FROM o LEFT JOIN u ON u.id = o.uid ORDER BY o.id");
    with("SELECT a.id, b.id FROM u a, u b WHERE a.name = b.name AND a.id < b.id ORDER BY 1, 2");
    with("SELECT a.id, b.id FROM o a, o b WHERE a.note = b.note ORDER BY 1, 2");
    with(
        "SELECT u.id, o.id, p.id FROM u JOIN o ON o.uid = u.id JOIN o p ON p.sum < o.sum ORDER BY 1, 2, 3",
    );
    with("SELECT count(*) FROM u, o");
    with("SELECT u.id FROM u WHERE EXISTS (SELECT 1 FROM o WHERE o.uid = u.id) ORDER BY 1");
    with("SELECT u.id FROM u WHERE u.id NOT IN (SELECT uid FROM o) ORDER BY 1");
    with("SELECT u.id FROM u WHERE u.id IN (SELECT uid FROM o WHERE sum > 3) ORDER BY 1");
    with("SELECT u.id, (SELECT max(sum) FROM o WHERE o.uid = u.id) FROM u ORDER BY 1");
}

#[test]
fn groups() {
    with(
        "SELECT u.id, u.name, sum(o.sum), count(o.id), count(*) FROM u LEFT JOIN o ON o.uid = u.id GROUP BY u.id, u.name ORDER BY u.id",
    );
    with("SELECT lower(name), count(*), min(id), max(id) FROM u GROUP BY name ORDER BY name");
    with("SELECT age, group_concat(name, '/') FROM u GROUP BY age ORDER BY age");
    with("SELECT age, count(*) FROM u GROUP BY age HAVING count(*) > 1");
    with(
        "SELECT count(*), sum(sum), avg(sum), total(sum), min(sum), max(sum) FROM o WHERE id > 100",
    );
    with("SELECT sum(id), typeof(sum(id)), sum(sum), typeof(sum(sum)) FROM o");
    with("SELECT count(DISTINCT age), sum(DISTINCT age) FROM u");
    with("SELECT count(*) FILTER (WHERE age > 20), sum(id) FILTER (WHERE name IS NULL) FROM u");
    with("SELECT max(age), name FROM u");
    with("SELECT min(sum), note, id FROM o");
    with("SELECT uid, max(sum), note FROM o GROUP BY uid ORDER BY uid");
    with("SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)");
    with("SELECT note, count(*) FROM o GROUP BY note ORDER BY note");
    with("SELECT DISTINCT note FROM o ORDER BY note");
    with("SELECT group_concat(name, ',' ORDER BY id DESC) FROM u");
}

/// Comparisons, CASE and others were not found among the result columns.
#[test]
fn a_compound_is_ordered_by_what_its_columns_are_written_as() {
    for column in [
        "age > 20",
        "age BETWEEN 1 AND 30",
        "age NOT IN (30, 7)",
        "CASE age WHEN 30 THEN 2 END",
        "CAST(age AS TEXT)",
        "NOT name LIKE 'a%'",
        "age IS NULL AND name",
        "~age",
        "count(age) FILTER (WHERE id > 1)",
        "group_concat(name ORDER BY id)",
    ] {
        with(&format!(
            "SELECT {column} FROM u UNION ALL SELECT sum FROM o ORDER BY {column}; SELECT {column} FROM u UNION ALL SELECT sum FROM o ORDER BY ({column}) + 1"
        ));
    }
    with("SELECT count(DISTINCT age) FROM u UNION ALL SELECT 1 ORDER BY count(age)");
    with("SELECT age NOT IN (7) FROM u UNION SELECT 9 ORDER BY NOT age IN (7)");
}

#[test]
fn orders_and_limits() {
    with("SELECT id FROM u ORDER BY age, id DESC");
    with("SELECT id FROM u ORDER BY age DESC, name");
    with("SELECT id FROM u ORDER BY age NULLS LAST, id");
    with("SELECT id FROM u ORDER BY age DESC NULLS FIRST, id");
    with("SELECT id, name FROM u ORDER BY name, id");
    with("SELECT id, name FROM u ORDER BY name COLLATE BINARY, id");
    with("SELECT id FROM o ORDER BY note, id");
    with("SELECT id FROM o ORDER BY sum LIMIT 3");
    with("SELECT id FROM o ORDER BY sum LIMIT 2 OFFSET 3");
    with("SELECT id FROM o ORDER BY id LIMIT -1 OFFSET 5");
    with("SELECT id FROM o ORDER BY id LIMIT 0");
    with("SELECT id FROM o ORDER BY id LIMIT '2'");
    with("SELECT id FROM o ORDER BY id LIMIT 'x'");
    with("SELECT id FROM o ORDER BY id LIMIT NULL");
    with("SELECT id FROM o ORDER BY id LIMIT 1.5");
}

#[test]
fn compounds() {
    with("SELECT id FROM u UNION SELECT uid FROM o ORDER BY 1");
    with("SELECT id FROM u UNION ALL SELECT uid FROM o ORDER BY 1");
    with("SELECT id FROM u INTERSECT SELECT uid FROM o ORDER BY 1");
    with("SELECT id FROM u EXCEPT SELECT uid FROM o ORDER BY 1");
    with("SELECT note FROM o UNION SELECT name FROM u ORDER BY 1");
    with("SELECT 1 UNION SELECT 1 UNION SELECT '1'");
}

#[test]
fn conditions_narrow_left_to_right() {
    with("SELECT id FROM u WHERE age > 20 AND name LIKE 'a%'");
    with("SELECT id FROM u WHERE age > 35 OR name = 'BOB' OR id = 5");
    with("SELECT id FROM u WHERE NOT (age > 35 OR name = 'BOB')");
    with("SELECT id FROM u WHERE age BETWEEN 7 AND 30");
    with("SELECT id FROM u WHERE age NOT BETWEEN 7 AND 30");
    with("SELECT id FROM o WHERE note IN ('a', 1, NULL)");
    with("SELECT id FROM o WHERE note NOT IN ('a', 1)");
    with("SELECT id FROM o WHERE uid IS NULL OR sum IS NULL");
    with("SELECT id, CASE WHEN age > 30 THEN 'old' WHEN age > 10 THEN 'mid' ELSE age END FROM u");
    with("SELECT id, coalesce(age, name, 'none'), iif(age > 30, 1, 0), nullif(age, 30) FROM u");
    with("SELECT id, abs(CASE id WHEN 3 THEN -9223372036854775807 - 1 ELSE id END) FROM u");
    with(
        "SELECT id + age, id * 9223372036854775807, age / 0, -age, ~age, age % 4, age || name FROM u",
    );
}

/// A column of a compound had an affinity only where all its SELECTs gave it the same.
#[test]
fn columns_of_compounds_have_an_affinity() {
    const TABLE: &str =
        "CREATE TABLE t(i INT, n NUMERIC, b TEXT, a); INSERT INTO t VALUES (5, 6, '5', '5');
        CREATE VIEW v AS SELECT i AS x FROM t UNION SELECT n FROM t;";
    for compound in [
        "SELECT i AS x FROM t UNION SELECT n FROM t",
        "SELECT i AS x FROM t UNION ALL SELECT 5",
        "SELECT NULL AS x UNION ALL SELECT i FROM t",
        "SELECT i AS x FROM t UNION ALL SELECT 'z'",
        "SELECT i AS x FROM t UNION SELECT b FROM t",
        "SELECT b AS x FROM t UNION ALL SELECT 'q'",
        "SELECT b AS x FROM t UNION SELECT a FROM t",
        "SELECT b AS x FROM t UNION SELECT 7",
        "SELECT i AS x FROM t INTERSECT SELECT b + 0 FROM t",
        "SELECT * FROM v",
        "WITH c(x) AS (VALUES (CAST(5 AS INT)), (6)) SELECT x FROM c",
    ] {
        same(&format!(
            "{TABLE} SELECT x = '5', x = 5, x IN ('5'), x < '6', x FROM ({compound}) ORDER BY x;
             SELECT '5' IN ({compound}), i IN ({compound}), b IN ({compound}) FROM t;
             SELECT count(*) FROM ({compound}) q JOIN t ON q.x = t.b"
        ));
    }
    same(&format!(
        "{TABLE} SELECT (SELECT i FROM t UNION SELECT n FROM t) = '5'"
    ));
}

/// What `likely()` gives compared as the column within it does.
#[test]
fn results_of_likely_are_no_columns() {
    with("SELECT likely(age) = '30', unlikely(id) = '1', '1' = likelihood(id, 0.5) FROM u");
    with("SELECT likely(name) = 'ANN', likely(name COLLATE NOCASE) = 'ANN', name = 'ANN' FROM u");
    with("SELECT id FROM u WHERE likely(age = '30') AND likely(id) = 1");
    with("SELECT 1 IN (likely(note)), likely(note) IN ('1') FROM o");
}

/// A column of a subquery or view without a collation of its own took the other side's; in
/// SQLite it is BINARY, as any column has a collation, and counts where it stands first.
#[test]
fn columns_of_subqueries_have_a_collation() {
    const TABLE: &str =
        "CREATE TABLE t(a TEXT COLLATE NOCASE, r TEXT COLLATE RTRIM, b); CREATE INDEX ta ON t(a);
         INSERT INTO t VALUES ('ABC', 'abc  ', 'abc');
         CREATE VIEW v AS SELECT lower(a) AS x, a AS y FROM t;";
    for (what, sql) in [
        ("a constant", "SELECT e = a, a = e FROM (SELECT 'abc' AS e, a FROM t)"),
        ("a rowid", "SELECT e = a FROM (SELECT rowid AS e, a FROM t)"),
        (
            "COLLATE within",
            "SELECT e = r, r = e FROM (SELECT b COLLATE NOCASE AS e, r FROM t);
             SELECT e = a, a = e FROM (SELECT 'abc' COLLATE RTRIM AS e, a FROM t)",
        ),
        (
            "a view",
            "SELECT * FROM v JOIN t ON x = a; SELECT * FROM v JOIN t ON a = x;
             SELECT x = y, y = x, x IN (SELECT a FROM t), y IN (SELECT x FROM v) FROM v",
        ),
        (
            "WITH",
            "WITH w(x) AS (SELECT 'abc') SELECT * FROM w JOIN t ON x = a;
             WITH w(x) AS (VALUES ('abc')) SELECT * FROM w, t WHERE x = a;
             WITH w(x) AS (VALUES ('abc')) SELECT * FROM w, t WHERE a = x",
        ),
        (
            "a compound",
            "SELECT e = a FROM (SELECT 'abc' AS e UNION ALL SELECT 'x') JOIN t;
             SELECT e = 'abc', 'abc' = e FROM (SELECT a AS e FROM t UNION ALL SELECT 'x');
             SELECT e = 'abc' FROM (SELECT 'x' AS e UNION ALL SELECT a FROM t);
             SELECT e = 'ABC' FROM (SELECT b AS e FROM t UNION SELECT a FROM t);
             SELECT DISTINCT e FROM (SELECT 'x' e UNION ALL SELECT a FROM t UNION ALL SELECT b FROM t);
             SELECT e, count(*) FROM (SELECT a e FROM t UNION ALL SELECT b FROM t) GROUP BY e;
             SELECT count(*) FROM (SELECT 'x' UNION SELECT a FROM t UNION SELECT b FROM t)",
        ),
        (
            "USING",
            "SELECT * FROM (SELECT 'abc' AS a) JOIN t USING (a);
             SELECT * FROM t JOIN (SELECT 'abc' AS a) USING (a);
             SELECT * FROM (SELECT lower(a) a FROM t) NATURAL JOIN t",
        ),
        (
            "other comparisons",
            "SELECT CASE e WHEN a THEN 1 ELSE 2 END, e IN (a), a IN (e), e BETWEEN a AND a,
                 (e, 1) = (a, 1), e IS a, max(e, a), min(e, a), nullif(e, a)
             FROM (SELECT 'abc' AS e, a FROM t)",
        ),
        (
            "outside",
            "SELECT x.e = t.a FROM t LEFT JOIN (SELECT 'abc' AS e) x ON 1;
             SELECT (SELECT e = t.a FROM (SELECT 'abc' AS e)) FROM t;
             SELECT (SELECT count(*) FROM t WHERE x.e = a) FROM (SELECT 'abc' AS e) x;
             SELECT m = a FROM (SELECT max(b) AS m FROM t) JOIN t;
             SELECT m = b FROM (SELECT max(a) AS m FROM t) JOIN t",
        ),
        (
            "UPDATE",
            "UPDATE t SET b = 1 FROM (SELECT 'abc' AS e) s WHERE s.e = t.a RETURNING b;
             UPDATE t SET b = 2 FROM (SELECT 'abc' AS e) s WHERE t.a = s.e RETURNING b",
        ),
    ] {
        println!("{what}");
        same(&format!("{TABLE} {sql}"));
    }
}

/// Names in double quotes that no column has are texts in an index, whatever has them where
/// its table is read.
#[test]
fn an_index_knows_nothing_of_the_query_around_it() {
    const TABLES: &str = "CREATE TABLE t(a); CREATE TABLE u(b, c); INSERT INTO u VALUES ('a', 1);
        CREATE INDEX i ON t(a) WHERE a > \"b\"; CREATE INDEX j ON t(a, a || \"c\");
        INSERT INTO t VALUES ('a'), ('b'), ('c');";
    same(&format!(
        "{TABLES} SELECT (SELECT max(a) FROM t WHERE a > 'b') FROM u, u AS w;
         SELECT (SELECT count(*) FROM t WHERE a > b) FROM u;
         SELECT (SELECT count(*) FROM t WHERE a || c = 'a1') FROM u"
    ));
}

#[test]
fn result_columns_do_not_know_each_others_names() {
    same(
        "CREATE TABLE t(a); INSERT INTO t VALUES (1); SELECT a AS x, x FROM t; SELECT 1 AS x, (SELECT x);
         SELECT a AS x, \"x\" FROM t; SELECT 2 AS a, a FROM t; SELECT a AS x FROM t WHERE x = 1 ORDER BY x + 1",
    );
}

/// Neither views nor common table expressions stand within one another, however long a
/// chain they make: its operators ran out of stack.
#[test]
fn chains_of_queries_need_no_large_stack() {
    let check = || {
        let mut chain = "WITH c0 AS (SELECT 1 AS x)".to_owned();
        for i in 1..1000 {
            let below = i - 1;
            chain += &format!(", c{i} AS (SELECT DISTINCT x + 1 AS x FROM c{below} LIMIT 5)");
        }
        let session = support::session();
        let rows = support::run(&session, &format!("{chain} SELECT x FROM c999"));
        assert_eq!(rows, ["1000"]);
        support::must(&session, "CREATE VIEW v0 AS SELECT 1 AS x");
        for i in 1..300 {
            let below = i - 1;
            let view = format!(
                "CREATE VIEW v{i} AS SELECT x + 1 AS x FROM v{below} GROUP BY x ORDER BY x LIMIT 2"
            );
            support::must(&session, &view);
        }
        assert_eq!(support::run(&session, "SELECT x FROM v299"), ["300"]);
    };
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
    small.expect("thread").join().expect("no overflow");
}

/// Only aggregates have rows to order. The order was passed over.
#[test]
fn an_order_within_a_call_is_for_aggregates() {
    same(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (2, 1);
         SELECT abs(a ORDER BY a) FROM t; SELECT max(a, b ORDER BY a) FROM t;
         SELECT max(a ORDER BY b) FROM t; SELECT coalesce(a, 1 ORDER BY a) FROM t;
         SELECT count(*) FROM t WHERE abs(a ORDER BY b) > 1; SELECT abs(DISTINCT a ORDER BY a) FROM t;
         SELECT json_array(a ORDER BY a) FROM t; SELECT nope(a ORDER BY a) FROM t;
         SELECT abs(a, b ORDER BY a) FROM t; SELECT group_concat(a ORDER BY b) FROM t;
         CREATE TABLE u(a CHECK (abs(a ORDER BY a))); INSERT INTO t VALUES (abs(1 ORDER BY 2), 2)",
    );
}
