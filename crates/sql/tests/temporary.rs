//! Temporary tables, indexes, views and triggers, beside bundled SQLite.

mod support;

use support::same;

#[test]
fn a_temporary_table_is_a_table() {
    same(
        "CREATE TEMP TABLE t(a, b); INSERT INTO t VALUES (1,2),(3,4); SELECT * FROM t;
         SELECT * FROM temp.t; SELECT temp.t.a FROM t; SELECT main.t.a FROM t;
         SELECT * FROM main.t; SELECT type,name,tbl_name,sql FROM sqlite_temp_schema;
         SELECT type,name,tbl_name,sql FROM sqlite_temp_master;
         SELECT name FROM temp.sqlite_schema; SELECT name FROM temp.sqlite_master;
         SELECT name FROM sqlite_schema; SELECT name FROM main.sqlite_temp_schema;
         SELECT name FROM temp.sqlite_temp_schema; SELECT name FROM main.sqlite_master",
    );
    same(
        "SELECT * FROM sqlite_temp_schema; SELECT * FROM sqlite_temp_master;
         SELECT * FROM temp.sqlite_schema; SELECT * FROM temp.t; PRAGMA database_list",
    );
    same("ATTACH ':memory:' AS x; SELECT * FROM sqlite_temp_schema; PRAGMA database_list");
    same(
        "ATTACH ':memory:' AS x; SELECT name FROM sqlite_temp_master;
         CREATE TEMP TABLE t(x); SELECT name FROM sqlite_temp_master",
    );
    same(
        "CREATE TABLE m(a); INSERT INTO m VALUES (1),(2);
         CREATE TEMP TABLE t AS SELECT a, a * 2 AS b FROM m; SELECT * FROM t;
         SELECT sql FROM sqlite_temp_schema; CREATE TEMP TABLE IF NOT EXISTS t(x);
         CREATE TEMP TABLE t(x); CREATE TEMPORARY TABLE temp.u(x); CREATE TABLE temp.v(x);
         CREATE TEMP TABLE main.w(x); SELECT name, sql FROM sqlite_temp_schema;
         CREATE TABLE x.y(a); CREATE TEMP TABLE x.y(a)",
    );
}

#[test]
fn it_hides_one_of_the_main_database() {
    same(
        "CREATE TABLE t(a); INSERT INTO t VALUES ('main'); CREATE TEMP TABLE t(a);
         INSERT INTO t VALUES ('temp'); SELECT * FROM t; SELECT * FROM main.t;
         SELECT * FROM temp.t; SELECT * FROM main.t, temp.t;
         SELECT main.t.a, temp.t.a FROM main.t, temp.t; SELECT t.a FROM main.t, temp.t;
         SELECT * FROM main.t JOIN temp.t USING(a); DROP TABLE t; SELECT * FROM t;
         DROP TABLE t; SELECT * FROM t",
    );
    same(
        "CREATE TABLE t(a); CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1);
         UPDATE t SET a = 2; DELETE FROM main.t; UPDATE main.t SET a = 5; SELECT * FROM t;
         INSERT INTO main.t SELECT a + 10 FROM temp.t; SELECT * FROM main.t;
         UPDATE t SET a = m.a FROM main.t AS m; SELECT * FROM temp.t;
         UPDATE main.t SET a = x.a + 1 FROM temp.t AS x RETURNING a;
         DELETE FROM t RETURNING a",
    );
    same(
        "CREATE TEMP TABLE t(a); CREATE TABLE main.t(b); CREATE TABLE temp.t(b);
         SELECT name FROM pragma_table_info('t');
         SELECT name FROM pragma_table_info('t', 'main');
         SELECT name FROM pragma_table_info('t', 'temp');
         SELECT schema, name FROM pragma_table_list('t');
         SELECT seq, name FROM pragma_database_list;
         SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p;
         SELECT m.name, p.name FROM sqlite_temp_schema m, pragma_table_info(m.name, 'temp') p",
    );
    same(
        "SELECT * FROM temp.sqlite_master; CREATE TABLE IF NOT EXISTS temp.t(a);
         SELECT * FROM t; CREATE TABLE main.t(b); SELECT * FROM t;
         CREATE TABLE IF NOT EXISTS t(c); SELECT * FROM t; CREATE TABLE t(c);
         CREATE TEMP TABLE t(c); CREATE TEMP TABLE i(a); CREATE INDEX main.x ON t(b);
         CREATE INDEX x ON i(a); DROP INDEX x; DROP INDEX x; CREATE TEMP VIEW t AS SELECT 1;
         CREATE INDEX temp.i ON t(a); CREATE TEMP TABLE x2(a); CREATE INDEX x2 ON i(a)",
    );
}

