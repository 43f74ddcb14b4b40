//! Statements whose calls on the disk fail within a transaction: what is told of them, and
//! what can be done then.

use std::path::Path;
use std::sync::Arc;

use fulgurite::{Connection, Database, Error, Options, ffi};
use fulgurite_sim::{Call, Fault, FaultError, PATH, SimDisk, SimDriver};
use fulgurite_store::Store;

/// A database whose cache holds 64 pages.
fn open(disk: &SimDisk) -> Database {
    let options = Options {
        cache_bytes: 64 * 4096,
        driver: Some(SimDriver::new(disk)),
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), Path::new(PATH), options);
    Database::on_store(store).expect("opens")
}

fn run(connection: &Connection, sql: &str) {
    connection
        .execute_batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn code(error: &Error) -> i32 {
    error.result_code()
}

fn fail(disk: &SimDisk, call: Call, after: u64) {
    disk.fail(Fault {
        call: Some(call),
        after,
        for_good: true,
        error: FaultError::Io,
    });
}

fn count(connection: &Connection) -> i64 {
    let sql = "SELECT count(*) FROM t WHERE length(body) = 400";
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

/// More rows of t than the cache has room for.
const ROWS: i64 = 400;

/// So many rows, from this one on, in one statement.
fn rows(from: i64, many: i64) -> String {
    format!(
        "WITH RECURSIVE n (i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n LIMIT {many})
             INSERT INTO t SELECT i, randomblob(400) FROM n"
    )
}

fn filled() -> SimDisk {
    let disk = SimDisk::new(1);
    let connection = open(&disk).connect().expect("connects");
    run(
        &connection,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body); CREATE INDEX bodies ON t (body)",
    );
    run(&connection, &rows(1, ROWS));
    drop(connection);
    disk.settled_image()
}

/// ROLLBACK, as any text, was compiled with the schema that its transaction sees. Where that
/// could not be read it failed, and so did the next one: the transaction stayed open, with
/// all that it kept others from.
#[test]
fn a_transaction_ends_whose_schema_cannot_be_read() {
    let disk = filled();
    let database = open(&disk);
    let [connection, other] = [(); 2].map(|()| database.connect().expect("connects"));
    for end in [
        "ROLLBACK",
        "COMMIT",
        "SAVEPOINT s; ROLLBACK TO s; RELEASE s; END",
    ] {
        run(&connection, "BEGIN");
        assert_eq!(count(&connection), ROWS);
        // The schema is another one by now, and the pages of the old one left the cache.
        run(&other, "CREATE TABLE u (x); DROP TABLE u");
        database.checkpoint().expect("a checkpoint");
        for _ in 0..4 {
            run(
                &other,
                &format!("BEGIN; {}; ROLLBACK", rows(ROWS + 1, ROWS)),
            );
            assert_eq!(count(&other), ROWS);
        }
        fail(&disk, Call::Read, 0);
        let error = connection.execute_batch("SELECT 1").expect_err("a schema");
        assert_eq!(code(&error), ffi::SQLITE_IOERR, "{error}");
        run(&connection, end);
        assert!(connection.is_autocommit(), "{end}");
        disk.heal();
        run(&connection, "BEGIN IMMEDIATE; ROLLBACK");
        assert_eq!(count(&connection), ROWS);
    }
}

/// A statement that violates a constraint is undone alone. Where that failed, and all of the
/// transaction was undone, the constraint was told of alone: who went on with the next
/// statement committed it by itself.
#[test]
fn who_loses_a_transaction_by_a_statement_hears_of_it() {
    let disk = filled();
    let mut ended = 0;
    for call in [Call::Read, Call::Write] {
        for after in (0..).step_by(4) {
            let disk = disk.fork();
            let connection = open(&disk).connect().expect("connects");
            // The last of them is there already.
            let sql = rows(1 - 250, 251);
            run(&connection, "BEGIN; UPDATE t SET body = body WHERE id < 9");
            fail(&disk, call, after);
            let error = connection.execute_batch(&sql).expect_err("a constraint");
            let is_constraint = code(&error) == ffi::SQLITE_CONSTRAINT_PRIMARYKEY;
            let hint = error.hint().unwrap_or_default();
            let what = format!("{call:?} {after}: {error}, {hint}");
            assert!(!is_constraint || !connection.is_autocommit(), "{what}");
            assert!(is_constraint || hint.contains("cannot "), "{what}");
            ended += u32::from(hint.contains("its transaction was undone"));
            let met = disk.faults_met() > 0;
            disk.heal();
            if !connection.is_autocommit() {
                run(&connection, "COMMIT");
            }
            assert_eq!(count(&connection), ROWS, "{what}");
            if !met {
                break;
            }
        }
    }
    assert!(ended > 0, "no undoing failed");
}
