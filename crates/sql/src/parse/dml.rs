//! Lowering of INSERT, UPDATE and DELETE.

use sqlite3_parser::ast as raw;
use sqlite3_parser::dialect::TokenType as T;

use super::Lowering;
use crate::ast::{
    Delete, Expr, Insert, InsertSource, Name, ResultColumn, Statement, Update, Upsert,
};
use crate::error::{Error, Result};
use crate::schema::ConflictAction;

/// ON CONFLICT's word.
pub(super) fn conflict(action: raw::ResolveType) -> ConflictAction {
    match action {
        raw::ResolveType::Rollback => ConflictAction::Rollback,
        raw::ResolveType::Abort => ConflictAction::Abort,
        raw::ResolveType::Fail => ConflictAction::Fail,
        raw::ResolveType::Ignore => ConflictAction::Ignore,
        raw::ResolveType::Replace => ConflictAction::Replace,
    }
}

impl Lowering<'_> {
    pub(super) fn insert(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::Insert {
            with,
            or_conflict,
            tbl_name,
            columns,
            body,
            returning,
        } = stmt
        else {
            return Err(Error::misuse("not an INSERT"));
        };
        let ctes = self.ctes(with.as_ref())?;
        let table = self.qualified(tbl_name);
        let alias = tbl_name.alias.as_ref().map(|n| self.name(n.0));
        let columns = columns.as_ref().map(|names| self.names(names));
        let mut upserts = Vec::new();
        let source = match body {
            raw::InsertBody::DefaultValues => InsertSource::Defaults,
            raw::InsertBody::Select(select, upsert) => {
                let select = self.select(select)?;
                upserts = self.upserts(*upsert)?;
                InsertSource::Select(Box::new(select))
            }
        };
        let returning = self.returning(*returning)?;
        let conflict = or_conflict.map(conflict);
        Ok(Statement::Insert(Box::new(Insert {
            ctes,
            conflict,
            table,
            alias,
            columns,
            source,
            upserts,
            returning,
        })))
    }

    pub(super) fn upserts(&mut self, first: Option<&raw::Upsert<'_>>) -> Result<Vec<Upsert>> {
        let (mut upserts, mut next) = (Vec::new(), first);
        while let Some(upsert) = next {
            upserts.push(self.upsert(upsert)?);
            next = upsert.next;
        }
        Ok(upserts)
    }

    fn upsert(&mut self, upsert: &raw::Upsert<'_>) -> Result<Upsert> {
        let (target, condition) = match &upsert.index {
            None => (Vec::new(), None),
            Some(index) => (
                self.sort_terms(index.targets)?,
                index
                    .where_clause
                    .as_ref()
                    .map(|e| self.expr(e))
                    .transpose()?,
            ),
        };
        let update = match &upsert.do_clause {
            raw::UpsertDo::Nothing => None,
            raw::UpsertDo::Set { sets, where_clause } => {
                let sets = self.sets(sets)?;
                Some((
                    sets,
                    where_clause.as_ref().map(|e| self.expr(e)).transpose()?,
                ))
            }
        };
        Ok(Upsert {
            target,
            condition,
            update,
        })
    }

    pub(super) fn sets(&mut self, sets: &[raw::Set<'_>]) -> Result<Vec<(Vec<Name>, Expr)>> {
        sets.iter()
            .map(|set| {
                let names = self.names(&set.col_names);
                Ok((names, self.expr(&set.expr)?))
            })
            .collect()
    }

    fn returning(
        &mut self,
        columns: Option<&[raw::ResultColumn<'_>]>,
    ) -> Result<Vec<ResultColumn>> {
        match columns {
            None => Ok(Vec::new()),
            Some(columns) => self.result_columns(columns, T::TK_RETURNING),
        }
    }

    pub(super) fn update(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::Update {
            with,
            or_conflict,
            tbl_name,
            indexed,
            sets,
            from,
            where_clause,
            returning,
            order_by,
            limit,
        } = stmt
        else {
            return Err(Error::misuse("not an UPDATE"));
        };
        if order_by.is_some() || limit.is_some() {
            let near = if order_by.is_some() { "ORDER" } else { "LIMIT" };
            return Err(Error::sql(format!("near \"{near}\": syntax error")));
        }
        let ctes = self.ctes(with.as_ref())?;
        let table = self.qualified(tbl_name);
        let alias = tbl_name.alias.as_ref().map(|n| self.name(n.0));
        let indexed = self.indexed(indexed.as_ref());
        let sets = self.sets(sets)?;
        let from = from.as_ref().map_or(Ok(Vec::new()), |f| self.from(f))?;
        let filter = where_clause.as_ref().map(|e| self.expr(e)).transpose()?;
        let returning = self.returning(*returning)?;
        let conflict = or_conflict.map(conflict);
        Ok(Statement::Update(Box::new(Update {
            ctes,
            conflict,
            table,
            alias,
            indexed,
            sets,
            from,
            filter,
            returning,
        })))
    }

    pub(super) fn delete(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::Delete {
            with,
            tbl_name,
            indexed,
            where_clause,
            returning,
            order_by,
            limit,
        } = stmt
        else {
            return Err(Error::misuse("not a DELETE"));
        };
        if order_by.is_some() || limit.is_some() {
            let near = if order_by.is_some() { "ORDER" } else { "LIMIT" };
            return Err(Error::sql(format!("near \"{near}\": syntax error")));
        }
        let ctes = self.ctes(with.as_ref())?;
        let table = self.qualified(tbl_name);
        let alias = tbl_name.alias.as_ref().map(|n| self.name(n.0));
        let indexed = self.indexed(indexed.as_ref());
        let filter = where_clause.as_ref().map(|e| self.expr(e)).transpose()?;
        let returning = self.returning(*returning)?;
        Ok(Statement::Delete(Box::new(Delete {
            ctes,
            table,
            alias,
            indexed,
            filter,
            returning,
        })))
    }
}
