//! What a statement's columns are called and declared as, and whether tables
//! and columns exist.

use crate::{Connection, Error, Name, Result, Statement};

/// A column of a statement's result.
#[derive(Debug)]
pub struct Column<'stmt> {
    name: &'stmt str,
    decl_type: Option<&'stmt str>,
}

impl Column<'_> {
    /// The column's name: its alias, or what it selects.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// The type as written in CREATE TABLE; None for an expression.
    #[inline]
    #[must_use]
    pub fn decl_type(&self) -> Option<&str> {
        self.decl_type
    }
}

impl Statement<'_> {
    /// The names of all columns.
    pub fn column_names(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        (0..self.column_count()).map(|i| self.name_or_empty(i))
    }

    /// How many columns the statement returns; 0 where it returns no rows.
    #[inline]
    pub fn column_count(&self) -> usize {
        self.handle.as_ref().map_or(0, |h| h.column_count())
    }

    pub(crate) fn name_or_empty(&self, column: usize) -> &str {
        self.handle
            .as_ref()
            .and_then(|h| h.column_name(column))
            .unwrap_or_default()
    }

    /// The name of one column, counted from 0.
    ///
    /// # Errors
    /// [`Error::InvalidColumnIndex`].
    #[inline]
    pub fn column_name(&self, column: usize) -> Result<&str> {
        self.handle
            .as_ref()
            .and_then(|h| h.column_name(column))
            .ok_or(Error::InvalidColumnIndex(column))
    }

    /// The number of the first column of this name; case does not matter.
    ///
    /// # Errors
    /// [`Error::InvalidColumnName`].
    #[inline]
    pub fn column_index(&self, name: &str) -> Result<usize> {
        match self
            .column_names()
            .position(|n| n.eq_ignore_ascii_case(name))
        {
            Some(column) => Ok(column),
            None => Err(Error::InvalidColumnName(name.to_owned())),
        }
    }

    /// Names and declared types of all columns.
    pub fn columns(&self) -> impl DoubleEndedIterator<Item = Column<'_>> + ExactSizeIterator {
        (0..self.column_count()).map(|i| Column {
            name: self.name_or_empty(i),
            decl_type: self.handle.as_ref().and_then(|h| h.column_decltype(i)),
        })
    }
}

impl Connection {
    /// Whether there is a table or view of this name, in one database or in any.
    ///
    /// # Errors
    /// A damaged schema.
    pub fn table_exists<N: Name>(&self, db_name: Option<N>, table_name: N) -> Result<bool> {
        let database = db_name.map(|name| name.as_text()).transpose()?;
        let found = self
            .session()
            .has_table(database.as_deref(), &table_name.as_text()?);
        found.map_err(Error::from_engine)
    }

    /// Whether there is a table or view of this name that has this column. A rowid is one
    /// by each of its names.
    ///
    /// # Errors
    /// What the engine says.
    pub fn column_exists<N: Name>(
        &self,
        db_name: Option<N>,
        table_name: N,
        column_name: N,
    ) -> Result<bool> {
        if !self.table_exists(db_name, table_name)? {
            return Ok(false);
        }
        let sql = format!(
            "SELECT * FROM {}{}",
            schema_prefix(db_name)?,
            quoted(&table_name.as_text()?)
        );
        let stmt = self.prepare(&sql)?;
        let column = column_name.as_text()?;
        let is_rowid = |name: &str| column.eq_ignore_ascii_case(name);
        Ok(stmt.column_index(&column).is_ok()
            || ["rowid", "oid", "_rowid_"].into_iter().any(is_rowid)
                && self.prepare(&sql.replacen('*', &column, 1)).is_ok())
    }
}

/// `"name".`, or nothing for the default database.
pub(crate) fn schema_prefix<N: Name>(db_name: Option<N>) -> Result<String> {
    Ok(match db_name {
        Some(name) => format!("{}.", quoted(&name.as_text()?)),
        None => String::new(),
    })
}

/// A name in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
