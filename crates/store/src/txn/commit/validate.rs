//! What a commit asks: whether all that a transaction wrote, and for serializable all that
//! it read, is the same in the versions it started from and in those it is to follow.
//!
//! The trees that were changed are locked meanwhile. Those that were only read are not:
//! their heads are handed back, to be looked at again under the commit lock.
//! What a graft has found to be the same already is not compared once more.
//!
//! The same comparison says whether a transaction that is ahead of what is acknowledged
//! may tell what it read (`txn/ahead.rs`).

use super::super::reads::{Range, Reads, TreeReads};
use super::super::redo::Ops;
use super::super::{TxnContext, no_slot};
use super::{ReadHead, Replay};
use crate::error::{Conflict, Error, ErrorKind, Result};
use crate::node::{Key, OwnedKey};
use crate::tree::compare::{Aspect, Comparer};
use crate::tree::cursor::{Cursor, Seek};
use crate::tree::fork::Fork;
use crate::tree::versions::Root;
use crate::tree::{EMPTY, Tree, TreeId};
use std::ops::Bound;
use std::sync::atomic::Ordering::*;

/// Two states of the store, both pinned, of which the newer may be the head.
#[derive(Clone, Copy)]
pub(in crate::txn) struct Between {
    pub(in crate::txn) older: u64,
    pub(in crate::txn) newer: u64,
}

impl Between {
    /// A tree in both.
    fn versions(self, tree: &Tree) -> [Root; 2] {
        [self.older, self.newer].map(|seq| tree.0.versions.at(seq).unwrap_or(EMPTY))
    }
}

fn differs(tree: &Tree, key: Option<Key<'_>>) -> Error {
    Error::conflicting(Conflict::over(tree, key))
}

impl TxnContext {
    pub(in crate::txn) fn conflict(&self, tree: &Tree, key: Option<Key<'_>>) -> Error {
        self.core.conflicts.fetch_add(1, Relaxed);
        differs(tree, key)
    }

    /// Whether what was written and read is the same in base and head. Returns
    /// the heads of the trees that were only read. `replays`, if it is not empty, tells of
    /// each fork what of it is still to be compared.
    pub(in crate::txn) fn validate(&self, replays: &[Option<Replay>]) -> Result<Vec<ReadHead>> {
        self.find_difference(replays).inspect_err(|error| {
            if error.kind() == ErrorKind::Conflict {
                self.core.conflicts.fetch_add(1, Relaxed);
            }
        })
    }

    fn find_difference(&self, replays: &[Option<Replay>]) -> Result<Vec<ReadHead>> {
        for (at, fork) in self.forks.iter().enumerate() {
            if !fork.changed || fork.created {
                continue;
            }
            let head = fork.tree.0.head();
            if head.seq == fork.base.seq {
                continue;
            }
            if head.dropped || fork.dropped {
                return Err(differs(&fork.tree, None));
            }
            let versions = [fork.base, head];
            match replays.get(at).and_then(Option::as_ref) {
                Some(replay) => {
                    let keys = replay.to_compare(&self.redo);
                    self.validate_writes(keys, &fork.tree, versions)?;
                }
                None => {
                    let keys = Self::written_keys(&self.redo, fork.tree.id());
                    self.validate_writes(keys, &fork.tree, versions)?;
                }
            }
        }
        let Some(reads) = &self.reads else {
            return Ok(Vec::new());
        };
        let validated = self.validate_reads(&mut reads.lock());
        validated.map_err(|error| self.named_by_writes(error, replays))
    }

    /// What is wrong with what was read is often told better by what was to be made there:
    /// of long keys that were read only their beginnings are known.
    #[cold]
    fn named_by_writes(&self, error: Error, replays: &[Option<Replay>]) -> Error {
        let mut made = self.forks.iter().zip(replays);
        let differs = made.find_map(|(fork, replay)| {
            let replay = replay.as_ref().filter(|replay| replay.only_inserts)?;
            let (keys, versions) = (replay.to_make(&self.redo), [fork.base, fork.tree.0.head()]);
            self.validate_writes(keys, &fork.tree, versions).err()
        });
        match (error.kind(), differs) {
            (ErrorKind::Conflict, Some(differs)) if differs.kind() == ErrorKind::Conflict => {
                differs
            }
            _ => error,
        }
    }

