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

/// What makes a transaction larger by statements of one row that do more than write it: their
/// name, what there is for them, and the n-th one.
const MORE_THAN_A_ROW: [(&str, &str, &str); 10] = [
    (
        "a trigger",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO u(body) VALUES (NEW.id); END",
        "INSERT INTO t VALUES (?1, zeroblob(50000))",
    ),
    (
        "a trigger that writes most",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN
         INSERT INTO u(body) VALUES (zeroblob(50000)); INSERT INTO u(body) VALUES (1); END",
        "INSERT INTO t VALUES (?1, 'small')",
    ),
    (
        "a trigger that writes many rows",
        "INSERT INTO u(body) VALUES (zeroblob(20000)), (zeroblob(20000)), (zeroblob(20000));
         CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE u SET id = id + 1000; END",
        "INSERT INTO t VALUES (?1, 'small')",
    ),
    (
        "triggers of triggers",
        "CREATE TABLE v (id INTEGER PRIMARY KEY, body);
         CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO u(body) VALUES (NEW.id); END;
         CREATE TRIGGER s AFTER INSERT ON u BEGIN
         INSERT INTO v(body) VALUES (zeroblob(50000)); END",
        "INSERT INTO t VALUES (?1, 'small')",
    ),
    (
        "a trigger of UPDATE",
        "CREATE TRIGGER r AFTER UPDATE ON t BEGIN INSERT INTO u(body) VALUES (NEW.id); END",
        "UPDATE t SET body = zeroblob(50000 + ?1) WHERE id = 1",
    ),
    (
        "a trigger of DELETE",
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
         INSERT INTO t SELECT i, 'small' FROM n;
         CREATE TRIGGER r AFTER DELETE ON t BEGIN
         INSERT INTO u(body) VALUES (zeroblob(50000)); INSERT INTO u(body) VALUES (OLD.id); END",
        "DELETE FROM t WHERE id = ?1",
    ),
    (
        "a trigger of an upsert",
        "CREATE TRIGGER r AFTER UPDATE ON t BEGIN INSERT INTO u(body) VALUES (NEW.id); END",
        "INSERT INTO t VALUES (1, 'x') ON CONFLICT DO UPDATE SET body = zeroblob(50000 + ?1)",
    ),
    (
        "a row that goes for another",
        "CREATE UNIQUE INDEX t_body ON t (substr(body, 1, 1)); DELETE FROM t WHERE id = 0",
        "INSERT OR REPLACE INTO t VALUES (?1, 'one' || hex(zeroblob(25000)))",
    ),
    (
        "an action",
        "PRAGMA foreign_keys = ON; CREATE UNIQUE INDEX t_body ON t (body);
         CREATE TABLE c (id INTEGER PRIMARY KEY, a, b REFERENCES t (body) ON UPDATE CASCADE);
         INSERT INTO c VALUES (1, zeroblob(50000), 'one'), (2, zeroblob(50000), 'one')",
        "UPDATE t SET body = ?1 WHERE id = 1",
    ),
    (
        "a number that is not given again",
        "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, body, n); CREATE INDEX i ON a (n)",
        "INSERT INTO a(body, n) VALUES (zeroblob(50000), ?1)",
    ),
];

/// The same of statements with triggers and actions. One with triggers took no place to go
/// back to where they could not fail by themselves, and lost all of the transaction.
#[test]
fn a_row_with_triggers_with_which_it_grows_too_large_waits_for_the_next() {
    let mut lost = Vec::new();
    for (what, there, sql) in MORE_THAN_A_ROW {
        let (_dir, a, b) = pair();
        run(&a, there);
        run(&a, "BEGIN; INSERT INTO t VALUES (-1, 'first')");
        run(&b, "BEGIN IMMEDIATE");
        let mut grown = 2;
        let refused = loop {
            match a.execute(sql, [grown]) {
                Ok(_) => grown += 1,
                Err(error) => break error,
            }
            assert!(grown < 990, "{what}: it is never too large");
        };
        assert_eq!(code(&refused), Some(ffi::SQLITE_BUSY), "{what}");
        if a.is_autocommit() {
            lost.push(what);
            continue;
        }
        let counts = |of: &Connection| {
            let counts = "SELECT count(*) || ' ' || (SELECT count(*) FROM u) || ' ' || sum(id)
                          || ' ' || (SELECT sum(id) FROM u) FROM t";
            let counted: String = of.query_row(counts, [], |row| row.get(0)).expect(what);
            counted
        };
        let before = counts(&a);
        let refused = a.execute(sql, [grown]).expect_err("still busy");
        assert_eq!(code(&refused), Some(ffi::SQLITE_BUSY), "{what}");
        assert!(!a.is_autocommit(), "{what}");
        assert_eq!(counts(&a), before, "{what}");
        run(&b, "COMMIT");
        for n in grown..grown + 3 {
            a.execute(sql, [n]).expect("there is nobody in the way");
        }
        let before = counts(&a);
        run(&a, "COMMIT");
        assert_eq!(counts(&b), before, "{what}");
        assert_eq!(number(&b, "SELECT count(*) FROM t WHERE id = -1"), 1);
        let check: String = b
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("checks");
        assert_eq!(check, "ok", "{what}");
    }
    assert_eq!(lost, [""; 0]);
}

