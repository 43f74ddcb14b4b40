//! GROUP BY and ORDER BY: ordinals, aliases, expressions.

use super::Binder;
use super::call::misuse_of_window;
use super::expr::{Expr, SortKey};
use super::logical::{Block, QueryColumn};
use super::same::same;
use super::scope::Clause;
use crate::ast;
use crate::ast::{ExprKind as A, Literal, ResultColumn, SelectCore, SortTerm};
use crate::error::{Error, Result};
use crate::parse::MAX_COLUMNS;
use crate::value::Collation;

/// What names a result column of a compound's SELECT.
#[derive(Debug)]
pub(super) struct ResultName {
    alias: Option<String>,
    expr: Option<ast::Expr>,
}

/// The names of a core's result columns.
pub(super) fn result_names(core: &SelectCore, columns: &[QueryColumn]) -> Vec<ResultName> {
    let listed = match core {
        SelectCore::Select { columns, .. } => columns.as_slice(),
        SelectCore::Values(_) => &[],
    };
    if listed.len() != columns.len()
        || listed
            .iter()
            .any(|c| !matches!(c, ResultColumn::Expr { .. }))
    {
        let name = |c: &QueryColumn| ResultName {
            alias: Some(c.output.name.clone()),
            expr: None,
        };
        return columns.iter().map(name).collect();
    }
    listed
        .iter()
        .map(|column| match column {
            ResultColumn::Expr { expr, alias, .. } => ResultName {
                alias: alias.as_ref().map(|a| a.text.clone()),
                expr: Some(expr.clone()),
            },
            _ => ResultName {
                alias: None,
                expr: None,
            },
        })
        .collect()
}

impl Binder<'_> {
    pub(super) fn group_by(
        &mut self,
        terms: &[ast::Expr],
        block: &Block,
    ) -> Result<Vec<(Expr, Collation)>> {
        let mut keys = Vec::with_capacity(terms.len());
        for (i, term) in terms.iter().enumerate() {
            let (inner, collation) = self.without_collate(term)?;
            let mut key = match ordinal(inner) {
                Some(n) => self.ordered_output(block, n).ok_or_else(|| {
                    out_of_range(i, "GROUP", block.outputs.len()).with_offset(term.offset)
                })?,
                None => self.expr(inner)?,
            };
            if collation.is_some() {
                key.props.collation = collation;
                key.props.explicit_collation = true;
            }
            if let Some(aggregate) = self.find_aggregate(&key) {
                let is_output = ordinal(inner).is_some() || matches!(inner.kind, A::Column(_));
                let message = match is_output && collation.is_none() {
                    true => "aggregate functions are not allowed in the GROUP BY clause".to_owned(),
                    false => self.frame().misuse(aggregate),
                };
                return Err(Error::sql(message).with_offset(term.offset));
            }
            if let Some(function) = self.window_function_in(&key) {
                return Err(misuse_of_window(function, term.offset));
            }
            let collation = key.collation();
            keys.push((key, collation));
        }
        check_terms(terms.len(), "GROUP")?;
        Ok(keys)
    }

    /// ORDER BY of a single SELECT, over its sources.
    pub(super) fn order_by(
        &mut self,
        terms: &[SortTerm],
        block: &Block,
        columns: &[QueryColumn],
    ) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(terms.len());
        self.frame().clause = Clause::Order;
        for (i, term) in terms.iter().enumerate() {
            let (inner, collation) = self.without_collate(&term.expr)?;
            let mut expr = if let Some(n) = ordinal(inner) {
                self.ordered_output(block, n).ok_or_else(|| {
                    out_of_range(i, "ORDER", columns.len()).with_offset(term.expr.offset)
                })?
            } else if let Some(bound) = self.alias(inner) {
                bound
            } else {
                self.expr(inner)?
            };
            if let Some(collation) = collation {
                expr.props.collation = Some(collation);
                expr.props.explicit_collation = true;
            }
            keys.push(sort_key(expr, term));
        }
        check_terms(terms.len(), "ORDER")?;
        Ok(keys)
    }

    /// The result column of a number. SQLite counts them in queries that are run, not in
    /// views whose names it looks up.
    fn ordered_output(&self, block: &Block, n: i64) -> Option<Expr> {
        output(block, n).or_else(|| self.uses.is_some().then(Expr::null))
    }

    fn alias(&mut self, expr: &ast::Expr) -> Option<Expr> {
        let A::Column(name) = &expr.kind else {
            return None;
        };
        let aliases = &self.frame().aliases;
        aliases
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(&name.text))
            .map(|(_, e)| e.clone())
    }

    /// ORDER BY of a compound or VALUES, over its result row.
    pub(super) fn order_by_result(
        &mut self,
        terms: &[SortTerm],
        columns: &[QueryColumn],
        names: &[Vec<ResultName>],
    ) -> Result<Vec<SortKey>> {
        check_terms(terms.len(), "ORDER")?;
        let mut keys = Vec::with_capacity(terms.len());
        for (i, term) in terms.iter().enumerate() {
            let (inner, collation) = self.without_collate(&term.expr)?;
            let at = match ordinal(inner) {
                Some(n) => usize::try_from(n)
                    .ok()
                    .and_then(|n| n.checked_sub(1))
                    .filter(|n| *n < columns.len())
                    .ok_or_else(|| {
                        out_of_range(i, "ORDER", columns.len()).with_offset(term.expr.offset)
                    })?,
                None => names
                    .iter()
                    .find_map(|list| position(list, inner))
                    .or_else(|| by_name(columns, inner))
                    .ok_or_else(|| {
                        let message = format!(
                            "{} ORDER BY term does not match any column in the result set",
                            ordinal_word(i)
                        );
                        Error::sql(message).with_offset(term.expr.offset)
                    })?,
            };
            let Some(column) = columns.get(at) else {
                continue;
            };
            let mut expr = Expr::input(at, column.props);
            if let Some(collation) = collation {
                expr.props.collation = Some(collation);
            }
            keys.push(sort_key(expr, term));
        }
        Ok(keys)
    }
}

