//! Subqueries that take a value from the row around them and compare for equality: as joins
//! where a condition asks whether there is a row, hashed where there is no index.

mod support;

use support::{engine, must, run, same, session};

/// `t` is the larger one, and has an index on some columns; what is in both is NULL, or of
/// another type than its neighbours, here and there.
const TABLES: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c, d TEXT COLLATE NOCASE, r REAL);
CREATE INDEX ta ON t(a);
CREATE INDEX td ON t(d, c);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)
    INSERT INTO t SELECT i, i % 40, i % 11 || '', iif(i % 7, i % 9, 'x' || i % 5), char(65 + i % 3 + i % 2 * 32), i / 4.0 FROM n;
INSERT INTO t VALUES (500, NULL, NULL, NULL, NULL, NULL), (501, 5, '05', 5.0, 'ä', 1e300), (502, NULL, x'35', x'35', 'B', 2);
CREATE TABLE v(x, i INT, s TEXT, n TEXT COLLATE NOCASE, y BLOB);
INSERT INTO v VALUES (5, 5, '5', 'a', 5), ('5', 7, '05', 'A', '5'), (5.0, 5, '5', 'b', x'35'), (NULL, NULL, NULL, NULL, NULL), ('x1', 9, 'x1', 'B', 'x1'), (1e300, 3, '3', 'ä', 3), (2, NULL, '2', 'c', 2);
";

fn with(sql: &str) {
    same(&format!("{TABLES}{sql}"));
}

