//! Writing rows whose large columns were not read (`plan/kept.rs`).
//!
//! Where all columns that the statement assigns lie in the row's start, that is written
//! anew and the rest stays where it is. Otherwise the columns that it does not assign are
//! read after all, and the row is written whole.

use fulgurite_store::Key;

use super::sink::Sink;
use crate::error::{Error, Result};
use crate::row::{Columns, Large, RowReader, patch};
use crate::value::ValueRef;

/// What `buffers.record` has of the row being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    /// All.
    Whole,
    /// What its first bytes become, so many.
    Start(usize),
}

impl Sink<'_> {
    /// As [`encode`](Self::encode) for a row that takes the place of one whose large columns
    /// were not read; `buffers.assigned` are those that change.
    pub(super) fn encode_large(&mut self) -> Result<Encoded> {
        let tree = &self.target.table.tree;
        let key = Key::Int(self.rowid());
        let mut start = Vec::new();
        let Some(length) = self.txn.get_start_to_change(tree, key, &mut start)? else {
            return Err(Error::corrupt("a row that is being changed is gone"));
        };
        let buffers = &mut *self.buffers;
        let row = &buffers.row;
        let changes = buffers.assigned.iter().map(|column| {
            let value = row.get(column + 1);
            (
                *column,
                value.map_or(ValueRef::Null, |value| value.as_ref()),
            )
        });
        if start.len() < length && patch(&start, changes, &mut buffers.record)? {
            return Ok(Encoded::Start(start.len()));
        }
        self.read_unassigned(&start, length)?;
        self.encode()?;
        Ok(Encoded::Whole)
    }

    /// Reads what the row being written keeps of the one that is stored.
    fn read_unassigned(&mut self, start: &[u8], length: usize) -> Result<()> {
        let table = &self.target.table;
        let key = Key::Int(self.rowid());
        let assigned = &self.buffers.assigned;
        let stays = |at: &usize| !assigned.contains(at) && table.rowid_alias != Some(*at);
        let wanted: Vec<usize> = (0..table.columns.len()).filter(stays).collect();
        let txn = &mut *self.txn;
        let mut large = Large {
            start,
            length,
            load: |part, out: &mut Vec<u8>| {
                txn.get_part(&table.tree, key, part, out)?;
                Ok(())
            },
        };
        let columns = Columns {
            wanted: &wanted,
            kept: &[],
        };
        let mut narrow = Vec::new();
        large.narrow(columns, &mut narrow, &mut Vec::new())?;
        let reader = RowReader::new(&narrow)?;
        for column in wanted {
            let missing = table.columns.get(column);
            let missing = missing.map_or(ValueRef::Null, |column| column.missing.as_ref());
            let value = reader.column_or(column, missing)?;
            if let Some(slot) = self.buffers.row.get_mut(column + 1) {
                slot.assign(value);
            }
        }
        Ok(())
    }
}
