//! Transactions too large for the log.
//!
//! When a transaction's redo passes [`REDO_LIMIT`], or [`DENSE_LIMIT`] where its
//! pages are hardly more to write than its redo, it becomes *bulk*: it takes the
//! locks that a commit needs (Busy if it cannot), checks that nothing it
//! depends on moved on, and keeps no redo from there on. At commit it writes its
//! pages to free extents, syncs the data file, and logs one attach record with
//! the new roots. So its data is written once, and memory is bounded whatever
//! its size. That is asked before each operation; what the last one wrote, and a
//! redo that was kept since a tree had moved on, are seen to by the commit, which
//! writes pages once it has rebased.
//!
//! Why replaying an attach record is sound: the checkpoint that is durable when
//! it is logged covers the base of each of its trees, and their writer locks
//! keep them there, so recovery finds the base, takes the new root, and goes on.
//! The pages were synced before the record was written. Until a checkpoint
//! covers it, its extents are free in the persisted map; so recovery reserves
//! the extents of all attach records before it replays anything.
//!
//! ```text
//! version u8 (2) | trees u32 | runs u32 | freed u32 | dictionaries u32
//! trees times:  tree u32 | kind u8 | flags u8 (1 created, 2 dropped) | 0 u16 |
//!               root extent u64 (0: empty) | root checksum u32 | 0 u32 | entries u64
//! runs times:   first unit u64 | units u64      extents that are in use now
//! freed times:  extent u64                      of the base, not reached any more
//! dictionaries times: as in the catalog; all that these trees have
//! ```

use super::{TxnContext, TxnState};
use crate::cache::{ChildRef, NO_HINT};
use crate::checkpoint::{self, catalog, collect, train, writer};
use crate::codec::ExtentRef;
use crate::dictionaries;
use crate::error::{Error, Result};
use crate::extents::Run;
use crate::primitives::{DENSE_LIMIT, REDO_LIMIT};
use crate::reclaim::{Dead, owned};
use crate::space::extent_of;
use crate::store::Core;
use crate::tree::{EMPTY, KeyKind, Tree, TreeId};
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_wal::PAYLOAD_BYTES_MAX;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Bytes of pages to a byte of redo in a transaction that fills its pages.
const DENSE: usize = 2;

const VERSION: u8 = 2;
const CREATED: u8 = 1;
const DROPPED: u8 = 2;

impl TxnContext {
    /// Whether it is time to become bulk, now that the redo has reached `bulk_at`.
    /// Scattered changes wait: their pages are many times their redo, and the next
    /// checkpoint writes them together with those of others.
    pub(super) fn is_bulk_due(&mut self) -> bool {
        let pages: usize = self.forks.iter().map(|fork| fork.own.len()).sum();
        let is_due = self.redo.len() >= REDO_LIMIT
            || pages * self.core.pool.page_size() <= DENSE * self.redo.len();
        if !is_due {
            self.bulk_at += DENSE_LIMIT;
        }
        is_due
    }

    /// Becomes bulk if it has grown too large for the log.
    #[cold]
    pub(super) fn outgrow_log(&mut self) -> Result<()> {
        match self.is_outgrown() {
            true => self.become_bulk(),
            false => Ok(()),
        }
    }

    fn is_outgrown(&mut self) -> bool {
        self.redo.len() >= self.bulk_at && self.is_bulk_due()
    }

    /// Before the locks of its commit: whether that logs where its pages are. One that is
    /// not bulk may be too large for a record, too, by what it wrote last, or since its trees
    /// have moved on; then it keeps its redo until it has been rebased.
    pub(super) fn choose_record(&mut self) {
        self.attaches = self.bulk || self.is_outgrown() || self.redo.len() > PAYLOAD_BYTES_MAX;
    }

    /// Whether what is written from here on belongs together, and nobody could take back a
    /// part of it: that the transaction grows too large for the log is looked at by the next
    /// [`claim`](Self::claim) then, before anything is written that its locks may be refused
    /// for. To be ended soon: until then it grows without bounds.
    pub fn set_whole(&mut self, is_whole: bool) {
        self.is_whole = is_whole;
    }

