//! Handles of blobs beside other connections, and of databases that may only be read. What
//! rusqlite can be asked too is in `usage/blobs.rs`.

use fulgurite::blob::{Blob, ZeroBlob};
use fulgurite::{Connection, Database, Durability, MAIN_DB, OpenFlags, Options, ffi};
use std::sync::atomic::{AtomicBool, Ordering};

fn code<T>(outcome: fulgurite::Result<T>) -> Option<i32> {
    outcome.err().map(|e| e.result_code())
}

fn body(connection: &Connection, read_only: bool) -> fulgurite::Result<Blob<'_>> {
    connection.blob_open(MAIN_DB, "t", "body", 1, read_only)
}

fn pair() -> (Connection, Connection) {
    let database = Database::in_memory().expect("opens");
    let (a, b) = (
        database.connect().expect("one"),
        database.connect().expect("two"),
    );
    a.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, body, other)")
        .expect("a table");
    a.execute(
        "INSERT INTO t VALUES (1, ?1, 0), (2, ?1, 0)",
        [ZeroBlob(300_000)],
    )
    .expect("rows");
    (a, b)
}

/// What others commit to the row ends a handle, and nothing is written over it; what they
/// commit beside it does not.
#[test]
fn others_that_change_the_value_end_a_handle() {
    let (a, b) = pair();
    let mut blob = body(&a, false).expect("opens");
    b.execute_batch("UPDATE t SET other = 1; UPDATE t SET body = 'x' WHERE id = 2")
        .expect("beside");
    blob.write_at(b"still", 7).expect("writes");
    let mut bytes = [0; 5];
    blob.read_at_exact(&mut bytes, 7).expect("reads");
    assert_eq!(&bytes, b"still");
    let kept: i64 = b
        .query_row("SELECT other FROM t WHERE id = 1", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(kept, 1);
    b.execute("UPDATE t SET body = 'theirs' WHERE id = 1", [])
        .expect("changes");
    assert_eq!(code(blob.write_at(b"mine", 0)), Some(ffi::SQLITE_ABORT));
    assert_eq!(blob.len(), 0);
    let found: String = a
        .query_row("SELECT body FROM t WHERE id = 1", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(found, "theirs");
}

/// What a statement with RETURNING does is done when its first row is there, and what was
/// written through a handle when that returns: neither keeps a COMMIT waiting.
#[test]
fn handles_and_rows_of_returning_do_not_hold_up_a_commit() {
    let (a, b) = pair();
    a.execute_batch("BEGIN").expect("begins");
    let mut blob = body(&a, false).expect("opens");
    blob.write_at(b"mine", 0).expect("writes");
    let insert = "INSERT INTO t VALUES (3, 'x', 0), (4, 'x', 0), (5, 'x', 0) RETURNING id";
    let mut insert = a.prepare(insert).expect("compiles");
    let mut rows = insert.query([]).expect("starts");
    let first = rows.next().expect("reads").expect("a row");
    assert_eq!(first.get(0), Ok(3));
    for sql in ["SAVEPOINT s", "RELEASE s", "COMMIT"] {
        a.execute_batch(sql).expect(sql);
    }
    let found: (i64, Vec<u8>) = b
        .query_row(
            "SELECT count(*), (SELECT substr(body, 1, 4) FROM t WHERE id = 1) FROM t",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .expect("reads");
    assert_eq!(found, (5, b"mine".to_vec()));
    let left: fulgurite::Result<Vec<i64>> = rows.mapped(|row| row.get(0)).collect();
    assert_eq!(left, Ok(vec![4, 5]));
}

/// Another name of its column, and an index on it, end a handle too.
#[test]
fn changes_to_the_schema_of_its_column_end_a_handle() {
    for change in [
        "ALTER TABLE t RENAME COLUMN body TO text",
        "ALTER TABLE t RENAME TO u",
        "CREATE INDEX t_body ON t (body)",
    ] {
        let (a, _) = pair();
        let mut blob = body(&a, false).expect("opens");
        blob.write_at(b"mine", 0).expect("writes");
        a.execute_batch(change).expect(change);
        assert_eq!(
            code(blob.write_at(b"more", 0)),
            Some(ffi::SQLITE_ABORT),
            "{change}"
        );
    }
}

/// Says that it is over, also where its thread panics.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Commits of others that came right behind a handle's own were taken for it: the handle
/// showed what they wrote, and what it wrote next went over it.
#[test]
fn writes_right_behind_those_of_a_handle_end_it() {
    for durability in [Durability::Full, Durability::Normal, Durability::Off] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let options = Options {
            durability,
            ..Options::default()
        };
        let database = Database::open_with_options(dir.path().join("a.db"), options);
        let database = database.expect("opens");
        let connect = || database.connect().expect("connects");
        connect()
            .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, body); INSERT INTO t VALUES (1, zeroblob(8))")
            .expect("a table");
        let is_over = AtomicBool::new(false);
        let disturb = || {
            let connection = connect();
            while !is_over.load(Ordering::Relaxed) {
                connection
                    .execute("UPDATE t SET body = x'0909090909090909'", [])
                    .expect("changes");
            }
        };
        std::thread::scope(|scope| {
            let _over = Over(&is_over);
            for _ in 0..3 {
                scope.spawn(disturb);
            }
            let connection = connect();
            for round in 0..500 {
                let mut blob = body(&connection, false).expect("opens");
                let wrote = blob.write_at(b"mine", 0);
                let mut bytes = [0; 4];
                let outcome = wrote.and_then(|()| blob.read_at_exact(&mut bytes, 0));
                match outcome {
                    Ok(()) if &bytes == b"mine" => {}
                    Ok(()) => panic!("{durability:?}: reads {bytes:?} in round {round}"),
                    expired => assert_eq!(code(expired), Some(ffi::SQLITE_ABORT)),
                }
            }
        });
    }
}

/// An interrupt ends the transaction of a statement that writes, and with it what a handle
/// wrote there.
#[test]
fn what_an_interrupt_undid_is_not_read() {
    let (a, _) = pair();
    a.execute_batch("BEGIN").expect("begins");
    let mut blob = body(&a, false).expect("opens");
    blob.write_at(b"mine", 0).expect("writes");
    let mut update = a.prepare("UPDATE t SET other = 1").expect("compiles");
    let mut query = a.prepare("SELECT id FROM t").expect("compiles");
    let mut rows = query.query([]).expect("starts");
    assert!(rows.next().expect("reads").is_some());
    a.get_interrupt_handle().interrupt();
    let refused = update.execute([]);
    assert_eq!(code(refused), Some(ffi::SQLITE_INTERRUPT));
    assert!(a.is_autocommit());
    let read = blob.read_at_exact(&mut [0; 4], 0);
    assert_eq!(code(read), Some(ffi::SQLITE_ABORT));
}

/// Within a transaction a handle sees what that sees, and loses with it.
#[test]
fn a_handle_within_a_transaction() {
    let (a, b) = pair();
    a.execute_batch("BEGIN").expect("begins");
    let mut blob = body(&a, false).expect("opens");
    b.execute("UPDATE t SET body = 'theirs' WHERE id = 1", [])
        .expect("changes");
    let mut bytes = [9; 5];
    blob.read_at_exact(&mut bytes, 0)
        .expect("reads its snapshot");
    assert_eq!(bytes, [0; 5]);
    blob.write_at(b"mine", 0).expect("writes");
    let lost = a.execute_batch("COMMIT");
    assert_eq!(code(lost), Some(ffi::SQLITE_BUSY_SNAPSHOT));
    assert_eq!(code(blob.read_at(&mut bytes, 0)), Some(ffi::SQLITE_ABORT));
    // What is rolled back is not read.
    b.execute_batch("UPDATE t SET body = zeroblob(3); SAVEPOINT s")
        .expect("begins");
    let mut blob = body(&b, false).expect("opens");
    blob.write_at(b"abc", 0).expect("writes");
    b.execute_batch("ROLLBACK TO s").expect("goes back");
    assert_eq!(code(blob.read_at(&mut bytes, 0)), Some(ffi::SQLITE_ABORT));
    b.execute_batch("RELEASE s").expect("ends");
}

#[test]
fn the_table_may_go_or_change() {
    let (a, b) = pair();
    let mut blob = body(&a, false).expect("opens");
    b.execute_batch("ALTER TABLE t ADD COLUMN more DEFAULT 7")
        .expect("changes");
    blob.write_at(b"on", 0).expect("writes");
    let more: i64 = a
        .query_row("SELECT more FROM t WHERE id = 1", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(more, 7);
    b.execute_batch("CREATE INDEX i ON t (body)")
        .expect("an index");
    assert_eq!(code(blob.write_at(b"on", 0)), Some(ffi::SQLITE_ABORT));
    let blob = body(&a, true).expect("opens");
    b.execute_batch("DROP TABLE t").expect("drops");
    assert_eq!(code(blob.read_at(&mut [0], 0)), Some(ffi::SQLITE_ABORT));
    let schema = a.blob_open(MAIN_DB, "sqlite_schema", "sql", 1, false);
    assert!(schema.is_err());
}

#[test]
fn a_database_for_reading_is_not_written() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("a.db");
    let db = Connection::open(&path).expect("opens");
    db.execute_batch("CREATE TABLE t (body); INSERT INTO t VALUES ('text')")
        .expect("a table");
    drop(db);
    let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
    assert_eq!(code(body(&db, false)), Some(ffi::SQLITE_READONLY));
    assert_eq!(body(&db, true).expect("opens").len(), 4);
    // A connection that does not write opens none that would.
    let db = Connection::open(dir.path().join("b.db")).expect("opens");
    db.execute_batch("CREATE TABLE t (body); INSERT INTO t VALUES ('text')")
        .expect("a table");
    let mut open = body(&db, false).expect("opens");
    db.execute_batch("PRAGMA query_only = ON").expect("is set");
    assert_eq!(code(body(&db, false)), Some(ffi::SQLITE_READONLY));
    assert_eq!(code(open.write_at(b"mine", 0)), Some(ffi::SQLITE_READONLY));
    assert_eq!(body(&db, true).expect("opens").len(), 4);
}

/// A database could be detached beside a handle of one of its blobs: its file stayed open and
/// locked as long as that, and who wrote was told of a misuse.
#[test]
fn a_handle_keeps_its_database_attached() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("b.db");
    let log = dir.path().join("b.db-wal0");
    let db = Connection::open(dir.path().join("a.db")).expect("opens");
    db.execute("ATTACH ? AS b", [file.to_str()])
        .expect("attaches");
    db.execute_batch(
        "CREATE TABLE b.t (id INTEGER PRIMARY KEY, body); INSERT INTO t VALUES (1, 'body')",
    )
    .expect("a table");
    let mut blob = db.blob_open("b", "t", "body", 1, false).expect("opens");
    for _ in 0..2 {
        let refused = db.execute_batch("DETACH b").expect_err("it is in use");
        assert_eq!(refused.to_string(), "database b is locked");
        blob.write_at(b"BO", 0).expect("goes on");
    }
    let second = db.blob_open("b", "t", "body", 1, true).expect("opens");
    drop(blob);
    db.execute_batch("DETACH b").expect_err("it is in use");
    db.execute_batch("UPDATE t SET body = 'another'")
        .expect("changes");
    let expired = second.read_at(&mut [0; 2], 0);
    assert_eq!(code(expired), Some(ffi::SQLITE_ABORT));
    assert!(log.exists());
    db.execute_batch("DETACH b").expect("nobody uses it");
    assert!(!log.exists(), "it is closed");
}

/// VACUUM by another connection writes every value anew, which ends handles; one that is
/// opened then finds what was there.
#[test]
fn vacuum_ends_a_handle() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::open(folder.path().join("v.db")).expect("opens");
    let (a, b) = (
        database.connect().expect("one"),
        database.connect().expect("two"),
    );
    a.execute_batch(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body);
         INSERT INTO t VALUES (1, randomblob(300000))",
    )
    .expect("a table");
    let handle = body(&a, false).expect("opens");
    let mut before = vec![0; 300_000];
    handle.read_at_exact(&mut before, 0).expect("reads");
    b.execute_batch("VACUUM").expect("is made");
    let mut after = vec![0; 300_000];
    assert_eq!(code(handle.read_at(&mut after, 0)), Some(ffi::SQLITE_ABORT));
    assert_eq!(handle.len(), 0);
    let handle = body(&a, true).expect("opens");
    handle.read_at_exact(&mut after, 0).expect("reads");
    assert!(before == after);
}
