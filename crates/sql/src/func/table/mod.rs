//! Table-valued functions: what stands in FROM with arguments, and yields rows.
//!
//! A [`TableFunction`] has columns and *hidden* ones behind them, one for each argument:
//! `*` does not show them, and an equality with one that was given no argument stands for
//! the argument. It makes [`TableRows`], which are started again and again, with the
//! arguments of each row on their left.

mod known;

use std::fmt::Debug;
use std::sync::Arc;

pub use known::{Answer, Answers, KnownRows};

use super::Context;
use super::json::each::JsonEach;
use crate::error::{Error, Result};
use crate::plan::physical::Pragma;
use crate::value::{Applied, ValueRef};

/// A table-valued function.
pub trait TableFunction: Debug + Send + Sync {
    /// Its name in lower case.
    fn name(&self) -> &str;

    /// The columns that `*` shows.
    fn columns(&self) -> &[&'static str];

    /// The hidden columns, in the order of the arguments.
    fn hidden(&self) -> &[&'static str];

    /// The column that may be a text of JSON, and the number of one, beyond the hidden
    /// ones, that says whether it is.
    fn json_column(&self) -> Option<(usize, usize)> {
        None
    }

    /// PRAGMAs whose answers it shows.
    fn asks(&self) -> &[Pragma] {
        &[]
    }

    /// How many rows one call gives, roughly.
    fn rows_estimate(&self) -> f64;

    /// Rows to be started.
    fn rows(&self) -> Box<dyn TableRows>;
}

/// The rows of a table-valued function.
pub trait TableRows: Send {
    /// Begins with the rows that these arguments give; a missing one is None.
    ///
    /// # Errors
    /// Those of the function.
    fn start(&mut self, arguments: &[Option<ValueRef<'_>>], context: &Context) -> Result<()>;

    /// Moves to the next row; false: there is none.
    ///
    /// # Errors
    /// Those of the function.
    fn next(&mut self) -> Result<bool>;

    /// A column of the row: those of [`TableFunction::columns`], then the hidden ones, or
    /// [`ROWID`](crate::bind::expr::ROWID).
    ///
    /// # Errors
    /// Those of the function.
    fn column(&mut self, column: usize) -> Result<Applied<'_>>;
}

/// The function of this name, in any case, that needs no schema.
pub fn find(name: &str) -> Option<Arc<dyn TableFunction>> {
    Some(Arc::new(JsonEach::named(name)?))
}

pub use super::json::each::names;

/// The error of a database that is not open.
fn unknown_database(name: &str) -> Error {
    Error::sql(format!("unknown database '{name}'"))
}
