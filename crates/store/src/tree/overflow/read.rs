//! Reading values and the rests of long keys: the whole, or a range, of which only the
//! chunks it touches are read.
//!
//! A walk copies what of it lies in memory, one index node's chunks at most, since
//! those who evict wait for walks. Where it meets a node that does not, it looks at
//! those behind it: chunks that follow one another in the value mostly do in the file
//! too, and are fetched with one read. They stay pinned until the next walk has copied
//! them.

use super::{MAX_KEY, MAX_VALUE, Reference, start};
use crate::cache::{Absent, Adjacent, ChildRef, Frame, Pool, SlotId, Topmost};
use crate::error::{Error, Result};
use crate::node::{self, OwnedKey, RestRef, Stored};
use std::cmp::Ordering;
use std::ops::Range;

/// The most bytes that one walk copies: some microseconds' work.
const WALK_BYTES: usize = 128 << 10;
/// What it is that is not as it should be.
const VALUE: &str = "an overflow value";

/// How long a large value is, of what its leaf holds.
///
/// # Errors
/// `Corrupt` where it says more than a value can have.
pub(crate) fn length(pool: &Pool, tree: u32, stored: &[u8]) -> Result<usize> {
    let reference = Reference::decode(stored);
    let rest = reference.map_or(u64::MAX, |reference| reference.length);
    let start = start(stored).len();
    match rest <= (MAX_VALUE - start) as u64 {
        true => Ok(start + rest as usize),
        false => Err(wrong_length(pool, tree, VALUE)),
    }
}

/// Appends bytes of a large value to `out`, of what its leaf holds; those that it has of
/// the range.
pub(crate) fn read_part(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    part: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let end = part.end.min(length(pool, tree, stored)?);
    let start = start(stored);
    if let Some(here) = start.get(part.start..end.min(start.len())) {
        out.extend_from_slice(here);
    }
    let rest = part.start.max(start.len())..end;
    if rest.is_empty() {
        return Ok(());
    }
    let rest = rest.start - start.len()..rest.end - start.len();
    read_range(pool, slot, tree, stored, rest, out)
}

/// Appends a large value to `out`, of what its leaf holds.
pub(crate) fn read_value(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.extend_from_slice(start(stored));
    read(pool, slot, tree, stored, out)
}

/// Appends the rest with this reference to `out`.
pub(crate) fn read(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    read_range(pool, slot, tree, stored, 0..MAX_VALUE, out)
}

/// Appends those of the bytes `range` of a rest to `out` that it has.
pub(crate) fn read_range(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let what = (VALUE, MAX_VALUE);
    let mut reader = Reader::new((pool, slot, tree), stored, what)?;
    let end = range.end.min(reader.length);
    let range = range.start.min(end)..end;
    let bytes = range.len();
    out.try_reserve(bytes)
        .map_err(|_| Error::no_memory(bytes, &std::io::ErrorKind::OutOfMemory.into()))?;
    reader.append(range, out)
}

/// Compares the rest of a long key with that of a key sought.
pub(crate) fn compare(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    rest: &RestRef,
    sought: &[u8],
) -> Result<Ordering> {
    Reader::new((pool, slot, tree), rest, ("a long key", MAX_KEY))?.compare(sought)
}

/// Whether a large value, of what its leaf holds, is this one.
pub(crate) fn is_value(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: &[u8],
    value: &[u8],
) -> Result<bool> {
    let is_as_long = length(pool, tree, stored)? == value.len();
    let Some(rest) = value.strip_prefix(start(stored)).filter(|_| is_as_long) else {
        return Ok(false);
    };
    let mut reader = Reader::new((pool, slot, tree), stored, (VALUE, MAX_VALUE))?;
    Ok(reader.compare(rest)? == Ordering::Equal)
}

/// The whole of a key as stored.
pub(crate) fn whole_key(
    pool: &Pool,
    slot: &SlotId,
    tree: u32,
    stored: Stored<'_>,
) -> Result<OwnedKey> {
    let mut key = OwnedKey::from(stored.key);
    if let (OwnedKey::Bytes(bytes), Some(rest)) = (&mut key, stored.rest) {
        read(pool, slot, tree, rest, bytes)?;
    }
    Ok(key)
}

fn wrong_length(pool: &Pool, tree: u32, what: &str) -> Error {
    Error::corrupt(format!(
        "database disk image is malformed: {what} of tree {tree} in {} is not as long as its entry says",
        pool.path
    ))
}

/// A value that is read piece by piece.
struct Reader<'p> {
    pool: &'p Pool,
    slot: &'p SlotId,
    tree: u32,
    what: &'static str,
    root: ChildRef,
    length: usize,
}

/// What stopped a walk.
enum Stop {
    /// These have to be fetched.
    Absent(Adjacent),
    /// The nodes do not add up to the length that the reference says.
    WrongLength,
}

impl From<Absent> for Stop {
    fn from(absent: Absent) -> Self {
        let mut adjacent = Adjacent::default();
        adjacent.add(absent);
        Self::Absent(adjacent)
    }
}

