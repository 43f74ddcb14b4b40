//! The rows that a window still needs: a stretch of the input, in blocks.
//!
//! Rows are numbered through the whole input. Blocks lie in memory as they came, as
//! long as the budget allows; one that finds no room is written to a temporary file and
//! read again where it is asked for. Blocks that nothing asks for any more are dropped
//! from the front.

use std::collections::VecDeque;
use std::ops::Range;

use crate::error::Result;
use crate::exec::batch::{BYTES_MAX, Batch, ROWS_MAX, Vector};
use crate::exec::memory::{Memory, Reservation, TempFile};
use crate::exec::rows::{decode_cell, encode_cell};
use crate::value::ValueRef;

/// Blocks of the file that are held in memory: one for each place that rows are read
/// at, and some to spare.
const LOADED_MAX: usize = 8;
/// Rows of a batch that becomes a block without being copied.
const WHOLE_MIN: usize = ROWS_MAX / 2;

/// Rows and their marks, one behind the other.
#[derive(Default)]
pub struct Kept {
    /// The rows, all of which count.
    pub batch: Batch,
    /// What the caller notes of each row.
    pub marks: Vec<u8>,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.batch.memory() + self.marks.capacity()
    }
}

enum Place {
    Memory(Kept),
    File { offset: u64, length: usize },
}

struct Block {
    first: u64,
    rows: usize,
    /// Of memory.
    bytes: usize,
    place: Place,
}

struct Loaded {
    first: u64,
    used: u64,
    kept: Kept,
}

/// See the module.
pub struct Rows {
    width: usize,
    blocks: VecDeque<Block>,
    /// The last block takes more rows.
    open: bool,
    end: u64,
    memory: Memory,
    /// What the blocks in memory take.
    reservation: Reservation,
    reserved: usize,
    file: Option<TempFile>,
    loaded: Vec<Loaded>,
    loaded_bytes: Reservation,
    uses: u64,
    buffer: Vec<u8>,
}

impl Rows {
    /// None, of `width` columns.
    pub fn new(width: usize, memory: &Memory) -> Self {
        Self {
            width,
            blocks: VecDeque::new(),
            open: false,
            end: 0,
            memory: memory.clone(),
            reservation: memory.reservation(),
            reserved: 0,
            file: None,
            loaded: Vec::new(),
            loaded_bytes: memory.reservation(),
            uses: 0,
            buffer: Vec::new(),
        }
    }

