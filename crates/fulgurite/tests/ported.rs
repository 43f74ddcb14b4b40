//! What a program that comes from rusqlite asks beside its statements: whether others have
//! changed the database, what a statement or a transaction is, what a setting was, what is
//! wrong with a text or a path. The same program is run with either crate, and must be told
//! the same.

use std::path::Path;

/// The program, over the crate `$db`.
macro_rules! program {
    ($module:ident, $db:ident) => {
        mod $module {
            use std::path::Path;

            use $db::types::Value;
            use $db::{Connection, Error, OpenFlags, Result, TransactionBehavior};

            type Log = Vec<String>;

            fn said<T: std::fmt::Debug>(outcome: Result<T>) -> String {
                match outcome {
                    Ok(value) => format!("{value:?}"),
                    Err(Error::SqliteFailure(error, text)) => {
                        format!("{} {}", error.extended_code, text.unwrap_or_default())
                    }
                    Err(Error::SqlInputError { msg, offset, .. }) => format!("{msg} at {offset}"),
                    Err(other) => format!("{other:?}"),
                }
            }

            fn open(folder: &Path) -> Connection {
                let db = Connection::open(folder.join("a.db")).unwrap();
                db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF")
                    .unwrap();
                db
            }

            fn version(db: &Connection) -> i64 {
                db.query_row("PRAGMA data_version", [], |row| row.get(0))
                    .unwrap()
            }

            /// After each statement of either connection, which of both are told that
            /// another one has changed the database.
            pub fn changes_of_others(folder: &Path) -> Log {
                let both = [open(folder), open(folder)];
                both[0].execute_batch("CREATE TABLE t (a)").unwrap();
                let mut before = both.each_ref().map(version);
                let mut log = Log::new();
                for (who, sql) in [
                    (0, "SELECT count(*) FROM t"),
                    (0, "INSERT INTO t VALUES (1)"),
                    (1, "INSERT INTO t VALUES (2)"),
                    (0, "UPDATE t SET a = 5 WHERE 0"),
                    (
                        0,
                        "BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT",
                    ),
                    (1, "CREATE TABLE u (a)"),
                    (0, "INSERT INTO u VALUES (1); DROP TABLE u"),
                    (1, "BEGIN; INSERT INTO t VALUES (3); ROLLBACK"),
                    (1, "PRAGMA user_version = 3"),
                    (0, "CREATE TEMP TABLE x (a); INSERT INTO x VALUES (1)"),
                    (1, "DELETE FROM t; PRAGMA wal_checkpoint"),
                    (0, "BEGIN; SELECT count(*) FROM t"),
                    (1, "INSERT INTO t VALUES (9)"),
                    (0, "COMMIT"),
                    (1, "BEGIN IMMEDIATE; INSERT INTO t VALUES (7)"),
                    (1, "COMMIT"),
                    (0, "BEGIN IMMEDIATE"),
                    (0, "INSERT INTO t VALUES (7); COMMIT; SELECT * FROM t"),
                    (1, "ATTACH ':memory:' AS m; CREATE TABLE m.t (a)"),
                    (
                        1,
                        "BEGIN; INSERT INTO m.t VALUES (1); INSERT INTO main.t VALUES (1); COMMIT",
                    ),
                ] {
                    both[who].execute_batch(sql).unwrap();
                    let now = both.each_ref().map(version);
                    let told = [now[0] != before[0], now[1] != before[1]];
                    log.push(format!("{who}: {sql}: {told:?}"));
                    before = now;
                }
                log
            }

            pub fn statements(folder: &Path) -> Log {
                let db = open(folder);
                db.execute_batch("CREATE TABLE t (a)").unwrap();
                let mut log = Log::new();
                for sql in [
                    "SELECT 1",
                    "INSERT INTO t VALUES (1)",
                    "PRAGMA user_version",
                    "PRAGMA user_version = 1",
                    "PRAGMA application_id = 1",
                    "PRAGMA foreign_keys = 1",
                    "PRAGMA wal_checkpoint",
                    "BEGIN",
                    "BEGIN IMMEDIATE",
                    "VACUUM",
                ] {
                    let stmt = db.prepare(sql).unwrap();
                    log.push(format!("{sql}: {}", stmt.readonly()));
                }
                let mut stmt = db.prepare("SELECT ?1, ?2").unwrap();
                stmt.raw_bind_parameter(1, vec![0_u8, 0xab]).unwrap();
                log.push(format!("{:?}", stmt.expanded_sql()));
                log
            }

            pub fn transactions(folder: &Path) -> Log {
                let mut db = open(folder);
                db.execute_batch("CREATE TABLE t (a)").unwrap();
                let state = |db: &Connection| {
                    let of = |name| said(db.transaction_state(name));
                    format!("{} {}", of(None::<&str>), of(Some("main")))
                };
                let mut log = Log::new();
                for behavior in [
                    TransactionBehavior::Deferred,
                    TransactionBehavior::Immediate,
                ] {
                    let tx = db.transaction_with_behavior(behavior).unwrap();
                    log.push(state(&tx));
                    tx.query_row("SELECT count(*) FROM t", [], |_| Ok(()))
                        .unwrap();
                    log.push(state(&tx));
                    tx.execute("INSERT INTO t VALUES (1)", []).unwrap();
                    log.push(state(&tx));
                }
                log.push(state(&db));
                log
            }

            /// As programs set them: by a call that wants no row, and one that wants one.
            pub fn settings(folder: &Path) -> Log {
                let db = open(folder);
                let mut log = Log::new();
                for sql in [
                    "PRAGMA encoding = 'UTF-8'",
                    "PRAGMA encoding",
                    "PRAGMA cache_size = 100",
                    "PRAGMA synchronous = NORMAL",
                    "PRAGMA temp_store = 0",
                    "PRAGMA analysis_limit = 0",
                    "PRAGMA journal_size_limit = -1",
                    "PRAGMA mmap_size = 0",
                    "PRAGMA threads = 0",
                    "PRAGMA wal_autocheckpoint",
                    "PRAGMA wal_autocheckpoint = 1000",
                    "PRAGMA max_page_count",
                    "PRAGMA max_page_count = 4294967294",
                ] {
                    let value = db.query_row(sql, [], |row| row.get::<_, Value>(0));
                    log.push(format!(
                        "{sql}: {} {}",
                        said(db.execute(sql, [])),
                        said(value)
                    ));
                }
                for sql in [
                    "PRAGMA locking_mode = EXCLUSIVE",
                    "PRAGMA secure_delete = ON",
                ] {
                    log.push(format!(
                        "{sql}: {}",
                        said(db.query_row(sql, [], |_| Ok(())))
                    ));
                }
                log
            }

            pub fn names(folder: &Path) -> Log {
                let db = open(folder);
                let tables =
                    "CREATE TABLE t (a, \"b c\"); CREATE TABLE w (k PRIMARY KEY) WITHOUT ROWID";
                db.execute_batch(tables).unwrap();
                let mut log = Log::new();
                for table in [
                    "t",
                    "nix",
                    "sqlite_schema",
                    "sqlite_master",
                    "sqlite_temp_schema",
                ] {
                    let databases = [None, Some("main"), Some("temp")];
                    let found = databases.map(|database| said(db.table_exists(database, table)));
                    log.push(format!("{table}: {found:?}"));
                }
                for (table, column) in [
                    ("t", "A"),
                    ("t", "b c"),
                    ("t", "nix"),
                    ("t", "rowid"),
                    ("t", "OID"),
                    ("w", "k"),
                    ("w", "rowid"),
                    ("nix", "rowid"),
                ] {
                    let found = said(db.column_exists(None, table, column));
                    log.push(format!("{table}.{column}: {found}"));
                }
                log
            }

            /// What is wrong with a text, and where.
            pub fn texts(folder: &Path) -> Log {
                let db = open(folder);
                let tables = "CREATE TABLE t (a); CREATE VIEW v AS SELECT 1;
                    CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END";
                db.execute_batch(tables).unwrap();
                let mut log = Log::new();
                for sql in [
                    "SELECT ?0",
                    "SELECT ?32767",
                    "SELECT #1",
                    "SELECT 1 + #23",
                    "SELECT abs(1) OVER ()",
                    "SELECT abs(1) FILTER (WHERE 1)",
                    "SELECT abs(1 ORDER BY 1)",
                    "SELECT likelihood(1, 2)",
                    "CREATE VIEW v AS SELECT 1",
                    "CREATE TABLE v (a)",
                    "CREATE TABLE t (a)",
                    "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
                    "SELECT 1; nix",
                    "SELECT 1; \n nix",
                    "SELECT 1 AS one /* open",
                    "SELECT 1 AS one /* closed */ -- line\n /* open",
                    "SELECT 1 AS one; /* open",
                    "/* open",
                    "SELECT 1 AS one /* closed */ nix nix",
                    "\u{feff}SELECT 1 AS one",
                    " \n\u{feff} SELECT nix",
                    "\u{feff}",
                ] {
                    let value = db.query_row(sql, [], |row| row.get::<_, Value>(0));
                    log.push(format!("{sql:?}: {}", said(value)));
                }
                let batch = "CREATE TABLE k (a); INSERT INTO k VALUES (1); /* and so on";
                log.push(said(db.execute_batch(batch)));
                log.push(said(db.execute_batch(
                    "\u{feff}INSERT INTO k VALUES (2); DELETE FROM k",
                )));
                log
            }

            pub fn paths(folder: &Path) -> Log {
                drop(open(folder));
                let there = folder.join("a.db").display().to_string();
                let absent = folder.join("b.db").display().to_string();
                let read = OpenFlags::SQLITE_OPEN_READ_ONLY;
                let write = OpenFlags::SQLITE_OPEN_READ_WRITE;
                let create = OpenFlags::SQLITE_OPEN_CREATE;
                let uri = OpenFlags::SQLITE_OPEN_URI;
                let mut log = Log::new();
                for (path, flags) in [
                    (absent.clone(), read),
                    (absent.clone(), write),
                    (format!("{absent}/c.db"), write | create),
                    (there.clone(), read | create),
                    (there.clone(), read | write),
                    (there.clone(), create),
                    (format!("file:{absent}?mode=ro"), write | create | uri),
                    (format!("file:{there}?mode=rwc"), read | uri),
                    (format!("file:{there}?mode=nix"), write | uri),
                    (format!("file:{there}?cache=nix"), write | uri),
                    (format!("file:{there}?cache=private"), write | uri),
                    (format!("file:{there}?vfs=nix"), write | uri),
                    (format!("file:{there}?vfs=unix"), write | uri),
                    (format!("file://host{there}"), write | uri),
                    (format!("file:{there}?immutable=1"), write | create | uri),
                    (format!("file:{there}?immutable=0"), write | create | uri),
                ] {
                    let opened = Connection::open_with_flags(&path, flags);
                    log.push(format!(
                        "{path} {}: {}",
                        flags.bits(),
                        said(opened.and_then(|db| db.is_readonly("main")))
                    ));
                }
                let folder = folder.display().to_string();
                log.into_iter()
                    .map(|line| line.replace(&folder, ""))
                    .collect()
            }

            /// Between two rows of a query somebody interrupts.
            pub fn interrupts(folder: &Path) -> Log {
                let db = open(folder);
                db.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")
                    .unwrap();
                let mut stmt = db.prepare("SELECT a FROM t").unwrap();
                let mut log = Log::new();
                let mut rows = stmt.query([]).unwrap();
                log.push(said(rows.next().map(|row| row.is_some())));
                db.get_interrupt_handle().interrupt();
                log.push(said(
                    db.query_row("SELECT 1", [], |row| row.get::<_, i64>(0)),
                ));
                for _ in 0..2 {
                    log.push(said(rows.next().map(|row| row.is_some())));
                }
                drop(rows);
                log.push(said(
                    db.query_row("SELECT 1", [], |row| row.get::<_, i64>(0)),
                ));
                log.push(said(stmt.query_row([], |row| row.get::<_, i64>(0))));
                log
            }

            /// The same within a transaction that then goes on with a change: one that is
            /// compiled already, or a text.
            pub fn interrupts_changes(folder: &Path) -> Log {
                let db = open(folder);
                db.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")
                    .unwrap();
                let text = "INSERT INTO t VALUES (4)";
                let mut log = Log::new();
                for is_compiled in [false, true, false] {
                    db.execute_batch("BEGIN; UPDATE t SET a = a + 10").unwrap();
                    let mut insert = db.prepare(text).unwrap();
                    let mut select = db.prepare("SELECT a FROM t").unwrap();
                    let mut rows = select.query([]).unwrap();
                    log.push(said(rows.next().map(|row| row.is_some())));
                    db.get_interrupt_handle().interrupt();
                    if is_compiled {
                        log.push(said(insert.execute([])));
                    } else {
                        log.push(said(db.execute(text, [])));
                        log.push(said(db.execute_batch("SELECT 1; ROLLBACK")));
                        log.push(said(db.prepare_cached("DELETE FROM t").map(|_| ())));
                    }
                    log.push(format!("{} {}", db.is_autocommit(), db.changes()));
                    drop(rows);
                    if !db.is_autocommit() {
                        log.push(said(db.execute_batch("ROLLBACK")));
                    }
                    let sum = "SELECT sum(a) FROM t";
                    log.push(said(db.query_row(sum, [], |row| row.get::<_, i64>(0))));
                }
                log
            }
        }
    };
}

