//! Temporary databases beside a database in a file, and beside other connections.

use fulgurite::{Connection, Database, ErrorCode};
use fulgurite_store::Options;

/// A file that several connections have open, with a table `m` of one row.
fn file() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        cache_bytes: 1 << 20,
        ..Options::default()
    };
    let path = folder.path().join("a.db");
    let database = Database::open_with_options(path, options).expect("opens");
    let first = database.connect().expect("connects");
    first
        .execute_batch("CREATE TABLE m(a); INSERT INTO m VALUES (1)")
        .expect("a table");
    (folder, database)
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[test]
fn each_connection_has_its_own_and_takes_it_along() {
    let (folder, database) = file();
    let before = files(&folder);
    let one = database.connect().expect("connects");
    let other = database.connect().expect("connects");
    one.execute_batch("CREATE TEMP TABLE t(a); INSERT INTO t VALUES (5)")
        .expect("runs");
    let missing = other.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0));
    assert!(missing.is_err());
    other
        .execute_batch("CREATE TEMP TABLE t(a, b)")
        .expect("runs");
    assert_eq!(number(&one, "SELECT sum(a) FROM t"), 5);
    // What is in temporary files is in none that has a name.
    assert_eq!(files(&folder), before);
    drop(one);
    assert_eq!(number(&other, "SELECT count(*) FROM t"), 0);
}

