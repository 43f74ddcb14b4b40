//! Writing many entries at once.
//!
//! What a write asks before it comes to its leaf, and the way there, is the same for all
//! that lie in one leaf. So of many the first that comes to a leaf is written as any
//! other, and those that follow go beside it, for as long as they lie and fit there.
//!
//! The outcome is that of one call after the other: the entries, the redo, what a commit
//! validates, and what is left where one fails.

use super::TxnContext;
use super::redo::Op;
use crate::error::Result;
use crate::node::Key;
use crate::tree::Tree;
use crate::tree::edit::IfExists;

impl TxnContext {
    /// Writes entries to a tree of integers, as [`put`](Self::put) does one after the
    /// other. Where their keys ascend it takes least.
    pub fn put_all<'e>(
        &mut self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (i64, &'e [u8])>,
    ) -> Result<()> {
        let mut entries = entries.into_iter();
        let mut next = entries.next();
        while let Some((key, value)) = next {
            self.put(tree, Key::Int(key), value)?;
            next = self.put_beside(tree, IfExists::Replace, &mut entries)?;
        }
        Ok(())
    }

    /// Writes entries to a tree of integers, as [`insert`](Self::insert) does one after
    /// the other, up to the first whose key is there already; how many that were.
    pub fn insert_all<'e>(
        &mut self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (i64, &'e [u8])>,
    ) -> Result<usize> {
        let mut inserted = 0;
        let mut entries = entries.into_iter().inspect(|_| inserted += 1);
        let mut next = entries.next();
        while let Some((key, value)) = next {
            if !self.insert(tree, Key::Int(key), value)? {
                drop(entries);
                return Ok(inserted - 1);
            }
            next = self.put_beside(tree, IfExists::Leave, &mut entries)?;
        }
        drop(entries);
        Ok(inserted)
    }

    /// After an entry was written, those that can go beside it; the first that cannot.
    fn put_beside<'e>(
        &mut self,
        tree: &Tree,
        if_exists: IfExists,
        entries: &mut impl Iterator<Item = (i64, &'e [u8])>,
    ) -> Result<Option<(i64, &'e [u8])>> {
        let next = entries.next();
        // What is put off is in no fork, and that a key was not there counts.
        let counts = if_exists == IfExists::Leave && self.reads.is_some() && !self.bulk;
        if !self.put_off.is_empty() || counts {
            return Ok(next);
        }
        let at = self.fork(tree)?;
        let (pool, redo) = (&self.core.pool, &mut self.redo);
        let (number, keeps) = (tree.id().0, !self.bulk);
        let next = self.forks[at].put_beside(pool, if_exists, next, entries, |key, value| {
            if keeps {
                let (tree, key) = (number, Key::Int(key));
                super::redo::encode(redo, Op::Put { tree, key, value });
            }
        });
        self.look_at_redo()?;
        Ok(next)
    }

    /// Removes the entries under these keys from a tree of integers, as
    /// [`delete`](Self::delete) does one after the other; `deleted` is told of those that
    /// were there. Where the keys ascend it takes least.
    pub fn delete_all(
        &mut self,
        tree: &Tree,
        mut keys: &[i64],
        mut deleted: impl FnMut(i64),
    ) -> Result<()> {
        self.check(tree, Key::Int(0))?;
        let mut removed = Vec::new();
        while let [first, after @ ..] = keys {
            let at = self.fork(tree)?;
            let taken = match self.may_put_off(at) {
                true => 0,
                false => self.edit(at, |fork, cx| fork.delete_run(cx, keys, &mut removed))?,
            };
            if taken == 0 {
                if self.delete(tree, Key::Int(*first))? {
                    deleted(*first);
                }
                keys = after;
                continue;
            }
            let (done, left) = keys.split_at(taken);
            if self.observes {
                done.iter()
                    .for_each(|key| self.observe(tree, Key::Int(*key)));
            }
            for key in removed.drain(..) {
                deleted(key);
                let (tree, key) = (tree.id().0, Key::Int(key));
                self.log(Op::Delete { tree, key })?;
            }
            keys = left;
        }
        Ok(())
    }
}
