//! SQL values: what a column, a parameter or an expression holds, and
//! SQLite's rules for turning one kind into another, comparing and computing.
//!
//! [`ValueRef`] borrows and is copied around; [`Value`] owns. Text is bytes
//! that are meant to be UTF-8 but need not be, as in SQLite. A `Real` is never
//! NaN: [`ValueRef::real`] and every function here turn NaN into NULL.
//!
//! Nothing in this module can fail on any value, except where SQLite itself
//! raises an error.

mod affinity;
mod arith;
mod cast;
pub mod collate;
mod compare;
mod decimal;
mod number;
mod pattern;
mod segments;
mod text;
pub mod utf8;

use std::borrow::Cow;

pub use affinity::{Affinity, Applied};
pub use arith::{
    add, bit_and, bit_not, bit_or, concat, divide, multiply, negate, remainder, shift_left,
    shift_right, subtract,
};
pub use cast::cast;
pub(crate) use compare::trim_spaces;
pub use compare::{Collation, compare, compare_integer_real, hash, not_distinct};
pub use decimal::{Decimal, decimal_to_real};
pub use number::{
    IntegerState, Numeric, integer_prefix, numeric_prefix, numeric_whole, real_prefix,
    real_to_integer,
};
pub use pattern::{PATTERN_LENGTH_MAX, glob, like, like_exact};
pub use segments::Segments;
pub(crate) use text::append_hex;
pub use text::{quote, render_integer, render_real, render_real_digits};

/// Longest text or blob in bytes (SQLite's default limit).
pub const LENGTH_MAX: usize = 1_000_000_000;

/// A value that somebody else owns: a row, a parameter, a literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// A double; never NaN.
    Real(f64),
    /// Text, UTF-8 by intention.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// A double; never NaN.
    Real(f64),
    /// Text, UTF-8 by intention.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

/// The five storage classes, in the order in which SQLite sorts them
/// (integers and reals sort together).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// NULL
    Null,
    /// INTEGER
    Integer,
    /// REAL
    Real,
    /// TEXT
    Text,
    /// BLOB
    Blob,
}

impl Type {
    /// What `typeof()` answers.
    pub fn name(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Integer => "integer",
            Type::Real => "real",
            Type::Text => "text",
            Type::Blob => "blob",
        }
    }
}

impl<'a> ValueRef<'a> {
    /// A real, or NULL for NaN.
    #[inline]
    pub fn real(r: f64) -> Self {
        if r.is_nan() {
            ValueRef::Null
        } else {
            ValueRef::Real(r)
        }
    }

    /// The storage class.
    #[inline]
    pub fn kind(self) -> Type {
        match self {
            ValueRef::Null => Type::Null,
            ValueRef::Integer(_) => Type::Integer,
            ValueRef::Real(_) => Type::Real,
            ValueRef::Text(_) => Type::Text,
            ValueRef::Blob(_) => Type::Blob,
        }
    }

