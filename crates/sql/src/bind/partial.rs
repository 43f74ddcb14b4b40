//! Which rows partial indexes hold, in terms of a query's source.

use std::sync::Arc;

use super::Binder;
use super::logical::Partial;
use super::scalar::conjuncts;
use crate::error::Result;
use crate::schema::Table;

impl Binder<'_> {
    /// The conditions of a table's partial indexes over source `id`.
    pub(super) fn partial_indexes(
        &mut self,
        table: &Arc<Table>,
        id: usize,
    ) -> Result<Vec<Partial>> {
        let mut partial = Vec::new();
        for (index, predicate) in table.indexes.iter().enumerate() {
            let Some(predicate) = &predicate.predicate else {
                continue;
            };
            let bound = self.row_frame(table, &table.name, id, |this| this.expr(predicate))?;
            partial.push(Partial {
                index,
                conditions: conjuncts(bound),
            });
        }
        Ok(partial)
    }
}
