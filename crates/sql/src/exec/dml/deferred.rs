//! Index entries of a statement of many rows: kept back, and made in the order of their
//! keys.
//!
//! Made with their rows, each goes to another leaf, and an index that is larger than what
//! a transaction may keep in memory is written and read over and over. Sorted first, in
//! the connection's memory and beyond that in a temporary file, all that a leaf gets comes
//! at once. What lies behind all that the statement has made in the index is in order as
//! it is, and made at once.
//!
//! Nobody misses them meanwhile: what a statement reads is the state at its start. Only
//! constraints look at what it has written, into indexes that are unique. Entries of those
//! are kept back where nothing is looked for, in a DELETE, and where finding a key taken
//! does nothing but undo the statement. What becomes of one key stays in order.
//!
//! Where the statement fails, what is kept back is forgotten with the rest of it; where OR
//! FAIL leaves the rows before, it is made.

use fulgurite_store::{Key, Tree, Txn};

use super::entry::{Entry, duplicate};
use crate::error::Result;
use crate::exec::context::Run;
use crate::exec::memory::Memory;
use crate::exec::sorter::Sorter;
use crate::plan::physical::{IndexWriter, TableWriter};
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
    /// Rows of the statement so far.
    rows: usize,
    /// By position in `TableWriter::indexes`; none where entries are made with their rows.
    kept: Vec<Option<Kept>>,
    payload: Vec<u8>,
}

/// What is kept back for one index.
struct Kept {
    sorter: Sorter,
    /// The highest key that was made, since there is anything to keep back. What is kept
    /// is not above it.
    made: Vec<u8>,
}

impl Deferred {
    /// Before more rows, so many. True: entries are to be kept back from now on.
    pub fn expect(&mut self, rows: usize) -> bool {
        self.rows += rows;
        self.rows >= ROWS_MIN && self.kept.is_empty()
    }

    /// Begins. `unique`: also those of unique indexes.
    pub fn begin(&mut self, target: &TableWriter, unique: bool, memory: &Memory) {
        let kept = |writer: &IndexWriter| {
            let defers = unique || !writer.index.unique;
            defers.then(|| Kept {
                sorter: Sorter::new(memory, None),
                made: Vec::new(),
            })
        };
        self.kept = target.indexes.iter().map(kept).collect();
    }

    /// Whether entries of the index at this position are kept back.
    pub fn defers(&self, at: usize) -> bool {
        matches!(self.kept.get(at), Some(Some(_)))
    }

    /// Puts an entry into the index at this position. `exclusive`: nobody may have its
    /// key; where the index does not defer, that was found out before.
    pub fn put(
        &mut self,
        txn: &mut Txn,
        table: &Table,
        (at, writer): (usize, &IndexWriter),
        entry: &Entry,
        exclusive: bool,
    ) -> Result<()> {
        let Some(Some(kept)) = self.kept.get_mut(at) else {
            txn.put(&writer.index.tree, Key::Bytes(&entry.key), &entry.value)?;
            return Ok(());
        };
        let request = if exclusive { INSERT } else { PUT };
        if kept.is_behind(&entry.key) {
            return make(txn, table, &writer.index, &entry.key, request, &entry.value);
        }
        self.payload.clear();
        self.payload.push(request);
        self.payload.extend_from_slice(&entry.value);
        kept.sorter.add(&entry.key, &self.payload)
    }

    /// Deletes an entry.
    pub fn delete(
        &mut self,
        txn: &mut Txn,
        (at, writer): (usize, &IndexWriter),
        entry: &Entry,
    ) -> Result<()> {
        if let Some(Some(kept)) = self.kept.get_mut(at)
            && !kept.is_behind(&entry.key)
        {
            return kept.sorter.add(&entry.key, &[DELETE]);
        }
        delete(txn, &writer.index.tree, &entry.key)
    }

    /// Makes what is kept back.
    ///
    /// # Errors
    /// That of a duplicate; of the store.
    pub fn make(&mut self, txn: &mut Txn, target: &TableWriter, run: &Run) -> Result<()> {
        let mut made = 0u32;
        for (writer, kept) in target.indexes.iter().zip(self.kept.drain(..)) {
            let Some(Kept { mut sorter, .. }) = kept else {
                continue;
            };
            sorter.finish()?;
            while let Some((key, payload)) = sorter.next_record()? {
                let (request, value) = payload.split_first().unwrap_or((&DELETE, &[]));
                make(txn, &target.table, &writer.index, key, *request, value)?;
                made = made.wrapping_add(1);
                if made.is_multiple_of(LOOK) {
                    run.check_interrupt()?;
                }
            }
        }
        Ok(())
    }
}

impl Kept {
    /// Whether a key lies behind all that was made. It is, then.
    fn is_behind(&mut self, key: &[u8]) -> bool {
        let is_behind = key > self.made.as_slice();
        if is_behind {
            self.made.clear();
            self.made.extend_from_slice(key);
        }
        is_behind
    }
}

fn make(
    txn: &mut Txn,
    table: &Table,
    index: &Index,
    key: &[u8],
    request: u8,
    value: &[u8],
) -> Result<()> {
    match request {
        INSERT if !txn.insert(&index.tree, Key::Bytes(key), value)? => Err(duplicate(table, index)),
        INSERT => Ok(()),
        PUT => {
            txn.put(&index.tree, Key::Bytes(key), value)?;
            Ok(())
        }
        _ => delete(txn, &index.tree, key),
    }
}

fn delete(txn: &mut Txn, tree: &Tree, key: &[u8]) -> Result<()> {
    txn.delete(tree, Key::Bytes(key))?;
    Ok(())
}
