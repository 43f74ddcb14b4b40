//! Windows: what is computed over the rows of a block, its groups where it has any.
//!
//! The windows of a block lie one above the other, that of the first call on top, so
//! that the rows come out in its order, as SQLite's do. What their keys and calls are
//! made of is computed once, below all of them; each sorts its rows, unless they come
//! in an order that begins with its own.

use super::Planner;
use super::layout::Layout;
use super::physical::{Node, Op};
use super::properties;
use super::rules;
use crate::bind::expr::{
    Expr, ExprKind, FrameBound, FrameMode, OverWindow, SortKey, WindowCall, Windowing,
};
use crate::bind::logical::Block;
use crate::error::{Error, Result};
use crate::func::WindowKind;

/// The rows with what was computed over them.
pub struct Windowed {
    /// The plan.
    pub node: Node,
    /// Its row.
    pub layout: Layout,
    /// The order of its rows, over the row.
    pub order: Vec<SortKey>,
}

/// The row below the windows: that of the block's rows, and what is computed of it.
struct Below<'l> {
    layout: &'l Layout,
    computed: Vec<Expr>,
    extended: Layout,
}

impl Planner<'_, '_> {
    /// Puts the block's windows on top of its rows, which are in the order `given`, or
    /// are groups in no order that come in the order of `groups`.
    pub(super) fn windows(
        &mut self,
        block: &Block,
        node: Node,
        layout: &Layout,
        given: &[SortKey],
        groups: Vec<SortKey>,
    ) -> Result<Windowed> {
        let mut below = Below {
            layout,
            computed: Vec::new(),
            extended: layout.clone(),
        };
        let mut windows = Vec::with_capacity(block.windows.len());
        let (mut order, mut ties) = self.called_for(node.rows, |this| {
            for window in &block.windows {
                windows.push(this.windowing(window, &mut below)?);
            }
            let order = this.resolve_sort(given, layout)?;
            Ok::<_, Error>((order, this.resolve_sort(&groups, layout)?))
        })?;
        let mut node = computed(node, below.computed);
        let mut layout = below.extended;
        for (at, window) in windows.into_iter().enumerate().rev() {
            let mut keys: Vec<SortKey> = Vec::new();
            for key in window.keys() {
                let is_same =
                    |k: &SortKey| k.expr.kind == key.expr.kind && k.collation == key.collation;
                if !keys.iter().any(is_same) {
                    keys.push(key.clone());
                }
            }
            if !ties.is_empty() {
                let beside = keys.len() == ties.len();
                for (i, mut tie) in ties.drain(..).enumerate() {
                    tie.descending = beside && keys.get(i).is_some_and(|k| k.descending);
                    tie.nulls_first = !tie.descending;
                    keys.push(tie);
                }
            }
            let is_same = |(a, b): (&SortKey, &SortKey)| are_same(a, b, &b.expr.kind);
            if keys.len() > order.len() || !order.iter().zip(&keys).all(is_same) {
                order.clone_from(&keys);
                let (width, rows) = (node.width, node.rows);
                let input = Box::new(node);
                let op = Op::Sort {
                    input,
                    keys,
                    top: None,
                };
                node = Node { op, width, rows };
            }
            for call in 0..window.calls.len() {
                layout.push_computed(ExprKind::Window(at, call));
            }
            let (width, rows) = (node.width + window.calls.len(), node.rows);
            let input = Box::new(node);
            let op = Op::Window {
                input,
                window: Box::new(window),
            };
            node = Node { op, width, rows };
        }
        Ok(Windowed {
            node,
            layout,
            order,
        })
    }

    fn windowing(&mut self, window: &Windowing, below: &mut Below<'_>) -> Result<Windowing> {
        let mut partition = Vec::with_capacity(window.partition.len());
        for key in &window.partition {
            if !key.expr.props.constant {
                partition.push(self.window_key(key, below)?);
            }
        }
        let order = window.order.iter();
        let order = order.map(|key| self.window_key(key, below));
        let order = order.collect::<Result<_>>()?;
        let mut calls = Vec::with_capacity(window.calls.len());
        for call in &window.calls {
            let args = call.args.iter();
            let args = args.map(|arg| self.window_value(arg, below));
            let args = args.collect::<Result<_>>()?;
            let filter = call.filter.as_ref();
            let filter = filter.map(|filter| self.window_value(filter, below));
            let filter = filter.transpose()?;
            let mut frame = call.frame.clone();
            for bound in [&mut frame.start, &mut frame.end] {
                if let Some(offset) = bound.offset_mut() {
                    *offset = self.resolve_constant(offset)?;
                    rules::fold(offset);
                }
            }
            calls.push(WindowCall {
                function: call.function.clone(),
                args,
                collation: call.collation,
                filter,
                frame,
            });
        }
        Ok(Windowing {
            partition,
            order,
            calls,
        })
    }

