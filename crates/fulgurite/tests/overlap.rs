//! Overlapping transactions through SQL: unique keys, rowids, changes of the
//! schema, IMMEDIATE, the retry helper, and what is said to who loses.

use fulgurite::{Connection, Database, DropBehavior, Error, ErrorCode, ffi};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LEVELS: [&str; 2] = ["serializable", "snapshot"];

fn pair(level: &str, setup: &str) -> (Connection, Connection) {
    let database = Database::in_memory().expect("a database");
    let connect = || {
        let connection = database.connect().expect("a connection");
        connection
            .pragma_update(None, "isolation_level", level)
            .expect("the level");
        connection
    };
    let (a, b) = (connect(), connect());
    a.execute_batch(setup).expect(setup);
    (a, b)
}

fn run(connection: &Connection, sql: &str) {
    connection.execute_batch(sql).expect(sql);
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

fn lost(outcome: Result<(), Error>) -> String {
    let error = outcome.expect_err("a conflict");
    let code = error.sqlite_extended_error_code();
    assert_eq!(code, Some(ffi::SQLITE_BUSY_SNAPSHOT), "{error}");
    assert_eq!(error.to_string(), "database is locked");
    error.hint().expect("what it lost against")
}

fn is_busy(outcome: Result<(), Error>) -> bool {
    outcome.is_err_and(|e| e.sqlite_extended_error_code() == Some(ffi::SQLITE_BUSY))
}

#[test]
fn of_two_inserts_of_a_unique_key_one_wins() {
    for level in LEVELS {
        let (a, b) = pair(
            level,
            "CREATE TABLE t (id INTEGER PRIMARY KEY, mail TEXT UNIQUE)",
        );
        run(&a, "BEGIN; INSERT INTO t (mail) VALUES ('ada')");
        run(&b, "BEGIN; INSERT INTO t (mail) VALUES ('ada')");
        run(&a, "COMMIT");
        let hint = lost(b.execute_batch("COMMIT"));
        assert!(
            hint.contains("('ada') of index sqlite_autoindex_t_1 on table t"),
            "{hint}"
        );
        assert!(b.is_autocommit());
        assert_eq!(number(&b, "SELECT count(*) FROM t"), 1);
        let again = b.execute_batch("INSERT INTO t (mail) VALUES ('ada')");
        let code = again.expect_err("taken").sqlite_error_code();
        assert_eq!(code, Some(ErrorCode::ConstraintViolation));
    }
}

/// The number of such a row is nobody's business.
#[test]
fn rows_without_rowids_are_named_by_their_keys() {
    let setup = "CREATE TABLE t (a TEXT, b INT, v, PRIMARY KEY (a, b)) WITHOUT ROWID;
                 INSERT INTO t VALUES ('ada', 3, 0)";
    for level in LEVELS {
        let (a, b) = pair(level, setup);
        let insert = "BEGIN; INSERT INTO t VALUES ('bob', 4, 1)";
        run(&a, insert);
        run(&b, insert);
        run(&a, "COMMIT");
        let hint = lost(b.execute_batch("COMMIT"));
        let key = "('bob', 4) of index sqlite_autoindex_t_1 on table t";
        assert!(hint.contains(key), "{hint}");
        let again = b.execute_batch("INSERT INTO t VALUES ('bob', 4, 1)");
        let message = again.expect_err("taken").to_string();
        assert!(message.contains("UNIQUE constraint failed: t.a, t.b"));

        run(
            &a,
            "BEGIN CONCURRENT; UPDATE t SET v = 1 WHERE a = 'ada' AND b = 3",
        );
        run(&b, "UPDATE t SET v = 2 WHERE a = 'ada' AND b = 3");
        let hint = lost(a.execute_batch("COMMIT"));
        assert!(hint.contains("the row ('ada', 3) of table t"), "{hint}");
        assert_eq!(number(&a, "SELECT v FROM t WHERE a = 'ada' AND b = 3"), 2);

        run(
            &a,
            "BEGIN CONCURRENT; UPDATE t SET v = 1 WHERE a = 'ada' AND b = 3",
        );
        run(&b, "REPLACE INTO t VALUES ('ada', 3, 7)");
        lost(a.execute_batch("COMMIT"));
        assert_eq!(number(&a, "SELECT count(*) FROM t"), 2);
    }
}

/// A row that was left out because its key was taken depends on the key being
/// taken, under `snapshot` too.
#[test]
fn an_ignored_insert_loses_against_the_removal_of_what_it_met() {
    for level in LEVELS {
        let (a, b) = pair(
            level,
            "CREATE TABLE t (a UNIQUE, b); INSERT INTO t VALUES (1, 'old'); CREATE TABLE u (c)",
        );
        run(
            &a,
            "BEGIN; INSERT OR IGNORE INTO t VALUES (1, 'new'); INSERT INTO u VALUES (1)",
        );
        run(&b, "DELETE FROM t");
        lost(a.execute_batch("COMMIT"));
        assert_eq!(number(&b, "SELECT count(*) FROM u"), 0);
    }
}

#[test]
fn inserts_without_a_key_never_collide() {
    for level in LEVELS {
        let (a, b) = pair(level, "CREATE TABLE t (x); INSERT INTO t VALUES (0)");
        run(&a, "BEGIN; INSERT INTO t VALUES ('a'), ('a')");
        run(&b, "BEGIN; INSERT INTO t VALUES ('b')");
        run(&a, "INSERT INTO t VALUES ('a')");
        run(&b, "INSERT INTO t VALUES ('b'); COMMIT");
        run(&b, "INSERT INTO t VALUES ('c')");
        run(&a, "INSERT INTO t VALUES ('a'); COMMIT");
        assert_eq!(number(&b, "SELECT count(*) FROM t"), 8);
        run(
            &a,
            "BEGIN; INSERT INTO t VALUES ('d'); ROLLBACK; INSERT INTO t VALUES ('e')",
        );
        let taken = number(&a, "SELECT max(rowid) FROM t WHERE x <> 'e'");
        assert_eq!(
            number(&a, "SELECT rowid FROM t WHERE x = 'e'"),
            taken + 1,
            "given back"
        );
    }
}

#[test]
fn a_lost_row_is_named() {
    let (a, b) = pair(
        "snapshot",
        "CREATE TABLE account (id INTEGER PRIMARY KEY, n INT); INSERT INTO account VALUES (17, 1)",
    );
    run(
        &a,
        "BEGIN CONCURRENT; UPDATE account SET n = 2 WHERE id = 17",
    );
    run(&b, "UPDATE account SET n = 3 WHERE id = 17");
    let hint = lost(a.execute_batch("COMMIT"));
    assert_eq!(
        hint,
        "another transaction changed row 17 of table account first; this one was rolled back, run it again"
    );
    assert_eq!(number(&a, "SELECT n FROM account"), 3);
}

/// A hint repeated keys of megabytes, blobs as twice as many digits, and hints are kept for
/// a while.
#[test]
fn of_long_keys_their_beginnings_are_named() {
    let long = "é".repeat(500_000);
    for (value, named) in [
        (format!("'a{long}'"), format!("('a{}…', 7)", "é".repeat(31))),
        (format!("'{long}'"), format!("('{}…', 7)", "é".repeat(32))),
        (
            "zeroblob(1000000)".to_owned(),
            format!("(X'{}…', 7)", "0".repeat(128)),
        ),
        (
            "zeroblob(64)".to_owned(),
            format!("(X'{}', 7)", "0".repeat(128)),
        ),
    ] {
        let setup = "CREATE TABLE t (a, b, UNIQUE (a, b));
                     CREATE TABLE w (a, b, c, PRIMARY KEY (a, b)) WITHOUT ROWID";
        let (a, b) = pair("serializable", setup);
        let insert = format!("BEGIN; INSERT INTO t VALUES ({value}, 7)");
        run(&a, &insert);
        run(&b, &insert);
        run(&b, "COMMIT");
        let hint = lost(a.execute_batch("COMMIT"));
        let entry = format!("the entry {named} of index sqlite_autoindex_t_1");
        assert!(hint.contains(&entry), "{} bytes", hint.len());

        run(&a, &format!("INSERT INTO w VALUES ({value}, 7, 0)"));
        run(&a, "BEGIN; UPDATE w SET c = 1");
        run(&b, "UPDATE w SET c = 2");
        let hint = lost(a.execute_batch("COMMIT"));
        let row = format!("the row {named} of table w");
        assert!(hint.contains(&row), "{} bytes", hint.len());
    }
}

/// They are in no table, and whoever lost over them was told that a table was dropped.
/// Where a row came into a range that was read, the next one was named, which nobody
/// had touched.
#[test]
fn of_a_range_the_row_that_changed_is_named() {
    let setup = "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE INDEX i ON t (v);
                 INSERT INTO t VALUES (1, 10), (5, 50), (9, 90);
                 CREATE TABLE log (x); CREATE TABLE n (k TEXT PRIMARY KEY);
                 INSERT INTO n VALUES ('a'), ('m')";
    for (query, change, named) in [
        (
            "SELECT * FROM t",
            "INSERT INTO t VALUES (3, 3)",
            "row 3 of table t",
        ),
        (
            "SELECT * FROM t",
            "DELETE FROM t WHERE id = 5",
            "row 5 of table t",
        ),
        (
            "SELECT v FROM t WHERE v > 12",
            "INSERT INTO t VALUES (3, 17)",
            "entry (17) of index i",
        ),
        (
            "SELECT k FROM n ORDER BY k",
            "INSERT INTO n VALUES ('c')",
            "entry ('c') of",
        ),
    ] {
        let (a, b) = pair("serializable", setup);
        run(&a, "BEGIN");
        let read: Vec<_> = {
            let mut statement = a.prepare(query).expect(query);
            let rows = statement.query_map([], |row| row.get_ref(0).map(|_| ()));
            rows.expect(query).collect()
        };
        assert!(read.len() >= 2);
        run(&a, "INSERT INTO log VALUES (1)");
        run(&b, change);
        let hint = lost(a.execute_batch("COMMIT"));
        assert!(hint.contains(named), "{query}, {change}: {hint}");
    }
}

/// What a scan has to look at to know that its range ends is not read: neighbours lost
/// against one another.
#[test]
fn who_reads_a_range_depends_on_nothing_behind_it() {
    let setup = "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
                 CREATE INDEX i ON t (a, b);
                 INSERT INTO t VALUES (1, 1, 1), (5, 5, 5), (9, 9, 9), (20, 9, 20);
                 CREATE TABLE log (x)";
    let behind = "UPDATE t SET b = b + 1 WHERE id IN (1, 9); INSERT INTO t VALUES (7, 2, 2)";
    for query in [
        "SELECT count(*) FROM t WHERE id BETWEEN 2 AND 6",
        "SELECT count(*) FROM (SELECT b FROM t WHERE id BETWEEN 2 AND 6 ORDER BY id DESC)",
        "SELECT count(*) FROM t INDEXED BY i WHERE a = 5",
        "SELECT count(*) FROM t INDEXED BY i WHERE a > 4 AND a < 9",
        "SELECT count(*) FROM t INDEXED BY i WHERE a BETWEEN 3 AND 8",
        "SELECT count(*) FROM (SELECT id FROM t INDEXED BY i WHERE a BETWEEN 3 AND 8 ORDER BY a DESC)",
        "SELECT EXISTS (SELECT 1 FROM t INDEXED BY i WHERE a = 9 AND b = 15)",
    ] {
        for (change, loses) in [
            (behind, false),
            ("INSERT INTO t VALUES (6, 5, 6)", !query.contains("9 AND b")),
            (
                "UPDATE t SET b = 0 WHERE id = 5",
                !query.contains("9 AND b"),
            ),
            (
                "INSERT INTO t VALUES (21, 9, 15)",
                query.contains("9 AND b"),
            ),
        ] {
            let (a, b) = pair("serializable", setup);
            run(&a, "BEGIN");
            number(&a, query);
            run(&a, "INSERT INTO log VALUES (1)");
            run(&b, change);
            let committed = a.execute_batch("COMMIT");
            assert_eq!(committed.is_err(), loses, "{query}, {change}");
        }
    }
}

#[test]
fn who_lost_over_a_number_of_the_database_is_told_so() {
    for level in LEVELS {
        let (a, b) = pair(level, "CREATE TABLE t (x)");
        run(&a, "BEGIN; PRAGMA user_version = 1");
        run(&b, "PRAGMA user_version = 2");
        let hint = lost(a.execute_batch("COMMIT"));
        assert!(hint.contains("changed user_version"), "{hint}");
    }
}

/// A place in sqlite_sequence that no user sees.
#[test]
fn who_lost_over_a_sequence_is_told_whose() {
    for level in LEVELS {
        let (a, b) = pair(
            level,
            "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)",
        );
        run(&a, "BEGIN; INSERT INTO t VALUES (7); DELETE FROM t");
        run(&b, "INSERT INTO t VALUES (9); DELETE FROM t");
        let hint = lost(a.execute_batch("COMMIT"));
        assert!(hint.contains("changed the sequence of table t"), "{hint}");
    }
}

/// More than is kept to be replayed onto a newer state: from then on such a transaction
/// locks what it writes to.
const LARGE: &str = "WITH d(x) AS (VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))
    INSERT INTO large SELECT zeroblob(10000) FROM d AS a, d AS b, d AS c";

/// Statements said which number of the store's was in the way, whether they found out that
/// the transaction had lost or waited in vain.
#[test]
fn statements_that_cannot_go_on_name_the_table() {
    for level in LEVELS {
        let setup = "CREATE TABLE t (x); INSERT INTO t VALUES (1); CREATE TABLE large (x)";
        let (a, b) = pair(level, setup);
        run(&a, "BEGIN; SELECT x FROM t");
        run(&b, "UPDATE t SET x = 3");
        run(&a, LARGE);
        let hint = lost(a.execute_batch("UPDATE t SET x = 4"));
        assert!(hint.contains("changed table t first"), "{hint}");
        assert!(hint.contains("roll it back"), "{hint}");
        assert!(!a.is_autocommit());
        run(&a, "ROLLBACK");
        assert_eq!(number(&a, "SELECT x FROM t"), 3);

        run(&a, "BEGIN");
        run(&a, LARGE);
        b.busy_timeout(Duration::ZERO).expect("a timeout");
        let busy = b.execute_batch("INSERT INTO large VALUES (1)");
        let hint = busy
            .as_ref()
            .err()
            .and_then(Error::hint)
            .unwrap_or_default();
        assert!(is_busy(busy), "{hint}");
        assert!(hint.contains("table large is being written"), "{hint}");
    }
}

/// Nobody knows the name of what is gone: it was a number of the store's.
#[test]
fn who_lost_against_what_was_dropped_is_told_so() {
    for level in LEVELS {
        let (a, b) = pair(
            level,
            "CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE UNIQUE INDEX i ON t (x)",
        );
        // REINDEX drops nothing that has a name.
        for change in ["REINDEX i", "DROP INDEX i"] {
            run(&a, "DELETE FROM t; BEGIN; INSERT INTO t VALUES (1, 1)");
            run(&b, &format!("INSERT INTO t VALUES (2, 1); {change}"));
            let hint = lost(a.execute_batch("COMMIT"));
            let told = "the schema (it dropped or rebuilt a table or an index)";
            assert!(hint.contains(told), "{change}: {hint}");
            assert!(!hint.contains("tree"), "{change}: {hint}");
        }
    }
}

#[test]
fn who_used_the_schema_loses_against_its_change() {
    for level in LEVELS {
        let (a, b) = pair(level, "CREATE TABLE t (x); CREATE TABLE u (y)");
        run(&a, "BEGIN; INSERT INTO t VALUES (1)");
        run(&b, "CREATE INDEX i ON t (x)");
        let hint = lost(a.execute_batch("COMMIT"));
        assert!(hint.contains("changed the schema"), "{hint}");
        run(&a, "INSERT INTO t VALUES (1)");
        assert_eq!(number(&a, "SELECT count(*) FROM t WHERE x = 1"), 1);
    }
}

/// A statement that had begun with the old schema must not be published after
/// the new one: it would not know the index.
/// A transaction that has grown too large for the log takes a table's lock when it first
/// writes there. Where it could not, in a statement of one row, all of it was rolled back,
/// and what followed committed alone; after one that had lost there, it kept the lock.
#[test]
fn a_large_transaction_that_cannot_write_to_a_table_stays_open() {
    let setup =
        "CREATE TABLE d (n); INSERT INTO d VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9);
                 CREATE TABLE t (id INTEGER PRIMARY KEY, b); CREATE TABLE more (b);
                 CREATE TABLE u (id INTEGER PRIMARY KEY, v UNIQUE); INSERT INTO u VALUES (1, 1);
                 CREATE TABLE s (id INTEGER PRIMARY KEY AUTOINCREMENT, v)";
    let grow = "INSERT INTO t (b) SELECT zeroblob(1000) FROM d a, d b, d c, d d";
    for (other, statement) in [
        ("INSERT INTO u VALUES (3, 3)", "INSERT INTO u VALUES (2, 2)"),
        (
            "INSERT INTO u VALUES (3, 3)",
            "UPDATE u SET v = 9 WHERE id = 1",
        ),
        (
            "UPDATE u SET v = 3 WHERE id = 1",
            "DELETE FROM u WHERE id = 1",
        ),
        (
            "INSERT INTO u VALUES (3, 3)",
            "INSERT INTO u VALUES (2, 2), (4, 4)",
        ),
        (
            "INSERT INTO s (v) VALUES (3)",
            "INSERT INTO s (v) VALUES (2)",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let database = Database::open(dir.path().join("a.db")).expect("a database");
        let [a, b] = [0, 1].map(|_| database.connect().expect("a connection"));
        run(&a, setup);
        for connection in [&a, &b] {
            connection.busy_timeout(Duration::ZERO).expect("a timeout");
        }
        run(&a, "BEGIN");
        run(&a, grow);
        run(&b, other);
        for _ in 0..2 {
            let hint = lost(a.execute_batch(statement));
            assert!(hint.contains("cannot write to it any more"), "{hint}");
            assert!(!a.is_autocommit(), "{statement}");
        }
        run(&b, other.replace('3', "30").as_str());
        assert_eq!(number(&a, "SELECT count(*) FROM t"), 6561);
        run(&a, "ROLLBACK");
        // Where the other one is only at work it is the same.
        run(&a, "BEGIN");
        run(&a, grow);
        run(&b, "BEGIN");
        run(&b, other.replace('3', "300").as_str());
        run(&b, &grow.replace("t (b)", "more (b)"));
        assert!(is_busy(a.execute_batch(statement)), "{statement}");
        assert!(!a.is_autocommit(), "{statement}");
        run(&b, "ROLLBACK");
        run(&a, statement);
        run(&a, "COMMIT");
        assert_eq!(number(&a, "SELECT count(*) FROM t"), 6561);
    }
}

/// The rollback of what a failed COMMIT had rolled back already was told in place of the
/// conflict, and where COMMIT was only busy, nothing was.
#[test]
fn finishing_tells_why_it_could_not_commit() {
    for savepoint in [false, true] {
        let (mut a, b) = pair(
            "serializable",
            "CREATE TABLE t (v); INSERT INTO t VALUES (1)",
        );
        let change = "UPDATE t SET v = v + 1";
        let outcome = if savepoint {
            let mut all = a.savepoint().expect("begins");
            all.set_drop_behavior(DropBehavior::Commit);
            all.execute_batch(change).expect(change);
            run(&b, change);
            all.finish()
        } else {
            let mut all = a.transaction().expect("begins");
            all.set_drop_behavior(DropBehavior::Commit);
            all.execute_batch(change).expect(change);
            run(&b, change);
            all.finish()
        };
        lost(outcome);
        assert!(a.is_autocommit());
        a.busy_timeout(Duration::ZERO).expect("a timeout");
        run(&b, "BEGIN IMMEDIATE");
        let mut all = a.transaction().expect("begins");
        all.set_drop_behavior(DropBehavior::Commit);
        all.execute_batch(change).expect(change);
        assert!(is_busy(all.finish()));
        assert!(a.is_autocommit());
        run(&b, "COMMIT");
        assert_eq!(number(&a, "SELECT v FROM t"), 2);
    }
}

#[test]
fn a_change_of_the_schema_keeps_writers_out_and_counts_what_it_read() {
    for level in LEVELS {
        let (a, b) = pair(level, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
        b.busy_timeout(Duration::ZERO).expect("set");
        run(&a, "BEGIN; SELECT * FROM t; CREATE INDEX i ON t (x)");
        assert!(is_busy(b.execute_batch("INSERT INTO t VALUES (2)")));
        assert_eq!(number(&b, "SELECT count(*) FROM t"), 1, "readers go on");
        run(&a, "COMMIT");
        run(&b, "INSERT INTO t VALUES (2)");
        assert_eq!(number(&b, "SELECT count(*) FROM t WHERE x > 0"), 2);

        run(&a, "DROP INDEX i; BEGIN; SELECT * FROM t");
        run(&b, "INSERT INTO t VALUES (3)");
        run(&a, "CREATE INDEX i ON t (x)");
        lost(a.execute_batch("COMMIT"));
        assert_eq!(number(&a, "SELECT count(*) FROM t WHERE x > 0"), 3);
    }
}

/// What an ALTER TABLE found of the rows must still be so at its commit.
#[test]
fn a_column_with_a_check_loses_against_a_row_that_breaks_it() {
    for level in LEVELS {
        let (a, b) = pair(level, "CREATE TABLE t (x); CREATE TABLE u (x)");
        run(&a, "BEGIN; SELECT * FROM u");
        run(&b, "INSERT INTO t VALUES (9)");
        run(&a, "ALTER TABLE t ADD COLUMN y CHECK (x < 5)");
        lost(a.execute_batch("COMMIT"));
        run(&b, "UPDATE t SET x = 10");
    }
}

#[test]
fn indexes_made_beside_inserts_hold_every_row() {
    let database = Database::in_memory().expect("a database");
    let first = database.connect().expect("a connection");
    run(&first, "CREATE TABLE t (x INT)");
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let connection = database.connect().expect("a connection");
            scope.spawn(move || {
                for i in 0..400 {
                    connection
                        .execute("INSERT INTO t VALUES (?)", [thread * 1000 + i])
                        .expect("an insert");
                }
            });
        }
        let mut connection = database.connect().expect("a connection");
        scope.spawn(move || {
            for _ in 0..40 {
                let made = connection.transact(|tx| {
                    tx.query_row("SELECT count(*) FROM t", [], |_| Ok(()))?;
                    tx.execute_batch("DROP INDEX IF EXISTS i; CREATE INDEX i ON t (x)")
                });
                made.expect("an index");
            }
        });
    });
    assert_eq!(number(&first, "SELECT count(*) FROM t"), 800);
    assert_eq!(number(&first, "SELECT count(*) FROM t WHERE x >= 0"), 800);
    assert_eq!(
        database.integrity_check().expect("a check"),
        Vec::<String>::new()
    );
}

