//! Compound: UNION ALL, UNION, INTERSECT and EXCEPT.
//!
//! INTERSECT and EXCEPT gather the right side's rows first. Where the budget is
//! too small for them, both sides are told apart on disk.

use std::sync::Arc;

use super::{BoxOperator, Delayed, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::Operand;
use crate::exec::external::{ExternalSet, Stay};
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::Held;
use crate::exec::once::Once;
use crate::exec::txns::Txns;
use crate::key::any_of_program;
use crate::plan::physical::CompoundOp;
use crate::value::Collation;

/// See the module.
pub struct Compound {
    op: CompoundOp,
    left: BoxOperator,
    right: BoxOperator,
    collations: Arc<[Collation]>,
    /// Lets each row out once.
    once: Once,
    /// INTERSECT and EXCEPT: the rows of the right side, unless they are on disk.
    filter: GroupTable,
    held: Held,
    filtered: bool,
    groups: Vec<u32>,
    on_right: bool,
    filter_ready: bool,
    ended: bool,
    delayed: Delayed,
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
            collations: collations.clone().into(),
            once: Once::new(collations.clone()),
            filter: GroupTable::new(collations),
            held: Held::default(),
            filtered: false,
            groups: Vec::new(),
            on_right: false,
            filter_ready: false,
            ended: false,
            delayed: Delayed::default(),
        }
    }

    fn has_filter(&self) -> bool {
        matches!(self.op, CompoundOp::Intersect | CompoundOp::Except)
    }

    fn build_filter(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        let mut batch = Batch::default();
        // Collations of the program cannot be hashed.
        let mut on_disk = any_of_program(&self.collations)
            .then(|| ExternalSet::new(Arc::clone(&self.collations), &cx.run.memory));
        self.right.open(cx)?;
        while self.right.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            if let Some(set) = &mut on_disk {
                batch
                    .selection()
                    .try_each(|row| set.mark(batch.columns.iter().map(|c| c.get(row))))?;
                continue;
            }
            let keys: Vec<Operand<'_>> = batch.columns.iter().map(Operand::Column).collect();
            self.filter
                .insert(&keys, batch.selection(), &mut self.groups)?;
            if !self.held.resize(&cx.run.memory, self.filter.memory()) {
                let mut set = ExternalSet::new(Arc::clone(&self.collations), &cx.run.memory);
                for group in 0..self.filter.len() {
                    set.mark(self.filter.keys().iter().map(|k| k.get(group)))?;
                }
                self.filter.clear();
                self.filter.release();
                self.held.release();
                on_disk = Some(set);
            }
        }
        self.filter_ready = true;
        self.filtered = on_disk.is_none();
        if let Some(set) = on_disk {
            self.once.wait_in(set);
        }
        Ok(())
    }

    /// The next batch of the inputs; false at the end of both.
    fn pull(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        if self.on_right {
            return self.right.next(cx, want, out);
        }
        if self.left.next(cx, want, out)? {
            return Ok(true);
        }
        if self.has_filter() {
            return Ok(false);
        }
        self.on_right = true;
        self.right.open(cx)?;
        self.right.next(cx, want, out)
    }

    /// Ends the input; what waited on disk comes out.
    fn finish(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.ended = true;
        let stay = if self.op == CompoundOp::Intersect && !self.filtered {
            Stay::Marked
        } else {
            Stay::Unmarked
        };
        self.once.finish(stay, cx)?;
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
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.left.attach(txn)?;
        self.right.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.once.clear();
        self.filter.clear();
        self.on_right = false;
        self.filter_ready = false;
        self.filtered = false;
        self.ended = false;
        self.delayed.clear();
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        if self.has_filter() && !self.filter_ready {
            self.build_filter(cx)?;
        }
        while !self.ended {
            cx.run.check_interrupt()?;
            match self.pull(cx, want, out) {
                Ok(true) => {}
                Ok(false) => {
                    self.finish(cx)?;
                    break;
                }
                // The rows that wait came before it.
                Err(error) => {
                    self.delayed.keep(error);
                    self.finish(cx)?;
                    break;
                }
            }
            if self.filtered {
                self.apply_filter(out, cx);
            }
            if self.op != CompoundOp::UnionAll {
                self.once.keep_new(out, cx)?;
            }
            if !out.is_empty() {
                return Ok(true);
            }
        }
        if self.once.read(want, out)? {
            return Ok(true);
        }
        self.delayed.raise()?;
        Ok(false)
    }

    fn detach(&mut self) {
        self.once.release();
        self.filter.clear();
        self.filter.release();
        self.held.release();
        self.left.detach();
        self.right.detach();
    }
}
