//! What a statement's result columns are called, and the columns of tables that they are.

use std::sync::Arc;

use crate::schema::Table;

/// A result column.
#[derive(Debug, Clone)]
pub struct OutputColumn {
    /// Its name: the alias, the column's name, or the expression's text.
    pub name: String,
    /// The column of a table that it has its declared type of.
    pub typed_by: Option<Origin>,
    /// It is that column.
    pub is_stored: bool,
}

impl OutputColumn {
    /// An expression that is called so.
    pub fn named(name: impl Into<String>) -> OutputColumn {
        OutputColumn {
            name: name.into(),
            typed_by: None,
            is_stored: false,
        }
    }

    /// Its declared type, where it has one.
    pub fn decl_type(&self) -> Option<&str> {
        let declared = self.typed_by.as_ref().map(Origin::decl_type);
        declared.filter(|declared| !declared.is_empty())
    }

    /// Where it comes from, where it is a table's column.
    pub fn origin(&self) -> Option<&Origin> {
        self.typed_by.as_ref().filter(|_| self.is_stored)
    }
}

/// A column of a table, or its rowid.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The table.
    pub table: Arc<Table>,
    /// The column by number.
    pub at: usize,
}

impl Origin {
    /// The store of its database.
    pub fn store(&self) -> u64 {
        self.table.tree.store_number()
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// Its own.
    pub fn column(&self) -> &str {
        let column = self.table.columns.get(self.at);
        column.map_or("rowid", |column| &column.name)
    }

    fn decl_type(&self) -> &str {
        let column = self.table.columns.get(self.at);
        column.map_or("INTEGER", |column| &column.decl_type)
    }
}
