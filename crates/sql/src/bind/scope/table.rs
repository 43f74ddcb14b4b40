//! A source of FROM as names see it: the columns that it has under its alias, and what
//! each of them is as an expression.

use std::sync::Arc;

use crate::bind::expr::{ColumnRef, Expr, ExprKind, Props, ROWID};
use crate::bind::logical::QueryColumn;
use crate::bind::table_function;
use crate::func::table::TableFunction;
use crate::plan::physical::{Origin, OutputColumn};
use crate::schema::Table;
use crate::value::Affinity;

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
#[derive(Debug)]
pub struct Found {
    /// The expression.
    pub expr: Expr,
    /// What it is called as a result, which most that are found never are.
    called: Called,
}

/// The name, type and origin of a column.
#[derive(Debug)]
enum Called {
    /// Those of a table's column, or of its rowid.
    Stored(Arc<Table>, usize),
    /// Others.
    As(Box<OutputColumn>),
}

impl Found {
    /// An expression that is called so.
    pub fn named(expr: Expr, name: &str) -> Found {
        Found::output(expr, OutputColumn::named(name))
    }

    fn output(expr: Expr, output: OutputColumn) -> Found {
        Found {
            expr,
            called: Called::As(Box::new(output)),
        }
    }

    /// The expression, and what it is called as a result.
    pub fn into_result(self) -> (Expr, OutputColumn) {
        let output = match self.called {
            Called::Stored(table, at) => {
                let origin = Origin { table, at };
                OutputColumn {
                    name: origin.column().to_owned(),
                    typed_by: Some(origin),
                    is_stored: true,
                }
            }
            Called::As(output) => *output,
        };
        (self.expr, output)
    }
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
    #[inline]
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
            ScopeColumns::Table(table) => self.table_column(table, at, false),
            ScopeColumns::NewRow(table) => self.table_column(table, at, true),
            ScopeColumns::Function(function) => {
                table_function::column(&**function, self.source, at)
            }
            ScopeColumns::Exprs(columns) => merged_column(columns.get(at)),
            ScopeColumns::Query(columns, base) => {
                let column = ColumnRef {
                    source: self.source,
                    column: base + at,
                };
                query_column(columns.get(at), column)
            }
        }
    }

    fn table_column(&self, table: &Arc<Table>, at: usize, is_new: bool) -> Found {
        let is_alias = table.rowid_alias == Some(at);
        let column = ColumnRef {
            source: self.source,
            column: if is_alias { ROWID } else { at },
        };
        let props = match table.columns.get(at) {
            Some(c) if !is_new => {
                // The rowid brings no collation along.
                let collation = Some(c.collation).filter(|_| !is_alias);
                Props::column(Some(c.affinity), collation)
            }
            _ => Props::column(None, None),
        };
        Found {
            expr: Expr {
                kind: ExprKind::Column(column),
                props,
            },
            called: Called::Stored(Arc::clone(table), at),
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
            return Some(Found::named(found.expr, ROWID_NAMES[0]));
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
            called: Called::Stored(Arc::clone(table), ROWID),
        })
    }
}

/// A column of a subquery that has been merged: what it computes.
fn merged_column(column: Option<&(QueryColumn, Expr)>) -> Found {
    let Some((column, expr)) = column else {
        return Found::named(Expr::null(), "");
    };
    let mut props = expr.props.as_column();
    if matches!(expr.kind, ExprKind::Column(_)) {
        props.json = expr.props.json;
    }
    let expr = Expr {
        kind: expr.kind.clone(),
        props,
    };
    Found::output(expr, column.output.clone())
}

/// A column of a subquery that yields rows of its own.
fn query_column(column: Option<&QueryColumn>, read: ColumnRef) -> Found {
    let props = match column {
        Some(column) => column.props.as_column(),
        None => Props::column(None, None),
    };
    let expr = Expr {
        kind: ExprKind::Column(read),
        props: Props {
            constant: false,
            deterministic: true,
            fallible: false,
            ..props
        },
    };
    match column {
        Some(column) => Found::output(expr, column.output.clone()),
        None => Found::named(expr, ""),
    }
}

/// The names of a rowid.
pub const ROWID_NAMES: [&str; 3] = ["rowid", "oid", "_rowid_"];

/// rowid, oid, _rowid_
pub fn is_rowid_name(name: &str) -> bool {
    ROWID_NAMES.iter().any(|n| n.eq_ignore_ascii_case(name))
}
