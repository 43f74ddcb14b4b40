//! Values of the program that do something when they are dropped: they panic, or use the
//! connection that had them. Whatever they do, the connection goes on.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use fulgurite::functions::{Aggregate, Context, FunctionFlags};
use fulgurite::hooks::Action;
use fulgurite::{Connection, Database, Error, ErrorCode, Result};
use parking_lot::ReentrantMutex;

/// Panics when it is dropped, and counts that.
struct Bomb(Arc<AtomicUsize>);

impl Bomb {
    fn is_there(&self) -> bool {
        Arc::strong_count(&self.0) > 0
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a value of the program");
    }
}

fn table() -> Connection {
    let db = Connection::open_in_memory().expect("opens");
    let tables = "CREATE TABLE t (k INTEGER PRIMARY KEY, a); CREATE TABLE u (a);
        INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)";
    db.execute_batch(tables).expect("tables");
    db
}

/// It is not in the midst of anything: statements run, alone and in a transaction.
#[track_caller]
fn goes_on(db: &Connection) {
    assert!(db.is_autocommit());
    db.execute_batch("BEGIN; INSERT INTO u VALUES (7); COMMIT; DELETE FROM u")
        .expect("it can be written to");
    let rows = db.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
    assert_eq!(rows, Ok(3));
    db.execute_batch("CREATE TABLE v (a); DROP TABLE v")
        .expect("the schema can be changed");
}

/// What a function keeps for an argument that changes is dropped behind each call, which was
/// in the midst of the statement: its panic left that half done, and the connection answered
/// all others with SQLITE_MISUSE.
#[test]
fn what_functions_keep() {
    let db = table();
    let dropped = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&dropped);
    db.create_scalar_function("kept", 2, FunctionFlags::default(), move |ctx| {
        for argument in 0..2 {
            if ctx.get_aux::<Bomb>(argument)?.is_none() {
                ctx.set_aux(argument, Bomb(Arc::clone(&counts)))?;
            }
        }
        ctx.get::<i64>(0)
    })
    .expect("registers");
    assert_eq!(db.execute("UPDATE t SET a = kept(a, 1)", []), Ok(3));
    assert_eq!(dropped.load(Ordering::Relaxed), 4);
    goes_on(&db);
    let sum = "SELECT sum(kept(a, 1)) FROM t";
    assert_eq!(db.query_row(sum, [], |row| row.get(0)), Ok(6));
    assert_eq!(dropped.load(Ordering::Relaxed), 8);
    goes_on(&db);
}

struct Sum(Arc<AtomicUsize>);

impl Aggregate<Option<(i64, Bomb)>, i64> for Sum {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<(i64, Bomb)>> {
        Ok(Some((0, Bomb(Arc::clone(&self.0)))))
    }

