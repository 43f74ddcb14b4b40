//! What a program registers, and what it asks of a connection, where that has temporary tables
//! and attached databases: beside rusqlite, the same programs over either crate.

use std::sync::{Arc, Mutex};

use fulgurite::Connection;

/// The programs, over the crate `$db`.
macro_rules! programs {
    ($module:ident, $db:ident) => {
        mod $module {
            use std::sync::{Arc, Mutex};

            use $db::backup::{Backup, NO_PROGRESS};
            use $db::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
            use $db::hooks::Action;
            use $db::{Connection, Error, Result};

            pub type Log = Vec<String>;

            struct Sum;

            impl Aggregate<i64, i64> for Sum {
                fn init(&self, _: &mut Context<'_>) -> Result<i64> {
                    Ok(0)
                }

                fn step(&self, ctx: &mut Context<'_>, sum: &mut i64) -> Result<()> {
                    *sum += ctx.get::<i64>(0)?;
                    Ok(())
                }

                fn finalize(&self, _: &mut Context<'_>, sum: Option<i64>) -> Result<i64> {
                    Ok(sum.unwrap_or(-1))
                }
            }

            impl WindowAggregate<i64, i64> for Sum {
                fn value(&self, sum: Option<&mut i64>) -> Result<i64> {
                    Ok(sum.map_or(-1, |sum| *sum))
                }

                fn inverse(&self, ctx: &mut Context<'_>, sum: &mut i64) -> Result<()> {
                    *sum -= ctx.get::<i64>(0)?;
                    Ok(())
                }
            }

            /// With `twice`, `direct` that the schema may not call, `fail` that has no luck
            /// with 3, `total` and the collation `backward`.
            pub fn open() -> Connection {
                let db = Connection::open_in_memory().unwrap();
                let pure = FunctionFlags::SQLITE_DETERMINISTIC;
                let direct = pure | FunctionFlags::SQLITE_DIRECTONLY;
                db.create_scalar_function("twice", 1, pure, |ctx| Ok(ctx.get::<i64>(0)? * 2))
                    .unwrap();
                db.create_scalar_function("direct", 1, direct, |ctx| ctx.get::<i64>(0))
                    .unwrap();
                db.create_scalar_function("fail", 1, pure, |ctx| match ctx.get(0)? {
                    3_i64 => Err(Error::UserFunctionError("no luck".into())),
                    other => Ok(other),
                })
                .unwrap();
                db.create_window_function("total", 1, pure, Sum).unwrap();
                db.create_collation("backward", |a, b| b.cmp(a)).unwrap();
                db
            }

            /// A statement's rows, and code and message of its error.
            pub fn run(db: &Connection, sql: &str) -> String {
                let mut out = String::new();
                let mut rows = || -> Result<()> {
                    let mut statement = db.prepare(sql)?;
                    let width = statement.column_count();
                    let mut rows = statement.query([])?;
                    while let Some(row) = rows.next()? {
                        for column in 0..width {
                            out += &format!("{:?} ", row.get_ref(column)?);
                        }
                    }
                    Ok(())
                };
                let error = rows().err().map(|error| match error {
                    Error::SqlInputError { error, msg, .. } => (error.extended_code, msg),
                    Error::SqliteFailure(error, msg) => {
                        (error.extended_code, msg.unwrap_or_default())
                    }
                    other => (0, other.to_string()),
                });
                format!("{sql}: {out}{error:?}")
            }

            pub fn all(db: &Connection, statements: &[&str]) -> Log {
                statements.iter().map(|sql| run(db, sql)).collect()
            }

            fn word<T>(outcome: Result<T>) -> String {
                outcome.map_or_else(|e| e.to_string(), |_| "done".to_owned())
            }

            /// Each statement with what the hooks are told.
            pub fn hooks(before: &[&str], statements: &[&str]) -> Log {
                let mut db = open();
                for sql in before {
                    db.execute_batch(sql).unwrap();
                }
                let log: Arc<Mutex<Log>> = Arc::default();
                let told = || {
                    let log = Arc::clone(&log);
                    move |what: String| log.lock().unwrap().push(what)
                };
                let (commit, rollback, update) = (told(), told(), told());
                db.commit_hook(Some(move || {
                    commit("commit".to_owned());
                    false
                }))
                .unwrap();
                db.rollback_hook(Some(move || rollback("rollback".to_owned())))
                    .unwrap();
                db.update_hook(Some(move |action: Action, db: &str, table: &str, rowid| {
                    update(format!("{action:?} {db}.{table} {rowid}"));
                }))
                .unwrap();
                let mut all = Log::new();
                for sql in statements {
                    let outcome = word(db.execute_batch(sql));
                    let told = std::mem::take(&mut *log.lock().unwrap());
                    all.push(format!("{sql}: {told:?} {outcome}"));
                }
                all
            }

            /// The names of databases where a program gives them.
            pub fn names() -> Log {
                let (db, mut log) = (open(), Log::new());
                db.execute_batch(
                    "ATTACH ':memory:' AS Xx; CREATE TABLE t (a, b); CREATE TEMP TABLE t (c, d);
                     CREATE TABLE xx.t (e, f); CREATE TABLE xx.only (g);
                     CREATE TEMP VIEW v AS SELECT e, g FROM xx.t, only",
                )
                .unwrap();
                for number in 0..4 {
                    log.push(format!("{:?}", db.db_name(number).map_err(|e| e.to_string())));
                }
                for name in ["main", "temp", "xx", "nope"] {
                    let found = db.is_readonly(name).map_err(|e| e.to_string());
                    log.push(format!("{name} {found:?}"));
                    for (table, column) in [("t", "e"), ("t", "c"), ("only", "g")] {
                        let in_it = db.column_exists(Some(name), table, column).unwrap();
                        let anywhere = db.column_exists(None, table, column).unwrap();
                        let table = db.table_exists(Some(name), table).unwrap();
                        log.push(format!("{in_it} {anywhere} {table}"));
                    }
                }
                let sql = "SELECT m.a, t.c, xx.t.f, 1, v.e, v.g FROM main.t m, t, xx.t, v";
                for column in db.prepare(sql).unwrap().columns_with_metadata() {
                    let place = (column.database_name(), column.table_name());
                    log.push(format!("{place:?} {:?}", column.origin_name()));
                }
                db.execute_batch("BEGIN; INSERT INTO xx.t VALUES (1, 2)").unwrap();
                for name in ["temp", "xx", "nope"] {
                    let state = db.transaction_state(Some(name)).map_err(|e| e.to_string());
                    log.push(format!("{name} {state:?}"));
                }
                log
            }

            /// Handles of blobs, and what they are told that they are not in.
            pub fn blobs() -> Log {
                let (db, mut log) = (open(), Log::new());
                db.execute_batch(
                    "ATTACH ':memory:' AS x; CREATE TABLE t (a); INSERT INTO t VALUES ('main');
                     CREATE TEMP TABLE t (a); INSERT INTO temp.t VALUES ('temporary');
                     CREATE TABLE x.t (a); INSERT INTO x.t VALUES ('attached')",
                )
                .unwrap();
                for place in ["main", "temp", "X", "nope"] {
                    let written = db.blob_open(place, "t", "a", 1, false);
                    let written = written.and_then(|mut blob| {
                        db.execute_batch("INSERT INTO t VALUES (1)")?;
                        blob.write_at(b"++", 1)
                    });
                    log.push(word(written));
                    log.push(word(db.blob_open(place, "u", "a", 1, true)));
                }
                db.execute_batch("BEGIN; SAVEPOINT s").unwrap();
                let written = db.blob_open("x", "t", "a", 1, false);
                log.push(word(written.and_then(|mut blob| blob.write_at(b"##", 0))));
                log.push(run(&db, "SELECT * FROM x.t"));
                db.execute_batch("ROLLBACK TO s; COMMIT").unwrap();
                log.extend(all(&db, &["SELECT a FROM main.t", "SELECT a FROM t", "SELECT a FROM x.t"]));
                for read_only in [true, false] {
                    db.execute_batch("ATTACH ':memory:' AS y; CREATE TABLE y.u (a); INSERT INTO u VALUES ('u')")
                        .unwrap();
                    let blob = db.blob_open("y", "u", "a", 1, read_only).unwrap();
                    log.push(run(&db, "DETACH y"));
                    drop(blob);
                    log.push(run(&db, "DETACH y"));
                }
                log
            }

            /// Copies from and to databases beside the main one.
            pub fn copies() -> Log {
                let dir = tempfile::tempdir().unwrap();
                let (mut db, mut log) = (open(), Log::new());
                db.execute_batch(
                    "ATTACH ':memory:' AS x; CREATE TABLE x.u (a UNIQUE); INSERT INTO x.u VALUES (7);
                     CREATE TABLE m (a); INSERT INTO m VALUES (1);
                     CREATE TEMP TABLE w (a); INSERT INTO w VALUES (2);
                     CREATE TEMP TRIGGER tr AFTER INSERT ON m BEGIN INSERT INTO w VALUES (new.a); END",
                )
                .unwrap();
                let mut open = Vec::new();
                for name in ["main", "temp", "x", "nope"] {
                    let path = dir.path().join(name);
                    log.push(word(db.backup(name, &path, NO_PROGRESS)));
                    if name != "nope" && name != "temp" {
                        open.push(Connection::open(path).unwrap());
                    }
                }
                let schema = "SELECT type, name, tbl_name FROM sqlite_schema ORDER BY 2";
                log.extend(open.iter().map(|copy| run(copy, schema)));
                drop(open);
                for (name, from) in [("x", "main"), ("main", "x"), ("nope", "x")] {
                    log.push(word(db.restore(name, dir.path().join(from), NO_PROGRESS)));
                    let found = ["SELECT * FROM m", "SELECT * FROM u", "SELECT * FROM w"];
                    log.extend(all(&db, &found));
                }
                db.execute_batch("BEGIN; INSERT INTO w VALUES (3)").unwrap();
                log.push(word(db.backup("main", dir.path().join("beside"), NO_PROGRESS)));
                db.execute_batch("ROLLBACK").unwrap();
                let from = Connection::open(dir.path().join("main")).unwrap();
                for name in ["temp", "x", "nope"] {
                    let copied = Backup::new_with_names(&from, "main", &mut db, name);
                    log.push(word(copied.and_then(|it| it.step(-1))));
                    log.extend(all(&db, &["SELECT * FROM temp.m", "SELECT * FROM x.m"]));
                }
                log
            }
        }
    };
}

