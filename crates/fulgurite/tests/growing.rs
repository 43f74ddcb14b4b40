//! Transactions that come to be too large for the log while others hold what they need for
//! that: who is told so, and what is left. What meets them at a table that they come to later
//! is in `overlap.rs`.

use fulgurite::{Connection, Database, Error, MAIN_DB, ffi};
use std::time::Duration;

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, body);
    CREATE INDEX t_length ON t (length(body));
    INSERT INTO t VALUES (0, zeroblob(50000)), (1, 'one');
    CREATE TABLE u (id INTEGER PRIMARY KEY, body);
    INSERT INTO u VALUES (1, zeroblob(100))";

fn pair() -> (tempfile::TempDir, Connection, Connection) {
    let dir = tempfile::tempdir().expect("a folder");
    let database = Database::open(dir.path().join("a.db")).expect("a database");
    let [a, b] = [0, 1].map(|_| database.connect().expect("a connection"));
    run(&a, SCHEMA);
    for connection in [&a, &b] {
        connection.busy_timeout(Duration::ZERO).expect("a timeout");
    }
    (dir, a, b)
}

fn run(connection: &Connection, sql: &str) {
    connection.execute_batch(sql).expect(sql);
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

fn code(error: &Error) -> Option<i32> {
    error.sqlite_extended_error_code()
}

fn write(connection: &Connection, table: &str, id: i64, bytes: &[u8]) -> Result<(), Error> {
    let mut blob = connection.blob_open(MAIN_DB, table, "body", id, false)?;
    blob.write_at(bytes, 0)
}

/// One of the ways to make a transaction larger, for the n-th time.
type Grow = fn(&Connection, i64) -> Result<(), Error>;

/// The row with which a transaction came to be too large was told SQLITE_BUSY, where somebody
/// else kept writers out, and all of the transaction was rolled back: what its program did
/// next committed alone.
#[test]
fn a_row_with_which_it_grows_too_large_waits_for_the_next() {
    let ways: [(&str, Grow); 3] = [
        ("INSERT", |a, n| {
            let sql = "INSERT INTO t VALUES (?1, zeroblob(50000))";
            a.execute(sql, [n]).map(|_| ())
        }),
        ("UPDATE", |a, n| {
            let sql = "UPDATE t SET body = zeroblob(50000 + ?1) WHERE id = 1";
            a.execute(sql, [n]).map(|_| ())
        }),
        ("a handle", |a, _| write(a, "t", 0, &[7; 50_000])),
    ];
    for (what, grow) in ways {
        let (_dir, a, b) = pair();
        if what == "a handle" {
            // None is opened to write to a column of an index.
            run(&a, "DROP INDEX t_length");
        }
        run(&a, "BEGIN; INSERT INTO t VALUES (-1, 'first')");
        run(&b, "BEGIN IMMEDIATE");
        let mut grown = 2;
        let refused = loop {
            match grow(&a, grown) {
                Ok(()) => grown += 1,
                Err(error) => break error,
            }
            assert!(grown < 1000, "{what}: it is never too large");
        };
        assert_eq!(code(&refused), Some(ffi::SQLITE_BUSY), "{what}");
        assert!(!a.is_autocommit(), "{what}");
        // It is asked again before anything else is written.
        let refused = grow(&a, grown).expect_err("still busy");
        assert_eq!(code(&refused), Some(ffi::SQLITE_BUSY), "{what}");
        let number_set = a.execute_batch("PRAGMA user_version = 7");
        assert!(number_set.is_err(), "{what}");
        assert!(!a.is_autocommit(), "{what}");
        run(&b, "COMMIT");
        grow(&a, grown).expect("there is nobody in the way");
        run(&a, "PRAGMA user_version = 8; COMMIT");
        assert_eq!(number(&b, "PRAGMA user_version"), 8);
        let rows = match what {
            "INSERT" => grown + 2,
            _ => 3,
        };
        assert_eq!(number(&b, "SELECT count(*) FROM t"), rows, "{what}");
        let check: String = b
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("checks");
        assert_eq!(check, "ok", "{what}");
    }
}

/// COMMIT answered that the value was too big, and had rolled back, where a statement of one
/// row had written it last.
#[test]
fn a_row_larger_than_a_record_may_be_the_last_one() {
    const LARGE: i64 = 65 << 20;
    let (dir, a, b) = pair();
    a.execute("ATTACH ?1 AS o", [dir.path().join("o.db").to_str()])
        .expect("attaches");
    run(&a, "CREATE TABLE o.u (id INTEGER PRIMARY KEY, body)");
    for (id, also) in [(7, "SELECT 1"), (8, "INSERT INTO o.u VALUES (8, 'small')")] {
        run(&a, "BEGIN");
        run(&b, &format!("UPDATE t SET body = {id} WHERE id = 1"));
        run(&a, also);
        a.execute("INSERT INTO t VALUES (?1, zeroblob(?2))", [id, LARGE])
            .expect("inserts");
        run(&a, "COMMIT");
        let length = format!("SELECT length(body) FROM t WHERE id = {id}");
        assert_eq!(number(&b, &length), LARGE);
    }
    assert_eq!(number(&a, "SELECT count(*) FROM o.u"), 1);
    let check: String = a
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("checks");
    assert_eq!(check, "ok");
}

/// What is written through a handle, and a number of the database, are rows like others: who
/// comes too late to their tables is told so, and the transaction stays open. After the handle
/// it was rolled back.
#[test]
fn handles_that_come_too_late_leave_it_open() {
    let (_dir, a, b) = pair();
    run(&a, "BEGIN");
    run(
        &a,
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO t SELECT i, zeroblob(50000) FROM n",
    );
    write(&b, "u", 1, b"theirs").expect("nobody is in the way");
    run(&b, "PRAGMA user_version = 5");
    for _ in 0..2 {
        let lost = write(&a, "u", 1, b"mine").expect_err("it is too late");
        assert_eq!(code(&lost), Some(ffi::SQLITE_BUSY_SNAPSHOT));
        let lost = a.execute_batch("PRAGMA user_version = 6");
        let lost = lost.expect_err("it is too late");
        assert_eq!(code(&lost), Some(ffi::SQLITE_BUSY_SNAPSHOT));
        assert!(!a.is_autocommit());
    }
    assert_eq!(number(&a, "SELECT count(*) FROM t"), 201);
    run(&a, "ROLLBACK");
    let found: Vec<u8> = a
        .query_row("SELECT substr(body, 1, 6) FROM u", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(found, b"theirs");
}
