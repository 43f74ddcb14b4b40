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

/// What LIMIT 0 skips is not asked for. An OFFSET that is no integer, such as that of a
/// parameter that nobody bound, was an error all the same.
#[test]
fn no_rows_are_no_rows_whatever_is_skipped() {
    with("SELECT id FROM o LIMIT 0 OFFSET NULL");
    with("SELECT id FROM o ORDER BY sum LIMIT 0 OFFSET 'x'");
    with("SELECT uid FROM o UNION SELECT 3 ORDER BY 1 LIMIT (SELECT 0) OFFSET NULL");
    with("SELECT (SELECT id FROM o LIMIT 0 OFFSET NULL), 1");
    with("SELECT id FROM o ORDER BY id LIMIT -1 OFFSET NULL");
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

const ARMS: &str = "
CREATE TABLE a(id INTEGER PRIMARY KEY, x INT, s TEXT, n TEXT COLLATE NOCASE, j, r REAL); CREATE INDEX ax ON a(x); CREATE INDEX asn ON a(s);
CREATE TABLE b(id INTEGER PRIMARY KEY, x TEXT, s TEXT, n TEXT, j, r); CREATE INDEX bx ON b(x);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) INSERT INTO a SELECT i, i % 20, 's' || i % 30, substr('aAbB', 1 + i % 4, 1), json_array(i, i % 3), i / 4.0 FROM n;
INSERT INTO b SELECT id + 150, x || '', s, upper(n), json_object('k', x), x FROM a WHERE id % 2; INSERT INTO a VALUES (1000, NULL, NULL, NULL, NULL, NULL);
CREATE VIEW u AS SELECT * FROM a UNION ALL SELECT * FROM b;
CREATE VIEW k AS SELECT 'a' AS kind, id, x, s FROM a WHERE x > 3 UNION ALL SELECT 'b', id, x, s FROM b UNION ALL SELECT 'c', max(id), x, max(s) FROM a GROUP BY x UNION ALL VALUES ('d', 5, 5, '5'), ('e', NULL, NULL, NULL);
CREATE VIEW f AS SELECT id, x, abs(x) AS y, random() AS z FROM a UNION ALL SELECT id, x, length(s), 1 FROM b;
CREATE VIEW d AS SELECT DISTINCT x, n FROM a UNION ALL SELECT x, n FROM b LIMIT 40;
CREATE VIEW e AS SELECT x FROM a UNION SELECT x FROM b UNION ALL SELECT s FROM a;
CREATE VIEW g AS SELECT x, sum(id) AS y, count(*) AS c, row_number() OVER (ORDER BY x) AS w FROM a GROUP BY x;";

