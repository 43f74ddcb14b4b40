//! What conditions say about a source, found once before an order is sought.
//!
//! An order weighs every source many times, each time with others placed before it. What
//! that changes is which terms have known values, and so which paths there are; a path that
//! was chosen once is kept for whoever knows as much again.

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::SmallVec;

use super::access::{self, Access};
use super::either::{self, Either};
use super::few::Few;
use super::order::{Condition, hashed_sides};
use super::terms::{Term, terms};
use crate::bind::expr::Expr;
use crate::bind::logical::KeyExpr;

/// A term that is known where the sources are placed that its values read.
#[derive(Debug)]
struct Fact {
    term: Rc<Term>,
    reads: Few<usize>,
    /// Other conditions say as much, once their sources are placed.
    implied: bool,
}

/// An equality between two expressions that can be hashed.
#[derive(Debug)]
struct Equality {
    condition: usize,
    implied: bool,
    left: Few<usize>,
    right: Few<usize>,
}

/// Terms whose values are known.
pub type KnownTerms = SmallVec<[Rc<Term>; 4]>;

/// What is known of a source before it is read.
#[derive(Debug, Default)]
pub struct Known {
    /// Terms about it.
    pub terms: KnownTerms,
    /// Conditions with alternatives that all say something.
    pub either: Vec<Either>,
}

/// A path that was chosen.
#[derive(Debug)]
pub struct Chosen {
    /// The path.
    pub access: Access,
    /// The conditions that its terms stem from, and those that all its rows fulfil.
    pub used: Few<usize>,
    /// Its terms read what is placed before.
    pub uses_placed: bool,
    /// The sources it was chosen behind, of those that matter.
    placed: Few<usize>,
    /// It was chosen for the order wanted of the first source.
    ordered: bool,
}

/// What the conditions on a source say about it.
#[derive(Debug, Default)]
pub struct Facts {
    terms: Vec<Fact>,
    either: Vec<Vec<Vec<Fact>>>,
    equalities: Vec<Equality>,
    /// The sources that any of the terms' values read.
    reads: Few<usize>,
    /// Shares of the rows that were seen to fulfil conditions, by their numbers.
    sampled: RefCell<Vec<(usize, f64)>>,
    chosen: RefCell<Vec<Rc<Chosen>>>,
}

impl Facts {
    /// What these conditions say about `source`, whose keys have the parts `computed`.
    pub fn new(
        conditions: &[Condition],
        source: usize,
        computed: &[KeyExpr],
        columns: &dyn Fn(&Expr) -> Few<usize>,
    ) -> Facts {
        let mut facts = Facts::default();
        let mut found = Vec::new();
        let is_implied = |at: usize| conditions.get(at).is_some_and(|c| c.implied);
        for (at, condition) in conditions.iter().enumerate() {
            if !condition.movable || !condition.sources.contains(&source) {
                continue;
            }
            let (expr, members) = (&condition.expr, condition.members.as_ref());
            terms(expr, members, at, source, computed, &mut found);
            let either = either::alternatives(expr, at, source, computed);
            facts.either.extend(either.map(|arms| {
                let arms = arms.into_iter();
                arms.map(|arm| facts_of(arm, columns, &is_implied))
                    .collect()
            }));
            facts.equalities.extend(equality(condition, at, columns));
        }
        facts.terms = facts_of(found, columns, &is_implied);
        let arms = facts.either.iter().flatten().flatten();
        let all = facts.terms.iter().chain(arms);
        facts.reads = all.flat_map(|fact| &fact.reads).copied().collect();
        facts
    }

