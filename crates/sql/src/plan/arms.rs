//! The SELECTs of a compound, the arms, and conditions on a UNION ALL in FROM as conditions
//! of each of them: rows that do not count are not made, and each arm finds its rows by an
//! index of its own.

use super::Planner;
use super::block::sort_by_columns;
use super::layout::Layout;
use super::physical::{CompoundOp, Node, Op};
use super::pushdown::within_query;
use crate::bind::expr::{ColumnRef, Expr};
use crate::bind::logical::{Body, Query};
use crate::error::Result;
use crate::func::JsonText;
use crate::value::Collation;

/// Conditions on the columns of a source, which is a UNION ALL.
#[derive(Clone, Copy)]
pub(super) struct OfArms<'c> {
    source: usize,
    conditions: &'c [Expr],
}

impl OfArms<'_> {
    /// None.
    pub(super) const NONE: OfArms<'static> = OfArms {
        source: usize::MAX,
        conditions: &[],
    };
}

/// A compound's plan.
pub(super) struct Compound<'q> {
    /// Its rows.
    pub node: Node,
    /// Where it is a UNION, an INTERSECT or an EXCEPT, which yield their rows in order as
    /// SQLite's do: the collations of the columns that they are still to be sorted by, each
    /// behind those before it.
    pub unsorted: Option<&'q [Collation]>,
}

impl Planner<'_, '_> {
    /// The plan of a UNION ALL that is `source`, with those of the conditions on it that
    /// may be asked in its arms; they are taken out of the list.
    pub(super) fn union_all(
        &mut self,
        query: &Query,
        source: usize,
        conditions: &mut Vec<Expr>,
    ) -> Result<Node> {
        let mut taken = Vec::new();
        conditions.retain(|condition| {
            let stays = !self.may_be_asked_within(condition);
            taken.extend((!stays).then(|| condition.clone()));
            stays
        });
        let conditions = &taken;
        // Its rows are in the order that it yields them in.
        Ok(self.compound(query, OfArms { source, conditions })?.node)
    }

    /// Whether a condition may be asked wherever its columns are computed.
    pub(super) fn may_be_asked_within(&self, condition: &Expr) -> bool {
        // What is handed in to a subquery has no meaning within the query.
        let is_quiet = condition.props.deterministic && !condition.props.fallible;
        is_quiet && !self.hands_in(condition)
    }

    /// Whether an expression hands something in to a subquery.
    pub(super) fn hands_in(&self, expr: &Expr) -> bool {
        let mut rest = vec![expr];
        while let Some(expr) = rest.pop() {
            let subquery = expr.kind.subquery().and_then(|id| self.logical.get(id));
            if subquery.is_some_and(|subquery| !subquery.bindings.is_empty()) {
                return true;
            }
            expr.kind.for_each_child(&mut |child| rest.push(child));
        }
        false
    }

    /// Left-deep chains of one compound after the other, without recursion on
    /// their length.
    pub(super) fn compound<'q>(
        &mut self,
        query: &'q Query,
        asked: OfArms<'_>,
    ) -> Result<Compound<'q>> {
        let in_any_order = std::mem::take(&mut self.any_order);
        let arms_in_any_order = in_any_order && is_union_all(query);
        let mut terms = Vec::new();
        let mut at = query;
        while let Body::Compound {
            op,
            left,
            right,
            collations,
        } = &at.body
        {
            terms.push((*op, right, collations));
            at = left;
        }
        self.any_order = arms_in_any_order;
        let mut node = self.arm(at, asked)?;
        let mut unsorted: Option<&[Collation]> = None;
        for (op, right, collations) in terms.into_iter().rev() {
            self.any_order = arms_in_any_order;
            let right = self.arm(right, asked)?;
            let is_seen = match op {
                CompoundOp::UnionAll => !in_any_order,
                // Which of equal rows comes first is told by the order.
                _ => unsorted != Some(collations),
            };
            if let Some(by) = unsorted.take()
                && is_seen
            {
                node = sort_by_columns(node, by);
            }
            let (width, rows) = (node.width, node.rows + right.rows);
            let (left, right) = (Box::new(node), Box::new(right));
            node = Node {
                op: Op::Compound {
                    op,
                    left,
                    right,
                    collations: collations.clone(),
                },
                width,
                rows,
            };
            unsorted = (op != CompoundOp::UnionAll).then_some(collations);
        }
        Ok(Compound { node, unsorted })
    }

    /// One SELECT, of whose rows only those count that fulfil the conditions.
    fn arm(&mut self, query: &Query, asked: OfArms<'_>) -> Result<Node> {
        if asked.conditions.is_empty() {
            return self.query_where(query, Vec::new());
        }
        let mut rest = asked.conditions.to_vec();
        let pushed = match plain_outputs(query) {
            Some(outputs) => {
                let conditions = std::mem::take(&mut rest).into_iter();
                let within = |condition| within_query(&condition, asked.source, outputs);
                conditions.map(within).collect()
            }
            None => self.pushed(query, asked.source, &mut rest),
        };
        let node = self.query_where(query, pushed)?;
        let source = asked.source;
        let columns = (0..node.width).map(|column| ColumnRef { source, column });
        self.filtered(node, rest, &Layout::of_columns(columns))
    }
}

/// Whether a query is nothing but SELECTs one after the other.
pub(super) fn is_union_all(query: &Query) -> bool {
    let mut at = query;
    while let Body::Compound { op, left, .. } = &at.body {
        if *op != CompoundOp::UnionAll || !at.order_by.is_empty() || at.limit.is_some() {
            return false;
        }
        at = left;
    }
    matches!(query.body, Body::Compound { .. })
}

/// The columns of a SELECT whose rows are those of its sources, where they can be computed
/// once more, or not at all for a row, without anybody's noticing.
fn plain_outputs(query: &Query) -> Option<&[Expr]> {
    let Body::Block(block) = &query.body else {
        return None;
    };
    let is_quiet = |expr: &Expr| {
        let props = &expr.props;
        props.deterministic && !props.fallible && props.json == JsonText::Never
    };
    let is_plain = block.aggregation.is_none()
        && block.distinct.is_none()
        && block.windows.is_empty()
        && query.limit.is_none()
        && block.outputs.iter().all(is_quiet);
    is_plain.then_some(&block.outputs)
}
