//! What names mean where several files are open, while others change that.

use fulgurite::{Connection, Database, Statement};
use fulgurite_store::{Durability, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

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
