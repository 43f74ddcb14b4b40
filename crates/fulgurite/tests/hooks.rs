//! Hooks, beside rusqlite: the same program is run with either crate, and what its hooks are
//! told must be the same.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use fulgurite::functions::FunctionFlags;
use fulgurite::{
    Connection, Database, Error, ErrorCode, MAIN_DB, Options, TransactionBehavior, ffi,
};
use fulgurite_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as Done, forward};
use fulgurite_store::Store;

/// The program, over the crate `$db`.
macro_rules! program {
    ($module:ident, $db:ident) => {
        mod $module {
            use std::sync::{Arc, Mutex};

            use $db::Connection;
            use $db::hooks::Action;

            /// Runs each statement, and writes down what the hooks are told and how it ends.
            pub fn told(before: &str, statements: &[&str], refuses: bool) -> Vec<String> {
                let mut db = Connection::open_in_memory().unwrap();
                db.execute_batch("PRAGMA foreign_keys = ON").unwrap();
                db.execute_batch(before).unwrap();
                let log: Arc<Mutex<Vec<String>>> = Arc::default();
                let told = || {
                    let log = Arc::clone(&log);
                    move |what: String| log.lock().unwrap().push(what)
                };
                let (commit, rollback, update) = (told(), told(), told());
                db.commit_hook(Some(move || {
                    commit("commit".to_owned());
                    refuses
                }))
                .unwrap();
                db.rollback_hook(Some(move || rollback("rollback".to_owned())))
                    .unwrap();
                db.update_hook(Some(move |action: Action, db: &str, table: &str, rowid| {
                    update(format!("{action:?} {db}.{table} {rowid}"));
                }))
                .unwrap();
                let mut all = Vec::new();
                for sql in statements {
                    let error = db.execute_batch(sql).err();
                    let error = error.map(|e| (e.sqlite_extended_error_code(), e.to_string()));
                    let told = std::mem::take(&mut *log.lock().unwrap());
                    let (changes, last) = (db.changes(), db.last_insert_rowid());
                    let open = !db.is_autocommit();
                    all.push(format!("{sql}: {told:?} {error:?} {changes} {last} {open}"));
                }
                db.commit_hook(None::<fn() -> bool>).unwrap();
                db.rollback_hook(None::<fn()>).unwrap();
                db.update_hook(None::<fn(Action, &str, &str, i64)>).unwrap();
                db.execute_batch("CREATE TABLE last (a); INSERT INTO last VALUES (1)")
                    .unwrap();
                all.append(&mut log.lock().unwrap());
                all
            }
        }
    };
}

program!(ours, fulgurite);
program!(theirs, rusqlite);

#[track_caller]
fn same(before: &str, statements: &[&str], refuses: bool) {
    let ours = ours::told(before, statements, refuses);
    let theirs = theirs::told(before, statements, refuses);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

const TABLE: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c);
    INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)";

/// They have no rowid that a hook could be told.
#[test]
fn rows_of_tables_without_rowids() {
    same(
        "CREATE TABLE k (a INTEGER PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE t (x)",
        &[
            "INSERT INTO k VALUES (1, 1), (2, 2)",
            "INSERT INTO t VALUES (1)",
            "INSERT INTO k SELECT a + 10, b FROM k",
            "UPDATE k SET b = 5",
            "UPDATE k SET a = a + 100 WHERE b = 5",
            "REPLACE INTO k VALUES (101, 7)",
            "INSERT INTO k VALUES (101, 7) ON CONFLICT DO UPDATE SET b = 8",
            "DELETE FROM k WHERE a = 101",
            "DELETE FROM k",
        ],
        false,
    );
}

