//! Writing entries in the order of their keys.
//!
//! Where they come to lie behind all others of a tree of byte keys, they are gathered and
//! written a leaf at a time, each once and as full as it may be: what an index is made of,
//! or a tree written anew. Any other entry is written as by itself, after those gathered.
//!
//! What is gathered is neither in the tree nor in the redo, and nobody reads in between.
//! Where it is given up before it was finished, the transaction is as after any operation
//! that failed midway: it is rolled back, to a savepoint or whole. Where a call fails it
//! stays gathered, for a caller who tries again later ([`Suspended`]).

use super::TxnContext;
use super::redo::{self, Op};
use crate::error::Result;
use crate::node::{Draft, Key, Pushed};
use crate::tree::Tree;
use crate::tree::edit::IfExists;

/// Writes entries to a tree; see [`TxnContext::append`].
pub struct Appending<'t> {
    txn: &'t mut TxnContext,
    tree: &'t Tree,
    draft: Option<Draft>,
    /// Nothing but this wrote since it did.
    wrote_last: bool,
}

/// What was gathered when an [`Appending`] was suspended. It is to be
/// [gone on with](TxnContext::go_on_appending) before anything else is done to the tree;
/// where it is dropped, so is what was gathered.
#[derive(Debug, Default)]
#[must_use = "what was gathered is not written yet"]
pub struct Suspended(Option<Draft>);

impl TxnContext {
    /// For many entries of a tree, mostly in the order of their keys.
    pub fn append<'t>(&'t mut self, tree: &'t Tree) -> Appending<'t> {
        self.go_on_appending(tree, Suspended::default())
    }

    /// Goes on where an [`Appending`] to this tree was suspended.
    pub fn go_on_appending<'t>(
        &'t mut self,
        tree: &'t Tree,
        suspended: Suspended,
    ) -> Appending<'t> {
        Appending {
            txn: self,
            tree,
            draft: suspended.0,
            wrote_last: false,
        }
    }
}

impl Appending<'_> {
    /// Inserts as [`TxnContext::insert`] does, at the latest when it is
    /// [finished](Self::finish).
    pub fn insert(&mut self, key: Key<'_>, value: &[u8]) -> Result<bool> {
        let is_done = match key {
            Key::Bytes(key) => self.gather(key, value)?,
            Key::Int(key) => self.wrote_last && self.insert_beside(key, value)?,
        };
        if is_done {
            return Ok(true);
        }
        let inserted = self.txn.insert(self.tree, key, value)?;
        if inserted {
            self.draft = self.begin();
        }
        self.wrote_last = inserted;
        Ok(inserted)
    }

    /// Inserts an entry beside the one before, if it lies and fits there.
    fn insert_beside(&mut self, key: i64, value: &[u8]) -> Result<bool> {
        let mut entry = std::iter::once((key, value));
        let left = self
            .txn
            .put_beside(self.tree, IfExists::Leave, &mut entry)?;
        Ok(left.is_none())
    }

    /// Whether the entry was gathered. Otherwise nothing is.
    fn gather(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        while let Some(draft) = &mut self.draft {
            match draft.push(key, value) {
                Pushed::Yes => return Ok(true),
                Pushed::Full => self.write_full()?,
                Pushed::Elsewhere => self.write_rest()?,
            }
        }
        Ok(false)
    }

    /// A draft of the last leaf, where entries need not be seen one by one.
    fn begin(&self) -> Option<Draft> {
        let txn = &*self.txn;
        let fork = &txn.forks[txn.fork_of(self.tree.id())?];
        // That a key was not there counts, or what was there is noted.
        let counts = txn.reads.is_some() && !txn.bulk && !fork.created;
        if counts || !txn.put_off.is_empty() || txn.savepoints.undo.is_on {
            return None;
        }
        fork.draft(&txn.core.pool)
    }

    fn write_full(&mut self) -> Result<()> {
        if let Some(draft) = &mut self.draft {
            let at = self.txn.fork(self.tree)?;
            self.txn.edit(at, |fork, cx| fork.write_full(cx, draft))?;
            log(self.txn, self.tree, draft);
            draft.go_on();
        }
        Ok(())
    }

    /// Writes what is gathered, and gathers nothing on.
    fn write_rest(&mut self) -> Result<()> {
        if self.draft.as_ref().is_some_and(|draft| !draft.fits_last()) {
            self.write_full()?;
        }
        if let Some(draft) = self.draft.as_ref().filter(|draft| !draft.is_written()) {
            let at = self.txn.fork(self.tree)?;
            self.txn.edit(at, |fork, cx| fork.write_last(cx, draft))?;
            log(self.txn, self.tree, draft);
        }
        self.draft = None;
        Ok(())
    }

    /// Leaves off, and hands out what is gathered and not written.
    pub fn suspend(mut self) -> Suspended {
        Suspended(self.draft.take())
    }

    /// Writes all that was inserted.
    pub fn finish(&mut self) -> Result<()> {
        self.write_rest()
    }
}

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        if self.draft.as_ref().is_some_and(|draft| !draft.is_written()) {
            self.txn.savepoints.note_torn();
        }
    }
}

/// Appends what was written to the redo, unless none is kept.
fn log(txn: &mut TxnContext, tree: &Tree, draft: &Draft) {
    txn.wrote = true;
    if !txn.bulk {
        let tree = tree.id().0;
        for (key, value) in draft.unwritten() {
            let key = Key::Bytes(key);
            redo::encode(&mut txn.redo, Op::Put { tree, key, value });
        }
        txn.look_at_redo();
    }
}
