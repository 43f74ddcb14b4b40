//! The columns of a view as PRAGMA table_info shows them, by SQLite's rules.

use super::Binder;
use super::logical::QueryColumn;
use super::names::name_columns;
use crate::error::Result;
use crate::schema::{Schema, View};
use crate::value::Affinity;

impl<'a> Binder<'a> {
    /// Names and types of a view's columns. Where the view lists another number of names
    /// than its query has columns it cannot be read, but has those that it lists.
    pub(super) fn view_columns(
        &mut self,
        view: &View,
        schema: &'a Schema,
    ) -> Result<Vec<(String, String)>> {
        let mut query = self.view_query(view, schema)?;
        let listed = &view.definition.columns;
        if listed.is_empty() || listed.len() == query.columns.len() {
            let columns = query.columns.iter().enumerate();
            let column = |(at, c): (usize, &QueryColumn)| {
                (c.output.name.clone(), column_type(c, query.affinity(at)))
            };
            return Ok(columns.map(column).collect());
        }
        let Some(first) = query.columns.first().cloned() else {
            return Ok(Vec::new());
        };
        query.columns = vec![first; listed.len()];
        for (column, name) in query.columns.iter_mut().zip(listed) {
            column.output.name = name.text.clone();
        }
        name_columns(&mut query.columns);
        let names = query.columns.into_iter().map(|c| c.output.name);
        Ok(names.map(|name| (name, String::new())).collect())
    }
}

/// The type of a column: the declared one, if it gives the affinity that the column has,
/// else a standard one that does.
fn column_type(column: &QueryColumn, affinity: Option<Affinity>) -> String {
    match column.output.decl_type() {
        Some(declared) if Some(Affinity::of_declared_type(declared)) == affinity => {
            return declared.to_owned();
        }
        _ => {}
    }
    let standard = match affinity {
        None => "",
        Some(Affinity::Blob) => "BLOB",
        Some(Affinity::Text) => "TEXT",
        Some(Affinity::Numeric) => "NUM",
        Some(Affinity::Integer) => "INT",
        Some(Affinity::Real) => "REAL",
    };
    standard.to_owned()
}
