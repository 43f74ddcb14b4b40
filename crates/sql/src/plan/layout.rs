//! What an operator's row holds, in terms of the logical plan.

use super::few::Few;
use super::physical::ScanColumn;
use super::properties::Held;
use crate::bind::expr::{ColumnRef, Expr, ExprKind};
use crate::row::Property;

/// Where columns and computed expressions are in a row.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The column at each position, where it is one, or the property of it that is there.
    columns: Vec<Option<Held>>,
    /// Expressions that are there already computed.
    computed: Vec<(ExprKind, usize)>,
}

impl Layout {
    /// A row of columns.
    pub fn of_columns(columns: impl IntoIterator<Item = ColumnRef>) -> Layout {
        Layout {
            columns: columns.into_iter().map(|c| Some((c, None))).collect(),
            computed: Vec::new(),
        }
    }

    /// What a path to a table's rows yields.
    pub fn of_table(source: usize, columns: &[ScanColumn]) -> Layout {
        let held = columns.iter().map(|scanned| {
            let column = scanned.number();
            let property = match scanned {
                ScanColumn::Property(_, property) => Some(*property),
                _ => None,
            };
            Some((ColumnRef { source, column }, property))
        });
        Layout {
            columns: held.collect(),
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
            ExprKind::Column(column) => Some((column, None)),
            _ => None,
        };
        self.computed.push((kind, self.columns.len()));
        self.columns.push(column);
    }

    /// Adds a property of a column at the end.
    pub fn push_property(&mut self, column: ColumnRef, property: Property) {
        self.columns.push(Some((column, Some(property))));
    }

    /// The sources whose columns it has.
    pub fn sources(&self) -> Few<usize> {
        let columns = self.columns.iter().flatten();
        columns.map(|(column, _)| column.source).collect()
    }

    /// Position of a column.
    pub fn column(&self, column: ColumnRef) -> Option<usize> {
        let wanted = Some((column, None));
        self.columns.iter().position(|held| *held == wanted)
    }

    /// Position of a property of a column.
    pub fn property(&self, column: ColumnRef, property: Property) -> Option<usize> {
        let wanted = Some((column, Some(property)));
        self.columns.iter().position(|held| *held == wanted)
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