programs!(ours, fulgurite);
programs!(theirs, rusqlite);

#[track_caller]
fn same(ours: &[String], theirs: &[String]) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[track_caller]
fn same_answers(statements: &[&str]) {
    let ours = ours::all(&ours::open(), statements);
    same(&ours, &theirs::all(&theirs::open(), statements));
}

/// The hook was told `main` of all tables.
#[test]
fn hooks_are_told_of_databases_by_their_names() {
    let before = [
        "ATTACH ':memory:' AS Other; CREATE TABLE t (a); CREATE TEMP TABLE t (a INTEGER PRIMARY KEY, b);
         CREATE TABLE other.t (a); CREATE TABLE log (a)",
        "CREATE TEMP TRIGGER tr AFTER INSERT ON other.t BEGIN
            INSERT INTO log VALUES (new.a); UPDATE temp.t SET b = new.a; INSERT INTO main.t VALUES (1);
         END",
    ];
    let statements = [
        "INSERT INTO t VALUES (5, 'x'), (6, 'y')",
        "INSERT INTO other.t VALUES (1)",
        "INSERT INTO main.t VALUES (1)",
        "UPDATE temp.t SET b = 3 WHERE a = 5",
        "DELETE FROM other.t WHERE a = 1",
        "INSERT INTO other.t VALUES (fail(3))",
        "BEGIN; INSERT INTO t VALUES (7, fail(3))",
        "ROLLBACK",
        "ATTACH ':memory:' AS later; CREATE TABLE later.s (a)",
        "INSERT INTO s VALUES (1)",
        "DETACH later",
        "ATTACH ':memory:' AS again; CREATE TABLE again.s (a)",
        "INSERT INTO s VALUES (1)",
        "VACUUM; SELECT * FROM t",
    ];
    same(
        &ours::hooks(&before, &statements),
        &theirs::hooks(&before, &statements),
    );
    // The temporary database is made behind the hook's back.
    let statements = ["CREATE TEMP TABLE w (a)", "INSERT INTO w VALUES (1), (2)"];
    same(
        &ours::hooks(&[], &statements),
        &theirs::hooks(&[], &statements),
    );
}