#[test]
fn autoincrement_has_a_sequence_of_its_own() {
    same(
        "CREATE TEMP TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a);
         INSERT INTO t(a) VALUES (1),(2); DELETE FROM t WHERE id = 2;
         INSERT INTO t(a) VALUES (3); SELECT * FROM t; SELECT * FROM sqlite_sequence;
         SELECT * FROM temp.sqlite_sequence;
         CREATE TABLE m(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO m VALUES (7);
         SELECT * FROM main.sqlite_sequence; SELECT * FROM sqlite_sequence; DROP TABLE t;
         SELECT * FROM temp.sqlite_sequence; INSERT INTO m DEFAULT VALUES; SELECT * FROM m",
    );
    same(
        "CREATE TEMP TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT);
         CREATE TABLE m(a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO m VALUES (5);
         INSERT INTO t VALUES (3); UPDATE temp.sqlite_sequence SET seq = 100;
         INSERT INTO t DEFAULT VALUES; INSERT INTO m DEFAULT VALUES; SELECT * FROM t;
         SELECT * FROM m; SELECT * FROM main.sqlite_sequence;
         SELECT * FROM temp.sqlite_sequence; DELETE FROM sqlite_sequence;
         INSERT INTO t DEFAULT VALUES; SELECT * FROM t",
    );
}

#[test]
fn transactions_and_savepoints_roll_back_both() {
    same(
        "BEGIN; CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1); ROLLBACK; SELECT * FROM t;
         CREATE TEMP TABLE t(a); SELECT * FROM t",
    );
    same(
        "CREATE TABLE m(a); CREATE TEMP TABLE t(a); BEGIN; INSERT INTO m VALUES (1);
         INSERT INTO t VALUES (1); ROLLBACK; SELECT * FROM m; SELECT * FROM t; BEGIN;
         INSERT INTO m VALUES (1); INSERT INTO t VALUES (1); COMMIT; SELECT * FROM m;
         SELECT * FROM t",
    );
    same(
        "CREATE TABLE m(a); CREATE TEMP TABLE t(a); SAVEPOINT a; INSERT INTO m VALUES (1);
         SAVEPOINT b; INSERT INTO t VALUES (2); INSERT INTO m VALUES (3); ROLLBACK TO b;
         SELECT * FROM m; SELECT * FROM t; INSERT INTO t VALUES (4); RELEASE b;
         ROLLBACK TO a; SELECT * FROM t; INSERT INTO t VALUES (5); RELEASE a;
         SELECT * FROM t; SELECT * FROM m",
    );
    same(
        "CREATE TABLE m(a); SAVEPOINT a; CREATE TEMP TABLE t(a UNIQUE);
         INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); SAVEPOINT b; DROP TABLE t;
         SELECT * FROM t; ROLLBACK TO b; SELECT * FROM t; ROLLBACK TO a; SELECT * FROM t;
         RELEASE a; SELECT * FROM t; CREATE TEMP TABLE t(z); SELECT * FROM t",
    );
    same(
        "CREATE TABLE t(a); INSERT INTO t VALUES (1),(2); BEGIN; SELECT * FROM t;
         CREATE TEMP TABLE x AS SELECT * FROM t; INSERT INTO t SELECT a + 2 FROM x;
         SELECT * FROM t; SAVEPOINT s; DELETE FROM x; DELETE FROM t; ROLLBACK TO s;
         SELECT count(*) FROM x; SELECT count(*) FROM t; COMMIT; SELECT count(*) FROM x;
         SELECT count(*) FROM t",
    );
    same(
        "CREATE TABLE m(a); CREATE TEMP TABLE t(a); BEGIN; INSERT INTO t VALUES (1); COMMIT;
         BEGIN; SELECT * FROM m; INSERT INTO t SELECT 2; SELECT * FROM t; ROLLBACK;
         SELECT * FROM t; SAVEPOINT s; INSERT INTO t VALUES (9); CREATE TEMP TABLE u(b);
         INSERT INTO u VALUES (8); ROLLBACK TO s; SELECT * FROM u; RELEASE s; SELECT * FROM t",
    );
    same(
        "BEGIN; CREATE TABLE m(a); CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1);
         INSERT INTO m SELECT * FROM t; COMMIT; SELECT * FROM m; BEGIN; DROP TABLE t;
         CREATE TEMP TABLE t(z, y); INSERT INTO t VALUES (1, 2); SELECT * FROM t; ROLLBACK;
         SELECT * FROM t; BEGIN; ALTER TABLE t ADD COLUMN q; CREATE INDEX i ON t(q);
         INSERT INTO t VALUES (5, 6); SELECT * FROM t; ROLLBACK; SELECT * FROM t;
         SELECT name FROM sqlite_temp_schema",
    );
}

#[test]
fn constraints_upserts_and_generated_columns() {
    same(
        "CREATE TEMP TABLE t(a UNIQUE, b CHECK (b > 0)); INSERT INTO t VALUES (1, 1), (2, 2);
         INSERT INTO t VALUES (3, 1), (1, 1); INSERT OR REPLACE INTO t VALUES (1, 9);
         INSERT INTO t VALUES (5, 0); UPDATE t SET a = a + 1; SELECT * FROM t ORDER BY a;
         UPDATE t SET a = 1; SELECT * FROM t;
         INSERT INTO t VALUES (1,1),(2,2),(3,3) ON CONFLICT(a) DO UPDATE SET b = b + 100;
         SELECT * FROM t ORDER BY a",
    );
    same(
        "CREATE TABLE m(a UNIQUE); CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1),(2),(2);
         INSERT INTO m SELECT a FROM t; SELECT * FROM m; BEGIN;
         INSERT INTO m SELECT a FROM t; SELECT * FROM m;
         INSERT OR IGNORE INTO m SELECT a FROM t; SELECT * FROM m; COMMIT; SELECT * FROM m",
    );
    same(
        "CREATE TEMP TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c AS (b * 2), d DEFAULT 'x') STRICT;
         CREATE TEMP TABLE s(a INT, b TEXT) STRICT; INSERT INTO s VALUES ('x', 1);
         CREATE TEMP TABLE w(a PRIMARY KEY, b); INSERT INTO w VALUES (1, 2);
         REPLACE INTO w VALUES (1, 3); SELECT * FROM w; PRAGMA integrity_check",
    );
    same(
        "CREATE TEMP TABLE t(a, b, c AS (a + b) STORED, d AS (a * b));
         INSERT INTO t VALUES (1, 2), (3, 4); SELECT * FROM t; CREATE INDEX i ON t(c);
         SELECT a FROM t WHERE c = 7; CREATE INDEX j ON t(a) WHERE b > 2;
         UPDATE t SET b = b + 1; SELECT * FROM t; PRAGMA temp.index_list(t);
         PRAGMA integrity_check; DROP INDEX i; SELECT c FROM t WHERE c > 1",
    );
}

#[test]
fn views() {
    same(
        "CREATE TABLE m(a, b); INSERT INTO m VALUES (1, 2);
         CREATE TEMP VIEW v AS SELECT a + b AS c FROM m; SELECT * FROM v;
         SELECT * FROM temp.v; SELECT * FROM main.v; SELECT sql FROM sqlite_temp_schema;
         CREATE VIEW v AS SELECT 'main'; SELECT * FROM v; SELECT * FROM main.v; DROP VIEW v;
         SELECT * FROM v; DROP VIEW v; CREATE TEMP VIEW main.v AS SELECT 1;
         CREATE VIEW temp.v AS SELECT 5; SELECT * FROM v; CREATE TEMP VIEW v AS SELECT 2;
         CREATE TEMP VIEW IF NOT EXISTS v AS SELECT 3; DROP VIEW temp.v;
         DROP VIEW IF EXISTS temp.v; DROP VIEW temp.v; DROP TABLE v",
    );
    same(
        "CREATE TEMP TABLE t(a); CREATE VIEW v AS SELECT * FROM t; SELECT * FROM v;
         CREATE VIEW w AS SELECT * FROM temp.t;
         CREATE VIEW w2 AS SELECT (SELECT a FROM temp.t);
         CREATE VIEW w3 AS SELECT 1 FROM x.t; CREATE VIEW w4 AS SELECT 1 WHERE 1 IN temp.t;
         CREATE TABLE t(a); INSERT INTO main.t VALUES (7); SELECT * FROM v; SELECT * FROM t",
    );
    same(
        "CREATE TABLE t(a); INSERT INTO t VALUES ('m'); CREATE VIEW v AS SELECT * FROM t;
         CREATE TEMP TABLE t(a); INSERT INTO t VALUES ('t'); SELECT * FROM v;
         CREATE TEMP VIEW tv AS SELECT * FROM t; SELECT * FROM tv;
         CREATE TEMP VIEW tm AS SELECT * FROM main.t; SELECT * FROM tm;
         CREATE TEMP VIEW v AS SELECT a || '!' AS a FROM main.v; SELECT * FROM v;
         DROP TABLE temp.t; SELECT * FROM tv; SELECT * FROM v",
    );
}

#[test]
fn triggers_of_tables_of_the_main_database() {
    same(
        "CREATE TABLE t(a); CREATE TABLE log(x); CREATE TEMP TABLE tlog(x);
         CREATE TEMP TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO tlog VALUES (new.a); INSERT INTO log VALUES (new.a); END;
         INSERT INTO t VALUES (1),(2); SELECT * FROM tlog; SELECT * FROM log;
         SELECT type, name, tbl_name, sql, rootpage FROM sqlite_temp_schema WHERE type = 'trigger';
         SELECT name FROM sqlite_schema; DROP TRIGGER r; INSERT INTO t VALUES (3);
         SELECT * FROM tlog",
    );
    same(
        "CREATE TABLE t(a); CREATE TEMP TABLE log(x);
         CREATE TRIGGER m1 AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TEMP TRIGGER a1 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('a1'); END;
         CREATE TEMP TRIGGER a2 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('a2'); END;
         CREATE TEMP TRIGGER a3 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('a3'); END;
         INSERT INTO t VALUES (1); SELECT * FROM log; DROP TABLE t;
         SELECT name FROM sqlite_temp_schema; CREATE TABLE t(a); INSERT INTO t VALUES (1);
         SELECT * FROM log",
    );
    same(
        "CREATE TABLE t(a); CREATE TABLE log(x);
         CREATE TEMP TRIGGER a1 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('a1'); END;
         CREATE TRIGGER m1 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('m1'); END;
         CREATE TEMP TRIGGER a2 AFTER INSERT ON main.t BEGIN INSERT INTO log VALUES ('a2'); END;
         CREATE TRIGGER m2 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('m2'); END;
         INSERT INTO t VALUES (1); SELECT * FROM log; CREATE TEMP TABLE t(a);
         INSERT INTO t VALUES (2); SELECT count(*) FROM log; INSERT INTO main.t VALUES (2);
         SELECT count(*) FROM log",
    );
    same(
        "CREATE TABLE t(a); CREATE TEMP TABLE b(x);
         CREATE TEMP TRIGGER r BEFORE INSERT ON t WHEN new.a > 5 BEGIN SELECT RAISE(ABORT, 'too large'); END;
         INSERT INTO t VALUES (1),(6); SELECT * FROM t; BEGIN; INSERT INTO b VALUES (1);
         INSERT INTO t VALUES (2),(7); INSERT INTO t VALUES (3); SELECT * FROM t;
         SELECT * FROM b; COMMIT; SELECT * FROM b",
    );
    same(
        "CREATE TABLE t(a);
         CREATE TEMP TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET a = new.a + 1 WHERE rowid = new.rowid; END;
         INSERT INTO t VALUES (1); SELECT * FROM t; DROP TABLE t; CREATE TABLE t(a);
         INSERT INTO t VALUES (1); SELECT * FROM t; CREATE TEMP TABLE u(a);
         CREATE TEMP TRIGGER q AFTER INSERT ON u BEGIN SELECT 1; END; DROP TABLE u;
         SELECT * FROM sqlite_temp_schema",
    );
}

#[test]
fn triggers_are_where_their_tables_are() {
    same(
        "CREATE TEMP TABLE t(a); CREATE TABLE log(x);
         CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END;
         INSERT INTO t VALUES (4); SELECT * FROM log;
         SELECT name, tbl_name FROM sqlite_temp_schema;
         CREATE TRIGGER main.r2 AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TRIGGER temp.r3 AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TEMP TRIGGER temp.r4 AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TEMP TRIGGER main.r4 AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TRIGGER IF NOT EXISTS r AFTER INSERT ON t BEGIN SELECT 1; END;
         CREATE TRIGGER r5 AFTER INSERT ON temp.t BEGIN SELECT 1; END;
         CREATE TRIGGER r6 AFTER INSERT ON main.log BEGIN SELECT 1; END;
         CREATE TEMP TRIGGER r7 AFTER INSERT ON x.log BEGIN SELECT 1; END;
         DROP TRIGGER main.r; DROP TRIGGER temp.r; DROP TRIGGER r;
         DROP TRIGGER IF EXISTS temp.r; SELECT name FROM sqlite_temp_schema",
    );
    same(
        "CREATE TABLE t(a); CREATE VIEW v AS SELECT * FROM t;
         CREATE TEMP TRIGGER r INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (new.a + 1); END;
         INSERT INTO v VALUES (1); SELECT * FROM v;
         CREATE TEMP VIEW tv AS SELECT a FROM main.t;
         CREATE TRIGGER r2 INSTEAD OF DELETE ON tv BEGIN DELETE FROM t WHERE a = old.a; END;
         DELETE FROM tv WHERE a = 2; SELECT * FROM t; DROP VIEW v;
         SELECT name FROM sqlite_temp_schema; DROP VIEW tv;
         SELECT name FROM sqlite_temp_schema; UPDATE v SET a = 1",
    );
    same(
        "CREATE TEMP TABLE t(a); CREATE TEMP VIEW v AS SELECT * FROM v; SELECT * FROM v;
         CREATE TEMP VIEW w AS SELECT * FROM nope; SELECT * FROM w;
         CREATE VIEW z AS SELECT * FROM t; SELECT * FROM z;
         CREATE TRIGGER tr AFTER INSERT ON nope BEGIN SELECT 1; END;
         CREATE TEMP TRIGGER tr AFTER INSERT ON nope BEGIN SELECT 1; END;
         CREATE TRIGGER temp.tr AFTER INSERT ON main.t BEGIN SELECT 1; END;
         CREATE TABLE m(a); CREATE TRIGGER temp.tr AFTER INSERT ON m BEGIN SELECT 1; END;
         CREATE TRIGGER temp.tr2 AFTER INSERT ON main.m BEGIN SELECT 1; END;
         SELECT name FROM sqlite_temp_schema;
         CREATE TRIGGER x.tr AFTER INSERT ON m BEGIN SELECT 1; END",
    );
}

#[test]
fn triggers_name_what_their_database_has() {
    same(
        "CREATE TABLE t(a); CREATE TABLE u(a);
         CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT a FROM temp.u; END;
         CREATE TRIGGER r2 AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.a); END;
         CREATE TEMP TABLE u(a); INSERT INTO t VALUES (1); SELECT 'main', * FROM main.u;
         SELECT 'temp', * FROM temp.u;
         CREATE TEMP TRIGGER r3 AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.a * 10); END;
         INSERT INTO t VALUES (2); SELECT 'main', * FROM main.u;
         SELECT 'temp', * FROM temp.u;
         CREATE TEMP TRIGGER r4 AFTER DELETE ON t BEGIN INSERT INTO nowhere VALUES (1); END;
         DELETE FROM t",
    );
    same(
        "CREATE TEMP TABLE a(x); CREATE TEMP TABLE b(x); INSERT INTO a VALUES (1);
         CREATE TEMP TRIGGER r AFTER INSERT ON a BEGIN INSERT INTO b VALUES (new.x); DELETE FROM b WHERE x > 5; END;
         INSERT INTO a VALUES (2), (9); SELECT * FROM b;
         WITH q AS (SELECT * FROM a) SELECT * FROM q, b WHERE q.x = b.x;
         SELECT (SELECT max(x) FROM b WHERE b.x <= a.x) FROM a ORDER BY 1;
         SELECT x FROM a UNION SELECT x FROM b;
         SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
    );
}

