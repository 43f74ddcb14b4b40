//! What a join's order is sought by: which source may follow, by which method, and what that
//! is estimated to cost. The search itself is in `search.rs`.
//!
//! A source on the right of a LEFT JOIN or behind CROSS JOIN stays where the text has it, and
//! so do those behind it.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use super::Planner;
use super::access::{self, Access, COST_SEEK, Path, Request};
use super::facts::{Chosen, Facts, Known};
use super::members::Members;
use super::physical::JoinKind;
use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind, SortKey};
use crate::bind::logical::{KeyExpr, Source, SourceKind};

/// Cost of putting a row into a hash table, and of probing it.
pub(super) const COST_BUILD: f64 = 2.0;
pub(super) const COST_PROBE: f64 = 1.5;
/// Cost of opening the lookup for one row, beside that of finding the first key of a scan.
const COST_OPEN: f64 = 12.0;
/// The share of rows that are guessed to have a partner.
const SHARE_WITH_PARTNER: f64 = 0.5;

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
    /// The class of equal columns that it belongs to.
    pub class: Option<usize>,
    /// Others of its class say as much: it may serve as a key, and is left out otherwise.
    pub implied: bool,
}

/// A source with what is known of it.
pub struct Item<'b> {
    /// The source.
    pub source: &'b Source,
    /// Columns that are read.
    pub needed: BTreeSet<usize>,
    /// Those of them that are read above the joins.
    pub shown: BTreeSet<usize>,
    /// How it is joined to those before it.
    pub kind: JoinKind,
    /// ON conditions, unless it is joined by an inner join.
    pub on: Option<Vec<Condition>>,
    /// Rows it has.
    pub rows: f64,
    /// They may come in any order.
    pub any_order: bool,
    /// Its partial indexes that hold all rows wanted of it, by number, and the entries
    /// of each.
    pub partial: Vec<(usize, f64)>,
    /// What is known of the entries that share a key, by index.
    pub per_key: Vec<(usize, Arc<[f64]>)>,
    /// The parts of its indexes' keys that are no columns.
    pub computed: Vec<KeyExpr>,
    /// The sources that must be placed before it: those that the arguments of a function read,
    /// or the conditions of a semi-join.
    pub requires: BTreeSet<usize>,
    /// What the conditions that apply to it say about it.
    pub facts: Facts,
}

impl Item<'_> {
    /// Whether the first row of a key that a path finds is the first one of any other.
    fn first_of_any(&self, path: &Path) -> bool {
        match path {
            Path::Index { index, equal, .. } if self.kind == JoinKind::Single => {
                index.unique || equal.len() == index.columns.len()
            }
            _ => true,
        }
    }
}

/// How a source is joined to those placed before it.
#[derive(Debug, Clone)]
pub enum Method {
    /// By keys from the rows before it, or first of all.
    Lookup(Rc<Chosen>),
    /// Hash join on these conditions (of WHERE, or of ON).
    Hash(Rc<Chosen>, Vec<usize>),
    /// Replayed for each row.
    Replay(Rc<Chosen>),
}

/// One source placed.
#[derive(Debug, Clone)]
pub struct Step {
    /// Which, by its place in the text.
    pub item: usize,
    /// How.
    pub method: Method,
}

/// A method with its estimates.
pub(super) struct Weighed {
    pub method: Method,
    /// Of the whole join so far.
    pub rows: f64,
    pub cost: f64,
}

/// An order of all sources.
#[derive(Clone, Default)]
pub struct Order {
    /// Placed one behind the other.
    pub steps: Vec<Step>,
    /// Estimated.
    pub cost: f64,
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

    /// Whether a condition says anything about `item` together with what is placed.
    pub fn is_connected(&self, item: usize, placed: &BTreeSet<usize>) -> bool {
        let id = self.id(item);
        self.applicable(item).iter().any(|condition| {
            let mut others = condition.sources.iter().filter(|source| **source != id);
            let is_of_others = others.clone().next().is_some();
            let reads_it = condition.sources.contains(&id);
            reads_it && is_of_others && others.all(|source| placed.contains(source))
        })
    }

    /// Whether there is nothing to join.
    fn is_alone(&self) -> bool {
        let mut joined = self.items.iter().filter(|item| !item.kind.takes_one());
        joined.next().is_some() && joined.next().is_none() && self.placed.is_empty()
    }

