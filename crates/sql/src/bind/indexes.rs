//! What indexes hold other than columns of all rows, in terms of a query's source.

use std::sync::Arc;

use super::Binder;
use super::dml::table_source;
use super::from::index_hint;
use super::logical::{KeyExpr, Partial, Source};
use super::scalar::conjuncts;
use crate::ast::Indexed;
use crate::error::Result;
use crate::schema::{IndexTarget, Table};

impl Binder<'_> {
    /// A table as a block's source, with all that tells which indexes may find its rows.
    pub(super) fn indexed_source(
        &mut self,
        table: &Arc<Table>,
        name: String,
        id: usize,
        indexed: &Indexed,
    ) -> Result<Source> {
        let mut source = Source {
            index_hint: index_hint(indexed, table)?,
            ..table_source(table, name, id)
        };
        // They are written in texts of their own and know nothing of what is here.
        let uses = self.uses.take();
        let frames = std::mem::take(&mut self.frames);
        let bound = self.in_texts_of(table, |this| this.indexes_of(table, &mut source));
        self.frames = frames;
        self.uses = uses;
        bound?;
        source.generated = self.computed_columns(table, id)?;
        Ok(source)
    }

    /// A table as the source of all its rows.
    pub(super) fn whole_source(&mut self, table: &Arc<Table>, id: usize) -> Result<Source> {
        Ok(Source {
            generated: self.computed_columns(table, id)?,
            ..table_source(table, table.name.clone(), id)
        })
    }

    /// Adds the conditions and key expressions of its table's indexes to a source.
    fn indexes_of(&mut self, table: &Arc<Table>, source: &mut Source) -> Result<()> {
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
