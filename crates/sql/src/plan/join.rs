//! Join order and join methods.
//!
//! Sources are placed one after the other (left-deep); each step joins what is
//! placed with one more source by the cheapest of: looking it up by key for each
//! row, hashing it, or replaying it. The order is found greedily, from every
//! possible first source where there are few. A source on the right of a LEFT
//! JOIN or behind CROSS JOIN stays where the text has it, and so do those behind
//! it.

use std::collections::{BTreeMap, BTreeSet};

use super::Planner;
use super::access::{self, Access, COST_SEEK, Path, Request};
use super::layout::Layout;
use super::physical::{Bound, JoinKind, Node, Op, Range};
use super::resolve::Rows;
use super::terms::{Term, TermOp, terms};
use crate::bind::expr::{ColumnRef, CompareOp, Comparison, Expr, ExprKind, SortKey};
use crate::bind::logical::{Source, SourceKind};
use crate::error::{Error, Result};

/// Up to so many sources, every one is tried as the first.
const TRIED_FIRST: usize = 8;
/// Cost of putting a row into a hash table, and of probing it.
const COST_BUILD: f64 = 2.0;
const COST_PROBE: f64 = 1.5;
/// Rows assumed of a subquery that says nothing of itself.
const ROWS_UNKNOWN: f64 = 1000.0;

/// A condition and the sources it reads.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The condition.
    pub expr: Expr,
    /// Sources of this block that it reads.
    pub sources: BTreeSet<usize>,
    /// May be evaluated wherever its columns are known.
    pub movable: bool,
}

/// A source with what is known of it.
pub struct Item<'b> {
    /// The source.
    pub source: &'b Source,
    /// Columns that are read.
    pub needed: BTreeSet<usize>,
    /// Those of them that are read above the joins.
    pub shown: BTreeSet<usize>,
    /// ON conditions, if it is the right side of a LEFT JOIN.
    pub on: Option<Vec<Condition>>,
    /// Rows it has.
    pub rows: f64,
}

/// The joined sources.
pub struct Joined {
    /// The plan.
    pub node: Node,
    /// Its row.
    pub layout: Layout,
    /// The wanted order is there.
    pub ordered: bool,
}

#[derive(Debug, Clone)]
enum Method {
    /// By keys from the rows before it, or first of all.
    Lookup(Access),
    /// Hash join on these conditions (of WHERE, or of ON).
    Hash(Access, Vec<usize>),
    /// Replayed for each row.
    Replay(Access),
}

#[derive(Debug, Clone)]
struct Step {
    item: usize,
    method: Method,
}

struct Order {
    steps: Vec<Step>,
    cost: f64,
}

/// What is fixed while an order is sought.
pub struct Problem<'p, 'b> {
    /// The sources in order of the text.
    pub items: &'p [Item<'b>],
    /// WHERE.
    pub conditions: &'p [Condition],
    /// The order that would spare a sort.
    pub order: &'p [SortKey],
    /// Only the first few rows may be wanted.
    pub limited: bool,
}

impl Problem<'_, '_> {
    /// Conditions that apply when `item` is placed behind `placed`.
    fn applicable(&self, item: usize) -> &[Condition] {
        match self.items.get(item).and_then(|i| i.on.as_ref()) {
            Some(on) => on,
            None => self.conditions,
        }
    }

    fn id(&self, item: usize) -> usize {
        self.items.get(item).map_or(usize::MAX, |i| i.source.id)
    }

    /// Terms about `item` whose values are known from `placed`.
    fn terms(
        &self,
        item: usize,
        placed: &BTreeSet<usize>,
        columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
    ) -> Vec<Term> {
        let id = self.id(item);
        let mut found = Vec::new();
        for (at, condition) in self.applicable(item).iter().enumerate() {
            if condition.movable && condition.sources.contains(&id) {
                terms(&condition.expr, at, id, &mut found);
            }
        }
        found.retain(|t| {
            t.values
                .iter()
                .all(|v| v.props.deterministic && !v.props.fallible && columns(v).is_subset(placed))
        });
        found
    }

