//! Sets of parameters: what `execute`, `query` and their kin accept.

use std::ffi::CStr;

use crate::{Error, Result, Statement, ToSql};

mod sealed {
    /// Keeps [`Params`](super::Params) and [`BindIndex`](super::BindIndex) ours.
    pub trait Sealed {}
}
use sealed::Sealed;

/// The number or the name of a parameter.
pub trait BindIndex: Sealed + Copy {
    /// The one-based number of the parameter in `stmt`.
    fn idx(&self, stmt: &Statement<'_>) -> Result<usize>;
}

impl Sealed for usize {}
impl BindIndex for usize {
    #[inline]
    fn idx(&self, _: &Statement<'_>) -> Result<usize> {
        Ok(*self)
    }
}

impl Sealed for &str {}
impl BindIndex for &str {
    #[inline]
    fn idx(&self, stmt: &Statement<'_>) -> Result<usize> {
        stmt.parameter_index(self)?
            .ok_or_else(|| Error::InvalidParameterName((*self).to_owned()))
    }
}

impl Sealed for &CStr {}
impl BindIndex for &CStr {
    fn idx(&self, stmt: &Statement<'_>) -> Result<usize> {
        self.to_string_lossy().as_ref().idx(stmt)
    }
}

/// A set of parameters. Accepted are
///
/// - positional: `[1, 2]`, `(1, "two")`, `&[&a as &dyn ToSql]`, [`params!`](crate::params!),
///   [`params_from_iter`];
/// - named: `&[(":a", "one")]`, [`named_params!`](crate::named_params!);
/// - none: `[]` or `()`.
pub trait Params: Sealed {
    /// Binds the parameters; the way into the other calls, not to be used alone.
    #[doc(hidden)]
    fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()>;
}

// The only implementation for an empty array, so that `execute(sql, [])` is not
// ambiguous; it is also why arrays have one each for the lengths 1 to 32 below.
impl Sealed for [&(dyn ToSql + Send + Sync); 0] {}
impl Params for [&(dyn ToSql + Send + Sync); 0] {
    #[inline]
    fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
        stmt.ensure_parameter_count(0)
    }
}

impl Sealed for &[&dyn ToSql] {}
impl Params for &[&dyn ToSql] {
    #[inline]
    fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
        stmt.bind_parameters(self)
    }
}

impl<S: BindIndex, T: ToSql> Sealed for &[(S, T)] {}
impl<S: BindIndex, T: ToSql> Params for &[(S, T)] {
    #[inline]
    fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
        stmt.bind_parameters_named(self)
    }
}

impl Sealed for () {}
impl Params for () {
    #[inline]
    fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
        stmt.ensure_parameter_count(0)
    }
}

macro_rules! tuples {
    ($($count:literal: ($($field:tt $t:ident),+);)+) => {$(
        impl<$($t: ToSql,)+> Sealed for ($($t,)+) {}
        impl<$($t: ToSql,)+> Params for ($($t,)+) {
            #[inline]
            fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
                stmt.ensure_parameter_count($count)?;
                $(stmt.bind_parameter(&self.$field, $field + 1)?;)+
                Ok(())
            }
        }
    )+};
}
tuples! {
    1: (0 A);
    2: (0 A, 1 B);
    3: (0 A, 1 B, 2 C);
    4: (0 A, 1 B, 2 C, 3 D);
    5: (0 A, 1 B, 2 C, 3 D, 4 E);
    6: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F);
    7: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G);
    8: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H);
    9: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I);
    10: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J);
    11: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K);
    12: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L);
    13: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L, 12 M);
    14: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L, 12 M, 13 N);
    15: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L, 12 M, 13 N, 14 O);
    16: (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L, 12 M, 13 N, 14 O, 15 P);
}

macro_rules! arrays {
    ($($n:literal)+) => {$(
        impl<T: ToSql + ?Sized> Sealed for &[&T; $n] {}
        impl<T: ToSql + ?Sized> Params for &[&T; $n] {
            fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
                stmt.bind_parameters(self)
            }
        }

        impl<S: BindIndex, T: ToSql + ?Sized> Sealed for &[(S, &T); $n] {}
        impl<S: BindIndex, T: ToSql + ?Sized> Params for &[(S, &T); $n] {
            fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
                stmt.bind_parameters_named(self)
            }
        }

        impl<T: ToSql> Sealed for [T; $n] {}
        impl<T: ToSql> Params for [T; $n] {
            #[inline]
            fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
                stmt.bind_parameters(&self)
            }
        }
    )+};
}
arrays! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
    17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
}

/// The parameters that an iterator gives; made by [`params_from_iter`].
#[derive(Clone, Debug)]
pub struct ParamsFromIter<I>(I);

/// Positional parameters from anything that can be iterated over.
///
/// ```
/// # fn main() -> fulgurite::Result<()> {
/// use fulgurite::{Connection, params_from_iter};
///
/// let db = Connection::open_in_memory()?;
/// let wanted = vec![3, 1];
/// let sum: i64 = db.query_row("SELECT ? + ?", params_from_iter(&wanted), |row| row.get(0))?;
/// assert_eq!(sum, 4);
/// # Ok(()) }
/// ```
#[inline]
pub fn params_from_iter<I>(iter: I) -> ParamsFromIter<I>
where
    I: IntoIterator,
    I::Item: ToSql,
{
    ParamsFromIter(iter)
}

impl<I> Sealed for ParamsFromIter<I>
where
    I: IntoIterator,
    I::Item: ToSql,
{
}

impl<I> Params for ParamsFromIter<I>
where
    I: IntoIterator,
    I::Item: ToSql,
{
    #[inline]
    fn __bind_in(self, stmt: &mut Statement<'_>) -> Result<()> {
        stmt.bind_parameters(self.0)
    }
}
