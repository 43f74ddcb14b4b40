//! Aggregation: groups and their keys, and what is answered without reading all rows.

use super::Planner;
use super::block::ascending;
use super::grouped::distinct_argument;
use super::layout::Layout;
use super::physical::{Grouping, LimitClause, Node, Op};
use super::rules;
use crate::bind::expr::{AggregateCall, Expr, ExprKind, Props, SortKey, Windowing};
use crate::bind::logical::{Aggregation, Block, SourceKind};
use crate::error::{Error, Result};
use crate::func::AggregateKind;

/// What is aggregated.
pub(super) struct AggregateInput<'l> {
    pub node: Node,
    pub layout: &'l Layout,
    /// Rows of equal keys are neighbours.
    pub grouped: bool,
    /// The aggregates, with columns in place of subqueries that are joins.
    pub calls: Vec<AggregateCall>,
    /// Within a group rows come in this order.
    pub within: Option<&'l SortKey>,
}

impl Planner<'_, '_> {
    pub(super) fn aggregate(
        &mut self,
        block: &Block,
        aggregation: &Aggregation,
        order_by: &[SortKey],
        input: AggregateInput<'_>,
    ) -> Result<(Node, Layout)> {
        let AggregateInput {
            node: input,
            layout,
            grouped,
            calls,
            within,
        } = input;
        let mut output = Layout::default();
        for (expr, _) in &aggregation.keys {
            output.push_computed(expr.kind.clone());
        }
        (0..calls.len()).for_each(|call| output.push_computed(ExprKind::Aggregate(call)));
        let (keys, aggregates) = self.called_for(input.rows, |this| {
            let keys = aggregation.keys.iter().map(|(expr, collation)| {
                let mut key = this.resolve(expr, layout)?;
                rules::fold(&mut key);
                Ok((key, *collation))
            });
            let keys = keys.collect::<Result<_>>()?;
            let calls = calls.iter().map(|call| this.resolve_call(call, layout));
            Ok::<_, Error>((keys, calls.collect::<Result<_>>()?))
        })?;
        // Those outside aggregates and group keys.
        let above = (block.outputs.iter())
            .chain(&block.having)
            .chain(order_by.iter().map(|k| &k.expr))
            .chain(block.windows.iter().flat_map(Windowing::exprs));
        let is_known = |expr: &Expr| output.computed(expr).is_some();
        let held = self.bare(above, &is_known, layout);
        let mut bare = Vec::with_capacity(held.len());
        for (column, property) in held {
            let at = match property {
                None => layout.column(column),
                Some(property) => layout.property(column, property),
            };
            let at = at.ok_or_else(|| Error::misuse("a column is not in its source"))?;
            bare.push(Expr::input(at, Props::column(None, None)));
            match property {
                None => output.push_computed(ExprKind::Column(column)),
                Some(property) => output.push_property(column, property),
            }
        }
        let (width, groups) = (
            output.width(),
            if aggregation.keys.is_empty() {
                1.0
            } else {
                input.rows * 0.5
            },
        );
        let grouping = Grouping {
            in_order: in_order(aggregation, within),
            keys,
            telling: rules::telling_keys(&aggregation.keys),
            aggregates,
            bare,
            extremum: only_extremum(aggregation),
        };
        let op = aggregate_op(input, grouping, grouped);
        Ok((
            Node {
                op,
                width,
                rows: groups.max(1.0),
            },
            output,
        ))
    }

