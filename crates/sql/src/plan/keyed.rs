//! A table that a correlated subquery searches by equality, hashed for it.
//!
//! Without an index the table would be read anew for each row of the caller, which costs the
//! product of both. Where the caller has some rows, the table is hashed by what is compared
//! with values that are handed in, once for all of the caller's rows, and one row of these
//! values is joined with it. So it is where an aggregate wants all rows of a key and the caller
//! has so many keys that their rows are fetched through the index more than once each.

use std::rc::Rc;

use super::Planner;
use super::access::{Access, COST_SEEK, Path};
use super::join::Joined;
use super::layout::Layout;
use super::order::{Item, Problem, hashed_sides};
use super::physical::{JoinKind, Node, Op};
use super::terms::Term;
use super::weigh::{COST_BUILD, COST_OPEN, COST_PROBE};
use crate::bind::expr::{Comparison, Expr, ExprKind};
use crate::error::Result;

/// What has more rows may need more memory than there is for hashing it, and is then not
/// kept from one call to the next.
const ROWS_MAX: f64 = 250_000.0;
/// How often a subquery is called where that is not known.
pub(super) const CALLS_UNKNOWN: f64 = 10.0;

/// An equality between what is stored and what is handed in, in this order.
type Key = (Expr, Expr, Comparison);

impl Planner<'_, '_> {
    /// Runs `f` where subqueries are called for each of so many rows.
    pub(super) fn called_for<T>(&mut self, rows: f64, f: impl FnOnce(&mut Self) -> T) -> T {
        self.called(Some(rows.max(1.0)), f)
    }

    /// The same where it is not known for how many.
    pub(super) fn called<T>(&mut self, rows: Option<f64>, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.callers, rows);
        let result = f(self);
        self.callers = outer;
        result
    }

    /// The whole table in place of its rows through an index, where [`keyed`](Self::keyed) is
    /// to hash it: of a key the rows come in the order of the table either way.
    pub(super) fn whole_to_hash(
        &self,
        problem: &Problem<'_, '_>,
        item: &Item<'_>,
        access: &Access,
    ) -> Option<Access> {
        let Path::Index {
            index,
            equal,
            low: None,
            high: None,
            ..
        } = &access.path
        else {
            return None;
        };
        let is_first = problem.is_alone() && problem.all && self.pass != 0;
        let is_unordered = problem.order.is_empty() || !access.ordered;
        let is_whole_key = !index.unique && equal.len() == index.columns.len();
        if !is_first || !is_unordered || !is_whole_key || item.rows > ROWS_MAX {
            return None;
        }
        let by_index = self.calls * (COST_OPEN + access.cost);
        let by_hash = cost_of_hash(item.rows, self.calls) + self.calls * (COST_OPEN + access.rows);
        let is_key = |term: &Rc<Term>| {
            let condition = problem.conditions.get(term.condition);
            condition.is_some_and(|c| c.movable && self.handed_key(&c.expr).is_some())
        };
        (by_hash < by_index && equal.iter().all(is_key)).then(|| Access {
            path: Path::Scan {
                low: None,
                high: None,
            },
            cost: item.rows,
            rows: item.rows,
            reverse: false,
            ordered: problem.order.is_empty(),
        })
    }

    /// The rows of a table that these conditions let through, hashed where that is worth
    /// it. `path` is how they are read.
    pub(super) fn keyed(
        &mut self,
        path: &Path,
        node: Node,
        layout: Layout,
        conditions: Vec<Expr>,
    ) -> Result<Joined> {
        let by_hash = cost_of_hash(node.rows, self.calls);
        // Other passes see the same rows of it.
        let kept = self.kept_hashed(&node).filter(|pass| *pass != self.pass);
        let is_worth = kept.is_some()
            && is_whole(path)
            && node.rows <= ROWS_MAX
            && by_hash < self.calls * node.rows;
        let mut keys: Vec<Key> = Vec::new();
        let (mut below, mut above) = (Vec::new(), Vec::new());
        for condition in conditions {
            match self.handed_key(&condition).filter(|_| is_worth) {
                Some(key) => keys.push(key),
                None if is_alone(&condition) => below.push(condition),
                None => above.push(condition),
            }
        }
        let ordered = false;
        if keys.is_empty() {
            below.extend(above);
            let node = self.filtered(node, below, &layout)?;
            return Ok(Joined {
                node,
                layout,
                ordered,
            });
        }
        let right = self.filtered(node, below, &layout)?;
        let (mut row, mut left_keys, mut right_keys) = (Vec::new(), Vec::new(), Vec::new());
        let mut comparisons = Vec::new();
        for (stored, handed_in, comparison) in keys {
            left_keys.push(Expr::input(row.len(), handed_in.props));
            row.push(self.resolve_constant(&handed_in)?);
            right_keys.push(self.resolve(&stored, &layout)?);
            comparisons.push(comparison);
        }
        let layout = Layout::unnamed(row.len()).join(&layout);
        let left = Node {
            width: row.len(),
            op: Op::Values(vec![row]),
            rows: 1.0,
        };
        let (width, rows) = (layout.width(), (right.rows * 0.1).max(0.1));
        let op = Op::HashJoin {
            left: Box::new(left),
            kept,
            right: Box::new(right),
            kind: JoinKind::Inner,
            left_keys,
            right_keys,
            comparisons,
            condition: None,
        };
        let node = self.filtered(Node { op, width, rows }, above, &layout)?;
        Ok(Joined {
            node,
            layout,
            ordered,
        })
    }

    /// A condition that compares what is stored with what is handed in for equality.
    fn handed_key(&self, condition: &Expr) -> Option<Key> {
        let (left, right, comparison) = hashed_sides(condition)?;
        let sides = |stored: &Expr, handed_in: &Expr| {
            let is_key = is_alone(stored) && !self.sources_of(stored).is_empty();
            let is_handed = is_handed_in(handed_in);
            (is_key && is_handed).then(|| (stored.clone(), handed_in.clone(), comparison))
        };
        sides(left, right).or_else(|| sides(right, left))
    }
}

/// What it costs to read and hash so many rows and to ask for a key so often.
fn cost_of_hash(rows: f64, calls: f64) -> f64 {
    rows * (1.0 + COST_BUILD) + calls * (COST_PROBE + COST_SEEK)
}

/// Whether a path reads all rows.
fn is_whole(path: &Path) -> bool {
    match path {
        Path::Scan { low, high } => low.is_none() && high.is_none(),
        Path::Index {
            equal, low, high, ..
        } => equal.is_empty() && low.is_none() && high.is_none(),
        _ => false,
    }
}

/// Whether an expression reads nothing that is handed in, and asks no subquery.
fn is_alone(expr: &Expr) -> bool {
    let mut alone = !matches!(expr.kind, ExprKind::Register(_)) && expr.kind.subquery().is_none();
    expr.kind.for_each_child(&mut |child| {
        alone = alone && crate::stack::grow(|| is_alone(child));
    });
    alone
}

/// Whether an expression reads what is handed in and nothing else.
fn is_handed_in(expr: &Expr) -> bool {
    fn visit(expr: &Expr, found: &mut bool) -> bool {
        *found |= matches!(expr.kind, ExprKind::Register(_));
        let mut only = !matches!(expr.kind, ExprKind::Column(_)) && expr.kind.subquery().is_none();
        expr.kind.for_each_child(&mut |child| {
            only = only && crate::stack::grow(|| visit(child, found));
        });
        only
    }
    let mut found = false;
    visit(expr, &mut found) && found
}