#[test]
fn immediate_keeps_writers_out_and_cannot_lose() {
    let (a, b) = pair(
        "serializable",
        "CREATE TABLE t (x); INSERT INTO t VALUES (1)",
    );
    b.busy_timeout(Duration::ZERO).expect("set");
    let c = b.database().connect().expect("a connection");
    c.busy_timeout(Duration::ZERO).expect("set");
    run(&b, "BEGIN; UPDATE t SET x = 5");
    for begin in ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
        run(&a, begin);
        run(&a, "UPDATE t SET x = x + 1");
        assert!(is_busy(b.execute_batch("COMMIT")));
        assert!(is_busy(c.execute_batch("INSERT INTO t VALUES (9)")));
        assert!(is_busy(c.execute_batch("BEGIN IMMEDIATE")));
        run(&a, "COMMIT");
    }
    // COMMIT that was refused can be tried again; its row has changed since.
    assert!(!b.is_autocommit());
    lost(b.execute_batch("COMMIT"));
    assert_eq!(number(&b, "SELECT x FROM t"), 3);
}

/// The word was left out before IMMEDIATE and EXCLUSIVE as well, which say the opposite.
#[test]
fn concurrent_is_one_way_to_begin() {
    let (a, _) = pair("serializable", "CREATE TABLE t (v)");
    for way in ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"] {
        a.execute_batch(&format!("BEGIN CONCURRENT {way}"))
            .expect_err(way);
        assert!(a.is_autocommit());
    }
    run(&a, "BEGIN CONCURRENT TRANSACTION; COMMIT");
    a.prepare("EXPLAIN BEGIN CONCURRENT").expect("is explained");
}

