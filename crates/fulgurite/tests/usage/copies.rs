// Copies of databases, written once. Included into modules in which `db` is either crate.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use db::backup::{Backup, NO_PROGRESS, Progress, StepResult};
use db::{Connection, Error, MAIN_DB, OpenFlags, Result};

macro_rules! say {
    ($out:expr, $($arg:tt)*) => {
        writeln!($out, $($arg)*).expect("writing to a String")
    };
}

const SHOP: &str = "
    CREATE TABLE person (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, age INT);
    CREATE INDEX by_age ON person (age) WHERE age > 10;
    CREATE TABLE pet (owner REFERENCES person, name, weight REAL, kind AS (name || '!'));
    CREATE TABLE tag (word TEXT COLLATE NOCASE, pet INT, PRIMARY KEY (word, pet)) WITHOUT ROWID;
    CREATE VIEW grown AS SELECT name FROM person WHERE age > 17;
    CREATE TRIGGER named AFTER INSERT ON person WHEN new.name IS NULL
        BEGIN UPDATE person SET name = 'nobody ' || new.id WHERE id = new.id; END;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO person (name, age) SELECT 'p' || i, i % 90 FROM n;
    INSERT INTO person (age) VALUES (40);
    DELETE FROM person WHERE id > 480;
    INSERT INTO pet VALUES (1, 'rex', 12), (2, x'00ff', NULL), (3, zeroblob(30000), 0.5);
    INSERT INTO tag VALUES ('Big', 2), ('big', 1), ('old', 1);
    PRAGMA user_version = 7; PRAGMA application_id = -3;";

/// All that a database holds, as text; and that it goes on where it was.
fn contents(db: &Connection, out: &mut String) -> Result<()> {
    for sql in [
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name",
        "SELECT count(*), sum(length(name)), min(name), sum(age), max(id) FROM person",
        "SELECT count(*), sum(id) FROM person INDEXED BY by_age WHERE age > 10",
        "SELECT id FROM person WHERE name = 'p77'",
        "SELECT owner, hex(substr(name, 1, 9)), weight, length(kind) FROM pet",
        "SELECT count(*) FROM grown",
        "SELECT * FROM tag ORDER BY word, pet",
        "SELECT pet FROM tag WHERE word = 'BIG' AND pet = 1",
        "PRAGMA index_xinfo(tag)",
        "SELECT * FROM sqlite_sequence",
        "PRAGMA user_version",
        "PRAGMA application_id",
        "PRAGMA integrity_check",
        "INSERT INTO person (age) VALUES (3) RETURNING id",
        "SELECT name FROM person ORDER BY id DESC LIMIT 1",
        "DELETE FROM person WHERE age = 3 AND name LIKE 'nobody%'",
    ] {
        let mut stmt = match db.prepare(sql) {
            Ok(stmt) => stmt,
            Err(e) => {
                say!(out, "{sql}: {e}");
                continue;
            }
        };
        let width = stmt.column_count();
        let mut rows = stmt.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<_> = (0..width).map(|i| format!("{:?}", row.get_ref(i))).collect();
            say!(out, "{}", values.join(", "));
        }
    }
    Ok(())
}

pub fn run(dir: &Path) -> String {
    let mut out = String::new();
    for (name, chapter) in [
        ("between connections", between as fn(&Path, &mut String) -> Result<()>),
        ("what is in the way", refused),
        ("of an attached one", of_an_attached_one),
        ("to files and back", files),
        ("vacuum into", vacuum_into),
    ] {
        say!(out, "== {name}");
        if let Err(e) = chapter(dir, &mut out) {
            say!(out, "ended with {e:?}");
        }
    }
    out
}