    fn step(&self, ctx: &mut Context<'_>, sum: &mut Option<(i64, Bomb)>) -> Result<()> {
        if let Some((sum, _)) = sum {
            *sum += ctx.get::<i64>(0)?;
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<Option<(i64, Bomb)>>) -> Result<i64> {
        let Some((sum, bomb)) = sum.flatten() else {
            return Ok(-1);
        };
        std::mem::forget(bomb);
        Ok(sum)
    }
}

/// The states of groups that came to no end, since the statement failed, are dropped in its
/// midst.
#[test]
fn states_of_groups() {
    let db = table();
    let dropped = Arc::new(AtomicUsize::new(0));
    let sum = Sum(Arc::clone(&dropped));
    db.create_aggregate_function("total_of", 1, FunctionFlags::default(), sum)
        .expect("registers");
    let good = "INSERT INTO u SELECT total_of(a) FROM t GROUP BY k";
    assert_eq!(db.execute(good, []), Ok(3));
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    db.execute_batch("DELETE FROM u").expect("deletes");
    for sql in [
        "INSERT INTO u SELECT total_of(CASE WHEN k < 3 THEN a ELSE 'x' END) FROM t GROUP BY a % 2",
        "INSERT INTO u SELECT total_of(CASE WHEN k < 3 THEN a ELSE 'x' END) FROM t",
        "UPDATE t SET a = (SELECT total_of(CASE WHEN t.k < 3 THEN o.a ELSE 'x' END) FROM t o)",
    ] {
        let before = dropped.load(Ordering::Relaxed);
        db.execute(sql, []).expect_err(sql);
        assert!(dropped.load(Ordering::Relaxed) > before, "{sql}");
        goes_on(&db);
    }
}

/// What a panic carries was dropped where the panic had been caught, in the midst of the
/// statement.
#[test]
fn what_panics_carry() {
    let mut db = table();
    let dropped = Arc::new(AtomicUsize::new(0));
    let carry = || Bomb(Arc::clone(&dropped));
    let payload = carry();
    let payload = parking_lot::Mutex::new(Some(payload));
    db.create_scalar_function("boom", 1, FunctionFlags::default(), move |ctx| {
        let n = ctx.get::<i64>(0)?;
        match payload.lock().take_if(|_| n == 2) {
            Some(payload) => panic_any(payload),
            None => Ok(n),
        }
    })
    .expect("registers");
    let failed = db.execute("UPDATE t SET a = boom(k)", []);
    assert!(
        failed
            .expect_err("it panics")
            .to_string()
            .contains("unwinding panic")
    );
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    goes_on(&db);
    let mut payload = Some(carry());
    db.commit_hook(Some(move || match payload.take() {
        Some(payload) => panic_any(payload),
        None => false,
    }))
    .expect("sets");
    db.execute("UPDATE t SET a = 5", []).expect_err("it panics");
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
    goes_on(&db);
}

/// A panic came out of the call that had removed or replaced the value, or of the statement
/// that was the last to have it.
#[test]
fn hooks_and_functions_that_are_replaced() {
    let mut db = table();
    let dropped = Arc::new(AtomicUsize::new(0));
    let bomb = || Bomb(Arc::clone(&dropped));
    let outcome = catch_unwind(AssertUnwindSafe(|| -> Result<()> {
        for _ in 0..2 {
            let it = [(); 7].map(|()| bomb());
            let [
                commit,
                rollback,
                update,
                progress,
                busy,
                function,
                collation,
            ] = it;
            db.commit_hook(Some(move || !commit.is_there()))?;
            db.rollback_hook(Some(move || assert!(rollback.is_there())))?;
            db.update_hook(Some(move |_: Action, _: &str, _: &str, _| {
                assert!(update.is_there());
            }))?;
            db.progress_handler(1, Some(move || !progress.is_there()))?;
            db.busy_handler(Some(move |_| busy.is_there()))?;
            db.create_scalar_function("f", 1, FunctionFlags::default(), move |ctx| {
                assert!(function.is_there());
                ctx.get::<i64>(0)
            })?;
            db.create_collation("c", move |a, b| {
                assert!(collation.is_there());
                a.cmp(b)
            })?;
            db.execute("UPDATE t SET a = f(a)", [])?;
            db.prepare_cached("SELECT f(a) FROM t ORDER BY a COLLATE c")?
                .exists([])?;
        }
        db.busy_timeout(std::time::Duration::ZERO)?;
        db.commit_hook(None::<fn() -> bool>)?;
        db.rollback_hook(None::<fn()>)?;
        db.update_hook(None::<fn(Action, &str, &str, i64)>)?;
        db.progress_handler(0, None::<fn() -> bool>)?;
        db.remove_function("f", 1)?;
        db.remove_collation("c")
    }));
    outcome.expect("no panic").expect("all is done");
    assert_eq!(dropped.load(Ordering::Relaxed), 14);
    goes_on(&db);
    let database = Database::in_memory().expect("opens");
    for _ in 0..3 {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            database.transact(|tx| {
                let bomb = bomb();
                tx.create_scalar_function("f", 0, FunctionFlags::default(), move |_| {
                    assert!(bomb.is_there());
                    Ok(1)
                })?;
                tx.query_row("SELECT f()", [], |row| row.get::<_, i64>(0))
            })
        }));
        assert_eq!(outcome.expect("no panic"), Ok(1));
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 17);
}

/// A connection that values of its own may use.
type Shared = Arc<ReentrantMutex<Connection>>;

/// Asks the connection something when it is dropped.
struct Asks(Weak<ReentrantMutex<Connection>>, Arc<AtomicUsize>);