/// A large transaction takes the lock of each table that it comes to. A trigger that came too
/// late to one, or found it locked, undid all of the transaction.
#[test]
fn triggers_that_come_too_late_leave_it_open() {
    for (sql, end) in [
        ("INSERT INTO t VALUES (1001, 'mine')", "COMMIT"),
        ("UPDATE t SET body = 'mine' WHERE id = 1", "ROLLBACK"),
    ] {
        let (_dir, a, b) = pair();
        run(
            &a,
            "CREATE TRIGGER r AFTER INSERT ON t WHEN NEW.id > 1000 BEGIN
             INSERT INTO u(body) VALUES (NEW.id); END;
             CREATE TABLE v (id INTEGER PRIMARY KEY, body);
             CREATE TRIGGER s AFTER UPDATE ON t BEGIN DELETE FROM v WHERE id = NEW.id; END;
             INSERT INTO v VALUES (1, 'one')",
        );
        run(
            &a,
            "BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO t SELECT i, zeroblob(50000) FROM n",
        );
        run(
            &b,
            "INSERT INTO u(body) VALUES ('theirs'); UPDATE v SET body = 'two'",
        );
        for _ in 0..2 {
            let lost = a.execute(sql, []).expect_err("it is too late");
            assert_eq!(code(&lost), Some(ffi::SQLITE_BUSY_SNAPSHOT), "{sql}");
            assert!(!a.is_autocommit(), "{sql}");
        }
        assert_eq!(number(&a, "SELECT count(*) FROM t"), 201);
        assert_eq!(number(&a, "SELECT count(*) FROM t WHERE body = 'mine'"), 0);
        run(&a, "INSERT INTO t VALUES (201, 'no trigger')");
        run(&a, end);
        let rows = if end == "COMMIT" { 202 } else { 2 };
        assert_eq!(number(&b, "SELECT count(*) FROM t"), rows);
        assert_eq!(number(&b, "SELECT count(*) FROM u"), 2);
    }
}

/// The numbers of AUTOINCREMENT are written down behind a row, in one table for all. A row
/// that was left out by a constraint, or that went or got another number where there is no
/// index, had not asked for that one's lock before: where a large transaction came too late to
/// it, all was undone.
#[test]
fn numbers_that_come_too_late_leave_it_open() {
    let mut lost = Vec::new();
    for sql in [
        "INSERT OR IGNORE INTO u VALUES (9, 2)",
        "INSERT OR IGNORE INTO u VALUES (9, NULL)",
        "INSERT INTO u VALUES (9, 2) ON CONFLICT DO NOTHING",
        "INSERT INTO u VALUES (9, 2) ON CONFLICT (n) DO UPDATE SET n = n WHERE id > 5",
        "UPDATE v SET id = 0 WHERE id = 2",
        "DELETE FROM v WHERE id = 2",
        "INSERT INTO v VALUES (7, 7)",
    ] {
        let (_dir, a, b) = pair();
        run(
            &a,
            "DROP TABLE u;
             CREATE TABLE u (id INTEGER PRIMARY KEY AUTOINCREMENT, n NOT NULL UNIQUE);
             CREATE TABLE v (id INTEGER PRIMARY KEY AUTOINCREMENT, n);
             CREATE TABLE w (id INTEGER PRIMARY KEY AUTOINCREMENT);
             INSERT INTO u VALUES (1, 1), (2, 2); INSERT INTO v VALUES (1, 1), (2, 2);
             INSERT INTO w VALUES (1)",
        );
        run(
            &a,
            "BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO t SELECT i, zeroblob(50000) FROM n",
        );
        run(&b, "DELETE FROM w");
        let refused = a.execute(sql, []).expect_err("it is too late");
        assert_eq!(code(&refused), Some(ffi::SQLITE_BUSY_SNAPSHOT), "{sql}");
        if a.is_autocommit() {
            lost.push(sql);
            continue;
        }
        let untouched = "SELECT (SELECT sum(id * n) FROM u) + (SELECT sum(id * n) FROM v)";
        assert_eq!(number(&a, untouched), 10, "{sql}");
        run(&a, "ROLLBACK");
    }
    assert_eq!(lost, [""; 0]);
}
