//! A column of a batch.
//!
//! What a vector holds decides its type, not what a column declares: each value
//! is one word beside a tag, and the tags are only stored once two different
//! ones have met. A vector of nothing but integers is therefore a plain array.
//!
//! Invariants:
//! * `tags` is empty (all values have the tag `kinds`) or as long as `words`;
//! * `kinds` is the union of the tags of all values ever pushed since `clear`,
//!   so it may name kinds that no selected row has, never the reverse;
//! * the word of a text or blob is `offset << 32 | length` in `bytes`; a value
//!   that would lie beyond 4 GiB is refused with "string or blob too big".
//!
//! Reading past the end gives NULL and never panics.

use super::Selection;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// Tags: one bit each, so that a set of them is a mask.
pub mod tag {
    /// NULL
    pub const NULL: u8 = 1;
    /// A 64-bit integer.
    pub const INTEGER: u8 = 2;
    /// A double.
    pub const REAL: u8 = 4;
    /// A text.
    pub const TEXT: u8 = 8;
    /// A blob.
    pub const BLOB: u8 = 16;
}

/// A column of values.
#[derive(Debug, Clone, Default)]
pub struct Vector {
    words: Vec<i64>,
    tags: Vec<u8>,
    kinds: u8,
    bytes: Vec<u8>,
}

