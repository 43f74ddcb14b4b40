//! BEGIN, COMMIT, ROLLBACK, savepoints, and what an error leaves of them.

mod support;

use fulgurite_sql::session::Step;
use support::same;

const TABLE: &str = "CREATE TABLE t(a INT UNIQUE); INSERT INTO t VALUES (1);";

fn with(sql: &str) {
    same(&format!("{TABLE}{sql}; SELECT * FROM t"));
}

#[test]
fn begin_commit_rollback() {
    with("BEGIN; INSERT INTO t VALUES (2); SELECT * FROM t; COMMIT; COMMIT");
    with("BEGIN; INSERT INTO t VALUES (2); SELECT * FROM t; ROLLBACK; ROLLBACK");
    with("BEGIN; BEGIN; COMMIT");
    with("BEGIN IMMEDIATE; INSERT INTO t VALUES (2); COMMIT");
    with("BEGIN EXCLUSIVE; INSERT INTO t VALUES (2); ROLLBACK");
    with("BEGIN; COMMIT; BEGIN; ROLLBACK");
}

#[test]
fn savepoints_nest_and_their_names_have_no_case() {
    with(
        "SAVEPOINT a; INSERT INTO t VALUES (2); SAVEPOINT B; INSERT INTO t VALUES (3); ROLLBACK TO b; SELECT * FROM t; RELEASE A",
    );
    with("SAVEPOINT a; INSERT INTO t VALUES (2); RELEASE a; RELEASE a");
    with(
        "SAVEPOINT a; SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK TO a; RELEASE a; INSERT INTO t VALUES (4); ROLLBACK TO a; RELEASE a",
    );
    with("BEGIN; SAVEPOINT a; INSERT INTO t VALUES (2); RELEASE a; ROLLBACK");
    with(
        "BEGIN; INSERT INTO t VALUES (5); SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK TO a; COMMIT",
    );
    with("BEGIN; ROLLBACK TO nope; RELEASE nope; COMMIT; ROLLBACK TO nope; RELEASE nope");
    with(
        "SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK TO a; ROLLBACK TO a; INSERT INTO t VALUES (3); COMMIT",
    );
    with("SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK");
}

#[test]
fn an_error_keeps_the_transaction() {
    with(
        "BEGIN; INSERT INTO t VALUES (2); INSERT INTO t VALUES (1); INSERT INTO t VALUES (3); COMMIT",
    );
    with(
        "BEGIN; INSERT INTO t VALUES (2); INSERT INTO t SELECT a + 1 FROM t; INSERT INTO t VALUES (9); COMMIT",
    );
}

#[test]
fn schema_changes_roll_back() {
    with(
        "BEGIN; CREATE TABLE u(b); INSERT INTO u VALUES (1); SELECT * FROM u; ROLLBACK; SELECT * FROM u",
    );
    with("BEGIN; DROP TABLE t; SELECT * FROM t; ROLLBACK; INSERT INTO t VALUES (7)");
    with(
        "BEGIN; CREATE INDEX i ON t(a); ROLLBACK; CREATE INDEX i ON t(a); INSERT INTO t VALUES (8)",
    );
    with(
        "SAVEPOINT s; CREATE TABLE u(b); ROLLBACK TO s; CREATE TABLE u(c, d); INSERT INTO u VALUES (1, 2); SELECT * FROM u; RELEASE s",
    );
}

#[test]
fn an_insert_from_its_own_table_reads_the_state_at_its_start() {
    same("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); INSERT INTO t SELECT a + 10 FROM t; SELECT * FROM t;
          INSERT INTO t SELECT a FROM t ORDER BY a DESC; SELECT * FROM t");
}

#[test]
fn the_numbers_of_the_database_are_sqlites() {
    support::same(
        "PRAGMA user_version;
         PRAGMA user_version = 7;
         PRAGMA user_version;
         PRAGMA application_id;
         PRAGMA application_id = -5;
         PRAGMA application_id;
         PRAGMA user_version = '12';
         PRAGMA user_version;
         PRAGMA user_version = 5000000000;
         PRAGMA user_version;
         BEGIN;
         PRAGMA user_version = 8;
         PRAGMA user_version;
         SAVEPOINT s;
         PRAGMA user_version = 9;
         ROLLBACK TO s;
         PRAGMA user_version;
         ROLLBACK;
         PRAGMA user_version;
         CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE, c COLLATE NOCASE);
         CREATE INDEX i ON t (c DESC, a);
         PRAGMA index_xinfo(i);
         PRAGMA index_xinfo(sqlite_autoindex_t_1);
         PRAGMA index_info(i);
         PRAGMA index_list(t);
         PRAGMA auto_vacuum;
         PRAGMA recursive_triggers;",
    );
}

