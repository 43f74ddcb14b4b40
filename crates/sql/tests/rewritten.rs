//! Rows that are written as they are: nothing is committed, and all else is as ever.

mod support;

use fulgurite_disk::MemoryDisk;
use fulgurite_sql::session::{Engine, Session};
use fulgurite_store::{Options, Store};
use std::sync::Arc;
use support::{must, run};

const TABLES: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, n, u TEXT UNIQUE);
    CREATE INDEX t_n ON t(n);
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40)
    INSERT INTO t SELECT i, i % 5, 'u' || i FROM c;
    CREATE TABLE plain(id INTEGER PRIMARY KEY, v);
    INSERT INTO plain SELECT id, n FROM t;
    CREATE TABLE generated(id INTEGER PRIMARY KEY, a, b AS (a + 1) STORED);
    INSERT INTO generated(id, a) VALUES (1, 1);
    CREATE TABLE keyed(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
    INSERT INTO keyed VALUES ('a', 1), ('b', 2);
    CREATE TABLE noted(x);
    CREATE TABLE watched(id INTEGER PRIMARY KEY, v);
    INSERT INTO watched VALUES (1, 1);
    CREATE TRIGGER watch AFTER UPDATE ON watched BEGIN
      INSERT INTO noted VALUES (new.v); END";

struct Database {
    store: Store,
    engine: Engine,
}

impl Database {
    fn new() -> Self {
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, "/test.db", Options::default()).unwrap();
        let engine = Engine::open(store.clone()).unwrap();
        must(&engine.session(), TABLES);
        Self { store, engine }
    }

    /// How many records this leaves in the log.
    fn records(&self, session: &Session, sql: &str) -> u64 {
        let records = || self.store.stats().log.unwrap().records;
        let before = records();
        must(session, sql);
        records() - before
    }
}

/// Each of these changes nothing.
const SAME: [&str; 12] = [
    "UPDATE t SET n = n WHERE id = 7",
    "UPDATE t SET n = 2 WHERE id = 7",
    "UPDATE t SET u = 'u7', n = n + 0 WHERE u = 'u7'",
    "UPDATE t SET n = n",
    "UPDATE plain SET v = v WHERE id BETWEEN 3 AND 30",
    "UPDATE plain SET v = v + 0, id = id WHERE id < 5",
    "INSERT INTO t VALUES (7, 2, 'u7') ON CONFLICT (id) DO UPDATE SET n = excluded.n",
    "INSERT INTO t(n, u) VALUES (2, 'u7') ON CONFLICT (u) DO UPDATE SET n = excluded.n",
    "INSERT OR REPLACE INTO plain VALUES (7, 2)",
    "REPLACE INTO t VALUES (7, 2, 'u7')",
    "UPDATE generated SET a = 1",
    "UPDATE t SET n = 2 WHERE id = 7 RETURNING *",
];