#[test]
fn foreign_keys() {
    same(
        "PRAGMA foreign_keys=ON; CREATE TEMP TABLE p(id INTEGER PRIMARY KEY);
         CREATE TEMP TABLE c(p REFERENCES p ON DELETE CASCADE); INSERT INTO c VALUES (1);
         INSERT INTO p VALUES (1),(2); INSERT INTO c VALUES (1),(2);
         DELETE FROM p WHERE id = 1; SELECT * FROM c; CREATE TABLE mc(p REFERENCES p);
         INSERT INTO mc VALUES (2); INSERT INTO mc VALUES (NULL); DROP TABLE p;
         SELECT * FROM c; PRAGMA foreign_key_check; PRAGMA temp.foreign_key_check;
         PRAGMA main.foreign_key_check; PRAGMA foreign_key_check(c)",
    );
    same(
        "PRAGMA foreign_keys=ON; CREATE TEMP TABLE p(id INTEGER PRIMARY KEY);
         CREATE TEMP TABLE c(p REFERENCES p DEFERRABLE INITIALLY DEFERRED); BEGIN;
         INSERT INTO c VALUES (1); COMMIT; INSERT INTO p VALUES (1); COMMIT; SELECT * FROM c;
         BEGIN; DELETE FROM p; COMMIT; ROLLBACK; SELECT * FROM p",
    );
    same(
        "PRAGMA foreign_keys=ON; CREATE TABLE p(id INTEGER PRIMARY KEY);
         CREATE TABLE c(p REFERENCES p ON DELETE CASCADE); CREATE TEMP TABLE log(x);
         CREATE TEMP TRIGGER r AFTER DELETE ON c BEGIN INSERT INTO log VALUES (old.p); END;
         INSERT INTO p VALUES (1); INSERT INTO c VALUES (1), (1); DELETE FROM p;
         SELECT * FROM log; CREATE TEMP TABLE p(id INTEGER PRIMARY KEY);
         INSERT INTO p VALUES (9); INSERT INTO c VALUES (9); INSERT INTO main.p VALUES (9);
         INSERT INTO c VALUES (9); DELETE FROM p; SELECT * FROM c; DELETE FROM main.p;
         SELECT * FROM log",
    );
}

