//! One query: its body, then projection, DISTINCT, ORDER BY, LIMIT.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Planner;
use super::access;
use super::aggregate::AggregateInput;
use super::facts::Facts;
use super::grouped;
use super::join::{Joined, Needed};
use super::layout::Layout;
use super::order::{Condition, Item, Problem};
use super::outer::{Goal, Reads};
use super::physical::{CompoundOp, LimitClause, Node, Op};
use super::rules;
use super::window;
use crate::bind::expr::{ColumnRef, Expr, ExprKind, SortKey, Windowing};
use crate::bind::logical::{Aggregation, Block, Body, Query, Source, SourceKind};
use crate::error::{Error, Result};
use crate::schema::Index;
use crate::value::Collation;

impl Planner<'_, '_> {
    /// The plan of a query; its row is the result row.
    pub fn query(&mut self, query: &Query) -> Result<Node> {
        let node = match &query.body {
            Body::Block(_) => return self.query_where(query, Vec::new()),
            Body::Values(rows) => self.values_node(rows)?,
            Body::Compound { .. } => self.compound(query)?,
            Body::Recursion(recursion) => {
                let node = self.recursion(recursion, &query.order_by)?;
                return self.limited(node, query.limit.as_ref());
            }
        };
        let keys = query.order_by.clone();
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
            Body::Block(block) => self.block(block, &[], None, Vec::new())?,
            Body::Values(rows) => self.values_node(rows)?,
            Body::Compound { .. } | Body::Recursion(_) => {
                return Err(Error::misuse("a compound that is none"));
            }
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
        pushed: Vec<Expr>,
    ) -> Result<Node> {
        if let Some(node) = self.count_rows(block, order_by, limit)? {
            return Ok(node);
        }
        let mut filter: Vec<Expr> = block.filter.clone();
        filter.extend(pushed);
        for condition in &mut filter {
            rules::fold(condition);
        }
        let mut conditions = Vec::with_capacity(filter.len());
        for condition in filter {
            rules::common_conjuncts(condition, &mut conditions);
        }
        let filter: Vec<Expr> = conditions.into_iter().map(rules::or_to_in).collect();
        let mut wanted = self.wanted_order(block, order_by);
        if wanted.is_empty() {
            wanted = grouped::wanted_order(block, order_by, limit.is_some());
        }
        let limited = limit.is_some() && window::streams(block);
        let (mut node, mut layout, ordered) =
            self.sources(block, &filter, order_by, &wanted, limited)?;
        let mut keys = order_by.to_vec();
        let mut ordered = ordered && !wanted.is_empty();
        let mut groups = Vec::new();
        if let Some(aggregation) = &block.aggregation {
            ordered &= !aggregation.keys.is_empty();
            let input = AggregateInput {
                node,
                layout: &layout,
                grouped: ordered,
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
        } else if ordered {
            keys.clear();
        } else {
            keys.extend(groups);
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
    pub(super) fn project(
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

    pub(super) fn limited(&mut self, node: Node, limit: Option<&LimitClause>) -> Result<Node> {
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
        if !block.windows.is_empty() && block.aggregation.is_none() {
            return window::wanted_order(block);
        }
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

    /// The joined and filtered sources.
    fn sources(
        &mut self,
        block: &Block,
        filter: &[Expr],
        order_by: &[SortKey],
        wanted: &[SortKey],
        limited: bool,
    ) -> Result<(Node, Layout, bool)> {
        let conditions = filter.iter().map(|e| self.condition(e.clone()));
        let conditions = conditions.collect::<Result<Vec<Condition>>>()?;
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
        let needed = self.needed(block, Some(filter), order_by);
        let shown = match block.sources.iter().any(Source::keeps_right) {
            true => needed.clone(),
            false => self.needed(block, None, order_by),
        };
        let has_groups = block
            .aggregation
            .as_ref()
            .is_some_and(|it| !it.keys.is_empty());
        let order = match has_groups && !grouped::is_covered(block, &needed, wanted) {
            true => &[],
            false => wanted,
        };
        let extremum = block.aggregation.is_some() && !has_groups && !wanted.is_empty();
        let goal = Goal {
            order,
            limited: limited || extremum,
        };
        let mut reads = Reads { needed, shown };
        let joined = self.joined(&block.sources, conditions, &mut reads, &goal)?;
        let mut node = joined.node;
        if extremum && joined.ordered {
            node = self.first_row(node, wanted, &joined.layout)?;
        }
        let ordered = joined.ordered && !(has_groups && order.is_empty());
        Ok((node, joined.layout, ordered))
    }

    /// Joins these sources, those with ON conditions by LEFT JOIN, behind what is joined
    /// already.
    pub(super) fn join_behind(
        &mut self,
        base: Option<Joined>,
        sources: Vec<(&Source, Option<Vec<Condition>>)>,
        mut conditions: Vec<Condition>,
        reads: &mut Reads,
        goal: &Goal<'_>,
    ) -> Result<Joined> {
        let mut items = Vec::with_capacity(sources.len());
        let mut inner = Vec::new();
        for (source, mut on) in sources {
            // ON of a LEFT JOIN that has become an inner one joins the rest.
            let rejects = |c: &Condition| rules::rejects_null(&c.expr, source.id);
            if on.is_some() && conditions.iter().any(rejects) {
                inner.extend(on.take().into_iter().flatten());
            }
            let rows = self.source_rows(source);
            let mut computed = source.computed.clone();
            for part in &mut computed {
                rules::fold(&mut part.expr);
            }
            items.push(Item {
                source,
                needed: reads.needed.remove(&source.id).unwrap_or_default(),
                shown: reads.shown.remove(&source.id).unwrap_or_default(),
                on,
                rows,
                partial: Vec::new(),
                per_key: Vec::new(),
                computed,
                requires: self.required(source),
                facts: Facts::default(),
            });
        }
        conditions.extend(inner);
        settle(&mut items, &mut conditions);
        let alone = items.len() == 1 && base.is_none() && goal.order.is_empty();
        for item in &mut items {
            let own = item.on.as_ref().unwrap_or(&conditions);
            let columns = |expr: &Expr| self.sources_of(expr);
            item.facts = Facts::new(own, item.source.id, &item.computed, &columns);
            item.partial = self.usable_partial(item.source, own);
            item.per_key = self.rows_per_key(item);
            self.place_bounds(item, alone);
        }
        let last: Vec<Expr> = conditions
            .iter()
            .filter(|c| !c.movable)
            .map(|c| c.expr.clone())
            .collect();
        let problem = Problem {
            items: &items,
            conditions: &conditions,
            order: goal.order,
            limited: goal.limited,
            rows: base.as_ref().map_or(1.0, |b| b.node.rows),
            placed: base.as_ref().map_or_else(BTreeSet::new, Joined::sources),
        };
        let mut joined = self.join(&problem, base)?;
        joined.node = self.filtered(joined.node, last, &joined.layout)?;
        Ok(joined)
    }

    /// The sources that the arguments of a function read.
    fn required(&self, source: &Source) -> BTreeSet<usize> {
        source.args().flat_map(|arg| self.sources_of(arg)).collect()
    }

    /// The partial indexes of a source that hold every row of it that these conditions
    /// let through, and how many entries each has.
    fn usable_partial(&mut self, source: &Source, conditions: &[Condition]) -> Vec<(usize, f64)> {
        let SourceKind::Table(table) = &source.kind else {
            return Vec::new();
        };
        let mut usable = Vec::new();
        for partial in &source.partial {
            let holds = |wanted: &Expr| {
                let mut wanted = wanted.clone();
                rules::fold(&mut wanted);
                let wanted = rules::or_to_in(wanted);
                rules::implied(conditions.iter().map(|c| &c.expr), &wanted)
            };
            if let Some(index) = table.indexes.get(partial.index)
                && partial.conditions.iter().all(holds)
            {
                let entries = self.statistics.rows(&index.tree).max(1) as f64;
                usable.push((partial.index, entries));
            }
        }
        usable
    }

    /// What is known of the indexes that an equality among the conditions on an item may be
    /// looked up in. Of a unique index of one part, nothing needs to be.
    fn rows_per_key(&mut self, item: &Item<'_>) -> Vec<(usize, Arc<[f64]>)> {
        let SourceKind::Table(table) = &item.source.kind else {
            return Vec::new();
        };
        let asks = |index: &Index| !index.unique || index.columns.len() > 1;
        if !table.indexes.iter().any(|index| asks(index)) {
            return Vec::new();
        }
        let mut known = Vec::new();
        for (number, index) in table.indexes.iter().enumerate() {
            if asks(index)
                && access::may_answer(table, number, &item.computed, &item.facts)
                && let Some(per_key) = self.statistics.rows_per_key(index)
            {
                known.push((number, per_key));
            }
        }
        known
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

    /// The columns of each source that anything in the block reads.
    /// With `filter` None: of each source's columns those that are read above the
    /// joins.
    fn needed(&self, block: &Block, filter: Option<&[Expr]>, order_by: &[SortKey]) -> Needed {
        let mut columns: BTreeSet<ColumnRef> = BTreeSet::new();
        let mut add = |expr: &Expr| self.collect_columns(expr, &mut columns);
        block.having.iter().chain(&block.outputs).for_each(&mut add);
        order_by.iter().for_each(|k| add(&k.expr));
        block
            .sources
            .iter()
            .flat_map(Source::args)
            .for_each(&mut add);
        let windows = block.windows.iter();
        windows.flat_map(Windowing::exprs).for_each(&mut add);
        if let Some(filter) = filter {
            filter.iter().for_each(&mut add);
            for outer in block.sources.iter().filter_map(|s| s.outer.as_ref()) {
                outer.on.iter().chain(&outer.before).for_each(&mut add);
            }
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
}

/// Lets conditions move that could fail in nothing but what an index holds: for each row
/// that there is it has not failed.
fn settle(items: &mut [Item<'_>], conditions: &mut [Condition]) {
    let is_whole = |item: &Item<'_>, number: usize| match &item.source.kind {
        SourceKind::Table(table) => table
            .indexes
            .get(number)
            .is_some_and(|index| index.predicate.is_none()),
        _ => false,
    };
    let mut held = Vec::new();
    for item in items.iter() {
        let parts = item.computed.iter().filter(|part| part.expr.props.fallible);
        let parts = parts.filter(|part| is_whole(item, part.index));
        held.extend(parts.map(|part| part.expr.kind.clone()));
    }
    if held.is_empty() {
        return;
    }
    let own = items
        .iter_mut()
        .filter_map(|item| item.on.as_mut())
        .flatten();
    for condition in own.chain(conditions) {
        condition.movable |=
            condition.expr.props.deterministic && fails_only_in(&condition.expr, &held);
    }
}

/// Whether nothing in an expression may raise an error but these.
fn fails_only_in(expr: &Expr, held: &[ExprKind]) -> bool {
    if !expr.props.fallible || held.contains(&expr.kind) {
        return true;
    }
    let is_operator = matches!(
        expr.kind,
        ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Compare(..)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::IsNull { .. }
            | ExprKind::IsTruth { .. }
            | ExprKind::Between { .. }
            | ExprKind::InList { .. }
            | ExprKind::Cast(..)
    );
    let mut all = is_operator;
    expr.kind.for_each_child(&mut |child| {
        all = all && crate::stack::grow(|| fails_only_in(child, held));
    });
    all
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
