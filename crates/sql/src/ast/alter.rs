//! What ALTER TABLE does.

use super::{ColumnDef, Expr, Name};

/// What ALTER TABLE does.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    /// RENAME TO
    RenameTable(Name),
    /// RENAME COLUMN
    RenameColumn {
        /// Which.
        old: Name,
        /// The same as it is written.
        written: String,
        /// What it is to be called.
        new: Name,
        /// That is in quotes.
        quoted: bool,
    },
    /// ADD COLUMN, with the definition's text.
    AddColumn(Box<ColumnDef>, String),
    /// DROP COLUMN, with the name as it is written.
    DropColumn(Name, String),
    /// ADD CHECK
    AddCheck {
        /// The constraint's name.
        name: Option<String>,
        /// The condition.
        expr: Box<Expr>,
        /// All of the constraint as it is written.
        text: String,
    },
    /// DROP CONSTRAINT
    DropConstraint(Name),
    /// ALTER COLUMN SET NOT NULL, with the constraint as it is written.
    SetNotNull(Name, String),
    /// ALTER COLUMN DROP NOT NULL
    DropNotNull(Name),
}