    /// The same of what writes one row after the other: nothing is looked at before what
    /// follows it, so that none of it is refused for want of a lock. To be set where nothing
    /// [`may_be_refused`](Self::may_be_refused), for so few rows as one statement names. Who
    /// holds all locks is asked as ever: nothing follows that would look at what it has grown to.
    pub fn set_unasked(&mut self, is_unasked: bool) {
        let has_effect = is_unasked && self.state == TxnState::Optimistic;
        self.is_whole = has_effect;
        self.is_unasked = has_effect;
    }

    /// Whether writing to a tree may have to take a lock, which others may hold, or which
    /// comes too late: a transaction that has grown too large for the log, or comes to be so
    /// where `grows`, takes that of each tree before it first writes to it.
    pub fn may_be_refused(&self, tree: &Tree, grows: bool) -> bool {
        self.state == TxnState::Optimistic
            && match self.bulk {
                true => !self.locked.holds(tree.id()),
                false => grows || self.redo.len() >= self.bulk_at,
            }
    }

    /// Makes the transaction bulk. If a tree it wrote to has moved on since its
    /// snapshot, it stays as it is, to be rebased at commit like any other.
    #[cold]
    pub(super) fn become_bulk(&mut self) -> Result<()> {
        self.need_snapshot();
        if self.state == TxnState::Optimistic {
            // Until it is bulk it holds none: its commit would wait for its own.
            let held = self.hold_bulk_locks(None);
            held.inspect_err(|_| self.unlock_for_commit())?;
            let mut changed = self.forks.iter().filter(|fork| fork.changed);
            if changed.any(|fork| fork.has_moved_on()) {
                self.unlock_for_commit();
                // Look again when it has grown as much once more.
                self.bulk_at += REDO_LIMIT;
                return Ok(());
            }
        }
        self.bulk = true;
        self.redo.clear();
        self.redo.shrink_to(1 << 16);
        Ok(())
    }

    pub(super) fn changed_trees(&self) -> Vec<Tree> {
        let changed = self
            .forks
            .iter()
            .filter(|fork| fork.changed && !fork.created);
        changed.map(|fork| fork.tree.clone()).collect()
    }

    /// A bulk transaction that begins to write to another tree takes its lock.
    pub(super) fn lock_for_bulk(&mut self, tree: &Tree) -> Result<()> {
        if !self.bulk || self.state != TxnState::Optimistic || self.locked.holds(tree.id()) {
            return Ok(());
        }
        self.hold_bulk_locks(Some(tree))?;
        if tree.0.head().seq != tree.0.versions.at(self.seq).unwrap_or(EMPTY).seq {
            // Nothing of it is changed, and others need not wait for its lock.
            self.locked.unlock_one(tree.id());
            return Err(self.conflict(tree, None));
        }
        Ok(())
    }

    /// Before the first write to several trees of which all or none shall be done: a
    /// transaction that has grown too large for the log takes the locks that it needs for
    /// that, and of those trees that it has not written to, which writing to one of them
    /// would do. Others need none.
    ///
    /// # Errors
    /// `Busy` or `Conflict`, as the write had failed, and nothing is changed.
    #[inline]
    pub fn claim(&mut self, tree: &Tree) -> Result<()> {
        self.check_own(tree)?;
        if self.redo.len() >= self.bulk_at && !self.is_unasked {
            self.outgrow_log()?;
        }
        self.lock_for_bulk(tree)
    }

