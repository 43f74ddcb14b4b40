//! Binding of function calls and aggregates.

use super::Binder;
use super::expr::{AggregateCall, CaseArm, Expr, ExprKind, LikeKind, Props};
use super::select::contains_aggregate;
use crate::ast::{self, FunctionCall};
use crate::error::{Error, Result};
use crate::func::{self, Function};
use crate::value::Collation;

impl Binder<'_> {
    pub(super) fn call(&mut self, call: &FunctionCall) -> Result<Expr> {
        let name = call.name.text.as_str();
        let offset = call.name.offset;
        if call.over {
            return Err(Error::sql("window functions are not supported").with_offset(offset));
        }
        let count = call.args.as_ref().map_or(0, Vec::len);
        if let Ok(Function::Aggregate(_)) = func::find(name, count)
            && (call.args.is_some() || name.eq_ignore_ascii_case("count"))
        {
            return self.aggregate(call);
        }
        if call.filter.is_some() {
            return Err(Error::sql(format!(
                "FILTER may not be used with non-aggregate {name}()"
            ))
            .with_offset(offset));
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
        let args = self.exprs(args)?;
        if args.len() == 2 && likelihood.is_some_and(|e| !is_probability(e)) {
            return Err(Error::sql(
                "second argument to likelihood() must be a constant between 0.0 and 1.0",
            )
            .with_offset(offset));
        }
        if let Some(special) = special(name, &args) {
            return Ok(special);
        }
        self.scalar_call(name, args, offset)
    }

    /// A call of a scalar function with bound arguments.
    pub(super) fn scalar_call(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        offset: usize,
    ) -> Result<Expr> {
        let function = match func::find(name, args.len()) {
            Ok(Function::Scalar(function)) => match self.frame().definition {
                Some(definition) => function.within(definition),
                None => function,
            },
            Ok(Function::Aggregate(_)) => return Err(misuse(name, offset)),
            Err(error) => return Err(hinted(error, name, offset)),
        };
        let collation = args
            .iter()
            .find_map(|a| a.props.collation)
            .unwrap_or_default();
        let mut props = Props::of_operator(&args);
        props.deterministic &= function.is_deterministic();
        props.fallible |= function.fallible;
        props.constant &= function.is_deterministic();
        Ok(Expr {
            kind: ExprKind::Function {
                function,
                args,
                collation,
            },
            props,
        })
    }

    fn aggregate(&mut self, call: &FunctionCall) -> Result<Expr> {
        let name = call.name.text.as_str();
        let misuse = || misuse(name, call.name.offset);
        match self.frames.last() {
            Some(frame) if frame.aggregates_allowed => {}
            Some(frame) if frame.filtering => {
                let message = format!("misuse of aggregate: {name}()");
                return Err(Error::sql(message).with_offset(call.name.offset));
            }
            Some(frame) if frame.grouping => {
                let message = "aggregate functions are not allowed in the GROUP BY clause";
                return Err(Error::sql(message).with_offset(call.name.offset));
            }
            _ => return Err(misuse()),
        }
        // Aggregates do not nest.
        self.frame().aggregates_allowed = false;
        let bound = self.aggregate_parts(call);
        self.frame().aggregates_allowed = true;
        let bound = bound?;
        let parts = bound.args.iter().chain(bound.filter.iter());
        if parts.clone().any(contains_aggregate) {
            return Err(misuse());
        }
        // COLLATE in an argument counts for the result, in the filter it does not.
        let collated = Props::of_operator(&bound.args);
        let props = Props {
            collation: collated.collation,
            explicit_collation: collated.explicit_collation,
            constant: false,
            fallible: true,
            ..Props::of_operator(parts)
        };
        let calls = &mut self.frame().aggregates;
        let known = calls
            .iter()
            .position(|c| *c == bound && props.deterministic);
        let at = known.unwrap_or_else(|| {
            calls.push(bound);
            calls.len() - 1
        });
        Ok(Expr {
            kind: ExprKind::Aggregate(at),
            props,
        })
    }

    fn aggregate_parts(&mut self, call: &FunctionCall) -> Result<AggregateCall> {
        let args = self.exprs(call.args.as_deref().unwrap_or(&[]))?;
        let function = match func::find(&call.name.text, args.len()) {
            Ok(Function::Aggregate(function)) => function,
            Ok(Function::Scalar(_)) => return Err(misuse(&call.name.text, call.name.offset)),
            Err(error) => return Err(hinted(error, &call.name.text, call.name.offset)),
        };
        if call.distinct && args.len() != 1 {
            return Err(
                Error::sql("DISTINCT aggregates must have exactly one argument")
                    .with_offset(call.name.offset),
            );
        }
        let filter = call.filter.as_deref().map(|f| self.expr(f)).transpose()?;
        let mut order_by = Vec::with_capacity(call.order_by.len());
        for term in &call.order_by {
            let expr = self.expr(&term.expr)?;
            let collation = expr.collation();
            let nulls_first = term.nulls_first.unwrap_or(!term.descending);
            order_by.push(super::expr::SortKey {
                expr,
                collation,
                descending: term.descending,
                nulls_first,
            });
        }
        let collation = args.first().map_or(Collation::Binary, Expr::collation);
        Ok(AggregateCall {
            function,
            args,
            distinct: call.distinct,
            collation,
            filter,
            order_by,
        })
    }
}

/// Whether it is written as a number with a point, from 0.0 to 1.0.
fn is_probability(e: &ast::Expr) -> bool {
    match e.kind {
        ast::ExprKind::Literal(ast::Literal::Real(r)) => r.is_sign_positive() && r <= 1.0,
        _ => false,
    }
}

fn misuse(name: &str, offset: usize) -> Error {
    Error::sql(format!("misuse of aggregate function {}()", name)).with_offset(offset)
}

fn hinted(error: Error, name: &str, offset: usize) -> Error {
    let error = error.with_offset(offset);
    if !error.message().starts_with("no such function") {
        return error;
    }
    match crate::schema::nearest(name, func::names()) {
        Some(near) => error.with_hint(format!("did you mean {near}()?")),
        None => error,
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
            Some(Expr::operator(ExprKind::Case {
                base: None,
                arms,
                otherwise,
            }))
        }
        [only] if is("likely") || is("unlikely") => Some(only.clone()),
        [only, _] if is("likelihood") => Some(only.clone()),
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
