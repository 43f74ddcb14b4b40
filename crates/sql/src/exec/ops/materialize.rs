//! Materialize: keeps its input's rows when it is opened and replays them when it is
//! opened again within the same pass of the plan. Few of them are kept as the batch that
//! they are handed out as.

use super::{BoxOperator, Operator};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::memory::Held;
use crate::exec::rows::RowStore;
use crate::exec::txns::Txns;

/// Bytes that few rows take at most.
const FEW_BYTES: usize = 64 << 10;

enum Kept {
    Few(Batch),
    Many(RowStore),
}

/// See the module.
pub struct Materialize {
    input: BoxOperator,
    width: usize,
    pass: usize,
    /// The rows, and how often the pass had begun then.
    kept: Option<(u64, Kept)>,
    position: u64,
    held: Held,
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
            held: Held::default(),
        }
    }

    fn keep(&mut self, cx: &mut Context<'_, '_>) -> Result<Kept> {
        let mut few = Batch::new(self.width);
        let mut batch = Batch::new(self.width);
        let mut many = None;
        self.input.open(cx)?;
        while self.input.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            if many.is_none() && few.rows() + batch.len() <= ROWS_MAX {
                few.append(&batch)?;
                if few.memory() <= FEW_BYTES {
                    continue;
                }
                batch.clear();
            }
            let store = many.get_or_insert_with(|| RowStore::new(self.width, &cx.run.memory));
            store.append(&few)?;
            few.clear();
            store.append(&batch)?;
        }
        Ok(match many {
            Some(store) => Kept::Many(store),
            None => {
                self.held.force(&cx.run.memory, few.memory());
                Kept::Few(few)
            }
        })
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
        let kept = self.keep(cx)?;
        self.kept = Some((begun, kept));
        Ok(())
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        match &mut self.kept {
            Some((_, Kept::Many(store))) => store.read(&mut self.position, want, out),
            Some((_, Kept::Few(few))) if self.position == 0 && few.rows() > 0 => {
                self.position = few.rows() as u64;
                out.reset(self.width);
                for (column, from) in out.columns.iter_mut().zip(&few.columns) {
                    column.copy_from(from);
                }
                out.set_rows(few.rows());
                Ok(true)
            }
            _ => {
                out.reset(self.width);
                Ok(false)
            }
        }
    }

    fn detach(&mut self) {
        self.kept = None;
        self.held.release();
        self.input.detach();
    }
}
