//! Functions of the program, beside rusqlite: the same program is run with either crate, and
//! what it writes down must be the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite::functions::FunctionFlags;
use fulgurite::{Connection, Database, Error};

#[macro_use]
#[path = "common/run_logged.rs"]
mod run_logged;

/// The programs, over the crate `$db`.
macro_rules! programs {
    ($module:ident, $db:ident) => {
        mod $module {
            use $db::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
            use $db::{Connection, Error, Result, ffi};

            const PURE: FunctionFlags = FunctionFlags::SQLITE_DETERMINISTIC;

            run_logged!($db);

            fn note(log: &mut Log, outcome: Result<()>) {
                log.push(outcome.map_or_else(|e| e.to_string(), |()| "done".to_owned()));
            }

            /// Once a row, also where the row is refused.
            pub fn calls_of_an_insert() -> Log {
                use std::sync::Arc;
                use std::sync::atomic::{AtomicUsize, Ordering};
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                let log = &mut log;
                let calls = Arc::new(AtomicUsize::new(0));
                let counted = calls.clone();
                db.create_scalar_function("counted", 1, PURE, move |ctx| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    ctx.get::<Option<i64>>(0)
                })
                .unwrap();
                run(log, &db, "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT NOT NULL)");
                for sql in [
                    "INSERT INTO t VALUES (1, counted(?1))",
                    "INSERT INTO t VALUES (1, counted(?1) || '!')",
                    "INSERT INTO t(a) VALUES (counted(?1))",
                ] {
                    for given in [Some(1), None] {
                        let outcome = db.prepare(sql).unwrap().execute([given]);
                        note(log, outcome.map(drop));
                        log.push(format!("{} calls", calls.load(Ordering::Relaxed)));
                    }
                }
                run(log, &db, "SELECT * FROM t");
                std::mem::take(log)
            }

            /// By name and number of arguments; built-in functions are hidden.
            pub fn overloads() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                let log = &mut log;
                db.create_scalar_function("f", -1, PURE, |ctx| Ok(ctx.len() as i64))
                    .unwrap();
                db.create_scalar_function("f", 2, PURE, |_| Ok("two")).unwrap();
                db.create_scalar_function("Length", 2, PURE, |_| Ok("two")).unwrap();
                db.create_scalar_function("abs", -1, PURE, |_| Ok("any")).unwrap();
                run(log, &db, "SELECT f(), f(1), f(1, 2), F(1, 2, 3)");
                run(log, &db, "SELECT length('abc'), length(1, 2), abs(-1), abs(1, 2)");
                db.remove_function("f", -1).unwrap();
                run(log, &db, "SELECT f(1)");
                run(log, &db, "SELECT f(1, 2)");
                db.remove_function("F", 2).unwrap();
                run(log, &db, "SELECT f(1, 2)");
                note(log, db.remove_function("f", 2));
                for arguments in [-2, 1000, 1001] {
                    note(log, db.create_scalar_function("g", arguments, PURE, |_| Ok(1)));
                }
                for bytes in [0, 255, 256] {
                    let name = "g".repeat(bytes);
                    note(log, db.create_scalar_function(&*name, 1, PURE, |_| Ok(1)));
                }
                note(log, db.create_scalar_function("a\0b", 1, PURE, |_| Ok(1)));
                std::mem::take(log)
            }

            /// What is no plain call to the binder, and may be one all the same.
            pub fn operators() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                let hidden = [
                    ("coalesce", 2), ("iif", 3), ("like", 2), ("glob", 2), ("likely", 1),
                    ("count", 0), ("count", 1), ("min", 1), ("row_number", 0), ("sum", 1),
                    ("likelihood", 2), ("current_timestamp", 0), ("->", 2), ("match", 2),
                    ("regexp", 2), ("json_quote", 1),
                ];
                for (name, arguments) in hidden {
                    db.create_scalar_function(name, arguments, PURE, |_| Ok("mine")).unwrap();
                }
                for sql in [
                    "SELECT coalesce(1, 2), iif(1, 2, 3), likely(1), likelihood(1, 2), min(1)",
                    "SELECT 'a' LIKE 'b', like('a', 'b'), 'a' GLOB 'b', 'a' NOT LIKE 'b'",
                    "SELECT 'a' LIKE 'b' ESCAPE 'x'",
                    "SELECT count(*), count(1), count(DISTINCT 1)",
                    "SELECT row_number(), current_timestamp, 'a' -> '$', 'a' MATCH 'b', 1 REGEXP 2",
                    "SELECT json_group_array(json('[1]'))",
                    "SELECT row_number() OVER ()",
                    "SELECT sum(1) OVER ()",
                    "SELECT coalesce(1, 2) FILTER (WHERE 1)",
                    "SELECT nope(1) FILTER (WHERE 1)",
                    "SELECT nope(1)",
                    "SELECT sum(1, 2)",
                ] {
                    run(&mut log, &db, sql);
                }
                log
            }

            /// Errors and panics end their statement and nothing else.
            pub fn errors() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                let code = ffi::Error::new;
                let fail = move |how: i64| -> Result<i64> {
                    Err(match how {
                        1 => Error::UserFunctionError("no luck".into()),
                        2 => Error::QueryReturnedNoRows,
                        3 => Error::SqliteFailure(code(2067), Some("taken".to_owned())),
                        4 => Error::SqliteFailure(code(2067), None),
                        5 => Error::SqliteFailure(code(9), None),
                        _ => panic!("as it was asked for"),
                    })
                };
                db.create_scalar_function("fail", 1, PURE, move |ctx| fail(ctx.get(0)?))
                    .unwrap();
                for sql in [
                    "SELECT fail(1)", "SELECT fail(2)", "SELECT fail(3)", "SELECT fail(4)",
                    "SELECT fail(5)", "SELECT fail(6)", "SELECT fail('x')", "SELECT fail(NULL)",
                    "SELECT fail(1.5)", "SELECT fail(x'00')", "SELECT 1 WHERE 0 AND fail(1)",
                    "SELECT CASE WHEN 1 THEN 2 ELSE fail(1) END",
                    "CREATE TABLE t (a UNIQUE)", "INSERT INTO t VALUES (1)", "BEGIN",
                    "INSERT INTO t VALUES (2)", "INSERT INTO t SELECT fail(1)",
                    "INSERT INTO t VALUES (3), (fail(6))", "INSERT INTO t VALUES (fail(6))",
                    "UPDATE t SET a = fail(6)", "DELETE FROM t WHERE fail(6)",
                    "INSERT INTO t VALUES (4) RETURNING fail(6)", "SELECT a FROM t", "COMMIT",
                    "BEGIN", "INSERT INTO t VALUES (5)", "INSERT INTO t SELECT fail(5)",
                    "SELECT a FROM t", "COMMIT", "INSERT OR FAIL INTO t VALUES (6), (fail(1))",
                    "SELECT a FROM t",
                ] {
                    run(&mut log, &db, sql);
                }
                log
            }

            fn successor(db: &Connection, name: &str, flags: FunctionFlags) {
                db.create_scalar_function(name, 1, flags, |ctx| Ok(ctx.get::<i64>(0)? + 1))
                    .unwrap();
            }

            /// What the schema may call, and what becomes of it where that is gone.
            pub fn schema(path: &std::path::Path) -> Log {
                let (db, mut log) = (Connection::open(path).unwrap(), Log::new());
                let log = &mut log;
                successor(&db, "pure", PURE);
                successor(&db, "free", FunctionFlags::SQLITE_UTF8);
                successor(&db, "direct", PURE | FunctionFlags::SQLITE_DIRECTONLY);
                successor(&db, "harmless", PURE | FunctionFlags::SQLITE_INNOCUOUS);
                run(log, &db, "CREATE TABLE t (a, b)");
                run(log, &db, "INSERT INTO t VALUES (5, 6)");
                for f in ["pure", "free", "direct", "harmless", "nope"] {
                    for sql in [
                        "CREATE TABLE check_f (a CHECK (f(a) > 0))",
                        "INSERT INTO check_f VALUES (1)",
                        "CREATE TABLE default_f (b, a DEFAULT (f(1)))",
                        "INSERT INTO default_f (b) VALUES (1)",
                        "INSERT INTO default_f VALUES (1, 2)",
                        "CREATE TABLE virtual_f (b, a AS (f(b)))",
                        "INSERT INTO virtual_f (b) VALUES (1)",
                        "SELECT * FROM virtual_f",
                        "CREATE TABLE stored_f (b, a AS (f(b)) STORED)",
                        "INSERT INTO stored_f (b) VALUES (1)",
                        "CREATE INDEX index_f ON t (f(a))",
                        "CREATE INDEX partial_f ON t (a) WHERE f(a)",
                        "SELECT a FROM t WHERE f(a) = 6",
                        "CREATE VIEW view_f AS SELECT f(a) FROM t",
                        "SELECT * FROM view_f",
                        "CREATE TABLE fires_f (a)",
                        "CREATE TRIGGER step_f AFTER INSERT ON fires_f BEGIN SELECT f(new.a); END",
                        "INSERT INTO fires_f VALUES (1)",
                        "DROP TRIGGER step_f",
                        "CREATE TRIGGER when_f AFTER INSERT ON fires_f WHEN f(new.a) BEGIN SELECT 1; END",
                        "INSERT INTO fires_f VALUES (1)",
                    ] {
                        let call = format!("{f}(");
                        run(log, &db, &sql.replace("f(", &call).replace("_f", &format!("_{f}")));
                    }
                }
                run(log, &db, "PRAGMA trusted_schema");
                run(log, &db, "PRAGMA trusted_schema = OFF");
                for f in ["pure", "free", "harmless"] {
                    run(log, &db, &format!("SELECT * FROM view_{f}"));
                    run(log, &db, &format!("INSERT INTO check_{f} VALUES (1)"));
                    run(log, &db, &format!("SELECT {f}(1)"));
                }
                run(log, &db, "PRAGMA trusted_schema");
                run(log, &db, "DROP INDEX index_harmless");
                drop(db);
                // Another connection has none of them.
                let db = Connection::open(path).unwrap();
                for sql in [
                    "SELECT * FROM t", "SELECT b FROM t WHERE a = 5", "SELECT count(*) FROM t",
                    "INSERT INTO check_pure VALUES (1)",
                    "INSERT INTO default_pure (b) VALUES (1)",
                    "INSERT INTO default_pure VALUES (1, 2)",
                    "INSERT INTO virtual_pure (b) VALUES (1)",
                    "SELECT * FROM virtual_pure", "SELECT b FROM virtual_pure",
                    "SELECT * FROM stored_pure", "SELECT * FROM view_pure",
                    "INSERT INTO fires_pure VALUES (1)", "SELECT * FROM fires_pure",
                    "DROP VIEW view_pure", "ALTER TABLE fires_pure RENAME TO fired",
                    "ALTER TABLE t RENAME COLUMN b TO c", "DROP TABLE check_pure",
                ] {
                    run(log, &db, sql);
                }
                std::mem::take(log)
            }

            /// Writes down what it is given.
            struct Record;

            impl Aggregate<String, Option<String>> for Record {
                fn init(&self, _: &mut Context<'_>) -> Result<String> {
                    Ok("<".to_owned())
                }

                fn step(&self, ctx: &mut Context<'_>, acc: &mut String) -> Result<()> {
                    for argument in 0..ctx.len() {
                        acc.push_str(&format!("{:?} ", ctx.get_raw(argument)));
                    }
                    acc.push(';');
                    match ctx.len() == 1 && ctx.get::<Option<String>>(0).is_ok_and(|s| s.as_deref() == Some("fail")) {
                        true => Err(Error::UserFunctionError("a step failed".into())),
                        false => Ok(()),
                    }
                }

                fn finalize(&self, _: &mut Context<'_>, acc: Option<String>) -> Result<Option<String>> {
                    Ok(acc)
                }
            }

            impl WindowAggregate<String, Option<String>> for Record {
                fn value(&self, acc: Option<&mut String>) -> Result<Option<String>> {
                    Ok(acc.cloned())
                }

                fn inverse(&self, _: &mut Context<'_>, acc: &mut String) -> Result<()> {
                    let end = acc.find(';').unwrap_or(0);
                    acc.replace_range(1..=end, "");
                    Ok(())
                }
            }

            pub fn aggregates() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                db.create_aggregate_function("record", -1, PURE, Record).unwrap();
                db.create_window_function("frame", -1, PURE, Record).unwrap();
                db.create_window_function("sum", 1, PURE, Record).unwrap();
                db.execute_batch("CREATE TABLE t (a, g, x); INSERT INTO t VALUES (1, 'a', 5),
                    (2, 'b', NULL), (3, 'a', 'q'), (4, 'b', 1.5), (5, 'c', x'00'), (6, 'a', 7)").unwrap();
                for sql in [
                    "SELECT record(a) FROM t",
                    "SELECT record() FROM t",
                    "SELECT record(a, x, g) FROM t",
                    "SELECT g, record(a) FROM t GROUP BY g",
                    "SELECT g, record(a ORDER BY a DESC) FROM t GROUP BY g",
                    "SELECT record(DISTINCT g) FROM t",
                    "SELECT record(DISTINCT a, g) FROM t",
                    "SELECT record(a) FILTER (WHERE a > 2) FROM t",
                    "SELECT record(a) FROM t WHERE 0",
                    "SELECT g, record(a) FROM t WHERE 0 GROUP BY g",
                    "SELECT record(record(a)) FROM t",
                    "SELECT a FROM t WHERE record(a)",
                    "SELECT record(a) r FROM t GROUP BY g HAVING record(a) > 'a' ORDER BY r",
                    "SELECT (SELECT record(t.a) FROM t u) FROM t",
                    "SELECT record(nullif(x, 'q')), record(coalesce(x, 'fail')) FROM t",
                    "SELECT record(a) OVER () FROM t",
                    "SELECT a, frame(a) OVER (ORDER BY a) FROM t",
                    "SELECT a, frame(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
                    "SELECT a, frame(a) OVER (PARTITION BY g ORDER BY a ROWS 1 PRECEDING) FROM t",
                    "SELECT frame(a) FILTER (WHERE a <> 3) OVER (ORDER BY a
                        ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM t",
                    "SELECT frame() OVER (ORDER BY a ROWS 2 PRECEDING) FROM t",
                    "SELECT frame(a) OVER (ORDER BY a ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) FROM t",
                    "SELECT frame(a) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM t",
                    "SELECT frame(coalesce(x, 'fail')) OVER (ORDER BY a) FROM t",
                    "SELECT sum(a), frame(a), max(a), g FROM t",
                ] {
                    run(&mut log, &db, sql);
                }
                log
            }

            /// A function may be added while rows are read, but not be changed.
            pub fn while_rows_are_read() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                successor(&db, "f", PURE);
                let mut kept = db.prepare("SELECT f(1)").unwrap();
                let mut statement = db.prepare("SELECT 1 UNION ALL SELECT 2").unwrap();
                let mut rows = statement.query([]).unwrap();
                rows.next().unwrap();
                for (name, arguments) in [("g", 1), ("f", 1), ("f", 2), ("upper", 1), ("upper", 2)] {
                    note(&mut log, db.create_scalar_function(name, arguments, PURE, |_| Ok(7)));
                }
                note(&mut log, db.remove_function("f", 1));
                note(&mut log, db.remove_function("nope", 1));
                drop(rows);
                note(&mut log, db.remove_function("f", 1));
                let answer = kept.query_row([], |row| row.get::<_, i64>(0));
                log.push(format!("{:?}", answer.map_err(|e| e.to_string())));
                note(&mut log, db.create_scalar_function("f", 1, PURE, |_| Ok(7)));
                let answer = kept.query_row([], |row| row.get::<_, i64>(0));
                log.push(format!("{:?}", answer.map_err(|e| e.to_string())));
                log
            }

            /// Subtypes go from function to function, and to those of JSON.
            pub fn subtypes() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                let gives = PURE | FunctionFlags::SQLITE_RESULT_SUBTYPE;
                let takes = PURE | FunctionFlags::SQLITE_SUBTYPE;
                db.create_scalar_function("give", 2, gives, |ctx| {
                    Ok((ctx.get_arg(0), Some(ctx.get::<u32>(1)?)))
                }).unwrap();
                db.create_scalar_function("take", 1, takes, |ctx| Ok(ctx.get_subtype(0))).unwrap();
                for sql in [
                    "SELECT take(1), take(give('x', 5)), take(give('x', 0)), take(json('[1]'))",
                    "SELECT json_array(give('[1]', 74)), json_array(give('[1]', 5))",
                    "SELECT give(NULL, 5), give('x', 5), give(x'01', 5), give(1.5, 5)",
                ] {
                    run(&mut log, &db, sql);
                }
                log
            }
        }
    };
}

