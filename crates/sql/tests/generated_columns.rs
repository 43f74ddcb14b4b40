//! Generated columns: how they are declared, computed, indexed, constrained and altered,
//! VIRTUAL and STORED, in all statements that read or write them.

mod common;
mod support;

use common::Random;
use support::{must, run, same, session, sqlite};

#[test]
fn foreign_keys_have_generated_columns_on_both_sides() {
    for sql in [
        "PRAGMA foreign_keys = ON; CREATE TABLE p(a PRIMARY KEY, b AS (a + 1) UNIQUE); CREATE TABLE c(x, y AS (x) REFERENCES p ON UPDATE CASCADE ON DELETE SET NULL, z AS (x + 1) STORED REFERENCES p(b)); INSERT INTO c VALUES (1); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1); UPDATE c SET x = 5; DELETE FROM p; UPDATE p SET a = 7; SELECT * FROM c; SELECT * FROM p; PRAGMA foreign_key_check; UPDATE c SET x = NULL; DELETE FROM p",
        "PRAGMA foreign_keys = ON; CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(x REFERENCES p ON UPDATE CASCADE ON DELETE SET NULL, y AS (x + 1), z AS (x || 'z') STORED); CREATE INDEX i ON c(y); INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1), (2); UPDATE p SET a = 10 WHERE a = 1; SELECT * FROM c; SELECT y FROM c WHERE y = 11; DELETE FROM p WHERE a = 2; SELECT * FROM c; PRAGMA integrity_check",
        "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY, k AS (id * 10) UNIQUE); CREATE TABLE c(x, v AS (x + 0) REFERENCES p(k), s AS (x) STORED REFERENCES p(k)); INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (10), (20), (NULL); INSERT INTO c VALUES (5); DELETE FROM p WHERE id = 1; UPDATE p SET id = 3 WHERE id = 2; UPDATE c SET x = 20 WHERE x = 10; DELETE FROM p WHERE id = 1; SELECT * FROM p; SELECT * FROM c; UPDATE c SET x = 99; PRAGMA foreign_key_check; PRAGMA foreign_keys = OFF; UPDATE c SET x = 99; PRAGMA foreign_key_check; PRAGMA foreign_key_list(c)",
        "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY, k AS (id * 10) UNIQUE); CREATE TABLE c(x, v AS (x + 0) REFERENCES p(k) ON DELETE CASCADE); INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (10), (20), (NULL); DELETE FROM p WHERE id = 1; SELECT * FROM c; UPDATE p SET id = 5; DELETE FROM p; SELECT * FROM c",
        "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY, k AS (id * 10) UNIQUE); CREATE TABLE c(x REFERENCES p(k) ON UPDATE CASCADE ON DELETE SET DEFAULT DEFAULT 20, v AS (x + 0)); CREATE INDEX i ON c(v); INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (10), (10), (NULL); UPDATE p SET id = 7 WHERE id = 1; SELECT * FROM c; SELECT * FROM c WHERE v = 70; DELETE FROM p WHERE id = 7; SELECT * FROM c; PRAGMA integrity_check",
    ] {
        same(sql);
    }
}

