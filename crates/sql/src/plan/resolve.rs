//! Columns to positions and registers; logical subqueries to plans.
//!
//! A subquery is planned once for each place its call ends up in, since the
//! bindings it takes depend on the row it is called with. One that takes none is
//! planned once, so that it runs once wherever its columns are asked for.

use super::Planner;
use super::keyed;
use super::layout::Layout;
use super::physical::{LimitClause, Node, Op, Subquery};
use super::properties;
use crate::bind::expr::{
    AggregateCall, ColumnRef, Expr, ExprKind, Props, Register, SortKey, SubqueryId,
};
use crate::bind::logical::LogicalSubquery;
use crate::error::{Error, Result};
use crate::row::Property;

/// Where a column's value comes from.
pub enum Rows<'l> {
    /// The operator's input row.
    Input(&'l Layout),
    /// Registers, which are allotted on demand: those a join stores from its
    /// left row.
    Registers(&'l Layout, &'l mut Vec<(Register, Expr)>),
    /// The operator's input row, which is a join's right row, and registers that the join
    /// stores from its left row.
    Pair(&'l Layout, &'l Layout, &'l mut Vec<(Register, Expr)>),
    /// Nowhere: constants only.
    None,
}

/// What is asked of a subquery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Its first row.
    Row,
    /// Whether it has any.
    Exists,
    /// Whether a row is among its rows.
    Members,
}

impl Planner<'_, '_> {
    /// An expression over an operator's input row.
    pub fn resolve(&mut self, expr: &Expr, layout: &Layout) -> Result<Expr> {
        self.resolve_rows(expr, &mut Rows::Input(layout))
    }

    pub fn resolve_all(&mut self, exprs: &[Expr], layout: &Layout) -> Result<Vec<Expr>> {
        exprs.iter().map(|e| self.resolve(e, layout)).collect()
    }

    /// An expression that reads no row.
    pub fn resolve_constant(&mut self, expr: &Expr) -> Result<Expr> {
        self.resolve_rows(expr, &mut Rows::None)
    }

    pub fn resolve_limit(&mut self, limit: Option<&LimitClause>) -> Result<Option<LimitClause>> {
        let Some(limit) = limit else { return Ok(None) };
        let resolve = |this: &mut Self, e: &Option<Expr>| {
            e.as_ref().map(|e| this.resolve_constant(e)).transpose()
        };
        Ok(Some(LimitClause {
            limit: resolve(self, &limit.limit)?,
            offset: resolve(self, &limit.offset)?,
        }))
    }

    /// The same of expressions that nothing else needs.
    pub fn resolve_each(&mut self, exprs: &mut [Expr], layout: &Layout) -> Result<()> {
        let mut rows = Rows::Input(layout);
        let mut exprs = exprs.iter_mut();
        exprs.try_for_each(|expr| self.resolve_in_place(expr, &mut rows))
    }

    pub fn resolve_rows(&mut self, expr: &Expr, rows: &mut Rows<'_>) -> Result<Expr> {
        let mut resolved = expr.clone();
        self.resolve_in_place(&mut resolved, rows)?;
        Ok(resolved)
    }

    pub(super) fn resolve_in_place(&mut self, expr: &mut Expr, rows: &mut Rows<'_>) -> Result<()> {
        if let Some(found) = self.find(expr, rows)? {
            *expr = found;
            return Ok(());
        }
        if self.ask_type(expr, rows) {
            return Ok(());
        }
        if let Some(looked_up) = self.in_as_lookup(expr, rows)? {
            *expr = looked_up;
            return Ok(());
        }
        if let ExprKind::Function { function, .. } = &expr.kind {
            self.deterministic &= function.is_deterministic();
        }
        if let ExprKind::UserFunction { function, .. } = &expr.kind {
            self.deterministic &= function.flags.deterministic;
        }
        let mut result = Ok(());
        expr.kind.for_each_child_mut(&mut |child| {
            if result.is_ok() {
                result = crate::stack::grow(|| self.resolve_in_place(child, rows));
            }
        });
        result?;
        let asked = match expr.kind {
            ExprKind::InSubquery { .. } | ExprKind::Members { .. } => Asked::Members,
            ExprKind::Exists(_) => Asked::Exists,
            _ => Asked::Row,
        };
        if let Some(id) = expr.kind.subquery_mut() {
            *id = self.plan_subquery(*id, rows, asked)?;
            if let Some(planned) = self.subqueries.get_mut(*id) {
                planned.asked = true;
            }
        }
        Ok(())
    }

