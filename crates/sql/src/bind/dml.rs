//! Binding of UPDATE and DELETE, and what INSERT shares with them.

use std::sync::Arc;

use super::Binder;
use super::call::is_unknown;
use super::expr::{ColumnRef, Expr, ExprKind, Props, ROWID};
use super::foreign::Event;
use super::generated::add_dependent;
use super::logical::{
    Block, Body, Bound, BoundDelete, BoundForeign, BoundTarget, BoundUpdate, Query, QueryColumn,
    Source, SourceKind,
};
use super::rows::{Rows, fetch_rows};
use super::scalar::push_conjuncts;
use super::scope::{ScopeColumns, ScopeTable, is_rowid_name};
use super::trigger::{Fired, late_values};
use crate::ast;
use crate::ast::{Name, ResultColumn};
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::parse::MAX_COLUMNS;
use crate::plan::physical::OutputColumn;
use crate::schema::{
    Column, ConflictAction, IndexColumn, IndexTarget, SEQUENCE, Table, malformed, nearest,
};
use crate::value::{Affinity, Value};

const REPLACE: ConflictAction = ConflictAction::Replace;

impl Binder<'_> {
    /// The column that a statement gives a value, `verb` being INSERT or UPDATE.
    pub(super) fn assigned_column(&self, table: &Table, name: &Name, verb: &str) -> Result<usize> {
        let at = self.column_position(table, name)?;
        match table.columns.get(at) {
            Some(column) if column.generated.is_some() => {
                let message = format!("cannot {verb} generated column \"{}\"", column.name);
                Err(Error::sql(message).with_offset(name.offset))
            }
            _ => Ok(at),
        }
    }

    fn column_position(&self, table: &Table, name: &Name) -> Result<usize> {
        if let Some(at) = table
            .columns
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case(&name.text))
        {
            return Ok(if table.rowid_alias == Some(at) {
                ROWID
            } else {
                at
            });
        }
        if is_rowid_name(&name.text) && !table.without_rowid {
            return Ok(ROWID);
        }
        let near = nearest(&name.text, table.columns.iter().map(|c| c.name.as_str()));
        let error = Error::sql(format!(
            "table {} has no column named {}",
            table.name, name.text
        ));
        let error = error.with_offset(name.offset);
        Err(match near {
            Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
            None => error,
        })
    }

    /// A frame in which only the table's row is known, as source `id`.
    pub(super) fn row_frame<T>(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        id: usize,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.note_collations(table);
        let columns = ScopeColumns::Table(table.clone());
        let scope = ScopeTable {
            name: name.to_owned(),
            source: id,
            columns,
            merged: Vec::new(),
            database: Some(table.tree.store_number()),
        };
        let (result, _) = self.in_frame(|this| {
            this.frame().tables.push(scope);
            f(this)
        })?;
        Ok(result)
    }

    /// Binds the constraints and indexes of a table.
    pub(super) fn target(&mut self, table: &Arc<Table>) -> Result<BoundTarget> {
        let before = self.subqueries.len();
        let target = self.in_texts_of(table, |this| this.new_target(table))?;
        // None of these texts would have been taken. Who looks at rows alone cannot run one.
        match self.subqueries.len() == before {
            true => Ok(target),
            false => Err(malformed(
                &table.name,
                "subqueries prohibited in its constraints, columns and indexes",
            )),
        }
    }

    /// The same of a table that is not in the schema yet: what its text calls must be there.
    pub(super) fn new_target(&mut self, table: &Arc<Table>) -> Result<BoundTarget> {
        let id = self.new_source()?;
        let defaults = table
            .columns
            .iter()
            .map(|column| self.default_of(column))
            .collect::<Result<_>>()?;
        let generated = self.generated(table, id)?;
        let (checks, indexes) = self.row_frame(table, &table.name, id, |this| {
            this.frame().definition = Some(Definition::Check);
            let mut checks = Vec::with_capacity(table.checks.len());
            for check in &table.checks {
                checks.push((check.label.clone(), this.expr(&check.expr)?));
            }
            this.frame().definition = Some(Definition::Index);
            let mut indexes = Vec::with_capacity(table.indexes.len());
            for index in &table.indexes {
                let key = this.index_key(&index.columns, table, id)?;
                let predicate = index.predicate.as_ref().map(|p| this.expr(p)).transpose()?;
                indexes.push((key, predicate));
            }
            Ok((checks, indexes))
        })?;
        let sequences = if table.name == SEQUENCE {
            self.catalog.of(&table.tree).autoincrement_tables()?
        } else {
            Vec::new()
        };
        Ok(BoundTarget {
            table: table.clone(),
            id,
            defaults,
            generated,
            checks,
            indexes,
            sequences,
            foreign: None,
            triggers: None,
        })
    }

    /// The default of a column. What it calls need not be there before it is used.
    fn default_of(&mut self, column: &Column) -> Result<Option<Expr>> {
        let default = column.default.as_ref();
        match default.map(|default| self.expr(default)).transpose() {
            Err(error) if self.texts_of.is_none() && is_unknown(&error) => Ok(None),
            bound => bound,
        }
    }

    pub(super) fn index_key(
        &mut self,
        columns: &[crate::schema::IndexColumn],
        table: &Table,
        id: usize,
    ) -> Result<Vec<Expr>> {
        columns
            .iter()
            .map(|column| match &column.target {
                IndexTarget::Column(at) => Ok(column_expr(table, id, *at)),
                IndexTarget::Rowid => Ok(column_expr(table, id, ROWID)),
                IndexTarget::Expr(expr) => self.expr(expr),
            })
            .collect()
    }

    /// RETURNING calls the table by its own name, whatever the statement calls it.
    pub(super) fn returning(
        &mut self,
        columns: &[ResultColumn],
        table: &Arc<Table>,
        id: usize,
    ) -> Result<(Option<Vec<Expr>>, Vec<OutputColumn>)> {
        if columns.is_empty() {
            return Ok((None, Vec::new()));
        }
        self.row_frame(table, &table.name, id, |this| {
            this.frame().has_values = true;
            let mut exprs = Vec::new();
            let mut outputs = Vec::new();
            for column in columns {
                match column {
                    ResultColumn::Star => {
                        for scope in &this.frame().tables {
                            for i in 0..scope.width() {
                                let (expr, output) = scope.column(i).into_result();
                                outputs.push(output);
                                exprs.push(expr);
                            }
                        }
                    }
                    ResultColumn::TableStar(_) => {
                        return Err(Error::sql("RETURNING may not use \"TABLE.*\" wildcards"));
                    }
                    ResultColumn::Expr { expr, alias, text } => {
                        let (bound, output) = this.result_column(expr, alias.as_ref(), text)?;
                        exprs.push(bound);
                        outputs.push(output);
                    }
                }
            }
            Ok((Some(exprs), outputs))
        })
    }

    /// SET: of a column assigned twice the last counts.
    pub(super) fn assignments(
        &mut self,
        sets: &[(Vec<Name>, ast::Expr)],
        table: &Table,
    ) -> Result<Vec<(usize, Expr)>> {
        let mut out: Vec<(usize, Expr)> = Vec::new();
        let mut rows = Rows::default();
        let mut assign = |column: usize, expr: Expr| {
            out.retain(|(c, _)| *c != column);
            out.push((column, expr));
        };
        for (names, expr) in sets {
            // The values first: their errors come first in SQLite.
            let values = match names.len() {
                1 => vec![self.expr(expr)?],
                several => self.assigned_row(several, expr, &mut rows)?,
            };
            for (name, value) in names.iter().zip(values) {
                if let Some(uses) = &mut self.uses {
                    // One that is not there, or not to be written, is of no importance to SQLite.
                    if let Some(at) = table.column_named(&name.text) {
                        uses.key_column(table, at, name.offset);
                    }
                    continue;
                }
                let column = self.assigned_column(table, name, "UPDATE");
                let column = column.map_err(|error| match table.column_named(&name.text) {
                    Some(_) => error,
                    None => Error::sql(format!("no such column: {}", name.text))
                        .with_offset(name.offset),
                })?;
                assign(column, value);
            }
        }
        fetch_rows(&mut out, rows);
        Ok(out)
    }

    /// The rows that UPDATE or DELETE works on: rowid, all columns, `more`; of rowid and
    /// columns so many as are `wanted`.
    pub(super) fn victims(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        (indexed, from, filter): (&ast::Indexed, &[ast::FromItem], Option<&ast::Expr>),
        wanted: usize,
        more: impl FnOnce(&mut Self) -> Result<Vec<(usize, Expr)>>,
    ) -> Result<(Query, Vec<usize>, usize)> {
        self.note_collations(table);
        let id = self.new_source()?;
        let ((block, assigned), _) = self.in_frame(|this| {
            let columns = ScopeColumns::Table(table.clone());
            this.frame().tables.push(ScopeTable {
                name: name.to_owned(),
                source: id,
                columns,
                merged: Vec::new(),
                database: Some(table.tree.store_number()),
            });
            let mut block = Block::default();
            let source = this.indexed_source(table, name.to_owned(), id, indexed)?;
            block.sources.push(source);
            this.more_from(from, &mut block)?;
            block.outputs = whole_row(table, id);
            block.outputs.truncate(wanted);
            let mut assigned = Vec::new();
            for (column, expr) in more(this)? {
                assigned.push(column);
                block.outputs.push(expr);
            }
            if let Some(filter) = filter {
                push_conjuncts(this.expr(filter)?, &mut block.filter);
            }
            this.join_conditions(&mut block)?;
            Ok((block, assigned))
        })?;
        Ok((plain_query(block), assigned, id))
    }

    pub(super) fn more_from(&mut self, from: &[ast::FromItem], block: &mut Block) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        // The table that is changed is not among those whose rows become NULL.
        if super::from::any_right(from) {
            self.frame().hidden = true;
            let joined = self.joined_source(from, None, block);
            self.frame().hidden = false;
            return joined;
        }
        self.from(from, block)
    }

    pub(super) fn update(&mut self, update: &ast::Update) -> Result<Bound> {
        let conflict = self.policy.or(update.conflict);
        let names = update.sets.iter().flat_map(|(names, _)| names);
        let names: Vec<&str> = names.map(|name| name.text.as_str()).collect();
        if names.len() > MAX_COLUMNS {
            return Err(Error::sql("too many columns in set list"));
        }
        let event = Fired::Update(&names);
        let (table, instead) = self.writable(&update.table, event, conflict)?;
        if let Some(fires) = instead {
            return self.update_view(update, table, fires);
        }
        let mut target = self.target(&table)?;
        let name = update
            .alias
            .as_ref()
            .map_or(table.name.as_str(), |a| a.text.as_str());
        let (mut source, assigned, row) = self.victims(
            &table,
            name,
            (&update.indexed, &update.from, update.filter.as_ref()),
            usize::MAX,
            |this| this.assignments(&update.sets, &table),
        )?;
        self.check_apart(&table, update.alias.as_ref(), &update.from)?;
        let (returning, columns) = self.returning(&update.returning, &table, target.id)?;
        let replaces = update_replaces(&target, &assigned, conflict);
        target.triggers = self.firing(&table, event, conflict, replaces)?;
        // A trigger may change a row before its turn comes, and what is assigned with it.
        let late = match target.triggers.is_some() && update.from.is_empty() {
            true => late_values(&mut source, &assigned),
            false => Vec::new(),
        };
        if self.settings.foreign_keys {
            let assigns = assigned.iter().copied();
            let mut events = vec![Event::update(&table, &target.generated, assigns)];
            if replaces {
                events.push(Event::Delete);
            }
            target.foreign = self.foreign(&table, events)?;
        }
        let bound = BoundUpdate {
            target,
            source,
            row,
            assigned,
            late,
            conflict,
            returning,
            columns,
        };
        Ok(Bound::Update(Box::new(bound)))
    }

    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<Bound> {
        let (table, instead) = self.writable(&delete.table, Fired::Delete, None)?;
        if let Some(fires) = instead {
            return self.delete_from_view(delete, table, fires);
        }
        let mut target = self.target(&table)?;
        target.triggers = self.firing(&table, Fired::Delete, None, false)?;
        if self.settings.foreign_keys {
            target.foreign = self.foreign(&table, vec![Event::Delete])?;
        }
        let name = delete
            .alias
            .as_ref()
            .map_or(table.name.as_str(), |a| a.text.as_str());
        // Index entries and RETURNING are made of the whole row, and foreign keys and triggers
        // look at it.
        let looks = target.foreign.is_some() || target.triggers.is_some();
        let needs_row = looks || !target.indexes.is_empty();
        let wanted = match needs_row || !delete.returning.is_empty() {
            true => usize::MAX,
            false => 1,
        };
        let (source, ..) = self.victims(
            &table,
            name,
            (&delete.indexed, &[], delete.filter.as_ref()),
            wanted,
            |_| Ok(Vec::new()),
        )?;
        let (returning, columns) = self.returning(&delete.returning, &table, target.id)?;
        let whole_table = delete.filter.is_none() && returning.is_none() && !looks;
        Ok(Bound::Delete(Box::new(BoundDelete {
            target,
            source,
            whole_table,
            returning,
            columns,
        })))
    }
}