/// Transactions that changed the schema of another database, or a number in it, were none
/// that the hook was asked about.
#[test]
fn transactions_that_write_to_other_databases_alone_are_asked_about() {
    let before = ["ATTACH ':memory:' AS x"];
    let statements = [
        "BEGIN; CREATE TEMP TABLE t (a); COMMIT",
        "BEGIN; CREATE TABLE x.t (a); COMMIT",
        "BEGIN; ALTER TABLE x.t ADD CHECK (a > 0); ROLLBACK",
        "BEGIN; PRAGMA x.user_version = 3; COMMIT",
        "BEGIN; PRAGMA user_version = 3; COMMIT",
        "BEGIN; SELECT * FROM x.t; COMMIT",
        "BEGIN; DROP TABLE temp.t; COMMIT",
    ];
    same(
        &ours::hooks(&before, &statements),
        &theirs::hooks(&before, &statements),
    );
}

#[test]
fn databases_by_their_names() {
    same(&ours::names(), &theirs::names());
}

#[test]
fn blobs_of_all_databases() {
    same(&ours::blobs(), &theirs::blobs());
}

#[test]
fn copies_of_all_databases() {
    same(&ours::copies(), &theirs::copies());
}

/// What the temporary database says the connection has said itself: it may call what the
/// schemas of files may not.
#[test]
fn temporary_texts_are_trusted() {
    same_answers(&[
        "CREATE TABLE t (a, b)",
        "INSERT INTO t VALUES (1, 2), (2, 3)",
        "CREATE TEMP VIEW v AS SELECT direct(a) x, total(b) OVER (ORDER BY a) y FROM t",
        "SELECT * FROM v",
        "CREATE VIEW w AS SELECT direct(a) FROM t",
        "SELECT * FROM w",
        "CREATE TEMP VIEW u AS SELECT * FROM w",
        "SELECT * FROM u",
        "CREATE TEMP TABLE k (a DEFAULT (direct(3)), c AS (direct(a)), CHECK (direct(a) < 9))",
        "CREATE INDEX temp.i ON k (direct(a)) WHERE direct(a) > 0",
        "INSERT INTO k DEFAULT VALUES",
        "INSERT INTO k VALUES (9)",
        "SELECT * FROM k WHERE direct(a) = 3 AND direct(a) > 0",
        "ALTER TABLE k ADD CHECK (direct(a) < 8)",
        "REINDEX temp.i",
        "PRAGMA integrity_check",
        "SELECT * FROM pragma_integrity_check('k', 'temp')",
        "CREATE TEMP TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET b = direct(new.b) + 1; END",
        "INSERT INTO t VALUES (5, 6)",
        "CREATE TABLE bad (a CHECK (direct(a)))",
        "CREATE TRIGGER bad AFTER DELETE ON t BEGIN SELECT direct(old.a); END",
        "DELETE FROM t WHERE a = 5",
        "PRAGMA trusted_schema = OFF",
        "CREATE TEMP VIEW v2 AS SELECT twice(a) FROM t",
        "SELECT * FROM v2",
        "SELECT * FROM v",
        "CREATE TABLE n (a DEFAULT (twice(3)))",
        "INSERT INTO n DEFAULT VALUES",
        "CREATE TEMP TABLE m (a DEFAULT (twice(3)))",
        "INSERT INTO m DEFAULT VALUES",
        "SELECT * FROM m",
    ]);
}

