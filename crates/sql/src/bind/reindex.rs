//! Binding of REINDEX and ANALYZE: which indexes are meant.

use std::sync::Arc;

use super::Binder;
use super::ddl::nothing;
use super::dml::{plain_query, whole_row};
use super::logical::{Block, Bound, BoundReindex, IndexHint, Source};
use crate::ast;
use crate::error::{Error, Result};
use crate::plan::physical::Action;
use crate::schema::{Index, IndexTarget, Table};
use crate::value::Collation;

impl Binder<'_> {
    pub(super) fn reindex(&mut self, name: Option<&ast::QualifiedName>) -> Result<Bound> {
        let Some(name) = name else {
            return self.reindexed(|_| true);
        };
        self.in_main(name)?;
        let text = &name.name.text;
        if name.schema.is_none() {
            if let Some(collation) = Collation::by_name(text) {
                return self.reindexed(|index| orders_by(index, collation));
            }
            if text.eq_ignore_ascii_case("expressions") {
                return self.reindexed(has_expressions);
            }
        }
        if self.schema.view(text)?.is_some() {
            return Ok(nothing());
        }
        if let Some(table) = self.schema.table(text)? {
            let part = self.reindexed_table(&table, |_| true)?;
            return Ok(Bound::Reindex(part.into_iter().collect()));
        }
        if let Some((table, index)) = self.schema.index(text)? {
            let part = self.reindexed_table(&table, |other| other.name == index.name)?;
            return Ok(Bound::Reindex(part.into_iter().collect()));
        }
        let error = Error::sql("unable to identify the object to be reindexed");
        Err(error.with_offset(name.name.offset))
    }

    /// All indexes of which this is true.
    fn reindexed(&mut self, is_meant: impl Fn(&Index) -> bool) -> Result<Bound> {
        let mut parts = Vec::new();
        for table in self.all_tables()? {
            parts.extend(self.reindexed_table(&table, &is_meant)?);
        }
        Ok(Bound::Reindex(parts))
    }

    fn reindexed_table(
        &mut self,
        table: &Arc<Table>,
        is_meant: impl Fn(&Index) -> bool,
    ) -> Result<Option<BoundReindex>> {
        let meant = table.indexes.iter().filter(|index| is_meant(index));
        let names: Vec<String> = meant.map(|index| index.name.clone()).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let target = self.target(table)?;
        let id = self.new_source()?;
        let block = Block {
            sources: vec![Source {
                // What an index has is what is in question.
                index_hint: IndexHint::None,
                ..self.whole_source(table, id)?
            }],
            outputs: whole_row(table, id),
            ..Block::default()
        };
        Ok(Some(BoundReindex {
            target,
            names,
            source: plain_query(block),
        }))
    }

    /// What was found of these indexes is found anew when a plan next asks: the figures are
    /// no table's rows, so that there is nothing else to be made.
    pub(super) fn analyze(&mut self, name: Option<&ast::QualifiedName>) -> Result<Bound> {
        let tables = match name {
            None => self.all_tables()?,
            Some(name) if name.schema.is_none() && is_database(&name.name.text) => {
                self.all_tables()?
            }
            Some(name) => {
                self.in_main(name)?;
                let text = &name.name.text;
                match self.schema.index(text)? {
                    Some((table, _)) => vec![table],
                    None if self.schema.view(text)?.is_some() => Vec::new(),
                    None => vec![self.table(name)?],
                }
            }
        };
        let indexes = tables.iter().flat_map(|table| &table.indexes);
        let trees = indexes.map(|index| index.tree.id()).collect();
        Ok(Bound::Ready(Action::Analyze(trees), Vec::new()))
    }

    fn all_tables(&self) -> Result<Vec<Arc<Table>>> {
        let names = self.schema.table_names().iter();
        let tables = names.map(|name| self.schema.table(name));
        let tables: Vec<_> = tables.collect::<Result<_>>()?;
        Ok(tables.into_iter().flatten().collect())
    }
}

fn is_database(name: &str) -> bool {
    ["main", "temp"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name))
}

fn orders_by(index: &Index, collation: Collation) -> bool {
    index.columns.iter().any(|part| part.collation == collation)
}

fn has_expressions(index: &Index) -> bool {
    let is_expression = |target: &IndexTarget| matches!(target, IndexTarget::Expr(_));
    index.columns.iter().any(|part| is_expression(&part.target))
}
