//! Nested loops: what their right side is for each row of their left.

use super::Planner;
use super::join::conjunction;
use super::layout::Layout;
use super::physical::{JoinKind, Node, Op};
use super::resolve::Rows;
use crate::bind::expr::{Expr, Register};
use crate::error::Result;

/// The right rows that are worth being filtered a batch at a time.
const ROWS_FILTERED: f64 = 8.0;

impl Planner<'_, '_> {
    /// A nested loop over sides of these layouts, by conditions on pairs. `bindings` is what
    /// the right side takes from a left row.
    ///
    /// The left row's values are the same for all of its right rows, so that the conditions
    /// are those of a filter on the right side, which asks them a batch at a time.
    pub(super) fn nested_loop(
        &mut self,
        left: Node,
        right: Node,
        kind: JoinKind,
        (of_left, of_right): (&Layout, &Layout),
        conditions: Vec<Expr>,
        mut bindings: Vec<(Register, Expr)>,
    ) -> Result<Op> {
        let mut right = self.replayed(right, &bindings);
        // Right rows without a partner are known by their number, and what is called once for
        // each pair is called for no other one.
        let is_filter = right.rows >= ROWS_FILTERED
            && !kind.keeps_right()
            && conditions.iter().all(|c| c.props.deterministic);
        let mut condition = None;
        if !is_filter {
            let (pairs, pair) = (left.rows * right.rows, of_left.join(of_right));
            condition = self.called_for(pairs, |this| this.all_of(conditions, &pair))?;
        } else if let Some(mut all) = conjunction(conditions) {
            let (width, rows) = (right.width, right.rows);
            let mut pair = Rows::Pair(of_right, of_left, &mut bindings);
            self.called_for(rows, |this| this.resolve_condition(&mut all, &mut pair))?;
            let input = Box::new(right);
            let op = Op::Filter {
                input,
                predicate: all,
            };
            right = Node { op, width, rows };
        }
        Ok(Op::NestedLoopJoin {
            left: Box::new(left),
            right: Box::new(right),
            kind,
            bindings,
            condition,
        })
    }

    /// The same every time where it takes nothing from the left row.
    pub(super) fn replayed(&self, right: Node, bindings: &[(Register, Expr)]) -> Node {
        if !bindings.is_empty() || self.reads_recursion(&right) {
            return right;
        }
        let (width, rows) = (right.width, right.rows);
        let pass = self.pass_of(&right);
        let input = Box::new(right);
        Node {
            op: Op::Materialize { input, pass },
            width,
            rows,
        }
    }
}
