//! What one more source costs: the cheapest method to add it to the rows before.

use std::rc::Rc;

use super::Planner;
use super::access::COST_SEEK;
use super::facts::Chosen;
use super::few::Few;
use super::order::{Condition, Item, Method, Problem, is_recursive};
use super::physical::JoinKind;
use crate::bind::expr::{CompareOp, Expr, ExprKind};

/// Cost of putting a row into a hash table, and of probing it.
pub(super) const COST_BUILD: f64 = 2.0;
pub(super) const COST_PROBE: f64 = 1.5;
/// Cost of opening the lookup for one row, beside that of finding the first key of a scan.
pub(super) const COST_OPEN: f64 = 12.0;
/// The share of rows that are guessed to have a partner.
const SHARE_WITH_PARTNER: f64 = 0.5;

/// A method with its estimates.
pub(super) struct Weighed {
    pub method: Method,
    /// Of the whole join so far.
    pub rows: f64,
    pub cost: f64,
}

/// A source that may be added to what is placed.
struct Next<'a, 'p, 'b> {
    problem: &'a Problem<'p, 'b>,
    item: &'a Item<'b>,
    /// The conditions that apply to it.
    conditions: &'a [Condition],
    placed: &'a Few<usize>,
    /// The rows before.
    rows: f64,
    /// How it is read by what is placed, and by itself.
    lookup: Rc<Chosen>,
    alone: Rc<Chosen>,
}

impl Planner<'_, '_> {
    /// The cheapest method to add `item` to `rows` rows.
    pub(super) fn weighed(
        &self,
        problem: &Problem<'_, '_>,
        item: usize,
        placed: &Few<usize>,
        rows: f64,
    ) -> Option<Weighed> {
        let lookup = self.path(problem, item, placed, placed.is_empty());
        let next = Next {
            problem,
            item: problem.items.get(item)?,
            conditions: problem.applicable(item),
            placed,
            rows,
            alone: match placed.is_empty() {
                true => Rc::clone(&lookup),
                false => self.path(problem, item, &Few::new(), false),
            },
            lookup,
        };
        let residual = next.residual();
        if placed.is_empty() {
            return Some(next.by_lookup(1.0, residual));
        }
        if next.item.kind.takes_one() {
            return Some(next.by_first_partner(residual));
        }
        if !next.item.requires.is_empty() {
            return Some(next.by_lookup(rows, residual));
        }
        let looked_up = next.by_lookup(rows, residual);
        let replayed = next.by_replay(looked_up.rows);
        // How many rows a recursion has is a guess, and what is replayed costs their product.
        let is_cheaper = looked_up.cost <= replayed.cost || is_of_recursion(problem, placed);
        let best = match next.lookup.uses_placed && is_cheaper {
            true => looked_up,
            false => replayed,
        };
        Some(next.or_by_hash(best))
    }
}

