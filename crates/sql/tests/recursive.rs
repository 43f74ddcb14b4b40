//! Recursive common table expressions, beside bundled SQLite.

mod common;
mod support;

use common::Random;
use fulgurite_sql::session::Step;
use fulgurite_sql::value::ValueRef;
use support::same;

/// An organization, a graph with a cycle, a tree, and texts that collate.
const TABLES: &str = "
    CREATE TABLE org(name TEXT PRIMARY KEY, boss TEXT);
    INSERT INTO org VALUES ('Alice', NULL), ('Bob', 'Alice'), ('Cindy', 'Alice'),
        ('Dave', 'Bob'), ('Emma', 'Bob'), ('Fred', 'Cindy'), ('Gail', 'Cindy');
    CREATE TABLE edge(src INTEGER, dst INTEGER, w REAL);
    INSERT INTO edge VALUES (1, 2, 0.5), (2, 3, 1.5), (3, 1, 2.0), (3, 4, 0.25), (4, 5, 1.0),
        (1, 5, 9.0), (6, 7, 1.0);
    CREATE TABLE tree(id INTEGER PRIMARY KEY, parent INTEGER, t TEXT COLLATE NOCASE);
    CREATE INDEX children ON tree(parent);
    INSERT INTO tree VALUES (1, NULL, 'Root'), (2, 1, 'a'), (3, 1, 'B'), (4, 2, 'A'), (5, 2, 'c'),
        (6, 3, 'b'), (7, 6, 'D');
    CREATE TABLE n(i INTEGER, r REAL, t TEXT, b BLOB, a);
    INSERT INTO n VALUES (1, 1.5, '7', x'01', 3), (2, 2.5, 'x', x'02', '3');
    ";

/// Each in a database of its own, with the tables above.
fn each(list: &[&str]) {
    for sql in list {
        same(&format!("{TABLES}{sql}"));
    }
}

