//! The queue of a recursion with ORDER BY: the smallest row leaves it first, of equal ones
//! the one that came first.
//!
//! Rows are kept in a heap. Where the budget ends, all of it goes to disk as a sorted run,
//! and the smallest row is sought among the heap's and those of the runs. Where there are
//! many runs, they are merged into one.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::bind::expr::SortKey;
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::memory::{Held, Memory};
use crate::exec::ops::sort::encode_term;
use crate::exec::rows::{RowStore, decode_cell, encode_cell};
use crate::key::Order;
use crate::value::ValueRef;

/// Bytes of a heap that is worth a run.
const RUN_BYTES_MIN: usize = 256 << 10;
/// Runs that are read side by side.
const RUNS_MAX: usize = 16;
/// Rows of a run that are read at once.
const READ_ROWS: usize = 64;
/// What a row takes in the heap beside its bytes.
const ENTRY_BYTES: usize = size_of::<Entry>() + 16;
/// Bytes that are reserved at once.
const RESERVED_BYTES: usize = 64 << 10;
/// Buffers of rows that left, kept for those to come.
const SPARE_MAX: usize = 64;
/// Bytes of the largest of them.
const SPARE_BYTES: usize = 1 << 10;

/// A row: its key, then its cells. No key is another one, or the beginning of one.
struct Entry {
    bytes: Vec<u8>,
    key: usize,
    order: Order,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.compare(self.key(), other.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl Entry {
    fn key(&self) -> &[u8] {
        self.bytes.get(..self.key).unwrap_or(&[])
    }

    fn cells(&self) -> &[u8] {
        self.bytes.get(self.key..).unwrap_or(&[])
    }
}

/// See the module.
pub struct OrderedQueue {
    terms: Vec<SortKey>,
    order: Order,
    width: usize,
    heap: BinaryHeap<Reverse<Entry>>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    held: Held,
    runs: Vec<Run>,
    arrived: u64,
}

/// Sorted rows on disk.
struct Run {
    store: RowStore,
    position: u64,
    rows: Batch,
    /// The row of `rows` that comes next.
    next: usize,
}

impl Run {
    fn new(memory: &Memory) -> Result<Self> {
        let file = Arc::new(memory.temp_file()?);
        Ok(Self {
            store: RowStore::in_file(2, memory, file),
            position: 0,
            rows: Batch::default(),
            next: 0,
        })
    }

    fn push(&mut self, key: &[u8], cells: &[u8]) -> Result<()> {
        let row = [ValueRef::Blob(key), ValueRef::Blob(cells)];
        self.store.push(row.into_iter())
    }

    /// Has its next row at hand; false at its end.
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        if self.next < self.rows.len() {
            return Ok(true);
        }
        self.next = 0;
        self.store
            .read(&mut self.position, READ_ROWS, &mut self.rows)
    }

    fn key(&self) -> &[u8] {
        bytes(self.rows.get(0, self.next))
    }

    fn cells(&self) -> &[u8] {
        bytes(self.rows.get(1, self.next))
    }
}

fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Blob(bytes) => bytes,
        _ => &[],
    }
}

/// The run whose next row is the smallest.
fn smallest(runs: &[Run], order: &Order) -> Option<usize> {
    (0..runs.len()).min_by(|a, b| {
        let key = |at: &usize| runs.get(*at).map_or(&[][..], Run::key);
        order.compare(key(a), key(b))
    })
}

impl OrderedQueue {
    /// An empty one for rows of `width` columns.
    pub fn new(terms: Vec<SortKey>, width: usize) -> Self {
        Self {
            order: Order::of(terms.iter().map(|term| term.collation)),
            terms,
            width,
            heap: BinaryHeap::new(),
            bytes: 0,
            spare: Vec::new(),
            held: Held::default(),
            runs: Vec::new(),
            arrived: 0,
        }
    }

    /// Forgets all rows and gives memory back.
    pub fn clear(&mut self) {
        self.heap = BinaryHeap::new();
        self.bytes = 0;
        self.spare = Vec::new();
        self.held.release();
        self.runs.clear();
        self.arrived = 0;
    }

