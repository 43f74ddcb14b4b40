//! Rows that are known before the statement runs, by the argument that asks for them:
//! those of PRAGMAs, of which those about the schema are known when it is compiled, the
//! others answered when it starts.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Context, TableFunction, TableRows};
use crate::bind::expr::ROWID;
use crate::error::{Error, Result};
use crate::plan::physical::Pragma;
use crate::value::{Applied, Value, ValueRef};

/// The rows for one argument, or for none.
#[derive(Debug, Clone)]
pub enum Answer {
    /// These.
    Known(Arc<Vec<Vec<Value>>>),
    /// Those that one of the PRAGMAs answers that are asked, by its number.
    Asked(usize),
}

/// A table-valued function whose rows are known.
#[derive(Debug)]
pub struct KnownRows {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<&'static str>,
    /// Its hidden columns: `arg` if it takes one, and `schema`.
    pub hidden: &'static [&'static str],
    /// The rows where no database is named.
    pub rows: Arc<Answers>,
    /// Those of each database, by its name in lower case.
    pub by_database: FxHashMap<String, Arc<Answers>>,
    /// The PRAGMAs that are asked.
    pub asks: Vec<Pragma>,
}

/// Rows by what asks for them.
#[derive(Debug, Default)]
pub struct Answers {
    /// The rows without an argument.
    pub without: Answer,
    /// The rows for each argument, in lower case.
    pub by_argument: FxHashMap<String, Answer>,
}

impl Default for Answer {
    fn default() -> Self {
        Self::Known(Arc::default())
    }
}

impl Answers {
    /// Those of a PRAGMA that is asked, by its number, without an argument.
    pub fn asking(number: usize) -> Self {
        Self {
            without: Answer::Asked(number),
            by_argument: FxHashMap::default(),
        }
    }
}

/// The column of the database.
const SCHEMA: &str = "schema";

impl TableFunction for KnownRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    fn hidden(&self) -> &[&'static str] {
        self.hidden
    }

    fn asks(&self) -> &[Pragma] {
        &self.asks
    }

    fn rows_estimate(&self) -> f64 {
        20.0
    }

    fn rows(&self) -> Box<dyn TableRows> {
        Box::new(Known {
            takes_argument: self.hidden.first().is_some_and(|name| *name != SCHEMA),
            width: self.columns.len(),
            answers: Arc::clone(&self.rows),
            by_database: self.by_database.clone(),
            asks: self.asks.clone(),
            rows: Arc::default(),
            position: 0,
            hidden: Vec::new(),
        })
    }
}

struct Known {
    takes_argument: bool,
    width: usize,
    answers: Arc<Answers>,
    by_database: FxHashMap<String, Arc<Answers>>,
    asks: Vec<Pragma>,
    /// Those that were asked for.
    rows: Arc<Vec<Vec<Value>>>,
    /// The row's number, from 1.
    position: usize,
    /// The arguments.
    hidden: Vec<Value>,
}

impl Known {
    fn answer(&self, answer: &Answer, context: &Context) -> Arc<Vec<Vec<Value>>> {
        match answer {
            Answer::Known(rows) => Arc::clone(rows),
            Answer::Asked(number) => {
                let asked = self.asks.get(*number);
                let mut answers = context.answers.iter();
                let found = answers.find(|(pragma, _)| Some(pragma) == asked);
                found.map(|(_, rows)| Arc::clone(rows)).unwrap_or_default()
            }
        }
    }

    /// The rows for an argument.
    fn answer_for(
        &self,
        answers: &Answers,
        argument: &[u8],
        context: &Context,
    ) -> Result<Arc<Vec<Vec<Value>>>> {
        let name = String::from_utf8_lossy(argument);
        match answers.by_argument.get(&name.to_ascii_lowercase()) {
            Some(answer) => Ok(self.answer(answer, context)),
            // Of what is asked, the argument is a table.
            None if !self.asks.is_empty() => {
                let error = Error::sql(format!("no such table: {name}"));
                Err(error.with_hint("the name stands in the parentheses behind the function's"))
            }
            None => Ok(Arc::default()),
        }
    }
}

impl TableRows for Known {
    fn start(&mut self, arguments: &[Option<ValueRef<'_>>], context: &Context) -> Result<()> {
        let given = |value: &Option<ValueRef<'_>>| value.map_or(Value::Null, ValueRef::to_value);
        self.hidden = arguments.iter().map(given).collect();
        self.position = 0;
        let argument = arguments.first().copied().flatten();
        let database = self.hidden.get(usize::from(self.takes_argument));
        let answers = match database.map(Value::as_ref).and_then(ValueRef::to_text) {
            None => &self.answers,
            Some(name) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                let known = self.by_database.get(&name.to_ascii_lowercase());
                known.ok_or_else(|| super::unknown_database(&name))?
            }
        };
        let asked = argument
            .filter(|_| self.takes_argument)
            .and_then(ValueRef::to_text);
        self.rows = match asked {
            None => self.answer(&answers.without, context),
            Some(text) => self.answer_for(answers, &text, context)?,
        };
        Ok(())
    }

    fn next(&mut self) -> Result<bool> {
        self.position += 1;
        Ok(self.position <= self.rows.len())
    }

    fn column(&mut self, column: usize) -> Result<Applied<'_>> {
        if column == ROWID {
            return Ok(Applied::Same(ValueRef::Integer(self.position as i64)));
        }
        let value = match column.checked_sub(self.width) {
            None => self
                .rows
                .get(self.position.saturating_sub(1))
                .and_then(|row| row.get(column)),
            Some(hidden) => self.hidden.get(hidden),
        };
        Ok(Applied::Same(value.map_or(ValueRef::Null, Value::as_ref)))
    }
}