    /// Equalities between `item` and what is placed.
    fn hash_keys(
        &self,
        item: usize,
        placed: &BTreeSet<usize>,
        columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
    ) -> Vec<usize> {
        let id = self.id(item);
        let keys = |condition: &Condition| {
            condition.movable && split_equality(&condition.expr, id, placed, columns).is_some()
        };
        let list = self.applicable(item).iter().enumerate();
        list.filter(|(_, c)| keys(c)).map(|(at, _)| at).collect()
    }

    /// Whether `item` may come next.
    fn may_follow(&self, item: usize, placed: &[bool]) -> bool {
        let barrier = |i: &Item<'_>| i.on.is_some() || i.source.fixed;
        let Some(this) = self.items.get(item) else {
            return false;
        };
        let mut before = self.items.iter().zip(placed).take(item);
        if barrier(this) {
            return before.all(|(_, placed)| *placed);
        }
        before.all(|(other, placed)| *placed || !barrier(other))
    }
}

/// `left = right` with the placed side first.
fn split_equality<'e>(
    expr: &'e Expr,
    id: usize,
    placed: &BTreeSet<usize>,
    columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
) -> Option<(&'e Expr, &'e Expr, Comparison)> {
    let ExprKind::Compare(CompareOp::Equal, comparison, left, right) = &expr.kind else {
        return None;
    };
    if expr.props.fallible || !expr.props.deterministic {
        return None;
    }
    let own = BTreeSet::from([id]);
    let sides = |a: &'e Expr, b: &'e Expr| {
        let (of_a, of_b) = (columns(a), columns(b));
        (!of_a.is_empty() && of_a.is_subset(placed) && of_b == own).then_some((a, b, *comparison))
    };
    sides(left, right).or_else(|| sides(right, left))
}

impl Planner<'_, '_> {
    /// Sources that an expression reads.
    pub fn sources_of(&self, expr: &Expr) -> BTreeSet<usize> {
        let mut columns = BTreeSet::new();
        self.collect_columns(expr, &mut columns);
        columns.into_iter().map(|c: ColumnRef| c.source).collect()
    }

    /// Joins the sources of a block and applies its movable conditions.
    pub fn join(&mut self, problem: &Problem<'_, '_>) -> Result<Joined> {
        let order = self.best_order(problem)?;
        let mut applied = vec![false; problem.conditions.len()];
        let mut placed: BTreeSet<usize> = BTreeSet::new();
        let mut joined: Option<Joined> = None;
        for step in &order.steps {
            joined = Some(self.place(problem, joined, step, &mut placed, &mut applied)?);
        }
        joined.ok_or_else(|| Error::misuse("a join without sources"))
    }

