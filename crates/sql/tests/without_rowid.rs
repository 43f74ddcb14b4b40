//! WITHOUT ROWID: rows that are known by their primary key, beside SQLite. What has a rowid
//! to show elsewhere has none here, and keys are NOT NULL.

mod support;

use support::same;

#[test]
fn options_stand_in_any_order_and_are_named() {
    for sql in [
        "CREATE TABLE t(a TEXT PRIMARY KEY, b INT) WITHOUT ROWID, STRICT; PRAGMA table_list; PRAGMA table_info(t); INSERT INTO t VALUES (NULL, 1); INSERT INTO t VALUES ('c', 'x')",
        "CREATE TABLE t(a TEXT PRIMARY KEY, b INT) STRICT, WITHOUT ROWID; PRAGMA table_list; PRAGMA table_info(t)",
        "CREATE TABLE t(a PRIMARY KEY) without RowId; PRAGMA table_list",
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT ROWID, WITHOUT ROWID; PRAGMA table_list",
        r#"CREATE TABLE t(a PRIMARY KEY) WITHOUT "rowid"; PRAGMA table_list"#,
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT [rowid]",
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT `ROWID`",
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT 'rowid'",
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT foo",
        r#"CREATE TABLE t(a PRIMARY KEY) WITHOUT "foo""#,
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT oid",
        "CREATE TABLE t(a PRIMARY KEY) WITHOUT ROWID, foo",
        "CREATE TABLE t(a PRIMARY KEY) rowid",
        r#"CREATE TABLE t(a INT PRIMARY KEY) "strict"; PRAGMA table_list"#,
        r#"CREATE TABLE t(a, b foo) "strict", WITHOUT ROWID"#,
        "CREATE TABLE t(a PRIMARY KEY, b) /* c */ WITHOUT /* d */ ROWID; SELECT sql FROM sqlite_schema",
        "CREATE TABLE t(a VARCHAR(10), b) WITHOUT /* d */ ROWID, STRICT",
    ] {
        same(sql);
    }
}

#[test]
fn there_is_a_primary_key_and_it_counts_nothing() {
    for sql in [
        "CREATE TABLE t(a, b) WITHOUT ROWID",
        r#"CREATE TABLE "my t"(a, b) WITHOUT ROWID"#,
        "CREATE TABLE main.t(a, b) WITHOUT ROWID",
        "CREATE TABLE t(a, b foo) WITHOUT ROWID, STRICT",
        "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b) WITHOUT ROWID",
        "CREATE TABLE t(a INTEGER, b, PRIMARY KEY(a AUTOINCREMENT)) WITHOUT ROWID",
        "CREATE TABLE t(a INT PRIMARY KEY AUTOINCREMENT, b) WITHOUT ROWID",
        "CREATE TABLE t(a INT PRIMARY KEY, b PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE t(a INT AS (1) PRIMARY KEY, b) WITHOUT ROWID",
        "CREATE TABLE t(a AS (1), b AS (2)) WITHOUT ROWID",
        "CREATE TABLE t(a, PRIMARY KEY(rowid)) WITHOUT ROWID",
        "CREATE TABLE t(a PRIMARY KEY, CHECK(rowid > 1)) WITHOUT ROWID",
        "CREATE TABLE t(a PRIMARY KEY, b AS (rowid)) WITHOUT ROWID",
    ] {
        same(sql);
    }
}

