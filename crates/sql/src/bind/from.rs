//! Binding of FROM: its sources.

use std::sync::Arc;

use super::expr::Expr;
use super::logical::{Block, Body, IndexHint, Query, Source, SourceKind};
use super::names::{Naming, name_columns};
use super::recursion::recursive_members;
use super::scope::{ScopeColumns, ScopeTable, ScopedCte};
use super::{Binder, Frame};
use crate::ast;
use crate::ast::{FromItem, Name, SelectTable};
use crate::error::{Error, Result};
use crate::schema::{Index, SEQUENCE, Schema, Table, View, nearest};

/// Parts of an expression that stands in for the name of a column, wherever that is named.
/// In views of views each level may name the one below several times, and puts its own
/// around it.
const MERGED_MAX: usize = 1_000;
/// Views within each other.
const VIEWS_MAX: usize = 4_096;

/// Sources in one FROM, SQLite's limit.
const MAX_JOIN: usize = 64;

impl<'a> Binder<'a> {
    /// Adds FROM's sources to the block and their names to the frame.
    pub(super) fn from(&mut self, items: &[FromItem], block: &mut Block) -> Result<()> {
        let items = flattened(items);
        let last_right = items.iter().rposition(|item| item.join.right);
        let base = self.frame().tables.len();
        for (at, item) in items.into_iter().enumerate() {
            let before = self.frame().tables.len();
            if item.join.right {
                self.frame().before_right = before;
            }
            self.frame().hidden = true;
            let first = block.sources.len();
            let is_kept = last_right.is_none_or(|right| at > right);
            let plain = is_kept && (at == 0 || !item.join.left);
            let bound = self.source(&item.table, plain, block);
            self.frame().hidden = false;
            bound?;
            if block.sources.len() > MAX_JOIN {
                return Err(Error::sql(format!("at most {MAX_JOIN} tables in a join")));
            }
            let on = self.join_columns(item, base..before, last_right.is_some())?;
            self.join_source(item, first, on, block);
        }
        Ok(())
    }

    /// `plain`: neither side of an outer join, so a parenthesized join may be
    /// taken apart.
    fn source(&mut self, table: &SelectTable, plain: bool, block: &mut Block) -> Result<()> {
        match table {
            SelectTable::Table {
                name,
                alias,
                indexed,
            } => self.named_source(name, alias.as_ref(), indexed, plain, block),
            SelectTable::Select(select, alias) => {
                let query = self.named_query(select, Naming::Written)?;
                let name = alias.as_ref().map_or(String::new(), |a| a.text.clone());
                self.query_source(query, name, plain, block)
            }
            SelectTable::Joined(items, None) if plain && items.iter().all(is_inner) => {
                self.frame().hidden = false;
                self.from(items, block)
            }
            SelectTable::Joined(items, alias) => match (items.as_slice(), alias) {
                ([one], None) => self.source(&one.table, plain, block),
                (
                    [
                        FromItem {
                            table: SelectTable::Table { name, indexed, .. },
                            ..
                        },
                    ],
                    alias,
                ) => self.named_source(name, alias.as_ref(), indexed, plain, block),
                _ => self.joined_source(items, alias.as_ref(), block),
            },
            SelectTable::Function { name, args, alias } => {
                self.function_source(name, args, alias.as_ref(), block)
            }
        }
    }

    /// The innermost common table expression of a name.
    pub(super) fn cte_named(&self, name: &str) -> Option<usize> {
        let is_it = |c: &ScopedCte| c.cte.name.text.eq_ignore_ascii_case(name);
        self.ctes.iter().rposition(is_it)
    }

    /// A table or view as the only source so far, whole.
    pub(super) fn sole_source(
        &mut self,
        name: &ast::QualifiedName,
        alias: Option<&Name>,
        block: &mut Block,
    ) -> Result<()> {
        self.frame().hidden = true;
        let bound = self.named_source(name, alias, &ast::Indexed::Any, false, block);
        self.frame().hidden = false;
        bound
    }

