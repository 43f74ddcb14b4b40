//! Names in scope.
//!
//! Each SELECT has a [`Frame`] with its tables. Each subquery of an expression
//! opens a *level*: a name found in a frame of an outer level becomes a register
//! that the caller fills, level by level ([`Binder::capture`]). A subquery in
//! FROM has a frame of its own but no level; the frame around it is hidden
//! meanwhile, since it may not see its neighbours.

use std::sync::Arc;

use super::Binder;
use super::expr::{AggregateCall, ColumnRef, Expr, ExprKind, Props, ROWID, Register, Windowing};
use super::join::{PendingOn, SharedColumn};
use super::logical::QueryColumn;
use super::names::Naming;
use super::recursion::RecursiveTable;
use super::table_function::{self, PendingCall};
use super::window::NamedWindows;
use crate::ast::{self, Name};
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::func::table::TableFunction;
use crate::plan::physical::Origin;
use crate::schema::{Catalog, Table, nearest};
use crate::value::Affinity;

/// The names of one SELECT.
#[derive(Debug, Default)]
pub struct Frame {
    /// Sources in order.
    pub tables: Vec<ScopeTable>,
    /// Result columns with names, once bound.
    pub aliases: Vec<(String, Expr)>,
    /// Aggregates found so far.
    pub aggregates: Vec<AggregateCall>,
    /// Windows found so far.
    pub windows: Vec<Windowing>,
    /// Those that it names.
    pub named_windows: Option<Arc<NamedWindows>>,
    /// While what a window function is called with is bound.
    pub in_window: bool,
    /// What is being bound.
    pub clause: Clause,
    /// There is a GROUP BY, or an aggregate among the result columns.
    pub is_aggregate: bool,
    /// Its columns are values at hand, as those of RETURNING, so that no aggregate is
    /// made of them: one that reads them alone belongs to where it stands.
    pub has_values: bool,
    /// ON conditions still to be bound.
    pub pending: Vec<PendingOn>,
    /// Columns whose plain names may mean one of another table than the first.
    pub shared: Vec<SharedColumn>,
    /// How many tables stand before the last RIGHT or FULL JOIN.
    pub before_right: usize,
    /// While FROM is bound.
    pub hidden: bool,
    /// While an expression of the schema is bound for the rows that are written.
    pub definition: Option<Definition>,
    /// What its result columns are called by.
    pub naming: Naming,
    /// While the key of a new index is bound, which has neither rowid nor qualified names.
    pub is_key: bool,
    /// Calls of table-valued functions whose arguments are still to be bound.
    pub calls: Vec<PendingCall>,
    /// A recursive SELECT's own table, until FROM names it.
    pub recursive: Option<Box<RecursiveTable>>,
    /// The subquery level it belongs to.
    pub level: usize,
}

/// The clause of a SELECT that is being bound, as far as aggregates care.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clause {
    /// One in which no aggregate may stand.
    #[default]
    Other,
    /// The result columns.
    Results,
    /// WHERE and ON.
    Filter,
    /// GROUP BY.
    Grouping,
    /// HAVING.
    Having,
    /// ORDER BY.
    Order,
    /// What an aggregate is called with.
    Argument,
}

/// An aggregate whose arguments are being bound.
#[derive(Debug)]
pub struct Reach {
    /// The frame it stands in.
    pub stands: usize,
    /// The innermost frame from there outwards of which it reads a column.
    pub reads: Option<usize>,
}

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

/// A common table expression in scope.
#[derive(Debug)]
pub struct ScopedCte {
    /// What it is.
    pub cte: Arc<ast::Cte>,
    /// How many are in scope up to the end of its WITH clause: those that it sees.
    pub sees: usize,
    /// While it is being bound, so that it may not be named: what naming it would be.
    pub refused: Option<&'static str>,
    /// The affinities of its columns, where it is recursive and has been bound before.
    pub affinities: Option<Vec<Option<Affinity>>>,
}

/// A source as names see it.
#[derive(Debug)]
pub struct ScopeTable {
    /// Alias or name.
    pub name: String,
    /// Its number.
    pub source: usize,
    /// Its columns.
    pub columns: ScopeColumns,
    /// Columns that plain names mean a table before it by: those that USING or NATURAL
    /// merged into one.
    pub merged: Vec<String>,
    /// The store of the database that it is a table or view of, whose name may stand
    /// before it.
    pub database: Option<u64>,
}

