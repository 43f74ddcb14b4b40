//! IN and NOT IN over a subquery that is the same for all rows: looked up where few rows ask,
//! gathered where many do.

mod support;

use support::{must, same};

/// A small table, and large ones whose columns are unique, NULL here and there, of another
/// affinity or collation.
const TABLES: &str = "CREATE TABLE few(id INTEGER PRIMARY KEY, x, n INT, s TEXT, c TEXT COLLATE NOCASE);
    CREATE TABLE many(id INTEGER PRIMARY KEY, u INT, k INT NOT NULL, w TEXT, c TEXT COLLATE NOCASE, g INT);
    CREATE TABLE keyed(a TEXT, b INT, v, PRIMARY KEY(a, b)) WITHOUT ROWID;
    CREATE TABLE hollow(y INT);
    CREATE INDEX mu ON many(u); CREATE INDEX mk ON many(k); CREATE INDEX mw ON many(w);
    CREATE INDEX mc ON many(c); CREATE INDEX mg ON many(g, u); CREATE INDEX ny ON hollow(y);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 4000)
        INSERT INTO many SELECT i, i * 3, i * 5, i * 2, substr('aAbB', 1 + i % 4, 1) || i, i % 3 FROM n;
    INSERT INTO keyed SELECT 'k' || id % 50, id, u FROM many;
    INSERT INTO few VALUES (1, 3, 3, '3', 'A1'), (2, 4, 4, '4', 'a1'), (3, NULL, NULL, NULL, NULL),
        (4, 6.0, 6, '6.0', 'B3'), (5, '9', 9, '9', 'b2'), (6, x'33', 20000, '12', 'zz'), (7, 30, 30, '30', 'B2');";

