//! The live roots of one tree.
//!
//! Each commit that changes a tree publishes a version: from this sequence
//! number on, this is the root. A snapshot at `s` uses the newest version at or
//! below `s`. The newest few lie in a ring that readers read without a lock (a
//! sequence lock: read, then check that nothing was published meanwhile); those
//! that fall out of it while somebody may still need them go to a map.
//!
//! Kept true:
//! 1. Versions are published in ascending order, under the commit lock or, by who holds
//!    the tree's writer lock, with a lease or secluded (`leases.rs`).
//! 2. A version that a pin, or a new reader at `visible`, can ask for is found.
//! 3. Versions nobody can ask for any more are dropped when new ones push them
//!    out or [`Versions::prune`] runs: memory is in the pins, not in the commits.

use crate::cache::ChildRef;
use crate::primitives::atomic::{AtomicU64, Ordering::*, fence};
use crate::primitives::{Mutex, RING, spin_loop};
use std::collections::BTreeMap;

const WORDS: usize = 5;

/// One version of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    /// The commit that published it.
    pub(crate) seq: u64,
    /// The root node; none for an empty tree.
    pub(crate) node: ChildRef,
    /// Entries in the tree.
    pub(crate) count: u64,
    /// The tree was dropped by this commit.
    pub(crate) dropped: bool,
}

impl Root {
    fn words(&self) -> [u64; WORDS] {
        let [reference, rest] = self.node.words();
        [
            self.seq,
            reference,
            rest,
            self.count,
            u64::from(self.dropped),
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        Self {
            seq: words[0],
            node: ChildRef::from_words([words[1], words[2]]),
            count: words[3],
            dropped: words[4] != 0,
        }
    }
}

#[derive(Default)]
struct Cell([AtomicU64; WORDS]);

/// The versions of one tree. See the module's header.
pub(crate) struct Versions {
    /// Odd while a version is being published.
    lock: AtomicU64,
    /// Versions ever published; the newest is at `(published - 1) % RING`.
    published: AtomicU64,
    ring: [Cell; RING],
    /// Also serialises those who change the ring.
    older: Mutex<BTreeMap<u64, Root>>,
}

impl Versions {
    pub(crate) fn new() -> Self {
        Self {
            lock: AtomicU64::new(0),
            published: AtomicU64::new(0),
            ring: Default::default(),
            older: Mutex::default(),
        }
    }

    fn read(&self, number: u64) -> Root {
        let cell = &self.ring[number as usize % RING];
        Root::from_words(std::array::from_fn(|i| cell.0[i].load(Relaxed)))
    }

    /// What the snapshot at `seq` sees; `None` if the tree did not exist then.
    #[inline]
    pub(crate) fn at(&self, seq: u64) -> Option<Root> {
        loop {
            let before = self.lock.load(Acquire);
            if before % 2 == 1 {
                spin_loop();
                continue;
            }
            let published = self.published.load(Relaxed);
            let oldest = published.saturating_sub(RING as u64);
            let found = (oldest..published)
                .rev()
                .map(|number| self.read(number))
                .find(|root| root.seq <= seq);
            fence(Acquire);
            if self.lock.load(Relaxed) != before {
                continue;
            }
            if found.is_some() || oldest == 0 {
                return found;
            }
            let older = self.older.lock();
            // The ring may have moved on since: look once more under the lock.
            if self.lock.load(Relaxed) != before {
                continue;
            }
            return older.range(..=seq).next_back().map(|(_, root)| *root);
        }
    }

    /// The newest version.
    #[inline]
    pub(crate) fn head(&self) -> Option<Root> {
        loop {
            let before = self.lock.load(Acquire);
            if before % 2 == 1 {
                spin_loop();
                continue;
            }
            let newest = self.published.load(Relaxed).checked_sub(1)?;
            let head = self.read(newest);
            fence(Acquire);
            if self.lock.load(Relaxed) == before {
                return Some(head);
            }
        }
    }

    /// Publishes a version, as rule 1 says. `needed_from` is a lower
    /// bound of every number that a reader has pinned or may still pin.
    pub(crate) fn publish(&self, root: Root, needed_from: u64) {
        let mut older = self.older.lock();
        let published = self.published.load(Relaxed);
        if published >= RING as u64 {
            let leaving = self.read(published - RING as u64);
            let next = self.read(published - RING as u64 + 1);
            if next.seq > needed_from {
                older.insert(leaving.seq, leaving);
            }
        }
        self.change(|| {
            self.write(published, &root);
            self.published.store(published + 1, Relaxed);
        });
    }

