//! An INSERT of two rows that are alike but for their parameters, as one of any number of
//! such rows: what is planned for two is as good for others.

use super::physical::{Action, Op, Plan};

/// Makes it one of as many rows as values are bound. False: it is no such INSERT.
pub fn repeat_row(plan: &mut Plan) -> bool {
    let Action::Insert(insert) = &mut plan.action else {
        return false;
    };
    let Op::Values(rows) = &mut insert.source.op else {
        return false;
    };
    let ([row, _], true) = (rows.as_mut_slice(), plan.subqueries.is_empty()) else {
        return false;
    };
    insert.source.op = Op::RepeatedRow {
        row: std::mem::take(row),
        parameters: plan.parameters.len() / 2,
    };
    true
}
