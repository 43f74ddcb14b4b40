//! `long`: what long readers and large transactions cost. A reader keeps one
//! snapshot while single rows are updated a million times: it must go on giving
//! its answer, and memory, file and log must stay bounded by what changed under
//! it once, not by the commits. Then ten million rows go into one transaction with
//! a small cache: rolled back, and committed. In both only our side is measured. At last
//! a tenth of the rows go into one transaction with an index in no order, and a fourth of
//! these are changed by way of that index, both beside SQLite.

use crate::data::{Person, scattered};
use crate::measure::toss;
use crate::memory::resident;
use crate::report::{Metric, Report};
use crate::side::{self, Settings, Workspace};
use anyhow::{Context, Result, ensure};
use fulgurite::{Connection, Database, Durability, Options};
use std::path::Path;
use std::time::Instant;

/// Rows of the table that is updated under the reader.
const ROWS: i64 = 100_000;
/// Points of the curve.
const POINTS: u64 = 20;
/// Times that each side makes the transaction with an index.
const ROUNDS: usize = 3;

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub commits: u64,
    pub rows: i64,
    pub cache_bytes: usize,
    pub seed: u64,
}

fn open(path: &Path, cache_bytes: usize) -> Result<Database> {
    let options = Options {
        cache_bytes,
        durability: Durability::Normal,
        ..Options::default()
    };
    Ok(Database::open_with_options(path, options)?)
}

/// Bytes of the database's file and of its log's files.
fn files(path: &Path) -> Result<(u64, u64)> {
    let (mut data, mut log) = (0, 0);
    let name = path.file_name().context("a file name")?.to_string_lossy();
    for entry in std::fs::read_dir(path.parent().context("a folder")?)? {
        let entry = entry?;
        let found = entry.file_name();
        let found = found.to_string_lossy();
        if found == name {
            data += entry.metadata()?.len();
        } else if found.starts_with(&*name) {
            log += entry.metadata()?.len();
        }
    }
    Ok((data, log))
}

/// Runs all parts.
pub fn run(plan: Plan, workspace: &Workspace, report: &mut Report) -> Result<()> {
    long_reader(plan, &workspace.root().join("reader.db"), report)?;
    large_transaction(plan, &workspace.root().join("large.db"), report)?;
    scattered_transaction(plan, workspace, report)
}

