//! The search for an order, by running transactions on the model and going back where one
//! is told something else.

use crate::session::{Told, Transaction};
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
                Err(why) if depth >= self.deepest.0 => self.deepest = (depth, why),
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
                None if step.sql.contains("SAVEPOINT s") || step.sql.contains("RELEASE s") => {
                    self.run_on_model(&step.sql);
                }
                None => {}
                // What does not compile begins no transaction.
                Some(Told::Failed(1)) if !begun => {}
                Some(told) => {
                    begun = true;
                    let model = self.ask(&step.sql);
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

    fn ask(&self, sql: &str) -> Told {
        let told = match sql.starts_with("SELECT") {
            true => self.query(sql).map(Told::Rows),
            false => self.model.execute(sql, []).map(|changed| {
                let is_schema = sql.starts_with("CREATE") || sql.starts_with("DROP");
                Told::Changed(if is_schema { 0 } else { changed })
            }),
        };
        told.unwrap_or_else(|error| {
            let code = error.sqlite_error().map_or(1, |it| it.extended_code & 0xff);
            Told::Failed(code)
        })
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

    /// All that is in the tables, and which indexes there are.
    fn state(&self) -> String {
        let tables = self
            .tables
            .iter()
            .map(|table| format!("SELECT * FROM {table}"));
        let schemas = [
            "SELECT name FROM main.sqlite_schema",
            "SELECT name FROM other.sqlite_schema",
        ];
        let asked = tables.chain(schemas.map(str::to_owned));
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
