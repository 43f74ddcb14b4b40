//! ALTER TABLE of tables that triggers name, beside bundled SQLite.

mod support;

use support::same;

#[test]
fn alter_names_are_rewritten() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
         CREATE TABLE log(m, a);
         CREATE VIEW v AS SELECT a, b FROM t;
         CREATE TRIGGER t1 AFTER UPDATE OF a, b ON t WHEN old.a > new.b AND (SELECT count(*) \
            FROM t WHERE t.a = new.a) BEGIN INSERT INTO log(m, a) VALUES (new.a, old.\"a\"); \
            UPDATE t SET a = new.b, b = t.a WHERE a = 'a' AND t.id = 1; DELETE FROM t WHERE a \
            = 1; SELECT t.a, x.a FROM t, log AS x WHERE t.b = \"b\"; END;
         CREATE TRIGGER t2 INSTEAD OF INSERT ON v BEGIN INSERT INTO t(a, b) SELECT new.a, \
            new.b FROM t WHERE 1 ON CONFLICT (id) DO UPDATE SET a = b, b = t.a WHERE t.b > a; \
            END;
         CREATE TRIGGER t3 BEFORE INSERT ON log BEGIN UPDATE t SET a = t.a + log.a FROM log \
            WHERE t.b = log.a; INSERT INTO log VALUES (new.a, new.m); UPDATE v SET a = 1 WHERE \
            v.b = 2; DELETE FROM v WHERE v.a = 1; END;
         ALTER TABLE t RENAME TO u;
         SELECT name, tbl_name, sql FROM sqlite_schema;
         ALTER TABLE u RENAME COLUMN a TO aa;
         SELECT name, tbl_name, sql FROM sqlite_schema;
         ALTER TABLE log RENAME COLUMN a TO zz;
         SELECT name, tbl_name, sql FROM sqlite_schema;
         ALTER TABLE log RENAME TO \"lo g\";
         SELECT name, tbl_name, sql FROM sqlite_schema;
         ALTER TABLE u DROP COLUMN aa;
         ALTER TABLE u DROP COLUMN b;
         ALTER TABLE u ADD COLUMN extra;
         SELECT name, tbl_name, sql FROM sqlite_schema;",
    );
}

#[test]
fn alter_names_of_the_columns_it_waits_for() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c);
         CREATE TRIGGER t1 AFTER UPDATE OF a, b ON t BEGIN SELECT new.c; END;
         ALTER TABLE t RENAME COLUMN a TO aa;
         ALTER TABLE t RENAME TO u;
         ALTER TABLE u RENAME COLUMN b TO \"b b\";
         SELECT name, tbl_name, sql FROM sqlite_schema;
         UPDATE u SET aa = 1;
         ALTER TABLE u DROP COLUMN aa;
         ALTER TABLE u DROP COLUMN c;
         SELECT name, tbl_name, sql FROM sqlite_schema;",
    );
}

#[test]
fn alter_columns_may_go_that_inserts_list() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
         CREATE TABLE o(a);
         CREATE TRIGGER t1 AFTER INSERT ON o BEGIN INSERT INTO t(a) VALUES (new.a); END;
         ALTER TABLE t DROP COLUMN b;
         ALTER TABLE t DROP COLUMN a;
         ALTER TABLE t ADD COLUMN c;
         DROP TABLE t;
         ALTER TABLE o RENAME COLUMN a TO b;
         ALTER TABLE o RENAME TO p;
         ALTER TABLE o ADD COLUMN c;
         SELECT name, tbl_name, sql FROM sqlite_schema;",
    );
}

#[test]
fn alter_texts_that_mean_nothing_forbid_changes() {
    same(
        "CREATE TABLE t(a, b, c);
         CREATE TRIGGER t1 AFTER UPDATE OF c ON t BEGIN SELECT 1; END;
         ALTER TABLE t DROP COLUMN c;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER UPDATE OF nosuch ON t BEGIN SELECT 1; END;
         ALTER TABLE t RENAME COLUMN b TO x;
         ALTER TABLE t RENAME TO u;
         ALTER TABLE u RENAME TO t;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN SELECT nosuch; END;
         ALTER TABLE t RENAME COLUMN x TO b;
         ALTER TABLE t RENAME TO u;
         ALTER TABLE t DROP COLUMN x;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN UPDATE t SET nosuch = 1; END;
         ALTER TABLE t RENAME COLUMN x TO b;
         ALTER TABLE t RENAME TO u;
         ALTER TABLE u RENAME TO t;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN INSERT INTO nosuch VALUES (1); END;
         ALTER TABLE t RENAME COLUMN b TO x;
         ALTER TABLE t RENAME TO u;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN SELECT old.a; END;
         ALTER TABLE t RENAME TO u;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN INSERT INTO t VALUES (1,2,3,4,5); END;
         ALTER TABLE t RENAME TO u;
         ALTER TABLE u RENAME TO t;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN UPDATE t SET b = 1; SELECT nosuch(1), \
            \"text\", \"a\" FROM t; END;
         ALTER TABLE t RENAME COLUMN b TO bb;
         ALTER TABLE t DROP COLUMN bb;
         SELECT sql FROM sqlite_schema;
         DROP TRIGGER t1;
         CREATE TRIGGER t1 AFTER INSERT ON t BEGIN SELECT * FROM (SELECT new.a AS a FROM t) AS \
            q WHERE q.a = new.a AND EXISTS (SELECT 1 FROM t AS new WHERE new.a = 1); END;
         ALTER TABLE t RENAME COLUMN a TO x;
         SELECT sql FROM sqlite_schema;",
    );
}

#[test]
fn alter_goes_on_where_a_trigger_updates_a_generated_column() {
    let (tables, steps) = (
        "CREATE TABLE t(a UNIQUE, b AS (a), c); CREATE TABLE u(x, y);
         CREATE TRIGGER r AFTER INSERT ON u BEGIN",
        "END;
         ALTER TABLE u RENAME COLUMN y TO z;
         ALTER TABLE t RENAME COLUMN b TO bb;
         ALTER TABLE t RENAME COLUMN c TO cc;
         ALTER TABLE t RENAME TO tt;
         ALTER TABLE u DROP COLUMN z;
         SELECT name, tbl_name, sql FROM sqlite_schema;
         INSERT INTO u VALUES (1);",
    );
    same(&format!("{tables} UPDATE t SET b = 1 WHERE c = 1; {steps}"));
    same(&format!("{tables} UPDATE t SET (c, b) = (1, 2); {steps}"));
    same(&format!(
        "{tables} INSERT INTO t(a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = c; {steps}"
    ));
}