const QUERIES: &[&str] = &[
    "SELECT id FROM few WHERE n IN (SELECT u FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT u FROM many) ORDER BY id",
    "SELECT id FROM few WHERE NOT n IN (SELECT u FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT k FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT id FROM many) ORDER BY id",
    "SELECT id FROM few WHERE x IN (SELECT u FROM many) ORDER BY id",
    "SELECT id FROM few WHERE x NOT IN (SELECT u FROM many) ORDER BY id",
    "SELECT id FROM few WHERE x NOT IN (SELECT w FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n IN (SELECT w FROM many) ORDER BY id",
    "SELECT id FROM few WHERE s NOT IN (SELECT u FROM many) ORDER BY id",
    "SELECT id FROM few WHERE s IN (SELECT w FROM many) ORDER BY id",
    "SELECT id FROM few WHERE c IN (SELECT c FROM many) ORDER BY id",
    "SELECT id FROM few WHERE s NOT IN (SELECT c FROM many) ORDER BY id",
    "SELECT id FROM few WHERE c COLLATE BINARY IN (SELECT c FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT u FROM many WHERE u > 5) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT u FROM many WHERE g = 1) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT u FROM many WHERE u > 1e9) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT u FROM many WHERE u IS NOT NULL) ORDER BY id",
    "SELECT id FROM few WHERE n IN (SELECT u + 1 FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT y FROM hollow) ORDER BY id",
    "SELECT id FROM few WHERE (n, s) IN (SELECT u, w FROM many) ORDER BY id",
    "SELECT id FROM few WHERE (n, s) NOT IN (SELECT u, w FROM many) ORDER BY id",
    "SELECT id FROM few WHERE ('k3', n) IN (SELECT a, b FROM keyed) ORDER BY id",
    "SELECT id FROM few WHERE n NOT IN (SELECT b FROM keyed WHERE a = 'k3') ORDER BY id",
    "SELECT f.id, m.id FROM few f LEFT JOIN many m ON m.u = f.n WHERE m.k NOT IN (SELECT u FROM many) ORDER BY f.id",
    "SELECT f.id FROM few f LEFT JOIN many m ON m.u = f.n WHERE m.k NOT IN (SELECT y FROM hollow) ORDER BY f.id",
    "SELECT f.id, g.id FROM few f JOIN few g ON g.id = f.id + 1 WHERE f.n + g.n IN (SELECT u FROM many) ORDER BY f.id",
    "SELECT id FROM few WHERE n IN (SELECT u FROM many) AND n NOT IN (SELECT k FROM many) ORDER BY id",
    "SELECT id FROM few WHERE n IN (SELECT u FROM many) OR n NOT IN (SELECT k FROM many) ORDER BY id",
    "SELECT id, n IN (SELECT u FROM many), n NOT IN (SELECT u FROM many) FROM few ORDER BY id",
    "SELECT id, x IN (SELECT u FROM many), x NOT IN (SELECT w FROM many), s IN (SELECT id FROM many), c NOT IN (SELECT c FROM many WHERE g = 1) FROM few ORDER BY id",
    "SELECT id FROM few WHERE id < 3 OR n IN (SELECT k FROM many WHERE g < 2) ORDER BY id",
    "SELECT id FROM few WHERE id < 3 OR (n NOT IN (SELECT y FROM hollow)) IS NULL OR n NOT IN (SELECT u FROM many WHERE u > 9) ORDER BY id",
    "SELECT id, CASE WHEN n IN (SELECT u FROM many) THEN 'in' WHEN n IN (SELECT k FROM many) THEN 'k' END FROM few ORDER BY id",
    "SELECT id, (SELECT count(*) FROM few b WHERE b.n + few.id IN (SELECT u FROM many)) FROM few ORDER BY id",
    "SELECT count(*), sum(n IN (SELECT u FROM many)) FROM few",
    "SELECT id, (n, s) IN (SELECT u, w FROM many), n IN (SELECT y FROM hollow) FROM few ORDER BY id",
    "SELECT count(*) FILTER (WHERE n NOT IN (SELECT u FROM many)), max(n IN (SELECT k FROM many)) FROM few WHERE id < 5",
    "SELECT n IN (SELECT u FROM many) AS i, count(*), sum(id) FROM few GROUP BY i ORDER BY i",
    "SELECT id, row_number() OVER (PARTITION BY n IN (SELECT u FROM many) ORDER BY id), sum(n NOT IN (SELECT k FROM many)) OVER (ORDER BY id) FROM few ORDER BY id",
    "SELECT id, u NOT IN (SELECT k FROM many) FROM many ORDER BY id LIMIT 3 OFFSET 2",
    "SELECT DISTINCT u IN (SELECT k FROM many) FROM many ORDER BY 1 LIMIT 3",
    "SELECT sum(i) FROM (SELECT n IN (SELECT u FROM many) AS i FROM few)",
    "SELECT f.id, g.id FROM few f LEFT JOIN few g ON g.id = f.id + 1 AND g.n IN (SELECT u FROM many) ORDER BY f.id",
    "SELECT f.id, g.id FROM few f FULL JOIN few g ON g.id = f.id + 1 AND f.n + g.id IN (SELECT k FROM many) ORDER BY f.id, g.id",
    "SELECT f.id, g.id FROM few f FULL JOIN few g ON g.id < f.id AND f.n + g.id NOT IN (SELECT k FROM many) ORDER BY f.id, g.id",
    "VALUES (3 IN (SELECT u FROM many)), (4 IN (SELECT u FROM many)), (NULL IN (SELECT y FROM hollow))",
    "SELECT count(*) FROM many WHERE u IN (SELECT n FROM few)",
    "SELECT count(*) FROM many WHERE u NOT IN (SELECT n FROM few)",
    "SELECT count(*) FROM many WHERE u NOT IN (SELECT k FROM many)",
    "SELECT id FROM many WHERE id = 77 AND u IN (SELECT k FROM many)",
    "SELECT id FROM many WHERE id IN (5, 10) AND u IN (SELECT k FROM many) AND k NOT IN (SELECT u FROM many WHERE g = 2)",
    "SELECT id FROM few WHERE n IN (SELECT u FROM many) LIMIT 2",
    "SELECT id FROM few WHERE n > (SELECT min(u) FROM many) AND EXISTS (SELECT 1 FROM many WHERE u IS NULL) ORDER BY id",
    "SELECT id, n + (SELECT max(u) FROM many), NOT EXISTS (SELECT 1 FROM hollow), -(SELECT y FROM hollow) FROM few WHERE NOT EXISTS (SELECT 1 FROM hollow) ORDER BY id",
];

#[test]
fn either_way_finds_the_same() {
    let queries = QUERIES.join(";\n");
    for change in [
        "SELECT 1",
        "INSERT INTO many(id, u, k) VALUES (5000, NULL, 7)",
        "INSERT INTO many(id, u, k, w, g) VALUES (5000, 30, 7, NULL, NULL)",
        "INSERT INTO hollow VALUES (NULL)",
        "INSERT INTO hollow VALUES (3)",
        "DELETE FROM many WHERE id > 100",
        "DELETE FROM many",
    ] {
        same(&format!("{TABLES}{change};{queries};"));
    }
}