    /// Writes the pages, syncs them, and returns the attach record.
    pub(super) fn write_bulk(&mut self) -> Result<Vec<u8>> {
        self.settle_spills()?;
        let core = self.core.clone();
        let base = self.forks.iter().map(|fork| fork.base.seq).max();
        let base = base.unwrap_or(0);
        if core.checkpoint_pins.durable() < base {
            // One that was rebased stands on a commit that may still be on its way.
            core.wait_visible(base)?;
            checkpoint::run(&core)?;
        }
        let mut trees = Vec::new();
        let mut used = Vec::new();
        let mut freed = Vec::new();
        let mut named = Vec::new();
        for fork in self.forks.iter_mut().filter(|fork| fork.changed) {
            let unpublished = fork
                .published
                .get_or_insert_with(|| Arc::new(AtomicU64::new(u64::MAX)))
                .clone();
            let unwritten = collect::unwritten(&core, fork.root);
            train::prepare(&core, unwritten.leaves())?;
            for nodes in unwritten.lowest_first() {
                let (after, unpublished) = (writer::After::Keep, Some(&unpublished));
                fork.spilled += writer::write_nodes(&core, &nodes, unpublished, after)?;
            }
            fork.root = core.pool.resolved(fork.root);
            used.reserve(fork.own.len());
            freed.reserve(fork.replaced.len());
            let own = fork.own.iter().map(|node| core.pool.resolved(*node));
            used.extend(
                own.filter(|node| !node.is_handle())
                    .map(|node| node.reference),
            );
            let slot = self.slot.as_ref().ok_or_else(super::no_slot)?;
            for dead in fork.replaced.iter() {
                for node in owned::nodes_of(&core, slot, *dead, fork.tree.id().0)? {
                    let node = core.pool.resolved(node.node);
                    if !node.is_handle() {
                        freed.push(node.reference);
                    }
                }
            }
            named.extend(core.pool.dictionaries.of(fork.tree.id().0));
            trees.push(TreeRecord {
                tree: fork.tree.id(),
                kind: fork.tree.kind(),
                created: fork.created,
                dropped: fork.dropped,
                root: fork.root,
                count: fork.count,
            });
        }
        if !planted(Mutation::SkipBulkSync) {
            core.sync_file()?;
        }
        part(&mut used, &mut freed);
        Ok(encode(&trees, &runs(&used), &freed, &named))
    }

    /// Recovery: takes over the roots of an attach record.
    pub(super) fn attach(&mut self, payload: &[u8]) -> Result<()> {
        let record = decode(payload).ok_or_else(malformed)?;
        let mut freed = record.freed.iter();
        for entry in &record.trees {
            // Nobody counts so far, and there is room to count on.
            if entry.count > i64::MAX as u64 {
                return Err(malformed());
            }
            let at = if entry.created {
                let tree = self.core.add_tree(entry.tree, entry.kind);
                let mut fork = self.new_fork(&tree, EMPTY);
                fork.created = true;
                self.forks.push(fork)
            } else {
                let tree = self.core.tree(entry.tree).ok_or_else(malformed)?;
                self.fork(&tree)?
            };
            let fork = &mut self.forks[at];
            fork.settle(&self.core.pool);
            fork.attached = true;
            fork.root = entry.root;
            fork.count = entry.count;
            fork.dropped = entry.dropped;
            fork.max_key = None;
            fork.memo = None;
            // Which tree an extent was of does not matter for freeing it.
            let dead = freed
                .by_ref()
                .map(|reference| Dead::node(ChildRef::new(*reference, 0, NO_HINT), 0));
            fork.replaced.extend(dead);
        }
        Ok(())
    }
}

/// Recovery: marks the extents of an attach record as used, and makes its
/// dictionaries known.
pub(super) fn reserve(core: &Core, payload: &[u8]) -> Result<()> {
    let record = decode(payload).ok_or_else(malformed)?;
    let mut space = core.space.lock();
    for run in record.runs {
        space
            .map
            .reserve(run)
            .map_err(|error| Error::corrupt(format!("{}: {error}", malformed())))?;
    }
    for entry in record.dictionaries {
        // The checkpoint or a record before may have named it.
        if core.pool.dictionaries.knows(entry) {
            continue;
        }
        let extent = entry.blob.extent;
        space
            .map
            .reserve(extent)
            .map_err(|error| Error::corrupt(format!("{}: {error}", malformed())))?;
        space.note_dictionary(extent);
        if !core.pool.dictionaries.add(entry, None) {
            return Err(malformed());
        }
    }
    Ok(())
}