#[test]
fn altering_rewrites_and_refuses() {
    for sql in [
        "CREATE TABLE t(a, b AS (a)); ALTER TABLE t ADD COLUMN c AS (a+b) STORED; INSERT INTO t VALUES (3); SELECT * FROM t; ALTER TABLE t RENAME COLUMN a TO z; SELECT sql FROM sqlite_schema; ALTER TABLE t RENAME TO u; ALTER TABLE u DROP COLUMN z; ALTER TABLE u DROP COLUMN b; ALTER TABLE u DROP COLUMN c; SELECT * FROM u; ALTER TABLE u DROP COLUMN b; SELECT sql FROM sqlite_schema",
        "CREATE TABLE t(a, b AS (a+1) STORED, c AS (b+1)); INSERT INTO t VALUES (1); ALTER TABLE t RENAME COLUMN b TO bb; SELECT sql FROM sqlite_schema; SELECT * FROM t; ALTER TABLE t DROP COLUMN bb; ALTER TABLE t DROP COLUMN c; ALTER TABLE t DROP COLUMN bb; SELECT * FROM t",
        r#"CREATE TABLE t(a, b AS ("a" || 'a' || "zz")); ALTER TABLE t RENAME COLUMN a TO zz; SELECT sql FROM sqlite_schema; INSERT INTO t VALUES (1); SELECT * FROM t"#,
        "CREATE TABLE t(a, b AS (a) CHECK (b < 5), c, CHECK (b + c > 0)); ALTER TABLE t RENAME COLUMN b TO x; SELECT sql FROM sqlite_schema; CREATE VIEW v AS SELECT x FROM t; ALTER TABLE t RENAME COLUMN x TO y; SELECT sql FROM sqlite_schema; INSERT INTO t VALUES (1, 2); SELECT * FROM v; INSERT INTO t VALUES (9, 2); PRAGMA table_info(v)",
        "CREATE TABLE t(a, b AS (a)); CREATE INDEX i ON t(b); ALTER TABLE t DROP COLUMN b; DROP INDEX i; ALTER TABLE t DROP COLUMN b; SELECT * FROM t; INSERT INTO t VALUES (1)",
        "CREATE TABLE t(a, b AS (a) VIRTUAL, c); INSERT INTO t(a, c) VALUES (1, 2), (3, 4); ALTER TABLE t DROP COLUMN b; SELECT * FROM t; INSERT INTO t VALUES (5, 6); SELECT * FROM t",
        "CREATE TABLE t(a, c); INSERT INTO t VALUES (1, 2); ALTER TABLE t ADD COLUMN d INT AS (a + c) CHECK (d > 0); ALTER TABLE t ADD COLUMN e AS (d * 2); ALTER TABLE t ADD COLUMN f DEFAULT 7; SELECT * FROM t; INSERT INTO t VALUES (3, 4, 5); SELECT * FROM t; INSERT INTO t VALUES (3, -4, 5); CREATE UNIQUE INDEX i ON t(e); INSERT INTO t VALUES (4, 3, 5); SELECT e FROM t WHERE e = 14",
        "CREATE TABLE t(a, b AS (abs(a)), c); ALTER TABLE t ADD COLUMN d AS (a); INSERT INTO t VALUES (-9223372036854775807-1, 2); INSERT INTO t VALUES (-3, 2); SELECT * FROM t; UPDATE t SET a = -9223372036854775807-1",
        "CREATE TABLE t(a, c); INSERT INTO t VALUES (1, 2), (-9223372036854775807-1, 3), (5, 6); ALTER TABLE t ADD COLUMN b AS (abs(a)); SELECT a, c FROM t; SELECT b FROM t; SELECT b FROM t WHERE c <> 3; SELECT c FROM t WHERE b > 0",
        "CREATE TABLE t(a, b AS (a)); INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN c AS (a+b) STORED; ALTER TABLE t ADD COLUMN c AS (a+b); SELECT * FROM t; ALTER TABLE t ADD COLUMN d INT NOT NULL AS (nullif(a, 1)); ALTER TABLE t ADD COLUMN d CHECK (d > 5) AS (a); ALTER TABLE t ADD COLUMN d AS (zz); ALTER TABLE t ADD COLUMN e AS (a) UNIQUE; ALTER TABLE t ADD COLUMN e AS (random()); ALTER TABLE t ADD COLUMN e AS ((SELECT 1)); ALTER TABLE t ADD COLUMN e AS (t.a); SELECT * FROM t; SELECT sql FROM sqlite_schema",
        "CREATE TABLE t(a INT) STRICT; INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b TEXT AS (a); ALTER TABLE t ADD COLUMN c AS (a); SELECT *, typeof(b) FROM t; INSERT INTO t VALUES (2); SELECT b FROM t WHERE b = '2'",
    ] {
        same(sql);
    }
}

#[test]
fn circles_are_refused() {
    for sql in [
        "CREATE TABLE t(a AS (b), b AS (a), c); INSERT INTO t VALUES (1); SELECT * FROM t; SELECT c FROM t",
        "CREATE TABLE t(a AS (a), c); SELECT a FROM t; INSERT INTO t VALUES (1); DELETE FROM t; UPDATE t SET c = 1",
        "CREATE TABLE t(x, a AS (c), b AS (a), c AS (b))",
        "CREATE TABLE t(x, a AS (b), b AS (a), c AS (b))",
        "CREATE TABLE t(x, c AS (b), a AS (b), b AS (a))",
        "CREATE TABLE t(x, a AS (b), b AS (a), c AS (x))",
        "CREATE TABLE t(x, c AS (x), b AS (a), a AS (b), d AS (a))",
        "CREATE TABLE t(x, a AS (b), b AS (c), c AS (a))",
    ] {
        same(sql);
    }
}

