//! Copies of a database that is in use, and into one that is. What rusqlite can be asked too
//! is in `usage/copies.rs`; power cuts are `fulgurite-sim`'s.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fulgurite::backup::{Backup, NO_PROGRESS, StepResult};
use fulgurite::{Connection, Database, ErrorCode, MAIN_DB, ffi};
use fulgurite_store::{Key, KeyKind};

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

fn sound(connection: &Connection) {
    let found = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(found.expect("checks"), "ok");
}

/// Writers move amounts between rows, and make and drop tables; a copy has one state.
#[test]
fn writers_go_on_and_the_copy_is_of_one_state() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(dir.path().join("bank.db")).expect("opens");
    let db = database.connect().expect("connects");
    db.execute_batch(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INT, note);
         CREATE INDEX by_balance ON account (balance);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO account SELECT i, 100, hex(randomblob(100)) FROM n",
    )
    .expect("accounts");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2_i64 {
            let (database, done) = (&database, &done);
            scope.spawn(move || {
                let mut turn = thread;
                while !done.load(Ordering::Relaxed) {
                    turn += 7;
                    let moved = database.transact(|tx| {
                        let sql = "UPDATE account SET balance = balance + ?1 WHERE id = ?2";
                        tx.execute(sql, (1, 1 + turn % 3000))?;
                        tx.execute(sql, (-1, 3000 - turn % 3000))
                    });
                    moved.expect("commits");
                }
            });
        }
        for turn in 0..6 {
            let path = dir.path().join(format!("{turn}.db"));
            match turn % 2 {
                0 => db.backup(MAIN_DB, &path, NO_PROGRESS).expect("copies"),
                _ => {
                    let name = path.to_str().expect("UTF-8");
                    db.execute("VACUUM INTO ?1", [name]).expect("copies");
                }
            }
            let copy = Connection::open(&path).expect("opens");
            assert_eq!(number(&copy, "SELECT sum(balance) FROM account"), 300_000);
            sound(&copy);
        }
        done.store(true, Ordering::Relaxed);
    });
    let names = std::fs::read_dir(dir.path()).expect("lists");
    let left = names.filter(|name| {
        let name = name.as_ref().expect("a name").file_name();
        name.to_string_lossy().contains("-copy")
    });
    assert_eq!(left.count(), 0);
}

/// Others of the destination see what was there until all of the copy is; a transaction that
/// began before it loses.
#[test]
fn a_database_in_use_becomes_the_copy_at_once() {
    let source = Connection::open_in_memory().expect("opens");
    source
        .execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")
        .expect("a table");
    let target = Database::in_memory().expect("opens");
    let (mut to, reader) = (
        target.connect().expect("one"),
        target.connect().expect("two"),
    );
    let writer = target.connect().expect("three");
    to.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (10)")
        .expect("a table");
    reader.execute_batch("BEGIN").expect("begins");
    assert_eq!(number(&reader, "SELECT sum(a) FROM t"), 10);
    writer
        .execute_batch("BEGIN; INSERT INTO t VALUES (20)")
        .expect("writes");
    let mut again = reader.prepare("SELECT sum(a) FROM t").expect("compiles");
    {
        let backup = Backup::new(&source, &mut to).expect("begins");
        assert_eq!(backup.step(0).expect("steps"), StepResult::More);
        assert_eq!(
            number(&target.connect().expect("a fourth"), "SELECT sum(a) FROM t"),
            10
        );
        assert_eq!(backup.step(-1).expect("steps"), StepResult::Done);
    }
    assert_eq!(again.query_row([], |row| row.get::<_, i64>(0)), Ok(10));
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(again.query_row([], |row| row.get::<_, i64>(0)), Ok(6));
    let lost = writer.execute_batch("COMMIT").expect_err("lost");
    assert_eq!(
        lost.sqlite_extended_error_code(),
        Some(ffi::SQLITE_BUSY_SNAPSHOT)
    );
    assert_eq!(number(&writer, "SELECT sum(a) FROM t"), 6);
    sound(&to);
}