fn plan(sql: &str) -> String {
    let session = session();
    must(&session, TABLES);
    run(&session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n")
}

/// Each pair of affinities and collations; the larger table outside, and the smaller one.
#[test]
fn rows_with_a_partner_and_without() {
    for column in ["t.id", "t.a", "t.b", "t.c", "t.d", "t.r", "+t.a", "t.a + 0"] {
        for of in ["v.x", "v.i", "v.s", "v.n", "v.y", "+v.i", "v.s || ''"] {
            let mut all = String::new();
            for more in [
                "",
                " AND v.i > 4",
                " AND v.i < t.a",
                " AND t.r > 20 AND v.y IS NOT t.c",
            ] {
                for not in ["", "NOT "] {
                    all += &format!(
                        "SELECT id FROM t WHERE {not}EXISTS (SELECT 1 FROM v WHERE {of} = {column}{more}) ORDER BY id;
                         SELECT id FROM t WHERE a {not}IN (SELECT v.i FROM v WHERE {of} = {column}{more}) ORDER BY id;
                         SELECT rowid FROM v WHERE {not}EXISTS (SELECT * FROM t WHERE {column} = {of}{more}) ORDER BY 1;
                         SELECT rowid FROM v WHERE n {not}IN (SELECT d FROM t WHERE {of} = {column}{more}) ORDER BY 1;
                         SELECT rowid FROM v WHERE (i, s) {not}IN (SELECT a, b FROM t WHERE {of} = {column}{more}) ORDER BY 1;"
                    );
                }
            }
            with(&all);
        }
    }
}

#[test]
fn nulls_are_no_partners_but_make_not_in_unknown() {
    same(
        "CREATE TABLE a(k, v); CREATE TABLE b(k, v);
         INSERT INTO a VALUES (1, 1), (1, NULL), (2, 1), (2, NULL), (3, 1), (3, NULL), (NULL, 1), (NULL, NULL);
         INSERT INTO b VALUES (1, 1), (1, 2), (2, NULL), (2, 2), (NULL, 1);
         SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v = a.v);
         SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k IS a.k AND b.v = a.v);
         SELECT * FROM a WHERE v IN (SELECT v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE v NOT IN (SELECT v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE NOT v IN (SELECT v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE NOT v NOT IN (SELECT v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE NOT NOT EXISTS (SELECT v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE (k, v) NOT IN (SELECT k, v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE (v IN (SELECT v FROM b WHERE b.k = a.k)) IS NULL;
         DELETE FROM b;
         SELECT * FROM a WHERE v NOT IN (SELECT v FROM b WHERE b.k = a.k);
         SELECT * FROM a WHERE EXISTS (SELECT v FROM b WHERE b.k = a.k)",
    );
}

#[test]
fn a_subquery_keeps_what_else_it_says() {
    let ask = |query: &str| {
        with(&format!(
            "SELECT id FROM t WHERE EXISTS ({query}) ORDER BY id;
             SELECT id FROM t WHERE NOT EXISTS ({query}) ORDER BY id;
             SELECT id FROM t WHERE a IN ({query}) ORDER BY id;
             SELECT id FROM t WHERE a NOT IN ({query}) ORDER BY id;"
        ));
    };
    ask("SELECT i FROM v WHERE i = a LIMIT 1");
    ask("SELECT i FROM v WHERE i = a LIMIT 0");
    ask("SELECT i FROM v WHERE i = a LIMIT -1");
    ask("SELECT i FROM v WHERE i = a ORDER BY x LIMIT 5 OFFSET 1");
    ask("SELECT DISTINCT i FROM v WHERE i = a");
    ask("SELECT max(i) FROM v WHERE i = a");
    ask("SELECT i FROM v WHERE i = a GROUP BY i HAVING count(*) > 1");
    ask("SELECT count(*) OVER () FROM v WHERE i = a");
    ask("SELECT i FROM v WHERE i = a UNION SELECT 7");
    ask("SELECT w.i FROM v w LEFT JOIN v z ON z.s = w.s WHERE w.i = a");
    ask("SELECT i FROM (SELECT * FROM v WHERE i > 4) WHERE i = a");
    ask("SELECT i FROM v WHERE i = a OR i = id");
    ask("SELECT i FROM v WHERE i = a AND EXISTS (SELECT 1 FROM t z WHERE z.id = v.x)");
    ask(
        "SELECT i FROM v WHERE i = a AND EXISTS (SELECT 1 FROM t z WHERE z.id = v.x AND z.a = t.a)",
    );
    ask("SELECT i FROM v WHERE i = a AND x IN (SELECT id FROM t)");
    ask("SELECT i FROM v WHERE i = (SELECT a FROM t z WHERE z.id = t.id)");
    ask("SELECT abs(i) FROM v WHERE i = a AND abs(i) > 3");
    ask("SELECT i FROM v NOT INDEXED WHERE i = a AND v.rowid < 9");
    ask("SELECT 1 FROM json_each('[1,5,7]') WHERE value = a");
}

/// Joins of all kinds around them, several of them, and one within another.
#[test]
fn semi_joins_stand_behind_what_they_read() {
    let exists = "EXISTS (SELECT 1 FROM v z WHERE z.i = t.a)";
    let not_exists = "NOT EXISTS (SELECT 1 FROM v y WHERE y.x = t.id AND y.i = v.i)";
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"] {
        with(&format!(
            "SELECT t.id, v.rowid FROM t {join} v ON v.i = t.id WHERE {exists} ORDER BY 1, 2;
             SELECT t.id, v.rowid FROM t {join} v ON v.i = t.id WHERE {not_exists} ORDER BY 1, 2;
             SELECT t.id, v.rowid FROM v {join} t ON v.i = t.id WHERE {exists} AND {not_exists} ORDER BY 1, 2;
             SELECT count(*) FROM t {join} v ON v.i = t.id AND {exists};
             SELECT max(t.id), min(t.a) FROM t {join} v ON v.i = t.id WHERE {exists} AND {exists} GROUP BY t.b ORDER BY 1;
             SELECT max(t.id) FROM v {join} t ON v.i = t.id WHERE {exists}"
        ));
    }
    with(&format!(
        "SELECT max(id) FROM t WHERE {exists};
         SELECT id FROM t WHERE {exists} ORDER BY id DESC LIMIT 3;
         SELECT a FROM t WHERE {exists} ORDER BY a LIMIT 2 OFFSET 1;
         SELECT id FROM t WHERE {exists} OR id < 3 ORDER BY id;
         SELECT {exists}, {not} FROM t, v WHERE id < 9 ORDER BY id, v.rowid;
         SELECT id FROM t WHERE abs(a) < 9 AND {exists} AND abs(id) > 3 ORDER BY id;
         SELECT x, (SELECT group_concat(id) FROM t WHERE t.a = v.i AND {exists}) FROM v;
         WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT t.id FROM r JOIN t ON t.id = r.n * 2 WHERE {exists} OR EXISTS (SELECT 1 FROM t z WHERE z.a = r.n)) SELECT * FROM r;
         WITH RECURSIVE r(n) AS (SELECT 5 UNION SELECT t.id FROM r JOIN t ON t.id = r.n + 40 WHERE {exists}) SELECT * FROM r",
        not = not_exists,
    ));
}

#[test]
fn rows_that_are_changed_are_chosen_by_semi_joins() {
    with(
        "UPDATE t SET b = 'n' WHERE EXISTS (SELECT 1 FROM v WHERE v.i = t.a);
         SELECT count(*) FROM t WHERE b = 'n';
         DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.i = t.a);
         SELECT count(*), max(id) FROM t;
         DELETE FROM t WHERE EXISTS (SELECT 1 FROM t z WHERE z.a = t.a AND z.id < t.id);
         SELECT id, a FROM t ORDER BY id;
         INSERT INTO t(id, a) SELECT 1000 + id, a FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.i = t.a) AND NOT EXISTS (SELECT 1 FROM t z WHERE z.id = 1000 + t.id);
         SELECT id, a FROM t ORDER BY id;
         CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO v(i) SELECT id FROM t WHERE t.id = new.id AND EXISTS (SELECT 1 FROM v WHERE v.i = t.a); END;
         UPDATE t SET b = 'm'; SELECT i FROM v",
    );
}

/// What fails does so for the rows alone that come to it.
#[test]
fn what_may_fail_is_not_asked_of_other_rows() {
    same(
        "CREATE TABLE a(k INT, v); CREATE TABLE b(k INT, v);
         INSERT INTO a VALUES (1, 1), (2, -9223372036854775808), (3, 3);
         INSERT INTO b VALUES (1, 1), (3, -9223372036854775808), (4, -9223372036854775808);
         SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.k < 3 AND abs(b.v) > 0);
         SELECT k FROM a WHERE k <> 2 AND abs(v) > 0 AND EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    );
}