    /// Where the row has the expression as a whole.
    pub(super) fn find(&mut self, expr: &Expr, rows: &mut Rows<'_>) -> Result<Option<Expr>> {
        let place = |layout: &Layout| match (&expr.kind, layout.computed(expr)) {
            (_, Some(at)) => Some(at),
            (ExprKind::Column(column), None) => layout.column(*column),
            _ => properties::place(expr, layout),
        };
        if let Some(found) = self.located(&place, expr.props, rows) {
            return Ok(Some(found));
        }
        match expr.kind {
            ExprKind::Column(_) | ExprKind::Aggregate(_) | ExprKind::Window(..) => {
                Err(Error::misuse("a column is not where the plan expects it"))
            }
            _ => Ok(None),
        }
    }

    /// What reads the value at a place of the row, if that has one for it.
    fn located(
        &mut self,
        place: &dyn Fn(&Layout) -> Option<usize>,
        props: Props,
        rows: &mut Rows<'_>,
    ) -> Option<Expr> {
        let (of_input, of_left, bindings) = match rows {
            Rows::Input(layout) => (place(layout), None, None),
            Rows::Registers(left, bindings) => (None, place(left), Some(bindings)),
            Rows::Pair(right, left, bindings) => (place(right), place(left), Some(bindings)),
            Rows::None => (None, None, None),
        };
        if let Some(at) = of_input {
            return Some(Expr::input(at, props));
        }
        let (value, bindings) = (Expr::input(of_left?, props), bindings?);
        let known = bindings
            .iter()
            .find(|(_, e)| e.kind == value.kind)
            .map(|(r, _)| *r);
        let register = known.unwrap_or_else(|| {
            let register = self.registers;
            self.registers += 1;
            bindings.push((register, value));
            register
        });
        Some(Expr {
            kind: ExprKind::Register(register),
            props,
        })
    }

    /// Has an expression ask the value that the row has for a column's type, if there is one.
    fn ask_type(&mut self, expr: &mut Expr, rows: &mut Rows<'_>) -> bool {
        let Some((column, Property::Type)) = properties::asked(expr) else {
            return false;
        };
        let place = |layout: &Layout| layout.property(column, Property::Type);
        let mut is_there = false;
        expr.kind.for_each_child_mut(&mut |operand| {
            if let Some(found) = self.located(&place, operand.props, rows) {
                *operand = found;
                is_there = true;
            }
        });
        is_there
    }

    pub(super) fn plan_subquery(
        &mut self,
        id: SubqueryId,
        rows: &mut Rows<'_>,
        asked: Asked,
    ) -> Result<SubqueryId> {
        let logical = self.logical;
        let subquery = logical
            .get(id)
            .ok_or_else(|| Error::misuse("no such subquery"))?;
        let shared = subquery.bindings.is_empty();
        if shared && let Some((_, planned)) = self.shared.iter().find(|(known, _)| *known == id) {
            return Ok(*planned);
        }
        let planned = self.subquery_where(subquery, Vec::new(), &[], rows, asked)?;
        if shared {
            self.shared.push((id, planned));
        }
        Ok(planned)
    }

