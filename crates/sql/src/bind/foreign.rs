//! Which foreign keys concern a statement, and how their rows are found.
//!
//! It begins with what the statement does to its table: new rows, rows that go, rows whose
//! columns change. Actions do the like to other tables, and so on, until nothing new comes.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::Binder;
use super::expr::ROWID;
use super::generated::add_dependent;
use super::logical::{BoundForeign, BoundForeignTable, Generated};
use crate::ast::ForeignAction;
use crate::error::{Error, Result};
use crate::plan::foreign::{
    ChildAccess, ChildKey, ChildSearch, ParentKey, Reference, ReferencePart,
};
use crate::plan::trigger::Timed;
use crate::schema::{ForeignKey, IndexOrigin, IndexTarget, Schema, Table};
use crate::value::{Affinity, Collation};

/// What happens to rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// They are new. `many`: there may be several, so that one may be another's parent.
    Insert {
        /// See there.
        many: bool,
    },
    /// They go.
    Delete,
    /// These columns change.
    Update(Vec<usize>),
}

impl Event {
    /// An UPDATE's, with the columns that it assigns and those generated of them.
    pub(super) fn update(
        table: &Table,
        generated: &[Generated],
        assigned: impl Iterator<Item = usize>,
    ) -> Self {
        Event::Update(touched(table, generated, assigned))
    }

    fn touches(&self, columns: &[usize]) -> bool {
        match self {
            Event::Insert { .. } | Event::Delete => true,
            Event::Update(changed) => columns.iter().any(|c| changed.contains(c)),
        }
    }
}

/// What is found so far.
struct Graph {
    tables: Vec<BoundForeignTable>,
    /// What happens where, and whether that has been looked at.
    events: Vec<(usize, Event)>,
    /// DROP TABLE: keys that make no sense are passed over.
    is_lenient: bool,
}

impl Graph {
    fn number_of(&mut self, table: &Arc<Table>) -> usize {
        let same = |other: &BoundForeignTable| other.table.tree == table.tree;
        self.tables.iter().position(same).unwrap_or_else(|| {
            self.tables.push(BoundForeignTable::new(table));
            self.tables.len() - 1
        })
    }

    fn happens(&mut self, table: usize, event: Event) {
        if !self.events.contains(&(table, event.clone())) {
            self.events.push((table, event));
        }
    }
}