/// Columns of a source.
#[derive(Debug)]
pub enum ScopeColumns {
    /// A table's.
    Table(Arc<Table>),
    /// Those of the row that INSERT could not write, `excluded`. They have neither
    /// affinity nor collation, as in SQLite, where they are values in registers.
    NewRow(Arc<Table>),
    /// Expressions over other sources: a subquery that has been merged.
    Exprs(Vec<(QueryColumn, Expr)>),
    /// A subquery's, from `base` on in the source.
    Query(Vec<QueryColumn>, usize),
    /// Those of a table-valued function.
    Function(Arc<dyn TableFunction>),
}

/// A column that a name stands for.
#[derive(Debug, Clone)]
pub struct Found {
    /// The expression.
    pub expr: Expr,
    /// The column's own name.
    pub name: String,
    /// Declared type.
    pub decl_type: Option<String>,
    /// Table and column.
    pub origin: Option<Origin>,
}

/// What the caller of a subquery hands in.
#[derive(Debug, Default)]
pub struct Level {
    /// Register and the caller's expression.
    pub captures: Vec<(Register, Expr)>,
    /// Something in it may raise.
    pub fallible: bool,
    /// Something in it is not deterministic.
    pub volatile: bool,
}

impl ScopeTable {
    /// Number of columns `*` shows.
    pub fn width(&self) -> usize {
        match &self.columns {
            ScopeColumns::Table(table) | ScopeColumns::NewRow(table) => table.columns.len(),
            ScopeColumns::Query(columns, _) => columns.len(),
            ScopeColumns::Exprs(columns) => columns.len(),
            ScopeColumns::Function(function) => function.columns().len(),
        }
    }

    /// Name of a column.
    pub fn column_name(&self, at: usize) -> &str {
        match &self.columns {
            ScopeColumns::Table(table) | ScopeColumns::NewRow(table) => {
                table.columns.get(at).map_or("", |c| c.name.as_str())
            }
            ScopeColumns::Query(columns, _) => {
                columns.get(at).map_or("", |c| c.output.name.as_str())
            }
            ScopeColumns::Exprs(columns) => {
                columns.get(at).map_or("", |(c, _)| c.output.name.as_str())
            }
            ScopeColumns::Function(function) => table_function::column_name(&**function, at),
        }
    }

    /// Position of the column of a name, also of one that `*` does not show.
    pub fn position(&self, name: &str) -> Option<usize> {
        let hidden = match &self.columns {
            ScopeColumns::Function(function) => function.hidden().len(),
            _ => 0,
        };
        (0..self.width() + hidden).find(|i| self.column_name(*i).eq_ignore_ascii_case(name))
    }

    /// A column by position.
    pub fn column(&self, at: usize) -> Found {
        match &self.columns {
            ScopeColumns::Table(table) | ScopeColumns::NewRow(table) => {
                let alias = table.rowid_alias == Some(at);
                let is_new = matches!(self.columns, ScopeColumns::NewRow(_));
                let (name, decl_type, props) = match table.columns.get(at) {
                    Some(c) => (
                        c.name.clone(),
                        c.decl_type.clone(),
                        match is_new {
                            true => Props::column(None, None),
                            // The rowid brings no collation along.
                            false => Props::column(
                                Some(c.affinity),
                                Some(c.collation).filter(|_| !alias),
                            ),
                        },
                    ),
                    None => (String::new(), String::new(), Props::column(None, None)),
                };
                let column = ColumnRef {
                    source: self.source,
                    column: if alias { ROWID } else { at },
                };
                Found {
                    expr: Expr {
                        kind: ExprKind::Column(column),
                        props,
                    },
                    origin: Some(origin(table, &name)),
                    decl_type: Some(decl_type).filter(|t| !t.is_empty()),
                    name,
                }
            }
            ScopeColumns::Function(function) => {
                table_function::column(&**function, self.source, at)
            }
            ScopeColumns::Exprs(columns) => {
                let Some((column, expr)) = columns.get(at) else {
                    return Found {
                        expr: Expr::null(),
                        name: String::new(),
                        decl_type: None,
                        origin: None,
                    };
                };
                let mut props = expr.props.as_column();
                if matches!(expr.kind, ExprKind::Column(_)) {
                    props.json = expr.props.json;
                }
                Found {
                    expr: Expr {
                        kind: expr.kind.clone(),
                        props,
                    },
                    name: column.output.name.clone(),
                    decl_type: column.output.decl_type.clone(),
                    origin: column.output.origin.clone(),
                }
            }
            ScopeColumns::Query(columns, base) => {
                let column = ColumnRef {
                    source: self.source,
                    column: base + at,
                };
                let (output, props) = match columns.get(at) {
                    Some(c) => (Some(c.output.clone()), c.props.as_column()),
                    None => (None, Props::column(None, None)),
                };
                let props = Props {
                    constant: false,
                    deterministic: true,
                    fallible: false,
                    ..props
                };
                Found {
                    expr: Expr {
                        kind: ExprKind::Column(column),
                        props,
                    },
                    name: output.as_ref().map_or(String::new(), |o| o.name.clone()),
                    decl_type: output.as_ref().and_then(|o| o.decl_type.clone()),
                    origin: output.and_then(|o| o.origin),
                }
            }
        }
    }

