//! What SQLite refuses of the text of a table or an index, though a schema that has it can
//! be read.

use crate::ast::{self, ColumnConstraint, TableConstraintKind};
use crate::error::{Error, Result};

/// Keys have one order for NULL, that of the direction.
pub(super) fn no_nulls_order(terms: &[ast::SortTerm]) -> Result<()> {
    match terms.iter().find_map(|term| term.nulls_first) {
        None => Ok(()),
        Some(first) => {
            let word = if first { "FIRST" } else { "LAST" };
            Err(Error::sql(format!("unsupported use of NULLS {word}")))
        }
    }
}

/// Foreign keys must have as many columns as they name of the other table, all of the
/// table's own, keys no order of their own for NULL.
pub(super) fn check_constraints(
    columns: &[ast::ColumnDef],
    constraints: &[ast::TableConstraint],
) -> Result<()> {
    for column in columns {
        for constraint in &column.constraints {
            if let ColumnConstraint::ForeignKey(key) = constraint
                && key.parent_columns.as_ref().is_some_and(|c| c.len() > 1)
            {
                return Err(Error::sql(format!(
                    "foreign key on {} should reference only one column of table {}",
                    column.name.text, key.parent.text
                ))
                .with_offset(column.name.offset));
            }
        }
    }
    for constraint in constraints {
        match &constraint.kind {
            TableConstraintKind::PrimaryKey { columns, .. }
            | TableConstraintKind::Unique { columns, .. } => no_nulls_order(columns)?,
            TableConstraintKind::ForeignKey(own, key) => check_foreign_key(columns, own, key)?,
            TableConstraintKind::Check(..) => {}
        }
    }
    Ok(())
}

fn check_foreign_key(
    columns: &[ast::ColumnDef],
    own: &[ast::Name],
    key: &ast::ForeignKey,
) -> Result<()> {
    let parents = key.parent_columns.as_ref();
    if parents.is_some_and(|parents| parents.len() != own.len()) {
        return Err(Error::sql(
            "number of columns in foreign key does not match the number of columns in the \
             referenced table",
        ));
    }
    let is_there = |name: &ast::Name| {
        let mut names = columns.iter().map(|column| &column.name.text);
        names.any(|known| known.eq_ignore_ascii_case(&name.text))
    };
    match own.iter().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => Err(Error::sql(format!(
            "unknown column \"{}\" in foreign key definition",
            name.text
        ))
        .with_offset(name.offset)),
    }
}
