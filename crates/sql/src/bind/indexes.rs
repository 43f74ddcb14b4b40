//! What indexes hold other than columns of all rows, in terms of a query's source.

use std::sync::Arc;

use super::Binder;
use super::logical::{KeyExpr, Partial, Source};
use super::scalar::conjuncts;
use crate::error::Result;
use crate::schema::{IndexTarget, Table};

impl Binder<'_> {
    /// Adds the conditions and key expressions of its table's indexes to a source.
    pub(super) fn indexes_of(&mut self, table: &Arc<Table>, source: &mut Source) -> Result<()> {
        let id = source.id;
        for (number, index) in table.indexes.iter().enumerate() {
            if let Some(predicate) = &index.predicate {
                let bound = self.row_frame(table, &table.name, id, |this| this.expr(predicate))?;
                source.partial.push(Partial {
                    index: number,
                    conditions: conjuncts(bound),
                });
            }
            for (part, column) in index.columns.iter().enumerate() {
                if let IndexTarget::Expr(expr) = &column.target {
                    let expr = self.row_frame(table, &table.name, id, |this| this.expr(expr))?;
                    source.computed.push(KeyExpr {
                        index: number,
                        part,
                        expr,
                    });
                }
            }
        }
        Ok(())
    }
}
