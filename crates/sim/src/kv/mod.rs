//! Key-value workloads: random transactions on random trees, and the model they
//! are compared with.

mod commits;
mod draw;
mod life;
mod model;

pub use life::{BULK, KeyValue, Life, WORDS, open};
pub use model::{Oracle, RowKey, State, Table};
