//! NOT NULL, the types of STRICT tables and CHECK of the row being written.

use super::sink::{Outcome, Sink};
use super::{Written, violated};
use crate::error::{Error, Result};
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition, eval};
use crate::schema::{Column, ConflictAction};
use crate::value::{Value, ValueRef};

impl Sink<'_> {
    /// Checks it; REPLACE fills in defaults.
    #[inline]
    pub fn check_row(&mut self, cx: &mut Context<'_, '_>) -> Written<Outcome> {
        match self.target.constrained {
            false => Ok(Outcome::Written),
            true => self.check_constraints(cx),
        }
    }

    fn check_constraints(&mut self, cx: &mut Context<'_, '_>) -> Written<Outcome> {
        let has_generated = self.target.table.has_generated;
        if has_generated && self.target.table.strict {
            // Columns are computed from values of the right types alone.
            self.check_types_of(|column| column.generated.is_none())?;
        }
        if self.check_nulls(false, cx)? == Outcome::Skipped {
            return Ok(Outcome::Skipped);
        }
        if has_generated && self.check_generated_nulls(cx)? == Outcome::Skipped {
            return Ok(Outcome::Skipped);
        }
        if self.target.table.strict {
            self.check_types()?;
        }
        for (label, check) in &self.target.checks {
            if condition(check, Row::Values(&self.buffers.row), cx)? != Some(false) {
                continue;
            }
            return match self.action(ConflictAction::Abort) {
                ConflictAction::Ignore => Ok(Outcome::Skipped),
                ConflictAction::Replace => {
                    Err(violated(Error::check(label), ConflictAction::Abort))
                }
                action => Err(violated(Error::check(label), action)),
            };
        }
        Ok(Outcome::Written)
    }

    /// Whether each value is of its column's type. What is not undoes the statement, whatever
    /// its OR clause says, as in SQLite.
    pub(super) fn check_types(&self) -> Result<()> {
        self.check_types_of(|_| true)
    }

    fn check_types_of(&self, is_looked_at: impl Fn(&Column) -> bool) -> Result<()> {
        let table = &self.target.table;
        let values = self.buffers.row.iter().skip(1).map(Value::as_ref);
        for (column, value) in table.columns.iter().zip(values) {
            if is_looked_at(column) && !column.takes(value) {
                let class = match value {
                    ValueRef::Null => "NULL",
                    ValueRef::Integer(_) => "INT",
                    ValueRef::Real(_) => "REAL",
                    ValueRef::Text(_) => "TEXT",
                    ValueRef::Blob(_) => "BLOB",
                };
                let name = format!("{}.{}", table.name, column.name);
                return Err(Error::datatype(class, &column.decl_type, name));
            }
        }
        Ok(())
    }

    /// NOT NULL. Columns that a default may fill come last, as in SQLite.
    #[inline]
    fn check_nulls(&mut self, filling: bool, cx: &mut Context<'_, '_>) -> Written<Outcome> {
        let mut to_fill = false;
        for (i, column) in self.target.table.columns.iter().enumerate() {
            let Some(own) = column.not_null else { continue };
            if column.generated.is_some()
                || !self.buffers.row.get(i + 1).is_some_and(Value::is_null)
            {
                continue;
            }
            if !filling
                && self.action(own) == ConflictAction::Replace
                && matches!(self.target.defaults.get(i), Some(Some(_)))
            {
                to_fill = true;
                continue;
            }
            if self.null_violation(i, own, cx)? == Outcome::Skipped {
                return Ok(Outcome::Skipped);
            }
        }
        if !to_fill {
            return Ok(Outcome::Written);
        }
        if self.check_nulls(true, cx)? == Outcome::Skipped {
            return Ok(Outcome::Skipped);
        }
        self.generate(cx)?;
        Ok(Outcome::Written)
    }

    /// NOT NULL of generated columns, once all others are there.
    fn check_generated_nulls(&mut self, cx: &mut Context<'_, '_>) -> Written<Outcome> {
        let table = &self.target.table;
        let columns = table.columns.iter().enumerate();
        for (at, column) in columns.filter(|(_, column)| column.generated.is_some()) {
            if let Some(own) = column.not_null
                && self.buffers.row.get(at + 1).is_some_and(Value::is_null)
                && self.null_violation(at, own, cx)? == Outcome::Skipped
            {
                return Ok(Outcome::Skipped);
            }
        }
        Ok(Outcome::Written)
    }

    #[cold]
    fn null_violation(
        &mut self,
        column: usize,
        own: ConflictAction,
        cx: &mut Context<'_, '_>,
    ) -> Written<Outcome> {
        let mut action = self.action(own);
        if action == ConflictAction::Ignore {
            return Ok(Outcome::Skipped);
        }
        if action == ConflictAction::Replace {
            if let Some(Some(default)) = self.target.defaults.get(column) {
                let value = eval(default, Row::Empty, cx)?;
                if !value.as_ref().is_null() {
                    self.set_column(column, value.as_ref());
                    return Ok(Outcome::Written);
                }
            }
            action = ConflictAction::Abort;
        }
        let table = &self.target.table;
        let name = table.columns.get(column).map_or("", |c| c.name.as_str());
        Err(violated(
            Error::not_null(format!("{}.{name}", table.name)),
            action,
        ))
    }
}
