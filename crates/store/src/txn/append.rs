//! Writing entries in the order of their keys.
//!
//! Where they come to lie behind all others of a tree of byte keys, they are gathered and
//! written a leaf at a time, each once and as full as it may be: what an index is made of,
//! or a tree written anew. Any other entry is written as by itself, after those gathered.
//!
//! What is gathered is neither in the tree nor in the redo, and nobody reads in between.
//! Where it is given up, by an error or before it was finished, the transaction is as after
//! any operation that failed midway: it is rolled back, to a savepoint or whole.

use super::TxnContext;
use super::redo::{self, Op};
use crate::error::Result;
use crate::node::{Draft, Key, Pushed};
use crate::tree::Tree;

/// Writes entries to a tree; see [`TxnContext::append`].
pub struct Appending<'t> {
    txn: &'t mut TxnContext,
    tree: Tree,
    draft: Option<Draft>,
}

impl TxnContext {
    /// For many entries of a tree, mostly in the order of their keys.
    pub fn append(&mut self, tree: &Tree) -> Appending<'_> {
        Appending {
            txn: self,
            tree: tree.clone(),
            draft: None,
        }
    }
}

impl Appending<'_> {
    /// Inserts as [`TxnContext::insert`] does, at the latest when it is
    /// [finished](Self::finish).
    pub fn insert(&mut self, key: Key<'_>, value: &[u8]) -> Result<bool> {
        if let Key::Bytes(bytes) = key
            && self.gather(bytes, value)?
        {
            return Ok(true);
        }
        let inserted = self.txn.insert(&self.tree, key, value)?;
        if inserted {
            self.draft = self.begin();
        }
        Ok(inserted)
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
            let at = self.txn.fork(&self.tree)?;
            self.txn.edit(at, |fork, cx| fork.write_full(cx, draft))?;
            log(self.txn, &self.tree, draft);
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
            let at = self.txn.fork(&self.tree)?;
            self.txn.edit(at, |fork, cx| fork.write_last(cx, draft))?;
            log(self.txn, &self.tree, draft);
        }
        self.draft = None;
        Ok(())
    }

    /// Writes all that was inserted.
    pub fn finish(mut self) -> Result<()> {
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
