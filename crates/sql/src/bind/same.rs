//! Whether two expressions are the same but for their places: by what is written, as
//! SQLite compares them, not by what it means. `a < b` is not `b > a`.
//!
//! Alike is what SQLite's parser makes alike: `x NOT IN (…)` and `NOT x IN (…)`, `x LIKE y`
//! and `like(y, x)`, a chain of AND or OR and one with parentheses around its beginning.

use crate::ast::{CaseWhen, Expr, ExprKind as A, FunctionCall, SortTerm};
use crate::bind::expr::LikeKind;

/// Whether two names stand for the same; `None` if neither of the two is a name.
pub type Names<'a> = &'a dyn Fn(&Expr, &Expr) -> Option<bool>;

/// See the module's header. A subquery is the same as no other.
pub fn same(a: &Expr, b: &Expr, names: Names<'_>) -> bool {
    crate::stack::grow(|| same_inner(a, b, names))
}

/// An arm for each form, long only by their number.
fn same_inner(a: &Expr, b: &Expr, names: Names<'_>) -> bool {
    let ((negations, a), (others, b)) = (negations(a), negations(b));
    if negations != others {
        return false;
    }
    if let Some(is_same) = names(a, b) {
        return is_same;
    }
    let same = |a: &Expr, b: &Expr| same(a, b, names);
    let all =
        |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
    let option = |a: &Option<Box<Expr>>, b: &Option<Box<Expr>>| match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a, b),
        _ => false,
    };
    match (&a.kind, &b.kind) {
        (A::Literal(x), A::Literal(y)) => x == y,
        (A::Parameter(x), A::Parameter(y)) => x == y,
        (A::Negate(x), A::Negate(y)) | (A::Plus(x), A::Plus(y)) | (A::BitNot(x), A::BitNot(y)) => {
            same(x, y)
        }
        (A::Binary(o, a, b), A::Binary(p, c, d)) => o == p && same(a, c) && same(b, d),
        (A::Compare(o, a, b), A::Compare(p, c, d)) => o == p && same(a, c) && same(b, d),
        (A::And(x), A::And(y)) => same_chain(x, y, true, names),
        (A::Or(x), A::Or(y)) => same_chain(x, y, false, names),
        (
            A::IsNull { expr, negated },
            A::IsNull {
                expr: x,
                negated: n,
            },
        ) => negated == n && same(expr, x),
        (
            A::Between {
                expr, low, high, ..
            },
            A::Between {
                expr: x,
                low: l,
                high: h,
                ..
            },
        ) => same(expr, x) && same(low, l) && same(high, h),
        (
            A::InList { expr, list, .. },
            A::InList {
                expr: x, list: l, ..
            },
        ) => same(expr, x) && all(list, l),
        (A::RowValue(x), A::RowValue(y)) => all(x, y),
        (
            A::Case {
                base,
                whens,
                otherwise,
            },
            A::Case {
                base: b,
                whens: w,
                otherwise: o,
            },
        ) => {
            let arm =
                |(a, b): (&CaseWhen, &CaseWhen)| same(&a.when, &b.when) && same(&a.then, &b.then);
            option(base, b)
                && option(otherwise, o)
                && whens.len() == w.len()
                && whens.iter().zip(w).all(arm)
        }
        (A::Cast(x, t), A::Cast(y, u)) => t == u && same(x, y),
        (A::Collate(x, c), A::Collate(y, d)) => c.text.eq_ignore_ascii_case(&d.text) && same(x, y),
        (A::Function(f), A::Function(g)) => same_call(f, g, names),
        _ => match (plain_call(a), plain_call(b)) {
            (Some((f, x)), Some((g, y))) => {
                f.eq_ignore_ascii_case(g)
                    && x.len() == y.len()
                    && x.into_iter().zip(y).all(|(a, b)| same(a, b))
            }
            _ => false,
        },
    }
}

/// How often an expression is negated, and what.
fn negations(e: &Expr) -> (usize, &Expr) {
    let (mut count, mut at) = (0, e);
    while let A::Not(operand) = &at.kind {
        (count, at) = (count + 1, operand);
    }
    let by_itself = match &at.kind {
        A::Between { negated, .. } | A::InList { negated, .. } | A::Like { negated, .. } => {
            *negated
        }
        _ => false,
    };
    (count + usize::from(by_itself), at)
}

/// Chains of one operator, which takes from the left: the first operand may be the
/// beginning of the chain.
fn same_chain(mut a: &[Expr], mut b: &[Expr], is_and: bool, names: Names<'_>) -> bool {
    loop {
        (a, b) = (unfold(a, is_and), unfold(b, is_and));
        match (a.split_last(), b.split_last()) {
            (None, None) => return true,
            (Some((x, before)), Some((y, others))) if same(x, y, names) => {
                (a, b) = (before, others);
            }
            _ => return false,
        }
    }
}

/// The operands of what begins a chain.
fn unfold(list: &[Expr], is_and: bool) -> &[Expr] {
    match list {
        [first] => match &first.kind {
            A::And(inner) if is_and => inner,
            A::Or(inner) if !is_and => inner,
            _ => list,
        },
        _ => list,
    }
}

fn same_call(f: &FunctionCall, g: &FunctionCall, names: Names<'_>) -> bool {
    let all = |x: &[Expr], y: &[Expr]| {
        x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y, names))
    };
    let args = match (&f.args, &g.args) {
        (None, None) => true,
        (Some(x), Some(y)) => all(x, y),
        _ => false,
    };
    let filters = match (&f.filter, &g.filter) {
        (None, None) => true,
        (Some(x), Some(y)) => same(x, y, names),
        _ => false,
    };
    let term = |(x, y): (&SortTerm, &SortTerm)| {
        same(&x.expr, &y.expr, names)
            && (x.descending, x.nulls_first) == (y.descending, y.nulls_first)
    };
    let orders =
        f.order_by.len() == g.order_by.len() && f.order_by.iter().zip(&g.order_by).all(term);
    let is_alike = f.name.text.eq_ignore_ascii_case(&g.name.text)
        && f.distinct == g.distinct
        && f.over.is_none()
        && g.over.is_none();
    is_alike && args && filters && orders
}

/// LIKE and GLOB are calls, too: the name and the arguments.
fn plain_call(e: &Expr) -> Option<(&str, Vec<&Expr>)> {
    match &e.kind {
        A::Like {
            kind,
            expr,
            pattern,
            escape,
            ..
        } => {
            let name = match kind {
                LikeKind::Like | LikeKind::LikeExact => "like",
                LikeKind::Glob => "glob",
            };
            let first = [pattern.as_ref(), expr.as_ref()].into_iter();
            Some((name, first.chain(escape.as_deref()).collect()))
        }
        A::Function(call) if !call.distinct && call.filter.is_none() => {
            Some((&call.name.text, call.args.as_ref()?.iter().collect()))
        }
        _ => None,
    }
}
