//! Deep: an operator that has many above it, with stack for those below.
//!
//! Operators call one another from the top down, and views and common table expressions
//! put more of them below one another than any text nests.

use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::txns::Txns;
use crate::stack::grow;

/// See the module. None only while it is dropped.
pub struct Deep(Option<BoxOperator>);

impl Deep {
    /// Over `input`, whose rows it yields.
    pub fn new(input: BoxOperator) -> Self {
        Self(Some(input))
    }
}

impl Operator for Deep {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        match &mut self.0 {
            Some(input) => grow(|| input.attach(txn)),
            None => Ok(()),
        }
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        match &mut self.0 {
            Some(input) => grow(|| input.open(cx)),
            None => Ok(()),
        }
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        match &mut self.0 {
            Some(input) => grow(|| input.next(cx, want, out)),
            None => Ok(false),
        }
    }

    fn skip(&mut self, cx: &mut Context<'_, '_>, rows: u64) -> Result<u64> {
        match &mut self.0 {
            Some(input) => grow(|| input.skip(cx, rows)),
            None => Ok(0),
        }
    }

    fn detach(&mut self) {
        if let Some(input) = &mut self.0 {
            grow(|| input.detach());
        }
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        let input = self.0.take();
        grow(|| drop(input));
    }
}
