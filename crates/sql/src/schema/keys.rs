//! Keys as they are declared: PRIMARY KEY and UNIQUE, which get automatic indexes, and
//! CREATE INDEX.
//!
//! Constraints of the same key share one automatic index; the number in its name counts
//! those of the table.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::build::{Builder, IndexShape};
use super::collations::{declared_collation, indexed_collation};
use super::table::{Column, ConflictAction, Index, IndexColumn, IndexOrigin, IndexTarget, Table};
use super::without_rowid::{IntegerKey, distinct_parts};
use crate::ast::{self, ExprKind, Literal, SortTerm};
use crate::error::{Error, Result};
use crate::parse::MAX_COLUMNS;
use crate::value::Collation;

impl Builder<'_> {
    pub(super) fn primary_key(
        &mut self,
        at: &[usize],
        descending: bool,
        conflict: Option<ConflictAction>,
        autoincrement: bool,
        parts: Option<&[(usize, Option<Collation>, bool)]>,
    ) -> Result<()> {
        if self.has_primary_key {
            return Err(Error::sql(format!(
                "table \"{}\" has more than one primary key",
                self.table
            )));
        }
        self.has_primary_key = true;
        if let [only] = at
            && !descending
            && self
                .shape
                .columns
                .get(*only)
                .is_some_and(|c| c.decl_type.eq_ignore_ascii_case("integer"))
        {
            self.edit(*only, |c| c.primary_key = 1);
            self.shape.autoincrement = autoincrement;
            match self.shape.without_rowid {
                true => {
                    let part = parts.and_then(|parts| parts.first());
                    self.integer_key = Some(IntegerKey {
                        at: *only,
                        descending: part.is_some_and(|(.., descending)| *descending),
                        conflict,
                    });
                }
                false => {
                    self.shape.rowid_alias = Some(*only);
                    self.shape.rowid_conflict = conflict.unwrap_or_default();
                }
            }
            return Ok(());
        }
        if autoincrement {
            return Err(Error::sql(
                "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY",
            ));
        }
        let mut columns: Vec<IndexColumn> = match parts {
            Some(parts) => parts
                .iter()
                .map(|(at, coll, desc)| self.key_column(*at, *coll, *desc))
                .collect::<Result<_>>()?,
            None => at
                .iter()
                .map(|at| self.key_column(*at, None, descending))
                .collect::<Result<_>>()?,
        };
        if self.shape.without_rowid {
            columns = distinct_parts(columns);
        }
        for (place, part) in (1..).zip(&columns) {
            if let IndexTarget::Column(at) = part.target
                && let Some(column) = self.shape.columns.get_mut(at)
                && column.primary_key == 0
            {
                column.primary_key = place;
            }
        }
        self.automatic(columns, conflict, IndexOrigin::PrimaryKey)
    }

    /// Adds an automatic index, unless an earlier one has the same key.
    pub(super) fn automatic(
        &mut self,
        columns: Vec<IndexColumn>,
        conflict: Option<ConflictAction>,
        origin: IndexOrigin,
    ) -> Result<()> {
        let same = |other: &IndexShape| {
            other.columns.len() == columns.len()
                && other.columns.iter().zip(&columns).all(|(a, b)| {
                    a.collation == b.collation
                        && match (&a.target, &b.target) {
                            (IndexTarget::Column(x), IndexTarget::Column(y)) => x == y,
                            (IndexTarget::Rowid, IndexTarget::Rowid) => true,
                            _ => false,
                        }
                })
        };
        if let Some(other) = self.shape.automatic.iter_mut().find(|i| same(i)) {
            if origin == IndexOrigin::PrimaryKey {
                other.origin = origin;
            }
            if let (Some(one), Some(another)) = (other.conflict, conflict)
                && one != another
            {
                return Err(Error::sql("conflicting ON CONFLICT clauses specified"));
            }
            other.conflict = other.conflict.or(conflict);
            return Ok(());
        }
        let name = format!(
            "sqlite_autoindex_{}_{}",
            self.table,
            self.shape.automatic.len() + 1
        );
        self.shape.automatic.push(IndexShape {
            name,
            columns,
            conflict,
            origin,
        });
        Ok(())
    }

    pub(super) fn key_column(
        &self,
        at: usize,
        collation: Option<Collation>,
        descending: bool,
    ) -> Result<IndexColumn> {
        key_column(
            &self.shape.columns,
            self.shape.rowid_alias,
            at,
            collation,
            descending,
        )
    }

    pub(super) fn parts(
        &self,
        terms: &[SortTerm],
    ) -> Result<Vec<(usize, Option<Collation>, bool)>> {
        check_parts(terms)?;
        terms
            .iter()
            .map(|term| {
                let prohibited =
                    || Error::sql("expressions prohibited in PRIMARY KEY and UNIQUE constraints");
                let (name, collation) = plain_column(&term.expr)?.ok_or_else(prohibited)?;
                let at = self
                    .shape
                    .columns
                    .iter()
                    .position(|c| c.name.eq_ignore_ascii_case(name));
                let at = at.ok_or_else(|| match is_expression(&term.expr) {
                    true => prohibited(),
                    false => Error::sql(format!("no such column: {name}")),
                })?;
                Ok((at, collation, term.descending))
            })
            .collect()
    }
}