fn between(_: &Path, out: &mut String) -> Result<()> {
    let source = Connection::open_in_memory()?;
    source.execute_batch(SHOP)?;
    let mut copy = Connection::open_in_memory()?;
    copy.execute_batch("CREATE TABLE old (a, b UNIQUE); INSERT INTO old VALUES (1, 2)")?;
    {
        let backup = Backup::new(&source, &mut copy)?;
        let progress = backup.progress();
        say!(out, "{} {}", progress.remaining, progress.pagecount);
        say!(out, "{:?}", backup.step(0)?);
        let mut last = backup.progress();
        let mut steps = 0;
        while backup.step(1)? == StepResult::More {
            let progress = backup.progress();
            assert!(progress.remaining <= last.remaining);
            assert_eq!(progress.pagecount, last.pagecount);
            last = progress;
            steps += 1;
        }
        say!(out, "{} {:?}", steps > 2, backup.progress().remaining);
        say!(out, "{:?}", backup.step(1)?);
    }
    contents(&copy, out)?;
    contents(&source, out)?;
    // Again, over what is there now.
    source.execute_batch("DROP TABLE pet; DELETE FROM person WHERE id > 3")?;
    Backup::new(&source, &mut copy)?.run_to_completion(5, Duration::ZERO, None)?;
    contents(&copy, out)?;
    // A copy of nothing empties.
    let nothing = Connection::open_in_memory()?;
    Backup::new(&nothing, &mut copy)?.step(-1)?;
    contents(&copy, out)
}

fn said(out: &mut String, outcome: Result<()>) {
    match outcome {
        Ok(()) => say!(out, "ok"),
        Err(Error::SqliteFailure(code, message)) => say!(out, "{code:?} {message:?}"),
        Err(e) => say!(out, "{e:?}"),
    }
}

fn refused(_: &Path, out: &mut String) -> Result<()> {
    let source = Connection::open_in_memory()?;
    source.execute_batch(SHOP)?;
    let mut copy = Connection::open_in_memory()?;
    copy.execute_batch("CREATE TABLE t (a)")?;
    for begun in ["BEGIN", "BEGIN; INSERT INTO t VALUES (1)", "SAVEPOINT s"] {
        copy.execute_batch(begun)?;
        said(out, Backup::new(&source, &mut copy).map(|_| ()));
        copy.execute_batch("ROLLBACK")?;
    }
    for (from, to) in [("nope", "main"), ("main", "nope")] {
        let named = Backup::new_with_names(&source, from, &mut copy, to);
        said(out, named.map(|_| ()));
    }
    // The source's own transaction keeps it waiting.
    source.execute_batch("BEGIN; DELETE FROM pet")?;
    {
        let backup = Backup::new(&source, &mut copy)?;
        say!(out, "{:?}", backup.step(-1)?);
        source.execute_batch("ROLLBACK")?;
        say!(out, "{:?}", backup.step(-1)?);
    }
    contents(&copy, out)?;
    // Dropped on its way it leaves what was there.
    let nothing = Connection::open_in_memory()?;
    nothing.execute_batch("CREATE TABLE other AS SELECT 1 AS x")?;
    let mut target = Connection::open_in_memory()?;
    target.execute_batch("CREATE TABLE kept AS SELECT 2 AS y")?;
    Backup::new(&source, &mut target)?.step(1)?;
    let kept: i64 = target.query_row("SELECT y FROM kept", [], |row| row.get(0))?;
    say!(out, "{kept}");
    Ok(())
}

/// A database was detached from under a copy of it, which kept its file open.
fn of_an_attached_one(dir: &Path, out: &mut String) -> Result<()> {
    let db = Connection::open_in_memory()?;
    db.execute("ATTACH ? AS shop", [dir.join("shop.db").to_str()])?;
    db.execute_batch("CREATE TABLE shop.t (a); INSERT INTO t VALUES (1), (2)")?;
    let mut copy = Connection::open_in_memory()?;
    {
        let backup = Backup::new_with_names(&db, "shop", &mut copy, MAIN_DB)?;
        said(out, db.execute_batch("DETACH shop"));
        say!(out, "{:?}", backup.step(-1)?);
        said(out, db.execute_batch("DETACH shop"));
    }
    said(out, db.execute_batch("DETACH shop"));
    let sum: i64 = copy.query_row("SELECT sum(a) FROM t", [], |row| row.get(0))?;
    say!(out, "{sum}");
    Ok(())
}

