//! Groups one after the other: where an index begins with the keys of GROUP BY and holds all
//! that is read, its entries are grouped as they come.
//!
//! That is worth it where a LIMIT lets the first groups do, where rows would have to be
//! sorted, and where groups are small, since many take long to be hashed and sorted. Elsewhere
//! groups are hashed, whatever the order of the rows.
//!
//! In the same way such an index spares the set of what was there already: where equal values
//! come one after the other, DISTINCT compares each with the one before it.

use super::Planner;
use super::aggregate::grows;
use super::block::ascending;
use super::needed::Needed;
use crate::bind::expr::{AggregateCall, ColumnRef, ExprKind, ROWID, SortKey};
use crate::bind::logical::{Aggregation, Block, SourceKind};
use crate::schema::{Index, IndexTarget};

/// Of groups of more rows than this on average there are too few for their order to matter.
const SMALL: f64 = 16.0;

/// The order of rows in which a block's groups come in the order they are wanted in; empty
/// where there is none.
pub(super) fn wanted_order(block: &Block, order_by: &[SortKey]) -> Vec<SortKey> {
    let Some(aggregation) = block.aggregation.as_ref().filter(|it| !it.keys.is_empty()) else {
        return Vec::new();
    };
    let is_plain = block.windows.is_empty() && block.distinct.is_none();
    match is_plain && is_by_keys(aggregation, order_by) {
        true => {
            let keys = aggregation.keys.iter();
            keys.map(|(expr, collation)| ascending(expr.clone(), *collation))
                .collect()
        }
        false => Vec::new(),
    }
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

/// Whether ORDER BY wants groups in the order of their keys: all columns.
fn is_by_keys(aggregation: &Aggregation, order_by: &[SortKey]) -> bool {
    let is_column = |kind: &ExprKind| matches!(kind, ExprKind::Column(_));
    let is_by = |(term, (expr, collation)): (&SortKey, &(_, _))| {
        let ascends = !term.descending && term.nulls_first;
        let expr: &crate::bind::expr::Expr = expr;
        ascends && term.expr.kind == expr.kind && term.collation == *collation
    };
    aggregation.keys.iter().all(|(key, _)| is_column(&key.kind))
        && order_by.len() <= aggregation.keys.len()
        && order_by.iter().zip(&aggregation.keys).all(is_by)
}

impl Planner<'_, '_> {
    /// Whether the groups of a block are best taken in this order, that of their keys: an
    /// index has it.
    pub(super) fn takes_groups_in(
        &mut self,
        block: &Block,
        needed: &Needed,
        order: &[SortKey],
        limited: bool,
    ) -> bool {
        let Some(index) = covering(block, needed, order) else {
            return false;
        };
        let mut calls = block.aggregation.iter().flat_map(|it| &it.calls);
        limited || calls.any(grows) || {
            let per_key = self.statistics.rows_per_key(index);
            let rows = per_key.and_then(|it| it.get(order.len().checked_sub(1)?).copied());
            rows.is_some_and(|rows| rows <= SMALL)
        }
    }
}

/// Whether an index of the only source begins with this order and holds all columns that
/// are read.
pub(super) fn is_covered(block: &Block, needed: &Needed, order: &[SortKey]) -> bool {
    covering(block, needed, order).is_some()
}

/// Such an index.
fn covering<'b>(block: &'b Block, needed: &Needed, order: &[SortKey]) -> Option<&'b Index> {
    let [source] = block.sources.as_slice() else {
        return None;
    };
    let SourceKind::Table(table) = &source.kind else {
        return None;
    };
    let needed = needed.of(source.id);
    let holds = |index: &Index, column: usize| {
        let mut parts = index.columns.iter();
        column == ROWID || parts.any(|part| is_of(&part.target, column))
    };
    let begins = |index: &Index| {
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
    let indexes = table.indexes.iter().map(|index| &**index);
    let is_whole = |index: &&Index| index.predicate.is_none();
    let mut whole = indexes.filter(is_whole);
    whole.find(|index| begins(index) && needed.iter().all(|column| holds(index, *column)))
}

fn is_of(target: &IndexTarget, column: usize) -> bool {
    matches!(target, IndexTarget::Column(at) if *at == column)
}
