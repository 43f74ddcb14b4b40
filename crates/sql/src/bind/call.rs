//! Binding of function calls.

use std::sync::Arc;

use super::Binder;
use super::expr::{CaseArm, Expr, ExprKind, LikeKind, Props};
use crate::ast::{self, FunctionCall};
use crate::error::{Error, Result};
use crate::func::user::{CallSite, UserFlags};
use crate::func::{self, Definition, Function, GivesJson, JsonText, ScalarFunction, UserFunction};
use crate::schema::ConflictAction;

impl Binder<'_> {
    pub(super) fn call(&mut self, call: &FunctionCall) -> Result<Expr> {
        let name = call.name.text.as_str();
        let offset = call.name.offset;
        if let Some(over) = &call.over {
            return self.window_call(call, over);
        }
        let count = call.args.as_ref().map_or(0, Vec::len);
        let function = self.function(name, count);
        if let Ok(Function::Aggregate(_)) = &function
            && (call.args.is_some() || name.eq_ignore_ascii_case("count"))
        {
            return self.aggregate(call);
        }
        if call.filter.is_some() {
            if let Ok(Function::Window(_)) = &function {
                return Err(misuse_of_window(name, offset));
            }
            if let Err(error) = function {
                return self.unknown_call(call, error);
            }
            return Err(Error::sql(format!(
                "FILTER may not be used with non-aggregate {name}()"
            ))
            .with_offset(offset));
        }
        if !call.order_by.is_empty() && count > 0 && function.is_ok() {
            return Err(no_order(name, offset));
        }
        let written = call.args.as_deref().unwrap_or(&[]);
        let asks = match &function {
            Ok(Function::Scalar(f)) => f.takes_json,
            Ok(Function::User(f)) => f.flags.takes_subtypes,
            _ => false,
        };
        if let Ok(Function::User(function)) = function {
            return Ok(called_user(function, self.json_exprs(written, asks)?));
        }
        // DISTINCT means nothing to a scalar function, to SQLite too.
        let Some(args) = &call.args else {
            return Err(
                Error::sql(format!("wrong number of arguments to function {name}()"))
                    .with_offset(offset),
            );
        };
        let likelihood = args
            .get(1)
            .filter(|_| name.eq_ignore_ascii_case("likelihood"));
        let args = self.json_exprs(args, asks)?;
        if args.len() == 2 && likelihood.is_some_and(|e| !is_probability(e)) {
            return Err(Error::sql(
                "second argument to likelihood() must be a constant between 0.0 and 1.0",
            )
            .with_offset(offset));
        }
        if let Some(mut special) = special(name, &args) {
            if let ExprKind::Like { kind, .. } = &mut special.kind
                && *kind == LikeKind::Like
            {
                *kind = self.like();
            }
            return Ok(special);
        }
        self.scalar_call(name, args, offset)
    }

    /// What LIKE is here: what an index or a generated column keeps does not change with
    /// the connection's settings.
    pub(super) fn like(&self) -> LikeKind {
        let definition = self.frames.last().and_then(|frame| frame.definition);
        let is_kept = match definition {
            Some(definition) => matches!(definition, Definition::Index | Definition::Generated),
            // The indexes of a table that a statement reads.
            None => self.texts_of.is_some(),
        };
        match self.settings.case_sensitive_like && !is_kept {
            true => LikeKind::LikeExact,
            false => LikeKind::Like,
        }
    }

    /// Binds arguments; `asks`: of a call that asks which of them are texts of JSON.
    pub(super) fn json_exprs(&mut self, args: &[ast::Expr], asks: bool) -> Result<Vec<Expr>> {
        self.asks_json += usize::from(asks);
        let args = self.exprs(args);
        self.asks_json -= usize::from(asks);
        args
    }

    /// A call of a scalar function with bound arguments.
    pub(super) fn scalar_call(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        offset: usize,
    ) -> Result<Expr> {
        let function = match self.function(name, args.len()) {
            Ok(Function::Scalar(function)) => match self.frame().definition {
                Some(definition) => function.within(definition),
                None => function,
            },
            Ok(Function::User(function)) => return Ok(called_user(function, args)),
            Ok(Function::Aggregate(_)) => return Err(misuse(name, offset)),
            Ok(Function::Window(_)) => return Err(misuse_of_window(name, offset)),
            // SQLite asks for functions only where they are called.
            Err(_) if self.uses.is_some() => return Ok(Expr::null()),
            Err(error) if self.texts_of.is_some() => return Ok(refused(error, name, args)),
            Err(error) => return Err(hinted(error, name, offset)),
        };
        Ok(called(function, args))
    }

    /// The function of this name for so many arguments: the program's before a built-in one.
    ///
    /// # Errors
    /// As [`func::find`], and `unsafe use of f()`.
    pub(super) fn function(&mut self, name: &str, arguments: usize) -> Result<Function> {
        let user = &self.settings.user;
        let Some(function) = user.find(name, arguments) else {
            return match func::find(name, arguments) {
                Err(_) if user.has(name) => Err(func::wrong_number_of_arguments(name)),
                found => found,
            };
        };
        self.calls_user = true;
        self.schema_calls_user |= self.store_of_text().is_some();
        match function.flags().is_some_and(|flags| self.distrusts(flags)) {
            true => Err(Error::sql(format!("unsafe use of {name}()")).with_hint(
                "a text of the schema may not call it: it is for direct use only, or the schema is not trusted",
            )),
            false => Ok(function),
        }
    }

    /// Whether a function of the program may not be called where it stands.
    fn distrusts(&self, flags: UserFlags) -> bool {
        let is_refused = flags.direct_only || self.settings.distrusts_schema && !flags.innocuous;
        // What the temporary database says, this connection has said itself.
        let is_foreign = || {
            let store = self.store_of_text();
            store.is_some_and(|store| !self.catalog.is_temp(store))
        };
        is_refused && self.uses.is_none() && is_foreign()
    }

    /// The store of the database whose text holds what is being bound; None: the statement's
    /// own does.
    pub(super) fn store_of_text(&self) -> Option<u64> {
        let definition = || {
            let frame = self.frames.last().filter(|f| f.definition.is_some())?;
            frame.tables.first()?.database
        };
        let view = || self.views.last().map(|(_, store)| *store);
        let trigger = || self.trigger.as_ref().map(|rows| rows.store);
        let of_table = self.texts_of.or_else(definition);
        of_table.or_else(view).or_else(trigger)
    }
}

