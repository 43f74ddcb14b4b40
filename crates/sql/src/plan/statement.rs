//! Plans of whole statements.

use std::sync::Arc;

use super::Planner;
use super::foreign::{ForeignKeys, ForeignTable};
use super::kept::keep_large;
use super::layout::Layout;
use super::physical::{
    Action, Delete, IndexWriter, Insert, OutputColumn, Rebuild, SchemaChange, TableWriter, Update,
    Upsert, UpsertTarget, UpsertUpdate,
};
use super::victim_order::{Changes, as_stored, gathered};
use crate::bind::expr::{ColumnRef, Expr, ROWID};
use crate::bind::foreign::touched;
use crate::bind::generated::add_dependent;
use crate::bind::logical::{
    Bound, BoundDelete, BoundForeign, BoundIndex, BoundInsert, BoundReindex, BoundTarget,
    BoundUpdate, BoundUpsertUpdate, Query,
};
use crate::error::{Error, Result};
use crate::schema::{ConflictAction, Index, Table};

/// The row of a table that is written: rowid, then all columns.
pub(super) fn table_row(table: &Table, id: usize) -> Layout {
    let columns = (0..table.columns.len()).map(|column| ColumnRef { source: id, column });
    Layout::of_columns(
        std::iter::once(ColumnRef {
            source: id,
            column: ROWID,
        })
        .chain(columns),
    )
}

/// ON CONFLICT clauses have their constraints checked before all others, in their order;
/// the rowid behind the indexes that come before a clause for it, or before the end; where
/// no clause is for it and it replaces on its own account, behind all.
fn check_first(
    writer: &mut TableWriter,
    wanted: &[Option<UpsertTarget>],
    conflict: Option<ConflictAction>,
) {
    if wanted.is_empty() {
        return;
    }
    let index_of = |target: &Option<UpsertTarget>| match target {
        Some(UpsertTarget::Index(number)) => Some(*number),
        _ => None,
    };
    for number in wanted.iter().rev().filter_map(index_of) {
        if let Some(at) = writer.position(number) {
            writer.indexes[..=at].rotate_right(1);
        }
    }
    let before_rowid = wanted.iter().map_while(index_of);
    let last = before_rowid
        .filter_map(|number| writer.position(number))
        .max();
    let replaces = conflict.is_none() && writer.table.rowid_conflict == ConflictAction::Replace;
    let is_last = replaces && wanted.iter().all(|target| index_of(target).is_some());
    writer.rowid_after = Some(match last {
        _ if is_last => writer.indexes.len(),
        Some(at) => at + 1,
        None => 0,
    });
}

impl Planner<'_, '_> {
    /// The action of a bound statement and its result columns.
    pub fn statement(&mut self, bound: Bound) -> Result<(Action, Vec<OutputColumn>)> {
        Ok(match bound {
            Bound::Query(query) => {
                let node = self.query(&query)?;
                let columns = query.columns.into_iter().map(|c| c.output).collect();
                (Action::Query(node), columns)
            }
            Bound::Insert(insert) => self.insert(*insert)?,
            Bound::Update(update) => self.update(*update)?,
            Bound::Delete(delete) => self.delete(*delete)?,
            Bound::ViewChange(change) => self.view_change(*change)?,
            Bound::CreateTableAs(name, sql, query, affinities) => {
                let source = Some((self.query(&query)?, affinities));
                let change = SchemaChange::CreateTable {
                    autoincrement: false,
                    name,
                    sql,
                    automatic_indexes: Vec::new(),
                    key: None,
                    source,
                };
                (Action::Schema(Box::new(change)), Vec::new())
            }
            Bound::Vacuum(store, into) => {
                let into = into.map(|file| self.query(&file)).transpose()?;
                (Action::Vacuum(store, into.map(Box::new)), Vec::new())
            }
            Bound::DropTable(delete) => {
                let table = Arc::clone(&delete.target.table);
                let (Action::Delete(delete), _) = self.delete(*delete)? else {
                    return Err(Error::misuse("a DELETE has another plan"));
                };
                let change = SchemaChange::DropTable(table, Some(delete));
                (Action::Schema(Box::new(change)), Vec::new())
            }
            Bound::CreateIndex(index) => (self.create_index(*index)?, Vec::new()),
            Bound::Alter(rewrite, forbidding) => {
                let forbidding = forbidding
                    .into_iter()
                    .map(|forbidding| Ok((self.query(&forbidding.rows)?, forbidding.error)))
                    .collect::<Result<_>>()?;
                let change = SchemaChange::Rewrite(rewrite, forbidding);
                (Action::Schema(Box::new(change)), Vec::new())
            }
            Bound::Reindex(tables) => {
                let tables = tables.into_iter().map(|table| self.rebuild(table));
                let change = SchemaChange::Reindex(tables.collect::<Result<_>>()?);
                (Action::Schema(Box::new(change)), Vec::new())
            }
            Bound::Ready(action, columns) => (action, columns),
            Bound::Attachment(texts) => {
                let texts = texts.iter().map(|text| self.resolve_constant(text));
                let texts = texts.collect::<Result<_>>()?;
                (Action::Attachment(texts), Vec::new())
            }
            Bound::Explain(inner) => {
                let (action, _) = self.statement(*inner)?;
                // The explained statement is not run: it reads and writes nothing.
                self.reads.clear();
                self.writes.clear();
                self.guards.clear();
                self.pragmas.clear();
                let node = crate::explain::rows(&action, &self.subqueries);
                let columns = crate::explain::COLUMNS
                    .iter()
                    .map(|name| OutputColumn::named(*name))
                    .collect();
                (Action::Query(node), columns)
            }
        })
    }

