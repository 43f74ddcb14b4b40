//! Conditions on the pairs of an inner join, asked for many pairs at once: of these the
//! columns that the condition reads are put together, and no others.

use super::{HashJoin, Spec};
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::ops::filter::narrow;
use crate::plan::physical::JoinKind;

/// A condition that is asked of many pairs.
pub(super) struct Tested {
    condition: Expr,
    /// The columns of a pair that it reads.
    columns: Vec<usize>,
    rows: Batch,
}

impl Tested {
    /// The condition of a join, where it can be asked so: not where it must be asked of each
    /// pair once, nor where a subquery may read any column.
    pub fn of(spec: &Spec) -> Option<Self> {
        let condition = spec.condition.as_ref()?;
        let is_inner = spec.kind == JoinKind::Inner && condition.props.deterministic;
        let mut columns = Vec::new();
        let is_plain = is_inner && inputs(condition, &mut columns);
        columns.sort_unstable();
        columns.dedup();
        is_plain.then(|| Self {
            condition: condition.clone(),
            columns,
            rows: Batch::default(),
        })
    }
}

/// Adds the columns of its row that an expression reads; false: it calls a subquery.
fn inputs(expr: &Expr, columns: &mut Vec<usize>) -> bool {
    if let ExprKind::Input(column) = expr.kind {
        columns.push(column);
    }
    let mut plain = expr.kind.subquery().is_none();
    expr.kind.for_each_child(&mut |child| {
        plain = plain && crate::stack::grow(|| inputs(child, columns));
    });
    plain
}

impl HashJoin {
    /// Drops the pairs that do not fulfil the condition. An error after good pairs is put
    /// off.
    pub(super) fn test_pairs(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        let Some(tested) = &mut self.tested else {
            return Ok(());
        };
        let rows = &mut tested.rows;
        rows.reset(self.spec.width);
        let (left, right) = (&self.left_rows, &self.built);
        let outcome = self
            .pairs
            .put_together(&tested.columns, left, right, rows)
            .and_then(|()| narrow(&tested.condition, rows, cx, &mut self.delayed));
        match outcome {
            Ok(()) => self.pairs.keep(rows.selection()),
            Err(_) => self.pairs.clear(),
        }
        outcome
    }
}