impl Binder<'_> {
    /// What the foreign keys ask where this happens to a table; None where none is
    /// concerned.
    pub(super) fn foreign(
        &mut self,
        table: &Arc<Table>,
        events: Vec<Event>,
    ) -> Result<Option<Box<BoundForeign>>> {
        self.foreign_keys_of(table, events, false)
    }

    /// The same for the rows of a table that is dropped; also None where foreign keys are
    /// not enforced.
    pub(super) fn foreign_of_dropped(
        &mut self,
        table: &Arc<Table>,
    ) -> Result<Option<Box<BoundForeign>>> {
        match self.settings.foreign_keys {
            true => self.foreign_keys_of(table, vec![Event::Delete], true),
            false => Ok(None),
        }
    }

    fn foreign_keys_of(
        &mut self,
        table: &Arc<Table>,
        events: Vec<Event>,
        is_lenient: bool,
    ) -> Result<Option<Box<BoundForeign>>> {
        let schema = self.catalog.of(&table.tree);
        let references = schema.references_to(&table.name)?;
        let is_concerned = |event: &Event| {
            let mut own = table.foreign_keys.iter();
            let mut others = references
                .iter()
                .filter_map(|(t, at)| t.foreign_keys.get(*at));
            own.any(|key| event.touches(&key.columns))
                || others.any(|key| event.touches(&referred_columns(key, table)))
        };
        let events: Vec<Event> = events.into_iter().filter(is_concerned).collect();
        let inserts_one = events == [Event::Insert { many: false }];
        let mut graph = Graph {
            tables: vec![BoundForeignTable::new(table)],
            events: events.into_iter().map(|event| (0, event)).collect(),
            is_lenient,
        };
        let mut at = 0;
        while let Some((number, event)) = graph.events.get(at).cloned() {
            self.keys(&mut graph, number, &event)?;
            self.references(&mut graph, number, &event)?;
            at += 1;
        }
        let trees: Vec<Tree> = graph.tables.iter().map(|t| t.table.tree.clone()).collect();
        for table in &mut graph.tables {
            let order = schema.references_to(&table.table.name)?;
            table.references.sort_by_key(|reference| {
                order.iter().position(|(child, number)| {
                    trees.get(reference.child) == Some(&child.tree) && *number == reference.number
                })
            });
        }
        let first = &graph.tables[0];
        let is_concerned = !first.keys.is_empty() || !first.references.is_empty();
        let may_violate = first.keys.iter().any(|key| key.checked)
            || first.references.iter().any(|it| it.checked);
        Ok(is_concerned.then(|| {
            Box::new(BoundForeign {
                tables: graph.tables,
                may_violate,
                inserts_one,
            })
        }))
    }

    /// The foreign keys of a table that an event concerns.
    fn keys(&mut self, graph: &mut Graph, at: usize, event: &Event) -> Result<()> {
        let child = Arc::clone(&graph.tables[at].table);
        let schema = self.catalog.of(&child.tree);
        for (number, key) in child.foreign_keys.iter().enumerate().rev() {
            let of_itself = key.parent.eq_ignore_ascii_case(&child.name);
            if !of_itself && !event.touches(&key.columns) {
                continue;
            }
            let checked = *event != Event::Delete;
            let mut known = graph.tables[at].keys.iter_mut();
            if let Some(known) = known.find(|known| known.number == number) {
                known.checked |= checked;
                continue;
            }
            match child_key(schema, &child, number, key) {
                Ok(found) if found.parent.is_some() || graph.is_lenient => {
                    graph.tables[at].keys.push(ChildKey { checked, ..found });
                }
                Ok(_) => {
                    let database = self.catalog.name_of(schema);
                    let message = format!("no such table: {database}.{}", key.parent);
                    return Err(Error::sql(message));
                }
                Err(_) if graph.is_lenient => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The foreign keys that refer to a table and that an event concerns.
    fn references(&mut self, graph: &mut Graph, at: usize, event: &Event) -> Result<()> {
        let parent = Arc::clone(&graph.tables[at].table);
        let schema = self.catalog.of(&parent.tree);
        for (child, number) in schema.references_to(&parent.name)? {
            let Some(key) = child.foreign_keys.get(*number) else {
                continue;
            };
            if !event.touches(&referred_columns(key, &parent)) {
                continue;
            }
            let found = match (parent_key(child, key, &parent), event) {
                (Ok(found), _) => found,
                // A single new parent mends nothing that is checked at once.
                (Err(_), Event::Insert { many: false }) if !key.deferred => continue,
                (Err(_), _) if graph.is_lenient => continue,
                (Err(error), _) => return Err(error),
            };
            let to = graph.number_of(child);
            if child.has_generated && graph.tables[to].generated.is_empty() {
                let id = self.new_source()?;
                graph.tables[to].generated = self.generated(child, id)?;
                graph.tables[to].id = id;
            }
            let generated = graph.tables[to].generated.clone();
            let checked = !matches!(event, Event::Insert { .. });
            let references = &mut graph.tables[at].references;
            match references
                .iter_mut()
                .find(|known| (known.child, known.number) == (to, *number))
            {
                Some(known) => known.checked |= checked,
                None => references.push(Reference {
                    touched: touched(child, &generated, key.columns.iter().copied()),
                    ..reference(child, (to, *number), key, &found, checked)
                }),
            }
            let action = match event {
                Event::Insert { .. } => ForeignAction::NoAction,
                Event::Delete => key.on_delete,
                Event::Update(_) => key.on_update,
            };
            let goes = match (action, event) {
                (ForeignAction::NoAction | ForeignAction::Restrict, _) => continue,
                (action, event) => (action, event) == (ForeignAction::Cascade, &Event::Delete),
            };
            if graph.tables[to].target.is_none() {
                graph.tables[to].target = Some(self.target(child)?);
            }
            let happens = match goes {
                true => Event::Delete,
                false => {
                    settable(child, key)?;
                    Event::update(child, &generated, key.columns.iter().copied())
                }
            };
            if self.catalog.has_triggers(schema, &child.name) {
                let fires = self.action_fires(child, key, goes)?;
                let mut known = graph.tables[at].references.iter_mut();
                if let Some(it) = known.find(|it| (it.child, it.number) == (to, *number)) {
                    match event {
                        Event::Delete => it.delete_fires = fires,
                        _ => it.update_fires = fires,
                    }
                }
            }
            graph.happens(to, happens);
        }
        Ok(())
    }
}

/// No action gives a generated column a value.
fn settable(child: &Table, key: &ForeignKey) -> Result<()> {
    let mut columns = key.columns.iter().filter_map(|at| child.columns.get(*at));
    match columns.find(|column| column.generated.is_some()) {
        None => Ok(()),
        Some(column) => Err(Error::sql(format!(
            "cannot UPDATE generated column \"{}\"",
            column.name
        ))),
    }
}

/// A foreign key of a child; without its parent, if there is no such table.
pub fn child_key(
    schema: &Schema,
    child: &Table,
    number: usize,
    key: &ForeignKey,
) -> Result<ChildKey> {
    let (columns, parent) = match schema.table(&key.parent)? {
        Some(parent) => {
            let (columns, parent) = parent_key(child, key, &parent)?;
            (columns, Some(parent))
        }
        None if schema.view(&key.parent)?.is_some() => return Err(mismatch(child, key)),
        None => (key.columns.clone(), None),
    };
    Ok(ChildKey {
        number,
        columns,
        parent,
        deferred: key.deferred,
        of_itself: key.parent.eq_ignore_ascii_case(&child.name),
        checked: true,
        named: false,
    })
}

/// Assigned columns, with the rowid as its alias, and those generated of them.
pub fn touched(
    table: &Table,
    generated: &[Generated],
    assigned: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let place = |column| match column {
        ROWID => table.rowid_alias.unwrap_or(ROWID),
        column => column,
    };
    let mut touched = assigned.map(place).collect();
    add_dependent(table, generated, &mut touched);
    touched
}

/// The parent's columns that a key refers to, so far as there are any.
fn referred_columns(key: &ForeignKey, parent: &Table) -> Vec<usize> {
    match &key.parent_columns {
        Some(names) => names
            .iter()
            .filter_map(|n| parent.column_named(n))
            .collect(),
        None => {
            let columns = parent.columns.iter().enumerate();
            let primary = columns.filter(|(_, column)| column.primary_key > 0);
            primary.map(|(at, _)| at).collect()
        }
    }
}

/// The parent's key that a foreign key refers to, and the child's columns in its order.
fn parent_key(
    child: &Table,
    key: &ForeignKey,
    parent: &Arc<Table>,
) -> Result<(Vec<usize>, ParentKey)> {
    let of = |columns, index| ParentKey {
        table: Arc::clone(parent),
        columns,
        index,
    };
    let names = key.parent_columns.as_deref();
    if let ([column], Some(alias)) = (key.columns.as_slice(), parent.rowid_alias) {
        let is_rowid = names.is_none_or(|names| {
            let name = names.first().map_or("", String::as_str);
            parent.column_named(name) == Some(alias)
        });
        if is_rowid {
            return Ok((vec![*column], of(vec![alias], None)));
        }
    }
    for index in &parent.indexes {
        if !index.unique || index.predicate.is_some() || index.columns.len() != key.columns.len() {
            continue;
        }
        let columns = index.columns.iter().map(|part| match part.target {
            IndexTarget::Column(at) => Some(at),
            IndexTarget::Rowid => parent.rowid_alias,
            IndexTarget::Expr(_) => None,
        });
        let Some(columns) = columns.collect::<Option<Vec<usize>>>() else {
            continue;
        };
        let Some(names) = names else {
            if index.origin == IndexOrigin::PrimaryKey {
                return Ok((key.columns.clone(), of(columns, Some(Arc::clone(index)))));
            }
            continue;
        };
        let from = columns.iter().zip(&index.columns).map(|(at, part)| {
            let column = parent.columns.get(*at)?;
            let same = |name: &String| name.eq_ignore_ascii_case(&column.name);
            let place = names.iter().position(same)?;
            let is_usual = part.collation == column.collation;
            key.columns.get(place).copied().filter(|_| is_usual)
        });
        if let Some(from) = from.collect() {
            return Ok((from, of(columns, Some(Arc::clone(index)))));
        }
    }
    Err(mismatch(child, key))
}

/// The error of a key that refers to no key.
fn mismatch(child: &Table, key: &ForeignKey) -> Error {
    let message = format!(
        "foreign key mismatch - \"{}\" referencing \"{}\"",
        child.name, key.parent
    );
    Error::sql(message)
        .with_hint("the columns that it refers to must be the parent's PRIMARY KEY or UNIQUE")
}

fn reference(
    child: &Arc<Table>,
    (to, number): (usize, usize),
    key: &ForeignKey,
    (columns, parent): &(Vec<usize>, ParentKey),
    checked: bool,
) -> Reference {
    let of = |table: &Table, at: usize| table.columns.get(at).map(|c| (c.affinity, c.collation));
    let pairs = columns.iter().zip(&parent.columns);
    let parts: Vec<ReferencePart> = pairs
        .map(|(child, at)| ReferencePart {
            parent: *at,
            child: *child,
            collation: of(&parent.table, *at).map_or_else(Collation::default, |it| it.1),
        })
        .collect();
    let search = |is_action: bool| {
        let affinities = parts.iter().map(|part| {
            let has_none = is_action && parent.table.rowid_alias != Some(part.parent);
            let of_parent = of(&parent.table, part.parent).filter(|_| !has_none);
            let of_child = of(child, part.child);
            Affinity::of_comparison(of_parent.map(|it| it.0), of_child.map(|it| it.0))
        });
        let affinities: Vec<Affinity> = affinities.collect();
        ChildSearch {
            access: access(child, &parts, &affinities),
            affinities,
        }
    };
    Reference {
        child: to,
        number,
        touched: Vec::new(),
        counted: search(false),
        acted: search(true),
        parts,
        on_delete: key.on_delete,
        on_update: key.on_update,
        deferred: key.deferred,
        of_itself: key.parent.eq_ignore_ascii_case(&child.name),
        checked,
        named: false,
        delete_fires: Timed::default(),
        update_fires: Timed::default(),
    }
}

/// How to find the rows of a child: by rowid, or by the index that tells most.
fn access(child: &Table, parts: &[ReferencePart], affinities: &[Affinity]) -> ChildAccess {
    if let Some(alias) = child.rowid_alias
        && let Some(at) = parts.iter().position(|part| part.child == alias)
    {
        return ChildAccess::Rowid(at);
    }
    // What the column stores is what the comparison sees.
    let is_stored = |at: usize| {
        let own = parts.get(at).and_then(|part| child.columns.get(part.child));
        match affinities.get(at) {
            Some(Affinity::Blob) => true,
            Some(Affinity::Text) => own.is_some_and(|c| c.affinity == Affinity::Text),
            _ => own.is_some_and(|c| c.affinity.is_numeric()),
        }
    };
    let mut best = ChildAccess::Scan;
    let mut most = 0;
    for index in child.indexes.iter().filter(|i| i.predicate.is_none()) {
        let mut found: Vec<usize> = Vec::new();
        for column in &index.columns {
            let place = parts.iter().enumerate().position(|(at, part)| {
                matches!(column.target, IndexTarget::Column(c) if c == part.child)
                    && column.collation == part.collation
                    && is_stored(at)
                    && !found.contains(&at)
            });
            match place {
                Some(place) => found.push(place),
                None => break,
            }
        }
        if found.len() > most {
            most = found.len();
            best = ChildAccess::Index(Arc::clone(index), found);
        }
    }
    best
}
