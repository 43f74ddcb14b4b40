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
//! to the next, and so do INSERTs of VALUES, up to the first statement that could look
//! there, a savepoint, or COMMIT (`session/state.rs`). Of a statement that is undone, what
//! is kept back is passed over. Where new entries of a unique index come back to pages
//! that the transaction has written out already, they are kept back, too, as long as there
//! are only INSERTs: which keys are taken is known (`taken.rs`). Where it is not, all is
//! made to be looked at; but not within a statement that may be undone, and what others
//! have kept back with it. Such a statement is *unsure*: it is undone and runs again, once
//! all is made.
//!
//! Where they are as many as the index has, and nobody else changes it meanwhile, the index
//! is written anew from both (`merge.rs`); to copy an entry takes a third of a change.
//!
//! What becomes of one key stays in order. Where a statement or transaction fails, what is
//! kept back is forgotten with the rest of it; where OR FAIL leaves the rows before, it is
//! made.

use std::sync::Arc;

use fulgurite_store::{Key, Seek};

use super::entry::{Entry, duplicate};
use super::merge::Merge;
use super::taken::Taken;
use crate::error::{Error, Result};
use crate::exec::memory::{Memory, let_go};
use crate::exec::sorter::Sorter;
use crate::exec::txns::Txns;
use crate::plan::physical::TableWriter;
use crate::schema::{Index, Table};

/// Rows from which on it is worth it to sort their entries.
const ROWS_MIN: usize = 2_048;
/// Entries between two looks whether the statement is interrupted.
pub(super) const LOOK: u32 = 4_096;

/// What a record asks for, in the first byte behind its key. The number of its statement
/// follows, and the entry's value.
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
    /// It outlives the statement.
    lasts: bool,
    /// Statements that may be undone by themselves: the number of the last one, and those
    /// that were.
    statement: u32,
    undone: Vec<u32>,
    /// The statement at work is such a one, and whether it could not tell if a key is taken.
    may_be_undone: bool,
    is_unsure: bool,
}

/// What is kept back for one index.
struct Kept {
    table: Arc<Table>,
    index: Arc<Index>,
    sorter: Sorter,
    /// What is kept back has been made in part; no more may be kept before it is made
    /// wholly.
    is_being_made: bool,
    /// Where that writes the whole index anew, how far it has come.
    merge: Option<Merge>,
    /// How many records are kept back.
    records: u64,
    /// The highest key that was made, since there is anything to keep back. What is kept
    /// is not above it.
    made: Vec<u8>,
    memory: Memory,
    /// Where statements have to know at once whether a key is taken.
    taken: Option<Taken>,
}

impl Deferred {
    /// For the statements of a transaction.
    pub fn lasting() -> Self {
        Self {
            lasts: true,
            ..Self::default()
        }
    }

    /// Whether it outlives the statement.
    pub fn lasts(&self) -> bool {
        self.lasts
    }

    /// A statement begins that is not undone by itself.
    #[inline]
    pub fn begin_statement(&mut self) {
        self.may_be_undone = false;
    }

