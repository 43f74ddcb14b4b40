//! What the tables of a SQL workload hold, and what they may hold after a power
//! cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite::types::Value;
use fulgurite::{Connection, Result};

use crate::Candidates;

/// The values behind the key: columns a to c, and those added later.
pub type Row = Vec<Value>;

/// One table. Its first columns are `id INTEGER PRIMARY KEY, a, b TEXT, c`.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// How many columns were added.
    pub added: usize,
    /// The names of its indexes, each over the column its last letter names.
    pub indexes: BTreeSet<String>,
    /// Its rows, by key.
    pub rows: BTreeMap<i64, Row>,
}

/// All tables. Clones share what they have in common.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// By name.
    pub tables: BTreeMap<String, Arc<Table>>,
}

impl State {
    /// A table to be changed.
    pub fn table(&mut self, name: &str) -> Option<&mut Table> {
        self.tables.get_mut(name).map(Arc::make_mut)
    }

    fn names(&self) -> Vec<String> {
        let own = self.tables.keys().cloned();
        let indexes = self.tables.values().flat_map(|table| table.indexes.iter());
        let mut names: Vec<String> = own.chain(indexes.cloned()).collect();
        names.sort_unstable();
        names
    }

    /// The first difference between this and what a connection sees.
    ///
    /// # Errors
    /// What reading may fail with.
    pub fn difference(&self, connection: &Connection) -> Result<Option<String>> {
        let sql = "SELECT name FROM sqlite_schema ORDER BY name";
        let mut statement = connection.prepare(sql)?;
        let found: Vec<String> = statement
            .query_map([], |row| row.get(0))?
            .collect::<Result<_>>()?;
        if found != self.names() {
            return Ok(Some(format!(
                "the schema has {found:?}, not {:?}",
                self.names()
            )));
        }
        for (name, table) in &self.tables {
            if let Some(difference) = table.difference(name, connection)? {
                return Ok(Some(format!("table {name}: {difference}")));
            }
        }
        Ok(None)
    }
}

impl Table {
    /// The table without its indexes.
    fn difference(&self, name: &str, connection: &Connection) -> Result<Option<String>> {
        let sql = format!("SELECT * FROM {name} ORDER BY id");
        let mut statement = connection.prepare(&sql)?;
        let width = 4 + self.added;
        if statement.column_count() != width {
            return Ok(Some(format!(
                "{} columns, not {width}",
                statement.column_count()
            )));
        }
        let mut rows = statement.query([])?;
        let mut known = self.rows.iter();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let Some((key, values)) = known.next() else {
                return Ok(Some(format!("row {id} should not be there")));
            };
            if id != *key {
                return Ok(Some(format!("row {id} stands where row {key} should")));
            }
            for column in 1..width {
                let found: Value = row.get(column)?;
                let expected = values.get(column - 1).unwrap_or(&Value::Null);
                if found != *expected {
                    return Ok(Some(format!("row {id}, column {column} is another")));
                }
            }
        }
        if let Some((key, _)) = known.next() {
            return Ok(Some(format!("row {key} is missing")));
        }
        for index in &self.indexes {
            let column = &index[index.len() - 1..];
            let sql =
                format!("SELECT count(*) FROM {name} INDEXED BY {index} WHERE {column} > -1000000");
            let through: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            let values = self
                .rows
                .values()
                .map(|row| &row[usize::from(column == "b")]);
            let expected = values.filter(|value| !matches!(value, Value::Null)).count();
            if through != expected as i64 {
                return Ok(Some(format!(
                    "{through} entries in {index}, not {expected}"
                )));
            }
        }
        Ok(None)
    }
}

/// What a power cut may leave.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The states it may leave.
    pub candidates: Candidates<State>,
}

impl crate::OfOne for Oracle {
    type State = State;

    fn candidates(&mut self) -> &mut Candidates<State> {
        &mut self.candidates
    }
}

impl Oracle {
    /// Finds out which state the database is in; from now on it is the only one.
    ///
    /// # Errors
    /// What reading may fail with.
    pub fn adopt(&mut self, connection: &Connection) -> Result<State> {
        let mut differences = Vec::new();
        for state in self.candidates.to_be_found() {
            match state.difference(connection)? {
                None => {
                    let state = state.clone();
                    self.candidates.settle_on(state.clone());
                    return Ok(state);
                }
                Some(difference) => differences.push(difference),
            }
        }
        panic!("the database is in none of its possible states (newest first): {differences:#?}");
    }
}
