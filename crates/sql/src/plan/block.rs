//! One query: its body, then projection, DISTINCT, ORDER BY, LIMIT.

use super::Planner;
use super::aggregate::AggregateInput;
use super::arms::{Compound, OfArms};
use super::grouped;
use super::layout::Layout;
use super::outer::Goal;
use super::physical::{LimitClause, Node, Op};
use super::rules;
use super::window;
use crate::bind::expr::{Expr, ExprKind, SortKey};
use crate::bind::logical::{Aggregation, Block, Body, Query};
use crate::error::{Error, Result};
use crate::value::{Collation, Value};

/// The rows that a LIMIT lets through, where that is not known.
const ROWS_OF_LIMIT: f64 = 100.0;

impl Planner<'_, '_> {
    /// The plan of a query; its row is the result row.
    pub fn query(&mut self, query: &Query) -> Result<Node> {
        let (node, keys) = match &query.body {
            Body::Block(_) => return self.query_where(query, Vec::new()),
            Body::Values(rows) => {
                self.any_order = false;
                (self.values_node(rows)?, query.order_by.clone())
            }
            Body::Compound { .. } => {
                let any_order = std::mem::take(&mut self.any_order) && query.limit.is_none();
                self.any_order = any_order;
                let Compound { node, unsorted } = self.compound(query, OfArms::NONE)?;
                let mut keys = query.order_by.clone();
                if !any_order {
                    add_columns(&mut keys, unsorted.unwrap_or_default());
                }
                (node, keys)
            }
            Body::Recursion(recursion) => {
                self.any_order = false;
                let node = self.recursion(recursion, &query.order_by)?;
                return self.limited(node, query.limit.as_ref());
            }
        };
        let node = self.sorted(node, keys, query.limit.as_ref())?;
        self.limited(node, query.limit.as_ref())
    }

    /// The plan of a query that is one SELECT, with these conditions besides its own.
    pub(super) fn query_where(&mut self, query: &Query, pushed: Vec<Expr>) -> Result<Node> {
        match &query.body {
            Body::Block(block) => self.block(block, &query.order_by, query.limit.as_ref(), pushed),
            _ if pushed.is_empty() => self.query(query),
            _ => Err(Error::misuse("conditions within what is no SELECT")),
        }
    }

    fn values_node(&mut self, rows: &[Vec<Expr>]) -> Result<Node> {
        let width = rows.first().map_or(0, Vec::len);
        let count = rows.len() as f64;
        let resolved = self.called_for(count, |this| {
            let mut value = |expr: &Expr| {
                let mut expr = expr.clone();
                rules::fold(&mut expr);
                this.resolve_constant(&expr)
            };
            let rows = rows.iter().map(|row| row.iter().map(&mut value).collect());
            rows.collect::<Result<_>>()
        })?;
        Ok(Node {
            op: Op::Values(resolved),
            width,
            rows: count,
        })
    }