programs!(ours, fulgurite);
programs!(theirs, rusqlite);

fn same(ours: &[String], theirs: &[String]) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn calls_of_an_insert() {
    same(&ours::calls_of_an_insert(), &theirs::calls_of_an_insert());
}

#[test]
fn overloads() {
    same(&ours::overloads(), &theirs::overloads());
}

#[test]
fn operators_are_calls() {
    same(&ours::operators(), &theirs::operators());
}

#[test]
fn errors_end_their_statement() {
    same(&ours::errors(), &theirs::errors());
}

#[test]
fn texts_of_the_schema() {
    let dir = tempfile::tempdir().expect("a folder");
    let [ours, theirs] = ["ours", "theirs"].map(|name| dir.path().join(name));
    same(&ours::schema(&ours), &theirs::schema(&theirs));
}

#[test]
fn aggregates_and_windows() {
    same(&ours::aggregates(), &theirs::aggregates());
}

#[test]
fn changes_while_rows_are_read() {
    same(&ours::while_rows_are_read(), &theirs::while_rows_are_read());
}

#[test]
fn subtypes() {
    same(&ours::subtypes(), &theirs::subtypes());
}

const PURE: FunctionFlags = FunctionFlags::SQLITE_DETERMINISTIC;

fn one(db: &Connection, sql: &str) -> String {
    db.query_row(sql, [], |row| row.get(0)).expect(sql)
}

