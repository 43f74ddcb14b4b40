//! The search for the order of a join.
//!
//! Greedy at first: from every possible first source, where there are few, what is cheapest
//! to add next. Where the order that was found costs far more than that, all orders are
//! weighed: the cheapest for each set of sources, from which those of larger sets are made.
//! A source that nothing connects to those placed waits while others are connected: to pair
//! all rows with the few of a small one is cheap, and what is joined behind it is found once
//! for each pair.

use super::Planner;
use super::few::Few;
use super::order::{Method, Order, Problem, Step, is_recursive};
use super::weigh::Weighed;
use crate::error::{Error, Result};

/// Up to so many sources, every one is tried as the first.
const TRIED_FIRST: usize = 8;
/// Up to so many, all orders may be weighed.
const ALL_MAX: usize = 10;
/// To weigh a source takes as long as so many rows take, in a search that may take a
/// twentieth of what its result does.
const COST_TO_WEIGH: f64 = 30.0;
const SHARE_OF_SEARCH: f64 = 0.05;

/// The beginning of an order.
#[derive(Clone)]
struct Begun {
    order: Order,
    placed: Vec<bool>,
    ids: Few<usize>,
    rows: f64,
}

impl Begun {
    fn new(problem: &Problem<'_, '_>) -> Begun {
        Begun {
            order: Order::default(),
            placed: vec![false; problem.items.len()],
            ids: problem.placed.clone(),
            rows: problem.rows,
        }
    }

    fn place(&mut self, problem: &Problem<'_, '_>, item: usize, weighed: Weighed) {
        self.rows = weighed.rows;
        self.order.place(problem, item, weighed);
        if let Some(done) = self.placed.get_mut(item) {
            *done = true;
        }
        self.ids.insert(problem.id(item));
    }

    /// What may come next.
    fn candidates(&self, problem: &Problem<'_, '_>) -> Vec<usize> {
        let is_placed = |i: &usize| self.placed.get(*i).copied().unwrap_or(true);
        let mut candidates: Vec<usize> = (0..problem.items.len())
            .filter(|i| !is_placed(i) && problem.may_follow(*i, &self.placed))
            .collect();
        let is_connected = |i: &usize| problem.is_connected(*i, &self.ids);
        if !self.order.steps.is_empty() && candidates.iter().any(is_connected) {
            candidates.retain(is_connected);
        }
        candidates
    }
}

impl Order {
    /// What it costs with one more source, and with the sort that the first one spares or
    /// does not.
    fn cost_with(&self, problem: &Problem<'_, '_>, weighed: &Weighed) -> f64 {
        let sort = match &weighed.method {
            Method::Lookup(chosen)
                if self.steps.is_empty() && !problem.order.is_empty() && !chosen.access.ordered =>
            {
                weighed.rows * (weighed.rows + 2.0).log2() * 0.5
            }
            _ => 0.0,
        };
        self.cost + weighed.cost + sort
    }

    /// With one more source.
    fn place(&mut self, problem: &Problem<'_, '_>, item: usize, weighed: Weighed) {
        self.cost = self.cost_with(problem, &weighed);
        let method = weighed.method;
        self.steps.push(Step { item, method });
    }
}

impl Planner<'_, '_> {
    /// The cheapest order that was found greedily.
    pub fn best_order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        if problem.items.is_empty() {
            return Ok(Order::default());
        }
        if problem.items.len() == 1 && problem.may_follow(0, &[false]) {
            let mut order = Order::default();
            if let Some(weighed) = self.weighed(problem, 0, &problem.placed, problem.rows) {
                order.place(problem, 0, weighed);
            }
            return match order.steps.is_empty() || order.cost == f64::INFINITY {
                true => Err(Error::sql("no query solution")),
                false => Ok(order),
            };
        }
        let firsts = Begun::new(problem).candidates(problem);
        // The rows of a recursion come first where they may: what is joined to them is
        // the same for all.
        let recursive = |i: &&usize| problem.items.get(**i).is_some_and(is_recursive);
        let firsts = if let Some(first) = firsts.iter().find(recursive) {
            vec![*first]
        } else if problem.items.len() <= TRIED_FIRST {
            firsts
        } else {
            let smallest = firsts.iter().copied().min_by(|a, b| {
                let weighed = |i: &usize| self.weighed(problem, *i, &problem.placed, problem.rows);
                let rows = |i| weighed(i).map_or(f64::INFINITY, |weighed| weighed.rows);
                rows(a).total_cmp(&rows(b))
            });
            smallest.into_iter().collect()
        };
        let mut best: Option<Order> = None;
        for first in firsts {
            let cost_max = best.as_ref().map_or(f64::INFINITY, |best| best.cost);
            if let Some(order) = self.order_from(problem, first, cost_max) {
                best = Some(order);
            }
        }
        best.ok_or_else(|| Error::sql("no query solution"))
    }

    /// The order that begins with a source, where it costs less than this.
    fn order_from(&self, problem: &Problem<'_, '_>, first: usize, cost_max: f64) -> Option<Order> {
        let mut begun = Begun::new(problem);
        let weighed = self.weighed(problem, first, &begun.ids, problem.rows)?;
        let mut next = Some((first, weighed));
        while let Some((item, weighed)) = next {
            begun.place(problem, item, weighed);
            if begun.order.cost >= cost_max {
                return None;
            }
            let candidates = begun.candidates(problem).into_iter();
            next = candidates
                .filter_map(|i| Some((i, self.weighed(problem, i, &begun.ids, begun.rows)?)))
                .min_by(|(_, a), (_, b)| (a.cost + a.rows).total_cmp(&(b.cost + b.rows)));
        }
        // Otherwise there are functions whose arguments come from what must stand behind
        // them.
        let is_whole = begun.order.steps.len() == problem.items.len();
        is_whole.then_some(begun.order)
    }

    /// The cheapest of all orders, where to weigh them takes little of the time that the one
    /// found so far does; else that one.
    pub(super) fn cheaper_order(&self, problem: &Problem<'_, '_>, found: Order) -> Order {
        let sources = problem.items.len();
        if self.writes_rows || !(3..=ALL_MAX).contains(&sources) {
            return found;
        }
        let sets = 1_usize << sources;
        let weighed = (sets * sources / 2) as f64;
        if problem.items.iter().any(is_recursive)
            || weighed * COST_TO_WEIGH > found.cost * SHARE_OF_SEARCH
        {
            return found;
        }
        let mut cheapest: Vec<Option<Begun>> = vec![None; sets];
        if let Some(none) = cheapest.first_mut() {
            *none = Some(Begun::new(problem));
        }
        for set in 0..sets - 1 {
            let Some(begun) = cheapest.get_mut(set).and_then(Option::take) else {
                continue;
            };
            for item in begun.candidates(problem) {
                let Some(weighed) = self.weighed(problem, item, &begun.ids, begun.rows) else {
                    continue;
                };
                let cost = begun.order.cost_with(problem, &weighed);
                let Some(known) = cheapest.get_mut(set | 1 << item) else {
                    continue;
                };
                let is_cheaper = known.as_ref().is_none_or(|known| cost < known.order.cost);
                if is_cheaper && cost < found.cost {
                    let mut longer = begun.clone();
                    longer.place(problem, item, weighed);
                    *known = Some(longer);
                }
            }
        }
        let whole = cheapest.pop().flatten();
        whole.map_or(found, |whole| whole.order)
    }
}
