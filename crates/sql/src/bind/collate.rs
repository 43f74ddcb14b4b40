//! Collations by name: built in, or the program's.

use super::Binder;
use crate::ast::{ColumnConstraint, ColumnDef, ExprKind, Name, SortTerm};
use crate::error::Result;
use crate::schema::Table;
use crate::value::Collation;
use crate::value::collate::{self, CollationName};

impl Binder<'_> {
    /// A collation that the connection has.
    ///
    /// # Errors
    /// `no such collation sequence: c`
    pub(super) fn collation(&mut self, name: &Name) -> Result<Collation> {
        if let Some(known) = Collation::by_name(&name.text) {
            return Ok(known);
        }
        self.calls_user = true;
        self.schema_calls_user |= self.store_of_text().is_some();
        match CollationName::known(&name.text) {
            Some(known) if self.settings.user.collations().has(known) => {
                Ok(Collation::Program(known))
            }
            // Whoever looks for names compares nothing.
            _ if self.uses.is_some() => Ok(Collation::Binary),
            _ => Err(collate::missing(&name.text).with_offset(name.offset)),
        }
    }

    /// The columns of a table may be compared by collations of the program. One that the
    /// connection lacks is an error only where it would be asked.
    #[inline]
    pub(super) fn note_collations(&mut self, table: &Table) {
        if !table.asks_program {
            return;
        }
        self.calls_user = true;
        self.schema_calls_user = true;
        for column in &table.columns {
            if let Collation::Program(name) = column.collation
                && !self.settings.user.collations().has(name)
                && !self.lacks.contains(&name)
            {
                self.lacks.push(name);
            }
        }
    }

    /// What a new table's columns, and the terms of a new index, are collated by must be
    /// there.
    pub(super) fn check_collations(
        &mut self,
        columns: &[ColumnDef],
        terms: &[SortTerm],
    ) -> Result<()> {
        for constraint in columns.iter().flat_map(|column| &column.constraints) {
            if let ColumnConstraint::Collate(name) = constraint {
                self.collation(name)?;
            }
        }
        for term in terms {
            if let ExprKind::Collate(_, name) = &term.expr.kind {
                self.collation(name)?;
            }
        }
        Ok(())
    }
}
