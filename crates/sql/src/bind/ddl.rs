//! Binding of CREATE and DROP of tables and views, DROP INDEX, and VACUUM.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::Binder;
use super::logical::Bound;
use super::names::Naming;
use super::refused::check_constraints;
use crate::ast;
use crate::ast::{TableBody, TableConstraintKind};
use crate::error::{Error, Result, code};
use crate::plan::physical::{Action, SchemaChange};
use crate::schema::{IndexOrigin, SEQUENCE, Schema, TEMP, Table, TableShape, table_shape};
use crate::value::Affinity;

/// `name` as an identifier that parses.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) fn change(change: SchemaChange) -> Bound {
    Bound::Ready(Action::Schema(Box::new(change)), Vec::new())
}

pub(super) fn nothing() -> Bound {
    Bound::Ready(Action::Nothing, Vec::new())
}

/// Names that begin with `sqlite_` are the engine's own.
pub(super) fn check_name(name: &ast::Name) -> Result<()> {
    let reserved = name
        .text
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"));
    if reserved {
        let message = format!("object name reserved for internal use: {}", name.text);
        return Err(Error::sql(message).with_offset(name.offset));
    }
    Ok(())
}

impl<'a> Binder<'a> {
    /// Tables, views and indexes share their names.
    fn check_no_index(&self, name: &ast::Name, schema: &Schema) -> Result<()> {
        if schema.has_index(&name.text) {
            let message = format!("there is already an index named {}", name.text);
            return Err(Error::sql(message).with_offset(name.offset));
        }
        Ok(())
    }

    pub(super) fn vacuum(
        &mut self,
        schema: Option<&ast::Name>,
        into: Option<&ast::Select>,
    ) -> Result<Bound> {
        let store = match schema {
            Some(schema) if schema.text.eq_ignore_ascii_case(TEMP) => return Ok(nothing()),
            Some(schema) => Some(self.database(schema)?.tree().store_number()),
            None => None,
        };
        let into = into.map(|file| self.query(file)).transpose()?;
        Ok(Bound::Vacuum(store, into.map(Box::new)))
    }

    pub(super) fn create_table(&mut self, create: &ast::CreateTable) -> Result<Bound> {
        let schema = self.new_in(&create.name, create.temporary)?;
        let name = &create.name.name;
        check_name(name)?;
        if schema.table(&name.text)?.is_some() {
            if create.if_not_exists {
                return Ok(nothing());
            }
            let error = Error::sql(format!(
                "table {} already exists",
                quoted_if_needed(&name.text)
            ));
            return Err(error
                .with_offset(name.offset)
                .with_hint("CREATE TABLE IF NOT EXISTS leaves it as it is"));
        }
        self.check_no_index(name, schema)?;
        if let Some(view) = schema.view(&name.text)? {
            if create.if_not_exists {
                return Ok(nothing());
            }
            let message = format!("view {} already exists", quoted_if_needed(&view.name));
            return Err(Error::sql(message).with_offset(name.offset));
        }
        self.changes(schema, false);
        match &create.body {
            TableBody::Columns {
                columns,
                constraints,
                ..
            } => {
                check_constraints(columns, constraints)?;
                self.check_collations(columns, &[])?;
                for constraint in constraints {
                    if let TableConstraintKind::PrimaryKey { columns, .. }
                    | TableConstraintKind::Unique { columns, .. } = &constraint.kind
                    {
                        self.check_collations(&[], columns)?;
                    }
                }
                let shape = table_shape(create)?;
                self.check_shape(&name.text, &shape, schema.tree())?;
                if shape.autoincrement {
                    schema.sequence_tree()?;
                }
                Ok(change(SchemaChange::CreateTable {
                    name: name.text.clone(),
                    sql: match create.if_not_exists || create.name.schema.is_some() {
                        true => readable(&name.text, format!("CREATE TABLE {}", create.text))?,
                        // The name stands where it stood in the text.
                        false => format!("CREATE TABLE {}", create.text),
                    },
                    key: shape.key(),
                    automatic_indexes: shape.automatic.into_iter().map(|i| i.name).collect(),
                    autoincrement: shape.autoincrement,
                    source: None,
                }))
            }
            TableBody::Select(select) => self.create_table_as(&name.text, select),
        }
    }

