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
