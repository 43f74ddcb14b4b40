//! The search for an order, by running transactions on the model and going back where one
//! is told something else.

use crate::blob::through_handle;
use crate::session::{Told, Transaction};
use crate::shape::FILES;
use crate::{ask, blob};
use rusqlite::Connection;
use std::collections::HashSet;

/// How many places in the order are tried before the search gives up.
const STEPS_MAX: usize = 100_000;

/// How a search ended.
pub enum Found {
    Order,
    /// There is none.
    None,
    Undecided,
}

/// See the module.
pub struct Search<'h> {
    model: &'h Connection,
    /// Those of each thread.
    history: &'h [Vec<Transaction>],
    tables: Vec<String>,
    /// How many of each thread have their place.
    placed: Vec<usize>,
    /// Where no order led to the end: who was placed, and what was in the tables.
    vain: HashSet<(Vec<usize>, String)>,
    steps: usize,
    deepest: (usize, String),
}

impl<'h> Search<'h> {
    pub fn new(
        model: &'h Connection,
        history: &'h [Vec<Transaction>],
        tables: Vec<String>,
    ) -> Self {
        Self {
            model,
            history,
            tables,
            placed: vec![0; history.len()],
            vain: HashSet::new(),
            steps: 0,
            deepest: (0, String::new()),
        }
    }

    pub fn run(&mut self) -> Found {
        match self.goes_on() {
            true => Found::Order,
            false if self.steps > STEPS_MAX => Found::Undecided,
            false => Found::None,
        }
    }

    /// What was in the way of those that came furthest.
    pub fn deepest(&self) -> &str {
        &self.deepest.1
    }

    fn next_of(&self, thread: usize) -> Option<&'h Transaction> {
        self.history[thread].get(self.placed[thread])
    }

    /// Who may come next: who began before any that has no place ended. Who ended first is
    /// tried first.
    fn candidates(&self) -> Vec<usize> {
        let threads = 0..self.history.len();
        let left = threads.filter_map(|thread| Some((self.next_of(thread)?, thread)));
        let mut left: Vec<_> = left.collect();
        left.sort_by_key(|(next, _)| next.ended);
        let first_end = left.first().map_or(0, |(next, _)| next.ended);
        left.retain(|(next, _)| next.began <= first_end);
        left.into_iter().map(|(_, thread)| thread).collect()
    }

    fn goes_on(&mut self) -> bool {
        let depth: usize = self.placed.iter().sum();
        let candidates = self.candidates();
        if candidates.is_empty() {
            return true;
        }
        let here = (self.placed.clone(), self.state());
        self.steps += 1;
        if self.steps > STEPS_MAX || self.vain.contains(&here) {
            return false;
        }
        for thread in candidates {
            let Some(next) = self.next_of(thread) else {
                continue;
            };
            self.run_on_model(&format!("SAVEPOINT at{depth}"));
            let explained = self.explains(next);
            if explained.is_ok() {
                if !next.committed {
                    self.run_on_model(&format!("ROLLBACK TO at{depth}"));
                }
                self.placed[thread] += 1;
                if self.goes_on() {
                    return true;
                }
                self.placed[thread] -= 1;
            }
            self.run_on_model(&format!("ROLLBACK TO at{depth}; RELEASE at{depth}"));
            match explained {
                Err(why) if depth >= self.deepest.0 => {
                    self.deepest = (depth, format!("behind {:?}, {why}", self.placed));
                }
                // Where one that leaves nothing has its place is the same to all others.
                Ok(()) if !next.committed => break,
                _ => {}
            }
        }
        self.vain.insert(here);
        false
    }

    /// Whether the model tells a transaction the same.
    fn explains(&self, transaction: &Transaction) -> Result<(), String> {
        let mut begun = transaction.alone || transaction.excludes;
        for step in &transaction.steps {
            match &step.told {
                None if step.sql.contains("SAVEPOINT s") || step.sql.ends_with(" s") => {
                    self.run_on_model(&step.sql);
                }
                None => {}
                // What does not compile begins no transaction.
                Some(Told::Failed(1)) if !begun => {}
                Some(told) => {
                    begun = true;
                    let model = match transaction.alone {
                        true => self.ask_alone(&step.sql),
                        false => self.ask(&step.sql),
                    };
                    if model != *told {
                        return Err(format!("{}: {told:?}, not {model:?}", step.sql));
                    }
                }
            }
        }
        Ok(())
    }

    fn run_on_model(&self, sql: &str) {
        let ran = self.model.execute_batch(sql);
        ran.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Asks what is a transaction by itself. (To the model it is not, so that it accepts
    /// rows without the parents that COMMIT would ask for.)
    fn ask_alone(&self, sql: &str) -> Told {
        self.run_on_model("SAVEPOINT alone");
        let mut told = self.ask(sql);
        if let failed @ Told::Failed(_) = self.ask("COMMIT") {
            self.run_on_model("ROLLBACK TO alone");
            told = failed;
        }
        self.run_on_model("RELEASE alone");
        told
    }

    fn ask(&self, sql: &str) -> Told {
        let told = match sql {
            "COMMIT" if self.has_orphans() => Ok(Told::Failed(rusqlite::ffi::SQLITE_CONSTRAINT)),
            "COMMIT" => Ok(Told::Changed(0)),
            _ if let Some(asked) = blob::parse(sql) => through_handle!(self.model, &asked),
            _ if ask::is_query(sql) => self.query(sql).map(Told::Rows),
            _ => {
                let changed = self.model.execute(sql, []);
                changed.map(|rows| Told::Changed(if ask::counts_rows(sql) { rows } else { 0 }))
            }
        };
        told.unwrap_or_else(|error| {
            let code = error.sqlite_error().map_or(1, |it| it.extended_code & 0xff);
            Told::Failed(code)
        })
    }

    /// Whether rows lack their parents. (The second file may be missing.)
    fn has_orphans(&self) -> bool {
        let checks = FILES.map(|file| format!("PRAGMA {file}.foreign_key_check"));
        let mut orphans = checks.iter().filter_map(|sql| self.query(sql).ok());
        orphans.any(|rows| !rows.is_empty())
    }

    fn query(&self, sql: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.model.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let values =
                (0..columns).map(|i| row.get(i).map(|it: rusqlite::types::Value| shown(&it)));
            Ok(values.collect::<Result<Vec<_>, _>>()?.join("|"))
        })?;
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        rows.sort();
        Ok(rows)
    }

    /// All that is in the tables, and what the schema is.
    fn state(&self) -> String {
        let tables = self.tables.iter().map(|table| ask::all(table));
        let schemas = FILES.map(|file| {
            format!("SELECT name, substr(sql, -120), length(sql) FROM {file}.sqlite_schema")
        });
        let asked = tables.chain(schemas);
        asked.map(|sql| format!("{:?}", self.ask(&sql))).collect()
    }
}

fn shown(value: &rusqlite::types::Value) -> String {
    use rusqlite::types::Value;
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}