    fn named_source(
        &mut self,
        name: &ast::QualifiedName,
        alias: Option<&Name>,
        indexed: &ast::Indexed,
        plain: bool,
        block: &mut Block,
    ) -> Result<()> {
        let shown = alias.unwrap_or(&name.name).text.clone();
        if name.schema.is_none()
            && let Some(table) = self.recursive_table(&name.name.text)
        {
            if let ast::Indexed::By(_) = indexed {
                return Err(Error::sql("no query solution").with_offset(name.name.offset));
            }
            self.recursive_source(table, shown, block);
            return Ok(());
        }
        if name.schema.is_none()
            && let Some(at) = self.cte_named(&name.name.text)
        {
            if let ast::Indexed::By(index) = indexed {
                return Err(Error::sql(format!("no such index: \"{}\"", index.text)));
            }
            return self.cte_source(at, shown, plain, block);
        }
        let schema = self.schema_of(name);
        let found = match schema {
            Some(schema) => schema.table(&name.name.text)?,
            None => None,
        };
        if found.is_none()
            && let Some(schema) = schema
            && let Some(view) = schema.view(&name.name.text)?
        {
            if let ast::Indexed::By(index) = indexed {
                return Err(Error::sql(format!("no such index: {}", index.text)));
            }
            return self.view_source(&view, schema, shown, plain, block);
        }
        if name.name.text.eq_ignore_ascii_case(SEQUENCE)
            && let Some(schema) = schema
            && let Some(view) = schema.sequence_view()?
        {
            return self.view_source(&view, schema, shown, plain, block);
        }
        if found.is_none()
            && let Some(function) = self.table_function(name, &[])?
        {
            if let ast::Indexed::By(index) = indexed {
                return Err(Error::sql(format!("no such index: {}", index.text)));
            }
            return self.called_source(function, &[], alias, block);
        }
        let table = match found {
            Some(table) => table,
            None => self.table(name)?,
        };
        self.note_collations(&table);
        let id = self.new_source()?;
        if let Some(uses) = &mut self.uses {
            uses.source(&table, id, &name.name, alias.is_some());
        }
        self.frame().tables.push(ScopeTable {
            name: shown.clone(),
            source: id,
            columns: ScopeColumns::Table(table.clone()),
            merged: Vec::new(),
            database: Some(table.tree.store_number()),
        });
        let source = self.indexed_source(&table, shown, id, indexed)?;
        block.sources.push(source);
        Ok(())
    }

    fn view_source(
        &mut self,
        view: &View,
        schema: &'a Schema,
        shown: String,
        plain: bool,
        block: &mut Block,
    ) -> Result<()> {
        let query = self.view_query(view, schema)?;
        let expected = view.definition.columns.len();
        let count = query.columns.len();
        if expected > 0 && expected != count {
            let name = &view.name;
            let message = format!("expected {expected} columns for '{name}' but got {count}");
            return Err(Error::sql(message));
        }
        self.query_source(query, shown, plain, block)?;
        if let Some(table) = self.frame().tables.last_mut() {
            table.database = Some(schema.tree().store_number());
        }
        Ok(())
    }

    /// A view is bound where it is named, but sees nothing of what is there. Where its
    /// query has not as many columns as the view lists names, it has its own names.
    pub(super) fn view_query(&mut self, view: &View, schema: &'a Schema) -> Result<Query> {
        let store = schema.tree().store_number();
        if self
            .views
            .iter()
            .any(|(name, of)| name.eq_ignore_ascii_case(&view.name) && *of == store)
        {
            return Err(Error::sql(format!(
                "view {} is circularly defined",
                view.name
            )));
        }
        if self.views.len() >= VIEWS_MAX {
            let message =
                format!("views are within each other too deep (maximum depth {VIEWS_MAX})");
            return Err(Error::sql(message));
        }
        let ctes = std::mem::take(&mut self.ctes);
        let frames = std::mem::take(&mut self.frames);
        let reaches = std::mem::take(&mut self.reaches);
        let reached = self.reached;
        let uses = self.uses.take();
        let trigger = self.trigger.take();
        self.views.push((view.name.clone(), store));
        let select = &view.definition.select;
        let query = self.at_home(schema, |this| {
            crate::stack::grow(|| this.named_query(select, Naming::Stored))
        });
        self.views.pop();
        self.trigger = trigger;
        self.uses = uses;
        self.reached = reached;
        self.reaches = reaches;
        self.frames = frames;
        self.ctes = ctes;
        let mut query = query?;
        if view.definition.columns.len() == query.columns.len() {
            rename(&mut query, &view.definition.columns);
        }
        Ok(query)
    }

