//! Binding of ALTER TABLE.
//!
//! The texts in sqlite_schema are the truth, so a name is changed in all of them, and the
//! rest of a text stays as it is, byte by byte ([`super::texts`]). A text is bound to learn
//! which of its names mean the table or the column ([`super::uses`]), and where those stand
//! is exact ([`crate::parse::places`]). What comes out is the schema as it will be: all of
//! it is bound once more before anything is written.

use std::sync::Arc;

use super::Binder;
use super::ddl::{change, check_name, shaped, sqlites_name};
use super::dml::{plain_query, whole_row};
use super::logical::{Block, Bound, ForbiddingRows, Query};
use super::refused::check_constraints;
use super::scope::is_rowid_name;
use super::texts::{TextChange, cannot_place, changed_texts, check, in_object, is};
use super::uses::Watched;
use crate::ast;
use crate::ast::{AlterAction, ColumnConstraint, Literal, Name, Statement, TableBody};
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::parse::places::{self, Renaming};
use crate::plan::physical::{SchemaChange, SchemaRewrite};
use crate::schema::{
    Column, SEQUENCE, Schema, SchemaRow, Table, check_strict_type, declared_shape, nearest,
    table_shape,
};

/// How the names of automatic indexes begin.
const AUTOMATIC: &str = "sqlite_autoindex_";

