//! VACUUM: the file is as short as what it holds, everything is there, and who is in the
//! way is told of.

use fulgurite::{Connection, Database, ffi};
use std::path::Path;
use std::time::Duration;

const ROWS: i64 = 20_000;

/// A table with an index, in a file of its own, of which one row in ten is left.
fn thinned(path: &Path) -> Database {
    let database = Database::open(path).expect("opens");
    let db = database.connect().expect("connects");
    db.execute_batch(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, body);
         CREATE INDEX t_n ON t (n);
         WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {ROWS})
             INSERT INTO t SELECT x, x * 7919 % {ROWS}, hex(randomblob(40)) FROM c"
    ))
    .expect("a table");
    database.checkpoint().expect("a checkpoint");
    db.execute_batch("DELETE FROM t WHERE id % 10 <> 0")
        .expect("deletes");
    database.checkpoint().expect("a checkpoint");
    database
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).expect("is there").len()
}

fn code<T>(outcome: fulgurite::Result<T>) -> Option<i32> {
    outcome.err().map(|error| error.result_code())
}

fn verify(db: &Connection) {
    let one = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).expect(sql) };
    assert_eq!(one("SELECT count(*) FROM t"), ROWS / 10);
    assert_eq!(one("SELECT count(*) FROM t WHERE n >= 0"), ROWS / 10);
    let found = db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(found.expect("checks"), "ok");
}

#[test]
fn the_file_becomes_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, other) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let (database, _) = (thinned(&path), thinned(&other));
    let db = database.connect().expect("connects");
    db.execute("ATTACH ?1 AS other", [other.to_string_lossy()])
        .expect("attaches");
    let before = (length(&path), length(&other));
    db.execute_batch("VACUUM").expect("is made");
    let between = (length(&path), length(&other));
    assert!(between.0 < before.0 / 4, "{before:?} {between:?}");
    assert_eq!(between.1, before.1);
    db.execute_batch("VACUUM other").expect("is made");
    assert!(length(&other) < before.1 / 4);
    verify(&db);
    let free: i64 = db
        .query_row("PRAGMA freelist_count", [], |row| row.get(0))
        .expect("counts");
    assert!(free <= 8, "{free} pages are free");
    drop((db, database));
    let copy = folder.path().join("c.db");
    let db = Connection::open(&path).expect("opens");
    verify(&db);
    db.execute("VACUUM INTO ?1", [copy.to_string_lossy()])
        .expect("copies");
    let (now, shortest) = (length(&path), length(&copy));
    assert!(now <= shortest * 5 / 4, "{now}, and a copy {shortest}");
}

#[test]
fn writers_are_waited_for_and_readers_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let database = thinned(&path);
    let connect = || {
        let db = database.connect().expect("connects");
        db.busy_timeout(Duration::ZERO).expect("waits for nobody");
        db
    };
    let (db, other) = (connect(), connect());
    other
        .execute_batch("BEGIN IMMEDIATE; DELETE FROM t")
        .expect("writes");
    assert_eq!(code(db.execute_batch("VACUUM")), Some(ffi::SQLITE_BUSY));
    other
        .execute_batch("ROLLBACK; BEGIN; SELECT count(*) FROM t")
        .expect("reads");
    db.execute_batch("VACUUM").expect("is made");
    verify(&other);
    other.execute_batch("COMMIT").expect("ends");
    verify(&db);
}

#[test]
fn it_is_refused_and_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = thinned(&folder.path().join("a.db"));
    let mut db = database.connect().expect("connects");
    db.execute_batch("PRAGMA query_only = 1").expect("is set");
    assert_eq!(code(db.execute_batch("VACUUM")), Some(ffi::SQLITE_READONLY));
    db.execute_batch("PRAGMA query_only = 0; BEGIN")
        .expect("begins");
    assert_eq!(code(db.execute_batch("VACUUM")), Some(ffi::SQLITE_ERROR));
    db.execute_batch("COMMIT").expect("ends");
    db.progress_handler(1, Some(|| true)).expect("is set");
    assert_eq!(
        code(db.execute_batch("VACUUM")),
        Some(ffi::SQLITE_INTERRUPT)
    );
    db.progress_handler(1, None::<fn() -> bool>)
        .expect("is set");
    verify(&db);
    db.execute_batch("VACUUM").expect("is made");
    verify(&db);
}
