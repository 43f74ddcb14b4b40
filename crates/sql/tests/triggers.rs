//! Triggers beside bundled SQLite: what they see, when they run, and what they do to the
//! statement that fires them.

mod support;

use std::thread;

use support::{engine, must, run, same, session};

#[test]
fn creation_refuses_what_sqlite_refuses() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT COLLATE NOCASE);
         CREATE VIEW v AS SELECT a, b FROM t;
         CREATE TRIGGER x AFTER INSERT ON nosuch BEGIN SELECT 1; END;
         CREATE TRIGGER x INSTEAD OF INSERT ON t BEGIN SELECT 1; END;
         CREATE TRIGGER x BEFORE INSERT ON v BEGIN SELECT 1; END;
         CREATE TRIGGER x AFTER INSERT ON v BEGIN SELECT 1; END;
         CREATE TRIGGER x INSERT ON v BEGIN SELECT 1; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT ?; END;
         CREATE TRIGGER x AFTER INSERT ON t WHEN ?1 BEGIN SELECT 1; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO main.t VALUES (1,2,3); END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t INDEXED BY foo SET a=1; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t NOT INDEXED SET a=1; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t INDEXED BY foo; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t DEFAULT VALUES; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t VALUES (1,2,3) RETURNING a; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a=1 RETURNING a; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t RETURNING a; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN WITH c AS (SELECT 1) INSERT INTO t SELECT \
            1,2,3; END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t AS k VALUES (1,2,3); END;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t AS k SET a=1; END;
         CREATE TRIGGER x1 AFTER INSERT ON t BEGIN DELETE FROM t AS k WHERE a=1; END;
         CREATE TRIGGER x AFTER UPDATE OF nosuch ON t BEGIN SELECT nosuch FROM nowhere; END;
         CREATE TRIGGER x AFTER UPDATE ON t BEGIN SELECT 1; END;
         CREATE TRIGGER IF NOT EXISTS x AFTER UPDATE ON t BEGIN SELECT 1; END;
         CREATE TRIGGER IF NOT EXISTS x AFTER UPDATE ON nosuch BEGIN SELECT 1; END;
         CREATE TRIGGER sqlite_x AFTER UPDATE ON t BEGIN SELECT 1; END;
         CREATE TRIGGER t AFTER UPDATE ON t BEGIN SELECT 1; END;
         CREATE TRIGGER main.y AFTER UPDATE ON t FOR EACH ROW WHEN old.a > 1 BEGIN SELECT 1;   \
            END  ;
         CREATE TRIGGER main.y2 AFTER UPDATE ON main.t BEGIN SELECT 1; END;
         CREATE TRIGGER z AFTER UPDATE ON sqlite_schema BEGIN SELECT 1; END;
         CREATE TRIGGER z AFTER UPDATE ON sqlite_sequence BEGIN SELECT 1; END;
         CREATE TRIGGER z AFTER UPDATE ON t BEGIN SELECT 1; END garbage;
         CREATE TRIGGER z AFTER UPDATE ON t BEGIN END;
         CREATE TRIGGER z AFTER UPDATE ON t FOR EACH STATEMENT BEGIN SELECT 1; END;
         CREATE TRIGGER z UPDATE ON t BEGIN SELECT new.a FROM t; END;
         CREATE TRIGGER nope.z UPDATE ON t BEGIN SELECT new.a FROM t; END;
         CREATE TRIGGER \"quo ted\" /* c */ UPDATE OF a, \"b\" ON \"t\" BEGIN SELECT new.a \
            FROM t; SELECT 2; END;
         CREATE TRIGGER vi INSTEAD OF UPDATE OF a ON v BEGIN SELECT 1; END;
         CREATE TRIGGER vii INSTEAD OF UPDATE ON v WHEN 1 BEGIN SELECT 1; END;
         SELECT type, name, tbl_name, sql FROM sqlite_schema;
         CREATE INDEX x ON t(a);
         CREATE TABLE x(a);
         DROP TRIGGER nosuch;
         DROP TRIGGER IF EXISTS nosuch;
         DROP TRIGGER main.nosuch;
         DROP TRIGGER temp.nosuch;
         DROP TRIGGER y;
         DROP VIEW v;
         DROP TABLE t;
         SELECT type, name, tbl_name FROM sqlite_schema;
         CREATE VIEW v AS SELECT RAISE(IGNORE);
         SELECT * FROM v;
         SELECT RAISE(ABORT, 'x');",
    );
}

#[test]
fn values_are_as_columns_have_them() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT COLLATE NOCASE, r REAL);
         CREATE TABLE log(m, x, y);
         CREATE TRIGGER bi BEFORE INSERT ON t BEGIN INSERT INTO log VALUES ('bi', new.id, \
            typeof(new.a)||new.a); INSERT INTO log VALUES ('li', last_insert_rowid(), \
            changes()); END;
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('ai', new.rowid, \
            new.a); INSERT INTO log VALUES ('lj', last_insert_rowid(), \
            changes()||'/'||total_changes()); END;
         CREATE TRIGGER ai2 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('ai2', new.id = \
            '1', new.a = '5'); INSERT INTO log VALUES ('coll', new.b = 'X', new.a < 'z'); END;
         INSERT INTO t(a, b, r) VALUES ('5', 'x', 3);
         SELECT * FROM log;
         SELECT changes(), total_changes(), last_insert_rowid();",
    );
}

