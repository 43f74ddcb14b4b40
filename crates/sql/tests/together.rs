//! Parts of SQL where they meet: triggers, generated columns, STRICT tables, JSON, windows,
//! foreign keys, recursion and ALTER TABLE, each of which has a file of tests of its own.

mod support;

use support::same;

fn each(cases: &[&str]) {
    cases.iter().for_each(|case| same(case));
}

#[test]
fn triggers_see_generated_columns() {
    each(&[
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b INT AS (a * 2), c INT AS (a + b) STORED);
         CREATE TABLE log(x, y, z, w);
         CREATE TRIGGER t1 BEFORE INSERT ON t BEGIN INSERT INTO log VALUES ('bi', new.b, new.c, new.id); END;
         CREATE TRIGGER t2 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('ai', new.b, new.c, new.id); END;
         CREATE TRIGGER t3 BEFORE UPDATE ON t BEGIN INSERT INTO log VALUES ('bu', old.b, new.c, new.b); END;
         CREATE TRIGGER t4 AFTER UPDATE ON t BEGIN INSERT INTO log VALUES ('au', old.b, new.c, new.b); END;
         CREATE TRIGGER t5 AFTER DELETE ON t BEGIN INSERT INTO log VALUES ('ad', old.b, old.c, old.id); END;
         INSERT INTO t(a) VALUES (1), (2); UPDATE t SET a = a + 10; DELETE FROM t WHERE b = 22;
         INSERT OR REPLACE INTO t(id, a) VALUES (2, 5);
         INSERT INTO t(id, a) VALUES (2, 9) ON CONFLICT (id) DO UPDATE SET a = excluded.b;
         SELECT * FROM log; SELECT * FROM t;",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, g AS (id * 10)); CREATE TABLE log(x);
         CREATE TRIGGER b BEFORE INSERT ON t BEGIN INSERT INTO log VALUES (new.g); END;
         INSERT INTO t(a) VALUES (1); INSERT INTO t VALUES (7, 1); SELECT * FROM log;",
        "CREATE TABLE t(a INT, g INT AS (a * 2) UNIQUE);
         CREATE TRIGGER b BEFORE UPDATE ON t WHEN new.g > 100 BEGIN SELECT RAISE(ABORT, 'big ' || new.g); END;
         INSERT INTO t VALUES (1), (2), (60); UPDATE t SET a = 51 WHERE a = 1; SELECT * FROM t;
         UPDATE t SET a = 3 WHERE a = 1; SELECT * FROM t WHERE g = 6;",
        "CREATE TABLE t(a INT, g INT AS (a * 2)); CREATE TABLE log(x);
         CREATE TRIGGER u AFTER UPDATE OF g ON t BEGIN INSERT INTO log VALUES (new.g); END;
         INSERT INTO t VALUES (1); UPDATE t SET a = 5; SELECT * FROM log;",
        "CREATE TABLE t(a INT, b INT, g INT AS (a * 2) STORED);
         CREATE TRIGGER u BEFORE UPDATE OF b ON t BEGIN UPDATE t SET a = a + 1 WHERE rowid = old.rowid; END;
         INSERT INTO t VALUES (1, 1); UPDATE t SET b = 2; SELECT * FROM t;",
        "CREATE TABLE t(a INT, b INT AS (a + 1) STORED, c AS (b * 2));
         CREATE TRIGGER x AFTER DELETE ON t BEGIN INSERT INTO t(a) SELECT old.c WHERE old.c < 20; END;
         INSERT INTO t VALUES (1), (2), (3); DELETE FROM t; SELECT * FROM t; DELETE FROM t; SELECT * FROM t;",
        "CREATE TABLE t(a INT, b AS (a)); CREATE VIEW v AS SELECT * FROM t;
         CREATE TRIGGER x INSTEAD OF INSERT ON v BEGIN INSERT INTO t(a) VALUES (new.a + coalesce(new.b, 0)); END;
         INSERT INTO v VALUES (1, 2); INSERT INTO v(a) VALUES (4); SELECT * FROM v;
         INSERT INTO v VALUES (5, 6) RETURNING a, b;",
        "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a INT AS (id));
         CREATE TRIGGER x AFTER INSERT ON t WHEN new.id < 5 BEGIN INSERT INTO t DEFAULT VALUES; END;
         INSERT INTO t DEFAULT VALUES; SELECT * FROM t; PRAGMA recursive_triggers = 1;
         INSERT INTO t DEFAULT VALUES; SELECT * FROM t; SELECT * FROM sqlite_sequence;",
        "PRAGMA foreign_keys = ON; CREATE TABLE l(a);
         CREATE TABLE p(id INTEGER PRIMARY KEY, v AS (id + 1));
         CREATE TABLE c(p REFERENCES p ON DELETE CASCADE, x AS (p * 2));
         CREATE TRIGGER d AFTER DELETE ON c BEGIN INSERT INTO l VALUES (old.x); END;
         INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1), (1), (2);
         DELETE FROM p WHERE v = 2; SELECT * FROM l; SELECT * FROM c;",
    ]);
}

