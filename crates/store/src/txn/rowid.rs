//! Numbers for rows inserted without a key.
//!
//! A lone writer gets what SQLite gives: the largest key plus one. A writer that
//! overlaps with others must not be given what one of them was given, though it
//! does not see it: each transaction that was given a number holds a *claim*
//! until it ends, and while there are claims the highest number given counts as
//! taken. When the last claim ends the tree's contents alone decide again, so a
//! rolled-back allocation is given back.
//!
//! Who overlaps and inserts many is given more and more numbers at once, up to
//! [`AT_ONCE_MAX`], and keeps what it does not use until it ends. So its rows lie
//! together: one by one, those of several transactions would be in all the same leaves,
//! and each would have to insert between the others' when it commits.
//!
//! Who is alone, and was given [`FEW`], is given as many again at once, so that it need
//! not ask for each. It uses them only while each is its largest key plus one and nobody
//! else has published in the tree: what it sees are the same numbers as one by one.

use super::{TxnContext, TxnState, no_slot};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Key;
use crate::primitives::Mutex;
use crate::tree::{EMPTY, Tree, walk};
use std::ops::{Range, RangeInclusive};

/// Numbers that are given at once, at most: rows of some leaves.
const AT_ONCE_MAX: i64 = 256;
/// So many are given one by one to who is alone: who begins meanwhile sees where they end.
const FEW: i64 = 8;
/// Of the numbers there are still, one in so many may be given beside those that are
/// wanted: what is not used of the last ones would be missing to others.
const SHARE_AT_ONCE: i64 = 4096;

#[derive(Default)]
struct Claims {
    highest: i64,
    claims: u32,
}

/// What a transaction was given of a tree's numbers.
pub(super) struct Claim {
    pub(super) tree: Tree,
    /// Those it did not use.
    left: Range<i64>,
    /// How many it was given last.
    at_once: i64,
    /// How many it was given while it was alone.
    alone: i64,
    /// The tree's newest version when it was given those left, alone.
    seen: Option<u64>,
}

/// What is given of a tree's numbers: the first, how many more after it, and whether
/// nobody else had a claim.
type Given = (i64, i64, bool);

/// How many are wanted, and how many more than one may be given beside others, or alone.
#[derive(Clone, Copy)]
struct Wish {
    want: i64,
    beside: i64,
    alone: i64,
}

impl Claim {
    fn new(tree: &Tree) -> Self {
        Self {
            tree: tree.clone(),
            left: 0..0,
            at_once: 1,
            alone: 0,
            seen: None,
        }
    }

    /// What it is to be given next.
    fn wish(&self, want: i64) -> Wish {
        let alone = match self.alone < FEW {
            true => 0,
            false => self.alone.min(AT_ONCE_MAX) - 1,
        };
        Wish {
            want,
            beside: (2 * self.at_once).min(AT_ONCE_MAX) - 1,
            alone,
        }
    }

    /// It was given these, of a tree whose newest version was `seen`; those that it uses
    /// now, as many as it wants.
    fn take(&mut self, given: Given, want: i64, seen: u64) -> RangeInclusive<i64> {
        let (next, more, is_alone) = given;
        let last = next + more.min(want - 1);
        // The last number of all is not worth an end behind it.
        self.left = last.saturating_add(1)..(next + more).saturating_add(1);
        self.seen = is_alone.then_some(seen);
        match is_alone {
            true => self.alone = self.alone.saturating_add(more + 1),
            false => self.at_once = (more + 1).min(AT_ONCE_MAX),
        }
        next..=last
    }

    /// Of those left above `largest`, which it has, up to as many as it wants.
    #[inline]
    fn use_left(&mut self, largest: Option<i64>, want: i64) -> Option<RangeInclusive<i64>> {
        let Range { start, end } = self.left;
        if start >= end || largest.is_some_and(|largest| largest >= start) {
            return None;
        }
        if let Some(seen) = self.seen
            && (largest != start.checked_sub(1) || self.tree.0.head().seq != seen)
        {
            return None;
        }
        let last = start.saturating_add(want - 1).min(end - 1);
        self.left.start = last + 1;
        Some(start..=last)
    }
}

/// The claims on one tree.
#[derive(Default)]
pub(crate) struct Rowids(Mutex<Claims>);

