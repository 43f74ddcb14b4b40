//! Compound: UNION ALL, UNION, INTERSECT and EXCEPT.

use fulgurite_store::Txn;

use super::distinct::keep_new;
use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::Operand;
use crate::exec::hash::{GroupTable, NONE};
use crate::plan::physical::CompoundOp;
use crate::value::Collation;

/// See the module.
pub struct Compound {
    op: CompoundOp,
    left: BoxOperator,
    right: BoxOperator,
    /// Rows that came out already.
    seen: GroupTable,
    /// INTERSECT and EXCEPT: the rows of the right side.
    filter: GroupTable,
    groups: Vec<u32>,
    on_right: bool,
    filter_ready: bool,
}

impl Compound {
    /// Of two inputs of one width.
    pub fn new(
        op: CompoundOp,
        left: BoxOperator,
        right: BoxOperator,
        collations: Vec<Collation>,
    ) -> Self {
        Self {
            op,
            left,
            right,
            seen: GroupTable::new(collations.clone()),
            filter: GroupTable::new(collations),
            groups: Vec::new(),
            on_right: false,
            filter_ready: false,
        }
    }

    fn build_filter(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        let mut batch = Batch::default();
        self.right.open(cx)?;
        while self.right.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            let keys: Vec<Operand<'_>> = batch.columns.iter().map(Operand::Column).collect();
            self.filter
                .insert(&keys, batch.selection(), &mut self.groups)?;
        }
        self.filter_ready = true;
        Ok(())
    }

    fn apply_filter(&mut self, out: &mut Batch, cx: &mut Context<'_, '_>) {
        let keys: Vec<Operand<'_>> = out.columns.iter().map(Operand::Column).collect();
        self.filter.find(&keys, out.selection(), &mut self.groups);
        let mut kept = cx.run.rows();
        let mut next = self.groups.iter();
        let wanted = self.op == CompoundOp::Intersect;
        out.selection().each(|row| {
            if next.next().is_some_and(|g| (*g != NONE) == wanted) {
                kept.push(row as u32);
            }
        });
        out.select(&mut kept);
        cx.run.recycle_rows(kept);
    }
}

impl Operator for Compound {
    fn attach(&mut self, txn: &mut Txn) -> Result<()> {
        self.left.attach(txn)?;
        self.right.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.seen.clear();
        self.filter.clear();
        self.on_right = false;
        self.filter_ready = false;
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        if matches!(self.op, CompoundOp::Intersect | CompoundOp::Except) && !self.filter_ready {
            self.build_filter(cx)?;
        }
        loop {
            cx.run.check_interrupt()?;
            let more = if self.on_right {
                self.right.next(cx, want, out)?
            } else {
                self.left.next(cx, want, out)?
            };
            if !more {
                if self.on_right || matches!(self.op, CompoundOp::Intersect | CompoundOp::Except) {
                    return Ok(false);
                }
                self.on_right = true;
                self.right.open(cx)?;
                continue;
            }
            if self.filter_ready {
                self.apply_filter(out, cx);
            }
            if self.op != CompoundOp::UnionAll {
                keep_new(out, &mut self.seen, &mut self.groups, cx)?;
            }
            if !out.is_empty() {
                return Ok(true);
            }
        }
    }

    fn detach(&mut self) {
        self.seen.clear();
        self.filter.clear();
        self.left.detach();
        self.right.detach();
    }
}