/// A view that calls a window function of the program, and one that it has removed: ALTER
/// TABLE said that there was no such function.
#[test]
fn tables_are_changed_beside_texts_that_call_functions_of_the_program() {
    same_answers(&[
        "CREATE TABLE t (a, b)",
        "ATTACH ':memory:' AS x",
        "CREATE TABLE x.t (a CHECK (twice(a) < 10), b COLLATE backward)",
        "INSERT INTO x.t VALUES (1, 'a'), (2, 'b')",
        "CREATE TEMP VIEW v AS SELECT total(a) FILTER (WHERE b > 0) OVER (PARTITION BY b ORDER BY a)
            FROM main.t",
        "CREATE TEMP VIEW w AS SELECT total(a ORDER BY b) FILTER (WHERE a > 0), twice(a) FROM main.t",
        "CREATE TEMP VIEW z AS SELECT gone(a) OVER w, gone(b) FROM x.t WINDOW w AS (ORDER BY b)",
        "ALTER TABLE main.t RENAME a TO aa",
        "ALTER TABLE main.t RENAME b TO bb",
        "ALTER TABLE main.t RENAME TO tt",
        "ALTER TABLE x.t RENAME b TO bb",
        "SELECT sql FROM temp.sqlite_schema",
        "SELECT * FROM v",
        "ALTER TABLE x.t ADD CONSTRAINT c CHECK (twice(a) < 4)",
        "ALTER TABLE x.t ADD CONSTRAINT c CHECK (fail(a + 1) < 10)",
        "ALTER TABLE x.t ADD CONSTRAINT c CHECK (fail(a + 2) < 10)",
        "ALTER TABLE x.t ADD CONSTRAINT c CHECK (bb < 'A')",
        "INSERT INTO x.t VALUES (3, 'A')",
        "ALTER TABLE x.t DROP CONSTRAINT c",
        "REINDEX backward",
        "REINDEX x.backward",
        "REINDEX forward",
        "SELECT bb FROM x.t ORDER BY bb",
    ]);
}

