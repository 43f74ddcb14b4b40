//! The index entries of the row being written: made, put into their indexes, and taken back.

use fulgurite_store::Key;

use super::entry::Entry;
use super::sink::{Buffers, Sink};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::Row;

impl Sink<'_> {
    /// Makes the index entries of the row being written.
    pub fn make_entries(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.make_changed_entries(true, cx)
    }

    /// Makes the index entries of the row in `buffers.old`.
    pub fn make_old_entries(
        &mut self,
        rowid: i64,
        all: bool,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let Buffers {
            old,
            old_entries,
            makers,
            ..
        } = &mut *self.buffers;
        for ((writer, maker), entry) in self.target.indexes.iter().zip(makers).zip(old_entries) {
            if all || writer.affected {
                maker.make(writer, Row::Values(old), rowid, cx, entry)?;
            }
        }
        Ok(())
    }

    /// Makes new entries where an UPDATE may change them.
    pub fn make_changed_entries(&mut self, all: bool, cx: &mut Context<'_, '_>) -> Result<()> {
        let rowid = self.rowid();
        let Buffers {
            row,
            entries,
            makers,
            ..
        } = &mut *self.buffers;
        for ((writer, maker), entry) in self.target.indexes.iter().zip(makers).zip(entries) {
            if all || writer.affected {
                maker.make(writer, Row::Values(row), rowid, cx, entry)?;
            }
        }
        Ok(())
    }

    /// Makes those entries of the row being written that no other row may have, or the
    /// others, up to one that another row has: that index.
    pub(super) fn insert_entries(
        &mut self,
        exclusive: bool,
        overwrites: bool,
    ) -> Result<Option<usize>> {
        for (i, writer) in self.target.indexes.iter().enumerate() {
            let is_among = |entry: &&Entry| entry.present && entry.exclusive == exclusive;
            let Some(entry) = self.buffers.entries.get(i).filter(is_among) else {
                continue;
            };
            if overwrites && self.buffers.has_again(i) {
                continue;
            }
            let (index, key) = (&writer.index, entry.key.as_slice());
            let defers = self.deferred.defers(index);
            let is_taken = match (exclusive, defers) {
                (true, false) => !self
                    .txn
                    .insert(&index.tree, Key::Bytes(key), &entry.value)?,
                (true, true) => self.deferred.is_taken(self.txn, index, key)?,
                (false, _) => false,
            };
            if is_taken {
                return Ok(Some(i));
            }
            if defers || !exclusive {
                self.deferred.put(self.txn, index, entry, exclusive)?;
            }
        }
        Ok(None)
    }

    /// Removes the new row and its entries.
    pub(super) fn take_back(&mut self, rowid: i64) -> Result<()> {
        self.take_back_entries(|_, _| true, false)?;
        self.txn.delete(&self.target.table.tree, Key::Int(rowid))?;
        Ok(())
    }

    /// Removes those of the new row's entries that were made, by their index, and those that
    /// it has from the old one.
    pub(super) fn take_back_entries(
        &mut self,
        was_made: impl Fn(usize, &Entry) -> bool,
        overwrites: bool,
    ) -> Result<()> {
        for (i, writer) in self.target.indexes.iter().enumerate() {
            let is_there = |entry: &&Entry| {
                entry.present && (was_made(i, entry) || overwrites && self.buffers.has_again(i))
            };
            if let Some(entry) = self.buffers.entries.get(i).filter(is_there) {
                self.deferred.delete(self.txn, &writer.index, entry)?;
            }
        }
        Ok(())
    }
}