/// BEFORE triggers ran with values that their table does not take.
#[test]
fn types_of_strict_tables_are_looked_at_before_triggers() {
    each(&[
        "CREATE TABLE t(a INT, b TEXT) STRICT; CREATE TABLE l(x ANY, y TEXT) STRICT;
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            INSERT INTO l VALUES (new.a, new.b); INSERT INTO l VALUES (typeof(new.a), typeof(new.b));
         END;
         INSERT INTO t VALUES ('12', 3); SELECT * FROM l; SELECT typeof(x) FROM l;",
        "CREATE TABLE t(a INT) STRICT; CREATE TABLE l(x INT) STRICT;
         CREATE TRIGGER x BEFORE INSERT ON t BEGIN INSERT INTO l VALUES (new.a); END;
         CREATE TRIGGER y BEFORE UPDATE ON t BEGIN INSERT INTO l VALUES (new.a); END;
         INSERT INTO t VALUES ('abc'); SELECT count(*) FROM l; SELECT count(*) FROM t;
         INSERT INTO t VALUES (1); UPDATE t SET a = 'x'; UPDATE t SET a = '2'; SELECT * FROM l;",
        "CREATE TABLE g(a INT, b TEXT AS (a) STORED, c ANY AS (a)) STRICT; INSERT INTO g VALUES (5), (NULL);
         SELECT *, typeof(b), typeof(c) FROM g; PRAGMA table_xinfo(g);
         CREATE TABLE bad(a INT, b BLOB AS (a) STORED) STRICT; INSERT INTO bad VALUES (1);",
    ]);
}

#[test]
fn bodies_of_triggers_use_json_windows_and_recursion() {
    each(&[
        "CREATE TABLE t(id INTEGER PRIMARY KEY, j TEXT); CREATE TABLE e(k, v);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO e SELECT key, value FROM json_each(new.j); END;
         INSERT INTO t(j) VALUES ('{\"a\":1,\"b\":[2,3]}'), ('[7,8]'); SELECT * FROM e;",
        "CREATE TABLE t(a);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            UPDATE t SET a = (SELECT json_group_array(value ORDER BY value) FROM json_each(new.a))
            WHERE rowid = new.rowid;
         END;
         INSERT INTO t VALUES ('[3,1,2]') RETURNING a; SELECT * FROM t;",
        "CREATE TABLE t(a, b); CREATE TABLE log(r, a);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            INSERT INTO log SELECT row_number() OVER (ORDER BY b), a FROM t WHERE a <> new.a OR 1;
         END;
         INSERT INTO t VALUES (1, 9), (2, 8), (3, 7); SELECT * FROM log;",
        "CREATE TABLE t(a, b); CREATE VIEW v AS SELECT a, sum(b) OVER (ORDER BY a) s FROM t;
         CREATE TRIGGER x INSTEAD OF UPDATE ON v BEGIN UPDATE t SET b = new.s WHERE a = old.a; END;
         INSERT INTO t VALUES (1, 1), (2, 2), (3, 3); UPDATE v SET s = s * 10 WHERE a > 1;
         SELECT * FROM t; SELECT * FROM v;",
        "CREATE TABLE t(a); CREATE TABLE n(x);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            INSERT INTO n WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < new.a) SELECT i FROM c;
         END;
         INSERT INTO t VALUES (3); SELECT * FROM n;",
        "CREATE TABLE t(a); CREATE TABLE n(x);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            INSERT INTO n SELECT i FROM (
                WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < new.a) SELECT i FROM c
            );
         END;
         INSERT INTO t VALUES (3); SELECT * FROM n;",
        "CREATE TABLE t(a); CREATE TABLE n(x); INSERT INTO n VALUES (1), (2);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            INSERT INTO n SELECT l.x + r.x FROM n l FULL JOIN n r ON l.x = r.x + new.a;
         END;
         INSERT INTO t VALUES (1); SELECT * FROM n;",
        "CREATE TABLE t(a); CREATE TABLE log(x);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO log SELECT name FROM pragma_table_info('t'); END;
         INSERT INTO t VALUES (1); SELECT * FROM log;",
    ]);
}

