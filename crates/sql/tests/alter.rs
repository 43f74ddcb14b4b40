//! ALTER TABLE beside bundled SQLite: the texts in sqlite_schema, rows, errors.

mod support;

use fulgurite_sql::session::Engine;
use fulgurite_store::{Options, Store};
use support::{drain, engine, must, prepare, run, same, session};

const SCHEMA: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema";

/// Runs a text in both and compares the schema behind it, too.
fn alters(sql: &str) {
    same(&format!("{sql}; {SCHEMA}"));
}

/// The same for each of these statements on a schema of its own.
fn each(schema: &str, statements: &[&str]) {
    for statement in statements {
        alters(&format!("{schema}; {statement}"));
    }
}

#[test]
fn a_table_gets_another_name() {
    alters(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2); ALTER TABLE T RENAME TO u; SELECT * FROM u; SELECT * FROM t",
    );
    alters(
        "CREATE TABLE  t /* the table */ (a, b); ALTER TABLE t RENAME TO [n\"e w]; SELECT * FROM \"n\"\"e w\"",
    );
    alters(
        "CREATE TABLE t(a); ALTER TABLE main.t RENAME TO u; ALTER TABLE u RENAME TO t; ALTER TABLE t RENAME TO 'x y'",
    );
    alters(
        "CREATE TABLE \"t t\"(a UNIQUE, b PRIMARY KEY, CHECK(a > 0 AND \"t t\".b > 1)); CREATE TABLE c(x REFERENCES [t t](a), y REFERENCES 't t', FOREIGN KEY(x) REFERENCES \"t t\"(b)); CREATE VIEW v AS SELECT a FROM \"t t\" WHERE \"t t\".a = 1; ALTER TABLE \"t t\" RENAME TO [n\"ew]; INSERT INTO \"n\"\"ew\" VALUES (0, 1); INSERT INTO \"n\"\"ew\" VALUES (1, 2); SELECT * FROM v; SELECT * FROM \"n\"\"ew\" ORDER BY b",
    );
    alters(
        "CREATE TABLE t(a UNIQUE, b UNIQUE, t, CHECK(t <> 't' AND t.t <> \"t\")); CREATE INDEX t_t ON t(t, b) WHERE t.t > 't' AND t > 1; CREATE UNIQUE INDEX \"i\"ON\"t\"(a, t + b); ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (1, 2, 3); INSERT INTO u VALUES (1, 3, 4); SELECT * FROM u WHERE a = 1; ALTER TABLE u RENAME TO w; SELECT * FROM w WHERE b = 2; DROP INDEX t_t; DROP TABLE w",
    );
    alters(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, p REFERENCES t, q REFERENCES t(id) ON DELETE CASCADE, FOREIGN KEY(p) REFERENCES T(id) DEFERRABLE INITIALLY DEFERRED); CREATE TABLE o(t REFERENCES t(id), references_t DEFAULT 't', u REFERENCES u); ALTER TABLE t RENAME TO w",
    );
}

#[test]
fn the_names_of_automatic_indexes_follow() {
    alters(
        "CREATE TABLE t(a UNIQUE, b, c, UNIQUE(b, c), PRIMARY KEY(c)); CREATE INDEX sq ON t(b); ALTER TABLE t RENAME TO longer_name; INSERT INTO longer_name VALUES (1, 2, 3), (2, 3, 4); INSERT INTO longer_name VALUES (1, 9, 9); PRAGMA index_list(longer_name); ALTER TABLE longer_name RENAME TO s; SELECT b FROM s WHERE a = 2; PRAGMA integrity_check",
    );
}

#[test]
fn the_sequence_goes_with_the_name() {
    alters(
        "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, b); INSERT INTO t VALUES (7, 1); DELETE FROM t; ALTER TABLE t RENAME TO u; SELECT * FROM sqlite_sequence; INSERT INTO u(b) VALUES (1); SELECT * FROM u; SELECT * FROM sqlite_sequence; ALTER TABLE u RENAME COLUMN id TO key; INSERT INTO u(b) VALUES (2) RETURNING key; ALTER TABLE u DROP COLUMN b; INSERT INTO u DEFAULT VALUES; SELECT * FROM u; SELECT * FROM sqlite_sequence",
    );
    support::same_but_last_rowid(
        "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (7); INSERT INTO sqlite_sequence VALUES ('other', 5), ('x', 6); CREATE TABLE other(a); ALTER TABLE other RENAME TO another; SELECT * FROM sqlite_sequence; ALTER TABLE t RENAME TO x; SELECT * FROM sqlite_sequence",
    );
}