    pub fn id(&self, item: usize) -> usize {
        self.items.get(item).map_or(usize::MAX, |i| i.source.id)
    }

    /// Whether `item` may come next.
    pub fn may_follow(&self, item: usize, placed: &[bool]) -> bool {
        let barrier = |i: &Item<'_>| {
            let fixed = i.on.is_some() || i.source.fixed && !is_recursive(i);
            fixed && !i.kind.takes_one()
        };
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

pub(super) fn is_recursive(item: &Item<'_>) -> bool {
    matches!(item.source.kind, SourceKind::Recursive(_))
}

/// The sides of an equality that can be hashed, and how they compare.
pub fn hashed_sides(expr: &Expr) -> Option<(&Expr, &Expr, Comparison)> {
    let ExprKind::Compare(CompareOp::Equal, comparison, left, right) = &expr.kind else {
        return None;
    };
    // A collation of the program cannot be hashed.
    let is_hashed = !comparison.collation.is_of_program();
    let is_hashed = is_hashed && !expr.props.fallible && expr.props.deterministic;
    is_hashed.then_some((left, right, *comparison))
}

/// `left = right` with the placed side first, the other one over `own`.
pub fn split_equality<'e>(
    expr: &'e Expr,
    own: &BTreeSet<usize>,
    placed: &BTreeSet<usize>,
    columns: &dyn Fn(&Expr) -> BTreeSet<usize>,
) -> Option<(&'e Expr, &'e Expr, Comparison)> {
    let (left, right, comparison) = hashed_sides(expr)?;
    let sides = |a: &'e Expr, b: &'e Expr| {
        let (of_a, of_b) = (columns(a), columns(b));
        let is_split = !of_a.is_empty() && of_a.is_subset(placed);
        (is_split && !of_b.is_empty() && of_b.is_subset(own)).then_some((a, b, comparison))
    };
    sides(left, right).or_else(|| sides(right, left))
}

impl Planner<'_, '_> {
    /// The cheapest method to add `item` to `rows` rows.
    pub(super) fn weighed(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        placed: &BTreeSet<usize>,
        rows: f64,
    ) -> Weighed {
        let lookup = self.path(problem, item, placed, placed.is_empty());
        let id = problem.id(item);
        let facts = problem.items.get(item).map(|it| &it.facts);
        let known = |at: usize| facts.and_then(|facts| facts.share_of(at));
        let share = |at: usize, c: &Condition| {
            let whole =
                c.sources.contains(&id) && c.sources.iter().all(|s| *s == id || placed.contains(s));
            match whole {
                true => known(at).unwrap_or_else(|| selectivity(&c.expr)),
                false => 1.0,
            }
        };
        let list = problem.applicable(item);
        let class = |at: &usize| list.get(*at).and_then(|c| c.class);
        let mut classes: BTreeSet<usize> = lookup.used.iter().filter_map(class).collect();
        let residual: f64 = list
            .iter()
            .enumerate()
            .filter(|(at, c)| !lookup.used.contains(at) && !c.implied)
            .map(|(at, c)| match share(at, c) {
                share if share < 1.0 && c.class.is_some_and(|class| !classes.insert(class)) => 1.0,
                share => share,
            })
            .product();
        let left_join = problem.items.get(item).is_some_and(|i| i.on.is_some());
        let at_least = if left_join { rows } else { 0.0 };
        let after = (rows * lookup.access.rows * residual)
            .max(at_least)
            .max(0.1);
        // It is opened for each row; where a few will do, this is not done for all.
        let open = match placed.is_empty() || problem.limited {
            true => 0.0,
            false => COST_OPEN,
        };
        let by_lookup = |times: f64| Weighed {
            cost: times * (lookup.access.cost + open),
            rows: after,
            method: Method::Lookup(Rc::clone(&lookup)),
        };
        if placed.is_empty() {
            return by_lookup(1.0);
        }
        let chosen = self.path(problem, item, &BTreeSet::new(), false);
        let own = &chosen.access;
        if let Some(this) = problem.items.get(item) {
            if this.kind.takes_one() {
                return weighed_one(problem, this, placed, rows, (&lookup, residual), &chosen);
            }
            if !this.requires.is_empty() {
                return by_lookup(rows);
            }
        }
        let by_replay = own.cost + rows * own.rows;
        let mut best = match lookup.uses_placed {
            true if rows * (lookup.access.cost + open) <= by_replay => by_lookup(rows),
            _ => Weighed {
                cost: by_replay,
                rows: after,
                method: Method::Replay(Rc::clone(&chosen)),
            },
        };
        let this = problem.items.get(item);
        let keys = this.map_or_else(Vec::new, |this| this.facts.hash_keys(id, placed));
        if !keys.is_empty() {
            let list = problem.applicable(item);
            let all = this.map_or(own.rows, |i| i.rows);
            let pairs = problem.pairs_per_match(list, &one_of_class(list, &keys), rows.max(all));
            let pairs = pairs.unwrap_or(own.rows.max(10.0));
            let alone = |c: &Condition| c.sources.iter().all(|s| *s == id);
            let left = list.iter().enumerate();
            let left = left.filter(|(at, _)| !chosen.used.contains(at));
            let kept: f64 = left
                .map(|(at, c)| if alone(c) { share(at, c) } else { 1.0 })
                .product();
            let matches = (rows * own.rows * kept / pairs).max(at_least).max(0.1);
            let after = match lookup.uses_placed {
                true => after.min(matches),
                false => matches,
            };
            let cost = own.cost + own.rows * COST_BUILD + rows * COST_PROBE + COST_SEEK;
            best.rows = after;
            if cost < best.cost {
                best.cost = cost;
                best.method = Method::Hash(Rc::clone(&chosen), keys);
            }
        }
        best
    }

