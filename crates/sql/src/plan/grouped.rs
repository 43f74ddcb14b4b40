//! Groups one after the other: where an index begins with the keys of GROUP BY and holds all
//! that is read, its entries are grouped as they come.
//!
//! That is worth it where a LIMIT lets the first groups do, and where rows would have to be
//! sorted. Elsewhere groups are hashed, whatever the order of the rows.
//!
//! In the same way such an index spares the set of what was there already: where equal values
//! come one after the other, DISTINCT compares each with the one before it.

use super::aggregate::grows;
use super::block::ascending;
use super::needed::Needed;
use crate::bind::expr::{AggregateCall, ColumnRef, ExprKind, ROWID, SortKey};
use crate::bind::logical::{Aggregation, Block, SourceKind};
use crate::schema::{Index, IndexTarget};

/// The order of rows in which a block's groups come in the order they are wanted in; empty
/// where it is worth nothing.
pub(super) fn wanted_order(block: &Block, order_by: &[SortKey], limited: bool) -> Vec<SortKey> {
    let Some(aggregation) = block.aggregation.as_ref().filter(|it| !it.keys.is_empty()) else {
        return Vec::new();
    };
    let is_plain = block.windows.is_empty() && block.distinct.is_none();
    let is_worth = limited || aggregation.calls.iter().any(grows);
    match is_plain && is_worth && is_by_keys(aggregation, order_by) {
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

/// Whether an index of the only source begins with this order and holds all columns that
/// are read.
pub(super) fn is_covered(block: &Block, needed: &Needed, order: &[SortKey]) -> bool {
    let [source] = block.sources.as_slice() else {
        return false;
    };
    let SourceKind::Table(table) = &source.kind else {
        return false;
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
    let mut indexes = table.indexes.iter();
    indexes.any(|index| {
        let is_whole = index.predicate.is_none();
        is_whole && begins(index) && needed.iter().all(|column| holds(index, *column))
    })
}

fn is_of(target: &IndexTarget, column: usize) -> bool {
    matches!(target, IndexTarget::Column(at) if *at == column)
}
