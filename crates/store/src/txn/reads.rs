//! What a serializable transaction has read.
//!
//! Every answer depends on a range: a point, or what a cursor passed, from where
//! it was put to the last entry it was on (or the end, where it found none), within the
//! bounds that its reader named. At commit these ranges must be the same in the base and
//! in the head: their entries, or where only that was asked for, which keys are there.
//!
//! Integers in a row make one range, so a loop over them takes no memory in its
//! length; other points are kept as their keys alone, in the order in which they come. Beyond [`LIMIT`] bytes the reads of the largest tree are coarsened:
//! what overlaps is joined, and if that saves too little, neighbours are, two by
//! two, with all that lies between them. What is depended on only ever grows by
//! that: a transaction may lose for a change that it did not see, never win
//! against one that it did. Where joining does not help (too many cursors are
//! open), the whole tree stands for its reads.

mod points;

use crate::node::{Key, OwnedKey};
use crate::primitives::Mutex;
use crate::tree::Tree;
use crate::tree::compare::Aspect;
use crate::tree::cursor::Seek;
use points::Points;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// Bytes of ranges kept before they are coarsened.
const LIMIT: usize = 1 << 20;
/// Bytes that a range takes beside its keys.
const RANGE: usize = size_of::<Range>();
/// Bytes of a range that a cursor still extends, beside those of the range: it has
/// a lock and an allocation of its own.
const SHARED: usize = 64;
/// Trees that an empty set keeps room for.
const TREES_KEPT: usize = 16;

/// From where to where was read, and what of it the answer depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: Bound<OwnedKey>,
    pub(crate) high: Bound<OwnedKey>,
    pub(crate) aspect: Aspect,
}

impl Range {
    fn point(key: OwnedKey, aspect: Aspect) -> Self {
        Self {
            low: Bound::Included(key.clone()),
            high: Bound::Included(key),
            aspect,
        }
    }

    /// The key, if the range is one alone.
    pub(crate) fn as_point(&self) -> Option<&OwnedKey> {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        let key = |bound: &Bound<OwnedKey>| match bound {
            Bound::Included(OwnedKey::Bytes(key)) | Bound::Excluded(OwnedKey::Bytes(key)) => {
                key.len()
            }
            _ => 0,
        };
        RANGE + key(&self.low) + key(&self.high)
    }

    /// Whether `next`, which does not begin before this range, leaves no key
    /// between the two.
    fn meets(&self, next: &Range) -> bool {
        match (&self.high, &next.low) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
            (Bound::Included(OwnedKey::Int(high)), Bound::Included(OwnedKey::Int(low))) => {
                *low <= high.saturating_add(1)
            }
            (Bound::Excluded(high), Bound::Excluded(low)) => low < high,
            (
                Bound::Included(high) | Bound::Excluded(high),
                Bound::Included(low) | Bound::Excluded(low),
            ) => low <= high,
        }
    }

    /// Covers what `other` covers and all that lies between them; `other` does not
    /// begin before this range.
    fn join(&mut self, other: Range) {
        if by_end(&self.high, &other.high) == Ordering::Less {
            self.high = other.high;
        }
        self.aspect = self.aspect.max(other.aspect);
    }
}

