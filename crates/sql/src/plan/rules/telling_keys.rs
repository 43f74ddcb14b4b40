//! A grouped rowid determines the other columns of its source.

use crate::bind::expr::{ColumnRef, Expr, ExprKind, ROWID};
use crate::value::Collation;

/// The keys, by position, that tell groups apart. A source's rowid is unique,
/// and where an outer join makes it NULL, the source's other columns are NULL
/// too: beside it they need not be compared.
pub fn telling_keys(keys: &[(Expr, Collation)]) -> Vec<usize> {
    let column = |key: &(Expr, Collation)| match key.0.kind {
        ExprKind::Column(column) => Some(column),
        _ => None,
    };
    let determined = |ColumnRef { source, column: at }: ColumnRef| {
        let rowid = ColumnRef {
            source,
            column: ROWID,
        };
        at != ROWID && keys.iter().any(|key| column(key) == Some(rowid))
    };
    let telling = keys
        .iter()
        .enumerate()
        .filter(|(_, key)| !column(key).is_some_and(determined));
    telling.map(|(i, _)| i).collect()
}
