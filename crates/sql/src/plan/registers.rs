//! Whether what a part of a plan yields depends on registers, so that it may change from
//! one pass to the next.

use super::Planner;
use super::physical::{Grouping, LimitClause, Node, Op, Range};
use crate::bind::expr::{Expr, ExprKind};

impl Planner<'_, '_> {
    /// The pass in which a plan yields the same rows whenever it is opened: the one that
    /// is being planned where it reads registers, else the whole run.
    pub fn pass_of(&self, node: &Node) -> usize {
        match self.pass != 0 && self.reads_registers(node) {
            true => self.pass,
            false => 0,
        }
    }

    fn reads_registers(&self, node: &Node) -> bool {
        let mut found = false;
        for_each_expr(&node.op, &mut |expr| {
            found = found || self.reads_register(expr);
        });
        let mut inputs = node.op.inputs().into_iter();
        found || inputs.any(|input| crate::stack::grow(|| self.reads_registers(input)))
    }

    fn reads_register(&self, expr: &Expr) -> bool {
        let mut found = matches!(expr.kind, ExprKind::Register(_));
        let subquery = expr.kind.subquery().and_then(|id| self.subqueries.get(id));
        let bindings = subquery.map_or(&[][..], |s| &s.bindings);
        found = found || bindings.iter().any(|(_, e)| self.reads_register(e));
        expr.kind.for_each_child(&mut |child| {
            found = found || crate::stack::grow(|| self.reads_register(child));
        });
        found
    }
}

/// The expressions of an operator, without those of its inputs.
pub(super) fn for_each_expr(op: &Op, f: &mut dyn FnMut(&Expr)) {
    match op {
        Op::Values(rows) => rows.iter().flatten().for_each(f),
        Op::RepeatedRow { row, .. } => row.iter().for_each(f),
        Op::TableScan { range, .. } => of_range(range, f),
        Op::RowidLookup { keys, .. } => keys.iter().for_each(f),
        Op::IndexScan {
            prefixes, range, ..
        } => {
            prefixes.iter().flatten().for_each(&mut *f);
            of_range(range, f);
        }
        Op::Filter { predicate, .. } => f(predicate),
        Op::Generate { columns, .. } => columns.iter().for_each(|(e, _)| f(e)),
        Op::Project { exprs, .. } => exprs.iter().for_each(f),
        Op::NestedLoopJoin {
            bindings,
            condition,
            ..
        } => {
            bindings.iter().for_each(|(_, e)| f(e));
            condition.iter().for_each(f);
        }
        Op::HashJoin {
            left_keys,
            right_keys,
            condition,
            ..
        } => {
            left_keys.iter().chain(right_keys).for_each(&mut *f);
            condition.iter().for_each(f);
        }
        Op::HashAggregate { grouping, .. } | Op::SortedAggregate { grouping, .. } => {
            of_grouping(grouping, f);
        }
        Op::Sort { keys, top, .. } => {
            keys.iter().for_each(|k| f(&k.expr));
            top.iter().for_each(|top| of_limit(top, f));
        }
        Op::Limit { clause, .. } => of_limit(clause, f),
        Op::TableFunction { args, .. } => args.iter().flatten().for_each(f),
        Op::Window { window, .. } => window.exprs().for_each(f),
        Op::Recursion { order, .. } => order.iter().for_each(|k| f(&k.expr)),
        Op::CountRows(_)
        | Op::Distinct { .. }
        | Op::Compound { .. }
        | Op::Materialize { .. }
        | Op::RowidUnion { .. }
        | Op::CommonRows { .. }
        | Op::RecursiveRows { .. } => {}
    }
}

fn of_range(range: &Range, f: &mut dyn FnMut(&Expr)) {
    let ends = [&range.low, &range.high];
    ends.into_iter().flatten().for_each(|end| f(&end.expr));
}

fn of_limit(clause: &LimitClause, f: &mut dyn FnMut(&Expr)) {
    clause.limit.iter().chain(&clause.offset).for_each(f);
}

fn of_grouping(grouping: &Grouping, f: &mut dyn FnMut(&Expr)) {
    grouping.keys.iter().for_each(|(e, _)| f(e));
    grouping.bare.iter().for_each(&mut *f);
    for call in &grouping.aggregates {
        call.args.iter().chain(&call.filter).for_each(&mut *f);
        call.order_by.iter().for_each(|k| f(&k.expr));
    }
}