#[test]
fn definitions_are_sqlites() {
    for sql in [
        "CREATE TABLE t(a INT, b AS (a*2), c TEXT AS (a||b) STORED); INSERT INTO t VALUES (1),(2); SELECT * FROM t; PRAGMA table_info(t); PRAGMA table_xinfo(t); PRAGMA table_list('t')",
        "CREATE TABLE t(a AS (1))",
        "CREATE TABLE t(a, b AS (q))",
        "CREATE TABLE t(a, b AS ((SELECT 1)))",
        "CREATE TABLE t(a, b AS (random()))",
        "CREATE TABLE t(a, b AS (sum(a)))",
        "CREATE TABLE t(a, b AS (?))",
        "CREATE TABLE t(a, b AS (main.t.a))",
        r#"CREATE TABLE t(a, b AS ("x"))"#,
        "CREATE TABLE t(a, b AS (changes()))",
        "CREATE TABLE t(a, b AS (a) PRIMARY KEY)",
        "CREATE TABLE t(a, b AS (a), PRIMARY KEY (b))",
        "CREATE TABLE t(a, b AS (a), PRIMARY KEY (a, b))",
        "CREATE TABLE t(a, b AS (a) DEFAULT 5)",
        "CREATE TABLE t(a, b DEFAULT 5 AS (a))",
        "CREATE TABLE t(a, b AS (a) FOO)",
        "CREATE TABLE t(a, b AS (a) AS (a))",
        "CREATE TABLE t(a, b DEFAULT 5 AS (a)); CREATE TABLE t(a, b AS (a) stored stored); CREATE TABLE t(a, b AS (a) virtual stored); CREATE TABLE t(a, b GENERATED AS (a)); CREATE TABLE t(a, b ALWAYS AS (a)); PRAGMA table_xinfo(t)",
        "CREATE TABLE t(a, b generated always AS (a)); PRAGMA table_xinfo(t)",
        r#"CREATE TABLE t(a, b "generated always" AS (a), c varchar(3) generated always as (a)); PRAGMA table_xinfo(t)"#,
        "CREATE TABLE t(a, b AS (a) STORED, c AS (a) VIRTUAL, d INTEGER PRIMARY KEY); INSERT INTO t VALUES (1, 5); INSERT INTO t(a) VALUES (2); SELECT * FROM t; SELECT rowid, * FROM t WHERE d = 6; PRAGMA table_xinfo(t); PRAGMA table_info(t); PRAGMA index_list(t)",
        "CREATE TABLE t(a, b AS (zzz(a)))",
        "CREATE TABLE t(a, b AS (count(*)))",
        "CREATE TABLE t(a, b AS (a IN (SELECT 1)))",
        "CREATE TABLE t(a, b AS (EXISTS (SELECT 1)))",
        "CREATE TABLE t(a, b AS (raise(abort, 'x')))",
        "CREATE TABLE t(a, b AS ((a, 1)))",
        "CREATE TABLE t(a, b AS (last_insert_rowid()))",
        "CREATE TABLE t(a, b AS (sqlite_version()))",
        "CREATE TABLE t(a, b AS (oid), c AS (_rowid_))",
        "CREATE TABLE IF NOT EXISTS t(a, b AS (a)); CREATE TABLE IF NOT EXISTS t(a, b AS (q)); CREATE INDEX i ON t(b); CREATE INDEX k ON t(b+1, a); SELECT * FROM t INDEXED BY k WHERE b + 1 = 5; DROP TABLE t",
        "CREATE TABLE t(a, b INT GENERATED ALWAYS AS (a) VIRTUAL NOT NULL UNIQUE CHECK (b > 5) COLLATE NOCASE); PRAGMA table_xinfo(t); INSERT INTO t VALUES (NULL); INSERT INTO t VALUES (1); INSERT INTO t VALUES (6); INSERT INTO t VALUES (6); SELECT * FROM t",
    ] {
        same(sql);
    }
}

