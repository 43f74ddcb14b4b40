//! `a.x = b.y AND b.y = c.z`: then `a.x = c.z`, too, and `c` may be joined to `a` before `b`
//! is.
//!
//! Columns that conditions say are equal form a *class*. What follows for two of its columns
//! of different sources is a condition of its own, *implied* by the others: it may serve as
//! the key of a lookup or of a hash join, and is left out otherwise, since what implies it is
//! evaluated in any case. Of the conditions of a class that apply to a source at once, one
//! lets through as few rows as all.
//!
//! Equality goes on from column to column where all are compared in the same way, without
//! being changed first: they have one affinity, and the comparisons one collation.

use super::few::Few;
use super::order::Condition;
use crate::bind::expr::{ColumnRef, CompareOp, Comparison, Expr, ExprKind};
use crate::value::Affinity;

/// Conditions that are added for classes, at most.
const IMPLIED_MAX: usize = 24;

/// What is equal.
struct Class {
    comparison: Comparison,
    affinity: Option<Affinity>,
    columns: Vec<Expr>,
    /// Which conditions say so.
    conditions: Vec<usize>,
}

/// Notes the classes of conditions, and adds those that they imply.
pub fn add_implied(conditions: &mut Vec<Condition>) {
    // One of them says nothing that follows for a third column.
    let mut equalities = conditions.iter().filter(|it| equal_columns(it).is_some());
    if equalities.nth(1).is_none() {
        return;
    }
    let mut classes: Vec<Class> = Vec::new();
    for (at, condition) in conditions.iter().enumerate() {
        if let Some(class) = class_of(condition, at) {
            merge(&mut classes, class);
        }
    }
    classes.retain(|class| class.columns.len() > 2);
    let said = conditions.len();
    for (number, class) in classes.iter().enumerate() {
        for at in &class.conditions {
            if let Some(condition) = conditions.get_mut(*at) {
                condition.class = Some(number);
            }
        }
        let pairs = class.columns.iter().enumerate();
        let pairs = pairs.flat_map(|(i, left)| {
            let right = class.columns.iter().skip(i + 1);
            right.map(move |right| (left, right))
        });
        for (left, right) in pairs {
            let is_said = |at: &usize| {
                let condition = conditions.get(*at);
                condition.is_some_and(|condition| compares(condition, left, right))
            };
            let sources = [left, right].into_iter().filter_map(source);
            let sources: Few<usize> = sources.collect();
            let is_full = conditions.len() - said >= IMPLIED_MAX;
            if is_full || sources.len() < 2 || class.conditions.iter().any(is_said) {
                continue;
            }
            let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
            let equal = ExprKind::Compare(CompareOp::Equal, class.comparison, left, right);
            conditions.push(Condition {
                expr: Expr::operator(equal),
                sources,
                movable: true,
                members: None,
                class: Some(number),
                implied: true,
            });
        }
    }
}

/// Adds that a column of a query in FROM has a value, where it equals another one that has:
/// the query may be asked for that value alone.
pub fn add_given(conditions: &mut Vec<Condition>, is_query: impl Fn(usize) -> bool) {
    let equalities = conditions.iter().filter_map(equal_columns);
    let pairs = equalities.flat_map(|(a, b, how)| [(a, b, how), (b, a, how)]);
    let pairs: Vec<_> = pairs
        .filter(|(_, of_query, _)| source(of_query).is_some_and(&is_query))
        .collect();
    if pairs.is_empty() {
        return;
    }
    let mut given: Vec<Expr> = Vec::new();
    for (column, value, how) in conditions.iter().filter_map(given_value) {
        for (equal, of_query, equality) in &pairs {
            if equal.kind == column.kind && equality.collation == how.collation {
                let sides = [*of_query, value].map(|side| Box::new(side.clone()));
                let [left, right] = sides;
                let kind = ExprKind::Compare(CompareOp::Equal, how, left, right);
                given.push(Expr::operator(kind));
            }
        }
    }
    for expr in given.into_iter().take(IMPLIED_MAX) {
        let sources = match &expr.kind {
            ExprKind::Compare(_, _, column, _) => source(column).into_iter().collect(),
            _ => Few::new(),
        };
        if !conditions.iter().any(|said| said.expr.kind == expr.kind) {
            conditions.push(Condition {
                expr,
                sources,
                movable: true,
                members: None,
                class: None,
                implied: false,
            });
        }
    }
}

/// The column of which a condition says that it has a value, and how they are compared.
fn given_value(condition: &Condition) -> Option<(&Expr, &Expr, Comparison)> {
    let ExprKind::Compare(CompareOp::Equal, how, left, right) = &condition.expr.kind else {
        return None;
    };
    let is_value = |it: &Expr| {
        matches!(
            it.kind,
            ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Register(_)
        )
    };
    let fits = |column: &Expr, value: &Expr| source(column).is_some() && is_value(value);
    match condition.movable {
        true if fits(left, right) => Some((left, right, *how)),
        true if fits(right, left) => Some((right, left, *how)),
        _ => None,
    }
}

/// The columns that a condition says are equal, and how they are compared.
fn equal_columns(condition: &Condition) -> Option<(&Expr, &Expr, Comparison)> {
    let ExprKind::Compare(CompareOp::Equal, comparison, left, right) = &condition.expr.kind else {
        return None;
    };
    let fits = condition.movable
        && source(left).is_some()
        && source(right).is_some()
        && left.props.affinity == right.props.affinity
        && !comparison.collation.is_of_program();
    fits.then_some((left, right, *comparison))
}

/// The class of an equality of two columns.
fn class_of(condition: &Condition, at: usize) -> Option<Class> {
    let (left, right, comparison) = equal_columns(condition)?;
    Some(Class {
        comparison,
        affinity: left.props.affinity,
        columns: vec![left.clone(), right.clone()],
        conditions: vec![at],
    })
}

/// Adds a class, together with those that have a column in common with it.
fn merge(classes: &mut Vec<Class>, mut class: Class) {
    let is_same = |other: &mut Class| {
        let shares = |column: &Expr| other.columns.iter().any(|it| it.kind == column.kind);
        (other.comparison, other.affinity) == (class.comparison, class.affinity)
            && class.columns.iter().any(shares)
    };
    let others: Vec<Class> = classes.extract_if(.., is_same).collect();
    for mut other in others {
        class.conditions.append(&mut other.conditions);
        for column in other.columns {
            if !class.columns.iter().any(|it| it.kind == column.kind) {
                class.columns.push(column);
            }
        }
    }
    classes.push(class);
}

fn source(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(ColumnRef { source, .. }) => Some(source),
        _ => None,
    }
}

fn compares(condition: &Condition, left: &Expr, right: &Expr) -> bool {
    match &condition.expr.kind {
        ExprKind::Compare(_, _, l, r) => {
            (l.kind == left.kind && r.kind == right.kind)
                || (l.kind == right.kind && r.kind == left.kind)
        }
        _ => false,
    }
}