    /// One begins that may be, of so many rows at most where it looks into unique indexes.
    /// Nothing is made before it ends; so that is done now, where there might not be room.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub fn begin_undoable(&mut self, txn: &mut Txns, rows: usize) -> Result<()> {
        self.may_be_undone = true;
        self.statement += 1;
        let mut taken = self.kept.iter().filter_map(|kept| kept.taken.as_ref());
        match taken.all(|taken| taken.has_room(rows)) {
            true => Ok(()),
            false => self.make_kept(txn, || Ok(())),
        }
    }

    /// Whether the statement failed since it could not tell whether a key is taken.
    pub fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// It is undone. Others that may not be are told from it.
    pub fn undo_statement(&mut self) {
        self.undone.push(self.statement);
        self.statement += 1;
    }

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
                self.kept.push(Kept::new(target, &writer.index, memory));
            }
        }
    }

    /// Entries of the unique indexes of this table are kept back from now on, where the
    /// transaction's changes of one are scattered.
    ///
    /// # Errors
    /// Of the store.
    pub fn begin_unique(
        &mut self,
        txn: &mut Txns,
        target: &TableWriter,
        memory: &Memory,
    ) -> Result<()> {
        for index in target.indexes.iter().map(|writer| &writer.index) {
            if index.unique && txn.is_scattered(&index.tree) && !self.defers(index) {
                let among = target.indexes.iter().filter(|writer| writer.index.unique);
                let limit = memory.limit() / among.count();
                let mut kept = Kept::new(target, index, memory);
                kept.taken = Some(taken(txn, index, memory, limit)?);
                self.kept.push(kept);
            }
        }
        Ok(())
    }

    /// Whether statements have to know which keys are taken that are kept back.
    pub fn has_unique(&self) -> bool {
        self.kept.iter().any(|kept| kept.taken.is_some())
    }

    /// Whether a key is taken in an index whose entries are kept back; where that may be
    /// found out later, false.
    pub fn is_taken(&mut self, txn: &mut Txns, index: &Index, key: &[u8]) -> Result<bool> {
        let Some(taken) = find(&mut self.kept, index).and_then(|kept| kept.taken.as_ref()) else {
            return Ok(false);
        };
        let hash = taken.hash(key);
        if taken.may_be_kept(hash) {
            self.make_now(txn)?;
        } else if !taken.may_be_there(hash) {
            return Ok(false);
        }
        Ok(txn.is_taken(&index.tree, Key::Bytes(key))?)
    }

    /// Whether entries of the index are kept back.
    pub fn defers(&self, index: &Index) -> bool {
        self.kept.iter().any(|kept| kept.index.tree == index.tree)
    }

    /// Puts an entry. `exclusive`: nobody may have its key; where the index does not
    /// defer, that was found out before.
    #[inline]
    pub fn put(
        &mut self,
        txn: &mut Txns,
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
        self.payload
            .extend_from_slice(&self.statement.to_le_bytes());
        self.payload.extend_from_slice(&entry.value);
        let has_room = kept.take(txn, &entry.key, &self.payload)?;
        self.make_unless(has_room, txn)
    }

    /// Deletes an entry.
    #[inline]
    pub fn delete(&mut self, txn: &mut Txns, index: &Index, entry: &Entry) -> Result<()> {
        let Some(kept) = find(&mut self.kept, index) else {
            txn.delete(&index.tree, Key::Bytes(&entry.key))?;
            return Ok(());
        };
        self.payload.clear();
        self.payload.push(DELETE);
        self.payload
            .extend_from_slice(&self.statement.to_le_bytes());
        let has_room = kept.take(txn, &entry.key, &self.payload)?;
        self.make_unless(has_room, txn)
    }

    fn make_unless(&mut self, has_room: bool, txn: &mut Txns) -> Result<()> {
        match has_room {
            true => Ok(()),
            false => self.make_now(txn),
        }
    }

    /// Makes what is kept back in the midst of a statement.
    fn make_now(&mut self, txn: &mut Txns) -> Result<()> {
        if self.may_be_undone {
            self.is_unsure = true;
            return Err(Error::sql(
                "the statement was undone to look for a key that may be taken",
            ));
        }
        self.make_kept(txn, || Ok(()))
    }

    /// Whether entries are kept back of an index of which this is true.
    pub fn any_kept(&self, is_meant: impl Fn(&Index) -> bool) -> bool {
        self.kept.iter().any(|kept| is_meant(&kept.index))
    }

    /// Whether nothing is kept back.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether what is kept back has been made in part.
    pub fn is_being_made(&self) -> bool {
        self.kept.iter().any(|kept| kept.is_being_made)
    }

    /// Forgets what is kept back.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.kept.clear();
        self.statement = 0;
        self.undone.clear();
        self.may_be_undone = false;
        self.is_unsure = false;
        let_go(&mut self.payload);
    }

    /// Makes what is kept back, and keeps nothing back from now on. `look` is asked now and
    /// then whether to go on. Where the store is busy or has a conflict, it may be called
    /// again.
    ///
    /// # Errors
    /// That of a duplicate; of the store; what `look` says.
    pub fn make(&mut self, txn: &mut Txns, look: impl Fn() -> Result<()>) -> Result<()> {
        self.make_kept(txn, look)?;
        self.clear();
        Ok(())
    }

    fn make_kept(&mut self, txn: &mut Txns, look: impl Fn() -> Result<()>) -> Result<()> {
        let undone = &self.undone;
        let mut kept = self.kept.iter_mut();
        kept.try_for_each(|kept| kept.make(txn, undone, &look))
    }
}

impl Kept {
    fn new(target: &TableWriter, index: &Arc<Index>, memory: &Memory) -> Self {
        Self {
            table: Arc::clone(&target.table),
            index: Arc::clone(index),
            sorter: Sorter::new(memory, None),
            is_being_made: false,
            merge: None,
            records: 0,
            made: Vec::new(),
            memory: memory.clone(),
            taken: None,
        }
    }

    /// Carries out a request, at once or later. False: there is no room to keep back more.
    fn take(&mut self, txn: &mut Txns, key: &[u8], payload: &[u8]) -> Result<bool> {
        if key <= self.made.as_slice() {
            self.sorter.add(key, payload)?;
            self.records += 1;
            let taken = self.taken.as_mut();
            return Ok(taken.is_none_or(|taken| taken.keep(taken.hash(key))));
        }
        self.made.clear();
        self.made.extend_from_slice(key);
        if let Some(taken) = &mut self.taken {
            taken.add(taken.hash(key));
        }
        carry_out(txn, &self.table, &self.index, key, Request::of(payload))?;
        Ok(true)
    }