    /// `assigned`: the columns an UPDATE changes; None where all may change.
    fn target(&mut self, target: &BoundTarget, assigned: Option<&[usize]>) -> Result<TableWriter> {
        let mut writer = self.writer(target, assigned)?;
        if let Some(foreign) = &target.foreign {
            writer.foreign = Some(Arc::new(self.foreign(foreign)?));
        }
        writer.triggers.clone_from(&target.triggers);
        Ok(writer)
    }

    fn foreign(&mut self, bound: &BoundForeign) -> Result<ForeignKeys> {
        let mut tables = Vec::with_capacity(bound.tables.len());
        for table in &bound.tables {
            let target = table.target.as_ref();
            tables.push(ForeignTable {
                table: Arc::clone(&table.table),
                writer: target.map(|target| self.writer(target, None)).transpose()?,
                generated: match table.generated.as_slice() {
                    [] => Vec::new(),
                    all => self.generated_row(all, &table_row(&table.table, table.id))?,
                },
                keys: table.keys.clone(),
                references: table.references.clone(),
            });
        }
        let mut keys = ForeignKeys {
            tables,
            may_violate: bound.may_violate,
            inserts_one: bound.inserts_one,
        };
        for tree in keys.looked_into() {
            if !self.guards.contains(tree) {
                self.guards.push(tree.clone());
            }
        }
        keys.name(&self.writes);
        Ok(keys)
    }

    fn writer(&mut self, target: &BoundTarget, assigned: Option<&[usize]>) -> Result<TableWriter> {
        let layout = table_row(&target.table, target.id);
        self.writes(&target.table.tree);
        target.table.sequence.iter().for_each(|t| self.writes(t));
        for table in &target.sequences {
            self.reads(&table.tree);
        }
        let mut defaults = Vec::with_capacity(target.defaults.len());
        for default in &target.defaults {
            defaults.push(
                default
                    .as_ref()
                    .map(|d| self.resolve_constant(d))
                    .transpose()?,
            );
        }
        let generated = self.generated_row(&target.generated, &layout)?;
        let mut checks = Vec::with_capacity(target.checks.len());
        for (label, check) in &target.checks {
            checks.push((label.clone(), self.resolve(check, &layout)?));
        }
        let mut indexes = Vec::with_capacity(target.indexes.len());
        for at in target.table.check_order() {
            let (Some(index), Some((key, predicate))) =
                (target.table.indexes.get(at), target.indexes.get(at))
            else {
                continue;
            };
            self.writes(&index.tree);
            let changes = |expr: &Expr| {
                let mut reads = assigned.is_none();
                self.for_each_column(expr, &mut |column| {
                    reads |= assigned.is_some_and(|a| a.contains(&column.column));
                });
                reads
            };
            let moved = assigned.is_none_or(|a| a.contains(&ROWID));
            let affected = moved || key.iter().chain(predicate).any(changes);
            indexes.push(IndexWriter {
                index: index.clone(),
                key: self.resolve_all(key, &layout)?,
                predicate: predicate
                    .as_ref()
                    .map(|p| self.resolve(p, &layout))
                    .transpose()?,
                affected,
            });
        }
        let columns = &target.table.columns;
        Ok(TableWriter {
            table: target.table.clone(),
            defaults,
            constrained: !checks.is_empty()
                || target.table.strict
                || columns.iter().any(|c| c.not_null.is_some()),
            generated,
            checks,
            indexes,
            rowid_after: None,
            sequences: target.sequences.clone(),
            foreign: None,
            triggers: None,
        })
    }

