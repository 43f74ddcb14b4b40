//! `transact` on a database, which lends connections of earlier calls, and what begins
//! and ends transactions beside it. A call cannot tell what its connection was used for,
//! and none of it keeps other connections from sharing nothing.

use fulgurite::{Connection, Database, Durability, Options, Result, ffi};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn open(path: &Path) -> Database {
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    Database::open_with_options(path, options).expect("opens")
}

fn with_counter(path: &Path) -> Database {
    let database = open(path);
    let made = "CREATE TABLE t (k INTEGER PRIMARY KEY, n); INSERT INTO t VALUES (1, 0)";
    let connection = database.connect().expect("connects");
    connection.execute_batch(made).expect("a table");
    database
}

fn count_up(connection: &Connection) -> Result<i64> {
    let sql = "UPDATE t SET n = n + 1 WHERE k = 1 RETURNING n";
    let mut update = connection.prepare_cached(sql)?;
    update.query_row([], |row| row.get(0))
}

fn counted(database: &Database) -> i64 {
    database.transact(|tx| count_up(tx)).expect("commits")
}

/// Commits of all writers that took the lock which all commits share.
fn sharing(database: &Database) -> u64 {
    // One in eight is measured.
    8 * database.stats().commit_lock.measured
}

/// Foreign keys are a connection's setting that cannot be changed in a transaction, so
/// nothing in a call could have them enforced.
#[test]
fn connections_begin_with_what_their_handle_was_given() {
    let dir = tempfile::tempdir().expect("a folder");
    let plain = with_counter(&dir.path().join("a.db"));
    let tables = "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p)";
    let set = |connection: &Connection| {
        connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA isolation_level = snapshot")
    };
    let checked = plain.clone().with_init(set);
    let orphan = "INSERT INTO c VALUES (7)";
    checked
        .transact(|tx| tx.execute_batch(tables))
        .expect("tables");
    for _ in 0..3 {
        let refused = checked.transact(|tx| tx.execute(orphan, []));
        let refused = refused.expect_err("it has no parent");
        assert_eq!(refused.to_string(), "FOREIGN KEY constraint failed");
        // What a call sets is not the next one's.
        checked
            .clone()
            .transact(|tx| tx.execute_batch("PRAGMA isolation_level = serializable"))
            .expect("sets");
        let level: String = checked
            .transact(|tx| tx.query_row("PRAGMA isolation_level", [], |row| row.get(0)))
            .expect("reads");
        assert_eq!(level, "snapshot");
    }
    assert!(
        checked
            .connect()
            .expect("connects")
            .execute(orphan, [])
            .is_err()
    );
    plain
        .transact(|tx| tx.execute(orphan, []))
        .expect("is not checked");

    let fails =
        |connection: &Connection| connection.execute_batch("PRAGMA nothing; SELECT 1 FROM nothing");
    let failing = plain.clone().with_init(fails);
    assert!(failing.connect().is_err());
    assert!(failing.transact(|_| Ok(())).is_err());
    assert_eq!(counted(&plain), 1);
}

/// Each call compiled BEGIN and COMMIT, for which it looked at the schema in a snapshot,
/// and that ended the leases of everybody else.
#[test]
fn transactions_that_follow_one_another_share_nothing() {
    const CALLS: i64 = 4000;
    let dir = tempfile::tempdir().expect("a folder");
    let database = with_counter(&dir.path().join("a.db"));
    for call in 1..=CALLS {
        assert_eq!(counted(&database), call);
    }
    let mut connection = database.connect().expect("connects");
    for call in CALLS + 1..=2 * CALLS {
        let tx = connection.transaction().expect("begins");
        assert_eq!(count_up(&tx).expect("counts"), call);
        tx.commit().expect("commits");
    }
    let sharing = sharing(&database);
    assert!(sharing < 1000, "{sharing} of {}", 2 * CALLS);
}

#[test]
fn compiling_ends_no_lease() {
    const COMMITS: i64 = 4000;
    let dir = tempfile::tempdir().expect("a folder");
    let database = with_counter(&dir.path().join("a.db"));
    let [writer, other] = [(); 2].map(|()| database.connect().expect("connects"));
    for commit in 1..=COMMITS {
        assert_eq!(count_up(&writer).expect("commits"), commit);
        let select = other.prepare("SELECT n FROM t WHERE k = ?1");
        assert_eq!(select.expect("compiles").parameter_count(), 1);
    }
    let sharing = sharing(&database);
    assert!(sharing < 1000, "{sharing} of {COMMITS}");
}

#[test]
fn a_statement_is_compiled_for_the_newest_schema() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = with_counter(&dir.path().join("a.db"));
    let [one, other] = [(); 2].map(|()| database.connect().expect("connects"));
    let columns = || {
        let star = other.prepare("SELECT * FROM t").expect("compiles");
        star.column_count()
    };
    assert_eq!(columns(), 2);
    one.execute_batch("BEGIN; ALTER TABLE t ADD COLUMN more")
        .expect("not committed");
    assert_eq!(columns(), 2);
    one.execute_batch("COMMIT").expect("commits");
    assert_eq!(columns(), 3);
    one.execute_batch("DROP TABLE t").expect("drops");
    let gone = other.prepare("SELECT * FROM t").expect_err("it is gone");
    assert_eq!(gone.to_string(), "no such table: t");
}

