//! What a join's order is sought in: the sources, the conditions, and which source may follow
//! which. What a source costs is weighed in `weigh.rs`, the search is in `search.rs`.
//!
//! A source on the right of a LEFT JOIN or behind CROSS JOIN stays where the text has it, and
//! so do those behind it.

use std::rc::Rc;
use std::sync::Arc;

use super::Planner;
use super::access::{self, Access, COST_SEEK, Path, Request};
use super::facts::{Chosen, Facts, Known};
use super::few::Few;
use super::in_lookup::NotIn;
use super::members::Members;
use super::physical::JoinKind;
use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind, SortKey};
use crate::bind::logical::{KeyExpr, Source, SourceKind};
use crate::row::Property;

/// A condition and the sources it reads.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The condition.
    pub expr: Expr,
    /// Sources of this block that it reads.
    pub sources: Few<usize>,
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

/// A partial index that holds all rows wanted of a source.
pub struct Partial {
    /// Its number.
    pub index: usize,
    /// How many entries it has.
    pub entries: f64,
    /// The conditions that hold for each of them, by their numbers.
    pub said: Few<usize>,
    /// The columns that are read, but for those that only these conditions read.
    pub needed: Few<usize>,
}

/// A source with what is known of it.
pub struct Item<'b> {
    /// The source.
    pub source: &'b Source,
    /// Columns that are read.
    pub needed: Few<usize>,
    /// Those of them that are read above the joins.
    pub shown: Few<usize>,
    /// What is asked of those of them whose values are not.
    pub properties: Few<(usize, Property)>,
    /// How it is joined to those before it.
    pub kind: JoinKind,
    /// ON conditions, unless it is joined by an inner join.
    pub on: Option<Vec<Condition>>,
    /// What is asked of a row without a partner.
    pub not_in: Option<NotIn>,
    /// Rows it has.
    pub rows: f64,
    /// They may come in any order.
    pub any_order: bool,
    /// Its partial indexes that hold all rows wanted of it.
    pub partial: Vec<Partial>,
    /// What is known of the entries that share a key, by index.
    pub per_key: Vec<(usize, Arc<[f64]>)>,
    /// The parts of its indexes' keys that are no columns.
    pub computed: Vec<KeyExpr>,
    /// The sources that must be placed before it: those that the arguments of a function read,
    /// or the conditions of a semi-join.
    pub requires: Few<usize>,
    /// What the conditions that apply to it say about it.
    pub facts: Facts,
}

impl Item<'_> {
    /// Whether the first row of a key that a path finds is the first one of any other.
    pub(super) fn first_of_any(&self, path: &Path) -> bool {
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
    /// All rows are read, whatever is asked of the query.
    pub all: bool,
    /// Sources that are joined already.
    pub placed: Few<usize>,
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
    pub fn is_connected(&self, item: usize, placed: &Few<usize>) -> bool {
        let id = self.id(item);
        self.applicable(item).iter().any(|condition| {
            let mut others = condition.sources.iter().filter(|source| **source != id);
            let is_of_others = others.clone().next().is_some();
            let reads_it = condition.sources.contains(&id);
            reads_it && is_of_others && others.all(|source| placed.contains(source))
        })
    }

    /// Whether there is nothing to join.
    pub(super) fn is_alone(&self) -> bool {
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
    own: &Few<usize>,
    placed: &Few<usize>,
    columns: &dyn Fn(&Expr) -> Few<usize>,
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
    /// The path to the rows of an item behind what is placed; `first`: in the wanted order,
    /// if it can be.
    pub(super) fn path(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        placed: &Few<usize>,
        first: bool,
    ) -> Rc<Chosen> {
        // Where none is wanted, any path is in order.
        let first = first && !problem.order.is_empty();
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