#[test]
fn indexes() {
    same(
        "CREATE TEMP TABLE t(a, b); CREATE INDEX i ON t(a); CREATE INDEX temp.j ON t(b);
         CREATE INDEX main.k ON t(a); CREATE UNIQUE INDEX u ON t(a, b);
         SELECT name, tbl_name, sql FROM sqlite_temp_schema;
         INSERT INTO t VALUES (1,2),(2,3); SELECT * FROM t INDEXED BY i WHERE a = 2;
         INSERT INTO t VALUES (1,2); CREATE INDEX i ON t(b);
         CREATE INDEX IF NOT EXISTS i ON t(b); CREATE TABLE m(a); CREATE INDEX i ON m(a);
         DROP INDEX i; DROP INDEX i; DROP INDEX i; DROP INDEX temp.j; DROP INDEX main.u;
         DROP INDEX x.u; PRAGMA index_list(t); PRAGMA temp.index_list(t);
         PRAGMA main.index_list(t); PRAGMA index_info(u); PRAGMA temp.index_info(u);
         CREATE INDEX temp.q ON m(a); CREATE INDEX x.q ON m(a)",
    );
}

#[test]
fn pragmas() {
    same(
        "CREATE TABLE t(a); CREATE TEMP TABLE t(x, y DEFAULT 5); PRAGMA table_info(t);
         PRAGMA main.table_info(t); PRAGMA temp.table_info(t); PRAGMA x.table_info(t);
         PRAGMA temp.table_xinfo(t); PRAGMA table_list(t); PRAGMA database_list;
         PRAGMA temp_store; PRAGMA temp_store = MEMORY; PRAGMA temp.user_version;
         PRAGMA temp.user_version = 5; PRAGMA user_version; PRAGMA temp.user_version;
         PRAGMA integrity_check; PRAGMA temp.integrity_check",
    );
}

