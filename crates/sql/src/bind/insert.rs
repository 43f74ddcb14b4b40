//! Binding of INSERT.

use std::sync::Arc;

use super::Binder;
use super::expr::{Expr, Props, ROWID};
use super::foreign::Event;
use super::logical::{Body, Bound, BoundInsert, BoundTarget, BoundUpsert, BoundViewChange, Query};
use super::trigger::Fired;
use super::view_change::inserted_view_row;
use crate::ast;
use crate::ast::InsertSource;
use crate::error::{Error, Result};
use crate::plan::physical::UpsertTarget;
use crate::schema::{ConflictAction, Table};

const REPLACE: ConflictAction = ConflictAction::Replace;

impl Binder<'_> {
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<Bound> {
        let conflict = self.policy.or(insert.conflict);
        let (table, instead) = self.writable(&insert.table, Fired::Insert, conflict)?;
        if instead.is_some() && !insert.upserts.is_empty() {
            return Err(Error::sql("cannot UPSERT a view").with_offset(insert.table.name.offset));
        }
        let mut target = self.target(&table)?;
        let (source, positions) = self.rows_to_insert(insert, &table)?;
        let (rowid, values) = row_of_source(&target, &source, &positions);
        let alias = insert.alias.as_ref();
        let name = alias.map_or(table.name.as_str(), |alias| alias.text.as_str());
        let upserts = self.upserts(&insert.upserts, &table, name, target.id)?;
        let (returning, columns) = self.returning(&insert.returning, &table, target.id)?;
        if let Some(fires) = instead {
            return Ok(Bound::ViewChange(Box::new(BoundViewChange {
                id: target.id,
                source,
                rows: inserted_view_row(rowid, values),
                is_delete: false,
                fires,
                returning,
                columns,
                table,
            })));
        }
        let replaces = insert_replaces(&table, rowid.is_some(), conflict, &upserts);
        target.triggers = self.firing(&table, Fired::Insert, conflict, replaces)?;
        let mut bound = BoundInsert {
            target,
            source,
            rowid,
            values,
            conflict,
            upserts,
            returning,
            columns,
        };
        if self.settings.foreign_keys {
            let events = self.events_of(&bound, replaces);
            bound.target.foreign = self.foreign(&table, events)?;
        }
        Ok(Bound::Insert(Box::new(bound)))
    }

    /// The rows to be inserted, and the column that each of their values is for.
    fn rows_to_insert(
        &mut self,
        insert: &ast::Insert,
        table: &Table,
    ) -> Result<(Query, Vec<usize>)> {
        let mut listed = None;
        if let Some(names) = &insert.columns {
            let columns = names
                .iter()
                .map(|name| self.assigned_column(table, name, "INSERT into"));
            listed = Some(columns.collect::<Result<Vec<usize>>>()?);
        }
        let source = match &insert.source {
            InsertSource::Select(select) => self.inserted_rows(select)?,
            InsertSource::Defaults => Query {
                body: Body::Values(vec![Vec::new()]),
                columns: Vec::new(),
                order_by: Vec::new(),
                limit: None,
            },
        };
        let supplied = source.columns.len();
        let (positions, message) = match listed {
            Some(listed) => {
                let message = format!("{supplied} values for {} columns", listed.len());
                (listed, message)
            }
            None if matches!(insert.source, InsertSource::Defaults) => {
                return Ok((source, Vec::new()));
            }
            None => {
                let columns = table.columns.iter().enumerate();
                let columns = columns.filter(|(_, column)| column.generated.is_none());
                let place = |(at, _)| match table.rowid_alias == Some(at) {
                    true => ROWID,
                    false => at,
                };
                let all: Vec<usize> = columns.map(place).collect();
                let message = format!(
                    "table {} has {} columns but {supplied} values were supplied",
                    table.name,
                    all.len()
                );
                (all, message)
            }
        };
        match supplied == positions.len() {
            true => Ok((source, positions)),
            false => Err(Error::sql(message).with_offset(insert.table.name.offset)),
        }
    }

    /// What an INSERT does, to foreign keys.
    fn events_of(&self, insert: &BoundInsert, replaces: bool) -> Vec<Event> {
        let target = &insert.target;
        let table: &Arc<Table> = &target.table;
        // A trigger may bring what another row lacks.
        let one = matches!(&insert.source.body, Body::Values(rows) if rows.len() == 1);
        let many = !one || self.trigger.is_some() || target.triggers.is_some();
        let mut events = vec![Event::Insert { many }];
        if replaces {
            events.push(Event::Delete);
        }
        let changes = |upsert: &BoundUpsert| {
            let update = upsert.update.as_ref()?;
            let assigned = update.assignments.iter().map(|(column, _)| *column);
            Some(Event::update(table, &target.generated, assigned))
        };
        events.extend(insert.upserts.iter().filter_map(changes));
        events
    }
}

/// Whether new rows, whose rowids are given or not, may take the places of others: where a
/// uniqueness says so that no ON CONFLICT clause takes care of.
fn insert_replaces(
    table: &Table,
    has_rowid: bool,
    conflict: Option<ConflictAction>,
    upserts: &[BoundUpsert],
) -> bool {
    let replaces = |own: ConflictAction, target: UpsertTarget| {
        let mut clauses = upserts.iter().map(|clause| clause.target);
        conflict.unwrap_or(own) == REPLACE && !clauses.any(|of| of.is_none_or(|of| of == target))
    };
    let mut indexes = table.indexes.iter().enumerate();
    has_rowid && replaces(table.rowid_conflict, UpsertTarget::Rowid)
        || indexes
            .any(|(at, index)| index.unique && replaces(index.conflict, UpsertTarget::Index(at)))
}

/// The rowid and all columns of a new row, over the source's row; the rowid where it is
/// given. Of a column named twice the first value counts, of the rowid the last.
fn row_of_source(
    target: &BoundTarget,
    source: &Query,
    positions: &[usize],
) -> (Option<Expr>, Vec<Expr>) {
    let table = &target.table;
    let from_source = |wanted: usize| {
        let at = match wanted {
            ROWID => positions.iter().rposition(|p| *p == ROWID)?,
            _ => positions.iter().position(|p| *p == wanted)?,
        };
        let props = source.columns.get(at).map_or(Props::CONSTANT, |c| c.props);
        let constant = false;
        Some(Expr::input(at, Props { constant, ..props }))
    };
    let values = (0..table.columns.len()).map(|at| {
        if table.rowid_alias == Some(at) {
            return Expr::null();
        }
        let default = || target.defaults.get(at).cloned().flatten();
        from_source(at).or_else(default).unwrap_or_else(Expr::null)
    });
    (from_source(ROWID), values.collect())
}