    /// CHECK constraints and generated columns must name columns of the table, and neither a
    /// subquery nor a parameter.
    pub(super) fn check_shape(
        &mut self,
        name: &str,
        shape: &TableShape,
        tree: &Tree,
    ) -> Result<()> {
        let table = shaped(name, tree, shape);
        let before = self.subqueries.len();
        let generated = self.generated(&table, 0)?;
        self.check_generated(&generated, before)?;
        let before = self.subqueries.len();
        let target = self.new_target(&table)?;
        if self.subqueries.len() > before {
            return Err(Error::sql("subqueries prohibited in CHECK constraints"));
        }
        if target.checks.iter().any(|(_, check)| check.has_parameter()) {
            return Err(Error::sql("parameters prohibited in CHECK constraints"));
        }
        Ok(())
    }

    fn create_table_as(&mut self, name: &str, select: &ast::Select) -> Result<Bound> {
        let query = self.named_query(select, Naming::Stored)?;
        let mut affinities = Vec::with_capacity(query.columns.len());
        let mut definitions = Vec::with_capacity(query.columns.len());
        for (at, column) in query.columns.iter().enumerate() {
            let (word, affinity) = match query.affinity(at) {
                Some(Affinity::Text) => (" TEXT", Affinity::Text),
                Some(Affinity::Numeric) => (" NUM", Affinity::Numeric),
                Some(Affinity::Integer) => (" INT", Affinity::Integer),
                Some(Affinity::Real) => (" REAL", Affinity::Real),
                Some(Affinity::Blob) | None => ("", Affinity::Blob),
            };
            let name = quoted_if_needed(&column.output.name);
            definitions.push(format!("{name}{word}"));
            affinities.push(affinity);
        }
        // A line for each column, as SQLite has it, where they would make a long one.
        let long = query
            .columns
            .iter()
            .map(|column| quoted(&column.output.name).len() + 5)
            .sum::<usize>();
        let [begin, between, end] = match long + quoted(name).len() < 50 {
            true => ["", ",", ""],
            false => ["\n  ", ",\n  ", "\n"],
        };
        let sql = format!(
            "CREATE TABLE {}({begin}{}{end})",
            quoted_if_needed(name),
            definitions.join(between)
        );
        Ok(Bound::CreateTableAs(
            name.to_owned(),
            readable(name, sql)?,
            Box::new(query),
            affinities,
        ))
    }

    pub(super) fn drop_table(
        &mut self,
        name: &ast::QualifiedName,
        if_exists: bool,
    ) -> Result<Bound> {
        let schema = self.schema_of(name);
        let view = schema.map(|schema| schema.view(&name.name.text));
        if let Some(Ok(Some(_))) = view {
            return Err(Error::sql(format!(
                "use DROP VIEW to delete view {}",
                name.name.text
            )));
        }
        match self.table(name) {
            Ok(table) if self.is_schema_table(&table) => Err(Error::sql(format!(
                "table {} may not be dropped",
                sqlites_name(&table)
            ))),
            Ok(table) if table.name == SEQUENCE => {
                Err(Error::sql("table sqlite_sequence may not be dropped"))
            }
            Ok(table) => {
                self.drops(self.catalog.of(&table.tree), &table.name);
                match self.foreign_of_dropped(&table)? {
                    Some(foreign) => {
                        let delete = self.delete_dropped(&table, foreign)?;
                        Ok(Bound::DropTable(Box::new(delete)))
                    }
                    None => Ok(change(SchemaChange::DropTable(table, None))),
                }
            }
            Err(error) if if_exists && error.message().starts_with("no such table") => {
                Ok(nothing())
            }
            Err(error) if error.code() == code::CORRUPT => {
                self.drop_malformed("table", schema, &name.name.text, error)
            }
            Err(error) => Err(error),
        }
    }

    /// What cannot be used can be dropped: that is the way out.
    fn drop_malformed(
        &mut self,
        kind: &'static str,
        schema: Option<&'a Schema>,
        name: &str,
        error: Error,
    ) -> Result<Bound> {
        let stored = schema.and_then(|it| Some((it, it.stored_name(kind, name)?)));
        let Some((schema, name)) = stored.filter(|_| !name.eq_ignore_ascii_case(SEQUENCE)) else {
            return Err(error);
        };
        self.drops(schema, name);
        Ok(change(SchemaChange::DropMalformed {
            kind,
            name: name.to_owned(),
            trees: schema.trees_of_malformed(kind, name),
        }))
    }

    /// A table or view is dropped, and with it the temporary triggers that it has.
    fn drops(&mut self, schema: &'a Schema, name: &str) {
        let database = self.catalog.name_of(schema);
        let beside = self.catalog.temp_beside(schema);
        let temp = beside.is_some_and(|temp| temp.has_triggers(name, Some(database)));
        self.changes(schema, temp);
    }