#[test]
fn indexes_hold_them() {
    for sql in [
        "CREATE TABLE t(a, b AS (a), c AS (a) STORED); CREATE INDEX i ON t(b, c); INSERT INTO t VALUES (3), (1), (2); SELECT b FROM t WHERE b > 1; SELECT * FROM t WHERE b = 2; UPDATE t SET a = a + 10 WHERE b = 3; SELECT b FROM t ORDER BY b; DELETE FROM t WHERE b = 13; SELECT * FROM t; PRAGMA integrity_check",
        "CREATE TABLE t(a, b TEXT AS (a), c AS (b) CHECK (c > 'b') ); CREATE INDEX i ON t(c) WHERE b > 5; CREATE INDEX j ON t(b || c); INSERT INTO t VALUES (1), ('x'), (7); SELECT * FROM t WHERE b > 5; SELECT * FROM t WHERE b || c = '77'; SELECT * FROM t INDEXED BY i WHERE b > 5 AND c = '7'; UPDATE t SET a = 9 WHERE c = '7' RETURNING *; DELETE FROM t WHERE b = '9' RETURNING b, c",
        "CREATE TABLE t(a UNIQUE, b AS (a*2), c AS (a+1) STORED UNIQUE); INSERT INTO t VALUES (1),(2); INSERT INTO t VALUES (1) ON CONFLICT(a) DO UPDATE SET b = 1; INSERT INTO t VALUES (1) ON CONFLICT(a) DO UPDATE SET a = excluded.b * 10 RETURNING *; INSERT INTO t VALUES (20) ON CONFLICT(c) DO UPDATE SET a = excluded.c RETURNING *; INSERT INTO t VALUES (2) ON CONFLICT(c) DO NOTHING; INSERT INTO t VALUES (2) ON CONFLICT(c) DO UPDATE SET a = excluded.b + excluded.c WHERE t.b = 4 RETURNING a, b, c; SELECT * FROM t",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b AS (a*2) UNIQUE); INSERT INTO t(a) VALUES (1),(2),(3); INSERT OR REPLACE INTO t(a) VALUES (2); SELECT * FROM t; INSERT OR IGNORE INTO t(a) VALUES (2), (9); UPDATE OR REPLACE t SET a = 9 WHERE a = 1; SELECT * FROM t; UPDATE OR IGNORE t SET a = 9; SELECT * FROM t; UPDATE t SET a = 9; REPLACE INTO t VALUES (1, 4), (2, 4); SELECT * FROM t; PRAGMA integrity_check",
        "CREATE TABLE t(a, b AS (a)); WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i < 3000) INSERT INTO t SELECT i FROM n; SELECT count(*), sum(b), max(b) FROM t; CREATE INDEX i ON t(b); SELECT count(*) FROM t WHERE b > 2990; SELECT b FROM t ORDER BY b DESC LIMIT 3; UPDATE t SET a = a + 1 WHERE b % 2 = 0; SELECT sum(b) FROM t; DELETE FROM t WHERE b > 100; SELECT count(*), sum(b) FROM t; PRAGMA integrity_check",
        "CREATE TABLE t(a TEXT, b AS (a COLLATE NOCASE) COLLATE NOCASE UNIQUE, c AS (upper(a)) STORED); INSERT INTO t VALUES ('x'); INSERT INTO t VALUES ('X'); SELECT * FROM t WHERE b = 'X'; SELECT * FROM t WHERE c = 'X'; SELECT * FROM t ORDER BY b",
        "CREATE TABLE t(a, b REAL AS (a)); CREATE INDEX i ON t(b); INSERT INTO t VALUES (1), ('2'), (2.5), (9007199254740993), ('x'), (NULL), (x'00'); SELECT b, typeof(b) FROM t ORDER BY b; SELECT a FROM t WHERE b = 2; SELECT a FROM t WHERE b >= 2; SELECT b, typeof(b) FROM t NOT INDEXED",
        "CREATE TABLE t(a, b TEXT AS (a)); CREATE INDEX i ON t(b); INSERT INTO t VALUES (1), ('2'), (2.5), ('x'), (NULL), (x'00'); SELECT b, typeof(b) FROM t ORDER BY b; SELECT a FROM t WHERE b = 1; SELECT a FROM t WHERE b = '2'; SELECT typeof(b) FROM t NOT INDEXED",
        "CREATE TABLE t(a, b AS (a), UNIQUE (b, a)); PRAGMA index_list(t); PRAGMA index_info(sqlite_autoindex_t_1); PRAGMA index_xinfo(sqlite_autoindex_t_1); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)",
        "CREATE TABLE t(a, b AS (a+1)); CREATE INDEX i ON t(b) WHERE b > 5; CREATE INDEX j ON t(a) WHERE b < 5; INSERT INTO t VALUES (1), (7), (9); SELECT a FROM t WHERE b > 5; SELECT b FROM t WHERE b < 5 AND a = 1; SELECT a FROM t INDEXED BY j WHERE b < 5; DELETE FROM t WHERE b > 8; UPDATE t SET a = 2 WHERE a = 7; SELECT * FROM t; SELECT b FROM t WHERE b > 5; PRAGMA integrity_check",
        "CREATE TABLE t(a, b AS (a)); CREATE INDEX i ON t(b); INSERT INTO t VALUES (3), (1), (2); SELECT min(b), (SELECT max(b) FROM t) FROM t; SELECT max(b) FROM t; SELECT rowid FROM t WHERE b = 1; SELECT a FROM t ORDER BY b; SELECT b, a FROM t WHERE b BETWEEN 1 AND 2 ORDER BY b DESC; SELECT x.a, y.a FROM t x, t y WHERE y.b = x.a + 1; SELECT a FROM t WHERE b IN (1, 3) ORDER BY a; SELECT a FROM t WHERE b = 1 OR b = 2 ORDER BY a; SELECT a FROM t WHERE b IS NULL",
        "CREATE TABLE t(a, b AS (a), c AS (a)); CREATE UNIQUE INDEX i ON t(b); INSERT INTO t VALUES (1), (2); SELECT b FROM t WHERE b = 2; SELECT c FROM t WHERE b = 2; SELECT b, rowid FROM t WHERE b = 2 AND rowid > 0; UPDATE t SET a = 7 WHERE b = 2; DELETE FROM t WHERE b = 1; SELECT * FROM t",
    ] {
        same(sql);
    }
}

#[test]
fn constraints_see_them() {
    for sql in [
        "CREATE TABLE t(a INT, b TEXT AS (a+1) STORED, c REAL AS (a) STORED) STRICT; INSERT INTO t VALUES ('5'); SELECT *,typeof(b) FROM t; CREATE TABLE u(a INT, b TEXT AS (x'00') STORED) STRICT; INSERT INTO u VALUES (1); CREATE TABLE v(a INT, b INT AS ('x') VIRTUAL) STRICT; INSERT INTO v VALUES (1); SELECT * FROM v; PRAGMA integrity_check",
        "CREATE TABLE t(a NOT NULL DEFAULT 7, b NOT NULL AS (a) STORED, c NOT NULL AS (nullif(a, 7))); INSERT INTO t VALUES (NULL); INSERT OR REPLACE INTO t VALUES (NULL); INSERT OR REPLACE INTO t VALUES (8); INSERT OR IGNORE INTO t VALUES (7); SELECT * FROM t",
        "CREATE VIEW v AS SELECT 1 a; CREATE TABLE t(a, b AS (a) STORED NOT NULL); CREATE TABLE u AS SELECT * FROM t; SELECT sql FROM sqlite_schema",
        "CREATE TABLE t(a, b AS (a) NOT NULL ON CONFLICT IGNORE, c AS (a) NOT NULL ON CONFLICT REPLACE); INSERT INTO t VALUES (NULL); INSERT INTO t VALUES (1); UPDATE t SET a = NULL; SELECT * FROM t; INSERT OR ABORT INTO t VALUES (NULL); INSERT OR REPLACE INTO t VALUES (NULL)",
        "CREATE TABLE t(a, b AS (a) CHECK (b > 0)); INSERT INTO t VALUES (0); INSERT OR IGNORE INTO t VALUES (0), (1); UPDATE t SET a = -1; UPDATE OR IGNORE t SET a = -1; SELECT * FROM t",
    ] {
        same(sql);
    }
}