/// In SQLite the name is of no use any more.
#[test]
fn a_built_in_function_is_back_when_what_hid_it_is_removed() {
    let db = Connection::open_in_memory().expect("opens");
    let mut kept = db.prepare("SELECT upper('a')").expect("compiles");
    for _ in 0..2 {
        db.create_scalar_function("upper", 1, PURE, |_| Ok("mine"))
            .expect("registers");
        assert_eq!(one(&db, "SELECT upper('a')"), "mine");
        assert_eq!(kept.query_row([], |row| row.get(0)), Ok("mine".to_owned()));
        db.remove_function("upper", 1).expect("removes");
        assert_eq!(one(&db, "SELECT upper('a')"), "A");
        assert_eq!(kept.query_row([], |row| row.get(0)), Ok("A".to_owned()));
        db.remove_function("upper", 1).expect("there is none");
        assert_eq!(one(&db, "SELECT upper('a')"), "A");
    }
}

#[test]
fn the_error_of_a_function_is_kept() {
    let db = Connection::open_in_memory().expect("opens");
    db.create_scalar_function("number", 1, PURE, |ctx| {
        let text: String = ctx.get(0)?;
        text.parse::<i64>()
            .map_err(|e| Error::UserFunctionError(e.into()))
    })
    .expect("registers");
    let answer = db.query_row("SELECT number('4x')", [], |row| row.get::<_, i64>(0));
    let error = answer.expect_err("no number");
    assert_eq!(error.to_string(), "invalid digit found in string");
    let cause = error.function_error().expect("the cause");
    assert!(cause.is::<std::num::ParseIntError>());
}

