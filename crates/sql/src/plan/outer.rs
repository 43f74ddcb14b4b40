//! RIGHT and FULL JOIN: what stands before one is joined first, as a whole, and then with
//! the one source behind it; the sources after that are joined to what this gives.
//!
//! What may move past such a join:
//!
//! * A condition above it that needs a column of one side drops the rows in which that
//!   side is NULL. They need not be made: FULL becomes LEFT or RIGHT, and these an inner
//!   join.
//! * RIGHT keeps the rows of its right side. So a condition above it on that side alone
//!   can be applied to it first, and one of ON on the left side alone there.
//! * Nothing else: what FULL gives has NULLs on either side, and a condition on a side
//!   that becomes NULL says another thing before it does.

use super::Planner;
use super::few::Few;
use super::join::{HashKeys, Joined, ROWS_UNKNOWN};
use super::needed::Needed;
use super::order::{Condition, split_equality};
use super::physical::{JoinKind, Node, Op};
use super::properties::Properties;
use super::rules;
use super::semi::SemiJoin;
use crate::bind::expr::{Expr, SortKey};
use crate::bind::logical::{OuterJoin, OuterKind, Source};
use crate::error::Result;

/// Up to so many rows a RIGHT or FULL JOIN gives them in the order in which SQLite does:
/// those of the left side first. Above, that its smaller side is hashed, or its left one
/// found by keys, is worth more.
const ORDERED_ROWS: f64 = ROWS_UNKNOWN;

/// The columns of each source that are read.
pub(super) struct Reads<'b> {
    /// Anywhere in the block.
    pub needed: Needed,
    /// Above the joins. Where there is a RIGHT or FULL JOIN, those that are read anywhere.
    pub shown: Needed,
    /// What is asked of columns whose values are not.
    pub properties: Properties,
    /// Scalar subqueries that are joins.
    pub singles: Vec<SemiJoin<'b>>,
}

/// What is wanted of a join's rows.
#[derive(Default)]
pub struct Goal<'a> {
    /// The order that would spare a sort.
    pub order: &'a [SortKey],
    /// What is wanted behind it, where an index has that too and all that is read.
    pub within: &'a [SortKey],
    /// Only the first few may be wanted.
    pub limited: bool,
    /// About how many of them, or of their groups, where a LIMIT says so.
    pub first: Option<f64>,
    /// They may come in any order.
    pub any_order: bool,
    /// All of them are read, whatever is asked of the query.
    pub all: bool,
}

