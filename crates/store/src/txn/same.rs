//! Entries that are written as they are.
//!
//! Programs write what is there already: settings, rows that come again from elsewhere.
//! A commit of that would change nothing, and wait for a sync. So who writes over an entry
//! may ask for the same one to be left: as long as the transaction has written nothing.
//! One that has left all that it wrote has nothing to commit.
//!
//! 1. What is left stays the same until the transaction ends: a statement has the tree's
//!    lock, who is IMMEDIATE all locks, and one that is serializable depends on the entry
//!    from there on, as on what it reads. Under `snapshot` entries are written as ever: two
//!    that write the same one must not both commit.
//! 2. Who commits durably and has left an entry finds it durable: it is synced by the one who
//!    leaves it, where that was not done by the one who wrote it.
//! 3. It looks only where its commit is to be synced, of which to look costs a hundredth, or
//!    at long values, and only at what comes first: what is written with others is synced
//!    anyway.

use super::{TxnContext, TxnState, no_slot};
use crate::error::{ErrorKind, Result};
use crate::node::Key;
use crate::options::Durability;
use crate::store::log_error;
use crate::tree::Tree;
use crate::tree::compare::Aspect;
use crate::tree::overflow;
use crate::tree::walk::Ahead;

/// To look at a value as long as this costs less than to write it, in bytes.
const LONG: usize = 1024;