#[test]
fn keys_are_not_null_and_keep_what_they_are_given() {
    for sql in [
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t(b) VALUES (1); INSERT INTO t VALUES (NULL, 1); INSERT INTO t VALUES ('x', 1), (2.5, 2), (3, 3), ('4', 4), (5.0, 5), (x'00', 6); SELECT *, typeof(a) FROM t ORDER BY a; INSERT INTO t VALUES (3, 9); SELECT max(a), min(a) FROM t; UPDATE t SET a = a || 'q' WHERE a = 'x'; SELECT * FROM t ORDER BY a",
        "CREATE TABLE t(a INTEGER PRIMARY KEY DESC, b) WITHOUT ROWID; PRAGMA table_info(t); PRAGMA index_xinfo(t); CREATE TABLE u(a INTEGER, b, PRIMARY KEY(a DESC)) WITHOUT ROWID; PRAGMA index_xinfo(u)",
        "CREATE TABLE t(a, b, c, d, PRIMARY KEY(c, a)) WITHOUT ROWID; PRAGMA table_info(t); INSERT INTO t VALUES (1, 2, 3, 4); INSERT INTO t(a, c) VALUES (5, 6); INSERT INTO t(a) VALUES (5); INSERT INTO t(c) VALUES (5); SELECT * FROM t WHERE c = 3 AND a = 1; INSERT INTO t VALUES (1, 0, 3, 0); UPDATE t SET a = 5, c = 6 WHERE a = 1; SELECT * FROM t ORDER BY c",
        "CREATE TABLE t(k DEFAULT 7 PRIMARY KEY, v) WITHOUT ROWID; INSERT OR REPLACE INTO t VALUES (NULL, 1); SELECT * FROM t; INSERT INTO t(v) VALUES (3); INSERT INTO t DEFAULT VALUES; REPLACE INTO t(v) VALUES (4); SELECT * FROM t",
        "CREATE TABLE t(k NOT NULL ON CONFLICT IGNORE PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES (NULL, 1); INSERT INTO t VALUES (1, 1); UPDATE t SET k = NULL; SELECT * FROM t",
        "CREATE TABLE t(a REAL PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (1, 1), (2.5, 2), ('3', 3), ('x', 4); INSERT INTO t VALUES (1.0, 9); SELECT a, typeof(a), b FROM t ORDER BY a; SELECT * FROM t WHERE a = 3; SELECT a FROM t WHERE a > 1 ORDER BY a",
        "CREATE TABLE t(a TEXT PRIMARY KEY COLLATE NOCASE, b) WITHOUT ROWID; INSERT INTO t VALUES ('Abc', 1); INSERT INTO t VALUES ('aBC', 2); UPDATE t SET a = 'ABC'; SELECT * FROM t; REPLACE INTO t VALUES ('abc', 3); SELECT * FROM t WHERE a = 'ABC'; INSERT INTO t VALUES ('abC', 4) ON CONFLICT(a) DO UPDATE SET a = excluded.a; SELECT a FROM t",
        "CREATE TABLE t(a TEXT, b, PRIMARY KEY(a COLLATE RTRIM DESC, b)) WITHOUT ROWID; INSERT INTO t VALUES ('a ', 1), ('a', 1); INSERT INTO t VALUES ('a ', 1), ('a', 2), ('b', 1); SELECT * FROM t ORDER BY a, b; PRAGMA index_xinfo(t); INSERT INTO t VALUES ('b  ', 1) ON CONFLICT(a, b) DO NOTHING",
    ] {
        same(sql);
    }
}

#[test]
fn columns_that_a_key_names_twice_count_once() {
    for key in [
        "a, b, a, b, c, b",
        "a, a, b",
        "a, a COLLATE NOCASE, b",
        "b, a DESC, a",
    ] {
        same(&format!(
            "CREATE TABLE t(a TEXT, b INT, c, PRIMARY KEY({key})) WITHOUT ROWID; PRAGMA table_info(t);
             PRAGMA index_xinfo(t); INSERT INTO t VALUES ('a', 1, 1), ('A', 1, 2);
             INSERT INTO t VALUES ('a', 1, 1); SELECT * FROM t ORDER BY a"
        ));
    }
}

#[test]
fn the_names_of_a_rowid_are_free() {
    for sql in [
        "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (1, 2); SELECT rowid FROM t; SELECT oid FROM t; SELECT t._rowid_ FROM t; SELECT main.t.rowid FROM t; SELECT * FROM t AS x WHERE x.rowid = 1; SELECT max(rowid) FROM t; SELECT * FROM t ORDER BY t.oid; SELECT 1 FROM t GROUP BY rowid; SELECT [rowid] FROM t; SELECT \"rowid\" FROM t",
        "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t(rowid, a) VALUES (1, 2); UPDATE t SET rowid = 1; UPDATE t SET a = rowid; UPDATE t SET b = 1 WHERE oid = 1; DELETE FROM t WHERE _rowid_ = 1; INSERT INTO t VALUES (1, 1) ON CONFLICT(rowid) DO NOTHING; INSERT INTO t VALUES (1, 1) RETURNING rowid; CREATE INDEX i ON t(rowid); CREATE INDEX i ON t(a) WHERE rowid > 1",
        "CREATE TABLE r(x); INSERT INTO r VALUES (7); CREATE TABLE t(a PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES (1), (2); SELECT rowid, a FROM r, t ORDER BY a; SELECT (SELECT rowid FROM t LIMIT 1) FROM r; SELECT rowid FROM (SELECT * FROM t); CREATE VIEW v AS SELECT * FROM t; SELECT rowid FROM v",
        "CREATE TABLE t(rowid PRIMARY KEY, oid, _rowid_) WITHOUT ROWID; INSERT INTO t VALUES (1, 2, 3); SELECT rowid, oid, _rowid_ FROM t; UPDATE t SET oid = 5 WHERE _rowid_ = 3; SELECT * FROM t; INSERT INTO t(rowid, oid) VALUES (2, 7); SELECT * FROM t ORDER BY rowid; ALTER TABLE t RENAME COLUMN oid TO x; ALTER TABLE t RENAME COLUMN x TO oid; ALTER TABLE t DROP COLUMN oid; ALTER TABLE t ADD COLUMN oid; SELECT * FROM t ORDER BY rowid",
    ] {
        same(sql);
    }
}

