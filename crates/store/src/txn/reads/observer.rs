//! What one cursor reads.
//!
//! What it reads now stands in the read set where a commit sees it, at a place that the
//! observer has as long as it lives; with the cursor's next seek it joins what others read.
//! Places, with the memory for their keys, are handed on from cursor to cursor.
//!
//! A cursor that goes on within a leaf tells only at which entry it is, without a lock and
//! without the key ([`Observer::passes`]): the range lags behind. Whoever wants it complete
//! looks into the leaf for the key ([`Reads::trees`]); the cursor does so itself before it
//! leaves the leaf, turns round or seeks. So where a place names a leaf, its cursor has that
//! pinned. Leaves with long keys, which may be costly to look up, are not passed like that.

use super::{Range, Reads, TreeReads, by_end, by_start};
use crate::cache::Pool;
use crate::node::{Key, OwnedKey};
use crate::primitives::Mutex;
use crate::primitives::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::tree::Tree;
use crate::tree::compare::Aspect;
use crate::tree::cursor::{Leaf, Seek};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// Records what one cursor reads.
pub(crate) struct Observer {
    reads: Arc<Mutex<Reads>>,
    /// Which of the read set's trees, and which place there.
    tree: usize,
    place: usize,
    /// The entry of a leaf that the cursor is on, shared with the place.
    index: Arc<AtomicUsize>,
    /// Where it goes on within that leaf: whether forward.
    passing: Option<bool>,
}

/// A place for what an open cursor reads.
pub(super) struct Open {
    state: State,
    low: Bound<OwnedKey>,
    high: Bound<OwnedKey>,
    within: Within,
    /// The leaf within which the cursor goes on forward, or backward.
    passing: Option<(Leaf, bool)>,
    index: Arc<AtomicUsize>,
    size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is read.
    Idle,
    /// One key, which is among the tree's other reads already.
    Point,
    /// The range.
    Range,
}

/// What lies beyond these bounds, if there are any, is the same to the reader as if it
/// were not there.
struct Within {
    is_set: bool,
    low: Bound<OwnedKey>,
    high: Bound<OwnedKey>,
}

impl Within {
    /// What was reached as an end or a beginning of a range, or the reader's bound where
    /// that is nearer.
    fn nearer<'k>(&'k self, reached: Bound<Key<'k>>, is_end: bool) -> Bound<Key<'k>> {
        if !self.is_set {
            return reached;
        }
        let (low, high) = (borrowed(&self.low), borrowed(&self.high));
        match is_end {
            true if by_end(&high, &reached).is_lt() => high,
            false if by_start(&low, &reached).is_gt() => low,
            _ => reached,
        }
    }
}

impl Open {
    fn new() -> Self {
        Self {
            state: State::Idle,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            within: Within {
                is_set: false,
                low: Bound::Unbounded,
                high: Bound::Unbounded,
            },
            passing: None,
            index: Arc::new(AtomicUsize::new(0)),
            size: 0,
        }
    }

    /// What stands nowhere else.
    pub(super) fn range(&self) -> Option<Range<'_>> {
        (self.state == State::Range).then(|| Range {
            low: borrowed(&self.low),
            high: borrowed(&self.high),
            aspect: Aspect::Entry,
        })
    }

    /// Forgets what is read.
    pub(super) fn clear(&mut self) {
        self.state = State::Idle;
        self.low = Bound::Unbounded;
        self.high = Bound::Unbounded;
        self.size = 0;
    }

    fn measure(&self) -> usize {
        let key = |bound: &Bound<OwnedKey>| match bound {
            Bound::Included(OwnedKey::Bytes(key)) | Bound::Excluded(OwnedKey::Bytes(key)) => {
                key.len()
            }
            _ => 0,
        };
        size_of::<Self>() + key(&self.low) + key(&self.high)
    }
}

fn borrowed(bound: &Bound<OwnedKey>) -> Bound<Key<'_>> {
    bound.as_ref().map(OwnedKey::as_key)
}

/// Overwrites a bound, in its memory.
fn assign(bound: &mut Bound<OwnedKey>, to: Bound<Key<'_>>) {
    let mut memory = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(OwnedKey::Bytes(memory)) | Bound::Excluded(OwnedKey::Bytes(memory)) => {
            memory
        }
        _ => Vec::new(),
    };
    *bound = to.map(|key| match key {
        Key::Int(key) => OwnedKey::Int(key),
        Key::Bytes(key) => {
            memory.clear();
            memory.extend_from_slice(key);
            OwnedKey::Bytes(memory)
        }
    });
}