#[test]
fn rows_that_statements_change() {
    let counted = "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 30)
        INSERT INTO k SELECT i FROM c";
    same(
        &format!("{TABLE}; CREATE TABLE k (a INTEGER PRIMARY KEY)"),
        &[
            "INSERT INTO t VALUES (3, 3, 3), (4, 4, 4)",
            "UPDATE t SET c = 5",
            "UPDATE t SET a = a + 10",
            "UPDATE t SET c = 1 WHERE 0",
            "DELETE FROM t WHERE a = 11",
            "INSERT INTO t VALUES (12, 9, 9)",
            "INSERT OR IGNORE INTO t VALUES (12, 9, 9)",
            "INSERT OR REPLACE INTO t VALUES (12, 9, 9)",
            "INSERT OR REPLACE INTO t VALUES (15, 9, 9)",
            "UPDATE OR REPLACE t SET b = 9 WHERE a = 14",
            "INSERT INTO t VALUES (14, 3, 3) ON CONFLICT DO UPDATE SET c = 77",
            "INSERT INTO t VALUES (14, 3, 3) ON CONFLICT DO NOTHING",
            "INSERT INTO t VALUES (50, 'q', 1) RETURNING a",
            "UPDATE t SET c = 8 WHERE a = 50",
            "DELETE FROM t WHERE a = 50",
            "DELETE FROM t",
            counted,
            "UPDATE k SET a = a + 100",
            "DELETE FROM k WHERE a > 120",
            "DELETE FROM k WHERE a < 105 RETURNING a",
            "INSERT INTO k VALUES (8)",
            "DELETE FROM k",
            "CREATE TABLE made AS SELECT 1 AS x UNION SELECT 2",
        ],
        false,
    );
}

#[test]
fn rows_that_triggers_and_foreign_keys_change() {
    same(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE); CREATE TABLE l (x);
         CREATE TRIGGER i AFTER INSERT ON t BEGIN
            INSERT INTO l VALUES (new.a); UPDATE l SET x = x + 1; END;
         CREATE TRIGGER d BEFORE DELETE ON t BEGIN INSERT INTO l VALUES (old.a); END;
         CREATE VIEW v AS SELECT * FROM t;
         CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO l VALUES (5); END;
         CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE c (x REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
         CREATE TABLE n (x REFERENCES p ON DELETE SET NULL)",
        &[
            "INSERT INTO t VALUES (20, 20)",
            "REPLACE INTO t VALUES (20, 21)",
            "REPLACE INTO t VALUES (21, 21)",
            "PRAGMA recursive_triggers = ON",
            "REPLACE INTO t VALUES (22, 21)",
            "DELETE FROM t",
            "INSERT INTO v VALUES (1, 2)",
            "INSERT INTO p VALUES (1), (2)",
            "INSERT INTO c VALUES (1), (1)",
            "INSERT INTO n VALUES (2)",
            "UPDATE p SET id = 3 WHERE id = 1",
            "REPLACE INTO p VALUES (3)",
            "DELETE FROM p",
            "INSERT INTO c VALUES (99)",
            "BEGIN",
            "INSERT INTO c VALUES (99)",
            "ROLLBACK",
        ],
        false,
    );
}

#[test]
fn commits_and_rollbacks() {
    same(
        &format!("{TABLE}; CREATE TABLE k (a CHECK (a > 0))"),
        &[
            "BEGIN; COMMIT",
            "BEGIN; SELECT * FROM t; COMMIT",
            "BEGIN; UPDATE t SET a = 1 WHERE 0; COMMIT",
            "BEGIN IMMEDIATE; COMMIT",
            "BEGIN; INSERT INTO t VALUES (5, 5, 5); COMMIT",
            "BEGIN; INSERT INTO t VALUES (6, 6, 6); ROLLBACK",
            "BEGIN; ROLLBACK",
            "BEGIN IMMEDIATE; ROLLBACK",
            "SAVEPOINT x; INSERT INTO k VALUES (3); ROLLBACK TO x; RELEASE x",
            "SAVEPOINT x; INSERT INTO k VALUES (3); RELEASE x",
            "BEGIN; INSERT INTO k VALUES (4); INSERT INTO k VALUES (-4)",
            "INSERT OR ROLLBACK INTO k VALUES (-4)",
            "INSERT OR FAIL INTO k VALUES (5), (-5)",
            "INSERT INTO k SELECT abs(-9223372036854775808)",
            "SELECT abs(-9223372036854775808)",
            "CREATE INDEX i ON t (c)",
            "CREATE INDEX i ON t (c)",
            "DROP INDEX i",
            "ALTER TABLE t ADD COLUMN d",
            "PRAGMA user_version = 4",
            "BEGIN; CREATE TABLE z (a); ROLLBACK",
            "DROP TABLE k",
        ],
        false,
    );
}