#[test]
fn the_newest_runs_first() {
    same(
        "CREATE TABLE t(a, b);
         CREATE TABLE log(m);
         CREATE TRIGGER t1 BEFORE INSERT ON t BEGIN INSERT INTO log VALUES ('t1'); END;
         CREATE TRIGGER t2 BEFORE INSERT ON t BEGIN INSERT INTO log VALUES ('t2'); END;
         CREATE TRIGGER t3 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('t3'); END;
         CREATE TRIGGER t0 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('t0'); END;
         INSERT INTO t VALUES (1, 2), (3, 4);
         SELECT * FROM log;
         SELECT * FROM log;",
    );
}

#[test]
fn raise_says_how_much_is_undone() {
    same(
        "CREATE TABLE t(a, b);
         CREATE TRIGGER ai AFTER INSERT ON t WHEN new.a = 2 BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER bi BEFORE INSERT ON t WHEN new.a = 3 BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER ci BEFORE INSERT ON t WHEN new.a = 4 BEGIN SELECT RAISE(FAIL, 'four'); \
            END;
         CREATE TRIGGER di BEFORE INSERT ON t WHEN new.a = 5 BEGIN SELECT RAISE(ABORT, \
            'fi'||'ve'||new.b); END;
         CREATE TRIGGER ei AFTER INSERT ON t WHEN new.a = 6 BEGIN SELECT RAISE(ROLLBACK, 6.5); \
            END;
         CREATE TRIGGER fi AFTER INSERT ON t WHEN new.a = 7 BEGIN SELECT RAISE(ABORT, NULL); END;
         INSERT INTO t VALUES (1,1),(2,2),(3,3),(10,10) RETURNING a;
         SELECT * FROM t;
         INSERT INTO t VALUES (1,1),(4,4),(3,3);
         SELECT * FROM t;
         INSERT INTO t VALUES (1,1),(5,5),(3,3);
         SELECT * FROM t;
         INSERT OR IGNORE INTO t VALUES (1,1),(5,5),(3,3);
         BEGIN;
         INSERT INTO t VALUES (1,1),(6,5),(3,3);
         INSERT INTO t VALUES (7,5);
         SELECT * FROM t;",
    );
}

#[test]
fn recursion_is_off_unless_asked_for_and_bounded() {
    same(
        "CREATE TABLE t(a, b);
         CREATE TRIGGER r AFTER INSERT ON t WHEN new.a < 1005 BEGIN INSERT INTO t VALUES \
            (new.a + 1, 0); END;
         INSERT INTO t VALUES (1, 1);
         SELECT count(*) FROM t;
         PRAGMA recursive_triggers = 1;
         PRAGMA recursive_triggers;
         INSERT INTO t VALUES (1, 1);
         INSERT INTO t VALUES (6, 1);
         SELECT count(*) FROM t;
         INSERT INTO t VALUES (5, 1);
         SELECT count(*) FROM t;",
    );
}

#[test]
fn actions_fire_triggers_of_children() {
    same(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE p(id INTEGER PRIMARY KEY, up REFERENCES p ON DELETE CASCADE);
         CREATE TABLE log(m, x);
         CREATE TRIGGER bd BEFORE DELETE ON p BEGIN INSERT INTO log VALUES ('bd', old.id); END;
         CREATE TRIGGER ad AFTER DELETE ON p BEGIN INSERT INTO log VALUES ('ad', old.id); END;
         INSERT INTO p VALUES (1, NULL), (2, 1), (3, 1), (4, 2);
         DELETE FROM p WHERE id = 1;
         SELECT * FROM log;",
    );
}

#[test]
fn each_event_fires_its_own() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE, v);
         CREATE TABLE log(m, x);
         CREATE TRIGGER bd BEFORE DELETE ON t BEGIN INSERT INTO log VALUES ('bd', old.id); END;
         CREATE TRIGGER ad AFTER DELETE ON t BEGIN INSERT INTO log VALUES ('ad', old.id); END;
         CREATE TRIGGER bu BEFORE UPDATE ON t BEGIN INSERT INTO log VALUES ('bu', \
            old.id||new.id); END;
         CREATE TRIGGER au AFTER UPDATE OF v ON t BEGIN INSERT INTO log VALUES ('au', \
            old.v||new.v); END;
         CREATE TRIGGER bi BEFORE INSERT ON t BEGIN INSERT INTO log VALUES ('bi', new.id); END;
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('ai', new.id); END;
         INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
         REPLACE INTO t VALUES (1, 'b', 3);
         SELECT * FROM log;
         SELECT * FROM t;
         PRAGMA recursive_triggers = on;
         DELETE FROM log;
         INSERT INTO t VALUES (2, 'b2', 2);
         REPLACE INTO t VALUES (1, 'b2', 3);
         SELECT * FROM log;
         SELECT * FROM t;
         DELETE FROM log;
         INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET v = 7 RETURNING *;
         INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT DO NOTHING RETURNING *;
         SELECT * FROM log;
         DELETE FROM log;
         UPDATE t SET v = v + 1, k = 5;
         UPDATE t SET k = 6;
         DELETE FROM t;
         SELECT * FROM log;",
    );
}

