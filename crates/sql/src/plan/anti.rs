//! LEFT JOINs of which only the rows without a partner are wanted.
//!
//! `a LEFT JOIN b ON b.x = a.y WHERE b.id IS NULL`, where nothing else reads `b`, is what NOT
//! EXISTS says: an anti-join, which hashes `b` or looks for one partner, and may stand
//! anywhere behind what its condition reads.

use super::Planner;
use super::few::Few;
use super::needed::Needed;
use super::order::{Condition, split_equality};
use super::physical::JoinKind;
use super::rules;
use super::semi::SemiJoin;
use crate::bind::expr::{ColumnRef, Expr, ExprKind, ROWID};
use crate::bind::logical::{Source, SourceKind};

/// A source with the ON conditions of its LEFT JOIN, if that is what joins it.
type Joining<'s> = (&'s Source, Option<Vec<Condition>>);

impl Planner<'_, '_> {
    /// The sources that can be anti-joins, which are taken out, and the conditions that say
    /// so, too. `shown` is what is read above the joins, `joins` are others that may read them.
    pub(super) fn anti_joins<'s>(
        &mut self,
        sources: &mut Vec<Joining<'s>>,
        conditions: &mut Vec<Condition>,
        shown: &Needed,
        joins: &[SemiJoin<'_>],
    ) -> Vec<SemiJoin<'s>> {
        let mut anti_joins = Vec::new();
        let mut at = 0;
        while let Some((source, on)) = sources.get(at) {
            let asking = on.as_ref().and_then(|on| {
                let asks = |c: &Condition| asks_for_none(&c.expr, source, on);
                conditions.iter().position(asks)
            });
            let is_taken = |asking: &usize| {
                let is_shown = !shown.of(source.id).is_empty();
                let others = conditions.iter().enumerate();
                let others = others.filter(|(at, _)| at != asking).map(|(_, c)| c);
                let of_sources = sources.iter().enumerate().filter(|(other, _)| *other != at);
                let of_sources = of_sources
                    .filter_map(|(_, (_, on))| on.as_deref())
                    .flatten();
                let of_joins = joins.iter().flat_map(|join| &join.on);
                let mut all = others.chain(of_sources).chain(of_joins);
                let is_read = all.any(|c| c.sources.contains(&source.id));
                let args = sources.iter().flat_map(|(other, _)| other.args());
                let mut args = args.map(|arg| self.sources_of(arg));
                let is_read = is_read || args.any(|read| read.contains(&source.id));
                !is_shown && !is_read && self.is_joinable(source, on.as_deref().unwrap_or(&[]))
            };
            match asking.filter(is_taken) {
                Some(asking) => {
                    conditions.remove(asking);
                    let (source, on) = sources.remove(at);
                    anti_joins.push(SemiJoin {
                        kind: JoinKind::Anti,
                        source,
                        on: on.unwrap_or_default(),
                        shown: None,
                        not_in: None,
                    });
                }
                None => at += 1,
            }
        }
        anti_joins
    }

    /// Whether a table has an equality among these conditions, all of which may be asked
    /// anywhere.
    fn is_joinable(&self, source: &Source, on: &[Condition]) -> bool {
        let own = Few::from([source.id]);
        let columns = |expr: &Expr| self.sources_of(expr);
        let is_key = |c: &Condition| {
            let mut others = c.sources.clone();
            others.remove(&source.id);
            split_equality(&c.expr, &own, &others, &columns).is_some()
        };
        let is_table = matches!(source.kind, SourceKind::Table(_)) && !source.fixed;
        is_table && on.iter().all(|c| c.movable) && on.iter().any(is_key)
    }
}

/// Whether a condition says of a column that no partner lacks that it is NULL.
fn asks_for_none(condition: &Expr, source: &Source, on: &[Condition]) -> bool {
    let ExprKind::IsNull {
        expr,
        negated: false,
    } = &condition.kind
    else {
        return false;
    };
    let ExprKind::Column(column) = expr.kind else {
        return false;
    };
    let is_it = |expr: &Expr| matches!(expr.kind, ExprKind::Column(it) if it == column);
    let is_given = || on.iter().any(|c| rules::needs(&c.expr, &is_it));
    column.source == source.id && (is_rowid(column, source) || is_given())
}

fn is_rowid(column: ColumnRef, source: &Source) -> bool {
    let is_table = matches!(&source.kind, SourceKind::Table(table) if !table.without_rowid);
    is_table && column.column == ROWID
}