#[test]
fn nothing_counts_rowids() {
    for sql in [
        "CREATE TABLE s(id INTEGER PRIMARY KEY AUTOINCREMENT, x); CREATE TABLE t(k PRIMARY KEY) WITHOUT ROWID; INSERT INTO s(x) VALUES (1), (2); INSERT INTO t VALUES (10), (20); SELECT last_insert_rowid(), changes(), total_changes(); INSERT INTO t SELECT x + 100 FROM s; SELECT last_insert_rowid(), changes(); DELETE FROM t; SELECT changes(), total_changes(); SELECT * FROM sqlite_sequence",
        "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE l(x); CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO l VALUES (new.a || ' ' || last_insert_rowid()); END; CREATE TRIGGER h AFTER UPDATE ON t BEGIN INSERT INTO l VALUES (old.a || ' ' || new.a); END; INSERT INTO t VALUES (1, 1), (2, 2); SELECT last_insert_rowid(), changes(), total_changes(); UPDATE t SET a = a + 10 WHERE a = 1; SELECT * FROM l",
        "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT new.rowid; END; INSERT INTO t VALUES (3, 3); DROP TRIGGER g; INSERT INTO t VALUES (2, 2); CREATE TRIGGER h BEFORE DELETE ON t BEGIN SELECT old.oid; END; DELETE FROM t; UPDATE t SET b = 1",
    ] {
        same(sql);
    }
}

#[test]
fn conflicts_are_about_the_key() {
    for sql in [
        "CREATE TABLE t(k PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT OR REPLACE INTO t VALUES (1, 'c'), (3, 'd'); SELECT changes(), total_changes(); SELECT * FROM t ORDER BY k; INSERT OR IGNORE INTO t VALUES (1, 'x'), (4, 'y'); INSERT OR FAIL INTO t VALUES (5, 'z'), (1, 'x'), (6, 'w'); SELECT * FROM t ORDER BY k; INSERT OR ABORT INTO t VALUES (7, 'z'), (1, 'x'); BEGIN; INSERT OR ROLLBACK INTO t VALUES (8, 'z'), (1, 'x'); SELECT * FROM t ORDER BY k",
        "CREATE TABLE t(k PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES (1, 'a'); REPLACE INTO t VALUES (1, 'r') RETURNING *; INSERT INTO t VALUES (1, 'u'), (10, 'v') ON CONFLICT(k) DO UPDATE SET v = excluded.v || t.v RETURNING k, v; INSERT INTO t VALUES (1, 'u') ON CONFLICT DO UPDATE SET k = 77; SELECT * FROM t ORDER BY k; INSERT INTO t VALUES (77, 1) ON CONFLICT DO NOTHING; INSERT INTO t VALUES (77, 1) ON CONFLICT(v) DO NOTHING",
        "CREATE TABLE t(k INTEGER PRIMARY KEY ON CONFLICT REPLACE, v UNIQUE ON CONFLICT IGNORE, w NOT NULL ON CONFLICT REPLACE DEFAULT 5) WITHOUT ROWID; INSERT INTO t VALUES (1, 1, NULL), (1, 2, 3), (2, 2, 3); SELECT * FROM t ORDER BY k; UPDATE t SET k = 2; SELECT * FROM t ORDER BY k; INSERT INTO t VALUES (NULL, 9, 9)",
        "CREATE TABLE t(k INT PRIMARY KEY, b UNIQUE, c) WITHOUT ROWID; INSERT INTO t VALUES (1, 1, 1), (2, 2, 2); INSERT OR REPLACE INTO t VALUES (1, 2, 9); SELECT * FROM t; UPDATE OR REPLACE t SET b = 3, k = 4; SELECT * FROM t; INSERT INTO t VALUES (4, 3, 0); INSERT INTO t VALUES (4, 4, 0)",
        "CREATE TABLE t(k INT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'); UPDATE t SET k = k + 10; UPDATE t SET k = k - 1; SELECT * FROM t ORDER BY k; UPDATE t SET k = CASE k WHEN 10 THEN 11 WHEN 11 THEN 10 ELSE k END; SELECT * FROM t ORDER BY k; UPDATE t SET k = NULL; UPDATE OR IGNORE t SET k = NULL; INSERT INTO t SELECT k + 1000, v FROM t; SELECT * FROM t ORDER BY k",
        "CREATE TABLE t(k INT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'); CREATE TABLE s(k, w); INSERT INTO s VALUES (1, 'x'), (3, 'y'); UPDATE t SET v = w FROM s WHERE s.k = t.k; SELECT * FROM t ORDER BY k; UPDATE t SET k = t.k + 100 FROM s WHERE s.k = t.k RETURNING k; SELECT * FROM t ORDER BY k; DELETE FROM t WHERE k > 100; SELECT * FROM t; DELETE FROM t; SELECT count(*) FROM t",
        "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; CREATE TRIGGER g BEFORE INSERT ON t WHEN new.b IS NULL BEGIN INSERT OR REPLACE INTO t VALUES (new.a, 'first'); END; INSERT INTO t VALUES (1, NULL); INSERT OR REPLACE INTO t VALUES (1, NULL); INSERT OR IGNORE INTO t VALUES (2, NULL); SELECT * FROM t ORDER BY a",
    ] {
        same(sql);
    }
}

