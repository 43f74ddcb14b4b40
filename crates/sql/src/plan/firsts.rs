//! Scans that pass over entries: where nothing is asked of an index but which values its
//! leading parts have, the first entry of each is all that is read, and the others are
//! stepped over by looking up what is behind them.

use super::Planner;
use super::grouped::distinct_argument;
use super::physical::{Node, Op, ScanColumn};
use crate::bind::logical::Block;
use crate::schema::{Index, IndexTarget};

/// A look-up is worth it where about so many entries have the same values.
const SAME_MIN: f64 = 8.0;

impl Planner<'_, '_> {
    /// Reads only the first entries of a block's only source, which come in the order of so
    /// many leading parts and of which equal ones are dropped.
    pub(super) fn read_firsts(&mut self, block: &Block, node: &mut Node, parts: usize) {
        let calls = block.aggregation.iter().flat_map(|it| &it.calls);
        let mut arguments = calls.map(|call| {
            let argument = distinct_argument(call);
            argument.filter(|_| call.filter.is_none())
        });
        let first = arguments.next();
        if !first.is_none_or(|first| first.is_some() && arguments.all(|other| other == first)) {
            return;
        }
        let Op::IndexScan {
            index,
            columns,
            covering: true,
            prefixes,
            reverse: false,
            firsts,
            ..
        } = &mut node.op
        else {
            return;
        };
        let is_whole = matches!(prefixes.as_slice(), [prefix] if prefix.is_empty());
        if !is_whole
            || !columns
                .iter()
                .all(|column| is_leading(index, *column, parts))
        {
            return;
        }
        let per_key = self.statistics.rows_per_key(index);
        let same = per_key.and_then(|it| it.get(parts.checked_sub(1)?).copied());
        if let Some(same) = same.filter(|same| *same >= SAME_MIN) {
            *firsts = parts;
            node.rows = (node.rows / same).max(1.0);
        }
    }
}

/// Whether a column is one of so many leading parts of an index.
fn is_leading(index: &Index, column: ScanColumn, parts: usize) -> bool {
    let ScanColumn::Column(column) = column else {
        return false;
    };
    let mut parts = index.columns.iter().take(parts);
    parts.any(|part| matches!(part.target, IndexTarget::Column(at) if at == column))
}