#[test]
fn alter_table() {
    same(
        "CREATE TEMP TABLE t(a); ALTER TABLE t RENAME TO u; SELECT * FROM u;
         ALTER TABLE u ADD COLUMN b DEFAULT 3; INSERT INTO u(a) VALUES (1); SELECT * FROM u;
         ALTER TABLE u RENAME COLUMN b TO c; SELECT c FROM u; ALTER TABLE u DROP COLUMN a;
         SELECT * FROM u; SELECT sql FROM sqlite_temp_schema; ALTER TABLE temp.u RENAME TO v;
         ALTER TABLE main.v RENAME TO w; ALTER TABLE x.v RENAME TO w;
         SELECT sql FROM sqlite_temp_schema",
    );
    same(
        "CREATE TABLE t(a, b); CREATE TEMP TABLE log(x);
         CREATE TEMP VIEW v AS SELECT a, b FROM t;
         CREATE TEMP TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log SELECT a FROM t; END;
         ALTER TABLE t RENAME TO u; SELECT tbl_name, sql FROM sqlite_temp_schema;
         INSERT INTO u VALUES (1, 2); SELECT * FROM log; SELECT * FROM v;
         ALTER TABLE u RENAME COLUMN a TO z; SELECT tbl_name, sql FROM sqlite_temp_schema;
         INSERT INTO u VALUES (3, 4); SELECT * FROM log; SELECT * FROM v;
         ALTER TABLE u DROP COLUMN b; DROP VIEW v; ALTER TABLE u DROP COLUMN b;
         SELECT * FROM u",
    );
    same(
        "CREATE TABLE t(a); CREATE TEMP TABLE t(x);
         CREATE TEMP VIEW w AS SELECT a FROM main.t; ALTER TABLE main.t RENAME COLUMN a TO b;
         SELECT sql FROM sqlite_temp_schema; ALTER TABLE t RENAME COLUMN x TO c;
         SELECT sql FROM sqlite_temp_schema; ALTER TABLE main.t RENAME TO u;
         SELECT sql FROM sqlite_temp_schema; ALTER TABLE t RENAME TO s;
         SELECT sql FROM sqlite_temp_schema; SELECT sql FROM sqlite_schema",
    );
    same(
        "CREATE TABLE t(a); CREATE VIEW v AS SELECT a FROM t;
         CREATE TEMP TRIGGER r INSTEAD OF UPDATE ON v BEGIN UPDATE t SET a = new.a; END;
         INSERT INTO t VALUES (1); UPDATE v SET a = 5; SELECT * FROM t;
         ALTER TABLE t RENAME COLUMN a TO b; SELECT sql FROM sqlite_temp_schema;
         SELECT sql FROM sqlite_schema; UPDATE v SET b = 6; ALTER TABLE t RENAME TO u;
         SELECT tbl_name, sql FROM sqlite_temp_schema; UPDATE v SET b = 7; SELECT * FROM u",
    );
}

