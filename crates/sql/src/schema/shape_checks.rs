//! What the columns of a table must be where it has generated ones, or is STRICT.

use super::build::TableShape;
use super::table::{ConflictAction, StrictType};
use crate::error::{Error, Result};

/// Generated columns are no part of the primary key, and not all there is.
pub fn check_generated(shape: &TableShape) -> Result<()> {
    let generated = shape.columns.iter().filter(|c| c.generated.is_some());
    if generated.clone().any(|c| c.primary_key > 0) {
        return Err(Error::sql(
            "generated columns cannot be part of the PRIMARY KEY",
        ));
    }
    match generated.count() == shape.columns.len() {
        true => Err(Error::sql("must have at least one non-generated column")),
        false => Ok(()),
    }
}

/// What STRICT asks of the columns. Those of the primary key are NOT NULL there.
pub fn check_strict(table: &str, shape: &mut TableShape) -> Result<()> {
    for (at, column) in shape.columns.iter_mut().enumerate() {
        check_strict_type(table, &column.name, &column.decl_type)?;
        if column.primary_key > 0 && shape.rowid_alias != Some(at) {
            column.not_null = column.not_null.or(Some(ConflictAction::Abort));
        }
    }
    Ok(())
}

/// Whether a STRICT table may have a column of this declared type.
pub fn check_strict_type(table: &str, column: &str, declared: &str) -> Result<()> {
    let error = match declared {
        "" => Error::sql(format!("missing datatype for {table}.{column}")),
        "ANY" => return Ok(()),
        _ if StrictType::declared(declared).is_some() => return Ok(()),
        _ => Error::sql(format!(
            "unknown datatype for {table}.{column}: \"{declared}\""
        )),
    };
    Err(error
        .with_hint("columns of a STRICT table are of type INT, INTEGER, REAL, TEXT, BLOB or ANY"))
}