#[test]
fn rows_are_counted_and_walked() {
    each(&[
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 10) SELECT x FROM c",
        "WITH c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c LIMIT 7) SELECT sum(x), count(*) FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c LIMIT 5",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c LIMIT 5 OFFSET 2000",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5 OFFSET 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 0) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4 LIMIT -1 OFFSET -1) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 'a') SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT EXISTS (SELECT 1 FROM c WHERE x = 50)",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT (SELECT x FROM c WHERE x > 50)",
        "WITH c AS (SELECT 1 AS x, 'a' AS y UNION ALL SELECT x + 1, y || 'b' FROM c WHERE x < 4) SELECT * FROM c",
        "WITH c AS (SELECT 1 UNION ALL SELECT 2 FROM c LIMIT 3) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT 5 UNION ALL SELECT x + 10 FROM c WHERE x < 40) SELECT x FROM c",
        "WITH c(x) AS (VALUES (1), (2), (3) UNION ALL SELECT x * 2 FROM c WHERE x < 20) SELECT x FROM c",
        "WITH c(x) AS (SELECT 3 UNION SELECT 1 UNION SELECT 3 UNION SELECT x + 1 FROM c WHERE x < 6) SELECT x FROM c",
        "WITH c(x) AS (SELECT 3 UNION SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 6) SELECT x FROM c",
        "WITH c(x) AS (SELECT 3 INTERSECT SELECT 3 UNION ALL SELECT x + 1 FROM c WHERE x < 6) SELECT x FROM c",
        // Several recursive members.
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x * 2 FROM c WHERE x < 20 UNION ALL SELECT x * 3 FROM c WHERE x < 20) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT x * 2 FROM c WHERE x < 50 UNION SELECT x * 3 FROM c WHERE x < 50) SELECT x FROM c",
        "WITH c(x, p) AS (SELECT 1, 'r' UNION ALL SELECT x * 2, p || 'a' FROM c WHERE x < 9 UNION ALL SELECT x * 2 + 1, p || 'b' FROM c WHERE x < 9 ORDER BY 2) SELECT * FROM c",
        "WITH c(x) AS (SELECT 4 UNION ALL SELECT x FROM (SELECT 8 AS x) UNION ALL SELECT x - 1 FROM c WHERE x > 3 UNION ALL SELECT x - 2 FROM c, n WHERE x > 3) SELECT x FROM c",
        // Walks.
        "WITH u(name, level) AS (VALUES ('Alice', 0) UNION ALL SELECT org.name, u.level + 1 FROM org JOIN u ON org.boss = u.name ORDER BY 2) SELECT substr('..........', 1, level * 3) || name FROM u",
        "WITH u(name, level) AS (VALUES ('Alice', 0) UNION ALL SELECT org.name, u.level + 1 FROM org JOIN u ON org.boss = u.name ORDER BY 2 DESC) SELECT substr('..........', 1, level * 3) || name FROM u",
        "WITH u(name, level) AS (VALUES ('Alice', 0) UNION ALL SELECT org.name, u.level + 1 FROM org, u WHERE org.boss = u.name) SELECT * FROM u ORDER BY name",
        "WITH r(x) AS (SELECT 1 UNION SELECT dst FROM edge, r WHERE src = x) SELECT x FROM r ORDER BY x",
        "WITH r(x) AS (SELECT 1 UNION SELECT dst FROM r JOIN edge ON src = x) SELECT x FROM r ORDER BY x",
        "WITH r(x, d) AS (SELECT 1, 0 UNION SELECT dst, d + 1 FROM r JOIN edge ON src = x WHERE d < 6) SELECT x, min(d) FROM r GROUP BY x",
        "WITH r(x, path) AS (SELECT src, ',' || src || ',' FROM edge UNION SELECT dst, path || dst || ',' FROM r, edge WHERE src = x AND instr(path, ',' || dst || ',') = 0) SELECT * FROM r ORDER BY path",
        "WITH r(x, w) AS (SELECT 1, 0.0 UNION ALL SELECT dst, r.w + edge.w FROM edge JOIN r ON src = x WHERE r.w < 12 ORDER BY 2) SELECT x, w FROM r",
        "WITH c AS (SELECT id, parent, 0 AS d FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent, d + 1 FROM tree t JOIN c ON t.parent = c.id) SELECT * FROM c ORDER BY d, id",
        "WITH c AS (SELECT id, t, t AS path FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.t, path || '/' || t.t FROM c JOIN tree t ON t.parent = c.id ORDER BY 2) SELECT * FROM c",
        "WITH up AS (SELECT id, parent FROM tree WHERE id = 7 UNION ALL SELECT tree.id, tree.parent FROM up, tree WHERE tree.id = up.parent) SELECT id FROM up",
        "WITH c(id, d) AS (SELECT 1, 0 UNION ALL SELECT tree.id, d + 1 FROM c CROSS JOIN tree ON tree.parent = c.id) SELECT * FROM c ORDER BY 1",
        "WITH c(id, d) AS (SELECT 1, 0 UNION ALL SELECT tree.id, d + 1 FROM tree CROSS JOIN c ON tree.parent = c.id) SELECT * FROM c ORDER BY 1",
        "WITH c(id) AS (SELECT 1 UNION ALL SELECT tree.id FROM tree JOIN c ON tree.parent = c.id JOIN tree p ON p.id = tree.parent) SELECT * FROM c ORDER BY 1",
        "WITH c(parent) AS (SELECT 1 UNION ALL SELECT tree.id FROM c NATURAL JOIN tree) SELECT * FROM c ORDER BY 1",
        "WITH c(parent) AS (SELECT 1 UNION ALL SELECT id FROM c JOIN tree USING (parent)) SELECT * FROM c ORDER BY 1",
    ]);
}

