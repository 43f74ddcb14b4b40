//! Databases that a connection attaches, in files that others have open, too.

use fulgurite::{Connection, Database, ErrorCode, MAIN_DB, OpenFlags, TransactionBehavior, ffi};
use fulgurite_store::{Options, Store, TreeId};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Two files, `a.db` with a table `t` and `b.db` with a table `u`, of one row each.
fn files() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [a, b] = ["a.db", "b.db"].map(|name| folder.path().join(name));
    run(&open(&a), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    run(&open(&b), "CREATE TABLE u(y); INSERT INTO u VALUES (10)");
    (folder, a, b)
}

fn open(path: &Path) -> Connection {
    Connection::open(path).expect("opens")
}

fn run(connection: &Connection, sql: &str) {
    let outcome = connection.execute_batch(sql);
    outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn attach(connection: &Connection, path: &Path, name: &str) {
    run(
        connection,
        &format!("ATTACH '{}' AS {name}", path.display()),
    );
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn refused(connection: &Connection, sql: &str) -> String {
    let error = connection.execute_batch(sql).expect_err(sql);
    error.to_string()
}

#[test]
fn what_is_attached_is_the_file_that_others_have_open() {
    let (_folder, a, b) = files();
    let other = open(&b);
    let one = open(&a);
    attach(&one, &b, "b");
    assert_eq!(number(&one, "SELECT x + y FROM t, u"), 11);
    run(&other, "INSERT INTO u VALUES (20)");
    assert_eq!(number(&one, "SELECT sum(y) FROM b.u"), 30);
    run(&one, "INSERT INTO b.u SELECT x FROM t");
    assert_eq!(number(&other, "SELECT sum(y) FROM u"), 31);
    run(&other, "ALTER TABLE u ADD COLUMN z DEFAULT 5");
    assert_eq!(number(&one, "SELECT sum(z) FROM u"), 15);
    run(&one, "DETACH b");
    assert!(refused(&one, "SELECT * FROM u").contains("no such table: u"));
    drop(other);
    drop(one);
    assert_eq!(number(&open(&b), "SELECT count(*) FROM u"), 3);
}

#[test]
fn a_file_is_made_where_there_is_none_and_uris_are_read() {
    let (folder, a, b) = files();
    let one = open(&a);
    attach(&one, &folder.path().join("new.db"), "n");
    run(&one, "CREATE TABLE n.v(z); INSERT INTO v VALUES (3)");
    assert_eq!(
        number(&open(&folder.path().join("new.db")), "SELECT z FROM v"),
        3
    );
    run(&one, &format!("ATTACH 'file:{}?mode=ro' AS r", b.display()));
    assert_eq!(number(&one, "SELECT y FROM r.u"), 10);
    let error = refused(&one, "INSERT INTO r.u VALUES (1)");
    assert!(error.contains("readonly database"), "{error}");
    run(&one, "BEGIN; INSERT INTO t SELECT y FROM r.u; COMMIT");
    assert_eq!(number(&one, "SELECT sum(x) FROM t"), 11);
    let error = refused(&one, "ATTACH '/nowhere/at/all.db' AS w");
    assert!(
        error.contains("unable to open database: /nowhere/at/all.db"),
        "{error}"
    );
    let twice = format!("ATTACH '{}' AS again", a.display());
    assert!(refused(&one, &twice).contains("open under another name"));
}

/// Who opens a file for reading only, while another thread makes it, finds none or a whole
/// one; it failed because it may not write, in a fifth of the tries.
#[test]
fn a_file_that_is_being_made_is_opened_for_reading_only() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..40 {
        let path = folder.path().join(format!("{round}.db"));
        thread::scope(|scope| {
            scope.spawn(|| drop(open(&path)));
            let read = || Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY);
            let reading = loop {
                match read() {
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {}
                    opened => break opened.expect("it is there"),
                }
            };
            assert_eq!(number(&reading, "SELECT count(*) FROM sqlite_schema"), 0);
            assert!(refused(&reading, "CREATE TABLE t(x)").contains("readonly database"));
        });
    }
    let path = folder.path().join("keys.db");
    drop(Store::open(&path, Options::default()).expect("opens"));
    let reading = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let error = reading.expect_err("nobody has made tables");
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen));
    assert!(error.hint().is_some_and(|hint| hint.contains("no schema")));
}

