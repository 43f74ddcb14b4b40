//! `(a AND b) OR (a AND c)` is `a AND (b OR c)`, where `a` may tell how to join or where to
//! look.

use crate::bind::expr::{Expr, ExprKind};

/// Takes what all disjuncts of a condition have in common out of them. Nothing of it may
/// raise: a row that fails `a` is never shown to `b` then.
pub fn common_conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    let may_move = condition.props.deterministic && !condition.props.fallible;
    let ExprKind::Or(disjuncts) = &condition.kind else {
        out.push(condition);
        return;
    };
    let Some((first, others)) = disjuncts.split_first().filter(|_| may_move) else {
        out.push(condition);
        return;
    };
    let is_common = |part: &&Expr| others.iter().all(|other| conjuncts(other).contains(*part));
    let common: Vec<Expr> = conjuncts(first).iter().filter(is_common).cloned().collect();
    if common.is_empty() {
        out.push(condition);
        return;
    }
    let mut rest = Vec::with_capacity(disjuncts.len());
    for disjunct in disjuncts {
        let mut left = conjuncts(disjunct).to_vec();
        left.retain(|part| !common.contains(part));
        match left.len() {
            // It says no more than what all say.
            0 => {
                out.extend(common);
                return;
            }
            1 => rest.append(&mut left),
            _ => rest.push(Expr::operator(ExprKind::And(left))),
        }
    }
    out.extend(common);
    out.push(Expr::operator(ExprKind::Or(rest)));
}

fn conjuncts(expr: &Expr) -> &[Expr] {
    match &expr.kind {
        ExprKind::And(parts) => parts,
        _ => std::slice::from_ref(expr),
    }
}
