//! Result columns of queries in FROM that nothing reads: nothing is read or computed for
//! their sake. A view of all columns costs what is asked of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Binder;
use super::expr::{ColumnRef, Expr, ExprKind, SortKey, Windowing};
use super::logical::{Block, Body, Query, Source, SourceKind};
use crate::plan::physical::CompoundOp;

impl Binder<'_> {
    /// Makes NULL of the columns of a bound block's sources that are queries and that
    /// neither the block nor its order reads, where who computes them cannot be told from
    /// who does not.
    pub(super) fn drop_unread(&self, block: &mut Block, order_by: &[SortKey]) {
        let is_query = |source: &Source| matches!(source.kind, SourceKind::Query(_));
        if !block.sources.iter().any(is_query) {
            return;
        }
        let mut read = BTreeSet::new();
        self.columns_of_block(block, order_by, &mut read);
        for source in &mut block.sources {
            // Those of a query that others read, too, stay.
            if let SourceKind::Query(query) = &mut source.kind
                && let Some(query) = Arc::get_mut(query)
            {
                let id = source.id;
                let is_read = |column| read.contains(&ColumnRef { source: id, column });
                self.drop_columns(query, &is_read);
            }
        }
    }

    fn drop_columns(&self, query: &mut Query, is_read: &dyn Fn(usize) -> bool) {
        let is_compound = matches!(query.body, Body::Compound { .. });
        if is_compound && (!query.order_by.is_empty() || !keeps_columns_apart(query)) {
            return;
        }
        let mut at = query;
        while matches!(at.body, Body::Compound { .. }) {
            let Body::Compound { left, right, .. } = &mut at.body else {
                return;
            };
            self.drop_of_select(right, is_read);
            at = left;
        }
        self.drop_of_select(at, is_read);
    }

    fn drop_of_select(&self, query: &mut Query, is_read: &dyn Fn(usize) -> bool) {
        let Body::Block(block) = &mut query.body else {
            return;
        };
        if block.distinct.is_some() {
            return;
        }
        let mut dropped = false;
        for (column, output) in block.outputs.iter_mut().enumerate() {
            let props = &output.props;
            let is_quiet = props.deterministic && !props.fallible;
            if is_quiet && !props.constant && !is_read(column) {
                *output = Expr::null();
                dropped = true;
            }
        }
        if dropped {
            crate::stack::grow(|| self.drop_unread(block, &query.order_by));
        }
    }

    /// Adds the columns that a block reads.
    fn columns_of_block(
        &self,
        block: &Block,
        order_by: &[SortKey],
        read: &mut BTreeSet<ColumnRef>,
    ) {
        let mut add = |expr: &Expr| self.columns_of(expr, read);
        let own = block.outputs.iter().chain(&block.having);
        own.chain(&block.filter).for_each(&mut add);
        order_by.iter().for_each(|key| add(&key.expr));
        for source in &block.sources {
            source.args().for_each(&mut add);
            let outer = source.outer.iter();
            let conditions = outer.flat_map(|outer| outer.on.iter().chain(&outer.before));
            conditions.for_each(&mut add);
        }
        let windows = block.windows.iter().flat_map(Windowing::exprs);
        windows.for_each(&mut add);
        if let Some(aggregation) = &block.aggregation {
            aggregation.keys.iter().for_each(|(key, _)| add(key));
            for call in &aggregation.calls {
                call.args.iter().chain(&call.filter).for_each(&mut add);
                call.order_by.iter().for_each(|key| add(&key.expr));
            }
        }
    }

    /// Adds the columns that an expression reads, or hands in to subqueries.
    fn columns_of(&self, expr: &Expr, read: &mut BTreeSet<ColumnRef>) {
        if let ExprKind::Column(column) = expr.kind {
            read.insert(column);
        }
        let subquery = expr.kind.subquery().and_then(|id| self.subqueries.get(id));
        for (_, binding) in subquery.map_or(&[][..], |it| &it.bindings) {
            crate::stack::grow(|| self.columns_of(binding, read));
        }
        expr.kind.for_each_child(&mut |child| {
            crate::stack::grow(|| self.columns_of(child, read));
        });
    }
}

/// Whether nothing is told by all columns of its rows: a chain of UNION ALL.
fn keeps_columns_apart(query: &Query) -> bool {
    let mut at = query;
    while let Body::Compound { op, left, .. } = &at.body {
        if *op != CompoundOp::UnionAll {
            return false;
        }
        at = left;
    }
    true
}