#[test]
fn a_hook_that_refuses_to_commit() {
    same(
        TABLE,
        &[
            "INSERT INTO t VALUES (7, 7, 7)",
            "SELECT 1",
            "UPDATE t SET c = 9",
            "BEGIN; INSERT INTO t VALUES (8, 8, 8)",
            "COMMIT",
            "COMMIT",
            "BEGIN; SELECT * FROM t; COMMIT",
            "CREATE TABLE z (a)",
            "PRAGMA user_version = 9",
            "SELECT a FROM t WHERE a > 6 OR c = 9; SELECT * FROM z",
        ],
        true,
    );
}

fn counter() -> (Arc<AtomicUsize>, impl FnMut() + Send + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    (count, move || {
        counts.fetch_add(1, Ordering::Relaxed);
    })
}

/// What lost against an overlapping transaction was rolled back.
#[test]
fn a_commit_that_loses() {
    let database = Database::in_memory().expect("opens");
    let mut one = database.connect().expect("connects");
    let two = database.connect().expect("connects");
    one.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 1)")
        .expect("a table");
    let (rollbacks, hook) = counter();
    one.rollback_hook(Some(hook)).expect("a hook");
    let add = "UPDATE t SET b = b + 1 WHERE a = 1";
    one.execute_batch("BEGIN").expect("begins");
    one.execute(add, []).expect("a row");
    two.execute(add, []).expect("a row");
    let lost = one.execute_batch("COMMIT").expect_err("it lost");
    assert_eq!(
        lost.sqlite_extended_error_code(),
        Some(ffi::SQLITE_BUSY_SNAPSHOT)
    );
    assert_eq!(rollbacks.load(Ordering::Relaxed), 1);

    let mut runs = 0;
    one.transact(|tx| {
        runs += 1;
        tx.execute(add, [])?;
        if runs == 1 {
            two.execute(add, [])?;
        }
        Ok(())
    })
    .expect("it wins in the end");
    assert_eq!((runs, rollbacks.load(Ordering::Relaxed)), (2, 2));
    let b: i64 = two
        .query_row("SELECT b FROM t", [], |row| row.get(0))
        .expect("a row");
    assert_eq!(b, 4);
}

/// The connections of `Database::transact` are as good as new for the next one.
#[test]
fn hooks_end_with_their_transaction() {
    let database = Database::in_memory().expect("opens");
    let mut db = database.connect().expect("connects");
    let (updates, mut hook) = counter();
    db.update_hook(Some(move |_, _: &str, _: &str, _| hook()))
        .expect("a hook");
    let work = |tx: &fulgurite::Transaction<'_>| {
        tx.execute_batch("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (1)")
    };
    database.transact(work).expect("runs");
    db.transact(work).expect("runs");
    database.transact(work).expect("runs");
    assert_eq!(updates.load(Ordering::Relaxed), 1);
    let tx = db
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .expect("begins");
    tx.execute("INSERT INTO t VALUES (2)", []).expect("a row");
    drop(tx);
    assert_eq!(updates.load(Ordering::Relaxed), 2);
}

