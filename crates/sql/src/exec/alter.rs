//! ALTER TABLE and REINDEX: the rows of sqlite_schema that change, and those of a table.

use fulgurite_store::{Key, Seek, Tree};

use crate::error::Result;
use crate::exec::context::Run;
use crate::exec::fetch::in_row;
use crate::exec::schema_edits::SchemaEdits;
use crate::exec::txns::Txns;
use crate::plan::physical::{SchemaPlace, SchemaRewrite};
use crate::row::{RowReader, RowWriter};
use crate::schema::{SchemaRow, Table};
use crate::value::ValueRef;

/// Rows that are written at once, and about as many bytes at most.
const ROWS: usize = 1024;
const BYTES: usize = 1 << 18;

/// Gives rows of sqlite_schema their new names and texts.
pub fn rewrite(
    changes: &[SchemaRewrite],
    place: &SchemaPlace,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    rewrite_in(changes, false, &place.tree, edits, txn)?;
    match &place.temp {
        Some(temp) => rewrite_in(changes, true, temp, edits, txn),
        None => Ok(()),
    }
}

fn rewrite_in(
    changes: &[SchemaRewrite],
    in_temp: bool,
    schema: &Tree,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    let change_of = |row: &SchemaRow| {
        let is_it = |change: &&SchemaRewrite| {
            change.in_temp == in_temp
                && row.kind.eq_ignore_ascii_case(&change.kind)
                && row.name.eq_ignore_ascii_case(&change.name)
        };
        changes.iter().find(is_it)
    };
    for (rowid, row) in edits.find(schema, |row| change_of(row).is_some())? {
        let Some(change) = change_of(&row) else {
            continue;
        };
        let mut row = SchemaRow::clone(&row);
        row.name.clone_from(&change.new_name);
        row.table.clone_from(&change.new_table);
        row.sql.clone_from(&change.new_sql);
        edits.put(schema, rowid, row, txn)?;
    }
    Ok(())
}

/// Has an index stand in another tree.
pub fn move_index(
    index: &str,
    tree: &Tree,
    schema: &Tree,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    let is_it = |row: &SchemaRow| {
        row.kind.eq_ignore_ascii_case("index") && row.name.eq_ignore_ascii_case(index)
    };
    let has_it = |row: &SchemaRow| is_it(row) || row.key_row().is_some_and(|key| is_it(&key));
    let root = i64::from(tree.id().0);
    for (rowid, row) in edits.find(schema, has_it)? {
        let is_own = is_it(&row);
        let mut row = SchemaRow::clone(&row);
        match row.key.as_mut().filter(|_| !is_own) {
            Some(key) => key.root = root,
            None => row.root = root,
        }
        edits.put(schema, rowid, row, txn)?;
    }
    Ok(())
}

/// Takes a column out of all rows of a table. Those that were stored before the column was
/// added end before it and stay as they are.
pub fn drop_column(table: &Table, column: usize, txn: &mut Txns, run: &Run) -> Result<()> {
    let (mut records, mut ends) = (Vec::new(), Vec::new());
    let mut last = None;
    loop {
        run.check_interrupt()?;
        records.clear();
        ends.clear();
        let mut read = 0;
        // A cursor keeps what it may still show: each part has its own.
        let mut cursor = txn.cursor(&table.tree)?;
        let mut more = cursor.seek(last.map_or(Seek::First, |key| Seek::After(Key::Int(key))))?;
        while more && read < ROWS && records.len() < BYTES {
            let rowid = cursor.key_int();
            let narrowed = without_column(cursor.value()?, column, &mut records);
            if narrowed.map_err(|error| in_row(error, table, rowid))? {
                ends.push((rowid, records.len()));
            }
            last = Some(rowid);
            read += 1;
            more = cursor.next()?;
        }
        drop(cursor);
        let starts = std::iter::once(0).chain(ends.iter().map(|(_, end)| *end));
        let entries = starts
            .zip(&ends)
            .map(|(start, (rowid, end))| (*rowid, records.get(start..*end).unwrap_or(&[])));
        txn.put_all(&table.tree, entries)?;
        if !more {
            return Ok(());
        }
    }
}

/// Appends a row without one of its columns, if it has that.
fn without_column(row: &[u8], column: usize, out: &mut Vec<u8>) -> Result<bool> {
    let reader = RowReader::new(row)?;
    if reader.len() <= column {
        return Ok(false);
    }
    let mut values: Vec<ValueRef<'_>> = reader.values().collect::<Result<_>>()?;
    values.remove(column);
    RowWriter::encode(out, values)?;
    Ok(true)
}
