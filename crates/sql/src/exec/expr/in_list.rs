//! `x IN (a, b, …)` over a batch, where the list is the same for all of its rows.
//!
//! The list is evaluated once a batch. A short one is compared value by value; a long one
//! becomes a hash table, in which each row looks its value up.

use crate::bind::expr::{CompareOp, Comparison, Expr, ExprKind};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::batch::{Operand, operand};
use crate::exec::expr::eval::{Datum, eval};
use crate::exec::expr::{compare, row::Row};
use crate::exec::hash::GroupTable;
use crate::exec::members::select_found;

/// Values and rows from which on a table is worth its making.
const HASHED_MIN: usize = 12;

/// Whether the values of a list are the same for all rows of a batch, and whether it can be
/// asked in any order.
pub fn is_constant(list: &[Expr], how: Comparison) -> bool {
    let same = |e: &Expr| match e.kind {
        ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Register(_) => true,
        _ => e.props.constant && e.props.deterministic && !e.props.fallible,
    };
    !how.collation.is_of_program() && list.iter().all(same)
}

/// Appends to `out` the selected rows for which `x` is in the list, or, `negated`, is not.
pub fn select(
    x: &Expr,
    list: &[Expr],
    (how, negated): (Comparison, bool),
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    let x = operand(x, input, selection, cx)?;
    let mut values: Vec<Datum<'_>> = Vec::with_capacity(list.len());
    let mut has_null = false;
    for value in list {
        let value = eval(value, Row::Empty, cx)?;
        match value.as_ref().is_null() {
            true => has_null = true,
            false => values.push(value),
        }
    }
    // What is not found is unknown beside a NULL.
    if !(negated && has_null) {
        if values.len() < HASHED_MIN || selection.len() < HASHED_MIN {
            one_by_one(&x, &values, (how, negated), selection, out);
        } else {
            hashed(&x, &values, (how, negated), selection, out)?;
        }
    }
    x.release(cx);
    Ok(())
}

fn one_by_one(
    x: &Operand<'_>,
    values: &[Datum<'_>],
    (how, negated): (Comparison, bool),
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) {
    selection.each(|row| {
        let x = x.get(row);
        let equals =
            |v: &Datum<'_>| compare::test(CompareOp::Equal, how, x, v.as_ref()) == Some(true);
        if !x.is_null() && values.iter().any(equals) != negated {
            out.push(row as u32);
        }
    });
}

fn hashed(
    x: &Operand<'_>,
    values: &[Datum<'_>],
    (how, negated): (Comparison, bool),
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    let mut keys = Vector::new();
    for value in values {
        keys.push(how.affinity.apply_comparison(value.as_ref()).as_ref())?;
    }
    let (mut table, mut groups) = (GroupTable::new(vec![how.collation]), Vec::new());
    let keys = [Operand::Computed(keys)];
    table.insert(&keys, Selection::All(values.len()), &mut groups)?;
    select_found(&mut table, x, (how, negated), selection, &mut groups, out)
}
