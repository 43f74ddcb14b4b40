//! Access paths: how the rows of one table are found.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::any_order::cost_of_entries;
use super::either::{self, Either};
use super::facts::Facts;
use super::few::Few;
use super::order::Partial;
use super::terms::{Operand, Term, TermOp};
use crate::bind::expr::{ColumnRef, Expr, ExprKind, ROWID, SortKey};
use crate::bind::logical::{IndexHint, KeyExpr};
use crate::schema::{Index, IndexTarget, Table};
use crate::value::Affinity;

/// Cost of one row of a scan is 1; these are relative to it.
pub const COST_SEEK: f64 = 4.0;
/// Fetching a row for an index entry, where rows near it are fetched, too, or the table is
/// small.
const COST_FETCH: f64 = 5.0;
/// What is added where the row's leaf was not looked at for long (measured: 280 ns in all in a
/// table of 120,000 rows, of which one is scanned in 17).
const COST_FAR: f64 = 10.0;
/// Rows that stay in the processor's caches, and rows of a leaf.
const ROWS_CACHED: f64 = 10_000.0;
const ROWS_OF_LEAF: f64 = 64.0;
/// Rows found by a key that is not unique, for want of statistics.
pub const ROWS_PER_KEY: f64 = 10.0;
/// The share of rows that a bound is guessed to let through.
const SHARE_OF_BOUND: f64 = 0.25;
/// Of what an unknown range is guessed to cost, the share that it is guessed to find: one asks
/// for what is new, or of a day, far more often than for a quarter of all rows.
const SHARE_FOUND: f64 = 0.2;
/// Most alternatives that IN lists may unfold to.
const PREFIXES_MAX: usize = 1000;

/// Fetching one of so many rows of a table that are fetched one behind the other.
pub fn cost_of_fetch(table_rows: f64, fetched: f64) -> f64 {
    let near = ROWS_CACHED + ROWS_OF_LEAF * fetched;
    COST_FETCH + COST_FAR * (1.0 - near / table_rows.max(1.0)).max(0.0)
}

/// A way to the rows.
#[derive(Debug, Clone)]
pub enum Path {
    /// All rows in rowid order, within bounds.
    Scan {
        /// Lower bound.
        low: Option<Rc<Term>>,
        /// Upper bound.
        high: Option<Rc<Term>>,
    },
    /// By rowid.
    Rowid(Rc<Term>),
    /// Through an index.
    Index {
        /// The index.
        index: Arc<Index>,
        /// Equalities for its leading parts.
        equal: Vec<Rc<Term>>,
        /// Lower bound of the next part.
        low: Option<Rc<Term>>,
        /// Upper bound.
        high: Option<Rc<Term>>,
        /// Needs no row.
        covering: bool,
        /// The conditions that hold for all entries of a partial one, by their numbers.
        said: Few<usize>,
    },
    /// By rowid, of the rows that any of these finds.
    Either(Vec<Access>),
    /// A call of a table-valued function, whose arguments may read what is before it.
    Call,
}

/// A path with its estimates.
#[derive(Debug, Clone)]
pub struct Access {
    /// The path.
    pub path: Path,
    /// Cost of going it once.
    pub cost: f64,
    /// Rows it yields.
    pub rows: f64,
    /// Backwards.
    pub reverse: bool,
    /// It yields the order that was asked for.
    pub ordered: bool,
}

/// What is known when a path is chosen.
pub struct Request<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The source's number.
    pub source: usize,
    /// Rows of the table.
    pub rows: f64,
    /// Columns that are read.
    pub needed: &'a Few<usize>,
    /// Usable terms: their values are known before the table is read.
    pub terms: &'a [Rc<Term>],
    /// What conditions with alternatives say, where each alternative says something.
    pub either: &'a [Either],
    /// An order that would spare a sort.
    pub order: &'a [SortKey],
    /// INDEXED BY.
    pub hint: &'a IndexHint,
    /// Partial indexes that may be used.
    pub partial: &'a [Partial],
    /// Of each number of leading parts of an index, by its number, about how many entries
    /// have the same values in them; the indexes of which that is known.
    pub per_key: &'a [(usize, Arc<[f64]>)],
    /// The parts of keys that are no columns.
    pub computed: &'a [KeyExpr],
    /// Only the first few rows may be wanted.
    pub limited: bool,
    /// They may come in any order.
    pub any_order: bool,
    /// No other source multiplies its rows: a rowid comes once.
    pub alone: bool,
}