/// What is written is told by the rows as they were before.
#[test]
fn rows_that_are_written_are_looked_up_as_they_were() {
    for statement in [
        "DELETE FROM few WHERE n NOT IN (SELECT id FROM many)",
        "DELETE FROM many WHERE id BETWEEN 10 AND 40 AND u IN (SELECT k FROM many)",
        "DELETE FROM many WHERE id BETWEEN 10 AND 40 AND u NOT IN (SELECT id FROM many)",
        "UPDATE many SET u = u + 1 WHERE id BETWEEN 10 AND 40 AND u + 3 IN (SELECT u FROM many)",
        "UPDATE many SET u = NULL WHERE id BETWEEN 10 AND 40 AND u NOT IN (SELECT k FROM many)",
        "UPDATE many SET u = u IN (SELECT id FROM many WHERE u > 50) WHERE id BETWEEN 10 AND 40",
        "UPDATE many SET id = id - 9, u = u NOT IN (SELECT id FROM many) WHERE id BETWEEN 10 AND 14",
        "INSERT INTO many(u, k) SELECT n, 1 FROM few WHERE n NOT IN (SELECT u FROM many)",
        "INSERT INTO many(u, k) VALUES (6 IN (SELECT u FROM many), 7), (6, 8 IN (SELECT u FROM many))",
        "INSERT INTO few(id, n) VALUES (1, 9), (2, 10), (50, 11) ON CONFLICT DO UPDATE
             SET s = excluded.n IN (SELECT u FROM many) WHERE excluded.n NOT IN (SELECT k FROM many)",
        "INSERT INTO few(n) VALUES (9), (10) RETURNING n, n IN (SELECT u FROM many), id NOT IN (SELECT u FROM many)",
        "UPDATE few SET n = n + 1 WHERE id < 5 RETURNING id, n IN (SELECT u FROM many)",
        "DELETE FROM few WHERE id < 5 RETURNING id, n NOT IN (SELECT u FROM many)",
        "CREATE VIEW seen AS SELECT id, n FROM few; CREATE TRIGGER seen_gone INSTEAD OF DELETE ON seen
             BEGIN DELETE FROM few WHERE id = OLD.id; END;
         DELETE FROM seen WHERE id < 5 RETURNING id, n IN (SELECT u FROM many)",
        "CREATE TRIGGER gone AFTER DELETE ON few BEGIN DELETE FROM many WHERE id < 20; END;
         DELETE FROM few WHERE n IN (SELECT id FROM many)",
    ] {
        same(&format!(
            "{TABLES}{statement}; SELECT * FROM few ORDER BY id; SELECT count(*), sum(id), sum(u) FROM many;"
        ));
    }
}

/// What a statement tells of the rows that it has written, too: SQLite shows of what it reads
/// what it has written so far.
#[test]
fn rows_that_were_written_look_up_what_was_there() {
    for (statement, told) in [
        (
            "DELETE FROM many WHERE id < 5 RETURNING u IN (SELECT u FROM many)",
            "1",
        ),
        (
            "UPDATE many SET u = u + 1 WHERE id < 5 RETURNING u IN (SELECT u FROM many)",
            "0",
        ),
        (
            "INSERT INTO many(u, k) VALUES (1, 1), (1, 1) RETURNING u NOT IN (SELECT u FROM many)",
            "1",
        ),
        (
            "INSERT INTO many(id, k) VALUES (1, 1), (2, 4) ON CONFLICT DO UPDATE SET u = -1,
                 g = u - 3 IN (SELECT u FROM many) RETURNING g * 2 + (-1 IN (SELECT u FROM many)), id",
            "0,1 2,2",
        ),
    ] {
        let engine = support::engine();
        let session = engine.session();
        must(&session, TABLES);
        let shown = must(&session, &format!("EXPLAIN QUERY PLAN {statement}"));
        assert!(shown.join("\n").contains("=r"), "{statement}: {shown:?}");
        let mut rows = must(&session, statement);
        rows.dedup();
        assert_eq!(rows.join(" "), told, "{statement}");
    }
}