impl Rowids {
    /// The next number above `largest` (the largest key the caller sees, if any)
    /// and above those given to others, and how many more after it: as many as are
    /// wanted, or as the wish says but near the end, and no more than there are;
    /// `first_claim` if the caller holds no claim yet. `None` when there is none.
    fn allocate(&self, largest: Option<i64>, first_claim: bool, wish: Wish) -> Option<Given> {
        let mut claims = self.0.lock();
        let mut next = match largest {
            None => 1,
            Some(largest) => largest.checked_add(1)?,
        };
        let others = claims.claims - u32::from(!first_claim && claims.claims > 0);
        if others > 0 {
            next = next.max(claims.highest.checked_add(1)?);
        }
        let room = i64::MAX.saturating_sub(next);
        let more = if others > 0 { wish.beside } else { wish.alone };
        let more = more.min(room / SHARE_AT_ONCE).max(wish.want - 1).min(room);
        claims.highest = next + more;
        claims.claims = others + 1;
        Some((next, more, others == 0))
    }

    /// A transaction that was given numbers ended.
    pub(crate) fn release(&self) {
        let mut claims = self.0.lock();
        claims.claims = claims.claims.saturating_sub(1);
    }
}

impl TxnContext {
    /// A key for a new row of a tree of integers: the largest plus one, and
    /// never one that an overlapping transaction was given.
    pub fn allocate_rowid(&mut self, tree: &Tree) -> Result<i64> {
        self.allocate_rowid_above(tree, None)
    }

    /// As [`allocate_rowid`](Self::allocate_rowid), and above `floor`.
    pub fn allocate_rowid_above(&mut self, tree: &Tree, floor: Option<i64>) -> Result<i64> {
        let given = self.allocate(tree, floor, 1)?;
        Ok(*given.start())
    }

    /// As [`allocate_rowid`](Self::allocate_rowid), for as many new rows as are wanted, or
    /// fewer, but one at least. Those above the last one that gets a row may be given
    /// again.
    pub fn allocate_rowids(&mut self, tree: &Tree, want: usize) -> Result<RangeInclusive<i64>> {
        let want = i64::try_from(want.max(1)).unwrap_or(i64::MAX);
        self.allocate(tree, None, want)
    }

    fn allocate(
        &mut self,
        tree: &Tree,
        floor: Option<i64>,
        want: i64,
    ) -> Result<RangeInclusive<i64>> {
        self.check(tree, Key::Int(0))?;
        self.write_put_off()?;
        let at = self.fork(tree)?;
        let mut largest = match self.forks[at].max_key {
            Some(key) => Some(key),
            None => {
                let largest = self.largest_key(tree)?;
                self.forks[at].max_key = largest;
                largest
            }
        };
        largest = largest.max(floor);
        let claimed = |claim: &Claim| claim.tree.id() == tree.id();
        let mut claim = self.claims.iter().position(claimed);
        if let Some(claim) = claim.map(|at| &mut self.claims[at])
            && let Some(given) = claim.use_left(largest, want)
        {
            return Ok(given);
        }
        // Nobody else publishes in a tree that is locked.
        let may_move = self.state == TxnState::Optimistic;
        let mut seen = self.forks[at].base.seq;
        let allocated = loop {
            if may_move {
                let head = tree.0.head().seq;
                if head != seen {
                    largest = largest.max(self.largest_at_head(tree)?);
                }
                seen = head;
            }
            let first = Wish {
                want,
                beside: 0,
                alone: 0,
            };
            let wish = claim.map_or(first, |at| self.claims[at].wish(want));
            let rowids = &tree.0.rowids;
            let allocated = rowids.allocate(largest, claim.is_none(), wish);
            let allocated = allocated.map(|given| {
                let at = *claim.get_or_insert_with(|| {
                    self.claims.push(Claim::new(tree));
                    self.claims.len() - 1
                });
                self.claims[at].take(given, want, seen)
            });
            // One that published in between has let go of its claim, maybe
            // before ours was asked for: its rows decide then.
            if !may_move || tree.0.head().seq == seen {
                break allocated;
            }
        };
        allocated.ok_or_else(|| {
            Error::new(
                ErrorKind::Full,
                "database or disk is full: the largest row number is taken",
            )
        })
    }

    /// The largest integer key as this transaction sees it, which it does not
    /// come to depend on: good for what only must not be too small.
    pub fn largest_rowid(&mut self, tree: &Tree) -> Result<Option<i64>> {
        self.check(tree, Key::Int(0))?;
        self.largest_key(tree)
    }

    /// The largest integer key as this transaction sees it.
    fn largest_key(&mut self, tree: &Tree) -> Result<Option<i64>> {
        self.write_put_off()?;
        let at = self.fork(tree)?;
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let fork = &mut self.forks[at];
        walk::last_int_key(&self.core.pool, slot, tree.id().0, &mut fork.root)
    }