#[test]
fn statements_read_and_write_them() {
    for sql in [
        "CREATE TABLE t(a, b AS (rowid)); INSERT INTO t VALUES (1)",
        "CREATE TABLE t(a, b AS (date('now'))); INSERT INTO t VALUES (1); SELECT * FROM t",
        "CREATE TABLE t(a, b AS (t.a)); INSERT INTO t VALUES (1); SELECT * FROM t",
        "CREATE TABLE t(a, b AS (a COLLATE NOCASE), c AS (a) COLLATE NOCASE, d AS (a)); INSERT INTO t VALUES ('x'); SELECT b = 'X', c = 'X', d = 'X' FROM t",
        "CREATE TABLE t(a INT, b TEXT AS (a), c REAL AS (a), d BLOB AS (a), e AS (a), f NUM AS ('5')); INSERT INTO t VALUES ('5'); SELECT typeof(b), typeof(c), typeof(d), typeof(e), typeof(f), b = 5, c = '5', e = '5', f='5' FROM t",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, b AS (id * 2) STORED, c AS (id + 1)); INSERT INTO t DEFAULT VALUES; INSERT INTO t(id) VALUES (NULL), (10), ('11'); SELECT * FROM t; UPDATE t SET id = 20 WHERE id = 10; SELECT * FROM t",
        "CREATE TABLE p(v); CREATE TABLE t(a, b AS (coalesce(a, 5))); INSERT INTO p VALUES (1), (2); INSERT INTO t VALUES (1), (NULL); SELECT * FROM p LEFT JOIN t ON b = v; SELECT p.v, b FROM t RIGHT JOIN p ON b = v",
        "CREATE TABLE t(a, b AS (abs(a))); INSERT INTO t VALUES (-9223372036854775807-1); SELECT * FROM t",
        "CREATE TABLE t(a, b AS (a IN (1,2)), c AS (CASE a WHEN 1 THEN 'x' END)); INSERT INTO t VALUES (1), (3); SELECT * FROM t
CREATE TABLE t(x, a AS (b), b AS (c), c AS (a))",
        "CREATE TABLE t(a, b AS (a+1), c AS (b+1), d AS (c+1)); INSERT INTO t VALUES (1),(2),(3); SELECT d FROM t; SELECT d, a FROM t WHERE c > 4; SELECT x.d, y.d FROM t x JOIN t y ON x.d = y.c + 2; SELECT x.d, y.b FROM t x LEFT JOIN t y ON x.d = y.b ORDER BY 1; SELECT b, count(*), max(d) FROM t GROUP BY b; SELECT DISTINCT c FROM t ORDER BY d DESC; SELECT (SELECT max(u.d) FROM t u WHERE u.a < t.b) FROM t; SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.a = t.c); SELECT * FROM t WHERE d IN (SELECT c + 1 FROM t); SELECT rowid, d FROM t WHERE rowid = 2; SELECT d FROM t WHERE rowid IN (1, 3)",
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b AS (a+1)); INSERT INTO t VALUES (1),(2),(3); SELECT b FROM t WHERE a = 2; UPDATE t SET a = 10 WHERE a = 2 RETURNING b; DELETE FROM t WHERE a = 10 RETURNING b; SELECT * FROM t NATURAL JOIN t u; SELECT * FROM t JOIN t u USING (b)",
        "CREATE TABLE t(a, b AS (a)); INSERT INTO t VALUES (1), (2) RETURNING *; UPDATE t SET a = b + 10 RETURNING a, b; DELETE FROM t RETURNING *; INSERT INTO t DEFAULT VALUES RETURNING *",
        "CREATE TABLE t(a, b AS (a)); CREATE TABLE u AS SELECT * FROM t; INSERT INTO t VALUES (1); INSERT INTO u SELECT * FROM t; INSERT INTO t SELECT * FROM t; INSERT INTO t SELECT a FROM t; SELECT * FROM t; SELECT * FROM u",
        "CREATE TABLE t(a, b AS (a)); UPDATE t SET a = 1 FROM (SELECT 1 x) WHERE b = x; INSERT INTO t VALUES (1), (2); CREATE TABLE u(x, y); INSERT INTO u VALUES (1, 10), (2, 20); UPDATE t SET a = y FROM u WHERE b = x RETURNING *; SELECT * FROM t",
        "CREATE TABLE t(a, b AS (CASE WHEN a THEN NULL ELSE x'00' END), c AS (a LIKE 'x%'), d AS (a BETWEEN 1 AND 5), e AS (CAST(a AS TEXT)), f AS (a IS NULL), g AS (coalesce(a, 'n')), h AS (printf('%05d', a)), i AS (-a), j AS (a COLLATE RTRIM = 'x '), k AS (a || '')); INSERT INTO t VALUES (1), ('x'), (NULL), (2.5), (x'31'); SELECT * FROM t",
        "BEGIN; CREATE TABLE t(a, b AS (a), c AS (a) STORED); INSERT INTO t VALUES (1); SAVEPOINT s; UPDATE t SET a = 5; SELECT * FROM t; ROLLBACK TO s; SELECT * FROM t; COMMIT; SELECT * FROM t",
        "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b AS (a * 2)); INSERT INTO t DEFAULT VALUES; INSERT INTO t VALUES (NULL), (9); SELECT * FROM t; DELETE FROM t; INSERT INTO t VALUES (NULL); SELECT * FROM t; SELECT * FROM sqlite_sequence",
        "CREATE TABLE t(a, b AS ((a, 1) = (1, 1))); INSERT INTO t VALUES (1), (2); SELECT * FROM t",
        "CREATE TABLE t(a, b AS (current_timestamp)); INSERT INTO t VALUES (1)",
        "CREATE TABLE t(a, b AS (strftime('%Y', a, 'localtime'))); INSERT INTO t VALUES ('2024-01-01'); INSERT INTO t VALUES (NULL); SELECT * FROM t",
        "CREATE TABLE t(a, rowid, b AS (rowid)); INSERT INTO t VALUES (1, 2); SELECT * FROM t",
        "CREATE TABLE t(a, b AS (true), c AS (false IS a)); INSERT INTO t VALUES (0); SELECT * FROM t",
        "CREATE TABLE t(a, b AS (a), c AS (b) STORED); INSERT INTO t VALUES (1), (2); SELECT sum(b), avg(c), group_concat(b), min(b), max(c) FROM t; SELECT b FROM t UNION SELECT c FROM t; SELECT b, c FROM t ORDER BY c DESC, b LIMIT 1 OFFSET 1; SELECT b FROM t GROUP BY b HAVING max(c) > 1; WITH q AS (SELECT * FROM t) SELECT q.b FROM q; SELECT * FROM (SELECT b AS x FROM t) WHERE x = 2; WITH RECURSIVE r(x) AS (SELECT b FROM t WHERE a = 1 UNION ALL SELECT x + 1 FROM r JOIN t ON t.b = r.x WHERE x < 5) SELECT * FROM r; SELECT min(b) FROM t; SELECT count(b), count(*) FROM t",
        "CREATE TABLE t(a, b INT GENERATED ALWAYS AS (a), c GENERATED ALWAYS AS (b)); INSERT INTO t(a, b) VALUES (1, 2); INSERT INTO t VALUES (1, 2); INSERT INTO t(b) VALUES (1); UPDATE t SET b = 1; UPDATE t SET (a, b) = (1, 2)",
        "CREATE TABLE t(a, b AS (a)); INSERT INTO t(a, a) VALUES (1, 2); INSERT INTO t(rowid, a) VALUES (5, 6); SELECT rowid, * FROM t; UPDATE t SET rowid = 9, a = 3 WHERE rowid = 5; SELECT rowid, * FROM t; INSERT INTO t(b) DEFAULT VALUES; INSERT INTO t(b) SELECT 1",
    ] {
        same(sql);
    }
}