    fn best_order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        let firsts: Vec<usize> = (0..problem.items.len())
            .filter(|i| problem.may_follow(*i, &vec![false; problem.items.len()]))
            .collect();
        let firsts = if problem.items.len() <= TRIED_FIRST {
            firsts
        } else {
            let smallest = firsts.iter().copied().min_by(|a, b| {
                let rows = |i: usize| self.step(problem, i, &BTreeSet::new(), 1.0).1;
                rows(*a).total_cmp(&rows(*b))
            });
            smallest.into_iter().collect()
        };
        let mut best: Option<Order> = None;
        for first in firsts {
            let order = self.order_from(problem, first);
            if best.as_ref().is_none_or(|b| order.cost < b.cost) {
                best = Some(order);
            }
        }
        best.ok_or_else(|| Error::misuse("a join without a first source"))
    }

    fn order_from(&self, problem: &Problem<'_, '_>, first: usize) -> Order {
        let mut placed = vec![false; problem.items.len()];
        let mut ids = BTreeSet::new();
        let mut steps = Vec::with_capacity(problem.items.len());
        let (mut cost, mut rows) = (0.0, 1.0);
        let mut next = Some(first);
        while let Some(item) = next {
            let (step, step_cost, step_rows) = {
                let (method, rows_after, step_cost) = self.method(problem, item, &ids, rows);
                (Step { item, method }, step_cost, rows_after)
            };
            if steps.is_empty()
                && let Method::Lookup(access) = &step.method
                && !problem.order.is_empty()
                && !access.ordered
            {
                cost += step_rows * (step_rows + 2.0).log2() * 0.5;
            }
            cost += step_cost;
            rows = step_rows;
            steps.push(step);
            if let Some(done) = placed.get_mut(item) {
                *done = true;
            }
            ids.insert(problem.id(item));
            next = (0..problem.items.len())
                .filter(|i| {
                    !placed.get(*i).copied().unwrap_or(true) && problem.may_follow(*i, &placed)
                })
                .min_by(|a, b| {
                    let weigh = |i: usize| {
                        let (_, after, cost) = self.method(problem, i, &ids, rows);
                        cost + after
                    };
                    weigh(*a).total_cmp(&weigh(*b))
                });
        }
        Order { steps, cost }
    }

    fn step(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        ids: &BTreeSet<usize>,
        rows: f64,
    ) -> (f64, f64) {
        let (_, after, cost) = self.method(problem, item, ids, rows);
        (cost, after)
    }

    /// The cheapest method to add `item` to `rows` rows: method, rows after,
    /// cost.
    fn method(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        placed: &BTreeSet<usize>,
        rows: f64,
    ) -> (Method, f64, f64) {
        let columns = |e: &Expr| self.sources_of(e);
        let known = problem.terms(item, placed, &columns);
        let order = if placed.is_empty() {
            problem.order
        } else {
            &[]
        };
        let lookup = self.path(problem, item, &known, order);
        let id = problem.id(item);
        let share = |c: &Condition| {
            let whole =
                c.sources.contains(&id) && c.sources.iter().all(|s| *s == id || placed.contains(s));
            if whole { selectivity(&c.expr) } else { 1.0 }
        };
        let used: BTreeSet<usize> = lookup.path.terms().iter().map(|t| t.condition).collect();
        let residual: f64 = problem
            .applicable(item)
            .iter()
            .enumerate()
            .filter(|(at, _)| !used.contains(at))
            .map(|(_, c)| share(c))
            .product();
        let left_join = problem.items.get(item).is_some_and(|i| i.on.is_some());
        let at_least = if left_join { rows } else { 0.0 };
        let after = (rows * lookup.rows * residual).max(at_least).max(0.1);
        if placed.is_empty() {
            let cost = lookup.cost;
            return (Method::Lookup(lookup), after, cost);
        }
        let own = self.path(
            problem,
            item,
            &problem.terms(item, &BTreeSet::new(), &columns),
            &[],
        );
        let uses_placed = lookup
            .path
            .terms()
            .iter()
            .any(|t| t.values.iter().any(|v| !columns(v).is_empty()));
        let by_replay = own.cost + rows * own.rows;
        let mut best = if uses_placed {
            let cost = rows * lookup.cost;
            (Method::Lookup(lookup), after, cost)
        } else {
            (Method::Replay(own.clone()), after, by_replay)
        };
        if by_replay < best.2 {
            best = (Method::Replay(own.clone()), after, by_replay);
        }
        let keys = problem.hash_keys(item, placed, &columns);
        if !keys.is_empty() {
            let matches = (rows * own.rows / own.rows.max(10.0))
                .max(at_least)
                .max(0.1);
            let after = if uses_placed {
                best.1.min(matches)
            } else {
                matches
            };
            let cost = own.cost + own.rows * COST_BUILD + rows * COST_PROBE + COST_SEEK;
            if cost < best.2 {
                best = (Method::Hash(own, keys), after, cost);
            } else {
                best.1 = after;
            }
        }
        best
    }

    fn path(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        terms: &[Term],
        order: &[SortKey],
    ) -> Access {
        let whole = |rows: f64| Access {
            path: Path::Scan {
                low: None,
                high: None,
            },
            cost: rows,
            rows,
            reverse: false,
            ordered: order.is_empty(),
        };
        let Some(this) = problem.items.get(item) else {
            return whole(1.0);
        };
        match &this.source.kind {
            SourceKind::Query(_) => whole(this.rows),
            SourceKind::Table(table) => access::choose(&Request {
                table,
                source: this.source.id,
                rows: this.rows,
                needed: &this.needed,
                terms,
                order,
                hint: &this.source.index_hint,
                limited: problem.limited && problem.items.len() == 1,
                alone: problem.items.len() == 1,
            }),
        }
    }

    /// Rows of a source before any condition.
    pub fn source_rows(&mut self, source: &Source) -> f64 {
        match &source.kind {
            SourceKind::Table(table) => (self.rows)(&table.tree).max(1) as f64,
            SourceKind::Query(_) => ROWS_UNKNOWN,
        }
    }

    fn place(
        &mut self,
        problem: &Problem<'_, '_>,
        before: Option<Joined>,
        step: &Step,
        placed: &mut BTreeSet<usize>,
        applied: &mut [bool],
    ) -> Result<Joined> {
        let item = problem
            .items
            .get(step.item)
            .ok_or_else(|| Error::misuse("no such source"))?;
        let id = item.source.id;
        let outer = item.on.is_some();
        let access = match &step.method {
            Method::Lookup(access) | Method::Replay(access) | Method::Hash(access, _) => {
                access.clone()
            }
        };
        let mut done: BTreeSet<usize> = access
            .path
            .terms()
            .iter()
            .filter(|t| t.whole)
            .map(|t| t.condition)
            .collect();
        let mut bindings = Vec::new();
        let columns = self.columns_left(problem, step.item, &done);
        let (mut right, layout) =
            self.source_node(item, &access, &columns, before.as_ref(), &mut bindings)?;
        let keys = match &step.method {
            Method::Hash(_, keys) => keys.clone(),
            _ => Vec::new(),
        };
        done.extend(keys.iter().copied());
        // Conditions on this source alone belong right above it.
        let list = problem.applicable(step.item);
        let mut own = Vec::new();
        let mut cross = Vec::new();
        for (at, condition) in list.iter().enumerate() {
            let already = if outer {
                false
            } else {
                applied.get(at).copied().unwrap_or(false)
            };
            if already || done.contains(&at) || (!condition.movable && !outer) {
                continue;
            }
            if condition.sources.iter().all(|s| *s == id) && condition.movable {
                own.push(condition.expr.clone());
            } else if condition
                .sources
                .iter()
                .all(|s| *s == id || placed.contains(s))
            {
                cross.push(condition.expr.clone());
            } else if outer {
                return Err(Error::sql("ON clause references tables to its right"));
            } else {
                continue;
            }
            done.insert(at);
        }
        if !outer {
            for at in done {
                if let Some(flag) = applied.get_mut(at) {
                    *flag = true;
                }
            }
        }
        right = self.filtered(right, own, &layout)?;
        placed.insert(id);
        let Some(before) = before else {
            let node = self.filtered(right, cross, &layout)?;
            return Ok(Joined {
                node,
                layout,
                ordered: access.ordered,
            });
        };
        let joined = before.layout.join(&layout);
        let kind = if outer {
            JoinKind::Left
        } else {
            JoinKind::Inner
        };
        let condition = self.all_of(cross, &joined)?;
        let (width, rows) = (joined.width(), before.node.rows.max(right.rows));
        let op = match &step.method {
            Method::Hash(..) => {
                let (mut left_keys, mut right_keys, mut comparisons) =
                    (Vec::new(), Vec::new(), Vec::new());
                for at in keys {
                    let condition = list
                        .get(at)
                        .ok_or_else(|| Error::misuse("no such condition"))?;
                    let without = placed.iter().copied().filter(|s| *s != id).collect();
                    let sources = |e: &Expr| self.sources_of(e);
                    let split = split_equality(&condition.expr, id, &without, &sources);
                    let (l, r, comparison) =
                        split.ok_or_else(|| Error::misuse("not a hash condition"))?;
                    left_keys.push(self.resolve(l, &before.layout)?);
                    right_keys.push(self.resolve(r, &layout)?);
                    comparisons.push(comparison);
                }
                let (left, right) = (Box::new(before.node), Box::new(right));
                Op::HashJoin {
                    left,
                    right,
                    kind,
                    left_keys,
                    right_keys,
                    comparisons,
                    condition,
                }
            }
            Method::Lookup(_) | Method::Replay(_) => {
                if bindings.is_empty() {
                    let (width, rows) = (right.width, right.rows);
                    right = Node {
                        op: Op::Materialize {
                            input: Box::new(right),
                        },
                        width,
                        rows,
                    };
                }
                let (left, right) = (Box::new(before.node), Box::new(right));
                Op::NestedLoopJoin {
                    left,
                    right,
                    kind,
                    bindings,
                    condition,
                }
            }
        };
        let mut node = Node { op, width, rows };
        if outer {
            node = self.late_conditions(problem, node, &joined, placed, applied)?;
        }
        Ok(Joined {
            node,
            layout: joined,
            ordered: before.ordered,
        })
    }

    /// The columns of an item that are read once its path has answered the
    /// conditions in `done`.
    fn columns_left(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        done: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let mut columns = BTreeSet::new();
        let own = problem.items.get(item).and_then(|i| i.on.as_deref());
        let lists = std::iter::once((problem.conditions, own.is_none())).chain(
            problem
                .items
                .iter()
                .enumerate()
                .filter_map(|(i, other)| other.on.as_deref().map(|on| (on, i == item))),
        );
        for (list, answered) in lists {
            for (at, condition) in list.iter().enumerate() {
                if !(answered && done.contains(&at)) {
                    self.collect_columns(&condition.expr, &mut columns);
                }
            }
        }
        let id = problem.id(item);
        let mut left: BTreeSet<usize> = columns
            .into_iter()
            .filter(|c| c.source == id)
            .map(|c| c.column)
            .collect();
        if let Some(item) = problem.items.get(item) {
            left.extend(&item.shown);
        }
        left
    }

    /// WHERE conditions on the right side of a LEFT JOIN, above it.
    fn late_conditions(
        &mut self,
        problem: &Problem<'_, '_>,
        node: Node,
        layout: &Layout,
        placed: &BTreeSet<usize>,
        applied: &mut [bool],
    ) -> Result<Node> {
        let mut late = Vec::new();
        for (condition, applied) in problem.conditions.iter().zip(applied) {
            if !*applied && condition.movable && condition.sources.is_subset(placed) {
                *applied = true;
                late.push(condition.expr.clone());
            }
        }
        self.filtered(node, late, layout)
    }

    fn source_node(
        &mut self,
        item: &Item<'_>,
        access: &Access,
        columns: &BTreeSet<usize>,
        before: Option<&Joined>,
        bindings: &mut Vec<(usize, Expr)>,
    ) -> Result<(Node, Layout)> {
        let id = item.source.id;
        let table = match &item.source.kind {
            SourceKind::Query(query) => {
                let node = self.query(query)?;
                let layout = Layout::of_columns(
                    (0..node.width).map(|column| ColumnRef { source: id, column }),
                );
                return Ok((node, layout));
            }
            SourceKind::Table(table) => table.clone(),
        };
        self.reads(&table.tree);
        let columns = access::scan_columns(columns);
        let layout = Layout::of_columns(columns.iter().map(|c| ColumnRef {
            source: id,
            column: column_number(*c),
        }));
        let empty = Layout::default();
        let left = before.map_or(&empty, |b| &b.layout);
        let mut rows = Rows::Registers(left, bindings);
        let reverse = access.reverse;
        let op = match &access.path {
            Path::Scan { low, high } => {
                let range = self.range(low.as_ref(), high.as_ref(), &mut rows)?;
                Op::TableScan {
                    table,
                    columns,
                    range,
                    reverse,
                }
            }
            Path::Rowid(term) => {
                let keys = self.values(term, &mut rows)?;
                Op::RowidLookup {
                    table,
                    columns,
                    keys,
                    reverse,
                }
            }
            Path::Index {
                index,
                equal,
                low,
                high,
                covering,
            } => {
                self.reads(&index.tree);
                let mut parts: Vec<(TermOp, Vec<Expr>)> = Vec::with_capacity(equal.len());
                for term in equal {
                    parts.push((term.op, self.values(term, &mut rows)?));
                }
                let (prefixes, null_matches) = access::prefixes(&parts);
                let range = self.range(low.as_ref(), high.as_ref(), &mut rows)?;
                let (index, covering) = (index.clone(), *covering);
                Op::IndexScan {
                    table,
                    index,
                    columns,
                    covering,
                    prefixes,
                    null_matches,
                    range,
                    reverse,
                }
            }
        };
        Ok((
            Node {
                width: layout.width(),
                op,
                rows: access.rows,
            },
            layout,
        ))
    }

    fn values(&mut self, term: &Term, rows: &mut Rows<'_>) -> Result<Vec<Expr>> {
        term.values
            .iter()
            .map(|v| self.resolve_rows(v, rows))
            .collect()
    }

    fn range(
        &mut self,
        low: Option<&Term>,
        high: Option<&Term>,
        rows: &mut Rows<'_>,
    ) -> Result<Range> {
        let mut bound = |term: Option<&Term>| -> Result<Option<Bound>> {
            let Some(term) = term else { return Ok(None) };
            let inclusive = matches!(
                term.op,
                TermOp::Lower { inclusive: true } | TermOp::Upper { inclusive: true }
            );
            let Some(value) = term.values.first() else {
                return Ok(None);
            };
            Ok(Some(Bound {
                expr: self.resolve_rows(value, rows)?,
                inclusive,
            }))
        };
        Ok(Range {
            low: bound(low)?,
            high: bound(high)?,
        })
    }

    /// A filter above a node, where there is anything to filter by.
    pub fn filtered(
        &mut self,
        input: Node,
        conditions: Vec<Expr>,
        layout: &Layout,
    ) -> Result<Node> {
        let share: f64 = conditions.iter().map(selectivity).product();
        let Some(predicate) = self.all_of(conditions, layout)? else {
            return Ok(input);
        };
        let (width, rows) = (input.width, (input.rows * share).max(0.1));
        Ok(Node {
            op: Op::Filter {
                input: Box::new(input),
                predicate,
            },
            width,
            rows,
        })
    }

    fn all_of(&mut self, mut conditions: Vec<Expr>, layout: &Layout) -> Result<Option<Expr>> {
        let all = match conditions.len() {
            0 => return Ok(None),
            1 => conditions.pop(),
            _ => Some(Expr::operator(ExprKind::And(conditions))),
        };
        all.map(|e| self.resolve(&e, layout)).transpose()
    }
}

fn column_number(column: super::physical::ScanColumn) -> usize {
    match column {
        super::physical::ScanColumn::Rowid => crate::bind::expr::ROWID,
        super::physical::ScanColumn::Column(at) => at,
    }
}

/// The share of rows for which a condition is guessed to hold.
fn selectivity(condition: &Expr) -> f64 {
    match &condition.kind {
        ExprKind::Compare(CompareOp::Equal | CompareOp::Is, ..)
        | ExprKind::IsNull { negated: false, .. } => 0.1,
        ExprKind::Compare(CompareOp::NotEqual | CompareOp::IsNot, ..) | ExprKind::IsNull { .. } => {
            0.9
        }
        ExprKind::Compare(..) => 0.33,
        ExprKind::Between { .. } => 0.15,
        ExprKind::InList { list, .. } => (list.len() as f64 * 0.1).min(0.8),
        _ => 0.5,
    }
}

/// Needed columns by source.
pub type Needed = BTreeMap<usize, BTreeSet<usize>>;