    fn largest_at_head(&mut self, tree: &Tree) -> Result<Option<i64>> {
        let core = &*self.core;
        let (slot, seq) = core.pool.readers.pin(|| core.head_to_pin())?;
        let mut root = tree.0.versions.at(seq).unwrap_or(EMPTY);
        let largest = walk::last_int_key(&core.pool, &slot, tree.id().0, &mut root.node);
        core.pool.readers.release(&slot);
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isolation, KeyKind, Options, Store};

    /// The next number and how many more, of one that overlaps and wants so many, and may be
    /// given so many more.
    fn given(
        rowids: &Rowids,
        largest: Option<i64>,
        first: bool,
        (want, beside): (i64, i64),
    ) -> Option<(i64, i64)> {
        let wish = Wish {
            want,
            beside,
            alone: 0,
        };
        let given = rowids.allocate(largest, first, wish);
        given.map(|(next, more, _)| (next, more))
    }

    #[test]
    fn a_lone_writer_sees_the_largest_plus_one() {
        let rowids = Rowids::default();
        let lone = |largest, first| given(&rowids, largest, first, (1, 7));
        assert_eq!(lone(None, true), Some((1, 0)));
        assert_eq!(lone(Some(1), false), Some((2, 0)));
        assert_eq!(lone(Some(1), false), Some((2, 0)), "not inserted");
        rowids.release();
        assert_eq!(lone(Some(1), true), Some((2, 0)), "given back");
        rowids.release();
        assert_eq!(lone(Some(-5), true), Some((-4, 0)));
        rowids.release();
        assert_eq!(lone(Some(i64::MAX), true), None);
    }

    #[test]
    fn overlapping_writers_get_different_numbers() {
        let rowids = Rowids::default();
        let next = |largest, first, wish| given(&rowids, largest, first, wish);
        assert_eq!(next(Some(10), true, (1, 0)), Some((11, 0)));
        assert_eq!(next(Some(10), true, (1, 0)), Some((12, 0)));
        rowids.release();
        assert_eq!(next(Some(12), false, (1, 0)), Some((13, 0)), "12 is there");
        rowids.release();
        assert_eq!(next(Some(13), true, (1, 0)), Some((14, 0)));
        assert_eq!(next(Some(13), true, (1, 3)), Some((15, 3)));
        assert_eq!(next(Some(14), false, (1, 1)), Some((19, 1)));
        let highest = i64::MAX;
        let last = next(Some(highest - 3), false, (9, 7));
        assert_eq!(last, Some((highest - 2, 2)));
        assert_eq!(next(Some(highest - 3), false, (1, 7)), None);
    }

