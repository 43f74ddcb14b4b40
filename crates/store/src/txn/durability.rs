//! What the commits of a context survive.
//!
//! Whether commits wait for a sync is the log's, for all of its committers: what is
//! acknowledged is visible to everybody. So the first context that may lose its newest
//! commits in a power cut has the log go over from `full` to `normal`, for as long as the
//! store is open (`relax` in `fulgurite-wal`); a context that may not syncs after each of
//! its commits, together with others that do. What the one reads of the others may then be
//! lost while what it commits is not, and takes what came before it along (ADR 71).
//!
//! The log goes over while the context holds the writers' lock alone and all that was
//! committed is visible, so nobody commits. Who cannot have that lock, since another
//! transaction is at work, commits in `full` until it can: it asks again after each of
//! its commits, without waiting.

use super::TxnContext;
use crate::options::Durability;
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_wal::TwinLog;
use std::time::Duration;

/// How long to wait for others where the durability is set.
const PATIENCE_MAX: Duration = Duration::from_millis(100);

impl TxnContext {
    /// What its commits have survived when they return.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Sets what commits of this context survive, from the next one on; at first it is
    /// the store's. With `Normal` commits may still be synced, where another transaction
    /// is at work for long; `Off` is `Normal`, but in a store that was opened with `Off`,
    /// whose commits stay what they are.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
        let log = self.core.wal().map(|wal| wal.durability());
        self.relaxes =
            durability != Durability::Full && log == Some(fulgurite_wal::Durability::Full);
        if self.relaxes && self.idle().is_ok() {
            self.relax_log(self.busy.timeout.min(PATIENCE_MAX));
        }
    }

    /// Has the log acknowledge what is written, if nobody else is at work for so long. For
    /// an idle context.
    #[cold]
    pub(super) fn relax_log(&mut self, patience: Duration) {
        let begun = self.within(patience, Self::begin_immediate);
        // What fails here does so again where a commit reports it.
        if begun.is_err() {
            return;
        }
        if let Some(wal) = self.core.wal() {
            self.relaxes = wal.relax().is_err();
            self.core.background.attend_commits();
        }
        self.rollback();
    }

    /// Where a commit is acknowledged, but may be lost: syncs it. One that is decided
    /// elsewhere is done again.
    #[inline]
    pub(super) fn make_durable(&self, wal: &TwinLog, seq: u64) -> fulgurite_wal::Result<()> {
        match self.durability {
            Durability::Full
                if !self.is_decided
                    && wal.durability() != fulgurite_wal::Durability::Full
                    && !planted(Mutation::SkipOwnSync) =>
            {
                wal.sync_up_to(seq)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, KeyKind, Options, Store, Tree, Txn};
    use fulgurite_disk::MemoryDisk;
    use std::path::Path;
    use std::sync::Arc;

    fn store() -> (Store, Tree) {
        let options = Options {
            busy_timeout: Duration::ZERO,
            ..Options::default()
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, Path::new("s.db"), options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    }

    /// Commits a row; how many syncs that took.
    fn syncs_of_put(txn: &mut Txn, tree: &Tree, key: i64) -> u64 {
        let store = txn.store().clone();
        let syncs = || store.stats().log.expect("a log").syncs;
        let before = syncs();
        txn.begin_statement(&[tree]).expect("begins");
        txn.put(tree, Key::Int(key), b"a row").expect("puts");
        txn.commit().expect("commits");
        syncs() - before
    }

    #[test]
    fn each_context_has_its_own() {
        let (store, tree) = store();
        let (mut full, mut normal) = (store.txn(), store.txn());
        assert_eq!(syncs_of_put(&mut full, &tree, 1), 1);
        normal.set_durability(Durability::Normal);
        // The thread behind the store syncs as well, now and then.
        let mut own = (0..200).map(|key| syncs_of_put(&mut normal, &tree, 100 + key));
        assert!(own.any(|syncs| syncs == 0));
        for key in 1..10 {
            assert!(syncs_of_put(&mut full, &tree, key) >= 1);
        }
        // It commits whatever others do; so does who comes after it.
        normal.set_durability(Durability::Full);
        assert!(syncs_of_put(&mut normal, &tree, 7) >= 1);
        drop((normal, full));
        assert_eq!(store.txn().durability(), Durability::Full);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    }

    /// Who may lose commits never waits for who keeps the others out, and its commits
    /// are durable until the log can go over.
    #[test]
    fn the_log_goes_over_when_nobody_is_at_work() {
        let (store, tree) = store();
        let mut other = store.txn();
        other.begin_immediate().expect("begins");
        let mut normal = store.txn();
        normal.set_durability(Durability::Normal);
        assert_eq!(normal.durability(), Durability::Normal);
        other.put(&tree, Key::Int(1), b"first").expect("puts");
        other.commit().expect("commits");
        assert_eq!(syncs_of_put(&mut normal, &tree, 2), 1);
        let mut later = (3..100).map(|key| syncs_of_put(&mut normal, &tree, key));
        assert!(later.any(|syncs| syncs == 0));
    }
}