#[test]
fn foreign_keys_of_and_to_such_tables() {
    for sql in [
        "CREATE TABLE p(a TEXT, b INT, c, PRIMARY KEY(a, b)) WITHOUT ROWID; CREATE TABLE c(x, y, FOREIGN KEY(x, y) REFERENCES p); INSERT INTO p VALUES ('k', 1, 0); INSERT INTO c VALUES ('k', 1); INSERT INTO c VALUES ('k', 2); INSERT INTO c VALUES ('z', NULL); DELETE FROM p; UPDATE p SET b = 2; DELETE FROM c; DELETE FROM p",
        "CREATE TABLE p(a INTEGER PRIMARY KEY, c UNIQUE) WITHOUT ROWID; CREATE TABLE c(x PRIMARY KEY REFERENCES p(a) ON DELETE CASCADE ON UPDATE CASCADE, y REFERENCES p(c) ON DELETE SET NULL) WITHOUT ROWID; INSERT INTO p VALUES (1, 10), (2, 20), ('q', 30); INSERT INTO c VALUES (1, 20), (2, 10), ('q', NULL); UPDATE p SET a = a + 5 WHERE a = 1; SELECT * FROM c ORDER BY x; DELETE FROM p WHERE a = 2; SELECT * FROM c ORDER BY x; INSERT INTO c VALUES (99, NULL); SELECT total_changes(), changes()",
        "CREATE TABLE n(id INTEGER PRIMARY KEY, up REFERENCES n ON DELETE CASCADE) WITHOUT ROWID; INSERT INTO n VALUES (1, NULL), (2, 1), (3, 2), (4, 4); INSERT INTO n VALUES (9, 8); DELETE FROM n WHERE id = 1; SELECT * FROM n; DELETE FROM n; SELECT total_changes()",
        "CREATE TABLE p(a PRIMARY KEY) WITHOUT ROWID; CREATE TABLE c(x REFERENCES p(rowid)); INSERT INTO c VALUES (1)",
    ] {
        same(&format!("PRAGMA foreign_keys = ON; {sql}"));
    }
    same(
        "PRAGMA foreign_keys = OFF; CREATE TABLE p(a PRIMARY KEY) WITHOUT ROWID; CREATE TABLE c(x PRIMARY KEY REFERENCES p, y) WITHOUT ROWID; CREATE TABLE d(x REFERENCES p); INSERT INTO c VALUES (1, 1), (2, 2); INSERT INTO d VALUES (7), (8); PRAGMA foreign_key_check(c); PRAGMA foreign_key_check(d); INSERT INTO p VALUES (1), (7), (8); PRAGMA foreign_key_check",
    );
}

