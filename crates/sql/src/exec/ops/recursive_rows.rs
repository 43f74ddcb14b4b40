//! Recursive rows: those of a recursion's queue that are at hand.

use super::Operator;
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::txns::Txns;

/// See the module.
pub struct RecursiveRows {
    table: usize,
    width: usize,
    done: bool,
}

impl RecursiveRows {
    /// Those of the recursion of this number, `width` columns each.
    pub fn new(table: usize, width: usize) -> Self {
        Self {
            table,
            width,
            done: true,
        }
    }
}

impl Operator for RecursiveRows {
    fn attach(&mut self, _txn: &mut Txns) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.done = false;
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, _want: usize, out: &mut Batch) -> Result<bool> {
        out.reset(self.width);
        if self.done {
            return Ok(false);
        }
        self.done = true;
        out.append(cx.run.recursive_rows(self.table))?;
        Ok(!out.is_empty())
    }

    fn detach(&mut self) {
        self.done = true;
    }
}
