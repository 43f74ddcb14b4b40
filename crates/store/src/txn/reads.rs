//! What a serializable transaction has read.
//!
//! Every answer depends on a range: a point, or what a cursor passed, from where
//! it was put to the last entry it was on (or the end, where it found none), within the
//! bounds that its reader named. At commit these ranges must be the same in the base and
//! in the head: their entries, or where only that was asked for, which keys are there.
//!
//! Integers in a row make one range, so a loop over them takes no memory in its
//! length; what else was read is kept in the order in which it comes ([`Spans`]), and what
//! open cursors read apart from it. Beyond [`LIMIT`] bytes the reads of the largest tree
//! are coarsened: what overlaps is joined, and if that saves too little, neighbours are, two by
//! two, with all that lies between them. What is depended on only ever grows by
//! that: a transaction may lose for a change that it did not see, never win
//! against one that it did. Where joining does not help (too many cursors are
//! open), the whole tree stands for its reads.

mod observer;
mod spans;

pub(crate) use observer::Observer;

use super::by_tree::{ByTree, OfTree};
use crate::node::Key;
use crate::tree::compare::Aspect;
use crate::tree::{Tree, TreeId};
use observer::Open;
use spans::Spans;
use std::cmp::Ordering;
use std::ops::Bound;

/// Bytes of ranges kept before they are coarsened.
const LIMIT: usize = 1 << 20;

/// From where to where was read, and what of it the answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range<'k> {
    pub(crate) low: Bound<Key<'k>>,
    pub(crate) high: Bound<Key<'k>>,
    pub(crate) aspect: Aspect,
}

impl<'k> Range<'k> {
    /// The key, if the range is one alone.
    pub(crate) fn as_point(&self) -> Option<Key<'k>> {
        match (self.low, self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }
}

/// The order of bounds as beginnings.
fn by_start<K: Ord>(a: &Bound<K>, b: &Bound<K>) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Less,
        (_, Bound::Unbounded) => Ordering::Greater,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => x
            .cmp(y)
            .then(matches!(a, Bound::Excluded(_)).cmp(&matches!(b, Bound::Excluded(_)))),
    }
}

/// The order of bounds as ends.
fn by_end<K: Ord>(a: &Bound<K>, b: &Bound<K>) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => x
            .cmp(y)
            .then(matches!(a, Bound::Included(_)).cmp(&matches!(b, Bound::Included(_)))),
    }
}

/// What was read of one tree.
pub(crate) struct TreeReads {
    pub(crate) tree: Tree,
    pub(crate) whole: bool,
    /// What was looked up, what cursors have passed, and what coarsening made of both.
    closed: Spans,
    /// What cursors read that may extend it, by the places that their observers know.
    open: Vec<Open>,
    /// Places that no observer has.
    free: Vec<usize>,
    /// Bytes of all that is in `open`.
    open_size: usize,
    bytes: usize,
}

impl OfTree for TreeReads {
    #[inline]
    fn tree_id(&self) -> TreeId {
        self.tree.id()
    }
}

impl TreeReads {
    fn new(tree: &Tree) -> Self {
        Self {
            tree: tree.clone(),
            whole: false,
            closed: Spans::new(tree.kind()),
            open: Vec::new(),
            free: Vec::new(),
            open_size: 0,
            bytes: 0,
        }
    }

    /// Calls `visit` for every range until one fails.
    pub(crate) fn try_for_each<E>(
        &self,
        mut visit: impl FnMut(Range<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.closed.try_for_each(&mut visit)?;
        self.open.iter().filter_map(Open::range).try_for_each(visit)
    }

    fn size(&self) -> usize {
        self.closed.size() + self.open_size
    }

    /// Adds a point, unless it is there already.
    #[inline]
    fn point(&mut self, key: Key<'_>, aspect: Aspect) {
        if !self.closed.point(key, aspect) {
            self.take_whole();
        }
    }

    /// Brings the reads down to `limit` bytes, or half as many more where cursors are open;
    /// see the module's header.
    fn coarsen(&mut self, limit: usize) {
        self.closed.coarsen(limit.saturating_sub(self.open_size));
        if self.size() > limit / 2 * 3 {
            self.take_whole();
        }
    }

    fn take_whole(&mut self) {
        self.whole = true;
        self.closed = Spans::new(self.tree.kind());
        self.open.iter_mut().for_each(Open::clear);
        self.open_size = 0;
    }
}

/// The read set of a transaction.
#[derive(Default)]
pub(crate) struct Reads {
    trees: ByTree<TreeReads>,
    bytes: usize,
}

impl Reads {
    fn of(&mut self, tree: &Tree) -> usize {
        let found = self.trees.find(tree.id());
        found.unwrap_or_else(|| self.trees.push(TreeReads::new(tree)))
    }

    /// After more was read of a tree.
    #[inline]
    fn weigh(&mut self, at: usize) {
        let reads = &mut self.trees[at];
        let bytes = reads.size();
        self.bytes = self.bytes - reads.bytes + bytes;
        reads.bytes = bytes;
        if self.bytes > LIMIT {
            self.coarsen();
        }
    }

    #[cold]
    fn coarsen(&mut self) {
        if let Some(largest) = self.trees.iter_mut().max_by_key(|reads| reads.bytes) {
            // Of half as much this does not come again soon.
            let was = largest.bytes;
            largest.coarsen(was / 2);
            largest.bytes = largest.size();
            self.bytes = self.bytes - was + largest.bytes;
        }
    }

    /// Whether no tree was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Bytes of all that it holds.
    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// A lookup, whether it found something or not.
    pub(crate) fn point(&mut self, tree: &Tree, key: Key<'_>, aspect: Aspect) {
        let at = self.of(tree);
        let reads = &mut self.trees[at];
        if !reads.whole {
            reads.point(key, aspect);
            self.weigh(at);
        }
    }

    /// An answer that depends on every entry, such as a count.
    pub(crate) fn whole(&mut self, tree: &Tree) {
        let at = self.of(tree);
        self.trees[at].take_whole();
        self.weigh(at);
    }

    /// That there is this tree, whatever it holds, or that there is none.
    pub(crate) fn existence(&mut self, tree: &Tree) {
        self.of(tree);
    }

    /// What was read is known to be the same, but for what open cursors are about to read
    /// more of.
    pub(crate) fn forget_closed(&mut self) {
        for at in 0..self.trees.len() {
            self.trees[at].closed.clear();
            self.weigh(at);
        }
    }

    /// Empties the set, and lets go of what a large one took. Nobody observes for it.
    pub(crate) fn clear(&mut self) {
        self.trees.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
