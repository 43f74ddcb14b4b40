//! Binding of triggers: CREATE and DROP, what a statement fires, and the programs that it
//! may run.
//!
//! A text is bound when a statement is that may fire it, not when it is created, so that it
//! may name what is not there yet; as in SQLite. The statement registers the programs that
//! it fires, each binds its statements, which register more, until nothing new comes.

use std::sync::Arc;

use super::call::raise;
use super::ddl::{change, check_name, nothing, readable, sqlites_name};
use super::expr::{Expr, ExprKind, Props};
use super::logical::{Body, Bound, BoundProgram, Query, QueryColumn};
use super::scope::{ColumnName, Found, ROWID_NAMES, is_rowid_name};
use super::{Binder, BoundStatement};
use crate::ast::{self, ForeignAction, Statement, TriggerEvent, TriggerTime};
use crate::error::{Error, Result};
use crate::plan::Settings;
use crate::plan::physical::{OutputColumn, SchemaChange};
use crate::plan::trigger::{Firing, Timed};
use crate::schema::{
    Catalog, Column, ConflictAction, ForeignKey, SEQUENCE, Schema, Table, Trigger, View,
};
use crate::value::{Affinity, Value};

/// What happens to a row, as triggers wait for it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fired<'n> {
    /// It is new.
    Insert,
    /// It goes.
    Delete,
    /// Columns of these names change.
    Update(&'n [&'n str]),
}

impl Fired<'_> {
    fn fires(self, trigger: &Trigger) -> bool {
        match (&trigger.definition.event, self) {
            (TriggerEvent::Insert, Fired::Insert) | (TriggerEvent::Delete, Fired::Delete) => true,
            (TriggerEvent::Update(None), Fired::Update(_)) => true,
            (TriggerEvent::Update(Some(of)), Fired::Update(names)) => of
                .iter()
                .any(|of| names.iter().any(|name| of.text.eq_ignore_ascii_case(name))),
            _ => false,
        }
    }
}

/// A program that a statement may run.
#[derive(Debug)]
pub(super) struct Registered<'a> {
    trigger: Arc<Trigger>,
    /// The database that it is in.
    schema: &'a Schema,
    /// The database of its table.
    of: &'a Schema,
    /// The OR clause that its statements run under.
    conflict: Option<ConflictAction>,
}

/// The rows that a trigger's statements call OLD and NEW.
#[derive(Debug)]
pub(super) struct TriggerRows {
    /// The table, or what stands for the view.
    table: Arc<Table>,
    /// Of the database that the trigger is in.
    pub(super) store: u64,
    is_view: bool,
    has_old: bool,
    has_new: bool,
}

impl<'a> Binder<'a> {
    pub(super) fn create_trigger(&mut self, create: &ast::CreateTrigger) -> Result<Bound> {
        let name = &create.name.name;
        let (schema, of) = self.trigger_place(create)?;
        let (on, is_view) = self.trigger_table(&create.table, of)?;
        if !schema.is_temp() {
            check_steps(create)?;
        }
        check_name(name)?;
        let is_taken = |known: &str| known.eq_ignore_ascii_case(&name.text);
        if schema.trigger_names().any(is_taken) {
            if create.if_not_exists {
                return Ok(nothing());
            }
            let message = format!("trigger {} already exists", name.text);
            return Err(Error::sql(message).with_offset(name.offset));
        }
        let refused = match (is_view, create.time) {
            (true, TriggerTime::Before) => Some("cannot create BEFORE trigger on view"),
            (true, TriggerTime::After) => Some("cannot create AFTER trigger on view"),
            (false, TriggerTime::InsteadOf) => Some("cannot create INSTEAD OF trigger on table"),
            _ => None,
        };
        if let Some(refused) = refused {
            let message = format!("{refused}: {}", create.table.name.text);
            return Err(Error::sql(message).with_offset(create.table.name.offset));
        }
        if create.has_parameters {
            return Err(Error::sql("trigger cannot use variables"));
        }
        self.check_own(schema, ("trigger", name), &create.databases)?;
        let sql = readable(&name.text, format!("CREATE TRIGGER {}", create.text))?;
        self.changes(schema, false);
        let is_own = schema.tree() == of.tree();
        Ok(change(SchemaChange::CreateTrigger {
            name: name.text.clone(),
            table: on,
            database: (!is_own).then(|| self.catalog.name_of(of).to_owned()),
            sql,
        }))
    }

