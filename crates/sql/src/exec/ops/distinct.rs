//! Distinct: each row once, at its first appearance.

use super::{BoxOperator, Delayed, Operator};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::external::Stay;
use crate::exec::once::Once;
use crate::exec::txns::Txns;
use crate::value::Collation;

/// See the module.
pub struct Distinct {
    input: BoxOperator,
    once: Once,
    /// The input has ended; what waited on disk comes out.
    ended: bool,
    delayed: Delayed,
}

impl Distinct {
    /// Over `input`.
    pub fn new(input: BoxOperator, collations: Vec<Collation>) -> Self {
        Self {
            input,
            once: Once::new(collations),
            ended: false,
            delayed: Delayed::default(),
        }
    }
}

impl Operator for Distinct {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.once.clear();
        self.ended = false;
        self.delayed.clear();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        while !self.ended {
            match self.input.next(cx, want, out) {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                // The rows that wait came before it.
                Err(error) => {
                    self.ended = true;
                    self.delayed.keep(error);
                }
            }
            cx.run.check_interrupt()?;
            if self.ended {
                self.once.finish(Stay::Unmarked, cx)?;
                break;
            }
            self.once.keep_new(out, cx)?;
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
        self.input.detach();
    }
}
