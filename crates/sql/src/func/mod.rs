//! SQL functions: what they are called, what the binder may assume of them, and
//! how they are computed.
//!
//! A [`ScalarFunction`] takes borrowed values and gives one back; an evaluator
//! over vectors calls it row by row. An [`AggregateFunction`] makes
//! [`Accumulator`]s, which step over single rows or whole vectors. Both are
//! found by name and number of arguments with [`find`].
//!
//! Functions whose arguments are evaluated lazily (`coalesce`, `iif`) say so in
//! [`ScalarFunction::form`]; calling them with all arguments evaluated gives the
//! same answer wherever evaluation cannot fail.

mod aggregate;
mod context;
mod date;
mod format;
mod general;
mod math;
mod registry;
mod sum;
mod text;

use std::fmt;

pub use aggregate::{Accumulator, AggregateFunction, AggregateKind};
pub use context::Context;
pub use registry::{Function, aggregate, find, names, scalar};
pub use text::{glob_value, like_value};

use crate::error::Result;
use crate::value::{Value, ValueRef};

/// SQLite's version whose dialect this is; what `sqlite_version()` answers.
pub const SQLITE_VERSION: &str = "3.54.1";

/// The code of a scalar function.
pub type ScalarCall = fn(&mut Context, &[ValueRef<'_>]) -> Result<Value>;

/// When two calls with equal arguments give equal results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Volatility {
    /// Always: may be folded and indexed.
    Immutable,
    /// Within one statement (`date('now')`, `changes()`).
    Stable,
    /// Never: called once a row, in row order.
    Volatile,
}

/// Which arguments are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// All of them.
    Eager,
    /// Left to right up to the first that is not NULL, which is the result.
    Coalesce,
    /// Pairs of condition and result up to the first true condition; an odd
    /// last argument is the ELSE.
    If,
    /// The first is the result (`likely`, `unlikely`, `likelihood`).
    First,
}

/// A function of one row's values.
#[derive(Clone, Copy)]
pub struct ScalarFunction {
    /// Its name in lower case.
    pub name: &'static str,
    /// Fewest arguments.
    pub arguments_min: usize,
    /// Most arguments; None: as many as one likes.
    pub arguments_max: Option<usize>,
    /// What repeated calls give.
    pub volatility: Volatility,
    /// Which arguments are evaluated.
    pub form: Form,
    /// May raise an error.
    pub fallible: bool,
    call: ScalarCall,
}

impl ScalarFunction {
    /// Computes the function. The number of arguments is the binder's to check;
    /// missing ones count as NULL.
    ///
    /// # Errors
    /// Those of SQLite's function of the same name.
    #[inline]
    pub fn call(&self, context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
        (self.call)(context, arguments)
    }

    /// Equal arguments give equal results within one statement.
    pub fn is_deterministic(&self) -> bool {
        self.volatility != Volatility::Volatile
    }

    fn accepts(&self, arguments: usize) -> bool {
        arguments >= self.arguments_min && self.arguments_max.is_none_or(|max| arguments <= max)
    }
}

impl PartialEq for ScalarFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments_min == other.arguments_min
    }
}

impl fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}()", self.name)
    }
}

/// Argument `i`, NULL where it is missing.
#[inline]
fn argument<'a>(arguments: &[ValueRef<'a>], i: usize) -> ValueRef<'a> {
    arguments.get(i).copied().unwrap_or(ValueRef::Null)
}