    /// The database of a new trigger, and that of its table. A trigger of a temporary table
    /// is temporary, too.
    fn trigger_place(&self, create: &ast::CreateTrigger) -> Result<(&'a Schema, &'a Schema)> {
        let (name, on) = (&create.name, &create.table);
        if create.temporary
            && let Some(schema) = &name.schema
        {
            let error = Error::sql("temporary trigger may not have qualified name");
            return Err(error.with_offset(schema.offset));
        }
        let mut schema = self.new_in(name, create.temporary)?;
        let of = self.schema_of(on);
        if let Some(of) = of.filter(|of| of.is_temp() && name.schema.is_none()) {
            schema = of;
        }
        if !schema.is_temp() {
            self.check_own(schema, ("trigger", &name.name), on.schema.as_slice())?;
            return Ok((schema, schema));
        }
        match of {
            Some(of) if of.holds(&on.name.text.to_ascii_lowercase()) => Ok((schema, of)),
            _ => self
                .table(on)
                .map(|table| (schema, self.catalog.of(&table.tree))),
        }
    }

    /// The name of the table or view that a new trigger is on, and whether it is a view.
    fn trigger_table(&self, of: &ast::QualifiedName, schema: &Schema) -> Result<(String, bool)> {
        if let Some(view) = schema.view(&of.name.text)? {
            return Ok((view.name.clone(), true));
        }
        let qualified = ast::QualifiedName {
            schema: Some(ast::Name {
                text: self.catalog.name_of(schema).to_owned(),
                ..of.name.clone()
            }),
            name: of.name.clone(),
        };
        let table = self.table(&qualified)?;
        if table.tree == *schema.tree() || table.name == SEQUENCE {
            return Err(Error::sql("cannot create trigger on system table"));
        }
        Ok((table.name.clone(), false))
    }

    pub(super) fn drop_trigger(
        &mut self,
        name: &ast::QualifiedName,
        if_exists: bool,
    ) -> Result<Bound> {
        let text = &name.name.text;
        let is_it = |it: &&str| it.eq_ignore_ascii_case(text);
        let holds = |schema: &Schema| schema.trigger_names().any(|it| is_it(&it));
        let schema = self.schema_where(name.schema.as_ref(), holds);
        let found = schema.and_then(|it| Some((it, it.trigger_names().find(is_it)?)));
        if let Some((schema, found)) = found {
            self.changes(schema, false);
            return Ok(change(SchemaChange::DropTrigger(found.to_owned())));
        }
        if if_exists {
            return Ok(nothing());
        }
        let known = self.catalog.in_order().flat_map(Schema::trigger_names);
        Err(self.missing("trigger", name, known))
    }

    /// The table of a statement that writes; for a view, with what stands in for the writing.
    pub(super) fn writable(
        &mut self,
        name: &ast::QualifiedName,
        event: Fired<'_>,
        conflict: Option<ConflictAction>,
    ) -> Result<(Arc<Table>, Option<Vec<usize>>)> {
        let schema = self.schema_of(name);
        let view = schema.map(|schema| Ok::<_, Error>((schema, schema.view(&name.name.text)?)));
        if let Some((schema, Some(view))) = view.transpose()? {
            let fires = self.fires(&view.name, schema, event, conflict)?;
            if !fires.before.is_empty() {
                return Ok((self.view_table(&view, schema)?, Some(fires.before)));
            }
            let message = format!("cannot modify {} because it is a view", view.name);
            let error = Error::sql(message).with_offset(name.name.offset);
            return Err(error.with_hint("an INSTEAD OF trigger can do it"));
        }
        let table = self.table(name)?;
        if self.is_schema_table(&table) {
            let message = format!("table {} may not be modified", sqlites_name(&table));
            return Err(Error::sql(message).with_offset(name.name.offset));
        }
        Ok((table, None))
    }

    /// The triggers of a table that a statement with this OR clause fires.
    pub(super) fn firing(
        &mut self,
        table: &Table,
        event: Fired<'_>,
        conflict: Option<ConflictAction>,
        may_replace: bool,
    ) -> Result<Option<Box<Firing>>> {
        let schema = self.catalog.of(&table.tree);
        if !self.settings.triggers || !self.catalog.has_triggers(schema, &table.name) {
            return Ok(None);
        }
        let mut firing = Firing::default();
        let fires = self.fires(&table.name, schema, event, conflict)?;
        match event {
            Fired::Insert => firing.insert = fires,
            Fired::Update(_) => firing.update = fires,
            Fired::Delete => firing.delete = fires,
        }
        if may_replace && self.settings.recursive_triggers {
            let replace = Some(ConflictAction::Replace);
            firing.delete = self.fires(&table.name, schema, Fired::Delete, replace)?;
        }
        let all = [&firing.insert, &firing.update, &firing.delete];
        let any = all.iter().any(|fires| !fires.is_empty());
        Ok(any.then(|| Box::new(firing)))
    }

