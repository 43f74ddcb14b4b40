//! Busy handlers, beside rusqlite: the same program is run with either crate, and what its
//! handler is asked and what its statements come to must be the same.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fulgurite::{Connection, TransactionBehavior, ffi};

/// The program, over the crate `$db`.
macro_rules! program {
    ($module:ident, $db:ident) => {
        mod $module {
            use std::path::Path;
            use std::sync::{Arc, Mutex};
            use std::time::Duration;

            use $db::Connection;

            fn outcome(ran: $db::Result<()>) -> String {
                match ran {
                    Ok(()) => "done".to_owned(),
                    Err(e) => format!("{:?} {e}", e.sqlite_extended_error_code()),
                }
            }

            /// Runs the last of `statements`, which meets a transaction of another
            /// connection that writes. Its handler has that commit when it is asked for the
            /// `ends`th time, counted from 0, and gives up the `gives_up`th time.
            pub fn asked(
                path: &Path,
                statements: &[&str],
                ends: i32,
                gives_up: i32,
            ) -> Vec<String> {
                let mut db = Connection::open(path).unwrap();
                db.execute_batch(
                    "PRAGMA journal_mode = WAL; CREATE TABLE t (a); CREATE TABLE u (a)",
                )
                .unwrap();
                let other = Connection::open(path).unwrap();
                let (last, before) = statements.split_last().unwrap();
                before.iter().for_each(|sql| db.execute_batch(sql).unwrap());
                other
                    .execute_batch("BEGIN IMMEDIATE; INSERT INTO u VALUES (1)")
                    .unwrap();
                let log: Arc<Mutex<Vec<i32>>> = Arc::default();
                let tell = Arc::clone(&log);
                db.busy_handler(Some(move |asked| {
                    tell.lock().unwrap().push(asked);
                    if asked == ends {
                        other.execute_batch("COMMIT").unwrap();
                    }
                    asked < gives_up
                }))
                .unwrap();
                let timeout = |db: &Connection| {
                    let asked = db.query_row("PRAGMA busy_timeout", [], |row| row.get::<_, i64>(0));
                    format!("timeout {}", asked.unwrap())
                };
                let mut told = vec![timeout(&db)];
                told.push(outcome(db.execute_batch(last)));
                let asked = || format!("{:?}", std::mem::take(&mut *log.lock().unwrap()));
                told.push(asked());
                told.push(format!("open: {}", !db.is_autocommit()));
                // The handler is there until something takes its place, and drops the other
                // connection with it.
                told.push(outcome(db.execute_batch("ROLLBACK")));
                db.busy_timeout(Duration::from_millis(7)).unwrap();
                told.push(timeout(&db));
                told.push(outcome(db.execute_batch("INSERT INTO t VALUES ('later')")));
                told.push(asked());
                let rows = "SELECT (SELECT group_concat(a) FROM t) || (SELECT count(*) FROM u)";
                let rows = db.query_row(rows, [], |row| row.get::<_, Option<String>>(0));
                told.push(format!("{:?}", rows.unwrap()));
                told
            }
        }
    };
}

program!(ours, fulgurite);
program!(theirs, rusqlite);

fn both(statements: &[&str], ends: i32, gives_up: i32) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ours = ours::asked(&folder.path().join("ours"), statements, ends, gives_up);
    let theirs = theirs::asked(&folder.path().join("theirs"), statements, ends, gives_up);
    assert_eq!(ours, theirs, "{statements:?}, {ends}, {gives_up}");
    ours
}

#[test]
fn who_meets_a_lock_asks_until_it_has_it_or_the_handler_gives_up() {
    for statements in [
        &["INSERT INTO t VALUES ('a'), ('b')"] as &[&str],
        &["BEGIN IMMEDIATE"],
        &["CREATE TABLE v (a)"],
    ] {
        assert_eq!(both(statements, 2, 9)[1..3], ["done", "[0, 1, 2]"]);
        let told = both(statements, 9, 3);
        assert_eq!(told[1..3], ["Some(5) database is locked", "[0, 1, 2, 3]"]);
        assert_eq!(both(statements, 9, 0)[2], "[0]");
    }
}

const TABLES: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 0);
    CREATE TABLE u (a)";

fn open(path: &Path) -> Connection {
    Connection::open(path).expect("opens")
}

fn run(db: &Connection, sql: &str) {
    db.execute_batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn code(error: &fulgurite::Error) -> Option<i32> {
    error.sqlite_extended_error_code()
}

/// A connection to a file with tables, and one that keeps it from writing.
fn excluded() -> (tempfile::TempDir, Connection, Connection) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.db");
    let (asker, excluding) = (open(&path), open(&path));
    run(&asker, TABLES);
    run(&excluding, "BEGIN IMMEDIATE");
    (folder, asker, excluding)
}

/// What is refused while others are kept from writing.
const WRITES: [&str; 3] = [
    "INSERT INTO u VALUES (1)",
    "BEGIN IMMEDIATE",
    "CREATE TABLE v (a)",
];

/// What a handler was asked.
type Log = Arc<Mutex<Vec<i32>>>;

/// A handler that has `other` commit when it is asked for the second time.
fn commits_at_second(other: Connection) -> (Log, impl FnMut(i32) -> bool + Send + 'static) {
    let log = Log::default();
    let tell = Arc::clone(&log);
    let handler = move |asked| {
        tell.lock().expect("no panic").push(asked);
        if asked == 1 {
            run(&other, "COMMIT");
        }
        asked < 9
    };
    (log, handler)
}

fn taken(log: &Log) -> Vec<i32> {
    std::mem::take(&mut *log.lock().expect("no panic"))
}

