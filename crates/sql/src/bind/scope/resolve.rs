//! What a column's name stands for.
//!
//! The innermost SELECT that knows a name decides; within one, its tables come before
//! the aliases of its result columns. A name that two tables know is ambiguous.

use super::{Clause, Found, Frame, ScopeColumns, ScopeTable, is_rowid_name};
use crate::ast::{self, Name};
use crate::bind::Binder;
use crate::bind::expr::{Expr, ExprKind, Props};
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::schema::{Catalog, nearest};

/// A column's name as it is written: `name`, `table.name`, `schema.table.name`.
#[derive(Debug, Clone, Copy)]
pub struct ColumnName<'a> {
    /// The schema.
    pub schema: Option<&'a Name>,
    /// The table or alias.
    pub table: Option<&'a Name>,
    /// The column.
    pub name: &'a Name,
}

impl<'a> ColumnName<'a> {
    /// The name that an expression is.
    pub fn of(expr: &'a ast::Expr) -> Option<ColumnName<'a>> {
        match &expr.kind {
            ast::ExprKind::Column(name) => Some(ColumnName {
                schema: None,
                table: None,
                name,
            }),
            ast::ExprKind::Qualified {
                schema,
                table,
                column,
            } => Some(ColumnName {
                schema: schema.as_ref(),
                table: Some(table),
                name: column,
            }),
            _ => None,
        }
    }

    /// Where it begins.
    fn offset(&self) -> usize {
        self.schema.or(self.table).unwrap_or(self.name).offset
    }
}

impl std::fmt::Display for ColumnName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for qualifier in [self.schema, self.table].into_iter().flatten() {
            write!(f, "{}.", qualifier.text)?;
        }
        f.write_str(&self.name.text)
    }
}

fn ambiguous(column: ColumnName<'_>) -> Error {
    Error::sql(format!("ambiguous column name: {column}"))
        .with_hint("put the table's name or alias before it")
}

impl Frame {
    /// The column that `[table.]name` stands for in this frame alone.
    pub fn find(&self, column: ColumnName<'_>, database: Option<u64>) -> Result<Option<Found>> {
        let (name, table) = (column.name.text.as_str(), column.table);
        let may_be = |candidate: &ScopeTable| {
            table.is_none_or(|t| candidate.name.eq_ignore_ascii_case(&t.text))
                && (column.schema.is_none() || candidate.database == database && !self.has_values)
        };
        let mut found: Option<Found> = None;
        for (i, candidate) in self.tables.iter().enumerate().filter(|(_, t)| may_be(t)) {
            let Some(at) = candidate.position(name) else {
                continue;
            };
            if found.is_some() {
                if table.is_none() && candidate.yields(name) {
                    continue;
                }
                return Err(ambiguous(column));
            }
            let plain = match table {
                None => self.plain(i, name)?,
                Some(_) => None,
            };
            found = Some(plain.unwrap_or_else(|| candidate.column(at)));
        }
        let is_generated = self.definition == Some(Definition::Generated);
        if found.is_some() || !is_rowid_name(name) || self.is_key || is_generated {
            return Ok(found);
        }
        let mut rowids = self
            .tables
            .iter()
            .filter(|t| may_be(t) && (table.is_some() || !t.yields(name)))
            .filter_map(ScopeTable::rowid);
        let first = rowids.next();
        if first.is_some() && rowids.next().is_some() {
            return Err(ambiguous(column));
        }
        Ok(first)
    }

    /// A column that `*` stands for must have a name that means it alone.
    pub fn check_star(&self, at: usize, name: &str, catalog: &Catalog) -> Result<()> {
        let Some(table) = self.tables.get(at).filter(|t| !t.name.is_empty()) else {
            return Ok(());
        };
        let same_name = |(i, other): (usize, &ScopeTable)| {
            i != at
                && other.database == table.database
                && other.name.eq_ignore_ascii_case(&table.name)
                && other.position(name).is_some()
                && !other.yields(name)
                && !table.yields(name)
        };
        if !self.tables.iter().enumerate().any(same_name) {
            return Ok(());
        }
        let schema = match table.database {
            Some(store) => catalog.name_of_store(store),
            None => "*",
        };
        let table = &table.name;
        let message = format!("ambiguous column name: {schema}.{table}.{name}");
        Err(Error::sql(message).with_hint("give each of the tables an alias of its own"))
    }

    fn alias(&self, name: &str) -> Option<Found> {
        let (alias, expr) = self
            .aliases
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(name))?;
        Some(Found::named(expr.clone(), alias))
    }
}

