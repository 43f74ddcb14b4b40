//! AUTOINCREMENT: numbers that no row gets twice, and sqlite_sequence.
//!
//! A table's sequence is the larger of what its row of sqlite_sequence says and
//! the largest rowid in the table. An INSERT therefore only reads that row, so
//! that overlapping inserts never conflict over it; what is written down is the
//! rowid of a last row that goes away. All of it belongs to the transaction.
//!
//! Each table has a fixed place in sqlite_sequence ([`slot`]). There `seq` is
//! NULL as long as nothing needed writing down, and a query shows the sequence in
//! its stead (`Schema::sequence_view`). A row that a user inserted or deleted is
//! taken over, or made anew, by the next INSERT into its table.

use fulgurite_store::{Key, Seek, Tree, Txn};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::exec::txns::Txns;
use crate::row::{RowReader, RowWriter};
use crate::schema::Table;
use crate::value::ValueRef;

/// Rows that users may add between two places.
const SPACING: u32 = 20;

/// The rowid in sqlite_sequence of the table that this tree holds.
pub fn slot(tree: &Tree) -> i64 {
    i64::from(tree.id().0) << SPACING
}

fn put(txn: &mut Txns, stored: &Tree, at: i64, name: &str, seq: Option<i64>) -> Result<()> {
    let mut record = Vec::new();
    let seq = seq.map_or(ValueRef::Null, ValueRef::Integer);
    RowWriter::encode(&mut record, [ValueRef::Text(name.as_bytes()), seq])?;
    txn.put(stored, Key::Int(at), &record)?;
    Ok(())
}

/// `seq` of a row; None where it is NULL.
fn seq_of(record: &[u8]) -> Result<Option<i64>> {
    let row = RowReader::new(record).map_err(in_sequence)?;
    let seq = row.column_or(1, ValueRef::Null).map_err(in_sequence)?;
    Ok((!seq.is_null()).then(|| seq.to_integer()))
}

#[cold]
fn in_sequence(error: Error) -> Error {
    error.within("a row of sqlite_sequence")
}

/// Makes a new table's row.
pub fn begin(txn: &mut Txns, stored: &Tree, name: &str, tree: &Tree) -> Result<()> {
    put(txn, stored, slot(tree), name, None)
}

/// The number that new rows of the table must be above, if the table's largest
/// rowid is not; a missing row is made.
pub fn floor(txn: &mut Txns, stored: &Tree, table: &Table) -> Result<Option<i64>> {
    let at = slot(&table.tree);
    // Under `snapshot`, too, its commit loses where somebody writes down another number
    // meanwhile: that of a row which it cannot see, and which is gone.
    let mut record = Vec::new();
    if txn.get_lasting(stored, Key::Int(at), &mut record)? {
        return seq_of(&record);
    }
    let mut seq = None;
    for (rowid, name, its) in rows(txn, stored)? {
        if name == table.name.as_bytes() {
            seq = seq.max(its);
            txn.delete(stored, Key::Int(rowid))?;
        }
    }
    put(txn, stored, at, &table.name, seq)?;
    Ok(seq)
}

/// Copies all rows into another database, in which the tables of these trees are others.
pub fn copy(
    source: &mut Txn,
    from: &Tree,
    target: &mut Txn,
    to: &Tree,
    tables: &FxHashMap<u32, Tree>,
) -> Result<()> {
    let mut cursor = source.cursor(from)?;
    let mut more = cursor.seek(Seek::First)?;
    while more {
        let rowid = cursor.key_int();
        let table = u32::try_from(rowid >> SPACING)
            .ok()
            .and_then(|number| tables.get(&number));
        // Users may have added rows between the places, or anywhere.
        let place = table.map(|table| slot(table) | (rowid & ((1 << SPACING) - 1)));
        let record = cursor.value()?;
        let is_put = match place {
            Some(place) => target.insert(to, Key::Int(place), record)?,
            None => false,
        };
        if !is_put {
            let place = target.allocate_rowid(to)?;
            target.put(to, Key::Int(place), record)?;
        }
        more = cursor.next()?;
    }
    Ok(())
}

/// A row of sqlite_sequence: rowid, name, `seq`.
type Sequence = (i64, Vec<u8>, Option<i64>);

fn rows(txn: &mut Txns, stored: &Tree) -> Result<Vec<Sequence>> {
    let mut cursor = txn.cursor(stored)?;
    let mut more = cursor.seek(Seek::First)?;
    let mut found = Vec::new();
    while more {
        let rowid = cursor.key_int();
        let record = cursor.value()?;
        let row = RowReader::new(record).map_err(in_sequence)?;
        let name = match row.column_or(0, ValueRef::Null).map_err(in_sequence)? {
            ValueRef::Text(name) => name.to_vec(),
            _ => Vec::new(),
        };
        found.push((rowid, name, seq_of(record)?));
        more = cursor.next()?;
    }
    Ok(found)
}

/// Whether nobody would know any more that rows up to `deleted` were there.
pub fn is_lost(txn: &mut Txns, stored: &Tree, table: &Table, deleted: i64) -> Result<bool> {
    if deleted <= 0 || txn.largest_rowid(&table.tree)? >= Some(deleted) {
        return Ok(false);
    }
    Ok(floor(txn, stored, table)?.is_none_or(|seq| seq < deleted))
}

/// Writes down that they were.
pub fn keep(txn: &mut Txns, stored: &Tree, table: &Table, deleted: i64) -> Result<()> {
    put(txn, stored, slot(&table.tree), &table.name, Some(deleted))
}

/// Before a user changes sqlite_sequence: its rows become what a query shows.
#[cold]
pub fn show(txn: &mut Txns, stored: &Tree, tables: &[std::sync::Arc<Table>]) -> Result<()> {
    let mut record = Vec::new();
    for table in tables {
        let at = slot(&table.tree);
        if !txn.get_into(stored, Key::Int(at), &mut record)? {
            continue;
        }
        let seq = seq_of(&record)?;
        let largest = txn.largest_rowid(&table.tree)?;
        if seq.is_none() && largest.is_none() {
            txn.delete(stored, Key::Int(at))?;
            continue;
        }
        let now = seq.unwrap_or(0).max(largest.unwrap_or(0));
        if seq != Some(now) {
            put(txn, stored, at, &table.name, Some(now))?;
        }
    }
    Ok(())
}

/// Gives a table's rows its new name, as SQLite does all rows of the old one.
pub fn rename(txn: &mut Txns, stored: &Tree, old: &str, new: &str) -> Result<()> {
    for (rowid, name, seq) in rows(txn, stored)? {
        if name == old.as_bytes() {
            put(txn, stored, rowid, new, seq)?;
        }
    }
    Ok(())
}

/// Removes a dropped table's rows.
pub fn end(txn: &mut Txns, stored: &Tree, table: &Table) -> Result<()> {
    for (rowid, name, _) in rows(txn, stored)? {
        if rowid == slot(&table.tree) || name == table.name.as_bytes() {
            txn.delete(stored, Key::Int(rowid))?;
        }
    }
    Ok(())
}

/// The error of a table whose numbers are used up.
pub fn used_up(table: &Table) -> Error {
    Error::new(crate::error::code::FULL, "database or disk is full").with_hint(format!(
        "the sequence of {} has reached the largest number there is",
        table.name
    ))
}