#[test]
fn views_are_written_by_instead_of() {
    same(
        "CREATE TABLE t(a, b);
         INSERT INTO t VALUES (1, 2), (3, 4);
         CREATE VIEW v AS SELECT a AS x, b AS y FROM t;
         CREATE TABLE log(m, x, y);
         INSERT INTO v VALUES (1, 2);
         UPDATE v SET x = 1;
         DELETE FROM v;
         CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO log VALUES ('i', \
            typeof(new.x), new.y); INSERT INTO t VALUES (new.x, new.y); END;
         INSERT INTO v VALUES (5, '6') RETURNING x, y, typeof(y);
         INSERT INTO v(y) VALUES (5), (6);
         INSERT INTO v DEFAULT VALUES;
         INSERT INTO v VALUES (1);
         INSERT INTO v(z) VALUES (1);
         INSERT INTO v(rowid, x) VALUES (1, 2);
         INSERT INTO v SELECT b, a FROM t;
         INSERT INTO v VALUES (1,2) ON CONFLICT DO NOTHING;
         UPDATE v SET x = 1;
         CREATE TRIGGER vu INSTEAD OF UPDATE OF x ON v BEGIN INSERT INTO log VALUES ('u', \
            old.x||'>'||new.x, old.y||'>'||new.y); UPDATE t SET a = new.x WHERE a = old.x; END;
         UPDATE v SET y = 1;
         UPDATE v SET x = x + 1 WHERE y > 2 RETURNING x, y;
         UPDATE v SET z = 1;
         UPDATE v SET rowid = 1;
         DELETE FROM v WHERE x = 1;
         CREATE TRIGGER vd INSTEAD OF DELETE ON v BEGIN INSERT INTO log VALUES ('d', old.x, \
            old.y); DELETE FROM t WHERE a = old.x; END;
         DELETE FROM v WHERE x = 1 RETURNING x, y;
         DELETE FROM v;
         SELECT * FROM t;
         SELECT * FROM log;
         CREATE TRIGGER ve INSTEAD OF DELETE ON v BEGIN SELECT old.rowid; END;
         DELETE FROM v;",
    );
}

#[test]
fn names_are_looked_for_when_it_fires() {
    same(
        "CREATE TABLE t(a, b);
         CREATE TABLE c(x);
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN SELECT * FROM nosuch; END;
         INSERT INTO t VALUES (1,2);
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN SELECT nosuch FROM c; END;
         INSERT INTO t VALUES (1,2);
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN SELECT old.a FROM c; END;
         INSERT INTO t VALUES (1,2);
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN SELECT new.z FROM c; END;
         INSERT INTO t VALUES (1,2);
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER INSERT ON t WHEN foo BEGIN SELECT 1 FROM c; END;
         INSERT INTO t VALUES (1,2);
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER DELETE ON t WHEN new.a BEGIN SELECT 1 FROM c; END;
         DELETE FROM t;
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER DELETE ON t WHEN old.a BEGIN UPDATE c SET y = 1; END;
         DELETE FROM t;
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER DELETE ON t WHEN old.a BEGIN INSERT INTO c VALUES (1,2); END;
         DELETE FROM t;
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER DELETE ON t WHEN old.a BEGIN INSERT INTO nosuch VALUES (1,2); \
            END;
         DELETE FROM t;
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER DELETE ON t WHEN old.a BEGIN UPDATE nosuch SET a = 1; END;
         DELETE FROM t;
         DROP TRIGGER ai;
         CREATE TRIGGER ai AFTER DELETE ON t WHEN \"old.a\" BEGIN DELETE FROM main.nosuch; END;
         DROP TABLE t;",
    );
}

#[test]
fn a_row_that_takes_no_place_fires_no_trigger_of_a_delete() {
    let broken = "CREATE TRIGGER r AFTER DELETE ON t BEGIN INSERT INTO nowhere VALUES (1); END;";
    let recursive = "PRAGMA recursive_triggers = ON;";
    same(&format!(
        "{recursive} CREATE TABLE t(a, b); {broken}
         REPLACE INTO t VALUES (1, 2);
         REPLACE INTO t(rowid, a) VALUES (1, 2);
         UPDATE OR REPLACE t SET a = 3;
         UPDATE OR REPLACE t SET rowid = 3;
         CREATE UNIQUE INDEX i ON t(b);
         REPLACE INTO t(a) VALUES (1);
         UPDATE OR REPLACE t SET a = 3;
         UPDATE OR REPLACE t SET b = 3;"
    ));
    same(&format!(
        "{recursive} CREATE TABLE t(a, b, PRIMARY KEY (a)) WITHOUT ROWID; {broken}
         INSERT INTO t VALUES (1, 2);
         REPLACE INTO t VALUES (1, 2);
         UPDATE OR REPLACE t SET b = 3;
         UPDATE OR REPLACE t SET a = 3;"
    ));
    same(&format!(
        "{recursive} CREATE TABLE t(a INTEGER PRIMARY KEY ON CONFLICT REPLACE, \
             b UNIQUE ON CONFLICT REPLACE, c, d AS (c) UNIQUE, e); {broken}
         INSERT OR ABORT INTO t VALUES (1, 2, 3, 4);
         INSERT INTO t VALUES (1, 2, 3, 4);
         INSERT INTO t VALUES (1, 2, 3, 4) ON CONFLICT (a) DO UPDATE SET e = 5;
         INSERT INTO t VALUES (1, 2, 3, 4) ON CONFLICT DO UPDATE SET e = 5;
         INSERT INTO t VALUES (1, 2, 3, 4) \
             ON CONFLICT (b) DO NOTHING ON CONFLICT (a) DO UPDATE SET e = 6;
         UPDATE t SET e = 7;
         UPDATE t SET b = 8;
         UPDATE OR REPLACE t SET c = 9;
         SELECT * FROM t;"
    ));
}

