//! Triggers as their texts have them.

use std::sync::{Arc, OnceLock};

use super::{Schema, SchemaRow};
use crate::ast::{CreateTrigger, Statement};
use crate::error::{Error, Result};

/// A trigger.
#[derive(Debug)]
pub struct Trigger {
    /// Name as written.
    pub name: String,
    /// The CREATE TRIGGER.
    pub definition: CreateTrigger,
}

/// A trigger's row, which is parsed when its table is first written.
pub(super) struct TriggerEntry {
    row: Arc<SchemaRow>,
    parsed: OnceLock<Result<Arc<Trigger>>>,
}

impl TriggerEntry {
    pub(super) fn new(row: Arc<SchemaRow>) -> Self {
        let parsed = OnceLock::new();
        Self { row, parsed }
    }

    fn parse(&self) -> Result<Arc<Trigger>> {
        let name = self.row.name.clone();
        let sql = self.row.sql.as_deref().unwrap_or_default();
        match crate::parse::parse(sql)?.statement {
            Some(Statement::CreateTrigger(create)) => Ok(Arc::new(Trigger {
                name,
                definition: *create,
            })),
            _ => Err(Error::corrupt(format!(
                "malformed database schema ({name}) - not a CREATE TRIGGER"
            ))),
        }
    }
}

impl Schema {
    /// Whether a table or view, by its name in any case, has triggers.
    #[inline]
    pub fn has_triggers(&self, table: &str) -> bool {
        !self.triggers.is_empty() && self.triggers.contains_key(&table.to_ascii_lowercase())
    }

    /// The triggers of a table or view, the newest first, as SQLite runs them.
    pub fn triggers_of(&self, table: &str) -> Result<Vec<Arc<Trigger>>> {
        if self.triggers.is_empty() {
            return Ok(Vec::new());
        }
        let of_table = self.triggers.get(&table.to_ascii_lowercase());
        let entries = of_table.into_iter().flatten().rev();
        let parsed = |entry: &TriggerEntry| entry.parsed.get_or_init(|| entry.parse()).clone();
        entries.map(parsed).collect()
    }

    /// Names of all triggers.
    pub fn trigger_names(&self) -> impl Iterator<Item = &str> {
        self.triggers
            .values()
            .flatten()
            .map(|e| e.row.name.as_str())
    }
}