impl Binder<'_> {
    /// The deletion of all rows of a table that is dropped, for what foreign keys ask.
    pub(super) fn delete_dropped(
        &mut self,
        table: &Arc<Table>,
        foreign: Box<BoundForeign>,
    ) -> Result<BoundDelete> {
        let mut target = self.target(table)?;
        target.foreign = Some(foreign);
        let all = (&ast::Indexed::default(), &[][..], None);
        let (source, ..) = self.victims(table, &table.name, all, usize::MAX, |_| Ok(Vec::new()))?;
        Ok(BoundDelete {
            target,
            source,
            whole_table: false,
            returning: None,
            columns: Vec::new(),
        })
    }
}

/// Whether rows that are given values for these columns may take the places of others.
fn update_replaces(
    target: &BoundTarget,
    assigned: &[usize],
    conflict: Option<ConflictAction>,
) -> bool {
    let table = &target.table;
    if !table.may_replace(conflict) {
        return false;
    }
    let replaces = |own: ConflictAction| conflict.unwrap_or(own) == REPLACE;
    let moves = assigned.contains(&ROWID);
    let mut changed = assigned.to_vec();
    add_dependent(table, &target.generated, &mut changed);
    let is_affected = |part: &IndexColumn| match part.target {
        IndexTarget::Column(at) => changed.contains(&at),
        IndexTarget::Rowid => moves,
        IndexTarget::Expr(_) => true,
    };
    let mut indexes = table.indexes.iter().filter(|index| {
        let mut columns = index.columns.iter();
        index.unique && (moves || index.predicate.is_some() || columns.any(is_affected))
    });
    moves && replaces(table.rowid_conflict) || indexes.any(|index| replaces(index.conflict))
}

