//! One query: its body, then aggregation, projection, DISTINCT, ORDER BY, LIMIT.

use std::collections::BTreeSet;

use super::Planner;
use super::join::Needed;
use super::layout::Layout;
use super::order::{Condition, Item, Problem};
use super::physical::{CompoundOp, Grouping, LimitClause, Node, Op};
use super::rules;
use crate::bind::expr::{ColumnRef, Expr, ExprKind, SortKey};
use crate::bind::logical::{Aggregation, Block, Body, Query, SourceKind};
use crate::error::{Error, Result};
use crate::func::AggregateKind;
use crate::value::Collation;

impl Planner<'_, '_> {
    /// The plan of a query; its row is the result row.
    pub fn query(&mut self, query: &Query) -> Result<Node> {
        let node = match &query.body {
            Body::Block(block) => return self.block(block, &query.order_by, query.limit.as_ref()),
            Body::Values(rows) => self.values_node(rows)?,
            Body::Compound { .. } => self.compound(query)?,
        };
        let keys = query.order_by.clone();
        let node = self.sorted(node, keys, query.limit.as_ref())?;
        self.limited(node, query.limit.as_ref())
    }

    fn values_node(&mut self, rows: &[Vec<Expr>]) -> Result<Node> {
        let width = rows.first().map_or(0, Vec::len);
        let mut resolved = Vec::with_capacity(rows.len());
        for row in rows {
            let mut out = Vec::with_capacity(row.len());
            for expr in row {
                let mut expr = expr.clone();
                rules::fold(&mut expr);
                out.push(self.resolve_constant(&expr)?);
            }
            resolved.push(out);
        }
        let rows = resolved.len() as f64;
        Ok(Node {
            op: Op::Values(resolved),
            width,
            rows,
        })
    }

    /// Left-deep chains of one compound after the other, without recursion on
    /// their length.
    fn compound(&mut self, query: &Query) -> Result<Node> {
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
        let mut node = match &at.body {
            Body::Block(block) => self.block(block, &[], None)?,
            Body::Values(rows) => self.values_node(rows)?,
            Body::Compound { .. } => return Err(Error::misuse("a compound that is none")),
        };
        for (op, right, collations) in terms.into_iter().rev() {
            let right = self.query(right)?;
            let (width, rows) = (node.width, node.rows + right.rows);
            let (left, right) = (Box::new(node), Box::new(right));
            let collations = collations.clone();
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
            if op != CompoundOp::UnionAll {
                node = sort_by_columns(node, &collations);
            }
        }
        Ok(node)
    }

    fn block(
        &mut self,
        block: &Block,
        order_by: &[SortKey],
        limit: Option<&LimitClause>,
    ) -> Result<Node> {
        if let Some(node) = self.count_rows(block, order_by, limit)? {
            return Ok(node);
        }
        let mut filter: Vec<Expr> = block.filter.clone();
        for condition in &mut filter {
            rules::fold(condition);
        }
        let filter: Vec<Expr> = filter.into_iter().map(rules::or_to_in).collect();
        let wanted = self.wanted_order(block, order_by);
        let (mut node, mut layout, ordered) =
            self.sources(block, &filter, order_by, &wanted, limit.is_some())?;
        let mut keys = order_by.to_vec();
        let mut ordered = ordered && !wanted.is_empty() && block.aggregation.is_none();
        if let Some(aggregation) = &block.aggregation {
            (node, layout) = self.aggregate(block, aggregation, order_by, node, &layout)?;
            node = self.filtered(node, block.having.clone(), &layout)?;
            // SQLite's groups come in order of their keys, each in the direction
            // of the ORDER BY term beside it where there are as many.
            let beside = order_by.len() == aggregation.keys.len();
            for (i, (expr, collation)) in aggregation.keys.iter().enumerate() {
                let descending = beside && order_by.get(i).is_some_and(|k| k.descending);
                let (expr, collation) = (expr.clone(), *collation);
                keys.push(SortKey {
                    expr,
                    collation,
                    descending,
                    nulls_first: !descending,
                });
            }
            ordered = false;
        }
        if ordered {
            keys.clear();
        }
        let exprs = block.outputs.clone();
        let visible = exprs.len();
        let (node, keys) = self.project(block, node, &layout, exprs, keys)?;
        let node = match &block.distinct {
            None => node,
            Some(collations) => {
                let (width, rows) = (node.width, node.rows);
                let collations = collations.clone();
                Node {
                    op: Op::Distinct {
                        input: Box::new(node),
                        collations,
                    },
                    width,
                    rows,
                }
            }
        };
        let node = self.sorted(node, keys, limit)?;
        let node = self.limited(node, limit)?;
        Ok(trimmed(node, visible))
    }

