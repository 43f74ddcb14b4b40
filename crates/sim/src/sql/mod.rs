//! SQL workloads: random statements and transactions over a few tables, and the
//! model they are compared with.

mod change;
mod life;
mod model;

pub(crate) use life::is_conflict;
pub use life::{Session, Sql, open};
pub use model::{Oracle, Row, State, Table};