    /// Whether a plain name means a column of a table before this one.
    pub fn yields(&self, name: &str) -> bool {
        self.merged.iter().any(|m| m.eq_ignore_ascii_case(name))
    }

    /// The rowid, where it has one.
    pub fn rowid(&self) -> Option<Found> {
        if let ScopeColumns::Function(function) = &self.columns {
            let found = table_function::column(&**function, self.source, ROWID);
            let name = "rowid".to_owned();
            return Some(Found { name, ..found });
        }
        let (ScopeColumns::Table(table) | ScopeColumns::NewRow(table)) = &self.columns else {
            return None;
        };
        if table.without_rowid {
            return None;
        }
        if let Some(alias) = table.rowid_alias {
            return Some(self.column(alias));
        }
        let column = ColumnRef {
            source: self.source,
            column: ROWID,
        };
        let props = Props::column(Some(Affinity::Integer), None);
        Some(Found {
            expr: Expr {
                kind: ExprKind::Column(column),
                props,
            },
            name: "rowid".to_owned(),
            decl_type: Some("INTEGER".to_owned()),
            origin: Some(origin(table, "rowid")),
        })
    }
}

fn origin(table: &Table, column: &str) -> Origin {
    Origin {
        store: table.tree.store_number(),
        table: table.name.clone(),
        column: column.to_owned(),
    }
}

/// The names of a rowid.
pub const ROWID_NAMES: [&str; 3] = ["rowid", "oid", "_rowid_"];

/// rowid, oid, _rowid_
pub fn is_rowid_name(name: &str) -> bool {
    ROWID_NAMES.iter().any(|n| n.eq_ignore_ascii_case(name))
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

impl Binder<'_> {
    /// Runs `f` where the expressions of a WITH clause are known.
    pub(super) fn with_ctes<T>(
        &mut self,
        ctes: &[Arc<ast::Cte>],
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = self.ctes.len();
        let sees = outer + ctes.len();
        self.ctes.extend(ctes.iter().map(|cte| ScopedCte {
            cte: cte.clone(),
            sees,
            refused: None,
            affinities: None,
        }));
        let result = f(self);
        if self.uses.is_some() {
            self.uses_of_ctes(outer);
        }
        self.ctes.truncate(outer);
        result
    }

    /// The column or alias that a name stands for, innermost SELECT first.
    pub(super) fn resolve(&mut self, column: ColumnName<'_>) -> Result<Option<Found>> {
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
                return Ok(Some(found));
            }
        }
        let Some((at, mut found)) = hit else {
            return Ok(self.trigger_column(column));
        };
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
    pub(super) fn capture(&mut self, from: usize, mut expr: Expr) -> Expr {
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
    pub(super) fn no_such_column(&self, column: ColumnName<'_>) -> Error {
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

impl Frame {
    fn alias(&self, name: &str) -> Option<Found> {
        let (alias, expr) = self
            .aliases
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(name))?;
        Some(Found {
            expr: expr.clone(),
            name: alias.clone(),
            decl_type: None,
            origin: None,
        })
    }

    /// An aggregate may stand in what is being bound.
    pub fn may_hold_aggregates(&self) -> bool {
        match self.clause {
            Clause::Results | Clause::Grouping | Clause::Having | Clause::Order => true,
            Clause::Filter => self.is_aggregate,
            Clause::Other | Clause::Argument => false,
        }
    }

    /// SQLite's complaint about an aggregate of this SELECT that is where it may not be.
    pub fn misuse(&self, aggregate: usize) -> String {
        let call = self.aggregates.get(aggregate);
        let name = call.map_or("", |call| &call.function.name);
        format!("misuse of aggregate: {name}()")
    }
}