#[test]
fn the_schema_is_not_written_to() {
    same(
        "INSERT INTO sqlite_temp_schema VALUES (1,2,3,4,5); DELETE FROM sqlite_temp_master;
         DROP TABLE sqlite_temp_master; DROP TABLE temp.sqlite_schema;
         ALTER TABLE sqlite_temp_schema RENAME TO x;
         CREATE INDEX i ON sqlite_temp_schema(name);
         CREATE TEMP TRIGGER r AFTER INSERT ON sqlite_temp_schema BEGIN SELECT 1; END;
         CREATE TEMP TABLE sqlite_x(a); CREATE TEMP TABLE temp.sqlite_temp_master(a)",
    );
}

#[test]
fn names_with_their_database() {
    same(
        "CREATE TEMP TABLE t(a); WITH t AS (SELECT 5 AS a) SELECT * FROM t;
         WITH t AS (SELECT 5 AS a) SELECT * FROM temp.t; SELECT t.* FROM temp.t;
         SELECT rowid, temp.t.rowid FROM t; SELECT TEMP.T.a FROM TEMP.T;
         SELECT temp.x.a FROM t AS x; SELECT temp.t.a FROM (SELECT 1 AS a) t;
         UPDATE temp.t SET a = 1 WHERE temp.t.a = 2; DELETE FROM temp.t WHERE temp.t.a = 2;
         INSERT INTO temp.t VALUES (1) RETURNING temp.t.a;
         INSERT INTO t VALUES (1) RETURNING t.a; EXPLAIN SELECT 1 FROM temp.nope;
         DROP TABLE IF EXISTS temp.nope; DROP TABLE temp.nope; DROP TABLE x.nope;
         DROP TABLE IF EXISTS x.nope; DROP INDEX temp.nope; DROP INDEX IF EXISTS temp.nope;
         DROP TRIGGER temp.nope; DROP TRIGGER x.nope; DROP VIEW x.nope;
         DROP VIEW IF EXISTS x.nope; DROP INDEX IF EXISTS x.nope",
    );
}