/// A subquery without an index for what it compares is read once for all rows.
#[test]
fn what_has_no_index_is_hashed_for_all_calls() {
    for (column, of) in [
        ("t.a", "v.i"),
        ("t.b", "v.s"),
        ("t.d", "v.n"),
        ("t.c", "v.x"),
        ("t.b", "v.x"),
        ("t.r + 0", "v.i + 0"),
    ] {
        with(&format!(
            "SELECT x, (SELECT count(*) FROM t WHERE {column} = {of}) FROM v;
             SELECT x, (SELECT t.id FROM t NOT INDEXED WHERE {column} = {of} ORDER BY t.id DESC) FROM v;
             SELECT x, (SELECT t.id FROM t NOT INDEXED WHERE {column} = {of}) FROM v;
             SELECT x, (SELECT max(t.r) FROM t NOT INDEXED WHERE {column} = {of} AND t.id > v.i AND t.a > 3) FROM v;
             SELECT id, (SELECT v.rowid FROM v WHERE {of} = {column}) FROM t ORDER BY id;
             SELECT id, (SELECT group_concat(v.rowid) FROM v WHERE {of} = {column} AND v.i < t.r) FROM t ORDER BY id;
             SELECT id FROM t WHERE id < 5 OR EXISTS (SELECT 1 FROM v WHERE {of} = {column} AND v.rowid <> t.id) ORDER BY id;
             SELECT sum((SELECT sum(v.rowid) FROM v WHERE {of} = {column})) FROM t;
             SELECT id, (SELECT count(*) FROM v, v w WHERE {of} = {column} AND w.i = v.i) FROM t ORDER BY id;
             SELECT x, (SELECT sum((SELECT count(*) FROM v w WHERE w.i = t.a AND w.x = v.x)) FROM t WHERE {column} = {of}) FROM v;
             UPDATE t SET r = (SELECT v.rowid FROM v WHERE {of} = {column}); SELECT id, r FROM t WHERE r > 0 ORDER BY id;
             UPDATE t SET a = (SELECT count(*) FROM t z WHERE z.b = t.b) WHERE id < 20; SELECT id, a FROM t WHERE id < 20 ORDER BY id"
        ));
    }
}