#[test]
fn a_progress_handler_interrupts() {
    let mut db = Connection::open_in_memory().expect("opens");
    db.execute_batch("CREATE TABLE t (a)").expect("a table");
    let rows = "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)";
    let (asked, mut hook) = counter();
    db.progress_handler(
        10_000,
        Some(move || {
            hook();
            true
        }),
    )
    .expect("a handler");
    for sql in [
        format!("{rows} SELECT count(*) FROM c"),
        format!("BEGIN; INSERT INTO t VALUES (1); {rows} INSERT INTO t SELECT i FROM c"),
    ] {
        let error = db.execute_batch(&sql).expect_err("interrupted");
        let code = error.sqlite_error_code();
        assert_eq!(code, Some(ffi::ErrorCode::OperationInterrupted));
        // As in SQLite, with the change that was under way.
        assert!(db.is_autocommit());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    let stop: fn() -> bool = || true;
    for (operations, handler) in [(0, Some(stop)), (-1, Some(stop)), (1, None)] {
        db.progress_handler(operations, handler).expect("removed");
        let few = format!("{rows} INSERT INTO t SELECT i FROM c LIMIT 5000");
        db.execute_batch(&few).expect("nobody asks");
    }
}

/// A hook that panics ends its statement, which leaves nothing behind.
#[test]
fn panics_are_errors() {
    let mut db = Connection::open_in_memory().expect("opens");
    db.execute_batch("CREATE TABLE t (a PRIMARY KEY); INSERT INTO t VALUES (1)")
        .expect("a table");
    let rows = |db: &Connection| {
        db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))
            .expect("counts")
    };
    db.update_hook(Some(|_, _: &str, _: &str, rowid| {
        assert_ne!(rowid, 3, "as it was asked for");
    }))
    .expect("a hook");
    let insert = "INSERT INTO t VALUES (?1)";
    db.execute_batch("BEGIN").expect("begins");
    db.execute(insert, [2]).expect("a row");
    let error = db.execute(insert, [3]).expect_err("the hook panics");
    assert_eq!(error.to_string(), "unwinding panic");
    assert_eq!((rows(&db), db.is_autocommit()), (2, false));
    db.execute_batch("COMMIT").expect("commits");
    assert!(db.execute(insert, [4]).is_err());
    assert_eq!(rows(&db), 2);
    db.update_hook(None::<fn(_, &str, &str, _)>)
        .expect("removed");

    db.commit_hook(Some(|| -> bool { panic!("as it was asked for") }))
        .expect("a hook");
    assert!(db.execute(insert, [5]).is_err());
    assert_eq!(rows(&db), 2);
    db.commit_hook(None::<fn() -> bool>).expect("removed");
    db.rollback_hook(Some(|| panic!("as it was asked for")))
        .expect("a hook");
    db.execute_batch("BEGIN").expect("begins");
    db.execute(insert, [6]).expect("a row");
    db.execute_batch("ROLLBACK")
        .expect("what it is told of has happened");
    assert_eq!(rows(&db), 2);
}

/// Code that a statement calls while it writes is told that it cannot have its connection,
/// where SQLite leaves it to chance; nothing waits for itself.
#[test]
fn a_connection_is_not_used_from_within_its_own_write() {
    type Shared = Arc<parking_lot::ReentrantMutex<Connection>>;
    let db: Shared = Arc::new(Connection::open_in_memory().expect("opens").into());
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let (weak, told) = (Arc::downgrade(&db), Arc::clone(&answers));
    let ask = move |_: &fulgurite::functions::Context<'_>| {
        let Some(db) = weak.upgrade() else {
            return Ok(0);
        };
        let answer = db
            .lock()
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0));
        let text = answer
            .as_ref()
            .map_or_else(Error::to_string, i64::to_string);
        told.lock().expect("no panic").push(text);
        Ok(answer.unwrap_or(-1))
    };
    let db = db.lock();
    db.create_scalar_function("ask", 0, FunctionFlags::default(), ask)
        .expect("registers");
    db.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (ask()), (ask())")
        .expect("writes");
    db.execute_batch("SELECT ask() FROM t").expect("reads");
    let misuse = "bad parameter or other API misuse";
    let answers = answers.lock().expect("no panic");
    assert_eq!(*answers, [misuse, misuse, "2", "2"]);
}

