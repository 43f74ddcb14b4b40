//! Columns of which only the type or the length is asked.
//!
//! `typeof(c)`, `c IS NULL`, `count(c)`, `length(c)` and `octet_length(c)` need none of a
//! value's bytes, but for `length()` of a text. Where a block asks nothing else of a column,
//! what reads its table yields the answers in place of the value, so that of a large value
//! only the row's start is read. What is stored decides in each row.

use smallvec::SmallVec;

use super::Planner;
use super::few::Few;
use super::layout::Layout;
use super::physical::ScanColumn;
use crate::bind::expr::{AggregateCall, ColumnRef, Expr, ExprKind, ROWID, SortKey, Windowing};
use crate::bind::logical::{Aggregation, Block, Source, SourceKind};
use crate::func::AggregateKind;
use crate::row::Property;
use crate::schema::Table;
use crate::value::Affinity;

/// A property of a column.
pub type Asked = (ColumnRef, Property);

/// A column, or a property of it that a row has in its place.
pub type Held = (ColumnRef, Option<Property>);

/// The properties that are asked of columns of which nothing else is.
#[derive(Default)]
pub struct Properties(Few<Asked>);

impl Properties {
    /// Those of a source.
    pub fn of(&self, source: usize) -> Few<(usize, Property)> {
        let own = self.0.iter().filter(|(column, _)| column.source == source);
        own.map(|(column, property)| (column.column, *property))
            .collect()
    }
}

/// What expressions read.
#[derive(Default)]
struct Uses {
    /// Columns whose values they need.
    values: SmallVec<[ColumnRef; 16]>,
    /// What else they ask.
    asked: SmallVec<[Asked; 4]>,
}

/// What an expression asks of a column, where it is that and nothing else.
pub fn asked(expr: &Expr) -> Option<Asked> {
    let (operand, property) = match &expr.kind {
        ExprKind::IsNull { expr, .. } => (expr.as_ref(), Property::Type),
        ExprKind::Function { function, args, .. } => {
            let [operand] = args.as_slice() else {
                return None;
            };
            let all = [Property::Type, Property::Length, Property::Octets];
            let property = all.into_iter().find(|it| it.name() == function.name)?;
            (operand, property)
        }
        _ => return None,
    };
    match operand.kind {
        ExprKind::Column(column) => Some((column, property)),
        _ => None,
    }
}

/// The same of an aggregate's argument.
pub fn asked_by(call: &AggregateCall) -> Option<Asked> {
    let counts = call.function.kind == AggregateKind::Count && !call.distinct;
    match call.args.as_slice() {
        [arg] if counts => match arg.kind {
            ExprKind::Column(column) => Some((column, Property::Type)),
            _ => None,
        },
        _ => None,
    }
}

/// Where a row has what an expression asks, as a whole.
pub fn place(expr: &Expr, layout: &Layout) -> Option<usize> {
    match asked(expr)? {
        // The value in its place is asked in the same way.
        (_, Property::Type) => None,
        (column, property) => layout.property(column, property),
    }
}

/// What a path to a table's rows yields of these columns, in a fixed order.
pub fn scan_columns(needed: &Few<usize>, asked: &Few<(usize, Property)>) -> Vec<ScanColumn> {
    // ROWID is the largest number; the row begins with it.
    let mut columns = Vec::with_capacity(needed.len());
    columns.extend(needed.contains(&ROWID).then_some(ScanColumn::Rowid));
    for column in needed.iter().filter(|column| **column != ROWID) {
        let before = columns.len();
        let own = asked.iter().filter(|(of, _)| of == column);
        columns.extend(own.map(|(of, property)| ScanColumn::Property(*of, *property)));
        if columns.len() == before {
            columns.push(ScanColumn::Column(*column));
        }
    }
    columns
}

