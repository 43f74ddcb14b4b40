//! Where the text of a trigger uses a table or a column of it; see `uses`.
//!
//! As in SQLite, what INSERT lists and UPDATE OF waits for may be columns that are not
//! there, and values need not be as many as columns.

use std::sync::Arc;

use super::Binder;
use super::texts::is;
use crate::ast::{self, InsertSource, Name, Statement, TriggerEvent};
use crate::error::{Error, Result};
use crate::schema::{Schema, Table};

impl<'a> Binder<'a> {
    /// Of a trigger of one database on a table of another, or of the same.
    pub(super) fn trigger_uses(
        &mut self,
        create: &ast::CreateTrigger,
        schema: &'a Schema,
        of: &'a Schema,
    ) -> Result<()> {
        let table = self.enter_trigger(create, schema, of)?;
        if let Some(uses) = &mut self.uses {
            uses.table(&table, &create.table.name);
        }
        if let TriggerEvent::Update(Some(columns)) = &create.event {
            self.column_uses(&table, columns);
        }
        if let Some(when) = &create.when {
            self.in_frame(|this| this.expr(when))?;
        }
        create
            .steps
            .iter()
            .try_for_each(|step| self.step_uses(step))
    }

    fn step_uses(&mut self, step: &Statement) -> Result<()> {
        match step {
            Statement::Select(select) => {
                self.query(select)?;
            }
            Statement::Insert(insert) => self.insert_uses(insert)?,
            Statement::Update(update) => {
                let table = self.target_uses(&update.table, update.alias.as_ref())?;
                let name = update
                    .alias
                    .as_ref()
                    .map_or(&table.name, |alias| &alias.text);
                let parts = (
                    &update.indexed,
                    update.from.as_slice(),
                    update.filter.as_ref(),
                );
                self.victims(&table, name, parts, 1, |this| {
                    this.assignments(&update.sets, &table)
                })?;
            }
            Statement::Delete(delete) => {
                let table = self.target_uses(&delete.table, delete.alias.as_ref())?;
                let name = delete
                    .alias
                    .as_ref()
                    .map_or(&table.name, |alias| &alias.text);
                let parts = (&delete.indexed, &[][..], delete.filter.as_ref());
                self.victims(&table, name, parts, 1, |_| Ok(Vec::new()))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn insert_uses(&mut self, insert: &ast::Insert) -> Result<()> {
        let table = self.target_uses(&insert.table, insert.alias.as_ref())?;
        if let Some(columns) = &insert.columns {
            self.column_uses(&table, columns);
        }
        let id = self.new_source()?;
        if let InsertSource::Select(select) = &insert.source {
            self.inserted_rows(select)?;
        }
        let name = insert
            .alias
            .as_ref()
            .map_or(&table.name, |alias| &alias.text);
        self.upserts(&insert.upserts, &table, name, id)?;
        Ok(())
    }

    /// The table or view that a statement writes to, whose row is the next source.
    fn target_uses(
        &mut self,
        name: &ast::QualifiedName,
        alias: Option<&Name>,
    ) -> Result<Arc<Table>> {
        let schema = self.schema_of(name);
        let view = schema.map(|schema| Ok::<_, Error>((schema, schema.view(&name.name.text)?)));
        let table = match view.transpose()? {
            Some((schema, Some(view))) => self.view_table(&view, schema)?,
            _ => self.table(name)?,
        };
        let row = self.sources;
        if let Some(uses) = &mut self.uses {
            uses.source(&table, row, &name.name, alias.is_some());
        }
        Ok(table)
    }

    /// Names of columns of a table.
    fn column_uses(&mut self, table: &Table, names: &[Name]) {
        for name in names {
            let at = table.columns.iter().position(|c| is(&c.name, &name.text));
            if let (Some(at), Some(uses)) = (at, &mut self.uses) {
                uses.key_column(table, at, name.offset);
            }
        }
    }
}
