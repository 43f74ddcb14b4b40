//! The sources of a query, joined and filtered: what is known of each before they are put
//! in order.
//!
//! The conditions, the columns that anything reads, the indexes that may serve and what an
//! equality finds in them: from these the order is chosen in `order.rs`, and the operators
//! are made in `join.rs`.

use std::sync::Arc;

use super::Planner;
use super::access;
use super::equal_columns;
use super::facts::Facts;
use super::few::Few;
use super::grouped;
use super::join::Joined;
use super::layout::Layout;
use super::needed::Needed;
use super::order::{Condition, Item, Order, Partial, Problem};
use super::outer::{Goal, Reads};
use super::physical::{JoinKind, LimitClause, Node, Op};
use super::rules;
use super::semi::SemiJoin;
use crate::bind::expr::{ColumnRef, Expr, ExprKind, SortKey, Windowing};
use crate::bind::logical::{Block, Source, SourceKind};
use crate::error::Result;
use crate::schema::Index;

/// The joined and filtered sources of a block.
pub(super) struct Sourced {
    pub node: Node,
    pub layout: Layout,
    /// They come in the order that was wanted.
    pub ordered: bool,
    /// And within that in the order that was wanted there.
    pub within: bool,
}

/// What is to be joined.
#[derive(Clone)]
pub(super) struct ToJoin<'b> {
    /// In the order of the text, those with ON conditions by LEFT JOIN.
    pub sources: Vec<(&'b Source, Option<Vec<Condition>>)>,
    /// WHERE.
    pub conditions: Vec<Condition>,
    /// Subqueries.
    pub joins: Vec<SemiJoin<'b>>,
}

/// What is joined already.
pub(super) struct Before {
    rows: f64,
    sources: Option<Few<usize>>,
}

/// What is to be joined, in order.
pub(super) struct Ordered<'b> {
    pub items: Vec<Item<'b>>,
    pub order: Order,
    conditions: Vec<Condition>,
}

impl<'b> Ordered<'b> {
    fn problem<'p>(&'p self, before: &Before, goal: &Goal<'p>) -> Problem<'p, 'b> {
        Problem {
            items: &self.items,
            conditions: &self.conditions,
            order: goal.order,
            limited: goal.limited,
            all: goal.all,
            rows: before.rows,
            placed: before.sources.clone().unwrap_or_default(),
        }
    }
}

