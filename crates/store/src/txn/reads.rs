//! What a serializable transaction has read.
//!
//! Every answer depends on a range: a point, or what a cursor passed, from where
//! it was put to the last entry it was on (or the end, where it found none). At
//! commit these ranges must be the same in the base and in the head. Beyond
//! [`LIMIT`] bytes the points and ranges of the largest tree are replaced by the
//! tree as a whole.

use crate::node::{Key, OwnedKey};
use crate::primitives::Mutex;
use crate::tree::Tree;
use crate::tree::cursor::Seek;
use std::ops::Bound;
use std::sync::Arc;

/// Bytes of points and ranges kept before they are coarsened.
const LIMIT: usize = 1 << 20;

/// From where to where a cursor read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: Bound<OwnedKey>,
    pub(crate) high: Bound<OwnedKey>,
}

/// What was read of one tree.
pub(crate) struct TreeReads {
    pub(crate) tree: Tree,
    pub(crate) points: Vec<OwnedKey>,
    pub(crate) ranges: Vec<Arc<Mutex<Range>>>,
    pub(crate) whole: bool,
    bytes: usize,
}

/// The read set of a transaction.
#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) trees: Vec<TreeReads>,
    bytes: usize,
}

pub(crate) fn owned(key: Key<'_>) -> OwnedKey {
    match key {
        Key::Int(key) => OwnedKey::Int(key),
        Key::Bytes(key) => OwnedKey::Bytes(key.to_vec()),
    }
}

fn size(key: Key<'_>) -> usize {
    match key {
        Key::Int(_) => 32,
        Key::Bytes(key) => 32 + key.len(),
    }
}

impl Reads {
    fn of(&mut self, tree: &Tree) -> usize {
        let found = self
            .trees
            .iter()
            .position(|reads| reads.tree.id() == tree.id());
        found.unwrap_or_else(|| {
            self.trees.push(TreeReads {
                tree: tree.clone(),
                points: Vec::new(),
                ranges: Vec::new(),
                whole: false,
                bytes: 0,
            });
            self.trees.len() - 1
        })
    }

    fn grow(&mut self, at: usize, bytes: usize) {
        self.bytes += bytes;
        self.trees[at].bytes += bytes;
        if self.bytes > LIMIT
            && let Some(largest) = self.trees.iter_mut().max_by_key(|reads| reads.bytes)
        {
            self.bytes -= largest.bytes;
            largest.points = Vec::new();
            largest.ranges = Vec::new();
            largest.bytes = 0;
            largest.whole = true;
        }
    }

    /// A lookup, whether it found something or not.
    pub(crate) fn point(&mut self, tree: &Tree, key: Key<'_>) {
        let at = self.of(tree);
        if !self.trees[at].whole {
            self.trees[at].points.push(owned(key));
            self.grow(at, size(key));
        }
    }

    /// An answer that depends on every entry, such as a count.
    pub(crate) fn whole(&mut self, tree: &Tree) {
        let at = self.of(tree);
        self.trees[at].whole = true;
    }

    /// A cursor was opened: its observer records ranges here.
    pub(crate) fn observer(reads: &Arc<Mutex<Reads>>, tree: &Tree) -> Observer {
        Observer {
            reads: reads.clone(),
            tree: tree.clone(),
            range: None,
        }
    }
}

/// Records what one cursor reads.
pub(crate) struct Observer {
    reads: Arc<Mutex<Reads>>,
    tree: Tree,
    range: Option<Arc<Mutex<Range>>>,
}

impl Observer {
    /// The cursor was put somewhere and found `at`, or nothing.
    pub(crate) fn seek(&mut self, to: Seek<'_>, at: Option<OwnedKey>) {
        let found = |at: Option<OwnedKey>| at.map_or(Bound::Unbounded, Bound::Included);
        let (low, high) = match to {
            Seek::First => (Bound::Unbounded, found(at)),
            Seek::AtLeast(key) => (Bound::Included(owned(key)), found(at)),
            Seek::After(key) => (Bound::Excluded(owned(key)), found(at)),
            Seek::Last => (found(at), Bound::Unbounded),
            Seek::AtMost(key) => (found(at), Bound::Included(owned(key))),
            Seek::Before(key) => (found(at), Bound::Excluded(owned(key))),
        };
        let range = Arc::new(Mutex::new(Range { low, high }));
        let mut reads = self.reads.lock();
        let tree = reads.of(&self.tree);
        if reads.trees[tree].whole {
            self.range = None;
            return;
        }
        reads.trees[tree].ranges.push(range.clone());
        reads.grow(tree, 160);
        self.range = Some(range);
    }

    /// The cursor moved on and found `at`, or the end.
    pub(crate) fn step(&mut self, forward: bool, at: Option<OwnedKey>) {
        let Some(range) = &self.range else { return };
        let mut range = range.lock();
        let reached = at.map_or(Bound::Unbounded, Bound::Included);
        if forward {
            if extends(&range.high, &reached, std::cmp::Ordering::Greater) {
                range.high = reached;
            }
        } else if extends(&range.low, &reached, std::cmp::Ordering::Less) {
            range.low = reached;
        }
    }
}

/// Whether `reached` lies beyond `bound` in this direction.
fn extends(bound: &Bound<OwnedKey>, reached: &Bound<OwnedKey>, beyond: std::cmp::Ordering) -> bool {
    match (bound, reached) {
        (Bound::Unbounded, _) => false,
        (_, Bound::Unbounded) => true,
        (
            Bound::Included(bound) | Bound::Excluded(bound),
            Bound::Included(reached) | Bound::Excluded(reached),
        ) => reached.cmp(bound) == beyond,
    }
}
