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

/// Foreign keys must have as many columns as they name of the other table, keys no order of
/// their own for NULL.
pub(super) fn check_constraints(
    columns: &[ast::ColumnDef],
    constraints: &[ast::TableConstraint],
) -> Result<()> {
    for column in columns {
        for constraint in &column.constraints {
            if let ColumnConstraint::ForeignKey { table, columns } = constraint
                && *columns > 1
            {
                return Err(Error::sql(format!(
                    "foreign key on {} should reference only one column of table {table}",
                    column.name.text
                ))
                .with_offset(column.name.offset));
            }
        }
    }
    for constraint in constraints {
        match &constraint.kind {
            TableConstraintKind::PrimaryKey { columns, .. }
            | TableConstraintKind::Unique { columns, .. } => no_nulls_order(columns)?,
            TableConstraintKind::ForeignKey {
                columns,
                referenced: Some(referenced),
            } if columns != referenced => {
                return Err(Error::sql(
                    "number of columns in foreign key does not match the number of columns in \
                     the referenced table",
                ));
            }
            TableConstraintKind::ForeignKey { .. } | TableConstraintKind::Check(..) => {}
        }
    }
    Ok(())
}