#[test]
fn pragmas_show_the_key_as_the_place_of_a_row() {
    for sql in [
        "CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID; PRAGMA table_info(t); PRAGMA table_xinfo(t); PRAGMA index_list(t); PRAGMA index_info(t); PRAGMA index_xinfo(t); PRAGMA index_xinfo(sqlite_autoindex_t_1); SELECT type, name, tbl_name, sql FROM sqlite_schema; SELECT count(*) FROM sqlite_schema",
        "CREATE TABLE t(a TEXT COLLATE NOCASE, b INT, c, d AS (c + 1), PRIMARY KEY(a DESC, b)) WITHOUT ROWID; PRAGMA index_xinfo(t); CREATE INDEX i ON t(c); PRAGMA index_xinfo(i); CREATE INDEX j ON t(b); PRAGMA index_xinfo(j); CREATE INDEX k ON t(a COLLATE BINARY, c DESC); PRAGMA index_xinfo(k); CREATE INDEX l ON t(c + b); PRAGMA index_xinfo(l); PRAGMA index_list(t); PRAGMA integrity_check",
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c, UNIQUE(a, b)) WITHOUT ROWID; PRAGMA index_list(t); SELECT name FROM sqlite_schema ORDER BY name; INSERT INTO t VALUES (1, 2, 3); INSERT INTO t VALUES (1, 2, 3); DROP INDEX sqlite_autoindex_t_1; DROP INDEX sqlite_autoindex_t_3",
        "CREATE TABLE t(a INTEGER PRIMARY KEY UNIQUE, b UNIQUE) WITHOUT ROWID; PRAGMA index_list(t); SELECT name FROM sqlite_schema",
        "CREATE TABLE t(a, b UNIQUE, c, PRIMARY KEY(c), UNIQUE(a)) WITHOUT ROWID; PRAGMA index_list(t); INSERT INTO t VALUES (1, 2, 3); INSERT INTO t VALUES (1, 2, 3); INSERT INTO t VALUES (9, 2, 3); INSERT INTO t VALUES (9, 8, 3)",
        "CREATE TABLE t(a, b, PRIMARY KEY(b, a)) WITHOUT ROWID; SELECT name, type, wr FROM pragma_table_list('t'); SELECT * FROM pragma_index_xinfo('t'); SELECT l.name, x.name FROM pragma_index_list('t') l, pragma_index_xinfo(l.name) x; SELECT s.name, x.name FROM sqlite_schema s, pragma_index_xinfo(s.name) x",
    ] {
        same(sql);
    }
}

#[test]
fn alter_table_keeps_the_key() {
    for sql in [
        "CREATE TABLE t(k INT PRIMARY KEY, v, w UNIQUE, x DEFAULT 5, CHECK(v <> 'bad')) WITHOUT ROWID; INSERT INTO t(k, v, w) VALUES (1, 'a', 1); ALTER TABLE t ADD COLUMN y DEFAULT 9; SELECT * FROM t; ALTER TABLE t RENAME COLUMN k TO kk; ALTER TABLE t DROP COLUMN kk; ALTER TABLE t DROP COLUMN x; ALTER TABLE t RENAME TO tt; PRAGMA index_list(tt); PRAGMA index_xinfo(tt); SELECT name, tbl_name, sql FROM sqlite_schema; INSERT INTO tt VALUES (1, 1, 1, 1); INSERT INTO tt VALUES (2, 3, 1, 1); SELECT * FROM tt WHERE kk = 1; PRAGMA integrity_check; DROP TABLE tt; SELECT * FROM sqlite_schema",
        "CREATE TABLE t(k INT PRIMARY KEY, v) WITHOUT ROWID; ALTER TABLE t ADD COLUMN z PRIMARY KEY; ALTER TABLE t ADD COLUMN z UNIQUE; ALTER TABLE t ADD COLUMN z NOT NULL; ALTER TABLE t RENAME COLUMN v TO rowid; SELECT rowid FROM t; ALTER TABLE t ADD COLUMN oid; ALTER TABLE t DROP COLUMN oid; ALTER TABLE t RENAME COLUMN rowid TO v; SELECT rowid FROM t",
        "CREATE TABLE t(k INT, v, CONSTRAINT pk PRIMARY KEY(k)) WITHOUT ROWID; ALTER TABLE t DROP CONSTRAINT pk; ALTER TABLE t ALTER COLUMN v SET NOT NULL; INSERT INTO t VALUES (1, NULL); ALTER TABLE t ALTER COLUMN k DROP NOT NULL; INSERT INTO t VALUES (NULL, 1); ALTER TABLE t ADD CONSTRAINT c CHECK(k > 0); INSERT INTO t VALUES (-1, 1); ALTER TABLE t DROP CONSTRAINT c; INSERT INTO t VALUES (-1, 1); SELECT sql FROM sqlite_schema",
    ] {
        same(sql);
    }
}