#[test]
fn all_ways_to_read_a_row_compute_them() {
    for sql in [
        "CREATE TABLE t(a); INSERT INTO t VALUES ('now'), ('2024-01-01'); ALTER TABLE t ADD COLUMN d AS (date(a)); SELECT a FROM t; SELECT d FROM t WHERE a <> 'now'; SELECT d FROM t WHERE a = 'now'; UPDATE t SET a = 'x' WHERE rowid = 2; SELECT d FROM t WHERE rowid = 2; SELECT rowid FROM t WHERE d > 5; CREATE INDEX i ON t(d); DELETE FROM t WHERE rowid = 1; SELECT * FROM t",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, v AS (a || '!'), n INT AS (length(v))); INSERT INTO t VALUES (1, 'x'), (2, 'yy'), (3, NULL); SELECT v FROM t WHERE id = 2; SELECT id, n, v, a FROM t WHERE id = 2; SELECT v FROM t WHERE id = 2 AND a = 'yy'; SELECT v FROM t WHERE id = 2 AND a = 'y'; SELECT v FROM t WHERE id = 2 AND n = 3; SELECT n FROM t WHERE id = 2 AND v = 'no'; SELECT n FROM t WHERE id = 3; UPDATE t SET a = v WHERE id = 2 AND n = 3; SELECT * FROM t; UPDATE t SET a = 'q' WHERE id = 2 AND n = 3; DELETE FROM t WHERE id = 1 AND v = 'x!' AND a = 'x'; SELECT * FROM t; SELECT v || n FROM t WHERE id = 2; UPDATE t SET id = n WHERE id = 2 RETURNING *; SELECT count(*) FROM t WHERE id = 4",
        "CREATE TABLE t(k TEXT UNIQUE, v AS (upper(k)) UNIQUE, w AS (k || v)); INSERT INTO t VALUES ('a'), ('b'); SELECT w FROM t WHERE k = 'a'; SELECT v FROM t WHERE k = 'a'; SELECT k, w FROM t WHERE v = 'B'; SELECT v FROM t WHERE v = 'B'; UPDATE t SET k = w WHERE v = 'B'; DELETE FROM t WHERE v = 'A'; SELECT * FROM t; SELECT w FROM t WHERE k = 'bB' AND v = 'BB'; PRAGMA integrity_check",
        "CREATE TABLE t(a, b INT AS (a) VIRTUAL); INSERT INTO t VALUES (1), (2), (3); SELECT a FROM t WHERE b IN (SELECT b + 1 FROM t); SELECT a, (SELECT count(*) FROM t u WHERE u.b < t.b) FROM t; SELECT * FROM t WHERE (a, b) = (2, 2); SELECT * FROM t WHERE (a, b) IN (SELECT b, a FROM t WHERE b > 1); SELECT t.b, u.b FROM t CROSS JOIN t u ON t.b < u.a; SELECT b FROM t ORDER BY -b; SELECT * FROM t LEFT JOIN (SELECT b AS x FROM t WHERE b > 1) ON x = b; SELECT t.b FROM t FULL JOIN t u ON t.b = u.b + 1 ORDER BY 1; VALUES ((SELECT b FROM t LIMIT 1))",
        "CREATE TABLE a(x INT, g AS (x * 2)); CREATE TABLE b(y INT, h AS (y + 1)); INSERT INTO a VALUES (1), (2), (3); INSERT INTO b VALUES (1), (3), (5); SELECT * FROM a JOIN b ON g = h; SELECT * FROM a LEFT JOIN b ON g = h AND h > 2; SELECT * FROM a, b WHERE g = h AND x + y > 3; CREATE INDEX ib ON b(h); SELECT * FROM a JOIN b ON g = h; SELECT a.g, (SELECT h FROM b WHERE h = a.g) FROM a; SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE h = g); DELETE FROM a WHERE g IN (SELECT h FROM b); SELECT * FROM a; UPDATE a SET x = h FROM b WHERE y = 5 RETURNING *",
        "CREATE TABLE t(a INT, v INT AS (a + 1)); WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i FROM n; SELECT count(*), sum(v) FROM t WHERE a % 7 = 3; SELECT count(*) FROM t x JOIN t y ON x.v = y.a; SELECT v, count(*) FROM t WHERE v > 4990 GROUP BY v; SELECT sum(v) FROM (SELECT v FROM t ORDER BY v DESC LIMIT 10); CREATE INDEX i ON t(v); SELECT count(*) FROM t WHERE v BETWEEN 100 AND 200; SELECT max(v), min(v) FROM t; DELETE FROM t WHERE v % 2; SELECT count(*), sum(v) FROM t; PRAGMA integrity_check",
        "CREATE TABLE t(a TEXT, v TEXT AS (a || a || a) STORED, w AS (length(v))); INSERT INTO t VALUES (hex(zeroblob(3000))), ('x'); SELECT w, length(v) FROM t; SELECT w FROM t WHERE w > 5; UPDATE t SET a = 'y' WHERE w = 18000; SELECT * FROM t",
        "CREATE TABLE t(a, v AS (a + 1)); INSERT INTO t VALUES (1), (2), (3); BEGIN; UPDATE t SET a = a * 10; SAVEPOINT s; DELETE FROM t WHERE v = 11; SELECT * FROM t; ROLLBACK TO s; SELECT v FROM t; ROLLBACK; SELECT v FROM t",
    ] {
        same(sql);
    }
}