/// The order of bounds as beginnings.
fn by_start(a: &Bound<OwnedKey>, b: &Bound<OwnedKey>) -> Ordering {
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
fn by_end(a: &Bound<OwnedKey>, b: &Bound<OwnedKey>) -> Ordering {
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
    /// What was looked up, apart from neighbours.
    points: Points,
    /// Points in a row, and what coarsening made.
    closed: Vec<Range>,
    /// What cursors read; one that is still open may extend its own.
    open: Vec<Arc<Mutex<Range>>>,
    bytes: usize,
}

impl TreeReads {
    /// Calls `visit` for every range until one fails.
    pub(crate) fn try_for_each<E>(
        &self,
        mut visit: impl FnMut(&Range) -> Result<(), E>,
    ) -> Result<(), E> {
        self.points.ranges().iter().try_for_each(&mut visit)?;
        self.closed.iter().try_for_each(&mut visit)?;
        for range in &self.open {
            let range = range.lock().clone();
            visit(&range)?;
        }
        Ok(())
    }

    /// Adds a point, unless it is there already; how many bytes more there are.
    #[inline]
    fn point(&mut self, key: Key<'_>, aspect: Aspect) -> usize {
        if self.extend_last(key, aspect) {
            return 0;
        }
        match self.points.last() {
            Some((last, known)) if last == key && aspect <= known => return 0,
            Some((Key::Int(last), known)) if aspect == known => {
                if let Key::Int(key) = key
                    && (last.checked_add(1) == Some(key) || last.checked_sub(1) == Some(key))
                {
                    let less = self.points.pop();
                    let range = Range {
                        low: Bound::Included(OwnedKey::Int(last.min(key))),
                        high: Bound::Included(OwnedKey::Int(last.max(key))),
                        aspect,
                    };
                    let more = range.bytes();
                    self.closed.push(range);
                    return more.saturating_sub(less);
                }
            }
            _ => {}
        }
        if self.points.has_room(key) {
            return self.points.push(key, aspect);
        }
        let range = Range::point(owned(key), aspect);
        let more = range.bytes();
        self.closed.push(range);
        more
    }

    /// Adds a point to the last range if it is there already or next to it.
    #[inline]
    fn extend_last(&mut self, key: Key<'_>, aspect: Aspect) -> bool {
        let Some(Range {
            low: Bound::Included(low),
            high: Bound::Included(high),
            aspect: known,
        }) = self.closed.last_mut()
        else {
            return false;
        };
        if aspect <= *known && low.as_key() <= key && key <= high.as_key() {
            return true;
        }
        if aspect != *known {
            return false;
        }
        let Key::Int(key) = key else { return false };
        match (low, high) {
            (_, OwnedKey::Int(high)) if high.checked_add(1) == Some(key) => *high = key,
            (OwnedKey::Int(low), _) if low.checked_sub(1) == Some(key) => *low = key,
            _ => return false,
        }
        true
    }

    /// Brings the reads down to `limit` bytes, or half as many more where cursors are open;
    /// see the module's header.
    fn coarsen(&mut self, limit: usize) {
        let mut ranges = std::mem::take(&mut self.closed);
        ranges.extend(std::mem::take(&mut self.points).ranges());
        let mut open = 0;
        self.open.retain(|shared| {
            let range = shared.lock();
            let is_open = Arc::strong_count(shared) > 1;
            if is_open {
                open += SHARED + range.bytes();
            } else {
                ranges.push(range.clone());
            }
            is_open
        });
        ranges.sort_by(|a, b| by_start(&a.low, &b.low));
        ranges = joined(ranges, |last, next, _| last.meets(next));
        let bytes = |ranges: &[Range]| open + ranges.iter().map(Range::bytes).sum::<usize>();
        while bytes(&ranges) > limit && ranges.len() > 1 {
            ranges = joined(ranges, |_, _, at| at % 2 == 1);
        }
        self.bytes = bytes(&ranges);
        self.closed = ranges;
        if self.bytes > limit / 2 * 3 {
            self.take_whole();
        }
    }

    fn take_whole(&mut self) {
        self.whole = true;
        self.points = Points::default();
        self.closed = Vec::new();
        self.open = Vec::new();
        self.bytes = 0;
    }
}

/// Joins each range, in order of their beginnings, to the one before it where
/// `wanted` says so of the two and of its number.
fn joined(ranges: Vec<Range>, wanted: impl Fn(&Range, &Range, usize) -> bool) -> Vec<Range> {
    let mut joined: Vec<Range> = Vec::new();
    for (at, range) in ranges.into_iter().enumerate() {
        match joined.last_mut() {
            Some(last) if wanted(last, &range, at) => last.join(range),
            _ => joined.push(range),
        }
    }
    joined
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

impl Reads {
    fn of(&mut self, tree: &Tree) -> usize {
        let found = self
            .trees
            .iter()
            .position(|reads| reads.tree.id() == tree.id());
        found.unwrap_or_else(|| {
            self.trees.push(TreeReads {
                tree: tree.clone(),
                whole: false,
                points: Points::default(),
                closed: Vec::new(),
                open: Vec::new(),
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
            // Ranges take more than points; of half as much this does not come again soon.
            let was = largest.bytes;
            largest.coarsen(was / 2);
            self.bytes = self.bytes - was + largest.bytes;
        }
    }

    /// A lookup, whether it found something or not.
    pub(crate) fn point(&mut self, tree: &Tree, key: Key<'_>, aspect: Aspect) {
        let at = self.of(tree);
        let reads = &mut self.trees[at];
        if !reads.whole {
            let bytes = reads.point(key, aspect);
            if bytes > 0 {
                self.grow(at, bytes);
            }
        }
    }

    /// An answer that depends on every entry, such as a count.
    pub(crate) fn whole(&mut self, tree: &Tree) {
        let at = self.of(tree);
        self.bytes -= self.trees[at].bytes;
        self.trees[at].take_whole();
    }

    /// Empties the set, and lets go of what a large one took.
    pub(crate) fn clear(&mut self) {
        self.trees.clear();
        self.trees.shrink_to(TREES_KEPT);
        self.bytes = 0;
    }

    /// A cursor was opened: its observer records ranges here.
    pub(crate) fn observer(reads: &Arc<Mutex<Reads>>, tree: &Tree) -> Observer {
        Observer {
            reads: reads.clone(),
            tree: tree.clone(),
            range: None,
            bounds: (Bound::Unbounded, Bound::Unbounded),
        }
    }
}

/// Records what one cursor reads.
pub(crate) struct Observer {
    reads: Arc<Mutex<Reads>>,
    tree: Tree,
    range: Option<Arc<Mutex<Range>>>,
    /// What lies beyond them is the same to the reader as if it were not there.
    bounds: (Bound<OwnedKey>, Bound<OwnedKey>),
}

impl Observer {
    pub(crate) fn narrow(&mut self, low: Bound<Key<'_>>, high: Bound<Key<'_>>) {
        self.bounds = (low.map(owned), high.map(owned));
    }

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
        let range = Range {
            low: self.within(low, false),
            high: self.within(high, true),
            aspect: Aspect::Entry,
        };
        let bytes = SHARED + range.bytes();
        let range = Arc::new(Mutex::new(range));
        let mut reads = self.reads.lock();
        let tree = reads.of(&self.tree);
        if reads.trees[tree].whole {
            self.range = None;
            return;
        }
        reads.trees[tree].open.push(range.clone());
        self.range = Some(range);
        reads.grow(tree, bytes);
    }

    /// The cursor moved on and found `at`, or the end.
    pub(crate) fn step(&mut self, forward: bool, at: Option<OwnedKey>) {
        let Some(range) = &self.range else { return };
        let reached = self.within(at.map_or(Bound::Unbounded, Bound::Included), forward);
        let mut range = range.lock();
        if forward {
            if extends(&range.high, &reached, Ordering::Greater) {
                range.high = reached;
            }
        } else if extends(&range.low, &reached, Ordering::Less) {
            range.low = reached;
        }
    }

    /// What was reached as an end or a beginning of a range, or the reader's bound where
    /// that is nearer.
    fn within(&self, reached: Bound<OwnedKey>, is_end: bool) -> Bound<OwnedKey> {
        let bound = match is_end {
            true if by_end(&self.bounds.1, &reached).is_lt() => &self.bounds.1,
            false if by_start(&self.bounds.0, &reached).is_gt() => &self.bounds.0,
            _ => return reached,
        };
        bound.clone()
    }
}

/// Whether `reached` lies beyond `bound` in this direction.
fn extends(bound: &Bound<OwnedKey>, reached: &Bound<OwnedKey>, beyond: Ordering) -> bool {
    match (bound, reached) {
        (Bound::Unbounded, _) => false,
        (_, Bound::Unbounded) => true,
        // A cursor that was put beside a key and turns round comes to that key.
        (Bound::Excluded(bound), Bound::Included(reached)) if reached == bound => true,
        (
            Bound::Included(bound) | Bound::Excluded(bound),
            Bound::Included(reached) | Bound::Excluded(reached),
        ) => reached.cmp(bound) == beyond,
    }
}

#[cfg(test)]
mod tests;