/// The error for a call that has no rows to order.
pub(super) fn no_order(name: &str, offset: usize) -> Error {
    let message = format!("ORDER BY may not be used with non-aggregate {name}()");
    Error::sql(message).with_offset(offset)
}

/// A call of a function of the program.
fn called_user(function: Arc<UserFunction>, args: Vec<Expr>) -> Expr {
    let mut props = Props::of_operator(&args);
    props.deterministic &= function.flags.deterministic;
    props.constant &= function.flags.deterministic;
    props.fallible = true;
    props.json = match function.flags.gives_subtype {
        true => JsonText::Maybe,
        false => JsonText::Never,
    };
    let site = CallSite::new(args.iter().map(|arg| arg.props.constant));
    let kind = ExprKind::UserFunction {
        function,
        args,
        site,
    };
    Expr { kind, props }
}

/// A call that a text of the schema asks for in vain: it fails once it is made.
fn refused(error: Error, name: &str, args: Vec<Expr>) -> Expr {
    let error = match is_unknown(&error) {
        false => error,
        true => Error::sql(format!("unknown function: {name}()")).with_hint(
            "a CHECK, an index, a default or a generated column calls it: this connection must have it, too",
        ),
    };
    let props = Props {
        fallible: true,
        constant: false,
        ..Props::of_operator(&args)
    };
    let name = name.to_owned();
    Expr {
        kind: ExprKind::RefusedFunction { name, error, args },
        props,
    }
}

/// Whether the error is that there is no function of a name.
pub(super) fn is_unknown(error: &Error) -> bool {
    error.message().starts_with("no such function")
}

/// coalesce() of these.
pub(super) fn coalesce(args: Vec<Expr>) -> Result<Expr> {
    match func::find("coalesce", args.len())? {
        Function::Scalar(function) => Ok(called(function, args)),
        Function::Aggregate(_) | Function::Window(_) | Function::User(_) => {
            Err(Error::misuse("coalesce() is no scalar function"))
        }
    }
}

/// RAISE() with this action and message.
pub(super) fn raise(action: ConflictAction, message: Option<Expr>) -> Expr {
    called(Arc::new(func::raise(action)), message.into_iter().collect())
}