#[test]
fn names_that_a_table_cannot_have() {
    each(
        "CREATE TABLE t(a UNIQUE); CREATE TABLE x(b); CREATE INDEX ix ON x(b); CREATE VIEW v AS SELECT * FROM t",
        &[
            "ALTER TABLE t RENAME TO x",
            "ALTER TABLE t RENAME TO IX",
            "ALTER TABLE t RENAME TO v",
            "ALTER TABLE t RENAME TO t",
            "ALTER TABLE t RENAME TO T",
            "ALTER TABLE t RENAME TO sqlite_foo",
            "ALTER TABLE t RENAME TO sqlite_schema",
            "ALTER TABLE t RENAME TO sqlite_autoindex_t_1",
            "ALTER TABLE v RENAME TO w",
            "ALTER TABLE v RENAME TO x",
            "ALTER TABLE v RENAME COLUMN a TO b",
            "ALTER TABLE v DROP COLUMN a",
            "ALTER TABLE v ADD COLUMN a",
            "ALTER TABLE nope RENAME TO x",
            "ALTER TABLE nope RENAME TO y",
            "ALTER TABLE nope DROP COLUMN y",
            "ALTER TABLE ix RENAME TO y",
            "ALTER TABLE sqlite_schema RENAME TO x",
            "ALTER TABLE sqlite_schema RENAME TO y",
            "ALTER TABLE sqlite_master RENAME COLUMN name TO y",
            "ALTER TABLE sqlite_master DROP COLUMN name",
            "ALTER TABLE sqlite_master ADD COLUMN y",
        ],
    );
}

#[test]
fn views_follow_a_table() {
    let views = [
        "SELECT t.*, (SELECT max(a) FROM t AS q WHERE q.a = t.a) FROM t WHERE t.a IN (SELECT b FROM t) AND EXISTS(SELECT 1 FROM main.t)",
        "WITH t AS (SELECT 1 AS a) SELECT a, t.a FROM t",
        "WITH q AS (SELECT a FROM t), unused AS (SELECT t.a FROM t) SELECT * FROM q",
        "WITH q AS (WITH t(b) AS (SELECT 5) SELECT t.b FROM t) SELECT t.b, q.b FROM q, t",
        "WITH t AS (SELECT * FROM main.t) SELECT t.a FROM t",
        "SELECT t.a FROM t AS t WHERE t.a IN (SELECT a FROM t)",
        "SELECT x.a FROM t x JOIN t ON t.a = x.a ORDER BY t.b, x.a",
        "SELECT a FROM t UNION SELECT b FROM t ORDER BY a",
        "SELECT t.a FROM t UNION ALL SELECT o.a FROM t AS o EXCEPT SELECT c FROM o AS t",
        "SELECT t.rowid, t.a AS t FROM t GROUP BY t.a HAVING count(t.b) > 1 ORDER BY t",
        "SELECT * FROM (SELECT t.a FROM t) AS t, t AS z WHERE t.a = z.a",
        "SELECT main.t.a FROM main.t",
        "SELECT 't' FROM t WHERE t.a = \"t\".\"b\" OR 'x' LIKE \"t\"",
        "SELECT CAST(t.a AS t), [t].[a]`t`, t.b\"t\"FROM\"t\"",
        "SELECT o.c, t.a FROM o LEFT JOIN t ON o.a = t.a WHERE coalesce(t.b, 1)",
        "SELECT t.a FROM (t JOIN o USING (a)) WHERE t.b = 1",
        "SELECT (SELECT t.a + o.a FROM o) FROM t WHERE (SELECT count(*) FROM (SELECT t.b))",
        "SELECT sum(t.a) FILTER (WHERE t.b), CASE t.a WHEN t.b THEN t.a ELSE t.b END FROM t NATURAL JOIN o LIMIT (SELECT count(t.a) FROM t)",
        "VALUES ((SELECT t.a FROM t), 't')",
        "SELECT T.a, \"T\".b FROM T",
        "SELECT a FROM v0",
    ];
    for view in views {
        alters(&format!(
            "CREATE TABLE t(a, b); CREATE TABLE o(a, c); INSERT INTO t VALUES (1, 2); INSERT INTO o VALUES (1, 3); CREATE VIEW v0 AS SELECT * FROM t; CREATE VIEW v AS {view}; SELECT * FROM v; ALTER TABLE t RENAME TO new; SELECT * FROM v"
        ));
    }
}