#[test]
fn indexes_orders_and_computed_columns() {
    for sql in [
        "CREATE TABLE t(k TEXT COLLATE NOCASE, v, w, PRIMARY KEY(k DESC, v)) WITHOUT ROWID; INSERT INTO t VALUES ('a', 1, 1), ('B', 1, 2), ('c', 2, 3); SELECT * FROM t ORDER BY k DESC, v; SELECT * FROM t ORDER BY k, v DESC; SELECT min(k), max(k) FROM t; SELECT * FROM t WHERE k > 'a' ORDER BY k; CREATE INDEX i ON t(w); SELECT k, v, w FROM t WHERE w = 2; REINDEX; REINDEX t; REINDEX sqlite_autoindex_t_1; SELECT * FROM t WHERE k = 'C'; PRAGMA integrity_check; SELECT * FROM t INDEXED BY sqlite_autoindex_t_1 ORDER BY k",
        "CREATE TABLE t(a, b, c, PRIMARY KEY(a, b)) WITHOUT ROWID; INSERT INTO t VALUES (1, 2, 3), (1, 1, 4), (0, 9, 5); SELECT a, sum(c) OVER (PARTITION BY a ORDER BY b) FROM t ORDER BY a, b; SELECT row_number() OVER (ORDER BY a, b), * FROM t; SELECT DISTINCT a FROM t ORDER BY a; SELECT * FROM t ORDER BY a DESC, b DESC; SELECT x.c, y.c FROM t x JOIN t y ON x.a = y.a AND x.b < y.b; SELECT a FROM t WHERE a IN (0, 5) OR b = 2 ORDER BY a; SELECT count(*) FROM t",
        "CREATE TABLE t(a INT PRIMARY KEY, b AS (a + 1), c AS (b + 1) STORED) WITHOUT ROWID; INSERT INTO t VALUES (1), (2); SELECT * FROM t ORDER BY a; PRAGMA table_xinfo(t); PRAGMA index_xinfo(t); CREATE INDEX i ON t(b); SELECT a FROM t WHERE b = 3; UPDATE t SET a = 5 WHERE a = 1; SELECT * FROM t ORDER BY a; PRAGMA integrity_check",
        "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; BEGIN; INSERT INTO t VALUES (1, 2); SAVEPOINT s; INSERT INTO t VALUES (2, 2); ROLLBACK TO s; INSERT INTO t VALUES (2, 3); COMMIT; SELECT * FROM t ORDER BY a; BEGIN; DROP TABLE t; ROLLBACK; SELECT * FROM t ORDER BY a; DROP TABLE t; CREATE TABLE t(a, b); SELECT rowid FROM t",
        "CREATE TEMP TABLE t(k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES ('a', 1); INSERT INTO temp.t VALUES ('a', 1); SELECT name FROM sqlite_temp_schema; PRAGMA temp.index_xinfo(t); DROP TABLE t; PRAGMA table_list",
        "ATTACH ':memory:' AS m; CREATE TABLE m.t(k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES ('a', 1); INSERT INTO m.t VALUES ('a', 1); SELECT rowid FROM m.t; SELECT name FROM m.sqlite_schema; PRAGMA m.index_xinfo(t); PRAGMA index_xinfo(t); PRAGMA m.integrity_check",
    ] {
        same(sql);
    }
}

