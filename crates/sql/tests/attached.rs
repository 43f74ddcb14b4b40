//! ATTACH and DETACH, beside bundled SQLite.

mod support;

use support::same;

#[test]
fn an_attached_database_has_a_name() {
    same(
        "ATTACH ':memory:' AS a; CREATE TABLE a.t(x); INSERT INTO a.t VALUES (1);
         SELECT * FROM a.t; SELECT * FROM t; SELECT a.t.x FROM a.t; SELECT a.t.x FROM t;
         PRAGMA database_list; SELECT name FROM a.sqlite_schema; CREATE TABLE t(y);
         SELECT * FROM t; SELECT * FROM a.t; INSERT INTO t SELECT x + 1 FROM a.t;
         SELECT * FROM t; DETACH a; SELECT * FROM a.t; DETACH a",
    );
    same(
        r#"ATTACH ':memory:' AS a; ATTACH ':memory:' AS a; ATTACH ':memory:' AS main;
         ATTACH ':memory:' AS temp; ATTACH ':memory:' AS 'b c'; CREATE TABLE "b c".t(x);
         SELECT * FROM "b c".t; DETACH main; DETACH nope; DETACH DATABASE 'b c';
         ATTACH DATABASE ':memory:' AS MAIN; ATTACH ':memory:' AS A"#,
    );
    same(
        "ATTACH a.b AS c; ATTACH 'x' || 'y' || ':' AS; ATTACH NULL AS n;
         PRAGMA database_list; ATTACH ':mem' || 'ory:' AS q; CREATE TABLE q.t(x);
         ATTACH ':memory:' AS NULL; ATTACH (SELECT ':memory:') AS z; DETACH (SELECT 'z');
         DETACH 'q'; DETACH NULL; ATTACH ':memory:' AS '';
         ATTACH '/nonexistent/dir/x.db' AS y",
    );
}

#[test]
fn in_and_beside_transactions() {
    same(
        "BEGIN; ATTACH ':memory:' AS a; CREATE TABLE a.t(x); INSERT INTO a.t VALUES (1);
         DETACH a; COMMIT; DETACH a; BEGIN; ATTACH ':memory:' AS b; SELECT 1; DETACH b;
         COMMIT; BEGIN; SELECT * FROM sqlite_schema; ATTACH ':memory:' AS c; DETACH c; COMMIT",
    );
}

#[test]
fn there_are_ten_at_most() {
    same(
        "ATTACH ':memory:' AS a1; ATTACH ':memory:' AS a2; ATTACH ':memory:' AS a3;
         ATTACH ':memory:' AS a4; ATTACH ':memory:' AS a5; ATTACH ':memory:' AS a6;
         ATTACH ':memory:' AS a7; ATTACH ':memory:' AS a8; ATTACH ':memory:' AS a9;
         ATTACH ':memory:' AS a10; ATTACH ':memory:' AS a11; DETACH a3;
         ATTACH ':memory:' AS a11; PRAGMA database_list",
    );
}

#[test]
fn bare_names_are_looked_for_in_order() {
    same(
        "ATTACH ':memory:' AS a; ATTACH ':memory:' AS b; CREATE TABLE b.t(x);
         INSERT INTO t VALUES ('b'); CREATE TABLE a.t(x); INSERT INTO t VALUES ('a');
         CREATE TABLE t(x); INSERT INTO t VALUES ('main'); CREATE TEMP TABLE t(x);
         INSERT INTO t VALUES ('temp'); SELECT * FROM t; DROP TABLE t; SELECT * FROM t;
         DROP TABLE t; SELECT * FROM t; DROP TABLE t; SELECT * FROM t; DROP TABLE t;
         SELECT * FROM t",
    );
}

