//! The built-in functions by name.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;

use super::{
    AggregateFunction, AggregateKind, Form, GivesJson, ScalarCall, ScalarFunction, UserFunction,
    Volatility, WindowFunction, date, format, general, json, math, text, window,
};
use crate::error::{Error, Result};
use crate::func::json::aggregate::JsonGroup;
use crate::func::user::UserFlags;

/// A function found by name.
#[derive(Debug, Clone, PartialEq)]
pub enum Function {
    /// Of one row.
    Scalar(Arc<ScalarFunction>),
    /// Of a group's rows.
    Aggregate(Arc<AggregateFunction>),
    /// Of the rows around a row.
    Window(&'static WindowFunction),
    /// Of one row, and the program's.
    User(Arc<UserFunction>),
}

impl Function {
    /// What a function of the program promises; None for a built-in one.
    pub fn flags(&self) -> Option<UserFlags> {
        match self {
            Function::User(function) => Some(function.flags),
            Function::Aggregate(function) => Some(function.user.as_ref()?.flags),
            Function::Scalar(_) | Function::Window(_) => None,
        }
    }
}

struct Registry {
    scalars: FxHashMap<&'static str, Arc<ScalarFunction>>,
    aggregates: FxHashMap<Cow<'static, str>, Arc<AggregateFunction>>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let scalars = [
        general::FUNCTIONS,
        text::FUNCTIONS,
        format::FUNCTIONS,
        math::FUNCTIONS,
        date::FUNCTIONS,
        json::FUNCTIONS,
    ];
    Registry {
        scalars: scalars
            .into_iter()
            .flatten()
            .map(|f| (f.name, Arc::new(*f)))
            .collect(),
        aggregates: AGGREGATES
            .iter()
            .map(|f| (f.name.clone(), Arc::new(f.clone())))
            .collect(),
    }
});

const fn aggregate_of(
    name: &'static str,
    kind: AggregateKind,
    min: usize,
    max: usize,
) -> AggregateFunction {
    let fallible = matches!(
        kind,
        AggregateKind::Sum | AggregateKind::GroupConcat | AggregateKind::Json(_)
    );
    AggregateFunction {
        name: Cow::Borrowed(name),
        kind,
        arguments_min: min,
        arguments_max: max,
        fallible,
        user: None,
    }
}

const fn json_group(is_object: bool, is_blob: bool) -> AggregateKind {
    AggregateKind::Json(JsonGroup {
        is_object,
        is_blob,
        is_encoded: false,
    })
}

const AGGREGATES: &[AggregateFunction] = &[
    aggregate_of("count", AggregateKind::Count, 0, 1),
    aggregate_of("sum", AggregateKind::Sum, 1, 1),
    aggregate_of("total", AggregateKind::Total, 1, 1),
    aggregate_of("avg", AggregateKind::Avg, 1, 1),
    aggregate_of("min", AggregateKind::Min, 1, 1),
    aggregate_of("max", AggregateKind::Max, 1, 1),
    aggregate_of("group_concat", AggregateKind::GroupConcat, 1, 2),
    aggregate_of("string_agg", AggregateKind::GroupConcat, 2, 2),
    aggregate_of("json_group_array", json_group(false, false), 1, 1),
    aggregate_of("jsonb_group_array", json_group(false, true), 1, 1),
    aggregate_of("json_group_object", json_group(true, false), 2, 2),
    aggregate_of("jsonb_group_object", json_group(true, true), 2, 2),
];

/// A function that is immutable, eager and cannot fail; the rest is set on top.
pub(super) const fn plain(
    name: &'static str,
    min: usize,
    max: usize,
    call: ScalarCall,
) -> ScalarFunction {
    ScalarFunction {
        name,
        arguments_min: min,
        arguments_max: if max == usize::MAX { None } else { Some(max) },
        volatility: Volatility::Immutable,
        form: Form::Eager,
        fallible: false,
        modifiers_from: None,
        takes_json: false,
        gives_json: GivesJson::Never,
        definition: None,
        call,
    }
}

