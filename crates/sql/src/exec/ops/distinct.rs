//! Distinct: each row once, at its first appearance.

use fulgurite_store::Txn;

use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::Operand;
use crate::exec::hash::GroupTable;
use crate::value::Collation;

/// See the module.
pub struct Distinct {
    input: BoxOperator,
    seen: GroupTable,
    groups: Vec<u32>,
}

impl Distinct {
    /// Over `input`.
    pub fn new(input: BoxOperator, collations: Vec<Collation>) -> Self {
        Self {
            input,
            seen: GroupTable::new(collations),
            groups: Vec::new(),
        }
    }
}

/// Keeps the rows of the batch that `seen` meets for the first time.
pub fn keep_new(
    batch: &mut Batch,
    seen: &mut GroupTable,
    groups: &mut Vec<u32>,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    let mut known = seen.len() as u32;
    let keys: Vec<Operand<'_>> = batch.columns.iter().map(Operand::Column).collect();
    seen.insert(&keys, batch.selection(), groups)?;
    let mut kept = cx.run.rows();
    let mut next = groups.iter();
    batch.selection().each(|row| {
        if next.next() == Some(&known) {
            known += 1;
            kept.push(row as u32);
        }
    });
    batch.select(&mut kept);
    cx.run.recycle_rows(kept);
    Ok(())
}

impl Operator for Distinct {
    fn attach(&mut self, txn: &mut Txn) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.seen.clear();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        while self.input.next(cx, want, out)? {
            cx.run.check_interrupt()?;
            keep_new(out, &mut self.seen, &mut self.groups, cx)?;
            if !out.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn detach(&mut self) {
        self.seen.clear();
        self.input.detach();
    }
}