#[test]
fn many_rows_and_joins_across() {
    same(
        "CREATE TABLE big(a);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) INSERT INTO big SELECT i FROM n;
         CREATE TEMP TABLE t(a PRIMARY KEY, b); INSERT INTO t SELECT a, a % 7 FROM big;
         SELECT count(*), sum(b) FROM t; SELECT count(*) FROM t JOIN big USING (a);
         SELECT count(*) FROM big WHERE a IN (SELECT a FROM t WHERE b = 3);
         DELETE FROM t WHERE a IN (SELECT a FROM big WHERE a > 100); SELECT count(*) FROM t;
         DELETE FROM t; SELECT count(*) FROM t; INSERT INTO t SELECT a, 0 FROM big;
         UPDATE t SET b = 1; SELECT sum(b), max(a), min(a) FROM t;
         SELECT b, count(*) FROM t GROUP BY b",
    );
    same(
        "CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1);
         SELECT changes(), total_changes(), last_insert_rowid(); BEGIN;
         INSERT INTO t VALUES (2); COMMIT; BEGIN IMMEDIATE; INSERT INTO t VALUES (3);
         ROLLBACK; SELECT * FROM t; REINDEX t; REINDEX temp.t; ANALYZE; VACUUM; ANALYZE temp;
         SELECT * FROM t; EXPLAIN QUERY PLAN DELETE FROM nope",
    );
    same(
        "CREATE TABLE m(a INTEGER PRIMARY KEY, b); INSERT INTO m VALUES (1, 'x'), (2, 'y');
         CREATE TEMP TABLE t(a INTEGER PRIMARY KEY, b UNIQUE);
         INSERT INTO t VALUES (1, 'p'), (3, 'q'); SELECT * FROM m LEFT JOIN t USING (a);
         SELECT * FROM m FULL JOIN t ON m.a = t.a ORDER BY 1, 3; SELECT b FROM t WHERE a = 3;
         SELECT a FROM t WHERE b = 'p'; UPDATE t SET b = 'z' WHERE a = 3;
         DELETE FROM t WHERE a = 1; SELECT * FROM t;
         INSERT INTO t SELECT * FROM m WHERE true ON CONFLICT (a) DO UPDATE SET b = excluded.b;
         SELECT * FROM t; INSERT INTO m SELECT a + 10, b FROM t; SELECT * FROM m;
         REPLACE INTO t SELECT * FROM m; SELECT * FROM t ORDER BY a",
    );
}

