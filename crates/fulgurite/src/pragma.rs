//! PRAGMA statements made from names and values.

use crate::column::quoted;
use crate::types::{FromSql, ToSql, ValueRef};
use crate::{Connection, Error, Result, Row, ffi};

/// `PRAGMA schema.name`, or an error for a name that is none.
fn pragma_text(schema_name: Option<&str>, pragma_name: &str) -> Result<String> {
    let mut chars = pragma_name.chars();
    let sound = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !sound {
        return Err(Error::failure(
            ffi::SQLITE_MISUSE,
            format!("Invalid pragma \"{pragma_name}\""),
        ));
    }
    Ok(match schema_name {
        Some(schema) => format!("PRAGMA {}.{pragma_name}", quoted(schema)),
        None => format!("PRAGMA {pragma_name}"),
    })
}

/// The value as it is written in a PRAGMA; blobs and NULL cannot be.
fn argument_text(value: &dyn ToSql) -> Result<String> {
    let output = value.to_sql()?.with_bytes()?;
    match output.as_value_ref()? {
        value @ (ValueRef::Integer(_) | ValueRef::Real(_)) => {
            Ok(String::from_utf8_lossy(&value.to_sql_text()).into_owned())
        }
        ValueRef::Text(text) => Ok(format!(
            "'{}'",
            std::str::from_utf8(text)?.replace('\'', "''")
        )),
        other => Err(Error::failure(
            ffi::SQLITE_MISUSE,
            format!("Unsupported value \"{other:?}\""),
        )),
    }
}

impl Connection {
    /// The single value a pragma answers with.
    ///
    /// # Errors
    /// A name that is none, or what the engine says.
    pub fn pragma_query_one<T: FromSql>(
        &self,
        schema_name: Option<&str>,
        pragma_name: &str,
    ) -> Result<T> {
        self.query_one(&pragma_text(schema_name, pragma_name)?, [], |row| {
            row.get(0)
        })
    }

    /// Maps the first row a pragma answers with.
    ///
    /// # Errors
    /// A name that is none, or what the engine says.
    pub fn pragma_query_value<T, F>(
        &self,
        schema_name: Option<&str>,
        pragma_name: &str,
        f: F,
    ) -> Result<T>
    where
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        self.query_row(&pragma_text(schema_name, pragma_name)?, [], f)
    }

    /// Calls `f` for each row a pragma answers with.
    ///
    /// # Errors
    /// A name that is none, or what the engine or `f` says.
    pub fn pragma_query<F>(&self, schema_name: Option<&str>, pragma_name: &str, f: F) -> Result<()>
    where
        F: FnMut(&Row<'_>) -> Result<()>,
    {
        self.each_row(&pragma_text(schema_name, pragma_name)?, f)
    }

    /// As [`Connection::pragma_query`] with an argument.
    ///
    /// # Errors
    /// As [`Connection::pragma_query`], or an argument that cannot be written.
    pub fn pragma<F, V>(
        &self,
        schema_name: Option<&str>,
        pragma_name: &str,
        pragma_value: V,
        f: F,
    ) -> Result<()>
    where
        F: FnMut(&Row<'_>) -> Result<()>,
        V: ToSql,
    {
        let sql = format!(
            "{}({})",
            pragma_text(schema_name, pragma_name)?,
            argument_text(&pragma_value)?
        );
        self.each_row(&sql, f)
    }

    /// Sets a pragma.
    ///
    /// # Errors
    /// As [`Connection::pragma`].
    pub fn pragma_update<V: ToSql>(
        &self,
        schema_name: Option<&str>,
        pragma_name: &str,
        pragma_value: V,
    ) -> Result<()> {
        self.execute_batch(&assignment(schema_name, pragma_name, &pragma_value)?)
    }

    /// Sets a pragma and maps the row it answers with.
    ///
    /// # Errors
    /// As [`Connection::pragma`].
    pub fn pragma_update_and_check<F, T, V>(
        &self,
        schema_name: Option<&str>,
        pragma_name: &str,
        pragma_value: V,
        f: F,
    ) -> Result<T>
    where
        F: FnOnce(&Row<'_>) -> Result<T>,
        V: ToSql,
    {
        self.query_row(&assignment(schema_name, pragma_name, &pragma_value)?, [], f)
    }

    fn each_row(&self, sql: &str, mut f: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut stmt = self.prepare(sql)?;
        let mut rows = stmt.query([])?;
        while let Some(row) = rows.next()? {
            f(row)?;
        }
        Ok(())
    }
}

fn assignment(schema_name: Option<&str>, pragma_name: &str, value: &dyn ToSql) -> Result<String> {
    Ok(format!(
        "{}={}",
        pragma_text(schema_name, pragma_name)?,
        argument_text(value)?
    ))
}