program!(ours, fulgurite);
program!(theirs, rusqlite);

#[track_caller]
fn same(ours: fn(&Path) -> Vec<String>, theirs: fn(&Path) -> Vec<String>) {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let (ours, theirs) = (ours(folders[0].path()), theirs(folders[1].path()));
    let pairs = ours
        .iter()
        .zip(&theirs)
        .filter(|(ours, theirs)| ours != theirs);
    let differ: Vec<String> = pairs.map(|(a, b)| format!("{a}\n    {b}")).collect();
    assert!(differ.is_empty(), "\n{}", differ.join("\n"));
    assert_eq!(ours.len(), theirs.len());
}

/// It was the number of the schema: who kept what it had read, and asked by `data_version`
/// whether to read it again, never heard of rows that others wrote.
#[test]
fn who_else_has_changed_the_database() {
    same(ours::changes_of_others, theirs::changes_of_others);
}

/// Commits that nothing syncs have numbers of a lease, of which some are left out.
#[test]
fn commits_of_ones_own_are_not_those_of_others() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.db");
    let both = [(); 2].map(|()| fulgurite::Connection::open(&path).expect("opens"));
    let [a, b] = &both;
    a.execute_batch("CREATE TABLE t (a)").expect("a table");
    for db in &both {
        db.execute_batch("PRAGMA synchronous = OFF").expect("sets");
    }
    let version = |db: &fulgurite::Connection| {
        let version = db.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0));
        version.expect("a number")
    };
    let mut before = both.each_ref().map(version);
    for round in 0..200 {
        for _ in 0..round {
            a.execute("INSERT INTO t VALUES (1)", []).expect("inserts");
        }
        let now = both.each_ref().map(version);
        assert_eq!(now[0], before[0], "round {round}");
        assert_eq!(now[1] != before[1], round > 0, "round {round}");
        before = now;
        if round % 7 == 0 {
            b.execute("INSERT INTO t VALUES (2)", []).expect("inserts");
            let now = both.each_ref().map(version);
            assert!(now[0] != before[0] && now[1] == before[1], "round {round}");
            before = now;
        }
    }
}