/// An interrupt that a statement finds as it begins, beside a query under way, undoes the
/// transaction before the statement has done anything. The rollback hook waited for its own
/// connection then.
#[test]
fn a_rollback_hook_that_hears_of_an_interrupt_cannot_have_its_connection() {
    type Shared = parking_lot::ReentrantMutex<Connection>;
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&answers);
    let db: Arc<Shared> = Arc::new_cyclic(|db: &Weak<Shared>| {
        let db = db.clone();
        let ask = move || {
            let db = db.upgrade().expect("it is in use");
            let error = db.lock().execute_batch("SELECT 1").expect_err("refused");
            told.lock().expect("no panic").push(error.to_string());
        };
        let mut connection = Connection::open_in_memory().expect("opens");
        connection.rollback_hook(Some(ask)).expect("a hook");
        connection.into()
    });
    let db = db.lock();
    db.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")
        .expect("a table");
    db.execute_batch("BEGIN; INSERT INTO t VALUES (3)")
        .expect("a row");
    let mut insert = db.prepare("INSERT INTO t VALUES (4)").expect("compiles");
    let mut select = db.prepare("SELECT a FROM t").expect("compiles");
    let mut rows = select.query([]).expect("runs");
    assert!(rows.next().expect("reads").is_some());
    db.get_interrupt_handle().interrupt();
    let error = insert.execute([]);
    let error = error.expect_err("interrupted");
    let code = error.sqlite_error_code();
    assert_eq!(code, Some(ffi::ErrorCode::OperationInterrupted));
    assert!(db.is_autocommit());
    let misuse = "bad parameter or other API misuse";
    assert_eq!(*answers.lock().expect("no panic"), [misuse]);
}

/// What is removed is dropped with all that it holds, as in rusqlite: the other end of a
/// channel hears of that. Statements that were compiled once kept it.
#[test]
fn what_is_removed_is_dropped() {
    let marks: [Arc<()>; 6] = Default::default();
    let [update, commit, rollback, progress, function, collation] = marks.clone();
    let mut db = Connection::open_in_memory().expect("opens");
    let table = "CREATE TABLE t (a); CREATE TABLE u (a);
        CREATE TRIGGER i AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.a); END";
    db.execute_batch(table).expect("a table");
    let hooked = move |_: fulgurite::hooks::Action, _: &str, _: &str, _| drop(update.clone());
    db.update_hook(Some(hooked)).expect("a hook");
    let hooked = move || Arc::strong_count(&commit) == 0;
    db.commit_hook(Some(hooked)).expect("a hook");
    let hooked = move || drop(rollback.clone());
    db.rollback_hook(Some(hooked)).expect("a hook");
    let hooked = move || Arc::strong_count(&progress) == 0;
    db.progress_handler(1, Some(hooked)).expect("a hook");
    let called = move |_: &fulgurite::functions::Context<'_>| Ok(Arc::strong_count(&function) > 0);
    db.create_scalar_function("f", 0, FunctionFlags::SQLITE_UTF8, called)
        .expect("a function");
    let compared = move |a: &str, b: &str| (a.cmp(b), drop(collation.clone())).0;
    db.create_collation("c", compared).expect("a collation");

    let texts = [
        "INSERT INTO t VALUES (f())",
        "SELECT max(a COLLATE c) FROM t WHERE f()",
        "BEGIN IMMEDIATE",
        "ROLLBACK",
        "SELECT 1",
    ];
    for text in texts.iter().cycle().take(3 * texts.len()) {
        db.execute_batch(text).expect("runs");
        let mut cached = db.prepare_cached(text).expect("compiles");
        let _ = cached.raw_query().next();
    }
    let held = marks.iter().map(Arc::strong_count).collect::<Vec<_>>();
    assert!(held.iter().all(|held| *held > 1), "{held:?}");

    db.update_hook(None::<fn(fulgurite::hooks::Action, &str, &str, i64)>)
        .expect("removes");
    db.commit_hook(None::<fn() -> bool>).expect("removes");
    db.rollback_hook(None::<fn()>).expect("removes");
    db.progress_handler(0, None::<fn() -> bool>)
        .expect("removes");
    let in_use = db.prepare_cached("SELECT f()").expect("compiles");
    db.remove_function("f", 0).expect("removes");
    db.remove_collation("c").expect("removes");
    drop(in_use);
    let held = marks.iter().map(Arc::strong_count).collect::<Vec<_>>();
    assert_eq!(held, [1; 6]);
}