/// IMMEDIATE and EXCLUSIVE begin to read where a connection may only read, as in SQLite; they
/// were refused.
#[test]
fn immediate_transactions_of_a_connection_for_reading_only_read() {
    let (_folder, a, b) = files();
    let writing = open(&a);
    for beside in [false, true] {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let mut reading = Connection::open_with_flags(&a, flags).expect("opens");
        if beside {
            attach(&reading, &b, "b");
            run(&reading, "CREATE TEMP TABLE k(z)");
        }
        for behavior in [
            TransactionBehavior::Immediate,
            TransactionBehavior::Exclusive,
        ] {
            let txn = reading.transaction_with_behavior(behavior).expect("begins");
            let before = number(&txn, "SELECT sum(x) FROM t");
            run(&writing, "INSERT INTO t VALUES (1)");
            assert_eq!(number(&txn, "SELECT sum(x) FROM t"), before);
            assert!(refused(&txn, "INSERT INTO t VALUES (1)").contains("readonly database"));
            if beside {
                run(&txn, "INSERT INTO k SELECT x FROM t");
            }
            txn.commit().expect("commits");
        }
    }
    assert_eq!(number(&writing, "SELECT sum(x) FROM t"), 5);
}

/// A write to what can only be read is refused before anything is done. It ended the
/// transaction, and what came behind it committed by itself.
#[test]
fn a_write_to_what_is_read_only_leaves_the_transaction_as_it_is() {
    let (_folder, a, b) = files();
    let one = open(&a);
    run(&one, &format!("ATTACH 'file:{}?mode=ro' AS r", b.display()));
    let only_read = || {
        for sql in [
            "INSERT INTO u VALUES (1)",
            "INSERT INTO u SELECT x FROM t",
            "UPDATE u SET y = y + 1",
            "DELETE FROM u WHERE y < 0",
            "CREATE TABLE r.v(x)",
            "DROP TABLE u",
            "PRAGMA r.user_version = 1",
        ] {
            let error = refused(&one, sql);
            assert!(error.contains("readonly database"), "{sql}: {error}");
            assert!(!one.is_autocommit(), "{sql}");
        }
    };
    for begin in ["BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT s"] {
        run(&one, begin);
        run(&one, "INSERT INTO t SELECT y FROM u");
        only_read();
        run(&one, "INSERT INTO t SELECT y FROM u; COMMIT");
    }
    assert_eq!(number(&one, "SELECT sum(x) FROM t"), 61);
}

/// What is read of a file through a handle for reading only counts for the commit, where
/// others of the process write to that file. It was a snapshot that no commit asked about,
/// so that two transactions could each read what the other wrote over.
#[test]
fn what_is_read_of_a_file_that_others_write_to_counts() {
    let (_folder, a, b) = files();
    let (one, other) = (open(&a), open(&b));
    attach(&other, &a, "a");
    run(&one, &format!("ATTACH 'file:{}?mode=ro' AS r", b.display()));
    for (begin, end) in [("BEGIN", "COMMIT"), ("SAVEPOINT s", "RELEASE s")] {
        run(&one, begin);
        run(&one, "INSERT INTO t SELECT count(*) FROM u");
        run(
            &other,
            "BEGIN; INSERT INTO u SELECT count(*) FROM t; COMMIT",
        );
        let error = one.execute_batch(end).expect_err("u has changed");
        let code = error.sqlite_error().map(|it| it.extended_code);
        assert_eq!(code, Some(ffi::SQLITE_BUSY_SNAPSHOT), "{error}");
    }
    run(&one, "BEGIN; INSERT INTO t SELECT count(*) FROM u");
    assert!(refused(&one, "INSERT INTO u VALUES (1)").contains("readonly database"));
    run(&one, "COMMIT");
    // It keeps them out as it does where it may write.
    run(
        &one,
        "BEGIN IMMEDIATE; INSERT INTO t SELECT count(*) FROM u",
    );
    run(&other, "PRAGMA busy_timeout = 0");
    let error = refused(&other, "INSERT INTO u VALUES (1)");
    assert!(error.contains("locked"), "{error}");
    run(&one, "COMMIT");
    run(&other, "INSERT INTO u VALUES (1)");
}