impl<'a> Planner<'a, '_> {
    /// The joined sources of a block or of its part, and the conditions above them.
    pub(super) fn joined(
        &mut self,
        sources: &[Source],
        mut conditions: Vec<Condition>,
        reads: &mut Reads<'a>,
        goal: &Goal<'_>,
    ) -> Result<Joined> {
        let (kinds, split) = self.simplified(sources, &mut conditions)?;
        let mut behind: Vec<_> = Vec::with_capacity(sources.len());
        let (mut base, mut done) = (None, 0);
        if let Some(split) = &split {
            done = split.left.len() + 1;
            match split.left {
                [left] if self.is_turned(split) => {
                    behind.push((split.right, None));
                    behind.push((left, Some(self.conditions(&split.outer.on)?)));
                }
                _ => {
                    let join = || self.right_join(split, &mut conditions, reads);
                    base = Some(crate::stack::grow(join)?);
                }
            }
        }
        for (source, kind) in sources.iter().zip(&kinds).skip(done) {
            let outer = source.outer.as_ref().filter(|_| kind.is_some());
            let on = outer.map(|outer| self.conditions(&outer.on));
            behind.push((source, on.transpose()?));
        }
        self.join_behind(base, behind, conditions, reads, goal)
    }

    /// What is left of each source's outer join under these conditions, and the last RIGHT
    /// or FULL JOIN. The conditions of those that have become others join the rest.
    fn simplified<'s>(
        &mut self,
        sources: &'s [Source],
        conditions: &mut Vec<Condition>,
    ) -> Result<(Vec<Option<OuterKind>>, Option<Split<'s>>)> {
        let own = |source: &Source| source.outer.as_ref().map(|outer| outer.kind);
        let mut kinds: Vec<Option<OuterKind>> = sources.iter().map(own).collect();
        for (at, source) in sources.iter().enumerate().rev() {
            let Some(outer) = source.outer.as_ref().filter(|o| o.kind.keeps_right()) else {
                continue;
            };
            let is_needed = |source: &Source| {
                let mut conditions = conditions.iter();
                conditions.any(|c| rules::rejects_null(&c.expr, source.id))
            };
            let keeps_left = outer.kind.keeps_left() && !is_needed(source);
            let keeps_right = !sources.iter().take(at).any(is_needed);
            let left = OuterKind::keeping(keeps_left, keeps_right);
            if let Some(kind) = kinds.get_mut(at) {
                *kind = left;
            }
            if let Some(kind) = left.filter(|kind| kind.keeps_right()) {
                let left = sources.get(..at).unwrap_or(&[]);
                let split = Split {
                    left,
                    right: source,
                    outer,
                    kind,
                };
                return Ok((kinds, Some(split)));
            }
            conditions.extend(self.conditions(&outer.before)?);
            if left.is_none() {
                conditions.extend(self.conditions(&outer.on)?);
            }
        }
        Ok((kinds, None))
    }

    fn conditions(&mut self, exprs: &[Expr]) -> Result<Vec<Condition>> {
        exprs.iter().map(|e| self.condition(e.clone())).collect()
    }

    /// Whether it is planned as a LEFT JOIN with the sides exchanged.
    fn is_turned(&mut self, split: &Split<'_>) -> bool {
        let [left] = split.left else { return false };
        let rows = self.source_rows(left).max(self.source_rows(split.right));
        split.kind == OuterKind::Right && rows > ORDERED_ROWS
    }

    fn right_join(
        &mut self,
        split: &Split<'_>,
        conditions: &mut Vec<Condition>,
        reads: &mut Reads<'a>,
    ) -> Result<Joined> {
        let mut on = self.conditions(&split.outer.on)?;
        let mut before = self.conditions(&split.outer.before)?;
        let mut own = Vec::new();
        if split.kind == OuterKind::Right {
            own = taken(conditions, &Few::from([split.right.id]));
            let of_left = split.left.iter().map(|source| source.id).collect();
            before.extend(taken(&mut on, &of_left));
        }
        let goal = Goal::default();
        let left = self.joined(split.left, before, reads, &goal)?;
        let right = self.join_behind(None, vec![(split.right, None)], own, reads, &goal)?;
        self.outer_join(split.kind, left, right, &on)
    }

    fn outer_join(
        &mut self,
        kind: OuterKind,
        left: Joined,
        right: Joined,
        on: &[Condition],
    ) -> Result<Joined> {
        let is_turned = right.node.rows > ORDERED_ROWS.max(left.node.rows);
        let (left, right) = match is_turned {
            true => (right, left),
            false => (left, right),
        };
        let kind = match (kind, is_turned) {
            (OuterKind::Full, _) => JoinKind::Full,
            (OuterKind::Right, false) | (OuterKind::Left, true) => JoinKind::Right,
            (OuterKind::Left, false) | (OuterKind::Right, true) => JoinKind::Left,
        };
        let layout = left.layout.join(&right.layout);
        let (of_left, of_right) = (left.layout.sources(), right.layout.sources());
        let mut keys = HashKeys::default();
        let mut rest = Vec::new();
        for Condition { expr, movable, .. } in on {
            let sources = |e: &Expr| self.sources_of(e);
            match split_equality(expr, &of_right, &of_left, &sources).filter(|_| *movable) {
                Some((l, r, comparison)) => {
                    keys.left.push(self.resolve(l, &left.layout)?);
                    keys.right.push(self.resolve(r, &right.layout)?);
                    keys.comparisons.push(comparison);
                }
                None => rest.push(expr.clone()),
            }
        }
        let (width, rows) = (layout.width(), left.node.rows.max(right.node.rows));
        let pairs = match keys.comparisons.is_empty() {
            true => left.node.rows * right.node.rows,
            false => rows,
        };
        let condition = self.called_for(pairs, |this| this.all_of(rest, &layout))?;
        let kept = self.kept_hashed(&right.node);
        let op = match keys.comparisons.is_empty() {
            true => Op::NestedLoopJoin {
                left: Box::new(left.node),
                right: Box::new(self.replayed(right.node, &[])),
                kind,
                bindings: Vec::new(),
                condition,
            },
            false => Op::HashJoin {
                left: Box::new(left.node),
                right: Box::new(right.node),
                kind,
                left_keys: keys.left,
                right_keys: keys.right,
                comparisons: keys.comparisons,
                condition,
                kept,
            },
        };
        Ok(Joined {
            node: Node { op, width, rows },
            layout,
            ordered: false,
        })
    }
}

/// A RIGHT or FULL JOIN between all that stands before it and one source.
struct Split<'s> {
    left: &'s [Source],
    right: &'s Source,
    outer: &'s OuterJoin,
    /// What is left of it.
    kind: OuterKind,
}

/// Takes the conditions that can be applied to these sources alone.
fn taken(conditions: &mut Vec<Condition>, sources: &Few<usize>) -> Vec<Condition> {
    let is_theirs =
        |c: &Condition| c.movable && !c.sources.is_empty() && c.sources.is_subset(sources);
    let (theirs, others) = std::mem::take(conditions).into_iter().partition(is_theirs);
    *conditions = others;
    theirs
}
