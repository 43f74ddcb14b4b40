//! Conditions that ask whether a subquery has a row, as joins.
//!
//! `EXISTS (SELECT … FROM b WHERE b.x = a.y)` holds for the rows of `a` with a partner in `b`,
//! NOT EXISTS for those without: a semi-join and an anti-join. As such `b` is hashed once,
//! or looked up without a subquery that begins anew for each row, whichever costs less. `a.z IN
//! (SELECT b.w FROM b WHERE b.x = a.y)` has one equality more. NOT IN holds where no row of the
//! subquery equals the operand, nor might: that is another condition on the pair, which is
//! no key, since NULLs meet it.
//!
//! Only what compares columns for equality is taken: for anything else a subquery looks at
//! a batch of rows at once, where a join would look at pairs.

use super::Planner;
use super::block::simplified;
use super::few::Few;
use super::in_lookup::NotIn;
use super::order::{Condition, split_equality};
use super::physical::JoinKind;
use crate::bind::expr::{
    CompareOp, Comparison, Expr, ExprKind, ROWID, Register, SubqueryId, UnaryOp,
};
use crate::bind::logical::{Block, Body, LogicalSubquery, Query, Source, SourceKind};
use crate::error::Result;
use crate::value::Value;

/// A subquery as a join.
#[derive(Clone)]
pub(super) struct SemiJoin<'b> {
    /// Semi, anti or single.
    pub kind: JoinKind,
    /// The subquery's source.
    pub source: &'b Source,
    /// What makes a row of it a partner.
    pub on: Vec<Condition>,
    /// The column of the source that is the subquery's value, where that is asked for.
    pub shown: Option<usize>,
    /// What is asked of a row without a partner.
    pub not_in: Option<NotIn>,
}

/// What is asked of a subquery's rows.
pub(super) struct Wanted<'e> {
    pub subquery: SubqueryId,
    pub kind: JoinKind,
    /// Of a single join: whether there is a row, which is where it has a rowid.
    pub any: bool,
    /// The operands of IN, and how they compare.
    pub members: Option<(&'e [Expr], &'e [Comparison])>,
}

impl<'a> Planner<'a, '_> {
    /// Takes the conditions that can be joins with what these sources give.
    pub(super) fn semi_joins(
        &mut self,
        conditions: &mut Vec<Condition>,
        sources: &Few<usize>,
    ) -> Result<Vec<SemiJoin<'a>>> {
        let mut joins: Vec<SemiJoin<'a>> = Vec::new();
        let mut at = 0;
        while let Some(condition) = conditions.get(at) {
            let is_whole = condition.movable && condition.sources.is_subset(sources);
            let join = match asked(&condition.expr).filter(|_| is_whole) {
                Some(asked) => self.semi_join(&asked, sources)?,
                None => None,
            };
            // One subquery may stand in several conditions, and a source is placed once.
            let is_new = |join: &SemiJoin<'a>| joins.iter().all(|j| j.source.id != join.source.id);
            match join.filter(is_new) {
                Some(join) => {
                    conditions.remove(at);
                    joins.push(join);
                }
                None => at += 1,
            }
        }
        Ok(joins)
    }

    /// A subquery as a join with what these sources give.
    pub(super) fn semi_join(
        &mut self,
        asked: &Wanted<'_>,
        sources: &Few<usize>,
    ) -> Result<Option<SemiJoin<'a>>> {
        let logical = self.logical;
        // What is the same for all rows is asked once, and may tell which of them to read.
        let subquery = logical.get(asked.subquery);
        let Some(subquery) = subquery.filter(|it| !it.bindings.is_empty()) else {
            return Ok(None);
        };
        self.join_with(asked, subquery, sources)
    }

    /// What is asked of this subquery as a join with what these sources give.
    pub(super) fn join_with(
        &mut self,
        asked: &Wanted<'_>,
        subquery: &'a LogicalSubquery,
        sources: &Few<usize>,
    ) -> Result<Option<SemiJoin<'a>>> {
        let Some((block, source)) = plain_block(subquery, asked.members.is_none()) else {
            return Ok(None);
        };
        let shown = match asked.kind {
            JoinKind::Single if asked.any => rowid_of(source),
            JoinKind::Single => first_value(subquery, block, source),
            _ => None,
        };
        if asked.kind == JoinKind::Single && shown.is_none() {
            return Ok(None);
        }
        let mut exprs = simplified(block, Vec::new());
        if let Some((operands, comparisons)) = asked.members {
            let negated = asked.kind == JoinKind::Anti;
            exprs.extend(compared(block, operands, comparisons, negated));
        }
        let registers: Few<Register> = subquery.bindings.iter().map(|b| b.0).collect();
        let hands_on = |this: &Self, expr: &Expr| this.hands_on(expr, &registers);
        if exprs.iter().any(|expr| hands_on(self, expr)) {
            return Ok(None);
        }
        for expr in &mut exprs {
            handed_in(expr, &subquery.bindings);
        }
        let own = Few::from([source.id]);
        let columns = |expr: &Expr| self.sources_of(expr);
        let is_key = |expr: &Expr| split_equality(expr, &own, sources, &columns).is_some();
        let is_own = |expr: &Expr| columns(expr).is_subset(&own);
        // The first row of a key is then the first that counts.
        let is_told = |expr: &Expr| is_key(expr) || is_own(expr);
        let takes_any = asked.kind != JoinKind::Single || asked.any;
        let is_first = takes_any || exprs.iter().all(is_told);
        if !is_first || !exprs.iter().any(is_key) {
            return Ok(None);
        }
        let on = exprs.into_iter().map(|expr| self.condition(expr));
        let on = on.collect::<Result<Vec<Condition>>>()?;
        let is_movable = on.iter().all(|condition| condition.movable);
        Ok(is_movable.then_some(SemiJoin {
            kind: asked.kind,
            source,
            on,
            shown,
            not_in: None,
        }))
    }

    /// Whether an expression hands one of these registers in to a subquery of its own.
    fn hands_on(&self, expr: &Expr, registers: &Few<Register>) -> bool {
        let subquery = expr.kind.subquery().and_then(|id| self.logical.get(id));
        let bindings = subquery.map_or(&[][..], |it| &it.bindings);
        let mut found = bindings.iter().any(|(_, e)| reads(e, registers));
        expr.kind.for_each_child(&mut |child| {
            found = found || crate::stack::grow(|| self.hands_on(child, registers));
        });
        found
    }
}

