//! Binding of aggregates.
//!
//! An aggregate stands in one SELECT and may belong to another: to the innermost one,
//! from where it stands outwards, of which it reads a column; to where it stands if it
//! reads none. That SELECT computes it, over its own rows, and those within get the
//! result as they get a column of it.

use std::sync::Arc;

use super::Binder;
use super::call::{called, hinted, misuse};
use super::expr::{AggregateCall, Expr, ExprKind, Props, Register, SortKey};
use super::scope::{Clause, Frame, Reach};
use crate::ast::FunctionCall;
use crate::error::{Error, Result};
use crate::func::json::aggregate::JsonGroup;
use crate::func::{self, AggregateFunction, AggregateKind, Function, JsonText};
use crate::value::Collation;

impl Binder<'_> {
    pub(super) fn aggregate(&mut self, call: &FunctionCall) -> Result<Expr> {
        let offset = call.name.offset;
        let stands = match self.frames.last() {
            Some(frame) if frame.may_hold_aggregates() => self.frames.len() - 1,
            _ => return Err(misuse(&call.name.text, offset)),
        };
        // Aggregates do not nest.
        let clause = std::mem::replace(&mut self.frame().clause, Clause::Argument);
        let captured = self.levels.iter().skip(1).map(|l| l.captures.len());
        let captured: Vec<usize> = captured.collect();
        let reads = None;
        self.reaches.push(Reach { stands, reads });
        let bound = self.aggregate_parts(call);
        let reach = self.reaches.pop();
        self.frame().clause = clause;
        let mut bound = bound?;
        let owner = reach.and_then(|r| r.reads).unwrap_or(stands);
        if owner < stands {
            self.move_out(&mut bound, owner, &captured)?;
        }
        let Some(frame) = self.frames.get(owner) else {
            return Err(misuse(&call.name.text, offset));
        };
        frame
            .check_owned(&bound)
            .map_err(|e| e.with_offset(offset))?;
        Ok(self.owned_aggregate(bound, owner))
    }

    /// The result of an aggregate of a frame, as the current level sees it.
    fn owned_aggregate(&mut self, bound: AggregateCall, owner: usize) -> Expr {
        // COLLATE in an argument counts for the result, in the filter it does not.
        let collated = Props::of_operator(&bound.args);
        let operands = Props::of_operator(bound.args.iter().chain(bound.filter.iter()));
        let props = Props {
            collation: collated.collation,
            explicit_collation: collated.explicit_collation,
            constant: false,
            fallible: bound.function.fallible || operands.fallible,
            json: json_of(&bound),
            ..operands
        };
        let Some(frame) = self.frames.get_mut(owner) else {
            return Expr::null();
        };
        let level = frame.level;
        let calls = &mut frame.aggregates;
        let known = calls
            .iter()
            .position(|c| *c == bound && props.deterministic);
        let at = known.unwrap_or_else(|| {
            calls.push(bound);
            calls.len() - 1
        });
        if let Some(level) = self.levels.get_mut(level) {
            level.fallible |= props.fallible;
            level.volatile |= !props.deterministic;
        }
        let kind = ExprKind::Aggregate(at);
        self.capture(level, Expr { kind, props })
    }

    /// Puts what an aggregate is called with in terms of the frame it belongs to. What
    /// was handed in for its sake, all behind the first `captured` of each level, is
    /// handed in no more.
    fn move_out(
        &mut self,
        call: &mut AggregateCall,
        owner: usize,
        captured: &[usize],
    ) -> Result<()> {
        let to = self.frames.get(owner).map_or(0, |f| f.level);
        for at in (to + 1..self.levels.len()).rev() {
            let Some(level) = self.levels.get_mut(at) else {
                continue;
            };
            let mut captures = std::mem::take(&mut level.captures);
            for expr in call.exprs_mut() {
                self.hand_back(expr, &captures);
            }
            captures.truncate(captured.get(at - 1).copied().unwrap_or(0));
            if let Some(level) = self.levels.get_mut(at) {
                level.captures = captures;
            }
        }
        let nested = call.exprs_mut().find_map(|e| self.find_aggregate(e));
        match (nested, self.frames.get(owner)) {
            (Some(nested), Some(frame)) => Err(Error::sql(frame.misuse(nested))),
            _ => Ok(()),
        }
    }

    /// Replaces registers of a level by what its caller hands in.
    fn hand_back(&mut self, expr: &mut Expr, captures: &[(Register, Expr)]) {
        if let ExprKind::Register(register) = &expr.kind {
            let Some((_, outer)) = captures.iter().find(|(r, _)| r == register) else {
                return;
            };
            expr.kind = outer.kind.clone();
            expr.props.fallible = outer.props.fallible;
            expr.props.deterministic = outer.props.deterministic;
            expr.props.constant = outer.props.constant;
            return;
        }
        if let Some(id) = expr.kind.subquery() {
            let bindings = self.subqueries.get_mut(id).map(|s| &mut s.bindings);
            let mut bindings = bindings.map(std::mem::take).unwrap_or_default();
            for (_, binding) in &mut bindings {
                crate::stack::grow(|| self.hand_back(binding, captures));
            }
            if let Some(subquery) = self.subqueries.get_mut(id) {
                subquery.bindings = bindings;
            }
        }
        expr.kind.for_each_child_mut(&mut |child| {
            crate::stack::grow(|| self.hand_back(child, captures));
        });
    }

    /// The first aggregate of the block itself in an expression, what it hands to its
    /// subqueries included.
    pub(super) fn find_aggregate(&self, expr: &Expr) -> Option<usize> {
        if let ExprKind::Aggregate(at) = expr.kind {
            return Some(at);
        }
        let subquery = expr.kind.subquery().and_then(|id| self.subqueries.get(id));
        let mut bindings = subquery.map_or(&[][..], |s| &s.bindings).iter();
        let mut found = bindings.find_map(|(_, e)| crate::stack::grow(|| self.find_aggregate(e)));
        expr.kind.for_each_child(&mut |child| {
            if found.is_none() {
                found = crate::stack::grow(|| self.find_aggregate(child));
            }
        });
        found
    }

    /// Where the value that an aggregate of JSON takes may be a text of JSON, it is encoded
    /// before; DISTINCT goes by the value itself.
    fn encode_json(
        &mut self,
        function: &mut Arc<AggregateFunction>,
        args: &mut Vec<Expr>,
        distinct: bool,
    ) -> Result<()> {
        let AggregateKind::Json(group) = function.kind else {
            return Ok(());
        };
        let Some(value) = args.last().filter(|v| v.props.json != JsonText::Never) else {
            return Ok(());
        };
        let Some(quote) = func::scalar("json_quote") else {
            return Ok(());
        };
        let encoded = called(quote, vec![value.clone()]);
        if !distinct {
            args.pop();
        }
        args.push(encoded);
        let kind = AggregateKind::Json(JsonGroup {
            is_encoded: true,
            ..group
        });
        Arc::make_mut(function).kind = kind;
        Ok(())
    }

    fn aggregate_parts(&mut self, call: &FunctionCall) -> Result<AggregateCall> {
        let args = call.args.as_deref().unwrap_or(&[]);
        let function = self.function(&call.name.text, args.len());
        let asks = matches!(&function, Ok(Function::Aggregate(f)) if f.takes_json());
        let mut args = self.json_exprs(args, asks)?;
        let mut function = match function {
            Ok(Function::Aggregate(function)) => function,
            Ok(Function::Scalar(_) | Function::Window(_) | Function::User(_)) => {
                return Err(misuse(&call.name.text, call.name.offset));
            }
            Err(error) => return Err(hinted(error, &call.name.text, call.name.offset)),
        };
        if call.distinct && args.len() != 1 {
            return Err(
                Error::sql("DISTINCT aggregates must have exactly one argument")
                    .with_offset(call.name.offset),
            );
        }
        let collation = args.first().map_or(Collation::Binary, Expr::collation);
        self.encode_json(&mut function, &mut args, call.distinct)?;
        let filter = call.filter.as_deref().map(|f| self.expr(f)).transpose()?;
        let mut order_by = Vec::with_capacity(call.order_by.len());
        for term in &call.order_by {
            let expr = self.expr(&term.expr)?;
            let collation = expr.collation();
            let nulls_first = term.nulls_first.unwrap_or(!term.descending);
            order_by.push(SortKey {
                expr,
                collation,
                descending: term.descending,
                nulls_first,
            });
        }
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

/// Whether the result of an aggregate may be a text of JSON.
fn json_of(call: &AggregateCall) -> JsonText {
    match call.function.kind {
        AggregateKind::Json(_) => JsonText::Always,
        AggregateKind::Min | AggregateKind::Max => match call.args.first() {
            Some(only) if only.props.json == JsonText::Always => JsonText::Always,
            _ => JsonText::Never,
        },
        _ => JsonText::Never,
    }
}

impl Frame {
    /// An aggregate of this SELECT may be where it is: in what is being bound.
    fn check_owned(&self, call: &AggregateCall) -> Result<()> {
        match self.clause {
            Clause::Results | Clause::Having => Ok(()),
            Clause::Order if self.is_aggregate => Ok(()),
            Clause::Grouping => Err(Error::sql(
                "aggregate functions are not allowed in the GROUP BY clause",
            )),
            _ => {
                let name = &call.function.name;
                Err(Error::sql(format!("misuse of aggregate: {name}()")))
            }
        }
    }
}

impl AggregateCall {
    fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let order = self.order_by.iter_mut().map(|key| &mut key.expr);
        self.args.iter_mut().chain(&mut self.filter).chain(order)
    }
}
