//! PRAGMAs, REINDEX and ANALYZE beside bundled SQLite.

mod support;

use support::{must, run, same, session};

#[test]
fn settings_and_numbers_are_functions_too() {
    same(
        "PRAGMA user_version = 7; SELECT * FROM pragma_user_version;
         SELECT user_version + 1 FROM pragma_user_version(); SELECT * FROM pragma_user_version(5);
         SELECT schema FROM pragma_user_version; SELECT * FROM pragma_application_id;
         BEGIN; PRAGMA user_version = 5; SELECT * FROM pragma_user_version; ROLLBACK;
         SELECT * FROM pragma_user_version; PRAGMA foreign_keys = ON;
         SELECT * FROM pragma_foreign_keys; PRAGMA foreign_keys = OFF;
         SELECT * FROM pragma_foreign_keys; SELECT * FROM pragma_foreign_keys(1);
         PRAGMA recursive_triggers = 1; SELECT * FROM pragma_recursive_triggers;
         SELECT * FROM pragma_defer_foreign_keys; SELECT * FROM pragma_encoding;
         SELECT * FROM pragma_page_size('main'); SELECT * FROM pragma_page_size WHERE schema = 'main';
         SELECT page_size, schema FROM pragma_page_size; PRAGMA busy_timeout = 77;
         PRAGMA busy_timeout; SELECT * FROM pragma_busy_timeout; SELECT timeout FROM pragma_busy_timeout(1);
         SELECT * FROM pragma_auto_vacuum; SELECT * FROM pragma_trusted_schema;
         SELECT * FROM pragma_journal_size_limit; SELECT * FROM pragma_threads;
         SELECT * FROM pragma_wal_checkpoint; SELECT * FROM pragma_mmap_size;
         SELECT * FROM pragma_case_sensitive_like; SELECT * FROM pragma_shrink_memory;
         SELECT * FROM pragma_optimize; SELECT * FROM pragma_optimize(-1); PRAGMA optimize",
    );
}

#[test]
fn an_answer_is_that_of_the_moment() {
    same(
        "CREATE VIEW v AS SELECT user_version + 1 FROM pragma_user_version; SELECT * FROM v;
         PRAGMA user_version = 41; SELECT * FROM v; CREATE TABLE t(a); CREATE TABLE u(b);
         CREATE TRIGGER r AFTER INSERT ON t BEGIN
            INSERT INTO u SELECT user_version FROM pragma_user_version; END;
         INSERT INTO t VALUES (1); PRAGMA user_version = 9; INSERT INTO t VALUES (1);
         CREATE TABLE c AS SELECT * FROM pragma_user_version;
         INSERT INTO c SELECT 1 FROM pragma_user_version; SELECT * FROM u; SELECT * FROM c",
    );
    let session = session();
    let mut asked = support::prepare(&session, "SELECT * FROM pragma_user_version");
    assert_eq!(support::drain(&mut asked), ["0"]);
    must(&session, "PRAGMA user_version = 3");
    assert_eq!(support::drain(&mut asked), ["3"]);
    let of_all = "SELECT m.name, c.* FROM sqlite_schema m, pragma_quick_check(m.name) c";
    let mut asked = support::prepare(&session, of_all);
    must(&session, "CREATE TABLE t(a); CREATE VIEW v AS SELECT 1");
    assert_eq!(support::drain(&mut asked), ["'t','ok'", "'v','ok'"]);
}

#[test]
fn lists_of_what_there_is() {
    let session = session();
    let all = "SELECT name FROM pragma_pragma_list WHERE name NOT IN ('case_sensitive_like',
            'mmap_size', 'wal_autocheckpoint', 'wal_checkpoint')";
    for name in must(&session, all) {
        must(
            &session,
            &format!("SELECT * FROM pragma_{}", name.trim_matches('\'')),
        );
    }
    for name in must(&session, "SELECT DISTINCT name FROM pragma_function_list") {
        let called = run(
            &session,
            &format!("SELECT \"{}\"()", name.trim_matches('\'')),
        );
        assert!(!called[0].contains("no such function"), "{called:?}");
    }
    let count = "SELECT narg, type FROM pragma_function_list WHERE name = 'substr'";
    assert_eq!(must(&session, count), ["2,'s'", "3,'s'"]);
    must(&session, "PRAGMA module_list; PRAGMA compile_options");
}