    /// The query of the common table expression at this place.
    pub(super) fn cte_query(&mut self, at: usize, cte: &ast::Cte) -> Result<Query> {
        let refused = |why: &str| Error::sql(format!("{why}: {}", cte.name.text));
        let Some(scoped) = self.ctes.get_mut(at) else {
            return Err(refused("no such table"));
        };
        if let Some(why) = scoped.refused {
            return Err(refused(why));
        }
        let members = recursive_members(cte)?;
        scoped.refused = Some("circular reference");
        let sees = scoped.sees;
        let inner = self.ctes.split_off(sees);
        let query = crate::stack::grow(|| match members {
            0 => {
                let mut query = self.named_query(&cte.select, Naming::Written)?;
                list_columns(&mut query, cte)?;
                Ok(query)
            }
            members => self.recursive_query(at, cte, members),
        });
        self.ctes.extend(inner);
        if let Some(scoped) = self.ctes.get_mut(at) {
            scoped.refused = None;
        }
        query
    }

    pub(super) fn query_source(
        &mut self,
        query: Query,
        name: String,
        plain: bool,
        block: &mut Block,
    ) -> Result<()> {
        if !plain || !is_mergeable(&query) {
            return self.query_of(Arc::new(query), name, None, block);
        }
        let Body::Block(inner) = query.body else {
            return Ok(());
        };
        block.sources.extend(inner.sources);
        block.filter.extend(inner.filter);
        let columns = query.columns.into_iter().zip(inner.outputs).collect();
        self.frame().tables.push(ScopeTable {
            name,
            source: usize::MAX,
            columns: ScopeColumns::Exprs(columns),
            merged: Vec::new(),
            database: None,
        });
        Ok(())
    }

    /// A query as a source of its own, `common` where it is a common table expression whose
    /// rows may be those of others.
    pub(super) fn query_of(
        &mut self,
        query: Arc<Query>,
        name: String,
        common: Option<usize>,
        block: &mut Block,
    ) -> Result<()> {
        let id = self.new_source()?;
        self.frame().tables.push(ScopeTable {
            name: name.clone(),
            source: id,
            columns: ScopeColumns::Query(query.columns_as_source(), 0),
            merged: Vec::new(),
            database: None,
        });
        let alias = if name.is_empty() {
            format!("subquery {id}")
        } else {
            name
        };
        block.sources.push(Source {
            common,
            ..Source::new(id, alias, SourceKind::Query(query))
        });
        Ok(())
    }

    /// The table that is updated may be in FROM under another name alone.
    pub(super) fn check_apart(
        &self,
        table: &Table,
        alias: Option<&Name>,
        from: &[FromItem],
    ) -> Result<()> {
        let same_alias = |other: Option<&Name>| match (alias, other) {
            (Some(one), Some(other)) => one.text.eq_ignore_ascii_case(&other.text),
            (one, other) => one.is_none() && other.is_none(),
        };
        for item in from {
            let (of, other) = match &item.table {
                SelectTable::Table { name, alias, .. } => (name, alias.as_ref()),
                SelectTable::Joined(items, _) => {
                    crate::stack::grow(|| self.check_apart(table, alias, items))?;
                    continue;
                }
                SelectTable::Select(..) | SelectTable::Function { .. } => continue,
            };
            let is_table = of.name.text.eq_ignore_ascii_case(&table.name)
                && (of.schema.is_some() || self.cte_named(&of.name.text).is_none());
            if is_table && same_alias(other) {
                let name = alias.map_or(&table.name, |alias| &alias.text);
                let message = format!("target object/alias may not appear in FROM clause: {name}");
                return Err(Error::sql(message).with_offset(of.name.offset));
            }
        }
        Ok(())
    }