impl<'a> Planner<'a, '_> {
    /// What a block and these conditions ask of its sources' columns.
    pub(super) fn properties<'e>(
        &self,
        block: &'e Block,
        conditions: impl Iterator<Item = &'e Expr>,
        order_by: &[SortKey],
    ) -> Properties {
        let mut uses = Uses::default();
        let outer = block.sources.iter().filter_map(|s| s.outer.as_ref());
        let outer = outer.flat_map(|outer| outer.on.iter().chain(&outer.before));
        let args = block.sources.iter().flat_map(Source::args);
        for expr in conditions.chain(outer).chain(args) {
            self.note_uses(expr, &mut uses);
        }
        let results = (block.outputs.iter())
            .chain(&block.having)
            .chain(order_by.iter().map(|key| &key.expr))
            .chain(block.windows.iter().flat_map(Windowing::exprs));
        match &block.aggregation {
            None => results.for_each(|expr| self.note_uses(expr, &mut uses)),
            Some(aggregation) => {
                let is_key = |expr: &Expr| {
                    let is_fixed = expr.props.deterministic && !expr.props.constant;
                    is_fixed
                        && aggregation
                            .keys
                            .iter()
                            .any(|(key, _)| key.kind == expr.kind)
                };
                results.for_each(|expr| self.note_uses_outside(expr, &is_key, &mut uses));
                self.note_aggregation(aggregation, &mut uses);
            }
        }
        self.only_asked(&block.sources, uses)
    }

    /// What the conditions of a semi-join ask of its source's columns.
    pub(super) fn properties_of_one<'e>(
        &self,
        source: &'e Source,
        conditions: impl Iterator<Item = &'e Expr>,
        shown: Option<usize>,
    ) -> Few<(usize, Property)> {
        let mut uses = Uses::default();
        conditions.for_each(|expr| self.note_uses(expr, &mut uses));
        let id = source.id;
        (uses.values).extend(shown.map(|column| ColumnRef { source: id, column }));
        self.only_asked([source], uses).of(id)
    }

    fn note_uses(&self, expr: &Expr, uses: &mut Uses) {
        self.note_uses_outside(expr, &|_| false, uses);
    }

    fn note_uses_outside(&self, expr: &Expr, is_known: &dyn Fn(&Expr) -> bool, uses: &mut Uses) {
        self.walk(expr, &mut |expr| {
            if is_known(expr) {
                return true;
            }
            if let Some(asked) = asked(expr) {
                let mut operand_is_known = false;
                (expr.kind).for_each_child(&mut |operand| operand_is_known = is_known(operand));
                uses.asked.extend((!operand_is_known).then_some(asked));
                return true;
            }
            if let ExprKind::Column(column) = expr.kind {
                uses.values.push(column);
                return true;
            }
            false
        });
    }

    /// What expressions over groups read of a row of each, but for what `is_known`.
    pub(super) fn bare<'e>(
        &self,
        exprs: impl Iterator<Item = &'e Expr>,
        is_known: &dyn Fn(&Expr) -> bool,
        layout: &Layout,
    ) -> Few<Held> {
        let mut uses = Uses::default();
        exprs.for_each(|expr| self.note_uses_outside(expr, is_known, &mut uses));
        let values = uses.values.into_iter().map(|column| (column, None));
        let asked = uses.asked.into_iter().map(|(column, property)| {
            let is_there = layout.property(column, property).is_some();
            (column, is_there.then_some(property))
        });
        values.chain(asked).collect()
    }

    fn note_aggregation(&self, aggregation: &Aggregation, uses: &mut Uses) {
        for (key, _) in &aggregation.keys {
            self.note_uses(key, uses);
        }
        for call in &aggregation.calls {
            match asked_by(call) {
                Some(asked) => uses.asked.push(asked),
                None => call.args.iter().for_each(|arg| self.note_uses(arg, uses)),
            }
            let order = call.order_by.iter().map(|key| &key.expr);
            let beside = call.filter.iter().chain(order);
            beside.for_each(|expr| self.note_uses(expr, uses));
        }
    }

    /// Of what is asked, that of columns which may be large and whose values nobody needs.
    fn only_asked<'e>(
        &self,
        sources: impl IntoIterator<Item = &'e Source>,
        mut uses: Uses,
    ) -> Properties {
        if uses.asked.is_empty() {
            return Properties::default();
        }
        let mut candidates = Few::new();
        for source in sources {
            if let SourceKind::Table(table) = &source.kind {
                self.note_generated(source, &mut uses);
                let own = uses.asked.iter().filter(|it| it.0.source == source.id);
                candidates.extend(own.filter(|it| is_worth(table, it, &uses.asked)).copied());
            }
        }
        let values: Few<ColumnRef> = uses.values.into_iter().collect();
        let asked = candidates.iter().filter(|it| !values.contains(&it.0));
        Properties(asked.copied().collect())
    }

    /// What those generated columns read that are computed when they are read.
    fn note_generated(&self, source: &Source, uses: &mut Uses) {
        for it in source.generated.iter().rev().filter(|it| !it.stored) {
            let asked = uses.asked.iter().map(|(column, _)| column);
            let column = ColumnRef {
                source: source.id,
                column: it.column,
            };
            if asked.chain(&uses.values).any(|read| *read == column) {
                self.note_uses(&it.expr, uses);
            }
        }
    }
}

/// Whether a column may be large. One that is declared to hold numbers hardly is, unless
/// its length is asked.
fn is_worth(table: &Table, (of, _): &Asked, all: &[Asked]) -> bool {
    let Some(column) = table.columns.get(of.column) else {
        return false;
    };
    let holds_bytes = matches!(column.affinity, Affinity::Text | Affinity::Blob);
    let is_measured = |it: &Asked| it.0 == *of && it.1 != Property::Type;
    let is_stored = !column.is_virtual() && table.rowid_alias != Some(of.column);
    is_stored && (holds_bytes || all.iter().any(is_measured))
}
