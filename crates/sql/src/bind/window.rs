//! Binding of window functions: `f(…) OVER …` and the WINDOW clause.
//!
//! A call belongs to the SELECT it stands in, whose result columns and ORDER BY may
//! hold some. Those whose windows divide and order the rows alike share a
//! [`Windowing`]; where they stand, [`ExprKind::Window`] does.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Binder;
use super::call::{hinted, is_unknown, misuse_of_window, no_order};
use super::expr::{
    Exclude, Expr, ExprKind, Frame, FrameBound, FrameMode, OverWindow, Props, SortKey, WindowCall,
    Windowing,
};
use super::order::{check_terms, sort_key};
use super::scope::{self, Clause};
use crate::ast;
use crate::ast::{ExprKind as A, FunctionCall, Literal, Over, SortTerm};
use crate::error::{Error, Result};
use crate::func::{self, AggregateKind, Function, JsonText};
use crate::value::Collation;

/// A window as it is written, with what it takes over from the one it adds to.
#[derive(Clone, Copy)]
struct Written<'w> {
    partition_by: &'w [ast::Expr],
    order_by: &'w [SortTerm],
    frame: Option<&'w ast::Frame<ast::Expr>>,
}

/// The windows of a WINDOW clause.
#[derive(Debug, Default)]
pub(super) struct NamedWindows {
    windows: ast::Windows,
    /// By their names in lower case; of two the last one counts.
    by_name: FxHashMap<String, usize>,
    /// Whose PARTITION BY and ORDER BY each has: its own, or those of one that it adds to.
    taken_over: Vec<(usize, usize)>,
}

impl NamedWindows {
    fn of(windows: &ast::Windows) -> Result<Self> {
        let mut this = NamedWindows {
            windows: windows.clone(),
            ..NamedWindows::default()
        };
        for (at, defined) in windows.iter().enumerate() {
            let (mut partition, mut order) = (at, at);
            if let Some(base) = &defined.window.base {
                let known = this.position(base)?;
                this.check(base, known, &defined.window)?;
                let of_base = this.taken_over.get(known).copied();
                partition = of_base.map_or(at, |(partition, _)| partition);
                if defined.window.order_by.is_empty() {
                    order = of_base.map_or(at, |(_, order)| order);
                }
            }
            this.taken_over.push((partition, order));
            this.by_name
                .insert(defined.name.text.to_ascii_lowercase(), at);
        }
        Ok(this)
    }

    fn position(&self, name: &ast::Name) -> Result<usize> {
        let known = self.by_name.get(&name.text.to_ascii_lowercase());
        known.copied().ok_or_else(|| {
            let message = format!("no such window: {}", name.text);
            Error::sql(message).with_offset(name.offset)
        })
    }

    fn get(&self, at: usize) -> Written<'_> {
        let window = |at: usize| self.windows.get(at).map(|named| &named.window);
        let (partition, order) = self.taken_over.get(at).copied().unwrap_or((at, at));
        Written {
            partition_by: window(partition).map_or(&[], |w| w.partition_by.as_slice()),
            order_by: window(order).map_or(&[], |w| w.order_by.as_slice()),
            frame: window(at).and_then(|w| w.frame.as_ref()),
        }
    }

    /// What a window may not say that adds to this one.
    fn check(&self, base: &ast::Name, at: usize, window: &ast::Window) -> Result<()> {
        let below = self.get(at);
        let overridden = if !window.partition_by.is_empty() {
            "PARTITION clause"
        } else if !below.order_by.is_empty() && !window.order_by.is_empty() {
            "ORDER BY clause"
        } else if below.frame.is_some() {
            "frame specification"
        } else {
            return Ok(());
        };
        let message = format!("cannot override {overridden} of window: {}", base.text);
        Err(Error::sql(message).with_offset(base.offset))
    }

    /// What stands behind OVER.
    fn over<'w>(&'w self, over: &'w Over) -> Result<Written<'w>> {
        let window = match over {
            Over::Name(name) => return Ok(self.get(self.position(name)?)),
            Over::Window(window) => window,
        };
        let own = Written {
            partition_by: &window.partition_by,
            order_by: &window.order_by,
            frame: window.frame.as_ref(),
        };
        let Some(base) = &window.base else {
            return Ok(own);
        };
        let at = self.position(base)?;
        self.check(base, at, window)?;
        let below = self.get(at);
        Ok(Written {
            partition_by: below.partition_by,
            order_by: match window.order_by.is_empty() {
                true => below.order_by,
                false => own.order_by,
            },
            frame: own.frame,
        })
    }
}