    /// The plan of a subquery with these conditions besides its own, and with what is handed
    /// in for them.
    pub(super) fn subquery_where(
        &mut self,
        subquery: &LogicalSubquery,
        conditions: Vec<Expr>,
        handed_in: &[(Register, Expr)],
        rows: &mut Rows<'_>,
        asked: Asked,
    ) -> Result<SubqueryId> {
        let recursions = std::mem::take(&mut self.recursions);
        // In whichever order it is read, it writes nothing.
        let writes_rows = std::mem::take(&mut self.writes_rows);
        let (outer, pass) = self.begin_pass();
        let calls = match subquery.bindings.is_empty() {
            true => 1.0,
            false => self.calls * self.callers.unwrap_or(keyed::CALLS_UNKNOWN),
        };
        let outer_calls = std::mem::replace(&mut self.calls, calls);
        // Members are looked up, in whichever order they came.
        self.any_order = asked == Asked::Members;
        let query = |this: &mut Self| {
            crate::stack::grow(|| match conditions.is_empty() {
                true => this.query(&subquery.query),
                false => this.query_where(&subquery.query, conditions),
            })
        };
        let mut root = self.called(None, query)?;
        self.calls = outer_calls;
        if asked == Asked::Exists {
            root = without_results(root);
        }
        self.pass = outer;
        self.recursions = recursions;
        self.writes_rows = writes_rows;
        let mut bindings = Vec::with_capacity(subquery.bindings.len());
        for (register, expr) in subquery.bindings.iter().chain(handed_in) {
            bindings.push((*register, self.resolve_rows(expr, rows)?));
        }
        self.subqueries.push(Subquery {
            root,
            bindings,
            cacheable: subquery.cacheable,
            pass,
            asked: true,
        });
        Ok(self.subqueries.len() - 1)
    }

    pub fn resolve_sort(&mut self, keys: &[SortKey], layout: &Layout) -> Result<Vec<SortKey>> {
        keys.iter()
            .map(|key| {
                Ok(SortKey {
                    expr: self.resolve(&key.expr, layout)?,
                    ..key.clone()
                })
            })
            .collect()
    }

    pub fn resolve_call(&mut self, call: &AggregateCall, layout: &Layout) -> Result<AggregateCall> {
        let asked = properties::asked_by(call);
        let asked = asked.and_then(|(column, property)| layout.property(column, property));
        let args = match (asked, call.args.as_slice()) {
            (Some(at), [arg]) => vec![Expr::input(at, arg.props)],
            (_, args) => self.resolve_all(args, layout)?,
        };
        Ok(AggregateCall {
            function: call.function.clone(),
            args,
            distinct: call.distinct,
            collation: call.collation,
            filter: call
                .filter
                .as_ref()
                .map(|f| self.resolve(f, layout))
                .transpose()?,
            order_by: self.resolve_sort(&call.order_by, layout)?,
        })
    }

    /// Visits the columns that an expression reads, its subqueries' bindings included.
    pub fn for_each_column(&self, expr: &Expr, visit: &mut dyn FnMut(ColumnRef)) {
        self.for_each_column_outside(expr, &|_| false, visit);
    }

    /// The same, but for those that are read only within expressions `is_known`.
    pub fn for_each_column_outside(
        &self,
        expr: &Expr,
        is_known: &dyn Fn(&Expr) -> bool,
        visit: &mut dyn FnMut(ColumnRef),
    ) {
        self.walk(expr, &mut |expr| match expr.kind {
            _ if is_known(expr) => true,
            ExprKind::Column(column) => {
                visit(column);
                true
            }
            _ => false,
        });
    }

    /// Walks over an expression, its subqueries' bindings included, and not into what `visit`
    /// says that it is done with.
    pub fn walk(&self, expr: &Expr, visit: &mut dyn FnMut(&Expr) -> bool) {
        if visit(expr) {
            return;
        }
        let subquery = expr.kind.subquery().and_then(|id| self.logical.get(id));
        for (_, binding) in subquery.map_or(&[][..], |s| &s.bindings) {
            self.walk(binding, visit);
        }
        expr.kind.for_each_child(&mut |child| {
            crate::stack::grow(|| self.walk(child, visit));
        });
    }
}

/// Computes no results where only rows count.
fn without_results(node: Node) -> Node {
    let is_quiet = |expr: &Expr| expr.props.deterministic && !expr.props.fallible;
    match node.op {
        Op::Project { input, exprs } if exprs.iter().all(is_quiet) => *input,
        _ => node,
    }
}
