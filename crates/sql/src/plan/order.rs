//! The order in which sources are joined, and the method of each join.
//!
//! Found greedily by estimated cost, from every possible first source where there
//! are few. A source on the right of a LEFT JOIN or behind CROSS JOIN stays where
//! the text has it, and so do those behind it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Planner;
use super::access::{self, Access, COST_SEEK, Path, Request};
use super::either::{Either, either};
use super::members::Members;
use super::terms::{Term, terms};
use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind, SortKey};
use crate::bind::logical::{KeyExpr, Source, SourceKind};
use crate::error::{Error, Result};

/// Up to so many sources, every one is tried as the first.
const TRIED_FIRST: usize = 8;
/// Cost of putting a row into a hash table, and of probing it.
const COST_BUILD: f64 = 2.0;
const COST_PROBE: f64 = 1.5;

/// A condition and the sources it reads.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The condition.
    pub expr: Expr,
    /// Sources of this block that it reads.
    pub sources: BTreeSet<usize>,
    /// May be evaluated wherever its columns are known.
    pub movable: bool,
    /// Where it is an IN whose subquery can be asked before any row is read, what that
    /// yields.
    pub members: Option<Members>,
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
    /// Its partial indexes that hold all rows wanted of it, by number, and the entries
    /// of each.
    pub partial: Vec<(usize, f64)>,
    /// What is known of the entries that share a key, by index.
    pub per_key: Vec<(usize, Arc<[f64]>)>,
    /// The parts of its indexes' keys that are no columns.
    pub computed: Vec<KeyExpr>,
    /// The sources that its arguments read, where it is a function.
    pub requires: BTreeSet<usize>,
}

/// What is known about a source before it is read.
#[derive(Default)]
struct Known {
    terms: Vec<Term>,
    either: Vec<Either>,
}

/// How a source is joined to those placed before it.
#[derive(Debug, Clone)]
pub enum Method {
    /// By keys from the rows before it, or first of all.
    Lookup(Access),
    /// Hash join on these conditions (of WHERE, or of ON).
    Hash(Access, Vec<usize>),
    /// Replayed for each row.
    Replay(Access),
}

/// One source placed.
#[derive(Debug, Clone)]
pub struct Step {
    /// Which, by its place in the text.
    pub item: usize,
    /// How.
    pub method: Method,
}

/// An order of all sources.
pub struct Order {
    /// Placed one behind the other.
    pub steps: Vec<Step>,
    /// Estimated.
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
    /// Sources that are joined already.
    pub placed: BTreeSet<usize>,
    /// The rows of those.
    pub rows: f64,
}

impl Problem<'_, '_> {
    /// Conditions that apply when `item` is placed behind `placed`.
    pub fn applicable(&self, item: usize) -> &[Condition] {
        match self.items.get(item).and_then(|i| i.on.as_ref()) {
            Some(on) => on,
            None => self.conditions,
        }
    }

    /// Whether there is nothing to join.
    fn is_alone(&self) -> bool {
        self.items.len() == 1 && self.placed.is_empty()
    }

    pub fn id(&self, item: usize) -> usize {
        self.items.get(item).map_or(usize::MAX, |i| i.source.id)
    }

    /// Terms about `item` whose values are known from `placed`.
    fn terms(
        &self,
        item: usize,
        placed: &BTreeSet<usize>,
        columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
    ) -> Known {
        let id = self.id(item);
        let computed = self.items.get(item).map_or(&[][..], |i| &i.computed);
        let is_known = |t: &Term| {
            t.values
                .iter()
                .all(|v| v.props.deterministic && !v.props.fallible && columns(v).is_subset(placed))
        };
        let mut known = Known::default();
        for (at, condition) in self.applicable(item).iter().enumerate() {
            if condition.movable && condition.sources.contains(&id) {
                let (expr, members) = (&condition.expr, condition.members.as_ref());
                terms(expr, members, at, id, computed, &mut known.terms);
                known
                    .either
                    .extend(either(expr, at, id, computed, &is_known));
            }
        }
        known.terms.retain(is_known);
        known
    }

    /// Equalities between `item` and what is placed.
    fn hash_keys(
        &self,
        item: usize,
        placed: &BTreeSet<usize>,
        columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
    ) -> Vec<usize> {
        let own = BTreeSet::from([self.id(item)]);
        let keys = |condition: &Condition| {
            condition.movable && split_equality(&condition.expr, &own, placed, columns).is_some()
        };
        let list = self.applicable(item).iter().enumerate();
        list.filter(|(_, c)| keys(c)).map(|(at, _)| at).collect()
    }