    /// Adds the rows of a batch that count.
    pub fn push(&mut self, rows: &Batch, cx: &mut Context<'_, '_>) -> Result<()> {
        rows.selection().try_each(|row| {
            let mut bytes = self.spare.pop().unwrap_or_default();
            for term in &self.terms {
                let value = eval(&term.expr, Row::Batch(rows, row), cx)?;
                encode_term(&mut bytes, value.as_ref(), term);
            }
            bytes.extend_from_slice(&self.arrived.to_be_bytes());
            self.arrived += 1;
            let key = bytes.len();
            for column in rows.columns.iter().take(self.width) {
                encode_cell(column.get(row), &mut bytes);
            }
            self.bytes += bytes.len() + ENTRY_BYTES;
            let order = self.order.clone();
            self.heap.push(Reverse(Entry { bytes, key, order }));
            Ok(())
        })?;
        let reserved = self.bytes.next_multiple_of(RESERVED_BYTES);
        if !self.held.resize(&cx.run.memory, reserved) {
            if self.bytes >= RUN_BYTES_MIN.max(cx.run.memory.limit() / 8) {
                self.spill(cx)?;
            }
            self.held.force(&cx.run.memory, self.bytes);
        }
        Ok(())
    }

    /// Sends the heap to disk.
    fn spill(&mut self, cx: &Context<'_, '_>) -> Result<()> {
        let mut run = Run::new(&cx.run.memory)?;
        while let Some(Reverse(entry)) = self.heap.pop() {
            run.push(entry.key(), entry.cells())?;
        }
        self.bytes = 0;
        self.add_run(run)?;
        if self.runs.len() > RUNS_MAX {
            let mut merged = Run::new(&cx.run.memory)?;
            let mut rows = 0u64;
            while let Some(at) = smallest(&self.runs, &self.order) {
                if let Some(run) = self.runs.get(at) {
                    merged.push(run.key(), run.cells())?;
                }
                self.advance(at)?;
                rows += 1;
                if rows.is_multiple_of(4096) {
                    cx.run.check_interrupt()?;
                }
            }
            self.add_run(merged)?;
        }
        Ok(())
    }

    fn add_run(&mut self, mut run: Run) -> Result<()> {
        if run.advance()? {
            self.runs.push(run);
        }
        Ok(())
    }

    /// Goes on in a run, or drops it at its end.
    fn advance(&mut self, at: usize) -> Result<()> {
        if let Some(run) = self.runs.get_mut(at)
            && !run.advance()?
        {
            self.runs.swap_remove(at);
        }
        Ok(())
    }

    /// Moves the smallest row to `out`; false: there is none.
    pub fn take(&mut self, out: &mut Batch) -> Result<bool> {
        out.reset(self.width);
        let run = smallest(&self.runs, &self.order);
        let heap = self.heap.peek().map(|Reverse(entry)| entry.key());
        let from_run = match (heap, run.and_then(|at| self.runs.get(at))) {
            (Some(key), Some(run)) => self.order.compare(run.key(), key).is_lt(),
            (_, run) => run.is_some(),
        };
        if let Some(at) = run.filter(|_| from_run) {
            if let Some(run) = self.runs.get(at) {
                decode(run.cells(), out)?;
            }
            self.advance(at)?;
            return Ok(true);
        }
        let Some(Reverse(mut entry)) = self.heap.pop() else {
            return Ok(false);
        };
        self.bytes -= entry.bytes.len() + ENTRY_BYTES;
        decode(entry.cells(), out)?;
        if self.spare.len() < SPARE_MAX && entry.bytes.capacity() <= SPARE_BYTES {
            entry.bytes.clear();
            self.spare.push(entry.bytes);
        }
        Ok(true)
    }
}

fn decode(mut cells: &[u8], out: &mut Batch) -> Result<()> {
    for column in &mut out.columns {
        column.push(decode_cell(&mut cells)?)?;
    }
    out.set_rows(1);
    Ok(())
}