#[test]
fn indexes_that_replace_are_listed_last() {
    same(
        "CREATE TABLE t(a UNIQUE, b UNIQUE ON CONFLICT REPLACE, c PRIMARY KEY ON CONFLICT REPLACE,
            d UNIQUE ON CONFLICT IGNORE);
         CREATE INDEX i ON t(d); PRAGMA index_list(t); DROP INDEX i; PRAGMA index_list(t);
         CREATE TABLE u(a UNIQUE, b PRIMARY KEY ON CONFLICT REPLACE, c UNIQUE) WITHOUT ROWID;
         CREATE UNIQUE INDEX j ON u(a, c); PRAGMA index_list(u)",
    );
}

#[test]
fn indexes_show_the_collation_of_a_rowid() {
    same(
        "CREATE TABLE t(a INTEGER COLLATE NOCASE PRIMARY KEY, b COLLATE RTRIM);
         CREATE INDEX i ON t(a, b COLLATE NOCASE);
         CREATE INDEX j ON t(a COLLATE RTRIM, b);
         PRAGMA index_xinfo(i);
         PRAGMA index_xinfo(j);
         INSERT INTO t VALUES (2, 'b'), (1, 'B ');
         SELECT a FROM t INDEXED BY i ORDER BY a;
         SELECT a FROM t WHERE a = '1';
         PRAGMA integrity_check;",
    );
}

#[test]
fn checks_name_the_table_that_there_is_not() {
    same(
        "PRAGMA integrity_check; PRAGMA integrity_check(5); PRAGMA integrity_check(t);
         PRAGMA quick_check('nope'); PRAGMA integrity_check(''); PRAGMA integrity_check('5');
         CREATE TABLE t(a); CREATE VIEW v AS SELECT 1; CREATE INDEX i ON t(a);
         PRAGMA integrity_check(t); PRAGMA quick_check = T; PRAGMA integrity_check(v);
         PRAGMA integrity_check(i); PRAGMA integrity_check(main); PRAGMA integrity_check(0);
         PRAGMA integrity_check(sqlite_schema); PRAGMA foreign_key_check(v);
         SELECT * FROM pragma_integrity_check; SELECT * FROM pragma_integrity_check('nope');
         SELECT integrity_check, arg, schema FROM pragma_integrity_check('T');
         SELECT * FROM pragma_quick_check(3); SELECT * FROM pragma_foreign_key_check('v')",
    );
    same(
        "PRAGMA foreign_keys = OFF; CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(x REFERENCES p);
         INSERT INTO c VALUES (1); SELECT * FROM pragma_foreign_key_check;
         SELECT * FROM pragma_foreign_key_check('c'); SELECT * FROM pragma_foreign_key_check('p');
         SELECT * FROM pragma_foreign_key_check('nope');
         SELECT m.name, f.parent FROM sqlite_schema m, pragma_foreign_key_check(m.tbl_name) f
         WHERE m.type = 'table'",
    );
}

#[test]
fn letters_of_like_as_they_are_written() {
    let likes = "SELECT 'a' LIKE 'A', 'a' LIKE 'a', 'aB' LIKE '_B', 'ab' LIKE 'A%', 'a' GLOB 'A',
            like('A', 'a'), 'A%' LIKE 'a\\%' ESCAPE '\\', 'a' NOT LIKE 'A'";
    same(&format!(
        "{likes}; PRAGMA case_sensitive_like; PRAGMA case_sensitive_like = 1; {likes};
         CREATE TABLE t(a CHECK (a LIKE 'x%')); INSERT INTO t VALUES ('Xy'); INSERT INTO t VALUES ('xy');
         SELECT * FROM t WHERE a LIKE 'X%'; CREATE VIEW v AS SELECT a FROM t WHERE a LIKE 'X%';
         SELECT * FROM v; PRAGMA case_sensitive_like = off; {likes}; SELECT * FROM v;
         PRAGMA case_sensitive_like = yes; {likes}; PRAGMA case_sensitive_like = nonsense; {likes}"
    ));
    // What indexes and columns keep was made without regard to letters, and stays so.
    let session = session();
    must(
        &session,
        "CREATE TABLE t(a, g AS (a LIKE 'x%')); CREATE INDEX i ON t(a LIKE 'x%');
         CREATE INDEX j ON t(a) WHERE a LIKE 'y%'; INSERT INTO t VALUES ('X1'), ('Y2');
         PRAGMA case_sensitive_like = 1; INSERT INTO t VALUES ('X3'), ('y4')",
    );
    let rows = must(
        &session,
        "SELECT g FROM t; PRAGMA integrity_check; SELECT count(*) FROM t WHERE a LIKE 'x%';
         SELECT a FROM t WHERE a LIKE 'y%'",
    );
    assert_eq!(rows, ["1", "0", "1", "0", "'ok'", "0", "'y4'"]);
}