#[test]
fn puzzles_are_solved() {
    each(&[
        "WITH RECURSIVE
           xaxis(x) AS (VALUES (-2.0) UNION ALL SELECT x + 0.1 FROM xaxis WHERE x < 1.2),
           yaxis(y) AS (VALUES (-1.0) UNION ALL SELECT y + 0.2 FROM yaxis WHERE y < 1.0),
           m(iter, cx, cy, x, y) AS (
             SELECT 0, x, y, 0.0, 0.0 FROM xaxis, yaxis
             UNION ALL
             SELECT iter + 1, cx, cy, x * x - y * y + cx, 2.0 * x * y + cy FROM m
              WHERE (x * x + y * y) < 4.0 AND iter < 28),
           m2(iter, cx, cy) AS (SELECT max(iter), cx, cy FROM m GROUP BY cx, cy),
           a(t) AS (SELECT group_concat(substr(' .+*#', 1 + min(iter / 7, 4), 1), '')
                    FROM (SELECT * FROM m2 ORDER BY cy, cx) GROUP BY cy)
         SELECT rtrim(t) FROM a",
        // A square of four by four.
        "WITH RECURSIVE
           input(sud) AS (VALUES ('1...'||'..3.'||'.4..'||'...2')),
           digits(z, lp) AS (VALUES ('1', 1) UNION ALL SELECT CAST(lp + 1 AS TEXT), lp + 1 FROM digits WHERE lp < 4),
           x(s, ind) AS (
             SELECT sud, instr(sud, '.') FROM input
             UNION ALL
             SELECT substr(s, 1, ind - 1) || z || substr(s, ind + 1),
                    instr(substr(s, 1, ind - 1) || z || substr(s, ind + 1), '.')
               FROM x, digits AS z
              WHERE ind > 0
                AND NOT EXISTS (
                  SELECT 1 FROM digits AS lp
                   WHERE z.z = substr(s, ((ind - 1) / 4) * 4 + lp, 1)
                      OR z.z = substr(s, ((ind - 1) % 4) + (lp - 1) * 4 + 1, 1)
                      OR z.z = substr(s, (((ind - 1) / 2) % 2) * 2 + ((ind - 1) / 8) * 8 + lp
                                          + ((lp - 1) / 2) * 2, 1)))
         SELECT s FROM x WHERE ind = 0 ORDER BY s",
        "WITH RECURSIVE q(board, row) AS (
             SELECT '', 0 UNION ALL
             SELECT board || c.x, row + 1 FROM q, (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 6) SELECT x FROM c) c
              WHERE row < 6 AND NOT EXISTS (
                WITH p(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM p WHERE i < row)
                SELECT 1 FROM p WHERE i <= row AND (substr(board, i, 1) = '' || c.x
                    OR abs(CAST(substr(board, i, 1) AS INTEGER) - c.x) = row + 1 - i)))
         SELECT board FROM q WHERE row = 6",
        "WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f LIMIT 60) SELECT a FROM f",
        "WITH RECURSIVE p(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM p WHERE x < 60)
         SELECT x FROM p WHERE NOT EXISTS (SELECT 1 FROM p AS d WHERE d.x * d.x <= p.x AND p.x % d.x = 0)",
        "WITH RECURSIVE s(rest, word) AS (SELECT 'one,two,,three,', NULL UNION ALL
             SELECT substr(rest, instr(rest, ',') + 1), substr(rest, 1, instr(rest, ',') - 1) FROM s WHERE rest <> '')
         SELECT word FROM s WHERE word IS NOT NULL",
        "WITH RECURSIVE d(day) AS (SELECT '2024-02-27' UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < '2024-03-02') SELECT * FROM d",
        "WITH RECURSIVE h(n, s) AS (SELECT 27, 0 UNION ALL SELECT CASE n % 2 WHEN 0 THEN n / 2 ELSE 3 * n + 1 END, s + 1 FROM h WHERE n > 1) SELECT max(n), max(s) FROM h",
        "WITH RECURSIVE g(a, b) AS (SELECT 1071, 462 UNION ALL SELECT b, a % b FROM g WHERE b > 0) SELECT a FROM g WHERE b = 0",
    ]);
}

#[test]
fn rows_of_a_union_come_once() {
    each(&[
        "WITH c(x) AS (SELECT 1 UNION SELECT x % 5 + 1 FROM c) SELECT x FROM c",
        "WITH c(x) AS (SELECT NULL UNION SELECT NULL FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT 1.0 FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT '1' FROM c) SELECT * FROM c",
        "WITH c(x) AS (VALUES (1), (1), (2) UNION SELECT x FROM c) SELECT * FROM c",
        "WITH c(x, y) AS (VALUES (1, 'a') UNION SELECT 3 - x, y FROM c) SELECT * FROM c",
        // By the first collation that a SELECT brings.
        "WITH c(x) AS (SELECT 'a' COLLATE NOCASE UNION SELECT upper(x) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 'a' UNION SELECT upper(x) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 'a' UNION SELECT upper(x) COLLATE NOCASE FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT t FROM tree WHERE id = 2 UNION SELECT tree.t FROM c, tree) SELECT * FROM c",
        "WITH c(x) AS (SELECT t FROM tree WHERE id = 2 UNION ALL SELECT upper(x) FROM c WHERE x = 'a' LIMIT 4) SELECT * FROM c",
        "WITH c(x) AS (SELECT 'a ' COLLATE RTRIM UNION SELECT rtrim(x) FROM c) SELECT length(x) FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT x * 2 FROM c WHERE x < 9 UNION SELECT x + 1 FROM c WHERE x < 9 ORDER BY 1 DESC) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT DISTINCT dst FROM c, edge WHERE src >= x) SELECT x FROM c ORDER BY x",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT DISTINCT x + 1 FROM c, edge WHERE x < 4) SELECT x FROM c",
    ]);
}