impl TreeReads {
    /// A place for a cursor.
    fn take_place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.open.push(Open::new());
            self.open.len() - 1
        })
    }

    /// The cursor at this place is gone.
    fn give_place(&mut self, place: usize) {
        debug_assert!(self.open[place].passing.is_none(), "it has left its leaf");
        self.close(place);
        self.open[place].within.is_set = false;
        self.free.push(place);
    }

    /// What the cursor at this place has read joins what others read.
    fn close(&mut self, place: usize) {
        let open = &mut self.open[place];
        if let Some(range) = open.range()
            && !self.closed.range(range)
        {
            return self.take_whole();
        }
        self.open_size -= std::mem::take(&mut open.size);
        open.state = State::Idle;
    }

    /// What the cursor at this place has passed of a leaf is read.
    fn catch_up(&mut self, place: usize, pool: &Pool) {
        let open = &self.open[place];
        let Some((leaf, forward)) = open.passing else {
            return;
        };
        let index = open.index.load(Relaxed);
        let tell = |key: Key<'_>| self.step(place, forward, Bound::Included(key));
        // SAFETY: while its place names a leaf the cursor is on it. It takes it from the
        // place before it leaves, under the lock that we hold. It tells of entries that
        // are there, and of no leaf with long keys.
        unsafe { leaf.with_key(pool, index, tell) };
    }

    /// What the cursor at this place reads is what stands there.
    fn open(&mut self, place: usize) {
        let open = &mut self.open[place];
        open.state = State::Range;
        open.size = open.measure();
        self.open_size += open.size;
    }

    fn seek(&mut self, place: usize, low: Bound<Key<'_>>, high: Bound<Key<'_>>) {
        self.close(place);
        if self.whole {
            return;
        }
        let open = &mut self.open[place];
        let low = open.within.nearer(low, false);
        let high = open.within.nearer(high, true);
        assign(&mut open.low, low);
        assign(&mut open.high, high);
        let aspect = Aspect::Entry;
        match (Range { low, high, aspect }).as_point() {
            Some(key) if self.closed.point(key, aspect) => open.state = State::Point,
            Some(_) => self.take_whole(),
            None => self.open(place),
        }
    }

    fn step(&mut self, place: usize, forward: bool, reached: Bound<Key<'_>>) {
        match self.open[place].state {
            State::Idle => return,
            State::Point => self.open(place),
            State::Range => {}
        }
        let open = &mut self.open[place];
        let reached = open.within.nearer(reached, forward);
        let (bound, beyond) = match forward {
            true => (&mut open.high, Ordering::Greater),
            false => (&mut open.low, Ordering::Less),
        };
        if extends(borrowed(bound), reached, beyond) {
            assign(bound, reached);
        }
    }
}

impl Reads {
    /// A cursor was opened: its observer records ranges here.
    pub(crate) fn observer(reads: &Arc<Mutex<Reads>>, tree: &Tree) -> Observer {
        let mut own = reads.lock();
        let tree = own.of(tree);
        let place = own.trees[tree].take_place();
        Observer {
            reads: Arc::clone(reads),
            tree,
            place,
            index: Arc::clone(&own.trees[tree].open[place].index),
            passing: None,
        }
    }

    /// What was read of each tree, all that cursors have passed so far included.
    pub(crate) fn trees(&mut self, pool: &Pool) -> impl Iterator<Item = &TreeReads> {
        for tree in self.trees.iter_mut() {
            (0..tree.open.len()).for_each(|place| tree.catch_up(place, pool));
        }
        self.trees.iter()
    }
}

impl Observer {
    pub(crate) fn narrow(&mut self, low: Bound<Key<'_>>, high: Bound<Key<'_>>) {
        let within = &mut self.reads.lock().trees[self.tree].open[self.place].within;
        within.is_set = true;
        assign(&mut within.low, low);
        assign(&mut within.high, high);
    }

    /// The cursor was put somewhere and found `at`, or nothing.
    pub(crate) fn seek(&mut self, to: Seek<'_>, at: Option<Key<'_>>) {
        let found = at.map_or(Bound::Unbounded, Bound::Included);
        let (low, high) = match to {
            Seek::First => (Bound::Unbounded, found),
            Seek::AtLeast(key) => (Bound::Included(key), found),
            Seek::After(key) => (Bound::Excluded(key), found),
            Seek::Last => (found, Bound::Unbounded),
            Seek::AtMost(key) => (found, Bound::Included(key)),
            Seek::Before(key) => (found, Bound::Excluded(key)),
        };
        let mut reads = self.reads.lock();
        reads.trees[self.tree].seek(self.place, low, high);
        reads.weigh(self.tree);
    }

    /// The cursor moved on and found `at`, or the end: where a leaf is named that entry of
    /// it, within which it then [`passes`](Self::passes) others.
    pub(crate) fn step(&mut self, forward: bool, at: Option<Key<'_>>, leaf: Option<(Leaf, usize)>) {
        let reached = at.map_or(Bound::Unbounded, Bound::Included);
        let mut reads = self.reads.lock();
        let tree = &mut reads.trees[self.tree];
        tree.step(self.place, forward, reached);
        if let Some((leaf, index)) = leaf {
            self.index.store(index, Relaxed);
            tree.open[self.place].passing = Some((leaf, forward));
            self.passing = Some(forward);
        }
    }

    /// The cursor moved on within its leaf to this entry: false where that must be told by
    /// a [`step`](Self::step).
    #[inline]
    pub(crate) fn passes(&self, forward: bool, index: usize) -> bool {
        let passes = self.passing == Some(forward);
        if passes {
            self.index.store(index, Relaxed);
        }
        passes
    }

    /// The cursor is about to do something else than to go on within its leaf.
    #[inline]
    pub(crate) fn catch_up(&mut self, pool: &Pool) {
        if self.passing.take().is_some() {
            let mut reads = self.reads.lock();
            let tree = &mut reads.trees[self.tree];
            tree.catch_up(self.place, pool);
            tree.open[self.place].passing = None;
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let mut reads = self.reads.lock();
        reads.trees[self.tree].give_place(self.place);
        reads.weigh(self.tree);
    }
}

/// Whether `reached` lies beyond `bound` in this direction.
fn extends(bound: Bound<Key<'_>>, reached: Bound<Key<'_>>, beyond: Ordering) -> bool {
    match (bound, reached) {
        (Bound::Unbounded, _) => false,
        (_, Bound::Unbounded) => true,
        // A cursor that was put beside a key and turns round comes to that key.
        (Bound::Excluded(bound), Bound::Included(reached)) if reached == bound => true,
        (
            Bound::Included(bound) | Bound::Excluded(bound),
            Bound::Included(reached) | Bound::Excluded(reached),
        ) => reached.cmp(&bound) == beyond,
    }
}