#[test]
fn names_of_reindex_and_analyze() {
    same(
        "REINDEX; REINDEX nope; REINDEX main.nope; REINDEX x.nope; REINDEX nocase;
         REINDEX main.nocase; CREATE TABLE t(a UNIQUE, b); CREATE INDEX i ON t(b); REINDEX t;
         REINDEX main.i; REINDEX sqlite_autoindex_t_1; REINDEX sqlite_schema;
         CREATE VIEW v AS SELECT 1; REINDEX v; REINDEX main; REINDEX expressions;
         CREATE TABLE nocase(a); REINDEX nocase;
         ANALYZE; ANALYZE nope; ANALYZE main; ANALYZE main.nope; ANALYZE x.t; ANALYZE i;
         ANALYZE t; ANALYZE main.t; ANALYZE sqlite_schema; ANALYZE v; ANALYZE temp;
         ANALYZE sqlite_autoindex_t_1",
    );
    same(
        "CREATE TABLE t(a COLLATE nocase UNIQUE, b); INSERT INTO t VALUES ('A', 1), ('b', 2);
         CREATE INDEX i ON t(b + 1) WHERE b > 1; CREATE UNIQUE INDEX j ON t(b, a); BEGIN; REINDEX;
         INSERT INTO t VALUES ('c', 5); REINDEX nocase; REINDEX i; COMMIT; REINDEX expressions;
         REINDEX t; PRAGMA integrity_check; SELECT a FROM t WHERE b + 1 > 2 AND b > 1;
         SELECT * FROM t WHERE a = 'B'; INSERT INTO t VALUES ('B', 1);
         SELECT count(*) FROM sqlite_schema; BEGIN; REINDEX t; ROLLBACK;
         INSERT INTO t VALUES ('d', 7); SELECT * FROM t INDEXED BY j WHERE b > 0; REINDEX main.t;
         PRAGMA integrity_check",
    );
}

/// Checks of a table that another database has found nothing to complain about, and
/// `foreign_key_check` without a name went through all databases.
#[test]
fn checks_are_of_the_database_that_is_named() {
    same(
        "CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(a REFERENCES p); PRAGMA foreign_keys = 0;
         INSERT INTO c VALUES (1); CREATE TEMP TABLE p(a PRIMARY KEY);
         CREATE TEMP TABLE c(a REFERENCES p); INSERT INTO temp.c VALUES (2), (3);
         ATTACH ':memory:' AS x; CREATE TABLE x.p(a PRIMARY KEY); CREATE TABLE x.d(a REFERENCES p);
         INSERT INTO x.d VALUES (2), (3), (4); PRAGMA foreign_key_check;
         PRAGMA main.foreign_key_check; PRAGMA temp.foreign_key_check; PRAGMA x.foreign_key_check;
         PRAGMA foreign_key_check(c); PRAGMA main.foreign_key_check(c); PRAGMA foreign_key_check(d);
         PRAGMA main.foreign_key_check(d); PRAGMA x.foreign_key_check(c); PRAGMA foreign_key_check(nope);
         SELECT * FROM pragma_foreign_key_check; SELECT * FROM pragma_foreign_key_check('c');
         SELECT * FROM pragma_foreign_key_check('c', 'main'); SELECT * FROM pragma_foreign_key_check('d', 'x');
         SELECT * FROM pragma_foreign_key_check(NULL, 'x'); SELECT * FROM pragma_foreign_key_check('d', 'main');
         SELECT * FROM pragma_foreign_key_check('d', 'nope'); SELECT * FROM pragma_foreign_key_check WHERE schema = 'x';
         SELECT s.name, f.\"table\", f.rowid FROM pragma_database_list s, pragma_foreign_key_check(NULL, s.name) f;
         PRAGMA integrity_check(d); PRAGMA main.integrity_check(d); PRAGMA x.integrity_check(d);
         PRAGMA temp.quick_check(d); PRAGMA x.quick_check(nope); PRAGMA nope.integrity_check(d);
         PRAGMA x.integrity_check(3); PRAGMA x.integrity_check(sqlite_schema);
         SELECT * FROM pragma_integrity_check('d', 'main'); SELECT * FROM pragma_quick_check('d', 'x');
         SELECT * FROM pragma_quick_check('c')",
    );
}

