//! Which query an aggregate belongs to, and what names of WITH stand for, beside SQLite.

mod support;

use support::same;

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
