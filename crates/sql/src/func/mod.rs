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
pub mod hooks;
pub mod json;
mod math;
mod raise;
mod registry;
mod sum;
pub mod table;
mod text;
pub mod user;
mod window;

use std::fmt;
use std::sync::Arc;

pub use aggregate::{Accumulator, AggregateFunction, AggregateKind};
pub use context::Context;
pub use raise::raise;
pub use registry::{
    Function, Listed, aggregate, find, list, names, scalar, wrong_number_of_arguments,
};
pub use text::{glob_value, like_value};
pub use user::UserFunction;
pub use window::{WindowFunction, WindowKind};

use crate::error::{Error, Result};
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
    /// Always, unless the arguments ask for the clock or the time zone (`date('now')`):
    /// then within one statement, and never for what a definition keeps.
    Clock,
    /// Within one statement (`changes()`).
    Stable,
    /// Never: called once a row, in row order.
    Volatile,
}

/// What an expression of the schema is evaluated for, when rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// A CHECK constraint.
    Check,
    /// The keys and the WHERE of an index.
    Index,
    /// A generated column.
    Generated,
}

/// Which arguments are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// All of them.
    Eager,
    /// Both; the first is the result where it differs from the second.
    NullIf,
    /// Left to right up to the first that is not NULL, which is the result.
    Coalesce,
    /// Pairs of condition and result up to the first true condition; an odd
    /// last argument is the ELSE.
    If,
    /// The first is the result (`likely`, `unlikely`, `likelihood`).
    First,
}

/// Whether a value may be a text of JSON to the functions that ask: SQLite's subtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JsonText {
    /// It is a text like any other.
    #[default]
    Never,
    /// The call that makes it tells.
    Maybe,
    /// If it is a text.
    Always,
}

/// Whether a function's result is a text of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GivesJson {
    /// No.
    Never,
    /// [`Context`] tells, after the call.
    Maybe,
    /// Always.
    Always,
    /// It is one of the arguments, and what that is.
    Passes,
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
    /// Where those of its arguments begin that modify a time, if nothing but these can make
    /// it raise one.
    modifiers_from: Option<usize>,
    /// Asks which arguments are texts of JSON.
    pub takes_json: bool,
    /// Whether its result is one.
    pub gives_json: GivesJson,
    /// Where the call stands, if the result must not hang on the clock there.
    definition: Option<Definition>,
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
        match self.definition {
            None => (self.call)(context, arguments),
            Some(definition) => self.call_within(definition, context, arguments),
        }
    }

    fn call_within(
        &self,
        definition: Definition,
        context: &mut Context,
        arguments: &[ValueRef<'_>],
    ) -> Result<Value> {
        context.clock_asked = false;
        let value = (self.call)(context, arguments)?;
        if context.clock_asked {
            let place = match definition {
                Definition::Check => "a CHECK constraint",
                Definition::Index => "an index",
                Definition::Generated => "a generated column",
            };
            let message = format!("non-deterministic use of {}() in {place}", self.name);
            return Err(Error::sql(message));
        }
        Ok(value)
    }

    /// Whether it may raise an error with these arguments, of which the literals are known.
    pub fn is_fallible<'a>(&self, arguments: impl Iterator<Item = Option<ValueRef<'a>>>) -> bool {
        match self.modifiers_from {
            Some(from) if self.definition.is_none() => {
                let mut modifiers = arguments.skip(from);
                modifiers.any(|it| it.is_none_or(date::asks_for_zone))
            }
            _ => self.fallible,
        }
    }

    /// Equal arguments give equal results within one statement.
    pub fn is_deterministic(&self) -> bool {
        self.volatility != Volatility::Volatile
    }

    /// Equal arguments give equal results always, or an error where a definition calls it.
    pub fn may_be_indexed(&self) -> bool {
        matches!(self.volatility, Volatility::Immutable | Volatility::Clock)
    }

    /// The function as a definition calls it.
    pub(crate) fn within(self: &Arc<Self>, definition: Definition) -> Arc<Self> {
        if self.volatility != Volatility::Clock {
            return self.clone();
        }
        Arc::new(ScalarFunction {
            definition: Some(definition),
            ..**self
        })
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