#[test]
fn a_column_gets_another_name() {
    alters(
        "CREATE TABLE t(a, b, \"c d\"); CREATE INDEX i ON t(a, \"b\", 'b', a + b, [a]); ALTER TABLE t RENAME a TO z; ALTER TABLE t RENAME COLUMN \"b\" TO \"y\"; ALTER TABLE t RENAME \"c d\" TO cd; ALTER TABLE t RENAME z TO [q r]; ALTER TABLE t RENAME [q r]TO w; INSERT INTO t(w, y, cd) VALUES (1, 2, 3); SELECT * FROM t WHERE w = 1",
    );
    alters(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c CHECK(c > a), d REFERENCES t(b), e DEFAULT \"a\", f DEFAULT a, UNIQUE(b, a COLLATE nocase), CHECK(t.a > 'a' AND \"a\" <> \"zz\"), FOREIGN KEY(a, b) REFERENCES t(b, a)); CREATE TABLE u(x REFERENCES t(a), y REFERENCES t, FOREIGN KEY(x, y) REFERENCES T(b, \"a\")); CREATE VIEW v AS SELECT \"a\", \"zz\" FROM t; ALTER TABLE t RENAME a TO a2; ALTER TABLE t RENAME b TO \"b2\"",
    );
    alters(
        "CREATE TABLE t(a a, b \"a\", CONSTRAINT a CHECK(a > CAST(b AS a)), CONSTRAINT b UNIQUE(a)); ALTER TABLE t RENAME a TO b2; ALTER TABLE t RENAME b TO a",
    );
    alters(
        "CREATE TABLE kv(key TEXT PRIMARY KEY, value, CHECK(key <> 'key')); INSERT INTO kv VALUES ('a', 1); CREATE INDEX i ON kv(key DESC, value); CREATE VIEW v AS SELECT key, value AS key2 FROM kv ORDER BY key; ALTER TABLE kv RENAME key TO k; INSERT INTO kv VALUES ('key', 1); INSERT INTO kv VALUES ('a', 1); SELECT * FROM v; ALTER TABLE kv RENAME k TO desc; SELECT * FROM v; CREATE VIEW w AS SELECT desc FROM kv ORDER BY kv.desc DESC, desc; ALTER TABLE kv RENAME desc TO asc; SELECT * FROM w; ALTER TABLE kv RENAME asc TO \"order\"; SELECT * FROM w",
    );
    alters(
        "CREATE TABLE t(left, natural, \"left join\"); CREATE VIEW v AS SELECT left, t.natural FROM t NATURAL JOIN t AS x LEFT JOIN t AS y ON y.left = x.left; ALTER TABLE t RENAME left TO l; ALTER TABLE t RENAME natural TO n; ALTER TABLE t RENAME l TO cross; SELECT * FROM v",
    );
    // The columns that NATURAL joins have no names in the text.
    for columns in ["*", "a", "x.b", "t.b, x.a"] {
        alters(&format!(
            "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2); CREATE VIEW v AS SELECT {columns} FROM t NATURAL JOIN t AS x; ALTER TABLE t RENAME b TO c; ALTER TABLE t RENAME a TO b; SELECT * FROM v"
        ));
    }
    alters(
        "CREATE TABLE t(count, b); CREATE VIEW v AS SELECT count(count), max(count) FROM t GROUP BY count; ALTER TABLE t RENAME count TO max; ALTER TABLE t RENAME max TO c",
    );
    each(
        "CREATE TABLE t(a, b); CREATE TABLE o(a)",
        &[
            "ALTER TABLE t RENAME a TO b",
            "ALTER TABLE t RENAME a TO B",
            "ALTER TABLE t RENAME nope TO b",
            "ALTER TABLE t RENAME \"nope\" TO b",
            "ALTER TABLE t RENAME COLUMN [no pe] TO b",
            "ALTER TABLE t RENAME a TO A",
            "ALTER TABLE t RENAME a TO a",
            "ALTER TABLE t RENAME rowid TO x",
            "ALTER TABLE t RENAME a TO rowid",
            "ALTER TABLE t RENAME a TO 'x'",
            "ALTER TABLE t RENAME a TO \"select\"",
            "ALTER TABLE t RENAME a TO o",
            "ALTER TABLE t RENAME nope TO oid",
            "ALTER TABLE t ADD \"rowid\" INT",
        ],
    );
    each(
        "CREATE TABLE t(rowid, \"OID\", a)",
        &[
            "ALTER TABLE t RENAME rowid TO x",
            "ALTER TABLE t RENAME oid TO _ROWID_",
            "ALTER TABLE t RENAME a TO '_ROWID_'",
            "ALTER TABLE t DROP oid",
            "ALTER TABLE t DROP a",
        ],
    );
}

