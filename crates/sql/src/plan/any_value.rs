//! Whether a plan made for parameters could be better for certain values of them.
//!
//! The planner asks for a value in three cases: an index of some rows is used where a
//! condition implies that there are no others, one on an expression where a condition
//! has that expression, and a range costs what lies in it. What else plans cost comes from
//! the sizes of tables and indexes alone. So where tables have no such index and no range
//! was guessed at, a plan is the same whatever the values are, but for conditions between
//! values that could be decided beforehand, which nobody writes.

use super::physical::{Action, Node, Op, Plan};
use crate::schema::{IndexTarget, Table};

/// Whether it would be the same for any values.
pub fn is_for_any_value(plan: &Plan) -> bool {
    let source = match &plan.action {
        Action::Query(root) => root,
        Action::Insert(insert) => &insert.source,
        Action::Update(update) => &update.source,
        Action::Delete(delete) => &delete.source,
        _ => return false,
    };
    if plan.guesses {
        return false;
    }
    let roots = plan.subqueries.iter().map(|subquery| &subquery.root);
    roots.chain([source]).all(reads_plain_tables)
}

fn reads_plain_tables(node: &Node) -> bool {
    let reads_plain = match &node.op {
        Op::TableScan { table, .. }
        | Op::RowidLookup { table, .. }
        | Op::RowidUnion { table, .. }
        | Op::IndexScan { table, .. }
        | Op::CountRows(table) => is_plain(table),
        _ => true,
    };
    let inputs = || node.op.inputs().into_iter().all(reads_plain_tables);
    reads_plain && crate::stack::grow(inputs)
}

/// Whether all its indexes are of all its rows, and on columns.
fn is_plain(table: &Table) -> bool {
    table.indexes.iter().all(|index| {
        let on_columns = |target: &IndexTarget| !matches!(target, IndexTarget::Expr(_));
        index.predicate.is_none() && index.columns.iter().all(|part| on_columns(&part.target))
    })
}
