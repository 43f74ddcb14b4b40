//! PRAGMA synchronous is each connection's own: one that may lose its newest commits in a
//! power cut waits for no sync, one that may not does, whatever the other is set to.

use fulgurite::{Connection, Database, Durability, Options};
use std::path::Path;

fn with_row(path: &Path, options: Options) -> Database {
    let database = Database::open_with_options(path, options).expect("opens");
    let connection = database.connect().expect("connects");
    connection
        .execute_batch("CREATE TABLE t(n); INSERT INTO t VALUES (0)")
        .expect("a table");
    database
}

fn syncs(database: &Database) -> u64 {
    database.stats().log.expect("a log").syncs
}

/// Whether some of many updates did without a sync. (What runs behind the database syncs
/// now and then.)
fn does_without(database: &Database, connection: &Connection) -> bool {
    let mut update = connection
        .prepare("UPDATE t SET n = n + 1")
        .expect("compiles");
    (0..200).any(|_| {
        let before = syncs(database);
        update.execute([]).expect("commits");
        syncs(database) == before
    })
}

fn level(connection: &Connection) -> i64 {
    let level = connection.query_row("PRAGMA synchronous", [], |row| row.get(0));
    level.expect("a level")
}

#[test]
fn each_connection_has_its_own_level() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = with_row(&dir.path().join("a.db"), Options::default());
    let (careful, quick) = (
        database.connect().expect("connects"),
        database.connect().expect("connects"),
    );
    assert!(!does_without(&database, &careful));
    quick
        .execute_batch("PRAGMA synchronous = NORMAL")
        .expect("sets");
    assert_eq!((level(&careful), level(&quick)), (2, 1));
    assert!(does_without(&database, &quick));
    assert!(!does_without(&database, &careful));
    quick
        .execute_batch("PRAGMA synchronous = EXTRA")
        .expect("sets");
    assert!(!does_without(&database, &quick));
    let sum: i64 = careful
        .query_row("SELECT sum(n) FROM t", [], |row| row.get(0))
        .expect("reads");
    assert!(sum > 600);
}

/// It may be opened in `normal`, too, and one connection want more.
#[test]
fn a_connection_may_be_more_careful_than_its_database() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let database = with_row(&dir.path().join("a.db"), options);
    let connection = database.connect().expect("connects");
    assert_eq!(level(&connection), 1);
    assert!(does_without(&database, &connection));
    connection
        .execute_batch("PRAGMA synchronous = FULL")
        .expect("sets");
    assert!(!does_without(&database, &connection));
}

/// A connection that is lent again begins as a new one does.
#[test]
fn a_lent_connection_keeps_no_level() {
    let dir = tempfile::tempdir().expect("a folder");
    let quick = |connection: &Connection| connection.execute_batch("PRAGMA synchronous = OFF");
    let database = with_row(&dir.path().join("a.db"), Options::default());
    let lenient = database.clone().with_init(quick);
    let ask = |database: &Database| {
        let asked = database.transact(|tx| Ok(level(tx)));
        asked.expect("commits")
    };
    assert_eq!(ask(&lenient), 0);
    assert_eq!(ask(&database), 2);
}
