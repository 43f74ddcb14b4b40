//! `a = 1 OR b = 2`: where each alternative can be looked up, the rows are those that any
//! of the lookups finds.

use super::access::{self, Access, Path, Request, cost_of_fetch};
use super::facts::KnownTerms;
use super::few::Few;
use super::terms::{Says, Term, terms};
use crate::bind::expr::{Expr, ExprKind, ROWID, SortKey};
use crate::bind::logical::{IndexHint, KeyExpr};

/// Alternatives that are worth a lookup each.
const ALTERNATIVES_MAX: usize = 16;

/// What the alternatives of a condition say about one source, each by itself.
#[derive(Debug, Clone)]
pub struct Either {
    /// Those of each alternative.
    pub arms: Vec<KnownTerms>,
}

/// The alternatives of a condition about `source`, where each says something that keys can
/// serve, as [`terms`] does for conditions that are none.
pub fn alternatives(
    condition: &Expr,
    at: usize,
    source: usize,
    computed: &[KeyExpr],
) -> Option<Vec<Vec<Term>>> {
    let ExprKind::Or(disjuncts) = &condition.kind else {
        return None;
    };
    if disjuncts.len() > ALTERNATIVES_MAX {
        return None;
    }
    let mut arms = Vec::with_capacity(disjuncts.len());
    for disjunct in disjuncts {
        let parts = match &disjunct.kind {
            ExprKind::And(parts) => parts.as_slice(),
            _ => std::slice::from_ref(disjunct),
        };
        let mut arm = Vec::new();
        for part in parts {
            terms(part, None, at, source, computed, &mut arm);
        }
        // None answers more than a part of the condition.
        arm.iter_mut().for_each(|term| term.says = Says::Part);
        if arm.is_empty() {
            return None;
        }
        arms.push(arm);
    }
    Some(arms)
}

/// The lookups that together find the rows of one of these conditions.
pub fn through(request: &Request<'_>, either: &Either) -> Option<Access> {
    if *request.hint != IndexHint::Any {
        return None;
    }
    let needed = Few::from([ROWID]);
    let mut arms = Vec::with_capacity(either.arms.len());
    let (mut cost, mut rows) = (0.0, 0.0);
    for terms in &either.arms {
        let arm = access::choose(&Request {
            terms,
            needed: &needed,
            any_order: false,
            order: &[],
            limited: false,
            either: &[],
            ..*request
        });
        if matches!(
            (&arm.path, arm.path.terms().as_slice()),
            (Path::Scan { .. }, [])
        ) {
            return None;
        }
        cost += arm.cost;
        rows += arm.rows;
        arms.push(arm);
    }
    cost += rows * (1.0 + cost_of_fetch(request.rows, rows));
    Some(Access {
        path: Path::Either(arms),
        cost,
        rows: f64::min(rows, request.rows),
        reverse: false,
        ordered: is_by_rowid(request.order, request.source),
    })
}

/// Whether rows in order of their rowids are in the wanted one.
fn is_by_rowid(order: &[SortKey], source: usize) -> bool {
    match order {
        [] => true,
        [key] => {
            let is_rowid = matches!(key.expr.kind, ExprKind::Column(c) if (c.source, c.column) == (source, ROWID));
            is_rowid && !key.descending && key.nulls_first
        }
        _ => false,
    }
}