#[test]
fn views_follow_a_column() {
    let views = [
        "SELECT q.z2 FROM (SELECT a AS z2 FROM t) q",
        "SELECT a FROM t UNION SELECT b FROM t ORDER BY a",
        "SELECT b FROM t UNION SELECT a FROM t ORDER BY a",
        "SELECT c FROM o UNION SELECT a FROM t ORDER BY c",
        "SELECT a FROM o UNION SELECT a FROM t ORDER BY a",
        "SELECT a + 1 FROM t UNION SELECT b FROM t ORDER BY a + 1",
        "SELECT a AS a FROM t UNION SELECT b FROM t ORDER BY a COLLATE nocase",
        "SELECT a FROM t UNION SELECT b FROM t ORDER BY 1",
        "SELECT a, b AS a FROM t ORDER BY a",
        "SELECT b AS a FROM t GROUP BY a HAVING a > 1",
        "SELECT b AS a FROM t WHERE a > 1",
        "WITH q(a) AS (SELECT a FROM t), w AS (SELECT a FROM t) SELECT a FROM q",
        "WITH q AS (SELECT a AS x FROM t) SELECT x FROM q, t WHERE a = x",
        "WITH t AS (SELECT a FROM o) SELECT a, t.a FROM t",
        "SELECT count(a) FILTER (WHERE a > 1), max(t.a), (SELECT a FROM (SELECT 1 AS a)), (SELECT a + b FROM (SELECT 1)) FROM t LIMIT 5",
        "SELECT CAST(a AS a), \"a\", [a], `a`, 'a', a a, a AS 'a' FROM t",
        "SELECT t.a FROM t JOIN o ON t.a = o.a AND o.a = c",
        "SELECT x.a, y.a, o.a FROM t x, t AS y, o WHERE x.b IN (y.a, o.a)",
        "SELECT t.a FROM (t JOIN o) WHERE b = 1",
        "SELECT (SELECT o.a FROM o WHERE o.a = t.a AND a = b) FROM t WHERE b IN (1) AND (b, a) IN (SELECT a, b FROM t)",
        "SELECT a FROM (SELECT a FROM t)",
        "SELECT a FROM v0",
        "SELECT * FROM v0",
        "SELECT * FROM t JOIN o USING (a)",
        "SELECT * FROM t NATURAL JOIN o",
        "SELECT a IS NULL, a BETWEEN a AND \"a\", a LIKE a ESCAPE 'a', NOT a, -a, ~a, a COLLATE nocase, (a) IN (), a NOTNULL FROM t",
        "SELECT a FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.a = o.a AND a = t.b)",
        "SELECT c AS a FROM o ORDER BY a",
        "SELECT \"a\", \"new\", \"it\" AS \"b\" FROM t",
        "SELECT \"x\"\"y\"'z' FROM t WHERE a=\"new\"OR b",
        "SELECT a FROM t AS new WHERE new.a = 1",
        "SELECT b AS new FROM t WHERE new > 1 ORDER BY new",
        "SELECT a FROM t, (SELECT 1 AS new) WHERE new = 1",
        "VALUES ((SELECT a FROM t))",
        "SELECT T.A, \"A\" FROM t",
    ];
    for view in views {
        alters(&format!(
            "CREATE TABLE t(a, b); CREATE TABLE o(a, c); INSERT INTO t VALUES (1, 2); INSERT INTO o VALUES (1, 3); CREATE VIEW v0 AS SELECT * FROM t; CREATE VIEW v AS {view}; SELECT * FROM v; ALTER TABLE t RENAME a TO new; SELECT * FROM v; ALTER TABLE t RENAME b TO \"b b\"; SELECT * FROM v"
        ));
    }
}

/// What does not resolve before is no matter of the change, and all has to after it.
#[test]
fn texts_that_mean_nothing() {
    for view in [
        "SELECT * FROM nope",
        "SELECT a, nope FROM t",
        "SELECT t.nope FROM t",
        "SELECT a FROM t, t AS u",
        "SELECT nope(a) FROM t",
        "SELECT * FROM v",
        "SELECT a FROM t ORDER BY 5",
        "SELECT b FROM t GROUP BY 5, 1",
        "SELECT a FROM t UNION SELECT c FROM o ORDER BY 5",
        "SELECT a FROM t UNION SELECT c FROM o ORDER BY b",
        "SELECT a FROM t UNION SELECT c, d FROM o",
        "SELECT a FROM t LIMIT b",
        "SELECT * FROM t JOIN o USING (a)",
        "SELECT x.* FROM t",
        "SELECT *",
        "SELECT substr(a) FROM t",
        "SELECT a FROM t INDEXED BY nope",
        "SELECT o.t.a FROM t",
        "WITH q AS (SELECT nope FROM t) SELECT a FROM t",
        "WITH q AS (SELECT nope FROM t) SELECT * FROM q",
        "WITH q(x, y) AS (SELECT a FROM t) SELECT * FROM q",
    ] {
        each(
            &format!("CREATE TABLE t(a, b); CREATE TABLE o(c, d); CREATE VIEW v AS {view}"),
            &[
                "ALTER TABLE t RENAME TO u",
                "ALTER TABLE t RENAME a TO z",
                "ALTER TABLE t DROP COLUMN b",
                "ALTER TABLE o DROP COLUMN c",
            ],
        );
    }
}

