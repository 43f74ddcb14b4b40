//! What names mean where several files are open, while others change that.

use fulgurite::{Connection, Database, Statement};
use fulgurite_store::{Durability, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Files `a.db`, `b.db` and `c.db`, of which only the first is there.
fn paths() -> (tempfile::TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = ["a.db", "b.db", "c.db"].map(|name| folder.path().join(name));
    (folder, paths)
}

/// A connection to the first file, with the others attached as `b` and `c`.
fn open(paths: &[PathBuf]) -> Connection {
    let connection = Connection::open(&paths[0]).expect("opens");
    for (path, name) in paths[1..].iter().zip(["b", "c"]) {
        attach(&connection, path, name);
    }
    connection
}

/// Has a file open so that nobody waits for its syncs.
fn quick(path: &Path) -> Database {
    let options = Options {
        durability: Durability::Off,
        ..Options::default()
    };
    Database::open_with_options(path, options).expect("opens")
}

fn attach(connection: &Connection, path: &Path, name: &str) {
    run(
        connection,
        &format!("ATTACH '{}' AS {name}", path.display()),
    );
}

fn run(connection: &Connection, sql: &str) {
    let outcome = connection.execute_batch(sql);
    outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn number(statement: &mut Statement<'_>) -> i64 {
    let number = statement.query_row([], |row| row.get(0));
    number.expect("a number")
}

/// A statement that comes to read another file, since a name means something else by now,
/// reads both as they were at one moment.
#[test]
fn a_statement_compiled_again_reads_all_files_at_one_moment() {
    const ROUNDS: usize = 400;
    let (_folder, paths) = paths();
    let paths = &paths[..2];
    let _quick = [quick(&paths[0]), quick(&paths[1])];
    let one = open(paths);
    run(
        &one,
        "CREATE TABLE main.x(v); INSERT INTO x VALUES (0);
         CREATE TABLE b.y(v); INSERT INTO y VALUES (0)",
    );
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mover = open(paths);
            while !done.load(Ordering::Relaxed) {
                let moved = mover.execute_batch(
                    "BEGIN; UPDATE main.x SET v = v + 1; UPDATE b.y SET v = v - 1; COMMIT",
                );
                if moved.is_err() && !mover.is_autocommit() {
                    run(&mover, "ROLLBACK");
                }
            }
        });
        let other = Connection::open(&paths[0]).expect("opens");
        let mut sum = one
            .prepare("SELECT (SELECT v FROM x) + (SELECT v FROM y)")
            .expect("compiles");
        let sums = (0..ROUNDS).map(|_| {
            run(&other, "CREATE TABLE y(v); INSERT INTO y VALUES (0)");
            number(&mut sum);
            run(&other, "DROP TABLE y");
            number(&mut sum)
        });
        let halves = sums.filter(|sum| *sum != 0).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(halves, 0, "of {ROUNDS} saw half of a commit");
    });
}

/// That a name means nothing in a file, or nothing else than it does, is something that a
/// transaction has read there.
#[test]
fn what_a_name_did_not_mean_is_read() {
    // What one statement of a transaction asks, and what makes the answer another one.
    let cases = [
        ("SELECT * FROM u", "CREATE TABLE main.u(n)"),
        ("DROP VIEW IF EXISTS u", "CREATE VIEW main.u AS SELECT 1"),
        ("SELECT * FROM u", "CREATE TABLE b.u(n)"),
        ("SELECT * FROM b.u", "CREATE TABLE b.u(n)"),
        ("DROP TABLE IF EXISTS b.u", "CREATE TABLE b.u(n)"),
        ("DROP INDEX IF EXISTS i", "CREATE INDEX b.i ON v(n)"),
        ("SELECT count(*) FROM t", "CREATE TABLE b.t(n)"),
        ("INSERT INTO log SELECT n FROM t", "CREATE TABLE b.t(n)"),
        ("CREATE TABLE IF NOT EXISTS c.t(n)", "DROP TABLE c.t"),
        (
            "SELECT count(*) FROM pragma_table_info('t')",
            "CREATE TABLE b.t(n)",
        ),
    ];
    for (asks, changes) in cases {
        let (_folder, paths) = paths();
        let (one, other) = (open(&paths), open(&paths));
        run(
            &one,
            "CREATE TABLE main.log(n); CREATE TABLE b.v(n); CREATE TABLE c.t(n)",
        );
        run(&one, "BEGIN; SELECT count(*) FROM main.log");
        let answer = one.execute_batch(asks);
        if let Err(error) = answer {
            assert!(error.to_string().contains("no such table"), "{error}");
        }
        run(&one, "INSERT INTO main.log VALUES (1)");
        // The other one does not see that row, so it came first; nor did this one see
        // what it does.
        run(
            &other,
            &format!("BEGIN; SELECT count(*) FROM main.log; {changes}; COMMIT"),
        );
        let error = one.execute_batch("COMMIT").expect_err(asks);
        assert!(error.to_string().contains("locked"), "{asks}: {error}");
    }
}

/// A statement alone waits for nobody who writes to a file in which it only looked for a
/// name.
#[test]
fn who_looks_for_a_name_waits_for_no_writer_there() {
    let (_folder, paths) = paths();
    let (one, other) = (open(&paths), open(&paths[1..2]));
    run(&one, "CREATE TABLE b.v(n); CREATE TABLE c.t(n)");
    one.busy_timeout(Duration::ZERO).expect("sets");
    run(&other, "BEGIN IMMEDIATE; INSERT INTO v VALUES (1)");
    run(&one, "INSERT INTO t VALUES (2); UPDATE t SET n = n + 1");
    let mut found = one.prepare("SELECT n FROM t").expect("compiles");
    assert_eq!(number(&mut found), 3);
    run(&other, "COMMIT");
}

/// A statement alone that waited for another one's commit sees all of it, what names mean
/// by now as well.
#[test]
fn a_statement_that_waited_for_a_commit_sees_all_of_it() {
    const ROUNDS: usize = 60;
    let (_folder, paths) = paths();
    let _quick = paths.each_ref().map(|path| quick(path));
    let (mut one, other) = (open(&paths), open(&paths));
    run(&one, "CREATE TABLE c.t(n)");
    for round in 0..ROUNDS {
        run(&other, "BEGIN IMMEDIATE; INSERT INTO c.t VALUES (1)");
        // Where both say `t` from here on.
        let hides = ["main", "b"][round % 2];
        run(&other, &format!("CREATE TABLE {hides}.t(n)"));
        let waits = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (one, waits) = (&mut one, &waits);
            scope.spawn(move || {
                waits.store(true, Ordering::Relaxed);
                let inserted = one.execute("INSERT INTO t SELECT 5 FROM c.t", []);
                inserted.expect("waits and inserts");
            });
            while !waits.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            (0..round * 20).for_each(|_| std::thread::yield_now());
            run(&other, "COMMIT");
        });
        // It came before the other one, when `c.t` had no row, or after it.
        let mut beside = other
            .prepare("SELECT count(*) FROM c.t WHERE n = 5")
            .expect("compiles");
        assert_eq!(number(&mut beside), 0, "round {round}, {hides}");
        run(&other, &format!("DROP TABLE {hides}.t; DELETE FROM c.t"));
    }
}
