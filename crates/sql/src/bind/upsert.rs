//! Binding of INSERT's ON CONFLICT clauses.
//!
//! A target names a uniqueness: the rowid, or an index whose parts are its terms in any
//! order. A term without COLLATE is for a part of any collation, and the WHERE of a
//! target is to be that of the index, or the index holds all rows. Expressions are
//! compared as they are written.

use std::sync::Arc;

use super::Binder;
use super::expr::ROWID;
use super::logical::{BoundUpsert, BoundUpsertUpdate};
use super::order::ordinal_word;
use super::refused::no_nulls_order;
use super::same::same;
use super::scope::{ROWID_NAMES, ScopeColumns, ScopeTable, is_rowid_name};
use super::trigger::Fired;
use crate::ast::{Expr, ExprKind as A, Literal, Name, Upsert};
use crate::error::{Error, Result};
use crate::plan::physical::UpsertTarget;
use crate::schema::{ConflictAction, Index, IndexColumn, IndexTarget, Table};
use crate::value::Collation;

impl Binder<'_> {
    /// The clauses of an INSERT into the table, known as `name`, whose row is source `id`.
    pub(super) fn upserts(
        &mut self,
        clauses: &[Upsert],
        table: &Arc<Table>,
        name: &str,
        id: usize,
    ) -> Result<Vec<BoundUpsert>> {
        if let Some(first) = clauses.first() {
            no_nulls_order(&first.target)?;
        }
        let mut bound = Vec::with_capacity(clauses.len());
        for (i, clause) in clauses.iter().enumerate() {
            let target = match clause.target.is_empty() {
                true => None,
                false => {
                    let found = self.conflict_target(clause, table, name, id)?;
                    match found {
                        None if self.uses.is_some() => None,
                        found => Some(found.ok_or_else(|| unmatched(clauses, i))?),
                    }
                }
            };
            bound.push(BoundUpsert {
                target,
                update: None,
            });
        }
        // A target's errors come before those of all changes.
        for (clause, bound) in clauses.iter().zip(&mut bound) {
            if let Some((sets, predicate)) = &clause.update {
                let excluded = self.new_source()?;
                let names = sets.iter().flat_map(|(names, _)| names);
                let names: Vec<&str> = names.map(|name| name.text.as_str()).collect();
                let abort = Some(ConflictAction::Abort);
                let of = self.catalog.of(&table.tree);
                let fires = self.fires(&table.name, of, Fired::Update(&names), abort)?;
                bound.update = Some(self.row_frame(table, name, id, |this| {
                    let names = table.columns.iter().map(|c| c.name.as_str());
                    let names = names.chain(ROWID_NAMES);
                    this.frame().tables.push(ScopeTable {
                        name: "excluded".to_owned(),
                        source: excluded,
                        columns: ScopeColumns::NewRow(table.clone()),
                        // Plain names mean the existing row.
                        merged: names.map(str::to_owned).collect(),
                        database: None,
                    });
                    let assignments = this.assignments(sets, table)?;
                    let predicate = predicate.as_ref().map(|p| this.expr(p)).transpose()?;
                    Ok(BoundUpsertUpdate {
                        excluded,
                        assignments,
                        predicate,
                        fires,
                    })
                })?);
            }
        }
        Ok(bound)
    }

    fn conflict_target(
        &mut self,
        clause: &Upsert,
        table: &Arc<Table>,
        name: &str,
        id: usize,
    ) -> Result<Option<UpsertTarget>> {
        let subqueries = self.subqueries.len();
        self.row_frame(table, name, id, |this| {
            for term in &clause.target {
                this.expr(collated(&term.expr).0)?;
            }
            if let Some(condition) = &clause.condition {
                this.expr(condition)?;
            }
            Ok(())
        })?;
        // That was for its errors: no target is evaluated.
        self.subqueries.truncate(subqueries);
        Ok(matching(clause, table))
    }
}

/// For the clause that names no uniqueness, by number; one alone needs none.
fn unmatched(clauses: &[Upsert], i: usize) -> Error {
    let which = match clauses {
        [_] => String::new(),
        _ => ordinal_word(i) + " ",
    };
    let target = clauses.get(i).and_then(|clause| clause.target.first());
    let message = "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint";
    Error::sql(which + message).with_offset(target.map_or(0, |term| term.expr.offset))
}

/// The uniqueness that a clause's target is about.
fn matching(clause: &Upsert, table: &Table) -> Option<UpsertTarget> {
    if let [term] = clause.target.as_slice()
        && Word::of(&term.expr, table) == Some(Word::Column(ROWID))
    {
        return Some(UpsertTarget::Rowid);
    }
    let is_meant = |at: &usize| {
        let index = table.indexes.get(*at);
        index.is_some_and(|index| index.unique && is_target(clause, index, table))
    };
    let found = table.check_order().into_iter().find(is_meant);
    found.map(UpsertTarget::Index)
}

fn is_target(clause: &Upsert, index: &Index, table: &Table) -> bool {
    let terms = &clause.target;
    let same = |a: &Expr, b: &Expr| same(a, b, &|a, b| same_words(a, b, table));
    let is_part = |term: &Expr, part: &IndexColumn| {
        let (expr, collation) = collated(term);
        let is_same = match &part.target {
            IndexTarget::Column(at) => Word::of(expr, table) == Some(Word::Column(*at)),
            // SQLite finds no index by a rowid among its parts.
            IndexTarget::Rowid => false,
            IndexTarget::Expr(indexed) => same(expr, indexed),
        };
        is_same && collation.is_none_or(|c| Collation::by_name(&c.text) == Some(part.collation))
    };
    let holds_all_rows = match (&index.predicate, &clause.condition) {
        (None, _) => true,
        (Some(predicate), Some(condition)) => same(condition, predicate),
        (Some(_), None) => false,
    };
    let has_term = |part: &IndexColumn| terms.iter().any(|term| is_part(&term.expr, part));
    index.columns.len() == terms.len() && holds_all_rows && index.columns.iter().all(has_term)
}

/// A term without its COLLATE.
fn collated(term: &Expr) -> (&Expr, Option<&Name>) {
    match &term.kind {
        A::Collate(inner, name) => (inner, Some(name)),
        _ => (term, None),
    }
}

/// What a name stands for where only a table's row is known.
#[derive(PartialEq, Eq)]
enum Word<'a> {
    Column(usize),
    Text(&'a str),
    Truth(bool),
}

impl<'a> Word<'a> {
    fn of(e: &'a Expr, table: &Table) -> Option<Word<'a>> {
        let name = match &e.kind {
            A::Column(name) | A::Qualified { column: name, .. } => name,
            A::Literal(Literal::Text(text)) => return Some(Word::Text(text)),
            _ => return None,
        };
        let is_named = |word: &str| name.text.eq_ignore_ascii_case(word);
        let at = table.columns.iter().position(|c| is_named(&c.name));
        Some(match at {
            Some(at) if table.rowid_alias == Some(at) => Word::Column(ROWID),
            Some(at) => Word::Column(at),
            None if is_rowid_name(&name.text) && !table.without_rowid => Word::Column(ROWID),
            None if name.double_quoted => Word::Text(&name.text),
            None => Word::Truth(is_named("true")),
        })
    }
}

fn same_words(a: &Expr, b: &Expr, table: &Table) -> Option<bool> {
    match (Word::of(a, table), Word::of(b, table)) {
        (None, None) => None,
        (a, b) => Some(a == b),
    }
}