/// A table as a block's source.
pub(super) fn table_source(table: &Arc<Table>, name: String, id: usize) -> Source {
    let kind = SourceKind::Table(table.clone());
    Source::new(id, name, kind)
}

/// Rowid and all columns of a source.
pub(super) fn whole_row(table: &Table, id: usize) -> Vec<Expr> {
    let columns = (0..table.columns.len()).map(|i| column_expr(table, id, i));
    std::iter::once(column_expr(table, id, ROWID))
        .chain(columns)
        .collect()
}

/// A block without order or names.
pub(super) fn plain_query(block: Block) -> Query {
    let column = |e: &Expr| QueryColumn {
        output: OutputColumn::named(""),
        props: e.props,
    };
    let columns = block.outputs.iter().map(column).collect();
    Query {
        body: Body::Block(Box::new(block)),
        columns,
        order_by: Vec::new(),
        limit: None,
    }
}

fn column_expr(table: &Table, id: usize, at: usize) -> Expr {
    let at = if table.rowid_alias == Some(at) {
        ROWID
    } else {
        at
    };
    let props = match table.columns.get(at) {
        Some(column) => Props::column(Some(column.affinity), Some(column.collation)),
        None => Props::column(Some(Affinity::Integer), None),
    };
    Expr {
        kind: ExprKind::Column(ColumnRef {
            source: id,
            column: at,
        }),
        props,
    }
}

/// The literal of a value, for rows made at prepare.
pub(super) fn text(value: impl Into<String>) -> Expr {
    Expr::literal(Value::Text(value.into().into_bytes()))
}