#[test]
fn plans_tell_the_join() {
    for (sql, expected) in [
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.i = t.a)",
            "HASH SEMI JOIN",
        ),
        (
            "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.i = t.a)",
            "HASH ANTI JOIN",
        ),
        (
            "SELECT id FROM t WHERE b IN (SELECT s FROM v WHERE v.i = t.a)",
            "HASH SEMI JOIN",
        ),
        (
            "SELECT x FROM v WHERE EXISTS (SELECT 1 FROM t WHERE v.i = t.a)",
            "NESTED LOOP SEMI JOIN",
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t z WHERE z.id = t.a) LIMIT 1",
            "NESTED LOOP SEMI JOIN",
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.i > t.a)",
            "EXISTS",
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.i = 5)",
            "EXISTS",
        ),
    ] {
        let shown = plan(sql);
        assert!(shown.contains(expected), "{sql}\n{shown}");
    }
}

/// Whatever the join reads, a row that would have been a partner is a conflict.
#[test]
fn a_partner_that_comes_is_a_conflict() {
    for outside in [
        "t WHERE EXISTS (SELECT 1 FROM v WHERE v.i = t.a)",
        "v WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = v.i)",
    ] {
        let engine = engine();
        let (one, other) = (engine.session(), engine.session());
        must(&one, TABLES);
        must(&one, "CREATE TABLE seen(n)");
        must(
            &one,
            &format!("BEGIN; INSERT INTO seen SELECT count(*) FROM {outside}"),
        );
        must(
            &other,
            "INSERT INTO v(i) VALUES (17); INSERT INTO t(a) VALUES (9)",
        );
        let outcome = run(&one, "COMMIT");
        assert!(
            outcome.iter().any(|row| row.starts_with("error 517")),
            "{outside}: {outcome:?}"
        );
    }
}