    fn returning(
        &mut self,
        target: &BoundTarget,
        exprs: Option<&[Expr]>,
        rows: f64,
    ) -> Result<Option<Vec<Expr>>> {
        let layout = table_row(&target.table, target.id);
        let all = |list: &[Expr]| self.called_for(rows, |this| this.resolve_all(list, &layout));
        exprs.map(all).transpose()
    }

    fn insert(&mut self, insert: BoundInsert) -> Result<(Action, Vec<OutputColumn>)> {
        let BoundInsert {
            target,
            source,
            rowid,
            values,
            conflict,
            upserts,
            returning,
            columns,
        } = insert;
        let source = self.query(&source)?;
        let mut writer = self.target(&target, None)?;
        let wanted: Vec<_> = upserts.iter().map(|upsert| upsert.target).collect();
        check_first(&mut writer, &wanted, conflict);
        // The source's columns are inputs already; defaults hold no columns.
        let rowid = rowid.map(|e| self.resolve_constant(&e)).transpose()?;
        let values = values
            .iter()
            .map(|e| self.resolve_constant(e))
            .collect::<Result<Vec<_>>>()?;
        let mut clauses = Vec::with_capacity(upserts.len());
        for upsert in upserts {
            let update = match upsert.update {
                None => None,
                Some(BoundUpsertUpdate {
                    excluded,
                    assignments,
                    predicate,
                    fires,
                }) => {
                    let layout = table_row(&target.table, target.id)
                        .join(&table_row(&target.table, excluded));
                    let (resolved, predicate) = self.called_for(source.rows, |this| {
                        let assigned = assignments.iter();
                        let assigned = assigned
                            .map(|(column, expr)| Ok((*column, this.resolve(expr, &layout)?)));
                        let assigned = assigned.collect::<Result<_>>()?;
                        let predicate = predicate.map(|p| this.resolve(&p, &layout));
                        Ok::<_, Error>((assigned, predicate.transpose()?))
                    })?;
                    Some(UpsertUpdate {
                        touched: match target.foreign {
                            Some(_) => {
                                let assigned = assignments.iter().map(|(c, _)| *c);
                                touched(&target.table, &target.generated, assigned)
                            }
                            None => Vec::new(),
                        },
                        assignments: resolved,
                        predicate,
                        fires,
                    })
                }
            };
            clauses.push(Upsert {
                target: upsert.target.map(|t| match t {
                    UpsertTarget::Index(at) => {
                        UpsertTarget::Index(writer.position(at).unwrap_or(at))
                    }
                    UpsertTarget::Rowid => t,
                }),
                update,
            });
        }
        let returning = self.returning(&target, returning.as_deref(), source.rows)?;
        // Where a row may be in the way of more than its rowid's, or the numbers given
        // are written down, each is asked for by itself.
        let by_batch = returning.is_none()
            && clauses.is_empty()
            && writer.indexes.is_empty()
            && writer.checks.is_empty()
            && writer.generated.is_empty()
            && writer.table.sequence.is_none()
            && writer.triggers.is_none()
            && writer.foreign.as_ref().is_none_or(|keys| !keys.may_violate)
            && values.iter().chain(&rowid).all(Expr::is_same_in_any_order);
        let action = Insert {
            target: writer,
            source,
            rowid,
            values,
            conflict,
            upserts: clauses,
            returning,
            by_batch,
        };
        Ok((Action::Insert(Box::new(action)), columns))
    }

