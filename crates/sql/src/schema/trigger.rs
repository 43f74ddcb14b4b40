//! Triggers as their texts have them.

use std::sync::{Arc, OnceLock};

use super::claims::{check_text, malformed, of_text};
use super::shared::Placed;
use super::{Schema, SchemaRow};
use crate::ast::{CreateTrigger, Statement};
use crate::error::Result;

/// A trigger.
#[derive(Debug)]
pub struct Trigger {
    /// Name as written.
    pub name: String,
    /// The database of its table, where that is another one than its own.
    pub database: Option<String>,
    /// The CREATE TRIGGER.
    pub definition: CreateTrigger,
}

/// A trigger's row, which is parsed when its table is first written.
pub(super) struct TriggerEntry {
    pub(super) rowid: i64,
    row: Arc<SchemaRow>,
    parsed: OnceLock<Result<Arc<Trigger>>>,
}

impl TriggerEntry {
    pub(super) fn new(Placed { rowid, row }: Placed) -> Self {
        let parsed = OnceLock::new();
        Self { rowid, row, parsed }
    }

    fn parse(&self) -> Result<Arc<Trigger>> {
        let (name, database) = (self.row.name.clone(), self.row.database.clone());
        let sql = self.row.sql.as_deref().unwrap_or_default();
        let parsed = crate::parse::parse(sql).map_err(|error| of_text(&name, error))?;
        let Some(Statement::CreateTrigger(create)) = parsed.statement else {
            return Err(malformed(&name, "not a CREATE TRIGGER"));
        };
        let (own, table) = (&create.name.name.text, &create.table.name.text);
        check_text(&self.row, own, table)?;
        Ok(Arc::new(Trigger {
            name,
            database,
            definition: *create,
        }))
    }
}

impl Schema {
    /// The triggers of a table or view, by its name in any case, oldest first; of one of
    /// another database, if that is named.
    fn entries<'s>(
        &'s self,
        table: &str,
        database: Option<&'s str>,
    ) -> impl DoubleEndedIterator<Item = &'s TriggerEntry> {
        let of_table = match self.triggers.is_empty() {
            true => None,
            false => self.triggers.get(table.to_ascii_lowercase().as_str()),
        };
        let is_it = move |entry: &&TriggerEntry| match (&entry.row.database, database) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let of_table = of_table.map(|all| all.iter().map(|entry| &**entry));
        of_table.into_iter().flatten().filter(is_it)
    }

    /// Whether a table or view, by its name in any case, has triggers here. `database`: its
    /// database, where that is another one.
    #[inline]
    pub fn has_triggers(&self, table: &str, database: Option<&str>) -> bool {
        !self.triggers.is_empty() && self.entries(table, database).next().is_some()
    }

    /// The triggers of a table or view, the newest first, as SQLite runs them. `database` as
    /// for [`has_triggers`](Self::has_triggers).
    pub fn triggers_of(&self, table: &str, database: Option<&str>) -> Result<Vec<Arc<Trigger>>> {
        let entries = self.entries(table, database).rev();
        let parsed = |entry: &TriggerEntry| entry.parsed.get_or_init(|| entry.parse()).clone();
        entries.map(parsed).collect()
    }

    /// Names of all triggers.
    pub fn trigger_names(&self) -> impl Iterator<Item = &str> {
        self.triggers
            .values()
            .flat_map(|all| all.iter())
            .map(|e| e.row.name.as_str())
    }
}