#[test]
fn the_numbers_of_the_database_stay() {
    let disk: std::sync::Arc<dyn fulgurite_disk::Disk> =
        std::sync::Arc::new(fulgurite_disk::MemoryDisk::new());
    let open = || {
        let store = fulgurite_store::Store::open_on(
            std::sync::Arc::clone(&disk),
            "/numbers.db",
            fulgurite_store::Options::default(),
        );
        fulgurite_sql::session::Engine::open(store.unwrap())
            .unwrap()
            .session()
    };
    support::must(
        &open(),
        "PRAGMA user_version = 3; PRAGMA application_id = 77",
    );
    let again = open();
    assert_eq!(support::must(&again, "PRAGMA user_version"), ["3"]);
    assert_eq!(support::must(&again, "PRAGMA application_id"), ["77"]);
}

#[test]
fn pages_of_the_file_are_counted() {
    let disk: std::sync::Arc<dyn fulgurite_disk::Disk> =
        std::sync::Arc::new(fulgurite_disk::MemoryDisk::new());
    let store =
        fulgurite_store::Store::open_on(disk, "/pages.db", fulgurite_store::Options::default());
    let session = fulgurite_sql::session::Engine::open(store.unwrap())
        .unwrap()
        .session();
    let number = |sql: &str| support::must(&session, sql)[0].parse::<i64>().unwrap();
    let before = number("PRAGMA page_count");
    support::must(
        &session,
        "CREATE TABLE t (b); INSERT INTO t VALUES (randomblob(500000)), (randomblob(500000));
         PRAGMA wal_checkpoint",
    );
    let page = number("PRAGMA page_size");
    let used = number("PRAGMA page_count") - before;
    let expected = 1_000_000 / page..1_200_000 / page;
    assert!(expected.contains(&used), "{used} pages of {page} bytes");
    assert!(number("PRAGMA freelist_count") < 5);
    support::must(
        &session,
        "DELETE FROM t WHERE rowid = 1; PRAGMA wal_checkpoint; PRAGMA wal_checkpoint",
    );
    let free = number("PRAGMA freelist_count");
    assert!(free >= 480_000 / page, "{free} free pages");
}

/// INSERT OR REPLACE of one row takes no place to go back to: what it checks it checks
/// before it deletes anything.
#[test]
fn what_is_in_the_way_goes_only_for_a_row_that_comes() {
    let table = "CREATE TABLE r(id INTEGER PRIMARY KEY, a UNIQUE, b NOT NULL CHECK (b < 9));
        CREATE INDEX rb ON r(b); INSERT INTO r VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3);";
    for values in [
        "(1, 20, 8)",
        "(1, 20, 9)",
        "(1, 20, NULL)",
        "(NULL, 30, 4)",
        "('x', 10, 5)",
    ] {
        for returning in [
            "",
            "RETURNING id, b",
            "RETURNING abs(-9223372036854775807 - (b > 4))",
        ] {
            for after in ["ROLLBACK", "COMMIT"] {
                same(&format!(
                    "{table} BEGIN; DELETE FROM r WHERE id = 3;
                    INSERT OR REPLACE INTO r VALUES {values} {returning}; SELECT * FROM r; {after};
                    SELECT changes(), total_changes(); SELECT * FROM r; SELECT b, id FROM r ORDER BY b;
                    PRAGMA integrity_check"
                ));
            }
        }
    }
}

