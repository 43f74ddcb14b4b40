//! Binding of REINDEX and ANALYZE: which indexes are meant.

use std::sync::Arc;

use super::Binder;
use super::ddl::nothing;
use super::logical::{Bound, BoundReindex};
use crate::ast;
use crate::error::{Error, Result};
use crate::plan::physical::Action;
use crate::schema::{Index, IndexTarget, Schema, TEMP, Table};
use crate::value::Collation;
use crate::value::collate::CollationName;

impl<'a> Binder<'a> {
    pub(super) fn reindex(&mut self, name: Option<&ast::QualifiedName>) -> Result<Bound> {
        let Some(name) = name else {
            return self.reindexed(|_| true);
        };
        let text = &name.name.text;
        match &name.schema {
            Some(schema) => {
                self.database(schema)?;
            }
            None => {
                if let Some(collation) = Collation::by_name(text) {
                    return self.reindexed(|index| orders_by(index, collation));
                }
                // No index is ordered by one of the program.
                let collation = CollationName::known(text);
                if collation.is_some_and(|it| self.settings.user.collations().has(it)) {
                    return Ok(nothing());
                }
                if text.eq_ignore_ascii_case("expressions") {
                    return self.reindexed(has_expressions);
                }
            }
        }
        let Some(schema) = self.schema_of_table_or_index(name) else {
            let error = Error::sql("unable to identify the object to be reindexed");
            return Err(error.with_offset(name.name.offset));
        };
        if schema.view(text)?.is_some() {
            return Ok(nothing());
        }
        self.changes(schema, false);
        let part = match schema.table(text)? {
            Some(table) => self.reindexed_table(&table, |_| true)?,
            None => match schema.index(text)? {
                Some((table, index)) => {
                    self.reindexed_table(&table, |other| other.name == index.name)?
                }
                None => None,
            },
        };
        Ok(part.map_or_else(nothing, |part| Bound::Reindex(vec![part])))
    }

    /// All indexes of all databases of which this is true.
    fn reindexed(&mut self, is_meant: impl Fn(&Index) -> bool) -> Result<Bound> {
        let (mut parts, mut changed) = (Vec::new(), Vec::new());
        for schema in self.catalog.search_all() {
            let before = parts.len();
            for table in tables_of(schema)? {
                parts.extend(self.reindexed_table(&table, &is_meant)?);
            }
            changed.extend((parts.len() > before).then_some(schema));
        }
        self.changes_all(&changed);
        match parts.is_empty() {
            true => Ok(nothing()),
            false => Ok(Bound::Reindex(parts)),
        }
    }

    /// The database that has a table, view or index of this name.
    fn schema_of_table_or_index(&self, name: &ast::QualifiedName) -> Option<&'a Schema> {
        let text = &name.name.text;
        let key = text.to_ascii_lowercase();
        let holds = |schema: &Schema| schema.holds(&key) || schema.has_index(text);
        let schema = self.schema_where(name.schema.as_ref(), holds);
        schema.filter(|schema| holds(schema))
    }

    fn reindexed_table(
        &mut self,
        table: &Arc<Table>,
        is_meant: impl Fn(&Index) -> bool,
    ) -> Result<Option<BoundReindex>> {
        let mut indexes = Vec::new();
        for (at, index) in table.indexes.iter().enumerate() {
            if !is_meant(index) {
                continue;
            }
            let target = self.target(table)?;
            let made = target.indexes.into_iter().nth(at);
            let (key, predicate) = made.ok_or_else(|| Error::corrupt("an index has no key"))?;
            let rows = self.index_rows(table, target.id, key, predicate)?;
            indexes.push((index.clone(), rows));
        }
        if indexes.is_empty() {
            return Ok(None);
        }
        Ok(Some(BoundReindex {
            schema: self.catalog.of(&table.tree).tree().clone(),
            table: table.clone(),
            indexes,
        }))
    }

    /// What was found of these indexes is found anew when a plan next asks: the figures are
    /// no table's rows, so that there is nothing else to be made.
    pub(super) fn analyze(&mut self, name: Option<&ast::QualifiedName>) -> Result<Bound> {
        let mut tables = Vec::new();
        match name {
            None => {
                for schema in self.catalog.in_order() {
                    tables.extend(tables_of(schema)?);
                }
            }
            Some(name) => {
                let text = &name.name.text;
                let named = match &name.schema {
                    Some(schema) => {
                        self.database(schema)?;
                        None
                    }
                    None => self.catalog.named(text),
                };
                if let Some(schema) = named {
                    tables = tables_of(schema)?;
                } else if name.schema.is_none() && text.eq_ignore_ascii_case(TEMP) {
                    // Nothing is in it yet.
                } else if let Some(schema) = self.schema_of_table_or_index(name) {
                    match schema.index(text)? {
                        Some((table, _)) => tables.push(table),
                        None => tables.extend(schema.table(text)?),
                    }
                } else {
                    tables.push(self.table(name)?);
                }
            }
        }
        let indexes = tables.iter().flat_map(|table| &table.indexes);
        let trees = indexes.map(|index| index.tree.clone()).collect();
        Ok(Bound::Ready(Action::Analyze(trees), Vec::new()))
    }
}

fn tables_of(schema: &Schema) -> Result<Vec<Arc<Table>>> {
    let names = schema.table_names().iter();
    let tables = names.map(|name| schema.table(name));
    let tables: Vec<_> = tables.collect::<Result<_>>()?;
    Ok(tables.into_iter().flatten().collect())
}

fn orders_by(index: &Index, collation: Collation) -> bool {
    index.columns.iter().any(|part| part.collation == collation)
}

fn has_expressions(index: &Index) -> bool {
    let is_expression = |target: &IndexTarget| matches!(target, IndexTarget::Expr(_));
    index.columns.iter().any(|part| is_expression(&part.target))
}