/// `PRAGMA user_version = 1` was said to leave the database as it is.
#[test]
fn what_a_statement_does() {
    same(ours::statements, theirs::statements);
}

#[test]
fn where_a_transaction_stands() {
    same(ours::transactions, theirs::transactions);
}

/// `encoding = 'UTF-8'` answered with a row of no columns, `mmap_size = 0` with none.
#[test]
fn settings_answer_as_in_sqlite() {
    same(ours::settings, theirs::settings);
}

#[test]
fn tables_and_columns_that_nobody_made() {
    same(ours::names, theirs::names);
}

#[test]
fn what_is_wrong_with_a_text() {
    same(ours::texts, theirs::texts);
}

/// A file that is said not to change was opened to be written to.
#[test]
fn what_is_wrong_with_a_path() {
    same(ours::paths, theirs::paths);
}

/// The rows that were there already were handed out, however slowly they were asked for.
#[test]
fn an_interrupt_ends_a_query_at_its_next_row() {
    same(ours::interrupts, theirs::interrupts);
}

/// A text that is to be compiled while an interrupted query has not ended yet is not, and
/// leaves its transaction open. It was compiled, began, and undid the transaction, so that
/// what a program did next was not in one. One that was compiled before does that; it left
/// what `changes()` said as it was.
#[test]
fn an_interrupt_ends_a_transaction_with_what_is_compiled_already() {
    same(ours::interrupts_changes, theirs::interrupts_changes);
}