#[test]
fn before_may_change_and_delete_the_row() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
         CREATE TABLE log(m);
         CREATE TRIGGER bu BEFORE UPDATE OF a ON t BEGIN UPDATE t SET b = 'bu' WHERE id = \
            old.id; END;
         CREATE TRIGGER au AFTER UPDATE ON t BEGIN INSERT INTO log VALUES \
            (old.a||'-'||ifnull(old.b,'n')||'>'||new.a||'-'||ifnull(new.b,'n')); END;
         INSERT INTO t VALUES (1,1,1),(2,2,2),(3,3,3);
         UPDATE t SET a = a + 10 WHERE id < 3;
         SELECT * FROM t;
         SELECT * FROM log;
         CREATE TRIGGER bd BEFORE DELETE ON t BEGIN DELETE FROM t WHERE id = old.id + 1; END;
         DELETE FROM t;
         SELECT * FROM t;
         SELECT changes(), total_changes();",
    );
}

#[test]
fn before_may_take_the_row() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
         CREATE TRIGGER bd BEFORE DELETE ON t BEGIN DELETE FROM t WHERE id = old.id; END;
         CREATE TRIGGER bu BEFORE UPDATE ON t WHEN new.a = 7 BEGIN DELETE FROM t WHERE id = \
            old.id; END;
         INSERT INTO t VALUES (1,1,1),(2,2,2),(3,3,3);
         DELETE FROM t WHERE id = 2;
         SELECT changes(), total_changes();
         UPDATE t SET a = 7 WHERE id = 1 RETURNING *;
         SELECT * FROM t;",
    );
}

#[test]
fn the_or_clause_outside_goes_before() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b);
         CREATE TABLE u(x UNIQUE);
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.b); INSERT OR \
            IGNORE INTO u VALUES (new.b + 100); END;
         INSERT INTO t VALUES (1, 1, 5);
         INSERT INTO t VALUES (2, 2, 5);
         INSERT OR IGNORE INTO t VALUES (3, 3, 5);
         INSERT OR REPLACE INTO t VALUES (4, 4, 5);
         INSERT OR FAIL INTO t VALUES (5, 5, 6), (6, 6, 5), (7, 7, 7);
         INSERT OR ABORT INTO t VALUES (8, 8, 10), (9, 9, 110);
         INSERT INTO t VALUES (8, 8, 11), (9, 9, 12), (10, 10, 111);
         SELECT * FROM t;
         SELECT * FROM u;
         BEGIN;
         INSERT INTO t VALUES (50, 50, 50);
         INSERT OR ROLLBACK INTO t VALUES (51, 51, 50);
         SELECT * FROM t;
         INSERT INTO t VALUES (1, 77, 78) ON CONFLICT (id) DO UPDATE SET a = 5;
         CREATE TRIGGER au AFTER UPDATE ON t BEGIN INSERT OR IGNORE INTO u VALUES (new.b); END;
         INSERT INTO t VALUES (1, 77, 78) ON CONFLICT (id) DO UPDATE SET a = 55;
         UPDATE OR IGNORE t SET a = a + 1000;
         UPDATE t SET a = a + 1000;
         DELETE FROM t;",
    );
}

#[test]
fn what_triggers_put_in_the_way_stays() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE);
         CREATE TRIGGER bd AFTER DELETE ON t BEGIN INSERT INTO t VALUES (old.id + 100, old.a); \
            END;
         PRAGMA recursive_triggers = 1;
         INSERT INTO t VALUES (1, 1);
         REPLACE INTO t VALUES (2, 1);
         SELECT * FROM t;
         REPLACE INTO t VALUES (1, 5);
         SELECT * FROM t;
         SELECT * FROM t;
         DELETE FROM t WHERE id = 1;
         SELECT * FROM t;",
    );
}

#[test]
fn foreign_keys_are_checked_after_triggers() {
    same(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE p(id INTEGER PRIMARY KEY);
         CREATE TABLE c(x REFERENCES p);
         CREATE TRIGGER bi BEFORE INSERT ON c BEGIN INSERT OR IGNORE INTO p VALUES (new.x); END;
         INSERT INTO c VALUES (1), (2), (1);
         DROP TRIGGER bi;
         CREATE TRIGGER ai AFTER INSERT ON c BEGIN INSERT OR IGNORE INTO p VALUES (new.x); END;
         INSERT INTO c VALUES (3), (4);
         INSERT INTO c VALUES (5);
         DROP TRIGGER ai;
         INSERT INTO c VALUES (6);
         CREATE TRIGGER dp AFTER DELETE ON p BEGIN INSERT INTO c VALUES (old.id); END;
         DELETE FROM p WHERE id = 5;
         CREATE TRIGGER bdp BEFORE DELETE ON p BEGIN DELETE FROM c WHERE x = old.id; END;
         DELETE FROM p WHERE id = 5;
         DROP TRIGGER dp;
         DELETE FROM p WHERE id = 5;
         SELECT * FROM p;
         SELECT * FROM c;
         CREATE TABLE o(y);
         CREATE TRIGGER oi BEFORE INSERT ON o BEGIN INSERT INTO c VALUES (new.y); END;
         CREATE TRIGGER oi2 AFTER INSERT ON o BEGIN INSERT OR IGNORE INTO p VALUES (new.y + \
            1); END;
         INSERT INTO o VALUES (9);
         INSERT INTO o VALUES (9), (8);
         INSERT INTO o VALUES (8), (7);
         BEGIN;
         INSERT INTO o VALUES (9), (8);
         COMMIT;",
    );
}