    /// The number of the next row that comes.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds the rows of a batch that count, with their marks; the batch may be another
    /// one behind it.
    pub fn append(&mut self, batch: &mut Batch, marks: &[u8]) -> Result<()> {
        if !self.open && batch.len() == batch.rows() && batch.len() >= WHOLE_MIN {
            let mut kept = Kept::default();
            std::mem::swap(&mut kept.batch, batch);
            kept.marks.extend_from_slice(marks);
            self.begin(kept);
            return self.seal();
        }
        for (at, mark) in marks.iter().enumerate() {
            let Some(row) = batch.row_at(at) else { break };
            if !self.open {
                let batch = Batch::new(self.width);
                let marks = Vec::new();
                self.begin(Kept { batch, marks });
            }
            let Some(block) = self.blocks.back_mut() else {
                break;
            };
            let Place::Memory(kept) = &mut block.place else {
                break;
            };
            for (to, from) in kept.batch.columns.iter_mut().zip(&batch.columns) {
                to.push_from(from, row)?;
            }
            kept.marks.push(*mark);
            block.rows += 1;
            kept.batch.set_rows(block.rows);
            self.end += 1;
            let is_full = block.rows >= ROWS_MAX
                || block.rows.is_multiple_of(16) && kept.batch.memory() >= BYTES_MAX;
            if is_full {
                self.seal()?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, kept: Kept) {
        let (first, rows) = (self.end, kept.marks.len());
        self.end += rows as u64;
        self.blocks.push_back(Block {
            first,
            rows,
            bytes: 0,
            place: Place::Memory(kept),
        });
        self.open = true;
    }

    /// Ends the last block, which goes to the file where there is no room for it.
    fn seal(&mut self) -> Result<()> {
        self.open = false;
        let Some(block) = self.blocks.back_mut() else {
            return Ok(());
        };
        let Place::Memory(kept) = &block.place else {
            return Ok(());
        };
        let bytes = kept.bytes();
        if self.reservation.resize(self.reserved + bytes) {
            self.reserved += bytes;
            block.bytes = bytes;
            return Ok(());
        }
        self.buffer.clear();
        for (row, mark) in kept.marks.iter().enumerate() {
            self.buffer.push(*mark);
            for column in &kept.batch.columns {
                encode_cell(column.get(row), &mut self.buffer);
            }
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(self.memory.temp_file()?),
        };
        block.place = Place::File {
            offset: file.append(&self.buffer)?,
            length: self.buffer.len(),
        };
        self.buffer.shrink_to(BYTES_MAX);
        Ok(())
    }

    /// The rows before this one are asked for no more.
    pub fn release(&mut self, before: u64) {
        let mut released = 0;
        while let Some(block) = self.blocks.front()
            && block.first + block.rows as u64 <= before
            && (self.blocks.len() > 1 || !self.open)
        {
            released += block.bytes;
            self.blocks.pop_front();
        }
        if released > 0 {
            self.reserved -= released;
            self.reservation.resize(self.reserved);
        }
        let first = self.blocks.front().map_or(self.end, |block| block.first);
        if self.loaded.iter().any(|loaded| loaded.first < first) {
            self.loaded.retain(|loaded| loaded.first >= first);
            self.note_loaded();
        }
        if self.blocks.is_empty() {
            self.file = None;
        }
    }

    fn note_loaded(&mut self) {
        let bytes = self.loaded.iter().map(|loaded| loaded.kept.bytes()).sum();
        self.loaded_bytes.force(bytes);
    }

    fn block_of(&self, row: u64) -> usize {
        let holds = |at: usize| {
            self.blocks
                .get(at)
                .is_some_and(|b| b.first <= row && row - b.first < b.rows as u64)
        };
        // Most blocks are full.
        let first = self.blocks.front().map_or(0, |block| block.first);
        let guess = (row.saturating_sub(first) / ROWS_MAX as u64) as usize;
        if holds(guess) {
            return guess;
        }
        if holds(guess + 1) {
            return guess + 1;
        }
        let behind = self.blocks.partition_point(|block| block.first <= row);
        behind.saturating_sub(1)
    }

    /// The rows around a row, its place among them, and how many come from there on.
    pub fn around(&mut self, row: u64) -> Result<(&Kept, usize, usize)> {
        let at = self.block_of(row);
        let (first, rows, place) = match self.blocks.get(at) {
            Some(block) => (block.first, block.rows, &block.place),
            None => return Err(missing()),
        };
        let within = row.wrapping_sub(first) as usize;
        if within >= rows {
            return Err(missing());
        }
        let left = rows - within;
        let found = match place {
            Place::Memory(_) => None,
            Place::File { offset, length } => Some((*offset, *length)),
        };
        if let Some((offset, length)) = found {
            let loaded = self.load(first, rows, offset, length)?;
            return match self.loaded.get(loaded) {
                Some(loaded) => Ok((&loaded.kept, within, left)),
                None => Err(missing()),
            };
        }
        match self.blocks.get(at).map(|block| &block.place) {
            Some(Place::Memory(kept)) => Ok((kept, within, left)),
            _ => Err(missing()),
        }
    }

    /// Has a block of the file in memory; where.
    fn load(&mut self, first: u64, rows: usize, offset: u64, length: usize) -> Result<usize> {
        self.uses += 1;
        let uses = self.uses;
        let known = self.loaded.iter().position(|l| l.first == first);
        if let Some(at) = known
            && let Some(loaded) = self.loaded.get_mut(at)
        {
            loaded.used = uses;
            return Ok(at);
        }
        let mut kept = Kept::default();
        if self.loaded.len() >= LOADED_MAX {
            let oldest = self.loaded.iter().enumerate().min_by_key(|(_, l)| l.used);
            if let Some((at, _)) = oldest {
                kept = self.loaded.swap_remove(at).kept;
            }
        }
        self.buffer.resize(length, 0);
        if let Some(file) = &self.file {
            file.read(&mut self.buffer, offset)?;
        }
        kept.batch.reset(self.width);
        kept.marks.clear();
        let mut rest = self.buffer.as_slice();
        while let Some((mark, cells)) = rest.split_first() {
            rest = cells;
            kept.marks.push(*mark);
            for column in &mut kept.batch.columns {
                column.push(decode_cell(&mut rest)?)?;
            }
        }
        kept.batch.set_rows(rows);
        self.loaded.push(Loaded {
            first,
            used: uses,
            kept,
        });
        self.note_loaded();
        Ok(self.loaded.len() - 1)
    }

    /// A value.
    #[inline]
    pub fn value(&mut self, column: usize, row: u64) -> Result<ValueRef<'_>> {
        let (kept, at, _) = self.around(row)?;
        Ok(kept.batch.get(column, at))
    }

    /// The marks of a row.
    #[inline]
    pub fn marks(&mut self, row: u64) -> Result<u8> {
        let (kept, at, _) = self.around(row)?;
        Ok(kept.marks.get(at).copied().unwrap_or(0))
    }

    /// Appends rows to columns.
    pub fn copy(&mut self, rows: Range<u64>, out: &mut [Vector]) -> Result<()> {
        let (mut row, mut places) = (rows.start, Vec::new());
        while row < rows.end {
            let (kept, at, left) = self.around(row)?;
            let count = left.min((rows.end - row) as usize);
            places.clear();
            places.extend((at..at + count).map(|place| place as u32));
            for (to, from) in out.iter_mut().zip(&kept.batch.columns) {
                to.gather(from, &places)?;
            }
            row += count as u64;
        }
        Ok(())
    }
}

fn missing() -> crate::error::Error {
    crate::error::Error::misuse("a window asks for a row that it let go")
}