impl Request<'_> {
    /// Whether a part of an index's key, both by number, can answer a term.
    fn answers(&self, number: usize, at: usize, term: &Term) -> bool {
        answers(self.table, self.computed, (number, at), term)
    }
}

/// Whether a part of an index's key, the index and the part by number, can answer a term.
pub fn answers(
    table: &Table,
    computed: &[KeyExpr],
    (number, at): (usize, usize),
    term: &Term,
) -> bool {
    let index = table.indexes.get(number);
    let Some(part) = index.and_then(|index| index.columns.get(at)) else {
        return false;
    };
    let is_about = match (part_column(&part.target), &term.operand) {
        (Some(column), _) => term.is_about(column),
        (None, Operand::Computed(kind)) => computed
            .iter()
            .any(|c| (c.index, c.part) == (number, at) && c.expr.kind == **kind),
        (None, Operand::Column(_)) => false,
    };
    is_about && term.fits(part.affinity, Some(part.collation))
}

impl Path {
    /// The terms it answers.
    pub fn terms(&self) -> SmallVec<[&Rc<Term>; 4]> {
        match self {
            Path::Scan { low, high } => low.iter().chain(high).collect(),
            Path::Rowid(term) => std::iter::once(term).collect(),
            Path::Call => SmallVec::new(),
            Path::Either(arms) => arms.iter().flat_map(|arm| arm.path.terms()).collect(),
            Path::Index {
                equal, low, high, ..
            } => equal.iter().chain(low).chain(high).collect(),
        }
    }

    /// The conditions that hold for all rows it may find, whatever the terms, by their numbers.
    pub fn said(&self) -> impl Iterator<Item = usize> {
        let said = match self {
            Path::Index { said, .. } => Some(said),
            _ => None,
        };
        said.into_iter().flatten().copied()
    }
}

/// The cheapest path; of infinite cost where INDEXED BY names an index that lacks rows.
pub fn choose(request: &Request<'_>) -> Access {
    let mut best = scan(request);
    let mut consider = |access: Access| {
        let sort = |a: &Access| {
            if request.order.is_empty() || a.ordered {
                0.0
            } else {
                a.rows * (a.rows + 2.0).log2() * 0.5
            }
        };
        if access.cost + sort(&access) < best.cost + sort(&best) {
            best = access;
        }
    };
    if let IndexHint::Named(name) = request.hint {
        let named = request
            .table
            .indexes
            .iter()
            .position(|i| i.name.eq_ignore_ascii_case(name));
        let access = named.and_then(|index| through_index(request, index, true));
        return access.unwrap_or(Access {
            cost: f64::INFINITY,
            ..best
        });
    }
    for term in request.terms.iter().filter(|t| t.is_about(ROWID)) {
        if matches!(term.op, TermOp::Equal | TermOp::In | TermOp::Is)
            && term.fits(Some(Affinity::Integer), None)
        {
            let keys = term.keys;
            let single = keys <= 1.0 && term.op != TermOp::In;
            let ordered = single && own_order(request) || rowid_order(request) == Some(false);
            let cost = COST_SEEK * keys.max(1.0);
            let path = Path::Rowid(term.clone());
            consider(Access {
                path,
                cost,
                rows: keys.min(request.rows),
                reverse: false,
                ordered,
            });
        }
    }
    if *request.hint != IndexHint::None {
        for index in 0..request.table.indexes.len() {
            if let Some(access) = through_index(request, index, false) {
                consider(access);
            }
        }
    }
    for it in request.either {
        if let Some(access) = either::through(request, it) {
            consider(access);
        }
    }
    best
}

