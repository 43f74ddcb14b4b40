//! Recursive common table expressions.
//!
//! The members are planned once and run for each row of the queue, or for several at
//! once where that makes the same rows in the same order. What they join the row with
//! is built, or read, once and kept.

use super::Planner;
use super::join::ROWS_UNKNOWN;
use super::layout::Layout;
use super::physical::{CompoundOp, Node, Op};
use crate::bind::expr::{ColumnRef, SortKey};
use crate::bind::logical::{Recursion, Source};
use crate::error::{Error, Result};

/// A recursion whose members are being planned.
pub struct Recursing {
    /// The source that a row of its queue is to them.
    source: usize,
    /// Where its rows lie.
    table: usize,
    /// How many it is guessed to have.
    rows: f64,
}

impl Planner<'_, '_> {
    /// Begins to plan what is opened anew as a whole: the pass around it, to be set
    /// again behind it, and its own.
    pub fn begin_pass(&mut self) -> (usize, usize) {
        let outer = std::mem::replace(&mut self.pass, self.passes);
        self.passes += 1;
        (outer, self.pass)
    }

    /// The plan of a recursion whose rows leave the queue in this order.
    pub fn recursion(&mut self, recursion: &Recursion, order: &[SortKey]) -> Result<Node> {
        let initial = crate::stack::grow(|| self.query(&recursion.initial))?;
        let (outer, table) = self.begin_pass();
        let (source, rows) = (recursion.source, self.rows_of_recursion(recursion));
        self.recursions.push(Recursing {
            source,
            table,
            rows,
        });
        let mut step: Option<Node> = None;
        for member in &recursion.members {
            let node = crate::stack::grow(|| self.query(member))?;
            step = Some(match step {
                None => node,
                Some(before) => both(before, node),
            });
        }
        self.recursions.pop();
        self.pass = outer;
        let step = step.ok_or_else(|| Error::misuse("a recursion without members"))?;
        let (width, rows) = (initial.width, initial.rows.max(step.rows));
        let by_batch = order.is_empty() && goes_row_by_row(&step);
        Ok(Node {
            op: Op::Recursion {
                name: recursion.name.clone(),
                table,
                initial: Box::new(initial),
                step: Box::new(step),
                distinct: recursion.distinct.clone(),
                order: order.to_vec(),
                by_batch,
            },
            width,
            rows,
        })
    }

    /// The source that a recursion is to its members.
    pub fn recursive_rows(&self, source: &Source, width: usize) -> Result<(Node, Layout)> {
        let Some(Recursing { table, rows, .. }) = self.recursing(source) else {
            return Err(Error::misuse("a recursive table outside its recursion"));
        };
        let (table, rows) = (*table, *rows);
        let name = source.alias.clone();
        let op = Op::RecursiveRows { name, table };
        let columns = (0..width).map(|column| ColumnRef {
            source: source.id,
            column,
        });
        Ok((Node { op, width, rows }, Layout::of_columns(columns)))
    }

    /// The recursion of which a source is the rows.
    fn recursing(&self, source: &Source) -> Option<&Recursing> {
        let mut recursions = self.recursions.iter();
        recursions.rfind(|recursing| recursing.source == source.id)
    }

    /// About how many rows a recursion has to its members.
    pub fn rows_recursing(&self, source: &Source) -> f64 {
        self.recursing(source).map_or(ROWS_UNKNOWN, |it| it.rows)
    }

    /// Whether a plan reads the row at hand of a recursion around it.
    pub fn reads_recursion(&self, node: &Node) -> bool {
        if self.recursions.is_empty() {
            return false;
        }
        match &node.op {
            Op::RecursiveRows { table, .. } => self.recursions.iter().any(|it| it.table == *table),
            op => op
                .inputs()
                .into_iter()
                .any(|input| crate::stack::grow(|| self.reads_recursion(input))),
        }
    }

    /// The pass in which the hashed side of a join stays the same, where the join may be
    /// opened more than once in it: in a recursion, or in a subquery that hands nothing in
    /// to that side.
    pub fn kept_hashed(&self, hashed: &Node) -> Option<usize> {
        if self.reads_recursion(hashed) {
            return None;
        }
        let pass = self.pass_of(hashed);
        (!self.recursions.is_empty() || pass != self.pass).then_some(pass)
    }
}

/// The rows of two members.
fn both(left: Node, right: Node) -> Node {
    let (width, rows) = (left.width, left.rows + right.rows);
    Node {
        op: Op::Compound {
            op: CompoundOp::UnionAll,
            left: Box::new(left),
            right: Box::new(right),
            collations: Vec::new(),
        },
        width,
        rows,
    }
}

/// Whether a member takes the rows at hand one after the other, so that it makes the
/// same of many at once.
fn goes_row_by_row(step: &Node) -> bool {
    match &step.op {
        Op::RecursiveRows { .. } => true,
        Op::Filter { input, .. }
        | Op::Generate { input, .. }
        | Op::Project { input, .. }
        | Op::NestedLoopJoin { left: input, .. }
        | Op::HashJoin { left: input, .. } => crate::stack::grow(|| goes_row_by_row(input)),
        _ => false,
    }
}
