//! The texts that the schema keeps, as ALTER TABLE changes them.

use std::sync::Arc;

use super::Binder;
use super::uses::{Uses, Watched};
use crate::ast::{CreateIndex, CreateTable, Statement, TableBody, TableConstraintKind};
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::func::user::UserCode;
use crate::parse::places::{self, Edits, Renaming};
use crate::plan::Settings;
use crate::plan::physical::SchemaRewrite;
use crate::schema::{Catalog, Schema, SchemaRow, Table, index_columns, plain_name};

/// What the texts of a schema are changed for.
pub(super) struct TextChange<'a> {
    /// The databases that are open.
    pub catalog: &'a Catalog,
    /// What its texts may call.
    pub user: &'a UserCode,
    /// The table's.
    pub schema: &'a Schema,
    /// The table that is altered.
    pub table: &'a Table,
    /// What gets the new name; nothing where it is a column that goes.
    pub watched: Watched,
    /// From which name to which.
    pub renaming: Renaming<'a>,
}

/// Names have no case.
pub(super) fn is(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// An error that is of one object's text.
pub(super) fn in_object(row: &SchemaRow, when: &str, error: &Error) -> Error {
    let (kind, name) = (row.kind.to_ascii_lowercase(), &row.name);
    Error::new(
        error.code(),
        format!("error in {kind} {name}{when}: {}", error.message()),
    )
}

/// Why a text is left as it is, and all others with it.
pub(super) fn cannot_place(row: &SchemaRow, name: &str) -> Error {
    let message = format!("cannot tell where \"{name}\" stands");
    let hint = format!("drop the {} and create it anew afterwards", row.kind);
    in_object(row, "", &Error::sql(message)).with_hint(hint)
}

/// What the schema will be.
pub(super) struct After {
    /// The rows of the table's database.
    pub own: Vec<SchemaRow>,
    /// Those of the temporary one, where that is another one.
    pub temp: Option<Vec<SchemaRow>>,
}

impl After {
    /// The rows that differ from the schema's, as changes of those.
    pub fn rewrites(&self, change: &TextChange<'_>) -> Vec<SchemaRewrite> {
        let own = change.schema.rows().zip(&self.own);
        let own = own.map(|(before, after)| (before, after, false));
        let temp = change.catalog.temp().zip(self.temp.as_ref());
        let temp = temp
            .into_iter()
            .flat_map(|(schema, after)| schema.rows().zip(after))
            .map(|(before, after)| (before, after, true));
        let changed = own.chain(temp);
        changed
            .filter(|(before, after, _)| before.as_ref() != *after)
            .map(|(before, after, in_temp)| SchemaRewrite {
                in_temp,
                kind: before.kind.clone(),
                name: before.name.clone(),
                new_name: after.name.clone(),
                new_table: after.table.clone(),
                new_sql: after.sql.clone(),
            })
            .collect()
    }

    /// See [`check`].
    pub fn check(self, change: &TextChange<'_>, when: &str, strict: bool) -> Result<()> {
        let mut catalog = change.catalog.with(change.schema.with_texts(self.own));
        if let Some((temp, rows)) = change.catalog.temp().zip(self.temp) {
            catalog = catalog.with(temp.with_texts(rows));
        }
        let schema = catalog.of(&change.table.tree);
        check((&catalog, change.user), schema, when, strict)
    }
}

/// The rows of a table's database, and of the temporary one beside it, with changed texts, all
/// else as it is.
pub(super) fn changed_texts(change: &TextChange<'_>) -> Result<After> {
    let temp = change.catalog.temp_beside(change.schema);
    Ok(After {
        own: changed_rows(change.schema, change)?,
        temp: temp.map(|temp| changed_rows(temp, change)).transpose()?,
    })
}

fn changed_rows(schema: &Schema, change: &TextChange<'_>) -> Result<Vec<SchemaRow>> {
    let mut rows = Vec::new();
    for row in schema.rows() {
        let mut row = SchemaRow::clone(row);
        if let Some(sql) = kept_text(&row) {
            let old = change.renaming.old;
            let edits = edits(schema, &row, sql, change).map_err(|e| in_object(&row, "", &e))?;
            if !edits.is_empty() {
                let sql = edits.apply(sql, &change.renaming);
                row.sql = Some(sql.ok_or_else(|| cannot_place(&row, old))?);
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The text of what a user made.
fn kept_text(row: &SchemaRow) -> Option<&str> {
    let is_own = row.name.get(..7).is_some_and(|start| is(start, "sqlite_"));
    row.sql.as_deref().filter(|_| !is_own)
}

fn edits(schema: &Schema, row: &SchemaRow, sql: &str, change: &TextChange<'_>) -> Result<Edits> {
    let old = change.renaming.old;
    let statement = places::placed(sql, old)?;
    let watched = change.watched.clone();
    let uses = uses_of(
        (change.catalog, change.user),
        schema,
        row,
        &statement,
        watched,
        false,
    )?;
    let mut edits = Edits::default();
    uses.names.into_iter().for_each(|place| edits.name(place));
    let of_table = matches!(change.watched, Watched::Table(_));
    if !of_table {
        // The new name, or the dropped column's, must not make a column of a text.
        uses.texts.into_iter().for_each(|place| edits.text(place));
    }
    // The tables and indexes of a database know nothing of another one.
    if change.watched == Watched::Nothing || schema.tree() != change.schema.tree() {
        return Ok(edits);
    }
    let is_own = is(&row.table, &change.table.name);
    match &statement {
        Statement::CreateTable(create) => {
            for key in places::foreign_keys(sql) {
                if !of_table && is_own {
                    edits.names(&key.columns, old);
                }
                if is(&key.parent.0, &change.table.name) {
                    match of_table {
                        true => edits.name(key.parent.1),
                        false => edits.names(&key.parent_columns, old),
                    }
                }
            }
            match (is_own, &change.watched) {
                (true, Watched::Column(_, at)) => column_places(create, *at, old, &mut edits),
                (true, _) => edits.name(create.name.name.offset),
                _ => {}
            }
        }
        Statement::CreateIndex(create) if is_own && of_table => edits.name(create.table.offset),
        _ => {}
    }
    Ok(edits)
}

/// Where a CREATE TABLE names one of its columns outside expressions.
fn column_places(create: &CreateTable, column: usize, old: &str, edits: &mut Edits) {
    let TableBody::Columns {
        columns,
        constraints,
        ..
    } = &create.body
    else {
        return;
    };
    if let Some(definition) = columns.get(column) {
        edits.name(definition.name.offset);
    }
    for constraint in constraints {
        if let TableConstraintKind::PrimaryKey { columns, .. }
        | TableConstraintKind::Unique { columns, .. } = &constraint.kind
        {
            let names = columns.iter().filter_map(|term| plain_name(&term.expr));
            for (_, place) in names.filter(|(name, _)| is(name, old)) {
                edits.name(place);
            }
        }
    }
}

/// Binds the text of one object, as this statement has it.
fn uses_of(
    (catalog, user): (&Catalog, &UserCode),
    schema: &Schema,
    row: &SchemaRow,
    statement: &Statement,
    watched: Watched,
    strict: bool,
) -> Result<Uses> {
    let settings = Settings {
        user: user.clone(),
        ..Settings::default()
    };
    let mut binder = Binder::new(catalog, &settings);
    binder.uses = Some(Uses::new(watched.clone(), strict));
    binder.home = binder.home_in(schema);
    match statement {
        Statement::CreateTable(create) => {
            let (table, _) = schema.bare_table(row, create)?;
            let table = Arc::new(table);
            binder.row_uses(&table, Definition::Check, |this, table| {
                table.checks.iter().try_for_each(|check| {
                    this.expr(&check.expr)?;
                    Ok(())
                })
            })?;
            if table.has_generated {
                binder.row_uses(&table, Definition::Generated, |this, table| {
                    let mut columns = table.columns.iter().filter_map(|c| c.generated.as_ref());
                    columns.try_for_each(|generated| {
                        this.expr(&generated.expr)?;
                        Ok(())
                    })
                })?;
            }
        }
        Statement::CreateIndex(create) => {
            if let Some(of) = schema.table_row(&row.table) {
                let sql = of.sql.as_deref().unwrap_or_default();
                if let Some(Statement::CreateTable(of_create)) = crate::parse::parse(sql)?.statement
                {
                    let (table, _) = schema.bare_table(of, &of_create)?;
                    binder.index_uses(create, &Arc::new(table))?;
                }
            }
        }
        Statement::CreateView(create) => {
            let store = schema.tree().store_number();
            binder.views.push((row.name.clone(), store));
            binder.query(&create.select)?;
        }
        Statement::CreateTrigger(create) => {
            let of = row.database.as_ref().and_then(|name| catalog.named(name));
            binder.trigger_uses(create, schema, of.unwrap_or(schema))?;
        }
        _ => {}
    }
    let uses = binder.uses.take();
    Ok(*uses.unwrap_or_else(|| Uses::new(watched, strict)))
}

impl Binder<'_> {
    /// Binds what is defined over a table's row.
    fn row_uses(
        &mut self,
        table: &Arc<Table>,
        definition: Definition,
        bind: impl FnOnce(&mut Self, &Table) -> Result<()>,
    ) -> Result<()> {
        let id = self.new_source()?;
        if let Some(uses) = &mut self.uses {
            uses.plain_source(id);
        }
        self.row_frame(table, &table.name, id, |this| {
            this.frame().definition = Some(definition);
            bind(this, table)
        })
    }

    fn index_uses(&mut self, create: &CreateIndex, table: &Arc<Table>) -> Result<()> {
        self.row_uses(table, Definition::Index, |this, table| {
            index_columns(create, table)?;
            for term in &create.columns {
                let plain = plain_name(&term.expr).and_then(|(name, place)| {
                    let at = table.columns.iter().position(|c| is(&c.name, name));
                    at.map(|at| (at, place))
                });
                match (plain, &mut this.uses) {
                    (Some((at, place)), Some(uses)) => uses.key_column(table, at, place),
                    _ => {
                        this.expr(&term.expr)?;
                    }
                }
            }
            create.filter.iter().try_for_each(|e| {
                this.expr(e)?;
                Ok(())
            })
        })
    }
}

/// Binds all texts of a database and of the temporary one, each of which must still mean
/// something. `strict`: a name in double quotes is no text in tables and indexes.
pub(super) fn check(
    known: (&Catalog, &UserCode),
    schema: &Schema,
    when: &str,
    strict: bool,
) -> Result<()> {
    check_one(known, schema, when, strict)?;
    match known.0.temp_beside(schema) {
        Some(temp) => check_one(known, temp, when, strict),
        None => Ok(()),
    }
}

fn check_one(
    known: (&Catalog, &UserCode),
    schema: &Schema,
    when: &str,
    strict: bool,
) -> Result<()> {
    let one = |row: &SchemaRow, strict: bool| -> Result<()> {
        let Some(sql) = kept_text(row) else {
            return Ok(());
        };
        let Some(statement) = crate::parse::parse(sql)?.statement else {
            return Err(Error::corrupt("an empty text"));
        };
        uses_of(known, schema, row, &statement, Watched::Nothing, strict)?;
        Ok(())
    };
    let is_view = |row: &SchemaRow| is(&row.kind, "view") || is(&row.kind, "trigger");
    if strict {
        // Views and triggers are told about tables and indexes that can be read.
        for row in schema.rows().filter(|row| !is_view(row)) {
            one(row, false).map_err(|e| in_object(row, when, &e))?;
        }
    }
    for row in schema.rows() {
        one(row, strict && !is_view(row)).map_err(|e| in_object(row, when, &e))?;
    }
    Ok(())
}
