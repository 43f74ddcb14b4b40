//! Looking for the parent of a row, and for the children of one.
//!
//! The parent is found by its unique index or its rowid, always. Children are found by an
//! index where one fits, else by going through their table.

use std::ops::Bound;
use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Seek};

use crate::error::Result;
use crate::exec::context::{Context, Run};
use crate::exec::covering::in_index;
use crate::exec::dml::read_row;
use crate::exec::fetch::in_row;
use crate::exec::range::{key_column, rowid_of};
use crate::exec::txns::Txns;
use crate::key::{self, AFTER};
use crate::plan::foreign::{
    ChildAccess, ChildKey, ChildSearch, ForeignKeys, ForeignTable, Reference,
};
use crate::plan::physical::GeneratedColumn;
use crate::row::RowReader;
use crate::schema::{Column, Table};
use crate::value::{Affinity, Collation, Value, ValueRef, compare};

/// Children between two looks whether the statement is interrupted.
const LOOK: u64 = 4_096;

fn column(row: &[Value], at: usize) -> ValueRef<'_> {
    row.get(at + 1).map_or(ValueRef::Null, Value::as_ref)
}

/// Whether a row is its own parent: by the rowid that its value names, or by values that are
/// the same.
pub fn refers_to_itself(key: &ChildKey, row: &[Value]) -> bool {
    let Some(parent) = key.parent.as_ref().filter(|_| key.of_itself) else {
        return false;
    };
    let is_rowid = parent.index.is_none();
    let mut pairs = key.columns.iter().zip(&parent.columns);
    pairs.all(|(child, parent)| {
        let (child, own) = (column(row, *child), column(row, *parent));
        !child.is_null()
            && match is_rowid {
                true => rowid_of(child) == rowid_of(own),
                false => compare(child, own, Collation::Binary).is_eq(),
            }
    })
}

/// Whether there is a parent of a child's row other than the row `own`; None where a NULL
/// makes that no matter. The last two are memory.
pub fn has_parent(
    txn: &mut Txns,
    child: &ChildKey,
    row: &[Value],
    own: Option<i64>,
    key: &mut Vec<u8>,
    record: &mut Vec<u8>,
) -> Result<Option<bool>> {
    if child.columns.iter().any(|at| column(row, *at).is_null()) {
        return Ok(None);
    }
    let Some(parent) = &child.parent else {
        return Ok(Some(false));
    };
    let Some(index) = &parent.index else {
        let value = child.columns.first().map(|at| column(row, *at));
        return Ok(Some(match value.and_then(rowid_of) {
            Some(rowid) if Some(rowid) != own => {
                txn.is_taken(&parent.table.tree, Key::Int(rowid))?
            }
            _ => false,
        }));
    };
    key.clear();
    for (at, part) in child.columns.iter().zip(&index.columns) {
        // As the parent's column would store it, but for large integers, which are not
        // rounded to reals.
        let affinity = match part.affinity.unwrap_or_default() {
            Affinity::Real => Affinity::Numeric,
            affinity => affinity,
        };
        let value = affinity.apply(column(row, *at));
        key::encode(key, value.as_ref(), key_column(part));
    }
    if own.is_none() {
        return Ok(Some(txn.is_taken(&index.tree, Key::Bytes(key))?));
    }
    let found = txn.get_lasting(&index.tree, Key::Bytes(key), record)?;
    Ok(Some(
        found && Some(key::decode_rowid(&mut record.as_slice())?) != own,
    ))
}

/// How far children have been gone through.
#[derive(Debug, Clone)]
pub enum Place {
    /// Behind this rowid.
    Rowid(i64),
    /// Behind this index entry.
    Entry(Vec<u8>),
    /// There are no more.
    End,
}

/// The children of a row.
pub struct Children<'k> {
    reference: &'k Reference,
    search: &'k ChildSearch,
    table: Option<&'k Arc<Table>>,
    /// The generated columns of the child, where it refers by one that is not stored.
    generated: Option<&'k [GeneratedColumn]>,
    /// The parent's key, as the comparison of each part sees it.
    values: Vec<Value>,
}

impl<'k> Children<'k> {
    /// Of a parent's row, to be counted.
    pub fn counted(keys: &'k ForeignKeys, reference: &'k Reference, row: &[Value]) -> Self {
        let search = &reference.counted;
        let pairs = reference.parts.iter().zip(&search.affinities);
        let values = pairs.map(|(part, affinity)| {
            let value = affinity.apply_comparison(column(row, part.parent));
            value.into_value()
        });
        Self::new(keys, reference, search, values.collect())
    }

    /// Of a parent with this key, for actions.
    pub fn acted(keys: &'k ForeignKeys, reference: &'k Reference, key: &[Value]) -> Self {
        let search = &reference.acted;
        let pairs = key.iter().zip(&search.affinities);
        let values = pairs.map(|(value, affinity)| {
            let value = affinity.apply_comparison(value.as_ref());
            value.into_value()
        });
        Self::new(keys, reference, search, values.collect())
    }

    fn new(
        keys: &'k ForeignKeys,
        reference: &'k Reference,
        search: &'k ChildSearch,
        values: Vec<Value>,
    ) -> Self {
        let table = keys.tables.get(reference.child);
        let is_virtual = |table: &ForeignTable| {
            let mut parts = reference.parts.iter();
            let columns = &table.table.columns;
            parts.any(|part| columns.get(part.child).is_some_and(Column::is_virtual))
        };
        let generated = table.filter(|table| table.table.has_generated && is_virtual(table));
        Self {
            reference,
            search,
            table: table.map(|table| &table.table),
            generated: generated.map(|table| table.generated.as_slice()),
            values,
        }
    }

