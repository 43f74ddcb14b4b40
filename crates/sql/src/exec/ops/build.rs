//! From a plan's nodes to operators.

use super::BoxOperator;
use super::aggregate::{HashAggregate, SortedAggregate};
use super::common_rows::CommonRows;
use super::compound::Compound;
use super::count::CountRows;
use super::deep::Deep;
use super::distinct::Distinct;
use super::distinct_neighbours::DistinctNeighbours;
use super::filter::Filter;
use super::generate::Generate;
use super::hash_join::{self, HashJoin};
use super::index_scan::{self, IndexScan};
use super::limit::Limit;
use super::lookup::RowidLookup;
use super::materialize::Materialize;
use super::nested_loop::NestedLoopJoin;
use super::project::Project;
use super::recursion::{self, Recursion};
use super::recursive_rows::RecursiveRows;
use super::repeated_row::RepeatedRow;
use super::scan::TableScan;
use super::sort::Sort;
use super::table_function::TableFunction;
use super::values::Values;
use super::window::Window;
use crate::plan::physical::{Node, Op};

/// Of the operators below one another each one so far down makes sure of its stack.
const DEEP: usize = 16;

/// The operators of a plan.
pub fn build(node: &Node) -> BoxOperator {
    build_below(node, 0)
}

/// Those of a node with so many above it.
fn build_below(node: &Node, above: usize) -> BoxOperator {
    let operator = crate::stack::grow(|| operator(node, above));
    match above > 0 && above.is_multiple_of(DEEP) {
        true => Box::new(Deep::new(operator)),
        false => operator,
    }
}

fn operator(node: &Node, above: usize) -> BoxOperator {
    let build = |input: &Node| build_below(input, above + 1);
    match &node.op {
        Op::Values(rows) => Box::new(Values::new(rows.clone(), node.width)),
        Op::RepeatedRow { row, parameters } => Box::new(RepeatedRow::new(row.clone(), *parameters)),
        Op::TableScan {
            table,
            columns,
            range,
            reverse,
        } => Box::new(TableScan::new(table, columns, range.clone(), *reverse)),
        Op::RowidLookup {
            table,
            columns,
            keys,
            reverse,
        } => Box::new(RowidLookup::new(table, columns, keys.clone(), *reverse)),
        Op::RowidUnion {
            table,
            columns,
            inputs,
        } => {
            let inputs = inputs.iter().map(build).collect();
            Box::new(RowidLookup::of_any(table, columns, inputs))
        }
        Op::IndexScan {
            table,
            index,
            columns,
            covering,
            prefixes,
            null_matches,
            range,
            reverse,
            firsts,
            gathered,
        } => Box::new(IndexScan::new(&index_scan::Spec {
            table,
            index,
            columns,
            covering: *covering,
            prefixes,
            null_matches,
            range,
            reverse: *reverse,
            firsts: *firsts,
            gathered: *gathered,
        })),
        Op::CountRows(table) => Box::new(CountRows::new(table.clone())),
        Op::Filter { input, predicate } => Box::new(Filter::new(build(input), predicate.clone())),
        Op::Generate { input, columns } => {
            Box::new(Generate::new(build(input), input.width, columns.clone()))
        }
        // Nothing of nothing: rows that only count.
        Op::Project { input, exprs } if exprs.is_empty() && input.width == 0 => build(input),
        Op::Project { input, exprs } => Box::new(Project::new(build(input), exprs.clone())),
        Op::NestedLoopJoin { .. } | Op::HashJoin { .. } => build_join(node, above),
        Op::HashAggregate { input, grouping } => {
            Box::new(HashAggregate::new(build(input), grouping.clone()))
        }
        Op::SortedAggregate { input, grouping } => {
            Box::new(SortedAggregate::new(build(input), grouping.clone()))
        }
        Op::Sort { input, keys, top } => Box::new(Sort::new(
            build(input),
            keys.clone(),
            top.clone(),
            node.width,
        )),
        Op::Limit { input, clause } => Box::new(Limit::new(build(input), clause.clone())),
        Op::Window { input, window } => Box::new(Window::new(build(input), input.width, window)),
        Op::Distinct {
            input,
            collations,
            neighbours,
        } => match neighbours {
            true => Box::new(DistinctNeighbours::new(build(input), collations.clone())),
            false => Box::new(Distinct::new(build(input), collations.clone())),
        },
        Op::Compound {
            op,
            left,
            right,
            collations,
        } => Box::new(Compound::new(
            *op,
            build(left),
            build(right),
            collations.clone(),
        )),
        Op::Materialize { input, pass } => {
            Box::new(Materialize::new(build(input), node.width, *pass))
        }
        Op::Recursion {
            table,
            initial,
            step,
            distinct,
            order,
            by_batch,
            ..
        } => Box::new(Recursion::new(
            build(initial),
            build(step),
            recursion::Spec {
                table: *table,
                distinct: distinct.clone(),
                order: order.clone(),
                by_batch: *by_batch,
                width: node.width,
            },
        )),
        Op::TableFunction {
            function,
            args,
            columns,
        } => Box::new(TableFunction::new(
            &**function,
            args.clone(),
            columns.clone(),
        )),
        Op::CommonRows { subquery, .. } => Box::new(CommonRows::new(*subquery)),
        Op::RecursiveRows { table, .. } => Box::new(RecursiveRows::new(*table, node.width)),
    }
}

fn build_join(node: &Node, above: usize) -> BoxOperator {
    let build = |input: &Node| build_below(input, above + 1);
    match &node.op {
        Op::NestedLoopJoin {
            left,
            right,
            kind,
            bindings,
            condition,
        } => Box::new(NestedLoopJoin::new(
            build(left),
            build(right),
            *kind,
            bindings.clone(),
            condition.clone(),
            node.width,
        )),
        Op::HashJoin {
            left,
            right,
            kind,
            left_keys,
            right_keys,
            comparisons,
            condition,
            kept,
        } => Box::new(HashJoin::new(
            build(left),
            build(right),
            hash_join::Spec {
                kind: *kind,
                left_keys: left_keys.clone(),
                right_keys: right_keys.clone(),
                comparisons: comparisons.clone(),
                condition: condition.clone(),
                width: node.width,
                kept: *kept,
            },
        )),
        _ => Box::new(Values::new(Vec::new(), node.width)),
    }
}