/// A connection that is only to read refuses all that would write, and what it had begun
/// may end.
#[test]
fn query_only_keeps_a_connection_from_writing() {
    const TABLE: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2);";
    let writes = [
        "INSERT INTO t VALUES (2, 3)",
        "UPDATE t SET b = 3 WHERE a = 1",
        "UPDATE t SET b = 3 WHERE 0",
        "DELETE FROM t",
        "CREATE TABLE u(a)",
        "CREATE TABLE IF NOT EXISTS t(a)",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN c",
        "CREATE TEMP TABLE u(a)",
        "REINDEX",
        "PRAGMA user_version = 3",
        "BEGIN IMMEDIATE",
        "BEGIN; INSERT INTO t VALUES (5, 6); COMMIT",
    ];
    for sql in writes {
        same(&format!(
            "{TABLE} PRAGMA query_only = ON; PRAGMA query_only; {sql}; SELECT * FROM t;
             PRAGMA query_only = 0; {sql}; PRAGMA user_version"
        ));
    }
    same(&format!(
        "{TABLE} BEGIN; INSERT INTO t VALUES (7, 8); PRAGMA query_only = 1; DELETE FROM t;
         SELECT count(*) FROM t; COMMIT; SELECT count(*) FROM t"
    ));
}

/// A statement that was prepared before its table was there was refused by a connection that
/// only reads, where SQLite, which compiles it again, finds nothing to do. What there is to do
/// is refused as ever.
#[test]
fn who_only_reads_may_ask_again_for_what_is_done() {
    const TABLE: &str = "CREATE TABLE t(a); CREATE INDEX i ON t(a); CREATE VIEW v AS SELECT 1;
        CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END; CREATE TABLE gone(a)";
    for (sql, undo) in [
        ("CREATE TABLE IF NOT EXISTS u(b)", "DROP TABLE u"),
        ("CREATE TABLE IF NOT EXISTS u AS SELECT 1 b", "DROP TABLE u"),
        ("CREATE INDEX IF NOT EXISTS j ON t(a)", "DROP INDEX j"),
        ("CREATE VIEW IF NOT EXISTS w AS SELECT 1", "DROP VIEW w"),
        (
            "CREATE TRIGGER IF NOT EXISTS s AFTER INSERT ON t BEGIN SELECT 1; END",
            "DROP TRIGGER s",
        ),
        ("DROP TABLE IF EXISTS gone", "CREATE TABLE gone(a)"),
        ("DROP INDEX IF EXISTS i", "CREATE INDEX i ON t(a)"),
        ("DROP VIEW IF EXISTS v", "CREATE VIEW v AS SELECT 1"),
        (
            "DROP TRIGGER IF EXISTS r",
            "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END",
        ),
        ("CREATE TABLE u(b)", "DROP TABLE u"),
        ("REINDEX t", "SELECT 1"),
    ] {
        let ours = session();
        must(&ours, TABLE);
        let theirs = rusqlite::Connection::open_in_memory().unwrap();
        theirs.execute_batch(TABLE).unwrap();
        let mut prepared = support::prepare(&ours, sql);
        let mut statement = theirs.prepare(sql).unwrap();
        let mut both = |around: &str| {
            must(&ours, around);
            theirs.execute_batch(around).unwrap();
            let ran = support::drain(&mut prepared);
            prepared.reset();
            let expected = statement
                .execute([])
                .map_err(|e| e.sqlite_error().unwrap().extended_code);
            let code = ran
                .first()
                .and_then(|line| line.split([' ', ':']).nth(1)?.parse().ok());
            assert_eq!(
                code.map_or(Ok(0), Err),
                expected.map(|_| 0),
                "{sql}: {around}: {ran:?}"
            );
        };
        both("");
        both("PRAGMA query_only = 1");
        both("BEGIN; SELECT count(*) FROM t");
        both("COMMIT");
        both(&format!(
            "PRAGMA query_only = 0; {undo}; PRAGMA query_only = 1"
        ));
        both("PRAGMA query_only = 0");
    }
}