fn key_column(
    columns: &[Column],
    rowid_alias: Option<usize>,
    at: usize,
    collation: Option<Collation>,
    descending: bool,
) -> Result<IndexColumn> {
    let column = columns.get(at);
    let named = collation
        .or(column.map(|c| c.collation))
        .unwrap_or_default();
    let collation = match rowid_alias == Some(at) {
        true => Collation::default(),
        false => indexed_collation(named)?,
    };
    Ok(IndexColumn {
        target: if rowid_alias == Some(at) {
            IndexTarget::Rowid
        } else {
            IndexTarget::Column(at)
        },
        affinity: column.map(|c| c.affinity),
        collation,
        named,
        descending,
    })
}

/// A key has no more parts than SQLite allows.
fn check_parts(terms: &[SortTerm]) -> Result<()> {
    match terms.len() > MAX_COLUMNS {
        true => Err(Error::sql("too many columns in index")),
        false => Ok(()),
    }
}

/// The key parts of a CREATE INDEX over a table.
pub fn index_columns(create: &ast::CreateIndex, table: &Table) -> Result<Vec<IndexColumn>> {
    check_parts(&create.columns)?;
    create
        .columns
        .iter()
        .map(|term| {
            if let Some((name, collation)) = plain_column(&term.expr)? {
                if let Some(at) = table
                    .columns
                    .iter()
                    .position(|c| c.name.eq_ignore_ascii_case(name))
                {
                    return key_column(
                        &table.columns,
                        table.rowid_alias,
                        at,
                        collation,
                        term.descending,
                    );
                }
                if !is_expression(&term.expr) {
                    return Err(
                        Error::sql(format!("no such column: {name}")).with_offset(term.expr.offset)
                    );
                }
            }
            let (expr, collation) = strip_collate(&term.expr)?;
            let collation = indexed_collation(collation.unwrap_or_default())?;
            Ok(IndexColumn {
                target: IndexTarget::Expr(expr.clone()),
                affinity: None,
                collation,
                named: collation,
                descending: term.descending,
            })
        })
        .collect()
}

/// Makes an index of its shape.
pub fn automatic_index(shape: IndexShape, table: &str, tree: Tree) -> Arc<Index> {
    Arc::new(Index {
        name: shape.name,
        table: table.to_owned(),
        tree,
        columns: shape.columns,
        unique: true,
        conflict: shape.conflict.unwrap_or_default(),
        origin: shape.origin,
        predicate: None,
        sql: String::new(),
    })
}

fn strip_collate(expr: &ast::Expr) -> Result<(&ast::Expr, Option<Collation>)> {
    match &expr.kind {
        ExprKind::Collate(inner, name) => {
            let (inner, _) = strip_collate(inner)?;
            Ok((inner, Some(declared_collation(name)?)))
        }
        _ => Ok((expr, None)),
    }
}

/// Whether a name that is no column's is an expression: TRUE, FALSE, a string in double
/// quotes.
fn is_expression(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ExprKind::Collate(inner, _) => is_expression(inner),
        ExprKind::Column(name) => {
            let is = |word: &str| name.text.eq_ignore_ascii_case(word);
            name.double_quoted || is("true") || is("false")
        }
        _ => false,
    }
}

/// `name` or `name COLLATE c`.
fn plain_column(term: &ast::Expr) -> Result<Option<(&str, Option<Collation>)>> {
    let (_, collation) = strip_collate(term)?;
    Ok(plain_name(term).map(|(name, _)| (name, collation)))
}

/// The name of the column that a key's term may be, under whatever COLLATE, and its place. A
/// string counts as one under a single COLLATE at most: under two it is a value.
pub fn plain_name(term: &ast::Expr) -> Option<(&str, usize)> {
    let (mut inner, mut collates) = (term, 0);
    while let ExprKind::Collate(next, _) = &inner.kind {
        inner = next;
        collates += 1;
    }
    match &inner.kind {
        ExprKind::Column(name) => Some((&name.text, name.offset)),
        ExprKind::Literal(Literal::Text(text)) if collates <= 1 => Some((text, inner.offset)),
        _ => None,
    }
}