    fn window_key(&mut self, key: &SortKey, below: &mut Below<'_>) -> Result<SortKey> {
        Ok(SortKey {
            expr: self.window_column(&key.expr, below)?,
            ..key.clone()
        })
    }

    /// A constant, or a column of the row below the windows.
    fn window_value(&mut self, expr: &Expr, below: &mut Below<'_>) -> Result<Expr> {
        let props = expr.props;
        if !(props.constant && props.deterministic && !props.fallible) {
            return self.window_column(expr, below);
        }
        let mut value = self.resolve_constant(expr)?;
        rules::fold(&mut value);
        Ok(value)
    }

    fn window_column(&mut self, expr: &Expr, below: &mut Below<'_>) -> Result<Expr> {
        let mut value = self.resolve(expr, below.layout)?;
        rules::fold(&mut value);
        if matches!(value.kind, ExprKind::Input(_)) {
            return Ok(value);
        }
        let props = expr.props;
        let known = below.computed.iter().position(|e| e.kind == value.kind);
        let at = known.filter(|_| props.deterministic).unwrap_or_else(|| {
            below.computed.push(value);
            below.extended.push_computed(expr.kind.clone());
            below.computed.len() - 1
        });
        Ok(Expr::input(below.layout.width() + at, props))
    }
}

/// The rows with these expressions behind their columns.
fn computed(input: Node, more: Vec<Expr>) -> Node {
    if more.is_empty() {
        return input;
    }
    let props = crate::bind::expr::Props::column(None, None);
    let mut exprs: Vec<Expr> = (0..input.width).map(|i| Expr::input(i, props)).collect();
    exprs.extend(more);
    let (width, rows) = (exprs.len(), input.rows);
    let input = Box::new(input);
    let op = Op::Project { input, exprs };
    Node { op, width, rows }
}

/// Whether rows in an order over a row of this layout are in the other one, too.
pub(super) fn begins_with(order: &[SortKey], wanted: &[SortKey], layout: &Layout) -> bool {
    let is_same = |(known, key): (&SortKey, &SortKey)| {
        let at = match key.expr.kind {
            ExprKind::Column(column) => layout.column(column),
            _ => (layout.computed(&key.expr)).or_else(|| properties::place(&key.expr, layout)),
        };
        at.is_some_and(|at| are_same(known, key, &ExprKind::Input(at)))
    };
    wanted.len() <= order.len() && order.iter().zip(wanted).all(is_same)
}

/// Whether two keys order alike, the second one being of this expression.
fn are_same(a: &SortKey, b: &SortKey, expr: &ExprKind) -> bool {
    a.expr.kind == *expr
        && a.collation == b.collation
        && (a.descending, a.nulls_first) == (b.descending, b.nulls_first)
}

/// The order of the block's rows that would spare the sort of its lowest window.
pub(super) fn wanted_order(block: &Block) -> Vec<SortKey> {
    let keys = block.windows.last().into_iter().flat_map(Windowing::keys);
    let keys = keys.filter(|key| !key.expr.props.constant);
    let keys: Vec<SortKey> = keys.cloned().collect();
    let plain = |key: &SortKey| matches!(key.expr.kind, ExprKind::Column(_));
    match keys.iter().all(plain) {
        true => keys,
        false => Vec::new(),
    }
}

/// Whether the first rows come out of the windows before all have come in.
pub(super) fn streams(block: &Block) -> bool {
    let call = |call: &WindowCall| match &call.function {
        OverWindow::Function(function) if !function.kind.has_frame() => !matches!(
            function.kind,
            WindowKind::PercentRank | WindowKind::CumeDist | WindowKind::Ntile
        ),
        _ => match call.frame.end {
            FrameBound::Unbounded => false,
            FrameBound::CurrentRow => call.frame.mode == FrameMode::Rows,
            FrameBound::Preceding(_) | FrameBound::Following(_) => true,
        },
    };
    let mut calls = block.windows.iter().flat_map(|window| &window.calls);
    block.windows.len() <= 1 && calls.all(call)
}