#[test]
fn actions_and_their_triggers_in_order() {
    same(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE p(id INTEGER PRIMARY KEY);
         CREATE TABLE c(id INTEGER PRIMARY KEY, x REFERENCES p ON DELETE SET NULL ON UPDATE \
            CASCADE);
         CREATE TABLE log(m, a, b);
         CREATE TRIGGER cu BEFORE UPDATE OF x ON c BEGIN INSERT INTO log VALUES ('bu', old.x, \
            new.x); END;
         CREATE TRIGGER cu2 AFTER UPDATE OF x ON c BEGIN INSERT INTO log VALUES ('au', old.x, \
            new.x); END;
         CREATE TRIGGER cu3 AFTER UPDATE OF id ON c BEGIN INSERT INTO log VALUES ('no', old.x, \
            new.x); END;
         CREATE TRIGGER pu AFTER UPDATE ON p BEGIN INSERT INTO log VALUES ('pu', old.id, \
            new.id); END;
         CREATE TRIGGER pd AFTER DELETE ON p BEGIN INSERT INTO log VALUES ('pd', old.id, \
            (SELECT count(*) FROM c WHERE x IS NULL)); END;
         INSERT INTO p VALUES (1), (2);
         INSERT INTO c VALUES (1, 1), (2, 1), (3, 2);
         UPDATE p SET id = id + 10 WHERE id = 1;
         DELETE FROM p WHERE id = 11;
         CREATE TRIGGER ig BEFORE UPDATE OF x ON c WHEN old.id = 3 BEGIN SELECT RAISE(IGNORE); \
            END;
         DELETE FROM p;
         SELECT * FROM log;
         SELECT * FROM c;
         DROP TABLE p;
         SELECT * FROM log;",
    );
}

#[test]
fn bodies_of_all_kinds() {
    same(
        "CREATE TABLE t(a PRIMARY KEY, b DEFAULT 7);
         CREATE TABLE u(a, n INTEGER, PRIMARY KEY (a));
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.a % 3, 1) ON \
            CONFLICT (a) DO UPDATE SET n = n + excluded.n WHERE new.a < 8; END;
         INSERT INTO t(a) VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9);
         SELECT * FROM u;
         CREATE TRIGGER ai2 AFTER INSERT ON t BEGIN UPDATE u SET n = n + s.b FROM (SELECT a, b \
            FROM t WHERE t.a = new.a) AS s WHERE u.a = s.a % 3; SELECT CASE WHEN new.a > 100 \
            THEN RAISE(ABORT, 'big') END; END;
         INSERT INTO t VALUES (11, 11), (12, 12);
         SELECT * FROM u;
         INSERT INTO t VALUES (13, 11), (101, 12);
         SELECT * FROM u;
         CREATE TRIGGER ad AFTER DELETE ON t WHEN EXISTS (SELECT 1 FROM u WHERE u.a = old.a % \
            3 AND n > 10) BEGIN DELETE FROM u WHERE a = old.a % 3 AND n IN (SELECT max(n) FROM \
            u); INSERT INTO u SELECT old.a * 1000, count(*) FROM t; END;
         DELETE FROM t WHERE a > 8;
         SELECT * FROM u;
         INSERT INTO t SELECT a + 50, b FROM t;
         SELECT * FROM u;
         CREATE TRIGGER w AFTER UPDATE ON t WHEN new.b IS NOT old.b BEGIN INSERT INTO u WITH \
            k(z) AS (SELECT new.b UNION ALL SELECT z + 1 FROM k WHERE z < new.b + 2) SELECT \
            'k' || z || old.a, z FROM k; END;
         UPDATE t SET b = b + 1 WHERE a < 3;
         SELECT * FROM u;",
    );
}

#[test]
fn circles_of_tables() {
    same(
        "CREATE TABLE a(x);
         CREATE TABLE b(x);
         CREATE TRIGGER ta AFTER INSERT ON a WHEN new.x < 2000 BEGIN INSERT INTO b VALUES \
            (new.x + 1); END;
         CREATE TRIGGER tb AFTER INSERT ON b WHEN new.x < 2000 BEGIN INSERT INTO a VALUES \
            (new.x + 1); END;
         INSERT INTO a VALUES (1);
         SELECT (SELECT group_concat(x) FROM a), (SELECT group_concat(x) FROM b);
         PRAGMA recursive_triggers = 1;
         INSERT INTO a VALUES (1);
         INSERT INTO a VALUES (1800);
         SELECT count(*) FROM a;
         DROP TRIGGER ta;
         CREATE TRIGGER ta AFTER DELETE ON a BEGIN DELETE FROM a WHERE x = old.x + 1; END;
         DELETE FROM a;
         INSERT INTO a WITH k(z) AS (SELECT 1 UNION ALL SELECT z + 1 FROM k WHERE z < 900) \
            SELECT z FROM k;
         DELETE FROM a WHERE x = 1;
         SELECT count(*) FROM a;",
    );
}

