//! Binding of CREATE INDEX: the table that is meant, whether the index may be made, and
//! what it holds.

use std::sync::Arc;

use super::Binder;
use super::ddl::{check_name, nothing, readable, sqlites_name};
use super::dml::{plain_query, whole_row};
use super::expr::Expr;
use super::logical::{Block, Bound, BoundIndex, IndexHint, Query, Source};
use super::refused::no_nulls_order;
use super::scalar::conjuncts;
use super::scope::{ScopeColumns, ScopeTable};
use crate::ast;
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::schema::{
    ConflictAction, Index, IndexColumn, IndexOrigin, SEQUENCE, Schema, Table, index_columns,
};

impl Binder<'_> {
    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> Result<Bound> {
        let schema = self.indexed_in(create)?;
        no_nulls_order(&create.columns)?;
        check_name(&create.name.name)?;
        let table = self.indexed_table(create, schema)?;
        if is_there(create, schema)? {
            return Ok(nothing());
        }
        self.changes(schema, false);
        self.check_collations(&[], &create.columns)?;
        let columns = index_columns(create, &table)?;
        let id = self.new_source()?;
        let (key, predicate) = self.index_exprs(create, &columns, &table, id)?;
        let source = self.index_rows(&table, id, key, predicate)?;
        let name = &create.name.name.text;
        let unique = if create.unique { "UNIQUE " } else { "" };
        let sql = readable(name, format!("CREATE {unique}INDEX {}", create.text))?;
        let index = Arc::new(Index {
            name: name.clone(),
            table: table.name.clone(),
            tree: table.tree.clone(),
            columns,
            unique: create.unique,
            conflict: ConflictAction::Abort,
            origin: IndexOrigin::Create,
            predicate: create.filter.clone(),
            sql: String::new(),
        });
        Ok(Bound::CreateIndex(Box::new(BoundIndex {
            name: name.clone(),
            sql,
            table,
            index,
            source,
        })))
    }

    /// What the entries of an index are made of: of each row of its table, the source of this
    /// number, that it holds, the rowid and the parts of the key.
    pub(super) fn index_rows(
        &mut self,
        table: &Arc<Table>,
        id: usize,
        key: Vec<Expr>,
        predicate: Option<Expr>,
    ) -> Result<Query> {
        let mut outputs = whole_row(table, id);
        outputs.truncate(1);
        outputs.extend(key);
        Ok(plain_query(Block {
            sources: vec![Source {
                // What an index has may be what is in question.
                index_hint: IndexHint::None,
                ..self.whole_source(table, id)?
            }],
            filter: predicate.map_or_else(Vec::new, conjuncts),
            outputs,
            ..Block::default()
        }))
    }

    /// The table of an index in this database, if it may have one.
    fn indexed_table(&self, create: &ast::CreateIndex, schema: &Schema) -> Result<Arc<Table>> {
        let of_other = ast::QualifiedName {
            schema: None,
            name: create.table.clone(),
        };
        if schema.is_temp() && !self.schema_of(&of_other).is_some_and(Schema::is_temp) {
            self.table(&of_other)?;
            let table = &create.table.text;
            let message = format!("cannot create a TEMP index on non-TEMP table \"{table}\"");
            return Err(Error::sql(message).with_offset(create.table.offset));
        }
        if schema.view(&create.table.text)?.is_some() {
            let error = Error::sql("views may not be indexed");
            return Err(error.with_offset(create.table.offset));
        }
        let database = self.catalog.name_of(schema);
        let qualified = ast::QualifiedName {
            schema: Some(ast::Name::synthetic(database)),
            name: create.table.clone(),
        };
        let table = self.table(&qualified).map_err(|e| {
            let error = Error::sql(format!("no such table: {database}.{}", create.table.text));
            let error = error.with_offset(create.table.offset);
            match e.hint() {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        })?;
        if table.tree == *schema.tree() || table.name == SEQUENCE {
            return Err(Error::sql(format!(
                "table {} may not be indexed",
                sqlites_name(&table)
            )));
        }
        Ok(table)
    }

    /// The key and the condition of the index over a row of its table, which is the source
    /// of this number.
    fn index_exprs(
        &mut self,
        create: &ast::CreateIndex,
        columns: &[IndexColumn],
        table: &Arc<Table>,
        id: usize,
    ) -> Result<(Vec<Expr>, Option<Expr>)> {
        let before = self.subqueries.len();
        let scope = ScopeTable {
            name: table.name.clone(),
            source: id,
            columns: ScopeColumns::Table(table.clone()),
            merged: Vec::new(),
            database: Some(table.tree.store_number()),
        };
        let ((key, predicate), _) = self.in_frame(|this| {
            this.frame().tables.push(scope);
            this.frame().definition = Some(Definition::Index);
            this.frame().is_key = true;
            let key = this.index_key(columns, table, id)?;
            this.frame().is_key = false;
            let predicate = create.filter.as_ref().map(|p| this.expr(p)).transpose()?;
            Ok((key, predicate))
        })?;
        self.check_index_exprs(&key, predicate.as_ref(), before)?;
        Ok((key, predicate))
    }

    fn check_index_exprs(
        &self,
        key: &[Expr],
        predicate: Option<&Expr>,
        subqueries_before: usize,
    ) -> Result<()> {
        let place = match predicate {
            Some(_) => "partial index WHERE clauses",
            None => "index expressions",
        };
        if self.subqueries.len() > subqueries_before {
            return Err(Error::sql(format!("subqueries prohibited in {place}")));
        }
        if !key.iter().chain(predicate).all(Expr::may_be_indexed) {
            return Err(Error::sql(format!(
                "non-deterministic functions prohibited in {place}"
            )));
        }
        if key.iter().any(Expr::has_parameter) {
            return Err(Error::sql("parameters prohibited in index expressions"));
        }
        if predicate.is_some_and(Expr::has_parameter) {
            return Err(Error::sql(
                "parameters prohibited in partial index WHERE clauses",
            ));
        }
        Ok(())
    }
}

/// Whether there is such an index already, and IF NOT EXISTS lets it be.
fn is_there(create: &ast::CreateIndex, schema: &Schema) -> Result<bool> {
    let name = &create.name.name;
    if schema.table(&name.text)?.is_some() || schema.view(&name.text)?.is_some() {
        let message = format!("there is already a table named {}", name.text);
        return Err(Error::sql(message).with_offset(name.offset));
    }
    match schema.has_index(&name.text) {
        true if !create.if_not_exists => {
            let message = format!("index {} already exists", name.text);
            Err(Error::sql(message).with_offset(name.offset))
        }
        there => Ok(there),
    }
}