    /// How many there are, but for the row `own`.
    pub fn count(
        &self,
        txn: &mut Txns,
        own: Option<i64>,
        record: &mut Vec<u8>,
        cx: &mut Context<'_, '_>,
    ) -> Result<i64> {
        let mut count = 0;
        let mut visit = |rowid| {
            count += i64::from(Some(rowid) != own);
            true
        };
        self.visit(txn, None, record, cx, &mut visit)?;
        Ok(count)
    }

    /// Calls `visit` with the rowids of those behind a place, until it says false; how far
    /// it came.
    pub fn visit(
        &self,
        txn: &mut Txns,
        from: Option<&Place>,
        record: &mut Vec<u8>,
        cx: &mut Context<'_, '_>,
        visit: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Place> {
        let Some(table) = self.table else {
            return Ok(Place::End);
        };
        if self.values.iter().any(Value::is_null) || matches!(from, Some(Place::End)) {
            return Ok(Place::End);
        }
        match &self.search.access {
            ChildAccess::Rowid(part) => {
                let value = self.values.get(*part).map(Value::as_ref);
                if let Some(rowid) = value.and_then(rowid_of)
                    && from.is_none()
                    && txn.get_lasting(&table.tree, Key::Int(rowid), record)?
                    && self.is_child(table, rowid, record, cx)?
                {
                    visit(rowid);
                }
                Ok(Place::End)
            }
            ChildAccess::Scan => self.visit_all(table, txn, from, cx, visit),
            ChildAccess::Index(..) => self.visit_entries(table, txn, from, record, cx, visit),
        }
    }

    fn visit_all(
        &self,
        table: &Arc<Table>,
        txn: &mut Txns,
        from: Option<&Place>,
        cx: &mut Context<'_, '_>,
        visit: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Place> {
        let mut rows = txn.cursor_lasting(&table.tree)?;
        let mut more = rows.seek(match from {
            Some(Place::Rowid(rowid)) => Seek::After(Key::Int(*rowid)),
            _ => Seek::First,
        })?;
        let mut looked = 0u64;
        while more {
            let rowid = rows.key_int();
            if self.is_child(table, rowid, rows.value()?, cx)? && !visit(rowid) {
                return Ok(Place::Rowid(rowid));
            }
            look(&mut looked, cx.run)?;
            more = rows.next()?;
        }
        Ok(Place::End)
    }

    fn visit_entries(
        &self,
        table: &Arc<Table>,
        txn: &mut Txns,
        from: Option<&Place>,
        record: &mut Vec<u8>,
        cx: &mut Context<'_, '_>,
        visit: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Place> {
        let ChildAccess::Index(index, parts) = &self.search.access else {
            return Ok(Place::End);
        };
        let mut start = Vec::new();
        for (part, column) in parts.iter().zip(&index.columns) {
            let value = self.values.get(*part).map_or(ValueRef::Null, Value::as_ref);
            key::encode(&mut start, value, key_column(column));
        }
        let mut end = start.clone();
        end.push(AFTER);
        let is_told = self.search.is_told_by_index();
        let mut entries = txn.cursor_lasting(&index.tree)?;
        let from = match from {
            Some(Place::Entry(entry)) => Seek::After(Key::Bytes(entry)),
            _ => Seek::AtLeast(Key::Bytes(&start)),
        };
        entries.narrow(
            Bound::Included(Key::Bytes(&start)),
            Bound::Excluded(Key::Bytes(&end)),
        );
        let mut more = entries.seek(from)?;
        let mut looked = 0u64;
        while more && entries.key_bytes()? < end.as_slice() {
            let rowid = rowid_at(&mut entries, index.unique);
            let rowid = rowid.map_err(|error| in_index(error, &index.name))?;
            let is_child = is_told
                || txn.get_lasting(&table.tree, Key::Int(rowid), record)?
                    && self.is_child(table, rowid, record, cx)?;
            if is_child && !visit(rowid) {
                return Ok(Place::Entry(entries.key_bytes()?.to_vec()));
            }
            look(&mut looked, cx.run)?;
            more = entries.next()?;
        }
        Ok(Place::End)
    }

    /// Whether a row of the child's table is one.
    fn is_child(
        &self,
        table: &Arc<Table>,
        rowid: i64,
        record: &[u8],
        cx: &mut Context<'_, '_>,
    ) -> Result<bool> {
        let damaged = |error| in_row(error, table, rowid);
        let reader = RowReader::new(record).map_err(damaged)?;
        let mut computed = Vec::new();
        if let Some(generated) = self.generated {
            read_row(table, generated, (rowid, record), &mut computed, cx)?;
        }
        let compared = self.search.affinities.iter().zip(&self.values);
        for (part, (affinity, wanted)) in self.reference.parts.iter().zip(compared) {
            let value = match table.columns.get(part.child) {
                _ if table.rowid_alias == Some(part.child) => ValueRef::Integer(rowid),
                Some(it) if it.is_virtual() => column(&computed, part.child),
                Some(column) => reader
                    .column_or(part.child, column.missing.as_ref())
                    .map_err(damaged)?,
                None => ValueRef::Null,
            };
            let value = affinity.apply_comparison(value);
            let is_same = compare(wanted.as_ref(), value.as_ref(), part.collation).is_eq();
            if value.as_ref().is_null() || !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn rowid_at(entries: &mut Cursor, unique: bool) -> Result<i64> {
    match unique {
        true => key::decode_rowid(&mut entries.value()?),
        false => key::rowid_suffix(entries.key_bytes()?),
    }
}

fn look(looked: &mut u64, run: &Run) -> Result<()> {
    *looked += 1;
    match looked.is_multiple_of(LOOK) {
        true => run.check_interrupt(),
        false => Ok(()),
    }
}