#[test]
fn autoincrement_and_rowids() {
    same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a NOT NULL);
         CREATE TRIGGER bi BEFORE INSERT ON t WHEN new.a IS NULL BEGIN INSERT INTO t(a) VALUES \
            ('n'); END;
         INSERT INTO t(a) VALUES (1);
         INSERT INTO t(a) VALUES (NULL);
         INSERT OR IGNORE INTO t(a) VALUES (NULL);
         SELECT * FROM t;
         SELECT * FROM sqlite_sequence;
         INSERT INTO t VALUES (NULL, 'x');
         INSERT INTO t VALUES ('y', 'x');
         UPDATE t SET rowid = rowid + 10 WHERE a = 'x';
         CREATE TRIGGER bu BEFORE UPDATE OF id ON t BEGIN SELECT RAISE(ABORT, 'id'); END;
         UPDATE t SET rowid = rowid + 10 WHERE a = 'x';
         UPDATE t SET id = id + 10 WHERE a = 'x';
         UPDATE t SET ID = id + 10, a = 1;
         SELECT * FROM t;",
    );
}

#[test]
fn rows_whose_turn_comes_later() {
    same(
        "CREATE TABLE t(a, b);
         INSERT INTO t VALUES (1,1),(2,2),(3,3);
         CREATE TRIGGER au AFTER UPDATE ON t BEGIN UPDATE t SET b = b * 10 WHERE a = old.a + \
            1; END;
         UPDATE t SET b = b + 1;
         SELECT * FROM t;
         CREATE TRIGGER ad AFTER DELETE ON t WHEN old.a = 1 BEGIN UPDATE t SET a = 100 WHERE a \
            = 2; DELETE FROM t WHERE a = 3; END;
         DELETE FROM t WHERE a < 50;
         SELECT * FROM t;
         SELECT changes(), total_changes();
         SAVEPOINT s;
         INSERT INTO t VALUES (1,1),(2,2),(3,3);
         DELETE FROM t;
         ROLLBACK TO s;
         SELECT * FROM t;
         RELEASE s;",
    );
}

#[test]
fn views_of_groups() {
    same(
        "CREATE TABLE t(a, b);
         CREATE VIEW v(x, y) AS SELECT a, sum(b) FROM t GROUP BY a;
         CREATE TRIGGER vi INSTEAD OF INSERT ON v WHEN new.y > 0 BEGIN INSERT INTO t VALUES \
            (new.x, new.y); SELECT last_insert_rowid(); END;
         INSERT INTO v VALUES (1, 5), (1, 6), (2, -1), (3, 7);
         SELECT * FROM v;
         CREATE TRIGGER vu INSTEAD OF UPDATE ON v BEGIN UPDATE t SET a = new.x, b = new.y \
            WHERE a = old.x; END;
         UPDATE v SET y = y * 2 WHERE x = 1;
         SELECT * FROM v;
         SELECT * FROM t;
         CREATE TRIGGER vd INSTEAD OF DELETE ON v BEGIN DELETE FROM t WHERE a = old.x; SELECT \
            RAISE(IGNORE); END;
         SELECT * FROM t;
         DELETE FROM v WHERE nosuch;
         UPDATE v SET nosuch = 1;
         UPDATE v SET x = 1 RETURNING nosuch;
         CREATE TRIGGER tv AFTER INSERT ON t BEGIN INSERT INTO v VALUES (new.a * 100, 1); \
            UPDATE v SET y = 3 WHERE x = new.a * 100; END;
         INSERT INTO t VALUES (9, 9);
         SELECT * FROM t;
         DROP TABLE t;
         INSERT INTO v VALUES (1, 1);",
    );
}