#[test]
fn the_queue_is_ordered() {
    each(&[
        "WITH c(x, y) AS (VALUES (1, 9), (2, 8), (3, 9) UNION ALL SELECT x + 10, y - 1 FROM c WHERE x < 30 ORDER BY y) SELECT * FROM c",
        "WITH c(x, y) AS (VALUES (1, 9), (2, 8), (3, 9) UNION ALL SELECT x + 10, y - 1 FROM c WHERE x < 30 ORDER BY y DESC, x) SELECT * FROM c",
        "WITH c AS (SELECT 1 AS x, 9 AS y UNION ALL SELECT x + 10, y - 1 FROM c WHERE x < 30 ORDER BY y) SELECT * FROM c",
        "WITH c AS (SELECT 1 AS x, 9 AS y UNION ALL SELECT x + 10, y - 1 FROM c WHERE x < 30 ORDER BY 2 LIMIT 2) SELECT * FROM c",
        "WITH c(x) AS (VALUES ('b'), ('A'), ('a') UNION ALL SELECT x || 'z' FROM c WHERE length(x) < 3 ORDER BY 1) SELECT * FROM c",
        "WITH c(x) AS (VALUES ('b'), ('A'), ('a') UNION ALL SELECT x || 'z' FROM c WHERE length(x) < 3 ORDER BY 1 COLLATE NOCASE) SELECT * FROM c",
        "WITH c(x) AS (VALUES (NULL), (2), (1) UNION ALL SELECT x + 2 FROM c WHERE x < 5 ORDER BY 1 NULLS LAST) SELECT * FROM c",
        "WITH c(x) AS (VALUES (NULL), (2), (1) UNION ALL SELECT x + 2 FROM c WHERE x < 5 ORDER BY 1 DESC NULLS FIRST) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3 ORDER BY x + 1) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3 ORDER BY x) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3 ORDER BY y) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3 ORDER BY 2) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3 ORDER BY 0) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c LIMIT 3 OFFSET 1) SELECT * FROM c",
        "WITH c(x) AS (SELECT i FROM n UNION ALL SELECT x + 1 FROM c WHERE x < 3 ORDER BY i) SELECT * FROM c",
    ]);
}

