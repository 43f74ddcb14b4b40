//! Conditions `x IN (SELECT y FROM t …)` whose subquery is the same for all rows, as joins that
//! look `y` up.
//!
//! What such a subquery yields is gathered once, which takes as long for the few rows that ask
//! as for many. Where an index finds `y`, a semi-join that looks for one partner of each row
//! reads what is asked for and no more. Which costs less hangs on how many rows ask: the joins
//! are put in order both ways, and the cheaper one is taken.
//!
//! NOT IN is an anti-join, above which is asked what a row without a partner does not tell:
//! NOT IN holds for it if the operand is not NULL and the subquery yields no NULL, or if it
//! yields nothing. Both questions are the same for all rows.

use super::Planner;
use super::few::Few;
use super::layout::Layout;
use super::order::{Condition, Item, Method, Order};
use super::outer::{Goal, Reads};
use super::physical::{JoinKind, Node, Op};
use super::resolve::{Asked, Rows};
use super::semi::{SemiJoin, asked, output_of};
use super::sources::{Before, Ordered, ToJoin};
use super::weigh::COST_BUILD;
use crate::bind::expr::{Expr, ExprKind, Props, ROWID, SubqueryId, UnaryOp};
use crate::bind::logical::{Block, SourceKind};
use crate::error::{Error, Result};

/// To gather fewer than this costs less than to weigh it.
const GATHERED_MIN: f64 = 64.0;

/// A condition that may be looked up.
struct Sought<'b> {
    join: SemiJoin<'b>,
    /// The condition's subquery.
    subquery: SubqueryId,
    /// What it costs to gather all that the subquery yields.
    cost: f64,
}

/// What NOT IN asks of a row without a partner.
#[derive(Clone)]
pub(super) struct NotIn {
    subquery: SubqueryId,
    operand: Expr,
}

