//! A value that owns its bytes.

use super::{Null, Type};

/// A value with its own storage: what a column holds, in a form to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Value {
    /// The kind of the value.
    #[inline]
    #[must_use]
    pub fn data_type(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Integer(_) => Type::Integer,
            Self::Real(_) => Type::Real,
            Self::Text(_) => Type::Text,
            Self::Blob(_) => Type::Blob,
        }
    }
}

impl From<Null> for Value {
    #[inline]
    fn from(_: Null) -> Self {
        Self::Null
    }
}

impl From<isize> for Value {
    #[inline]
    fn from(i: isize) -> Self {
        Self::Integer(i as i64)
    }
}

macro_rules! integer_from {
    ($($t:ty)+) => {$(
        impl From<$t> for Value {
            #[inline]
            fn from(i: $t) -> Self {
                Self::Integer(i64::from(i))
            }
        }
    )+};
}
integer_from!(bool i8 i16 i32 i64 u8 u16 u32);

impl From<f32> for Value {
    #[inline]
    fn from(r: f32) -> Self {
        Self::Real(f64::from(r))
    }
}

impl From<f64> for Value {
    #[inline]
    fn from(r: f64) -> Self {
        Self::Real(r)
    }
}

impl From<String> for Value {
    #[inline]
    fn from(s: String) -> Self {
        Self::Text(s)
    }
}

impl From<Vec<u8>> for Value {
    #[inline]
    fn from(b: Vec<u8>) -> Self {
        Self::Blob(b)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
