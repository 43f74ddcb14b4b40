//! What can be done with a database in which writing has ended, by a sync that failed: all
//! that reads, and what writes to the other databases that a connection has open.

use std::path::Path;
use std::sync::Arc;

use fulgurite::{Connection, Database, Error, ffi};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk, SimDriver};
use fulgurite_sql::exec::txns::Txns;
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree};

fn store(disk: &SimDisk, path: &str) -> fulgurite_store::Result<Store> {
    let options = Options {
        driver: Some(SimDriver::new(disk)),
        ..Options::default()
    };
    Store::open_on(Arc::new(disk.clone()), Path::new(path), options)
}

/// A row each in `main.t` and `b.u`.
fn new() -> (SimDisk, Database, Connection) {
    let disk = SimDisk::new(1);
    let database = Database::on_store(store(&disk, "d/a.db")).expect("opens");
    let connection = database.connect().expect("connects");
    run(
        &connection,
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y UNIQUE); INSERT INTO t VALUES (1, 1);
         ATTACH ':memory:' AS b;
         CREATE TABLE b.u(x INTEGER PRIMARY KEY, y UNIQUE); INSERT INTO u VALUES (1, 1);",
    );
    (disk, database, connection)
}

fn run(connection: &Connection, sql: &str) {
    connection
        .execute_batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Whether the error tells of the sync that failed.
fn is_the_cause(error: &Error, sql: &str) {
    let code = error.sqlite_error().map(|it| it.extended_code);
    assert_eq!(code, Some(ffi::SQLITE_IOERR_FSYNC), "{sql}: {error}");
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("cannot sync d/"), "{sql}: {hint}");
}

/// Runs what the failed sync keeps from being run, which says so and ends nothing.
fn refused(connection: &Connection, sql: &str) {
    let before = connection.is_autocommit();
    let error = connection.execute_batch(sql).expect_err(sql);
    is_the_cause(&error, sql);
    assert_eq!(connection.is_autocommit(), before, "{sql}");
}

fn sums(connection: &Connection) -> [i64; 2] {
    let sum = |sql| connection.query_row(sql, [], |row| row.get(0));
    ["SELECT sum(x) FROM t", "SELECT sum(x) FROM u"].map(|sql| sum(sql).expect(sql))
}

/// The next sync fails while this is done, which ends writing in the database.
fn failing(disk: &SimDisk, write: impl FnOnce()) {
    disk.fail(Fault {
        call: Some(Call::Sync),
        after: 0,
        for_good: false,
        error: FaultError::Io,
    });
    write();
    disk.heal();
}

/// Inserts a row that is not synced.
fn fail(disk: &SimDisk, connection: &Connection) {
    failing(disk, || {
        refused(connection, "INSERT INTO t VALUES (2, 2)");
    });
}

/// BEGIN was refused what it would have read, and a write ended the whole transaction.
#[test]
fn transactions_read_a_failed_main_database_and_write_to_others() {
    let (disk, database, connection) = new();
    fail(&disk, &connection);
    for refusing in ["INSERT INTO t VALUES (3, 3)", "BEGIN IMMEDIATE"] {
        refused(&connection, refusing);
    }
    run(&connection, "BEGIN");
    assert_eq!(sums(&connection), [1, 1]);
    run(&connection, "SAVEPOINT s; INSERT INTO u VALUES (2, 2)");
    for refusing in [
        "INSERT INTO t VALUES (3, 3)",
        "INSERT INTO t VALUES (3, 3), (4, 4)",
        "INSERT INTO t SELECT x + 1, y + 1 FROM u",
        "REPLACE INTO t VALUES (1, 3)",
        "UPDATE t SET y = y + 1",
        "DELETE FROM t",
        "CREATE TABLE v(x)",
        "DROP TABLE t",
        "CREATE INDEX i ON t(y, x)",
        "PRAGMA user_version = 3",
    ] {
        refused(&connection, refusing);
    }
    assert_eq!(sums(&connection), [1, 3]);
    run(&connection, "ROLLBACK TO s; INSERT INTO u VALUES (4, 4)");
    run(&connection, "COMMIT");
    assert_eq!(sums(&connection), [1, 5]);
    drop((connection, database));
    let database = Database::on_store(store(&disk, "d/a.db")).expect("opens");
    let connection = database.connect().expect("connects");
    run(&connection, "BEGIN; INSERT INTO t VALUES (8, 8); COMMIT");
}

const ONE: Key<'static> = Key::Int(1);

fn put(store: &Store, tree: &Tree, byte: u8) -> fulgurite_store::Result<()> {
    let mut txn = store.txn();
    txn.begin_statement(&[tree])?;
    txn.put(tree, ONE, &[byte])?;
    txn.commit()
}

fn get(txns: &mut Txns, tree: &Tree) -> Vec<u8> {
    let mut value = Vec::new();
    assert!(txns.get_into(tree, ONE, &mut value).expect("reads"));
    value
}

/// So it is with a file that is attached, whether the transaction is IMMEDIATE or not.
#[test]
fn transactions_read_a_failed_attached_database() {
    let disk = SimDisk::new(1);
    let [main, attached] = ["d/a.db", "d/b.db"].map(|path| store(&disk, path).expect("opens"));
    let trees = [&main, &attached].map(|store| {
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        put(store, &tree, 1).expect("puts");
        tree
    });
    failing(&disk, || {
        put(&attached, &trees[1], 2).expect_err("it is not synced");
    });
    let mut txns = Txns::new(&main);
    txns.open(0, &attached, false);
    for (byte, immediate) in [(3, false), (4, true)] {
        match immediate {
            true => txns.begin_immediate().expect("begins"),
            false => txns.begin(Isolation::Serializable).expect("begins"),
        }
        txns.check_writes([&trees[0]]).expect("can be written");
        txns.put(&trees[0], ONE, &[byte]).expect("puts");
        let error = txns.check_writes(&trees).expect_err("it failed");
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains("cannot sync d/b.db"), "{error}");
        assert_eq!(get(&mut txns, &trees[1]), [1]);
        txns.commit().expect("commits");
        txns.begin(Isolation::Serializable).expect("begins");
        assert_eq!(get(&mut txns, &trees[0]), [byte]);
        txns.rollback();
    }
}

/// What a transaction read before the sync failed it reads after that.
#[test]
fn a_transaction_goes_on_where_writing_ends_meanwhile() {
    let (disk, database, other) = new();
    let connection = database.connect().expect("connects");
    run(&other, "BEGIN");
    assert_eq!(sums(&other), [1, 1]);
    fail(&disk, &connection);
    assert_eq!(sums(&other), [1, 1]);
    run(&other, "INSERT INTO t VALUES (3, 3)");
    assert_eq!(sums(&other), [4, 1]);
    let error = other.execute_batch("COMMIT").expect_err("it failed");
    is_the_cause(&error, "COMMIT");
    assert!(other.is_autocommit());
    assert_eq!(sums(&other), [1, 1]);
}
