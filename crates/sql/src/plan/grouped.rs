//! Groups one after the other: where an index begins with the keys of GROUP BY and holds all
//! that is read, its entries are grouped as they come.
//!
//! That is worth it where a LIMIT lets the first groups do, where rows would have to be
//! sorted, and where groups are small, since many take long to be hashed and sorted. Elsewhere
//! groups are hashed, whatever the order of the rows. An index that does not hold what is read
//! is taken too where a LIMIT wants so few groups that looking up their rows is less than
//! reading all of them. Groups that are rows of a table, by its rowid, come one after the other
//! in joins, too, that begin with it.
//!
//! In the same way such an index spares the set of what was there already: where equal values
//! come one after the other, DISTINCT compares each with the one before it.

use super::Planner;
use super::access::{ROWS_PER_KEY, cost_of_fetch};
use super::aggregate::grows;
use super::block::ascending;
use super::needed::Needed;
use super::outer::Goal;
use crate::bind::expr::{AggregateCall, ColumnRef, ExprKind, ROWID, SortKey};
use crate::bind::logical::{Aggregation, Block, SourceKind};
use crate::schema::{Index, IndexTarget};

/// Of groups of more rows than this on average there are too few for their order to matter.
const SMALL: f64 = 16.0;

/// The order of rows in which those of a group come one after the other, which is that of
/// groups; empty where there is none that an index may have.
pub(super) fn wanted_order(block: &Block) -> Vec<SortKey> {
    let Some(aggregation) = block.aggregation.as_ref().filter(|it| !it.keys.is_empty()) else {
        return Vec::new();
    };
    let is_plain = block.windows.is_empty() && block.distinct.is_none();
    let mut keys = aggregation.keys.iter();
    if !is_plain || !keys.all(|(key, _)| matches!(key.kind, ExprKind::Column(_))) {
        return Vec::new();
    }
    let keys = aggregation.keys.iter();
    let mut order: Vec<SortKey> = keys
        .map(|(expr, collation)| ascending(expr.clone(), *collation))
        .collect();
    if is_by_row(&order) {
        order.truncate(1);
    }
    order
}

/// Whether groups are rows of a table: the first key is its rowid, which tells what the others
/// are, since they are columns of it, too.
fn is_by_row(order: &[SortKey]) -> bool {
    let column = |key: &SortKey| match key.expr.kind {
        ExprKind::Column(column) => Some(column),
        _ => None,
    };
    let rowid = order.first().and_then(column);
    rowid.filter(|it| it.column == ROWID).is_some_and(|rowid| {
        let is_own = |key: &SortKey| column(key).is_some_and(|it| it.source == rowid.source);
        order.iter().all(is_own)
    })
}

/// The order, behind that of the groups, in which equal values of a DISTINCT are neighbours:
/// of a call's argument, or of the rows of a SELECT; empty where nothing asks for it, or
/// ORDER BY for another one.
pub(super) fn order_of_distinct(block: &Block, order_by: &[SortKey]) -> Vec<SortKey> {
    if let Some(aggregation) = &block.aggregation {
        let keys = aggregation.calls.iter().find_map(distinct_argument);
        return keys.into_iter().collect();
    }
    let Some(collations) = block.distinct.as_ref().filter(|_| block.windows.is_empty()) else {
        return Vec::new();
    };
    let outputs = block.outputs.iter().zip(collations);
    let keys: Vec<SortKey> = outputs
        .map(|(expr, collation)| ascending(expr.clone(), *collation))
        .collect();
    match order_by.len() <= keys.len() && order_by.iter().zip(&keys).all(|(a, b)| a == b) {
        true => keys,
        false => Vec::new(),
    }
}

/// The order of a DISTINCT call's argument, where that is a column.
pub(super) fn distinct_argument(call: &AggregateCall) -> Option<SortKey> {
    let arg = call.args.first().filter(|_| call.distinct)?;
    matches!(arg.kind, ExprKind::Column(_)).then(|| ascending(arg.clone(), call.collation))
}