/// What is kept for an argument is made once a statement where that is constant, else once
/// a call.
#[test]
fn what_is_kept_for_an_argument() {
    let db = Connection::open_in_memory().expect("opens");
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    db.create_scalar_function("kept", 2, PURE, move |ctx| {
        let text = ctx.get_or_create_aux(0, |value| {
            count.fetch_add(1, Ordering::Relaxed);
            value.as_str().map(str::to_owned)
        })?;
        assert!(ctx.get_aux::<String>(0)?.is_some());
        assert_eq!(ctx.get_aux::<i64>(0), Err(Error::GetAuxWrongType));
        assert_eq!(ctx.get_aux::<i64>(9), Err(Error::InvalidColumnIndex(9)));
        Ok(format!("{text}{}", ctx.get::<i64>(1)?))
    })
    .expect("registers");
    let rows = "FROM json_each('[1, 2, 3, 4]')";
    let parameter = format!("SELECT group_concat(kept(?1, value)) {rows}");
    let mut statement = db.prepare(&parameter).expect("compiles");
    for run in 1..=2 {
        let text: Result<String, _> = statement.query_row(["x"], |row| row.get(0));
        assert_eq!(text.as_deref(), Ok("x1,x2,x3,x4"));
        assert_eq!(made.load(Ordering::Relaxed), run);
    }
    let varies = format!("SELECT group_concat(kept('v' || value, value)) {rows}");
    assert_eq!(one(&db, &varies), "v11,v22,v33,v44");
    assert_eq!(made.load(Ordering::Relaxed), 6);
    let two = format!("SELECT group_concat(kept('a', value) || kept('b', value)) {rows}");
    assert_eq!(one(&db, &two), "a1b1,a2b2,a3b3,a4b4");
    assert_eq!(made.load(Ordering::Relaxed), 8);
}

