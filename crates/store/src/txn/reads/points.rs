//! Keys that were looked up one by one, in the order in which they were.

use super::Range;
use crate::node::{Key, OwnedKey};
use crate::tree::compare::Aspect;

/// See the module.
#[derive(Default)]
pub(super) struct Points {
    /// The keys, one behind the other.
    bytes: Vec<u8>,
    points: Vec<Point>,
}

struct Point {
    /// Where its key ends.
    end: u32,
    is_int: bool,
    aspect: Aspect,
}

/// Bytes that a point takes beside its key.
const POINT: usize = size_of::<Point>();

impl Points {
    /// Adds one; how many bytes it takes.
    #[inline]
    pub(super) fn push(&mut self, key: Key<'_>, aspect: Aspect) -> usize {
        let from = self.bytes.len();
        match key {
            Key::Int(key) => self.bytes.extend_from_slice(&key.to_le_bytes()),
            Key::Bytes(key) => self.bytes.extend_from_slice(key),
        }
        self.points.push(Point {
            end: self.bytes.len() as u32,
            is_int: matches!(key, Key::Int(_)),
            aspect,
        });
        POINT + self.bytes.len() - from
    }

    /// Whether there is room for one more: what is noted of where a key ends has 32 bits.
    #[inline]
    pub(super) fn has_room(&self, key: Key<'_>) -> bool {
        let len = match key {
            Key::Int(_) => size_of::<i64>(),
            Key::Bytes(key) => key.len(),
        };
        u32::try_from(self.bytes.len() + len).is_ok()
    }

    /// The last one.
    #[inline]
    pub(super) fn last(&self) -> Option<(Key<'_>, Aspect)> {
        Some(self.get(self.points.len().checked_sub(1)?))
    }

    #[inline]
    fn get(&self, at: usize) -> (Key<'_>, Aspect) {
        let point = &self.points[at];
        let from = at
            .checked_sub(1)
            .map_or(0, |before| self.points[before].end);
        let bytes = &self.bytes[from as usize..point.end as usize];
        let key = match bytes.first_chunk() {
            Some(int) if point.is_int => Key::Int(i64::from_le_bytes(*int)),
            _ => Key::Bytes(bytes),
        };
        (key, point.aspect)
    }

    /// Takes out the last one; how many bytes it took.
    pub(super) fn pop(&mut self) -> usize {
        self.points.pop();
        let end = self.points.last().map_or(0, |last| last.end as usize);
        let bytes = POINT + self.bytes.len() - end;
        self.bytes.truncate(end);
        bytes
    }

    /// All of them as ranges, each once, in the order of their keys.
    pub(super) fn ranges(&self) -> Vec<Range> {
        let mut all: Vec<_> = (0..self.points.len()).map(|at| self.get(at)).collect();
        // Of the same key, what says more comes first.
        all.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then(y.cmp(x)));
        all.dedup_by(|(key, _), (before, _)| key == before);
        let range = |(key, aspect)| Range::point(OwnedKey::from(key), aspect);
        all.into_iter().map(range).collect()
    }
}