/// A call of a function.
pub(super) fn called(function: Arc<ScalarFunction>, args: Vec<Expr>) -> Expr {
    let collation = args
        .iter()
        .find_map(|a| a.props.collation)
        .unwrap_or_default();
    let mut props = Props::of_operator(&args);
    props.deterministic &= function.is_deterministic();
    props.fallible |= function.is_fallible(args.iter().map(|arg| match &arg.kind {
        ExprKind::Literal(value) => Some(value.as_ref()),
        _ => None,
    }));
    props.constant &= function.is_deterministic();
    props.json = json_of_call(&function, &args);
    let kind = ExprKind::Function {
        function,
        args,
        collation,
    };
    Expr { kind, props }
}

/// Whether what a call gives may be a text of JSON.
fn json_of_call(function: &ScalarFunction, args: &[Expr]) -> JsonText {
    match function.gives_json {
        GivesJson::Never => JsonText::Never,
        GivesJson::Maybe => JsonText::Maybe,
        GivesJson::Always => JsonText::Always,
        GivesJson::Passes => json_of_any(args),
    }
}

/// Whether one of these may be a text of JSON.
pub(super) fn json_of_any<'a>(results: impl IntoIterator<Item = &'a Expr>) -> JsonText {
    match results.into_iter().any(|e| e.props.json != JsonText::Never) {
        true => JsonText::Maybe,
        false => JsonText::Never,
    }
}

/// Whether it is written as a number with a point, from 0.0 to 1.0.
fn is_probability(e: &ast::Expr) -> bool {
    match e.kind {
        ast::ExprKind::Literal(ast::Literal::Real(r)) => r.is_sign_positive() && r <= 1.0,
        _ => false,
    }
}

pub(super) fn misuse(name: &str, offset: usize) -> Error {
    Error::sql(format!("misuse of aggregate function {}()", name)).with_offset(offset)
}

pub(super) fn misuse_of_window(name: &str, offset: usize) -> Error {
    Error::sql(format!("misuse of window function {name}()")).with_offset(offset)
}

pub(super) fn hinted(error: Error, name: &str, offset: usize) -> Error {
    let error = error.with_offset(offset);
    if !is_unknown(&error) {
        return error;
    }
    match crate::schema::nearest(name, func::names()) {
        Some(near) => error.with_hint(format!("did you mean {near}()?")),
        None => error,
    }
}

/// The value itself, with no more of a column than a function's result has.
fn as_result(value: &Expr) -> Expr {
    let props = Props {
        affinity: None,
        collation: value
            .props
            .collation
            .filter(|_| value.props.explicit_collation),
        ..value.props
    };
    Expr {
        kind: value.kind.clone(),
        props,
    }
}

/// Calls that are operators in disguise: they evaluate their arguments only as
/// far as needed, or not as functions at all.
fn special(name: &str, args: &[Expr]) -> Option<Expr> {
    let boxed = |e: &Expr| Box::new(e.clone());
    let is = |n: &str| name.eq_ignore_ascii_case(n);
    match args {
        [condition, then, rest @ ..] if (is("iif") || is("if")) && rest.len() <= 1 => {
            let arms = vec![CaseArm {
                when: condition.clone(),
                comparison: None,
                then: then.clone(),
            }];
            let otherwise = rest.first().map(boxed);
            let json = json_of_any(std::iter::once(then).chain(rest));
            let mut case = Expr::operator(ExprKind::Case {
                base: None,
                arms,
                otherwise,
            });
            case.props.json = json;
            Some(case)
        }
        [only] if is("likely") || is("unlikely") => Some(as_result(only)),
        [only, _] if is("likelihood") => Some(as_result(only)),
        [pattern, text, rest @ ..]
            if (is("like") && rest.len() <= 1) || (is("glob") && rest.is_empty()) =>
        {
            let kind = if is("like") {
                LikeKind::Like
            } else {
                LikeKind::Glob
            };
            let escape = rest.first().map(boxed);
            let fallible = escape.is_some();
            let (expr, pattern) = (boxed(text), boxed(pattern));
            let mut like = Expr::operator(ExprKind::Like {
                kind,
                expr,
                pattern,
                escape,
                negated: false,
            });
            like.props.fallible |= fallible;
            Some(like)
        }
        _ => None,
    }
}