    /// The programs that an event on a table or view fires, whose statements run under this
    /// OR clause. INSTEAD OF counts as before.
    pub(super) fn fires(
        &mut self,
        table: &str,
        of: &'a Schema,
        event: Fired<'_>,
        conflict: Option<ConflictAction>,
    ) -> Result<Timed> {
        let mut timed = Timed::default();
        if !self.settings.triggers {
            return Ok(timed);
        }
        for (trigger, schema) in self.catalog.triggers_of(of, table)? {
            if event.fires(&trigger) {
                let list = match trigger.definition.time {
                    TriggerTime::After => &mut timed.after,
                    TriggerTime::Before | TriggerTime::InsteadOf => &mut timed.before,
                };
                list.push(self.registered(Registered {
                    trigger,
                    schema,
                    of,
                    conflict,
                }));
            }
        }
        Ok(timed)
    }

    fn registered(&mut self, new: Registered<'a>) -> usize {
        let is_it = |known: &Registered<'_>| {
            Arc::ptr_eq(&known.trigger, &new.trigger) && known.conflict == new.conflict
        };
        self.programs.iter().position(is_it).unwrap_or_else(|| {
            self.programs.push(new);
            self.programs.len() - 1
        })
    }

    /// What the action of a foreign key fires on the child. `goes`: the parent does.
    pub(super) fn action_fires(
        &mut self,
        child: &Table,
        key: &ForeignKey,
        parent_goes: bool,
    ) -> Result<Timed> {
        let of = self.catalog.of(&child.tree);
        if parent_goes && key.on_delete == ForeignAction::Cascade {
            return self.fires(&child.name, of, Fired::Delete, None);
        }
        let columns = key.columns.iter().filter_map(|at| child.columns.get(*at));
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let abort = Some(ConflictAction::Abort);
        self.fires(&child.name, of, Fired::Update(&names), abort)
    }

    /// A column of OLD or NEW, as a parameter; see `plan/trigger.rs`.
    pub(super) fn trigger_column(&mut self, column: ColumnName<'_>) -> Option<Found> {
        let (rows, of) = (self.trigger.as_ref()?, column.table?);
        let is_old = of.text.eq_ignore_ascii_case("old") && rows.has_old;
        let is_new = of.text.eq_ignore_ascii_case("new") && rows.has_new;
        if column.schema.is_some() || !(is_old || is_new) {
            return None;
        }
        let name = &column.name.text;
        let table = &rows.table;
        let at = match table.column_named(name) {
            Some(at) => Some(at),
            None if is_rowid_name(name) && !rows.is_view && !table.without_rowid => None,
            None => return None,
        };
        if let (Some(at), Some(uses)) = (at, &mut self.uses) {
            uses.key_column(table, at, column.name.offset);
        }
        let first = if is_old { 0 } else { 1 + table.columns.len() };
        let stored = at.and_then(|at| table.columns.get(at));
        let is_rowid = at.is_none() || at == table.rowid_alias;
        // SQLite has them in registers: of a column they keep its collation alone, of a
        // rowid its affinity.
        let props = Props {
            affinity: is_rowid.then_some(Affinity::Integer),
            collation: stored.map(|c| c.collation).filter(|_| !is_rowid),
            ..Props::CONSTANT
        };
        let kind = ExprKind::Parameter(first + at.map_or(0, |at| at + 1));
        let name = stored.map_or(ROWID_NAMES[0], |c| &c.name);
        Some(Found::named(Expr { kind, props }, name))
    }

    /// RAISE(), which ends what it stands in.
    pub(super) fn raise(
        &mut self,
        action: ConflictAction,
        message: Option<&ast::Expr>,
        offset: usize,
    ) -> Result<Expr> {
        if self.trigger.is_none() {
            let message = "RAISE() may only be used within a trigger-program";
            return Err(Error::sql(message).with_offset(offset));
        }
        let message = message.map(|e| self.expr(e)).transpose()?;
        Ok(raise(action, message))
    }

    /// A view as if it were a table, for who would write to it.
    pub(super) fn view_table(&mut self, view: &View, schema: &'a Schema) -> Result<Arc<Table>> {
        let before = self.subqueries.len();
        let query = self.view_query(view, schema)?;
        self.subqueries.truncate(before);
        let (listed, count) = (view.definition.columns.len(), query.columns.len());
        if listed > 0 && listed != count {
            let name = &view.name;
            let message = format!("expected {listed} columns for '{name}' but got {count}");
            return Err(Error::sql(message));
        }
        let column = |(at, column): (usize, &QueryColumn)| Column {
            name: column.output.name.clone(),
            decl_type: column.output.decl_type().unwrap_or_default().to_owned(),
            affinity: query.affinity(at).unwrap_or(Affinity::Blob),
            collation: column.props.collation.unwrap_or_default(),
            not_null: None,
            default: None,
            missing: Value::Null,
            primary_key: 0,
            generated: None,
            strict: None,
        };
        Ok(Arc::new(Table {
            name: view.name.clone(),
            tree: schema.tree().clone(),
            columns: query.columns.iter().enumerate().map(column).collect(),
            rowid_alias: None,
            autoincrement: false,
            sequence: None,
            rowid_conflict: ConflictAction::Abort,
            without_rowid: false,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            has_generated: false,
            asks_program: false,
            strict: false,
            sql: String::new(),
        }))
    }

    /// Within the statements of a trigger of this database: its OLD and NEW are known. `of`:
    /// the database of its table.
    pub(super) fn enter_trigger(
        &mut self,
        create: &ast::CreateTrigger,
        schema: &'a Schema,
        of: &'a Schema,
    ) -> Result<Arc<Table>> {
        let name = &create.table.name;
        self.home = Some(of);
        let view = of.view(&name.text)?;
        let table = match &view {
            Some(view) => self.view_table(view, of)?,
            None => self.table(&ast::QualifiedName {
                schema: None,
                name: name.clone(),
            })?,
        };
        self.home = self.home_in(schema);
        self.trigger = Some(Box::new(TriggerRows {
            table: Arc::clone(&table),
            store: schema.tree().store_number(),
            is_view: view.is_some(),
            has_old: create.event != TriggerEvent::Insert,
            has_new: create.event != TriggerEvent::Delete,
        }));
        Ok(table)
    }
}