    pub(super) fn create_view(&mut self, create: &ast::CreateView) -> Result<Bound> {
        let schema = self.new_in(&create.name, create.temporary)?;
        let name = &create.name.name;
        check_name(name)?;
        let kind = match (schema.table(&name.text)?, schema.view(&name.text)?) {
            (None, None) => {
                self.check_no_index(name, schema)?;
                self.check_own(schema, ("view", name), &create.databases)?;
                self.changes(schema, false);
                let sql = readable(&name.text, format!("CREATE VIEW {}", create.text))?;
                let name = name.text.clone();
                return Ok(change(SchemaChange::CreateView { name, sql }));
            }
            _ if create.if_not_exists => return Ok(nothing()),
            (Some(_), _) => "table",
            (None, Some(_)) => "view",
        };
        let message = format!("{kind} {} already exists", quoted_if_needed(&name.text));
        Err(Error::sql(message).with_offset(name.offset))
    }

    pub(super) fn drop_view(
        &mut self,
        name: &ast::QualifiedName,
        if_exists: bool,
    ) -> Result<Bound> {
        let text = &name.name.text;
        if let Some(schema) = self.schema_of(name) {
            // What cannot be used can be dropped.
            let mut known = schema.view_names();
            if let Some(view) = known.find(|view| view.eq_ignore_ascii_case(text)) {
                self.drops(schema, view);
                return Ok(change(SchemaChange::DropView(view.to_owned())));
            }
            if schema.table(text)?.is_some() {
                return Err(Error::sql(format!("use DROP TABLE to delete table {text}")));
            }
        }
        if if_exists {
            return Ok(nothing());
        }
        let known = self.catalog.in_order().flat_map(Schema::view_names);
        Err(self.missing("view", name, known))
    }

    pub(super) fn drop_index(
        &mut self,
        name: &ast::QualifiedName,
        if_exists: bool,
    ) -> Result<Bound> {
        let text = &name.name.text;
        let holds = |schema: &Schema| schema.has_index(text);
        let schema = self.schema_where(name.schema.as_ref(), holds);
        let found = match schema.map(|schema| schema.index(text)).transpose() {
            Err(error) if error.code() == code::CORRUPT => {
                return self.drop_malformed("index", schema, text, error);
            }
            found => found?,
        };
        match found.flatten() {
            Some((table, index)) if index.origin == IndexOrigin::Create => {
                self.changes(self.catalog.of(&table.tree), false);
                Ok(change(SchemaChange::DropIndex(index)))
            }
            Some(_) => Err(Error::sql(
                "index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped",
            )),
            None if if_exists => Ok(nothing()),
            None => {
                let known = self.catalog.in_order().flat_map(Schema::index_names);
                Err(self.missing("index", name, known))
            }
        }
    }
}

/// The name that SQLite's messages have for a table.
pub(super) fn sqlites_name(table: &Table) -> &str {
    match table.name.as_str() {
        "sqlite_schema" => "sqlite_master",
        "sqlite_temp_schema" => "sqlite_temp_master",
        name => name,
    }
}

/// A table of this shape, without its indexes.
pub(super) fn shaped(name: &str, tree: &Tree, shape: &TableShape) -> Arc<Table> {
    Arc::new(Table {
        name: name.to_owned(),
        tree: tree.clone(),
        columns: shape.columns.clone(),
        rowid_alias: shape.rowid_alias,
        autoincrement: shape.autoincrement,
        sequence: None,
        rowid_conflict: shape.rowid_conflict,
        without_rowid: shape.without_rowid,
        indexes: Vec::new(),
        checks: shape.checks.clone(),
        foreign_keys: shape.foreign_keys.clone(),
        has_generated: shape.has_generated(),
        asks_program: shape.asks_program(),
        strict: shape.strict,
        sql: String::new(),
    })
}

/// A text for the schema, if it can be read again: behind `IF NOT EXISTS`, which is not
/// kept, `if` can be a name, and in front it cannot.
pub(super) fn readable(name: &str, sql: String) -> Result<String> {
    match crate::parse::parse(&sql) {
        Ok(_) => Ok(sql),
        Err(error) => {
            let why = error.message();
            let message = format!("malformed database schema ({name}) - {why}");
            Err(Error::new(code::CORRUPT, message).with_hint("put the name in quotes"))
        }
    }
}

/// The same without quotes where it parses as it is.
fn quoted_if_needed(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !crate::parse::is_keyword(name);
    if plain { name.to_owned() } else { quoted(name) }
}