/// As [`plain`] for one that can raise an error.
pub(super) const fn fallible(
    name: &'static str,
    min: usize,
    max: usize,
    call: ScalarCall,
) -> ScalarFunction {
    ScalarFunction {
        fallible: true,
        ..plain(name, min, max, call)
    }
}

/// The function of this name (in any case) for so many arguments: `min` and
/// `max` of one argument are aggregates.
///
/// # Errors
/// `no such function: f`, `wrong number of arguments to function f()`.
pub fn find(name: &str, arguments: usize) -> Result<Function> {
    let lower = name.to_ascii_lowercase();
    let scalar = REGISTRY.scalars.get(lower.as_str());
    let aggregate = REGISTRY.aggregates.get(lower.as_str());
    if let Some(f) = scalar.filter(|f| f.accepts(arguments)) {
        return Ok(Function::Scalar(f.clone()));
    }
    if let Some(f) = aggregate.filter(|f| (f.arguments_min..=f.arguments_max).contains(&arguments))
    {
        return Ok(Function::Aggregate(f.clone()));
    }
    let over_windows = window::functions().iter().find(|f| f.name == lower);
    if let Some(f) = over_windows
        && (f.arguments_min..=f.arguments_max).contains(&arguments)
    {
        return Ok(Function::Window(f));
    }
    Err(
        if scalar.is_some() || aggregate.is_some() || over_windows.is_some() {
            wrong_number_of_arguments(name)
        } else {
            Error::sql(format!("no such function: {name}"))
        },
    )
}

/// What SQLite says of a function that is for other numbers of arguments.
pub fn wrong_number_of_arguments(name: &str) -> Error {
    Error::sql(format!("wrong number of arguments to function {name}()"))
}

/// The scalar function of this name, whatever its arguments.
pub fn scalar(name: &str) -> Option<Arc<ScalarFunction>> {
    REGISTRY
        .scalars
        .get(name.to_ascii_lowercase().as_str())
        .cloned()
}

/// The aggregate of this name, whatever its arguments.
pub fn aggregate(name: &str) -> Option<Arc<AggregateFunction>> {
    REGISTRY
        .aggregates
        .get(name.to_ascii_lowercase().as_str())
        .cloned()
}

/// A function as `PRAGMA function_list` shows it.
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// `s`: of a row; `w`: of a group or a window.
    pub kind: &'static str,
    /// How many arguments it takes; None: as many as one likes.
    pub arguments: Option<usize>,
    /// Equal arguments give equal results.
    pub deterministic: bool,
}

/// All functions, by name, one for each number of arguments.
pub fn list() -> Vec<Listed> {
    let mut all = Vec::new();
    let mut add = |name, kind, min, max: Option<usize>, deterministic| {
        let counts = max.map_or(0..=0, |max| min..=max);
        all.extend(counts.map(|count| Listed {
            name,
            kind,
            arguments: max.map(|_| count),
            deterministic,
        }));
    };
    for f in REGISTRY.scalars.values() {
        let deterministic = f.may_be_indexed();
        add(f.name, "s", f.arguments_min, f.arguments_max, deterministic);
    }
    for (name, f) in &REGISTRY.aggregates {
        add(name, "w", f.arguments_min, Some(f.arguments_max), true);
    }
    for f in window::functions() {
        add(f.name, "w", f.arguments_min, Some(f.arguments_max), true);
    }
    all.sort_by_key(|f| (f.name, f.arguments));
    all
}

/// Every function's name, for hints.
pub fn names() -> impl Iterator<Item = &'static str> {
    REGISTRY
        .scalars
        .keys()
        .copied()
        .chain(REGISTRY.aggregates.keys().map(AsRef::as_ref))
        .chain(window::functions().iter().map(|f| f.name))
}

/// Whether there is a built-in function of this name for just so many arguments; None: for
/// any number.
pub(super) fn has(name: &str, arguments: Option<usize>) -> bool {
    let scalar = REGISTRY.scalars.get(name);
    let Some(arguments) = arguments else {
        return scalar.is_some_and(|f| f.arguments_max.is_none());
    };
    let is_known = scalar.is_some_and(|f| f.arguments_max.is_some() && f.accepts(arguments));
    is_known || scalar.is_none() && find(name, arguments).is_ok()
}
