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

const ROWS: &str = "CREATE TABLE t(a, b, c TEXT COLLATE NOCASE, d INT);
    INSERT INTO t VALUES (1, 2, 'x', 3), (1, 3, 'X', 4), (2, NULL, 'y', NULL), (NULL, NULL, 'z', 5);
    CREATE TABLE s(x, y, z TEXT COLLATE NOCASE); INSERT INTO s VALUES (1, 2, 'X'), (1, NULL, 'q'), (2, 5, 'Y');
    CREATE TABLE none(x, y); CREATE TABLE k(id INTEGER PRIMARY KEY, v, w UNIQUE);
    INSERT INTO k VALUES (1, 'a', 'b'), (2, 'c', 'd');";

/// Only lists were row values, and only in comparisons and before IN.
#[test]
fn subqueries_of_several_columns_are_row_values() {
    for (what, sql) in [
        (
            "comparisons",
            "SELECT (1, 2) = (SELECT 1, 2), (1, NULL) = (SELECT 1, 2), (2, NULL) = (SELECT 1, 2), (1, 2) <> (SELECT 1, NULL);
             SELECT (SELECT 1, 2) < (SELECT 1, 3), (SELECT 1, 2) <= (1, 2), (1, 2) > (SELECT 1, 1), (1, 2) >= (SELECT 1, 3);
             SELECT (1, NULL) IS (SELECT 1, NULL), (SELECT 1, 2) IS NOT (SELECT 1, 2), (SELECT 1, 2) IS NOT DISTINCT FROM (1, 2);
             SELECT (SELECT x, y FROM none) IS (NULL, NULL), (SELECT x, y FROM none) = (1, 2), (1, 2) < (SELECT * FROM none);
             SELECT (VALUES (1, 2), (3, 4)) = (1, 2), (1, 2) = (WITH q(a, b) AS (SELECT 1, 2) SELECT * FROM q);
             SELECT ((1, 2)) = (1, 2), (1, (SELECT 2)) = (1, 2), (1, 2) = (1, 2) = 1",
        ),
        (
            "columns",
            "SELECT a, (a, b) = (SELECT x, y FROM s WHERE s.x = t.a ORDER BY y DESC) FROM t;
             SELECT a FROM t WHERE (a, b) = (SELECT x, y FROM s); SELECT a FROM t WHERE (SELECT x, y FROM s WHERE s.x = t.a) IS (a, b);
             SELECT a FROM t WHERE (rowid, a) = (SELECT 2, 1); SELECT v FROM k WHERE (SELECT 'd', 'c') = (w, v);
             SELECT v FROM k WHERE (w, v) >= (SELECT 'c', 'c'); SELECT a FROM t WHERE NOT (a, b) = (SELECT 1, 2);
             SELECT a, x FROM t LEFT JOIN s ON (a, b) = (SELECT x, y) ORDER BY a, b;
             SELECT count(*) FROM t p, t q WHERE (p.a, p.b) < (SELECT q.a, q.b)",
        ),
        (
            "groups",
            "SELECT (count(*), max(a)) = (SELECT 4, 2), sum((a, b) = (SELECT t.d - 2, 2)) FROM t;
             SELECT a FROM t GROUP BY a HAVING (a, count(*)) = (SELECT 1, 2);
             SELECT (a, b) = (SELECT t.d - 2, 2) AS q, count(*) FROM t GROUP BY q;
             SELECT a FROM t ORDER BY (a, b) = (SELECT t.d - 2, 2) DESC, d",
        ),
        (
            "within others",
            "SELECT (SELECT (SELECT t.a, s.y) = (1, 2) FROM s LIMIT 1) FROM t;
             SELECT (SELECT max((t.a, s.y) = (SELECT t.a, s.x + 1)) FROM s) FROM t;
             SELECT a FROM t WHERE EXISTS (SELECT 1 FROM s WHERE (x, y) = (SELECT t.a, t.b));
             CREATE VIEW v AS SELECT a FROM t WHERE (a, b) = (SELECT x, y FROM s); SELECT * FROM v p JOIN v q",
        ),
        (
            "BETWEEN",
            "SELECT (1, 2) BETWEEN (1, 1) AND (1, 3), (SELECT 1, 2) NOT BETWEEN (1, 1) AND (SELECT 1, 3);
             SELECT (1, 2) BETWEEN (1, NULL) AND (0, 5), (1, 2) NOT BETWEEN (1, NULL) AND (3, NULL);
             SELECT a FROM t WHERE (a, b) BETWEEN (1, 2) AND (2, 0);
             SELECT count(*) FROM t p, t q WHERE (p.a, p.b) BETWEEN (SELECT q.a, q.b) AND (SELECT 9, 9)",
        ),
        (
            "CASE",
            "SELECT CASE (1, 2) WHEN (1, 3) THEN 'a' WHEN (SELECT 1, 2) THEN 'b' END;
             SELECT CASE (SELECT x, y FROM s WHERE s.x = t.a) WHEN (1, 2) THEN 'p' WHEN (SELECT t.a, t.b) THEN 'q' ELSE 'r' END FROM t;
             SELECT CASE (a, b) WHEN (SELECT x, y FROM s WHERE s.y = t.b) THEN 'p' WHEN (a, b) THEN 'q' END FROM t",
        ),
        (
            "IN",
            "SELECT (SELECT 1, 2) IN (VALUES (1, 2)), (SELECT 1, 2) NOT IN (SELECT x, y FROM s), (SELECT 1, 2) IN none, (SELECT 1, 2) IN ();
             SELECT (1, 2) IN ((SELECT 1, 2)), (1, NULL) IN (SELECT 1, 2), (1, 2) NOT IN ((1, 3), (1, NULL));
             SELECT a FROM t WHERE (SELECT t.a, t.b) IN (SELECT x, y FROM s);
             SELECT 2 IN ((SELECT a FROM t)), 3 NOT IN (((SELECT a FROM t))), 2 IN ((SELECT a FROM t), 7)",
        ),
        (
            "DELETE",
            "DELETE FROM k WHERE (w, v) = (SELECT 'd', 'c') RETURNING id;
             DELETE FROM t WHERE (a, b) = (SELECT x, y FROM s WHERE s.x = t.a) RETURNING a, b",
        ),
    ] {
        println!("{what}");
        same(&format!("{ROWS} {sql}"));
    }
}