fn malformed() -> Error {
    Error::corrupt("database disk image is malformed: an attach record of the log makes no sense")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TreeRecord {
    tree: TreeId,
    kind: KeyKind,
    created: bool,
    dropped: bool,
    root: ChildRef,
    count: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Record {
    trees: Vec<TreeRecord>,
    runs: Vec<Run>,
    freed: Vec<u64>,
    dictionaries: Vec<dictionaries::Entry>,
}

/// The extents as contiguous runs. References do not sort by position.
fn position(reference: &u64) -> u64 {
    extent_of(*reference).position()
}

/// Takes the extents that are in both lists out of both, which are long: a node
/// that the transaction wrote, and replaced again. Both are in order of position
/// then.
fn part(used: &mut Vec<u64>, freed: &mut Vec<u64>) {
    used.sort_unstable_by_key(position);
    freed.sort_unstable_by_key(position);
    let mut others = freed.iter().map(position).peekable();
    let mut both = Vec::new();
    for at in used.iter().map(position) {
        while others.next_if(|other| *other < at).is_some() {}
        if others.peek() == Some(&at) {
            both.push(at);
        }
    }
    let is_in_one = |reference: &u64| both.binary_search(&position(reference)).is_err();
    used.retain(is_in_one);
    freed.retain(is_in_one);
}

/// Neighbours joined; `used` is in order of position.
fn runs(used: &[u64]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for extent in used.iter().map(|reference| extent_of(*reference)) {
        match runs.last_mut() {
            Some(last) if last.end() == extent.position() => last.len += u64::from(extent.units()),
            _ => runs.push(extent.into()),
        }
    }
    runs
}

fn encode(
    trees: &[TreeRecord],
    runs: &[Run],
    freed: &[u64],
    named: &[dictionaries::Entry],
) -> Vec<u8> {
    let lists = size_of_val(runs) + size_of_val(freed);
    let mut out = Vec::with_capacity(lists + (1 << 10));
    out.push(VERSION);
    for count in [trees.len(), runs.len(), freed.len(), named.len()] {
        out.extend_from_slice(&(count as u32).to_le_bytes());
    }
    for tree in trees {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(tree.created, CREATED) | flag(tree.dropped, DROPPED);
        out.extend_from_slice(&tree.tree.0.to_le_bytes());
        out.extend_from_slice(&[tree.kind.to_byte(), flags, 0, 0]);
        out.extend_from_slice(&tree.root.reference.to_le_bytes());
        out.extend_from_slice(&tree.root.checksum().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&tree.count.to_le_bytes());
    }
    for run in runs {
        out.extend_from_slice(&run.start.to_le_bytes());
        out.extend_from_slice(&run.len.to_le_bytes());
    }
    for reference in freed {
        out.extend_from_slice(&reference.to_le_bytes());
    }
    for entry in named {
        out.extend_from_slice(&catalog::encode_dictionary(entry));
    }
    out
}

fn decode(payload: &[u8]) -> Option<Record> {
    let mut at = 0;
    let mut take = |count: usize| {
        let bytes = payload.get(at..at + count)?;
        at += count;
        Some(bytes)
    };
    let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let half = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
    if take(1)? != [VERSION] {
        return None;
    }
    let mut count = || half(take(4)?);
    let [trees, runs, freed, named] = [count()?, count()?, count()?, count()?];
    let mut record = Record {
        trees: Vec::new(),
        runs: Vec::new(),
        freed: Vec::new(),
        dictionaries: Vec::new(),
    };
    for _ in 0..trees {
        let tree = TreeId(half(take(4)?)?);
        let marks = take(4)?;
        let reference = word(take(8)?)?;
        let checksum = half(take(4)?)?;
        take(4)?;
        if reference != 0 {
            ExtentRef::from_word(reference)?;
        }
        record.trees.push(TreeRecord {
            tree,
            kind: KeyKind::from_byte(*marks.first()?)?,
            created: marks.get(1)? & CREATED != 0,
            dropped: marks.get(1)? & DROPPED != 0,
            root: ChildRef::new(reference, checksum, NO_HINT),
            count: word(take(8)?)?,
        });
    }
    for _ in 0..runs {
        let (start, len) = (word(take(8)?)?, word(take(8)?)?);
        record.runs.push(Run { start, len });
    }
    for _ in 0..freed {
        let reference = word(take(8)?)?;
        ExtentRef::from_word(reference)?;
        record.freed.push(reference);
    }
    for _ in 0..named {
        let entry = catalog::decode_dictionary(take(catalog::DICTIONARY)?)?;
        record.dictionaries.push(entry);
    }
    (at == payload.len()).then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Key;
    use crate::options::Options;
    use crate::store::Store;

    #[test]
    fn records_come_back() {
        let reference = ExtentRef::new(40, 3).expect("an extent").word();
        let tree = TreeRecord {
            tree: TreeId(7),
            kind: KeyKind::Int,
            created: true,
            dropped: false,
            root: ChildRef::new(reference, 9, NO_HINT),
            count: 11,
        };
        let used = [
            reference,
            ExtentRef::new(43, 2).expect("an extent").word(),
            ExtentRef::new(50, 1).expect("an extent").word(),
        ];
        let runs = runs(&used);
        assert_eq!(runs, [Run { start: 40, len: 5 }, Run { start: 50, len: 1 }]);
        let dictionary = dictionaries::Entry {
            tree: 7,
            number: 2,
            blob: checkpoint::meta::Blob {
                extent: ExtentRef::new(60, 64).expect("an extent"),
                checksum: 5,
                length: 4096,
            },
        };
        let bytes = encode(&[tree], &runs, &[reference], &[dictionary]);
        let record = decode(&bytes).expect("whole");
        assert_eq!(record.trees, [tree]);
        assert_eq!(record.runs, runs);
        assert_eq!(record.freed, [reference]);
        assert_eq!(record.dictionaries, [dictionary]);
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn an_extent_written_and_replaced_is_neither_used_nor_freed() {
        let words = |positions: &[u64]| -> Vec<u64> {
            let extent = |at: &u64| ExtentRef::new(*at, 3).expect("an extent").word();
            positions.iter().map(extent).collect()
        };
        let mut used = words(&[90, 30, 60, 20]);
        let mut freed = words(&[60, 10, 20, 40, 95]);
        part(&mut used, &mut freed);
        assert_eq!(used, words(&[30, 90]));
        assert_eq!(freed, words(&[10, 40, 95]));
    }

    #[test]
    fn loads_become_bulk_before_scattered_changes_do() {
        const ROWS: i64 = 160_000;
        let disk = Arc::new(fulgurite_disk::MemoryDisk::new());
        let store = Store::open_on(disk, "bulk.db", Options::default()).expect("opens");
        let tree = store.create_family("rows", KeyKind::Int).expect("a family");
        let value = [7; 100];
        // Bytes of redo with which a transaction over these keys becomes bulk.
        let redo_of = |keys: &mut dyn Iterator<Item = i64>| {
            let mut txn = store.txn();
            txn.begin_immediate().expect("begins");
            let mut redo = 0;
            while !txn.bulk {
                redo = txn.redo.len();
                let key = keys.next().expect("enough keys");
                txn.put(&tree, Key::Int(key), &value).expect("puts");
            }
            for key in keys {
                txn.put(&tree, Key::Int(key), &value).expect("puts");
            }
            txn.commit().expect("commits");
            redo
        };
        let loaded = redo_of(&mut (0..ROWS));
        let early = DENSE_LIMIT + crate::primitives::REDO_STEP;
        assert!(loaded < early, "{loaded}");
        // Each of them in a page of its own until every page was met.
        let scattered = redo_of(&mut (0..ROWS).map(|i| i * 7_919 % ROWS).take(100_000));
        assert!(scattered > early, "{scattered}");
        assert_eq!(
            store.integrity_check().expect("checks"),
            Vec::<String>::new()
        );
    }
}
