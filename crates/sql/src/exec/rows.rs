//! Rows kept for later: encoded one after the other in blocks, in memory as long
//! as the budget allows and in a temporary file beyond.
//!
//! A cell is a tag byte and its value: 8 bytes for numbers, length and bytes for
//! texts and blobs. The encoding never leaves the process.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::exec::batch::{Batch, ROWS_MAX, tag};
use crate::exec::memory::{Memory, Reservation, TempFile};
use crate::exec::sorter::Sorter;
use crate::value::ValueRef;

/// Bytes of a full block; a larger row gets a block of its own.
const BLOCK_BYTES: usize = 64 << 10;
/// The same for one of many stores that share a file.
const SHARED_BLOCK_BYTES: usize = 16 << 10;

/// The next rows of a sorter whose payloads are cells, `width` a row, at most
/// `want`; false at the end.
pub fn sorted_rows(
    sorter: &mut Sorter,
    want: usize,
    width: usize,
    out: &mut Batch,
) -> Result<bool> {
    out.reset(width);
    let mut rows = 0;
    while rows < want.clamp(1, ROWS_MAX) {
        let Some((_, mut cells)) = sorter.next_record()? else {
            break;
        };
        for column in &mut out.columns {
            column.push(decode_cell(&mut cells)?)?;
        }
        rows += 1;
    }
    out.set_rows(rows);
    Ok(rows > 0)
}

/// Appends a cell.
#[inline]
pub fn encode_cell(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.push(tag::NULL),
        ValueRef::Integer(i) => {
            out.push(tag::INTEGER);
            out.extend_from_slice(&i.to_le_bytes());
        }
        ValueRef::Real(r) => {
            out.push(tag::REAL);
            out.extend_from_slice(&r.to_bits().to_le_bytes());
        }
        ValueRef::Text(b) => encode_bytes(tag::TEXT, b, out),
        ValueRef::Blob(b) => encode_bytes(tag::BLOB, b, out),
    }
}

fn encode_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes a cell off the front of `bytes`.
#[inline]
pub fn decode_cell<'a>(bytes: &mut &'a [u8]) -> Result<ValueRef<'a>> {
    let kind = *take(bytes, 1)?.first().unwrap_or(&0);
    if kind == tag::NULL {
        return Ok(ValueRef::Null);
    }
    let word = u64::from_le_bytes(take(bytes, 8)?.try_into().unwrap_or_default());
    Ok(match kind {
        tag::INTEGER => ValueRef::Integer(word as i64),
        tag::REAL => ValueRef::Real(f64::from_bits(word)),
        tag::TEXT => ValueRef::Text(take(bytes, usize::try_from(word).unwrap_or(usize::MAX))?),
        tag::BLOB => ValueRef::Blob(take(bytes, usize::try_from(word).unwrap_or(usize::MAX))?),
        _ => return Err(garbled()),
    })
}

#[inline]
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count).ok_or_else(garbled)?;
    *bytes = rest;
    Ok(head)
}

#[cold]
fn garbled() -> Error {
    Error::corrupt("a temporary file changed while it was in use")
}

enum Block {
    Memory(Vec<u8>),
    File { offset: u64, length: usize },
}

/// Rows of one width, appended and then read in order, any number of times.
pub struct RowStore {
    width: usize,
    blocks: Vec<Block>,
    open: Vec<u8>,
    rows: u64,
    memory: Memory,
    reservation: Reservation,
    reserved: usize,
    file: Option<Arc<TempFile>>,
    block_bytes: usize,
    /// The file block read last.
    loaded: Option<usize>,
    buffer: Vec<u8>,
}

impl RowStore {
    /// No rows.
    pub fn new(width: usize, memory: &Memory) -> Self {
        Self {
            width,
            blocks: Vec::new(),
            open: Vec::new(),
            rows: 0,
            memory: memory.clone(),
            reservation: memory.reservation(),
            reserved: 0,
            file: None,
            block_bytes: BLOCK_BYTES,
            loaded: None,
            buffer: Vec::new(),
        }
    }

    /// No rows, and those to come go to the file, which others use, too.
    pub fn in_file(width: usize, memory: &Memory, file: Arc<TempFile>) -> Self {
        Self {
            file: Some(file),
            block_bytes: SHARED_BLOCK_BYTES,
            ..Self::new(width, memory)
        }
    }

