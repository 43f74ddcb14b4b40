//! Rust values into parameters.

use std::borrow::Cow;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32,
    NonZeroU64, NonZeroUsize,
};
use std::rc::Rc;
use std::sync::Arc;

use super::{Null, Value, ValueRef};
use crate::blob::zeros;
use crate::{Error, Result, ffi};

/// What a [`ToSql`] conversion hands over: borrowed where it can be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToSqlOutput<'a> {
    /// A value that points into the converted one.
    Borrowed(ValueRef<'a>),
    /// A value made for the purpose.
    Owned(Value),
    /// A blob of so many zeros.
    ZeroBlob(u64),
    /// An argument of the function at hand, by number: what
    /// [`Context::get_arg`](crate::functions::Context::get_arg) makes.
    Arg(usize),
}

impl ToSqlOutput<'_> {
    /// As a value that lives somewhere.
    #[inline]
    pub(crate) fn with_bytes(self) -> Result<Self> {
        match self {
            ToSqlOutput::ZeroBlob(count) => Ok(ToSqlOutput::Owned(Value::Blob(zeros(count)?))),
            other => Ok(other),
        }
    }

    /// The value, wherever it lives; of zeros only once they [do](Self::with_bytes).
    ///
    /// # Errors
    /// An argument of a function that is not at hand.
    #[inline]
    pub(crate) fn as_value_ref(&self) -> Result<ValueRef<'_>> {
        match self {
            ToSqlOutput::Borrowed(value) => Ok(*value),
            ToSqlOutput::Owned(value) => Ok(value.into()),
            ToSqlOutput::Arg(_) => Err(no_call()),
            ToSqlOutput::ZeroBlob(_) => Ok(ValueRef::Blob(&[])),
        }
    }
}

#[cold]
fn no_call() -> Error {
    let message = "an argument of a function is no value outside of its call";
    Error::failure(ffi::SQLITE_MISUSE, message)
}

impl<'a, T: ?Sized> From<&'a T> for ToSqlOutput<'a>
where
    &'a T: Into<ValueRef<'a>>,
{
    #[inline]
    fn from(t: &'a T) -> Self {
        ToSqlOutput::Borrowed(t.into())
    }
}

/// A type that can be bound to a parameter.
///
/// ```
/// use fulgurite::types::{ToSql, ToSqlOutput};
///
/// struct Celsius(f64);
///
/// impl ToSql for Celsius {
///     fn to_sql(&self) -> fulgurite::Result<ToSqlOutput<'_>> {
///         Ok(self.0.into())
///     }
/// }
/// ```
pub trait ToSql {
    /// Converts to what is bound.
    fn to_sql(&self) -> Result<ToSqlOutput<'_>>;
}

impl ToSql for ToSqlOutput<'_> {
    #[inline]
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(match self {
            ToSqlOutput::Borrowed(value) => ToSqlOutput::Borrowed(*value),
            ToSqlOutput::Owned(value) => ToSqlOutput::Borrowed(value.into()),
            ToSqlOutput::Arg(at) => ToSqlOutput::Arg(*at),
            ToSqlOutput::ZeroBlob(count) => ToSqlOutput::ZeroBlob(*count),
        })
    }
}

macro_rules! owned_from {
    ($($t:ty)+) => {$(
        impl From<$t> for ToSqlOutput<'_> {
            #[inline]
            fn from(t: $t) -> Self {
                ToSqlOutput::Owned(t.into())
            }
        }
    )+};
}
owned_from!(String Vec<u8>);

/// Small values that are copied.
macro_rules! copied {
    ($($t:ty)+) => {$(
        owned_from!($t);

        impl ToSql for $t {
            #[inline]
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(*self))
            }
        }
    )+};
}
copied!(Null bool i8 i16 i32 i64 isize u8 u16 u32 f32 f64);

macro_rules! non_zero {
    ($($t:ty)+) => {$(
        impl From<$t> for ToSqlOutput<'_> {
            #[inline]
            fn from(t: $t) -> Self {
                ToSqlOutput::Owned(t.get().into())
            }
        }

        impl ToSql for $t {
            #[inline]
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(*self))
            }
        }
    )+};
}
non_zero!(NonZeroI8 NonZeroI16 NonZeroI32 NonZeroI64 NonZeroIsize NonZeroU8 NonZeroU16 NonZeroU32);

/// Unsigned types whose upper half SQL integers do not have.
macro_rules! fallible {
    ($($t:ty, $get:expr;)+) => {$(
        impl ToSql for $t {
            #[inline]
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                let value = $get(*self);
                match i64::try_from(value) {
                    Ok(i) => Ok(ToSqlOutput::Owned(Value::Integer(i))),
                    Err(e) => Err(Error::ToSqlConversionFailure(Box::new(e))),
                }
            }
        }
    )+};
}
fallible! {
    u64, std::convert::identity;
    usize, std::convert::identity;
    NonZeroU64, NonZeroU64::get;
    NonZeroUsize, NonZeroUsize::get;
}

/// Types that convert as what they point to.
macro_rules! forwarded {
    ($($pointer:ident)+) => {$(
        impl<T: ToSql + ?Sized> ToSql for $pointer<T> {
            #[inline]
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                self.as_ref().to_sql()
            }
        }
    )+};
}
forwarded!(Box Rc Arc);

impl<T: ToSql + ToOwned + ?Sized> ToSql for Cow<'_, T> {
    #[inline]
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        self.as_ref().to_sql()
    }
}

impl<T: ToSql + ?Sized> ToSql for &'_ T {
    #[inline]
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        (*self).to_sql()
    }
}

/// Types whose bytes are borrowed.
macro_rules! borrowed {
    ($([$($generics:tt)*] $t:ty, $borrow:expr;)+) => {$(
        impl<$($generics)*> ToSql for $t {
            #[inline]
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::from($borrow(self))))
            }
        }
    )+};
}
borrowed! {
    [] str, std::convert::identity;
    [] String, String::as_str;
    [] [u8], std::convert::identity;
    [] Vec<u8>, Vec::as_slice;
    [const N: usize] [u8; N], <[u8; N]>::as_slice;
    [] Value, std::convert::identity;
}

impl<T: ToSql> ToSql for Option<T> {
    #[inline]
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            None => Ok(ToSqlOutput::Borrowed(ValueRef::Null)),
            Some(t) => t.to_sql(),
        }
    }
}