#[test]
fn plain_columns_are_asked_about_before_others_are_computed() {
    let session = session();
    let sql = "CREATE TABLE t(a INT, b INT, v AS (abs(a)));
        CREATE TABLE u(a INT, b INT);
        INSERT INTO u VALUES (1, 1), (-9223372036854775807 - 1, 2);
        ALTER TABLE u ADD COLUMN v AS (abs(a))";
    must(&session, sql);
    let plan = run(&session, "EXPLAIN SELECT v FROM t WHERE b = 5 AND v = 1");
    let step = |what: &str| plan.iter().position(|line| line.contains(what));
    assert!(step("GENERATE") > step("FILTER"), "{plan:?}");
    assert!(
        plan.iter().rposition(|line| line.contains("FILTER")) > step("GENERATE"),
        "{plan:?}"
    );
    assert_eq!(
        run(&session, "SELECT v FROM u WHERE b = 1 AND v > 0"),
        ["1"]
    );
}

#[test]
fn an_index_yields_them_without_the_row() {
    let session = session();
    must(
        &session,
        "CREATE TABLE t(a, v AS (a + 1)); CREATE INDEX i ON t(v)",
    );
    let plan = run(&session, "EXPLAIN SELECT v FROM t WHERE v > 5 ORDER BY v");
    assert!(
        plan.iter().any(|line| line.contains("COVERING INDEX i")),
        "{plan:?}"
    );
    assert!(
        !plan.iter().any(|line| line.contains("GENERATE")),
        "{plan:?}"
    );
}

