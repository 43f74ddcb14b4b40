//! How much the bounds of ranges let through.
//!
//! Of a bound that is a constant, its place among the entries of each index that it could
//! be looked up in tells that: one descent each. Of others it is guessed
//! ([`access`](super::access)), and a plan that might be another for another value says so
//! ([`Plan::guesses`]).
//!
//! UPDATE and DELETE only guess, as SQLite does: where a row fails under OR FAIL, or a
//! trigger looks at what was done so far, others have been written in the order of the path.
//!
//! [`Plan::guesses`]: super::physical::Plan::guesses

use super::Planner;
use super::access::answers;
use super::order::Item;
use super::terms::{BoundShare, Term, TermOp};
use crate::bind::expr::{Expr, ExprKind, ROWID};
use crate::bind::logical::SourceKind;
use crate::schema::{Index, Table};
use crate::value::{Affinity, Value, ValueRef};

/// Of a table of fewer rows nothing is asked: to choose takes longer than to read it.
const ROWS_MIN: f64 = 1_000.0;

impl Planner<'_, '_> {
    /// Notes what the bounds in an item's terms let through. `alone`: nothing is joined to
    /// it, and so a range of its rowids is read whatever its share, unless there is
    /// something else to look up.
    pub(super) fn place_bounds(&mut self, item: &mut Item<'_>, alone: bool) {
        let SourceKind::Table(table) = &item.source.kind else {
            return;
        };
        let is_bound = |term: &Term| {
            let op = term.op;
            matches!(
                op,
                TermOp::Lower { .. } | TermOp::Upper { .. } | TermOp::Prefix
            )
        };
        for (term, reads_sources) in item.facts.all_mut() {
            term.fixed = !reads_sources && !term.values.iter().any(|it| self.is_handed_in(it));
        }
        if self.writes_rows || item.rows < ROWS_MIN || !item.facts.all().any(|term| is_bound(term))
        {
            return;
        }
        let others = !alone || item.facts.all().any(|term| !term.is_about(ROWID));
        for (term, reads_sources) in item.facts.all_mut() {
            if !is_bound(term) || reads_sources {
                continue;
            }
            if term.is_about(ROWID) {
                if others {
                    self.place_rowid(table, term);
                }
                continue;
            }
            for number in 0..table.indexes.len() {
                if answers(table, &item.computed, (number, 0), term) {
                    self.place_key(table, number, term);
                }
            }
        }
    }

    /// Whether a value is another one for each row that something outside is asked about.
    fn is_handed_in(&self, value: &Expr) -> bool {
        let mut handed_in = false;
        self.walk(value, &mut |expr| {
            handed_in |= matches!(expr.kind, ExprKind::Register(_));
            handed_in
        });
        handed_in
    }

    fn place_rowid(&mut self, table: &Table, term: &mut Term) {
        let rowid = match term.values.first().map(|value| &value.kind) {
            Some(ExprKind::Literal(Value::Integer(rowid))) => *rowid,
            Some(ExprKind::Literal(_)) => return,
            _ => {
                self.guesses = true;
                return;
            }
        };
        if !term.fits(Some(Affinity::Integer), None) {
            return;
        }
        if let Some(below) = self.statistics.share_of_rowids_below(&table.tree, rowid) {
            let within = if term.is_lower() { 1.0 - below } else { below };
            term.shares.push(BoundShare {
                index: ROWID,
                within,
                nulls: 0.0,
            });
        }
    }

    fn place_key(&mut self, table: &Table, number: usize, term: &mut Term) {
        let value = match term.values.first().map(|value| &value.kind) {
            Some(ExprKind::Literal(value)) if !value.as_ref().is_null() => value.as_ref(),
            Some(ExprKind::Literal(_)) => return,
            _ => {
                self.guesses = true;
                return;
            }
        };
        let Some(index) = table.indexes.get(number) else {
            return;
        };
        // Entries that equal the bound are below it where it leaves them out as a lower
        // one, and where it lets them in as an upper one.
        let (lower, inclusive) = match term.op {
            TermOp::Prefix => {
                self.place_prefix(index, number, term);
                return;
            }
            TermOp::Lower { inclusive } => (true, inclusive),
            TermOp::Upper { inclusive } => (false, inclusive),
            _ => return,
        };
        let Some(below) = self
            .statistics
            .share_below(index, value, lower != inclusive)
        else {
            return;
        };
        let nulls = match lower {
            true => Some(0.0),
            false => self.statistics.share_below(index, ValueRef::Null, true),
        };
        term.shares.push(BoundShare {
            index: number,
            within: if lower { 1.0 - below } else { below },
            nulls: nulls.unwrap_or(0.0),
        });
    }

    fn place_prefix(&mut self, index: &Index, number: usize, term: &mut Term) {
        let mut below = |bound: &Expr| match &bound.kind {
            ExprKind::Literal(value) => self.statistics.share_below(index, value.as_ref(), false),
            _ => None,
        };
        let bounds = term.prefix().map(|bounds| bounds.map(&mut below));
        if let Some([Some(low), Some(high)]) = bounds {
            term.shares.push(BoundShare {
                index: number,
                within: high - low,
                nulls: 0.0,
            });
        }
    }
}
