//! INSERT, UPDATE and DELETE: sinks that take rows in source order, check the
//! table's constraints against its state at that moment, and keep its indexes.
//!
//! A row is checked wholly before anything of it is written, except that a new
//! row's own uniqueness is found out by inserting it; what was inserted is then
//! taken back. So a statement of one row leaves nothing behind when it fails,
//! and needs no savepoint. Statements of several rows are undone by the caller.

mod batch;
mod deferred;
mod delete;
mod entries;
mod entry;
mod foreign;
mod generated;
mod insert;
mod merge;
mod replace;
mod row_checks;
pub mod sequence;
mod sink;
mod start;
mod statement;
mod taken;
mod triggers;
mod update;
mod upsert;
mod view;

pub use batch::Records;
pub use deferred::Deferred;
pub use delete::delete;
pub use entry::{Entry, KeyMaker, duplicate};
pub use foreign::{Counters, Foreign, has_parent};
pub use generated::read_row;
pub use insert::PointInsert;
pub use sink::{Buffers, Sink};
pub use statement::{KeptBack, Statement};
pub use triggers::{DEPTH_MAX as TRIGGER_DEPTH_MAX, TriggerState, Triggers};

use crate::error::Error;
use crate::schema::ConflictAction;

/// A failure, and how far it reaches.
#[derive(Debug)]
pub struct Failure {
    /// What the caller is told.
    pub error: Error,
    /// Abort: undo the statement. Fail: keep the rows before. Rollback: undo the
    /// transaction. Ignore: leave out the row for which a trigger ran.
    pub action: ConflictAction,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            action: error.action().unwrap_or_default(),
            error,
        }
    }
}

impl From<fulgurite_store::Error> for Failure {
    fn from(error: fulgurite_store::Error) -> Self {
        Error::from(error).into()
    }
}

/// Result of writing.
pub type Written<T> = std::result::Result<T, Failure>;

/// A violated constraint under an action that is neither Ignore nor Replace.
#[cold]
pub fn violated(error: Error, action: ConflictAction) -> Failure {
    Failure { error, action }
}
