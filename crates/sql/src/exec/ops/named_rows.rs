//! The rows that entries of an index name, a batch at a time: looked up in the order of
//! the table, so that those that lie together are found together, and handed out in the
//! order of the entries.
//!
//! A batch whose rows are large is looked up in the order of the entries instead, so that
//! it can end before it takes too much.

use fulgurite_store::{Cursor, Key, Seek};

use crate::error::Result;
use crate::exec::batch::{BYTES_MAX, Batch};
use crate::exec::fetch::{Fetch, Narrow, dangling};
use crate::exec::memory::KEPT_BYTES;

/// With fewer rows than that their order saves nothing.
const SORTED_MIN: usize = 8;

/// See the module.
#[derive(Default)]
pub struct NamedRows {
    /// Rowids in the order of their entries, and how many of them were handed out.
    rowids: Vec<i64>,
    done: usize,
    /// Some batch was too large.
    large: bool,
    /// Rowids in the order of the table, and whose they are in that of the entries.
    sorted: Vec<(i64, u32)>,
    /// Where each of the entries' rows is in the order of the table.
    places: Vec<u32>,
    narrow: Narrow,
}

impl NamedRows {
    /// None are named.
    pub fn clear(&mut self) {
        self.rowids.clear();
        self.done = 0;
        self.large = false;
    }

    /// Whether all that were named have been handed out; those are forgotten then.
    pub fn is_empty(&mut self) -> bool {
        if self.done < self.rowids.len() {
            return false;
        }
        self.rowids.clear();
        self.done = 0;
        true
    }

    /// How many were named since they were [empty](Self::is_empty).
    pub fn len(&self) -> usize {
        self.rowids.len()
    }

    /// The rows that entries name, to which more may be appended.
    pub fn rowids(&mut self) -> &mut Vec<i64> {
        &mut self.rowids
    }

    /// Appends rows to `out`, which has none, and says how many; some, where there are any.
    pub fn fetch(
        &mut self,
        fetch: &Fetch,
        index: &str,
        rows: &mut Cursor,
        most: usize,
        out: &mut Batch,
    ) -> Result<usize> {
        let left = self.rowids.get(self.done..).unwrap_or(&[]);
        let named = left.get(..most).unwrap_or(left);
        if !self.large && named.len() >= SORTED_MIN && !named.is_sorted() {
            self.sorted.clear();
            let numbered = named.iter().copied().zip(0..);
            self.sorted.extend(numbered);
            self.sorted.sort_unstable();
            self.places.clear();
            self.places.resize(named.len(), 0);
            let mut bytes = 0;
            for ((rowid, entry), place) in self.sorted.iter().zip(0..) {
                bytes += push_row(fetch, index, rows, *rowid, &mut self.narrow, out)?;
                if bytes >= BYTES_MAX {
                    self.large = true;
                    break;
                }
                if let Some(slot) = self.places.get_mut(*entry as usize) {
                    *slot = place;
                }
            }
            if !self.large {
                for column in &mut out.columns {
                    column.reorder(&self.places);
                }
                self.done += named.len();
                return Ok(named.len());
            }
            out.clear();
        }
        let (mut count, mut bytes) = (0, 0);
        while let Some(rowid) = named.get(count).filter(|_| bytes < BYTES_MAX) {
            bytes += push_row(fetch, index, rows, *rowid, &mut self.narrow, out)?;
            count += 1;
        }
        self.done += count;
        Ok(count)
    }

    /// Gives back what many of them took.
    pub fn let_go(&mut self) {
        self.clear();
        self.narrow.let_go();
        if self.rowids.capacity() * size_of::<i64>() > KEPT_BYTES {
            *self = Self::default();
        }
    }
}

/// Appends a row; the bytes it took.
pub fn push_row(
    fetch: &Fetch,
    index: &str,
    rows: &mut Cursor,
    rowid: i64,
    narrow: &mut Narrow,
    out: &mut Batch,
) -> Result<usize> {
    if !rows.seek(Seek::AtLeast(Key::Int(rowid)))? || rows.key_int() != rowid {
        return Err(dangling(index, rowid));
    }
    let value = fetch.row(rows, narrow)?;
    fetch.push(rowid, value, &mut out.columns)?;
    Ok(value.row.len())
}
