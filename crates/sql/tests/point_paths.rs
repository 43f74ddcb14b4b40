//! Point reads and writes: whatever value names the key, SQLite finds the same row.

mod support;

use support::{drain, must, prepare, same, session};

const KEYS: [&str; 16] = [
    "NULL",
    "2",
    "'2'",
    "2.0",
    "2.5",
    "'2.0'",
    "' 2 '",
    "'2x'",
    "x'32'",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "1e300",
    "'abc'",
    "''",
    "1 + 1",
];

#[test]
fn a_key_of_any_type_finds_what_sqlite_finds() {
    for key in KEYS {
        same(&format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT UNIQUE, b INT UNIQUE, c);
             INSERT INTO t VALUES (-1, '2', 2, 'n'), (2, 'abc', 5, 'two'), (5, '', NULL, 'five'), (9223372036854775807, 'm', 7, 1.5);
             SELECT c, id, a FROM t WHERE id = {key}; SELECT c FROM t WHERE a = {key}; SELECT c FROM t WHERE b = {key};
             SELECT c || '!', id + 1 FROM t WHERE rowid = {key} AND c <> 'five';
             UPDATE t SET c = 'new' WHERE id = {key}; DELETE FROM t WHERE id = {key} AND a <> 'm'; SELECT * FROM t"
        ));
    }
}

#[test]
fn bounds_of_any_type_select_what_sqlite_selects() {
    for key in KEYS {
        for op in ["<", "<=", ">", ">="] {
            same(&format!(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, b INT); CREATE INDEX i ON t(b); CREATE INDEX d ON t(b DESC);
                 INSERT INTO t VALUES (-1, -1), (2, 2), (3, 2), (5, NULL), (7, 'x'), (8, 2.5), (9223372036854775807, x'32');
                 SELECT id FROM t WHERE id {op} {key}; SELECT id FROM t WHERE id {op} {key} ORDER BY id DESC;
                 SELECT id FROM t WHERE b {op} {key} ORDER BY b, id; SELECT id FROM t INDEXED BY d WHERE b {op} {key} ORDER BY id"
            ));
        }
    }
}

#[test]
fn a_prepared_read_sees_each_binding_and_each_change() {
    let s = session();
    must(
        &s,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x'), (2, 'y')",
    );
    let mut read = prepare(&s, "SELECT a, id FROM t WHERE id = ?");
    for (key, expected) in [(1, "'x',1"), (2, "'y',2")] {
        read.bind(1, fulgurite_sql::value::ValueRef::Integer(key))
            .unwrap();
        assert_eq!(drain(&mut read), [expected]);
        assert_eq!(drain(&mut read), [expected]);
    }
    must(&s, "UPDATE t SET a = 'z' WHERE id = 2");
    assert_eq!(drain(&mut read), ["'z',2"]);
    must(&s, "DELETE FROM t WHERE id = 2");
    assert!(drain(&mut read).is_empty());
}

/// A prepared read keeps where the last row's columns lay: of a row with NULLs, of
/// another type, or from before a column was added, nothing of that one may show.
#[test]
fn a_prepared_read_shows_nothing_of_the_row_before() {
    let s = session();
    must(
        &s,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
         INSERT INTO t VALUES (2, NULL, NULL), (3, 4.5, 'b');
         ALTER TABLE t ADD COLUMN c; ALTER TABLE t ADD COLUMN d DEFAULT 'new';
         INSERT INTO t VALUES (1, 'a', 2, 'c', 'd')",
    );
    let mut read = prepare(&s, "SELECT d, c, b, a, id FROM t WHERE id = ?");
    for other in [2, 3] {
        for (key, expected) in [
            (1, "'d','c',2,'a',1"),
            (
                other,
                ["'new',NULL,NULL,NULL,2", "'new',NULL,'b',4.5,3"][other as usize - 2],
            ),
        ] {
            read.bind(1, fulgurite_sql::value::ValueRef::Integer(key))
                .unwrap();
            assert_eq!(drain(&mut read), [expected]);
        }
    }
}

#[test]
fn a_unique_key_of_any_type_finds_what_sqlite_finds() {
    for key in KEYS {
        same(&format!(
            "CREATE TABLE t(a TEXT COLLATE NOCASE, b INT, c REAL, UNIQUE (b, a), UNIQUE (c));
             CREATE UNIQUE INDEX part ON t(a DESC) WHERE b > 1;
             INSERT INTO t VALUES ('2', 2, 2.5), ('ABC', 2, 2), ('', NULL, NULL), ('', NULL, NULL), ('x', x'32', 1e300);
             SELECT rowid, * FROM t WHERE b = {key} AND a = 'abc'; SELECT b FROM t WHERE a = {key} AND b = 2;
             SELECT a, b || '!' FROM t WHERE c = {key} AND a <> 'x'; SELECT a FROM t WHERE a = {key} AND b > 1;
             SELECT count(*) FROM t WHERE b IS {key} AND a = ''; SELECT a FROM t WHERE c = {key} ORDER BY a DESC LIMIT 1;
             UPDATE t SET b = 9 WHERE c = {key}; DELETE FROM t WHERE a = {key} AND b = 9; SELECT * FROM t"
        ));
    }
}