/// A temporary trigger may change tables by the names of their databases, any other may not.
/// It was refused.
#[test]
fn temporary_triggers_change_tables_of_any_database() {
    same(
        "ATTACH ':memory:' AS x; CREATE TABLE p(a); CREATE TEMP TABLE p(a); CREATE TABLE x.p(a);
         CREATE TABLE c(a); CREATE TEMP TABLE d(a); CREATE TABLE x.k(a UNIQUE, b);
         CREATE TEMP TRIGGER one AFTER INSERT ON c BEGIN
            INSERT INTO main.p SELECT a FROM x.p;
            INSERT INTO x.k VALUES (new.a, 1) ON CONFLICT (a) DO UPDATE SET b = b + 1;
            UPDATE x.k SET b = b * 10 WHERE a = new.a;
            DELETE FROM x.p WHERE a = new.a;
            REPLACE INTO temp.p VALUES (new.a);
         END;
         CREATE TRIGGER two AFTER INSERT ON d BEGIN INSERT INTO main.p VALUES (new.a); END;
         INSERT INTO x.p VALUES (1), (2); INSERT INTO c VALUES (1); INSERT INTO c VALUES (1);
         INSERT INTO d VALUES (7);
         SELECT * FROM main.p; SELECT * FROM temp.p; SELECT * FROM x.p; SELECT * FROM x.k;
         ALTER TABLE x.k RENAME b TO bb; ALTER TABLE x.k RENAME TO kk;
         SELECT sql FROM sqlite_temp_schema WHERE type = 'trigger'; INSERT INTO c VALUES (3);
         SELECT * FROM x.kk; DROP TABLE x.p; INSERT INTO c VALUES (4); SELECT * FROM x.kk",
    );
    same(
        "ATTACH ':memory:' AS x; CREATE TABLE p(a); CREATE TABLE x.p(a); CREATE VIEW x.v AS SELECT * FROM p;
         CREATE TRIGGER t AFTER INSERT ON p BEGIN INSERT INTO main.p VALUES (1); END;
         CREATE TRIGGER t AFTER INSERT ON p BEGIN SELECT 1; UPDATE x.p SET a = 1; END;
         CREATE TRIGGER x.t AFTER INSERT ON p BEGIN DELETE FROM x.p; END;
         CREATE TRIGGER t AFTER INSERT ON nope BEGIN DELETE FROM main.p; END;
         CREATE TEMP TRIGGER t INSTEAD OF INSERT ON x.v BEGIN
            INSERT INTO x.p VALUES (new.a); INSERT INTO main.p VALUES (new.a + 1);
         END;
         INSERT INTO x.v VALUES (1), (2); SELECT * FROM main.p; SELECT * FROM x.p;
         CREATE TEMP TRIGGER u AFTER INSERT ON main.p BEGIN INSERT INTO nope.p VALUES (1); END;
         INSERT INTO x.v VALUES (3); DETACH x; INSERT INTO main.p VALUES (1)",
    );
}