/// Of a clause that SQLite limits as it does the columns of a table.
pub(super) fn check_terms(terms: usize, clause: &str) -> Result<()> {
    match terms > MAX_COLUMNS {
        true => Err(Error::sql(format!("too many terms in {clause} BY clause"))),
        false => Ok(()),
    }
}

fn position(names: &[ResultName], expr: &ast::Expr) -> Option<usize> {
    if let A::Column(name) = &expr.kind {
        let alias = |n: &ResultName| {
            n.alias
                .as_ref()
                .is_some_and(|a| a.eq_ignore_ascii_case(&name.text))
        };
        if let Some(at) = names.iter().position(alias) {
            return Some(at);
        }
    }
    names
        .iter()
        .position(|n| n.expr.as_ref().is_some_and(|e| same(e, expr, &same_names)))
}

fn by_name(columns: &[QueryColumn], expr: &ast::Expr) -> Option<usize> {
    let A::Column(name) = &expr.kind else {
        return None;
    };
    columns
        .iter()
        .position(|c| c.output.name.eq_ignore_ascii_case(&name.text))
}

/// Names are the same as they are written: what they stand for, each SELECT says.
fn same_names(a: &ast::Expr, b: &ast::Expr) -> Option<bool> {
    let is_name = |e: &ast::Expr| matches!(e.kind, A::Column(_) | A::Qualified { .. });
    let is_same = |a: &ast::Name, b: &ast::Name| a.text.eq_ignore_ascii_case(&b.text);
    match (&a.kind, &b.kind) {
        (A::Column(x), A::Column(y)) => Some(is_same(x, y)),
        (
            A::Qualified {
                table: t,
                column: c,
                ..
            },
            A::Qualified {
                table: u,
                column: d,
                ..
            },
        ) => Some(is_same(t, u) && is_same(c, d)),
        _ => (is_name(a) || is_name(b)).then_some(false),
    }
}

pub(super) fn sort_key(expr: Expr, term: &SortTerm) -> SortKey {
    let collation = expr.collation();
    let nulls_first = term.nulls_first.unwrap_or(!term.descending);
    SortKey {
        expr,
        collation,
        descending: term.descending,
        nulls_first,
    }
}

impl Binder<'_> {
    fn without_collate<'e>(
        &mut self,
        expr: &'e ast::Expr,
    ) -> Result<(&'e ast::Expr, Option<Collation>)> {
        match &expr.kind {
            A::Collate(inner, name) => {
                let collation = self.collation(name)?;
                Ok((self.without_collate(inner)?.0, Some(collation)))
            }
            _ => Ok((expr, None)),
        }
    }
}

/// An integer literal counts columns; larger ones than 32 bits are constants.
fn ordinal(expr: &ast::Expr) -> Option<i64> {
    let n = match &expr.kind {
        A::Literal(Literal::Integer(n)) => Some(*n),
        A::Negate(inner) => ordinal(inner).map(i64::wrapping_neg),
        A::Plus(inner) => ordinal(inner),
        _ => None,
    };
    n.filter(|n| i32::try_from(*n).is_ok())
}

fn output(block: &Block, n: i64) -> Option<Expr> {
    let at = usize::try_from(n).ok()?.checked_sub(1)?;
    block.outputs.get(at).map(|e| Expr {
        kind: e.kind.clone(),
        props: e.props,
    })
}

fn out_of_range(term: usize, clause: &str, columns: usize) -> Error {
    let term = ordinal_word(term);
    Error::sql(format!(
        "{term} {clause} BY term out of range - should be between 1 and {columns}"
    ))
}

/// 1st, 2nd, 3rd, 4th, …
pub(super) fn ordinal_word(i: usize) -> String {
    let n = i + 1;
    let suffix = match (n % 10, n % 100) {
        (1, h) if h != 11 => "st",
        (2, h) if h != 12 => "nd",
        (3, h) if h != 13 => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}
