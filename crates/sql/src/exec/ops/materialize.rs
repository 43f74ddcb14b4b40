//! Materialize: keeps its input's rows on the first pass of a run and replays
//! them when opened again.

use fulgurite_store::Txn;

use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::rows::RowStore;

/// See the module.
pub struct Materialize {
    input: BoxOperator,
    width: usize,
    kept: Option<RowStore>,
    position: u64,
}

impl Materialize {
    /// Over `input`, which yields `width` columns.
    pub fn new(input: BoxOperator, width: usize) -> Self {
        Self {
            input,
            width,
            kept: None,
            position: 0,
        }
    }
}

impl Operator for Materialize {
    fn attach(&mut self, txn: &mut Txn) -> Result<()> {
        self.kept = None;
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.position = 0;
        if self.kept.is_some() {
            return Ok(());
        }
        let mut kept = RowStore::new(self.width, &cx.run.memory);
        let mut batch = Batch::new(self.width);
        self.input.open(cx)?;
        while self.input.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            kept.append(&batch)?;
        }
        self.kept = Some(kept);
        Ok(())
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        match &mut self.kept {
            Some(kept) => kept.read(&mut self.position, want, out),
            None => Ok(false),
        }
    }

    fn detach(&mut self) {
        self.kept = None;
        self.input.detach();
    }
}