impl Drop for Asks {
    fn drop(&mut self) {
        if let Some(db) = self.0.upgrade() {
            let rows = db
                .lock()
                .query_row("SELECT count(*) FROM t", [], |row| row.get(0));
            assert_eq!(rows, Ok(3));
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn shared() -> (Shared, Arc<AtomicUsize>) {
    (Arc::new(ReentrantMutex::new(table())), Arc::default())
}

/// A function or collation that was refused was dropped while its connection was locked. Where
/// it used that it waited for itself.
#[test]
fn what_is_refused_may_use_the_connection() {
    let (db, asked) = shared();
    let asks = || Asks(Arc::downgrade(&db), Arc::clone(&asked));
    let db = db.lock();
    let register = |it: Asks| {
        db.create_scalar_function("f", 0, FunctionFlags::default(), move |_| {
            Ok(Arc::strong_count(&it.1) > 0)
        })
    };
    let collate = |it: Asks| {
        db.create_collation("c", move |a, b| {
            assert!(Arc::strong_count(&it.1) > 0);
            a.cmp(b)
        })
    };
    register(asks()).expect("registers");
    collate(asks()).expect("registers");
    {
        let mut query = db.prepare("SELECT k FROM t").expect("compiles");
        let mut rows = query.query([]).expect("runs");
        rows.next().expect("a row");
        for refused in [register(asks()), collate(asks())] {
            let code = refused.expect_err("rows are read").sqlite_error_code();
            assert_eq!(code, Some(ErrorCode::DatabaseBusy));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
    let refused = db.create_collation("binary", {
        let it = asks();
        move |a, b| {
            assert!(Arc::strong_count(&it.1) > 0);
            a.cmp(b)
        }
    });
    refused.expect_err("it is built in");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    goes_on(&db);
}

/// A function that was removed is kept by statements that the program keeps until they run
/// again. It was dropped while these were compiled anew then, with the connection locked.
#[test]
fn what_a_kept_statement_was_the_last_to_have_may_use_the_connection() {
    let (db, asked) = shared();
    let weak = Arc::downgrade(&db);
    let db = db.lock();
    for sql in [
        "SELECT f(a) FROM t",
        "SELECT f(a) FROM t WHERE k = 1",
        "UPDATE t SET a = f(a)",
        "INSERT INTO u SELECT f(a) FROM t WHERE k = (SELECT max(k) FROM t WHERE f(k) = 9)",
    ] {
        let before = asked.load(Ordering::Relaxed);
        let it = Asks(weak.clone(), Arc::clone(&asked));
        db.create_scalar_function("f", 1, FunctionFlags::default(), move |ctx| {
            assert!(Arc::strong_count(&it.1) > 0);
            ctx.get::<i64>(0)
        })
        .expect("registers");
        let mut kept = db.prepare(sql).expect(sql);
        kept.query([])
            .and_then(|mut rows| rows.next().map(|_| ()))
            .expect(sql);
        db.create_scalar_function("f", 1, FunctionFlags::default(), |ctx| ctx.get::<i64>(0))
            .expect("replaces it");
        assert_eq!(asked.load(Ordering::Relaxed), before, "{sql}");
        kept.query([])
            .and_then(|mut rows| rows.next().map(|_| ()))
            .expect(sql);
        assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{sql}");
        drop(kept);
        db.remove_function("f", 1).expect("removes");
        goes_on(&db);
    }
}

/// An error of the program.
#[derive(Debug)]
struct Bad(Arc<AtomicUsize>);

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bad")
    }
}

impl std::error::Error for Bad {}

impl Drop for Bad {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("an error of the program");
    }
}

/// The error of a function is kept for who asks for it until others came, on any thread: its
/// panic came out of the call that failed last.
#[test]
fn errors_of_functions() {
    let db = table();
    let dropped = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&dropped);
    db.create_scalar_function("bad", 1, FunctionFlags::default(), move |_| {
        let bad = Bad(Arc::clone(&counts));
        Err::<i64, _>(Error::UserFunctionError(Box::new(bad)))
    })
    .expect("registers");
    for sql in ["UPDATE t SET a = bad(a)", "SELECT bad(a) FROM t"] {
        let mut kept = db.prepare(sql).expect(sql);
        let failed = kept.query([]).and_then(|mut rows| rows.next().map(|_| ()));
        assert_eq!(failed.expect_err(sql).to_string(), "bad");
        drop(kept);
        goes_on(&db);
    }
    // What was known of the last errors gives way to what is known of others.
    for _ in 0..100 {
        let sql = "PRAGMA isolation_level = none";
        let other = catch_unwind(AssertUnwindSafe(|| db.execute(sql, [])));
        other
            .expect("no panic")
            .expect_err("there is no such level");
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}