    /// Projects the outputs and what ORDER BY needs beyond them; gives the sort
    /// keys over that row.
    fn project(
        &mut self,
        block: &Block,
        node: Node,
        layout: &Layout,
        mut exprs: Vec<Expr>,
        keys: Vec<SortKey>,
    ) -> Result<(Node, Vec<SortKey>)> {
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
        let mut exprs = self.resolve_all(&exprs, layout)?;
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

    fn limited(&mut self, node: Node, limit: Option<&LimitClause>) -> Result<Node> {
        let Some(clause) = self.resolve_limit(limit)? else {
            return Ok(node);
        };
        let (width, rows) = (node.width, node.rows);
        Ok(Node {
            op: Op::Limit {
                input: Box::new(node),
                clause,
            },
            width,
            rows,
        })
    }

    /// The order of the sources' rows that would spare a sort: ORDER BY's.
    fn wanted_order(&self, block: &Block, order_by: &[SortKey]) -> Vec<SortKey> {
        if block.aggregation.is_some() || block.distinct.is_some() {
            return self.extremum_order(block);
        }
        let plain = |k: &SortKey| matches!(k.expr.kind, ExprKind::Column(_));
        if order_by.iter().all(plain) {
            order_by.to_vec()
        } else {
            Vec::new()
        }
    }

    /// `min(x)` or `max(x)` alone: the order in which its row comes first.
    fn extremum_order(&self, block: &Block) -> Vec<SortKey> {
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

    /// The joined and filtered sources.
    fn sources(
        &mut self,
        block: &Block,
        filter: &[Expr],
        order_by: &[SortKey],
        wanted: &[SortKey],
        limited: bool,
    ) -> Result<(Node, Layout, bool)> {
        let conditions: Vec<Condition> = filter.iter().map(|e| self.condition(e.clone())).collect();
        if block.sources.is_empty() {
            let one = Node {
                op: Op::Values(vec![Vec::new()]),
                width: 0,
                rows: 1.0,
            };
            let layout = Layout::default();
            let node = self.filtered(one, filter.to_vec(), &layout)?;
            return Ok((node, layout, wanted.is_empty()));
        }
        let mut needed = self.needed(block, Some(filter), order_by);
        let mut shown = self.needed(block, None, order_by);
        let mut items = Vec::with_capacity(block.sources.len());
        for source in &block.sources {
            let on = match &source.left_join {
                Some(on) if !filter.iter().any(|c| rules::rejects_null(c, source.id)) => {
                    Some(on.iter().map(|e| self.condition(e.clone())).collect())
                }
                _ => None,
            };
            let rows = self.source_rows(source);
            items.push(Item {
                source,
                needed: needed.remove(&source.id).unwrap_or_default(),
                shown: shown.remove(&source.id).unwrap_or_default(),
                on,
                rows,
            });
        }
        // ON of a LEFT JOIN that has become an inner one joins the rest.
        let mut all = conditions;
        for (source, item) in block.sources.iter().zip(&items) {
            if let (Some(on), None) = (&source.left_join, &item.on) {
                all.extend(on.iter().map(|e| self.condition(e.clone())));
            }
        }
        let last: Vec<Expr> = all
            .iter()
            .filter(|c| !c.movable)
            .map(|c| c.expr.clone())
            .collect();
        let extremum = block.aggregation.is_some() && !wanted.is_empty();
        let problem = Problem {
            items: &items,
            conditions: &all,
            order: wanted,
            limited: limited || extremum,
        };
        let joined = self.join(&problem)?;
        let mut node = self.filtered(joined.node, last, &joined.layout)?;
        if extremum && joined.ordered {
            node = self.first_row(node, wanted, &joined.layout)?;
        }
        Ok((node, joined.layout, joined.ordered))
    }

    /// The first row whose key is not NULL is all that min() or max() needs.
    fn first_row(&mut self, node: Node, wanted: &[SortKey], layout: &Layout) -> Result<Node> {
        let Some(key) = wanted.first() else {
            return Ok(node);
        };
        let kind = ExprKind::IsNull {
            expr: Box::new(key.expr.clone()),
            negated: true,
        };
        let node = self.filtered(node, vec![Expr::operator(kind)], layout)?;
        let width = node.width;
        let limit = Some(Expr::literal(crate::value::Value::Integer(1)));
        let clause = LimitClause {
            limit,
            offset: None,
        };
        Ok(Node {
            op: Op::Limit {
                input: Box::new(node),
                clause,
            },
            width,
            rows: 1.0,
        })
    }

    fn condition(&self, expr: Expr) -> Condition {
        let sources = self.sources_of(&expr);
        let movable = expr.props.deterministic && !expr.props.fallible;
        Condition {
            expr,
            sources,
            movable,
        }
    }

    /// The columns of each source that anything in the block reads.
    /// With `filter` None: of each source's columns those that are read above the
    /// joins.
    fn needed(&self, block: &Block, filter: Option<&[Expr]>, order_by: &[SortKey]) -> Needed {
        let mut columns: BTreeSet<ColumnRef> = BTreeSet::new();
        let mut add = |expr: &Expr| self.collect_columns(expr, &mut columns);
        block.having.iter().chain(&block.outputs).for_each(&mut add);
        order_by.iter().for_each(|k| add(&k.expr));
        if let Some(filter) = filter {
            let on = block.sources.iter().filter_map(|s| s.left_join.as_ref());
            filter.iter().chain(on.flatten()).for_each(&mut add);
        }
        if let Some(aggregation) = &block.aggregation {
            aggregation.keys.iter().for_each(|(e, _)| add(e));
            for call in &aggregation.calls {
                call.args.iter().chain(&call.filter).for_each(&mut add);
                call.order_by.iter().for_each(|k| add(&k.expr));
            }
        }
        let mut needed = Needed::new();
        for column in columns {
            needed
                .entry(column.source)
                .or_default()
                .insert(column.column);
        }
        needed
    }

    fn aggregate(
        &mut self,
        block: &Block,
        aggregation: &Aggregation,
        order_by: &[SortKey],
        input: Node,
        layout: &Layout,
    ) -> Result<(Node, Layout)> {
        let mut output = Layout::default();
        let mut keys = Vec::with_capacity(aggregation.keys.len());
        for (expr, collation) in &aggregation.keys {
            output.push_computed(expr.kind.clone());
            let mut key = self.resolve(expr, layout)?;
            rules::fold(&mut key);
            keys.push((key, *collation));
        }
        let mut aggregates = Vec::with_capacity(aggregation.calls.len());
        for (i, call) in aggregation.calls.iter().enumerate() {
            output.push_computed(ExprKind::Aggregate(i));
            aggregates.push(self.resolve_call(call, layout)?);
        }
        let mut bare_columns = BTreeSet::new();
        for expr in block
            .outputs
            .iter()
            .chain(&block.having)
            .chain(order_by.iter().map(|k| &k.expr))
        {
            self.bare_columns(expr, &output, &mut bare_columns);
        }
        let mut bare = Vec::with_capacity(bare_columns.len());
        for column in bare_columns {
            let at = layout
                .column(column)
                .ok_or_else(|| Error::misuse("a column is not in its source"))?;
            bare.push(Expr::input(
                at,
                crate::bind::expr::Props::column(None, None),
            ));
            output.push_computed(ExprKind::Column(column));
        }
        let mut extrema =
            aggregation.calls.iter().enumerate().filter(|(_, c)| {
                matches!(c.function.kind, AggregateKind::Min | AggregateKind::Max)
            });
        let extremum = match (extrema.next(), extrema.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        };
        let (width, groups) = (
            output.width(),
            if keys.is_empty() {
                1.0
            } else {
                input.rows * 0.5
            },
        );
        let grouping = Grouping {
            keys,
            telling: rules::telling_keys(&aggregation.keys),
            aggregates,
            bare,
            extremum,
        };
        let op = aggregate_op(input, grouping);
        Ok((
            Node {
                op,
                width,
                rows: groups.max(1.0),
            },
            output,
        ))
    }

    /// Columns outside aggregates and group keys.
    fn bare_columns(&self, expr: &Expr, output: &Layout, out: &mut BTreeSet<ColumnRef>) {
        if output.computed(expr).is_some() {
            return;
        }
        match &expr.kind {
            ExprKind::Column(column) => {
                out.insert(*column);
            }
            ExprKind::Exists(id)
            | ExprKind::ScalarSubquery(id)
            | ExprKind::InSubquery { subquery: id, .. } => {
                for (_, binding) in self.logical.get(*id).map_or(&[][..], |s| &s.bindings) {
                    self.bare_columns(binding, output, out);
                }
            }
            _ => {}
        }
        expr.kind.for_each_child(&mut |child| {
            crate::stack::grow(|| self.bare_columns(child, output, out))
        });
    }

    /// `SELECT count(*) FROM t` reads the counter.
    fn count_rows(
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
        let plain = |c: &crate::bind::expr::AggregateCall| {
            c.args.is_empty() && c.filter.is_none() && c.function.kind == AggregateKind::Count
        };
        let simple = aggregation.keys.is_empty()
            && matches!(aggregation.calls.as_slice(), [call] if plain(call))
            && block.filter.is_empty()
            && block.having.is_empty()
            && block.distinct.is_none()
            && order_by.is_empty();
        let mut columns = BTreeSet::new();
        block
            .outputs
            .iter()
            .for_each(|e| self.collect_columns(e, &mut columns));
        if !simple || !columns.is_empty() {
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
        let (node, _) = self.project(block, node, &layout, block.outputs.clone(), Vec::new())?;
        self.limited(node, limit).map(Some)
    }
}

/// Groups by sorting where the state of a group may grow with its rows, so that
/// one group is in memory at a time; else by hashing.
fn aggregate_op(input: Node, grouping: Grouping) -> Op {
    let grows = grouping.aggregates.iter().any(|call| {
        call.distinct
            || !call.order_by.is_empty()
            || call.function.kind == AggregateKind::GroupConcat
    });
    let sortable = grouping.keys.iter().all(|(e, _)| e.props.deterministic);
    if grouping.keys.is_empty() {
        let input = Box::new(input);
        return Op::SortedAggregate { input, grouping };
    }
    if !grows || !sortable {
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

fn ascending(expr: Expr, collation: Collation) -> SortKey {
    SortKey {
        expr,
        collation,
        descending: false,
        nulls_first: true,
    }
}

/// UNION, INTERSECT and EXCEPT yield their rows in order, as SQLite's do.
fn sort_by_columns(node: Node, collations: &[Collation]) -> Node {
    let props = crate::bind::expr::Props::column(None, None);
    let keys = collations
        .iter()
        .enumerate()
        .map(|(i, c)| ascending(Expr::input(i, props), *c))
        .collect();
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
