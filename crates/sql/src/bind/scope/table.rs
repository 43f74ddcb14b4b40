//! A source of FROM as names see it: the columns that it has under its alias, and what
//! each of them is as an expression.

use std::sync::Arc;

use crate::bind::expr::{ColumnRef, Expr, ExprKind, Props, ROWID};
use crate::bind::logical::QueryColumn;
use crate::bind::table_function;
use crate::func::table::TableFunction;
use crate::plan::physical::Origin;
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

    #[inline]
    fn table_column(&self, table: &Table, at: usize, is_new: bool) -> Found {
        let is_alias = table.rowid_alias == Some(at);
        let column = ColumnRef {
            source: self.source,
            column: if is_alias { ROWID } else { at },
        };
        let (name, decl_type, props) = match table.columns.get(at) {
            Some(c) => (
                c.name.clone(),
                c.decl_type.clone(),
                match is_new {
                    true => Props::column(None, None),
                    // The rowid brings no collation along.
                    false => {
                        let collation = Some(c.collation).filter(|_| !is_alias);
                        Props::column(Some(c.affinity), collation)
                    }
                },
            ),
            None => (String::new(), String::new(), Props::column(None, None)),
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

/// A column of a subquery that has been merged: what it computes.
fn merged_column(column: Option<&(QueryColumn, Expr)>) -> Found {
    let Some((column, expr)) = column else {
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

/// A column of a subquery that yields rows of its own.
fn query_column(column: Option<&QueryColumn>, read: ColumnRef) -> Found {
    let props = match column {
        Some(column) => column.props.as_column(),
        None => Props::column(None, None),
    };
    let output = column.map(|column| column.output.clone());
    Found {
        expr: Expr {
            kind: ExprKind::Column(read),
            props: Props {
                constant: false,
                deterministic: true,
                fallible: false,
                ..props
            },
        },
        name: output.as_ref().map_or(String::new(), |o| o.name.clone()),
        decl_type: output.as_ref().and_then(|o| o.decl_type.clone()),
        origin: output.and_then(|o| o.origin),
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
