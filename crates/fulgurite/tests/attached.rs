//! Databases that a connection attaches, in files that others have open, too.

use fulgurite::{Connection, Database, ErrorCode};
use std::path::{Path, PathBuf};

/// Two files, `a.db` with a table `t` and `b.db` with a table `u`, of one row each.
fn files() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [a, b] = ["a.db", "b.db"].map(|name| folder.path().join(name));
    run(&open(&a), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    run(&open(&b), "CREATE TABLE u(y); INSERT INTO u VALUES (10)");
    (folder, a, b)
}

fn open(path: &Path) -> Connection {
    Connection::open(path).expect("opens")
}

fn run(connection: &Connection, sql: &str) {
    let outcome = connection.execute_batch(sql);
    outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn attach(connection: &Connection, path: &Path, name: &str) {
    run(
        connection,
        &format!("ATTACH '{}' AS {name}", path.display()),
    );
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn refused(connection: &Connection, sql: &str) -> String {
    let error = connection.execute_batch(sql).expect_err(sql);
    error.to_string()
}

#[test]
fn what_is_attached_is_the_file_that_others_have_open() {
    let (_folder, a, b) = files();
    let other = open(&b);
    let one = open(&a);
    attach(&one, &b, "b");
    assert_eq!(number(&one, "SELECT x + y FROM t, u"), 11);
    run(&other, "INSERT INTO u VALUES (20)");
    assert_eq!(number(&one, "SELECT sum(y) FROM b.u"), 30);
    run(&one, "INSERT INTO b.u SELECT x FROM t");
    assert_eq!(number(&other, "SELECT sum(y) FROM u"), 31);
    run(&other, "ALTER TABLE u ADD COLUMN z DEFAULT 5");
    assert_eq!(number(&one, "SELECT sum(z) FROM u"), 15);
    run(&one, "DETACH b");
    assert!(refused(&one, "SELECT * FROM u").contains("no such table: u"));
    drop(other);
    drop(one);
    assert_eq!(number(&open(&b), "SELECT count(*) FROM u"), 3);
}

#[test]
fn a_file_is_made_where_there_is_none_and_uris_are_read() {
    let (folder, a, b) = files();
    let one = open(&a);
    attach(&one, &folder.path().join("new.db"), "n");
    run(&one, "CREATE TABLE n.v(z); INSERT INTO v VALUES (3)");
    assert_eq!(
        number(&open(&folder.path().join("new.db")), "SELECT z FROM v"),
        3
    );
    run(&one, &format!("ATTACH 'file:{}?mode=ro' AS r", b.display()));
    assert_eq!(number(&one, "SELECT y FROM r.u"), 10);
    let error = refused(&one, "INSERT INTO r.u VALUES (1)");
    assert!(error.contains("readonly database"), "{error}");
    run(&one, "BEGIN; INSERT INTO t SELECT y FROM r.u; COMMIT");
    assert_eq!(number(&one, "SELECT sum(x) FROM t"), 11);
    let error = refused(&one, "ATTACH '/nowhere/at/all.db' AS w");
    assert!(
        error.contains("unable to open database: /nowhere/at/all.db"),
        "{error}"
    );
    let twice = format!("ATTACH '{}' AS again", a.display());
    assert!(refused(&one, &twice).contains("open under another name"));
}

/// A transaction writes to one file, and may read all: the second one is refused before
/// anything is written to it, and the transaction goes on.
#[test]
fn a_transaction_writes_to_one_file() {
    let (_folder, a, b) = files();
    let one = open(&a);
    attach(&one, &b, "b");
    run(&one, "ATTACH ':memory:' AS m; CREATE TABLE m.w(z)");
    run(&one, "CREATE TEMP TABLE k(z)");
    run(&one, "BEGIN; INSERT INTO t SELECT y FROM u");
    run(
        &one,
        "INSERT INTO k SELECT x FROM t; INSERT INTO m.w SELECT z FROM k",
    );
    for write in [
        "INSERT INTO u VALUES (1)",
        "DELETE FROM b.u",
        "CREATE TABLE b.x(y)",
        "PRAGMA b.user_version = 4",
    ] {
        let error = refused(&one, write);
        let expected = "cannot write to b in a transaction that writes to main";
        assert!(error.contains(expected), "{write}: {error}");
    }
    run(&one, "COMMIT");
    assert_eq!(number(&one, "SELECT count(*) FROM t"), 2);
    assert_eq!(number(&one, "SELECT count(*) FROM m.w"), 2);
    run(&one, "BEGIN; UPDATE u SET y = (SELECT max(x) FROM t)");
    assert!(refused(&one, "DELETE FROM t").contains("cannot write to main"));
    run(&one, "ROLLBACK; DELETE FROM t");
    assert_eq!(number(&one, "SELECT y FROM u"), 10);
    run(&one, "DETACH b; BEGIN; INSERT INTO t VALUES (1)");
    attach(&one, &b, "b");
    assert!(refused(&one, "DELETE FROM u").contains("cannot write to b"));
    run(&one, "ROLLBACK; DETACH b; BEGIN; SELECT x FROM t");
    attach(&one, &b, "b");
    run(
        &one,
        "INSERT INTO u VALUES (11); COMMIT; DELETE FROM u WHERE y = 11",
    );
    run(
        &one,
        "CREATE TEMP TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM u; END",
    );
    assert!(refused(&one, "INSERT INTO t VALUES (1)").contains("cannot write to"));
    assert_eq!(number(&one, "SELECT count(*) FROM t"), 0);
}

/// It loses against who changed what it has read or written, as in the main database, and
/// then nothing of it stays anywhere.
#[test]
fn a_commit_to_an_attached_file_may_lose() {
    let (_folder, a, b) = files();
    let (one, other) = (open(&a), open(&b));
    attach(&one, &b, "b");
    run(&one, "CREATE TEMP TABLE k(z); BEGIN");
    run(
        &one,
        "INSERT INTO k SELECT y FROM u; UPDATE u SET y = y + 1",
    );
    run(&other, "UPDATE u SET y = 50");
    let lost = one.execute_batch("COMMIT").expect_err("it has lost");
    assert_eq!(lost.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    let hint = lost.hint().unwrap_or_default().to_owned();
    assert!(hint.contains("table u"), "{hint}");
    assert!(one.is_autocommit());
    assert_eq!(number(&one, "SELECT count(*) FROM k"), 0);
    assert_eq!(number(&one, "SELECT y FROM u"), 50);
}

#[test]
fn what_is_in_use_is_not_detached() {
    let (_folder, a, b) = files();
    let one = open(&a);
    attach(&one, &b, "b");
    run(&one, "BEGIN; INSERT INTO u VALUES (1)");
    assert!(refused(&one, "DETACH b").contains("database b is locked"));
    run(&one, "ROLLBACK; DETACH b");
    attach(&one, &b, "b");
    let mut select = one.prepare("SELECT y FROM b.u").expect("compiles");
    run(&one, "DETACH b");
    let gone = select.query_row([], |row| row.get::<_, i64>(0));
    assert!(
        gone.expect_err("it is gone")
            .to_string()
            .contains("no such table: b.u")
    );
    attach(&one, &b, "b");
    let y = select.query_row([], |row| row.get::<_, i64>(0));
    assert_eq!(y.expect("a row"), 10);
}

#[test]
fn a_database_in_memory_reads_and_fills_files() {
    let (_folder, a, _) = files();
    let database = Database::in_memory().expect("opens");
    let one = database.connect().expect("connects");
    attach(&one, &a, "a");
    run(&one, "CREATE TABLE t AS SELECT x * 2 AS x FROM a.t");
    run(&one, "INSERT INTO a.t SELECT x FROM main.t");
    assert_eq!(number(&one, "SELECT sum(x) FROM a.t"), 3);
    assert_eq!(number(&open(&a), "SELECT count(*) FROM t"), 2);
}
