//! What moves between Rust and SQL: the values, and the conversions of Rust
//! types into parameters ([`ToSql`]) and out of columns ([`FromSql`]).

mod from_sql;
#[cfg(feature = "serde_json")]
mod json;
mod to_sql;
mod utf8;
mod value;
mod value_ref;

use std::fmt;

pub use from_sql::{FromSql, FromSqlError, FromSqlResult};
pub use to_sql::{ToSql, ToSqlOutput};
pub use value::Value;
pub use value_ref::ValueRef;

/// SQL NULL as a parameter: `stmt.execute((1, Null))`.
#[derive(Copy, Clone)]
pub struct Null;

/// The five kinds of values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// NULL
    Null,
    /// 64-bit signed integer
    Integer,
    /// 64-bit floating-point number
    Real,
    /// text
    Text,
    /// bytes
    Blob,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Null => "Null",
            Self::Integer => "Integer",
            Self::Real => "Real",
            Self::Text => "Text",
            Self::Blob => "Blob",
        })
    }
}