#[test]
fn recursions_stand_wherever_queries_do() {
    each(&[
        // Joins, and subqueries beside the table.
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LEFT JOIN n ON n.i = c.x WHERE x < 5) SELECT x FROM c",
        "WITH c(x, t) AS (SELECT 1, '' UNION ALL SELECT x + 1, n.t FROM c LEFT JOIN n ON n.i = c.x WHERE x < 5) SELECT * FROM c",
        "WITH c(x, t) AS (SELECT 1, '' UNION ALL SELECT c.x + 1, n.t FROM n LEFT JOIN c ON n.i = c.x WHERE c.x < 5) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c, (SELECT max(i) AS m FROM n) WHERE x < m + 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + q FROM c, (SELECT i AS q FROM n ORDER BY i DESC LIMIT 1) WHERE x < 9) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < (SELECT max(id) FROM tree)) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE EXISTS (SELECT 1 FROM tree WHERE id = x)) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT (SELECT max(id) FROM tree WHERE parent = x) FROM c WHERE x NOT NULL) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x IN (SELECT src FROM edge)) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c AS d WHERE d.x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x + 1 FROM c AS d WHERE d.x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM (c) WHERE x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM (c, n) WHERE x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n, (c) WHERE x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT d.x + 1 FROM n, (c) AS d WHERE d.x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n, (tree, c) WHERE x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM (c JOIN n ON x = i) WHERE x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM ((c)) WHERE x < 3) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM (c, n) AS q WHERE x < 3) SELECT x FROM c",
        // Beside others, within others, more than once.
        "WITH a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 3), b(y) AS (SELECT 1 UNION ALL SELECT y + x FROM b, a WHERE y < 5) SELECT y FROM b ORDER BY y",
        "WITH a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 3), b(y) AS (SELECT x FROM a UNION ALL SELECT y + 10 FROM b WHERE y < 20) SELECT * FROM a, b",
        "WITH b(y) AS (SELECT x FROM a UNION ALL SELECT y + 10 FROM b WHERE y < 20), a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 3) SELECT * FROM b",
        "WITH b(y) AS (SELECT 1 UNION ALL SELECT y + x FROM a LEFT JOIN b ON a.x >= b.y WHERE y < 9), a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 3) SELECT * FROM b",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT p.x, q.x FROM c p, c q WHERE p.x < q.x",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT x, (SELECT count(*) FROM c AS d WHERE d.x <= c.x) FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT x FROM c UNION SELECT x + 2 FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT x FROM c EXCEPT SELECT i FROM n",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT x % 2, sum(x) FROM c GROUP BY 1",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT i, x FROM n LEFT JOIN c ON c.x = n.i + 4",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT i, x FROM c LEFT JOIN n ON c.x = n.i",
        "WITH c(x) AS (WITH d(y) AS (SELECT 7) SELECT y FROM d UNION ALL SELECT x + y FROM c, d WHERE x < 30) SELECT x FROM c",
        "WITH c(x) AS (WITH d(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM d WHERE y < 3) SELECT y FROM d UNION ALL SELECT x + y FROM c, d WHERE x < 6) SELECT x FROM c ORDER BY x",
        "WITH c(x) AS (WITH c(x) AS (SELECT 7) SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4) SELECT * FROM (WITH c(x) AS (SELECT x * 10 FROM c) SELECT x FROM c)",
        "WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4) SELECT * FROM n",
        "WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n, main.n AS m WHERE x < 4) SELECT count(*) FROM n",
        "WITH n(x) AS (SELECT i FROM main.n UNION ALL SELECT x + 1 FROM n WHERE x < 4) SELECT * FROM n",
        "WITH c(x) AS MATERIALIZED (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4) SELECT x FROM c",
        "WITH c(x) AS NOT MATERIALIZED (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4) SELECT x FROM c, c AS d",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT * FROM (WITH d(y) AS (SELECT x FROM c UNION ALL SELECT y * 2 FROM d WHERE y < 9) SELECT y FROM d) ORDER BY y",
        "SELECT * FROM (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT x FROM c) JOIN n ON x = i",
        "EXPLAIN QUERY PLAN WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM d) SELECT x FROM c",
        // In expressions of the rows around.
        "SELECT i, (WITH c(x) AS (SELECT i UNION ALL SELECT x + 1 FROM c WHERE x < i + 3) SELECT sum(x) FROM c) FROM n",
        "SELECT i, (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + i FROM c WHERE x < 10) SELECT group_concat(x) FROM c) FROM n",
        "SELECT id, (WITH u(k, p) AS (SELECT tree.id, tree.parent UNION ALL SELECT t.id, t.parent FROM u JOIN tree t ON t.id = u.p) SELECT group_concat(k) FROM u) FROM tree",
        "SELECT i, (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + m FROM c, (SELECT n.i AS m) WHERE x < 10) SELECT group_concat(x) FROM c) FROM n",
        "SELECT i, (WITH c(x) AS (SELECT 1 UNION ALL SELECT dst FROM c JOIN edge ON src = x AND w < n.r LIMIT 9) SELECT group_concat(x) FROM c) FROM n",
        "SELECT * FROM tree WHERE id IN (WITH c(x) AS (SELECT 1 UNION ALL SELECT x * 2 FROM c WHERE x < 8) SELECT x FROM c)",
        "SELECT * FROM n WHERE EXISTS (WITH c(x) AS (SELECT i UNION ALL SELECT x * 2 FROM c WHERE x < 8) SELECT x FROM c WHERE x = 16)",
        "SELECT * FROM n WHERE i + 7 IN (WITH c(x) AS (SELECT n.i UNION ALL SELECT x + 1 FROM c WHERE x < 8 + n.i) SELECT x FROM c)",
        // In statements that write, and in the schema.
        "INSERT INTO n(i) WITH c(x) AS (SELECT 5 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT x FROM c; SELECT i FROM n",
        "WITH c(x) AS (SELECT 5 UNION ALL SELECT x + 1 FROM c WHERE x < 9) INSERT INTO n(i) SELECT x FROM c RETURNING i; SELECT i FROM n",
        "WITH c(x) AS (SELECT max(i) FROM n UNION ALL SELECT x + 1 FROM c WHERE x < 9) INSERT INTO n(i) SELECT x FROM c; SELECT i FROM n",
        "CREATE TABLE k AS WITH c(x, y) AS (SELECT 1, 'a' UNION ALL SELECT x + 1, y || x FROM c WHERE x < 4) SELECT * FROM c; SELECT * FROM k; SELECT sql FROM sqlite_schema WHERE name = 'k'",
        "CREATE TABLE k AS WITH c AS (SELECT i, r, t, b, a FROM n UNION ALL SELECT i + 1, r, t, b, a FROM c WHERE i < 4) SELECT * FROM c; SELECT * FROM k; SELECT sql FROM sqlite_schema WHERE name = 'k'",
        "CREATE VIEW v AS WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4) SELECT x, x * x AS q FROM c; SELECT * FROM v; SELECT * FROM v WHERE q > 3; PRAGMA table_info(v); WITH c(x) AS (SELECT 8) SELECT * FROM v, c",
        "UPDATE tree SET t = 'x' WHERE id IN (WITH c(x) AS (SELECT 3 UNION SELECT id FROM tree, c WHERE parent = x) SELECT x FROM c); SELECT * FROM tree",
        "WITH c(x) AS (SELECT 3 UNION SELECT id FROM tree, c WHERE parent = x) DELETE FROM tree WHERE id IN c; SELECT * FROM tree",
        "WITH c(x) AS (SELECT 3 UNION SELECT id FROM tree, c WHERE parent = x) DELETE FROM tree WHERE id IN (SELECT x FROM c) RETURNING id; SELECT * FROM tree",
        "WITH c(x, d) AS (SELECT 1, 0 UNION ALL SELECT id, d + 1 FROM tree, c WHERE parent = x) UPDATE tree SET t = d FROM c WHERE c.x = tree.id; SELECT * FROM tree",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4) UPDATE n SET a = (SELECT sum(x) FROM c WHERE x <= n.i); SELECT * FROM n",
        "INSERT INTO tree(id, parent) WITH c(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM c WHERE x < 104) SELECT x, x - 1 FROM c WHERE true ON CONFLICT DO NOTHING; SELECT count(*) FROM tree",
    ]);
}

