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
use crate::tree::compare::Aspect;
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
    pub(super) fn put_beside<'e>(
        &mut self,
        tree: &Tree,
        if_exists: IfExists,
        entries: &mut impl Iterator<Item = (i64, &'e [u8])>,
    ) -> Result<Option<(i64, &'e [u8])>> {
        let next = entries.next();
        // What is put off is in no fork, and that a key was not there counts, or what was
        // there is noted.
        let counts = if_exists == IfExists::Leave && self.reads.is_some() && !self.bulk;
        if !self.put_off.is_empty() || counts || self.savepoints.undo.is_on {
            return Ok(next);
        }
        let at = self.fork(tree)?;
        let (pool, redo) = (&self.core.pool, &mut self.redo);
        let (number, keeps, step) = (tree.id().0, !self.bulk, self.redo_step);
        let next = self.forks[at].put_beside(pool, if_exists, next, entries, |key, value| {
            if keeps {
                let (tree, key) = (number, Key::Int(key));
                super::redo::encode(redo, Op::Put { tree, key, value });
            }
            // However often the same keys come, the redo is looked at in time.
            redo.len() < step
        });
        self.look_at_redo();
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
            let taken = match self.may_put_off(at) || self.savepoints.undo.is_on {
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
                for key in done {
                    self.observe(tree, Key::Int(*key), Aspect::Presence);
                }
            }
            // Whoever is told may panic: the redo has all that the fork lacks by then.
            for key in &removed {
                let (tree, key) = (tree.id().0, Key::Int(*key));
                self.log(Op::Delete { tree, key });
            }
            removed.drain(..).for_each(&mut deleted);
            keys = left;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::primitives::REDO_STEP;
    use crate::{Key, KeyKind, Options, Store};
    use fulgurite_disk::MemoryDisk;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// What lay in the leaf behind it was gone from the tree, and not from the log.
    #[test]
    fn who_is_told_of_a_deletion_may_panic() {
        let disk = Arc::new(MemoryDisk::new());
        let open = |disk| Store::open_on(disk, "p.db", Options::default()).expect("opens");
        let store = open(disk.clone());
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        txn.begin_immediate().expect("begins");
        let entries = (0..20).map(|key| (key, b"".as_slice()));
        txn.put_all(&tree, entries).expect("puts");
        // Nothing is put off from here on.
        drop(txn.cursor(&tree).expect("a cursor"));
        let keys: Vec<i64> = (0..10).collect();
        let told = |key| assert_ne!(key, 3, "on purpose");
        let deletes = || txn.delete_all(&tree, &keys, told);
        let panicked = catch_unwind(AssertUnwindSafe(deletes));
        assert!(panicked.is_err());
        txn.commit().expect("commits");
        let there = |store: &Store| {
            let tree = store.family("t").expect("reads").expect("a family");
            let mut txn = store.txn();
            txn.begin_read().expect("reads");
            let keys = (0..20).filter(|key| txn.contains(&tree, Key::Int(*key)).expect("reads"));
            keys.collect::<Vec<_>>()
        };
        let before = there(&store);
        // As the end of the process would leave it.
        let copy = Arc::new(disk.copied());
        assert_eq!(there(&open(copy)), before);
    }

    /// All of them stayed in one leaf, and nobody looked at the redo before the last.
    #[test]
    fn the_redo_of_many_entries_is_counted_meanwhile() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        txn.begin_immediate().expect("begins");
        let value = [7; 900];
        let mut counted = 0;
        let look = |_: &i64| counted = store.core().pool.charged().max(counted);
        let keys = (0..2_000).map(|i| i % 3).inspect(look);
        let put = txn.put_all(&tree, keys.map(|key| (key, value.as_slice())));
        put.expect("puts");
        assert!(counted > REDO_STEP, "{counted}");
    }
}