/// What is written over an entry: all of its value, or the first bytes of it.
#[derive(Clone, Copy)]
enum Bytes<'v> {
    All(&'v [u8]),
    Start(&'v [u8]),
}

impl TxnContext {
    /// As [`put`](Self::put), where the same entry may be there already: that is left as it
    /// is, and takes no commit, where the transaction is to be synced and has written nothing
    /// else.
    pub fn rewrite(&mut self, tree: &Tree, key: Key<'_>, value: &[u8]) -> Result<bool> {
        match self.leaves(tree, key, Bytes::All(value))? {
            true => Ok(true),
            false => self.put(tree, key, value),
        }
    }

    /// As [`put_start`](Self::put_start), with [`rewrite`](Self::rewrite).
    pub fn rewrite_start(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        until: usize,
        start: &[u8],
    ) -> Result<bool> {
        let stays = start.len() == until && self.leaves(tree, key, Bytes::Start(start))?;
        match stays {
            true => Ok(true),
            false => self.put_start(tree, key, until, start),
        }
    }

    /// As [`put_all`](Self::put_all), with [`rewrite`](Self::rewrite).
    pub fn rewrite_all<'e>(
        &mut self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (i64, &'e [u8])>,
    ) -> Result<()> {
        let mut entries = entries.into_iter();
        for (key, value) in entries.by_ref() {
            self.rewrite(tree, Key::Int(key), value)?;
            if self.wrote {
                break;
            }
        }
        self.put_all(tree, entries)
    }

    fn leaves(&mut self, tree: &Tree, key: Key<'_>, bytes: Bytes<'_>) -> Result<bool> {
        let is_long = matches!(bytes, Bytes::All(value) if value.len() >= LONG);
        if !self.may_leave(tree, is_long) {
            return Ok(false);
        }
        self.check(tree, key)?;
        let mut large = std::mem::take(&mut self.stored);
        large.clear();
        let is_same = |(stored, is_overflow): (&[u8], bool)| match bytes {
            Bytes::All(value) if is_overflow => {
                large.extend_from_slice(stored);
                value.starts_with(overflow::start(stored))
            }
            Bytes::All(value) => stored == value,
            Bytes::Start(start) if is_overflow => overflow::start(stored).starts_with(start),
            Bytes::Start(start) => stored.starts_with(start),
        };
        let found = self.look_up(tree, (key, Ahead::Page), |entry| entry.is_some_and(is_same));
        self.stored = large;
        let mut leaves = found?;
        if let Bytes::All(value) = bytes
            && leaves
            && !self.stored.is_empty()
        {
            let slot = self.slot.as_ref().ok_or_else(no_slot)?;
            let pool = &self.core.pool;
            leaves = match overflow::is_value(pool, slot, tree.id().0, &self.stored, value) {
                // What is written over a damaged value makes it whole.
                Err(error) if error.kind() == ErrorKind::Corrupt => false,
                is_value => is_value?,
            };
        }
        if leaves {
            self.observe(tree, key, Aspect::Entry);
            self.left |= self.durability == Durability::Full;
        }
        Ok(leaves)
    }

    /// Whether the transaction may leave what it would write into the tree, and it may be
    /// worth a look; `is_long`: it is [`LONG`] at least.
    fn may_leave(&self, tree: &Tree, is_long: bool) -> bool {
        if self.wrote || self.durability != Durability::Full && !is_long {
            return false;
        }
        let stays = match self.state {
            TxnState::Idle | TxnState::Read => false,
            TxnState::Statement => self.locked.holds(tree.id()),
            TxnState::Immediate => true,
            TxnState::Optimistic => self.observes,
        };
        stays && self.core.wal().is_some()
    }

    /// Where a transaction that ends without a commit has left something: makes that durable,
    /// of this commit, which is acknowledged, or of one before.
    #[inline]
    pub(super) fn make_left_durable(&self, seq: u64, left: bool) -> Result<()> {
        match self.core.wal() {
            Some(wal) if left => wal.sync_up_to(seq).map_err(log_error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LONG;
    use crate::commit_together;
    use crate::{Durability, Isolation, Key, KeyKind, Options, Result, Store, Tree, TxnContext};
    use fulgurite_disk::{Disk, DiskFile, Machine, MemoryDisk, OpenOptions};
    use std::path::Path;
    use std::sync::Arc;

    /// A store with a row, and no thread, which would sync at its own time.
    fn store() -> (Store, Tree) {
        let options = Options {
            driver: Some(Arc::new(Machine)),
            ..Options::default()
        };
        let store = Store::open_on(Arc::new(MemoryDisk::new()), "s.db", options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        assert!(!put(&mut txn, &tree, 1, b"one").expect("puts"));
        txn.commit().expect("commits");
        (store, tree)
    }

    fn put(txn: &mut TxnContext, tree: &Tree, key: i64, value: &[u8]) -> Result<bool> {
        txn.rewrite(tree, Key::Int(key), value)
    }

    fn counters(store: &Store) -> (u64, u64) {
        let log = store.stats().log.expect("a log");
        (log.records, log.syncs)
    }

    fn value(store: &Store, tree: &Tree, key: i64) -> Vec<u8> {
        let (mut txn, mut value) = (store.txn(), Vec::new());
        txn.begin_read().expect("begins");
        txn.get_into(tree, Key::Int(key), &mut value)
            .expect("reads");
        value
    }

    type Begins = fn(&mut TxnContext, &Tree) -> Result<()>;

    const WAYS: [Begins; 4] = [
        |txn, tree| txn.begin_statement(&[tree]),
        |txn, _| txn.begin(Isolation::Serializable),
        |txn, _| txn.begin_immediate(),
        |txn, _| txn.begin_immediate_ahead(),
    ];

    /// A row that was written as it was took a record and a sync, as one that changed.
    #[test]
    fn what_is_there_already_takes_no_commit() {
        for begins in WAYS {
            let (store, tree) = store();
            let before = counters(&store);
            let mut txn = store.txn();
            begins(&mut txn, &tree).expect("begins");
            assert!(put(&mut txn, &tree, 1, b"one").expect("puts"));
            let same: Vec<(i64, &[u8])> = vec![(1, b"one"); 3];
            txn.rewrite_all(&tree, same).expect("puts");
            assert!(!txn.has_written());
            txn.commit().expect("commits");
            assert_eq!(counters(&store), before);
            // With another one it is written, before that or after it.
            for key in [2, 3] {
                begins(&mut txn, &tree).expect("begins");
                let mut rows = [(1, b"one".as_slice()), (key, b"more")];
                rows.rotate_left(key as usize % 2);
                txn.rewrite_all(&tree, rows).expect("puts");
                txn.commit().expect("commits");
                assert_eq!(value(&store, &tree, key), b"more");
            }
            assert_eq!(counters(&store).0, before.0 + 2);
            assert_eq!(value(&store, &tree, 1), b"one");
        }
    }

    /// Large values were always written, though their leaf and their rest were the same.
    #[test]
    fn a_large_value_is_left_where_all_of_it_is_the_same() {
        for length in [2_000, 5_000, 300_000, 3_000_000] {
            let (store, tree) = store();
            let mut txn = store.txn();
            let large: Vec<u8> = (0..length).map(|at: usize| (at / 7) as u8).collect();
            let mut write = |value: &[u8]| {
                let before = counters(&store).0;
                txn.begin_statement(&[&tree]).expect("begins");
                assert!(put(&mut txn, &tree, 1, value).expect("puts"));
                txn.commit().expect("commits");
                assert!(self::value(&store, &tree, 1) == value, "{length}");
                counters(&store).0 > before
            };
            assert!(write(&large));
            assert!(!write(&large), "{length} bytes");
            for at in [0, 1, length / 2, length - 1] {
                let mut other = large.clone();
                other[at] += 1;
                assert!(write(&other), "another byte {at} of {length}");
                assert!(write(&large), "byte {at} of {length} as it was");
            }
            let longer = [&large[..], b"more"].concat();
            for other in [&large[..length - 1], &large[..40], &longer, b""] {
                assert!(write(other), "{} bytes of {length}", other.len());
                assert!(write(&large), "{length} bytes after {}", other.len());
            }
        }
    }

    /// To look at a damaged value was an error, so that nobody could write it anew as it was.
    #[test]
    fn a_damaged_value_is_written_over() {
        let disk = Arc::new(MemoryDisk::new());
        let open = |disk: MemoryDisk| Store::open_on(Arc::new(disk), "s.db", Options::default());
        let mut number = 1u64;
        let mut next = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005) + 1;
            (number >> 56) as u8
        };
        let value: Vec<u8> = (0..9_000).map(|_| next()).collect();
        let store = Store::open_on(disk.clone(), "s.db", Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let write = |store: &Store, tree: &Tree, rewrites: bool| {
            let mut txn = store.txn();
            txn.begin_statement(&[tree])?;
            match rewrites {
                true => put(&mut txn, tree, 1, &value)?,
                false => txn.put(tree, Key::Int(1), &value)?,
            };
            txn.commit()
        };
        write(&store, &tree, false).expect("puts");
        store.checkpoint().expect("a checkpoint");
        drop((tree, store));
        let length = file(&disk).len().expect("a length");
        let mut mended = 0;
        for at in (8_192..length).step_by(499) {
            let outcomes = [false, true].map(|rewrites| {
                let copy = disk.copied();
                let damaged = file(&copy);
                let mut byte = [0];
                damaged.read_at(&mut byte, at).expect("reads");
                damaged.write_at(&[byte[0] ^ 0x20], at).expect("writes");
                let store = open(copy).ok()?;
                let tree = store.family("t").ok()??;
                let read = |store: &Store| {
                    let (mut txn, mut bytes) = (store.txn(), Vec::new());
                    txn.begin_read().expect("begins");
                    let found = txn.get_into(&tree, Key::Int(1), &mut bytes);
                    found.is_ok_and(|found| found && bytes == value)
                };
                let was_whole = read(&store);
                write(&store, &tree, rewrites).ok()?;
                assert!(read(&store), "byte {at}");
                Some(was_whole)
            });
            assert_eq!(outcomes[0], outcomes[1], "byte {at}");
            mended += u32::from(outcomes[1] == Some(false));
        }
        assert!(mended > 5, "{mended} of {length} bytes");
    }

    fn file(disk: &MemoryDisk) -> Arc<dyn DiskFile> {
        let path = Path::new("s.db");
        disk.open(path, OpenOptions::WRITE).expect("opens")
    }

    /// The same of what stands first in a value, of which the rest stays anyway.
    #[test]
    fn a_start_is_left_where_it_is_the_same() {
        for length in [20, 5_000] {
            let (store, tree) = store();
            let mut txn = store.txn();
            let all = vec![b'v'; length];
            let mut write = |(until, start): (usize, &[u8])| {
                let before = counters(&store).0;
                txn.begin_statement(&[&tree]).expect("begins");
                let key = Key::Int(1);
                let put = txn.rewrite_start(&tree, key, until, start);
                assert!(put.expect("puts"));
                txn.commit().expect("commits");
                counters(&store).0 > before
            };
            assert!(write((3, &all)));
            for (until, start) in [(20, &all[..20]), (1, b"v"), (0, b"")] {
                assert!(!write((until, start)), "{until} bytes of {length}");
            }
            for (until, start) in [(20, &all[..19]), (19, &all[..20]), (2, b"vw"), (0, b"v")] {
                assert!(write((until, start)), "{until} bytes of {length}");
                assert!(write((start.len(), &all[..until])));
            }
            assert_eq!(value(&store, &tree, 1), all);
        }
    }

    /// What another one changed meanwhile was not there already: who is serializable comes
    /// before that where it has written nothing else, and loses where it has; under
    /// `snapshot` it loses either way.
    #[test]
    fn what_was_left_and_changes_counts_as_read() {
        for (isolation, writes, wins) in [
            (Isolation::Serializable, false, true),
            (Isolation::Serializable, true, false),
            (Isolation::Snapshot, false, false),
        ] {
            let (store, tree) = store();
            let (mut txn, mut other) = (store.txn(), store.txn());
            txn.begin(isolation).expect("begins");
            put(&mut txn, &tree, 1, b"one").expect("puts");
            if writes {
                put(&mut txn, &tree, 2, b"two").expect("puts");
            }
            other.begin_statement(&[&tree]).expect("begins");
            put(&mut other, &tree, 1, b"other").expect("puts");
            other.commit().expect("commits");
            assert_eq!(txn.commit().is_ok(), wins, "{isolation:?}, {writes}");
            assert_eq!(value(&store, &tree, 1), b"other");
        }
    }

    /// The key of a row that this context, which does not sync each, has committed.
    fn unsynced_row(store: &Store, tree: &Tree, normal: &mut TxnContext) -> i64 {
        let unsynced = (100..200).find(|key| {
            let syncs = counters(store).1;
            normal.begin_statement(&[tree]).expect("begins");
            put(normal, tree, *key, b"row").expect("puts");
            normal.commit().expect("commits");
            counters(store).1 == syncs
        });
        unsynced.expect("it does not sync each")
    }

    /// Who commits durably what another one wrote that may lose it makes that durable.
    #[test]
    fn what_is_left_is_durable() {
        let (store, tree) = store();
        let (mut normal, mut full) = (store.txn(), store.txn());
        normal.set_durability(Durability::Normal);
        let key = unsynced_row(&store, &tree, &mut normal);
        let before = counters(&store);
        full.begin_statement(&[&tree]).expect("begins");
        assert!(put(&mut full, &tree, key, b"row").expect("puts"));
        full.commit().expect("commits");
        let (records, syncs) = counters(&store);
        assert!(records == before.0 && syncs > before.1);
        // The same beside another store, which is written to.
        let key = unsynced_row(&store, &tree, &mut normal);
        let (other, written) = self::store();
        let mut beside = other.txn();
        beside.begin_statement(&[&written]).expect("begins");
        put(&mut beside, &written, 2, b"row").expect("puts");
        full.begin_statement(&[&tree]).expect("begins");
        assert!(put(&mut full, &tree, key, b"row").expect("puts"));
        let syncs = counters(&store).1;
        commit_together(&mut [&mut beside, &mut full]).expect("commits");
        assert!(counters(&store).1 > syncs);
        // Who may lose what it writes looks for nothing that is quickly written, and leaves what
        // it finds as durable as it is.
        let long = [b'l'; LONG];
        for (value, is_left) in [(&b"row"[..], false), (&long, false), (&long, true)] {
            normal.begin_statement(&[&tree]).expect("begins");
            assert!(put(&mut normal, &tree, key, value).expect("puts"));
            assert_eq!(normal.has_written(), !is_left);
            let syncs = counters(&store).1;
            normal.commit().expect("commits");
            assert_eq!(counters(&store).1, syncs);
        }
    }
}