#[test]
fn columns_have_affinities_that_fit_all_members() {
    const INITIAL: [&str; 10] = [
        "1",
        "'1'",
        "i",
        "t",
        "a",
        "b",
        "NULL",
        "i || ''",
        "CAST(i AS TEXT)",
        "CAST(t AS INTEGER)",
    ];
    const STEP: [&str; 9] = [
        "x",
        "x + 1",
        "x || ''",
        "t",
        "i",
        "'a'",
        "NULL",
        "CAST(x AS TEXT)",
        "CASE WHEN x THEN 'a' ELSE 1 END",
    ];
    for initial in INITIAL {
        for step in STEP {
            for op in ["UNION ALL", "UNION"] {
                let with = format!(
                    "WITH c(x, k) AS (SELECT {initial}, 0 FROM n {op}
                     SELECT {step}, k + 1 FROM c JOIN n ON k < 1 WHERE x IS NOT '1')"
                );
                same(&format!(
                    "{TABLES}
                     {with} SELECT x, typeof(x), x = '1', x = 1, x < 'b', x = 'A' FROM c ORDER BY k, x;
                     CREATE TABLE k AS {with} SELECT x FROM c;
                     SELECT sql FROM sqlite_schema WHERE name = 'k'"
                ));
            }
        }
    }
}

#[test]
fn columns_have_the_names_of_the_initial_part() {
    each(&[
        "WITH c AS (SELECT t FROM tree WHERE id = 1 UNION ALL SELECT upper(t) FROM c WHERE t = 'root' LIMIT 3) SELECT t, t = 'ROOT' FROM c",
        "WITH c AS (SELECT i AS p, t FROM n UNION ALL SELECT p + 1, t FROM c WHERE p < 3) SELECT p, t FROM c",
        "WITH c AS (SELECT i, i FROM n UNION ALL SELECT i + 1, 5 FROM c WHERE i < 3) SELECT * FROM c",
        "WITH c(p, p) AS (SELECT 1, 2 UNION ALL SELECT p + 1, 5 FROM c WHERE p < 3) SELECT * FROM c",
        "WITH c AS (SELECT 1 UNION ALL SELECT \"1\" + 1 FROM c LIMIT 3) SELECT * FROM c",
        "WITH c AS (VALUES (1) UNION ALL SELECT column1 + 1 FROM c LIMIT 3) SELECT * FROM c",
        "WITH c AS (SELECT max(i) FROM n UNION ALL SELECT 1 + \"max(i)\" FROM c LIMIT 3) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT rowid FROM c LIMIT 3) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x + 1 FROM c LIMIT 3) SELECT c.x, rowid FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT * FROM c LIMIT 3) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.* FROM c, n LIMIT 3) SELECT c.* FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT i FROM c JOIN n ON x = n.i LIMIT 3) SELECT * FROM c",
    ]);
}

#[test]
fn what_is_no_recursion_is_refused() {
    each(&[
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x FROM c, c AS d) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x FROM c, (c) AS d) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x FROM c, (SELECT * FROM c) AS d) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x FROM c WHERE x < (SELECT max(x) FROM c)) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT (SELECT x FROM c) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM (SELECT * FROM c)) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT 2 WHERE 1 IN c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT 2 FROM c WHERE 1 IN c) SELECT * FROM c",
        "WITH c(x) AS (SELECT x FROM c UNION ALL SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT x FROM c UNION ALL SELECT 1) SELECT * FROM c",
        "WITH c(x) AS (SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c UNION ALL SELECT 5) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c UNION SELECT x + 2 FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c UNION ALL SELECT x + 2 FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 INTERSECT SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 EXCEPT SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c, d), d AS (SELECT * FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM d), d AS (SELECT * FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT y FROM d UNION ALL SELECT x + 1 FROM c), d(y) AS (SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c, d), d(y) AS (SELECT 1 UNION ALL SELECT y FROM d, c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT max(x) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c GROUP BY x) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT count(*) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c HAVING x > 1) SELECT * FROM c",
        "WITH c(x) AS (SELECT max(i) FROM n UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c UNION ALL SELECT max(x) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x, 2 FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1, 2 UNION ALL SELECT x, 2 FROM c) SELECT * FROM c",
        "WITH c(x, y) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT 2 UNION SELECT x, 2 FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT 2, 3 UNION SELECT x FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT y FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c INDEXED BY k) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c NOT INDEXED LIMIT 2) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM main.c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c(1)) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c ORDER BY 1 LIMIT x) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c LIMIT (SELECT x FROM c)) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c, nowhere) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c, nowhere) SELECT 1",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT abs(-9223372036854775807 - x) FROM c) SELECT * FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT abs(-9223372036854775807 - x) FROM c) SELECT * FROM c LIMIT 1",
        "WITH c(x) AS (SELECT abs(-9223372036854775807 - 1) UNION ALL SELECT x FROM c) SELECT * FROM c LIMIT 1",
    ]);
}