/// What a trigger changes is beside it, unless it is temporary.
fn check_steps(create: &ast::CreateTrigger) -> Result<()> {
    let named = create.steps.iter().find_map(|step| match step {
        Statement::Insert(insert) => insert.table.schema.as_ref(),
        Statement::Update(update) => update.table.schema.as_ref(),
        Statement::Delete(delete) => delete.table.schema.as_ref(),
        _ => None,
    });
    named.map_or(Ok(()), |schema| {
        Err(Error::sql(
            "qualified table names are not allowed on INSERT, UPDATE, and DELETE \
             statements within triggers",
        )
        .with_offset(schema.offset))
    })
}

/// Takes what an UPDATE assigns out of its source.
pub(super) fn late_values(source: &mut Query, assigned: &[usize]) -> Vec<(usize, Expr)> {
    let Body::Block(block) = &mut source.body else {
        return Vec::new();
    };
    let first = block.outputs.len().saturating_sub(assigned.len());
    source.columns.truncate(first);
    let values = block.outputs.split_off(first);
    assigned.iter().copied().zip(values).collect()
}

/// Binds the programs that were registered, and those that they register.
pub(super) fn bind_programs<'a>(
    catalog: &'a Catalog,
    settings: &'a Settings,
    mut registered: Vec<Registered<'a>>,
) -> Result<Vec<BoundProgram>> {
    let mut bound = Vec::with_capacity(registered.len());
    while let Some(next) = registered.get(bound.len()) {
        let (trigger, conflict) = (Arc::clone(&next.trigger), next.conflict);
        let (schema, of) = (next.schema, next.of);
        let create = &trigger.definition;
        let mut part = |bind: &dyn Fn(&mut Binder<'a>) -> Result<Bound>| {
            let mut binder = Binder::new(catalog, settings);
            binder.policy = conflict;
            binder.programs = std::mem::take(&mut registered);
            binder.enter_trigger(create, schema, of)?;
            let bound = bind(&mut binder)?;
            registered = std::mem::take(&mut binder.programs);
            Ok(BoundStatement::new(bound, binder))
        };
        let when = create.when.as_ref().map(|when| part(&|it| it.when(when)));
        let when = when.transpose()?;
        let steps = create.steps.iter().map(|step| part(&|it| it.step(step)));
        let steps = steps.collect::<Result<_>>()?;
        bound.push(BoundProgram {
            when,
            steps,
            trigger,
        });
    }
    Ok(bound)
}

impl Binder<'_> {
    /// WHEN, as a query of one value.
    pub(super) fn when(&mut self, when: &ast::Expr) -> Result<Bound> {
        let value = self.expr(when)?;
        let column = QueryColumn {
            output: OutputColumn::named(""),
            props: value.props,
        };
        Ok(Bound::Query(Query {
            body: Body::Values(vec![vec![value]]),
            columns: vec![column],
            order_by: Vec::new(),
            limit: None,
        }))
    }

    pub(super) fn step(&mut self, step: &Statement) -> Result<Bound> {
        self.statement(step)
    }
}
