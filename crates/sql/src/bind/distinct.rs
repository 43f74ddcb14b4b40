//! DISTINCT that drops nothing: the rows of one table that show a key of it, the rowid or the
//! columns of a UNIQUE index that cannot be NULL, differ already.

use super::expr::{ColumnRef, Expr, ExprKind, ROWID};
use super::logical::{Block, SourceKind};
use crate::schema::{Index, IndexTarget, Table};
use crate::value::Collation;

/// Whether the rows of a block, whose aggregates are known, differ without its DISTINCT.
pub(super) fn is_needless(block: &Block) -> bool {
    let (Some(collations), [source]) = (&block.distinct, block.sources.as_slice()) else {
        return false;
    };
    let SourceKind::Table(table) = &source.kind else {
        return false;
    };
    let shows = |column: usize, unique_by: Collation| {
        let mut outputs = block.outputs.iter().zip(collations);
        outputs.any(|(output, collation)| {
            let is_as_fine = *collation == unique_by || *collation == Collation::Binary;
            is_as_fine && is_column(output, column)
        })
    };
    block.aggregation.is_none()
        && (shows(ROWID, Collation::Binary)
            || table
                .indexes
                .iter()
                .any(|index| is_key(table, index, &shows)))
}

fn is_column(expr: &Expr, number: usize) -> bool {
    matches!(expr.kind, ExprKind::Column(ColumnRef { column, .. }) if column == number)
}

/// Whether rows differ in what is shown of an index.
fn is_key(table: &Table, index: &Index, shows: &dyn Fn(usize, Collation) -> bool) -> bool {
    let is_shown = |target: &IndexTarget, collation: Collation| match target {
        IndexTarget::Column(at) => {
            let column = table.columns.get(*at);
            column.is_some_and(|it| it.not_null.is_some()) && shows(*at, collation)
        }
        IndexTarget::Rowid | IndexTarget::Expr(_) => false,
    };
    let mut parts = index.columns.iter();
    index.unique
        && index.predicate.is_none()
        && parts.all(|part| is_shown(&part.target, part.collation))
}