impl<'a> Planner<'a, '_> {
    /// The joined and filtered sources.
    pub(super) fn sources(
        &mut self,
        block: &Block,
        filter: Vec<Expr>,
        order_by: &[SortKey],
        singles: Vec<SemiJoin<'a>>,
        goal: &Goal<'_>,
    ) -> Result<Sourced> {
        let wanted = goal.order;
        if block.sources.is_empty() {
            let one = Node {
                op: Op::Values(vec![Vec::new()]),
                width: 0,
                rows: 1.0,
            };
            let layout = Layout::default();
            let node = self.filtered(one, filter, &layout)?;
            return Ok(Sourced {
                node,
                layout,
                ordered: wanted.is_empty(),
                within: false,
            });
        }
        let mut conditions = self.with_implied(filter)?;
        let is_query = |id| {
            let mut sources = block.sources.iter();
            sources.any(|it| it.id == id && matches!(it.kind, SourceKind::Query(_)))
        };
        equal_columns::add_given(&mut conditions, is_query);
        let of_singles = singles.iter().flat_map(|join| &join.on);
        let read = conditions.iter().chain(of_singles);
        let properties = self.properties(block, read.clone().map(|it| &it.expr), order_by);
        let shown = self.columns_shown(block, order_by);
        let needed = self.columns_needed(block, read.map(|it| &it.expr), &shown);
        let (needed, mut shown) = (Needed::new(needed), Needed::new(shown));
        if block.sources.iter().any(Source::keeps_right) {
            shown.clone_from(&needed);
        }
        let has_groups = block
            .aggregation
            .as_ref()
            .is_some_and(|it| !it.keys.is_empty());
        // What tells the rows of a SELECT apart begins with the order that is wanted of them.
        let of_rows = block.aggregation.is_none();
        let longer = match goal.within {
            [] => Vec::new(),
            within if of_rows => within.to_vec(),
            within => [wanted, within].concat(),
        };
        let within = !goal.within.is_empty()
            && (of_rows || has_groups != wanted.is_empty())
            && grouped::is_covered(block, &needed, &longer);
        let order = match has_groups {
            _ if within => longer.as_slice(),
            true if !self.takes_groups_in(block, &needed, goal) => &[],
            _ => wanted,
        };
        let extremum = block.aggregation.is_some() && !has_groups && !wanted.is_empty();
        // Groups that are hashed need all rows.
        let hashes = has_groups && order.is_empty();
        let goal = Goal {
            order,
            limited: goal.limited && !hashes || extremum,
            ..*goal
        };
        let mut reads = Reads {
            needed,
            shown,
            properties,
            singles,
        };
        let joined = self.joined(&block.sources, conditions, &mut reads, &goal)?;
        let mut node = joined.node;
        if extremum && joined.ordered {
            node = self.first_row(node, wanted, &joined.layout)?;
        }
        Ok(Sourced {
            node,
            layout: joined.layout,
            ordered: joined.ordered && !hashes,
            within: joined.ordered && within,
        })
    }

    /// The conditions of a block, and what follows from them.
    fn with_implied(&mut self, filter: Vec<Expr>) -> Result<Vec<Condition>> {
        let mut conditions = Vec::with_capacity(filter.len());
        for condition in filter {
            conditions.push(self.condition(condition)?);
        }
        let arms = conditions.iter().filter(|c| c.movable).flat_map(|c| {
            rules::arms_of_sources(&c.expr, &c.sources, &|expr| self.sources_of(expr))
        });
        for arms in arms.collect::<Vec<Expr>>() {
            conditions.push(self.condition(rules::or_to_in(arms))?);
        }
        equal_columns::add_implied(&mut conditions);
        Ok(conditions)
    }

    /// Joins these sources, those with ON conditions by LEFT JOIN, behind what is joined
    /// already.
    pub(super) fn join_behind(
        &mut self,
        base: Option<Joined>,
        mut sources: Vec<(&Source, Option<Vec<Condition>>)>,
        mut conditions: Vec<Condition>,
        reads: &mut Reads<'a>,
        goal: &Goal<'_>,
    ) -> Result<Joined> {
        let mut joins: Vec<SemiJoin<'_>> = Vec::new();
        let mut known = Few::new();
        if !self.logical.is_empty() {
            known.extend(sources.iter().map(|(source, _)| source.id));
            known.extend(base.iter().flat_map(Joined::sources));
            joins.extend(self.semi_joins(&mut conditions, &known)?);
        }
        joins.extend(std::mem::take(&mut reads.singles));
        let anti_joins = match sources.iter().any(|(_, on)| on.is_some()) {
            true => self.anti_joins(&mut sources, &mut conditions, &reads.shown, &joins),
            false => Vec::new(),
        };
        joins.extend(anti_joins);
        let before = Before {
            rows: base.as_ref().map_or(1.0, |b| b.node.rows),
            sources: base.as_ref().map(Joined::sources),
        };
        let whole = ToJoin {
            sources,
            conditions,
            joins,
        };
        let chosen = match self.logical.is_empty() {
            true => self.ordered(whole, &before, reads, goal)?,
            false => self.ordered_seeking(whole, &known, &before, reads, goal)?,
        };
        let last = chosen.conditions.iter().filter(|c| !c.movable);
        let last: Vec<Expr> = last.map(|c| c.expr.clone()).collect();
        let problem = chosen.problem(&before, goal);
        let mut joined = self.join(&problem, &chosen.order, base)?;
        joined.node = self.filtered(joined.node, last, &joined.layout)?;
        Ok(joined)
    }

    /// The sources and subqueries to be joined behind what is joined already, in the best order
    /// that is found.
    pub(super) fn ordered<'b>(
        &mut self,
        whole: ToJoin<'b>,
        before: &Before,
        reads: &Reads<'_>,
        goal: &Goal<'_>,
    ) -> Result<Ordered<'b>> {
        let ToJoin {
            sources,
            mut conditions,
            joins,
        } = whole;
        let mut items = Vec::with_capacity(sources.len() + joins.len());
        let mut inner = Vec::new();
        for (source, mut on) in sources {
            // ON of a LEFT JOIN that has become an inner one joins the rest.
            let rejects = |c: &Condition| rules::rejects_null(&c.expr, source.id);
            if on.is_some() && conditions.iter().any(rejects) {
                inner.extend(on.take().into_iter().flatten());
            }
            let mut item = self.item(source, on, goal);
            item.needed = reads.needed.of(source.id);
            item.shown = reads.shown.of(source.id);
            item.properties = reads.properties.of(source.id);
            items.push(item);
        }
        let alone = items.len() == 1 && before.sources.is_none() && goal.order.is_empty();
        for join in joins {
            items.push(self.semi_item(join));
        }
        conditions.extend(inner);
        settle(&mut items, &mut conditions);
        for item in &mut items {
            let own = item.on.as_ref().unwrap_or(&conditions);
            let columns = |expr: &Expr| self.sources_of(expr);
            item.facts = Facts::new(own, item.source.id, &item.computed, &columns);
            item.partial = self.usable_partial(item.source, own);
            item.per_key = self.rows_per_key(item);
            self.place_bounds(item, alone);
        }
        self.columns_of_partial(&mut items, &conditions);
        let mut ordered = Ordered {
            items,
            conditions,
            order: Order::default(),
        };
        let problem = ordered.problem(before, goal);
        let mut order = self.best_order(&problem)?;
        if self.sample(&problem, &order) {
            order = self.best_order(&problem)?;
        }
        ordered.order = self.cheaper_order(&problem, order);
        Ok(ordered)
    }

    /// A source of which nothing is known yet but how many rows it has.
    fn item<'b>(
        &mut self,
        source: &'b Source,
        on: Option<Vec<Condition>>,
        goal: &Goal<'_>,
    ) -> Item<'b> {
        let mut computed = source.computed.clone();
        for part in &mut computed {
            rules::fold(&mut part.expr);
        }
        Item {
            source,
            needed: Few::new(),
            shown: Few::new(),
            properties: Few::new(),
            kind: match on {
                Some(_) => JoinKind::Left,
                None => JoinKind::Inner,
            },
            on,
            rows: self.source_rows(source),
            not_in: None,
            any_order: goal.any_order,
            partial: Vec::new(),
            per_key: Vec::new(),
            computed,
            requires: self.required(source),
            facts: Facts::default(),
        }
    }

    /// The source of a semi-join or of a single join.
    fn semi_item<'b>(&mut self, join: SemiJoin<'b>) -> Item<'b> {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for condition in &join.on {
            self.for_each_column(&condition.expr, &mut |c| match c.source == join.source.id {
                true => own.push(c.column),
                false => others.push(c.source),
            });
        }
        let goal = Goal {
            any_order: join.kind != JoinKind::Single,
            ..Goal::default()
        };
        own.extend(join.shown);
        let on = join.on.iter().map(|condition| &condition.expr);
        let properties = self.properties_of_one(join.source, on, join.shown);
        let item = self.item(join.source, Some(join.on), &goal);
        Item {
            kind: join.kind,
            needed: own.into_iter().collect(),
            shown: join.shown.into_iter().collect(),
            properties,
            requires: others.into_iter().collect(),
            not_in: join.not_in,
            ..item
        }
    }

    /// The sources that the arguments of a function read.
    fn required(&self, source: &Source) -> Few<usize> {
        source.args().flat_map(|arg| self.sources_of(arg)).collect()
    }

    /// The partial indexes of a source that hold every row of it that these conditions
    /// let through.
    fn usable_partial(&mut self, source: &Source, conditions: &[Condition]) -> Vec<Partial> {
        let SourceKind::Table(table) = &source.kind else {
            return Vec::new();
        };
        let mut usable = Vec::new();
        for partial in &source.partial {
            let of_index = partial.conditions.iter().cloned().map(|mut wanted| {
                rules::fold(&mut wanted);
                rules::or_to_in(wanted)
            });
            let of_index: Vec<Expr> = of_index.collect();
            let wanted = || conditions.iter().map(|c| &c.expr);
            let holds = |said: &Expr| rules::implied(wanted(), said);
            if let Some(index) = table.indexes.get(partial.index)
                && of_index.iter().all(holds)
            {
                let is_said = |c: &Condition| c.movable && rules::implied(of_index.iter(), &c.expr);
                let said = conditions.iter().enumerate();
                usable.push(Partial {
                    index: partial.index,
                    entries: self.statistics.rows(&index.tree).max(1) as f64,
                    said: said.filter(|(_, c)| is_said(c)).map(|(at, _)| at).collect(),
                    needed: Few::new(),
                });
            }
        }
        usable
    }

    /// Notes which columns are read where a partial index finds the rows: what its entries
    /// fulfil need not be looked at.
    fn columns_of_partial(&self, items: &mut [Item<'_>], conditions: &[Condition]) {
        for at in 0..items.len() {
            let own = items.get_mut(at).map(|item| &mut item.partial);
            let mut partial = own.map(std::mem::take).unwrap_or_default();
            for it in &mut partial {
                it.needed = self.columns_left(items, conditions, at, &it.said);
            }
            if let Some(item) = items.get_mut(at) {
                item.partial = partial;
            }
        }
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

    /// The columns that are read above the joins.
    fn columns_shown(&self, block: &Block, order_by: &[SortKey]) -> Vec<ColumnRef> {
        let mut columns = Vec::with_capacity(block.outputs.len());
        let mut add = |expr: &Expr| self.for_each_column(expr, &mut |c| columns.push(c));
        block.having.iter().chain(&block.outputs).for_each(&mut add);
        order_by.iter().for_each(|k| add(&k.expr));
        block
            .sources
            .iter()
            .flat_map(Source::args)
            .for_each(&mut add);
        let windows = block.windows.iter();
        windows.flat_map(Windowing::exprs).for_each(&mut add);
        if let Some(aggregation) = &block.aggregation {
            aggregation.keys.iter().for_each(|(e, _)| add(e));
            for call in &aggregation.calls {
                call.args.iter().chain(&call.filter).for_each(&mut add);
                call.order_by.iter().for_each(|k| add(&k.expr));
            }
        }
        columns
    }

    /// The columns that anything in the block reads: those above the joins, and those of
    /// conditions.
    fn columns_needed<'e>(
        &self,
        block: &'e Block,
        filter: impl Iterator<Item = &'e Expr>,
        shown: &[ColumnRef],
    ) -> Vec<ColumnRef> {
        let mut columns = shown.to_vec();
        let outer = block.sources.iter().filter_map(|s| s.outer.as_ref());
        let outer = outer.flat_map(|outer| outer.on.iter().chain(&outer.before));
        for condition in filter.chain(outer) {
            self.for_each_column(condition, &mut |c| columns.push(c));
        }
        columns
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