#[test]
fn the_isolation_level_is_set_a_connection() {
    let (a, b) = pair("serializable", "CREATE TABLE t (x)");
    let level = |c: &Connection| -> String {
        c.pragma_query_value(None, "isolation_level", |row| row.get(0))
            .expect("a level")
    };
    run(&a, "PRAGMA isolation_level = SNAPSHOT");
    assert_eq!(
        (level(&a).as_str(), level(&b).as_str()),
        ("snapshot", "serializable")
    );
    let wrong = a
        .execute_batch("PRAGMA isolation_level = casual")
        .expect_err("no level");
    assert_eq!(wrong.to_string(), "no such isolation level: casual");
    assert!(
        wrong
            .hint()
            .is_some_and(|hint| hint.contains("serializable"))
    );
    assert_eq!(level(&a), "snapshot");
}

/// A transaction begins in the store with its first statement, and took the level of that
/// moment.
#[test]
fn a_transaction_keeps_the_level_that_it_began_with() {
    let rows = "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 1), (2, 2)";
    for begin in ["BEGIN", "SAVEPOINT s"] {
        for (level, other) in [(LEVELS[0], LEVELS[1]), (LEVELS[1], LEVELS[0])] {
            let (a, b) = pair(level, rows);
            run(&a, begin);
            run(&a, &format!("PRAGMA isolation_level = {other}"));
            run(&a, "SELECT * FROM t; UPDATE t SET x = 5 WHERE id = 1");
            run(&b, "UPDATE t SET x = 6 WHERE id = 2");
            let outcome = a.execute_batch("COMMIT");
            assert_eq!(outcome.is_err(), level == "serializable", "{begin} {level}");
        }
    }
}

