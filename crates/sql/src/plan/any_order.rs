//! Queries whose result does not tell in which order rows were read, so that a table may be
//! read in that of an index which has all that is wanted and is narrower.
//!
//! Rows of an aggregate hide it where each call counts or keeps an extreme, and where equal
//! values are one and the same: 1 and 1.0 are not, nor are `a` and `A` under NOCASE. The last
//! digit of a sum of reals may tell, too; but where all of a table is added up, SQLite reads
//! such an index as well, and adds in its order. What may fail or is not deterministic is
//! evaluated in the order of the table, and so is what looks up other rows for each: in that
//! order they mostly lie together.

use super::Planner;
use crate::bind::expr::{AggregateCall, Expr, ExprKind, SortKey};
use crate::bind::logical::{Block, SourceKind};
use crate::func::AggregateKind;
use crate::schema::{Index, IndexTarget, Table};
use crate::value::{Affinity, Collation};

/// Bytes assumed of a number and of anything else.
const NUMBER_BYTES: f64 = 4.0;
const OTHER_BYTES: f64 = 20.0;

/// An index is read for its entries alone where they are so much narrower than rows; an
/// entry takes longer to decode.
const NARROW: f64 = 0.5;

impl Planner<'_, '_> {
    /// Whether the block's result is the same in whichever order its sources are read.
    /// `any`: its own rows may come in any order.
    pub(super) fn hides_order(&self, block: &Block, order_by: &[SortKey], any: bool) -> bool {
        let [source] = block.sources.as_slice() else {
            return false;
        };
        if block.aggregation.is_none() && !any {
            return false;
        }
        let is_read = matches!(source.kind, SourceKind::Table(_) | SourceKind::Query(_));
        let is_quiet = |expr: &Expr| is_quiet(expr) && !self.hands_in(expr);
        let plain = is_read && block.windows.is_empty() && block.filter.iter().all(is_quiet);
        let Some(aggregation) = block.aggregation.as_ref().filter(|_| plain) else {
            return any && plain && order_by.is_empty() && block.outputs.iter().all(is_quiet);
        };
        let mut keys = aggregation.keys.iter();
        let is_whole = matches!(source.kind, SourceKind::Table(_)) && block.filter.is_empty();
        let may_add = is_whole && aggregation.keys.is_empty();
        let hides = |call: &AggregateCall| {
            hides(call, may_add) && call.args.iter().chain(&call.filter).all(is_quiet)
        };
        if !aggregation.calls.iter().all(hides) || !keys.all(|(key, it)| is_one(key, *it)) {
            return false;
        }
        let is_known = |expr: &Expr| {
            let is_key = || {
                aggregation
                    .keys
                    .iter()
                    .any(|(key, _)| key.kind == expr.kind)
            };
            matches!(expr.kind, ExprKind::Aggregate(_)) || is_key()
        };
        let ordered = order_by.iter().map(|key| &key.expr);
        let mut above = block.outputs.iter().chain(&block.having).chain(ordered);
        above.all(|expr| {
            let mut has_bare = false;
            self.for_each_column_outside(expr, &is_known, &mut |_| has_bare = true);
            !has_bare
        })
    }
}

fn is_quiet(expr: &Expr) -> bool {
    expr.props.deterministic && !expr.props.fallible
}

/// Whether a call's value is the same for any order of the rows, which `may_add` lets sums be.
fn hides(call: &AggregateCall, may_add: bool) -> bool {
    let mut args = call.args.iter();
    match call.function.kind {
        AggregateKind::Count => !call.collation.is_of_program(),
        AggregateKind::Sum | AggregateKind::Total | AggregateKind::Avg => may_add && !call.distinct,
        AggregateKind::Min | AggregateKind::Max => args.all(|arg| is_one(arg, call.collation)),
        _ => false,
    }
}

/// Whether equal values of an expression are one and the same.
fn is_one(expr: &Expr, collation: Collation) -> bool {
    let is_column = matches!(expr.kind, ExprKind::Column(_));
    // A REAL column may hold 0.0 and -0.0.
    let whole = matches!(
        expr.props.affinity,
        Some(Affinity::Integer | Affinity::Numeric | Affinity::Text)
    );
    is_column && whole && collation == Collation::Binary
}

/// The cost of reading all of an index, where that of the table is 1; None where it is not
/// narrow enough.
pub(super) fn cost_of_entries(table: &Table, index: &Index) -> Option<f64> {
    let bytes = |at: usize| match table.columns.get(at).map(|column| column.affinity) {
        Some(Affinity::Text | Affinity::Blob) => OTHER_BYTES,
        _ => NUMBER_BYTES,
    };
    let stored = (0..table.columns.len()).filter(|at| table.rowid_alias != Some(*at));
    let row: f64 = stored.map(bytes).sum();
    let part = |target: &IndexTarget| match target {
        IndexTarget::Column(at) => bytes(*at),
        IndexTarget::Rowid => NUMBER_BYTES,
        IndexTarget::Expr(_) => OTHER_BYTES,
    };
    let parts = index.columns.iter().map(|column| part(&column.target));
    let entry = NUMBER_BYTES + parts.sum::<f64>();
    (entry <= NARROW * row).then(|| entry / (NARROW * row))
}
