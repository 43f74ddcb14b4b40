//! What can be done with a database in which writing has ended, by a sync that failed: all
//! that reads, and what writes to the other databases that a connection has open.

use std::path::Path;
use std::sync::Arc;

use fulgurite::{Connection, Database, Error, ffi};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk, SimDriver};
use fulgurite_sql::exec::txns::Txns;
use fulgurite_store::{
    Durability, ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, commit_together,
    read_together,
};

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

/// Two files with a number in each, 1 in both.
fn pair(disk: &SimDisk) -> [(Store, Tree); 2] {
    ["d/a.db", "d/b.db"].map(|path| {
        let store = store(disk, path).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        put(&store, &tree, 1).expect("puts");
        (store, tree)
    })
}

/// Writes it to both in one transaction.
fn put_together(files: &[(Store, Tree); 2], byte: u8) -> fulgurite_store::Result<()> {
    let mut txns = [files[0].0.txn(), files[1].0.txn()];
    for (txn, (_, tree)) in txns.iter_mut().zip(files) {
        txn.begin(Isolation::Serializable)?;
        txn.put(tree, ONE, &[byte])?;
    }
    let [a, b] = &mut txns;
    commit_together(&mut [a, b])
}

/// Reads both as they are at one moment.
fn read_both(files: &[(Store, Tree); 2]) -> fulgurite_store::Result<[u8; 2]> {
    let mut txns = [files[0].0.txn(), files[1].0.txn()];
    let [a, b] = &mut txns;
    a.begin_read()?;
    b.begin_read()?;
    read_together(&mut [a, b])?;
    let mut found = [0; 2];
    for (at, (txn, (_, tree))) in txns.iter_mut().zip(files).enumerate() {
        let mut value = Vec::new();
        txn.get_into(tree, ONE, &mut value)?;
        found[at] = value[0];
    }
    Ok(found)
}

/// The sync of a commit to both failed in the file that decides, and the log of that one had
/// it. When it was opened again, beside the other one, who read both saw half of the commit.
#[test]
fn nobody_reads_half_of_a_commit_whose_outcome_was_unknown() {
    let mut was_committed = 0;
    for (seed, after) in (0..8).flat_map(|seed| (0..8).map(move |after| (seed, after))) {
        let disk = SimDisk::new(seed);
        let [deciding, other] = pair(&disk);
        let files = [deciding, other];
        put_together(&files, 2).expect("commits");
        disk.fail(Fault {
            call: Some(Call::Sync),
            after,
            for_good: false,
            error: FaultError::Io,
        });
        let outcome = put_together(&files, 3);
        disk.heal();
        let [deciding, other] = files;
        let is_unknown = |(store, _): &(Store, Tree)| {
            let error = store.checkpoint().err();
            error.is_some_and(|error| error.kind() == ErrorKind::Poisoned)
        };
        if outcome.is_ok() || !is_unknown(&deciding) || !is_unknown(&other) {
            continue;
        }
        let files = [deciding, other];
        // Neither shows it, and readers go on.
        assert_eq!(read_both(&files).expect("reads"), [2, 2]);
        let [deciding, other] = files;
        drop(deciding);
        let again = |path| {
            let store = store(&disk, path).expect("opens");
            let tree = store.family("t").expect("a look").expect("a family");
            (store, tree)
        };
        let files = [again("d/a.db"), other];
        let error = read_both(&files).expect_err("the outcome is known there, and not here");
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        drop(files);
        let other = again("d/b.db");
        let found = read_both(&[again("d/a.db"), other]).expect("reads");
        assert!(found == [2, 2] || found == [3, 3], "{found:?}");
        was_committed += u32::from(found == [3, 3]);
    }
    assert!(was_committed > 0, "its log never had it");
}

/// An attached file on the real disk, gone with this.
struct Attached(std::path::PathBuf);

impl Attached {
    fn new(connection: &Connection, name: &str) -> Self {
        let file = format!("fulgurite-{}-{name}.db", std::process::id());
        let this = Self(std::env::temp_dir().join(file));
        this.remove();
        run(
            connection,
            &format!("ATTACH '{}' AS {name}", this.0.display()),
        );
        this
    }

    fn remove(&self) {
        for behind in ["", "-wal0", "-wal1"] {
            let mut file = self.0.clone().into_os_string();
            file.push(behind);
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A commit to two files was shown by the main one alone when its sync failed. Who had both
/// was refused every query and change of any attached file alone, since the main one was
/// read beside it, for nothing.
#[test]
fn what_is_in_attached_files_alone_goes_on_without_the_main_one() {
    let disk = SimDisk::new(1);
    let options = Options {
        driver: Some(SimDriver::new(&disk)),
        durability: Durability::Normal,
        ..Options::default()
    };
    let main = Store::open_on(Arc::new(disk.clone()), Path::new("d/a.db"), options);
    let database = Database::on_store(main).expect("opens");
    let connection = database.connect().expect("connects");
    let files = ["e", "f"].map(|name| Attached::new(&connection, name));
    run(
        &connection,
        "CREATE TABLE t(x); INSERT INTO t VALUES (1);
         CREATE TABLE e.u(x); INSERT INTO e.u VALUES (1);
         CREATE TABLE f.v(x); INSERT INTO f.v VALUES (1);",
    );
    failing(&disk, || {
        connection
            .execute_batch("BEGIN; INSERT INTO t VALUES (2); INSERT INTO e.u VALUES (2); COMMIT")
            .expect_err("the decision is not synced");
    });
    let sum = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(sum("SELECT sum(x) FROM main.t").expect("reads"), 3);
    assert_eq!(sum("SELECT sum(x) FROM e.u").expect("reads"), 1);
    assert_eq!(sum("SELECT sum(x) FROM f.v").expect("reads"), 1);
    run(&connection, "INSERT INTO f.v VALUES (2)");
    run(&connection, "CREATE TABLE f.w(x)");
    assert_eq!(sum("SELECT sum(x) FROM f.v").expect("reads"), 3);
    // A bare name is looked for in the main one, too.
    for both in [
        "SELECT sum(x) FROM v",
        "SELECT sum(v.x) FROM main.t, f.v",
        "INSERT INTO f.v SELECT x FROM main.t",
    ] {
        let error = connection.execute_batch(both).expect_err(both);
        let hint = error.hint().unwrap_or_default();
        assert!(
            hint.contains("can only be read by itself"),
            "{both}: {hint}"
        );
    }
    drop((connection, database, files));
}
