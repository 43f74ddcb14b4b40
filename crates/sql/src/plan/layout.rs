//! What an operator's row holds, in terms of the logical plan.

use super::few::Few;
use crate::bind::expr::{ColumnRef, Expr, ExprKind};

/// Where columns and computed expressions are in a row.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The column at each position, where it is one.
    columns: Vec<Option<ColumnRef>>,
    /// Expressions that are there already computed.
    computed: Vec<(ExprKind, usize)>,
}

impl Layout {
    /// A row of columns.
    pub fn of_columns(columns: impl IntoIterator<Item = ColumnRef>) -> Layout {
        Layout {
            columns: columns.into_iter().map(Some).collect(),
            computed: Vec::new(),
        }
    }

    /// A row of values that no expression names.
    pub fn unnamed(width: usize) -> Layout {
        Layout {
            columns: vec![None; width],
            computed: Vec::new(),
        }
    }

    /// Number of values.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// This row followed by another.
    pub fn join(&self, right: &Layout) -> Layout {
        let base = self.width();
        let mut joined = self.clone();
        joined.columns.extend(right.columns.iter().copied());
        joined.computed.extend(
            right
                .computed
                .iter()
                .map(|(kind, at)| (kind.clone(), at + base)),
        );
        joined
    }

    /// Adds a computed value at the end.
    pub fn push_computed(&mut self, kind: ExprKind) {
        let column = match kind {
            ExprKind::Column(column) => Some(column),
            _ => None,
        };
        self.computed.push((kind, self.columns.len()));
        self.columns.push(column);
    }

    /// The sources whose columns it has.
    pub fn sources(&self) -> Few<usize> {
        self.columns.iter().flatten().map(|c| c.source).collect()
    }

    /// Position of a column.
    pub fn column(&self, column: ColumnRef) -> Option<usize> {
        self.columns.iter().position(|c| *c == Some(column))
    }

    /// Position of an expression that is there as a whole. A constant is what it is
    /// everywhere: what it is part of may be evaluated without any row.
    pub fn computed(&self, expr: &Expr) -> Option<usize> {
        if expr.props.constant {
            return None;
        }
        if self.computed.is_empty() || !expr.props.deterministic {
            let is_result = matches!(expr.kind, ExprKind::Aggregate(_) | ExprKind::Window(..));
            if !is_result {
                return None;
            }
        }
        self.computed
            .iter()
            .find(|(kind, _)| *kind == expr.kind)
            .map(|(_, at)| *at)
    }
}
