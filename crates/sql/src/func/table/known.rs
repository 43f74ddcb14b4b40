//! Rows that are known before the statement runs, by the argument that asks for them:
//! those of PRAGMAs about the schema.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{TableFunction, TableRows};
use crate::bind::expr::ROWID;
use crate::error::Result;
use crate::value::{Applied, Value, ValueRef};

/// A table-valued function whose rows are known.
#[derive(Debug)]
pub struct KnownRows {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<&'static str>,
    /// Its hidden columns: `arg` if it takes one, and `schema`.
    pub hidden: &'static [&'static str],
    /// The rows without an argument.
    pub without: Arc<Vec<Vec<Value>>>,
    /// The rows for each argument, in lower case.
    pub by_argument: FxHashMap<String, Arc<Vec<Vec<Value>>>>,
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

    fn rows_estimate(&self) -> f64 {
        20.0
    }

    fn rows(&self) -> Box<dyn TableRows> {
        Box::new(Known {
            takes_argument: self.hidden.first().is_some_and(|name| *name != SCHEMA),
            width: self.columns.len(),
            without: Arc::clone(&self.without),
            by_argument: self.by_argument.clone(),
            rows: Arc::default(),
            position: 0,
            hidden: Vec::new(),
        })
    }
}

struct Known {
    takes_argument: bool,
    width: usize,
    without: Arc<Vec<Vec<Value>>>,
    by_argument: FxHashMap<String, Arc<Vec<Vec<Value>>>>,
    /// Those that were asked for.
    rows: Arc<Vec<Vec<Value>>>,
    /// The row's number, from 1.
    position: usize,
    /// The arguments.
    hidden: Vec<Value>,
}

impl TableRows for Known {
    fn start(&mut self, arguments: &[Option<ValueRef<'_>>]) -> Result<()> {
        let given = |value: &Option<ValueRef<'_>>| value.map_or(Value::Null, ValueRef::to_value);
        self.hidden = arguments.iter().map(given).collect();
        self.position = 0;
        let argument = arguments.first().copied().flatten();
        let asked = argument
            .filter(|_| self.takes_argument)
            .and_then(ValueRef::to_text);
        self.rows = match asked {
            None => Arc::clone(&self.without),
            Some(text) => {
                let key = String::from_utf8_lossy(&text).to_ascii_lowercase();
                self.by_argument.get(&key).cloned().unwrap_or_default()
            }
        };
        let database = self.hidden.get(usize::from(self.takes_argument));
        match database.map(Value::as_ref) {
            None | Some(ValueRef::Null) => {}
            Some(database) => super::check_database(database)?,
        }
        Ok(())
    }

    fn next(&mut self) -> Result<bool> {
        self.position += 1;
        Ok(self.position <= self.rows.len())
    }

    fn column(&self, column: usize) -> Result<Applied<'_>> {
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