/// Each pair has its own. A subquery hands on the affinities of its columns; their
/// collations only as the operand of BETWEEN, CASE and IN.
#[test]
fn pairs_of_row_values_have_affinities_and_collations() {
    same(&format!(
        "{ROWS} SELECT (c, d) = (SELECT 'X', '3'), (SELECT 'X', '3') = (c, d), (d, c) < (SELECT '4', 'Y') FROM t;
         SELECT (SELECT d, c FROM t) = ('3', 'x'), (SELECT d, c FROM t) = ('3', 'X'), ('X' COLLATE NOCASE, '3') = (SELECT c, d FROM t);
         SELECT (SELECT c, d FROM t) BETWEEN ('X', '3') AND ('X', 3), (SELECT c, d FROM t) <= ('X', 3);
         SELECT ('X', 3) BETWEEN (SELECT c, d FROM t) AND (SELECT c, d FROM t);
         SELECT CASE (SELECT c, d FROM t) WHEN ('X', '3') THEN 1 END, CASE ('X', 3) WHEN (SELECT c, d FROM t) THEN 1 ELSE 2 END;
         SELECT (SELECT c, d FROM t) IN (SELECT 'X', 3), ('X', '3') IN (SELECT c, d FROM t), (c, d) IN (('X', '3'), (1, 3)) FROM t;
         SELECT ('X', '3') IN ((c, d), (1, 2)), ('X', '3') IN ((1, 2), (c, d)) FROM t;
         SELECT (SELECT 'z' WHERE 0 UNION ALL SELECT d FROM t) = '3', (SELECT d FROM t UNION ALL SELECT 'z') = '3';
         SELECT '3' IN (SELECT 'z' WHERE 0 UNION ALL SELECT d FROM t), '3' IN (SELECT d FROM t UNION ALL SELECT 'z')"
    ));
}

