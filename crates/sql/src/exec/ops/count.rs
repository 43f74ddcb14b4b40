//! Count: `count(*)` of a whole table from its counter.

use std::sync::Arc;

use super::Operator;
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::txns::Txns;
use crate::schema::Table;

/// See the module.
pub struct CountRows {
    table: Arc<Table>,
    count: u64,
    done: bool,
}

impl CountRows {
    /// Of a table.
    pub fn new(table: Arc<Table>) -> Self {
        Self {
            table,
            count: 0,
            done: true,
        }
    }
}

impl Operator for CountRows {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.count = txn.count(&self.table.tree)?;
        Ok(())
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.done = false;
        Ok(())
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, _want: usize, out: &mut Batch) -> Result<bool> {
        out.reset(1);
        if std::mem::replace(&mut self.done, true) {
            return Ok(false);
        }
        if let Some(column) = out.columns.first_mut() {
            column.push_integer(self.count as i64);
        }
        out.set_rows(1);
        Ok(true)
    }

    fn detach(&mut self) {}
}