fn files(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Who writes to temporary tables alone commits nothing to the database: no record, no sync,
/// nobody to lose against.
#[test]
fn what_is_temporary_is_not_logged() {
    let (_folder, database) = file();
    let one = database.connect().expect("connects");
    let other = database.connect().expect("connects");
    let records = || {
        let log = database.stats().log.expect("a log");
        (log.records, log.syncs)
    };
    let before = records();
    one.execute_batch(
        "CREATE TEMP TABLE t(a UNIQUE); CREATE INDEX temp.i ON t(a);
         INSERT INTO t SELECT a FROM m; BEGIN; INSERT INTO t SELECT a + 1 FROM m;
         UPDATE t SET a = a + 10; DELETE FROM t WHERE a > 11; COMMIT; DROP INDEX i",
    )
    .expect("runs");
    assert_eq!(records(), before);
    one.execute_batch("BEGIN; INSERT INTO t SELECT a + 100 FROM m")
        .expect("runs");
    other.execute_batch("UPDATE m SET a = 2").expect("runs");
    // It has read what has changed since, and written nothing that depends on it.
    one.execute_batch("COMMIT").expect("commits");
    assert_eq!(number(&one, "SELECT count(*) FROM t"), 2);
}

/// What a transaction reads of the database counts, whatever it does to temporary tables.
#[test]
fn a_commit_that_loses_undoes_what_is_temporary() {
    let (_folder, database) = file();
    let one = database.connect().expect("connects");
    let other = database.connect().expect("connects");
    one.execute_batch(
        "CREATE TABLE sums(s); CREATE TEMP TABLE t(a); INSERT INTO t VALUES (7);
         BEGIN; DELETE FROM t; INSERT INTO t SELECT a FROM m;
         INSERT INTO sums SELECT sum(a) FROM t",
    )
    .expect("runs");
    other.execute_batch("UPDATE m SET a = 2").expect("runs");
    let lost = one.execute_batch("COMMIT").expect_err("it has lost");
    assert_eq!(lost.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    assert!(one.is_autocommit());
    assert_eq!(number(&one, "SELECT a FROM t"), 7);
    assert_eq!(number(&one, "SELECT count(*) FROM sums"), 0);
}

#[test]
fn what_exceeds_the_cache_goes_to_a_file() {
    let (_folder, database) = file();
    let one = database.connect().expect("connects");
    one.execute_batch(
        "CREATE TEMP TABLE t(id INTEGER PRIMARY KEY, a, b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
         INSERT INTO t SELECT i, i * 7 % 1000, hex(randomblob(100)) FROM n;
         CREATE INDEX i ON t(a); BEGIN; UPDATE t SET b = b || 'x' WHERE id % 2 = 0; ROLLBACK",
    )
    .expect("runs");
    assert_eq!(number(&one, "SELECT sum(length(b)) FROM t"), 4_000_000);
    assert_eq!(number(&one, "SELECT count(*) FROM t WHERE a = 3"), 20);
    let sound: String = one
        .query_row("PRAGMA temp.integrity_check", [], |row| row.get(0))
        .expect("checks");
    assert_eq!(sound, "ok");
}

/// A statement that is compiled, or kept for its text, means what its text means now.
#[test]
fn prepared_statements_see_what_comes_to_hide_a_table() {
    let (_folder, database) = file();
    let one = database.connect().expect("connects");
    let mut select = one.prepare("SELECT a FROM m").expect("compiles");
    let mut insert = one.prepare("INSERT INTO m VALUES (?)").expect("compiles");
    let mut seen = || {
        select
            .query_row([], |row| row.get::<_, i64>(0))
            .expect("a row")
    };
    assert_eq!(seen(), 1);
    one.execute_batch("CREATE TEMP TABLE m(a)").expect("runs");
    insert.execute([10]).expect("runs");
    assert_eq!(seen(), 10);
    one.execute_batch("BEGIN; DROP TABLE temp.m").expect("runs");
    assert_eq!(seen(), 1);
    one.execute_batch("ROLLBACK").expect("runs");
    assert_eq!(seen(), 10);
    one.execute_batch("DROP TABLE m").expect("runs");
    insert.execute([11]).expect("runs");
    assert_eq!(number(&one, "SELECT count(*) FROM m"), 2);
    for expected in [2, 0, 2] {
        assert_eq!(number(&one, "SELECT count(*) FROM m"), expected);
        let change = match expected {
            0 => "DROP TABLE m",
            _ => "CREATE TEMP TABLE IF NOT EXISTS m(a)",
        };
        one.execute_batch(change).expect("runs");
    }
}

/// Where the schema changes beneath a prepared statement of an explicit transaction.
#[test]
fn a_connection_that_is_lent_again_has_none() {
    let (_folder, database) = file();
    for _ in 0..3 {
        database
            .transact(|tx| {
                tx.execute_batch("CREATE TEMP TABLE t(a); INSERT INTO t SELECT a FROM m")?;
                assert_eq!(number(tx, "SELECT count(*) FROM t"), 1);
                Ok(())
            })
            .expect("commits");
    }
}

#[test]
fn a_database_for_reading_only_has_temporary_tables() {
    let (folder, database) = file();
    drop(database);
    let path = folder.path().join("a.db");
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let database = Database::open_with_options(path, options).expect("opens");
    let one = database.connect().expect("connects");
    one.execute_batch("CREATE TEMP TABLE t(a); INSERT INTO t SELECT a + 1 FROM m")
        .expect("runs");
    assert_eq!(number(&one, "SELECT a FROM t"), 2);
    assert!(one.execute_batch("INSERT INTO m VALUES (2)").is_err());
    one.execute_batch("BEGIN; SAVEPOINT s; INSERT INTO t SELECT a FROM m; ROLLBACK TO s")
        .expect("runs");
    assert!(one.execute_batch("INSERT INTO m VALUES (2)").is_err());
    one.execute_batch("INSERT INTO t SELECT a + 2 FROM m; COMMIT")
        .expect("runs");
    assert_eq!(number(&one, "SELECT sum(a) FROM t"), 5);
}

/// Rows that are being read stay what they were, whatever is written meanwhile.
#[test]
fn open_queries_of_temporary_tables_go_on() {
    let (_folder, database) = file();
    let one = database.connect().expect("connects");
    one.execute_batch("CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
        .expect("runs");
    let mut statement = one.prepare("SELECT a FROM t").expect("compiles");
    let mut rows = statement.query([]).expect("runs");
    let mut sum = 0;
    while let Some(row) = rows.next().expect("a row") {
        sum += row.get::<_, i64>(0).expect("a number");
        one.execute("INSERT INTO t VALUES (100)", []).expect("runs");
        one.execute("DELETE FROM t WHERE a < 3", []).expect("runs");
    }
    assert_eq!(sum, 6);
    drop(rows);
    drop(statement);
    one.execute_batch("DROP TABLE t").expect("runs");
}