#[test]
fn everything_is_created_and_dropped_in_them() {
    same(
        "ATTACH ':memory:' AS a; CREATE TABLE a.t(x UNIQUE, y); BEGIN;
         INSERT INTO a.t VALUES (1, 2); SAVEPOINT s; INSERT INTO a.t VALUES (2, 3);
         ROLLBACK TO s; INSERT INTO a.t VALUES (1, 1); COMMIT; SELECT * FROM a.t;
         CREATE INDEX a.i ON t(y); CREATE INDEX j ON t(y);
         CREATE VIEW a.v AS SELECT y FROM t; SELECT * FROM v; SELECT * FROM a.v;
         CREATE VIEW a.w AS SELECT * FROM main.t;
         CREATE TRIGGER a.r AFTER INSERT ON t BEGIN UPDATE t SET y = 99 WHERE x = new.x; END;
         INSERT INTO t VALUES (7, 7); SELECT * FROM t; ALTER TABLE a.t RENAME COLUMN y TO z;
         SELECT sql FROM a.sqlite_schema; DROP TABLE a.t; SELECT name FROM a.sqlite_schema;
         PRAGMA a.table_info(v); DROP INDEX a.i; DROP VIEW a.v; DROP TRIGGER a.r",
    );
    same(
        "ATTACH ':memory:' AS a; CREATE TABLE a.t(id INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT INTO t DEFAULT VALUES; SELECT * FROM a.sqlite_sequence;
         SELECT * FROM sqlite_sequence; CREATE TABLE a.k AS SELECT 5 AS five;
         SELECT * FROM k; PRAGMA a.user_version = 3; PRAGMA a.user_version;
         PRAGMA user_version; PRAGMA integrity_check; PRAGMA a.integrity_check;
         SELECT schema, name FROM pragma_table_list WHERE name = 'k';
         SELECT name FROM pragma_table_info('k', 'a');
         SELECT name FROM pragma_table_info('k', 'b')",
    );
}

#[test]
fn foreign_keys() {
    same(
        "ATTACH ':memory:' AS a; CREATE TABLE a.p(id INTEGER PRIMARY KEY);
         CREATE TABLE a.c(p REFERENCES p ON DELETE CASCADE); PRAGMA foreign_keys = ON;
         INSERT INTO a.c VALUES (1); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1);
         DELETE FROM p; SELECT * FROM c; CREATE TABLE p(id);
         CREATE TABLE a.q(x REFERENCES nope); INSERT INTO q VALUES (1);
         PRAGMA a.foreign_key_check; PRAGMA foreign_key_check",
    );
}

#[test]
fn temporary_triggers_and_views_reach_them() {
    same(
        "ATTACH ':memory:' AS a; CREATE TABLE a.t(x); CREATE TEMP TABLE log(x);
         CREATE TEMP TRIGGER r AFTER INSERT ON a.t BEGIN INSERT INTO log VALUES (new.x); END;
         INSERT INTO a.t VALUES (1); SELECT * FROM log;
         CREATE TEMP VIEW v AS SELECT x FROM a.t; SELECT * FROM v;
         ALTER TABLE a.t RENAME TO u; SELECT sql FROM sqlite_temp_schema;
         ALTER TABLE a.u RENAME COLUMN x TO z; SELECT sql FROM sqlite_temp_schema; DETACH a;
         SELECT * FROM v; SELECT name FROM sqlite_temp_schema",
    );
}

#[test]
fn statements_read_and_write_across() {
    same(
        "ATTACH ':memory:' AS a; CREATE TABLE a.big(x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) INSERT INTO a.big SELECT i FROM n;
         CREATE TABLE m(x PRIMARY KEY); INSERT INTO m SELECT x FROM a.big WHERE x % 2;
         SELECT count(*) FROM m JOIN a.big USING (x);
         DELETE FROM a.big WHERE x IN (SELECT x FROM m); SELECT count(*) FROM big;
         UPDATE a.big SET x = -x; SELECT sum(x) FROM a.big; BEGIN; DELETE FROM m;
         DELETE FROM a.big; ROLLBACK; SELECT count(*) FROM m; SELECT count(*) FROM big;
         BEGIN; DELETE FROM m; DELETE FROM a.big; COMMIT; SELECT count(*) FROM m;
         SELECT count(*) FROM big",
    );
}
