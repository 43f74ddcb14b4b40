//! Ranges of keys, one behind the other in few bytes: what was looked up and passed, in the
//! order in which it was.
//!
//! A point takes its key and [`SPAN`] bytes, and no allocation of its own. Integers are
//! kept so that their bytes have their order.

use super::{Range, by_end, by_start};
use crate::node::Key;
use crate::tree::KeyKind;
use crate::tree::compare::Aspect;
use std::cmp::Ordering;
use std::ops::Bound;

/// See the module.
pub(super) struct Spans {
    is_int: bool,
    /// The keys: that of a point, or what tells how long the lower one is, and both.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// The range that integers in a row made last.
    run: Option<usize>,
}

#[derive(Clone, Copy)]
struct Span {
    /// Where its keys end.
    end: u32,
    low: Edge,
    high: Edge,
    aspect: Aspect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Unbounded,
    Included,
    Excluded,
    /// The key at the other end, and that alone.
    Same,
}

/// A range by its keys' bytes.
#[derive(Clone, Copy)]
struct Raw<'s> {
    low: Bound<&'s [u8]>,
    high: Bound<&'s [u8]>,
    aspect: Aspect,
}

/// Bytes that a range takes beside its keys.
pub(super) const SPAN: usize = size_of::<Span>();
/// Bytes of an integer, and of the length of a lower key.
const INT: usize = size_of::<i64>();
const LENGTH: usize = size_of::<u32>();
/// Makes integers of either sign follow each other as their bytes do.
const SIGN: u64 = 1 << 63;

impl Edge {
    fn of(bound: Bound<&[u8]>) -> (Self, &[u8]) {
        match bound {
            Bound::Unbounded => (Edge::Unbounded, &[]),
            Bound::Included(key) => (Edge::Included, key),
            Bound::Excluded(key) => (Edge::Excluded, key),
        }
    }

    fn at(self, key: &[u8]) -> Bound<&[u8]> {
        match self {
            Edge::Unbounded => Bound::Unbounded,
            Edge::Included | Edge::Same => Bound::Included(key),
            Edge::Excluded => Bound::Excluded(key),
        }
    }
}

fn int_bytes(key: i64) -> [u8; INT] {
    (key as u64 ^ SIGN).to_be_bytes()
}

/// As [`int_bytes`] gave them.
fn int_of(bytes: &[u8]) -> i64 {
    let word = bytes
        .first_chunk()
        .copied()
        .map_or(SIGN, u64::from_be_bytes);
    (word ^ SIGN) as i64
}

impl<'s> Raw<'s> {
    /// Whether `next`, which does not begin before this range, leaves no key
    /// between the two.
    fn meets(&self, next: &Raw<'_>, is_int: bool) -> bool {
        match (self.high, next.low) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
            (Bound::Included(high), Bound::Included(low)) if is_int => {
                int_of(low) <= int_of(high).saturating_add(1)
            }
            (Bound::Excluded(high), Bound::Excluded(low)) => low < high,
            (
                Bound::Included(high) | Bound::Excluded(high),
                Bound::Included(low) | Bound::Excluded(low),
            ) => low <= high,
        }
    }

    fn as_point(&self) -> Option<&'s [u8]> {
        match (self.low, self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }
}