/// Scalar subqueries by a key: where there is none, one and several; in results, conditions
/// and the order.
#[test]
fn values_of_the_first_partner() {
    for column in ["t.id", "t.a", "t.b", "t.c", "t.d", "t.r", "t.a + 0"] {
        for of in ["v.x", "v.i", "v.s", "v.n", "v.y"] {
            with(&format!(
                "SELECT id, (SELECT v.s FROM v WHERE {of} = {column}) FROM t ORDER BY id;
                 SELECT id FROM t WHERE a > (SELECT v.i FROM v WHERE {of} = {column}) ORDER BY id;
                 SELECT id FROM t WHERE (SELECT v.i FROM v WHERE {of} = {column} LIMIT 1) IS NULL AND id < 9 ORDER BY id;
                 SELECT rowid, (SELECT t.r FROM t WHERE {column} = {of}) FROM v ORDER BY 1;
                 SELECT rowid, coalesce((SELECT t.id FROM t WHERE {column} = {of} AND t.r > 9) + 1, -1) z FROM v ORDER BY z, 1;
                 SELECT rowid, (SELECT t.b FROM t WHERE {column} = {of} AND +t.a = v.i) FROM v ORDER BY 1;
                 SELECT rowid, (SELECT t.id FROM t WHERE {column} = {of} AND t.id > v.i ORDER BY t.id) FROM v ORDER BY 1;
                 SELECT sum((SELECT t.r FROM t WHERE {column} = {of})), count(DISTINCT 1 + (SELECT t.r FROM t WHERE {column} = {of})) FILTER (WHERE i > 4), min((SELECT t.a FROM t WHERE {column} = {of})) FROM v;
                 SELECT DISTINCT (SELECT typeof(t.c) FROM t WHERE {column} = {of}) FROM v ORDER BY 1;
                 SELECT count(*), (SELECT t.id FROM t WHERE {column} = {of}) FROM v GROUP BY v.s ORDER BY v.s"
            ));
        }
    }
    let shown = plan("SELECT id, (SELECT s FROM v WHERE v.i = t.a) FROM t");
    assert!(shown.contains("HASH SINGLE JOIN"), "{shown}");
    let shown = plan("SELECT x, (SELECT b FROM t WHERE t.a = v.i) FROM v");
    assert!(shown.contains("NESTED LOOP SINGLE JOIN"), "{shown}");
}

/// The first partner is the one that the index gives, whatever the method.
#[test]
fn the_first_partner_is_that_of_the_index() {
    let tables = "CREATE TABLE a(k INT); CREATE TABLE b(k INT, w INT, n);
        WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 200)
            INSERT INTO a SELECT i % 30 FROM r;
        INSERT INTO b VALUES (1, 9, 'a'), (1, 2, 'b'), (2, NULL, 'c'), (2, 1, 'd'), (3, 5, 'e'), (3, 5, 'f');";
    for index in [
        "",
        "CREATE INDEX i ON b(k);",
        "CREATE INDEX i ON b(k, w);",
        "CREATE INDEX i ON b(k, w DESC, n);",
        "CREATE INDEX i ON b(k) WHERE w > 1;",
    ] {
        same(&format!(
            "{tables}{index}SELECT k, (SELECT n FROM b WHERE b.k = a.k) FROM a;
             SELECT k, (SELECT n FROM b WHERE b.k = a.k AND w > 1) FROM a;
             SELECT k, (SELECT n FROM b WHERE b.k = a.k AND w > 1 AND n <> 'a') FROM a LIMIT 9;
             SELECT k, (SELECT n FROM b WHERE b.k = a.k) z FROM a ORDER BY z, k LIMIT 20;
             SELECT a.k, z.k, (SELECT n FROM b WHERE b.k = a.k) FROM a LEFT JOIN b z ON z.k = a.k AND z.w = (SELECT w FROM b WHERE b.k = z.k)"
        ));
    }
}

/// What was made for one run does not last to the next.
#[test]
fn each_run_reads_anew() {
    let session = session();
    must(&session, TABLES);
    let asked = [
        "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.i = t.a)",
        "SELECT sum((SELECT count(*) FROM v WHERE v.i = t.a)) FROM t",
        "SELECT count((SELECT s FROM v WHERE v.i = t.a)) FROM t",
    ];
    for sql in asked {
        let mut prepared = support::prepare(&session, sql);
        let before = support::drain(&mut prepared);
        prepared.reset();
        must(&session, "INSERT INTO v(i, s) VALUES (17, 'x')");
        let after = support::drain(&mut prepared);
        prepared.reset();
        must(&session, "DELETE FROM v WHERE i = 17");
        assert_ne!(before, after, "{sql}");
        assert_eq!(before, support::drain(&mut prepared), "{sql}");
    }
}