    /// Who is alone asks seldom, and sees what SQLite gives all the same: after rows went
    /// again, after a key that was chosen, and after others came and went.
    #[test]
    fn who_is_alone_is_given_many_and_sees_the_largest_plus_one() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let [mut own, mut other] = [store.txn(), store.txn()];
        own.begin(Isolation::Serializable).expect("begins");
        let mut largest = 0;
        for step in 0..2_000 {
            let next = own.allocate_rowid(&tree).expect("a number");
            assert_eq!(next, largest + 1, "step {step}");
            own.put(&tree, Key::Int(next), b"").expect("a put");
            largest = next;
            if step % 97 == 96 {
                own.delete(&tree, Key::Int(largest)).expect("a delete");
                largest -= 1;
            }
            if step % 331 == 330 {
                largest += 40;
                own.put(&tree, Key::Int(largest), b"").expect("a put");
            }
        }
        other.begin(Isolation::Serializable).expect("begins");
        let beside = other.allocate_rowid(&tree).expect("a number");
        assert!(beside > largest && beside <= largest + 1 + AT_ONCE_MAX);
        other.put(&tree, Key::Int(beside), b"").expect("a put");
        other.commit().expect("commits");
        // The numbers that it was given end here: somebody has published in between.
        let next = own.allocate_rowid(&tree).expect("a number");
        assert!(next > beside);
        own.put(&tree, Key::Int(next), b"").expect("a put");
        own.commit().expect("commits");
        own.begin(Isolation::Serializable).expect("begins");
        assert_eq!(own.allocate_rowid(&tree).expect("a number"), next + 1);
        own.rollback();
        other.begin(Isolation::Serializable).expect("begins");
        assert_eq!(other.allocate_rowid(&tree).expect("a number"), next + 1);
    }

    /// How many were given is counted, and those were as many as there are, twice.
    #[test]
    fn as_many_as_there_are_may_be_wanted_again() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        for _ in 0..3 {
            let given = txn.allocate_rowids(&tree, usize::MAX).expect("numbers");
            assert_eq!(given, 1..=i64::MAX);
        }
    }

    /// What was given in advance was no largest key plus one any more where another
    /// transaction had put a row of its own choice there, and cost the commit.
    #[test]
    fn numbers_given_in_advance_are_dropped_for_a_row_that_another_put_there() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let [mut own, mut other] = [store.txn(), store.txn()];
        own.begin(Isolation::Serializable).expect("begins");
        for at in 1..=20 {
            assert_eq!(own.allocate_rowid(&tree).expect("a number"), at);
            own.put(&tree, Key::Int(at), b"").expect("a put");
        }
        other.begin(Isolation::Serializable).expect("begins");
        other.put(&tree, Key::Int(22), b"chosen").expect("a put");
        other.commit().expect("commits");
        for at in 23..40 {
            assert_eq!(own.allocate_rowid(&tree).expect("a number"), at);
            own.put(&tree, Key::Int(at), b"").expect("a put");
        }
        own.commit().expect("no key was chosen twice");
    }

    /// Of two that overlapped near the largest number, one kept what it did not use, and
    /// the other was told that there was none left.
    #[test]
    fn the_last_numbers_are_all_given() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txns = [store.txn(), store.txn()];
        txns[0].begin_statement(&[&tree]).expect("begins");
        let first = Key::Int(i64::MAX - 400);
        txns[0].put(&tree, first, b"").expect("a put");
        txns[0].commit().expect("commits");
        for txn in &mut txns {
            txn.begin(Isolation::Serializable).expect("begins");
        }
        let mut given = Vec::new();
        for at in 0..400 {
            let next = txns[at % 2].allocate_rowid(&tree).expect("a number");
            txns[at % 2].put(&tree, Key::Int(next), b"").expect("a put");
            given.push(next);
        }
        given.sort_unstable();
        assert!(given.iter().copied().eq(i64::MAX - 399..=i64::MAX));
        let error = txns[1].allocate_rowid(&tree).expect_err("all are given");
        assert_eq!(error.kind(), ErrorKind::Full);
    }

    /// How many numbers there are above a negative one is more than fits its type.
    #[test]
    fn overlapping_writers_get_numbers_above_negative_ones_too() {
        let rowids = Rowids::default();
        let next = |largest, first, wish| given(&rowids, Some(largest), first, wish);
        assert_eq!(next(i64::MIN, true, (1, 0)), Some((i64::MIN + 1, 0)));
        assert_eq!(next(-8, true, (1, 3)), Some((-7, 3)));
        assert_eq!(next(-8, true, (6, 3)), Some((-3, 5)));
    }

    /// Two that insert by turns were given numbers by turns, so that all the leaves of one
    /// were leaves of the other too.
    #[test]
    fn who_overlaps_and_inserts_many_gets_numbers_side_by_side() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txns = [store.txn(), store.txn()];
        let mut given = [Vec::new(), Vec::new()];
        for txn in &mut txns {
            txn.begin(Isolation::Serializable).expect("begins");
        }
        for _ in 0..1_000 {
            for (txn, given) in txns.iter_mut().zip(&mut given) {
                let next = txn.allocate_rowid(&tree).expect("a number");
                assert!(given.last().is_none_or(|last| *last < next));
                txn.put(&tree, Key::Int(next), b"").expect("a put");
                given.push(next);
            }
        }
        for (own, other) in [(0, 1), (1, 0)] {
            assert!(!given[own].iter().any(|next| given[other].contains(next)));
            let jumps = given[own].windows(2).filter(|pair| pair[0] + 1 < pair[1]);
            assert!(jumps.count() < 15, "{:?}", given[own]);
        }
        let [mut first, mut second] = txns;
        first.commit().expect("commits");
        second.commit().expect("commits");
        // Alone again: no number is left out.
        let largest = given.iter().flatten().max().expect("some");
        first.begin(Isolation::Serializable).expect("begins");
        for next in largest + 1..largest + 100 {
            assert_eq!(first.allocate_rowid(&tree).expect("a number"), next);
            first.put(&tree, Key::Int(next), b"").expect("a put");
        }
    }

    /// A key that somebody chose may lie among the numbers that were given.
    #[test]
    fn numbers_go_on_above_a_key_that_was_chosen() {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let [mut other, mut own] = [store.txn(), store.txn()];
        other.begin(Isolation::Serializable).expect("begins");
        other.allocate_rowid(&tree).expect("a number");
        own.begin(Isolation::Serializable).expect("begins");
        let mut last = 0;
        for step in 1..100 {
            let next = own.allocate_rowid(&tree).expect("a number");
            assert!(next > last);
            last = next + step % 7;
            own.put(&tree, Key::Int(last), b"").expect("a put");
        }
        let put = own.put(&tree, Key::Int(i64::MAX), b"").expect("a put");
        assert!(!put);
        let full = own.allocate_rowid(&tree).expect_err("no number is left");
        assert_eq!(full.kind(), ErrorKind::Full);
    }
}