fn scan(request: &Request<'_>) -> Access {
    let bound = |lower: bool| {
        request
            .terms
            .iter()
            .find(|t| {
                t.is_about(ROWID)
                    && t.fits(Some(Affinity::Integer), None)
                    && match t.op {
                        TermOp::Lower { .. } => lower,
                        TermOp::Upper { .. } => !lower,
                        _ => false,
                    }
            })
            .cloned()
    };
    let (low, high) = (bound(true), bound(false));
    let (low_term, high_term) = (low.as_deref(), high.as_deref());
    let rows = request.rows * range_share(ROWID, low_term, high_term);
    let found = rows * share_found(ROWID, low_term, high_term);
    let order = rowid_order(request);
    let ordered = order.is_some();
    let reverse = order == Some(true);
    Access {
        path: Path::Scan { low, high },
        cost: rows.max(1.0) + COST_SEEK,
        rows: found,
        reverse,
        ordered,
    }
}

/// The share of an index's entries between two bounds of its first part, guessed where it
/// is not known.
fn range_share(index: usize, low: Option<&Term>, high: Option<&Term>) -> f64 {
    let guess = |bound: Option<&Term>| match bound {
        Some(term) => share_between(index, Some(term), None).unwrap_or(match term.op {
            TermOp::Prefix => SHARE_OF_BOUND * SHARE_OF_BOUND,
            _ => SHARE_OF_BOUND,
        }),
        None => 1.0,
    };
    share_between(index, low, high).unwrap_or_else(|| guess(low) * guess(high))
}

/// What is found of the rows that a range counts as, which are more than it may have where a
/// bound has no value yet that is the same for all rows. So it is chosen for what it costs if
/// it is large, and what is done with its rows if it is small: a plan for few rows that turn
/// out to be all of them takes a few times as long as the best one, while a plan for many
/// looks at whole tables for the last five.
fn share_found(index: usize, low: Option<&Term>, high: Option<&Term>) -> f64 {
    let is_open = |term: &&Term| term.fixed && term.share_of(index).is_none();
    match low.iter().chain(&high).any(is_open) {
        true => SHARE_FOUND,
        false => 1.0,
    }
}

/// The share of an index's entries within bounds of its first part; None where it is not
/// known of one of them, or there are none.
pub fn share_between(index: usize, one: Option<&Term>, other: Option<&Term>) -> Option<f64> {
    let known = |term: &Term| Some((*term.share_of(index)?, term.is_lower()));
    let share = match (one, other) {
        (None, None) => return None,
        (Some(term), None) | (None, Some(term)) => match known(term)? {
            (share, true) => share.within,
            (share, false) => share.within - share.nulls,
        },
        (Some(one), Some(other)) => {
            let (one, is_lower) = known(one)?;
            let (other, is_other_lower) = known(other)?;
            if is_lower == is_other_lower {
                return None;
            }
            one.within + other.within - 1.0
        }
    };
    Some(share.max(0.0))
}

/// Whether the wanted order is of this source's rows alone: one row satisfies it.
fn own_order(request: &Request<'_>) -> bool {
    let own = |key: &SortKey| matches!(key.expr.kind, ExprKind::Column(column) if column.source == request.source);
    request.alone || request.order.iter().all(own)
}

/// Whether rowid order is the wanted one, and if so whether backwards.
fn rowid_order(request: &Request<'_>) -> Option<bool> {
    let first = request.order.first()?;
    if request.order.len() > 1 && !request.alone {
        return None;
    }
    let rowid = ExprKind::Column(ColumnRef {
        source: request.source,
        column: ROWID,
    });
    (first.expr.kind == rowid && first.nulls_first != first.descending).then_some(first.descending)
}

