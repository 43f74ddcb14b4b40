//! What the generator knows of the tables: it remembers every table it made by
//! the text of its statement, and asks SQLite which of them are there.

use crate::common::{Engine, Value};
use std::collections::HashMap;

/// A table as the generator made it.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The columns of a WITHOUT ROWID table's primary key.
    pub key: Option<Vec<String>>,
}

impl Table {
    /// What tells the rows apart.
    pub fn places(&self) -> Vec<&str> {
        match &self.key {
            None => vec!["rowid"],
            Some(key) => key.iter().map(String::as_str).collect(),
        }
    }

    /// Terms that order all rows, under an alias with its dot if there is one.
    pub fn ties(&self, alias: &str) -> Vec<String> {
        let tie = |place: &str| match self.key {
            None => format!("{alias}{place}"),
            Some(_) => format!("{alias}{place} COLLATE BINARY"),
        };
        self.places().into_iter().map(tie).collect()
    }

    /// Whether the column is of the primary key of a WITHOUT ROWID table.
    pub fn is_key(&self, column: &str) -> bool {
        let mut key = self.key.iter().flatten();
        key.any(|part| part == column)
    }
}

/// A column as far as the generator cares.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// It is the table's INTEGER PRIMARY KEY.
    pub rowid: bool,
    /// With AUTOINCREMENT, where an UPDATE does not count for SQLite's sequence.
    pub sequence: bool,
}

/// The tables and indexes that are there now, and their row counts.
#[derive(Debug, Default)]
pub struct World {
    made: HashMap<String, Table>,
    pub tables: Vec<Table>,
    pub indexes: Vec<String>,
    /// Those of columns alone, of all rows.
    pub plain: Vec<String>,
    /// What partial indexes ask for: table and condition.
    pub partial: Vec<(String, String)>,
    /// What indexes begin with, where that is no column: table and expression.
    pub computed: Vec<(String, String)>,
    pub rows: HashMap<String, i64>,
    pub in_transaction: bool,
}

fn of_table<'w>(list: &'w [(String, String)], table: &str) -> Vec<&'w str> {
    let of_table = list.iter().filter(|(of, _)| of == table);
    of_table.map(|(_, text)| text.as_str()).collect()
}

/// What a text that begins with a bracket has up to where it closes. No text literal
/// here has brackets.
fn in_brackets(text: &str) -> Option<&str> {
    let mut depth = 0;
    let end = text.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth <= 0
    })?;
    (end > 0).then(|| &text[..=end])
}

impl World {
    /// The conditions of a table's partial indexes.
    pub fn conditions(&self, table: &str) -> Vec<&str> {
        of_table(&self.partial, table)
    }

    /// The expressions that a table's indexes begin with.
    pub fn expressions(&self, table: &str) -> Vec<&str> {
        of_table(&self.computed, table)
    }

    /// Remembers a table that a statement may be about to make.
    pub fn remember(&mut self, sql: &str, table: Table) {
        self.made.insert(sql.into(), table);
    }

    /// Brings the picture up to date from SQLite.
    pub fn refresh(&mut self, sqlite: &mut dyn Engine) {
        self.in_transaction = !sqlite.state().autocommit;
        self.tables.clear();
        self.indexes.clear();
        self.plain.clear();
        self.partial.clear();
        self.computed.clear();
        let schema = sqlite.run("SELECT type, name, sql FROM sqlite_schema", &[]);
        for row in &schema.rows {
            let [Value::Text(kind), Value::Text(name), Value::Text(sql)] = row.as_slice() else {
                continue;
            };
            let sql = String::from_utf8_lossy(sql);
            match (kind.as_slice(), self.made.get(sql.as_ref())) {
                (b"table", Some(table)) => self.tables.push(table.clone()),
                (b"index", _) => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    if !sql.contains(" WHERE ") && sql.matches('(').count() == 1 {
                        self.plain.push(name.clone());
                    }
                    if let Some((_, rest)) = sql.split_once(" ON ")
                        && let Some((table, key)) = rest.split_once('(')
                    {
                        if let Some((_, condition)) = key.split_once(" WHERE ") {
                            self.partial.push((table.into(), condition.into()));
                        }
                        if let Some(expression) = in_brackets(key) {
                            self.computed.push((table.into(), expression.into()));
                        }
                    }
                    self.indexes.push(name);
                }
                _ => {}
            }
        }
        self.rows.clear();
        for table in &self.tables {
            let count = sqlite.run(&format!("SELECT count(*) FROM {}", table.name), &[]);
            if let Some([Value::Integer(rows)]) = count.rows.first().map(Vec::as_slice) {
                self.rows.insert(table.name.clone(), *rows);
            }
        }
    }
}