    /// Is it NULL?
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The bytes of a text or blob.
    #[inline]
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            ValueRef::Text(b) | ValueRef::Blob(b) => Some(b),
            _ => None,
        }
    }

    /// A copy that owns its bytes.
    #[inline]
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(i) => Value::Integer(i),
            ValueRef::Real(r) => Value::Real(r),
            ValueRef::Text(b) => Value::Text(b.to_vec()),
            ValueRef::Blob(b) => Value::Blob(b.to_vec()),
        }
    }

    /// The value as a condition: None for NULL; text and blobs by their
    /// numeric prefix.
    #[inline]
    pub fn truth(self) -> Option<bool> {
        match self {
            ValueRef::Null => None,
            ValueRef::Integer(i) => Some(i != 0),
            ValueRef::Real(r) => Some(r != 0.0),
            ValueRef::Text(b) | ValueRef::Blob(b) => Some(real_prefix(b) != 0.0),
        }
    }

    /// The value forced to an integer as SQLite does for integer operands and
    /// arguments: reals are truncated and clamped, text and blobs give their
    /// integer prefix, NULL gives 0.
    #[inline]
    pub fn to_integer(self) -> i64 {
        match self {
            ValueRef::Null => 0,
            ValueRef::Integer(i) => i,
            ValueRef::Real(r) => real_to_integer(r),
            ValueRef::Text(b) | ValueRef::Blob(b) => integer_prefix(b).value,
        }
    }

    /// The value forced to a real; NULL gives 0.0.
    #[inline]
    pub fn to_real(self) -> f64 {
        match self {
            ValueRef::Null => 0.0,
            ValueRef::Integer(i) => i as f64,
            ValueRef::Real(r) => r,
            ValueRef::Text(b) | ValueRef::Blob(b) => real_prefix(b),
        }
    }

    /// The value's text; None for NULL. A blob's bytes are taken as they are.
    pub fn to_text(self) -> Option<Cow<'a, [u8]>> {
        match self {
            ValueRef::Null => None,
            ValueRef::Text(b) | ValueRef::Blob(b) => Some(Cow::Borrowed(b)),
            ValueRef::Integer(_) | ValueRef::Real(_) => {
                let mut out = Vec::with_capacity(24);
                self.append_text(&mut out);
                Some(Cow::Owned(out))
            }
        }
    }

    /// Appends the value's text; nothing for NULL.
    #[inline]
    pub fn append_text(self, out: &mut Vec<u8>) {
        match self {
            ValueRef::Null => {}
            ValueRef::Integer(i) => render_integer(i, out),
            ValueRef::Real(r) => render_real(r, out),
            ValueRef::Text(b) | ValueRef::Blob(b) => out.extend_from_slice(b),
        }
    }
}

impl Value {
    /// A real, or NULL for NaN.
    #[inline]
    pub fn real(r: f64) -> Self {
        if r.is_nan() {
            Value::Null
        } else {
            Value::Real(r)
        }
    }

    /// A text from anything that is one.
    pub fn text(s: impl Into<String>) -> Self {
        Value::Text(s.into().into_bytes())
    }

    /// Borrows the value.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Integer(i) => ValueRef::Integer(*i),
            Value::Real(r) => ValueRef::Real(*r),
            Value::Text(b) => ValueRef::Text(b),
            Value::Blob(b) => ValueRef::Blob(b),
        }
    }

    /// Becomes a copy of `value`, reusing the buffer it has.
    #[inline]
    pub fn assign(&mut self, value: ValueRef<'_>) {
        match (&mut *self, value) {
            (Value::Integer(slot), ValueRef::Integer(i)) => *slot = i,
            (Value::Text(buffer), ValueRef::Text(b)) | (Value::Blob(buffer), ValueRef::Blob(b)) => {
                buffer.clear();
                buffer.extend_from_slice(b);
            }
            (_, value) => self.become_kind(value),
        }
    }

    /// Becomes a copy of a value that may be of another kind.
    fn become_kind(&mut self, value: ValueRef<'_>) {
        let mut buffer = match std::mem::take(self) {
            Value::Text(b) | Value::Blob(b) => b,
            _ => Vec::new(),
        };
        *self = match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(i) => Value::Integer(i),
            ValueRef::Real(r) => Value::Real(r),
            ValueRef::Text(b) => {
                buffer.clear();
                buffer.extend_from_slice(b);
                Value::Text(buffer)
            }
            ValueRef::Blob(b) => {
                buffer.clear();
                buffer.extend_from_slice(b);
                Value::Blob(buffer)
            }
        };
    }

    /// Bytes held beyond the value itself.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Text(b) | Value::Blob(b) => b.capacity(),
            _ => 0,
        }
    }

    /// The storage class.
    #[inline]
    pub fn kind(&self) -> Type {
        self.as_ref().kind()
    }

    /// Is it NULL?
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    #[inline]
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

impl From<ValueRef<'_>> for Value {
    #[inline]
    fn from(value: ValueRef<'_>) -> Self {
        value.to_value()
    }
}

impl From<i64> for Value {
    fn from(i: i64) -> Self {
        Value::Integer(i)
    }
}

impl From<f64> for Value {
    fn from(r: f64) -> Self {
        Value::real(r)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Integer(i64::from(b))
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Value::Text(s.as_bytes().to_vec())
    }
}

impl From<Option<bool>> for Value {
    fn from(b: Option<bool>) -> Self {
        b.map_or(Value::Null, Value::from)
    }
}