impl<'p> Reader<'p> {
    /// `what` it is, and how long such may be.
    fn new(
        (pool, slot, tree): (&'p Pool, &'p SlotId, u32),
        stored: &[u8],
        (what, longest): (&'static str, usize),
    ) -> Result<Self> {
        let reference = Reference::decode(stored).filter(|it| it.length <= longest as u64);
        let (root, length) = reference.map_or((ChildRef::NONE, 0), |it| (it.node, it.length));
        let reader = Self {
            pool,
            slot,
            tree,
            what,
            root,
            length: length as usize,
        };
        match reference {
            Some(_) => Ok(reader),
            None => Err(reader.wrong_length()),
        }
    }

    fn wrong_length(&self) -> Error {
        wrong_length(self.pool, self.tree, self.what)
    }

    /// Compares all of it with these bytes. Reads no further than they are the same, and
    /// holds no more than a page of it.
    fn compare(&mut self, mut sought: &[u8]) -> Result<Ordering> {
        let mut at = 0;
        let mut buffer = Vec::new();
        while at < self.length {
            buffer.clear();
            let end = self.length.min(at + node::max_chunk(self.pool.page_size()));
            self.append(at..end, &mut buffer)?;
            at = end;
            let (here, beyond) = sought.split_at(sought.len().min(buffer.len()));
            match buffer.as_slice().cmp(here) {
                Ordering::Equal => sought = beyond,
                order => return Ok(order),
            }
        }
        Ok(match sought.is_empty() {
            true => Ordering::Equal,
            false => Ordering::Less,
        })
    }

    /// Appends the bytes `range`, which lies within the value.
    fn append(&mut self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let pool = self.pool;
        let mut pinned = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let before = out.len();
            let walk = pool.readers.walk(self.slot);
            let stopped = self.copy_present(at..range.end, out);
            drop(walk);
            if out.len() > before {
                at += out.len() - before;
                pinned.clear();
            }
            match stopped {
                Ok(()) => {}
                Err(Stop::Absent(nodes)) => pinned.extend(pool.fetch_adjacent(&nodes, self.tree)?),
                Err(Stop::WrongLength) => return Err(self.wrong_length()),
            }
        }
        Ok(())
    }

    /// Appends the bytes `range` up to the first that is not in memory, or as far as one
    /// index node and one walk go, which is one chunk at least. Inside a walk.
    fn copy_present(
        &mut self,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Stop> {
        let chunk_bytes = node::max_chunk(self.pool.page_size());
        let first = range.start / chunk_bytes;
        let (parent, index) = self.find(first)?;
        // SAFETY: inside the caller's walk.
        let keys = unsafe { self.pool.frames.keys(parent) };
        if node::is_leaf(keys) {
            return self.copy_chunk(parent, first, &range, out);
        }
        let wanted = range.end.div_ceil(chunk_bytes) - first;
        let here = index..node::child_count(keys).min(index + wanted);
        let most = (WALK_BYTES / chunk_bytes).max(1);
        for (chunk, index) in (first..).zip(here.clone()).take(most) {
            match self.pool.follow(parent, index) {
                Ok(frame) => self.copy_chunk(frame, chunk, &range, out)?,
                Err(absent) => {
                    return Err(self.absent_from(parent, absent, index + 1..here.end));
                }
            }
        }
        Ok(())
    }

    /// The index node right above chunk number `chunk` and the chunk's place in it; the
    /// chunk itself where it is the value's only node. Inside a walk.
    fn find(&mut self, chunk: usize) -> std::result::Result<(Frame, usize), Stop> {
        let pool = self.pool;
        let fan = node::max_overflow_children(pool.page_size());
        let mut frame = pool.enter(&mut self.root, Topmost::Value(self.tree))?;
        let mut rest = chunk;
        loop {
            // SAFETY: inside the caller's walk.
            let keys = unsafe { pool.frames.keys(frame) };
            if node::kind(keys) != Some(node::Kind::Overflow) {
                return Err(Stop::WrongLength);
            }
            let level = u32::from(node::level(keys));
            let below = fan.saturating_pow(level.saturating_sub(1));
            let index = rest / below;
            if index >= node::child_count(keys).max(usize::from(level == 0)) {
                return Err(Stop::WrongLength);
            }
            if level <= 1 {
                return Ok((frame, index));
            }
            rest %= below;
            frame = pool.follow(frame, index)?;
        }
    }

    /// Appends what `range` has of chunk number `chunk`. Inside a walk.
    fn copy_chunk(
        &self,
        frame: Frame,
        chunk: usize,
        range: &Range<usize>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Stop> {
        // SAFETY: inside the caller's walk.
        let keys = unsafe { self.pool.frames.keys(frame) };
        if node::kind(keys) != Some(node::Kind::Overflow) || !node::is_leaf(keys) {
            return Err(Stop::WrongLength);
        }
        let payload = node::overflow_payload(keys);
        let chunk_bytes = node::max_chunk(self.pool.page_size());
        let start = chunk * chunk_bytes;
        if payload.len() != chunk_bytes.min(self.length - start) {
            return Err(Stop::WrongLength);
        }
        let end = payload.len().min(range.end - start);
        out.extend_from_slice(&payload[range.start.saturating_sub(start)..end]);
        Ok(())
    }

    /// The absent child, and those of the next children that are absent too and lie
    /// behind it in the file. Inside a walk.
    fn absent_from(&self, parent: Frame, first: Absent, next: Range<usize>) -> Stop {
        let mut adjacent = Adjacent::default();
        adjacent.add(first);
        for index in next {
            match self.pool.follow(parent, index) {
                Err(absent) if adjacent.add(absent) => {}
                _ => break,
            }
        }
        Stop::Absent(adjacent)
    }
}

#[cfg(test)]
mod tests;
