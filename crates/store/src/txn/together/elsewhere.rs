//! Commits to other stores that read this one and are not acknowledged there yet.
//!
//! A transaction that writes to one store and reads another gives the locks of both back
//! when it is published, so that the next ones share its sync. Who then changes what it
//! has read comes after it, and must not be seen without it by who reads both stores. So
//! the transaction leaves a note with the store that it has only read, while its locks
//! still keep that as it is; who changes it looks for notes under the same locks, and is
//! published when the commits that they name are acknowledged.
//!
//! Nobody waits in a circle: a published commit waits for its own log alone. One whose log
//! has failed is not waited for: nobody sees it before its store is opened again.

use super::super::{TxnContext, TxnState, WritersLock};
use crate::primitives::Mutex;
use crate::primitives::atomic::{AtomicBool, Ordering::*};
use crate::store::Core;
use crate::tree::TreeId;
use fulgurite_disk::mutation::{Mutation, planted};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// So many notes are kept without a look whether they mean anything still.
const KEPT_MIN: usize = 64;

/// What was read: a tree, or, where it is none, all that the store has.
type Read = Option<TreeId>;

/// The notes left with one store.
#[derive(Default)]
pub(crate) struct Elsewhere {
    /// Whether there are any. Read with what hardly ever changes, so it is written only
    /// where it does, and what changes lies elsewhere.
    any: AtomicBool,
    notes: Box<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    /// The newest commit to each other store, by its number, for each thing that was read.
    newest: FxHashMap<(u64, Read), Commit>,
    /// So many are there when they are looked through next.
    looked_through_at: usize,
}

#[derive(Clone)]
struct Commit {
    store: Weak<Core>,
    seq: u64,
}

impl Commit {
    /// The store, if it has yet to acknowledge this commit, and can. (Who closes it waits
    /// for that.)
    fn pending(&self) -> Option<Arc<Core>> {
        let store = self.store.upgrade();
        store.filter(|core| !core.is_acknowledged(self.seq) && core.check_writable().is_ok())
    }
}

impl Elsewhere {
    /// A commit to this store has read that here.
    fn note(&self, read: impl Iterator<Item = Read>, store: &Arc<Core>, seq: u64) {
        if store.is_acknowledged(seq) {
            return;
        }
        let mut notes = self.notes.lock();
        for read in read {
            let commit = Commit {
                store: Arc::downgrade(store),
                seq,
            };
            notes.newest.insert((store.number, read), commit);
        }
        if notes.newest.len() >= notes.looked_through_at {
            notes.newest.retain(|_, commit| commit.pending().is_some());
            notes.looked_through_at = KEPT_MIN.max(2 * notes.newest.len());
        }
        if !self.any() {
            self.any.store(true, Relaxed);
        }
    }

    /// Whether there may be a commit to wait for. Whoever left a note before the caller got
    /// its locks is seen.
    #[inline]
    fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// The commits that were not acknowledged yet and have read one of these trees.
    fn pending(&self, is_changed: impl Fn(TreeId) -> bool) -> Vec<(Arc<Core>, u64)> {
        let mut notes = self.notes.lock();
        let mut pending = Vec::new();
        notes.newest.retain(|(_, read), commit| {
            let store = commit.pending();
            let keeps = store.is_some();
            if read.is_none_or(&is_changed) {
                pending.extend(store.map(|store| (store, commit.seq)));
            }
            keeps
        });
        if notes.newest.is_empty() {
            self.any.store(false, Relaxed);
        }
        pending
    }
}

impl TxnContext {
    /// Ends one that has only read here, beside the one that has published this commit to
    /// another store: under its own locks.
    pub(super) fn end_before(&mut self, store: &Arc<Core>, seq: u64) {
        let elsewhere = &self.core.elsewhere;
        match self.state {
            TxnState::Statement => elsewhere.note(self.locked.ids().map(Some), store, seq),
            _ if self.counts() => elsewhere.note(std::iter::once(None), store, seq),
            _ => {}
        }
        self.undo();
    }

    /// Under the locks of its commit, before it is published: waits for the commits
    /// elsewhere that have read what it changes. Who keeps all other writers out may change
    /// what the others' plans rest on, and waits for all.
    #[inline]
    pub(in crate::txn) fn follow_readers_elsewhere(&self) {
        if self.core.elsewhere.any() && !planted(Mutation::PassReaders) {
            self.wait_for_readers_elsewhere();
        }
    }

    #[cold]
    fn wait_for_readers_elsewhere(&self) {
        let excludes = self.writers == WritersLock::Exclusive;
        let pending = self
            .core
            .elsewhere
            .pending(|tree| excludes || self.changes(tree));
        for (store, seq) in pending {
            // One that fails is not waited for: see the module.
            let _ = store.wait_visible(seq);
        }
    }
}