/// A generated column's expression over plain columns and those before it.
fn expression(random: &mut Random, names: &[String]) -> String {
    let column = random.pick(names);
    let other = random.pick(names);
    match random.below(12) {
        0 => column.clone(),
        1 => format!("{column} + {other}"),
        2 => format!("{column} || '-' || {other}"),
        3 => format!("coalesce({column}, {other}, 'none')"),
        4 => format!("CASE WHEN {column} > {other} THEN {column} END"),
        5 => format!("upper({column})"),
        6 => format!("{column} IN (1, 'a', {other})"),
        7 => format!("{column} % 3"),
        8 => format!("typeof({column})"),
        9 => format!("{column} COLLATE NOCASE = 'A'"),
        10 => format!("max({column}, {other})"),
        _ => format!("-{column}"),
    }
}

const TYPES: [&str; 6] = ["", "INT", "TEXT", "REAL", "BLOB", "NUMERIC"];
const VALUES: [&str; 12] = [
    "NULL", "0", "1", "2", "3", "-7", "2.5", "'1'", "'a'", "'A'", "'b'", "x'61'",
];

/// Tables, indexes and statements by chance. What is a rowid's or a column's is told by
/// ORDER BY, so that plans make no difference.
fn statements_by_chance(seed: u64) {
    let mut random = Random(seed);
    let ours = session();
    let theirs = rusqlite::Connection::open_in_memory().unwrap();
    let mut names: Vec<String> = ["a", "b"].map(str::to_owned).to_vec();
    let mut columns = vec![
        format!("a {}", random.pick(&TYPES)),
        format!("b {}", random.pick(&TYPES)),
    ];
    if random.below(3) == 0 {
        names.push("id".to_owned());
        columns.push("id INTEGER PRIMARY KEY".to_owned());
    }
    for at in 0..random.below(4) + 1 {
        let (kind, declared) = (random.pick(&["", "VIRTUAL", "STORED"]), random.pick(&TYPES));
        let more = *random.pick(&["", "", "", "UNIQUE", "NOT NULL", "COLLATE NOCASE"]);
        let expr = expression(&mut random, &names);
        columns.push(format!("g{at} {declared} AS ({expr}) {kind} {more}"));
        names.push(format!("g{at}"));
    }
    let mut log = vec![format!("CREATE TABLE t({})", columns.join(", "))];
    for at in 0..random.below(3) {
        let (one, two) = (random.pick(&names), random.pick(&names));
        let filter = match random.below(4) {
            0 => format!(" WHERE {} > 0", random.pick(&names)),
            _ => String::new(),
        };
        log.push(format!("CREATE INDEX i{at} ON t({one}, {two}){filter}"));
    }
    for _ in 0..25 {
        let or = *random.pick(&["", "", "OR IGNORE", "OR REPLACE"]);
        let (one, two) = (random.pick(&VALUES), random.pick(&VALUES));
        let column = random.pick(&names);
        let compared = random.pick(&["=", ">", "<=", "IS", "<>"]);
        log.push(match random.below(8) {
            0..=2 => format!("INSERT {or} INTO t(a, b) VALUES ({one}, {two}) RETURNING *"),
            // In which order several rows are ignored is a plan's affair.
            3 => match or {
                "" => format!("UPDATE t SET a = {one} WHERE {column} {compared} {two}"),
                _ => format!("UPDATE {or} t SET a = {one} WHERE rowid = 2"),
            },
            4 => format!("UPDATE t SET b = {column} WHERE {column} {compared} {two}"),
            5 => format!("DELETE FROM t WHERE {column} = {one}"),
            6 => {
                format!("SELECT rowid, {column} FROM t WHERE {column} {compared} {one} ORDER BY 1")
            }
            _ => {
                let other = random.pick(&names);
                format!(
                    "SELECT x.rowid, y.rowid, y.{other} FROM t x LEFT JOIN t y \
                     ON x.{column} {compared} y.{other} ORDER BY 1, 2"
                )
            }
        });
        log.push("SELECT rowid, * FROM t ORDER BY rowid".to_owned());
    }
    log.push("PRAGMA integrity_check".to_owned());
    for (at, sql) in log.iter().enumerate() {
        let (mine, other) = (run(&ours, sql), sqlite(&theirs, sql));
        let before = || {
            log.iter()
                .take(at + 1)
                .cloned()
                .collect::<Vec<_>>()
                .join(";\n")
        };
        assert_eq!(mine, other, "seed {seed}: {}", before());
    }
}

#[test]
fn tables_by_chance_do_as_sqlites() {
    let seeds = std::env::var("FULGURITE_GENERATED_SEEDS").map_or(400, |n| n.parse().unwrap());
    println!("seeds 0 to {}", seeds - 1);
    (0..seeds).for_each(statements_by_chance);
}