/// An aggregate of a key's rows, asked for so often that the table is hashed once, gives what
/// it gives by the index: in the order of the table, for sums of reals and texts put together.
#[test]
fn aggregates_of_keys_with_an_index_are_hashed() {
    let tables = "
        CREATE TABLE o(id INTEGER PRIMARY KEY, k INT, s TEXT, x REAL, n INT);
        CREATE INDEX ok ON o(k);
        CREATE INDEX osk ON o(s, k);
        WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT 2000)
            INSERT INTO o SELECT i, i * 31 % 170, 's' || i % 5, i / 7.0, i * 37 % 1000 FROM i;
        INSERT INTO o VALUES (5000, NULL, NULL, 1, 1), (5001, NULL, 's1', 2, 2), (5002, 3, NULL, NULL, NULL);";
    let queries = [
        "SELECT id FROM o WHERE n = (SELECT max(n) FROM o i WHERE i.k = o.k) ORDER BY id",
        "SELECT sum(id) FROM o WHERE x > (SELECT avg(x) FROM o i WHERE i.k = o.k)",
        "SELECT id, (SELECT sum(x) FROM o i WHERE i.k = o.k AND i.n < 500) FROM o ORDER BY id",
        "SELECT id, (SELECT group_concat(i.id) FROM o i WHERE i.k = o.k AND i.n < o.n) FROM o ORDER BY id",
        "SELECT id, (SELECT count(n) + o.n FROM o i WHERE i.s = o.s AND i.k = o.k) FROM o ORDER BY id",
        "SELECT id, (SELECT total(n) FROM o i WHERE i.k = o.n % 200) FROM o ORDER BY id",
        "SELECT id, (SELECT count(*) FROM o i WHERE i.k = o.k GROUP BY s ORDER BY s LIMIT 1) FROM o ORDER BY id",
        "SELECT id, (SELECT max(n) FROM o i WHERE i.k = CAST(o.k AS TEXT)) FROM o ORDER BY id",
        "SELECT id, (SELECT max(x) FROM o i WHERE i.k = o.k AND i.k = o.n) FROM o ORDER BY id",
        "SELECT id, (SELECT min(i.id) FROM o i WHERE i.k IS o.k) FROM o ORDER BY id",
        "SELECT id, (SELECT i.n FROM o i WHERE i.k = o.k AND i.n > o.n) FROM o ORDER BY id",
    ];
    same(&format!("{tables}{}", queries.join(";")));
    let session = session();
    must(&session, tables);
    let plan = |sql: &str| run(&session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n");
    assert!(
        plan(queries[0]).contains("HASH JOIN"),
        "{}",
        plan(queries[0])
    );
    let once = "SELECT id FROM o WHERE id = 7 AND n = (SELECT max(n) FROM o i WHERE i.k = o.k)";
    assert!(
        plan(once).contains("SEARCH o USING INDEX ok"),
        "{}",
        plan(once)
    );
    // A row of it that is not asked for may fail.
    same(&format!(
        "{tables} INSERT INTO o VALUES (9000, 9999, 's', 1, 9223372036854775807), (9001, 9999, 's', 1, 9223372036854775807);
         SELECT id, (SELECT sum(n) FROM o i WHERE i.k = o.k) FROM o WHERE id < 3000 ORDER BY id"
    ));
}

