//! A connection, and what its transactions asked and were told.

use crate::blob::through_handle;
use crate::{ask, blob, shape};
use fastrand::Rng;
use fulgurite::{Connection, Error, types::Value};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts what begins and ends.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What a statement was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Rows, sorted.
    Rows(Vec<String>),
    /// How many rows it changed.
    Changed(usize),
    /// An error, by its primary code.
    Failed(i32),
}

/// What was asked, and told. Of what only marks a place, or was busy, nothing was told.
#[derive(Debug, Clone)]
pub struct Step {
    pub sql: String,
    pub told: Option<Told>,
}

/// A transaction, or a statement alone.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// It has a snapshot of its own from the start on.
    pub excludes: bool,
    pub alone: bool,
    pub steps: Vec<Step>,
    pub committed: bool,
    pub began: u64,
    pub ended: u64,
}

pub struct Session {
    connection: Connection,
    files: usize,
}

const BUSY: i32 = 5;
/// A handle is told so whose row was changed since it was opened.
const ABORT: i32 = 4;

fn code(error: &Error) -> i32 {
    error.sqlite_extended_error_code().unwrap_or(1) & 0xff
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

impl Session {
    /// Opens all files; `waits`: for locks, for as long as it takes; `synced`: its commits.
    pub fn new(paths: &[PathBuf], waits: bool, synced: bool) -> Self {
        let connection = Connection::open(&paths[0]).expect("opens");
        let session = Self {
            connection,
            files: paths.len(),
        };
        for (path, name) in paths.iter().zip(shape::FILES).skip(1) {
            session.run(&format!("ATTACH '{}' AS {name}", path.display()));
        }
        let synchronous = if synced { "full" } else { "normal" };
        session.run(&format!(
            "PRAGMA foreign_keys = ON; PRAGMA synchronous = {synchronous}"
        ));
        let timeout = Duration::from_secs(if waits { 60 } else { 0 });
        session.connection.busy_timeout(timeout).expect("sets");
        session
    }

    pub fn run(&self, sql: &str) {
        let ran = self.connection.execute_batch(sql);
        ran.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    pub fn rows(&self, sql: &str) -> Vec<String> {
        self.query(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    fn query(&self, sql: &str) -> Result<Vec<String>, Error> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let values = (0..columns).map(|i| row.get(i).map(|it: Value| shown(&it)));
            Ok(values.collect::<Result<Vec<_>, _>>()?.join("|"))
        })?;
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        rows.sort();
        Ok(rows)
    }

    /// Asks; false where it was busy.
    fn ask(&self, sql: String, steps: &mut Vec<Step>) -> bool {
        if sql == "ANALYZE" {
            // It has nothing to tell, and begins no transaction.
            return self.mark(&sql, steps);
        }
        let told = match blob::parse(&sql) {
            Some(asked) => through_handle!(self.connection, &asked),
            None if ask::is_query(&sql) => self.query(&sql).map(Told::Rows),
            None => {
                let changed = self.connection.execute(&sql, []);
                changed.map(|rows| Told::Changed(if ask::counts_rows(&sql) { rows } else { 0 }))
            }
        };
        // A handle may be refused for an index that SQLite does not look at.
        let is_written = blob::parse(&sql).is_some_and(|it| it.written.is_some());
        if is_written && told.as_ref().is_err_and(|error| code(error) == 1) {
            return true;
        }
        let told = match told {
            Ok(told) => Some(told),
            Err(error) => Some(code(&error))
                .filter(|it| ![BUSY, ABORT].contains(it))
                .map(Told::Failed),
        };
        let answered = told.is_some();
        steps.push(Step { sql, told });
        answered
    }

    /// Marks a place, or goes back to it.
    fn mark(&self, sql: &str, steps: &mut Vec<Step>) -> bool {
        let done = self.connection.execute_batch(sql).is_ok();
        let sql = sql.to_owned();
        steps.extend(done.then_some(Step { sql, told: None }));
        done
    }

    fn any(&self, rng: &mut Rng, by: &str) -> String {
        match rng.u8(..24) {
            0 | 1 => shape::reshape(rng, self.files),
            2 | 3 => blob::any(rng, self.files, by),
            4..=11 => ask::query(rng, self.files),
            _ => ask::change(rng, self.files, by),
        }
    }

    /// What is in these tables.
    pub fn look(&self, tables: &[String], clock: &Clock) -> Transaction {
        let began = clock.tick();
        let mut steps = Vec::new();
        for table in tables {
            self.ask(ask::all(table), &mut steps);
        }
        Transaction {
            excludes: false,
            alone: true,
            steps,
            committed: true,
            began,
            ended: clock.tick(),
        }
    }

    /// Has the file made anew, unless somebody is in the way.
    fn vacuum(&self) {
        let made = self.connection.execute_batch("VACUUM");
        let refused = made.err().filter(|error| code(error) != BUSY);
        assert!(refused.is_none(), "{refused:?}");
    }

    /// What is in a copy of the main file is what was there at one moment.
    fn look_at_copy(&self, clock: &Clock) -> Transaction {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("copy");
        let began = clock.tick();
        self.run(&format!("VACUUM INTO '{}'", path.display()));
        let ended = clock.tick();
        let copy = Self::new(&[path], true, false);
        let check = copy.rows("PRAGMA integrity_check");
        assert_eq!(check, ["ok"]);
        Transaction {
            began,
            ended,
            alone: false,
            ..copy.look(&shape::tables(1), &Clock::default())
        }
    }

    /// Runs one of some kind, now and then behind a checkpoint.
    pub fn transaction(&mut self, rng: &mut Rng, clock: &Clock) -> Transaction {
        match rng.u8(..40) {
            0..=2 => self.connection.database().checkpoint().expect("is made"),
            3 => self.vacuum(),
            4 => return self.look_at_copy(clock),
            _ => {}
        }
        let began = clock.tick();
        let by = format!("{began} ");
        let mut steps = Vec::new();
        let begin = [
            "",
            "",
            "BEGIN",
            "BEGIN",
            "BEGIN CONCURRENT",
            "BEGIN IMMEDIATE",
            "SAVEPOINT z",
        ][rng.usize(..7)];
        let committed = match begin {
            "" => self.ask(self.any(rng, &by), &mut steps),
            begin => {
                self.connection.execute_batch(begin).is_ok()
                    && self.in_transaction(rng, &by, &mut steps)
            }
        };
        if !self.connection.is_autocommit() {
            self.run("ROLLBACK");
        }
        Transaction {
            excludes: begin.ends_with("IMMEDIATE"),
            alone: begin.is_empty(),
            steps,
            committed,
            began,
            ended: clock.tick(),
        }
    }

    /// Statements up to COMMIT; whether that was reached.
    fn in_transaction(&self, rng: &mut Rng, by: &str, steps: &mut Vec<Step>) -> bool {
        let large = rng.u8(..24) == 0;
        if large && !self.ask(shape::ballast(rng, self.files), steps) {
            return false;
        }
        // How many places there are to go back to.
        let mut marks = 0;
        for _ in 0..rng.usize(1..5) {
            if rng.bool() {
                std::thread::yield_now();
            }
            while marks < 3 && rng.u8(..6) == 0 {
                if !self.mark("SAVEPOINT s", steps) {
                    return false;
                }
                marks += 1;
            }
            if !self.ask(self.any(rng, by), steps) {
                // Who is refused a lock may go on.
                assert!(!self.connection.is_autocommit(), "lost: {steps:#?}");
                if rng.bool() {
                    return false;
                }
            }
            while marks > 0 && rng.bool() {
                let undo = ["ROLLBACK TO s; RELEASE s", "RELEASE s", "ROLLBACK TO s"];
                let undo = undo[rng.usize(..3)];
                if !self.mark(undo, steps) {
                    return false;
                }
                marks -= usize::from(undo.contains("RELEASE"));
            }
        }
        std::thread::yield_now();
        if rng.u8(..12) == 0 {
            return false;
        }
        self.ask("COMMIT".to_owned(), steps) && self.connection.is_autocommit()
    }
}