/// Whether groups in the order of their keys are in that of ORDER BY.
pub(super) fn is_by_keys(aggregation: &Aggregation, order_by: &[SortKey]) -> bool {
    let is_by = |(term, (expr, collation)): (&SortKey, &(_, _))| {
        let ascends = !term.descending && term.nulls_first;
        let expr: &crate::bind::expr::Expr = expr;
        ascends && term.expr.kind == expr.kind && term.collation == *collation
    };
    order_by.len() <= aggregation.keys.len() && order_by.iter().zip(&aggregation.keys).all(is_by)
}

impl Planner<'_, '_> {
    /// Whether the groups of a block are best taken in the order that is wanted, that of
    /// their keys: an index has it, or they are the rows of a table.
    pub(super) fn takes_groups_in(
        &mut self,
        block: &Block,
        needed: &Needed,
        goal: &Goal<'_>,
    ) -> bool {
        if is_by_row(goal.order) {
            return true;
        }
        let Some(index) = covering(block, needed, goal.order) else {
            let groups = goal.first.unwrap_or(f64::INFINITY);
            return self.finds_groups(block, goal.order, groups);
        };
        let mut calls = block.aggregation.iter().flat_map(|it| &it.calls);
        goal.limited || calls.any(grows) || {
            let rows = self.rows_per_group(index, goal.order);
            rows.is_some_and(|rows| rows <= SMALL)
        }
    }

    /// Whether the rows of so many groups are found through an index that begins with this
    /// order sooner than all are read.
    fn finds_groups(&mut self, block: &Block, order: &[SortKey], groups: f64) -> bool {
        let [source] = block.sources.as_slice() else {
            return false;
        };
        let all = self.source_rows(source);
        begin_with(block, order).any(|index| {
            let per_group = self.rows_per_group(index, order).unwrap_or(ROWS_PER_KEY);
            let rows = groups * per_group;
            rows * (1.0 + cost_of_fetch(all, rows)) <= all
        })
    }

    /// About how many rows a group has by the entries of an index that begins with the order
    /// of groups; None where that is not known.
    fn rows_per_group(&mut self, index: &Index, order: &[SortKey]) -> Option<f64> {
        let per_key = self.statistics.rows_per_key(index)?;
        per_key.get(order.len().checked_sub(1)?).copied()
    }
}

/// Whether an index of the only source begins with this order and holds all columns that
/// are read.
pub(super) fn is_covered(block: &Block, needed: &Needed, order: &[SortKey]) -> bool {
    covering(block, needed, order).is_some()
}

/// Such an index.
fn covering<'b>(block: &'b Block, needed: &Needed, order: &[SortKey]) -> Option<&'b Index> {
    let needed = needed.of(block.sources.first()?.id);
    let holds = |index: &Index, column: usize| {
        let mut parts = index.columns.iter();
        column == ROWID || parts.any(|part| is_of(&part.target, column))
    };
    let mut found = begin_with(block, order);
    found.find(|index| needed.iter().all(|column| holds(index, *column)))
}

/// The indexes of all rows of the only source that begin with this order.
fn begin_with<'b>(block: &'b Block, order: &[SortKey]) -> impl Iterator<Item = &'b Index> {
    let indexes = match block.sources.as_slice() {
        [source] => match &source.kind {
            SourceKind::Table(table) => table.indexes.as_slice(),
            _ => &[],
        },
        _ => &[],
    };
    let begins = move |index: &&Index| {
        let mut parts = order.iter().zip(&index.columns);
        index.columns.len() >= order.len()
            && parts.all(|(key, part)| match key.expr.kind {
                ExprKind::Column(ColumnRef { column, .. }) => {
                    let is_in_order = !part.descending && part.collation == key.collation;
                    is_in_order && is_of(&part.target, column)
                }
                _ => false,
            })
    };
    let indexes = indexes.iter().map(|index| &**index);
    let whole = indexes.filter(|index| index.predicate.is_none());
    whole.filter(begins)
}

fn is_of(target: &IndexTarget, column: usize) -> bool {
    matches!(target, IndexTarget::Column(at) if *at == column)
}
