//! Index entries of many rows: kept back, and made in the order of their keys.
//!
//! Made with their rows, each goes to another leaf, and an index that is larger than what
//! a transaction may keep in memory is written and read over and over. Sorted first, in
//! the connection's memory and beyond that in a temporary file, all that a leaf gets comes
//! at once. What lies behind all that was made in the index is in order as it is, and made
//! at once.
//!
//! A statement of many rows makes them at its end. Nobody misses them before: what it
//! reads is the state at its start, and constraints look only into indexes that are
//! unique. Entries of those are kept back where nothing is looked for, in a DELETE, and
//! where finding a key taken does nothing but undo the statement.
//!
//! Statements of one row each, in one transaction, keep back what is not unique from one
//! to the next, up to the first statement that could look there, a savepoint, or COMMIT
//! (`session/state.rs`). So none of them may need a place to go back to.
//!
//! What becomes of one key stays in order. Where a statement or transaction fails, what is
//! kept back is forgotten with the rest of it; where OR FAIL leaves the rows before, it is
//! made.

use std::sync::Arc;

use fulgurite_store::{Key, Txn};

use super::entry::{Entry, duplicate};
use crate::error::Result;
use crate::exec::memory::Memory;
use crate::exec::sorter::Sorter;
use crate::plan::physical::TableWriter;
use crate::schema::{Index, Table};

/// Rows from which on it is worth it to sort their entries.
const ROWS_MIN: usize = 2_048;
/// Entries between two looks whether the statement is interrupted.
const LOOK: u32 = 4_096;

/// What a record asks for, in the first byte behind its key.
const DELETE: u8 = 0;
const PUT: u8 = 1;
const INSERT: u8 = 2;

/// See the module.
#[derive(Default)]
pub struct Deferred {
    /// Rows so far.
    rows: usize,
    /// Of all indexes whose entries are kept back.
    kept: Vec<Kept>,
    payload: Vec<u8>,
}

/// What is kept back for one index.
struct Kept {
    table: Arc<Table>,
    index: Arc<Index>,
    sorter: Sorter,
    /// The highest key that was made, since there is anything to keep back. What is kept
    /// is not above it.
    made: Vec<u8>,
}

impl Deferred {
    /// Before more rows, so many. True: there are enough to keep entries back.
    #[inline]
    pub fn expect(&mut self, rows: usize) -> bool {
        self.rows += rows;
        self.rows >= ROWS_MIN
    }

    /// Entries of this table are kept back from now on. `unique`: also those of unique
    /// indexes.
    pub fn begin(&mut self, target: &TableWriter, unique: bool, memory: &Memory) {
        for writer in &target.indexes {
            if (unique || !writer.index.unique) && !self.defers(&writer.index) {
                self.kept.push(Kept {
                    table: Arc::clone(&target.table),
                    index: Arc::clone(&writer.index),
                    sorter: Sorter::new(memory, None),
                    made: Vec::new(),
                });
            }
        }
    }

    /// Whether entries of the index are kept back.
    pub fn defers(&mut self, index: &Index) -> bool {
        find(&mut self.kept, index).is_some()
    }

    /// Puts an entry. `exclusive`: nobody may have its key; where the index does not
    /// defer, that was found out before.
    #[inline]
    pub fn put(
        &mut self,
        txn: &mut Txn,
        index: &Index,
        entry: &Entry,
        exclusive: bool,
    ) -> Result<()> {
        let Some(kept) = find(&mut self.kept, index) else {
            txn.put(&index.tree, Key::Bytes(&entry.key), &entry.value)?;
            return Ok(());
        };
        self.payload.clear();
        self.payload.push(if exclusive { INSERT } else { PUT });
        self.payload.extend_from_slice(&entry.value);
        kept.take(txn, &entry.key, &self.payload)
    }

    /// Deletes an entry.
    #[inline]
    pub fn delete(&mut self, txn: &mut Txn, index: &Index, entry: &Entry) -> Result<()> {
        match find(&mut self.kept, index) {
            Some(kept) => kept.take(txn, &entry.key, &[DELETE]),
            None => {
                txn.delete(&index.tree, Key::Bytes(&entry.key))?;
                Ok(())
            }
        }
    }

    /// Whether nothing is kept back.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Forgets what is kept back.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.kept.clear();
    }

    /// Makes what is kept back. `look` is asked now and then whether to go on.
    ///
    /// # Errors
    /// That of a duplicate; of the store; what `look` says.
    pub fn make(&mut self, txn: &mut Txn, look: impl Fn() -> Result<()>) -> Result<()> {
        self.rows = 0;
        let mut made = 0u32;
        for mut kept in self.kept.drain(..) {
            kept.sorter.finish()?;
            while let Some((key, payload)) = kept.sorter.next_record()? {
                carry_out(txn, &kept.table, &kept.index, key, payload)?;
                made = made.wrapping_add(1);
                if made.is_multiple_of(LOOK) {
                    look()?;
                }
            }
        }
        Ok(())
    }
}

impl Kept {
    /// Carries out a request, at once or later.
    fn take(&mut self, txn: &mut Txn, key: &[u8], payload: &[u8]) -> Result<()> {
        if key <= self.made.as_slice() {
            return self.sorter.add(key, payload);
        }
        self.made.clear();
        self.made.extend_from_slice(key);
        carry_out(txn, &self.table, &self.index, key, payload)
    }
}

/// Where entries of the index are kept back.
#[inline]
fn find<'k>(kept: &'k mut [Kept], index: &Index) -> Option<&'k mut Kept> {
    let tree = index.tree.id();
    kept.iter_mut().find(|kept| kept.index.tree.id() == tree)
}

/// Carries out what a record asks for.
fn carry_out(
    txn: &mut Txn,
    table: &Table,
    index: &Index,
    key: &[u8],
    payload: &[u8],
) -> Result<()> {
    let (tree, key) = (&index.tree, Key::Bytes(key));
    match payload.split_first() {
        Some((&INSERT, value)) => {
            if !txn.insert(tree, key, value)? {
                return Err(duplicate(table, index));
            }
        }
        Some((&PUT, value)) => {
            txn.put(tree, key, value)?;
        }
        _ => {
            txn.delete(tree, key)?;
        }
    }
    Ok(())
}