/// A nested loop's inner side that reads a column of the query around it was kept from one
/// row of that to the next.
#[test]
fn what_a_join_replays_follows_the_rows_around() {
    each(&[
        "SELECT id, (SELECT count(*) FROM n LEFT JOIN edge ON edge.src < tree.id) FROM tree",
        "SELECT id, (SELECT count(*) FROM n, edge WHERE edge.src < tree.id) FROM tree",
        "SELECT id, (SELECT sum(q.z) FROM n, (SELECT src + tree.id AS z FROM edge LIMIT 2) q) FROM tree",
        "SELECT id, (SELECT count(*) FROM n JOIN (SELECT src AS z FROM edge WHERE src < tree.id LIMIT 5) q ON n.i <> q.z) FROM tree",
        "SELECT id, (SELECT count(*) FROM n LEFT JOIN edge ON edge.src < (SELECT tree.id)) FROM tree",
    ]);
}

/// A member that brings an affinity of its own is bound twice, and what it names as well:
/// a chain of them must not take twice as long with each.
#[test]
fn recursions_are_chained() {
    let chained = |length: usize| {
        let mut sql = "WITH c0(x) AS (SELECT 1 UNION SELECT i FROM n, c0)".to_owned();
        for at in 1..length {
            let before = at - 1;
            sql += &format!(
                ", c{at}(x) AS (SELECT 1 UNION SELECT o.x FROM c{at} JOIN c{before} AS o ON o.x > 0)"
            );
        }
        sql + &format!(" SELECT x, x = '2' FROM c{} ORDER BY x", length - 1)
    };
    same(&format!("{TABLES}{}", chained(4)));
    // SQLite runs each of them for every row of the one behind it.
    let session = support::session();
    support::must(&session, TABLES);
    assert_eq!(support::run(&session, &chained(30)), ["1,0", "2,1"]);
}

/// A recursion that comes to an end, over the tables above.
fn generated(random: &mut Random) -> String {
    let initial = *random.pick(&[
        "SELECT 1, 0, 'a'",
        "VALUES (1, 0, 'a'), (3, 0, 'B'), (1, 0, 'A')",
        "SELECT i, 0, t FROM n",
        "SELECT id, 0, t FROM tree WHERE id < 4",
        "SELECT src, 0, dst FROM edge UNION SELECT id, 0, t FROM tree",
    ]);
    let op = *random.pick(&["UNION", "UNION ALL"]);
    let mut sql = format!("WITH RECURSIVE c(x, d, t) AS ({initial}");
    for _ in 0..=random.below(2) {
        let x = *random.pick(&["x + 1", "x * 2 % 7", "dst", "id", "x", "max(x, 3)"]);
        let t = *random.pick(&["c.t", "c.t || 'x'", "upper(c.t)", "w", "tree.t", "d"]);
        let distinct = *random.pick(&["", "", "DISTINCT "]);
        let from = match random.below(3) {
            0 => "c JOIN edge ON src = x LEFT JOIN tree ON tree.parent = dst",
            1 => "edge CROSS JOIN c ON src = x JOIN tree ON tree.id = dst",
            _ => "tree, c, edge ON edge.src = c.x AND tree.id = edge.src",
        };
        let depth = 1 + random.below(4);
        let and = *random.pick(&[
            "",
            " AND x IN (SELECT src FROM edge)",
            " AND EXISTS (SELECT 1 FROM tree AS o WHERE o.id > x)",
            " AND c.t < 'x'",
        ]);
        sql +=
            &format!(" {op} SELECT {distinct}{x}, d + 1, {t} FROM {from} WHERE d < {depth}{and}");
    }
    sql += *random.pick(&[
        "",
        "",
        " ORDER BY 1, 2, 3",
        " ORDER BY 2 DESC, 1, 3",
        " ORDER BY 3, 1, 2",
    ]);
    sql += ") ";
    // As many rows, in an order that both agree on.
    sql += *random.pick(&[
        "SELECT count(*), sum(x), max(d), min(t) FROM c",
        "SELECT DISTINCT x, d, typeof(t) FROM c ORDER BY 1, 2, 3",
        "SELECT d, count(*), count(DISTINCT x) FROM c GROUP BY d ORDER BY d",
        "SELECT i, (SELECT count(*) FROM c WHERE c.x = n.i) FROM n",
        "SELECT o.x, count(*) FROM c JOIN c AS o ON o.x = c.d GROUP BY o.x ORDER BY 1",
    ]);
    sql
}