impl Binder<'_> {
    /// Takes a WINDOW clause. Windows that no call names are not bound, but where ALTER
    /// TABLE looks for names.
    pub(super) fn named_windows(&mut self, windows: &ast::Windows) -> Result<()> {
        let named = NamedWindows::of(windows)?;
        if self.uses.is_some() {
            for defined in windows.iter() {
                self.exprs(&defined.window.partition_by)?;
                self.window_order(&defined.window.order_by)?;
            }
        }
        self.frame().named_windows = Some(Arc::new(named));
        Ok(())
    }

    pub(super) fn window_call(&mut self, call: &FunctionCall, over: &Over) -> Result<Expr> {
        let (name, offset) = (call.name.text.as_str(), call.name.offset);
        let count = call.args.as_ref().map_or(0, Vec::len);
        let function = match self.function(name, count) {
            Ok(Function::Window(function)) => OverWindow::Function(function),
            Ok(Function::Aggregate(function)) if function.is_windowed() => {
                OverWindow::Aggregate(function)
            }
            Ok(Function::Scalar(_) | Function::Aggregate(_) | Function::User(_)) => {
                return Err(no_window_function(name, offset));
            }
            Err(error) => {
                let is_scalar = func::scalar(name).is_some() && func::aggregate(name).is_none();
                return match is_scalar {
                    true => Err(no_window_function(name, offset)),
                    false => self.unknown_call(call, error),
                };
            }
        };
        if !self.frames.last().is_some_and(|f| f.may_hold_windows()) {
            return Err(misuse_of_window(name, offset));
        }
        if !call.order_by.is_empty() && count > 0 {
            return Err(no_order(name, offset)
                .with_hint("the order of the window's rows stands behind OVER"));
        }
        self.frame().in_window = true;
        let bound = self.window_parts(call, over, function);
        self.frame().in_window = false;
        let (partition, order, bound) = bound?;
        let collated = Props::of_operator(&bound.args);
        let keys = partition.iter().chain(&order).map(|key| &key.expr);
        // What is kept of a row for another one's frame counts as text.
        let makes_json = matches!(&bound.function, OverWindow::Aggregate(function)
            if matches!(function.kind, AggregateKind::Json(_)));
        let json = match makes_json {
            true => JsonText::Always,
            false => JsonText::Never,
        };
        let props = Props {
            affinity: None,
            collation: collated.collation,
            explicit_collation: collated.explicit_collation,
            constant: false,
            fallible: true,
            json,
            ..Props::of_operator(bound.exprs().chain(keys))
        };
        let (window, call) = self.windowed(partition, order, bound, props.deterministic);
        Ok(Expr {
            kind: ExprKind::Window(window, call),
            props,
        })
    }

    /// A call of what is no scalar function that is known. Where ALTER TABLE looks for names,
    /// those in it count, whatever it calls.
    pub(super) fn unknown_call(&mut self, call: &FunctionCall, error: Error) -> Result<Expr> {
        if self.uses.is_none() || !is_unknown(&error) {
            return Err(hinted(error, &call.name.text, call.name.offset));
        }
        self.exprs(call.args.as_deref().unwrap_or(&[]))?;
        self.window_order(&call.order_by)?;
        if let Some(filter) = &call.filter {
            self.expr(filter)?;
        }
        if let Some(over) = &call.over {
            let named = self.frame().named_windows.clone().unwrap_or_default();
            let window = named.over(over)?;
            self.exprs(window.partition_by)?;
            self.window_order(window.order_by)?;
        }
        Ok(Expr::null())
    }

    /// The place of a call among those of the SELECT.
    fn windowed(
        &mut self,
        partition: Vec<SortKey>,
        order: Vec<SortKey>,
        call: WindowCall,
        deterministic: bool,
    ) -> (usize, usize) {
        let windows = &mut self.frame().windows;
        let is_alike = |w: &Windowing| w.partition == partition && w.order == order;
        let known = windows.iter().position(is_alike).filter(|_| deterministic);
        let at = known.unwrap_or_else(|| {
            windows.push(Windowing {
                partition,
                order,
                calls: Vec::new(),
            });
            windows.len() - 1
        });
        let Some(window) = windows.get_mut(at) else {
            return (at, 0);
        };
        let known = window.calls.iter().position(|c| *c == call);
        let number = known.unwrap_or_else(|| {
            window.calls.push(call);
            window.calls.len() - 1
        });
        (at, number)
    }

    fn window_parts(
        &mut self,
        call: &FunctionCall,
        over: &Over,
        function: OverWindow,
    ) -> Result<(Vec<SortKey>, Vec<SortKey>, WindowCall)> {
        let args = self.exprs(call.args.as_deref().unwrap_or(&[]))?;
        let named = self.frame().named_windows.clone().unwrap_or_default();
        let window = named.over(over)?;
        let offset = call.name.offset;
        if let Some(frame) = window.frame
            && frame.mode == FrameMode::Range
            && (frame.start.offset().is_some() || frame.end.offset().is_some())
            && window.order_by.len() != 1
        {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires one ORDER BY expression";
            return Err(Error::sql(message).with_offset(offset));
        }
        if call.filter.is_some() && matches!(function, OverWindow::Function(_)) {
            let message = "FILTER clause may only be used with aggregate window functions";
            return Err(Error::sql(message).with_offset(offset));
        }
        let partition = self.exprs(window.partition_by)?;
        let order = self.window_order(window.order_by)?;
        // It sorts by the one as by the other.
        check_terms(partition.len().max(order.len()), "ORDER")?;
        let filter = call.filter.as_deref().map(|f| self.expr(f)).transpose()?;
        let frame = match (&function, window.frame) {
            // Those that pay no heed to their frame have the one that asks for least.
            (OverWindow::Function(function), _) if !function.kind.has_frame() => {
                up_to_row(FrameMode::Rows)
            }
            // Up to the last row that is equal to the row.
            (_, None) => up_to_row(FrameMode::Range),
            (_, Some(frame)) => Frame {
                mode: frame.mode,
                start: self.frame_bound(&frame.start)?,
                end: self.frame_bound(&frame.end)?,
                exclude: frame.exclude,
            },
        };
        let partition = partition.into_iter().map(|expr| SortKey {
            collation: expr.collation(),
            expr,
            descending: false,
            nulls_first: true,
        });
        let call = WindowCall {
            function,
            collation: args.first().map_or(Collation::Binary, Expr::collation),
            args,
            filter,
            frame,
        };
        Ok((partition.collect(), order, call))
    }

    fn window_order(&mut self, terms: &[SortTerm]) -> Result<Vec<SortKey>> {
        let terms = terms.iter();
        terms
            .map(|term| Ok(sort_key(self.expr(&term.expr)?, term)))
            .collect()
    }

    /// What is not constant as it is written is NULL, to SQLite too.
    fn frame_bound(&mut self, bound: &FrameBound<ast::Expr>) -> Result<FrameBound<Expr>> {
        let mut offset = |expr: &ast::Expr| match is_constant(expr) {
            true => self.expr(expr),
            false => Ok(Expr::null()),
        };
        Ok(match bound {
            FrameBound::Unbounded => FrameBound::Unbounded,
            FrameBound::Preceding(expr) => FrameBound::Preceding(offset(expr)?),
            FrameBound::CurrentRow => FrameBound::CurrentRow,
            FrameBound::Following(expr) => FrameBound::Following(offset(expr)?),
        })
    }

    /// Whether the name of a result column of the frame may stand where it is: not for
    /// what holds a window function, but beside others.
    pub(super) fn may_be_named_here(&self, at: usize, expr: &Expr) -> bool {
        let Some(frame) = self.frames.get(at).filter(|f| !f.windows.is_empty()) else {
            return true;
        };
        let is_own = at + 1 == self.frames.len();
        is_own && frame.may_hold_windows() || self.find_window(expr).is_none()
    }

    /// The function of the first window call of the innermost SELECT in an expression.
    pub(super) fn window_function_in(&self, expr: &Expr) -> Option<&str> {
        let windows = &self.frames.last()?.windows;
        if windows.is_empty() {
            return None;
        }
        let (window, call) = self.find_window(expr)?;
        let call = windows.get(window)?.calls.get(call)?;
        Some(call.function.name())
    }

    /// The first window call of the block itself in an expression, what it hands to its
    /// subqueries included.
    fn find_window(&self, expr: &Expr) -> Option<(usize, usize)> {
        if let ExprKind::Window(window, call) = expr.kind {
            return Some((window, call));
        }
        let subquery = expr.kind.subquery().and_then(|id| self.subqueries.get(id));
        let mut bindings = subquery.map_or(&[][..], |s| &s.bindings).iter();
        let mut found = bindings.find_map(|(_, e)| crate::stack::grow(|| self.find_window(e)));
        expr.kind.for_each_child(&mut |child| {
            if found.is_none() {
                found = crate::stack::grow(|| self.find_window(child));
            }
        });
        found
    }
}