/// EXISTS as a value, under OR and AND, in sort keys and in what aggregates add up.
#[test]
fn whether_there_is_a_row_as_a_value() {
    for on in [
        "v.i = t.a",
        "v.s = t.b AND v.i > 4",
        "v.n = t.d AND v.i < t.a",
        "v.x IS t.c AND v.i = t.a",
        "t.r > 10 AND v.y = t.c",
    ] {
        let it = format!("EXISTS (SELECT 1 FROM v WHERE {on})");
        let turned = format!("EXISTS (SELECT * FROM t WHERE {on} LIMIT 1)");
        with(&format!(
            "SELECT id, {it}, NOT {it}, typeof({it}), {it} + 1 FROM t ORDER BY id;
             SELECT rowid, {turned} FROM v ORDER BY rowid;
             SELECT id FROM t WHERE a = 3 OR {it} ORDER BY id;
             SELECT id FROM t WHERE (b = '7' AND NOT {it}) OR (c IS NULL AND {it}) OR NOT (a < 30 OR {it}) ORDER BY id;
             SELECT id FROM t WHERE {it} = 0 AND id < 100 ORDER BY id;
             SELECT rowid FROM v WHERE i IS NULL OR {turned} ORDER BY rowid;
             SELECT id FROM t ORDER BY {it} DESC, id LIMIT 20;
             SELECT sum({it}), count(*) FROM t;
             SELECT {it} AS e, count(*) FROM t GROUP BY e ORDER BY e;
             SELECT id, CASE WHEN a > 20 THEN {it} ELSE 'none' END FROM t ORDER BY id;
             SELECT t.id, w.i FROM t LEFT JOIN v w ON w.i = t.a AND (w.x = 5 OR {it}) ORDER BY 1, 2;
             UPDATE t SET a = a + 1 WHERE id < 9 OR {it}; SELECT sum(a) FROM t"
        ));
    }
    let plan = plan("SELECT id FROM t WHERE a = 3 OR EXISTS (SELECT 1 FROM v WHERE v.i = t.a)");
    assert!(plan.contains("HASH SINGLE JOIN"), "{plan}");
}

/// IN of a subquery of several tables that looks at the row around it, as a condition, under
/// OR and where NULL counts.
#[test]
fn members_that_an_index_finds() {
    for members in [
        "SELECT t.a FROM t JOIN v w ON w.i = t.a WHERE t.id < v.i * 20",
        "SELECT t.id FROM t JOIN v w ON w.s = t.b WHERE w.i <> v.i",
        "SELECT DISTINCT t.a FROM t, v w WHERE t.d = v.n AND w.i = t.a",
        "SELECT t.a FROM t WHERE t.d = v.n OR t.c = v.x",
        "SELECT t.a FROM t JOIN v w ON w.i = t.a WHERE t.id < v.i * 20 ORDER BY t.a, t.id LIMIT 3",
        "SELECT max(t.a) FROM t JOIN v w ON w.i = t.a WHERE t.d = v.n",
        "SELECT abs(t.a) FROM t JOIN v w ON w.i = t.a WHERE t.d = v.n",
        "SELECT t.a FROM t JOIN v w ON w.i = t.a WHERE t.d = v.n UNION ALL SELECT 7",
    ] {
        with(&format!(
            "SELECT rowid FROM v WHERE i IN ({members}) ORDER BY 1;
             SELECT rowid FROM v WHERE x IN ({members}) AND i > 3 ORDER BY 1;
             SELECT rowid FROM v WHERE s IN ({members}) OR i = 7 ORDER BY 1;
             SELECT rowid FROM v WHERE y NOT IN ({members}) ORDER BY 1;
             SELECT rowid FROM v WHERE NOT (i IN ({members})) ORDER BY 1;
             SELECT rowid FROM v WHERE (i IN ({members})) IS NULL ORDER BY 1;
             SELECT rowid, x IN ({members}) FROM v ORDER BY 1;
             SELECT v.rowid, u.rowid FROM v LEFT JOIN v u ON u.i IN ({members}) AND u.rowid > 2 ORDER BY 1, 2;
             SELECT i IN ({members}) AS m, count(*) FROM v GROUP BY m HAVING i IN ({members}) ORDER BY 1;"
        ));
    }
    with(
        "SELECT rowid FROM v WHERE (i, s) IN (SELECT t.a, t.b FROM t JOIN v w ON w.i = t.a WHERE t.d = v.n) ORDER BY 1;
         SELECT rowid FROM v WHERE (i, n) IN (SELECT t.a, t.d FROM t JOIN v w ON w.i = t.a WHERE t.id > v.i) ORDER BY 1;
         UPDATE v SET y = 0 WHERE i IN (SELECT t.a FROM t JOIN v w ON w.i = t.a WHERE t.d = v.n); SELECT y FROM v ORDER BY rowid",
    );
    let plan = plan(
        "SELECT 1 FROM v WHERE i IN (SELECT t.a FROM t JOIN v w ON w.s = t.b WHERE w.x = v.x)",
    );
    assert!(plan.contains("FILTER EXISTS subquery"), "{plan}");
}