    /// `SELECT count(*) FROM t` reads the counter.
    pub(super) fn count_rows(
        &mut self,
        block: &Block,
        order_by: &[SortKey],
        limit: Option<&LimitClause>,
    ) -> Result<Option<Node>> {
        let (Some(aggregation), [source]) = (&block.aggregation, block.sources.as_slice()) else {
            return Ok(None);
        };
        let SourceKind::Table(table) = &source.kind else {
            return Ok(None);
        };
        let plain = |c: &AggregateCall| {
            c.args.is_empty() && c.filter.is_none() && c.function.kind == AggregateKind::Count
        };
        let simple = aggregation.keys.is_empty()
            && matches!(aggregation.calls.as_slice(), [call] if plain(call))
            && block.filter.is_empty()
            && block.having.is_empty()
            && block.windows.is_empty()
            && block.distinct.is_none()
            && order_by.is_empty();
        let mut reads_row = false;
        for output in &block.outputs {
            self.for_each_column(output, &mut |_| reads_row = true);
        }
        if !simple || reads_row {
            return Ok(None);
        }
        self.reads(&table.tree);
        let mut layout = Layout::default();
        layout.push_computed(ExprKind::Aggregate(0));
        let node = Node {
            op: Op::CountRows(table.clone()),
            width: 1,
            rows: 1.0,
        };
        let (node, _) = self.project(
            (block, limit),
            node,
            &layout,
            block.outputs.clone(),
            Vec::new(),
        )?;
        self.limited(node, limit).map(Some)
    }

    /// `min(x)` or `max(x)` alone: the order in which its row comes first.
    pub(super) fn extremum_order(&self, block: &Block) -> Vec<SortKey> {
        match (&block.aggregation, block.sources.as_slice()) {
            (Some(aggregation), [_]) if aggregation.keys.is_empty() => {
                match aggregation.calls.as_slice() {
                    [call] if call.filter.is_none() && !call.distinct => {
                        let descending = match call.function.kind {
                            AggregateKind::Min => false,
                            AggregateKind::Max => true,
                            _ => return Vec::new(),
                        };
                        match call.args.as_slice() {
                            [arg]
                                if matches!(arg.kind, ExprKind::Column(_))
                                    && arg.collation() == call.collation =>
                            {
                                let (expr, collation) = (arg.clone(), call.collation);
                                vec![SortKey {
                                    expr,
                                    collation,
                                    descending,
                                    nulls_first: !descending,
                                }]
                            }
                            _ => Vec::new(),
                        }
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }
}

/// The calls, by position, whose DISTINCT argument the rows of a group are in order of.
fn in_order(aggregation: &Aggregation, within: Option<&SortKey>) -> Vec<usize> {
    let calls = aggregation.calls.iter().enumerate();
    let in_order = calls.filter(|(_, call)| {
        let argument = distinct_argument(call);
        argument.is_some() && argument.as_ref() == within
    });
    in_order.map(|(at, _)| at).collect()
}

/// The only min() or max(), by position.
fn only_extremum(aggregation: &Aggregation) -> Option<usize> {
    let is_extremum = |call: &AggregateCall| {
        matches!(call.function.kind, AggregateKind::Min | AggregateKind::Max)
    };
    let calls = aggregation.calls.iter().enumerate();
    let mut extrema = calls.filter(|(_, call)| is_extremum(call));
    match (extrema.next(), extrema.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

/// Whether the state of a group may grow with its rows.
pub(super) fn grows(call: &AggregateCall) -> bool {
    let is_growing = matches!(
        call.function.kind,
        AggregateKind::GroupConcat | AggregateKind::User
    );
    call.distinct || !call.order_by.is_empty() || is_growing
}

/// Groups by sorting where the state of a group may grow with its rows, so that
/// one group is in memory at a time; else by hashing.
fn aggregate_op(input: Node, grouping: Grouping, grouped: bool) -> Op {
    let grows = grouping.aggregates.iter().any(grows);
    let hashable = grouping.keys.iter().all(|(_, it)| !it.is_of_program());
    let sortable = grouping.keys.iter().all(|(e, _)| e.props.deterministic);
    if grouped || grouping.keys.is_empty() {
        let input = Box::new(input);
        return Op::SortedAggregate { input, grouping };
    }
    if !grows && hashable || !sortable {
        let input = Box::new(input);
        return Op::HashAggregate { input, grouping };
    }
    let keys = grouping.keys.iter();
    let keys = keys.map(|(expr, collation)| ascending(expr.clone(), *collation));
    let (width, rows) = (input.width, input.rows);
    let sorted = Op::Sort {
        keys: keys.collect(),
        input: Box::new(input),
        top: None,
    };
    let input = Box::new(Node {
        op: sorted,
        width,
        rows,
    });
    Op::SortedAggregate { input, grouping }
}