impl Binder<'_> {
    /// The column or alias that a name stands for, innermost SELECT first.
    pub(in crate::bind) fn resolve(&mut self, column: ColumnName<'_>) -> Result<Option<Found>> {
        let name = column.name;
        let database = match column.schema.map(|name| self.catalog.named(&name.text)) {
            None => None,
            Some(Some(schema)) => Some(schema.tree().store_number()),
            Some(None) => return Ok(None),
        };
        let mut hit = None;
        for at in (0..self.frames.len()).rev() {
            let Some(frame) = self.frames.get(at).filter(|frame| !frame.hidden) else {
                continue;
            };
            let found = frame
                .find(column, database)
                .map_err(|e| e.with_offset(name.offset))?;
            if let Some(found) = found {
                hit = Some((at, found));
                break;
            }
            let alias = match column.table {
                None => frame.alias(&name.text),
                Some(_) => None,
            };
            if let Some(found) = alias {
                self.check_alias(at, name, &found.expr)?;
                hit = Some((at, found));
                break;
            }
            // What the innermost SELECT does not know may be OLD's or NEW's.
            if let Some(found) = self.trigger_column(column) {
                self.reached = 0;
                return Ok(Some(found));
            }
        }
        let Some((at, mut found)) = hit else {
            self.reached = 0;
            return Ok(self.trigger_column(column));
        };
        self.reached = self.reached.min(at);
        self.reach(at, &found.expr);
        if let (Some(uses), Some(frame)) = (&mut self.uses, self.frames.get(at)) {
            uses.name(frame, column.table, name);
        }
        let level = self.frames.get(at).map_or(0, |f| f.level);
        if self.asks_json == 0 || !self.asked_json(level, &mut found) {
            found.expr = self.capture(level, found.expr);
        }
        Ok(Some(found))
    }

    /// Tells the aggregates that are being bound which frame a name was found in.
    fn reach(&mut self, at: usize, expr: &Expr) {
        if self.reaches.is_empty() || !self.is_made_of_rows(at, expr) {
            return;
        }
        for reach in &mut self.reaches {
            if at <= reach.stands {
                reach.reads = reach.reads.max(Some(at));
            }
        }
    }

    fn is_made_of_rows(&self, at: usize, expr: &Expr) -> bool {
        let Some(frame) = self.frames.get(at).filter(|f| !f.has_values) else {
            return false;
        };
        let is_value = |table: &ScopeTable| {
            let ExprKind::Column(column) = &expr.kind else {
                return false;
            };
            matches!(table.columns, ScopeColumns::NewRow(_)) && table.source == column.source
        };
        !frame.tables.iter().any(is_value)
    }

    /// What SQLite says where a name is that of a result column with an aggregate.
    fn check_alias(&self, at: usize, name: &Name, expr: &Expr) -> Result<()> {
        let Some(frame) = self.frames.get(at) else {
            return Ok(());
        };
        let aggregate = self.find_aggregate(expr);
        let message = match (frame.clause, aggregate) {
            (Clause::Argument, Some(_)) => format!("misuse of aliased aggregate {}", name.text),
            (Clause::Filter, Some(aggregate)) => frame.misuse(aggregate),
            _ if !self.may_be_named_here(at, expr) => {
                format!("misuse of aliased window function {}", name.text)
            }
            _ => return Ok(()),
        };
        Err(Error::sql(message).with_offset(name.offset))
    }

    /// An expression of an outer level as the current one sees it.
    pub(in crate::bind) fn capture(&mut self, from: usize, mut expr: Expr) -> Expr {
        for level in self.levels.iter_mut().skip(from + 1) {
            let props = Props {
                fallible: false,
                deterministic: true,
                constant: false,
                ..expr.props
            };
            let known = level
                .captures
                .iter()
                .find(|(_, e)| *e == expr)
                .map(|(r, _)| *r);
            let register = known.unwrap_or_else(|| {
                let register = self.registers;
                self.registers += 1;
                level.captures.push((register, expr.clone()));
                register
            });
            expr = Expr {
                kind: ExprKind::Register(register),
                props,
            };
        }
        expr
    }

    /// SQLite's complaint about a name, with the nearest one in scope.
    pub(in crate::bind) fn no_such_column(&self, column: ColumnName<'_>) -> Error {
        let ColumnName { table, name, .. } = column;
        let visible = || {
            self.frames
                .iter()
                .rev()
                .filter(|f| !f.hidden)
                .flat_map(|f| &f.tables)
        };
        let qualifier = table.map(|t| t.text.as_str());
        let error = Error::sql(format!("no such column: {column}")).with_offset(column.offset());
        if let Some(table) = qualifier
            && !visible().any(|t| t.name.eq_ignore_ascii_case(table))
        {
            return match nearest(table, visible().map(|t| t.name.as_str())) {
                Some(near) => error.with_hint(format!(
                    "no table here is called {table}; did you mean \"{near}\"?"
                )),
                None => error.with_hint(format!("no table here is called {table}")),
            };
        }
        let of_table = |t: &&ScopeTable| qualifier.is_none_or(|q| t.name.eq_ignore_ascii_case(q));
        let names: Vec<&str> = visible()
            .filter(of_table)
            .flat_map(|t| (0..t.width()).map(|i| t.column_name(i)))
            .collect();
        match nearest(&name.text, names) {
            Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
            None if name.double_quoted => error.with_hint("a string is written in single quotes"),
            None => error,
        }
    }
}