/// Row values in what a subquery yields are looked up by the column that leads an index; all
/// rows were read and asked.
#[test]
fn row_values_in_a_subquery_are_looked_up() {
    let session = session();
    must(
        &session,
        "CREATE TABLE line(o INT, n INT, q INT, PRIMARY KEY(o, n)) WITHOUT ROWID;
         CREATE TABLE part(id INTEGER PRIMARY KEY, o INT, n TEXT); CREATE INDEX of ON part(o, n);
         WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT 3000)
             INSERT INTO line SELECT i / 3, i % 3, i FROM i;
         INSERT INTO part SELECT q, o, n FROM line",
    );
    let plan = |sql: &str| run(&session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n");
    for (sql, rows) in [
        (
            "SELECT q FROM line WHERE (o, n) IN (VALUES (5, 1), (5, 0), (7, 2), (7, 5), (5, 1))",
            vec!["15", "16", "23"],
        ),
        (
            "SELECT q FROM line WHERE (n, o) IN (SELECT 1, id FROM part WHERE id IN (1, 2))",
            vec!["4", "7"],
        ),
        (
            "SELECT id FROM part WHERE (id, o) IN (VALUES (4, 1), (5, 1), (6, 1), (4, NULL))",
            vec!["4", "5"],
        ),
        (
            "SELECT id FROM part WHERE (o, n) IN (VALUES (1, 2), (2, '1')) ORDER BY id",
            vec!["5", "7"],
        ),
    ] {
        assert_eq!(run(&session, sql), rows, "{sql}");
        assert!(
            plan(sql).contains("each of subquery"),
            "{sql}: {}",
            plan(sql)
        );
    }
    assert!(!plan("SELECT q FROM line WHERE (o, n) NOT IN (VALUES (5, 1))").contains("each of"));
}

/// Whatever the columns are: numbers and texts, NULLs, other collations, one value in many
/// rows.
#[test]
fn row_values_are_found_as_they_compare() {
    let columns = ["INT", "TEXT", "TEXT COLLATE NOCASE", ""];
    let values = "(1), ('1'), ('a'), ('A'), (1.0), (NULL), ('01'), (2)";
    for x in columns {
        for y in columns {
            for key in ["", ", PRIMARY KEY(x, y)"] {
                same(&format!(
                    "CREATE TABLE v(v); INSERT INTO v VALUES {values};
                     CREATE TABLE t(x {x}, y {y}{key}); CREATE INDEX yx ON t(y, x);
                     INSERT OR IGNORE INTO t SELECT a.v, b.v FROM v a, v b;
                     CREATE TABLE u(a {y}, b {x}); INSERT INTO u SELECT x, y FROM t WHERE rowid % 3;
                     SELECT count(*), total(x), min(y) FROM t WHERE (x, y) IN (VALUES (1, 'a'), (1, 2), ('A', '01'), (2, NULL));
                     SELECT count(*), total(x), min(y) FROM t WHERE (y, x) IN (SELECT a, b FROM u);
                     SELECT count(*) FROM t WHERE (x, y) IN (SELECT b, a FROM u UNION ALL SELECT a, b FROM u);
                     SELECT count(*) FROM t WHERE (x, y) NOT IN (SELECT b, a FROM u WHERE a > 0);
                     SELECT count(*) FROM t WHERE (x, y) IN (SELECT b, a FROM u) AND x IN (SELECT v FROM v) AND y = 1"
                ));
            }
        }
    }
}