    fn block(
        &mut self,
        block: &Block,
        order_by: &[SortKey],
        limit: Option<&LimitClause>,
        pushed: Vec<Expr>,
    ) -> Result<Node> {
        let any_order = std::mem::take(&mut self.any_order) && limit.is_none();
        let any_order = self.hides_order(block, order_by, any_order);
        if let Some(node) = self.count_rows(block, order_by, limit)? {
            return Ok(node);
        }
        let mut filter = simplified(block, pushed);
        let (mut exprs, mut keys) = (block.outputs.clone(), order_by.to_vec());
        let calls = block.aggregation.as_ref().map(|it| it.calls.clone());
        let mut calls = calls.unwrap_or_default();
        let singles = self.singles(block, &mut filter, &mut exprs, &mut keys, &mut calls)?;
        let mut limit_shows = limit.filter(|_| window::streams(block));
        let mut wanted = self.wanted_order(block, order_by, limit_shows.is_some());
        let mut is_wanted = !wanted.is_empty();
        if wanted.is_empty() {
            wanted = grouped::wanted_order(block);
            let aggregation = block.aggregation.as_ref();
            let is_by_keys = aggregation.is_some_and(|it| grouped::is_by_keys(it, order_by));
            is_wanted = is_by_keys && !wanted.is_empty();
        }
        // The first rows will not do where all must be sorted.
        let is_sorted = !order_by.is_empty() || block.aggregation.is_some();
        limit_shows = limit_shows.filter(|_| is_wanted || !is_sorted);
        let of_distinct = grouped::order_of_distinct(block, order_by);
        let goal = Goal {
            order: &wanted,
            within: &of_distinct,
            limited: limit_shows.is_some(),
            first: limit_shows.map(rows_until),
            any_order,
            all: block.aggregation.is_some(),
        };
        let sourced = self.sources(block, filter, order_by, singles, &goal)?;
        let (mut node, mut layout) = (sourced.node, sourced.layout);
        if sourced.within {
            let of_groups = block.aggregation.as_ref().map_or(0, |_| wanted.len());
            self.read_firsts(block, &mut node, of_groups + of_distinct.len());
        }
        let mut ordered = sourced.within || sourced.ordered && !wanted.is_empty();
        let mut groups = Vec::new();
        if let Some(aggregation) = &block.aggregation {
            ordered &= !aggregation.keys.is_empty();
            let input = AggregateInput {
                node,
                layout: &layout,
                grouped: ordered,
                calls,
                within: of_distinct.first().filter(|_| sourced.within),
            };
            (node, layout) = self.aggregate(block, aggregation, order_by, input)?;
            node = self.filtered(node, block.having.clone(), &layout)?;
            groups = group_order(aggregation, order_by);
        }
        if !block.windows.is_empty() {
            let given = if ordered { wanted.as_slice() } else { &[] };
            let windowed = self.windows(block, node, &layout, given, groups)?;
            (node, layout) = (windowed.node, windowed.layout);
            if window::begins_with(&windowed.order, &keys, &layout) {
                keys.clear();
            }
        } else if ordered && is_wanted {
            keys.clear();
        } else {
            keys.extend(groups);
        }
        let visible = exprs.len();
        let (node, keys) = self.project((block, limit), node, &layout, exprs, keys)?;
        let node = match &block.distinct {
            Some(collations) => distinct(
                node,
                collations,
                sourced.within && block.aggregation.is_none(),
            ),
            None => node,
        };
        let node = self.sorted(node, keys, limit)?;
        let node = self.limited(node, limit)?;
        Ok(trimmed(node, visible))
    }

    /// Projects the outputs and what ORDER BY needs beyond them; gives the sort
    /// keys over that row.
    pub(super) fn project(
        &mut self,
        (block, limit): (&Block, Option<&LimitClause>),
        node: Node,
        layout: &Layout,
        mut exprs: Vec<Expr>,
        keys: Vec<SortKey>,
    ) -> Result<(Node, Vec<SortKey>)> {
        let limit = limit.filter(|_| keys.is_empty() && block.distinct.is_none());
        let computed = node.rows.min(limit.map_or(f64::INFINITY, rows_until));
        let mut sort = Vec::with_capacity(keys.len());
        for key in keys {
            let same = |e: &Expr| e.kind == key.expr.kind;
            let at = match exprs.iter().take(block.outputs.len()).position(same) {
                Some(at) => at,
                None => {
                    exprs.push(key.expr.clone());
                    exprs.len() - 1
                }
            };
            sort.push(SortKey {
                expr: Expr::input(at, key.expr.props),
                ..key
            });
        }
        // Folded only now: what the layout has computed is known by its shape.
        self.called_for(computed, |this| this.resolve_each(&mut exprs, layout))?;
        exprs.iter_mut().for_each(rules::fold);
        let identity = exprs.len() == node.width
            && exprs
                .iter()
                .enumerate()
                .all(|(i, e)| matches!(e.kind, ExprKind::Input(at) if at == i));
        if identity {
            return Ok((node, sort));
        }
        let (width, rows) = (exprs.len(), node.rows);
        Ok((
            Node {
                op: Op::Project {
                    input: Box::new(node),
                    exprs,
                },
                width,
                rows,
            },
            sort,
        ))
    }

    fn sorted(
        &mut self,
        node: Node,
        keys: Vec<SortKey>,
        limit: Option<&LimitClause>,
    ) -> Result<Node> {
        if keys.is_empty() {
            return Ok(node);
        }
        let top = self.resolve_limit(limit)?.filter(|l| l.limit.is_some());
        let (width, rows) = (node.width, node.rows);
        Ok(Node {
            op: Op::Sort {
                input: Box::new(node),
                keys,
                top,
            },
            width,
            rows,
        })
    }

    pub(super) fn limited(&mut self, node: Node, limit: Option<&LimitClause>) -> Result<Node> {
        let Some(clause) = self.resolve_limit(limit)? else {
            return Ok(node);
        };
        let (width, rows) = (node.width, node.rows.min(rows_at_most(&clause)));
        Ok(Node {
            op: Op::Limit {
                input: Box::new(node),
                clause,
            },
            width,
            rows,
        })
    }

