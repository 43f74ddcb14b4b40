//! A value that somebody else owns: a column of the current row, a parameter.

use fulgurite_sql::value as sql;

use super::{FromSqlError, FromSqlResult, Type, Value, utf8};

/// A borrowed value. Text is bytes that are meant to be UTF-8 but need not be,
/// as in SQLite.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// NULL
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit floating-point number.
    Real(f64),
    /// Text.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl<'a> ValueRef<'a> {
    /// The kind of the value.
    #[inline]
    #[must_use]
    pub fn data_type(&self) -> Type {
        match self {
            ValueRef::Null => Type::Null,
            ValueRef::Integer(_) => Type::Integer,
            ValueRef::Real(_) => Type::Real,
            ValueRef::Text(_) => Type::Text,
            ValueRef::Blob(_) => Type::Blob,
        }
    }

    #[inline]
    pub(crate) fn from_engine(value: sql::ValueRef<'a>) -> Self {
        match value {
            sql::ValueRef::Null => ValueRef::Null,
            sql::ValueRef::Integer(i) => ValueRef::Integer(i),
            sql::ValueRef::Real(r) => ValueRef::Real(r),
            sql::ValueRef::Text(t) => ValueRef::Text(t),
            sql::ValueRef::Blob(b) => ValueRef::Blob(b),
        }
    }

    #[inline]
    pub(crate) fn to_engine(self) -> sql::ValueRef<'a> {
        match self {
            ValueRef::Null => sql::ValueRef::Null,
            ValueRef::Integer(i) => sql::ValueRef::Integer(i),
            // SQL has no NaN: it is stored as NULL, as in SQLite.
            ValueRef::Real(r) if r.is_nan() => sql::ValueRef::Null,
            ValueRef::Real(r) => sql::ValueRef::Real(r),
            ValueRef::Text(t) => sql::ValueRef::Text(t),
            ValueRef::Blob(b) => sql::ValueRef::Blob(b),
        }
    }

    /// The value's text as `CAST(… AS TEXT)` gives it: reals as SQLite prints
    /// them, blobs as the bytes they are, NULL as nothing.
    #[must_use]
    pub fn to_sql_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.to_engine().append_text(&mut out);
        out
    }

    /// The value as an SQL literal that gives it back: `'it''s'`, `X'00ff'`,
    /// `NULL`.
    #[must_use]
    pub fn to_sql_literal(&self) -> String {
        let mut out = Vec::new();
        sql::quote(self.to_engine(), &mut out);
        String::from_utf8(out)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }
}

/// Generates `as_x` and its NULL-accepting twin.
macro_rules! accessors {
    ($($name:ident, $or_null:ident -> $out:ty, $what:literal { $($pattern:pat => $value:expr),+ })+) => {
        impl<'a> ValueRef<'a> {$(
            #[doc = concat!("The ", $what, ", or [`FromSqlError::InvalidType`] for anything else.")]
            #[inline]
            pub fn $name(&self) -> FromSqlResult<$out> {
                match *self {
                    $($pattern => $value,)+
                    _ => Err(FromSqlError::InvalidType),
                }
            }

            #[doc = concat!("The ", $what, ", None for NULL, or [`FromSqlError::InvalidType`] for anything else.")]
            #[inline]
            pub fn $or_null(&self) -> FromSqlResult<Option<$out>> {
                match *self {
                    ValueRef::Null => Ok(None),
                    _ => self.$name().map(Some),
                }
            }
        )+}
    };
}

accessors! {
    as_i64, as_i64_or_null -> i64, "integer" { ValueRef::Integer(i) => Ok(i) }
    as_f64, as_f64_or_null -> f64, "real" { ValueRef::Real(r) => Ok(r) }
    as_str, as_str_or_null -> &'a str, "text, checked to be UTF-8" { ValueRef::Text(t) => Ok(utf8::text(t)?) }
    as_blob, as_blob_or_null -> &'a [u8], "blob" { ValueRef::Blob(b) => Ok(b) }
    as_bytes, as_bytes_or_null -> &'a [u8], "bytes of a text or blob" {
        ValueRef::Text(b) => Ok(b),
        ValueRef::Blob(b) => Ok(b)
    }
}

impl TryFrom<ValueRef<'_>> for Value {
    type Error = FromSqlError;

    #[inline]
    fn try_from(borrowed: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match borrowed {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(i) => Self::Integer(i),
            ValueRef::Real(r) => Self::Real(r),
            ValueRef::Text(t) => Self::Text(utf8::text(t)?.to_owned()),
            ValueRef::Blob(b) => Self::Blob(b.to_vec()),
        })
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    #[inline]
    fn from(s: &'a str) -> Self {
        ValueRef::Text(s.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for ValueRef<'a> {
    #[inline]
    fn from(b: &'a [u8]) -> Self {
        ValueRef::Blob(b)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    #[inline]
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => ValueRef::Null,
            Value::Integer(i) => ValueRef::Integer(*i),
            Value::Real(r) => ValueRef::Real(*r),
            Value::Text(s) => ValueRef::Text(s.as_bytes()),
            Value::Blob(b) => ValueRef::Blob(b),
        }
    }
}

impl<T: Into<Self>> From<Option<T>> for ValueRef<'_> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(ValueRef::Null, Into::into)
    }
}