/// The path through an index; without `forced` only where it narrows the search
/// or yields the wanted order.
fn through_index(request: &Request<'_>, number: usize, forced: bool) -> Option<Access> {
    let index = request.table.indexes.get(number)?;
    let partial = match index.predicate {
        None => None,
        Some(_) => Some(request.partial.iter().find(|it| it.index == number)?),
    };
    let all = partial.map_or(request.rows, |it| it.entries);
    let mut equal: Vec<Rc<Term>> = Vec::new();
    let (mut alternatives, mut keys, mut of_subquery) = (1usize, 1.0, false);
    for at in 0..index.columns.len() {
        let found = request.terms.iter().find(|t| {
            matches!(t.op, TermOp::Equal | TermOp::Is | TermOp::In)
                && t.values.len().saturating_mul(alternatives) <= PREFIXES_MAX
                && !(of_subquery && t.is_of_subquery())
                && request.answers(number, at, t)
        });
        let Some(term) = found else { break };
        alternatives *= term.values.len();
        keys *= term.keys;
        of_subquery |= term.is_of_subquery();
        equal.push(term.clone());
    }
    let (low, high) = range_terms(request, number, equal.len());
    let (ordered, reverse) = match index_order(request, index, &equal) {
        Some(reverse) => (true, reverse),
        None => (request.order.is_empty(), false),
    };
    let useful = !equal.is_empty()
        || low.is_some()
        || high.is_some()
        || index.predicate.is_some()
        || (ordered && !request.order.is_empty());
    if !useful && !forced && !request.any_order {
        return None;
    }
    let needed = partial.map_or(request.needed, |it| &it.needed);
    let covering = covers(index, needed.iter().copied());
    // Its entries are read in place of all rows where they are narrower.
    let narrow = match !useful && covering && request.any_order {
        true => cost_of_entries(request.table, index),
        false => None,
    };
    if !useful && !forced && narrow.is_none() {
        return None;
    }
    let rows = if index.unique && equal.len() == index.columns.len() {
        keys
    } else if equal.is_empty() {
        all * range_share(number, low.as_deref(), high.as_deref())
    } else {
        let known = request.per_key.iter().find(|(i, _)| *i == number);
        let known = known.and_then(|(_, per_key)| per_key.get(equal.len() - 1).copied());
        let per_key = known.unwrap_or((ROWS_PER_KEY - equal.len() as f64 + 1.0).max(1.0));
        let has_bound = low.is_some() || high.is_some();
        keys * per_key * if has_bound { SHARE_OF_BOUND } else { 1.0 }
    };
    let rows = rows.min(all);
    let share_found = match equal.is_empty() {
        true => share_found(number, low.as_deref(), high.as_deref()),
        false => 1.0,
    };
    let is_first = request.limited && ordered && !request.order.is_empty();
    let fetched = if is_first { rows.min(100.0) } else { rows };
    let each = match covering {
        true => narrow.unwrap_or(1.0),
        false => 1.0 + cost_of_fetch(request.rows, fetched),
    };
    let mut cost = COST_SEEK * keys + fetched * each;
    // The first of the rows that an index is made for are its first entries, while a scan
    // passes over all others that lie before them, however few there are by now.
    let finds_first = index.predicate.is_some() && is_first;
    if !equal.is_empty() && !of_subquery || finds_first || share_found < 1.0 {
        // Keys that most rows share, and ranges that hold most rows, are rarely those that
        // are asked for, so that an index is never worse than to look at all rows.
        cost = cost.min(request.rows);
    }
    let path = Path::Index {
        index: index.clone(),
        equal,
        low,
        high,
        covering,
        said: partial.map_or_else(Few::new, |it| it.said.clone()),
    };
    Some(Access {
        path,
        cost,
        rows: rows * share_found,
        reverse,
        ordered,
    })
}

/// Whether one of the terms about a table is an equality for the first part of an index, by number.
pub fn may_answer(table: &Table, number: usize, computed: &[KeyExpr], facts: &Facts) -> bool {
    let answers = |term: &Rc<Term>| {
        matches!(term.op, TermOp::Equal | TermOp::Is | TermOp::In)
            && answers(table, computed, (number, 0), term)
    };
    facts.all().any(answers)
}