/// All files, temporary tables and databases in memory have a transaction, or none of it.
#[test]
fn a_transaction_writes_to_all_files() {
    let (_folder, a, b) = files();
    let one = open(&a);
    attach(&one, &b, "b");
    run(&one, "ATTACH ':memory:' AS m; CREATE TABLE m.w(z)");
    run(&one, "CREATE TEMP TABLE k(z)");
    let sum = "SELECT (SELECT sum(x) FROM t) || ' ' || (SELECT sum(y) FROM u) || ' ' ||
                (SELECT count(*) FROM k) || ' ' || (SELECT count(*) FROM w)";
    let sums = || -> String { one.query_row(sum, [], |row| row.get(0)).expect("sums") };
    for (end, expected) in [("ROLLBACK", "1 10 0 0"), ("COMMIT", "11 11 2 2")] {
        run(&one, "BEGIN; INSERT INTO t SELECT y FROM u");
        run(
            &one,
            "INSERT INTO k SELECT x FROM t; INSERT INTO w SELECT z FROM k",
        );
        run(
            &one,
            "SAVEPOINT s; DELETE FROM u; CREATE TABLE b.x(y); ROLLBACK TO s",
        );
        run(
            &one,
            "INSERT INTO u VALUES (1); CREATE TABLE b.v(y); PRAGMA b.user_version = 4",
        );
        assert_eq!(sums(), "11 11 2 2");
        run(&one, end);
        assert_eq!(sums(), expected);
    }
    // A statement alone as well.
    run(
        &one,
        "CREATE TEMP TRIGGER r AFTER INSERT ON t BEGIN UPDATE u SET y = y + new.x; END",
    );
    run(&one, "INSERT INTO t VALUES (3)");
    assert_eq!(sums(), "14 17 2 2");
    drop(one);
    assert_eq!(number(&open(&a), "SELECT sum(x) FROM t"), 14);
    let other = open(&b);
    assert_eq!(number(&other, "SELECT sum(y) FROM u"), 17);
    assert_eq!(number(&other, "PRAGMA user_version"), 4);
    let found: String = other
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("checks");
    assert_eq!(found, "ok");
}

/// What is moved between two files by many is always in one of them, for whoever reads
/// both, whatever each connection calls main.
#[test]
fn many_connections_move_rows_between_two_files() {
    let (_folder, a, b) = files();
    const EACH: i64 = 40;
    let moving = AtomicUsize::new(4);
    std::thread::scope(|scope| {
        for mover in 0..4 {
            let (a, b, moving) = (&a, &b, &moving);
            scope.spawn(move || {
                let (main, other) = if mover % 2 == 0 { (a, b) } else { (b, a) };
                let mut one = open(main);
                one.busy_timeout(Duration::from_secs(60)).expect("sets");
                attach(&one, other, "o");
                for round in 0..EACH {
                    let (from, to) = if (mover + round) % 2 == 0 {
                        ("t", "u")
                    } else {
                        ("u", "t")
                    };
                    let (x, y) = if from == "t" { ("x", "y") } else { ("y", "x") };
                    let give = format!("UPDATE {from} SET {x} = {x} - 1");
                    let take = format!("UPDATE {to} SET {y} = {y} + 1");
                    loop {
                        let behavior = [
                            TransactionBehavior::Deferred,
                            TransactionBehavior::Immediate,
                        ][(round % 2) as usize];
                        let moved = one.transaction_with_behavior(behavior).and_then(|txn| {
                            txn.execute(&give, [])?;
                            txn.execute(&take, [])?;
                            txn.commit()
                        });
                        match moved {
                            Ok(()) => break,
                            Err(error) => assert_eq!(
                                error.sqlite_error_code(),
                                Some(ErrorCode::DatabaseBusy),
                                "{error}"
                            ),
                        }
                    }
                }
                moving.fetch_sub(1, Ordering::Relaxed);
            });
        }
        for explicit in [false, true] {
            let (a, b, moving) = (&a, &b, &moving);
            scope.spawn(move || {
                let one = open(a);
                attach(&one, b, "b");
                while moving.load(Ordering::Relaxed) > 0 {
                    let sum = match explicit {
                        false => number(&one, "SELECT (SELECT x FROM t) + (SELECT y FROM u)"),
                        true => {
                            run(&one, "BEGIN");
                            let x = number(&one, "SELECT x FROM t");
                            std::thread::yield_now();
                            let sum = x + number(&one, "SELECT y FROM u");
                            run(&one, "COMMIT");
                            sum
                        }
                    };
                    assert_eq!(sum, 11);
                }
            });
        }
    });
    let one = open(&a);
    attach(&one, &b, "b");
    assert_eq!(number(&one, "SELECT x + y FROM t, u"), 11);
}

