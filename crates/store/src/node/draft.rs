//! A leaf's entries before the leaf is written, gathered in the order of their keys.
//!
//! What a leaf of byte keys has room for depends on what its fences share, and the upper
//! fence of one that is filled in order is not known before the first key behind it. So a
//! leaf that is split whenever it is full is written twice, and has room again once its
//! keys have lost what they share. A draft writes each leaf once, with all that it takes.
//!
//! It begins with the last leaf of a tree, which has no upper fence, and one entry. The
//! last entry gathered is the first of the leaf behind; all before it fit into the draft's
//! leaf, with a fence that separates them from it.

use super::bytes::{self, Cell, HEAD, LEAF};
use super::{
    HEADER, Key, Kind, birth, common_prefix, count, has_long, init, kind, level, lower_fence,
    max_inline_value, max_key, separator, set_birth, tree, value_at,
};
use std::ops::Range;

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It was gathered.
    Yes,
    /// The leaf is to be written first.
    Full,
    /// It is not behind the last one, or not to lie in a leaf whole.
    Elsewhere,
}

/// Where an entry lies in the bytes: the key, and behind it the value.
#[derive(Debug, Clone, Copy)]
struct Gathered {
    start: usize,
    key: usize,
    value: usize,
}

/// The entries of one leaf, and the first of the next.
#[derive(Debug)]
pub struct Draft {
    page_size: usize,
    /// The lower fence; empty: there is none.
    lower: Vec<u8>,
    bytes: Vec<u8>,
    entries: Vec<Gathered>,
    /// How many of them are in the tree already.
    written: usize,
    /// Bytes that all keys share with the lower fence, once there is an upper one.
    prefix: usize,
    /// Bytes that the entries take where so many are left out.
    used: usize,
}

impl Draft {
    /// Of a leaf of byte keys without an upper fence and with a single entry; none of another
    /// one.
    pub fn of(page: &[u8]) -> Option<Self> {
        let begins = kind(page) == Some(Kind::BytesLeaf)
            && count(page) == 1
            && bytes::upper_len(page) == 0
            && !has_long(page);
        let (value, overflow) = begins.then(|| value_at(page, 0))?;
        if overflow {
            return None;
        }
        let mut key = Vec::new();
        bytes::start_into::<LEAF>(page, 0, &mut key);
        let lower = bytes::lower(page).start;
        let mut draft = Self {
            page_size: page.len(),
            lower: lower.to_vec(),
            bytes: Vec::with_capacity(2 * page.len()),
            entries: Vec::with_capacity(page.len() / (2 * LEAF)),
            written: 1,
            prefix: common_prefix(lower, &key),
            used: 0,
        };
        draft.gather(&key, value);
        Some(draft)
    }

    fn gather(&mut self, key: &[u8], value: &[u8]) {
        let entry = Gathered {
            start: self.bytes.len(),
            key: key.len(),
            value: value.len(),
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(entry);
        self.used += taken(&entry, self.prefix);
    }

    fn entry(&self, entry: &Gathered) -> (&[u8], &[u8]) {
        let bytes = &self.bytes[entry.start..][..entry.key + entry.value];
        bytes.split_at(entry.key)
    }

    /// The key gathered last.
    fn last(&self) -> &[u8] {
        self.entries.last().map_or(&[], |last| self.entry(last).0)
    }

    /// Takes an entry in, if it is behind all others and there is room.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Pushed {
        let last = self.last();
        let shared = common_prefix(last, key);
        let is_behind = match (last.get(shared), key.get(shared)) {
            (Some(last), Some(key)) => last < key,
            (last, key) => last.is_none() && key.is_some(),
        };
        let fits_leaf = key.len() <= max_key(self.page_size)
            && value.len() <= max_inline_value(self.page_size, key.len());
        if !is_behind || !fits_leaf {
            return Pushed::Elsewhere;
        }
        // The fence is as much of the key as tells it from the last one.
        let fence = shared + 1;
        if !key.starts_with(&self.lower[..self.prefix]) {
            let prefix = common_prefix(&self.lower, key).min(fence);
            let used = self.entries.iter().map(|entry| taken(entry, prefix)).sum();
            if !self.has_room(used, fence) {
                return Pushed::Full;
            }
            (self.prefix, self.used) = (prefix, used);
        } else if !self.has_room(self.used, fence) {
            return Pushed::Full;
        }
        self.gather(key, value);
        Pushed::Yes
    }

    /// Whether a leaf of entries that take so much has room for an upper fence as long.
    fn has_room(&self, used: usize, fence: usize) -> bool {
        HEADER + self.lower.len() + fence + used <= self.page_size
    }

    /// What is not in the tree yet.
    pub fn unwritten(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.entries[self.written..].iter().map(|it| self.entry(it))
    }

    /// Whether what is left may go into the last leaf, which has no upper fence.
    pub fn fits_last(&self) -> bool {
        let used: usize = self.entries.iter().map(|entry| taken(entry, 0)).sum();
        self.has_room(used, 0)
    }

    /// Writes what is left into the last leaf, which has what was written before.
    pub fn fill_last(&self, page: &mut [u8]) {
        self.write(page, self.written..self.entries.len());
    }

    /// Makes the last leaf one that is full, and `right` the one behind it, with the entry
    /// gathered last; the fence between them.
    pub fn fill<'d>(&'d self, leaf: &mut [u8], right: &mut [u8]) -> Key<'d> {
        let fence = self.fence();
        let Some(kind) = kind(leaf) else {
            return Key::Bytes(fence);
        };
        let (level, tree, birth) = (level(leaf), tree(leaf), birth(leaf));
        let middle = Some(Key::Bytes(fence).into());
        init(right, kind, level, tree, middle, None);
        set_birth(right, birth);
        debug_assert!(lower_fence(leaf).is_none() == self.lower.is_empty());
        let lower = (!self.lower.is_empty()).then_some(Key::Bytes(&self.lower).into());
        init(leaf, kind, level, tree, lower, middle);
        set_birth(leaf, birth);
        let last = self.entries.len() - 1;
        self.write(leaf, 0..last);
        self.write(right, last..self.entries.len());
        Key::Bytes(fence)
    }

    /// What separates the last entry from those before.
    fn fence(&self) -> &[u8] {
        let before = self.entries.iter().rev().nth(1);
        separator(
            before.map_or(&[], |before| self.entry(before).0),
            self.last(),
        )
    }

    fn write(&self, page: &mut [u8], range: Range<usize>) {
        for entry in &self.entries[range] {
            let (start, value) = self.entry(entry);
            bytes::append(page, Cell { start, rest: None }, value);
        }
    }

    /// Goes on with the leaf behind the one that was filled.
    pub fn go_on(&mut self) {
        self.lower = self.fence().to_vec();
        let Some(last) = self.entries.pop() else {
            return;
        };
        self.entries.clear();
        self.used = 0;
        self.prefix = common_prefix(&self.lower, self.entry(&last).0);
        self.bytes.drain(..last.start);
        let last = Gathered { start: 0, ..last };
        self.entries.push(last);
        self.used = taken(&last, self.prefix);
        self.written = 1;
    }

    /// All that is left is in the tree.
    pub fn is_written(&self) -> bool {
        self.written == self.entries.len()
    }
}

/// Bytes that an entry takes in a leaf that leaves out so many of its key.
#[inline]
fn taken(entry: &Gathered, prefix: usize) -> usize {
    LEAF + entry.key.saturating_sub(prefix + HEAD) + entry.value
}
