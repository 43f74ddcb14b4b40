//! Binding of recursive common table expressions.
//!
//! One is a UNION or UNION ALL whose last SELECTs name it in their FROM, once each. Those
//! are its members; what stands before them is its initial part, which names its columns.
//! A member reads its own table as a source of one row, the row of the queue at hand.

use super::Binder;
use super::from::list_columns;
use super::logical::{Block, Body, Query, QueryColumn, Recursion, Source, SourceKind};
use super::names::{Naming, name_columns};
use super::order::ResultName;
use super::scope::{ScopeColumns, ScopeTable};
use super::select::{CompoundOrder, combined};
use super::source_columns::recursive_affinities;
use crate::ast::{self, FromItem, SelectCore, SelectTable};
use crate::error::{Error, Result};
use crate::plan::physical::CompoundOp;
use crate::value::{Affinity, Collation};

/// A recursive common table expression as its members see it.
#[derive(Debug, Clone)]
pub struct RecursiveTable {
    /// Its name.
    name: String,
    /// The number of the source.
    source: usize,
    /// Its columns.
    columns: Vec<QueryColumn>,
}

/// The members as they are bound.
struct Members {
    queries: Vec<Query>,
    /// The columns of all SELECTs together, and how their texts compare.
    columns: Vec<QueryColumn>,
    collations: Vec<Collation>,
    names: Vec<Vec<ResultName>>,
}

/// How many of a common table expression's SELECTs are members of a recursion.
pub fn recursive_members(cte: &ast::Cte) -> Result<usize> {
    let Some(last) = cte.select.compounds.last() else {
        return Ok(0);
    };
    if !matches!(last.op, CompoundOp::Union | CompoundOp::UnionAll) {
        return Ok(0);
    }
    let mut members = 0;
    for compound in cte.select.compounds.iter().rev() {
        let SelectCore::Select { from, .. } = &compound.core else {
            break;
        };
        if compound.op != last.op {
            break;
        }
        match references(from, &cte.name.text) {
            0 => break,
            1 => members += 1,
            _ => {
                let name = &cte.name.text;
                let message = format!("multiple references to recursive table: {name}");
                return Err(Error::sql(message));
            }
        }
    }
    Ok(members)
}

/// How often a FROM names a table. Parentheses around one table, or around the first ones,
/// say nothing; around others they make a subquery.
fn references(from: &[FromItem], name: &str) -> usize {
    let of_item = |(at, item): (usize, &FromItem)| match &item.table {
        SelectTable::Table { name: table, .. } => {
            usize::from(table.schema.is_none() && table.name.text.eq_ignore_ascii_case(name))
        }
        SelectTable::Joined(items, alias) => {
            let is_plain = at == 0 && alias.is_none() && item.constraint.is_none();
            match is_plain || items.len() == 1 {
                true => crate::stack::grow(|| references(items, name)),
                false => 0,
            }
        }
        SelectTable::Select(..) | SelectTable::Function { .. } => 0,
    };
    from.iter().enumerate().map(of_item).sum()
}

impl Binder<'_> {
    /// The query of a recursive common table expression, the one at `at` of those in
    /// scope, whose last `members` SELECTs are recursive.
    pub(super) fn recursive_query(
        &mut self,
        at: usize,
        cte: &ast::Cte,
        members: usize,
    ) -> Result<Query> {
        let select = &cte.select;
        self.with_ctes(&select.ctes, |this| {
            let not_recursive = select.compounds.len().saturating_sub(members);
            let mut order = CompoundOrder::default();
            let mut initial = this.compound(select, not_recursive, Naming::Written, &mut order)?;
            let written = initial.columns.clone();
            name_columns(&mut initial.columns);
            list_columns(&mut initial, cte)?;
            if let Some(scoped) = this.ctes.get_mut(at) {
                scoped.refused = Some("multiple recursive references");
            }
            let limit = this.limit(select)?;
            let source = this.new_source()?;
            let before = this
                .ctes
                .get(at)
                .and_then(|scoped| scoped.affinities.clone());
            let of_initial = || {
                (0..initial.columns.len())
                    .map(|i| initial.affinity(i))
                    .collect()
            };
            let mut affinities = before.unwrap_or_else(of_initial);
            let mut bound = this.members(cte, members, &initial, source, &affinities)?;
            let together = recursive_affinities(&initial, &bound.queries, source);
            // What the members add may change how they compare.
            if together != affinities {
                affinities = together;
                // Where it is named again it is bound once.
                if let Some(scoped) = this.ctes.get_mut(at) {
                    scoped.affinities = Some(affinities.clone());
                }
                bound = this.members(cte, members, &initial, source, &affinities)?;
            }
            order.names.append(&mut bound.names);
            let order_by = this.order_by_result(&select.order_by, &written, &order.names)?;
            let is_union = select
                .compounds
                .last()
                .is_some_and(|c| c.op == CompoundOp::Union);
            let recursion = Recursion {
                name: cte.name.text.clone(),
                source,
                initial,
                members: bound.queries,
                distinct: is_union.then_some(bound.collations),
                affinities,
            };
            Ok(Query {
                body: Body::Recursion(Box::new(recursion)),
                columns: bound.columns,
                order_by,
                limit,
            })
        })
    }

    fn members(
        &mut self,
        cte: &ast::Cte,
        members: usize,
        initial: &Query,
        source: usize,
        affinities: &[Option<Affinity>],
    ) -> Result<Members> {
        let mut columns = initial.columns_as_source();
        for (column, affinity) in columns.iter_mut().zip(affinities) {
            column.props.affinity = *affinity;
        }
        let table = RecursiveTable {
            name: cte.name.text.clone(),
            source,
            columns,
        };
        let mut bound = Members {
            queries: Vec::with_capacity(members),
            columns: initial.columns.clone(),
            collations: Vec::new(),
            names: Vec::new(),
        };
        let mut order = CompoundOrder::default();
        let before = cte.select.compounds.len().saturating_sub(members);
        for compound in cte.select.compounds.iter().skip(before) {
            let table = Some(Box::new(table.clone()));
            let core = &compound.core;
            let query = self.compound_term(core, Naming::Shown, table, &mut order)?;
            if let Body::Block(block) = &query.body {
                if !block.windows.is_empty() {
                    let message = "cannot use window functions in recursive queries";
                    return Err(Error::sql(message).with_offset(cte.name.offset));
                }
                if block.aggregation.is_some() {
                    return Err(Error::sql("recursive aggregate queries not supported"));
                }
            }
            (bound.columns, bound.collations) =
                combined(compound.op, &bound.columns, &query.columns)?;
            bound.queries.push(query);
        }
        bound.names = order.names;
        Ok(bound)
    }

    /// The table that the SELECT at hand is a member of, where it is called so. It may
    /// name it once.
    pub(super) fn recursive_table(&mut self, name: &str) -> Option<RecursiveTable> {
        let is_it = |table: &mut Box<RecursiveTable>| table.name.eq_ignore_ascii_case(name);
        self.frame().recursive.take_if(is_it).map(|table| *table)
    }

    pub(super) fn recursive_source(
        &mut self,
        table: RecursiveTable,
        shown: String,
        block: &mut Block,
    ) {
        let kind = SourceKind::Recursive(table.columns.len());
        let source = Source::new(table.source, shown.clone(), kind);
        block.sources.push(source);
        self.frame().tables.push(ScopeTable {
            name: shown,
            source: table.source,
            columns: ScopeColumns::Query(table.columns, 0),
            merged: Vec::new(),
            database: None,
        });
    }
}
