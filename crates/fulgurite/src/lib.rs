//! Fulgurite: an embedded SQL database that speaks SQLite's dialect.
//!
//! Names and shapes follow the `rusqlite` crate, version 0.41: for the calls
//! that exist here, moving over is changing an import.
//!
//! ```
//! # fn main() -> fulgurite::Result<()> {
//! use fulgurite::Connection;
//!
//! let db = Connection::open_in_memory()?;
//! db.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT)", [])?;
//! db.execute("INSERT INTO person (name, mail) VALUES (?1, ?2)", ("Ada", "ada@example.org"))?;
//!
//! let mut stmt = db.prepare("SELECT id, name FROM person WHERE name = :name")?;
//! let people = stmt.query_map(&[(":name", "Ada")], |row| Ok((row.get(0)?, row.get("name")?)))?;
//! for person in people {
//!     let (id, name): (i64, String) = person?;
//!     assert_eq!((id, name.as_str()), (1, "Ada"));
//! }
//! # Ok(()) }
//! ```
//!
//! What this crate adds to that interface: [`Database`], which is opened once
//! and gives connections; [`Error::hint`], [`Error::offset`] and
//! [`Error::result_code`]; conversions of `u64` and `usize`, which fail where
//! SQL's integers end.
//!
//! A failed statement leaves nothing behind, a failed open leaves the file as
//! it was, and nothing a file or a caller hands in makes this crate panic,
//! except the calls that say so in their names (`get_unwrap`) and
//! [`DropBehavior::Panic`].

#![deny(unsafe_code)]

pub mod backup;
pub mod blob;
mod busy;
mod cache;
mod collation;
mod column;
mod connection;
mod database;
mod details;
mod error;
pub mod ffi;
pub mod functions;
pub mod hooks;
mod open;
mod params;
mod pragma;
mod recent;
mod retry;
mod row;
mod statement;
mod transaction;
pub mod types;

use std::ffi::CStr;

pub use fallible_iterator;
pub use fallible_streaming_iterator;
pub use fulgurite_store::{Compression, Durability, InDoubt, Options, Stats};

pub use cache::CachedStatement;
pub use column::Column;
pub use connection::{Batch, Connection, InterruptHandle, Name};
pub use database::Database;
pub use details::{ColumnMetadata, PrepFlags, TransactionState, version, version_number};
pub use error::{Error, Result};
pub use ffi::ErrorCode;
pub use open::OpenFlags;
pub use params::{BindIndex, Params, ParamsFromIter, params_from_iter};
pub use row::{AndThenRows, Map, MappedRows, Row, RowIndex, Rows};
pub use statement::Statement;
pub use transaction::{DropBehavior, Savepoint, Transaction, TransactionBehavior};
pub use types::ToSql;
use types::ValueRef;

/// Name of the database a connection was opened on.
pub const MAIN_DB: &CStr = c"main";
/// Name of the database of temporary tables.
pub const TEMP_DB: &CStr = c"temp";
/// For calls that take a database name: the default one.
pub const DEFAULT_NAME: Option<&'static str> = None;

/// Positional parameters of mixed types: `params![1, "two", None::<i32>]`.
#[macro_export]
macro_rules! params {
    () => {
        &[] as &[&dyn $crate::ToSql]
    };
    ($($param:expr),+ $(,)?) => {
        &[$(&$param as &dyn $crate::ToSql),+] as &[&dyn $crate::ToSql]
    };
}

/// Named parameters of mixed types: `named_params! { ":id": 1, ":name": "two" }`.
#[macro_export]
macro_rules! named_params {
    () => {
        &[] as &[(&str, &dyn $crate::ToSql)]
    };
    ($($name:literal: $value:expr),+ $(,)?) => {
        &[$(($name, &$value as &dyn $crate::ToSql)),+] as &[(&str, &dyn $crate::ToSql)]
    };
}

/// Turns "no rows" into None.
///
/// ```
/// # fn main() -> fulgurite::Result<()> {
/// use fulgurite::OptionalExtension;
/// # let db = fulgurite::Connection::open_in_memory()?;
/// let found: Option<i64> = db.query_row("SELECT 1 WHERE 0", [], |row| row.get(0)).optional()?;
/// assert_eq!(found, None);
/// # Ok(()) }
/// ```
pub trait OptionalExtension<T> {
    /// `Ok(None)` for [`Error::QueryReturnedNoRows`], other errors as they are.
    ///
    /// # Errors
    /// All others.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::QueryReturnedNoRows) => Ok(None),
            Err(e) => Err(e),
        }
    }
}