/// The bounds on the part behind a prefix of the index's key, which is the rowid behind all of
/// its columns; a [`TermOp::Prefix`] stands for both.
fn range_terms(
    request: &Request<'_>,
    number: usize,
    prefix: usize,
) -> (Option<Rc<Term>>, Option<Rc<Term>>) {
    let index = request.table.indexes.get(number);
    // Entries of a UNIQUE index have the rowid elsewhere.
    let ends_in_rowid = |index: &Arc<Index>| !index.unique && index.columns.len() == prefix;
    let is_of_rowid = index.is_some_and(ends_in_rowid);
    let answers = |t: &Term| match is_of_rowid {
        true => t.is_about(ROWID) && t.fits(Some(Affinity::Integer), None),
        false => request.answers(number, prefix, t),
    };
    let find = |lower: bool| {
        let bounds = |t: &&Rc<Term>| match t.op {
            TermOp::Lower { .. } => lower,
            TermOp::Upper { .. } => !lower,
            _ => false,
        };
        let mut terms = request.terms.iter().filter(bounds);
        terms.find(|t| answers(t)).cloned()
    };
    let (low, high) = (find(true), find(false));
    if low.is_some() || high.is_some() {
        return (low, high);
    }
    let mut terms = request.terms.iter();
    let is_prefix = |t: &&Rc<Term>| t.op == TermOp::Prefix && answers(t);
    (terms.find(is_prefix).cloned(), None)
}

/// Whether the index yields the wanted order, and if so whether backwards.
/// Parts bound to one value may stand anywhere.
fn index_order(request: &Request<'_>, index: &Index, equal: &[Rc<Term>]) -> Option<bool> {
    if request.order.is_empty() || !equal.iter().all(|term| term.is_single()) {
        return None;
    }
    let mut parts = index.columns.iter().enumerate().peekable();
    let mut reverse: Option<bool> = None;
    for key in request.order {
        let ExprKind::Column(column) = key.expr.kind else {
            return None;
        };
        if column.source != request.source {
            return None;
        }
        if equal.iter().any(|t| t.is_about(column.column)) {
            continue;
        }
        if key.nulls_first == key.descending {
            return None;
        }
        while parts.peek().is_some_and(|(i, _)| *i < equal.len()) {
            parts.next();
        }
        let backwards = match parts.next() {
            Some((_, part)) => {
                if part_column(&part.target) != Some(column.column)
                    || part.collation != key.collation
                {
                    return None;
                }
                part.descending != key.descending
            }
            // Equal keys are in rowid order; what follows the rowid is unique.
            None if column.column == ROWID => key.descending,
            None => return None,
        };
        if reverse.is_some_and(|r| r != backwards) {
            return None;
        }
        reverse = Some(backwards);
        if column.column == ROWID && request.alone {
            break;
        }
    }
    Some(reverse.unwrap_or(false))
}

/// Whether an index's entries have all of these columns.
pub fn covers(index: &Index, mut columns: impl Iterator<Item = usize>) -> bool {
    columns.all(|column| {
        let mut parts = index.columns.iter();
        column == ROWID || parts.any(|part| part_column(&part.target) == Some(column))
    })
}

fn part_column(target: &IndexTarget) -> Option<usize> {
    match target {
        IndexTarget::Column(at) => Some(*at),
        IndexTarget::Rowid => Some(ROWID),
        IndexTarget::Expr(_) => None,
    }
}

/// All combinations of the terms' values, and which parts match NULL.
pub fn prefixes(equal: Vec<(TermOp, Vec<Expr>)>) -> (Vec<Vec<Expr>>, Vec<bool>) {
    let null_matches = equal.iter().map(|(op, _)| *op == TermOp::Is).collect();
    let mut prefixes = vec![Vec::with_capacity(equal.len())];
    for (_, mut values) in equal {
        if let ([prefix], [_]) = (prefixes.as_mut_slice(), values.as_slice()) {
            prefix.append(&mut values);
            continue;
        }
        let longer = |prefix: &Vec<Expr>| {
            let with = |value: &Expr| [prefix.as_slice(), std::slice::from_ref(value)].concat();
            values.iter().map(with).collect::<Vec<_>>()
        };
        prefixes = prefixes.iter().flat_map(longer).collect();
    }
    (prefixes, null_matches)
}