#[test]
fn a_column_goes() {
    alters(
        "CREATE TABLE t(a, b, c); INSERT INTO t VALUES (1, 2, 3), (4, 5, 6); ALTER TABLE t DROP COLUMN b; SELECT * FROM t; ALTER TABLE t DROP a; SELECT *, rowid FROM t; ALTER TABLE t DROP c; INSERT INTO t VALUES (7); SELECT * FROM t",
    );
    alters(
        "CREATE TABLE t(a, b, id INTEGER PRIMARY KEY, c UNIQUE); CREATE INDEX i ON t(c, id, a DESC) WHERE a > 0; INSERT INTO t VALUES (1, 2, 3, 4), (5, 6, 7, 8); ALTER TABLE t DROP b; SELECT * FROM t; SELECT id FROM t WHERE c = 8 AND a > 0; INSERT INTO t VALUES (9, 3, 9); INSERT INTO t VALUES (9, 10, 8); INSERT INTO t VALUES (9, 10, 11); UPDATE t SET a = 2 WHERE c = 4; SELECT a FROM t WHERE a > 0 ORDER BY c, id; PRAGMA integrity_check",
    );
    alters(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2); ALTER TABLE t ADD c DEFAULT 3; ALTER TABLE t ADD d DEFAULT 'four'; INSERT INTO t VALUES (5, 6, 7, 8); ALTER TABLE t DROP c; SELECT * FROM t; ALTER TABLE t DROP a; SELECT * FROM t; ALTER TABLE t ADD e DEFAULT 5; SELECT * FROM t; ALTER TABLE t DROP d; SELECT * FROM t; ALTER TABLE t DROP b; SELECT * FROM t; UPDATE t SET e = e + 1; SELECT * FROM t; PRAGMA integrity_check",
    );
    alters(
        "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); ALTER TABLE t ADD b DEFAULT 3; ALTER TABLE t DROP a; SELECT * FROM t; SELECT count(*), sum(b) FROM t WHERE b = 3; CREATE INDEX i ON t(b); SELECT rowid FROM t WHERE b = 3; ALTER TABLE t ADD c; UPDATE t SET c = rowid; SELECT * FROM t",
    );
    // Index entries stay, with what their keys cannot tell.
    alters(
        "CREATE TABLE t(x, a TEXT COLLATE nocase, r REAL, n, y); CREATE INDEX i ON t(a, r DESC, n); INSERT INTO t VALUES (1, 'Ab', 1, 2.0, 5), (2, 'aB', -0.0, 3, 6), (3, NULL, 2.5, 4.0, 7); ALTER TABLE t DROP x; ALTER TABLE t DROP y; SELECT a, r, n, typeof(n) FROM t INDEXED BY i WHERE a >= 'a' ORDER BY a, r; UPDATE t SET n = 9 WHERE a = 'ab' AND r = 1; SELECT a, r, n FROM t INDEXED BY i WHERE a = 'AB' ORDER BY r; PRAGMA integrity_check",
    );
    // Rows of which nothing is stored, and between them others.
    alters(
        "CREATE TABLE d(n); INSERT INTO d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9); CREATE TABLE t(a); INSERT INTO t SELECT p.n FROM d p, d q, d r, d s; ALTER TABLE t ADD b DEFAULT 'b'; ALTER TABLE t ADD c DEFAULT 7; ALTER TABLE t DROP a; SELECT count(*), count(b), sum(c), max(b) FROM t; UPDATE t SET b = rowid WHERE rowid % 3 = 0; UPDATE t SET c = rowid WHERE rowid % 5 = 0; SELECT count(*), sum(b), sum(c), min(c) FROM t WHERE b <> 'x'; CREATE INDEX i ON t(c, b); SELECT count(*) FROM t WHERE c = 7 AND b = 'b'; ALTER TABLE t ADD e DEFAULT 5; DROP INDEX i; ALTER TABLE t DROP c; SELECT count(*), sum(b), sum(e), count(e) FROM t; DELETE FROM t WHERE b = 'b'; SELECT count(*), sum(b) FROM t; PRAGMA integrity_check",
    );
    let texts = [
        "CREATE TABLE t ( a int , b text default ',)' /* of b , */ , -- before c\n c -- behind c\n , /* x */ d /* y */ ) ",
        "CREATE TABLE t(a,b,c,d)",
        "CREATE TABLE t(\"a\"int,\"b\"text,[c],'d'text)",
        "CREATE TABLE t(a, b int DEFAULT ((1)) , c, d, PRIMARY KEY(a), CHECK(a > 1))",
        "CREATE TABLE t(a CHECK(a > 1), b, c, d, CONSTRAINT k CHECK(a>1) CHECK(a>2) UNIQUE(a))",
        "CREATE TABLE t(a, b CHECK(a>1) CONSTRAINT k, c CONSTRAINT m NOT NULL, d CONSTRAINT \"a,b\")",
        "CREATE TABLE t(a, b/*)*/ , c /*(*/, d/*,*/)",
        "CREATE TABLE t(a, b CHECK(b IN (1,2)) CHECK(a>1), c REFERENCES t(a), d CHECK(d > c))",
        "CREATE TABLE t(a,\n  b,\n  c,\n  d\n)",
        "CREATE TABLE t(a DEFAULT \"b\", b DEFAULT \"zz\", c CHECK(c <> \"zz\"), d DEFAULT 'x,y)')",
    ];
    for text in texts {
        each(
            text,
            &[
                "ALTER TABLE t DROP a",
                "ALTER TABLE t DROP b; ALTER TABLE t DROP \"d\"",
                "ALTER TABLE t DROP c; ALTER TABLE t ADD e; ALTER TABLE t DROP d; ALTER TABLE t RENAME e TO f",
                "ALTER TABLE t DROP D; ALTER TABLE t DROP c; ALTER TABLE t DROP b; ALTER TABLE t DROP a",
            ],
        );
    }
}

