//! Generated columns where tables are read and written.
//!
//! One that is VIRTUAL is in no row, but may be in an index. Where a path to a table's rows
//! does not have it, the columns that it is computed from are read in its stead, and an
//! operator right above puts it behind them. Conditions on other columns come in between,
//! so that it is not computed for rows that do not count.

use super::Planner;
use super::access::Path;
use super::few::Few;
use super::layout::Layout;
use super::physical::{GeneratedColumn, Node, Op};
use crate::bind::expr::{ColumnRef, Expr, ExprKind};
use crate::bind::logical::{Generated, Source};
use crate::error::Result;

/// The columns that a path must find for these to be there, and those that are then
/// computed, each behind those that it reads.
pub(super) fn split<'s>(
    source: &'s Source,
    path: &Path,
    mut columns: Few<usize>,
) -> (Few<usize>, Vec<&'s Generated>) {
    let mut computed = Vec::new();
    let is_covering = matches!(path, Path::Index { covering: true, .. });
    if !is_covering {
        for it in source.generated.iter().rev().filter(|it| !it.stored) {
            if columns.remove(&it.column) {
                columns.extend(it.reads.iter().copied());
                computed.push(it);
            }
        }
        computed.reverse();
    }
    (columns, computed)
}

impl Planner<'_, '_> {
    /// Computes columns for the rows of a source that fulfil those of the conditions that
    /// read none of them; the others are left.
    pub(super) fn generated(
        &mut self,
        source: usize,
        node: Node,
        mut layout: Layout,
        computed: &[&Generated],
        conditions: &mut Vec<Expr>,
    ) -> Result<(Node, Layout)> {
        if computed.is_empty() {
            return Ok((node, layout));
        }
        let reads_computed = |this: &Self, condition: &Expr| {
            let mut reads = false;
            this.for_each_column(condition, &mut |read| {
                let is_read = |it: &&Generated| it.column == read.column;
                reads |= read.source == source && computed.iter().any(is_read);
            });
            reads
        };
        let (later, first): (Vec<Expr>, Vec<Expr>) = std::mem::take(conditions)
            .into_iter()
            .partition(|condition| reads_computed(self, condition));
        *conditions = later;
        let input = self.filtered(node, first, &layout)?;
        let mut exprs = Vec::with_capacity(computed.len());
        for it in computed {
            exprs.push((self.resolve(&it.expr, &layout)?, it.affinity));
            let column = it.column;
            layout.push_computed(ExprKind::Column(ColumnRef { source, column }));
        }
        let node = Node {
            width: layout.width(),
            rows: input.rows,
            op: Op::Generate {
                input: Box::new(input),
                columns: exprs,
            },
        };
        Ok((node, layout))
    }

    /// Generated columns over a table's row.
    pub(super) fn generated_row(
        &mut self,
        generated: &[Generated],
        row: &Layout,
    ) -> Result<Vec<GeneratedColumn>> {
        let resolved = generated.iter().map(|it| {
            Ok(GeneratedColumn {
                column: it.column,
                expr: self.resolve(&it.expr, row)?,
                affinity: it.affinity,
                stored: it.stored,
            })
        });
        resolved.collect()
    }
}