impl Next<'_, '_, '_> {
    fn id(&self) -> usize {
        self.item.source.id
    }

    /// What a condition lets through, once this source is placed.
    fn share(&self, at: usize, condition: &Condition) -> f64 {
        let is_known = |source: &usize| *source == self.id() || self.placed.contains(source);
        let applies = condition.sources.contains(&self.id());
        match applies && condition.sources.iter().all(is_known) {
            true => {
                let known = self.item.facts.share_of(at);
                known.unwrap_or_else(|| selectivity(&condition.expr))
            }
            false => 1.0,
        }
    }

    /// What those conditions let through that the lookup does not answer.
    fn residual(&self) -> f64 {
        let class = |at: &usize| self.conditions.get(*at).and_then(|c| c.class);
        let used = &self.lookup.used;
        let mut classes: Few<usize> = used.iter().filter_map(class).collect();
        let left = self.conditions.iter().enumerate();
        let left = left.filter(|(at, c)| !used.contains(at) && !c.implied);
        left.map(|(at, c)| match self.share(at, c) {
            share if share < 1.0 && c.class.is_some_and(|class| !classes.insert(class)) => 1.0,
            share => share,
        })
        .product()
    }

    /// Rows that are left at least.
    fn at_least(&self) -> f64 {
        match self.item.on {
            Some(_) => self.rows.max(0.1),
            None => 0.1,
        }
    }

    fn by_lookup(&self, times: f64, residual: f64) -> Weighed {
        let access = &self.lookup.access;
        // It is opened for each row; where a few will do, this is not done for all.
        let open = match self.placed.is_empty() || self.problem.limited {
            true => 0.0,
            false => COST_OPEN,
        };
        Weighed {
            cost: times * (access.cost + open),
            rows: (self.rows * access.rows * residual).max(self.at_least()),
            method: Method::Lookup(Rc::clone(&self.lookup)),
        }
    }

    fn by_replay(&self, rows: f64) -> Weighed {
        let own = &self.alone.access;
        Weighed {
            cost: own.cost + self.rows * own.rows,
            rows,
            method: Method::Replay(Rc::clone(&self.alone)),
        }
    }

    fn cost_of_hash(&self) -> f64 {
        let own = &self.alone.access;
        own.cost + own.rows * self.kept() * COST_BUILD + self.rows * COST_PROBE + COST_SEEK
    }

    /// What the conditions on it alone let through of the rows that it is read by.
    fn kept(&self) -> f64 {
        let is_alone = |c: &Condition| c.sources.iter().all(|source| *source == self.id());
        let left = self.conditions.iter().enumerate();
        let left = left.filter(|(at, c)| !self.alone.used.contains(at) && is_alone(c));
        left.map(|(at, c)| self.share(at, c)).product()
    }

    /// A hash join where that costs less than `best`. What it would tell of the rows counts
    /// in any case.
    fn or_by_hash(&self, best: Weighed) -> Weighed {
        let keys = self.item.facts.hash_keys(self.id(), self.placed);
        if keys.is_empty() {
            return best;
        }
        let own = &self.alone.access;
        let all = self.rows.max(self.item.rows);
        let counted = one_of_class(self.conditions, &keys);
        let pairs = self
            .problem
            .pairs_per_match(self.conditions, &counted, all)
            .unwrap_or(own.rows.max(10.0));
        let matches = (self.rows * own.rows * self.kept() / pairs).max(self.at_least());
        let rows = match self.lookup.uses_placed {
            true => best.rows.min(matches),
            false => matches,
        };
        let cost = self.cost_of_hash();
        match cost < best.cost {
            true => Weighed {
                method: Method::Hash(Rc::clone(&self.alone), keys),
                rows,
                cost,
            },
            false => Weighed { rows, ..best },
        }
    }

    /// The cheapest way to find the first partner of each row, where `residual` of the rows
    /// that a lookup finds fulfil what is left.
    fn by_first_partner(&self, residual: f64) -> Weighed {
        let access = &self.lookup.access;
        // The first partner will do.
        let looked_at = (1.0 / residual.max(0.01)).min(access.rows.max(1.0));
        let each = (access.cost - COST_SEEK).max(0.0) / access.rows.max(1.0);
        let by_lookup = self.rows * (COST_SEEK + COST_OPEN + looked_at * each);
        let by_hash = self.cost_of_hash();
        let is_cheaper =
            self.problem.limited || by_lookup <= by_hash || !self.item.first_of_any(&access.path);
        let (cost, method) = match self.lookup.uses_placed && is_cheaper {
            true => (by_lookup, Method::Lookup(Rc::clone(&self.lookup))),
            false => {
                let keys = self.item.facts.hash_keys(self.id(), self.placed);
                (by_hash, Method::Hash(Rc::clone(&self.alone), keys))
            }
        };
        let rows = (self.rows * share_kept(self.item.kind)).max(0.1);
        Weighed { method, rows, cost }
    }
}

/// Whether the rows of a recursion are among what is placed.
fn is_of_recursion(problem: &Problem<'_, '_>, placed: &Few<usize>) -> bool {
    let mut items = problem.items.iter();
    items.any(|item| is_recursive(item) && placed.contains(&item.source.id))
}

/// The share of the left rows that are guessed to be left by a join that yields each of them
/// once at most.
pub(super) fn share_kept(kind: JoinKind) -> f64 {
    match kind {
        JoinKind::Semi | JoinKind::Anti => SHARE_WITH_PARTNER,
        _ => 1.0,
    }
}

/// These conditions but for those of a class that another one of them belongs to.
fn one_of_class(conditions: &[Condition], numbers: &[usize]) -> Vec<usize> {
    let mut classes = Few::new();
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