/// What a condition asks of a subquery.
pub(super) fn asked(condition: &Expr) -> Option<Wanted<'_>> {
    match &condition.kind {
        ExprKind::Exists(subquery) => Some(Wanted {
            subquery: *subquery,
            kind: JoinKind::Semi,
            any: false,
            members: None,
        }),
        ExprKind::InSubquery {
            exprs,
            subquery,
            comparisons,
            negated,
        } => Some(Wanted {
            subquery: *subquery,
            kind: match negated {
                false => JoinKind::Semi,
                true => JoinKind::Anti,
            },
            any: false,
            members: Some((exprs, comparisons)),
        }),
        ExprKind::Unary(UnaryOp::Not, operand) => {
            let asked = crate::stack::grow(|| asked(operand))?;
            let kind = match asked.kind {
                JoinKind::Semi => JoinKind::Anti,
                _ => JoinKind::Semi,
            };
            Some(Wanted { kind, ..asked })
        }
        _ => None,
    }
}

/// The block and the only source, a table, of a subquery whose rows are those that its WHERE
/// lets through. `limited`: a LIMIT that leaves the first of them does not matter.
fn plain_block(subquery: &LogicalSubquery, limited: bool) -> Option<(&Block, &Source)> {
    let Query { body, limit, .. } = &subquery.query;
    let (Body::Block(block), true) = (body, subquery.cacheable) else {
        return None;
    };
    let leaves_first = limit.as_ref().is_none_or(|clause| {
        let limit = clause.limit.as_ref().map(|limit| &limit.kind);
        let is_some = matches!(limit, Some(ExprKind::Literal(Value::Integer(n))) if *n != 0);
        limited && clause.offset.is_none() && is_some
    });
    let is_plain = block.aggregation.is_none() && block.having.is_empty();
    let is_plain = is_plain && block.windows.is_empty() && leaves_first;
    let is_quiet = |expr: &Expr| expr.props.deterministic && !expr.props.fallible;
    match block.sources.as_slice() {
        [source] if is_plain && block.outputs.iter().all(is_quiet) => {
            let is_table = matches!(source.kind, SourceKind::Table(_)) && source.outer.is_none();
            is_table.then_some((block, source))
        }
        _ => None,
    }
}

/// The block of a subquery that yields one column of the rows that its WHERE lets through, and
/// that column.
pub(super) fn output_of(subquery: &LogicalSubquery) -> Option<(&LogicalSubquery, &Block, &Expr)> {
    let (block, _) = plain_block(subquery, false)?;
    match block.outputs.as_slice() {
        [output] => Some((subquery, block, output)),
        _ => None,
    }
}

/// The column of the source that the first row of a subquery consists of, whichever comes
/// first.
fn first_value(subquery: &LogicalSubquery, block: &Block, source: &Source) -> Option<usize> {
    let is_unordered = subquery.query.order_by.is_empty() && block.distinct.is_none();
    match block.outputs.as_slice() {
        [output] if is_unordered => match output.kind {
            ExprKind::Column(column) if column.source == source.id => Some(column.column),
            _ => None,
        },
        _ => None,
    }
}

/// The column that no row of a source lacks.
fn rowid_of(source: &Source) -> Option<usize> {
    match &source.kind {
        SourceKind::Table(table) if !table.without_rowid => Some(ROWID),
        _ => None,
    }
}

/// What IN says of a row of the subquery: that it is the operands, or, `negated`, that it may
/// be.
pub(super) fn compared(
    block: &Block,
    operands: &[Expr],
    comparisons: &[Comparison],
    negated: bool,
) -> Vec<Expr> {
    let pairs = operands.iter().zip(&block.outputs).zip(comparisons);
    let mut equal: Vec<Expr> = pairs
        .map(|((operand, output), how)| {
            let (left, right) = (Box::new(operand.clone()), Box::new(output.clone()));
            Expr::operator(ExprKind::Compare(CompareOp::Equal, *how, left, right))
        })
        .collect();
    if !negated {
        return equal;
    }
    let all = match equal.pop() {
        Some(one) if equal.is_empty() => one,
        last => {
            equal.extend(last);
            Expr::operator(ExprKind::And(equal))
        }
    };
    vec![Expr::operator(ExprKind::IsTruth {
        expr: Box::new(all),
        truth: false,
        negated: true,
    })]
}

/// Puts what the caller hands in in place of the registers that it is handed in by.
fn handed_in(expr: &mut Expr, bindings: &[(Register, Expr)]) {
    if let ExprKind::Register(register) = expr.kind {
        if let Some((_, value)) = bindings.iter().find(|(known, _)| *known == register) {
            *expr = value.clone();
        }
        return;
    }
    expr.kind.for_each_child_mut(&mut |child| {
        crate::stack::grow(|| handed_in(child, bindings));
    });
}

fn reads(expr: &Expr, registers: &Few<Register>) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Register(it) if registers.contains(it));
    expr.kind.for_each_child(&mut |child| {
        found = found || crate::stack::grow(|| reads(child, registers));
    });
    found
}