#[test]
fn bodies_read_and_raise_where_they_like() {
    same(
        "CREATE TABLE t(a, b);
         CREATE TABLE log(x);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO log SELECT * FROM (SELECT new.a \
            UNION SELECT new.b ORDER BY 1 LIMIT new.a); END;
         INSERT INTO t VALUES (1, 2);
         INSERT INTO t VALUES (2, 1);
         SELECT * FROM log;
         CREATE TRIGGER y AFTER INSERT ON t WHEN new.a IN (SELECT x FROM log WHERE x = new.b) \
            BEGIN INSERT INTO log SELECT count(*) || new.a FROM t AS new WHERE new.b > 0 GROUP \
            BY new.b HAVING count(*) > 0; UPDATE log SET x = (SELECT max(k.a) FROM t k WHERE \
            k.b = log.x AND k.a <> new.a) WHERE x = new.b; END;
         INSERT INTO t VALUES (2, 2);
         SELECT * FROM log;
         CREATE TRIGGER z BEFORE UPDATE ON t BEGIN SELECT CASE WHEN new.a IS NULL THEN \
            RAISE(ABORT, 'a is ' || ifnull(old.a, 'x')) WHEN new.b < old.b THEN RAISE(FAIL, \
            'less') END; END;
         UPDATE t SET a = NULL WHERE a = 1;
         UPDATE t SET b = b - 1;
         UPDATE OR IGNORE t SET b = b - 1;
         UPDATE t SET a = a + 1, b = b + 1;
         SELECT * FROM t;
         CREATE TRIGGER w AFTER INSERT ON t BEGIN SELECT max(new.a), sum(new.b) FROM log; \
            DELETE FROM log WHERE rowid IN (SELECT rowid FROM log ORDER BY rowid LIMIT 1); \
            SELECT RAISE(IGNORE) FROM log WHERE x = 77; INSERT INTO log VALUES (random() IS \
            NULL); END;
         INSERT INTO t VALUES (1, 77), (77, 3);
         SELECT * FROM log;
         SELECT * FROM t;
         CREATE TABLE s(id INTEGER PRIMARY KEY, v REAL, n NUMERIC, bl BLOB);
         CREATE TABLE types(a, b, c, d);
         CREATE TRIGGER st BEFORE INSERT ON s BEGIN INSERT INTO types VALUES (typeof(new.v), \
            typeof(new.n), typeof(new.bl), new.v = '3'); END;
         CREATE TRIGGER st2 AFTER UPDATE ON s BEGIN INSERT INTO types VALUES (typeof(new.v), \
            typeof(old.n), new.v, new.n = '5'); END;
         INSERT INTO s VALUES (1, '3', '5', 'x'), (2, 3, 5.0, x'00');
         UPDATE s SET v = '4', n = '6.0';
         SELECT * FROM types;
         INSERT INTO t DEFAULT VALUES;
         REPLACE INTO s(id, v) SELECT id, v FROM s;
         SELECT * FROM types;
         DELETE FROM s;",
    );
}

/// Triggers nest to their limit on the stack of a small thread, whatever they do there.
#[test]
fn the_limit_needs_little_stack() {
    let nested = || {
        let session = session();
        must(
            &session,
            "PRAGMA recursive_triggers = 1;
             PRAGMA foreign_keys = 1;
             CREATE TABLE t(id INTEGER PRIMARY KEY, up REFERENCES t ON DELETE CASCADE);
             CREATE TABLE log(id INTEGER PRIMARY KEY, m);
             CREATE TRIGGER ti AFTER INSERT ON t WHEN new.id < 900 BEGIN
                INSERT INTO t SELECT new.id + 1, new.id WHERE EXISTS (SELECT 1 FROM t);
             END;
             CREATE TRIGGER td AFTER DELETE ON t BEGIN
                INSERT INTO log SELECT old.id, (SELECT count(*) FROM t);
             END;
             CREATE TRIGGER tl AFTER INSERT ON log WHEN new.m < 0 BEGIN
                DELETE FROM log WHERE m = new.m; UPDATE log SET m = new.m - 1 WHERE id = 5;
             END;
             CREATE TRIGGER tu AFTER UPDATE ON log BEGIN
                UPDATE log SET m = new.m - 1 WHERE id = new.id AND m > -900;
             END;",
        );
        must(&session, "INSERT INTO t VALUES (1, NULL);");
        assert_eq!(must(&session, "SELECT count(*) FROM t;"), ["900"]);
        // An action and the trigger of its row are one within the other.
        must(&session, "DELETE FROM t WHERE id = 420;");
        assert_eq!(must(&session, "SELECT count(*) FROM log;"), ["481"]);
        must(&session, "INSERT INTO log VALUES (5, 0);");
        must(&session, "UPDATE log SET m = -10 WHERE id = 5;");
        assert_eq!(must(&session, "SELECT m FROM log WHERE id = 5;"), ["-900"]);
        let deep = run(&session, "UPDATE log SET m = 500 WHERE id = 5;");
        assert_eq!(deep, ["error 1: triggers nested too deep"]);
    };
    let thread = thread::Builder::new().stack_size(1 << 20).spawn(nested);
    thread.unwrap().join().unwrap();
}