    /// But for what belongs to statements that were undone, whose numbers ascend.
    fn make(
        &mut self,
        txn: &mut Txns,
        undone: &[u32],
        look: &impl Fn() -> Result<()>,
    ) -> Result<()> {
        if !self.is_being_made {
            self.sorter.finish()?;
            self.is_being_made = true;
            let tree = &self.index.tree;
            if self.records > 0 && self.records >= txn.estimate(tree)? {
                self.merge = txn.take_all(tree)?.map(Merge::new);
            }
        }
        let Self {
            table,
            index,
            sorter,
            merge,
            taken,
            ..
        } = self;
        match merge {
            None => make_each(sorter, taken, undone, look, |key, request| {
                carry_out(txn, table, index, key, request)
            })?,
            Some(merge) => {
                let suspended = std::mem::take(&mut merge.suspended);
                let mut entries = txn.go_on_appending(&index.tree, suspended);
                let made = make_each(sorter, taken, undone, look, |key, request| {
                    match merge.change(&mut entries, key, request, look)? {
                        true => Ok(()),
                        false => Err(duplicate(table, index)),
                    }
                });
                let made = made.and_then(|()| merge.finish(&mut entries, look));
                merge.suspended = entries.suspend();
                made?;
            }
        }
        self.merge = None;
        self.records = 0;
        self.sorter = Sorter::new(&self.memory, None);
        self.is_being_made = false;
        self.made.clear();
        if let Some(taken) = &mut self.taken {
            taken.clear_kept();
        }
        Ok(())
    }
}

/// Has all that is kept back carried out, but for what was undone. One that fails comes
/// again.
fn make_each(
    sorter: &mut Sorter,
    taken: &mut Option<Taken>,
    undone: &[u32],
    look: &impl Fn() -> Result<()>,
    mut carry_out: impl FnMut(&[u8], Request<'_>) -> Result<()>,
) -> Result<()> {
    let mut made = 0u32;
    while let Some((key, payload)) = sorter.next_record()? {
        if undone.binary_search(&statement_of(payload)).is_ok() {
            continue;
        }
        if let Err(error) = carry_out(key, Request::of(payload)) {
            sorter.repeat();
            return Err(error);
        }
        if let Some(taken) = &mut *taken {
            taken.add(taken.hash(key));
        }
        made = made.wrapping_add(1);
        if made.is_multiple_of(LOOK) {
            look()?;
        }
    }
    Ok(())
}

/// What a record asks for, with the entry's value.
pub(super) enum Request<'p> {
    /// A new entry, whose key nobody may have.
    Insert(&'p [u8]),
    Put(&'p [u8]),
    Delete,
}

impl<'p> Request<'p> {
    fn of(payload: &'p [u8]) -> Self {
        let value = payload.get(1 + size_of::<u32>()..).unwrap_or(&[]);
        match payload.first() {
            Some(&INSERT) => Request::Insert(value),
            Some(&PUT) => Request::Put(value),
            _ => Request::Delete,
        }
    }
}

/// Which keys of an index are taken, with nothing kept back, in so many bytes.
fn taken(txn: &mut Txns, index: &Index, memory: &Memory, limit: usize) -> Result<Taken> {
    let mut taken = Taken::new(memory, limit, txn.estimate(&index.tree)?);
    if taken.filters() {
        let mut entries = txn.cursor(&index.tree)?;
        let mut more = entries.seek(Seek::First)?;
        while more {
            taken.add(taken.hash(entries.key_bytes()?));
            more = entries.next()?;
        }
    }
    Ok(taken)
}

/// Where entries of the index are kept back.
#[inline]
fn find<'k>(kept: &'k mut [Kept], index: &Index) -> Option<&'k mut Kept> {
    kept.iter_mut().find(|kept| kept.index.tree == index.tree)
}

/// The number of the statement that a record belongs to.
fn statement_of(payload: &[u8]) -> u32 {
    let number = payload.get(1..).and_then(<[u8]>::first_chunk);
    number.map_or(0, |number| u32::from_le_bytes(*number))
}

/// Carries out what a record asks for.
fn carry_out(
    txn: &mut Txns,
    table: &Table,
    index: &Index,
    key: &[u8],
    request: Request<'_>,
) -> Result<()> {
    let (tree, key) = (&index.tree, Key::Bytes(key));
    match request {
        Request::Insert(value) => {
            if !txn.insert(tree, key, value)? {
                return Err(duplicate(table, index));
            }
        }
        Request::Put(value) => {
            txn.put(tree, key, value)?;
        }
        Request::Delete => {
            txn.delete(tree, key)?;
        }
    }
    Ok(())
}