/// What was interrupted kept the transaction, so that a program that began another one,
/// as it may with SQLite, went on in the old one. And a statement of a single row that began
/// beside an interrupted one ran all the same.
#[test]
fn an_interrupted_change_ends_the_transaction_and_an_interrupted_query_does_not() {
    const ROWS: &str = "CREATE TABLE r(a INTEGER PRIMARY KEY, b); \
        WITH d(x) AS (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) \
        INSERT INTO r(b) SELECT p.x FROM d p, d q, d s, d t;";
    const BEGUN: &str = "BEGIN; INSERT INTO t VALUES (2); SAVEPOINT s; INSERT INTO t VALUES (3)";
    for (sql, ends) in [
        ("INSERT INTO t SELECT a + 10 FROM r", true),
        ("INSERT OR IGNORE INTO t SELECT p.a FROM r p, r q", true),
        ("UPDATE r SET b = b + 1", true),
        ("DELETE FROM r WHERE b > 3", true),
        ("CREATE INDEX i ON r(b)", true),
        ("ALTER TABLE r DROP COLUMN b", true),
        ("SELECT count(*) FROM r, r q", false),
        ("INSERT INTO t VALUES (9)", true),
        ("UPDATE r SET b = 7 WHERE a = 2", true),
        ("DELETE FROM t WHERE rowid = 1", true),
        ("SELECT b FROM r WHERE a = 2", false),
        ("SELECT 1", false),
        ("PRAGMA user_version", false),
        ("SAVEPOINT x", false),
        ("COMMIT", false),
        ("ROLLBACK", false),
    ] {
        let ours = support::session();
        support::must(&ours, &format!("{TABLE}{ROWS}{BEGUN}"));
        let mut reads = support::prepare(&ours, "SELECT a FROM r");
        assert_eq!(reads.step().expect("a row"), Step::Row);
        let mut changes = support::prepare(&ours, sql);
        ours.interrupt_handle().interrupt();
        let error = changes.step().expect_err("interrupted");
        assert_eq!(error.message(), "interrupted", "{sql}");
        drop((reads, changes));

        let sqlite = rusqlite::Connection::open_in_memory().expect("opens");
        sqlite
            .execute_batch(&format!("{TABLE}{ROWS}{BEGUN}"))
            .expect("made");
        let mut reads = sqlite.prepare("SELECT a FROM r").expect("compiles");
        let mut rows = reads.query([]).expect("begins");
        assert!(rows.next().expect("a row").is_some());
        let mut changes = sqlite.prepare(sql).expect("compiles");
        sqlite.get_interrupt_handle().interrupt();
        let stepped = changes.raw_query().next().map(|_| ());
        assert_eq!(
            stepped.expect_err("interrupted").to_string(),
            "interrupted",
            "{sql}"
        );
        drop(rows);

        assert_eq!(
            (ours.is_autocommit(), sqlite.is_autocommit()),
            (ends, ends),
            "{sql}"
        );
        let after =
            "SELECT a FROM t; SELECT sum(b), count(*) FROM r; CREATE INDEX i ON r(b); COMMIT";
        let mut expected = Vec::new();
        for sql in after.split("; ") {
            expected.extend(support::sqlite(&sqlite, sql));
        }
        assert_eq!(support::run(&ours, after), expected, "{sql}");
    }
}

#[test]
fn synchronous_takes_what_sqlite_takes() {
    let values = [
        "OFF", "NORMAL", "FULL", "EXTRA", "0", "1", "2", "3", "4", "6", "7", "8", "255", "2.7",
        "on", "yes", "no", "true", "'full'", "'2'",
    ];
    for value in values {
        same(&format!(
            "PRAGMA synchronous = {value}; PRAGMA synchronous;
             PRAGMA main.synchronous({value}); PRAGMA synchronous"
        ));
    }
    let within = ["BEGIN", "SAVEPOINT a", "BEGIN; CREATE TABLE t(a)"];
    for begun in within {
        same(&format!(
            "PRAGMA synchronous = FULL; {begun}; PRAGMA synchronous = OFF; COMMIT;
             PRAGMA synchronous"
        ));
    }
}