    /// Whether `item` may come next.
    fn may_follow(&self, item: usize, placed: &[bool]) -> bool {
        let barrier = |i: &Item<'_>| i.on.is_some() || i.source.fixed && !is_recursive(i);
        let Some(this) = self.items.get(item) else {
            return false;
        };
        let is_placed = |id: &usize| {
            let mut items = self.items.iter().zip(placed);
            self.placed.contains(id) || items.any(|(i, placed)| *placed && i.source.id == *id)
        };
        if !this.requires.iter().all(is_placed) {
            return false;
        }
        let mut before = self.items.iter().zip(placed).take(item);
        if barrier(this) {
            return before.all(|(_, placed)| *placed);
        }
        before.all(|(other, placed)| *placed || !barrier(other))
    }
}

fn is_recursive(item: &Item<'_>) -> bool {
    matches!(item.source.kind, SourceKind::Recursive(_))
}

/// `left = right` with the placed side first, the other one over `own`.
pub fn split_equality<'e>(
    expr: &'e Expr,
    own: &BTreeSet<usize>,
    placed: &BTreeSet<usize>,
    columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
) -> Option<(&'e Expr, &'e Expr, Comparison)> {
    let ExprKind::Compare(CompareOp::Equal, comparison, left, right) = &expr.kind else {
        return None;
    };
    // What is split is hashed, which a collation of the program cannot be.
    let is_hashed = !comparison.collation.is_of_program();
    if expr.props.fallible || !expr.props.deterministic || !is_hashed {
        return None;
    }
    let sides = |a: &'e Expr, b: &'e Expr| {
        let (of_a, of_b) = (columns(a), columns(b));
        let is_split = !of_a.is_empty() && of_a.is_subset(placed);
        (is_split && !of_b.is_empty() && of_b.is_subset(own)).then_some((a, b, *comparison))
    };
    sides(left, right).or_else(|| sides(right, left))
}

impl Planner<'_, '_> {
    /// The cheapest order that was found.
    pub fn best_order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        let firsts: Vec<usize> = (0..problem.items.len())
            .filter(|i| problem.may_follow(*i, &vec![false; problem.items.len()]))
            .collect();
        // The rows of a recursion come first where they may: what is joined to them is
        // the same for all.
        let recursive = |i: &&usize| problem.items.get(**i).is_some_and(is_recursive);
        let firsts = if let Some(first) = firsts.iter().find(recursive) {
            vec![*first]
        } else if problem.items.len() <= TRIED_FIRST {
            firsts
        } else {
            let smallest = firsts.iter().copied().min_by(|a, b| {
                let rows = |i: usize| self.step(problem, i, &problem.placed, problem.rows).1;
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
        best.filter(|best| best.cost.is_finite())
            .ok_or_else(|| Error::sql("no query solution"))
    }

    fn order_from(&self, problem: &Problem<'_, '_>, first: usize) -> Order {
        let mut placed = vec![false; problem.items.len()];
        let mut ids = problem.placed.clone();
        let mut steps = Vec::with_capacity(problem.items.len());
        let (mut cost, mut rows) = (0.0, problem.rows);
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
        if steps.len() < problem.items.len() {
            // Functions whose arguments come from what must stand behind them.
            cost = f64::INFINITY;
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
        let requires = problem.items.get(item).map(|i| &i.requires);
        if requires.is_some_and(|requires| !requires.is_empty()) {
            let cost = rows * lookup.cost;
            return (Method::Lookup(lookup), after, cost);
        }
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
            let list = problem.applicable(item);
            let all = problem.items.get(item).map_or(own.rows, |i| i.rows);
            let pairs = problem.pairs_per_match(list, &keys, rows.max(all));
            let pairs = pairs.unwrap_or(own.rows.max(10.0));
            let done: BTreeSet<usize> = own.path.terms().iter().map(|t| t.condition).collect();
            let alone = |c: &Condition| c.sources.iter().all(|s| *s == id);
            let left = list.iter().enumerate().filter(|(at, _)| !done.contains(at));
            let kept: f64 = left
                .map(|(_, c)| if alone(c) { share(c) } else { 1.0 })
                .product();
            let matches = (rows * own.rows * kept / pairs).max(at_least).max(0.1);
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
        known: &Known,
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
            SourceKind::Query(_) | SourceKind::Recursive(_) => whole(this.rows),
            SourceKind::Function(_) => Access {
                path: Path::Call,
                cost: COST_SEEK + this.rows,
                ..whole(this.rows)
            },
            SourceKind::Table(table) => access::choose(&Request {
                table,
                source: this.source.id,
                rows: this.rows,
                needed: &this.needed,
                terms: &known.terms,
                either: &known.either,
                order,
                hint: &this.source.index_hint,
                partial: &this.partial,
                per_key: &this.per_key,
                computed: &this.computed,
                limited: problem.limited && problem.is_alone(),
                alone: problem.is_alone(),
            }),
        }
    }
}

/// The share of rows for which a condition is guessed to hold.
pub fn selectivity(condition: &Expr) -> f64 {
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
