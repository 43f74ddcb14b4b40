//! IMMEDIATE transactions that begin while the commit before them is being synced.
//!
//! They go on with what that commit has not touched, and say nothing of what it has before
//! it is durable. The disk here holds the syncs of the one thread that commits first, until
//! it is told to let them go, or to fail.

mod support;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use fulgurite_disk::{Disk, DiskError, DiskErrorKind, DiskFile, MemoryDisk, OpenOptions, forward};
use fulgurite_sql::error::Error;
use fulgurite_sql::error::code::ABORT;
use fulgurite_sql::func::UserFunction;
use fulgurite_sql::func::hooks::{RollbackHook, UpdateHook};
use fulgurite_sql::func::user::{UserCall, UserFlags, UserKind, UserScalar};
use fulgurite_sql::session::blob::BlobColumn;
use fulgurite_sql::session::{Engine, Session, Step};
use fulgurite_sql::value::Value;
use fulgurite_store::{Options, Store};
use support::{drain, must, prepare, row, run};

/// The thread whose syncs are held.
const FIRST: &str = "first";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Shut,
    Open,
    Fails,
}

#[derive(Debug)]
struct Gate {
    /// How it stands, and whether a sync is held.
    state: Mutex<(Stand, bool)>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, stand: Stand) {
        self.state.lock().unwrap().0 = stand;
        self.changed.notify_all();
    }

    fn wait_until_it_holds(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.1 {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn pass(&self) -> Result<(), DiskError> {
        if thread::current().name() != Some(FIRST) {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap();
        state.1 = true;
        self.changed.notify_all();
        while state.0 == Stand::Shut {
            state = self.changed.wait(state).unwrap();
        }
        match state.0 {
            Stand::Fails => Err(DiskError {
                op: "sync",
                path: "the log".into(),
                kind: DiskErrorKind::Other,
                source: Arc::new(std::io::Error::other("the disk is gone")),
            }),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Gated {
    inner: MemoryDisk,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct GatedFile {
    inner: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl Disk for Gated {
    forward!(inner: exists, rename, temp_file, remove, canonical, sync_dir);

    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>, DiskError> {
        Ok(Arc::new(GatedFile {
            inner: self.inner.open(path, options)?,
            gate: Arc::clone(&self.gate),
        }))
    }
}

impl DiskFile for GatedFile {
    forward!(inner: len, read_at, write_at, write_vectored_at, sync_all, allocate, truncate);
    forward!(inner: start_writeback, lock_exclusive, lock_shared, unlock, identity);

    fn sync_data(&self) -> Result<(), DiskError> {
        self.gate.pass()?;
        self.inner.sync_data()
    }
}

/// Lets the syncs go, also where an assertion fails.
struct OpensAtTheEnd<'g>(&'g Gate);

impl Drop for OpensAtTheEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 == Stand::Shut {
            state.0 = Stand::Open;
        }
        self.0.changed.notify_all();
    }
}

struct World {
    engine: Engine,
    gate: Arc<Gate>,
}

impl World {
    fn new() -> Self {
        let gate = Arc::new(Gate {
            state: Mutex::new((Stand::Shut, false)),
            changed: Condvar::new(),
        });
        let disk = Gated {
            inner: MemoryDisk::new(),
            gate: Arc::clone(&gate),
        };
        let options = Options::default();
        let store = Store::open_on(Arc::new(disk), Path::new("/test.db"), options).unwrap();
        let engine = Engine::open(store).unwrap();
        must(
            &engine.session(),
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, u TEXT UNIQUE);
             CREATE INDEX t_n ON t(n);
             CREATE TABLE s(id INTEGER PRIMARY KEY, n INT);
             WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 9)
             INSERT INTO t SELECT i, i * 10, 'u' || i FROM c;
             INSERT INTO s SELECT id, n FROM t",
        );
        Self { engine, gate }
    }

    /// While the sync of what `first` commits is held, `then` uses a connection that was
    /// there before.
    fn meanwhile<R>(&self, first: &str, then: impl FnOnce(&Session) -> R) -> R {
        let second = self.engine.session();
        thread::scope(|scope| {
            let commits = || run(&self.engine.session(), first);
            let first = thread::Builder::new().name(FIRST.into());
            let first = first.spawn_scoped(scope, commits).unwrap();
            self.gate.wait_until_it_holds();
            let outcome = {
                let _opens = OpensAtTheEnd(&self.gate);
                then(&second)
            };
            first.join().unwrap();
            outcome
        })
    }

    /// Runs an IMMEDIATE transaction of one statement, which comes to its end while the sync
    /// is held, or has to wait for it.
    fn runs(&self, session: &Session, statement: &str, at_once: bool) {
        must(session, BEGIN);
        if at_once {
            must(session, statement);
            assert_eq!(*self.gate.state.lock().unwrap(), (Stand::Shut, true));
            self.gate.set(Stand::Open);
        } else {
            thread::scope(|scope| {
                scope.spawn(|| self.gate.set(Stand::Open));
                must(session, statement);
            });
        }
        must(session, "COMMIT");
    }

    /// What `second` comes to in an IMMEDIATE transaction, which is told while the sync is
    /// held.
    fn at_once(first: &str, second: &str) -> Vec<String> {
        let world = Self::new();
        world.meanwhile(first, |session| {
            must(session, "BEGIN IMMEDIATE");
            let told = run(session, second);
            assert_eq!(*world.gate.state.lock().unwrap(), (Stand::Shut, true));
            // A commit shares the sync, and so waits for it.
            world.gate.set(Stand::Open);
            must(session, "COMMIT");
            told
        })
    }

    /// The same, where nobody is told before readers see the first commit.
    fn late(first: &str, (begin, second): (&str, &str)) -> Vec<String> {
        let world = Self::new();
        world.meanwhile(first, |session| {
            let reader = world.engine.session();
            let before = run(&reader, EVERYTHING);
            let told = thread::scope(|scope| {
                must(session, begin);
                scope.spawn(|| world.gate.set(Stand::Open));
                run(session, second)
            });
            assert_ne!(
                before,
                run(&reader, EVERYTHING),
                "{second} was told too early"
            );
            must(session, "ROLLBACK");
            told
        })
    }
}

const BEGIN: &str = "BEGIN IMMEDIATE";
const EVERYTHING: &str = "SELECT * FROM t; SELECT * FROM s; SELECT sql FROM sqlite_schema";
const CHANGES_1: &str = "UPDATE t SET n = 100 WHERE id = 1";
const ADDS_77: &str = "INSERT INTO t VALUES (77, 770, 'new')";

#[test]
fn what_the_commit_did_not_touch_is_told_at_once() {
    let cases = [
        ("SELECT n FROM t WHERE id = 2", "20"),
        ("SELECT count(*) FROM s", "9"),
        ("SELECT sum(n) FROM t WHERE id BETWEEN 5 AND 9", "350"),
        ("SELECT id FROM t WHERE u = 'u4'", "4"),
        ("SELECT id FROM t WHERE n > 80 AND n < 100", "9"),
        ("UPDATE t SET n = n + 1 WHERE id = 3 RETURNING n", "31"),
        ("INSERT INTO t(id, u) VALUES (50, 'x') RETURNING id", "50"),
        ("DELETE FROM s WHERE id < 4 RETURNING id", "1 2 3"),
        (
            "INSERT INTO t(id, u) VALUES (60, 'u5')",
            "error 2067: UNIQUE constraint failed: t.u",
        ),
        (
            "SAVEPOINT a; UPDATE t SET n = 0 WHERE id = 4; ROLLBACK TO a; SELECT n FROM t WHERE id = 4",
            "40",
        ),
    ];
    for (second, told) in cases {
        for first in [CHANGES_1, ADDS_77] {
            assert_eq!(World::at_once(first, second).join(" "), told, "{second}");
        }
    }
}

#[test]
fn what_it_changed_is_not_told_before_it_is_durable() {
    let cases = [
        (CHANGES_1, "SELECT n FROM t WHERE id = 1", "100"),
        (CHANGES_1, "SELECT id FROM t WHERE n = 10", ""),
        (CHANGES_1, "SELECT sum(n) FROM t", "540"),
        (
            CHANGES_1,
            "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n",
            "101",
        ),
        (CHANGES_1, "UPDATE t SET n = 7 WHERE n = 100", ""),
        (CHANGES_1, "DELETE FROM t WHERE id = 1 RETURNING n", "100"),
        (
            CHANGES_1,
            "SAVEPOINT a; DELETE FROM t WHERE id = 1; ROLLBACK TO a",
            "",
        ),
        (ADDS_77, "SELECT count(*) FROM t", "10"),
        (ADDS_77, "SELECT u FROM t WHERE id = 77", "'new'"),
        (
            ADDS_77,
            "INSERT INTO t(id, u) VALUES (78, 'new')",
            "error 2067: UNIQUE constraint failed: t.u",
        ),
        (
            ADDS_77,
            "INSERT OR IGNORE INTO t(id, u) VALUES (78, 'new'); SELECT changes()",
            "0",
        ),
        (
            ADDS_77,
            "INSERT OR FAIL INTO t VALUES (77, 0, 'other')",
            "error 1555: UNIQUE constraint failed: t.id",
        ),
        (
            "DELETE FROM t WHERE id = 5",
            "SELECT 1 FROM t WHERE id = 5",
            "",
        ),
        ("DELETE FROM s", "SELECT EXISTS (SELECT 1 FROM s)", "0"),
    ];
    for (first, second, told) in cases {
        let outcome = World::late(first, (BEGIN, second));
        assert_eq!(outcome.join(" "), told, "{second}");
    }
}

/// A statement that undoes its transaction leaves nothing to compare.
#[test]
fn a_failure_that_undoes_the_transaction_is_told_when_the_commit_is_durable() {
    let world = World::new();
    world.meanwhile(ADDS_77, |session| {
        must(session, BEGIN);
        let told = thread::scope(|scope| {
            scope.spawn(|| world.gate.set(Stand::Open));
            run(session, "INSERT OR ROLLBACK INTO t VALUES (77, 0, 'other')")
        });
        assert_eq!(told, ["error 1555: UNIQUE constraint failed: t.id"]);
        let there = must(&world.engine.session(), "SELECT n FROM t WHERE id = 77");
        assert_eq!(there, ["770"], "told too early");
    });
}

/// What may tell others of rows while it runs, or shows what it rests on, waits first.
#[test]
fn what_cannot_be_confirmed_afterwards_waits_before() {
    let untouched = "SELECT n FROM t WHERE id = 2";
    let plan = format!("EXPLAIN QUERY PLAN {untouched}");
    for (first, second) in [
        (CHANGES_1, plan.as_str()),
        (CHANGES_1, "PRAGMA foreign_key_check"),
        (CHANGES_1, "CREATE TABLE other(x)"),
    ] {
        World::late(first, (BEGIN, second));
    }
    // A schema that is not durable is not even compiled for.
    for change in [
        "CREATE TABLE new(x)",
        "DROP INDEX t_n",
        "ALTER TABLE s ADD x",
    ] {
        World::late(change, ("SELECT 1", &format!("{BEGIN}; {untouched}")));
    }
}

/// What may be told of a row while a statement runs is told what a reader can see.
fn sees(engine: &Engine, n: &'static str) -> impl Fn() + Send + Sync + use<> {
    let engine = engine.clone();
    move || {
        let there = must(&engine.session(), "SELECT n FROM t WHERE id = 1");
        assert_eq!(there, [n], "told too early, or too late");
    }
}

#[test]
fn an_update_hook_is_told_nothing_early() {
    for (second, there) in [
        ("UPDATE t SET n = 0 WHERE id = 1", "100"),
        ("UPDATE s SET n = (SELECT n FROM t WHERE id = 1)", "100"),
        ("INSERT INTO s SELECT id + 100, n FROM t", "100"),
        ("UPDATE t SET n = 0 WHERE id = 2", "10"),
        ("INSERT INTO s VALUES (10, 0), (11, 0)", "10"),
    ] {
        let world = World::new();
        world.meanwhile(CHANGES_1, |session| {
            let told = sees(&world.engine, there);
            let hook: UpdateHook = Arc::new(move |_, _, _, _| told());
            session
                .set_hooks(|hooks| hooks.update = Some(hook))
                .unwrap();
            world.runs(session, second, there == "10");
        });
    }
}

/// It hears of the failure that undoes the transaction before who ran the statement.
#[test]
fn a_rollback_hook_is_told_nothing_early() {
    let world = World::new();
    world.meanwhile(ADDS_77, |session| {
        let engine = world.engine.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = Arc::clone(&seen);
        let hook: RollbackHook = Arc::new(move || {
            *sees.lock().unwrap() = must(&engine.session(), "SELECT n FROM t WHERE id = 77");
        });
        session
            .set_hooks(|hooks| hooks.rollback = Some(hook))
            .unwrap();
        must(session, BEGIN);
        let told = thread::scope(|scope| {
            scope.spawn(|| world.gate.set(Stand::Open));
            run(session, "INSERT OR ROLLBACK INTO t VALUES (77, 0, 'other')")
        });
        assert_eq!(told, ["error 1555: UNIQUE constraint failed: t.id"]);
        assert_eq!(*seen.lock().unwrap(), ["770"], "told too early");
    });
}

struct Calls<F>(F);

impl<F: Fn() + Send + Sync> UserScalar for Calls<F> {
    fn call(&self, _: &UserCall<'_>) -> Result<Value, Error> {
        (self.0)();
        Ok(Value::Integer(1000))
    }
}

/// A function of the program that makes a value of a new row knows nothing of the database;
/// one that is given rows, or called where some were found, does.
#[test]
fn a_function_is_told_nothing_early() {
    for (second, there) in [
        ("INSERT INTO t(n) VALUES (f())", "10"),
        ("INSERT OR IGNORE INTO t VALUES (f(), f(), 'u3')", "10"),
        ("UPDATE t SET n = f() WHERE id = 2", "10"),
        ("UPDATE t SET n = 5 WHERE id = 2 AND f() > n", "10"),
        ("DELETE FROM t WHERE u = 'u3' AND f() > n", "10"),
        ("UPDATE t SET n = f() WHERE id = 1", "100"),
        ("DELETE FROM t WHERE u = 'u1' AND f() > n", "100"),
        ("UPDATE t SET n = f() WHERE id = 2 RETURNING f()", "100"),
        ("SELECT f() FROM t WHERE n = 10", ""),
        ("SELECT f() FROM t WHERE n = 100", "100"),
        ("UPDATE s SET n = f()", "100"),
        ("INSERT INTO t(n) VALUES (f()) RETURNING f()", "100"),
        ("INSERT INTO s VALUES (20, 0), (f(), 0)", "100"),
        ("INSERT INTO s SELECT f(), n FROM t WHERE id = 1", "100"),
        ("INSERT INTO c VALUES (1)", "100"),
    ] {
        let world = World::new();
        let none = UserFlags::default();
        let function = |told| UserFunction::new("f", 0, none, UserKind::Scalar(told)).unwrap();
        let first = world.engine.session();
        first
            .register_function(function(Box::new(Calls(|| ()))))
            .unwrap();
        must(&first, "CREATE TABLE c(n INT CHECK (n < f()))");
        world.meanwhile(CHANGES_1, |session| {
            let told = Box::new(Calls(sees(&world.engine, there)));
            session.register_function(function(told)).unwrap();
            world.runs(session, second, there == "10");
        });
    }
}

/// Nor is either of them by a statement alone, which commits with the sync that is held.
#[test]
fn a_statement_alone_tells_nothing_early() {
    for (second, there) in [
        ("UPDATE t SET n = 0 WHERE id = 2", "10"),
        ("UPDATE t SET n = 0 WHERE id = 1", "100"),
        ("UPDATE s SET n = (SELECT n FROM t WHERE id = 1)", "100"),
        ("INSERT INTO s SELECT id + 100, n FROM t", "100"),
        ("INSERT INTO t(n) VALUES (f())", "10"),
        ("UPDATE t SET n = f() WHERE id = 2", "10"),
        ("UPDATE t SET n = f() WHERE id = 1", "100"),
        ("UPDATE s SET n = f()", "100"),
    ] {
        let world = World::new();
        let told = || {
            let (told, gate) = (sees(&world.engine, there), Arc::clone(&world.gate));
            move || {
                told();
                gate.set(Stand::Open);
            }
        };
        world.meanwhile(CHANGES_1, |session| {
            match second.contains("f()") {
                true => {
                    let function = UserKind::Scalar(Box::new(Calls(told())));
                    let function = UserFunction::new("f", 0, UserFlags::default(), function);
                    session.register_function(function.unwrap()).unwrap();
                }
                false => {
                    let told = told();
                    let hook: UpdateHook = Arc::new(move |_, _, _, _| told());
                    let set = session.set_hooks(|hooks| hooks.update = Some(hook));
                    set.unwrap();
                }
            }
            thread::scope(|scope| {
                if there == "100" {
                    scope.spawn(|| world.gate.set(Stand::Open));
                }
                must(session, second);
            });
        });
    }
}

/// Who writes to a value alone does that where it lies in what was committed last, or hears
/// that it was written since once a reader can see that.
#[test]
fn a_handle_of_a_value_knows_of_a_commit_that_is_not_durable_yet() {
    let written = "SELECT u FROM b WHERE id = 1";
    for (first, outcome, there) in [
        (
            "UPDATE b SET n = 'a longer one' WHERE id = 1",
            Ok(()),
            &["'Other'"][..],
        ),
        (
            "UPDATE b SET u = 'theirs' WHERE id = 1",
            Err(ABORT),
            &["'theirs'"],
        ),
        ("UPDATE b SET u = '' WHERE id = 1", Err(ABORT), &["''"]),
        ("DELETE FROM b WHERE id = 1", Err(ABORT), &[]),
        ("DELETE FROM b", Err(ABORT), &[]),
        (
            "DROP TABLE b; CREATE TABLE b(id INTEGER PRIMARY KEY, u TEXT)",
            Err(ABORT),
            &[],
        ),
    ] {
        let world = World::new();
        must(
            &world.engine.session(),
            "CREATE TABLE b(id INTEGER PRIMARY KEY, n TEXT, u TEXT);
             INSERT INTO b VALUES (1, 'n', 'other'), (2, 'n', 'more')",
        );
        let [main, table, column] = ["main", "b", "u"].map(str::to_owned);
        let column = BlobColumn::new(main, table, column, true);
        world.meanwhile(first, |session| {
            let mut handle = session.open_blob(&column, 1).unwrap();
            let written_to = thread::scope(|scope| {
                scope.spawn(|| world.gate.set(Stand::Open));
                session.write_blob(&mut handle, 0, b"O")
            });
            assert_eq!(written_to.map_err(|error| error.code()), outcome, "{first}");
            assert_eq!(run(&world.engine.session(), written), there, "{first}");
            let checked = run(session, "PRAGMA integrity_check");
            assert_eq!(checked, ["'ok'"], "{first}");
        });
    }
}

/// The rows of a query that is still open when its transaction is rolled back.
#[test]
fn rows_that_come_after_the_rollback_wait_too() {
    let world = World::new();
    let rows = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 9000)
                INSERT INTO s SELECT i + 9, i FROM c";
    must(&world.engine.session(), rows);
    world.meanwhile("UPDATE s SET n = 1 WHERE id = 9009", |session| {
        must(session, BEGIN);
        let mut rows = prepare(session, "SELECT n FROM s");
        assert_eq!(rows.step().unwrap(), Step::Row);
        assert_eq!(row(&rows), "10");
        must(session, "ROLLBACK");
        let rest = thread::scope(|scope| {
            scope.spawn(|| world.gate.set(Stand::Open));
            drain(&mut rows)
        });
        assert_eq!(rest.last().map(String::as_str), Some("1"));
        let there = must(&world.engine.session(), "SELECT n FROM s WHERE id = 9009");
        assert_eq!(there, ["1"], "told too early");
    });
}

/// Many follow each other during one sync: each sees what the ones before wrote, none
/// loses, and what they added up to is there.
#[test]
fn many_share_the_sync() {
    let world = World::new();
    let adds = |own: i64| {
        let session = world.engine.session();
        for _ in 0..20 {
            let own = format!("UPDATE s SET n = n + 1 WHERE id = {own}");
            must(
                &session,
                &format!("{BEGIN}; {own}; UPDATE t SET n = n + 1 WHERE id = 1; COMMIT"),
            );
        }
    };
    world.gate.set(Stand::Open);
    thread::scope(|scope| {
        for own in 1..=4 {
            scope.spawn(move || adds(own));
        }
    });
    let session = world.engine.session();
    assert_eq!(must(&session, "SELECT n FROM t WHERE id = 1"), ["90"]);
    assert_eq!(
        must(&session, "SELECT n FROM s WHERE id < 5"),
        ["30", "40", "50", "60"]
    );
}

/// What it built on is lost: it was told nothing of that, and cannot commit.
#[test]
fn a_failed_sync_ends_who_is_ahead_of_it() {
    let world = World::new();
    world.meanwhile(CHANGES_1, |session| {
        must(session, BEGIN);
        assert_eq!(must(session, "SELECT n FROM t WHERE id = 2"), ["20"]);
        must(session, "UPDATE t SET n = 21 WHERE id = 2");
        world.gate.set(Stand::Fails);
        let failed = |told: Vec<String>| told.len() == 1 && told[0].starts_with("error 1034");
        assert!(failed(run(session, "SELECT n FROM t WHERE id = 1")));
        assert!(failed(run(session, "COMMIT")));
        let reader = world.engine.session();
        assert_eq!(must(&reader, "SELECT n FROM t WHERE id < 3"), ["10", "20"]);
    });
}

/// A temporary table is its connection's alone, and keeps nobody from going ahead; what is
/// copied into it is told of when that is durable.
#[test]
fn who_has_a_temporary_table_goes_ahead_too() {
    let temporary = "CREATE TEMP TABLE own(n INT); INSERT INTO own VALUES (1)";
    for (second, told) in [
        ("SELECT n FROM t WHERE id = 2", "20"),
        (
            "INSERT INTO own SELECT n FROM t WHERE id = 3 RETURNING n",
            "30",
        ),
        ("UPDATE t SET n = (SELECT max(n) FROM own) WHERE id = 4", ""),
    ] {
        let world = World::new();
        world.meanwhile(CHANGES_1, |session| {
            must(session, temporary);
            must(session, BEGIN);
            assert_eq!(run(session, second).join(" "), told, "{second}");
            assert_eq!(*world.gate.state.lock().unwrap(), (Stand::Shut, true));
            world.gate.set(Stand::Open);
            must(session, "COMMIT");
        });
    }
    let copies = "INSERT INTO own SELECT n FROM t WHERE id = 1 RETURNING n";
    let begin = format!("{temporary}; {BEGIN}");
    assert_eq!(World::late(CHANGES_1, (&begin, copies)), ["100"]);
}

/// The copy of what was lost is lost with it.
#[test]
fn a_temporary_table_keeps_nothing_of_a_commit_that_failed() {
    let world = World::new();
    world.meanwhile(CHANGES_1, |session| {
        must(session, "CREATE TEMP TABLE own(n INT)");
        must(session, BEGIN);
        world.gate.set(Stand::Fails);
        let failed = |told: Vec<String>| told.len() == 1 && told[0].starts_with("error 1034");
        let copies = "INSERT INTO own SELECT n FROM t WHERE id = 1";
        assert!(failed(run(session, copies)));
        assert!(failed(run(session, "COMMIT")));
        assert_eq!(must(session, "SELECT count(*) FROM own"), ["0"]);
    });
}

/// A file to attach, which is one of the file system on whatever disk the main database is:
/// the directory that it is in, and the statement.
fn attachable() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let attach = format!("ATTACH '{}' AS o", dir.path().join("o.db").display());
    (dir, attach)
}