impl Vector {
    /// An empty vector.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the values, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.words.clear();
        self.tags.clear();
        self.bytes.clear();
        self.kinds = 0;
    }

    /// Number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Has it no values?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The tags that occur, as a mask.
    #[inline]
    pub fn kinds(&self) -> u8 {
        self.kinds
    }

    /// All values, if every one is an integer.
    #[inline]
    pub fn integers(&self) -> Option<&[i64]> {
        (self.kinds == tag::INTEGER).then_some(&self.words)
    }

    /// All values, if those of these rows are integers; others may be NULL.
    pub fn integers_of(&self, rows: Selection<'_>) -> Option<&[i64]> {
        if self.kinds & !tag::NULL != tag::INTEGER {
            return None;
        }
        let mut all = self.kinds;
        if !self.tags.is_empty() {
            all = 0;
            rows.each(|row| all |= self.tag(row));
        }
        (all == tag::INTEGER).then_some(&self.words)
    }

    /// All values, if every one is a real; the words are `f64` bits.
    #[inline]
    pub fn reals(&self) -> Option<&[i64]> {
        (self.kinds == tag::REAL).then_some(&self.words)
    }

    /// The raw words.
    #[inline]
    pub fn words(&self) -> &[i64] {
        &self.words
    }

    /// The tag of a value.
    #[inline]
    pub fn tag(&self, row: usize) -> u8 {
        if self.tags.is_empty() {
            if row < self.words.len() {
                self.kinds
            } else {
                tag::NULL
            }
        } else {
            self.tags.get(row).copied().unwrap_or(tag::NULL)
        }
    }

    /// A value.
    #[inline]
    pub fn get(&self, row: usize) -> ValueRef<'_> {
        self.value(row)
    }

    /// As [`Vector::get`], for loops in which a call counts.
    #[inline(always)]
    pub fn value(&self, row: usize) -> ValueRef<'_> {
        let Some(&word) = self.words.get(row) else {
            return ValueRef::Null;
        };
        let kind = if self.tags.is_empty() {
            self.kinds
        } else {
            self.tags.get(row).copied().unwrap_or(tag::NULL)
        };
        match kind {
            tag::INTEGER => ValueRef::Integer(word),
            tag::REAL => ValueRef::Real(f64::from_bits(word as u64)),
            tag::TEXT => ValueRef::Text(self.slice(word)),
            tag::BLOB => ValueRef::Blob(self.slice(word)),
            _ => ValueRef::Null,
        }
    }

    #[inline(always)]
    fn slice(&self, word: i64) -> &[u8] {
        let word = word as u64;
        let start = (word >> 32) as usize;
        let length = (word & 0xffff_ffff) as usize;
        self.bytes.get(start..start + length).unwrap_or(&[])
    }

    #[inline(always)]
    fn put(&mut self, kind: u8, word: i64) {
        if self.kinds != kind || !self.tags.is_empty() {
            self.note(kind);
        }
        self.words.push(word);
    }

    /// Keeps the tags in step with a value about to be pushed.
    #[cold]
    fn note(&mut self, kind: u8) {
        if self.words.is_empty() {
            self.kinds = kind;
            return;
        }
        if self.tags.is_empty() {
            self.tags.resize(self.words.len(), self.kinds);
        }
        self.tags.push(kind);
        self.kinds |= kind;
    }

    /// Appends NULL.
    #[inline]
    pub fn push_null(&mut self) {
        self.put(tag::NULL, 0);
    }

    /// Appends an integer.
    #[inline]
    pub fn push_integer(&mut self, value: i64) {
        self.put(tag::INTEGER, value);
    }

    /// Appends a real; NaN becomes NULL.
    #[inline]
    pub fn push_real(&mut self, value: f64) {
        if value.is_nan() {
            self.push_null();
        } else {
            self.put(tag::REAL, value.to_bits() as i64);
        }
    }

    /// Appends a truth value: 1, 0 or NULL.
    #[inline]
    pub fn push_truth(&mut self, value: Option<bool>) {
        match value {
            Some(b) => self.push_integer(i64::from(b)),
            None => self.push_null(),
        }
    }

    /// Appends a value, copying its bytes.
    #[inline(always)]
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Null => self.push_null(),
            ValueRef::Integer(i) => self.push_integer(i),
            ValueRef::Real(r) => self.push_real(r),
            ValueRef::Text(b) => return self.push_bytes(tag::TEXT, b),
            ValueRef::Blob(b) => return self.push_bytes(tag::BLOB, b),
        }
        Ok(())
    }

    #[inline]
    fn push_bytes(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        let start = self.bytes.len();
        if start + bytes.len() > u32::MAX as usize {
            return Err(Error::too_big());
        }
        self.bytes.extend_from_slice(bytes);
        self.put(kind, Self::word_of(start, bytes.len()));
        Ok(())
    }

    /// Appends a value of another vector.
    #[inline]
    pub fn push_from(&mut self, other: &Vector, row: usize) -> Result<()> {
        self.push(other.get(row))
    }

    /// Appends the values of these rows of another vector; rows it has not (such
    /// as `u32::MAX`) give NULL.
    pub fn gather(&mut self, other: &Vector, rows: &[u32]) -> Result<()> {
        if let Some(words) = other.integers()
            && (self.is_empty() || (self.kinds == tag::INTEGER))
            && rows.iter().all(|r| (*r as usize) < words.len())
        {
            self.kinds = tag::INTEGER;
            self.words.extend(
                rows.iter()
                    .map(|r| words.get(*r as usize).copied().unwrap_or(0)),
            );
            return Ok(());
        }
        if self.gather_texts(other, rows) {
            return Ok(());
        }
        rows.iter()
            .try_for_each(|r| self.push(other.get(*r as usize)))
    }

    /// As [`Vector::gather`] where all are texts, or all blobs, whose bytes are
    /// worth being copied once for all rows. False: not done.
    fn gather_texts(&mut self, other: &Vector, rows: &[u32]) -> bool {
        /// Bytes copied for each row at most.
        const WORTH: usize = 16;
        let start = self.bytes.len();
        if !matches!(other.kinds, tag::TEXT | tag::BLOB)
            || !(self.is_empty() || self.kinds == other.kinds)
            || other.bytes.len() > rows.len() * WORTH
            || start + other.bytes.len() > u32::MAX as usize
            || rows.iter().any(|r| *r as usize >= other.words.len())
        {
            return false;
        }
        self.kinds = other.kinds;
        self.bytes.extend_from_slice(&other.bytes);
        let words = rows.iter().filter_map(|r| other.words.get(*r as usize));
        self.words
            .extend(words.map(|word| word.wrapping_add((start as i64) << 32)));
        true
    }

    /// Becomes `count` times the same value.
    pub fn fill(&mut self, value: ValueRef<'_>, count: usize) -> Result<()> {
        self.clear();
        if count == 0 {
            return Ok(());
        }
        self.push(value)?;
        let word = self.words.first().copied().unwrap_or(0);
        self.words.resize(count, word);
        Ok(())
    }

    /// Becomes integers only, one for each row; a kernel writes them.
    #[inline]
    pub fn integers_mut(&mut self, count: usize) -> &mut [i64] {
        self.clear();
        self.kinds = tag::INTEGER;
        self.words.resize(count, 0);
        &mut self.words
    }

    /// Room for `count` more integers (zeros so far) behind what it holds, if
    /// that is nothing but integers; [`Vector::truncate`] takes back the rest.
    #[inline]
    pub fn extend_integers(&mut self, count: usize) -> Option<&mut [i64]> {
        if self.words.is_empty() {
            self.clear();
            self.kinds = tag::INTEGER;
        } else if self.kinds != tag::INTEGER {
            return None;
        }
        let start = self.words.len();
        self.words.resize(start + count, 0);
        self.words.get_mut(start..)
    }

    /// Takes over `heap` and has room for `count` more texts (empty so far) in
    /// it, if it holds nothing else. The words are to be made by
    /// [`Vector::word_of`]; `heap` starts at the position that comes back.
    pub fn extend_texts(&mut self, heap: &[u8], count: usize) -> Option<(usize, &mut [i64])> {
        let base = self.bytes.len();
        if base + heap.len() > u32::MAX as usize {
            return None;
        }
        if self.words.is_empty() {
            self.tags.clear();
            self.kinds = tag::TEXT;
        } else if self.kinds != tag::TEXT {
            return None;
        }
        self.bytes.extend_from_slice(heap);
        let start = self.words.len();
        self.words.resize(start + count, 0);
        Some((base, self.words.get_mut(start..)?))
    }

    /// The word of a text or blob of `len` bytes at `start` of the bytes.
    #[inline]
    pub fn word_of(start: usize, len: usize) -> i64 {
        ((start as u64) << 32 | len as u64) as i64
    }

    /// Becomes reals only, one for each row; a kernel writes them. A caller that
    /// may produce NaN calls [`Vector::nan_to_null`] afterwards.
    #[inline]
    pub fn reals_mut(&mut self, count: usize) -> &mut [i64] {
        self.clear();
        self.kinds = tag::REAL;
        self.words.resize(count, 0);
        &mut self.words
    }

    /// Turns the NaNs of a vector of reals into NULLs.
    pub fn nan_to_null(&mut self) {
        if self.kinds != tag::REAL
            || !self
                .words
                .iter()
                .any(|w| f64::from_bits(*w as u64).is_nan())
        {
            return;
        }
        self.tags.clear();
        self.tags.extend(self.words.iter().map(|w| {
            if f64::from_bits(*w as u64).is_nan() {
                tag::NULL
            } else {
                tag::REAL
            }
        }));
        self.kinds = tag::REAL | tag::NULL;
    }

    /// Keeps the first `count` values.
    pub fn truncate(&mut self, count: usize) {
        self.words.truncate(count);
        if !self.tags.is_empty() {
            self.tags.truncate(count);
        }
        if self.words.is_empty() {
            self.clear();
        }
    }

    /// Puts the values into this order of their rows, of which each occurs once; what is
    /// not as long as the vector changes nothing.
    pub fn reorder(&mut self, rows: &[u32]) {
        fn reordered<T: Copy + Default>(values: &[T], rows: &[u32]) -> Vec<T> {
            let value = |row: &u32| values.get(*row as usize).copied().unwrap_or_default();
            rows.iter().map(value).collect()
        }
        if rows.len() != self.words.len() {
            return;
        }
        self.words = reordered(&self.words, rows);
        self.tags = match self.tags.is_empty() {
            true => Vec::new(),
            false => reordered(&self.tags, rows),
        };
    }

    /// Becomes a copy of `other`.
    pub fn copy_from(&mut self, other: &Vector) {
        self.words.clone_from(&other.words);
        self.tags.clone_from(&other.tags);
        self.bytes.clone_from(&other.bytes);
        self.kinds = other.kinds;
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.words.capacity() * 8 + self.tags.capacity() + self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_into_another_order_of_their_rows() {
        let mut v = Vector::new();
        v.push(ValueRef::Text(b"ab")).unwrap();
        v.push(ValueRef::Text(b"c")).unwrap();
        v.reorder(&[1, 0]);
        assert_eq!(v.get(0), ValueRef::Text(b"c"));
        assert_eq!(v.get(1), ValueRef::Text(b"ab"));
        v.push_null();
        v.reorder(&[2, 0, 1]);
        let all: Vec<_> = (0..3).map(|i| v.get(i)).collect();
        let texts = [ValueRef::Text(b"c"), ValueRef::Text(b"ab")];
        assert_eq!(all, [ValueRef::Null, texts[0], texts[1]]);
        v.reorder(&[0]);
        assert_eq!(v.get(2), ValueRef::Text(b"ab"));
    }

    #[test]
    fn one_kind_stores_no_tags_and_another_one_brings_them() {
        let mut v = Vector::new();
        v.push_integer(7);
        v.push_integer(-1);
        assert_eq!(v.integers(), Some(&[7, -1][..]));
        v.push_real(0.5);
        v.push_null();
        v.push(ValueRef::Text(b"ab")).unwrap();
        assert_eq!(v.integers(), None);
        assert_eq!(v.kinds(), tag::INTEGER | tag::REAL | tag::NULL | tag::TEXT);
        let all: Vec<_> = (0..6).map(|i| v.get(i)).collect();
        assert_eq!(
            all,
            [
                ValueRef::Integer(7),
                ValueRef::Integer(-1),
                ValueRef::Real(0.5),
                ValueRef::Null,
                ValueRef::Text(b"ab"),
                ValueRef::Null
            ]
        );
    }

    #[test]
    fn nan_is_null() {
        let mut v = Vector::new();
        v.push_real(f64::NAN);
        assert_eq!(v.get(0), ValueRef::Null);
        v.reals_mut(2)[1] = f64::NAN.to_bits() as i64;
        v.nan_to_null();
        assert_eq!((v.get(0), v.get(1)), (ValueRef::Real(0.0), ValueRef::Null));
    }
}