    fn update(&mut self, update: BoundUpdate) -> Result<(Action, Vec<OutputColumn>)> {
        let BoundUpdate {
            target,
            source,
            row,
            assigned,
            late,
            conflict,
            returning,
            columns,
        } = update;
        let first = 1 + target.table.columns.len();
        let props = |q: &Query, at: usize| q.columns.get(at).map(|c| c.props);
        let mut assignments = Vec::with_capacity(assigned.len());
        let mut rowid = None;
        let early = if late.is_empty() { assigned.len() } else { 0 };
        for (i, column) in assigned.iter().enumerate().take(early) {
            let props = props(&source, first + i).unwrap_or(crate::bind::expr::Props::CONSTANT);
            let value = Expr::input(first + i, props);
            if *column == ROWID {
                rowid = Some(value);
            } else {
                assignments.push((*column, value));
            }
        }
        let node = self.query(&source)?;
        for (column, value) in late {
            let value = self.resolve(&value, &table_row(&target.table, row))?;
            match column {
                ROWID => rowid = Some(value),
                column => assignments.push((column, value)),
            }
        }
        let mut changed = assigned.clone();
        add_dependent(&target.table, &target.generated, &mut changed);
        let writer = self.target(&target, Some(&changed))?;
        let changes = Changes {
            query: &source,
            writer: &writer,
            rowid: rowid.is_some(),
            conflict,
            returning: returning.is_some(),
        };
        let mut node = changes.ordered(node);
        let joins = changes.joins();
        let by_batch = returning.is_none()
            && !joins
            && rowid.is_none()
            && writer.checks.is_empty()
            && writer.generated.is_empty()
            && writer.foreign.is_none()
            && writer.triggers.is_none()
            && !writer.indexes.iter().any(|index| index.affected);
        if by_batch {
            node = changes.gathered(node);
        }
        let returning = self.returning(&target, returning.as_deref(), node.rows)?;
        let mut action = Update {
            target: writer,
            source: node,
            touched: match target.foreign {
                Some(_) => touched(&target.table, &target.generated, assigned.iter().copied()),
                None => Vec::new(),
            },
            assignments,
            rowid,
            conflict,
            returning,
            joins,
            by_batch,
            is_large: None,
        };
        action.is_large = keep_large(&mut action);
        Ok((Action::Update(Box::new(action)), columns))
    }

    fn delete(&mut self, delete: BoundDelete) -> Result<(Action, Vec<OutputColumn>)> {
        let BoundDelete {
            target,
            source,
            whole_table,
            returning,
            columns,
        } = delete;
        let rows = self.query(&source)?;
        let writer = self.target(&target, None)?;
        let shows = returning.is_some() || writer.foreign.is_some() || writer.triggers.is_some();
        let source = match shows {
            true => as_stored(rows, &writer.table),
            false => gathered(&source, rows),
        };
        let returning = self.returning(&target, returning.as_deref(), source.rows)?;
        let by_batch = returning.is_none()
            && writer.indexes.is_empty()
            && writer.triggers.is_none()
            && writer.foreign.as_ref().is_none_or(|keys| !keys.may_violate);
        let action = Delete {
            target: writer,
            source,
            whole_table,
            returning,
            by_batch,
        };
        Ok((Action::Delete(Box::new(action)), columns))
    }

    fn rebuild(&mut self, bound: BoundReindex) -> Result<Rebuild> {
        let mut indexes = Vec::with_capacity(bound.indexes.len());
        for (index, rows) in bound.indexes {
            self.writes(&index.tree);
            indexes.push((self.query(&rows)?, filled_by(index, &rows)));
        }
        Ok(Rebuild {
            schema: bound.schema,
            table: bound.table,
            indexes,
        })
    }

    fn create_index(&mut self, bound: BoundIndex) -> Result<Action> {
        let BoundIndex {
            name,
            sql,
            table,
            index,
            source,
        } = bound;
        let writer = filled_by(index, &source);
        let source = self.query(&source)?;
        let change = SchemaChange::CreateIndex {
            name,
            sql,
            table,
            source,
            writer,
        };
        Ok(Action::Schema(Box::new(change)))
    }
}

/// The writer of an index to be filled by a query of rowids and the parts of its key.
fn filled_by(index: Arc<Index>, rows: &Query) -> IndexWriter {
    let parts = rows.columns.iter().enumerate().skip(1);
    IndexWriter {
        index,
        key: parts
            .map(|(at, part)| Expr::input(at, part.props))
            .collect(),
        predicate: None,
        affected: true,
    }
}
