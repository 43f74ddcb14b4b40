//! LIKE and GLOB over a batch, where the pattern is the same for all of its rows: it is
//! taken apart once.

use crate::bind::expr::{Expr, ExprKind, LikeKind};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::context::Context;
use crate::exec::expr::batch::operand;
use crate::exec::expr::eval::{escape_character, eval};
use crate::exec::expr::row::Row;
use crate::value::{PATTERN_LENGTH_MAX, Segments};

/// Rows from which on it is worth to take a pattern apart.
const ROWS_MIN: usize = 8;

/// A LIKE or GLOB.
#[derive(Clone, Copy)]
pub struct Like<'a> {
    /// Which of the two.
    pub kind: LikeKind,
    /// The text.
    pub expr: &'a Expr,
    /// The pattern.
    pub pattern: &'a Expr,
    /// ESCAPE.
    pub escape: Option<&'a Expr>,
    /// NOT LIKE.
    pub negated: bool,
}

/// Appends to `out` the selected rows that match, or, negated, do not. False: not done, since
/// each row has to be asked by itself.
pub fn select(
    like: Like<'_>,
    input: &Batch,
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<bool> {
    if selection.len() < ROWS_MIN {
        return Ok(false);
    }
    let Some(segments) = segments(like, cx)? else {
        return Ok(false);
    };
    let texts = operand(like.expr, input, selection, cx)?;
    selection.each(|row| {
        let text = texts.get(row).to_text();
        if text.is_some_and(|text| segments.matches(&text) != like.negated) {
            out.push(row as u32);
        }
    });
    texts.release(cx);
    Ok(true)
}

/// The pattern taken apart; None where it is not the same for all rows, NULL or wrong, or
/// has to be walked through.
fn segments(like: Like<'_>, cx: &mut Context<'_, '_>) -> Result<Option<Segments>> {
    let same = |e: &Expr| {
        let is_kept = matches!(
            e.kind,
            ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Register(_)
        );
        is_kept || e.props.constant && e.props.deterministic
    };
    if !same(like.pattern) || !like.escape.is_none_or(same) {
        return Ok(None);
    }
    let pattern = eval(like.pattern, Row::Empty, cx)?;
    let escape = match like.escape {
        None => None,
        Some(escape) => match escape_character(eval(escape, Row::Empty, cx)?.as_ref()) {
            Ok(Some(escape)) => Some(escape),
            _ => return Ok(None),
        },
    };
    let pattern = pattern.as_ref().to_text();
    let Some(pattern) = pattern.filter(|it| it.len() <= PATTERN_LENGTH_MAX) else {
        return Ok(None);
    };
    Ok(match like.kind {
        LikeKind::Like => Segments::of_like(&pattern, escape, true),
        LikeKind::LikeExact => Segments::of_like(&pattern, escape, false),
        LikeKind::Glob => Segments::of_glob(&pattern),
    })
}
