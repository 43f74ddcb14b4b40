//! Neighbouring entries of a leaf of byte keys, read without a cursor's step for each.

use super::bytes::{self, HEAD, LEAF};
use super::slot::Slot;
use super::{Rests, has_long};

/// Entries of one leaf in ascending order of their keys.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    page: &'a [u8],
    slots: &'a [[u8; LEAF]],
    /// The first one's place in the leaf.
    from: usize,
}

/// One of [`Entries`]. Its key is the prefix of all of them, then `head`, then `tail`.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    head: [u8; HEAD],
    head_len: usize,
    /// The end of the key.
    pub tail: &'a [u8],
    /// None: it lies outside the leaf.
    pub value: Option<&'a [u8]>,
}

impl<'a> Entries<'a> {
    /// No entries.
    pub const EMPTY: Entries<'static> = Entries {
        page: &[],
        slots: &[],
        from: 0,
    };

    /// The entries of a leaf of byte keys from `index` on; none where some keys may be long.
    pub(crate) fn new(page: &'a [u8], index: usize) -> Self {
        if has_long(page) {
            return Self::EMPTY;
        }
        Self {
            page,
            slots: bytes::slots(page).get(index..).unwrap_or(&[]),
            from: index,
        }
    }

    /// How many entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// None?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The first `count` entries.
    pub fn first(self, count: usize) -> Self {
        Self {
            slots: self.slots.get(..count).unwrap_or(self.slots),
            ..self
        }
    }

    /// The last `count` entries.
    pub fn last(self, count: usize) -> Self {
        self.behind(self.len().saturating_sub(count))
    }

    /// The entries but for the first `count`.
    fn behind(self, count: usize) -> Self {
        Self {
            slots: self.slots.get(count..).unwrap_or(&[]),
            from: self.from + count,
            ..self
        }
    }

    /// The entries whose key is at least `start`.
    pub fn at_least(self, start: &[u8]) -> Self {
        if self.is_empty() {
            return self;
        }
        match bytes::find::<LEAF>(self.page, start, Rests::NONE) {
            Ok(Ok(at) | Err(at)) => self.behind(at.saturating_sub(self.from)),
            Err(_) => Self::EMPTY,
        }
    }

    /// The entries whose key is less than `end`.
    pub fn before(self, end: &[u8]) -> Self {
        if self.is_empty() {
            return self;
        }
        match bytes::find::<LEAF>(self.page, end, Rests::NONE) {
            Ok(Ok(at) | Err(at)) => self.first(at.saturating_sub(self.from)),
            Err(_) => Self::EMPTY,
        }
    }

    /// What all keys begin with.
    pub fn prefix(self) -> &'a [u8] {
        match self.is_empty() {
            true => &[],
            false => bytes::prefix(self.page),
        }
    }

    /// The entries, in order.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Entry<'a>> + ExactSizeIterator + use<'a> {
        let page = self.page;
        let heap_end = match self.is_empty() {
            true => 0,
            false => super::heap_end(page),
        };
        self.slots.iter().map(move |raw| {
            let slot = Slot::decode(raw);
            let start = heap_end - slot.distance;
            let middle = start + slot.tail();
            Entry {
                head: slot.head,
                head_len: slot.remainder.min(HEAD),
                tail: &page[start..middle],
                value: (!slot.overflow).then(|| &page[middle..middle + slot.value]),
            }
        })
    }
}

impl Entry<'_> {
    /// Appends what the key has behind the prefix.
    #[inline]
    pub fn append_to(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.head);
        key.truncate(key.len() - HEAD + self.head_len);
        key.extend_from_slice(self.tail);
    }
}
