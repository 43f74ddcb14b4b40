//! Neighbouring entries of an integer leaf, read without a cursor's step for
//! each.

use super::int::{self, LEAF};

/// Entries of one leaf in ascending order of their keys.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    page: &'a [u8],
    slots: &'a [[u8; LEAF]],
}

impl<'a> Run<'a> {
    /// No entries.
    pub const EMPTY: Run<'static> = Run {
        page: &[],
        slots: &[],
    };

    /// The entries of an integer leaf from `index` on.
    pub(crate) fn new(page: &'a [u8], index: usize) -> Self {
        let slots = int::leaf_slots(page).get(index..).unwrap_or(&[]);
        Self { page, slots }
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

    /// The entries whose key is at most `last`.
    pub fn up_to(self, last: i64) -> Self {
        match self.slots.last() {
            Some(slot) if int::slot_key(slot) > last => self.first(
                self.slots
                    .partition_point(|slot| int::slot_key(slot) <= last),
            ),
            _ => self,
        }
    }

    /// The entries whose key is at least `first`.
    pub fn down_to(self, first: i64) -> Self {
        let before = match self.slots.first() {
            Some(slot) if int::slot_key(slot) < first => self
                .slots
                .partition_point(|slot| int::slot_key(slot) < first),
            _ => 0,
        };
        Self {
            slots: self.slots.get(before..).unwrap_or(&[]),
            ..self
        }
    }

    /// The last `count` entries.
    pub fn last(self, count: usize) -> Self {
        let before = self.slots.len().saturating_sub(count);
        Self {
            slots: self.slots.get(before..).unwrap_or(&[]),
            ..self
        }
    }

    /// The first `count` entries.
    pub fn first(self, count: usize) -> Self {
        Self {
            slots: self.slots.get(..count).unwrap_or(self.slots),
            ..self
        }
    }

    /// The keys, in order.
    #[inline]
    pub fn keys(self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + use<'a> {
        self.slots.iter().map(int::slot_key)
    }

    /// The page that the entries lie in.
    #[inline]
    pub fn page(self) -> &'a [u8] {
        self.page
    }

    /// Where in the page each value starts and ends, in order; None for one that
    /// lies outside the leaf.
    #[inline]
    pub fn places(
        self,
    ) -> impl DoubleEndedIterator<Item = Option<(usize, usize)>> + ExactSizeIterator + use<'a> {
        let size = self.page.len();
        self.slots.iter().map(move |slot| {
            let (distance, len, outside) = int::slot_value(slot);
            let start = size.checked_sub(distance)?;
            (!outside && start + len <= size).then_some((start, start + len))
        })
    }
}