/// All that the subquery yields was gathered for one row: 57 to 71 times SQLite's time.
#[test]
fn few_rows_look_up_what_many_gather() {
    let engine = support::engine();
    let session = engine.session();
    must(&session, TABLES);
    for (query, gathers) in [
        ("SELECT * FROM few WHERE n IN (SELECT u FROM many)", false),
        (
            "SELECT * FROM few WHERE n NOT IN (SELECT u FROM many)",
            false,
        ),
        (
            "SELECT * FROM few WHERE n NOT IN (SELECT id FROM many)",
            false,
        ),
        (
            "SELECT * FROM many WHERE id = 7 AND u IN (SELECT k FROM many)",
            false,
        ),
        ("SELECT id, n IN (SELECT u FROM many) FROM few", false),
        (
            "SELECT * FROM few WHERE id = 3 OR n NOT IN (SELECT u FROM many)",
            false,
        ),
        ("SELECT sum(n IN (SELECT u FROM many)) FROM few", false),
        (
            "SELECT count(*) FILTER (WHERE n IN (SELECT u FROM many)) FROM few",
            false,
        ),
        (
            "SELECT count(*) FROM few GROUP BY n IN (SELECT u FROM many)",
            false,
        ),
        (
            "SELECT rank() OVER (ORDER BY n IN (SELECT u FROM many)) FROM few",
            false,
        ),
        ("SELECT u IN (SELECT k FROM many) FROM many LIMIT 5", false),
        (
            "SELECT 1 FROM few f LEFT JOIN few g ON g.id = f.n AND f.n IN (SELECT u FROM many)",
            false,
        ),
        (
            "SELECT 1 FROM few f FULL JOIN few g ON g.id = f.n AND f.n IN (SELECT u FROM many)",
            false,
        ),
        ("VALUES (3 IN (SELECT u FROM many))", false),
        (
            "INSERT INTO few(n) VALUES (3 IN (SELECT u FROM many))",
            false,
        ),
        (
            "INSERT INTO few(n) VALUES (1) RETURNING n IN (SELECT u FROM many)",
            false,
        ),
        (
            "INSERT INTO few(id) VALUES (1) ON CONFLICT DO UPDATE SET n = n IN (SELECT u FROM many)",
            false,
        ),
        (
            "UPDATE few SET n = 1 WHERE id = 1 RETURNING n IN (SELECT u FROM many)",
            false,
        ),
        (
            "DELETE FROM few WHERE id = 1 RETURNING n IN (SELECT u FROM many)",
            false,
        ),
        (
            "DELETE FROM many WHERE id = 1 RETURNING k IN (SELECT u FROM many)",
            false,
        ),
        ("SELECT id, u IN (SELECT k FROM many) FROM many", true),
        (
            "SELECT DISTINCT u IN (SELECT k FROM many) FROM many LIMIT 3",
            true,
        ),
        (
            "SELECT u IN (SELECT k FROM many) FROM many ORDER BY 1 LIMIT 3",
            true,
        ),
        ("SELECT id, n IN (SELECT u + 1 FROM many) FROM few", true),
        // Nothing finds it, it is another one for each row, or there are few of it.
        (
            "SELECT * FROM few WHERE n IN (SELECT u + 1 FROM many)",
            true,
        ),
        (
            "SELECT * FROM many WHERE u NOT IN (SELECT n FROM few)",
            true,
        ),
        ("SELECT * FROM many WHERE u IN (SELECT k FROM many)", true),
        (
            "SELECT * FROM few WHERE n IN (SELECT max(u) FROM many GROUP BY g)",
            true,
        ),
    ] {
        let shown = must(&session, &format!("EXPLAIN QUERY PLAN {query}"));
        let shown = shown.join("\n");
        // What is looked up is handed in.
        let gathered = !shown.contains("=r");
        assert_eq!(gathered, gathers, "{query}: {shown}");
    }
}

/// A transaction depends on what it looked up, found or not, and not on the rest.
#[test]
fn what_is_looked_up_was_read() {
    for query in [
        "SELECT * FROM few WHERE id = 2 AND n NOT IN (SELECT u FROM many)",
        "SELECT n NOT IN (SELECT u FROM many) FROM few WHERE id = 2",
    ] {
        for (changed, is_lost) in [
            ("INSERT INTO many(u, k) VALUES (4, 1)", true),
            ("INSERT INTO many(u, k) VALUES (NULL, 1)", true),
            ("INSERT INTO many(u, k) VALUES (50000, 1)", false),
            ("DELETE FROM many WHERE u = 9000", false),
        ] {
            let write = "INSERT INTO hollow VALUES (1)";
            let lost = support::is_lost(TABLES, query, write, changed);
            assert_eq!(lost, is_lost, "{query}: {changed}");
        }
    }
}