/// The same where they compare by a collation of the program.
#[test]
fn tables_are_changed_beside_texts_that_compare_by_collations_of_the_program() {
    same_answers(&[
        "CREATE TABLE t (a COLLATE backward, b)",
        "INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3)",
        "CREATE INDEX i ON t (b) WHERE b < 'x' COLLATE backward",
        "CREATE VIEW v AS SELECT a FROM t WHERE a < 'b' AND twice(a) > 1",
        "CREATE VIEW v2 AS SELECT a, total(b) FROM t GROUP BY a HAVING total(b) > 1",
        "CREATE VIEW v3 AS SELECT a FROM t WHERE b COLLATE backward < 'x'",
        "CREATE TEMP VIEW v4 AS SELECT direct(a) FROM t WHERE a < 'b' COLLATE backward",
        "CREATE TEMP TRIGGER tr AFTER UPDATE OF a ON t WHEN new.a < old.a COLLATE backward
            BEGIN SELECT total(new.a), twice(new.b); END",
        "ALTER TABLE t RENAME a TO aa",
        "ALTER TABLE t RENAME TO tt",
        "SELECT sql FROM sqlite_schema",
        "SELECT sql FROM temp.sqlite_schema",
        "ALTER TABLE tt DROP COLUMN b",
        "SELECT aa FROM tt ORDER BY aa",
    ]);
}

/// `pragma_integrity_check` knew no collation of the program: it found faults where there were
/// none, and the next statement failed.
#[test]
fn checks_compare_by_collations_of_the_program() {
    same_answers(&[
        "CREATE TABLE t (a COLLATE backward CHECK (a < 'zz'))",
        "CREATE TEMP TABLE u (a COLLATE backward CHECK (a < 'm'))",
        "INSERT INTO t VALUES ('zza'), ('zzz')",
        "INSERT INTO u VALUES ('n'), ('a')",
        "INSERT INTO u VALUES ('n'), ('o')",
        "SELECT * FROM pragma_integrity_check",
        "SELECT 1",
        "SELECT * FROM pragma_quick_check('u', 'temp')",
        "SELECT s.name, i.* FROM sqlite_schema s, pragma_integrity_check(s.name) i",
        "SELECT a < 'b' FROM u, pragma_integrity_check",
    ]);
}

/// Statements over several databases are undone as one where a function of the program fails.
#[test]
fn functions_that_fail_undo_what_was_done_to_all_databases() {
    same_answers(&[
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE u (a)",
        "ATTACH ':memory:' AS x",
        "CREATE TABLE x.w (a)",
        "CREATE TEMP TRIGGER tr AFTER INSERT ON t BEGIN
            INSERT INTO x.w VALUES (new.a); INSERT INTO u VALUES (fail(new.a)); UPDATE u SET a = twice(a);
         END",
        "INSERT INTO t VALUES (1), (3)",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO t VALUES (1), (3)",
        "INSERT OR FAIL INTO t VALUES (4), (3)",
        "INSERT OR IGNORE INTO t VALUES (3)",
        "INSERT INTO u SELECT fail(value) FROM json_each('[1, 2, 3]')",
        "SELECT * FROM t",
        "SELECT * FROM u",
        "SELECT * FROM x.w",
        "ROLLBACK TO s",
        "SELECT count(*) FROM t, u, x.w",
        "INSERT INTO t VALUES (5)",
        "INSERT OR ROLLBACK INTO t VALUES (3)",
        "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u), (SELECT count(*) FROM w)",
        "INSERT INTO u VALUES (1) RETURNING twice(a), fail(3)",
        "SELECT * FROM u",
    ]);
}

/// A hook that asks its connection while a blob is written waited for itself.
#[test]
fn a_hook_of_a_blob_does_not_wait_for_itself() {
    type Shared = Arc<parking_lot::ReentrantMutex<std::cell::RefCell<Connection>>>;
    let db: Shared =
        Arc::new(std::cell::RefCell::new(Connection::open_in_memory().unwrap()).into());
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let (weak, told) = (Arc::downgrade(&db), Arc::clone(&answers));
    let db = db.lock();
    let table = "CREATE TEMP TABLE t (a); INSERT INTO t VALUES ('body')";
    db.borrow().execute_batch(table).unwrap();
    let ask = move || {
        if let Some(db) = weak.upgrade() {
            let outcome = db.lock().borrow().execute_batch("SELECT * FROM t");
            told.lock().unwrap().push(outcome.unwrap_err().to_string());
        }
        false
    };
    db.borrow_mut().commit_hook(Some(ask)).unwrap();
    let db = db.borrow();
    let mut blob = db.blob_open("temp", "t", "a", 1, false).unwrap();
    blob.write_at(b"B", 0).unwrap();
    let misuse = "bad parameter or other API misuse";
    assert_eq!(*answers.lock().unwrap(), [misuse]);
}