#[test]
fn columns_that_must_stay() {
    each(
        "CREATE TABLE t(a, b, c UNIQUE, d, e REFERENCES t(d), f, g, id INTEGER PRIMARY KEY, CHECK(f > 0), UNIQUE(g, b), FOREIGN KEY(d) REFERENCES t(a)); CREATE TABLE o(x REFERENCES t(a))",
        &[
            "ALTER TABLE t DROP a",
            "ALTER TABLE t DROP b",
            "ALTER TABLE t DROP c",
            "ALTER TABLE t DROP d",
            "ALTER TABLE t DROP e",
            "ALTER TABLE t DROP f",
            "ALTER TABLE t DROP g",
            "ALTER TABLE t DROP id",
            "ALTER TABLE t DROP rowid",
            "ALTER TABLE t DROP \"nope\"",
            "ALTER TABLE o DROP x",
        ],
    );
    let users = [
        "CREATE INDEX i ON t(a, b)",
        "CREATE INDEX i ON t(\"b\")",
        "CREATE INDEX i ON t(a, \"b\" || 'x')",
        "CREATE INDEX i ON t(a) WHERE b > 1",
        "CREATE INDEX i ON t(a) WHERE t.b > 1",
        "CREATE INDEX i ON t(a) WHERE \"b\" > \"c\"",
        "CREATE VIEW v AS SELECT b FROM t",
        "CREATE VIEW v AS SELECT \"b\" FROM t",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE VIEW v AS SELECT t.b FROM t",
        "CREATE VIEW v AS SELECT a FROM t ORDER BY b",
        "CREATE VIEW v AS SELECT \"it\" FROM t",
        "CREATE VIEW v AS SELECT b FROM t; CREATE INDEX i ON t(b)",
        "CREATE INDEX i ON t(b); CREATE VIEW v AS SELECT b FROM t",
        "CREATE VIEW v AS SELECT * FROM t; CREATE VIEW w AS SELECT b FROM v",
        "CREATE VIEW v(x, y) AS SELECT * FROM t",
    ];
    for user in users {
        each(
            &format!("CREATE TABLE t(a, b); {user}"),
            &["ALTER TABLE t DROP b"],
        );
    }
}

