//! Slots of nodes of byte strings, and the keys that go into them.

use super::bytes::{HEAD, LEAF, prefix, prefix_len, tail_of};
use super::{Key, LONG_BIT, OVERFLOW_BIT, OVERFLOW_REF, RestRef, Stored};

/// A byte key as stored: whole, or its start and where it goes on.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    pub start: &'a [u8],
    pub rest: Option<&'a RestRef>,
}

impl<'a> Cell<'a> {
    /// No fence.
    pub const EMPTY: Cell<'static> = Cell {
        start: &[],
        rest: None,
    };

    /// The fence; an empty one is none.
    pub fn as_fence(self) -> Option<Stored<'a>> {
        (!self.start.is_empty()).then_some(Stored {
            key: Key::Bytes(self.start),
            rest: self.rest,
        })
    }

    /// The bytes that `bytes`, with a bit that says whether it is long, make up.
    pub fn of(bytes: &'a [u8], long: bool) -> Cell<'a> {
        if long && let Some((start, rest)) = bytes.split_last_chunk() {
            let rest = Some(rest);
            return Cell { start, rest };
        }
        Cell {
            start: bytes,
            rest: None,
        }
    }

    /// Without the page's prefix, which it has.
    #[inline]
    pub fn stripped(self, page: &[u8]) -> Cell<'a> {
        debug_assert!(self.start.starts_with(prefix(page)));
        Cell {
            start: &self.start[prefix_len(page)..],
            ..self
        }
    }

    /// Bytes that it takes in the heap once it is stripped.
    #[inline]
    pub fn heap_bytes(self) -> usize {
        tail_of(self.start).len() + self.rest.map_or(0, |rest| rest.len())
    }
}

/// A slot, decoded.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub head: [u8; HEAD],
    pub distance: usize,
    /// Length of the key, or of its start, without the page's prefix.
    pub remainder: usize,
    pub long: bool,
    pub value: usize,
    pub overflow: bool,
}

impl Slot {
    #[inline]
    pub fn decode<const S: usize>(raw: &[u8; S]) -> Slot {
        let value = if S == LEAF {
            u16::from_le_bytes([raw[S - 2], raw[S - 1]])
        } else {
            0
        };
        Slot {
            head: [raw[0], raw[1], raw[2], raw[3]],
            distance: usize::from(u16::from_le_bytes([raw[4], raw[5]])),
            remainder: usize::from(u16::from_le_bytes([raw[6], raw[7]])) & !LONG_BIT,
            long: usize::from(raw[7]) & (LONG_BIT >> 8) != 0,
            value: usize::from(value & !OVERFLOW_BIT),
            overflow: value & OVERFLOW_BIT != 0,
        }
    }

    #[inline]
    pub fn encode<const S: usize>(&self) -> [u8; S] {
        let mut raw = [0; S];
        raw[..4].copy_from_slice(&self.head);
        raw[4..6].copy_from_slice(&(self.distance as u16).to_le_bytes());
        let long = if self.long { LONG_BIT } else { 0 };
        raw[6..8].copy_from_slice(&((self.remainder | long) as u16).to_le_bytes());
        if S == LEAF {
            let value = self.value as u16 | if self.overflow { OVERFLOW_BIT } else { 0 };
            raw[S - 2..].copy_from_slice(&value.to_le_bytes());
        }
        raw
    }

    /// Whether the head's bytes beyond a short remainder are zero.
    pub fn is_padded(&self) -> bool {
        self.head.iter().skip(self.remainder).all(|byte| *byte == 0)
    }

    /// Bytes of the key, or of its start, in the heap.
    #[inline]
    pub fn tail(&self) -> usize {
        self.remainder.saturating_sub(HEAD)
    }

    /// The same with a long key's reference.
    #[inline]
    pub fn key(&self) -> usize {
        self.tail() + if self.long { OVERFLOW_REF } else { 0 }
    }

    /// Bytes of the entry in the heap.
    #[inline]
    pub fn stored(&self) -> usize {
        self.key() + self.value
    }
}