impl Spans {
    pub(super) fn new(kind: KeyKind) -> Self {
        Self {
            is_int: kind == KeyKind::Int,
            bytes: Vec::new(),
            spans: Vec::new(),
            run: None,
        }
    }

    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.run = None;
    }

    /// Bytes that they take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.spans.len() * SPAN
    }

    /// Adds a key, unless it is there already; next to the last integers it makes one range
    /// with them. False: there is no room, since where keys end has 32 bits.
    #[inline]
    pub(super) fn point(&mut self, key: Key<'_>, aspect: Aspect) -> bool {
        let (int, bytes);
        let key = match key {
            Key::Int(key) => {
                if self.extend_run(key, aspect) {
                    return true;
                }
                int = int_bytes(key);
                &int[..]
            }
            Key::Bytes(key) => {
                bytes = key;
                bytes
            }
        };
        if let Some(last) = self.spans.last().copied()
            && last.high == Edge::Same
        {
            let known = &self.bytes[self.start(self.spans.len() - 1)..];
            if known == key {
                let aspect = aspect.max(last.aspect);
                self.spans
                    .last_mut()
                    .into_iter()
                    .for_each(|last| last.aspect = aspect);
                return true;
            }
            if self.is_int && aspect == last.aspect {
                let (known, key) = (int_of(known), int_of(key));
                if known.checked_add(1) == Some(key) || known.checked_sub(1) == Some(key) {
                    self.pop();
                    self.run = Some(self.spans.len());
                    let (low, high) = (int_bytes(known.min(key)), int_bytes(known.max(key)));
                    return self.push(Raw {
                        low: Bound::Included(&low),
                        high: Bound::Included(&high),
                        aspect,
                    });
                }
            }
        }
        self.end(Edge::Included, Edge::Same, aspect, &[key])
    }

    /// Adds a range. False: there is no room.
    pub(super) fn range(&mut self, range: Range<'_>) -> bool {
        if let Some(key) = range.as_point() {
            return self.point(key, range.aspect);
        }
        let (mut low_int, mut high_int) = ([0; INT], [0; INT]);
        let low = range.low.map(|key| raw(key, &mut low_int));
        let high = range.high.map(|key| raw(key, &mut high_int));
        let aspect = range.aspect;
        self.push(Raw { low, high, aspect })
    }

    fn push(&mut self, range: Raw<'_>) -> bool {
        let aspect = range.aspect;
        if let Some(key) = range.as_point() {
            return self.end(Edge::Included, Edge::Same, aspect, &[key]);
        }
        let (low, low_key) = Edge::of(range.low);
        let (high, high_key) = Edge::of(range.high);
        let Ok(length) = u32::try_from(low_key.len()) else {
            return false;
        };
        let keys = [&length.to_le_bytes()[..], low_key, high_key];
        self.end(low, high, aspect, &keys)
    }

    #[inline]
    fn end(&mut self, low: Edge, high: Edge, aspect: Aspect, keys: &[&[u8]]) -> bool {
        let len: usize = keys.iter().map(|key| key.len()).sum();
        let Ok(end) = u32::try_from(self.bytes.len() + len) else {
            return false;
        };
        keys.iter()
            .for_each(|key| self.bytes.extend_from_slice(key));
        self.spans.push(Span {
            end,
            low,
            high,
            aspect,
        });
        true
    }

    fn pop(&mut self) {
        if let Some(last) = self.spans.len().checked_sub(1) {
            self.bytes.truncate(self.start(last));
            self.spans.pop();
        }
    }

    /// Adds an integer to the last integers in a row if it is there already or next to them.
    #[inline]
    fn extend_run(&mut self, key: i64, aspect: Aspect) -> bool {
        let Some(run) = self.run else { return false };
        let known = self.spans[run].aspect;
        let low_at = self.start(run) + LENGTH;
        let high_at = low_at + INT;
        let low = int_of(&self.bytes[low_at..]);
        let high = int_of(&self.bytes[high_at..]);
        if aspect <= known && low <= key && key <= high {
            return true;
        }
        if aspect != known {
            return false;
        }
        let at = match (high.checked_add(1), low.checked_sub(1)) {
            (Some(next), _) if next == key => high_at,
            (_, Some(next)) if next == key => low_at,
            _ => return false,
        };
        self.bytes[at..at + INT].copy_from_slice(&int_bytes(key));
        true
    }

    #[inline]
    fn start(&self, at: usize) -> usize {
        let before = at.checked_sub(1).map(|before| self.spans[before].end);
        before.unwrap_or(0) as usize
    }

    fn get(&self, at: usize) -> Raw<'_> {
        let span = self.spans[at];
        let keys = &self.bytes[self.start(at)..span.end as usize];
        let (low, high) = match span.high {
            Edge::Same => (keys, keys),
            _ => {
                let (length, keys) = keys.split_first_chunk().unwrap_or((&[0; LENGTH], keys));
                keys.split_at(u32::from_le_bytes(*length) as usize)
            }
        };
        Raw {
            low: span.low.at(low),
            high: span.high.at(high),
            aspect: span.aspect,
        }
    }

    /// Their numbers in the order of their beginnings; of the same one, what says more comes
    /// first.
    fn order(&self) -> Vec<u32> {
        let low = |at: usize| Edge::of(self.get(at).low).1;
        let mut same = match self.spans.is_empty() {
            true => &[],
            false => low(0),
        };
        for at in 1..self.spans.len() {
            let shared = same.iter().zip(low(at)).take_while(|(a, b)| a == b);
            same = &same[..shared.count()];
        }
        // Mostly few bytes behind those that all have tell which is the lower one.
        let head = |at: usize| {
            let mut head = [0; 8];
            let key = low(at).get(same.len()..).unwrap_or_default();
            head.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(head)
        };
        let mut all: Vec<_> = (0..self.spans.len())
            .map(|at| (head(at), at as u32))
            .collect();
        all.sort_by(|(x, a), (y, b)| {
            x.cmp(y).then_with(|| {
                let (a, b) = (self.get(*a as usize), self.get(*b as usize));
                by_start(&a.low, &b.low).then(b.aspect.cmp(&a.aspect))
            })
        });
        all.into_iter().map(|(_, at)| at).collect()
    }

    /// Calls `visit` for each, in the order of their beginnings, until one fails.
    pub(super) fn try_for_each<E>(
        &self,
        mut visit: impl FnMut(Range<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut before: Option<Raw<'_>> = None;
        for at in self.order() {
            let range = self.get(at as usize);
            let point = range.as_point();
            if point.is_none() || before.and_then(|it| it.as_point()) != point {
                visit(self.to_range(range))?;
            }
            before = Some(range);
        }
        Ok(())
    }

    fn to_range<'s>(&self, range: Raw<'s>) -> Range<'s> {
        let key = |bytes: &'s [u8]| match self.is_int {
            true => Key::Int(int_of(bytes)),
            false => Key::Bytes(bytes),
        };
        Range {
            low: range.low.map(key),
            high: range.high.map(key),
            aspect: range.aspect,
        }
    }

    /// Joins those that overlap, and where they take more than `limit` bytes then,
    /// neighbours, two by two.
    pub(super) fn coarsen(&mut self, limit: usize) {
        let order = self.order();
        let is_int = self.is_int;
        *self = self.joined(&order, |last, next, _| last.meets(next, is_int));
        while self.size() > limit && self.spans.len() > 1 {
            let order: Vec<u32> = (0..self.spans.len() as u32).collect();
            *self = self.joined(&order, |_, _, at| at % 2 == 1);
        }
        let last = self.spans.len().checked_sub(1);
        self.run = last.filter(|last| {
            let Span { low, high, .. } = self.spans[*last];
            is_int && low == Edge::Included && high == Edge::Included
        });
    }

    /// Each, in this order of their beginnings, joined to the one before it where `wanted`
    /// says so of the two and of its place.
    fn joined(&self, order: &[u32], wanted: impl Fn(&Raw<'_>, &Raw<'_>, usize) -> bool) -> Self {
        let mut joined = Self {
            is_int: self.is_int,
            bytes: Vec::with_capacity(self.bytes.len()),
            spans: Vec::with_capacity(self.spans.len()),
            run: None,
        };
        let mut last: Option<Raw<'_>> = None;
        for (at, number) in order.iter().enumerate() {
            let range = self.get(*number as usize);
            match &mut last {
                Some(last) if wanted(last, &range, at) => {
                    if by_end(&last.high, &range.high) == Ordering::Less {
                        last.high = range.high;
                    }
                    last.aspect = last.aspect.max(range.aspect);
                }
                _ => {
                    if let Some(last) = last.replace(range) {
                        joined.push(last);
                    }
                }
            }
        }
        // There is room: what is joined takes no more than what it was made of.
        if let Some(last) = last {
            joined.push(last);
        }
        joined
    }
}

fn raw<'k>(key: Key<'k>, int: &'k mut [u8; INT]) -> &'k [u8] {
    match key {
        Key::Int(key) => {
            *int = int_bytes(key);
            int
        }
        Key::Bytes(key) => key,
    }
}