impl Binder<'_> {
    pub(super) fn alter_table(
        &mut self,
        name: &ast::QualifiedName,
        action: &AlterAction,
    ) -> Result<Bound> {
        let schema = self.schema_of(name);
        let view = match schema {
            Some(schema) => schema.view(&name.name.text)?,
            None => None,
        };
        let table = match view {
            Some(_) => None,
            None => Some(self.table(name)?),
        };
        if let AlterAction::RenameTable(new) = action {
            let schema = schema.unwrap_or(self.catalog.main());
            self.check_not_taken(new, schema)?;
        }
        let is_own = |t: &Arc<Table>| self.is_schema_table(t) || t.name == SEQUENCE;
        if let Some(table) = table.as_ref().filter(|table| is_own(table)) {
            let name = sqlites_name(table);
            return Err(Error::sql(format!("table {name} may not be altered")));
        }
        if let AlterAction::RenameTable(new) = action {
            check_name(new)?;
        }
        let Some(table) = table else {
            return Err(view_may_not(&name.name.text, action));
        };
        self.changes(self.catalog.of(&table.tree), true);
        match action {
            AlterAction::AddColumn(column, text) => self.add_column(&table, column, text),
            AlterAction::RenameTable(new) => self.rename_table(&table, new),
            AlterAction::RenameColumn {
                old,
                written,
                new,
                quoted,
            } => {
                let column = column_position(&table, old, written)?;
                let renaming = Renaming {
                    old: &old.text,
                    new: &new.text,
                    quoted: *quoted,
                };
                self.rename_column(&table, column, renaming)
            }
            AlterAction::DropColumn(column, written) => {
                let at = column_position(&table, column, written)?;
                self.drop_column(&table, at, &column.text)
            }
            AlterAction::AddCheck { name, expr, text } => {
                self.add_check(&table, name.as_deref(), expr, text)
            }
            AlterAction::DropConstraint(name) => self.drop_constraint(&table, &name.text),
            AlterAction::SetNotNull(column, text) => self.set_not_null(&table, column, text),
            AlterAction::DropNotNull(column) => self.drop_not_null(&table, column),
        }
    }

    fn check_not_taken(&self, new: &Name, schema: &Schema) -> Result<()> {
        let text = &new.text;
        let is_taken =
            schema.table(text)?.is_some() || schema.view(text)?.is_some() || schema.has_index(text);
        if !is_taken {
            return Ok(());
        }
        let message = format!("there is already another table or index with this name: {text}");
        Err(Error::sql(message).with_offset(new.offset))
    }

    fn rename_table(&self, table: &Arc<Table>, new: &Name) -> Result<Bound> {
        let schema = self.catalog.of(&table.tree);
        schema.sequence_tree()?;
        let texts = TextChange {
            catalog: self.catalog,
            user: &self.settings.user,
            schema,
            table,
            watched: Watched::Table(table.tree.clone()),
            renaming: Renaming {
                old: &table.name,
                new: &new.text,
                quoted: true,
            },
        };
        let mut after = changed_texts(&texts)?;
        let database = self.catalog.name_of(schema);
        let is_of = |row: &SchemaRow| row.database.as_ref().is_some_and(|it| is(it, database));
        for row in after.temp.iter_mut().flatten().filter(|row| is_of(row)) {
            if is(&row.table, &table.name) {
                row.table.clone_from(&new.text);
            }
        }
        for row in after.own.iter_mut().filter(|row| row.database.is_none()) {
            if is(&row.kind, "view") || !is(&row.table, &table.name) {
                continue;
            }
            row.table.clone_from(&new.text);
            if is(&row.kind, "table") {
                row.name.clone_from(&new.text);
            } else if row.sql.is_none()
                && let Some(number) = row.name.get(AUTOMATIC.len() + table.name.len()..)
            {
                row.name = format!("{AUTOMATIC}{}{number}", new.text);
            }
        }
        let rewrites = after.rewrites(&texts);
        after.check(&texts, " after rename", false)?;
        Ok(change(SchemaChange::RenameTable {
            rewrites,
            table: table.clone(),
            new_name: new.text.clone(),
        }))
    }

    fn rename_column(&self, table: &Table, column: usize, renaming: Renaming<'_>) -> Result<Bound> {
        for (what, name) in [("from", renaming.old), ("to", renaming.new)] {
            if is_rowid_name(name) && !table.without_rowid {
                let message = format!("cannot rename {what} rowid alias: {name}");
                return Err(Error::sql(message));
            }
        }
        let schema = self.catalog.of(&table.tree);
        check((self.catalog, &self.settings.user), schema, "", false)?;
        let texts = TextChange {
            catalog: self.catalog,
            user: &self.settings.user,
            schema,
            table,
            watched: Watched::Column(table.tree.clone(), column),
            renaming,
        };
        let after = changed_texts(&texts)?;
        let rewrites = after.rewrites(&texts);
        after.check(&texts, " after rename", true)?;
        Ok(change(SchemaChange::RenameColumn(rewrites)))
    }

    fn drop_column(&self, table: &Arc<Table>, column: usize, name: &str) -> Result<Bound> {
        if is_rowid_name(name) && !table.without_rowid {
            return Err(Error::sql(format!("cannot drop rowid alias: {name}")));
        }
        if let Some(kind) = own_key(table, column)? {
            return Err(Error::sql(format!("cannot drop {kind} column: \"{name}\"")));
        }
        if table.columns.len() == 1 {
            let message = format!("cannot drop column \"{name}\": no other columns exist");
            return Err(Error::sql(message));
        }
        let schema = self.catalog.of(&table.tree);
        check((self.catalog, &self.settings.user), schema, "", false)?;
        let texts = TextChange {
            catalog: self.catalog,
            user: &self.settings.user,
            schema,
            table,
            watched: Watched::Nothing,
            renaming: Renaming {
                old: name,
                new: name,
                quoted: false,
            },
        };
        let mut after = changed_texts(&texts)?;
        let is_own = |row: &&mut SchemaRow| is(&row.kind, "table") && is(&row.name, &table.name);
        if let Some(row) = after.own.iter_mut().find(is_own) {
            let sql = row.sql.as_deref().unwrap_or_default();
            let sql = places::without_column(sql, column, table.columns.len())
                .ok_or_else(|| cannot_place(row, name))?;
            no_key_left(&sql, name).map_err(|e| in_object(row, " after drop column", &e))?;
            row.sql = Some(sql);
        }
        let rewrites = after.rewrites(&texts);
        after.check(&texts, " after drop column", true)?;
        Ok(change(SchemaChange::DropColumn {
            rewrites,
            table: table.clone(),
            column,
        }))
    }

    /// The new column's text goes behind the last definition; rows stay as they
    /// are and show the default.
    fn add_column(
        &mut self,
        table: &Arc<Table>,
        column: &ast::ColumnDef,
        text: &str,
    ) -> Result<Bound> {
        use ast::ColumnConstraint as C;
        let has = |f: fn(&C) -> bool| column.constraints.iter().any(f);
        if has(|c| matches!(c, C::PrimaryKey { .. })) {
            return Err(Error::sql("Cannot add a PRIMARY KEY column"));
        }
        if has(|c| matches!(c, C::Unique(_))) {
            return Err(Error::sql("Cannot add a UNIQUE column"));
        }
        check_constraints(std::slice::from_ref(column), &[])?;
        if is_rowid_name(&column.name.text) && !table.without_rowid {
            let message = format!("cannot add rowid alias: {}", column.name.text);
            return Err(Error::sql(message));
        }
        let after_add = |error: Error| {
            let (name, message) = (&table.name, error.message());
            Error::sql(format!("error in table {name} after add column: {message}"))
        };
        let corrupt = || Error::corrupt(format!("schema of {}", table.name));
        let end = crate::parse::columns_end(&table.sql).ok_or_else(corrupt)?;
        let (head, tail) = table.sql.split_at(end);
        let sql = format!("{head}, {text}{tail}");
        let parsed = crate::parse::parse(&sql)?.statement;
        let Some(ast::Statement::CreateTable(create)) = parsed else {
            return Err(corrupt());
        };
        let of_type = check_strict_type(&table.name, &column.name.text, &column.decl_type).err();
        let shape = table_shape(&create).map_err(|error| match of_type {
            Some(of_type) if of_type == error => after_add(error),
            _ => error,
        })?;
        if shape.columns.len() != table.columns.len() + 1 {
            return Err(corrupt());
        }
        self.check_collations(std::slice::from_ref(column), &[])?;
        self.check_shape(&table.name, &shape, &table.tree)
            .map_err(after_add)?;
        let rewrite = SchemaRewrite {
            in_temp: false,
            kind: "table".to_owned(),
            name: table.name.clone(),
            new_name: table.name.clone(),
            new_table: table.name.clone(),
            new_sql: Some(sql),
        };
        let after = shaped(&table.name, &table.tree, &shape);
        let forbidding = self.forbidding_rows(&after, column)?;
        Ok(Bound::Alter(rewrite, forbidding))
    }

    /// The rows of a table, as it is after a column was added, that forbid the column, and
    /// what is to be said where there are any: all rows, where it would have no value in
    /// them, else those that break its constraints.
    fn forbidding_rows(
        &mut self,
        table: &Arc<Table>,
        added: &ast::ColumnDef,
    ) -> Result<Vec<ForbiddingRows>> {
        let refers = |c: &ColumnConstraint| matches!(c, ColumnConstraint::ForeignKey(_));
        let refers = self.settings.foreign_keys && added.constraints.iter().any(refers);
        if let Some(message) = needs_empty_table(table, refers) {
            let rows = self.rows_with(table, None)?;
            let error = Error::sql(message);
            return Ok(vec![ForbiddingRows { rows, error }]);
        }
        let mut reasons = Vec::new();
        let checks = added.constraints.iter().filter_map(|constraint| {
            let ColumnConstraint::Check { expr, .. } = constraint else {
                return None;
            };
            Some(of_kind(ast::ExprKind::Not(Box::new(expr.clone()))))
        });
        let checks: Vec<ast::Expr> = checks.collect();
        if !checks.is_empty() {
            let any = of_kind(ast::ExprKind::Or(checks));
            reasons.push(("CHECK constraint failed", any));
        }
        if let Some(column) = table.columns.last().filter(|c| c.generated.is_some()) {
            reasons.extend(generated_forbids(column));
        }
        let rows = reasons.into_iter().map(|(message, condition)| {
            let rows = self.rows_with(table, Some(&condition))?;
            let error = Error::sql(message);
            Ok(ForbiddingRows { rows, error })
        });
        rows.collect()
    }

    /// The rows of a table for which a condition holds.
    pub(super) fn rows_with(
        &mut self,
        table: &Arc<Table>,
        condition: Option<&ast::Expr>,
    ) -> Result<Query> {
        let id = self.new_source()?;
        let filter = self.row_frame(table, &table.name, id, |this| {
            this.frame().definition = Some(Definition::Check);
            condition.map(|condition| this.expr(condition)).transpose()
        })?;
        Ok(plain_query(Block {
            sources: vec![self.whole_source(table, id)?],
            filter: filter.into_iter().collect(),
            outputs: whole_row(table, id),
            ..Block::default()
        }))
    }
}