fn files(dir: &Path, out: &mut String) -> Result<()> {
    let path = dir.join("copy.db");
    let source = Connection::open(dir.join("source.db"))?;
    source.execute_batch(SHOP)?;
    let calls = Cell::new(0);
    let counted = |_: Progress| calls.set(calls.get() + 1);
    source.backup(MAIN_DB, &path, Some(counted))?;
    say!(out, "{}", calls.get() > 0);
    contents(&Connection::open(&path)?, out)?;
    source.execute_batch("UPDATE person SET age = age + 1; PRAGMA user_version = 8")?;
    source.backup(MAIN_DB, &path, NO_PROGRESS)?;
    contents(&Connection::open(&path)?, out)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    contents(&Connection::open_with_flags(&path, flags)?, out).unwrap_or_else(|e| say!(out, "{e:?}"));
    let mut restored = Connection::open_in_memory()?;
    restored.restore(MAIN_DB, &path, Some(|_: Progress| {}))?;
    contents(&restored, out)?;
    said(out, source.backup("nope", &path, NO_PROGRESS));
    let nowhere = source.backup(MAIN_DB, dir.join("no/such/folder/x.db"), NO_PROGRESS);
    say!(out, "{:?}", nowhere.map_err(|e| e.sqlite_error_code()));
    std::fs::write(dir.join("notes.txt"), "not a database at all, but long enough to be looked at")
        .expect("writes");
    let no_database = restored.restore(MAIN_DB, dir.join("notes.txt"), NO_PROGRESS);
    say!(out, "{:?}", no_database.map_err(|e| e.sqlite_error_code()));
    contents(&restored, out)
}

fn vacuum_into(dir: &Path, out: &mut String) -> Result<()> {
    let db = Connection::open(dir.join("vacuumed.db"))?;
    db.execute_batch(SHOP)?;
    let at = |name: &str| dir.join(name).to_str().expect("UTF-8").replace('\'', "''");
    db.execute_batch(&format!("VACUUM INTO '{}'", at("into.db")))?;
    contents(&Connection::open(dir.join("into.db"))?, out)?;
    db.execute("VACUUM main INTO ?1", [at("bound.db")])?;
    contents(&Connection::open(dir.join("bound.db"))?, out)?;
    db.execute_batch(&format!("VACUUM INTO (SELECT '{}' || name FROM person WHERE id = 5)", at("q")))?;
    say!(out, "{}", dir.join("qp5").exists());
    std::fs::write(dir.join("empty.db"), "").expect("writes");
    for name in ["empty.db", "vacuumed.db", "into.db"] {
        said(out, db.execute_batch(&format!("VACUUM INTO '{}'", at(name))));
    }
    contents(&Connection::open(dir.join("empty.db"))?, out)?;
    for sql in [
        "VACUUM", "VACUUM main", "VACUUM temp", "VACUUM nope", "VACUUM nope INTO 'n'",
        "VACUUM INTO NULL", "VACUUM INTO 5", "VACUUM INTO x'6161'", "VACUUM INTO ''",
        "VACUUM INTO ':memory:'", "VACUUM INTO a", "VACUUM INTO person.name", "VACUUM INTO no_fn()",
        "VACUUM INTO max(a)", "VACUUM INTO (1, 2)", "VACUUM INTO abs(-9223372036854775807 - 1)",
        "VACUUM INTO (SELECT age FROM person)", "VACUUM INTO '/nonexistent/folder/x'",
        "BEGIN", "VACUUM", "VACUUM INTO 'w'", "VACUUM INTO '/etc/passwd'", "COMMIT",
        "SAVEPOINT s", "VACUUM", "VACUUM INTO 'w'", "RELEASE s",
    ] {
        say!(out, "{sql}");
        said(out, db.execute_batch(sql));
    }
    let mut stmt = db.prepare("SELECT id FROM person")?;
    let mut rows = stmt.query([])?;
    rows.next()?;
    said(out, db.execute_batch("VACUUM"));
    said(out, db.execute_batch("VACUUM INTO 'w'"));
    drop(rows);
    for sql in ["VACUUM", "VACUUM INTO 'w'"] {
        let stmt = db.prepare(sql)?;
        say!(out, "{} {} {}", stmt.readonly(), stmt.column_count(), stmt.is_explain());
    }
    say!(out, "{} {}", db.changes(), db.total_changes());
    Ok(())
}