/// A row that was written as it was took a record and a sync; SQLite, too, finds that no
/// page has changed.
#[test]
fn a_row_that_stays_takes_no_commit() {
    let database = Database::new();
    let session = database.engine.session();
    let before = run(
        &session,
        "SELECT * FROM t; SELECT * FROM plain; SELECT * FROM generated",
    );
    for sql in SAME {
        assert_eq!(database.records(&session, sql), 0, "{sql}");
        for begin in ["BEGIN", "BEGIN IMMEDIATE"] {
            let sql = format!("{begin}; {sql}; COMMIT");
            assert_eq!(database.records(&session, &sql), 0, "{sql}");
        }
    }
    let all = format!("BEGIN; {}; COMMIT", SAME.join("; "));
    assert_eq!(database.records(&session, &all), 0);
    let after = run(
        &session,
        "SELECT * FROM t; SELECT * FROM plain; SELECT * FROM generated",
    );
    assert_eq!(after, before);
    assert_eq!(run(&session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// What counts rows, and who is told of them, knows no difference.
#[test]
fn a_row_that_stays_counts_as_changed() {
    let database = Database::new();
    let session = database.engine.session();
    let sql = "UPDATE t SET n = n; SELECT changes();
        UPDATE t SET n = n WHERE id < 4 RETURNING id, n;
        UPDATE watched SET v = v; SELECT x FROM noted";
    assert_eq!(run(&session, sql), ["40", "1,1", "2,2", "3,3", "1"]);
    // What stands beside it is committed.
    assert_eq!(database.records(&session, "UPDATE watched SET v = v"), 1);
    assert_eq!(run(&session, "SELECT count(*) FROM noted"), ["2"]);
}

/// Rows whose large columns lie apart were always written, whether they were read or not.
#[test]
fn a_large_row_that_stays_takes_no_commit() {
    let database = Database::new();
    let session = database.engine.session();
    let insert =
        "INSERT INTO doc SELECT id, 7, printf('%*s', 9000 * id, 'end'), zeroblob(5000) FROM t
        WHERE id < 9";
    must(
        &session,
        &format!("CREATE TABLE doc(id INTEGER PRIMARY KEY, n, body TEXT, b BLOB); {insert}"),
    );
    let shown = "SELECT id, n, hex(body), b FROM doc";
    let before = run(&session, shown);
    let same = [
        "UPDATE doc SET n = 7",
        "UPDATE doc SET n = n + 0 WHERE id = 3",
        "UPDATE doc SET body = printf('%*s', 9000 * id, 'end') WHERE id = 2",
        "UPDATE doc SET body = body || '', b = zeroblob(5000)",
        "UPDATE doc SET n = 7, b = zeroblob(5000), body = printf('%*s', 9000, 'end') WHERE id = 1",
        "UPDATE doc SET n = 7, body = printf('%*s', 9000, 'end') WHERE id = 1 RETURNING id",
        "REPLACE INTO doc VALUES (4, 7, printf('%*s', 36000, 'end'), zeroblob(5000))",
        "INSERT INTO doc SELECT * FROM doc WHERE true
         ON CONFLICT DO UPDATE SET body = excluded.body, n = excluded.n",
    ];
    for sql in same {
        assert_eq!(database.records(&session, sql), 0, "{sql}");
        let sql = format!("BEGIN; {sql}; COMMIT");
        assert_eq!(database.records(&session, &sql), 0, "{sql}");
    }
    assert_eq!(run(&session, shown), before);
    let other = [
        ("UPDATE doc SET n = 8 WHERE id = 3", "n = 8"),
        (
            "UPDATE doc SET body = printf('%*s', 18000, 'enD') WHERE id = 2",
            "substr(body, -1) = 'D'",
        ),
        ("UPDATE doc SET body = '' WHERE id = 4", "body = ''"),
        ("UPDATE doc SET b = x'' WHERE id = 5", "b = x''"),
        ("UPDATE doc SET b = '' WHERE id = 5", "b = ''"),
        (
            "UPDATE doc SET b = zeroblob(5001) WHERE id = 6",
            "length(b) = 5001",
        ),
        (
            "UPDATE doc SET n = 7, body = x'20' WHERE id = 7",
            "body = x'20'",
        ),
    ];
    for (sql, is_now) in other {
        assert_eq!(database.records(&session, sql), 1, "{sql}");
        let count = format!("SELECT count(*) FROM doc WHERE {is_now}");
        assert_eq!(run(&session, &count), ["1"], "{sql}");
    }
    assert_eq!(run(&session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// Each of these changes something, if only a value's type or sign.
#[test]
fn what_differs_at_all_is_written() {
    let database = Database::new();
    let session = database.engine.session();
    for (sql, shown, now) in [
        (
            "UPDATE plain SET v = 2.0 WHERE id = 7",
            "SELECT v FROM plain WHERE id = 7",
            "2.0",
        ),
        (
            "UPDATE plain SET v = '2' WHERE id = 7",
            "SELECT v FROM plain WHERE id = 7",
            "'2'",
        ),
        (
            "UPDATE plain SET v = 0.0 WHERE id = 8",
            "SELECT v FROM plain WHERE id = 8",
            "0.0",
        ),
        (
            "UPDATE plain SET v = x'32' WHERE id = 7",
            "SELECT v FROM plain WHERE id = 7",
            "x32",
        ),
        (
            "UPDATE plain SET v = v || '' WHERE id = 9",
            "SELECT v FROM plain WHERE id = 9",
            "'4'",
        ),
        (
            "UPDATE plain SET v = CASE id WHEN 30 THEN 9 ELSE v END WHERE id BETWEEN 11 AND 30",
            "SELECT sum(v) FROM plain WHERE id BETWEEN 11 AND 30",
            "49",
        ),
        (
            "REPLACE INTO t VALUES (7, 3, 'u7')",
            "SELECT n FROM t WHERE u = 'u7'",
            "3",
        ),
        ("UPDATE generated SET a = 2", "SELECT b FROM generated", "3"),
        (
            "UPDATE keyed SET v = 3 WHERE k = 'a'",
            "SELECT v FROM keyed WHERE k = 'a'",
            "3",
        ),
    ] {
        assert_eq!(database.records(&session, sql), 1, "{sql}");
        assert_eq!(run(&session, shown), [now], "{sql}");
    }
    assert_eq!(run(&session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// Under `snapshot` two that write the same row must not both commit, though it stays.
#[test]
fn under_snapshot_a_row_is_written_as_it_is() {
    let database = Database::new();
    let (one, other) = (database.engine.session(), database.engine.session());
    must(&one, "PRAGMA isolation_level = snapshot");
    must(&one, "BEGIN; UPDATE plain SET v = v WHERE id = 7");
    must(&other, "UPDATE plain SET v = 100 WHERE id = 7");
    let told = run(&one, "COMMIT");
    assert!(
        told.iter().any(|line| line.starts_with("error 517")),
        "{told:?}"
    );
}