pub(super) fn of_kind(kind: ast::ExprKind) -> ast::Expr {
    ast::Expr { kind, offset: 0 }
}

/// Values of a new generated column that forbid it: NULL where that may not be, and those
/// of another type in a STRICT table.
fn generated_forbids(column: &Column) -> Vec<(&'static str, ast::Expr)> {
    let value = of_kind(ast::ExprKind::Column(Name::synthetic(column.name.clone())));
    let mut reasons = Vec::new();
    if let Some(strict) = column.strict {
        let call = ast::FunctionCall {
            name: Name::synthetic("typeof"),
            args: Some(vec![value.clone()]),
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            over: None,
        };
        let text = |name: &str| of_kind(ast::ExprKind::Literal(Literal::Text(name.to_owned())));
        let other = of_kind(ast::ExprKind::InList {
            expr: Box::new(of_kind(ast::ExprKind::Function(Box::new(call)))),
            list: vec![text("null"), text(strict.type_name())],
            negated: true,
        });
        reasons.push(("type mismatch on DEFAULT", other));
    }
    if column.not_null.is_some() {
        let is_null = of_kind(ast::ExprKind::IsNull {
            expr: Box::new(value),
            negated: false,
        });
        reasons.push(("NOT NULL constraint failed", is_null));
    }
    reasons
}

