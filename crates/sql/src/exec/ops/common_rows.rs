//! Common rows: those of a common table expression, which are made once for all that read
//! them.

use super::Operator;
use crate::bind::expr::SubqueryId;
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::subquery;
use crate::exec::txns::Txns;

/// See the module.
pub struct CommonRows {
    subquery: SubqueryId,
    position: u64,
}

impl CommonRows {
    /// Those of this subquery.
    pub fn new(subquery: SubqueryId) -> Self {
        Self {
            subquery,
            position: 0,
        }
    }
}

impl Operator for CommonRows {
    fn attach(&mut self, _txn: &mut Txns) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.position = 0;
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        subquery::read(self.subquery, &mut self.position, want, out, cx)
    }

    fn detach(&mut self) {}
}