/// Two that each read in one file what the other one writes there.
#[test]
fn write_skew_over_two_files_fails() {
    let (_folder, a, b) = files();
    let (one, two) = (open(&a), open(&b));
    attach(&one, &b, "o");
    attach(&two, &a, "o");
    run(&one, "BEGIN; INSERT INTO t SELECT sum(y) FROM u");
    run(&two, "BEGIN; INSERT INTO u SELECT sum(x) FROM t");
    run(&one, "COMMIT");
    let lost = two.execute_batch("COMMIT").expect_err("it has lost");
    assert_eq!(lost.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    let hint = lost.hint().unwrap_or_default().to_owned();
    assert!(hint.contains("table t"), "{hint}");
    assert_eq!(number(&one, "SELECT count(*) FROM t"), 2);
    assert_eq!(number(&one, "SELECT count(*) FROM u"), 1);
}

/// It loses against who changed what it has read or written, as in the main database, and
/// then nothing of it stays anywhere.
/// A statement alone that fails tells of what another one committed, be it a row that has
/// its key or a table that is gone. In an attached file it did not wait until that was
/// durable, in none where it did not compile any more: who asked then was shown what had
/// been there before.
#[test]
fn who_is_refused_can_see_why() {
    const ROUNDS: usize = 50;
    let (_folder, a, b) = files();
    for file in [&a, &b] {
        let setup = open(file);
        run(&setup, "CREATE TABLE k(k INTEGER PRIMARY KEY)");
        (0..ROUNDS).for_each(|round| run(&setup, &format!("CREATE TABLE d{round}(x)")));
    }
    let meet = Barrier::new(2);
    let beside = |drops: bool| {
        let one = open(&a);
        attach(&one, &b, "b");
        let mut unseen = Vec::new();
        let mut runs = |sql: &str, there: &str, why: i64| {
            let mut statement = one.prepare(sql).expect("prepares");
            meet.wait();
            let Err(error) = statement.execute([]) else {
                return;
            };
            if number(&one, there) != why {
                unseen.push(format!("{sql}: {error}"));
            }
        };
        for (round, name) in (0..ROUNDS).flat_map(|round| [(round, "main"), (round, "b")]) {
            let inserts = format!("INSERT INTO {name}.k VALUES ({round})");
            let is_there = format!("SELECT count(*) FROM {name}.k WHERE k = {round}");
            runs(&inserts, &is_there, 1);
            let (table, schema) = (format!("d{round}"), format!("{name}.sqlite_schema"));
            let uses = match drops {
                true => format!("DROP TABLE {name}.{table}"),
                false => format!("INSERT INTO {name}.{table} VALUES (1)"),
            };
            let is_there = format!("SELECT count(*) FROM {schema} WHERE name = '{table}'");
            runs(&uses, &is_there, 0);
        }
        unseen
    };
    thread::scope(|scope| {
        let beside = &beside;
        let both = [true, false].map(|drops| scope.spawn(move || beside(drops)));
        let unseen = both.map(|it| it.join().expect("no panic"));
        assert_eq!(unseen.concat(), [""; 0]);
    });
}

#[test]
fn a_commit_to_an_attached_file_may_lose() {
    let (_folder, a, b) = files();
    let (one, other) = (open(&a), open(&b));
    attach(&one, &b, "b");
    run(&one, "CREATE TEMP TABLE k(z); BEGIN");
    run(
        &one,
        "INSERT INTO k SELECT y FROM u; UPDATE u SET y = y + 1",
    );
    run(&other, "UPDATE u SET y = 50");
    let lost = one.execute_batch("COMMIT").expect_err("it has lost");
    assert_eq!(lost.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    let hint = lost.hint().unwrap_or_default().to_owned();
    assert!(hint.contains("table u"), "{hint}");
    assert!(one.is_autocommit());
    assert_eq!(number(&one, "SELECT count(*) FROM k"), 0);
    assert_eq!(number(&one, "SELECT y FROM u"), 50);
}

#[test]
fn what_is_in_use_is_not_detached() {
    let (_folder, a, b) = files();
    let one = open(&a);
    attach(&one, &b, "b");
    run(&one, "BEGIN; INSERT INTO u VALUES (1)");
    assert!(refused(&one, "DETACH b").contains("database b is locked"));
    run(&one, "ROLLBACK; DETACH b");
    attach(&one, &b, "b");
    let mut select = one.prepare("SELECT y FROM b.u").expect("compiles");
    run(&one, "DETACH b");
    let gone = select.query_row([], |row| row.get::<_, i64>(0));
    assert!(
        gone.expect_err("it is gone")
            .to_string()
            .contains("no such table: b.u")
    );
    attach(&one, &b, "b");
    let y = select.query_row([], |row| row.get::<_, i64>(0));
    assert_eq!(y.expect("a row"), 10);
}

/// It was of the main database alone.
#[test]
fn a_checkpoint_without_a_name_is_of_all_files() {
    let (_folder, a, b) = files();
    let (connection, other) = (open(&a), open(&b));
    attach(&connection, &b, "b");
    run(&connection, "CREATE TEMP TABLE passing(x)");
    for (pragma, all) in [
        ("PRAGMA main.wal_checkpoint", false),
        ("PRAGMA wal_checkpoint", true),
    ] {
        run(&connection, "INSERT INTO b.u VALUES (11)");
        assert_eq!(number(&connection, pragma), 0);
        let stats = other.database().stats();
        assert_eq!(stats.checkpoint == stats.visible, all, "{pragma}");
    }
}

#[test]
fn a_database_in_memory_reads_and_fills_files() {
    let (_folder, a, _) = files();
    let database = Database::in_memory().expect("opens");
    let one = database.connect().expect("connects");
    attach(&one, &a, "a");
    run(&one, "CREATE TABLE t AS SELECT x * 2 AS x FROM a.t");
    run(&one, "INSERT INTO a.t SELECT x FROM main.t");
    assert_eq!(number(&one, "SELECT sum(x) FROM a.t"), 3);
    assert_eq!(number(&open(&a), "SELECT count(*) FROM t"), 2);
}

/// One that had joined a file which others wrote to said that it could be written to, and
/// attached files to write to them, or made them.
#[test]
fn a_connection_for_reading_only_attaches_for_reading_only() {
    let (folder, a, b) = files();
    let writing = open(&a);
    let reading = Connection::open_with_flags(&a, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let reading = reading.expect("opens");
    attach(&reading, &b, "b");
    assert!(reading.database().is_read_only());
    for name in [MAIN_DB, c"b"] {
        assert_eq!(reading.is_readonly(name), Ok(true), "{name:?}");
    }
    for sql in [
        "INSERT INTO main.t VALUES (2)",
        "INSERT INTO b.u VALUES (2)",
        "CREATE TABLE b.v (a)",
    ] {
        assert_eq!(
            refused(&reading, sql),
            "attempt to write a readonly database"
        );
    }
    let absent = folder.path().join("absent.db");
    let made = refused(&reading, &format!("ATTACH '{}' AS c", absent.display()));
    assert!(made.starts_with("unable to open database"), "{made}");
    assert!(!absent.exists());
    assert_eq!(writing.is_readonly(MAIN_DB), Ok(false));
    run(&writing, "INSERT INTO t VALUES (2)");
    assert_eq!(number(&reading, "SELECT sum(x + y) FROM t, b.u"), 23);
    let uri = format!("file:{}?mode=ro", b.display());
    run(&writing, &format!("ATTACH '{uri}' AS b"));
    assert_eq!(writing.is_readonly(c"b"), Ok(true));
}

/// Takes all entries out of an index of a file that nobody else has open.
fn empty_index(path: &Path, index: &str) {
    let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{index}'");
    let root = number(&open(path), &sql);
    let store = Store::open(path, Options::default()).expect("opens");
    let tree = TreeId(u32::try_from(root).expect("a tree's number"));
    let tree = store.tree(tree).expect("a tree");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    txn.clear(&tree, || true).expect("clears");
    txn.commit().expect("commits");
}

/// REINDEX without a name, or by what orders an index, left the files alone that were
/// attached; in SQLite all are meant, and who may not write to one is told so.
#[test]
fn indexes_of_all_files_are_made_anew() {
    let indexes = ["REINDEX", "REINDEX nocase", "REINDEX expressions"];
    let around = [["", ""], ["BEGIN; ", "; COMMIT"]];
    for (reindex, [begin, end]) in indexes.iter().flat_map(|it| around.map(|a| (it, a))) {
        let (_folder, a, b) = files();
        run(&open(&a), "CREATE INDEX ti ON t((x + 1) COLLATE nocase)");
        run(&open(&b), "CREATE INDEX ui ON u((y + 1) COLLATE nocase)");
        empty_index(&a, "ti");
        empty_index(&b, "ui");
        let c = open(&a);
        attach(&c, &b, "o");
        run(
            &c,
            "CREATE TEMP TABLE t(x); CREATE INDEX temp.i ON t(x + 1)",
        );
        let checked = |name: &str| {
            let sql = format!("PRAGMA {name}.integrity_check");
            c.query_row(&sql, [], |row| row.get::<_, String>(0))
                .expect(&sql)
        };
        assert!(["main", "o"].iter().all(|name| checked(name) != "ok"));
        run(&c, &format!("{begin}{reindex}{end}"));
        let all = ["main", "o", "temp"].map(checked);
        assert_eq!(all, ["ok"; 3], "{begin}{reindex}");
        // An index that comes later is meant, too, by who prepared it before.
        let mut prepared = c.prepare(reindex).expect(reindex);
        run(&open(&b), "CREATE INDEX u2 ON u((y + 2) COLLATE nocase)");
        let root = "SELECT rootpage FROM o.sqlite_schema WHERE name = 'u2'";
        let before = number(&c, root);
        prepared.execute([]).expect(reindex);
        assert_ne!(number(&c, root), before, "{reindex}");
    }
}

/// Who keeps a file's writers out, or opened it for reading only, is in the way where it has
/// an index of those meant, as in SQLite.
#[test]
fn reindex_is_told_of_files_that_it_may_not_write_to() {
    let (_folder, a, b) = files();
    run(&open(&a), "CREATE INDEX ti ON t(x)");
    let other = open(&b);
    run(&other, "CREATE INDEX ui ON u(y COLLATE nocase)");
    let c = open(&a);
    c.busy_timeout(Duration::ZERO).expect("a timeout");
    attach(&c, &b, "o");
    run(&other, "BEGIN IMMEDIATE");
    for sql in ["REINDEX", "REINDEX nocase"] {
        assert_eq!(refused(&c, sql), "database is locked", "{sql}");
        assert!(c.is_autocommit());
    }
    run(&c, "REINDEX binary; REINDEX main.t");
    run(&other, "COMMIT");
    run(&c, "REINDEX; DETACH o");
    let only_reads = format!("ATTACH 'file:{}?mode=ro' AS o", b.display());
    drop(other);
    run(&c, &only_reads);
    for sql in ["REINDEX", "REINDEX nocase", "REINDEX o.u"] {
        assert!(refused(&c, sql).contains("readonly"), "{sql}");
    }
    run(&c, "REINDEX binary; REINDEX main.t");
}

/// One transaction writes no more than the log takes to all files but one. A statement alone
/// that makes indexes anew does so in each file by itself.
#[test]
fn large_indexes_of_several_files_are_made_anew() {
    let (_folder, a, b) = files();
    for (path, table, column) in [(&a, "t", "x"), (&b, "u", "y")] {
        let of_file = open(path);
        run(
            &of_file,
            &format!(
                "CREATE INDEX i ON {table}({column});
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
                 INSERT INTO {table} SELECT hex(randomblob(400)) FROM n"
            ),
        );
    }
    let c = open(&a);
    attach(&c, &b, "o");
    let roots = || {
        let root = |name| format!("SELECT rootpage FROM {name}.sqlite_schema WHERE name = 'i'");
        ["main", "o"].map(|name| number(&c, &root(name)))
    };
    let before = roots();
    run(&c, "REINDEX");
    let after = roots();
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| before != after)
    );
    let together = refused(&c, "BEGIN; REINDEX; COMMIT");
    assert_eq!(together, "string or blob too big");
    assert!(c.is_autocommit());
    assert_eq!(roots(), after);
    for name in ["main", "o"] {
        let sql = format!("PRAGMA {name}.integrity_check");
        let found: String = c.query_row(&sql, [], |row| row.get(0)).expect("checks");
        assert_eq!(found, "ok", "{name}");
    }
}