    /// The order of the sources' rows that would spare a sort: ORDER BY's. DISTINCT keeps it,
    /// but often leaves few rows to be sorted, so that it is only wanted where a LIMIT lets
    /// the first ones do.
    fn wanted_order(&self, block: &Block, order_by: &[SortKey], limited: bool) -> Vec<SortKey> {
        if !block.windows.is_empty() && block.aggregation.is_none() {
            return window::wanted_order(block);
        }
        if block.aggregation.is_some() || block.distinct.is_some() && !limited {
            return self.extremum_order(block);
        }
        let plain = |k: &SortKey| matches!(k.expr.kind, ExprKind::Column(_));
        if order_by.iter().all(plain) {
            order_by.to_vec()
        } else {
            Vec::new()
        }
    }
}

/// About how many rows a LIMIT lets through. What is not known before it runs is a page, as a
/// rule, or the next few of a queue.
pub(super) fn rows_at_most(clause: &LimitClause) -> f64 {
    match clause.limit.as_ref().map(|limit| &limit.kind) {
        None => f64::INFINITY,
        Some(ExprKind::Literal(Value::Integer(limit))) if *limit < 0 => f64::INFINITY,
        Some(ExprKind::Literal(Value::Integer(limit))) => *limit as f64,
        Some(_) => ROWS_OF_LIMIT,
    }
}

/// About how many rows are made until a LIMIT has all of its own: those it passes over too.
fn rows_until(clause: &LimitClause) -> f64 {
    let offset = match clause.offset.as_ref().map(|offset| &offset.kind) {
        Some(ExprKind::Literal(Value::Integer(offset))) => (*offset).max(0) as f64,
        _ => 0.0,
    };
    rows_at_most(clause) + offset
}

/// The conditions of a block, with those that are pushed into it.
pub(super) fn simplified(block: &Block, pushed: Vec<Expr>) -> Vec<Expr> {
    let mut conditions = Vec::with_capacity(block.filter.len() + pushed.len());
    for mut condition in block.filter.iter().cloned().chain(pushed) {
        rules::fold(&mut condition);
        rules::common_conjuncts(condition, &mut conditions);
    }
    conditions.into_iter().map(rules::or_to_in).collect()
}

fn distinct(node: Node, collations: &[Collation], neighbours: bool) -> Node {
    let (width, rows) = (node.width, node.rows);
    Node {
        op: Op::Distinct {
            input: Box::new(node),
            collations: collations.to_vec(),
            neighbours,
        },
        width,
        rows,
    }
}

/// SQLite's groups come in order of their keys, each in the direction of the ORDER BY
/// term beside it where there are as many.
fn group_order(aggregation: &Aggregation, order_by: &[SortKey]) -> Vec<SortKey> {
    let beside = order_by.len() == aggregation.keys.len();
    let keys = aggregation.keys.iter().enumerate();
    keys.map(|(i, (expr, collation))| {
        let descending = beside && order_by.get(i).is_some_and(|k| k.descending);
        SortKey {
            expr: expr.clone(),
            collation: *collation,
            descending,
            nulls_first: !descending,
        }
    })
    .collect()
}

pub(super) fn ascending(expr: Expr, collation: Collation) -> SortKey {
    SortKey {
        expr,
        collation,
        descending: false,
        nulls_first: true,
    }
}

/// Sorts by all columns, each behind those before it.
pub(super) fn sort_by_columns(node: Node, collations: &[Collation]) -> Node {
    let mut keys = Vec::with_capacity(collations.len());
    add_columns(&mut keys, collations);
    let (width, rows) = (node.width, node.rows);
    Node {
        op: Op::Sort {
            input: Box::new(node),
            keys,
            top: None,
        },
        width,
        rows,
    }
}

/// Adds all columns to the keys of a sort, but for those that tell no more rows apart.
fn add_columns(keys: &mut Vec<SortKey>, collations: &[Collation]) {
    let props = crate::bind::expr::Props::column(None, None);
    let asked = keys.len();
    for (column, collation) in collations.iter().enumerate() {
        let is_there = |key: &SortKey| {
            matches!(key.expr.kind, ExprKind::Input(input) if input == column)
                && key.collation == *collation
        };
        if !keys[..asked].iter().any(is_there) {
            keys.push(ascending(Expr::input(column, props), *collation));
        }
    }
}

/// Drops what only ORDER BY needed.
fn trimmed(node: Node, visible: usize) -> Node {
    if node.width == visible {
        return node;
    }
    let props = crate::bind::expr::Props::column(None, None);
    let exprs = (0..visible).map(|i| Expr::input(i, props)).collect();
    let rows = node.rows;
    Node {
        op: Op::Project {
            input: Box::new(node),
            exprs,
        },
        width: visible,
        rows,
    }
}