/// It had nothing left to commit, and lost for what it had read.
#[test]
fn who_has_undone_all_it_wrote_cannot_lose() {
    let undone = [
        "SAVEPOINT s; INSERT INTO t VALUES (3, 3); ROLLBACK TO s",
        "SAVEPOINT s; CREATE TABLE u (x); INSERT INTO u VALUES (3); ROLLBACK TO s; RELEASE s",
        "SAVEPOINT s; UPDATE t SET x = 5 WHERE id = 1; SAVEPOINT r; DELETE FROM t; ROLLBACK TO s",
    ];
    for level in LEVELS {
        for undone in undone {
            let (a, b) = pair(
                level,
                "CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE); INSERT INTO t VALUES (1, 1), (2, 2)",
            );
            run(&a, "BEGIN; SELECT * FROM t");
            run(&b, "UPDATE t SET x = 6 WHERE id = 2");
            // Two rows of one key: the statement is undone after the first one.
            let failed = a.execute_batch("INSERT INTO t VALUES (7, 7), (8, 7)");
            assert!(failed.is_err(), "{undone}");
            run(&a, undone);
            run(&a, "COMMIT");
            assert_eq!(number(&a, "SELECT sum(x) FROM t"), 7, "{undone}");
        }
    }
}

#[test]
fn transact_gets_everybody_through() {
    const THREADS: i64 = 8;
    const EACH: i64 = 50;
    let database = Database::in_memory().expect("a database");
    let first = database.connect().expect("a connection");
    run(
        &first,
        "CREATE TABLE hot (n INT); INSERT INTO hot VALUES (0)",
    );
    let attempts = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let counted = database.transact(|tx| {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        let n: i64 = tx.query_row("SELECT n FROM hot", [], |row| row.get(0))?;
                        std::thread::yield_now();
                        tx.execute("UPDATE hot SET n = ?", [n + 1])
                    });
                    assert_eq!(counted.expect("it gets through"), 1);
                }
            });
        }
    });
    assert_eq!(number(&first, "SELECT n FROM hot"), THREADS * EACH);
    println!("{} attempts for {}", attempts.into_inner(), THREADS * EACH);
}