#[test]
fn misused_row_values_are_refused() {
    for sql in [
        "(1, 2) = (SELECT 1, 2, 3)",
        "(SELECT 1, 2) = (SELECT 1)",
        "1 = (SELECT 1, 2)",
        "(SELECT 1, 2) < 1",
        "1 IS (SELECT 1, 2)",
        "(SELECT 1, 2)",
        "(SELECT 1, 2) IS NULL",
        "(1, 2) IS TRUE",
        "(SELECT 1, 2) + 1",
        "((1, 2), 3) = ((1, 2), 3)",
        "(1, (SELECT 2, 3)) = (1, 2)",
        "(1, 2) BETWEEN (1, 1) AND 3",
        "1 BETWEEN 0 AND (SELECT 1, 2)",
        "CASE (SELECT 1, 2) WHEN 1 THEN 1 END",
        "CASE 1 WHEN (SELECT 1, 2) THEN 1 END",
        "(1, 2) IN ((1, 2), 3)",
        "(1, 2) IN ((1, 2), (1, 2, 3))",
        "(1, 2) IN ((SELECT 1))",
        "1 IN ((SELECT 1, 2))",
        "(SELECT 1, 2) IN (SELECT 1)",
        "(SELECT 1, 2) IN (1, 2)",
        "(1, 2) IN ((1, (2, 3)))",
        "(1, 2) = (SELECT 1, 2, 3 FROM nowhere)",
        "abs((1, 2))",
        "(1, 2) = (SELECT nothing, 2)",
    ] {
        same(&format!("SELECT {sql}"));
    }
}

/// A scalar subquery had its column's collation; in SQLite it has none, only an affinity.
#[test]
fn subqueries_have_no_collation() {
    same(&format!(
        "{ROWS} SELECT (SELECT c FROM t) = 'X', 'X' = (SELECT c FROM t), (SELECT c FROM t) IN ('X'), (SELECT c FROM t) IS 'X';
         SELECT 'X' IN ((SELECT c FROM t)), (SELECT c FROM t) IN (SELECT 'X'), 'X' IN (SELECT (SELECT c FROM t));
         SELECT (SELECT c FROM t) BETWEEN 'X' AND 'X', 'X' BETWEEN (SELECT c FROM t) AND 'Y', CASE (SELECT c FROM t) WHEN 'X' THEN 1 END;
         SELECT (SELECT c COLLATE NOCASE FROM t) = 'X', (SELECT c FROM t) = z, z = (SELECT c FROM t), (SELECT c FROM t) COLLATE NOCASE = 'X' FROM s;
         SELECT (SELECT d FROM t) = '3', '3' IN ((SELECT d FROM t)), (SELECT d FROM t) BETWEEN '3' AND '3', +(SELECT d FROM t) = '3';
         SELECT ((SELECT c FROM t), 1) = ('X', 1); SELECT DISTINCT (SELECT c) FROM t; SELECT (SELECT c) x, count(*) FROM t GROUP BY x;
         SELECT (SELECT c) x, count(*) FROM t GROUP BY (SELECT c) ORDER BY 1; SELECT (SELECT c) x FROM t ORDER BY x, a DESC;
         SELECT min((SELECT c)), max((SELECT c)), count(DISTINCT (SELECT c)) FROM t;
         SELECT min((SELECT c), 'X'), max((SELECT c), 'X'), nullif((SELECT c), 'X') FROM t;
         SELECT (SELECT c) FROM t UNION SELECT 'Y' UNION SELECT z FROM s; SELECT * FROM (SELECT (SELECT c) AS q FROM t) WHERE q = 'X'"
    ));
}

/// Subqueries that nothing is handed in to ran for every row where they call random().
#[test]
fn volatile_subqueries_run_as_often_as_in_sqlite() {
    same(&format!(
        "{ROWS} SELECT count(DISTINCT q) FROM (SELECT (SELECT random()) AS q FROM t);
         SELECT count(DISTINCT q) FROM (SELECT (SELECT random() WHERE t.a IS t.a) AS q FROM t);
         SELECT (SELECT r, r FROM (SELECT random() AS r)) IN (SELECT q, q FROM (SELECT random() AS q)) FROM t;
         SELECT sum((SELECT r, t.d FROM (SELECT random() AS r)) BETWEEN (-9223372036854775808, 0) AND (9223372036854775807, 9)) FROM t;
         SELECT (random() % 1, 1) < (0, 2), (random() % 1, 1) IN ((0, 1)), CASE (random() % 1, 1) WHEN (0, 2) THEN 1 WHEN (0, 1) THEN 2 END"
    ));
}