/// COMMIT of a transaction that overlaps meets the lock there and not before. Each lock is
/// counted by itself. What a transaction lost by is not asked about: it would lose again.
#[test]
fn a_commit_asks_for_locks_and_not_for_what_it_lost_by() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.db");
    let (mut asker, excluding) = (open(&path), open(&path));
    run(&asker, TABLES);
    run(&asker, "BEGIN; UPDATE t SET a = 5");
    run(&excluding, "BEGIN IMMEDIATE; INSERT INTO u VALUES (1)");
    let (log, handler) = commits_at_second(excluding);
    asker.busy_handler(Some(handler)).expect("sets");
    run(&asker, "COMMIT");
    assert_eq!(taken(&log), [0, 1]);

    run(&asker, "BEGIN; UPDATE t SET a = a + 1");
    run(&open(&path), "UPDATE t SET a = 7");
    let error = asker.execute_batch("COMMIT").expect_err("it lost");
    assert_eq!(code(&error), Some(ffi::SQLITE_BUSY_SNAPSHOT));
    assert_eq!(taken(&log), [0_i32; 0]);
}

#[test]
fn transactions_and_attached_databases_ask_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [main, beside] = ["main.db", "beside.db"].map(|name| folder.path().join(name));
    let attach = format!("ATTACH '{}' AS b", beside.display());
    run(&open(&beside), "CREATE TABLE w (a)");
    for attached_first in [true, false] {
        let (mut asker, excluding) = (open(&main), open(&beside));
        if attached_first {
            run(&asker, &attach);
        }
        run(&excluding, "BEGIN IMMEDIATE");
        let (log, handler) = commits_at_second(excluding);
        asker.busy_handler(Some(handler)).expect("sets");
        if !attached_first {
            run(&asker, &attach);
        }
        run(&asker, "INSERT INTO b.w VALUES (1)");
        assert_eq!(taken(&log), [0, 1]);
    }

    let (_folder, mut asker, excluding) = excluded();
    let (log, handler) = commits_at_second(excluding);
    asker.busy_handler(Some(handler)).expect("sets");
    let begun = asker.transaction_with_behavior(TransactionBehavior::Immediate);
    begun.expect("begins").commit().expect("commits");
    assert_eq!(taken(&log), [0, 1]);
}

/// Without a handler and without a time nothing is waited for; the timeouts of either way to
/// set them take the handler's place.
#[test]
fn what_takes_the_place_of_a_handler() {
    let (_folder, mut asker, _excluding) = excluded();
    let log = Log::default();
    let set = |asker: &mut Connection| {
        let tell = Arc::clone(&log);
        let handler = move |asked| {
            tell.lock().expect("no panic").push(asked);
            false
        };
        asker.busy_handler(Some(handler)).expect("sets");
    };
    let meets = |asker: &Connection| {
        let error = asker.execute("INSERT INTO u VALUES (1)", []);
        let error = error.expect_err("the other one writes");
        assert_eq!(code(&error), Some(ffi::SQLITE_BUSY));
        (taken(&log), error.hint())
    };
    set(&mut asker);
    let (asked, hint) = meets(&asker);
    assert_eq!(asked, [0]);
    assert!(hint.is_some_and(|hint| hint.ends_with("and the busy handler gave up")));
    asker.busy_timeout(Duration::ZERO).expect("sets");
    assert_eq!(meets(&asker).0, [0_i32; 0]);
    set(&mut asker);
    run(&asker, "PRAGMA busy_timeout = 0");
    assert_eq!(meets(&asker).0, [0_i32; 0]);
    set(&mut asker);
    asker.busy_handler(None::<fn(i32) -> bool>).expect("sets");
    let (asked, hint) = meets(&asker);
    assert_eq!(asked, [0_i32; 0]);
    assert!(hint.is_some_and(|hint| hint.ends_with("and no busy timeout is set")));
}

/// A handler that panics gives up, and the connection goes on.
#[test]
fn a_panic_of_a_handler_gives_up() {
    let (_folder, mut asker, excluding) = excluded();
    let handler = |_| panic!("a panic of a test");
    asker.busy_handler(Some(handler)).expect("sets");
    for sql in WRITES {
        let error = asker.execute_batch(sql).expect_err("the other one writes");
        assert_eq!(code(&error), Some(ffi::SQLITE_BUSY));
    }
    run(&excluding, "COMMIT");
    run(&asker, "INSERT INTO u VALUES (1)");
}

thread_local! {
    static ASKER: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

fn with_asker<T>(act: impl FnOnce(&Connection) -> T) -> T {
    ASKER.with(|asker| act(asker.borrow().as_ref().expect("it is there")))
}

#[test]
fn a_handler_may_not_use_the_connection() {
    let (_folder, mut asker, _excluding) = excluded();
    let log: Arc<Mutex<Vec<Option<i32>>>> = Arc::default();
    let tell = Arc::clone(&log);
    let handler = move |_| {
        let error = with_asker(|asker| asker.execute("INSERT INTO u VALUES (2)", []));
        let error = error.err().and_then(|error| code(&error));
        tell.lock().expect("no panic").push(error);
        false
    };
    asker.busy_handler(Some(handler)).expect("sets");
    ASKER.set(Some(asker));
    for sql in WRITES {
        let error = with_asker(|asker| asker.execute_batch(sql));
        let error = error.expect_err("the other one writes");
        assert_eq!(code(&error), Some(ffi::SQLITE_BUSY));
    }
    ASKER.take();
    assert_eq!(
        *log.lock().expect("no panic"),
        [Some(ffi::SQLITE_MISUSE); 3]
    );
}