#[test]
fn errors_and_panics_of_the_work_roll_back() {
    let (mut a, b) = pair(
        "serializable",
        "CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1)",
    );
    let failed = a.transact(|tx| {
        tx.execute("INSERT INTO t VALUES (2)", [])?;
        tx.execute("INSERT INTO t VALUES (1)", [])
    });
    let code = failed.expect_err("taken").sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::ConstraintViolation));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = a.transact::<()>(|tx| {
            tx.execute("INSERT INTO t VALUES (3)", [])?;
            panic!("on purpose");
        });
    }));
    assert!(panicked.is_err() && a.is_autocommit());
    run(&a, "BEGIN IMMEDIATE; INSERT INTO t VALUES (4)");
    drop(a);
    assert_eq!(number(&b, "SELECT count(*) FROM t"), 1);
    run(&b, "INSERT INTO t VALUES (2)");
}

#[test]
fn counters_tell_of_commits() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = Database::open(dir.path().join("c.db")).expect("a database");
    let connection = database.connect().expect("a connection");
    run(&connection, "CREATE TABLE t (x)");
    for _ in 0..20 {
        run(&connection, "INSERT INTO t VALUES (1)");
    }
    let counter = |name: &str| -> i64 {
        let mut found = None;
        let look = connection.pragma_query(None, "wal_status", |row| {
            if row.get::<_, String>("counter")? == name {
                found = Some(row.get("value")?);
            }
            Ok(())
        });
        look.expect("rows");
        found.unwrap_or_else(|| panic!("no counter {name}"))
    };
    assert!(counter("records") >= 21 && counter("syncs") >= 1);
    assert_eq!(counter("writers_at_once"), 0, "no limit for one writer");
    assert!(counter("commit_lock_p50_ns") <= counter("commit_lock_longest_ns"));
    assert!(database.stats().commit_lock.measured >= 2);
    assert_eq!(database.stats().visible as i64, counter("visible_commit"));
    assert_eq!(counter("crowd_waits"), 0, "nobody else commits");

    let other = database.connect().expect("a connection");
    run(&connection, "BEGIN; UPDATE t SET x = 2");
    run(&other, "UPDATE t SET x = 3");
    assert_eq!(counter("conflicts"), 0);
    connection.execute_batch("COMMIT").expect_err("it loses");
    assert_eq!(counter("conflicts"), 1);
    assert_eq!(database.stats().conflicts, 1);
}

/// A query that began in a transaction which has changed the table goes on after its
/// COMMIT, whatever others write then. Pages that the transaction itself had made were
/// freed under it, and it failed with SQLITE_CORRUPT.
#[test]
fn a_query_goes_on_after_the_commit_of_what_it_reads() {
    for level in LEVELS {
        let (a, b) = pair(level, "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
        run(&a, "BEGIN");
        for id in 0..2_000 {
            a.execute("INSERT INTO t VALUES (?, 'old')", [id])
                .expect("an insert");
        }
        let mut query = a.prepare("SELECT word FROM t").expect("a query");
        let mut rows = query.query([]).expect("rows");
        rows.next().expect("a step").expect("a row");
        run(&a, "UPDATE t SET word = 'newer' WHERE id % 2 = 0; COMMIT");
        for _ in 0..3 {
            run(&b, "UPDATE t SET word = 'newest'");
        }
        let mut count = 1;
        while let Some(row) = rows.next().expect("a step") {
            assert_eq!(row.get::<_, String>(0).expect("a word"), "old");
            count += 1;
        }
        assert_eq!(count, 2_000);
    }
}
