//! WITHOUT ROWID: tables whose rows are known by their primary key.
//!
//! It says what a table shows, not how it lies. Rows keep numbers, which no text can ask
//! for, and the primary key is an index like another, of columns that are NOT NULL. An
//! INTEGER PRIMARY KEY is no alias of anything there, so it has such an index, too.

use std::sync::Arc;

use super::build::Builder;
use super::table::{ConflictAction, Index, IndexColumn, IndexOrigin, IndexTarget, Table};
use crate::error::{Error, Result};
use crate::value::Collation;

/// An INTEGER PRIMARY KEY that is no alias. Its index is the last one, as in SQLite.
#[derive(Clone, Copy)]
pub(super) struct IntegerKey {
    /// The column.
    pub at: usize,
    /// DESC, as only a constraint of the table may have it.
    pub descending: bool,
    /// What its violation does.
    pub conflict: Option<ConflictAction>,
}

impl Builder<'_> {
    /// After all definitions of a WITHOUT ROWID table.
    pub(super) fn without_rowid(&mut self) -> Result<()> {
        if self.shape.autoincrement {
            return Err(Error::sql(
                "AUTOINCREMENT not allowed on WITHOUT ROWID tables",
            ));
        }
        if !self.has_primary_key {
            let message = format!("PRIMARY KEY missing on table {}", self.table);
            return Err(Error::sql(message)
                .with_hint("rows of a WITHOUT ROWID table are known by their primary key"));
        }
        if let Some(key) = self.integer_key {
            let columns = vec![self.key_column(key.at, None, key.descending)?];
            self.automatic(columns, key.conflict, IndexOrigin::PrimaryKey)?;
        }
        let keys = self.shape.columns.iter_mut().filter(|c| c.primary_key > 0);
        for column in keys {
            column.not_null = column.not_null.or(Some(ConflictAction::Abort));
        }
        Ok(())
    }
}

/// The parts of a primary key without those that come twice.
pub(super) fn distinct_parts(parts: Vec<IndexColumn>) -> Vec<IndexColumn> {
    let mut distinct: Vec<IndexColumn> = Vec::with_capacity(parts.len());
    for part in parts {
        if !distinct.iter().any(|other| same_part(other, &part)) {
            distinct.push(part);
        }
    }
    distinct
}

fn same_part(a: &IndexColumn, b: &IndexColumn) -> bool {
    let is_same_column = matches!((&a.target, &b.target),
        (IndexTarget::Column(a), IndexTarget::Column(b)) if a == b);
    is_same_column && a.collation == b.collation
}

impl Table {
    /// The index that is the primary key of a WITHOUT ROWID table.
    pub fn key(&self) -> Option<&Arc<Index>> {
        let mut indexes = self.indexes.iter();
        let key = indexes.find(|index| index.origin == IndexOrigin::PrimaryKey);
        key.filter(|_| self.without_rowid)
    }

    /// What an index has behind its own parts, as SQLite shows it: the rowid, and without
    /// rowids the parts of the primary key that it lacks, or, behind that itself, all other
    /// columns. Of each the column, DESC and the collation.
    pub fn behind(&self, index: &Index) -> Vec<(Option<usize>, bool, Collation)> {
        let Some(key) = self.key() else {
            return vec![(None, false, Collation::Binary)];
        };
        let column = |part: &IndexColumn| match part.target {
            IndexTarget::Column(at) => Some(at),
            IndexTarget::Rowid | IndexTarget::Expr(_) => None,
        };
        if index.name == key.name {
            let is_part = |at: usize| key.columns.iter().any(|part| column(part) == Some(at));
            let others = self.columns.iter().enumerate();
            let others = others.filter(|(at, c)| !is_part(*at) && !c.is_virtual());
            return others
                .map(|(at, _)| (Some(at), false, Collation::Binary))
                .collect();
        }
        let lacks = |part: &&IndexColumn| !index.columns.iter().any(|own| same_part(own, part));
        let parts = key.columns.iter().filter(lacks);
        parts
            .map(|part| (column(part), part.descending, part.collation))
            .collect()
    }
}