/// A minus made a real of the smallest integer unless it stood right before the digits,
/// and an integer that there is none of from the same number in hexadecimal.
#[test]
fn a_minus_is_part_of_the_number_behind_it() {
    for number in [
        "-9223372036854775808",
        "- 9223372036854775808",
        "-(9223372036854775808)",
        "-+((9_223_372_036_854_775_808))",
        "+-9223372036854775808",
        "-(-9223372036854775808)",
        "- -9223372036854775808",
        "-9223372036854775809",
        "-0x10",
        "-0x8000000000000000",
        "- -0X8000000000000000",
        "-(+0x80000000_00000000)",
        "0x8000000000000000",
        "-0x8000000000000001",
        "-0x10000000000000000",
        "1 - 0x8000000000000000",
        "~0x8000000000000000",
        "-(5)",
        "- - 5",
        "-.5",
        "-(5.)",
        "-0.0",
        "-(0)",
        "-1e999",
    ] {
        same(&format!(
            "SELECT {number}, typeof({number}); CREATE TABLE t(a); INSERT INTO t VALUES (({number})); SELECT a FROM t WHERE a = {number}"
        ));
    }
    same(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 3), (2, 2); SELECT a FROM t ORDER BY -(+1); SELECT a FROM t ORDER BY +(+(2))",
    );
}

/// COLLATE behind TRUE made a number of it, and CAST to no type a blob.
#[test]
fn truth_has_no_collation_and_no_type_is_numeric() {
    same(
        "CREATE TABLE t(a, c COLLATE NOCASE); INSERT INTO t VALUES (2, 'x'), (0, '1'), (NULL, NULL);
         SELECT a IS TRUE COLLATE nocase, a IS NOT TRUE COLLATE binary, c IS FALSE COLLATE nocase COLLATE rtrim FROM t;
         SELECT 2 IS (TRUE COLLATE nocase), 2 IS (FALSE) COLLATE nocase, 2 IS +TRUE, (2 IS TRUE) COLLATE nocase, 2 IS TRUE COLLATE none;
         SELECT cast('5' as), typeof(cast('5' AS )), cast(2.5 as), cast(x'31' as), cast(NULL as), cast('5' as) = 5, cast('x1' as ''), cast(c as) = 'X' FROM t",
    );
}

/// They were taken.
#[test]
fn what_has_no_meaning_is_refused() {
    same(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2); SELECT a FROM t HAVING count(*) > 0; SELECT a FROM t HAVING 1;
         SELECT a FROM t HAVING nothing; SELECT a FROM t HAVING 1 ORDER BY count(*); SELECT count(*) FROM t HAVING a > 0;
         SELECT a FROM t GROUP BY a HAVING count(*) > 0",
    );
    for share in [
        "5",
        "1",
        "0",
        "1.1",
        "-0.5",
        "-0.0",
        "+0.5",
        "0.5 + 0",
        "'0.5'",
        "NULL",
        "a",
        "1e999",
        "9223372036854775808",
        "0.5 COLLATE nocase",
        "CAST(0.5 AS REAL)",
        "(0.5)",
        "0.0",
        "1.0",
        "5e-1",
        ".5",
        "0.5, 1",
        "likely(0.5)",
    ] {
        same(&format!(
            "CREATE TABLE t(a); INSERT INTO t VALUES (1); SELECT likelihood(a, {share}) FROM t"
        ));
    }
}

