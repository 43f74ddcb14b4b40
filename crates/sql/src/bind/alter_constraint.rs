//! Binding of ALTER TABLE of constraints: CHECK added, NOT NULL set and dropped, named ones
//! dropped.
//!
//! Only the table's text changes. Rows that are there must keep what is added.

use std::sync::Arc;

use super::Binder;
use super::alter::{of_kind, position_or};
use super::logical::{Bound, ForbiddingRows};
use crate::ast::{self, Name};
use crate::error::{Error, Result, code};
use crate::parse::constraint::{self, Dropped};
use crate::plan::physical::SchemaRewrite;
use crate::schema::{Table, table_shape};

impl Binder<'_> {
    pub(super) fn add_check(
        &mut self,
        table: &Arc<Table>,
        name: Option<&str>,
        condition: &ast::Expr,
        text: &str,
    ) -> Result<Bound> {
        let sql = placed(table, constraint::with(&table.sql, None, text))?;
        let altered = self.altered(table, sql)?;
        if let Some(name) = name.filter(|name| constraint::is_there(&table.sql, name)) {
            let message = format!("constraint {name} already exists");
            return Err(Error::sql(message));
        }
        let broken = of_kind(ast::ExprKind::Not(Box::new(condition.clone())));
        let forbidding = self.rows_that_break(table, &broken)?;
        Ok(Bound::Alter(altered, vec![forbidding]))
    }

    pub(super) fn set_not_null(
        &mut self,
        table: &Arc<Table>,
        column: &Name,
        text: &str,
    ) -> Result<Bound> {
        let at = position_or(table, column, &column.text)?;
        let without = constraint::without_not_null(&table.sql, at);
        let without = without.as_deref().unwrap_or(&table.sql);
        let sql = placed(table, constraint::with(without, Some(at), text))?;
        let altered = self.altered(table, sql)?;
        let is_null = of_kind(ast::ExprKind::IsNull {
            expr: Box::new(of_kind(ast::ExprKind::Column(column.clone()))),
            negated: false,
        });
        let forbidding = self.rows_that_break(table, &is_null)?;
        Ok(Bound::Alter(altered, vec![forbidding]))
    }

    pub(super) fn drop_not_null(&mut self, table: &Arc<Table>, column: &Name) -> Result<Bound> {
        let at = position_or(table, column, &column.text)?;
        let sql = constraint::without_not_null(&table.sql, at);
        let altered = self.altered(table, sql.unwrap_or_else(|| table.sql.clone()))?;
        Ok(Bound::Alter(altered, Vec::new()))
    }

    pub(super) fn drop_constraint(&mut self, table: &Arc<Table>, name: &str) -> Result<Bound> {
        let sql = match constraint::without(&table.sql, name) {
            Dropped::Text(sql) => sql,
            Dropped::Unknown => return Err(Error::sql(format!("no such constraint: {name}"))),
            Dropped::Kept => {
                let message = format!("constraint may not be dropped: {name}");
                return Err(Error::sql(message)
                    .with_hint("CHECK, NOT NULL and FOREIGN KEY constraints may be"));
            }
        };
        let altered = self.altered(table, sql)?;
        Ok(Bound::Alter(altered, Vec::new()))
    }

    /// The table's row of sqlite_schema with another text, which must be one of the table.
    fn altered(&mut self, table: &Arc<Table>, sql: String) -> Result<SchemaRewrite> {
        let parsed = crate::parse::parse(&sql)?.statement;
        let Some(ast::Statement::CreateTable(create)) = parsed else {
            return Err(cannot_place(table));
        };
        let shape = table_shape(&create)?;
        if shape.columns.len() != table.columns.len() {
            return Err(cannot_place(table));
        }
        self.check_shape(&table.name, &shape, &table.tree)?;
        Ok(SchemaRewrite {
            kind: "table".to_owned(),
            name: table.name.clone(),
            new_name: table.name.clone(),
            new_table: table.name.clone(),
            new_sql: Some(sql),
            in_temp: false,
        })
    }

    fn rows_that_break(
        &mut self,
        table: &Arc<Table>,
        condition: &ast::Expr,
    ) -> Result<ForbiddingRows> {
        Ok(ForbiddingRows {
            rows: self.rows_with(table, Some(condition))?,
            error: Error::new(code::CONSTRAINT, "constraint failed"),
        })
    }
}

fn placed(table: &Table, sql: Option<String>) -> Result<String> {
    sql.ok_or_else(|| cannot_place(table))
}

fn cannot_place(table: &Table) -> Error {
    Error::corrupt(format!("schema of {}", table.name))
}