    /// The same for a commit under a lease that begins at `first`: no snapshot lies
    /// within a lease, so this version takes the place of one from the same lease. Under
    /// its lane's lock.
    pub(crate) fn publish_within(&self, root: Root, first: u64, needed_from: u64) {
        let older = self.older.lock();
        let newest = self.published.load(Relaxed).checked_sub(1);
        match newest.filter(|newest| self.read(*newest).seq > first) {
            Some(newest) => self.change(|| self.write(newest, &root)),
            None => {
                drop(older);
                self.publish(root, needed_from);
            }
        }
    }

    fn change(&self, change: impl FnOnce()) {
        let lock = self.lock.load(Relaxed);
        self.lock.store(lock + 1, Relaxed);
        fence(Release);
        change();
        self.lock.store(lock + 2, Release);
    }

    fn write(&self, number: u64, root: &Root) {
        let cell = &self.ring[number as usize % RING];
        for (word, value) in cell.0.iter().zip(root.words()) {
            word.store(value, Relaxed);
        }
    }

    /// Notes a better reference for the same node: the extent it was written
    /// to, or the frame where it was found.
    pub(crate) fn refine(&self, was: u64, seq: u64, node: ChildRef) {
        let mut older = self.older.lock();
        let published = self.published.load(Relaxed);
        for number in published.saturating_sub(RING as u64)..published {
            let mut root = self.read(number);
            if root.seq == seq && root.node.reference == was {
                root.node = node;
                self.change(|| self.write(number, &root));
                return;
            }
        }
        if let Some(root) = older.get_mut(&seq)
            && root.node.reference == was
        {
            root.node = node;
        }
    }

    /// Drops versions outside the ring that neither one of the `pins` asks for nor
    /// a new reader, who pins `visible` or later.
    pub(crate) fn prune(&self, pins: impl Iterator<Item = u64>, visible: u64) {
        let mut older = self.older.lock();
        if older.is_empty() {
            return;
        }
        let mut keep = BTreeMap::new();
        for pin in pins.filter(|pin| *pin < visible).chain([visible]) {
            if let Some((seq, root)) = older.range(..=pin).next_back() {
                keep.insert(*seq, *root);
            }
        }
        for (seq, root) in older.range(visible.saturating_add(1)..) {
            keep.insert(*seq, *root);
        }
        *older = keep;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(seq: u64) -> Root {
        Root {
            seq,
            node: ChildRef::new(seq * 10, 1, 2),
            count: seq * 100,
            dropped: false,
        }
    }

    #[test]
    fn snapshots_find_the_newest_version_at_or_below_them() {
        let versions = Versions::new();
        assert_eq!(versions.at(5), None);
        for seq in (10..400).step_by(10) {
            versions.publish(root(seq), 0);
        }
        assert_eq!(versions.at(9), None);
        for seq in 10..400 {
            assert_eq!(versions.at(seq), Some(root(seq / 10 * 10)), "at {seq}");
        }
        assert_eq!(versions.head(), Some(root(390)));
    }

    #[test]
    fn only_what_pins_ask_for_is_kept() {
        let versions = Versions::new();
        for seq in 1..=100 {
            versions.publish(root(seq), 0);
        }
        versions.prune([33, 7, 95].into_iter(), 90);
        assert_eq!(versions.at(7), Some(root(7)));
        assert_eq!(versions.at(33), Some(root(33)));
        assert_eq!(versions.at(90), Some(root(90)));
        assert_eq!(versions.at(100), Some(root(100)));
        assert_eq!(versions.older.lock().len(), 2 + 3);
        let quiet = Versions::new();
        for seq in 1..=1000 {
            quiet.publish(root(seq), seq - 1);
        }
        assert_eq!(quiet.older.lock().len(), 0);
    }

    #[test]
    fn refining_changes_the_reference_and_nothing_else() {
        let versions = Versions::new();
        for seq in 1..=20 {
            versions.publish(root(seq), 0);
        }
        for seq in [3, 20] {
            let better = ChildRef::new(7, 8, 9);
            versions.refine(seq * 10, seq, better);
            assert_eq!(versions.at(seq).map(|root| root.node), Some(better));
            assert_eq!(versions.at(seq).map(|root| root.count), Some(seq * 100));
        }
        versions.refine(999, 5, ChildRef::NONE);
        assert_eq!(versions.at(5), Some(root(5)));
    }

    #[test]
    fn readers_never_see_half_a_version() {
        let versions = Versions::new();
        versions.publish(root(1), 0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let seen = versions.head().expect("a version");
                        assert_eq!(seen, root(seen.seq));
                        if seen.seq == 20_000 {
                            break;
                        }
                    }
                });
            }
            for seq in 2..=20_000 {
                versions.publish(root(seq), seq);
            }
        });
    }
}