impl<'a> Planner<'a, '_> {
    /// What is to be joined in the best order that is found, where conditions that read no
    /// more than these sources may be looked up.
    pub(super) fn ordered_seeking<'b>(
        &mut self,
        mut whole: ToJoin<'b>,
        known: &Few<usize>,
        before: &Before,
        reads: &Reads<'_>,
        goal: &Goal<'_>,
    ) -> Result<Ordered<'b>>
    where
        'a: 'b,
    {
        let sought = self.sought(&whole.conditions, known, &whole.joins)?;
        if sought.is_empty() {
            return self.ordered(whole, before, reads, goal);
        }
        let mut best = self.ordered(whole.clone(), before, reads, goal)?;
        for sought in sought {
            let mut seeking = whole.clone();
            seeking.joins.push(sought.join.clone());
            let conditions = &mut seeking.conditions;
            conditions.retain(|it| subquery_of(it) != Some(sought.subquery));
            let by_join = self.ordered(seeking.clone(), before, reads, goal)?;
            if sought.is_cheaper(&by_join, &best.order) {
                (whole, best) = (seeking, by_join);
            }
        }
        Ok(best)
    }

    /// The conditions that may be looked up in what no subquery of `joins` reads.
    fn sought(
        &mut self,
        conditions: &[Condition],
        sources: &Few<usize>,
        joins: &[SemiJoin<'_>],
    ) -> Result<Vec<Sought<'a>>> {
        let mut found = Vec::new();
        for condition in conditions {
            let Some(id) = subquery_of(condition) else {
                continue;
            };
            let mut same = conditions.iter().filter(|it| subquery_of(it) == Some(id));
            let is_alone = same.next().is_some() && same.next().is_none();
            if !is_alone || !condition.movable || !condition.sources.is_subset(sources) {
                continue;
            }
            if let Some(sought) = self.sought_by(condition, id, sources)?
                && joins.iter().all(|j| j.source.id != sought.join.source.id)
            {
                found.push(sought);
            }
        }
        Ok(found)
    }

    fn sought_by(
        &mut self,
        condition: &Condition,
        id: SubqueryId,
        sources: &Few<usize>,
    ) -> Result<Option<Sought<'a>>> {
        let (logical, Some(mut wanted)) = (self.logical, asked(&condition.expr)) else {
            return Ok(None);
        };
        let Some(subquery) = logical.get(id).filter(|it| it.bindings.is_empty()) else {
            return Ok(None);
        };
        let not_in = match (wanted.kind, wanted.members) {
            (JoinKind::Semi, Some(_)) => None,
            (JoinKind::Anti, Some(([operand], _))) => Some(NotIn {
                subquery: id,
                operand: operand.clone(),
            }),
            _ => return Ok(None),
        };
        // A partner is a row that is equal, of NOT IN, too.
        wanted.kind = JoinKind::Semi;
        let Some(join) = self.join_with(&wanted, subquery, sources)? else {
            return Ok(None);
        };
        let gathered = self.rows_gathered(id)?;
        let join = SemiJoin {
            kind: match not_in {
                None => JoinKind::Semi,
                Some(_) => JoinKind::Anti,
            },
            not_in,
            ..join
        };
        Ok((gathered >= GATHERED_MIN).then_some(Sought {
            join,
            subquery: id,
            cost: gathered * (1.0 + COST_BUILD),
        }))
    }

    /// The rows without a partner for which NOT IN holds.
    pub(super) fn without_unknown(
        &mut self,
        node: Node,
        not_in: &NotIn,
        layout: &Layout,
    ) -> Result<Node> {
        let logical = self.logical;
        let block = logical.get(not_in.subquery).and_then(output_of);
        let (subquery, block, output) = block.ok_or_else(|| Error::misuse("no such subquery"))?;
        let mut has_any = |conditions: Vec<Expr>| -> Result<Expr> {
            let asked = Asked::Exists;
            let rows = &mut Rows::None;
            let planned = self.subquery_where(subquery, conditions, &[], rows, asked)?;
            let exists = Box::new(Expr {
                kind: ExprKind::Exists(planned),
                props: Props::column(None, None),
            });
            Ok(Expr::operator(ExprKind::Unary(UnaryOp::Not, exists)))
        };
        let is_null = |expr: Expr, negated: bool| {
            let expr = Box::new(expr);
            Expr::operator(ExprKind::IsNull { expr, negated })
        };
        let no_null = match may_be_null(output, block) {
            true => Some(has_any(vec![is_null(output.clone(), false)])?),
            false => None,
        };
        let nothing = has_any(Vec::new())?;
        let operand = self.resolve(&not_in.operand, layout)?;
        let mut known = vec![is_null(operand, true)];
        known.extend(no_null);
        let known = Expr::operator(ExprKind::And(known));
        let predicate = Expr::operator(ExprKind::Or(vec![known, nothing]));
        let (width, rows) = (node.width, node.rows);
        let input = Box::new(node);
        Ok(Node {
            op: Op::Filter { input, predicate },
            width,
            rows,
        })
    }
}

impl Sought<'_> {
    /// Whether an order that looks it up costs less than one that asks the condition.
    fn is_cheaper(&self, by_join: &Ordered<'_>, gathered: &Order) -> bool {
        let is_it = |item: &Item<'_>| item.source.id == self.join.source.id;
        let item = by_join.items.iter().position(is_it);
        let mut steps = by_join.order.steps.iter();
        let step = steps.find(|step| Some(step.item) == item);
        let looks_up = step.is_some_and(|step| matches!(step.method, Method::Lookup(_)));
        looks_up && by_join.order.cost < gathered.cost + self.cost
    }
}

/// The subquery of a condition that is an IN.
fn subquery_of(condition: &Condition) -> Option<SubqueryId> {
    let wanted = asked(&condition.expr)?;
    wanted.members.map(|_| wanted.subquery)
}

/// Whether a result of a block of one table may be NULL.
fn may_be_null(output: &Expr, block: &Block) -> bool {
    let ([source], ExprKind::Column(column)) = (block.sources.as_slice(), &output.kind) else {
        return true;
    };
    let SourceKind::Table(table) = &source.kind else {
        return true;
    };
    let is_declared = || {
        let column = table.columns.get(column.column);
        column.is_some_and(|it| it.not_null.is_some())
    };
    column.column != ROWID && !is_declared()
}
