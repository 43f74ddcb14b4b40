//! The operators of a query, one a file.
//!
//! A tree of operators is built once from a plan's nodes and kept by the
//! prepared statement. A run goes: [`Operator::attach`] takes the cursors (all
//! reads of the run see the state of that moment and need the transaction no
//! more), [`Operator::open`] starts from the first row and may be called again,
//! [`Operator::next`] pulls batches, [`Operator::detach`] lets go of everything.
//!
//! A failing row ends its batch: the rows before it are delivered, and the error
//! follows with the next pull ([`Delayed`]).

mod aggregate;
mod build;
mod common_rows;
mod compound;
mod count;
mod deep;
mod distinct;
mod distinct_neighbours;
mod entry_run;
mod filter;
mod generate;
mod hash_join;
mod index_scan;
mod limit;
mod lookup;
mod marks;
mod materialize;
mod named_rows;
mod nested_loop;
mod pairs;
mod project;
mod recursion;
mod recursive_rows;
mod repeated_row;
mod scan;
mod sort;
mod table_function;
mod top;
mod values;
mod window;

pub use build::build;

use crate::error::{Error, Result};
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::txns::Txns;

/// An operator.
pub trait Operator: Send {
    /// Takes the cursors of a run.
    fn attach(&mut self, txn: &mut Txns) -> Result<()>;

    /// Starts again from the first row.
    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()>;

    /// Puts the next rows into `out`; false and none at the end. `want` is how
    /// many the caller can use: a hint, more may come.
    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool>;

    /// Passes over up to so many of the next rows without making them; how many it passed
    /// over. Fewer, and none at all, are no end: the others are to be asked for and dropped.
    fn skip(&mut self, cx: &mut Context<'_, '_>, rows: u64) -> Result<u64> {
        let _ = (cx, rows);
        Ok(0)
    }

    /// Drops cursors and what was buffered.
    fn detach(&mut self);
}

/// An owned operator.
pub type BoxOperator = Box<dyn Operator>;

/// The error of a batch whose earlier rows are delivered first.
#[derive(Default)]
pub struct Delayed(Option<Error>);

impl Delayed {
    /// Raises what was kept.
    #[inline]
    pub fn raise(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), Err)
    }

    /// After `error` with `rows` good rows before it: keeps it, or raises it at
    /// once where there are none.
    pub fn after(&mut self, rows: usize, error: Error) -> Result<bool> {
        if rows == 0 {
            return Err(error);
        }
        self.0 = Some(error);
        Ok(true)
    }

    /// Keeps it.
    pub fn keep(&mut self, error: Error) {
        self.0 = Some(error);
    }

    /// Forgets it.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}