/// Why the last column, which is new, has no value for rows that are there already.
fn needs_empty_table(table: &Table, refers: bool) -> Option<&'static str> {
    let added = table.columns.last()?;
    if let Some(generated) = &added.generated {
        return generated.stored.then_some("cannot add a STORED column");
    }
    if refers && !added.missing.is_null() {
        return Some("Cannot add a REFERENCES column with non-NULL default value");
    }
    let literal = |default| crate::schema::literal_value(default).is_some();
    if !added.default.as_ref().is_none_or(literal) {
        return Some("Cannot add a column with non-constant default");
    }
    if !added.takes(added.missing.as_ref()) {
        return Some("type mismatch on DEFAULT");
    }
    let is_null = added.not_null.is_some() && added.missing.is_null();
    is_null.then_some("Cannot add a NOT NULL column with default value NULL")
}

fn view_may_not(view: &str, action: &AlterAction) -> Error {
    Error::sql(match action {
        AlterAction::AddColumn(..) => "Cannot add a column to a view".to_owned(),
        AlterAction::RenameColumn { .. } => format!("cannot rename columns of view \"{view}\""),
        AlterAction::DropColumn(..) => format!("cannot drop column from view \"{view}\""),
        AlterAction::RenameTable(_) => format!("view {view} may not be altered"),
        AlterAction::AddCheck { .. }
        | AlterAction::DropConstraint(_)
        | AlterAction::SetNotNull(..)
        | AlterAction::DropNotNull(_) => format!("cannot edit constraints of view \"{view}\""),
    })
}

fn column_position(table: &Table, name: &Name, written: &str) -> Result<usize> {
    let quoted = format!("\"{written}\"");
    position_or(table, name, &quoted)
}

/// The position of a column; `shown`: how the message that there is none names it.
pub(super) fn position_or(table: &Table, name: &Name, shown: &str) -> Result<usize> {
    let at = table.columns.iter().position(|c| is(&c.name, &name.text));
    at.ok_or_else(|| {
        let error = Error::sql(format!("no such column: {shown}")).with_offset(name.offset);
        let names = table.columns.iter().map(|c| c.name.as_str());
        match nearest(&name.text, names) {
            Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
            None => error,
        }
    })
}

/// The kind of key that a column is by its own definition.
fn own_key(table: &Table, column: usize) -> Result<Option<&'static str>> {
    if table.columns.get(column).is_some_and(|c| c.primary_key > 0) {
        return Ok(Some("PRIMARY KEY"));
    }
    let Some(Statement::CreateTable(create)) = crate::parse::parse(&table.sql)?.statement else {
        return Ok(None);
    };
    let TableBody::Columns { columns, .. } = &create.body else {
        return Ok(None);
    };
    let is_unique = |c: &ColumnConstraint| matches!(c, ColumnConstraint::Unique(_));
    let definition = columns.get(column);
    Ok(definition
        .filter(|definition| definition.constraints.iter().any(is_unique))
        .map(|_| "UNIQUE"))
}

/// A dropped column must not be left in a key of its table's text.
fn no_key_left(sql: &str, column: &str) -> Result<()> {
    if let Some(Statement::CreateTable(create)) = crate::parse::parse(sql)?.statement {
        declared_shape(&create)?;
    }
    let keys = places::foreign_keys(sql);
    let mut columns = keys.iter().flat_map(|key| &key.columns);
    match columns.find(|(name, _)| is(name, column)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::sql(format!(
            "unknown column \"{name}\" in foreign key definition"
        ))),
    }
}