/// Those that it replaces are gone, with all their entries, and its number is one of theirs.
#[test]
fn a_row_takes_the_place_of_those_that_it_replaces() {
    for sql in [
        "CREATE TABLE t(a INT PRIMARY KEY, b UNIQUE, c UNIQUE, d) WITHOUT ROWID; CREATE INDEX i ON t(d); INSERT INTO t VALUES (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3), (4, 4, 4, 4); REPLACE INTO t VALUES (1, 2, 3, 9); SELECT * FROM t ORDER BY a; PRAGMA integrity_check; REPLACE INTO t VALUES (4, 4, 4, 5), (4, 2, 4, 6), (5, 4, 2, 7); SELECT * FROM t ORDER BY a; PRAGMA integrity_check; INSERT OR REPLACE INTO t SELECT a, b + 1, c, d FROM t ORDER BY a; SELECT * FROM t ORDER BY a; SELECT d FROM t INDEXED BY i WHERE d > 0 ORDER BY d; PRAGMA integrity_check",
        "CREATE TABLE t(a INT PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE l(x); CREATE TRIGGER g AFTER DELETE ON t BEGIN INSERT INTO l VALUES (old.v); END; INSERT INTO t VALUES (1, 1); REPLACE INTO t VALUES (1, 2); SELECT * FROM l; PRAGMA recursive_triggers = ON; REPLACE INTO t VALUES (1, 3); SELECT * FROM l; SELECT * FROM t; PRAGMA integrity_check",
        "PRAGMA foreign_keys = ON; CREATE TABLE p(a INT PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE c(x REFERENCES p ON DELETE CASCADE, y); INSERT INTO p VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, 1), (2, 2); REPLACE INTO p VALUES (1, 9); SELECT * FROM c; CREATE TABLE q(x REFERENCES p); INSERT INTO q VALUES (2); REPLACE INTO p VALUES (2, 10); SELECT * FROM p ORDER BY a",
    ] {
        same(sql);
    }
}

/// They were taken as they had been inserted, which showed in what was told of them, and in
/// whether a key that was taken was met.
#[test]
fn rows_are_changed_in_the_order_of_their_keys() {
    for sql in [
        "CREATE TABLE t(a INT PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (5, 'a'), (1, 'b'), (3, 'c'), (2, 'd'); UPDATE t SET b = a RETURNING a; UPDATE t SET a = a + 1 WHERE a > 1 RETURNING a, b; UPDATE OR FAIL t SET a = 4 WHERE a < 6; SELECT * FROM t ORDER BY a; DELETE FROM t WHERE b <> 3 RETURNING a",
        "CREATE TABLE t(a INT PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE l(x); INSERT INTO t VALUES (9, 9), (8, 8), (0, 0); CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO l VALUES (old.a); END; UPDATE t SET b = b; CREATE TRIGGER h AFTER DELETE ON t BEGIN INSERT INTO l VALUES (-old.a); END; DELETE FROM t; SELECT * FROM l",
        "CREATE TABLE t(a INT, b INT, c, PRIMARY KEY(b DESC, a)) WITHOUT ROWID; INSERT INTO t VALUES (5, 1, 'a'), (1, 1, 'b'), (3, 2, 'c'), (2, 2, 'd'); UPDATE t SET c = 1 RETURNING a, b; DELETE FROM t WHERE c = 1 RETURNING a, b",
        "CREATE TABLE t(a INT PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE s(x, y); INSERT INTO t VALUES (3, 0), (1, 0), (2, 0); INSERT INTO s VALUES (1, 10), (3, 30), (1, 11), (2, 20), (3, 31); UPDATE t SET b = y FROM s WHERE x = a; SELECT * FROM t ORDER BY a; UPDATE t SET b = y FROM s WHERE x = a RETURNING a, b",
        "CREATE TABLE t(a INT PRIMARY KEY, b) WITHOUT ROWID; CREATE INDEX i ON t(b); INSERT INTO t VALUES (3, 1), (1, 3), (2, 2); UPDATE t SET b = b WHERE b > 1 RETURNING a; UPDATE OR REPLACE t SET a = 7 WHERE b > 1; INSERT INTO t VALUES (1, 3), (2, 2); UPDATE t SET a = a + 1 WHERE b >= 1; SELECT * FROM t ORDER BY a; DELETE FROM t WHERE b > 1 RETURNING a",
        "CREATE TABLE t(a INT PRIMARY KEY, b) WITHOUT ROWID; CREATE INDEX i ON t(b); INSERT INTO t VALUES (1, 3), (2, 2), (3, 1); UPDATE t SET a = a + 1 WHERE b IN (1, 2, 3); UPDATE t SET a = a - 1 WHERE b IN (3, 2, 1); SELECT * FROM t ORDER BY a",
    ] {
        same(sql);
    }
}