#[test]
fn transactions_take_changes_back() {
    alters(
        "CREATE TABLE t(a, b); BEGIN; ALTER TABLE t RENAME a TO z; SAVEPOINT s; ALTER TABLE t RENAME TO u; ALTER TABLE u DROP b; INSERT INTO u VALUES (1); ROLLBACK TO s; SELECT * FROM t; ALTER TABLE t DROP b; INSERT INTO t VALUES (3); COMMIT; SELECT * FROM t",
    );
    alters(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2); BEGIN; ALTER TABLE t RENAME a TO z; INSERT INTO t VALUES (3, 4); ALTER TABLE t DROP b; SELECT * FROM t; ROLLBACK; SELECT a, b FROM t; SELECT z FROM t",
    );
    alters(
        "CREATE TABLE t(a UNIQUE, b); INSERT INTO t VALUES (1, 2); BEGIN; INSERT INTO t VALUES (5, 6), (7, 8); ALTER TABLE t DROP b; INSERT INTO t VALUES (9); INSERT INTO t VALUES (7); SELECT * FROM t ORDER BY rowid; COMMIT; SELECT * FROM t ORDER BY rowid; PRAGMA integrity_check",
    );
    // SQLite's connection goes on with the columns of the change that it refused.
    let session = session();
    must(
        &session,
        "CREATE TABLE t(a, b); CREATE VIEW v AS SELECT b FROM t; INSERT INTO t VALUES (1, 2); BEGIN; INSERT INTO t VALUES (3, 4)",
    );
    let refused = run(&session, "ALTER TABLE t DROP b");
    assert_eq!(
        refused,
        ["error 1: error in view v after drop column: no such column: b"]
    );
    let kept = must(&session, "SELECT * FROM t; COMMIT; SELECT * FROM v");
    assert_eq!(kept, ["1,2", "3,4", "2", "4"]);
}

/// Where SQLite doesn't find a name that it knows, so that the change fails.
#[test]
fn names_that_sqlite_does_not_find() {
    const TABLE: &str = "ALTER TABLE t RENAME TO u";
    const COLUMN: &str = "ALTER TABLE t RENAME z TO \"u\"";
    for (renames, view, sqlite, ours) in [
        (
            TABLE,
            "SELECT 1 FROM o WHERE a IN t",
            "error in view v after rename: no such table: main.t",
            "SELECT 1 FROM o WHERE a IN \"u\"",
        ),
        (
            COLUMN,
            "SELECT z.z FROM t AS z JOIN t AS y USING (z)",
            "error in view v after rename: cannot join using column z - column not present in both tables",
            "SELECT z.\"u\" FROM t AS z JOIN t AS y USING (\"u\")",
        ),
        (
            COLUMN,
            "SELECT * FROM t UNION SELECT z FROM t ORDER BY z",
            "error in view v after rename: 1st ORDER BY term does not match any column in the result set",
            "SELECT * FROM t UNION SELECT \"u\" FROM t ORDER BY \"u\"",
        ),
        (
            COLUMN,
            "SELECT t.z FROM o LEFT JOIN (t JOIN o AS p) ON t.z = o.a",
            "error in view v: no such column: t.z",
            "SELECT t.\"u\" FROM o LEFT JOIN (t JOIN o AS p) ON t.\"u\" = o.a",
        ),
        (
            COLUMN,
            "SELECT z, t.* FROM t ORDER BY z",
            "error in view v after rename: no such column: z",
            "SELECT \"u\", t.* FROM t ORDER BY \"u\"",
        ),
    ] {
        let before = format!("CREATE TABLE t(z); CREATE TABLE o(a); CREATE VIEW v AS {view}; ");
        let theirs = rusqlite::Connection::open_in_memory().unwrap();
        theirs.execute_batch(&before).unwrap();
        assert_eq!(
            support::sqlite(&theirs, renames),
            [format!("error 1: {sqlite}")]
        );
        let session = session();
        must(&session, &before);
        must(&session, renames);
        assert_eq!(
            run(&session, "SELECT sql FROM sqlite_schema WHERE name = 'v'"),
            [format!("'CREATE VIEW v AS {ours}'")]
        );
        must(&session, "SELECT * FROM v");
    }
}

/// A statement that was compiled before finds the table as it is now.
#[test]
fn statements_of_other_connections_go_on() {
    let engine = engine();
    let (one, other) = (engine.session(), engine.session());
    must(
        &one,
        "CREATE TABLE t(a, b, c); INSERT INTO t VALUES (1, 2, 3)",
    );
    let mut all = prepare(&other, "SELECT * FROM t");
    let mut named = prepare(&other, "SELECT c FROM t");
    let mut insert = prepare(&other, "INSERT INTO t(a, c) VALUES (4, 5)");
    assert_eq!(drain(&mut all), ["1,2,3"]);
    assert_eq!(drain(&mut named), ["3"]);
    must(&one, "ALTER TABLE t DROP b");
    assert_eq!(drain(&mut insert), Vec::<String>::new());
    assert_eq!(drain(&mut all), ["1,3", "4,5"]);
    assert_eq!(drain(&mut named), ["3", "5"]);
    must(&one, "ALTER TABLE t RENAME c TO b");
    assert_eq!(drain(&mut all), ["1,3", "4,5"]);
    assert_eq!(drain(&mut named), ["error 1: no such column: c"]);
    must(&one, "ALTER TABLE t RENAME TO u");
    assert_eq!(drain(&mut all), ["error 1: no such table: t"]);
    assert_eq!(
        run(&other, "EXPLAIN QUERY PLAN ALTER TABLE u DROP b").len(),
        1
    );
    assert_eq!(run(&other, "SELECT * FROM u"), ["1,3", "4,5"]);
}