#[test]
fn json_windows_and_generated_columns() {
    each(&[
        "CREATE TABLE t(id INTEGER PRIMARY KEY, j TEXT, a AS (j ->> 'a'), b AS (json_extract(j, '$.b')) STORED);
         CREATE INDEX ia ON t(a); INSERT INTO t(j) VALUES ('{\"a\":1,\"b\":[2,3]}'), ('{\"a\":\"x\"}');
         SELECT id, a, b, typeof(b) FROM t WHERE a = 1; SELECT * FROM t WHERE a = 'x';
         SELECT json_group_array(b) FROM t; SELECT json_group_array(json(b)) FROM t;",
        "CREATE TABLE t(g, x); INSERT INTO t VALUES (1, 1), (1, 2), (2, 3), (2, 4), (1, 5);
         SELECT g, x, json_group_array(x) OVER (PARTITION BY g ORDER BY x ROWS 1 PRECEDING) FROM t;
         SELECT json_group_object(g, x) OVER (ORDER BY x) FROM t;
         SELECT json_group_array(x) FILTER (WHERE x > 2) OVER (ORDER BY x) FROM t;
         SELECT jsonb_group_array(x) OVER (ORDER BY x) ->> '$[0]' FROM t;",
        "CREATE TABLE t(a INT, b INT AS (a + 1)); INSERT INTO t VALUES (1), (2), (3);
         SELECT b, sum(b) OVER (ORDER BY a) FROM t; SELECT max(b) OVER (), json_array(a, b) FROM t;
         SELECT * FROM t, json_each(json_array(t.a, t.b)) WHERE value = b;",
        "SELECT value, sum(value) OVER (ORDER BY key) FROM json_each('[1,2,3]');
         SELECT * FROM (SELECT key k, row_number() OVER (ORDER BY value DESC) r FROM json_each('[5,1,3]')) WHERE r = 1;
         WITH RECURSIVE c(j, d) AS (
            SELECT '[[1,[2]],3]', 0 UNION ALL
            SELECT value, d + 1 FROM c, json_each(c.j) WHERE json_valid(c.j) AND json_type(c.j) = 'array'
         ) SELECT j, d FROM c;",
        "SELECT name, type FROM pragma_table_info('sqlite_schema'); CREATE TABLE t(a INT, b AS (a));
         SELECT name, hidden FROM pragma_table_xinfo('t');
         SELECT m.name, i.name FROM sqlite_schema m, pragma_table_info(m.name) i;",
    ]);
}

/// Which results of windows another function takes for JSON.
#[test]
fn windows_give_json() {
    let rows = "CREATE TABLE t(g, x); INSERT INTO t VALUES (1, 1), (1, 2), (2, 3);";
    let calls = [
        "json_group_array(x)",
        "json_group_object(g, x)",
        "coalesce(json_group_array(x) OVER (ORDER BY x), 1), count(*)",
        "max(json_array(x))",
        "min(json_array(x))",
        "group_concat(json_array(x))",
        "first_value(json_array(x))",
        "last_value(json_array(x))",
        "nth_value(json_array(x), 1)",
        "lag(json_array(x))",
        "lead(json_array(x))",
    ];
    for call in calls {
        for frame in ["ORDER BY x", "ORDER BY x ROWS 1 PRECEDING", ""] {
            same(&format!(
                "{rows} SELECT json_array({call} OVER ({frame})) FROM t;
                 SELECT json_array(y) FROM (SELECT json_group_array(x) OVER ({frame}) y FROM t);"
            ));
        }
    }
}

#[test]
fn alter_table_finds_names_in_all_of_them() {
    each(&[
        "CREATE TABLE t(a, b); CREATE TABLE u(c, d);
         CREATE TRIGGER x AFTER INSERT ON t BEGIN
            INSERT INTO u SELECT new.a, rank() OVER (PARTITION BY c ORDER BY d DESC) FROM u;
         END;
         ALTER TABLE u RENAME COLUMN d TO dd; ALTER TABLE u RENAME TO uu;
         SELECT sql FROM sqlite_schema WHERE name = 'x';
         INSERT INTO uu VALUES (1, 2), (1, 3); INSERT INTO t VALUES (5, 6); SELECT * FROM uu;",
        "CREATE TABLE t(a, b AS (a || 'x'));
         CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT RAISE(IGNORE) WHERE new.b = '1x'; END;
         ALTER TABLE t RENAME COLUMN a TO aa; SELECT sql FROM sqlite_schema;
         INSERT INTO t VALUES (1), (2); SELECT * FROM t; ALTER TABLE t DROP COLUMN b;
         ALTER TABLE t RENAME COLUMN b TO bb; SELECT sql FROM sqlite_schema;",
        "CREATE TABLE t(j, k AS (json_extract(j, '$.k')));
         CREATE VIEW v AS SELECT e.key, t.k FROM t, json_each(t.j) e;
         CREATE TRIGGER x AFTER UPDATE OF j ON t BEGIN
            UPDATE t SET j = (SELECT json_group_array(value) FROM json_each(new.j)) WHERE j IS new.j;
         END;
         ALTER TABLE t RENAME COLUMN j TO doc; SELECT sql FROM sqlite_schema;
         INSERT INTO t VALUES ('{\"k\":1}'); SELECT * FROM v; UPDATE t SET doc = '[5]'; SELECT * FROM t;
         ALTER TABLE t RENAME TO tt; SELECT sql FROM sqlite_schema; SELECT * FROM v;",
    ]);
}