/// What is attached keeps nobody from going ahead in the main database; who has used it
/// commits when all is durable that the transaction builds on there.
#[test]
fn who_has_attached_a_file_goes_ahead_in_main() {
    for (used, there) in [
        ("SELECT n FROM s WHERE id = 2", "1"),
        ("SELECT n FROM o.x", "1"),
        ("UPDATE o.x SET n = 2", "2"),
    ] {
        let (_dir, attach) = attachable();
        let world = World::new();
        let makes = "CREATE TABLE o.x(n INT); INSERT INTO o.x VALUES (1)";
        must(&world.engine.session(), &format!("{attach}; {makes}"));
        world.meanwhile(CHANGES_1, |session| {
            must(session, &format!("{attach}; {BEGIN}; {used}"));
            let updates = "UPDATE t SET n = 21 WHERE id = 2 RETURNING n";
            assert_eq!(must(session, updates), ["21"]);
            assert_eq!(*world.gate.state.lock().unwrap(), (Stand::Shut, true));
            world.gate.set(Stand::Open);
            must(session, "COMMIT");
            let rows = "SELECT n FROM t WHERE id < 3; SELECT n FROM o.x";
            assert_eq!(must(session, rows), ["100", "21", there], "{used}");
        });
    }
}

/// An attached file that had no part in a transaction is free again when that is published,
/// one that had at the end of its sync: who read what was written to it then, and main as it
/// was before, would see what no order explains.
#[test]
fn an_attached_file_that_was_used_stays_locked_until_the_commit_is_durable() {
    for (used, is_free) in [
        ("SELECT n FROM t WHERE id = 2", true),
        ("SELECT n FROM o.x", false),
        // It was looked for there, too.
        ("SELECT n FROM nowhere", false),
        ("SAVEPOINT a; DELETE FROM o.x; ROLLBACK TO a", false),
    ] {
        let (_dir, attach) = attachable();
        let world = World::new();
        let beside = world.engine.session();
        let makes = "PRAGMA busy_timeout = 0; CREATE TABLE o.x(n INT)";
        must(&beside, &format!("{attach}; {makes}"));
        let first = format!("{attach}; {BEGIN}; {used}; {CHANGES_1}; COMMIT");
        world.meanwhile(&first, |_| {
            let told = run(&beside, "INSERT INTO o.x VALUES (1)");
            let refused = told.iter().any(|told| told.starts_with("error 5:"));
            assert_eq!(refused, !is_free, "{used}: {told:?}");
        });
    }
}
