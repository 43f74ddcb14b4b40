//! Of `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` what it says of `a` alone: a row of `a`
//! that fulfils no disjunct's part about it, here `a.x = 1 OR a.x = 3`, is part of no result.
//!
//! So fewer rows are joined, and there may be an index to look them up in. The condition
//! itself stays.

use crate::bind::expr::{Expr, ExprKind};
use crate::plan::few::Few;

/// What a disjunction of two sources or more says of each of them alone, for as many of them
/// as it says anything of in each disjunct. Nothing of it may raise.
pub fn arms_of_sources(
    condition: &Expr,
    sources: &Few<usize>,
    sources_of: &dyn Fn(&Expr) -> Few<usize>,
) -> Vec<Expr> {
    let may_move = condition.props.deterministic && !condition.props.fallible;
    let ExprKind::Or(disjuncts) = &condition.kind else {
        return Vec::new();
    };
    if !may_move || sources.len() < 2 {
        return Vec::new();
    }
    let of_source = |source: &usize| {
        let own = Few::from([*source]);
        let part = |disjunct: &Expr| part_of(disjunct, &own, sources_of);
        let parts: Option<Vec<Expr>> = disjuncts.iter().map(part).collect();
        parts.map(|parts| Expr::operator(ExprKind::Or(parts)))
    };
    sources.iter().filter_map(of_source).collect()
}

/// The conjuncts that read these sources and no others.
fn part_of(
    disjunct: &Expr,
    own: &Few<usize>,
    sources_of: &dyn Fn(&Expr) -> Few<usize>,
) -> Option<Expr> {
    let conjuncts = match &disjunct.kind {
        ExprKind::And(parts) => parts.as_slice(),
        _ => std::slice::from_ref(disjunct),
    };
    let is_own = |part: &&Expr| sources_of(part) == *own && !asks_subquery(part);
    let mut parts: Vec<Expr> = conjuncts.iter().filter(is_own).cloned().collect();
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Expr::operator(ExprKind::And(parts))),
    }
}

fn asks_subquery(expr: &Expr) -> bool {
    let mut asks = expr.kind.subquery().is_some();
    expr.kind.for_each_child(&mut |child| {
        asks = asks || crate::stack::grow(|| asks_subquery(child));
    });
    asks
}