    /// All terms, and whether their values read any source, while no path was chosen yet.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (&mut Term, bool)> {
        let arms = self.either.iter_mut().flatten().flatten();
        let all = self.terms.iter_mut().chain(arms);
        all.filter_map(|fact| Some((Rc::get_mut(&mut fact.term)?, !fact.reads.is_empty())))
    }

    /// Notes what was found of conditions by looking at some rows.
    pub fn note_sampled(&self, shares: Vec<(usize, f64)>) {
        *self.sampled.borrow_mut() = shares;
    }

    /// What a condition lets through of a table's rows, where that is known.
    pub fn share_of(&self, condition: usize) -> Option<f64> {
        let sampled = || {
            let sampled = self.sampled.borrow();
            let found = sampled.iter().find(|(at, _)| *at == condition);
            found.map(|(_, share)| *share)
        };
        self.share_between_bounds(condition).or_else(sampled)
    }

    fn share_between_bounds(&self, condition: usize) -> Option<f64> {
        let terms = self.terms.iter().map(|fact| &fact.term);
        let mut bounds = terms.filter(|term| term.condition == condition);
        let first = bounds.next()?;
        let index = first.shares.first()?.index;
        let second = bounds.next();
        access::share_between(index, Some(first), second.map(|term| &**term))
    }

    /// All terms about the source, those of alternatives too.
    pub fn all(&self) -> impl Iterator<Item = &Rc<Term>> {
        let arms = self.either.iter().flatten().flatten();
        self.terms.iter().chain(arms).map(|fact| &fact.term)
    }

    /// What is known once these sources are placed.
    fn known(&self, placed: &Few<usize>) -> Known {
        let known = |facts: &[Fact]| -> KnownTerms {
            let known = facts.iter().filter(|fact| fact.reads.is_subset(placed));
            let is_said = |implied: &Fact| {
                let mut said = known.clone().filter(|fact| !fact.implied);
                said.any(|fact| fact.term.says_as_much(&implied.term))
            };
            let needed = known.clone().filter(|fact| !fact.implied || !is_said(fact));
            needed.map(|fact| Rc::clone(&fact.term)).collect()
        };
        let alternatives = |arms: &Vec<Vec<Fact>>| {
            let arms: Vec<_> = arms.iter().map(|arm| known(arm)).collect();
            (!arms.iter().any(|arm| arm.is_empty())).then_some(Either { arms })
        };
        Known {
            terms: known(&self.terms),
            either: self.either.iter().filter_map(alternatives).collect(),
        }
    }

    /// The path that `choose` takes for what is known once these sources are placed, in
    /// the wanted order if it is to be `ordered`.
    pub fn path(
        &self,
        placed: &Few<usize>,
        ordered: bool,
        choose: impl FnOnce(&Known) -> Access,
    ) -> Rc<Chosen> {
        let of_use = || placed.iter().filter(|id| self.reads.contains(id));
        let is_same = |it: &&Rc<Chosen>| it.ordered == ordered && it.placed.iter().eq(of_use());
        if let Some(same) = self.chosen.borrow().iter().find(is_same) {
            return Rc::clone(same);
        }
        let access = choose(&self.known(placed));
        let terms = access.path.terms();
        let used = terms.iter().map(|term| term.condition);
        let used = used.chain(access.path.said()).collect();
        let uses_placed = terms.iter().any(|term| self.reads_sources(term));
        drop(terms);
        let chosen = Rc::new(Chosen {
            used,
            uses_placed,
            placed: of_use().copied().collect(),
            ordered,
            access,
        });
        self.chosen.borrow_mut().push(Rc::clone(&chosen));
        chosen
    }

    fn reads_sources(&self, term: &Rc<Term>) -> bool {
        let arms = self.either.iter().flatten().flatten();
        let mut facts = self.terms.iter().chain(arms);
        facts.any(|fact| !fact.reads.is_empty() && Rc::ptr_eq(&fact.term, term))
    }

    /// Equalities between the source and what is placed, by the numbers of their conditions.
    pub fn hash_keys(&self, source: usize, placed: &Few<usize>) -> Vec<usize> {
        let is_own = |side: &Few<usize>| side.len() == 1 && side.contains(&source);
        let is_placed = |side: &Few<usize>| !side.is_empty() && side.is_subset(placed);
        let splits = |it: &&Equality| {
            is_own(&it.left) && is_placed(&it.right) || is_own(&it.right) && is_placed(&it.left)
        };
        let all = || self.equalities.iter().filter(splits);
        let are_implied = all().all(|it| it.implied);
        let keys = all().filter(|it| are_implied || !it.implied);
        keys.map(|it| it.condition).collect()
    }
}

/// Those of some terms whose values may be known before the source is read.
fn facts_of(
    terms: Vec<Term>,
    columns: &dyn Fn(&Expr) -> Few<usize>,
    is_implied: &dyn Fn(usize) -> bool,
) -> Vec<Fact> {
    let may_be_known = |term: &Term| {
        let mut values = term.values.iter();
        values.all(|v| v.props.deterministic && !v.props.fallible)
    };
    let terms = terms.into_iter().filter(may_be_known);
    let fact = |term: Term| Fact {
        reads: term.values.iter().flat_map(columns).collect(),
        implied: is_implied(term.condition),
        term: Rc::new(term),
    };
    terms.map(fact).collect()
}

/// The sides of a condition that is an equality which can be hashed.
fn equality(
    condition: &Condition,
    at: usize,
    columns: &dyn Fn(&Expr) -> Few<usize>,
) -> Option<Equality> {
    let (left, right, _) = hashed_sides(&condition.expr)?;
    (condition.sources.len() > 1).then(|| Equality {
        condition: at,
        implied: condition.implied,
        left: columns(left),
        right: columns(right),
    })
}