#[test]
fn characters_by_their_numbers() {
    for text in [
        "a\\u0041",
        "\\0041\\+01F600\\U0001F600",
        "\\\\",
        "",
        "é\\u00e9",
        "\\ud800\\uDFFF\\uFFFE",
        "\\U00110000\\Uffffffff\\+ffffff",
        "\\",
        "\\u12",
        "\\x",
        "a\\u00",
        "\\u004g",
        "\\+00004",
        "\\u+041",
        "\\U000000é1",
    ] {
        same(&format!("SELECT unistr('{text}'), hex(unistr('{text}'))"));
    }
    same(
        "SELECT hex(unistr('a\\u0000b')), hex(unistr('a\\u0041' || char(0) || '\\u0041')), unistr(NULL), typeof(unistr(5)), unistr(x'41');
         SELECT unistr_quote('a' || char(10) || 'b'), unistr_quote('it''s' || char(9)), unistr_quote('a\\b'), unistr_quote('a\\b' || char(1) || '''');
         SELECT unistr_quote(5), unistr_quote(NULL), unistr_quote(x'41'), unistr_quote(2.5), hex(unistr_quote('a' || char(0) || char(1)));
         SELECT format('%#Q %#q', 'a' || char(10), 'a' || char(10)), format('%#Q %#q', 'a\\b', 'a\\b'), format('%#20Q|%-#20Q|', char(10), char(10));
         SELECT format('%j', 'a\"b\\' || char(8, 9, 10, 12, 13, 1)), format('%J %J', 'a\"', NULL), format('%.2J %5j|', 'abc', NULL), format('%j %j', 5, 2.5);
         SELECT subtype(1), typeof(subtype(NULL)); SELECT subtype()",
    );
}

/// A SELECT and each pair of parentheses counted as a level.
#[test]
fn expressions_may_be_as_deep_as_in_sqlite() {
    const TABLE: &str = "CREATE TABLE t(a); INSERT INTO t VALUES (1);";
    let chain = |op: &str, terms: usize| format!("a{}", format!(" {op} a").repeat(terms - 1));
    for terms in [999, 1000, 1001] {
        for op in ["+", "||", "=", "AND", "OR"] {
            let chain = chain(op, terms);
            same(&format!(
                "{TABLE} SELECT {chain} FROM t; SELECT a FROM t WHERE {chain}; SELECT a FROM t ORDER BY {chain}"
            ));
        }
    }
    for levels in [998, 999] {
        for (open, close) in [
            ("- ", ""),
            ("NOT ", ""),
            ("CAST(", " AS INT)"),
            ("", " ISNULL"),
            ("", " COLLATE NOCASE"),
        ] {
            let (open, close) = (open.repeat(levels), close.repeat(levels));
            same(&format!("{TABLE} SELECT {open}a{close} FROM t"));
        }
    }
    for (open, levels) in [("(", 2400), ("+", 2400), ("(1 + ", 800), ("abs(", 800)] {
        let close = if open == "+" { "" } else { ")" };
        let (open, close) = (open.repeat(levels), close.repeat(levels));
        same(&format!(
            "{TABLE} SELECT {open}a{close} FROM t; INSERT INTO t VALUES ({open}1{close}); SELECT max(a) FROM t"
        ));
    }
}

/// Subqueries that call each other took the thread's own stack.
#[test]
fn deep_statements_run_on_a_small_stack() {
    let check = || {
        let session = support::session();
        support::must(&session, "CREATE TABLE t(a); INSERT INTO t VALUES (1)");
        for (open, close) in [
            ("1 + (SELECT ", ")"),
            ("-(SELECT ", ")"),
            ("(SELECT a + ", " FROM t WHERE a = 1)"),
            ("1 IN (SELECT ", ")"),
        ] {
            let (open, close) = (open.repeat(499), close.repeat(499));
            let rows = support::run(&session, &format!("SELECT {open}a{close} FROM t"));
            assert!(!rows.iter().any(|row| row.starts_with("error")), "{rows:?}");
        }
        let open = "EXISTS (SELECT ".repeat(5000);
        let close = ")".repeat(5000);
        let refused = support::run(&session, &format!("SELECT {open}1{close}"));
        assert!(
            refused.iter().all(|row| row.starts_with("error 1: ")),
            "{refused:?}"
        );
    };
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
    small.expect("thread").join().expect("no panic");
}
const GROUPS: &str = "
CREATE TABLE a(id INTEGER PRIMARY KEY, x, g);
CREATE TABLE b(id INTEGER PRIMARY KEY, y, aid);
INSERT INTO a VALUES (1, 10, 'p'), (2, 20, 'p'), (3, 5, 'q'), (4, NULL, 'q');
INSERT INTO b VALUES (1, 7, 1), (2, 8, 1), (3, 9, 3);
";

/// Each in a database of its own, with the tables above.
fn each(list: &[&str]) {
    for sql in list {
        same(&format!("{GROUPS}{sql}"));
    }
}

/// An aggregate was computed where it stands: `(SELECT max(a.id))` over the one row of that
/// subquery. It belongs to the query whose columns it reads.
#[test]
fn aggregates_belong_to_the_query_whose_columns_they_read() {
    each(&[
        "SELECT (SELECT max(a.id)) FROM a",
        "SELECT (SELECT sum(a.x) FROM b) FROM a",
        "SELECT (SELECT sum(a.x) FROM b) FROM a GROUP BY g",
        "SELECT g FROM a GROUP BY g HAVING (SELECT count(a.x) FROM b) > 1",
        "SELECT g FROM a GROUP BY g ORDER BY (SELECT max(a.x))",
        "SELECT count(*) FROM a ORDER BY (SELECT max(a.x))",
        "SELECT DISTINCT (SELECT max(a.x)) FROM a",
        "SELECT count(*) FROM (SELECT (SELECT max(a.id)) FROM a)",
        "SELECT EXISTS (SELECT max(a.x) FROM b), 20 IN (SELECT max(a.x) FROM b) FROM a",
        "INSERT INTO a(x) SELECT (SELECT max(a.x)) FROM a; SELECT * FROM a",
        // The innermost one of those that it reads.
        "SELECT (SELECT sum(a.x + b.y) FROM b) FROM a",
        "SELECT (SELECT (SELECT max(a.x + b.y) FROM b c) FROM b) FROM a",
        "SELECT (SELECT (SELECT max(a.x) + max(b.y) + max(c.y) FROM b c) FROM b) FROM a",
        "SELECT (SELECT (SELECT (SELECT max(a.x) + max(b.y) FROM b c) FROM b d) FROM b) FROM a",
        // Where it stands, if it reads none.
        "SELECT (SELECT count(*) FROM b) FROM a",
        "SELECT (SELECT max(1)) FROM a",
        // With all that it is called with.
        "SELECT (SELECT sum(a.x) FILTER (WHERE a.x > 7) FROM b) FROM a",
        "SELECT (SELECT sum(a.x) FILTER (WHERE b.y > 7) FROM b) FROM a",
        "SELECT (SELECT count(*) FILTER (WHERE a.x > 7)) FROM a",
        "SELECT (SELECT sum(DISTINCT a.x) FROM b), count(DISTINCT x) FROM a",
        "SELECT (SELECT group_concat(a.x ORDER BY a.id DESC) FROM b) FROM a",
        "SELECT (SELECT group_concat(a.x, '-' ORDER BY b.id) FROM b) FROM a",
        "SELECT (SELECT max(a.g COLLATE NOCASE) = 'Q' FROM b) FROM a",
        // Subqueries among that.
        "SELECT (SELECT sum(a.x + (SELECT count(*) FROM b c WHERE c.aid = a.id)) FROM b) FROM a",
        "SELECT (SELECT sum(a.id IN (SELECT c.aid FROM b c WHERE a.x > 7)) FROM b) FROM a",
        "SELECT (SELECT total((SELECT c.y + b.y FROM b c LIMIT 1)) FROM b) FROM a",
        "SELECT (SELECT sum((SELECT max(a.x) + b.y)) FROM b) FROM a",
        "CREATE VIEW v AS SELECT id AS k FROM b;
         SELECT (SELECT sum((SELECT count(v.k) FROM v)) FROM b) FROM a;
         SELECT (SELECT sum((SELECT count(v.k) FROM v) + a.x) FROM b) FROM a",
        // Columns beside it are of the row that max() and min() found.
        "SELECT a.id, (SELECT min(a.x)) FROM a",
        "SELECT (SELECT a.id || max(a.x)) FROM a",
        "SELECT (SELECT max(a.x) FROM b WHERE b.aid = a.id), a.id FROM a",
        "SELECT g, (SELECT sum(b.y) FROM b WHERE b.aid <= max(a.id)) FROM a GROUP BY g",
        "SELECT (SELECT sum(a.x) FROM b GROUP BY b.y HAVING b.y > min(a.x)) FROM a",
        "SELECT (SELECT y FROM b ORDER BY max(a.x), y DESC LIMIT 1) FROM a",
        "SELECT (SELECT y FROM b GROUP BY max(a.x) LIMIT 1) FROM a",
        // Columns of subqueries in FROM are columns, constants too.
        "SELECT (SELECT max(p) + count(*) FROM b) FROM (SELECT 3 AS p FROM a)",
        "SELECT (SELECT sum(q)) FROM (SELECT max(x) AS q FROM a GROUP BY g)",
        "SELECT (SELECT * FROM (SELECT max(a.x) FROM b)) FROM a",
        "SELECT (WITH c AS (SELECT max(a.x)) SELECT * FROM c) FROM a",
        "SELECT (VALUES (max(a.x))), (VALUES (1), (max(a.x))) FROM a; VALUES (count(*))",
        "SELECT (SELECT 1 UNION ALL SELECT max(x)), (SELECT max(x) ORDER BY 1) FROM a",
        // Those of RETURNING are values, and so are those of excluded.
        "INSERT INTO a(x) VALUES (1) RETURNING (SELECT count(a.x) FROM b)",
        "INSERT INTO a(x) VALUES (1) RETURNING (SELECT (SELECT count(b.y)) FROM b)",
        "INSERT INTO a(id) VALUES (1) ON CONFLICT DO UPDATE SET x = (SELECT max(excluded.id));
         SELECT * FROM a",
    ]);
}

/// An aggregate was taken in ORDER BY of a query without one, `LIMIT count(*)` of a subquery
/// failed within the planner, and a result column could name another one's alias.
#[test]
fn aggregates_stand_where_their_query_has_them() {
    each(&[
        "SELECT x FROM a ORDER BY max(x)",
        "SELECT x FROM a ORDER BY (SELECT max(a.x))",
        "SELECT x FROM a WHERE (SELECT max(a.x)) > 1",
        "SELECT count(*) FROM a WHERE (SELECT max(a.x)) > 1",
        "SELECT count(*) FROM a WHERE id IN (SELECT max(a.id))",
        "SELECT x FROM a JOIN b ON (SELECT max(a.x)) = 1",
        "SELECT count(*) FROM a LEFT JOIN b ON max(a.x) = 1",
        "SELECT x FROM a GROUP BY (SELECT max(a.x))",
        "SELECT (SELECT max(x)) AS m FROM a GROUP BY 1",
        "SELECT max(x) FROM a GROUP BY (+1) COLLATE NOCASE",
        "SELECT max(x) AS m FROM a GROUP BY m",
        "SELECT max(x) AS m FROM a GROUP BY m + 1",
        "SELECT max(x) AS m FROM a GROUP BY (SELECT m)",
        "SELECT 1 FROM a HAVING count(*)",
        "SELECT (SELECT y FROM b HAVING max(a.x) > 1) FROM a",
        "SELECT (SELECT y FROM b WHERE max(a.x) > 1) FROM a",
        "SELECT (SELECT count(*) FROM b WHERE y < max(a.x)) FROM a",
        "SELECT (SELECT 1 LIMIT count(*)) FROM a",
        "VALUES (count(*), 2), (3, 4)",
        "INSERT INTO a(x) VALUES (COUNT(*))",
        "INSERT INTO a(x) VALUES (count(*)), (2)",
        "VALUES (count(*)) ORDER BY 1",
        "SELECT 1 UNION VALUES (2), (3) LIMIT 1",
        // They do not nest.
        "SELECT sum((SELECT max(a.x))) FROM a",
        "SELECT (SELECT sum(max(a.x)) FROM b) FROM a",
        "SELECT (SELECT sum((SELECT max(a.x))) FROM b) FROM a",
        "SELECT (SELECT (SELECT sum(b.y + (SELECT max(a.x + c.y))) FROM b c) FROM b) FROM a",
        "SELECT (SELECT count(*) FILTER (WHERE (SELECT max(a.x) > 3)) FROM b) FROM a",
        "SELECT max(x) AS m FROM a ORDER BY sum(m)",
        "SELECT max(x) AS m FROM a ORDER BY (SELECT sum(m))",
        "SELECT max(x) AS m FROM a ORDER BY (SELECT sum(m + b.y) FROM b)",
        // Aliases of those that have one.
        "SELECT max(x) AS m FROM a WHERE m > 1",
        "SELECT max(x) AS m FROM a WHERE (SELECT m)",
        "SELECT (SELECT max(x)) AS m FROM a JOIN b ON m",
        "SELECT g, (SELECT max(a.x) FROM b) AS m FROM a GROUP BY g HAVING m > 5 ORDER BY m",
        "SELECT x AS m FROM a GROUP BY g HAVING (SELECT sum(m)) > 5",
        "SELECT x AS m, m + 1 FROM a",
        "SELECT max(x) AS m, (SELECT m) FROM a",
        // Statements that write have no aggregates.
        "UPDATE a SET x = (SELECT max(a.x) FROM b)",
        "DELETE FROM a WHERE (SELECT max(a.x)) > 1",
        "INSERT INTO a(id) VALUES (1) ON CONFLICT DO UPDATE SET x = (SELECT max(a.x))",
    ]);
}

/// A name was looked for among those before it alone, and as a table where it was not there.
#[test]
fn names_of_with_are_known_in_all_of_it() {
    const VIEWS: &str = "
        CREATE VIEW v AS SELECT x FROM a WHERE id = 1;
        CREATE VIEW vw AS WITH a AS (SELECT 5 AS x) SELECT x FROM a;
        CREATE VIEW vb AS SELECT * FROM later;";
    each(
        &[
            "WITH c AS (SELECT * FROM d), d AS (SELECT 1 AS k) SELECT * FROM c",
            "WITH c AS (SELECT * FROM d), d AS (SELECT * FROM e), e AS (SELECT 9) SELECT * FROM c, d",
            "WITH c AS (WITH d AS (SELECT * FROM e) SELECT * FROM d), e AS (SELECT 4) SELECT * FROM c",
            "WITH c AS (SELECT 1 AS x UNION SELECT 2 FROM d), d AS (SELECT 7) SELECT * FROM c",
            // But not to itself.
            "WITH a AS (SELECT * FROM a) SELECT * FROM a",
            "WITH RECURSIVE a AS (SELECT * FROM a) SELECT * FROM a",
            "WITH RECURSIVE a AS (SELECT * FROM a) SELECT 1",
            "WITH a AS (SELECT * FROM d), d AS (SELECT * FROM a) SELECT * FROM d",
            "WITH a AS (SELECT * FROM d), d AS (SELECT * FROM a) SELECT * FROM b",
            "WITH a AS (SELECT (SELECT x FROM a)) SELECT * FROM a",
            "WITH a AS (SELECT 1 UNION ALL SELECT (SELECT x FROM a)) SELECT * FROM a",
            "WITH a AS (SELECT 1 AS x EXCEPT SELECT x FROM a) SELECT * FROM a",
            "WITH a AS (SELECT 1 AS x UNION SELECT x FROM (SELECT * FROM a)) SELECT * FROM a",
            "WITH a AS (SELECT 1 AS x UNION SELECT x FROM a UNION SELECT 3) SELECT * FROM a",
            "WITH a AS (SELECT * FROM main.a) SELECT * FROM a",
            "WITH v AS (SELECT * FROM v) SELECT * FROM v",
            "EXPLAIN QUERY PLAN WITH a AS (SELECT * FROM a) SELECT * FROM a",
            // Inner ones hide outer ones, and both tables and views; not in views.
            "WITH d AS (SELECT 1 AS x) SELECT (WITH d AS (SELECT 2 AS x) SELECT x FROM d), x FROM d",
            "WITH c AS (SELECT x FROM d), d AS (SELECT 1 AS x)
             SELECT * FROM (WITH d AS (SELECT 2 AS x) SELECT * FROM c)",
            "WITH c AS (SELECT x FROM d) SELECT * FROM (WITH d AS (SELECT 2 AS x) SELECT * FROM c)",
            "WITH d AS (SELECT 1 AS x)
             SELECT * FROM (WITH d AS (SELECT x + 1 FROM d) SELECT * FROM d)",
            "WITH a AS (SELECT 5 AS x) SELECT * FROM v, vw, a",
            "WITH v AS (SELECT 6 AS x) SELECT v.x, w.x FROM v, main.v AS w",
            "WITH a AS (SELECT 5 AS x) SELECT count(*) FROM main.a; SELECT * FROM temp.a",
            "WITH later AS (SELECT 6 AS x) SELECT * FROM vb",
            // Columns.
            "WITH c(p, q) AS (SELECT 1) SELECT * FROM c",
            "WITH c(p, q) AS (SELECT 1) SELECT * FROM v",
            "WITH c AS (SELECT 1), C AS (SELECT 2) SELECT 1",
            // Statements that write.
            "WITH a AS (SELECT 8 AS x) INSERT INTO a(x) SELECT x FROM a; SELECT * FROM a",
            "WITH d AS (SELECT 8 AS x), c AS (SELECT x FROM d)
             INSERT INTO b(y) WITH d AS (SELECT 9 AS x) SELECT x FROM c; SELECT * FROM b",
            "WITH d AS (SELECT 8 AS x) INSERT INTO b(y) WITH d AS (SELECT x FROM d) SELECT x FROM d",
            "WITH d AS (SELECT 8 AS x) INSERT INTO b DEFAULT VALUES RETURNING (SELECT x FROM d)",
            "WITH d AS (SELECT 8 AS x) INSERT INTO b(id) VALUES (1)
             ON CONFLICT DO UPDATE SET y = (SELECT x FROM d) WHERE 8 IN d; SELECT * FROM b",
            "WITH c AS (SELECT * FROM d), d AS (SELECT 1 AS k, 9 AS n)
             UPDATE b SET y = n FROM c WHERE k = id RETURNING *, (SELECT n FROM c)",
            "WITH c AS (SELECT k FROM d), d AS (SELECT 1 AS k) DELETE FROM b WHERE id IN c RETURNING *",
            "WITH d AS (SELECT 1) UPDATE d SET x = 1",
            "CREATE TABLE k AS WITH c AS (SELECT * FROM d), d AS (SELECT 1 AS n) SELECT * FROM c;
             SELECT * FROM k",
            "CREATE VIEW k AS WITH k AS (SELECT * FROM k) SELECT * FROM k; SELECT * FROM k",
        ]
        .map(|sql| format!("{VIEWS}{sql}"))
        .each_ref()
        .map(String::as_str),
    );
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