    /// The table of a name.
    pub(super) fn table(
        &self,
        name: &ast::QualifiedName,
    ) -> Result<std::sync::Arc<crate::schema::Table>> {
        let full = match &name.schema {
            Some(schema) => format!("{}.{}", schema.text, name.name.text),
            // What a view or a trigger names is in its own database.
            None => match self.own_database() {
                Some(database) => format!("{database}.{}", name.name.text),
                None => name.name.text.clone(),
            },
        };
        if let Some(schema) = self.schema_of(name)
            && let Some(table) = schema.table(&name.name.text)?
        {
            return Ok(table);
        }
        let offset = name.schema.as_ref().unwrap_or(&name.name).offset;
        let error = Error::sql(format!("no such table: {full}")).with_offset(offset);
        let near = self.catalog.in_order();
        let names = near.flat_map(|schema| schema.table_names().iter().map(String::as_str));
        Err(match nearest(&name.name.text, names) {
            Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
            None => error,
        })
    }
}

impl Frame {
    /// Whether a table of this name is here.
    pub fn has_table(&self, name: &str) -> bool {
        self.tables
            .iter()
            .any(|t| t.name.eq_ignore_ascii_case(name))
    }
}

/// Parentheses around what stands first change nothing.
fn flattened(items: &[FromItem]) -> Vec<&FromItem> {
    let mut rest: Vec<&[FromItem]> = Vec::new();
    let mut first = items;
    while let [item, others @ ..] = first
        && let SelectTable::Joined(inner, None) = &item.table
    {
        rest.push(others);
        first = inner;
    }
    first
        .iter()
        .chain(rest.into_iter().rev().flatten())
        .collect()
}

/// Whether there is a RIGHT or FULL JOIN.
pub(super) fn any_right(items: &[FromItem]) -> bool {
    flattened(items).iter().any(|item| item.join.right)
}

fn is_inner(item: &FromItem) -> bool {
    !item.join.left && !item.join.right
}

/// What INDEXED BY or NOT INDEXED asks for.
pub(super) fn index_hint(indexed: &ast::Indexed, table: &Table) -> Result<IndexHint> {
    Ok(match indexed {
        ast::Indexed::Any => IndexHint::Any,
        ast::Indexed::Not => IndexHint::None,
        ast::Indexed::By(name) => {
            let is_named = |i: &Arc<Index>| i.name.eq_ignore_ascii_case(&name.text);
            if !table.indexes.iter().any(is_named) {
                return Err(Error::sql(format!("no such index: {}", name.text)));
            }
            IndexHint::Named(name.text.clone())
        }
    })
}

/// A subquery in FROM that only selects and joins: its sources can join those
/// around it.
pub(super) fn is_mergeable(query: &Query) -> bool {
    let Body::Block(block) = &query.body else {
        return false;
    };
    let simple = |e: &Expr| e.props.deterministic && !e.props.fallible;
    query.limit.is_none()
        && query.order_by.is_empty()
        && block.aggregation.is_none()
        && block.distinct.is_none()
        && block.windows.is_empty()
        && block.having.is_empty()
        && !block.sources.is_empty()
        && !block.sources.iter().any(Source::keeps_right)
        && block.outputs.iter().all(simple)
        && block.filter.iter().all(simple)
        && block
            .outputs
            .iter()
            .all(|output| is_small(output, &mut { MERGED_MAX }))
}

/// Whether an expression has at most so many parts.
fn is_small(expr: &Expr, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else {
        return false;
    };
    *left = rest;
    let mut fits = true;
    expr.kind
        .for_each_child(&mut |child| fits = fits && is_small(child, left));
    fits
}

/// Gives a query's columns the names that a view or a common table expression lists.
fn rename(query: &mut Query, names: &[Name]) {
    for (column, name) in query.columns.iter_mut().zip(names) {
        column.output.name = name.text.clone();
    }
    name_columns(&mut query.columns);
}

/// Gives a query the column names that its common table expression lists, if it does.
pub(super) fn list_columns(query: &mut Query, cte: &ast::Cte) -> Result<()> {
    let (count, listed) = (query.columns.len(), cte.columns.len());
    if listed == count {
        rename(query, &cte.columns);
    } else if listed > 0 {
        let name = &cte.name.text;
        let message = format!("table {name} has {count} values for {listed} columns");
        return Err(Error::sql(message).with_offset(cte.name.offset));
    }
    Ok(())
}