/// A connection of [`Database::transact`] waits for the next call without what a call
/// registered.
#[test]
fn what_a_call_registers_is_dropped_with_it() {
    let database = Database::in_memory().expect("opens");
    let mark = Arc::new(());
    for _ in 0..3 {
        let mark = Arc::clone(&mark);
        let called = database.transact(move |tx| {
            let mark = Arc::clone(&mark);
            let counts =
                move |_: &fulgurite::functions::Context<'_>| Ok(Arc::strong_count(&mark) > 0);
            tx.create_scalar_function("f", 0, FunctionFlags::SQLITE_UTF8, counts)?;
            tx.query_row("SELECT f()", [], |row| row.get::<_, bool>(0))
        });
        assert_eq!(called, Ok(true));
    }
    assert_eq!(Arc::strong_count(&mark), 1);
}

/// A disk whose files can become unreadable.
#[derive(Debug, Default, Clone)]
struct Failing {
    inner: MemoryDisk,
    fails: Arc<AtomicBool>,
}

#[derive(Debug)]
struct FailingFile {
    inner: Arc<dyn DiskFile>,
    fails: Arc<AtomicBool>,
}

impl Disk for Failing {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Done<Arc<dyn DiskFile>> {
        Ok(Arc::new(FailingFile {
            inner: self.inner.open(path, options)?,
            fails: Arc::clone(&self.fails),
        }))
    }
}

impl DiskFile for FailingFile {
    forward!(inner: len, write_at, write_vectored_at, sync_data, sync_all, allocate, truncate);
    forward!(inner: start_writeback, lock_exclusive, lock_shared, unlock, identity);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Done<()> {
        match self.fails.load(Ordering::Relaxed) {
            false => self.inner.read_at(buf, offset),
            true => Err(DiskError::new(
                "read",
                Path::new("r.db"),
                std::io::Error::other("the disk is gone"),
            )),
        }
    }
}

/// What is written through a handle of a blob, and `PRAGMA user_version`, are transactions of
/// their own outside of others. Where one failed in its midst no hook was told, as SQLite
/// tells it; one that did not begin, or whose handle had expired, is told of there neither.
#[test]
fn writes_without_a_statement_that_fail() {
    let disk = Failing::default();
    let open = || {
        let store = Store::open_on(Arc::new(disk.clone()), "r.db", Options::default());
        Database::on_store(store).expect("opens")
    };
    let fails = |it| disk.fails.store(it, Ordering::Relaxed);
    let database = open();
    let db = database.connect().expect("connects");
    db.execute_batch(
        "CREATE TABLE t (a); INSERT INTO t VALUES (randomblob(200000));
         PRAGMA user_version = 1; PRAGMA application_id = 1",
    )
    .expect("a row");
    drop(db);
    drop(database);
    let database = open();
    let mut db = database.connect().expect("connects");
    let (rollbacks, hook) = counter();
    db.rollback_hook(Some(hook)).expect("a hook");
    let told = || rollbacks.load(Ordering::Relaxed);
    let mut set = db.prepare("PRAGMA user_version = 3").expect("compiles");
    let blob = || db.blob_open(MAIN_DB, c"t", c"a", 1, false);
    let mut written = blob().expect("opens");
    fails(true);
    let error = set.execute([]).expect_err("cannot be read");
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure));
    assert_eq!(told(), 1);
    let error = written.write_at(&[1; 50_000], 90_001);
    let error = error.expect_err("cannot be read");
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure));
    assert_eq!(told(), 2);
    fails(false);
    written.write_at(&[1; 50_000], 90_001).expect("can be read");
    set.execute([]).expect("can be read");
    let mut expired = blob().expect("opens");
    db.execute("UPDATE t SET a = zeroblob(9)", [])
        .expect("a row");
    let error = expired.write_at(&[1; 3], 1).expect_err("has expired");
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::OperationAborted));
    let mut late = blob().expect("opens");
    let other = database.connect().expect("connects");
    other.execute_batch("BEGIN IMMEDIATE").expect("begins");
    db.busy_timeout(std::time::Duration::ZERO).expect("sets");
    for refused in [set.execute([]).map(|_| ()), late.write_at(&[1; 3], 1)] {
        let error = refused.expect_err("another one writes");
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    }
    assert_eq!(told(), 2);
}
