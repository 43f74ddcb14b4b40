//! Materialize: keeps its input's rows when it is opened and replays them when it is
//! opened again within the same pass of the plan.

use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::rows::RowStore;
use crate::exec::txns::Txns;

/// See the module.
pub struct Materialize {
    input: BoxOperator,
    width: usize,
    pass: usize,
    /// The rows, and how often the pass had begun then.
    kept: Option<(u64, RowStore)>,
    position: u64,
}

impl Materialize {
    /// Over `input`, which yields `width` columns, the same all through `pass`.
    pub fn new(input: BoxOperator, width: usize, pass: usize) -> Self {
        Self {
            input,
            width,
            pass,
            kept: None,
            position: 0,
        }
    }
}

impl Operator for Materialize {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.kept = None;
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.position = 0;
        let begun = cx.run.pass(self.pass);
        if self.kept.as_ref().is_some_and(|(of, _)| *of == begun) {
            return Ok(());
        }
        self.kept = None;
        let mut kept = RowStore::new(self.width, &cx.run.memory);
        let mut batch = Batch::new(self.width);
        self.input.open(cx)?;
        while self.input.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            kept.append(&batch)?;
        }
        self.kept = Some((begun, kept));
        Ok(())
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        match &mut self.kept {
            Some((_, kept)) => kept.read(&mut self.position, want, out),
            None => Ok(false),
        }
    }

    fn detach(&mut self) {
        self.kept = None;
        self.input.detach();
    }
}