    /// An empty one for rows as wide, in the same file where there is one.
    pub fn sibling(&self) -> Self {
        Self {
            file: self.file.clone(),
            block_bytes: self.block_bytes,
            ..Self::new(self.width, &self.memory)
        }
    }

    /// Rows appended so far.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Forgets all rows, and gives back what they took.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.open.clear();
        self.rows = 0;
        if self.reserved > 0 {
            self.reservation.resize(0);
            self.reserved = 0;
        }
        self.file = None;
        self.loaded = None;
    }

    /// Appends the rows of a batch that count.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        batch.selection().try_each(|row| {
            for column in batch.columns.iter().take(self.width) {
                encode_cell(column.get(row), &mut self.open);
            }
            self.row_done()
        })
    }

    /// Appends a row of `width` cells.
    pub fn push<'a>(&mut self, cells: impl Iterator<Item = ValueRef<'a>>) -> Result<()> {
        cells.for_each(|cell| encode_cell(cell, &mut self.open));
        self.row_done()
    }

    fn row_done(&mut self) -> Result<()> {
        self.rows += 1;
        if self.width == 0 || self.open.len() < self.block_bytes {
            return Ok(());
        }
        let block = std::mem::take(&mut self.open);
        if self.file.is_none() && self.reservation.resize(self.reserved + block.len()) {
            self.reserved += block.len();
            self.blocks.push(Block::Memory(block));
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(Arc::new(self.memory.temp_file()?)),
        };
        self.blocks.push(Block::File {
            offset: file.append(&block)?,
            length: block.len(),
        });
        self.open = block;
        self.open.clear();
        Ok(())
    }

    /// Reads on from `position` (0 at first) into `out`; false at the end.
    pub fn read(&mut self, position: &mut u64, want: usize, out: &mut Batch) -> Result<bool> {
        out.reset(self.width);
        let most = want.clamp(1, ROWS_MAX);
        if self.width == 0 {
            let rows = (self.rows - (*position).min(self.rows)).min(most as u64);
            *position += rows;
            out.set_rows(rows as usize);
            return Ok(rows > 0);
        }
        let block = (*position >> 32) as usize;
        let start = (*position & 0xffff_ffff) as usize;
        let bytes: &[u8] = match self.blocks.get(block) {
            Some(Block::Memory(bytes)) => bytes,
            Some(Block::File { offset, length }) => {
                if self.loaded != Some(block) {
                    self.loaded = None;
                    self.buffer.resize(*length, 0);
                    if let Some(file) = &self.file {
                        file.read(&mut self.buffer, *offset)?;
                    }
                    self.loaded = Some(block);
                }
                &self.buffer
            }
            None if block == self.blocks.len() => &self.open,
            None => return Ok(false),
        };
        let mut rest = bytes.get(start..).unwrap_or(&[]);
        let mut rows = 0;
        while rows < most && !rest.is_empty() {
            for column in &mut out.columns {
                column.push(decode_cell(&mut rest)?)?;
            }
            rows += 1;
        }
        out.set_rows(rows);
        let end = bytes.len() - rest.len();
        *position = if rest.is_empty() && block < self.blocks.len() {
            (block as u64 + 1) << 32
        } else {
            (block as u64) << 32 | end as u64
        };
        Ok(rows > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::MemoryDisk;
    use std::path::Path;

    fn fill_and_read(limit: usize) {
        let memory = Memory::new(Arc::new(MemoryDisk::new()), Path::new("/db"), limit);
        let mut store = RowStore::new(2, &memory);
        let mut batch = Batch::new(2);
        for round in 0..100i64 {
            batch.reset(2);
            for i in 0..500 {
                batch.columns[0].push_integer(round * 500 + i);
                batch.columns[1]
                    .push(ValueRef::Text(format!("row {i}").as_bytes()))
                    .unwrap();
            }
            batch.set_rows(500);
            store.append(&batch).unwrap();
        }
        for _ in 0..2 {
            let (mut position, mut expected) = (0, 0);
            while store.read(&mut position, usize::MAX, &mut batch).unwrap() {
                for row in 0..batch.rows() {
                    assert_eq!(batch.get(0, row), ValueRef::Integer(expected));
                    expected += 1;
                }
            }
            assert_eq!(expected, 50_000);
        }
    }

    #[test]
    fn rows_come_back_in_order_from_memory() {
        fill_and_read(usize::MAX);
    }

    #[test]
    fn rows_come_back_in_order_from_a_file() {
        fill_and_read(100_000);
    }
}
