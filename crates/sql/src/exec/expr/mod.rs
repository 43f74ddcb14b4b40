//! Evaluation of bound expressions: over one row ([`mod@eval`]), over a batch
//! ([`batch`]), and as a predicate that narrows a selection ([`mod@filter`]).

pub mod batch;
mod call;
mod case;
mod coalesce;
pub mod compare;
pub mod eval;
pub mod filter;
mod in_list;
pub(super) mod json;
mod kernel;
mod like;
mod nullif;
pub mod row;
mod user;

pub use batch::{Operand, eval_batch, map_batch, operand};
pub use eval::{Datum, condition, eval};
pub use filter::filter;
pub use row::Row;