/// Statements that commit themselves name the trees of their triggers, and of what these
/// fire in turn: they wait for one another and never lose.
#[test]
fn statements_alone_never_lose() {
    let engine = engine();
    must(
        &engine.session(),
        "CREATE TABLE entry(id INTEGER PRIMARY KEY, account INT, amount INT);
         CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT, changes INT);
         CREATE TABLE total(n INT, sum INT);
         CREATE VIEW booking AS SELECT account, amount FROM entry;
         INSERT INTO total VALUES (0, 0);
         INSERT INTO account VALUES (0, 0, 0), (1, 0, 0), (2, 0, 0);
         CREATE TRIGGER book INSTEAD OF INSERT ON booking BEGIN
            INSERT INTO entry(account, amount) VALUES (new.account, new.amount);
         END;
         CREATE TRIGGER entered AFTER INSERT ON entry BEGIN
            UPDATE account SET balance = balance + new.amount, changes = changes + 1
            WHERE id = new.account;
         END;
         CREATE TRIGGER gone AFTER DELETE ON entry BEGIN
            UPDATE account SET balance = balance - old.amount, changes = changes - 1
            WHERE id = old.account;
         END;
         CREATE TRIGGER sums AFTER UPDATE OF balance ON account BEGIN
            UPDATE total SET sum = sum + new.balance - old.balance,
               n = (SELECT sum(changes) FROM account);
         END;",
    );
    let threads: Vec<_> = (0..4i64)
        .map(|number| {
            let session = engine.session();
            thread::spawn(move || {
                for round in 0..60 {
                    let (account, amount) = ((number + round) % 3, number * 100 + round);
                    let sql = match round % 5 {
                        0 => format!("INSERT INTO booking VALUES ({account}, {amount});"),
                        1 => format!("DELETE FROM entry WHERE amount = {};", amount - 1),
                        _ => format!("INSERT INTO entry VALUES (NULL, {account}, {amount});"),
                    };
                    must(&session, &sql);
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let session = engine.session();
    let is_kept = "SELECT (SELECT count(*) FROM entry) = n,
                   (SELECT sum(amount) FROM entry) = sum,
                   (SELECT sum(balance) FROM account) = sum FROM total;";
    assert_eq!(must(&session, is_kept), ["1,1,1"]);
    assert_eq!(must(&session, "PRAGMA integrity_check;"), ["'ok'"]);
}

/// An explicit transaction is validated for what its triggers read.
#[test]
fn what_triggers_read_is_validated() {
    let engine = engine();
    let (one, other) = (engine.session(), engine.session());
    must(
        &one,
        "CREATE TABLE t(a); CREATE TABLE ruled(a); CREATE TABLE rule(most INT);
         INSERT INTO rule VALUES (10);
         CREATE TRIGGER at_most BEFORE INSERT ON t WHEN new.a > (SELECT most FROM rule) BEGIN
            SELECT RAISE(ABORT, 'too much');
         END;
         BEGIN;
         INSERT INTO t VALUES (7);",
    );
    must(&other, "UPDATE rule SET most = 5;");
    assert_eq!(run(&one, "COMMIT;"), ["error 517: database is locked"]);
    let refused = run(&one, "INSERT INTO t VALUES (7);");
    assert_eq!(refused, ["error 1811: too much"]);
}

/// A statement that is prepared notices triggers that come and go, and the setting.
#[test]
fn prepared_statements_follow_the_schema() {
    let session = session();
    must(
        &session,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE log(m);",
    );
    let mut insert = support::prepare(&session, "REPLACE INTO t VALUES (1, 1)");
    let logged = || {
        must(
            &session,
            "SELECT group_concat(m) FROM log; DELETE FROM log;",
        )
    };
    support::drain(&mut insert);
    assert_eq!(logged(), ["NULL"]);
    must(
        &session,
        "CREATE TRIGGER i AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('i'); END;
         CREATE TRIGGER d AFTER DELETE ON t BEGIN INSERT INTO log VALUES ('d'); END;",
    );
    support::drain(&mut insert);
    assert_eq!(logged(), ["'i'"]);
    must(&session, "PRAGMA recursive_triggers = ON;");
    support::drain(&mut insert);
    assert_eq!(logged(), ["'d,i'"]);
    must(&session, "DROP TRIGGER d; DROP TRIGGER i;");
    support::drain(&mut insert);
    assert_eq!(logged(), ["NULL"]);
}

/// A trigger that cannot run does not keep the check from looking at its table.
#[test]
fn the_check_needs_no_triggers() {
    let session = session();
    must(
        &session,
        "CREATE TABLE t(a UNIQUE, CHECK (a > 0)); INSERT INTO t VALUES (1), (2);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT * FROM nowhere; END;",
    );
    assert_eq!(must(&session, "PRAGMA integrity_check;"), ["'ok'"]);
}

/// A trigger that cannot fail needs no place to go back to; one that can leaves nothing of
/// its statement, in a transaction too.
#[test]
fn a_failing_trigger_leaves_nothing_of_its_statement() {
    let audit = "CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE, v);
         CREATE TABLE log(id INTEGER PRIMARY KEY, k, v);
         CREATE TRIGGER ai AFTER INSERT ON t BEGIN INSERT INTO log(k, v) VALUES (new.k, new.v); END;
         CREATE TRIGGER au AFTER UPDATE ON t BEGIN UPDATE log SET v = new.v WHERE k = new.k; END;
         CREATE TRIGGER ad AFTER DELETE ON t BEGIN DELETE FROM log WHERE k = old.k; END;
         BEGIN;
         INSERT INTO t VALUES (1, 1, 1);
         INSERT INTO t VALUES (2, 1, 1);
         INSERT INTO t VALUES (3, 3, 3);
         UPDATE t SET v = 9 WHERE id = 3;
         UPDATE t SET k = 1 WHERE id = 3;
         DELETE FROM t WHERE id = 1;
         INSERT INTO t VALUES (3, 7, 3) ON CONFLICT (id) DO UPDATE SET v = 10;
         SELECT * FROM t; SELECT * FROM log;";
    same(&format!("{audit} COMMIT; SELECT * FROM log;"));
    for fails in [
        "SELECT RAISE(ABORT, 'no') WHERE new.v > 50;",
        "INSERT INTO log VALUES (new.v % 50, 0, 0);",
        "INSERT INTO log(k) SELECT abs(-9223372036854775807 - (new.v > 50));",
        "UPDATE log SET id = 1;",
    ] {
        same(&format!(
            "{audit}
             CREATE TRIGGER f AFTER INSERT ON t BEGIN {fails} END;
             INSERT INTO t VALUES (50, 50, 1), (51, 51, 2);
             INSERT INTO t VALUES (60, 60, 100);
             INSERT INTO t VALUES (61, 61, 51);
             SELECT * FROM t; SELECT * FROM log; COMMIT; SELECT * FROM log;"
        ));
    }
}