    /// The path to the rows of an item behind what is placed; `first`: in the wanted order,
    /// if it can be.
    fn path(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        placed: &BTreeSet<usize>,
        first: bool,
    ) -> Rc<Chosen> {
        let order = if first { problem.order } else { &[] };
        let facts = problem.items.get(item).map(|it| &it.facts);
        let choose = |known: &Known| self.access(problem, item, known, order);
        match facts {
            Some(facts) => facts.path(placed, first, choose),
            None => Facts::default().path(placed, first, choose),
        }
    }

    fn access(
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
                any_order: this.any_order,
                alone: problem.is_alone(),
            }),
        }
    }
}

/// The share of the left rows that are guessed to be left by a join that yields each of them
/// once at most.
pub(super) fn share_kept(kind: JoinKind) -> f64 {
    match kind {
        JoinKind::Semi | JoinKind::Anti => SHARE_WITH_PARTNER,
        _ => 1.0,
    }
}

/// The cheapest way to find the first partner of each of so many rows in `item`, of whose rows
/// a lookup finds some, and `residual` of these fulfil what is left.
fn weighed_one(
    problem: &Problem<'_, '_>,
    item: &Item<'_>,
    placed: &BTreeSet<usize>,
    rows: f64,
    (lookup, residual): (&Rc<Chosen>, f64),
    chosen: &Rc<Chosen>,
) -> Weighed {
    let (access, own) = (&lookup.access, &chosen.access);
    // The first partner will do.
    let looked_at = (1.0 / residual.max(0.01)).min(access.rows.max(1.0));
    let each = (access.cost - COST_SEEK).max(0.0) / access.rows.max(1.0);
    let by_lookup = rows * (COST_SEEK + COST_OPEN + looked_at * each);
    let by_hash = own.cost + own.rows * COST_BUILD + rows * COST_PROBE + COST_SEEK;
    let is_cheaper = problem.limited || by_lookup <= by_hash || !item.first_of_any(&access.path);
    let is_looked_up = lookup.uses_placed && is_cheaper;
    let (cost, method) = match is_looked_up {
        true => (by_lookup, Method::Lookup(Rc::clone(lookup))),
        false => {
            let keys = item.facts.hash_keys(item.source.id, placed);
            (by_hash, Method::Hash(Rc::clone(chosen), keys))
        }
    };
    let rows = (rows * share_kept(item.kind)).max(0.1);
    Weighed { method, rows, cost }
}

/// These conditions but for those of a class that another one of them belongs to.
fn one_of_class(conditions: &[Condition], numbers: &[usize]) -> Vec<usize> {
    let mut classes = BTreeSet::new();
    let class = |at: &usize| conditions.get(*at).and_then(|c| c.class);
    let is_first = |at: &&usize| class(at).is_none_or(|class| classes.insert(class));
    numbers.iter().filter(is_first).copied().collect()
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