fn sum(connection: &Connection) -> Result<i64> {
    let sql = "SELECT sum(n * id) FROM t";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

fn long_reader(plan: Plan, path: &Path, report: &mut Report) -> Result<()> {
    let database = open(path, plan.cache_bytes)?;
    let writer = database.connect()?;
    writer.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, note TEXT); BEGIN")?;
    {
        let mut insert = writer.prepare("INSERT INTO t VALUES (?1, 0, 'a note of some length')")?;
        for id in 1..=ROWS {
            insert.execute([id])?;
        }
    }
    writer.execute_batch("COMMIT")?;
    database.checkpoint()?;
    let reader = database.connect()?;
    reader.execute_batch("BEGIN")?;
    let answer = sum(&reader)?;
    let mut update = writer.prepare("UPDATE t SET n = n + 1 WHERE id = ?1")?;
    let mut rng = fastrand::Rng::with_seed(plan.seed);
    let stretch = (plan.commits / POINTS).max(1);
    report.note("commits | kept nodes | resident MiB | file MiB | log MiB | commits/s".into());
    for point in 1..=POINTS {
        let started = Instant::now();
        for _ in 0..stretch {
            update.execute([rng.i64(1..=ROWS)])?;
        }
        let rate = stretch as f64 / started.elapsed().as_secs_f64();
        let (data, log) = files(path)?;
        report.note(format!(
            "{} | {} | {:.1} | {:.1} | {:.1} | {rate:.0}",
            point * stretch,
            database.stats().kept_nodes,
            mib(resident("VmRSS")?),
            mib(data),
            mib(log),
        ));
    }
    ensure!(sum(&reader)? == answer, "the reader's answer changed");
    reader.execute_batch("COMMIT")?;
    ensure!(sum(&reader)? != answer, "the reader never went on");
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// Inserts the rows into one transaction; how the caller ends it.
fn fill(connection: &Connection, rows: i64) -> Result<u64> {
    connection.execute_batch("BEGIN")?;
    let mut insert = connection.prepare("INSERT INTO big (id, owner, note) VALUES (?1, ?2, ?3)")?;
    let mut bytes = 0;
    for id in 1..=rows {
        let note = format!("row {id} of a large load, {}", scattered(id as u64));
        bytes += note.len() as u64 + 10;
        insert.execute((id, id % 9_973, &note))?;
    }
    Ok(bytes)
}

fn large_transaction(plan: Plan, path: &Path, report: &mut Report) -> Result<()> {
    let database = open(path, plan.cache_bytes)?;
    let connection = database.connect()?;
    connection
        .execute_batch("CREATE TABLE big (id INTEGER PRIMARY KEY, owner INTEGER, note TEXT)")?;
    let before = resident("VmRSS")?;
    fill(&connection, plan.rows)?;
    let started = Instant::now();
    connection.execute_batch("ROLLBACK")?;
    report.note(format!(
        "{} rows rolled back in {:.1} ms",
        plan.rows,
        started.elapsed().as_secs_f64() * 1e3
    ));
    let empty: i64 = connection.query_row("SELECT count(*) FROM big", [], |row| row.get(0))?;
    ensure!(empty == 0, "{empty} rows are left of a rollback");
    database.checkpoint()?;
    let written = |database: &Database| {
        let stats = database.stats();
        stats.writes.bytes + stats.log.map_or(0, |log| log.bytes)
    };
    let already = written(&database);
    let started = Instant::now();
    let bytes = fill(&connection, plan.rows)?;
    let filled = started.elapsed();
    connection.execute_batch("COMMIT")?;
    let total = started.elapsed();
    database.checkpoint()?;
    let (data, _) = files(path)?;
    let wrote = written(&database) - already;
    report.note(format!(
        "{} rows in one transaction: {:.1} s, of which COMMIT {:.2} s; cache {:.0} MiB, peak \
         resident {:.0} MiB (before: {:.0}); {:.0} MiB written for {:.0} MiB of rows in a file of \
         {:.0} MiB: {:.2} × the file, {:.2} × the rows",
        plan.rows,
        total.as_secs_f64(),
        (total - filled).as_secs_f64(),
        mib(plan.cache_bytes as u64),
        mib(resident("VmHWM")?),
        mib(before),
        mib(wrote),
        mib(bytes),
        mib(data),
        wrote as f64 / data as f64,
        wrote as f64 / bytes as f64,
    ));
    let rows: i64 = connection.query_row("SELECT count(*) FROM big", [], |row| row.get(0))?;
    ensure!(rows == plan.rows, "{rows} rows are there");
    Ok(())
}

/// Statements over the rows of a large transaction: a name, what they do, the share of the
/// rows, and the text.
const STATEMENTS: [(&str, &str, f64, &str); 7] = [
    (
        "large_update_by_index",
        "an UPDATE of a fourth of them, which that index finds",
        0.25,
        "UPDATE people SET email = email || 'y' WHERE name BETWEEN '2' AND '6'",
    ),
    (
        "large_update_of_index",
        "an UPDATE of what is indexed, in all of them",
        1.0,
        "UPDATE people SET name = substr(name, 9, 8) || substr(name, 1, 8) || substr(name, 17)",
    ),
    (
        "large_delete",
        "a DELETE of every third",
        1.0 / 3.0,
        "DELETE FROM people WHERE id % 3 = 0",
    ),
    (
        "large_insert_select",
        "an INSERT of as many as are left, from themselves",
        2.0 / 3.0,
        "INSERT INTO people SELECT id + 1000000000, substr(name, 3), email FROM people",
    ),
    (
        "large_create_index",
        "a CREATE INDEX on an expression",
        4.0 / 3.0,
        "CREATE INDEX people_email ON people (lower(email))",
    ),
    (
        "large_vacuum",
        "a VACUUM after all that",
        4.0 / 3.0,
        "VACUUM",
    ),
    (
        "large_delete_all",
        "a DELETE of all of them",
        4.0 / 3.0,
        "DELETE FROM people",
    ),
];

fn scattered_transaction(plan: Plan, workspace: &Workspace, report: &mut Report) -> Result<()> {
    let settings = Settings::new(plan.cache_bytes, side::Durability::Normal);
    let person = |id: i64| Person {
        id,
        name: format!("{:016x} {id:x}", scattered(id as u64)),
        email: format!("row {id} of many"),
    };
    let people: Vec<Person> = (1..=plan.rows / 10).map(person).collect();
    let mut rng = fastrand::Rng::with_seed(plan.seed);
    let mut loads = [Vec::new(), Vec::new()];
    let mut unique = [Vec::new(), Vec::new()];
    let mut replaced = [Vec::new(), Vec::new()];
    let mut hundreds = [Vec::new(), Vec::new()];
    let mut statements: [[Vec<f64>; 2]; STATEMENTS.len()] = Default::default();
    for _ in 0..ROUNDS {
        let mut sides = workspace.open("scattered.db", &settings)?;
        for at in toss(&mut rng) {
            sides[at].batch(
                "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, email TEXT);
                 CREATE INDEX people_name ON people (name)",
            )?;
            let time = sides[at].load_people("INSERT", &people)?;
            loads[at].push(people.len() as f64 / time.as_secs_f64());
            for ((.., share, sql), rates) in STATEMENTS.iter().zip(&mut statements) {
                let started = Instant::now();
                sides[at].batch(sql)?;
                rates[at].push(people.len() as f64 * share / started.elapsed().as_secs_f64());
            }
            sides[at].batch(
                "DROP TABLE people;
                 CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT UNIQUE, email TEXT)",
            )?;
            let time = sides[at].load_people("INSERT", &people)?;
            unique[at].push(people.len() as f64 / time.as_secs_f64());
            let time = sides[at].load_people("INSERT OR REPLACE", &people)?;
            replaced[at].push(people.len() as f64 / time.as_secs_f64());
            sides[at].batch(
                "DROP TABLE people;
                 CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT UNIQUE, email TEXT)",
            )?;
            let time = sides[at].load_people_by(100, &people)?;
            hundreds[at].push(people.len() as f64 / time.as_secs_f64());
        }
        drop(sides);
        workspace.remove("scattered.db")?;
    }
    let what = format!(
        "{} rows in one transaction, with an index in no order",
        people.len()
    );
    let unique_what = "the same, in a unique index";
    let hundreds_what = "these by INSERTs of a hundred rows";
    let replaced_what = "the same again, each in its own place, by INSERT OR REPLACE";
    for (name, what, [ours, theirs]) in [
        ("large_scattered", what.as_str(), &loads),
        ("large_unique", unique_what, &unique),
        ("large_replace", replaced_what, &replaced),
        ("large_unique_by_100", hundreds_what, &hundreds),
    ] {
        report.push(Metric::rate(name, what, "rows/s", ours, theirs));
    }
    for ((name, what, ..), [ours, theirs]) in STATEMENTS.iter().zip(&statements) {
        report.push(Metric::rate(name, what, "rows/s", ours, theirs));
    }
    Ok(())
}