/// All rows of a view that is a UNION ALL were made, with all their columns, before a
/// condition was asked.
#[test]
fn conditions_on_a_union_all_are_asked_in_its_selects() {
    let conditions = [
        "x = 5",
        "x = '5'",
        "x >= '7' AND id < 200",
        "x IS NULL",
        "x IN (3, '4', 5)",
        "x BETWEEN 3 AND 6 OR s = 's9'",
        "n = 'A'",
        "n = 'a' COLLATE NOCASE",
        "s LIKE 's2%'",
        "x IN (SELECT x FROM a WHERE id < 9)",
        "EXISTS (SELECT 1 FROM b q WHERE q.x = u.x)",
        "u.x = (SELECT max(x) FROM a q WHERE q.s = u.s)",
        "json_extract(j, '$[1]') = 2",
        "abs(id) > 290",
        "r > 2.5",
        "x || '' = '5'",
        "likely(x = 5)",
        "1",
        "0",
        "typeof(x) = 'text'",
        "+x = 5",
        "CASE WHEN x = 5 THEN s = 's5' ELSE n = 'B' END",
        "json_array(j) = '[\"[1,1]\"]'",
    ];
    let joined = "(SELECT id, x, s, n, j, r FROM a WHERE x < 15 UNION ALL SELECT id, x, s, n, j, r FROM b UNION ALL SELECT id + 5, x + 1, s || '', n, j, r FROM a) u";
    let mut queries = String::from(ARMS);
    for condition in conditions {
        for from in ["u", joined] {
            let rest = format!("FROM {from} WHERE {condition}");
            queries.push_str(&format!(
                "SELECT count(*) {rest}; SELECT max(x), min(s), count(n) {rest};
                 SELECT id, x, s {rest} ORDER BY id, typeof(x), x, s;
                 SELECT typeof(x), count(*) {rest} GROUP BY 1 ORDER BY 1;"
            ));
        }
    }
    for condition in [
        "kind = 'a'",
        "kind = 'c' AND x = 5",
        "kind IN ('b', 'd') AND id > 4",
        "x = 5",
        "x = '5'",
        "kind = 'z'",
        "s > 's5'",
        "id IS NULL",
        "x IS NULL",
        "s IS NOT NULL AND kind = 'c'",
    ] {
        let rest = format!("FROM k WHERE {condition}");
        queries.push_str(&format!(
            "SELECT * {rest} ORDER BY kind, id, x, s; SELECT count(*), min(id) {rest};
             SELECT kind, count(*) {rest} GROUP BY kind;"
        ));
    }
    same(&queries);
    same(&format!(
        "{ARMS}SELECT count(*) FROM f WHERE x = 5; SELECT id, y FROM f WHERE y > 3 ORDER BY id, y; SELECT count(*) FROM f WHERE z = 1;
SELECT count(*) FROM d; SELECT count(*) FROM d WHERE n = 'a'; SELECT count(*) FROM e; SELECT x FROM e WHERE x > 's' ORDER BY 1; SELECT x FROM e WHERE x = 5; SELECT c FROM g WHERE x > 3; SELECT w FROM g; SELECT count(*) FROM g; SELECT x FROM g WHERE c > 3;
SELECT (SELECT count(*) FROM u WHERE u.x = a.x) FROM a ORDER BY id; SELECT a.id, u.id FROM a JOIN u ON u.x = a.x WHERE a.id < 20 AND u.id < 100 ORDER BY 1, 2; SELECT a.id, u.id FROM a LEFT JOIN u ON u.x = a.x AND u.id > 440 ORDER BY 1, 2;
SELECT * FROM u ORDER BY id, x LIMIT 5; SELECT id FROM u LIMIT 3; SELECT DISTINCT x FROM u ORDER BY typeof(x), x; SELECT s FROM (SELECT * FROM u ORDER BY id DESC LIMIT 7) WHERE x > 3 ORDER BY 1;
SELECT s FROM (SELECT id, x, s FROM a UNION ALL SELECT id, x, s FROM b ORDER BY 1 DESC LIMIT 30) WHERE x > 3 ORDER BY 1; SELECT sum(y) FROM (SELECT x, abs(id) AS y FROM u);
SELECT max(x) OVER (PARTITION BY s) FROM (SELECT * FROM u WHERE id < 30) ORDER BY 1; SELECT x.id FROM u x, u y WHERE x.id = y.id AND y.s = 's5' ORDER BY 1;
WITH c AS (SELECT * FROM u) SELECT (SELECT max(id) FROM c WHERE c.x = 5), (SELECT count(*) FROM c); SELECT id FROM a WHERE x IN (SELECT x FROM u WHERE s = 's5') ORDER BY id;
WITH RECURSIVE t(i, p) AS (SELECT id, x FROM u WHERE id = 7 UNION ALL SELECT i + 1, p FROM t WHERE i < 12) SELECT i FROM t; SELECT abs(-9223372036854775808 + x * 0) FROM u WHERE x = 5; 
SELECT 1 FROM u GROUP BY x HAVING count(*) > 8; SELECT json_group_array(j) FROM (SELECT json(j) AS j, id FROM a UNION ALL SELECT j, id FROM b) WHERE id = 160; SELECT json_array(j) FROM (SELECT json(j) AS j, id FROM a UNION ALL SELECT j, id FROM b) WHERE json_array(j) IS NOT NULL AND id = 160;"
    ));
    let session = support::session();
    support::must(&session, ARMS);
    let plan = |query: &str| {
        let shown = support::must(&session, &format!("EXPLAIN QUERY PLAN {query}"));
        shown.join("\n")
    };
    let shown = plan("SELECT x FROM u WHERE s = 's5'");
    for searched in ["a USING INDEX asn (s='s5') [x, s]", "SCAN b [x, s]"] {
        assert!(shown.contains(searched), "{shown}");
    }
    let shown = plan("SELECT count(*) FROM u");
    assert!(
        shown.contains("SCAN a []") || shown.contains("USING COVERING"),
        "{shown}"
    );
    let shown = plan("SELECT z FROM f WHERE x = 5");
    assert!(shown.contains("SCAN a ["), "{shown}");
}

/// They were taken in any number, and planned for seconds.
#[test]
fn lists_are_as_long_as_in_sqlite() {
    const TABLE: &str = "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2);";
    for terms in [2000, 2001] {
        let list = |term: &str| vec![term; terms].join(",");
        let (a, one) = (list("a"), list("1"));
        for sql in [
            format!("SELECT a FROM t ORDER BY {a}"),
            format!("SELECT a FROM t ORDER BY nosuch, {a}"),
            format!("SELECT a FROM t GROUP BY {a}"),
            format!("SELECT a FROM t UNION SELECT b FROM t ORDER BY {one}"),
            format!("SELECT count(*) OVER (ORDER BY {a}) FROM t"),
            format!("SELECT count(*) OVER (PARTITION BY {a}) FROM t"),
            format!("UPDATE t SET {}", list("a = 1")),
            format!("UPDATE t SET ({a}) = ({one})"),
            format!("CREATE INDEX i ON t({a}); INSERT INTO t VALUES (3, 4)"),
            format!("CREATE INDEX i ON nosuch({a})"),
            format!("CREATE TABLE u(a, UNIQUE ({a}))"),
            format!("CREATE TABLE u(a, PRIMARY KEY ({a}))"),
        ] {
            same(&format!("{TABLE} {sql}"));
        }
    }
}

/// An order was sought for as many joins as there are subqueries, in the cube of their number.
#[test]
fn many_scalar_subqueries_are_planned_in_time() {
    let subqueries: Vec<String> = (0..1500)
        .map(|at| format!("(SELECT y FROM p WHERE x = b + {at})"))
        .collect();
    let sql = format!("SELECT {} FROM t", subqueries.join(","));
    let tables = "CREATE TABLE t(a, b); CREATE TABLE p(x UNIQUE, y);
        INSERT INTO t VALUES (1, 2), (2, 900); INSERT INTO p VALUES (2, 20), (1000, 30)";
    same(&format!("{tables}; {sql}"));
    let session = support::session();
    support::must(&session, tables);
    let plan = support::run(&session, &format!("EXPLAIN QUERY PLAN {sql}"));
    let joins = plan.iter().filter(|line| line.contains("SINGLE JOIN"));
    assert_eq!(joins.count(), 64);
}