#[test]
fn a_busy_destination_is_tried_again() {
    let source = Connection::open_in_memory().expect("opens");
    let target = Database::in_memory().expect("opens");
    let (mut to, writer) = (
        target.connect().expect("one"),
        target.connect().expect("two"),
    );
    writer
        .execute_batch("CREATE TABLE t (a); BEGIN IMMEDIATE")
        .expect("begins");
    to.busy_timeout(Duration::from_millis(5)).expect("sets");
    let backup = Backup::new(&source, &mut to).expect("begins");
    assert_eq!(backup.step(-1).expect("steps"), StepResult::Busy);
    writer.execute_batch("COMMIT").expect("ends");
    assert_eq!(backup.step(-1).expect("steps"), StepResult::Done);
    drop(backup);
    assert_eq!(number(&to, "SELECT count(*) FROM sqlite_schema"), 0);
}

/// Families that are not SQL's go along, and those of the destination go.
#[test]
fn families_are_copied() {
    let (source, target) = (Database::in_memory(), Database::in_memory());
    let (source, target) = (source.expect("opens"), target.expect("opens"));
    for (database, family, value) in [(&source, "kept", b"a"), (&target, "gone", b"b")] {
        let tree = database
            .store()
            .create_family(family, KeyKind::Bytes)
            .expect("a family");
        let mut txn = database.store().txn();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Bytes(b"key"), value).expect("puts");
        txn.commit().expect("commits");
    }
    let mut to = target.connect().expect("connects");
    let from = source.connect().expect("connects");
    Backup::new(&from, &mut to)
        .and_then(|it| it.step(-1))
        .expect("copies");
    assert!(target.store().family("gone").expect("looks").is_none());
    let tree = target
        .store()
        .family("kept")
        .expect("looks")
        .expect("is there");
    let mut txn = target.store().txn();
    txn.begin_read().expect("begins");
    let mut value = Vec::new();
    assert!(
        txn.get_into(&tree, Key::Bytes(b"key"), &mut value)
            .expect("reads")
    );
    assert_eq!(value, b"a");
}

#[test]
fn what_is_no_destination_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("notes.txt");
    std::fs::write(&path, "notes").expect("writes");
    let database = Database::open(dir.path().join("a.db")).expect("opens");
    let (db, mut other) = (
        database.connect().expect("one"),
        database.connect().expect("two"),
    );
    let refused = Backup::new(&db, &mut other)
        .map(|_| ())
        .expect_err("one database");
    assert_eq!(
        refused.to_string(),
        "source and destination must be distinct"
    );
    let refused = db
        .backup(MAIN_DB, &path, NO_PROGRESS)
        .expect_err("no database");
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::NotADatabase));
    let name = path.to_str().expect("UTF-8");
    let refused = db
        .execute("VACUUM INTO ?1", [name])
        .expect_err("it is there");
    assert_eq!(refused.to_string(), "output file already exists");
    let refused = db
        .execute_batch("VACUUM INTO 'file:x.db'")
        .expect_err("a URI");
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::CannotOpen));
    assert_eq!(std::fs::read(&path).expect("reads"), b"notes");
    // A source that is not there makes none, and leaves what the destination has.
    db.execute_batch("CREATE TABLE kept (a)").expect("a table");
    let absent = dir.path().join("absent.db");
    let refused = other
        .restore(MAIN_DB, &absent, NO_PROGRESS)
        .expect_err("is not there");
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::CannotOpen));
    assert!(!absent.exists());
    assert_eq!(number(&db, "SELECT count(*) FROM kept"), 0);
    let no_pages = Backup::new(&db, &mut Connection::open_in_memory().expect("opens"))
        .and_then(|backup| backup.run_to_completion(0, Duration::ZERO, None));
    assert!(no_pages.is_err());
}