#[test]
fn a_call_finds_nothing_of_the_one_before() {
    let database = Database::in_memory().expect("opens");
    let connection = database.connect().expect("connects");
    connection
        .execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, n)")
        .expect("a table");
    for call in 1..=3 {
        let seen = database.transact(|tx| {
            let setting = |name: &str| -> Result<String> {
                tx.query_row(&format!("PRAGMA {name}"), [], |row| {
                    row.get::<_, fulgurite::types::Value>(0)
                        .map(|value| format!("{value:?}"))
                })
            };
            let seen = (
                setting("isolation_level")?,
                setting("busy_timeout")?,
                (tx.last_insert_rowid(), tx.changes(), tx.total_changes()),
            );
            tx.execute("INSERT INTO t VALUES (?1, 0)", [call * 10])?;
            tx.execute_batch("PRAGMA isolation_level = snapshot; PRAGMA busy_timeout = 7")?;
            tx.set_prepared_statement_cache_capacity(0);
            Ok(seen)
        });
        let (isolation, busy_timeout, counts) = seen.expect("commits");
        assert_eq!(isolation, "Text(\"serializable\")");
        assert_eq!(busy_timeout, "Integer(5000)");
        assert_eq!(counts, (0, 0, 0));
    }
}

#[test]
fn what_was_compiled_is_compiled_again_where_the_schema_changed() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = with_counter(&dir.path().join("a.db"));
    let star = || {
        database.transact(|tx| {
            let mut star = tx.prepare_cached("SELECT * FROM t")?;
            let columns = star.column_count();
            star.query_row([], |row| row.get::<_, i64>(columns - 1))
        })
    };
    assert_eq!(star().expect("reads"), 0);
    let changed = database.transact(|tx| tx.execute_batch("ALTER TABLE t ADD COLUMN m DEFAULT 5"));
    changed.expect("commits");
    star().expect("reads what it was compiled for, or more");
    assert_eq!(star().expect("reads"), 5);
}

#[test]
fn who_kept_an_interrupt_handle_interrupts_no_later_call() {
    let database = Database::in_memory().expect("opens");
    let handle = database.transact(|tx| Ok(tx.get_interrupt_handle()));
    let handle = handle.expect("commits");
    let sum = database.transact(|tx| {
        let sql = "SELECT a + b FROM (SELECT 1 AS a UNION ALL SELECT 2), (SELECT 10 AS b)";
        let mut select = tx.prepare(sql)?;
        let mut rows = select.query([])?;
        let mut sum = 0;
        while let Some(row) = rows.next()? {
            handle.interrupt();
            sum += row.get::<_, i64>(0)?;
        }
        Ok(sum)
    });
    assert_eq!(sum.expect("nobody interrupts it"), 23);
}

#[test]
fn what_fails_or_panics_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = with_counter(&dir.path().join("a.db"));
    for call in 1..=3 {
        let failed = database.transact(|tx| {
            count_up(tx)?;
            tx.execute("INSERT INTO t VALUES (1, 'taken')", [])
        });
        let code = failed.expect_err("taken").sqlite_extended_error_code();
        assert_eq!(code, Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY));
        let ended = database.transact(|tx| {
            count_up(tx)?;
            tx.execute_batch("ROLLBACK; BEGIN; ROLLBACK")
        });
        let message = ended.expect_err("nothing to commit").to_string();
        assert_eq!(message, "cannot commit - no transaction is active");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            database.transact(|tx| -> Result<()> {
                count_up(tx)?;
                panic!("in the middle");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(counted(&database), call);
    }
}

#[test]
fn kept_connections_do_not_keep_the_database_open() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.db");
    let database = with_counter(&path);
    assert_eq!(counted(&database), 1);
    let clone = database.clone();
    drop(database);
    assert_eq!(counted(&clone), 2);
    let log = dir.path().join("a.db-wal0");
    assert!(log.exists());
    drop(clone);
    assert!(!log.exists(), "its last handle closed it");
    let connection = open(&path).connect().expect("connects");
    assert_eq!(counted(connection.database()), 3);
    assert_eq!(counted(&connection.database().clone()), 4);
    assert!(log.exists() || dir.path().join("a.db-wal1").exists());
    drop(connection);
    assert!(!log.exists());
}

#[test]
fn savepoints_bear_any_name() {
    let mut connection = Connection::open_in_memory().expect("opens");
    connection
        .execute_batch("CREATE TABLE t (a)")
        .expect("made");
    for name in ["a b", "\"", "x'; DROP TABLE t; --", ""] {
        let mut tx = connection.transaction().expect("begins");
        let mut savepoint = tx.savepoint_with_name(name).expect("begins");
        savepoint
            .execute("INSERT INTO t VALUES (1)", [])
            .expect("a row");
        savepoint.rollback().expect("undone");
        savepoint
            .execute("INSERT INTO t VALUES (2)", [])
            .expect("a row");
        savepoint.commit().expect("released");
        tx.commit().expect("commits");
    }
    let rows: String = connection
        .query_row("SELECT group_concat(a) FROM t", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(rows, "2,2,2,2");
}
