//! Columns into Rust values.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32,
    NonZeroU64, NonZeroUsize,
};
use std::rc::Rc;
use std::str::Utf8Error;
use std::sync::Arc;

use super::{Value, ValueRef};

/// Why a column's value is not of the type asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum FromSqlError {
    /// The value is of another kind.
    InvalidType,
    /// The integer does not fit the type asked for.
    OutOfRange(i64),
    /// The text is not UTF-8.
    Utf8Error(Utf8Error),
    /// The blob has another length than the array.
    InvalidBlobSize {
        /// Length of the type asked for.
        expected_size: usize,
        /// Length of the blob.
        blob_size: usize,
    },
    /// A conversion of the program's own failed.
    Other(Box<dyn Error + Send + Sync + 'static>),
}

impl FromSqlError {
    /// Wraps any error as [`FromSqlError::Other`].
    pub fn other<E: Error + Send + Sync + 'static>(error: E) -> Self {
        Self::Other(Box::new(error))
    }
}

impl PartialEq for FromSqlError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InvalidType, Self::InvalidType) => true,
            (Self::OutOfRange(a), Self::OutOfRange(b)) => a == b,
            (Self::Utf8Error(a), Self::Utf8Error(b)) => a == b,
            (
                Self::InvalidBlobSize {
                    expected_size: e1,
                    blob_size: b1,
                },
                Self::InvalidBlobSize {
                    expected_size: e2,
                    blob_size: b2,
                },
            ) => (e1, b1) == (e2, b2),
            _ => false,
        }
    }
}

impl fmt::Display for FromSqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidType => f.write_str("Invalid type"),
            Self::OutOfRange(i) => write!(f, "Value {i} out of range"),
            Self::Utf8Error(e) => e.fmt(f),
            Self::InvalidBlobSize {
                expected_size,
                blob_size,
            } => {
                write!(
                    f,
                    "Cannot read {expected_size} byte value out of {blob_size} byte blob"
                )
            }
            Self::Other(e) => e.fmt(f),
        }
    }
}

impl Error for FromSqlError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Utf8Error(e) => Some(e),
            Self::Other(e) => Some(&**e),
            _ => None,
        }
    }
}

impl From<Utf8Error> for FromSqlError {
    #[cold]
    fn from(e: Utf8Error) -> Self {
        Self::Utf8Error(e)
    }
}

/// Result of a conversion out of a column.
pub type FromSqlResult<T> = Result<T, FromSqlError>;

/// A type that can be made from a column's value.
///
/// ```
/// use fulgurite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
///
/// enum Size { Small, Large }
///
/// impl FromSql for Size {
///     fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
///         match value.as_str()? {
///             "small" => Ok(Size::Small),
///             "large" => Ok(Size::Large),
///             other => Err(FromSqlError::Other(format!("no size {other:?}").into())),
///         }
///     }
/// }
/// ```
pub trait FromSql: Sized {
    /// Converts the value.
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self>;
}

macro_rules! integers {
    ($($t:ty)+) => {$(
        impl FromSql for $t {
            #[inline]
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let i = value.as_i64()?;
                <$t>::try_from(i).map_err(|_| FromSqlError::OutOfRange(i))
            }
        }
    )+};
}
integers!(i8 i16 i32 isize u8 u16 u32 u64 usize);

macro_rules! non_zero {
    ($($t:ty, $inner:ty;)+) => {$(
        impl FromSql for $t {
            #[inline]
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let i = <$inner>::column_result(value)?;
                <$t>::new(i).ok_or(FromSqlError::OutOfRange(0))
            }
        }
    )+};
}
non_zero! {
    NonZeroI8, i8;
    NonZeroI16, i16;
    NonZeroI32, i32;
    NonZeroI64, i64;
    NonZeroIsize, isize;
    NonZeroU8, u8;
    NonZeroU16, u16;
    NonZeroU32, u32;
    NonZeroU64, u64;
    NonZeroUsize, usize;
}

impl FromSql for i64 {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64()
    }
}

impl FromSql for f32 {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(i) => Ok(i as Self),
            ValueRef::Real(r) => Ok(r as Self),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

impl FromSql for f64 {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(i) => Ok(i as Self),
            ValueRef::Real(r) => Ok(r),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

impl FromSql for bool {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|i| i != 0)
    }
}

impl FromSql for String {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl FromSql for Vec<u8> {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_blob().map(<[u8]>::to_vec)
    }
}

macro_rules! shared {
    ($($pointer:ident)+) => {$(
        impl FromSql for $pointer<str> {
            #[inline]
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str().map(Into::into)
            }
        }

        impl FromSql for $pointer<[u8]> {
            #[inline]
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_blob().map(Into::into)
            }
        }
    )+};
}
shared!(Box Rc Arc);

impl<const N: usize> FromSql for [u8; N] {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let blob = value.as_blob()?;
        blob.try_into().map_err(|_| FromSqlError::InvalidBlobSize {
            expected_size: N,
            blob_size: blob.len(),
        })
    }
}

impl<T: FromSql> FromSql for Option<T> {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(None),
            _ => T::column_result(value).map(Some),
        }
    }
}

impl<T: ?Sized + ToOwned> FromSql for Cow<'_, T>
where
    T::Owned: FromSql,
{
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::Owned::column_result(value).map(Cow::Owned)
    }
}

impl FromSql for Value {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.try_into()
    }
}
