//! One interface over both libraries, for the tests that compare them. The two
//! implementations are one text: `fulgurite` has the shape of `rusqlite`.
#![allow(
    dead_code,
    reason = "every test binary compiles this file and uses its own part of it"
)]

use std::fmt;
use std::path::Path;

/// A value as a row holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// An SQL literal of the value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) if value.is_infinite() && *value > 0.0 => f.write_str("9e999"),
            Self::Real(value) if value.is_infinite() => f.write_str("-9e999"),
            Self::Real(value) => write!(f, "{value:?}"),
            Self::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                write!(f, "'{}'", text.replace('\'', "''"))
            }
            Self::Blob(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
        }
    }
}

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub extended_code: i32,
    pub message: String,
    /// It did not compile; otherwise it failed while running.
    pub preparing: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.extended_code, self.message)
    }
}

/// What a statement gave: rows, and the failure that ended them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub failure: Option<Failure>,
}

/// What a connection says after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub changes: u64,
    pub total_changes: u64,
    pub last_insert_rowid: i64,
    pub autocommit: bool,
}

/// A connection of one of the two libraries.
pub trait Engine {
    /// Runs one statement to its end.
    fn run(&mut self, sql: &str, parameters: &[Value]) -> Answer;
    /// Runs a script, rows thrown away, up to the first failure.
    fn run_script(&mut self, sql: &str) -> Option<Failure>;
    fn state(&self) -> State;
}

/// Opens a database; without a path, one in memory.
pub type Open = fn(Option<&Path>) -> Box<dyn Engine>;

macro_rules! engine {
    ($name:ident, $open:ident, $db:ident) => {
        struct $name($db::Connection);

        /// Opens a database of this library.
        pub fn $open(path: Option<&Path>) -> Box<dyn Engine> {
            let connection = match path {
                Some(path) => $db::Connection::open(path),
                None => $db::Connection::open_in_memory(),
            };
            Box::new($name(connection.expect("the database opens")))
        }

        impl $name {
            fn try_run(
                &mut self,
                sql: &str,
                parameters: &[Value],
                answer: &mut Answer,
            ) -> $db::Result<()> {
                use $db::types::{Value as Owned, ValueRef};
                let bound = parameters.iter().map(|value| match value {
                    Value::Null => Owned::Null,
                    Value::Integer(value) => Owned::Integer(*value),
                    Value::Real(value) => Owned::Real(*value),
                    Value::Text(bytes) => Owned::Text(String::from_utf8_lossy(bytes).into_owned()),
                    Value::Blob(bytes) => Owned::Blob(bytes.clone()),
                });
                let mut statement = self.0.prepare(sql)?;
                answer.columns = statement
                    .column_names()
                    .into_iter()
                    .map(String::from)
                    .collect();
                let mut rows = statement.query($db::params_from_iter(bound))?;
                let width = answer.columns.len();
                while let Some(row) = rows.next()? {
                    let value = |i| {
                        Ok(match row.get_ref(i)? {
                            ValueRef::Null => Value::Null,
                            ValueRef::Integer(value) => Value::Integer(value),
                            ValueRef::Real(value) => Value::Real(value),
                            ValueRef::Text(bytes) => Value::Text(bytes.to_vec()),
                            ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
                        })
                    };
                    let row: $db::Result<Vec<Value>> = (0..width).map(value).collect();
                    answer.rows.push(row?);
                }
                Ok(())
            }
        }

        impl $name {
            fn failure(error: &$db::Error) -> Failure {
                let (extended_code, message) = match error {
                    $db::Error::SqliteFailure(code, message) => {
                        (code.extended_code, message.clone())
                    }
                    $db::Error::SqlInputError { error, msg, .. } => {
                        (error.extended_code, Some(msg.clone()))
                    }
                    _ => (-1, None),
                };
                Failure {
                    extended_code,
                    preparing: matches!(error, $db::Error::SqlInputError { .. }),
                    message: message.unwrap_or_else(|| error.to_string()),
                }
            }
        }

        impl Engine for $name {
            fn run(&mut self, sql: &str, parameters: &[Value]) -> Answer {
                let mut answer = Answer::default();
                if let Err(error) = self.try_run(sql, parameters, &mut answer) {
                    answer.failure = Some(Self::failure(&error));
                }
                answer
            }

            fn run_script(&mut self, sql: &str) -> Option<Failure> {
                let result = self.0.execute_batch(sql);
                result.err().map(|error| Self::failure(&error))
            }

            fn state(&self) -> State {
                State {
                    changes: self.0.changes(),
                    total_changes: self.0.total_changes(),
                    last_insert_rowid: self.0.last_insert_rowid(),
                    autocommit: self.0.is_autocommit(),
                }
            }
        }
    };
}

engine!(Sqlite, sqlite, rusqlite);
engine!(Fulgurite, ours, fulgurite);