#[test]
fn generated_recursions_give_what_sqlite_gives() {
    let mut random = Random(20);
    for _ in 0..40 {
        let statements: Vec<String> = (0..10).map(|_| generated(&mut random)).collect();
        same(&format!("{TABLES}{}", statements.join(";\n")));
    }
}

/// A queue, the rows of a UNION and an ordered queue that memory has no room for.
#[test]
fn recursions_spill() {
    const STATEMENTS: [&str; 7] = [
        "WITH c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c WHERE x < 60000) SELECT count(*), sum(x) FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT x * 7919 % 50021 FROM c UNION SELECT x * 3 % 50021 FROM c)
         SELECT count(*), sum(x) FROM c",
        "WITH c(x, t) AS (SELECT 1, 'a' UNION SELECT x + 1, t FROM c WHERE x < 20000
             UNION SELECT x, upper(t) || 'long enough to be worth a page' FROM c WHERE t = 'a')
         SELECT count(*), sum(x), count(DISTINCT t) FROM c",
        "WITH c(x, t) AS (SELECT 1, 'a' UNION ALL SELECT x * 2, 'p' || x FROM c WHERE x < 40000
             UNION ALL SELECT x * 2 + 1, 'q' || x FROM c WHERE x < 40000) SELECT * FROM c",
        "WITH c(x, t) AS (SELECT 1, 'a' UNION ALL SELECT x * 2, 'p' || x FROM c WHERE x < 40000
             UNION ALL SELECT x * 2 + 1, 'q' || x FROM c WHERE x < 40000 ORDER BY x % 97, x DESC)
         SELECT * FROM c",
        "WITH c(x, t) AS (SELECT 1, 'a' UNION SELECT x * 2, 'p' || x FROM c WHERE x < 30000
             UNION SELECT x * 2 + 1, 'q' || x FROM c WHERE x < 30000 ORDER BY 2, 1 DESC)
         SELECT sum(x), max(t) FROM c",
        "WITH e(a, b) AS (SELECT 1, 2 UNION ALL SELECT a + 1, (a + 1) * 7 % 3001 FROM e WHERE a < 3000),
              c(x) AS (SELECT 1 UNION SELECT b FROM c JOIN e ON a = x) SELECT count(*), sum(x) FROM c",
    ];
    let sqlite = rusqlite::Connection::open_in_memory().unwrap();
    for sql in STATEMENTS {
        let theirs = support::sqlite(&sqlite, sql);
        for limit in [0, 100_000, 2 << 20] {
            let ours = support::session();
            ours.set_memory_limit(limit);
            assert_eq!(support::run(&ours, sql), theirs, "{limit} bytes: {sql}");
        }
    }
}

#[test]
fn an_endless_recursion_is_interrupted() {
    for sql in [
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c ORDER BY 1) SELECT x FROM c",
        "WITH c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c) SELECT x FROM c",
    ] {
        let session = support::session();
        let mut statement = support::prepare(&session, sql);
        for _ in 0..10 {
            assert_eq!(statement.step().unwrap(), Step::Row);
        }
        session.interrupt_handle().interrupt();
        support::ends_interrupted(&mut statement);
    }
}

#[test]
fn a_statement_runs_again() {
    let session = support::session();
    let sql = "WITH c(x) AS (SELECT ?1 UNION SELECT x + 1 FROM c WHERE x < ?1 + 3) SELECT x FROM c";
    let mut statement = support::prepare(&session, sql);
    for first in [5i64, 5, 7] {
        statement.bind(1, ValueRef::Integer(first)).unwrap();
        let rows: Vec<String> = (first..first + 4).map(|x| x.to_string()).collect();
        assert_eq!(support::drain(&mut statement), rows);
        statement.reset();
    }
}

#[test]
fn explain_shows_a_recursion() {
    let session = support::session();
    support::must(&session, TABLES);
    let plan = support::must(
        &session,
        "EXPLAIN QUERY PLAN WITH c(id) AS (SELECT 1 UNION SELECT tree.id FROM c JOIN tree ON tree.parent = c.id ORDER BY 1 DESC) SELECT id FROM c",
    );
    let shown = plan.join("\n");
    for part in [
        "RECURSION c UNION ORDER BY $0 DESC",
        "ROWS OF c",
        "SEARCH tree USING COVERING INDEX children",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}