    /// Whether the entries under these keys are the same in both versions of a tree.
    fn validate_writes<'k>(
        &self,
        mut keys: impl Iterator<Item = Result<Key<'k>>>,
        tree: &Tree,
        versions: [Root; 2],
    ) -> Result<()> {
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let roots = versions.map(|version| version.node);
        let mut comparer = Comparer::new(&self.core.pool, slot, tree, roots);
        keys.try_for_each(|key| {
            let key = key?;
            match comparer.is_same(key, Aspect::Entry)? {
                true => Ok(()),
                false => Err(differs(tree, Some(key))),
            }
        })
    }

    fn validate_reads(&self, reads: &mut Reads) -> Result<Vec<ReadHead>> {
        let mut heads = Vec::new();
        // The heads compared with are pinned while they are compared.
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.head_to_pin())?;
        let between = Between {
            older: self.seq,
            newer: seq,
        };
        let validated = reads.trees(&core.pool).try_for_each(|read| {
            if !self.locked.holds(read.tree.id()) {
                heads.push(ReadHead {
                    tree: read.tree.clone(),
                    seq: between.versions(&read.tree)[1].seq,
                });
            }
            self.compare_read(read, between)
        });
        core.pool.readers.release(&slot);
        validated.map(|()| heads)
    }

    /// Whether all that was read of a tree is the same in both states.
    ///
    /// # Errors
    /// `Conflict` where it is not; what reading fails with.
    pub(in crate::txn) fn compare_read(&self, read: &TreeReads, between: Between) -> Result<()> {
        if self.absent.contains(&read.tree.id()) {
            let now = read.tree.0.versions.at(between.newer);
            return match now.is_some_and(|root| !root.dropped) {
                true => Err(differs(&read.tree, None)),
                false => Ok(()),
            };
        }
        let [older, newer] = between.versions(&read.tree);
        if older.seq == newer.seq {
            return Ok(());
        }
        if read.whole || newer.dropped {
            return Err(differs(&read.tree, None));
        }
        let unchanged = self.keys_found_unchanged(&read.tree);
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let (tree, roots) = (&read.tree, [older.node, newer.node]);
        let mut comparer = Comparer::new(&self.core.pool, slot, tree, roots);
        read.try_for_each(|range| match range.as_point() {
            Some(key) if unchanged.binary_search(&key).is_ok() => Ok(()),
            Some(key) => match comparer.is_same(key, range.aspect)? {
                true => Ok(()),
                false => Err(differs(tree, Some(key))),
            },
            None => {
                comparer.pause();
                self.validate_range(tree, [older, newer], range)
            }
        })
    }

    /// Whether all entries under the keys that these operations write are the same in both
    /// states.
    ///
    /// # Errors
    /// As [`compare_read`](Self::compare_read).
    pub(in crate::txn) fn compare_written(&self, redo: &[u8], between: Between) -> Result<()> {
        let mut compared: Vec<TreeId> = Vec::new();
        for op in Ops::new(redo).flatten() {
            let id = TreeId(op.tree());
            if compared.contains(&id) {
                continue;
            }
            compared.push(id);
            let Some(tree) = self.core.tree(id) else {
                continue;
            };
            let [older, newer] = between.versions(&tree);
            if older.seq == newer.seq {
                continue;
            }
            if newer.dropped {
                return Err(differs(&tree, None));
            }
            self.validate_writes(Self::written_keys(redo, id), &tree, [older, newer])?;
        }
        Ok(())
    }

    /// The keys, in order, under which a graft has found base and head to hold the same:
    /// those that were written in the tree. (Its writer lock has kept that head since.)
    fn keys_found_unchanged(&self, tree: &Tree) -> Vec<Key<'_>> {
        let grafted = |fork: &Fork| fork.grafted && fork.tree.id() == tree.id();
        if !self.forks.iter().any(grafted) {
            return Vec::new();
        }
        let mut keys: Vec<_> = Self::keys_of(&self.redo, tree.id()).collect();
        keys.sort_unstable();
        keys
    }

    /// Whether both versions hold the same entries in a range, or the same keys where the
    /// answer depends on them alone.
    fn validate_range(&self, tree: &Tree, [base, head]: [Root; 2], range: Range<'_>) -> Result<()> {
        let Range { low, high, aspect } = range;
        let seek = match low {
            Bound::Unbounded => Seek::First,
            Bound::Included(key) => Seek::AtLeast(key),
            Bound::Excluded(key) => Seek::After(key),
        };
        let open = |root: Root| -> Result<Cursor> {
            let slot = self.core.pool.readers.pin_also(self.seq)?;
            let mut cursor =
                Cursor::new(self.store.handle.clone(), slot, tree, root.node, None, None);
            cursor.seek(seek)?;
            Ok(cursor)
        };
        let (mut base, mut head) = (open(base)?, open(head)?);
        loop {
            let [left, right] = [base.key_within(high)?, head.key_within(high)?];
            // Leaves that both versions share need no comparing.
            if left.is_some() && base.skip_shared_leaf(&mut head)? {
                continue;
            }
            let compares = left.is_some() && aspect == Aspect::Entry;
            if left != right || (compares && !base.same_value(&head)) {
                // The lower of two is not in the other version.
                let keys = [&left, &right].into_iter().flatten().map(OwnedKey::as_key);
                return Err(differs(tree, keys.min()));
            }
            if left.is_none() {
                return Ok(());
            }
            base.next()?;
            head.next()?;
        }
    }
}