/// A statement whose function does something is run once, also where the index entries of
/// its transaction are kept back.
#[test]
fn a_function_is_called_once_a_row() {
    let db = Connection::open_in_memory().expect("opens");
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    db.create_scalar_function("next", 0, FunctionFlags::default(), move |_| {
        Ok(count.fetch_add(1, Ordering::Relaxed) as i64)
    })
    .expect("registers");
    db.execute_batch("CREATE TABLE t (a UNIQUE, b); BEGIN")
        .expect("a table");
    for row in 0..100 {
        db.execute("INSERT INTO t VALUES (?1, next())", [row])
            .expect("a row");
    }
    assert!(db.execute("INSERT INTO t VALUES (7, next())", []).is_err());
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(calls.load(Ordering::Relaxed), 101);
    assert_eq!(
        one(&db, "SELECT group_concat(a = b, '') FROM t"),
        "1".repeat(100)
    );
    assert_eq!(
        one(&db, "SELECT count(DISTINCT next()) || '' FROM t"),
        "100"
    );
}

/// A function belongs to its connection; those of `transact` begin with what `with_init` says.
#[test]
fn functions_of_a_database() {
    let database = Database::in_memory().expect("opens");
    let database = database.with_init(|db| db.create_scalar_function("f", 0, PURE, |_| Ok(7)));
    for _ in 0..3 {
        let sum = database.transact(|tx| {
            tx.execute_batch(
                "CREATE TABLE IF NOT EXISTS t (a DEFAULT (f())); INSERT INTO t DEFAULT VALUES",
            )?;
            tx.query_row("SELECT sum(a) % 7 FROM t", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(sum, Ok(0));
    }
}

/// A panic leaves the connection, and the database, as they were.
#[test]
fn a_panic_is_an_error() {
    let db = Connection::open_in_memory().expect("opens");
    db.create_scalar_function("burst", 1, PURE, |ctx| match ctx.get::<i64>(0)? {
        500 => panic!("as it was asked for"),
        n => Ok(n),
    })
    .expect("registers");
    let rows = "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)";
    db.execute_batch("CREATE TABLE t (a PRIMARY KEY); CREATE INDEX i ON t (burst(a))")
        .expect("a table");
    let insert = format!("{rows} INSERT INTO t SELECT i FROM c");
    for sql in [
        insert.as_str(),
        &format!("{rows} SELECT sum(burst(i)) FROM c GROUP BY i % 7 ORDER BY 1"),
        &format!("{rows} SELECT i FROM c ORDER BY burst(i)"),
    ] {
        let error = db.execute_batch(sql).expect_err(sql);
        assert_eq!(error.to_string(), "unwinding panic");
    }
    assert_eq!(one(&db, "SELECT count(*) || '' FROM t"), "0");
    db.execute("INSERT INTO t VALUES (1)", []).expect("a row");
    let other = db.database().connect().expect("connects");
    let refused = other.execute("INSERT INTO t VALUES (2)", []);
    assert_eq!(
        refused.expect_err("no such function").to_string(),
        "unknown function: burst()"
    );
    assert_eq!(one(&db, "PRAGMA integrity_check"), "ok");
}
