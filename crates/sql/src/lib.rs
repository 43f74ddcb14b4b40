//! SQL for Fulgurite: SQLite's dialect and semantics over the store.
//!
//! Text becomes rows in stages, a folder each, and none knows the next:
//! `parse` (text to `ast`), `bind` (names, affinities, collations), `plan`
//! (rules and physical operators), `exec` (running them), `session` (transactions
//! and prepared statements). Beside them: `schema` (what sqlite_schema says),
//! `value`, `row`, `key` (how values compare, convert and are stored) and `func`.
//!
//! Nothing that a caller, a file or a log hands in makes this crate panic; every
//! failure is an `Error` with SQLite's code and text.

pub mod ast;
pub mod bind;
pub mod error;
pub mod exec;
pub mod explain;
pub mod func;
pub mod key;
pub mod parse;
pub mod plan;
pub mod row;
pub mod schema;
pub mod session;
mod stack;
pub mod value;

pub use error::{Error, Result};
pub use func::UserFunction;
pub use session::{Engine, InterruptHandle, Prepared, Session, Step};
pub use value::{Value, ValueRef};