fn no_window_function(name: &str, offset: usize) -> Error {
    let message = format!("{name}() may not be used as a window function");
    Error::sql(message).with_offset(offset)
}

/// From the first row of the partition on.
fn up_to_row(mode: FrameMode) -> Frame {
    Frame {
        mode,
        start: FrameBound::Unbounded,
        end: FrameBound::CurrentRow,
        exclude: Exclude::Nothing,
    }
}

/// Whether an expression is constant before names and functions are looked up.
fn is_constant(expr: &ast::Expr) -> bool {
    let all = |list: &[ast::Expr]| list.iter().all(is_constant);
    let option = |e: &Option<Box<ast::Expr>>| e.as_deref().is_none_or(is_constant);
    crate::stack::grow(|| match &expr.kind {
        A::Literal(Literal::Current(_)) => false,
        A::Literal(_) | A::Parameter(_) => true,
        A::Column(name) => {
            let is = |word: &str| name.text.eq_ignore_ascii_case(word);
            !name.double_quoted && (is("true") || is("false"))
        }
        A::Negate(e) | A::Plus(e) | A::BitNot(e) | A::Not(e) | A::Cast(e, _) => is_constant(e),
        A::Collate(e, _) | A::IsNull { expr: e, .. } => is_constant(e),
        A::Binary(_, a, b) | A::Compare(_, a, b) => is_constant(a) && is_constant(b),
        A::And(list) | A::Or(list) | A::RowValue(list) => all(list),
        A::Between {
            expr, low, high, ..
        } => is_constant(expr) && is_constant(low) && is_constant(high),
        A::InList { expr, list, .. } => is_constant(expr) && all(list),
        A::Case {
            base,
            whens,
            otherwise,
        } => {
            let arm = |arm: &ast::CaseWhen| is_constant(&arm.when) && is_constant(&arm.then);
            option(base) && option(otherwise) && whens.iter().all(arm)
        }
        A::Qualified { .. }
        | A::InSelect { .. }
        | A::Exists(_)
        | A::Subquery(_)
        | A::Like { .. }
        | A::Function(_)
        | A::Raise(..) => false,
    })
}

impl scope::Frame {
    /// A window function may stand in what is being bound.
    fn may_hold_windows(&self) -> bool {
        !self.in_window && matches!(self.clause, Clause::Results | Clause::Order)
    }
}