/// Who used the schema as it was conflicts with the change, and a snapshot keeps it.
#[test]
fn overlapping_transactions() {
    let engine = engine();
    let (one, other) = (engine.session(), engine.session());
    for change in [
        "ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t",
        "ALTER TABLE t RENAME a TO z",
        "ALTER TABLE t DROP b",
    ] {
        must(
            &one,
            "DROP TABLE IF EXISTS t; CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (3, 4)",
        );
        must(
            &other,
            "BEGIN; SELECT * FROM t; UPDATE t SET b = 5 WHERE a = 1",
        );
        must(&one, change);
        let kept = run(
            &other,
            "SELECT a, b FROM t; INSERT INTO t(a, b) VALUES (7, 8); COMMIT",
        );
        assert_eq!(kept.first().map(String::as_str), Some("1,5"), "{change}");
        let lost = kept.last().cloned().unwrap_or_default();
        assert!(lost.starts_with("error 517"), "{change}: {kept:?}");
        run(&other, "ROLLBACK");
        assert_eq!(run(&one, "SELECT count(*), sum(rowid) FROM t"), ["2,3"]);
        assert_eq!(run(&other, "PRAGMA integrity_check"), ["'ok'"], "{change}");
    }
}

/// Many times what the cache holds, in and outside of a transaction that is taken back.
#[test]
fn a_column_of_a_large_table_goes() {
    let options = Options {
        cache_bytes: 2 << 20,
        ..Options::default()
    };
    let session = Engine::open(Store::in_memory(options).unwrap())
        .unwrap()
        .session();
    must(
        &session,
        "CREATE TABLE t(a INT, gone TEXT, id INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(a);
         CREATE TABLE d(n); INSERT INTO d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
         INSERT INTO t SELECT p.n, printf('%050d', q.n), NULL, 'b' || r.n FROM d p, d q, d r, d s, d u;
         ALTER TABLE t ADD late DEFAULT 'late'; UPDATE t SET late = id WHERE id % 2",
    );
    let sums = "SELECT count(*), sum(a), sum(id), sum(length(b)), sum(length(late)) FROM t";
    let before = must(&session, sums);
    must(&session, "BEGIN; ALTER TABLE t DROP gone");
    assert_eq!(must(&session, sums), before);
    must(&session, "ROLLBACK");
    assert_eq!(
        run(
            &session,
            "SELECT length(gone), late FROM t WHERE id > 99999"
        ),
        ["50,'late'"]
    );
    must(&session, "ALTER TABLE t DROP gone");
    assert_eq!(must(&session, sums), before);
    assert_eq!(
        run(&session, "SELECT * FROM t WHERE id = 99999"),
        ["9,99999,'b9',99999"]
    );
    assert_eq!(
        run(&session, "SELECT count(*) FROM t WHERE a = 3"),
        ["10000"]
    );
    assert_eq!(run(&session, "PRAGMA integrity_check"), ["'ok'"]);
}

#[test]
fn long_and_deep_texts() {
    let deep = format!("({}a)", "a + ".repeat(900));
    alters(&format!(
        "CREATE TABLE t(a, b CHECK ({deep})); CREATE INDEX i ON t({deep}); CREATE VIEW v AS SELECT {deep} FROM t; ALTER TABLE t RENAME a TO \"new\"; ALTER TABLE t RENAME TO u"
    ));
    let many = vec!["\"key\",key"; 400].join(", ");
    let words = vec!["key DESC, t.key asc"; 100].join(", ");
    alters(&format!(
        "CREATE TABLE t(key TEXT PRIMARY KEY, b); CREATE VIEW v AS SELECT {many} FROM t WHERE key IN ({many}) ORDER BY {words}; ALTER TABLE t RENAME key TO desc; SELECT * FROM v; ALTER TABLE t RENAME desc TO k; ALTER TABLE t RENAME TO key"
    ));
}