#[test]
fn a_prepared_read_by_a_unique_key_sees_each_binding_and_each_change() {
    let s = session();
    must(
        &s,
        "CREATE TABLE t(name TEXT UNIQUE, a); INSERT INTO t VALUES ('x', 1), ('y', 2), (NULL, 3)",
    );
    let mut read = prepare(&s, "SELECT a, name FROM t WHERE name = ?");
    for (name, expected) in [("x", "1,'x'"), ("y", "2,'y'"), ("z", "")] {
        read.bind(1, fulgurite_sql::value::ValueRef::Text(name.as_bytes()))
            .unwrap();
        assert_eq!(drain(&mut read).join(";"), expected);
    }
    must(&s, "UPDATE t SET name = 'z' WHERE name = 'x'");
    assert_eq!(drain(&mut read), ["1,'z'"]);
    must(
        &s,
        "DROP TABLE t; CREATE TABLE t(name INT, a); INSERT INTO t VALUES ('z', 4), ('z', 5)",
    );
    assert_eq!(drain(&mut read), ["4,'z'", "5,'z'"]);
}

/// Such a read does not look into the table, and shows values as they were written.
#[test]
fn a_unique_key_that_has_all_columns_is_enough() {
    for sql in [
        "CREATE TABLE t(a TEXT COLLATE NOCASE PRIMARY KEY, b); INSERT INTO t VALUES ('Foo', 1), ('bar', 2); SELECT a FROM t WHERE a = 'FOO'; SELECT a, rowid, a || 'x', 1 FROM t WHERE a = 'BAR'; SELECT 1 FROM t WHERE a = 'none'; SELECT a FROM t WHERE a = 'foo' AND length(a) = 3; SELECT a FROM t WHERE a = 'foo' AND length(a) = 4; SELECT EXISTS (SELECT 1 FROM t WHERE a = 'bar'); SELECT typeof(a) FROM t WHERE a = NULL; DELETE FROM t WHERE a = 'FOO'; SELECT rowid FROM t WHERE a = 'foo'",
        "CREATE TABLE t(a, b, PRIMARY KEY (b DESC, a)); INSERT INTO t VALUES (1, 2.0), (1.0, 'x'), (x'01', -0.0), (3, 1e300); SELECT rowid, a, b, typeof(a), typeof(b) FROM t WHERE a = 1 AND b = 2; SELECT a, b, typeof(a) FROM t WHERE a = 1 AND b = 'x'; SELECT b FROM t WHERE a = x'01' AND b = 0; SELECT b, b, a FROM t WHERE a = 3 AND b = 1e300",
    ] {
        same(sql);
        let sql = sql.replace("rowid", "1");
        same(&sql.replacen(");", ") WITHOUT ROWID;", 1));
    }
}

/// A single row goes into its record as it is given; what a column stores otherwise, and what
/// is computed, is made first.
#[test]
fn a_row_of_any_values_is_stored_as_sqlite_stores_it() {
    let types = "typeof(a), typeof(b), typeof(c), typeof(d), typeof(e), typeof(f)";
    for value in KEYS {
        for computed in ["{}", "{} || ''", "-({})", "abs({}) + 1", "coalesce({}, 7)"] {
            let value = computed.replace("{}", value);
            same(&format!(
                "CREATE TABLE t(a INT, b TEXT, c REAL, d NUMERIC, e, f TEXT NOT NULL);
                 INSERT INTO t VALUES ({value}, {value}, {value}, {value}, {value}, {value});
                 INSERT INTO t(f, e, d, c, b, a) VALUES (1, {value}, 2, 3, {value}, 4);
                 INSERT OR IGNORE INTO t(a, f) VALUES (1, {value});
                 SELECT *, {types} FROM t;
                 CREATE TABLE k(id INTEGER PRIMARY KEY, a INT NOT NULL DEFAULT 5, b TEXT);
                 INSERT INTO k(a, b) VALUES ({value}, 1); REPLACE INTO k(a, b) VALUES ({value}, 2);
                 INSERT INTO k VALUES ({value}, 1, {value}); SELECT * FROM k"
            ));
            for kind in ["INT", "TEXT", "REAL", "BLOB", "ANY"] {
                same(&format!(
                    "CREATE TABLE s(a {kind}, b {kind} NOT NULL) STRICT;
                     INSERT INTO s VALUES ({value}, {value}); INSERT INTO s VALUES (NULL, {value});
                     SELECT *, typeof(a), typeof(b) FROM s"
                ));
            }
        }
    }
}

/// More columns than there are bits for those that are made.
#[test]
fn a_row_of_many_columns_is_stored_as_sqlite_stores_it() {
    for (given, last) in [
        ("5", "'6'"),
        ("'5'", "6"),
        ("1 + 1", "2 + 2"),
        ("x'35'", "6.5"),
    ] {
        for columns in [63, 64, 65, 66, 130] {
            let names: Vec<String> = (0..columns).map(|i| format!("c{i} REAL")).collect();
            let values: Vec<&str> = (0..columns)
                .map(|i| if i % 7 == 0 { given } else { "1.5" })
                .chain([last])
                .collect();
            same(&format!(
                "CREATE TABLE t({}, z INT NOT NULL); INSERT INTO t VALUES ({}); SELECT * FROM t",
                names.join(", "),
                values.join(", ")
            ));
        }
    }
}
